"""Read a page's text with pdfium: only visible text, with tables in rows, and each line's style.

pdfium returns a page's text in a single call, in drawing order. The page's objects (pieces of text, lines, images) show
which characters must be checked one by one, to find hidden text and tables. Hidden text is left out, because answers
would otherwise quote text which nobody should read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rag.ingestion.loaders.page_marks import line_boxes, parts_of_page
from rag.ingestion.loaders.page_tables import PageTable, RulingLines, tables_among
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
from rag.ingestion.loaders.pdf_columns import (
    Columns,
    columns_among,
    columns_in_order,
    lines_have_gaps,
    may_have_columns,
    ordered_spans,
)
from rag.ingestion.loaders.pdf_composed import composed_text
from rag.ingestion.loaders.pdf_direction import (
    has_words_from_the_right,
    is_page_from_the_right,
    ordered_words,
    put_line,
    put_phrases,
)
from rag.ingestion.loaders.pdf_hidden import NOTHING_HIDDEN, StruckText, find_hidden_text, struck_text
from rag.ingestion.loaders.pdf_letters import (
    character_boxes,
    find_small_runs,
    line_spans,
    put_spaces,
    text_of,
    words_of,
)
from rag.ingestion.loaders.pdf_lines import join_broken_words, parted, positions_of, separate_boxes, styled_lines
from rag.ingestion.loaders.pdf_objects import Box
from rag.ingestion.loaders.pdf_page_objects import PageObjects
from rag.ingestion.loaders.pdf_raised import (
    mark_runs,
    with_small_characters,
    written_lines,
)
from rag.ingestion.loaders.pdf_tables import (
    Drawing,
    TextWithTables,
    find_turned_words,
    going_on,
    holds_columns,
    listings,
    mask_text,
    put_lists,
    put_tables,
    put_turned,
    tables_with,
)
from rag.ingestion.loaders.pdf_turned import (
    TurnedWord,
    put_turned_lines,
)
from rag.ingestion.loaders.pdf_words import PlacedWord, box_of, place_words, rules_of
from rag.types import MarkKind, PageMark

HANGUL = re.compile("[\uac00-\ud7a3]")


def read_page(
    page: Any,
    draw: Callable[[], Any],
    table_above: PageTable | None = None,
    annotations: Annotations | None = None,
    *,
    has_paragraphs_by_gaps: bool = False,
) -> RawPage:
    """Read an open pypdfium2 page without hidden text.

    `draw` renders the page to an image with a pixel per point, or returns `None`; `draw` is only called if white text
    may be hidden. `table_above` is the last table on the previous page, which may continue on this page. `annotations`
    are the page's annotations. `has_paragraphs_by_gaps` adds an empty line at each unusually wide gap. Raises
    pypdfium2's errors.
    """
    text_page = page.get_textpage()
    try:
        reader = _PageReader(page, text_page, annotations or Annotations())
        reader.leave_out_hidden(draw)
        reader.leave_out_struck()
        reader.place_words()
        reader.put_tables(table_above)
        reader.write_lines(has_paragraphs_by_gaps=has_paragraphs_by_gaps)
    finally:
        text_page.close()
    return reader.as_raw_page()


class _PageReader:
    def __init__(self, page: Any, text_page: Any, annotations: Annotations) -> None:
        self._page = page
        self._text_page = text_page
        self._annotations = annotations
        self._objects = objects = PageObjects(page)
        text = composed_text(text_page, text_of(text_page), has_symbols=objects.has_symbols)
        self._is_from_right = has_words_from_the_right(text)
        #: The text as drawn, and its letters: a removed letter is "", and a table is in the place of its first letter.
        self._text = ordered_words(text_page, text) if self._is_from_right else text
        self._characters = list(self._text)
        self._put = TextWithTables(self._text, self._characters)
        self._hidden = NOTHING_HIDDEN
        self._struck = StruckText()
        self._struck_words = ""
        #: What to mark on the page as seen.
        self._places: list[tuple[MarkKind, Box]] = [("left out", box) for box in annotations.commented]
        #: Words not running from left to right, by turn.
        self._turned: dict[int, list[TurnedWord]] = {}
        self._is_turned = page.get_rotation() != 0
        self._may_have_tables = False
        #: Whether lines may go across several columns.
        self._is_crossed = False
        self._words: list[PlacedWord] = []
        self._additions: list[PlacedAddition] = []
        self._tables: list[PageTable] = []
        self._columns: list[Columns] = []
        self._read = ""
        self._styles: dict[str, Style] = {}
        self._line_places: dict[int, Box] = {}
        self._marks: list[PageMark] = []

    def leave_out_hidden(self, draw: Callable[[], Any]) -> None:
        """Remove characters which are invisible on the page."""
        self._hidden = find_hidden_text(self._page, self._text_page, self._text, self._objects, draw)
        self._leave_out(self._hidden.characters)

    def leave_out_struck(self) -> None:
        """Remove struck-through characters from the text."""
        texts = self._objects.texts
        self._struck = struck_text(
            self._objects.paths,
            self._annotations.struck,
            texts.items(),
            lambda address: character_boxes(self._text_page, self._text, address, texts[address]),
        )
        self._struck_words = words_of(self._text, self._characters, self._struck.characters)
        self._leave_out(self._struck.characters)

    def _leave_out(self, indexes: Sequence[int]) -> None:
        for index in indexes:
            self._characters[index] = ""
        boxes = (box_of(self._text_page, index) for index in sorted(indexes) if not self._text[index].isspace())
        self._places += [("left out", box) for box in line_boxes(box for box in boxes if box is not None)]

    def place_words(self) -> None:
        """Find superscripts, subscripts, and the positions of annotations' texts. If needed, also find the words'
        boxes.
        """
        text_page, text, characters, objects = self._text_page, self._text, self._characters, self._objects
        runs = find_small_runs(text_page, text, characters, objects.texts)
        self._turned = find_turned_words(text_page, text, characters, objects.texts)
        self._may_have_tables = objects.may_have_tables()
        self._is_crossed = (not self._turned or objects.main_turn() == 0) and (
            may_have_columns(objects.texts.values()) or lines_have_gaps(text_page, text)
        )
        if self._may_have_tables or self._is_crossed or self._annotations.additions:
            is_unchanged = not (self._hidden.characters or self._struck.characters or self._turned)
            visible_text = text if is_unchanged else mask_text(text, characters, self._turned)
            self._words = place_words(text_page, visible_text)
            if runs:
                self._words = with_small_characters(self._words, visible_text, runs)
        mark_runs(characters, runs)
        additions, box = self._annotations.additions, objects.page_box
        self._additions = place_additions(additions, self._words, box, is_turned=self._is_turned)
        self._places += [("note", placed.addition.box) for placed in self._additions]

    def put_tables(self, table_above: PageTable | None) -> None:
        """Insert lists, tables and rotated words at their positions in the text, and find the columns."""
        in_lists = set() if self._turned else put_lists(self._text_page, self._put, self._objects)
        if not self._may_have_tables and not self._is_crossed:
            for turned_words in self._turned.values():
                put_turned_lines(self._characters, self._text, turned_words)
            return
        paths, struck = self._objects.paths, self._struck.paths
        rules = rules_of([item for item in paths if item not in struck] if struck else paths)
        if self._turned:
            self._put_turned_tables(rules, table_above)
        else:
            listed = listings(self._text_page, self._text, self._objects.texts, rules) | in_lists
            self._words = [placed for placed in self._words if placed.start not in listed]
            self._put_level_tables(rules, table_above)

    def _put_turned_tables(self, rules: RulingLines, table_above: PageTable | None) -> None:
        if self._is_crossed:
            loose = tables_among([placed.word for placed in self._words], rules)
            self._columns = columns_among(self._words, loose, Drawing(self._text_page))
        main = self._objects.main_turn()
        frames: dict[int, Sequence[PlacedWord | TurnedWord]] = {0: self._words, **self._turned}
        self._tables = put_turned(self._put, frames, rules, table_above, main, self._columns)

    def _put_level_tables(self, rules: RulingLines, table_above: PageTable | None) -> None:
        drawing = Drawing(self._text_page)
        boxed = separate_boxes(self._words, rules)
        boxed_starts = {placed.start for boxes in boxed for part in boxes.parts for placed in part}
        words = [placed for placed in self._words if placed.start not in boxed_starts]
        # On a turned page, notes have no place among the words.
        fitting = [] if self._is_turned else self._additions
        tables, within = tables_with(words, fitting, rules) if self._may_have_tables else ([], [])
        grids = [table for table in tables if table.has_grid]
        if len(grids) < len(tables) and (in_order := columns_in_order(words, grids, drawing)):
            column_starts = {placed.start for column in in_order for placed in column}
            tables, within = tables_with(
                [placed for placed in words if placed.start not in column_starts], fitting, rules
            )
            for column in in_order:
                tables += tables_among([placed.word for placed in column], rules)
        if self._is_crossed:
            self._columns = columns_among(words, tables, drawing)
            tables = [table for table in tables if not holds_columns(table, self._columns)]
        self._columns += boxed
        self._additions = [placed for placed in self._additions if placed not in within]
        self._tables = going_on(tables, table_above)
        put_tables(self._put, [*words, *(placed.word() for placed in within)], self._tables)

    def write_lines(self, *, has_paragraphs_by_gaps: bool) -> None:
        """Write the text line by line, with styles and boxes. Annotations' texts without a position come last."""
        text_page, text, characters, texts = self._text_page, self._text, self._characters, self._objects.texts
        put_spaces(text_page, text, characters, texts)
        below = put_additions(characters, text, self._additions)
        spans = ordered_spans(list(line_spans(text)), self._columns)
        if self._is_from_right:
            has_lines = is_page_from_the_right(text[start:end] for start, end, _ in spans)
            for start, end, _ in spans:
                if has_lines:
                    put_line(text_page, characters, start, end)
                put_phrases(text_page, characters, start, end)
        lines, styles, gaps, boxes = styled_lines(text_page, spans, text, characters, texts)
        if has_paragraphs_by_gaps:
            lines, boxes = parted(lines, gaps, boxes)
        lines, styles = written_lines(lines, styles)
        if HANGUL.search(text):
            joined = join_broken_words(lines, boxes)
            styles |= {new: styles[old] for old, new in zip(lines, joined, strict=True) if old in styles}
            lines = joined
        place_of = parts_of_page(self._page)
        places = [*self._places, *(("table", box) for box in self._put.boxes)]
        self._styles, self._read = styles, "\n".join([*lines, *below])
        self._marks = [PageMark(kind, *parts) for kind, box in places if (parts := place_of(box)) is not None]
        self._line_places = positions_of(lines, {line: place_of(box) for line, box in boxes.items()})

    def as_raw_page(self) -> RawPage:
        return RawPage(
            self._read,
            styles=self._styles,
            warnings=list(self._warnings()),
            has_hidden=bool(self._hidden.characters or self._struck.characters),
            pictures=self._objects.pictures,
            last_table=self._tables[-1] if self._tables else None,
            marks=self._marks,
            line_places=self._line_places,
        )

    def _warnings(self) -> Iterator[str]:
        if self._hidden.report:
            yield self._hidden.report
        if self._struck_words:
            yield STRUCK_TEXT.format(text=shortened(self._struck_words))
        yield from self._annotations.warnings()
        if any(columns.is_doubtful for columns in self._columns):
            yield UNSURE_ORDER
        left_out = {*self._hidden.characters, *self._struck.characters}
        drawn = "".join(" " if index in left_out else character for index, character in enumerate(self._text))
        if unread := (Counter(letters_in(drawn)) - Counter(letters_in(self._read))).total():
            yield UNREAD_TEXT[unread > 1].format(count=f"{unread:,}")
