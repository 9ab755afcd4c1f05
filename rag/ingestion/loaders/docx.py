"""Load Word documents (.docx): paragraphs and tables in order, headings as sections. Runs in the sandbox process."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Any

import docx
from docx.table import Table
from docx.text.paragraph import Paragraph
from docx.text.run import Run

from rag.errors import FileDamaged, FileTooLarge, PasswordNeeded
from rag.ingestion.loaders import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, ExtractionLimits, LoadOptions
from rag.ingestion.loaders.page_text import normalise_characters
from rag.ingestion.tables import guessed_head_rows, lines_of
from rag.types import Page, Section

#: A compound file: how Word stores documents with a password, and how it stored all of them before 2007.
OLD_FORMAT = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
HEADING = re.compile(r"(?:heading|제목|überschrift|kop|titre|título) ?([1-9])$", re.IGNORECASE)
#: Unpacked, a document may be so many times the limit on files.
UNPACKED_FACTOR = 8
HIDDEN_TEXT = "Text that is hidden in the document was left out: {characters} characters."


def load_docx(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load a Word document as one page, with a line for each row of a table, and with the file's own properties.

    Raises `PasswordNeeded` for a protected one, `FileTooLarge` for one that unpacks to too much, else `FileDamaged`.
    """
    require_docx(content, options.limits)
    try:
        document = docx.Document(io.BytesIO(content))
        lines: list[str] = []
        headings: list[tuple[str, int, int]] = []
        position = hidden = 0
        for block in document.iter_inner_content():
            if isinstance(block, Table):
                texts = _rows(block)
                level = 0
            else:
                text, invisible = _text_of(block)
                hidden += invisible
                texts, level = [text], _level(block) if text else 0
            for text in texts:
                if level:
                    headings.append((" ".join(text.split()), level, position))
                lines.append(text)
                position += len(text) + 1
        properties = document.core_properties
        title, author, language = properties.title or "", properties.author or "", properties.language or ""
    except (KeyError, ValueError, zipfile.BadZipFile, AttributeError, TypeError, IndexError, OSError) as exc:
        raise FileDamaged from exc
    except Exception as exc:  # lxml and the package reader have errors of their own, without a common base
        raise FileDamaged from exc
    text = "\n".join(lines)
    page = Page(
        number=1,
        text=text,
        method="text" if text.strip() else "none",
        warnings=(HIDDEN_TEXT.format(characters=hidden),) if hidden else (),
    )
    sections = tuple(Section(title=name[:200], level=level, page=1, start=start) for name, level, start in headings)
    return ExtractedDocument(
        pages=(page,), sections=sections, title=title, author=author, language=language[:2].lower()
    )


def check_docx(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check that the file is a sound package. Raises what `load_docx` raises."""
    require_docx(content, options.limits)
    return CheckedFile(page_count=1)


def require_docx(content: bytes, limits: ExtractionLimits) -> None:
    """Raise the `DocumentError` that says why the file is no sound package."""
    if content.startswith(OLD_FORMAT):
        if "EncryptedPackage".encode("utf-16-le") in content:
            raise PasswordNeeded("This document is protected by a password. Save it without one and upload that.")
        raise FileDamaged("This document is in Word's format of before 2007. Save it as .docx and upload that.")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as package:
            unpacked = sum(entry.file_size for entry in package.infolist())
            package.getinfo("word/document.xml")
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as exc:
        raise FileDamaged from exc
    if unpacked > limits.maximum_bytes * UNPACKED_FACTOR:
        raise FileTooLarge


def _text_of(paragraph: Paragraph) -> tuple[str, int]:
    """Return the paragraph's visible text, and how many characters of it are hidden."""
    visible: list[str] = []
    hidden = 0
    for part in paragraph.iter_inner_content():
        runs = [part] if isinstance(part, Run) else part.runs
        for run in runs:
            if run.font.hidden:
                hidden += len(run.text)
            else:
                visible.append(run.text)
    return normalise_characters("".join(visible)).strip(), hidden


def _level(paragraph: Paragraph) -> int:
    """Return the level of a heading by its style, 1 for the document's title; 0 for text."""
    name = (paragraph.style.name or "") if paragraph.style is not None else ""
    found = HEADING.match(name)
    return int(found[1]) if found else int(name.casefold() in ("title", "제목", "titel"))


def _rows(table: Table) -> list[str]:
    """Return a line for each row below the heads; a cell that spans rows is repeated in each."""
    grid: list[list[str | None]] = []
    for row in table.rows:
        cells: list[str | None] = []
        last: Any = None
        for cell in row.cells:
            element = cell._tc  # noqa: SLF001 - merged cells are the same only by their element
            cells.append(None if element is last else " ".join(normalise_characters(cell.text).split()))
            last = element
        grid.append(cells)
    return lines_of(grid, guessed_head_rows(grid))
