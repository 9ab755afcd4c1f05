"""Show each model's list price and the company's price. For administrators.

A price applies from a day on; earlier charges stay unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

import streamlit as st

from rag.language import _, day
from rag.money.price_list import UNIT_NAMES, Price
from rag.services import require, services
from rag.types import Role
from rag.ui import actions, lists
from rag.ui.budgets import draw_budgets
from rag.ui.formats import count
from rag.ui.widgets import draw_head, words_of

identity = require(Role.ADMIN)
prices = services().prices
state = st.session_state
state.setdefault("prices_done", "")


def amount(price: Decimal | None) -> str:
    return "" if price is None else f"${price.normalize():f}"


def planned(price: Price) -> str:
    return ", ".join(
        _("{price} from {day}", price=amount(change.price) or _("the listed price"), day=day(change.valid_from))
        for change in price.planned
    )


def draw_list(price_list: Sequence[Price]) -> None:
    """Draw every list price, with the company's own price, if any."""
    lists.draw(
        {
            _("Model"): [price.model for price in price_list],
            _("For"): [_(UNIT_NAMES[price.unit]) for price in price_list],
            _("List price"): [amount(price.listed) or _("No list price") for price in price_list],
            _("Price list"): [price.source for price in price_list],
            _("Your price"): [amount(price.own) for price in price_list],
            _("Since"): [str(price.own_since or "") for price in price_list],
            _("Planned price"): [planned(price) for price in price_list],
        },
        alt=_("Prices of models: list price, your own price and the first day of your own price"),
    )
    st.caption(count(len(price_list), "price"))


@st.dialog(_("Set a price"), icon=":material/payments:")
def ask_for_price(price_list: Sequence[Price]) -> None:
    def save() -> None:
        text = (state.prices_price or "").strip().removeprefix("$")
        prices.set(identity, state.prices_model or "", state.prices_unit, text or None, state.prices_from)
        state.prices_done = _("Price saved.")

    with st.form("prices_set", border=False):
        st.selectbox(
            _("Model"),
            sorted({price.model for price in price_list}),
            index=None,
            key="prices_model",
            accept_new_options=True,
            placeholder=_("Choose or type a model"),
            help=_("The name that the provider gives the model, such as gpt-4o."),
        )
        st.selectbox(_("For"), list(UNIT_NAMES), format_func=words_of(UNIT_NAMES), key="prices_unit")
        st.text_input(
            _("US dollars"),
            key="prices_price",
            max_chars=20,
            autocomplete="off",
            help=_("Leave this empty to go back to the listed price."),
        )
        st.date_input(
            _("From"),
            datetime.now(UTC).date(),
            min_value=datetime.now(UTC).date(),
            key="prices_from",
            help=_("The first day (UTC) of this price. Earlier charges keep their price."),
        )
        actions.draw_submit(_("Save"), save, key="prices_error", icon=":material/check:")


price_list = prices.list(identity)
with draw_head(_("Prices"), is_title=True):
    if st.button(_("Set a price"), key="prices_add", type="primary", icon=":material/payments:") and (
        not actions.is_needed(identity)
    ):
        ask_for_price(price_list)
st.caption(
    _(
        "Costs are calculated with the listed prices, or with your own price if you have set one. A new price "
        "applies from its first day. Earlier charges do not change."
    )
)
actions.draw_done("prices_done")
if price_list:
    draw_list(price_list)
else:
    st.caption(_("A model appears here after its first use. You can set its price earlier."))
draw_budgets(identity)
