"""Find synonyms, also across languages: people ask about vacation, documents say annual leave.

`synonyms.txt` has the usual subjects in personnel documents, for all collections. A synonym group, with all languages,
is called an idea and has a number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from rag.text.analysers import analyse, analyser_code, words_with_terms

FILE = Path(__file__).with_name("synonyms.txt")
#: The most expressions searched per word and language; the first in the file are the most common.
MOST_EXPRESSIONS = 6
#: Languages in which an expression may begin a longer word: "vakantie" in "vakantiedagen".
COMPOUNDING = frozenset({"nl", "de"})
LEAST_BEGINNING = 5
#: Languages without spaces, in which an expression may occur anywhere. In Korean it begins a word, and particles
#: follow.
UNSPACED = frozenset({"ja", "zh"})
#: Longest question, in characters, which is searched for expressions; longer text is pasted.
LONGEST_QUESTION = 600
#: This line in the file starts the ideas which are only translated to other languages.
TRANSLATED_ONLY = "# The words below are put into other languages only"
_LINE = re.compile(r"([a-z]{2}): (.+)")
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")

Keys = tuple[tuple[str, ...], ...]


class Expressions(NamedTuple):
    """A synonym group's expressions in a language: for questions, and for documents."""

    #: Expressions which mean the idea in a question.
    in_questions: tuple[str, ...] = ()
    #: Expressions which are also searched in documents; in a question they would be ambiguous.
    in_documents: tuple[str, ...] = ()


#: The expressions for an idea, by language.
Idea = Mapping[str, Expressions]
NOTHING = Expressions()


@dataclass(frozen=True)
class Mention:
    """An expression found in a text, with position and synonym group."""

    start: int
    end: int
    idea: int
    #: The expression's number in its language.
    expression: int


def synonyms_of(text: str, language: str, analyser: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return synonyms by question word, each synonym split into index terms in the documents' language.

    The keys are words from `words_with_terms`. A chunk contains a synonym if it contains all the synonym's terms.
    """
    synonyms: dict[str, tuple[tuple[str, ...], ...]] = {}
    text = _normal(text)
    for mention in _mentions(text, analyser_code(language)):
        words = words_with_terms(text[mention.start : _end_of_word(text, mention, analyser)], analyser)
        own_terms = {term for _, terms in words for term in terms}
        synonym_terms = tuple(terms for terms in _terms(mention.idea, analyser) if not own_terms.issuperset(terms))
        for word, terms in words:
            if terms:
                synonyms[word] = tuple(dict.fromkeys((*synonyms.get(word, ()), *synonym_terms)))
    return synonyms


def _end_of_word(text: str, mention: Mention, analyser: str) -> int:
    """Return the position after an expression found in a text, including a Korean particle.

    In "연차는" the particle is included. In "연차수당" the second noun is not.
    """
    end = mention.end
    if not "\uac00" <= text[end - 1] <= "\ud7a3":
        return end
    while end < len(text) and "\uac00" <= text[end] <= "\ud7a3":
        end += 1
    shorter = words_with_terms(text[mention.start : mention.end], analyser)
    longer = words_with_terms(text[mention.start : end], analyser)
    return end if [terms for _, terms in shorter] == [terms for _, terms in longer] else mention.end


def reword(text: str, language: str) -> str:
    """Replace known expressions in a question by their most common synonyms; "" without a known expression."""
    text, code = _normal(text), analyser_code(language).removesuffix("+kiwi")
    parts, at = list[str](), 0
    for mention in _mentions(text, code):
        expressions = ideas()[mention.idea][code].in_questions
        is_translated_only = mention.idea >= _first_translated_only()
        other = next(
            (e for number, e in enumerate(expressions) if number != mention.expression and not is_translated_only), ""
        )
        if other:
            parts += [text[at : mention.start], other]
            at = mention.end
    return "".join([*parts, text[at:]]) if parts else ""


def named_in(text: str, language: str) -> tuple[str, ...]:
    """Return the known expressions in a text, unchanged, for example "second job"."""
    text = _normal(text)
    return tuple(text[m.start : m.end] for m in _mentions(text, analyser_code(language)))


def ideas_in(text: str, language: str) -> frozenset[int]:
    """Return the numbers for the synonym groups in a text. A group has the same number in all languages."""
    return frozenset(mention.idea for mention in _mentions(_normal(text), analyser_code(language)))


def without_other_ideas(text: str, language: str, ideas: frozenset[int]) -> str:
    """Remove multi-word expressions from other synonym groups: "public holiday" if "holiday" is meant.

    `ideas` are the groups to keep, by number.
    """
    text = _normal(text)
    parts, at = list[str](), 0
    for mention in _mentions(text, analyser_code(language)):
        if mention.idea not in ideas and " " in text[mention.start : mention.end]:
            parts.append(text[at : mention.start])
            at = mention.end
    return " ".join([*parts, text[at:]]) if parts else text


def is_only_within_another(question: str, text: str, language: str) -> bool:
    """Whether a question's word is in a text only inside a longer word with a different meaning.

    In a language without spaces, 产假 (maternity leave) is also in 陪产假 (paternity leave).
    """
    question, text, code = _normal(question), _normal(text), analyser_code(language)
    if code.removesuffix("+kiwi") not in UNSPACED | {"ko"}:
        return False
    mentions = _mentions(text, code)
    question_mentions = (m for m in _mentions(question, code) if m.idea not in {other.idea for other in mentions})
    return any(_is_within(question[m.start : m.end], text, mentions) for m in question_mentions)


def _is_within(expression: str, text: str, mentions: Sequence[Mention]) -> bool:
    places = [match.start() for match in re.finditer(re.escape(expression), text)]
    return bool(places) and all(any(m.start <= at and at + len(expression) <= m.end for m in mentions) for at in places)


def in_words_of(text: str, language: str, other: str) -> str:
    """Replace known expressions in a question by expressions in a different language: "Wie lange ist der 출산휴가?".

    Returns "" if the other language lacks all expressions in the question.
    """
    text, code = _normal(text), analyser_code(language).removesuffix("+kiwi")
    parts, at = list[str](), 0
    for mention in _mentions(text, code):
        expressions = ideas()[mention.idea].get(other, NOTHING).in_questions
        if expressions:
            parts += [text[at : mention.start], expressions[0]]
            at = _end_of_word(text, mention, other)
    return "".join([*parts, text[at:]]) if parts else ""


def translate_expression(text: str, language: str, other: str) -> str:
    """Translate a text which is exactly a known expression: "Annual leave" becomes "Urlaub".

    Returns "" for other texts, or if the other language has no matching expression.
    """
    text, code = " ".join(_normal(text).split()), analyser_code(language).removesuffix("+kiwi")
    mentions = _mentions(text, code)
    if len(mentions) != 1 or (mentions[0].start, mentions[0].end) != (0, len(text)):
        return ""
    return next(iter(ideas()[mentions[0].idea].get(other, NOTHING).in_questions), "")


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text[:LONGEST_QUESTION])[:LONGEST_QUESTION]


@lru_cache(maxsize=2_000)
def _mentions(text: str, language: str) -> tuple[Mention, ...]:
    language = language.removesuffix("+kiwi")
    if language not in _languages():
        return ()
    candidates = list(
        _substring_mentions(text, language) if language in UNSPACED | {"ko"} else _inflected_mentions(text, language)
    )
    candidates.sort(key=lambda m: (m.start - m.end, m.start, m.idea, m.expression))
    mentions = list[Mention]()
    for mention in candidates:
        if all(mention.end <= other.start or other.end <= mention.start for other in mentions):
            mentions.append(mention)
    return tuple(sorted(mentions, key=lambda m: m.start))


def _substring_mentions(text: str, language: str) -> Iterator[Mention]:
    for number, idea in enumerate(ideas()):
        for place, expression in enumerate(idea.get(language, NOTHING).in_questions):
            start = text.find(expression)
            while start >= 0:
                end = start + len(expression)
                if language in UNSPACED or start == 0 or not text[start - 1].isalnum():
                    yield Mention(start, end, number, place)
                start = text.find(expression, end)


def _inflected_mentions(text: str, language: str) -> Iterator[Mention]:
    words = list(_WORD.finditer(text))
    keys = [_key(word.group(), language) for word in words]
    by_first = _by_first_word(language)
    for at, key in enumerate(keys):
        for expression, number, place in by_first.get(key, ()):
            if tuple(keys[at : at + len(expression)]) == expression:
                yield Mention(words[at].start(), words[at + len(expression) - 1].end(), number, place)
        if language in COMPOUNDING and key not in by_first:
            yield from _compound_mentions(key, words[at], language)


def _compound_mentions(key: tuple[str, ...], word: re.Match[str], language: str) -> Iterator[Mention]:
    stem = key[0] if key else ""
    for length in range(len(stem) - 1, LEAST_BEGINNING - 1, -1):
        for expression, number, place in _by_first_word(language).get((stem[:length],), ()):
            if len(expression) == 1:
                yield Mention(word.start(), word.end(), number, place)
                return


def _key(word: str, language: str) -> tuple[str, ...]:
    return tuple(analyse(word, language)) or (word.lower(),)


@lru_cache(maxsize=1)
def ideas() -> tuple[Idea, ...]:
    """Return the synonym groups in `synonyms.txt`. Each maps languages to expressions."""
    read, current = list[Idea](), dict[str, Expressions]()
    for line in [*FILE.read_text("utf-8").splitlines(), ""]:
        if match := _LINE.fullmatch(line):
            in_questions, _, in_documents = unicodedata.normalize("NFKC", match[2]).partition("|")
            current[match[1]] = Expressions(_split_list(in_questions), _split_list(in_documents))
        elif current:
            read.append(current)
            current = {}
    return tuple(read)


@lru_cache(maxsize=1)
def _first_translated_only() -> int:
    """Return the number for the first group in `synonyms.txt` which is only used for translation."""
    before, _, _ = FILE.read_text("utf-8").partition(TRANSLATED_ONLY)
    return before.count("\nen: ")


def _split_list(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


@lru_cache(maxsize=1)
def _languages() -> frozenset[str]:
    return frozenset(language for idea in ideas() for language in idea)


@lru_cache(maxsize=32)
def _by_first_word(language: str) -> dict[tuple[str, ...], list[tuple[Keys, int, int]]]:
    """Return the known expressions by first word: (all words, group number, position in the group)."""
    expressions: dict[tuple[str, ...], list[tuple[Keys, int, int]]] = {}
    for number, idea in enumerate(ideas()):
        for place, expression in enumerate(idea.get(language, NOTHING).in_questions):
            keys = tuple(_key(word, language) for word in _WORD.findall(expression))
            expressions.setdefault(keys[0], []).append((keys, number, place))
    return expressions


@lru_cache(maxsize=4_000)
def _terms(idea: int, analyser: str) -> tuple[tuple[str, ...], ...]:
    """Return the index terms for each expression in a synonym group.

    Expressions with a stopword are skipped, because the remaining words would have a different meaning.
    """
    term_lists = dict[tuple[str, ...], None]()
    in_questions, in_documents = ideas()[idea].get(analyser.removesuffix("+kiwi"), NOTHING)
    for expression in (*in_documents, *in_questions):
        words = words_with_terms(expression, analyser)
        if words and all(terms for _, terms in words):
            # A Korean word may be part of a longer word: pairs of syllables are enough.
            term_lists[tuple(t for _, terms in words for t in (terms[1:] if _is_korean(terms) else terms))] = None
    return tuple(term_lists)[:MOST_EXPRESSIONS]


def _is_korean(terms: tuple[str, ...]) -> bool:
    return len(terms) > 1 and "\uac00" <= terms[0][0] <= "\ud7a3"
