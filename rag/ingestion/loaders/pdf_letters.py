"""Find the letters drawn by each object on a page, and insert spaces which are drawn separately."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import pypdfium2.raw as pdfium

from rag.ingestion.loaders.pdf_columns import (
    Span,
)
from rag.ingestion.loaders.pdf_direction import (
    is_from_the_right,
)
from rag.ingestion.loaders.pdf_objects import Box, TextObject
from rag.ingestion.loaders.pdf_raised import (
    SmallRun,
    drawn_small,
    set_on_lines,
    small_runs,
)
from rag.ingestion.loaders.pdf_words import LINE_END, box_of


def text_of(text_page: Any) -> str:
    """Return a page's text, with exactly one character for each pdfium character index."""
    count = text_page.count_chars()
    text: str = text_page.get_text_range(0, count, errors="ignore") if count else ""
    if len(text) == count:
        return text
    codes = (pdfium.FPDFText_GetUnicode(text_page, index) for index in range(count))
    return "".join(chr(code) if 0 < code < 0x110000 else " " for code in codes)


def owner_of(text_page: Any, index: int) -> int:
    item = pdfium.FPDFText_GetTextObject(text_page, index)
    return ctypes.addressof(item.contents) if item else 0


def owners_of(text_page: Any, text: str) -> list[int]:
    """Return for each character the address of the text object drawing this character, or 0 if added by pdfium."""
    return [owner_of(text_page, index) for index in range(len(text))]


def span_of_object(text_page: Any, text: str, address: int, item: TextObject) -> tuple[int, int]:
    """Return the start and (exclusive) end of a text object in the page's text, or (0, 0) if not found."""
    left, bottom, right, top = item.box
    x = left + min(right - left, item.size) / 4
    index = pdfium.FPDFText_GetCharIndexAtPos(text_page, x, (bottom + top) / 2, 1.0, 2.0)
    if index < 0 or owner_of(text_page, index) != address:
        return 0, 0
    start, end = index, index + 1
    while start > 0 and owner_of(text_page, start - 1) == address:
        start -= 1
    while end < len(text) and owner_of(text_page, end) == address:
        end += 1
    return start, end


def character_boxes(text_page: Any, text: str, address: int, item: TextObject) -> Iterator[tuple[int, Box]]:
    """Yield index and box of each character drawn by a text object."""
    for index in range(*span_of_object(text_page, text, address, item)):
        if (box := box_of(text_page, index)) is not None:
            yield index, box


def words_of(text: str, characters: Sequence[str], indexes: Sequence[int]) -> str:
    """Return the words formed by the characters at `indexes`. Characters already removed from the page are left out."""
    pieces: list[str] = []
    last = -1
    for index in indexes:
        if characters[index]:
            pieces.append(text[index] if index == last + 1 else f" {text[index]}")
            last = index
    return " ".join("".join(pieces).replace("\ufffe", "-").split())


def line_spans(text: str) -> Iterator[Span]:
    """Yield each line's start and end, and whether the line ends with a hyphen."""
    start = 0
    for end in LINE_END.finditer(text):
        yield start, end.start(), end[0] == "\ufffe"
        start = end.end()
    yield start, len(text), False


def is_space(item: TextObject) -> bool:
    """Whether an object is a space. pdfium gives spaces no width, and leaves them out of the text."""
    return item.box[2] - item.box[0] < 0.01


def put_spaces(text_page: Any, text: str, characters: list[str], texts: dict[int, TextObject]) -> None:
    """Insert spaces drawn between words. pdfium leaves them out if the gap is narrow."""
    items = list(texts.items())
    for (_, before), (_, space), (address, after) in zip(items, items[1:], items[2:], strict=False):
        if not is_space(space) or abs(after.y - before.y) > 0.1 or not after.is_level:
            continue
        if not 0.1 * after.size < after.x - space.x < after.size:
            continue
        left, bottom, right, top = after.box
        x, y = left + min(right - left, after.size) / 4, (bottom + top) / 2
        index = pdfium.FPDFText_GetCharIndexAtPos(text_page, x, y, 1.0, 2.0)
        if index <= 0 or owner_of(text_page, index) != address:
            continue
        letter = next((letter for letter in reversed(text[max(index - 9, 0) : index + 1]) if letter.isalnum()), "")
        if is_from_the_right(letter):
            continue  # the space comes after these letters, where pdfium puts it
        while index > 0 and owner_of(text_page, index - 1) == address:
            index -= 1
        if index > 0 and not text[index - 1].isspace():
            characters[index] = f" {characters[index]}"


def find_small_runs(
    text_page: Any, text: str, characters: Sequence[str], texts: dict[int, TextObject]
) -> list[SmallRun]:
    """Find superscripts and subscripts, and move their text objects to the baseline."""
    drawn = drawn_small(texts)
    is_raised_by_address = set_on_lines(texts)
    return small_runs(
        text,
        is_raised_by_address,
        lambda address: span_of_object(text_page, text, address, texts[address]),
        characters,
        drawn,
    )
