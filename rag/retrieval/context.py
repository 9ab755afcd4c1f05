"""From a question to numbered passages: the only ordering of the retrieval steps.

A provider that fails costs quality, not the answer: without a translation the original is searched, without an
embedding keywords alone, without a reranker the found order stays; each is said in `notices`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rag.database import Database
from rag.embeddings import generate_embedding
from rag.errors import ProviderError, QuestionEmpty, RagError, SettingsError
from rag.prices import charge
from rag.profiles import Profile
from rag.providers import Embedder
from rag.retrieval import fusion
from rag.retrieval.citing import citations_from, context_from
from rag.retrieval.details import costs_from, raw_results_from, reranked_from
from rag.retrieval.query import SearchQuery
from rag.retrieval.query_analysis import detect_language
from rag.retrieval.query_translator import Translation, translate_query_if_needed
from rag.retrieval.relevance import Judged, judge, worth_citing
from rag.retrieval.reranker import rerank_results
from rag.retrieval.search import Found, search
from rag.types import (
    Charge,
    ContextResponse,
    Operation,
    QueryDetails,
    Question,
    RAGDetails,
    RerankingDetails,
    Scope,
    SearchDetails,
    SearchFilters,
    SearchQueryDetails,
    SearchResult,
    TokenUsage,
    Usage,
)

if TYPE_CHECKING:
    from rag.providers.registry import Providers

logger = logging.getLogger(__name__)

#: Nearest passages shown when there is no answer.
NEAREST = 3

NO_TRANSLATION = "The question could not be translated, so it was searched for as it is."
NO_EMBEDDING = "The embedding model did not answer, so only keywords were searched for."
NO_RERANKING = "The reranker did not answer, so the passages are in the order they were found."

OnStep = Callable[[str, str], None]


@dataclass
class _Run:
    """What one question has gathered so far."""

    question: Question
    profile: Profile
    top_k: int
    text: str
    language: str
    on_step: OnStep
    details: RAGDetails = field(default_factory=RAGDetails)
    charges: list[Charge] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def add_charge(self, operation: Operation, usage: Usage) -> None:
        self.charges.append(charge(operation, usage))

    def skip(self, notice: str, reason: RagError) -> None:
        """Go on without a provider. Settings trouble is said in its own words: someone here can mend it."""
        logger.warning("%s (%s)", notice, reason)
        self.notices.append(f"{notice} {reason}" if isinstance(reason, SettingsError) else notice)


class Retriever:
    """Finds the passages that answer a question. Thread-safe."""

    def __init__(self, database: Database, providers: Providers) -> None:
        self._database = database
        self._providers = providers

    def retrieve_context(
        self,
        question: Question,
        *,
        profile: Profile,
        top_k: int | None = None,
        language: str | None = None,
        on_step: OnStep | None = None,
    ) -> ContextResponse:
        """Find, order and number the passages that answer a question.

        `language` is the question's ISO 639-1 code, detected when not given. `on_step` is told "translating",
        "searching", "found" with their number, and "reranking" as they happen. Without a passage that speaks to the
        question, `citations` is empty and `nearest` holds what came closest. The charges are the caller's to record.
        Raises `QuestionEmpty` and `DatabaseUnavailable`; no `ProviderError`, unless nothing can be searched without it.
        """
        started = time.perf_counter()
        text = question.text.strip()
        if not text:
            raise QuestionEmpty
        run = _Run(
            question=question,
            profile=profile,
            top_k=top_k or profile.top_k,
            text=text,
            language=language if language is not None else detect_language(text),
            on_step=on_step or (lambda name, detail: None),
        )
        translation = self._translate(run)
        found = self._search(run, translation)
        judged = judge(
            _spread(found.results, profile),
            found,
            wordings=_wordings(run, translation, found),
            threshold=self._threshold(run),
        )
        judged = self._rerank(run, translation.query, judged)
        cited = worth_citing(judged)[: run.top_k]
        context_text, cited = context_from(cited, maximum_tokens=profile.context_tokens)
        run.details.search.matched_terms = list(dict.fromkeys(word for item in cited for word in item.coverage.found))
        run.details.search.final_top_k = run.top_k
        run.details.costs = costs_from(run.charges)
        run.details.timing.total_ms = _ms_since(started)
        return ContextResponse(
            context_text=context_text,
            citations=citations_from(cited),
            token_usage=TokenUsage(
                input=sum(c.usage.input_tokens for c in run.charges),
                output=sum(c.usage.output_tokens for c in run.charges),
            ),
            cost=sum((c.cost for c in run.charges if c.cost is not None), Decimal(0)),
            rag_details=run.details,
            nearest=() if cited else citations_from(judged[:NEAREST]),
            charges=tuple(run.charges),
            notices=tuple(run.notices),
        )

    def _translate(self, run: _Run) -> Translation:
        run.details.query = QueryDetails(original=run.text)
        target = run.question.collection.language or "en"
        if not run.profile.translate_queries or not run.language or run.language.split("-")[0] == target.split("-")[0]:
            return Translation(query=run.text)
        started = time.perf_counter()
        try:
            model = self._providers.translation_model_for(run.profile)
            if model is None:
                return Translation(query=run.text)
            run.on_step("translating", "")
            translation = translate_query_if_needed(run.text, run.language, target_language=target, model=model)
        except (ProviderError, SettingsError) as error:
            run.skip(NO_TRANSLATION, error)
            return Translation(query=run.text)
        finally:
            run.details.timing.translation_ms = _ms_since(started)
        if translation.usage is not None:
            run.add_charge("translation", translation.usage)
        run.details.query.translated_from = translation.translated_from
        run.details.query.translated_query = translation.query if translation.translated_from else None
        return translation

    def _embed(self, run: _Run, text: str) -> NDArray[np.float32] | None:
        started = time.perf_counter()
        try:
            embedder = self._embedder(run)
            made = generate_embedding(text, embedder=embedder, purpose="query")
        except (ProviderError, SettingsError) as error:
            run.skip(NO_EMBEDDING, error)
            return None
        finally:
            run.details.timing.embedding_ms = _ms_since(started)
        if embedder.is_paid:
            for usage in made.usages:
                run.add_charge("embedding", usage)
        vector: NDArray[np.float32] = made.vectors[0]
        return vector

    def _search(self, run: _Run, translation: Translation) -> Found:
        run.on_step("searching", "")
        vector = self._embed(run, translation.query)
        profile = run.profile
        # The original stays beside its translation: names and identifiers are the same in every language, and a
        # collection may hold documents in the question's own.
        text = run.text if not translation.translated_from else f"{translation.query}\n{run.text}"
        started = time.perf_counter()
        candidates = run.top_k * profile.candidate_factor
        found = search(
            self._database,
            SearchQuery(
                text=text,
                language=run.language,
                vector=vector,
                embedding_model=run.question.collection.embedding_model,
                fusion=profile.fusion,
                vector_weight=profile.vector_weight,
                keyword_weight=profile.keyword_weight,
                vector_rank_weight=profile.vector_rank_weight,
                keyword_rank_weight=profile.keyword_rank_weight,
            ),
            scope=Scope(tenant_id=run.question.identity.tenant_id, collection_ids=(run.question.collection.id,)),
            filters=SearchFilters(document_ids=run.question.document_ids),
            limit=candidates,
            by_keyword=profile.search_type == "hybrid" or vector is None,
        )
        run.details.timing.search_ms = _ms_since(started)
        run.details.query.expanded = [found.text] if found.text != text else []
        run.details.search = SearchDetails(
            type=profile.search_type,
            vector_top_k=candidates if vector is not None else 0,
            queries=[
                SearchQueryDetails(
                    query=found.text,
                    embedding_ms=run.details.timing.embedding_ms,
                    search_ms=run.details.timing.search_ms,
                    result_count=len(found.results),
                )
            ],
            raw_results=raw_results_from(found.results),
        )
        run.on_step("found", str(len(found.results)))
        return found

    def _rerank(self, run: _Run, query: str, judged: list[Judged]) -> list[Judged]:
        details = RerankingDetails()
        run.details.reranking = details
        if not run.profile.reranking or not judged:
            return judged
        started = time.perf_counter()
        try:
            reranker = self._providers.reranker_for(run.profile)
            if reranker is None:
                return judged
            details.enabled, details.model, details.input_documents = True, reranker.model, len(judged)
            run.on_step("reranking", reranker.model)
            reranked = rerank_results(query, [item.result for item in judged], reranker=reranker)
        except (ProviderError, SettingsError) as error:
            run.skip(NO_RERANKING, error)
            return judged
        finally:
            if details.enabled:
                details.latency_ms = run.details.timing.reranking_ms = _ms_since(started)
        if reranked.usage is not None:
            run.add_charge("reranking", reranked.usage)
        by_id = {item.result.chunk_id: item for item in judged}
        details.output_documents = len(reranked.results)
        details.results = reranked_from(reranked.results)
        return [replace(by_id[r.chunk_id], result=r) for r in reranked.results]

    def _embedder(self, run: _Run) -> Embedder:
        return self._providers.embedder_for(run.question.collection.embedding_model)

    def _threshold(self, run: _Run) -> float | None:
        """The similarity that is evidence by itself; None for the built-in embedder, which only compares words."""
        try:
            embedder = self._embedder(run)
        except (ProviderError, SettingsError):
            return None
        if embedder.provider == "builtin":
            return None
        profile_threshold = run.profile.similarity_threshold
        return embedder.default_threshold if profile_threshold is None else profile_threshold


def _wordings(run: _Run, translation: Translation, found: Found) -> list[tuple[str, str]]:
    """The question's wordings with their languages; each may speak for a passage."""
    if not translation.translated_from:
        return [(found.text, run.language)]
    translated, _, original = found.text.partition("\n")
    return [(translated, run.question.collection.language), (original or run.text, run.language)]


def _spread(results: Sequence[SearchResult], profile: Profile) -> list[SearchResult]:
    """The results with their ranks, over as many documents as the profile wants."""
    limit = 1 if profile.one_result_per_document else profile.maximum_per_document
    return [replace(r, original_rank=rank) for rank, r in enumerate(fusion.limited_per_document(results, limit), 1)]


def _ms_since(started: float) -> float:
    return round(1000 * (time.perf_counter() - started), 3)
