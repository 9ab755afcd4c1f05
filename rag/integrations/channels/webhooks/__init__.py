"""Send events to other programs.

`webhooks` stores addresses and delivers the events, `routes` is the API, and `section` draws the settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag.integrations.integration import Integration
from rag.language import N_

if TYPE_CHECKING:
    from fastapi import APIRouter

    from rag.services import Services
    from rag.types import Collection, Identity


def router() -> APIRouter:
    """Return the routes for administrators' programs."""
    from rag.integrations.channels.webhooks.routes import router  # the server needs them, commands do not

    return router


def draw(parts: Services, identity: Identity, collections: Sequence[Collection]) -> None:
    """Draw the section for webhooks on the page Other programs."""
    from rag.integrations.channels.webhooks.section import draw_webhooks  # pandas, only for administrators
    from rag.integrations.channels.webhooks.webhooks import webhooks_of

    draw_webhooks(webhooks_of(parts), identity)


INTEGRATION = Integration(
    name="webhooks",
    title=N_("Webhooks"),
    packages=("standardwebhooks",),
    router=router,
    draw=draw,
    add_commands=f"{__name__}.commands:add_parsers",
    jobs={"deliver": f"{__name__}.webhooks:deliver"},
)
