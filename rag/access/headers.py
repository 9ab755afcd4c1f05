"""The headers every answer carries, and a `send` that adds them."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

#: Tried with everything the pages draw. It also keeps a document's text from loading pictures from elsewhere.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "script-src 'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval'; connect-src 'self' ws: wss:; "
    "worker-src 'self' blob:; font-src 'self' data:; frame-ancestors 'none'; form-action 'self'; base-uri 'self'; "
    "object-src 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


def security_headers(*, is_https: bool) -> dict[str, str]:
    """What every answer carries."""
    return {**SECURITY_HEADERS, **({"Strict-Transport-Security": "max-age=31536000"} if is_https else {})}


def with_security_headers(send: Send, *, is_https: bool) -> Send:
    """`send` that adds them to an answer; an original that is confined further stays so."""
    added = security_headers(is_https=is_https)

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            confined = headers.get("content-security-policy", "")
            headers.update(added)
            if confined.startswith("sandbox;"):  # an original that may do nothing at all keeps it so
                headers["Content-Security-Policy"] = confined
        await send(message)

    return guarded


def with_headers(send: Send, added: Mapping[str, str]) -> Send:
    """`send` that adds these headers to an answer."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in added.items():
                headers[name] = value
        await send(message)

    return guarded
