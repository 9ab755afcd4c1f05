"""Convert boxes from points to fractions of the displayed page, also for cropped and rotated pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rag.ingestion.loaders.pdf_objects import Box, turned

#: The largest gap in a line, in letter heights.
WIDEST_GAP = 2.0


def parts_of_page(page: Any) -> Callable[[Box], Box | None]:
    """Return a function which converts a box in points to fractions (0 to 1) of the page size: left, top, right,
    bottom.

    The function returns `None` for a box outside the page.
    """
    left, bottom, right, top = page.get_bbox()
    rotation = page.get_rotation() % 360
    width, height = max(right - left, 1.0), max(top - bottom, 1.0)
    across, down = (height, width) if rotation % 180 else (width, height)

    def part(edge: float, length: float) -> float:
        return round(min(max(edge / length, 0.0), 1.0), 4)

    def convert(box: Box) -> Box | None:
        x, y = turned(box[0] - left, box[1] - bottom, width, height, rotation)
        x2, y2 = turned(box[2] - left, box[3] - bottom, width, height, rotation)
        shares = part(min(x, x2), across), part(min(y, y2), down), part(max(x, x2), across), part(max(y, y2), down)
        return shares if shares[0] < shares[2] and shares[1] < shares[3] else None

    return convert


def around(box: Box, other: Box) -> Box:
    """Return the box around two boxes."""
    return min(box[0], other[0]), min(box[1], other[1]), max(box[2], other[2]), max(box[3], other[3])


def line_boxes(boxes: Iterable[Box]) -> Iterator[Box]:
    """Join the boxes of neighbouring characters on a line."""
    run: Box | None = None
    for box in boxes:
        high = box[3] - box[1]
        is_on_line = run is not None and min(run[3], box[3]) - max(run[1], box[1]) > 0.5 * high
        if run is not None and is_on_line and run[0] - WIDEST_GAP * high < box[0] < run[2] + WIDEST_GAP * high:
            run = around(run, box)
            continue
        if run is not None:
            yield run
        run = box
    if run is not None:
        yield run
