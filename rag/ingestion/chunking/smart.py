"""Chunks that end where a reader would pause: at sections, paragraphs, sentences, lines or at least words."""

from __future__ import annotations

from collections.abc import Sequence

from rag.ingestion.chunking.boundaries import (
    LINE,
    PARAGRAPH,
    SENTENCE,
    WORD,
    Boundaries,
    before_marks,
    first_between,
    last_between,
)

#: A chunk is filled to at least this share before a weaker boundary than a section's or paragraph's ends it.
FILLED = 0.6
#: A section or paragraph may end a chunk from this share on.
HALF = 0.4


def smart_spans(
    text: str, chunk_size: int, overlap: int, minimum: int, breaks: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """Spans of at most `chunk_size` characters that cover the text. `breaks` are starts of sections.

    The overlap is whole sentences, else whole words, where there are any within its length.
    """
    return _spans_within(Boundaries(text, breaks), 0, len(text), chunk_size, overlap, minimum)


def spans_of_parts(
    boundaries: Boundaries, parts: Sequence[tuple[int, int]], chunk_size: int, overlap: int, minimum: int
) -> list[tuple[int, int]]:
    """The same for parts of a text that are not to be mixed: each is cut by itself."""
    return [
        span for start, end in parts for span in _spans_within(boundaries, start, end, chunk_size, overlap, minimum)
    ]


def _spans_within(
    boundaries: Boundaries, begin: int, stop: int, chunk_size: int, overlap: int, minimum: int
) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = begin
    while start < stop:
        end = _end_of_chunk(boundaries, start, stop, chunk_size, overlap, minimum)
        spans.append((start, end))
        if end >= stop:
            break
        start = _start_of_next(boundaries, start, end, overlap)
    if len(spans) > 1 and stop - spans[-2][1] < minimum:
        spans[-1] = (_start_of_last(boundaries, spans[-2][0], stop, chunk_size, overlap, minimum), stop)
    return spans


def _end_of_chunk(boundaries: Boundaries, start: int, stop: int, chunk_size: int, overlap: int, minimum: int) -> int:
    limit = min(start + chunk_size, stop)
    # Past the overlap with the chunk before there has to be something new.
    least = start + max(overlap, minimum)
    if limit == stop:
        # What is left fits; still a new section is worth a chunk of its own when both halves are large enough.
        section = last_between(boundaries.sections, max(least, start + int(chunk_size * FILLED)), stop - minimum)
        return section or stop
    half = max(least, start + int(chunk_size * HALF))
    if boundaries.sections:
        section = last_between(boundaries.sections, half, limit)
        if section is not None:
            return section
    filled = max(least, start + int(chunk_size * FILLED))
    last = boundaries.last
    return (
        last(PARAGRAPH, half, limit)
        or last(SENTENCE, filled, limit)
        or last(LINE, filled, limit)
        or last(SENTENCE, least, limit)
        or last(WORD, least, limit)
        or last(WORD, start + overlap, limit)
        or before_marks(boundaries.text, limit, start + overlap)
    )


def _start_of_next(boundaries: Boundaries, start: int, end: int, overlap: int) -> int:
    if overlap == 0 or first_between(boundaries.sections, end, end + 1) is not None:
        return end  # a section begins here: what came before belongs to another
    low = max(end - overlap, start + 1)
    first = boundaries.first
    return first(PARAGRAPH, low, end) or first(SENTENCE, low, end) or first(WORD, low, end) or low


def _start_of_last(boundaries: Boundaries, low: int, stop: int, chunk_size: int, overlap: int, minimum: int) -> int:
    """Where the last chunk begins when its new text alone is shorter than wanted: it takes more from the one before."""
    earliest = max(low + 1, stop - chunk_size)
    latest = max(stop - max(minimum, overlap), earliest)
    nearest = max(earliest, stop - max(chunk_size // 2, minimum * 2, overlap * 2) - 1)
    section = last_between(boundaries.sections, nearest, latest)
    if section is not None:
        return section
    last = boundaries.last
    return last(PARAGRAPH, nearest, latest) or last(SENTENCE, nearest, latest) or last(WORD, nearest, latest) or latest
