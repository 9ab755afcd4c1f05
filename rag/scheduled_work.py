"""Do scheduled work: forget old texts, run golden questions at night, write the weekly digest, warn of budgets.

Every process with workers looks once a minute. The first to write that a day is done does the work, so that each
thing is done once, whichever process lives.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.access.letters import can_send, make_letter, send_letters
from rag.access.sessions import require_admin
from rag.errors import InvalidInput, RagError
from rag.evaluation.metrics import FIGURES, LEAST_PAIRS, TITLES
from rag.evaluation.runs import Evaluations, Run
from rag.money.budgets import Budget, Budgets
from rag.profiles import profile_of
from rag.records.analytics import Analytics, Period
from rag.records.digest import Digest, make_digest
from rag.records.gaps import Gaps
from rag.records.privacy import Privacy
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Role, Who

log = logging.getLogger("rag.scheduled_work")

#: UTC hours from which work of a night, and the digest of a Monday, is done.
NIGHT_HOUR, MORNING_HOUR = 2, 6
MONDAY = 0
SENDER = "HR Assistant"
#: A figure has fallen when it is by so much worse than in the run before; times and costs by this share.
FALLEN, FALLEN_SHARE = 0.05, 0.5

Tell = Callable[[str, str, Mapping[str, Any]], object]


@dataclass(frozen=True, kw_only=True)
class Letters:
    """Who is written to: from which role on, None for nobody."""

    digest_for: Role | None = None
    alerts_for: Role | None = Role.ADMIN


@dataclass(frozen=True, kw_only=True)
class Fallen:
    """A figure of a run that is worse than in the one before."""

    figure: str
    before: float
    now: float


@dataclass(frozen=True)
class _Address:
    email: str


class ScheduledWork:
    """Does each tenant's scheduled work, and keeps each tenant's wishes."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        *,
        analytics: Analytics,
        gaps: Gaps,
        privacy: Privacy,
        budgets: Budgets,
        evaluations: Evaluations,
        collections: Callable[[str], Sequence[Collection]],
        tell: Tell = lambda tenant_id, kind, data: None,
    ) -> None:
        """Put it together; `collections` lists a tenant's, `tell` passes an event on to other programs."""
        self._database = database
        self._settings = settings
        self._analytics = analytics
        self._gaps = gaps
        self._privacy = privacy
        self._budgets = budgets
        self._evaluations = evaluations
        self._collections = collections
        self._tell = tell

    # What a company wants

    @property
    def can_send(self) -> bool:
        """Return whether a mail server is set."""
        return can_send(self._settings)

    def letters(self, tenant_id: str) -> Letters:
        """Return who is written to."""
        kept: dict[str, str] = self._database.fetch_value(tenant_id, "letters") or {}
        roles = {name: None if role == "nobody" else Role(role) for name, role in kept.items()}
        return Letters(**{name: roles[name] for name in ("digest_for", "alerts_for") if name in roles})

    def set_letters(self, identity: Identity, letters: Letters) -> None:
        """Set who is written to. For administrators."""
        require_admin(identity)
        if Role.EMPLOYEE in (letters.digest_for, letters.alerts_for):
            raise InvalidInput("Reports and alerts go to managers or administrators.")
        kept = {name: "nobody" if role is None else role.value for name, role in vars(letters).items()}
        self._database.execute(identity, "change_tenant_settings", settings=Jsonb({"letters": kept}))

    def is_nightly(self, who: Who, collection_id: UUID) -> bool:
        """Return whether the golden questions of a collection are asked every night."""
        tenant_id = who.tenant_id if isinstance(who, Identity) else who
        return str(collection_id) in (self._database.fetch_value(tenant_id, "nightly_collections") or [])

    def set_nightly(self, identity: Identity, collection_id: UUID, is_nightly: bool) -> None:
        """Ask the golden questions of a collection every night, or no longer. For administrators."""
        require_admin(identity)
        kept = set(self._database.fetch_value(identity.tenant_id, "nightly_collections") or [])
        kept = kept | {str(collection_id)} if is_nightly else kept - {str(collection_id)}
        settings = Jsonb({"nightly_collections": sorted(kept)})
        self._database.execute(identity, "change_tenant_settings", settings=settings)

    # What is due

    def run(self, tenants: Sequence[str], *, now: datetime | None = None) -> None:
        """Do the work due for these tenants; a failure for one does not hold up the others."""
        now = now or datetime.now(UTC)
        for tenant_id in tenants:
            for work in (self._forget, self._warn, self._write_digest, self._run_golden):
                try:
                    work(tenant_id, now)
                except RagError as exc:
                    log.warning("%s of %s was not done: %s", work.__name__.strip("_"), tenant_id, exc.message)
                except Exception:
                    log.exception("%s of %s was not done", work.__name__.strip("_"), tenant_id)

    def _is_mine(self, tenant_id: str, work: str, day: date) -> bool:
        """Return whether this process is the one to do it: nobody did since that day began."""
        return bool(self._database.execute(tenant_id, "claim_calendar_work", work=work, day=day))

    def _forget(self, tenant_id: str, now: datetime) -> None:
        if now.hour >= NIGHT_HOUR and self._is_mine(tenant_id, "forget", now.date()):
            self._privacy.forget_old(tenant_id)

    def _warn(self, tenant_id: str, now: datetime) -> None:
        first = now.date().replace(day=1)
        for budget in self._budgets.list(tenant_id):
            level = "spent" if budget.is_spent else "near" if budget.is_near else ""
            if level and self._is_mine(tenant_id, f"budget {budget.id} {level}", first):
                self.warn_of(tenant_id, budget)

    def warn_of(self, tenant_id: str, budget: Budget) -> None:
        """Tell that a budget is nearly or wholly spent, by e-mail and webhook; of a spent one the database tells."""
        whose = {"company": "the company", "group": budget.user_group, "person": budget.person}[budget.scope]
        figures = f"${budget.spent:,.2f} of ${budget.amount:,.2f}"
        if budget.is_spent:
            subject = f"The budget of {whose} is spent"
            text = f"{figures} are spent this month. Until the next, searching works and no paid model is called."
        else:
            self._tell(
                tenant_id,
                "budget.near",
                {"budgetId": str(budget.id), "scope": budget.scope, "group": budget.user_group or None,
                 "accountId": budget.account_id and str(budget.account_id), "amount": str(budget.amount),
                 "spent": str(budget.spent)},
            )  # fmt: skip
            subject = f"Most of the budget of {whose} is spent"
            text = f"{figures} are spent this month."
        self._send(tenant_id, self.letters(tenant_id).alerts_for, subject, f"{text}\n\n{self._link('prices')}\n")

    def _write_digest(self, tenant_id: str, now: datetime) -> None:
        if now.weekday() != MONDAY or now.hour < MORNING_HOUR:
            return
        until = now.date() - timedelta(days=1)
        if self._is_mine(tenant_id, "digest told", now.date()):
            period = Period.of_days(7, until=until)
            self._tell(tenant_id, "digest.weekly", self.digest(tenant_id, period).as_event(period))
        role = self.letters(tenant_id).digest_for
        if role is not None and self.can_send and self._is_mine(tenant_id, "digest", now.date()):
            self.send_digest(tenant_id, role, until=until)

    def digest(self, tenant_id: str, period: Period) -> Digest:
        """Return the digest of a period."""
        name = str(self._database.fetch_value(tenant_id, "tenant_name") or tenant_id)
        return make_digest(self._analytics, self._gaps, tenant_id, tenant_id, name, period)

    def send_digest(self, tenant_id: str, role: Role, *, until: date) -> dict[str, str]:
        """Send the digest of a week; return why, by address, for those that were not taken."""
        digest = self.digest(tenant_id, Period.of_days(7, until=until))
        text = f"{digest.as_text()}\n{self._link('analytics')}\n"
        return self._send(tenant_id, role, digest.title, text, html=digest.as_html())

    def _run_golden(self, tenant_id: str, now: datetime) -> None:
        if now.hour < NIGHT_HOUR:
            return
        for collection in self._collections(tenant_id):
            if self.is_nightly(tenant_id, collection.id) and self._is_mine(
                tenant_id, f"golden {collection.id}", now.date()
            ):
                self.run_golden(tenant_id, collection)

    def run_golden(self, tenant_id: str, collection: Collection) -> Run | None:
        """Ask the golden questions of a collection, and tell of figures that fell. None where there are none."""
        golden = list(self._evaluations.golden(tenant_id, collection.id).values())
        if not golden:
            return None
        program = Identity(account_id=UUID(int=0), tenant_id=tenant_id, email="", name="program", role=Role.ADMIN)
        before = next((run for run in self._evaluations.runs(tenant_id, collection.id) if run.finished_at), None)
        run_id = self._evaluations.begin(collection, profile_of(collection), golden)
        run = self._evaluations.work(collection, run_id, program)
        fallen = fallen_figures(before, run) if before is not None else []
        if fallen:
            lines = [f"{TITLES[one.figure]}: {one.before:.3f}, now {one.now:.3f}" for one in fallen]
            self._tell(
                tenant_id,
                "evaluation.fell",
                {"collectionId": str(collection.id), "collection": collection.name, "runId": str(run.id),
                 "runIdBefore": str(before.id) if before else None,
                 "figures": {one.figure: {"before": one.before, "now": one.now} for one in fallen}},
            )  # fmt: skip
            text = "\n".join([f"The golden questions of {collection.name} were asked again.", "", *lines])
            link = self._link("analytics?analytics_view=Quality")
            self._send(
                tenant_id, self.letters(tenant_id).alerts_for, f"Answers from {collection.name} are worse than before",
                f"{text}\n\n{link}\n",
            )  # fmt: skip
        return run

    def _send(self, tenant_id: str, role: Role | None, subject: str, text: str, *, html: str = "") -> dict[str, str]:
        if role is None or not self.can_send:
            return {}
        roles = [one.value for one in Role if one.includes(role)]
        people = self._database.fetch_all(tenant_id, "people_to_write_to", _Address, roles=roles)
        letters = [
            make_letter(self._settings, person.email, subject, text, sender_name=SENDER, html=html) for person in people
        ]
        failed = send_letters(self._settings, letters)
        for reason in failed.values():
            log.warning("A letter was not sent: %s", reason)
        return failed

    def _link(self, page: str) -> str:
        return f"{self._settings.public_url}/{page}" if self._settings.public_url else ""


def fallen_figures(before: Run, now: Run) -> list[Fallen]:
    """Return the figures that are clearly worse than in the run before; of few questions none."""
    if min(before.done, now.done) < LEAST_PAIRS:
        return []
    found = []
    for name, is_more_better in FIGURES.items():
        if name not in before.figures or name not in now.figures:
            continue
        old, new = before.figures[name], now.figures[name]
        worse = old - new if is_more_better else new - old
        if worse > (FALLEN_SHARE * old if name in ("total_ms", "cost") else FALLEN):
            found.append(Fallen(figure=name, before=old, now=new))
    return found
