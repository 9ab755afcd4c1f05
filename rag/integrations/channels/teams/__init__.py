"""Answer questions in Microsoft Teams.

`bots` stores each company's bot, `conversations` answers, and `section` draws the settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag.integrations.integration import Endpoint, Integration
from rag.language import N_

if TYPE_CHECKING:
    from rag.services import Services
    from rag.types import Collection, Identity


def draw(parts: Services, identity: Identity, collections: Sequence[Collection]) -> None:
    """Draw the section for Microsoft Teams on the page Other programs."""
    from rag.integrations.channels.teams.section import draw_teams  # Pillow, only for administrators

    draw_teams(parts, identity, collections)


async def finish(seconds: float) -> None:
    """Wait until all answers have been sent, at most `seconds`."""
    from rag.integrations.channels.teams import route

    await route.finish(seconds)


INTEGRATION = Integration(
    name="teams",
    title=N_("Microsoft Teams"),
    packages=("aiohttp", "joserfc", "microsoft-agents-hosting-core", "msal"),
    open_routes=(Endpoint("/teams/messages", f"{__name__}.route:messages", ("POST",)),),
    draw=draw,
    finish=finish,
)
