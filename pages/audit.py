"""Show who changed what, and when. For administrators; nobody can change or remove a line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd
import streamlit as st

from rag.services import require, services
from rag.types import Role
from rag.ui import actions
from rag.ui.formats import count, date_time, time_zone
from rag.ui.people import change_words
from rag.ui.theme import PRODUCT

PERIODS = {"Last 7 days": 7, "Last 30 days": 30, "Last year": 365, "All": None}
KINDS = {
    "Everything": None,
    "People": "account",
    "Password links": "password",
    "Second factors": "second",
    "Sessions": "session",
    "API keys": "API",
    "Collections": "collection",
    "Documents": "document",
    "Embedding models": "embedding",
    "Sources": "source",
    "Syncs": "sync",
    "Prices": "price",
    "Company": "company",
    "Exports": "export",
    "Sign-ins": "sign-in",
    "Conversations read": "conversation",
}
SHOWN = 500

identity = require(Role.ADMIN)
audit = services().audit
zone = time_zone(st.context.timezone)

st.title("Audit log", anchor=False)
st.caption(
    "What people changed here, who signed in, exported data or read the questions of others. No entry can be changed."
)
with st.grid(4, min_column_width=170):
    period = st.selectbox("Period", list(PERIODS), index=1, key="audit_period")
    kind = st.selectbox("Kind", list(KINDS), key="audit_kind")
    actor = st.selectbox("Person", audit.actors(identity), index=None, placeholder="Everybody", key="audit_actor")
    text = st.text_input("Contains", key="audit_text", placeholder="A name or a value", icon=":material/search:")
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
        "Nothing was changed that fits these filters." if is_filtered else "Nobody changed anything in this period."
    )
    st.stop()
names = {str(c.id): c.name for c in services().documents.collections(identity)}
table = pd.DataFrame(
    {
        "When": [date_time(entry.created_at, zone) for entry in entries],
        "Who": [entry.actor or PRODUCT for entry in entries],
        "What": [entry.action[:1].upper() + entry.action[1:] for entry in entries],
        "Of": [entry.target for entry in entries],
        "Change": [change_words(entry, names) for entry in entries],
    }
)
st.dataframe(
    table,
    hide_index=True,
    width="stretch",
    column_config={
        "When": st.column_config.TextColumn(width=135),
        "Who": st.column_config.TextColumn(width=165),
        "What": st.column_config.TextColumn(width=135),
        "Of": st.column_config.TextColumn(width=150),
        "Change": st.column_config.TextColumn(width=420),
    },
    alt="Changes with their time, person, kind and what was changed",
)
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    more = f", the latest {SHOWN:,}" if len(entries) == SHOWN else ""
    st.caption(f"{count(len(entries), 'entry', 'entries')}{more}")
    actions.draw_export(
        identity,
        "Download as CSV",
        lambda: audit.export_csv(identity, [str(name) for name in table], table.itertuples(index=False)),
        "audit-log.csv",
        key="audit_export",
    )
