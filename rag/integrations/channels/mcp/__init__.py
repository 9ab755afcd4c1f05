"""Serve AI assistants with the Model Context Protocol.

`server` has the tools, and `oauth` lets a person connect an assistant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag.integrations.integration import Endpoint, Integration

if TYPE_CHECKING:
    from rag.services import Services
    from rag.types import Identity

OAUTH = f"{__name__}.oauth"


def warm_up() -> None:
    """Import the `mcp` package."""
    from rag.integrations.channels.mcp import server  # noqa: F401


async def serve_stdio(parts: Services, identity: Identity) -> None:
    """Serve an assistant running on this machine over standard input and output."""
    from rag.integrations.channels.mcp import server  # the `mcp` package

    await server.serve_stdio(parts, identity)


INTEGRATION = Integration(
    name="mcp",
    title="Model Context Protocol",
    packages=("mcp",),
    routes=(
        Endpoint("/mcp", f"{__name__}.server:HTTP", ("GET", "POST", "DELETE")),
        Endpoint("/account/connect", f"{OAUTH}:consent", ("GET", "POST")),
    ),
    open_routes=(
        Endpoint("/.well-known/oauth-authorization-server", f"{OAUTH}:metadata", ("GET",)),
        Endpoint("/.well-known/oauth-protected-resource/mcp", f"{OAUTH}:protected_resource", ("GET",)),
        Endpoint("/oauth/authorize", f"{OAUTH}:authorize", ("GET",)),
        Endpoint("/oauth/token", f"{OAUTH}:token", ("POST",)),
        Endpoint("/oauth/register", f"{OAUTH}:register", ("POST",)),
        Endpoint("/oauth/revoke", f"{OAUTH}:revoke", ("POST",)),
    ),
    warm_up=warm_up,
    serve_stdio=serve_stdio,
)
