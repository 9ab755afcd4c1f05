"""Sets the texts beside this file as PDFs: `python -m rag.samples.build --korean-font NanumGothic.ttf`.

The same texts and font give the same bytes, so a rebuilt PDF differs only where its text does. Needs reportlab
(tests/requirements.txt) and a Korean TrueType font with its bold in a sibling file (Debian: fonts-nanum).
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from reportlab.lib.colors import Color, HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import (
    BaseDocTemplate,
    CondPageBreak,
    Flowable,
    Frame,
    HRFlowable,
    ListFlowable,
    ListItem,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
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
    """Names of two registered fonts and the line spacing, in units of the size, that suits them."""

    regular: str
    bold: str
    leading: float = 1.42

    def style(self, name: str, size: float, *, bold: bool = False, color: Color = INK, **more: Any) -> ParagraphStyle:
        font = self.bold if bold else self.regular
        leading = more.pop("leading", size * self.leading)
        return ParagraphStyle(name, fontName=font, fontSize=size, leading=leading, textColor=color, **more)


class SampleDocument(BaseDocTemplate):  # type: ignore[misc]
    """Adds a running footer, and a bookmark for every heading as it is placed."""

    def __init__(self, path: Path, sample: Sample, face: Typeface) -> None:
        super().__init__(
            str(path), pagesize=A4, invariant=1, lang=sample.language, title=sample.title, author="People Team",
            subject=f"Sample document of the invented company {COMPANY}", creator="rag.samples.build",
        )  # fmt: skip
        self.sample, self.face = sample, face
        width, height = A4
        frame = Frame(SIDE, BOTTOM, width - 2 * SIDE, height - TOP - BOTTOM, 0, 0, 0, 0)
        self.addPageTemplates(PageTemplate(frames=[frame], onPage=self.draw_footer))

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

    def afterFlowable(self, flowable: Flowable) -> None:  # noqa: N802, RUF100 (reportlab's name)
        level = getattr(flowable, "outline_level", None)
        if level is not None:
            key = f"heading-{self.seq.nextf('heading')}"
            self.canv.bookmarkPage(key)
            self.canv.addOutlineEntry(flowable.getPlainText(), key, level=level, closed=level > 0)


def flowables(text: str, face: Typeface) -> list[Flowable]:
    """The text as reportlab takes it. Its marks: `#` headings, `- ` lists, `| ` tables, else paragraphs."""
    title = face.style("title", 25, bold=True, color=ACCENT, leading=31)
    byline = face.style("byline", 9.5, color=QUIET, spaceAfter=8)
    section = face.style("section", 15, bold=True, color=ACCENT, spaceBefore=17, spaceAfter=5, keepWithNext=True)
    topic = face.style("topic", 11, bold=True, spaceBefore=9, spaceAfter=2, keepWithNext=True)
    body = face.style("body", 10, spaceAfter=6)
    item = face.style("item", 10, spaceAfter=3)

    made: list[Flowable] = []
    blocks = [block for block in text.split("\n\n") if block.strip()]
    for number, block in enumerate(blocks):
        block = block.strip()
        if block.startswith("# "):
            made.append(Paragraph(escape(block[2:]), title))
        elif number == 1:
            made += [Paragraph(escape(block), byline), HRFlowable(width="100%", color=ACCENT, thickness=1.2)]
        elif heading := re.match(r"(##+) (.+)", block):
            level = len(heading[1]) - 2
            paragraph = Paragraph(escape(heading[2]), (section, topic)[level])
            paragraph.outline_level = level
            made += [CondPageBreak((32, 20)[level] * mm), paragraph]
        elif block.startswith("- "):
            entries = [ListItem(Paragraph(escape(line[2:]), item)) for line in block.splitlines()]
            made.append(ListFlowable(entries, bulletType="bullet", start="•", leftIndent=14, bulletFontSize=9))
        elif block.startswith("|"):
            made += [Spacer(1, 2), table(block, face), Spacer(1, 9)]
        else:
            made.append(Paragraph(escape(block), body))
    return made


def table(block: str, face: Typeface) -> Table:
    cell, head = face.style("cell", 9), face.style("head", 9, bold=True)
    rows = [[part.strip() for part in line.strip().strip("|").split("|")] for line in block.splitlines()]
    cells = [
        [Paragraph(escape(part), head if row_number == 0 else cell) for part in row]
        for row_number, row in enumerate(rows)
    ]
    # A column is as wide as its longest entry asks for, within bounds.
    wanted = [min(max(len(part) for part in column), 34) + 6 for column in zip(*rows, strict=True)]
    available = A4[0] - 2 * SIDE
    return Table(
        cells,
        colWidths=[available * share / sum(wanted) for share in wanted],
        repeatRows=1,
        style=[
            ("BACKGROUND", (0, 0), (-1, 0), HEADER_ROW),
            ("LINEBELOW", (0, 0), (-1, -1), 0.5, RULE),
            ("LINEABOVE", (0, 0), (-1, 0), 0.8, ACCENT),
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("TOPPADDING", (0, 0), (-1, -1), 3.5),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 4.5),
        ],
    )


def korean_typeface(font: Path) -> Typeface:
    """Registers the font and its bold, which has to be called the same with `Bold` before the suffix."""
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
