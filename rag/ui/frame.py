"""Build the frame's HTML and scripts: sign out, notice a session's end, follow answers."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from urllib.parse import urlsplit
from uuid import UUID

import streamlit as st

from rag.language import _
from rag.settings import Settings
from rag.ui.scripts import script, style
from rag.ui.text import ANSWER_TAGS


def reader_address(settings: Settings) -> str:
    """Return the address for shared links: the public address, else the address in the browser."""
    seen = urlsplit(st.context.url or "")
    came_by = f"{seen.scheme}://{seen.netloc}" if seen.netloc else settings.own_address
    return settings.public_url.rstrip("/") or came_by


def frame_scripts(account_id: UUID) -> str:
    """Return every page's scripts, in the reader's language, for the signed-in account."""
    return "".join(
        [
            script("keep_signed_in", LATEST=_("Latest answer")),
            script("follow_answers", TAGS=sorted(ANSWER_TAGS)),
            script("keep_beginning"),
            script("keep_draft", ACCOUNT=str(account_id)),
            script("sources"),
            style("sources"),
            script(
                "own_words", LOST=_("The connection is lost. It comes back by itself; what you have written stays.")
            ),
        ]
    )


def put_off_sidebar(draw: Callable[[], None]) -> None:
    """Let the page draw the sidebar later with `draw_sidebar`, after its urgent parts."""
    st.session_state.frame_put_off = draw


def draw_sidebar() -> None:
    """Draw the sidebar's content, unless this run has drawn it already."""
    draw = st.session_state.get("frame_put_off")
    if draw is not None:
        st.session_state.frame_put_off = None
        draw()


def unseen_heading(text: str) -> str:
    """Return a hidden page heading for screen readers."""
    return f'<h1 class="hr-unseen">{escape(text)}</h1>'


SIGN_IN_AGAIN = """
<script>
location.assign("/login?ended=1&next=" + encodeURIComponent(location.pathname + location.search));
</script>
"""


LOOK = (
    "display:block;box-sizing:border-box;width:100%;padding:.5rem .75rem;margin:0 0 .5rem;font:inherit;"
    "font-size:.875rem;text-align:center;color:inherit;text-decoration:none;background:transparent;cursor:pointer;"
    "border:1px solid rgba(128,138,165,.45);border-radius:10px"
)


def link_here(words: str, address: str) -> str:
    """Build a link styled like a button which opens in this tab; Streamlit's link buttons open a new tab."""
    return f'<a href="{escape(address, quote=True)}" target="_self" style="{LOOK}">{escape(words)}</a>'


def account_actions(csrf_token: str) -> str:
    """Build the links to change the password and to sign out, in this tab.

    Signing out is an HTML form, not a Streamlit button: it sends a request, and the response clears the cookie. Without
    the token, which an old tab may lack, it is a link to a page asking for confirmation.
    """
    change = link_here(_("Change password"), "/account/password")
    change += link_here(_("Second factor"), "/account/second-factor")
    if not csrf_token:
        return change + link_here(_("Sign out"), "/logout")
    return change + (
        '<form method="post" action="/logout" style="margin:0">'
        f'<input type="hidden" name="csrf" value="{escape(csrf_token, quote=True)}">'
        f'<button type="submit" style="{LOOK}">{escape(_("Sign out"))}</button></form>'
    )
