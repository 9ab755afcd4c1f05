"""Check whether a sentence is about the people, period and letter in the question.

A rule for young workers does not answer "How long is the daily rest?" if there is a rule for everybody, hours a week do
not answer "how many a day", and the row for band A does not answer for band B. `applicability.toml` has the words, in
all the product's languages.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

#: A word with a letter: "Band B", "Tarif A"; in Chinese, Japanese and Korean also letter first, "B등급".
#: Without small letters such as "a", "i" and "y", words in some languages, and without the English "I".
LETTERED = re.compile(
    r"(?<![\w'’])([^\W\d_]{2,})(?:[ \u00a0-]|(?<=[\u3040-\u9fff가-힣]))"
    r"([A-HJ-Zb-df-hj-np-tvx])(?![A-Za-zÀ-ɏ\d_+#]|['’-](?!s\b)\w)"
)
LETTER_FIRST = re.compile(r"(?<![A-Za-z\d])([A-Z]) ?([가-힣\u3040-\u30ff\u3400-\u9fff]{1,8})")
#: Letters naming rows, inside a row and inside a column: "A — Days: 3", "Days — A: 3; B: 4".
LETTERED_ROWS = re.compile(r"(?:^|— |; )([A-Z])(?= —|: )")
#: Inflected words begin alike: "Stufe", "Stufen"; "등급", "등급의".
ALIKE_LETTERS, ALIKE_SIGNS = 4, 2
#: Characters at the start of a rule, which name its group: "The employer makes sure that young workers …".
BEGINNING = 80


@cache
def _groups() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    """Compile two patterns per group: its names in documents and its names in questions."""
    return tuple(
        (re.compile(group["said"], re.IGNORECASE), re.compile(f"{group['said']}|{group['asked']}", re.IGNORECASE))
        for group in _words()["groups"].values()
    )


@cache
def _periods() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(period["said"], re.IGNORECASE) for name, period in _words()["periods"].items()}


@cache
def _words() -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def is_for_another_group(text: str, heading: str, question: str) -> bool:
    """Whether a rule or its heading names a group of people and the question does not."""
    beginning = text[:BEGINNING]
    return any(
        (said.search(beginning) or said.search(heading)) and not asked.search(question) for said, asked in _groups()
    )


def is_for_another_period(text: str, question: str) -> bool:
    """Whether a sentence counts by a different period than the question, for example by week and not by day."""
    asked = _named_periods(question)
    return bool(asked) and bool(said := _named_periods(text)) and not asked & said


def _named_periods(text: str) -> frozenset[str]:
    return frozenset(name for name, said in _periods().items() if said.search(text))


def letters_asked(question: str) -> frozenset[tuple[str, str]]:
    """Return pairs of word and letter: "Allowance of band B?" gives ("band", "B")."""
    found = {(word.casefold(), letter.upper()) for word, letter in LETTERED.findall(question)}
    return frozenset(found | {(word, letter) for letter, word in LETTER_FIRST.findall(question)})


def has_letter(text: str, above: str, asked: frozenset[tuple[str, str]], *, any_word: bool = False) -> bool | None:
    """Whether a sentence names the requested letter; `None` without a letter, or with several.

    `above` are headings and heads. `any_word` compares letters alone, across languages.
    """
    if not asked:
        return None
    said = {letter for word, letter in letters_asked(f"{above} {text}") if any_word or _is_asked(word, asked)}
    if any_word or any(_is_asked(word.casefold(), asked) for word in re.findall(r"[^\W\d_]{2,}", above)):
        said.update(LETTERED_ROWS.findall(text))
    wanted = {letter for _, letter in asked}
    if not said or (said & wanted and said - wanted):
        return None
    return bool(said & wanted)


def _is_asked(word: str, asked: frozenset[tuple[str, str]]) -> bool:
    alike = ALIKE_SIGNS if word[:1] >= "\u3000" else ALIKE_LETTERS
    return any(
        word == other or (len(word) >= alike <= len(other) and word[:alike] == other[:alike]) for other, _ in asked
    )
