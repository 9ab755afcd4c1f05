"""Find the ruling lines of tables and boxes inside a table's cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rag.ingestion.loaders.pdf_objects import Box

#: As (place, start, end): a horizontal line at a height, or a vertical line at a distance from the left.
Segment = tuple[float, float, float]

#: Lines closer than this touch each other, in points.
TOUCHING = 1.5
#: Pages with more lines than this are drawings.
MOST_LINES = 300
#: A box has two lines in each direction; a table with columns has an extra upright line.
FEWEST_ACROSS, FEWEST_UPRIGHT = 2, 2


def nested_frames(horizontal: Sequence[Segment], vertical: Sequence[Segment]) -> list[Box]:
    """Return the boxes of nested tables and tick boxes. Their lines do not touch the outer table's lines."""
    if len(vertical) < 2 * FEWEST_UPRIGHT + 1:
        return []
    across, upright = _merge(horizontal), _merge(vertical)
    if max(len(across), len(upright)) > MOST_LINES:
        return []
    groups = [
        (rows, columns)
        for rows, columns in _group_touching(across, upright)
        if len(rows) >= FEWEST_ACROSS and len(columns) >= FEWEST_UPRIGHT
    ]
    outer = [_box(rows, columns) for rows, columns in groups if len(columns) > FEWEST_UPRIGHT]
    boxes = [_box(rows, columns) for rows, columns in groups]
    return [box for box in boxes if any(_is_within(box, other) for other in outer)]


def _merge(segments: Iterable[Segment]) -> list[Segment]:
    lines: list[Segment] = []
    for place, begin, end in sorted((round(place), begin, end) for place, begin, end in segments):
        last = lines[-1] if lines else (-math.inf, 0.0, 0.0)
        if place - last[0] <= TOUCHING and begin <= last[2] + TOUCHING and end >= last[1] - TOUCHING:
            lines[-1] = last[0], min(last[1], begin), max(last[2], end)
        else:
            lines.append((place, begin, end))
    return lines


def _group_touching(across: Sequence[Segment], upright: Sequence[Segment]) -> list[tuple[list[Segment], list[Segment]]]:
    groups: list[tuple[list[Segment], list[Segment]]] = [([line], []) for line in across]
    for line in upright:
        x, low, high = line
        touched = [
            group
            for group in groups
            if any(
                left - TOUCHING <= x <= right + TOUCHING and low - TOUCHING <= y <= high + TOUCHING
                for y, left, right in group[0]
            )
        ]
        groups = [group for group in groups if group not in touched]
        groups.append(([row for group in touched for row in group[0]], [*(c for g in touched for c in g[1]), line]))
    return groups


def _box(rows: Sequence[Segment], columns: Sequence[Segment]) -> Box:
    return (
        min(x for x, _, _ in columns),
        min(y for y, _, _ in rows),
        max(x for x, _, _ in columns),
        max(y for y, _, _ in rows),
    )


def _is_within(box: Box, other: Box) -> bool:
    return (
        other[0] + TOUCHING < box[0] and box[2] < other[2] - TOUCHING
        and other[1] + TOUCHING < box[1] and box[3] < other[3] - TOUCHING
    )  # fmt: skip
