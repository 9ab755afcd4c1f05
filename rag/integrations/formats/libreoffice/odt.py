"""Load text documents from LibreOffice (.odt): the visible text in order, with headings as sections.

Tracked changes are read as if accepted. The text is read twice: the visible text for the
result, then all text, to count what the result leaves out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rag.errors import FileDamaged
from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.docx import joined_lines
from rag.ingestion.loaders.drawing import local_name
from rag.ingestion.loaders.html import linear_formula
from rag.ingestion.loaders.office_package import guarded
from rag.ingestion.loaders.page_text import STRUCK_TEXT, UNREAD_TEXT, letters_in, shortened
from rag.ingestion.loaders.raised import FOREIGN, LOOKED_AT, Notes, lowered, raised, small
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, LoadOptions
from rag.ingestion.loaders.word.numbering import formatted
from rag.ingestion.loaders.word.story import LONGEST_REPEATED, WIDEST, Line
from rag.integrations.formats.libreoffice.open_document import (
    MATH,
    OFFICE,
    STYLE,
    TABLE,
    TEXT,
    XLINK,
    OpenDocument,
    is_large,
    is_struck,
    place_of,
    require_open_document,
)
from rag.text.tables import guessed_head_rows, lines_of
from rag.types import Page

HIDDEN_TEXT = "Text that is hidden in the document was left out: {characters} characters."
#: Content the walk counts without reading: singular and plural.
UNREAD = {
    "comments": ("1 comment was not read.", "{count} comments were not read."),
    "charts": ("1 chart was not read.", "{count} charts were not read."),
    "formulas": ("1 formula was not read.", "{count} formulas were not read."),
    "embedded": ("1 embedded file was not read.", "{count} embedded files were not read."),
    "fields": ("1 field of a form was not read.", "{count} fields of forms were not read."),
    "pictures": ("1 picture may contain text that was not read.",
                 "{count} pictures may contain text that was not read."),
    "text": UNREAD_TEXT,
}  # fmt: skip
#: Number forms, by Word's names.
FORMS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
#: Elements around blocks without an effect on the blocks.
AROUND = frozenset({
    "section", "index-body", "index-title", "table-of-content", "illustration-index", "table-index", "object-index",
    "user-index", "alphabetical-index", "bibliography", "text-box", "list-header",
})  # fmt: skip
#: Elements inside a paragraph whose text does not belong to it.
NO_TEXT = frozenset({
    "bookmark", "bookmark-start", "bookmark-end", "change", "change-start", "change-end", "soft-page-break",
    "reference-mark", "reference-mark-start", "reference-mark-end", "alphabetical-index-mark", "toc-mark", "ruby-text",
    "number",
    "toc-mark-start", "toc-mark-end", "annotation-end", "tracked-changes", "sequence-decls", "forms", "event-listeners",
    "index-title-template", "table-of-content-source",
})  # fmt: skip
#: Elements outside the text: deletions, comments, and descriptions of pictures and formulas.
OUTSIDE_TEXT = frozenset({"tracked-changes", "annotation", "sequence-decls", "forms", "title", "desc", "object"})
PAGE_FIELDS = frozenset({"page-number", "page-count"})
LONGEST_HEADING = 300
DEEPEST = 10


@dataclass(frozen=True)
class Look:
    """The properties of a style which matter for reading. A property which is `None` is inherited from the parent
    style.
    """

    parent: str = ""
    is_struck: bool | None = None
    is_hidden: bool | None = None
    position: str | None = None
    list_style: str = ""
    level: int = 0


@dataclass(frozen=True)
class ListLevel:
    """A list level: number format ("" for bullets), text before and after the number, and first number.

    `levels` is the number of levels shown: 2 for "3.1".
    """

    form: str
    before: str = ""
    after: str = ""
    levels: int = 1
    start: int = 1


def load_odt(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load a LibreOffice text document as a single page, with a line per table row.

    Raises `FileProtected` for a protected file, `FileTooLarge` for a file too large when unpacked, else `FileDamaged`.
    """
    require_open_document(content, options.limits)
    return guarded(lambda: _load_document(OpenDocument(content)))


def check_odt(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check that the file is a valid package. Raises the errors of `load_odt`."""
    require_open_document(content, options.limits)
    return CheckedFile(page_count=1)


def _load_document(package: OpenDocument) -> ExtractedDocument:
    root = package.root(package.main())
    body = next(root.iter(f"{OFFICE}text"), None)
    if body is None:
        raise FileDamaged
    styles = package.root("styles.xml")
    walk = _Walk(package)
    for part in (styles, root):
        if part is not None:
            walk.learn(part)
    lines = walk.blocks(body)
    above, below = walk.margins(styles)
    text, sections = joined_lines([*above, *lines, *below], walk.notes)
    properties = package.properties()
    there = letters_in("".join(_texts(body)))
    page = Page(
        number=1, text=text, method="text" if text.strip() else "none", warnings=tuple(walk.warnings(there, text))
    )
    return ExtractedDocument(
        pages=(page,),
        sections=sections,
        title=properties["title"],
        author=properties["creator"],
        language=properties["language"][:2].lower(),
    )


@dataclass
class _Walk:
    package: OpenDocument
    notes: Notes = field(default_factory=Notes)
    looks: dict[str, Look] = field(default_factory=dict)
    lists: dict[str, dict[int, ListLevel]] = field(default_factory=dict)
    unread: Counter[str] = field(default_factory=Counter)
    struck: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    _counts: dict[str, Counter[int]] = field(default_factory=dict)
    _below: list[Line] = field(default_factory=list)

    def learn(self, part: Any) -> None:
        """Store the styles which a part defines, by name."""
        for style in part.iter(f"{STYLE}style", f"{STYLE}default-style"):
            self.looks[style.get(f"{STYLE}name") or ""] = _look_of(style)
        for style in part.iter(f"{TEXT}list-style", f"{TEXT}outline-style"):
            name = "outline" if local_name(style) == "outline-style" else style.get(f"{STYLE}name") or ""
            self.lists[name] = {_integer(level.get(f"{TEXT}level"), 1): _list_level(level) for level in style}

    def warnings(self, there: str, text: str) -> Iterator[str]:
        """Yield warnings about omitted and unread content.

        `there` is all text in the document's body, and `text` is the text on the extracted page.
        """
        if hidden := sum(map(len, self.hidden)):
            yield HIDDEN_TEXT.format(characters=hidden)
        if struck := " ".join(" ".join(self.struck).split()):
            yield STRUCK_TEXT.format(text=shortened(struck))
        omitted = Counter(letters_in("".join([*self.hidden, *self.struck, *self.left_out])))
        self.unread["text"] = sum((Counter(there) - omitted - Counter(letters_in(text))).values())
        for kind, (singular, plural) in UNREAD.items():
            if (count := self.unread[kind]) > 0:
                yield singular if count == 1 else plural.format(count=f"{count:,}")

    def margins(self, styles: Any) -> tuple[list[Line], list[Line]]:
        """Return the lines in headers and in footers, without repetitions and page numbers."""
        above: dict[str, Line] = {}
        below: dict[str, Line] = {}
        for page in () if styles is None else styles.iter(f"{STYLE}master-page"):
            for margin in page:
                name = local_name(margin)
                if name.startswith(("header", "footer")) and margin.get(f"{STYLE}display") != "false":
                    place = above if name.startswith("header") else below
                    for line in self.blocks(margin):
                        if any(map(str.isalpha, line.text)):
                            place.setdefault(line.text, Line(line.text))
        return list(above.values()), list(below.values())

    # Blocks

    def blocks(self, container: Any, style: str = "", depth: int = 0) -> list[Line]:
        lines: list[Line] = []
        for element in container:
            name = local_name(element)
            if name in ("p", "h"):
                lines.extend(self._paragraph(element))
            elif name == "list":
                lines.extend(self._list(element, style, depth + 1))
            elif name == "table":
                lines.extend(self._table(element))
            elif name in AROUND:
                if element.get(f"{TEXT}display") == "none":
                    self.hidden.extend(_texts(element))
                else:
                    lines.extend(self.blocks(element, style, depth))
            elif element.tag.startswith("{") and "drawing" in element.tag:
                if formula := self._read_shape(element):
                    lines.append(Line(formula))
                lines.extend(self._take_below())
        return lines

    def _paragraph(self, paragraph: Any, label: str = "") -> list[Line]:
        style = paragraph.get(f"{TEXT}style-name") or ""
        text = normalise_characters(self._inline(paragraph, style)).strip()
        level = 0
        if local_name(paragraph) == "h" and 0 < len(text) <= LONGEST_HEADING:
            level = _integer(paragraph.get(f"{TEXT}outline-level"), 1)
            text = " ".join(text.split())
            label = label or (self._count_item("outline", level) if "outline" in self.lists else "")
        below = self._take_below()
        if not text:
            return below or [Line("")]
        return [Line(f"{label}{text}", level), *below]

    def _list(self, element: Any, above: str, depth: int) -> Iterator[Line]:
        style = element.get(f"{TEXT}style-name") or above
        continues = element.get(f"{TEXT}continue-numbering") == "true" or element.get(f"{TEXT}continue-list")
        if not continues:
            self._counts.setdefault(style, Counter())[depth] = 0
        for item in element:
            if local_name(item) == "list-header":
                yield from self.blocks(item, style, depth)
                continue
            label = self._count_item(style, depth, _integer(item.get(f"{TEXT}start-value"), 0))
            for part in item:
                name = local_name(part)
                if name in ("p", "h"):
                    yield from self._paragraph(part, label)
                    label = ""
                elif name != "number":
                    yield from self.blocks([part], style, depth)

    def _count_item(self, style: str, depth: int, start: int = 0) -> str:
        levels = self.lists.get(style, {})
        level = levels.get(depth)
        counts = self._counts.setdefault(style, Counter())
        for deeper in [other for other in counts if other > depth]:
            counts[deeper] = 0
        if level is None:
            return "" if style == "outline" else "- "
        counts[depth] = start or (counts[depth] + 1 if counts[depth] else level.start)
        if not level.form:
            return "" if style == "outline" else "- "
        depths = range(max(depth - level.levels + 1, 1), depth + 1)
        forms = ((other, levels.get(other, level)) for other in depths)
        numbers = [
            formatted(counts[other] or counted_level.start, FORMS.get(counted_level.form, "decimal"))
            for other, counted_level in forms
        ]
        return f"{level.before}{'.'.join(numbers)}{level.after} "

    def _table(self, table: Any) -> list[Line]:
        rows = [row for row in table.iter(f"{TABLE}table-row") if next(row.iterancestors(f"{TABLE}table")) is table]
        heads = sum(local_name(row.getparent()) == "table-header-rows" for row in rows)
        grid: list[list[str | None]] = []
        below: list[Line] = []
        deep: dict[int, tuple[int, str]] = {}
        for row in rows:
            cells: list[str | None] = []
            for cell in row:
                name = local_name(cell)
                if name not in ("table-cell", "covered-table-cell") or len(cells) >= WIDEST:
                    continue
                for _ in range(min(_integer(cell.get(f"{TABLE}number-columns-repeated"), 1), WIDEST)):
                    place = len(cells)
                    rows_below, text = deep.get(place, (0, ""))
                    if name == "covered-table-cell":
                        self.left_out.extend(_texts(cell))
                        cells.append(text if rows_below else None)
                        if rows_below:
                            deep[place] = (rows_below - 1, text)
                        continue
                    text = self._cell(cell, below)
                    down = _integer(cell.get(f"{TABLE}number-rows-spanned"), 1)
                    deep[place] = (down - 1, text if len(text) <= LONGEST_REPEATED else "")
                    cells.append(text)
            grid.append(cells)
        if len(grid) and max(map(len, grid)) <= 1:
            return [*(Line(cell) for row in grid for cell in row if cell), *below]
        if not 0 < heads < len(grid) or heads > 3:
            heads = guessed_head_rows(grid) if grid else 0
        return [*map(Line, lines_of(grid, heads)), *below]

    def _cell(self, cell: Any, below: list[Line]) -> str:
        parts: list[str] = []
        for part in cell:
            if local_name(part) == "table":
                below.extend(self._table(part))
            else:
                parts.extend(line.text for line in self.blocks([part]))
        return self.notes.in_place(" ".join(" ".join(parts).split()))

    # Inside a paragraph

    def _inline(self, element: Any, style: str, depth: int = 0) -> str:
        inline_text = self._visible_text("", element.text or "", style)
        for part in element:
            name = local_name(part)
            if name == "s":
                inline_text += " " * min(_integer(part.get(f"{TEXT}c"), 1), 20)
            elif name == "tab":
                inline_text += "\t"
            elif name == "line-break":
                inline_text += "\n"
            elif name == "note":
                inline_text += self._note(part)
            elif name == "annotation":
                self.unread["comments"] += 1
            elif name in ("hidden-text", "hidden-paragraph"):
                self.hidden.extend(_texts(part))
            elif name in PAGE_FIELDS and any(local_name(up) in MARGINS for up in part.iterancestors()):
                pass
            elif name in NO_TEXT:
                self.left_out.extend(_texts(part))
            elif "drawing" in str(part.tag):
                inline_text += self._read_shape(part)
            elif depth < 200:
                span_style = part.get(f"{TEXT}style-name") if name == "span" else None
                inline_text += self._inline_part(inline_text, part, span_style or style, depth)
            inline_text += self._visible_text(inline_text, part.tail or "", style)
        return inline_text

    def _inline_part(self, before: str, part: Any, style: str, depth: int) -> str:
        position = self._look_value(style, "position")
        text = self._inline(part, style, depth + 1)
        if not position or not text.strip():
            return text
        if position == "sub":
            return lowered(text)
        part_text, is_mark = raised(before[-LOOKED_AT:], text)
        return self.notes.refer(part_text) if is_mark and before.strip() else part_text

    def _visible_text(self, before: str, text: str, style: str) -> str:
        """Return the text, or "" if its style hides the text or strikes the text through."""
        if not text:
            return ""
        if self._look_value(style, "is_hidden"):
            self.hidden.append(text)
            return ""
        if self._look_value(style, "is_struck"):
            self.struck.append(text)
            return ""
        return FOREIGN.sub("", " ".join(text.split("\n")))

    def _look_value(self, style: str, name: str) -> Any:
        for _ in range(DEEPEST):
            look = self.looks.get(style)
            if look is None:
                return None
            if (look_value := getattr(look, name)) is not None:
                return look_value
            style = look.parent
        return None

    def _note(self, note: Any) -> str:
        mark = text = ""
        for part in note:
            if local_name(part) == "note-citation":
                mark = (part.text or "").strip()
            elif local_name(part) == "note-body":
                text = " ".join(line.text for line in self.blocks(part) if line.text)
        return self.notes.refer(small(mark), self.notes.in_place(text)) if mark or text else ""

    def _read_shape(self, shape: Any) -> str:
        """Return a shape's formula.

        The shape's text is added below the paragraph, and unreadable content is counted.
        """
        name = local_name(shape)
        if name == "frame":
            kinds = {local_name(part): part for part in shape}
            if "text-box" in kinds:
                self._add_below(kinds["text-box"])
            elif "object" in kinds:
                return self._object(kinds["object"])
            elif "object-ole" in kinds or "plugin" in kinds:
                self.unread["embedded"] += 1
            elif "image" in kinds:
                self.unread["pictures"] += is_large(shape)
        elif name == "g":
            return "".join(map(self._read_shape, shape))
        elif name == "control":
            self.unread["fields"] += 1
        else:
            self._add_below(shape)
        return ""

    def _add_below(self, box: Any) -> None:
        # The lines collect text boxes below them, so they come first.
        lines = [line for line in self.blocks(box) if line.text]
        self._below.extend(lines)

    def _object(self, element: Any) -> str:
        name = (element.get(f"{XLINK}href") or "").removeprefix("./").strip("/")
        root = next(iter(element), None) if not name else self.package.root(f"{name}/content.xml")
        if root is not None and root.tag == f"{MATH}math":
            formula = " ".join(FOREIGN.sub("", linear_formula(root)).split())
            self.unread["formulas"] += not formula
            return formula
        is_chart = root is not None and next(root.iter(f"{OFFICE}chart"), None) is not None
        self.unread["charts" if is_chart else "embedded"] += 1
        return ""

    def _take_below(self) -> list[Line]:
        below, self._below = self._below, []
        return below


MARGINS = frozenset({"header", "footer", "header-left", "footer-left", "header-first", "footer-first"})


def _look_of(style: Any) -> Look:
    properties = style.find(f"{STYLE}text-properties")
    parent = style.get(f"{STYLE}parent-style-name") or ""
    list_style = style.get(f"{STYLE}list-style-name") or ""
    if properties is None:
        return Look(parent, list_style=list_style)
    lines = [properties.get(f"{STYLE}text-line-through-{name}") for name in ("style", "type")]
    display = properties.get(f"{TEXT}display")
    return Look(
        parent,
        is_struck(properties) if any(lines) else None,
        None if display is None else display == "none",
        place_of(properties),
        list_style,
    )


def _list_level(level: Any) -> ListLevel:
    is_number = local_name(level) in ("list-level-style-number", "outline-level-style")
    return ListLevel(
        form=(level.get(f"{STYLE}num-format") or "") if is_number else "",
        before=level.get(f"{STYLE}num-prefix") or "",
        after=level.get(f"{STYLE}num-suffix") or "",
        levels=_integer(level.get(f"{TEXT}display-levels"), 1),
        start=_integer(level.get(f"{TEXT}start-value"), 1),
    )


def _texts(element: Any) -> list[str]:
    if local_name(element) in OUTSIDE_TEXT:
        return []
    return [
        element.text or "",
        *(text for part in element for text in (*_texts(part), part.tail or "")),
    ]


def _integer(text: str | None, otherwise: int) -> int:
    text = (text or "").strip()
    return int(text[:6]) if text.isdecimal() else otherwise
