"""Figures and dates in texts, and which of a claim's are missing in its sources."""

from __future__ import annotations

import pytest

from rag.text.figures import days, figures, missing_days, missing_figures


def test_figures_know_months_number_words_and_other_digits() -> None:
    assert {"7", "2026", "1"} <= figures("1 July 2026")
    assert "25" in figures("twenty-five")
    assert "15" in figures("١٥ يوما")
    assert missing_figures("3 and 4", figures("three")) == ["4"]


def test_a_number_with_both_marks_is_read_by_the_last_one() -> None:
    assert figures("1,500.25") == figures("1.500,25") == {"1500.25"}


@pytest.mark.parametrize(
    ("text", "language", "known"),
    [
        pytest.param("Leave begins on Monday", "en", set(), id="a preposition"),
        pytest.param("Yılda on gün izin", "tr", {"10"}, id="ten"),
        pytest.param("Expenses are due at once", "en", {"1"}, id="English"),
        pytest.param("due settimane di ferie", "it", {"2"}, id="Italian"),
        pytest.param("once días de permiso", "es", {"11"}, id="Spanish"),
        pytest.param("Er sagt, das sei so", "de", set(), id="a verb"),
        pytest.param("sei giorni", "it", {"6"}, id="six"),
        pytest.param("Er is een regel", "nl", set(), id="an article"),
        pytest.param("Meld het binnen een week", "nl", {"1"}, id="one week"),
        pytest.param("nach einem Monat", "de", {"1"}, id="one month"),
        pytest.param("up to an hour a day", "en", {"1"}, id="one hour"),
        pytest.param("Leave begins on Monday, after three weeks", "", {"3"}, id="no language"),
    ],
)
def test_a_word_is_a_number_in_its_own_language(text: str, language: str, known: set[str]) -> None:
    assert figures(text, language) == known


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("1 July 2026", (2026, 7, 1)),
        ("July 1st, 2026", (2026, 7, 1)),
        ("2026-07-01", (2026, 7, 1)),
        ("1 juli 2026", (2026, 7, 1)),
        ("le 1er juillet 2026", (2026, 7, 1)),
        ("1 de julio de 2026", (2026, 7, 1)),
        ("2026년 7월 1일", (2026, 7, 1)),
        ("2026年7月1日", (2026, 7, 1)),
        ("1 يوليو 2026", (2026, 7, 1)),
        ("from 1 to 5 July", (None, 7, 1)),
        ("July 2026", (2026, 7, None)),
        ("due 1stJuly 2026", (2026, 7, 1)),
        ("1 KASIM 2026", (2026, 11, 1)),
        ("3 EKİM 2026", (2026, 10, 3)),
    ],
)
def test_dates_are_read_however_they_are_written(text: str, day: tuple[int | None, int, int | None]) -> None:
    assert day in days(text)


@pytest.mark.parametrize("text", ["grade 5 may apply", "you may march on", "3 months", "12개월간", "in 2026"])
def test_what_is_no_date_is_none(text: str) -> None:
    assert not days(text)


def test_a_date_of_two_readings_is_known_by_either() -> None:
    assert missing_days("by 03/04/2026", days("3 April 2026")) == []
    assert missing_days("by 03/04/2026", days("4 March 2026")) == []
    assert missing_days("by 03/04/2026", days("5 March 2026"))


def test_a_date_of_another_year_is_another_and_one_without_a_year_is_not() -> None:
    assert missing_days("by 1 July 2027", days("1 July 2026")) == [(2027, 7, 1)]
    assert missing_days("by 1 July", days("1 July 2026")) == []
