"""Tables in a text: rows, heads and cells of several lines."""

from __future__ import annotations

import pytest

from rag.text.tables import lines_of, row_in_words, tables_in


def test_heads_are_told_from_rows() -> None:
    assert tables_in("Monthly fee | £10\nCrowns | 50 %")[0].heads is None
    assert tables_in("Phone | 7700\nFax | 7701")[0].heads is None
    (table,) = tables_in("| Kind | Days |\n| --- | ---: |\n| Paid leave | 25 |")
    assert table.heads is not None
    assert row_in_words(table.heads.cells, table.rows[0].cells) == "Paid leave — Days: 25"
    assert tables_in("Home | News | Contact") == ()


@pytest.mark.parametrize(
    "rows",
    [
        "New Year | January 1\nLabour Day | May 1\nAll Saints | November 1\nGood Friday | before Easter",
        "Neujahr | 1. Januar\nTag der Arbeit | 1. Mai\nTag der Einheit | 3. Oktober",
        "신정 | 1월 1일\n삼일절 | 3월 1일\n성탄절 | 12월 25일",
        "Sales | Anna | anna@example.com\nPayroll | Ben | ben@example.com\nReception | Cleo | cleo@example.com",
        "Handbook | new | https://example.com/a\nRules | old | https://example.com/b",
    ],
)
def test_a_first_row_of_dates_or_addresses_is_a_row(rows: str) -> None:
    (table,) = tables_in(rows)
    assert table.heads is None


@pytest.mark.parametrize(
    "rows",
    [
        "Service | 1 year of service | 5 years of service\nLeave | 20 days a year | 25 days a year",
        "Team | 2025 | 2026\nSales | 2019 | 2020\nPayroll | 31 | 33",
        "Level | Plan 1 | Plan 2\nDental | Room 4 | Room 5\nVision | Room 6 | Room 7",
        "Holiday | Date in 2026 | Note\nNew Year | January 1 | –\nLabour Day | May 1 | –",
        "Years Experience | Technical\nMore than 5 | $120k\nLess than 5 | $100k",
    ],
)
def test_heads_with_figures_stay_heads(rows: str) -> None:
    (table,) = tables_in(rows)
    assert table.heads is not None


def test_a_title_over_the_whole_table_is_a_line_of_its_own() -> None:
    grid: list[list[str | None]] = [
        ["Leave", None, None],
        ["Kind", "Days", "Paid"],
        ["Care", "10", "yes"],
        ["Other", None, None],
        ["Move", "1", "no"],
    ]
    assert lines_of(grid, 2) == [
        "Leave", "Kind | Days | Paid", "Care | 10 | yes", "Other", "Kind | Days | Paid", "Move | 1 | no"
    ]  # fmt: skip


def test_cells_of_several_lines_are_joined_to_the_row_they_make_up() -> None:
    text = (
        "Kind | Offence | Mitigated | Basic\n"
        "1 | Driving without a licence | up to 8 months\n£100 to £200 2) | 1 year\nor £700 3)\n"
        "2 | Driving after drinking | 6 to 10 months\n£300 to £600 2) | 1 to 2 years\n"
        "3 | Refusing the test | 6 months | 8 months\n"
        "What is said below the table is no part of it."
    )
    (table,) = tables_in(text)
    assert table.heads is not None
    assert [row.cells for row in table.rows] == [
        ("1", "Driving without a licence", "up to 8 months £100 to £200 2)", "1 year or £700 3)"),
        ("2", "Driving after drinking", "6 to 10 months £300 to £600 2)", "1 to 2 years"),
        ("3", "Refusing the test", "6 months", "8 months"),
    ]
    assert text[table.end :].strip() == "What is said below the table is no part of it."


def test_lines_that_make_up_no_row_stay_what_they_are() -> None:
    markdown = "| a | b | c |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n| 4 | 5 |\n| 6 | 7 |"
    assert [len(row.cells) for table in tables_in(markdown) for row in table.rows] == [3, 2, 2]
    assert [row.cells for table in tables_in("a | b | c\n1 | 2 | 3\n4 | 5\n\n6 | 7") for row in table.rows] == [
        ("1", "2", "3")
    ]
