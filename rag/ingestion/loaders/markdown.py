"""Load Markdown: headings and lists stay as written; links, notes and HTML tables are written as read."""

from __future__ import annotations

import re

from rag.errors import FileEmpty
from rag.ingestion.chunking.markdown import headings_of
from rag.ingestion.loaders import DEFAULT_OPTIONS, ExtractedDocument, LoadOptions
from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.decoding import decoded
from rag.ingestion.loaders.html import load_html
from rag.ingestion.loaders.markdown_links import visible
from rag.ingestion.loaders.markdown_marks import written_marks
from rag.ingestion.loaders.page_text import STRUCK_TEXT, shortened
from rag.ingestion.loaders.text import BLANK_LINES
from rag.types import Page, Section

#: Facts between lines of dashes before the first line in some Markdown files.
FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<lines>.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
FRONT_TITLE = re.compile(r"^title:[ \t]*[\"']?(?P<title>[^\n\"']+)", re.MULTILINE)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def load_markdown(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load Markdown as its reader sees it, with its headings as sections.

    Comments, front matter and struck text are left out, and notes are moved into the sentence which refers to them.
    """
    found = decoded(content)
    text = found.text.replace("\r\n", "\n").removeprefix("\ufeff")
    front = FRONT_MATTER.match(text)
    text, struck = written_marks(COMMENT.sub("", text[front.end() :] if front else text))
    text = _lines_kept(visible(text, _rows))
    headings = headings_of(text)
    warnings = (*found.warnings, *((STRUCK_TEXT.format(text=shortened(struck)),) if struck else ()))
    named = FRONT_TITLE.search(front["lines"]) if front else None
    title = named["title"].strip() if named else next((h.title for h in headings if h.level == 1), "")
    return ExtractedDocument(
        pages=(Page(number=1, text=text, method="text" if text.strip() else "none", warnings=warnings),),
        sections=tuple(Section(title=h.title, level=h.level, page=1, start=h.start) for h in headings),
        title=title,
    )


def _rows(table: str) -> str:
    """Return the rows of an HTML table."""
    try:
        return load_html(table.encode()).pages[0].text.strip()
    except FileEmpty:
        return ""


def _lines_kept(text: str) -> str:
    """Clean a text like plain text, but keep leading blanks, which have a meaning in Markdown."""
    lines = text.split("\n")
    kept = (line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4) + normalise_characters(line) for line in lines)
    return BLANK_LINES.sub("\n\n", "\n".join(line.rstrip() for line in kept)).strip("\n")
