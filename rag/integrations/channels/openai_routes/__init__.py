"""Serve OpenAI's routes: `routes` answers, `errors` refuses."""

from __future__ import annotations

from fastapi import APIRouter

from rag.integrations.channels.openai_routes import errors
from rag.integrations.integration import Integration


def router() -> APIRouter:
    """Return the routes."""
    from rag.integrations.channels.openai_routes.routes import router  # the server needs them, commands do not

    return router


INTEGRATION = Integration(name="openai_routes", title="OpenAI", router=router, refusals={"/v1/": errors.answer})
