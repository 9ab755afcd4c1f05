"""Score candidate sentences by the question's words, passage, headings, meaning and conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rag.answering.answer_types import AnswerType
from rag.answering.carried_over import Carried
from rag.answering.extractive.in_words import terms_near, value_of, weight_of
from rag.answering.extractive.likeness import ComparedPart, Similarities
from rag.answering.extractive.reading import Passages, Reading
from rag.answering.extractive.rule import RULE
from rag.answering.extractive.words import parts_of, translatable_terms, without_units
from rag.answering.quotations import CandidateSentence
from rag.retrieval.bm25.index import tokenize
from rag.types import Citation


@dataclass(frozen=True)
class Part:
    """A compound question's part: the terms, and each sentence's points for similar meaning."""

    terms: frozenset[str]
    meaning: dict[CandidateSentence, float]


class Scored(NamedTuple):
    """The candidate sentences for a question, with scores."""

    passages: Passages
    reading: Reading
    #: Each sentence's share of the question's words, in the better wording; and each sentence's points by meaning,
    #: empty if not compared.
    in_words: dict[CandidateSentence, float]
    meaning: dict[CandidateSentence, float]
    scores: dict[CandidateSentence, float]
    #: The parts of a compound question.
    parts: Sequence[Part]
    #: How many of the question's subjects each passage has.
    subject_counts: Sequence[int]
    #: The terms of names replaced by the follow-up.
    replaced: frozenset[str]

    @property
    def best(self) -> float:
        """The highest score: points for words plus points for meaning."""
        return max(self.in_words[c] + self.meaning.get(c, 0.0) for c in self.reading.candidates)

    @property
    def is_sure(self) -> bool:
        """Whether the best match in words or meaning is good enough to trust the order of the sentences."""
        return bool(self.meaning) or self.best >= RULE.sure_in_words


def score(
    readings: Sequence[Reading], reading: Reading, passages: Passages, kind: AnswerType | None, carried: Carried
) -> Scored:
    """Score the candidates in `reading`.

    `readings` holds the passages compared with the question, and with the question in synonyms. For each candidate, the
    better match counts. `kind` is the requested type of fact.
    """
    question, language, citations = reading.question, passages.language, passages.citations
    candidates, everything, weights = reading.candidates, reading.everything, reading.weights
    in_words = {c: max(reading.in_words.get(c, 0.0) for reading in readings) for c in candidates}
    parts = parts_of(question, language)
    near = by_part(candidates, citations, passages.parts_by_number)
    translatable = [translatable_terms(question, language, text_language) for text_language in passages.languages]
    words = [_passage_terms(everything, place) for place in range(len(citations))]
    subject_counts = count_subjects(words, reading.subjects, translatable)
    about = subject_values(words, subject_counts, reading.question_terms)
    below = first_below(everything, without_units(weights, question, language), translatable)
    likely = {c: about[c.passage] * (in_words[c] + near.get(c, 0.0) + below.get(c, 0.0)) for c in candidates}
    # Comparing takes about 20 ms per sentence and is skipped if a sentence has all words.
    is_compared = bool(parts) or all(
        share < RULE.all_in_words * max(1.0, value_of(candidate)) for candidate, share in in_words.items()
    )
    meanings = by_meaning([question, *parts], candidates, likely, passages.similarities) if is_compared else []
    meaning = meanings[0] if meanings else {}
    if kind is None and below:
        # If a section is about the question, a row in an overview only names the subject.
        likely = {
            c: v * (RULE.overview_value if c.kind == "row" and c not in below else 1.0) for c, v in likely.items()
        }
    scores = {c: likely[c] + about[c.passage] * meaning.get(c, 0.0) for c in candidates}
    if kind is None:
        scores.update({c: RULE.complete_value * scores[c] for c in candidates if says_the_rest(c, weights)})
    names, replaced = (frozenset(tokenize(words, language)) for words in (carried.names, carried.replaced))
    followed = {term: weight for term, weight in weights.items() if term in reading.followed}
    return Scored(
        passages=passages,
        reading=reading,
        in_words=in_words,
        meaning=meaning,
        scores=focused(scores, followed, names, replaced),
        parts=[
            Part(frozenset(tokenize(part, language)), meanings[place] if meanings else {})
            for place, part in enumerate(parts, start=1)
        ],
        subject_counts=subject_counts,
        replaced=replaced,
    )


def says_the_rest(candidate: CandidateSentence, weights: dict[str, float]) -> bool:
    """Whether a sentence or list item contains all the question's words which are not in the headings above."""
    rest = weights.keys() - candidate.heading
    return candidate.kind in ("sentence", "item") and len(weights) > 1 and bool(rest) and rest <= candidate.terms


def by_meaning(
    questions: Sequence[str],
    candidates: Sequence[CandidateSentence],
    likely: dict[CandidateSentence, float],
    similarities: Similarities | None,
) -> list[dict[CandidateSentence, float]]:
    """Return each sentence's points for meaning, for each question.

    The least similar sentence gets 0 points, the most similar `meaning_weight`. Only the sentences with the highest
    values in `likely`, at most `most_compared`, are compared. The list is empty without an embedding model.
    """
    if similarities is None:
        return []
    ordered = sorted(candidates, key=lambda c: (-likely[c] - RULE.next_passage**c.passage, c.passage, c.position))
    compared = ordered[: RULE.most_compared + RULE.more_compared * (len(questions) - 1)]
    points = []
    for values in similarities(questions, [c.compared for c in compared]):
        least, most = min(values), max(values)
        spread = (most - least) or 1.0
        points.append(
            {
                c: RULE.meaning_weight * (float(value) - least) / spread * c.value * RULE.next_passage**c.passage
                for c, value in zip(compared, values, strict=True)
            }
        )
    return points


def by_part(
    candidates: Sequence[CandidateSentence],
    citations: Sequence[Citation],
    parts_by_number: Mapping[int, Sequence[ComparedPart]],
) -> dict[CandidateSentence, float]:
    """Return 0 to `part_weight` points for each sentence, by how similar the surrounding part is to the question."""
    cosines = [part.cosine for parts in parts_by_number.values() for part in parts]
    if not cosines or max(cosines) <= min(cosines):
        return {}
    words = {number: [(frozenset(part.text.split()), part.cosine) for part in parts]
             for number, parts in parts_by_number.items()}  # fmt: skip
    points = {}
    for candidate in candidates:
        parts = words.get(citations[candidate.passage].number, [])
        sentence_words = frozenset(candidate.text.split())
        cosine = max(parts, key=lambda part: len(part[0] & sentence_words), default=(sentence_words, min(cosines)))[1]
        nearness = (cosine - min(cosines)) / (max(cosines) - min(cosines))
        points[candidate] = RULE.part_weight * nearness * candidate.value
    return points


def first_below(
    everything: Sequence[CandidateSentence], weights: dict[str, float], translatable: Sequence[frozenset[str] | None]
) -> dict[CandidateSentence, float]:
    """Return points for the first sentences below a heading with all the question's words, for example "Payday".

    Only the first passage with this kind of heading counts, because passages are sorted by relevance.
    """
    points: dict[CandidateSentence, float] = {}
    totals = [sum(weights.values()) if terms is None else weight_of(weights, terms) for terms in translatable]
    for candidate in everything:
        total = totals[candidate.passage]
        if points and candidate.passage != next(iter(points)).passage:
            break
        heading_terms = candidate.under - candidate.title
        if (
            candidate.kind == "heading"
            or not heading_terms
            or not total
            or weight_of(weights, heading_terms) < RULE.all_in_words * total
        ):
            continue
        if len(points) < len(RULE.below_heading):
            points[candidate] = RULE.below_heading[len(points)] * candidate.value
    return points


def _passage_terms(everything: Sequence[CandidateSentence], place: int) -> frozenset[str]:
    return frozenset[str]().union(*(c.terms | c.heading for c in everything if c.passage == place))


def count_subjects(
    words: Sequence[frozenset[str]], subjects: Sequence[frozenset[str]], translatable: Sequence[frozenset[str] | None]
) -> list[int]:
    """Return for each passage how many subjects from the question occur in the passage or the headings.

    `words` holds each passage's terms. `translatable` holds the question's terms which have synonyms in the passage's
    language, or `None` for a passage in the question's language.
    """
    counts = []
    for passage_terms, terms in zip(words, translatable, strict=True):
        # In "월급은 언제 들어오나요", the word for pay can be translated and the verb cannot.
        named = subjects if terms is None else [subject & terms or subject for subject in subjects]
        counts.append(sum(subject <= passage_terms for subject in named))
    return counts


def subject_values(
    words: Sequence[frozenset[str]], counts: Sequence[int], question_terms: frozenset[str]
) -> list[float]:
    """Return a score factor from 0 to 1 for each passage.

    The factor is 0 for a passage without a word from the question, and below 1 if a different passage has more subjects
    from the question.
    """
    most = max(counts, default=0)
    if not most:
        return [1.0] * len(counts)
    return [
        RULE.other_subject_value + (1 - RULE.other_subject_value) * number / most
        if passage_terms & question_terms
        else 0.0
        for passage_terms, number in zip(words, counts, strict=True)
    ]


def focused(
    scores: dict[CandidateSentence, float],
    focus: dict[str, float],
    names: frozenset[str],
    replaced: frozenset[str],
) -> dict[CandidateSentence, float]:
    """Raise the scores for sentences with the follow-up's words.

    Scores are lowered for sentences with a replaced name, or without a name which other sentences have.
    """
    total = sum(focus.values())
    is_named = any(names <= terms_near(c) for c in scores) if names else False
    return {
        c: score
        * (1 + RULE.focus_value * weight_of(focus, terms_near(c)) / total if total else 1.0)
        * (RULE.other_name_value if (is_named and not names <= terms_near(c)) or replaced & c.terms else 1.0)
        for c, score in scores.items()
    }
