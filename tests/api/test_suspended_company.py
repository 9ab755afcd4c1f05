"""A company that is suspended: keys, sessions, streams, events and syncs are refused with a sentence, and come back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rag.access.sessions import token_hash
from rag.errors import TenantSuspended
from rag.settings import Settings
from rag.types import Role
from tests.api.callers import Api
from tests.standins.providers import ProviderStandin, many_words

EVENT = {"type": "INSERT", "table": "notices", "record": {"id": 1, "title": "x", "content": "y"}}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, webhook_secret="the secret of events")


def test_keys_and_sessions_are_refused_until_it_resumes(api: Api) -> None:
    program, browser = api.client(api.key()), api.client()
    token = api.session(Role.ADMIN)
    browser.cookies.set("hr_session", token)
    callers = (program, browser)
    assert [caller.get("/api/documents").status_code for caller in callers] == [200, 200]
    api.parts.tenants.suspend("demo")
    api.parts.sessions.refresh([token_hash(token)])  # What another process suspends is noticed after a few seconds.
    for method, path in (("GET", "/api/documents"), ("POST", "/api/rag/search"), ("POST", "/api/rag/sync")):
        for caller in callers:
            refused = caller.request(method, path, json={"query": "x"})
            assert (refused.status_code, bool(refused.json()["detail"])) == (401, True)
    api.parts.tenants.resume("demo")
    assert program.get("/api/documents").status_code == 200


def test_an_answer_that_is_being_written_ends(api: Api, provider_standin: ProviderStandin) -> None:
    api.ready_document()
    provider_standin.token_interval_seconds = 0.1
    provider_standin.reply(many_words(200))
    events = []
    body = {"query": "How many days of annual leave?", "options": {"stream": True}}
    with api.client(api.key()).stream("POST", "/api/rag/chat", json=body) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line[6:]))
                if [e["type"] for e in events].count("chunk") == 1 and events[-1]["type"] == "chunk":
                    api.parts.tenants.suspend("demo")
    assert events[-1]["type"] == "error"
    assert events[-1]["data"]


def test_an_event_for_it_is_refused_with_a_sentence(api: Api) -> None:
    caller = api.client(**{"x-webhook-secret": "the secret of events"})
    api.parts.tenants.suspend("demo")
    refused = caller.post("/api/rag/webhook", json=EVENT)
    assert (refused.status_code, refused.json()["code"]) == (TenantSuspended.status, "tenant_suspended")
    assert "suspended" in refused.json()["detail"]
    api.parts.tenants.resume("demo")
    assert caller.post("/api/rag/webhook", json=EVENT).json()["code"] != "tenant_suspended"


def test_a_sync_by_whoever_runs_the_product_is_refused_too(api: Api) -> None:
    api.parts.tenants.suspend("demo")
    with pytest.raises(TenantSuspended):
        api.parts.syncs.sync_now(api.admin, api.collection)
