"""The table of providers: one entry adds a provider everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rag.money.price_list import charge
from rag.profiles.profile import SETTINGS
from rag.providers.registry import connect, provider_of
from rag.settings import Settings, load_settings
from rag.settings.providers import (
    BY_NAME,
    CHAT_PROVIDERS,
    FREE_PROVIDERS,
    PROVIDERS,
    ProviderSpec,
    provider_spec,
)
from rag.types import Usage
from tests import hostile
from tests.patience import patient
from tests.standins.providers import ProviderStandin

PROJECT = Path(__file__).resolve().parents[2]
#: Providers as CONTRIBUTING.md adds them: one that writes and embeds, one that reranks, one that recognises text.
ENTRY = """    ProviderSpec(
        name="newcomer",
        title="Newcomer",
        capabilities=frozenset({"chat", "embed"}),
        key_variable="NEWCOMER_API_KEY",
        address_variable="NEWCOMER_BASE_URL",
        address="https://api.newcomer.example/v1",
        hosts=("newcomer.example",),
        price_id="mistral",
        offered_embedders=("mistral-embed@1024",),
        dimensions={"mistral-embed": 1024},
        maximum_texts=512,
    ),
    ProviderSpec(
        name="ranker",
        title="Ranker",
        capabilities=frozenset({"rerank"}),
        factory="cohere:CohereConnection",
        key_variable="RANKER_API_KEY",
        address_variable="RANKER_BASE_URL",
        models={"rerank": "ranker-1"},
    ),
    ProviderSpec(
        name="scanner",
        title="Scanner",
        capabilities=frozenset({"ocr"}),
        factory="upstage:UpstageConnection",
        probe=False,
        key_variable="SCANNER_API_KEY",
        address_variable="SCANNER_BASE_URL",
        models={"ocr": "scan-1"},
    ),
"""
USES = """
from rag.settings import SecretsFilter, load_settings
from rag.providers.registry import provider_of
from rag.providers.registry import Providers
from rag.money.price_list import charge
from rag.types import Usage
import rag.profiles

HR = rag.profiles.PROFILES["hr"]
bare = Providers(load_settings({}, None))
missing = {option.id: option.missing for option in bare.embedder_options(HR)}
assert missing["newcomer/mistral-embed@1024"] == "NEWCOMER_API_KEY", missing
settings = load_settings({"NEWCOMER_API_KEY": "its-secret-key"}, None)
assert "its-secret-key" not in repr(settings)
assert SecretsFilter(settings).clean("key its-secret-key") == "key ***"
parts = Providers(settings)
profile = HR.with_overrides({"chat_provider": "newcomer", "chat_model": "mistral-large-latest"})
model = parts.chat_model_for(profile)
assert (model.provider, model.model) == ("newcomer", "mistral-large-latest")
assert str(model._client.base_url) == "https://api.newcomer.example/v1/"
embedder = parts.embedder_for("newcomer/mistral-embed@1024")
assert (embedder.provider, embedder._batch_size) == ("newcomer", 512)
assert provider_of("https://api.newcomer.example/v1") == "newcomer"
usage = Usage(provider="newcomer", model="mistral-large-latest", input_tokens=1_000_000)
assert charge("chat", usage).cost > 0

import os
from pathlib import Path
from rag.api.health import titles_for
from rag.errors import ProviderError
from rag.ingestion.loaders.ocr import engine_title, expected_usage, recognition_engine
from rag.retrieval.reranker import is_reranking_enabled

assert titles_for("rerank").endswith("Cohere") and "Ranker" in titles_for("rerank")
keys = {"RANKER_API_KEY": "rank-key", "RANKER_BASE_URL": os.environ["RANKER"], "SCANNER_API_KEY": "scan-key"}
settings = load_settings({**keys, "SCANNER_BASE_URL": os.environ["SCANNER"]}, None)
assert is_reranking_enabled(settings)
parts = Providers(settings)
reranker = parts.reranker_for(HR)
assert (reranker.provider, reranker.model) == ("ranker", "ranker-1")
ranking = reranker.rank("vacation", ["Vacation days", "Parking"], limit=1)
assert (ranking.results[0][0], ranking.usage.provider) == (0, "ranker"), ranking
chosen = parts.reranker_for(HR.with_overrides({"rerank_model": "ranker-2"}))
assert chosen.model == "ranker-2"
assert [probe.provider for probe in parts.probe()] == ["ranker"]

engine = recognition_engine(settings)
assert (engine, engine_title(engine)) == ("scanner", "Scanner")
assert expected_usage(engine, 3) == Usage(provider="scanner", model="scan-1", pages=3)
recogniser = parts.recogniser()
assert (recogniser.provider, recogniser.model) == ("scanner", "scan-1")
parsed = recogniser.parse(Path(os.environ["SCAN"]).read_bytes(), 1)
assert parsed.usage.provider == "scanner" and parsed.usage.pages == 1
parts.close()
"""


def test_one_entry_adds_a_provider_everywhere(tmp_path: Path, provider_standin: ProviderStandin) -> None:
    shutil.copytree(PROJECT / "rag", tmp_path / "rag", ignore=shutil.ignore_patterns("__pycache__", "*.pdf", "*.png"))
    table = tmp_path / "rag" / "settings" / "providers.py"
    start = "PROVIDERS: tuple[ProviderSpec, ...] = (\n"
    text = table.read_text("utf-8")
    assert start in text
    table.write_text(text.replace(start, start + ENTRY), "utf-8")
    command = [sys.executable, "-B", "-c", USES]
    (tmp_path / "scan.pdf").write_bytes(hostile.scanned_page())
    environment = {
        **os.environ,
        "RANKER": provider_standin.cohere_url,
        "SCANNER": f"http://127.0.0.1:{provider_standin.port}",
        "SCAN": "scan.pdf",
    }
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=patient(120), check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("spec", PROVIDERS, ids=lambda spec: spec.name)
def test_an_entry_is_documented_and_has_settings(spec: ProviderSpec) -> None:
    listed = (PROJECT / "docs" / "configuration.md").read_text("utf-8")
    settings = load_settings({name: "https://example.com" for name in (spec.address_variable,) if name}, None)
    for variable in (spec.key_variable, spec.address_variable):
        assert not variable or f"`{variable}`" in listed, variable
    if spec.address_variable:
        assert settings.address_of(spec.name) == "https://example.com"


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
    assert set(connections.by_name) == {"gemini", "openrouter"}
    connections.close()
