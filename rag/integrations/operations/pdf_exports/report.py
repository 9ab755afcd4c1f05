"""Write a digest to an A4 PDF with figures, tables and bars.

The layout follows the reader's language: right to left in Arabic.
"""

from __future__ import annotations

from fpdf.fonts import FontFace

from rag.integrations.operations.pdf_exports.document import ACCENT, IN_ARABIC, INK, PAPER, QUIET, PdfDocument
from rag.language import _, direction, is_right_to_left, short_day
from rag.records.digest import Digest

WIDTH = 180.0


def digest_pdf(digest: Digest) -> bytes:
    text = digest.as_text()
    page = PdfDocument(digest.title, text)
    page.set_title(digest.title)
    # Joins Arabic letters and orders them; in other scripts it would only cost time.
    page.set_text_shaping(bool(IN_ARABIC.search(text)))
    is_turned = direction() == "rtl"
    side = "R" if is_turned else "L"
    page.set_font("Sans", "B", 20)
    page.set_text_color(*INK)
    page.multi_cell(0, 10, digest.title, align=side, new_x="LMARGIN", new_y="NEXT")
    _draw_days(page, digest)
    for heading, rows in digest.sections:
        page.ln(5)
        page.set_font("Sans", "B", 13)
        page.set_text_color(*INK)
        page.cell(0, 8, heading, align=side, new_x="LMARGIN", new_y="NEXT")
        page.set_font("Sans", size=10)
        if not rows:
            page.set_text_color(*QUIET)
            page.cell(0, 6, _("none"), align=side, new_x="LMARGIN", new_y="NEXT")
            continue
        with page.table(
            col_widths=(125, 55) if is_turned else (55, 125), first_row_as_headings=False, borders_layout="NONE",
            line_height=6.5, padding=(0.6, 2), cell_fill_color=PAPER, cell_fill_mode="ROWS", width=int(WIDTH),
        ) as table:  # fmt: skip
            for label, value in rows:
                row = table.row()
                cells = [(label, side, QUIET), (value, "R" if is_right_to_left(value) else side, INK)]
                for words, align, color in reversed(cells) if is_turned else cells:
                    row.cell(words, align=align, style=FontFace(color=color))
    return page.finish()


def _draw_days(page: PdfDocument, digest: Digest) -> None:
    most = max((questions for _, questions in digest.days), default=0)
    if not most:
        return
    page.ln(4)
    height, left, top = 26.0, page.l_margin, page.get_y()
    step = WIDTH / len(digest.days)
    page.set_fill_color(*ACCENT)
    page.set_font("Sans", size=7)
    page.set_text_color(*QUIET)
    every = max(1, len(digest.days) // 10)
    for place, (day, questions) in enumerate(digest.days):
        tall = height * questions / most
        page.rect(left + place * step + step * 0.15, top + height - tall, step * 0.7, max(tall, 0.2), style="F")
        if place % every == 0:
            page.set_xy(left + place * step, top + height + 1)
            page.cell(step * every, 4, short_day(day))
    page.set_xy(left, top + height + 6)
