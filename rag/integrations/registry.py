"""Find the integrations by their folders."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

from fastapi import APIRouter
from starlette.routing import Route

from rag.access.problems import Refusal
from rag.errors import PackagesMissing
from rag.integrations.integration import Integration
from rag.services import Services
from rag.types import Collection, Identity

FOLDER = Path(__file__).parent


@cache
def integrations() -> tuple[Integration, ...]:
    """List the value `INTEGRATION` of each folder, sorted by path."""
    folders = sorted(path.parent.relative_to(FOLDER) for path in FOLDER.glob("*/*/__init__.py"))
    return tuple(import_module(".".join(("rag.integrations", *folder.parts))).INTEGRATION for folder in folders)


def routes() -> list[Route]:
    """List all routes."""
    return [route for integration in integrations() for route in integration.all_routes]


def routers() -> list[APIRouter]:
    """List the routes for our API."""
    return [integration.router() for integration in integrations() if integration.router is not None]


def refusals() -> Mapping[str, Refusal]:
    """Map path prefixes to functions for writing errors."""
    return {prefix: write for integration in integrations() for prefix, write in integration.refusals.items()}


def paths_for_other_sites() -> frozenset[str]:
    """List the open paths for posts from other sites."""
    return frozenset().union(*(integration.other_sites for integration in integrations()))


def draw_outside(parts: Services, identity: Identity, collection: Collection) -> None:
    """Draw who outside the company may ask a personal collection."""
    for integration in integrations():
        if integration.draw_outside is not None:
            integration.draw_outside(parts, identity, collection)


def warm_up() -> None:
    """Import slow modules, except for integrations without their packages."""
    for integration in integrations():
        if integration.warm_up is not None and integration.is_installed:
            integration.warm_up()


async def serve_stdio(parts: Services, identity: Identity) -> None:
    """Serve a program on this machine by standard input and output. Raises `PackagesMissing`."""
    serving = next((one for one in integrations() if one.serve_stdio is not None), None)
    if serving is None or serving.serve_stdio is None or not serving.is_installed:
        raise PackagesMissing
    await serving.serve_stdio(parts, identity)


async def finish(seconds: float) -> None:
    """Let integrations send their last messages; each may take this long."""
    for integration in integrations():
        if integration.finish is not None:
            await integration.finish(seconds)


def public_methods() -> Mapping[str, frozenset[str]]:
    """Map each open path to its methods, for the guard."""
    open_routes = [route for integration in integrations() for route in integration.open_routes]
    return {route.path: frozenset(route.methods or ()) for route in open_routes}
