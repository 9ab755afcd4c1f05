"""Load workbooks (.xlsx, .xlsm, .xls, .ods): each sheet's visible content, with tables in rows below their heads.

Each sheet is a section, and starts a page. Warnings on the sheet's first page name hidden content, and content which is
not text. At the end, all letters in the cells are looked up on the pages, and missing letters are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rag.errors import TooManyPages
from rag.ingestion.loaders import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, LoadOptions
from rag.ingestion.loaders.office_package import guarded, require_package
from rag.ingestion.loaders.open_document import require_open_document
from rag.ingestion.loaders.page_text import BLANK_PAGE, UNREAD_TEXT, letters_in
from rag.ingestion.loaders.sheets.ods import OpenWorkbook
from rag.ingestion.loaders.sheets.pages import Book
from rag.ingestion.loaders.sheets.sheet import ON_SHEET, UNREAD, Sheet
from rag.ingestion.loaders.sheets.xls import OldWorkbook
from rag.ingestion.loaders.sheets.xlsx import Workbook


def load_xlsx(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load an Excel workbook, with the file's properties.

    Raises `FileProtected` for a protected file, `FileTooLarge` for a file too large when unpacked, else `FileDamaged`.
    """
    require_package(content, options.limits, Workbook)

    def read() -> ExtractedDocument:
        workbook = Workbook(content)
        properties = workbook.properties()
        return loaded(
            workbook.sheets(), len(workbook), workbook.hidden, options, properties["title"], properties["creator"]
        )

    return guarded(read)


def check_xlsx(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check that the file is a valid package, and count its sheets. Raises the errors of `load_xlsx`."""
    require_package(content, options.limits, Workbook)
    return guarded(lambda: CheckedFile(page_count=max(len(Workbook(content)), 1)))


def load_xls(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load an Excel workbook from before 2007. Raises `FileProtected` for a protected file, else `FileDamaged`."""

    def read() -> ExtractedDocument:
        workbook = OldWorkbook(content)
        return loaded(workbook.sheets(), len(workbook), workbook.hidden, options, "", workbook.author)

    return guarded(read)


def check_xls(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check that the file opens, and count its sheets. Raises the errors of `load_xls`."""
    return guarded(lambda: CheckedFile(page_count=max(len(OldWorkbook(content)), 1)))


def load_ods(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load a LibreOffice workbook, with the file's properties. Raises the errors of `load_xlsx`."""
    require_open_document(content, options.limits)

    def read() -> ExtractedDocument:
        workbook = OpenWorkbook(content)
        properties = workbook.properties()
        return loaded(
            workbook.sheets(), workbook.count(), workbook.hidden, options, properties["title"], properties["creator"]
        )

    return guarded(read)


def check_ods(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check that the file is a valid package, and count its sheets. Raises the errors of `load_ods`."""
    require_open_document(content, options.limits)
    return guarded(lambda: CheckedFile(page_count=max(OpenWorkbook(content).count(), 1)))


def loaded(
    sheets: Iterable[Sheet], count: int, hidden: Sequence[str], options: LoadOptions, title: str, author: str
) -> ExtractedDocument:
    """Write sheets to pages, with warnings about unread content."""
    book = Book()
    for number, sheet in enumerate(sheets, 1):
        sheet.drop_covered()
        kept = Counter(letters_in("".join(text for row in sheet.rows.values() for text in row.values())))
        first = len(book.pages)
        book.add(sheet, list(sheet.warnings()), names_sheet=count > 1)
        if len(book.pages) > options.limits.maximum_pages:
            raise TooManyPages
        _count_lost(book, first, kept, sheet)
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
        one, several = UNREAD["hidden sheets"]
        shown = ", ".join(f"“{name}”" for name in names[:20]) + ("…" if len(names) > 20 else "")
        yield (one if len(names) == 1 else several).format(count=f"{len(names):,}", names=shown)


def _count_lost(book: Book, first: int, kept: Counter[str], sheet: Sheet) -> None:
    """Add a warning if letters or figures from the cells are missing on the sheet's pages."""
    written = Counter(letters_in("".join(page.text for page in book.pages[first:])))
    lost = sum((kept - written).values())
    if lost and first < len(book.pages):
        sentence = UNREAD_TEXT[lost > 1].format(count=f"{lost:,}")
        page = book.pages[first]
        book.pages[first] = replace(page, warnings=(*page.warnings, ON_SHEET.format(name=sheet.name, remark=sentence)))
