"""Find text on a PDF page which is invisible, or struck through by a line or an annotation. Runs in the sandbox.

A line strikes through letters if it crosses their middle, and starts and ends with them. Table lines, and lines beside
a title, are longer.
"""

from __future__ import annotations

import ctypes
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pypdfium2.raw as pdfium

from rag.ingestion.loaders.page_tables import MOST_SEGMENTS
from rag.ingestion.loaders.pdf_letters import owners_of
from rag.ingestion.loaders.pdf_objects import Box, TextObject
from rag.ingestion.loaders.pdf_page_objects import PageObjects
from rag.language import N_

#: Smaller text is unreadable, in points; footnotes have 6, microprint has 1.
SMALLEST = 1.5
#: A place on the drawn page is blank if everything is lighter than this, of 255.
BLANK = 235
REPORT = "Text that a reader of this page does not see was left out ({kinds}): “{text}”."
LONGEST_REPORT = 120


@dataclass(frozen=True)
class HiddenText:
    """Hidden characters, by their indexes in the page's text, and a sentence for administrators about them."""

    characters: Sequence[int] = ()
    report: str = ""


NOTHING_HIDDEN = HiddenText()


def find_hidden_text(page: Any, text_page: Any, text: str, objects: PageObjects, draw: Callable[[], Any]) -> HiddenText:
    sheet_box = _sheet_box(page, objects.page_box)
    reasons: dict[int, str] = {}
    cropped: set[int] = set()
    white: list[int] = []
    for address, item in objects.texts.items():
        box = item.box
        if item.is_invisible:
            # Over a scan, the invisible text comes from text recognition of the picture.
            if not objects.has_pictures:
                reasons[address] = N_("invisible")
        elif 0 < item.size < SMALLEST and box[3] - box[1] < 2 * SMALLEST:
            reasons[address] = N_("microscopic")
        elif _is_off(box, objects.page_box):
            reasons[address] = N_("off the page")
            if not _is_off(box, sheet_box):
                cropped.add(address)
        elif item.is_white:
            white.append(address)
    if not reasons and not white:
        return NOTHING_HIDDEN
    owners = owners_of(text_page, text)
    counts = Counter(owner for owner, character in zip(owners, text, strict=True) if not character.isspace())
    if sum(counts[address] for address in cropped) == counts.total():
        # A box around nothing is wrong; a box may show half a sheet with two pages.
        cropped = set()
    doubtful = [address for address, reason in reasons.items() if reason != "invisible" and address not in cropped]
    if sum(counts[address] for address in doubtful) > counts.total() / 2:
        # If most of a page seems hidden, its measures were read wrongly.
        for address in doubtful:
            del reasons[address]
    if white and (picture := draw()) is not None:
        for address in white:
            if _is_blank(picture, objects.texts[address].box, page.get_bbox(), page.get_rotation() % 360):
                reasons[address] = N_("white")
    hidden = [index for index, owner in enumerate(owners) if owner in reasons]
    if not any(not text[index].isspace() for index in hidden):
        return NOTHING_HIDDEN
    kinds = {reasons[owners[index]] for index in hidden}
    pieces = [text[index] + ("" if owners[index] == owners[after] else " ") for index, after in pairwise(hidden)]
    hidden_text = " ".join("".join([*pieces, text[hidden[-1]]]).split())
    excerpt = hidden_text if len(hidden_text) <= LONGEST_REPORT else hidden_text[: LONGEST_REPORT - 1] + "…"
    return HiddenText(hidden, REPORT.format(kinds=", ".join(sorted(kinds)), text=excerpt))


def _sheet_box(page: Any, visible_box: Box) -> Box:
    """Return the box around the whole sheet, which may be larger than the visible part."""
    box: Box | None = page.get_mediabox(fallback_ok=False)
    if box is None and page.get_cropbox(fallback_ok=False) is not None:
        # Only pdfium knows a box shared by all pages.
        return -math.inf, -math.inf, math.inf, math.inf
    return box or visible_box


def _is_off(box: Box, page_box: Box) -> bool:
    left, bottom, right, top = page_box
    return box[0] > right or box[2] < left or box[1] > top or box[3] < bottom


def _is_blank(picture: Any, region: Box, page_box: Box, rotation: int) -> bool:
    left, bottom, right, top = page_box
    width, height = right - left, top - bottom
    corners = []
    for x, y in ((region[0] - left, region[1] - bottom), (region[2] - left, region[3] - bottom)):
        corners.append({90: (y, x), 180: (width - x, y), 270: (height - y, width - x)}.get(rotation, (x, height - y)))
    (first_x, first_y), (second_x, second_y) = corners
    area = (
        max(0, int(min(first_x, second_x))),
        max(0, int(min(first_y, second_y))),
        min(picture.width, int(max(first_x, second_x)) + 1),
        min(picture.height, int(max(first_y, second_y)) + 1),
    )
    if area[0] >= area[2] or area[1] >= area[3]:
        return True
    darkest, _ = picture.crop(area).convert("L").getextrema()
    return bool(darkest >= BLANK)


#: The smallest and largest height of a strike line above the baseline, in letter sizes.
LOWEST, HIGHEST = 0.13, 0.48
#: The largest thickness of a strike line, in letter sizes and in points.
THICKEST, HIGHEST_BAR = 0.2, 5.0
#: The smallest width of a strike line, in points.
NARROWEST = 3.0
#: The largest distance between the ends of a line and its letters, in letter sizes.
OVERHANG = 0.6
#: A line is visible from this opacity on, and up to this brightness, of 255.
LEAST_ALPHA, BRIGHTEST = 80, 235


@dataclass
class Bar:
    """A thin horizontal line, and the drawn paths which form it."""

    box: Box
    paths: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class StruckText:
    """The indexes of struck-through characters, and the lines which strike them through."""

    characters: Sequence[int] = ()
    paths: Sequence[Any] = ()


def struck_text(
    paths: Sequence[Any],
    boxes: Sequence[Box],
    texts: Iterable[tuple[int, TextObject]],
    places_of: Callable[[int], Iterator[tuple[int, Box]]],
) -> StruckText:
    """Find the characters struck through by drawn lines, or by annotations with the given boxes.

    `places_of(address)` yields index and box of each character drawn by the text object at this address.
    """
    bars = _find_bars(paths)
    if not bars and not boxes:
        return StruckText()
    texts_by_level: defaultdict[int, list[tuple[int, TextObject]]] = defaultdict(list)
    for address, item in texts:
        if item.is_level and item.size > 0:
            for level in range(math.floor(item.y + LOWEST * item.size), math.floor(item.y + HIGHEST * item.size) + 1):
                texts_by_level[level].append((address, item))
    characters: set[int] = set()
    drawn: list[Any] = []
    for bar in bars:
        if struck := _struck_by(bar, texts_by_level[math.floor((bar.box[1] + bar.box[3]) / 2)], places_of):
            characters |= struck
            drawn += bar.paths
    for box in boxes:
        for level in range(math.floor(box[1]), math.floor(box[3]) + 1) if box[3] - box[1] < 200 else ():
            for address, item in texts_by_level[level]:
                if item.box[0] < box[2] and item.box[2] > box[0]:
                    characters |= {
                        index
                        for index, (left, bottom, right, top) in places_of(address)
                        if box[0] < (left + right) / 2 < box[2] and box[1] < (bottom + top) / 2 < box[3]
                    }
    return StruckText(sorted(characters), drawn)


def _find_bars(paths: Sequence[Any]) -> list[Bar]:
    if len(paths) > MOST_SEGMENTS:
        return []
    thin_lines = sorted(
        (Bar(box, [item]) for item in paths if (box := _thin_box(item)) and _is_visible(item)),
        key=lambda bar: (round(bar.box[1]), bar.box[0]),
    )
    bars: list[Bar] = []
    for bar in thin_lines:
        if bars and abs(bars[-1].box[1] - bar.box[1]) < 0.5 and -1 < bar.box[0] - bars[-1].box[2] < 1:
            left, bottom, _, top = bars[-1].box
            bars[-1] = Bar((left, bottom, bar.box[2], top), [*bars[-1].paths, *bar.paths])
        else:
            bars.append(bar)
    return bars


def _thin_box(item: Any) -> Box | None:
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    if not pdfium.FPDFPageObj_GetBounds(item, left, bottom, right, top):
        return None
    if top.value - bottom.value > HIGHEST_BAR or right.value - left.value < NARROWEST:
        return None
    return left.value, bottom.value, right.value, top.value


def _is_visible(item: Any) -> bool:
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    if not pdfium.FPDFPath_GetDrawMode(item, fill, stroke) or not (fill.value or stroke.value):
        return False
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    colour_of = pdfium.FPDFPageObj_GetStrokeColor if stroke.value else pdfium.FPDFPageObj_GetFillColor
    if not colour_of(item, red, green, blue, alpha):
        return True
    return alpha.value >= LEAST_ALPHA and min(red.value, green.value, blue.value) <= BRIGHTEST


def _struck_by(
    bar: Bar, texts: Sequence[tuple[int, TextObject]], places_of: Callable[[int], Iterator[tuple[int, Box]]]
) -> set[int]:
    left, bottom, right, top = bar.box
    middle = (bottom + top) / 2
    characters: set[int] = set()
    first, last, size = math.inf, -math.inf, 0.0
    for address, item in texts:
        if not (item.box[0] < right and item.box[2] > left and top - bottom <= max(THICKEST * item.size, 1.0)):
            continue
        if not LOWEST * item.size <= middle - item.y <= HIGHEST * item.size:
            continue
        for index, box in places_of(address):
            if left < (box[0] + box[2]) / 2 < right:
                characters.add(index)
                first, last, size = min(first, box[0]), max(last, box[2]), max(size, item.size)
    if abs(left - first) < OVERHANG * size and abs(right - last) < OVERHANG * size:
        return characters
    return set()
