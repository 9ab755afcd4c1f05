"""Speak the reader's language on the pages, and let them choose it.

A page has no context of its own from one click to the next, and what a click calls runs before the page. So the
language is kept in the session of the page, where `rag.language` asks for it.
"""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rag import language
from rag.language import LANGUAGES, _
from rag.services import services
from rag.types import Identity

KEY = "frame_language"


def _of_this_page() -> str:
    running = get_script_run_ctx(suppress_warning=True)
    if running is None:
        return ""
    return str(running.session_state[KEY]) if KEY in running.session_state else ""


language.ask_also(_of_this_page)


def begin(identity: Identity | None) -> None:
    """Speak this person's language from here on: the one they chose, else their browser's."""
    browser = language.accepted(st.context.headers.get("Accept-Language", ""))
    cookies = st.context.cookies
    chosen = cookies.get("__Host-hr_language") or cookies.get("hr_language", "")
    st.session_state[KEY] = language.choose(identity.language if identity else "", chosen, browser)


def draw_choice(identity: Identity, *, key: str) -> None:
    """Draw the choice of the language. It counts at once, here and wherever this person signs in."""
    st.session_state[key] = language.current()
    st.selectbox(
        _("Language"),
        list(LANGUAGES),
        format_func=LANGUAGES.__getitem__,
        key=key,
        on_change=_choose,
        args=(identity, key),
    )


def _choose(identity: Identity, key: str) -> None:
    chosen = language.choose(str(st.session_state[key]))
    services().sessions.set_language(identity.tenant_id, identity.account_id, chosen)
    st.session_state[KEY] = chosen
