"""Find columns of running text which are drawn line by line across the page, and put them in reading order.

Columns are recognised by many lines with a gap at the same horizontal position, and wrapped text on both sides. Tables,
forms, and lists with a column of names are excluded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Protocol

import pypdfium2.raw as pdfium

from rag.ingestion.loaders.page_tables import PageTable, Word, text_lines
from rag.ingestion.loaders.pdf_objects import TextObject
from rag.ingestion.loaders.pdf_words import PlacedWord

#: A start, an end, and whether a hyphen ends the line.
Span = tuple[int, int, bool]


class Drawing(Protocol):
    """Tells which words on a page are drawn together, in a single text object."""

    def cut(self, placed: PlacedWord, edge: float) -> tuple[PlacedWord, PlacedWord] | None:
        """Split a word at a horizontal position. Returns `None` unless both parts are drawn separately."""

    def is_one(self, before: PlacedWord, after: PlacedWord) -> bool:
        """Whether two neighbouring words are drawn in a single text object."""


#: The smallest gap between columns, in letter heights, and the number of lines on a page which must show such a gap.
GAP, FEWEST_GAPS = 0.45, 4
#: Lines long enough for two columns; how many are checked first, and how many around each line with a gap.
LONG, LOOKED_AT_FIRST, LOOKED_AROUND = re.compile(r"[^\r\n]{30,}"), 16, 12
SPACE = re.compile(r"(?<=\S)[ \xa0]+(?=\S)")
#: The largest difference between the starts of a column's lines, in points.
SAME_EDGE = 2.0
#: A gap between columns is this many times as wide as word spaces, on this share of lines.
WIDER, MOST = 1.8, 0.6
#: In line distances: wider gaps end a set of columns, or start another row of texts side by side.
SECTION, ROW = 4.0, 1.45
#: Running text: the share of lines too full for the next word, the share of lines starting in lower case, and the
#: characters per line (East Asian characters count twice).
FILLED, LOWER, SHORTEST = 0.7, 0.3, 14
#: The same limits if the lines could be table rows.
SURELY_FILLED, SURELY_LOWER = 0.85, 0.5
#: Lines this long on both sides may be running text.
LONG_LINE = 20
FEWEST_LINES = 4
#: The deepest nesting of columns.
DEEPEST = 3
#: Scripts from this letter on have no spaces between words, except Korean.
UNSPACED, HANGUL = "\u2e80", ("\uac00", "\ud7a3")
RIGHT_TO_LEFT = ("\u0590", "\u08ff")


@dataclass(frozen=True)
class Columns:
    """The words in each column, in reading order. If `is_doubtful`, the order may be wrong."""

    parts: tuple[tuple[PlacedWord, ...], ...] = ()
    is_doubtful: bool = False


def may_have_columns(texts: Iterable[TextObject]) -> bool:
    """Whether several lines have a gap at the same position.

    This quick check only compares each text object with the next.
    """
    counts: Counter[int] = Counter()
    before: TextObject | None = None
    for after in texts:
        if (
            before is not None
            and not after.turn
            and abs(before.y - after.y) < 0.8 * after.size
            and max(after.box[0] - before.box[2], before.box[0] - after.box[2]) > 0.5 * after.size
        ):
            counts[round(after.box[0] / 4)] += 1
            counts[-1 - round(before.box[2] / 4)] += 1
        before = after
    return any(count + counts[place + 1] >= FEWEST_GAPS for place, count in list(counts.items()))


def lines_have_gaps(text_page: Any, text: str) -> bool:
    """Whether several lines on a page have wide gaps at the same position.

    Most pages have no columns. Therefore only some lines are checked first, and then the lines around each wide gap.
    """
    lines = [line.span() for line in LONG.finditer(text)]
    step = max(FEWEST_GAPS - 1, len(lines) // LOOKED_AT_FIRST)
    gaps_by_line: dict[int, list[tuple[float, float]]] = {}
    for place in range(step // 2, len(lines), step):
        start, end = lines[place]
        quarter = (end - start) // 4
        if not _wide_gaps(text_page, text, start + quarter, end - quarter):
            continue
        for near in range(max(0, place - LOOKED_AROUND), min(len(lines), place + LOOKED_AROUND + 1)):
            if near not in gaps_by_line:
                gaps_by_line[near] = _wide_gaps(text_page, text, *lines[near])
    counts: Counter[int] = Counter()
    for gaps in gaps_by_line.values():
        for left, right in gaps:
            counts[round(left / 4)] += 1
            counts[-1 - round(right / 4)] += 1
    return any(count + counts[place + 1] >= FEWEST_GAPS for place, count in list(counts.items()))


def _wide_gaps(text_page: Any, text: str, start: int, end: int) -> list[tuple[float, float]]:
    """Return each wide gap in a line: the following word's left edge, and the preceding word's right edge."""
    rect, box = pdfium.FS_RECTF(), pdfium.FPDFText_GetLooseCharBox
    gaps: list[float] = []
    wide: list[tuple[float, float, float]] = []
    for space in SPACE.finditer(text, start, end):
        if not box(text_page, space.start() - 1, rect):
            continue
        left, right = rect.left, rect.right
        if not box(text_page, space.end(), rect):
            continue
        gap = max(rect.left - right, left - rect.right)
        gaps.append(gap)
        if gap > GAP * abs(rect.top - rect.bottom):
            wide.append((gap, rect.left, right))
    if not wide:
        return []
    usual = median(gaps)
    return [(left, right) for gap, left, right in wide if gap > WIDER * usual]


def columns_among(words: Sequence[PlacedWord], tables: Sequence[PageTable], drawing: Drawing) -> list[Columns]:
    """Find columns in text which is drawn line by line across all columns. Tables with borders stay unchanged."""
    free = [placed for placed in words if not any(_is_in(placed.word, table) for table in tables if table.is_ruled)]
    rows = _rows(free)
    loose = [table for table in tables if not table.is_ruled]
    sets: list[Columns] = []
    while rows:
        best = _best_gap(rows, drawing)
        if best is None:
            break
        first, last, sides = best
        region = [placed for side in sides for placed in side]
        columns = _arrange(sides, loose, drawing)
        if columns is not None and _is_drawn_across(columns.parts or tuple(map(tuple, sides)), last - first):
            sets.append(columns)
        placed_starts = {placed.start for placed in region}
        rows = [
            remaining
            for place, row in enumerate(rows)
            if not first <= place < last
            and (remaining := [placed for placed in row if placed.start not in placed_starts])
        ]
    return sets


def columns_in_order(
    words: Sequence[PlacedWord], tables: Sequence[PageTable], drawing: Drawing
) -> list[list[PlacedWord]]:
    """Find columns of running text outside tables. Each column must be drawn completely before the next.

    Without this function, columns side by side would look like a table without borders.
    """
    rows = _rows([placed for placed in words if not any(_is_in(placed.word, table) for table in tables)])
    ordered: list[list[PlacedWord]] = []
    while rows and (best := _best_gap(rows, drawing)) is not None:
        first, last, sides = best
        leaves = [leaf for side in sides for leaf in _leaves(side, drawing, DEEPEST)]
        starts = [[placed.start for placed in leaf] for leaf in leaves]
        placed_starts = {placed.start for side in sides for placed in side}
        is_in_order = all(max(column) < min(next_column) for column, next_column in pairwise(starts))
        if is_in_order and all(_is_running(_rows(leaf), is_sure=False) for leaf in leaves):
            ordered += leaves
        rows = [
            remaining
            for place, row in enumerate(rows)
            if not first <= place < last
            and (remaining := [placed for placed in row if placed.start not in placed_starts])
        ]
    return ordered


def ordered_spans(spans: Sequence[Span], sets: Sequence[Columns]) -> list[Span]:
    """Split a page's lines at column borders, and put the parts in reading order, column by column.

    The columns are inserted at their first line.
    """
    ordered = list(spans)
    for columns in sets:
        place_of = {
            index: place for place, part in enumerate(columns.parts) for placed in part for index in placed.indexes
        }
        if not place_of:
            continue
        outside: list[Span] = []
        inside: list[tuple[int, Span]] = []
        at = 0
        for span in ordered:
            pieces = list(_split_by_column(span, place_of))
            if pieces and not inside:
                at = len(outside)
            inside += pieces
            if not pieces:
                outside.append(span)
        in_columns = [span for _, span in sorted(inside, key=lambda piece: piece[0])]
        ordered = [*outside[:at], *in_columns, *outside[at:]]
    return ordered


def _split_by_column(span: Span, place_of: dict[int, int]) -> Iterable[tuple[int, Span]]:
    """Yield (column number, span) for each piece of a line. Words outside all columns stay with the preceding words."""
    start, end, is_broken = span
    marks = [(index, place_of[index]) for index in range(start, end) if index in place_of]
    if is_broken and not marks and end in place_of:
        marks = [(start, place_of[end])]
    if not marks:
        return
    begin, column = start, marks[0][1]
    for index, place in marks[1:]:
        if place != column:
            yield column, (begin, index, False)
            begin, column = index, place
    yield column, (begin, end, is_broken)


def _rows(words: Sequence[PlacedWord]) -> list[list[PlacedWord]]:
    by_word = {id(placed.word): placed for placed in words}
    return [[by_word[id(word)] for word in line] for line in text_lines([placed.word for placed in words])]


def _best_gap(
    rows: Sequence[Sequence[PlacedWord]], drawing: Drawing
) -> tuple[int, int, tuple[list[PlacedWord], list[PlacedWord]]] | None:
    for edge in _gap_positions(rows):
        parted = [_split_row(row, edge, drawing) for row in rows]
        for first, last in _uncrossed_ranges(rows, parted):
            inner = [sides for sides in parted[first:last] if sides is not None]
            if not _shows_gap(inner, edge):
                continue
            left = [placed for left_words, _ in inner for placed in left_words]
            right = [placed for _, right_words in inner for placed in right_words]
            return first, last, (left, right)
    return None


def _shows_gap(rows: Sequence[tuple[list[PlacedWord], list[PlacedWord]]], edge: float) -> bool:
    """Whether most rows have a gap at this position. Word spaces must be narrower, and text must start or end there."""
    both = [(left, right) for left, right in rows if left and right]
    if len(both) < FEWEST_GAPS:
        return False
    gaps = [right[0].word.box[0] - left[-1].word.box[2] for left, right in both]
    heights = [right[0].word.height for _, right in both]
    spaces = [
        median(after.word.box[0] - before.word.box[2] for before, after in pairs) if pairs else 0.0
        for pairs in ([*pairwise(left), *pairwise(right)] for left, right in both)
    ]
    wide = sum(gap >= WIDER * space for gap, space in zip(gaps, spaces, strict=True))
    begin = sum(abs(right[0].word.box[0] - edge) <= SAME_EDGE for _, right in both)
    end = sum(abs(left[-1].word.box[2] - edge) <= SAME_EDGE for left, _ in both)
    return median(gaps) >= GAP * median(heights) and min(wide, max(begin, end)) >= MOST * len(both)


def _gap_positions(rows: Sequence[Sequence[PlacedWord]]) -> list[float]:
    lefts: list[float] = []
    rights: list[float] = []
    for row in rows:
        for before, after in pairwise(row):
            if after.word.box[0] - before.word.box[2] > GAP * after.word.height:
                lefts.append(after.word.box[0])
                rights.append(before.word.box[2])
    counted: list[tuple[int, float]] = []
    for places, is_left in ((lefts, True), (rights, False)):
        places.sort()
        begin = 0
        for end in range(1, len(places) + 1):
            if end == len(places) or places[end] - places[begin] > SAME_EDGE:
                if end - begin >= FEWEST_GAPS:
                    counted.append((end - begin, places[begin] if is_left else places[end - 1]))
                begin = end
    return [place for _, place in sorted(counted, key=lambda item: -item[0])]


def _split_row(
    row: Sequence[PlacedWord], edge: float, drawing: Drawing
) -> tuple[list[PlacedWord], list[PlacedWord]] | None:
    left: list[PlacedWord] = []
    right: list[PlacedWord] = []
    for placed in row:
        begin, _, end, _ = placed.word.box
        tolerance = 0.15 * placed.word.height
        if begin >= edge - SAME_EDGE:
            right.append(placed)
        elif end <= edge + tolerance:
            left.append(placed)
        elif (halves := drawing.cut(placed, edge)) is not None:
            left.append(halves[0])
            right.append(halves[1])
        else:
            return None
    if left and right:
        before, after = left[-1], right[0]
        gap = after.word.box[0] - before.word.box[2]
        is_edge = min(abs(after.word.box[0] - edge), abs(before.word.box[2] - edge)) <= SAME_EDGE
        if gap <= GAP * after.word.height and (not is_edge or drawing.is_one(before, after)):
            return None
    return left, right


def _distance(above: Sequence[PlacedWord], below: Sequence[PlacedWord]) -> float:
    return above[0].word.middle - below[0].word.middle


def _leading(rows: Sequence[Sequence[PlacedWord]]) -> float:
    gaps = [_distance(above, below) for above, below in pairwise(rows)]
    return median(gaps) if gaps else 0.0


def _uncrossed_ranges(
    rows: Sequence[Sequence[PlacedWord]], parted: Sequence[tuple[list[PlacedWord], list[PlacedWord]] | None]
) -> list[tuple[int, int]]:
    """Return ranges of rows in which no word crosses the gap, longest first.

    A first or last row which is far from the rest is cut off.
    """
    usual = _leading(rows)
    runs: list[tuple[int, int]] = []
    begin = 0
    for place in range(len(rows) + 1):
        is_end = place == len(rows) or parted[place] is None
        is_separate = not is_end and place > begin and _distance(rows[place - 1], rows[place]) > SECTION * usual
        if is_end or is_separate:
            if place > begin:
                runs.append((begin, place))
            begin = place + is_end
    trimmed: list[tuple[int, int]] = []
    for first, last in runs:
        usual = _leading(rows[first:last])
        begins = last - first > 1 and _distance(rows[first], rows[first + 1]) > ROW * usual
        ends = last - first > 2 and _distance(rows[last - 2], rows[last - 1]) > ROW * usual
        trimmed.append((first + begins, last - ends))
    return sorted(trimmed, key=lambda run: run[0] - run[1])


def _arrange(
    sides: tuple[list[PlacedWord], list[PlacedWord]], loose: Sequence[PageTable], drawing: Drawing
) -> Columns | None:
    leaves = [leaf for side in sides for leaf in _leaves(side, drawing, DEEPEST)]
    lines = [_rows(leaf) for leaf in leaves]
    region = [placed for side in sides for placed in side]
    is_table = any(_is_in(placed.word, table) for table in loose for placed in region)
    if not all(_is_running(leaf, is_sure=is_table) for leaf in lines):
        is_long = all(len(leaf) >= FEWEST_LINES and _usual_length(leaf) >= LONG_LINE for leaf in lines)
        return Columns(is_doubtful=True) if is_long and not is_table else None
    bands = _column_bands(_rows(region))
    if is_table and len(bands) > 1:
        return None
    if _is_from_the_right(region):
        leaves.reverse()
    parts = [
        tuple(placed for placed in leaf if low < placed.word.middle <= high) for low, high in bands for leaf in leaves
    ]
    return Columns(tuple(part for part in parts if part), is_doubtful=len(bands) > 1)


def _leaves(words: list[PlacedWord], drawing: Drawing, deep: int) -> list[list[PlacedWord]]:
    rows = _rows(words)
    best = _best_gap(rows, drawing) if deep else None
    if best is None or best[1] - best[0] < 0.6 * len(rows):
        return [words]
    first, last, sides = best
    above = [placed for row in rows[:first] for placed in row]
    below = [placed for row in rows[last:] for placed in row]
    left, right = sides
    return [*_leaves([*above, *left], drawing, deep - 1), *_leaves([*right, *below], drawing, deep - 1)]


def _column_bands(rows: Sequence[Sequence[PlacedWord]]) -> list[tuple[float, float]]:
    usual = _leading(rows)
    starts = [0]
    for place, (above, below) in enumerate(pairwise(rows), 1):
        # A line alone is the head of the following text.
        if _distance(above, below) > ROW * usual and place - starts[-1] > 1:
            starts.append(place)
    middles = [rows[place - 1][0].word.middle / 2 + rows[place][0].word.middle / 2 for place in starts[1:]]
    tops = [float("inf"), *middles]
    return list(zip([*middles, float("-inf")], tops, strict=True))


def _is_running(lines: Sequence[Sequence[PlacedWord]], *, is_sure: bool) -> bool:
    if len(lines) < FEWEST_LINES or _usual_length(lines) < SHORTEST:
        return False
    is_turned = _is_from_the_right([placed for line in lines for placed in line])
    edges = [line[0].word.box[0] if is_turned else line[-1].word.box[2] for line in lines]
    # A single line may be too long for its column.
    limit = sorted(edges, reverse=is_turned)[-2]
    filled = [
        (edge - limit if is_turned else limit - edge)
        <= _first_width(below, is_turned=is_turned) + 0.4 * below[0].word.height
        for edge, below in zip(edges[:-1], lines[1:], strict=True)
    ]
    starts = [line[0].word.text[0] for line in lines[1:]]
    cased = [character for character in starts if character.isupper() or character.islower()]
    lower = sum(map(str.islower, cased))
    return sum(filled) >= (SURELY_FILLED if is_sure else FILLED) * len(filled) and (
        lower >= (SURELY_LOWER if is_sure else LOWER) * len(cased)
    )


def _first_width(line: Sequence[PlacedWord], *, is_turned: bool) -> float:
    word = line[-1 if is_turned else 0].word
    is_spaced = word.text[0] < UNSPACED or HANGUL[0] <= word.text[0] <= HANGUL[1]
    return word.box[2] - word.box[0] if is_spaced else 2 * word.height


def _usual_length(lines: Sequence[Sequence[PlacedWord]]) -> float:
    return median(
        sum(1 + sum(1 + (character >= UNSPACED) for character in placed.word.text) for placed in line) for line in lines
    )


def _is_from_the_right(words: Sequence[PlacedWord]) -> bool:
    first, last = RIGHT_TO_LEFT
    return 2 * sum(first <= placed.word.text[0] <= last for placed in words) > len(words)


def _is_in(word: Word, table: PageTable) -> bool:
    left, bottom, right, top = table.box
    return left - 1 <= word.box[0] and word.box[2] <= right + 1 and bottom <= word.middle <= top


def _is_drawn_across(parts: Sequence[Sequence[PlacedWord]], rows: int) -> bool:
    order = sorted((placed.start, place) for place, part in enumerate(parts) for placed in part)
    changes = sum(before[1] != after[1] for before, after in pairwise(order))
    return changes >= max(FEWEST_GAPS, rows / 2)
