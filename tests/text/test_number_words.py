"""Numbers written as words."""

from __future__ import annotations

import pytest

from rag.text.number_words import number_words, written_numbers, years_written


@pytest.mark.parametrize(
    ("text", "language", "numbers"),
    [
        ("twenty-five days", "en", {20, 5, 25}),
        ("One-half of Three months", "en", {0.5, 1, 3}),
        ("drei Wochen", "de", {3}),
        ("vingt jours", "fr", {20}),
        ("Yılda on gün", "tr", {10}),
        ("on Monday", "en", set()),
        ("an hour", "en", {1}),
        ("an office", "en", set()),
    ],
)
def test_words_are_read_in_their_language(text: str, language: str, numbers: set[float]) -> None:
    assert set(written_numbers(text, language)) >= numbers
    assert set(written_numbers(text, language)) == numbers


def test_without_a_language_only_unambiguous_words_are_numbers() -> None:
    known = number_words("")
    assert known["drei"] == 3
    assert known["trois"] == 3
    assert not {"on", "due", "sei", "once"} & known.keys()
    assert number_words("xx") == {}


@pytest.mark.parametrize(
    ("word", "language", "years"), [("fünf", "de", 5), ("ein", "de", 1), ("een", "nl", 1), ("few", "en", 0)]
)
def test_the_number_of_years_may_be_an_article(word: str, language: str, years: float) -> None:
    assert years_written(word, language) == years
