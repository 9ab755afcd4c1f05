"""What the pages of signing in share: forms of ours with a token, cookies, and the session they end in.

Every form carries a token that has to equal a cookie no other site can read; the guard checks the origin besides.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rag.access.guard import FORM_TYPE, SESSION_COOKIE, is_https
from rag.access.identity import AccessServices
from rag.access.sessions import TOKEN
from rag.api.html_pages import page
from rag.errors import TooManyAttempts
from rag.types import Account

CSRF_COOKIE = "hr_csrf"
MAXIMUM_FORM_BYTES = 16 * 1024
#: Argon2 takes a core and 64 MiB for about 50 ms; more at once would only starve the answers being written.
PASSWORDS_AT_ONCE = 2
#: Where passwords are kept elsewhere, nothing is hashed here: who signs in waits for the network.
PASSWORDS_ELSEWHERE_AT_ONCE = 100
MAXIMUM_WAITING = 50
STALE_FORM = "This page was open for too long. Please try again."
Result = TypeVar("Result")


class FormPages:
    """Draws our own pages and ends their forms in a session. What hashes a password runs in few threads."""

    def __init__(self, services: Callable[[], AccessServices]) -> None:
        self.services = services
        self._limiter: CapacityLimiter | None = None

    async def with_password(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Run what checks or sets a password; few at once where that hashes it here.

        Raises `TooManyAttempts` when too many wait already.
        """
        if self._limiter is None:
            hashes_here = self.services().accounts.hashes_passwords
            self._limiter = CapacityLimiter(PASSWORDS_AT_ONCE if hashes_here else PASSWORDS_ELSEWHERE_AT_ONCE)
        if self._limiter.statistics().tasks_waiting >= MAXIMUM_WAITING:
            raise TooManyAttempts("Too many people are signing in at this moment. Try again in a minute.")
        return await to_thread.run_sync(work, *arguments, limiter=self._limiter)

    async def start_session(self, request: Request, account: Account, target: str) -> Response:
        """Send a signed-in person on with a new session; whatever session the browser had is over."""
        services = self.services()
        if before := request.cookies.get(SESSION_COOKIE, ""):
            await to_thread.run_sync(services.sessions.end, before)
        token = await to_thread.run_sync(services.sessions.start, account, request.headers.get("user-agent", ""))
        answer = redirect(target)
        self._set_cookie(request, answer, SESSION_COOKIE, token)
        self._set_cookie(request, answer, CSRF_COOKIE, secrets.token_urlsafe(32))
        return answer

    def page(
        self, request: Request, template: str, /, *, title: str, status: int = 200, foot: str = "", **values: str
    ) -> Response:
        """A page around one template, with the token its form needs."""
        token = request.cookies.get(CSRF_COOKIE, "")
        is_new = not TOKEN.fullmatch(token)
        token = secrets.token_urlsafe(32) if is_new else token
        html = page(template, title=title, foot=foot, csrf=token, **values)
        answer = HTMLResponse(html, status, {"Cache-Control": "no-store"})
        if is_new:
            self._set_cookie(request, answer, CSRF_COOKIE, token)
        return answer

    def _set_cookie(self, request: Request, answer: Response, name: str, value: str) -> None:
        answer.set_cookie(
            name,
            value,
            max_age=self.services().settings.session_days * 24 * 60 * 60,
            httponly=True,
            samesite="lax",
            secure=self.is_https(request),
        )

    def is_https(self, request: Request) -> bool:
        """Whether cookies of this answer are for https only."""
        return is_https(request.scope, self.services().settings)


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form; empty when it is not one of ours or larger than any of ours can be."""
    if not request.headers.get("content-type", "").startswith(FORM_TYPE):
        return {}
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAXIMUM_FORM_BYTES:
            return {}
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20))
    except ValueError:
        return {}


def has_token(request: Request, form: Mapping[str, str]) -> bool:
    """Whether the form was made by a page of ours for this browser."""
    cookie, sent = request.cookies.get(CSRF_COOKIE, ""), form.get("csrf", "")
    return bool(TOKEN.fullmatch(cookie)) and hmac.compare_digest(cookie.encode(), sent.encode("utf-8", "replace"))


def redirect(target: str) -> RedirectResponse:
    """Sent on by GET, and not kept by any cache."""
    return RedirectResponse(target, 303, {"Cache-Control": "no-store"})
