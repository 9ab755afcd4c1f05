"""Whether the service lives, and what it still needs: for monitors, and in detail for administrators."""

from __future__ import annotations

from typing import Literal

from anyio import move_on_after, to_thread
from starlette.responses import JSONResponse, Response

from rag.api.endpoint import PUBLIC, ApiModel, Call, endpoint
from rag.api.health import Health, check_rag_health
from rag.api.parts import running
from rag.errors import RagError
from rag.types import Role

#: Longest wait for the checks that administrators see; without them, the rest is answered.
DETAILS_SECONDS = 1.1
SLOW = "The database has not answered for more than a second."


class CheckShape(ApiModel):
    """One thing looked at."""

    name: str
    state: Literal["ok", "missing", "warning", "failed"]
    sentence: str


class DatabaseShape(ApiModel):
    """Whether the database answers, and if not, why."""

    state: Literal["up", "slow", "down"]
    sentence: str | None = None


class HealthShape(ApiModel):
    """Live: the process answers. Ready: people can ask questions. The checks are for administrators."""

    ok: bool
    live: bool
    ready: bool
    database: DatabaseShape
    checks: list[CheckShape] | None = None


@endpoint("/api/health", scope=PUBLIC, summary="Health", answer=HealthShape, errors=(503,), tags=("Service",))
async def health(call: Call[None]) -> Response:
    """Whether the service lives and is ready, without signing in; 503 when it is not ready. Answers within two seconds.

    An administrator, or a key with the scope admin, is also told what was checked. `/_stcore/health` only says that
    the process lives.
    """
    database = database_state()
    may_see = call.caller is not None and (
        "admin" in call.api_key.scopes if call.api_key else call.caller.may(Role.ADMIN)
    )
    report: Health | None = None
    if may_see and database.state == "up":
        with move_on_after(DETAILS_SECONDS):
            report = await to_thread.run_sync(check_rag_health, abandon_on_cancel=True)
        database = database_state()
    ready = database.state == "up" and (report is None or report.ok)
    checks = [CheckShape.model_validate(check, from_attributes=True) for check in report.checks] if report else None
    shown = HealthShape(ok=ready, live=True, ready=ready, database=database, checks=checks)
    return JSONResponse(
        shown.model_dump(mode="json", by_alias=True, exclude_none=True),
        status_code=200 if shown.ready else 503,
        headers={"Cache-Control": "no-store"},
    )


def database_state() -> DatabaseShape:
    """Whether the database answers, as its watcher knows it: asking it here could take as long as it hangs."""
    try:
        parts = running()
    except RagError as exc:
        return DatabaseShape(state="down", sentence=exc.message)
    availability = parts.database.availability
    if availability.is_ready:
        return DatabaseShape(state="up")
    state: Literal["slow", "down"] = "down" if availability.is_down else "slow"
    sentence = SLOW if state == "slow" else parts.database.unavailable().message
    return DatabaseShape(state=state, sentence=sentence)


ROUTES = [health]
