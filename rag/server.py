"""What the launcher hangs into `st.App`: routes, the guard before everything, start and stop, errors as sentences."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rag.access.guard import AuthGuard
from rag.api import documents, opinion, reference_documents, sign_in
from rag.errors import NotAllowed, RagError
from rag.health import check_rag_health
from rag.services import services
from rag.types import Role

log = logging.getLogger("rag")


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[dict[str, Any] | None]:
    """Warm up before the first visitor, and stop in order whatever signal ended the server."""
    running = services()
    # Beside the embedded database there is no other process: whatever is still being answered is nobody's.
    alone = not running.settings.database_url
    running.answers.close_abandoned(running.settings.tenant, quiet_seconds=0 if alone else None)
    running.answers.admission.watch(asyncio.get_running_loop())
    if running.settings.worker:
        running.queue.start_worker()
    _warm_up()
    try:
        yield None
    finally:
        running.close()
        services.clear()


def _warm_up() -> None:
    """Import what the first page would wait for, and leave it out of garbage collection from now on."""
    import pandas  # noqa: F401
    import plotly.graph_objects  # noqa: F401

    gc.collect()
    gc.freeze()


def health(request: Request) -> Response:
    """Admins see every check; others learn only whether the service is up. `/_stcore/health` is open to monitors."""
    report = check_rag_health(services())
    if not request.scope["identity"].may(Role.ADMIN):
        return JSONResponse({"ok": report.ok}, status_code=200 if report.ok else 503)
    return JSONResponse(report.to_json(), status_code=200 if report.ok else 503)


def on_error(request: Request, exc: Exception) -> Response:
    """Every error of our own as one sentence and a code."""
    assert isinstance(exc, RagError)  # noqa: S101
    return JSONResponse({"error": exc.message, "code": exc.code}, status_code=exc.status)


def on_unexpected(request: Request, exc: Exception) -> Response:
    log.error("unexpected error on %s", request.url.path, exc_info=exc)
    return JSONResponse({"error": RagError().message, "code": "unexpected"}, status_code=500)


def on_script_error(exc: Exception) -> bool:
    """Show a sentence where Streamlit would show a traceback."""
    if isinstance(exc, NotAllowed):
        st.warning(exc.message, icon=":material/lock:")
    elif isinstance(exc, RagError):
        st.error(exc.message, icon=":material/error:")
    else:
        log.error("a page failed", exc_info=exc)
        st.error(RagError().message, icon=":material/error:")
    return True


ROUTES = [
    *sign_in.routes(services),
    *documents.ROUTES,
    *reference_documents.ROUTES,
    *opinion.ROUTES,
    Route("/api/health", health),
]
MIDDLEWARE = [Middleware(AuthGuard, services=services)]
ERROR_HANDLERS: dict[Any, Any] = {RagError: on_error, Exception: on_unexpected}
