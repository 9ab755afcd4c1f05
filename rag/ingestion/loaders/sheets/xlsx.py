"""Read the visible sheets in an Excel workbook (.xlsx, .xlsm) from its XML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rag.ingestion.loaders.drawing import Drawn, drawn_in
from rag.ingestion.loaders.office_package import SCHEMAS, OfficePackage, R
from rag.ingestion.loaders.raised import placed_in_cell
from rag.ingestion.loaders.sheets.languages import LANGUAGE_BY_WORDS, LANGUAGES, Language, language_called
from rag.ingestion.loaders.sheets.numbers import BUILT_IN, format_number, format_text
from rag.ingestion.loaders.sheets.sheet import MOST_COLUMNS, MOST_ROWS, Sheet, Span, column_number, on_one_line, span_of

S = "{" + SCHEMAS + "spreadsheetml/2006/main}"
VT = "{" + SCHEMAS + "officeDocument/2006/docPropsVTypes}"
ON = ("1", "true", "on")
#: The parts read from a sheet, in file order.
LOOKED_AT = tuple(
    S + name
    for name in (
        "sheetView", "sheetFormatPr", "col", "row", "autoFilter", "headerFooter", "drawing",
        "legacyDrawing", "tablePart", "oleObject", "picture",
    )
)  # fmt: skip
VALUE, FORMULA, INLINE = (S + name for name in ("v", "f", "is"))
COLUMN_LETTERS = re.compile(r"[A-Za-z]{1,4}")
#: Cells with content, counted in a sheet's bytes for the second reading.
CONTENT = re.compile(rb"<(?:\w+:)?v(?:\s[^>]*)?>[^<]|<(?:\w+:)?is[\s>]")
MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?\bref="([A-Za-z0-9:$]+)"')
#: A column at most this wide, in characters, only separates other columns.
NARROW = 3.5
CONTROL_KIND = re.compile(rb'ObjectType="(\w+)"')
#: Codes for places, fonts and page numbers in headers and footers, which are not printed.
MARGIN_CODES = re.compile(r'&(?:"[^"]*"|K[0-9A-Fa-f+-]{6}|\d+|[A-Za-z])')


@dataclass(frozen=True)
class Look:
    """The properties in a cell's style which matter for reading."""

    code: str = "General"
    is_bold: bool = False
    is_struck: bool = False


PLAIN = Look()


@dataclass(frozen=True, slots=True)
class Text:
    """A text in the workbook. `is_struck`: all text is struck through. `has_struck`: at least a part is."""

    text: str
    is_struck: bool = False
    has_struck: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with the stored value. `text` is `None` if the cell is empty, or if the file lacks the text."""

    column: int
    kind: str
    stored: str
    text: Text | None
    has_formula: bool
    look: Look


class Workbook(OfficePackage):
    """A workbook's sheets in order. `hidden` are the names of hidden sheets."""

    MAIN = "xl/workbook.xml"

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.hidden: list[str] = []
        self._main = self.main()
        root = self.root(self._main)
        properties = root.find(S + "workbookPr")
        self._is_1904 = properties is not None and (properties.get("date1904") or "0") in ON
        self._sheets: list[tuple[str, str, str]] = []
        for sheet in root.iter(S + "sheet"):
            relation = self.relations(self._main).get(sheet.get(R + "id") or "")
            name = sheet.get("name") or ""
            if (sheet.get("state") or "visible") != "visible":
                self.hidden.append(name)
            elif relation is not None:
                self._sheets.append((name, relation.kind, relation.target))

    def __len__(self) -> int:
        """Count the visible sheets."""
        return len(self._sheets)

    def sheets(self) -> Iterator[Sheet]:
        """Read the visible sheets, one after the other."""
        self._language, self._looks = self._language_and_looks()
        self._texts = list(self._shared_texts())
        for name, kind, part in self._sheets:
            sheet = Sheet(name)
            if kind == "chartsheet":
                sheet.unread["charts"] += 1
            else:
                self._read(sheet, part)
            yield sheet

    # Shared by the sheets

    def _shared_texts(self) -> Iterator[Text]:
        part = self.related_name(self._main, "sharedStrings")
        for item in self.elements(part, (S + "si",)) if part else ():
            yield text_of(item)

    def _language_and_looks(self) -> tuple[Language | None, list[Look]]:
        root = self.related(self._main, "styles")
        language = language_called(self.properties()["language"])
        if root is None:
            return language, []
        codes = dict(BUILT_IN)
        for form in root.iter(S + "numFmt"):
            if (number := form.get("numFmtId") or "").isdecimal():
                codes[int(number)] = form.get("formatCode") or "General"
        fonts = [] if (group := root.find(S + "fonts")) is None else [
            (_is_on(font.find(S + "b")), _is_on(font.find(S + "strike"))) for font in group
        ]  # fmt: skip
        looks = []
        for form in () if (group := root.find(S + "cellXfs")) is None else group:
            font = _number(form.get("fontId"))
            is_bold, is_struck = fonts[font] if font < len(fonts) else (False, False)
            looks.append(Look(codes.get(_number(form.get("numFmtId")), "General"), is_bold, is_struck))
        style_names = [style.get("name") for style in root.iter(S + "cellStyle") if style.get("builtinId") == "0"]
        contents = self.related("", "extended-properties")
        style_names += [] if contents is None else [text.text for text in contents.iter(VT + "lpstr")]
        written_in = next((LANGUAGE_BY_WORDS[words] for words in style_names if words in LANGUAGE_BY_WORDS), None)
        return (LANGUAGES[written_in] if written_in else language), looks

    # A sheet

    def _read(self, sheet: Sheet, part: str) -> None:
        content = self.bytes_of(part) or b""
        # Merged cells come after the cells, and tell which hidden cells are visible after all.
        merged = (span_of(reference.decode("ascii", "replace")) for reference in MERGED.findall(content))
        reader = _SheetReader(self, sheet, filter(None, merged))
        for element in self.elements(part, LOOKED_AT):
            reader.take(element, part)
        reader.finish()
        sheet.unread["cells"] += len(CONTENT.findall(content)) - reader.met
        comments = [self.root(r.target) for r in self.relations(part).values() if r.kind == "comments"]
        sheet.unread["comments"] = sum(len(list(root.iter(S + "comment"))) for root in comments if root is not None)

    def cell(self, element: Any, column: int) -> Cell:
        """Read a cell. `column` is used if the cell does not state the column."""
        stored, inline, has_formula = "", None, False
        for part in element:
            if part.tag == VALUE:
                stored = part.text or ""
            elif part.tag == FORMULA:
                has_formula = True
            elif part.tag == INLINE:
                inline = part
        kind = element.get("t") or "n"
        style = _number(element.get("s"))
        look = self._looks[style] if style < len(self._looks) else PLAIN
        text = text_of(inline) if inline is not None else self._text(kind, stored, look) if stored.strip() else None
        match = COLUMN_LETTERS.match(element.get("r") or "")
        return Cell(column_number(match[0]) if match else column, kind, stored, text, has_formula, look)

    def _text(self, kind: str, stored: str, look: Look) -> Text | None:
        if kind == "s":
            number = _number(stored, -1)
            return self._texts[number] if 0 <= number < len(self._texts) else None
        if kind == "b":
            return Text("TRUE" if stored.strip() == "1" else "FALSE")
        if kind in ("str", "e"):
            return Text(on_one_line(stored))
        value = _day_number(stored, is_1904=self._is_1904) if kind == "d" else _float(stored)
        if value is None:
            return Text(on_one_line(stored))
        return Text(format_number(value, look.code, self._language, is_1904=self._is_1904))


class _SheetReader:
    def __init__(self, book: Workbook, sheet: Sheet, merged: Iterable[Span]) -> None:
        self._book = book
        sheet.merged.extend(merged)
        self._merged = {(span.top, span.left) for span in sheet.merged}
        self._sheet = sheet
        self._shows_zeros = True
        self._row = 0
        self._bold: set[int] = set()
        self._embedded: set[str] = set()
        #: Cells with content.
        self.met = 0

    def take(self, element: Any, part: str) -> None:
        name = str(element.tag).rpartition("}")[2]
        if name == "row":
            self._take_row(element)
        elif name == "sheetView":
            self._shows_zeros = (element.get("showZeros") or "1") in ON
        elif name == "col":
            self._take_column(element)
        elif name == "autoFilter":
            self._take_heads(element.get("ref") or "")
        elif name == "tablePart":
            table = self._book.by_link(part, element.get(R + "id") or "")
            if table is not None and (table.get("headerRowCount") or "1") != "0":
                self._take_heads(table.get("ref") or "")
        elif name == "headerFooter":
            if any(MARGIN_CODES.sub("", margin.text or "").strip() for margin in element):
                self._sheet.unread["margins"] = 1
        elif name == "oleObject":
            self._embedded.add(element.get("shapeId") or str(len(self._embedded)))
        elif name == "picture":
            self._sheet.unread["pictures"] += 1
        else:
            self._take_drawing(part, element.get(R + "id") or "", is_old=name == "legacyDrawing")

    def _take_heads(self, reference: str) -> None:
        span = span_of(reference)
        if span is not None and span.right > span.left:
            self._sheet.head_rows.add(span.top)

    def _take_column(self, column: Any) -> None:
        first, last = _number(column.get("min")), min(_number(column.get("max")), MOST_COLUMNS)
        width = _float(column.get("width") or "")
        if column.get("hidden") in ON or width == 0:
            self._sheet.hidden_columns.update(range(first, last + 1))
        elif width is not None and width <= NARROW:
            self._sheet.narrow_columns.update(range(first, last + 1))

    def _take_row(self, row: Any) -> None:
        self._row = _number(row.get("r")) or self._row + 1
        sheet = self._sheet
        is_hidden = row.get("hidden") in ON or (row.get("customHeight") in ON and _float(row.get("ht") or "1") == 0)
        if is_hidden:
            sheet.hidden_rows.add(self._row)
        column = bold = filled = 0
        met = self.met
        for element in row:
            cell = self._book.cell(element, column + 1)
            column = cell.column
            if cell.text is None and not cell.stored:
                sheet.unread["formulas"] += cell.has_formula and cell.kind != "str"
                continue
            self.met += 1
            if is_hidden or column in sheet.hidden_columns:
                if cell.text is not None and (self._row, column) in self._merged:
                    sheet.covered[self._row, column] = cell.text.text
                sheet.unread["cells of hidden rows" if is_hidden else "cells of hidden columns"] += 1
            elif cell.text is None or self._row > MOST_ROWS or not 0 < column <= MOST_COLUMNS:
                sheet.unread["cells"] += 1
            elif self._keep(cell, cell.text):
                filled += 1
                bold += cell.look.is_bold
        if self.met > met and not filled and not is_hidden:
            sheet.emptied_rows.add(self._row)
        if filled > 1 and bold == filled:
            self._bold.add(self._row)

    def _keep(self, cell: Cell, text: Text) -> bool:
        """Add a cell to the sheet. Returns whether the cell shows any text."""
        sheet = self._sheet
        shown_value = text.text
        if cell.kind in ("s", "str", "inlineStr"):
            shown_value = format_text(shown_value, cell.look.code)
        elif not self._shows_zeros and _float(cell.stored) == 0:
            shown_value = ""
        if not shown_value:
            sheet.unread["hidden cells"] += bool(text.text) or cell.kind == "n"
        elif text.is_struck or cell.look.is_struck:
            sheet.unread["struck"] += 1
        else:
            sheet.unread["struck parts"] += text.has_struck
            sheet.rows.setdefault(self._row, {})[cell.column] = shown_value
            return True
        return False

    def _take_drawing(self, part: str, link: str, *, is_old: bool) -> None:
        relation = self._book.relations(part).get(link)
        if relation is None:
            return
        if is_old:
            kinds = CONTROL_KIND.findall(self._book.bytes_of(relation.target) or b"")
            self._sheet.unread["objects"] += sum(kind not in (b"Note", b"Pict") for kind in kinds)
            return
        root = self._book.root(relation.target)
        drawn = Drawn() if root is None else drawn_in(root)
        self._sheet.texts.extend(drawn.texts)
        self._sheet.unread.update(drawn.unread)

    def finish(self) -> None:
        """Count hidden content, and find the bold header rows."""
        sheet = self._sheet
        sheet.unread["embedded"] = len(self._embedded)
        used = Counter(sheet.unread)
        sheet.unread["hidden rows"] = len(sheet.hidden_rows) if used["cells of hidden rows"] else 0
        sheet.unread["hidden columns"] = len(sheet.hidden_columns) if used["cells of hidden columns"] else 0
        sheet.bold_rows = {row for row in self._bold if row + 1 in sheet.rows and row + 1 not in self._bold}


def text_of(item: Any) -> Text:
    """Return a string's text without struck-through parts and phonetic guides."""
    visible_text = struck = ""
    for element in item:
        if element.tag == S + "t":
            visible_text += element.text or ""
        elif element.tag == S + "r":
            properties = element.find(S + "rPr")
            run_text = element.findtext(S + "t") or ""
            if properties is not None and _is_on(properties.find(S + "strike")):
                struck += run_text
                continue
            place = None if properties is None else properties.find(S + "vertAlign")
            visible_text += placed_in_cell(visible_text, run_text, "" if place is None else place.get("val") or "")
    text = on_one_line(visible_text)
    has_struck = not struck.isspace() and struck != ""
    return Text(text or on_one_line(struck), is_struck=has_struck and not text, has_struck=has_struck)


def _is_on(element: Any) -> bool:
    return element is not None and (element.get("val") or "1") in ON


def _number(text: str | None, otherwise: int = 0) -> int:
    text = (text or "").strip()
    return int(text[:9]) if text.isdecimal() else otherwise


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e300 else None


def _day_number(text: str, *, is_1904: bool) -> float | None:
    try:
        moment = datetime.fromisoformat(text.strip().removesuffix("Z")).replace(tzinfo=UTC)
    except ValueError:
        return None
    start = datetime(1904, 1, 1, tzinfo=UTC) if is_1904 else datetime(1899, 12, 30, tzinfo=UTC)
    return (moment - start).total_seconds() / 86_400
