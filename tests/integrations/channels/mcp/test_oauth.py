"""Programs connect to a person's account by OAuth: with the protocol's own client, and as an attacker would."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import replace
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl

from rag.access.connected_apps import check_address
from rag.errors import InvalidInput
from rag.types import Role
from tests.api.callers import Api
from tests.patience import patient

BACK = "http://127.0.0.1:33418/callback"


def browser_of(api: Api, role: Role = Role.ADMIN) -> httpx.Client:
    browser = api.client(Origin=api.url, Accept="text/html")
    browser.cookies.set("hr_session", api.session(role))
    return browser


def choose(browser: httpx.Client, page: httpx.Response, choice: str) -> str:
    """Press a button of the page that asks; the address that the browser goes on to."""
    fields = dict(re.findall(r'name="(csrf|request)" value="([^"]*)"', page.text))
    done = browser.post("/account/connect", data={**{k: unescape(v) for k, v in fields.items()}, "choice": choice})
    assert done.status_code == 200
    found = re.search(r'content="0;url=([^"]+)"', done.text)
    assert found is not None
    return unescape(found[1])


class Storage:
    """Keeps a client's tokens, as its makers' example does."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


class Attacker:
    """Speaks the protocol by hand."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.http = api.client()
        self.verifier = secrets.token_urlsafe(48)

    def register(self, *addresses: str, name: str = "Notes") -> httpx.Response:
        body = {"client_name": name, "redirect_uris": addresses or [BACK], "token_endpoint_auth_method": "none"}
        return self.http.post("/oauth/register", json=body)

    def ask(self, client_id: str, **changed: str) -> httpx.Response:
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode().rstrip("=")
        wanted = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": BACK,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "state": "s t&a=te",
            "scope": "chat search",
        }
        return self.http.get("/oauth/authorize", params={**wanted, **changed})

    def code(self, client_id: str, browser: httpx.Client) -> str:
        asked = self.ask(client_id)
        page = browser.get(asked.headers["location"])
        answer = parse_qs(urlsplit(choose(browser, page, "allow")).query)
        assert answer["state"] == ["s t&a=te"]
        assert answer["iss"] == [self.api.url]
        return answer["code"][0]

    def exchange(self, client_id: str, **fields: str) -> httpx.Response:
        code = {"grant_type": "authorization_code", "redirect_uri": BACK, "code_verifier": self.verifier}
        sent = {"client_id": client_id, **({} if "grant_type" in fields else code), **fields}
        return self.http.post("/oauth/token", data=sent)

    def tokens(self, browser: httpx.Client) -> tuple[str, dict[str, Any]]:
        client_id = self.register().json()["client_id"]
        found = self.exchange(client_id, code=self.code(client_id, browser))
        assert found.status_code == 200, found.text
        return client_id, found.json()


def bearer(api: Api, token: str) -> httpx.Client:
    return api.client(token)


def test_the_protocols_own_client_connects_and_acts_as_the_person(api: Api) -> None:
    document = api.ready_document()
    browser = browser_of(api)
    answers: list[str] = []

    async def open_browser(address: str) -> None:
        page = await anyio.to_thread.run_sync(browser.get, address)
        while page.is_redirect:
            page = await anyio.to_thread.run_sync(browser.get, page.headers["location"])
        assert "Test client" in page.text
        assert "127.0.0.1" in page.text
        answers.append(await anyio.to_thread.run_sync(choose, browser, page, "allow"))

    async def wait_for_answer() -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(answers[-1]).query)
        return AuthorizationCodeResult(code=query["code"][0], state=query["state"][0], iss=query["iss"][0])

    async def main() -> None:
        storage = Storage()
        auth = OAuthClientProvider(
            server_url=f"{api.url}/mcp",
            client_metadata=OAuthClientMetadata(client_name="Test client", redirect_uris=[AnyUrl(BACK)]),
            storage=storage,
            redirect_handler=open_browser,
            callback_handler=wait_for_answer,
        )
        async with (
            httpx2.AsyncClient(auth=auth, timeout=patient(20)) as http,
            Client(streamable_http_client(f"{api.url}/mcp", http_client=http)) as client,
        ):
            listed = (await client.call_tool("list_documents", {})).structured_content
            assert [item["document_id"] for item in listed["documents"]] == [str(document.id)]
        assert storage.tokens.refresh_token.startswith("hro_")

    anyio.run(main)


def test_a_program_reads_what_it_was_allowed_and_nothing_more(api: Api) -> None:
    api.ready_document()
    browser = browser_of(api)
    _, tokens = Attacker(api).tokens(browser)
    program = bearer(api, tokens["access_token"])
    assert tokens["expires_in"] == 3600
    assert program.post("/api/rag/search", json={"query": "leave"}).status_code == 200
    assert program.get("/v1/models").status_code == 200
    me = program.get("/api/me").json()
    assert (me["email"], me["scopes"]) == ("one-admin@example.com", ["chat", "search"])
    assert program.get("/api/documents").status_code == 403  # not in the scope that was asked for
    for method, path in (("POST", "/api/collections"), ("DELETE", f"/api/collections/{api.collection.id}")):
        assert program.request(method, path, json={}).status_code == 403
    # Its token opens no page and no form.
    page = api.client(tokens["access_token"], Accept="text/html").get("/")
    assert page.status_code == 303
    assert "sign" in page.headers["location"] or "login" in page.headers["location"]


def test_a_code_works_once_for_its_program_with_its_verifier_and_address(api: Api) -> None:
    browser, attacker = browser_of(api), Attacker(api)
    client_id = attacker.register().json()["client_id"]
    other = attacker.register(name="Other").json()["client_id"]
    code = attacker.code(client_id, browser)
    assert attacker.exchange(other, code=code).json()["error"] == "invalid_grant"
    assert attacker.exchange(client_id, code=code, code_verifier="x" * 48).json()["error"] == "invalid_grant"
    assert attacker.exchange(client_id, code=code, redirect_uri="https://evil.example.com/").status_code == 400
    first = attacker.exchange(client_id, code=code)
    assert first.status_code == 200
    assert bearer(api, code).get("/api/me").status_code == 401  # a code is no token
    tokens = first.json()
    assert bearer(api, tokens["access_token"]).get("/api/me").status_code == 200
    assert attacker.exchange(client_id, code=code).json()["error"] == "invalid_grant"
    # Two have had the code: what was made from it ends.
    assert bearer(api, tokens["access_token"]).get("/api/me").status_code == 401
    fields = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    assert attacker.exchange(client_id, **fields).json()["error"] == "invalid_grant"


@pytest.mark.parametrize("rotations", [1, 2, 5])
def test_a_stolen_refresh_token_ends_the_connection(api: Api, rotations: int) -> None:
    attacker = Attacker(api)
    client_id, tokens = attacker.tokens(browser_of(api))
    stolen, renewed = tokens["refresh_token"], tokens
    for _ in range(rotations):
        fields = {"grant_type": "refresh_token", "refresh_token": renewed["refresh_token"]}
        renewed = attacker.exchange(client_id, **fields).json()
    assert bearer(api, tokens["access_token"]).get("/api/me").status_code == 401
    assert bearer(api, renewed["access_token"]).get("/api/me").status_code == 200
    # Whoever presents it, and as which program: it was used.
    other = attacker.register(name="Other").json()["client_id"]
    again = attacker.exchange(other if rotations > 1 else client_id, grant_type="refresh_token", refresh_token=stolen)
    assert again.json()["error"] == "invalid_grant"
    assert bearer(api, renewed["access_token"]).get("/api/me").status_code == 401
    last = attacker.exchange(client_id, grant_type="refresh_token", refresh_token=renewed["refresh_token"])
    assert last.json()["error"] == "invalid_grant"


@pytest.mark.parametrize("event", ["password", "link", "role", "disabled and enabled", "deleted by the directory"])
def test_a_new_password_another_role_and_leaving_end_connected_programs(api: Api, event: str) -> None:
    attacker = Attacker(api)
    address, password = "connected@example.com", "correct horse battery staple"
    admin = api.admin
    invited, link = api.parts.accounts.invite(admin, address, "Connected", Role.ADMIN, "")
    api.parts.accounts.set_password_by_link(link.partition("token=")[2], password)
    browser = api.client(Origin=api.url, Accept="text/html")
    browser.cookies.set("hr_session", api.parts.sessions.start(invited))
    client_id, tokens = attacker.tokens(browser)
    program = bearer(api, tokens["access_token"])
    assert program.get("/api/me").status_code == 200
    person = api.parts.sessions.find(browser.cookies["hr_session"])
    assert person is not None
    accounts = api.parts.accounts
    if event == "password":
        accounts.change_password(person, password, "another horse battery staple")
    elif event == "link":
        link = accounts.password_link(admin, invited.id)
        accounts.set_password_by_link(link.partition("token=")[2], "another horse battery staple")
    elif event == "role":
        accounts.change(admin, invited.id, role=Role.EMPLOYEE)
        accounts.change(admin, invited.id, role=Role.ADMIN)
    elif event == "disabled and enabled":
        accounts.change(admin, invited.id, is_active=False)
        accounts.change(admin, invited.id, is_active=True)
    else:
        scim = pytest.importorskip("rag.integrations.directory.scim.provisioning")
        scim.Provisioning(api.parts.database, api.parts.sessions).remove_person(admin, str(invited.id))
        accounts.change(admin, invited.id, is_active=True)
    assert program.get("/api/me").status_code == 401
    fields = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    assert attacker.exchange(client_id, **fields).json()["error"] == "invalid_grant"


def test_a_token_works_where_it_was_asked_for_and_nowhere_else(api: Api) -> None:
    attacker, browser = Attacker(api), browser_of(api)

    def token_for(resource: str) -> str:
        client_id = attacker.register().json()["client_id"]
        asked = attacker.ask(client_id, resource=resource)
        answer = parse_qs(urlsplit(choose(browser, browser.get(asked.headers["location"]), "allow")).query)
        return str(attacker.exchange(client_id, code=answer["code"][0]).json()["access_token"])

    for resource in (f"{api.url}/mcp", f"{api.url}/mcp/"):
        program = bearer(api, token_for(resource))
        for path in ("/api/me", "/v1/models", "/api/collections", "/mcpx"):
            refused = program.get(path)
            assert refused.status_code == 401, path
        assert program.post("/mcp", json={}).status_code not in (401, 403)
    program = bearer(api, token_for(api.url))
    assert program.get("/api/me").status_code == 200
    assert program.post("/mcp", json={}).status_code not in (401, 403)
    for foreign in ("https://other.example.com/mcp", f"{api.url}/mcp/../api", f"{api.url}.example.com/mcp"):
        asked = attacker.ask(attacker.register().json()["client_id"], resource=foreign)
        page = browser.get(asked.headers["location"])
        assert (page.status_code, "not of this server" in page.text) == (400, True)


def test_nobody_is_told_another_name_of_this_server_than_its_own(api: Api) -> None:
    for path in ("/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp"):
        foreign = api.client(Host="evil.example.com").get(path)
        assert foreign.status_code == 403
        assert "RAG_PUBLIC_URL" in foreign.text
        assert "evil" not in foreign.text
        assert api.client().get(path).status_code == 200
    for path in ("/oauth/authorize", "/oauth/token", "/oauth/register"):
        assert api.client(Host="evil.example.com").request("POST", path, json={}).status_code == 403


def test_the_person_and_the_program_can_end_it(api: Api) -> None:
    browser, attacker = browser_of(api), Attacker(api)
    client_id, tokens = attacker.tokens(browser)
    person = api.parts.sessions.find(browser.cookies["hr_session"])
    assert person is not None
    (app,) = api.parts.connected_apps.list(person)
    assert (app.name, app.host, app.scopes) == ("Notes", "127.0.0.1", ["chat", "search"])
    api.parts.connected_apps.disconnect(person, app.id)
    assert bearer(api, tokens["access_token"]).get("/api/me").status_code == 401
    client_id, tokens = attacker.tokens(browser)
    revoked = attacker.http.post("/oauth/revoke", data={"client_id": client_id, "token": tokens["access_token"]})
    assert revoked.status_code == 200
    assert bearer(api, tokens["access_token"]).get("/api/me").status_code == 401
    with api.parts.database.transaction("demo") as connection:
        acts = connection.execute("SELECT action FROM audit_log WHERE target = 'Notes' ORDER BY id").fetchall()
    assert [row[0] for row in acts][:2] == ["connected program added", "connected program deleted"]


def test_who_is_disabled_or_may_not_connect_is_kept_out(api: Api) -> None:
    attacker, browser = Attacker(api), browser_of(api)
    _, tokens = attacker.tokens(browser)
    employee = browser_of(api, Role.EMPLOYEE)
    asked = attacker.ask(attacker.register().json()["client_id"])
    refused = employee.get(asked.headers["location"])
    assert refused.status_code == 403
    assert "Only administrators may connect programs here" in refused.text
    person = api.parts.sessions.find(browser.cookies["hr_session"])
    assert person is not None
    with api.parts.database.transaction("demo") as connection:
        connection.execute("UPDATE accounts SET role = 'employee' WHERE id = %s", (person.account_id,))
    assert bearer(api, tokens["access_token"]).get("/api/me").status_code == 401
    with api.parts.database.transaction("demo") as connection:
        connection.execute("UPDATE accounts SET role = 'admin', is_active = false WHERE id = %s", (person.account_id,))
    assert bearer(api, tokens["access_token"]).get("/api/me").status_code == 401


def test_nothing_is_connected_without_a_person_who_says_so(api: Api) -> None:
    attacker, browser = Attacker(api), browser_of(api)
    asked = attacker.ask(attacker.register().json()["client_id"])
    address = asked.headers["location"]
    visitor = api.client(Accept="text/html").get(address)
    assert visitor.status_code == 303
    assert visitor.headers["location"].startswith("/login?next=")
    page = browser.get(address)
    sealed = unescape(dict(re.findall(r'name="(csrf|request)" value="([^"]*)"', page.text))["request"])
    # A form of another site has no token, and its origin is another.
    assert "Allow" in browser.post("/account/connect", data={"request": sealed, "choice": "allow"}).text
    foreign = browser.post(
        "/account/connect", data={"request": sealed, "choice": "allow"}, headers={"Origin": "https://evil.example.com"}
    )
    assert foreign.status_code == 403
    body, _, seal = sealed.partition(".")
    for forged in ("", "x", f"{body}x.{seal}", f"{body}.{seal[:-2]}", "é.ü"):
        assert browser.get("/account/connect", params={"request": forged}).status_code == 400
    refused = parse_qs(urlsplit(choose(browser, page, "refuse")).query)
    assert refused["error"] == ["access_denied"]
    person = api.parts.sessions.find(browser.cookies["hr_session"])
    assert person is not None
    assert api.parts.connected_apps.list(person) == []


def test_where_nobody_may_connect_programs_none_registers(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api.parts.connected_apps, "_settings", replace(api.parts.settings, connected_apps="none"))
    refused = Attacker(api).register()
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_client_metadata")
    assert "RAG_CONNECTED_APPS" in refused.json()["error_description"]


def test_a_program_gets_codes_at_its_own_addresses_only(api: Api) -> None:
    attacker = Attacker(api)
    client_id = attacker.register().json()["client_id"]
    for address in ("https://evil.example.com/", "http://127.0.0.1:33418/callback/other", "javascript:alert(1)"):
        answer = attacker.ask(client_id, redirect_uri=address)
        assert answer.status_code == 400
    for refused in (
        attacker.ask(client_id, scope="admin"),
        attacker.ask(client_id, code_challenge_method="plain"),
        attacker.ask(client_id, response_type="token"),
    ):
        # A link of ours leads nobody to an address that anybody may have registered.
        assert (refused.status_code, refused.headers.get("location")) == (400, None)
    assert attacker.ask("made-up").status_code == 400
    named = attacker.register(name="<script>alert(1)</script> **Bank** https://bank.example.com").json()
    page = browser_of(api).get(attacker.ask(named["client_id"]).headers["location"])
    assert "<script>alert" not in page.text
    assert attacker.http.post("/oauth/register", content=b"x" * 20_000).status_code == 413


@pytest.mark.parametrize(
    "address",
    [
        "http://evil.example.com/", "javascript:alert(1)", "data:text/html,x", "https://a@b.example.com/", "https:///x",
        "https://host/#part", "file:///etc/passwd", "https://host/" + "x" * 400, "https://ho st/", "//host/x", "https://[::1",
        'https://host/"><script>', "https://host:99999/", "ms-msdt:/id", "smb://host/share", "mailto:a@b",
        "search-ms:query=x", "tel:112", "ssh://host/", "ldap://host/", "x-apple.systempreferences", "steam://run/1",
        "com.:x", ".com:x",
    ],
)  # fmt: skip
def test_addresses_that_codes_must_not_go_to_are_refused(address: str) -> None:
    with pytest.raises(InvalidInput):
        check_address(address)


@pytest.mark.parametrize(
    "address",
    [BACK, "https://claude.ai/api/mcp/auth_callback", "cursor://anysphere.mcp/callback", "com.example.app:/back"],
)
def test_addresses_of_known_programs_are_taken(address: str) -> None:
    check_address(address)


def test_where_to_ask_for_access_is_said(api: Api) -> None:
    refused = api.client().post("/mcp", json={})
    found = re.fullmatch(r'Bearer resource_metadata="(.+)"', refused.headers["www-authenticate"])
    assert found is not None
    resource = api.client().get(found[1]).json()
    assert resource["resource"] == f"{api.url}/mcp"
    server = api.client().get(f"{resource['authorization_servers'][0]}/.well-known/oauth-authorization-server").json()
    assert server["issuer"] == api.url
    assert server["code_challenge_methods_supported"] == ["S256"]


def test_a_program_in_a_browser_connects_from_a_site_of_the_settings_and_no_other(api: Api) -> None:
    site, other = "https://intranet.example.com", "https://evil.example.com"
    program = {"redirect_uris": [f"{site}/back"], "client_name": "Notes"}
    for path, asked in (
        ("/oauth/register", "content-type"),
        ("/oauth/token", "content-type,mcp-protocol-version"),
        ("/mcp", "authorization,content-type,mcp-protocol-version"),
    ):
        preflight = {"access-control-request-method": "POST", "access-control-request-headers": asked}
        allowed = api.client().options(path, headers={**preflight, "origin": site})
        assert (allowed.status_code, allowed.headers.get("access-control-allow-origin")) == (204, site), path
        refused = api.client().options(path, headers={**preflight, "origin": other})
        assert "access-control-allow-origin" not in refused.headers
    made = api.client().post("/oauth/register", json=program, headers={"origin": site})
    assert made.status_code == 201
    assert made.headers["access-control-allow-origin"] == site
    assert "access-control-allow-credentials" not in made.headers
    known = api.client().get("/.well-known/oauth-authorization-server", headers={"origin": site})
    assert known.headers["access-control-allow-origin"] == site
    assert api.client().post("/oauth/register", json=program, headers={"origin": other}).status_code == 403
    # The page that asks a person stays their own.
    assert api.client().post("/account/connect", headers={"origin": site}).status_code == 403
