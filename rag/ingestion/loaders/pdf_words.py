"""Find a page's words and ruling lines with pdfium, to find tables. Runs in the sandbox."""

from __future__ import annotations

import ctypes
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pypdfium2.raw as pdfium

from rag.ingestion.loaders.page_tables import MOST_SEGMENTS, RulingLines, Word
from rag.ingestion.loaders.pdf_direction import is_from_the_right
from rag.ingestion.loaders.pdf_objects import Box

#: From a point to another.
Line: TypeAlias = tuple[tuple[float, float], tuple[float, float]]
RUN = re.compile(r"[^\s\ufffe]+\ufffe?")
#: pdfium writes U+FFFE for a hyphen at a line end, without a line end after it.
LINE_END = re.compile(r"\r\n|[\r\n\ufffe]")
#: The most narrow letters in a run read as a single word between the boxes of its ends. Other runs are split letter by
#: letter, because in scripts without spaces the text has no gaps between cells.
LONGEST_WORD = 30
NARROW = re.compile(r"[\x21-\u024f\u0370-\u04ff\u2010-\u2044\u20a0-\u20bf\ufffe]+")


@dataclass(frozen=True, slots=True)
class PlacedWord:
    """A word, and the start and (exclusive) end of its characters in the page's text."""

    word: Word
    start: int
    end: int

    @property
    def indexes(self) -> range:
        return range(self.start, self.end)


def place_words(text_page: Any, text: str) -> list[PlacedWord]:
    """Find a page's words with their boxes. `text` is the page's text; its indexes are pdfium's character indexes."""
    return [word for run in RUN.finditer(text) for word in _words_in(text_page, run[0], run.start())]


def _words_in(text_page: Any, run: str, start: int) -> Iterator[PlacedWord]:
    if len(run) <= LONGEST_WORD and NARROW.fullmatch(run):
        first = box_of(text_page, start)
        last = first if len(run) == 1 else box_of(text_page, start + len(run) - 1)
        if first is not None and last is not None:
            height = first[3] - first[1]
            is_level = abs(first[1] - last[1]) < 0.5 * height and last[0] >= first[0]
            if is_level and last[2] - first[0] < 1.2 * height * len(run):
                box = first[0], min(first[1], last[1]), last[2], max(first[3], last[3])
                yield PlacedWord(Word(run.replace("\ufffe", "-"), box), start, start + len(run))
                return
    yield from _words_by_character(text_page, run, start)


def _words_by_character(text_page: Any, run: str, start: int) -> Iterator[PlacedWord]:
    characters: list[str] = []
    begin = start
    box: Box | None = None
    for index, character in enumerate(run, start):
        character_box = box_of(text_page, index)
        if character_box is None:
            continue
        left, bottom, right, top = character_box
        # A word ends if the next letter is on a different line, or far to the right.
        height = top - bottom
        gaps = [] if box is None else [left - box[2], *([box[0] - right] if is_from_the_right(character) else [])]
        if box is not None and is_from_the_right(character):
            # Chromium gives each letter a box around its ink.
            height = max(height, box[3] - box[1])
            is_level = bottom < box[3] and top > box[1]
        else:
            is_level = box is not None and abs(bottom - box[1]) < 0.5 * height
        is_near = any(-height < gap < 0.5 * height for gap in gaps)
        if box is not None and not (is_near and is_level):
            yield PlacedWord(Word("".join(characters), box), begin, index)
            characters, box, begin = [], None, index
        characters.append("-" if character == "\ufffe" else character)
        box = (
            (left, bottom, right, top)
            if box is None
            else (min(box[0], left), min(box[1], bottom), max(box[2], right), max(box[3], top))
        )
    if box is not None:
        yield PlacedWord(Word("".join(characters), box), begin, start + len(run))


def box_of(text_page: Any, index: int) -> Box | None:
    """Return a character's box in points, with the height of the line, or `None` if pdfium has no box."""
    rect = pdfium.FS_RECTF()
    if not pdfium.FPDFText_GetLooseCharBox(text_page, index, rect):
        return None
    return rect.left, min(rect.bottom, rect.top), rect.right, max(rect.bottom, rect.top)


def rules_of(paths: Sequence[Any]) -> RulingLines:
    """Return the horizontal and vertical lines among a page's paths."""
    horizontal, vertical = [], []
    count = 0
    for item in paths:
        for (x1, y1), (x2, y2) in _segments(item):
            count += 1
            if abs(y1 - y2) < 1 and abs(x1 - x2) > 8:
                horizontal.append(((y1 + y2) / 2, min(x1, x2), max(x1, x2)))
            elif abs(x1 - x2) < 1 and abs(y1 - y2) > 4:
                vertical.append(((x1 + x2) / 2, min(y1, y2), max(y1, y2)))
        if count > MOST_SEGMENTS:
            return RulingLines((), ())
    return RulingLines(tuple(horizontal), tuple(vertical))


def _segments(item: Any) -> Iterable[Line]:
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    if not pdfium.FPDFPath_GetDrawMode(item, fill, stroke) or not (fill.value or stroke.value):
        return ()
    if not stroke.value and fill.value == pdfium.FPDF_FILLMODE_ALTERNATE:
        return _area_edges(list(_lines_of(item)))
    return _lines_of(item)


def _area_edges(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield a filled area's edges, without edges which overlap.

    WeasyPrint draws a border on one side by filling the area between two boxes. Common edges are not visible.
    """
    places: dict[tuple[bool, float], list[float]] = defaultdict(list)
    for (x1, y1), (x2, y2) in lines:
        if abs(x1 - x2) < 0.01:
            places[True, round(x1, 1)] += [y1, y2]
        elif abs(y1 - y2) < 0.01:
            places[False, round(y1, 1)] += [x1, x2]
        else:
            yield (x1, y1), (x2, y2)
    for (is_upright, place), ends in places.items():
        ends.sort()
        for begin, end in zip(ends[::2], ends[1::2], strict=True):
            if end - begin > 0.01:
                yield ((place, begin), (place, end)) if is_upright else ((begin, place), (end, place))


def _lines_of(item: Any) -> Iterator[Line]:
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
