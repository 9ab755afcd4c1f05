"""Split a story into pieces of about 450 tokens, each of which repeats the end of the one before. Source 001."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from rag.ingestion.chunking.boundaries import LINE, PARAGRAPH, SENTENCE, Boundaries, fitting_end, overlap_start
from rag.ingestion.chunking.document_types import fiscal_year_of
from rag.ingestion.chunking.spans import Piece, Span
from rag.profile import Chunking
from rag.providers.tokens import estimate_tokens

#: A chunk ends with a paragraph from this share of its target on.
FILLED = 0.6


def narrative_pieces(text: str, file_name: str, limits: Chunking) -> list[Piece]:
    """Split into pieces of 450 to 500 tokens where sentences allow, at most 600, each with its number."""
    boundaries = Boundaries(text)
    spans = _spans(boundaries, limits)
    paragraphs = boundaries.paragraphs
    fiscal_year, year = fiscal_year_of(file_name)
    pieces = []
    for part, (start, end) in enumerate(spans, start=1):
        first, last = bisect_right(paragraphs, start) + 1, bisect_right(paragraphs, max(start, end - 1)) + 1
        metadata: dict[str, Any] = {
            "source": file_name,
            "category": "journey",
            "paragraphs": f"{first}-{last}" if last > first else str(first),
            "part": f"{part}/{len(spans)}",
        }
        if fiscal_year:
            metadata |= {"fiscalYear": fiscal_year, "year": year}
        pieces.append(Piece(start, end, metadata))
    return pieces


def _spans(boundaries: Boundaries, limits: Chunking) -> list[Span]:
    spans: list[Span] = []
    overlap_tokens = min(limits.narrative_overlap_tokens, limits.narrative_hard_tokens // 2)
    start, covered, stop = 0, 0, len(boundaries.text)
    while covered < stop:
        end = _end_of_chunk(boundaries, start, covered, stop, limits)
        spans.append((start, end))
        covered = end
        start = overlap_start(boundaries, start, end, words=limits.narrative_overlap_words, tokens=overlap_tokens)
    return spans


def _end_of_chunk(boundaries: Boundaries, start: int, covered: int, stop: int, limits: Chunking) -> int:
    """Move a start past `covered`, so that each chunk has something new."""
    hard_limit, soft_limit = limits.narrative_hard_tokens, limits.narrative_soft_tokens
    share, wanted = soft_limit / hard_limit, limits.narrative_target_tokens / hard_limit
    hard = max(fitting_end(boundaries, start, stop, hard_limit), covered + 1)
    length = hard - start
    if hard == stop and estimate_tokens(boundaries.text[start:stop]) <= soft_limit:
        return stop
    soft = max(start + int(length * share), covered + 1)
    target = start + int(length * wanted)
    filled = max(start + int(length * wanted * FILLED), covered)
    last = boundaries.last
    for end in (
        last(PARAGRAPH, filled, soft),
        last(SENTENCE, max(filled, covered), soft),
        last(SENTENCE, max(soft, covered), hard),
        last(LINE, max(filled, covered), soft),
    ):
        if end is not None and estimate_tokens(boundaries.text[start:end]) <= hard_limit:
            return end
    return max(fitting_end(boundaries, start, min(max(target, covered + 1), stop), hard_limit), covered + 1)
