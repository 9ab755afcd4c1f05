"""Days and years that a question names."""

from __future__ import annotations

from datetime import date

import pytest

from rag.text.dates import dates_in, years_in

TODAY = date(2026, 11, 21)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("What changed since last March?", date(2026, 3, 1), None),
        ("2024년 이후 공지", date(2024, 1, 1), None),
        ("2024년 3월부터 2024년 5월까지", date(2024, 3, 1), date(2024, 5, 31)),
        ("작년 공지 알려줘", date(2025, 1, 1), date(2025, 12, 31)),
        ("Wat is er veranderd sinds maart 2025?", date(2025, 3, 1), None),
        ("Wat gold er vóór 1 juli 2025?", None, date(2025, 6, 30)),
        ("Was gilt seit letztem Jahr?", date(2025, 1, 1), None),
        ("depuis janvier 2024", date(2024, 1, 1), None),
        ("until 2024-06-30", None, date(2024, 6, 30)),
        ("between 2023 and 2025", date(2023, 1, 1), date(2025, 12, 31)),
        ("notices from last month", date(2026, 10, 1), date(2026, 10, 31)),
        ("since December", date(2025, 12, 1), None),
        ("since APRİL 2025", date(2025, 4, 1), None),
        ("since aprıl 2025", date(2025, 4, 1), None),
        ("What were the results of last year?", date(2025, 1, 1), date(2025, 12, 31)),
    ],
)
def test_days_are_read_as_they_are_meant(text: str, first: date | None, last: date | None) -> None:
    found = dates_in(text, TODAY)
    assert found is not None
    assert (found.first, found.last) == (first, last)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "May I work from home?",
        "after 5 years of service",
        "leave from 9 to 5",
        "since 31 February 2024",
        "until 2023 since 2025",
        "Welke regels gelden voor mei?",
    ],
)
def test_what_is_no_day_is_not_read_as_one(text: str) -> None:
    assert dates_in(text, TODAY) is None


def test_years_are_those_named() -> None:
    assert years_in("What did you do in 2024 and FY25-26?", TODAY) == (2024, 2025)
    assert years_in("작년 성과", TODAY) == (2025,)
    assert years_in("I earn 2,024.50 and 12024 points", TODAY) == ()
