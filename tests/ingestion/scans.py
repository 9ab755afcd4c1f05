"""Scans for tests: print drawn as pictures, and PDFs that hold nothing else."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Literal

import pypdfium2
from fpdf import FPDF
from fpdf.enums import TableBordersLayout
from PIL import Image, ImageFilter

SANS = Path(str(files("fontpkg_noto_sans"))) / "files" / "NotoSans[wdth,wght].ttf"
ARABIC = Path(str(files("fontpkg_noto_sans_arabic"))) / "files" / "NotoSansArabic[wdth,wght].ttf"
DPI = 200


def print_of(draw: Callable[[FPDF], object], font: Path = SANS) -> Image.Image:
    """A page of A4 with print on it, as a scanner at 200 dots per inch sees it."""
    pdf = FPDF(format="A4")
    pdf.add_font("Sans", "", str(font))
    pdf.set_font("Sans", size=11)
    pdf.add_page()
    if font == ARABIC:
        pdf.set_text_shaping(True)
    draw(pdf)
    page: Image.Image = pypdfium2.PdfDocument(bytes(pdf.output()))[0].render(scale=DPI / 72).to_pil()
    return page.convert("L")


def scan_of(*lines: str, font: Path = SANS) -> Image.Image:
    """A page of paragraphs."""
    return print_of(lambda pdf: pdf.multi_cell(0, 6, "\n\n".join(lines)), font)


def worn(picture: Image.Image, degrees: float = 0.0) -> Image.Image:
    """The page laid down at an angle and scanned a little out of focus."""
    turned = picture.rotate(degrees, fillcolor=255, resample=Image.Resampling.BICUBIC)
    return turned.filter(ImageFilter.GaussianBlur(0.6))


def columns_of(left: str, right: str) -> Image.Image:
    """A page of two columns of text."""

    def draw(pdf: FPDF) -> None:
        pdf.set_xy(10, 20)
        pdf.multi_cell(85, 6, left)
        pdf.set_left_margin(110)
        pdf.set_xy(110, 20)
        pdf.multi_cell(85, 6, right)

    return print_of(draw)


def table_of(rows: Sequence[Sequence[str]], *, border: Literal[0, 1]) -> Image.Image:
    """A page with a sentence and a table under it."""

    def draw(pdf: FPDF) -> None:
        pdf.multi_cell(0, 6, "The table shows what each plan costs a month.", new_x="LMARGIN", new_y="NEXT")
        pdf.ln(4)
        for row in rows:
            for cell in row:
                pdf.cell(42, 9, cell, border=border)
            pdf.ln()

    return print_of(draw)


def png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def pdf_of(*pictures: Image.Image) -> bytes:
    """A PDF whose pages are these pictures."""
    buffer = io.BytesIO()
    pictures[0].save(buffer, "PDF", resolution=DPI, save_all=True, append_images=pictures[1:])
    return buffer.getvalue()


def grid_of(
    rows: Sequence[Sequence[str]],
    *,
    widths: Sequence[int],
    lined: bool = True,
    merged: Mapping[tuple[int, int], tuple[int, int]] | None = None,
) -> Image.Image:
    """A page with a table whose cells wrap; `merged` cells span columns and rows, and begin once."""

    def draw(pdf: FPDF) -> None:
        pdf.multi_cell(0, 6, "The table shows what holds for everyone.", new_x="LMARGIN", new_y="NEXT")
        pdf.ln(4)
        layout = TableBordersLayout.ALL if lined else TableBordersLayout.NONE
        with pdf.table(
            borders_layout=layout, col_widths=tuple(widths), width=sum(widths), align="LEFT", text_align="LEFT",
            first_row_as_headings=False, padding=1,
        ) as table:  # fmt: skip
            for y, texts in enumerate(rows):
                row = table.row()
                for x, text in enumerate(texts):
                    across, down = (merged or {}).get((y, x), (1, 1))
                    row.cell(text, colspan=across, rowspan=down)

    return print_of(draw)
