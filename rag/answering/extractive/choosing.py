"""Choose the sentences to quote from the ranked candidates. The rule for the user's country or site comes first."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from rag.answering.extractive.in_words import own_terms, terms_near, weight_of
from rag.answering.extractive.reading import TO_A_MODEL, Reading
from rag.answering.extractive.rule import RULE
from rag.answering.extractive.scoring import Part, Scored
from rag.answering.extractive.words import names_in
from rag.answering.quotations import LONGEST_SENTENCE, CandidateSentence, say_the_same, says_otherwise
from rag.answering.sentences import POINTER
from rag.retrieval.bm25.synonyms import ideas_in
from rag.retrieval.meaning import named_languages
from rag.text.figures import figures


def of_named_folder(reading: Reading) -> list[CandidateSentence]:
    """Of documents with the same title, keep only the document in the folder which the question names.

    Returns all candidates if the question names no folder.
    """
    candidates, question_terms = reading.candidates, reading.question_terms
    folders: dict[frozenset[str], set[frozenset[str]]] = {}
    for candidate in candidates:
        if candidate.folder:
            folders.setdefault(candidate.title - candidate.folder, set()).add(candidate.folder)
    shared = {title: frozenset.intersection(*siblings) for title, siblings in folders.items()}
    named = {
        title
        for title, siblings in folders.items()
        if any(shared[title] < folder <= question_terms | shared[title] for folder in siblings)
    }
    return [
        c
        for c in candidates
        if not c.folder or (title := c.title - c.folder) not in named or (c.folder - shared[title]) & question_terms
    ]


def of_one_branch(ranked: list[CandidateSentence], scored: Scored) -> list[CandidateSentence]:
    """Drop sentences in other languages if the best sentence has the question's language and all the question's words.

    Documents in other languages belong to other branches: 27 days' leave in Ottermere, 28 in Utrecht. If the question
    names a language or country, all sentences are kept.
    """
    best, passages = ranked[0], scored.passages
    holds_all = scored.in_words[best] >= RULE.all_in_words * best.value
    if best.value < 1 or not holds_all or named_languages(scored.reading.question):
        return ranked
    if passages.language_of(best) != passages.language:
        return ranked
    return [c for c in ranked if passages.language_of(c) == passages.language]


def of_what_is_named(ranked: list[CandidateSentence], scored: Scored) -> list[CandidateSentence]:
    """If the best sentence's document contains a name from the question, drop documents without such a name.

    For a question about PerksPlus, the general benefits guide is dropped. If the question names the folder "France",
    the general handbook is dropped.
    """
    reading, document_of = scored.reading, scored.passages.document_of
    names = names_in(reading.question, scored.passages.language).union(
        *(c.folder & reading.question_terms for c in ranked)
    )
    naming = {document_of(c) for c in reading.everything if names & (c.terms | c.heading | c.title)}
    return [c for c in ranked if document_of(c) in naming] if document_of(ranked[0]) in naming else ranked


def of_the_follow_up(ranked: list[CandidateSentence], scored: Scored) -> list[CandidateSentence]:
    """Keep the best sentence, and sentences which match the follow-up equally and the whole question almost equally."""
    focus, weights = scored.reading.followed, scored.reading.weights
    terms = terms_near(ranked[0])
    ranked = [c for c in ranked if c == ranked[0] or not scored.replaced & c.terms]
    if not focus & terms:
        return ranked
    least = RULE.least_of_follow_up * weight_of(weights, terms)
    return [c for c in ranked if focus & terms <= terms_near(c) and weight_of(weights, terms_near(c)) >= least]


def choose(ranked: Sequence[CandidateSentence], scored: Scored) -> list[CandidateSentence]:
    """Choose the best sentence, the best sentence for each part of the question, and further good sentences.

    A sentence from a different document which contradicts the best sentence in otherwise equal words is quoted second.
    """
    best, scores = ranked[0], scored.scores
    chosen = _first(ranked, scored)
    characters = sum(len(c.text) for c in chosen)
    for candidate in _adjacent(best, ranked):
        # Neighbours continue the best sentence's thought in different words and need a lower score.
        is_good = scores[candidate] >= RULE.least_of_neighbour * scores[best]
        if is_good and characters + len(candidate.text) <= RULE.maximum_characters:
            chosen.append(candidate)
            characters += len(candidate.text)
    is_sure = scored.is_sure
    least = max((RULE.least_of_best if is_sure else RULE.least_of_unsure) * scores[best], 1e-9)
    for candidate in ranked[1:]:
        if _is_about_something_else(candidate, best, scored):
            continue
        if len(chosen) >= RULE.maximum_quotes or scores[candidate] < least:
            break
        if _adds_little(candidate, best, scored, is_sure=is_sure):
            continue
        if any(say_the_same(candidate, other) or _crowds(candidate, other, scores) for other in chosen):
            continue
        if characters + len(candidate.text) > RULE.maximum_characters:
            continue
        chosen.append(candidate)
        characters += len(candidate.text)
    return chosen


def _first(ranked: Sequence[CandidateSentence], scored: Scored) -> list[CandidateSentence]:
    best, document_of = ranked[0], scored.passages.document_of
    rivals = (c for c in ranked if document_of(c) != document_of(best) and c.kind == best.kind)
    chosen = [best, *itertools.islice((c for c in rivals if says_otherwise(c, best)), 1)]
    for part in scored.parts:
        # "And in Germany": the folder of a chosen sentence already covers this part.
        named = part.terms & scored.reading.weights.keys()
        if any(named <= c.folder for c in chosen):
            continue
        of_folder = next((c for c in ranked if named <= c.folder), None)
        sentence = of_folder or _best_of_part(part, ranked, scored)
        if sentence is not None and not any(say_the_same(sentence, other) for other in chosen):
            chosen.append(sentence)
    return chosen


def _is_about_something_else(candidate: CandidateSentence, best: CandidateSentence, scored: Scored) -> bool:
    # After a sentence about the dentist, a sentence about glasses is no answer.
    about = scored.reading.subject & (best.terms | best.heading)
    if about - candidate.terms - candidate.heading:
        return True
    # If the best sentence has the requested amount, a different passage without an amount is no answer.
    return candidate.is_of_type < best.is_of_type and candidate.passage != best.passage


def _adds_little(candidate: CandidateSentence, best: CandidateSentence, scored: Scored, *, is_sure: bool) -> bool:
    weights, scores = scored.reading.weights, scored.scores
    best_weight = weight_of(weights, best.terms | best.heading)
    is_complete = bool(weights.keys() & best.terms) and best_weight >= RULE.all_in_words * sum(weights.values())
    is_weaker = scores[candidate] < RULE.least_beside_complete * scores[best]
    if is_complete and candidate.passage != best.passage and is_weaker:
        return True
    least_own = RULE.least_own * weight_of(weights, own_terms(best, weights))
    is_near = scored.meaning.get(candidate, 0.0) > RULE.near_in_meaning * RULE.meaning_weight
    return is_sure and not is_near and weight_of(weights, own_terms(candidate, weights)) < least_own


def beginning(candidates: Sequence[CandidateSentence]) -> list[CandidateSentence]:
    """Return the best passage's first sentences. Used if the question's words favour no sentence."""
    best = [c for c in candidates if c.passage == candidates[0].passage and c.kind != "column"]
    chosen: list[CandidateSentence] = []
    for candidate in [c for c in best if c.value >= 1.0] or best:
        remaining = LONGEST_SENTENCE - sum(len(c.text) for c in chosen)
        if len(chosen) == RULE.first_sentences or (chosen and len(candidate.text) > remaining):
            break
        chosen.append(candidate)
    return chosen


def around(best: CandidateSentence, everything: Sequence[CandidateSentence]) -> list[CandidateSentence]:
    """Return the sentences around the best sentence in the same paragraph, which often explain the best sentence."""
    if best.kind != "sentence":
        return []
    same = {c.position: c for c in everything if c.passage == best.passage}
    neighbours: list[CandidateSentence] = []
    texts = {best.text}
    remaining = RULE.longest_neighbourhood - len(best.text)
    for step in RULE.neighbours:
        neighbour = same.get(best.position + step)
        is_next = best.position + step - (1 if step > 0 else -1) in {best.position, *(c.position for c in neighbours)}
        if neighbour is None or neighbour.kind != "sentence" or not is_next:
            continue
        if POINTER.search(neighbour.text) or TO_A_MODEL.search(neighbour.text) or neighbour.text in texts:
            continue
        if len(neighbour.text) <= remaining:
            neighbours.append(neighbour)
            texts.add(neighbour.text)
            remaining -= len(neighbour.text)
    return neighbours


def complements(
    best: CandidateSentence, neighbours: Sequence[CandidateSentence], readings: Sequence[Reading]
) -> list[CandidateSentence]:
    """Return the neighbours which complete the best sentence.

    They contain further words from the question, or a limit which the question's years reach. After "Everybody has 27
    days.", "Managers have 32." is a complement for a question about managers, and "From the fifth year, there are 30."
    for a question about six years.
    """
    return [
        c
        for c in neighbours
        if (c.is_reached and not best.is_reached)
        or (c.position > best.position and any(_adds_words(c, best, r) for r in readings))
    ]


def _adds_words(candidate: CandidateSentence, best: CandidateSentence, reading: Reading) -> bool:
    terms = {(c.passage, c.position): c.terms for c in reading.everything}
    weights = {term: weight for term, weight in reading.weights.items() if term in reading.followed} or reading.weights
    missing = weights.keys() - terms[best.passage, best.position] - best.under
    added = terms[candidate.passage, candidate.position] & missing
    return weight_of(weights, added) >= RULE.least_of_complement * sum(weights.values())


def _adjacent(best: CandidateSentence, ranked: Sequence[CandidateSentence]) -> list[CandidateSentence]:
    return [
        c
        for c in ranked
        if c.passage == best.passage
        and abs(c.position - best.position) == 1
        and c.kind == best.kind == "sentence"
        and not POINTER.search(c.text)
    ]


def first_step(candidates: Sequence[CandidateSentence], weights: dict[str, float]) -> list[CandidateSentence]:
    """Return the first step in a numbered list below headings with all the question's words, else []."""
    least = RULE.all_in_words * sum(weights.values())
    listed = (c for c in candidates if c.step and c.under and weight_of(weights, c.under | c.title) >= least)
    return list(itertools.islice(listed, 1))


def _best_of_part(part: Part, ranked: Sequence[CandidateSentence], scored: Scored) -> CandidateSentence | None:
    scores = scored.scores
    part_weights = {term: weight for term, weight in scored.reading.weights.items() if term in part.terms}
    total = sum(part_weights.values())
    if not total:
        return None

    def in_words(candidate: CandidateSentence) -> float:
        return (
            weight_of(part_weights, candidate.terms) + RULE.heading_weight * weight_of(part_weights, candidate.heading)
        ) / total

    fitting = [c for c in ranked if in_words(c) > RULE.least_of_part and (scores[c] > 0 or part.meaning.get(c))]
    if not part.meaning:
        return max(fitting, key=lambda c: (weight_of(part_weights, c.terms - c.title), scores[c]), default=None)
    return max(fitting, key=lambda c: (in_words(c) * c.value + part.meaning.get(c, 0.0), scores[c]), default=None)


def _crowds(candidate: CandidateSentence, other: CandidateSentence, scores: dict[CandidateSentence, float]) -> bool:
    """Whether to leave out a table row or column because `other`, a row or column from the same passage, is quoted.

    Both may match the question only through the same column headings.
    """
    tabular = ("row", "column")
    if candidate.kind not in tabular or other.kind not in tabular or candidate.passage != other.passage:
        return False
    return candidate.kind != other.kind or scores[candidate] < RULE.least_of_best_row * scores[other]


class OwnPlace(NamedTuple):
    """The best sentence in the documents for the user's country or site, and different rules in other documents."""

    first: CandidateSentence
    other_sentences: list[CandidateSentence]
    #: The positions of all passages for the place.
    passages: frozenset[int]


def of_own_place(ranked: Sequence[CandidateSentence], documents: Collection[UUID], scored: Scored) -> OwnPlace | None:
    """Find a sentence as good as the best sentence, in the documents for the user's country or site.

    Returns `None` if no sentence is found, or if no other document has a different rule.
    """
    citations = scored.passages.citations
    passages = frozenset(place for place, citation in enumerate(citations) if citation.document_id in documents)
    best = ranked[0]
    subject = scored.reading.subject
    matches = [best]
    if best.passage not in passages:
        fitting = [
            c
            for c in ranked
            if c.passage in passages
            and c.is_of_type >= best.is_of_type
            and bool(c.figures) >= bool(best.figures)
            and (subject <= terms_near(c) or not subject <= terms_near(best))
        ]
        matches = _as_near(fitting[: RULE.most_of_own_place], best, scored)
        if matches and scored.passages.language_of(matches[0]) != scored.passages.language:
            matches = _standing_out(matches, [c for c in ranked if c.passage in passages], scored)
    if not matches:
        return None
    other_sentences = [c for c in ranked if c.passage not in passages]
    other_sentences = elsewhere(matches[:1], other_sentences, scored, anchor=best)
    return OwnPlace(matches[0], other_sentences, passages) if other_sentences else None


def _standing_out(
    matches: list[CandidateSentence], ranked: Sequence[CandidateSentence], scored: Scored
) -> list[CandidateSentence]:
    """Return the best sentence in `matches`, which are not in the question's language.

    Without an embedding model, returns [] unless the best sentence scores clearly higher.
    """
    scores = scored.scores
    if scored.passages.similarities is not None:
        likeness = scored.passages.similarities([scored.reading.question], [c.compared for c in matches])[0]
        return [max(zip(matches, likeness, strict=True), key=lambda pair: pair[1])[0]]
    next_best = max((scores[c] for c in ranked if c != matches[0]), default=0.0)
    return matches[:1] if scores[matches[0]] >= RULE.stands_out * next_best else []


def _as_near(
    further: Sequence[CandidateSentence], anchor: CandidateSentence, scored: Scored
) -> list[CandidateSentence]:
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
    """Find the same rule with different numbers in other branches' documents; return a sentence for each document.

    For "Leave in Utrecht", this finds "Leave in Leeds". A different branch's document has a similar title, or a
    language or folder different from the first quotation's. `anchor`, the best sentence overall, is set if the first
    quotation is for the user's country or site. All documents are then considered, also for rules without numbers.
    """
    first, is_own_place = chosen[0], anchor is not None
    if not is_own_place and not (first.is_of_type and first.figures):
        return []
    reading = scored.reading
    languages = scored.passages.languages
    quoted_amounts = _amounts(first.text, languages[first.passage])
    subject = reading.subject or reading.question_terms
    question_ideas = ideas_in(reading.question, scored.passages.language)
    by_document: dict[UUID, CandidateSentence] = {}
    for candidate in ranked:
        stated = _amounts(candidate.text, languages[candidate.passage])
        is_sibling = bool(candidate.title & first.title) and bool(candidate.title - first.title)
        has_other_folder = candidate.folder != first.folder
        if (
            (is_own_place or is_sibling or has_other_folder or languages[candidate.passage] != languages[first.passage])
            and not any(title and title <= reading.question_terms for title in (first.title, candidate.title))
            and candidate.is_of_type >= first.is_of_type
            and bool(candidate.figures) == bool(first.figures)
            and (
                not (stated <= quoted_amounts or quoted_amounts <= stated)
                if first.figures
                else not say_the_same(candidate, first)
            )
            and subject <= terms_near(candidate)
            and ideas_in(candidate.headed, languages[candidate.passage]) <= question_ideas
        ):
            by_document.setdefault(scored.passages.document_of(candidate), candidate)
    for quoted in chosen:
        by_document.pop(scored.passages.document_of(quoted), None)
    return _as_near(list(by_document.values()), anchor or first, scored)


def _amounts(text: str, language: str) -> frozenset[str]:
    amounts = figures(text, language)
    return amounts - {"1"} or amounts
