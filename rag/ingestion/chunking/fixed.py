"""Chunks by length alone."""

from __future__ import annotations

from rag.ingestion.chunking.boundaries import before_marks


def fixed_spans(text: str, chunk_size: int, overlap: int) -> list[tuple[int, int]]:
    """Spans of `chunk_size` characters, each beginning `overlap` characters before the end of the one before."""
    spans = []
    start = 0
    while start < len(text):
        # At least one character past what the chunk before held, or it would not get on.
        end = min(start + chunk_size, len(text))
        if end < len(text):
            end = before_marks(text, end, start + overlap)
        spans.append((start, end))
        if end == len(text):
            break
        start = end - overlap
    return spans
