"""Answer without a language model: quote the sentences which best match the question.

A sentence's score is the share of the question's terms in it, weighted by rarity (idf); terms in the headings above
count half. If the caller can compare meaning, similarity to the question adds to the score. Length and a low-ranked
passage lower it. Whether the passages answer at all is decided elsewhere.

`best_quotes` calls the steps in order: `reading` finds the candidates, `scoring` scores them, `choosing` and `places`
choose. Their numbers are in `rule`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from rag.answering.answer_types import asked_type
from rag.answering.carried_over import NOTHING, Carried
from rag.answering.extractive.choosing import (
    OwnPlace,
    around,
    beginning,
    choose,
    elsewhere,
    first_step,
    of_named_folder,
    of_one_branch,
    of_own_place,
    of_the_follow_up,
    of_what_is_named,
)
from rag.answering.extractive.in_words import said_near, weight_of
from rag.answering.extractive.likeness import (
    MeantPart,
    Similarities,
    likeness_by,
    meant_parts,
    remembering,
    without_place,
)
from rag.answering.extractive.reading import Passages, Reading, read
from rag.answering.extractive.rule import RULE
from rag.answering.extractive.scoring import Scored, score
from rag.answering.extractive.words import ASKS_HOW, names_in, parts_of
from rag.answering.quotations import CandidateSentence, Quotes, Selected, written
from rag.answering.reply_odds import ReplySignals
from rag.answering.sentences import section_pointed_to
from rag.retrieval.bm25.synonyms import is_only_within_another, reword
from rag.retrieval.meaning import named_languages
from rag.retrieval.search_query import cached_question_words
from rag.text.analysers import analyser_code
from rag.text.language_detection import detect_language
from rag.types import Citation

__all__ = ["MeantPart", "Similarities", "best_quotes", "likeness_by", "meant_parts"]

QUOTED = re.compile("“(.*?)”")


def best_quotes(
    question: str,
    citations: Sequence[Citation],
    *,
    language: str = "",
    similarities: Similarities | None = None,
    parts_by_number: Mapping[int, Sequence[MeantPart]] | None = None,
    days: Mapping[UUID, str] | None = None,
    with_neighbours: bool = False,
    carried: Carried = NOTHING,
    own_documents: Collection[UUID] = (),
) -> Quotes | None:
    """Quote the sentences about the question; return `None` if the passages have no quotable sentence.

    `language` is the question's (ISO 639-1). `citations` are the context's passages, best first; their numbers are
    cited. `similarities` compares sentences by meaning; without it, words and places decide. `parts_by_number` maps
    passage numbers to parts with their cosines, from `meant_parts`. `days` are the documents' dates (ISO 8601): if two
    documents disagree, the newer comes first. `with_neighbours` also quotes the sentences around the best sentence,
    which is set in bold. `carried` is the completed follow-up: sentences with the follow-up's words come first.
    `own_documents` are the documents for the asker's place: if other documents have different rules, the asker's
    documents come first and the others are named.
    """
    if not re.search(r"\w", question):
        return None
    language = language or detect_language(question)
    kind = asked_type(carried.focus) or asked_type(question)
    passages = Passages(citations, language, similarities and remembering(similarities), parts_by_number or {})
    readings = _readings(question, passages, carried.focus)
    reading = max(readings, key=lambda reading: (reading.is_followed, reading.most))
    reading = reading._replace(candidates=of_named_folder(reading))
    if not reading.candidates:
        return None
    if passages.similarities and any(c.folder & reading.asked for c in reading.everything):
        passages = replace(passages, similarities=without_place(passages.similarities))
    scored = score(readings, reading, passages, kind, carried)
    chosen, candidates, own = _choice(scored, own_documents)
    neighbours = around(chosen[0], reading.everything) if with_neighbours else []
    quoted_too, also = _of_other_documents(chosen, scored, own, has_names=bool(carried.names))
    chosen = [*chosen, *quoted_too]
    with_steps = kind is None and ASKS_HOW.search(reading.question) is not None
    if with_steps and not any(c.step for c in chosen):
        chosen = [*chosen, *first_step(candidates, reading.weights)]
    selected = Selected(chosen, around=neighbours, own=own.passages if own else (), with_steps=with_steps)
    quotes = written(selected, scored.scores, reading.everything, citations, reading.asked, days or {})
    named = {citation.number for citation, said in zip(citations, scored.subjects_said, strict=True) if said}
    return replace(
        quotes,
        is_of_type=kind is None
        or any(c.is_headed for c in chosen)
        or any(kind.is_in(text, reading.question) for text in QUOTED.findall(quotes.text)),
        is_about=not reading.subjects or quotes.numbers[0] in named,
        points_to=_pointed_to(candidates, scored),
        best=(citations[chosen[0].passage].number, chosen[0].text),
        said=said_near(chosen[0]),
        is_own_place=own is not None,
        has_parts=bool(scored.parts),
        also=tuple(citations[c.passage].number for c in also),
        signals=_signals(question, chosen[0], scored),
    )


def _readings(question: str, passages: Passages, focus: str) -> list[Reading]:
    """Read the passages for the question, and again for the question in synonyms, if there are any."""
    language = passages.language
    readings = [read(question, passages, focus)]
    other = reword(question, language)
    if other and not parts_of(question, language):
        # The question says "vacation", the document "annual leave": the better match of each sentence counts.
        readings.append(read(other, passages, reword(focus, language) or focus))
    return readings


class _Choice(NamedTuple):
    """The chosen sentences, best first, and the candidates they were chosen from."""

    chosen: list[CandidateSentence]
    candidates: list[CandidateSentence]
    #: Set if the asker's place has a different rule from other places.
    own: OwnPlace | None = None


def _choice(scored: Scored, own_documents: Collection[UUID]) -> _Choice:
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
    own = of_own_place(ranked, own_documents, scored) if own_documents else None
    if own is None:
        ranked = of_one_branch(ranked, scored)
    else:
        rivals = set() if scored.parts else {citations[c.passage].document_id for c in own.others}
        rest = (c for c in ranked if c != own.first and citations[c.passage].document_id not in rivals)
        ranked = [own.first, *rest]
    ranked = of_the_follow_up(of_what_is_named(ranked, scored), scored)
    return _Choice(choose(ranked, scored), candidates, own)


def _of_other_documents(
    chosen: Sequence[CandidateSentence], scored: Scored, own: OwnPlace | None, *, has_names: bool
) -> tuple[list[CandidateSentence], list[CandidateSentence]]:
    """Return sentences with different rules from further documents: those to quote, and those only to name.

    `has_names` tells whether the conversation names a person, plan or place.
    """
    passages, reading = scored.passages, scored.reading
    further: list[CandidateSentence] = []
    if own is not None:
        said_in = {passages.document_of(c) for c in chosen}
        further = [c for c in own.others if passages.document_of(c) not in said_in]
    elif passages.similarities and not (
        has_names or names_in(reading.question, passages.language) or named_languages(reading.question)
    ):
        ordered = sorted(reading.candidates, key=lambda c: (-scored.scores[c], c.passage, c.position))
        further = elsewhere(chosen, ordered, scored)
    is_across = passages.language_of(chosen[0]) != passages.language
    quotable = [c for c in further if is_across or (own is None and c.folder != chosen[0].folder)]
    quotable = quotable[: max(0, RULE.maximum_quotes - len(chosen))]
    return quotable, [c for c in further if c not in quotable]


def _signals(asked: str, first: CandidateSentence, scored: Scored) -> ReplySignals:
    """Measure how well the first quotation matches the question. The caller adds the similarity of the passage.

    `asked` is the question in the asker's words.
    """
    reading, language, similarities = scored.reading, scored.passages.language, scored.passages.similarities
    question, weights = reading.question, reading.weights
    near = [c for c in reading.everything if c.passage == first.passage and abs(c.position - first.position) <= 1]
    said = first.heading.union(*(c.terms for c in near))
    likeness = similarities([question], [first.compared])[0][0] if similarities is not None else 0.0
    share = weight_of(weights, said) / (sum(weights.values()) or 1.0)
    marks = {candidate.mark for candidate in reading.everything}
    is_across = scored.passages.language_of(first) != language
    return ReplySignals(
        words=len(cached_question_words(question, language, analyser_code(language))),
        said=share,
        meaning=None,
        # Without an answer from the model, the similarity is 0.
        likeness=likeness or None,
        is_across=is_across,
        is_exact=share >= RULE.all_said and not is_across and asked_type(question) is not None and first.is_of_type,
        says_all=not is_across and len(weights) > 1 and weights.keys() <= first.terms,
        # True if the question asks for band D and the table only has A, B and C.
        names_another="another" in marks and marks.isdisjoint(("asked", "several")),
        is_within_another=is_only_within_another(asked, "\n".join(c.text for c in near), language),
    )


def _pointed_to(candidates: Sequence[CandidateSentence], scored: Scored) -> tuple[int, str] | None:
    """Return the citation number and the section to which the best sentence refers, or `None` if the sentence states a
    fact.
    """
    scores = scored.scores
    leading = {c: section for c in candidates if c.value < 1 and (section := section_pointed_to(c.text))}
    best = max(leading, key=lambda c: scores[c], default=None)
    if best is None:
        return None
    others = max((scores[c] for c in candidates if c not in leading), default=0.0)
    if scores[best] / RULE.pointer_value < others:
        return None
    return scored.passages.citations[best.passage].number, leading[best]
