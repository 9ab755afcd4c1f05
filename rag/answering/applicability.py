"""Check whether a sentence applies to the people, the period, or the level ("band A", "zone 2") in a question.

A rule for young workers does not answer "How long is the daily rest?" if there is a rule for everybody. Hours per week
do not answer "how many a day". A table row for band A does not answer a question about band B; a row for "5 to 10
years" answers a question about 6 years. `applicability.toml` has the words in the product's languages.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from rag.answering.answer_types import UNITS
from rag.text import currencies
from rag.text.analysers import STOPWORDS

#: A word with a letter: "Band B", "Tarif A"; in Chinese, Japanese and Korean also letter first, "B등급". Excluded are
#: lower-case "a", "i" and "y" and the English "I", because they are words.
LETTERED = re.compile(
    r"(?<![\w'’])([^\W\d_]{2,})(?:[ \u00a0-]|(?<=[\u3040-\u9fff가-힣]))"
    r"([A-HJ-Zb-df-hj-np-tvx])(?![A-Za-zÀ-ɏ\d_+#]|['’-](?!s\b)\w)"
)
LETTER_FIRST = re.compile(r"(?<![A-Za-z\d])([A-Z]) ?([가-힣\u3040-\u30ff\u3400-\u9fff]{1,8})")
#: Letters naming rows, inside a row and inside a column: "A — Days: 3", "Days — A: 3; B: 4".
LETTERED_ROWS = re.compile(r"(?:^|— |; )([A-Z])(?= —|: )")
#: A word with a number: "Level 3", "Zone 12". Excluded are "3 days" and numbers with decimals, a unit or a sign.
NUMBERED = re.compile(
    r"(?<![\w'’])([^\W\d_]{2,})[ \u00a0](?:(?:no\.?|nr\.?|n°|n\.º|nº|#) ?)?(\d{1,4})"
    r"(?: ?(?:[-–]|to|bis|tot|t/m|à|a|al|do|through|thru) ?(\d{1,4}))?"
    r"(?![\w%°€$£₩]|[.,:/–-]\d| ?[%€$£₩])",
    re.IGNORECASE,
)
#: In Chinese, Japanese and Korean the number stands before or after the word: "3급", "等級3".
NUMBER_FIRST = re.compile(
    r"(?<![\d.,])第?(\d{1,4}) ?(급|호봉|등급|단계|층|구역|지역|級|等級|号室?|階|級地|级|号|层|区|档)"
)
#: Numbers naming rows, inside a row and inside a column: "3 — Pay: 2,000", "Pay — 1–3: 1,900; 4: 2,000".
NUMBERED_ROWS = re.compile(r"(?:^|— |; )(\d{1,4})(?: ?[-–] ?(\d{1,4}))?(?= —|: )")
#: Follows a number which counts something.
_COUNTED = re.compile(
    rf"[ \u00a0-](?:{UNITS}|{currencies.WORDS}|per ?cent|prozent|procent|km|kg|people|employees)\b", re.IGNORECASE
)
#: Marks a rule for a number and everything above or below.
AND_BEYOND = re.compile(
    r"\b(?:and|or|und|oder|en|of|et|ou|y|o|e|lub|i|ve|veya) (?:above|higher|up|more|over|below|lower|under|höher"
    r"|darüber|darunter|hoger|lager|plus|más|más|più|mais|wyż\w+|niż\w+|üzeri|altı)\b|\d\+|이상|이하|以上|以下|及以",
    re.IGNORECASE,
)
#: Longest range of numbers that names rows.
LONGEST_RANGE = 100
#: Letters (signs in scripts without spaces) two inflected words must share at the start: "Stufe", "Stufen"; "등급",
#: "등급의".
ALIKE_LETTERS, ALIKE_SIGNS = 4, 2
#: First characters in a rule, where a group may be named: "The employer makes sure that young workers …".
BEGINNING = 80


@cache
def _groups() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    """Return (pattern for documents, pattern for questions) for each group, for example trainees.

    Some names are used in questions only.
    """
    return tuple(
        (re.compile(group["said"], re.IGNORECASE), re.compile(f"{group['said']}|{group['asked']}", re.IGNORECASE))
        for group in _words()["groups"].values()
    )


@cache
def _patterns(table: str) -> dict[str, re.Pattern[str]]:
    return {name: re.compile(named["said"], re.IGNORECASE) for name, named in _words()[table].items()}


@cache
def _not_numbered() -> frozenset[str]:
    return frozenset(_words()["numbers"]["not"]["words"].split())


@cache
def _words() -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def is_for_another_group(text: str, heading: str, question: str) -> bool:
    """Whether a rule or its heading is limited to a group of people whom the question does not name."""
    beginning = text[:BEGINNING]
    return any(pattern.search(beginning) or pattern.search(heading) for pattern in _other_groups(question))


@lru_cache(maxsize=100)
def _other_groups(question: str) -> tuple[re.Pattern[str], ...]:
    return tuple(in_rules for in_rules, in_questions in _groups() if not in_questions.search(question))


def is_for_another_period(text: str, question: str) -> bool:
    """Whether text and question name periods, but no common period: "per week" and "a day"."""
    return _names_others("periods", text, question)


def is_for_another_stage(text: str, question: str) -> bool:
    """Whether text and question are about different employment stages: during probation, and after probation."""
    return _names_others("stages", text, question)


def condition_of(text: str) -> str:
    """Return a sentence's condition, like "If you feel well enough to work"; "" without a condition."""
    clause = re.split(r"[,;，、،]", text, maxsplit=1)[0]
    return clause if _patterns("conditions")["if"].search(clause + ",") else ""


def states_case(question: str) -> bool:
    """Whether a question describes the user's case: "What if I am ill?", "I lost my card, whom do I tell?"."""
    return _patterns("conditions")["case"].search(question) is not None


def says_whether(text: str, question: str) -> bool:
    """Whether the question asks if something is allowed or needed, and the text has "may", "required" or the like."""
    patterns = _patterns("permission")
    return patterns["question"].search(question) is not None and patterns["answer"].search(text) is not None


def tells_how(text: str, question: str) -> bool:
    """Whether the question asks for a procedure, and the text is an instruction: "submit the form"."""
    patterns = _patterns("instructions")
    return patterns["question"].search(question) is not None and patterns["answer"].search(text) is not None


def grants(text: str, question: str) -> bool:
    """Whether the question asks for an entitlement, and the text grants an entitlement: "offers 20 days"."""
    patterns = _patterns("entitlement")
    return patterns["question"].search(question) is not None and patterns["answer"].search(text) is not None


def asks_for_meaning(question: str) -> bool:
    """Whether a question asks for a meaning: "What is a sabbatical?"."""
    return _patterns("definitions")["question"].search(question) is not None


def defined_in(text: str) -> str:
    """Return the term before "is" or "means": "A flexi day" in "A flexi day is a day off"; or ""."""
    sign = _patterns("definitions")["sign"].search(text, 0, BEGINNING)
    return text[: sign.start()] if sign else ""


def is_contract_definition(text: str) -> bool:
    """Whether a sentence defines a term like a contract: "**Dealing** means any type of transaction"."""
    return _patterns("definitions")["contract"].search(text) is not None


def _names_others(table: str, text: str, question: str) -> bool:
    in_question = _named_in(table, question)
    if not in_question:
        return False
    in_text = {name for name, pattern in _patterns(table).items() if pattern.search(text)}
    return bool(in_text) and not in_question & in_text


@lru_cache(maxsize=100)
def _named_in(table: str, question: str) -> frozenset[str]:
    return frozenset(name for name, pattern in _patterns(table).items() if pattern.search(question))


#: Whether a sentence names the letter or number from the question, a different one, several, or none.
Naming = Literal["asked", "another", "several", "none"]


class Marks(NamedTuple):
    """Labels in a question: letters with their words ("band B"), and a number with its word ("level 3")."""

    letters: frozenset[tuple[str, str]]
    numbered: tuple[str, int] | None


def marks_in(question: str) -> Marks:
    return Marks(letters_in(question), number_in(question))


def compare_marks(text: str, above: str, marks: Marks, *, is_across: bool = False) -> Naming:
    """Compare the label in a sentence ("Band B", "Level 3") with the label in the question.

    Returns "asked" for the same label, "another" for a different label, "several" for both, and "none" without a label.
    `above` holds the headings and column headings above the sentence. Set `is_across` if sentence and question are in
    different languages: a letter then counts next to any word, because "Band B" is "Stufe B" in German.
    """
    naming = compare_letters(text, above, marks.letters, any_word=is_across)
    return compare_number(text, above, marks.numbered) if naming == "none" else naming


def letters_in(question: str) -> frozenset[tuple[str, str]]:
    """Return pairs of word and letter in a question: "Allowance of band B?" gives ("band", "B")."""
    pairs = {(word.casefold(), letter.upper()) for word, letter in LETTERED.findall(question)}
    return frozenset(pairs | {(word, letter) for letter, word in LETTER_FIRST.findall(question)})


def compare_letters(
    text: str, above: str, question_letters: frozenset[tuple[str, str]], *, any_word: bool = False
) -> Naming:
    """Compare the letters in a sentence ("Band B") with the question's letters, given in pairs (word, letter).

    Returns "asked" if the sentence has only letters from the question, "another" if only different letters, "several"
    for both, and "none" without a letter. `above` holds the headings and column headings above the sentence. A letter
    counts next to the question's word; if `any_word`, next to any word: "Band B" and "Stufe B".
    """
    if not question_letters:
        return "none"
    text_letters = {
        letter for word, letter in letters_in(f"{above} {text}") if any_word or _names_same_kind(word, question_letters)
    }
    if any_word or any(
        _names_same_kind(word.casefold(), question_letters) for word in re.findall(r"[^\W\d_]{2,}", above)
    ):
        text_letters.update(LETTERED_ROWS.findall(text))
    expected = {letter for _, letter in question_letters}
    return _judge_naming(len(text_letters & expected), len(text_letters))


def _judge_naming(matching: int, total: int) -> Naming:
    if not total:
        return "none"
    return "another" if not matching else "asked" if matching == total else "several"


def _names_same_kind(word: str, pairs: frozenset[tuple[str, str]]) -> bool:
    alike = ALIKE_SIGNS if word[:1] >= "\u3000" else ALIKE_LETTERS
    return any(
        word == other or (len(word) >= alike <= len(other) and word[:alike] == other[:alike]) for other, _ in pairs
    )


def number_in(question: str) -> tuple[str, int] | None:
    """Return the word and number in a question: "Pay at level 3?" gives ("level", 3).

    Returns `None` if the question has no number or several numbers.
    """
    pairs = {(word, numbers[0]) for word, numbers in _numbers_in(question) if len(numbers) == 1}
    return pairs.pop() if len(pairs) == 1 else None


def compare_number(text: str, above: str, question_number: tuple[str, int] | None) -> Naming:
    """Compare the numbers in a sentence ("Level 3") with the question's word and number.

    Returns "asked" if the sentence has only the question's number, "another" if only different numbers, "several" for
    both, and "none" without a number. `above` holds the headings and column headings above the sentence. An open limit,
    "Level 3 and above", is ignored.
    """
    if question_number is None or AND_BEYOND.search(text):
        return "none"
    word, expected = question_number
    label = frozenset([(word, "")])
    ranges = [numbers for other, numbers in _numbers_in(f"{above} {text}") if _names_same_kind(other, label)]
    if any(_names_same_kind(other.casefold(), label) for other in re.findall(r"[^\W\d_]{2,}", above)):
        ranges += [_range(*limits) for limits in NUMBERED_ROWS.findall(text)]
    return _judge_naming(sum(expected in numbers for numbers in ranges), len(ranges))


def _numbers_in(text: str) -> list[tuple[str, range]]:
    pairs = [
        (word.casefold(), _range(first, last))
        for match in NUMBERED.finditer(text)
        for word, first, last in [match.groups("")]
        if not _is_unnumbered(word.casefold(), first) and not _COUNTED.match(text, match.end())
    ]
    return pairs + [(word, _range(number)) for number, word in NUMBER_FIRST.findall(text)]


def _is_unnumbered(word: str, number: str) -> bool:
    is_year = len(number) == 4 and number[:2] in ("19", "20")
    return is_year or word in _not_numbered() or any(word in small for small in STOPWORDS.values())


def _range(first: str, last: str = "") -> range:
    low = int(first)
    high = int(last) if last and low < int(last) <= low + LONGEST_RANGE else low
    return range(low, high + 1)


#: Characters read from a row's first cell.
LONGEST_NAME = 80
_NUMBER = r"(\d+(?:[.,]\d+)?)"
#: A unit between a number and the words for its bound: "5 years or more".
_UNIT = r"\s?[^\d\s]{0,6}\s?"
_TO = r"[-–—~～〜]|to|bis|tot(?: en met)?|t/m|à|al?|até|do|ila|から|부터|至|到|إلى"
_LESS = r"\b(?:less than|under|below|weniger als|unter|minder dan|moins de|menos de|meno di|poniżej)"
_MORE = r"\b(?:more than|over|above|mehr als|über|meer dan|plus de|más de|più di|mais de|powyżej)"
_UP_TO = r"\b(?:up to|at most|bis(?: zu)?|tot(?: en met)?|jusqu'à|hasta|fino a|até|do)"
_OR_MORE = r"이상|以上|or more|and more|oder mehr|of meer|ou plus|o más|o più|ou mais"
_FORMS = (
    ("from_below", rf"{_NUMBER}{_UNIT}(?:이상|以上){_UNIT}{_NUMBER}{_UNIT}(?:미만|未満|未满|以下)"),
    ("from_to", rf"{_NUMBER}{_UNIT}(?:{_TO})\s?{_NUMBER}"),
    ("below", rf"{_LESS}{_UNIT}{_NUMBER}"),
    ("above", rf"{_MORE}{_UNIT}{_NUMBER}"),
    ("up_to", rf"{_UP_TO}{_UNIT}{_NUMBER}"),
    ("below", rf"{_NUMBER}{_UNIT}(?:미만|未満|未满|이내)"),
    ("up_to", rf"{_NUMBER}{_UNIT}(?:이하|까지|以下|以内)"),
    ("above", rf"{_NUMBER}{_UNIT}(?:초과|超)"),
    ("from", rf"{_NUMBER}\s?(?:[^\d\s]{{0,8}}\s)?(?:{_OR_MORE})"),
)
FORMS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _FORMS)


@dataclass(frozen=True)
class Range:
    """The numbers from `low` to `high`, and whether each bound is included."""

    low: float
    high: float
    has_low: bool = True
    has_high: bool = True

    def __contains__(self, number: float) -> bool:
        is_above = number >= self.low if self.has_low else number > self.low
        return is_above and (number <= self.high if self.has_high else number < self.high)


def range_in(text: str) -> Range | None:
    """Return the range of numbers in a row's name, if any."""
    for name, form in FORMS:
        if match := form.search(text):
            numbers = [float(number.replace(",", ".")) for number in match.groups()]
            match name:
                case "from_below":
                    return Range(numbers[0], numbers[1], has_high="以下" in match[0])
                case "from_to":
                    return Range(numbers[0], numbers[1])
                case "below":
                    return Range(-math.inf, numbers[0], has_high="이내" in match[0])
                case "up_to":
                    return Range(-math.inf, numbers[0])
                case "above":
                    return Range(numbers[0], math.inf, has_low=False)
                case _:
                    return Range(numbers[0], math.inf)
    return None


def holds(row: str, figures: Iterable[str]) -> bool | None:
    """Whether the range in a row's first cell, for example "5 to 10 years", includes a number from the question.

    Returns `None` if the first cell has no range or the question has no number. If the first cell is a single number,
    returns `True` if the question has this number, else `None`.
    """
    name = row.partition(" — ")[0][:LONGEST_NAME].strip()
    numbers = [float(figure.replace(",", ".")) for figure in figures if re.fullmatch(_NUMBER, figure)]
    if re.fullmatch(_NUMBER, name):
        return float(name.replace(",", ".")) in numbers or None
    value_range = range_in(name)
    return any(number in value_range for number in numbers) if value_range is not None and numbers else None
