"""Profiles in words, and their values as they are typed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from rag.errors import InvalidInput
from rag.profiles import CIVIL, HR, LEGAL, NOTICES, PORTFOLIO, PROFILES
from rag.profiles.profile import SETTINGS, Profile
from rag.providers.builtin_embedders import is_installed
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.ui.collection_profile import embedder_line, embedder_name, sentences_on, shortcomings
from rag.ui.collection_settings import LISTS, shown_value, text_of, value_from
from tests.standins.providers import ProviderStandin


@pytest.fixture
def bare() -> Iterator[Providers]:
    made = Providers(Settings())
    yield made
    made.close()


def words(profile: Profile, providers: Providers) -> str:
    return " ".join(sentence for _, sentence in sentences_on(profile, providers))


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        (
            HR,
            "Documents are split at paragraphs and sentences into passages of up to 1,000 characters. Each passage "
            "repeats 200",
        ),
        (HR, "The best 5 of the 20 found are used for the answer."),
        (
            HR,
            "The search uses each question in the language in which it was asked. "
            "Answers quote the documents word for word",
        ),
        (
            NOTICES,
            "The search uses each question in the language in which it was asked. "
            "Answers quote the documents word for word",
        ),
        (
            NOTICES,
            "up to an age of 7 days, and less after that. Pinned documents come first",
        ),
        (
            PORTFOLIO,
            "Each of these kinds of document is split in its own way: resume, linkedin, journey, github, generic",
        ),
        (PORTFOLIO, "match a category, this category is used to narrow the results."),
        (LEGAL, "A model adds tags to each passage: topic, crime type, summary and keywords."),
        (CIVIL, "Passages stay in the order in which the search found them."),
    ],
)
def test_a_profile_says_what_it_means(bare: Providers, profile: Profile, sentence: str) -> None:
    assert sentence in words(profile, bare)


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        (HR, "are translated by gpt-4o-mini before the search. Answers are in the question's language."),
        (NOTICES, "Answers are in Korean unless asked otherwise."),
    ],
)
def test_a_language_model_translates_questions_and_answers(
    provider_standin: ProviderStandin, profile: Profile, sentence: str
) -> None:
    providers = Providers(Settings(openai_api_key="key", openai_base_url=provider_standin.openai_url))
    assert sentence in words(profile, providers)
    providers.close()


def test_every_profile_has_a_title() -> None:
    assert len({profile.title for profile in PROFILES.values()}) == len(PROFILES)


def test_what_is_missing_names_the_key_that_adds_it_and_where_it_is_pasted(bare: Providers) -> None:
    keys = [re.search(r"paste a key of (\w+) on the page Set-up", s) for s in shortcomings(HR, bare)]
    assert [found and found[1] for found in keys] == ["OpenAI", "OpenAI", "Cohere"]
    assert "OLLAMA_URL" in shortcomings(CIVIL, bare)[0]
    assert "a key of Gemini" in " ".join(shortcomings(LEGAL, bare))


def test_what_the_built_in_model_compares_is_said_alike_everywhere(bare: Providers) -> None:
    by_words = Providers(Settings(), with_meaning=False)
    if is_installed():
        assert "searched by meaning and by keywords" in words(HR, bare)
    assert "searched by keywords." in words(HR, by_words)
    (builtin,) = [o for o in by_words.embedder_options(HR) if o.provider == "builtin"]
    assert embedder_line(builtin).startswith("Built in: compares words, not meaning")
    by_words.close()


def test_who_answers_instead_is_named(provider_standin: ProviderStandin) -> None:
    providers = Providers(Settings(openai_api_key="key", openai_base_url=provider_standin.openai_url))
    assert any(
        "Until then, gpt-4o by OpenAI writes answers." in sentence for sentence in shortcomings(NOTICES, providers)
    )
    assert "gpt-4o writes answers of at most 2,048 tokens" in words(NOTICES, providers)
    assert "8,000 characters of passages" in words(PORTFOLIO, providers)
    providers.close()


def test_embedders_are_named_with_dimensions_and_price(bare: Providers) -> None:
    lines = {option.id: embedder_line(option) for option in bare.embedder_options(HR)}
    assert lines["openai/text-embedding-3-small@1536"] == (
        "text-embedding-3-small by OpenAI · 1,536 dimensions · $0.02 per million tokens"
    )
    assert lines["ollama/bge-m3@1024"].endswith("1,024 dimensions · free")
    compared = "words and meaning" if is_installed() else "words, not meaning"
    assert lines["builtin/lexical@1536"].startswith(f"Built in: compares {compared}")
    assert embedder_name("ollama/bge-m3@1024") == "bge-m3 by Ollama, 1,024 dimensions"


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda p: p.name)
def test_what_is_shown_for_editing_reads_back_as_it_was(profile: Profile) -> None:
    for field in SETTINGS.values():
        value = profile.value(field.name)
        assert "\n" not in shown_value(field, value)
        if not field.locked and (field.kind in LISTS or field.kind == "text") and value:
            typed = value_from(field, text_of(field, value))
            assert profile.changed(**{field.name: typed}).value(field.name) == value


@pytest.mark.parametrize(
    ("name", "text"), [("recency_steps", "7 days"), ("year_boosts", "x"), ("category_boosts", "a = b")]
)
def test_a_line_that_cannot_be_read_is_named(name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        value_from(SETTINGS[name], text)
