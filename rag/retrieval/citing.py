"""Passages as a model and a reader get them: numbered, within a token budget, with the place they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rag.retrieval.evidence import matched_words
from rag.retrieval.relevance import Judged
from rag.retrieval.stitching import Neighbour, stitched
from rag.tokens import estimate_tokens
from rag.types import Citation, SearchResult


def context_from(
    judged: Sequence[Judged],
    *,
    maximum_tokens: int,
    neighbours: Callable[[list[SearchResult]], Sequence[Neighbour]] | None = None,
) -> tuple[str, list[Judged]]:
    """The numbered passages as one text, and those of them that fit; the best one is shortened if it alone does not.

    `neighbours` reads the passages around those kept; they are added as far as tokens are left.
    """
    kept: list[Judged] = []
    left = maximum_tokens
    for item in judged:
        tokens = estimate_tokens(_part(len(kept) + 1, item))
        if tokens > left and kept:
            break
        if tokens > left:
            content = item.result.content[: int(len(item.result.content) * left / tokens)]
            kept.append(replace(item, result=replace(item.result, content=content)))
            left = 0
            break
        kept.append(item)
        left -= tokens

    def fits(text: str) -> bool:
        nonlocal left
        tokens = estimate_tokens(text)
        if tokens > left:
            return False
        left -= tokens
        return True

    if neighbours is not None and left > 0 and kept:
        kept = stitched(kept, neighbours([item.result for item in kept]), fits)
    return "\n\n".join(_part(number, item) for number, item in enumerate(kept, 1)), kept


def _part(number: int, item: Judged) -> str:
    return f"[{number}] {place(item.result)}\n{item.before}{item.result.content}{item.after}"


def place(result: SearchResult) -> str:
    """Where a passage stands: title, page or pages, section."""
    pages = f"p. {result.first_page}"
    if result.last_page > result.first_page:
        pages = f"pp. {result.first_page}–{result.last_page}"
    return ", ".join(part for part in (result.title, pages, result.section) if part)


def citations_from(judged: Sequence[Judged]) -> tuple[Citation, ...]:
    """The passages as citations, numbered from 1 as in the context."""
    return tuple(
        Citation(
            number=number,
            chunk_id=item.result.chunk_id,
            document_id=item.result.document_id,
            title=item.result.title,
            file_name=item.result.file_name,
            first_page=item.result.first_page,
            last_page=item.result.last_page,
            section=item.result.section,
            passage=item.result.content,
            score=shown_score(item),
            matched_terms=matched_words(item.result.content, item.words, item.language),
            first_read_page=item.first_read_page,
            last_read_page=item.last_read_page,
        )
        for number, item in enumerate(judged, 1)
    )


def shown_score(item: Judged) -> float:
    """What a reader sees, 0 … 1: the reranker's relevance, else the better of similarity and share of the question."""
    result = item.result
    if result.rerank_score is not None:
        return round(result.rerank_score, 4)
    return round(min(1.0, max(result.similarity or 0.0, item.coverage.share)), 4)
