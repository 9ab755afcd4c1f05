"""Read a page's text with pdfium: only the visible text, tables as rows, and the style of each line.

pdfium returns a page's text in a single call, in drawing order. Its objects (pieces of text, lines, pictures) show what
needs a closer look, character by character: hidden text and tables. Hidden text is left out, because answers would
otherwise quote text nobody was meant to read.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pypdfium2.raw as pdfium

from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.korean_lines import with_whole_words
from rag.ingestion.loaders.page_marks import around, line_boxes, parts_of_page
from rag.ingestion.loaders.page_tables import PageTable, RulingLines, Word, tables_among
from rag.ingestion.loaders.page_text import (
    STRUCK_TEXT,
    UNREAD_TEXT,
    UNSURE_ORDER,
    RawPage,
    Style,
    letters_in,
    shortened,
)
from rag.ingestion.loaders.pdf_annotations import Annotations, PlacedAddition, place_additions, put_additions
from rag.ingestion.loaders.pdf_boxes import boxes_apart
from rag.ingestion.loaders.pdf_columns import (
    SAME_EDGE,
    Columns,
    Span,
    columns_among,
    columns_in_order,
    lines_have_gaps,
    may_have_columns,
    ordered_spans,
)
from rag.ingestion.loaders.pdf_composed import SYMBOL_FONT, composed_text
from rag.ingestion.loaders.pdf_direction import (
    has_words_from_the_right,
    is_from_the_right,
    is_page_from_the_right,
    ordered_words,
    put_line,
    put_phrases,
)
from rag.ingestion.loaders.pdf_fixed import fixed_width_tables
from rag.ingestion.loaders.pdf_objects import Box, TextObject
from rag.ingestion.loaders.pdf_raised import (
    SmallRun,
    drawn_small,
    mark_runs,
    set_on_lines,
    small_runs,
    with_small_letters,
    written_lines,
)
from rag.ingestion.loaders.pdf_struck import struck_text
from rag.ingestion.loaders.pdf_turned import (
    TurnedWord,
    put_turned_lines,
    take_out,
    turn_of,
    turned_box,
    turned_rules,
    turned_words,
    upright_heads,
)
from rag.ingestion.loaders.pdf_words import LINE_END, RUN, PlacedWord, box_of, place_words, rules_of
from rag.ingestion.loaders.pictures import is_large
from rag.language import N_
from rag.types import MarkKind, PageMark

Matrix = tuple[float, float, float, float, float, float]

#: Smaller text is unreadable, in points; footnotes have 6, microprint has 1.
SMALLEST = 1.5
#: A colour is white if each of its parts reaches this value, of 255.
WHITE_PART = 247
#: A place on the drawn page is blank if everything is lighter than this, of 255.
BLANK = 235
#: The invisible mode for drawing text, PDF 32000-1 table 106.
INVISIBLE = 3
#: The deepest nesting of forms, and the most objects read on a page, to limit the time.
DEEPEST, MOST_OBJECTS = 8, 100_000
#: Drawn lines, or rows of text with a gap, required before a page is searched for tables.
FEWEST_RULES, FEWEST_GAPS = 3, 3
#: Share of a table's letters which its place in the text must contain; else the table stays as drawn.
SAME_LETTERS = 0.97
#: With at least this many rows, a table without ruling lines may be text in columns.
FEWEST_COLUMN_LINES = 6
#: Longer lines are no headings; their ends are enough to tell their size.
LONGEST_STYLED = 90
#: Gaps from baseline to baseline, in letter sizes: a smaller gap is the same line; the usual gap (CSS and Word set 1.2)
#: if a page has too few lines; and how much wider a gap between paragraphs is (Word's 8 points below an 11-point
#: paragraph make 1.55 times).
SAME_LINE_GAP, USUAL_LINE_GAP, WIDER_GAP = 0.6, 1.2, 1.25
FEWEST_LINE_GAPS = 4
BOLD = re.compile(r"bold|black|heavy|semibold|demi", re.IGNORECASE)
#: Names for fonts with a fixed width, and the flag, PDF 32000-1 table 121.
FIXED, FIXED_FLAG = re.compile(r"mono|courier|consol|menlo|cmtt|typewriter", re.IGNORECASE), 1
REPORT = "Text that a reader of this page does not see was left out ({kinds}): “{text}”."
LONGEST_REPORT = 120


def page_box_of(page: Any) -> Box:
    """Return the part of a page shown by viewers: its CropBox (or an inherited box), cut to the MediaBox."""
    box: Box = page.get_bbox()
    return box


class PageObjects:
    """The objects on an open pypdfium2 page. Raises pypdfium2's errors."""

    def __init__(self, page: Any) -> None:
        #: By address, in drawing order.
        self.texts: dict[int, TextObject] = {}
        #: The page's paths, which may be table lines.
        self.paths: list[Any] = []
        self.rules = 0
        #: Boxes of large pictures: left, bottom, right, top.
        self.pictures: list[Box] = []
        self.has_pictures = False
        self.page_box: Box = page_box_of(page)
        self._fonts: dict[int, tuple[bool, bool]] = {}
        #: Whether the page has symbol fonts from TeX.
        self.has_symbols = False
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
        font = self._font_of(item)
        return TextObject(
            order=len(self.texts),
            x=matrix[4],
            y=matrix[5],
            size=size.value * max(abs(matrix[3]), abs(matrix[1])),
            box=box if within is None else _moved(box, within),
            is_bold=font[0],
            is_fixed=font[1],
            is_white=has_colour and min(red.value, green.value, blue.value) >= WHITE_PART,
            is_invisible=mode == INVISIBLE or (has_colour and alpha.value == 0),
            is_level=matrix[0] > 0 and abs(matrix[1]) < 0.01 * matrix[0],
            turn=turn_of(matrix[0], matrix[1], matrix[3]),
        )

    def _font_of(self, item: Any) -> tuple[bool, bool]:
        """Return whether the font is bold, and whether it has a fixed width."""
        font = pdfium.FPDFTextObj_GetFont(item)
        if not font:
            return False, False
        address = ctypes.addressof(font.contents)
        if address not in self._fonts:
            buffer = ctypes.create_string_buffer(128)
            pdfium.FPDFFont_GetBaseFontName(font, buffer, len(buffer))
            name = buffer.value.decode("utf-8", "replace")
            flags = max(pdfium.FPDFFont_GetFlags(font), 0)
            self.has_symbols |= SYMBOL_FONT.search(name) is not None
            is_fixed = FIXED.search(name) is not None or flags & FIXED_FLAG == FIXED_FLAG
            self._fonts[address] = BOLD.search(name) is not None, is_fixed
        return self._fonts[address]

    def _add_picture(self, item: Any, within: Matrix | None) -> None:
        matrix = _combined(_matrix_of(item), within)
        width, height = ctypes.c_uint(), ctypes.c_uint()
        pdfium.FPDFImageObj_GetImagePixelSize(item, width, height)
        if is_large(matrix, width.value * height.value, self.page_box):
            self.pictures.append(_moved((0.0, 0.0, 1.0, 1.0), matrix))

    def may_have_tables(self) -> bool:
        """Whether lines are drawn, or several rows of text have a gap like between columns."""
        if self.rules >= FEWEST_RULES:
            return True
        rows = {
            round(after.y)
            for before, after in pairwise(self.texts.values())
            if abs(before.y - after.y) < 0.2 * max(after.size, 1.0)
            and max(after.box[0] - before.box[2], before.box[0] - after.box[2]) > max(after.size, 4.0)
        }
        return len(rows) >= FEWEST_GAPS or self._has_turned_gaps()

    def _has_turned_gaps(self) -> bool:
        rows: Counter[int] = Counter()
        for before, after in pairwise(self.texts.values()):
            if before.turn != after.turn or not after.turn:
                continue
            one, other = turned_box(before.box, after.turn), turned_box(after.box, after.turn)
            if abs(one[1] - other[1]) < 0.5 * after.size and other[0] - one[2] > max(after.size, 4.0):
                rows[round(other[1])] += 1
        return len(rows) >= FEWEST_GAPS

    def main_turn(self) -> int:
        """Return the turn with the most text."""
        lengths: Counter[int] = Counter()
        for item in self.texts.values():
            lengths[item.turn] += round(max(item.box[2] - item.box[0], item.box[3] - item.box[1]))
        return lengths.most_common(1)[0][0] if lengths else 0


def read_page(
    page: Any,
    draw: Callable[[], Any],
    table_above: PageTable | None = None,
    annotations: Annotations | None = None,
    *,
    has_paragraphs_by_gaps: bool = False,
) -> RawPage:
    """Read an open pypdfium2 page without hidden text.

    `draw` returns the page as a picture with one pixel per point, or `None`; it is called if white letters may be
    hidden. `table_above` is the last table on the previous page, which may continue here; `annotations` lie on the
    page. With `has_paragraphs_by_gaps`, an empty line is added at each gap wider than usual. Raises pypdfium2's errors.
    """
    annotations = annotations or Annotations()
    objects = PageObjects(page)
    text_page = page.get_textpage()
    try:
        text = composed_text(text_page, _text_of(text_page), has_symbols=objects.has_symbols)
        is_from_right = has_words_from_the_right(text)
        text = ordered_words(text_page, text) if is_from_right else text
        hidden = _hidden_letters(page, text_page, text, objects, draw)
        letters = list(text)
        for index in hidden.letters:
            letters[index] = ""
        struck = struck_text(
            objects.paths,
            annotations.struck,
            objects.texts.items(),
            lambda address: _placed_letters(text_page, text, address, objects.texts[address]),
        )
        struck_words = _words_of(text, letters, struck.letters)
        for index in struck.letters:
            letters[index] = ""
        places: list[tuple[MarkKind, Box]] = [("left out", box) for box in annotations.commented]
        for indexes in (hidden.letters, struck.letters):
            boxes = (box_of(text_page, index) for index in sorted(indexes) if not text[index].isspace())
            places += [("left out", box) for box in line_boxes(box for box in boxes if box is not None)]
        runs = _small_runs(text_page, text, letters, objects.texts)
        tables: list[PageTable] = []
        words: list[PlacedWord] = []
        is_turned = page.get_rotation() != 0
        turned = _turned_words(text_page, text, letters, objects.texts)
        may_have_tables = objects.may_have_tables()
        is_crossed = (not turned or objects.main_turn() == 0) and (
            may_have_columns(objects.texts.values()) or lines_have_gaps(text_page, text)
        )
        columns: list[Columns] = []
        if may_have_tables or is_crossed or annotations.additions:
            masked = _masked(text, letters, turned) if hidden.letters or struck.letters or turned else text
            words = place_words(text_page, masked)
            words = with_small_letters(words, masked, runs) if runs else words
        mark_runs(letters, runs)
        additions = place_additions(annotations.additions, words, objects.page_box, is_turned=is_turned)
        places += [("note", placed.addition.box) for placed in additions]
        as_tables: list[Box] = []
        in_lists = set() if turned else _put_lists(text_page, text, letters, objects, as_tables)
        if may_have_tables or is_crossed:
            paths = [item for item in objects.paths if item not in struck.paths] if struck.paths else objects.paths
            rules = rules_of(paths)
            if turned:
                if is_crossed:
                    loose = tables_among([placed.word for placed in words], rules)
                    columns = columns_among(words, loose, _Drawing(text_page))
                tables = _put_turned(
                    letters, text, turned, words, rules, table_above, objects.main_turn(), as_tables, columns
                )
            else:
                listed = _listings(text_page, text, objects.texts, rules)
                listed |= in_lists
                words = [placed for placed in words if placed.start not in listed] if listed else words
                fitting = [] if is_turned else additions
                boxed = boxes_apart(words, rules)
                held = {placed.start for boxes in boxed for part in boxes.parts for placed in part}
                words = [placed for placed in words if placed.start not in held] if held else words
                tables, within = _tables_with(words, fitting, rules) if may_have_tables else ([], [])
                if not all(table.has_grid for table in tables):
                    grids = [table for table in tables if table.has_grid]
                    in_order = columns_in_order(words, grids, _Drawing(text_page))
                    if in_order:
                        taken = {placed.start for column in in_order for placed in column}
                        free = [placed for placed in words if placed.start not in taken]
                        tables, within = _tables_with(free, fitting, rules)
                        for column in in_order:
                            tables += tables_among([placed.word for placed in column], rules)
                if is_crossed:
                    columns = columns_among(words, tables, _Drawing(text_page))
                    tables = [table for table in tables if not _holds_columns(table, columns)]
                columns += boxed
                additions = [placed for placed in additions if placed not in within]
                words += [placed.word() for placed in within]
                tables = _going_on(tables, table_above)
                _put_tables(letters, text, words, tables, as_tables)
        else:
            for found in turned.values():
                put_turned_lines(letters, text, found)
        _put_spaces(text_page, text, letters, objects.texts)
        below = put_additions(letters, text, additions)
        spans = ordered_spans(list(_line_spans(text)), columns)
        if is_from_right:
            has_lines = is_page_from_the_right(text[start:end] for start, end, _ in spans)
            for start, end, _ in spans:
                if has_lines:
                    put_line(text_page, letters, start, end)
                put_phrases(text_page, letters, start, end)
        lines, styles, gaps, boxes_of_lines = _styled_lines(text_page, spans, text, letters, objects.texts)
        if has_paragraphs_by_gaps:
            lines, boxes_of_lines = _parted(lines, gaps, boxes_of_lines)
        lines, styles = written_lines(lines, styles)
        if HANGUL.search(text):
            whole = with_whole_words(lines, boxes_of_lines)
            styles |= {new: styles[old] for old, new in zip(lines, whole, strict=True) if old in styles}
            lines = whole
        convert = parts_of_page(page)
        places += [("table", box) for box in as_tables]
    finally:
        text_page.close()
    read = "\n".join([*lines, *below])
    left_out = {*hidden.letters, *struck.letters}
    drawn = "".join(" " if index in left_out else letter for index, letter in enumerate(text)) if left_out else text
    unread = (Counter(letters_in(drawn)) - Counter(letters_in(read))).total()
    return RawPage(
        read,
        styles=styles,
        warnings=[
            *([hidden.report] if hidden.report else []),
            *([STRUCK_TEXT.format(text=shortened(struck_words))] if struck_words else []),
            *annotations.warnings(),
            *([UNSURE_ORDER] if any(found.is_doubtful for found in columns) else []),
            *([UNREAD_TEXT[unread > 1].format(count=f"{unread:,}")] if unread else []),
        ],
        has_hidden=bool(hidden.letters or struck.letters),
        pictures=objects.pictures,
        last_table=tables[-1] if tables else None,
        marks=[PageMark(kind, *parts) for kind, box in places if (parts := convert(box)) is not None],
        line_places=_positions(lines, {line: convert(box) for line, box in boxes_of_lines.items()}),
    )


HANGUL = re.compile("[\uac00-\ud7a3]")


@dataclass(frozen=True)
class _Drawing:
    """A page's words, as drawn."""

    text_page: Any

    def cut(self, placed: PlacedWord, edge: float) -> tuple[PlacedWord, PlacedWord] | None:
        left, bottom, right, top = placed.word.box
        for index in placed.indexes[1:]:
            box = box_of(self.text_page, index)
            if box is None or box[0] < edge - SAME_EDGE:
                continue
            before = box_of(self.text_page, index - 1)
            is_apart = _owner(self.text_page, index - 1) != _owner(self.text_page, index)
            if before is None or not is_apart or before[2] > edge + 0.15 * placed.word.height:
                return None
            split = index - placed.start
            return (
                PlacedWord(Word(placed.word.text[:split], (left, bottom, before[2], top)), placed.start, index),
                PlacedWord(Word(placed.word.text[split:], (box[0], bottom, right, top)), index, placed.end),
            )
        return None

    def is_one(self, before: PlacedWord, after: PlacedWord) -> bool:
        return _owner(self.text_page, before.end - 1) == _owner(self.text_page, after.start)


def _holds_columns(table: PageTable, sets: Sequence[Columns]) -> bool:
    return any(
        placed.word.box[0] >= table.box[0] - 1
        and placed.word.box[2] <= table.box[2] + 1
        and table.box[1] <= placed.word.middle <= table.box[3]
        for columns in sets
        for part in columns.parts
        for placed in part
    )


def _positions(lines: Sequence[str], places: dict[int, Box | None]) -> dict[int, Box]:
    """Return text positions by line number; a table has several lines."""
    found: dict[int, Box] = {}
    position = 0
    for index, line in enumerate(lines):
        if (place := places.get(index)) is not None:
            found[position] = place
        position += 1 + line.count("\n")
    return found


def _going_on(tables: list[PageTable], table_above: PageTable | None) -> list[PageTable]:
    """Give the first table the heads from the previous page if it continues a table there."""
    if tables and table_above is not None and tables[0].goes_on_from(table_above):
        return [tables[0].with_heads_of(table_above), *tables[1:]]
    return tables


def _turned_words(
    text_page: Any, text: str, letters: Sequence[str], texts: dict[int, TextObject]
) -> dict[int, list[TurnedWord]]:
    """Return the words not running from left to right, by turn."""
    if not any(item.turn for item in texts.values()):
        return {}
    found: dict[int, list[tuple[int, str, Box]]] = {}
    for run in RUN.finditer(text):
        # Words are seldom turned in part, and most words on a page with a turned note are level.
        if not _turn_at(text_page, run.start(), texts):
            continue
        for index, letter in enumerate(run[0], run.start()):
            turn = _turn_at(text_page, index, texts)
            if letters[index] and turn and (box := box_of(text_page, index)) is not None:
                found.setdefault(turn, []).append((index, "-" if letter == "\ufffe" else letter, box))
    return {turn: turned_words(placed, turn) for turn, placed in found.items()}


def _turn_at(text_page: Any, index: int, texts: dict[int, TextObject]) -> int:
    item = texts.get(_owner(text_page, index))
    return item.turn if item is not None else 0


def _masked(text: str, letters: Sequence[str], turned: dict[int, list[TurnedWord]]) -> str:
    """Return the text with a blank for each omitted or turned letter."""
    masked = [text[index] if letter else " " for index, letter in enumerate(letters)]
    for words in turned.values():
        for word in words:
            for index in word.indexes:
                masked[index] = " "
    return "".join(masked)


def _put_turned(
    letters: list[str],
    text: str,
    turned: dict[int, list[TurnedWord]],
    level: Sequence[PlacedWord],
    rules: RulingLines,
    table_above: PageTable | None,
    main: int,
    as_tables: list[Box],
    columns: Sequence[Columns],
) -> list[PageTable]:
    """Put tables and other turned words in their places; return the tables in the frame `main`, not those of `columns`.

    Adds the boxes of these tables to `as_tables`.
    """
    frames: dict[int, list[PlacedWord | TurnedWord]] = {0: list(level)}
    frames |= {turn: list(words) for turn, words in turned.items()}
    free: dict[int, list[TurnedWord]] = {}
    for turn, words in frames.items():
        if turn == main:
            continue
        tables = tables_among([placed.word for placed in words], turned_rules(rules, turn))
        taken = _put_tables(letters, text, words, tables, as_tables, turn)
        free[turn] = [
            TurnedWord(placed.word, tuple(placed.indexes)) for placed in words if placed.indexes[0] not in taken
        ]
    of_main = list(frames.get(main, []))
    upright = [placed.word for placed in of_main]
    for turn, found in free.items():
        if (turn - main) % 2:
            of_main += upright_heads(found, turn, main, rules, upright)
    tables = tables_among([placed.word for placed in of_main], turned_rules(rules, main))
    tables = [table for table in tables if not _holds_columns(table, columns)]
    tables = _going_on(tables, table_above)
    taken = _put_tables(letters, text, of_main, tables, as_tables, main)
    for turn, found in free.items():
        if turn:
            put_turned_lines(letters, text, [word for word in found if word.indexes[0] not in taken])
    return tables


def _words_of(text: str, letters: Sequence[str], indexes: Sequence[int]) -> str:
    """Return the words at indexes in a page's text, in order, if they are still there."""
    pieces: list[str] = []
    last = -1
    for index in indexes:
        if letters[index]:
            pieces.append(text[index] if index == last + 1 else f" {text[index]}")
            last = index
    return " ".join("".join(pieces).replace("\ufffe", "-").split())


def _tables_with(
    words: Sequence[PlacedWord], additions: Sequence[PlacedAddition], rules: RulingLines
) -> tuple[list[PageTable], list[PlacedAddition]]:
    """Find a page's tables, and the additions in their cells.

    Only ruled tables take additions, because a label and its field are no table row.
    """
    own = [placed.word for placed in words]
    values = [placed for placed in additions if not placed.addition.is_apart and placed.index >= 0]
    if values:
        tables = tables_among([*own, *(placed.word().word for placed in values)], rules)
        within = {table: [placed for placed in values if _is_within(placed, table)] for table in tables}
        if all(table.is_ruled or not within[table] for table in tables):
            return tables, [placed for table in tables for placed in within[table]]
    return tables_among(own, rules), []


def _listings(text_page: Any, text: str, texts: dict[int, TextObject], rules: RulingLines) -> set[int]:
    """Return the indexes for lines in a fixed-width font on a page with other fonts, without lines in ruled tables."""
    fixed = sum(item.box[2] - item.box[0] for item in texts.values() if item.is_fixed)
    if not 0 < fixed <= 0.5 * sum(item.box[2] - item.box[0] for item in texts.values()):
        return set()
    found: set[int] = set()
    for start, end, _ in _line_spans(text):
        shown = [index for index in range(start, end) if not text[index].isspace()]
        if not shown or (box := box_of(text_page, shown[0])) is None:
            continue
        middle = (box[1] + box[3]) / 2
        if any(bottom <= middle <= top for _, bottom, top in rules.vertical):
            continue
        owners = (texts.get(_owner(text_page, index)) for index in shown)
        if all(item is not None and item.is_fixed for item in owners):
            found.update(shown)
    return found


def _put_lists(text_page: Any, text: str, letters: list[str], objects: PageObjects, as_tables: list[Box]) -> set[int]:
    """Put lists in a fixed-width font as rows in their places; return the indexes of their letters."""

    def is_fixed(index: int) -> bool:
        item = objects.texts.get(_owner(text_page, index))
        return item is not None and item.is_fixed

    if not any(item.is_fixed for item in objects.texts.values()):
        return set()
    spans = [(start, end) for start, end, _ in _line_spans(text)]
    taken: set[int] = set()
    for indexes, rows, box in fixed_width_tables(text_page, spans, letters, is_fixed, rules_of(objects.paths)):
        for index in indexes:
            letters[index] = ""
        letters[min(indexes)] = "\n".join(rows) + "\n\n"
        taken.update(indexes)
        as_tables.append(box)
    return taken


def _is_within(placed: PlacedAddition, table: PageTable) -> bool:
    left, bottom, right, top = table.box
    word = placed.word().word
    return left - 4 <= word.box[0] <= right + 4 and bottom - 1 <= word.middle <= top + 1


def _text_of(text_page: Any) -> str:
    """Return a page's text, with a character for each pdfium index."""
    count = text_page.count_chars()
    text: str = text_page.get_text_range(0, count, errors="ignore") if count else ""
    if len(text) == count:
        return text
    codes = (pdfium.FPDFText_GetUnicode(text_page, index) for index in range(count))
    return "".join(chr(code) if 0 < code < 0x110000 else " " for code in codes)


@dataclass(frozen=True)
class HiddenText:
    """The indexes of hidden letters, and a sentence about them for the admin."""

    letters: Sequence[int] = ()
    report: str = ""


NOTHING_HIDDEN = HiddenText()


def _hidden_letters(page: Any, text_page: Any, text: str, objects: PageObjects, draw: Callable[[], Any]) -> HiddenText:
    whole = _whole_box(page, objects.page_box)
    reasons: dict[int, str] = {}
    cropped: set[int] = set()
    white: list[int] = []
    for address, item in objects.texts.items():
        box = item.box
        if item.is_invisible:
            # Over a scan, the invisible text comes from text recognition of the picture.
            if not objects.has_pictures:
                reasons[address] = N_("invisible")
        elif 0 < item.size < SMALLEST and box[3] - box[1] < 2 * SMALLEST:
            reasons[address] = N_("microscopic")
        elif _is_off(box, objects.page_box):
            reasons[address] = N_("off the page")
            if not _is_off(box, whole):
                cropped.add(address)
        elif item.is_white:
            white.append(address)
    if not reasons and not white:
        return NOTHING_HIDDEN
    owners = _owners(text_page, text)
    counts = Counter(owner for owner, letter in zip(owners, text, strict=True) if not letter.isspace())
    if sum(counts[address] for address in cropped) == counts.total():
        # A box around nothing is wrong; a box may show half a sheet with two pages.
        cropped = set()
    doubtful = [address for address, reason in reasons.items() if reason != "invisible" and address not in cropped]
    if sum(counts[address] for address in doubtful) > counts.total() / 2:
        # If most of a page seems hidden, its measures were read wrongly.
        for address in doubtful:
            del reasons[address]
    if white and (picture := draw()) is not None:
        for address in white:
            if _is_blank(picture, objects.texts[address].box, page.get_bbox(), page.get_rotation() % 360):
                reasons[address] = N_("white")
    hidden = [index for index, owner in enumerate(owners) if owner in reasons]
    if not any(not text[index].isspace() for index in hidden):
        return NOTHING_HIDDEN
    kinds = {reasons[owners[index]] for index in hidden}
    pieces = [text[index] + ("" if owners[index] == owners[after] else " ") for index, after in pairwise(hidden)]
    said = " ".join("".join([*pieces, text[hidden[-1]]]).split())
    shown = said if len(said) <= LONGEST_REPORT else said[: LONGEST_REPORT - 1] + "…"
    return HiddenText(hidden, REPORT.format(kinds=", ".join(sorted(kinds)), text=shown))


def _whole_box(page: Any, shown: Box) -> Box:
    """Return the box of a page's sheet, which contains at least the visible part."""
    box: Box | None = page.get_mediabox(fallback_ok=False)
    if box is None and page.get_cropbox(fallback_ok=False) is not None:
        # Only pdfium knows a box shared by all pages.
        return -math.inf, -math.inf, math.inf, math.inf
    return box or shown


def _is_off(box: Box, page_box: Box) -> bool:
    left, bottom, right, top = page_box
    return box[0] > right or box[2] < left or box[1] > top or box[3] < bottom


def _owners(text_page: Any, text: str) -> list[int]:
    """Return the address of the object drawing each letter; 0 for letters added by pdfium."""
    return [_owner(text_page, index) for index in range(len(text))]


def _is_blank(picture: Any, region: Box, page_box: Box, rotation: int) -> bool:
    """Whether a region on the drawn page is entirely white."""
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


def _put_tables(
    letters: list[str],
    text: str,
    words: Sequence[PlacedWord | TurnedWord],
    tables: Sequence[PageTable],
    as_tables: list[Box],
    turn: int = 0,
) -> set[int]:
    """Put each table as rows at its first word, and remove its other words from the text.

    Returns the indexes of letters in tables; adds the boxes, turned back by `turn`, to `as_tables`.
    """
    taken: set[int] = set()
    for table in tables:
        left, bottom, right, top = table.box
        inside = [
            placed
            for placed in words
            if left - 4 <= placed.word.box[0] <= right + 4 and bottom - 1 <= placed.word.middle <= top + 1
        ]
        wanted = Counter("".join(table.source.split()))
        held = _letters_held(inside)
        if held - wanted:
            # Text beside a table stays in its place.
            inside = [placed for placed in inside if _is_part(placed.word.box, table)]
            held = _letters_held(inside)
        if not inside or (held & wanted).total() < SAME_LETTERS * max(held.total(), wanted.total()):
            continue
        if not table.is_ruled and _is_drawn_by_column(inside, table):
            continue
        for placed in inside:
            if isinstance(placed, PlacedWord):
                letters[placed.start : placed.end] = [""] * (placed.end - placed.start)
        turned = [index for placed in inside if isinstance(placed, TurnedWord) for index in placed.indexes]
        take_out(letters, text, turned)
        taken.update(index for placed in inside for index in placed.indexes)
        as_tables.append(turned_box(table.box, -turn))
        first = min(min(placed.indexes) for placed in inside if placed.indexes)
        line = max(text.rfind("\n", 0, first), text.rfind("\ufffe", 0, first)) + 1
        begins = not "".join(letters[line:first]).strip()
        letters[first] = ("" if begins else "\n") + "\n".join(table.lines()) + "\n\n"
    return taken


def _letters_held(words: Sequence[PlacedWord | TurnedWord]) -> Counter[str]:
    return Counter("".join("".join(placed.word.text.split()) for placed in words))


def _is_part(box: Box, table: PageTable) -> bool:
    """Whether a word is in a line which belongs to a table."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return any(left <= x <= right and bottom <= y <= top for left, bottom, right, top in table.parts)


def _is_drawn_by_column(words: Sequence[PlacedWord | TurnedWord], table: PageTable) -> bool:
    """Whether each column is drawn to its end before the next, like columns of text."""
    columns = [table.column_at(placed.word.box[0], placed.word.box[2]) for placed in words]
    changes = sum(before != after for before, after in pairwise(columns))
    return len(table.rows) >= FEWEST_COLUMN_LINES and changes < len(table.rows) / 2


def _styled_lines(
    text_page: Any, spans: Sequence[Span], text: str, letters: Sequence[str], texts: dict[int, TextObject]
) -> tuple[list[str], dict[str, Style], dict[int, float], dict[int, Box]]:
    """Return a page's lines, their styles by content, and by position the gaps above and the boxes.

    A gap is measured from baseline to baseline, in sizes of the smaller letters.
    """
    # Word draws an empty paragraph as a line with a space.
    blanks = [item for item in texts.values() if _is_space(item)]
    lines: list[str] = []
    styles: dict[str, Style] = {}
    gaps: dict[int, float] = {}
    boxes: dict[int, Box] = {}
    above: _Line | None = None
    for start, end, is_broken in spans:
        content = "".join(letters[start:end])
        is_apart = content[:1].isspace()
        line = _sampled(text_page, text, start, end, texts) if content.strip() and "\n" not in content else None
        content = normalise_characters(f"{content}-\n" if is_broken else f"{content}\n").removesuffix("\n")
        if line is not None and above is not None and line.goes_on_from(above):
            content = f"{lines.pop()}{' ' if is_apart else line.space_after(above)}{content}"
            line = replace(line, first=above.first, style=above.style, box=around(above.box, line.box))
        elif line is not None and above is not None and blanks and _has_between(blanks, above, line):
            lines.append("")
        elif line is not None and above is not None and (gap := line.gap_below(above)) > 0:
            gaps[len(lines)] = gap
        if line is not None:
            boxes[len(lines)] = line.box
        lines.append(content)
        if line is not None and content:
            styles.setdefault(content, line.style)
        above = line
    return lines, styles, gaps, boxes


def _parted(lines: Sequence[str], gaps: dict[int, float], boxes: dict[int, Box]) -> tuple[list[str], dict[int, Box]]:
    """Put an empty line above each line whose gap is wider than the gaps within paragraphs."""
    usual = sorted(gaps.values())[len(gaps) // 4] if len(gaps) >= FEWEST_LINE_GAPS else USUAL_LINE_GAP
    parted: list[str] = []
    moved: dict[int, Box] = {}
    for index, line in enumerate(lines):
        if gaps.get(index, 0.0) > WIDER_GAP * usual:
            parted.append("")
        if index in boxes:
            moved[len(parted)] = boxes[index]
        parted.append(line)
    return parted, moved


@dataclass(frozen=True, slots=True)
class _Line:
    """A line's first and last object, each with its place in the drawing order, and the line's style."""

    first: TextObject
    last: TextObject
    style: Style
    box: Box

    def goes_on_from(self, above: _Line) -> bool:
        """Whether the line continues the line above: pdfium ends a line at a raised figure."""
        return (
            above.first.is_level
            and self.first.is_level
            and abs(above.first.y - self.first.y) < 0.1 * self.first.size
            and above.first.x < above.last.box[2] <= self.first.box[0] + 0.3 * self.first.size
            and self.first.box[0] < above.last.box[2] + self.first.size
        )

    def gap_below(self, above: _Line) -> float:
        """Return the distance to the line above, in sizes of the smaller letters; 0 if not below it."""
        size = min(above.style.size, self.style.size)
        if not (above.last.is_level and self.first.is_level) or size <= 0:
            return 0.0
        gap = (above.last.y - self.first.y) / size
        return gap if gap > SAME_LINE_GAP else 0.0

    def space_after(self, above: _Line) -> str:
        is_small = above.last.is_small or self.first.is_small
        is_small = is_small or abs(above.last.y - self.first.y) > 0.1 * self.first.size
        return "" if is_small and self.first.box[0] - above.last.box[2] < 0.2 * self.first.size else " "


def _is_space(item: TextObject) -> bool:
    """Whether an object is a space: pdfium gives it no width and leaves it out of the text."""
    return item.box[2] - item.box[0] < 0.01


def _put_spaces(text_page: Any, text: str, letters: list[str], texts: dict[int, TextObject]) -> None:
    """Insert a space drawn separately between two words if the gap is too small for pdfium to notice."""
    items = list(texts.items())
    for (_, before), (_, space), (address, after) in zip(items, items[1:], items[2:], strict=False):
        if not _is_space(space) or abs(after.y - before.y) > 0.1 or not after.is_level:
            continue
        if not 0.1 * after.size < after.x - space.x < after.size:
            continue
        left, bottom, right, top = after.box
        x, y = left + min(right - left, after.size) / 4, (bottom + top) / 2
        index = pdfium.FPDFText_GetCharIndexAtPos(text_page, x, y, 1.0, 2.0)
        if index <= 0 or _owner(text_page, index) != address:
            continue
        letter = next((letter for letter in reversed(text[max(index - 9, 0) : index + 1]) if letter.isalnum()), "")
        if is_from_the_right(letter):
            continue  # the space comes after these letters, where pdfium puts it
        while index > 0 and _owner(text_page, index - 1) == address:
            index -= 1
        if index > 0 and not text[index - 1].isspace():
            letters[index] = f" {letters[index]}"


def _owner(text_page: Any, index: int) -> int:
    item = pdfium.FPDFText_GetTextObject(text_page, index)
    return ctypes.addressof(item.contents) if item else 0


def _small_runs(text_page: Any, text: str, letters: Sequence[str], texts: dict[int, TextObject]) -> list[SmallRun]:
    """Find raised and lowered letters, and move their objects to their lines."""
    drawn = drawn_small(texts)
    found = set_on_lines(texts)
    return small_runs(
        text, found, lambda address: _letters_of(text_page, text, address, texts[address]), letters, drawn
    )


def _letters_of(text_page: Any, text: str, address: int, item: TextObject) -> tuple[int, int]:
    """Return start and (exclusive) end of the letters an object draws; both 0 if not found."""
    left, bottom, right, top = item.box
    x = left + min(right - left, item.size) / 4
    index = pdfium.FPDFText_GetCharIndexAtPos(text_page, x, (bottom + top) / 2, 1.0, 2.0)
    if index < 0 or _owner(text_page, index) != address:
        return 0, 0
    start, end = index, index + 1
    while start > 0 and _owner(text_page, start - 1) == address:
        start -= 1
    while end < len(text) and _owner(text_page, end) == address:
        end += 1
    return start, end


def _placed_letters(text_page: Any, text: str, address: int, item: TextObject) -> Iterator[tuple[int, Box]]:
    """Yield the index and box of each letter an object draws."""
    for index in range(*_letters_of(text_page, text, address, item)):
        if (box := box_of(text_page, index)) is not None:
            yield index, box


def _has_between(blanks: Sequence[TextObject], above: _Line, line: _Line) -> bool:
    """Whether an empty line was drawn between two lines."""
    high, low = above.last.y, line.first.y
    return any(
        low + 0.3 * item.size < item.y < high - 0.3 * item.size and above.last.order < item.order < line.first.order
        for item in blanks
    )


def _line_spans(text: str) -> Iterator[Span]:
    """Yield each line's start and end, and whether a hyphen ends it."""
    start = 0
    for end in LINE_END.finditer(text):
        yield start, end.start(), end[0] == "\ufffe"
        start = end.end()
    yield start, len(text), False


def _sampled(text_page: Any, text: str, start: int, end: int, texts: dict[int, TextObject]) -> _Line | None:
    """Describe a line by the objects of some of its letters; all letters would take too long."""
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
    style = Style(max(sizes, key=sizes.count), all(found.is_bold for found in seen))
    return _Line(seen[0], seen[-1], style, around(seen[0].box, seen[-1].box))


def _matrix_of(item: Any) -> Matrix:
    matrix = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(item, matrix):
        return 1.0, 0.0, 0.0, 1.0, 0.0, 0.0
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def _combined(inner: Matrix, outer: Matrix | None) -> Matrix:
    """Return the page matrix of an object inside a form."""
    if outer is None:
        return inner
    a, b, c, d, e, f = inner
    A, B, C, D, E, F = outer
    return a * A + b * C, a * B + b * D, c * A + d * C, c * B + d * D, e * A + f * C + E, e * B + f * D + F


def _moved(box: Box, matrix: Matrix) -> Box:
    """Return the bounding box of a box moved, turned or stretched by a matrix."""
    a, b, c, d, e, f = matrix
    corners = [(x, y) for x in (box[0], box[2]) for y in (box[1], box[3])]
    xs = [a * x + c * y + e for x, y in corners]
    ys = [b * x + d * y + f for x, y in corners]
    return min(xs), min(ys), max(xs), max(ys)
