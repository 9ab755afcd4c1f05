"""Sections of a document: its outline where it has one, else lines set larger or bolder than the text around them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rag.types import Section

#: Longest line that may be a heading, in characters.
LONGEST_HEADING = 90
#: How much larger than the text a heading is set.
LARGER = 1.12
#: More levels than this tell a reader nothing.
LEVELS = 4
#: A document with more headings than this has them found wrongly.
MOST_SECTIONS = 2000
BOLD = re.compile(r"bold|black|heavy|semibold|demi", re.IGNORECASE)
ENDS_LIKE_TEXT = re.compile(r"[.,;:!?。、，；：]$|\.{4,}|\. \. \.|…")
#: Articles and chapters of rules in Korean, Chinese, Japanese and German are headings however they are set.
ARTICLE = re.compile(r"^(제\s?\d+\s?[조장절관편]|第[\d一二三四五六七八九十百]+[条章節节編编]|§\s?\d+\s)")


@dataclass(frozen=True)
class Style:
    """How a line is set: size in points, and whether all of it is bold."""

    size: float
    is_bold: bool


@dataclass(frozen=True)
class StyledPage:
    """The final text of a page, and the styles of its lines by their content."""

    number: int
    text: str
    styles: dict[str, Style]


def sections_by_style(pages: Iterable[StyledPage], body: float) -> tuple[Section, ...]:
    """Sections from how lines are set beside the text. `start` counts in the texts joined by one newline."""
    found: list[tuple[str, float, int, int]] = []
    start = 0
    for page in pages:
        position = start
        previous_end = -1
        for line in page.text.split("\n"):
            style = page.styles.get(line)
            rank = _rank(line, style, body)
            if rank:
                last = found[-1] if found else None
                if last and previous_end == position and _goes_on(last[0], line, last[1] == rank and style is not None):
                    found[-1] = (f"{last[0]} {line}", rank, last[2], last[3])
                else:
                    found.append((line, rank, page.number, position))
                previous_end = position + len(line) + 1
            position += len(line) + 1
        start += len(page.text) + 1
    if len(found) > MOST_SECTIONS:
        return ()
    ranks = sorted({item[1] for item in found}, reverse=True)
    levels = {rank: min(level, LEVELS) for level, rank in enumerate(ranks, 1)}
    return tuple(
        Section(title=title, level=levels[rank], page=number, start=position) for title, rank, number, position in found
    )


def _goes_on(heading: str, line: str, is_set_alike: bool) -> bool:
    """Whether a line is the second half of the heading right above it."""
    return is_set_alike and line != heading and len(heading) + len(line) < LONGEST_HEADING


def _rank(line: str, style: Style | None, body: float) -> float:
    """0 for text; else larger for more important headings."""
    if not 2 <= len(line) <= LONGEST_HEADING or not re.search(r"[^\W\d_]{2}", line):
        return 0.0
    if ARTICLE.match(line) and not ENDS_LIKE_TEXT.search(line):
        return max(round(style.size * 2) / 2 if style else 0.0, 0.5)
    if style is None or not body or ENDS_LIKE_TEXT.search(line) or line[0].islower() or line[0] in "•-–*·○":
        return 0.0
    if style.size >= body * LARGER:
        return round(style.size * 2) / 2
    if style.is_bold and style.size >= body * 0.97 and len(line) <= 70:
        return round(body * 2) / 2
    return 0.0


def sections_by_outline(entries: Sequence[tuple[str, int, int]], texts: Iterable[str]) -> tuple[Section, ...]:
    """Sections from an outline of (title, level, page from 1): each begins where its title stands on its page."""
    wanted: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for title, level, page in entries[:MOST_SECTIONS]:
        wanted[page].append((title, level))
    sections = []
    start = 0
    for number, text in enumerate(texts, 1):
        for title, level in wanted.get(number, ()):
            words = [re.escape(word) for word in title.split()]
            match = re.search(r"\s+".join(words), text, re.IGNORECASE)
            offset = match.start() if match else 0
            sections.append(Section(title=title, level=min(level, LEVELS), page=number, start=start + offset))
        start += len(text) + 1
    return tuple(sorted(sections, key=lambda section: section.start))
