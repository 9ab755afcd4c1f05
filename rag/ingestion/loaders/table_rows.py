"""Write a table's grid as lines of text, whatever file it is from: heads in one row, spanned cells in each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rag.ingestion.chunking.tables import are_heads

#: A cell for each column; None where the cell to the left goes on.
Grid = Sequence[Sequence[str | None]]

#: Rows of heads above each other; more are no heads.
MOST_HEAD_ROWS = 3
#: A cell over several columns is repeated in each of them up to this length; a longer one is text, and kept once.
LONGEST_REPEATED = 80


def guessed_head_rows(grid: Grid) -> int:
    """Guess how many rows name the columns: one more for each that has a cell over several."""
    rows = 1
    while rows < min(MOST_HEAD_ROWS, len(grid) - 1) and _spans_columns(grid[rows - 1]):
        rows += 1
    if rows > 1 and not any(map(str.isdigit, "".join(cell or "" for row in grid[:rows] for cell in row))):
        return rows
    filled = [_filled(row, is_repeated=True) for row in grid]
    return 1 if len(filled) > 1 and are_heads(filled[0], filled[1:]) else 0


def lines_of(grid: Grid, head_rows: int) -> list[str]:
    """Return the lines of a table, its head rows as one: "Notice" over "Employee" is "Notice Employee".

    A row that is one cell over all columns is a line of its own, and the heads are said again below it.
    """
    if not grid:
        return []
    width = max(map(len, grid))
    rows = [[*_filled(row, is_repeated=head_rows > 0), *[""] * (width - len(row))] for row in grid]
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


def _filled(row: Sequence[str | None], *, is_repeated: bool) -> list[str]:
    said: list[str] = []
    last = ""
    for cell in row:
        if cell is None:
            said.append(last if is_repeated and len(last) <= LONGEST_REPEATED else "")
        else:
            last = cell
            said.append(cell)
    return said


def _is_one_cell(cells: Sequence[str | None], row: Sequence[str]) -> bool:
    """Tell whether a row is one cell over all columns; where the grid repeats what spans them, three alike tell it."""
    if len(row) < 2 or not row[0]:
        return False
    return all(cell is None for cell in cells[1:]) or (len(row) > 2 and len(set(row)) == 1)


def _line(row: Sequence[str]) -> str:
    return " | ".join(cell.replace("|", "/") for cell in row)


def _spans_columns(row: Sequence[str | None]) -> bool:
    spans = any(cell is None or (cell and cell == before) for before, cell in pairwise(row))
    return spans and len(set(row) - {None}) > 1
