"""Find separate boxes beside each other on a page, in organisation charts, flow diagrams, cards and forms.

Each box is read alone. Table cells are excluded: they touch each other, or lie below each other with a shared line.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from rag.ingestion.loaders.nested_tables import nested_frames
from rag.ingestion.loaders.page_tables import MOST_SEGMENTS, RulingLines, text_lines
from rag.ingestion.loaders.pdf_columns import Columns
from rag.ingestion.loaders.pdf_objects import Box
from rag.ingestion.loaders.pdf_words import PlacedWord

#: In points: places closer than this are equal; the smallest gap between boxes; the largest rounding of a corner.
SAME, GAP, ROUND = 1.0, 4.5, 10.0
#: Smaller boxes are tick boxes.
LEAST_WIDTH, LEAST_HEIGHT = 30.0, 16.0
#: Lines of text in at least half the boxes.
FEWEST_LINES = 1.5


def boxes_apart(words: Sequence[PlacedWord], rules: RulingLines) -> list[Columns]:
    """Return the words in boxes beside other boxes, from top to bottom, box by box from the left."""
    if len(rules.vertical) < 4 or len(rules.vertical) + len(rules.horizontal) > MOST_SEGMENTS:
        return []
    apart = _apart(list(_boxes(rules)), rules)
    if len(apart) < 2:
        return []
    nested = nested_frames(rules.horizontal, rules.vertical)
    apart = [box for box in apart if not any(_overlap(box, frame) for frame in nested)]
    found = [(box, held) for box in apart if (held := _held(words, box))]
    rows: list[list[tuple[Box, list[PlacedWord]]]] = []
    for box, held in sorted(found, key=lambda one: -one[0][3]):
        if rows and box[3] > max(other[1] for other, _ in rows[-1]):
            rows[-1].append((box, held))
        else:
            rows.append([(box, held)])
    beside = [row for row in rows if len(row) > 1]
    lines = [len(text_lines([placed.word for placed in held])) for row in beside for _, held in row]
    if lines and median(lines) < FEWEST_LINES:
        # Such boxes below each other may be a table.
        places = Counter(round(box[0]) for row in beside for box, _ in row)
        beside = [row for row in beside if sum(places[round(box[0])] > 1 for box, _ in row) < 2]
    return [Columns(tuple(tuple(held) for _, held in sorted(row, key=lambda one: one[0][0]))) for row in beside]


def _held(words: Sequence[PlacedWord], box: Box) -> list[PlacedWord]:
    left, bottom, right, top = box
    return [
        placed
        for placed in words
        if left <= placed.word.box[0] and placed.word.box[2] <= right and bottom <= placed.word.middle <= top
    ]


def _boxes(rules: RulingLines) -> Iterator[Box]:
    """Yield rectangles with drawn sides, including rounded corners."""
    sides: dict[tuple[int, int], list[tuple[float, float, float]]] = defaultdict(list)
    for side in sorted(set(rules.vertical)):
        x, low, high = side
        # Ends at nearly the same heights are found under either of two keys.
        for key in {(round(low / 2 + part), round(high / 2 + part)) for part in (-0.25, 0.25)}:
            if not sides[key] or x - sides[key][-1][0] > SAME:
                sides[key].append(side)
    seen: set[tuple[float, float]] = set()
    for group in sides.values():
        for (left, low, high), (right, _, _) in pairwise(group):
            if right - left < LEAST_WIDTH or high - low < LEAST_HEIGHT or (left, low) in seen:
                continue
            bottom, top = _end(rules, left, right, low, -1), _end(rules, left, right, high, 1)
            if bottom is not None and top is not None:
                seen.add((left, low))
                yield left, bottom, right, top


def _end(rules: RulingLines, left: float, right: float, height: float, way: int) -> float | None:
    """Return the height of the horizontal line which joins two upright sides at an end, also with rounded corners."""
    for y, begin, end in rules.horizontal:
        away = way * (y - height)
        if (
            -SAME <= away <= ROUND
            and abs(begin - left - max(away, 0.0)) <= 1.5 * SAME
            and abs(right - end - max(away, 0.0)) <= 1.5 * SAME
        ):
            return y
    return None


def _apart(boxes: Sequence[Box], rules: RulingLines) -> list[Box]:
    """Return the boxes which are not table cells: no line close beside, no line dividing them, no shared side."""
    return [
        (left, bottom, right, top)
        for left, bottom, right, top in boxes
        if not any(
            left - GAP < x < right + GAP
            and min(abs(x - left), abs(x - right)) > SAME
            and min(high, top) - max(low, bottom) > (0.5 * (top - bottom) if left < x < right else SAME)
            for x, low, high in rules.vertical
        )
        and not any(
            (SAME < bottom - y < GAP or SAME < y - top < GAP) and begin < right - SAME and end > left + SAME
            for y, begin, end in rules.horizontal
        )
        and not any(
            other != (left, bottom, right, top) and _share((left, bottom, right, top), other) for other in boxes
        )
    ]


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _share(one: Box, other: Box) -> bool:
    """Whether boxes share a side."""
    is_beside = one[1] < other[3] - SAME and other[1] < one[3] - SAME
    is_above = one[0] < other[2] - SAME and other[0] < one[2] - SAME
    return (is_beside and min(abs(one[0] - other[2]), abs(one[2] - other[0])) <= SAME) or (
        is_above and min(abs(one[1] - other[3]), abs(one[3] - other[1])) <= SAME
    )
