"""API keys on the page People: what there is, a new one, an end to one. A secret is shown once and never again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo

import pandas as pd
import streamlit as st

from rag.access.api_keys import LASTS_DAYS, MOST_REQUESTS_PER_MINUTE, REQUESTS_PER_MINUTE, SCOPES, ApiKey, ApiKeys
from rag.errors import RagError
from rag.types import Identity
from rag.ui import sign_in_again
from rag.ui.formats import SELECT_A_ROW, date_time
from rag.ui.text import plain

ABOUT = (
    "A key lets a program ask questions or manage documents for your organisation, without anybody's password. "
    "Give each program its own, with only what it needs. What the API can do is described at [/api/docs](/api/docs)."
)
SHOWN_SCOPES = {scope: f"{words} ({scope})" for scope, words in SCOPES.items()}


def draw_api_keys(keys: ApiKeys, identity: Identity, zone: tzinfo) -> None:
    """The whole section, with its dialogs."""
    found = keys.list(identity)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader("API keys", anchor=False, width="content")
        is_asked = st.button("Make a key", key="people_key_add", icon=":material/key:")
        if is_asked and not sign_in_again.is_needed(identity):
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
        sign_in_again.draw_error(error)
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
