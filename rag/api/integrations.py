"""Route the Model Context Protocol and OAuth; their modules are imported with the first request."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from rag.access.guard import MCP_PATH, OAUTH, OAUTH_SERVER, PROTECTED_RESOURCE
from rag.api.later import Later

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
]
