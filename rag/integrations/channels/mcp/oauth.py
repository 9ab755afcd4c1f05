"""OAuth 2.1 for programs which use the Model Context Protocol: a person connects each program in the browser.

The `mcp` package implements the protocol: metadata (RFC 8414, RFC 9728), registration (RFC 7591), codes with PKCE,
tokens, revocation (RFC 7009). We add the consent page and the storage (`access/connected_apps.py`).
"""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from anyio import to_thread
from markupsafe import Markup
from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import request_response
from starlette.types import ASGIApp

from rag.access.api_keys import SCOPES as SCOPE_WORDS
from rag.access.connected_apps import (
    ACCESS_SECONDS,
    ASK_SECONDS,
    SCOPES,
    ConnectedApps,
    Grant,
    shown_address,
)
from rag.access.guard import CONSENT, MCP_PATH, OAUTH, base_of
from rag.api.form_pages import FormPages, page_of, read_form
from rag.errors import InvalidInput, NotAllowed
from rag.language import N_, _
from rag.services import services
from rag.types import Identity

TITLE = N_("Connect a program")
STALE = N_("This request has expired, or was not made for this page. Begin again in the program.")
REFUSED = N_("The program asked for something that cannot be granted: {reason}")
MAXIMUM_BYTES = 16 * 1024


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Adapts stored clients and tokens to the `mcp` package's handlers."""

    @property
    def _apps(self) -> ConnectedApps:
        return services().connected_apps

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        program = self._apps.program(client_id)
        if program is None:
            return None
        return OAuthClientInformationFull(
            client_id=client_id,
            client_name=program.name,
            redirect_uris=[AnyUrl(address) for address in program.redirect_uris],
            token_endpoint_auth_method="none",  # noqa: S106 - the name of a method, not a password
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
            scope=" ".join(SCOPES),
        )

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        addresses = [str(address) for address in client_info.redirect_uris or ()]
        try:
            program = self._apps.register(client_info.client_name or "", addresses)
        except InvalidInput as exc:
            raise RegistrationError("invalid_redirect_uri", exc.message) from None
        except NotAllowed as exc:
            raise RegistrationError("invalid_client_metadata", exc.message) from None
        # Every program is a public client: the code's challenge proves it, and a secret inside a program is no secret.
        client_info.client_id, client_info.client_name = program.client_id, program.name
        client_info.client_secret = client_info.client_secret_expires_at = None
        client_info.token_endpoint_auth_method = "none"  # noqa: S105 - the name of a method, not a password

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        scopes = params.scopes or list(SCOPES)
        if set(scopes) - set(SCOPES):
            raise AuthorizeError("invalid_scope", f"There are {', '.join(SCOPES)}.")
        pending_request = {
            "c": client.client_id,
            "u": str(params.redirect_uri),
            "s": scopes,
            "h": params.code_challenge,
            "t": params.state,
            "r": (params.resource or "").rstrip("/"),
            "e": int(time.time()) + ASK_SECONDS,
        }
        return f"{CONSENT}?{urlencode({'request': self._apps.seal('request', pending_request)})}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        grant = await self._grant(client, authorization_code)
        if grant is None or grant.kind != "code":
            await to_thread.run_sync(self._apps.drop_if_used, authorization_code)
            return None
        return AuthorizationCode(
            code=authorization_code,
            scopes=grant.scopes,
            expires_at=grant.code_expires_at.timestamp(),
            client_id=str(client.client_id),
            code_challenge=grant.code_challenge,
            redirect_uri=AnyUrl(grant.redirect_uri),
            redirect_uri_provided_explicitly=True,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        return await self._issue(client, authorization_code.code)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        grant = await self._grant(client, refresh_token)
        if grant is None or grant.kind != "refresh":
            await to_thread.run_sync(self._apps.drop_if_used, refresh_token)
            return None
        return RefreshToken(
            token=refresh_token,
            client_id=str(client.client_id),
            scopes=grant.scopes,
            expires_at=int(grant.expires_at.timestamp()),
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        return await self._issue(client, refresh_token.token)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return None  # the guard recognises them

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """Do nothing: the route `revoke` revokes tokens."""

    async def _grant(self, client: OAuthClientInformationFull, token: str) -> Grant | None:
        grant = await to_thread.run_sync(self._apps.grant, token)
        return grant if grant is not None and grant.client_id == client.client_id else None

    async def _issue(self, client: OAuthClientInformationFull, token: str) -> OAuthToken:
        grant = await self._grant(client, token)
        issued = await to_thread.run_sync(self._apps.issue, grant, token) if grant else None
        if grant is None or issued is None:
            raise TokenError("invalid_grant", "This code or token was used already, or has expired.")
        access, refresh = issued
        return OAuthToken(
            access_token=access,
            refresh_token=refresh,
            expires_in=ACCESS_SECONDS,
            scope=" ".join(grant.scopes),
        )


async def authorize(request: Request) -> Response:
    """Redirect to the consent page, or show an error on our page.

    By the protocol, errors are redirected to the program's address. We do not, because anyone may register a program: a
    link to us could then redirect people to any site.
    """
    answer = await AUTHORIZATION.handle(request)
    address = answer.headers.get("location", "")
    if not address or address.startswith(f"{CONSENT}?"):
        return answer
    parts = urlsplit(address)
    reasons = parse_qs(parts.query).get("error_description") or parse_qs(parts.query).get("error") or [""]
    return _message(_(REFUSED, reason=reasons[-1]), status=400)


async def consent(request: Request) -> Response:
    """Ask whether this program may act for the person, and carry out the choice."""
    identity = request.scope["identity"]
    assert isinstance(identity, Identity)  # noqa: S101 - the guard lets nobody else through
    apps = services().connected_apps
    form = await read_form(request) if request.method == "POST" else {}
    sealed = form.get("request") or request.query_params.get("request", "")
    pending_request = apps.unseal("request", sealed)
    base = base_of(request.scope, services().settings)
    resources = {"": "", base: "", f"{base}{MCP_PATH}": MCP_PATH}
    program = apps.program(pending_request["c"]) if pending_request else None
    if pending_request is None or program is None or pending_request["e"] < time.time():
        return _message(_(STALE), status=400)
    if pending_request.get("r", "") not in resources:
        return _message(_(REFUSED, reason="the resource is not of this server"), status=400)
    try:
        apps.require_allowed(identity.role)
    except NotAllowed as exc:
        return _message(exc.message, status=403)
    pages = FormPages(services)
    if not form or not pages.has_token(request, form):
        scopes = [scope for scope in SCOPES if scope in pending_request["s"]]
        allowed = Markup("").join(Markup("<li>{}</li>").format(_(SCOPE_WORDS[scope])) for scope in scopes)
        return pages.page(
            request,
            "connect",
            title=_(TITLE),
            program=program.name,
            host=shown_address(pending_request["u"]),
            person=f"{identity.name} ({identity.email})",
            allowed=allowed,
            request=sealed,
        )
    answer: dict[str, Any] = {"state": pending_request["t"], "iss": base}
    if form.get("choice") != "allow":
        return _onward(construct_redirect_uri(pending_request["u"], error="access_denied", **answer), program.name)
    code = await to_thread.run_sync(
        lambda: apps.connect(
            identity,
            program,
            pending_request["s"],
            redirect_uri=pending_request["u"],
            code_challenge=pending_request["h"],
            resource=resources[pending_request.get("r", "")],
        )
    )
    return _onward(construct_redirect_uri(pending_request["u"], code=code, **answer), program.name)


async def _revoke(request: Request) -> Response:
    """Disconnect the program which holds a token (RFC 7009). Known and unknown tokens get the same response."""
    form = await read_form(request)
    apps = services().connected_apps
    grant = await to_thread.run_sync(apps.grant, form.get("token", ""))
    if grant is not None and grant.client_id == form.get("client_id"):
        await to_thread.run_sync(apps.drop, grant)
    return JSONResponse({}, headers={"Cache-Control": "no-store"})


async def metadata(request: Request) -> Response:
    """Return the server's metadata: the addresses for registration, authorization and tokens (RFC 8414)."""
    base = base_of(request.scope, services().settings)
    return JSONResponse(
        {
            "issuer": base,
            "authorization_endpoint": f"{base}{OAUTH}authorize",
            "token_endpoint": f"{base}{OAUTH}token",
            "registration_endpoint": f"{base}{OAUTH}register",
            "revocation_endpoint": f"{base}{OAUTH}revoke",
            "scopes_supported": list(SCOPES),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
    )


async def protected_resource(request: Request) -> Response:
    """Return the metadata for `/mcp`: the address of the authorization server (RFC 9728)."""
    base = base_of(request.scope, services().settings)
    return JSONResponse(
        {
            "resource": f"{base}{MCP_PATH}",
            "authorization_servers": [base],
            "scopes_supported": list(SCOPES),
            "bearer_methods_supported": ["header"],
            "resource_name": "HR Assistant",
        }
    )


def _message(text: str, *, status: int) -> Response:
    html = page_of("message", title=_(TITLE), message=text, action="/", label=_("Go to the chat"))
    return HTMLResponse(html, status, {"Cache-Control": "no-store"})


def _onward(address: str, program: str) -> Response:
    """Return a page with a link back to `program`, because our forms must not redirect to different sites."""
    html = page_of("onward", title=_(TITLE), address=address, program=program)
    return HTMLResponse(html, 200, {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})


def _limit_body(handle: Any) -> ASGIApp:
    return RequestBodyLimitMiddleware(request_response(handle), MAXIMUM_BYTES)


PROVIDER = Provider()
CLIENTS = ClientAuthenticator(PROVIDER)
REGISTRATION = ClientRegistrationOptions(enabled=True, valid_scopes=list(SCOPES), default_scopes=list(SCOPES))
AUTHORIZATION = AuthorizationHandler(PROVIDER)
token = _limit_body(TokenHandler(PROVIDER, CLIENTS).handle)
register = _limit_body(RegistrationHandler(PROVIDER, REGISTRATION).handle)
revoke = _limit_body(_revoke)
