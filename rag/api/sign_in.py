"""Signing in and out, the first administrator, passwords: pages of our own that need no Streamlit session.

Every form carries a token that has to equal a cookie no other site can read; the guard checks the origin besides.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlsplit
from uuid import UUID

from anyio import CapacityLimiter, to_thread
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from rag.access.api_keys import scopes_of
from rag.access.guard import FORM_TYPE, SESSION_COOKIE, is_https
from rag.access.identity import AccessServices, BuiltInAccounts, IdentityProvider
from rag.access.sessions import TOKEN
from rag.api.endpoint import ANYBODY, Call, endpoint
from rag.api.html_pages import Markup, note, page
from rag.errors import LinkExpired, RagError, TooManyAttempts
from rag.types import Account, Identity

CSRF_COOKIE = "hr_csrf"
MAXIMUM_FORM_BYTES = 16 * 1024
#: Argon2 takes a core and 64 MiB for about 50 ms; more at once would only starve the answers being written.
PASSWORDS_AT_ONCE = 2
MAXIMUM_WAITING = 50
STALE_FORM = "This page was open for too long. Please try again."
NEXT_PATH = re.compile(r"/(?!/)[^\\\x00-\x20\x7f]*")
Result = TypeVar("Result")


def routes(services: Callable[[], AccessServices], pages: SignInPages | None = None) -> list[Route]:
    """The routes of signing in. `services` is called with each request, never before."""
    pages = pages or SignInPages(services)
    return [
        Route("/login", pages.show_sign_in, methods=["GET"]),
        Route("/login", pages.sign_in, methods=["POST"]),
        Route("/logout", pages.show_sign_out, methods=["GET"]),
        Route("/logout", pages.sign_out, methods=["POST"]),
        Route("/welcome", pages.show_welcome, methods=["GET"]),
        Route("/welcome", pages.create_first_admin, methods=["POST"]),
        Route("/set-password", pages.show_set_password, methods=["GET"]),
        Route("/set-password", pages.set_password, methods=["POST"]),
        Route("/account/password", pages.show_change_password, methods=["GET"]),
        Route("/account/password", pages.change_password, methods=["POST"]),
        me,
    ]


def safe_next(path: str) -> str:
    """The path if it leads somewhere on this site, else `/`. Browsers read `//x` and `/\\x` as other sites."""
    is_ours = len(path) <= 2000 and NEXT_PATH.fullmatch(path) and not path.startswith(("/login", "/logout"))
    return path if is_ours and not urlsplit(path).netloc else "/"


class Me(BaseModel):
    """Who calls."""

    account_id: UUID
    tenant_id: str
    email: str
    name: str
    role: str
    user_group: str
    scopes: list[str]


@endpoint("/api/me", scope=ANYBODY, summary="Who is calling", answer=Me, tags=("Service",))
def me(call: Call[None]) -> Me:
    """Who is signed in, or which key this is, with what it may do. Pages ask it to notice the end of a session."""
    identity = call.identity
    return Me(
        account_id=identity.account_id,
        tenant_id=identity.tenant_id,
        email=identity.email,
        name=identity.name,
        role=identity.role.value,
        user_group=identity.user_group,
        scopes=sorted(call.api_key.scopes if call.api_key else scopes_of(identity.role)),
    )


class SignInPages:
    """The handlers. What blocks runs in threads, what hashes passwords in few."""

    def __init__(self, services: Callable[[], AccessServices]) -> None:
        self._services = services
        self._limiter: CapacityLimiter | None = None

    async def show_sign_in(self, request: Request) -> Response:
        target = safe_next(request.query_params.get("next", "/"))
        token = request.cookies.get(SESSION_COOKIE, "")
        identity = await to_thread.run_sync(self._services().sessions.find, token)
        if identity is not None:
            return _redirect(target)
        if elsewhere := self._provider().begin(target):
            return _redirect(elsewhere)
        is_signed_out = "signed-out" in request.query_params
        return self._sign_in_page(request, next=target, message="You are signed out." if is_signed_out else "")

    async def sign_in(self, request: Request) -> Response:
        form = await read_form(request)
        target, email = safe_next(form.get("next", "/")), form.get("email", "")[:254]
        if not has_token(request, form):
            return self._sign_in_page(request, next=target, email=email, error=STALE_FORM, status=403)
        try:
            account = await self._with_password(self._provider().sign_in, form)
        except RagError as exc:
            answer = self._sign_in_page(request, next=target, email=email, error=exc.message, status=exc.status)
            if isinstance(exc, TooManyAttempts) and "wait_seconds" in exc.details:
                answer.headers["Retry-After"] = str(exc.details["wait_seconds"])
            return answer
        return await self.start_session(request, account, target)

    async def show_sign_out(self, request: Request) -> Response:
        return self._page(request, "sign_out", title="Sign out", note=note(""))

    async def sign_out(self, request: Request) -> Response:
        if not has_token(request, await read_form(request)):
            return self._page(request, "sign_out", title="Sign out", note=note(STALE_FORM), status=403)
        await to_thread.run_sync(self._services().sessions.end, request.cookies.get(SESSION_COOKIE, ""))
        answer = _redirect("/login?signed-out=1")
        for name in (SESSION_COOKIE, CSRF_COOKIE):
            answer.delete_cookie(name, httponly=True, samesite="lax", secure=self._is_https(request))
        return answer

    async def show_welcome(self, request: Request) -> Response:
        token = request.query_params.get("token", "")
        try:
            await to_thread.run_sync(self._services().accounts.require_first_admin_link, token)
        except RagError as exc:
            return self._link_trouble(request, exc, is_first_admin=True)
        return self._welcome_page(request, token=token)

    async def create_first_admin(self, request: Request) -> Response:
        form = await read_form(request)
        token, email, name = (form.get(field, "") for field in ("token", "email", "name"))
        shown = {"token": token, "email": email[:254], "name": name[:120]}
        if not has_token(request, form):
            return self._welcome_page(request, **shown, error=STALE_FORM, status=403)
        try:
            account = await self._with_password(
                self._services().accounts.create_first_admin, token, email, name, form.get("password", "")
            )
        except LinkExpired as exc:
            return self._link_trouble(request, exc, is_first_admin=True)
        except RagError as exc:
            return self._welcome_page(request, **shown, error=exc.message, status=exc.status)
        return await self.start_session(request, account, "/")

    async def show_set_password(self, request: Request) -> Response:
        return await self._set_password_page(request, request.query_params.get("token", ""))

    async def set_password(self, request: Request) -> Response:
        form = await read_form(request)
        token = form.get("token", "")
        if not has_token(request, form):
            return await self._set_password_page(request, token, error=STALE_FORM, status=403)
        try:
            account = await self._with_password(
                self._services().accounts.set_password_by_link, token, form.get("password", "")
            )
        except RagError as exc:
            return await self._set_password_page(request, token, error=exc.message, status=exc.status)
        return await self.start_session(request, account, "/")

    async def show_change_password(self, request: Request) -> Response:
        return self._change_password_page(request)

    async def change_password(self, request: Request) -> Response:
        form = await read_form(request)
        if not has_token(request, form):
            return self._change_password_page(request, error=STALE_FORM, status=403)
        identity: Identity = request.scope["identity"]
        try:
            await self._with_password(
                self._services().accounts.change_password, identity, form.get("current", ""), form.get("password", "")
            )
        except RagError as exc:
            # 401 would say that the session has ended; it has not.
            return self._change_password_page(
                request, error=exc.message, status=422 if exc.status == 401 else exc.status
            )
        message = "Your password is changed. You are signed out everywhere but here."
        return self._page(request, "message", title="Password changed", message=message, action="/", label="Continue")

    def sign_in_trouble(self, request: Request, exc: RagError, target: str) -> Response:
        """The sign-in page with what went wrong elsewhere."""
        return self._sign_in_page(request, next=target, error=exc.message, status=exc.status)

    # Inside

    def _provider(self) -> IdentityProvider:
        return BuiltInAccounts(self._services().accounts)

    async def _with_password(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Run what hashes a password, few at once. Raises `TooManyAttempts` when too many wait already."""
        if self._limiter is None:
            self._limiter = CapacityLimiter(PASSWORDS_AT_ONCE)
        if self._limiter.statistics().tasks_waiting >= MAXIMUM_WAITING:
            raise TooManyAttempts("Too many people are signing in at this moment. Try again in a minute.")
        return await to_thread.run_sync(work, *arguments, limiter=self._limiter)

    async def start_session(self, request: Request, account: Account, target: str) -> Response:
        """Send a signed-in person on with a new session; whatever session the browser had is over."""
        services = self._services()
        if before := request.cookies.get(SESSION_COOKIE, ""):
            await to_thread.run_sync(services.sessions.end, before)
        token = await to_thread.run_sync(services.sessions.start, account, request.headers.get("user-agent", ""))
        answer = _redirect(target)
        self._set_cookie(request, answer, SESSION_COOKIE, token)
        self._set_cookie(request, answer, CSRF_COOKIE, secrets.token_urlsafe(32))
        return answer

    def _set_cookie(self, request: Request, answer: Response, name: str, value: str) -> None:
        answer.set_cookie(
            name,
            value,
            max_age=self._services().settings.session_days * 24 * 60 * 60,
            httponly=True,
            samesite="lax",
            secure=self._is_https(request),
        )

    def _is_https(self, request: Request) -> bool:
        return is_https(request.scope, self._services().settings)

    def _page(
        self, request: Request, template: str, /, *, title: str, status: int = 200, foot: str = "", **values: str
    ) -> Response:
        token = request.cookies.get(CSRF_COOKIE, "")
        is_new = not TOKEN.fullmatch(token)
        token = secrets.token_urlsafe(32) if is_new else token
        html = page(template, title=title, foot=foot, csrf=token, **values)
        answer = HTMLResponse(html, status, {"Cache-Control": "no-store"})
        if is_new:
            self._set_cookie(request, answer, CSRF_COOKIE, token)
        return answer

    def _sign_in_page(
        self, request: Request, *, next: str, email: str = "", error: str = "", message: str = "", status: int = 200
    ) -> Response:
        focus = Markup(" autofocus")
        return self._page(
            request,
            "sign_in",
            title="Sign in",
            foot="No account or a lost password? Your administrator gives you a link.",
            status=status,
            next=next,
            email=email,
            note=note(error or message, is_error=bool(error)),
            single_sign_on=self._single_sign_on_button(next),
            focus_email="" if email else focus,
            focus_password=focus if email else "",
        )

    def _single_sign_on_button(self, target: str) -> Markup:
        services = self._services()
        if services.single_sign_on is None:
            return Markup("")
        where = escape(f"/sso/start?next={quote(target, safe='/')}")
        name = escape(services.settings.oidc_name)
        return Markup(f'<p class="or">or</p><a class="other" href="{where}">Sign in with {name}</a>')

    def _welcome_page(
        self, request: Request, *, token: str, email: str = "", name: str = "", error: str = "", status: int = 200
    ) -> Response:
        title = "Welcome"
        return self._page(
            request, "welcome", title=title, status=status, token=token, email=email, name=name, note=note(error)
        )

    async def _set_password_page(self, request: Request, token: str, *, error: str = "", status: int = 200) -> Response:
        try:
            account = await to_thread.run_sync(self._services().accounts.account_of_link, token)
        except RagError as exc:
            return self._link_trouble(request, exc, is_first_admin=False)
        title = "Choose a password"
        return self._page(
            request, "set_password", title=title, status=status, token=token, email=account.email, note=note(error)
        )

    def _change_password_page(self, request: Request, *, error: str = "", status: int = 200) -> Response:
        email = request.scope["identity"].email
        foot = Markup('<a href="/">Back to HR Assistant</a>')
        return self._page(
            request, "change_password", title="Change password", foot=foot, status=status, email=email, note=note(error)
        )

    def _link_trouble(self, request: Request, exc: RagError, *, is_first_admin: bool) -> Response:
        message = exc.message
        if is_first_admin and isinstance(exc, LinkExpired):
            message = (
                "This link has been used or has expired. If there is no account yet, start HR Assistant again: "
                "it prints a new link."
            )
        title = "This link does not work" if isinstance(exc, LinkExpired) else "Not available"
        return self._page(
            request, "message", title=title, status=exc.status, message=message, action="/login", label="Go to sign in"
        )


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


def _redirect(target: str) -> RedirectResponse:
    return RedirectResponse(target, 303, {"Cache-Control": "no-store"})
