"""Which row of a table a figure of the question falls into."""

from __future__ import annotations

import math

import pytest

from rag.answering.applicability import Range, holds, range_in
from rag.answering.extractive import best_quotes
from tests.answering.scripted import passage


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Up to 2 years", Range(-math.inf, 2)),
        ("2 to 5 years", Range(2, 5)),
        ("5–10 years", Range(5, 10)),
        ("More than 10 years", Range(10, math.inf, has_low=False)),
        ("20 years or more", Range(20, math.inf)),
        ("Week 27 tot en met 52", Range(27, 52)),
        ("Meer dan 10 dagen", Range(10, math.inf, has_low=False)),
        ("unter 5 Jahre", Range(-math.inf, 5, has_high=False)),
        ("1년 미만", Range(-math.inf, 1, has_high=False)),
        ("1년 이상 3년 미만", Range(1, 3, has_high=False)),
        ("0.2% 이상", Range(0.2, math.inf)),
        ("13일째부터 60일까지", Range(13, 60)),
        ("3年未満", Range(-math.inf, 3, has_high=False)),
        ("Hotel, per night", None),
        ("Level 3", None),
        ("", None),
    ],
)
def test_the_range_of_a_row(text: str, wanted: Range | None) -> None:
    assert range_in(text) == wanted


@pytest.mark.parametrize(
    ("row", "figures", "held"),
    [
        ("Up to 2 years — Notice by you: 1 month", ["6"], False),
        ("5 to 10 years — Notice by you: 2 months", ["6"], True),
        ("1년 미만 — 연차 일수: 최대 11일", ["1"], False),
        ("1년 이상 3년 미만 — 연차 일수: 16일", ["1"], True),
        ("Hotel, per night — Limit: £125", ["6"], None),
        ("Up to 2 years — Notice by you: 1 month", [], None),
        ("Up to 2 years — Notice by you: 1 month", ["2.3.4"], None),
        (f"{'1' * 100_000} — Price: £1", ["1"], None),
        ("10 — Gift: £600", ["10"], True),
        ("15 — Gift: £900", ["10"], None),
    ],
)
def test_whether_the_range_of_a_row_holds_a_figure(row: str, figures: list[str], held: bool | None) -> None:
    assert holds(row, figures) is held


def test_the_row_that_holds_the_questions_figure_is_quoted_first() -> None:
    text = (
        "10.1 Notice\n"
        "Length of service | Notice by you | Notice by us\n"
        "Up to 2 years | 1 month | 1 month\n"
        "2 to 5 years | 1 month | 2 months\n"
        "5 to 10 years | 2 months | 3 months\n"
        "More than 10 years | 3 months | 4 months"
    )
    for years, row in ((1, "Up to 2 years"), (4, "2 to 5 years"), (6, "5 to 10 years"), (12, "More than 10 years")):
        quotes = best_quotes(f"What is my notice after {years} years of service?", [passage(1, text)], language="en")
        assert quotes is not None
        assert f"“{row} — " in quotes.text.splitlines()[0], quotes.text


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "What is the notice after six years?"),
        ("nl", "Wat is de opzegtermijn na zes jaar?"),
        ("de", "Wie lang ist die Kündigungsfrist nach sechs Jahren?"),
        ("fr", "Quel est le préavis après six ans ?"),
        ("it", "Quanto è il preavviso dopo sei anni?"),
        ("pl", "Ile trwa wypowiedzenie po sześciu latach?"),
        ("tr", "Altı yıldan sonra ihbar süresi ne kadar?"),
    ],
)
def test_years_in_words_find_their_row(language: str, question: str) -> None:
    text = (
        "Years | By you | By us\nUp to 2 years | 1 month | 3 weeks\n2 to 5 years | 2 months | 6 weeks\n"
        "5 to 10 years | 3 months | 9 weeks\n10 years or more | 4 months | 12 weeks"
    )
    quotes = best_quotes(question, [passage(1, text)], language=language)
    assert quotes is not None
    assert quotes.text == "Vacation: “5 to 10 years — By you: 3 months; By us: 9 weeks” [1]"
