"""List the objects pdfium draws on a page, including those inside forms."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pypdfium2.raw as pdfium

from rag.ingestion.loaders.pdf_composed import SYMBOL_FONT
from rag.ingestion.loaders.pdf_objects import Box, TextObject
from rag.ingestion.loaders.pdf_turned import (
    turn_of,
    turned_box,
)
from rag.ingestion.loaders.pictures import is_large

Matrix = tuple[float, float, float, float, float, float]
#: A colour is white if each of its parts reaches this value, of 255.
WHITE_PART = 247
#: The invisible mode for drawing text, PDF 32000-1 table 106.
INVISIBLE = 3
#: The deepest nesting of forms, and the most objects read on a page, to limit the time.
DEEPEST, MOST_OBJECTS = 8, 100_000
#: Drawn lines, or rows of text with a gap, required before a page is searched for tables.
FEWEST_RULES, FEWEST_GAPS = 3, 3
BOLD = re.compile(r"bold|black|heavy|semibold|demi", re.IGNORECASE)
#: Names for fonts with a fixed width, and the flag, PDF 32000-1 table 121.
FIXED, FIXED_FLAG = re.compile(r"mono|courier|consol|menlo|cmtt|typewriter", re.IGNORECASE), 1


def page_box_of(page: Any) -> Box:
    """Return the part of a page which viewers show: the CropBox (or an inherited box) within the MediaBox."""
    box: Box = page.get_bbox()
    return box


class PageObjects:
    """The objects on an open pypdfium2 page. Raises pypdfium2's errors."""

    def __init__(self, page: Any) -> None:
        #: By address, in drawing order.
        self.texts: dict[int, TextObject] = {}
        #: The page's paths, which may be table lines.
        self.paths: list[Any] = []
        self.rules = 0
        #: Boxes of large pictures: left, bottom, right, top.
        self.pictures: list[Box] = []
        self.has_pictures = False
        self.page_box: Box = page_box_of(page)
        self._fonts: dict[int, tuple[bool, bool]] = {}
        #: Whether the page has symbol fonts from TeX.
        self.has_symbols = False
        self._left = MOST_OBJECTS
        count = pdfium.FPDFPage_CountObjects(page)
        self._add((pdfium.FPDFPage_GetObject(page, index) for index in range(count)), None, 0)

    def _add(self, items: Iterator[Any], within: Matrix | None, depth: int) -> None:
        for item in items:
            self._left -= 1
            if self._left < 0:
                return
            kind = pdfium.FPDFPageObj_GetType(item)
            if kind == pdfium.FPDF_PAGEOBJ_TEXT:
                self.texts[ctypes.addressof(item.contents)] = self._text(item, within)
            elif kind == pdfium.FPDF_PAGEOBJ_PATH:
                # A line has two segments, a rectangle four or five.
                self.rules += max(1, pdfium.FPDFPath_CountSegments(item) // 4)
                if depth == 0:
                    self.paths.append(item)
            elif kind == pdfium.FPDF_PAGEOBJ_IMAGE:
                self.has_pictures = True
                self._add_picture(item, within)
            elif kind == pdfium.FPDF_PAGEOBJ_FORM:
                self.has_pictures = True
                if depth < DEEPEST:
                    count = max(pdfium.FPDFFormObj_CountObjects(item), 0)
                    inner = (pdfium.FPDFFormObj_GetObject(item, index) for index in range(count))
                    self._add(inner, _combine(_matrix_of(item), within), depth + 1)

    def _text(self, item: Any, within: Matrix | None) -> TextObject:
        matrix = _combine(_matrix_of(item), within)
        size = ctypes.c_float()
        pdfium.FPDFTextObj_GetFontSize(item, size)
        left, bottom, right, top = (ctypes.c_float() for _ in range(4))
        pdfium.FPDFPageObj_GetBounds(item, left, bottom, right, top)
        box = left.value, bottom.value, right.value, top.value
        red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
        has_colour = bool(pdfium.FPDFPageObj_GetFillColor(item, red, green, blue, alpha))
        mode = pdfium.FPDFTextObj_GetTextRenderMode(item)
        font = self._font_of(item)
        return TextObject(
            order=len(self.texts),
            x=matrix[4],
            y=matrix[5],
            size=size.value * max(abs(matrix[3]), abs(matrix[1])),
            box=box if within is None else _transform(box, within),
            is_bold=font[0],
            is_fixed=font[1],
            is_white=has_colour and min(red.value, green.value, blue.value) >= WHITE_PART,
            is_invisible=mode == INVISIBLE or (has_colour and alpha.value == 0),
            is_level=matrix[0] > 0 and abs(matrix[1]) < 0.01 * matrix[0],
            turn=turn_of(matrix[0], matrix[1], matrix[3]),
        )

    def _font_of(self, item: Any) -> tuple[bool, bool]:
        font = pdfium.FPDFTextObj_GetFont(item)
        if not font:
            return False, False
        address = ctypes.addressof(font.contents)
        if address not in self._fonts:
            buffer = ctypes.create_string_buffer(128)
            pdfium.FPDFFont_GetBaseFontName(font, buffer, len(buffer))
            name = buffer.value.decode("utf-8", "replace")
            flags = max(pdfium.FPDFFont_GetFlags(font), 0)
            self.has_symbols |= SYMBOL_FONT.search(name) is not None
            is_fixed = FIXED.search(name) is not None or flags & FIXED_FLAG == FIXED_FLAG
            self._fonts[address] = BOLD.search(name) is not None, is_fixed
        return self._fonts[address]

    def _add_picture(self, item: Any, within: Matrix | None) -> None:
        matrix = _combine(_matrix_of(item), within)
        width, height = ctypes.c_uint(), ctypes.c_uint()
        pdfium.FPDFImageObj_GetImagePixelSize(item, width, height)
        if is_large(matrix, width.value * height.value, self.page_box):
            self.pictures.append(_transform((0.0, 0.0, 1.0, 1.0), matrix))

    def may_have_tables(self) -> bool:
        """Whether the page has drawn lines, or several text rows with wide gaps, like columns."""
        if self.rules >= FEWEST_RULES:
            return True
        rows = {
            round(after.y)
            for before, after in pairwise(self.texts.values())
            if abs(before.y - after.y) < 0.2 * max(after.size, 1.0)
            and max(after.box[0] - before.box[2], before.box[0] - after.box[2]) > max(after.size, 4.0)
        }
        return len(rows) >= FEWEST_GAPS or self._has_turned_gaps()

    def _has_turned_gaps(self) -> bool:
        rows: Counter[int] = Counter()
        for before, after in pairwise(self.texts.values()):
            if before.turn != after.turn or not after.turn:
                continue
            left_box, right_box = turned_box(before.box, after.turn), turned_box(after.box, after.turn)
            if abs(left_box[1] - right_box[1]) < 0.5 * after.size and right_box[0] - left_box[2] > max(after.size, 4.0):
                rows[round(right_box[1])] += 1
        return len(rows) >= FEWEST_GAPS

    def main_turn(self) -> int:
        """Return the direction in which most text runs, in quarter turns counterclockwise."""
        lengths: Counter[int] = Counter()
        for item in self.texts.values():
            lengths[item.turn] += round(max(item.box[2] - item.box[0], item.box[3] - item.box[1]))
        return lengths.most_common(1)[0][0] if lengths else 0


def _matrix_of(item: Any) -> Matrix:
    matrix = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(item, matrix):
        return 1.0, 0.0, 0.0, 1.0, 0.0, 0.0
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def _combine(inner: Matrix, outer: Matrix | None) -> Matrix:
    if outer is None:
        return inner
    a, b, c, d, e, f = inner
    A, B, C, D, E, F = outer
    return a * A + b * C, a * B + b * D, c * A + d * C, c * B + d * D, e * A + f * C + E, e * B + f * D + F


def _transform(box: Box, matrix: Matrix) -> Box:
    a, b, c, d, e, f = matrix
    corners = [(x, y) for x in (box[0], box[2]) for y in (box[1], box[3])]
    xs = [a * x + c * y + e for x, y in corners]
    ys = [b * x + d * y + f for x, y in corners]
    return min(xs), min(ys), max(xs), max(ys)
