"""Which models there are with which settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from threading import Event
from typing import Any, cast

import pytest

from rag.errors import ProviderError, ProviderKeyRejected, SettingsError
from rag.money.price_list import embedding_price
from rag.profiles import CIVIL, HR, LEGAL, NOTICES, PORTFOLIO, PROFILES
from rag.providers.registry import Providers, provider_of
from rag.settings import Settings
from rag.types import ChatMessage
from tests.standins.providers import ProviderStandin


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
    with pytest.raises(SettingsError, match=r"no key for openai is set\. Paste the key on the page Set-up"):
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


@pytest.fixture
def all_configured(keyed: Settings, provider_standin: ProviderStandin) -> Iterator[Providers]:
    made = Providers(
        replace(
            keyed,
            gemini_api_key="key",
            gemini_base_url=provider_standin.gemini_url,
            openrouter_api_key="key",
            openrouter_base_url=provider_standin.openrouter_url,
            ollama_url=provider_standin.ollama_url,
        )
    )
    yield made
    made.close()


def test_each_profile_has_its_own_provider_when_all_are_configured(all_configured: Providers) -> None:
    assert {name: all_configured.default_embedder_id(profile) for name, profile in PROFILES.items()} == {
        "hr": "openai/text-embedding-3-small@1536",
        "notices": "openai/text-embedding-3-large@3072",
        "portfolio": "openai/text-embedding-3-small@1536",
        "legal": "gemini/gemini-embedding-001@768",
        "civil": "ollama/bge-m3@1024",
    }
    choices = {name: all_configured.chat_choice(profile) for name, profile in PROFILES.items()}
    assert {name: f"{choice.provider}/{choice.model}" for name, choice in choices.items()} == {
        "hr": "openai/gpt-4o",
        "notices": "gemini/gemini-flash-latest",
        "portfolio": "openrouter/meta-llama/llama-3.1-8b-instruct:free",
        "legal": "gemini/gemini-flash-latest",
        "civil": "openai/gpt-4o",
    }
    assert not any(choice.is_elsewhere or choice.missing for choice in choices.values())


def test_each_provider_is_asked_at_its_own_address(
    all_configured: Providers, provider_standin: ProviderStandin
) -> None:
    for identifier in ("gemini/gemini-embedding-001@1536", "gemini/gemini-embedding-001@3072", "ollama/bge-m3@1024"):
        vectors = all_configured.embedder_for(identifier).embed(["휴가", "leave"], purpose="document").vectors
        assert vectors.shape == (2, int(identifier.partition("@")[2]))
    message = ChatMessage(role="user", content="Hello")
    for profile in (NOTICES, PORTFOLIO, HR):
        chat = all_configured.chat_model_for(profile)
        assert chat is not None
        assert list(chat.stream([message], temperature=0, maximum_output_tokens=9, cancel=Event()))
    assert provider_standin.paths == [
        "/v1beta/openai/embeddings",
        "/v1beta/openai/embeddings",
        "/api/embed",
        "/v1beta/openai/chat/completions",
        "/api/v1/chat/completions",
        "/v1/chat/completions",
    ]


def test_gemini_takes_texts_in_hundreds_and_short_ones(
    all_configured: Providers, provider_standin: ProviderStandin
) -> None:
    embedder = all_configured.embedder_for("gemini/gemini-embedding-001@768")
    made = embedder.embed([*(f"text {n}" for n in range(150)), "word " * 5000], purpose="document")
    assert made.vectors.shape == (151, 768)
    assert [len(body["input"]) for _, body in provider_standin.requests] == [100, 51]
    assert all(body["encoding_format"] == "float" for _, body in provider_standin.requests)
    assert all(usage.input_tokens > 0 for usage in made.usages)  # estimated: Gemini sends no count


def test_where_a_profiles_provider_is_missing_openai_answers_and_it_is_said(providers: Providers) -> None:
    choice = providers.chat_choice(NOTICES)
    assert (choice.provider, choice.model, choice.is_elsewhere) == ("openai", "gpt-4o", True)
    assert (choice.missing, choice.wanted_model) == ("GEMINI_API_KEY", "gemini-flash-latest")
    assert providers.translation_choice(LEGAL).model == "gpt-4o-mini"


def test_chat_model_stands_in_for_a_missing_provider_but_not_for_one_that_is_there(keyed: Settings) -> None:
    settings = replace(keyed, chat_model="gpt-6-luna", openrouter_api_key="key")
    providers = Providers(settings)
    assert providers.chat_choice(NOTICES).model == "gpt-6-luna"
    assert providers.chat_choice(PORTFOLIO).model == "meta-llama/llama-3.1-8b-instruct:free"
    providers.close()


def test_a_model_chosen_for_a_collection_comes_before_the_settings(keyed: Settings) -> None:
    providers = Providers(replace(keyed, chat_model="gpt-6-luna", rerank_model="rerank-v4.0-fast"))
    changed = HR.with_overrides({"chat_model": "gpt-5.6-terra", "rerank_model": "rerank-v3.5"})
    reranker = providers.reranker_for(changed)
    assert reranker is not None
    assert (providers.chat_choice(changed).model, reranker.model) == ("gpt-5.6-terra", "rerank-v3.5")
    providers.close()


def test_with_one_key_of_another_provider_nothing_is_sent_to_it_unasked(provider_standin: ProviderStandin) -> None:
    providers = Providers(Settings(gemini_api_key="key", gemini_base_url=provider_standin.gemini_url))
    assert providers.chat_model_for(HR) is None
    assert providers.default_embedder_id(HR) == "builtin/lexical@1536"
    assert providers.chat_choice(HR).missing == "OPENAI_API_KEY"
    # Where the profile's own translator is missing, the model that answers translates.
    hr_on_gemini = HR.with_overrides({"chat_provider": "gemini", "chat_model": "gemini-flash-latest"})
    assert providers.translation_choice(hr_on_gemini).provider == "gemini"
    with pytest.raises(SettingsError, match="OLLAMA_URL"):
        providers.embedder_for("ollama/bge-m3@1024")
    with pytest.raises(SettingsError, match="no provider 'acme'"):
        providers.embedder_for("acme/embed@10")
    providers.close()


def test_a_chosen_embedder_does_not_replace_a_profiles_own_provider(keyed: Settings) -> None:
    settings = replace(keyed, embedding_model="text-embedding-3-large", ollama_url="http://localhost:11435")
    providers = Providers(settings)
    assert providers.default_embedder_id(HR) == "openai/text-embedding-3-large@3072"
    assert providers.default_embedder_id(LEGAL) == "openai/text-embedding-3-large@3072"
    assert providers.default_embedder_id(CIVIL) == "ollama/bge-m3@1024"
    providers.close()


def test_embedders_are_offered_with_their_price_and_what_is_missing(providers: Providers) -> None:
    options = providers.embedder_options(CIVIL)
    assert options[0].id == "builtin/lexical@1536"
    by_id = {option.id: option for option in options}
    assert len(by_id) == len(options) == 7
    small, gemini, ollama = (
        by_id["openai/text-embedding-3-small@1536"],
        by_id["gemini/gemini-embedding-001@768"],
        by_id["ollama/bge-m3@1024"],
    )
    assert (embedding_price(small.provider, small.model), small.missing, small.dimensions) == (
        Decimal("0.02"),
        "",
        1536,
    )
    assert (embedding_price(gemini.provider, gemini.model), gemini.missing) == (Decimal("0.15"), "GEMINI_API_KEY")
    assert (embedding_price(ollama.provider, ollama.model), ollama.missing) == (Decimal(0), "OLLAMA_URL")
    assert [bool(option.missing) for option in options] == sorted(bool(option.missing) for option in options)


@pytest.mark.parametrize("name", ["OPENAI_BASE_URL", "GEMINI_BASE_URL", "OPENROUTER_BASE_URL", "OLLAMA_URL"])
@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "ftp://host/v1", "host:11434", "http://", "http://me:secret@host/v1"]
)
def test_an_address_that_is_none_of_the_web_is_refused(name: str, address: str) -> None:
    settings = replace(Settings(openai_api_key="key"), **cast("dict[str, Any]", {name.lower(): address}))
    with pytest.raises(SettingsError, match=name) as caught:
        Providers(settings)
    assert name == "OPENAI_BASE_URL" or "secret" not in str(caught.value)


def test_redirects_are_not_followed(keyed: Settings, provider_standin: ProviderStandin) -> None:
    provider_standin.fail_next(307, headers={"location": "http://127.0.0.1:1/v1/embeddings"})
    providers = Providers(keyed)
    with pytest.raises(ProviderError):
        providers.embedder_for("openai/text-embedding-3-small@1536").embed(["a"], purpose="document")
    assert provider_standin.calls == {"embeddings": 1}
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
