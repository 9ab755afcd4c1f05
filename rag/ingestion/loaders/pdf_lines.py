"""Divide a page into lines with styles, gaps and boxes.

Frames next to each other (in organisation charts, flow diagrams, cards, forms) are read one after the other. Table
cells are excluded: they touch each other, or share a line with the cell below.

Some programs break lines inside Korean words, to fill every line, and the text has no blank at a line end. Word
endings, and words found elsewhere on the page, show whether a word continues on the next line.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.nested_tables import nested_frames
from rag.ingestion.loaders.page_marks import around
from rag.ingestion.loaders.page_tables import MOST_SEGMENTS, RulingLines, text_lines
from rag.ingestion.loaders.page_text import (
    Style,
)
from rag.ingestion.loaders.pdf_columns import (
    Columns,
    Span,
)
from rag.ingestion.loaders.pdf_letters import is_space, owner_of
from rag.ingestion.loaders.pdf_objects import Box, TextObject
from rag.ingestion.loaders.pdf_words import PlacedWord

#: Longer lines are no headings; their ends are enough to tell their size.
LONGEST_STYLED = 90
#: Gaps from baseline to baseline, in letter sizes: a smaller gap is the same line; the usual gap (CSS and Word set 1.2)
#: if a page has too few lines; and how much wider a gap between paragraphs is (Word's 8 points below an 11-point
#: paragraph make 1.55 times).
SAME_LINE_GAP, USUAL_LINE_GAP, WIDER_GAP = 0.6, 1.2, 1.25
FEWEST_LINE_GAPS = 4


@dataclass(frozen=True, slots=True)
class _Line:
    first: TextObject
    last: TextObject
    style: Style
    box: Box

    def goes_on_from(self, above: _Line) -> bool:
        """Whether this line and `above` are the same printed line. pdfium splits lines after a superscript."""
        return (
            above.first.is_level
            and self.first.is_level
            and abs(above.first.y - self.first.y) < 0.1 * self.first.size
            and above.first.x < above.last.box[2] <= self.first.box[0] + 0.3 * self.first.size
            and self.first.box[0] < above.last.box[2] + self.first.size
        )

    def gap_below(self, above: _Line) -> float:
        """Return the distance to the line above, divided by the smaller font size, or 0 if this line is not below."""
        size = min(above.style.size, self.style.size)
        if not (above.last.is_level and self.first.is_level) or size <= 0:
            return 0.0
        gap = (above.last.y - self.first.y) / size
        return gap if gap > SAME_LINE_GAP else 0.0

    def space_after(self, above: _Line) -> str:
        is_small = above.last.is_small or self.first.is_small
        is_small = is_small or abs(above.last.y - self.first.y) > 0.1 * self.first.size
        return "" if is_small and self.first.box[0] - above.last.box[2] < 0.2 * self.first.size else " "


def styled_lines(
    text_page: Any, spans: Sequence[Span], text: str, characters: Sequence[str], texts: dict[int, TextObject]
) -> tuple[list[str], dict[str, Style], dict[int, float], dict[int, Box]]:
    """Return a page's lines, their styles by text, and the gaps above and the boxes by line number.

    A gap is the distance between two baselines, divided by the smaller font size.
    """
    # Word draws an empty paragraph as a line with a space.
    blanks = [item for item in texts.values() if is_space(item)]
    lines: list[str] = []
    styles: dict[str, Style] = {}
    gaps: dict[int, float] = {}
    boxes: dict[int, Box] = {}
    above: _Line | None = None
    for start, end, is_broken in spans:
        content = "".join(characters[start:end])
        has_space = content[:1].isspace()
        line = _sample_line(text_page, text, start, end, texts) if content.strip() and "\n" not in content else None
        content = normalise_characters(f"{content}-\n" if is_broken else f"{content}\n").removesuffix("\n")
        if line is not None and above is not None and line.goes_on_from(above):
            content = f"{lines.pop()}{' ' if has_space else line.space_after(above)}{content}"
            line = replace(line, first=above.first, style=above.style, box=around(above.box, line.box))
        elif line is not None and above is not None and blanks and _has_empty_line(blanks, above, line):
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


def parted(lines: Sequence[str], gaps: dict[int, float], boxes: dict[int, Box]) -> tuple[list[str], dict[int, Box]]:
    """Insert an empty line above each line with a wide gap. Returns the lines, and the boxes by new line number."""
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


def _has_empty_line(blanks: Sequence[TextObject], above: _Line, line: _Line) -> bool:
    high, low = above.last.y, line.first.y
    return any(
        low + 0.3 * item.size < item.y < high - 0.3 * item.size and above.last.order < item.order < line.first.order
        for item in blanks
    )


def _sample_line(text_page: Any, text: str, start: int, end: int, texts: dict[int, TextObject]) -> _Line | None:
    """Describe a line by a few characters, because checking all would take too long."""
    line = text[start:end]
    first, last = start + len(line) - len(line.lstrip()), start + len(line.rstrip()) - 1
    ends = [owner_of(text_page, first), owner_of(text_page, last)]
    if ends[0] == ends[1] or last - first >= LONGEST_STYLED:
        addresses = ends
    else:
        places = (first + (last - first) * part // 4 for part in (1, 2, 3))
        addresses = [ends[0], *(owner_of(text_page, index) for index in places), ends[1]]
    objects = [texts[address] for address in addresses if address in texts]
    if not objects:
        return None
    sizes = [item.size for item in objects]
    style = Style(max(sizes, key=sizes.count), all(item.is_bold for item in objects))
    return _Line(objects[0], objects[-1], style, around(objects[0].box, objects[-1].box))


def positions_of(lines: Sequence[str], places: dict[int, Box | None]) -> dict[int, Box]:
    """Convert boxes by index in `lines` to boxes by line number in the text.

    The numbers differ, because a table is a single item in `lines` but has several text lines.
    """
    boxes: dict[int, Box] = {}
    position = 0
    for index, line in enumerate(lines):
        if (place := places.get(index)) is not None:
            boxes[position] = place
        position += 1 + line.count("\n")
    return boxes


#: In points: places closer than this are equal; the smallest gap between boxes; the largest rounding of a corner.
SAME, GAP, ROUND = 1.0, 4.5, 10.0
#: Smaller boxes are tick boxes.
LEAST_WIDTH, LEAST_HEIGHT = 30.0, 16.0
#: Lines of text in at least half the boxes.
FEWEST_LINES = 1.5


def separate_boxes(words: Sequence[PlacedWord], rules: RulingLines) -> list[Columns]:
    """Return the words in frames which are side by side, from top to bottom and from left to right."""
    if len(rules.vertical) < 4 or len(rules.vertical) + len(rules.horizontal) > MOST_SEGMENTS:
        return []
    separate = _without_cells(list(_rectangles(rules)), rules)
    if len(separate) < 2:
        return []
    nested = nested_frames(rules.horizontal, rules.vertical)
    separate = [box for box in separate if not any(_overlap(box, frame) for frame in nested)]
    with_words = [(box, inside) for box in separate if (inside := _words_in_box(words, box))]
    rows: list[list[tuple[Box, list[PlacedWord]]]] = []
    for box, inside in sorted(with_words, key=lambda placed_box: -placed_box[0][3]):
        if rows and box[3] > max(other[1] for other, _ in rows[-1]):
            rows[-1].append((box, inside))
        else:
            rows.append([(box, inside)])
    neighbours = [row for row in rows if len(row) > 1]
    lines = [len(text_lines([placed.word for placed in inside])) for row in neighbours for _, inside in row]
    if lines and median(lines) < FEWEST_LINES:
        # Such boxes below each other may be a table.
        places = Counter(round(box[0]) for row in neighbours for box, _ in row)
        neighbours = [row for row in neighbours if sum(places[round(box[0])] > 1 for box, _ in row) < 2]
    return [
        Columns(tuple(tuple(inside) for _, inside in sorted(row, key=lambda placed_box: placed_box[0][0])))
        for row in neighbours
    ]


def _words_in_box(words: Sequence[PlacedWord], box: Box) -> list[PlacedWord]:
    left, bottom, right, top = box
    return [
        placed
        for placed in words
        if left <= placed.word.box[0] and placed.word.box[2] <= right and bottom <= placed.word.middle <= top
    ]


def _rectangles(rules: RulingLines) -> Iterator[Box]:
    sides: dict[tuple[int, int], list[tuple[float, float, float]]] = defaultdict(list)
    for side in sorted(set(rules.vertical)):
        x, low, high = side
        # Ends at nearly the same heights are found under either of two keys.
        for key in {(round(low / 2 + part), round(high / 2 + part)) for part in (-0.25, 0.25)}:
            if not sides[key] or x - sides[key][-1][0] > SAME:
                sides[key].append(side)
    corners: set[tuple[float, float]] = set()
    for group in sides.values():
        for (left, low, high), (right, _, _) in pairwise(group):
            if right - left < LEAST_WIDTH or high - low < LEAST_HEIGHT or (left, low) in corners:
                continue
            bottom, top = _joining_line(rules, left, right, low, -1), _joining_line(rules, left, right, high, 1)
            if bottom is not None and top is not None:
                corners.add((left, low))
                yield left, bottom, right, top


def _joining_line(rules: RulingLines, left: float, right: float, height: float, way: int) -> float | None:
    for y, begin, end in rules.horizontal:
        away = way * (y - height)
        if (
            -SAME <= away <= ROUND
            and abs(begin - left - max(away, 0.0)) <= 1.5 * SAME
            and abs(right - end - max(away, 0.0)) <= 1.5 * SAME
        ):
            return y
    return None


def _without_cells(boxes: Sequence[Box], rules: RulingLines) -> list[Box]:
    """Return the frames which are not table cells: no line is close to or crosses them, and no side is shared."""
    return [
        (left, bottom, right, top)
        for left, bottom, right, top in boxes
        if not any(
            left - GAP < x < right + GAP
            and min(abs(x - left), abs(x - right)) > SAME
            and min(high, top) - max(low, bottom) > (0.5 * (top - bottom) if left < x < right else SAME)
            for x, low, high in rules.vertical
        )
        and not any(
            (SAME < bottom - y < GAP or SAME < y - top < GAP) and begin < right - SAME and end > left + SAME
            for y, begin, end in rules.horizontal
        )
        and not any(
            other != (left, bottom, right, top) and _share_side((left, bottom, right, top), other) for other in boxes
        )
    ]


def _overlap(box: Box, other: Box) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def _share_side(box: Box, other: Box) -> bool:
    is_at_side = box[1] < other[3] - SAME and other[1] < box[3] - SAME
    is_above = box[0] < other[2] - SAME and other[0] < box[2] - SAME
    return (is_at_side and min(abs(box[0] - other[2]), abs(box[2] - other[0])) <= SAME) or (
        is_above and min(abs(box[1] - other[3]), abs(box[3] - other[1])) <= SAME
    )


SYLLABLE = "\uac00-\ud7a3"
SYLLABLES_AT_END, SYLLABLES_AT_START = re.compile(f"[{SYLLABLE}]+\\Z"), re.compile(f"[{SYLLABLE}]+")
TOKEN = re.compile(f"(?<![{SYLLABLE}])[{SYLLABLE}]+")
#: Particles and endings which never start a word.
NEVER_FIRST = frozenset({
    "은", "는", "가", "을", "를", "의", "에", "에서", "에게", "께서", "와", "과", "로", "으로", "부터", "까지", "마다",
    "보다", "처럼", "며", "으며", "고", "면", "으면", "다", "이다", "이며", "니다", "습니다", "입니다",
})  # fmt: skip
#: Verb forms attached to the previous noun, unless a particle ends it.
OF_NOUN = re.compile("(?:하[여고며는지면다]|한다|합니다|되[어고며는지면다]|된다|됩니다|시[켜키])")
PARTICLE_END = frozenset("을를은는이가도만에로와과의야지게고면서며")
#: In syllables: the widths of a blank and of other letters, the difference between full lines, and the room left in
#: them.
BLANK, OTHER, SAME_WIDTH, FREE_WIDTH = 0.3, 0.55, 1.7, 1.6
FEWEST_FULL, MOST_FULL = 3, 0.8
#: In points, and in line heights.
SAME_EDGE, NEXT_LINE = 3.0, 2.2


def join_broken_words(lines: Sequence[str], boxes: dict[int, Box]) -> list[str]:
    """Join words broken at a line end. The whole word is put on the first line.

    `boxes` maps line numbers to boxes.
    """
    joined = list(lines)
    broken = [
        (place, place + 1)
        for place in range(len(lines) - 1)
        if place in boxes and place + 1 in boxes
        and SYLLABLES_AT_END.search(lines[place]) and SYLLABLES_AT_START.match(lines[place + 1])
        and _follow(boxes[place], boxes[place + 1])
    ]  # fmt: skip
    full = _full_lines(lines, boxes, [place for place, _ in broken])
    if len(full) < max(FEWEST_FULL, MOST_FULL * len(broken)):
        return joined
    words = set(TOKEN.findall("\n".join(lines)))
    for place, below in broken:
        before, after = SYLLABLES_AT_END.search(lines[place]), SYLLABLES_AT_START.match(joined[below])
        if place not in full or before is None or after is None or not _is_broken(before[0], after[0], words):
            continue
        head, _, rest = joined[below].partition(" ")
        joined[place] += head
        joined[below] = rest
    return joined


def _follow(above: Box, below: Box) -> bool:
    height = above[3] - above[1]
    return below[0] <= above[0] + SAME_EDGE and 0 < above[1] - below[1] < NEXT_LINE * height


def _full_lines(lines: Sequence[str], boxes: dict[int, Box], places: Sequence[int]) -> set[int]:
    """Return the indexes of lines which have no room for a further syllable.

    Empty if the lines differ in their number of syllables.
    """
    if not places:
        return set()
    edge = max(boxes[place][2] for place in places)
    widths: dict[int, float] = {}
    for place in places:
        left, _, right, _ = boxes[place]
        width = sum(
            BLANK if character == " " else 1.0 if character >= "\u1100" else OTHER for character in lines[place]
        )
        if edge - right < FREE_WIDTH * (right - left) / width:
            widths[place] = width
    lefts = {boxes[place][0] for place in widths}
    # Lines only stretched to the edge have fewer letters if a long word moved to the next line.
    if not widths or max(widths.values()) - min(widths.values()) > SAME_WIDTH + (max(lefts) - min(lefts)) / 8:
        return set()
    return set(widths)


def _is_broken(before: str, after: str, words: set[str]) -> bool:
    if after in NEVER_FIRST:
        return True
    if OF_NOUN.match(after) and before[-1] not in PARTICLE_END:
        return True
    beginning = (before + after)[: len(before) + 2]
    return any(word.startswith(beginning) for word in words if word not in (before, after))
