"""Put the lines recognised on a page into reading order: tables in rows, columns one after the other.

The functions use only words and their boxes (left, bottom, right, top, in any unit).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from rag.ingestion.loaders.page_tables import LONGEST_CELL, PageTable, RulingLines, Word, tables_among
from rag.ingestion.loaders.pdf_objects import Box

#: Lines are scaled to this height, because `tables_among` counts in points. Recognised boxes are larger than letters.
LINE_HEIGHT = 14.0
#: The largest gap between table rows, in heights of their letters: pictures pad their cells, and recognised boxes end
#: at the ink.
ROW_GAP = 5.0
#: The smallest gap between cells, in letter heights; the recogniser already splits lines at wide gaps.
CELL_GAP = 0.15
NO_RULES = RulingLines((), ())
#: In line heights: the smallest gap between text columns, and the gaps which end a paragraph and a set of columns.
GUTTER, PARAGRAPH, SECTION = 0.8, 0.9, 3.0
#: Text columns have at least this many lines, and characters per line; other lines are rows.
FEWEST_LINES, SHORTEST_LINE = 3, LONGEST_CELL * 0.7


#: Wide letters; and the smallest distance of two other letters with a space between them, in the model's columns: in
#: total, and in addition to the line's usual distance.
WIDE, LEAST_DISTANCE, MORE_THAN_USUAL = frozenset("mwMW@%—"), 5, 2
#: From this letter on, scripts have no spaces between words.
UNSPACED = "\u2e80"


@dataclass(frozen=True)
class Block:
    """A block on a page: a text line or a whole table."""

    lines: tuple[str, ...]
    box: Box
    is_table: bool = False


@dataclass(frozen=True)
class Arranged:
    """A page's text in reading order, and the numbers of the lines inside each table."""

    text: str
    tables: tuple[frozenset[int], ...] = ()


def text_in_order(lines: Sequence[Word], rules: RulingLines = NO_RULES) -> str:
    """Return a page's text in reading order, with tables in rows and columns one after the other."""
    return arranged(lines, rules).text


def arranged(lines: Sequence[Word], rules: RulingLines = NO_RULES) -> Arranged:
    """Return a page's text in reading order, and the numbers of the lines inside each table."""
    if not lines:
        return Arranged("")
    scale = LINE_HEIGHT / max(median(line.height for line in lines), 1e-6)
    words = [Word(line.text, _scale_box(line.box, scale)) for line in lines]
    drawn = RulingLines(_scale_rules(rules.horizontal, scale), _scale_rules(rules.vertical, scale))
    tables = tables_among(words, drawn, row_gap=ROW_GAP, column_gap=CELL_GAP)
    inside = [frozenset(place for place, word in enumerate(words) if is_inside(word, table)) for table in tables]
    free = [word for place, word in enumerate(words) if not any(place in places for places in inside)]
    blocks = [
        *(Block((word.text,), word.box) for word in free),
        *(Block(tuple(table.lines()), table.box, is_table=True) for table in tables),
    ]
    return Arranged("\n".join(_text(blocks)).strip("\n"), tuple(inside))


def with_spaces(text: str, words: Sequence[Sequence[str]], columns: Sequence[Sequence[int]]) -> str:
    """Insert the spaces which the recognition model left out. A wide gap between two characters is a space.

    `words` are the line's words, split into characters; `columns` are the horizontal positions of these characters.
    """
    if "".join(map("".join, words)) != text.replace(" ", ""):
        return text
    distances = [b - a for places in columns for a, b in pairwise(places)]
    if not distances:
        return text
    least = max(LEAST_DISTANCE, median(distances) + MORE_THAN_USUAL)
    before: list[bool] = []  # whether a space is before each letter
    for word_characters, places in zip(words, columns, strict=True):
        before.append(False)
        for (left, right), (begin, end) in zip(pairwise(word_characters), pairwise(places), strict=True):
            usual_width = (left in WIDE) + (right in WIDE)
            before.append(left < UNSPACED > right and end - begin - usual_width >= least)
    spaced: list[str] = []
    place = 0
    for character in text:
        if character != " ":
            if before[place] and spaced and spaced[-1] != " ":
                spaced.append(" ")
            place += 1
        spaced.append(character)
    return "".join(spaced)


def is_inside(word: Word, table: PageTable) -> bool:
    left, bottom, right, top = table.box
    return left - 1 <= word.box[0] and word.box[2] <= right + 1 and bottom <= word.middle <= top


def _scale_box(box: Box, scale: float) -> Box:
    left, bottom, right, top = box
    return left * scale, bottom * scale, right * scale, top * scale


def _scale_rules(rules: Sequence[tuple[float, float, float]], scale: float) -> tuple[tuple[float, float, float], ...]:
    return tuple((place * scale, begin * scale, end * scale) for place, begin, end in rules)


def _text(blocks: Sequence[Block]) -> list[str]:
    lines: list[str] = []
    rows = _group_rows(blocks)
    left, right = min(block.box[0] for block in blocks), max(block.box[2] for block in blocks)
    first = 0
    below: float | None = None
    while first < len(rows):
        last, gutter = _find_columns(rows, first, left, right)
        if gutter is None:
            row = rows[first]
            top, bottom = max(block.box[3] for block in row), min(block.box[1] for block in row)
            is_table = any(block.is_table for block in row)
            if lines and (is_table or (below is not None and below - top > PARAGRAPH * LINE_HEIGHT)):
                lines.append("")
            if is_table:
                lines += [line for block in row for line in block.lines] + [""]
            else:
                lines.append(" ".join(block.lines[0] for block in row))
            below = None if is_table else bottom
            first += 1
            continue
        in_columns = [block for row in rows[first:last] for block in row]
        for side in (
            [block for block in in_columns if block.box[2] <= gutter],
            [block for block in in_columns if block.box[2] > gutter],
        ):
            lines += ["", *_text(side), ""]
        below = None
        first = last
    return [line for place, line in enumerate(lines) if line or (place and lines[place - 1])]


def _group_rows(blocks: Sequence[Block]) -> list[list[Block]]:
    rows: list[list[Block]] = []
    for block in sorted(blocks, key=lambda block: -block.box[3]):
        low, high = block.box[1], block.box[3]
        for row in rows[-1:]:
            bottom, top = row[0].box[1], row[0].box[3]
            shared = min(high, top) - max(low, bottom)
            if shared > 0.5 * min(high - low, top - bottom):
                row.append(block)
                break
        else:
            rows.append([block])
    return [sorted(row, key=lambda block: block.box[0]) for row in rows]


def _find_columns(rows: Sequence[Sequence[Block]], first: int, left: float, right: float) -> tuple[int, float | None]:
    """Find text columns from row `first` on.

    Returns the row at which the columns end, and the position between them. Without columns, the position is `None`.
    """
    free = [(left, right)]
    last = first
    columns: tuple[int, float | None] = (first + 1, None)
    while last < len(rows):
        if last > first and _gap(rows[last - 1], rows[last]) > SECTION * LINE_HEIGHT:
            break
        for block in rows[last]:
            free = [part for gap in free for part in _subtract_box(gap, block.box)]
        last += 1
        gutter = _widest_gap([block for row in rows[first:last] for block in row], free)
        if gutter is not None:
            columns = (last, gutter)
        if not free:
            break
    return columns


def _gap(above: Sequence[Block], below: Sequence[Block]) -> float:
    return min(block.box[1] for block in above) - max(block.box[3] for block in below)


def _subtract_box(gap: tuple[float, float], box: Box) -> list[tuple[float, float]]:
    parts = [(gap[0], min(gap[1], box[0])), (max(gap[0], box[2]), gap[1])]
    return [part for part in parts if part[1] - part[0] >= GUTTER * LINE_HEIGHT]


def _widest_gap(blocks: Sequence[Block], free: Sequence[tuple[float, float]]) -> float | None:
    for begin, end in sorted(free, key=lambda gap: gap[0] - gap[1]):
        middle = (begin + end) / 2
        sides = [[b for b in blocks if b.box[2] <= middle], [b for b in blocks if b.box[2] > middle]]
        if all(_is_text(side) for side in sides):
            return middle
    return None


def _is_text(blocks: Sequence[Block]) -> bool:
    lines = [line for block in blocks for line in block.lines]
    return len(lines) >= FEWEST_LINES and sum(map(len, lines)) >= SHORTEST_LINE * len(lines)
