"""Read a page's text with pdfium: only the visible text, tables as rows, and the style of each line.

pdfium gives the text of a page in one call, in the order in which it is drawn. Its objects (pieces of text, lines,
pictures) show what needs a closer look, character by character: hidden text and tables. Text that a reader does not see
is left out, because answers would otherwise quote text that nobody was meant to read.
"""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pypdfium2.raw as pdfium

from rag.ingestion.loaders.page_tables import PageTable, tables_among
from rag.ingestion.loaders.page_text import RawPage, Style, normalise_characters
from rag.ingestion.loaders.pdf_words import PlacedWord, place_words, rules_of
from rag.ingestion.loaders.pictures import is_large

Box = tuple[float, float, float, float]
Matrix = tuple[float, float, float, float, float, float]

#: Smaller text is unreadable, in points; footnotes have 6, microprint has 1.
SMALLEST = 1.5
#: A colour is white from here on in each of its parts, of 255.
WHITE_PART = 247
#: A place of the drawn page is blank where nothing is darker than this, of 255.
BLANK = 235
#: The invisible mode of drawing text, PDF 32000-1 table 106.
INVISIBLE = 3
#: Forms within forms are followed this deep, and a page's objects up to this many: a page is to be read in useful time.
DEEPEST, MOST_OBJECTS = 8, 100_000
#: Drawn lines, or rows of text with a gap in them, from which on a page is searched for tables.
FEWEST_RULES, FEWEST_GAPS = 3, 3
#: The share of a table's letters that its place in the text has too; with fewer the table is left as it is drawn.
SAME_LETTERS = 0.97
#: Rows of a table without ruling lines from which on it may be text in columns.
FEWEST_COLUMN_LINES = 6
#: Longer lines are not headings; their ends are enough to tell their size.
LONGEST_STYLED = 90
BOLD = re.compile(r"bold|black|heavy|semibold|demi", re.IGNORECASE)
#: pdfium writes U+FFFE for a hyphen that ends a line, and no line end after it.
LINE_END = re.compile(r"\r\n|[\r\n\ufffe]")
REPORT = "Text that a reader of this page does not see was left out ({kinds}): “{text}”."
LONGEST_REPORT = 120


@dataclass(frozen=True, slots=True)
class TextObject:
    """A piece of text that is drawn at once: where its baseline begins, its size and box in points, how it looks."""

    #: Its place in the order of drawing.
    order: int
    x: float
    y: float
    size: float
    box: Box
    is_bold: bool
    is_white: bool
    is_invisible: bool
    #: Runs from left to right.
    is_level: bool


def page_box_of(page: Any) -> Box:
    """Return the box of a page. Where the page itself has none it has that of all pages, which only its bounds know."""
    box: Box | None = page.get_mediabox(fallback_ok=False)
    return box or page.get_bbox()


class PageObjects:
    """The objects of an open pypdfium2 page. Raises what pypdfium2 raises."""

    def __init__(self, page: Any) -> None:
        #: By address, in the order in which they are drawn.
        self.texts: dict[int, TextObject] = {}
        #: Paths of the page itself, which may be the lines of tables.
        self.paths: list[Any] = []
        self.rules = 0
        #: Where its large pictures are: left, bottom, right, top.
        self.pictures: list[Box] = []
        self.has_pictures = False
        self.page_box: Box = page_box_of(page)
        self._is_bold: dict[int, bool] = {}
        self._left = MOST_OBJECTS
        count = pdfium.FPDFPage_CountObjects(page)
        self._add((pdfium.FPDFPage_GetObject(page, index) for index in range(count)), None, 0)

    def _add(self, items: Iterator[Any], within: Matrix | None, depth: int) -> None:
        for item in items:
            self._left -= 1
            if self._left < 0:
                return
            kind = pdfium.FPDFPageObj_GetType(item)
            if kind == pdfium.FPDF_PAGEOBJ_TEXT:
                self.texts[ctypes.addressof(item.contents)] = self._text(item, within)
            elif kind == pdfium.FPDF_PAGEOBJ_PATH:
                # A line has two segments, a rectangle four or five.
                self.rules += max(1, pdfium.FPDFPath_CountSegments(item) // 4)
                if depth == 0:
                    self.paths.append(item)
            elif kind == pdfium.FPDF_PAGEOBJ_IMAGE:
                self.has_pictures = True
                self._add_picture(item, within)
            elif kind == pdfium.FPDF_PAGEOBJ_FORM:
                self.has_pictures = True
                if depth < DEEPEST:
                    count = max(pdfium.FPDFFormObj_CountObjects(item), 0)
                    inner = (pdfium.FPDFFormObj_GetObject(item, index) for index in range(count))
                    self._add(inner, _combined(_matrix_of(item), within), depth + 1)

    def _text(self, item: Any, within: Matrix | None) -> TextObject:
        matrix = _combined(_matrix_of(item), within)
        size = ctypes.c_float()
        pdfium.FPDFTextObj_GetFontSize(item, size)
        left, bottom, right, top = (ctypes.c_float() for _ in range(4))
        pdfium.FPDFPageObj_GetBounds(item, left, bottom, right, top)
        box = left.value, bottom.value, right.value, top.value
        red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
        has_colour = bool(pdfium.FPDFPageObj_GetFillColor(item, red, green, blue, alpha))
        mode = pdfium.FPDFTextObj_GetTextRenderMode(item)
        return TextObject(
            order=len(self.texts),
            x=matrix[4],
            y=matrix[5],
            size=size.value * abs(matrix[3] or matrix[1]),
            box=box if within is None else _moved(box, within),
            is_bold=self._has_bold_font(item),
            is_white=has_colour and min(red.value, green.value, blue.value) >= WHITE_PART,
            is_invisible=mode == INVISIBLE or (has_colour and alpha.value == 0),
            is_level=matrix[0] > 0 and abs(matrix[1]) < 0.01 * matrix[0],
        )

    def _has_bold_font(self, item: Any) -> bool:
        font = pdfium.FPDFTextObj_GetFont(item)
        if not font:
            return False
        address = ctypes.addressof(font.contents)
        if address not in self._is_bold:
            name = ctypes.create_string_buffer(128)
            pdfium.FPDFFont_GetBaseFontName(font, name, len(name))
            self._is_bold[address] = BOLD.search(name.value.decode("utf-8", "replace")) is not None
        return self._is_bold[address]

    def _add_picture(self, item: Any, within: Matrix | None) -> None:
        matrix = _combined(_matrix_of(item), within)
        width, height = ctypes.c_uint(), ctypes.c_uint()
        pdfium.FPDFImageObj_GetImagePixelSize(item, width, height)
        if is_large(matrix, width.value * height.value, self.page_box):
            self.pictures.append(_moved((0.0, 0.0, 1.0, 1.0), matrix))

    def may_have_tables(self) -> bool:
        """Tell whether lines are drawn, or several rows of text have a gap in them as between columns."""
        if self.rules >= FEWEST_RULES:
            return True
        rows = {
            round(after.y)
            for before, after in pairwise(self.texts.values())
            if abs(before.y - after.y) < 0.2 * max(after.size, 1.0)
            and after.box[0] - before.box[2] > max(after.size, 4.0)
        }
        return len(rows) >= FEWEST_GAPS


def read_page(page: Any, draw: Callable[[], Any], table_above: PageTable | None = None) -> RawPage:
    """Read an open pypdfium2 page without what a reader does not see.

    `draw` gives the page as a picture of one pixel a point, or None; it is called where white letters may be hidden.
    `table_above` is the last table of the page before, which may go on here. Raises what pypdfium2 raises.
    """
    objects = PageObjects(page)
    text_page = page.get_textpage()
    try:
        text = _text_of(text_page)
        hidden = _hidden_letters(page, text_page, text, objects, draw)
        letters = list(text)
        for index in hidden.letters:
            letters[index] = ""
        tables: list[PageTable] = []
        if objects.may_have_tables() and page.get_rotation() == 0:
            masked = "".join(letter or " " for letter in letters) if hidden.letters else text
            words = place_words(text_page, masked)
            tables = tables_among([word.word for word in words], rules_of(objects.paths))
            if tables and table_above is not None and tables[0].goes_on_from(table_above):
                tables[0] = tables[0].with_heads_of(table_above)
            _put_tables(letters, text, words, tables)
        _put_spaces(text_page, text, letters, objects.texts)
        lines, styles = _styled_lines(text_page, text, letters, objects.texts)
    finally:
        text_page.close()
    return RawPage(
        "\n".join(lines),
        styles=styles,
        warnings=[hidden.report] if hidden.report else [],
        has_hidden=bool(hidden.letters),
        pictures=objects.pictures,
        last_table=tables[-1] if tables else None,
    )


def _text_of(text_page: Any) -> str:
    """Return the text of a page, a character for each index by which pdfium knows it."""
    count = text_page.count_chars()
    text: str = text_page.get_text_range(0, count, errors="ignore") if count else ""
    if len(text) == count:
        return text
    codes = (pdfium.FPDFText_GetUnicode(text_page, index) for index in range(count))
    return "".join(chr(code) if 0 < code < 0x110000 else " " for code in codes)


@dataclass(frozen=True)
class HiddenText:
    """The indexes of letters that a reader does not see, and a sentence on them for the admin."""

    letters: Sequence[int] = ()
    report: str = ""


NOTHING_HIDDEN = HiddenText()


def _hidden_letters(page: Any, text_page: Any, text: str, objects: PageObjects, draw: Callable[[], Any]) -> HiddenText:
    left, bottom, right, top = objects.page_box
    reasons: dict[int, str] = {}
    white: list[int] = []
    for address, item in objects.texts.items():
        box = item.box
        if item.is_invisible:
            # Over a scan the invisible text is what text recognition read in the picture.
            if not objects.has_pictures:
                reasons[address] = "invisible"
        elif 0 < item.size < SMALLEST and box[3] - box[1] < 2 * SMALLEST:
            reasons[address] = "microscopic"
        elif box[0] > right or box[2] < left or box[1] > top or box[3] < bottom:
            reasons[address] = "off the page"
        elif item.is_white:
            white.append(address)
    if not reasons and not white:
        return NOTHING_HIDDEN
    owners = _owners(text_page, text)
    counts = Counter(owner for owner, letter in zip(owners, text, strict=True) if not letter.isspace())
    doubtful = [address for address, reason in reasons.items() if reason != "invisible"]
    if sum(counts[address] for address in doubtful) > counts.total() / 2:
        # When most of a page seems hidden, its measures are read wrongly.
        for address in doubtful:
            del reasons[address]
    if white and (picture := draw()) is not None:
        for address in white:
            if _is_blank(picture, objects.texts[address].box, page.get_bbox(), page.get_rotation() % 360):
                reasons[address] = "white"
    hidden = [index for index, owner in enumerate(owners) if owner in reasons]
    if not any(not text[index].isspace() for index in hidden):
        return NOTHING_HIDDEN
    kinds = {reasons[owners[index]] for index in hidden}
    pieces = [text[index] + ("" if owners[index] == owners[after] else " ") for index, after in pairwise(hidden)]
    said = " ".join("".join([*pieces, text[hidden[-1]]]).split())
    shown = said if len(said) <= LONGEST_REPORT else said[: LONGEST_REPORT - 1] + "…"
    return HiddenText(hidden, REPORT.format(kinds=", ".join(sorted(kinds)), text=shown))


def _owners(text_page: Any, text: str) -> list[int]:
    """Return the address of the object that draws each letter; 0 for letters that pdfium adds."""
    return [_owner(text_page, index) for index in range(len(text))]


def _is_blank(picture: Any, region: Box, page_box: Box, rotation: int) -> bool:
    """Tell whether there is nothing but white in a region of the drawn page."""
    left, bottom, right, top = page_box
    width, height = right - left, top - bottom
    corners = []
    for x, y in ((region[0] - left, region[1] - bottom), (region[2] - left, region[3] - bottom)):
        corners.append({90: (y, x), 180: (width - x, y), 270: (height - y, width - x)}.get(rotation, (x, height - y)))
    (first_x, first_y), (second_x, second_y) = corners
    area = (
        max(0, int(min(first_x, second_x))),
        max(0, int(min(first_y, second_y))),
        min(picture.width, int(max(first_x, second_x)) + 1),
        min(picture.height, int(max(first_y, second_y)) + 1),
    )
    if area[0] >= area[2] or area[1] >= area[3]:
        return True
    darkest, _ = picture.crop(area).convert("L").getextrema()
    return bool(darkest >= BLANK)


def _put_tables(letters: list[str], text: str, words: Sequence[PlacedWord], tables: Sequence[PageTable]) -> None:
    """Put each table as rows in the place of its first word, and take its other words out of the text."""
    for table in tables:
        left, bottom, right, top = table.box
        inside = [
            placed
            for placed in words
            if left - 4 <= placed.word.box[0] <= right + 4 and bottom - 1 <= placed.word.middle <= top + 1
        ]
        held = Counter("".join(placed.word.text for placed in inside))
        wanted = Counter("".join(table.source.split()))
        if not inside or (held & wanted).total() < SAME_LETTERS * max(held.total(), wanted.total()):
            continue
        if not table.is_ruled and _is_drawn_by_column(inside, table):
            continue
        for placed in inside:
            letters[placed.start : placed.end] = [""] * (placed.end - placed.start)
        first = min(placed.start for placed in inside)
        line = max(text.rfind("\n", 0, first), text.rfind("\ufffe", 0, first)) + 1
        begins = not "".join(letters[line:first]).strip()
        letters[first] = ("" if begins else "\n") + "\n".join(table.lines()) + "\n\n"


def _is_drawn_by_column(words: Sequence[PlacedWord], table: PageTable) -> bool:
    """Tell whether each column is drawn to its end before the next, as columns of text are."""
    columns = [bisect_right(table.lefts, placed.word.box[0] + 2) for placed in words]
    changes = sum(before != after for before, after in pairwise(columns))
    return len(table.rows) >= FEWEST_COLUMN_LINES and changes < len(table.rows) / 2


def _styled_lines(
    text_page: Any, text: str, letters: Sequence[str], texts: dict[int, TextObject]
) -> tuple[list[str], dict[str, Style]]:
    """Return the lines of a page and how they are set, by their content."""
    # Word draws an empty paragraph as a space on a line of its own.
    blanks = [item for item in texts.values() if _is_space(item)]
    lines: list[str] = []
    styles: dict[str, Style] = {}
    above: _Line | None = None
    for start, end, is_broken in _line_spans(text):
        content = "".join(letters[start:end])
        line = _sampled(text_page, text, start, end, texts) if content.strip() and "\n" not in content else None
        content = normalise_characters(f"{content}-\n" if is_broken else f"{content}\n").removesuffix("\n")
        if line is not None and above is not None and line.goes_on_from(above):
            content = f"{lines.pop()}{line.space_after(above)}{content}"
            line = replace(line, first=above.first, style=above.style)
        elif line is not None and above is not None and blanks and _has_between(blanks, above, line):
            lines.append("")
        lines.append(content)
        if line is not None and content:
            styles.setdefault(content, line.style)
        above = line
    return lines, styles


@dataclass(frozen=True, slots=True)
class _Line:
    """The first and the last object of a line, each with its place in the order of drawing, and how it is set."""

    first: TextObject
    last: TextObject
    style: Style

    def goes_on_from(self, above: _Line) -> bool:
        """Tell whether it is the rest of the line above: pdfium ends a line at a raised figure."""
        return (
            above.first.is_level
            and self.first.is_level
            and abs(above.first.y - self.first.y) < 0.1 * self.first.size
            and above.first.x < above.last.box[2] <= self.first.box[0] + 0.3 * self.first.size
            and self.first.box[0] < above.last.box[2] + self.first.size
        )

    def space_after(self, above: _Line) -> str:
        is_raised = abs(above.last.y - self.first.y) > 0.1 * self.first.size
        return "" if is_raised and self.first.box[0] - above.last.box[2] < 0.2 * self.first.size else " "


def _is_space(item: TextObject) -> bool:
    """Tell whether an object is a space: pdfium gives it no width and leaves it out of the text."""
    return item.box[2] - item.box[0] < 0.01


def _put_spaces(text_page: Any, text: str, letters: list[str], texts: dict[int, TextObject]) -> None:
    """Put a space where one is drawn by itself between two words and the gap is too small for pdfium to tell."""
    items = list(texts.items())
    for (_, before), (_, space), (address, after) in zip(items, items[1:], items[2:], strict=False):
        if not _is_space(space) or abs(after.y - before.y) > 0.1 or not after.is_level:
            continue
        if not 0.1 * after.size < after.x - space.x < after.size:
            continue
        left, bottom, right, top = after.box
        x, y = left + min(right - left, after.size) / 4, (bottom + top) / 2
        index = pdfium.FPDFText_GetCharIndexAtPos(text_page, x, y, 1.0, 2.0)
        while index > 0 and _owner(text_page, index - 1) == address:
            index -= 1
        if index > 0 and _owner(text_page, index) == address and not text[index - 1].isspace():
            letters[index] = f" {letters[index]}"


def _owner(text_page: Any, index: int) -> int:
    item = pdfium.FPDFText_GetTextObject(text_page, index)
    return ctypes.addressof(item.contents) if item else 0


def _has_between(blanks: Sequence[TextObject], above: _Line, line: _Line) -> bool:
    """Tell whether an empty line was drawn between two lines."""
    high, low = above.last.y, line.first.y
    return any(
        low + 0.3 * item.size < item.y < high - 0.3 * item.size and above.last.order < item.order < line.first.order
        for item in blanks
    )


def _line_spans(text: str) -> Iterator[tuple[int, int, bool]]:
    """Return start and end of each line, and whether a hyphen ends it."""
    start = 0
    for end in LINE_END.finditer(text):
        yield start, end.start(), end[0] == "\ufffe"
        start = end.end()
    yield start, len(text), False


def _sampled(text_page: Any, text: str, start: int, end: int, texts: dict[int, TextObject]) -> _Line | None:
    """Describe a line by the objects of some of its letters; all of them would take too long."""
    line = text[start:end]
    first, last = start + len(line) - len(line.lstrip()), start + len(line.rstrip()) - 1
    ends = [_owner(text_page, first), _owner(text_page, last)]
    if ends[0] == ends[1] or last - first >= LONGEST_STYLED:
        addresses = ends
    else:
        places = (first + (last - first) * part // 4 for part in (1, 2, 3))
        addresses = [ends[0], *(_owner(text_page, index) for index in places), ends[1]]
    seen = [texts[address] for address in addresses if address in texts]
    if not seen:
        return None
    sizes = [found.size for found in seen]
    return _Line(seen[0], seen[-1], Style(max(sizes, key=sizes.count), all(found.is_bold for found in seen)))


def _matrix_of(item: Any) -> Matrix:
    matrix = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(item, matrix):
        return 1.0, 0.0, 0.0, 1.0, 0.0, 0.0
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def _combined(inner: Matrix, outer: Matrix | None) -> Matrix:
    """Return the matrix on the page of an object within a form."""
    if outer is None:
        return inner
    a, b, c, d, e, f = inner
    A, B, C, D, E, F = outer
    return a * A + b * C, a * B + b * D, c * A + d * C, c * B + d * D, e * A + f * C + E, e * B + f * D + F


def _moved(box: Box, matrix: Matrix) -> Box:
    """Return the box around a box that a matrix moves, turns or stretches."""
    a, b, c, d, e, f = matrix
    corners = [(x, y) for x in (box[0], box[2]) for y in (box[1], box[3])]
    xs = [a * x + c * y + e for x, y in corners]
    ys = [b * x + d * y + f for x, y in corners]
    return min(xs), min(ys), max(xs), max(ys)
