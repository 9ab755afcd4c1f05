"""Complete a follow-up question with words from the conversation: subject, benefit plan, place, person and number.

After "What is the hotel limit for staff?", "And for managers?" asks for the hotel limit for managers. `follow_ups.toml`
has the rules for each language: how follow-ups start, and which phrases replace each other. The documents' titles tell
benefit plans apart.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rag.answering.routes.recognise import is_yes
from rag.answering.routes.small_talk import about_product, small_talk
from rag.retrieval.bm25.index import tokenize
from rag.retrieval.proximity import unshared_terms
from rag.text.language_detection import detect_language
from rag.text.number_words import number_words

#: A question with at most this many terms may be a follow-up.
FOLLOW_UP_TERMS = 3
#: The same limit for scripts without spaces, with several terms (pairs of letters) per word.
UNSPACED_TERMS = 6
#: Characters read from each question.
SHORT_CHARACTERS = 400
#: Languages written without spaces between words.
UNSPACED = frozenset({"ko", "ja", "zh"})
#: Kinds of phrases: a later phrase replaces an earlier phrase of the same kind.
PHRASES = ("for", "in", "after", "with")
#: Capitalised words within a sentence, taken for names; in German only after "in" and "bei".
_NAME = re.compile(r"(?<=[\w,;] )[A-ZÀ-Þ][\w-]+(?: [A-ZÀ-Þ][\w-]+)*")
_GERMAN_NAME = re.compile(r"(?<=\b[iI]n )[A-ZÀ-Þ][\w-]+|(?<=\b[bB]ei )[A-ZÀ-Þ][\w-]+")
#: Number words which rarely stand for an amount in a follow-up.
_NO_AMOUNTS = frozenset({"second", "third", "fourth", "fifth", "twice"})
#: "There" and "it" without a reference: "Is there a limit?", "is it possible to …".
_EXPLETIVE = re.compile(
    r"\b(?:is|are|was|were) there\b|\bthere (?:is|are)\b|\b(?:is|does|will|would) it (?:\w+ ){0,3}(?:to|that)\b"
    r"|\bit takes?\b|\b(?:is|zijn|wordt|worden) er\b|\ber (?:is|zijn)\b|\bgibt es\b|\bes gibt\b"
)


class _Wordings(NamedTuple):
    opening: re.Pattern[str]
    condition: re.Pattern[str]
    asks: re.Pattern[str]
    pronoun: re.Pattern[str]
    there: re.Pattern[str]
    again: re.Pattern[str]
    phrases: dict[str, re.Pattern[str]]


@dataclass(frozen=True)
class Carried:
    """A question completed from the conversation, with details on what was added."""

    #: The question to search for.
    text: str
    #: Words from the follow-up, required in the reply. Empty for a standalone question.
    focus: str = ""
    #: Names from the conversation; sentences with these names are preferred.
    names: str = ""
    #: Names which the follow-up replaced.
    replaced: str = ""
    #: Set for short questions: the search decides whether the question is a follow-up or stands alone.
    is_unsure: bool = False
    #: The first question about the current subject, with the phrases added since.
    topic: str = ""
    phrases: tuple[str, ...] = ()
    asking_part: str = ""


#: For a question without a conversation.
NOTHING = Carried("")


def carry_over(
    question: str, earlier: Sequence[tuple[str, str]], *, language: str, titles: Sequence[str] = ()
) -> Carried:
    """Return a question completed from the earlier questions and their replies, oldest first.

    `language` is the question's ISO 639-1 code.
    """
    carried: Carried | None = None
    for text, reply in earlier:
        text_language = detect_language(text[:SHORT_CHARACTERS], [language])
        if small_talk(text, language=text_language) is None and about_product(text, language=text_language) is None:
            previous, carried = carried, _next(carried, text, text_language, titles)
            if (
                previous is not None
                and carried.is_unsure
                and not own_terms(previous.topic, text, text_language) & {*tokenize(reply, text_language)}
            ):
                # Without the follow-up's new words in the reply, treat the question as a new subject.
                alone = _next(None, text, text_language, titles)
                carried = replace(alone, names=alone.names or previous.names)
    return _next(carried, question, language, titles)


def leans_on_history(question: str, language: str) -> bool:
    """Whether a question may be unclear without the conversation."""
    most = UNSPACED_TERMS if language in UNSPACED else FOLLOW_UP_TERMS
    return points_to_history(question, language) or len(_terms(question, language)) <= most


def points_to_history(question: str, language: str) -> bool:
    """Whether a question is worded like a follow-up, for example `and`, `what if` or `it`."""
    bare, wordings = _bare(question), _wordings(language)
    return (
        not _terms(question, language)
        or wordings.opening.match(bare) is not None
        or wordings.condition.match(bare) is not None
        or _points_back(bare, wordings)
    )


def own_terms(question: str, before: str, language: str) -> frozenset[str]:
    """Return the follow-up's index terms which are not in `before`, the preceding question."""
    return frozenset(_terms(question, language)) - frozenset(_terms(before, language))


def _terms(question: str, language: str) -> list[str]:
    # The start of a long question is enough for counting terms.
    return tokenize(question[:SHORT_CHARACTERS], language)


def asks_again(question: str, language: str) -> bool:
    """Whether a message only confirms or doubts the last reply: "Yes", "Are you sure?", "Where does it say so?".

    The message then has the previous question's subject.
    """
    return is_yes(question) or _wordings(language).again.fullmatch(_bare(question)) is not None


def _next(previous: Carried | None, question: str, language: str, titles: Sequence[str]) -> Carried:
    names = _names(question, language)
    is_again = asks_again(question, language)
    if previous is None or not (is_again or leans_on_history(question, language)):
        carried = previous.names if previous else ""
        return Carried(question, topic=question, names=" ".join(names) or carried)
    if is_again:
        return replace(previous, is_unsure=False)
    wordings = _wordings(language)
    follow_up = _strip_opening(question, wordings.opening)
    bare = _bare(follow_up)
    topic, asking_part = (
        _remove_replaced(text, follow_up, language, titles) for text in (previous.topic, previous.asking_part)
    )
    phrases = previous.phrases
    replaced = (
        [*_names(previous.topic, language), *previous.names.split()] if names or _is_name(follow_up, language) else []
    )
    if not wordings.asks.match(bare) and not _points_back(bare, wordings):
        remaining = [
            _without_numbers(p, follow_up, language) for p in phrases if not _is_in_place_of(follow_up, p, wordings)
        ]
        phrases = (*(p for p in remaining if _terms(p, language)), follow_up)
        if not wordings.condition.match(bare):
            names = names or [_strip_end(follow_up)]
    else:
        asking_part = follow_up
        if previous.names and _is_about_a_place(bare, wordings) and _terms(follow_up, language):
            # "Where do I park there?" has a new subject.
            topic, phrases = previous.names, ()
    pieces = [_strip_end(piece) for piece in (topic, *phrases, asking_part) if piece]
    return Carried(
        text=f"{' '.join(pieces)}?",
        focus=follow_up,
        names=" ".join(names) or previous.names,
        replaced=" ".join(name for name in replaced if name not in question),
        is_unsure=not points_to_history(question, language),
        topic=topic,
        phrases=phrases,
        asking_part=asking_part,
    )


def _strip_end(text: str) -> str:
    return text.rstrip(" ?？؟.!。")


def _remove_replaced(earlier_question: str, follow_up: str, language: str, titles: Sequence[str]) -> str:
    remaining = without_other_documents(earlier_question, follow_up, titles, language)
    earlier_language = (
        detect_language(earlier_question[:SHORT_CHARACTERS], [language]) if earlier_question else language
    )
    wordings, earlier = _wordings(language), _wordings(earlier_language)
    for kind in PHRASES:
        if kind == "in":
            continue
        if wordings.phrases[kind].match(_bare(follow_up)):
            other_patterns = "|".join(pattern.pattern for name, pattern in earlier.phrases.items() if name != kind)
            remaining = re.sub(
                rf"(?i){earlier.phrases[kind].pattern}.*?(?=(?:{other_patterns})|[?.,;]|$)", " ", remaining
            )
    if _names(follow_up, language) or _is_name(follow_up, language):
        for name in _names(earlier_question, earlier_language):
            remaining = re.sub(rf"(?:{earlier.phrases['in'].pattern})?\s*\b{re.escape(name)}\b", " ", remaining)
    remaining = " ".join(_without_numbers(remaining, follow_up, language).split())
    return remaining if tokenize(remaining, earlier_language) else earlier_question


def _without_numbers(earlier_question: str, follow_up: str, language: str) -> str:
    """Remove from the earlier question the numbers which the follow-up replaces.

    If every unit in the follow-up is also in the earlier question, only numbers with these units are removed, else all.
    """
    units = _units(follow_up, language)
    if not units:
        return earlier_question
    is_any = not units <= _units(earlier_question, language)
    return _number(language).sub(lambda match: " " if is_any or _unit(match) in units else match[0], earlier_question)


def _units(text: str, language: str) -> set[str]:
    return set(map(_unit, _number(language).finditer(text)))


@cache
def _number(language: str) -> re.Pattern[str]:
    words = [word for word, value in number_words(language).items() if value >= 2 and word not in _NO_AMOUNTS]
    as_word = rf"|(?:{'|'.join(words)})(?!\w)" if words else ""
    return re.compile(
        rf"(?<![\w.,])(?:[£$€]\s?)?(?:\d[\d.,]*\d|\d{as_word})(?P<unit>\s?(?:%|[^\W\d_]+))?", re.IGNORECASE
    )


def _unit(number: re.Match[str]) -> str:
    # "year" and "years", "Jahr" and "Jahren" are the same.
    return (number["unit"] or "").strip().casefold()[:3]


def _is_in_place_of(follow_up: str, phrase: str, wordings: _Wordings) -> bool:
    """Whether a phrase in the follow-up can replace a phrase in the earlier question.

    Both phrases must have the same type; a bare name ("Leeds?") can also replace a phrase like "for Utrecht".
    """
    kinds = {_kind(follow_up, wordings), _kind(phrase, wordings)}
    return len(kinds) == 1 or kinds == {"", "for"}


def _kind(phrase: str, wordings: _Wordings) -> str:
    if wordings.condition.match(_bare(phrase)):
        return "condition"
    return next((kind for kind in PHRASES if wordings.phrases[kind].match(_bare(phrase))), "")


def _is_name(phrase: str, language: str) -> bool:
    """Whether a phrase is only a name, like "Leeds?". False in German, because every noun is capitalised there."""
    return language != "de" and bool(re.fullmatch(r"(?:[A-ZÀ-Þ][\w-]+\s*){1,3}[?？]?", phrase))


def _names(question: str, language: str) -> list[str]:
    return (_GERMAN_NAME if language == "de" else _NAME).findall(question)


def _points_back(text: str, wordings: _Wordings) -> bool:
    return _has_pronoun(text, wordings) or wordings.there.search(_EXPLETIVE.sub(" ", text)) is not None


def _has_pronoun(text: str, wordings: _Wordings) -> bool:
    return wordings.pronoun.search(_EXPLETIVE.sub(" ", text)) is not None


def _is_about_a_place(text: str, wordings: _Wordings) -> bool:
    return wordings.there.search(_EXPLETIVE.sub(" ", text)) is not None and not _has_pronoun(text, wordings)


def _bare(question: str) -> str:
    return " ".join(question[:SHORT_CHARACTERS].casefold().replace("’", "'").split()).strip(" ¿¡?？؟.!。！")


def _strip_opening(question: str, opening: re.Pattern[str]) -> str:
    text = question.strip().lstrip("¿¡ ")
    match = opening.match(text)
    rest = text[match.end() :].lstrip(" ,、，") if match else text
    return rest if re.search(r"\w", rest) else text


def without_other_documents(before: str, question: str, titles: Sequence[str], language: str) -> str:
    """Remove a document's name from the previous question if the follow-up names a document with a similar title.

    For example, "What is the deductible of Health Plus?" is followed by "and on the standard plan?". The follow-up is
    not about Health Plus.
    """
    names = {frozenset(tokenize(title, language)) for title in titles}
    left_out = unshared_terms(names, frozenset(tokenize(question, language)))
    if not left_out:
        return before
    words = before.split()
    terms = [frozenset(tokenize(word, language)) for word in words]
    remaining, place = list[str](), 0
    while place < len(words):
        # Remove only a whole name: "mental health" keeps "health".
        ends = range(place + 1, len(words) + 1 if terms[place] else 0)
        end = next((end for end in ends if frozenset().union(*terms[place:end]) in left_out), None)
        if end is None:
            remaining.append(words[place])
        place = end or place + 1
    return " ".join(remaining)


@cache
def _wordings(language: str) -> _Wordings:
    table = _table()
    code = language.split("-")[0].lower()
    code = code if code in table else "en"
    patterns = table[code]
    end = "" if code in UNSPACED else r"(?!\w)"
    start = "" if code in UNSPACED else r"(?<!\w)"

    def pattern(name: str) -> re.Pattern[str]:
        words = patterns[name]
        return re.compile(rf"{start}(?:{words}){end}" if words else r"(?!)", re.IGNORECASE)

    return _Wordings(
        opening=pattern("opening"),
        condition=pattern("condition"),
        asks=pattern("asks"),
        pronoun=pattern("pronoun"),
        there=pattern("there"),
        again=re.compile(patterns["again"], re.IGNORECASE),
        phrases={kind: pattern(kind) for kind in PHRASES},
    )


@cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("follow_ups.toml").read_text("utf-8"))
