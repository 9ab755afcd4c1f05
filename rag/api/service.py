"""Whether the service lives, and what it still needs: for monitors, and in detail for administrators."""

from __future__ import annotations

import time
from typing import Literal

from starlette.responses import JSONResponse, Response

from rag.api.endpoint import PUBLIC, ApiModel, Call, endpoint
from rag.api.parts import running
from rag.errors import RagError
from rag.health import check_rag_health
from rag.types import Role

#: What monitors ask every second costs the database one question in so many seconds.
KEPT_SECONDS = 2.0


class CheckShape(ApiModel):
    """One thing looked at."""

    name: str
    state: Literal["ok", "missing", "warning", "failed"]
    sentence: str


class HealthShape(ApiModel):
    """Live: the process answers. Ready: people can ask questions. The checks are for administrators."""

    ok: bool
    live: bool
    ready: bool
    checks: list[CheckShape] | None = None


class Readiness:
    """Whether the database answers, asked at most every two seconds."""

    def __init__(self) -> None:
        self._known = (False, 0.0)

    def __call__(self) -> bool:
        is_ready, until = self._known
        if time.monotonic() < until:
            return is_ready
        try:
            with running().database.transaction(None) as connection:
                is_ready = connection.execute("SELECT 1").fetchone() is not None
        except RagError:
            is_ready = False
        self._known = (is_ready, time.monotonic() + KEPT_SECONDS)
        return is_ready


is_ready = Readiness()


@endpoint("/api/health", scope=PUBLIC, summary="Health", answer=HealthShape, errors=(503,), tags=("Service",))
def health(call: Call[None]) -> Response:
    """Whether the service lives and is ready, without signing in; 503 when it is not ready.

    An administrator, or a key with the scope admin, is also told what was checked. `/_stcore/health` only says that
    the process lives.
    """
    may_see = call.caller is not None and (
        "admin" in call.api_key.scopes if call.api_key else call.caller.may(Role.ADMIN)
    )
    if may_see:
        report = check_rag_health(running())
        checks = [CheckShape.model_validate(check, from_attributes=True) for check in report.checks]
        shown = HealthShape(ok=report.ok, live=True, ready=report.ok, checks=checks)
    else:
        ready = is_ready()
        shown = HealthShape(ok=ready, live=True, ready=ready)
    return JSONResponse(
        shown.model_dump(mode="json", by_alias=True, exclude_none=True),
        status_code=200 if shown.ready else 503,
        headers={"Cache-Control": "no-store"},
    )


ROUTES = [health]
