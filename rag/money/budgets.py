"""Limit monthly spending by a company, a group or a person. Months begin in the company's time zone.

Spending is read from the ledger before each answer and again before the model call. Only calls already in progress can
exceed a budget.
"""

from __future__ import annotations

import builtins
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from rag.access.sessions import require_admin, require_recent
from rag.errors import BudgetSpent, InvalidInput, NotFound
from rag.language import N_
from rag.records.time_zones import TimeZones, midnight
from rag.storage.database import Database
from rag.storage.sql import queries
from rag.types import Identity, Who

Scope = Literal["company", "group", "person"]
BEYOND_BUDGET = N_(
    "Your confirmation is needed, because this costs more than the ${left} that remains in the company's budget."
)
HIGHEST = Decimal(10_000_000)
#: Seconds before a person without a budget is checked again.
LOOKED_AGAIN_SECONDS = 5.0
MOST_REMEMBERED = 10_000


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A monthly budget and the amount spent this month, in US dollars. Calls without a known price are not counted."""

    id: UUID
    scope: Scope
    #: Set for a group.
    user_group: str
    #: Set for a person, with their name.
    account_id: UUID | None
    person: str
    amount: Decimal
    warn_share: Decimal
    #: From this share on, people are asked before a paid model is called for them; None: never.
    ask_share: Decimal | None
    spent: Decimal
    #: Whether the person asked about agreed this month to go on.
    has_agreed: bool = False
    #: The month in which webhooks reported the budget as spent.
    told_month: date | None = None

    @property
    def is_spent(self) -> bool:
        return self.spent >= self.amount

    @property
    def is_near(self) -> bool:
        """Whether spending has reached the percentage at which administrators get a warning."""
        return self.spent >= self.amount * self.warn_share

    @property
    def asks(self) -> bool:
        """Whether the person must agree before their questions may cost more this month."""
        if self.ask_share is None or self.has_agreed or self.is_spent:
            return False
        return self.spent >= self.amount * self.ask_share

    @property
    def left(self) -> Decimal:
        return max(self.amount - self.spent, Decimal(0))


class BudgetShares(BaseModel):
    """The budget percentages at which administrators are warned and people are asked. `None` means never."""

    warn_percent: Annotated[
        int, Field(title=N_("Warn administrators when this share of the budget is spent (%)"), ge=0, le=100), "percent"
    ] = 80
    ask_percent: (
        Annotated[
            int,
            Field(title=N_("Ask people to confirm when this share of the budget is spent (%)"), ge=0, le=100),
            "percent",
        ]
        | None
    ) = None


USUAL_SHARES = BudgetShares()


class Budgets:
    """Store budgets and check spending against them."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._zones = TimeZones(database)
        #: When a look-up last found no budget for a person. Most people have no budget, but each question asks.
        self._without: dict[tuple[str, UUID], float] = {}

    def list(self, who: Who) -> builtins.list[Budget]:
        """Return all budgets with this month's spending, the company's first."""
        return self._states(_tenant_of(who), for_all=True)

    def may_hold(self, identity: Identity) -> bool:
        """Whether this person may have a budget.

        If no budget was found, the answer is False for some seconds, to save queries.
        """
        looked = self._without.get((identity.tenant_id, identity.account_id), -math.inf)
        return self._clock() - looked >= LOOKED_AGAIN_SECONDS

    def spent_for(self, identity: Identity) -> Budget | None:
        """Return a budget which is spent, or for which this person must agree before further spending; else `None`.

        If a different process sets the company's first budget, the budget takes effect within seconds.
        """
        if not self.may_hold(identity):
            return None
        budgets = self._states(identity.tenant_id, for_account=identity.account_id, for_group=identity.user_group)
        if not budgets:
            if len(self._without) >= MOST_REMEMBERED:
                self._without.clear()
            self._without[identity.tenant_id, identity.account_id] = self._clock()
        return next((budget for budget in budgets if budget.is_spent or budget.asks), None)

    def is_widget_spent(self, identity: Identity) -> bool:
        """Whether the caller is a widget whose budget for this month is spent."""
        if not identity.is_widget:
            return False
        return bool(self._database.fetch_value(identity.tenant_id, "widget_is_spent", api_key_id=identity.account_id))

    def asking(self, identity: Identity) -> Budget | None:
        """Return a budget for which this person must agree before further spending, or `None`."""
        budget = self.spent_for(identity)
        return budget if budget is not None and budget.asks else None

    def agree(self, identity: Identity, budget_id: UUID) -> None:
        """Record that a person agrees to further model calls until the month ends."""
        first = self._zones.today(identity).replace(day=1)
        self._database.execute(
            identity, "agree_to_budget", budget_id=budget_id, account_id=identity.account_id, month=first
        )

    def check_company(self, who: Who) -> None:
        """Raise `BudgetSpent` if the company's budget is spent, because processing documents must wait then."""
        if any(budget.is_spent for budget in self._states(_tenant_of(who)) if budget.scope == "company"):
            raise BudgetSpent(
                "The company's budget for this month is spent. An administrator can raise it on the page Prices."
            )

    def broken_by(self, who: Who, cost: Decimal) -> Budget | None:
        """Return the company's budget if adding `cost` would exceed the budget, else `None`.

        Estimates for documents in progress count as spent.
        """
        budgets = self._states(_tenant_of(who))
        if not budgets:
            return None
        under_way = self._database.fetch_value(_tenant_of(who), "estimates_under_way") or Decimal(0)
        return next((budget for budget in budgets if budget.spent + under_way + cost > budget.amount), None)

    def why_to_ask(self, tenant_id: str, cost: Decimal | None) -> str:
        """Return the reason why a document's cost needs approval; "" if the company's budget covers the cost.

        For an unknown cost (`None`), approval is only needed if the budget is already exceeded.
        """
        broken = self.broken_by(tenant_id, cost or Decimal(0)) if cost != 0 else None
        if broken is None:
            return ""
        return BEYOND_BUDGET.format(left=f"{broken.left:,.2f}")

    def set(
        self,
        identity: Identity,
        scope: Scope,
        amount: Decimal | str,
        *,
        user_group: str = "",
        account_id: UUID | None = None,
        shares: BudgetShares = USUAL_SHARES,
    ) -> None:
        """Set a monthly budget, replacing an earlier budget for the same company, group or person.

        For administrators who signed in recently. Raises `NotAllowed`, `SignInAgain`, `InvalidInput`.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        if (scope == "group") != bool(user_group.strip()) or (scope == "person") != (account_id is not None):
            raise InvalidInput("Choose the group or the person that the budget is for.")
        self._without.clear()
        self._database.execute(
            identity,
            "set_budget",
            scope=scope,
            user_group=user_group.strip(),
            account_id=account_id,
            amount=_amount(amount),
            warn_share=Decimal(shares.warn_percent) / 100,
            ask_share=None if shares.ask_percent is None else Decimal(shares.ask_percent) / 100,
        )

    def remove(self, identity: Identity, budget_id: UUID) -> str:
        """Remove a budget, and return a value for `put_back`.

        For administrators who signed in recently. Raises the errors raised by `set`, and `NotFound`.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        removed = self._database.fetch_value(identity, "remove_budget", id=budget_id)
        if removed is None:
            raise NotFound
        return str(removed)

    def put_back(self, identity: Identity, removed: str) -> None:
        """Restore a removed budget. Raises `NotAllowed`, and `InvalidInput` if a newer budget exists."""
        require_admin(identity)
        self._without.clear()
        self._database.put_back(identity, "put_budget_back", kept=removed)

    def _states(
        self, tenant_id: str, *, for_all: bool = False, for_account: UUID | None = None, for_group: str = ""
    ) -> builtins.list[Budget]:
        # As the tenant: amounts a person may not read are spent all the same.
        today = self._zones.today(tenant_id)
        first = today.replace(day=1)
        parameters = {
            "first": first,
            "last": today,
            "start": midnight(first, self._zones.of(tenant_id)),
            "month": first,
            "for_all": for_all,
            "for_account": for_account,
            "for_group": for_group or None,
        }
        with self._database.pipeline(tenant_id) as pipeline:
            states = pipeline.run(queries["budget_states"], parameters)
            pipeline.finish()
            budgets = states.read(Budget)
        for budget in budgets:
            if budget.is_spent and budget.told_month != first:
                self._database.execute(tenant_id, "tell_of_budget", id=budget.id, month=first)
        return budgets


def _tenant_of(who: Who) -> str:
    return who.tenant_id if isinstance(who, Identity) else who


def _amount(text: Decimal | str) -> Decimal:
    try:
        amount = Decimal(str(text).strip().removeprefix("$").replace(",", ""))
        is_amount = amount.is_finite() and 0 <= amount <= HIGHEST
    except InvalidOperation:
        is_amount = False
    if not is_amount:
        raise InvalidInput("Write the amount in US dollars a month, such as 250.")
    return amount
