"""Make the font of boxes: `python -m tests.standins.box_font` writes it where the product reads it."""

from __future__ import annotations

import io
from importlib.resources import files
from pathlib import Path

from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.subset import Subsetter
from fontTools.ttLib import TTFont, newTable
from fontTools.ttLib.tables._c_m_a_p import CmapSubtable  # noqa: PLC2701
from fontTools.varLib.instancer import instantiateVariableFont

SANS = Path(str(files("fontpkg_noto_sans"))) / "files" / "NotoSans[wdth,wght].ttf"
TARGET = Path("rag/ingestion/loaders/box_font.ttf")
#: Latin letters and signs, which also stand in fonts for Korean, Chinese and Japanese.
LATIN = (*range(0x20, 0x180), *range(0x2010, 0x2040), 0x20A9, 0x20AC)
#: Blocks of the Unicode standard: radicals, syllables, ideographs, their punctuation, enclosed and wide forms.
BOXED = (
    *range(0x1100, 0x1200), *range(0x2100, 0x2800), *range(0x2E80, 0x3000), *range(0x3001, 0xA000),
    *range(0xA960, 0xA980), *range(0xAC00, 0xD800), *range(0xF900, 0xFB00), *range(0xFE30, 0xFE50),
    *range(0xFF01, 0xFFEF), *range(0x1B000, 0x1B170), *range(0x1F100, 0x1F300), *range(0x20000, 0x32000),
)  # fmt: skip


def made() -> bytes:
    font = instantiateVariableFont(TTFont(SANS, recalcTimestamp=False), {"wght": 400, "wdth": 100})
    subsetter = Subsetter()
    subsetter.options.layout_features, subsetter.options.hinting = [], False
    subsetter.populate(unicodes=LATIN)
    subsetter.subset(font)
    letters = font.getBestCmap()
    font["glyf"]["box"] = _box()
    font["hmtx"]["box"] = (1000, 60)
    table = CmapSubtable.newSubtable(13)
    table.platformID, table.platEncID, table.language, table.reserved, table.length, table.nGroups = 3, 10, 0, 0, 0, 0
    table.cmap = dict.fromkeys(BOXED, "box") | letters
    font["cmap"] = newTable("cmap")
    font["cmap"].tableVersion, font["cmap"].tables = 0, [table]
    for name in {"GDEF", "GPOS", "GSUB", "STAT", "DSIG", "gasp", "prep"} & set(font.keys()):
        del font[name]
    buffer = io.BytesIO()
    font.save(buffer)
    return buffer.getvalue()


def _box() -> object:
    pen = TTGlyphPen(None)
    for left, bottom, right, top in ((60, -60, 940, 820), (900, -20, 100, 780)):
        pen.moveTo((left, bottom))
        for corner in ((left, top), (right, top), (right, bottom)):
            pen.lineTo(corner)
        pen.closePath()
    return pen.glyph()


if __name__ == "__main__":
    TARGET.write_bytes(made())
