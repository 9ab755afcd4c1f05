"""Write tables as text, and find them again: a line for each row, with cells separated by `|`, column headings first.

Loaders and Markdown use this format. Chunks repeat the column headings, and answers name each value by its heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

LINES = re.compile(r"[^\n]+")
#: A cell in Markdown's rule below the heads.
RULE_CELL = re.compile(r":?-{2,}:?")
#: A number alone or with its unit belongs in a row, not above it. A year may head a column.
AMOUNT = re.compile(r"(?!(?:19|20)\d\d$)[^\w]*\d[\d.,:–/ -]*(?:[%€$£₩¥]|[^\W\d]{1,4})?")
ADDRESS = re.compile(r"\S@\S|://")
#: A cell with a number or an address may be a value.
VALUE = re.compile(rf"\d|{ADDRESS.pattern}")
WORD, NUMBER = re.compile(r"[^\W\d_]+"), re.compile(r"\d+")
#: In a column of dates, at least this many different words occur in the same place.
LEAST_MONTHS = 3
#: Each date has the same words.
DATE = re.compile(r"\d{1,2}[월月]\s?\d{1,2}[일日]")
LONGEST_HEAD = 60
#: The most lines a cell may have in a text which does not join them.
MOST_LINES = 3
NOTHING = frozenset({"", "-", "–", "—"})


class Row(NamedTuple):
    """A table row and its position in the text. A named tuple, because a text of 1 MB may have 100,000 rows."""

    start: int
    end: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table's column headings and the rows below; `heads` is `None` if the first row is data."""

    heads: Row | None
    rows: tuple[Row, ...]

    @property
    def start(self) -> int:
        return (self.heads or self.rows[0]).start

    @property
    def end(self) -> int:
        return self.rows[-1].end


def cells_of(line: str) -> tuple[str, ...]:
    """Split a line into cells. Empty if the line is no table row."""
    if "|" not in line:
        return ()
    line = line.strip()
    if line.startswith("|") and line.endswith("|") and len(line) > 1:
        line = line[1:-1]
    cells = tuple(map(str.strip, line.split("|")))
    return cells if len(cells) > 1 else ()


@lru_cache(maxsize=1)  # Boundaries and spans ask for the same text's tables.
def tables_in(text: str) -> tuple[Table, ...]:
    """Find the tables in a text: at least two consecutive rows with the same number of cells."""
    return tuple(table for rows in _blocks(text) if (table := _table(rows)) is not None) if "|" in text else ()


def _blocks(text: str) -> Iterator[list[Row]]:
    rows: list[Row] = []
    lines = list(LINES.finditer(text))
    place = 0
    while place < len(lines):
        line, line_count = lines[place], 1
        cells = cells_of(line[0])
        follows = bool(rows) and line.start() == rows[-1].end + 1
        if follows and 1 < len(cells) < len(rows[-1].cells):
            width = len(rows[-1].cells)
            line_count, cells = _join_lines(lines[place : place + MOST_LINES * width + 2], width)
        if rows and not (follows and len(cells) == len(rows[-1].cells)):
            yield rows
            rows = []
        if cells:
            rows.append(Row(line.start(), lines[place + line_count - 1].end(), cells))
        place += line_count
    if rows:
        yield rows


def _join_lines(lines: Sequence[re.Match[str]], width: int) -> tuple[int, tuple[str, ...]]:
    """Join the lines in a row with multi-line cells. Returns the line count, and the cells.

    If the joined lines do not have `width` cells, and in Markdown, only the first line is the row.
    """
    first = cells_of(lines[0][0])
    cells = list(first)
    if lines[0][0].strip()[:1] == "|":
        return 1, first
    line_count = 1
    # A row with more lines is text.
    for above, line in pairwise(lines[: MOST_LINES * width]):
        if line.start() != above.end() + 1:
            break
        line_cells = cells_of(line[0])
        if len(cells) == width and (line_cells or not _is_followed_by_row(lines, line_count)):
            break
        if len(cells) + max(0, len(line_cells) - 1) > width:
            return 1, first
        cells[-1] = f"{cells[-1]} {line_cells[0] if line_cells else line[0].strip()}".strip()
        cells.extend(line_cells[1:])
        line_count += 1
    return (line_count, tuple(cells)) if len(cells) == width else (1, first)


def _is_followed_by_row(lines: Sequence[re.Match[str]], place: int) -> bool:
    if place + 1 >= len(lines) or len(lines[place][0]) > LONGEST_HEAD:
        return False
    return lines[place + 1].start() == lines[place].end() + 1 and bool(cells_of(lines[place + 1][0]))


def _table(rows: list[Row]) -> Table | None:
    body = tuple(row for row in rows if not all(RULE_CELL.fullmatch(cell) for cell in row.cells))
    # Bars alone do not make a table: two rows need two cells with content.
    filled_rows = (row for row in body if sum(any(map(str.isalnum, cell)) for cell in row.cells) > 1)
    if len(list(islice(filled_rows, 2))) < 2:
        return None
    is_ruled = len(rows) > 1 and rows[1] not in body
    if is_ruled or are_heads(body[0].cells, [row.cells for row in body[1:]]):
        return Table(body[0], tuple(row for row in body[1:] if row.cells != body[0].cells) or body[1:])
    return Table(None, body)


def are_heads(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has column headings: short, distinct cells without amounts, and unlike the rows below."""
    named = [cell for cell in first if cell not in NOTHING]
    if len(named) < max(1, len(first) - 1) or len(set(named)) < len(named):
        return False
    if any(len(cell) > LONGEST_HEAD or AMOUNT.fullmatch(cell) or cell[-1] in ".!?" for cell in named):
        return False
    if any(map(_is_like_those_below, zip(first, *(row for row in rows if len(row) == len(first)), strict=True))):
        return False
    # With two columns the first row may be a name and its value like every other.
    return len(first) > 2 or 2 * sum(any(map(str.isdigit, row[-1])) for row in rows) >= len(rows)


def _is_like_those_below(column: Sequence[str]) -> bool:
    """Whether the first cell in a column is data, not a heading.

    True for a date or address if at least half the cells below have the same form.
    """
    first, *below = column
    if not VALUE.search(first):
        return False
    alike = [cell for cell in below if _cell_form(cell) == _cell_form(first)]
    if not alike or 2 * len(alike) < len(below):
        return False
    words = zip(*(WORD.findall(cell.casefold()) for cell in (first, *alike)), strict=True)
    return bool(ADDRESS.search(first) or DATE.fullmatch(first)) or any(len(set(each)) >= LEAST_MONTHS for each in words)


def _cell_form(cell: str) -> str:
    """Replace each word by "w" and each number by "0", to compare the form of cells."""
    return NUMBER.sub("0", WORD.sub("w", cell))


def row_in_words(heads: Sequence[str] | None, cells: Sequence[str]) -> str:
    """Write a row as a sentence: "Dental Plus — Monthly cost: £14.80; Crowns: 50 %"."""
    if heads is None:
        filled_cells = [cell for cell in cells if cell not in NOTHING]
        return ": ".join(filled_cells) if len(filled_cells) == 2 else "; ".join(filled_cells)
    subject = cells[0] if cells[0] not in NOTHING else ""
    pairs = list(zip(heads, cells, strict=True))[1 if subject else 0 :]
    values = "; ".join(
        f"{head}: {value}" if head not in NOTHING else value for head, value in pairs if value not in NOTHING
    )
    return f"{subject} — {values}" if subject and values else subject or values


def rows_in_words(lines: Sequence[str]) -> list[str]:
    """Write a nested table's rows as texts: "2025: 4 %", or "Year: 2025, Low: 3 %, High: 4 %"."""
    rows = [line.split(" | ") for line in lines]
    widths = set(map(len, rows))
    # With two columns, the first row may be a name and its value as well.
    if len(widths) != 1 or widths <= {1, 2} or not guessed_head_rows(rows):
        return [row_in_words(None, row) for row in rows]
    return [
        ", ".join(f"{head}: {cell}" if head else cell for head, cell in zip(rows[0], row, strict=True) if cell)
        for row in rows[1:]
    ]


# Writing

#: A cell for each column; `None` continues the cell on the left.
Grid = Sequence[Sequence[str | None]]

#: The most rows with heads.
MOST_HEAD_ROWS = 3
#: A cell spanning columns is repeated in each of them up to this length; a longer cell is text, kept in the first.
LONGEST_REPEATED = 80


def guessed_head_rows(grid: Grid) -> int:
    """Return the likely number of header rows at the start, possibly 0.

    If a cell in a header row spans several columns, the next row is a header row too.
    """
    rows = 1
    most = min(MOST_HEAD_ROWS, len(grid) - 1)
    while rows < most and _spans_columns(grid[rows - 1]) and _has_heads_below(grid[rows - 1], grid[rows]):
        rows += 1
    if rows > 1 and not any(map(str.isdigit, "".join(cell or "" for row in grid[:rows] for cell in row))):
        return rows
    filled = [_fill_cells(row, is_repeated=True) for row in grid]
    return 1 if len(filled) > 1 and are_heads(filled[0], filled[1:]) else 0


def lines_of(grid: Grid, head_rows: int) -> list[str]:
    """Return a table's lines. Header rows are combined: "Notice" over "Employee" becomes "Notice Employee".

    A row with a single cell across all columns becomes a line of text, after which the column headings are repeated.
    """
    if not grid:
        return []
    width = max(map(len, grid))
    rows = [[*_fill_cells(row, is_repeated=head_rows > 0), *[""] * (width - len(row))] for row in grid]
    # A title over the whole table is no head.
    titles = 0
    while titles < head_rows - 1 and _is_one_cell(grid[titles], rows[titles]):
        titles += 1
    above, body = rows[titles:head_rows], rows[head_rows:]
    heads = [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*above, strict=True)] if above else None
    lines = [row[0] for row in rows[:titles]]
    if heads is not None:
        lines.append(_line(heads))
    has_heads_above = True
    for row, cells in zip(body, grid[head_rows:], strict=True):
        if not any(row):
            continue
        if _is_one_cell(cells, row):
            lines.append(row[0])
            has_heads_above = False
            continue
        if heads is not None and not has_heads_above:
            lines.append(_line(heads))
        has_heads_above = True
        lines.append(_line(row))
    return lines


def _fill_cells(row: Sequence[str | None], *, is_repeated: bool) -> list[str]:
    filled_cells: list[str] = []
    previous = ""
    for cell in row:
        if cell is None:
            filled_cells.append(previous if is_repeated and len(previous) <= LONGEST_REPEATED else "")
        else:
            previous = cell
            filled_cells.append(cell)
    return filled_cells


def _is_one_cell(cells: Sequence[str | None], row: Sequence[str]) -> bool:
    return len(row) > 1 and bool(row[0]) and all(cell is None for cell in cells[1:])


def _line(row: Sequence[str]) -> str:
    return " | ".join(cell.replace("|", "/") for cell in row)


def _spans_columns(row: Sequence[str | None]) -> bool:
    spans = any(cell is None or (cell and cell == before) for before, cell in pairwise(row))
    return spans and len(set(row) - {None}) > 1


def _has_heads_below(row: Sequence[str | None], below: Sequence[str | None]) -> bool:
    spanned = {
        place
        for before, place in pairwise(range(len(row)))
        if row[place] is None or (row[place] and row[place] == row[before])
    }
    return any(below[place] for place in spanned | {place - 1 for place in spanned} if place < len(below))
