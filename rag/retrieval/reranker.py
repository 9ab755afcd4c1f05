"""A second look at what was found, by a model that reads question and passage together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag.providers import Reranker
from rag.retrieval.bm25.index import contextual_text
from rag.settings import Settings, load_settings
from rag.types import SearchResult, Usage

_PLACE = re.compile(r"\{(?:title|section|content)\}")


@dataclass(frozen=True, kw_only=True)
class Reranked:
    """Results in their new order with what the call used; `usage` is None when nothing had to be ordered."""

    results: tuple[SearchResult, ...]
    usage: Usage | None = None


def rerank_results(
    query: str, results: Sequence[SearchResult], *, reranker: Reranker, limit: int | None = None, template: str = ""
) -> Reranked:
    """Return the `limit` most relevant results by the reranker, best first; `score` becomes its relevance, 0 … 1.

    The reranker reads what `template` makes of `{title}`, `{section}` and `{content}`; without one, title and section
    stand in front of each passage, so that near-twin documents are told apart. Raises `ProviderError`; the caller then
    keeps the order found.
    """
    wanted = len(results) if limit is None else min(limit, len(results))
    if wanted < 1:
        return Reranked(results=())
    texts = [text_to_rerank(r, template) for r in results]
    ranking = reranker.rank(query, texts, limit=wanted)
    return Reranked(
        results=tuple(
            replace(results[index], rerank_score=relevance, score=relevance) for index, relevance in ranking.results
        )[:wanted],
        usage=ranking.usage,
    )


def text_to_rerank(result: SearchResult, template: str) -> str:
    """Return what the reranker reads of a passage."""
    if not template:
        return contextual_text(result.title, result.section, result.content)
    # One pass, so that braces in a passage stay what they are.
    values = {"{title}": result.title, "{section}": result.section, "{content}": result.content}
    return _PLACE.sub(lambda match: values[match.group()], template)


def is_reranking_enabled(settings: Settings | None = None) -> bool:
    """Return whether a reranker is configured: a provider of one, such as Cohere, or `RAG_CROSS_ENCODER`."""
    settings = settings or load_settings()
    return bool(settings.provider_for("rerank") or settings.cross_encoder)
