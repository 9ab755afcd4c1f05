from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect
from streamlit.proto.BackMsg_pb2 import BackMsg

from rag.access.guard import PUBLIC_METHODS, AuthGuard, content_security_policy, is_own_host, is_same_origin, route_path
from rag.access.sessions import token_hash
from rag.errors import DatabaseUnavailable
from rag.integrations import registry
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Account, Identity, Role
from tests.access.front_door import PASSWORD, Access, AddPerson, inner_routes
from tests.patience import patient

ClientOf = Callable[..., TestClient]
STREAM = "/_stcore/stream"
PUBLIC = {**PUBLIC_METHODS, **registry.public_methods()}
UPLOAD = "/_stcore/upload_file/some-session/some-file"


@pytest.fixture
def employee(add_person: AddPerson) -> Account:
    return add_person("employee@example.com", name="김하늘, HR")


# Without a session


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/api/seen"),
        ("POST", "/api/seen"),
        ("GET", "/api/me"),
        ("GET", "/people"),
        ("GET", "/_stcore/host-config"),
        ("GET", "/_stcore/metrics"),
        ("GET", "/media/a.pdf"),
        ("GET", "/app/static/a.js"),
        ("GET", "/static/index.html"),
        ("GET", "/component/x"),
        ("PUT", UPLOAD),
        ("DELETE", UPLOAD),
        ("GET", "/login/"),
        ("GET", "//login"),
        ("GET", "/login/../api/seen"),
        ("GET", "/_stcore/health/../host-config"),
        ("OPTIONS", "/api/seen"),
    ],
)
def test_a_stranger_gets_nothing(client_of: ClientOf, method: str, path: str) -> None:
    answer = client_of().request(method, "http://testserver" + path)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "signed_out"
    assert answer.headers["cache-control"] == "no-store"


def test_a_strangers_browser_is_sent_to_sign_in_and_back(client_of: ClientOf) -> None:
    client = client_of()
    html = {"accept": "text/html,*/*"}
    assert client.get("/", headers=html).headers["location"] == "/login"
    answer = client.get("/analytics?from=2026-01-01&group=R%26D", headers=html)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=/analytics%3Ffrom%3D2026-01-01%26group%3DR%2526D"
    # A sign-out form sent from a tab whose session is over already.
    assert client.post("/logout", data={"csrf": "x"}, headers=html).headers["location"] == "/login"


def test_a_strangers_websocket_never_reaches_a_page(client_of: ClientOf) -> None:
    with pytest.raises(WebSocketDenialResponse) as caught, client_of().websocket_connect(STREAM):
        pass
    assert (caught.value.status_code, caught.value.json()["code"]) == (401, "signed_out")


def test_health_is_public_and_needs_no_database(client_of: ClientOf, database: Database) -> None:
    client = client_of()
    database.close()
    assert client.get("/_stcore/health").text == "ok"


def test_a_database_that_is_down_lets_nobody_in(client_of: ClientOf, access: Access, employee: Account) -> None:
    token = access.sessions.start(employee)
    client = client_of(token)
    access.sessions._database.close()
    assert client.get("/api/seen").status_code == 503
    with pytest.raises(WebSocketDenialResponse) as caught, client.websocket_connect(STREAM):
        pass
    assert (caught.value.status_code, caught.value.json()["detail"]) == (503, str(DatabaseUnavailable()))


@pytest.mark.parametrize("token", ["forged", "A" * 43, "", "a;b", '"', "%00", "A" * 100_000])
def test_a_forged_cookie_opens_nothing(client_of: ClientOf, employee: Account, access: Access, token: str) -> None:
    access.sessions.start(employee)
    assert client_of().get("/api/seen", headers={"cookie": f"hr_session={token}"}).status_code == 401


def test_the_id_of_a_session_does_not_act_as_it(client_of: ClientOf, employee: Account, access: Access) -> None:
    session_id = token_hash(access.sessions.start(employee))
    client = client_of(session_id)
    assert client.get("/api/seen").status_code == 401
    assert client_of().get("/api/seen", headers={"x-hr-sid": session_id}).status_code == 401


# With a session


def test_the_page_is_told_who_it_is_by_the_guard_alone(client_of: ClientOf, access: Access, employee: Account) -> None:
    token = access.sessions.start(employee)
    forged = {"X-Hr-Role": "admin", "x-hr-sid": "another", "X-HR-Anything": "x", "x-hr-tenant": "other"}
    seen = client_of(token).get("/api/seen", headers=forged).json()
    assert seen["email"] == "employee@example.com"
    assert seen["headers"] == [
        ["x-hr-sid", token_hash(token)],
        ["x-hr-user", "employee@example.com"],
        ["x-hr-role", "employee"],
        ["x-hr-name", "%EA%B9%80%ED%95%98%EB%8A%98%2C HR"],
        ["x-hr-tenant", "demo"],
    ]


def test_a_websocket_is_told_the_same(client_of: ClientOf, access: Access, employee: Account) -> None:
    token = access.sessions.start(employee)
    with client_of(token).websocket_connect(STREAM, headers={"x-hr-role": "admin", "x-hr-sid": "x"}) as socket:
        assert socket.receive_json() == {"role": "employee", "sid": token_hash(token)}
        socket.send_text("hello")
        assert socket.receive_text() == "hello"


def test_forged_headers_reach_no_public_page_either(access: Access) -> None:
    heard: list[Any] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        heard.append((scope["headers"], scope.get("identity")))

    guard = AuthGuard(inner, lambda: access)
    scope = {"type": "http", "method": "GET", "path": "/login", "headers": [(b"X-HR-Role", b"admin"), (b"a", b"b")]}

    async def nothing(*_: Any) -> Any:
        return None

    anyio.run(guard, {**scope, "identity": "forged"}, nothing, nothing)
    assert heard == [([(b"a", b"b")], None)]


@pytest.mark.parametrize("role", list(Role))
def test_only_administrators_upload(client_of: ClientOf, access: Access, add_person: AddPerson, role: Role) -> None:
    client = client_of(access.sessions.start(add_person("somebody@example.com", role)))
    expected = 200 if role is Role.ADMIN else 403
    assert client.put(UPLOAD, content=b"%PDF").status_code == expected
    assert client.delete(UPLOAD).status_code == expected


def test_a_prefix_announced_by_a_proxy_hides_no_upload() -> None:
    assert route_path({"path": "/hr/_stcore/upload_file/a/b", "root_path": "/hr"}) == "/_stcore/upload_file/a/b"
    assert route_path({"path": "/hrx", "root_path": "/hr"}) == "/hrx"
    assert route_path({"path": "/login", "root_path": ""}) == "/login"


@pytest.mark.parametrize("path", ["/", "/login", "/api/seen", "/_stcore/health", "/nowhere", UPLOAD])
def test_every_answer_carries_the_security_headers(
    client_of: ClientOf, access: Access, employee: Account, path: str
) -> None:
    token = access.sessions.start(employee)
    for client in (client_of(), client_of(token)):
        headers = client.get(path).headers
        known_hosts = [] if path == "/_stcore/health" else ["testserver"]
        assert headers["content-security-policy"] == content_security_policy(known_hosts)
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "camera=()" in headers["permissions-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY"
        assert "strict-transport-security" not in headers


def test_strict_transport_is_asked_for_on_https_only(client_of: ClientOf) -> None:
    assert "strict-transport-security" in client_of(base_url="https://testserver").get("/login").headers


@pytest.mark.parametrize("host", ["hr.example.com", "hr.example.com:8443", "[::1]:8501"])
def test_pages_talk_to_their_own_origin_alone(access: Access, host: str) -> None:
    guard = AuthGuard(Starlette(routes=inner_routes(access)), lambda: access)
    policy = TestClient(guard).get("/login", headers={"host": host}).headers["content-security-policy"]
    assert f"connect-src 'self' ws://{host};" in policy
    assert "ws:;" not in policy
    assert "ws: " not in policy


@pytest.mark.parametrize("host", ["x; script-src *", "a b", "x'y", "*", "*.example.com", "a,b"])
def test_a_host_that_is_none_writes_nothing_into_the_policy(host: str) -> None:
    assert content_security_policy([host]) == content_security_policy()


def test_a_page_reached_by_another_name_is_none_of_ours(access: Access, employee: Account) -> None:
    """A site that has its own name lead to this machine would have its pages read ours."""
    settings = replace(access.settings, public_url="https://hr.example.com")
    ours = replace(access, settings=settings)
    token = access.sessions.start(employee)
    client = TestClient(
        AuthGuard(Starlette(routes=inner_routes(ours)), lambda: ours),
        base_url="https://hr.example.com",
        cookies={"__Host-hr_session": token},
    )
    assert client.get("/api/seen").status_code == 200
    for host in (
        "evil.example",
        "hr.example.com.evil.example",
        "",
        "xhr.example.com",
        "[",
        "hr.example.com@evil.example",
    ):
        assert client.get("/api/seen", headers={"host": host}).status_code == 421, host
        assert client.get("/login", headers={"host": host}).status_code == 421, host
        with pytest.raises(WebSocketDisconnect), client.websocket_connect(STREAM, headers={"host": host}):
            pass
    # Whoever looks after the machine still reaches it there, and load balancers by its address.
    assert client.get("/api/seen", headers={"host": "localhost:8501"}).status_code == 200
    assert client.get("/_stcore/health", headers={"host": "10.0.0.5:8501"}).status_code == 200


def test_without_a_public_address_any_name_is_ours() -> None:
    assert is_own_host({"type": "http", "headers": [(b"host", b"any.example")]}, Settings())


@pytest.mark.usefixtures("app_services")
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO"])
def test_what_is_public_has_no_other_method_that_streamlit_would_answer(access: Access, method: str) -> None:
    async def streamlit(request: Request) -> Response:
        return PlainTextResponse("a page of Streamlit")

    app = Starlette(routes=[*inner_routes(access), Route("/{path:path}", streamlit, methods=[method])])
    guarded = AuthGuard(app, lambda: access, public_methods=PUBLIC)
    # A route of an integration raises where its packages are missing.
    client = TestClient(guarded, follow_redirects=False, raise_server_exceptions=False)
    paths = [
        *PUBLIC,
        "/",
        "/login/",
        "/sso/logout/",
        "/sso",
        "/sso/x",
        "/nowhere",
        "//login",
        "/_stcore/health/x",
    ]
    for path in paths:
        for accept in ("text/html", "*/*"):
            answer = client.request(method, f"http://testserver{path}", headers={"accept": accept})
            assert "a page of Streamlit" not in answer.text, (method, path)


def test_every_public_method_has_a_route(access: Access) -> None:
    routed: dict[str, set[str]] = {}
    for route in inner_routes(access):
        if isinstance(route, Route):
            routed.setdefault(route.path, set()).update(route.methods or ())
    assert {path: set(methods) for path, methods in PUBLIC.items()} == {path: routed[path] for path in PUBLIC}


@pytest.mark.parametrize("path", ["/_stcore/metrics", "/_stcore/agent/interact"])
def test_figures_of_the_server_are_for_administrators(
    client_of: ClientOf, access: Access, add_person: AddPerson, path: str
) -> None:
    for role, status in ((Role.EMPLOYEE, 403), (Role.MANAGER, 403), (Role.ADMIN, 404)):  # there is none in here
        person = add_person(f"one-{role.value}@example.com", role=role)
        assert client_of(access.sessions.start(person)).get(path).status_code == status


def test_behind_https_cookies_can_be_set_by_this_host_alone(
    client_of: ClientOf, access: Access, employee: Account
) -> None:
    secure = client_of(base_url="https://testserver")
    names = [c.partition("=")[0] for c in secure.get("/login").headers.get_list("set-cookie")]
    assert names == ["__Host-hr_csrf"]
    for cookie in secure.get("/login").headers.get_list("set-cookie"):
        assert "Path=/;" in cookie
        assert "Secure" in cookie
        assert "Domain" not in cookie
    token = access.sessions.start(employee)
    # One that a neighbouring host, or a page without https, may have set.
    assert secure.get("/api/seen", headers={"cookie": f"hr_session={token}"}).status_code == 401
    assert secure.get("/api/seen", headers={"cookie": f"__Host-hr_session={token}"}).status_code == 200


# Other sites


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://testserver.evil.example", "http://[", ""])
def test_another_site_changes_nothing_and_opens_no_websocket(
    client_of: ClientOf, access: Access, employee: Account, origin: str
) -> None:
    client = client_of(access.sessions.start(employee))
    assert client.post("/api/seen", headers={"origin": origin}).status_code == 403
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(STREAM, headers={"origin": origin}):
        pass


def test_our_own_origin_passes(client_of: ClientOf, access: Access, employee: Account) -> None:
    client = client_of(access.sessions.start(employee))
    assert client.post("/api/seen", headers={"origin": "http://testserver"}).status_code == 200
    assert client.post("/api/seen", headers={"sec-fetch-site": "cross-site"}).status_code == 403


def test_the_public_address_is_an_origin_of_ours() -> None:
    headers = [(b"host", b"10.0.0.5:8501"), (b"origin", b"https://hr.example.com")]
    scope = {"type": "http", "headers": headers}
    assert is_same_origin(scope, Settings(public_url="https://hr.example.com"))
    assert not is_same_origin(scope, Settings())


# When a session ends


def wait_for_close(socket: Any) -> int:
    """The code with which the server closes, within two seconds."""
    codes: list[int] = []

    def listen() -> None:
        try:
            while True:
                socket.receive_text()
        except WebSocketDisconnect as exc:
            codes.append(exc.code)

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join(timeout=patient(2))
    assert codes, "the websocket stayed open"
    return codes[0]


ENDINGS: dict[str, Callable[[Access, Identity, Account, str], object]] = {
    "signed out": lambda access, admin, person, token: access.sessions.end(token),
    "all ended": lambda access, admin, person, token: access.sessions.end_all("demo", person.id),
    "disabled": lambda access, admin, person, token: access.accounts.change(admin, person.id, is_active=False),
    "role changed": lambda access, admin, person, token: access.accounts.change(admin, person.id, role="manager"),
    "password set": lambda access, admin, person, token: access.accounts.set_password_by_link(
        access.accounts.password_link(admin, person.id).partition("token=")[2], "another good password"
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_websocket_closes_when_its_session_ends(
    client_of: ClientOf, access: Access, admin: Identity, employee: Account, ending: str
) -> None:
    token = access.sessions.start(employee)
    others = client_of(access.sessions.start(access.accounts.sign_in(admin.email, "correct horse battery")))
    with client_of(token).websocket_connect(STREAM) as socket, others.websocket_connect(STREAM) as other:
        socket.receive_json()
        other.receive_json()
        ENDINGS[ending](access, admin, employee, token)
        assert wait_for_close(socket) == 4401
        other.send_text("still here")
        assert other.receive_text() == "still here"


@pytest.mark.parametrize("statement", ["DELETE FROM sessions", "UPDATE sessions SET expires_at = now()"])
def test_a_session_that_ends_elsewhere_or_expires_closes_its_websocket_too(
    client_of: ClientOf, access: Access, employee: Account, database: Database, statement: str
) -> None:
    token = access.sessions.start(employee)
    with client_of(token).websocket_connect(STREAM) as socket:
        socket.receive_json()
        with database.transaction("demo") as connection:
            connection.execute(statement)
        access.sessions.refresh([token_hash(token)])
        assert wait_for_close(socket) == 4401


def test_a_websocket_outlives_name_changes_and_is_forgotten_when_it_closes(
    access: Access, admin: Identity, employee: Account
) -> None:
    guard = AuthGuard(Starlette(routes=inner_routes(access)), lambda: access)
    token = access.sessions.start(employee)
    with TestClient(guard, cookies={"hr_session": token}) as client:
        with client.websocket_connect(STREAM) as socket:
            socket.receive_json()
            access.accounts.change(admin, employee.id, name="Kim")
            socket.send_text("still here")
            assert socket.receive_text() == "still here"
            assert list(guard._sockets._open) == [token_hash(token)]
        assert not guard._sockets._open
    access.sessions.end(token)


@pytest.mark.parametrize("change", ["role = 'employee'", "is_active = false"])
def test_rights_lost_in_another_process_are_lost_with_the_next_act(
    access: Access, admin: Identity, database: Database, change: str
) -> None:
    guard = AuthGuard(Starlette(routes=inner_routes(access)), lambda: access, recheck_seconds=3600)
    token = access.sessions.start(access.accounts.sign_in(admin.email, PASSWORD))
    with TestClient(guard, cookies={"hr_session": token}) as client, client.websocket_connect(STREAM) as socket:
        assert socket.receive_json()["role"] == "admin"
        assert client.put(UPLOAD, content=b"%PDF").status_code == 200
        with database.transaction("demo") as connection:
            connection.execute(f"UPDATE accounts SET {change} WHERE email = %s", (admin.email,))
        assert client.put(UPLOAD, content=b"%PDF").status_code in (401, 403)
        # A button of the page was drawn for an administrator.
        press = BackMsg()
        press.rerun_script.query_string = ""
        socket.send_bytes(press.SerializeToString())
        assert wait_for_close(socket) == 4401


def test_an_error_of_the_page_is_not_swallowed(access: Access, employee: Account) -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise LookupError("broken page")

    token = access.sessions.start(employee)
    client = TestClient(AuthGuard(broken, lambda: access), cookies={"hr_session": token})
    with pytest.raises(LookupError, match="broken page"), client.websocket_connect(STREAM):
        pass
