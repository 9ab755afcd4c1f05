"""Ollama by its own routes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import numpy as np
import pytest

from rag.errors import InvalidInput, ProviderAnswerInvalid, ProviderError, ProviderUnavailable
from rag.providers.ollama import OllamaEmbedder
from tests.patience import patient
from tests.standins.providers import ProviderStandin


@pytest.fixture
def embedder(provider_standin: ProviderStandin) -> Iterator[OllamaEmbedder]:
    with httpx2.Client(base_url=provider_standin.ollama_url, timeout=patient(5)) as client:
        yield OllamaEmbedder(client, model="bge-m3", dimensions=1024, batch_size=3)


def test_texts_go_in_batches_and_come_back_in_their_order(
    embedder: OllamaEmbedder, provider_standin: ProviderStandin
) -> None:
    texts = [f"text number {n}" for n in range(7)]
    made = embedder.embed(texts, purpose="document")
    assert made.vectors.shape == (7, 1024)
    np.testing.assert_allclose(np.linalg.norm(made.vectors, axis=1), 1, rtol=1e-6)
    alone = embedder.embed([texts[5]], purpose="query").vectors[0]
    np.testing.assert_allclose(made.vectors[5], alone, atol=1e-6)
    assert provider_standin.paths[:3] == ["/api/embed"] * 3
    assert [usage.input_tokens for usage in made.usages] == [9, 9, 3]
    assert {usage.provider for usage in made.usages} == {"ollama"}


def test_an_older_ollama_is_asked_text_by_text(embedder: OllamaEmbedder, provider_standin: ProviderStandin) -> None:
    provider_standin.missing_paths = {"/api/embed"}
    made = embedder.embed(["주차 문제", "parking"], purpose="document")
    assert made.vectors.shape == (2, 1024)
    assert provider_standin.paths == ["/api/embeddings"] * 2
    assert provider_standin.requests[0][1] == {"model": "bge-m3", "prompt": "주차 문제"}
    assert made.usages[0].input_tokens > 0
    embedder.embed(["again"], purpose="query")  # the missing route is not tried again
    assert provider_standin.calls == {"embeddings": 3}


def test_something_else_at_the_address_is_said_so(embedder: OllamaEmbedder, provider_standin: ProviderStandin) -> None:
    provider_standin.missing_paths = {"/api/embed", "/api/embeddings"}
    with pytest.raises(ProviderError, match="OLLAMA_URL"):
        embedder.embed(["a"], purpose="query")


def test_a_model_that_was_not_pulled_is_named_with_the_remedy(provider_standin: ProviderStandin) -> None:
    with httpx2.Client(base_url=provider_standin.ollama_url) as client:
        missing = OllamaEmbedder(client, model="mxbai", dimensions=1024)
        with pytest.raises(ProviderError, match="ollama pull mxbai"):
            missing.embed(["a"], purpose="query")


def _wrong_dimensions(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"embedding": item["embedding"][:768]} for item in data]


def _too_few(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return data[:-1]


def _not_numbers(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"embedding": [float("nan")] * 1024} for _ in data]


@pytest.mark.parametrize("wrong", [_wrong_dimensions, _too_few, _not_numbers], ids=lambda f: f.__name__)
def test_a_wrong_dimension_count_or_number_is_refused(
    embedder: OllamaEmbedder, provider_standin: ProviderStandin, wrong: Any
) -> None:
    provider_standin.alter_embeddings = wrong
    with pytest.raises(ProviderAnswerInvalid):
        embedder.embed(["a", "b"], purpose="document")


def test_an_answer_that_is_not_json_is_refused(embedder: OllamaEmbedder, provider_standin: ProviderStandin) -> None:
    provider_standin.garbage_next(2)  # one alone is asked for again
    with pytest.raises(ProviderAnswerInvalid):
        embedder.embed(["a"], purpose="document")


def test_trouble_is_tried_once_more_and_then_said(embedder: OllamaEmbedder, provider_standin: ProviderStandin) -> None:
    provider_standin.fail_next(500)
    assert embedder.embed(["a"], purpose="query").vectors.shape == (1, 1024)
    provider_standin.close_next(times=2)
    with pytest.raises(ProviderUnavailable, match="Ollama cannot be reached"):
        embedder.embed(["a"], purpose="query")
    provider_standin.fail_next(400)
    with pytest.raises(ProviderError, match="HTTP 400"):
        embedder.embed(["a"], purpose="query")


def test_a_text_of_only_spaces_is_refused(embedder: OllamaEmbedder, provider_standin: ProviderStandin) -> None:
    with pytest.raises(InvalidInput):
        embedder.embed(["a", " "], purpose="document")
    assert not provider_standin.calls


def test_a_long_text_is_embedded_by_its_beginning(embedder: OllamaEmbedder, provider_standin: ProviderStandin) -> None:
    embedder.embed(["word " * 20_000], purpose="document")
    assert len(provider_standin.requests[0][1]["input"][0]) < 50_000
