from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from front_door import Access, AddPerson, inner_routes
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from rag.access.guard import AuthGuard, is_same_origin, route_path
from rag.access.headers import CONTENT_SECURITY_POLICY
from rag.access.sessions import token_hash
from rag.database import Database
from rag.settings import Settings
from rag.types import Account, Identity, Role

ClientOf = Callable[..., TestClient]
STREAM = "/_stcore/stream"
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
    with pytest.raises(WebSocketDisconnect) as caught, client_of().websocket_connect(STREAM):
        pass
    assert caught.value.code == 4401


def test_health_is_public_and_needs_no_database(client_of: ClientOf, database: Database) -> None:
    client = client_of()
    database.close()
    assert client.get("/_stcore/health").text == "ok"


def test_a_database_that_is_down_lets_nobody_in(client_of: ClientOf, access: Access, employee: Account) -> None:
    token = access.sessions.start(employee)
    client = client_of(token)
    access.sessions._database.close()
    assert client.get("/api/seen").status_code == 503
    with pytest.raises(WebSocketDisconnect) as caught, client.websocket_connect(STREAM):
        pass
    assert caught.value.code == 1013


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
        assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY"
        assert "strict-transport-security" not in headers


def test_strict_transport_is_asked_for_on_https_only(client_of: ClientOf) -> None:
    assert "strict-transport-security" in client_of(base_url="https://testserver").get("/login").headers


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
    thread.join(timeout=2)
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
            connection.execute(statement)  # type: ignore[call-overload]
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


def test_an_error_of_the_page_is_not_swallowed(access: Access, employee: Account) -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise LookupError("broken page")

    token = access.sessions.start(employee)
    client = TestClient(AuthGuard(broken, lambda: access), cookies={"hr_session": token})
    with pytest.raises(LookupError, match="broken page"), client.websocket_connect(STREAM):
        pass
