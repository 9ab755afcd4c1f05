"""The text of a page by pdfium, piece by piece with how it is drawn, so that what nobody sees can be left out of it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pypdfium2.raw as pdfium

from rag.ingestion.loaders.hidden_text import INVISIBLE, PageFacts, TextPiece, hidden_pieces, report_of

#: A colour is white from here on in each of its parts, of 255: 97 %, as for the first engine.
WHITE_PART = 247


def page_by_pdfium(page: Any, draw: Callable[[], Any]) -> tuple[str, str]:
    """The text of an open pypdfium2 page that a reader sees, and a sentence on what was left out, empty for nothing.

    `draw` gives the page as a picture of one pixel a point, or None. Raises what pypdfium2 raises.
    """
    text_page = page.get_textpage()
    try:
        pieces = _pieces(text_page)
        hidden = hidden_pieces(_facts(page), pieces, draw)
        if not hidden:
            return text_page.get_text_range(), ""
        kept = ["\n" * piece.text.count("\n") if i in hidden else piece.text for i, piece in enumerate(pieces)]
        return "".join(kept), report_of(pieces, hidden)
    finally:
        text_page.close()


def _facts(page: Any) -> PageFacts:
    kinds = {item.type for item in page.get_objects(max_depth=1)}
    has_pictures = bool(kinds & {pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM})
    return PageFacts(box=page.get_mediabox(), rotation=page.get_rotation() % 360, has_pictures=lambda: has_pictures)


def _pieces(text_page: Any) -> list[TextPiece]:
    """Characters that are drawn by one operator, and stand on one line, are a piece."""
    pieces: list[TextPiece] = []
    drawn_by: int | None = None
    letters: list[str] = []
    first = 0
    for index in range(text_page.count_chars()):
        letter = chr(pdfium.FPDFText_GetUnicode(text_page, index) or 0x20)
        if pdfium.FPDFText_IsGenerated(text_page, index) or letter in "\r\n":
            if letter != "\r":
                letters.append(letter)
            continue
        item = pdfium.FPDFText_GetTextObject(text_page, index)
        address = ctypes.addressof(item.contents) if item else None
        if address != drawn_by or (letters and letters[-1] == "\n"):
            if letters:
                pieces.append(_piece(text_page, first, "".join(letters)))
            drawn_by, first, letters = address, index, []
        letters.append(letter)
    if letters:
        pieces.append(_piece(text_page, first, "".join(letters)))
    return pieces


def _piece(text_page: Any, index: int, text: str) -> TextPiece:
    """What is known of a piece by its first character."""
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    has_colour = pdfium.FPDFText_GetFillColor(text_page, index, red, green, blue, alpha)
    is_white = bool(has_colour) and min(red.value, green.value, blue.value) >= WHITE_PART
    item = pdfium.FPDFText_GetTextObject(text_page, index)
    mode = pdfium.FPDFTextObj_GetTextRenderMode(item) if item else 0
    matrix = pdfium.FS_MATRIX()
    scale = 1.0
    if pdfium.FPDFText_GetMatrix(text_page, index, matrix):
        scale = abs(matrix.d or matrix.b) or 1.0
    x, y = ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetCharOrigin(text_page, index, x, y)
    return TextPiece(
        text,
        size=float(pdfium.FPDFText_GetFontSize(text_page, index)) * scale,
        x=x.value,
        y=y.value,
        is_bold=False,
        is_white=is_white,
        is_invisible=mode == INVISIBLE or (bool(has_colour) and alpha.value == 0),
    )
