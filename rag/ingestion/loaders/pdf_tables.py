"""Find the tables on a page, and replace their words by rows. Runs in the sandbox.

Lists in a fixed-width font, with columns separated by blanks, are tables too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

from rag.ingestion.loaders.fixed_width import LONGEST_LINE, tables_in
from rag.ingestion.loaders.page_tables import PageTable, RulingLines, Word, tables_among
from rag.ingestion.loaders.pdf_annotations import PlacedAddition
from rag.ingestion.loaders.pdf_columns import (
    SAME_EDGE,
    Columns,
)
from rag.ingestion.loaders.pdf_letters import line_spans, owner_of
from rag.ingestion.loaders.pdf_objects import Box, TextObject
from rag.ingestion.loaders.pdf_page_objects import PageObjects
from rag.ingestion.loaders.pdf_turned import (
    TurnedWord,
    put_turned_lines,
    take_out,
    turned_box,
    turned_rules,
    turned_words,
    upright_heads,
)
from rag.ingestion.loaders.pdf_words import RUN, PlacedWord, box_of, rules_of

#: Share of a table's letters which its place in the text must contain; else the table stays as drawn.
SAME_CHARACTERS = 0.97
#: With at least this many rows, a table without ruling lines may be text in columns.
FEWEST_COLUMN_LINES = 6


@dataclass(frozen=True)
class TextWithTables:
    """A page's original text, the characters into which tables are inserted, and the tables' boxes on the page."""

    text: str
    characters: list[str]
    boxes: list[Box] = field(default_factory=list)


@dataclass(frozen=True)
class Drawing:
    """Tells how a page's words are drawn, for `pdf_columns`."""

    text_page: Any

    def cut(self, placed: PlacedWord, edge: float) -> tuple[PlacedWord, PlacedWord] | None:
        left, bottom, right, top = placed.word.box
        for index in placed.indexes[1:]:
            box = box_of(self.text_page, index)
            if box is None or box[0] < edge - SAME_EDGE:
                continue
            before = box_of(self.text_page, index - 1)
            is_new_object = owner_of(self.text_page, index - 1) != owner_of(self.text_page, index)
            if before is None or not is_new_object or before[2] > edge + 0.15 * placed.word.height:
                return None
            split = index - placed.start
            return (
                PlacedWord(Word(placed.word.text[:split], (left, bottom, before[2], top)), placed.start, index),
                PlacedWord(Word(placed.word.text[split:], (box[0], bottom, right, top)), index, placed.end),
            )
        return None

    def is_one(self, before: PlacedWord, after: PlacedWord) -> bool:
        return owner_of(self.text_page, before.end - 1) == owner_of(self.text_page, after.start)


def tables_with(
    words: Sequence[PlacedWord], additions: Sequence[PlacedAddition], rules: RulingLines
) -> tuple[list[PageTable], list[PlacedAddition]]:
    """Return a page's tables, and the annotations' texts (form values, typed notes) inside their cells.

    Only tables with borders get annotations, because a label next to a form field is no table row.
    """
    page_words = [placed.word for placed in words]
    values = [placed for placed in additions if not placed.addition.is_separate and placed.index >= 0]
    if values:
        tables = tables_among([*page_words, *(placed.word().word for placed in values)], rules)
        within = {table: [placed for placed in values if _is_within(placed, table)] for table in tables}
        if all(table.is_ruled or not within[table] for table in tables):
            return tables, [placed for table in tables for placed in within[table]]
    return tables_among(page_words, rules), []


def _is_within(placed: PlacedAddition, table: PageTable) -> bool:
    left, bottom, right, top = table.box
    word = placed.word().word
    return left - 4 <= word.box[0] <= right + 4 and bottom - 1 <= word.middle <= top + 1


def listings(text_page: Any, text: str, texts: dict[int, TextObject], rules: RulingLines) -> set[int]:
    """Return the indexes of the characters in fixed-width lines, which may be lists.

    Empty if most text is fixed-width. Lines inside tables with borders are left out.
    """
    fixed = sum(item.box[2] - item.box[0] for item in texts.values() if item.is_fixed)
    if not 0 < fixed <= 0.5 * sum(item.box[2] - item.box[0] for item in texts.values()):
        return set()
    indexes: set[int] = set()
    for start, end, _ in line_spans(text):
        visible = [index for index in range(start, end) if not text[index].isspace()]
        if not visible or (box := box_of(text_page, visible[0])) is None:
            continue
        middle = (box[1] + box[3]) / 2
        if any(bottom <= middle <= top for _, bottom, top in rules.vertical):
            continue
        owners = (texts.get(owner_of(text_page, index)) for index in visible)
        if all(item is not None and item.is_fixed for item in owners):
            indexes.update(visible)
    return indexes


def put_lists(text_page: Any, put: TextWithTables, objects: PageObjects) -> set[int]:
    """Replace lists in a fixed-width font by table rows. Returns the indexes of the replaced characters."""

    def is_fixed(index: int) -> bool:
        item = objects.texts.get(owner_of(text_page, index))
        return item is not None and item.is_fixed

    if not any(item.is_fixed for item in objects.texts.values()):
        return set()
    characters = put.characters
    spans = [(start, end) for start, end, _ in line_spans(put.text)]
    replaced: set[int] = set()
    for indexes, rows, box in fixed_width_tables(text_page, spans, characters, is_fixed, rules_of(objects.paths)):
        for index in indexes:
            characters[index] = ""
        characters[min(indexes)] = "\n".join(rows) + "\n\n"
        replaced.update(indexes)
        put.boxes.append(box)
    return replaced


def going_on(tables: list[PageTable], table_above: PageTable | None) -> list[PageTable]:
    """Give the first table the same column headings if it continues `table_above`. Returns the page's tables.

    `table_above` is the last table on the previous page.
    """
    if tables and table_above is not None and tables[0].goes_on_from(table_above):
        return [tables[0].with_heads_of(table_above), *tables[1:]]
    return tables


def holds_columns(table: PageTable, sets: Sequence[Columns]) -> bool:
    return any(
        placed.word.box[0] >= table.box[0] - 1
        and placed.word.box[2] <= table.box[2] + 1
        and table.box[1] <= placed.word.middle <= table.box[3]
        for columns in sets
        for part in columns.parts
        for placed in part
    )


def put_tables(
    put: TextWithTables, words: Sequence[PlacedWord | TurnedWord], tables: Sequence[PageTable], turn: int = 0
) -> set[int]:
    """Replace each table's words by rows, at the first word's position. Returns the replaced characters' indexes.

    `turn` is the rotation of the tables in quarter turns. Their boxes are converted back to the unrotated page, and
    stored in `put.boxes`.
    """
    text, characters = put.text, put.characters
    replaced: set[int] = set()
    for table in tables:
        left, bottom, right, top = table.box
        inside = [
            placed
            for placed in words
            if left - 4 <= placed.word.box[0] <= right + 4 and bottom - 1 <= placed.word.middle <= top + 1
        ]
        table_characters = Counter("".join(table.source.split()))
        word_characters = _count_characters(inside)
        if word_characters - table_characters:
            # Text beside a table stays in its place.
            inside = [placed for placed in inside if _is_part(placed.word.box, table)]
            word_characters = _count_characters(inside)
        if not inside or (word_characters & table_characters).total() < SAME_CHARACTERS * max(
            word_characters.total(), table_characters.total()
        ):
            continue
        if not table.is_ruled and _is_drawn_by_column(inside, table):
            continue
        for placed in inside:
            if isinstance(placed, PlacedWord):
                characters[placed.start : placed.end] = [""] * (placed.end - placed.start)
        turned = [index for placed in inside if isinstance(placed, TurnedWord) for index in placed.indexes]
        take_out(characters, text, turned)
        replaced.update(index for placed in inside for index in placed.indexes)
        put.boxes.append(turned_box(table.box, -turn))
        first = min(min(placed.indexes) for placed in inside if placed.indexes)
        line = max(text.rfind("\n", 0, first), text.rfind("\ufffe", 0, first)) + 1
        begins = not "".join(characters[line:first]).strip()
        characters[first] = ("" if begins else "\n") + "\n".join(table.lines()) + "\n\n"
    return replaced


def _count_characters(words: Sequence[PlacedWord | TurnedWord]) -> Counter[str]:
    return Counter("".join("".join(placed.word.text.split()) for placed in words))


def _is_part(box: Box, table: PageTable) -> bool:
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return any(left <= x <= right and bottom <= y <= top for left, bottom, right, top in table.parts)


def _is_drawn_by_column(words: Sequence[PlacedWord | TurnedWord], table: PageTable) -> bool:
    """Whether each column is drawn completely before the next. Such a table is probably text in columns."""
    columns = [table.column_at(placed.word.box[0], placed.word.box[2]) for placed in words]
    changes = sum(before != after for before, after in pairwise(columns))
    return len(table.rows) >= FEWEST_COLUMN_LINES and changes < len(table.rows) / 2


def find_turned_words(
    text_page: Any, text: str, characters: Sequence[str], texts: dict[int, TextObject]
) -> dict[int, list[TurnedWord]]:
    """Return the words which do not run from left to right, by rotation in quarter turns."""
    if not any(item.turn for item in texts.values()):
        return {}
    placed_by_turn: dict[int, list[tuple[int, str, Box]]] = {}
    for run in RUN.finditer(text):
        # Words are seldom turned in part, and most words on a page with a turned note are level.
        if not _turn_at(text_page, run.start(), texts):
            continue
        for index, character in enumerate(run[0], run.start()):
            turn = _turn_at(text_page, index, texts)
            if characters[index] and turn and (box := box_of(text_page, index)) is not None:
                placed_by_turn.setdefault(turn, []).append((index, "-" if character == "\ufffe" else character, box))
    return {turn: turned_words(placed, turn) for turn, placed in placed_by_turn.items()}


def _turn_at(text_page: Any, index: int, texts: dict[int, TextObject]) -> int:
    item = texts.get(owner_of(text_page, index))
    return item.turn if item is not None else 0


def mask_text(text: str, characters: Sequence[str], turned: dict[int, list[TurnedWord]]) -> str:
    """Return the page's text with blanks in place of removed and rotated characters."""
    mask_text = [text[index] if character else " " for index, character in enumerate(characters)]
    for words in turned.values():
        for word in words:
            for index in word.indexes:
                mask_text[index] = " "
    return "".join(mask_text)


def put_turned(
    put: TextWithTables,
    frames: Mapping[int, Sequence[PlacedWord | TurnedWord]],
    rules: RulingLines,
    table_above: PageTable | None,
    main: int,
    columns: Sequence[Columns],
) -> list[PageTable]:
    """Write tables and rotated words into a page's text.

    `frames` has the page's words by rotation, in quarter turns counterclockwise; 0 is horizontal text. `main` is the
    rotation of most words. Returns the tables with this rotation, except text columns.
    """
    free: dict[int, list[TurnedWord]] = {}
    for turn, words in frames.items():
        if turn == main:
            continue
        tables = tables_among([placed.word for placed in words], turned_rules(rules, turn))
        replaced = put_tables(put, words, tables, turn)
        free[turn] = [
            TurnedWord(placed.word, tuple(placed.indexes)) for placed in words if placed.indexes[0] not in replaced
        ]
    of_main = list(frames.get(main, []))
    upright = [placed.word for placed in of_main]
    for turn, turned in free.items():
        if (turn - main) % 2:
            of_main += upright_heads(turned, turn, main, rules, upright)
    tables = tables_among([placed.word for placed in of_main], turned_rules(rules, main))
    tables = [table for table in tables if not holds_columns(table, columns)]
    tables = going_on(tables, table_above)
    replaced = put_tables(put, of_main, tables, main)
    for turn, turned in free.items():
        if turn:
            put_turned_lines(put.characters, put.text, [word for word in turned if word.indexes[0] not in replaced])
    return tables


#: A larger distance between two lines is a blank line, in letter heights.
BLANK_LINE = 1.7


def fixed_width_tables(
    text_page: Any,
    spans: Sequence[tuple[int, int]],
    characters: Sequence[str],
    is_fixed: Callable[[int], bool],
    rules: RulingLines,
) -> Iterator[tuple[list[int], list[str], Box]]:
    """Yield each table in a fixed-width font: the characters' indexes, the rows, and the box.

    `spans` are the page's lines.
    """
    boxes: list[dict[int, Box]] = []
    for start, end in spans:
        visible = [index for index in range(start, end) if characters[index].strip()]
        placed = {index: box for index in visible if (box := box_of(text_page, index)) is not None}
        is_listed = bool(visible) and len(placed) == len(visible) and all(map(is_fixed, visible))
        boxes.append(placed if is_listed and not _is_next_to_rules(placed, rules) else {})
    all_boxes = [box for line in boxes for box in line.values()]
    if not all_boxes:
        return
    width = median(right - left for left, _, right, _ in all_boxes)
    begin = min(left for left, _, _, _ in all_boxes)
    lines: list[str] = []
    numbers: list[int] = []
    above: Box | None = None
    for number, line in enumerate(boxes):
        first = next(iter(line.values()), None)
        if above is not None and first is not None and above[1] - first[1] > BLANK_LINE * (first[3] - first[1]):
            lines.append("")
            numbers.append(number)
        lines.append(_line_text(line, characters, begin, width))
        numbers.append(number)
        above = first
    for top, bottom, rows in tables_in(lines):
        table_lines = [boxes[number] for number in dict.fromkeys(numbers[top:bottom])]
        indexes = [index for line in table_lines for index in line]
        lefts, lows, rights, highs = zip(*(box for line in table_lines for box in line.values()), strict=True)
        yield indexes, rows, (min(lefts), min(lows), max(rights), max(highs))


def _line_text(line: dict[int, Box], characters: Sequence[str], begin: float, width: float) -> str:
    cells: list[str] = []
    for index, box in sorted(line.items(), key=lambda item: item[1][0]):
        place = round((box[0] - begin) / width) if width > 0 else len(cells)
        if place > LONGEST_LINE:
            return ""
        cells += [" "] * (place - len(cells))
        cells.append(characters[index][:1])
    return "".join(cells)


def _is_next_to_rules(line: dict[int, Box], rules: RulingLines) -> bool:
    _, low, _, high = next(iter(line.values()))
    return any(bottom <= (low + high) / 2 <= top for _, bottom, top in rules.vertical)
