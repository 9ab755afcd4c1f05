"""The parts of `app.py` for Streamlit's `st.App`: routes, guard, startup and shutdown, and error responses."""

from __future__ import annotations

import gc
import logging
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

import streamlit as st
from anyio import to_thread
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session

from rag import language
from rag.access.guard import PUBLIC_METHODS, SECURITY_HEADERS, AuthGuard
from rag.access.problems import FORMS, problem, unexpected
from rag.api import app, service, sign_in
from rag.api.health import retirement_notices
from rag.api.middleware import Cors, Languages, RequestIds, RequestLog
from rag.api.routing import PUBLIC
from rag.commands.listener import CommandListener
from rag.commands.running_server import digest_of
from rag.errors import NotAllowed, RagError
from rag.integrations import registry
from rag.services import Services, services
from rag.settings import load_settings
from rag.ui import live_text
from rag.ui.frame import Shell
from rag.ui.text import plain

log = logging.getLogger("rag")


#: How long shutdown waits for chat programs to accept the last messages.
LAST_WORDS_SECONDS = 2.0


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[dict[str, Any] | None]:
    """Warm up before the first visitor, and stop cleanly after any stop signal."""
    running = services()
    # If this process was the built-in database's only user when it began, no process is still writing answers older
    # than this. Other processes may have started since, but their answers are newer.
    quiet_seconds = None if running.alone_at is None else time.monotonic() - running.alone_at
    running.answers.close_abandoned(running.settings.tenant, quiet_seconds=quiet_seconds)
    if running.settings.worker:
        running.queue.start_worker()
    language.number(1)  # Load Babel's number formats, a tenth of a second.
    write_theme_once()
    gc.set_threshold(*COLLECT_AFTER)
    threading.Thread(target=_warm_up, name="warm-up", daemon=True).start()
    for notice in retirement_notices(running):
        log.warning(notice)
    if running.providers.meaning is not None:
        # In parallel with the start: the first question may wait for it, but no page has to.
        threading.Thread(target=running.providers.meaning.warm_up, name="meaning", daemon=True).start()
    # Reloaded, because the settings here may hold keys pasted on a page, which commands adopt as well.
    commands = CommandListener(running, digest_of(load_settings()))
    commands.start()
    try:
        with _stopped_by_signals(running):
            yield None
    finally:
        await to_thread.run_sync(commands.stop)
        # Tell chat programs how answers ended, while there is an event loop.
        await to_thread.run_sync(running.answers.stop_all)
        await registry.finish(LAST_WORDS_SECONDS)
        running.close()
        services.clear()


@contextmanager
def _stopped_by_signals(running: Services) -> Iterator[None]:
    """End answers when the server receives a stop signal.

    Without this, the server would first wait for open answers, and then cut them off.
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


#: How many new objects trigger collecting the youngest generation, and how many collections trigger the next
#: generation. At Python's 700, fifty people asking at the same time waited three or four times for a full collection,
#: which holds all threads for a tenth of a second. Here it happens after a million new objects, or when memory was
#: freed late.
COLLECT_AFTER = (10_000, 10, 10)


def _warm_up() -> None:
    """Import modules in a separate thread, before the first request needs them.

    These modules are then excluded from garbage collection.
    """
    import pandas  # noqa: F401, I001 - in the order in which it is needed
    import plotly.graph_objects  # noqa: F401
    import genai_prices  # noqa: F401
    import rag.providers.outward  # noqa: F401

    registry.warm_up()
    gc.collect()
    gc.freeze()


def write_theme_once() -> None:
    """Make Streamlit compute the theme at the first page run only.

    The configuration never changes while serving. With a hundred readers, computing the theme was a tenth of the event
    loop's work.
    """
    write = app_session._populate_theme_msg  # noqa: SLF001
    if not isinstance(write, ThemeWriter):
        app_session._populate_theme_msg = ThemeWriter(write)  # type: ignore[assignment]  # noqa: SLF001


class ThemeWriter:
    """Fills the message with which Streamlit sends the theme's colours and fonts to a browser.

    Each section of the theme is computed at first use, then copied from a cache.
    """

    def __init__(self, write: Callable[..., None]) -> None:
        self._write = write
        self._kept: dict[str, CustomThemeConfig] = {}

    def __call__(self, message: CustomThemeConfig, section: str = "theme") -> None:
        if section not in self._kept:
            theme = CustomThemeConfig()
            self._write(theme, section)
            self._kept[section] = theme
        if self._kept[section].ListFields():  # Merging an empty section would add the section.
            message.MergeFrom(self._kept[section])


def on_error(request: Request, exc: Exception) -> Response:
    """Return a response for a `RagError`, with a sentence and a code."""
    assert isinstance(exc, RagError)  # noqa: S101
    return problem(exc, headers=SECURITY_HEADERS)


def on_unexpected(request: Request, exc: Exception) -> Response:
    """Return a response for an unexpected error.

    If the request failed before the guard, the guard's headers are added here.
    """
    if isinstance(exc, RagError):
        return on_error(request, exc)
    answer = unexpected(request.scope, exc)
    answer.headers.update(SECURITY_HEADERS)
    return answer


def on_script_error(exc: Exception) -> bool:
    """Show a sentence instead of Streamlit's traceback, for an error in a page.

    Returns whether the error was handled.
    """
    if isinstance(exc, NotAllowed):
        st.warning(plain(exc.message), icon=":material/lock:")
    elif isinstance(exc, RagError):
        st.error(plain(exc.message), icon=":material/error:")
    else:
        log.error("a page failed", exc_info=exc)
        st.error(plain(RagError().message), icon=":material/error:")
    return True


FORMS.update(registry.refusals())
API = app.make_api(registry.routers())
API_ROUTES = API.api_routes
ROUTES: list[BaseRoute] = [
    *sign_in.routes(services),
    live_text.ROUTE,
    *app.routes_to(API),
    *registry.routes(),
    service.METRICS,
]
OPEN_PATHS = frozenset(route.path for route in API_ROUTES if route.scope == PUBLIC)
MIDDLEWARE = [
    Middleware(RequestIds),
    Middleware(RequestLog),
    Middleware(Languages),
    Middleware(Cors, settings=lambda: services().settings),
    Middleware(
        AuthGuard,
        services=services,
        open_paths=OPEN_PATHS,
        public_methods={**PUBLIC_METHODS, **registry.public_methods()},
        other_sites=registry.paths_for_other_sites(),
    ),
    Middleware(Shell),
]
ERROR_HANDLERS: dict[Any, Any] = {RagError: on_error, Exception: on_unexpected}
