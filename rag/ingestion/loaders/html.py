"""Load the text in HTML posts from notice boards, with tables in rows. Markup, hidden text and navigation are left out.

lxml parses the posts, because lxml accepts anything which editors write, and never fetches. The visible text is counted
again and compared with the result, and a page's warnings name unread text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import lxml.html
from lxml import etree

from rag.errors import FileEmpty
from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.decoding import decoded
from rag.ingestion.loaders.html_styles import StyleRules, is_hidden, is_machine_data, is_struck, shift_of, style_rules
from rag.ingestion.loaders.page_text import STRUCK_TEXT, UNREAD_TEXT, letters_in, shortened
from rag.ingestion.loaders.raised import FOREIGN, Notes, bare, lowered_part, notes_below, raised_part, small
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, ExtractedDocument, LoadOptions
from rag.ingestion.loaders.word.numbering import formatted
from rag.text.dates import backdated_at_from
from rag.text.tables import lines_of, rows_in_words
from rag.types import Page, Section

#: Elements without text: programs, styles, drawings, and internal data from Word and HWP.
DROPPED = frozenset({
    "script", "style", "head", "template", "noscript", "iframe", "object", "embed", "svg", "canvas", "audio",
    "video", "button", "datalist", "map", "area", "xml", "v:shape", "v:shapetype", "v:imagedata", "meta", "link",
    "base", "nav", "rt", "rp",
})  # fmt: skip
BLOCKS = frozenset({
    "p", "div", "section", "article", "header", "footer", "main", "aside", "ul", "ol", "dl", "dt", "dd", "blockquote",
    "pre", "caption", "figure", "figcaption", "address", "fieldset", "form", "hr", "center", "details", "summary",
})  # fmt: skip
#: Elements within a line, which styles may raise or lower.
SHIFTED = frozenset({"span", "a", "font", "small", "big", "b", "strong", "i", "em", "u"})
#: Blocks with a blank line before and after.
PARAGRAPHS = frozenset({"p", "ul", "ol", "blockquote", "pre"})
HEADINGS = {f"h{level}": level for level in range(1, 7)}
#: Elements which may hold a note.
NOTE_BLOCKS = frozenset({"li", "p", "div", "aside", "dd", "td", "section"})
#: Inputs with a visible value.
VALUED = frozenset(
    {"", "text", "email", "number", "date", "time", "datetime-local", "month", "week", "tel", "url", "search"}
)
NUMBER_FORMS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
LIST_STYLES = {
    "lower-alpha": "lowerLetter", "lower-latin": "lowerLetter", "upper-alpha": "upperLetter",
    "upper-latin": "upperLetter", "lower-roman": "lowerRoman", "upper-roman": "upperRoman",
    "decimal-leading-zero": "decimalZero",
}  # fmt: skip
LIST_STYLE = re.compile(r"list-style(?:-type)?\s*+:\s*+([a-z-]+)", re.IGNORECASE)
SPACES = re.compile(r"[ \t\r\n\f\u00a0\u200b]+")
BLANK_LINES = re.compile(r"\n{3,}")
HIDDEN_TEXT = "Text that a reader does not see was left out: “{text}”."
CUT_OFF = "Part of this file is nested too deeply to be read and was left out."
#: No editor nests deeper than this; a deeper file was made to break readers.
DEEPEST = 250
#: Characters quoted from struck text.
LONGEST_QUOTED = 200
#: A longer note stays in its place.
LONGEST_NOTE = 300
#: A table arranges the page if its longest cell has this many characters and half of all text.
LAYOUT_CHARACTERS = 300


@dataclass
class Walk:
    """Collects text, headings, links and hidden text while the document's elements are visited in order."""

    rules: StyleRules
    parts: list[str] = field(default_factory=list)
    headings: list[tuple[int, str, str]] = field(default_factory=list)
    links: list[dict[str, str]] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)
    #: Letters left out on purpose.
    left_out: Counter[str] = field(default_factory=Counter)
    notes: Notes = field(default_factory=Notes)
    #: The text of notes written beside their marks, by id, and the notes' elements.
    notes_by_id: dict[str, str] = field(default_factory=dict)
    note_elements: set[Any] = field(default_factory=set)
    #: How often each note was referred to.
    referred: Counter[str] = field(default_factory=Counter)
    #: The last number used in each numbered list.
    numbers: dict[Any, int] = field(default_factory=dict)
    #: How many tables enclose the current position.
    cells: int = 0

    def leave(self, element: Any, *, but: str = "") -> None:
        self.left_out.update(letters_in(read_text(element)))
        self.left_out.subtract(letters_in(but))


def load_html(content: bytes, options: LoadOptions = DEFAULT_OPTIONS, *, styles: str = "") -> ExtractedDocument:
    """Load a post with sections. `metadata` may have `links` (text, url) and `backdated_at`.

    `styles` is the text of separate style sheets. Raises `FileEmpty` for a post without text.
    """
    source = decoded(content)
    tree, is_complete = parsed(FOREIGN.sub("", source.text))
    walk = Walk(rules=style_rules(tree, styles))
    _find_notes(tree, walk)
    walk.parts.extend(_texts(tree, walk, 0))
    if unused := walk.notes_by_id.keys() - walk.referred.keys():
        # The marks of these notes are not shown, so the notes stay in their places.
        walk = Walk(rules=walk.rules)
        _find_notes(tree, walk, unused)
        walk.parts.extend(_texts(tree, walk, 0))
    text = _tidy(notes_below(_tidy("".join(walk.parts)), walk.notes))
    metadata: dict[str, Any] = {}
    if walk.links:
        metadata["links"] = walk.links
    if (date := backdated_at_from(text)) is not None:
        metadata["backdated_at"] = date.isoformat()
    title = SPACES.sub(" ", tree.findtext(".//title") or "").strip()
    warnings = [*source.warnings, *_warnings(tree, walk, text)]
    if not is_complete:
        warnings.append(CUT_OFF)
    return ExtractedDocument(
        pages=(Page(number=1, text=text, method="text" if text else "none", warnings=tuple(warnings)),),
        sections=tuple(_sections(text, walk)),
        title=title,
        language=(tree.get("lang") or "")[:2].lower(),
        metadata=metadata,
    )


def _warnings(tree: Any, walk: Walk, text: str) -> Iterator[str]:
    if walk.hidden:
        yield HIDDEN_TEXT.format(text=shortened(" ".join(walk.hidden)))
    if struck := " ".join(walk.struck):
        yield STRUCK_TEXT.format(text=shortened(struck))
    there = Counter(letters_in(read_text(tree)))
    there.subtract(walk.left_out)
    there.subtract(letters_in(text))
    missing = sum((+there).values())
    if missing:
        yield UNREAD_TEXT[missing > 1].format(count=f"{missing:,}")


def read_text(element: Any) -> str:
    """Return all text in an element, except in elements which show no text (scripts, styles)."""
    if element.tag in DROPPED or not isinstance(element.tag, str):
        return ""
    parts: list[str] = []
    dropped = None
    for event, at in etree.iterwalk(element, events=("start", "end")):
        if dropped is None:
            if event == "start" and (at.tag in DROPPED or not isinstance(at.tag, str)):
                dropped = at
            elif event == "start":
                parts.append(at.text or "")
        elif event == "end" and at is dropped:
            dropped = None
        if event == "end" and at is not element and dropped is None:
            parts.append(at.tail or "")
    return "".join(parts)


def parsed(source: str) -> tuple[Any, bool]:
    """Parse the document. Also returns whether all text was parsed."""
    # A declared encoding would be applied to the text, which is already decoded.
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
    if is_machine_data(element) or element in walk.note_elements:
        walk.leave(element)
        return
    if is_hidden(element, walk.rules):
        walk.leave(element)
        if hidden := SPACES.sub(" ", element.text_content()).strip():
            walk.hidden.append(hidden)
        return
    if is_struck(element, walk.rules):
        walk.leave(element)
        if sum(map(len, walk.struck)) < LONGEST_QUOTED:
            walk.struck.append(SPACES.sub(" ", element.text_content()).strip())
        return
    if tag in OWN_FORMS:
        yield OWN_FORMS[tag](element, walk)
        return
    if tag == "table":
        yield from _table(element, walk, depth)
        return
    if (note := _footnote_placeholder(element, walk)) is not None:
        yield note
        return
    inner = _inner(element, walk, depth, keep_lines=tag == "pre")
    shift = tag if tag in ("sup", "sub") else shift_of(element, walk.rules) if tag in SHIFTED else ""
    if shift:
        yield (raised_part if shift == "sup" else lowered_part)("".join(inner))
    elif tag == "a":
        yield _link(element, "".join(inner), walk)
    elif tag in HEADINGS:
        heading = notes_below(normalise_characters("".join(inner)), walk.notes, is_in_place=True)
        title = SPACES.sub(" ", heading).strip()
        if title:
            walk.headings.append((HEADINGS[tag], title, title))
        yield f"\n\n{title}\n\n"
    elif tag == "li":
        label = _item_label(element, walk)
        yield f"\n{label}" + "".join(inner).strip()
    elif tag in BLOCKS:
        yield "\n\n" if tag in PARAGRAPHS else "\n"
        yield from inner
        yield "\n\n" if tag in PARAGRAPHS else "\n"
    else:
        yield from inner


def _picture(element: Any, walk: Walk) -> str:
    return f" {element.get('alt')} " if (element.get("alt") or "").strip() else ""


def _input(element: Any, walk: Walk) -> str:
    kind = (element.get("type") or "").lower()
    is_chosen = element.get("checked") is not None
    if kind == "checkbox":
        return "☒ " if is_chosen else "☐ "
    if kind == "radio":
        return "◉ " if is_chosen else "○ "
    return f" {element.get('value')} " if kind in VALUED and element.get("value") else ""


def _chosen_options(element: Any, walk: Walk) -> str:
    """Return a `select` element's chosen options. In a drop-down, the first option is the default.

    A list box gives all visible options, each with a tick box.
    """
    options = list(element.iter("option"))
    chosen = [option for option in options if option.get("selected") is not None]
    is_multiple, size = element.get("multiple") is not None, element.get("size") or ""
    is_open = is_multiple or (size.isdecimal() and int(size) > 1)
    if not is_multiple:
        can_be = [] if is_open else [option for option in options if option.get("disabled") is None]
        chosen = chosen[-1:] or can_be[:1]
    if is_open:
        visible = [option for option in options if option.get("hidden") is None]
        text = " ".join(f"{'☒' if option in chosen else '☐'} {_option_text(option)}" for option in visible)
    else:
        text = ", ".join(map(_option_text, chosen))
    walk.leave(element, but=text)
    return f" {text} "


def _option_text(option: Any) -> str:
    return SPACES.sub(" ", option.get("label") or option.text_content()).strip()


def _formula(element: Any, walk: Walk) -> str:
    text = SPACES.sub(" ", linear_formula(element)).strip()
    walk.leave(element, but=text)
    return f" {text} " if element.get("display") == "block" else text


def linear_formula(element: Any, depth: int = 0) -> str:
    """Write MathML on one line: (a+b)/c, x^2, √(x)."""
    tag = str(element.tag).rpartition("}")[2]
    if depth > DEEPEST or tag in ("annotation", "annotation-xml"):
        return ""
    if not len(element):
        return (element.text or "").strip()
    parts = [linear_formula(child, depth + 1) for child in element]
    closed = [part if len(part) < 2 or part.isalnum() else f"({part})" for part in parts]
    match tag, len(parts):
        case "mfrac", 2:
            return f"{closed[0]}/{closed[1]}"
        case (("msup" | "mover"), 2):
            return f"{parts[0]}^{closed[1]}"
        case (("msub" | "munder"), 2):
            return f"{parts[0]}_{closed[1]}"
        case (("msubsup" | "munderover"), 3):
            return f"{parts[0]}_{closed[1]}^{closed[2]}"
        case "msqrt", _:
            return f"√({''.join(parts)})"
        case "mroot", 2:
            return f"{closed[1]}√({parts[0]})"
        case "mtr", _:
            return ", ".join(parts)
        case "mtable", _:
            return "; ".join(parts)
    return "".join(parts)


OWN_FORMS: dict[str, Callable[[Any, Walk], str]] = {
    "br": lambda element, walk: "\n",
    "img": _picture,
    "input": _input,
    "select": _chosen_options,
    "math": _formula,
}


def _item_label(item: Any, walk: Walk) -> str:
    around = item.getparent()
    form = _number_form(around)
    if not form:
        return "- "
    if around not in walk.numbers:
        walk.numbers[around] = _integer(around.get("start"), 1) - 1
    walk.numbers[around] = _integer(item.get("value"), walk.numbers[around] + 1)
    return f"{formatted(walk.numbers[around], form)}. "


def _number_form(around: Any) -> str:
    if around is None or around.tag != "ol" or around.get("reversed") is not None:
        return ""
    if match := LIST_STYLE.search(around.get("style") or ""):
        style = match[1].lower()
        return LIST_STYLES.get(style, "" if style in ("none", "disc", "circle", "square") else "decimal")
    return NUMBER_FORMS.get(around.get("type") or "", "decimal")


def _integer(value: str | None, usual: int) -> int:
    try:
        return min(max(int(value or usual), -1_000_000), 1_000_000)
    except ValueError:
        return usual


def _inner(element: Any, walk: Walk, depth: int, *, keep_lines: bool = False) -> Iterator[str]:
    def plain(text: str | None) -> str:
        return (text or "") if keep_lines else SPACES.sub(" ", text or "")

    yield plain(element.text)
    for child in element:
        yield from _texts(child, walk, depth + 1)
        yield plain(child.tail)


# Notes


def _find_notes(tree: Any, walk: Walk, unused: Set[str] = frozenset()) -> None:
    """Store short footnotes in `walk` by id, to be inserted into the sentences which refer to them.

    Footnotes with an id in `unused` are skipped.
    """
    targets: dict[str, Any] = {}
    for element in tree.iter(etree.Element):
        for name in (element.get("id"), element.get("name") if element.tag == "a" else None):
            if name:
                targets.setdefault(name, element)
    # A note links back to its mark, so the first link is the mark.
    handled = set(unused)
    for link in tree.iter("a"):
        name = (link.get("href") or "")[1:]
        target = targets.get(name) if name not in handled and is_mark(link) else None
        around = [link, *link.iterancestors()]
        if target is None or any(at in walk.note_elements for at in around):
            continue
        handled.add(name)
        while target is not None and target.tag not in NOTE_BLOCKS:
            target = target.getparent()
        if target is None or target in around or target in walk.note_elements or not is_note(target, walk.rules):
            continue
        text = SPACES.sub(" ", "".join(_note_text(target))).strip()
        # The note's text may begin with a number, too.
        if (mark := MARK_BEFORE.match(text)) and bare(mark[0]) == bare(link.text_content()):
            text = text[mark.end() :]
        if 0 < len(text) <= LONGEST_NOTE:
            walk.notes_by_id[name] = text
            walk.note_elements.add(target)


NOT_IN_NOTES = frozenset({"table", "img", "h1", "h2", "h3", "h4", "h5", "h6", "input", "select", "math"})
#: The most elements in a note.
MOST_IN_NOTE = 60
#: The most marks a note is written beside.
MOST_REFERRED = 10
#: A mark at the start of a note.
MARK_BEFORE = re.compile(r"^(?:\[?\d{1,3}\]?[.)]?|[*†‡§]{1,3})\s+")
BACK = re.compile(r"[\s↩↑^\ufe0e\ufe0f⏎🔙]*")
NOTE_MARK = re.compile(r"\[?(?:\d{1,3}|[a-z]|[ivxl]{1,6}|[*†‡§]{1,3})\]?", re.IGNORECASE)
NOTE_NAME = re.compile(r"footnote|endnote|noteref|_ftn|_edn|cite_note")


def is_note(element: Any, rules: StyleRules) -> bool:
    """Whether an element may be a footnote: few child elements, and only visible text."""
    parts = list(islice(element.iter(etree.Element), MOST_IN_NOTE))
    if len(parts) == MOST_IN_NOTE or any(part.tag in NOT_IN_NOTES or part.tag in DROPPED for part in parts):
        return False
    return not any(is_hidden(part, rules) or is_struck(part, rules) for part in (*parts, *element.iterancestors()))


def _note_text(element: Any) -> Iterator[str]:
    link_text = element.text_content().strip() if element.tag in ("a", "sup") else None
    if link_text is not None and (NOTE_MARK.fullmatch(link_text) or BACK.fullmatch(link_text)):
        return
    yield element.text or ""
    for child in element:
        yield from _note_text(child)
        yield child.tail or ""
    if element.tag in BLOCKS:
        yield " "


def is_mark(link: Any) -> bool:
    """Whether a link is a footnote reference: superscript, or with a class, role or address which says so."""
    if not (link.get("href") or "").startswith("#") or not NOTE_MARK.fullmatch(link.text_content().strip()):
        return False
    named = " ".join(link.get(name) or "" for name in ("class", "role", "epub:type", "href"))
    around = link.getparent()
    is_raised = link.find(".//sup") is not None or (around is not None and around.tag == "sup")
    return is_raised or NOTE_NAME.search(named) is not None


def _footnote_placeholder(element: Any, walk: Walk) -> str | None:
    if element.tag not in ("a", "sup"):
        return None
    links = [element] if element.tag == "a" else element.findall("a")
    if len(links) != 1 or not is_mark(links[0]) or element.text_content().strip() != links[0].text_content().strip():
        return None
    name = (links[0].get("href") or "")[1:]
    mark = links[0].text_content().strip().strip("[]")
    text = walk.notes_by_id.get(name, "")
    walk.leave(element)
    walk.referred[name] += 1
    text = text if walk.referred[name] <= MOST_REFERRED else ""
    if not text and not any(part.tag == "sup" for part in (element, *element.iter())):
        # A link marked by attributes without a raised mark is a link back, inside the note.
        return f"{small(mark)} "
    return walk.notes.refer(small(mark), text)


# Tables


def _table(table: Any, walk: Walk, depth: int) -> Iterator[str]:
    if not walk.cells and is_layout(table):
        caption = table.find("caption")
        yield from () if caption is None else _texts(caption, walk, depth + 1)
        for row in _rows_in(table):
            for cell in row:
                if cell.tag in ("td", "th"):
                    yield "\n"
                    yield from _texts(cell, walk, depth + 1)
                    yield "\n"
        return
    lines = list(_rows(table, walk, depth))
    yield " " + "; ".join(rows_in_words(lines)) + " " if walk.cells else "\n\n" + "\n".join(lines) + "\n\n"


def is_layout(table: Any) -> bool:
    """Whether a table is only used for layout: the role, the column count, and blocks in cells decide."""
    if (table.get("role") or "").lower() in ("presentation", "none"):
        return True
    rows = [[cell for cell in row if cell.tag in ("td", "th")] for row in _rows_in(table)]
    cells = [cell for row in rows for cell in row]
    if any(cell.tag == "th" for cell in cells) or table.find("caption") is not None:
        return False
    if max(map(len, rows), default=0) <= 1:
        return True
    if any(next(cell.iter(*HEADINGS), None) is not None for cell in cells):
        return True
    has_blocks = any(next(cell.iter("table", "ul", "ol", "dl", "form", "hr"), None) is not None for cell in cells)
    has_paragraphs = any(len(list(cell.iter("p", "div"))) > 2 for cell in cells)
    if len(rows) == 1:
        return has_blocks or has_paragraphs
    if not any(next(cell.iter("table"), None) is not None for cell in cells):
        return False
    sizes = [len("".join(cell.itertext())) for cell in cells]
    return max(sizes) > LAYOUT_CHARACTERS and 2 * max(sizes) > sum(sizes)


def _rows(table: Any, walk: Walk, depth: int) -> Iterator[str]:
    def text_of(cell: Any) -> str:
        walk.cells += 1
        text = "".join(_texts(cell, walk, depth + 1))
        walk.cells -= 1
        return SPACES.sub(" ", notes_below(SPACES.sub(" ", text), walk.notes, is_in_place=True)).strip()

    caption = table.find("caption")
    if caption is not None:
        yield text_of(caption)
    grid = list(rows_of(table, text_of))
    heads = head_rows_of(table)
    yield from lines_of(grid, heads if heads < len(grid) else 0)


def _link(element: Any, text: str, walk: Walk) -> str:
    address = (element.get("href") or "").strip()
    link_text = SPACES.sub(" ", text).strip()
    if not re.match(r"(?:https?|mailto|tel):", address, re.IGNORECASE) or len(address) > 2000:
        return text
    walk.links.append({"text": link_text or address, "url": address})
    plain = re.sub(r"^(?:mailto|tel):", "", address, flags=re.IGNORECASE)
    return (
        text if not link_text or plain.rstrip("/") in link_text or link_text in plain else f"{text.rstrip()} ({plain})"
    )


def _tidy(text: str) -> str:
    return BLANK_LINES.sub("\n\n", normalise_characters(text)).strip("\n ")


def _sections(text: str, walk: Walk) -> Iterator[Section]:
    position = 0
    for level, title, heading in walk.headings:
        start = text.find(heading, position)
        if start >= 0:
            yield Section(title=title[:200], level=level, page=1, start=start)
            position = start + len(heading)


#: Real tables do not span more; the page chooses these numbers and could waste any amount of time.
WIDEST, TALLEST = 200, 1000


def rows_of(table: Any, text_of: Callable[[Any], str]) -> Iterator[list[str | None]]:
    """Yield a table's rows, each with the cells' texts from left to right.

    A cell over several rows is repeated in each row. A cell over several columns is followed by `None` for each further
    column.
    """
    # By column: the text of a cell reaching into later rows, and the number of these rows.
    reaching: dict[int, tuple[str | None, int]] = {}
    for row in _rows_in(table):
        row_cells = [cell for cell in row if cell.tag in ("td", "th")]
        last_column = min(max(reaching, default=-1), WIDEST)
        cells: list[str | None] = []
        following: dict[int, tuple[str | None, int]] = {}
        index = column = 0
        while index < len(row_cells) or column <= last_column:
            text: str | None
            if column in reaching:
                text, rows = reaching[column]
                across = 1
            elif index < len(row_cells):
                text, rows = text_of(row_cells[index]), _span(row_cells[index].get("rowspan"), TALLEST)
                across = _span(row_cells[index].get("colspan"), WIDEST)
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
    """Count the header rows at the start: rows in `thead`, or rows with only `th` cells, at least two."""
    count = 0
    for row in _rows_in(table):
        cells = [cell.tag for cell in row if cell.tag in ("td", "th")]
        if row.getparent().tag != "thead" and ("td" in cells or len(cells) < 2):
            break
        count += 1
    return count


def _rows_in(table: Any) -> Iterator[Any]:
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
