"""The real SDK against the stand-in: limits, order, usage, streams that end in every way, and every error it knows."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from threading import Event, Timer
from typing import Any

import httpx2
import numpy as np
import openai
import pytest

from rag.errors import (
    InvalidInput,
    ProviderAnswerCut,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderRefused,
    ProviderStreamCut,
    ProviderStreamEmpty,
    ProviderUnavailable,
)
from rag.providers import ChatModel, Completed, Discarded, Embedder, TextDelta
from rag.providers.openai_compatible import OpenAIChatModel, is_reasoning_model, openai_errors
from rag.providers.openai_connection import OpenAIEmbedder
from rag.types import ChatMessage, Usage
from tests.patience import patient
from tests.standins.providers import ProviderStandin

MESSAGES = [ChatMessage(role="user", content="How many days of leave?")]
SOON = {"retry-after-ms": "1"}


@pytest.fixture
def client(provider_standin: ProviderStandin) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key="key", base_url=provider_standin.openai_url, timeout=patient(5), max_retries=0) as made:
        yield made


@pytest.fixture
def embedder(client: openai.OpenAI) -> OpenAIEmbedder:
    return OpenAIEmbedder(client, provider="openai", model="text-embedding-3-small", dimensions=1536)


@pytest.fixture
def model(client: openai.OpenAI) -> OpenAIChatModel:
    return OpenAIChatModel(client, provider="openai", model="gpt-4o")


def read(model: ChatModel, cancel: Event | None = None) -> tuple[str, Completed | None, ProviderError | None]:
    """Text, end and error of one stream."""
    text = ""
    completed: Completed | None = None
    try:
        for part in model.stream(MESSAGES, temperature=0.2, maximum_output_tokens=50, cancel=cancel or Event()):
            if isinstance(part, TextDelta):
                text += part.text
            elif isinstance(part, Completed):
                completed = part
    except ProviderError as exc:
        return text, completed, exc
    return text, completed, None


# Embedding


def test_no_text_makes_no_request(embedder: OpenAIEmbedder, provider_standin: ProviderStandin) -> None:
    made = embedder.embed([], purpose="document")
    assert made.vectors.shape == (0, 1536)
    assert made.usages == ()
    assert provider_standin.calls["embeddings"] == 0


@pytest.mark.parametrize("texts", [[""], ["leave", " \n"]], ids=["empty", "one of spaces"])
def test_a_text_of_only_spaces_is_refused_before_it_is_sent(
    embedder: OpenAIEmbedder, provider_standin: ProviderStandin, texts: list[str]
) -> None:
    with pytest.raises(InvalidInput):
        embedder.embed(texts, purpose="document")
    assert provider_standin.calls["embeddings"] == 0


def test_vectors_come_in_the_order_of_the_texts_whatever_the_order_of_the_answer(
    embedder: OpenAIEmbedder, provider_standin: ProviderStandin
) -> None:
    texts = ["vacation days", "sick leave", "parental leave"]
    right = embedder.embed(texts, purpose="document").vectors
    provider_standin.alter_embeddings = lambda data: data[::-1]
    assert np.array_equal(embedder.embed(texts, purpose="document").vectors, right)


def test_rows_are_float32_of_length_one(embedder: OpenAIEmbedder, provider_standin: ProviderStandin) -> None:
    provider_standin.alter_embeddings = lambda data: [{**data[0], "embedding": [2.0] * 1536}]
    vectors = embedder.embed(["leave"], purpose="query").vectors
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors[0]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    "alter",
    [
        lambda data: data[:-1],
        lambda data: [*data, {**data[0], "index": 2}],
        lambda data: [data[0], {**data[1], "index": 0}],
        lambda data: [{**item, "embedding": [0.5] * 100} for item in data],
        lambda data: [{**item, "embedding": [float("nan")] * 1536} for item in data],
        lambda data: [{**item, "embedding": [0.0] * 1536} for item in data],
        lambda data: [data[0], {**data[1], "embedding": [0.5]}],
        lambda data: [data[0], {**data[1], "embedding": "not base64"}],
        lambda data: [data[0], {**data[1], "embedding": None}],
        lambda data: [],
        lambda data: [1, 2],
    ],
    ids=["too few", "too many", "twice", "dimensions", "nan", "zeros", "ragged", "text", "null", "empty", "numbers"],
)
def test_embeddings_that_cannot_be_right_are_refused(
    embedder: OpenAIEmbedder, provider_standin: ProviderStandin, alter: Any
) -> None:
    provider_standin.alter_embeddings = alter
    with pytest.raises(ProviderAnswerInvalid):
        embedder.embed(["one", "two"], purpose="query")


def test_requests_keep_within_the_number_of_texts(client: openai.OpenAI, provider_standin: ProviderStandin) -> None:
    embedder = OpenAIEmbedder(client, provider="openai", model="text-embedding-3-small", dimensions=8)
    texts = [f"word{number}" for number in range(2100)]
    made = embedder.embed(texts, purpose="document")
    assert [len(body["input"]) for _, body in provider_standin.requests] == [2048, 52]
    assert len(made.usages) == 2
    assert np.allclose(made.vectors[2099], embedder.embed(["word2099"], purpose="document").vectors[0])


def test_requests_keep_within_the_tokens_of_one_request(
    client: openai.OpenAI, provider_standin: ProviderStandin
) -> None:
    embedder = OpenAIEmbedder(client, provider="openai", model="text-embedding-3-small", dimensions=8)
    made = embedder.embed(["leave " * 4000] * 70, purpose="document")
    assert len(provider_standin.requests) > 1
    assert sum(usage.input_tokens for usage in made.usages) == 4000 * 70


def test_a_text_longer_than_the_model_takes_is_embedded_by_its_beginning(
    client: openai.OpenAI, provider_standin: ProviderStandin
) -> None:
    embedder = OpenAIEmbedder(client, provider="openai", model="text-embedding-3-small", dimensions=8)
    assert embedder.embed(["연차 휴가 " * 20_000], purpose="document").vectors.shape == (1, 8)


def test_gemini_is_asked_for_floats_in_hundreds(client: openai.OpenAI, provider_standin: ProviderStandin) -> None:
    embedder = OpenAIEmbedder(client, provider="gemini", model="gemini-embedding-001", dimensions=768)
    embedder.embed([f"word{number}" for number in range(101)], purpose="document")
    assert [(len(b["input"]), b["encoding_format"], b["dimensions"]) for _, b in provider_standin.requests] == [
        (100, "float", 768),
        (1, "float", 768),
    ]


def test_usage_is_what_the_provider_counted(embedder: OpenAIEmbedder, provider_standin: ProviderStandin) -> None:
    made = embedder.embed(["two words"], purpose="query")
    assert made.usages == (Usage(provider="openai", model="text-embedding-3-small", input_tokens=2),)
    assert provider_standin.tokens["embeddings"] == 2


def test_documents_are_retried_twice(embedder: OpenAIEmbedder, provider_standin: ProviderStandin) -> None:
    provider_standin.fail_next(500, times=2, headers=SOON)
    assert embedder.embed(["leave"], purpose="document").vectors.shape == (1, 1536)
    # Not by the SDK, whose own retries would keep to themselves what a lost attempt may have cost.
    assert [headers["x-stainless-retry-count"] for headers in provider_standin.headers] == ["0", "0", "0"]


def test_a_query_is_retried_once(embedder: OpenAIEmbedder, provider_standin: ProviderStandin) -> None:
    provider_standin.fail_next(503, times=2)
    with pytest.raises(ProviderUnavailable):
        embedder.embed(["leave"], purpose="query")
    assert provider_standin.calls["embeddings"] == 2


def test_the_embedder_and_the_model_keep_their_protocols(embedder: OpenAIEmbedder, model: OpenAIChatModel) -> None:
    assert isinstance(embedder, Embedder)
    assert isinstance(model, ChatModel)
    assert embedder.id == "openai/text-embedding-3-small@1536"


# Streaming


def test_a_stream_brings_its_text_and_its_usage(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    provider_standin.reply("Employees have 25 days [1].")
    provider_standin.cached_tokens = 2
    text, completed, error = read(model)
    assert text == "Employees have 25 days [1]."
    assert error is None
    wanted = Usage(provider="openai", model="gpt-4o", input_tokens=6, cached_input_tokens=2, output_tokens=5)
    assert completed == Completed(usage=wanted, finish_reason="stop")
    _, body = provider_standin.requests[0]
    assert body["stream_options"] == {"include_usage": True}
    assert (body["max_tokens"], body["temperature"]) == (50, 0.2)


def test_a_stream_without_usage_says_so(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    provider_standin.sends_usage = False
    assert read(model)[1] == Completed(usage=None, finish_reason="stop")


def test_an_answer_at_its_limit_is_complete_with_that_reason(
    model: OpenAIChatModel, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply("word " * 80)
    completed = read(model)[1]
    assert completed is not None
    assert completed.finish_reason == "length"


@pytest.mark.parametrize("name", ["gpt-5.6-terra", "gpt-6-luna", "o3-mini", "o1", "openai/gpt-5"])
def test_reasoning_models_get_their_own_parameters(
    client: openai.OpenAI, provider_standin: ProviderStandin, name: str
) -> None:
    assert is_reasoning_model(name)
    _, completed, error = read(OpenAIChatModel(client, provider="openai", model=name))
    assert error is None
    assert completed is not None
    _, body = provider_standin.requests[0]
    assert "max_tokens" not in body
    assert "temperature" not in body
    assert body["max_completion_tokens"] > 50


@pytest.mark.parametrize("name", ["gpt-4o", "gpt-4.1-mini", "gemini-flash-latest", "llama3", "olmo-2", "gpt-oss:20b"])
def test_other_models_are_not_taken_for_reasoning_models(name: str) -> None:
    assert not is_reasoning_model(name)


@pytest.mark.parametrize(
    "fault",
    [
        lambda standin: standin.cut_stream_after(2),
        lambda standin: standin.end_stream_after(2),
        lambda standin: standin.garbage_next(endpoint="chat", after=2),
        lambda standin: standin.error_event_after(2),
    ],
    ids=["reset", "ends without a reason", "garbage", "error event"],
)
def test_an_answer_that_breaks_off_keeps_its_text_and_says_so(
    model: OpenAIChatModel, provider_standin: ProviderStandin, fault: Any
) -> None:
    provider_standin.reply("one two three four")
    fault(provider_standin)
    text, completed, error = read(model)
    assert text == "one two"
    assert completed is None
    assert type(error) is ProviderStreamCut
    assert provider_standin.calls["chat"] == 1


def test_a_stream_that_ends_before_any_text_is_cut(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    provider_standin.end_stream_after(0)
    assert type(read(model)[2]) is ProviderStreamEmpty  # nothing came that could be kept


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (lambda standin: standin.cut_stream_after(0), ProviderUnavailable),
        (lambda standin: standin.garbage_next(endpoint="chat", after=0), ProviderAnswerInvalid),
        (lambda standin: standin.error_event_after(0), ProviderUnavailable),
        (lambda standin: standin.error_event_after(0, code="insufficient_quota"), ProviderQuotaExhausted),
        (lambda standin: standin.error_event_after(0, code="content_filter"), ProviderRefused),
    ],
    ids=["reset", "garbage", "error event", "quota event", "filter event"],
)
def test_a_stream_that_breaks_before_any_text_names_its_reason(
    model: OpenAIChatModel, provider_standin: ProviderStandin, fault: Any, expected: type[ProviderError]
) -> None:
    fault(provider_standin)
    text, _, error = read(model)
    assert text == ""
    assert type(error) is expected


def test_a_filtered_answer_is_refused_with_its_usage(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    provider_standin.refuse("I")
    text, _, error = read(model)
    assert text == "I"
    assert type(error) is ProviderRefused
    assert error.details["usage"].output_tokens == 1


def test_an_empty_answer_is_invalid(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    provider_standin.reply("")
    assert type(read(model)[2]) is ProviderAnswerInvalid


def test_a_stream_opens_at_the_second_attempt(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    provider_standin.close_next()
    text, _, error = read(model)
    assert text
    assert error is None
    assert provider_standin.calls["chat"] == 2


def test_a_rate_limit_is_said_at_once_and_not_waited_for(
    model: OpenAIChatModel, provider_standin: ProviderStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider_standin.fail_next(429, headers={"retry-after": "60"}, endpoint="chat")
    sleep, asking = time.sleep, threading.get_ident()

    def watched(seconds: float) -> None:
        assert threading.get_ident() != asking, f"waits {seconds} s"
        sleep(seconds)  # of the stand-in

    monkeypatch.setattr(time, "sleep", watched)
    assert type(read(model)[2]) is ProviderQuotaExhausted
    assert provider_standin.calls["chat"] == 1


# Stopping


def test_nothing_is_asked_once_it_is_cancelled(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    cancel = Event()
    cancel.set()
    assert read(model, cancel) == ("", None, None)
    assert provider_standin.calls["chat"] == 0


def test_a_stop_ends_a_stream_that_hangs(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    provider_standin.reply("one two three")
    provider_standin.hang_stream_after(1)
    cancel = Event()
    timer = Timer(0.1, cancel.set)
    timer.start()
    text, completed, error = read(model, cancel)
    assert not provider_standin.released.is_set()  # it still hangs
    assert (text, completed, error) == ("one", None, None)
    timer.join()


def test_a_stop_ends_the_wait_for_a_provider_that_does_not_answer(
    model: OpenAIChatModel, provider_standin: ProviderStandin
) -> None:
    provider_standin.hang = True
    cancel = Event()
    timer = Timer(0.1, cancel.set)
    timer.start()
    assert read(model, cancel) == ("", None, None)
    assert not provider_standin.released.is_set()  # it still hangs
    timer.join()


def test_what_arrives_within_one_pace_comes_in_one_piece(
    model: OpenAIChatModel, provider_standin: ProviderStandin
) -> None:
    text = " ".join(f"word{n}" for n in range(200))
    provider_standin.reply(text)
    provider_standin.token_interval_seconds = 0.002
    pieces = [
        part.text
        for part in model.stream(
            MESSAGES, temperature=0, maximum_output_tokens=300, cancel=Event(), every_seconds=lambda: 0.1
        )
        if isinstance(part, TextDelta)
    ]
    assert "".join(pieces) == text
    assert len(pieces) < 100  # the first reads are not paced; each of the others brings what came in between


def test_a_stop_ends_the_wait_for_the_next_read(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    provider_standin.reply("word " * 1000)
    provider_standin.token_interval_seconds = 0.002
    cancel = Event()
    stream = model.stream(
        MESSAGES, temperature=0, maximum_output_tokens=1000, cancel=cancel, every_seconds=lambda: 3600.0
    )
    for count, _ in enumerate(stream, start=1):
        if count == 1:
            Timer(0.2, cancel.set).start()
    assert cancel.is_set()


@pytest.mark.parametrize("ending", ["", "cut"])
def test_one_connection_serves_answer_after_answer(
    model: OpenAIChatModel, provider_standin: ProviderStandin, ending: str
) -> None:
    provider_standin.reply("One two three.")
    if ending == "cut":
        provider_standin.cut_stream_after(1)
        read(model)  # a connection that ended early is not used again, and leaves nothing for the next
    ports = set()
    for _ in range(3):
        assert read(model)[0] == "One two three."
        ports.add(provider_standin.ports[-1])
    assert len(ports) == 1


def test_leaving_a_stream_closes_its_connection(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    provider_standin.reply("word " * 10_000)
    provider_standin.token_interval_seconds = 0.002
    stream = model.stream(MESSAGES, temperature=0, maximum_output_tokens=10_000, cancel=Event())
    assert isinstance(next(stream), TextDelta)
    stream.close()  # type: ignore[attr-defined]
    time.sleep(0.15)
    assert provider_standin.tokens["chat"] == 0  # the provider noticed, and did not write to the end
    provider_standin.token_interval_seconds = 0.0
    provider_standin.reply("next")
    assert read(model)[0] == "next"


# Whole replies


def test_a_reply_comes_whole(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    provider_standin.reply("What is the vacation policy?")
    reply = model.complete(MESSAGES, temperature=0, maximum_output_tokens=50)
    assert reply.text == "What is the vacation policy?"
    assert reply.usage == Usage(provider="openai", model="gpt-4o", input_tokens=6, output_tokens=5)


def test_a_reply_by_schema_is_json(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    schema = {
        "type": "object",
        "properties": {"topics": {"type": "array", "items": {"type": "string"}}},
        "required": ["topics"],
        "additionalProperties": False,
    }
    reply = model.complete(MESSAGES, temperature=0, maximum_output_tokens=50, json_schema=schema)
    assert isinstance(json.loads(reply.text)["topics"], list)
    assert provider_standin.requests[0][1]["response_format"]["json_schema"]["strict"] is True


def test_a_reply_by_schema_that_is_cut_is_invalid_and_was_paid(
    model: OpenAIChatModel, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply('{"topics": ["one", "two", "three"]}')
    with pytest.raises(ProviderAnswerInvalid) as caught:
        model.complete(MESSAGES, temperature=0, maximum_output_tokens=2, json_schema={"type": "object"})
    assert caught.value.details["usage"].output_tokens == 2


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (401, "invalid_api_key", ProviderKeyRejected),
        (403, "", ProviderKeyRejected),
        (402, "", ProviderQuotaExhausted),
        (429, "insufficient_quota", ProviderQuotaExhausted),
        (429, "rate_limit_exceeded", ProviderQuotaExhausted),
        (408, "", ProviderUnavailable),
        (500, "", ProviderUnavailable),
        (503, "", ProviderUnavailable),
        (529, "", ProviderUnavailable),
        (400, "content_filter", ProviderRefused),
        (400, "context_length_exceeded", ProviderError),
        (404, "model_not_found", ProviderError),
        (422, "", ProviderError),
    ],
)
def test_each_status_has_its_error(
    model: OpenAIChatModel, provider_standin: ProviderStandin, status: int, code: str, expected: type[ProviderError]
) -> None:
    provider_standin.fail_next(status, times=2, code=code)
    with pytest.raises(ProviderError) as caught:
        model.complete(MESSAGES, temperature=0, maximum_output_tokens=50)
    assert type(caught.value) is expected
    assert "stand-in" not in caught.value.message  # what the provider writes is for the log


def test_a_reply_that_is_not_json_is_invalid(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    provider_standin.garbage_next(2)
    with pytest.raises(ProviderAnswerInvalid):
        model.complete(MESSAGES, temperature=0, maximum_output_tokens=50)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b'"text"', b"{}", b'{"choices": []}', b'{"choices": [{}]}', b"\xff"]
)
def test_replies_of_another_shape_are_invalid(body: bytes) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=body, headers={"content-type": "application/json"})

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    with openai.OpenAI(api_key="key", base_url="http://provider/v1", max_retries=0, http_client=transport) as client:
        with pytest.raises(ProviderAnswerInvalid):
            OpenAIChatModel(client, provider="openai", model="gpt-4o").complete(
                MESSAGES, temperature=0, maximum_output_tokens=50
            )
        with pytest.raises(ProviderAnswerInvalid):
            OpenAIEmbedder(client, provider="openai", model="m", dimensions=8).embed(["text"], purpose="query")


@pytest.mark.parametrize("kind", [httpx2.ReadTimeout, httpx2.ConnectTimeout, httpx2.ConnectError, httpx2.ReadError])
def test_what_happens_on_the_way_is_unavailable(kind: type[httpx2.TransportError]) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise kind("on the way", request=request)

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    with openai.OpenAI(api_key="key", base_url="http://provider/v1", max_retries=0, http_client=transport) as client:
        model = OpenAIChatModel(client, provider="openai", model="gpt-4o")
        assert type(read(model)[2]) is ProviderUnavailable


def test_a_host_that_is_not_there_is_unavailable() -> None:
    with openai.OpenAI(api_key="key", base_url="http://127.0.0.1:1/v1", max_retries=0) as client:
        embedder = OpenAIEmbedder(client, provider="openai", model="m", dimensions=8)
        with pytest.raises(ProviderUnavailable):
            embedder.embed(["text"], purpose="query")


@pytest.mark.parametrize("schema", [None, {"type": "object", "properties": {}, "additionalProperties": False}])
def test_a_whole_reply_cut_at_its_limit_is_an_error_that_was_paid(
    model: OpenAIChatModel, provider_standin: ProviderStandin, schema: dict[str, Any] | None
) -> None:
    provider_standin.reply('{"a": 1}' if schema else "Half a", finish_reason="length")
    with pytest.raises(ProviderAnswerCut) as cut:
        model.complete(MESSAGES, temperature=0.0, maximum_output_tokens=50, json_schema=schema)
    assert cut.value.details["text"] in ("Half a", '{"a": 1}')
    assert cut.value.details["usage"].output_tokens > 0


# Every error there is


def errors_of(module: Any) -> list[type[Exception]]:
    # A lazy part of the SDK that is asked for its class, as `isclass` does, imports everything below it.
    return sorted(
        {
            value
            for value in list(vars(module).values())
            if issubclass(type(value), type) and issubclass(value, Exception) and not issubclass(value, Warning)
        },
        key=lambda kind: kind.__name__,
    )


@pytest.mark.parametrize(
    "kind", [*errors_of(openai), *errors_of(httpx2)], ids=lambda kind: f"{kind.__module__}.{kind.__name__}"
)
def test_no_error_of_the_sdk_or_its_transport_is_unmapped(kind: type[Exception]) -> None:
    error = kind.__new__(kind)
    error.__dict__.update(message="", code=None, type=None, body=None, status_code=418)
    with pytest.raises(ProviderError), openai_errors():
        raise error


@pytest.mark.parametrize(
    "error", [json.JSONDecodeError("no", "", 0), KeyError("x"), TypeError(), UnicodeDecodeError("a", b"", 0, 1, "")]
)
def test_what_an_unreadable_answer_raises_is_mapped(error: Exception) -> None:
    with pytest.raises(ProviderAnswerInvalid), openai_errors():
        raise error


# Reasoning


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_deployment_of_a_reasoning_model_is_asked_as_it_wants_to_be(
    client: openai.OpenAI, provider_standin: ProviderStandin, is_streamed: bool
) -> None:
    model = OpenAIChatModel(client, provider="openai", model="hr-answers")
    provider_standin.reply("You have 25 days.")
    for _ in range(2):
        if is_streamed:
            text, completed, error = read(model)
            assert (text, error) == ("You have 25 days.", None)
            assert completed is not None
        else:
            assert model.complete(MESSAGES, temperature=0.2, maximum_output_tokens=50).text == "You have 25 days."
    asked = [("max_tokens" in body, "max_completion_tokens" in body) for _, body in provider_standin.requests]
    # The refusal came once: what it said is remembered.
    assert asked == [(True, False), (False, True), (False, True)]


def test_a_refusal_that_names_no_parameter_is_not_asked_again(
    client: openai.OpenAI, provider_standin: ProviderStandin
) -> None:
    provider_standin.fail_next(400, endpoint="chat", code="invalid_request_error")
    _, _, error = read(OpenAIChatModel(client, provider="openai", model="gpt-4o"))
    assert "HTTP 400" in str(error)
    assert provider_standin.calls["chat"] == 1


def test_reasoning_between_tags_is_no_part_of_the_answer(
    model: OpenAIChatModel, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply("<think>\nThe passage says 25.\n</think>\n\nYou have 25 days.")
    assert read(model)[0] == "You have 25 days."
    assert model.complete(MESSAGES, temperature=0, maximum_output_tokens=50).text == "You have 25 days."


def test_reasoning_without_its_first_tag_is_taken_back_once_and_held_from_then_on(
    model: OpenAIChatModel, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply("The passage says 25, so that is it. </think> You have 25 days.")
    parts = list(model.stream(MESSAGES, temperature=0.2, maximum_output_tokens=50, cancel=Event()))
    (discarded,) = [number for number, part in enumerate(parts) if isinstance(part, Discarded)]
    assert "".join(p.text for p in parts[discarded:] if isinstance(p, TextDelta)) == "You have 25 days."
    again = list(model.stream(MESSAGES, temperature=0.2, maximum_output_tokens=50, cancel=Event()))
    assert not any(isinstance(part, Discarded) for part in again)
    assert "".join(p.text for p in again if isinstance(p, TextDelta)) == "You have 25 days."


def test_reasoning_alone_is_an_answer_without_a_word(model: OpenAIChatModel, provider_standin: ProviderStandin) -> None:
    provider_standin.reply("<think>Hm. Let me see.</think>\n")
    text, _, error = read(model)
    assert text == ""
    assert isinstance(error, ProviderAnswerInvalid)
