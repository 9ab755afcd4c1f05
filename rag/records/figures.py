"""The figures of the analytics page and the conditions they are read under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from rag.errors import InvalidInput

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
        """The `days` days that end with `until`."""
        return cls(until - timedelta(days=days - 1), until)

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def previous(self) -> Period:
        """As many days, just before."""
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
        """None when calls were made and none of them has a known price."""
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
