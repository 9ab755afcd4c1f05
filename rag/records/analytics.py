"""Metrics for the analytics page, computed in SQL within a tenant, by day in the tenant's time zone.

Costs come from the ledger, counts and times from the question log. A call without a known price counts as unpriced,
never as zero. The view `question_outcomes` defines which questions count as answered, and which questions count for the
rates.

Sums for finished days are stored (`AddedDays`). Percentiles are computed from the questions. For `EXACT_BELOW`
questions or more, they are computed from daily sums, are accurate within 1 %, and are marked with `is_about`.
"""

from __future__ import annotations

import logging
import threading
import time as clock
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Literal, TypeVar
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin, require_recent
from rag.errors import InvalidInput, NotFound, RagError
from rag.records.chat_logs import (
    ChatLogEntry,
    FoundPassage,
    LoggedQuestion,
    LoggedQuestionDetails,
    QuestionCharge,
    UnansweredQuestion,
    prompt_from_json,
    questions_to_csv,
)
from rag.records.time_zones import TimeZones, midnight
from rag.storage.database import Database, queries
from rag.types import Identity, Role, Who

log = logging.getLogger("rag.analytics")

#: A question's stages in order.
STAGES = ("translation", "embedding", "search", "reranking", "model")
#: A reader's waiting times: until the first words, and until the whole answer.
FIRST, WHOLE = "first", "whole"
#: Opening the page waits about this long for missing days.
ADDING_SECONDS = 0.5
LONGEST_SECONDS = 600.0
DAYS_AT_ONCE = 7
#: From this many questions on, percentiles are read from daily sums.
EXACT_BELOW = 1_000_000
KINDS_OF_SUMS = ("question", "time", "document", "cost")
WEEKS_AT_ONCE = 4

Unit = Literal["day", "week", "month"]
CostsBy = Literal["operation", "model", "collection", "group", "purpose"]
PartsBy = Literal["language", "group", "collection"]


@dataclass(frozen=True)
class Period:
    """A range from `first` to `last`, both included. Raises `InvalidInput` if `last` is before `first`."""

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise InvalidInput("The period ends before it begins. Choose a later end.")

    @classmethod
    def of_days(cls, days: int, *, until: date) -> Period:
        """Build the period of `days` days which ends with the day `until`."""
        return cls(until - timedelta(days=days - 1), until)

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def previous(self) -> Period:
        """Return the period with the same length that ends the day before."""
        return Period.of_days(self.days, until=self.first - timedelta(days=1))

    @property
    def unit(self) -> Unit:
        """Return the time unit for charts: days up to 92 days, weeks up to two years, else months."""
        return "day" if self.days <= 92 else "week" if self.days <= 730 else "month"

    def parameters(self, zone: tzinfo) -> Mapping[str, Any]:
        """Return parameters for SQL: the first and last day, and the period's start and end as times in `zone`."""
        return {
            "first": self.first,
            "last": self.last,
            "start": midnight(self.first, zone),
            "end": midnight(self.last + timedelta(days=1), zone),
        }


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Filters for all metrics. A filter which is `None` does not apply."""

    document_id: UUID | None = None
    user_group: str | None = None
    collection_id: UUID | None = None
    language: str | None = None

    def parameters(self) -> Mapping[str, Any]:
        return {
            "document_id": self.document_id,
            "user_group": self.user_group,
            "collection_id": self.collection_id,
            "language": self.language,
        }


@dataclass(frozen=True, kw_only=True)
class QuestionFilters:
    """Further filters for the list of questions. `text` is searched in questions and answers, ignoring case."""

    text: str = ""
    outcome: str | None = None
    #: Questions asked by people and programs, or paid searches by programs.
    kind: Literal["question", "search"] = "question"
    #: 1: someone rated it helpful, 0: not helpful; `None`: rated or not.
    rating: int | None = None

    def parameters(self) -> Mapping[str, Any]:
        return {
            "text": self.text.strip() or None, "outcome": self.outcome, "kind": self.kind, "rating": self.rating,
        }  # fmt: skip


def share_of(part: int, total: int) -> float | None:
    """Return `part` divided by `total`; `None` if `total` is 0."""
    return part / total if total else None


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """The numbers of questions by outcome. Rates are from 0 to 1, or `None` if no question counts for the rate."""

    questions: int
    #: Finished questions, without small talk and questions asked back.
    ended: int
    answered: int
    perhaps: int
    no_context: int
    small_talk: int
    asked_back: int
    refused: int
    stopped: int
    failed: int
    rated: int
    helpful: int

    @property
    def answered_rate(self) -> float | None:
        return share_of(self.answered, self.ended)

    @property
    def helpful_rate(self) -> float | None:
        return share_of(self.helpful, self.rated)


@dataclass(frozen=True, kw_only=True)
class Day(Outcomes):
    """Metrics for a day, or for the week or month beginning on `day`."""

    day: date
    cost: Decimal


@dataclass(frozen=True, kw_only=True)
class Totals(Outcomes):
    """Metrics for a whole period."""

    #: Number of people who asked; programs are not counted.
    people: int
    #: US dollars for calls with a known price; `unpriced_calls` among `calls` come on top.
    cost: Decimal
    calls: int
    unpriced_calls: int
    #: The cost of answering questions; the rest is for documents, searches and evaluations.
    questions_cost: Decimal

    @property
    def known_cost(self) -> Decimal | None:
        """Return the cost of the calls with a known price.

        Returns `None` if there were calls, but all without a known price.
        """
        return None if self.calls and self.calls == self.unpriced_calls else self.cost

    @property
    def cost_per_answer(self) -> Decimal | None:
        """Divide the cost of all questions by the number of answers; `None` without answers."""
        answers = self.answered + self.perhaps
        return self.questions_cost / answers if answers and self.known_cost is not None else None


@dataclass(frozen=True, kw_only=True)
class StageTimes:
    """The median and 95th percentile of a stage's duration in milliseconds.

    Only questions which ran the stage count. `day` is `None` for a whole period.
    """

    day: date | None
    stage: str
    questions: int
    p50_ms: float
    p95_ms: float
    #: True: from daily sums, within 1 %; False: exact.
    is_about: bool


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Metrics for a period, for the previous period, and by day."""

    current: Totals
    previous: Totals
    by_day: tuple[Day, ...]
    #: Times to the first words and to the whole answer, by `FIRST` and `WHOLE`; a stage that never ran is missing.
    times: Mapping[str, StageTimes]
    previous_times: Mapping[str, StageTimes]
    #: For the lines beside the figures, which show no values: from daily sums, ten times faster than from the
    #: questions.
    times_by_day: tuple[StageTimes, ...]


@dataclass(frozen=True, kw_only=True)
class DailyCost:
    """The cost per day for an operation, model or other group; `None` if no call had a known price."""

    day: date
    name: str
    calls: int
    cost: Decimal | None
    unpriced_calls: int


@dataclass(frozen=True, kw_only=True)
class ModelCost:
    """A model's use and cost in a period; the cost is `None` if no call had a known price."""

    provider: str
    model: str
    operation: str
    calls: int
    cost: Decimal | None
    unpriced_calls: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    search_units: int
    pages: int


@dataclass(frozen=True, kw_only=True)
class TimeBucket:
    """A bar in a histogram: a duration, and how many questions took about this long."""

    ms: float
    questions: int


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """Outcomes of the questions in a language, from a user group or about a collection."""

    name: str
    questions: int
    answered: int
    perhaps: int
    no_context: int
    #: All questions except small talk, questions asked back and unfinished ones.
    ended: int
    rated: int
    helpful: int

    @property
    def answered_rate(self) -> float | None:
        return share_of(self.answered, self.ended)


@dataclass(frozen=True, kw_only=True)
class DocumentUse:
    """A document, and how many questions were answered from it."""

    document_id: UUID
    title: str
    questions: int
    last_asked_at: datetime
    rated: int
    helpful: int


@dataclass(frozen=True, kw_only=True)
class UnusedDocument:
    """A document which no answer has used."""

    document_id: UUID
    title: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class LoggedSearch:
    """Search scores and filters for a question."""

    is_answered: bool
    language: str
    user_group: str
    collection: str
    #: The best found passage's values; `None` if only words were compared, or without reranking.
    similarity: float | None
    score: float | None
    #: The former place of the passage which reranking put first, from 1.
    moved_from: int | None
    is_reranked: bool
    is_translated: bool


@dataclass(frozen=True, kw_only=True)
class FoundDocument:
    """A document, and the number of questions for which the search found the document."""

    document_id: UUID
    questions: int


@dataclass(frozen=True, kw_only=True)
class PassageUse:
    """A chunk, and the number of answers citing the chunk."""

    document_id: UUID
    title: str
    first_page: int
    last_page: int
    section: str
    text: str
    questions: int
    #: Answers with claims missing from the passage.
    not_held: int


@dataclass(frozen=True, kw_only=True)
class LoggedError:
    """An error message, how many questions ended with the error instead of an answer, and when it last occurred."""

    error: str
    outcome: str
    times: int
    last_at: datetime
    latest_id: UUID


@dataclass(frozen=True, kw_only=True)
class LoggedNotice:
    """A notice shown under answers, for example about a missing feature, and how often it was shown."""

    notice: str
    times: int
    last_at: datetime
    latest_id: UUID


@dataclass(frozen=True, kw_only=True)
class RepeatedCalls:
    """Model calls which never reported an end, by model and operation."""

    provider: str
    model: str
    operation: str
    calls: int


Row = TypeVar("Row")
#: Distributions of scores read single questions: the latest are sufficient.
LATEST = 2_000

#: The most rows in an export; common spreadsheet programs could not open more.
EXPORT_LIMIT = 100_000


@dataclass(frozen=True, kw_only=True)
class _Name:
    name: str


@dataclass(frozen=True, kw_only=True)
class _Count:
    questions: int


class AddedDays:
    """Store sums for a tenant's finished days and weeks. The database deletes a day's sums when a question changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._going_on: set[str] = set()

    def add_up(self, tenant_id: str, *, seconds: float = LONGEST_SECONDS) -> int:
        """Store the sums for days which have none yet, newest day first, until `seconds` have passed.

        Returns how many days were summed.
        """
        added, until = 0, clock.monotonic() + seconds
        while True:
            days, is_more = self._add_some(tenant_id)
            added += days
            if not is_more or clock.monotonic() >= until:
                return added

    def add_up_soon(self, tenant_id: str) -> None:
        """Compute missing sums for finished days: half a second in this thread, the rest in a background thread."""
        until = clock.monotonic() + ADDING_SECONDS
        while self._add_some(tenant_id)[1]:
            if clock.monotonic() >= until:
                self._go_on(tenant_id)
                return

    def _add_some(self, tenant_id: str) -> tuple[int, bool]:
        with self._database.transaction(tenant_id) as connection:
            row = connection.execute(queries["lock_days"]).fetchone()
            if row is None or not row[0]:
                return 0, False
            day_rows = connection.execute(queries["days_to_roll"], {"limit": DAYS_AT_ONCE}).fetchall()
            days = {"days": [row[0] for row in day_rows]}
            if day_rows:
                for kind in KINDS_OF_SUMS:
                    connection.execute(queries[f"forget_{kind}_days"], days)
                    connection.execute(queries[f"roll_{kind}_days"], days)
                connection.execute(queries["note_rolled_days"], days)
            week_rows = connection.execute(queries["weeks_to_roll"], {"limit": WEEKS_AT_ONCE}).fetchall()
            weeks = {"weeks": [row[0] for row in week_rows]}
            if week_rows:
                for kind in KINDS_OF_SUMS:
                    connection.execute(queries[f"forget_{kind}_weeks"], weeks)
                    connection.execute(queries[f"roll_{kind}_weeks"], weeks)
                connection.execute(queries["note_rolled_weeks"], weeks)
        return len(day_rows), len(day_rows) == DAYS_AT_ONCE or len(week_rows) == WEEKS_AT_ONCE

    def _go_on(self, tenant_id: str) -> None:
        with self._lock:
            if tenant_id in self._going_on:
                return
            self._going_on.add(tenant_id)

        def work() -> None:
            try:
                self.add_up(tenant_id)
            except RagError:
                log.warning("the days of %s are added up when somebody looks again", tenant_id)
            finally:
                with self._lock:
                    self._going_on.discard(tenant_id)

        threading.Thread(target=work, name=f"days of {tenant_id}", daemon=True).start()


class Analytics:
    """Compute metrics for managers. Each method runs a few SQL statements. Nothing is cached in the process."""

    def __init__(self, database: Database, *, exact_below: int = EXACT_BELOW) -> None:
        self._database = database
        self._exact_below = exact_below
        self.days = AddedDays(database)
        self.zones = TimeZones(database)

    def summary(self, who: Who, period: Period, filters: Filters) -> Summary:
        """Return totals for the period and the previous period, and daily metrics for the sparklines.

        Missing sums for finished days are computed first: half a second in this thread, the rest in the background.
        """
        self.days.add_up_soon(who.tenant_id if isinstance(who, Identity) else who)
        waited = [FIRST, WHOLE]
        times = self.times(who, period, filters, stages=waited)
        previous_times = self.times(who, period.previous, filters, stages=waited)
        return Summary(
            current=self.totals(who, period, filters),
            previous=self.totals(who, period.previous, filters),
            by_day=tuple(self.by_day(who, period, filters)),
            times={row.stage: row for row in times},
            previous_times={row.stage: row for row in previous_times},
            times_by_day=tuple(self._times_about(who, period, filters, unit=period.unit, stages=waited)),
        )

    def by_day(self, who: Who, period: Period, filters: Filters, unit: Unit | None = None) -> list[Day]:
        """Return metrics by day, week or month; by default in the period's `unit`."""
        unit = unit or period.unit
        return self._all(
            who, "analytics_by_day", Day, period, filters, unit=unit, step=f"1 {unit}", in_weeks=unit == "week"
        )

    def cost_by_day(
        self, who: Who, period: Period, filters: Filters, by: CostsBy, unit: Unit | None = None
    ) -> list[DailyCost]:
        """Return costs by operation, model, collection, group or purpose for each day, week or month."""
        unit = unit or period.unit
        return self._all(
            who, "analytics_cost_by_day", DailyCost, period, filters, by=by, unit=unit, in_weeks=unit == "week"
        )

    def cost_by_model(self, who: Who, period: Period, filters: Filters) -> list[ModelCost]:
        """Return cost and usage per provider, model and operation, most expensive first, unpriced last."""
        return self._all(who, "analytics_cost_by_model", ModelCost, period, filters)

    def times(
        self, who: Who, period: Period, filters: Filters, *, unit: Unit | None = None, stages: list[str] | None = None
    ) -> list[StageTimes]:
        """Return each stage's median and 95th percentile, for the whole period or by `unit`.

        Days on which a stage did not run are left out. For `exact_below` questions or more, values are accurate within
        1 %.
        """
        requested = [FIRST, WHOLE, *STAGES] if stages is None else stages
        if self.count_questions(who, period, filters, QuestionFilters()) >= self._exact_below:
            return self._times_about(who, period, filters, unit=unit, stages=requested)
        return self._all(who, "analytics_times", StageTimes, period, filters, unit=unit, stages=requested)

    def _times_about(
        self, who: Who, period: Period, filters: Filters, *, unit: Unit | None, stages: list[str]
    ) -> list[StageTimes]:
        in_weeks = unit in (None, "week")
        return self._all(
            who, "analytics_times_about", StageTimes, period, filters, unit=unit, stages=stages, in_weeks=in_weeks
        )

    def stage_percentiles(self, who: Who, period: Period, filters: Filters) -> list[StageTimes]:
        """Return percentiles for each stage in `STAGES`, in the period's `unit`."""
        return self.times(who, period, filters, unit=period.unit, stages=list(STAGES))

    def time_histogram(self, who: Who, period: Period, filters: Filters, stage: str) -> list[TimeBucket]:
        """Return a histogram of a stage's durations.

        `stage` may also be `FIRST` (until the first words) or `WHOLE` (until the whole answer).
        """
        return self._all(who, "analytics_time_histogram", TimeBucket, period, filters, stage=stage)

    def by_part(self, who: Who, period: Period, filters: Filters, by: PartsBy) -> list[Breakdown]:
        """Return outcomes by language, group or collection, most asked first."""
        return self._all(who, "analytics_by_part", Breakdown, period, filters, by=by)

    def top_documents(self, who: Who, period: Period, filters: Filters, *, limit: int = 10) -> list[DocumentUse]:
        return self._all(who, "analytics_top_documents", DocumentUse, period, filters, limit=limit)

    def unused_documents(self, who: Who, period: Period, filters: Filters, *, limit: int = 200) -> list[UnusedDocument]:
        """Return documents that were searchable during the whole period and used in no answer."""
        return self._all(who, "analytics_unused_documents", UnusedDocument, period, filters, limit=limit)

    def has_settled_documents(self, who: Who, period: Period, filters: Filters) -> bool:
        """Whether any document was searchable during the whole period."""
        start, collection_id = midnight(period.first, self.zones.of(who)), filters.collection_id
        return bool(
            self._database.fetch_value(who, "analytics_has_settled_documents", start=start, collection_id=collection_id)
        )

    def searches(self, who: Who, period: Period, filters: Filters) -> list[LoggedSearch]:
        """Return search scores for the latest questions, at most `LATEST`."""
        return self._all(who, "analytics_searches", LoggedSearch, period, filters, limit=LATEST)

    def found_documents(self, who: Who, period: Period, filters: Filters) -> Mapping[UUID, int]:
        """For each document, count the latest questions in which the search found the document.

        The answers need not have used the document.
        """
        rows = self._all(who, "analytics_found_documents", FoundDocument, period, filters, limit=LATEST)
        return {row.document_id: row.questions for row in rows}

    def top_passages(self, who: Who, period: Period, filters: Filters, *, limit: int = 20) -> list[PassageUse]:
        """Return the chunks cited in most of the latest answers."""
        return self._all(who, "analytics_top_passages", PassageUse, period, filters, latest=LATEST, limit=limit)

    def errors(self, who: Who, period: Period, filters: Filters, *, limit: int = 50) -> list[LoggedError]:
        """Return the errors among the latest questions (`LATEST`), with the number of occurrences."""
        return self._all(who, "analytics_errors", LoggedError, period, filters, latest=LATEST, limit=limit)

    def notices(self, who: Who, period: Period, filters: Filters, *, limit: int = 50) -> list[LoggedNotice]:
        """Return the notices shown under the latest answers, with the number of occurrences.

        A notice is, for example, "The reranker did not respond".
        """
        return self._all(who, "analytics_notices", LoggedNotice, period, filters, latest=LATEST, limit=limit)

    def repeated_calls(self, who: Who, period: Period, *, limit: int = 50) -> list[RepeatedCalls]:
        """Count the period's model calls which were cut off or sent again."""
        return self._all(who, "analytics_repeated_calls", RepeatedCalls, period, Filters(), limit=limit)

    def unanswered(self, who: Who, period: Period, filters: Filters, *, limit: int = 200) -> list[UnansweredQuestion]:
        """Return the questions with outcome `no_context`, most asked first."""
        return self._all(who, "analytics_unanswered", UnansweredQuestion, period, filters, limit=limit)

    def count_questions(
        self, who: Who, period: Period, filters: Filters, question_filters: QuestionFilters, *, most: int | None = None
    ) -> int:
        """Count the questions which match the filters, over all pages of the list.

        Normally, the number comes from stored daily sums. If a filter needs a text, a rating or a kind, the questions
        are counted individually, but only up to `most`, because searching a year's answers takes seconds.
        """
        if (
            question_filters.kind == "question"
            and not question_filters.text.strip()
            and question_filters.rating is None
        ):
            (counted,) = self._all(
                who, "analytics_count_by_days", _Count, period, filters, outcome=question_filters.outcome
            )
        else:
            (counted,) = self._all(
                who, "analytics_count_questions", _Count, period, filters, **question_filters.parameters(), most=most
            )
        return counted.questions

    def questions(
        self,
        who: Who,
        period: Period,
        filters: Filters,
        question_filters: QuestionFilters,
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
            shows_names=self.shows_names(who),
            **question_filters.parameters(),
            slowest_first=slowest_first,
            limit=limit,
            offset=offset,
        )

    def question(self, who: Who, chat_log_id: UUID) -> ChatLogEntry:
        """Return a logged question with the chunks found, the charges and the prompt. Raises `NotFound`.

        Reading someone else's question adds an entry to the audit log.
        """
        read = self._database
        shows_names = self.shows_names(who)
        details = read.fetch_one(
            who, "analytics_question", LoggedQuestionDetails, chat_log_id=chat_log_id, shows_names=shows_names
        )
        if details is None:
            raise NotFound
        if isinstance(who, Identity):
            read.execute(who, "note_reading", chat_log_id=chat_log_id)
        passages = read.fetch_all(who, "analytics_question_passages", FoundPassage, chat_log_id=chat_log_id)
        charges = read.fetch_all(who, "analytics_question_charges", QuestionCharge, chat_log_id=chat_log_id)
        with read.transaction(who) as connection:
            prompt_row = connection.execute(queries["analytics_prompt"], {"chat_log_id": chat_log_id}).fetchone()
        prompt = prompt_from_json(*prompt_row) if prompt_row else None
        return ChatLogEntry(question=details, passages=tuple(passages), charges=tuple(charges), prompt=prompt)

    def found_passages(self, who: Who, chat_log_id: UUID) -> list[FoundPassage]:
        """Return the chunks found for a question, in the order found."""
        return self._database.fetch_all(who, "analytics_question_passages", FoundPassage, chat_log_id=chat_log_id)

    def names_for(self, tenant_id: str) -> Role | None:
        """Return the lowest role which may see who asked a question; `None` if no role may."""
        role = self._database.fetch_value(tenant_id, "names_for")
        return None if role == "nobody" else Role(role)

    def set_names_for(self, identity: Identity, role: Role | None) -> None:
        """Set the lowest role which may see who asked a question; `None` hides the names from everyone.

        Raises `NotAllowed`, `SignInAgain`.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        settings = Jsonb({"names_for": "nobody" if role is None else role.value})
        self._database.execute(identity, "change_tenant_settings", settings=settings)

    def shows_names(self, who: Who) -> bool:
        """Whether this caller may see who asked a question. Always False for programs."""
        if not isinstance(who, Identity):
            return False
        role = self.names_for(who.tenant_id)
        return role is not None and who.may(role)

    def export_csv(self, who: Who, period: Period, filters: Filters, question_filters: QuestionFilters) -> bytes:
        """Export matching questions as CSV, newest first, and record the export in the audit log. Raises `SignInAgain`.

        At most `EXPORT_LIMIT` questions are exported. The text is UTF-8 with a byte order mark, because Excel otherwise
        misreads Korean.
        """
        require_recent(self._database, who)
        rows = self.questions(who, period, filters, question_filters, limit=EXPORT_LIMIT)
        if isinstance(who, Identity):
            target = f"questions of {period.first} to {period.last}"
            self._database.execute(
                who, "add_audit_entry", action="export made", target=target, changes=Jsonb({"rows": len(rows)})
            )
        return questions_to_csv(rows, with_names=self.shows_names(who)).encode("utf-8-sig")

    def user_groups(self, who: Who, period: Period) -> list[str]:
        rows = self._database.fetch_all(who, "analytics_user_groups", _Name, **self._of_period(who, period))
        return [row.name for row in rows]

    def languages(self, who: Who, period: Period) -> list[str]:
        """Return the languages in which questions were asked in a period."""
        rows = self._database.fetch_all(who, "analytics_languages", _Name, **self._of_period(who, period))
        return [row.name for row in rows]

    def totals(self, who: Who, period: Period, filters: Filters) -> Totals:
        """Return the metrics for a whole period."""
        (totals,) = self._all(who, "analytics_totals", Totals, period, filters)
        return totals

    def _all(
        self, who: Who, name: str, row: type[Row], period: Period, filters: Filters, **parameters: Any
    ) -> list[Row]:
        values = {**self._of_period(who, period), **filters.parameters(), **parameters}
        return self._database.fetch_lately(who, name, row, **values)

    def _of_period(self, who: Who, period: Period) -> Mapping[str, Any]:
        return period.parameters(self.zones.of(who))
