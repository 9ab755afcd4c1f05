"""Where somebody is signed in, each with a button that ends it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import tzinfo

import streamlit as st

from rag.access.sessions import OpenSession
from rag.ui.formats import ago, count, date_time
from rag.ui.text import plain

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
    """A browser as people call it: `Firefox on Windows`; of anything else its first word."""
    browser = next((name for mark, name in BROWSERS if re.search(rf"{mark}\w*/", user_agent)), "")
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    if browser:
        return f"{browser} on {system}" if system else browser
    return user_agent.split("/")[0].split(" ")[0][:40] or "Unknown program"


def draw_sessions(
    sessions: Sequence[OpenSession], own_session_id: str, zone: tzinfo, end: Callable[[OpenSession], None]
) -> None:
    """One row for each session, latest first; the one that looks has no button."""
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
