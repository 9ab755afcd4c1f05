"""Build the response: the context for a model, numbered citations, costs, and what each step found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from rag.money.bill import Bill, costs_of
from rag.profiles import profile_of
from rag.profiles.profile import Profile
from rag.retrieval.as_of import days_said
from rag.retrieval.context_builder import Neighbour, citations_from, context_from, read_neighbours
from rag.retrieval.evidence import ScoredHit, best_of, outcome_of, usual_meanings
from rag.retrieval.ranking import read_facts
from rag.retrieval.several_collections import Together
from rag.retrieval.trace import RetrievalTrace
from rag.types import (
    Citation,
    ContextResponse,
    EvidenceDetails,
    OwnPlace,
    Question,
    SearchResult,
    TokenUsage,
)

#: Nearest passages shown when there is no answer.
NEAREST = 3


def respond(
    question: Question, found: Together, bill: Bill, billed_before: int
) -> tuple[ContextResponse, list[ScoredHit]]:
    """Return the response, and the passages in it; the bill's entries from `billed_before` on are its costs."""
    trace, scored, cited = found.trace, found.scored, found.cited
    profile = trace.profile
    evidence = EvidenceDetails(outcome=outcome_of(best_of(scored)), probability=round(best_of(scored), 4))
    trace.details.evidence = evidence
    metadata = _metadata(trace, [*cited, *found.as_found] or scored[:NEAREST])
    shown = _shown(metadata, (*cited, *found.as_found, *scored[:NEAREST]), question, profile)
    stitched = partial(_neighbours, trace) if profile.ranking.stitch_neighbours else None
    context_text, cited = context_from(cited, profile=profile, metadata=metadata, neighbours=stitched)
    context_text = days_said(trace.versions, {item.result.document_id for item in cited}) + context_text
    billed = bill.entries[billed_before:]
    charges = tuple(entry.charge for entry in billed)
    trace.details.costs = costs_of(billed)
    if trace.details.reranking.results:
        # The passages kept after reranking; `results` has all.
        trace.details.reranking.output_documents = len(cited)
    trace.details.search.matched_terms = list(dict.fromkeys(word for item in cited for word in item.coverage.found))
    trace.details.search.final_top_k = trace.top_k
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
    if len({item.result.document_id in found.own_documents for item in cited}) < 2:
        return response, cited
    text, as_found = context_from(found.as_found, profile=profile, metadata=metadata)
    elsewhere = replace(
        response,
        context_text=text,
        citations=_named(citations_from(as_found, shown), as_found, question),
        results=tuple(item.result for item in as_found),
        usual_meanings=usual_meanings(scored, as_found),
        unnamed=_unnamed(as_found),
    )
    own_place = OwnPlace(question.identity.user_group, found.own_documents, elsewhere, trace.folders)
    return replace(response, own_place=own_place), cited


def _metadata(trace: RetrievalTrace, cited: Sequence[ScoredHit]) -> Mapping[UUID, Mapping[str, Any]]:
    """Return the documents' metadata for formatting passages, with the arrival day if there is a format."""
    if not trace.facts:
        trace.facts = read_facts(trace.database, trace.question.identity, [item.result for item in cited])
    has_form = bool(trace.profile.answer.context_format)
    return {key: facts.shown if has_form else facts.metadata for key, facts in trace.facts.items()}


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


def _neighbours(trace: RetrievalTrace, hits: list[SearchResult]) -> list[Neighbour]:
    with trace.step("neighbours") as step:
        neighbours = read_neighbours(trace.database, trace.question.identity, hits)
        step.detail = f"{len(neighbours)} beside {len(hits)} passages" if neighbours else ""
    return neighbours


def _unnamed(cited: Sequence[ScoredHit]) -> frozenset[UUID]:
    return frozenset(item.result.chunk_id for item in cited if item.signals.is_unnamed)
