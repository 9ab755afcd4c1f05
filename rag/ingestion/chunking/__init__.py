"""Split pages into chunks. Pure and deterministic: the same input gives the same chunks.

A chunk's content is exactly `text[start:end]` in the joined text, with two exceptions. `markdown` puts the repository's
details before the content. A chunk which starts inside a table gets the table's column headings before the content,
except in `recursive`. Together, the chunks hold all text except blank space, in order. No chunk exceeds its method's
limit, not counting text put before the content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypedDict, cast

from rag.errors import InvalidInput
from rag.ingestion.chunking.markdown import markdown_pieces
from rag.ingestion.chunking.splitter import (
    fixed_spans,
    generic_spans,
    paged_spans,
    recursive_spans,
    semantic_spans,
    sentence_spans,
    smart_spans,
)
from rag.ingestion.loaders.format_table import has_rows
from rag.profiles.portfolio.chunkers import narrative_pieces, professional_pieces
from rag.profiles.portfolio.document_types import Kind, document_type_of
from rag.profiles.profile import Chunking, Profile
from rag.providers import Embedder
from rag.text.spans import Piece, Span, breaks_of, chunks_from_spans, join_pages, page_starts
from rag.types import Chunk, ChunkingMethod, Page, Section


class ChunkSizes(TypedDict):
    """A chunk's size in characters: the maximum, the overlap with the previous chunk, and the minimum."""

    chunk_size: int
    overlap: int
    minimum_chunk_size: int


def _sizes(chunk_size: int, overlap: int, minimum: int = 100) -> ChunkSizes:
    return ChunkSizes(chunk_size=chunk_size, overlap=overlap, minimum_chunk_size=minimum)


#: Sizes from the sources: 004 for the first three, then 000, 003 and 001. Methods counting tokens or words have limits.
SIZES: Mapping[ChunkingMethod, ChunkSizes] = {
    "fixed": _sizes(1000, 200),
    "smart": _sizes(1000, 200),
    "semantic": _sizes(1000, 200),
    "paged": _sizes(1000, 200),
    "sentences": _sizes(1500, 200),
    "recursive": _sizes(1200, 200),
    "generic": _sizes(1000, 0),
}
#: The sources' limits in tokens and words.
DEFAULT_LIMITS = Chunking()
#: The default method of `auto` for each kind of document.
METHODS_BY_KIND = cast(Mapping[Kind, ChunkingMethod], dict(DEFAULT_LIMITS.chunking_by_type))


def chunk_document(
    pages: Sequence[Page],
    sections: Sequence[Section],
    *,
    method: ChunkingMethod = "smart",
    chunk_size: int | None = None,
    overlap: int | None = None,
    minimum_chunk_size: int | None = None,
    embedder: Embedder | None = None,
    file_name: str = "",
    limits: Chunking = DEFAULT_LIMITS,
) -> list[Chunk]:
    """Split a document into chunks, each with its pages, character span and section.

    In a workbook, no chunk spans two sheets. `chunk_size` and `overlap` are in characters; the defaults depend on the
    method. `fixed` splits by length, `smart` at paragraphs and sentences, `sentences` at sentence ends, `recursive`
    like LangChain, `paged` within pages, `generic` by paragraphs. `semantic` splits where the distance between the
    vectors from `embedder` shows a new topic. `professional` (400 to 800 tokens), `narrative` (450 to 600 tokens) and
    `markdown` (600 to 800 words) have separate limits, which `limits` may change. `auto` chooses a method from the text
    and `file_name`.

    Raises `InvalidInput` for inconsistent sizes, and for `semantic` without an embedder.
    """
    if has_rows(file_name) and len(sheets := sheets_of(pages, sections)) > 1:
        chunks_of_sheets = [
            replace(chunk, start=chunk.start + offset, end=chunk.end + offset)
            for offset, own_pages, own_sections in sheets
            for chunk in chunk_document(
                own_pages,
                own_sections,
                method=method,
                chunk_size=chunk_size,
                overlap=overlap,
                minimum_chunk_size=minimum_chunk_size,
                embedder=embedder,
                file_name=file_name,
                limits=limits,
            )
        ]
        return [replace(chunk, index=index) for index, chunk in enumerate(chunks_of_sheets)]
    text = join_pages(pages)
    if method == "auto":
        kind = document_type_of(text, file_name).kind
        method = cast(ChunkingMethod, dict(limits.chunking_by_type).get(kind, METHODS_BY_KIND[kind]))
        chunk_size = limits.generic_chunk_size or chunk_size if method == "generic" else chunk_size
    usual = SIZES.get(method, SIZES["smart"])
    size = usual["chunk_size"] if chunk_size is None else chunk_size
    shared = min(usual["overlap"], size // 2) if overlap is None else overlap
    if size < 1 or not 0 <= shared < size:
        raise InvalidInput("The overlap of passages has to be smaller than their size.")
    requested = usual["minimum_chunk_size"] if minimum_chunk_size is None else minimum_chunk_size
    minimum = min(requested, size // 2)
    spans: Iterable[Span | Piece]
    match method:
        case "fixed":
            spans = fixed_spans(text, size, shared)
        case "smart":
            spans = smart_spans(text, size, shared, minimum, breaks_of(sections))
        case "semantic":
            if embedder is None:
                raise InvalidInput("Chunking by topic needs an embedding model.")
            spans = semantic_spans(text, size, shared, minimum, breaks_of(sections), embedder)
        case "sentences":
            spans = sentence_spans(text, size, shared, minimum)
        case "recursive":
            spans = recursive_spans(text, size, shared, limits.separators)
        case "paged":
            spans = paged_spans(text, pages, size, shared, minimum, breaks_of(sections))
        case "generic":
            metadata = {"source": file_name, "category": "generic"}
            spans = (Piece(start, end, metadata) for start, end in generic_spans(text, size))
        case "professional":
            spans = professional_pieces(text, file_name, limits)
        case "narrative":
            spans = narrative_pieces(text, file_name, limits)
        case "markdown":
            spans = markdown_pieces(text, file_name, limits)
        case _:
            names = ", ".join([*SIZES, "professional", "narrative", "markdown", "auto"])
            raise InvalidInput(f"There is no chunking method {method!r}; choose one of {names}.")
    return chunks_from_spans(pages, sections, spans, text=text, is_exact=method == "recursive")


def sheets_of(
    pages: Sequence[Page], sections: Sequence[Section]
) -> list[tuple[int, Sequence[Page], Sequence[Section]]]:
    """Split a workbook into sheets. For each sheet, returns the start in the text, the pages and the sections.

    A sheet begins at a section with level 1. The returned sections' starts are relative to the sheet's start.
    """
    starts = page_starts(pages)
    begun = {section.start for section in sections if section.level == 1}
    firsts = [index for index, start in enumerate(starts[: len(pages)]) if index == 0 or start in begun]
    sheets: list[tuple[int, Sequence[Page], Sequence[Section]]] = []
    for first, last in pairwise([*firsts, len(pages)]):
        offset = starts[first]
        end = starts[last] if last < len(pages) else None
        own_sections = [s for s in sections if s.start >= offset and (end is None or s.start < end)]
        sheets.append((offset, pages[first:last], [replace(s, start=s.start - offset) for s in own_sections]))
    return sheets


def chunk_by_page_texts(page_texts: Mapping[str, str]) -> list[Chunk]:
    """Split texts, given by page number, into chunks; no chunk spans two pages.

    This is `chunkByPageTexts` in source 002, see docs/sources.md.
    """
    pages = [Page(number=int(number), text=text) for number, text in page_texts.items()]
    return chunk_document(sorted(pages, key=lambda page: page.number), [], method="paged")


def chunk_full_text(full_text: str) -> list[Chunk]:
    """Split a text without page numbers into chunks, like `chunk_by_page_texts`.

    This is `chunkFullText` in source 002, see docs/sources.md.
    """
    return chunk_by_page_texts({"1": full_text})


def _years_of(metadata: Mapping[str, Any]) -> set[int]:
    first, last = (str(metadata.get(name, "")) for name in ("startYear", "endYear"))
    if first.isdigit() and last.isdigit():
        return set(range(int(first), int(last) + 1))
    return {int(year) for year in (first, str(metadata.get("year", ""))) if year.isdigit()}


def facts_of(chunks: Sequence[Chunk]) -> dict[str, Any]:
    """Return the distinct `categories` and `years` in the chunks' metadata. A key without values is left out."""
    categories = sorted({str(chunk.metadata["category"]) for chunk in chunks if chunk.metadata.get("category")})
    years = sorted({year for chunk in chunks for year in _years_of(chunk.metadata)})
    return {name: value for name, value in (("categories", categories), ("years", years)) if value}


def sizes_for(profile: Profile, method: ChunkingMethod) -> ChunkSizes:
    """Return the chunk sizes for a method.

    The profile's sizes are used for the profile's method, and for methods with the same default sizes. Other methods
    use their default sizes.
    """
    usual, chunking = SIZES.get(method), profile.chunking
    if method == "generic" and chunking.generic_chunk_size:
        return _sizes(chunking.generic_chunk_size, 0, chunking.minimum_chunk_size)
    if usual is None or usual == SIZES.get(chunking.chunking_method) or method == chunking.chunking_method:
        return _sizes(chunking.chunk_size, chunking.chunk_overlap, chunking.minimum_chunk_size)
    return usual


__all__ = [
    "METHODS_BY_KIND",
    "SIZES",
    "ChunkSizes",
    "chunk_by_page_texts",
    "chunk_document",
    "chunk_full_text",
    "facts_of",
    "sizes_for",
]
