"""Rerank hits with a model which reads question and chunk together: Cohere, or a self-hosted cross-encoder.

If the reranker fails or takes too long, hits keep their order, and a notice tells the reader.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag.errors import ProviderError, SettingsError
from rag.language import N_
from rag.monitoring.tracing import ms_since
from rag.providers import Reranker
from rag.retrieval.bm25.index import contextual_text
from rag.retrieval.evidence import ScoredHit, reranked
from rag.retrieval.known_by import known_by
from rag.retrieval.trace import RetrievalTrace, reranked_from
from rag.retrieval.translation import Translation
from rag.settings import Settings, load_settings
from rag.types import RerankingDetails, SearchResult, Usage

#: Shown beside the answer if the reranker fails.
NO_RERANKING = N_(
    "The model for the second sorting did not answer, so the passages are in the order in which they were found."
)

_PLACE = re.compile(r"\{(?:title|section|content)\}")


def rerank(trace: RetrievalTrace, translation: Translation, scored: list[ScoredHit]) -> list[ScoredHit]:
    """Return the hits in the reranker's order. Without a working reranker, the order stays unchanged."""
    details = RerankingDetails()
    trace.details.reranking = details
    if not trace.profile.ranking.reranking or not scored:
        return scored
    started = time.perf_counter()
    try:
        reranker = trace.models.reranker_for(trace.profile)
        if reranker is None:
            return scored
        details.enabled, details.model, details.input_documents = True, reranker.model, len(scored)
        trace.on_step("reranking", reranker.model)
        groups = _by_wording(trace, translation, scored)
        results: list[SearchResult] = []
        with trace.step("rerank") as step:
            step.detail = f"{len(scored)} passages by {reranker.model}"
            if len(groups) > 1:
                own_count = len(groups[0][1])
                step.detail += (
                    f", {own_count} in the question's own wording and {len(scored) - own_count} in the translation"
                )
            for wording, items in groups:
                ranked = rerank_results(
                    wording,
                    [item.result for item in items],
                    reranker=reranker,
                    limit=_result_limit(trace),
                    template=trace.profile.ranking.rerank_format,
                )
                results += ranked.results
    except (ProviderError, SettingsError) as error:
        trace.skip(NO_RERANKING, error)
        return scored
    finally:
        if details.enabled:
            details.latency_ms = trace.details.timing.reranking_ms = ms_since(started)
    if len(groups) > 1:
        results.sort(key=lambda result: -result.score)
    by_id = {item.result.chunk_id: item for item in scored}
    results = results[: _result_limit(trace)]
    details.results = reranked_from(results)
    return [reranked(by_id[result.chunk_id], result) for result in results]


def _result_limit(trace: RetrievalTrace) -> int | None:
    """Return how many hits to keep after reranking, or `None` for all hits.

    Source 000 in docs/sources.md sets topN to 5.
    """
    ranking = trace.profile.ranking
    return trace.top_k if ranking.rerank_top_n and not ranking.only_evidence else None


def _by_wording(
    trace: RetrievalTrace, translation: Translation, scored: list[ScoredHit]
) -> list[tuple[str, list[ScoredHit]]]:
    """Return pairs: a question text, and the hits to compare with this text.

    Hits in the user's language are compared with the original question, all other hits with the translation.
    """
    if not translation.translated_from or not trace.profile.ranking.rerank_each_wording:
        return [(translation.query, scored)]
    same_language = [item for item in scored if item.language == trace.language]
    other_language = [item for item in scored if item.language != trace.language]
    return [
        (wording, items)
        for wording, items in ((trace.text, same_language), (translation.query, other_language))
        if items
    ]


@dataclass(frozen=True, kw_only=True)
class Reranked:
    """Hits in their new order, and the call's usage. `usage` is `None` without a call."""

    results: tuple[SearchResult, ...]
    usage: Usage | None = None


def rerank_results(
    query: str, results: Sequence[SearchResult], *, reranker: Reranker, limit: int | None = None, template: str = ""
) -> Reranked:
    """Return the `limit` most relevant results, best first. `score` becomes the reranker's relevance, 0 to 1.

    The reranker reads `template` filled with `{title}`, `{section}` and `{content}`. Without a template, title and
    section precede each chunk, to distinguish similar documents. Raises `ProviderError`; the caller then keeps the
    original order.
    """
    count = len(results) if limit is None else min(limit, len(results))
    if count < 1:
        return Reranked(results=())
    texts = [text_to_rerank(r, template) for r in results]
    ranking = reranker.rank(query, texts, limit=count)
    return Reranked(
        results=tuple(
            replace(results[index], rerank_score=relevance, score=relevance) for index, relevance in ranking.results
        )[:count],
        usage=ranking.usage,
    )


def text_to_rerank(result: SearchResult, template: str) -> str:
    """Return the text which the reranker reads for a passage."""
    if not template:
        return contextual_text(known_by(result.title, result.folder), result.section, result.content)
    # Replace in a single pass, so braces in a passage stay unchanged.
    values = {"{title}": result.title, "{section}": result.section, "{content}": result.content}
    return _PLACE.sub(lambda match: values[match.group()], template)


def is_reranking_enabled(settings: Settings | None = None) -> bool:
    """Whether a reranker is configured: a provider such as Cohere, or `RAG_CROSS_ENCODER`."""
    settings = settings or load_settings()
    return bool(settings.provider_for("rerank") or settings.cross_encoder)
