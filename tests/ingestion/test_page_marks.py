from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Literal
from uuid import uuid4

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.annotations import FreeText, Text
from reportlab.lib import colors
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Table

from rag.ingestion.loaders.page_text import PICTURED_PAGE
from rag.ingestion.loaders.pdf import load_pdf
from rag.ingestion.loaders.values import page_from_json
from rag.types import DocumentPage, Page, PageMark
from rag.ui.document_pages import marks_of
from tests import hostile

WIDTH, HEIGHT = 600, 800
ROWS = [["Band", "Leave", "Notice"], ["A", "25 days", "1 month"], ["B", "30 days", "2 months"]]


def drawn(*draw: Callable[[Any], None]) -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(WIDTH, HEIGHT), invariant=1)
    for page in draw:
        canvas.setFont("Helvetica", 11)
        page(canvas)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def pages_of(content: bytes) -> Sequence[Page]:
    return load_pdf(content).pages


def marks(content: bytes, kind: str) -> list[PageMark]:
    found = pages_of(content)[0].marks
    assert found is not None
    return [mark for mark in found if mark.kind == kind]


def draw_table(canvas: Any, x: float = 60, y: float = 600) -> None:
    table = Table(ROWS, colWidths=100, rowHeights=20, style=[("GRID", (0, 0), (-1, -1), 1, colors.black)])
    table.wrapOn(canvas, WIDTH, HEIGHT)
    table.drawOn(canvas, x, y)


def draw_text(canvas: Any) -> None:
    for line in range(8):
        canvas.drawString(60, 500 - 14 * line, "Everybody has leave in every year, as the table above says.")


def turned_page(content: bytes, degrees: int) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(content)))
    writer.pages[0].rotate(degrees)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def is_near(mark: PageMark, *edges: float) -> bool:
    found = (mark.left * WIDTH, mark.top * HEIGHT, mark.right * WIDTH, mark.bottom * HEIGHT)
    return found == pytest.approx(edges, abs=8)


def test_a_table_is_marked_where_it_is_drawn() -> None:
    (table,) = marks(drawn(draw_table), "table")
    assert is_near(table, 60, HEIGHT - 660, 360, HEIGHT - 600)


def test_words_in_columns_that_are_read_as_text_are_no_table() -> None:
    assert marks(drawn(draw_text), "table") == []


def test_the_marks_of_a_turned_page_are_where_it_shows_them() -> None:
    (table,) = marks(turned_page(drawn(draw_table), 90), "table")
    # A quarter clockwise: what was at the left is on top, and what was at the foot is at the left.
    assert (table.left, table.right) == pytest.approx((600 / HEIGHT, 660 / HEIGHT), abs=0.01)
    assert (table.top, table.bottom) == pytest.approx((60 / WIDTH, 360 / WIDTH), abs=0.01)


def test_a_table_on_its_side_is_marked_where_it_is_drawn() -> None:
    def draw(canvas: Any) -> None:
        canvas.translate(400, 200)
        canvas.rotate(90)
        draw_table(canvas, 0, 0)

    (table,) = marks(drawn(draw), "table")
    assert is_near(table, 340, HEIGHT - 500, 400, HEIGHT - 200)


def test_the_marks_of_a_cropped_page_are_parts_of_what_is_shown() -> None:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(drawn(draw_table))))
    writer.pages[0].cropbox.lower_left = (50, 400)
    buffer = io.BytesIO()
    writer.write(buffer)
    (table,) = marks(buffer.getvalue(), "table")
    assert (table.left, table.bottom) == pytest.approx((10 / (WIDTH - 50), 200 / (HEIGHT - 400)), abs=0.02)


def test_hidden_words_are_marked_as_left_out_line_by_line() -> None:
    def draw(canvas: Any) -> None:
        draw_text(canvas)
        canvas.setFillColor(colors.white)
        canvas.drawString(60, 300, "Nobody sees this line")
        canvas.drawString(60, 280, "nor the one below it")

    first, second = marks(drawn(draw), "left out")
    assert is_near(first, 60, HEIGHT - 310, 170, HEIGHT - 298)
    assert second.top > first.top


def test_struck_words_alone_are_marked_as_left_out() -> None:
    def draw(canvas: Any) -> None:
        draw_text(canvas)
        canvas.drawString(60, 300, "The day off is 5 July 12 July.")
        left = 60 + canvas.stringWidth("The day off is ", "Helvetica", 11)
        right = left + canvas.stringWidth("5 July", "Helvetica", 11)
        canvas.line(left, 303.5, right, 303.5)

    (mark,) = marks(drawn(draw), "left out")
    assert is_near(mark, 129, HEIGHT - 310, 158, HEIGHT - 298)


def test_running_heads_are_marked_as_left_out_and_the_same_words_elsewhere_are_not() -> None:
    def draw(canvas: Any) -> None:
        canvas.drawString(60, 770, "Handbook of leave")
        own = ("leave", "notice", "travel", "pay")[canvas.getPageNumber() - 1]
        for line in range(8):
            canvas.drawString(60, 500 - 14 * line, f"Everybody asks their manager for {own} in writing, rule {line}.")
            if line == 4:
                canvas.drawString(360, 500 - 14 * line, "Handbook of leave")

    read = pages_of(drawn(draw, draw, draw, draw))
    for page in read:
        (mark,) = page.marks or ()
        assert mark.kind == "left out"
        assert is_near(mark, 60, HEIGHT - 778, 150, HEIGHT - 767)


def test_a_heading_of_two_lines_has_one_mark() -> None:
    def draw(canvas: Any) -> None:
        canvas.setFont("Helvetica-Bold", 18)
        canvas.drawString(60, 700, "Leave in the first year and in")
        canvas.drawString(60, 678, "The years after it")
        canvas.setFont("Helvetica", 11)
        draw_text(canvas)

    (mark,) = marks(drawn(draw), "heading")
    assert is_near(mark, 60, HEIGHT - 714, 302, HEIGHT - 674)


def test_the_headings_of_an_outline_are_marked_where_their_words_are() -> None:
    def draw(canvas: Any) -> None:
        canvas.bookmarkPage("leave")
        canvas.addOutlineEntry("Leave", "leave")
        canvas.drawString(60, 700, "1. Leave")
        draw_text(canvas)

    (mark,) = marks(drawn(draw), "heading")
    assert is_near(mark, 60, HEIGHT - 708, 105, HEIGHT - 698)


def test_typed_notes_are_notes_and_comments_are_left_out() -> None:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(drawn(draw_text))))
    writer.add_annotation(0, FreeText(text="Not in 2026", rect=(60, 300, 160, 320)))
    writer.add_annotation(0, Text(text="Is this right?", rect=(400, 300, 420, 320)))
    buffer = io.BytesIO()
    writer.write(buffer)
    (note,) = marks(buffer.getvalue(), "note")
    (comment,) = marks(buffer.getvalue(), "left out")
    assert is_near(note, 60, HEIGHT - 320, 160, HEIGHT - 300)
    assert is_near(comment, 400, HEIGHT - 320, 420, HEIGHT - 300)


@pytest.mark.parametrize("content", [hostile.scanned_page(), hostile.pictured_table()], ids=["scan", "beside text"])
def test_pictures_that_wait_for_recognition_are_marked(content: bytes) -> None:
    assert len(marks(content, "picture")) == 1


def test_an_empty_page_has_no_picture_to_mark() -> None:
    assert marks(hostile.blank_pages(1), "picture") == []


def test_a_picture_counts_as_left_out_until_it_is_recognised() -> None:
    def kinds(method: Literal["text", "ocr", "none"], *warnings: str) -> list[str] | None:
        found = marks_of(
            DocumentPage(
                document_id=uuid4(), number=1, text="", characters=0, method=method, language="", label="",
                warnings=list(warnings), marks=[asdict(PageMark("picture", 0.1, 0.1, 0.2, 0.2))],
            )
        )  # fmt: skip
        return None if found is None else [mark.kind for mark in found]

    assert kinds("none") == kinds("text", PICTURED_PAGE) == ["left out"]
    assert kinds("text", "Text + recognised") == []
    assert kinds("ocr") is None


def test_what_a_reader_could_not_have_marked_is_not_taken() -> None:
    good = {"kind": "table", "left": 0.1, "top": 0.1, "right": 0.2, "bottom": 0.2}
    page = {"number": 1, "text": "", "method": "text", "label": "", "warnings": []}
    bad = [{**good, "kind": "<b>"}, {**good, "left": float("nan")}, {**good, "right": 3.0}]
    assert page_from_json({**page, "marks": [good, *bad]}).marks == (PageMark("table", 0.1, 0.1, 0.2, 0.2),)
    assert page_from_json(page).marks is None
