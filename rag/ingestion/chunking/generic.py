"""Chunks of whole paragraphs, without overlap: source 001's way with documents of no known kind."""

from __future__ import annotations

from rag.ingestion.chunking.boundaries import PARAGRAPH, Boundaries
from rag.ingestion.chunking.pieces import Span
from rag.ingestion.chunking.smart import spans_of_parts


def generic_spans(text: str, chunk_size: int) -> list[Span]:
    """Spans of as many paragraphs as fit `chunk_size` characters; a longer paragraph is cut at its sentences."""
    spans: list[Span] = []
    boundaries = Boundaries(text)
    start = paragraph = 0
    for end in [*(match.end() for match in PARAGRAPH.finditer(text)), len(text)]:
        if len(text[start:end].rstrip()) <= chunk_size:
            paragraph = end
            continue
        if paragraph > start:
            spans.append((start, paragraph))
        start = paragraph
        if len(text[start:end].rstrip()) > chunk_size:
            spans.extend(spans_of_parts(boundaries, [(start, end)], chunk_size, 0, 0))
            start = end
        paragraph = end
    if start < len(text):
        spans.append((start, len(text)))
    return spans
