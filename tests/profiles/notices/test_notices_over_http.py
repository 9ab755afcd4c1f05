"""Source 000's own usage examples over HTTP on a board of real synced posts: chat, streaming chat, filtered search."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

import pytest
from starlette.testclient import TestClient

from rag.__main__ import name_request
from rag.api.search_results import RECORD
from tests.profiles.notices.boards import QUESTION
from tests.standins.providers import ProviderStandin

ANSWER = "12월 정착지원금 신청에 대해 안내드립니다 [1]."


pytestmark = pytest.mark.usefixtures("filled")


def found(caller: TestClient, **options: Any) -> list[str]:
    """The titles a search finds, in their order."""
    answer = caller.post("/api/rag/search", json={"query": QUESTION, "options": options})
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert (said["query"], said["total"]) == (QUESTION, len(said["results"]))
    return [result["title"] for result in said["results"]]


def test_the_basic_chat_of_the_source(caller: TestClient, provider_standin: ProviderStandin) -> None:
    provider_standin.reply(ANSWER)
    said = caller.post("/api/rag/chat", json={"query": QUESTION}).json()
    ended = {name: said.pop(name) for name in ("outcome", "state", "notices")}
    assert ended == {"outcome": "answered", "state": "complete", "notices": []}
    assert set(said) == {"query", "answer", "sources", "latencyMs"}
    assert (said["query"], said["answer"]) == (QUESTION, ANSWER)
    titles = [source["title"] for source in said["sources"]]
    assert titles[:3] == ["고정 정착지원금", "필독 정착지원금", "이번 정착지원금"]
    assert len(titles) == 5
    for source in said["sources"]:
        assert RECORD.keys() <= source["metadata"].keys()
        assert 0 <= source["rerankScore"] <= 1
    new = said["sources"][2]
    assert (new["postId"], new["category"], new["metadata"]["categorySlug"]) == ("new", "MD 공지", "notice-md")
    assert [attached["fileName"] for attached in new["attachments"]] == ["image.txt", "양식.hwp"]
    assert new["metadata"]["attachmentCount"] == 2


def test_the_streaming_chat_of_the_source(caller: TestClient, provider_standin: ProviderStandin) -> None:
    provider_standin.reply(ANSWER)
    answer = caller.post("/api/rag/chat", content=json.dumps({"query": QUESTION, "options": {"stream": True}}))
    events = [json.loads(line[6:]) for line in answer.text.split("\n\n") if line.startswith("data: ")]
    kinds = [event["type"] for event in events]
    assert kinds == ["searching", "context", "generating", *["chunk"] * (len(kinds) - 4), "done"]
    assert events[1]["data"][0]["title"] == "고정 정착지원금"
    assert "".join(event["data"] for event in events if event["type"] == "chunk") == ANSWER


def test_the_filtered_search_of_the_source(caller: TestClient) -> None:
    options = {"dateFrom": "2024-01-01", "recencyBoost": True, "rerankTopN": 3}
    assert found(caller, **options, categoryFilter=["notice-bmmd-data"]) == []
    assert found(caller, **options, categoryFilter=["notice-bmmd"]) == ["필독 정착지원금"]


@pytest.mark.parametrize("route", ["search", "chat"])
def test_each_option_of_the_sources_table_has_its_say(
    route: str, caller: TestClient, provider_standin: ProviderStandin
) -> None:
    def titles(**options: Any) -> list[str]:
        answer = caller.post(f"/api/rag/{route}", json={"query": QUESTION, "options": options})
        assert answer.status_code == 200, answer.text
        return [result["title"] for result in answer.json()["results" if route == "search" else "sources"]]

    everything = titles(topK=10, rerankTopN=10)
    assert len(everything) >= 6
    # The reranker's best five, in the order that age and marks give them.
    best = titles()
    assert best == [title for title in everything if title in best]
    assert len(best) == 5
    assert len(titles(topK=2)) == 2
    assert len(titles(rerankTopN=3)) == 3
    reranked = provider_standin.calls["rerank"]
    titles(rerank=False)
    assert provider_standin.calls["rerank"] == reranked
    assert set(titles(categoryFilter=["notice-bmmd", "sales-db-notice"])) == {"필독 정착지원금", "고정 정착지원금"}
    assert titles(dateFrom="2024-12-15", dateTo="2024-12-15") == ["옮긴 글"]
    assert titles(dateFrom="2024-12-15T00:00:00Z", dateTo="2024-12-15T23:59:59Z") == ["옮긴 글"]
    assert titles(includeImportantOnly=True) == ["필독 정착지원금"]
    assert titles(includePinnedFirst=False)[0] != "고정 정착지원금"
    unmarked = titles(includePinnedFirst=False, recencyBoost=True, topK=10, rerankTopN=10)
    unaged = titles(includePinnedFirst=False, recencyBoost=False, topK=10, rerankTopN=10)
    assert unmarked.index("이번 정착지원금") < unmarked.index("작년 정착지원금")
    assert unmarked != unaged


def test_what_is_logged_while_an_answer_is_written_names_its_request(
    caller: TestClient, provider_standin: ProviderStandin
) -> None:
    provider_standin.fail_next(503, times=50, endpoint="rerank")
    lines: list[tuple[str, str]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append((threading.current_thread().name, getattr(record, "request", "")))

    handler = Kept()
    handler.addFilter(name_request)
    logging.getLogger("rag").addHandler(handler)
    try:
        caller.post("/api/rag/chat", json={"query": QUESTION}, headers={"X-Request-Id": "from-the-intranet"})
    finally:
        logging.getLogger("rag").removeHandler(handler)
    assert {request for thread, request in lines if thread.startswith("answer-")} == {" [request from-the-intranet]"}
