"""What an admin should know about how a document was read, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from rag.errors import NoTextInPdf
from rag.ingestion.loaders.page_text import BLANK_PAGE
from rag.types import Page

#: Of a document whose tags wait for a key or for money.
TAGS_WAIT = "This document is found already; its summary, topics and questions are still to be written."


def reading_message(pages: Sequence[Page], *, awaiting: Sequence[int] = (), assumed: int = 0) -> str:
    """What an admin should know about how the pages were read; empty when all went well.

    `awaiting` are pages whose text will be recognised once the document is confirmed; the estimate took each to have
    `assumed` characters.
    """
    sentences = []
    if awaiting:
        sentences.append(
            f"{page_list(awaiting)} will be read by text recognition. How much text that gives is not known yet: the "
            f"estimate assumes {assumed:,} characters a page."
        )
    empty = [p.number for p in pages if not p.text.strip() and not p.warnings and p.number not in awaiting]
    if empty:
        verb = "has" if len(empty) == 1 else "have"
        sentences.append(f"{page_list(empty)} {verb} no text and cannot be searched; scanned pages need OCR.")
    by_warning: dict[str, list[int]] = {}
    for page in pages:
        for warning in page.warnings:
            by_warning.setdefault(warning, []).append(page.number)
    for warning, numbers in by_warning.items():
        where = f"{page_list(numbers)}: " if len(numbers) < len(pages) else ""
        sentences.append(f"{where}{warning}")
    return " ".join(sentences)


def no_text_message(pages: Sequence[Page]) -> str:
    """Why there is nothing to search: pages that are pictures, or text that cannot be used."""
    if all_blank(pages):
        return "Every page of this file is blank."
    scanned = [page.number for page in pages if BLANK_PAGE not in page.warnings]
    if any(page.warnings for page in pages if page.number in set(scanned)):
        return reading_message(pages)
    return f"{NoTextInPdf()} ({page_list(scanned)})"


def all_blank(pages: Sequence[Page]) -> bool:
    """Whether there is nothing on any page, so that text recognition would find nothing either."""
    return bool(pages) and all(BLANK_PAGE in page.warnings for page in pages)


def page_list(numbers: Sequence[int]) -> str:
    """Pages in words: "Page 4", "Pages 1–3, 7", the end of a long list left out."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in ranges[:12])
    return f"Page{'s' if len(numbers) > 1 else ''} {shown}{' and more' if len(ranges) > 12 else ''}"
