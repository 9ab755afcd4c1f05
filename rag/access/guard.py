"""Guard every request to the server: pages, websocket, uploads, media files, documents, API.

Pure ASGI, because Starlette's middleware classes do not see websockets. A browser without a session reaches only the
sign-in page and open routes. When a session ends, its websockets are closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from urllib.parse import quote, urlsplit

from anyio import CapacityLimiter, move_on_after, to_thread
from google.protobuf.message import DecodeError
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg

from rag import language
from rag.access.api_keys import SECRET, KeyUse
from rag.access.connected_apps import PREFIX as APP_PREFIX
from rag.access.connected_apps import SECRET as APP_SECRET
from rag.access.identity import AccessServices
from rag.access.problems import FORMS as PROTOCOLS
from rag.access.problems import refusal
from rag.access.sessions import TOKEN, Sessions, token_hash
from rag.access.websockets import CLOSE_CODE, ShownMedia, Sockets, WatchedSession
from rag.access.websockets import PATH as MEDIA_PATH
from rag.errors import (
    DatabaseUnavailable,
    KeyRejected,
    MethodNotAllowed,
    NotAllowed,
    NotFound,
    OtherHost,
    OtherSite,
    RagError,
    SignedOut,
    TooManyRequests,
)
from rag.settings import Settings
from rag.types import Identity, Role

#: A host as written by browsers: a name or an address, with a port.
HOST = re.compile(r"(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?", re.IGNORECASE)
#: Tried with everything the pages draw. It also keeps a document's text from loading pictures from elsewhere.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "script-src 'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval'; connect-src 'self'; "
    "worker-src 'self' blob:; font-src 'self' data:; frame-ancestors 'none'; form-action 'self'; base-uri 'self'; "
    "object-src 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), display-capture=(), payment=(), usb=(), "
    "serial=(), bluetooth=(), hid=(), midi=(), screen-wake-lock=(), xr-spatial-tracking=()",
}


#: The policy's beginning on pages which named sites may frame.
FRAMED = "default-src 'none'; script-src 'self'; "


def content_security_policy(hosts: Iterable[str] = (), *, is_https: bool = False) -> str:
    """Return the Content-Security-Policy header, which allows websockets to `hosts`.

    The hosts are listed by name because some browsers do not accept 'self' for a websocket to the same host.
    """
    scheme = "wss" if is_https else "ws"
    sockets = "".join(f" {scheme}://{host.lower()}" for host in dict.fromkeys(hosts) if HOST.fullmatch(host))
    return CONTENT_SECURITY_POLICY.replace("connect-src 'self'", f"connect-src 'self'{sockets}")


def security_headers(hosts: Iterable[str] = (), *, is_https: bool) -> dict[str, str]:
    """Return the security headers for a response, by name."""
    transport = {"Strict-Transport-Security": "max-age=31536000"} if is_https else {}
    return {
        **SECURITY_HEADERS,
        "Content-Security-Policy": content_security_policy(hosts, is_https=is_https),
        **transport,
    }


def with_security_headers(send: Send, hosts: Iterable[str] = (), *, is_https: bool) -> Send:
    """Wrap `send` to add the security headers. Original documents and embedded pages keep their stricter policy."""
    added = security_headers(hosts, is_https=is_https)

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            confined = headers.get("content-security-policy", "")
            headers.update(added)
            # Originals keep the strictest policy, and pages for other sites keep theirs.
            if confined.startswith(("sandbox;", FRAMED)):
                headers["Content-Security-Policy"] = confined
            if confined.startswith(FRAMED) and not confined.endswith("frame-ancestors 'none'"):
                del headers["X-Frame-Options"]
        await send(message)

    return guarded


def with_headers(send: Send, added: Mapping[str, str]) -> Send:
    """Wrap `send` to set these headers on the response."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in added.items():
                headers[name] = value
        await send(message)

    return guarded


SESSION_COOKIE = "hr_session"
FORMS = frozenset({"GET", "HEAD", "POST"})
#: Programs call these paths, and the prefixes of integrations, with a key instead of a session.
API = "/api/"
MCP_PATH = "/mcp"
#: Called by the monitoring system; the route checks its right.
METRICS_PATH = "/metrics"
#: Programs connect to a person's account here.
OAUTH = "/oauth/"
#: The page asking whether a program may act for a person.
CONSENT = "/account/connect"
NO_ISSUER = (
    "Programs can be connected only at the address in RAG_PUBLIC_URL or on this machine. Ask the operator of this "
    "installation to set RAG_PUBLIC_URL."
)
#: Requests by which a program connects: proven by its code, never by a cookie, so sites in the settings may send them
#: too.
CONNECTING = frozenset({f"{OAUTH}token", f"{OAUTH}register", f"{OAUTH}revoke"})
PROTECTED_RESOURCE = f"/.well-known/oauth-protected-resource{MCP_PATH}"
OAUTH_SERVER = "/.well-known/oauth-authorization-server"
#: Paths open to visitors, with their methods. Any other method would get a Streamlit page.
PUBLIC_METHODS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ["/login", "/welcome", "/set-password", "/forgot-password", "/new-password", "/second-factor"], FORMS
    ),
    **dict.fromkeys(["/sso/start", "/sso/callback", "/_stcore/health"], frozenset({"GET", "HEAD"})),
    METRICS_PATH: frozenset({"GET", "HEAD"}),
    "/sso/logout": frozenset({"POST"}),
}
#: Streamlit routes which show or run more than a page: server figures, and pages for programs.
ADMIN_PATHS = ("/_stcore/metrics", "/_stcore/agent/")
#: Open pages call this path regularly, to check whether they are still signed in.
ME_PATH = "/api/me"
UPLOAD_PATH = "/_stcore/upload_file"
FORM_TYPE = "application/x-www-form-urlencoded"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: Smaller bodies are no uploads.
LEAST_UPLOAD_BYTES = 256 * 1024
MANY_PAGES = "You have {most} pages of HR Assistant open. Close some of them, then load this one again."
RETRY_SECONDS = 5
#: On open routes, identifying the caller takes at most this many seconds.
OPEN_SECONDS = 0.7
#: Seconds after which an open websocket's session is looked up again: it may have expired or ended elsewhere.
RECHECK_SECONDS = 30.0
#: The most concurrent session and key look-ups. Sessions from another service are verified there from time to time;
#: callers waiting for this must not hold up others.
RECOGNISED_AT_ONCE = 100


class AuthGuard:
    """Middleware which checks each request.

    A permitted request is passed on with `scope["identity"]` and `x-hr-*` headers. For all others, the response is a
    refusal.
    """

    def __init__(
        self,
        app: ASGIApp,
        services: Callable[[], AccessServices],
        *,
        public_methods: Mapping[str, frozenset[str]] = PUBLIC_METHODS,
        open_paths: frozenset[str] = frozenset(),
        other_sites: frozenset[str] = frozenset(),
        recheck_seconds: float = RECHECK_SECONDS,
    ) -> None:
        self._app = app
        self._services = services
        self._public_methods = public_methods
        # API routes open to everyone; identified callers may see more.
        self._open_paths = open_paths
        # Public paths that other sites may post to. No cookie counts there, and the route knows the sites.
        self._other_sites = other_sites
        self._recheck_seconds = recheck_seconds
        self._sockets = Sockets()
        self._media = ShownMedia()
        self._watched: Sessions | None = None
        # Separate threads: slow routes must not delay recognising callers.
        self._limiter: CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        # Only this guard sets the identity.
        scope = {**scope, "headers": [(k, v) for k, v in scope["headers"] if not k.lower().startswith(b"x-hr-")]}
        scope.pop("identity", None)
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await self._websocket(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = route_path(scope)
        if path == "/_stcore/health" and scope["method"] in self._public_methods[path]:
            await self._app(scope, receive, with_security_headers(send, is_https=False))
            return
        services = self._services()
        secure = is_https(scope, services.settings)
        send = with_security_headers(send, _hosts(scope, services.settings), is_https=secure)
        if not is_own_host(scope, services.settings):
            await _refusal(scope, OtherHost())(scope, receive, send)
            return
        is_open = path in self._open_paths
        secret = presented_key(scope, services.settings, is_open=is_open) if is_for_programs(path) else ""
        if secret:
            # No site can make a browser send a key without asking first, so the origin does not matter.
            await self._with_key(scope, receive, send, services, secret, is_open=is_open)
            return
        is_connecting = path in CONNECTING and Headers(scope=scope).get("origin") in services.settings.allowed_origins
        is_own = scope["method"] in SAFE_METHODS or path in self._other_sites or is_connecting
        if not is_own and not is_same_origin(scope, services.settings):
            await _refusal(scope, OtherSite())(scope, receive, send)
            return
        if is_connected_by(path) and not is_named_host(scope, services.settings):
            await _refusal(scope, NotAllowed(NO_ISSUER))(scope, receive, send)
            return
        if path in self._public_methods:
            has_method = scope["method"] in self._public_methods[path]
            await (self._app if has_method else _refusal(scope, MethodNotAllowed()))(scope, receive, send)
            return
        identity: Identity | None = None
        try:
            with move_on_after(OPEN_SECONDS if is_open else None):
                # A page's mere check for its session does not keep the session active. Changes use the person's current
                # rights, which another process may have changed.
                is_act, is_fresh = path != ME_PATH, scope["method"] not in SAFE_METHODS
                identity = await self._identify(scope, services, may_abandon=is_open, is_act=is_act, is_fresh=is_fresh)
        except DatabaseUnavailable as exc:
            if not is_open:
                await _refusal(scope, exc)(scope, receive, send)
                return
        if identity is None:
            await (self._app if is_open else _sign_in_first(scope, path))(scope, receive, send)
            return
        if identity.language and not scope.get("language"):
            language.speak(identity.language)
        try:
            self._within_limits(scope, path, identity, services)
        except RagError as exc:
            await _refusal(scope, exc)(scope, receive, send)
            return
        is_upload = path == UPLOAD_PATH or path.startswith(UPLOAD_PATH + "/")
        if is_upload and scope["method"] not in SAFE_METHODS and not identity.may(Role.ADMIN):
            await _refusal(scope, NotAllowed())(scope, receive, send)
            return
        if path.startswith(ADMIN_PATHS) and not identity.may(Role.ADMIN):
            await _refusal(scope, NotAllowed())(scope, receive, send)
            return
        if path.startswith(MEDIA_PATH) and not self._media.may(identity.session_id, path):
            await _refusal(scope, NotFound())(scope, receive, send)
            return
        await self._app(_with_identity(scope, identity), receive, send)

    async def _with_key(
        self, scope: Scope, receive: Receive, send: Send, services: AccessServices, secret: str, *, is_open: bool
    ) -> None:
        use: KeyUse | None = None
        try:
            with move_on_after(OPEN_SECONDS if is_open else None):
                find: Callable[[str], KeyUse] = services.api_keys.find
                if secret.startswith(APP_PREFIX):
                    find = partial(services.connected_apps.find, path=route_path(scope))
                use = await to_thread.run_sync(find, secret, limiter=self._threads(), abandon_on_cancel=is_open)
        except RagError as exc:
            if not (is_open and isinstance(exc, DatabaseUnavailable)):
                await _refusal(scope, exc)(scope, receive, send)
                return
        if use is None:  # unknown who calls, because the database does not answer: anybody may
            await self._app(scope, receive, send)
            return
        send = with_headers(send, use.headers)
        if use.remaining < 0:
            wait = f"Wait {use.reset_seconds} seconds and try again."
            message = f"This API key may send {use.limit:,} requests a minute. {wait}"
            await _refusal(scope, TooManyRequests(message, wait_seconds=use.reset_seconds))(scope, receive, send)
            return
        try:
            _count_upload(scope, use.identity, services)
        except RagError as exc:
            await _refusal(scope, exc)(scope, receive, send)
            return
        await self._app({**scope, "identity": use.identity, "api_key": use}, receive, send)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        services = self._services()
        self._watch(services.sessions)
        identity = None
        if is_own_host(scope, services.settings) and is_same_origin(scope, services.settings):
            try:
                identity = await self._identify(scope, services)
            except DatabaseUnavailable as exc:
                await _deny(scope, receive, send, exc)
                return
        if identity is None:
            await _deny(scope, receive, send, SignedOut())
            return
        session_id = identity.session_id
        if self._has_many_pages(identity, services.settings):
            await _deny(scope, receive, send, _too_many_pages(services.settings))
            return

        async def is_alive() -> bool:
            try:
                current = await self._look_up(session_id, services.sessions, is_act=False)
                return current is not None and current.role == identity.role
            except DatabaseUnavailable:
                return True  # Not the session's fault; the next query reports it.

        await self._sockets.serve(
            self._app,
            _with_identity(scope, identity),
            self._record_actions(identity, services.sessions, receive),
            self._media.noting(session_id, send),
            WatchedSession(
                id=session_id,
                account_id=identity.account_id,
                is_alive=is_alive,
                recheck_seconds=self._recheck_seconds,
            ),
        )

    def _within_limits(self, scope: Scope, path: str, identity: Identity, services: AccessServices) -> None:
        """Raise `TooManyRequests` if this person has sent too many requests, has too many pages open, or uploads too
        much.
        """
        if is_for_programs(path):
            services.limits.count_request(identity)
        elif _is_page(scope, path) and self._has_many_pages(identity, services.settings):
            raise _too_many_pages(services.settings)
        _count_upload(scope, identity, services)

    def _has_many_pages(self, identity: Identity, settings: Settings) -> bool:
        return 0 < settings.pages_at_once <= self._sockets.count(identity.account_id)

    def _record_actions(self, identity: Identity, sessions: Sessions, receive: Receive) -> Receive:
        """Wrap a page's `receive` function to record the person's activity.

        If the person's rights have changed, the page is disconnected.
        """
        session_id = identity.session_id

        async def noting() -> Message:
            message = await receive()
            if is_act(message):
                if not await to_thread.run_sync(sessions.has_rights_still, identity, limiter=self._threads()):
                    return {"type": "websocket.disconnect", "code": CLOSE_CODE, "reason": "signed out"}
                if sessions.is_act_to_note(session_id):
                    await to_thread.run_sync(sessions.note_act, session_id, limiter=self._threads())
            return message

        return noting

    async def _identify(
        self,
        scope: Scope,
        services: AccessServices,
        *,
        may_abandon: bool = False,
        is_act: bool = True,
        is_fresh: bool = False,
    ) -> Identity | None:
        token = read_cookie(scope, services.settings, SESSION_COOKIE)
        if not TOKEN.fullmatch(token):
            return None
        return await self._look_up(
            token_hash(token), services.sessions, may_abandon=may_abandon, is_act=is_act, is_fresh=is_fresh
        )

    async def _look_up(
        self,
        session_id: str,
        sessions: Sessions,
        *,
        may_abandon: bool = False,
        is_act: bool = True,
        is_fresh: bool = False,
    ) -> Identity | None:
        if not is_fresh and (identity := sessions.find_cached(session_id)):
            return identity
        return await to_thread.run_sync(
            partial(sessions.find_by_id, session_id, is_act=is_act, is_fresh=is_fresh),
            limiter=self._threads(),
            abandon_on_cancel=may_abandon,
        )

    def _threads(self) -> CapacityLimiter:
        if self._limiter is None:
            self._limiter = CapacityLimiter(RECOGNISED_AT_ONCE)
        return self._limiter

    def _watch(self, sessions: Sessions) -> None:
        if sessions is not self._watched:
            sessions.on_end(self._sockets.close_session)
            sessions.on_end(self._media.forget)
            self._watched = sessions


def is_act(message: Message) -> bool:
    """Whether a websocket message from a page was caused by a person's action, not by a scheduled refresh."""
    content = message.get("bytes")
    if message["type"] != "websocket.receive" or not content:
        return False
    try:
        parsed = BackMsg.FromString(content)
    except DecodeError:
        return False
    return parsed.WhichOneof("type") == "rerun_script" and not parsed.rerun_script.is_auto_rerun


def _count_upload(scope: Scope, identity: Identity, services: AccessServices) -> None:
    """Count a request's declared size towards the upload limit.

    Requests below `LEAST_UPLOAD_BYTES`, for example forms, are not counted. Raises `TooManyRequests`.
    """
    size = Headers(scope=scope).get("content-length", "")
    is_number = size.isascii() and size.isdigit() and len(size) < 16
    if scope["method"] not in SAFE_METHODS and is_number and int(size) >= LEAST_UPLOAD_BYTES:
        services.limits.count_upload(identity, int(size))


def _is_page(scope: Scope, path: str) -> bool:
    return _wants_page(scope) and not path.startswith("/_") and "." not in path


def route_path(scope: Scope) -> str:
    """Return the request's path for matching routes, without the prefix a proxy has set (`root_path`)."""
    path, prefix = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    return path[len(prefix) :] if prefix and path.startswith(prefix + "/") else path


def is_for_programs(path: str) -> bool:
    """Whether a path belongs to the API or a protocol for programs, which authenticate with a key."""
    return path.startswith((API, *PROTOCOLS)) or path == MCP_PATH


def is_https(scope: Scope, settings: Settings) -> bool:
    """Whether the browser uses https, directly or through a proxy trusted by the settings."""
    return settings.public_url.lower().startswith("https://") or scope.get("scheme") in ("https", "wss")


def is_own_host(scope: Scope, settings: Settings) -> bool:
    """Whether a request's Host header names `RAG_PUBLIC_URL` or this machine. True if `RAG_PUBLIC_URL` is not set.

    Without this check, DNS rebinding would work: an attacker's domain resolves to this machine.
    """
    ours = urlsplit(settings.public_url).hostname
    if not ours:
        return True
    try:
        host = urlsplit(f"//{Headers(scope=scope).get('host', '')}").hostname
    except ValueError:
        return False
    return host in (ours, "localhost", "127.0.0.1", "::1")


def is_named_host(scope: Scope, settings: Settings) -> bool:
    """Like `is_own_host`, but without `RAG_PUBLIC_URL`, only this machine's addresses are accepted.

    For OAuth: the server sends its own address to programs, and must not copy the address from a forged Host header.
    """
    if settings.public_url:
        return is_own_host(scope, settings)
    try:
        host = urlsplit(f"//{Headers(scope=scope).get('host', '')}").hostname
        return host in ("localhost", "127.0.0.1", "::1", urlsplit(settings.own_address).hostname)
    except ValueError:
        return False


def is_connected_by(path: str) -> bool:
    """Whether a path is used for connecting programs to people's accounts (OAuth)."""
    return path in (OAUTH_SERVER, PROTECTED_RESOURCE, CONSENT) or path.startswith(OAUTH)


def _hosts(scope: Scope, settings: Settings) -> list[str]:
    return [host for host in (Headers(scope=scope).get("host", ""), urlsplit(settings.public_url).netloc) if host]


def cookie_name(scope: Scope, settings: Settings, name: str) -> str:
    """Return a cookie's name for this request, with the prefix `__Host-` behind https.

    Browsers accept the prefix only from this host over https.
    """
    return f"__Host-{name}" if is_https(scope, settings) else name


def read_cookie(scope: Scope, settings: Settings, name: str) -> str:
    """Return a cookie's value, "" if missing."""
    return HTTPConnection(scope).cookies.get(cookie_name(scope, settings, name), "")


def is_same_origin(scope: Scope, settings: Settings) -> bool:
    """Return False if the browser's `Origin` or `Sec-Fetch-Site` header names another site.

    Programs send neither header, and get True.
    """
    headers = Headers(scope=scope)
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
    try:
        host = urlsplit(origin).netloc.lower()
    except ValueError:
        return False
    ours = {headers.get("host", "").lower(), urlsplit(settings.public_url).netloc.lower()} - {""}
    return host in ours


def presented_key(scope: Scope, settings: Settings, *, is_open: bool = False) -> str:
    """Return the secret from a request's `Authorization: Bearer` or `x-api-key` header; "" without any.

    On open routes, and if the request has a session cookie, only secrets in our keys' format count. A webhook sends a
    different secret, and a proxy may add a token for its own use.
    """
    headers = Headers(scope=scope)
    kind, _, token = headers.get("authorization", "").partition(" ")
    secret = token.strip() if kind.lower() == "bearer" else headers.get("x-api-key", "").strip()
    has_other_proof = is_open or bool(read_cookie(scope, settings, SESSION_COOKIE))
    return "" if has_other_proof and not (SECRET.fullmatch(secret) or APP_SECRET.fullmatch(secret)) else secret


def _with_identity(scope: Scope, identity: Identity) -> Scope:
    headers = {
        b"x-hr-sid": identity.session_id,
        b"x-hr-user": identity.email,
        b"x-hr-role": identity.role.value,
        b"x-hr-name": identity.name,
        b"x-hr-tenant": identity.tenant_id,
    }
    # Percent-encoded, because a header holds latin-1 and a name any script.
    ours = [(name, quote(value, safe="@ +").encode("ascii")) for name, value in headers.items()]
    return {**scope, "identity": identity, "headers": [*scope["headers"], *ours]}


def _sign_in_first(scope: Scope, path: str) -> Response:
    if _is_form(scope):
        return RedirectResponse("/login", 303, {"Cache-Control": "no-store"})
    if not _wants_page(scope):
        return refusal(scope, SignedOut(), headers={"WWW-Authenticate": _challenge(scope)})
    query = scope.get("query_string", b"").decode("latin-1")
    target = quote(path + (f"?{query}" if query else ""), safe="/")
    where = "/login" if target == "/" else f"/login?next={target}"
    return RedirectResponse(where, 303, {"Cache-Control": "no-store"})


def _wants_page(scope: Scope) -> bool:
    return scope["method"] in ("GET", "HEAD") and "text/html" in Headers(scope=scope).get("accept", "")


def _is_form(scope: Scope) -> bool:
    """Whether a browser sent this request as an HTML form. Browsers get a page in response, programs get JSON."""
    headers = Headers(scope=scope)
    kind = headers.get("content-type", "")
    return scope["method"] == "POST" and "text/html" in headers.get("accept", "") and kind.startswith(FORM_TYPE)


def _refusal(scope: Scope, exc: RagError) -> Response:
    if _wants_page(scope):
        wait = exc.details.get("wait_seconds")
        return PlainTextResponse(exc.message, exc.status, {"Retry-After": str(wait)} if wait else {})
    is_unknown = isinstance(exc, KeyRejected)
    return refusal(scope, exc, headers={"WWW-Authenticate": _challenge(scope)} if is_unknown else None)


def _challenge(scope: Scope) -> str:
    if route_path(scope) != MCP_PATH:
        return "Bearer"
    metadata = f"{_requested_base(scope)}{PROTECTED_RESOURCE}"
    return f'Bearer resource_metadata="{metadata}"'


def base_of(scope: Scope, settings: Settings) -> str:
    """Return the server's base address without a path: `RAG_PUBLIC_URL` if set, else the requested scheme and host."""
    return settings.public_url.rstrip("/") or _requested_base(scope)


def _requested_base(scope: Scope) -> str:
    host = Headers(scope=scope).get("host", "")
    return f"{scope.get('scheme', 'http')}://{host if HOST.fullmatch(host) else 'localhost'}"


def _too_many_pages(settings: Settings) -> TooManyRequests:
    return TooManyRequests(MANY_PAGES.format(most=settings.pages_at_once), wait_seconds=RETRY_SECONDS)


async def _deny(scope: Scope, receive: Receive, send: Send, exc: RagError) -> None:
    """Refuse a websocket with an HTTP response that states the reason. Closing the websocket would send a bare 403."""
    await WebSocket(scope, receive, send).send_denial_response(refusal(scope, exc))
