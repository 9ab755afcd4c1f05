"""Search the documents for a country in the question, and for the asker's place."""

from __future__ import annotations

from collections.abc import Sequence, Set
from uuid import UUID

from rag.retrieval.countries import countries_in
from rag.retrieval.evidence import ScoredHit, outcome_of
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.known_by import country_names, of_countries
from rag.retrieval.own_place import FoundForPlace, PlaceFacts, documents_of, names_a_place, places_of
from rag.retrieval.query_understanding import ParsedQuestion
from rag.retrieval.searching import search_too
from rag.retrieval.trace import RetrievalTrace
from rag.storage.database import queries
from rag.storage.pipeline import Pipeline


def search_countries(trace: RetrievalTrace, asked: ParsedQuestion, hits: SearchHits, countries: Set[str]) -> SearchHits:
    """Also search the documents in the countries' folders, if the search found none."""
    is_within_documents = trace.filters.document_ids or trace.question.document_ids
    if not countries or is_within_documents or of_countries(countries, hits.results).own:
        return hits
    found = _named_like(trace, country_names(countries))
    own = {facts.document_id for facts in found if countries_in(facts.folder).keys() & countries}
    return search_too(trace, asked, hits, own, come_first=False) if own else hits


def search_own_place(trace: RetrievalTrace, asked: ParsedQuestion, hits: SearchHits) -> SearchHits | None:
    """Search the documents for the asker's place too; None if the search found some, or there are not any."""
    names = _own_places(trace)
    if not names or not hits.results:
        return None
    facts, _ = _place_facts(trace, {result.document_id for result in hits.results})
    trace.of_place = documents_of(names, facts, ())
    if trace.of_place or trace.filters.document_ids or trace.question.document_ids:
        return None
    labelled = _named_like(trace, names)
    documents = trace.of_place = documents_of(names, (*facts, *labelled), ())
    return search_too(trace, asked, hits, documents, come_first=False) if documents else None


def documents_of_own_place(trace: RetrievalTrace, scored: Sequence[ScoredHit]) -> frozenset[UUID]:
    """Return the documents for the asker's place, if they may answer and the question names no place."""
    names = _own_places(trace)
    documents = {item.result.document_id for item in scored}
    if not names or len(documents) < 2:
        return frozenset()
    with trace.step("own place") as step:
        facts, groups = _place_facts(trace, documents)
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


def _own_places(trace: RetrievalTrace) -> tuple[str, ...]:
    return places_of(trace.question.identity.user_group) if trace.profile.search.refine_order else ()


def _named_like(trace: RetrievalTrace, names: Sequence[str]) -> list[PlaceFacts]:
    """Read facts about documents with any of the names in their title, folder or tags."""
    ids = list(trace.collection_ids or (trace.question.collection.id,))

    def read(pipeline: Pipeline) -> list[tuple[UUID]]:
        found = pipeline.execute(queries["documents_of_place"], {"names": list(names), "collection_ids": ids})
        pipeline.finish()
        return found.fetchall()

    documents = {row[0] for row in trace.database.read(trace.question.identity, read)}
    return _place_facts(trace, documents)[0] if documents else []


def _place_facts(trace: RetrievalTrace, documents: Set[UUID]) -> tuple[list[PlaceFacts], list[str]]:
    """Read names and shelves of documents, and all groups in the tenant."""

    def read(pipeline: Pipeline) -> tuple[list[PlaceFacts], list[str]]:
        found = pipeline.execute(queries["place_facts"], {"document_ids": list(documents)})
        groups = pipeline.execute(queries["account_groups"])
        pipeline.finish()
        return found.read(PlaceFacts), [row[0] for row in groups.fetchall()]

    return trace.database.read(trace.question.identity, read)
