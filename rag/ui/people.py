"""Draw roles, API keys, open sessions and the audit log for administrators."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

import pandas as pd
import streamlit as st

from rag.access.api_keys import LASTS_DAYS, MOST_REQUESTS_PER_MINUTE, REQUESTS_PER_MINUTE, SCOPES, ApiKey, ApiKeys
from rag.access.connected_apps import ConnectedApp
from rag.access.sessions import OpenSession
from rag.errors import RagError
from rag.records.audit import AuditEntry
from rag.types import Identity, Role
from rag.ui import actions
from rag.ui.formats import SELECT_A_ROW, STATUSES, ago, count, date_time
from rag.ui.text import plain

ROLES: Mapping[Role, str] = {Role.EMPLOYEE: "Employee", Role.MANAGER: "Manager", Role.ADMIN: "Administrator"}


ABOUT = (
    "A key lets a program ask questions or manage documents for your organisation, without anybody's password. "
    "Give each program its own, with only what it needs. What the API can do is described at [/api/docs](/api/docs)."
)


SHOWN_SCOPES = {scope: f"{words} ({scope})" for scope, words in SCOPES.items()}


def draw_api_keys(keys: ApiKeys, identity: Identity, zone: tzinfo) -> None:
    """Draw the section of API keys with its dialogs."""
    found = keys.list(identity)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader("API keys", anchor=False, width="content")
        is_asked = st.button("Make a key", key="people_key_add", icon=":material/key:")
        if is_asked and not actions.is_needed(identity):
            st.session_state.people_key_error = None
            _ask_for_key(keys, identity)
    st.caption(ABOUT)
    if made := st.session_state.pop("people_key_made", None):
        _show_secret(*made)
    if not found:
        st.caption("There is no key yet.")
        return
    chosen = _draw_table(found, zone)
    if chosen is None and any(key.works for key in found):
        st.caption(f"{SELECT_A_ROW} to revoke a key.")
    if chosen is not None and chosen.works:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(chosen.name)}** :gray[{plain(chosen.hint)}…]", width="content")
            if st.button("Revoke", key=f"people_key_revoke_{chosen.id}", icon=":material/key_off:"):
                _ask_to_revoke(keys, identity, chosen)


def _draw_table(found: Sequence[ApiKey], zone: tzinfo) -> ApiKey | None:
    def when(moment: datetime | None, otherwise: str) -> str:
        return date_time(moment, zone) if moment else otherwise

    table = pd.DataFrame(
        {
            "Name": [key.name for key in found],
            "Key": [f"{key.hint}…" for key in found],
            "Status": [_status(key) for key in found],
            "Expires": [date_time(key.expires_at, zone) for key in found],
            "Last used": [when(key.last_used_at, "Never") for key in found],
            "May": [", ".join(key.scopes) for key in found],
            "Requests a minute": [key.requests_per_minute for key in found],
            "Owner": [key.owner_name or "Operator" for key in found],
        }
    )
    picked = st.dataframe(
        table,
        hide_index=True,
        width="stretch",
        on_select="rerun",
        selection_mode="single-row",
        key=f"people_keys_{hash(tuple((k.id, k.works) for k in found)) & 0xFFFFFFFF}",
        alt="API keys with what they may do, their owner and status, when they expire and when they were last used",
    )
    rows = picked.selection.rows
    return found[rows[0]] if rows and rows[0] < len(found) else None


def _status(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return "Revoked"
    if key.is_expired:
        return "Expired"
    return "Active" if key.has_owner else "Stopped: its owner is no administrator any more"


@st.dialog("Make an API key", icon=":material/key:")
def _ask_for_key(keys: ApiKeys, identity: Identity) -> None:
    state = st.session_state

    def make() -> None:
        day: date | None = state.people_key_expires
        expires_at = datetime.combine(day + timedelta(days=1), time(), UTC) if day else None
        try:
            state.people_key_made = keys.create(
                identity,
                state.people_key_name,
                state.people_key_scopes,
                expires_at,
                requests_per_minute=state.people_key_limit,
            )
        except RagError as error:
            state.people_key_error = error

    with st.form("people_key", border=False):
        st.text_input(
            "Name", key="people_key_name", max_chars=80, autocomplete="off", help="The program that will use it."
        )
        st.multiselect(
            "What it may do",
            list(SCOPES),
            ["chat", "search"],
            format_func=SHOWN_SCOPES.__getitem__,
            key="people_key_scopes",
        )
        st.date_input(
            "Last day",
            datetime.now(UTC).date() + timedelta(days=LASTS_DAYS - 1),
            min_value="today",
            key="people_key_expires",
            help="It stops working when this day is over (UTC), or when your account is disabled or loses its role.",
        )
        st.number_input("Requests a minute", 1, MOST_REQUESTS_PER_MINUTE, REQUESTS_PER_MINUTE, key="people_key_limit")
        st.form_submit_button("Make the key", type="primary", icon=":material/key:", on_click=make)
    if error := state.get("people_key_error"):
        actions.draw_error(error)
    if "people_key_made" in state:
        st.rerun()


@st.dialog("Your new API key", icon=":material/key:", dismissible=False)
def _show_secret(key: ApiKey, secret: str) -> None:
    st.markdown(f"Copy the key for **{plain(key.name)}** now. It is not stored and cannot be shown again.")
    st.code(secret, language=None, wrap_lines=True)
    st.caption("Send it as “Authorization: Bearer”. If it is lost or seen by others, revoke it and make another.")
    if st.button("I have copied it", key="people_key_done", type="primary"):
        st.rerun()


@st.dialog("Revoke this key?", icon=":material/key_off:")
def _ask_to_revoke(keys: ApiKeys, identity: Identity, key: ApiKey) -> None:
    st.markdown(f"**{plain(key.name)}** :gray[{plain(key.hint)}…]")
    st.markdown("Programs that use it are refused from their next request on. A revoked key cannot be brought back.")
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep it", key="people_key_keep"):
            st.rerun()
        if st.button(
            "Revoke",
            key="people_key_revoke_confirmed",
            type="primary",
            icon=":material/key_off:",
            on_click=keys.revoke,
            args=(identity, key.id),
        ):
            st.rerun()


BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrome", "Chrome"), ("Safari", "Safari"))


SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)


def device(user_agent: str) -> str:
    """Name a browser as people call it: `Firefox on Windows`; of anything else its first word."""
    browser = next((name for mark, name in BROWSERS if re.search(rf"{mark}\w*/", user_agent)), "")
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    if browser:
        return f"{browser} on {system}" if system else browser
    return user_agent.split("/")[0].split(" ")[0][:40] or "Unknown program"


def draw_sessions(
    sessions: Sequence[OpenSession], own_session_id: str, zone: tzinfo, end: Callable[[OpenSession], None]
) -> None:
    """Draw a row for each session, latest first; the current one has no button."""
    st.caption(f"Signed in at {count(len(sessions), 'place')}." if sessions else "Not signed in anywhere.")
    for session in sessions:
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            here = " :green-badge[This browser]" if session.session_id == own_session_id else ""
            st.markdown(
                f"**{plain(device(session.user_agent))}**{here}  \n"
                f":gray[Last used {plain(ago(session.last_seen_at))} · signed in "
                f"{plain(date_time(session.created_at, zone))} · ends {plain(date_time(session.expires_at, zone))}]",
                width="content",
            )
            if session.session_id != own_session_id:
                st.button(
                    "Sign out",
                    key=f"end_{session.session_id}",
                    icon=":material/logout:",
                    on_click=end,
                    args=(session,),
                )


def draw_apps(apps: Sequence[ConnectedApp], disconnect: Callable[[ConnectedApp], None]) -> None:
    """Draw a row for each program that acts for a person, latest first, with a button that ends it."""
    st.caption("They act for you: they see what you may read here, and can change nothing.")
    for app in apps:
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            used = f"last used {ago(app.last_used_at)}" if app.last_used_at else "not used yet"
            st.markdown(
                f"**{plain(app.name)}**  \n:gray[Answers go to {plain(app.host)} · connected "
                f"{plain(ago(app.created_at))} · {plain(used)}]",
                width="content",
            )
            st.button(
                "Disconnect",
                key=f"disconnect_{app.id}",
                icon=":material/link_off:",
                on_click=disconnect,
                args=(app,),
            )


FIELDS: Mapping[str, str] = {
    "name": "name",
    "role": "role",
    "user_group": "group",
    "is_active": "active",
    "password_hash": "password",
    "account_id": "account",
    "expires_at": "end",
    "confirmed_at": "in use since",
    "embedding_model": "embedding model",
    "overrides": "settings",
    "groups": "groups that may read it",
    "calibrated_threshold": "measured threshold",
    "collection_id": "collection",
    "chunking_method": "chunking",
    "generate_metadata": "tags",
    "pending_steps": "steps asked for",
    "from_model": "model before",
    "to_model": "new model",
    "cleaned_at": "old vectors removed",
    "kind": "kind of source",
    "valid_from": "from",
}


LONGEST_VALUE = 120


#: A point in time as the database writes it into JSON.
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*[+-]\d\d:\d\d$")


#: What is stored under a word of the program, as the pages call it.
WORDS: Mapping[str, str] = {status.value: words.lower() for status, (words, _) in STATUSES.items()}


def change_words(entry: AuditEntry, collections: Mapping[str, str] | None = None) -> str:
    """Describe a change in one line: `role: employee → manager; group: Sales`. `collections` are names by id."""
    words_of = {"status": WORDS, "collection_id": collections or {}}
    parts = []
    for field, values in sorted(entry.changes.items()):
        name, names = FIELDS.get(field, field.replace("_", " ")), words_of.get(field, {})
        if not isinstance(values, list) or len(values) != 2:
            parts.append(f"{name} {_shown(values, names)}")
        elif entry.action.endswith(" changed"):
            parts.append(f"{name}: {_shown(values[0], names)} → {_shown(values[1], names)}")
        elif (value := values[1] if entry.action.endswith(" added") else values[0]) not in (None, "", [], {}):
            parts.append(f"{name}: {_shown(value, names)}")
    return "; ".join(parts)


def _shown(value: Any, names: Mapping[str, str]) -> str:
    if value is None or value == "":
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "everybody"
    if isinstance(value, dict):
        return ", ".join(f"{k} = {v}" for k, v in sorted(value.items()))[:LONGEST_VALUE] or "nothing"
    if isinstance(value, str) and MOMENT.match(value):
        return f"{date_time(datetime.fromisoformat(value), UTC)} UTC"
    return names.get(str(value), str(value))[:LONGEST_VALUE]
