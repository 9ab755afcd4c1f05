"""What is asked of the API at an address, or by a method, that is none: said like every other error."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from rag.api.problems import problem
from rag.errors import MethodNotAllowed, RouteUnknown


def unknown_routes(known: Sequence[BaseRoute]) -> Route:
    """The route after all others of the API."""
    # Not a function: those are given GET alone.
    return Route("/api/{rest:path}", Unknown(known), name="unknown", include_in_schema=False)


class Unknown:
    """Answers 405 with the methods there are, or 404."""

    def __init__(self, known: Sequence[BaseRoute]) -> None:
        self._known = known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = {**scope, "path_params": {}}
        methods = {
            method
            for route in self._known
            if isinstance(route, Route) and route.matches(asked)[0] is Match.PARTIAL
            for method in route.methods or ()
        }
        if methods:
            answer = problem(scope, MethodNotAllowed(), headers={"Allow": ", ".join(sorted(methods))})
        else:
            answer = problem(scope, RouteUnknown())
        await answer(scope, receive, send)
