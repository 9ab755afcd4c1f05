"""What an admin should know about how a document was read, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from rag.errors import NoTextInPdf
from rag.types import Page


def reading_message(pages: Sequence[Page]) -> str:
    """What an admin should know about how the pages were read; empty when all went well."""
    sentences = []
    empty = [page.number for page in pages if not page.text.strip() and not page.warnings]
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
    if any(page.warnings for page in pages):
        return reading_message(pages)
    return f"{NoTextInPdf()} ({page_list([page.number for page in pages])})"


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
