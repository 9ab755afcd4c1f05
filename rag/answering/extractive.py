"""The answer without a language model: the sentences of the passages that say most of what was asked, word for word.

A sentence is worth the rarity (idf) of the question's terms in it, those of the headings above it counting half, its
likeness in meaning where the caller can tell that, less for length and for a passage further down the list. Whether
the passages answer at all is decided before: what is best in them is quoted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from typing import NamedTuple
from uuid import UUID

from rag.answering.sentences import POINTS_BACK, Kind, ends, units_of
from rag.ingestion.chunking.spans import PATH_SEPARATOR
from rag.ingestion.meaning import parts_of
from rag.retrieval.bm25.index import tokenize
from rag.retrieval.bm25.synonyms import reworded
from rag.retrieval.language import detect_language
from rag.retrieval.query_understanding import split_question
from rag.types import Citation, ContextResponse

#: How alike in meaning each question is to each sentence, by cosine or any other measure that grows with it: a list of
#: the sentences' values for each question.
Similarities = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]

MAXIMUM_QUOTES = 4
MAXIMUM_CHARACTERS = 900
LONGEST_SENTENCE = 420
#: Items quoted of a list.
LONGEST_LIST = 8
#: A further sentence has to be at least so good, compared with the best.
LEAST_OF_BEST = 0.5
LEAST_OF_BEST_ROW = 0.85
#: And to hold so much of the question in its own words, compared with the best: under a heading that names the subject
#: every sentence would be about it.
LEAST_OWN = 0.5
#: The sentence for a part of the question holds so much of that part's words.
LEAST_OF_PART = 0.4
HEADING_WEIGHT = 0.5
#: Two sentences that share so many of their terms say the same.
SAME = 0.7
#: A text so long at the beginning of another is the same one, cut.
LEAST_CUT = 40
#: A sentence cut by the edge of its passage reads badly.
FRAGMENT_VALUE = 0.5
#: A sentence of another document than the one the question names, such as the plan next to it.
OTHER_DOCUMENT_VALUE = 0.5
#: What is asked of rules and plans is mostly an amount, a date or a time limit.
FIGURE_VALUE = 1.25
FREQUENCY_VALUE = 1.6
HEADING_CHARACTERS = 60
#: Each passage further down the list counts so much of the one before.
NEXT_PASSAGE = 0.92
#: Sentences whose meaning is compared: each takes a model some ten milliseconds.
MOST_COMPARED = 16
#: Further ones for each part of a question.
MORE_COMPARED = 6
#: The most that meaning adds, where all words of the question make 1.
MEANING_WEIGHT = 0.8
#: The most that the part of the passage adds in which a sentence is: how near that is in meaning is known.
PART_WEIGHT = 0.8
#: Below this share of the question in words, they say nothing on which sentence answers.
LEAST_IN_WORDS = 0.12
#: From this share on they say it alone, and meaning is not asked.
ALL_IN_WORDS = 0.9
#: From this share on they do; below it more sentences of the best passage are quoted.
SURE_IN_WORDS, LEAST_OF_UNSURE = 0.5, 0.2
#: Sentences quoted of the best passage then, from its first on.
FIRST_SENTENCES = 3

FIGURE = re.compile(r"\d[\d.,]*")
#: Asks how often, and what answers it: hardly a word of the one is in the other.
HOW_OFTEN = re.compile(
    r"\b(?:how (?:often|frequently|many times)|hoe vaak|wie (?:oft|häufig)|combien de fois|à quelle fréquence"
    r"|(?:con|cada) (?:qué frecuencia|cuánto)|cuántas veces|(?:con che|ogni) (?:frequenza|quanto)|quante volte"
    r"|com que frequência|quantas vezes|jak często|ile razy|ne sıklıkta|kaç kez)\b"
    r"|얼마나 자주|몇 ?번|何回|どのくらいの頻度|多久|几次|كم مرة",
    re.IGNORECASE,
)
SO_OFTEN = re.compile(
    r"\b(?:annual(?:ly)?|yearly|monthly|weekly|daily|quarterly|biweekly|every|once|twice|(?:per|a|each) (?:year|month"
    r"|week|quarter|day)|times|jaarlijkse?|maandelijkse?|wekelijkse?|dagelijkse?|elke?|iedere?|per (?:jaar"
    r"|maand|week|dag)"
    r"|eenmaal|keer|jährlich\w*|monatlich\w*|wöchentlich\w*|täglich\w*|jede[nsmr]?|einmal|zweimal|mal|pro (?:jahr|monat"
    r"|woche|tag)|chaque|par (?:an|mois|semaine|jour)|fois|annuel\w*|mensuel\w*|cada|al (?:año|mes|día)|veces|anual\w*"
    r"|mensual\w*|ogni|all'anno|al mese|volte|annual\w*|mensil\w*|por (?:ano|mês|semana|dia)|vezes|co(?:rocznie)?|raz"
    r"|rocznie|miesięcznie|her (?:yıl|ay|hafta|gün)|yılda|ayda|kez)\b"
    r"|매년|매월|매주|매일|연 ?\d|월 ?\d|주 ?\d|마다|毎[年月週日]|ごと|年\d|每[年月周天日]|سنويا|شهريا|كل (?:سنة|شهر)",
    re.IGNORECASE,
)
#: Words between the parts of a question, by language: "I" is "and" in Polish.
_AND = {
    "en": "and|or", "nl": "en|of", "de": "und|oder", "fr": "et|ou", "es": "y|e|o", "it": "e|ed|o", "pt": "e|ou",
    "pl": "i|oraz|lub", "tr": "ve|veya", "ar": "و|أو",
}  # fmt: skip
#: Between the parts of a question: "Overtime on Sunday + time off?", "pay; notice", "임금과 휴가".
_BETWEEN = r"[?？]\s*(?=\S)|\s[+&/]\s|;\s|；|及び|및|그리고|와\s|과\s|、|と(?=\S{2})|和|以及|\sو(?=\S)"
#: What limits the sentence before: at the beginning of a sentence, or anywhere in it.
EXCEPTION = re.compile(
    r"^(?:however|but|except|exceptions?|though|this does not|maar|behalve|dit geldt niet|uitzondering|jedoch"
    r"|allerdings|aber|ausgenommen|ausnahmen?|dies gilt nicht|das gilt nicht|sauf|toutefois|cependant|mais|excepto"
    r"|salvo|pero|ma|tranne|mas|porém|exceto|ale|jednak)\b"
    r"|\b(?:unless|except(?:ion)? (?:for|if|when|where|that|to)|does not apply|only if|tenzij|echter|uitgezonderd"
    r"|es sei denn|jedoch|mit ausnahme|außer wenn|à moins|sauf si|sin embargo|a menos que|salvo que|tuttavia"
    r"|a meno che|salvo che|no entanto|a não ser|chyba że|z wyjątkiem)\b"
    r"|^(?:다만|단,|단\s|그러나|하지만|ただし|但し|ただ、|但是?|除外|然而|إلا|باستثناء|غير أن|ومع ذلك|لكن)"
    r"|제외하고|除非|を除き|ما لم",
    re.IGNORECASE,
)


class MeantPart(NamedTuple):
    """A part of a passage with its cosine by meaning to the question."""

    text: str
    cosine: float


@dataclass(frozen=True)
class Quotes:
    """What the extractive answer says: whole text with `[n]` of the context, and the numbers it names."""

    text: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class _Candidate:
    text: str
    kind: Kind
    terms: frozenset[str]
    #: Place of its passage in the list, and its own within the passage.
    passage: int
    position: int
    #: The terms of its document's title, of its section and of the heading above it, and those of the title alone.
    heading: frozenset[str]
    title: frozenset[str]
    #: The numbers in it, those of the question left out.
    figures: frozenset[str]
    #: Less than 1 for a fragment.
    value: float


@dataclass(frozen=True)
class _Part:
    """One of several questions: its terms, and what meaning adds to each sentence for it."""

    terms: frozenset[str]
    meaning: dict[_Candidate, float]


def best_quotes(
    question: str,
    citations: Sequence[Citation],
    *,
    language: str = "",
    similarities: Similarities | None = None,
    parts_by_number: Mapping[int, Sequence[MeantPart]] | None = None,
    days: Mapping[UUID, str] | None = None,
) -> Quotes | None:
    """Quote what the passages say about the question; None when there is no sentence in them.

    `language` is the question's. `citations` are the passages of the context, best first; their numbers are cited.
    `similarities` tells how near each of some sentences is in meaning; without it words and places decide.
    `parts_by_number` are the parts of passages with their nearness, as `meant_parts` gives them. `days` are the
    documents' dates (ISO 8601): of two that disagree, the newer comes first.
    """
    language = language or detect_language(question)
    if not re.search(r"\w", question):
        return None
    readings = [_read(question, citations, language)]
    other = reworded(question, language)
    if other and not _parts(question, language):
        # "Vacation" is asked for, "annual leave" is written: of a sentence, the wording counts that it has more of.
        readings.append(_read(other, citations, language))
    question, asked, everything, candidates, weights, _ = max(readings, key=lambda reading: reading.most)
    if not candidates:
        return None
    in_words = {c: max(reading.in_words.get(c, 0.0) for reading in readings) for c in candidates}
    parts = _parts(question, language)
    by_part = _by_part(candidates, citations, parts_by_number or {})
    likely = {c: in_words[c] + by_part.get(c, 0.0) for c in candidates}
    # Comparing takes some 20 ms a sentence: where the words say all, they decide.
    is_compared = bool(parts) or max(in_words.values()) < ALL_IN_WORDS
    meanings = _meanings([question, *parts], candidates, likely, similarities) if is_compared else []
    meaning = meanings[0] if meanings else {}
    scores = {c: likely[c] + meaning.get(c, 0.0) for c in candidates}
    best = max(in_words[c] + meaning.get(c, 0.0) for c in candidates)
    if not meaning and best < LEAST_IN_WORDS:
        chosen = _beginning(candidates)
    else:
        if not meaning and best < SURE_IN_WORDS:
            # Few of the question's words are anywhere: the order of the passages says more than a chance word.
            candidates = [c for c in candidates if c.passage == candidates[0].passage]
        ranked = sorted(candidates, key=lambda c: (-scores[c], c.passage, c.position))
        asked_parts = [
            _Part(frozenset(tokenize(part, language)), meanings[place] if meanings else {})
            for place, part in enumerate(parts, start=1)
        ]
        is_sure = bool(meaning) or best >= SURE_IN_WORDS
        chosen = _choose(ranked, scores, weights, asked_parts, meaning, is_sure=is_sure)
    return _written(chosen, scores, everything, citations, asked, days or {})


def meant_parts(context: ContextResponse) -> dict[int, list[MeantPart]]:
    """Return the parts of each passage of a context with their cosines by meaning, by the passage's number.

    They were compared when the passage was found: where in it the answer is costs nothing more.
    """
    meanings = {result.chunk_id: result.part_meanings for result in context.results}
    found = {}
    for citation in context.citations:
        known, parts = meanings.get(citation.chunk_id, ()), parts_of(citation.passage)
        # A part that the model could not read has no cosine, and the others cannot be told apart.
        if known and len(known) == len(parts):
            found[citation.number] = list(map(MeantPart, parts, known))
    return found


def _by_part(
    candidates: Sequence[_Candidate], citations: Sequence[Citation], parts_by_number: Mapping[int, Sequence[MeantPart]]
) -> dict[_Candidate, float]:
    """Return what meaning adds to each sentence by the part of the passage it is in: nothing for the least alike of
    all parts,
    `PART_WEIGHT` for the most.
    """
    known = [part.cosine for parts in parts_by_number.values() for part in parts]
    if not known or max(known) <= min(known):
        return {}
    words = {number: [(frozenset(part.text.split()), part.cosine) for part in parts]
             for number, parts in parts_by_number.items()}  # fmt: skip
    found = {}
    for candidate in candidates:
        parts = words.get(citations[candidate.passage].number, [])
        said = frozenset(candidate.text.split())
        cosine = max(parts, key=lambda part: len(part[0] & said), default=(said, min(known)))[1]
        nearness = (cosine - min(known)) / (max(known) - min(known))
        found[candidate] = PART_WEIGHT * nearness * candidate.value
    return found


class _Reading(NamedTuple):
    """The passages' sentences as one wording of the question sees them."""

    question: str
    asked: frozenset[str]
    everything: list[_Candidate]
    candidates: list[_Candidate]
    weights: dict[str, float]
    in_words: dict[_Candidate, float]

    @property
    def most(self) -> float:
        """How much of the question in words the best sentence holds."""
        return max(self.in_words.values(), default=0.0)


def _read(question: str, citations: Sequence[Citation], language: str) -> _Reading:
    asked = frozenset(tokenize(question, language))
    everything = [
        c for place, citation in enumerate(citations) for c in _candidates(citation, place, language, question, asked)
    ]
    candidates = _quotable(everything)
    weights = _rarity(asked, everything)
    in_words = _scores(candidates, everything, weights, len(citations)) if candidates else {}
    return _Reading(question, asked, everything, candidates, weights, in_words)


def _parts(question: str, language: str) -> list[str]:
    """Return the parts of a question of several; none where it has only one."""
    parts = split_question(question, language) or _between(language).split(question)
    said = [part.strip() for part in parts if part and tokenize(part, language)]
    return said if len(said) > 1 else []


@cache
def _between(language: str) -> re.Pattern[str]:
    words = _AND.get(language)
    return re.compile(_BETWEEN + (rf"|,?\s(?:{words})\s" if words else ""), re.IGNORECASE)


def _candidates(
    citation: Citation, place: int, language: str, question: str, asked: frozenset[str]
) -> list[_Candidate]:
    title = frozenset(tokenize(citation.title, language))
    section = title.union(tokenize(citation.section, language))
    known = _figures(question)
    asks_how_often = bool(HOW_OFTEN.search(question))
    units = units_of(citation.passage, frozenset([citation.title, *citation.section.split(PATH_SEPARATOR)]))
    found: list[_Candidate] = []
    above: frozenset[str] = frozenset()
    for position, unit in enumerate(units):
        terms = frozenset(tokenize(unit.subject or unit.text, language))
        # The heads of columns stand above each row, the names of rows beside each column.
        heads = frozenset(tokenize(unit.text, language)) if unit.subject else frozenset()
        if unit.kind == "heading":
            above = terms
        if unit.kind == "column" and not asked & (frozenset(tokenize(unit.subject, language)) - title):
            continue
        value = _value(unit.text, unit.kind, is_first=position == 0, is_last=position == len(units) - 1)
        if asks_how_often and SO_OFTEN.search(unit.text):
            value *= FREQUENCY_VALUE
        found.append(
            _Candidate(
                unit.text,
                unit.kind,
                terms,
                place,
                position,
                section | above | heads,
                title,
                _figures(unit.text) - known,
                value,
            )
        )
    return found


def _quotable(everything: Sequence[_Candidate]) -> list[_Candidate]:
    """Return what may stand in an answer by itself; a heading only with what is below it."""
    told = [c for c in everything if c.kind != "heading" and not c.text.endswith(("?", "？"))]
    # A sentence or row that the edge of its passage cut is whole in the next.
    texts = sorted({c.text for c in told})
    cut = {text for text, following in pairwise(texts) if len(text) >= LEAST_CUT and following.startswith(text)}
    told = [c for c in told if c.text not in cut]
    return told or [c for c in everything if c.kind != "heading"]


def _figures(text: str) -> frozenset[str]:
    return frozenset(number.rstrip(".,") for number in FIGURE.findall(text))


def _value(text: str, kind: Kind, *, is_first: bool, is_last: bool) -> float:
    if kind in ("row", "column"):
        return 1.0
    is_cut = is_last and not ends(text) and len(text) > HEADING_CHARACTERS
    return FRAGMENT_VALUE if is_cut or (is_first and text[:1].islower()) else 1.0


def _rarity(asked: frozenset[str], candidates: Sequence[_Candidate]) -> dict[str, float]:
    """Return what each term of the question counts: 1 … 2, by its idf (Lucene's) over the sentences.

    Half of it is the same for all: the passages were found by the subject of the question, so that in them its words
    are not rare, and a chance word of the question is.
    """
    counts = Counter(term for candidate in candidates for term in candidate.terms & asked)
    total = len(candidates)
    rarest = math.log(1 + (total + 0.5) / 0.5)
    return {term: 1 + math.log(1 + (total - counts[term] + 0.5) / (counts[term] + 0.5)) / rarest for term in asked}


def _weight(weights: dict[str, float], terms: frozenset[str]) -> float:
    return sum(weight for term, weight in weights.items() if term in terms)


def _scores(
    candidates: Sequence[_Candidate], everything: Sequence[_Candidate], weights: dict[str, float], passages: int
) -> dict[_Candidate, float]:
    """Return what each sentence holds of the question in words, 1 for all of it."""
    total = sum(weights.values()) or 1.0
    held = [
        _weight(weights, frozenset().union(*(c.terms | c.heading for c in everything if c.passage == place)))
        for place in range(passages)
    ]
    most = max(held) or 1.0
    # The same words are worth more in a passage that is about the rest of the question too.
    named = max((c.title & weights.keys() for c in candidates), key=lambda terms: _weight(weights, terms))
    return {c: _score(c, weights, named) / total * held[c.passage] / most for c in candidates}


def _score(candidate: _Candidate, weights: dict[str, float], named: frozenset[str]) -> float:
    """`named` are the question's terms in the title of the document that has most of them."""
    # The subject that the document is named for says no more in a sentence of it than above it.
    own = _weight(weights, _own(candidate, weights))
    if not own or len(candidate.text) > 2 * LONGEST_SENTENCE:
        return 0.0
    above = _weight(weights, candidate.heading - _own(candidate, weights))
    # Below a few words nothing is said; far above, little of it is about the question.
    length = len(candidate.text.split()) if candidate.kind in ("row", "column") else len(candidate.terms)
    brevity = min(1.0, length / 5) / (1 + max(0, length - 30) / 40)
    value = candidate.value * (FIGURE_VALUE if candidate.figures else 1.0)
    if named - candidate.title - candidate.terms:
        value *= OTHER_DOCUMENT_VALUE
    return (own + HEADING_WEIGHT * above) * brevity * value * (NEXT_PASSAGE**candidate.passage)


def _meanings(
    questions: Sequence[str],
    candidates: Sequence[_Candidate],
    likely: dict[_Candidate, float],
    similarities: Similarities | None,
) -> list[dict[_Candidate, float]]:
    """Return what meaning adds for each question: nothing for the least alike of the sentences compared,
    `MEANING_WEIGHT` for
    the most; an empty list where meaning cannot be told.
    """
    if similarities is None:
        return []
    ordered = sorted(candidates, key=lambda c: (-likely[c] - NEXT_PASSAGE**c.passage, c.passage, c.position))
    compared = ordered[: MOST_COMPARED + MORE_COMPARED * (len(questions) - 1)]
    found = []
    for values in similarities(questions, [c.text for c in compared]):
        least, most = min(values), max(values)
        spread = (most - least) or 1.0
        found.append(
            {
                c: MEANING_WEIGHT * (float(value) - least) / spread * c.value * NEXT_PASSAGE**c.passage
                for c, value in zip(compared, values, strict=True)
            }
        )
    return found


def _beginning(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the first sentences of the best passage: no word of the question tells one from the other."""
    best = [c for c in candidates if c.passage == candidates[0].passage and c.kind != "column"]
    chosen: list[_Candidate] = []
    for candidate in [c for c in best if c.value >= 1.0] or best:
        room = LONGEST_SENTENCE - sum(len(c.text) for c in chosen)
        if len(chosen) == FIRST_SENTENCES or (chosen and len(candidate.text) > room):
            break
        chosen.append(candidate)
    return chosen


def _own(candidate: _Candidate, weights: dict[str, float]) -> frozenset[str]:
    """Return the terms that a sentence adds to its document's title; all of its terms when the question has no
    others.
    """
    rest = candidate.terms - candidate.title
    return rest if weights.keys() - candidate.title else candidate.terms


def _choose(
    ranked: Sequence[_Candidate],
    scores: dict[_Candidate, float],
    weights: dict[str, float],
    parts: Sequence[_Part],
    meaning: dict[_Candidate, float],
    *,
    is_sure: bool,
) -> list[_Candidate]:
    """Return the best sentence, the best for each part of the question, and others nearly as good."""
    chosen = [ranked[0]]
    for part in parts:
        best = _best_of_part(part, ranked, scores, weights)
        if best is not None and not any(_say_the_same(best, other) for other in chosen):
            chosen.append(best)
    best_own = _weight(weights, _own(ranked[0], weights))
    characters = sum(len(c.text) for c in chosen)
    for candidate in ranked[1:]:
        least = LEAST_OF_BEST if is_sure else LEAST_OF_UNSURE
        if len(chosen) >= MAXIMUM_QUOTES or scores[candidate] < max(least * scores[ranked[0]], 1e-9):
            break
        is_near = meaning.get(candidate, 0.0) > 0.8 * MEANING_WEIGHT
        if _weight(weights, _own(candidate, weights)) < LEAST_OWN * best_own and is_sure and not is_near:
            continue
        if any(_say_the_same(candidate, other) or _crowds(candidate, other, scores) for other in chosen):
            continue
        if characters + len(candidate.text) > MAXIMUM_CHARACTERS:
            continue
        chosen.append(candidate)
        characters += len(candidate.text)
    return chosen


def _best_of_part(
    part: _Part, ranked: Sequence[_Candidate], scores: dict[_Candidate, float], weights: dict[str, float]
) -> _Candidate | None:
    """Return the sentence that answers a part of the question; None where none has enough of its words or its
    meaning.
    """
    own = {term: weights[term] for term in part.terms & weights.keys()}
    total = sum(own.values())
    if not total:
        return None

    def in_words(candidate: _Candidate) -> float:
        return (_weight(own, candidate.terms) + HEADING_WEIGHT * _weight(own, candidate.heading)) / total

    fitting = [c for c in ranked if in_words(c) > LEAST_OF_PART and (scores[c] > 0 or part.meaning.get(c))]
    if not part.meaning:
        return max(fitting, key=lambda c: (_weight(own, c.terms - c.title), scores[c]), default=None)
    return max(fitting, key=lambda c: (in_words(c) * c.value + part.meaning.get(c, 0.0), scores[c]), default=None)


def _crowds(candidate: _Candidate, other: _Candidate, scores: dict[_Candidate, float]) -> bool:
    """Whether a row or a column is no answer beside another of its table: all of them hold the words of the heads."""
    tabular = ("row", "column")
    if candidate.kind not in tabular or other.kind not in tabular or candidate.passage != other.passage:
        return False
    return candidate.kind != other.kind or scores[candidate] < LEAST_OF_BEST_ROW * scores[other]


def _say_the_same(one: _Candidate, other: _Candidate) -> bool:
    if one == other:
        return True
    if one.figures - other.figures:
        return False
    return len(one.terms & other.terms) > SAME * max(1, min(len(one.terms), len(other.terms)))


def _written(
    chosen: Sequence[_Candidate],
    scores: Mapping[_Candidate, float],
    everything: Sequence[_Candidate],
    citations: Sequence[Citation],
    asked: frozenset[str],
    days: Mapping[UUID, str],
) -> Quotes:
    """Return the quotations: passages in the order of their best sentence, and in each the sentences around the best
    first.

    Of documents that disagree the newer comes first, each with its date.
    """
    by_place = {(c.passage, c.position): c for c in everything}
    passages = list(dict.fromkeys(candidate.passage for candidate in chosen))
    is_disagreed = _disagree(chosen, citations)
    if is_disagreed:
        passages.sort(key=lambda place: days.get(citations[place].document_id, ""), reverse=True)
    is_named = len({citations[place].document_id for place in passages}) > 1 or _has_sibling(
        chosen, everything, citations, asked
    )
    lines: list[str] = []
    for passage in passages:
        places = {c.position for c in chosen if c.passage == passage}
        for place in sorted(places):
            # "… as follows:" says nothing without the lines after it.
            if by_place[passage, place].text.endswith(":"):
                places.update(_items_after(by_place, passage, place))
            places.update(_opening_of(by_place, passage, place))
            places.update(_exceptions_around(by_place, passage, place))
        runs: list[list[str]] = []
        best_of_runs: list[float] = []
        previous = -2
        for place in sorted(places):
            this = by_place[passage, place]
            # An item further down its list stays with the line that opens it.
            between = (by_place.get((passage, skipped)) for skipped in range(previous + 1, place))
            is_of_list = (
                this.kind == "item"
                and bool(runs)
                and any(text.endswith(":") for text in runs[-1])
                and all(skipped is not None and skipped.kind == "item" for skipped in between)
            )
            if is_of_list and place != previous + 1:
                runs[-1].append("…")
            # A row is a line by itself.
            elif place != previous + 1 or this.kind == "row":
                runs.append([])
                best_of_runs.append(0.0)
            runs[-1].append(this.text)
            best_of_runs[-1] = max(best_of_runs[-1], scores.get(this, 0.0) if this in chosen else 0.0)
            previous = place
        ordered = sorted(range(len(runs)), key=lambda number: -best_of_runs[number])
        number = citations[passage].number
        day = days.get(citations[passage].document_id, "") if is_disagreed else ""
        source = f"{_source(citations[passage], day)}: " if is_named else ""
        lines.extend(f"{source}“{_joined(runs[place])}” [{number}]" for place in ordered)
    return Quotes("\n\n".join(lines), tuple(citations[place].number for place in passages))


def _disagree(chosen: Sequence[_Candidate], citations: Sequence[Citation]) -> bool:
    """Whether sentences of two documents say the same with other figures."""
    return any(
        citations[one.passage].document_id != citations[other.passage].document_id
        and one.figures != other.figures
        and bool(one.figures)
        and bool(other.figures)
        and _share_words(one, other)
        for one, other in combinations(chosen, 2)
    )


def _share_words(one: _Candidate, other: _Candidate) -> bool:
    words = [frozenset(t for t in c.terms if not any(map(str.isdigit, t))) for c in (one, other)]
    return len(words[0] & words[1]) > SAME * max(1, min(map(len, words)))


def _has_sibling(
    chosen: Sequence[_Candidate],
    everything: Sequence[_Candidate],
    citations: Sequence[Citation],
    asked: frozenset[str],
) -> bool:
    """Whether a document quoted is one of several of a kind, and the question does not say which it means.

    "Leave in Utrecht" beside "Leave in Leeds" is named, although it alone is quoted.
    """
    titles = {citations[c.passage].document_id: c.title for c in everything}
    quoted = {citations[c.passage].document_id for c in chosen}
    return any(
        bool(titles[one] & titles[other])
        and bool(titles[one] - titles[other])
        and not titles[one] - titles[other] <= asked
        for one in quoted
        for other in titles.keys() - quoted
    )


def _source(citation: Citation, day: str) -> str:
    """Return the document, its date and the section by name: another branch or plan has rules of its own."""
    title = f"{citation.title} ({day})" if day else citation.title
    return PATH_SEPARATOR.join(filter(None, (title, citation.section)))


def _exceptions_around(by_place: dict[tuple[int, int], _Candidate], passage: int, place: int) -> list[int]:
    """Return the places of the sentences that limit this one; of the one it limits itself."""
    found: list[int] = []
    following = by_place.get((passage, place + 1))
    while following is not None and following.kind in ("sentence", "item") and EXCEPTION.search(following.text):
        if len(found) == 2 or len(following.text) > LONGEST_SENTENCE:
            break
        found.append(following.position)
        following = by_place.get((passage, following.position + 1))
    before = by_place.get((passage, place - 1))
    this = by_place[passage, place]
    if before is not None and before.kind == "sentence" and this.kind == "sentence":
        opening = EXCEPTION.match(this.text)
        if opening is not None and len(before.text) <= LONGEST_SENTENCE:
            found.append(before.position)
    return found


def _opening_of(by_place: dict[tuple[int, int], _Candidate], passage: int, place: int) -> list[int]:
    """Return the places of what opens the list of an item: alone, "travel expenses" may be covered or not."""
    if by_place[passage, place].kind != "item":
        return []
    first = place - 1
    while (before := by_place.get((passage, first))) is not None and before.kind == "item":
        first -= 1
    opening = by_place.get((passage, first))
    if opening is None or not opening.text.endswith(":") or len(opening.text) > LONGEST_SENTENCE:
        return []
    before = by_place.get((passage, first - 1))
    if before is None or before.kind != "sentence" or not POINTS_BACK.match(opening.text):
        return [first]
    return [first - 1, first]


def _items_after(by_place: dict[tuple[int, int], _Candidate], passage: int, place: int) -> list[int]:
    """Return the places of a list's items after its opening line: as long as they look alike, and up to a length."""
    items: list[int] = []
    room = LONGEST_SENTENCE
    following = by_place.get((passage, place + 1))
    while following is not None and len(items) < LONGEST_LIST and room > 0:
        if items and ends(following.text) != ends(by_place[passage, items[-1]].text):
            break
        items.append(following.position)
        room -= len(following.text)
        following = by_place.get((passage, following.position + 1))
    return items


def _joined(run: Sequence[str]) -> str:
    """Sentences after each other; items of a list, which end in nothing, with a semicolon between them."""
    text = run[0]
    for part in run[1:]:
        text += (" " if ends(text) or text.endswith("…") or part == "…" else "; ") + part
    return text
