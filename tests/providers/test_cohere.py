"""The real Cohere SDK against the stand-in."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Iterator
from typing import Any

import cohere
import cohere.errors
import httpx
import pytest
from cohere.core.api_error import ApiError

from rag.errors import (
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderUnavailable,
)
from rag.providers import Reranker
from rag.providers.cohere import CohereReranker, cohere_errors
from rag.types import Usage
from tests.patience import patient
from tests.standins.providers import ProviderStandin

DOCUMENTS = ["the canteen", "sick leave", "vacation days", "days of the week"]
MODEL = "rerank-multilingual-v3.0"


@pytest.fixture
def reranker(provider_standin: ProviderStandin) -> Iterator[CohereReranker]:
    with httpx.Client(timeout=patient(5)) as transport:
        client = cohere.ClientV2("key", base_url=provider_standin.cohere_url, httpx_client=transport)
        yield CohereReranker(client, model=MODEL, timeout_seconds=patient(5))


def reranker_answering(answer: Any, **options: Any) -> CohereReranker:
    transport = httpx.Client(transport=httpx.MockTransport(answer))
    client = cohere.ClientV2("key", base_url="http://provider", httpx_client=transport)
    return CohereReranker(client, model=MODEL, timeout_seconds=options.get("timeout_seconds", 5))


def test_nothing_to_rank_makes_no_request(reranker: CohereReranker, provider_standin: ProviderStandin) -> None:
    assert reranker.rank("leave", [], limit=5).results == ()
    assert provider_standin.calls["rerank"] == 0


def test_documents_are_ranked_by_relevance_with_the_units_billed(
    reranker: CohereReranker, provider_standin: ProviderStandin
) -> None:
    ranking = reranker.rank("vacation days", DOCUMENTS, limit=2)
    assert [index for index, _ in ranking.results] == [2, 3]
    assert all(0 <= score <= 1 for _, score in ranking.results)
    assert ranking.usage == Usage(provider="cohere", model=MODEL, search_units=1)
    assert provider_standin.requests[0][1]["top_n"] == 2
    assert isinstance(reranker, Reranker)


def test_more_documents_than_the_limit_of_a_request_are_left_out(reranker: CohereReranker) -> None:
    ranking = reranker.rank("vacation days", DOCUMENTS * 300, limit=3)
    assert len(ranking.results) == 3
    assert ranking.usage.search_units == 10


def test_units_are_counted_when_the_answer_has_none() -> None:
    results = [{"index": 0, "relevance_score": 0.5}]
    reranker = reranker_answering(lambda request: httpx.Response(200, json={"id": "1", "results": results}))
    assert reranker.rank("q", ["a"] * 150, limit=1).usage.search_units == 2


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (401, ProviderKeyRejected),
        (403, ProviderKeyRejected),
        (498, ProviderKeyRejected),
        (402, ProviderQuotaExhausted),
        (429, ProviderQuotaExhausted),
        (500, ProviderUnavailable),
        (503, ProviderUnavailable),
        (504, ProviderUnavailable),
        (400, ProviderError),
        (404, ProviderError),
        (422, ProviderError),
    ],
)
def test_each_status_has_its_error_and_is_not_retried(
    reranker: CohereReranker,
    provider_standin: ProviderStandin,
    status: int,
    expected: type[ProviderError],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider_standin.fail_next(status, headers={"retry-after": "30"})
    # What the provider asked to be waited for is left to the caller.
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail(f"waits {seconds} s"))
    with pytest.raises(ProviderError) as caught:
        reranker.rank("vacation", DOCUMENTS, limit=2)
    assert type(caught.value) is expected
    assert provider_standin.calls["rerank"] == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b"{}",
        b'{"results": []}',
        b'{"results": [{"index": 9, "relevance_score": 0.5}]}',
        b'{"results": [{"index": 0, "relevance_score": 0.5}, {"index": 0, "relevance_score": 0.4}]}',
        b'{"results": [{"index": 0, "relevance_score": NaN}]}',
        b'{"results": [{"index": 0}]}',
        b'{"results": [{"index": "x", "relevance_score": "y"}]}',
    ],
)
def test_answers_that_cannot_be_right_are_invalid(body: bytes) -> None:
    headers = {"content-type": "application/json"}
    reranker = reranker_answering(lambda request: httpx.Response(200, content=body, headers=headers))
    with pytest.raises(ProviderAnswerInvalid):
        reranker.rank("vacation", DOCUMENTS, limit=2)


@pytest.mark.parametrize("kind", [httpx.ReadTimeout, httpx.ConnectError, httpx.RemoteProtocolError])
def test_what_happens_on_the_way_is_unavailable(kind: type[httpx.TransportError]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise kind("on the way", request=request)

    with pytest.raises(ProviderUnavailable):
        reranker_answering(answer).rank("vacation", DOCUMENTS, limit=2)


def test_a_provider_that_hangs_is_given_up(provider_standin: ProviderStandin) -> None:
    provider_standin.hang = True
    with httpx.Client() as transport:
        client = cohere.ClientV2("key", base_url=provider_standin.cohere_url, httpx_client=transport)
        with pytest.raises(ProviderUnavailable):
            CohereReranker(client, model=MODEL, timeout_seconds=0.1).rank("vacation", DOCUMENTS, limit=2)


def errors_of(module: Any) -> list[type[Exception]]:
    names = getattr(module, "__all__", dir(module))
    found = {getattr(module, name) for name in names}
    return sorted((v for v in found if inspect.isclass(v) and issubclass(v, Exception)), key=lambda kind: kind.__name__)


@pytest.mark.parametrize(
    "kind",
    [ApiError, *errors_of(cohere.errors), *errors_of(httpx)],
    ids=lambda kind: f"{kind.__module__}.{kind.__name__}",
)
def test_no_error_of_the_sdk_or_its_transport_is_unmapped(kind: type[Exception]) -> None:
    error = kind.__new__(kind)
    error.__dict__.update(status_code=418, body=None, headers=None)
    with pytest.raises(ProviderError), cohere_errors():
        raise error


def test_unreadable_json_is_mapped() -> None:
    with pytest.raises(ProviderAnswerInvalid), cohere_errors():
        raise json.JSONDecodeError("no", "", 0)
