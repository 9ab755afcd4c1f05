from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, NumberObject
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

from rag.ingestion.loaders.pdf import load_pdf
from rag.types import Page

STYLE = getSampleStyleSheet()["Normal"]


def page_of(content: bytes) -> Page:
    return load_pdf(content).pages[0]


def drawn(draw: Callable[[Any], None]) -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    canvas.setFont("Helvetica", 12)
    draw(canvas)
    canvas.save()
    return buffer.getvalue()


def built(*parts: Any) -> bytes:
    buffer = io.BytesIO()
    SimpleDocTemplate(buffer).build(list(parts))
    return buffer.getvalue()


def test_struck_words_are_left_out_and_named() -> None:
    page = page_of(built(Paragraph("The day off is <strike>5 July</strike> 12 July. Everybody is free.", STYLE)))
    assert page.text == "The day off is 12 July. Everybody is free."
    assert page.warnings == ("Struck-through text was left out: “5 July”.",)


def test_struck_lines_of_a_paragraph_are_left_out() -> None:
    old = "the old rule holds for everybody in every office of the company " * 3
    page = page_of(built(Paragraph(f"From May on <strike>{old}</strike> nobody works on Fridays.", STYLE)))
    assert " ".join(page.text.split()) == "From May on nobody works on Fridays."
    (warning,) = page.warnings
    assert warning.startswith("Struck-through text was left out: “the old rule holds for everybody")


def test_a_struck_value_in_a_table_is_left_out_of_its_cell() -> None:
    rows = [["Band", "Leave"], ["A", Paragraph("<strike>25</strike> 30 days", STYLE)], ["B", "20 days"]]
    page = page_of(built(Table(rows, style=[("GRID", (0, 0), (-1, -1), 1, colors.black)])))
    assert page.text.split("\n") == ["Band | Leave", "A | 30 days", "B | 20 days"]
    assert page.warnings == ("Struck-through text was left out: “25”.",)


def test_a_thin_filled_box_strikes_words_out() -> None:
    def draw(canvas: Any) -> None:
        canvas.drawString(60, 700, "Ask for 480 euros a year.")
        left = 60 + canvas.stringWidth("Ask for ", "Helvetica", 12)
        canvas.rect(left, 703, canvas.stringWidth("480 euros", "Helvetica", 12), 0.8, stroke=0, fill=1)

    page = page_of(drawn(draw))
    assert (page.text, page.warnings) == ("Ask for a year.", ("Struck-through text was left out: “480 euros”.",))


def underlined(canvas: Any) -> None:
    canvas.line(60, 698.5, 60 + canvas.stringWidth("Everyone has 25 days.", "Helvetica", 12), 698.5)


def beside(canvas: Any) -> None:
    canvas.line(20, 704, 57, 704)
    canvas.line(200, 704, 400, 704)


def across(canvas: Any) -> None:
    canvas.line(20, 704, 560, 704)


def white(canvas: Any) -> None:
    canvas.setStrokeGray(1)
    canvas.line(60, 704, 60 + canvas.stringWidth("Everyone has 25 days.", "Helvetica", 12), 704)


@pytest.mark.parametrize("line", [underlined, beside, across, white])
def test_other_lines_strike_nothing_out(line: Callable[[Any], None]) -> None:
    def draw(canvas: Any) -> None:
        canvas.drawString(60, 700, "Everyone has 25 days.")
        canvas.drawString(60, 686, "Others have 20 days.")
        line(canvas)

    page = page_of(drawn(draw))
    assert (page.text.split("\n"), page.warnings) == (["Everyone has 25 days.", "Others have 20 days."], ())


def test_an_annotation_strikes_words_out() -> None:
    content = drawn(lambda canvas: canvas.drawString(60, 700, "Until 5 July 12 July."))
    left = 60 + Canvas(io.BytesIO()).stringWidth("Until ", "Helvetica", 12)
    right = left + Canvas(io.BytesIO()).stringWidth("5 July", "Helvetica", 12)
    quad = (left, 711, right, 711, left, 697, right, 697)
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(content)))
    entries = {
        "/Type": NameObject("/Annot"),
        "/Subtype": NameObject("/StrikeOut"),
        "/Rect": ArrayObject(FloatObject(edge) for edge in (left, 697, right, 711)),
        "/QuadPoints": ArrayObject(FloatObject(edge) for edge in quad),
        "/F": NumberObject(4),
    }
    writer.add_annotation(0, DictionaryObject({NameObject(key): value for key, value in entries.items()}))
    buffer = io.BytesIO()
    writer.write(buffer)
    page = page_of(buffer.getvalue())
    assert (page.text, page.warnings) == ("Until 12 July.", ("Struck-through text was left out: “5 July”.",))
