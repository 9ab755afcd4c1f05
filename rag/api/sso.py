"""Routes of signing in elsewhere: sent away, come back into a session of ours, signed out from there."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict

from anyio import to_thread
from cryptography.fernet import Fernet, InvalidToken
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rag.access.guard import cookie_name, is_https, read_cookie
from rag.access.identity import AccessServices
from rag.access.oidc import Attempt, OpenIdProvider
from rag.api.form_pages import read_form
from rag.api.sign_in import SignInPages, safe_next
from rag.errors import AccessError, NotFound, RagError
from rag.settings import Settings

ATTEMPT_COOKIE = "hr_sso"
#: How long somebody may take at the provider, in seconds.
ATTEMPT_SECONDS = 600
STALE = "This sign-in took too long, or was begun in another browser. Please try again."
NO_STORE = {"Cache-Control": "no-store"}


def routes(services: Callable[[], AccessServices], pages: SignInPages) -> list[Route]:
    """The routes, which answer 404 where no provider is set."""
    handlers = SingleSignOn(services, pages)
    return [
        Route("/sso/start", handlers.start, methods=["GET"]),
        Route("/sso/callback", handlers.come_back, methods=["GET"]),
        Route("/sso/logout", handlers.sign_out, methods=["POST"]),
    ]


class SingleSignOn:
    """The handlers. What talks to the provider runs in threads."""

    def __init__(self, services: Callable[[], AccessServices], pages: SignInPages) -> None:
        self._services = services
        self._pages = pages

    async def start(self, request: Request) -> Response:
        target = safe_next(request.query_params.get("next", "/"))
        attempt = Attempt(
            state=secrets.token_urlsafe(24),
            nonce=secrets.token_urlsafe(24),
            verifier=secrets.token_urlsafe(48),
            next=target,
            asked_again_at=time.time() if "again" in request.query_params else 0.0,
        )
        try:
            address = await to_thread.run_sync(self._provider().address_for, attempt)
        except RagError as exc:
            return self._pages.sign_in_trouble(request, exc, target)
        answer = RedirectResponse(address, 303, NO_STORE)
        settings = self._services().settings
        answer.set_cookie(
            cookie_name(request.scope, settings, ATTEMPT_COOKIE),
            _lock(settings).encrypt(json.dumps(asdict(attempt)).encode()).decode(),
            max_age=ATTEMPT_SECONDS,
            httponly=True,
            samesite="lax",
            secure=is_https(request.scope, settings),
        )
        return answer

    async def come_back(self, request: Request) -> Response:
        target = "/"
        try:
            attempt = self._attempt(request)
            target = attempt.next
            account = await to_thread.run_sync(self._provider().finish, attempt, dict(request.query_params))
        except RagError as exc:
            answer = self._pages.sign_in_trouble(request, exc, target)
        else:
            answer = await self._pages.forms.start_session(request, account, target)
        self._pages.forms.forget_cookie(request, answer, ATTEMPT_COOKIE)
        return answer

    async def sign_out(self, request: Request) -> Response:
        """Back-channel logout: the provider itself says that somebody is signed out. 200, or 400 when it is not it."""
        form = await read_form(request)
        try:
            for named in await to_thread.run_sync(self._provider().signed_out, form.get("logout_token", "")):
                await to_thread.run_sync(self._services().sessions.end_of_origin, named)
        except AccessError:
            return Response(status_code=400, headers=NO_STORE)
        except RagError as exc:
            return Response(status_code=exc.status, headers=NO_STORE)
        return Response(status_code=200, headers=NO_STORE)

    def _provider(self) -> OpenIdProvider:
        provider = self._services().single_sign_on
        if provider is None:
            raise NotFound
        return provider

    def _attempt(self, request: Request) -> Attempt:
        try:
            settings = self._services().settings
            stored = _lock(settings).decrypt(
                read_cookie(request.scope, settings, ATTEMPT_COOKIE).encode(), ttl=ATTEMPT_SECONDS
            )
        except InvalidToken as exc:
            raise AccessError(STALE) from exc
        return Attempt(**json.loads(stored))


def _lock(settings: Settings) -> Fernet:
    key = hashlib.sha256(b"sign-in attempts\x00" + settings.oidc_client_secret.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))
