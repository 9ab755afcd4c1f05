"""What every answer carries, what no other site can have done, and what is kept from whom it was not shown to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks.leak_calls import requests_of
from rag.access.guard import CONNECTING, AuthGuard, content_security_policy
from rag.access.websockets import FILE_FIELDS, files_in
from rag.errors import SettingsError
from rag.integrations import registry
from rag.server import ERROR_HANDLERS, MIDDLEWARE, OPEN_PATHS, ROUTES
from rag.services import Services
from rag.settings import Settings
from rag.storage.embedded_postgres import EmbeddedServer
from rag.types import Account, Collection, Identity, Role
from tests import hostile

POLICY = content_security_policy(["testserver"])
SHOWN = "0123456789abcdef0123456789abcdef0123456789abcdef01234567.png"
PROJECT = Path(__file__).resolve().parents[2]
PASSWORD = "a long enough password 7"
SIGNED = {path for path, methods in registry.public_methods().items() if "POST" in methods} - CONNECTING
#: Asked from other sites and programs by design, and read no cookie: a widget's key and sites, or a signature, decide
#: (tests/integrations/channels).
WITHOUT_COOKIES = tuple(SIGNED)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return Settings(data_dir=settings.data_dir, tesseract="none", cors_origins="https://intranet.example.com")


@pytest.fixture
def admin(app_services: Services) -> Identity:
    token = app_services.accounts.first_admin_link("demo")
    assert token is not None
    account = app_services.accounts.create_first_admin(token, "admin@demo.example", "Admin", PASSWORD)
    found = app_services.sessions.find(app_services.sessions.start(account))
    assert found is not None
    return found


@pytest.fixture
def employee(app_services: Services, admin: Identity) -> Account:
    return app_services.accounts.invite(admin, "one@demo.example", "One", Role.EMPLOYEE)[0]


@pytest.fixture
def browser(app_services: Services, admin: Identity) -> Iterator[TestClient]:
    """Of the administrator."""
    account = next(a for a in app_services.accounts.list(admin) if a.id == admin.account_id)
    app = Starlette(routes=ROUTES, middleware=MIDDLEWARE, exception_handlers=ERROR_HANDLERS)
    token = app_services.sessions.start(account)
    client = TestClient(app, cookies={"hr_session": token}, follow_redirects=False, raise_server_exceptions=False)
    with client:
        yield client


def is_guarded(headers: Any) -> bool:
    return (
        headers.get("content-security-policy") in (POLICY, content_security_policy(), "sandbox; default-src 'none'")
        and headers.get("x-content-type-options") == "nosniff"
        and headers.get("x-frame-options") == "DENY"
        and headers.get("referrer-policy") == "same-origin"
    )


def test_every_kind_of_answer_carries_the_policy(
    app_services: Services, admin: Identity, collection: Collection, browser: TestClient
) -> None:
    library = app_services.documents
    pdf = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    text = library.upload(admin, collection, "a.html", b"<p>Every employee has 27 days of leave a year.</p>" * 9)
    origin = {"Origin": "https://intranet.example.com"}
    preflight = {**origin, "Access-Control-Request-Method": "POST"}
    answers = {
        "page": browser.get("/account/password"),
        "redirect": browser.get("/login"),
        "json": browser.get("/api/documents"),
        "not found": browser.get("/api/nowhere"),
        "invalid": browser.post("/api/rag/search", json={}),
        "pdf": browser.get(f"/api/documents/{pdf.id}/file"),
        "original": browser.get(f"/api/documents/{text.id}/file"),
        "picture": browser.get(f"/api/documents/{pdf.id}/pages/1.png"),
        "stream": browser.post("/api/rag/chat", json={"query": "annual leave", "options": {"stream": True}}),
        "documentation": browser.get("/api/docs"),
        "openapi": browser.get("/api/openapi.json"),
        "other site": browser.post("/api/rag/search", json={}, headers={"Origin": "https://evil.example"}),
        "upload": browser.put("/_stcore/upload_file/a/b"),
        "media": browser.get(f"/media/{SHOWN}"),
        "preflight": browser.options("/api/rag/search", headers=preflight),
        "bad key": browser.get("/api/documents", headers={"Authorization": f"Bearer rag_{'x' * 43}"}),
    }
    browser.cookies.clear()
    answers |= {"signed out": browser.get("/api/documents"), "sign in": browser.get("/login")}
    assert {name for name, answer in answers.items() if not is_guarded(answer.headers)} == set()
    assert answers["original"].headers["content-security-policy"].startswith("sandbox;")
    assert answers["pdf"].headers["content-security-policy"] == POLICY


@pytest.mark.parametrize("is_signed_in", [pytest.param(True, id="signed_in"), pytest.param(False, id="signed_out")])
def test_every_route_carries_the_policy_whatever_it_answers(browser: TestClient, is_signed_in: bool) -> None:
    if not is_signed_in:
        browser.cookies.clear()
    asked = requests_of(ROUTES)
    assert len(asked) > 50
    bare = []
    for method, path in asked:
        answer = browser.request(method, path.replace("{document_id}", "0" * 32), json={} if method != "GET" else None)
        if not is_guarded(answer.headers):
            bare.append((method, path, answer.status_code))
    assert bare == []


@pytest.mark.parametrize("is_cookie_of_another", [False, True])
def test_every_form_of_ours_needs_its_token(browser: TestClient, is_cookie_of_another: bool) -> None:
    """Beside the origin, which the guard checks: a form without the token of this browser changes nothing."""
    # The provider itself sends the first; its signature is the proof. Programs send the others, without a session.
    no_forms = {"/sso/logout", "/mcp", *CONNECTING, *WITHOUT_COOKIES}
    routes = [route for route in ROUTES if isinstance(route, Route) and "POST" in (route.methods or ())]
    forms = [route.path for route in routes if route.path not in no_forms]
    assert len(forms) > 6
    if is_cookie_of_another:
        browser.cookies.set("hr_csrf", "x" * 43)
    through = []
    for path in forms:
        answer = browser.post(path, data={"csrf": "y" * 43, "token": "t"}, headers={"origin": "http://testserver"})
        # A link that works no longer says that first; there is nothing to be changed by it.
        if (
            answer.status_code != 403
            and "no longer works" not in answer.text
            and "used or has expired" not in answer.text
            and "This request has expired" not in answer.text
        ):
            through.append((path, answer.status_code))
    assert through == []


def test_what_fails_before_the_guard_carries_it_too(database: Any) -> None:
    def broken() -> Services:
        raise SettingsError("The data folder cannot be written.")

    def crashed() -> Services:
        raise ZeroDivisionError

    for services, status in ((broken, 503), (crashed, 500)):
        app = Starlette(middleware=[Middleware(AuthGuard, services=services)], exception_handlers=ERROR_HANDLERS)
        answer = TestClient(app, raise_server_exceptions=False).get("/")
        assert answer.status_code == status
        assert is_guarded(answer.headers)
        assert "ZeroDivision" not in answer.text


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param({"Origin": "https://evil.example"}, id="other_origin"),
        pytest.param({"Origin": "null"}, id="no_origin"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, id="cross_site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, id="same_site"),
    ],
)
def test_no_other_site_changes_anything_with_somebodys_cookie(browser: TestClient, sent: dict[str, str]) -> None:
    """Every route of the product that is not for reading only, those of the API included."""
    changing = [(method, path) for method, path in requests_of(ROUTES) if method not in ("GET", "HEAD", "OPTIONS")]
    changing = [(method, path) for method, path in changing if path not in WITHOUT_COOKIES]
    assert len(changing) > 15
    through = []
    for method, path in changing:
        answer = browser.request(method, path.replace("{document_id}", "0" * 32), json={}, headers=sent)
        if answer.status_code != 403 or "another site" not in answer.text:
            through.append((method, path, answer.status_code))
    assert through == []


def test_an_allowed_origin_reads_with_a_key_and_never_with_a_cookie(browser: TestClient) -> None:
    answer = browser.post("/api/rag/search", json={"query": "x"}, headers={"Origin": "https://intranet.example.com"})
    assert answer.status_code == 403
    assert "access-control-allow-credentials" not in answer.headers


def test_only_what_proves_itself_otherwise_is_open_to_everybody() -> None:
    assert sorted(OPEN_PATHS) == ["/api/health", "/api/rag/webhook", "/api/ready"]


# Streamlit's own endpoints


async def media(request: Request) -> PlainTextResponse:
    return PlainTextResponse("a picture")


async def page(websocket: WebSocket) -> None:
    """Draws a picture, after it has said as Streamlit does that there is no page of the name it was asked for."""
    await websocket.accept()
    asked = BackMsg.FromString(await websocket.receive_bytes()).rerun_script.page_name
    for answer in (not_found(asked), drawn(SHOWN if not asked else "")):
        await websocket.send_bytes(answer.SerializeToString())
    await websocket.receive()


def not_found(name: str) -> ForwardMsg:
    answer = ForwardMsg()
    answer.page_not_found.page_name = name
    return answer


def drawn(name: str) -> ForwardMsg:
    answer = ForwardMsg()
    answer.delta.new_element.imgs.imgs.add().url = f"/media/{name}"
    return answer


def asking_for(name: str) -> bytes:
    asked = BackMsg()
    asked.rerun_script.page_name = name
    return bytes(asked.SerializeToString())


def test_a_picture_is_served_to_the_session_it_was_drawn_for(
    app_services: Services, admin: Identity, employee: Account
) -> None:
    app = Starlette(
        routes=[Route("/media/{name}", media), WebSocketRoute("/_stcore/stream", page)],
        middleware=[Middleware(AuthGuard, services=lambda: app_services)],
    )
    tokens = [app_services.sessions.start(employee) for _ in range(2)]
    one, other = (TestClient(app, cookies={"hr_session": token}) for token in tokens)
    with one, other:
        assert one.get(f"/media/{SHOWN}").status_code == 404
        with one.websocket_connect("/_stcore/stream") as socket:
            socket.send_bytes(asking_for(""))
            socket.receive_bytes()
            socket.receive_bytes()
        assert one.get(f"/media/{SHOWN}").text == "a picture"
        assert one.get(f"/media/f{SHOWN}").status_code == 404
        assert other.get(f"/media/{SHOWN}").status_code == 404
        app_services.sessions.end(tokens[0])
        assert one.get(f"/media/{SHOWN}").status_code == 401


def test_an_address_that_is_sent_back_to_the_browser_opens_no_file(
    app_services: Services, admin: Identity, employee: Account
) -> None:
    app = Starlette(
        routes=[Route("/media/{name}", media), WebSocketRoute("/_stcore/stream", page)],
        middleware=[Middleware(AuthGuard, services=lambda: app_services)],
    )
    with TestClient(app, cookies={"hr_session": app_services.sessions.start(employee)}) as attacker:
        for text in (f"/media/{SHOWN} x", f"/media/{SHOWN}", f"x/media/{SHOWN}"):
            with attacker.websocket_connect("/_stcore/stream") as socket:
                socket.send_bytes(asking_for(text))
                socket.receive_bytes()
                socket.receive_bytes()
        assert attacker.get(f"/media/{SHOWN}").status_code == 404


def test_only_fields_of_files_open_a_file() -> None:
    assert files_in(drawn(SHOWN).SerializeToString()) == [SHOWN]
    text = ForwardMsg()
    text.delta.new_element.markdown.body = f"/media/{SHOWN}"
    assert files_in(text.SerializeToString()) == []
    assert files_in(b"\x0a\x50/media/" + SHOWN.encode() + b"\x12\x07a page") == []
    # Each of them is still a field of the installed Streamlit.
    known = set()
    waiting = [ForwardMsg.DESCRIPTOR]
    while waiting:
        kind = waiting.pop()
        for field in kind.fields:
            name = f"{kind.full_name}.{field.name}"
            if name not in known and field.message_type:
                waiting.append(field.message_type)
            known.add(name)
    assert known >= FILE_FIELDS


def test_what_streamlit_keeps_for_all_sessions_is_kept_by_tenant() -> None:
    """A cache is shared by everybody: each has to be asked for by tenant."""
    shared = []
    for path in [PROJECT / "app.py", *(PROJECT / "pages").glob("*.py"), *(PROJECT / "rag").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            kept = isinstance(node, ast.FunctionDef) and any(
                "st.cache_" in ast.unparse(decorator) for decorator in node.decorator_list
            )
            if kept and isinstance(node, ast.FunctionDef):
                names = {argument.arg for argument in node.args.args}
                shared += [] if names & {"tenant_id", "identity"} else [(path.name, node.name)]
    assert shared == []


# Secrets


def test_no_secret_is_in_a_representation(tmp_path: Path) -> None:
    secret = "zq-secret-value"
    names = [f.name for f in fields(Settings) if any(w in f.name for w in ("key", "secret", "token", "password"))]
    keyed = Settings(
        data_dir=tmp_path,
        **cast("dict[str, Any]", {name: secret for name in names if isinstance(getattr(Settings(), name), str)}),
    )
    assert secret not in repr(keyed)
    assert secret not in str(keyed)
    server = EmbeddedServer(folder=tmp_path, application=secret, owner=secret, superuser=secret, lock=0)
    assert secret not in repr(server)
