"""Chunks that stay on their page, so that a citation names exactly one: source 002's `chunkByPageTexts`.

Where a text has no pages, `chunkFullText`: the same cut over the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag.ingestion.chunking.boundaries import Boundaries
from rag.ingestion.chunking.pieces import Span, page_starts, parts_between
from rag.ingestion.chunking.smart import spans_of_parts
from rag.types import Page


def paged_spans(
    text: str, pages: Sequence[Page], chunk_size: int, overlap: int, minimum: int, breaks: Sequence[int]
) -> list[Span]:
    """Spans of at most `chunk_size` characters, none on two pages, none sharing text with another page's."""
    parts = parts_between(page_starts(pages), len(text))
    return spans_of_parts(Boundaries(text, breaks), parts, chunk_size, overlap, minimum)
