"""The running product, for routes: asked for at the first request, because it imports every part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag.services import Services


def running() -> Services:
    """The services of this process."""
    from rag.services import services

    return services()
