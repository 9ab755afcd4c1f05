"""Split where the topic changes, by the distance between the sentences before and after.

Each sentence is embedded once; three sentences on either side of a gap are compared (Hearst's TextTiling, 1997, with
vectors for word counts). Gaps in the upper percentiles of distance are boundaries.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rag.ingestion.chunking.boundaries import Boundaries
from rag.ingestion.chunking.splitter import spans_of_parts
from rag.providers import Embedder

#: Sentences looked at on either side of a gap.
WINDOW = 3
#: Share of gaps that are no boundary, in percent.
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
    """Split into spans of one topic, of at most `chunk_size` characters; longer topics are split as by `smart`."""
    boundaries = Boundaries(text, breaks)
    parts = topics(boundaries, minimum, embedder)
    return spans_of_parts(boundaries, parts, chunk_size, overlap, minimum)


def topics(boundaries: Boundaries, minimum: int, embedder: Embedder) -> list[tuple[int, int]]:
    """Return the parts of the text that stay with one topic, at least `minimum` characters each."""
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
    # The clearest change first: its neighbours see half of it and would take its place.
    ends = [0, len(text)]
    for gap, distance in sorted(gaps, key=lambda item: (-item[1], item[0])):
        if distance <= max(threshold, 0.0):
            break
        index = bisect_left(ends, gap)
        if gap - ends[index - 1] >= minimum and ends[index] - gap >= minimum:
            ends.insert(index, gap)
    return list(pairwise(ends))


def gap_distances(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine distances, 0 … 2, of the vectors summed before and after each gap: shape (texts - 1,)."""
    sums = np.vstack([np.zeros(vectors.shape[1]), np.cumsum(vectors, axis=0, dtype=np.float64)])
    gaps = np.arange(1, len(vectors))
    before = sums[gaps] - sums[np.maximum(gaps - WINDOW, 0)]
    after = sums[np.minimum(gaps + WINDOW, len(vectors))] - sums[gaps]
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    similarity = np.divide(np.sum(before * after, axis=1), lengths, out=np.zeros(len(gaps)), where=lengths > 1e-12)
    # Rounded, so that the same text is cut alike on machines that sum in another order.
    distances: NDArray[np.float64] = np.round(1 - similarity, 6)
    return distances
