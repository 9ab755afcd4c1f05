"""Pages to set the first administrator's password, set a password by link, change a password, and request a reset.

Someone requesting a reset never learns whether an address has an account.
"""

from __future__ import annotations

import logging

from anyio import to_thread
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rag.access.identity import AccessServices
from rag.api.form_pages import STALE_FORM, FormPages, link, note, read_form
from rag.errors import LinkExpired, RagError
from rag.language import N_, _
from rag.types import Identity

log = logging.getLogger("rag.access")
#: Shown before and after asking for a new password, by whether an e-mail is sent.
LOST = {
    True: N_("Enter the e-mail address of your account. We send you a link for choosing a new password."),
    False: N_(
        "Enter the e-mail address of your account. Your administrators will see your request and give you a link for "
        "choosing a new password. No e-mail is sent."
    ),
}
RESET_MESSAGES = {
    True: N_(
        "If there is an account with this address, an e-mail with a link is on its way. If none comes within a few "
        "minutes, ask your administrator for a link."
    ),
    False: N_(
        "If there is an account with this address, your administrators now see your request. One of them will give you "
        "the link. No e-mail is sent."
    ),
}


def routes(forms: FormPages) -> list[Route]:
    pages = PasswordPages(forms)
    return [
        Route("/welcome", pages.show_welcome, methods=["GET"]),
        Route("/welcome", pages.create_first_admin, methods=["POST"]),
        Route("/set-password", pages.show_set_password, methods=["GET"]),
        Route("/set-password", pages.set_password, methods=["POST"]),
        Route("/account/password", pages.show_change_password, methods=["GET"]),
        Route("/account/password", pages.change_password, methods=["POST"]),
        Route("/forgot-password", pages.show_forgot, methods=["GET"]),
        Route("/forgot-password", pages.forgot, methods=["POST"]),
        Route("/new-password", pages.show_new_password, methods=["GET"]),
        Route("/new-password", pages.new_password, methods=["POST"]),
    ]


class PasswordPages:
    """Handle the password pages' forms."""

    def __init__(self, forms: FormPages) -> None:
        self._forms = forms

    def _services(self) -> AccessServices:
        return self._forms.services()

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
        fields = {"token": token, "email": email[:254], "name": name[:120]}
        if not self._forms.has_token(request, form):
            return self._welcome_page(request, **fields, error=_(STALE_FORM), status=403)
        try:
            account = await self._forms.with_password(
                self._services().accounts.create_first_admin, token, email, name, form.get("password", "")
            )
        except LinkExpired as exc:
            return self._link_trouble(request, exc, is_first_admin=True)
        except RagError as exc:
            return self._welcome_page(request, **fields, error=exc.message, status=exc.status)
        return await self._forms.start_session(request, account, "/")

    async def show_set_password(self, request: Request) -> Response:
        return await self._set_password_page(request, request.query_params.get("token", ""))

    async def set_password(self, request: Request) -> Response:
        form = await read_form(request)
        token = form.get("token", "")
        if not self._forms.has_token(request, form):
            return await self._set_password_page(request, token, error=_(STALE_FORM), status=403)
        try:
            account = await self._forms.with_password(
                self._services().accounts.set_password_by_link, token, form.get("password", "")
            )
        except RagError as exc:
            return await self._set_password_page(request, token, error=exc.message, status=exc.status)
        return await self._forms.start_session(request, account, "/")

    async def show_change_password(self, request: Request) -> Response:
        return self._change_password_page(request)

    async def change_password(self, request: Request) -> Response:
        form = await read_form(request)
        if not self._forms.has_token(request, form):
            return self._change_password_page(request, error=_(STALE_FORM), status=403)
        identity: Identity = request.scope["identity"]
        try:
            await self._forms.with_password(
                self._services().accounts.change_password, identity, form.get("current", ""), form.get("password", "")
            )
        except RagError as exc:
            # 401 would say the session has ended, but it has not.
            return self._change_password_page(
                request, error=exc.message, status=422 if exc.status == 401 else exc.status
            )
        message = _("Your password is changed. You are signed out everywhere except here.")
        answer = self._forms.page(
            request, "message", title=_("Password changed"), message=message, action="/", label=_("Continue")
        )
        # With the old password all browsers were forgotten.
        await self._forms.know_browser(request, answer, identity)
        return answer

    async def show_forgot(self, request: Request) -> Response:
        return self._forgot_page(request)

    async def forgot(self, request: Request) -> Response:
        form = await read_form(request)
        email = form.get("email", "")[:254]
        if not self._forms.has_token(request, form):
            return self._forgot_page(request, email=email, error=_(STALE_FORM), status=403)
        accounts = self._services().accounts
        try:
            accounts.count_reset_request(email)
        except RagError as exc:
            answer = self._forgot_page(request, email=email, error=exc.message, status=exc.status)
            answer.headers["Retry-After"] = str(exc.details.get("wait_seconds", 60))
            return answer
        answer = self._forms.page(
            request,
            "message",
            title=_("Request received"),
            message=_(RESET_MESSAGES[accounts.sends_mail]),
            action="/login",
            label=_("Back to sign in"),
        )
        # After the response, because its duration must not reveal anything.
        answer.background = BackgroundTask(self._ask, email)
        return answer

    async def show_new_password(self, request: Request) -> Response:
        """Show the page for an e-mailed link. A script copies the token after the # into the form."""
        return self._new_password_page(request)

    async def new_password(self, request: Request) -> Response:
        form = await read_form(request)
        proof = form.get("access_token", ""), form.get("refresh_token", "")
        if not self._forms.has_token(request, form):
            return self._new_password_page(request, proof, error=_(STALE_FORM), status=403)
        try:
            account = await self._forms.with_password(
                self._services().accounts.set_password_by_mail, *proof, form.get("password", "")
            )
        except LinkExpired as exc:
            return self._link_trouble(request, exc, is_first_admin=False)
        except RagError as exc:
            return self._new_password_page(request, proof, error=exc.message, status=exc.status)
        return await self._forms.start_session(request, account, "/")

    # Inside

    async def _ask(self, email: str) -> None:
        try:
            await to_thread.run_sync(self._services().accounts.ask_for_password, email)
        except RagError as exc:
            log.warning("A request for a new password was lost: %s", exc)

    def _forgot_page(self, request: Request, *, email: str = "", error: str = "", status: int = 200) -> Response:
        lead = _(LOST[self._services().accounts.sends_mail])
        title = _("Forgot your password?")
        return self._forms.page(
            request,
            "forgot_password",
            title=title,
            foot=link("/login", _("Back to sign in")),
            status=status,
            lead=lead,
            email=email,
            note=note(error),
        )

    def _new_password_page(
        self, request: Request, proof: tuple[str, str] = ("", ""), *, error: str = "", status: int = 200
    ) -> Response:
        values = {"access_token": proof[0], "refresh_token": proof[1], "note": note(error)}
        return self._forms.page(request, "new_password", title=_("Choose a new password"), status=status, **values)

    def _welcome_page(
        self, request: Request, *, token: str, email: str = "", name: str = "", error: str = "", status: int = 200
    ) -> Response:
        title = _("Welcome")
        return self._forms.page(
            request, "welcome", title=title, status=status, token=token, email=email, name=name, note=note(error)
        )

    async def _set_password_page(self, request: Request, token: str, *, error: str = "", status: int = 200) -> Response:
        try:
            account = await to_thread.run_sync(self._services().accounts.account_of_link, token)
        except RagError as exc:
            return self._link_trouble(request, exc, is_first_admin=False)
        title = _("Choose a password")
        return self._forms.page(
            request, "set_password", title=title, status=status, token=token, email=account.email, note=note(error)
        )

    def _change_password_page(self, request: Request, *, error: str = "", status: int = 200) -> Response:
        email = request.scope["identity"].email
        foot = link("/", _("Back to HR Assistant"))
        return self._forms.page(
            request,
            "change_password",
            title=_("Change password"),
            foot=foot,
            status=status,
            email=email,
            note=note(error),
        )

    def _link_trouble(self, request: Request, exc: RagError, *, is_first_admin: bool) -> Response:
        message = exc.message
        if is_first_admin and isinstance(exc, LinkExpired):
            message = _(
                "This link has been used or has expired. If there is no account yet, start HR Assistant again to get a "
                "new link."
            )
        title = _("This link does not work") if isinstance(exc, LinkExpired) else _("Not available")
        return self._forms.page(
            request,
            "message",
            title=title,
            status=exc.status,
            message=message,
            action="/login",
            label=_("Go to sign in"),
        )
