"""Answer without a language model: quote the sentences which best match the question.

A sentence's score is the share of the question's terms in it, weighted by rarity (idf); terms in the headings above
count half. If an embedding model is available, similarity to the question adds to the score. Long sentences and
low-ranked passages score lower. Whether the quotations answer at all is decided in `rag/answering/quoting.py`.

`best_quotes` calls the steps in order: `reading` finds the candidates, `scoring` scores them, `choosing` chooses. The
weights and limits are in `rule`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from rag.answering.answer_types import requested_type
from rag.answering.carried_over import NOTHING, Carried
from rag.answering.extractive.choosing import (
    OwnPlace,
    around,
    beginning,
    choose,
    complements,
    elsewhere,
    first_step,
    of_named_folder,
    of_one_branch,
    of_own_place,
    of_the_follow_up,
    of_what_is_named,
)
from rag.answering.extractive.in_words import terms_near, weight_of
from rag.answering.extractive.likeness import (
    ComparedPart,
    Similarities,
    compared_parts,
    likeness_by,
    with_cache,
    without_place,
)
from rag.answering.extractive.reading import Passages, Reading, read
from rag.answering.extractive.rule import RULE
from rag.answering.extractive.scoring import Scored, score
from rag.answering.extractive.words import ASKS_HOW, names_in, parts_of
from rag.answering.quotations import CandidateSentence, Quotes, Selected, write_quotations
from rag.answering.reply_odds import ReplySignals
from rag.answering.sentences import section_pointed_to
from rag.retrieval.bm25.synonyms import is_only_within_another, reword
from rag.retrieval.countries import name_union
from rag.retrieval.meaning import named_languages
from rag.retrieval.search_query import cached_question_words
from rag.text.analysers import analyser_code
from rag.text.language_detection import detect_language
from rag.types import Citation

__all__ = ["ComparedPart", "Similarities", "best_quotes", "compared_parts", "likeness_by"]

QUOTED = re.compile("“(.*?)”", re.DOTALL)


def best_quotes(
    question: str,
    citations: Sequence[Citation],
    *,
    language: str = "",
    similarities: Similarities | None = None,
    parts_by_number: Mapping[int, Sequence[ComparedPart]] | None = None,
    days: Mapping[UUID, str] | None = None,
    with_neighbours: bool = False,
    carried: Carried = NOTHING,
    own_documents: Collection[UUID] = (),
) -> Quotes | None:
    """Quote the sentences about the question; return `None` if the passages have no quotable sentence.

    `citations` are the passages in the context, best first; the quotations cite their numbers. `language` is the
    question's ISO 639-1 code. `similarities` compares sentences by meaning; if missing, only words and positions are
    compared. `parts_by_number` comes from `compared_parts`. `days` are the documents' dates (ISO 8601): if two
    documents disagree, the newer is quoted first. `with_neighbours` also quotes the sentences around the best sentence,
    which is then set in bold. `carried` is the completed follow-up: sentences with the follow-up's words are preferred.
    `own_documents` are the documents for the user's country or site: if other documents have different rules, the
    user's documents are quoted first and the other documents are named.
    """
    if not re.search(r"\w", question):
        return None
    language = language or detect_language(question)
    kind = requested_type(carried.focus) or requested_type(question)
    passages = Passages(citations, language, similarities and with_cache(similarities), parts_by_number or {})
    readings = _readings(question, passages, carried.focus)
    reading = max(readings, key=lambda reading: (reading.is_followed, reading.most))
    reading = reading._replace(candidates=of_named_folder(reading))
    if not reading.candidates:
        return None
    if passages.similarities and any(c.folder & reading.question_terms for c in reading.everything):
        passages = replace(passages, similarities=without_place(passages.similarities))
    scored = score(readings, reading, passages, kind, carried)
    chosen, candidates, own_place = _choose_sentences(scored, own_documents)
    neighbours = around(chosen[0], reading.everything) if with_neighbours else []
    quoted_too, also = _of_other_documents(chosen, scored, own_place, has_names=bool(carried.names))
    chosen = [*chosen, *quoted_too]
    with_steps = kind is None and ASKS_HOW.search(reading.question) is not None
    if with_steps and not any(c.step for c in chosen):
        chosen = [*chosen, *first_step(candidates, reading.weights)]
    selected = Selected(
        chosen,
        around=neighbours,
        complements=complements(chosen[0], neighbours, readings),
        place_passages=own_place.passages if own_place else (),
        with_steps=with_steps,
    )
    quotes = write_quotations(
        selected, scored.scores, reading.everything, citations, reading.question_terms, days or {}
    )
    named = {citation.number for citation, count in zip(citations, scored.subject_counts, strict=True) if count}
    return replace(
        quotes,
        is_of_type=kind is None
        or any(c.is_headed for c in chosen)
        or any(kind.is_in(text, reading.question) for text in QUOTED.findall(quotes.text)),
        is_about=not reading.subjects or quotes.numbers[0] in named,
        points_to=_find_pointer(candidates, scored),
        best=(citations[chosen[0].passage].number, chosen[0].text),
        terms=terms_near(chosen[0]),
        is_own_place=own_place is not None,
        has_parts=bool(scored.parts),
        also=tuple(citations[c.passage].number for c in also),
        signals=_signals(question, chosen[0], scored),
    )


def _readings(question: str, passages: Passages, focus: str) -> list[Reading]:
    language = passages.language
    readings = [read(question, passages, focus)]
    other = reword(question, language)
    if other and not parts_of(question, language):
        # The question says "vacation", the document "annual leave": the better match of each sentence counts.
        readings.append(read(other, passages, reword(focus, language) or focus, readings[0]))
    union = name_union(question, language)
    if union and not named_languages(question) & set(passages.languages):
        readings.append(read(union, passages, name_union(focus, language) or focus))
    return readings


class _Choice(NamedTuple):
    chosen: list[CandidateSentence]
    candidates: list[CandidateSentence]
    #: Set if the asker's place has a different rule from other places.
    own_place: OwnPlace | None = None


def _choose_sentences(scored: Scored, own_documents: Collection[UUID]) -> _Choice:
    candidates, citations = scored.reading.candidates, scored.passages.citations
    if not scored.meaning and scored.best < RULE.least_in_words:
        return _Choice(beginning(candidates), candidates)
    if not scored.is_sure:
        # Hardly any word of the question occurs: trust the passages' order more than a chance match.
        candidates = [c for c in candidates if c.passage == candidates[0].passage]
    ranked = sorted(
        candidates,
        key=lambda c: (-scored.scores[c] * (RULE.item_value if c.kind == "item" else 1.0), c.passage, c.position),
    )
    own_place = of_own_place(ranked, own_documents, scored) if own_documents else None
    if own_place is None:
        ranked = of_one_branch(ranked, scored)
    else:
        rivals = set() if scored.parts else {citations[c.passage].document_id for c in own_place.other_sentences}
        rest = (c for c in ranked if c != own_place.first and citations[c.passage].document_id not in rivals)
        ranked = [own_place.first, *rest]
    ranked = of_the_follow_up(of_what_is_named(ranked, scored), scored)
    return _Choice(choose(ranked, scored), candidates, own_place)


def _of_other_documents(
    chosen: Sequence[CandidateSentence], scored: Scored, own_place: OwnPlace | None, *, has_names: bool
) -> tuple[list[CandidateSentence], list[CandidateSentence]]:
    """Find sentences in further documents which have different rules.

    Returns the sentences to quote, and the sentences for which only the document is mentioned.
    """
    passages, reading = scored.passages, scored.reading
    further: list[CandidateSentence] = []
    if own_place is not None:
        quoted_documents = {passages.document_of(c) for c in chosen}
        further = [c for c in own_place.other_sentences if passages.document_of(c) not in quoted_documents]
    elif passages.similarities and not (
        has_names or names_in(reading.question, passages.language) or named_languages(reading.question)
    ):
        ordered = sorted(reading.candidates, key=lambda c: (-scored.scores[c], c.passage, c.position))
        further = elsewhere(chosen, ordered, scored)
    is_across = passages.language_of(chosen[0]) != passages.language
    quotable = [c for c in further if is_across or (own_place is None and c.folder != chosen[0].folder)]
    quotable = quotable[: max(0, RULE.maximum_quotes - len(chosen))]
    return quotable, [c for c in further if c not in quotable]


def _signals(original_question: str, first: CandidateSentence, scored: Scored) -> ReplySignals:
    reading, language, similarities = scored.reading, scored.passages.language, scored.passages.similarities
    question, weights = reading.question, reading.weights
    near = [c for c in reading.everything if c.passage == first.passage and abs(c.position - first.position) <= 1]
    near_terms = first.heading.union(*(c.terms for c in near))
    likeness = similarities([question], [first.compared])[0][0] if similarities is not None else 0.0
    share = weight_of(weights, near_terms) / (sum(weights.values()) or 1.0)
    marks = {candidate.mark for candidate in reading.everything}
    is_across = scored.passages.language_of(first) != language
    return ReplySignals(
        words=len(cached_question_words(question, language, analyser_code(language))),
        word_share=share,
        meaning=None,
        # Without an answer from the model, the similarity is 0.
        likeness=likeness or None,
        is_across=is_across,
        is_exact=share >= RULE.all_words
        and not is_across
        and requested_type(question) is not None
        and first.is_of_type,
        says_all=not is_across
        and ((len(weights) > 1 and weights.keys() <= first.terms) or _names_subjects(first, reading)),
        # True if the question asks for band D and the table only has A, B and C.
        names_another="another" in marks and marks.isdisjoint(("asked", "several")),
        is_within_another=is_only_within_another(original_question, "\n".join(c.text for c in near), language),
    )


def _names_subjects(first: CandidateSentence, reading: Reading) -> bool:
    share = weight_of(reading.weights, first.terms) / (sum(reading.weights.values()) or 1.0)
    return bool(reading.subject) and reading.subject <= first.terms and share >= RULE.share_of_subjects


def _find_pointer(candidates: Sequence[CandidateSentence], scored: Scored) -> tuple[int, str] | None:
    """Return the citation number and the section number if the best sentence only refers to a numbered section.

    Returns `None` for any other sentence.
    """
    scores = scored.scores
    leading = {c: section for c in candidates if c.value < 1 and (section := section_pointed_to(c.text))}
    best = max(leading, key=lambda c: scores[c], default=None)
    if best is None:
        return None
    best_other = max((scores[c] for c in candidates if c not in leading), default=0.0)
    if scores[best] / RULE.pointer_value < best_other:
        return None
    return scored.passages.citations[best.passage].number, leading[best]
