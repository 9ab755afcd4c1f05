"""Pages for the second factor after the password, and for confirming the password before sensitive actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

import segno
from anyio import to_thread
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rag.access.identity import AccessServices
from rag.access.limits import Browser
from rag.access.second_factor import SecondFactors
from rag.access.sessions import CONFIRM
from rag.api.form_pages import (
    PENDING_COOKIE,
    SECOND_FACTOR,
    STALE_FORM,
    FormPages,
    filled,
    link,
    note,
    read_form,
    redirect,
)
from rag.errors import LinkExpired, RagError
from rag.language import N_, _, ngettext
from rag.types import Account, Identity

ACCOUNT_PATH = "/account/second-factor"
ELSEWHERE = N_("Your password is kept by another service, which asks for its own second factor.")


def _back() -> Markup:
    return link("/", _("Back to HR Assistant"))


def _start_again() -> Markup:
    return link("/login", _("Sign in again"))


def routes(forms: FormPages, safe_next: Callable[[str], str]) -> list[Route]:
    """Return the routes. `safe_next` keeps redirects within this site."""
    pages, confirm = SecondFactorPages(forms, safe_next), ConfirmPages(forms, safe_next)
    return [
        Route(SECOND_FACTOR, pages.show_code_page, methods=["GET"]),
        Route(SECOND_FACTOR, pages.give, methods=["POST"]),
        Route(ACCOUNT_PATH, pages.show_own, methods=["GET"]),
        Route(ACCOUNT_PATH, pages.change_own, methods=["POST"]),
        Route(CONFIRM, confirm.show, methods=["GET"]),
        Route(CONFIRM, confirm.confirm, methods=["POST"]),
    ]


class SecondFactorPages:
    """Handle the forms for the second factor. Database calls run in threads."""

    def __init__(self, forms: FormPages, safe_next: Callable[[str], str]) -> None:
        self._forms, self._safe_next = forms, safe_next

    # After the password

    async def show_code_page(self, request: Request) -> Response:
        return await self._code_page(request, self._safe_next(request.query_params.get("next", "/")))

    async def give(self, request: Request) -> Response:
        form = await read_form(request)
        target, token = self._safe_next(form.get("next", "/")), request.cookies.get(PENDING_COOKIE, "")
        if not self._forms.has_token(request, form):
            return self._forms.page(
                request, "message", title=_("Second factor"), status=403, message=_(STALE_FORM), action="/login",
                label=_("Sign in again"),
            )  # fmt: skip
        try:
            account = await to_thread.run_sync(self._factors.account_of, token)
            browser = self._forms.browser_of(request)
            codes = await to_thread.run_sync(self._check_code, account, token, form.get("code", "")[:64], browser)
        except LinkExpired:
            return redirect("/login")
        except RagError as exc:
            return await self._code_page(request, target, error=exc.message, status=exc.status)
        answer = self._codes_page(request, codes, target) if codes else None
        answer = await self._forms.start_session(request, account, target, is_proven=True, answer=answer)
        answer.delete_cookie(PENDING_COOKIE, path=SECOND_FACTOR)
        return answer

    def _check_code(self, account: Account, token: str, code: str, browser: Browser) -> list[str]:
        factors = self._factors
        if factors.state(account.tenant_id, account.id).is_on:
            factors.check(account.tenant_id, account.id, code, browser)
            factors.finish(account, token)
            return []
        codes = factors.confirm(_identity(account), code, browser)
        factors.finish(account, token)
        return codes

    async def _code_page(self, request: Request, target: str, *, error: str = "", status: int = 200) -> Response:
        try:
            account = await to_thread.run_sync(self._factors.account_of, request.cookies.get(PENDING_COOKIE, ""))
            state = await to_thread.run_sync(self._factors.state, account.tenant_id, account.id)
        except LinkExpired:
            return redirect("/login")
        if not state.is_on:
            lead = _(
                "Your organisation requires a second factor. Set it up once; from then on you enter a code after "
                "your password."
            )
            where = {"action": SECOND_FACTOR, "next": target, "lead": lead}
            return await self._set_up_page(request, _identity(account), where, error=error, status=status)
        return self._forms.page(
            request,
            "second_factor",
            title=_("Second factor"),
            foot=_start_again(),
            status=status,
            next=target,
            note=note(error),
        )

    # One's own

    async def show_own(self, request: Request) -> Response:
        return await self._account_page(request)

    async def change_own(self, request: Request) -> Response:
        form = await read_form(request)
        identity: Identity = request.scope["identity"]
        if not self._forms.has_token(request, form):
            return await self._account_page(request, error=_(STALE_FORM), status=403)
        try:
            await self._forms.with_password(
                self._services.accounts.require_password, identity, form.get("password", ""), source=identity.session_id
            )
            codes = await to_thread.run_sync(self._change_own, identity, form, self._forms.browser_of(request))
        except RagError as exc:
            return await self._account_page(request, error=exc.message, status=exc.status)
        return self._codes_page(request, codes, "/") if codes else redirect(ACCOUNT_PATH)

    def _change_own(self, identity: Identity, form: Mapping[str, str], browser: Browser) -> list[str]:
        factors, code, wish = self._factors, form.get("code", "")[:64], form.get("wish", "")
        if wish == "off":
            factors.turn_off(identity, code, browser)
            return []
        act = factors.new_recovery_codes if wish == "codes" else factors.confirm
        return act(identity, code, browser)

    async def _account_page(self, request: Request, *, error: str = "", status: int = 200) -> Response:
        identity: Identity = request.scope["identity"]
        if not self._services.accounts.hashes_passwords:
            return self._forms.page(
                request,
                "message",
                title=_("Second factor"),
                message=_(ELSEWHERE),
                action="/",
                label=_("Back to HR Assistant"),
            )
        state = await to_thread.run_sync(self._factors.state, identity.tenant_id, identity.account_id)
        if not state.is_on:
            lead = _(
                "With a second factor, you enter your password at each sign-in and then a code from an app on your "
                "telephone."
            )
            where = {"action": ACCOUNT_PATH, "next": "/", "lead": lead, "password": filled("password_field")}
            return await self._set_up_page(request, identity, where, error=error, status=status, foot=_back())
        codes_left = await to_thread.run_sync(self._factors.recovery_codes_left, identity)
        off = Markup("") if state.is_required else filled("turn_off_button")
        return self._forms.page(
            request,
            "own_second_factor",
            title=_("Second factor"),
            foot=_back(),
            status=status,
            note=note(error),
            left=ngettext("{count} recovery code left.", "{count} recovery codes left.", codes_left),
            required=_("Your role requires a second factor.") + " " if state.is_required else "",
            password=filled("password_field"),
            off=off,
        )

    # Inside

    async def _set_up_page(
        self,
        request: Request,
        identity: Identity,
        values: Mapping[str, str],
        *,
        error: str = "",
        status: int = 200,
        foot: str = "",
    ) -> Response:
        new_secret = await to_thread.run_sync(self._factors.new_secret, identity)
        picture = segno.make(new_secret.address, error="m").svg_inline(scale=4, border=2, light="white", dark="black")
        groups = " ".join(new_secret.secret[i : i + 4] for i in range(0, len(new_secret.secret), 4))
        return self._forms.page(
            request,
            "set_up_second_factor",
            title=_("Set up a second factor"),
            foot=foot or _start_again(),
            status=status,
            note=note(error),
            secret=groups,
            picture=Markup(picture),  # noqa: S704 - made here
            **{"password": Markup(""), **values},
        )

    def _codes_page(self, request: Request, codes: Sequence[str], target: str) -> Response:
        items = Markup("\n").join(Markup("<li><code>{}</code></li>").format(code) for code in codes)
        return self._forms.page(request, "recovery_codes", title=_("Your recovery codes"), codes=items, target=target)

    @property
    def _services(self) -> AccessServices:
        return self._forms.services()

    @property
    def _factors(self) -> SecondFactors:
        return self._services.accounts.second_factors


class ConfirmPages:
    """Ask for the password again before a sensitive action, then redirect back. The session stays the same.

    A person who signed in at a provider confirms there, and returns with a new session.
    """

    def __init__(self, forms: FormPages, safe_next: Callable[[str], str]) -> None:
        self._forms, self._safe_next = forms, safe_next

    async def show(self, request: Request) -> Response:
        target = self._safe_next(request.query_params.get("next", "/"))
        identity: Identity = request.scope["identity"]
        provider = self._services.single_sign_on
        if provider is not None and await to_thread.run_sync(
            self._services.sessions.began_at, identity, provider.issuer
        ):
            return redirect(f"/sso/start?again=1&next={quote(target, safe='/')}")
        return await self._page(request, target)

    async def confirm(self, request: Request) -> Response:
        form = await read_form(request)
        target = self._safe_next(form.get("next", "/"))
        if not self._forms.has_token(request, form):
            return await self._page(request, target, error=_(STALE_FORM), status=403)
        identity: Identity = request.scope["identity"]
        try:
            await self._forms.with_password(
                self._services.accounts.require_password,
                identity,
                form.get("password", ""),
                self._forms.browser_of(request),
                source=identity.session_id,
            )
            await to_thread.run_sync(self._prove, identity, form, self._forms.browser_of(request))
        except RagError as exc:
            # 401 would say the session has ended, but it has not.
            status = 422 if exc.status == 401 else exc.status
            return await self._page(request, target, error=exc.message, status=status)
        return redirect(target)

    def _prove(self, identity: Identity, form: Mapping[str, str], browser: Browser) -> None:
        if self._asks_for_code(identity):
            code = form.get("code", "")[:64]
            self._services.accounts.second_factors.check(identity.tenant_id, identity.account_id, code, browser)
        self._services.sessions.prove(identity)

    def _asks_for_code(self, identity: Identity) -> bool:
        accounts = self._services.accounts
        # Accounts with passwords elsewhere have no second factor here.
        return (
            accounts.hashes_passwords and accounts.second_factors.state(identity.tenant_id, identity.account_id).is_on
        )

    async def _page(self, request: Request, target: str, *, error: str = "", status: int = 200) -> Response:
        identity: Identity = request.scope["identity"]
        asks_for_code = await to_thread.run_sync(self._asks_for_code, identity)
        return self._forms.page(
            request,
            "confirm",
            title=_("Confirm that it is you"),
            foot=_back() + Markup("<br>{} ").format(_("Not you?")) + link("/logout", _("Sign out")),
            status=status,
            next=target,
            email=identity.email,
            note=note(error),
            code=filled("code_field") if asks_for_code else Markup(""),
        )

    @property
    def _services(self) -> AccessServices:
        return self._forms.services()


def _identity(account: Account) -> Identity:
    return Identity(
        account_id=account.id,
        tenant_id=account.tenant_id,
        email=account.email,
        name=account.name,
        role=account.role,
        user_group=account.user_group,
    )
