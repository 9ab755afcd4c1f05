"""Serve `/metrics` for Prometheus, with a key of its own (`RAG_METRICS_KEY`) or from this machine."""

from __future__ import annotations

import hmac
from ipaddress import ip_address
from urllib.parse import urlsplit

from anyio import to_thread
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rag.access.guard import METRICS_PATH
from rag.access.problems import problem
from rag.errors import DatabaseUnavailable, KeyRejected
from rag.monitoring import metrics
from rag.services import Services, services
from rag.storage.database import WORKER, queries

REFUSED = (
    "These figures are for the monitoring system. Send RAG_METRICS_KEY as `Authorization: Bearer`; without it, ask "
    "from the machine of the application."
)


async def scrape(request: Request) -> Response:
    """Return every metric of this process in the text format of Prometheus."""
    parts = services()
    if not _may_see(request, parts.settings.metrics_key):
        return problem(KeyRejected(REFUSED), headers={"WWW-Authenticate": "Bearer"})
    await to_thread.run_sync(_look, parts)
    return Response(generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST, "Cache-Control": "no-store"})


ROUTE = Route(METRICS_PATH, scrape, methods=["GET"], name="metrics", include_in_schema=False)


def _may_see(request: Request, key: str) -> bool:
    kind, _, sent = request.headers.get("authorization", "").partition(" ")
    if key and kind.lower() == "bearer":
        return hmac.compare_digest(sent.strip().encode(), key.encode())
    return not key and _is_local(request)


def _is_local(request: Request) -> bool:
    """Return whether a program on this machine asks for this machine; what a proxy passes on names another host."""
    if "x-forwarded-for" in request.headers or "forwarded" in request.headers or request.client is None:
        return False
    try:
        is_here = ip_address(request.client.host).is_loopback
    except ValueError:
        return False
    return is_here and urlsplit(f"//{request.headers.get('host', '')}").hostname in ("localhost", "127.0.0.1", "::1")


def _look(parts: Services) -> None:
    """Bring the gauges up to date that nothing else sets."""
    database = parts.database
    size, free, waiting = database.pool_use()
    metrics.database_connections.labels("used").set(size - free)
    metrics.database_connections.labels("free").set(free)
    metrics.database_waiting.set(waiting)
    metrics.jobs.clear()
    is_up = database.availability.is_ready
    if is_up:
        try:
            with database.transaction(WORKER) as connection:
                for queue, state, count in connection.execute(queries["jobs_by_state"]):
                    metrics.jobs.labels(queue, state).set(count)
        except DatabaseUnavailable:
            is_up = False
    metrics.database_up.set(is_up)
    if parts.backups.is_on:
        for kind, age in parts.backups.ages().items():
            metrics.backup_age.labels(kind).set(age)
