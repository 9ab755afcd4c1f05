"""Chunks by a list of separators, coarsest first: what source 003 uses LangChain's recursive splitter for.

LangChain cuts the whole text at every separator and joins the pieces again; here the last separator that fits a chunk
is looked for from its end, which gives the same cuts without making the pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag.ingestion.chunking.boundaries import before_marks
from rag.profile import Chunking

#: Source 003, 1.2. The last of its list, the empty one, is `before_marks`: a cut between any two characters.
SEPARATORS = tuple(separator for separator in Chunking().separators if separator)


def recursive_spans(
    text: str, chunk_size: int, overlap: int, separators: Sequence[str] = SEPARATORS
) -> list[tuple[int, int]]:
    """Spans of at most `chunk_size` characters that end after the coarsest separator there is in each."""
    present = [(separator, len(separator)) for separator in separators if separator and separator in text]
    spans = []
    start, stop = 0, len(text)
    while stop - start > chunk_size:
        limit = start + chunk_size
        low = start + overlap
        end = 0
        for separator, length in present:
            found = text.rfind(separator, max(low + 1 - length, start), limit)
            if found >= 0:
                end = found + length
                break
        else:
            end = before_marks(text, limit, low)
        spans.append((start, end))
        start = _start_of_next(text, end, overlap, present)
    if start < stop:
        spans.append((start, stop))
    return spans


def _start_of_next(text: str, end: int, overlap: int, separators: Sequence[tuple[str, int]]) -> int:
    """After the first of the coarsest separators within the overlap, so that it begins with a whole piece."""
    low = end - overlap
    for separator, length in separators:
        # A negative end would count from the end of the text.
        found = text.find(separator, low, max(low, end - length))
        if found >= 0:
            return found + length
    return low
