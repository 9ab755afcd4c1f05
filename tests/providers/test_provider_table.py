"""The table of providers: one entry adds a provider everywhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from rag.money.price_list import charge
from rag.profile import SETTINGS
from rag.providers.connections import connect, provider_of
from rag.settings import Settings, load_settings
from rag.settings.providers import (
    BY_NAME,
    CHAT_PROVIDERS,
    FREE_PROVIDERS,
    PROVIDERS,
    Protocol,
    ProviderSpec,
    provider_spec,
)
from rag.types import Usage

PROJECT = Path(__file__).resolve().parents[2]
#: A provider as CONTRIBUTING.md adds one.
ENTRY = """    ProviderSpec(
        name="mistral",
        title="Mistral",
        capabilities=frozenset({"chat", "embed"}),
        key_variable="MISTRAL_API_KEY",
        address_variable="MISTRAL_BASE_URL",
        address="https://api.mistral.ai/v1",
        hosts=("mistral.ai",),
        offered_embedders=("mistral-embed@1024",),
        dimensions={"mistral-embed": 1024},
        maximum_texts=512,
    ),
"""
USES = """
from rag.settings import SecretsFilter, load_settings
from rag.providers.connections import provider_of
from rag.providers.registry import Providers
from rag.money.price_list import charge
from rag.types import Usage
import rag.profiles

HR = rag.profiles.PROFILES["hr"]
bare = Providers(load_settings({}, None))
missing = {option.id: option.missing for option in bare.embedder_options(HR)}
assert missing["mistral/mistral-embed@1024"] == "MISTRAL_API_KEY", missing
settings = load_settings({"MISTRAL_API_KEY": "its-secret-key"}, None)
assert "its-secret-key" not in repr(settings)
assert SecretsFilter(settings).clean("key its-secret-key") == "key ***"
parts = Providers(settings)
profile = HR.with_overrides({"chat_provider": "mistral", "chat_model": "mistral-large-latest"})
model = parts.chat_model_for(profile)
assert (model.provider, model.model) == ("mistral", "mistral-large-latest")
assert str(model._client.base_url) == "https://api.mistral.ai/v1/"
embedder = parts.embedder_for("mistral/mistral-embed@1024")
assert (embedder.provider, embedder._batch_size) == ("mistral", 512)
assert provider_of("https://api.mistral.ai/v1") == "mistral"
usage = Usage(provider="mistral", model="mistral-large-latest", input_tokens=1_000_000)
assert charge("chat", usage).cost > 0
"""


def test_one_entry_adds_a_provider_everywhere(tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "rag", tmp_path / "rag", ignore=shutil.ignore_patterns("__pycache__", "*.pdf", "*.png"))
    table = tmp_path / "rag" / "settings" / "providers.py"
    start = "PROVIDERS: tuple[ProviderSpec, ...] = (\n"
    text = table.read_text("utf-8")
    assert start in text
    table.write_text(text.replace(start, start + ENTRY), "utf-8")
    command = [sys.executable, "-B", "-c", USES]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("spec", PROVIDERS, ids=lambda spec: spec.name)
def test_an_entry_is_documented_and_has_settings(spec: ProviderSpec) -> None:
    readme = (PROJECT / "README.md").read_text("utf-8")
    settings = load_settings({name: "https://example.com" for name in (spec.address_variable,) if name}, None)
    for variable in (spec.key_variable, spec.address_variable):
        assert not variable or f"`{variable}`" in readme, variable
    if spec.address_variable:
        assert settings.address_of(spec.name) == "https://example.com"
    assert spec.protocol in get_args(Protocol)


def test_profiles_name_the_providers_that_answer() -> None:
    choices = {name: setting.choices for name, setting in SETTINGS.items()}
    assert choices["chat_provider"] == choices["translation_provider"] == CHAT_PROVIDERS
    assert CHAT_PROVIDERS == ("openai", "gemini", "openrouter", "ollama")


def test_a_provider_without_a_bill_costs_nothing() -> None:
    assert {"builtin", "ollama"} == FREE_PROVIDERS
    assert charge("chat", Usage(provider="ollama", model="llama3", input_tokens=5)).cost == 0


def test_a_host_that_only_ends_like_a_provider_is_not_it() -> None:
    assert provider_of("https://generativelanguage.googleapis.com/v1") == "gemini"
    assert provider_of("https://evilgoogleapis.com/v1") == "openai"


def test_a_provider_out_of_the_table_has_the_limits_of_openai() -> None:
    assert provider_spec("somewhere").maximum_texts == BY_NAME["openai"].maximum_texts


def test_clients_are_made_for_the_keys_there_are() -> None:
    connections = connect(Settings(gemini_api_key="k", openrouter_api_key="k"))
    assert set(connections.clients) == {"gemini", "openrouter"}
    connections.close()
