"""Metrics for the analytics page, each computed in SQL, within a tenant, by days in its time zone.

Costs come from the ledger, counts and times from the question log. A call without a known price counts as unpriced,
never as zero. Finished days are summed once (`AddedDays`). The view `question_outcomes` defines which
questions count as answered, and their base. Percentiles are computed from the questions. From `EXACT_BELOW` questions
on, they come from daily sums, accurate within 1 %, and are marked (`is_about`).
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
    """Whole days, both ends included. Raises `InvalidInput` if it ends before it begins."""

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise InvalidInput("The period ends before it begins. Choose a later end.")

    @classmethod
    def of_days(cls, days: int, *, until: date) -> Period:
        """Build a period with `days` days ending on `until`."""
        return cls(until - timedelta(days=days - 1), until)

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def previous(self) -> Period:
        """Return the preceding period with the same length."""
        return Period.of_days(self.days, until=self.first - timedelta(days=1))

    @property
    def unit(self) -> Unit:
        """Return the unit for charts: a quarter by days, two years by weeks."""
        return "day" if self.days <= 92 else "week" if self.days <= 730 else "month"

    def parameters(self, zone: tzinfo) -> Mapping[str, Any]:
        """Return parameters for statements, including when the period starts and ends in a time zone."""
        return {
            "first": self.first,
            "last": self.last,
            "start": midnight(self.first, zone),
            "end": midnight(self.last + timedelta(days=1), zone),
        }


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Conditions for every figure. `None` means no condition."""

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
    """Further conditions for the list of questions. `text` is searched in question and answer, ignoring case."""

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


def share_of(part: int, whole: int) -> float | None:
    """Return a share, 0 … 1; `None` if `whole` is 0."""
    return part / whole if whole else None


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """Outcomes of questions. Rates are 0 … 1, `None` without a base."""

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
    """Figures for a day, or for the week or month beginning then."""

    day: date
    cost: Decimal


@dataclass(frozen=True, kw_only=True)
class Totals(Outcomes):
    """Figures of one period."""

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
        """Return the cost; `None` if there were calls but all lack a known price."""
        return None if self.calls and self.calls == self.unpriced_calls else self.cost

    @property
    def cost_per_answer(self) -> Decimal | None:
        """Return the cost per answer, including questions without an answer; `None` without answers."""
        answers = self.answered + self.perhaps
        return self.questions_cost / answers if answers and self.known_cost is not None else None


@dataclass(frozen=True, kw_only=True)
class StageTimes:
    """A stage's duration over the questions in which it ran; `day` is `None` for a whole period."""

    day: date | None
    stage: str
    questions: int
    p50_ms: float
    p95_ms: float
    #: True: from daily sums, within 1 %; False: exact.
    is_about: bool


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A period, the period before, and the days."""

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
    """The cost per day for an operation or model; `cost` is `None` without a call at a known price."""

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
    """A histogram bucket: a number of questions with about this duration."""

    ms: float
    questions: int


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """Questions in a language, from a group or about a collection."""

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
    """A document and the questions answered from it."""

    document_id: UUID
    title: str
    questions: int
    last_asked_at: datetime
    rated: int
    helpful: int


@dataclass(frozen=True, kw_only=True)
class UnusedDocument:
    """A document no answer is based on."""

    document_id: UUID
    title: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class LoggedSearch:
    """A question's search results."""

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
    """For how many questions a document was found."""

    document_id: UUID
    questions: int


@dataclass(frozen=True, kw_only=True)
class PassageUse:
    """A passage with the answers citing it."""

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
    """Why questions did not come to an answer."""

    error: str
    outcome: str
    times: int
    last_at: datetime
    latest_id: UUID


@dataclass(frozen=True, kw_only=True)
class LoggedNotice:
    """A feature answers lacked, or a reason they were held back, as shown to readers."""

    notice: str
    times: int
    last_at: datetime
    latest_id: UUID


@dataclass(frozen=True, kw_only=True)
class RepeatedCalls:
    """Calls to a model without a reported end."""

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
    """Sum a tenant's finished days; after a late change in a day, the database drops its sums."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._going_on: set[str] = set()

    def add_up(self, tenant_id: str, *, seconds: float = LONGEST_SECONDS) -> int:
        """Sum missing days, newest first, for about this long. Return their number."""
        added, until = 0, clock.monotonic() + seconds
        while True:
            days, is_more = self._add_some(tenant_id)
            added += days
            if not is_more or clock.monotonic() >= until:
                return added

    def add_up_soon(self, tenant_id: str) -> None:
        """Add up days for half a second, and continue with a longer history in the background."""
        until = clock.monotonic() + ADDING_SECONDS
        while self._add_some(tenant_id)[1]:
            if clock.monotonic() >= until:
                self._go_on(tenant_id)
                return

    def _add_some(self, tenant_id: str) -> tuple[int, bool]:
        """Add up some days, and completed weeks. Return the number of days, and whether more may be left."""
        with self._database.transaction(tenant_id) as connection:
            row = connection.execute(queries["lock_days"]).fetchone()
            if row is None or not row[0]:
                return 0, False
            found = connection.execute(queries["days_to_roll"], {"limit": DAYS_AT_ONCE}).fetchall()
            days = {"days": [row[0] for row in found]}
            if found:
                for kind in KINDS_OF_SUMS:
                    connection.execute(queries[f"forget_{kind}_days"], days)
                    connection.execute(queries[f"roll_{kind}_days"], days)
                connection.execute(queries["note_rolled_days"], days)
            whole = connection.execute(queries["weeks_to_roll"], {"limit": WEEKS_AT_ONCE}).fetchall()
            weeks = {"weeks": [row[0] for row in whole]}
            if whole:
                for kind in KINDS_OF_SUMS:
                    connection.execute(queries[f"forget_{kind}_weeks"], weeks)
                    connection.execute(queries[f"roll_{kind}_weeks"], weeks)
                connection.execute(queries["note_rolled_weeks"], weeks)
        return len(found), len(found) == DAYS_AT_ONCE or len(whole) == WEEKS_AT_ONCE

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
    """Compute metrics for managers. Each method runs a few statements; the process caches nothing."""

    def __init__(self, database: Database, *, exact_below: int = EXACT_BELOW) -> None:
        self._database = database
        self._exact_below = exact_below
        self.days = AddedDays(database)
        self.zones = TimeZones(database)

    def summary(self, who: Who, period: Period, filters: Filters) -> Summary:
        """Return totals for the period and the previous period, and daily metrics for the sparklines.

        Finished days not summed yet are summed for half a second now and the rest in the background.
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
        """Return figures by day, week or month; without `unit`, by the period's best unit."""
        unit = unit or period.unit
        return self._all(
            who, "analytics_by_day", Day, period, filters, unit=unit, step=f"1 {unit}", in_weeks=unit == "week"
        )

    def cost_by_day(
        self, who: Who, period: Period, filters: Filters, by: CostsBy, unit: Unit | None = None
    ) -> list[DailyCost]:
        """Return costs by operation, model, collection, group or purpose, for each day, week or month."""
        unit = unit or period.unit
        return self._all(
            who, "analytics_cost_by_day", DailyCost, period, filters, by=by, unit=unit, in_weeks=unit == "week"
        )

    def cost_by_model(self, who: Who, period: Period, filters: Filters) -> list[ModelCost]:
        """Return a row per provider, model and operation, most expensive first, unpriced last."""
        return self._all(who, "analytics_cost_by_model", ModelCost, period, filters)

    def times(
        self, who: Who, period: Period, filters: Filters, *, unit: Unit | None = None, stages: list[str] | None = None
    ) -> list[StageTimes]:
        """Return each stage's median and 95th percentile: for the whole period, or by day, week or month.

        Days on which a stage did not run are left out. Exact with fewer than `exact_below` questions in the period.
        """
        wanted = [FIRST, WHOLE, *STAGES] if stages is None else stages
        if self.count_questions(who, period, filters, QuestionFilters()) >= self._exact_below:
            return self._times_about(who, period, filters, unit=unit, stages=wanted)
        return self._all(who, "analytics_times", StageTimes, period, filters, unit=unit, stages=wanted)

    def _times_about(
        self, who: Who, period: Period, filters: Filters, *, unit: Unit | None, stages: list[str]
    ) -> list[StageTimes]:
        in_weeks = unit in (None, "week")
        return self._all(
            who, "analytics_times_about", StageTimes, period, filters, unit=unit, stages=stages, in_weeks=in_weeks
        )

    def stage_percentiles(self, who: Who, period: Period, filters: Filters) -> list[StageTimes]:
        """Return durations for each of `STAGES`, by the period's best unit."""
        return self.times(who, period, filters, unit=period.unit, stages=list(STAGES))

    def time_histogram(self, who: Who, period: Period, filters: Filters, stage: str) -> list[TimeBucket]:
        """Return a histogram of a stage's durations; `WHOLE` and `FIRST` count as stages."""
        return self._all(who, "analytics_time_histogram", TimeBucket, period, filters, stage=stage)

    def by_part(self, who: Who, period: Period, filters: Filters, by: PartsBy) -> list[Breakdown]:
        """Return questions and outcomes by language, group or collection, most asked first."""
        return self._all(who, "analytics_by_part", Breakdown, period, filters, by=by)

    def top_documents(self, who: Who, period: Period, filters: Filters, *, limit: int = 10) -> list[DocumentUse]:
        return self._all(who, "analytics_top_documents", DocumentUse, period, filters, limit=limit)

    def unused_documents(self, who: Who, period: Period, filters: Filters, *, limit: int = 200) -> list[UnusedDocument]:
        """Return documents searchable during the whole period, but never used in an answer."""
        return self._all(who, "analytics_unused_documents", UnusedDocument, period, filters, limit=limit)

    def has_settled_documents(self, who: Who, period: Period, filters: Filters) -> bool:
        """Return whether any document could be found all through the period."""
        start, collection_id = midnight(period.first, self.zones.of(who)), filters.collection_id
        return bool(
            self._database.fetch_value(who, "analytics_has_settled_documents", start=start, collection_id=collection_id)
        )

    def searches(self, who: Who, period: Period, filters: Filters) -> list[LoggedSearch]:
        """Return search results for the latest questions, at most `LATEST`."""
        return self._all(who, "analytics_searches", LoggedSearch, period, filters, limit=LATEST)

    def found_documents(self, who: Who, period: Period, filters: Filters) -> Mapping[UUID, int]:
        """Count, for each document, the latest questions whose search found it, whether used or not."""
        rows = self._all(who, "analytics_found_documents", FoundDocument, period, filters, limit=LATEST)
        return {row.document_id: row.questions for row in rows}

    def top_passages(self, who: Who, period: Period, filters: Filters, *, limit: int = 20) -> list[PassageUse]:
        """Return the passages cited by most of the latest answers."""
        return self._all(who, "analytics_top_passages", PassageUse, period, filters, latest=LATEST, limit=limit)

    def errors(self, who: Who, period: Period, filters: Filters, *, limit: int = 50) -> list[LoggedError]:
        """Return why the latest unanswered questions failed or were refused, at most `LATEST`."""
        return self._all(who, "analytics_errors", LoggedError, period, filters, latest=LATEST, limit=limit)

    def notices(self, who: Who, period: Period, filters: Filters, *, limit: int = 50) -> list[LoggedNotice]:
        """Return parts missing in the latest answers, such as a reranker which did not answer."""
        return self._all(who, "analytics_notices", LoggedNotice, period, filters, latest=LATEST, limit=limit)

    def repeated_calls(self, who: Who, period: Period, *, limit: int = 50) -> list[RepeatedCalls]:
        """Return cut-off or repeated calls, among all paid calls in the period."""
        return self._all(who, "analytics_repeated_calls", RepeatedCalls, period, Filters(), limit=limit)

    def unanswered(self, who: Who, period: Period, filters: Filters, *, limit: int = 200) -> list[UnansweredQuestion]:
        """Return questions with the outcome no_context, most asked first."""
        return self._all(who, "analytics_unanswered", UnansweredQuestion, period, filters, limit=limit)

    def count_questions(
        self, who: Who, period: Period, filters: Filters, wanted: QuestionFilters, *, most: int | None = None
    ) -> int:
        """Count the questions on all pages: from daily sums, unless single questions must be checked.

        These are counted up to `most`, which is for text searches: reading all answers in a year takes seconds.
        """
        if wanted.kind == "question" and not wanted.text.strip() and wanted.rating is None:
            (found,) = self._all(who, "analytics_count_by_days", _Count, period, filters, outcome=wanted.outcome)
        else:
            (found,) = self._all(
                who, "analytics_count_questions", _Count, period, filters, **wanted.parameters(), most=most
            )
        return found.questions

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
            shows_names=self.shows_names(who),
            **wanted.parameters(),
            slowest_first=slowest_first,
            limit=limit,
            offset=offset,
        )

    def question(self, who: Who, chat_log_id: UUID) -> ChatLogEntry:
        """Return a question with everything in its log. Raises `NotFound`.

        Reading another person's question is noted in the audit log.
        """
        read = self._database
        shows_names = self.shows_names(who)
        found = read.fetch_one(
            who, "analytics_question", LoggedQuestionDetails, chat_log_id=chat_log_id, shows_names=shows_names
        )
        if found is None:
            raise NotFound
        if isinstance(who, Identity):
            read.execute(who, "note_reading", chat_log_id=chat_log_id)
        passages = read.fetch_all(who, "analytics_question_passages", FoundPassage, chat_log_id=chat_log_id)
        charges = read.fetch_all(who, "analytics_question_charges", QuestionCharge, chat_log_id=chat_log_id)
        with read.transaction(who) as connection:
            kept = connection.execute(queries["analytics_prompt"], {"chat_log_id": chat_log_id}).fetchone()
        prompt = prompt_from_json(*kept) if kept else None
        return ChatLogEntry(question=found, passages=tuple(passages), charges=tuple(charges), prompt=prompt)

    def found_passages(self, who: Who, chat_log_id: UUID) -> list[FoundPassage]:
        """Return the passages found for a question, in the order found."""
        return self._database.fetch_all(who, "analytics_question_passages", FoundPassage, chat_log_id=chat_log_id)

    def names_for(self, tenant_id: str) -> Role | None:
        """Return the lowest role allowed to see who asked a question; `None` means nobody."""
        found = self._database.fetch_value(tenant_id, "names_for")
        return None if found == "nobody" else Role(found)

    def set_names_for(self, identity: Identity, role: Role | None) -> None:
        """Set from which role on people see who asked a question.

        For administrators who signed in recently. Raises `NotAllowed`, `SignInAgain`.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        settings = Jsonb({"names_for": "nobody" if role is None else role.value})
        self._database.execute(identity, "change_tenant_settings", settings=settings)

    def shows_names(self, who: Who) -> bool:
        """Return whether a person may see who asked a question; programs may not."""
        if not isinstance(who, Identity):
            return False
        role = self.names_for(who.tenant_id)
        return role is not None and who.may(role)

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
        return questions_to_csv(rows, with_names=self.shows_names(who)).encode("utf-8-sig")

    def user_groups(self, who: Who, period: Period) -> list[str]:
        rows = self._database.fetch_all(who, "analytics_user_groups", _Name, **self._of_period(who, period))
        return [row.name for row in rows]

    def languages(self, who: Who, period: Period) -> list[str]:
        """Return the languages of the questions."""
        rows = self._database.fetch_all(who, "analytics_languages", _Name, **self._of_period(who, period))
        return [row.name for row in rows]

    def totals(self, who: Who, period: Period, filters: Filters) -> Totals:
        """Sum up a period."""
        (totals,) = self._all(who, "analytics_totals", Totals, period, filters)
        return totals

    def _all(
        self, who: Who, name: str, row: type[Row], period: Period, filters: Filters, **parameters: Any
    ) -> list[Row]:
        given = {**self._of_period(who, period), **filters.parameters(), **parameters}
        return self._database.fetch_lately(who, name, row, **given)

    def _of_period(self, who: Who, period: Period) -> Mapping[str, Any]:
        return period.parameters(self.zones.of(who))
