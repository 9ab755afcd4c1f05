"""Load LibreOffice workbooks (.ods): the visible sheets. The file stores each cell's text as shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rag.ingestion.loaders.drawing import local_name
from rag.ingestion.loaders.office_package import guarded
from rag.ingestion.loaders.raised import placed_in_cell
from rag.ingestion.loaders.sheets.sheet import MOST_COLUMNS, MOST_ROWS, Sheet, Span
from rag.ingestion.loaders.spreadsheet import document_of_sheets
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, LoadOptions
from rag.integrations.formats.libreoffice.open_document import (
    DRAW,
    FO,
    OFFICE,
    STYLE,
    TABLE,
    TEXT,
    XLINK,
    OpenDocument,
    centimetres,
    is_large,
    is_struck,
    place_of,
    require_open_document,
)

LOOKED_AT = (f"{STYLE}style", f"{TABLE}table-column", f"{TABLE}table-row", f"{TABLE}shapes", f"{TABLE}table")
#: A column at most this wide, in centimetres, only separates other columns.
NARROW = 0.8
#: The most repetitions written for a repeated cell or row with content.
MOST_REPEATED = 1000
HIDDEN = ("collapse", "filter")
#: Cells with a stored value in the file's bytes; the second reading counts each cell.
VALUES = re.compile(rb"<(?:\w+:)?table-cell\b[^>]*\boffice:value-type=")


@dataclass(frozen=True)
class Look:
    """The properties in a style which matter for reading."""

    is_bold: bool = False
    is_struck: bool = False
    is_shown: bool = True
    width: float | None = None
    #: "super", "sub" or "".
    place: str = ""


def load_ods(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load a LibreOffice workbook, with the file's properties. Raises the errors of `load_xlsx`."""
    require_open_document(content, options.limits)

    def read() -> ExtractedDocument:
        workbook = OpenWorkbook(content)
        properties = workbook.properties()
        return document_of_sheets(
            workbook.sheets(), workbook.count(), workbook.hidden, options, properties["title"], properties["creator"]
        )

    return guarded(read)


def check_ods(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check that the file is a valid package, and count the sheets. Raises the errors of `load_ods`."""
    require_open_document(content, options.limits)
    return guarded(lambda: CheckedFile(page_count=max(OpenWorkbook(content).count(), 1)))


class OpenWorkbook(OpenDocument):
    """The sheets in order. After reading, `hidden` has the hidden sheets' names."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.hidden: list[str] = []
        self._looks: dict[str, Look] = {}

    def count(self) -> int:
        return (self.bytes_of(self.main()) or b"").count(b"<table:table ")

    def sheets(self) -> Iterator[Sheet]:
        """Read the visible sheets, one after the other."""
        reader: _SheetReader | None = None
        table: Any = None
        for element in self.elements(self.main(), LOOKED_AT):
            name = local_name(element)
            if name == "style":
                self._looks[element.get(f"{STYLE}name") or ""] = look_of(element)
                continue
            of = element if name == "table" else next(element.iterancestors(f"{TABLE}table"), None)
            if of is None or next(of.iterancestors(f"{TABLE}table"), None) is not None:
                continue  # a table inside a cell
            if of is not table:
                table, reader = of, _SheetReader(Sheet(of.get(f"{TABLE}name") or ""), self._looks)
            if reader is None:
                continue
            if name == "table-column":
                reader.take_column(element)
            elif name == "table-row":
                reader.take_row(element)
            elif name == "shapes":
                reader.take_drawing(element)
            else:
                is_shown = self._looks.get(of.get(f"{TABLE}style-name") or "", Look()).is_shown
                sheet, reader, table = reader.finished(), None, None
                if is_shown:
                    yield sheet
                else:
                    self.hidden.append(sheet.name)


def look_of(style: Any) -> Look:
    """Return a cell style's properties which matter for reading."""
    is_bold = struck = False
    is_shown, width, place = True, None, ""
    for properties in style:
        name = local_name(properties)
        if name == "text-properties":
            is_bold = properties.get(f"{FO}font-weight") == "bold"
            struck = is_struck(properties)
            place = place_of(properties) or ""
        elif name == "table-properties":
            is_shown = properties.get(f"{TABLE}display") != "false"
        elif name == "table-column-properties":
            width = centimetres(properties.get(f"{STYLE}column-width"))
    return Look(is_bold, struck, is_shown, width, place)


class _SheetReader:
    def __init__(self, sheet: Sheet, looks: dict[str, Look]) -> None:
        self._sheet = sheet
        self._looks = looks
        self._row = self._column = 0
        self._bold: set[int] = set()
        self._with_cells: set[int] = set()

    def take_column(self, column: Any) -> None:
        first = self._column + 1
        self._column = min(self._column + _repetitions(column, "columns"), MOST_COLUMNS)
        numbers = range(first, self._column + 1)
        width = self._look(column).width
        if column.get(f"{TABLE}visibility") in HIDDEN:
            self._sheet.hidden_columns.update(numbers)
        elif width is not None and width <= NARROW:
            self._sheet.narrow_columns.update(numbers)

    def take_row(self, row: Any) -> None:
        count = _repetitions(row, "rows")
        first, self._row = self._row + 1, min(self._row + count, MOST_ROWS)
        sheet = self._sheet
        is_hidden = row.get(f"{TABLE}visibility") in HIDDEN
        cells = list(self._cells(row))
        if is_hidden and (cells or count < MOST_REPEATED):
            sheet.hidden_rows.update(range(first, self._row + 1))
        if row.getparent() is not None and local_name(row.getparent()) == "table-header-rows":
            sheet.head_rows.add(first)
        for number in range(first, min(self._row, first + MOST_REPEATED - 1) + 1) if cells else ():
            self._put(number, cells, is_hidden=is_hidden)
        if cells and count > MOST_REPEATED:
            sheet.unread["cells"] += (count - MOST_REPEATED) * len(cells)

    def _cells(self, row: Any) -> Iterator[tuple[int, str, Look, Any]]:
        column = 0
        for cell in row:
            name = local_name(cell)
            if name not in ("table-cell", "covered-table-cell"):
                continue
            count = _repetitions(cell, "columns")
            first, column = column + 1, column + count
            if not len(cell) and cell.get(f"{OFFICE}value-type") is None:
                continue
            text = self._text(cell)
            if name == "covered-table-cell" and text:
                self._sheet.unread["covered"] += 1
                continue
            for number in range(first, min(column, first + MOST_REPEATED - 1, MOST_COLUMNS) + 1):
                yield number, text, self._look(cell), cell

    def _put(self, row: int, cells: list[tuple[int, str, Look, Any]], *, is_hidden: bool) -> None:
        sheet = self._sheet
        filled = bold = 0
        for column, text, look, cell in cells:
            has_value = cell.get(f"{OFFICE}value-type") is not None
            across, down = _count(cell, "number-columns-spanned"), _count(cell, "number-rows-spanned")
            if across > 1 or down > 1:
                span = Span(row, column, min(row + down - 1, MOST_ROWS), min(column + across - 1, MOST_COLUMNS))
                sheet.merged.append(span)
            if is_hidden or column in sheet.hidden_columns:
                if across > 1 or down > 1:
                    sheet.covered[row, column] = " ".join(text.split())
                sheet.unread["cells of hidden rows" if is_hidden else "cells of hidden columns"] += bool(text)
            elif look.is_struck and text:
                sheet.unread["struck"] += 1
            elif sheet.put(row, column, text):
                filled += 1
                bold += look.is_bold
            elif has_value and cell.get(f"{OFFICE}value-type") != "string":
                sheet.unread["hidden cells"] += 1
        if cells and not filled:
            sheet.emptied_rows.add(row)
        if filled > 1 and bold == filled:
            self._bold.add(row)

    def _text(self, cell: Any) -> str:
        parts = []
        for part in cell:
            name = local_name(part)
            if name == "p":
                parts.append(self._paragraph(part))
            elif name == "annotation":
                self._sheet.unread["comments"] += 1
            elif part.tag.startswith(DRAW):
                self._draw(part)
        return " ".join(filter(None, parts))

    def _paragraph(self, paragraph: Any) -> str:
        pieces = [paragraph.text or ""]
        for part in paragraph:
            name = local_name(part)
            if name == "s" or name in ("tab", "line-break"):
                pieces.append(" ")
            elif name == "annotation":
                self._sheet.unread["comments"] += 1
            elif name == "span" and (look := self._looks.get(part.get(f"{TEXT}style-name") or "", Look())).is_struck:
                self._sheet.unread["struck parts"] += 1
            elif name in ("ruby-text", "note"):
                pass
            elif name == "span":
                pieces.append(placed_in_cell("".join(pieces), self._paragraph(part), look.place))
            else:
                pieces.append(self._paragraph(part))
            pieces.append(part.tail or "")
        return "".join(pieces)

    def take_drawing(self, shapes: Any) -> None:
        """Read the drawings placed on the sheet outside cells."""
        for shape in shapes:
            self._draw(shape)

    def _draw(self, shape: Any) -> None:
        unread = self._sheet.unread
        name = local_name(shape)
        if name == "frame":
            kinds = {local_name(part): part for part in shape}
            if "object" in kinds or "object-ole" in kinds:
                is_chart = any("Object" in (part.get(f"{XLINK}href") or "") for part in shape)
                unread["charts" if is_chart else "embedded"] += 1
            elif "text-box" in kinds:
                self._add_text(kinds["text-box"])
            elif "image" in kinds:
                unread["pictures"] += is_large(shape)
        elif name == "g":
            for part in shape:
                self._draw(part)
        elif name == "control":
            unread["objects"] += 1
        else:
            self._add_text(shape)

    def _add_text(self, box: Any) -> None:
        lines = (" ".join(self._paragraph(part).split()) for part in box.iter(f"{TEXT}p"))
        if text := "\n".join(filter(None, lines)):
            self._sheet.texts.append(text)

    def _look(self, element: Any) -> Look:
        return self._looks.get(element.get(f"{TABLE}style-name") or "", Look())

    def finished(self) -> Sheet:
        """Count hidden content, find the bold header rows, and return the sheet."""
        sheet = self._sheet
        sheet.unread["hidden rows"] = len(sheet.hidden_rows) if sheet.unread["cells of hidden rows"] else 0
        sheet.unread["hidden columns"] = len(sheet.hidden_columns) if sheet.unread["cells of hidden columns"] else 0
        sheet.bold_rows = {row for row in self._bold if row + 1 in sheet.rows and row + 1 not in self._bold}
        return sheet


def _repetitions(element: Any, what: str) -> int:
    return _count(element, f"number-{what}-repeated")


def _count(element: Any, name: str) -> int:
    text = element.get(f"{TABLE}{name}") or "1"
    return max(int(text[:9]), 1) if text.isdecimal() else 1
