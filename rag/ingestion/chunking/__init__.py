"""Pages in, chunks out. Pure and deterministic: the same input gives the same chunks.

A chunk's content is exactly `text[start:end]` of the joined text; together the chunks hold everything but blank space,
in order; none is longer than `chunk_size`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from rag.errors import InvalidInput
from rag.ingestion.chunking.fixed import fixed_spans
from rag.ingestion.chunking.semantic import semantic_spans
from rag.ingestion.chunking.smart import smart_spans
from rag.providers import Embedder
from rag.types import Chunk, ChunkingMethod, Page, Section

Span = tuple[int, int]
#: Between the headings of a section's path.
PATH_SEPARATOR = " › "
VISIBLE = re.compile(r"\S")


def chunk_text(
    text: str,
    *,
    method: ChunkingMethod = "smart",
    chunk_size: int = 1000,
    overlap: int = 200,
    minimum_chunk_size: int = 100,
    embedder: Embedder | None = None,
) -> list[Chunk]:
    """Cut a text into chunks of at most `chunk_size` characters; sizes are those of source 004.

    `fixed` cuts by length, `smart` at paragraphs and sentences, `semantic` where the topic changes by the distances of
    `embedder`'s vectors. Consecutive chunks share up to `overlap` characters. Raises `InvalidInput` for sizes that do
    not fit together and for `semantic` without an embedder.
    """
    page = Page(number=1, text=text)
    return chunk_document(
        [page],
        [],
        method=method,
        chunk_size=chunk_size,
        overlap=overlap,
        minimum_chunk_size=minimum_chunk_size,
        embedder=embedder,
    )


def chunk_document(
    pages: Sequence[Page],
    sections: Sequence[Section],
    *,
    method: ChunkingMethod = "smart",
    chunk_size: int = 1000,
    overlap: int = 200,
    minimum_chunk_size: int = 100,
    embedder: Embedder | None = None,
) -> list[Chunk]:
    """Cut a document into chunks that know their pages, character span and section. Options as in `chunk_text`."""
    if chunk_size < 1 or not 0 <= overlap < chunk_size:
        raise InvalidInput("The overlap of chunks has to be smaller than their size.")
    text = join_pages(pages)
    minimum = min(minimum_chunk_size, chunk_size // 2)
    breaks = _breaks(sections)
    if method == "fixed":
        spans = fixed_spans(text, chunk_size, overlap)
    elif method == "smart":
        spans = smart_spans(text, chunk_size, overlap, minimum, breaks)
    elif method == "semantic":
        if embedder is None:
            raise InvalidInput("Chunking by topic needs an embedding model.")
        spans = semantic_spans(text, chunk_size, overlap, minimum, breaks, embedder)
    else:
        raise InvalidInput(f"There is no chunking method {method!r}; choose fixed, smart or semantic.")
    return chunks_from_spans(pages, sections, spans)


def chunks_from_spans(pages: Sequence[Page], sections: Sequence[Section], spans: Iterable[Span]) -> list[Chunk]:
    """Chunks of given spans of the joined text, blank space at their ends left out; blank ones are none."""
    text = join_pages(pages)
    starts = _page_starts(pages)
    numbers = [page.number for page in pages]
    ordered = sorted(sections, key=lambda section: section.start)
    paths = _paths(ordered)
    section_starts = [section.start for section in ordered]
    chunks: list[Chunk] = []
    covered = 0
    for start, end in spans:
        content = text[start:end]
        first_visible = VISIBLE.search(content)
        if first_visible is None:
            continue
        end = start + len(content.rstrip())
        start += first_visible.start()
        if chunks and end <= chunks[-1].end:
            continue  # nothing new in it
        chunks.append(
            Chunk(
                index=len(chunks),
                content=text[start:end],
                first_page=numbers[bisect_right(starts, start) - 1],
                last_page=numbers[bisect_right(starts, end - 1) - 1],
                start=start,
                end=end,
                section=_section_of(max(start, covered), end, section_starts, paths),
            )
        )
        covered = end
    return chunks


def join_pages(pages: Sequence[Page]) -> str:
    """The document's text: its pages joined by one newline."""
    return "\n".join(page.text for page in pages)


def _breaks(sections: Sequence[Section]) -> list[int]:
    """Where a chunk may end for a section: not between a heading and the one right under it."""
    breaks: list[int] = []
    bare_until = -1
    for section in sorted(sections, key=lambda section: section.start):
        if section.start > bare_until:
            breaks.append(section.start)
        bare_until = section.start + len(section.title) + 2
    return breaks


def _page_starts(pages: Sequence[Page]) -> list[int]:
    starts = [0]
    for page in pages[:-1]:
        starts.append(starts[-1] + len(page.text) + 1)
    return starts


def _paths(sections: Sequence[Section]) -> list[str]:
    """For each section its path: the headings above it and its own."""
    paths = []
    above: list[Section] = []
    for section in sections:
        while above and above[-1].level >= section.level:
            above.pop()
        above.append(section)
        paths.append(PATH_SEPARATOR.join(item.title for item in above))
    return paths


def _section_of(start: int, end: int, starts: Sequence[int], paths: Sequence[str]) -> str:
    """The section that most of a span belongs to; what it shares with the chunk before does not count."""
    first = bisect_right(starts, start) - 1
    last = bisect_right(starts, end - 1) - 1
    best, longest = "", 0
    for index in range(first, last + 1):
        begin = max(start, starts[index]) if index >= 0 else start
        until = min(end, starts[index + 1]) if index + 1 < len(starts) else end
        if until - begin > longest:
            longest = until - begin
            best = paths[index] if index >= 0 else ""
    return best


__all__ = ["chunk_document", "chunk_text", "chunks_from_spans", "join_pages"]
