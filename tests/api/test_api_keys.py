"""Keys: what they open, what they do not, and how much of it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

from rag.access.api_keys import ApiKeys
from rag.errors import InvalidInput, KeyRejected, NotAllowed, NotFound
from rag.storage.database import Database
from rag.types import Identity, Role
from tests.api.callers import SCOPES, Api


def test_a_key_is_kept_only_as_a_hash(api: Api, database: Database) -> None:
    key, secret = api.made_key("chat")
    with database.transaction("demo") as connection:
        stored = str(connection.execute("SELECT * FROM api_keys").fetchall())
    assert secret not in stored
    assert secret.startswith(key.hint)


@pytest.mark.parametrize("secret", ["", "wrong", "rag_" + "A" * 43, "rag_" + "é" * 43])
def test_what_is_no_key_opens_nothing(api: Api, secret: str) -> None:
    with pytest.raises(KeyRejected):
        api.parts.api_keys.find(secret)
    sent: dict[bytes, bytes] = {b"x-api-key": secret.encode()}
    answer = api.client().get("/api/collections", headers=sent)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["code"] in ("key_rejected", "signed_out")


def test_a_revoked_key_ends_with_the_next_request_in_every_process(api: Api, database: Database) -> None:
    key, secret = api.made_key()
    elsewhere = ApiKeys(database)
    assert api.client(secret).get("/api/collections").status_code == 200
    elsewhere.find(secret)
    api.parts.api_keys.revoke(api.admin, key.id)
    assert api.client(secret).get("/api/collections").status_code == 401
    with pytest.raises(KeyRejected):
        elsewhere.find(secret)


def test_an_expired_key_opens_nothing(api: Api, database: Database) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    key, secret = api.parts.api_keys.create(api.admin, "Report", ["chat"], soon)
    assert key.works
    with database.transaction("demo") as connection:
        connection.execute("UPDATE api_keys SET expires_at = now() - interval '1 second'")
    assert api.client(secret).get("/api/me").status_code == 401


def test_a_key_may_do_only_what_its_scopes_say(api: Api) -> None:
    document = api.ready_document()
    caller = api.client(api.key("search"))
    assert caller.get("/api/me").json()["scopes"] == ["search"]
    assert caller.get("/api/me").json()["email"] == "key:Intranet"
    for method, path in [
        ("GET", "/api/documents"),
        ("GET", f"/api/documents/{document.id}/file"),
        ("DELETE", f"/api/documents/{document.id}"),
        ("POST", "/api/rag/chat"),
    ]:
        answer = caller.request(method, path, json={"query": "x"} if method == "POST" else None)
        assert answer.status_code == 403
        assert answer.json()["code"] == "scope_missing"
    assert "checks" not in caller.get("/api/health").json()
    assert api.client(api.key("admin")).get("/api/health").json()["checks"]


def test_a_key_is_no_way_into_the_pages(api: Api) -> None:
    secret = api.key()
    assert api.client(secret).get("/people").status_code == 401
    assert api.client(secret, Accept="text/html").get("/people").headers["location"].startswith("/login")


def test_another_tenants_key_sees_nothing(api: Api, database: Database) -> None:
    document = api.ready_document()
    stranger = Identity(
        account_id=api.admin.account_id, tenant_id="other", email="x@example.com", name="X", role=Role.ADMIN
    )
    _, secret = api.parts.api_keys.create(stranger, "Other", list(SCOPES))
    caller = api.client(secret)
    assert caller.get("/api/documents").json()["total"] == 0
    assert caller.get(f"/api/documents/{document.id}").status_code == 404
    with pytest.raises(NotFound):
        api.parts.api_keys.revoke(stranger, api.made_key("chat")[0].id)


def test_the_limit_counts_for_all_processes_together(api: Api, database: Database) -> None:
    secret = api.key("documents:read", requests_per_minute=3)
    ApiKeys(database).find(secret)
    caller = api.client(secret)
    first, second, third = (caller.get("/api/collections") for _ in range(3))
    assert first.headers["ratelimit-limit"] == "3"
    assert (first.headers["ratelimit-remaining"], second.headers["ratelimit-remaining"]) == ("1", "0")
    assert third.status_code == 429
    assert 1 <= int(third.headers["retry-after"]) <= 60
    assert third.json()["code"] == "too_many_requests"
    with database.transaction("demo") as connection:
        connection.execute("UPDATE api_keys SET minute_started_at = now() - interval '61 seconds'")
    assert caller.get("/api/collections").status_code == 200


@pytest.mark.parametrize(
    ("name", "scopes", "days"),
    [("", ["chat"], 1), ("x" * 81, ["chat"], 1), ("x", [], 1), ("x", ["everything"], 1), ("x", ["chat"], -1)],
)
def test_a_key_that_makes_no_sense_is_refused_in_a_sentence(api: Api, name: str, scopes: list[str], days: int) -> None:
    with pytest.raises(InvalidInput, match=r"\.$"):
        api.parts.api_keys.create(api.admin, name, scopes, datetime.now(UTC) + timedelta(days=days))


def test_only_administrators_make_keys(api: Api) -> None:
    manager = Identity(
        account_id=api.admin.account_id, tenant_id="demo", email="m@example.com", name="M", role=Role.MANAGER
    )
    with pytest.raises(NotAllowed):
        api.parts.api_keys.create(manager, "x", ["chat"])
    with pytest.raises(NotAllowed):
        api.parts.api_keys.list(manager)


# The session beside it


def test_a_session_needs_its_own_site_to_change_anything(api: Api) -> None:
    browser = api.client()
    browser.cookies.set("hr_session", api.session(Role.EMPLOYEE))
    foreign = browser.post("/api/rag/search", json={"query": "x"}, headers={"Origin": "https://intranet.example.com"})
    assert foreign.status_code == 403
    assert foreign.json()["code"] == "other_site"
    assert browser.post("/api/rag/search", json={"query": "x"}, headers={"Origin": api.url}).status_code == 200


def test_a_token_meant_for_a_proxy_does_not_end_a_session(api: Api) -> None:
    browser = api.client("of-the-proxy")
    browser.cookies.set("hr_session", api.session(Role.EMPLOYEE))
    assert browser.get("/api/me").json()["email"] == "one-employee@example.com"


# Other sites


def test_only_a_named_site_may_call_with_a_key(api: Api) -> None:
    ask = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    preflight = api.client().options("/api/rag/chat", headers={"Origin": "https://intranet.example.com", **ask})
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "https://intranet.example.com"
    assert "access-control-allow-credentials" not in preflight.headers
    for origin in ("https://intranet.example.com.evil.com", "http://intranet.example.com", "null"):
        refused = api.client().options("/api/rag/chat", headers={"Origin": origin, **ask})
        assert refused.status_code == 401
        assert "access-control-allow-origin" not in refused.headers
    answer = api.client(api.key("search"), Origin="https://intranet.example.com").post(
        "/api/rag/search", json={"query": "x"}
    )
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://intranet.example.com"


# Requests by their id


def test_a_requests_id_comes_back_and_stands_in_the_log(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caller = api.client(api.key())
    assert caller.get("/api/me", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"] == "abc-1"
    forged = caller.get("/api/me", headers={"X-Request-Id": "a b"}).headers["x-request-id"]
    assert forged not in ("a b", "")
    from rag.__main__ import name_request
    from rag.monitoring.tracing import request_id

    record = logging.LogRecord("x", logging.INFO, "", 0, "", (), None)
    request_id.set("abc-1")
    assert name_request(record)
    assert record.request == " [request abc-1]"  # type: ignore[attr-defined]
    request_id.set("")
