"""Run scheduled work.

Test questions are asked at night, and the weekly digest is written. Old texts are deleted, budgets are watched, and
gaps are solved when their documents are ready.

Every process with workers checks each minute. The first to mark a day as done does the work, so each job runs once,
whichever process is alive. If a job fails, for example because a mail server or a provider does not answer, the mark is
removed, and the job runs again an hour later.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.access.mail import can_send, make_email, send_emails
from rag.access.sessions import require_admin
from rag.errors import InvalidInput, RagError
from rag.evaluation.metrics import FIGURES, LEAST_PAIRS, TITLES, Comparison
from rag.evaluation.runs import Evaluations, Run
from rag.language import _, choose, dollars, speaking
from rag.money.budgets import Budget, Budgets
from rag.profiles import profile_of
from rag.records.analytics import Analytics, Filters, Period
from rag.records.digest import Digest, digest_title, make_digest
from rag.records.gaps import Gaps
from rag.records.privacy import Privacy
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Role, Who

log = logging.getLogger("rag.scheduled_work")

#: Hours in the company's time zone from which nightly work, and Monday's digest, run.
NIGHT_HOUR, MORNING_HOUR = 2, 6
MONDAY = 0
SENDER = "HR Assistant"
#: After a mail server or a provider did not answer.
AGAIN_SECONDS = 3600.0
#: A figure has fallen if it is worse than the previous night by this much; times and costs by this share.
FALLEN, FALLEN_SHARE = 0.05, 0.5

Tell = Callable[[str, str, Mapping[str, Any]], object]


@dataclass(frozen=True, kw_only=True)
class Recipients:
    """The people who get an e-mail: all with at least this role. `None` means nobody."""

    digest_for: Role | None = None
    alerts_for: Role | None = Role.ADMIN


@dataclass(frozen=True, kw_only=True)
class Fallen:
    """A quality metric which fell clearly since the previous run."""

    figure: str
    before: float
    now: float


@dataclass(frozen=True)
class _Address:
    email: str
    language: str


@dataclass(frozen=True)
class _EmailText:
    subject: str
    text: str
    html: str = ""


@dataclass(frozen=True, kw_only=True)
class WorkParts:
    """The services which scheduled work uses."""

    analytics: Analytics
    gaps: Gaps
    privacy: Privacy
    budgets: Budgets
    evaluations: Evaluations
    #: Lists a tenant's collections.
    collections: Callable[[str], Sequence[Collection]]


class ScheduledWork:
    """Does the scheduled work for each tenant, and stores each tenant's settings for the work."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        parts: WorkParts,
        *,
        tell: Tell = lambda tenant_id, kind, data: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`tell` is called to report an event to other programs."""
        self._database = database
        self._settings = settings
        self._parts = parts
        self._tell = tell
        self._clock = clock
        #: Failed work, with the time of its next try.
        self._later: dict[tuple[str, str], float] = {}
        #: Failed work still marked as done in the database.
        self._not_done: set[tuple[str, str]] = set()

    # What a company wants

    @property
    def can_send(self) -> bool:
        """Whether a mail server is configured."""
        return can_send(self._settings)

    def recipients(self, tenant_id: str) -> Recipients:
        """Return the roles which get e-mails with the digest and with alerts."""
        stored: dict[str, str] = self._database.fetch_value(tenant_id, "letters") or {}
        roles = {name: None if role == "nobody" else Role(role) for name, role in stored.items()}
        return Recipients(**{name: roles[name] for name in ("digest_for", "alerts_for") if name in roles})

    def set_recipients(self, identity: Identity, recipients: Recipients) -> None:
        """Set the roles which get e-mails with the digest and with alerts. For administrators."""
        require_admin(identity)
        if Role.EMPLOYEE in (recipients.digest_for, recipients.alerts_for):
            raise InvalidInput("Reports and alerts go to managers or administrators.")
        stored = {name: "nobody" if role is None else role.value for name, role in vars(recipients).items()}
        self._database.execute(identity, "change_tenant_settings", settings=Jsonb({"letters": stored}))

    def is_nightly(self, who: Who, collection_id: UUID) -> bool:
        """Whether a collection's test questions are asked every night."""
        tenant_id = who.tenant_id if isinstance(who, Identity) else who
        return str(collection_id) in (self._database.fetch_value(tenant_id, "nightly_collections") or [])

    def set_nightly(self, identity: Identity, collection_id: UUID, is_nightly: bool) -> None:
        """Ask a collection's test questions every night, or stop. For administrators."""
        require_admin(identity)
        collection_ids = set(self._database.fetch_value(identity.tenant_id, "nightly_collections") or [])
        collection_ids = collection_ids | {str(collection_id)} if is_nightly else collection_ids - {str(collection_id)}
        settings = Jsonb({"nightly_collections": sorted(collection_ids)})
        self._database.execute(identity, "change_tenant_settings", settings=settings)

    # Due work

    def run(self, tenants: Sequence[str], *, now: datetime | None = None) -> None:
        """Do the short work due for these tenants. A failure for one tenant does not stop the work for the others."""
        self._do((self._solve_gaps, self._forget, self._warn, self._write_digest), tenants, now)

    def run_all_golden(self, tenants: Sequence[str], *, now: datetime | None = None) -> None:
        """Ask the test questions due for these tenants, which may take hours."""
        self._do((self._run_golden,), tenants, now)

    def _do(
        self, works: Sequence[Callable[[str, datetime], None]], tenants: Sequence[str], now: datetime | None
    ) -> None:
        now = now or datetime.now(UTC)
        for tenant_id in tenants:
            for work in works:
                try:
                    work(tenant_id, now.astimezone(self._parts.analytics.zones.of(tenant_id)))
                except RagError as exc:
                    log.warning("%s of %s was not done: %s", work.__name__.strip("_"), tenant_id, exc.message)
                except Exception:
                    log.exception("%s of %s was not done", work.__name__.strip("_"), tenant_id)

    def _is_mine(self, tenant_id: str, work: str, day: date) -> bool:
        """Claim the work for this process. Return whether the claim succeeded: no process has done the work today."""
        if self._clock() < self._later.get((tenant_id, work), -math.inf):
            return False
        self._take_back(tenant_id, work)
        return bool(self._database.execute(tenant_id, "claim_calendar_work", work=work, day=day))

    def _note_not_done(self, tenant_id: str, work: str, *, again_seconds: float = AGAIN_SECONDS) -> None:
        """Remove the mark that the work is done. This or a different process tries again after `again_seconds`."""
        self._later[tenant_id, work] = self._clock() + again_seconds
        self._not_done.add((tenant_id, work))
        self._take_back(tenant_id, work)

    def _take_back(self, tenant_id: str, work: str) -> None:
        if (tenant_id, work) in self._not_done:
            self._database.execute(tenant_id, "take_back_calendar_work", work=work)
            self._not_done.discard((tenant_id, work))

    def _solve_gaps(self, tenant_id: str, now: datetime) -> None:
        self._parts.gaps.solve_awaiting(tenant_id)

    def _forget(self, tenant_id: str, now: datetime) -> None:
        if now.hour >= NIGHT_HOUR and self._is_mine(tenant_id, "forget", now.date()):
            self._parts.privacy.forget_old(tenant_id)

    def _warn(self, tenant_id: str, now: datetime) -> None:
        first = now.date().replace(day=1)
        for budget in self._parts.budgets.list(tenant_id):
            level = "spent" if budget.is_spent else "near" if budget.is_near else ""
            work = f"budget {budget.id} {level}"
            # The database itself reports a spent budget to other programs.
            if level == "near" and self._is_mine(tenant_id, f"{work} told", first):
                self._tell(
                    tenant_id,
                    "budget.near",
                    {"budgetId": str(budget.id), "scope": budget.scope, "group": budget.user_group or None,
                     "accountId": budget.account_id and str(budget.account_id), "amount": str(budget.amount),
                     "spent": str(budget.spent)},
                )  # fmt: skip
            if level and self._is_mine(tenant_id, work, first) and not self.warn_of(tenant_id, budget):
                self._note_not_done(tenant_id, work)

    def warn_of(self, tenant_id: str, budget: Budget) -> bool:
        """E-mail a warning about a budget which is nearly or fully spent. Returns False if every e-mail failed."""

        def write() -> _EmailText:
            whose = {"company": _("the company"), "group": budget.user_group, "person": budget.person}[budget.scope]
            spent, amount = dollars(budget.spent, 2), dollars(budget.amount, 2)
            if budget.is_spent:
                subject = _("The budget of {name} is spent", name=whose)
                more = _(" Until next month, search still works, but no paid model is called.")
            else:
                subject, more = _("Most of the budget of {name} is spent", name=whose), ""
            text = _("{spent} of {amount} are spent this month.", spent=spent, amount=amount) + more
            return _EmailText(subject, f"{text}\n\n{self._link('prices')}\n")

        return self._send(tenant_id, self.recipients(tenant_id).alerts_for, write)

    def _write_digest(self, tenant_id: str, now: datetime) -> None:
        if now.weekday() != MONDAY or now.hour < MORNING_HOUR:
            return
        until = now.date() - timedelta(days=1)
        if self._is_mine(tenant_id, "digest told", now.date()):
            period = Period.of_days(7, until=until)
            self._tell(tenant_id, "digest.weekly", self.digest(tenant_id, period).as_event(period))
        role = self.recipients(tenant_id).digest_for
        if (
            role is not None
            and self.can_send
            and self._is_mine(tenant_id, "digest", now.date())
            and not self.send_digest(tenant_id, role, until=until)
        ):
            self._note_not_done(tenant_id, "digest")

    def digest(self, who: Who, period: Period, filters: Filters | None = None, *, chosen: Sequence[str] = ()) -> Digest:
        """Return a period's digest.

        A person gets only the parts they may read, and a tenant's id all parts. `chosen` lists the names of the
        analytics filters in use.
        """
        tenant_id = who.tenant_id if isinstance(who, Identity) else who
        name = str(self._database.fetch_value(tenant_id, "tenant_name") or tenant_id)
        filters = filters or Filters()
        title = digest_title(name, period, filters, chosen)
        return make_digest(self._parts.analytics, self._parts.gaps, who, period, filters, title=title)

    def send_digest(self, tenant_id: str, role: Role, *, until: date) -> bool:
        """E-mail the last week's digest to each person with the role, in their language. Returns False if every e-mail
        failed.
        """

        def write() -> _EmailText:
            digest = self.digest(tenant_id, Period.of_days(7, until=until))
            return _EmailText(digest.title, f"{digest.as_text()}\n{self._link('analytics')}\n", digest.as_html())

        return self._send(tenant_id, role, write)

    def _run_golden(self, tenant_id: str, now: datetime) -> None:
        if now.hour < NIGHT_HOUR:
            return
        for collection in self._parts.collections(tenant_id):
            work = f"golden {collection.id}"
            if not self.is_nightly(tenant_id, collection.id) or not self._is_mine(tenant_id, work, now.date()):
                continue
            try:
                run = self.run_golden(tenant_id, collection, since=now.replace(hour=0, minute=0, second=0))
            except RagError as exc:
                self._note_not_done(tenant_id, work)
                log.warning("The test questions of %s are asked later: %s", collection.name, exc.message)
            else:
                if run is not None and run.finished_at is None:  # the application stops
                    self._note_not_done(tenant_id, work, again_seconds=0)

    def run_golden(self, tenant_id: str, collection: Collection, *, since: datetime) -> Run | None:
        """Ask a collection's test questions, and report metrics which fell.

        Returns `None` without test questions. An interrupted run with the same questions and settings is continued if
        it began after `since`.
        """
        golden = list(self._parts.evaluations.golden(tenant_id, collection.id).values())
        if not golden:
            return None
        program = Identity(account_id=UUID(int=0), tenant_id=tenant_id, email="", name="program", role=Role.ADMIN)
        # Runs by day may test other settings, with other questions.
        runs = self._parts.evaluations.runs(tenant_id, collection.id)
        before = next((run for run in runs if run.is_nightly and run.finished_at), None)
        profile = profile_of(collection)
        run_id = self._parts.evaluations.interrupted(collection, profile, golden, since=since)
        if run_id is None:
            run_id = self._parts.evaluations.begin(collection, profile, golden, is_nightly=True)
        run = self._parts.evaluations.work(collection, run_id, program)
        if run.finished_at is None:
            return run
        fallen = fallen_figures(self._compared(tenant_id, before, run)) if before is not None else []
        if fallen:
            self._tell(
                tenant_id,
                "evaluation.fell",
                {"collectionId": str(collection.id), "collection": collection.name, "runId": str(run.id),
                 "runIdBefore": str(before.id) if before else None,
                 "figures": {figure.figure: {"before": figure.before, "now": figure.now} for figure in fallen}},
            )  # fmt: skip

            def write() -> _EmailText:
                lines = [_("The test questions of {name} were asked again.", name=collection.name), ""]
                for figure in fallen:
                    figures = _("{now} (before: {before})", now=f"{figure.now:.3f}", before=f"{figure.before:.3f}")
                    lines.append(f"{_(TITLES[figure.figure])}: {figures}")
                lines += ["", self._link("analytics?analytics_view=Quality"), ""]
                return _EmailText(
                    _("Answers from {name} are worse than before", name=collection.name), "\n".join(lines)
                )

            self._send(tenant_id, self.recipients(tenant_id).alerts_for, write)
        return run

    def _compared(self, tenant_id: str, before: Run, now: Run) -> Sequence[Comparison]:
        try:
            return self._parts.evaluations.compare(tenant_id, before.id, now.id)
        except InvalidInput:  # no question is in both
            return ()

    def _send(self, tenant_id: str, role: Role | None, write: Callable[[], _EmailText]) -> bool:
        """Send the e-mail which `write` builds to each person with the role.

        Returns False if there were recipients and no e-mail was accepted.
        """
        if role is None or not self.can_send:
            return True
        roles = [email.value for email in Role if email.includes(role)]
        people = self._database.fetch_all(tenant_id, "people_to_write_to", _Address, roles=roles)
        texts: dict[str, _EmailText] = {}
        for language in {choose(person.language) for person in people}:
            with speaking(language):
                texts[language] = write()
        emails = []
        for person in people:
            email = texts[choose(person.language)]
            emails.append(
                make_email(
                    self._settings,
                    person.email,
                    email.subject,
                    email.text,
                    sender_name=SENDER,
                    html=email.html,
                )
            )
        failed = send_emails(self._settings, emails)
        for reason in failed.values():
            log.warning("A letter was not sent: %s", reason)
        return not emails or len(failed) < len(emails)

    def _link(self, page: str) -> str:
        return f"{self._settings.public_url}/{page}" if self._settings.public_url else ""


def fallen_figures(compared: Sequence[Comparison]) -> list[Fallen]:
    """Return the metrics which are clearly worse over the same questions. With few questions, the result is empty.

    Times and costs fluctuate. For these, the change must also be statistically significant.
    """
    fallen = []
    for row in compared:
        worse = row.difference if FIGURES[row.figure] is False else -row.difference
        if row.questions < LEAST_PAIRS:
            continue
        if row.figure in ("total_ms", "cost"):
            is_fallen = worse > FALLEN_SHARE * row.first and row.verdict == "worse"
        else:
            is_fallen = worse > FALLEN
        if is_fallen:
            fallen.append(Fallen(figure=row.figure, before=row.first, now=row.second))
    return fallen
