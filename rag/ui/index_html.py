"""Adapt Streamlit's index HTML file: our name, and the style for the first paint.

Styles and scripts drawn by a page arrive with its first run, too late for the first paint: the sidebar would push the
page aside, and grey bars would fill empty places.
"""

from __future__ import annotations

import re
from pathlib import Path

import streamlit
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag.ui.scripts import script, style
from rag.ui.theme import PRODUCT

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
    """Return Streamlit's HTML file with our name, icon and first-paint styles."""
    changed = index.replace("<title>Streamlit</title>", f"<title>{PRODUCT}</title>")
    # Streamlit looks for a "shortcut icon"; without one, ours stays. Otherwise every page would first try the menu's
    # icon at fonts.gstatic.com.
    changed = changed.replace('rel="shortcut icon" href="./favicon.png"', 'rel="icon" href="./app/static/mark.svg"')
    changed = PRELOADED.sub(f'href="{FONT}"', changed, count=1)
    before, _, after = changed.partition('name="viewport"')
    _, _, after = after.partition("/>")
    changed = f'{before}name="viewport" content="{VIEWPORT}" />{after}'
    scripts = "".join(map(script, ("roles", "reading", "escape", "document_rows")))
    return changed.replace("</head>", f"{style('first_paint')}{scripts}</head>")


def preloads(names: tuple[str, ...], folder: Path) -> str:
    """Return links telling the browser to load and compile these modules while it waits for the page."""
    files = sorted(path.name for name in names for path in (folder / "static" / "js").glob(f"{name}*.js"))
    return "".join(f'<link rel="modulepreload" href="/static/js/{file}">' for file in files)


class Shell:
    """Send the changed HTML file for every page instead of Streamlit's."""

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
