"""Answer on other sites' pages: `widgets` keeps widgets, `routes` serves them, `section` sets them up."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter
from starlette.routing import Route

from rag.api.later import Later
from rag.integrations.integration import Integration
from rag.language import N_
from rag.services import Services
from rag.types import Collection, Identity

MODULE = "rag.integrations.channels.widget.routes"
#: Called from the sites' pages.
ASKED = ("/widget/ask", "/widget/rate")


def router() -> APIRouter:
    """Return the routes for administrators' programs."""
    from rag.integrations.channels.widget.routes import router  # the server needs them, commands do not

    return router


def draw(parts: Services, identity: Identity, collections: Sequence[Collection]) -> None:
    """Draw the section on the page Other programs."""
    from rag.integrations.channels.widget.section import draw_widgets  # pandas, only for administrators
    from rag.integrations.channels.widget.widgets import widgets_of
    from rag.ui.frame import reader_address

    draw_widgets(widgets_of(parts.database), identity, collections, reader_address(parts.settings))


def draw_outside(parts: Services, identity: Identity, collection: Collection) -> None:
    """Draw which sites and public pages ask a collection."""
    from rag.integrations.channels.widget import section
    from rag.integrations.channels.widget.widgets import widgets_of

    own = [one for one in widgets_of(parts.database).list(identity) if one.collection_id == collection.id]
    section.draw_outside(own)


def _route(path: str, name: str, *methods: str) -> Route:
    return Route(path, Later(MODULE, name), methods=methods, include_in_schema=False)


INTEGRATION = Integration(
    name="widget",
    title=N_("Widgets"),
    router=router,
    open_routes=(
        _route("/widget.js", "script", "GET"),
        _route("/widget", "page", "GET"),
        _route("/widget/app.js", "asset", "GET"),
        _route("/widget/app.css", "asset", "GET"),
        *(_route(path, path.rpartition("/")[2], "POST", "OPTIONS") for path in ASKED),
    ),
    other_sites=frozenset(ASKED),
    draw=draw,
    draw_outside=draw_outside,
)
