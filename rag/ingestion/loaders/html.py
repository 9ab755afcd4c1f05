"""Load HTML posts of notice boards as text, without editors' markup, hidden text and page furniture; tables as rows.

lxml reads them: its parser takes whatever editors write, is the one python-docx needs as well, and never fetches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import lxml.html
from lxml import etree

from rag.errors import FileEmpty
from rag.ingestion.loaders import DEFAULT_OPTIONS, ExtractedDocument, LoadOptions
from rag.ingestion.loaders.notice_date import backdated_at_from
from rag.ingestion.loaders.page_text import normalise_characters
from rag.ingestion.loaders.text import decode
from rag.ingestion.tables import lines_of
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
    """Gathers text, headings, links and hidden text on the way through the document."""

    rules: StyleRules
    parts: list[str] = field(default_factory=list)
    headings: list[tuple[int, str, str]] = field(default_factory=list)
    links: list[dict[str, str]] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)


def load_html(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load a post with its sections; `metadata` has `links` (text, url) and `backdated_at` where there are any.

    Raises `FileEmpty` when there is nothing that could be read.
    """
    source, _ = decode(content)
    tree, is_whole = parsed(source)
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
    return ExtractedDocument(
        pages=(Page(number=1, text=text, method="text" if text else "none", warnings=tuple(warnings)),),
        sections=tuple(_sections(text, walk)),
        title=title,
        language=(tree.get("lang") or "")[:2].lower(),
        metadata=metadata,
    )


def parsed(source: str) -> tuple[Any, bool]:
    """Parse the document; tell whether all of it was read."""
    # A declared encoding would be taken for that of the text, which has none any more.
    source = re.sub(r"^\s*<\?xml[^>]*\?>", "", source.replace("\0", ""))
    # Word's conditional comments: between them is the text for other programs.
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


#: Spaces are taken once and not given back: two runs of them beside each other would try every way to share them.
HIDDEN = re.compile(
    r"display\s*+:\s*+none|visibility\s*+:\s*+(?:hidden|collapse)|mso-hide\s*+:\s*+all|opacity\s*+:\s*+0(?:\.0+)?\s*+(?:;|!|$)"
    r"|font-size\s*+:\s*+(?:0(?:\.\d+)?|1(?:\.0)?)\s*+(?:px|pt|em|%)?\s*+(?:;|!|$)"
    r"|(?:left|top|text-indent|margin-left)\s*+:\s*+-\d{4,}(?:\.\d+)?\s*+(?:px|pt|em)"
    r"|clip\s*+:\s*+rect\(\s*+0(?:px)?[\s,]+0(?:px)?[\s,]+0(?:px)?[\s,]+0(?:px)?\s*+\)|clip-path\s*+:\s*+inset\(\s*+(?:50|100)%",
    re.IGNORECASE,
)
NO_SIZE = re.compile(r"(?<![-\w])(?:max-)?(?:height|width)\s*+:\s*+0(?:px|pt|em|%)?\s*+(?:;|!|$)", re.IGNORECASE)
CLIPPED = re.compile(r"overflow\s*+:\s*+hidden", re.IGNORECASE)
COLOUR = re.compile(r"(?<![-\w])color\s*+:\s*+(?P<colour>#[0-9a-f]{3,6}\b|rgba?\([^)]{0,80}\)|[a-z]+)", re.IGNORECASE)
BACKGROUND = re.compile(r"background(?:-color)?\s*+:", re.IGNORECASE)
#: Matches only from the end of the previous rule, so that text without braces is scanned once.
RULE = re.compile(r"(?:\A|(?<=[{}]))(?P<selectors>[^{}]++)\{(?P<style>[^{}]*+)\}")
COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
SIMPLE = re.compile(r"(?P<tag>[a-z][a-z0-9]*)?(?P<mark>[.#])(?P<name>[\w-]+)", re.IGNORECASE)
#: A style sheet is read so far, in characters.
STYLES_LOOKED_AT = 200_000
#: An element's classes are read so far, in characters.
LONGEST_CLASSES = 4_000
#: After every rule of a style sheet.
OWN_STYLE = 1_000_000_000
#: From here on every part of a colour is as good as white, of 255.
WHITE_PART = 245
#: Where HWP's editor for boards keeps its own form of the document, which is no text.
MACHINE_IDS = frozenset({"hwpeditorboardcontent"})


@dataclass(frozen=True)
class Look:
    """The styles that may hide an element."""

    is_hidden: bool = False
    has_no_size: bool = False
    is_cut_off: bool = False
    has_background: bool = False
    #: The last colour said, and where in the document.
    colour: tuple[int, str] = (-1, "")

    def __or__(self, other: Look) -> Look:
        return Look(
            self.is_hidden or other.is_hidden,
            self.has_no_size or other.has_no_size,
            self.is_cut_off or other.is_cut_off,
            self.has_background or other.has_background,
            max(self.colour, other.colour),
        )


PLAIN = Look()


def look_of(style: str, place: int = 0) -> Look:
    """Read one style. `place` orders it among others."""
    if not style:
        return PLAIN
    colours = COLOUR.findall(style)
    return Look(
        bool(HIDDEN.search(style)),
        bool(NO_SIZE.search(style)),
        bool(CLIPPED.search(style)),
        bool(BACKGROUND.search(style)),
        (place, colours[-1]) if colours else PLAIN.colour,
    )


@dataclass(frozen=True)
class StyleRules:
    """The rules of the post's own style sheets, by kind of element or "", "." or "#", and class or id.

    Rules for one class are taken together once, so that reading takes no longer for every element there is.
    """

    by_mark: Mapping[tuple[str, str, str], Look] = field(default_factory=dict)
    #: Whether something is behind an element, for elements looked at so far.
    backgrounds: dict[Any, bool] = field(default_factory=dict)

    def look_of(self, element: Any) -> Look:
        """Apply the rules to an element, and its own style after them."""
        look = look_of(element.get("style") or "", OWN_STYLE)
        if not self.by_mark:
            return look
        classes = (element.get("class") or "")[:LONGEST_CLASSES].lower().split()
        marks = [(".", name) for name in classes] + [("#", (element.get("id") or "").lower())]
        for mark, name in marks:
            for tag in ("", element.tag):
                look |= self.by_mark.get((tag, mark, name), PLAIN)
        return look


def style_rules(tree: Any) -> StyleRules:
    """Return the rules of a document that could hide something."""
    sheets = COMMENT.sub("", "\n".join(sheet.text or "" for sheet in tree.iter("style"))[:STYLES_LOOKED_AT])
    found: dict[tuple[str, str, str], Look] = {}
    for place, rule in enumerate(RULE.finditer(sheets)):
        look = look_of(rule["style"].strip(), place)
        if look == PLAIN:
            continue
        for selector in rule["selectors"].split(","):
            simple = SIMPLE.fullmatch(selector.strip())
            if simple is not None:
                key = ((simple["tag"] or "").lower(), simple["mark"], simple["name"].lower())
                found[key] = found.get(key, PLAIN) | look
    return StyleRules(found)


def is_machine_data(element: Any) -> bool:
    """Tell whether an editor keeps data of its own here, which is not shown."""
    return (element.get("id") or "").lower() in MACHINE_IDS and element.text_content().lstrip().startswith("{")


def is_hidden(element: Any, rules: StyleRules) -> bool:
    """Tell whether a reader does not see an element."""
    if element.get("hidden") is not None or (element.get("aria-hidden") == "true" and element.tag != "svg"):
        return True
    look = rules.look_of(element)
    if look.is_hidden or (look.has_no_size and look.is_cut_off):
        return True
    named = look.colour[1] or (element.get("color") or "")
    return bool(named) and is_white(named) and not _has_background(element, rules)


def is_white(colour: str) -> bool:
    """Tell whether letters of this colour are invisible on white paper."""
    colour = colour.strip().lower()
    if colour in ("white", "transparent", "snow", "ghostwhite"):
        return True
    if colour.startswith("rgb"):
        parts = [part for part in re.split(r"[\s,/()]+", colour.partition("(")[2]) if part]
        try:
            values = [float(part.rstrip("%")) * (2.55 if part.endswith("%") else 1) for part in parts[:3]]
            alpha = float(parts[3].rstrip("%")) if len(parts) > 3 else 1.0
        except ValueError:
            return False
        return alpha == 0 or (len(values) == 3 and min(values) >= WHITE_PART)
    digits = colour.removeprefix("#")
    if not re.fullmatch(r"[0-9a-f]{3}|[0-9a-f]{6}", digits):
        return False
    whole = digits if len(digits) == 6 else "".join(digit * 2 for digit in digits)
    return min(int(whole[place : place + 2], 16) for place in (0, 2, 4)) >= WHITE_PART


def _has_background(element: Any, rules: StyleRules) -> bool:
    """Tell whether something dark is behind white letters, so that they can be read: mostly a table's header row."""
    asked = []
    found = False
    while element is not None and not found:
        if element in rules.backgrounds:
            found = rules.backgrounds[element]
            break
        asked.append(element)
        found = bool(element.get("bgcolor") or element.get("background") or rules.look_of(element).has_background)
        element = element.getparent()
    # Those asked on the way have the same answer: it is that of what they are in.
    rules.backgrounds.update(dict.fromkeys(asked, found))
    return found


#: More than this no table spans; the numbers are the page's and could ask for any amount of time.
WIDEST, TALLEST = 200, 1000


def rows_of(table: Any, text_of: Callable[[Any], str]) -> Iterator[list[str | None]]:
    """Yield the rows of a table as their cells' texts from left to right, so that every row can be read by itself.

    A cell over several columns is followed by None for each further one.
    """
    # By column: the text of a cell that reaches into the rows to come, and into how many.
    reaching: dict[int, tuple[str | None, int]] = {}
    for row in _rows_in(table):
        own = [cell for cell in row if cell.tag in ("td", "th")]
        last = min(max(reaching, default=-1), WIDEST)
        cells: list[str | None] = []
        following: dict[int, tuple[str | None, int]] = {}
        index = column = 0
        while index < len(own) or column <= last:
            text: str | None
            if column in reaching:
                text, rows = reaching[column]
                across = 1
            elif index < len(own):
                text, rows = text_of(own[index]), _span(own[index].get("rowspan"), TALLEST)
                across = _span(own[index].get("colspan"), WIDEST)
                index += 1
            else:
                column += 1
                continue
            for place in range(across):
                cells.append(None if place else text)
                if rows > 1:
                    following[column + place] = (None if place else text, rows - 1)
            column += across
        reaching = following
        yield cells


def head_rows_of(table: Any) -> int:
    """Count the first rows that name the columns: rows in `thead`, or of several `th` and nothing else."""
    count = 0
    for row in _rows_in(table):
        cells = [cell.tag for cell in row if cell.tag in ("td", "th")]
        if row.getparent().tag != "thead" and ("td" in cells or len(cells) < 2):
            break
        count += 1
    return count


def _rows_in(table: Any) -> Iterator[Any]:
    """Yield the rows of this table, not of tables within it."""
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child if row.tag == "tr")


def _span(value: str | None, most: int) -> int:
    try:
        return min(max(int(value or 1), 1), most)
    except ValueError:
        return 1
