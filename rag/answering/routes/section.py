"""Read out a numbered section: "What does section 2.2 say?"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.answering.routes.documents import (
    MOST_CHOICES,
    Contents,
    NumberedPassages,
    OutlineSection,
    ReadableDocuments,
    WholeDocument,
)
from rag.answering.routes.replies import RouteReply, cell

#: Documents to search for the number, and sections to quote.
MOST_SEARCHED, MOST_QUOTED = 60, 3
#: Characters quoted from a section.
LONGEST_QUOTED = 900
#: A line starting with a number.
NEXT_NUMBER = re.compile(r"\n[ \t]*(?:[^\W\d_]{1,12}\.? ?|§ ?)?\d+(?:[.:]\d+)*[.)]?[ \t]+(?=\w)")


def documents_with(
    library: ReadableDocuments, number: str, among: Sequence[WholeDocument] | None
) -> list[WholeDocument]:
    """Return the documents with a section of this number, newest first; `among` limits the choice."""
    chosen = None if among is None else {document.id for document in among}
    named = library.documents(words=[number], limit=MOST_SEARCHED)
    heads = _heads(number)
    found = [
        document
        for document in named
        if (chosen is None or document.id in chosen)
        and any(heads.match(section.title) for section in library.sections(document))
    ]
    if found:
        return found
    # Paragraphs may have numbers too.
    said = set(library.naming([number], limit=MOST_CHOICES))
    readable = library.documents() if among is None else among
    return [d for d in readable if d.id in said and _paragraph(library.contents(d), number) is not None]


def read_out(documents: Sequence[Contents], number: str) -> RouteReply | None:
    """Quote each document's section with a citation, or return `None` without text."""
    passages = NumberedPassages()
    lines = []
    for contents in documents:
        part = _part(contents, number) or _paragraph(contents, number)
        if part is None:
            continue
        text = " ".join(part.text.split())
        shown = text if len(text) <= LONGEST_QUOTED else f"{text[:LONGEST_QUOTED].rsplit(' ', 1)[0]} …"
        marker = passages.cite(contents.document, contents.chunk_at(part.start), part.path)
        lines.append(f"**{cell(contents.document.title)} › {cell(part.title)}**\n\n“{cell(shown)}”{marker}")
    return RouteReply(text="\n\n".join(lines), citations=tuple(passages.citations)) if lines else None


def _part(contents: Contents, number: str) -> OutlineSection | None:
    """Return the section with its subsections."""
    heads = _heads(number)
    for place, part in enumerate(contents.parts):
        if not heads.match(part.title):
            continue
        below = [part.text]
        for following in contents.parts[place + 1 :]:
            if following.level <= part.level:
                break
            below += [f"{following.title}.", following.text]
        text = "\n".join(filter(str.strip, below))
        if text:
            return OutlineSection(part.title, part.path, part.level, part.start, text)
    return None


def _paragraph(contents: Contents, number: str) -> OutlineSection | None:
    """Return the numbered paragraph, up to the next number."""
    begin = re.compile(rf"^[ \t]*{_heads(number).pattern}[.)]?[ \t]+(?=\w)", re.IGNORECASE | re.MULTILINE)
    for part in contents.parts:
        if match := begin.search(part.text):
            text = NEXT_NUMBER.split(part.text[match.end() :], maxsplit=1)[0].strip()
            return OutlineSection(number, part.path, part.level, part.start + match.start(), text)
    return None


def _heads(number: str) -> re.Pattern[str]:
    """Return a pattern for numbered headings: "2.2 Hotels", "§ 5", "Article 12", "제26조"."""
    return re.compile(rf"(?:[^\W\d_]{{1,12}}\.?\s*|§\s*)?{re.escape(number)}(?![\d:]|\.\d)", re.IGNORECASE)
