"""Which models there are with which settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

import pytest
from standin import ProviderStandin

from rag.errors import ProviderKeyRejected, SettingsError
from rag.profiles import CIVIL, HR, LEGAL, NOTICES
from rag.providers.registry import Providers, provider_of
from rag.settings import Settings
from rag.types import ChatMessage


@pytest.fixture
def keyed(provider_standin: ProviderStandin) -> Settings:
    return Settings(
        openai_api_key="key",
        openai_base_url=provider_standin.openai_url,
        cohere_api_key="key",
        cohere_base_url=provider_standin.cohere_url,
    )


@pytest.fixture
def providers(keyed: Settings) -> Iterator[Providers]:
    made = Providers(keyed)
    yield made
    made.close()


def test_without_keys_there_is_the_built_in_embedder_and_nothing_else() -> None:
    providers = Providers(Settings())
    assert providers.default_embedder_id(HR) == "builtin/lexical@1536"
    assert providers.embedder_for("builtin/lexical@1536").dimensions == 1536
    assert providers.chat_model_for(HR) is None
    assert providers.translation_model_for(HR) is None
    assert providers.reranker_for(HR) is None
    providers.close()


def test_documents_of_a_provider_without_its_key_name_the_key() -> None:
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        Providers(Settings()).embedder_for("openai/text-embedding-3-small@1536")


@pytest.mark.parametrize("identifier", ["", "lexical", "openai/x", "openai/x@", "openai/x@0", "builtin/lexical@99"])
def test_an_id_that_names_no_embedder_is_said_so(providers: Providers, identifier: str) -> None:
    with pytest.raises(SettingsError):
        providers.embedder_for(identifier)


def test_documents_of_another_provider_are_not_embedded_with_this_one(providers: Providers) -> None:
    with pytest.raises(SettingsError, match="ollama"):
        providers.embedder_for("ollama/bge-m3@1024")


def test_with_keys_the_profile_decides(providers: Providers) -> None:
    assert providers.default_embedder_id(HR) == "openai/text-embedding-3-small@1536"
    assert providers.default_embedder_id(CIVIL) == "builtin/lexical@1536"  # its own provider is not there
    chat, translation, reranker = (
        providers.chat_model_for(HR),
        providers.translation_model_for(HR),
        providers.reranker_for(HR),
    )
    assert chat is not None
    assert translation is not None
    assert reranker is not None
    assert (chat.model, translation.model, reranker.model) == ("gpt-4o", "gpt-4o-mini", "rerank-multilingual-v3.0")
    assert providers.reranker_for(LEGAL) is None  # the profile wants none
    assert providers.reranker_for(NOTICES) is not None


def test_settings_come_before_the_profile(keyed: Settings) -> None:
    settings = replace(
        keyed,
        chat_model="gpt-6-luna",
        translation_model="gpt-6-luna",
        rerank_model="rerank-v3.5",
        embedding_model="text-embedding-3-large",
    )
    providers = Providers(settings)
    assert providers.default_embedder_id(HR) == "openai/text-embedding-3-large@3072"
    assert [getattr(made, "model", None) for made in (providers.chat_model_for(HR), providers.reranker_for(HR))] == [
        "gpt-6-luna",
        "rerank-v3.5",
    ]
    providers.close()


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("text-embedding-3-small", "openai/text-embedding-3-small@1536"),
        ("text-embedding-3-large@1024", "openai/text-embedding-3-large@1024"),
        ("openai/text-embedding-3-small@512", "openai/text-embedding-3-small@512"),
        ("builtin/lexical@1536", "builtin/lexical@1536"),
        ("vendor/embed", "openai/vendor/embed@1536"),
    ],
)
def test_the_embedding_model_may_be_named_short_or_in_full(keyed: Settings, setting: str, expected: str) -> None:
    providers = Providers(replace(keyed, embedding_model=setting))
    identifier = providers.default_embedder_id(HR)
    assert identifier == expected
    assert providers.embedder_for(identifier).id == expected
    providers.close()


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("http://127.0.0.1:9999/v1", "openai"),
        ("https://models.example.com/v1", "openai"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "gemini"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("http://localhost:11434/v1", "ollama"),
        ("http://ollama:8080/v1", "ollama"),
    ],
)
def test_a_provider_is_known_by_its_address(url: str, provider: str) -> None:
    assert provider_of(url) == provider


@pytest.mark.parametrize(
    "url", ["api.openai.com", "ftp://host/v1", "http://", "http://[half", "http://host:port/v1", ""]
)
def test_what_is_no_address_is_said_so(url: str) -> None:
    with pytest.raises(SettingsError, match="OPENAI_BASE_URL"):
        provider_of(url)


def test_ollama_needs_no_key() -> None:
    providers = Providers(Settings(openai_base_url="http://localhost:11434/v1"))
    assert providers.default_embedder_id(CIVIL) == "ollama/bge-m3@1024"
    assert providers.chat_model_for(CIVIL) is not None
    providers.close()


def test_everything_works_from_the_settings(providers: Providers, provider_standin: ProviderStandin) -> None:
    assert providers.embedder_for("openai/text-embedding-3-small@1536").embed(["a"], purpose="query").vectors.shape == (
        1,
        1536,
    )
    reranker, chat = providers.reranker_for(HR), providers.chat_model_for(HR)
    assert reranker is not None
    assert chat is not None
    assert reranker.rank("a", ["b", "a"], limit=1).results[0][0] == 1
    message = ChatMessage(role="user", content="Hello")
    assert list(chat.stream([message], temperature=0, maximum_output_tokens=9, cancel=Event()))
    assert provider_standin.calls == {"embeddings": 1, "rerank": 1, "chat": 1}


def test_a_wrong_key_is_said_so(keyed: Settings, provider_standin: ProviderStandin) -> None:
    provider_standin.accepted_key = "another"
    providers = Providers(keyed)
    reranker = providers.reranker_for(HR)
    assert reranker is not None
    with pytest.raises(ProviderKeyRejected):
        providers.embedder_for("openai/text-embedding-3-small@1536").embed(["a"], purpose="query")
    with pytest.raises(ProviderKeyRejected):
        reranker.rank("a", ["b"], limit=1)
    providers.close()


@pytest.mark.parametrize("key", ["kéy", "two\nlines", "sk-…"])
def test_a_key_that_cannot_be_sent_is_said_so(key: str, provider_standin: ProviderStandin) -> None:
    settings = Settings(openai_api_key=key, openai_base_url=provider_standin.openai_url)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY") as caught:
        Providers(settings)
    assert key not in str(caught.value)
