"""What stands in for the picture of a page where a document has none: its text, in parts, with the passage marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from rag.answering.places import terms_held
from rag.ingestion.chunking.spans import page_starts
from rag.types import DocumentChunk, DocumentPage

#: A part is read without much scrolling and ends with a line where one ends near, in characters.
PART_CHARACTERS = 3000
#: What is shown before the passage in its part, so that it is in sight at once.
LEAD_CHARACTERS = 300
LINE_END = re.compile(r"\n+")
MARK = "background:rgba(255,208,0,.45);color:inherit;border-radius:3px"


def page_with_most(terms: Sequence[str], pages: Sequence[DocumentPage], passage: DocumentChunk) -> int:
    """The page of a passage on which most of these words stand, of equal ones the first."""
    best, most = passage.first_page, 0
    for page, start in zip(pages, page_starts(pages), strict=False):
        if passage.first_page <= page.number <= passage.last_page:
            own = slice(max(passage.start_character - start, 0), max(passage.end_character - start, 0))
            held = terms_held(terms, page.text[own])
            if held > most:
                best, most = page.number, held
    return best


def parts_of(text: str, passage: int = 0) -> list[tuple[int, int]]:
    """Where each part begins and ends; there is always one. A part begins a little before `passage`, a character."""
    place = text.rfind("\n", 0, max(passage - LEAD_CHARACTERS, 0)) + 1
    before = list(_parts_between(text, 0, place)) if place else []
    return [*before, *_parts_between(text, place, len(text))]


def _parts_between(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    while stop - start > PART_CHARACTERS * 4 // 3:
        ends = [m.end() for m in LINE_END.finditer(text, start + PART_CHARACTERS // 2, start + PART_CHARACTERS)]
        end = ends[-1] if ends else start + PART_CHARACTERS
        yield start, end
        start = end
    yield start, stop


def part_with(parts: Sequence[tuple[int, int]], position: int) -> int:
    """The index of the part that a position is in."""
    return next((index for index, (_, end) in enumerate(parts) if position < end), len(parts) - 1)


def text_html(text: str, *, mark: tuple[int, int] | None = None, label: str = "", height_pixels: int = 560) -> str:
    """Text exactly as it is, as HTML that can be scrolled by keyboard; `mark` is a span of it."""
    if mark is not None and mark[0] < mark[1]:
        start, end = max(mark[0], 0), min(mark[1], len(text))
        body = f'{escape(text[:start])}<mark style="{MARK}">{escape(text[start:end])}</mark>{escape(text[end:])}'
    else:
        body = escape(text)
    return (
        f'<div role="region" aria-label="{escape(label, quote=True)}" tabindex="0" style="white-space:pre-wrap;'
        f"overflow-wrap:anywhere;font-size:.9rem;line-height:1.6;max-height:{height_pixels}px;overflow:auto;padding:12px;"
        f'border:1px solid rgba(128,138,165,.35);border-radius:8px">{body}</div>'
    )
