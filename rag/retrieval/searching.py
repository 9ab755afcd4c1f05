"""Search collections with the filters read from a question, and without these filters if no document is found.

Collections with equal settings are searched together. The hits from all groups are merged.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from uuid import UUID

from rag.errors import ProviderError, ProviderUnavailable, SettingsError
from rag.language import N_
from rag.monitoring.tracing import ms_since
from rag.retrieval.deduplication import limited_per_document, without_near_repeats
from rag.retrieval.evidence import ScoredHit, select_citable, with_order_scores
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.multi_query import EmbeddedWordings, embed_wordings, search_wordings
from rag.retrieval.proximity import mentioned_names
from rag.retrieval.query_understanding import ParsedQuestion, describe
from rag.retrieval.ranking import of_categories, of_years, read_facts
from rag.retrieval.trace import RetrievalTrace, describe_dropped, describe_search, raw_results_from
from rag.storage.database import queries
from rag.storage.pipeline import Pipeline
from rag.types import Collection, SearchDetails, SearchFilters, SearchResult, StepDetails


def search(trace: RetrievalTrace, parsed: ParsedQuestion) -> SearchHits:
    """Search for the question and the other wordings. Returns at most `trace.candidates` hits, best first.

    Filters read from the question are guesses: if they leave no hits, all documents are searched.
    """
    trace.on_step("searching", "")
    embedded = embed_wordings(trace, parsed)
    has_vectors = embedded.vectors is not None
    trace.details.search = SearchDetails(
        type=trace.profile.search.search_type, vector_top_k=trace.candidates if has_vectors else 0
    )
    started = time.perf_counter()
    afterwards = trace.profile.search.filters_after_search
    within = replace(parsed.filters, categories=(), years=()) if afterwards else parsed.filters
    with trace.step("search") as step:
        hits = _search_within(trace, parsed, embedded, within)
        step.detail = describe_search(
            trace.profile,
            hits,
            question=parsed.text,
            limits=describe(_combine_filters(trace, within)),
            has_vectors=has_vectors,
        )
    # If the threshold keeps every neighbour out, use the second: the first is too high for the collection's model.
    if has_vectors and len(trace.thresholds) > 1 and not any(r.vector_rank for r in hits.results):
        with trace.step("search farther") as step:
            threshold, trace.thresholds = trace.thresholds[0], trace.thresholds[1:]
            hits = _search_within(trace, parsed, embedded, within)
            step.detail = f"{len(hits.results)} passages; none has a similarity of {threshold:g}"
    if afterwards and parsed.filters != within:
        hits = _filter_hits(trace, hits, parsed.filters)
    if not hits.results and within != SearchFilters():
        with trace.step("search everywhere") as step:
            hits = _search_within(trace, parsed, embedded, SearchFilters())
            step.detail = f"{len(hits.results)} passages; none with {describe(parsed.filters)}"
    trace.details.timing.search_ms = ms_since(started)
    if hits.text != parsed.text:
        trace.details.query.expanded = [*trace.details.query.expanded, hits.text]
    trace.details.search.raw_results = raw_results_from(hits.results)
    trace.on_step("found", str(len(hits.results)))
    if trace.profile.search.refine_order and trace.profile.search.search_type == "hybrid":
        with trace.step("names") as step:
            step.detail = "; ".join(mentioned_names(hits.text, trace.language, hits.results, hits.languages))
    return hits


def _search_within(
    trace: RetrievalTrace,
    parsed: ParsedQuestion,
    embedded: EmbeddedWordings,
    filters: SearchFilters,
) -> SearchHits:
    within = _combine_filters(trace, filters)
    hits = search_wordings(trace, parsed, embedded, within, trace.database, candidates=trace.candidates)
    if not trace.filters.years:
        return hits
    # The search chose documents of this year; some of their passages may be from other years.
    facts = read_facts(trace.database, trace.question.identity, hits.results)
    return replace(hits, results=of_years(hits.results, facts, trace.filters.years))


def _filter_hits(trace: RetrievalTrace, hits: SearchHits, filters: SearchFilters) -> SearchHits:
    """Keep the hits which match the categories and years in the question.

    A filter without any match is ignored (source 001 in docs/sources.md, step 4).
    """
    # The caller's conditions were part of the search and replace those read from the question.
    filters = replace(
        filters,
        categories=() if trace.filters.categories else filters.categories,
        years=() if trace.filters.years else filters.years,
    )
    with trace.step("filter") as step:
        facts = read_facts(trace.database, trace.question.identity, hits.results)
        results, descriptions = hits.results, list[str]()
        if filters.categories:
            matching = of_categories(results, facts, filters.categories)
            descriptions.append(_describe_filter(matching, results, SearchFilters(categories=filters.categories)))
            results = matching or results
        if filters.years:
            matching = of_years(results, facts, filters.years)
            descriptions.append(_describe_filter(matching, results, SearchFilters(years=filters.years)))
            results = matching or results
        step.detail = "; ".join(descriptions)
    return replace(hits, results=results)


def _describe_filter(
    matching: Sequence[SearchResult], results: Sequence[SearchResult], condition: SearchFilters
) -> str:
    dropped = "" if matching else ", dropped"
    return f"{len(matching)} of {len(results)} passages with {describe(condition)}{dropped}"


def _combine_filters(trace: RetrievalTrace, of_question: SearchFilters) -> SearchFilters:
    caller_filters = trace.filters
    return replace(
        caller_filters,
        document_ids=caller_filters.document_ids or trace.question.document_ids,
        categories=caller_filters.categories or of_question.categories,
        years=caller_filters.years or of_question.years,
        date_from=caller_filters.date_from or of_question.date_from,
        date_to=caller_filters.date_to or of_question.date_to,
        important_only=caller_filters.important_only or trace.profile.ranking.important_only,
    )


def search_too(
    trace: RetrievalTrace,
    parsed: ParsedQuestion,
    hits: SearchHits,
    documents: Set[UUID],
    *,
    come_first: bool = True,
) -> SearchHits:
    """Search certain documents too, and return all hits. With `come_first`, the new hits come first."""
    everywhere = trace.filters
    trace.filters = replace(everywhere, document_ids=tuple(documents))
    extra = search(trace, parsed)
    trace.filters = everywhere
    both = (extra, hits) if come_first else (hits, extra)
    results = {result.chunk_id: result for part in both for result in part.results}
    meaning_hits = {hit.chunk_id: hit for hit in (*extra.meaning_hits, *hits.meaning_hits)}
    return replace(
        hits,
        results=tuple(results.values()),
        meaning_hits=tuple(sorted(meaning_hits.values(), key=lambda hit: -hit.cosine)),
        languages={**extra.languages, **hits.languages},
    )


def thresholds_of(trace: RetrievalTrace) -> tuple[float, ...]:
    """Return the cosines above which a hit is evidence, in the order in which they are tried.

    The second is used if no hit reaches the first, because a configured 0.7 may be too high for the model. If the
    caller sets a threshold, there is no second. Empty for the built-in embedder, which only compares words.
    """
    collection, profile = trace.question.collection, trace.profile
    try:
        embedder = trace.models.embedder_for(collection.embedding_model)
    except (ProviderError, SettingsError):
        return ()
    if embedder.provider == "builtin":
        return ()
    threshold = profile.threshold(embedder.default_threshold, collection.calibrated_threshold)
    if trace.is_strict or profile.search.threshold_mode != "absolute":
        return (threshold,)
    calibrated = profile.changed(threshold_mode="calibrated").threshold(
        embedder.default_threshold, collection.calibrated_threshold
    )
    return (threshold, calibrated) if calibrated < threshold else (threshold,)


def has_new_model(trace: RetrievalTrace) -> bool:
    """Whether the collection's embedding model has changed since the request began. If so, update `trace`."""
    collection = trace.question.collection

    def read(pipeline: Pipeline) -> tuple[str] | None:
        pending = pipeline.execute(queries["embedding_model_now"], {"collection_id": collection.id})
        pipeline.finish()
        return pending.fetchone()

    row = trace.database.read(trace.question.identity, read)
    model = row[0] if row else None
    if model is None or model == collection.embedding_model:
        return False
    # The threshold was measured with the former model.
    changed = replace(collection, embedding_model=model, calibrated_threshold=None, calibrated_at=None)
    trace.question = replace(trace.question, collection=changed)
    return True


def languages_of(trace: RetrievalTrace) -> set[str]:
    ids = list(trace.collection_ids or (trace.question.collection.id,))

    def read(pipeline: Pipeline) -> list[tuple[str, float, float]]:
        pending = pipeline.execute(queries["search_scope"], {"tenant_id": trace.tenant_id, "collection_ids": ids})
        pipeline.finish()
        return pending.fetchall()

    rows = trace.database.read(trace.question.identity, read)
    return {language.partition("+")[0] for language, chunks, _ in rows if chunks}


def above_threshold(trace: RetrievalTrace, hits: SearchHits) -> SearchHits:
    """Drop hits which are not above the profile's strict threshold, if set.

    Required by source 004 in docs/sources.md: similarity > match_threshold.
    """
    collection, profile = trace.question.collection, trace.profile
    if not profile.search.strict_threshold:
        return hits
    try:
        default = trace.models.embedder_for(collection.embedding_model).default_threshold
    except (ProviderError, SettingsError):
        return hits
    least = profile.threshold(default, collection.calibrated_threshold)
    with trace.step("threshold") as step:
        remaining = tuple(r for r in hits.results if r.similarity is not None and r.similarity > least)
        trace.details.search.below_threshold = len(hits.results) - len(remaining)
        step.detail = f"{len(hits.results) - len(remaining)} of {len(hits.results)} passages cut: not above {least:g}"
    return replace(hits, results=remaining)


def without_repeats(trace: RetrievalTrace, results: Sequence[SearchResult]) -> list[SearchResult]:
    """Drop near repeats, and keep at most the profile's limit for each document."""
    profile = trace.profile
    with trace.step("collapse") as step:
        remaining = list(results)
        if profile.ranking.collapse_near_repeats:
            # Two places' rules may differ only in a name.
            of_place = without_near_repeats([result for result in remaining if result.document_id in trace.of_place])
            elsewhere = without_near_repeats(
                [result for result in remaining if result.document_id not in trace.of_place]
            )
            distinct = {result.chunk_id for result in (*of_place, *elsewhere)}
            remaining = [result for result in remaining if result.chunk_id in distinct]
        most = 1 if profile.search.one_result_per_document else profile.search.maximum_per_document
        limited = limited_per_document(remaining, most)
        step.detail = describe_dropped(
            near_repeats=len(results) - len(remaining), over_limit=len(remaining) - len(limited), most=most
        )
    return [replace(result, original_rank=rank) for rank, result in enumerate(limited, 1)]


#: A notice about a collection, if several are searched.
IN_COLLECTION = N_("In the collection “{name}”: {notice}")


@dataclass(frozen=True)
class GroupPassages:
    """The hits from a group of collections with equal settings, best first. Only hits in `cited` may be cited."""

    trace: RetrievalTrace
    hits: tuple[SearchResult, ...] = ()
    scored: list[ScoredHit] = field(default_factory=list)
    cited: list[ScoredHit] = field(default_factory=list)
    #: Further passages for the asker's place.
    of_place: list[ScoredHit] = field(default_factory=list)
    is_searched: bool = True


@dataclass(frozen=True)
class MergedPassages:
    """The hits from all groups, best first; see `GroupPassages`."""

    trace: RetrievalTrace
    hits: tuple[SearchResult, ...]
    scored: list[ScoredHit]
    cited: list[ScoredHit]
    of_place: list[ScoredHit]
    #: Documents for the asker's place, and the cited passages before these documents were put first.
    own_documents: frozenset[UUID] = frozenset()
    search_order: list[ScoredHit] = field(default_factory=list)


def groups_of(first: Collection, other_collections: Sequence[Collection]) -> list[list[Collection]]:
    """Group collections with equal settings, which can be searched together. The group of `first` comes first.

    Collections with different measured thresholds are in different groups. With the built-in embedder, thresholds are
    ignored.
    """
    groups: dict[object, list[Collection]] = {}
    for collection in (first, *(other for other in other_collections if other.id != first.id)):
        is_measured = not collection.embedding_model.startswith("builtin/")
        threshold = collection.calibrated_threshold if is_measured else None
        settings = json.dumps(collection.overrides, sort_keys=True, default=str)
        key = (collection.embedding_model, collection.profile, settings, collection.language, threshold)
        groups.setdefault(key, []).append(collection)
    return list(groups.values())


def names_of(groups: Sequence[Sequence[Collection]]) -> list[str]:
    """Return each group's collection names, joined by commas."""
    return [", ".join(collection.name for collection in group) for group in groups]


def merge_groups(searched: Sequence[GroupPassages], names: Sequence[str]) -> MergedPassages:
    """Merge the hits from several groups. The details are added to the first group's trace.

    Hits are ordered by probability, because scores from different embedders and profiles are not comparable. Raises
    `ProviderUnavailable` if no group could be searched.
    """
    first, trace = searched[0], searched[0].trace
    if len(searched) == 1:
        return MergedPassages(trace, first.hits, first.scored, first.cited, first.of_place)
    if not any(group.is_searched for group in searched):
        raise ProviderUnavailable(trace.notices[-1])
    notices: list[str] = []
    details, steps = trace.details, list[StepDetails]()
    for group, name in zip(searched, names, strict=True):
        group_trace = group.trace
        notices += [IN_COLLECTION.format(name=name, notice=notice) for notice in group_trace.notices]
        steps.append(StepDetails(name="collections", detail=f"{name}: {len(group.scored)} passages"))
        steps += group_trace.details.steps or []
        if group_trace is trace:
            continue
        details.search.raw_results = [*details.search.raw_results, *group_trace.details.search.raw_results]
        details.search.queries = [*details.search.queries, *group_trace.details.search.queries]
        details.timing.search_ms += group_trace.details.timing.search_ms
        details.timing.embedding_ms += group_trace.details.timing.embedding_ms
    details.steps = steps
    trace.versions = tuple(version for group in searched for version in group.trace.versions)
    trace.staying = tuple(version for group in searched for version in group.trace.staying)
    trace.notices[:] = list(dict.fromkeys(notices))
    # The facts cover only a single group's documents.
    trace.facts = {}

    def by_evidence(items: Iterable[ScoredHit]) -> list[ScoredHit]:
        return sorted(items, key=lambda item: -item.probability)

    cited = by_evidence(item for group in searched for item in group.cited)
    cited = with_order_scores([replace(item, order=item.probability) for item in cited])
    if trace.profile.ranking.only_evidence:
        cited = select_citable(cited)
    return MergedPassages(
        trace,
        hits=tuple(hit for group in searched for hit in group.hits),
        scored=by_evidence(item for group in searched for item in group.scored),
        cited=cited[: trace.top_k],
        of_place=[item for group in searched for item in group.of_place],
    )
