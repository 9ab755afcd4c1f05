"""Figures as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from rag.language import speaking
from rag.ui.formats import ago, count, date_time, duration, file_size, money, pages, percent, time_zone

NOW = datetime(2026, 11, 21, 14, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("dollars", "shown"),
    [
        pytest.param(None, "price not known", id="unknown is never zero"),
        (Decimal(0), "$0.00"),
        (Decimal("0.00000001"), "<$0.0001"),
        (Decimal("0.0021"), "$0.0021"),
        (0.0781, "$0.0781"),
        (Decimal("0.99996"), "$1.0000"),
        (Decimal("1.005"), "$1.00"),
        (Decimal("1234.5"), "$1,234.50"),
        pytest.param(Decimal("-0.5"), "-$0.5000", id="a change against the period before"),
    ],
)
def test_money(dollars: Decimal | float | None, shown: str) -> None:
    assert money(dollars) == shown


def test_less_than_the_least_amount_says_so_in_other_languages() -> None:
    for language, shown in (("de", "<0,0001\xa0$"), ("ja", "<$0.0001")):
        with speaking(language):
            assert money(Decimal("0.00000001")) == shown


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (None, "–"),
        (0, "0 ms"),
        (999.4, "999 ms"),
        (999.6, "1.0 s"),
        (3200, "3.2 s"),
        (59_949, "59.9 s"),
        (59_960, "1 min"),
        (125_000, "2 min 5 s"),
        (3_600_000, "1 h"),
        (3_840_000, "1 h 4 min"),
    ],
)
def test_duration(milliseconds: float | None, shown: str) -> None:
    assert duration(milliseconds) == shown


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (14_400, "14 KB"), (1_048_576, "1.0 MB"), (3 * 1024**3, "3.0 GB")],
)
def test_file_size(size_bytes: int, shown: str) -> None:
    assert file_size(size_bytes) == shown


def test_counts_pages_and_shares() -> None:
    assert [count(0, "page"), count(1, "page"), count(1200, "query", "queries")] == [
        "0 pages",
        "1 page",
        "1,200 queries",
    ]
    assert [pages(0, 0), pages(12, 12), pages(12, 13)] == ["", "p. 12", "pp. 12–13"]
    assert [percent(None), percent(0.7718)] == ["–", "77.2%"]


def test_a_time_is_shown_in_the_visitors_zone_and_in_utc_when_it_is_unknown() -> None:
    assert date_time(None) == "–"
    assert date_time(NOW) == "21 Nov 2026, 14:05"
    assert date_time(NOW, timezone(timedelta(hours=9))) == "21 Nov 2026, 23:05"
    assert time_zone(None) is UTC
    assert time_zone("../../etc/passwd") is UTC
    assert time_zone("No/Where") is UTC
    assert date_time(NOW, time_zone("Asia/Seoul")) == "21 Nov 2026, 23:05"


@pytest.mark.parametrize(
    ("back", "shown"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=5), "5 min ago"),
        (timedelta(hours=3), "3 h ago"),
        (timedelta(days=1), "1 day ago"),
        (timedelta(days=8), "13 Nov 2026"),
    ],
)
def test_ago(back: timedelta, shown: str) -> None:
    assert ago(NOW - back, NOW) == shown
