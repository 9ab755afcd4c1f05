"""Letters and signs that a PDF draws in parts, and listings of code among tables."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, NumberObject
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from rag.ingestion.loaders.pdf import load_pdf
from rag.types import Page


def page_of(draw: Callable[[Any], None], *, courier_is: str = "") -> Page:
    """Read a drawn page; its font Courier may have another name."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.setFont("Helvetica", 12)
    draw(canvas)
    canvas.save()
    if courier_is:
        writer = PdfWriter(clone_from=PdfReader(buffer))
        fonts: Any = writer.pages[0]["/Resources"]["/Font"]  # type: ignore[index]
        for font in (reference.get_object() for reference in fonts.values()):
            if font["/BaseFont"] == "/Courier":
                font[NameObject("/BaseFont")] = NameObject(f"/{courier_is}")
                names = ArrayObject([NumberObject(ord("h")), NameObject("/tex1"), NameObject("/tex2")])
                font[NameObject("/Encoding")] = DictionaryObject({NameObject("/Differences"): names})
        buffer = io.BytesIO()
        writer.write(buffer)
    return load_pdf(buffer.getvalue()).pages[0]


def put(canvas: Any, x: float, pieces: Sequence[tuple[str, float, float]]) -> None:
    """Draw pieces one after the other; each is moved by so much, as TeX moves an accent over the next letter."""
    for text, across, up in pieces:
        canvas.drawString(x + across, 700 + up, text)
        if not across and not up:
            x += canvas.stringWidth(text)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([("Zo", 0, 0), ("\u00a8", 1.3, 0), ("e", 0, 0)], "Zoë"),
        ([("\u00b4", 1.3, 0), ("el", 0, 0), ("`", 1.3, 0), ("eve", 0, 0)], "élève"),
        ([("\u00a8", 2.3, 3), ("Uber", 0, 0)], "Über"),
        ([("gar", 0, 0), ("\u00b8", 1.3, 0), ("con", 0, 0)], "garçon"),
        ([("a `quoted` word and 5\u00b4", 0, 0)], "a `quoted` word and 5´"),
    ],
    ids=["diaeresis", "acute and grave", "higher", "cedilla", "alone"],
)
def test_an_accent_over_a_letter_is_part_of_it(pieces: Sequence[tuple[str, float, float]], text: str) -> None:
    page = page_of(lambda canvas: put(canvas, 60, pieces))
    assert (page.text, page.warnings) == (text, ())


def test_one_accent_over_a_letter_counts_among_many_alone() -> None:
    def draw(canvas: Any) -> None:
        below(canvas, ["`code` and `more` of it, `quoted` by `signs`"] * 40, 690)
        put(canvas, 60, [("Zo", 0, 0), ("\u00a8", 1.3, 0), ("e", 0, 0)])

    text = page_of(draw).text
    assert "Zoë" in text
    assert text.count("`code`") == 40


def test_a_stroke_through_a_sign_denies_it() -> None:
    def draw(canvas: Any) -> None:
        put(canvas, 60, [("if x ", 0, 0), ("/", 1.8, 0), ("= 5, and in 1/2 or 3 / = 4", 0, 0)])

    assert page_of(draw).text == "if x ≠ 5, and in 1/2 or 3 / = 4"


def test_characters_of_a_symbol_font_without_known_names_are_its_signs() -> None:
    def draw(canvas: Any) -> None:
        canvas.drawString(60, 700, "The option is")
        canvas.setFont("Courier", 12)
        canvas.drawString(150, 700, "h5i")

    assert page_of(draw, courier_is="ABCDEF+CMSY7").text == "The option is ⟨5⟩"
    assert page_of(draw, courier_is="Other").text == "The option is h5i"


CODE = ("if x > 5:      # days", 'print("ok")        ;  return 3', "table   = { 1,   2,   3 }", "done    = 1      ;  x")


def below(canvas: Any, lines: Sequence[str], y: float) -> None:
    for number, line in enumerate(lines):
        canvas.drawString(60, y - 14 * number, line)


def draw_table(canvas: Any, y: float, x: Sequence[float] = (60, 160, 260)) -> None:
    for number, row in enumerate((("Band", "2025", "2026"), ("A", "1,100", "1,200"), ("B", "1,900", "2,000"))):
        for place, cell in zip(x, row, strict=True):
            canvas.drawString(place, y - 14 * number, cell)


def test_a_listing_of_code_is_no_table_and_no_part_of_the_one_above() -> None:
    def draw(canvas: Any) -> None:
        below(canvas, ["The bands are paid by year, and programs show them in this way every month."] * 4, 760)
        draw_table(canvas, 690)
        canvas.setFont("Courier", 10)
        for number, line in enumerate(CODE):
            # Blanks are gaps, as TeX draws them.
            for place, word in ((i, w) for i, w in enumerate(line.split(" ")) if w):
                offset = len(" ".join(line.split(" ")[:place])) + 1 if place else 0
                canvas.drawString(60 + 6 * offset, 648 - 14 * number, word)

    text = page_of(draw).text
    assert "Band | 2025 | 2026\nA | 1,100 | 1,200\nB | 1,900 | 2,000" in text
    assert text.endswith("\n".join(" ".join(line.split()) for line in CODE))


def test_a_page_in_letters_of_one_width_has_its_tables_and_so_have_ruled_ones() -> None:
    def all_fixed(canvas: Any) -> None:
        canvas.setFont("Courier", 10)
        draw_table(canvas, 690)

    def ruled(canvas: Any) -> None:
        below(canvas, ["The bands are paid by year, and programs show them in this way every month."] * 9, 790)
        canvas.setFont("Courier", 10)
        draw_table(canvas, 640, (64, 164, 264))
        canvas.grid([60, 160, 260, 360], [605, 622, 636, 654])

    for draw in (all_fixed, ruled):
        assert "Band | 2025 | 2026\nA | 1,100 | 1,200\nB | 1,900 | 2,000" in page_of(draw).text
