"""Describe an integration in a single value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

from fastapi import APIRouter
from starlette.routing import Route

from rag.access.problems import Refusal
from rag.services import Services
from rag.types import Collection, Identity


@dataclass(frozen=True, kw_only=True)
class Integration:
    """Everything the product needs to know about an integration.

    Importing the value is cheap: routes name their modules, which the first request imports.
    """

    #: The folder name.
    name: str
    title: str
    #: Names from `requirements-integrations.in`.
    packages: tuple[str, ...] = ()
    #: For people with a session and programs with an API key.
    routes: tuple[Route, ...] = ()
    #: For everybody: the endpoint checks the caller.
    open_routes: tuple[Route, ...] = ()
    #: Returns routes for our API, with their descriptions.
    router: Callable[[], APIRouter] | None = None
    #: Functions for writing errors, by path prefix, if the protocol is not ours.
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    #: Open paths for posts from other sites, without cookies: the endpoint checks the site.
    other_sites: frozenset[str] = frozenset()
    #: Draws a section of the page Other programs, for administrators.
    draw: Callable[[Services, Identity, Sequence[Collection]], None] | None = None
    #: On a personal collection's page, tells who outside the company may ask.
    draw_outside: Callable[[Services, Identity, Collection], None] | None = None
    #: Imports slow modules beside the start.
    warm_up: Callable[[], object] | None = None
    #: Serves a program on this machine by standard input and output.
    serve_stdio: Callable[[Services, Identity], Awaitable[None]] | None = None
    #: Sends the last messages within these seconds, before the server ends.
    finish: Callable[[float], Awaitable[None]] | None = None

    @property
    def all_routes(self) -> tuple[Route, ...]:
        return (*self.routes, *self.open_routes)

    @property
    def is_installed(self) -> bool:
        """Return whether all packages are installed."""
        try:
            return all(map(version, self.packages))
        except PackageNotFoundError:
            return False
