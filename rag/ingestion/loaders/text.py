"""Load plain text and text tables (.csv, .tsv), in any encoding. A form feed starts a page.

The encoding is found by a byte order mark, by trying UTF-8, or by a declaration in the text. If all three fail, the
module `decoding` guesses the encoding from the letters in the text.
"""

from __future__ import annotations

import csv
import io
import re

from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.decoding import decoded
from rag.ingestion.loaders.fixed_width import with_tables
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, LoadOptions
from rag.types import Page

LINE_END = re.compile(r"\r\n|\r|\n")
BLANK_LINES = re.compile(r"\n{3,}")


def check_text(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Count the pages of a text file, and return them in a `CheckedFile`."""
    return CheckedFile(page_count=content.count(b"\f") + 1)


def load_text(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load plain text in any encoding. A form feed starts a page."""
    source = decoded(content)
    pages = tuple(
        Page(
            number=number,
            text=page,
            method="text" if page.strip() else "none",
            warnings=source.warnings,
        )
        for number, page in enumerate(map(_clean, source.text.split("\f")), start=1)
    )
    return ExtractedDocument(pages=pages)


def _clean(text: str) -> str:
    text = "\n".join(with_tables(LINE_END.split(text)))
    return BLANK_LINES.sub("\n\n", normalise_characters(text)).strip("\n ")


DELIMITERS = ",;\t|"
#: Characters from the start used to guess the delimiter.
DELIMITER_CHARACTERS = 20_000
#: A first line which tells Excel the delimiter and is not shown.
NAMED_DELIMITER = re.compile(r"\ufeff?sep=([^\r\n])\r?\n", re.IGNORECASE)


def load_csv(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load the rows on a single page, with `|` between cells. A file with a single column is loaded as plain text."""
    source = decoded(content)
    named = NAMED_DELIMITER.match(source.text)
    text = source.text[named.end() :] if named else source.text
    try:
        dialect = csv.Sniffer().sniff(text[:DELIMITER_CHARACTERS], named[1] if named else DELIMITERS)
        rows = [[_cell(cell) for cell in row] for row in csv.reader(io.StringIO(text, newline=""), dialect)]
    except csv.Error:
        return load_text(content, options)
    rows = [row for row in rows if any(row)]
    if len(rows) < 2 or min(map(len, rows[:2])) < 2:
        return load_text(content, options)
    lines = [" | ".join(row).rstrip() for row in rows]
    page = Page(number=1, text="\n".join(lines), method="text", warnings=source.warnings)
    return ExtractedDocument(pages=(page,))


def _cell(text: str) -> str:
    return " ".join(normalise_characters(text).replace("|", "/").split())
