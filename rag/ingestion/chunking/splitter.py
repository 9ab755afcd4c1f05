"""Split a text: anywhere, at natural breaks, at sentences, at separators, within pages, or by topic."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rag.profiles.profile import Chunking
from rag.providers import Embedder
from rag.text.boundaries import (
    LINE,
    PARAGRAPH,
    SENTENCE,
    WORD,
    Boundaries,
    before_marks,
    first_between,
    last_between,
    word_end,
)
from rag.text.spans import Span, page_starts, parts_between
from rag.types import Page

#: Below this share of `chunk_size`, only the end of a section or paragraph may end a chunk.
FILLED = 0.6
#: From this share on, the end of a section or paragraph may end a chunk.
HALF = 0.4


def smart_spans(
    text: str, chunk_size: int, overlap: int, minimum: int, breaks: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """Return spans with at most `chunk_size` characters which cover the text.

    `breaks` are section starts. Consecutive spans overlap by whole sentences, else whole words, up to `overlap`
    characters.
    """
    return _spans_within(Boundaries(text, breaks), 0, len(text), chunk_size, overlap, minimum)


def spans_of_parts(
    boundaries: Boundaries, parts: Sequence[tuple[int, int]], chunk_size: int, overlap: int, minimum: int
) -> list[tuple[int, int]]:
    """Split each part of a text separately. No span crosses from one part into the next."""
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
    # After the overlap with the previous chunk, there must be new text.
    least = start + max(overlap, minimum)
    if limit == stop:
        # The rest fits, but a new section gets a separate chunk if both halves are large enough.
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
        return end  # a section starts here, so the text before belongs to a different section
    low = max(end - overlap, start + 1)
    first = boundaries.first
    return first(PARAGRAPH, low, end) or first(SENTENCE, low, end) or first(WORD, low, end) or low


def _start_of_last(boundaries: Boundaries, low: int, stop: int, chunk_size: int, overlap: int, minimum: int) -> int:
    """Move the last chunk's start back until the chunk has `minimum` characters.

    If possible, the new start is the start of a section, paragraph, sentence or word.
    """
    earliest = max(low + 1, stop - chunk_size)
    latest = max(stop - max(minimum, overlap), earliest)
    nearest = max(earliest, stop - max(chunk_size // 2, minimum * 2, overlap * 2) - 1)
    section = last_between(boundaries.sections, nearest, latest)
    if section is not None:
        return section
    last = boundaries.last
    return last(PARAGRAPH, nearest, latest) or last(SENTENCE, nearest, latest) or last(WORD, nearest, latest) or latest


def fixed_spans(text: str, chunk_size: int, overlap: int) -> list[tuple[int, int]]:
    """Return spans with `chunk_size` characters. Neighbouring spans share `overlap` characters."""
    spans = []
    start = 0
    while start < len(text):
        # At least one character beyond the previous chunk, to make progress.
        end = min(start + chunk_size, len(text))
        if end < len(text):
            end = before_marks(text, end, start + overlap)
        spans.append((start, end))
        if end == len(text):
            break
        start = end - overlap
    return spans


#: Source 000: `.`, `?`, `!` and a newline, plus the equivalent marks in other scripts.
ENDS = re.compile(r"[.?!](?=\s)\s*+|[。！？｡．؟۔।॥]\s*+|\n\s*+")


def sentence_spans(text: str, chunk_size: int, overlap: int, minimum: int) -> list[tuple[int, int]]:
    """Return spans with at most `chunk_size` characters, starting at least `chunk_size - overlap` apart.

    A chunk ends at a sentence end in its last `overlap` characters, else at a word end. The last chunk has at least
    `minimum` characters.
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


#: Source 003, 1.2; the last separator is empty and cuts between any two characters.
SEPARATORS = Chunking().separators


def recursive_spans(
    text: str, chunk_size: int, overlap: int, separators: Sequence[str] = SEPARATORS
) -> Iterator[tuple[int, int]]:
    """Yield the spans of LangChain's `RecursiveCharacterTextSplitter`, with at most `chunk_size` characters.

    A text is split at the first separator which it contains. Each piece starts with its separator. Short pieces are
    merged. Longer pieces are split at the following separators, and finally at any character.
    """
    yield from _recursive_spans(text, 0, len(text), chunk_size, overlap, [s for s in separators if s])


def _recursive_spans(
    text: str, start: int, stop: int, chunk_size: int, overlap: int, separators: Sequence[str]
) -> Iterator[tuple[int, int]]:
    number = next((n for n, separator in enumerate(separators) if text.find(separator, start, stop) >= 0), None)
    if number is None:
        yield from ((start + first, start + last) for first, last in _length_spans(stop - start, chunk_size, overlap))
        return
    matches = re.compile(re.escape(separators[number])).finditer(text, start, stop)
    cuts = [start, *(match.start() for match in matches if match.start() > start), stop]
    merged = 0  # pieces after this cut still need merging
    for index, (begin, end) in enumerate(pairwise(cuts)):
        if end - begin >= chunk_size:
            yield from _merge(cuts[merged : index + 1], chunk_size, overlap)
            yield from _recursive_spans(text, begin, end, chunk_size, overlap, separators[number + 1 :])
            merged = index + 1
    yield from _merge(cuts[merged:], chunk_size, overlap)


def _merge(cuts: Sequence[int], chunk_size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Merge neighbouring text pieces, and yield (start, end) spans up to `chunk_size` characters.

    Consecutive spans share whole pieces, up to `overlap` characters.
    """
    first = 0
    for index, (begin, end) in enumerate(pairwise(cuts)):
        if end - cuts[first] > chunk_size:
            yield cuts[first], begin
            while first < index and (begin - cuts[first] > overlap or end - cuts[first] > chunk_size):
                first += 1
    if len(cuts) > 1:
        yield cuts[first], cuts[-1]


def _length_spans(length: int, chunk_size: int, overlap: int) -> Iterator[tuple[int, int]]:
    for start in range(0, max(length - overlap, 1), chunk_size - overlap):
        yield start, min(start + chunk_size, length)


def paged_spans(
    text: str, pages: Sequence[Page], chunk_size: int, overlap: int, minimum: int, breaks: Sequence[int]
) -> list[Span]:
    """Return spans with at most `chunk_size` characters, each within a page and without overlap."""
    parts = parts_between(page_starts(pages), len(text))
    return spans_of_parts(Boundaries(text, breaks), parts, chunk_size, overlap, minimum)


def generic_spans(text: str, chunk_size: int) -> list[Span]:
    """Return spans of whole paragraphs, up to `chunk_size` characters. Longer paragraphs are split at sentence ends."""
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


# Detect a change of topic: embed each sentence, and compare three sentences on either side of each gap (Hearst's
# TextTiling, 1997, with vectors instead of word counts). Gaps in the upper percentiles of distance are boundaries.

#: Sentences compared on either side of a gap.
WINDOW = 3
#: Distance percentile above which a gap is a boundary.
PERCENTILE = 85
#: Longer sentences are cut for embedding: models take some thousand tokens.
LONGEST_SENTENCE = 2000


def semantic_spans(
    text: str,
    chunk_size: int,
    overlap: int,
    minimum: int,
    breaks: Sequence[int],
    embedder: Embedder,
) -> list[tuple[int, int]]:
    """Split by topic into spans up to `chunk_size` characters. Longer topics are split like `smart`."""
    boundaries = Boundaries(text, breaks)
    parts = topics(boundaries, minimum, embedder)
    return spans_of_parts(boundaries, parts, chunk_size, overlap, minimum)


def topics(boundaries: Boundaries, minimum: int, embedder: Embedder) -> list[tuple[int, int]]:
    """Return the spans of text about one topic, each with at least `minimum` characters."""
    text = boundaries.text
    cuts = sorted({*boundaries.sentences, *boundaries.paragraphs, *boundaries.sections})
    sentences = [(a, b) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True) if text[a:b].strip()]
    if len(sentences) < 2:
        return [(0, len(text))]
    vectors = embedder.embed([text[a:b].strip()[:LONGEST_SENTENCE] for a, b in sentences], purpose="document").vectors
    distances = gap_distances(vectors)
    threshold = float(np.percentile(distances, PERCENTILE))
    sections = set(boundaries.sections)
    gaps = [
        (sentence[0], 2.0 + distance if sentence[0] in sections else distance)
        for sentence, distance in zip(sentences[1:], distances, strict=True)
    ]
    # Take the clearest change first: its neighbours see half the change, and would replace it.
    ends = [0, len(text)]
    for gap, distance in sorted(gaps, key=lambda item: (-item[1], item[0])):
        if distance <= max(threshold, 0.0):
            break
        index = bisect_left(ends, gap)
        if gap - ends[index - 1] >= minimum and ends[index] - gap >= minimum:
            ends.insert(index, gap)
    return list(pairwise(ends))


def gap_distances(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine distance (0 to 2) between the texts before and after each gap, shape (texts - 1,).

    The few vectors nearest to the gap are summed on each side.
    """
    sums = np.vstack([np.zeros(vectors.shape[1]), np.cumsum(vectors, axis=0, dtype=np.float64)])
    gaps = np.arange(1, len(vectors))
    before = sums[gaps] - sums[np.maximum(gaps - WINDOW, 0)]
    after = sums[np.minimum(gaps + WINDOW, len(vectors))] - sums[gaps]
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    similarity = np.divide(np.sum(before * after, axis=1), lengths, out=np.zeros(len(gaps)), where=lengths > 1e-12)
    # Rounded, because machines sum in different orders and must cut a text alike.
    distances: NDArray[np.float64] = np.round(1 - similarity, 6)
    return distances
