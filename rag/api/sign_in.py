"""Sign people in and out, with a password or at a provider, on pages without a Streamlit session."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from urllib.parse import quote, urlsplit

from anyio import to_thread
from cryptography.fernet import Fernet, InvalidToken
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rag.access.guard import SESSION_COOKIE, cookie_name, is_https, read_cookie
from rag.access.identity import AccessServices, BuiltInAccounts, IdentityProvider, SignInAttempt
from rag.access.identity import SingleSignOn as Provider
from rag.access.limits import Browser
from rag.api import password_pages, second_factor_pages
from rag.api.form_pages import CSRF_COOKIE, STALE_FORM, FormPages, link, note, read_form, redirect, to_markup
from rag.errors import AccessError, DatabaseUnavailable, NotFound, RagError, TooManyAttempts, WrongPassword
from rag.language import LANGUAGES, N_, _, ngettext
from rag.settings import Settings
from rag.types import Account

NEXT_PATH = re.compile(r"/(?!/)[^\\\x00-\x20\x7f]*")

ATTEMPT_COOKIE = "hr_sso"
#: How long somebody may take at the provider, in seconds.
ATTEMPT_SECONDS = 600
STALE = N_("This sign-in took too long, or was begun in another browser. Please try again.")
#: Shown after a page was open when the session ended (the script `keep_draft`).
DRAFT_STAYS = N_("If you had begun to write a question, it is still there after you sign in.")
NO_STORE = {"Cache-Control": "no-store"}


def routes(services: Callable[[], AccessServices]) -> list[Route]:
    """Return the sign-in routes.

    `services` is called at each request, not when the routes are made. Without a configured provider, its routes
    respond 404.
    """
    pages = SignInPages(services)
    elsewhere = SingleSignOn(services, pages)
    return [
        Route("/login", pages.show_sign_in, methods=["GET"]),
        Route("/login", pages.sign_in, methods=["POST"]),
        Route("/logout", pages.show_sign_out, methods=["GET"]),
        Route("/logout", pages.sign_out, methods=["POST"]),
        *password_pages.routes(pages.forms),
        *second_factor_pages.routes(pages.forms, safe_next),
        Route("/sso/start", elsewhere.start, methods=["GET"]),
        Route("/sso/callback", elsewhere.come_back, methods=["GET"]),
        Route("/sso/logout", elsewhere.sign_out, methods=["POST"]),
    ]


def safe_next(path: str) -> str:
    """Return the path if it leads to this site, else `/`. Browsers read `//x` and `/\\x` as other sites."""
    is_ours = len(path) <= 2000 and NEXT_PATH.fullmatch(path) and not path.startswith(("/login", "/logout"))
    return path if is_ours and not urlsplit(path).netloc else "/"


class SignInPages:
    """Handle the sign-in forms. Blocking calls run in threads."""

    def __init__(self, services: Callable[[], AccessServices]) -> None:
        self._services = services
        self.forms = FormPages(services)
        #: The installation's company logo, as last shown on the page.
        self._mark = ""

    async def show_sign_in(self, request: Request) -> Response:
        target = safe_next(request.query_params.get("next", "/"))
        token = self.forms.cookie(request, SESSION_COOKIE)
        identity = await to_thread.run_sync(self._services().sessions.find, token)
        if identity is not None:
            return redirect(target)
        if elsewhere := self._provider().begin(target):
            return redirect(elsewhere)
        is_signed_out = "signed-out" in request.query_params
        with suppress(DatabaseUnavailable):  # the page is shown all the same
            mark = await to_thread.run_sync(self._services().accounts.company_mark)
            self._mark = f"data:image/png;base64,{base64.b64encode(mark).decode()}" if mark else ""
        message = _("You are signed out.") if is_signed_out else await self._why_signed_out(request, token)
        return self._sign_in_page(request, next=target, message=message)

    async def _why_signed_out(self, request: Request, token: str) -> str:
        was_open = "ended" in request.query_params
        if not token and not was_open:
            return ""
        with suppress(DatabaseUnavailable):
            if await to_thread.run_sync(self._services().sessions.ended_idle, token):
                minutes = self._services().settings.session_idle_minutes
                reason = ngettext(
                    "You were signed out because you were not active for {count} minute.",
                    "You were signed out because you were not active for {count} minutes.",
                    minutes,
                )
                return f"{reason} {_(DRAFT_STAYS)}" if was_open else reason
        reason = _("You were signed out, because this session was ended elsewhere or has expired.")
        return f"{reason} {_(DRAFT_STAYS)}" if was_open else reason

    async def sign_in(self, request: Request) -> Response:
        form = await read_form(request)
        target, email = safe_next(form.get("next", "/")), form.get("email", "")[:254]
        if not self.forms.has_token(request, form):
            return self._sign_in_page(request, next=target, email=email, error=_(STALE_FORM), status=403)
        try:
            browser = self.forms.browser_of(request)
            is_known = bool(browser.known_token) and await to_thread.run_sync(
                self._services().accounts.knows_browser, email, browser
            )
            if not is_known:
                self._services().limits.require_few_wrong(browser.address)
            account = await self._check_form(form, browser, is_known=is_known)
        except RagError as exc:
            answer = self._sign_in_page(request, next=target, email=email, error=exc.message, status=exc.status)
            if isinstance(exc, TooManyAttempts) and "wait_seconds" in exc.details:
                answer.headers["Retry-After"] = str(exc.details["wait_seconds"])
            return answer
        if (chosen := form.get("language", "")) in LANGUAGES:
            # Chosen on this page by the person signing in; the browser's earlier language may be another person's.
            await to_thread.run_sync(self._services().sessions.set_language, account.tenant_id, account.id, chosen)
        return await self.forms.start_session(request, account, target)

    async def _check_form(self, form: Mapping[str, str], browser: Browser, *, is_known: bool) -> Account:
        """Check the form and return the account. Raises `AccessError`.

        A wrong password is counted for the browser's network address.
        """
        try:
            return await self.forms.with_password(
                self._provider().sign_in, form, browser, is_known=is_known, source=browser.mark
            )
        except WrongPassword:
            self._services().limits.note_wrong(browser.address)
            raise

    async def show_sign_out(self, request: Request) -> Response:
        return self.forms.page(request, "sign_out", title=_("Sign out"), note=note(""))

    async def sign_out(self, request: Request) -> Response:
        if not self.forms.has_token(request, await read_form(request)):
            return self.forms.page(request, "sign_out", title=_("Sign out"), note=note(_(STALE_FORM)), status=403)
        await to_thread.run_sync(self._services().sessions.end, self.forms.cookie(request, SESSION_COOKIE))
        answer = redirect("/login?signed-out=1")
        for name in (SESSION_COOKIE, CSRF_COOKIE):
            self.forms.forget_cookie(request, answer, name)
        return answer

    def sign_in_trouble(self, request: Request, exc: RagError, target: str) -> Response:
        """Return the sign-in page with an error from a provider."""
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
            title=_("Sign in"),
            foot=link("/forgot-password", _("Forgot your password?"))
            + Markup("<br>")
            + to_markup("No account? Ask your administrator."),
            status=status,
            mark=self._mark,
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
        where = f"/sso/start?next={quote(target, safe='/')}"
        words = _("Sign in with {name}", name=services.settings.oidc_name)
        return Markup('<p class="or">{}</p><a class="other" href="{}">{}</a>').format(_("or"), where, words)


class SingleSignOn:
    """Handle sign-ins at a provider. Calls to the provider run in threads."""

    def __init__(self, services: Callable[[], AccessServices], pages: SignInPages) -> None:
        self._services = services
        self._pages = pages

    async def start(self, request: Request) -> Response:
        target = safe_next(request.query_params.get("next", "/"))
        attempt = SignInAttempt(
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
        """End the sessions named in a provider's logout token (back-channel logout).

        The response is 200, or 400 for an invalid token.
        """
        form = await read_form(request)
        try:
            for named in await to_thread.run_sync(self._provider().signed_out, form.get("logout_token", "")):
                await to_thread.run_sync(self._services().sessions.end_of_origin, named)
        except AccessError:
            return Response(status_code=400, headers=NO_STORE)
        except RagError as exc:
            return Response(status_code=exc.status, headers=NO_STORE)
        return Response(status_code=200, headers=NO_STORE)

    def _provider(self) -> Provider:
        provider = self._services().single_sign_on
        if provider is None:
            raise NotFound
        return provider

    def _attempt(self, request: Request) -> SignInAttempt:
        try:
            settings = self._services().settings
            stored = _lock(settings).decrypt(
                read_cookie(request.scope, settings, ATTEMPT_COOKIE).encode(), ttl=ATTEMPT_SECONDS
            )
        except InvalidToken as exc:
            raise AccessError(STALE) from exc
        return SignInAttempt(**json.loads(stored))


def _lock(settings: Settings) -> Fernet:
    key = hashlib.sha256(b"sign-in attempts\x00" + settings.oidc_client_secret.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))
