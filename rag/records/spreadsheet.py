"""Write tables as CSV, safe to open in spreadsheet programs."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO

#: Cells beginning with these would run as formulas; some programs accept the wide East Asian characters, too.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "＝", "＋", "－", "＠")


def to_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write rows as CSV under a header line.

    Cells which a spreadsheet would run as formulas get an apostrophe at the start.
    """
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow([_safe_cell(cell) for cell in header])
    for row in rows:
        writer.writerow([_safe_cell(cell) for cell in row])
    return buffer.getvalue()


def _safe_cell(cell: object) -> object:
    # Some programs skip leading spaces.
    is_formula = isinstance(cell, str) and (cell.startswith(FORMULA_STARTS) or cell.strip().startswith(FORMULA_STARTS))
    return f"'{cell}" if is_formula else cell
