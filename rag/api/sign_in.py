"""Signing in and out: pages of our own that need no Streamlit session."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from urllib.parse import quote, urlsplit
from uuid import UUID

from anyio import to_thread
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rag.access.api_keys import scopes_of
from rag.access.guard import SESSION_COOKIE
from rag.access.identity import AccessServices, BuiltInAccounts, IdentityProvider
from rag.access.limits import Browser
from rag.api import confirm_pages, password_pages, second_factor_pages
from rag.api.endpoint import ANYBODY, Call, endpoint
from rag.api.form_pages import CSRF_COOKIE, STALE_FORM, FormPages, read_form, redirect
from rag.api.html_pages import Markup, note
from rag.errors import RagError, TooManyAttempts, WrongPassword
from rag.types import Account

NEXT_PATH = re.compile(r"/(?!/)[^\\\x00-\x20\x7f]*")
FOOT = Markup('<a href="/forgot-password">Forgot your password?</a><br>No account? Ask your administrator.')


def routes(services: Callable[[], AccessServices], pages: SignInPages | None = None) -> list[Route]:
    """The routes of signing in. `services` is called with each request, never before."""
    pages = pages or SignInPages(services)
    return [
        Route("/login", pages.show_sign_in, methods=["GET"]),
        Route("/login", pages.sign_in, methods=["POST"]),
        Route("/logout", pages.show_sign_out, methods=["GET"]),
        Route("/logout", pages.sign_out, methods=["POST"]),
        *password_pages.routes(pages.forms),
        *second_factor_pages.routes(pages.forms, safe_next),
        *confirm_pages.routes(pages.forms, safe_next),
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
    """The handlers. What blocks runs in threads."""

    def __init__(self, services: Callable[[], AccessServices]) -> None:
        self._services = services
        self.forms = FormPages(services)

    async def show_sign_in(self, request: Request) -> Response:
        target = safe_next(request.query_params.get("next", "/"))
        token = self.forms.cookie(request, SESSION_COOKIE)
        identity = await to_thread.run_sync(self._services().sessions.find, token)
        if identity is not None:
            return redirect(target)
        if elsewhere := self._provider().begin(target):
            return redirect(elsewhere)
        is_signed_out = "signed-out" in request.query_params
        return self._sign_in_page(request, next=target, message="You are signed out." if is_signed_out else "")

    async def sign_in(self, request: Request) -> Response:
        form = await read_form(request)
        target, email = safe_next(form.get("next", "/")), form.get("email", "")[:254]
        if not self.forms.has_token(request, form):
            return self._sign_in_page(request, next=target, email=email, error=STALE_FORM, status=403)
        try:
            browser = self.forms.browser_of(request)
            is_known = bool(browser.known_token) and await to_thread.run_sync(
                self._services().accounts.knows_browser, email, browser
            )
            if not is_known:
                self._services().limits.require_few_wrong(browser.address)
            account = await self._checked(form, browser, is_known=is_known)
        except RagError as exc:
            answer = self._sign_in_page(request, next=target, email=email, error=exc.message, status=exc.status)
            if isinstance(exc, TooManyAttempts) and "wait_seconds" in exc.details:
                answer.headers["Retry-After"] = str(exc.details["wait_seconds"])
            return answer
        return await self.forms.start_session(request, account, target)

    async def _checked(self, form: Mapping[str, str], browser: Browser, *, is_known: bool) -> Account:
        """The account that signs in. Raises `AccessError`; a wrong password counts for the address it came from."""
        try:
            return await self.forms.with_password(
                self._provider().sign_in, form, browser, is_known=is_known, source=browser.mark
            )
        except WrongPassword:
            self._services().limits.note_wrong(browser.address)
            raise

    async def show_sign_out(self, request: Request) -> Response:
        return self.forms.page(request, "sign_out", title="Sign out", note=note(""))

    async def sign_out(self, request: Request) -> Response:
        if not self.forms.has_token(request, await read_form(request)):
            return self.forms.page(request, "sign_out", title="Sign out", note=note(STALE_FORM), status=403)
        await to_thread.run_sync(self._services().sessions.end, self.forms.cookie(request, SESSION_COOKIE))
        answer = redirect("/login?signed-out=1")
        for name in (SESSION_COOKIE, CSRF_COOKIE):
            self.forms.forget_cookie(request, answer, name)
        return answer

    def sign_in_trouble(self, request: Request, exc: RagError, target: str) -> Response:
        """The sign-in page with what went wrong elsewhere."""
        return self._sign_in_page(request, next=target, error=exc.message, status=exc.status)

    # Inside

    def _provider(self) -> IdentityProvider:
        return BuiltInAccounts(self._services().accounts)

    def _sign_in_page(
        self, request: Request, *, next: str, email: str = "", error: str = "", message: str = "", status: int = 200
    ) -> Response:
        focus = Markup(" autofocus")
        return self.forms.page(
            request,
            "sign_in",
            title="Sign in",
            foot=FOOT,
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
