"""Retrieve numbered chunks for a question.

`Retriever.retrieve` and `_find` call the steps in order: understand → embed → search → search again (for a day, owners
or countries named in the question, and for the user's place) → leave out repeats → score → rerank → order → weigh the
evidence → build the context.

If a provider fails, retrieval continues with less: without a translation, the original is searched; without an
embedding, only keywords; without a reranker, the order stays. `notices` has a sentence for each failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rag.errors import DatabaseUnavailable, ProviderError, QuestionEmpty
from rag.money.bill import Bill, costs_of, open_bill
from rag.money.metered import MeteredProviders
from rag.monitoring.tracing import ms_since
from rag.profiles import profile_of
from rag.profiles.profile import Options, Profile
from rag.providers.processor import working
from rag.retrieval.as_of import describe_versions, in_valid_versions, of_the_day
from rag.retrieval.context_builder import Neighbour, citations_from, context_from, read_neighbours, read_section
from rag.retrieval.evidence import (
    ScoredHit,
    best_of,
    in_order,
    named_first,
    of_elsewhere,
    of_no_country,
    outcome_of,
    score_hits,
    select_citable,
    usual_meanings,
    with_order_scores,
    without_name,
)
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.known_by import countries_in_question, country_words, of_countries
from rag.retrieval.meaning import named_languages
from rag.retrieval.multi_query import wordings_of
from rag.retrieval.names import Names, of_owners
from rag.retrieval.own_place import documents_of_own_place, put_place_first, search_countries, search_own_place
from rag.retrieval.query_understanding import ParsedQuestion, question_language, understand
from rag.retrieval.ranking import needs_signals, ordered, read_facts
from rag.retrieval.reranker import rerank
from rag.retrieval.searching import (
    GroupPassages,
    MergedPassages,
    above_threshold,
    groups_of,
    has_new_model,
    languages_of,
    merge_groups,
    names_of,
    search,
    thresholds_of,
    without_repeats,
)
from rag.retrieval.since import without_since
from rag.retrieval.trace import OnStep, RetrievalTrace, describe_evidence
from rag.storage.database import Database
from rag.types import (
    Citation,
    Collection,
    ContextResponse,
    EvidenceDetails,
    FloatMatrix,
    OwnPlace,
    Question,
    SearchResult,
    TokenUsage,
    Who,
)

if TYPE_CHECKING:
    from rag.providers.registry import Providers


@dataclass(frozen=True, kw_only=True)
class RetrievalResult:
    """A response with all intermediate steps, for explanations."""

    response: ContextResponse
    #: The hits of the search, best first.
    hits: tuple[SearchResult, ...]
    #: The passages after all steps, best first; `cited` is among them.
    scored: tuple[ScoredHit, ...]
    cited: tuple[ScoredHit, ...]


class Retriever:
    """Finds the passages to answer a question from. Thread-safe.

    Paid calls are recorded on the open bill. Dates such as "last March" are relative to `today`.
    """

    def __init__(
        self,
        database: Database,
        providers: Providers,
        *,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        self._database = database
        self._providers = providers
        self._today = today

    def retrieve_context(
        self,
        question: Question,
        *,
        profile: Profile,
        top_k: int | None = None,
        on_step: OnStep | None = None,
        options: Options | None = None,
    ) -> ContextResponse:
        """Find, order and number the chunks which answer a question.

        `options` turn single steps on or off for this call. `on_step` is called with "translating", "searching" or
        "reranking" when this step starts, and with "found" and the hit count. If no hit is evidence for an answer,
        `citations` is empty and `nearest` has the closest chunks.

        Raises `QuestionEmpty`, `DatabaseUnavailable`, and `ProviderError` if no search is possible without the
        provider.
        """
        return self.retrieve(question, profile=profile, top_k=top_k, on_step=on_step, options=options).response

    def with_section(
        self, context: ContextResponse, who: Who, document_id: UUID, number: str
    ) -> tuple[ContextResponse, tuple[Citation, ...]]:
        """Add a section's chunks to a context. Returns the context and the section's citations."""
        try:
            passages = read_section(self._database, who, document_id, number)
        except DatabaseUnavailable:
            passages = []
        citations_by_id = {citation.chunk_id: citation for citation in context.citations}
        new = [passage for passage in passages if passage.chunk_id not in citations_by_id]
        for place, passage in enumerate(new, len(context.citations) + 1):
            citations_by_id[passage.chunk_id] = Citation(number=place, score=0.0, **vars(passage))
        citations = (*context.citations, *(citations_by_id[passage.chunk_id] for passage in new))
        return replace(context, citations=citations), tuple(citations_by_id[passage.chunk_id] for passage in passages)

    @working()
    def retrieve(
        self,
        question: Question,
        *,
        profile: Profile,
        top_k: int | None = None,
        on_step: OnStep | None = None,
        options: Options | None = None,
    ) -> RetrievalResult:
        """Retrieve like `retrieve_context`, and also return every candidate chunk."""
        started = time.perf_counter()
        text = question.text.strip()
        if not text:
            raise QuestionEmpty
        options = options or Options()
        profile = options.applied_to(profile)
        bill = open_bill()
        billed_before, models = len(bill.entries), MeteredProviders(self._providers, bill)
        language, today = question_language(question), self._today()
        vectors: dict[tuple[str, ...], FloatMatrix | None] = {}

        def search_group(group: list[Collection]) -> GroupPassages:
            group_profile = profile
            if group[0].id != question.collection.id:
                group_profile = options.applied_to(profile_of(group[0])).model_copy(update={"spends": profile.spends})
            count = top_k or group_profile.search.top_k
            trace = RetrievalTrace(
                question=replace(question, collection=group[0], others=()),
                profile=group_profile,
                top_k=group_profile.passages(count),
                candidates=count * group_profile.search.candidate_factor,
                text=text,
                language=language,
                filters=options.filters or question.filters,
                is_strict="similarity_threshold" in options.settings or group_profile.search.strict_threshold,
                on_step=on_step or (lambda name, detail: None),
                models=models,
                database=self._database,
                today=today,
                collection_ids=tuple(collection.id for collection in group),
                vectors=vectors,
            )
            try:
                return _find(trace)
            except ProviderError as error:
                if len(groups) == 1:
                    raise
                trace.notices.append(str(error))
                return GroupPassages(trace, is_searched=False)

        groups = groups_of(question.collection, question.others)
        merged = _own_place_first(merge_groups([search_group(group) for group in groups], names_of(groups)))
        response, cited = respond(question, merged, bill, billed_before)
        merged.trace.details.timing.total_ms = ms_since(started)
        return RetrievalResult(response=response, hits=merged.hits, scored=tuple(merged.scored), cited=tuple(cited))


def _find(trace: RetrievalTrace) -> GroupPassages:
    trace.thresholds = thresholds_of(trace)
    parsed = _parse_question(trace)
    hits = search(trace, parsed)
    if has_new_model(trace):
        trace.thresholds = thresholds_of(trace)
        hits = search(trace, parsed)
    parsed, hits, day = of_the_day(trace, parsed, hits)
    parsed, hits, names = of_owners(trace, parsed, hits)
    countries = countries_in_question(trace.text, trace.language) if trace.profile.search.refine_order else frozenset()
    hits = search_countries(trace, parsed, hits, countries)
    trace.names = (*names.names, *country_words(countries, trace.language))
    hits_of_place = search_own_place(trace, parsed, hits)
    hits = above_threshold(trace, in_valid_versions(trace, hits, day))
    distinct = without_repeats(trace, hits.results)
    score = partial(
        score_hits,
        wordings=wordings_of(trace, parsed, hits),
        own_language=trace.language.split("-")[0] if parsed.original else "",
        thresholds=trace.thresholds,
    )
    scored = _rank(trace, parsed, hits, distinct, score=score, names=names, countries=countries)
    cited = _order(trace, _select_citable(trace, scored))
    of_place = _score_of_place(trace, distinct, hits_of_place, score) if hits_of_place is not None else []
    return GroupPassages(trace, hits.results, scored, cited, of_place)


def _parse_question(trace: RetrievalTrace) -> ParsedQuestion:
    original = trace.text
    if trace.profile.search.refine_order:
        trace.text = without_since(original, trace.language) or original
    parsed = understand(trace, trace.today, languages=lambda: languages_of(trace))
    if trace.text != original:
        trace.details.query.original = original
        trace.details.query.expanded = [*trace.details.query.expanded, trace.text]
    return parsed


def _rank(
    trace: RetrievalTrace,
    parsed: ParsedQuestion,
    hits: SearchHits,
    distinct: list[SearchResult],
    *,
    score: Callable[[list[SearchResult], SearchHits], list[ScoredHit]],
    names: Names,
    countries: Set[str],
) -> list[ScoredHit]:
    by_country = of_countries(countries, distinct)
    chunks = {result.chunk_id for result in distinct if result.document_id in by_country.matching}
    # Measure the usual similarity without passages from other countries.
    reference_hits = (
        replace(hits, meaning_hits=tuple(hit for hit in hits.meaning_hits if hit.chunk_id in chunks))
        if chunks
        else hits
    )
    scored = score(distinct, reference_hits)
    if names.names:
        scored = [item if item.result.document_id in names.document_ids else without_name(item) for item in scored]
    named = named_languages(trace.text) - {trace.language}
    silent = {document for document in by_country.general if hits.languages[document] not in named}
    scored = [of_no_country(item) if item.result.document_id in silent else item for item in scored]
    scored = [of_elsewhere(item) if item.result.document_id in by_country.elsewhere else item for item in scored]
    scored = rerank(trace, parsed.translation, scored)
    # The folder shows which documents are the country's, so their language does not matter.
    named = frozenset() if by_country.matching else named
    return named_first(in_order(scored, hits, places=trace.top_k, language=trace.language, named=named))


def _score_of_place(
    trace: RetrievalTrace,
    distinct: list[SearchResult],
    hits_of_place: SearchHits,
    score: Callable[[list[SearchResult], SearchHits], list[ScoredHit]],
) -> list[ScoredHit]:
    distinct_ids = {result.chunk_id for result in distinct}
    further = [result for result in hits_of_place.results if result.document_id in trace.of_place]
    both = [*distinct, *(result for result in further if result.chunk_id not in distinct_ids)]
    return score(both, hits_of_place)[len(distinct) :]


def _select_citable(trace: RetrievalTrace, scored: list[ScoredHit]) -> list[ScoredHit]:
    is_required = trace.profile.ranking.only_evidence
    with trace.step("evidence") as step:
        citable = select_citable(scored) if is_required else scored
        evidence = EvidenceDetails(outcome=outcome_of(best_of(scored)), probability=round(best_of(scored), 4))
        step.detail = describe_evidence(scored, citable, evidence, is_required=is_required)
    return citable


def _order(trace: RetrievalTrace, scored: list[ScoredHit]) -> list[ScoredHit]:
    if not needs_signals(trace.profile) or not scored:
        return with_order_scores(scored[: trace.top_k])
    with trace.step("order") as step:
        trace.facts = read_facts(trace.database, trace.question.identity, [item.result for item in scored])
        signals = {document_id: facts.signals for document_id, facts in trace.facts.items()}
        done = ordered(scored, signals, profile=trace.profile, top_k=trace.top_k, today=trace.today)
        if not (trace.profile.ranking.multi_signal or trace.profile.ranking.recency_boost):
            done = with_order_scores(done)
        names = ("multi_signal", "recency_boost", "pinned_first")
        step.detail = ", ".join(name for name in names if trace.profile.value(name))
    return done


def _own_place_first(merged: MergedPassages) -> MergedPassages:
    trace = merged.trace
    own_documents = documents_of_own_place(trace, [*merged.scored, *merged.of_place])
    if not own_documents:
        return merged
    citable = [
        *(select_citable(merged.scored) if trace.profile.ranking.only_evidence else merged.scored),
        *merged.of_place,
    ]
    cited = with_order_scores(put_place_first(merged.cited, citable, own_documents, trace.top_k))
    return replace(merged, cited=cited, search_order=merged.cited, own_documents=own_documents)


#: How many nearest passages are shown without an answer.
NEAREST = 3


def respond(
    question: Question, merged: MergedPassages, bill: Bill, billed_before: int
) -> tuple[ContextResponse, list[ScoredHit]]:
    """Build the response. Returns the response, and the hits in the context.

    The costs are the entries in `bill` from the index `billed_before` on.
    """
    trace, scored, cited = merged.trace, merged.scored, merged.cited
    profile = trace.profile
    evidence = EvidenceDetails(outcome=outcome_of(best_of(scored)), probability=round(best_of(scored), 4))
    trace.details.evidence = evidence
    metadata = _metadata(trace, [*cited, *merged.search_order] or scored[:NEAREST])
    reader_metadata = _metadata_for_readers(
        metadata, (*cited, *merged.search_order, *scored[:NEAREST]), question, profile
    )
    stitched = partial(_neighbours, trace) if profile.ranking.stitch_neighbours else None
    context_text, cited = context_from(cited, profile=profile, metadata=metadata, neighbours=stitched)
    context_text = describe_versions(trace.versions, {item.result.document_id for item in cited}) + context_text
    billed = bill.entries[billed_before:]
    charges = tuple(entry.charge for entry in billed)
    trace.details.costs = costs_of(billed)
    if trace.details.reranking.results:
        # How many passages were kept after reranking; `results` has all.
        trace.details.reranking.output_documents = len(cited)
    trace.details.search.matched_terms = list(dict.fromkeys(word for item in cited for word in item.coverage.matched))
    trace.details.search.final_top_k = trace.top_k
    response = ContextResponse(
        context_text=context_text,
        citations=_name_collections(citations_from(cited, reader_metadata), cited, question),
        token_usage=TokenUsage(
            input=sum(c.usage.input_tokens for c in charges),
            output=sum(c.usage.output_tokens for c in charges),
        ),
        cost=sum((c.cost for c in charges if c.cost is not None), Decimal(0)),
        rag_details=trace.details,
        nearest=()
        if cited
        else _name_collections(citations_from(scored[:NEAREST], reader_metadata), scored[:NEAREST], question),
        charges=charges,
        notices=tuple(trace.notices),
        results=tuple(item.result for item in cited),
        evidence=evidence.outcome if profile.ranking.only_evidence or not cited else "answered",
        probability=evidence.probability,
        usual_meanings=usual_meanings(scored, cited),
        versions=trace.versions,
        staying=trace.staying,
        unnamed=_unnamed(cited),
        names=trace.names,
    )
    if len({item.result.document_id in merged.own_documents for item in cited}) < 2:
        return response, cited
    text, in_search_order = context_from(merged.search_order, profile=profile, metadata=metadata)
    usual_context = replace(
        response,
        context_text=text,
        citations=_name_collections(citations_from(in_search_order, reader_metadata), in_search_order, question),
        results=tuple(item.result for item in in_search_order),
        usual_meanings=usual_meanings(scored, in_search_order),
        unnamed=_unnamed(in_search_order),
    )
    own_place = OwnPlace(question.identity.user_group, merged.own_documents, usual_context, trace.folders)
    return replace(response, own_place=own_place), cited


def _metadata(trace: RetrievalTrace, cited: Sequence[ScoredHit]) -> Mapping[UUID, Mapping[str, Any]]:
    if not trace.facts:
        trace.facts = read_facts(trace.database, trace.question.identity, [item.result for item in cited])
    has_form = bool(trace.profile.answer.context_format)
    return {key: facts.dated_metadata if has_form else facts.metadata for key, facts in trace.facts.items()}


def _metadata_for_readers(
    metadata: Mapping[UUID, Mapping[str, Any]], items: Iterable[ScoredHit], question: Question, profile: Profile
) -> dict[UUID, Mapping[str, Any]]:
    forms = {other.id: profile_of(other).answer.context_format for other in question.others}
    forms[question.collection.id] = profile.answer.context_format
    posts = {item.result.document_id for item in items if forms.get(item.result.collection_id)}
    pages = {key: {"pageUrl": facts["pageUrl"]} for key, facts in metadata.items() if facts.get("pageUrl")}
    return {
        key: facts if key in posts else pages[key] for key, facts in metadata.items() if key in posts or key in pages
    }


def _name_collections(
    citations: Sequence[Citation], cited: Sequence[ScoredHit], question: Question
) -> tuple[Citation, ...]:
    if not question.others:
        return tuple(citations)
    names = {collection.id: collection.name for collection in (question.collection, *question.others)}
    return tuple(
        replace(citation, collection=names[item.result.collection_id])
        for citation, item in zip(citations, cited, strict=True)
    )


def _neighbours(trace: RetrievalTrace, hits: list[SearchResult]) -> list[Neighbour]:
    with trace.step("neighbours") as step:
        neighbours = read_neighbours(trace.database, trace.question.identity, hits)
        step.detail = f"{len(neighbours)} beside {len(hits)} passages" if neighbours else ""
    return neighbours


def _unnamed(cited: Sequence[ScoredHit]) -> frozenset[UUID]:
    return frozenset(item.result.chunk_id for item in cited if item.signals.is_unnamed)
