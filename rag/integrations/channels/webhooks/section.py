"""Draw webhooks and their deliveries, with dialogs to add and remove a webhook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from functools import partial

import streamlit as st

from rag.integrations.channels.webhooks.webhooks import TEST, Delivery, Webhook, Webhooks, WebhookValues
from rag.language import N_, _
from rag.records.events import EVENTS
from rag.types import Identity
from rag.types.fields import fields_of
from rag.ui import actions, lists
from rag.ui.formats import ago, date_time, time_zone
from rag.ui.forms import draw_fields, entered
from rag.ui.text import plain
from rag.ui.widgets import dialog, draw_head, draw_secret, red, words_of

ABOUT = N_(
    "A webhook informs another program at once when something happens here: it sends a signed message to an address. "
    "If a message is not accepted, further attempts follow for about a day."
)
STATES = {"waiting": N_("Waiting"), "delivered": N_("Delivered"), "failed": N_("Failed")}
ERROR = "programs_error"
NEW = fields_of(WebhookValues, "name", "address")


def _attempt(action: Callable[..., object], *arguments: object, **changes: object) -> None:
    actions.attempt(ERROR, action, *arguments, **changes)


def draw_webhooks(webhooks: Webhooks, identity: Identity) -> None:
    """Draw the section for webhooks on the page Other programs, with dialogs."""
    zone = time_zone(st.context.timezone)
    with draw_head(_("Webhooks")):
        is_clicked = st.button(_("Add a webhook"), key="programs_webhook_add", icon=":material/webhook:")
        if is_clicked and not actions.is_needed(identity):
            _ask_for_webhook(webhooks, identity)
    st.caption(_(ABOUT))
    if added_webhook := st.session_state.get("programs_webhook_made"):
        _show_secret(*added_webhook)
    rows = webhooks.list(identity)
    if not rows:
        st.caption(_("There is no webhook yet."))
        return
    chosen = _draw_table(rows)
    if chosen is None:
        st.caption(_("Select a row (Shift + Space on the keyboard) to see what was sent, to test or to remove it."))
        return
    _draw_webhook(webhooks, identity, chosen, zone)


def _draw_table(rows: Sequence[Webhook]) -> Webhook | None:
    return lists.choose_row(
        rows,
        {
            _("Name"): [webhook.name for webhook in rows],
            _("Address"): [webhook.address for webhook in rows],
            _("Events"): [
                ", ".join(_(EVENTS[event]) for event in webhook.events if event in EVENTS) or _("Everything")
                for webhook in rows
            ],
            _("Status"): [_("On") if webhook.is_active else _("Off") for webhook in rows],
            _("Delivered in the last 7 days"): [webhook.delivered for webhook in rows],
            _("Failed in the last 7 days"): [webhook.failed for webhook in rows],
            _("Last delivered"): [ago(w.last_delivered_at) if w.last_delivered_at else "" for w in rows],
        },
        key="programs_webhooks",
        alt=_("Webhooks with address, events, and the number of delivered messages"),
    )


def _draw_webhook(webhooks: Webhooks, identity: Identity, webhook: Webhook, zone: tzinfo) -> None:
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(webhook.name)}**", width="content")
            st.button(
                _("Send a test"),
                key=f"programs_webhook_test_{webhook.id}",
                icon=":material/send:",
                disabled=not webhook.is_active,
                on_click=_attempt,
                args=(webhooks.test, identity, webhook.id),
            )
            st.button(
                _("Turn off") if webhook.is_active else _("Turn on"),
                key=f"programs_webhook_switch_{webhook.id}",
                icon=":material/power_settings_new:",
                on_click=_attempt,
                args=(webhooks.switch, identity, webhook.id),
                kwargs={"is_active": not webhook.is_active},
            )
            label = red(_("Remove {name}", name=plain(webhook.name)))
            if st.button(label, key=f"programs_webhook_remove_{webhook.id}", icon=":material/delete:"):
                _ask_to_remove(webhooks, identity, webhook)
        deliveries = webhooks.deliveries(identity, webhook.id, limit=50)
        if not deliveries:
            st.caption(_("Nothing was sent yet."))
            return
        chosen = _draw_deliveries(deliveries, zone)
        if chosen is not None and chosen.status != "waiting":
            st.button(
                _("Send again"),
                key=f"programs_delivery_again_{chosen.id}",
                icon=":material/replay:",
                on_click=_attempt,
                args=(webhooks.deliver_again, identity, chosen.id),
            )


def _draw_deliveries(deliveries: Sequence[Delivery], zone: tzinfo) -> Delivery | None:
    names = {**EVENTS, TEST: N_("A test")}
    return lists.choose_row(
        deliveries,
        {
            _("When"): [date_time(delivery.created_at, zone) for delivery in deliveries],
            _("Event"): [_(names.get(delivery.kind, delivery.kind)) for delivery in deliveries],
            _("Status"): [_(STATES[delivery.status]) for delivery in deliveries],
            _("Attempts"): [delivery.attempts for delivery in deliveries],
            _("Answer"): [delivery.answer for delivery in deliveries],
            _("Next attempt"): [date_time(d.next_at, zone) if d.next_at else "" for d in deliveries],
        },
        key="programs_deliveries",
        of=lambda delivery: (delivery.id, delivery.status),
        alt=_("Messages to this webhook, with the answers"),
    )


@dialog(N_("Add a webhook"), icon=":material/webhook:")
def _ask_for_webhook(webhooks: Webhooks, identity: Identity) -> None:
    state = st.session_state

    def add() -> None:
        values = entered(NEW.values(), "programs_webhook")
        state.programs_webhook_made = webhooks.add(identity, **values, events=state.programs_webhook_events)

    with st.form("programs_webhook", border=False):
        draw_fields(NEW.values(), "programs_webhook")
        st.multiselect(
            _("Events"),
            list(EVENTS),
            key="programs_webhook_events",
            format_func=words_of(EVENTS),
            placeholder=_("Everything"),
        )
        actions.draw_submit(_("Add the webhook"), add, key="programs_webhook_error", icon=":material/webhook:")


@dialog(N_("The secret of your webhook"), icon=":material/key:", dismissible=False)
def _show_secret(webhook: Webhook, secret: str) -> None:
    st.markdown(_("Copy the secret for **{name}** now. It cannot be shown again.", name=plain(webhook.name)))
    advice = _(
        "With this secret, the program checks that a message comes from here (Standard Webhooks). If the "
        "secret is lost, remove the webhook and add it again."
    )
    draw_secret(secret, advice, _("I have copied it"), "programs_webhook_made")


def _ask_to_remove(webhooks: Webhooks, identity: Identity, webhook: Webhook) -> None:
    actions.ask_to_remove(
        "programs",
        _("Remove this webhook?"),
        f"**{plain(webhook.name)}** :gray[{plain(webhook.address)}]",
        _("This webhook gets no more messages, and its list of sent messages is removed."),
        action=_("Remove {name}", name=plain(webhook.name)),
        removed_sentence=_("{name} is removed.", name=webhook.name),
        take=partial(webhooks.remove, identity, webhook.id),
        put_back=partial(webhooks.put_back, identity),
        problem=ERROR,
        key="programs_webhook_remove",
    )
