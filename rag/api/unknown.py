"""What is asked of the API at an address, or by a method, that is none: said like every other error."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from rag.api.problems import problem
from rag.errors import MethodNotAllowed, RouteUnknown


def unknown_routes(known: Sequence[BaseRoute]) -> Route:
    """The route after all others of the API."""

    async def unknown(request: Request) -> Response:
        scope = {**request.scope, "path_params": {}}
        methods = {
            method
            for route in known
            if isinstance(route, Route) and route.matches(scope)[0] is Match.PARTIAL
            for method in route.methods or ()
        }
        if methods:
            return problem(request.scope, MethodNotAllowed(), headers={"Allow": ", ".join(sorted(methods))})
        return problem(request.scope, RouteUnknown())

    return Route("/api/{rest:path}", unknown, name="unknown", include_in_schema=False)
