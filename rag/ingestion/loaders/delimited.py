"""Load tables of text (.csv, .tsv): a row a line, the heads of the columns first. Runs in the sandbox process."""

from __future__ import annotations

import csv
import io

from rag.ingestion.extracted import ExtractedDocument
from rag.ingestion.loaders import DEFAULT_OPTIONS, LoadOptions
from rag.ingestion.loaders.page_text import normalise_characters
from rag.ingestion.loaders.text import decode, load_text, warnings_for
from rag.types import Page

DELIMITERS = ",;\t|"
#: The delimiter is guessed by so many characters from the start.
LOOKED_AT = 20_000


def load_csv(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load the rows on one page, cells parted by `|`. A file without two columns is loaded as plain text."""
    text, encoding = decode(content)
    try:
        dialect = csv.Sniffer().sniff(text[:LOOKED_AT], DELIMITERS)
        rows = [[_cell(cell) for cell in row] for row in csv.reader(io.StringIO(text, newline=""), dialect)]
    except csv.Error:
        return load_text(content, options)
    rows = [row for row in rows if any(row)]
    if len(rows) < 2 or min(map(len, rows[:2])) < 2:
        return load_text(content, options)
    lines = [" | ".join(row).rstrip() for row in rows]
    page = Page(number=1, text="\n".join(lines), method="text", warnings=warnings_for(encoding))
    return ExtractedDocument(pages=(page,))


def _cell(text: str) -> str:
    return " ".join(normalise_characters(text).replace("|", "/").split())
