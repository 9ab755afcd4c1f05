"""Whether a sentence is about the people and the period that a question asks about.

A rule for young workers does not answer "How long is the daily rest?" while there is a rule for everybody, and hours a
week do not answer "how many a day". `applicability.toml` has the words, in all languages of the product.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

#: Characters at the beginning of a rule, where its group is named: "The employer makes sure that young workers …".
BEGINNING = 80


@cache
def _groups() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    """Return what names each group in a document, and in a question."""
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
    """Whether a sentence counts by periods, none of which the question asks for: by the week, not by the day."""
    asked = _named_periods(question)
    return bool(asked) and bool(said := _named_periods(text)) and not asked & said


def _named_periods(text: str) -> frozenset[str]:
    return frozenset(name for name, said in _periods().items() if said.search(text))
