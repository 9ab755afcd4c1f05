"""Build the HTML and scripts around every page: first paint, signing out, a session's end, answers in progress.

Styles and scripts drawn by a page arrive with its first run, too late for the first paint: the sidebar would push the
page aside, and grey bars would fill empty places. They are therefore added to Streamlit's index HTML file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import streamlit
import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag.language import _
from rag.settings import Settings
from rag.ui.scripts import script, style
from rag.ui.text import ANSWER_TAGS
from rag.ui.theme import PRODUCT


def reader_address(settings: Settings) -> str:
    """Return the base address for shared links: `public_url` in the settings, else the address in the browser."""
    url = urlsplit(st.context.url or "")
    came_by = f"{url.scheme}://{url.netloc}" if url.netloc else settings.own_address
    return settings.public_url.rstrip("/") or came_by


def frame_scripts(account_id: UUID) -> str:
    """Return the scripts for every page, with texts in the reader's language.

    Unsent questions are stored per `account_id`.
    """
    return "".join(
        [
            script("keep_signed_in", LATEST=_("Latest answer")),
            script("follow_answers", TAGS=sorted(ANSWER_TAGS)),
            script("keep_beginning"),
            script("keep_draft", ACCOUNT=str(account_id)),
            script("sources"),
            style("sources"),
            script(
                "own_words",
                LOST=_("The connection is lost. The page reconnects by itself, and what you have written stays."),
            ),
        ]
    )


def put_off_sidebar(draw: Callable[[], None]) -> None:
    """Postpone drawing the sidebar: `draw` is called when the page calls `draw_sidebar`, after the urgent parts."""
    st.session_state.frame_put_off = draw


def draw_sidebar() -> None:
    """Draw the sidebar's content, unless this run has drawn it already."""
    draw = st.session_state.get("frame_put_off")
    if draw is not None:
        st.session_state.frame_put_off = None
        draw()


def unseen_heading(text: str) -> str:
    """Return a page heading which only screen readers announce."""
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
    """Return HTML for a link which looks like a button and opens in this tab. Streamlit's links open a new tab."""
    return f'<a href="{escape(address, quote=True)}" target="_self" style="{LOOK}">{escape(words)}</a>'


def account_actions(csrf_token: str) -> str:
    """Build the links to change the password, set a second factor and sign out, in the same tab.

    Signing out is an HTML form, not a Streamlit button, because only a response can clear the cookie. Without
    `csrf_token`, for example in an old tab, signing out is a link to a page which asks for confirmation.
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


INDEX = Path(streamlit.__file__).parent / "static" / "index.html"
#: A phone's keyboard resizes the page, so the question stays above it.
VIEWPORT = "width=device-width, initial-scale=1, interactive-widget=resizes-content"

#: Streamlit modules a page needs, by file name prefix. Otherwise the browser loads them one by one, and only after the
#: page's script has run.
NEEDED_SOON = {
    "/analytics": ("Metric.", "loadVegaEmbed.", "embed.", "PlotlyChart."),
    "/documents": ("DataFrame.", "arrowFormatUtils."),
}

#: Loaded before the first paint: a late font change would reflow the text.
FONT = "./app/static/inter-latin-wght-normal.woff2"
PRELOADED = re.compile(r'href="\./static/media/[^"]+\.woff2"')


def shell(index: str) -> str:
    """Return Streamlit's index HTML with our name, icon and first-paint styles."""
    changed = index.replace("<title>Streamlit</title>", f"<title>{PRODUCT}</title>")
    # Streamlit looks for a "shortcut icon"; without one, ours stays. Otherwise every page would first try the menu's
    # icon at fonts.gstatic.com.
    changed = changed.replace('rel="shortcut icon" href="./favicon.png"', 'rel="icon" href="./app/static/mark.svg"')
    changed = PRELOADED.sub(f'href="{FONT}"', changed, count=1)
    before, _, after = changed.partition('name="viewport"')
    _, _, after = after.partition("/>")
    changed = f'{before}name="viewport" content="{VIEWPORT}" />{after}'
    scripts = "".join(map(script, ("roles", "menu", "reading", "escape", "document_rows")))
    return changed.replace("</head>", f"{style('first_paint')}{scripts}</head>")


def preloads(names: tuple[str, ...], folder: Path) -> str:
    """Return HTML links which make the browser load these JavaScript modules while it waits for the page."""
    files = sorted(path.name for name in names for path in (folder / "static" / "js").glob(f"{name}*.js"))
    return "".join(f'<link rel="modulepreload" href="/static/js/{file}">' for file in files)


class Shell:
    """Middleware which sends our changed HTML file for every page instead of Streamlit's."""

    def __init__(self, app: ASGIApp, index: Path = INDEX) -> None:
        self._app = app
        self._theirs = index.read_bytes()
        html = shell(self._theirs.decode())
        self._ours = html.encode()
        self._of_paths = {
            path: html.replace("</head>", preloads(names, index.parent) + "</head>", 1).encode()
            for path, names in NEEDED_SOON.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self._app(scope, receive, send)
            return
        # Request the file whole and unconditionally: a browser may have cached it before our upgrade.
        unwanted = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")
        scope = {**scope, "headers": [(name, value) for name, value in scope["headers"] if name not in unwanted]}
        start: Message | None = None
        body = b""

        async def changing(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and self._may_be_theirs(message):
                start = message
            elif start is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    await self._send(send, start, body, scope["path"])

        await self._app(scope, receive, changing)

    def _may_be_theirs(self, start: Message) -> bool:
        headers = Headers(raw=start["headers"])
        is_html = headers.get("content-type", "").startswith("text/html")
        return is_html and headers.get("content-length") == str(len(self._theirs))

    async def _send(self, send: Send, start: Message, body: bytes, path: str) -> None:
        headers = MutableHeaders(raw=list(start["headers"]))
        if body == self._theirs:
            body = self._of_paths.get(path, self._ours)
            headers["content-length"] = str(len(body))
            for name in ("etag", "last-modified"):
                del headers[name]
        await send({**start, "headers": headers.raw})
        await send({"type": "http.response.body", "body": body})
