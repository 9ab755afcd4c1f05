"""Load workbooks (.xlsx, .xlsm): each sheet's visible content, with tables in rows below their column headings.

Each sheet is a section, and starts a new page. Warnings on a sheet's first page name hidden content, and content which
is not text. At the end, the letters in all cells are compared with the pages, and missing letters are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rag.errors import TooManyPages
from rag.ingestion.loaders.office_package import guarded, require_package
from rag.ingestion.loaders.page_text import BLANK_PAGE, UNREAD_TEXT, letters_in
from rag.ingestion.loaders.sheets.sheet import ON_SHEET, UNREAD, Sheet, column_name
from rag.ingestion.loaders.sheets.xlsx import Workbook
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, LoadOptions
from rag.text.tables import AMOUNT, MOST_HEAD_ROWS, are_heads, guessed_head_rows, lines_of, row_in_words
from rag.types import Page, Section


def load_xlsx(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load an Excel workbook, with the file's properties.

    Raises `FileProtected` for a protected file, `FileTooLarge` for a file too large when unpacked, else `FileDamaged`.
    """
    require_package(content, options.limits, Workbook)

    def read() -> ExtractedDocument:
        workbook = Workbook(content)
        properties = workbook.properties()
        return document_of_sheets(
            workbook.sheets(), len(workbook), workbook.hidden, options, properties["title"], properties["creator"]
        )

    return guarded(read)


def check_xlsx(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check that the file is a valid package, and count the sheets. Raises the errors from `load_xlsx`."""
    require_package(content, options.limits, Workbook)
    return guarded(lambda: CheckedFile(page_count=max(len(Workbook(content)), 1)))


def document_of_sheets(
    sheets: Iterable[Sheet], count: int, hidden: Sequence[str], options: LoadOptions, title: str, author: str
) -> ExtractedDocument:
    """Convert sheets to text pages, with warnings about unread content."""
    book = Book()
    for number, sheet in enumerate(sheets, 1):
        sheet.drop_covered()
        expected = Counter(letters_in("".join(text for row in sheet.rows.values() for text in row.values())))
        first = len(book.pages)
        book.add(sheet, list(sheet.warnings()), names_sheet=count > 1)
        if len(book.pages) > options.limits.maximum_pages:
            raise TooManyPages
        _count_lost(book, first, expected, sheet)
        if options.on_page is not None:
            options.on_page(number, max(count, number))
    if not book.pages:
        book.add(Sheet(""), [BLANK_PAGE])
    first_page = book.pages[0]
    book.pages[0] = replace(first_page, warnings=(*_hidden_sheets(hidden), *first_page.warnings))
    return ExtractedDocument(
        pages=tuple(book.pages),
        sections=tuple(section for section in book.sections if section.title),
        title=title,
        author=author,
        metadata={"sheet_rows": book.places} if book.places else {},
    )


def _hidden_sheets(names: Sequence[str]) -> Iterable[str]:
    if names:
        singular, plural = UNREAD["hidden sheets"]
        listed = ", ".join(f"“{name}”" for name in names[:20]) + ("…" if len(names) > 20 else "")
        yield (singular if len(names) == 1 else plural).format(count=f"{len(names):,}", names=listed)


def _count_lost(book: Book, first: int, expected: Counter[str], sheet: Sheet) -> None:
    page_counts = Counter(letters_in("".join(page.text for page in book.pages[first:])))
    lost = sum((expected - page_counts).values())
    if lost and first < len(book.pages):
        sentence = UNREAD_TEXT[lost > 1].format(count=f"{lost:,}")
        page = book.pages[first]
        book.pages[first] = replace(page, warnings=(*page.warnings, ON_SHEET.format(name=sheet.name, remark=sentence)))


#: A page ends with the row which reaches this length, in characters.
PAGE_CHARACTERS = 4000
#: A merged cell up to this length is repeated in each of its rows; a longer cell is text, and written only once.
LONGEST_REPEATED = 500
#: Rows from the top of a table searched for the row with the heads.
MOST_ROWS_ABOVE = 12
LONGEST_TITLE = 120
#: With two columns, the second has a head if this share of rows has figures.
MOST_FIGURES = 0.8
#: Rows which tell whether the first row names the columns.
LOOKED_AT = 200
#: Default sheet names given by programs.
USUAL_NAME = re.compile(
    r"(?:sheet|tabelle|table|feuil|feuille|hoja|foglio|blad|arkusz|planilha|folha|sayfa|시트|工作表|シート)[ _]?\d*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SheetLine:
    """A line on a page: the sheet's row (0 without a row), the first and last column, and the heading level."""

    text: str
    row: int = 0
    columns: tuple[int, int] = (0, 0)
    level: int = 0
    #: Whether the line starts text which does not belong to the heading above.
    ends_section: bool = False


@dataclass
class Book:
    """A workbook's pages and sections, and the sheet's row for each line.

    `places` maps a page number to entries [line index, row, first column, last column]. A line has no entry if the row
    directly follows the row in the line above.
    """

    pages: list[Page] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    places: dict[str, list[list[Any]]] = field(default_factory=dict)
    _length: int = 0

    def add(self, sheet: Sheet, warnings: Sequence[str] = (), *, names_sheet: bool = True) -> None:
        """Add a sheet as one or more pages. An empty sheet without warnings adds no page."""
        lines = list(lines_of_sheet(sheet))
        if not lines and not warnings:
            return
        if lines and names_sheet and not USUAL_NAME.fullmatch(sheet.name):
            lines.insert(0, SheetLine(sheet.name))
        first = len(self.pages) + 1
        self.sections.append(Section(title=sheet.name[:200], level=1, page=first, start=self._length))
        for number, part in enumerate(_parts(lines), first):
            self._page(sheet, number, part, warnings if number == first else ())

    def _page(self, sheet: Sheet, number: int, lines: Sequence[SheetLine], warnings: Sequence[str]) -> None:
        position = self._length
        places: list[list[Any]] = []
        expected: tuple[int, tuple[int, int]] | None = None
        for index, line in enumerate(lines):
            if line.level:
                self.sections.append(Section(title=line.text[:200], level=line.level + 1, page=number, start=position))
            elif line.ends_section and self.sections[-1].level > 1:
                self.sections.append(Section(title=sheet.name[:200], level=1, page=number, start=position))
            if line.row and expected != (line.row, line.columns):
                places.append([index, line.row, *map(column_name, line.columns)])
            elif not line.row and expected is not None:
                places.append([index, 0, "", ""])
            expected = (line.row + 1, line.columns) if line.row else None
            position += len(line.text) + 1
        text = "\n".join(line.text for line in lines)
        rows = [line.row for line in lines if line.row]
        label = f"{sheet.name} {min(rows)}–{max(rows)}" if rows else sheet.name
        self.pages.append(
            Page(
                number=number,
                text=text,
                method="text" if text.strip() else "none",
                label=label[:200],
                warnings=tuple(warnings),
            )
        )
        if places:
            self.places[str(number)] = places
        self._length += len(text) + 1


def _parts(lines: Sequence[SheetLine]) -> Iterator[list[SheetLine]]:
    part: list[SheetLine] = []
    length = 0
    for line in lines:
        part.append(line)
        length += len(line.text) + 1
        if length >= PAGE_CHARACTERS and line.row and not line.level:
            yield part
            part, length = [], 0
    if part or not lines:
        yield part


def lines_of_sheet(sheet: Sheet) -> Iterator[SheetLine]:
    """Yield a sheet's lines: the tables from top to bottom, then the text boxes."""
    spans = _Merged(sheet)
    parts = [
        _lines_of_block(sheet, block, spans)
        for rows in _row_groups(sheet, spans)
        for block in _side_by_side(sheet, rows, spans)
    ]
    for index, lines in enumerate([*parts, *([SheetLine(text)] for text in sheet.texts)]):
        if index:
            yield SheetLine("")
        for number, line in enumerate(lines):
            yield replace(line, ends_section=True) if number == 0 and not line.level else line


@dataclass(frozen=True)
class Block:
    """A range of rows and columns which forms a table."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]


class _Merged:
    """Returns each cell's text, also inside merged cells; `None` for a cell covered by the cell on its left."""

    def __init__(self, sheet: Sheet) -> None:
        self._rows = sheet.rows
        self._at: dict[tuple[int, int], tuple[int, int] | None] = {}
        last = max((max(row) for row in sheet.rows.values()), default=0)
        self._texts: dict[tuple[int, int], str] = {}
        self._columns: dict[int, set[int]] = {}
        for span in sheet.merged:
            across = range(span.left, min(span.right, last) + 1)
            first = next((column for column in across if column not in sheet.hidden_columns), None)
            top = next((r for r in range(span.top, span.bottom + 1) if r not in sheet.hidden_rows), None)
            text = sheet.rows.get(span.top, {}).get(span.left) or sheet.covered.get((span.top, span.left), "")
            if first is None or top is None or not text:
                continue
            self._texts[span.top, span.left] = text
            down = range(span.top, span.bottom + 1)
            for row in (r for r in down if r in sheet.rows) if len(down) < len(sheet.rows) else sheet.rows:
                if row not in down or (row != top and len(text) > LONGEST_REPEATED):
                    continue
                for column in across:
                    if column not in sheet.hidden_columns:
                        self._at[row, column] = (span.top, span.left) if column == first else None
                        self._columns.setdefault(row, set()).add(column)

    def cell(self, row: int, column: int) -> str | None:
        if (row, column) not in self._at:
            return self._rows.get(row, {}).get(column, "")
        source = self._at[row, column]
        return None if source is None else self._texts[source]

    def columns(self, row: int) -> Iterable[int]:
        columns = self._rows[row].keys()
        return columns if row not in self._columns else self._columns[row].union(columns)


def _row_groups(sheet: Sheet, spans: _Merged) -> Iterator[list[int]]:
    band: list[int] = []
    for row in sorted(sheet.rows):
        between = range(band[-1] + 1, min(row, band[-1] + 5000)) if band else ()
        if any(gap not in sheet.hidden_rows and gap not in sheet.emptied_rows for gap in between):
            yield band
            band = []
        band.append(row)
    if band:
        yield band


def _side_by_side(sheet: Sheet, rows: Sequence[int], spans: _Merged) -> Iterator[Block]:
    used = sorted({column for row in rows for column in spans.columns(row)})
    parts: list[list[int]] = []
    for column in used:
        between = range(parts[-1][-1] + 1, column) if parts else ()
        is_separate = any(gap not in sheet.hidden_columns and gap not in sheet.narrow_columns for gap in between)
        if not parts or is_separate:
            parts.append([column])
        else:
            parts[-1].append(column)
    blocks: list[Block] = []
    for part in parts:
        block_rows = tuple(row for row in rows if any(spans.cell(row, column) for column in part))
        block = Block(block_rows, tuple(part))
        before = blocks[-1] if blocks else None
        if before is not None and not _are_separate(before, block, spans):
            blocks[-1] = Block(tuple(sorted({*before.rows, *block_rows})), (*before.columns, *part))
        else:
            blocks.append(block)
    yield from blocks


def _are_separate(left: Block, right: Block, spans: _Merged) -> bool:
    if min(len(left.columns), len(right.columns)) < 2 or min(len(left.rows), len(right.rows)) < 2:
        return False
    for block in (left, right):
        grid = [[spans.cell(row, column) for column in block.columns] for row in block.rows]
        _, heads, rows = _count_header_rows(grid)
        body = grid[heads + rows :]
        if not rows or not all(row[0] and not row[0][:1].isdigit() for row in body):
            return False
    return True


def _lines_of_block(sheet: Sheet, block: Block, spans: _Merged) -> Iterator[SheetLine]:
    grid = [[spans.cell(row, column) for column in block.columns] for row in block.rows]
    columns = (block.columns[0], block.columns[-1])
    if len(block.columns) == 1:
        for row, cells in zip(block.rows, grid, strict=True):
            yield SheetLine(cells[0] or "", row, columns)
        return
    marked_heads = [index for index, row in enumerate(block.rows) if row in sheet.head_rows]
    marked_heads = marked_heads or _bold_heads(grid, [row in sheet.bold_rows for row in block.rows])
    titles, above, heads = _count_header_rows(grid, marked_heads)
    is_titled = False
    for index in range(above):
        text = row_in_words(None, [(cell or "").removesuffix(":").rstrip() for cell in grid[index]])
        is_title = index < titles and not is_titled and heads > 0 and len(text) <= LONGEST_TITLE
        is_titled = is_titled or is_title
        yield SheetLine(text, block.rows[index], columns, level=int(is_title))
    if len(block.columns) == 2 and not heads:
        yield from _pair_lines(Block(block.rows[above:], block.columns), grid[above:], columns)
    else:
        yield from _table_lines(block, grid, columns, above, heads)


def _pair_lines(block: Block, grid: Sequence[Sequence[str | None]], columns: tuple[int, int]) -> Iterator[SheetLine]:
    for row, cells in zip(block.rows, grid, strict=True):
        yield SheetLine(row_in_words(None, [(cell or "").removesuffix(":").rstrip() for cell in cells]), row, columns)


def _table_lines(
    block: Block, grid: list[list[str | None]], columns: tuple[int, int], above: int, heads: int
) -> Iterator[SheetLine]:
    body = grid[above:]
    if not body:
        return
    head = lines_of(body[:heads], heads)[-1] if heads else ""
    titles = lines_of(body[:heads], heads)[:-1] if heads else []
    for text in titles:
        yield SheetLine(text, block.rows[above], columns)
    if heads:
        yield SheetLine(head, block.rows[above + heads - 1], columns)
        # Heads which do not look like heads get a rule below, like in Markdown.
        rest = [[cell or "" for cell in row] for row in body[heads:]]
        if not are_heads(head.split(" | "), rest):
            yield SheetLine(" | ".join(["---"] * len(grid[0])))
    has_heads_above = True
    for row, cells in zip(block.rows[above + heads :], body[heads:], strict=True):
        lines = lines_of([cells], 0)
        if not lines:
            continue
        is_row = len(cells) > 1 and " | " in lines[0] and any(cell is not None for cell in cells[1:])
        if not is_row:
            yield SheetLine(lines[0], row, columns)
            has_heads_above = False
            continue
        if heads and not has_heads_above:
            yield SheetLine(head, block.rows[above + heads - 1], columns)
        has_heads_above = True
        yield SheetLine(_join_cells(_repeat_merged(cells)), row, columns)


def _repeat_merged(cells: Sequence[str | None]) -> list[str]:
    """Repeat a merged cell's text in each covered column, unless the text is long."""
    repeated: list[str] = []
    for cell in cells:
        repeated.append((repeated[-1] if repeated and len(repeated[-1]) <= 80 else "") if cell is None else cell)
    return repeated


def _join_cells(cells: Sequence[str]) -> str:
    """Join a row's cells with "|".

    If the first and the last cell are empty, the last cell gets "–", because the row would otherwise look like
    Markdown.
    """
    texts = [cell.replace("|", "/") for cell in cells]
    if not texts[0] and not texts[-1]:
        texts[-1] = "–"
    return " | ".join(texts)


def _count_header_rows(grid: Sequence[Sequence[str | None]], marked_heads: Sequence[int] = ()) -> tuple[int, int, int]:
    """Return three counts for a table: the title rows, all rows above the header, and the header rows."""
    width = len(grid[0])
    filled = [sum(bool(cell) for cell in row) for row in grid]
    titles = 0
    while titles < min(len(grid) - 1, MOST_ROWS_ABOVE) and filled[titles] <= 1 and _is_alone(grid[titles]):
        titles += 1
    first = next((index for index in marked_heads if index < MOST_ROWS_ABOVE), None)
    if first is not None and first < len(grid) - 1:
        return min(titles, first), first, _depth(grid[first:])
    most = 0
    for index in range(titles, min(len(grid) - 1, MOST_ROWS_ABOVE)):
        # Above the heads there are pairs such as "Company: | Example Ltd", but no table rows.
        is_pair = filled[index] == 2 < width and (grid[index][0] or "").endswith(":")
        if not is_pair and filled[index] > most and (rows := _guess_head_rows(grid[index : index + LOOKED_AT])):
            return titles, index, rows
        most = max(most, filled[index])
        if most > 2:
            break
    return (titles, titles, 0) if width > 1 else (0, 0, 0)


def _bold_heads(grid: Sequence[Sequence[str | None]], is_bold: Sequence[bool]) -> list[int]:
    index = next((place for place, bold in enumerate(is_bold) if bold), None)
    if index is None or any(sum(bool(cell) for cell in row) > 2 for row in grid[:index]):
        return []
    return [index] if index == 0 or len(grid[0]) > 2 else []


def _depth(grid: Sequence[Sequence[str | None]]) -> int:
    return max(_guess_head_rows(grid[:LOOKED_AT]), 1)


def _guess_head_rows(grid: Sequence[Sequence[str | None]]) -> int:
    if rows := guessed_head_rows(grid):
        return rows if rows > 1 or len(grid[0]) > 2 or _has_figures(grid) else 0
    rows = 1
    while rows < min(MOST_HEAD_ROWS, len(grid) - 1) and any(cell is None for cell in grid[rows - 1]):
        rows += 1
    if rows == 1 or any(AMOUNT.fullmatch(cell or "") for cell in grid[rows - 1]):
        return 0
    heads = lines_of(grid[:rows], rows)[-1].split(" | ")
    return rows if len(set(heads)) == len(heads) == len(grid[0]) else 0


def _has_figures(grid: Sequence[Sequence[str | None]]) -> bool:
    """Whether most rows have digits in the second column, but the header row has no digits. Forms fail this test."""
    figures = [any(map(str.isdigit, row[1] or "")) for row in grid]
    return not figures[0] and figures[1:].count(True) >= MOST_FIGURES * len(figures[1:])


def _is_alone(row: Sequence[str | None]) -> bool:
    is_over_some = any(cell is None for cell in row) and not all(cell is None for cell in row[1:])
    return not is_over_some and (bool(row[0]) or len(row) > 2)
