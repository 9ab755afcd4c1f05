"""What analytics reads of single questions: rows of the log, one question in full, the questions without an answer.

Questions are personal. None of these values names a person, and none shows what a deleted document held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from rag.records.spreadsheet import to_csv

EXPORT_COLUMNS = (
    "asked_at_utc",
    "user_group",
    "language",
    "question",
    "answer",
    "outcome",
    "documents",
    "model",
    "first_token_ms",
    "total_ms",
    "cost_usd",
    "has_unpriced_calls",
    "helpful",
    "comment",
)


@dataclass(frozen=True, kw_only=True)
class LoggedQuestion:
    """A row of the table of questions. `outcome` is None while it is being answered."""

    id: UUID
    created_at: datetime
    user_group: str
    language: str
    question: str
    answer: str
    outcome: str | None
    model: str
    total_ms: int | None
    first_token_ms: int | None
    #: Known costs in US dollars; `is_priced` is False when a call without a known price comes on top.
    cost: Decimal
    is_priced: bool
    #: 1 helpful, 0 not, None without feedback.
    rating: int | None
    comment: str
    #: Titles of the documents the answer was built on, as far as they are still there.
    documents: list[str]


@dataclass(frozen=True, kw_only=True)
class LoggedQuestionDetails(LoggedQuestion):
    error: str
    rag_details: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class FoundPassage:
    """A passage found for a question. Places count from 1; those after reranking are None where it was left out."""

    position: int
    chunk_id: str | None
    #: None when the document has been deleted since.
    title: str | None
    first_page: int | None
    last_page: int | None
    section: str
    similarity: float | None
    preview: str
    original_rank: int | None
    new_rank: int | None
    rerank_score: float | None


@dataclass(frozen=True, kw_only=True)
class QuestionCharge:
    """A paid call made for a question; its cost is None when no price is known."""

    operation: str
    provider: str
    model: str
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    search_units: int
    cost: Decimal | None
    #: The provider told no count.
    is_estimated: bool


@dataclass(frozen=True, kw_only=True)
class ChatLogEntry:
    """One question with everything logged of it."""

    question: LoggedQuestionDetails
    passages: tuple[FoundPassage, ...]
    charges: tuple[QuestionCharge, ...]

    @property
    def rag_details(self) -> dict[str, Any]:
        """The logged JSON, without the previews of passages whose documents have been deleted."""
        kept = {p.chunk_id for p in self.passages if p.title is not None}
        details = self.question.rag_details
        search = details.get("search")
        if not search:
            return details
        found = [r if r.get("chunkId") in kept else {**r, "preview": ""} for r in search.get("rawResults", [])]
        return {**details, "search": {**search, "rawResults": found}}


@dataclass(frozen=True, kw_only=True)
class UnansweredQuestion:
    """A question the documents could not answer, with how often it was asked in the same words."""

    question: str
    latest_id: UUID
    times: int
    last_asked_at: datetime
    user_groups: list[str]


def questions_to_csv(questions: Iterable[LoggedQuestion]) -> str:
    """The questions as CSV with a header line. Cells that a spreadsheet would run get a leading apostrophe."""
    return to_csv(EXPORT_COLUMNS, map(_cells, questions))


def _cells(question: LoggedQuestion) -> tuple[object, ...]:
    return (
        question.created_at.strftime("%Y-%m-%d %H:%M:%S"),
        question.user_group,
        question.language,
        question.question,
        question.answer,
        question.outcome or "in progress",
        "; ".join(question.documents),
        question.model,
        question.first_token_ms,
        question.total_ms,
        # Nothing known is an empty cell, never a zero.
        f"{question.cost:f}" if question.is_priced or question.cost else None,
        "no" if question.is_priced else "yes",
        {1: "yes", 0: "no", None: ""}[question.rating],
        question.comment,
    )
