"""Asked again who one is, before what needs a recent sign-in; then sent back. The session stays the same one.

Somebody who signed in at a provider is sent there to be asked, and comes back with a new session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import quote

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rag.access.identity import AccessServices
from rag.access.sessions import CONFIRM
from rag.api.form_pages import STALE_FORM, FormPages, read_form, redirect
from rag.api.html_pages import Markup, note
from rag.errors import RagError
from rag.types import Identity

FOOT = Markup('<a href="/">Back to HR Assistant</a><br>Not you? <a href="/logout">Sign out</a>')
CODE = Markup(
    '<div>\n<label for="code">Code of your authenticator app, or a recovery code</label>\n<input id="code" name="code" '
    'type="text" autocomplete="one-time-code" autocapitalize="none" spellcheck="false" maxlength="20" required>\n</div>'
)


def routes(forms: FormPages, safe_next: Callable[[str], str]) -> list[Route]:
    """The routes; `safe_next` keeps where to go on within this site."""
    pages = ConfirmPages(forms, safe_next)
    return [Route(CONFIRM, pages.show, methods=["GET"]), Route(CONFIRM, pages.confirm, methods=["POST"])]


class ConfirmPages:
    """The handlers. What blocks runs in threads."""

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
            return await self._page(request, target, error=STALE_FORM, status=403)
        identity: Identity = request.scope["identity"]
        try:
            await self._forms.with_password(
                self._services.accounts.require_password,
                identity,
                form.get("password", ""),
                self._forms.browser_of(request),
                source=identity.session_id,
            )
            await to_thread.run_sync(self._prove, identity, form)
        except RagError as exc:
            # 401 would say that the session has ended; it has not.
            status = 422 if exc.status == 401 else exc.status
            return await self._page(request, target, error=exc.message, status=status)
        return redirect(target)

    def _prove(self, identity: Identity, form: Mapping[str, str]) -> None:
        """Take the code, where a second factor is in use, and note that it is the person."""
        if self._asks_for_code(identity):
            code = form.get("code", "")[:64]
            self._services.accounts.second_factors.check(identity.tenant_id, identity.account_id, code)
        self._services.sessions.prove(identity)

    def _asks_for_code(self, identity: Identity) -> bool:
        accounts = self._services.accounts
        # Who keeps passwords elsewhere has no second factor of ours.
        return (
            accounts.hashes_passwords and accounts.second_factors.state(identity.tenant_id, identity.account_id).is_on
        )

    async def _page(self, request: Request, target: str, *, error: str = "", status: int = 200) -> Response:
        identity: Identity = request.scope["identity"]
        asks_for_code = await to_thread.run_sync(self._asks_for_code, identity)
        return self._forms.page(
            request,
            "confirm",
            title="Confirm that it is you",
            foot=FOOT,
            status=status,
            next=target,
            email=identity.email,
            note=note(error),
            code=CODE if asks_for_code else Markup(""),
        )

    @property
    def _services(self) -> AccessServices:
        return self._forms.services()
