"""The routes that keep boards up to date: who may call them, what they take, how fast they answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

import rag.services as services_module
from rag.access.guard import AuthGuard
from rag.server import OPEN_PATHS
from rag.services import Services, assemble
from rag.storage.database import Database
from rag.types import Collection, Identity
from tests.profiles.notices.boards import event

if TYPE_CHECKING:
    from tests.profiles.notices.boards import Board, Follow

SECRET = {"authorization": "Bearer a secret of the webhook"}


@pytest.fixture
def client(behind_routes: Services) -> Iterator[TestClient]:
    from rag.api.app import routes_to
    from rag.server import API

    guard = Middleware(AuthGuard, services=services_module.services, open_paths=OPEN_PATHS)
    with TestClient(Starlette(routes=routes_to(API), middleware=[guard])) as made:
        yield made


@pytest.fixture
def key(parts: Services, administrator: Identity) -> dict[str, str]:
    _, secret = parts.api_keys.create(administrator, "sync", ["sync"], None)
    return {"authorization": f"Bearer {secret}"}


def sent(client: TestClient, payload: dict[str, Any], headers: dict[str, str]) -> Any:
    return client.post("/api/rag/webhook", json=payload, headers=headers)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"x-webhook-secret": "a secret of the webhooK"},
        {"authorization": "Basic x"},
    ],
)
def test_an_event_without_the_secret_is_refused(
    client: TestClient, notices: Collection, headers: dict[str, str], parts: Services
) -> None:
    answer = sent(client, event("INSERT", {"id": "p1", "title": "t"}), headers)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    parts.syncs.run("demo", notices.id)
    assert parts.documents.list("demo") == []


def test_without_a_secret_set_no_event_is_taken(
    database: Database, parts: Services, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = assemble(replace(parts.settings, webhook_secret=""), database)
    monkeypatch.setattr(services_module, "connect_services", lambda settings: bare)
    services_module.services.clear()
    answer = sent(client, event("INSERT", {"id": "p1"}), {"authorization": "Bearer "})
    assert answer.status_code == 403
    assert "RAG_WEBHOOK_SECRET" in answer.json()["detail"]
    bare.pipeline.close()
    bare.providers.close()


@pytest.mark.parametrize(
    "payload", [{}, {"type": "INSERT"}, {"type": "DROP", "table": "hof_posts", "record": {"id": 1}}]
)
def test_what_is_no_event_is_named(client: TestClient, notices: Collection, payload: dict[str, Any]) -> None:
    assert sent(client, payload, SECRET).status_code == 422


def test_events_of_the_source_are_taken_once(
    client: TestClient, notices: Collection, board: Board, follow: Follow, parts: Services
) -> None:
    payload = event("INSERT", board.put("p1", "제목", "<p>본문</p>"))
    assert sent(client, payload, SECRET).json() == {"received": True, "queued": True}
    assert sent(client, payload, {"x-webhook-secret": "a secret of the webhook"}).json()["queued"] is False
    assert [d.title for d in follow(notices)] == ["제목"]
    payload = event("DELETE", board.remove("p1"))
    assert sent(client, payload, SECRET).json()["queued"] is True
    assert follow(notices) == []


def test_an_event_is_answered_before_its_work_is_done(
    client: TestClient, notices: Collection, board: Board, follow: Follow, parts: Services
) -> None:
    for number in range(20):
        payload = event("INSERT", board.put(f"p{number}", "제목", "<p>본문</p>" * 500))
        assert sent(client, payload, SECRET).status_code == 200
    assert parts.documents.list("demo", collection_id=notices.id) == []
    assert len(follow(notices)) == 20


def test_a_sync_is_asked_for_with_a_key_and_followed(
    client: TestClient, notices: Collection, board: Board, follow: Follow, key: dict[str, str]
) -> None:
    board.put("p1", "제목", "<p>본문</p>")
    assert client.post("/api/rag/sync", json={}).status_code == 401
    asked = client.post("/api/rag/sync", json={}, headers=key)
    assert asked.status_code == 202
    assert asked.json()["collection"] == "Board"
    again = client.post("/api/rag/sync", json={"collection": str(notices.id)}, headers=key)
    assert [run["id"] for run in again.json()["runs"]] == [run["id"] for run in asked.json()["runs"]]
    follow(notices)
    (run,) = client.get("/api/rag/sync", headers=key).json()["runs"]
    assert (run["status"], run["added"], run["failed"]) == ("done", 1, 0)
    assert float(run["cost"]) > 0
    assert client.post("/api/rag/sync", json={"collection": "nowhere"}, headers=key).status_code == 404
