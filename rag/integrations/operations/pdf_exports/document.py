"""Make A4 PDFs in any script for which a font is installed."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont
from fpdf import FPDF

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
#: In every document, whatever its text: Latin letters, digits and marks.
LATIN = range(0x20, 0x250)
BOLD = {"wght": 650.0, "wdth": 100.0}


class PdfDocument(FPDF):
    """A PDF document with the text `foot` and the page number at the bottom of each page.

    `text` must contain all text in the document: only the fonts for the scripts in `text` are loaded, because loading
    takes seconds.
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
        """Return the finished PDF and delete the temporary fonts. The object cannot be used after this call."""
        with self._fonts:
            return bytes(self.output())

    def footer(self) -> None:
        self.set_y(-13)
        self.set_font("Sans", size=8)
        self.set_text_color(*QUIET)
        self.cell(0, 5, f"{self._foot} · {self.page_no()}", align="C")


def bold_font(text: str, folder: Path) -> Path:
    """Write a bold font to a folder, and return the file's path.

    The font has only the characters in `text`, because writing all characters would take eight seconds.
    """
    path = folder / "bold.ttf"
    subsetter = subset.Subsetter(subset.Options(layout_features=[]))
    subsetter.populate(unicodes=[*LATIN, *map(ord, text)])
    with TTFont(SANS, lazy=True) as font:
        subsetter.subset(font)
        instantiateVariableFont(font, BOLD, inplace=True)
        font.save(path)
    return path
