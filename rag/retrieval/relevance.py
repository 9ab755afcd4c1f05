"""Whether what was found speaks to the question at all: the difference between an answer and "not in the documents"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag.retrieval.evidence import (
    ENOUGH,
    MARGIN_WEIGHT,
    Coverage,
    QuestionWord,
    background,
    coverage,
    passage_terms,
    question_words,
)
from rag.retrieval.keywords import contextual_text, term_id
from rag.retrieval.search import Found
from rag.types import SearchResult

#: Below this relevance a reranked passage is not cited: Cohere gives unrelated passages 0.01 and less, and related ones
#: to a question of two words sometimes little more than this.
RELEVANCE_FLOOR = 0.02
#: From this relevance on a reranked passage needs no shared word: it may be in another language.
SURE_RELEVANCE = 0.3
#: Beside a passage that is evidence, others are cited when they cover at least this share of what it covers.
COMPANION_SHARE = 0.5
#: What makes half of a question enough where there is no background.
MARGIN_OF_ONE_WORD = (ENOUGH - 0.5) / MARGIN_WEIGHT


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A passage with what is known of its relevance."""

    result: SearchResult
    coverage: Coverage
    #: How far its similarity is above that of the other candidates.
    margin: float = 0.0
    is_evidence: bool
    #: The question's words in the passage's language, and that language: what to mark in the passage.
    words: tuple[QuestionWord, ...]
    language: str
    #: Text around the passage that the model reads with it, and the pages of all that; 0: those of the passage.
    before: str = ""
    after: str = ""
    first_read_page: int = 0
    last_read_page: int = 0


def judge(
    results: Sequence[SearchResult],
    found: Found,
    *,
    wordings: Sequence[tuple[str, str]],
    thresholds: Sequence[float] = (),
) -> list[Judged]:
    """Judge each result by the question's wordings, pairs of text and language; the best wording counts.

    `thresholds` are similarities that are evidence by themselves, the first that a passage reaches; none where the
    embedder compares words only.
    """
    words: dict[tuple[int, str], list[QuestionWord]] = {}

    def idf(term: str) -> float:
        return found.statistics.idf(term_id(term))

    nearest = max((r.similarity for r in results if r.similarity is not None), default=-1.0)
    threshold = next((t for t in thresholds if nearest >= t), None)
    # Of what words found: passages that only mean the same lie lower, and would make everything stand out.
    usual = background([r.similarity for r in found.results if r.vector_rank or r.keyword_rank])
    judged = []
    for result in results:
        language = found.languages[result.document_id]
        text = contextual_text(result.title, result.section, result.content)
        coverages = []
        for number, (wording, wording_language) in enumerate(wordings):
            key = (number, language)
            if key not in words:
                words[key] = question_words(wording, wording_language, language)
            coverages.append(coverage(words[key], passage_terms(text, language), idf))
        best = max(range(len(coverages)), key=lambda i: coverages[i].share)
        margin = _margin(result, coverages[best], usual)
        is_near = threshold is not None and result.similarity is not None and result.similarity >= threshold
        judged.append(
            Judged(
                result=result,
                coverage=coverages[best],
                margin=margin,
                is_evidence=is_near or coverages[best].is_evidence(margin),
                words=tuple(words[best, language]),
                language=language,
            )
        )
    return judged


def _margin(result: SearchResult, held: Coverage, usual: float | None) -> float:
    """How far a passage's similarity is above the usual one.

    With too few candidates to tell what is usual, half of it counts beside several words. One word that is shared
    makes a short passage near by itself: beside it a little counts, so that half of the question is enough.
    """
    if result.similarity is None:
        return 0.0
    if usual is None:
        return result.similarity / 2 if len(held.found) > 1 else MARGIN_OF_ONE_WORD
    return result.similarity - usual


def worth_citing(judged: Sequence[Judged]) -> list[Judged]:
    """The passages, in their order, that may be cited; none when not one of them speaks to the question."""
    evidence = [item for item in judged if _speaks(item)]
    if not evidence:
        return []
    needed = COMPANION_SHARE * max(item.coverage.share for item in evidence)
    return [item for item in judged if _speaks(item) or _accompanies(item, needed)]


def _speaks(item: Judged) -> bool:
    relevance = item.result.rerank_score
    if relevance is None:
        return item.is_evidence
    return relevance >= SURE_RELEVANCE or (item.is_evidence and relevance >= RELEVANCE_FLOOR)


def _accompanies(item: Judged, needed: float) -> bool:
    relevance = item.result.rerank_score
    return (relevance is None or relevance >= RELEVANCE_FLOOR) and 0 < needed <= item.coverage.share
