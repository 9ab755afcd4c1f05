"""Retrieve numbered passages for a question. Only `Retriever.retrieve` and `_find` know the order of the steps:

understand → embed → search → leave out repeats → score → rerank → order → weigh the evidence → build the context

A provider that fails costs quality, not the answer: without a translation the original is searched, without an
embedding keywords alone, without a reranker the found order stays; `notices` names each.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rag.errors import DatabaseUnavailable, ProviderError, ProviderUnavailable, QuestionEmpty, SettingsError
from rag.language import N_
from rag.money.bill import costs_of, open_bill
from rag.money.metered import MeteredProviders
from rag.monitoring.tracing import ms_since
from rag.profiles import profile_of
from rag.profiles.profile import Options, Profile
from rag.providers.processor import working
from rag.retrieval.as_of import DayMeant, day_meant, day_to_come, days_said, in_their_versions, versions_on
from rag.retrieval.bm25.index import tokenize
from rag.retrieval.context_builder import Neighbour, citations_from, context_from, read_neighbours, read_section
from rag.retrieval.countries import countries_in
from rag.retrieval.deduplication import limited_per_document, without_near_repeats
from rag.retrieval.evidence import (
    ScoredHit,
    best_of,
    in_order,
    named_first,
    of_elsewhere,
    of_no_country,
    outcome_of,
    score_hits,
    usual_meanings,
    with_order_scores,
    without_name,
    worth_citing,
)
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.known_by import asked_countries, country_names, country_words, of_countries
from rag.retrieval.meaning import named_languages
from rag.retrieval.multi_query import EmbeddedWordings, embed_wordings, search_wordings, wordings_of
from rag.retrieval.names import LEAST_CHUNKS, LEAST_DOCUMENTS, Names, forms_of, names_in, without
from rag.retrieval.own_place import FoundForPlace, PlaceFacts, documents_of, names_a_place, own_first, places_of
from rag.retrieval.proximity import names_said
from rag.retrieval.query_understanding import ParsedQuestion, describe, question_language, understand
from rag.retrieval.ranking import needs_signals, of_categories, of_years, ordered, read_facts
from rag.retrieval.reranker import rerank
from rag.retrieval.since import since_meant
from rag.retrieval.trace import (
    OnStep,
    RetrievalTrace,
    evidence_said,
    left_out_said,
    raw_results_from,
    search_said,
)
from rag.storage.database import Database, queries
from rag.storage.pipeline import Pipeline
from rag.types import (
    Citation,
    Collection,
    ContextResponse,
    EvidenceDetails,
    FloatMatrix,
    OwnPlace,
    Question,
    SearchDetails,
    SearchFilters,
    SearchResult,
    StepDetails,
    TokenUsage,
    VersionOnDay,
    Who,
)

if TYPE_CHECKING:
    from rag.providers.registry import Providers

#: A notice about a collection, if several are searched.
IN_COLLECTION = N_("In the collection “{name}”: {notice}")
#: Nearest passages shown when there is no answer.
NEAREST = 3
#: Without the month or year, a question must have at least this many terms to be searched.
LEAST_ASKED = 2


@dataclass(frozen=True, kw_only=True)
class RetrievalResult:
    """A response with all intermediate steps, for explanations."""

    response: ContextResponse
    #: As found, best first.
    hits: tuple[SearchResult, ...]
    #: After all steps, best first; they include `cited`.
    scored: tuple[ScoredHit, ...]
    cited: tuple[ScoredHit, ...]


class Retriever:
    """Find the passages to answer a question from. Thread-safe.

    Paid calls are on the open bill. "Last March" counts from `today`.
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
        """Find, order and number the passages that answer a question.

        `options` switch single steps for this call. `on_step` is called with "translating", "searching", "found" and
        their number, and "reranking" as they happen. If no passage speaks to the question, `citations` is empty and
        `nearest` holds the closest. Raises `QuestionEmpty` and `DatabaseUnavailable`, and `ProviderError` only
        if no search is possible without the provider.
        """
        return self.retrieve(
            question,
            profile=profile,
            top_k=top_k,
            on_step=on_step,
            options=options,
        ).response

    def with_section(
        self, context: ContextResponse, who: Who, document_id: UUID, number: str
    ) -> tuple[ContextResponse, tuple[Citation, ...]]:
        """Add a section's passages, if found, to a context; return both."""
        try:
            found = read_section(self._database, who, document_id, number)
        except DatabaseUnavailable:
            found = []
        known = {citation.chunk_id: citation for citation in context.citations}
        new = [passage for passage in found if passage.chunk_id not in known]
        for place, passage in enumerate(new, len(context.citations) + 1):
            known[passage.chunk_id] = Citation(number=place, score=0.0, **vars(passage))
        citations = (*context.citations, *(known[passage.chunk_id] for passage in new))
        return replace(context, citations=citations), tuple(known[passage.chunk_id] for passage in found)

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
        """Retrieve like `retrieve_context`, with every candidate passage."""
        started = time.perf_counter()
        text = question.text.strip()
        if not text:
            raise QuestionEmpty
        options = options or Options()
        today, language = self._today(), question_language(question)
        profile = options.applied_to(profile)
        bill = open_bill()
        billed_before, models = len(bill.entries), MeteredProviders(self._providers, bill)
        searched: list[_Found] = []
        vectors: dict[tuple[str, ...], FloatMatrix | None] = {}
        groups = groups_of(question.collection, question.others)
        for group in groups:
            own = profile
            if group[0].id != question.collection.id:
                own = options.applied_to(profile_of(group[0])).model_copy(update={"spends": profile.spends})
            trace = RetrievalTrace(
                question=replace(question, collection=group[0], others=()),
                profile=own,
                top_k=own.passages(top_k or own.search.top_k),
                text=text,
                language=language,
                filters=options.filters or question.filters,
                on_step=on_step or (lambda name, detail: None),
                models=models,
                collection_ids=tuple(collection.id for collection in group),
                vectors=vectors,
            )
            is_strict = "similarity_threshold" in options.settings or own.search.strict_threshold
            try:
                found = self._find(trace, top_k or own.search.top_k, today, is_strict=is_strict)
            except ProviderError as error:
                if len(groups) == 1:
                    raise
                trace.notices.append(str(error))
                found = _Found(trace, (), [], [], is_searched=False)
            searched.append(found)
        trace, hits, scored, cited = _together(searched, names_of(groups))
        as_found: list[ScoredHit] = []
        of_place = [item for found in searched for item in found.of_place]
        if own_documents := self._of_own_place(trace, [*scored, *of_place]):
            speaking = [*(worth_citing(scored) if profile.ranking.only_evidence else scored), *of_place]
            as_found, cited = cited, with_order_scores(own_first(cited, speaking, own_documents, trace.top_k))
        evidence = EvidenceDetails(outcome=outcome_of(best_of(scored)), probability=round(best_of(scored), 4))
        trace.details.evidence = evidence
        metadata = self._metadata(trace, [*cited, *as_found] or scored[:NEAREST])
        shown = _shown(metadata, (*cited, *as_found, *scored[:NEAREST]), question, profile)
        stitched = partial(self._neighbours, trace) if profile.ranking.stitch_neighbours else None
        context_text, cited = context_from(cited, profile=profile, metadata=metadata, neighbours=stitched)
        context_text = days_said(trace.versions, {item.result.document_id for item in cited}) + context_text
        billed = bill.entries[billed_before:]
        charges = tuple(entry.charge for entry in billed)
        trace.details.costs = costs_of(billed)
        self._finish(trace, cited, started)
        response = ContextResponse(
            context_text=context_text,
            citations=_named(citations_from(cited, shown), cited, question),
            token_usage=TokenUsage(
                input=sum(c.usage.input_tokens for c in charges),
                output=sum(c.usage.output_tokens for c in charges),
            ),
            cost=sum((c.cost for c in charges if c.cost is not None), Decimal(0)),
            rag_details=trace.details,
            nearest=() if cited else _named(citations_from(scored[:NEAREST], shown), scored[:NEAREST], question),
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
        if len({item.result.document_id in own_documents for item in cited}) > 1:
            text, as_found = context_from(as_found, profile=profile, metadata=metadata)
            elsewhere = replace(
                response,
                context_text=text,
                citations=_named(citations_from(as_found, shown), as_found, question),
                results=tuple(item.result for item in as_found),
                usual_meanings=usual_meanings(scored, as_found),
                unnamed=_unnamed(as_found),
            )
            own_place = OwnPlace(question.identity.user_group, own_documents, elsewhere, trace.folders)
            response = replace(response, own_place=own_place)
        return RetrievalResult(response=response, hits=hits, scored=tuple(scored), cited=tuple(cited))

    def _find(self, trace: RetrievalTrace, wanted: int, today: date, *, is_strict: bool) -> _Found:
        """Search collections with equal search settings, and order the passages."""
        trace.thresholds = self._thresholds(trace, is_strict=is_strict)
        said = trace.text
        if trace.profile.search.refine_order:
            trace.text = since_meant(said, trace.language) or said
        asked = understand(trace, today, languages=lambda: self._languages(trace))
        if trace.text != said:
            trace.details.query.original = said
            trace.details.query.expanded = [*trace.details.query.expanded, trace.text]
        candidates = wanted * trace.profile.search.candidate_factor
        hits = self._search(trace, asked, candidates)
        if self._has_new_model(trace):
            trace.thresholds = self._thresholds(trace, is_strict=is_strict)
            hits = self._search(trace, asked, candidates)
        meant = self._day_meant(trace, hits, today)
        if meant is not None:
            asked = asked.said_as(trace.text, meant.text)
            trace.text = meant.text
            trace.details.query.expanded = [*trace.details.query.expanded, meant.text]
            hits = self._search(trace, asked, candidates)
        names = self._names(trace, hits)
        if names.text != trace.text and not asked.translation.translated_from:
            asked = asked.said_as(trace.text, names.text)
            hits = self._search(trace, asked, candidates)
            others = self._names(trace, hits, owners=names.names)
            if of_owner := names.said_by | others.said_by:
                hits = self._with_those_of(trace, asked, hits, of_owner, candidates)
            names = self._names(trace, hits, owners=names.names)
        countries = asked_countries(trace.text, trace.language) if trace.profile.search.refine_order else frozenset()
        if countries:
            hits = self._with_those_of_countries(trace, asked, hits, countries, candidates)
        trace.names = (*names.names, *country_words(countries, trace.language))
        with_own_place = self._with_those_of_own_place(trace, asked, hits, candidates)
        hits = self._as_of(trace, hits, meant.day if meant is not None else today)
        hits = self._cut(trace, hits)
        distinct = self._distinct(trace, hits.results)
        wordings = wordings_of(trace, asked, hits)
        own = trace.language.split("-")[0] if asked.original else ""
        by_country = of_countries(countries, distinct)
        chunks = {result.chunk_id for result in distinct if result.document_id in by_country.own}
        # Leave out other countries' passages beside the country's passages.
        beside = replace(hits, meant=tuple(hit for hit in hits.meant if hit.chunk_id in chunks)) if chunks else hits
        scored = score_hits(distinct, beside, wordings=wordings, own_language=own, thresholds=trace.thresholds)
        if names.names:
            scored = [item if item.result.document_id in names.said_by else without_name(item) for item in scored]
        named = named_languages(trace.text) - {trace.language}
        silent = {document for document in by_country.general if hits.languages[document] not in named}
        scored = [of_no_country(item) if item.result.document_id in silent else item for item in scored]
        scored = [of_elsewhere(item) if item.result.document_id in by_country.others else item for item in scored]
        # The folder shows which documents are the country's, in any language.
        named = frozenset() if by_country.own else named
        scored = rerank(trace, asked.translation, scored)
        scored = in_order(scored, hits, places=trace.top_k, language=trace.language, named=named)
        scored = named_first(scored)
        of_place: list[ScoredHit] = []
        if with_own_place is not None:
            # Scored apart: the usual similarity must not change.
            known = {result.chunk_id for result in distinct}
            further = [result for result in with_own_place.results if result.document_id in trace.of_place]
            both = [*distinct, *(result for result in further if result.chunk_id not in known)]
            of_place = score_hits(
                both, with_own_place, wordings=wordings, own_language=own, thresholds=trace.thresholds
            )[len(distinct) :]
        cited = self._order(trace, self._speaking(trace, scored), today)
        return _Found(trace, hits.results, scored, cited, of_place)

    def _day_meant(self, trace: RetrievalTrace, hits: SearchHits, today: date) -> DayMeant | None:
        """Return the day a question asks about.

        A past day counts if a found document has a known version for it; a coming day if a new version begins by then.
        Profiles filtering by document dates handle days differently.
        """
        understanding = trace.profile.understanding
        if understanding.filter_by_date or understanding.filter_by_year:
            return None

        def valid_on(day: date) -> set[UUID]:
            return {version.document_id for version in on(day)}

        def on(day: date) -> list[VersionOnDay]:
            return versions_on(self._database, trace.question.identity, hits, day)

        if meant := day_meant(trace.text, trace.language, today):
            return meant if valid_on(meant.day) else None
        coming = day_to_come(trace.text, trace.language, today)
        if coming is None or valid_on(coming.day) - valid_on(today):
            return coming
        # A passage naming the month or year is about it. Versions seldom begin on a day within a month.
        is_said = any(coming.named.casefold() in result.content.casefold() for result in hits.results)
        is_period = coming.day.day == 1 or (coming.day + timedelta(days=1)).day == 1
        if is_said or not is_period or len(set(tokenize(coming.text, trace.language))) < LEAST_ASKED:
            return None
        valid = on(coming.day)
        trace.staying = tuple(version for version in valid if version.document_id == version.published_id)
        return replace(coming, day=today) if valid else None

    def _as_of(self, trace: RetrievalTrace, hits: SearchHits, day: date) -> SearchHits:
        """Replace hits with passages from the versions valid on a day, today or earlier."""
        who = trace.question.identity
        versions = [
            version
            for version in versions_on(self._database, who, hits, day)
            if version.document_id != version.published_id
        ]
        if not versions:
            return hits
        with trace.step("versions") as step:
            trace.versions = tuple(versions)
            step.detail = f"as of {day}: " + ", ".join(f"{found.title}, version {found.version}" for found in versions)
            return in_their_versions(self._database, who, hits, versions, trace.text, trace.language)

    def _with_those_of(
        self,
        trace: RetrievalTrace,
        asked: ParsedQuestion,
        hits: SearchHits,
        documents: Set[UUID],
        candidates: int,
        *,
        come_first: bool = True,
    ) -> SearchHits:
        """Search some documents too, by default with their passages first."""
        everywhere = trace.filters
        trace.filters = replace(everywhere, document_ids=tuple(documents))
        own = self._search(trace, asked, candidates)
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

    def _with_those_of_countries(
        self, trace: RetrievalTrace, asked: ParsedQuestion, hits: SearchHits, countries: Set[str], candidates: int
    ) -> SearchHits:
        """Also search the documents in the countries' folders, if the search found none."""
        if of_countries(countries, hits.results).own or trace.filters.document_ids or trace.question.document_ids:
            return hits
        found = self._named_like(trace, country_names(countries))
        own = {facts.document_id for facts in found if countries_in(facts.folder).keys() & countries}
        return self._with_those_of(trace, asked, hits, own, candidates, come_first=False) if own else hits

    def _named_like(self, trace: RetrievalTrace, names: Sequence[str]) -> list[PlaceFacts]:
        """Read facts about documents with any of the names in their title, folder or tags."""
        ids = list(trace.collection_ids or (trace.question.collection.id,))

        def read(pipeline: Pipeline) -> list[tuple[UUID]]:
            found = pipeline.execute(queries["documents_of_place"], {"names": list(names), "collection_ids": ids})
            pipeline.finish()
            return found.fetchall()

        documents = {row[0] for row in self._database.read(trace.question.identity, read)}
        return self._place_facts(trace, documents)[0] if documents else []

    def _with_those_of_own_place(
        self, trace: RetrievalTrace, asked: ParsedQuestion, hits: SearchHits, candidates: int
    ) -> SearchHits | None:
        """Search the documents for the asker's place too; None if the search found some, or there are not any."""
        names = self._own_places(trace)
        if not names or not hits.results:
            return None
        facts, _ = self._place_facts(trace, {result.document_id for result in hits.results})
        trace.of_place = documents_of(names, facts, ())
        if trace.of_place or trace.filters.document_ids or trace.question.document_ids:
            return None
        labelled = self._named_like(trace, names)
        documents = trace.of_place = documents_of(names, (*facts, *labelled), ())
        return self._with_those_of(trace, asked, hits, documents, candidates, come_first=False) if documents else None

    def _of_own_place(self, trace: RetrievalTrace, scored: Sequence[ScoredHit]) -> frozenset[UUID]:
        """Return the documents for the asker's place, if they may answer and the question names no place."""
        names = self._own_places(trace)
        documents = {item.result.document_id for item in scored}
        if not names or len(documents) < 2:
            return frozenset()
        with trace.step("own place") as step:
            facts, groups = self._place_facts(trace, documents)
            answering = {item.result.document_id for item in scored if outcome_of(item.probability) != "none"}
            own = documents_of(names, facts, answering)
            place = FoundForPlace(
                names=names,
                documents=[found for found in facts if found.document_id in own],
                passages=[item.result.content for item in scored if item.result.document_id in own],
                others=[found for found in facts if found.document_id not in own],
            )
            if not own & answering or names_a_place(trace.question.text, trace.language, place, groups=groups):
                return frozenset()
            trace.folders = {found.document_id: found.folder or found.upload_folder for found in facts}
            step.detail = f"{len(own)} of {len(documents)} documents are for {trace.question.identity.user_group}"
        return own

    @staticmethod
    def _own_places(trace: RetrievalTrace) -> tuple[str, ...]:
        return places_of(trace.question.identity.user_group) if trace.profile.search.refine_order else ()

    def _place_facts(self, trace: RetrievalTrace, documents: Set[UUID]) -> tuple[list[PlaceFacts], list[str]]:
        """Read names and shelves of documents, and all groups in the tenant."""

        def read(pipeline: Pipeline) -> tuple[list[PlaceFacts], list[str]]:
            found = pipeline.execute(queries["place_facts"], {"document_ids": list(documents)})
            groups = pipeline.execute(queries["account_groups"])
            pipeline.finish()
            return found.read(PlaceFacts), [row[0] for row in groups.fetchall()]

        return self._database.read(trace.question.identity, read)

    def _names(self, trace: RetrievalTrace, hits: SearchHits, *, owners: Sequence[str] = ()) -> Names:
        """Find whose rules the question asks for, if the profile refines the order.

        `owners` are names found in enough documents by a search including them.
        """
        asked = names_in(trace.text, trace.language) if trace.profile.search.refine_order else []
        # If the question names one of two health plans, the name tells passages apart.
        if not asked or hits.twins or not hits.results:
            return Names(trace.text)
        documents = list(dict.fromkeys(result.document_id for result in hits.results))
        own = f"{trace.question.collection.name}\n{trace.profile.answer.own_name}".casefold()

        forms = [(form, name) for name in asked for form in forms_of(name)]

        def read(pipeline: Pipeline) -> list[tuple[UUID, int, int]]:
            names = [form for form, _ in forms]
            found = pipeline.execute(queries["documents_saying"], {"names": names, "document_ids": documents})
            pipeline.finish()
            return found.fetchall()

        with trace.step("whose rules") as step:
            # A name in the collection's title holds for all documents.
            saying = {name: set(documents) if name.casefold() in own else set[UUID]() for name in asked}
            chunks = Counter[str]()
            for document_id, place, count in self._database.read(trace.question.identity, read):
                name = forms[place - 1][1]
                saying[name].add(document_id)
                chunks[name] += count
            if trace.language == "de":
                # "Bei Krankheit": German capitalises every noun, so words found in German documents are not names.
                german = {document for document in documents if hits.languages[document].startswith("de")}
                saying = {name: found for name, found in saying.items() if not found & german}
            missing = tuple(name for name, found in saying.items() if not found)
            least = min(LEAST_DOCUMENTS, len(documents))
            meant = [
                name
                for name, found in saying.items()
                if found and (name in owners or len(found) >= least or chunks[name] >= LEAST_CHUNKS)
            ]
            said_by = frozenset.intersection(*(frozenset(saying[name]) for name in meant)) if meant else frozenset()
            step.detail = "; ".join(
                f"{name}: {len(found)} of {len(documents)} documents" for name, found in saying.items()
            )
        return Names(without(trace.text, meant, trace.language), (*meant, *missing), said_by, missing)

    def _languages(self, trace: RetrievalTrace) -> set[str]:
        """Return the languages of the searched documents."""
        ids = list(trace.collection_ids or (trace.question.collection.id,))

        def read(pipeline: Pipeline) -> list[tuple[str, float, float]]:
            asked = pipeline.execute(queries["search_scope"], {"tenant_id": trace.tenant_id, "collection_ids": ids})
            pipeline.finish()
            return asked.fetchall()

        found = self._database.read(trace.question.identity, read)
        return {language.partition("+")[0] for language, chunks, _ in found if chunks}

    def _has_new_model(self, trace: RetrievalTrace) -> bool:
        """Tell whether the collection's embedding model has changed meanwhile, and use the new model."""
        collection = trace.question.collection

        def read(pipeline: Pipeline) -> tuple[str] | None:
            asked = pipeline.execute(queries["embedding_model_now"], {"collection_id": collection.id})
            pipeline.finish()
            return asked.fetchone()

        found = self._database.read(trace.question.identity, read)
        model = found[0] if found else None
        if model is None or model == collection.embedding_model:
            return False
        # The threshold was measured with the other model.
        changed = replace(collection, embedding_model=model, calibrated_threshold=None, calibrated_at=None)
        trace.question = replace(trace.question, collection=changed)
        return True

    def _search(self, trace: RetrievalTrace, asked: ParsedQuestion, candidates: int) -> SearchHits:
        """Search for the question and its other wordings; at most `candidates` results, best first.

        Limits read from the question are guesses: if they leave no results, all documents are searched.
        """
        trace.on_step("searching", "")
        embedded = embed_wordings(trace, asked)
        has_vectors = embedded.vectors is not None
        trace.details.search = SearchDetails(
            type=trace.profile.search.search_type, vector_top_k=candidates if has_vectors else 0
        )
        started = time.perf_counter()
        afterwards = trace.profile.search.filters_after_search
        within = replace(asked.filters, categories=(), years=()) if afterwards else asked.filters
        with trace.step("search") as step:
            hits = self._search_within(trace, asked, embedded, within, candidates)
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
                hits = self._search_within(trace, asked, embedded, within, candidates)
                step.detail = f"{len(hits.results)} passages; none has a similarity of {wanted:g}"
        if afterwards and asked.filters != within:
            hits = self._filtered(trace, hits, asked.filters)
        if not hits.results and within != SearchFilters():
            with trace.step("search everywhere") as step:
                hits = self._search_within(trace, asked, embedded, SearchFilters(), candidates)
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
        self,
        trace: RetrievalTrace,
        asked: ParsedQuestion,
        embedded: EmbeddedWordings,
        filters: SearchFilters,
        candidates: int,
    ) -> SearchHits:
        within = _combined(trace, filters)
        hits = search_wordings(trace, asked, embedded, within, self._database, candidates=candidates)
        if not trace.filters.years:
            return hits
        # The search chose documents with this year; some passages in them may be from other years.
        facts = read_facts(self._database, trace.question.identity, hits.results)
        return replace(hits, results=of_years(hits.results, facts, trace.filters.years))

    def _filtered(self, trace: RetrievalTrace, hits: SearchHits, filters: SearchFilters) -> SearchHits:
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
            facts = read_facts(self._database, trace.question.identity, hits.results)
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

    def _cut(self, trace: RetrievalTrace, hits: SearchHits) -> SearchHits:
        """Keep hits above a strict threshold (source 004: similarity > match_threshold)."""
        collection, profile = trace.question.collection, trace.profile
        if not profile.search.strict_threshold:
            return hits
        try:
            own = self._providers.embedder_for(collection.embedding_model).default_threshold
        except (ProviderError, SettingsError):
            return hits
        least = profile.threshold(own, collection.calibrated_threshold)
        with trace.step("threshold") as step:
            kept = tuple(r for r in hits.results if r.similarity is not None and r.similarity > least)
            trace.details.search.below_threshold = len(hits.results) - len(kept)
            step.detail = f"{len(hits.results) - len(kept)} of {len(hits.results)} passages cut: not above {least:g}"
        return replace(hits, results=kept)

    def _distinct(self, trace: RetrievalTrace, results: Sequence[SearchResult]) -> list[SearchResult]:
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

    def _speaking(self, trace: RetrievalTrace, scored: list[ScoredHit]) -> list[ScoredHit]:
        """Return the passages allowed as citations, and record whether they answer the question."""
        is_asked_for = trace.profile.ranking.only_evidence
        with trace.step("evidence") as step:
            speaking = worth_citing(scored) if is_asked_for else scored
            evidence = EvidenceDetails(outcome=outcome_of(best_of(scored)), probability=round(best_of(scored), 4))
            step.detail = evidence_said(scored, speaking, evidence, is_asked_for=is_asked_for)
        return speaking

    def _order(self, trace: RetrievalTrace, scored: list[ScoredHit], today: date) -> list[ScoredHit]:
        """Return the passages to cite, in the profile's order."""
        if not needs_signals(trace.profile) or not scored:
            return with_order_scores(scored[: trace.top_k])
        with trace.step("order") as step:
            trace.facts = read_facts(self._database, trace.question.identity, [item.result for item in scored])
            signals = {document_id: facts.signals for document_id, facts in trace.facts.items()}
            done = ordered(scored, signals, profile=trace.profile, top_k=trace.top_k, today=today)
            if not (trace.profile.ranking.multi_signal or trace.profile.ranking.recency_boost):
                done = with_order_scores(done)
            names = ("multi_signal", "recency_boost", "pinned_first")
            step.detail = ", ".join(name for name in names if trace.profile.value(name))
        return done

    def _metadata(self, trace: RetrievalTrace, cited: Sequence[ScoredHit]) -> Mapping[UUID, Mapping[str, Any]]:
        """Return the documents' metadata for formatting passages, with the arrival day if there is a format."""
        if not trace.facts:
            trace.facts = read_facts(self._database, trace.question.identity, [item.result for item in cited])
        has_form = bool(trace.profile.answer.context_format)
        return {key: facts.shown if has_form else facts.metadata for key, facts in trace.facts.items()}

    def _neighbours(self, trace: RetrievalTrace, hits: list[SearchResult]) -> list[Neighbour]:
        with trace.step("neighbours") as step:
            neighbours = read_neighbours(self._database, trace.question.identity, hits)
            step.detail = f"{len(neighbours)} beside {len(hits)} passages" if neighbours else ""
        return neighbours

    def _thresholds(self, trace: RetrievalTrace, *, is_strict: bool) -> tuple[float, ...]:
        """Return similarities sufficient as evidence; empty for the built-in embedder, which compares only words.

        The second applies if no passage reaches the first: a collection's configured value, such as 0.7, may be out of
        the model's reach. A caller's threshold is used alone.
        """
        collection, profile = trace.question.collection, trace.profile
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

    def _finish(self, trace: RetrievalTrace, cited: Sequence[ScoredHit], started: float) -> None:
        if trace.details.reranking.results:
            # The passages kept after reranking; `results` has all.
            trace.details.reranking.output_documents = len(cited)
        trace.details.search.matched_terms = list(dict.fromkeys(word for item in cited for word in item.coverage.found))
        trace.details.search.final_top_k = trace.top_k
        trace.details.timing.total_ms = ms_since(started)


@dataclass(frozen=True)
class _Found:
    """The passages from a group of collections, best first; an answer may cite `cited`."""

    trace: RetrievalTrace
    hits: tuple[SearchResult, ...]
    scored: list[ScoredHit]
    cited: list[ScoredHit]
    #: Further passages for the asker's place.
    of_place: list[ScoredHit] = field(default_factory=list)
    is_searched: bool = True


def groups_of(first: Collection, others: Sequence[Collection]) -> list[list[Collection]]:
    """Group collections with equal settings, each group for a single search; the group of `first` comes first.

    A measured threshold belongs to a collection; the built-in embedder has none.
    """
    groups: dict[object, list[Collection]] = {}
    for collection in (first, *(other for other in others if other.id != first.id)):
        is_measured = not collection.embedding_model.startswith("builtin/")
        threshold = collection.calibrated_threshold if is_measured else None
        settings = json.dumps(collection.overrides, sort_keys=True, default=str)
        key = (collection.embedding_model, collection.profile, settings, collection.language, threshold)
        groups.setdefault(key, []).append(collection)
    return list(groups.values())


def _unnamed(cited: Sequence[ScoredHit]) -> frozenset[UUID]:
    return frozenset(item.result.chunk_id for item in cited if item.signals.is_unnamed)


def names_of(groups: Sequence[Sequence[Collection]]) -> list[str]:
    """Return the collection names in each group."""
    return [", ".join(collection.name for collection in group) for group in groups]


def _together(
    searched: Sequence[_Found], names: Sequence[str]
) -> tuple[RetrievalTrace, tuple[SearchResult, ...], list[ScoredHit], list[ScoredHit]]:
    """Merge the passages from several groups into the first group's trace.

    Scores from different embedders and profiles are not comparable; the probability of an answer is.
    """
    trace = searched[0].trace
    if len(searched) == 1:
        return trace, searched[0].hits, searched[0].scored, searched[0].cited
    if not any(found.is_searched for found in searched):
        raise ProviderUnavailable(trace.notices[-1])
    notices: list[str] = []
    details, steps = trace.details, list[StepDetails]()
    for found, name in zip(searched, names, strict=True):
        own = found.trace
        notices += [IN_COLLECTION.format(name=name, notice=notice) for notice in own.notices]
        steps.append(StepDetails(name="collections", detail=f"{name}: {len(found.scored)} passages"))
        steps += own.details.steps or []
        if own is trace:
            continue
        details.search.raw_results = [*details.search.raw_results, *own.details.search.raw_results]
        details.search.queries = [*details.search.queries, *own.details.search.queries]
        details.timing.search_ms += own.details.timing.search_ms
        details.timing.embedding_ms += own.details.timing.embedding_ms
    details.steps = steps
    trace.versions = tuple(version for found in searched for version in found.trace.versions)
    trace.staying = tuple(version for found in searched for version in found.trace.staying)
    trace.notices[:] = list(dict.fromkeys(notices))
    # The facts cover only a single group's documents.
    trace.facts = {}

    def by_evidence(items: Iterable[ScoredHit]) -> list[ScoredHit]:
        return sorted(items, key=lambda item: -item.probability)

    cited = by_evidence(item for found in searched for item in found.cited)
    cited = with_order_scores([replace(item, order=item.probability) for item in cited])
    if trace.profile.ranking.only_evidence:
        cited = worth_citing(cited)
    hits = tuple(hit for found in searched for hit in found.hits)
    return trace, hits, by_evidence(item for found in searched for item in found.scored), cited[: trace.top_k]


def _shown(
    metadata: Mapping[UUID, Mapping[str, Any]], items: Iterable[ScoredHit], question: Question, profile: Profile
) -> dict[UUID, Mapping[str, Any]]:
    """Return the metadata shown to readers, by document.

    Posts are shown as posts if their collection has a format for them; web pages always have their address.
    """
    forms = {other.id: profile_of(other).answer.context_format for other in question.others}
    forms[question.collection.id] = profile.answer.context_format
    posts = {item.result.document_id for item in items if forms.get(item.result.collection_id)}
    pages = {key: {"pageUrl": facts["pageUrl"]} for key, facts in metadata.items() if facts.get("pageUrl")}
    return {
        key: facts if key in posts else pages[key] for key, facts in metadata.items() if key in posts or key in pages
    }


def _named(citations: Sequence[Citation], cited: Sequence[ScoredHit], question: Question) -> tuple[Citation, ...]:
    """Name each citation's collection, if several were searched."""
    if not question.others:
        return tuple(citations)
    names = {collection.id: collection.name for collection in (question.collection, *question.others)}
    return tuple(
        replace(citation, collection=names[item.result.collection_id])
        for citation, item in zip(citations, cited, strict=True)
    )


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
