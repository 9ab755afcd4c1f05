"""Divide a page into lines with styles, gaps and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.page_marks import around
from rag.ingestion.loaders.page_text import (
    Style,
)
from rag.ingestion.loaders.pdf_columns import (
    Span,
)
from rag.ingestion.loaders.pdf_letters import is_space, owner_of
from rag.ingestion.loaders.pdf_objects import Box, TextObject

#: Longer lines are no headings; their ends are enough to tell their size.
LONGEST_STYLED = 90
#: Gaps from baseline to baseline, in letter sizes: a smaller gap is the same line; the usual gap (CSS and Word set 1.2)
#: if a page has too few lines; and how much wider a gap between paragraphs is (Word's 8 points below an 11-point
#: paragraph make 1.55 times).
SAME_LINE_GAP, USUAL_LINE_GAP, WIDER_GAP = 0.6, 1.2, 1.25
FEWEST_LINE_GAPS = 4


@dataclass(frozen=True, slots=True)
class _Line:
    """A line's first and last text object, and the line's style and box."""

    first: TextObject
    last: TextObject
    style: Style
    box: Box

    def goes_on_from(self, above: _Line) -> bool:
        """Whether the line continues the line above, because pdfium starts a new line after a raised figure."""
        return (
            above.first.is_level
            and self.first.is_level
            and abs(above.first.y - self.first.y) < 0.1 * self.first.size
            and above.first.x < above.last.box[2] <= self.first.box[0] + 0.3 * self.first.size
            and self.first.box[0] < above.last.box[2] + self.first.size
        )

    def gap_below(self, above: _Line) -> float:
        """Return the distance to the line above, divided by the smaller letter size; 0 if the line is not below."""
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
    text_page: Any, spans: Sequence[Span], text: str, letters: Sequence[str], texts: dict[int, TextObject]
) -> tuple[list[str], dict[str, Style], dict[int, float], dict[int, Box]]:
    """Return a page's lines; their styles by text; the gaps above and the boxes by line number.

    A gap is the distance between two baselines, divided by the smaller letter size.
    """
    # Word draws an empty paragraph as a line with a space.
    blanks = [item for item in texts.values() if is_space(item)]
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


def parted(lines: Sequence[str], gaps: dict[int, float], boxes: dict[int, Box]) -> tuple[list[str], dict[int, Box]]:
    """Insert an empty line above each line with a wider gap than within paragraphs. Boxes get the new line numbers."""
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


def _has_between(blanks: Sequence[TextObject], above: _Line, line: _Line) -> bool:
    """Whether an empty line is drawn between two lines."""
    high, low = above.last.y, line.first.y
    return any(
        low + 0.3 * item.size < item.y < high - 0.3 * item.size and above.last.order < item.order < line.first.order
        for item in blanks
    )


def _sampled(text_page: Any, text: str, start: int, end: int, texts: dict[int, TextObject]) -> _Line | None:
    """Describe a line by a few letters' objects, because checking all letters would take too long."""
    line = text[start:end]
    first, last = start + len(line) - len(line.lstrip()), start + len(line.rstrip()) - 1
    ends = [owner_of(text_page, first), owner_of(text_page, last)]
    if ends[0] == ends[1] or last - first >= LONGEST_STYLED:
        addresses = ends
    else:
        places = (first + (last - first) * part // 4 for part in (1, 2, 3))
        addresses = [ends[0], *(owner_of(text_page, index) for index in places), ends[1]]
    seen = [texts[address] for address in addresses if address in texts]
    if not seen:
        return None
    sizes = [found.size for found in seen]
    style = Style(max(sizes, key=sizes.count), all(found.is_bold for found in seen))
    return _Line(seen[0], seen[-1], style, around(seen[0].box, seen[-1].box))


def positions_of(lines: Sequence[str], places: dict[int, Box | None]) -> dict[int, Box]:
    """Convert boxes by line number to boxes by position in the text. A whole table counts as a single line."""
    found: dict[int, Box] = {}
    position = 0
    for index, line in enumerate(lines):
        if (place := places.get(index)) is not None:
            found[position] = place
        position += 1 + line.count("\n")
    return found
