"""Read a Word document's text in a single pass, and write the visible text.

Tracked changes count as accepted. Each character in the parts is either written, or left out for a reason. Both are
counted, and the sum can be compared with the total.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.office_package import R
from rag.ingestion.loaders.page_text import letters_in
from rag.ingestion.loaders.raised import FOREIGN, LOOKED_AT, STARRED, Notes, lowered, raised, small
from rag.ingestion.loaders.word.numbering import Numbering, formatted
from rag.ingestion.loaders.word.package import W14, W, child, is_on, name_of, number, value
from rag.ingestion.loaders.word.styles import Look, Styles
from rag.ingestion.loaders.word.symbols import linear, symbol, with_symbols
from rag.text.tables import guessed_head_rows, lines_of, rows_in_words

TEXTS = frozenset({"w:t", "m:t"})
#: Elements with deleted text, or with moved text, which is read at its new place.
DELETED = frozenset({"w:del", "w:moveFrom"})
#: Elements around text without an effect on it.
THROUGH = frozenset({
    "w:ins", "w:moveTo", "w:hyperlink", "w:smartTag", "w:customXml", "w:dir", "w:bdo", "w:sdtContent", "w:rubyBase",
})  # fmt: skip
#: Elements in a run with a character to write.
CHARACTERS = {
    "w:tab": "\t", "w:ptab": "\t", "w:br": "\n", "w:cr": "\n", "w:noBreakHyphen": "-", "w:softHyphen": "",
}  # fmt: skip
#: Header fields which differ from page to page: page numbers, and the page's heading.
PAGE_FIELDS = frozenset({"PAGE", "NUMPAGES", "SECTIONPAGES", "PAGEREF", "STYLEREF"})
#: The rest of a header beside a page number: "Page of", "- -".
LONGEST_PAGE_WORDS = 20
#: Represents a page number in a header.
PAGE_NUMBER = "\ufdd2"
#: Word's limit is 63 columns.
WIDEST = 63
#: A longer cell over several rows is written only in its first row.
LONGEST_REPEATED = 500
#: The longest table in a cell to write within the row, in characters; a longer table is written below.
LONGEST_NESTED = 1500
#: A longer paragraph is no heading, whatever its style.
LONGEST_HEADING = 300
#: The most characters quoted from struck text.
LONGEST_QUOTED = 200
#: In EMU, 360,000 to a centimetre: a smaller picture is a logo or a sign.
LEAST_PICTURE = (1_800_000, 900_000)
TICKED, UNTICKED = "☒", "☐"
MACRO_BUTTON = re.compile(r"\s*(?:MACROBUTTON|GOTOBUTTON)\s+\S+\s+(.*)", re.DOTALL | re.IGNORECASE)
SYMBOL_FIELD = re.compile(r"\s*SYMBOL\s+(0x[0-9a-f]+|\d+)(?:.*\\f\s+\"?([\w ]+)\"?)?", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Line:
    """A line on the page; `level` is the heading level, or 0."""

    text: str
    level: int = 0


@dataclass
class Tally:
    """Counts during conversion: characters written, characters left out (by reason), and content which is not text."""

    #: Without blank space, like all counts except `hidden`.
    written_count: int = 0
    #: Written letters and figures, to be found again on the page.
    letters: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    hidden: int = 0
    struck: list[str] = field(default_factory=list)
    pictures: set[str] = field(default_factory=set)
    charts: set[str] = field(default_factory=set)
    diagrams: set[str] = field(default_factory=set)
    embedded: int = 0
    inserted: int = 0
    old_formulas: int = 0
    symbols: int = 0

    def keep(self, count: int, visible_text: str) -> None:
        self.written_count += count
        self.letters.update(letters_in(visible_text))

    def leave(self, reason: str, element: Any) -> None:
        self.left_out[reason] += characters_in(element)

    def strike(self, text: str) -> None:
        if sum(map(len, self.struck)) < LONGEST_QUOTED:
            self.struck.append(text)


@dataclass
class Field:
    """A field which is being read: the instruction, and whether the result has begun.

    `form_value` is used for a form field without a result.
    """

    instruction: str = ""
    has_result: bool = False
    form_value: str = ""
    has_text: bool = False

    @property
    def kind(self) -> str:
        return (self.instruction.split() or [""])[0].upper()


@dataclass
class Flow:
    """Lines from a document part.

    `carried` is a paragraph which continues in the next paragraph, because the mark between both was deleted.
    """

    lines: list[Line] = field(default_factory=list)
    carried: Words | None = None


class Words:
    """Collects a paragraph's text and, in `below`, the lines in the paragraph's text boxes."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._parts: list[str] = []
        self._tail = ""
        self._small = ("", "")
        self.below: list[Line] = []
        #: Small pictures in the line: formulas and signs, if there is text beside them.
        self.pictures: set[str] = set()
        #: The mark at the start of the paragraph.
        self.mark = ""

    def add(self, text: str, position: str = "") -> None:
        """Add text. `position` is "superscript", "subscript", or "" for normal text."""
        if not text:
            return
        if position != self._small[0]:
            self._flush_small()
        if position:
            self._small = (position, self._small[1] + text)
        else:
            self._put(text)

    def refer(self, mark: str, text: str) -> None:
        """Add a footnote reference to the text, and store the footnote's text."""
        self._flush_small()
        self._parts.append(self._notes.refer(mark, text))

    def text(self) -> str:
        """Return the paragraph's text, with placeholders for notes."""
        self._flush_small()
        return normalise_characters(_without_page_numbers("".join(self._parts))).strip()

    def _put(self, text: str) -> None:
        self._parts.append(text)
        self._tail = (self._tail + text)[-LOOKED_AT:]

    def _flush_small(self) -> None:
        position, text = self._small
        self._small = ("", "")
        if position == "subscript":
            self._put(lowered(text))
        elif position:
            piece, is_mark = raised(self._tail, text)
            if not is_mark:
                self._put(piece)
            elif self._tail.strip():
                self._parts.append(self._notes.refer(piece))
            else:
                self.mark = self.mark or piece
                self._put(f"{piece} ")


def characters_in(element: Any) -> int:
    """Count the visible characters in an element, without blank space. Hidden versions are not counted."""
    name = name_of(element.tag)
    if name in TEXTS:
        return visible(element.text)
    if name == "mc:AlternateContent":
        return _visible_form(element)[1]
    return sum(map(characters_in, element))


def visible(text: str | None) -> int:
    """Return the number of characters in a text, without blank space."""
    return len("".join((text or "").split()))


def alternative(element: Any) -> Any:
    """Return the visible version in `mc:AlternateContent`: the first, unless only the fallback has text."""
    return _visible_form(element)[0]


def _visible_form(element: Any) -> tuple[Any, int]:
    """Return the visible version in `mc:AlternateContent`, and how many characters this version has."""
    first, fallback = child(element, "mc:Choice"), child(element, "mc:Fallback")
    count = 0 if first is None else characters_in(first)
    if count or fallback is None:
        return first, count
    count = characters_in(fallback)
    return (fallback if count or first is None else first), count


class Story:
    """Converts a document's parts to text lines. Body, headers and notes share styles and list numbers."""

    def __init__(
        self, styles: Styles, numbering: Numbering, *, related: Callable[[str], Any], language: str = ""
    ) -> None:
        self.notes = Notes()
        #: By place; `tally` belongs to the part being written.
        self.tallies = {"text": Tally(), "margins": Tally(), "notes": Tally()}
        self.tally = self.tallies["text"]
        self.sections: list[Any] = []
        self._styles = styles
        self._numbering = numbering
        self._language = language
        #: Parses the part linked by an id from the main part; None without a link.
        self._related = related
        self._fields: list[Field] = []
        self._is_margin = False
        #: Footnotes and endnotes by kind and id, their formats, and how many were used.
        self.notes_of: dict[tuple[str, str], Any] = {}
        self._forms = {"footnote": "decimal", "endnote": "lowerRoman"}
        self._note_counts: Counter[str] = Counter()
        self.referred: set[tuple[str, str]] = set()

    def add_notes(self, kind: str, root: Any, form: str | None) -> None:
        """Store the footnotes or endnotes in `root`, by id.

        `form` is the number format. `None` keeps the present format; "" means that the numbers restart within the
        document.
        """
        for element in () if root is None else root:
            if value(element, "type") in (None, "normal"):
                self.notes_of[kind, value(element, "id") or ""] = element
        self._forms[kind] = self._forms[kind] if form is None else form

    def lines(self, root: Any, place: str = "") -> list[Line]:
        """Return the lines in a document part, or in an element like a text box.

        `place` names the tally to which the characters are added; "" keeps the present tally.
        """
        before = self._fields, self._is_margin, self.tally
        self._fields, self._is_margin = [], place == "margins" or (self._is_margin and not place)
        self.tally = self.tallies[place] if place else self.tally
        flow = Flow()
        self._blocks(root, flow)
        self._flush_carried(flow)
        self._fields, self._is_margin, self.tally = before
        return flow.lines

    # Blocks

    def _blocks(self, container: Any, flow: Flow) -> None:
        for element in container:
            name = name_of(element.tag)
            if name == "w:p":
                self._paragraph(element, flow)
            elif name == "w:tbl":
                self._flush_carried(flow)
                flow.lines.extend(self._table(element))
            elif name == "w:sdt":
                content = self._content_of(element)
                if content is not None:
                    self._blocks(content, flow)
            elif name in DELETED:
                self.tally.leave("deleted", element)
            elif name in THROUGH:
                self._blocks(element, flow)
            elif name == "mc:AlternateContent":
                chosen = alternative(element)
                if chosen is not None:
                    self._blocks(chosen, flow)
            elif name in ("m:oMathPara", "m:oMath"):
                words = Words(self.notes)
                self._equation(element, words)
                self._write(words, 0, "", flow)
            elif name == "w:sectPr":
                self.sections.append(element)
            elif name in ("w:altChunk", "w:subDoc"):
                self.tally.inserted += 1

    def _flush_carried(self, flow: Flow) -> None:
        if flow.carried is not None:
            words, flow.carried = flow.carried, None
            self._write(words, 0, "", flow)

    def _content_of(self, control: Any) -> Any:
        content = child(control, "w:sdtContent")
        if content is not None and is_on(child(child(control, "w:sdtPr"), "w:showingPlcHdr")):
            self.tally.leave("placeholder", content)
            return None
        return content

    def _paragraph(self, paragraph: Any, flow: Flow) -> None:
        words = flow.carried or Words(self.notes)
        flow.carried = None
        properties = child(paragraph, "w:pPr")
        style_id = value(child(properties, "w:pStyle")) or self._styles.default_paragraph
        self._inline(paragraph, words, style_id)
        section = child(properties, "w:sectPr")
        if section is not None:
            self.sections.append(section)
        mark = child(properties, "w:rPr")
        is_initial = (value(child(properties, "w:framePr"), "dropCap") or "none") != "none"
        if is_initial or any(name_of(element.tag) in DELETED for element in (() if mark is None else mark)):
            flow.carried = words
            return
        text = words.text()
        if not text and self._styles.look(mark, style_id).is_hidden:
            flow.lines.extend(words.below)
            return
        level = 0
        if 0 < len(text) <= LONGEST_HEADING:
            level = self._styles.heading_level(properties, self._styles.style(style_id))
        label = self._numbering.label(properties, style_id, self._language)
        # A bullet before a heading says nothing.
        self._write(words, level, "" if level and label == "- " else label, flow)

    def _write(self, words: Words, level: int, label: str, flow: Flow) -> None:
        text = words.text()
        if words.mark:
            self.notes.add_line(words.mark, text.removeprefix(words.mark).strip())
        elif starred := STARRED.fullmatch(text):
            self.notes.add_line(starred["mark"], starred["text"])
        if text:
            self.tally.pictures |= words.pictures
            flow.lines.append(Line(f"{label}{' '.join(text.split()) if level else text}", level))
        elif not words.below and flow.lines and flow.lines[-1].text:
            flow.lines.append(Line(""))
        flow.lines.extend(words.below)

    # Within a paragraph

    def _inline(self, container: Any, words: Words, style_id: str) -> None:
        for element in container:
            name = name_of(element.tag)
            if name == "w:r":
                self._run(element, words, style_id)
            elif name in DELETED:
                self.tally.leave("deleted", element)
            elif name in THROUGH:
                self._inline(element, words, style_id)
            elif name == "w:sdt":
                self._control(element, words, style_id)
            elif name == "w:fldSimple":
                self._fields.append(Field(value(element, "instr") or "", has_result=True))
                self._inline(element, words, style_id)
                self._close_field(words)
            elif name in ("m:oMath", "m:oMathPara"):
                self._equation(element, words)
            elif name == "mc:AlternateContent":
                chosen = alternative(element)
                if chosen is not None:
                    self._inline(chosen, words, style_id)
            elif name == "w:subDoc":
                self.tally.inserted += 1

    def _control(self, control: Any, words: Words, style_id: str) -> None:
        content = self._content_of(control)
        if content is None:
            return
        box = child(child(control, "w:sdtPr"), "w14:checkbox")
        is_drawn = characters_in(content) > 0 or next(content.iter(f"{W}sym"), None) is not None
        if box is not None and not is_drawn:
            checked = child(box, "w14:checked")
            is_ticked = checked is not None and checked.get(f"{W14}val") in ("1", "true", "on")
            words.add(TICKED if is_ticked else UNTICKED)
            return
        self._inline(content, words, style_id)

    def _equation(self, element: Any, words: Words) -> None:
        count = characters_in(element)
        if self._is_shown():
            formula = FOREIGN.sub("", linear(element))
            self.tally.keep(count, formula)
            words.add(formula)
        else:
            self.tally.left_out["instruction"] += count

    def _is_shown(self) -> bool:
        return all(each.has_result for each in self._fields)

    def _run(self, run: Any, words: Words, style_id: str) -> None:
        look = self._styles.look(child(run, "w:rPr"), style_id)
        custom = next((child_element for child_element in run if is_custom_mark(child_element)), None)
        if custom is not None and not look.is_hidden and not look.is_struck:
            # The text of the run is the mark.
            mark = "".join(
                child_element.text or "" for child_element in run if name_of(child_element.tag) == "w:t"
            ).strip()
            self.tally.keep(visible(mark), mark)
            self._refer(custom, words, mark)
            return
        for element in run:
            self._part_of_run(element, look, words, style_id)

    def _part_of_run(self, element: Any, look: Look, words: Words, style_id: str) -> None:
        name = name_of(element.tag)
        if name == "w:fldChar":
            self._field_mark(element, words)
        elif name == "w:instrText":
            if self._fields and not self._fields[-1].has_result:
                self._fields[-1].instruction += element.text or ""
        elif name == "w:t":
            self._text(element.text or "", look, words)
        elif look.is_hidden or look.is_struck:
            reason = "hidden" if look.is_hidden else "struck"
            self.tally.leave(reason, element)
        elif name in CHARACTERS:
            if self._is_shown():
                words.add(CHARACTERS[name], look.position if name == "w:noBreakHyphen" else "")
        elif name == "w:sym":
            self._symbol(element, words)
        elif name in ("w:footnoteReference", "w:endnoteReference"):
            self._refer(element, words, None)
        elif name in ("w:drawing", "w:pict", "w:object"):
            self._drawing(element, words, (0, 0))
        elif name == "w:ruby":
            annotation = child(element, "w:rt")
            if annotation is not None:
                self.tally.leave("ruby", annotation)
            base = child(element, "w:rubyBase")
            if base is not None:
                self._inline(base, words, style_id)
        elif name == "mc:AlternateContent":
            chosen = alternative(element)
            for part in () if chosen is None else chosen:
                self._part_of_run(part, look, words, style_id)
        elif name == "m:oMath":
            self._equation(element, words)

    def _text(self, text: str, look: Look, words: Words) -> None:
        count = visible(text)
        if not self._is_shown():
            self.tally.left_out["instruction"] += count
        elif look.is_hidden:
            self.tally.left_out["hidden"] += count
            self.tally.hidden += len(text)
        elif look.is_struck:
            self.tally.left_out["struck"] += count
            self.tally.strike(text)
        elif self._is_margin and any(each.kind in PAGE_FIELDS for each in self._fields):
            self.tally.left_out["page number"] += count
        else:
            visible_text = with_symbols(FOREIGN.sub("", text), look.font)
            self.tally.keep(count, visible_text)
            words.add(visible_text, look.position)
            for each in self._fields:
                each.has_text = each.has_text or count > 0

    def _symbol(self, element: Any, words: Words) -> None:
        try:
            code = int(value(element, "char") or "", 16)
        except ValueError:
            code = 0
        sign = symbol(code, value(element, "font") or "")
        if not self._is_shown():
            return
        if not sign:
            self.tally.symbols += 1
        words.add(sign)
        for each in self._fields:
            each.has_text = True

    def _field_mark(self, element: Any, words: Words) -> None:
        kind = value(element, "fldCharType")
        if kind == "begin":
            self._fields.append(Field(form_value=_form_value(child(element, "w:ffData"))))
        elif kind == "separate" and self._fields:
            self._fields[-1].has_result = True
        elif kind == "end":
            self._close_field(words)

    def _close_field(self, words: Words) -> None:
        if not self._fields:
            return
        closed = self._fields.pop()
        if not self._is_shown():
            if self._fields and not self._fields[-1].has_result:
                self._fields[-1].instruction += closed.instruction
            return
        if closed.kind in PAGE_FIELDS and self._is_margin:
            words.add(PAGE_NUMBER)
        elif closed.kind == "FORMCHECKBOX" or not closed.has_text:
            words.add(closed.form_value or _text_of_field(closed))
            if closed.kind == "EQ":
                self.tally.old_formulas += 1

    def _refer(self, element: Any, words: Words, mark: str | None) -> None:
        kind = name_of(element.tag)[2:].removesuffix("Reference")
        key = (kind, value(element, "id") or "")
        note = self.notes_of.get(key)
        if mark is None:
            self._note_counts[kind] += 1
            form = self._forms[kind]
            mark = formatted(self._note_counts[kind], form, self._language) if form else ""
        text = ""
        if note is not None and key not in self.referred:
            self.referred.add(key)
            text = " ".join(line.text for line in self.lines(note, "notes") if line.text)
            text = self.notes.in_place(text.removeprefix(mark).strip() if mark else text)
        if mark or text:
            words.refer(small(mark), text)

    def _drawing(self, element: Any, words: Words, size: tuple[int, int]) -> None:
        for part in element:
            name = name_of(part.tag)
            if name == "w:txbxContent":
                words.below.extend(line for line in self.lines(part) if line.text)
            elif name == "mc:AlternateContent":
                chosen = alternative(part)
                if chosen is not None:
                    self._drawing(chosen, words, size)
            elif name in ("wp:inline", "wp:anchor"):
                extent = child(part, "wp:extent")
                self._drawing(part, words, _size(extent))
            elif name == "a:blip":
                is_large = size[0] >= LEAST_PICTURE[0] and size[1] >= LEAST_PICTURE[1]
                (self.tally if is_large else words).pictures.add(part.get(f"{R}embed") or part.get(f"{R}link") or "")
            elif name == "v:imagedata":
                words.pictures.add(part.get(f"{R}id") or "")
            elif name in ("c:chart", "cx:chart"):
                self.tally.charts.add(part.get(f"{R}id") or "")
            elif name == "dgm:relIds":
                self._diagram(part.get(f"{R}dm") or "", words)
            elif name == "o:OLEObject":
                self.tally.embedded += 1
            elif name == "v:textpath" and (text := (part.get("string") or "").strip()):
                words.below.append(Line(normalise_characters(FOREIGN.sub("", text))))
            elif len(part):
                self._drawing(part, words, size)

    def _diagram(self, link: str, words: Words) -> None:
        root = self._related(link) if self.tally is self.tallies["text"] else None
        if root is None:
            self.tally.diagrams.add(link)
            return
        points = child(root, "dgm:ptLst")
        for point in () if points is None else points:
            texts = (part.text or "" for part in point.iter() if name_of(part.tag) == "a:t")
            if text := normalise_characters(FOREIGN.sub("", "".join(texts))).strip():
                words.below.append(Line(" ".join(text.split())))

    # Tables

    def _table(self, table: Any) -> list[Line]:
        rows = list(self._rows(table))
        if is_layout(rows):
            return [line for row in rows for cell in cells_in(row) for line in self._cell_lines(cell) if line.text]
        grid: list[list[str | None]] = []
        below: list[Line] = []
        heads = 0
        above: dict[int, str] = {}
        for row in rows:
            cells: list[str | None] = [""] * min(_grid_gap(row, "gridBefore"), WIDEST)
            following: dict[int, str] = {}
            for cell in cells_in(row):
                properties = child(cell, "w:tcPr")
                width = min(max(number(child(properties, "w:gridSpan")) or 1, 1), WIDEST)
                merged = child(properties, "w:vMerge")
                place = len(cells)
                if is_placeholder(cell) or child(properties, "w:cellDel") is not None:
                    self.tally.leave("placeholder", cell)
                    text = ""
                elif merged is not None and value(merged) != "restart":
                    text = above.get(place, "")
                    # Text in a continued cell is hidden; without a cell above, it is visible.
                    if place in above:
                        self.tally.leave("merged", cell)
                    else:
                        text = self._cell_text(cell, below)
                else:
                    text = self._cell_text(cell, below)
                if merged is not None:
                    following[place] = text if len(text) <= LONGEST_REPEATED else ""
                cells += [text, *[None] * (width - 1)]
                if len(cells) > WIDEST:
                    below.extend(Line(str(cell_text)) for cell_text in cells[WIDEST:] if cell_text)
                    del cells[WIDEST:]
            above = following
            cells += [""] * min(_grid_gap(row, "gridAfter"), WIDEST - len(cells))
            is_head = is_on(child(child(row, "w:trPr"), "w:tblHeader"))
            heads += is_head and heads == len(grid)
            grid.append(cells)
        if not 0 < heads < len(grid) or heads > 3:
            heads = guessed_head_rows(grid)
        return [*map(Line, lines_of(grid, heads)), *below]

    def _rows(self, container: Any) -> Any:
        for element in container:
            name = name_of(element.tag)
            if name == "w:tr":
                properties = child(element, "w:trPr")
                if child(properties, "w:del") is not None:
                    self.tally.leave("deleted", element)
                elif is_on(child(properties, "w:hidden")):
                    self.tally.leave("hidden", element)
                    self.tally.hidden += characters_in(element)
                else:
                    yield element
            elif name == "w:sdt":
                content = self._content_of(element)
                if content is not None:
                    yield from self._rows(content)
            elif name in DELETED:
                self.tally.leave("deleted", element)
            elif name in THROUGH:
                yield from self._rows(element)

    def _cell_lines(self, cell: Any) -> list[Line]:
        flow = Flow()
        self._blocks(cell, flow)
        self._flush_carried(flow)
        return flow.lines

    def _cell_text(self, cell: Any, below: list[Line]) -> str:
        """Return a cell's text on a single line. A short inner table becomes a sentence. A long table is added to
        `below`.
        """
        parts: list[str] = []
        for lines, is_table in self._pieces(cell):
            if not is_table:
                parts += [line.text for line in lines]
            elif sum(len(line.text) for line in lines) <= LONGEST_NESTED:
                parts.append("; ".join(rows_in_words([line.text for line in lines])))
            else:
                below.extend(lines)
        return self.notes.in_place(" ".join(" ".join(parts).split()))

    def _pieces(self, cell: Any) -> Any:
        flow = Flow()
        for element in cell:
            if name_of(element.tag) == "w:tcPr":
                continue
            if name_of(element.tag) == "w:tbl":
                self._flush_carried(flow)
                yield flow.lines, False
                flow = Flow()
                yield self._table(element), True
            else:
                self._blocks([element], flow)
        self._flush_carried(flow)
        yield flow.lines, False


def cells_in(row: Any) -> Any:
    """Yield a row's cells, including cells in content controls."""
    for element in row:
        name = name_of(element.tag)
        if name == "w:tc":
            yield element
        elif name == "w:sdt":
            content = child(element, "w:sdtContent")
            if content is not None:
                yield from cells_in(content)
        elif name in THROUGH:
            yield from cells_in(element)


def is_placeholder(cell: Any) -> bool:
    """Whether a cell is a content control which shows only a prompt for input."""
    around = cell.getparent().getparent()
    return name_of(around.tag) == "w:sdt" and is_on(child(child(around, "w:sdtPr"), "w:showingPlcHdr"))


def is_layout(rows: list[Any]) -> bool:
    """Whether a table is only used for layout: a single column, or a single row which has tables or many paragraphs."""
    widths = [len(list(cells_in(row))) for row in rows]
    if max(widths, default=0) <= 1:
        return True
    if len(rows) > 1:
        return False
    cells = list(cells_in(rows[0]))
    return any(child(cell, "w:tbl") is not None for cell in cells) or any(
        sum(characters_in(part) > 0 for part in cell if name_of(part.tag) == "w:p") > 3 for cell in cells
    )


def is_custom_mark(element: Any) -> bool:
    """Whether an element refers to a footnote with a reference mark typed by the author."""
    if name_of(element.tag) not in ("w:footnoteReference", "w:endnoteReference"):
        return False
    return (value(element, "customMarkFollows") or "0").lower() in ("1", "true", "on")


def _grid_gap(row: Any, name: str) -> int:
    return max(number(child(child(row, "w:trPr"), f"w:{name}")) or 0, 0)


def _size(extent: Any) -> tuple[int, int]:
    try:
        return int(extent.get("cx")), int(extent.get("cy"))
    except (AttributeError, TypeError, ValueError):
        return 0, 0


def _without_page_numbers(text: str) -> str:
    """Remove parts from a header or footer which only state a page number, for example "Page 3 of 12"."""
    if PAGE_NUMBER not in text:
        return text
    pieces = re.split(r"\t| {2,}|\n", text)
    remaining = [
        piece.replace(PAGE_NUMBER, "")
        for piece in pieces
        if PAGE_NUMBER not in piece or len(piece.replace(PAGE_NUMBER, "").strip()) > LONGEST_PAGE_WORDS
    ]
    return " ".join(" ".join(remaining).split())


def _form_value(data: Any) -> str:
    """Return the value for an old form field without a stored result: a tick box, or the chosen list entry."""
    box = child(data, "w:checkBox")
    if box is not None:
        checked = child(box, "w:checked")
        return TICKED if is_on(child(box, "w:default") if checked is None else checked) else UNTICKED
    choices = child(data, "w:ddList")
    if choices is not None:
        entries = [value(entry) or "" for entry in choices if name_of(entry.tag) == "w:listEntry"]
        chosen = number(child(choices, "w:result"))
        chosen = number(child(choices, "w:default")) if chosen is None else chosen
        return entries[chosen or 0] if 0 <= (chosen or 0) < len(entries) else ""
    return ""


def _text_of_field(closed: Field) -> str:
    """Return the text for a field without a stored result: a button's label, or a symbol."""
    if match := MACRO_BUTTON.fullmatch(closed.instruction):
        return match[1].strip()
    if match := SYMBOL_FIELD.match(closed.instruction):
        code = int(match[1], 16 if match[1][:2].lower() == "0x" else 10)
        return symbol(code, (match[2] or "").strip())
    return ""
