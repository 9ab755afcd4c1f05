"""What the launcher hangs into `st.App`: routes, the guard before everything, start and stop, errors as sentences."""

from __future__ import annotations

import gc
import logging
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from rag.access.guard import SECURITY_HEADERS, AuthGuard
from rag.access.problems import problem, unexpected
from rag.api import app, mcp_server, metrics, oauth, sign_in, widget
from rag.api.app import API_ROUTES
from rag.api.middleware import REQUEST_IDS, Cors, Languages, RequestLog
from rag.api.routing import PUBLIC
from rag.errors import NotAllowed, RagError
from rag.services import Services, services
from rag.ui import live_text
from rag.ui.text import plain

log = logging.getLogger("rag")


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[dict[str, Any] | None]:
    """Warm up before the first visitor, and stop in order whatever signal ended the server."""
    running = services()
    # Where no other process used the built-in database when this one began to, answers older than that are nobody's.
    # Another may have come since, and its answers are newer.
    quiet_seconds = None if running.alone_at is None else time.monotonic() - running.alone_at
    running.answers.close_abandoned(running.settings.tenant, quiet_seconds=quiet_seconds)
    if running.settings.worker:
        running.queue.start_worker()
    _warm_up()
    if running.providers.meaning is not None:
        # Beside the start, and not before it: the first question may wait for it, no page has to.
        threading.Thread(target=running.providers.meaning.warm_up, name="meaning", daemon=True).start()
    try:
        with _stopped_by_signals(running):
            yield None
    finally:
        running.close()
        services.clear()


@contextmanager
def _stopped_by_signals(running: Services) -> Iterator[None]:
    """End answers as soon as the server receives a signal to stop.

    It waits for open streams before it stops the rest, so they would be cut off without a last event, or never end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are another's
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def stop(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=running.answers.stop_all, name="answers-stop", daemon=True).start()
        handler = handlers[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number in handlers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if signal.getsignal(number) is stop:
                signal.signal(number, handler)


def _warm_up() -> None:
    """Import what the first page would wait for, and leave it out of garbage collection from now on."""
    import pandas  # noqa: F401
    import plotly.graph_objects  # noqa: F401

    gc.collect()
    gc.freeze()


def on_error(request: Request, exc: Exception) -> Response:
    """Every error of our own as one sentence and a code."""
    assert isinstance(exc, RagError)  # noqa: S101
    return problem(exc, headers=SECURITY_HEADERS)


def on_unexpected(request: Request, exc: Exception) -> Response:
    """Also what fails before the guard, which would add its headers."""
    if isinstance(exc, RagError):
        return on_error(request, exc)
    answer = unexpected(request.scope, exc)
    answer.headers.update(SECURITY_HEADERS)
    return answer


def on_script_error(exc: Exception) -> bool:
    """Show a sentence where Streamlit would show a traceback."""
    if isinstance(exc, NotAllowed):
        st.warning(plain(exc.message), icon=":material/lock:")
    elif isinstance(exc, RagError):
        st.error(plain(exc.message), icon=":material/error:")
    else:
        log.error("a page failed", exc_info=exc)
        st.error(plain(RagError().message), icon=":material/error:")
    return True


ROUTES: list[BaseRoute] = [
    *sign_in.routes(services),
    live_text.ROUTE,
    *app.ROUTES,
    mcp_server.ROUTE,
    *oauth.ROUTES,
    *widget.ROUTES,
    metrics.ROUTE,
]
OPEN_PATHS = frozenset(route.path for route in API_ROUTES if route.scope == PUBLIC)
MIDDLEWARE = [
    REQUEST_IDS,
    Middleware(RequestLog),
    Middleware(Languages),
    Middleware(Cors, settings=lambda: services().settings),
    Middleware(AuthGuard, services=services, open_paths=OPEN_PATHS),
]
ERROR_HANDLERS: dict[Any, Any] = {RagError: on_error, Exception: on_unexpected}
