"""Write a digest as an A4 PDF with figures, tables and bars, in any script for which a font is installed.

The layout follows the reader's language: right to left in Arabic.
"""

from __future__ import annotations

import re
import unicodedata
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont
from fpdf import FPDF
from fpdf.fonts import FontFace

from rag.language import _, direction, short_day
from rag.records.digest import Digest

#: Latin, Greek, Cyrillic and Arabic come with the product. Korean, Chinese and Japanese use a font on the machine: the
#: first available; without any, such letters are left blank.
SANS = Path(str(files("fontpkg_noto_sans"))) / "files" / "NotoSans[wdth,wght].ttf"
ARABIC = Path(str(files("fontpkg_noto_sans_arabic"))) / "files" / "NotoSansArabic[wdth,wght].ttf"
CJK = (
    Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc"),
    Path("/usr/share/fonts/noto-cjk/NotoSansCJK-Regular.ttc"),
    Path("/usr/share/fonts/truetype/nanum/NanumGothic.ttf"),
    Path("/System/Library/Fonts/Supplemental/AppleGothic.ttf"),
    Path("C:/Windows/Fonts/malgun.ttf"),
)
IN_ARABIC = re.compile("[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff]")
#: From the Chinese radicals to the Korean syllables, and the blocks between.
EAST_ASIAN = re.compile("[\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
INK, QUIET, ACCENT, PAPER = (24, 30, 50), (110, 116, 135), (53, 84, 214), (243, 245, 251)
WIDTH = 180.0
#: In every document, whatever its text: Latin letters, digits and marks.
LATIN = range(0x20, 0x250)
BOLD = {"wght": 650.0, "wdth": 100.0}


class ReportPdf(FPDF):
    """A PDF document with the text `foot` and the page number at the bottom of each page.

    `text` must contain all text in the document: fonts are loaded only for these scripts, because loading takes
    seconds.
    """

    def __init__(self, foot: str, text: str) -> None:
        super().__init__(format="A4")
        self._foot = foot
        self.set_margins(15, 18, 15)
        self.set_auto_page_break(True, margin=18)
        self.add_font("Sans", "", SANS)
        self._fonts = TemporaryDirectory(prefix="fonts-")
        self.add_font("Sans", "B", bold_font(foot + text, Path(self._fonts.name)))
        cjk_font = next((path for path in CJK if path.exists()), None) if EAST_ASIAN.search(text) else None
        fallback_fonts = {"Arabic": ARABIC if IN_ARABIC.search(text) else None, "CJK": cjk_font}
        for name, font in fallback_fonts.items():
            if font is not None:
                self.add_font(name, "", font)
                self.add_font(name, "B", font)
        self.set_fallback_fonts([name for name, font in fallback_fonts.items() if font is not None])
        self.add_page()

    def finish(self) -> bytes:
        """Return the finished PDF and delete the temporary fonts; afterwards the object is unusable."""
        with self._fonts:
            return bytes(self.output())

    def footer(self) -> None:
        self.set_y(-13)
        self.set_font("Sans", size=8)
        self.set_text_color(*QUIET)
        self.cell(0, 5, f"{self._foot} · {self.page_no()}", align="C")


def bold_font(text: str, folder: Path) -> Path:
    """Write a bold font which has only the characters in `text` to a folder, and return the file's path.

    Writing a font with all characters would take eight seconds.
    """
    path = folder / "bold.ttf"
    subsetter = subset.Subsetter(subset.Options(layout_features=[]))
    subsetter.populate(unicodes=[*LATIN, *map(ord, text)])
    with TTFont(SANS, lazy=True) as font:
        subsetter.subset(font)
        instantiateVariableFont(font, BOLD, inplace=True)
        font.save(path)
    return path


def digest_pdf(digest: Digest) -> bytes:
    text = digest.as_text()
    page = ReportPdf(digest.title, text)
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


def _draw_days(page: ReportPdf, digest: Digest) -> None:
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


def is_right_to_left(text: str) -> bool:
    """Whether the first letter in a text belongs to a right-to-left script."""
    first = next((kind for c in text if (kind := unicodedata.bidirectional(c)) in ("L", "R", "AL")), "L")
    return first != "L"
