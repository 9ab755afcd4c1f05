"""Two and three columns whose lines are drawn across the page, and what looks like them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import zip_longest

import pytest
from fpdf import FPDF
from reportlab.lib.utils import simpleSplit
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from rag.ingestion.loaders import ExtractionLimits
from rag.ingestion.loaders.page_text import UNSURE_ORDER
from rag.ingestion.loaders.pdf import extract_pages
from rag.types import Page

PROBATION = (
    "Probation lasts for six months from the first working day. During this time either side may end the contract with "
    "two weeks of notice. The line manager gives written feedback after three months and again before the end of the "
    "fifth month, so that both sides know where they stand in time."
)
TRAVEL = (
    "Travel costs are refunded when they are handed in within thirty days. First class rail is allowed on journeys of "
    "more than four hours. Flights need the agreement of the director. Taxi receipts are only accepted at night or "
    "with heavy luggage, and always with the reason written on them."
)
CHILDREN = (
    "Parental leave can be taken until the child is eight years old. The request is made in writing seven weeks before "
    "it begins. During the leave nobody may be dismissed, and the place of work is kept for two years after the child "
    "was born."
)
FONT, SIZE = "Helvetica", 10


def wrapped(text: str, width: float) -> list[str]:
    lines: list[str] = simpleSplit(text, FONT, SIZE, width)
    return lines


def by_reportlab(
    columns: Sequence[Sequence[str]], lefts: Sequence[float], *, by_word: bool = False, distance: float = 12
) -> bytes:
    """A page whose lines are drawn across all columns, each piece or each word by itself."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    canvas.setFont(FONT, SIZE)
    for row, pieces in enumerate(zip_longest(*columns, fillvalue="")):
        for left, piece in zip(lefts, pieces, strict=True):
            x = left
            for word in piece.split() if by_word else [piece]:
                canvas.drawString(x, 730 - distance * row, word)
                x += stringWidth(f"{word} ", FONT, SIZE)
    canvas.save()
    return buffer.getvalue()


def by_fpdf(texts: Sequence[str], width: float, gap: float) -> bytes:
    pdf = FPDF(unit="pt")
    pdf.add_page()
    pdf.set_font("Times", size=SIZE)
    pdf.c_margin = 0
    columns: list[list[str]] = [pdf.multi_cell(width, 12, text, dry_run=True, output="LINES") for text in texts]  # type: ignore[misc]
    for row, pieces in enumerate(zip_longest(*columns, fillvalue="")):
        for place, piece in enumerate(pieces):
            pdf.set_xy(50 + place * (width + gap), 60 + 12 * row)
            pdf.cell(width, 12, str(piece))
    return bytes(pdf.output())


def page_of(content: bytes) -> Page:
    return extract_pages(content, password=None, limits=ExtractionLimits()).pages[0]


def said(content: bytes) -> str:
    return " ".join(page_of(content).text.split())


@pytest.mark.parametrize("by_word", [False, True])
@pytest.mark.parametrize("gap", [4, 14])
@pytest.mark.parametrize("texts", [(PROBATION, TRAVEL), (PROBATION, TRAVEL, CHILDREN)])
def test_columns_drawn_across_are_read_one_after_the_other(texts: Sequence[str], gap: int, *, by_word: bool) -> None:
    width = 460 / len(texts)
    lefts = [60 + place * (width + gap) for place in range(len(texts))]
    page = page_of(by_reportlab([wrapped(text, width) for text in texts], lefts, by_word=by_word))
    assert " ".join(page.text.split()) == " ".join(texts)
    assert page.warnings == ()


@pytest.mark.parametrize("texts", [(PROBATION, TRAVEL), (PROBATION, TRAVEL, CHILDREN)])
def test_columns_of_another_producer_are_read_one_after_the_other(texts: Sequence[str]) -> None:
    assert said(by_fpdf(texts, 460 / len(texts), 6)) == " ".join(texts)


def test_a_word_broken_at_the_end_of_a_column_is_whole() -> None:
    columns = [wrapped(PROBATION, 200), wrapped(TRAVEL, 200)]
    at, line = next((place, line) for place, line in enumerate(columns[1]) if "journeys" in line)
    columns[1][at : at + 1] = [line[: line.index("neys")] + "-", line[line.index("neys") :]]
    assert said(by_reportlab(columns, (60, 300))) == f"{PROBATION} {TRAVEL}"


def test_a_title_and_a_last_line_over_both_columns_stay_around_them() -> None:
    columns = [wrapped(PROBATION, 220), wrapped(TRAVEL, 220)]
    longest = max(map(len, columns))
    columns = [
        ["Rules for everybody who works here, wherever that is and whatever for", *column]
        if not place
        else ["", *column]
        for place, column in enumerate(columns)
    ]
    columns[0] += [""] * (longest + 1 - len(columns[0])) + [
        "These rules are in force from the first of January on, in all offices."
    ]
    text = said(by_reportlab(columns, (60, 290)))
    assert text.startswith("Rules for everybody who works here, wherever that is and whatever for Probation lasts")
    assert text.endswith(
        "reason written on them. These rules are in force from the first of January on, in all offices."
    )


def test_prose_drawn_word_by_word_is_no_columns() -> None:
    text = " ".join([PROBATION, TRAVEL, CHILDREN] * 4)
    assert said(by_reportlab([wrapped(text, 470)], (60,), by_word=True)) == text


def test_names_beside_their_explanations_stay_with_them() -> None:
    names = ["Probation", "", "", "Notice", "", "Feedback", "", "", "Rail"]
    lines = wrapped(PROBATION, 300)
    page = page_of(by_reportlab([names[: len(lines)], lines], (60, 160)))
    assert page.text.index("Probation lasts") < page.text.index("Notice") or " | " in page.text
    assert page.warnings == ()


def test_a_form_in_two_columns_is_read_by_its_lines() -> None:
    left = ["Name:", "Personnel number:", "Date of entry:", "Days of leave taken:", "Signature of employee:"]
    right = ["Department:", "Line manager:", "Place of work:", "Days of leave left:", "Signature of manager:"]
    page = page_of(by_reportlab([left, right], (60, 300)))
    assert [line.replace(" | ", " ") for line in page.text.split("\n")] == [
        f"{one} {other}" for one, other in zip(left, right, strict=True)
    ]
    assert page.warnings == ()


def test_a_table_of_short_cells_is_a_table() -> None:
    columns = [
        ["Kind of leave", "annual leave", "care leave", "study leave", "sick leave", "special leave"],
        [
            "Who may take it",
            "all employees",
            "parents of children",
            "trainees after a year",
            "all employees",
            "managers",
        ],
        ["Who decides", "the line manager", "the personnel office", "the head of training", "nobody", "the director"],
    ]
    lines = page_of(by_reportlab(columns, (60, 200, 340))).text.split("\n")
    assert lines == [" | ".join(row) for row in zip(*columns, strict=True)]


def test_lines_side_by_side_that_may_be_columns_are_in_doubt() -> None:
    left = ["The office opens at eight.", "Guests sign in at the desk.", "Badges are worn by everyone.",
            "Doors are locked at night.", "Alarms are tested on Mondays."]  # fmt: skip
    right = ["Lunch is served from noon on.", "Coffee is free on all floors.", "Dishes go into the machine.",
             "Fridges are emptied on Fridays.", "Fruit is delivered on Tuesday."]  # fmt: skip
    page = page_of(by_reportlab([left, right], (60, 300)))
    assert UNSURE_ORDER in page.warnings
