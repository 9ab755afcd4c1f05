"""Serve assistants by the Model Context Protocol: `server` has the tools, `oauth` connects an assistant to a person."""

from __future__ import annotations

from starlette.routing import Route

from rag.access.guard import CONSENT, MCP_PATH, OAUTH, OAUTH_SERVER, PROTECTED_RESOURCE
from rag.api.later import Later
from rag.integrations.integration import Integration
from rag.services import Services
from rag.types import Identity

HTTP = Later("rag.integrations.channels.mcp.server", "HTTP")


async def serve_stdio(parts: Services, identity: Identity) -> None:
    """Serve an assistant on this machine by standard input and output."""
    from rag.integrations.channels.mcp import server  # the `mcp` package

    await server.serve_stdio(parts, identity)


def _route(path: str, name: str, *methods: str) -> Route:
    endpoint = Later("rag.integrations.channels.mcp.oauth", name)
    return Route(path, endpoint, methods=methods, include_in_schema=False)


INTEGRATION = Integration(
    name="mcp",
    title="Model Context Protocol",
    packages=("mcp",),
    routes=(
        Route(MCP_PATH, HTTP, methods=["GET", "POST", "DELETE"], name="mcp", include_in_schema=False),
        _route(CONSENT, "consent", "GET", "POST"),
    ),
    open_routes=(
        _route(OAUTH_SERVER, "metadata", "GET"),
        _route(PROTECTED_RESOURCE, "protected_resource", "GET"),
        _route(f"{OAUTH}authorize", "authorize", "GET"),
        _route(f"{OAUTH}token", "token", "POST"),
        _route(f"{OAUTH}register", "register", "POST"),
        _route(f"{OAUTH}revoke", "revoke", "POST"),
    ),
    warm_up=HTTP.load,
    serve_stdio=serve_stdio,
)
