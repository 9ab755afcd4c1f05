"""Tables of HTML as rows of text: a cell that spans rows is said in each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

#: More than this no table spans; the numbers are the page's and could ask for any amount of time.
WIDEST, TALLEST = 200, 1000


def rows_of(table: Any, text_of: Callable[[Any], str]) -> Iterator[list[str | None]]:
    """The rows of a table, each its cells' texts from left to right, so that every row can be read by itself.

    A cell over several columns is followed by None for each further one.
    """
    # By column: the text of a cell that reaches into the rows to come, and into how many.
    reaching: dict[int, tuple[str | None, int]] = {}
    for row in _rows_in(table):
        own = [cell for cell in row if cell.tag in ("td", "th")]
        last = min(max(reaching, default=-1), WIDEST)
        cells: list[str | None] = []
        following: dict[int, tuple[str | None, int]] = {}
        index = column = 0
        while index < len(own) or column <= last:
            text: str | None
            if column in reaching:
                text, rows = reaching[column]
                across = 1
            elif index < len(own):
                text, rows = text_of(own[index]), _span(own[index].get("rowspan"), TALLEST)
                across = _span(own[index].get("colspan"), WIDEST)
                index += 1
            else:
                column += 1
                continue
            for place in range(across):
                cells.append(None if place else text)
                if rows > 1:
                    following[column + place] = (None if place else text, rows - 1)
            column += across
        reaching = following
        yield cells


def head_rows_of(table: Any) -> int:
    """How many of the first rows name the columns: those in `thead`, or of several `th` and nothing else."""
    count = 0
    for row in _rows_in(table):
        cells = [cell.tag for cell in row if cell.tag in ("td", "th")]
        if row.getparent().tag != "thead" and ("td" in cells or len(cells) < 2):
            break
        count += 1
    return count


def _rows_in(table: Any) -> Iterator[Any]:
    """The rows of this table, not those of tables within it."""
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child if row.tag == "tr")


def _span(value: str | None, most: int) -> int:
    try:
        return min(max(int(value or 1), 1), most)
    except ValueError:
        return 1
