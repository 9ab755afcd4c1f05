"""Draw monthly budgets with the amounts spent, and the dialog to set a budget."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import streamlit as st

from rag.language import N_, _
from rag.money.budgets import USUAL_SHARES, Budget, BudgetShares, Scope
from rag.services import services
from rag.types import Identity, Who
from rag.types.fields import fields_of
from rag.ui import actions
from rag.ui.formats import money, percent
from rag.ui.forms import draw_field
from rag.ui.text import plain
from rag.ui.widgets import dialog, draw_head, name_labels, red, words_of

SCOPES: dict[Scope, str] = {
    "company": N_("The whole company"),
    "group": N_("A whole group"),
    "person": N_("One person"),
}
SHARES = fields_of(BudgetShares)
PROBLEM = "prices_budget_problem"


def draw_budgets(identity: Identity) -> None:
    """Draw the budgets with the amounts left, and let an administrator set them."""
    with draw_head(_("Budgets")):
        pressed = st.button(_("Set a budget"), key="prices_budget_add", icon=":material/savings:")
        if pressed and not actions.is_needed(identity):
            _set_budget(identity)
    st.caption(
        _("A budget is the most that may be spent in a calendar month ({zone}). When a budget is spent, no paid "
          "model is called: search still works, and answers quote the documents. When the company's budget is spent, "
          "documents whose processing costs money wait until the budget is raised. If a mail server is set up, "
          "administrators get an e-mail.",
          zone=plain(services().analytics.zones.name(identity)))
    )  # fmt: skip
    actions.draw_problem(PROBLEM)
    actions.draw_undo("prices", problem=PROBLEM)
    for budget in services().budgets.list(identity):
        with st.container(horizontal=True, vertical_alignment="center"):
            words = _("{name}: {spent} of {amount}", name=plain(_name(budget)), spent=plain(money(budget.spent)),
                      amount=plain(money(budget.amount)))  # fmt: skip
            state = _(":red-badge[Spent]") if budget.is_spent else _(":orange-badge[Nearly spent]")
            st.progress(
                min(1.0, _spent_fraction(budget)),
                f"{words} {state}" if budget.is_near else words,
            )
            asks = (
                _("Warns at {warn} of the budget", warn=percent(float(budget.warn_share)))
                if budget.ask_share is None
                else _(
                    "Warns administrators at {warn} of the budget, asks people at {ask}",
                    warn=percent(float(budget.warn_share)),
                    ask=percent(float(budget.ask_share)),
                )
            )
            st.caption(plain(asks), width="content")
            label = red(_("Remove the budget of {name}", name=plain(_name(budget))))
            if st.button(label, key=f"prices_budget_{budget.id}", icon=":material/delete:"):
                if actions.is_needed(identity):
                    return
                actions.ask_to_remove(
                    "prices",
                    _("Remove this budget?"),
                    f"**{plain(_name(budget))}** {plain(money(budget.amount))}",
                    _("From now on, this budget no longer limits spending."),
                    action=_("Remove the budget of {name}", name=plain(_name(budget))),
                    removed_sentence=_("The budget of {name} is removed.", name=_name(budget)),
                    take=partial(services().budgets.remove, identity, budget.id),
                    put_back=partial(services().budgets.put_back, identity),
                    problem=PROBLEM,
                    key="prices_budget_sure",
                )


def draw_warnings(who: Who) -> None:
    """Warn managers about nearly or fully spent budgets."""
    for budget in services().budgets.list(who):
        if not budget.is_near:
            continue
        share = percent(_spent_fraction(budget))
        name = plain(_name(budget))
        if budget.is_spent:
            sentence = _("The budget of {name} is spent: no paid model is called until next month.", name=name)
            st.error(sentence, icon=":material/money_off:")
        else:
            st.warning(
                _("{share} of the budget of {name} is spent.", share=share, name=name), icon=":material/savings:"
            )


def draw_question_to_go_on(identity: Identity) -> None:
    """Ask the person to agree to further paid calls this month, if a budget requires this."""
    budget = services().budgets.asking(identity)
    if budget is None:
        return
    share = percent(_spent_fraction(budget))
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="budget_asks"):
        st.markdown(
            _(
                ":material/savings: {share} of this month's budget is spent. Answers quote the documents until you "
                "choose to continue with models.",
                share=plain(share),
            ),
            width="stretch",
        )
        if st.button(_("Continue with models"), key="budget_go_on", type="primary"):
            services().budgets.agree(identity, budget.id)
            st.rerun()


def draw_broken_by(who: Who, cost: Decimal | None) -> None:
    """Warn if `cost` exceeds the amount left in the company's budget. Called before the person confirms the cost."""
    if not cost:
        return
    budget = services().budgets.broken_by(who, cost)
    if budget is None:
        return
    remaining = plain(money(budget.left))
    st.warning(
        _("This would cost more than is left in the company's budget for this month: {left}.", left=remaining),
        icon=":material/savings:",
    )


def _spent_fraction(budget: Budget) -> float:
    """Return the spent fraction of a budget. It is above 1 for an overspent budget, and 1 for a budget of zero."""
    return float(budget.spent / budget.amount) if budget.amount else 1.0


def _name(budget: Budget) -> str:
    return {"company": _("the company"), "group": budget.user_group, "person": budget.person}[budget.scope]


@dialog(N_("Set a budget"), icon=":material/savings:")
def _set_budget(identity: Identity) -> None:
    running = services()
    scope: Scope = (
        st.radio(_("For"), list(SCOPES), format_func=words_of(SCOPES), key="prices_budget_scope") or "company"
    )
    group, account = "", None
    if scope == "group":
        group = st.selectbox(_("Group"), running.accounts.groups(identity), key="prices_budget_group") or ""
    elif scope == "person":
        people = name_labels({person.id: person.email for person in running.accounts.list(identity)})
        account = st.selectbox(_("Person"), list(people), format_func=people.of, key="prices_budget_person")
    amount = st.text_input(_("US dollars a month"), key="prices_budget_amount", max_chars=20, autocomplete="off")
    warn = draw_field(SHARES["warn_percent"], USUAL_SHARES.warn_percent, key="prices_budget_warn")
    asks = st.toggle(
        _("Ask people before more is spent"), key="prices_budget_asks",
        help=_("When the share chosen below is spent, each person is asked once a month whether to go on using "
               "paid models."),
    )  # fmt: skip
    ask = draw_field(SHARES["ask_percent"], 90, key="prices_budget_ask") if asks else None
    if st.button(_("Save"), type="primary", icon=":material/check:", key="prices_budget_save"):
        actions.finish(
            running.budgets.set,
            identity,
            scope,
            amount,
            user_group=group,
            account_id=account,
            shares=BudgetShares(warn_percent=warn, ask_percent=ask),
        )
