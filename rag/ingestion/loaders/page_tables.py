"""Find tables on a page by the positions of words and ruling lines, in PDFs and on recognised pages.

Columns are separated by vertical lines, else by gaps through all rows. Rows are separated by horizontal lines. Without
horizontal lines, each text line is a row, and a line without a first cell continues the row above. Doubtful tables stay
text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from unicodedata import bidirectional

from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.nested_tables import nested_frames
from rag.ingestion.loaders.pdf_objects import Box
from rag.text.tables import AMOUNT, LONGEST_REPEATED, guessed_head_rows, lines_of, rows_in_words

#: The most words and line segments read on a page; in a larger drawing, finding tables takes too long.
MOST_WORDS, MOST_SEGMENTS = 4000, 4000
#: The smallest gap between columns, and the largest between rows in a table without ruling lines, in letter heights.
COLUMN_GAP, ROW_GAP = 0.72, 2.6
#: The largest gap between a cell's lines, and how much wider the gap between rows is, in letter heights.
LINE_GAP, WIDER_GAP = 1.4, 0.2
#: Lines closer together than this are a single line, in points.
SAME_LINE = 3.0
#: Fewest rows in a table without ruling lines, and with some.
FEWEST_ROWS, FEWEST_RULED_ROWS = 3, 2
#: Two columns with longer average cells are text set in columns.
LONGEST_CELL = 28
#: Wider tables are drawings.
MOST_COLUMNS = 40
BULLET = re.compile(r"[-–—*•●▪■◦‣·○]|\(?\w{1,3}[.)]|[①-⑳]")
#: A row of dots leading from a title to its page.
LEADERS = re.compile(r"(?:[.·…] ?){4,}")
#: The fewest words in a justified line, and the largest difference between its gaps.
FEWEST_SPACED, SAME_GAP = 5, 0.15
#: Lines above and below a line which may show its columns.
LINES_NEAR = 6
#: The start of a new cell, rather than a continuation.
BEGINNING = re.compile(r"[A-Z\d]")
BROKEN = re.compile(r"(?<=[^\W\d_]{2})-\n(?=[a-zß-öø-ÿ])")


@dataclass(frozen=True)
class Word:
    """One or more consecutive words, and the box around them in points: left, bottom, right, top."""

    text: str
    box: Box

    @property
    def middle(self) -> float:
        return (self.box[1] + self.box[3]) / 2

    @property
    def height(self) -> float:
        return self.box[3] - self.box[1]


@dataclass(frozen=True)
class RulingLines:
    """The straight lines drawn on a page, for example table borders: horizontal (y, left, right), vertical (x, bottom,
    top).
    """

    horizontal: tuple[tuple[float, float, float], ...]
    vertical: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class PageTable:
    """A table on a page: the box, each column's left edge, and rows with a cell for each column."""

    box: Box
    lefts: tuple[float, ...]
    #: `None` if the cell to the left continues.
    rows: tuple[tuple[str | None, ...], ...]
    head_rows: int
    #: The letters, each as often as on the page.
    source: str
    #: The boxes of the text, cell by cell and line by line.
    parts: tuple[Box, ...] = ()
    is_ruled: bool = False
    #: Whether lines separate its columns.
    has_grid: bool = False
    #: Whether the columns are counted from the right. `lefts` then refers to the mirrored page.
    is_mirrored: bool = False
    #: Whether no other text is above or below on the page, except running heads and page numbers.
    is_first: bool = False
    is_last: bool = False

    def lines(self) -> list[str]:
        return lines_of(self.rows, self.head_rows)

    def mirrored(self) -> PageTable:
        """Return the table mirrored left to right, for text which runs from right to left."""
        left, bottom, right, top = self.box
        parts = tuple((-end, low, -begin, high) for begin, low, end, high in self.parts)
        return replace(self, box=(-right, bottom, -left, top), parts=parts, is_mirrored=not self.is_mirrored)

    def column_at(self, left: float, right: float) -> int:
        """Return the column of a word, counted from 1."""
        return bisect_right(self.lefts, (-right if self.is_mirrored else left) + 2)

    def goes_on_from(self, before: PageTable) -> bool:
        """Whether this table continues `before`, the last table on the previous page."""
        return (
            before.is_last
            and self.is_first
            and before.is_mirrored == self.is_mirrored
            and len(before.lefts) == len(self.lefts)
            and all(abs(a - b) < 2 * SAME_LINE for a, b in zip(before.lefts, self.lefts, strict=True))
        )

    def with_heads_of(self, before: PageTable) -> PageTable:
        """Return this table, which continues `before` from the previous page, with the column headings of `before`."""
        heads = before.rows[: before.head_rows]
        has_heads = not heads or self.rows[: len(heads)] == heads
        above, body = self.rows[: len(heads) * has_heads], self.rows[len(heads) * has_heads :]
        if self.has_grid and (name := before.last_name()):
            # A cell over several rows continues without its text.
            unnamed = next((place for place, row in enumerate(body) if row[0]), len(body))
            body = (*((name, *row[1:]) for row in body[:unnamed]), *body[unnamed:])
        if has_heads:
            return replace(self, rows=(*above, *body))
        return replace(self, rows=(*heads, *body), head_rows=before.head_rows)

    def last_name(self) -> str:
        """The text in the first cell of the last row if this cell spans several rows, else ""."""
        last_rows = self.rows[self.head_rows :][-2:]
        return (last_rows[-1][0] or "") if len(last_rows) == 2 and last_rows[0][0] == last_rows[1][0] else ""


def tables_among(
    words: Sequence[Word], rules: RulingLines, *, row_gap: float = ROW_GAP, column_gap: float = COLUMN_GAP
) -> list[PageTable]:
    """Find the tables on a page, from top to bottom.

    `row_gap` is the largest gap between rows, and `column_gap` the smallest gap between columns. Both are multiples of
    the text height.
    """
    if not words or len(words) > MOST_WORDS:
        return []
    if _are_from_the_right(words):
        # In the mirror, the first column and the first word of a cell are on the left.
        mirrored = RulingLines(
            tuple((y, -right, -left) for y, left, right in rules.horizontal),
            tuple((-x, bottom, top) for x, bottom, top in rules.vertical),
        )
        tables = _tables_among([_mirror(word) for word in words], mirrored, row_gap, column_gap, is_mirrored=True)
        return [table.mirrored() for table in tables]
    return _tables_among(words, rules, row_gap, column_gap, is_mirrored=False)


def _are_from_the_right(words: Sequence[Word]) -> bool:
    directions = Counter(_direction(word.text) for word in words)
    return directions["R"] > directions["L"]


def _direction(text: str) -> str:
    """Return the writing direction of the first letter: "R" (right to left), "L" (left to right), or "" without
    letters.
    """
    letter = next(filter(str.isalpha, text), "")
    return ("R" if bidirectional(letter) in ("R", "AL") else "L") if letter else ""


def _mirror(word: Word) -> Word:
    left, bottom, right, top = word.box
    return Word(word.text, (-right, bottom, -left, top))


def _tables_among(
    words: Sequence[Word], rules: RulingLines, row_gap: float, column_gap: float, *, is_mirrored: bool
) -> list[PageTable]:
    frames = nested_frames(rules.horizontal, rules.vertical)
    nested = [
        placed
        for frame in frames
        if (placed := _nested_table(frame, words, rules, is_mirrored=is_mirrored)) is not None
    ]
    for inner, replaced in nested:
        inside = set(replaced)
        words = [*(word for word in words if word not in inside), inner]
    for frame in frames:
        rules = _outside(frame, rules)
    lines = _without_justified(
        [_split_cells(line, rules, column_gap, is_mirrored=is_mirrored) for line in text_lines(words)]
    )
    tables = []
    for first, last in _table_regions(lines, rules, row_gap):
        table = _table(lines[first:last], rules)
        if table is not None:
            source = table.source
            parts = list(table.parts)
            for inner, replaced in nested:
                if inner.text in source:
                    source = source.replace(inner.text, "".join(word.text for word in replaced))
                    parts += [word.box for word in replaced]
            is_first, is_last = _few_words(lines[:first]), _few_words(lines[last:])
            tables.append(replace(table, source=source, parts=tuple(parts), is_first=is_first, is_last=is_last))
    return tables


def _nested_table(
    frame: Box, words: Sequence[Word], rules: RulingLines, *, is_mirrored: bool
) -> tuple[Word, list[Word]] | None:
    left, bottom, right, top = frame
    inner_words = [
        word for word in words if left <= word.box[0] and word.box[2] <= right and bottom <= word.middle <= top
    ]
    inside = RulingLines(
        tuple(
            rule
            for rule in rules.horizontal
            if bottom - SAME_LINE <= rule[0] <= top + SAME_LINE and rule[1] >= left - SAME_LINE
        ),
        tuple(rule for rule in rules.vertical if left - SAME_LINE <= rule[0] <= right + SAME_LINE),
    )
    tables = _tables_among(inner_words, inside, ROW_GAP, COLUMN_GAP, is_mirrored=is_mirrored)
    if len(tables) != 1 or len(tables[0].source) < sum(len(word.text) for word in inner_words):
        return None
    middle = (bottom + top) / 2
    height = median(word.height for word in inner_words)
    rows_text = "; ".join(rows_in_words(tables[0].lines()))
    return Word(rows_text, (left, middle - height / 2, right, middle + height / 2)), inner_words


def _outside(frame: Box, rules: RulingLines) -> RulingLines:
    left, bottom, right, top = (edge + step for edge, step in zip(frame, (-1.0, -1.0, 1.0, 1.0), strict=True))
    return RulingLines(
        tuple(r for r in rules.horizontal if not (bottom <= r[0] <= top and left <= r[1] and r[2] <= right)),
        tuple(r for r in rules.vertical if not (left <= r[0] <= right and bottom <= r[1] and r[2] <= top)),
    )


def _few_words(lines: Sequence[Sequence[Word]]) -> bool:
    return len(lines) <= 2


def text_lines(words: Sequence[Word]) -> list[list[Word]]:
    """Group words into lines, from top to bottom. The words in a line are sorted from left to right."""
    rows: list[list[Word]] = []
    middles: list[float] = []  # of the last row, in descending order
    for middle, word in sorted(((word.middle, word) for word in words), key=lambda pair: -pair[0]):
        count = len(middles)
        if count:
            median_middle = (middles[(count - 1) // 2] + middles[count // 2]) / 2
            if abs(median_middle - middle) < 0.45 * max(word.height, rows[-1][0].height):
                rows[-1].append(word)
                middles.append(middle)
                continue
        rows.append([word])
        middles = [middle]
    return [sorted(row, key=lambda word: word.box[0]) for row in rows]


def _split_cells(row: Sequence[Word], rules: RulingLines, column_gap: float, *, is_mirrored: bool) -> list[Word]:
    low, high = min(word.box[1] for word in row), max(word.box[3] for word in row)
    verticals = [rule for rule in rules.vertical if rule[1] <= high and rule[2] >= low]
    parts: list[Word] = []
    texts: list[str] = []
    left, bottom, right, top = row[0].box
    for word in row:
        box = word.box
        height = box[3] - box[1]
        if texts:
            gap = box[0] - right
            is_separate = gap > column_gap * max(height, top - bottom) or any(
                right - 1 <= x <= box[0] + 1 and begin <= word.middle <= end for x, begin, end in verticals
            )
            if not is_separate:
                texts += [" " if gap > 0.08 * height else "", word.text]
                left, bottom, right, top = min(left, box[0]), min(bottom, box[1]), max(right, box[2]), max(top, box[3])
                continue
            parts.append(Word(_join_words(texts, is_mirrored=is_mirrored), (left, bottom, right, top)))
        texts = [word.text]
        left, bottom, right, top = box
    parts.append(Word(_join_words(texts, is_mirrored=is_mirrored), (left, bottom, right, top)))
    return parts


def _join_words(texts: Sequence[str], *, is_mirrored: bool) -> str:
    """Join words with blanks. In a right-to-left table, Latin words and numbers are put back in order."""
    if not is_mirrored or len(texts) == 1:
        return "".join(texts)
    ordered: list[str] = []
    turned: list[str] = []
    for text in texts:
        if _direction(text) == "R":
            # The blank before this word belongs between it and the others.
            blank = turned.pop() if turned else ""
            ordered += [*reversed(turned), blank, text]
            turned = []
        else:
            turned.append(text)
    blanks = 0
    while blanks < len(turned) and not turned[blanks].strip():
        blanks += 1
    return "".join([*ordered, *turned[:blanks], *reversed(turned[blanks:])])


def _without_justified(lines: list[list[Word]]) -> list[list[Word]]:
    """Join the words in each justified line, because wide word gaps look like columns.

    A line is justified if all gaps are equal and no nearby line has words at the same positions.
    """
    joined = list(lines)
    for place, line in enumerate(lines):
        if len(line) < FEWEST_SPACED:
            continue
        gaps = [after.box[0] - before.box[2] for before, after in pairwise(line)]
        if max(gaps) - min(gaps) > SAME_GAP * max(gaps):
            continue
        neighbours = [*lines[max(0, place - LINES_NEAR) : place], *lines[place + 1 : place + 1 + LINES_NEAR]]
        if not any(_is_aligned(line, other) for other in neighbours if len(other) > 1):
            box = line[0].box[0], min(p.box[1] for p in line), line[-1].box[2], max(p.box[3] for p in line)
            joined[place] = [Word(" ".join(part.text for part in line), box)]
    return joined


def _is_aligned(line: Sequence[Word], other: Sequence[Word]) -> bool:
    aligned = [0, 0, 0]
    for part in line[1:-1]:
        for way, place in enumerate(_places(part)):
            aligned[way] += any(abs(place - _places(other_part)[way]) < 1.5 for other_part in other)
    return 2 * max(aligned) >= len(line) - 2


def _places(part: Word) -> tuple[float, float, float]:
    return part.box[0], part.box[2], (part.box[0] + part.box[2]) / 2


def _table_regions(lines: Sequence[Sequence[Word]], rules: RulingLines, row_gap: float) -> Iterator[tuple[int, int]]:
    index = 0
    while index < len(lines):
        if len(lines[index]) < 2 and not _is_ruled_in(lines[index], rules):
            index += 1
            continue
        end = index + 1
        last_row = index
        while end < len(lines) and _goes_on(lines[end - 1], lines[end], rules, row_gap):
            if len(lines[end]) > 1 or _is_ruled_in(lines[end], rules):
                last_row = end
            elif not _is_inner(lines[end], lines[index:end]) and not _ends_first_cell(lines[end], lines[index:end]):
                break
            else:
                last_row = end
            end += 1
        yield index, last_row + 1
        index = last_row + 1


def _goes_on(above: Sequence[Word], line: Sequence[Word], rules: RulingLines, row_gap: float) -> bool:
    gap = above[0].middle - line[0].middle
    if gap <= row_gap * max(line[0].height, above[0].height):
        return True
    return _is_ruled_in(line, rules) and _is_ruled_in(above, rules) and gap < 80


def _is_ruled_in(line: Sequence[Word], rules: RulingLines) -> bool:
    left, right, middle = line[0].box[0], line[-1].box[2], line[0].middle
    verticals = {round(x / SAME_LINE) for x, bottom, top in rules.vertical if bottom - 1 <= middle <= top + 1}
    return (
        len(verticals) >= 3
        and min(verticals) * SAME_LINE <= left + SAME_LINE
        and max(verticals) * SAME_LINE >= right - SAME_LINE
    )


def _is_inner(line: Sequence[Word], region: Sequence[Sequence[Word]]) -> bool:
    rows = [row for row in region if len(row) > 1]
    first_right = max((row[0].box[2] for row in rows), default=0.0)
    left = min((row[1].box[0] for row in rows), default=0.0)
    return bool(rows) and line[0].box[0] >= min(left, first_right) - 2


def _ends_first_cell(line: Sequence[Word], region: Sequence[Sequence[Word]]) -> bool:
    rows = [row for row in region if len(row) > 1]
    if not rows or not line[0].text[:1].islower():
        return False
    second = min(row[1].box[0] for row in rows)
    return line[0].box[0] >= min(row[0].box[0] for row in rows) - 2 and line[0].box[2] < second


def _table(lines: Sequence[Sequence[Word]], rules: RulingLines) -> PageTable | None:
    parts = [part for line in lines for part in line]
    left, bottom = min(p.box[0] for p in parts), min(p.box[1] for p in parts)
    right, top = max(p.box[2] for p in parts), max(p.box[3] for p in parts)
    height = median(p.height for p in parts)
    # Cells may be much higher than their words.
    at_sides = [r for r in rules.vertical if left - height < r[0] < right + height and r[1] < top and r[2] > bottom]
    lowest = min([bottom - height, *(r[1] - SAME_LINE for r in at_sides)])
    highest = max([top + height, *(r[2] + SAME_LINE for r in at_sides)])
    near = [r for r in rules.horizontal if lowest < r[0] < highest]
    for _ in range(MOST_COLUMNS):
        # Ruling lines reach further than the words, and are drawn cell by cell.
        reached = [r for r in near if r[1] < right + 15 and r[2] > left - 15]
        widest = min([left, *(r[1] for r in reached)]), max([right, *(r[2] for r in reached)])
        if widest == (left, right):
            break
        left, right = widest
    inside = [
        r
        for r in rules.vertical
        if left - SAME_LINE < r[0] < right + SAME_LINE and min(r[2], top) - max(r[1], bottom) > 0.4 * height
    ]
    verticals = _distinct_positions([r[0] for r in inside])
    horizontals = [
        y
        for y in _distinct_positions([r[0] for r in near])
        if sum(r[2] - r[1] for r in near if 0 <= r[0] - y <= SAME_LINE) > 0.3 * (right - left)
    ]
    has_grid = len(verticals) >= 3 and len(horizontals) >= 3 and _separate_words(inside, lines)
    if has_grid:
        lowest, highest = min(horizontals[0], *(r[1] for r in inside)), max(horizontals[-1], *(r[2] for r in inside))
        within = [line for line in lines if lowest <= line[0].middle <= highest]
        if 0 < len(within) < len(lines):
            return _table(within, rules)
    columns = list(pairwise(verticals)) if has_grid else _columns(lines)
    if not 2 <= len(columns) <= MOST_COLUMNS:
        return None
    bands = _group_rows(lines, horizontals, len(columns), has_grid)
    is_ruled = len(horizontals) >= 2
    cells = [_cells(band, columns, by_middle=has_grid) for band in bands]
    # Rows without a line between them would all be spanned by the cells around them.
    if has_grid and len(bands) <= len(horizontals):
        spans = _merged_cells(bands, columns, inside, near)
        cells = [
            [
                _sort_words([word for r, c in spans[row, column] for word in cells[r][c]])
                for column in range(len(columns))
            ]
            for row in range(len(cells))
        ]
    else:
        narrow = [[list(words) for words in row] for row in cells]
        cells = _repeat_wide_cells(bands, columns, cells)
        heads = guessed_head_rows([[_text(words) for words in row] for row in cells])
        cells = [row if place < heads or _is_one_cell(row) else narrow[place] for place, row in enumerate(cells)]
    filled = [place for place in range(len(columns)) if any(row[place] for row in cells)]
    columns = [columns[place] for place in filled]
    cells = [[row[place] for place in filled] for row in cells]
    grid = [[_text(words) for words in row] for row in cells]
    if not has_grid:
        if _has_centred_cells(grid):
            return None
        _repeat_headings(grid, cells)
        _repeat_names(grid)
    if not _is_table(grid, has_grid=has_grid, is_ruled=is_ruled):
        return None
    rows = tuple(_rows_with_spans(grid, cells))
    return PageTable(
        box=(left, bottom, right, top),
        lefts=tuple(column[0] for column in columns),
        rows=rows,
        head_rows=guessed_head_rows(rows),
        source="".join(part.text for part in parts),
        parts=tuple(part.box for part in parts),
        is_ruled=is_ruled,
        has_grid=has_grid,
    )


def _separate_words(vertical: Sequence[tuple[float, float, float]], lines: Sequence[Sequence[Word]]) -> bool:
    parted = [
        all(
            any(word.box[2] - 1 <= x <= other.box[0] + 1 and low <= word.middle <= high for x, low, high in vertical)
            for word, other in pairwise(line)
        )
        for line in lines
        if len(line) > 1
    ]
    return sum(parted) >= len(parted) / 2


def _distinct_positions(places: Sequence[float]) -> list[float]:
    clustered: list[float] = []
    for place in sorted(places):
        if not clustered or place - clustered[-1] > SAME_LINE:
            clustered.append(place)
    return clustered


def _columns(lines: Sequence[Sequence[Word]]) -> list[tuple[float, float]]:
    counts = Counter(len(line) for line in lines if len(line) > 1)
    if not counts:
        return []
    usual = max((count for count, times in counts.items() if times >= max(2, len(lines) // 4)), default=0)
    if len(lines[0]) > usual:
        return _columns_below(lines[0], lines[1:])
    columns: list[tuple[float, float]] = []
    for part in sorted((p for line in lines if len(line) == usual for p in line), key=lambda part: part.box[0]):
        if columns and part.box[0] < columns[-1][1] + 1:
            columns[-1] = (columns[-1][0], max(columns[-1][1], part.box[2]))
        else:
            columns.append((part.box[0], part.box[2]))
    return columns


def _columns_below(heads: Sequence[Word], lines: Sequence[Sequence[Word]]) -> list[tuple[float, float]]:
    columns = [(head.box[0], head.box[2]) for head in heads]
    for part in (part for line in lines for part in line):
        over = [place for place, (left, right) in enumerate(columns) if part.box[0] < right and part.box[2] > left]
        if len(over) == 1:
            left, right = columns[over[0]]
            columns[over[0]] = min(left, part.box[0]), max(right, part.box[2])
    return columns


def _group_rows(
    lines: Sequence[Sequence[Word]], horizontals: Sequence[float], columns: int, has_grid: bool
) -> list[list[Sequence[Word]]]:
    if has_grid or (len(horizontals) >= 4 and len(horizontals) >= len(lines) / 3):
        by_band: dict[int, list[Sequence[Word]]] = {}
        for line in lines:
            by_band.setdefault(sum(y > line[0].middle for y in horizontals), []).append(line)
        several = any(len(_rows_in(band, columns, FEWEST_ROWS)) > 1 for band in by_band.values())
        fewest = 2 if several and columns > 2 else FEWEST_ROWS
        return [rows for band in sorted(by_band) for rows in _rows_in(by_band[band], columns, fewest)]
    first = min((line[0].box[0] for line in lines if len(line) > 1), default=0.0)
    second = min((line[1].box[0] for line in lines if len(line) > 1), default=0.0)
    within = _gap_within_rows(lines, columns)
    bands: list[list[Sequence[Word]]] = []
    for above, line in zip([lines[0], *lines], lines, strict=False):
        has_name = line[0].box[0] <= first + 4 or line[0].box[0] < second - 2
        is_near = within > 0 and above[0].middle - line[0].middle < within
        if has_name:
            goes_on = (is_near and line[0].text[:1].islower()) or (len(line) == 1 and _ends_first_cell(line, lines))
        elif within > 0:
            goes_on = is_near or len(line) == 1
        else:
            is_row = 1 < len(line) == columns - 1 and all(BEGINNING.match(part.text) for part in line[1:])
            goes_on = len(line) < columns and not is_row
        if goes_on and len(bands) > 1:
            bands[-1].append(line)
        else:
            bands.append([line])
    return bands


def _gap_within_rows(lines: Sequence[Sequence[Word]], columns: int) -> float:
    """Return the vertical gap below which two text lines are in the same table row, or 0 if each line is a row."""
    height = median(line[0].height for line in lines)
    gaps = sorted(above[0].middle - line[0].middle for above, line in pairwise(lines))
    wider = next((after for before, after in pairwise(gaps) if after - before > WIDER_GAP * height), 0.0)
    if not wider or gaps[0] > LINE_GAP * height:
        return 0.0
    for above, line in pairwise(lines):
        is_near = above[0].middle - line[0].middle < wider - 0.1
        if is_near and len(line) == columns and not line[0].text[:1].islower():
            return 0.0
    return wider - 0.1


def _rows_in(band: list[Sequence[Word]], columns: int, fewest: int) -> list[list[Sequence[Word]]]:
    """Split the text lines between two horizontal lines into table rows.

    They are a single row, unless enough text lines start a new cell in every column.
    """
    full = [line for line in band if len(line) == columns]
    if len(full) < fewest or any(not BEGINNING.match(part.text) for line in full for part in line):
        return [band]
    return [[line] for line in band]


def _cells(
    band: Sequence[Sequence[Word]], columns: Sequence[tuple[float, float]], *, by_middle: bool
) -> list[list[Word]]:
    cells: list[list[Word]] = [[] for _ in columns]
    for part in (part for line in band for part in line):
        middle = (part.box[0] + part.box[2]) / 2
        if by_middle:
            place = sum(middle > right for _, right in columns[:-1])
        else:
            shared = [min(part.box[2], right) - max(part.box[0], left) for left, right in columns]
            place = shared.index(max(shared))
        cells[place].append(part)
    return cells


def _repeat_wide_cells(
    bands: Sequence[Sequence[Sequence[Word]]],
    columns: Sequence[tuple[float, float]],
    cells: list[list[list[Word]]],
) -> list[list[list[Word]]]:
    for band, row in zip(bands, cells, strict=True):
        for part in (part for line in band for part in line):
            over = [
                place
                for place, (left, right) in enumerate(columns)
                if min(part.box[2], right) - max(part.box[0], left) > 0.3 * min(right - left, part.box[2] - part.box[0])
            ]
            # A head never spans the column of row names and columns of values.
            is_wide = len(over) > 1 and (over[0] > 0 or len(over) == len(columns))
            for place in over if is_wide else ():
                if part not in row[place]:
                    row[place].append(part)
    return cells


def _merged_cells(
    bands: Sequence[Sequence[Sequence[Word]]],
    columns: Sequence[tuple[float, float]],
    vertical: Sequence[tuple[float, float, float]],
    horizontal: Sequence[tuple[float, float, float]],
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    middles = [median(line[0].middle for line in band) for band in bands]
    groups = {(row, column): [(row, column)] for row in range(len(bands)) for column in range(len(columns))}

    def join(place: tuple[int, int], neighbour: tuple[int, int]) -> None:
        if groups[place] is not groups[neighbour]:
            groups[place].extend(groups[neighbour])
            for cell in groups[neighbour]:
                groups[cell] = groups[place]

    for row, middle in enumerate(middles):
        for column in range(len(columns) - 1):
            edge = columns[column][1]
            if not any(abs(x - edge) < SAME_LINE and low - 1 <= middle <= high + 1 for x, low, high in vertical):
                join((row, column), (row, column + 1))
    for row, (upper, lower) in enumerate(pairwise(middles)):
        for column, (left, right) in enumerate(columns):
            centre = (left + right) / 2
            if not any(lower < y < upper and low - 1 <= centre <= high + 1 for y, low, high in horizontal):
                join((row, column), (row + 1, column))
    return groups


def _sort_words(words: Sequence[Word]) -> list[Word]:
    return sorted(dict.fromkeys(words), key=lambda word: (-round(word.middle / 3), word.box[0]))


def _text(words: Sequence[Word]) -> str:
    text = ""
    for before, word in zip([None, *words], words, strict=False):
        if before is not None:
            text += " " if abs(before.middle - word.middle) < 0.45 * word.height else "\n"
        text += word.text
    return " ".join(normalise_characters(BROKEN.sub("", text)).split())


def _repeat_headings(grid: list[list[str]], cells: Sequence[Sequence[Sequence[Word]]]) -> None:
    """Repeat an upper column heading over the columns on the right which have only a lower heading.

    Centred headings are not repeated, because they do not show which columns they cover.
    """
    if len(grid) < FEWEST_ROWS or len(grid[0]) < 3 or (grid[0][0] and grid[1][0]):
        return
    upper, lower = grid[:2]
    if any(map(AMOUNT.fullmatch, lower)):
        return
    begins = [
        bool(upper_words and lower_words) and abs(upper_words[0].box[0] - lower_words[0].box[0]) < SAME_LINE
        for upper_words, lower_words in zip(cells[0], cells[1], strict=True)
    ]
    for place in range(1, len(upper)):
        if lower[place] and not upper[place] and lower[place - 1] and begins[place - 1]:
            upper[place], begins[place] = upper[place - 1], True


def _repeat_names(grid: list[list[str]]) -> None:
    """Repeat the name of a group of rows in each row. All groups must have the same number of rows."""
    body = grid[max(1, guessed_head_rows(grid)) :]
    places = [place for place, row in enumerate(body) if row[0]]
    if len(places) < 2 or len(body[0]) < 3 or not all(row[1] for row in body):
        return
    size = len(body) // len(places)
    for first in {0, (size - 1) // 2 if size % 2 else 0}:
        if places == list(range(first, len(body), size)) and len(body) == size * len(places):
            for place, row in enumerate(body):
                row[0] = body[place // size * size + first][0]
            return


def _has_centred_cells(grid: Sequence[Sequence[str]]) -> bool:
    """Whether cells start above the name of their row. Then row names are vertically centred, and rows cannot be
    separated.
    """
    return (
        len(grid) > 2 and all(grid[0]) and len(set(grid[0])) == len(grid[0])
        and not grid[1][0] and bool(grid[2][0]) and not all(grid[1][1:])
    )  # fmt: skip


def _is_one_cell(row: Sequence[Sequence[Word]]) -> bool:
    return len(row) > 2 and bool(row[0]) and all(cell == row[0] for cell in row[1:])


def _rows_with_spans(
    grid: Sequence[Sequence[str]], cells: Sequence[Sequence[Sequence[Word]]]
) -> Iterator[tuple[str | None, ...]]:
    """Yield table rows. A cell is `None` if the cell on the left continues.

    A cell over several rows is repeated in each row, but long text appears only in the first.
    """
    above: Sequence[Sequence[Word]] = ()
    for texts, words in zip(grid, cells, strict=True):
        is_over_all = _is_one_cell(words)
        if is_over_all and above and words[0] == above[0]:
            continue
        row: list[str | None] = list(texts)
        for place, cell in enumerate(words):
            is_long = len(texts[place]) > LONGEST_REPEATED
            if is_long and above and cell == above[place]:
                row[place] = ""
            # The first row names its columns.
            if place and cell and cell == words[place - 1] and (is_over_all or is_long or above):
                row[place] = None
        above = words
        yield tuple(row)


def _is_table(grid: Sequence[Sequence[str]], *, has_grid: bool, is_ruled: bool) -> bool:
    if not grid or len(grid[0]) < 2 or len(grid) < (FEWEST_RULED_ROWS if is_ruled else FEWEST_ROWS):
        return False
    filled = [sum(bool(cell) for cell in row) for row in grid]
    if sum(count > 1 for count in filled) < 0.6 * len(grid):
        return False
    if has_grid:
        return True
    if sum(any(map(LEADERS.search, row)) for row in grid) >= len(grid) / 2:
        return False
    columns = list(zip(*grid, strict=True))
    if not any(map(str.isalnum, "".join(columns[0]))):
        return False
    if len(columns) == 2 and all(BULLET.fullmatch(cell) for cell in columns[0] if cell):
        return False
    # Without a border, exclude text in columns, forms and tables of contents.
    long = sum(sum(map(len, column)) / max(1, sum(map(bool, column))) > LONGEST_CELL for column in columns)
    return long <= (len(columns) // 2 if len(columns) > 2 else 1 if is_ruled else 0) or (
        is_ruled and long < len(columns)
    )
