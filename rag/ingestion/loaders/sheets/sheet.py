"""Define the value which holds a sheet's visible cells, for all workbook formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from rag.ingestion.loaders.characters import normalise_characters
from rag.language import N_

#: Excel's limits for rows and columns; a file may name more.
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
#: Content found but not read: singular and plural.
UNREAD = {
    "hidden sheets": ("1 hidden sheet was not read: {names}.", "{count} hidden sheets were not read: {names}."),
    "hidden rows": ("1 hidden row was not read.", "{count} hidden rows were not read."),
    "hidden columns": ("1 hidden column was not read.", "{count} hidden columns were not read."),
    "hidden cells": ("1 cell was not read because its number format hides it.",
                     "{count} cells were not read because their number formats hide them."),
    "covered": ("1 cell hidden by a merged cell was not read.", "{count} cells hidden by merged cells were not read."),
    "struck": ("1 struck-through cell was left out.", "{count} struck-through cells were left out."),
    "struck parts": ("Struck-through text was left out of 1 cell.",
                     "Struck-through text was left out of {count} cells."),
    "formulas": ("1 formula has no stored result and was not read. Open the file in a spreadsheet program, save it and "
                 "upload it again.", "{count} formulas have no stored results and were not read. Open the file in a "
                 "spreadsheet program, save it and upload it again."),
    "cells": ("1 cell was not read.", "{count} cells were not read."),
    "comments": ("1 comment was not read.", "{count} comments were not read."),
    "charts": ("1 chart was not read.", "{count} charts were not read."),
    "diagrams": ("1 diagram (SmartArt) was not read.", "{count} diagrams (SmartArt) were not read."),
    "pictures": ("1 picture may contain text that was not read.",
                 "{count} pictures may contain text that was not read."),
    "embedded": ("1 embedded file was not read.", "{count} embedded files were not read."),
    "objects": ("1 text box or drawing was not read.", "{count} text boxes or drawings were not read."),
    "margins": ("The headers and footers for printing were not read.",
                "The headers and footers for printing were not read."),
}  # fmt: skip
ON_SHEET = N_("Sheet “{name}”: {remark}")


@dataclass(frozen=True, order=True)
class Span:
    """A merged cell's range. The last row and column are included."""

    top: int
    left: int
    bottom: int
    right: int


@dataclass
class Sheet:
    """A sheet's cells by row and column, both from 1. Hidden and empty cells are left out."""

    name: str
    rows: dict[int, dict[int, str]] = field(default_factory=dict)
    merged: list[Span] = field(default_factory=list)
    #: Hidden rows, which do not separate tables.
    hidden_rows: set[int] = field(default_factory=set)
    #: Rows with all cells left out, which do not separate tables either.
    emptied_rows: set[int] = field(default_factory=set)
    #: Texts from hidden rows and columns which are visible in the rest of a merged cell.
    covered: dict[tuple[int, int], str] = field(default_factory=dict)
    hidden_columns: set[int] = field(default_factory=set)
    #: Columns too narrow for text.
    narrow_columns: set[int] = field(default_factory=set)
    #: Rows known to name the columns, in a table or above a filter; and bold rows above others.
    head_rows: set[int] = field(default_factory=set)
    bold_rows: set[int] = field(default_factory=set)
    #: Text of boxes and shapes.
    texts: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)

    def put(self, row: int, column: int, text: str) -> bool:
        """Store a cell's text on a single line. Returns `False` for an empty text, which is not stored."""
        text = on_one_line(text)
        if text:
            self.rows.setdefault(row, {})[column] = text
        return bool(text)

    def warnings(self) -> Iterator[str]:
        """Yield warnings about unread content, each with the count and the sheet's name."""
        for kind, (singular, plural) in UNREAD.items():
            if (count := self.unread[kind]) > 0:
                remark = singular if count == 1 else plural.format(count=f"{count:,}")
                yield ON_SHEET.format(name=self.name, remark=remark)

    def drop_covered(self) -> None:
        """Drop the cells covered by a merged cell, which shows only the first cell's text."""
        for span in self.merged:
            rows = range(span.top, span.bottom + 1)
            for row in rows if len(rows) < len(self.rows) else [row for row in self.rows if row in rows]:
                cells = self.rows.get(row, {})
                lost = [c for c in cells if span.left <= c <= span.right and (row, c) != (span.top, span.left)]
                for column in lost:
                    del cells[column]
                self.unread["covered"] += len(lost)
                if lost and not cells:
                    del self.rows[row]
                    self.emptied_rows.add(row)


def on_one_line(text: str) -> str:
    """Write a text on one line, in normalised characters."""
    return " ".join((text if text.isascii() and text.isprintable() else normalise_characters(text)).split())


def column_name(number: int) -> str:
    """Write a column number in letters: 28 as "AB"."""
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def column_number(letters: str) -> int:
    """Convert a column's letters to the number, or return 0 for other text."""
    number = 0
    for letter in letters.upper():
        if not "A" <= letter <= "Z":
            return 0
        number = number * 26 + ord(letter) - 64
    return number


def place_of(reference: str) -> tuple[int, int]:
    """Return (row, column) for a cell reference like "$B$3", both from 1; 0 for a missing part."""
    letters = "".join(filter(str.isalpha, reference))
    figures = "".join(filter(str.isdigit, reference))
    return int(figures[:9] or 0), column_number(letters[:4])


def span_of(reference: str) -> Span | None:
    """Parse a cell range like "A1:B3", or return `None` for other text."""
    first, _, last = reference.partition(":")
    top, left = place_of(first)
    bottom, right = place_of(last or first)
    if not (0 < top <= bottom and 0 < left <= right):
        return None
    return Span(top, left, min(bottom, MOST_ROWS), min(right, MOST_COLUMNS))
