"""Match figures in a question with ranges in table rows: "after 6 years" falls into "5 to 10 years"."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

#: Characters read from a row's first cell.
LONGEST_NAME = 80
_NUMBER = r"(\d+(?:[.,]\d+)?)"
#: A unit between a number and the word for its bound.
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
    """Whether the range in a row's first cell includes a figure from the question; `None` without range or figure.

    A cell may be a bare number; a different bare number does not exclude the row.
    """
    name = row.partition(" — ")[0][:LONGEST_NAME].strip()
    numbers = [float(figure.replace(",", ".")) for figure in figures if re.fullmatch(_NUMBER, figure)]
    if re.fullmatch(_NUMBER, name):
        return float(name.replace(",", ".")) in numbers or None
    found = range_in(name)
    return any(number in found for number in numbers) if found is not None and numbers else None
