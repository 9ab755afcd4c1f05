"""Find lists on a PDF page in a fixed-width font, with columns aligned by blanks. Runs in the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

from rag.ingestion.loaders.fixed_width import LONGEST_LINE, tables_in
from rag.ingestion.loaders.page_tables import RulingLines
from rag.ingestion.loaders.pdf_objects import Box
from rag.ingestion.loaders.pdf_words import box_of

#: A larger distance between two lines is a blank line, in letter heights.
BLANK_LINE = 1.7


def fixed_width_tables(
    text_page: Any,
    spans: Sequence[tuple[int, int]],
    letters: Sequence[str],
    is_fixed: Callable[[int], bool],
    rules: RulingLines,
) -> Iterator[tuple[list[int], list[str], Box]]:
    """Yield each table: the letters' indexes, the rows, and the box. `spans` are the page's lines."""
    boxes: list[dict[int, Box]] = []
    for start, end in spans:
        shown = [index for index in range(start, end) if letters[index].strip()]
        placed = {index: box for index in shown if (box := box_of(text_page, index)) is not None}
        is_own = bool(shown) and len(placed) == len(shown) and all(map(is_fixed, shown))
        boxes.append(placed if is_own and not _is_beside_rules(placed, rules) else {})
    all_boxes = [box for line in boxes for box in line.values()]
    if not all_boxes:
        return
    width = median(right - left for left, _, right, _ in all_boxes)
    begin = min(left for left, _, _, _ in all_boxes)
    lines: list[str] = []
    numbers: list[int] = []
    above: Box | None = None
    for number, line in enumerate(boxes):
        first = next(iter(line.values()), None)
        if above is not None and first is not None and above[1] - first[1] > BLANK_LINE * (first[3] - first[1]):
            lines.append("")
            numbers.append(number)
        lines.append(_written(line, letters, begin, width))
        numbers.append(number)
        above = first
    for top, bottom, rows in tables_in(lines):
        held = [boxes[number] for number in dict.fromkeys(numbers[top:bottom])]
        indexes = [index for line in held for index in line]
        lefts, lows, rights, highs = zip(*(box for line in held for box in line.values()), strict=True)
        yield indexes, rows, (min(lefts), min(lows), max(rights), max(highs))


def _written(line: dict[int, Box], letters: Sequence[str], begin: float, width: float) -> str:
    """Write a line in text, with blanks to put each letter at its position."""
    written: list[str] = []
    for index, box in sorted(line.items(), key=lambda item: item[1][0]):
        place = round((box[0] - begin) / width) if width > 0 else len(written)
        if place > LONGEST_LINE:
            return ""
        written += [" "] * (place - len(written))
        written.append(letters[index][:1])
    return "".join(written)


def _is_beside_rules(line: dict[int, Box], rules: RulingLines) -> bool:
    _, low, _, high = next(iter(line.values()))
    return any(bottom <= (low + high) / 2 <= top for _, bottom, top in rules.vertical)
