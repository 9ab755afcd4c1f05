"""Find tables whose columns are aligned by blanks, for example in lists printed by payroll programs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from unicodedata import east_asian_width

from rag.text.tables import AMOUNT

#: Two or more blanks separate cells.
CELL = re.compile(r"\S+(?: \S+)*")
#: A line under the heads, with a part for each column.
RULE = re.compile(r"[-=_+| ]*[-=_]{2,}[-=_+| ]*")
BULLET = re.compile(r"[-–—*•▪◦·]|\(?\w{1,3}[.)]")
LEADERS = re.compile(r"(?:[.·…] ?){4,}")
#: Follows each letter two places wide.
WIDE = "\u2060"
#: Longer lines are not read as tables, nor lines after this number.
LONGEST_LINE, MOST_LINES = 400, 100_000
FEWEST_ROWS = 3
#: Lines above the heads which may be a title in two parts.
MOST_TITLES = 2
#: Text with longer average cells is set in columns.
LONGEST_CELL = 28
#: The share of rows with amounts below a head.
WITH_AMOUNTS = 0.5


def with_tables(lines: Sequence[str]) -> list[str]:
    """Rewrite the tables among these lines: a line for each row, with separated cells. Other lines stay unchanged."""
    rewritten: list[str] = []
    end = 0
    for first, last, rows in tables_in(lines):
        rewritten += [*lines[end:first], *rows]
        end = last
    return [*rewritten, *lines[end:]]


def tables_in(lines: Sequence[str]) -> Iterator[tuple[int, int, list[str]]]:
    """Yield each table: first line, end (exclusive), and rows."""
    widened = [_widen(line.rstrip().expandtabs()[: LONGEST_LINE + 1]) for line in lines[:MOST_LINES]]
    place = 0
    while place < len(widened):
        if not _is_row(widened[place]):
            place += 1
            continue
        end = place
        while end < len(widened) and (_is_row(widened[end]) or RULE.fullmatch(widened[end])):
            end += 1
        candidates = (_find_table(widened, place + titles, end) for titles in range(MOST_TITLES + 1))
        best_table = max(filter(None, candidates), key=lambda table: len(table[1][0]), default=None)
        if best_table is not None:
            first, grid, end = best_table
            yield first, end, [" | ".join(row).replace(WIDE, "").rstrip() for row in grid]
        place = end


def _widen(line: str) -> str:
    """Insert a filler after each wide East Asian character: string positions then equal screen columns.

    "|" becomes "/".
    """
    line = line.replace("|", "/")
    if line.isascii():
        return line
    return "".join(f"{character}{WIDE}" if east_asian_width(character) in "WF" else character for character in line)


def _is_row(line: str) -> bool:
    return len(line) <= LONGEST_LINE and len(CELL.findall(line)) > 1 and RULE.fullmatch(line) is None


def _find_table(lines: Sequence[str], first: int, end: int) -> tuple[int, list[list[str]], int] | None:
    rows = [line for line in lines[first:end] if _is_row(line)]
    if len(rows) < FEWEST_ROWS or not _is_row(lines[first]):
        return None
    columns = _columns(rows)
    if len(columns) < 2:
        return None
    grid = [_cells(row, columns) for row in rows]
    if not _is_table(grid):
        return None
    # Sums follow a blank line.
    below = end + 1 if end < len(lines) and not lines[end] else end
    while below < len(lines) and (cells := _cells_below(lines[below], columns)):
        grid.append(cells)
        below = end = below + 1
    return first, grid, end


def _columns(rows: Sequence[str]) -> list[tuple[int, int]]:
    width = max(map(len, rows))
    padded = [row.ljust(width) for row in rows]
    filled = [place for place in range(width) if any(row[place] != " " for row in padded)]
    columns = [[filled[0], filled[0] + 1]]
    for before, place in pairwise(filled):
        gap = place - before - 1
        # A single blank separates columns only between the heads.
        if gap > 1 or (gap == 1 and padded[0][before] != " " and padded[0][place] != " "):
            columns.append([place, place + 1])
        else:
            columns[-1][1] = place + 1
    return [(begin, end) for begin, end in columns]


def _cells(row: str, columns: Sequence[tuple[int, int]]) -> list[str]:
    return [" ".join(row[begin:end].split()) for begin, end in columns]


def _cells_below(line: str, columns: Sequence[tuple[int, int]]) -> list[str]:
    cells = [""] * len(columns)
    for match in CELL.finditer(line):
        over = [place for place, (begin, end) in enumerate(columns) if match.start() < end and match.end() > begin]
        if len(over) != 1 or cells[over[0]]:
            return []
        cells[over[0]] = match[0]
    return cells if any(map(AMOUNT.fullmatch, cells[1:])) else []


def _is_table(grid: Sequence[Sequence[str]]) -> bool:
    body = grid[1:]
    firsts = [row[0] for row in grid if row[0]]
    if sum(sum(map(bool, row)) > 1 for row in grid) < 0.8 * len(grid) or sum(map(bool, grid[0])) < len(grid[0]) - 1:
        return False
    if any(LEADERS.search(cell) for row in grid for cell in row) or all(map(BULLET.fullmatch, firsts)):
        return False
    if sum(cell.endswith(":") for cell in firsts) > len(firsts) / 2 or any(
        map(AMOUNT.fullmatch, filter(None, grid[0]))
    ):
        return False
    for column in zip(*grid, strict=True):
        filled = [cell for cell in column if cell]
        if sum(map(len, filled)) > LONGEST_CELL * len(filled):
            return False
    with_amounts = [
        sum(AMOUNT.fullmatch(cell) is not None for cell in column) for column in list(zip(*body, strict=True))[1:]
    ]
    return max(with_amounts) >= WITH_AMOUNTS * len(body)
