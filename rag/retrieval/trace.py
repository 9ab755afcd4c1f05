"""Trace a question through retrieval: steps, costs, timing, and descriptions for each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from rag.errors import DatabaseUnavailable, RagError, SettingsError
from rag.money.price_list import charge
from rag.monitoring.tracing import ms_since, span
from rag.profiles.profile import Profile
from rag.providers.retry import Notes, lost_calls
from rag.retrieval.evidence import ScoredHit
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.processor import waiting
from rag.retrieval.ranking import Facts
from rag.types import (
    Charge,
    CostDetails,
    EvidenceDetails,
    FloatMatrix,
    Operation,
    Question,
    RAGDetails,
    RawResultDetails,
    RerankedResultDetails,
    SearchFilters,
    SearchResult,
    StepDetails,
    Usage,
    VersionOnDay,
)

logger = logging.getLogger(__name__)

OnStep = Callable[[str, str], None]
TenantPrices = Callable[[str], Mapping[str, Any]]


class CallRecorder(Protocol):
    """Records the cost of a question: the calls about to be made, and the charges for them."""

    def send(self, operation: Operation, expected: Usage) -> None:
        """Record a request before it is made; the next `record` or `drop` belongs to this request."""

    def drop(self) -> None:
        """Forget a failed, unbilled request."""

    def record(self, paid: Charge) -> None:
        """Record a charge immediately: a later step may fail."""


@dataclass
class RetrievalTrace:
    """The state of a question's retrieval."""

    question: Question
    profile: Profile
    top_k: int
    text: str
    language: str
    #: Conditions of the caller.
    filters: SearchFilters
    on_step: OnStep
    tenant_prices: TenantPrices | None = None
    #: Similarities sufficient as evidence: the second applies if no passage reaches the first.
    thresholds: tuple[float, ...] = ()
    #: Facts about the found documents, after a step has read them.
    facts: dict[UUID, Facts] = field(default_factory=dict)
    details: RAGDetails = field(default_factory=RAGDetails)
    charges: list[Charge] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    recorder: CallRecorder | None = None
    #: The searched collections, with equal search settings.
    collection_ids: tuple[UUID, ...] = ()
    #: The question's vectors by model and texts, `None` if the model did not answer; shared with other collections.
    vectors: dict[tuple[str, ...], FloatMatrix | None] = field(default_factory=dict)
    #: Published versions that are still valid on a coming day, because no later version begins by then.
    staying: tuple[VersionOnDay, ...] = ()
    #: Earlier versions searched because they were valid on the day in question.
    versions: tuple[VersionOnDay, ...] = ()
    #: The companies and countries in the question.
    names: tuple[str, ...] = ()
    #: Documents found for the asker's place.
    of_place: frozenset[UUID] = frozenset()
    #: The documents' folders, if their places were read.
    folders: Mapping[UUID, str] = field(default_factory=dict)
    _prices: Mapping[str, Any] | None = None

    @property
    def tenant_id(self) -> str:
        return self.question.identity.tenant_id

    @contextmanager
    def step(self, name: str) -> Iterator[StepDetails]:
        """Time a step and keep it with its `detail`; a step with an empty `detail` is dropped."""
        done = StepDetails(name=name)
        started = time.perf_counter()
        try:
            with span(name):
                yield done
        finally:
            done.ms = ms_since(started)
            if done.detail:
                self.details.steps = [*(self.details.steps or []), done]

    def pay(self, operation: Operation, usage: Usage | None) -> None:
        """Price a call; the tenant's prices precede list prices."""
        if usage is not None:
            paid = charge(operation, usage, self._own_prices())
            self.charges.append(paid)
            if self.recorder is not None:
                self.recorder.record(paid)

    @contextmanager
    def paying(self, operation: Operation) -> Iterator[None]:
        """Record calls before they are made, and pay for lost calls.

        An unusable answer costs the same.
        """
        recorder = self.recorder
        notes = Notes(partial(recorder.send, operation), recorder.drop) if recorder is not None else None
        with waiting(), lost_calls(lambda usage: self.pay(operation, usage), notes=notes):
            yield

    def skip(self, notice: str, reason: RagError) -> None:
        """Continue without a provider. A settings error keeps its message: the reader can fix it."""
        is_settings = isinstance(reason, SettingsError)
        logger.log(logging.INFO if is_settings else logging.WARNING, "%s (%s)", notice, reason)
        self.notices.append(f"{notice} {reason}" if is_settings else notice)

    def _own_prices(self) -> Mapping[str, Any] | None:
        """Read the tenant's prices once, when there is a call to pay."""
        if self._prices is None and self.tenant_prices is not None:
            try:
                self._prices = self.tenant_prices(self.tenant_id)
            except DatabaseUnavailable:
                return None
        return self._prices


PREVIEW_CHARACTERS = 200


def raw_results_from(results: Sequence[SearchResult]) -> list[RawResultDetails]:
    """Return each found passage with its cosine similarity (0 if unknown) and a preview."""
    return [
        RawResultDetails(
            chunk_id=str(r.chunk_id),
            document_id=str(r.document_id),
            similarity=round(r.similarity or 0.0, 6),
            preview=" ".join(r.content.split())[:PREVIEW_CHARACTERS],
        )
        for r in results
    ]


def reranked_from(results: Sequence[SearchResult]) -> list[RerankedResultDetails]:
    """Return the passages in the reranker's order with their rank before; ranks count from 1."""
    return [
        RerankedResultDetails(
            chunk_id=str(r.chunk_id), original_rank=r.original_rank, new_rank=rank, score=r.rerank_score or 0.0
        )
        for rank, r in enumerate(results, 1)
    ]


def costs_from(charges: Sequence[Charge]) -> CostDetails:
    """Sum the charges by operation in US dollars; a call without a known price adds 0."""

    def total(*operations: Operation) -> float:
        return float(sum((c.cost for c in charges if c.operation in operations and c.cost is not None), Decimal(0)))

    return CostDetails(
        embedding=total("embedding"),
        reranking=total("reranking"),
        translation=total("translation"),
        rewriting=total("chat") if any(c.operation == "chat" for c in charges) else None,
        total=total("embedding", "reranking", "translation", "chat"),
    )


def search_said(profile: Profile, found: SearchHits, *, asked: str, limits: str, has_vectors: bool) -> str:
    """Describe the search, its limits and its results."""
    if not has_vectors:
        how = "keywords"
    elif profile.search.search_type == "vector":
        how = "meaning"
    else:
        how = f"meaning and keywords, {'ranks' if profile.search.fusion == 'rrf' else 'weighted scores'} added"
        how += ", then refined" if profile.search.refine_order else ""
    said = [f"{len(found.results)} passages by {how}"]
    if limits:
        said.append(f"within {limits}")
    if found.text != asked:
        said.append(f"spelling corrected: {' '.join(found.text.split())}")
    if found.repeats:
        said.append(f"{found.repeats} repeats left out")
    return "; ".join(said)


def left_out_said(*, near_repeats: int, others: int, most: int) -> str:
    """Describe the results left out before scoring; "" if there are none."""
    said = []
    if near_repeats:
        said.append(f"{near_repeats} near repeats left out")
    if others:
        said.append(f"{others} left out, at most {most} of a document")
    return "; ".join(said)


def evidence_said(
    scored: Sequence[ScoredHit], speaking: Sequence[ScoredHit], evidence: EvidenceDetails, *, is_asked_for: bool
) -> str:
    """Describe how many passages may be cited, and why no others."""
    if not scored:
        return ""
    if not is_asked_for:
        return f"not asked for: all {len(scored)} passages may be cited"
    said = f"{len(speaking)} of {len(scored)} passages speak to the question"
    return f"{said}; {evidence.outcome}, {evidence.probability:.2f} that the best answers it"
