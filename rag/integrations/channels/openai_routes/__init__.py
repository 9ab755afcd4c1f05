"""OpenAI's chat API for collections: `routes` answers, `errors` formats errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag.integrations.integration import Integration

if TYPE_CHECKING:
    from fastapi import APIRouter


def router() -> APIRouter:
    """Return the FastAPI router for OpenAI's routes."""
    from rag.integrations.channels.openai_routes.routes import router  # the server needs them, commands do not

    return router


INTEGRATION = Integration(
    name="openai_routes", title="OpenAI", router=router, refusals={"/v1/": f"{__name__}.errors:answer"}
)
