"""Show who changed what, and when. For administrators. Nobody can change or remove an entry."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import streamlit as st

from rag.language import N_, _, ngettext
from rag.records.audit import AuditEntry, AuditFilters
from rag.services import require, services
from rag.types import Role
from rag.ui import actions, lists
from rag.ui.formats import count, date_time, thousands, time_zone
from rag.ui.people import AUDIT_KINDS, action_name, change_words, changed_values
from rag.ui.text import plain
from rag.ui.theme import PRODUCT

PERIODS = {N_("Last 7 days"): 7, N_("Last 30 days"): 30, N_("Last year"): 365, N_("All"): None}
MOST_ENTRIES = 500

identity = require(Role.ADMIN)
audit = services().audit
zone = time_zone(st.context.timezone)


def draw_entry(entry: AuditEntry) -> None:
    """Draw an audit entry in full: each changed field before and after."""
    with st.container(border=True, key=f"audit_entry_{entry.id}", gap="small"):
        who = plain(entry.actor or PRODUCT)
        st.markdown(f"**{plain(action_name(entry.action))}** {plain(things(entry))}")
        st.caption(
            _(
                "{who} · {created_at} · entry {id}",
                who=who,
                created_at=plain(date_time(entry.created_at, zone)),
                id=f"{entry.id:,}",
            )
        )
        if entry.things > 1:
            names = "\n".join(entry.targets)
            st.text_area(_("Items"), names, height=160, disabled=True, key=f"audit_targets_{entry.id}")
        pairs = [
            (name, *map(in_full, values if isinstance(values, list) and len(values) == 2 else [None, values]))
            for _field, name, values in changed_values(entry)
        ]
        if not pairs:
            st.caption(_("There are no more details about this entry."))
            return
        lists.draw(
            {
                _("Field"): [name for name, _before, _after in pairs],
                _("Before"): [before for _name, before, _after in pairs],
                _("After"): [after for _name, _before, after in pairs],
            },
            row_height=60 if any(len(value) > 60 for _name, *values in pairs for value in values) else None,
            key=f"audit_fields_{entry.id}",
            alt=_("What the entry changed: each field before and after"),
        )


def things(entry: AuditEntry) -> str:
    """Return the changed item's name for an audit entry. For several items, return "Handbook and 2 more"."""
    if entry.things == 1:
        return entry.target
    first = entry.targets[0] if entry.targets else ""
    return ngettext("{first} and {count} more", "{first} and {count} more", entry.things - 1, first=first)


def in_full(value: object) -> str:
    if isinstance(value, str):
        return names.get(value, value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


st.title(_("Audit log"), anchor=False)
st.caption(
    _(
        "Here you see who changed something, signed in, exported data or read the questions of others. Nobody can "
        "change an entry."
    )
)
with st.grid(4, min_column_width=170):
    period = st.selectbox(_("Period"), list(PERIODS), index=1, format_func=_, key="audit_period")
    kind = st.selectbox(_("Kind"), list(AUDIT_KINDS), format_func=_, key="audit_kind")
    actor = st.selectbox(_("Person"), audit.actors(identity), index=None, placeholder=_("Everybody"), key="audit_actor")
    text = st.text_input(
        _("Contains"), key="audit_text", placeholder=_("Name or value of a setting"), icon=":material/search:"
    )
days = PERIODS[period or "All"]
filters: AuditFilters = {
    "since": datetime.now(UTC) - timedelta(days=days) if days else None,
    "actor": actor,
    "kind": AUDIT_KINDS[kind or "Everything"],
    "text": text or "",
}
entries = audit.entries(identity, limit=MOST_ENTRIES, **filters)
if not entries:
    is_filtered = bool(AUDIT_KINDS[kind or "Everything"] or actor or text)
    st.caption(_("No change matches these filters.") if is_filtered else _("Nobody changed anything in this period."))
    st.stop()
names = {str(c.id): c.name for c in services().documents.collections(identity)}
names |= {str(person.id): person.name or person.email for person in services().accounts.list(identity)}
HEADS = (_("When"), _("Who"), _("What"), _("Item"), _("Change"))


def words(entry: AuditEntry) -> tuple[str, ...]:
    """Return an audit entry's texts for a row in the table and the CSV file."""
    when = date_time(entry.created_at, zone)
    return when, entry.actor or PRODUCT, action_name(entry.action), things(entry), change_words(entry, names)


columns = zip(*map(words, entries), strict=True)
widths = (135, 150, 185, 150, 420)
chosen = lists.choose_row(
    entries,
    {head: lists.texts(values, width) for head, values, width in zip(HEADS, columns, widths, strict=True)},
    key="audit_table",
    alt=_("Changes with time, person, kind and details"),
)
if chosen is not None:
    draw_entry(chosen)
else:
    st.caption(_("Select a row (Shift + Space on the keyboard) to open an entry."))
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    more = (
        _(" (only the latest {shown} are shown)", shown=thousands(MOST_ENTRIES)) if len(entries) == MOST_ENTRIES else ""
    )
    st.caption(f"{count(len(entries), 'entry', 'entries')}{more}")
    actions.draw_export(
        identity,
        _("Download as JSON lines"),
        lambda: audit.export_json(identity, audit.rows(identity, **filters)),
        "audit-log.jsonl",
        key="audit_export_json",
        media_type="application/jsonl",
    )
    actions.draw_export(
        identity,
        _("Download as CSV"),
        lambda: audit.export_csv(identity, HEADS, map(words, audit.rows(identity, **filters))),
        "audit-log.csv",
        key="audit_export",
    )
