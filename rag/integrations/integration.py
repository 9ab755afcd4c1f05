"""Describe an integration in a single value."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.routing import Route


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
    #: Open to visitors without a session: the endpoint checks the caller.
    routes: tuple[Route, ...] = ()
