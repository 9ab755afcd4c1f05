"""A table's grid as lines of text, whatever file it was read from: the heads in one row, every row with all it spans."""

from __future__ import annotations

from collections.abc import Sequence

from rag.ingestion.chunking.tables import are_heads

#: Rows of heads above each other; more are no heads.
MOST_HEAD_ROWS = 3
#: A cell over several columns is said in each of them up to this length; a longer one is text, and said once.
LONGEST_REPEATED = 80


def joined_heads(grid: Sequence[Sequence[str]], head_rows: int) -> list[list[str]]:
    """The grid with its rows of heads as one: "Notice" over "Employee" and "Company" is "Notice Employee", …"""
    if head_rows < 2:
        return [list(row) for row in grid]
    above = grid[:head_rows]
    heads = [" ".join(dict.fromkeys(cell for cell in column if cell)) for column in zip(*above, strict=True)]
    return [heads, *(list(row) for row in grid[head_rows:])]


def guessed_head_rows(grid: Sequence[Sequence[str]]) -> int:
    """How many rows name the columns, where the file does not say: one more for each that has a cell over several."""
    rows = 1
    while rows < min(MOST_HEAD_ROWS, len(grid) - 1) and _spans_columns(grid[rows - 1]):
        rows += 1
    if rows > 1 and not any(map(str.isdigit, "".join(c for row in grid[:rows] for c in row))):
        return rows
    return 1 if len(grid) > 1 and are_heads(grid[0], grid[1:]) else 0


def lines_of(grid: Sequence[Sequence[str]], head_rows: int) -> list[str]:
    """The lines of a table whose rows have a cell for every column, those that span several repeated in the grid.

    A row that is one cell over all columns is a line of its own, and the heads are said again below it.
    """
    rows = joined_heads(grid, head_rows)
    heads = rows[0] if head_rows else None
    lines: list[str] = []
    has_heads_above = False
    for row in rows:
        if not any(row):
            continue
        if len(row) > 1 and len(set(row)) == 1:
            lines.append(row[0])
            has_heads_above = False
            continue
        if heads is not None and row is not heads and not has_heads_above:
            lines.append(_line(heads))
        has_heads_above = True
        lines.append(_line(row))
    return lines


def _line(row: Sequence[str]) -> str:
    said = list(row)
    for place in range(1, len(row)):
        if row[place] == row[place - 1] and len(row[place]) > LONGEST_REPEATED:
            said[place] = ""
    return " | ".join(cell.replace("|", "/") for cell in said)


def _spans_columns(row: Sequence[str]) -> bool:
    return any(one and one == other for one, other in zip(row, row[1:], strict=False)) and len(set(row)) > 1
