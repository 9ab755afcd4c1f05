"""Routes of other programs that connect, whose libraries no start waits for: the first request for one imports it."""

from __future__ import annotations

import inspect
from importlib import import_module

from anyio import to_thread
from starlette.routing import BaseRoute, Route, request_response
from starlette.types import ASGIApp, Receive, Scope, Send

from rag.access.guard import MCP_PATH, OAUTH, OAUTH_SERVER, PROTECTED_RESOURCE, SLACK
from rag.access.problems import SCIM


class Later:
    """An endpoint of a module that the first request for it imports, or `load`.

    `name` is a coroutine function that takes a request, or an ASGI application.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def load(self) -> ASGIApp:
        found = getattr(import_module(self._module), self._name)
        return request_response(found) if inspect.iscoroutinefunction(found) else found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = await to_thread.run_sync(self.load)
        await endpoint(scope, receive, send)


MCP = Later("rag.api.mcp_server", "HTTP")


def _route(path: str, endpoint: Later, *methods: str, name: str | None = None) -> Route:
    return Route(path, endpoint, methods=methods, name=name, include_in_schema=False)


def _oauth(path: str, name: str, *methods: str) -> Route:
    return _route(path, Later("rag.api.oauth", name), *methods)


ROUTES: list[BaseRoute] = [
    _route(MCP_PATH, MCP, "GET", "POST", "DELETE", name="mcp"),
    _oauth(OAUTH_SERVER, "metadata", "GET"),
    _oauth(PROTECTED_RESOURCE, "protected_resource", "GET"),
    _oauth(f"{OAUTH}authorize", "authorize", "GET"),
    _oauth(f"{OAUTH}token", "token", "POST"),
    _oauth(f"{OAUTH}register", "register", "POST"),
    _oauth(f"{OAUTH}revoke", "revoke", "POST"),
    _oauth("/account/connect", "consent", "GET", "POST"),
    _route(SLACK, Later("rag.api.slack", "events"), "POST"),
    _route(
        f"{SCIM}{{path:path}}",
        Later("rag.api.scim", "serve"),
        *("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
        name="scim",
    ),
]
