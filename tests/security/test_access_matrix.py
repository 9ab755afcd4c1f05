"""Every caller at every door: who is let through, who is asked to sign in, and who is refused.

The tables are written by hand: a new route of the API fails until it has a row, and a new open door until it is listed.
Integrations have their rows in `rows.toml` beside their tests.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from starlette.routing import Route

import rag.server
from rag.access.api_keys import SCOPES
from rag.server import API_ROUTES
from rag.types import Identity, Role
from tests import hostile
from tests.api.callers import SCOPES as SCOPES_OF_THE_API
from tests.api.callers import Api
from tests.api.conftest import admin, api, parts, settings
from tests.integration_rows import listed, unserved_paths

__all__ = ["admin", "api", "parts", "settings"]

PAGES_FOLDER = Path(rag.server.__file__).parents[1] / "pages"
PUBLIC, ANYBODY = "public", "anybody"
#: Each route of the API, by the scope of keys that it needs.
ROUTES: dict[str, tuple[str, ...]] = {
    PUBLIC: ("POST /api/rag/webhook", "GET /api/health", "GET /api/ready"),
    ANYBODY: (
        "GET /api/me", "GET /api/openapi.json", "GET /api/docs", "GET /api/docs/{name}",
    ),
    "search": ("POST /api/rag/search", "POST /api/opinion/reference-block"),
    "chat": (
        "POST /api/rag/chat", "POST /api/opinion/generate", "GET /api/opinion", "GET /api/opinion/{id}",
        "DELETE /api/opinion/{id}",
    ),
    "documents:read": (
        "GET /api/collections", "GET /api/collections/{collection_id}", "GET /api/documents",
        "GET /api/documents/{document_id}", "GET /api/documents/{document_id}/versions",
        "GET /api/documents/{document_id}/chunks", "GET /api/documents/{document_id}/pages",
        "GET /api/documents/{document_id}/file", "GET /api/documents/{document_id}/pages/{page:int}.png",
        "GET /api/reference-documents", "GET /api/reference-documents/{id}",
    ),
    "documents:write": (
        "POST /api/collections/{collection_id}/documents", "DELETE /api/documents/{document_id}",
        "POST /api/documents/{document_id}/restore", "POST /api/documents/{document_id}/confirm",
        "POST /api/documents/{document_id}/discard", "POST /api/documents/{document_id}/retry",
        "GET /api/documents/{document_id}/pages/{page}/correction",
        "PUT /api/documents/{document_id}/pages/{page}/correction",
        "DELETE /api/documents/{document_id}/pages/{page}/correction",
        "POST /api/reference-documents/ingest", "POST /api/reference-documents", "PATCH /api/reference-documents/{id}",
        "POST /api/reference-documents/{id}/chunk", "PATCH /api/reference-documents/{id}/chunks/{chunk_index}",
        "POST /api/reference-documents/{id}/tag", "POST /api/reference-documents/{id}/embed",
        "DELETE /api/reference-documents/{id}",
    ),
    "sync": ("POST /api/rag/sync", "GET /api/rag/sync"),
    "admin": (
        "PUT /api/rag/sync/schedule", "POST /api/collections", "PATCH /api/collections/{collection_id}",
        "PATCH /api/collections/{collection_id}/settings", "DELETE /api/collections/{collection_id}",
        "POST /api/collections/{collection_id}/restore", "GET /api/prices", "POST /api/prices",
    ),
}  # fmt: skip
ROUTES = {scope: (*routes, *listed("routes", scope)) for scope, routes in ROUTES.items()}
#: What people may do who are signed in.
READING = {PUBLIC, ANYBODY, "search", "chat", "documents:read"}
PEOPLE = {Role.EMPLOYEE: READING, Role.MANAGER: READING, Role.ADMIN: {*ROUTES}}
#: All that a visitor sees outside the API; every other door refuses. `/metrics` is open to this machine.
OPEN_DOORS = {
    "GET /login", "GET /forgot-password", "GET /new-password", "GET /second-factor", "GET /metrics",
    *listed("doors", "open"),
}  # fmt: skip


def test_every_route_has_a_row() -> None:
    written = {route: scope for scope, routes in ROUTES.items() for route in routes}
    assert written == {f"{route.method} {route.path}": route.scope for route in API_ROUTES}


def filled(path: str, **known: str) -> str:
    """An address with ids of nothing, except the known ones."""
    values = {"page": "1", "chunk_index": "0", "model": "gpt", "name": "guide"} | known
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: values.get(found[1], str(uuid4())), path)


def answer_to(client: httpx.Client, route: str, **known: str) -> httpx.Response:
    method, path = route.split()
    body: dict[str, str] | None = None if method in ("GET", "DELETE") else {}
    return client.request(method, filled(path, **known), json=body)


def gate(status: int) -> str:
    return {401: "who are you", 403: "not yours"}.get(status, "through")


def refusals(client: httpx.Client, allowed: set[str], otherwise: str) -> list[str]:
    """Each route where the caller meets another answer than the table says."""
    wrong = []
    for scope, routes in ROUTES.items():
        expected = "through" if scope in allowed else otherwise
        for route in routes:
            met = gate(answer_to(client, route).status_code)
            # A webhook brings a secret of its own.
            if met != expected and route != "POST /api/rag/webhook":
                wrong += [f"{route}: {met}, not {expected}"]
    return wrong


# Callers of the API


def test_visitors_reach_what_is_public(api: Api) -> None:
    assert refusals(api.client(), {PUBLIC}, "who are you") == []


def test_a_key_that_nobody_made_opens_nothing(api: Api) -> None:
    assert refusals(api.client("rag_" + "a" * 43), set(), "who are you") == []


@pytest.mark.parametrize("scope", SCOPES)
def test_a_key_does_what_its_scope_says(api: Api, scope: str) -> None:
    allowed = {*ROUTES} if scope == "admin" else {PUBLIC, ANYBODY, scope}
    assert refusals(api.client(api.key(scope, requests_per_minute=100_000)), allowed, "not yours") == []


def test_a_revoked_and_an_expired_key_do_nothing(api: Api) -> None:
    key, secret = api.made_key()
    api.parts.api_keys.revoke(api.admin, key.id)
    assert refusals(api.client(secret), set(), "who are you") == []
    key, secret = api.made_key()
    with api.parts.database.transaction(api.admin.tenant_id) as connection:
        past = datetime.now(UTC) - timedelta(days=1)
        connection.execute("UPDATE api_keys SET expires_at = %s WHERE id = %s", (past, key.id))
    assert refusals(api.client(secret), set(), "who are you") == []


def browser_of(api: Api, token: str) -> httpx.Client:
    return api.client(Cookie=f"hr_session={token}", Origin=api.url)


@pytest.mark.parametrize("role", PEOPLE)
def test_people_do_what_their_role_says(api: Api, role: Role) -> None:
    assert refusals(browser_of(api, api.session(role)), PEOPLE[role], "not yours") == []


def test_a_person_whose_account_is_disabled_does_nothing(api: Api) -> None:
    token = api.session(Role.ADMIN)
    (account,) = (one for one in api.parts.accounts.list(api.admin) if one.email == "one-admin@example.com")
    api.parts.accounts.change(api.admin, account.id, is_active=False)
    assert refusals(browser_of(api, token), {PUBLIC}, "who are you") == []


@pytest.fixture
def stranger(api: Api) -> httpx.Client:
    """A key of another company's administrator with all scopes."""
    with api.parts.database.transaction("other") as connection:
        row = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
            "VALUES ('other', 'admin@example.org', 'Other', 'admin', '!') RETURNING id"
        ).fetchone()
    assert row is not None
    other: Identity = replace(api.admin, account_id=row[0], tenant_id="other", email="admin@example.org")
    scopes = [scope for scope in SCOPES if scope != "scim"]
    _, secret = api.parts.api_keys.create(other, "Other", scopes, requests_per_minute=100_000)
    return api.client(secret)


def test_another_companys_administrator_finds_nothing_of_this_one(api: Api, stranger: httpx.Client) -> None:
    document = api.ready_document(hostile.leave_policy("The xylocanary sings at noon."))
    known = {"document_id": str(document.id), "id": str(document.id), "collection_id": str(api.collection.id)}
    told = []
    for routes in ROUTES.values():
        for route in routes:
            answer = answer_to(stranger, route, **known)
            is_of_ours = any(f"{{{name}}}" in route for name in known)
            if "xylocanary" in answer.text or (is_of_ours and answer.is_success):
                told.append(f"{route}: {answer.status_code}")
    assert told == []
    assert api.parts.documents.get(api.admin, document.id).status == document.status


# Doors outside the API


def test_every_other_door_refuses_a_visitor(api: Api) -> None:
    served = [door for door in doors() if door.split()[1] not in unserved_paths()]
    answers = {door: answer_to(api.client(), door).status_code for door in served}
    assert len(answers) > 20
    assert {door for door, status in answers.items() if status < 400} == OPEN_DOORS & answers.keys()
    assert not [door for door, status in answers.items() if status >= 500]


def doors() -> list[str]:
    """Every route of the server outside the API."""
    of_the_api = {f"{route.method} {route.path}" for route in API_ROUTES}
    return [
        door
        for route in rag.server.ROUTES
        if isinstance(route, Route)
        for method in sorted(route.methods or ())
        if method not in ("HEAD", "OPTIONS") and (door := f"{method} {route.path}") not in of_the_api
    ]


#: Each door outside the API by who is let through.
DOORS: dict[str, set[str]] = {
    # Whoever brings what the door asks for: a password, a code, a signature, a site's key. No session or key helps.
    "anybody": {
        *OPEN_DOORS, "POST /login", "GET /welcome", "POST /welcome", "POST /forgot-password", "POST /new-password",
        "POST /second-factor", "GET /set-password", "POST /set-password", "GET /sso/start", "GET /sso/callback",
        "POST /sso/logout",
    },
    "people": {
        "GET /logout", "POST /logout", "GET /account/password", "POST /account/password", "GET /account/second-factor",
        "POST /account/second-factor", "GET /account/confirm", "POST /account/confirm",
        "GET /answers/{message_id:uuid}/text",
    },
    "administrators": set(),
    "people, keys, programs": set(),
    "directories": set(),
}  # fmt: skip
DOORS = {row: {*known, *listed("doors", row)} for row, known in DOORS.items()}
#: The doors that a caller passes, apart from those of anybody.
PASSED = {
    "visitor": set(),
    "employee": {"people", "people, keys, programs"},
    "manager": {"people", "people, keys, programs"},
    "administrator": {"people", "administrators", "people, keys, programs"},
    "key of all scopes": {"people, keys, programs"},
    "key of a directory": {"people, keys, programs", "directories"},
    "program": {"people, keys, programs"},
    "program of /mcp": {"people, keys, programs"},
}


def test_every_door_outside_the_api_has_a_row() -> None:
    assert sorted(doors()) == sorted(door for rows in DOORS.values() for door in rows)


@pytest.mark.parametrize("caller", PASSED)
def test_a_door_lets_through_whom_its_row_names(api: Api, caller: str) -> None:
    key = partial(api.key, requests_per_minute=100_000)
    clients: dict[str, Callable[[], httpx.Client]] = {
        "visitor": api.client,
        "employee": lambda: browser_of(api, api.session(Role.EMPLOYEE)),
        "manager": lambda: browser_of(api, api.session(Role.MANAGER)),
        "administrator": lambda: browser_of(api, api.session(Role.ADMIN)),
        "key of all scopes": lambda: api.client(key(*SCOPES_OF_THE_API)),
        "key of a directory": lambda: api.client(key("scim")),
        "program": lambda: api.client(token_of_program(api, "search")),
        "program of /mcp": lambda: api.client(token_of_program(api, "search", resource="/mcp")),
    }
    client = clients[caller]()
    wrong = []
    for row, behind in DOORS.items():
        for door in behind:
            # Signing out would end the session.
            if door == "POST /logout":
                continue
            answer = answer_to(client, door)
            is_through = gate(answer.status_code) == "through"
            # A form without its token is refused behind the door.
            is_form = door.startswith("POST /account")
            if row != "anybody" and row not in PASSED[caller] and is_through:
                wrong.append(f"{door}: {answer.status_code}")
            if row in PASSED[caller] and not is_through and not (is_form and answer.status_code == 403):
                wrong.append(f"{door}: {answer.status_code}")
            if row == "anybody" and door not in OPEN_DOORS and answer.status_code < 400:
                wrong.append(f"{door}: {answer.status_code}")
    assert wrong == []


#: What a program may be allowed that a person connects: no more than the person, and only these.
OF_PROGRAMS = {"search", "chat", "documents:read"}


@pytest.mark.parametrize("scope", sorted(OF_PROGRAMS))
def test_a_connected_program_does_what_it_was_allowed(api: Api, scope: str) -> None:
    assert refusals(api.client(token_of_program(api, scope)), {PUBLIC, ANYBODY, scope}, "not yours") == []


def test_a_program_of_another_address_or_that_was_disconnected_does_nothing(api: Api) -> None:
    for_mcp = api.client(token_of_program(api, "search", resource="/mcp"))
    assert refusals(for_mcp, set(), "who are you") == []
    token = token_of_program(api, "search")
    apps = api.parts.connected_apps
    for app in apps.list(api.admin):
        apps.disconnect(api.admin, app.id)
    assert refusals(api.client(token), set(), "who are you") == []


def token_of_program(api: Api, scope: str, *, resource: str = "") -> str:
    apps, home = api.parts.connected_apps, "https://program.example/back"
    code = apps.connect(
        api.admin, apps.register("P", [home]), [scope], redirect_uri=home, code_challenge="c", resource=resource
    )
    grant = apps.grant(code)
    assert grant is not None
    issued = apps.issue(grant, code)
    assert issued is not None
    return issued[0]


# Pages


#: Each page by the lowest role that may open it; `require` is its lock, `pages_for` its menu.
PAGES = {
    Role.EMPLOYEE: {"account", "board", "chat", "library", "opinions"},
    Role.MANAGER: {"analytics"},
    Role.ADMIN: {
        "audit", "collection_settings", "documents", "health", "people", "prices", "privacy", "programs", "setup",
    },
}  # fmt: skip


def test_every_page_has_a_row_and_asks_for_its_role_before_it_does_anything() -> None:
    asked: dict[Role, set[str]] = {role: set() for role in Role}
    for path in PAGES_FOLDER.glob("*.py"):
        if path.stem == "main":
            continue
        # The first call at the top of the page, apart from definitions and constants.
        statements = ast.parse(path.read_text("utf-8")).body
        locks = [node.value for node in statements if isinstance(node, ast.Assign) and is_lock(node)]
        assert len(locks) == 1, path.name
        assert isinstance(locks[0], ast.Call)
        role = Role[ast.unparse(locks[0].args[0]).removeprefix("Role.")] if locks[0].args else Role.EMPLOYEE
        asked[role].add(path.stem)
        drawn = [node.lineno for node in statements if draws(node)]
        assert all(line > locks[0].lineno for line in drawn), path.name
    assert asked == PAGES


def is_lock(node: ast.Assign) -> bool:
    return (
        isinstance(node, ast.Assign)
        and re.match(r"(?:require|current_identity)\(", ast.unparse(node.value)) is not None
    )


def draws(node: ast.AST) -> bool:
    """Whether a statement of a page reads data or draws."""
    return not isinstance(node, ast.FunctionDef | ast.ClassDef) and any(
        ast.unparse(inner.func).startswith(("st.", "services(")) and not ast.unparse(inner.func).startswith("st.dialog")
        for inner in ast.walk(node)
        if isinstance(inner, ast.Call)
    )
