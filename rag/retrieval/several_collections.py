"""Search several collections: a search for each group with equal settings, and their passages together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from rag.errors import ProviderUnavailable
from rag.language import N_
from rag.retrieval.evidence import ScoredHit, with_order_scores, worth_citing
from rag.retrieval.trace import RetrievalTrace
from rag.types import Collection, SearchResult, StepDetails

#: A notice about a collection, if several are searched.
IN_COLLECTION = N_("In the collection “{name}”: {notice}")


@dataclass(frozen=True)
class Found:
    """The passages from a group of collections, best first; an answer may cite `cited`."""

    trace: RetrievalTrace
    hits: tuple[SearchResult, ...] = ()
    scored: list[ScoredHit] = field(default_factory=list)
    cited: list[ScoredHit] = field(default_factory=list)
    #: Further passages for the asker's place.
    of_place: list[ScoredHit] = field(default_factory=list)
    is_searched: bool = True


@dataclass(frozen=True)
class Together:
    """The passages from all groups, best first; see `Found`."""

    trace: RetrievalTrace
    hits: tuple[SearchResult, ...]
    scored: list[ScoredHit]
    cited: list[ScoredHit]
    of_place: list[ScoredHit]
    #: Documents for the asker's place, and the passages cited without their precedence.
    own_documents: frozenset[UUID] = frozenset()
    as_found: list[ScoredHit] = field(default_factory=list)


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


def names_of(groups: Sequence[Sequence[Collection]]) -> list[str]:
    """Return the collection names in each group."""
    return [", ".join(collection.name for collection in group) for group in groups]


def together(searched: Sequence[Found], names: Sequence[str]) -> Together:
    """Merge the passages from several groups into the first group's trace.

    Scores from different embedders and profiles are not comparable; the probability of an answer is.
    """
    first, trace = searched[0], searched[0].trace
    if len(searched) == 1:
        return Together(trace, first.hits, first.scored, first.cited, first.of_place)
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
    return Together(
        trace,
        hits=tuple(hit for found in searched for hit in found.hits),
        scored=by_evidence(item for found in searched for item in found.scored),
        cited=cited[: trace.top_k],
        of_place=[item for found in searched for item in found.of_place],
    )
