"""Record the retrieval for a question: the state, and each step's time, cost and description."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from rag.errors import RagError, SettingsError
from rag.monitoring.tracing import ms_since, span
from rag.profiles.profile import Profile
from rag.retrieval.evidence import ScoredHit
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.ranking import Facts
from rag.storage.database import Database
from rag.types import (
    EvidenceDetails,
    FloatMatrix,
    Question,
    RAGDetails,
    RawResultDetails,
    RerankedResultDetails,
    SearchFilters,
    SearchResult,
    StepDetails,
    VersionOnDay,
)

if TYPE_CHECKING:
    from rag.providers import ChatModel, Embedder, Reranker

logger = logging.getLogger(__name__)

OnStep = Callable[[str, str], None]


class SearchModels(Protocol):
    """The models a search needs, as `Providers` returns them."""

    def embedder_for(self, embedding_model_id: str) -> Embedder: ...

    def meaning_for(self, embedding_model_id: str) -> Embedder | None: ...

    def translation_model_for(self, profile: Profile) -> ChatModel | None: ...

    def rewriting_model_for(self, profile: Profile) -> ChatModel | None: ...

    def reranker_for(self, profile: Profile) -> Reranker | None: ...


@dataclass
class RetrievalTrace:
    """A question's state during retrieval, changed by each step."""

    question: Question
    profile: Profile
    top_k: int
    text: str
    language: str
    #: Filters given by the caller.
    filters: SearchFilters
    on_step: OnStep
    models: SearchModels
    database: Database
    today: date
    #: How many passages to find, and whether only the caller's or profile's threshold is used.
    candidates: int
    is_strict: bool
    #: Similarities which are enough as evidence; the second applies if no passage reaches the first.
    thresholds: tuple[float, ...] = ()
    #: Facts about the found documents; empty before a step reads them.
    facts: dict[UUID, Facts] = field(default_factory=dict)
    details: RAGDetails = field(default_factory=RAGDetails)
    notices: list[str] = field(default_factory=list)
    #: The searched collections, with equal search settings.
    collection_ids: tuple[UUID, ...] = ()
    #: The question's vectors by model and texts, `None` if the model did not answer; shared with other collections.
    vectors: dict[tuple[str, ...], FloatMatrix | None] = field(default_factory=dict)
    #: Published versions which are still valid on a future day, because no later version begins by then.
    staying: tuple[VersionOnDay, ...] = ()
    #: Earlier versions searched because they were valid on the day in the question.
    versions: tuple[VersionOnDay, ...] = ()
    #: The companies and countries in the question.
    names: tuple[str, ...] = ()
    #: Documents for the asker's place.
    of_place: frozenset[UUID] = frozenset()
    #: The documents' folders, if their places were read.
    folders: Mapping[UUID, str] = field(default_factory=dict)

    @property
    def tenant_id(self) -> str:
        return self.question.identity.tenant_id

    @contextmanager
    def step(self, name: str) -> Iterator[StepDetails]:
        """Time a step inside the `with` block, and yield the step's details.

        If the block sets `detail`, the details are added to the trace.
        """
        done = StepDetails(name=name)
        started = time.perf_counter()
        try:
            with span(name):
                yield done
        finally:
            done.ms = ms_since(started)
            if done.detail:
                self.details.steps = [*(self.details.steps or []), done]

    def skip(self, notice: str, reason: RagError) -> None:
        """Record a step which is skipped because a provider failed.

        For a settings error, the notice contains the error's message: the reader can fix the setting.
        """
        is_settings = isinstance(reason, SettingsError)
        logger.log(logging.INFO if is_settings else logging.WARNING, "%s (%s)", notice, reason)
        self.notices.append(f"{notice} {reason}" if is_settings else notice)


PREVIEW_CHARACTERS = 200


def raw_results_from(results: Sequence[SearchResult]) -> list[RawResultDetails]:
    """Describe each hit by cosine similarity (0 if unknown) and the text's beginning."""
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
    """Describe the reranker's order: each hit with the rank before and after, both from 1."""
    return [
        RerankedResultDetails(
            chunk_id=str(r.chunk_id), original_rank=r.original_rank, new_rank=rank, score=r.rerank_score or 0.0
        )
        for rank, r in enumerate(results, 1)
    ]


def describe_search(profile: Profile, hits: SearchHits, *, question: str, limits: str, has_vectors: bool) -> str:
    """Describe a search: result count, method, limits and corrections."""
    if not has_vectors:
        how = "keywords"
    elif profile.search.search_type == "vector":
        how = "meaning"
    else:
        how = f"meaning and keywords, {'ranks' if profile.search.fusion == 'rrf' else 'weighted scores'} added"
        how += ", then refined" if profile.search.refine_order else ""
    parts = [f"{len(hits.results)} passages by {how}"]
    if limits:
        parts.append(f"within {limits}")
    if hits.text != question:
        parts.append(f"spelling corrected: {' '.join(hits.text.split())}")
    if hits.repeats:
        parts.append(f"{hits.repeats} repeats left out")
    return "; ".join(parts)


def describe_dropped(*, near_repeats: int, over_limit: int, most: int) -> str:
    """Describe the results dropped before scoring; "" if none was dropped."""
    parts = []
    if near_repeats:
        parts.append(f"{near_repeats} near repeats left out")
    if over_limit:
        parts.append(f"{over_limit} left out, at most {most} of a document")
    return "; ".join(parts)


def describe_evidence(
    scored: Sequence[ScoredHit], citable: Sequence[ScoredHit], evidence: EvidenceDetails, *, is_required: bool
) -> str:
    """Describe how many hits may be cited, and the outcome."""
    if not scored:
        return ""
    if not is_required:
        return f"not asked for: all {len(scored)} passages may be cited"
    counts = f"{len(citable)} of {len(scored)} passages speak to the question"
    return f"{counts}; {evidence.outcome}, {evidence.probability:.2f} that the best answers it"
