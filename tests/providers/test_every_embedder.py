"""Each embedder a profile or an administrator can choose, over the stand-in: its vectors, and wrong ones refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import openai
import pytest

from rag.errors import ProviderAnswerInvalid
from rag.providers.embeddings import generate_embedding, generate_embeddings_batch, setting_aside
from rag.providers.ollama import OllamaEmbedder
from rag.providers.openai_connection import OpenAIEmbedder
from rag.providers.registry import Providers
from rag.settings import Settings
from tests.standins.providers import ProviderStandin

EMBEDDERS = [
    "builtin/lexical@1536",
    "openai/text-embedding-3-small@1536",
    "openai/text-embedding-3-large@3072",
    "gemini/gemini-embedding-001@768",
    "gemini/gemini-embedding-001@1536",
    "gemini/gemini-embedding-001@3072",
    "ollama/bge-m3@1024",
]


@pytest.fixture
def providers(provider_standin: ProviderStandin) -> Iterator[Providers]:
    made = Providers(
        Settings(
            openai_api_key="key",
            openai_base_url=provider_standin.openai_url,
            gemini_api_key="key",
            gemini_base_url=provider_standin.gemini_url,
            ollama_url=provider_standin.ollama_url,
        )
    )
    yield made
    made.close()


@pytest.fixture
def compatible(provider_standin: ProviderStandin) -> Iterator[OpenAIEmbedder]:
    """bge-m3 by Ollama's compatible route."""
    with openai.OpenAI(api_key="any", base_url=provider_standin.openai_url, max_retries=0) as client:
        yield OpenAIEmbedder(client, provider="ollama", model="bge-m3", dimensions=1024)


@pytest.mark.parametrize("identifier", EMBEDDERS)
def test_an_embedder_gives_its_dimensions_in_the_order_of_the_texts(identifier: str, providers: Providers) -> None:
    embedder = providers.embedder_for(identifier)
    texts = [f"passage on topic{n}" for n in range(5)]
    made = generate_embeddings_batch(texts, embedder=embedder, batch_size=2)
    assert made.vectors.shape == (5, int(identifier.rpartition("@")[2]))
    assert np.allclose(np.linalg.norm(made.vectors, axis=1), 1, atol=1e-5)
    for row, text in zip(made.vectors, texts, strict=True):
        alone = generate_embedding(text, embedder=embedder, purpose="document").vectors[0]
        assert float(row @ alone) == pytest.approx(1, abs=1e-4)
    assert 0 < embedder.default_threshold < 0.7


def test_bge_m3_by_the_compatible_route_gives_its_dimensions(compatible: OpenAIEmbedder) -> None:
    assert generate_embeddings_batch(["휴가", "leave"], embedder=compatible).vectors.shape == (2, 1024)


@pytest.mark.parametrize(
    ("settings", "route"),
    [
        (Settings(ollama_url="http://localhost:11434"), OllamaEmbedder),
        (Settings(openai_api_key="any", openai_base_url="http://localhost:11434/v1"), OpenAIEmbedder),
    ],
    ids=["its own route", "the compatible route"],
)
def test_bge_m3_is_the_same_embedder_by_whichever_route_ollama_is_named(settings: Settings, route: type) -> None:
    providers = Providers(settings)
    embedder = providers.embedder_for("ollama/bge-m3@1024")
    assert isinstance(embedder, route)
    assert (embedder.id, embedder.dimensions) == ("ollama/bge-m3@1024", 1024)
    providers.close()


WRONG: dict[str, Callable[[list[dict[str, Any]]], list[dict[str, Any]]]] = {
    "count": lambda data: data[:-1],
    "dimensions": lambda data: [{**item, "embedding": list(item["embedding"])[:100]} for item in data],
    "nan": lambda data: [{**item, "embedding": [float("nan")] * len(item["embedding"])} for item in data],
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("identifier", [name for name in EMBEDDERS if not name.startswith("builtin/")])
def test_a_wrong_count_dimension_or_number_is_refused(
    identifier: str, wrong: str, providers: Providers, provider_standin: ProviderStandin
) -> None:
    provider_standin.alter_embeddings = WRONG[wrong]
    with pytest.raises(ProviderAnswerInvalid):
        generate_embeddings_batch(["one", "two"], embedder=providers.embedder_for(identifier))


@pytest.mark.parametrize("identifier", [name for name in EMBEDDERS if not name.startswith("builtin/")])
def test_a_text_that_fails_its_request_is_found_where_texts_may_be_set_aside(
    identifier: str, providers: Providers, provider_standin: ProviderStandin
) -> None:
    provider_standin.without_vector = lambda text: "NaN" in text
    texts = [*(f"text {number}" for number in range(20)), "text of NaN", *(f"more {number}" for number in range(19))]
    embedder = providers.embedder_for(identifier)
    with pytest.raises(ProviderAnswerInvalid):
        generate_embeddings_batch(texts, embedder=embedder)
    provider_standin.usages.clear()
    with setting_aside():
        made = generate_embeddings_batch(texts, embedder=embedder)
    assert np.flatnonzero(np.isnan(made.vectors).any(axis=1)).tolist() == [20]
    assert np.isnan(made.vectors[20]).all()
    assert len(made.usages) == len(provider_standin.usages) <= 8


@pytest.mark.parametrize("sent", [[float("nan")] * 3072, None, [0.5] * 3, [], "QUJD", [0.0] * 3072])
def test_a_text_whose_vector_is_none_is_set_aside_alone(
    sent: object, providers: Providers, provider_standin: ProviderStandin
) -> None:
    provider_standin.without_vector, provider_standin.vector_instead = lambda text: text == "bad", (sent,)
    embedder = providers.embedder_for("gemini/gemini-embedding-001@3072")
    with setting_aside():
        made = generate_embeddings_batch(["good", "bad", "better"], embedder=embedder)
        assert np.isnan(made.vectors).any(axis=1).tolist() == [False, True, False]
        assert len(made.usages) == 1


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 0.0])
def test_the_only_text_of_a_request_is_set_aside_where_its_numbers_say_nothing(
    number: float, providers: Providers, provider_standin: ProviderStandin
) -> None:
    provider_standin.without_vector, provider_standin.vector_instead = lambda text: text == "bad", ([number] * 3072,)
    embedder = providers.embedder_for("gemini/gemini-embedding-001@3072")
    with setting_aside():
        assert np.isnan(generate_embeddings_batch(["bad"], embedder=embedder).vectors).all()
