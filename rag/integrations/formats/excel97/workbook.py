"""Load Excel workbooks from before 2007 (.xls): the visible sheets."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import xlrd

from rag.errors import FileProtected
from rag.ingestion.loaders.office_package import guarded, require_unprotected
from rag.ingestion.loaders.raised import placed_in_cell
from rag.ingestion.loaders.sheets.languages import LANGUAGES, Language
from rag.ingestion.loaders.sheets.numbers import BUILT_IN, format_number, format_text
from rag.ingestion.loaders.sheets.sheet import Sheet, Span
from rag.ingestion.loaders.spreadsheet import document_of_sheets
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, LoadOptions

#: A column at most this wide, in 256ths of a character, only separates other columns.
NARROW = 900
LEAST_BOLD = 600
#: A font's vertical position for letters.
PLACES = {1: "superscript", 2: "subscript"}
#: Languages by the country (as telephone code) of the program which wrote the workbook.
COUNTRIES = {
    49: "de", 43: "de", 33: "fr", 34: "es", 39: "it", 31: "nl", 351: "pt", 55: "pt", 48: "pl", 90: "tr", 81: "ja",
    82: "ko", 86: "zh", 886: "zh",
}  # fmt: skip
#: Formats decided by the language, whatever is stored.
BY_LANGUAGE = frozenset({14, 22, *range(27, 37), *range(50, 59)})
#: A sheet's records: start and end, an object, its text, and a continuation record.
BEGIN, END, OBJECT, OBJECT_TEXT, CONTINUED = 0x0809, 0x000A, 0x005D, 0x01B6, 0x003C
#: Kinds of objects: charts, pictures, notes, and filter arrows.
CHART, PICTURE, NOTE, DROP_DOWN = 5, 8, 25, 20


def load_xls(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load an Excel workbook from before 2007. Raises `FileProtected` for a protected file, else `FileDamaged`."""

    def read() -> ExtractedDocument:
        workbook = OldWorkbook(content)
        return document_of_sheets(workbook.sheets(), len(workbook), workbook.hidden, options, "", workbook.author)

    return guarded(read)


def check_xls(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check that the file opens, and count the sheets. Raises the errors of `load_xls`."""
    return guarded(lambda: CheckedFile(page_count=max(len(OldWorkbook(content)), 1)))


class OldWorkbook:
    """A workbook's sheets in order; `hidden` has the names of the hidden sheets.

    Raises `FileProtected` for a protected file, and the errors of `xlrd`.
    """

    def __init__(self, content: bytes) -> None:
        require_unprotected(content)
        try:
            self._book: Any = xlrd.open_workbook(
                file_contents=content, formatting_info=True, on_demand=True, ragged_rows=True, logfile=io.StringIO()
            )
        except xlrd.XLRDError as exc:
            if "encrypted" in str(exc):
                raise FileProtected from exc
            raise
        states = list(zip(self._book.sheet_names(), self._book._sheet_visibility, strict=True))  # noqa: SLF001
        self._numbers = [number for number, (_, state) in enumerate(states) if state == 0]
        self.hidden = [name for name, state in states if state != 0]

    def __len__(self) -> int:
        """Count the visible sheets."""
        return len(self._numbers)

    @property
    def author(self) -> str:
        """Return who saved the workbook last."""
        return str(self._book.user_name or "")

    def sheets(self) -> Iterator[Sheet]:
        """Read the visible sheets, one after the other."""
        code = next((COUNTRIES[country] for country in self._book.countries if country in COUNTRIES), "")
        for number in self._numbers:
            source = self._book.sheet_by_index(number)
            sheet = _SheetReader(self._book, source, LANGUAGES.get(code)).sheet
            self._read_objects(sheet, number)
            self._book.unload_sheet(number)
            yield sheet

    def _read_objects(self, sheet: Sheet, number: int) -> None:
        if self._book.biff_version < 80:
            return
        kind, depth, awaits_text = -1, 0, False
        for record, data in self._records(number):
            depth += (record == BEGIN) - (record == END)
            if depth > 1:
                continue  # belongs to a chart
            if record == OBJECT and len(data) >= 6:
                kind = struct.unpack_from("<H", data, 4)[0]
                sheet.unread["charts"] += kind == CHART
                sheet.unread["pictures"] += kind == PICTURE
            elif record == OBJECT_TEXT:
                awaits_text = kind not in (NOTE, DROP_DOWN) and len(data) >= 12
                length = struct.unpack_from("<H", data, 10)[0] if awaits_text else 0
            elif record == CONTINUED and awaits_text and data and length:
                text = data[1:].decode("utf-16-le" if data[0] & 1 else "latin-1", "replace")[:length]
                sheet.texts.append("\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines()))))
                awaits_text = False

    def _records(self, number: int) -> Iterator[tuple[int, bytes]]:
        place = self._book._sh_abs_posn[number]  # noqa: SLF001
        content, depth = self._book.mem, 0
        end = self._book.base + self._book.stream_len
        while 0 <= place <= end - 4:
            record, length = struct.unpack_from("<HH", content, place)
            yield record, bytes(content[place + 4 : place + 4 + length])
            depth += (record == BEGIN) - (record == END)
            if depth <= 0:
                return
            place += 4 + length


class _SheetReader:
    def __init__(self, book: Any, source: Any, language: Language | None) -> None:
        self._book = book
        self._source = source
        self._language = language
        self.sheet = sheet = Sheet(source.name)
        sheet.hidden_rows = {row + 1 for row, info in source.rowinfo_map.items() if info.hidden or info.height == 0}
        for column, info in source.colinfo_map.items():
            if info.hidden or info.width == 0:
                sheet.hidden_columns.add(column + 1)
            elif info.width <= NARROW:
                sheet.narrow_columns.add(column + 1)
        sheet.merged = [Span(top + 1, left + 1, bottom, right) for top, bottom, left, right in source.merged_cells]
        self._merged = {(span.top, span.left) for span in sheet.merged}
        bold = {row + 1 for row in range(source.nrows) if self._take_row(row)}
        sheet.bold_rows = {row for row in bold if row + 1 in sheet.rows and row + 1 not in bold}
        sheet.unread["hidden rows"] = len(sheet.hidden_rows) if sheet.unread["cells of hidden rows"] else 0
        sheet.unread["hidden columns"] = len(sheet.hidden_columns) if sheet.unread["cells of hidden columns"] else 0
        sheet.unread["comments"] = len(source.cell_note_map)

    def _take_row(self, row: int) -> bool:
        sheet, source = self.sheet, self._source
        met = filled = bold = 0
        for column in range(source.row_len(row)):
            kind = source.cell_type(row, column)
            if kind in (xlrd.XL_CELL_EMPTY, xlrd.XL_CELL_BLANK):
                continue
            look = self._book.xf_list[source.cell_xf_index(row, column)]
            font = self._book.font_list[look.font_index]
            value = source.cell_value(row, column)
            if kind == xlrd.XL_CELL_TEXT and (runs := source.rich_text_runlist_map.get((row, column))):
                value, has_struck = self._shown_runs(value, runs, font)
                sheet.unread["struck parts"] += has_struck
            text = self._text(kind, value, look.format_key)
            met += 1
            if row + 1 in sheet.hidden_rows or column + 1 in sheet.hidden_columns:
                if (row + 1, column + 1) in self._merged:
                    sheet.covered[row + 1, column + 1] = " ".join(text.split())
                sheet.unread["cells of hidden rows" if row + 1 in sheet.hidden_rows else "cells of hidden columns"] += 1
            elif font.struck_out and text.strip():
                sheet.unread["struck"] += 1
            elif sheet.put(row + 1, column + 1, text):
                filled += 1
                bold += font.weight >= LEAST_BOLD
            elif kind != xlrd.XL_CELL_TEXT or value.strip():
                sheet.unread["hidden cells"] += 1
        if met and not filled and row + 1 not in sheet.hidden_rows:
            sheet.emptied_rows.add(row + 1)
        return filled > 1 and bold == filled

    def _shown_runs(self, value: str, runs: Sequence[tuple[int, int]], first: Any) -> tuple[str, bool]:
        """Return a text with several fonts, without struck-through parts.

        Also returns whether a part was struck through.
        """
        fonts = [first, *(self._book.font_list[index] for _, index in runs)]
        starts = [0, *(start for start, _ in runs), len(value)]
        visible_text, has_struck = "", False
        for font, (start, end) in zip(fonts, pairwise(starts), strict=True):
            run_text = value[start:end]
            if font.struck_out:
                has_struck = has_struck or bool(run_text.strip())
                continue
            visible_text += placed_in_cell(visible_text, run_text, PLACES.get(font.escapement, ""))
        return (
            (visible_text, True)
            if has_struck and visible_text.strip()
            else (value, False)
            if has_struck
            else (visible_text, False)
        )

    def _text(self, kind: int, value: Any, key: int) -> str:
        form = self._book.format_map.get(key)
        code = BUILT_IN[key] if key in BY_LANGUAGE else form.format_str if form is not None else "General"
        if kind == xlrd.XL_CELL_TEXT:
            return format_text(value, code)
        if kind == xlrd.XL_CELL_BOOLEAN:
            return "TRUE" if value else "FALSE"
        if kind == xlrd.XL_CELL_ERROR:
            return str(xlrd.error_text_from_code.get(value, "#ERROR!"))
        return format_number(float(value), code, self._language, is_1904=self._book.datemode == 1)
