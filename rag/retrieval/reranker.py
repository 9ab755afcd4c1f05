"""A second look at what was found, by a model that reads question and passage together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag.providers import Reranker
from rag.retrieval.keywords import contextual_text
from rag.settings import Settings, load_settings
from rag.types import SearchResult, Usage


@dataclass(frozen=True, kw_only=True)
class Reranked:
    """Results in their new order with what the call used; `usage` is None when nothing had to be ordered."""

    results: tuple[SearchResult, ...]
    usage: Usage | None = None


def rerank_results(
    query: str, results: Sequence[SearchResult], *, reranker: Reranker, limit: int | None = None
) -> Reranked:
    """The `limit` most relevant results by the reranker, best first; `score` becomes its relevance, 0 … 1.

    Title and section stand in front of each passage, so that near-twin documents are told apart. Raises
    `ProviderError`; the caller then keeps the order found.
    """
    wanted = len(results) if limit is None else min(limit, len(results))
    if wanted < 1:
        return Reranked(results=())
    texts = [contextual_text(r.title, r.section, r.content) for r in results]
    ranking = reranker.rank(query, texts, limit=wanted)
    return Reranked(
        results=tuple(
            replace(results[index], rerank_score=relevance, score=relevance) for index, relevance in ranking.results
        )[:wanted],
        usage=ranking.usage,
    )


def is_reranking_enabled(settings: Settings | None = None) -> bool:
    """Whether a reranker is configured: `COHERE_API_KEY` is set."""
    return bool((settings or load_settings()).cohere_api_key)
