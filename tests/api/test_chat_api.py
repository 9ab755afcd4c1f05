"""Chat and search as the notice board's document (000) writes its callers."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import httpx
import pytest

from rag.answering.writing import TOO_LONG
from rag.api.questions import SearchOptions
from rag.errors import ProviderRefused
from rag.profiles import HR, NOTICES
from rag.retrieval.query_understanding import NO_TRANSLATION
from rag.server import API
from rag.types import Outcome, Role, UploadOptions
from tests.api.callers import Api
from tests.patience import patient
from tests.standins.providers import ProviderStandin, many_words

QUESTION = "How many days of annual leave do employees have?"
DUTCH = "Hoeveel dagen annual leave heeft een employee?"
#: What every answer says of its end, beside what the document names.
ENDING = ("outcome", "state", "notices")


def events(text: str) -> list[dict[str, Any]]:
    """What the document's own client makes of a stream: split at empty lines, keep what begins with `data: `."""
    return [json.loads(line[6:]) for line in text.split("\n\n") if line.startswith("data: ")]


# The document's own examples


def test_the_basic_query_of_the_document_works_with_a_session(api: Api, provider_standin: ProviderStandin) -> None:
    api.ready_document()
    provider_standin.reply("직원의 연차는 25일입니다 [1].")
    browser = api.client(Origin=api.url)
    browser.cookies.set("hr_session", api.session(Role.EMPLOYEE))
    answer = browser.post(
        "/api/rag/chat", headers={"Content-Type": "application/json"}, content=json.dumps({"query": QUESTION})
    ).json()
    assert set(answer) == {"query", "answer", "sources", "latencyMs", *ENDING}
    assert (answer["query"], answer["answer"]) == (QUESTION, "직원의 연차는 25일입니다 [1].")
    source = answer["sources"][0]
    assert {"postId", "title", "content", "category", "score", "metadata", "attachments"} <= set(source)
    assert {"postId", "categorySlug", "createdAt", "backdatedAt", "isPinned", "chunkIndex"} <= set(source["metadata"])


def test_the_streaming_client_of_the_document_works_though_it_names_no_content_type(
    api: Api, provider_standin: ProviderStandin
) -> None:
    api.ready_document()
    provider_standin.token_interval_seconds = 0.05
    provider_standin.reply("Employees have 25 days of annual leave [1]. They book it in June.")
    caller = api.client(api.key("chat"), **{"Content-Type": "text/plain;charset=UTF-8"})
    body = json.dumps({"query": QUESTION, "options": {"stream": True}})
    with caller.stream("POST", "/api/rag/chat", content=body) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["x-accel-buffering"] == "no"
        assert "no-cache" in answer.headers["cache-control"]
        heard = [event for text in answer.iter_text() for event in events(text)]
    kinds = [event["type"] for event in heard]
    assert kinds[:3] == ["searching", "context", "generating"]
    assert set(kinds[3:-1]) == {"chunk"}
    assert len(kinds) > 5
    (source,) = heard[-1].pop("sources")
    assert (source["number"], source["postId"]) == (1, heard[1]["data"][0]["postId"])
    unsourced = "No passage was found that says: “They book it in June.”"
    assert heard[-1] == {"type": "done", "outcome": "answered", "state": "complete", "notices": [unsourced]}
    assert heard[0] == {"type": "searching"}
    assert heard[1]["data"][0]["postId"]
    text = "".join(event["data"] for event in heard if event["type"] == "chunk")
    assert text == "Employees have 25 days of annual leave [1]. They book it in June."


def test_the_filtered_search_of_the_document_works(api: Api) -> None:
    api.ready_document()
    options = {"categoryFilter": ["notice-bmmd-data"], "dateFrom": "2024-01-01", "recencyBoost": True, "rerankTopN": 3}
    caller = api.client(api.key("search"))
    found = caller.post("/api/rag/search", content=json.dumps({"query": QUESTION, "options": options})).json()
    assert found["results"] == []
    assert (found["query"], found["total"]) == (QUESTION, 0)
    del options["categoryFilter"]
    found = caller.post("/api/rag/search", json={"query": QUESTION, "options": options}).json()
    assert set(found) == {"query", "results", "total", "latencyMs", "notices"}
    assert 0 < found["total"] == len(found["results"]) <= 3


# What goes wrong


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 422, "query"),
        ({"query": 5}, 422, "query"),
        ({"query": "   "}, 422, None),
        ({"query": "x" * 4001}, 422, "query"),
        ({"query": "x", "options": {"topK": 0}}, 422, "options.topK"),
        ({"query": "x", "options": {"topk": 5}}, 422, "options.topk"),
        ({"query": "x", "options": {"dateFrom": "yesterday"}}, 422, "options.dateFrom"),
        ({"query": "x", "collection": "nowhere"}, 404, None),
    ],
)
def test_a_request_that_cannot_be_used_is_refused_by_its_field(
    api: Api, body: dict[str, Any], status: int, field: str | None
) -> None:
    answer = api.client(api.key("chat")).post("/api/rag/chat", json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    said = answer.json()
    assert said["request_id"] == answer.headers["x-request-id"]
    assert said["detail"].endswith(".")
    if field:
        assert any(problem["field"].startswith(field) for problem in said["errors"])


def test_a_caller_who_leaves_stops_the_answer(api: Api, provider_standin: ProviderStandin) -> None:
    api.ready_document()
    provider_standin.token_interval_seconds = 0.1
    provider_standin.reply(many_words(200))
    caller = api.client(api.key("chat"))
    body = {"query": QUESTION, "options": {"stream": True}}
    with caller.stream("POST", "/api/rag/chat", json=body) as answer:
        for text in answer.iter_text():
            if '"chunk"' in text:
                break
    deadline = time.monotonic() + patient(5)
    while api.outcomes() != ["stopped"] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert api.outcomes() == ["stopped"]


def test_a_model_that_fails_mid_stream_is_an_error_event(api: Api, provider_standin: ProviderStandin) -> None:
    api.ready_document()
    provider_standin.reply("Employees have 25 days of annual leave [1] and more")
    provider_standin.cut_stream_after(3)
    caller = api.client(api.key("chat"))
    answer = caller.post("/api/rag/chat", json={"query": QUESTION, "options": {"stream": True}})
    last = events(answer.text)[-1]
    assert last["type"] == "error"
    assert last["data"].endswith(".")
    assert last["requestId"] == answer.headers["x-request-id"]


def test_a_conversation_goes_on_under_its_id_for_the_same_key_only(api: Api, provider_standin: ProviderStandin) -> None:
    api.ready_document()
    caller = api.client(api.key("chat"))
    first = caller.post("/api/rag/chat", json={"query": QUESTION})
    conversation = first.headers["x-conversation-id"]
    second = {"query": "And with five years of service?", "conversationId": conversation}
    assert caller.post("/api/rag/chat", json=second).headers["x-conversation-id"] == conversation
    assert api.client(api.key("chat")).post("/api/rag/chat", json=second).status_code == 404


def test_options_of_a_call_take_the_place_of_the_collections_for_this_call() -> None:
    chosen = SearchOptions(search_type="vector", threshold=0.3, rerank=False, top_k=9).to_options().applied_to(HR)
    assert (chosen.search.search_type, chosen.search.top_k, chosen.ranking.reranking) == ("vector", 9, False)
    assert (chosen.search.similarity_threshold, chosen.search.threshold_mode) == (0.3, "absolute")
    assert SearchOptions().to_options().applied_to(HR).changed(follow_ups=HR.answer.follow_ups) == HR


def test_the_defaults_of_options_are_described_as_the_profiles_have_them() -> None:
    described = API.openapi()["components"]["schemas"]["SearchOptions"]["properties"]
    assert f"{HR.search.top_k} (hr" in described["topK"]["description"]
    assert f"{NOTICES.search.top_k} (notices)" in described["topK"]["description"]


def test_how_a_search_is_made_and_its_language_can_be_said(api: Api) -> None:
    api.ready_document()
    caller = api.client(api.key("search"))
    body = {"query": QUESTION, "language": "en", "options": {"searchType": "hybrid", "threshold": 0.0, "topK": 1}}
    assert caller.post("/api/rag/search", json=body).json()["total"] == 1
    for wrong in ({"language": "English"}, {"options": {"searchType": "words"}}, {"options": {"threshold": 2}}):
        assert caller.post("/api/rag/search", json={"query": QUESTION, **wrong}).status_code == 422


# How it ended


def test_an_answer_cut_at_its_length_says_so_to_every_caller(api: Api, provider_standin: ProviderStandin) -> None:
    api.ready_document()
    provider_standin.reply("Employees have 25 days of annual leave [1] and", finish_reason="length")
    caller = api.client(api.key("chat"))
    answer = caller.post("/api/rag/chat", json={"query": QUESTION}).json()
    assert answer["answer"].endswith("and")
    assert {name: answer[name] for name in ENDING} == {"outcome": "answered", "state": "cut", "notices": [TOO_LONG]}
    assert answer["notice"] == TOO_LONG
    streamed = caller.post("/api/rag/chat", json={"query": QUESTION, "options": {"stream": True}})
    last = events(streamed.text)[-1]
    assert (last["type"], last["data"], last["code"]) == ("error", TOO_LONG, "cut")
    assert {name: last[name] for name in ENDING} == {name: answer[name] for name in ENDING}
    german = caller.post("/api/rag/chat", json={"query": QUESTION}, headers={"accept-language": "de"}).json()
    assert german["notices"] == ["Die Antwort hat ihre Längengrenze erreicht und endet hier."]
    assert german["notice"] == german["notices"][0]


def test_what_was_done_without_is_said_to_every_caller(api: Api, provider_standin: ProviderStandin) -> None:
    api.ready_document()
    caller = api.client(api.key("chat", "search"))
    # In the question's own words next to nothing is found.
    whole = {"outcome": "no_context", "state": "complete", "notices": [NO_TRANSLATION]}
    provider_standin.fail_next(400, endpoint="chat")
    answer = caller.post("/api/rag/chat", json={"query": DUTCH}).json()
    assert {name: answer[name] for name in ENDING} == whole
    assert "notice" not in answer
    provider_standin.fail_next(400, endpoint="chat")
    streamed = caller.post("/api/rag/chat", json={"query": DUTCH, "options": {"stream": True}})
    last = events(streamed.text)[-1]
    assert {name: last[name] for name in ("type", *ENDING)} == {"type": "done", **whole}
    provider_standin.fail_next(400, endpoint="chat")
    assert caller.post("/api/rag/search", json={"query": DUTCH}).json()["notices"] == [NO_TRANSLATION]


RULES = """# Rules
## Leave
Employees have 25 days of annual leave.
## Sickness
Sick days are paid in full for six weeks.
## Travel
Trips are booked by the travel office.
"""


@pytest.mark.parametrize(
    ("query", "reply"),
    [
        pytest.param("How are sick days paid and how much leave is there?", "Six weeks [2], 25 days [1].", id="order"),
        pytest.param("How are sick days paid and how much leave is there?", "25 days [1]. Six weeks [2].", id="found"),
        pytest.param("How are sick days paid and how much leave is there?", "Six weeks are paid.", id="no number"),
        pytest.param("Summarise “Rules”", "", id="whole document"),
        pytest.param("Who painted the Mona Lisa?", "The documents do not say this.", id="not here"),
    ],
)
@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_a_number_of_the_answer_is_the_place_of_its_source(
    api: Api, provider_standin: ProviderStandin, query: str, reply: str, is_stream: bool
) -> None:
    made = api.parts.documents.ensure_collection("demo", "Rules", "hr", "builtin/lexical@1536", "en")
    api.parts.pipeline.process_document(
        file=RULES.encode(),
        file_name="Rules.md",
        tenant_id="demo",
        collection=made,
        options=UploadOptions(generate_metadata=False, chunking_method="markdown"),
    )
    if reply:
        provider_standin.reply(reply)
    caller = api.client(api.key("chat"))
    body = {"query": query, "collection": "Rules", "options": {"stream": is_stream}}
    answered = caller.post("/api/rag/chat", json=body)
    if is_stream:
        heard = events(answered.text)
        said = {"answer": "".join(e["data"] for e in heard if e["type"] == "chunk"), "sources": [], **heard[-1]}
    else:
        said = answered.json()
    with api.parts.database.transaction("demo") as connection:
        (stored,) = connection.execute(
            "SELECT citations FROM messages WHERE role = 'assistant' ORDER BY created_at DESC LIMIT 1"
        ).fetchone() or ([],)
    kept = {citation["number"]: citation["chunk_id"] for citation in stored}
    for number in map(int, re.findall(r"\[(\d+)\]", said["answer"])):
        source = said["sources"][number - 1]
        assert (source["number"], source["metadata"]["chunkId"]) == (number, kept[number])
    if "[" not in said["answer"] and kept:
        assert [source["metadata"]["chunkId"] for source in said["sources"]][: len(kept)] == list(kept.values())


def test_a_refused_answer_is_never_a_quiet_end(api: Api, provider_standin: ProviderStandin) -> None:
    api.ready_document()
    provider_standin.refuse()
    caller = api.client(api.key("chat"))
    streamed = caller.post("/api/rag/chat", json={"query": QUESTION, "options": {"stream": True}})
    last = events(streamed.text)[-1]
    assert (last["type"], last["code"], last["data"]) == ("error", "refused", str(ProviderRefused()))
    refused = caller.post("/api/rag/chat", json={"query": QUESTION})
    assert (refused.status_code, refused.json()["detail"]) == (502, str(ProviderRefused()))


def test_the_api_file_says_how_an_answer_may_end(api: Api) -> None:
    schemas = api.client(api.key()).get("/api/openapi.json").json()["components"]["schemas"]
    assert set(ENDING) <= set(schemas["ChatAnswer"]["required"])
    for answer in ("SearchAnswer", "Block"):
        assert "notices" in schemas[answer]["required"]
    assert set(schemas["Outcome"]["enum"]) == {*Outcome} >= {"perhaps", "small_talk", "asked_back"}


def test_without_a_collection_the_same_one_is_asked_whatever_the_key_asked_before(api: Api) -> None:
    parts = api.parts
    for name, profile, text in (
        ("Board", "notices", b"Boats pay twelve crowns of mooring fee each night."),
        ("Rules", "hr", b"Boats pay thirty crowns of mooring fee each night."),
    ):
        made = parts.documents.ensure_collection("demo", name, profile, "builtin/lexical@1536", "en")
        parts.pipeline.process_document(
            file=text,
            file_name=f"{name}.txt",
            tenant_id="demo",
            collection=made,
            options=UploadOptions(generate_metadata=False),
        )
    caller, other = api.client(api.key("search")), api.client(api.key("search"))

    def found(client: httpx.Client, **more: str) -> str:
        answer = client.post("/api/rag/search", json={"query": "mooring fee", **more}).json()
        return str(answer["results"][0]["title"])

    # All of them at once, also where the two differ in their profile; each result names its collection.
    asker, both = api.client(api.key("search", "chat")), {"query": "mooring fee", "allCollections": True}
    everywhere = asker.post("/api/rag/search", json=both).json()["results"]
    assert {result["title"] for result in everywhere} == {"Board", "Rules"}
    ids = {str(c.id): c.name for c in parts.documents.collections("demo")}
    assert all(ids[result["collection"]] == result["title"] for result in everywhere)
    answered = asker.post("/api/rag/chat", json=both).json()
    assert {source["title"] for source in answered["sources"]} == {"Board", "Rules"}

    assert found(caller) == "Rules", "neither the empty oldest nor the notice board"
    assert found(caller, collection="Board") == "Board"
    assert (found(caller), found(other)) == ("Rules", "Rules")


@pytest.mark.parametrize(
    ("accepted", "question", "sentence"),
    [
        ("nl-NL,nl;q=0.9,en;q=0.5", "bonus", "De documenten beantwoorden"),
        ("en;q=0.5, de", "bonus", "Die Dokumente beantworten"),
        ("nl", "What is the dress code of the moon base?", "The documents do not answer"),
        ("", "bonus", "The documents do not answer"),
        ("nonsense;q=x", "bonus", "The documents do not answer"),
    ],
)
def test_a_question_that_does_not_tell_its_language_is_answered_in_the_callers(
    api: Api, accepted: str, question: str, sentence: str
) -> None:
    answer = api.client(api.key("chat"), **{"Accept-Language": accepted}).post(
        "/api/rag/chat", json={"query": question}
    )
    assert answer.json()["answer"].startswith(sentence)
