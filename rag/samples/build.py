"""Build the sample PDFs from the texts beside this file: `python -m rag.samples.build --korean-font NanumGothic.ttf`.

The same texts and font give the same bytes, so a rebuilt PDF changes only with its text. Needs reportlab
(tests/requirements.txt) and a Korean TrueType font with the bold font in a sibling file (Debian: fonts-nanum).
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from reportlab.lib.colors import Color, HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import (
    BaseDocTemplate,
    CondPageBreak,
    Flowable,
    Frame,
    HRFlowable,
    PageTemplate,
    Paragraph,
)

from rag.samples import FOLDER, SAMPLES, Sample

TEXTS = FOLDER / "texts"
COMPANY = "Ottermere Paper & Bindery"
INK, QUIET, ACCENT = HexColor("#1f2430"), HexColor("#5f6673"), HexColor("#2f5d50")
RULE, HEADER_ROW = HexColor("#cfd4da"), HexColor("#eef2f0")
PAGE_LABEL = {"en": "Page {}", "nl": "Pagina {}", "ko": "{}쪽"}
SIDE, TOP, BOTTOM = 24 * mm, 22 * mm, 24 * mm


@dataclass(frozen=True)
class Typeface:
    """The names of two registered fonts (normal and bold), and the line spacing in units of the font size."""

    regular: str
    bold: str
    leading: float = 1.42

    def style(self, name: str, size: float, *, bold: bool = False, color: Color = INK, **more: Any) -> ParagraphStyle:
        font = self.bold if bold else self.regular
        leading = more.pop("leading", size * self.leading)
        return ParagraphStyle(name, fontName=font, fontSize=size, leading=leading, textColor=color, **more)


class SampleDocument(BaseDocTemplate):  # type: ignore[misc]
    """A PDF with a footer on each page, and a bookmark for every heading."""

    def __init__(self, path: Path, sample: Sample, face: Typeface) -> None:
        super().__init__(
            str(path), pagesize=A4, invariant=1, lang=sample.language, title=sample.title, author="People Team",
            subject=f"Sample document of the invented company {COMPANY}", creator="rag.samples.build",
        )  # fmt: skip
        self.sample, self.face = sample, face
        width, height = A4
        frame = Frame(SIDE, BOTTOM, width - 2 * SIDE, height - TOP - BOTTOM, 0, 0, 0, 0)
        self.addPageTemplates(PageTemplate(frames=[frame], onPageEnd=self.draw_footer))

    def draw_footer(self, canvas: Any, _document: BaseDocTemplate) -> None:
        width, baseline = A4[0], 13 * mm
        canvas.saveState()
        canvas.setStrokeColor(RULE)
        canvas.setLineWidth(0.5)
        canvas.line(SIDE, baseline + 5 * mm, width - SIDE, baseline + 5 * mm)
        canvas.setFont(self.face.regular, 8)
        canvas.setFillColor(QUIET)
        canvas.drawString(SIDE, baseline, f"{COMPANY} · {self.sample.title}")
        canvas.drawRightString(width - SIDE, baseline, PAGE_LABEL[self.sample.language].format(canvas.getPageNumber()))
        canvas.restoreState()

    def afterFlowable(self, flowable: Flowable) -> None:
        level = getattr(flowable, "outline_level", None)
        if level is not None:
            key = f"heading-{self.seq.nextf('heading')}"
            self.canv.bookmarkPage(key)
            self.canv.addOutlineEntry(flowable.getPlainText(), key, level=level, closed=level > 0)


class RuledTable(Flowable):  # type: ignore[misc]
    """A table with single-line cells and a heading row, kept on one page.

    Each row is a single text object: text extraction gives a line per row. From reportlab's table, extraction would
    give a line per cell.
    """

    size, row_height, padding = 9, 18, 6
    spaceBefore, spaceAfter = 2, 10

    def __init__(self, rows: list[list[str]], face: Typeface, width: float) -> None:
        super().__init__()
        self.rows, self.face = rows, face
        columns = zip(*rows, strict=True)
        needed = [max(stringWidth(cell, face.bold, self.size) for cell in column) + 16 for column in columns]
        if sum(needed) > width:
            raise SystemExit(f"The table that begins with {rows[0]} is {sum(needed) - width:.0f} points too wide.")
        slack = (width - sum(needed)) / len(needed)
        self.lefts = [sum(needed[:n]) + n * slack + self.padding for n in range(len(needed))]
        self.width, self.height = width, self.row_height * len(rows)

    def wrap(self, _width: float, _height: float) -> tuple[float, float]:
        return self.width, self.height

    def draw(self) -> None:
        canvas = self.canv
        canvas.setFillColor(HEADER_ROW)
        canvas.rect(0, self.height - self.row_height, self.width, self.row_height, stroke=0, fill=1)
        for number, row in enumerate(self.rows):
            bottom = self.height - (number + 1) * self.row_height
            line = canvas.beginText()
            line.setFont(self.face.regular if number else self.face.bold, self.size)
            line.setFillColor(INK)
            for left, cell in zip(self.lefts, row, strict=True):
                line.setTextOrigin(left, bottom + 5.5)
                line.textOut(cell)
            canvas.drawText(line)
            canvas.setStrokeColor(RULE)
            canvas.setLineWidth(0.5)
            canvas.line(0, bottom, self.width, bottom)
        canvas.setStrokeColor(ACCENT)
        canvas.line(0, self.height, self.width, self.height)


def flowables(text: str, face: Typeface) -> list[Flowable]:
    """Convert the text to reportlab flowables: `#` headings, `- ` lists, `| ` tables, else paragraphs."""
    title = face.style("title", 25, bold=True, color=ACCENT, leading=31)
    byline = face.style("byline", 9.5, color=QUIET, spaceAfter=8)
    section = face.style("section", 15, bold=True, color=ACCENT, spaceBefore=22, spaceAfter=3, keepWithNext=True)
    topic = face.style("topic", 11, bold=True, spaceBefore=13, spaceAfter=2, keepWithNext=True)
    body = face.style("body", 10, spaceAfter=6)
    item = face.style("item", 10, spaceAfter=3, leftIndent=12, bulletIndent=2)

    drawn: list[Flowable] = []
    blocks = [block for block in text.split("\n\n") if block.strip()]
    for number, block in enumerate(blocks):
        block = block.strip()
        if block.startswith("# "):
            drawn.append(Paragraph(escape(block[2:]), title))
        elif number == 1:
            drawn += [Paragraph(escape(block), byline), HRFlowable(width="100%", color=ACCENT, thickness=1.2)]
        elif heading := re.match(r"(##+) (.+)", block):
            level = len(heading[1]) - 2
            paragraph = Paragraph(escape(heading[2]), (section, topic)[level])
            paragraph.outline_level = level
            drawn += [CondPageBreak(36 * mm), paragraph] if level == 0 else [paragraph]
        elif block.startswith("- "):
            drawn += [Paragraph(escape(line[2:]), item, bulletText="–") for line in block.splitlines()]
        elif block.startswith("|"):
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
            drawn.append(RuledTable(rows, face, A4[0] - 2 * SIDE))
        else:
            drawn.append(Paragraph(escape(block), body))
    return drawn


def korean_typeface(font: Path) -> Typeface:
    """Register a Korean font and its bold font. The bold file has the same name, with `Bold` before the suffix."""
    bold = font.with_stem(font.stem + "Bold")
    for name, path in (("Korean", font), ("Korean-Bold", bold)):
        if not path.is_file():
            raise SystemExit(f"There is no font {path}. On Debian: apt install fonts-nanum.")
        pdfmetrics.registerFont(TTFont(name, str(path)))
    return Typeface("Korean", "Korean-Bold", leading=1.62)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--korean-font", type=Path, required=True, metavar="PATH")
    parser.add_argument("--output", type=Path, default=FOLDER, metavar="FOLDER")
    arguments = parser.parse_args()
    korean, latin = korean_typeface(arguments.korean_font), Typeface("Helvetica", "Helvetica-Bold")
    for sample in SAMPLES:
        face = korean if sample.language == "ko" else latin
        text = (TEXTS / sample.file_name).with_suffix(".md").read_text("utf-8")
        document = SampleDocument(arguments.output / sample.file_name, sample, face)
        document.build(flowables(text, face))
        print(f"{sample.file_name}: {document.page} pages")


if __name__ == "__main__":
    main()
