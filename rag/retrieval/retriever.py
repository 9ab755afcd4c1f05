"""From a question to numbered passages: the only ordering of the retrieval steps.

A provider that fails costs quality, not the answer: without a translation the original is searched, without an
embedding keywords alone, without a reranker the found order stays; each is said in `notices`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rag.errors import ProviderError, QuestionEmpty, SettingsError
from rag.profile import Options, Profile
from rag.retrieval import fusion
from rag.retrieval.context_builder import Neighbour, citations_from, context_from, read_neighbours
from rag.retrieval.deduplication import without_near_repeats
from rag.retrieval.evidence import ScoredHit, best_of, in_order, judge, outcome_of, reranked, worth_citing
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.language import question_language
from rag.retrieval.meaning import named_languages
from rag.retrieval.multi_query import find, wordings_of
from rag.retrieval.query_understanding import understand
from rag.retrieval.ranking import needs_signals, ordered, read_facts
from rag.retrieval.refine import names_said
from rag.retrieval.reranker import rerank_results
from rag.retrieval.trace import (
    Books,
    OnStep,
    RetrievalTrace,
    TenantPrices,
    costs_from,
    evidence_said,
    left_out_said,
    ms_since,
    reranked_from,
)
from rag.retrieval.translation import Translation
from rag.storage.database import Database, queries
from rag.types import ContextResponse, EvidenceDetails, Question, RerankingDetails, SearchResult, TokenUsage

if TYPE_CHECKING:
    from rag.providers.registry import Providers

#: Nearest passages shown when there is no answer.
NEAREST = 3

NO_RERANKING = "The reranker did not answer, so the passages are in the order they were found."


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """A response with all that led to it, for whoever wants to see why."""

    response: ContextResponse
    #: As found, best first.
    found: tuple[SearchResult, ...]
    #: After everything, best first; those of `cited` are among them.
    judged: tuple[ScoredHit, ...]
    cited: tuple[ScoredHit, ...]


class Retriever:
    """Finds the passages that answer a question. Thread-safe.

    `tenant_prices` says what a tenant itself pays, by model and unit; without it list prices count.
    """

    def __init__(self, database: Database, providers: Providers, *, tenant_prices: TenantPrices | None = None) -> None:
        self._database = database
        self._providers = providers
        self._tenant_prices = tenant_prices

    def retrieve_context(
        self,
        question: Question,
        *,
        profile: Profile,
        top_k: int | None = None,
        language: str | None = None,
        on_step: OnStep | None = None,
        options: Options | None = None,
        books: Books | None = None,
    ) -> ContextResponse:
        """Find, order and number the passages that answer a question.

        `language` is the question's ISO 639-1 code, detected when not given: from its words, else from the
        conversation, the asker and the collection. `options` switch single steps for this call. `on_step` is told
        "translating", "searching", "found" with their number, and "reranking" as they happen. Without a passage that
        speaks to the question, `citations` is empty and `nearest` holds what came closest. What is paid is the
        caller's to record: `books` is told of each request before it is made, and of each charge. Raises
        `QuestionEmpty` and `DatabaseUnavailable`; no `ProviderError`, unless nothing can be searched without it.
        """
        return self.retrieve(
            question,
            profile=profile,
            top_k=top_k,
            language=language,
            on_step=on_step,
            options=options,
            books=books,
        ).response

    def retrieve(
        self,
        question: Question,
        *,
        profile: Profile,
        top_k: int | None = None,
        language: str | None = None,
        on_step: OnStep | None = None,
        options: Options | None = None,
        books: Books | None = None,
        today: date | None = None,
    ) -> Retrieval:
        """`retrieve_context` with every passage looked at. `today` is what "last March" is counted from."""
        started = time.perf_counter()
        text = question.text.strip()
        if not text:
            raise QuestionEmpty
        options = options or Options()
        profile = options.applied_to(profile)
        wanted = top_k or profile.search.top_k
        today = today or datetime.now(UTC).date()
        run = RetrievalTrace(
            question=question,
            profile=profile,
            top_k=profile.passages(wanted),
            text=text,
            language=language if language is not None else question_language(question),
            filters=options.filters or question.filters,
            on_step=on_step or (lambda name, detail: None),
            books=books,
            tenant_prices=self._tenant_prices,
        )
        is_strict = "similarity_threshold" in options.settings or profile.search.strict_threshold
        run.thresholds = self._thresholds(run, is_strict=is_strict)
        asked = understand(run, self._providers, today)
        candidates = wanted * profile.search.candidate_factor
        found = find(run, asked, self._database, self._providers, candidates=candidates)
        if self._has_new_model(run):
            run.thresholds = self._thresholds(run, is_strict=is_strict)
            found = find(run, asked, self._database, self._providers, candidates=candidates)
        found = self._cut(run, found)
        if profile.search.refine_order and profile.search.search_type == "hybrid":
            with run.step("names") as step:
                step.detail = "; ".join(names_said(found.text, run.language, found.results, found.languages))
        judged = judge(
            self._spread(run, found.results),
            found,
            wordings=wordings_of(run, asked, found),
            thresholds=run.thresholds,
        )
        judged = self._rerank(run, asked.translation, judged)
        named = named_languages(run.text) - {run.language}
        judged = in_order(judged, found, places=run.top_k, language=run.language, named=named)
        with run.step("evidence") as step:
            speaking = worth_citing(judged) if profile.ranking.only_evidence else judged
            evidence = EvidenceDetails(outcome=outcome_of(best_of(judged)), probability=round(best_of(judged), 4))
            run.details.evidence = evidence
            step.detail = evidence_said(judged, speaking, evidence, is_asked_for=profile.ranking.only_evidence)
        cited = self._order(run, speaking, today)
        metadata = self._metadata(run, cited or judged[:NEAREST])
        # A profile that shows posts as such has a form of its own for them.
        shown = metadata if profile.answer.context_format else {}
        context_text, cited = context_from(
            cited,
            profile=profile,
            metadata=metadata,
            neighbours=(lambda hits: self._neighbours(run, hits)) if profile.ranking.stitch_neighbours else None,
        )
        self._finish(run, cited, started)
        response = ContextResponse(
            context_text=context_text,
            citations=citations_from(cited, shown),
            token_usage=TokenUsage(
                input=sum(c.usage.input_tokens for c in run.charges),
                output=sum(c.usage.output_tokens for c in run.charges),
            ),
            cost=sum((c.cost for c in run.charges if c.cost is not None), Decimal(0)),
            rag_details=run.details,
            nearest=() if cited else citations_from(judged[:NEAREST], shown),
            charges=tuple(run.charges),
            notices=tuple(run.notices),
            results=tuple(item.result for item in cited),
            evidence=evidence.outcome if profile.ranking.only_evidence or not cited else "answered",
            probability=evidence.probability,
        )
        return Retrieval(response=response, found=found.results, judged=tuple(judged), cited=tuple(cited))

    def _has_new_model(self, run: RetrievalTrace) -> bool:
        """Whether the collection was switched to another embedding model since it was read; the run takes it over."""
        collection = run.question.collection
        with self._database.pipeline(run.question.identity) as pipeline:
            asked = pipeline.execute(queries["embedding_model_now"], {"collection_id": collection.id})
            pipeline.finish()
            found = asked.fetchone()
        model = found[0] if found else None
        if model is None or model == collection.embedding_model:
            return False
        # What was measured of similarities was measured with the other model.
        changed = replace(collection, embedding_model=model, calibrated_threshold=None, calibrated_at=None)
        run.question = replace(run.question, collection=changed)
        return True

    def _cut(self, run: RetrievalTrace, found: SearchHits) -> SearchHits:
        """Return what is above the threshold, where it is strict (source 004: similarity > match_threshold)."""
        collection, profile = run.question.collection, run.profile
        if not profile.search.strict_threshold:
            return found
        try:
            own = self._providers.embedder_for(collection.embedding_model).default_threshold
        except (ProviderError, SettingsError):
            return found
        least = profile.threshold(own, collection.calibrated_threshold)
        with run.step("threshold") as step:
            kept = tuple(r for r in found.results if r.similarity is not None and r.similarity > least)
            run.details.search.below_threshold = len(found.results) - len(kept)
            step.detail = f"{len(found.results) - len(kept)} of {len(found.results)} passages cut: not above {least:g}"
        return replace(found, results=kept)

    def _spread(self, run: RetrievalTrace, results: Sequence[SearchResult]) -> list[SearchResult]:
        """Return the results with their ranks, each said once and over as many documents as the profile wants."""
        profile = run.profile
        with run.step("collapse") as step:
            said = without_near_repeats(results) if profile.ranking.collapse_near_repeats else list(results)
            most = 1 if profile.search.one_result_per_document else profile.search.maximum_per_document
            kept = fusion.limited_per_document(said, most)
            step.detail = left_out_said(near_repeats=len(results) - len(said), others=len(said) - len(kept), most=most)
        return [replace(result, original_rank=rank) for rank, result in enumerate(kept, 1)]

    def _rerank(self, run: RetrievalTrace, translation: Translation, judged: list[ScoredHit]) -> list[ScoredHit]:
        details = RerankingDetails()
        run.details.reranking = details
        if not run.profile.ranking.reranking or not judged:
            return judged
        started = time.perf_counter()
        try:
            reranker = self._providers.reranker_for(run.profile)
            if reranker is None:
                return judged
            details.enabled, details.model, details.input_documents = True, reranker.model, len(judged)
            run.on_step("reranking", reranker.model)
            groups = _by_wording(run, translation, judged)
            results: list[SearchResult] = []
            with run.step("rerank") as step, run.paying("reranking"):
                step.detail = f"{len(judged)} passages by {reranker.model}"
                if len(groups) > 1:
                    own = len(groups[0][1])
                    step.detail += f", {own} in the question's own wording and {len(judged) - own} in the translation"
                for wording, items in groups:
                    ranked = rerank_results(
                        wording,
                        [item.result for item in items],
                        reranker=reranker,
                        template=run.profile.ranking.rerank_format,
                    )
                    run.pay("reranking", ranked.usage)
                    results += ranked.results
        except (ProviderError, SettingsError) as error:
            run.skip(NO_RERANKING, error)
            return judged
        finally:
            if details.enabled:
                details.latency_ms = run.details.timing.reranking_ms = ms_since(started)
        if len(groups) > 1:
            results.sort(key=lambda result: -result.score)
        by_id = {item.result.chunk_id: item for item in judged}
        details.results = reranked_from(results)
        return [reranked(by_id[result.chunk_id], result) for result in results]

    def _order(self, run: RetrievalTrace, judged: list[ScoredHit], today: date) -> list[ScoredHit]:
        """Return the passages to cite, in the profile's order."""
        if not needs_signals(run.profile) or not judged:
            return judged[: run.top_k]
        with run.step("order") as step:
            run.facts = read_facts(self._database, run.question.identity, [item.result for item in judged])
            signals = {document_id: facts.signals for document_id, facts in run.facts.items()}
            done = ordered(judged, signals, profile=run.profile, top_k=run.top_k, today=today)
            names = ("multi_signal", "recency_boost", "pinned_first")
            step.detail = ", ".join(name for name in names if run.profile.value(name))
        return done

    def _metadata(self, run: RetrievalTrace, cited: Sequence[ScoredHit]) -> Mapping[UUID, Mapping[str, Any]]:
        """Return what is known of the documents, for the form of the passages; the day one came where that may name
        it.
        """
        if not run.facts:
            run.facts = read_facts(self._database, run.question.identity, [item.result for item in cited])
        has_form = bool(run.profile.answer.context_format)
        return {key: facts.shown if has_form else facts.metadata for key, facts in run.facts.items()}

    def _neighbours(self, run: RetrievalTrace, hits: list[SearchResult]) -> list[Neighbour]:
        with run.step("neighbours") as step:
            neighbours = read_neighbours(self._database, run.question.identity, hits)
            step.detail = f"{len(neighbours)} beside {len(hits)} passages" if neighbours else ""
        return neighbours

    def _thresholds(self, run: RetrievalTrace, *, is_strict: bool) -> tuple[float, ...]:
        """Return the similarities that are evidence by themselves; none for the built-in embedder, which compares
        words only.

        The second counts where no passage reaches the first: a figure set for a collection, such as 0.7, may be one
        that its model never gives. A caller who asks for a threshold gets that one alone.
        """
        collection, profile = run.question.collection, run.profile
        try:
            embedder = self._providers.embedder_for(collection.embedding_model)
        except (ProviderError, SettingsError):
            return ()
        if embedder.provider == "builtin":
            return ()
        wanted = profile.threshold(embedder.default_threshold, collection.calibrated_threshold)
        if is_strict or profile.search.threshold_mode != "absolute":
            return (wanted,)
        own = profile.changed(threshold_mode="calibrated").threshold(
            embedder.default_threshold, collection.calibrated_threshold
        )
        return (wanted, own) if own < wanted else (wanted,)

    def _finish(self, run: RetrievalTrace, cited: Sequence[ScoredHit], started: float) -> None:
        if run.details.reranking.results:
            # What was kept of the passages reranked; all of them are in `results`.
            run.details.reranking.output_documents = len(cited)
        run.details.search.matched_terms = list(dict.fromkeys(word for item in cited for word in item.coverage.found))
        run.details.search.final_top_k = run.top_k
        run.details.costs = costs_from(run.charges)
        run.details.timing.total_ms = ms_since(started)


def _by_wording(
    run: RetrievalTrace, translation: Translation, judged: list[ScoredHit]
) -> list[tuple[str, list[ScoredHit]]]:
    """Return the passages with the wording that a reranker compares them with: that of their own language.

    A translation beside passages in the question's own language would lose what words and names they share. Where
    there are both, that is a call for each.
    """
    if not translation.translated_from:
        return [(translation.query, judged)]
    own = [item for item in judged if item.language == run.language]
    others = [item for item in judged if item.language != run.language]
    return [(wording, items) for wording, items in ((run.text, own), (translation.query, others)) if items]
