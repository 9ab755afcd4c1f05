"""Endpoints imported at their first request, to keep their packages out of the start."""

from __future__ import annotations

import inspect
import logging
from importlib import import_module

from anyio import to_thread
from starlette.routing import request_response
from starlette.types import ASGIApp, Receive, Scope, Send

from rag.errors import PackagesMissing

log = logging.getLogger("rag.api")


class Later:
    """An endpoint in a module which is imported by `load` or at the first request.

    `name` is a coroutine function which takes a request, or an ASGI application.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def load(self) -> ASGIApp:
        """Import and return the endpoint. Raises `PackagesMissing`."""
        try:
            found = getattr(import_module(self._module), self._name)
        except ModuleNotFoundError as exc:
            if (exc.name or "").partition(".")[0] == "rag":
                raise
            log.warning("%s needs a package: %s", self._module, exc)
            raise PackagesMissing from exc
        return request_response(found) if inspect.iscoroutinefunction(found) else found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = await to_thread.run_sync(self.load)
        await endpoint(scope, receive, send)
