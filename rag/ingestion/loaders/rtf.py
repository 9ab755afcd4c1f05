"""Load rich text documents (.rtf): the visible text in order, with headings as sections.

The file is read in a single pass, without recursion. Tracked deletions are left out. All letters in the file are
compared with the page, to report text which was not written.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from rag.errors import FileDamaged
from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.docx import HIDDEN_TEXT, joined_lines
from rag.ingestion.loaders.office_package import guarded
from rag.ingestion.loaders.page_text import STRUCK_TEXT, UNREAD_TEXT, letters_in, shortened
from rag.ingestion.loaders.raised import FOREIGN, LOOKED_AT, PLACE, Notes, lowered, raised, small
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, LoadOptions
from rag.ingestion.loaders.word.story import LONGEST_REPEATED, WIDEST, Line
from rag.text.tables import guessed_head_rows, lines_of
from rag.types import Page

SIGNATURE = b"{\\rtf"
TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\(.)|([{}])|[\r\n\0]+|([^\\{}\r\n\0]+)|\\", re.DOTALL
)
UNREAD = {
    "comments": ("1 comment was not read.", "{count} comments were not read."),
    "embedded": ("1 embedded file was not read.", "{count} embedded files were not read."),
    "pictures": ("1 picture may contain text that was not read.",
                 "{count} pictures may contain text that was not read."),
    "symbols": ("1 symbol of an unknown font was not read.", "{count} symbols of unknown fonts were not read."),
    "text": UNREAD_TEXT,
}  # fmt: skip
#: Character sets by number, named by fonts; others use the document's set.
SETS = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gb18030", 136: "cp950",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251",
    222: "cp874", 238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
SYMBOLS = 2
#: Edges closer than this belong to the same column, in twips.
SAME_EDGE = 40
MOST_COLUMNS = 60
#: Groups without document text. Other groups starting with a star are left out unless they are read.
OUTSIDE_TEXT = frozenset({
    "stylesheet", "colortbl", "listtable", "listoverridetable", "revtbl", "rsidtbl", "filetbl", "pict", "info",
    "nonshppict", "shprslt", "objdata", "fldinst", "xe", "tc", "rxe", "txe", "bkmkstart", "bkmkend", "sp", "sn", "sv",
    "nonesttables", "ftnsep", "ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn", "annotation", "atnid", "atnauthor",
    "atnref", "atntime", "atndate", "upr", "datafield", "themedata", "generator", "template", "fontemb", "falt",
})  # fmt: skip
STARRED = frozenset({"footnote", "shpinst", "shptxt", "shppict", "nesttableprops", "ud", "do", "dptxbxtext"})
MARGINS = {
    "header": 0, "headerl": 0, "headerr": 0, "headerf": 0, "footer": 1, "footerl": 1, "footerr": 1, "footerf": 1,
}  # fmt: skip
BOXES = frozenset({"shptxt", "dptxbxtext"})
CHARACTERS = {
    "tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’",
    "ldblquote": "“", "rdblquote": "”", "emspace": " ", "enspace": " ", "qmspace": " ",
}  # fmt: skip
SINGLE = {b"~": " ", b"_": "-", b"{": "{", b"}": "}", b"\\": "\\"}
PAGE_FIELD = re.compile(rb"\s*(?:PAGE|NUMPAGES|SECTIONPAGES)\b", re.IGNORECASE)
#: Smaller pictures are ornaments, in twentieths of a point.
SMALLEST_PICTURE = 720
HEADING = re.compile(r"heading ([1-9])\b", re.IGNORECASE)
PRIVATE = re.compile("[\ue000-\uf8ff]")


@dataclass
class _Group:
    is_outside: bool = False
    is_hidden: bool = False
    is_deleted: bool = False
    is_struck: bool = False
    #: 1 for raised, -1 for lowered text.
    position: int = 0
    font: int = -1
    #: Characters after `\\u` which older readers show instead (`\\uc`).
    stand_ins: int = 1
    name: str = ""
    #: The story which ends with this group.
    opens: str = ""


@dataclass
class _Story:
    lines: list[Line] = field(default_factory=list)
    runs: list[tuple[str, int]] = field(default_factory=list)
    level: int = 0
    is_in_table: bool = False
    depth: int = 1
    cell: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    nested_cell: list[str] = field(default_factory=list)
    row: list[str] = field(default_factory=list)
    grid: list[list[str | None]] = field(default_factory=list)
    heads: int = 0
    is_head: bool = False
    #: Whether each cell in the row continues the row above.
    goes_on: list[bool] = field(default_factory=list)
    is_going_on: bool = False
    #: The right edges of cells, in this row and in the rows above.
    edges: list[int] = field(default_factory=list)
    row_edges: list[list[int]] = field(default_factory=list)
    below: list[Line] = field(default_factory=list)


def load_rtf(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load a document as a single page, with a line per table row. Raises `FileDamaged`."""
    return guarded(lambda: _Walk(content).document())


def check_rtf(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check the start of the file. Raises `FileDamaged`."""
    if not content.startswith(SIGNATURE):
        raise FileDamaged
    return CheckedFile(page_count=1)


class _Walk:
    def __init__(self, content: bytes) -> None:
        check_rtf(content)
        self.content = content
        self.notes = Notes()
        self.group = _Group()
        self.groups: list[_Group] = []
        self.story = _Story()
        self.stories: list[_Story] = []
        self.margins: tuple[list[Line], list[Line]] = ([], [])
        self.fonts: dict[int, int] = {}
        self.encoding = "cp1252"
        self.default_font = -1
        self.styles: dict[int, int] = {}
        self.style = -1
        self.pending = bytearray()
        self.stand_ins = 0
        self.is_starred = self.is_opened = False
        self.note = 0
        self.hidden = 0
        self.struck: list[str] = []
        self.seen: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        self.about: dict[str, str] = {"title": "", "author": ""}
        self.picture = [0, 0]
        self.is_page_field = False

    def document(self) -> ExtractedDocument:
        position, end = 0, len(self.content)
        while position < end:
            match = TOKEN.match(self.content, position)
            if match is None:
                break
            position = match.end()
            word, number, code, sign, brace, text = match.groups()
            if word is not None:
                if word == b"bin":
                    position += max(int(number or 0), 0)
                    continue
                self._word(word.decode(), None if number is None else int(number))
            elif code is not None:
                self._bytes(bytes.fromhex(code.decode()))
            elif sign is not None:
                self._sign(sign)
            elif brace is not None:
                self._flush()
                self.stand_ins = 0
                if brace == b"{":
                    self.groups.append(self.group)
                    self.group = replace(self.group, name=self._inherited_name(), opens="")
                    self.is_opened, self.is_starred = True, False
                elif not self._end_group():
                    break
                continue
            elif text is not None:
                self._text(text)
            if sign != b"*":
                self.is_opened = False
        self._flush()
        while self.groups:
            self._end_group()
        self._paragraph()
        self._end_table()
        return self._finish()

    def _finish(self) -> ExtractedDocument:
        above, below = ([*{line.text: line for line in lines if line.text}.values()] for lines in self.margins)
        text, sections = joined_lines([*above, *self.story.lines, *below], self.notes)
        page = Page(
            number=1, text=text, method="text" if text.strip() else "none", warnings=tuple(self._warnings(text))
        )
        about = {name: " ".join(normalise_characters(value).split()) for name, value in self.about.items()}
        return ExtractedDocument(pages=(page,), sections=sections, title=about["title"], author=about["author"])

    def _warnings(self, text: str) -> Iterator[str]:
        if self.hidden:
            yield HIDDEN_TEXT.format(characters=self.hidden)
        if struck := " ".join("".join(self.struck).split()):
            yield STRUCK_TEXT.format(text=shortened(struck))
        self.seen.subtract(letters_in(text))
        self.unread["text"] = sum((+self.seen).values())
        for kind, (singular, plural) in UNREAD.items():
            if count := self.unread[kind]:
                yield singular if count == 1 else plural.format(count=f"{count:,}")

    # Groups

    def _end_group(self) -> bool:
        if not self.groups:
            return False
        group, self.group = self.group, self.groups.pop()
        if group.name == "pict" and (0 in self.picture or min(self.picture) >= SMALLEST_PICTURE):
            self.unread["pictures"] += 1
        elif group.name == "field":
            self.is_page_field = False
        if group.opens:
            self._paragraph()
            self._end_table()
            lines, self.story = self.story.lines, self.stories.pop()
            if group.opens in MARGINS:
                self.margins[MARGINS[group.opens]].extend(Line(line.text) for line in lines)
            elif group.opens == "footnote":
                self.note += 1
                text = self.notes.in_place(" ".join(line.text for line in lines if line.text))
                self.story.runs.append((self.notes.refer(small(str(self.note)), text), 0))
            else:
                self.story.below.extend(lines)
        return bool(self.groups)

    def _inherited_name(self) -> str:
        return self.group.name if self.group.name in self.about else ""

    def _open_story(self, name: str) -> None:
        self.group.opens = name
        self.group.position, self.group.is_hidden = 0, False
        self.stories.append(self.story)
        self.story = _Story()

    def _handle_destination(self, word: str) -> bool:
        """Handle an RTF control word which names the purpose of a group, like a footnote. Returns `False` for other
        words.
        """
        group, was_outside = self.group, self.group.is_outside
        if word == "ud":
            group.is_outside = False
        elif word in ("title", "author") and self.groups and self.groups[-1].name == "info":
            pass
        elif word in OUTSIDE_TEXT or (self.is_starred and word not in STARRED):
            group.is_outside = True
        elif word == "fldrslt":
            group.is_outside = was_outside or (
                self.is_page_field and any(each.opens in MARGINS for each in self.groups)
            )
        elif word in MARGINS or word in BOXES or word == "footnote":
            if not was_outside:
                self._open_story(word)
        elif word not in ("fonttbl", "object", "field"):
            return False
        group.name = word
        if not was_outside and word in ("annotation", "object"):
            self.unread["comments" if word == "annotation" else "embedded"] += 1
        if word == "pict":
            self.picture = [0, 0]
            if was_outside or any(each.name == "object" for each in self.groups):
                group.name = ""
        return True

    # Words

    def _word(self, word: str, number: int | None) -> None:
        if self.stand_ins and word != "u":
            self.stand_ins -= 1
        self._flush()
        if (
            (self.is_opened and self._handle_destination(word))
            or self._handle_declaration(word, number or 0)
            or self.group.is_outside
        ):
            return
        if word in CHARACTERS:
            self._write(CHARACTERS[word])
        elif not self._handle_format(word, is_on=number != 0):
            self._layout(word, number)

    def _handle_declaration(self, word: str, number: int) -> bool:
        group = self.group
        if word == "u":
            self._write(chr(number % 65536))
            self.stand_ins = group.stand_ins
        elif word == "uc":
            group.stand_ins = min(max(number, 0), 10)
        elif word == "f":
            group.font = number
        elif word == "fcharset":
            self.fonts[group.font] = number
        elif word == "deff":
            self.default_font = number
        elif word in ("ansicpg", "mac", "pc", "pca"):
            self.encoding = _usable_encoding(
                {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}.get(word, f"cp{number}")
            )
        elif word in ("picwgoal", "pichgoal"):
            self.picture[word == "pichgoal"] = abs(number)
        else:
            return self._handle_style(word, number)
        return True

    def _handle_style(self, word: str, number: int) -> bool:
        if word == "s":
            self.style = number
            if not self.group.is_outside:
                self.story.level = self.styles.get(number, self.story.level)
        elif word == "outlinelevel":
            level = number + 1 if 0 <= number < 9 else 0
            if any(each.name == "stylesheet" for each in self.groups):
                self.styles[self.style] = level
            else:
                self.story.level = level
        else:
            return False
        return True

    def _handle_format(self, word: str, *, is_on: bool) -> bool:
        group = self.group
        if word == "v":
            group.is_hidden = is_on
        elif word == "deleted":
            group.is_deleted = is_on
        elif word in ("strike", "striked"):
            group.is_struck = is_on
        elif word in ("super", "up"):
            group.position = 1 if is_on else 0
        elif word in ("sub", "dn"):
            group.position = -1 if is_on else 0
        elif word == "nosupersub":
            group.position = 0
        elif word == "plain":
            group.is_hidden = group.is_deleted = group.is_struck = False
            group.position, group.font = 0, self.default_font
        else:
            return False
        return True

    def _layout(self, word: str, number: int | None) -> None:
        story = self.story
        if word in ("par", "sect", "page"):
            if not (word == "page" and story.is_in_table):
                self._paragraph()
        elif word == "pard":
            story.is_in_table, story.depth, story.level = False, 1, 0
        elif word == "intbl":
            story.is_in_table = True
        elif word == "itap":
            story.depth = number or 0
        elif word == "trowd":
            story.is_head, story.goes_on, story.is_going_on = False, [], False
            story.edges = []
        elif word == "trhdr":
            story.is_head = True
        elif word == "clvmrg":
            story.is_going_on = True
        elif word == "cellx":
            story.goes_on.append(story.is_going_on)
            story.is_going_on = False
            story.edges.append(number or 0)
        elif word in ("cell", "nestcell"):
            self._end_cell(is_nested=word == "nestcell")
        elif word == "nestrow":
            story.cell.append(" | ".join(story.nested))
            story.nested = []
        elif word == "row":
            self._end_row()

    def _sign(self, sign: bytes) -> None:
        if sign == b"*":
            self.is_starred = self.is_opened
            return
        self._flush()
        if sign in b"\r\n":
            if not self.group.is_outside:
                self._paragraph()
        elif self.stand_ins:
            self.stand_ins -= 1
        elif sign in SINGLE:
            self._write(SINGLE[sign])

    # Text

    def _text(self, text: bytes) -> None:
        if self.group.name == "fldinst" and PAGE_FIELD.match(text):
            self.is_page_field = True
        skipped = min(self.stand_ins, len(text))
        self.stand_ins -= skipped
        self.pending += text[skipped:]

    def _bytes(self, code: bytes) -> None:
        if self.stand_ins:
            self.stand_ins -= 1
        else:
            self.pending += code

    def _flush(self) -> None:
        if not self.pending:
            return
        content, self.pending = bytes(self.pending), bytearray()
        number = self.fonts.get(self.group.font if self.group.font >= 0 else self.default_font, 1)
        if number == SYMBOLS and not content.isspace():
            self._write("".join("\uf000" if each > 32 else " " for each in content))
        else:
            self._write(content.decode(SETS.get(number, self.encoding), "replace"))

    def _write(self, text: str) -> None:
        group = self.group
        if group.name in self.about:
            self.about[group.name] += text
            return
        if self.groups and self.groups[-1].name == "stylesheet" and (match := HEADING.match(text)):
            self.styles.setdefault(self.style, int(match[1]))
        if group.is_outside or group.name == "fonttbl" or any(each.name == "fonttbl" for each in self.groups[-2:]):
            return
        if group.is_deleted:
            return
        if group.is_hidden:
            self.hidden += len(text.strip())
        elif group.is_struck:
            self.struck.append(text)
        else:
            self.story.runs.append((FOREIGN.sub("", text), group.position))

    def _take_text(self) -> str:
        """Return and clear the current paragraph's text. Superscripts and subscripts are converted to plain text."""
        runs, self.story.runs = self.story.runs, []
        joined: list[tuple[list[str], int]] = []
        for text, position in runs:
            if joined and joined[-1][1] == position:
                joined[-1][0].append(text)
            else:
                joined.append(([text], position))
        pieces: list[str] = []
        before = ""
        for parts, position in joined:
            text = "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            plain = PLACE.sub("", text)
            self.seen.update(letters_in(plain if position else PRIVATE.sub("", plain)))
            if position > 0 and text.strip():
                text, is_mark = raised(before, text)
                text = self.notes.refer(text) if is_mark and before.strip() else text
            elif position < 0:
                text = lowered(text)
            pieces.append(text)
            before = (before + text)[-LOOKED_AT:]
        text = "".join(pieces)
        symbols = PRIVATE.findall(text)
        if symbols and PRIVATE.match(text.lstrip()):
            text = PRIVATE.sub("-", text, count=1)  # the bullet of an item
            symbols.pop()
        self.unread["symbols"] += len(symbols)
        return normalise_characters(PRIVATE.sub("", text).replace("\t", " ")).strip()

    def _paragraph(self) -> None:
        story = self.story
        text = self._take_text()
        below, story.below = story.below, []
        if story.is_in_table:
            cell = story.nested_cell if story.depth > 1 else story.cell
            cell.extend(filter(None, (text, *(line.text for line in below))))
            return
        if not text and not below and not story.grid and not story.lines:
            return
        if text or below:
            self._end_table()
        if text:
            story.lines.append(Line(text, story.level if len(text) <= 300 else 0))
        story.lines.extend(below)

    def _end_cell(self, *, is_nested: bool) -> None:
        story = self.story
        parts = story.nested_cell if is_nested else story.cell
        if text := self._take_text():
            parts.append(text)
        parts.extend(line.text for line in story.below if line.text)
        story.below = []
        row = story.nested if is_nested else story.row
        if len(row) < WIDEST:
            row.append(self.notes.in_place(" ".join(" ".join(parts).split())))
        parts.clear()

    def _end_row(self) -> None:
        story = self.story
        row: list[str | None] = [*story.row]
        story.row = []
        for place, is_going_on in enumerate(story.goes_on[: len(row)]):
            above = story.grid[-1] if story.grid else []
            if is_going_on and not row[place] and place < len(above) and len(above[place] or "") <= LONGEST_REPEATED:
                row[place] = above[place]
        if any(row):
            story.heads += story.is_head and story.heads == len(story.grid)
            story.grid.append(row)
            story.row_edges.append(story.edges[: len(row)])

    def _end_table(self) -> None:
        story = self.story
        if story.row or story.cell:
            # The file ends inside a row.
            story.row.extend(story.cell)
            story.cell = []
            self._end_row()
        grid, heads = _align_columns(story.grid, story.row_edges), story.heads
        story.grid, story.row_edges, story.heads = [], [], 0
        # Programs end rows with cells no page shows.
        width = max((place + 1 for row in grid for place, cell in enumerate(row) if cell), default=0)
        grid = [row[:width] for row in grid]
        if not grid:
            return
        if max(map(len, grid)) <= 1:
            story.lines.extend(Line(cell) for row in grid for cell in row if cell)
            return
        if not 0 < heads < len(grid) or heads > 3:
            heads = guessed_head_rows(grid)
        story.lines.extend(map(Line, lines_of(grid, heads)))


def _align_columns(grid: list[list[str | None]], edges: Sequence[Sequence[int]]) -> list[list[str | None]]:
    """Return rows with a cell for each column. A cell is `None` if the cell on the left covers this column."""
    if any(
        len(row) != len(row_edges) or sorted(set(row_edges)) != list(row_edges)
        for row, row_edges in zip(grid, edges, strict=True)
    ):
        return grid
    places: list[int] = []
    for edge in sorted({edge for row_edges in edges for edge in row_edges}):
        if not places or edge - places[-1] > SAME_EDGE:
            places.append(edge)
    if len(places) > MOST_COLUMNS:
        return grid
    widened: list[list[str | None]] = []
    for row, row_edges in zip(grid, edges, strict=True):
        cells: list[str | None] = []
        for text, edge in zip(row, row_edges, strict=True):
            columns = sum(len(cells) <= place < bisect_right(places, edge) for place in range(len(places)))
            if not columns:
                return grid
            cells += [text, *[None] * (columns - 1)]
        widened.append(cells)
    return widened


def _usable_encoding(name: str) -> str:
    name = "utf-8" if name == "cp65001" else name
    try:
        codecs.lookup(name)
    except LookupError:
        return "cp1252"
    return name
