"""Traces, as a collector receives them over OTLP."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from rag.integrations.registry import start_tracing
from rag.monitoring.tracing import span
from rag.profiles import profile_of
from rag.providers.registry import Providers
from tests.api.callers import Api
from tests.patience import patient
from tests.standins.local_server import LocalServer, QuietHandler
from tests.standins.providers import ProviderStandin

QUESTION = "How many days of annual leave do employees have?"
ANSWER = "Everyone has 25 days of paid leave a year [1]."


class Collector:
    """Keeps what is sent to it."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.service = ""
        collector = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    named = {item.key: item.value.string_value for item in of_resource.resource.attributes}
                    collector.service = named["service.name"]
                    for of_scope in of_resource.scope_spans:
                        collector.spans += of_scope.spans
                self.send_response(200)
                self.end_headers()

        self.server = LocalServer(Handler)

    @property
    def url(self) -> str:
        return self.server.url

    def named(self, beginning: str) -> list[Span]:
        return [span for span in self.spans if span.name.startswith(beginning)]


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    with collector.server:
        yield collector


def attributes(span: Span) -> dict[str, object]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value") or "string_value") for item in span.attributes}


def test_a_question_is_one_trace_from_the_caller_to_its_models_and_holds_no_text(
    api: Api, provider_standin: ProviderStandin, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test for all of it: what receives spans is set once in a process."""
    assert start_tracing({})() is None  # nothing is sent without an endpoint
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    stop = start_tracing(os.environ)
    api.ready_document()
    provider_standin.reply(ANSWER)
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    headers = {
        "Authorization": f"Bearer {api.key('chat')}",
        "traceparent": f"00-{trace}-{parent}-01",
        "X-Request-Id": "of-the-caller",
    }
    body = {"query": QUESTION}
    with httpx.Client(headers=headers, timeout=patient(30)) as client:
        assert client.post(f"{api.url}/api/rag/chat", json=body).status_code == 200
        provider_standin.fail_next(500, 9, endpoint="chat")
        client.post(f"{api.url}/api/rag/chat", json=body)
    settings = replace(
        api.parts.settings, cohere_api_key="test-key", cohere_base_url=provider_standin.cohere_url,
        openai_api_key="test-key", openai_base_url=provider_standin.openai_url,
    )  # fmt: skip
    providers = Providers(settings)
    with span("models"):
        providers.embedder_for("openai/text-embedding-3-small@1536").embed(["one", "two"], purpose="document")
        reranker = providers.reranker_for(profile_of(api.collection))
        assert reranker is not None
        reranker.rank("one", ["one", "two"], limit=2)
    providers.close()
    stop()

    assert collector.service == "hr-assistant"
    (request, failed_request) = collector.named("POST chat")
    assert request.trace_id.hex() == trace
    assert request.parent_span_id.hex() == parent
    assert request.kind == Span.SPAN_KIND_SERVER
    assert attributes(request)["rag.request_id"] == "of-the-caller"
    assert attributes(request)["http.response.status_code"] == 200
    first, second = (span for span in collector.named("invoke_agent") if span.trace_id == request.trace_id)
    assert first.parent_span_id == request.span_id
    assert second.parent_span_id == failed_request.span_id
    assert attributes(first)["rag.outcome"] == "answered"
    assert attributes(first)["rag.chat_log.id"]
    steps = {span.name for span in collector.spans if span.parent_span_id == first.span_id}
    assert {"search", "limits"} <= steps

    calls = [span for span in collector.spans if span.kind == Span.SPAN_KIND_CLIENT]
    used = {(attributes(span)["gen_ai.operation.name"], attributes(span)["gen_ai.provider.name"]) for span in calls}
    assert used == {("chat", "openai"), ("embeddings", "openai"), ("rerank", "cohere")}
    chat = next(span for span in calls if span.name.startswith("chat ") and "error.type" not in attributes(span))
    named = attributes(chat)
    assert (named["gen_ai.provider.name"], chat.name) == ("openai", f"chat {named['gen_ai.request.model']}")
    assert named["gen_ai.usage.output_tokens"]
    broken = [span for span in calls if "error.type" in attributes(span)]
    assert broken
    assert all(span.status.code == Status.STATUS_CODE_ERROR for span in broken)
    (models,) = collector.named("models")
    assert {span.name for span in calls if span.parent_span_id == models.span_id} == {
        "embeddings text-embedding-3-small",
        "rerank rerank-multilingual-v3.0",
    }
    assert all(attributes(span)["gen_ai.usage.input_tokens"] for span in collector.named("embeddings"))
    assert attributes(collector.named("rerank rerank-multilingual-v3.0")[0])["rag.usage.search_units"] == 1
    assert collector.named("process_document")

    everything = b"".join(span.SerializeToString() for span in collector.spans)
    for text in (QUESTION, ANSWER, "annual leave", "paid leave", api.collection.name, "Traceback"):
        assert text.encode() not in everything, text
