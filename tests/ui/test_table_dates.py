"""How tables write dates: in the order and with the marks of the reader's language, never with English months."""

from __future__ import annotations

import pytest

from rag import language
from rag.language import table_date


@pytest.mark.parametrize(
    ("spoken", "written"),
    [
        ("en", "D MMM YYYY, HH:mm"),
        ("de", "D.M.YYYY, HH:mm"),
        ("nl", "D-M-YYYY, HH:mm"),
        ("fr", "DD/MM/YYYY, HH:mm"),
        ("ko", "YYYY. M. D., HH:mm"),
        ("ja", "YYYY/M/D, HH:mm"),
        # From the right, whatever the direction of the table: its marks would mix up the numbers.
        ("ar", "\u2067D\u200f/M\u200f/YYYY, HH:mm\u2069"),
    ],
)
def test_a_table_writes_a_date_as_its_reader_does(spoken: str, written: str) -> None:
    with language.speaking(spoken):
        assert table_date(with_time=True) == written


@pytest.mark.parametrize("spoken", [code for code in language.LANGUAGES if code != "en"])
def test_no_language_but_english_names_a_month_in_a_table(spoken: str) -> None:
    with language.speaking(spoken):
        for with_year in (True, False):
            letters = {letter for letter in table_date(with_year=with_year) if letter.isascii() and letter.isalpha()}
            assert letters <= set("DMY")
            assert "MMM" not in table_date(with_year=with_year)
