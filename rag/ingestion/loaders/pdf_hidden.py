"""Find hidden text on a page: invisible, tiny, off the page, or white on white."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rag.ingestion.loaders.pdf_letters import owners_of
from rag.ingestion.loaders.pdf_objects import Box
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
    """The hidden letters' indexes, and a sentence about them for administrators."""

    letters: Sequence[int] = ()
    report: str = ""


NOTHING_HIDDEN = HiddenText()


def hidden_letters(page: Any, text_page: Any, text: str, objects: PageObjects, draw: Callable[[], Any]) -> HiddenText:
    whole = _whole_box(page, objects.page_box)
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
            if not _is_off(box, whole):
                cropped.add(address)
        elif item.is_white:
            white.append(address)
    if not reasons and not white:
        return NOTHING_HIDDEN
    owners = owners_of(text_page, text)
    counts = Counter(owner for owner, letter in zip(owners, text, strict=True) if not letter.isspace())
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
    said = " ".join("".join([*pieces, text[hidden[-1]]]).split())
    shown = said if len(said) <= LONGEST_REPORT else said[: LONGEST_REPORT - 1] + "…"
    return HiddenText(hidden, REPORT.format(kinds=", ".join(sorted(kinds)), text=shown))


def _whole_box(page: Any, shown: Box) -> Box:
    """Return the box of the whole sheet, which may be larger than the visible part."""
    box: Box | None = page.get_mediabox(fallback_ok=False)
    if box is None and page.get_cropbox(fallback_ok=False) is not None:
        # Only pdfium knows a box shared by all pages.
        return -math.inf, -math.inf, math.inf, math.inf
    return box or shown


def _is_off(box: Box, page_box: Box) -> bool:
    left, bottom, right, top = page_box
    return box[0] > right or box[2] < left or box[1] > top or box[3] < bottom


def _is_blank(picture: Any, region: Box, page_box: Box, rotation: int) -> bool:
    """Whether a part of the drawn page is entirely white."""
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
