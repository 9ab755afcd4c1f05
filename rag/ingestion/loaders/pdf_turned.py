"""Read rotated text: tables drawn sideways, headings running upwards, notes in the margin. Runs in the sandbox.

A rotation is counted in counterclockwise quarter turns: text with rotation 1 runs upwards. In a rotation's frame, the
page is rotated to make this text run from left to right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag.ingestion.loaders.page_tables import COLUMN_GAP, RulingLines, Word, text_lines
from rag.ingestion.loaders.pdf_objects import Box

#: Letters further apart have a space between them, in letter heights.
SPACE = 0.16
#: The largest distance between lines of the same head, in letter heights.
SAME_HEAD = 1.35
#: Pages with more turned words outside tables are drawings, or text.
MOST_HEADS = 400
#: The largest distance from a row's turned name to its lines, in letter heights.
NAME_DISTANCE = 5.0


@dataclass(frozen=True, slots=True)
class TurnedWord:
    """A rotated word, with the box and the characters' indexes in the page's text.

    The box is on the page in the word's frame, in which the word is horizontal.
    """

    word: Word
    indexes: tuple[int, ...]


def turn_of(a: float, b: float, d: float) -> int:
    """Return a text's rotation in quarter turns, from three numbers in the text matrix. Slanted text gives 0."""
    if abs(a) < 0.01 * abs(b):
        return 1 if b > 0 else 3
    return 2 if a < 0 and d < 0 and abs(b) < 0.01 * abs(a) else 0


def turned_box(box: Box, turn: int) -> Box:
    """Rotate a box with the page, to make text with the rotation `turn` (in quarter turns) horizontal."""
    left, bottom, right, top = box
    match turn % 4:
        case 1:
            return bottom, -right, top, -left
        case 2:
            return -right, -top, -left, -bottom
        case 3:
            return -top, left, -bottom, right
    return box


def turned_rules(rules: RulingLines, turn: int) -> RulingLines:
    """Rotate a page's drawn lines with the page, like `turned_box`."""
    flat = [turned_box((left, y, right, y), turn) for y, left, right in rules.horizontal]
    upright = [turned_box((x, bottom, x, top), turn) for x, bottom, top in rules.vertical]
    if turn % 2:
        flat, upright = upright, flat
    return RulingLines(
        tuple((bottom, left, right) for left, bottom, right, _ in flat),
        tuple((left, bottom, top) for left, bottom, _, top in upright),
    )


def turned_words(characters: Iterable[tuple[int, str, Box]], turn: int) -> list[TurnedWord]:
    """Join characters into words by their positions alone.

    pdfium breaks lines inside rotated words, and mixes neighbouring words.
    """
    words: list[TurnedWord] = []
    for line in _lines_of(_glyphs(characters, turn)):
        pieces: list[list[TurnedWord]] = []
        for glyph in sorted(line, key=lambda glyph: glyph.word.box[0]):
            last = pieces[-1][-1].word if pieces else None
            if last is None or glyph.word.box[0] - last.box[2] > SPACE * last.height:
                pieces.append([])
            pieces[-1].append(glyph)
        words += [_join(piece) for piece in pieces]
    return sorted(words, key=lambda word: word.indexes[0])


def _glyphs(characters: Iterable[tuple[int, str, Box]], turn: int) -> list[TurnedWord]:
    """Return each character with the box on the page rotated by `turn`. Ligatures split by pdfium, like "ffi", are
    rejoined.
    """
    glyphs: list[TurnedWord] = []
    for index, character, box in characters:
        glyph = TurnedWord(Word(character, turned_box(box, turn)), (index,))
        last = glyphs[-1] if glyphs else None
        if (
            last is not None
            and last.indexes[-1] == index - 1
            and all(abs(last.word.box[edge] - glyph.word.box[edge]) < 0.1 for edge in (0, 2))
        ):
            glyphs[-1] = _join([last, glyph])
        else:
            glyphs.append(glyph)
    return glyphs


def _lines_of(glyphs: Sequence[TurnedWord]) -> list[list[TurnedWord]]:
    lines: list[list[TurnedWord]] = []
    above = Word("", (0.0, 0.0, 0.0, 0.0))
    for glyph in sorted(glyphs, key=lambda glyph: -glyph.word.middle):
        if lines and above.middle - glyph.word.middle < 0.45 * max(glyph.word.height, above.height):
            lines[-1].append(glyph)
        else:
            lines.append([glyph])
            above = glyph.word
    return lines


def _join(pieces: Sequence[TurnedWord]) -> TurnedWord:
    boxes = [piece.word.box for piece in pieces]
    box = boxes[0][0], min(box[1] for box in boxes), boxes[-1][2], max(box[3] for box in boxes)
    text = "".join(piece.word.text for piece in pieces)
    return TurnedWord(Word(text, box), tuple(index for piece in pieces for index in piece.indexes))


def upright_heads(
    words: Sequence[TurnedWord], turn: int, main: int, rules: RulingLines, upright: Sequence[Word]
) -> list[TurnedWord]:
    """Convert rotated column headings and row names in tables to horizontal words.

    Their boxes are on the page rotated by `main`. `rules` are the page's drawn lines, and `upright` the horizontal
    words. Notes in the margin lie outside the table's lines and columns, and are left out.
    """
    if len(words) > MOST_HEADS:
        return []
    groups: list[list[tuple[list[TurnedWord], Box]]] = []
    heads = [(head, _box_in_frame(head, turn, main)) for head in _group_headings(words, turned_rules(rules, turn))]
    for placed_head in sorted(heads, key=lambda pair: -pair[1][3]):
        overlapping = next((group for group in groups if _overlap(group[0][1], placed_head[1]) > 0), None)
        if overlapping is not None:
            overlapping.append(placed_head)
        else:
            groups.append([placed_head])
    left, right = min((w.box[0] for w in upright), default=0.0), max((w.box[2] for w in upright), default=0.0)
    verticals = turned_rules(rules, main).vertical
    upright_words: list[TurnedWord] = []
    for group in groups:
        inner = [(head, box) for head, box in group if left <= (box[0] + box[2]) / 2 <= right]
        if len(inner) < 2:
            inner = []
        inner += [
            (head, box)
            for head, box in group
            if (head, box) not in inner and _is_enclosed(box, verticals, head[0].word.height)
        ]
        if not inner:
            continue
        low, high = min(box[1] for _, box in inner), max(box[3] for _, box in inner)
        row_middles = [word.middle for word in upright if low < word.middle < high] if len(inner) > 1 else []
        height = min(word.word.height for head, _ in inner for word in head)
        middle = min(row_middles, default=low + height / 2) if len(inner) > 1 else (low + high) / 2
        upright_words += [_make_horizontal(head, box, middle) for head, box in inner]
    return upright_words


def _group_headings(words: Sequence[TurnedWord], rules: RulingLines) -> list[list[TurnedWord]]:
    by_word = {id(word.word): word for word in words}
    heads: list[list[TurnedWord]] = []
    for line in text_lines([word.word for word in words]):
        for part in _parts([by_word[id(word)] for word in line], rules):
            above = next((head for head in reversed(heads) if _continues_heading(head, part, rules)), None)
            if above is not None:
                above += part
            else:
                heads.append(part)
    return heads


def _parts(line: Sequence[TurnedWord], rules: RulingLines) -> list[list[TurnedWord]]:
    parts: list[list[TurnedWord]] = []
    for turned in line:
        word = turned.word
        right = parts[-1][-1].word.box[2] if parts else 0.0
        is_separate = word.box[0] - right > COLUMN_GAP * word.height or any(
            right - 1 <= x <= word.box[0] + 1 and low <= word.middle <= high for x, low, high in rules.vertical
        )
        if not parts or is_separate:
            parts.append([])
        parts[-1].append(turned)
    return parts


def _continues_heading(head: Sequence[TurnedWord], part: Sequence[TurnedWord], rules: RulingLines) -> bool:
    above, below = head[-1].word, part[0].word
    left, right = below.box[0], part[-1].word.box[2]
    return (
        0.45 * below.height < above.middle - below.middle < SAME_HEAD * below.height
        and left < above.box[2]
        and right > min(word.word.box[0] for word in head)
        and not any(
            below.middle < y < above.middle and low < right and high > left for y, low, high in rules.horizontal
        )
    )


def _box_in_frame(head: Sequence[TurnedWord], turn: int, main: int) -> Box:
    boxes = [turned_box(word.word.box, main - turn) for word in head]
    return min(b[0] for b in boxes), min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes)


def _overlap(box: Box, other: Box) -> float:
    return min(box[3], other[3]) - max(box[1], other[1])


def _is_enclosed(box: Box, verticals: Sequence[tuple[float, float, float]], height: float) -> bool:
    middle = (box[1] + box[3]) / 2
    places = [x for x, low, high in verticals if low <= middle <= high]
    return any(0 <= box[0] - x < NAME_DISTANCE * height for x in places) and any(
        0 <= x - box[2] < NAME_DISTANCE * height for x in places
    )


def _make_horizontal(head: Sequence[TurnedWord], box: Box, middle: float) -> TurnedWord:
    height = min(word.word.height for word in head)
    text = " ".join(word.word.text for word in head)
    upright = Word(text, (box[0], middle - height / 2, box[2], middle + height / 2))
    return TurnedWord(upright, tuple(index for word in head for index in word.indexes))


def put_turned_lines(characters: list[str], text: str, words: Sequence[TurnedWord]) -> None:
    """Put rotated words in order, line by line, if their order in pdfium's text is different."""
    by_word = {id(word.word): word for word in words}
    lines = [[by_word[id(word)] for word in line] for line in text_lines([word.word for word in words])]
    in_lines = [word.word.text for line in lines for word in line]
    indexes = sorted(index for word in words for index in word.indexes)
    if not indexes or "".join(text[indexes[0] : indexes[-1] + 1]).replace("\ufffe", "-").split() == in_lines:
        return
    take_out(characters, text, indexes)
    turned_text = "\n".join(" ".join(word.word.text for word in line) for line in lines)
    characters[indexes[0]] = (
        "\n" if indexes[0] and "".join(characters[: indexes[0]]).rstrip(" ")[-1:] != "\n" else ""
    ) + f"{turned_text}\n"


def take_out(characters: list[str], text: str, indexes: Iterable[int]) -> None:
    """Remove characters, and the blanks between them, from a page's text."""
    ordered = sorted(indexes)
    for index in ordered:
        characters[index] = ""
    for before, after in pairwise(ordered):
        if after - before > 1 and text[before + 1 : after].isspace():
            characters[before + 1 : after] = [""] * (after - before - 1)
