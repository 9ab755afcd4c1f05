"""Put the rule for the asker's place first, and find the rules of other places."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from rag.answering.extractive.in_words import said_near
from rag.answering.extractive.rule import RULE
from rag.answering.extractive.scoring import Scored
from rag.answering.quotations import CandidateSentence, say_the_same
from rag.retrieval.bm25.synonyms import ideas_in
from rag.text.figures import figures


class OwnPlace(NamedTuple):
    """The best sentence from the asker's place, and the best sentences from documents with different rules."""

    first: CandidateSentence
    others: list[CandidateSentence]
    #: All passages of the place.
    passages: frozenset[int]


def of_own_place(ranked: Sequence[CandidateSentence], documents: Collection[UUID], scored: Scored) -> OwnPlace | None:
    """Find the sentence from the asker's place which answers as well as the best sentence.

    Returns `None` without such a sentence, or without a different rule elsewhere.
    """
    citations = scored.passages.citations
    passages = frozenset(place for place, citation in enumerate(citations) if citation.document_id in documents)
    best = ranked[0]
    subject = scored.reading.subject
    own = [best]
    if best.passage not in passages:
        fitting = [
            c
            for c in ranked
            if c.passage in passages
            and c.is_of_type >= best.is_of_type
            and bool(c.figures) >= bool(best.figures)
            and (subject <= said_near(c) or not subject <= said_near(best))
        ]
        own = _as_near(fitting[: RULE.most_of_own_place], best, scored)
        if own and scored.passages.language_of(own[0]) != scored.passages.language:
            own = _standing_out(own, [c for c in ranked if c.passage in passages], scored)
    if not own:
        return None
    others = [c for c in ranked if c.passage not in passages]
    others = elsewhere(own[:1], others, scored, anchor=best)
    return OwnPlace(own[0], others, passages) if others else None


def _standing_out(
    own: list[CandidateSentence], ranked: Sequence[CandidateSentence], scored: Scored
) -> list[CandidateSentence]:
    """Return the foreign-language sentence nearest in meaning; by words, the best sentence if it stands out.

    Words alone often hold equally for many foreign-language sentences.
    """
    scores = scored.scores
    if scored.passages.similarities is not None:
        likeness = scored.passages.similarities([scored.reading.question], [c.compared for c in own])[0]
        return [max(zip(own, likeness, strict=True), key=lambda pair: pair[1])[0]]
    next_best = max((scores[c] for c in ranked if c != own[0]), default=0.0)
    return own[:1] if scores[own[0]] >= RULE.stands_out * next_best else []


def _as_near(
    further: Sequence[CandidateSentence], anchor: CandidateSentence, scored: Scored
) -> list[CandidateSentence]:
    """Keep the sentences about as close to the question as the anchor, by meaning or else by score."""
    if not further:
        return []
    if scored.passages.similarities is None:
        least_score = RULE.least_of_another_place * scored.scores[anchor]
        return [c for c in further if scored.scores[c] >= least_score]
    compared = [c.compared for c in (anchor, *further)]
    least, *likeness = scored.passages.similarities([scored.reading.question], compared)[0]
    return [c for c, alike in zip(further, likeness, strict=True) if alike >= least - RULE.less_alike]


def elsewhere(
    chosen: Sequence[CandidateSentence],
    ranked: Sequence[CandidateSentence],
    scored: Scored,
    *,
    anchor: CandidateSentence | None = None,
) -> list[CandidateSentence]:
    """Return the best sentences from further documents with different figures, such as a branch's rule.

    They differ from the first quotation in language or folder, or have similar titles: "Leave in Utrecht" and "Leave in
    Leeds". `anchor` is the best sentence beside a rule from the asker's place; with an anchor, all documents and rules
    without figures count.
    """
    first, is_own_place = chosen[0], anchor is not None
    if not is_own_place and not (first.is_of_type and first.figures):
        return []
    reading = scored.reading
    spoken = scored.passages.languages
    known = _amounts(first.text, spoken[first.passage])
    subject = reading.subject or reading.asked
    meant = ideas_in(reading.question, scored.passages.language)
    found: dict[UUID, CandidateSentence] = {}
    for candidate in ranked:
        stated = _amounts(candidate.text, spoken[candidate.passage])
        is_sibling = bool(candidate.title & first.title) and bool(candidate.title - first.title)
        is_apart = candidate.folder != first.folder
        if (
            (is_own_place or is_sibling or is_apart or spoken[candidate.passage] != spoken[first.passage])
            and not any(title and title <= reading.asked for title in (first.title, candidate.title))
            and candidate.is_of_type >= first.is_of_type
            and bool(candidate.figures) == bool(first.figures)
            and (not (stated <= known or known <= stated) if first.figures else not say_the_same(candidate, first))
            and subject <= said_near(candidate)
            and ideas_in(candidate.headed, spoken[candidate.passage]) <= meant
        ):
            found.setdefault(scored.passages.document_of(candidate), candidate)
    for quoted in chosen:
        found.pop(scored.passages.document_of(quoted), None)
    return _as_near(list(found.values()), anchor or first, scored)


def _amounts(text: str, language: str) -> frozenset[str]:
    """Return the figures in a text; "27 days a year" holds 27, not 1."""
    found = figures(text, language)
    return found - {"1"} or found
