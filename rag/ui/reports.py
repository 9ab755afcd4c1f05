"""Draw the report of a period: as PDF now, and by e-mail every week."""

from __future__ import annotations

from functools import partial

import streamlit as st

from rag.language import N_, _
from rag.records.analytics import Period
from rag.records.report_pdf import digest_pdf
from rag.scheduled_work import Letters
from rag.services import services
from rag.types import Identity, Role
from rag.ui import actions
from rag.ui.text import plain
from rag.ui.widgets import words_of

PROBLEM = "analytics_report_problem"
READERS = {"nobody": N_("Nobody"), "manager": N_("Managers and administrators"), "admin": N_("Administrators")}


def draw_report(identity: Identity, period: Period) -> None:
    """Draw the button of the report, and for administrators who gets it by e-mail."""
    scheduled = services().scheduled_work
    with st.popover(_("Report"), icon=":material/summarize:", key="analytics_report"):
        actions.draw_export(
            identity, _("Save as PDF"), partial(_pdf, identity, period), f"report_{period.first}_{period.last}.pdf",
            key="analytics_report_pdf", media_type="application/pdf",
        )  # fmt: skip
        st.caption(_("The figures of the chosen period against the one before, gaps, and the most used documents."))
        if not identity.may(Role.ADMIN):
            return
        if not scheduled.can_send:
            st.caption(_("With a mail server (RAG_SMTP_URL, RAG_MAIL_FROM), it is sent every Monday, and alerts too."))
            return
        if st.session_state.get(PROBLEM):
            st.error(plain(st.session_state[PROBLEM]), icon=":material/error:")
        kept = scheduled.letters(identity.tenant_id)
        st.selectbox(
            _("By e-mail every Monday to"), list(READERS), index=_place(kept.digest_for),
            format_func=words_of(READERS), key="analytics_report_to", on_change=partial(_save, identity),
        )  # fmt: skip
        st.selectbox(
            _("Alerts of budgets and answers to"), list(READERS), index=_place(kept.alerts_for),
            format_func=words_of(READERS), key="analytics_alerts_to", on_change=partial(_save, identity),
        )  # fmt: skip


def _pdf(identity: Identity, period: Period) -> bytes:
    return digest_pdf(services().scheduled_work.digest(identity.tenant_id, period))


def _place(role: Role | None) -> int:
    return list(READERS).index("nobody" if role is None else role.value)


def _save(identity: Identity) -> None:
    state = st.session_state
    chosen = [None if value == "nobody" else Role(value) for value in (state.analytics_report_to,
                                                                         state.analytics_alerts_to)]  # fmt: skip
    letters = Letters(digest_for=chosen[0], alerts_for=chosen[1])
    actions.attempt(PROBLEM, services().scheduled_work.set_letters, identity, letters)
