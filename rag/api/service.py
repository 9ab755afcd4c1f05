"""Routes for `/api/health`, `/api/ready`, `/api/me` and `/metrics`.

Metrics need a separate key (`RAG_METRICS_KEY`); without it, only this machine may read them.
"""

from __future__ import annotations

import hmac
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit
from uuid import UUID

from anyio import move_on_after, to_thread
from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rag.access.api_keys import scopes_of
from rag.access.guard import METRICS_PATH
from rag.access.problems import problem, problems
from rag.answering.concurrency_limit import RETRY_SECONDS
from rag.api.health import Health, check_rag_health
from rag.api.routing import ANYBODY, PUBLIC, ApiKey, ApiModel, ApiRoute, Caller, needs
from rag.errors import DatabaseUnavailable, KeyRejected, RagError
from rag.monitoring import metrics
from rag.services import Services, services
from rag.storage.database import WORKER, queries
from rag.types import Identity, Role

router = APIRouter(route_class=ApiRoute, tags=["Service"])

#: Longest wait for the checks administrators see; after it, the response leaves them out.
DETAILS_SECONDS = 1.1
SLOW = "The database has not answered for more than a second."


class CheckShape(ApiModel):
    """A check's result: a part of the installation, with state and explanation."""

    name: str
    state: Literal["ok", "missing", "warning", "failed"]
    sentence: str
    #: Settings, commands and versions, for the person who runs the server.
    detail: str = ""


class DatabaseShape(ApiModel):
    """Whether the database responds, and if not, why."""

    state: Literal["up", "slow", "down"]
    sentence: str | None = None


class HealthShape(ApiModel):
    """`live`: the process responds. `ready`: people can ask questions. Only administrators see the checks."""

    ok: bool
    live: bool
    ready: bool
    database: DatabaseShape
    checks: list[CheckShape] | None = None


class ReadyShape(ApiModel):
    """Whether a load balancer may send more people to this process."""

    ready: bool


class Me(BaseModel):
    """The signed-in person or the API key which sent the request."""

    account_id: UUID
    tenant_id: str
    email: str
    name: str
    role: str
    user_group: str
    scopes: list[str]


@router.get(
    "/api/health",
    summary="Health",
    dependencies=[needs(PUBLIC)],
    response_model_exclude_none=True,
    responses=problems(503),
)
async def health(request: Request, response: Response, key: ApiKey) -> HealthShape:
    """Check whether the service is ready, without signing in. If not, the status is 503. Responds within two seconds.

    Administrators, and keys with the scope admin, see every check. `/_stcore/health` only says that the process is
    alive.
    """
    database = database_state()
    caller: Identity | None = request.scope.get("identity")
    may_see = caller is not None and ("admin" in key.scopes if key else caller.may(Role.ADMIN))
    report: Health | None = None
    if may_see and database.state == "up":
        with move_on_after(DETAILS_SECONDS):
            report = await to_thread.run_sync(check_rag_health, abandon_on_cancel=True)
        database = database_state()
    ready = database.state == "up" and (report is None or report.ok)
    checks = [CheckShape.model_validate(check, from_attributes=True) for check in report.checks] if report else None
    response.status_code = 200 if ready else 503
    return HealthShape(ok=ready, live=True, ready=ready, database=database, checks=checks)


@router.get("/api/ready", summary="Readiness", dependencies=[needs(PUBLIC)], responses=problems(503))
def ready(response: Response) -> ReadyShape:
    """Tell load balancers whether this process can serve more people, without signing in.

    The status is 503 if the database does not respond. It is also 503 if the number of answers in progress comes near
    the maximum (`RAG_ANSWERS_UNDER_WAY`), because more people would have to queue. People who are already using this
    process continue to be served.
    """
    is_ready = database_state().state == "up" and services().answers.has_capacity
    if not is_ready:
        response.status_code = 503
        response.headers["Retry-After"] = str(RETRY_SECONDS)
    return ReadyShape(ready=is_ready)


@router.get("/api/me", summary="Who is calling", dependencies=[needs(ANYBODY)])
def me(caller: Caller, key: ApiKey) -> Me:
    """Return the signed-in person or the key, and the scopes. Pages call this to notice the end of a session."""
    return Me(
        account_id=caller.account_id,
        tenant_id=caller.tenant_id,
        email=caller.email,
        name=caller.name,
        role=caller.role.value,
        user_group=caller.user_group,
        scopes=sorted(key.scopes if key else scopes_of(caller.role)),
    )


def database_state() -> DatabaseShape:
    """Return the database's state from the last regular check, because a query could hang."""
    try:
        database = services().database
    except RagError as exc:
        return DatabaseShape(state="down", sentence=exc.message)
    if database.availability.is_ready:
        return DatabaseShape(state="up")
    if database.availability.is_down:
        return DatabaseShape(state="down", sentence=database.unavailable().message)
    return DatabaseShape(state="slow", sentence=SLOW)


REFUSED = (
    "These figures are for the monitoring system. Send RAG_METRICS_KEY as `Authorization: Bearer`; without it, ask "
    "from the machine of the application."
)


async def scrape(request: Request) -> Response:
    """Return this process's metrics in Prometheus's text format."""
    parts = services()
    if not _may_see(request, parts.settings.metrics_key):
        return problem(KeyRejected(REFUSED), headers={"WWW-Authenticate": "Bearer"})
    await to_thread.run_sync(_update_gauges, parts)
    return Response(generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST, "Cache-Control": "no-store"})


METRICS = Route(METRICS_PATH, scrape, methods=["GET"], name="metrics", include_in_schema=False)


def _may_see(request: Request, key: str) -> bool:
    kind, _, sent = request.headers.get("authorization", "").partition(" ")
    if key and kind.lower() == "bearer":
        return hmac.compare_digest(sent.strip().encode(), key.encode())
    return not key and _is_local(request)


def _is_local(request: Request) -> bool:
    if "x-forwarded-for" in request.headers or "forwarded" in request.headers or request.client is None:
        return False
    try:
        is_here = ip_address(request.client.host).is_loopback
    except ValueError:
        return False
    return is_here and urlsplit(f"//{request.headers.get('host', '')}").hostname in ("localhost", "127.0.0.1", "::1")


def _update_gauges(parts: Services) -> None:
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
    parts.measure(parts)
