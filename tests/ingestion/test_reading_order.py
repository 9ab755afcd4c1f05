"""The order in which recognised lines are read, and the spaces between recognised letters."""

from __future__ import annotations

import pytest

from rag.ingestion.loaders.page_tables import Word
from rag.ingestion.loaders.reading_order import text_in_order, with_spaces


def line(text: str, left: float, top: float) -> Word:
    return Word(text, (left, -top - 12, left + 6 * len(text), -top))


def test_a_form_is_read_row_by_row() -> None:
    rows = [("Name", "Ada Moore"), ("Team", "People"), ("Office", "Leipzig, Main Street 5"), ("Since", "May 2020")]
    lines = [line(text, 10 + 300 * place, 20 * n) for n, row in enumerate(rows) for place, text in enumerate(row)]
    text = text_in_order(lines)
    assert [row.replace(" | ", " ") for row in text.split("\n")] == [" ".join(row) for row in rows]


def test_a_heading_across_two_columns_comes_first_and_a_gap_ends_a_paragraph() -> None:
    heading = line("Everything about leave, sick pay and the rest of the working year in the office", 10, 0)
    left = [line(f"left column line {n} with some words", 10, 40 + 16 * n) for n in range(4)]
    right = [line(f"right column line {n} with some words", 320, 40 + 16 * n) for n in range(4)]
    end = line("A line across the whole of the page that ends it, with its own words to the right edge", 10, 200)
    said = text_in_order([*right, end, *left, heading])
    assert said.split("\n\n") == [
        heading.text,
        "\n".join(word.text for word in left),
        "\n".join(word.text for word in right),
        end.text,
    ]


def columns(distances: list[int]) -> list[int]:
    return [sum(distances[:n]) for n in range(len(distances) + 1)]


@pytest.mark.parametrize(
    ("text", "distances", "expected"),
    [
        ("erzwangzudem", [2, 2, 3, 4, 2, 3, 5, 2, 3, 3, 3], "erzwang zudem"),
        ("0,38€", [2, 2, 2, 5], "0,38 €"),
        ("Coleman", [3, 2, 2, 3, 5, 2], "Coleman"),
        ("HANDBOOK", [5, 5, 5, 5, 5, 5, 5], "HANDBOOK"),
        ("毎年二十日", [6, 6, 9, 6], "毎年二十日"),
        ("§", [], "§"),
    ],
    ids=["words", "sign", "wide_letter", "wide_print", "unspaced_script", "one_letter"],
)
def test_a_space_that_the_model_saw_and_did_not_write_is_written(
    text: str, distances: list[int], expected: str
) -> None:
    assert with_spaces(text, [list(text)], [columns(distances)]) == expected


def test_a_line_whose_letters_do_not_add_up_stays_as_it_is() -> None:
    assert with_spaces("paid leave", [list("paid")], [columns([2, 9, 2])]) == "paid leave"


def test_nothing_has_no_text() -> None:
    assert text_in_order([]) == ""
