"""Render our HTML form pages from templates, with CSRF tokens and cookies, and start sessions from them.

Every form has a token which must equal a cookie unreadable to other sites. The guard also checks the origin.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote

from anyio import to_thread
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rag import language
from rag.access.accounts import KNOWN_BROWSER_DAYS
from rag.access.external import AccountFromElsewhere
from rag.access.guard import FORM_TYPE, SESSION_COOKIE, cookie_name, is_https, read_cookie
from rag.access.identity import AccessServices
from rag.access.limits import Browser
from rag.access.passwords import PasswordQueue
from rag.access.sessions import TOKEN
from rag.language import LANGUAGES, N_, _
from rag.types import Account, Identity

CSRF_COOKIE = "hr_csrf"
#: The language chosen in this browser, for the pages before signing in.
LANGUAGE_COOKIE = "hr_language"
#: Kept after signing out, because wrong passwords from a known browser are counted separately.
KNOWN_COOKIE = "hr_known_browser"
#: Proves a correct password until the second factor is given.
PENDING_COOKIE = "hr_second_factor"
SECOND_FACTOR = "/second-factor"
MAXIMUM_FORM_BYTES = 16 * 1024
#: For passwords stored elsewhere, nothing is hashed here: signing in only waits for the network.
PASSWORDS_ELSEWHERE_AT_ONCE = 100
STALE_FORM = N_("This page was open for too long. Please try again.")
Result = TypeVar("Result")


def to_markup(message: str) -> Markup:
    """Translate a sentence for a template. Values inserted with `format` are escaped."""
    return escape(_(message))


TEMPLATES = Environment(loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True)
TEMPLATES.globals["_"] = to_markup


def page_of(template: str, /, *, title: str, foot: str = "", mark: str = "", **values: str) -> str:
    """Return a page's HTML: a template inside our page frame, with the company's logo if there is any.

    `mark` is the logo as a `data:` address. Values are escaped unless they are `Markup`.
    """
    return TEMPLATES.get_template("frame.html").render(
        title=title,
        body=filled(template, **values),
        foot=foot,
        language=language.current(),
        direction=language.direction(),
        languages=LANGUAGES,
        mark=mark,
    )


def filled(template: str, /, **values: str) -> Markup:
    """Return a template's HTML with the values filled in."""
    return Markup(TEMPLATES.get_template(f"{template}.html").render(values))  # noqa: S704 - it escapes by itself


def note(text: str, *, is_error: bool = True) -> Markup:
    """Build the HTML for a message above a form, which screen readers announce; "" for an empty text."""
    if not text:
        return Markup("")
    kind, role = ("wrong", "alert") if is_error else ("right", "status")
    return Markup('<p class="note {}" role="{}">{}</p>').format(kind, role, text)


def link(address: str, text: str) -> Markup:
    """Build the HTML for a link below a form."""
    return Markup('<a href="{}">{}</a>').format(address, text)


class FormPages:
    """Respond with form pages, and start sessions from them. Passwords are hashed in a few threads."""

    def __init__(self, services: Callable[[], AccessServices]) -> None:
        self.services = services
        self._queue: PasswordQueue | None = None

    async def with_password(
        self, work: Callable[..., Result], *arguments: Any, is_known: bool = False, source: str = ""
    ) -> Result:
        """Run `work`, which checks or changes a password, in the password queue, and return the result.

        Raises `TooManyAttempts` if too many requests are waiting.
        """
        if self._queue is None:
            hashes_here = self.services().accounts.hashes_passwords
            self._queue = PasswordQueue() if hashes_here else PasswordQueue(at_once=PASSWORDS_ELSEWHERE_AT_ONCE)
        return await self._queue.run(work, *arguments, is_known=is_known, source=source)

    def browser_of(self, request: Request) -> Browser:
        """Return the browser's two cookies and network address, to identify the browser for sign-in limits."""
        return Browser(
            known_token=self.cookie(request, KNOWN_COOKIE),
            mark=self.cookie(request, CSRF_COOKIE),
            address=request.client.host if request.client else "",
        )

    async def know_browser(self, request: Request, answer: Response, account: Account | Identity) -> None:
        """Record that the account has signed in from this browser."""
        known_token = self.cookie(request, KNOWN_COOKIE)
        account_id = account.id if isinstance(account, Account) else account.account_id
        token = await to_thread.run_sync(
            self.services().accounts.know_browser, account.tenant_id, account_id, known_token
        )
        self._set_cookie(request, answer, KNOWN_COOKIE, token, days=KNOWN_BROWSER_DAYS)

    async def start_session(
        self,
        request: Request,
        account: Account,
        target: str,
        *,
        is_proven: bool = False,
        answer: Response | None = None,
    ) -> Response:
        """Start a session for a signed-in person, end the browser's earlier session, and redirect.

        If a second factor has to be entered or set up, the redirect leads there first. This is skipped if `is_proven`,
        or if the person signed in at an identity provider. `answer` replaces the redirect.
        """
        services = self.services()
        if not is_proven and not isinstance(account, AccountFromElsewhere):
            factors = services.accounts.second_factors
            state = await to_thread.run_sync(factors.state, account.tenant_id, account.id)
            if not state.is_enough_without:
                pending = await to_thread.run_sync(factors.begin, account)
                answer = redirect(f"{SECOND_FACTOR}?next={quote(target, safe='/')}")
                answer.set_cookie(
                    PENDING_COOKIE, pending, max_age=3600, path=SECOND_FACTOR, httponly=True, samesite="lax",
                    secure=self.is_https(request),
                )  # fmt: skip
                return answer
        if before := self.cookie(request, SESSION_COOKIE):
            await to_thread.run_sync(services.sessions.end, before)
        token = await to_thread.run_sync(services.sessions.start, account, request.headers.get("user-agent", ""))
        answer = answer or redirect(target)
        self._set_cookie(request, answer, SESSION_COOKIE, token)
        self._set_cookie(request, answer, CSRF_COOKIE, secrets.token_urlsafe(32))
        await self.know_browser(request, answer, account)
        return answer

    def page(
        self,
        request: Request,
        template: str,
        /,
        *,
        title: str,
        status: int = 200,
        **values: str,
    ) -> Response:
        """Return a response with a page which contains a form with a CSRF token; for `values`, see `page_of`."""
        token = self.cookie(request, CSRF_COOKIE)
        is_new = not TOKEN.fullmatch(token)
        token = secrets.token_urlsafe(32) if is_new else token
        chosen_language = str(request.scope.get("language", ""))
        html = page_of(template, title=title, csrf=token, **{"chosen_language": chosen_language, **values})
        answer = HTMLResponse(html, status, {"Cache-Control": "no-store"})
        if is_new:
            self._set_cookie(request, answer, CSRF_COOKIE, token)
        if chosen_language:
            self._set_cookie(request, answer, LANGUAGE_COOKIE, chosen_language, days=365)
            if isinstance(identity := request.scope.get("identity"), Identity):
                keep = self.services().sessions.set_language
                answer.background = BackgroundTask(keep, identity.tenant_id, identity.account_id, chosen_language)
        return answer

    def cookie(self, request: Request, name: str) -> str:
        """Return a cookie's value, or ""."""
        return read_cookie(request.scope, self.services().settings, name)

    def has_token(self, request: Request, form: Mapping[str, str]) -> bool:
        """Whether a form's CSRF token equals the token in this browser's cookie."""
        cookie, sent = self.cookie(request, CSRF_COOKIE), form.get("csrf", "")
        return bool(TOKEN.fullmatch(cookie)) and hmac.compare_digest(cookie.encode(), sent.encode("utf-8", "replace"))

    def forget_cookie(self, request: Request, answer: Response, name: str) -> None:
        """Delete one of our cookies in the browser."""
        name = cookie_name(request.scope, self.services().settings, name)
        answer.delete_cookie(name, httponly=True, samesite="lax", secure=self.is_https(request))

    def _set_cookie(self, request: Request, answer: Response, name: str, value: str, *, days: int = 0) -> None:
        answer.set_cookie(
            cookie_name(request.scope, self.services().settings, name),
            value,
            max_age=(days or self.services().settings.session_days) * 24 * 60 * 60,
            httponly=True,
            samesite="lax",
            secure=self.is_https(request),
        )

    def is_https(self, request: Request) -> bool:
        """Whether to set cookies for https only."""
        return is_https(request.scope, self.services().settings)


async def read_form(request: Request) -> dict[str, str]:
    """Read a form's fields. The result is empty for other content types, and for too large a body."""
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


def redirect(target: str) -> RedirectResponse:
    """Return a redirect with status 303, which the browser follows with GET, without caching."""
    return RedirectResponse(target, 303, {"Cache-Control": "no-store"})
