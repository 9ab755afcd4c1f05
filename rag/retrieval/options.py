"""What one call wants otherwise than its profile: every step of the retrieval can be switched."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

from rag.profile import Profile
from rag.types import SearchFilters


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings of a single call. None leaves a step as the profile has it; the names are the profile's."""

    #: Conditions of the caller, beside what the question itself says.
    filters: SearchFilters | None = None
    filters_after_search: bool | None = None

    top_k: int | None = None
    candidate_factor: int | None = None
    search_type: Literal["vector", "hybrid"] | None = None
    similarity_threshold: float | None = None
    fusion: Literal["weighted", "rrf"] | None = None
    one_result_per_document: bool | None = None
    maximum_per_document: int | None = None
    deduplication_characters: int | None = None
    refine_order: bool | None = None
    context_tokens: int | None = None

    translate_queries: bool | None = None
    correct_spelling: bool | None = None
    filter_by_category: bool | None = None
    filter_by_year: bool | None = None
    filter_by_date: bool | None = None
    split_questions: bool | None = None
    expand_question: bool | None = None
    alternative_questions: int | None = None
    decompose_question: bool | None = None

    reranking: bool | None = None
    rerank_top_n: int | None = None
    recency_boost: bool | None = None
    pinned_first: bool | None = None
    important_only: bool | None = None
    multi_signal: bool | None = None
    collapse_near_repeats: bool | None = None
    only_evidence: bool | None = None
    stitch_neighbours: bool | None = None
    follow_ups: int | None = None

    def applied_to(self, profile: Profile) -> Profile:
        """The profile for this call."""
        wanted = {
            item.name: value
            for item in fields(self)
            if item.name != "filters" and (value := getattr(self, item.name)) is not None
        }
        if self.similarity_threshold is not None:
            wanted["threshold_mode"] = "absolute"
        return replace(profile, **wanted)
