"""Show pages in the reader's language, and let people choose it.

Python's context variables are lost between a page's runs, and callbacks run before the page sets them. The language is
therefore kept in Streamlit's session, from which `rag.language` reads it.
"""

from __future__ import annotations

import threading

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rag import language
from rag.language import LANGUAGES, N_, _
from rag.services import services
from rag.types import Identity
from rag.ui.scripts import script

KEY = "frame_language"


#: Caches the language for this thread's run, because a page reads it some fifty times.
_run = threading.local()


def _of_this_page() -> str:
    if chosen := getattr(_run, "language", ""):
        return str(chosen)
    running = get_script_run_ctx(suppress_warning=True)
    if running is None:
        return ""
    return str(running.session_state[KEY]) if KEY in running.session_state else ""


language.ask_also(_of_this_page)


def begin(identity: Identity | None) -> None:
    """Set the language in which pages are shown to this person: their choice, else the browser's."""
    # Some browsers omit the header in the websocket handshake, such as headless Chromium 150.
    browser = language.accepted(st.context.headers.get("Accept-Language") or st.context.locale or "")
    cookies = st.context.cookies
    chosen = cookies.get("__Host-hr_language") or cookies.get("hr_language", "")
    st.session_state[KEY] = _run.language = language.choose(identity.language if identity else "", chosen, browser)


def draw_choice(identity: Identity, *, key: str) -> None:
    """Draw the language choice. A new choice applies at once, on this page and wherever the person signs in."""
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
    st.session_state[KEY] = _run.language = chosen


#: Streamlit's English texts on these pages: the browser replaces them by ours.
STREAMLIT_WORDS = (
    N_("Upload"),
    N_("Drag and drop files here"),
    N_("Drag and drop a file here"),
    N_("No results"),
    N_("Choose options"),
    N_("Choose an option"),
    N_("Connecting"),
    N_("Connecting to Streamlit server"),
    N_("Running..."),
    N_("Loading..."),
    N_("Stop"),
    N_("Select all"),
    N_("No options to select"),
    N_("No options to select."),
    N_("Show/hide columns"),
    N_("Thumbs up"),
    N_("Thumbs down"),
    N_("Fullscreen"),
    N_("Close fullscreen"),
    N_("Search"),
    N_("Show password"),
    N_("Hide password"),
    N_("Clear value"),
    N_("Clear all"),
    N_("Copy to clipboard"),
    N_("Copied"),
    N_("Collapse sidebar"),
    N_("Expand sidebar"),
    N_("Close"),
    N_("Skip to main content"),
    N_("Type to search"),
    N_("Send message"),
    N_("Next page"),
    N_("Previous page"),
    N_("Page not found"),
    N_("Connection closed"),
    N_("empty"),
    N_("View less"),
    N_("Sort ascending"),
    N_("Sort descending"),
    N_("Autosize"),
    N_("Pin column"),
    N_("Unpin column"),
    N_("Hide column"),
    N_("Format"),
    N_("Copy column name"),
    N_("Dataframe column menu"),
    N_("Clear selection"),
    N_("Previous Result"),
    N_("Next Result"),
    N_("Close Search"),
    N_("Open"),
    N_("Dismiss"),
    N_("Increment"),
    N_("Decrement"),
    N_("Choose date"),
    N_("Choose date range"),
    N_("Quick select a date range"),
    N_("Clear date"),
    N_("Clear dates"),
    N_("Clear entry"),
    N_("Previous month"),
    N_("Next month"),
    N_("Add files"),
    N_("Scroll tabs left"),
    N_("Scroll tabs right"),
    N_("Sidebar"),
    N_("App pages"),
    N_("Logo"),
    N_("Navigate to home page"),
    N_("File size is too small."),
)
#: Sentences with a number: the English pattern and its translation.
STREAMLIT_SENTENCES = {
    r"^(.+) per file(?: • (.+))?$": N_("$1 per file"),
    r"^View (\d+) more$": N_("View $1 more"),
    r"^Fullscreen: (.+)$": N_("Fullscreen: $1"),
    r"^Close fullscreen: (.+)$": N_("Close fullscreen: $1"),
    r"^Show/hide columns: (.+)$": N_("Show/hide columns: $1"),
    r"^Search: (.+)$": N_("Search: $1"),
    r"^Clear selection: (.+)$": N_("Clear selection: $1"),
    r"^Remove (.+)$": N_("Remove $1"),
    r"^File must be (.+) or smaller\.$": N_("File must be $1 or smaller."),
    r"^(.+) files are not allowed\.$": N_("$1 files are not allowed."),
    r"^Number is outside the allowed range\. Please enter a value between (.+) and (.+)\.$": N_(
        "Number is outside the allowed range. Please enter a value between $1 and $2."
    ),
    r"^Shortcut (.+)$": N_("Shortcut $1"),
}
#: Icons without a word beside them.
ICONS = {"radio_button_unchecked": N_("Not done yet")}


def page_script() -> str:
    """Return the script which sets the page's language and text direction, and replaces Streamlit's own
    English texts.
    """
    code = language.current()
    is_english = code == language.ENGLISH
    words = {
        "whole": {} if is_english else {words: _(words) for words in STREAMLIT_WORDS},
        "icons": {icon: _(label) for icon, label in ICONS.items()},
        "parts": [] if is_english else [(pattern, _(ours)) for pattern, ours in STREAMLIT_SENTENCES.items()],
    }
    return script("language", WORDS=words, LANGUAGE=code, DIRECTION=language.direction())
