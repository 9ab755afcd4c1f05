"""What is refused is refused in one form, early, and by default to every other site."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from fastapi import APIRouter

import rag.services as services_module
from rag.api.routing import ApiRoute
from rag.api.service import database_state
from rag.errors import DatabaseUnavailable
from rag.services import Services
from rag.settings import Settings
from rag.types import Role
from tests.api.callers import Api
from tests.patience import patient

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """As somebody starts it who sets nothing about other sites."""
    return replace(settings, cors_origins=Settings().cors_origins)


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "code"),
    [
        ("GET", "/api/nothing", {}, 404, "route_unknown"),
        ("GET", f"/api/documents/{uuid4()}", {}, 404, "not_found"),
        ("GET", "/api/documents/no-id", {}, 404, "not_found"),
        ("PUT", "/api/rag/search", {}, 405, "method_not_allowed"),
        ("POST", "/api/rag/search", {"content": b"query=x", "headers": {"Content-Type": "application/xml"}}, 415,
         "media_type_unsupported"),
        ("POST", "/api/rag/search", {"content": b" " * (1024 * 1024 + 1), "headers": JSON}, 413, "body_too_large"),
        ("POST", "/api/rag/search", {"content": b"{", "headers": JSON}, 400, "body_unreadable"),
        ("POST", "/api/rag/search", {"json": {"query": "x", "options": {"topK": 0}}}, 422, "request_invalid"),
        ("POST", "/api/reference-documents", {"json": {"title": " "}}, 400, "part_missing"),
        ("GET", "/api/documents?limit=0", {}, 422, "request_invalid"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)  # fmt: skip
def test_a_refusal_is_a_sentence_a_code_and_the_requests_id(
    api: Api, method: str, path: str, sent: dict[str, Any], status: int, code: str
) -> None:
    answer = api.client(api.key()).request(method, path, **sent)
    assert_problem(answer.status_code, dict(answer.headers), answer.json(), status, code)


def test_who_has_no_key_or_too_little_is_refused_in_the_same_form(api: Api) -> None:
    nobody = api.client().post("/api/rag/search", json={"query": "x"})
    assert_problem(nobody.status_code, dict(nobody.headers), nobody.json(), 401, "signed_out")
    little = api.client(api.key("sync")).post("/api/rag/search", json={"query": "x"})
    assert_problem(little.status_code, dict(little.headers), little.json(), 403, "scope_missing")
    hasty = api.client(api.key("search", requests_per_minute=1))
    assert hasty.get("/api/me").status_code == 200
    refused = hasty.get("/api/me")
    assert_problem(refused.status_code, dict(refused.headers), refused.json(), 429, "too_many_requests")
    assert int(refused.headers["retry-after"]) == int(refused.headers["ratelimit-reset"])


def test_every_answer_to_a_key_says_how_many_are_left(api: Api) -> None:
    caller = api.client(api.key(requests_per_minute=7))
    for left, path in zip((6, 5, 4), ("/api/me", "/api/nothing", "/api/documents/no-id"), strict=True):
        headers = caller.get(path).headers
        assert (headers["ratelimit-policy"], headers["ratelimit-limit"]) == ("7;w=60", "7")
        assert headers["ratelimit-remaining"] == str(left), path
        assert 0 < int(headers["ratelimit-reset"]) <= 60


def test_a_body_that_says_it_is_too_large_is_refused_before_any_of_it_is_read(api: Api) -> None:
    for path, limit in (("/api/rag/search", 1024 * 1024), ("/api/rag/webhook", 4 * 1024 * 1024)):
        with connected(api, path, f"Content-Length: {limit + 1}") as line:
            status, headers, said = answer_of(line)
        assert_problem(status, headers, said, 413, "body_too_large")
        assert f"{limit // 1024 // 1024} MB" in said["detail"]


def test_a_body_that_does_not_say_how_large_it_is_is_read_no_farther_than_the_limit(api: Api) -> None:
    with connected(api, "/api/rag/search", "Transfer-Encoding: chunked") as line:
        part = b"%x\r\n%s\r\n" % (64 * 1024, b" " * 64 * 1024)
        for _ in range(17):
            line.sendall(part)
        status, headers, said = answer_of(line)
    assert_problem(status, headers, said, 413, "body_too_large")


def test_reference_documents_have_the_limits_of_files_and_of_texts(api: Api) -> None:
    caller = api.client(api.key())
    large = {"document": ("a.pdf", b"%PDF-" + b" " * 1_500_000, "application/pdf")}
    refused = caller.post("/api/reference-documents/ingest", data={"title": "x"}, files=large)
    assert_problem(refused.status_code, dict(refused.headers), refused.json(), 413, "body_too_large")
    with connected(api, f"/api/reference-documents/{uuid4()}/chunk", f"Content-Length: {8 * 1024 * 1024 + 1}") as line:
        assert_problem(*answer_of(line), 413, "body_too_large")


def test_a_service_that_is_not_there_is_not_ready(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    assert database_state().state == "up"

    def unreachable(_settings: Settings) -> Services:
        raise DatabaseUnavailable

    monkeypatch.setattr(services_module, "connect_services", unreachable)
    services_module.services.clear()
    assert database_state().state == "down"


def test_nothing_is_read_for_somebody_who_may_not_call(api: Api) -> None:
    with connected(api, "/api/rag/search", "Content-Length: 1000000", secret="wrong") as line:
        status, headers, said = answer_of(line)
    assert_problem(status, headers, said, 401, "key_rejected")


def test_nothing_is_read_for_a_key_without_the_scope(api: Api) -> None:
    for path in ("/api/rag/search", f"/api/collections/{api.collection.id}/documents"):
        with connected(api, path, "Content-Length: 1000000", secret=api.key("sync")) as line:
            assert_problem(*answer_of(line), 403, "scope_missing")


def test_json_is_read_strictly(api: Api) -> None:
    caller = api.client(api.key("search"))
    for options in ({"topK": "5"}, {"rerank": "true"}, {"rerank": 1}, {"dateFrom": 1700000000}):
        refused = caller.post("/api/rag/search", json={"query": "x", "options": options})
        assert (refused.status_code, refused.json()["code"]) == (422, "request_invalid"), options
    assert caller.post("/api/rag/search", content=b'{"query": NaN}', headers=JSON).status_code == 400


def test_head_answers_as_get_does_without_a_body(api: Api) -> None:
    caller = api.client(api.key())
    for path, status in (("/api/documents", 200), ("/api/documents/no-id", 404), ("/api/rag/search", 405)):
        answer = caller.head(path)
        assert (answer.status_code, answer.content) == (status, b""), path
    assert caller.put("/api/rag/sync").headers["allow"] == "GET, HEAD, POST"


def test_a_nul_in_the_query_string_is_left_out(api: Api) -> None:
    assert api.client(api.key()).get("/api/rag/sync?collection=%00no%00where").status_code == 404


def test_a_route_that_declares_no_scope_cannot_be_made() -> None:
    router = APIRouter(route_class=ApiRoute)
    with pytest.raises(TypeError, match="declares no scope"):
        router.get("/api/everything", summary="Everything")(lambda: None)


def test_no_other_sites_page_may_call_unless_a_setting_names_it(api: Api) -> None:
    origin = {"Origin": "https://intranet.example.com"}
    asked = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    preflight = api.client().options("/api/rag/search", headers=asked)
    answer = api.client(api.key(), **origin).post("/api/rag/search", json={"query": "x"})
    assert preflight.status_code == 401
    for headers in (preflight.headers, answer.headers):
        assert not [name for name in headers if name.startswith("access-control")]


def assert_problem(status: int, headers: dict[str, str], said: dict[str, Any], wanted: int, code: str) -> None:
    assert (status, said["status"], said["code"]) == (wanted, wanted, code)
    assert headers["content-type"] == "application/problem+json"
    assert said["detail"].endswith(".")
    assert said["detail"][0].isupper() or said["errors"]
    assert said["request_id"]
    assert said["request_id"] == headers["x-request-id"]


@contextmanager
def connected(api: Api, path: str, header: str, *, secret: str = "") -> Iterator[socket.socket]:
    """A line on which the head of a POST was sent, and nothing of its body."""
    where = urlsplit(api.url)
    head = f"POST {path} HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n{header}\r\n"
    head += f"Authorization: Bearer {secret or api.key()}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=patient(10)) as line:
        line.sendall(head.encode())
        yield line


def answer_of(line: socket.socket) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Status, headers and body of what came back."""
    received = b""
    while b"}" not in received.partition(b"\r\n\r\n")[2]:
        part = line.recv(65536)
        if not part:
            break
        received += part
    head, _, body = received.decode().partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value for name, _, value in (item.partition(": ") for item in lines)}
    return int(first.split()[1]), headers, json.loads(body)


def test_a_person_asks_and_searches_so_often_a_minute(api: Api) -> None:
    cookie = {"Cookie": f"hr_session={api.session(Role.EMPLOYEE)}"}
    person, body = api.client(**cookie), {"query": "annual leave"}
    most = api.parts.settings.questions_per_minute
    # What is refused for another reason uses up none of them.
    wrong: dict[str, dict[str, Any]] = {
        "/api/rag/chat": {"query": "leave", "collection": "none"},
        "/api/rag/search": {"query": "\u200b"},
        "/v1/chat/completions": {"model": "none", "messages": [{"role": "user", "content": "leave"}]},
    }
    refusals = [person.post(path, json=wrong[path]).status_code for path in wrong for _ in range(most // 2)]
    assert set(refusals) == {404, 422}
    assert {person.post("/api/rag/search", json=body).status_code for _ in range(most)} == {200}
    for path in ("/api/rag/search", "/api/rag/chat"):
        refused = person.post(path, json=body)
        assert refused.status_code == 429
        assert refused.headers["content-type"] == "application/problem+json"
        assert 0 < int(refused.headers["retry-after"]) <= 60
        problem = refused.json()
        assert problem["code"] == "too_many_requests"
        assert problem["detail"].startswith(f"You may ask {most} questions a minute. Wait ")
    # Others are not concerned, and a key has its own limit.
    assert api.client(api.key()).post("/api/rag/search", json=body).status_code == 200
