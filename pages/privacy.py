"""Show and set how long personal data is kept, who sees names, and one person's data. For administrators."""

from __future__ import annotations

from functools import partial

import streamlit as st

from rag.language import N_, _, ngettext
from rag.records.privacy import LEAST_DAYS
from rag.services import require, services
from rag.types import Role
from rag.ui import actions, lists
from rag.ui.formats import date_time, time_zone
from rag.ui.text import plain
from rag.ui.widgets import dialog, name_labels, red, words_of

PROBLEM = "privacy_problem"
DONE = "privacy_done"
#: Days after which personal data is deleted; 0 keeps it.
RETENTION = {0: N_("Kept until they are deleted"), 30: N_("30 days"), 90: N_("90 days"), 180: N_("Half a year"),
        365: N_("A year"), 730: N_("Two years")}  # fmt: skip
NAMES = {"admin": N_("Administrators"), "manager": N_("Managers and administrators"), "nobody": N_("Nobody")}
COUNTED = {
    "questions": N_("Questions"),
    "conversations": N_("Conversations"),
    "ratings": N_("Ratings"),
    "help_requests": N_("Questions sent to a person"),
    "acts": N_("Entries of the audit log"),
}

identity = require(Role.ADMIN)
running = services()
privacy = running.privacy
zone = time_zone(st.context.timezone)


def save_retention() -> None:
    days = st.session_state.privacy_retention
    if actions.attempt(PROBLEM, privacy.set_retention_for, identity, days or None):
        st.session_state[DONE] = _("Saved.")


def save_names() -> None:
    chosen = st.session_state.privacy_names
    role = None if chosen == "nobody" else Role(chosen)
    if actions.attempt(PROBLEM, running.analytics.set_names_for, identity, role):
        st.session_state[DONE] = _("Saved.")


def draw_retention() -> None:
    st.header(_("How long texts are kept"), anchor=False)
    st.caption(
        _("Every night, everything older than this is deleted: questions, answers, texts sent to models, comments "
          "and conversations. Costs, times and outcomes stay, because they name nobody.")
    )  # fmt: skip
    days = privacy.retention_days(identity.tenant_id) or 0
    options = sorted({*RETENTION, days})
    labels = name_labels({
        option: _(RETENTION[option]) if option in RETENTION else ngettext("{count} day", "{count} days", option)
        for option in options
    })  # fmt: skip
    st.selectbox(
        _("Delete texts after"), options, index=options.index(days), format_func=labels.of, key="privacy_retention",
        on_change=save_retention, width=320,
        help=_("Choose at least {days} days, so that people can come back to their answers.", days=LEAST_DAYS),
    )  # fmt: skip
    st.header(_("Who may see the names of the people who ask"), anchor=False)
    st.caption(
        _("The people chosen here see names beside each question in Analytics and in the export. All others see "
          "only groups. The audit log records who reads another person's question.")
    )  # fmt: skip
    role = running.analytics.names_for(identity.tenant_id)
    chosen = "nobody" if role is None else role.value
    st.segmented_control(
        _("Names are shown to"), list(NAMES), default=chosen, required=True, format_func=words_of(NAMES),
        key="privacy_names", on_change=save_names,
    )  # fmt: skip


def draw_person() -> None:
    st.header(_("One person's data"), anchor=False)
    st.caption(
        _("Export or erase everything that is kept about one person: account, questions, conversations, ratings "
          "and the name in the audit log. Costs and times are kept without the name.")
    )  # fmt: skip
    people = name_labels(
        {person.email: f"{person.name} · {person.email}" for person in running.accounts.list(identity)}
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        email = st.selectbox(
            _("Person"), list(people), index=None, format_func=people.of, placeholder=_("Choose a person"),
            key="privacy_person", width=380,
        )  # fmt: skip
        if email is None:
            return
        actions.draw_export(
            identity, _("Export as JSON"), partial(privacy.export_for, identity, email), "person.json",
            key="privacy_export", media_type="application/json",
        )  # fmt: skip
        if st.button(red(_("Erase")), icon=":material/person_remove:", key="privacy_erase") and not actions.is_needed(
            identity
        ):
            ask_to_erase(email)


@dialog(N_("Erase a person's data"), icon=":material/person_remove:")
def ask_to_erase(email: str) -> None:
    st.markdown(
        _("Everything of **{email}** is erased: account, questions, answers, conversations, "
          "ratings and comments. This cannot be undone.", email=plain(email))
    )  # fmt: skip
    st.caption(
        _(
            "Backups made before the erasure contain the data until these backups are deleted. When such a backup is "
            "restored, the data is erased again."
        )
    )
    typed = st.text_input(_("Type the address to confirm"), key="privacy_typed", autocomplete="off")
    if st.button(red(_("Erase for good")), key="privacy_erase_confirmed", disabled=typed.strip().lower() != email):
        actions.finish(erase, email)


def erase(email: str) -> None:
    receipt = privacy.erase_for(identity, email)
    st.session_state.pop("privacy_person", None)
    st.session_state[DONE] = _("Erased. The receipt is {receipt}.", receipt=str(receipt.id))


def draw_receipts() -> None:
    st.header(_("Receipts"), anchor=False)
    receipts = privacy.receipts(identity.tenant_id)
    if not receipts:
        st.caption(_("No data was erased yet. Each erasure leaves a receipt here, with numbers only and no content."))
        return
    lists.draw(
        {
            _("Erased"): [date_time(receipt.erased_at, zone) for receipt in receipts],
            _("Receipt"): [str(receipt.id) for receipt in receipts],
            _("Former account"): [str(receipt.erased_id) for receipt in receipts],
            **{_(words): [receipt.counts.get(kind, 0) for receipt in receipts] for kind, words in COUNTED.items()},
        },
        key="privacy_receipts",
        alt=_("Receipts of erasures"),
    )


st.title(_("Privacy"), anchor=False)
actions.draw_done(DONE)
actions.draw_problem(PROBLEM)
with st.container(border=True):
    draw_retention()
with st.container(border=True):
    draw_person()
with st.container(border=True):
    draw_receipts()
