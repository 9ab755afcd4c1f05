"""The words and ruling lines of a PDF's page as pdfium finds them, and the tables they make up. Runs in the sandbox
process."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pypdfium2.raw as pdfium

from rag.ingestion.loaders.page_tables import MOST_SEGMENTS, PageTable, Rules, Word, tables_among


def tables_on(page: Any) -> list[PageTable]:
    """The tables of an open pypdfium2 page, from its top down. Raises what pypdfium2 raises."""
    return tables_among(_words(page), _rules(page))


def _words(page: Any) -> list[Word]:
    text_page = page.get_textpage()
    try:
        return list(_words_of(text_page))
    finally:
        text_page.close()


def _words_of(text_page: Any) -> Iterator[Word]:
    letters: list[str] = []
    box: list[float] = []
    rect = pdfium.FS_RECTF()
    for index in range(text_page.count_chars()):
        letter = chr(pdfium.FPDFText_GetUnicode(text_page, index) or 0x20)
        found = not letter.isspace() and pdfium.FPDFText_GetLooseCharBox(text_page, index, ctypes.byref(rect))
        if found:
            left, bottom, right, top = rect.left, min(rect.bottom, rect.top), rect.right, max(rect.bottom, rect.top)
            # A word ends at a blank, where the next letter stands elsewhere, or far to the right.
            height = top - bottom
            if box and not (abs(bottom - box[1]) < 0.5 * height and -height < left - box[2] < 0.5 * height):
                yield Word("".join(letters), (box[0], box[1], box[2], box[3]))
                letters, box = [], []
            letters.append(letter)
            box = [min(box[0], left), min(box[1], bottom), max(box[2], right), max(box[3], top)] if box else [
                left, bottom, right, top
            ]  # fmt: skip
        elif letters:
            yield Word("".join(letters), (box[0], box[1], box[2], box[3]))
            letters, box = [], []
    if letters:
        yield Word("".join(letters), (box[0], box[1], box[2], box[3]))


def _rules(page: Any) -> Rules:
    horizontal, vertical = [], []
    count = 0
    for item in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_PATH], max_depth=1):
        for (x1, y1), (x2, y2) in _segments(item):
            count += 1
            if abs(y1 - y2) < 1 and abs(x1 - x2) > 8:
                horizontal.append(((y1 + y2) / 2, min(x1, x2), max(x1, x2)))
            elif abs(x1 - x2) < 1 and abs(y1 - y2) > 4:
                vertical.append(((x1 + x2) / 2, min(y1, y2), max(y1, y2)))
        if count > MOST_SEGMENTS:
            return Rules((), ())
    return Rules(tuple(horizontal), tuple(vertical))


def _segments(item: Any) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """The straight lines of a path that is drawn."""
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    if not pdfium.FPDFPath_GetDrawMode(item, fill, stroke) or not (fill.value or stroke.value):
        return
    matrix = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(item, matrix):
        return
    x, y = ctypes.c_float(), ctypes.c_float()
    begin = last = (0.0, 0.0)
    for index in range(min(pdfium.FPDFPath_CountSegments(item), MOST_SEGMENTS)):
        segment = pdfium.FPDFPath_GetPathSegment(item, index)
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        point = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            begin = point
        elif kind == pdfium.FPDF_SEGMENT_LINETO:
            yield last, point
        last = point
        if pdfium.FPDFPathSegment_GetClose(segment):
            yield point, begin
            last = begin
