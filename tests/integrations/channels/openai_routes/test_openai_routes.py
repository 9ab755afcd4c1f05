"""OpenAI's routes, called by the real `openai` client."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from rag.types import Role
from tests.api.callers import Api
from tests.standins.providers import ProviderStandin

QUESTION = "How many days of annual leave do employees have?"
ANSWER = "Everyone has 25 days of paid leave a year [1]. Up to five days may be carried over [1]."


@pytest.fixture
def client(api: Api) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{api.url}/v1", api_key=api.key("chat", "search"), max_retries=0) as client:
        yield client


def asked(text: str = QUESTION) -> list[Any]:
    return [{"role": "system", "content": "Answer as a pirate."}, {"role": "user", "content": text}]


def test_an_answer_comes_with_its_sources_as_annotations(
    api: Api, client: openai.OpenAI, provider_standin: ProviderStandin
) -> None:
    document = api.ready_document()
    provider_standin.reply(ANSWER)
    answer = client.chat.completions.create(model=api.collection.name, messages=asked(), temperature=0.3)
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason, answer.model) == (ANSWER, "stop", api.collection.name)
    citations = [item.url_citation for item in choice.message.annotations or []]
    assert [ANSWER[item.start_index : item.end_index] for item in citations] == ["[1]", "[1]"]
    assert {item.url for item in citations} == {f"{api.url}/api/documents/{document.id}/file#page=1"}
    assert document.title in citations[0].title
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert (answer.model_extra or {})["outcome"] == "answered"
    # What another program sends as the system's words reaches no model.
    assert "pirate" not in str(provider_standin.requests)
    with httpx.Client(headers={"Authorization": f"Bearer {client.api_key}"}) as reader:
        assert reader.get(citations[0].url).status_code in (200, 403)


def test_a_stream_carries_text_sources_usage_and_its_end(
    api: Api, client: openai.OpenAI, provider_standin: ProviderStandin
) -> None:
    api.ready_document()
    provider_standin.token_interval_seconds = 0.02
    provider_standin.reply(ANSWER)
    stream = client.chat.completions.create(
        model=str(api.collection.id), messages=asked(), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == ANSWER
    (annotations,) = [delta.model_extra["annotations"] for delta in deltas if delta.model_extra]
    assert [item["type"] for item in annotations] == ["url_citation", "url_citation"]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0


def test_sources_come_as_text_for_clients_without_annotations(
    api: Api, client: openai.OpenAI, provider_standin: ProviderStandin
) -> None:
    document = api.ready_document()
    provider_standin.reply(ANSWER)
    answer = client.chat.completions.create(model=api.collection.name, messages=asked(), extra_body={"sources": "text"})
    text = answer.choices[0].message.content or ""
    assert text.startswith(ANSWER)
    assert text.endswith(f"({api.url}/api/documents/{document.id}/file#page=1)")


def test_what_was_said_before_counts_as_history(
    api: Api, client: openai.OpenAI, provider_standin: ProviderStandin
) -> None:
    api.ready_document()
    provider_standin.reply("They book it in June [1].")
    client.chat.completions.create(
        model=api.collection.name,
        messages=[
            {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
            {"role": "assistant", "content": ANSWER},
            {"role": "user", "content": "And how do they book it?"},
        ],
    )
    rewriting = [str(sent) for _, sent in provider_standin.requests if "And how do they book it?" in str(sent)]
    assert rewriting
    assert "25 days of paid leave" in rewriting[0]


def test_collections_are_models(api: Api, client: openai.OpenAI) -> None:
    models = client.models.list().data
    assert api.collection.name in [model.id for model in models]
    assert client.models.retrieve(api.collection.name).owned_by == api.collection.profile
    with pytest.raises(openai.NotFoundError, match="GET /v1/models lists them"):
        client.models.retrieve("gpt-4o")
    with pytest.raises(openai.NotFoundError, match="gpt-4o"):
        client.chat.completions.create(model="gpt-4o", messages=asked())


def test_embeddings_are_those_of_the_collection(api: Api, client: openai.OpenAI) -> None:
    texts = ["annual leave", "연차 휴가"]
    made = client.embeddings.create(model=api.collection.name, input=texts)
    embedder = api.parts.providers.embedder_for(api.collection.embedding_model)
    assert made.model == embedder.id
    assert [len(item.embedding) for item in made.data] == [embedder.dimensions] * 2
    assert math.isclose(math.hypot(*made.data[1].embedding), 1, rel_tol=1e-4)
    plain = client.embeddings.create(model=api.collection.name, input=texts[1], encoding_format="float")
    assert plain.data[0].embedding == pytest.approx(made.data[1].embedding)
    with pytest.raises(openai.APIStatusError, match="dimensions"):
        client.embeddings.create(model=api.collection.name, input="x", dimensions=7)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": []}, "messages"),
        ({"n": 2}, "n"),
        ({"response_format": {"type": "json_object"}}, "response_format.type"),
        ({"messages": [{"role": "assistant", "content": "Hello"}]}, None),
        ({"messages": [{"role": "user", "content": "x" * 5000}]}, None),
    ],
)
def test_what_cannot_be_kept_is_refused_in_openais_form(
    api: Api, client: openai.OpenAI, body: dict[str, Any], param: str | None
) -> None:
    with pytest.raises(openai.APIStatusError) as raised:
        client.chat.completions.create(model=api.collection.name, messages=asked(), extra_body=body)
    assert raised.value.status_code == 422
    error: Any = raised.value.body
    assert (error["param"], error["type"]) == (param, "invalid_request_error")
    assert error["message"]


def test_keys_scopes_and_limits_are_those_of_the_api(api: Api) -> None:
    def call(secret: str) -> None:
        with openai.OpenAI(base_url=f"{api.url}/v1", api_key=secret, max_retries=0) as client:
            client.chat.completions.create(model=api.collection.name, messages=asked())

    with pytest.raises(openai.AuthenticationError, match="key"):
        call("sk-not-one-of-ours")
    with pytest.raises(openai.PermissionDeniedError, match="scope chat"):
        call(api.key("search"))
    limited = api.key("chat", requests_per_minute=1)
    call(limited)
    with pytest.raises(openai.RateLimitError) as raised:
        call(limited)
    assert int(raised.value.response.headers["retry-after"]) > 0
    assert api.client().get("/v1/models").json()["error"]["code"] == "signed_out"
    assert api.client(api.key("chat")).get("/v1/nothing").json()["error"]["type"] == "invalid_request_error"


def test_an_answer_that_was_stopped_is_not_taken_for_a_whole_one(
    api: Api, client: openai.OpenAI, provider_standin: ProviderStandin
) -> None:
    api.ready_document()
    provider_standin.reply(ANSWER)
    provider_standin.hang_stream_after(4)
    reasons, text = [], ""
    for chunk in client.chat.completions.create(model=api.collection.name, messages=asked(), stream=True):
        reasons += [choice.finish_reason for choice in chunk.choices if choice.finish_reason]
        text += "".join(choice.delta.content or "" for choice in chunk.choices)
        if text and not reasons:
            (live,) = api.parts.answers._answers.values()
            live.cancel.set()
    assert reasons == ["length"]
    assert ANSWER.startswith(text)
    assert text != ANSWER


def test_a_failed_stream_raises_in_the_client(
    api: Api, client: openai.OpenAI, provider_standin: ProviderStandin
) -> None:
    api.ready_document()
    provider_standin.refuse()
    with pytest.raises(openai.APIError, match="declined"):
        for _ in client.chat.completions.create(model=api.collection.name, messages=asked(), stream=True):
            pass


def test_each_paid_call_is_a_row_and_each_question_is_logged(
    api: Api, client: openai.OpenAI, provider_standin: ProviderStandin
) -> None:
    api.ready_document()
    provider_standin.reply(ANSWER)
    client.chat.completions.create(model=api.collection.name, messages=asked())
    assert api.outcomes() == ["answered"]
    with api.parts.database.transaction("demo") as connection:
        rows = connection.execute("SELECT operation FROM cost_ledger WHERE chat_log_id IS NOT NULL").fetchall()
    assert ("chat",) in rows


def test_a_person_who_is_signed_in_may_call_too(api: Api) -> None:
    browser = api.client()
    browser.cookies.set("hr_session", api.session(Role.EMPLOYEE))
    assert browser.get("/v1/models").json()["object"] == "list"
