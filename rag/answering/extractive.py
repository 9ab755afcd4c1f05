"""The answer without a language model: the sentences of the passages that say most of what was asked, word for word.

A sentence is worth the rarity (idf) of the question's terms in it, those of its heading counting half, less for length
and for a passage further down the list. Whether there is an answer is not decided here.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rag.retrieval.keywords import tokenize
from rag.retrieval.query_analysis import detect_language
from rag.types import Citation

MAXIMUM_QUOTES = 4
MAXIMUM_CHARACTERS = 900
LONGEST_SENTENCE = 420
#: Items quoted of a list.
LONGEST_LIST = 8
#: Sentences quoted of the best passage where none shares a word with the question.
OPENING_SENTENCES = 2
#: A further sentence has to be at least so good, compared with the best.
LEAST_OF_BEST = 0.5
#: And to hold so much of the question in its own words, compared with the best: under a heading that names the subject
#: every sentence would be about it.
LEAST_OWN = 0.5
HEADING_WEIGHT = 0.5
#: Two sentences that share so many of their terms say the same.
SAME = 0.7
#: A heading says little, and a sentence cut by the edge of its passage reads badly.
HEADING_VALUE = 0.4
FRAGMENT_VALUE = 0.5
#: A sentence of another document than the one the question names, such as the plan next to it.
OTHER_DOCUMENT_VALUE = 0.5
#: What is asked of rules and plans is mostly an amount, a date or a time limit.
FIGURE_VALUE = 1.25
HEADING_CHARACTERS = 60

ABBREVIATIONS = re.compile(
    r"(?:e\.g|i\.e|etc|vs|mrs?|ms|dr|no|nr|art|inc|ltd|approx|incl|excl|max|min|sect|fig|par|bijv|bv|d\.w\.z|o\.a|m\.b\.t"
    r"|z\.b|bzw|ca|usw|evtl|p\.a|\w)"
)
ENDING = re.compile(r"[.!?](?=[\"'”’)\]]*\s)|[。！？]")
BULLET = re.compile(r"^\s*(?:[-–—*•●▪■◦‣·○]|\(?\d{1,2}[.)]|\(?[a-z][.)])\s+")
FIGURE = re.compile(r"\d[\d.,]*")
FOOTNOTE = re.compile(r"(?<!\s)\s*+\[\d{1,3}\]")


@dataclass(frozen=True)
class Quotes:
    """What the extractive answer says: whole text with `[n]` of the context, and the numbers it names."""

    text: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class _Candidate:
    text: str
    terms: frozenset[str]
    #: Place of its passage in the list, and its own within the passage.
    passage: int
    position: int
    #: The terms of its document's title and of its section, and those of the title alone.
    heading: frozenset[str]
    title: frozenset[str]
    #: The numbers in it, those of the question left out.
    figures: frozenset[str]
    #: Less than 1 for a heading or a fragment.
    value: float


def best_quotes(question: str, citations: Sequence[Citation], *, language: str = "") -> Quotes | None:
    """Quote what the passages say about the question; None where they hold no sentence.

    `language` is the question's. `citations` are the passages of the context, best first; their numbers are cited.
    """
    language = language or detect_language(question)
    known = _figures(question)
    candidates = [c for place, citation in enumerate(citations) for c in _candidates(citation, place, language, known)]
    asked = frozenset(term for term in tokenize(question, language))
    if not candidates:
        return None
    weights = _rarity(asked, candidates)
    held = [
        _weight(weights, frozenset().union(*(c.terms | c.heading for c in candidates if c.passage == place)))
        for place in range(len(citations))
    ]
    # The same words are worth more in a passage that is about the rest of the question too.
    named = max((c.title & asked for c in candidates), key=lambda terms: _weight(weights, terms))
    scores = {c: _score(c, weights, named) * held[c.passage] / (max(held) or 1.0) for c in candidates}
    ranked = sorted(candidates, key=lambda c: (-scores[c], c.passage, c.position))
    chosen = _choose(ranked, scores, weights)
    # What only means the same shares no word with the question: then the passage begins to speak for itself.
    chosen = chosen or candidates[:OPENING_SENTENCES]
    return _written(chosen, candidates, citations)


def _candidates(citation: Citation, place: int, language: str, known: frozenset[str]) -> list[_Candidate]:
    title = frozenset(tokenize(citation.title, language))
    heading = title.union(tokenize(citation.section, language))
    found = sentences(citation.passage)
    return [
        _Candidate(
            text,
            frozenset(tokenize(text, language)),
            place,
            position,
            heading,
            title,
            _figures(text) - known,
            _value(text, is_first=position == 0, is_last=position == len(found) - 1),
        )
        for position, text in enumerate(found)
    ]


def _figures(text: str) -> frozenset[str]:
    return frozenset(number.rstrip(".,") for number in FIGURE.findall(text))


def _value(text: str, *, is_first: bool, is_last: bool) -> float:
    has_end = _ends(text)
    if (is_first and text[:1].islower()) or (is_last and not has_end and len(text) > HEADING_CHARACTERS):
        return FRAGMENT_VALUE
    if not has_end and len(text) < HEADING_CHARACTERS and not any(map(str.isdigit, text)):
        return HEADING_VALUE
    return 1.0


def _rarity(asked: frozenset[str], candidates: Sequence[_Candidate]) -> dict[str, float]:
    """What each term of the question counts: 1 … 2, by its idf (Lucene's) over the sentences.

    Half of it is the same for all: the passages were found by the subject of the question, so that in them its words
    are not rare, and a chance word of the question is.
    """
    counts = Counter(term for candidate in candidates for term in candidate.terms & asked)
    total = len(candidates)
    rarest = math.log(1 + (total + 0.5) / 0.5)
    return {term: 1 + math.log(1 + (total - counts[term] + 0.5) / (counts[term] + 0.5)) / rarest for term in asked}


def _weight(weights: dict[str, float], terms: frozenset[str]) -> float:
    return sum(weight for term, weight in weights.items() if term in terms)


def _score(candidate: _Candidate, weights: dict[str, float], named: frozenset[str]) -> float:
    """`named` are the question's terms in the title of the document that has most of them."""
    # The subject that the document is named for says no more in a sentence of it than above it.
    own = _weight(weights, _own(candidate, weights))
    if not own or len(candidate.text) > 2 * LONGEST_SENTENCE:
        return 0.0
    above = _weight(weights, candidate.heading - _own(candidate, weights))
    # Below a few words nothing is said; far above, little of it is about the question.
    length = len(candidate.terms)
    brevity = min(1.0, length / 5) / (1 + max(0, length - 30) / 40)
    value = candidate.value * (FIGURE_VALUE if candidate.figures else 1.0)
    if named - candidate.title - candidate.terms:
        value *= OTHER_DOCUMENT_VALUE
    return (own + HEADING_WEIGHT * above) * brevity * value * (0.92**candidate.passage)


def _own(candidate: _Candidate, weights: dict[str, float]) -> frozenset[str]:
    """The terms that a sentence adds to its document's title; all of its terms when the question has no others."""
    rest = candidate.terms - candidate.title
    return rest if weights.keys() - candidate.title else candidate.terms


def _choose(
    ranked: Sequence[_Candidate], scores: dict[_Candidate, float], weights: dict[str, float]
) -> list[_Candidate]:
    chosen: list[_Candidate] = []
    characters = 0
    for candidate in ranked:
        if len(chosen) == MAXIMUM_QUOTES or scores[candidate] <= 0:
            break
        if chosen and scores[candidate] < LEAST_OF_BEST * scores[chosen[0]]:
            break
        if chosen and _weight(weights, _own(candidate, weights)) < LEAST_OWN * _weight(
            weights, _own(chosen[0], weights)
        ):
            continue
        if candidate.text.endswith("?") or any(_say_the_same(candidate, other) for other in chosen):
            continue
        if chosen and characters + len(candidate.text) > MAXIMUM_CHARACTERS:
            continue
        chosen.append(candidate)
        characters += len(candidate.text)
    return chosen


def _say_the_same(one: _Candidate, other: _Candidate) -> bool:
    if one.figures - other.figures:
        return False
    return len(one.terms & other.terms) > SAME * max(1, min(len(one.terms), len(other.terms)))


def _written(chosen: Sequence[_Candidate], candidates: Sequence[_Candidate], citations: Sequence[Citation]) -> Quotes:
    """The quotations: passages in the order of their best sentence, sentences in the order of the passage."""
    by_place = {(c.passage, c.position): c for c in candidates}
    lines: list[str] = []
    for passage in dict.fromkeys(candidate.passage for candidate in chosen):
        places = {c.position for c in chosen if c.passage == passage}
        for place in sorted(places):
            # "… as follows:" says nothing without the lines after it.
            if by_place[passage, place].text.endswith(":"):
                places.update(_items_after(by_place, passage, place))
        runs: list[list[str]] = []
        previous = -2
        for place in sorted(places):
            if place != previous + 1:
                runs.append([])
            runs[-1].append(by_place[passage, place].text)
            previous = place
        number = citations[passage].number
        lines.extend(f"“{_joined(run)}” [{number}]" for run in runs)
    numbers = tuple(dict.fromkeys(citations[c.passage].number for c in chosen))
    return Quotes("\n\n".join(lines), numbers)


def _items_after(by_place: dict[tuple[int, int], _Candidate], passage: int, place: int) -> list[int]:
    """The places of a list's items after its opening line: as long as they look alike, and up to a length."""
    items: list[int] = []
    room = LONGEST_SENTENCE
    following = by_place.get((passage, place + 1))
    while following is not None and len(items) < LONGEST_LIST and room > 0:
        if items and _ends(following.text) != _ends(by_place[passage, items[-1]].text):
            break
        items.append(following.position)
        room -= len(following.text)
        following = by_place.get((passage, following.position + 1))
    return items


def _joined(run: Sequence[str]) -> str:
    """Sentences after each other; items of a list, which end in nothing, with a semicolon between them."""
    text = run[0]
    for part in run[1:]:
        text += (" " if _ends(text) else "; ") + part
    return text


def sentences(passage: str) -> list[str]:
    """The sentences, list items and table rows of a passage, in its order, each on one line.

    A line goes on in the next unless it ends a sentence, is clearly shorter than the others, or the next begins an
    item of a list. Numbers in brackets, which would look like citations, are left out.
    """
    found: list[str] = []
    for block in re.split(r"\n\s*\n", FOOTNOTE.sub("", passage)):
        lines = [" ".join(line.split()) for line in block.splitlines() if line.strip()]
        width = max((len(line) for line in lines), default=0)
        unit = ""
        for line in lines:
            if unit and (BULLET.match(line) or _ends(unit)):
                found.extend(_split(unit))
                unit = ""
            unit = f"{unit} {line}" if unit else line
            last = len(line)
            if last < 0.6 * width and not line.endswith(","):
                found.extend(_split(unit))
                unit = ""
        if unit:
            found.extend(_split(unit))
    return [text for text in (BULLET.sub("", item).strip() for item in found) if len(text) > 1]


def _ends(unit: str) -> bool:
    return bool(re.search(r"[.!?:。！？][\"'”’)\]]*$", unit))


def _split(text: str) -> list[str]:
    parts = []
    start = 0
    for match in ENDING.finditer(text):
        end = match.end()
        while end < len(text) and text[end] in "\"'”’)]":
            end += 1
        rest = text[end:].lstrip()
        word = text[start : match.start()].rsplit(" ", 1)[-1].lower().strip("(")
        if match[0] == "." and (ABBREVIATIONS.fullmatch(word) or rest[:1].islower()):
            continue
        parts.append(text[start:end].strip())
        start = end
    return [part for part in [*parts, text[start:].strip()] if part]
