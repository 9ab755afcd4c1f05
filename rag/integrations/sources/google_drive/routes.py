"""Routes on which administrators sign in with Google, to let a collection read their Drive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rag.access.guard import base_of, cookie_name, is_https, read_cookie
from rag.api.form_pages import page_of
from rag.errors import NotAllowed, NotFound, RagError
from rag.integrations.sources.google_drive.sign_in import (
    ACCOUNT_COOKIE,
    ACCOUNT_SECONDS,
    ATTEMPT_SECONDS,
    DriveAttempt,
    GoogleSignIn,
)
from rag.language import N_, _
from rag.services import services
from rag.types import Identity, Role

GOOGLE = "/sources/google/"
ATTEMPT_COOKIE = "hr_google_attempt"
TITLE = N_("Sign in with Google")
NO_STORE = {"Cache-Control": "no-store"}


async def start(request: Request) -> Response:
    """Redirect an administrator to Google's sign-in."""

    def begin(identity: Identity, google: GoogleSignIn) -> Response:
        try:
            collection_id = UUID(request.query_params.get("collection", ""))
        except ValueError as exc:
            raise NotFound from exc
        collection = services().documents.collection(identity, collection_id)
        back = f"{base_of(request.scope, services().settings)}{GOOGLE}callback"
        attempt = DriveAttempt.begin(collection.id, back)
        answer = RedirectResponse(google.address_for(attempt), 303, NO_STORE)
        _keep(request, answer, ATTEMPT_COOKIE, google.seal(attempt, identity), ATTEMPT_SECONDS)
        return answer

    return await _run_for_admin(request, begin)


async def come_back(request: Request) -> Response:
    """Exchange Google's code for a key, and return to the collection."""

    def finish(identity: Identity, google: GoogleSignIn) -> Response:
        attempt = google.attempt(read_cookie(request.scope, services().settings, ATTEMPT_COOKIE), identity)
        account = google.finish(attempt, dict(request.query_params))
        target = f"/collections?collection={attempt.collection_id}&source=google_drive"
        answer = RedirectResponse(target, 303, NO_STORE)
        _keep(request, answer, ACCOUNT_COOKIE, google.seal(account, identity), ACCOUNT_SECONDS)
        return answer

    answer = await _run_for_admin(request, finish)
    answer.delete_cookie(
        cookie_name(request.scope, services().settings, ATTEMPT_COOKIE),
        httponly=True, samesite="lax", secure=is_https(request.scope, services().settings),
    )  # fmt: skip
    return answer


async def _run_for_admin(request: Request, act: Callable[[Identity, GoogleSignIn], Response]) -> Response:
    identity = request.scope.get("identity")
    try:
        if not isinstance(identity, Identity) or not identity.may(Role.ADMIN) or request.scope.get("api_key"):
            raise NotAllowed
        google = GoogleSignIn(services().database, services().settings)
        if not google.is_offered:
            raise NotFound
        return await to_thread.run_sync(act, identity, google)
    except RagError as exc:
        values: dict[str, Any] = {"message": exc.message, "action": "/collections", "label": _("Go to the collections")}
        return HTMLResponse(page_of("message", title=_(TITLE), **values), exc.status, NO_STORE)


def _keep(request: Request, answer: Response, name: str, value: str, seconds: int) -> None:
    settings = services().settings
    answer.set_cookie(
        cookie_name(request.scope, settings, name),
        value,
        max_age=seconds,
        httponly=True,
        samesite="lax",
        secure=is_https(request.scope, settings),
    )
