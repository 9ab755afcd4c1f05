"""Show who changed what, and when. For administrators; nobody can change or remove a line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd
import streamlit as st

from rag.language import N_, _
from rag.services import require, services
from rag.types import Role
from rag.ui import actions
from rag.ui.formats import count, date_time, thousands, time_zone
from rag.ui.people import action_name, change_words
from rag.ui.theme import PRODUCT

PERIODS = {N_("Last 7 days"): 7, N_("Last 30 days"): 30, N_("Last year"): 365, N_("All"): None}
KINDS = {
    N_("Everything"): None,
    N_("People"): "account",
    N_("Password links"): "password",
    N_("Second factors"): "second",
    N_("Sessions"): "session",
    N_("API keys"): "API",
    N_("Collections"): "collection",
    N_("Documents"): "document",
    N_("Embedding models"): "embedding",
    N_("Sources"): "source",
    N_("Syncs"): "sync",
    N_("Prices"): "price",
    N_("Company"): "company",
    N_("Exports"): "export",
    N_("Sign-ins"): "sign-in",
    N_("Conversations read"): "conversation",
}
SHOWN = 500

identity = require(Role.ADMIN)
audit = services().audit
zone = time_zone(st.context.timezone)

st.title(_("Audit log"), anchor=False)
st.caption(
    _(
        "What people changed here, who signed in, exported data or read the questions of others. No entry can be "
        "changed."
    )
)
with st.grid(4, min_column_width=170):
    period = st.selectbox(_("Period"), list(PERIODS), index=1, format_func=_, key="audit_period")
    kind = st.selectbox(_("Kind"), list(KINDS), format_func=_, key="audit_kind")
    actor = st.selectbox(_("Person"), audit.actors(identity), index=None, placeholder=_("Everybody"), key="audit_actor")
    text = st.text_input(_("Contains"), key="audit_text", placeholder=_("A name or a value"), icon=":material/search:")
days = PERIODS[period or "All"]
entries = audit.entries(
    identity,
    since=datetime.now(UTC) - timedelta(days=days) if days else None,
    actor=actor,
    kind=KINDS[kind or "Everything"],
    text=text or "",
    limit=SHOWN,
)
if not entries:
    is_filtered = bool(KINDS[kind or "Everything"] or actor or text)
    st.caption(
        _("Nothing was changed that fits these filters.")
        if is_filtered
        else _("Nobody changed anything in this period.")
    )
    st.stop()
names = {str(c.id): c.name for c in services().documents.collections(identity)}
table = pd.DataFrame(
    {
        _("When"): [date_time(entry.created_at, zone) for entry in entries],
        _("Who"): [entry.actor or PRODUCT for entry in entries],
        _("What"): [action_name(entry.action) for entry in entries],
        _("Of"): [entry.target for entry in entries],
        _("Change"): [change_words(entry, names) for entry in entries],
    }
)
st.dataframe(
    table,
    hide_index=True,
    width="stretch",
    column_config={
        _("When"): st.column_config.TextColumn(width=135),
        _("Who"): st.column_config.TextColumn(width=165),
        _("What"): st.column_config.TextColumn(width=135),
        _("Of"): st.column_config.TextColumn(width=150),
        _("Change"): st.column_config.TextColumn(width=420),
    },
    alt=_("Changes with their time, person, kind and what was changed"),
)
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    more = _(", the latest {shown}", shown=thousands(SHOWN)) if len(entries) == SHOWN else ""
    st.caption(f"{count(len(entries), 'entry', 'entries')}{more}")
    actions.draw_export(
        identity,
        _("Download as CSV"),
        lambda: audit.export_csv(identity, [str(name) for name in table], table.itertuples(index=False)),
        "audit-log.csv",
        key="audit_export",
    )
