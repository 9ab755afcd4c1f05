"""Chunks of a notice: title, content and attachments as one text, cut where a sentence or line ends. Source 000, 2."""

from __future__ import annotations

import re

from rag.ingestion.chunking.boundaries import WORD, Boundaries, word_end

#: Source 000: `.`, `?`, `!` and a newline; the marks of other scripts mean the same.
ENDS = re.compile(r"[.?!](?=\s)\s*+|[。！？｡．؟۔।॥]\s*+|\n\s*+")


def sentence_spans(text: str, chunk_size: int, overlap: int, minimum: int) -> list[tuple[int, int]]:
    """Spans of at most `chunk_size` characters that begin at least `chunk_size - overlap` after each other.

    So a chunk ends within its last `overlap` characters or not at a boundary. The last is at least `minimum` long.
    """
    boundaries = Boundaries(text)
    spans: list[tuple[int, int]] = []
    start, stop = 0, len(text)
    while stop - start > chunk_size:
        advanced, limit = start + chunk_size - overlap, start + chunk_size
        end = boundaries.last(ENDS, advanced, limit) or word_end(boundaries, max(advanced - 1, start), limit)
        spans.append((start, end))
        start = boundaries.first(ENDS, advanced, end) or boundaries.first(WORD, advanced, end) or min(advanced, end)
    if start < stop:
        if spans and stop - start < minimum:
            start = max(stop - minimum, spans[-1][0] + 1)
        spans.append((start, stop))
    return spans
