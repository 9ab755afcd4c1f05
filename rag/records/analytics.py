"""Metrics for the analytics page: each is computed in SQL, within one tenant, by UTC days.

Costs come from the ledger, counts and times from the log of questions. A call without a known price counts as unpriced,
never as zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal, TypeVar
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.access.sessions import require_recent
from rag.errors import InvalidInput, NotFound
from rag.records.chat_logs import (
    ChatLogEntry,
    FoundPassage,
    LoggedQuestion,
    LoggedQuestionDetails,
    QuestionCharge,
    UnansweredQuestion,
    questions_to_csv,
)
from rag.storage.database import Database
from rag.types import Identity, Who

#: The stages of a question in their order.
STAGES = ("translation", "embedding", "search", "reranking", "model")


@dataclass(frozen=True)
class Period:
    """Whole UTC days, both ends included. Raises `InvalidInput` when it ends before it begins."""

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise InvalidInput("The period ends before it begins. Choose a later end.")

    @classmethod
    def of_days(cls, days: int, *, until: date) -> Period:
        """Make the period of `days` days that ends with `until`."""
        return cls(until - timedelta(days=days - 1), until)

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def previous(self) -> Period:
        """Return the period of the same length just before."""
        return Period.of_days(self.days, until=self.first - timedelta(days=1))

    def parameters(self) -> Mapping[str, Any]:
        return {
            "start": datetime.combine(self.first, time(), UTC),
            "end": datetime.combine(self.last + timedelta(days=1), time(), UTC),
        }


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Conditions of every figure. None means no condition."""

    document_id: UUID | None = None
    user_group: str | None = None

    def parameters(self) -> Mapping[str, Any]:
        return {"document_id": self.document_id, "user_group": self.user_group}


@dataclass(frozen=True, kw_only=True)
class QuestionFilters:
    """Further conditions of the list of questions. `text` is looked for in question and answer, in any case."""

    text: str = ""
    outcome: str | None = None
    #: Questions that people and programs had answered, or searches of programs that were paid for.
    kind: Literal["question", "search"] = "question"

    def parameters(self) -> Mapping[str, Any]:
        return {"text": self.text.strip() or None, "outcome": self.outcome, "kind": self.kind}


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Figures of one period. Rates are 0 … 1, None when there is nothing to divide by."""

    questions: int
    #: Questions that came to an end; small talk and questions asked back are not among them.
    closed: int
    answered: int
    no_context: int
    median_ms: float | None
    p95_ms: float | None
    rated: int
    helpful: int
    #: US dollars of the calls with a known price; `unpriced_calls` of `calls` come on top.
    cost: Decimal
    calls: int
    unpriced_calls: int

    @property
    def answered_rate(self) -> float | None:
        return self.answered / self.closed if self.closed else None

    @property
    def helpful_rate(self) -> float | None:
        return self.helpful / self.rated if self.rated else None

    @property
    def known_cost(self) -> Decimal | None:
        """Return the cost; None when calls were made and none has a known price."""
        return None if self.calls and self.calls == self.unpriced_calls else self.cost


@dataclass(frozen=True, kw_only=True)
class Day:
    """Figures of one day."""

    day: date
    questions: int
    closed: int
    answered: int
    median_ms: float | None
    p95_ms: float | None
    rated: int
    helpful: int
    cost: Decimal


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A period, the one before it, and its days."""

    current: Totals
    previous: Totals
    by_day: tuple[Day, ...]


@dataclass(frozen=True, kw_only=True)
class DailyCost:
    """What one operation, or one model, cost on a day; `cost` is None when no call of it had a known price."""

    day: date
    name: str
    calls: int
    cost: Decimal | None
    unpriced_calls: int


@dataclass(frozen=True, kw_only=True)
class ModelCost:
    """What a model was used for in a period, and for how much; None when no call of it had a known price."""

    provider: str
    model: str
    operation: str
    calls: int
    cost: Decimal | None
    unpriced_calls: int
    input_tokens: int
    output_tokens: int
    search_units: int
    pages: int


@dataclass(frozen=True, kw_only=True)
class StageTimes:
    """How long one stage took on a day, over the questions in which it ran."""

    day: date
    stage: str
    questions: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, kw_only=True)
class DocumentUse:
    """A document and the questions whose answers were built on it."""

    document_id: UUID
    title: str
    questions: int
    last_asked_at: datetime
    rated: int
    helpful: int


@dataclass(frozen=True, kw_only=True)
class DocumentName:
    id: UUID
    title: str


Row = TypeVar("Row")

#: Most rows of one export; more would not open in common spreadsheet programs anyway.
EXPORT_LIMIT = 100_000


@dataclass(frozen=True, kw_only=True)
class _Group:
    user_group: str


class Analytics:
    """Computes metrics for managers. Each method runs one or two statements; nothing is cached."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def summary(self, who: Who, period: Period, filters: Filters) -> Summary:
        """Return totals of the period and the one before, and metrics by day for the sparklines."""
        days = self._all(who, "analytics_by_day", Day, period, filters, first=period.first, last=period.last)
        return Summary(
            current=self._totals(who, period, filters),
            previous=self._totals(who, period.previous, filters),
            by_day=tuple(days),
        )

    def cost_by_day_and_operation(self, who: Who, period: Period, filters: Filters) -> list[DailyCost]:
        return self._all(who, "analytics_cost_by_day_and_operation", DailyCost, period, filters)

    def cost_by_day_and_model(self, who: Who, period: Period, filters: Filters) -> list[DailyCost]:
        return self._all(who, "analytics_cost_by_day_and_model", DailyCost, period, filters)

    def cost_by_model(self, who: Who, period: Period, filters: Filters) -> list[ModelCost]:
        """Return one row per provider, model and operation, the most expensive first, unpriced last."""
        return self._all(who, "analytics_cost_by_model", ModelCost, period, filters)

    def stage_percentiles(self, who: Who, period: Period, filters: Filters) -> list[StageTimes]:
        """Return median and 95th percentile of each of `STAGES` by day, without days on which a stage did not run."""
        return self._all(who, "analytics_stage_percentiles", StageTimes, period, filters)

    def top_documents(self, who: Who, period: Period, filters: Filters, *, limit: int = 10) -> list[DocumentUse]:
        return self._all(who, "analytics_top_documents", DocumentUse, period, filters, limit=limit)

    def unanswered(self, who: Who, period: Period, filters: Filters, *, limit: int = 200) -> list[UnansweredQuestion]:
        """Return questions with the outcome no_context, most asked first."""
        return self._all(who, "analytics_unanswered", UnansweredQuestion, period, filters, limit=limit)

    def count_questions(self, who: Who, period: Period, filters: Filters, wanted: QuestionFilters) -> int:
        found = self._database.fetch_value(
            who,
            "analytics_count_questions",
            **period.parameters(),
            **filters.parameters(),
            **wanted.parameters(),
        )
        return int(found)

    def questions(
        self,
        who: Who,
        period: Period,
        filters: Filters,
        wanted: QuestionFilters,
        *,
        slowest_first: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> list[LoggedQuestion]:
        """Return a page of questions, newest or slowest first."""
        return self._all(
            who,
            "analytics_questions",
            LoggedQuestion,
            period,
            filters,
            **wanted.parameters(),
            slowest_first=slowest_first,
            limit=limit,
            offset=offset,
        )

    def question(self, who: Who, chat_log_id: UUID) -> ChatLogEntry:
        """Return one question with everything in its log. Raises `NotFound`.

        Where another person asked it, that it was read is in the audit log.
        """
        read = self._database
        found = read.fetch_one(who, "analytics_question", LoggedQuestionDetails, chat_log_id=chat_log_id)
        if found is None:
            raise NotFound
        if isinstance(who, Identity):
            read.execute(who, "note_reading", chat_log_id=chat_log_id)
        passages = read.fetch_all(who, "analytics_question_passages", FoundPassage, chat_log_id=chat_log_id)
        charges = read.fetch_all(who, "analytics_question_charges", QuestionCharge, chat_log_id=chat_log_id)
        return ChatLogEntry(question=found, passages=tuple(passages), charges=tuple(charges))

    def export_csv(self, who: Who, period: Period, filters: Filters, wanted: QuestionFilters) -> bytes:
        """Export the filtered questions as CSV, at most `EXPORT_LIMIT`, newest first. The export is in the audit log.

        UTF-8 with a byte order mark, without which Excel misreads Korean. Raises `SignInAgain`.
        """
        require_recent(self._database, who)
        rows = self.questions(who, period, filters, wanted, limit=EXPORT_LIMIT)
        if isinstance(who, Identity):
            taken = f"questions of {period.first} to {period.last}"
            self._database.execute(
                who, "add_audit_entry", action="export made", target=taken, changes=Jsonb({"rows": len(rows)})
            )
        return questions_to_csv(rows).encode("utf-8-sig")

    def user_groups(self, who: Who, period: Period) -> list[str]:
        rows = self._database.fetch_all(who, "analytics_user_groups", _Group, **period.parameters())
        return [row.user_group for row in rows]

    def _totals(self, who: Who, period: Period, filters: Filters) -> Totals:
        (totals,) = self._all(who, "analytics_summary", Totals, period, filters)
        return totals

    def _all(
        self, who: Who, name: str, row: type[Row], period: Period, filters: Filters, **parameters: Any
    ) -> list[Row]:
        return self._database.fetch_all(who, name, row, **period.parameters(), **filters.parameters(), **parameters)
