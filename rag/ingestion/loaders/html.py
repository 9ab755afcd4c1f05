"""HTML posts of notice boards to text: editors' markup, hidden text and page furniture left out, tables as rows.

lxml reads them: its parser takes whatever editors write, is the one python-docx needs as well, and never fetches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import lxml.html
from lxml import etree

from rag.errors import FileEmpty
from rag.ingestion.extracted import ExtractedPdf
from rag.ingestion.loaders.dates import backdated_at_from
from rag.ingestion.loaders.encodings import decode
from rag.ingestion.loaders.html_hidden import StyleRules, is_hidden, is_machine_data, style_rules
from rag.ingestion.loaders.html_tables import head_rows_of, rows_of
from rag.ingestion.loaders.page_text import normalise_characters
from rag.ingestion.loaders.table_rows import lines_of
from rag.types import Page, Section

#: Never text: programs, styles, forms, drawings, and what Word and HWP leave for themselves.
DROPPED = frozenset({
    "script", "style", "head", "template", "noscript", "iframe", "object", "embed", "svg", "math", "canvas", "audio",
    "video", "select", "option", "button", "input", "textarea", "datalist", "map", "area", "xml", "v:shape",
    "v:shapetype", "v:imagedata", "meta", "link", "base", "nav",
})  # fmt: skip
BLOCKS = frozenset({
    "p", "div", "section", "article", "header", "footer", "main", "aside", "ul", "ol", "dl", "dt", "dd", "blockquote",
    "pre", "caption", "figure", "figcaption", "address", "fieldset", "form", "hr", "center", "details", "summary",
})  # fmt: skip
#: Blocks with a blank line before and after.
PARAGRAPHS = frozenset({"p", "ul", "ol", "blockquote", "pre"})
HEADINGS = {f"h{level}": level for level in range(1, 7)}
SPACES = re.compile(r"[ \t\r\n\f\u00a0\u200b]+")
BLANK_LINES = re.compile(r"\n{3,}")
HIDDEN_TEXT = "Text that a reader does not see was left out: “{text}”."
CUT_OFF = "Part of this file is nested too deeply to be read and was left out."
#: Deeper than this no editor nests; a file that does was made to break readers.
DEEPEST = 250


@dataclass
class Walk:
    """What is gathered on the way through the document."""

    parts: list[str] = field(default_factory=list)
    headings: list[tuple[int, str, str]] = field(default_factory=list)
    links: list[dict[str, str]] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    rules: StyleRules = field(default_factory=StyleRules)


def load_html(content: bytes) -> ExtractedPdf:
    """The text of a post with its sections; `metadata` has `links` (text, url) and `backdated_at` where there are any.

    Raises `FileEmpty` when there is nothing that could be read.
    """
    source, _ = decode(content)
    tree, is_whole = _parsed(source)
    walk = Walk(rules=style_rules(tree))
    for text in _texts(tree, walk, 0):
        walk.parts.append(text)
    text = _tidied("".join(walk.parts))
    metadata: dict[str, Any] = {}
    if walk.links:
        metadata["links"] = walk.links
    if (date := backdated_at_from(text)) is not None:
        metadata["backdated_at"] = date.isoformat()
    warnings = [HIDDEN_TEXT.format(text=_shortened(" ".join(walk.hidden)))] if walk.hidden else []
    if not is_whole:
        warnings.append(CUT_OFF)
    title = SPACES.sub(" ", tree.findtext(".//title") or "").strip()
    return ExtractedPdf(
        pages=(Page(number=1, text=text, method="text" if text else "none", warnings=tuple(warnings)),),
        sections=tuple(_sections(text, walk)),
        title=title,
        language=(tree.get("lang") or "")[:2].lower(),
        metadata=metadata,
    )


def _parsed(source: str) -> tuple[Any, bool]:
    """The document, and whether all of it could be read."""
    # A declared encoding would be taken for that of the text, which has none any more.
    source = re.sub(r"^\s*<\?xml[^>]*\?>", "", source.replace("\0", ""))
    # Word's conditional comments: what other programs are meant to see stands between them.
    source = re.sub(r"<!\[(?:if|endif)[^\]>]{0,200}\]>", "", source, flags=re.IGNORECASE)
    parser = lxml.html.HTMLParser(remove_comments=True, remove_pis=True, no_network=True, huge_tree=True)
    try:
        tree = lxml.html.document_fromstring(source, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError) as exc:
        raise FileEmpty from exc
    return tree, not any("depth" in entry.message.lower() for entry in parser.error_log)


def _texts(element: Any, walk: Walk, depth: int) -> Iterator[str]:
    tag = element.tag if isinstance(element.tag, str) else ""
    if tag in DROPPED or not tag:
        return
    if depth > DEEPEST:
        yield element.text_content()
        return
    if is_machine_data(element):
        return
    if is_hidden(element, walk.rules):
        walk.hidden.append(SPACES.sub(" ", element.text_content()).strip())
        return
    if tag == "br":
        yield "\n"
        return
    if tag == "img":
        yield f" {element.get('alt')} " if (element.get("alt") or "").strip() else ""
        return
    if tag == "table":
        yield "\n\n" + "\n".join(_rows(element, walk, depth)) + "\n\n"
        return
    inner = _inner(element, walk, depth, keep_lines=tag == "pre")
    if tag == "a":
        yield _link(element, "".join(inner), walk)
    elif tag in HEADINGS:
        title = SPACES.sub(" ", normalise_characters("".join(inner))).strip()
        if title:
            walk.headings.append((HEADINGS[tag], title, title))
        yield f"\n\n{title}\n\n"
    elif tag == "li":
        yield "\n- " + "".join(inner).strip()
    elif tag in BLOCKS:
        yield "\n\n" if tag in PARAGRAPHS else "\n"
        yield from inner
        yield "\n\n" if tag in PARAGRAPHS else "\n"
    else:
        yield from inner


def _inner(element: Any, walk: Walk, depth: int, *, keep_lines: bool = False) -> Iterator[str]:
    def plain(text: str | None) -> str:
        return (text or "") if keep_lines else SPACES.sub(" ", text or "")

    yield plain(element.text)
    for child in element:
        yield from _texts(child, walk, depth + 1)
        yield plain(child.tail)


def _rows(table: Any, walk: Walk, depth: int) -> Iterator[str]:
    def text_of(cell: Any) -> str:
        if is_hidden(cell, walk.rules):
            walk.hidden.append(SPACES.sub(" ", cell.text_content()).strip())
            return ""
        return SPACES.sub(" ", "".join(_inner(cell, walk, depth + 1))).strip()

    caption = table.find("caption")
    if caption is not None:
        yield text_of(caption)
    grid = list(rows_of(table, text_of))
    heads = head_rows_of(table)
    yield from lines_of(grid, heads if heads < len(grid) else 0)


def _link(element: Any, text: str, walk: Walk) -> str:
    address = (element.get("href") or "").strip()
    shown = SPACES.sub(" ", text).strip()
    if not re.match(r"(?:https?|mailto|tel):", address, re.IGNORECASE) or len(address) > 2000:
        return text
    walk.links.append({"text": shown or address, "url": address})
    plain = re.sub(r"^(?:mailto|tel):", "", address, flags=re.IGNORECASE)
    return text if not shown or plain.rstrip("/") in shown or shown in plain else f"{text.rstrip()} ({plain})"


def _tidied(text: str) -> str:
    return BLANK_LINES.sub("\n\n", normalise_characters(text)).strip("\n ")


def _sections(text: str, walk: Walk) -> Iterator[Section]:
    position = 0
    for level, title, wanted in walk.headings:
        found = text.find(wanted, position)
        if found >= 0:
            yield Section(title=title[:200], level=level, page=1, start=found)
            position = found + len(wanted)


def _shortened(text: str, longest: int = 120) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
