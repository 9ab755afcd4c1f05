"""The headers every answer carries, and a `send` that adds them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

#: Hosts as a browser writes them: a name or an address, with a port.
HOST = re.compile(r"(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?", re.IGNORECASE)
#: Tried with everything the pages draw. It also keeps a document's text from loading pictures from elsewhere.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "script-src 'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval'; connect-src 'self'; "
    "worker-src 'self' blob:; font-src 'self' data:; frame-ancestors 'none'; form-action 'self'; base-uri 'self'; "
    "object-src 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), display-capture=(), payment=(), usb=(), "
    "serial=(), bluetooth=(), hid=(), midi=(), screen-wake-lock=(), xr-spatial-tracking=()",
}


def content_security_policy(hosts: Iterable[str] = (), *, is_https: bool = False) -> str:
    """The policy, with websockets to these hosts of ours: not every browser counts them to its own origin."""
    scheme = "wss" if is_https else "ws"
    sockets = "".join(f" {scheme}://{host.lower()}" for host in dict.fromkeys(hosts) if HOST.fullmatch(host))
    return CONTENT_SECURITY_POLICY.replace("connect-src 'self'", f"connect-src 'self'{sockets}")


def security_headers(hosts: Iterable[str] = (), *, is_https: bool) -> dict[str, str]:
    """What every answer carries."""
    transport = {"Strict-Transport-Security": "max-age=31536000"} if is_https else {}
    return {
        **SECURITY_HEADERS,
        "Content-Security-Policy": content_security_policy(hosts, is_https=is_https),
        **transport,
    }


def with_security_headers(send: Send, hosts: Iterable[str] = (), *, is_https: bool) -> Send:
    """`send` that adds them to an answer; an original that is confined further stays so."""
    added = security_headers(hosts, is_https=is_https)

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
