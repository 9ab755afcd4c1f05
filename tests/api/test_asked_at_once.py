"""Many people ask at the same moment: nobody waits for another's call to a provider.

The stand-in answers no call before all of them have come. Whoever holds something while waiting for a provider that the
others need to come so far (a turn, a thread of few, a connection) keeps them from coming, and the calls fail.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import httpx
import pytest

from rag.answering.jobs import LiveAnswer
from rag.profiles import HR
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.types import ChatMessage, Collection, MessageState, Question
from tests import hostile
from tests.answering.test_live import eventually
from tests.api.callers import Api
from tests.patience import patient
from tests.standins.providers import ProviderStandin

Value = TypeVar("Value")

#: More than the threads of a handler, those of the server, and the connections to the database.
ASKERS = 45
#: More than httpx opens to one host unless it is told.
CALLERS = 120
QUESTION = "How many days of annual leave do employees have?"
EARLIER = (
    ChatMessage(role="user", content="Is there paid leave?"),
    ChatMessage(role="assistant", content="Yes, 25 days. [1]"),
)


@pytest.fixture
def settings(settings: Settings, provider_standin: ProviderStandin) -> Settings:
    """With every kind of provider, all of them the stand-in."""
    return replace(
        settings,
        # One person and one key stand for many here.
        answers_at_once=0,
        key_answers_at_once=0,
        questions_per_minute=0,
        requests_per_minute=0,
        cohere_api_key="key",
        cohere_base_url=provider_standin.cohere_url,
        cohere_timeout_seconds=patient(60.0),
        ollama_url=provider_standin.ollama_url,
    )


@pytest.fixture
def asked(api: Api) -> Collection:
    """A collection whose questions are embedded, searched and reranked, with a document in it."""
    made = api.parts.documents.create_collection(
        api.admin, "Leave", "hr", embedding_model="openai/text-embedding-3-small@1536"
    )
    api.collection = made
    api.ready_document(hostile.leave_policy())
    return made


def at_once(count: int, work: Callable[[int], Value]) -> list[Value]:
    """What `work` makes of 0, 1, …, each in a thread of its own."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def all_meet(standin: ProviderStandin, *endpoints: str, count: int = ASKERS) -> list[threading.Barrier]:
    return [standin.meet(endpoint, count) for endpoint in endpoints]


@pytest.mark.parametrize("history", [(), EARLIER], ids=["first questions", "follow-ups, rewritten before"])
def test_answers_wait_for_their_providers_together(
    api: Api, asked: Collection, provider_standin: ProviderStandin, history: tuple[ChatMessage, ...]
) -> None:
    barriers = all_meet(provider_standin, "embeddings", "rerank", "chat")

    def ask(number: int) -> LiveAnswer:
        live = api.parts.answers.ask(
            Question(text=f"{QUESTION} Case {number}.", identity=api.admin, collection=asked, history=history)
        )
        for _ in live.tail(every_seconds=0.05):
            pass
        return live

    answers = at_once(ASKERS, ask)
    assert not any(barrier.broken for barrier in barriers)
    assert {(live.state, live.notice) for live in answers} == {(MessageState.COMPLETE, "")}
    assert provider_standin.calls["rerank"] == ASKERS


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_answers_over_http_wait_for_their_providers_together(
    api: Api, asked: Collection, provider_standin: ProviderStandin, is_stream: bool
) -> None:
    secret = api.key("chat")
    barriers = all_meet(provider_standin, "embeddings", "rerank", "chat")

    def ask(number: int) -> str:
        body: dict[str, object] = {
            "query": f"{QUESTION} Case {number}.",
            "collection": str(asked.id),
            "options": {"stream": is_stream},
        }
        return posted(api, secret, "/api/rag/chat", body)

    answers = at_once(ASKERS, ask)
    assert not any(barrier.broken for barrier in barriers)
    assert all("25" in answer and '"error"' not in answer for answer in answers)


@pytest.mark.parametrize("path", ["/api/rag/search", "/api/opinion/reference-block"])
def test_searches_over_http_wait_for_their_providers_together(
    api: Api, asked: Collection, provider_standin: ProviderStandin, path: str
) -> None:
    secret = api.key("search")
    is_search = path == "/api/rag/search"
    # The block is made of what is found, without a reranker unless the collection has one.
    barriers = all_meet(provider_standin, "embeddings", "rerank")

    def search(number: int) -> str:
        query = f"{QUESTION} Case {number}."
        body: dict[str, object] = {"query": query, "collection": str(asked.id)}
        if not is_search:
            body = {
                "opinionType": "review",
                "analysis": {"summary": query, "issues": []},
                "collectionId": str(asked.id),
            }
        return posted(api, secret, path, body)

    found = at_once(ASKERS, search)
    assert not any(barrier.broken for barrier in barriers)
    assert all("annual leave" in each for each in found)


def test_calls_to_a_provider_do_not_wait_for_a_connection(
    settings: Settings, provider_standin: ProviderStandin
) -> None:
    providers = Providers(settings)
    reranker = providers.reranker_for(HR)
    assert reranker is not None
    openai = providers.embedder_for("openai/text-embedding-3-small@1536")
    ollama = providers.embedder_for("ollama/bge-m3@1024")
    calls: list[tuple[str, Callable[[int], object]]] = [
        ("rerank", lambda _: reranker.rank("leave", ["annual leave", "parking"], limit=2)),
        ("embeddings", lambda _: openai.embed(["leave"], purpose="query")),
        ("embeddings", lambda _: ollama.embed(["leave"], purpose="query")),
    ]
    try:
        for endpoint, call in calls:
            barrier = provider_standin.meet(endpoint, CALLERS)
            assert len(at_once(CALLERS, call)) == CALLERS
            assert not barrier.broken
    finally:
        providers.close()


def posted(api: Api, secret: str, path: str, body: dict[str, object]) -> str:
    """The answer of a caller with a connection of its own."""
    answer = httpx.post(
        f"{api.url}{path}", json=body, headers={"Authorization": f"Bearer {secret}"}, timeout=patient(120)
    )
    assert answer.status_code == 200, answer.text
    return answer.text


def test_a_process_without_room_queues_questions_then_refuses_them_and_is_not_ready_before(
    api: Api, asked: Collection, provider_standin: ProviderStandin
) -> None:
    answerer = api.parts.answers._answerer
    secret, caller = api.key("chat"), api.client()
    assert caller.get("/api/ready").json() == {"ready": True}
    body: dict[str, object] = {"query": QUESTION, "collection": str(asked.id), "options": {"stream": True}}
    usual, barrier = answerer.settings, provider_standin.meet("chat", 2)
    answerer.settings = replace(usual, answers_under_way=1, answers_waiting=1)
    try:
        first = api.parts.answers.ask(Question(text=QUESTION, identity=api.admin, collection=asked))
        eventually(lambda: barrier.n_waiting == 1)
        busy = caller.get("/api/ready")
        assert (busy.status_code, busy.json(), busy.headers["Retry-After"]) == (503, {"ready": False}, "5")
        assert caller.get("/api/health").status_code == 200
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(posted, api, secret, "/api/rag/chat", body)
            eventually(lambda: len(api.parts.answers._slots._line) == 1)
            third = api.client(secret).post("/api/rag/chat", json={"query": QUESTION, "collection": str(asked.id)})
            assert (third.status_code, third.json()["code"], third.headers["Retry-After"]) == (503, "saturated", "5")
            provider_standin.meetings.clear()
            barrier.wait()
            events = [
                json.loads(line[6:]) for line in second.result(patient(30)).splitlines() if line.startswith("data: ")
            ]
    finally:
        answerer.settings = usual
    assert events[:2] == [{"type": "searching"}, {"type": "queued", "data": 0}]
    assert events[-1]["type"] == "done"
    assert first.wait(patient(10))
    eventually(lambda: caller.get("/api/ready").status_code == 200)
    assert api.outcomes() == ["answered", "answered"]
