"""A widget with which visitors to other websites ask a collection.

`widgets` stores widgets, `routes` serves them, `section` draws the settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag.integrations.integration import Endpoint, Integration
from rag.language import N_

if TYPE_CHECKING:
    from fastapi import APIRouter

    from rag.services import Services
    from rag.types import Collection, Identity

ROUTES = f"{__name__}.routes"
#: Called from the sites' pages.
VISITOR_PATHS = ("/widget/ask", "/widget/rate")


def router() -> APIRouter:
    """Return the routes for administrators' programs."""
    from rag.integrations.channels.widget.routes import router  # the server needs them, commands do not

    return router


def draw(parts: Services, identity: Identity, collections: Sequence[Collection]) -> None:
    """Draw the section for widgets on the page Other programs."""
    from rag.integrations.channels.widget.section import draw_widgets  # pandas, only for administrators
    from rag.integrations.channels.widget.widgets import widgets_of
    from rag.ui.frame import reader_address

    draw_widgets(widgets_of(parts.database), identity, collections, reader_address(parts.settings))


def draw_outside(parts: Services, identity: Identity, collection: Collection) -> None:
    """Draw a list with the websites and public pages on which visitors can ask a collection."""
    from rag.integrations.channels.widget import section
    from rag.integrations.channels.widget.widgets import widgets_of

    widgets = [widget for widget in widgets_of(parts.database).list(identity) if widget.collection_id == collection.id]
    section.draw_outside(widgets)


INTEGRATION = Integration(
    name="widget",
    title=N_("Widgets"),
    router=router,
    open_routes=(
        Endpoint("/widget.js", f"{ROUTES}:script", ("GET",)),
        Endpoint("/widget", f"{ROUTES}:page", ("GET",)),
        Endpoint("/widget/app.js", f"{ROUTES}:asset", ("GET",)),
        Endpoint("/widget/app.css", f"{ROUTES}:asset", ("GET",)),
        *(Endpoint(path, f"{ROUTES}:{path.rpartition('/')[2]}", ("POST", "OPTIONS")) for path in VISITOR_PATHS),
    ),
    other_sites=frozenset(VISITOR_PATHS),
    draw=draw,
    draw_outside=draw_outside,
)
