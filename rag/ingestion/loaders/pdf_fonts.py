"""Open PDFs with a font for Korean, Chinese and Japanese, in case neither file nor machine has a font for these.

Without a font, pdfium leaves out words with a single letter. `box_font.ttf` draws an empty box for each letter: the
text is complete, and a rendered page shows missing letters.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pypdfium2

#: Japanese, Korean, simplified and traditional Chinese, as numbered by Windows and `fpdf_sysfontinfo.h`.
CHARSETS = frozenset({128, 129, 130, 134, 136})
BOX_FONT = Path(__file__).with_name("box_font.ttf").read_bytes()
#: PDFium's handle for the font; the machine's fonts have addresses as handles.
HANDLE = 1


def open_pdf(content: bytes, password: str | None = None) -> pypdfium2.PdfDocument:
    """Open a PDF with pdfium. Raises `PdfiumError`."""
    if pypdfium2.PdfSysfontBase.SINGLETON is None:
        FontsWithBoxes().setup()
    return pypdfium2.PdfDocument(content, password=password)


class FontsWithBoxes(pypdfium2.PdfSysfontBase):  # type: ignore[misc]
    """The machine's fonts. If Korean, Chinese and Japanese have no font, a box font is used."""

    def MapFont(self, _: Any, weight: int, italic: int, charset: int, pitch: int, face: Any, exact: Any) -> int | None:
        handle: int | None = self.default.MapFont(self.default, weight, italic, charset, pitch, face, exact)
        return HANDLE if not handle and charset in CHARSETS else handle

    def GetFontData(self, _: Any, font: int, table: int, buffer: Any, size: int) -> int:
        """Return the font file's size in bytes, or 0 if only a part (`table`) is requested.

        The file is copied to the buffer if there is enough room.
        """
        if font != HANDLE:
            length: int = self.default.GetFontData(self.default, font, table, buffer, size)
            return length
        if table:
            return 0
        if size >= len(BOX_FONT):
            ctypes.memmove(buffer, BOX_FONT, len(BOX_FONT))
        return len(BOX_FONT)

    def GetFaceName(self, _: Any, font: int, buffer: Any, size: int) -> int:
        return 0 if font == HANDLE else self.default.GetFaceName(self.default, font, buffer, size)

    def GetFontCharset(self, _: Any, font: int) -> int:
        return 1 if font == HANDLE else self.default.GetFontCharset(self.default, font)

    def DeleteFont(self, _: Any, font: int) -> None:
        if font != HANDLE:
            self.default.DeleteFont(self.default, font)
