"""Plain text and Markdown: one page, or as many as there are form feeds."""

from __future__ import annotations

import re

from rag.ingestion.chunking.markdown import headings_of
from rag.ingestion.extracted import ExtractedPdf
from rag.ingestion.loaders.encodings import decode
from rag.ingestion.loaders.page_text import normalise_characters
from rag.types import Page, Section

#: Before the first line of some Markdown files: particulars between lines of dashes.
FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<lines>.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
FRONT_TITLE = re.compile(r"^title:[ \t]*[\"']?(?P<title>[^\n\"']+)", re.MULTILINE)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
BLANK_LINES = re.compile(r"\n{3,}")
#: Written in another than UTF-8, a file says so.
ENCODED = "This file was read as {encoding}."


def load_text(content: bytes) -> ExtractedPdf:
    """Plain text in whatever encoding; a form feed begins a page."""
    text, encoding = decode(content)
    pages = tuple(
        Page(
            number=number,
            text=page,
            method="text" if page.strip() else "none",
            warnings=() if encoding == "utf-8" else (ENCODED.format(encoding=encoding),),
        )
        for number, page in enumerate(map(_cleaned, text.split("\f")), start=1)
    )
    return ExtractedPdf(pages=pages)


def load_markdown(content: bytes) -> ExtractedPdf:
    """A Markdown text as it is written, with its headings as sections; comments and front matter are left out."""
    text, _ = decode(content)
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    front = FRONT_MATTER.match(text)
    text = _lines_kept(COMMENT.sub("", text[front.end() :] if front else text))
    headings = headings_of(text)
    named = FRONT_TITLE.search(front["lines"]) if front else None
    title = named["title"].strip() if named else next((h.title for h in headings if h.level == 1), "")
    return ExtractedPdf(
        pages=(Page(number=1, text=text, method="text" if text.strip() else "none"),),
        sections=tuple(Section(title=h.title, level=h.level, page=1, start=h.start) for h in headings),
        title=title,
    )


def _cleaned(text: str) -> str:
    return BLANK_LINES.sub("\n\n", normalise_characters(text)).strip("\n ")


def _lines_kept(text: str) -> str:
    """Like plain text, but with the blank space before a line: in Markdown it has a meaning."""
    lines = text.split("\n")
    kept = (line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4) + normalise_characters(line) for line in lines)
    return BLANK_LINES.sub("\n\n", "\n".join(line.rstrip() for line in kept)).strip("\n")
