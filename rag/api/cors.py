"""Other sites' pages may call the API only where a setting names them, letter by letter, and only with a key.

Cookies are never allowed across sites, so a session cannot be used from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag.access.guard import API, SECURITY_HEADERS, route_path
from rag.settings import Settings

ALLOWED_HEADERS = "Authorization, Content-Type, X-Api-Key, X-Request-Id"
ALLOWED_METHODS = "GET, POST, PUT, PATCH, DELETE"
EXPOSED_HEADERS = (
    "X-Request-Id, X-Conversation-Id, Retry-After, RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, "
    "RateLimit-Reset"
)
PREFLIGHT_SECONDS = "600"


class Cors:
    """Answers preflight requests of allowed origins and lets their pages read what the API answers."""

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings]) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not route_path(scope).startswith(API):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        if not origin or origin not in self._settings().allowed_origins:
            await self._app(scope, receive, send)
            return
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            allowed = {
                "Access-Control-Allow-Origin": origin,
                "Access-Control-Allow-Methods": ALLOWED_METHODS,
                "Access-Control-Allow-Headers": ALLOWED_HEADERS,
                "Access-Control-Max-Age": PREFLIGHT_SECONDS,
                "Vary": "Origin",
            }
            await Response(status_code=204, headers={**SECURITY_HEADERS, **allowed})(scope, receive, send)
            return

        async def readable(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                answered["Access-Control-Allow-Origin"] = origin
                answered["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
                answered.add_vary_header("Origin")
            await send(message)

        await self._app(scope, receive, readable)
