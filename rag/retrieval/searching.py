"""Search the collections for a question, within its limits; wider if nothing is found."""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from dataclasses import replace
from uuid import UUID

from rag.errors import ProviderError, SettingsError
from rag.monitoring.tracing import ms_since
from rag.retrieval.deduplication import limited_per_document, without_near_repeats
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.multi_query import EmbeddedWordings, embed_wordings, search_wordings
from rag.retrieval.proximity import names_said
from rag.retrieval.query_understanding import ParsedQuestion, describe
from rag.retrieval.ranking import of_categories, of_years, read_facts
from rag.retrieval.trace import RetrievalTrace, left_out_said, raw_results_from, search_said
from rag.storage.database import queries
from rag.storage.pipeline import Pipeline
from rag.types import SearchDetails, SearchFilters, SearchResult


def search(trace: RetrievalTrace, asked: ParsedQuestion) -> SearchHits:
    """Search for the question and its other wordings; at most `trace.candidates` results, best first.

    Limits read from the question are guesses: if they leave no results, all documents are searched.
    """
    trace.on_step("searching", "")
    embedded = embed_wordings(trace, asked)
    has_vectors = embedded.vectors is not None
    trace.details.search = SearchDetails(
        type=trace.profile.search.search_type, vector_top_k=trace.candidates if has_vectors else 0
    )
    started = time.perf_counter()
    afterwards = trace.profile.search.filters_after_search
    within = replace(asked.filters, categories=(), years=()) if afterwards else asked.filters
    with trace.step("search") as step:
        hits = _search_within(trace, asked, embedded, within)
        step.detail = search_said(
            trace.profile,
            hits,
            asked=asked.text,
            limits=describe(_combined(trace, within)),
            has_vectors=has_vectors,
        )
    # A threshold set too high for the collection's model kept every neighbour out.
    if has_vectors and len(trace.thresholds) > 1 and not any(r.vector_rank for r in hits.results):
        with trace.step("search farther") as step:
            wanted, trace.thresholds = trace.thresholds[0], trace.thresholds[1:]
            hits = _search_within(trace, asked, embedded, within)
            step.detail = f"{len(hits.results)} passages; none has a similarity of {wanted:g}"
    if afterwards and asked.filters != within:
        hits = _filtered(trace, hits, asked.filters)
    if not hits.results and within != SearchFilters():
        with trace.step("search everywhere") as step:
            hits = _search_within(trace, asked, embedded, SearchFilters())
            step.detail = f"{len(hits.results)} passages; none with {describe(asked.filters)}"
    trace.details.timing.search_ms = ms_since(started)
    if hits.text != asked.text:
        trace.details.query.expanded = [*trace.details.query.expanded, hits.text]
    trace.details.search.raw_results = raw_results_from(hits.results)
    trace.on_step("found", str(len(hits.results)))
    if trace.profile.search.refine_order and trace.profile.search.search_type == "hybrid":
        with trace.step("names") as step:
            step.detail = "; ".join(names_said(hits.text, trace.language, hits.results, hits.languages))
    return hits


def _search_within(
    trace: RetrievalTrace,
    asked: ParsedQuestion,
    embedded: EmbeddedWordings,
    filters: SearchFilters,
) -> SearchHits:
    within = _combined(trace, filters)
    hits = search_wordings(trace, asked, embedded, within, trace.database, candidates=trace.candidates)
    if not trace.filters.years:
        return hits
    # The search chose documents with this year; some passages in them may be from other years.
    facts = read_facts(trace.database, trace.question.identity, hits.results)
    return replace(hits, results=of_years(hits.results, facts, trace.filters.years))


def _filtered(trace: RetrievalTrace, hits: SearchHits, filters: SearchFilters) -> SearchHits:
    """Keep hits matching the question's categories and years (source 001, step 4).

    A condition which would leave nothing is dropped; the other stays.
    """
    # The caller's conditions were part of the search and precede limits read from the question.
    filters = replace(
        filters,
        categories=() if trace.filters.categories else filters.categories,
        years=() if trace.filters.years else filters.years,
    )
    with trace.step("filter") as step:
        facts = read_facts(trace.database, trace.question.identity, hits.results)
        kept, said = hits.results, list[str]()
        if filters.categories:
            left = of_categories(kept, facts, filters.categories)
            said.append(_left_said(left, kept, SearchFilters(categories=filters.categories)))
            kept = left or kept
        if filters.years:
            left = of_years(kept, facts, filters.years)
            said.append(_left_said(left, kept, SearchFilters(years=filters.years)))
            kept = left or kept
        step.detail = "; ".join(said)
    return replace(hits, results=kept)


def _left_said(left: Sequence[SearchResult], of: Sequence[SearchResult], condition: SearchFilters) -> str:
    dropped = "" if left else ", dropped"
    return f"{len(left)} of {len(of)} passages with {describe(condition)}{dropped}"


def _combined(trace: RetrievalTrace, of_question: SearchFilters) -> SearchFilters:
    """Combine the caller's conditions with the question's; the caller's win."""
    given = trace.filters
    return replace(
        given,
        document_ids=given.document_ids or trace.question.document_ids,
        categories=given.categories or of_question.categories,
        years=given.years or of_question.years,
        date_from=given.date_from or of_question.date_from,
        date_to=given.date_to or of_question.date_to,
        important_only=given.important_only or trace.profile.ranking.important_only,
    )


def search_too(
    trace: RetrievalTrace,
    asked: ParsedQuestion,
    hits: SearchHits,
    documents: Set[UUID],
    *,
    come_first: bool = True,
) -> SearchHits:
    """Search some documents too, by default with their passages first."""
    everywhere = trace.filters
    trace.filters = replace(everywhere, document_ids=tuple(documents))
    own = search(trace, asked)
    trace.filters = everywhere
    both = (own, hits) if come_first else (hits, own)
    results = {result.chunk_id: result for found in both for result in found.results}
    meant = {hit.chunk_id: hit for hit in (*own.meant, *hits.meant)}
    return replace(
        hits,
        results=tuple(results.values()),
        meant=tuple(sorted(meant.values(), key=lambda hit: -hit.cosine)),
        languages={**own.languages, **hits.languages},
    )


def thresholds_of(trace: RetrievalTrace) -> tuple[float, ...]:
    """Return similarities sufficient as evidence; empty for the built-in embedder, which compares only words.

    The second applies if no passage reaches the first: a collection's configured value, such as 0.7, may be out of
    the model's reach. A caller's threshold is used alone.
    """
    collection, profile = trace.question.collection, trace.profile
    try:
        embedder = trace.models.embedder_for(collection.embedding_model)
    except (ProviderError, SettingsError):
        return ()
    if embedder.provider == "builtin":
        return ()
    wanted = profile.threshold(embedder.default_threshold, collection.calibrated_threshold)
    if trace.is_strict or profile.search.threshold_mode != "absolute":
        return (wanted,)
    own = profile.changed(threshold_mode="calibrated").threshold(
        embedder.default_threshold, collection.calibrated_threshold
    )
    return (wanted, own) if own < wanted else (wanted,)


def has_new_model(trace: RetrievalTrace) -> bool:
    """Tell whether the collection's embedding model has changed meanwhile, and use the new model."""
    collection = trace.question.collection

    def read(pipeline: Pipeline) -> tuple[str] | None:
        asked = pipeline.execute(queries["embedding_model_now"], {"collection_id": collection.id})
        pipeline.finish()
        return asked.fetchone()

    found = trace.database.read(trace.question.identity, read)
    model = found[0] if found else None
    if model is None or model == collection.embedding_model:
        return False
    # The threshold was measured with the other model.
    changed = replace(collection, embedding_model=model, calibrated_threshold=None, calibrated_at=None)
    trace.question = replace(trace.question, collection=changed)
    return True


def languages_of(trace: RetrievalTrace) -> set[str]:
    """Return the languages of the searched documents."""
    ids = list(trace.collection_ids or (trace.question.collection.id,))

    def read(pipeline: Pipeline) -> list[tuple[str, float, float]]:
        asked = pipeline.execute(queries["search_scope"], {"tenant_id": trace.tenant_id, "collection_ids": ids})
        pipeline.finish()
        return asked.fetchall()

    found = trace.database.read(trace.question.identity, read)
    return {language.partition("+")[0] for language, chunks, _ in found if chunks}


def above_threshold(trace: RetrievalTrace, hits: SearchHits) -> SearchHits:
    """Keep hits above a strict threshold (source 004: similarity > match_threshold)."""
    collection, profile = trace.question.collection, trace.profile
    if not profile.search.strict_threshold:
        return hits
    try:
        own = trace.models.embedder_for(collection.embedding_model).default_threshold
    except (ProviderError, SettingsError):
        return hits
    least = profile.threshold(own, collection.calibrated_threshold)
    with trace.step("threshold") as step:
        kept = tuple(r for r in hits.results if r.similarity is not None and r.similarity > least)
        trace.details.search.below_threshold = len(hits.results) - len(kept)
        step.detail = f"{len(hits.results) - len(kept)} of {len(hits.results)} passages cut: not above {least:g}"
    return replace(hits, results=kept)


def without_repeats(trace: RetrievalTrace, results: Sequence[SearchResult]) -> list[SearchResult]:
    """Rank results without near repeats, spread over the wanted number of documents."""
    profile = trace.profile
    with trace.step("collapse") as step:
        said = list(results)
        if profile.ranking.collapse_near_repeats:
            # Two places may have rules in the same words but for a name.
            own = without_near_repeats([result for result in said if result.document_id in trace.of_place])
            others = without_near_repeats([result for result in said if result.document_id not in trace.of_place])
            distinct = {result.chunk_id for result in (*own, *others)}
            said = [result for result in said if result.chunk_id in distinct]
        most = 1 if profile.search.one_result_per_document else profile.search.maximum_per_document
        kept = limited_per_document(said, most)
        step.detail = left_out_said(near_repeats=len(results) - len(said), others=len(said) - len(kept), most=most)
    return [replace(result, original_rank=rank) for rank, result in enumerate(kept, 1)]
