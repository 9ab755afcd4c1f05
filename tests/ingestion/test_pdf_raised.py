from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

from rag.ingestion.loaders.pdf import load_pdf
from rag.types import Page

STYLE = getSampleStyleSheet()["Normal"]


def page_of(content: bytes) -> Page:
    return load_pdf(content).pages[0]


def paragraph(text: str) -> Paragraph:
    """A paragraph of 10 points with small letters of 7 in <sup> and <sub>."""
    sized = text.replace("<sup>", '<super size="7">').replace("</sup>", "</super>")
    return Paragraph(sized.replace("<sub>", '<sub size="7">'), STYLE)


def read(*parts: str | Table) -> str:
    buffer = io.BytesIO()
    SimpleDocTemplate(buffer).build([paragraph(part) if isinstance(part, str) else part for part in parts])
    page = page_of(buffer.getvalue())
    assert page.warnings == ()
    return page.text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("Everybody has 30<sup>1</sup> days of leave.", "Everybody has 30 days of leave ¹."),
        ("All have 25 days<sup>2</sup> a year. Some have 5.", "All have 25 days a year ². Some have 5."),
        ("The allowance is 480<sup>*</sup> euros.", "The allowance is 480 euros *."),
        ("The end.<sup>4</sup>", "The end ⁴."),
        ("A room of 20 m<sup>2</sup> holds 10<sup>3</sup> files.", "A room of 20 m² holds 10³ files."),
        ("CO<sub>2</sub> and H<sub>2</sub>O are measured.", "CO₂ and H₂O are measured."),
        ("From the 1<sup>st</sup> of May.", "From the 1st of May."),
        ("A shift lasts 2<sup>1</sup>/<sub>2</sub> hours.", "A shift lasts 2 1/2 hours."),
        ("Open from 8<sup>00</sup> to 17<sup>30</sup> Uhr.", "Open from 8:00 to 17:30 Uhr."),
        ("Core time 9<sup>15</sup>–15<sup>00</sup> h.", "Core time 9:15–15:00 h."),
        ("Lunch costs 5<sup>99</sup> EUR, coffee $1<sup>50</sup> a cup.", "Lunch costs 5,99 EUR, coffee $1.50 a cup."),
        ("There are 20<sup>12</sup> of them.", "There are 20 of them ¹²."),
        ("<sup>1</sup> Part-time staff get a share.", "¹ Part-time staff get a share."),
    ],
)
def test_a_small_letter_beside_a_word_or_number_is_told_from_it(written: str, text: str) -> None:
    assert read(written) == text


def test_a_mark_goes_to_the_end_of_a_sentence_of_several_lines() -> None:
    words = "and all of this holds for everybody in every office of the company " * 2
    lines = read(f"Employees have a leave of 30<sup>1</sup> days {words}too. Others have 20<sup>2</sup>.").split("\n")
    assert "30 days" in lines[0]
    assert " ".join(lines).endswith("too ¹. Others have 20 ².")


def test_a_mark_in_a_table_stays_in_its_cell() -> None:
    rows = [["Band", "Leave"], ["A", paragraph("30<sup>1</sup> days")], ["B", paragraph("a room of 25 m<sup>2</sup>")]]
    table = Table(rows, style=[("GRID", (0, 0), (-1, -1), 1, colors.black)])
    assert read("Everybody has 20<sup>2</sup> days.", table).split("\n") == [
        "Everybody has 20 days ².",
        "Band | Leave",
        "A | 30 ¹ days",
        "B | a room of 25 m²",
    ]


def drawn(pieces: Sequence[tuple[float, float, float, str]]) -> str:
    """The text of a page with pieces: place, size and text."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    for x, y, size, text in pieces:
        canvas.setFont("Helvetica", size)
        canvas.drawString(x, y, text)
    canvas.save()
    return page_of(buffer.getvalue()).text


def test_large_first_letters_and_small_capitals_are_no_marks() -> None:
    assert drawn([(60, 700, 24, "T"), (75, 706, 10, "his rule holds"), (60, 680, 10, "for all.")]).startswith(
        "This rule"
    )
    assert drawn([(60, 700, 12, "S"), (68, 700, 8.5, "ECTION"), (110, 700, 12, "1")]) == "SECTION 1"
