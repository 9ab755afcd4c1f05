"""What `doctor` says about collections whose provider is not there, and about addresses that anybody may invite."""

from __future__ import annotations

import re
import socket
from dataclasses import replace

import pytest

from rag.api import health
from rag.api.health import check_rag_health
from rag.monitoring.checks import Check
from rag.sandbox import confinement
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection
from tests.standins.providers import ProviderStandin


def collection_sentences(parts: Services) -> list[str]:
    return [check.sentence for check in check_rag_health(parts).checks if check.name == "Collection"]


def test_a_collection_whose_provider_is_missing_is_named_with_who_answers(
    database: Database, settings: Settings, collection: Collection, provider_standin: ProviderStandin
) -> None:
    parts = assemble(
        Settings(data_dir=settings.data_dir, openai_api_key="key", openai_base_url=provider_standin.openai_url),
        database,
    )
    parts.documents.ensure_collection("demo", "Notices", "notices", "builtin/lexical@1536", "ko")
    parts.documents.ensure_collection("demo", "Civil", "civil", "ollama/bge-m3@1024", "ko")
    wanted, unreachable = collection_sentences(parts)
    assert wanted == (
        "Answers in Notices should be written by gemini-flash-latest of Gemini, but no key for Gemini is set. "
        "gpt-4o of OpenAI writes them instead. Paste a key on the page Set-up."
    )
    assert unreachable.startswith("Civil: ")
    assert "OLLAMA_URL" in unreachable
    assert not provider_standin.calls
    parts.providers.close()
    parts.pipeline.close()


def test_without_any_key_collections_are_not_complained_about(
    database: Database, settings: Settings, collection: Collection
) -> None:
    parts = assemble(settings, database)
    assert collection_sentences(parts) == []
    parts.pipeline.close()


def test_companies_that_may_invite_any_address_at_supabase_are_named(
    database: Database, settings: Settings, owner_conninfo: str
) -> None:
    parts = assemble(settings, database, owner_conninfo=owner_conninfo)

    def said() -> list[str]:
        return [check.sentence for check in check_rag_health(there).checks if check.name == "Addresses"]

    there = parts
    assert said() == []
    there = replace(parts, settings=replace(settings, sign_in="supabase"))
    assert said()[0].startswith("demo, other may invite any e-mail address")
    parts.tenants.set_domains("demo", ["example.com"])
    assert said()[0].startswith("other may invite any e-mail address")
    parts.tenants.set_domains("other", ["other.example"])
    assert said() == []
    parts.pipeline.close()


def test_a_tesseract_that_could_read_everything_is_named(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = assemble(replace(settings, tesseract="true"), database)  # any program that is there

    def said() -> Check:
        (check,) = [check for check in check_rag_health(parts).checks if check.name == "Text recognition"]
        return check

    monkeypatch.setattr(confinement, "_landlock_version", lambda: 4)
    assert said().state == "ok"
    monkeypatch.setattr(confinement, "_landlock_version", lambda: 0)
    monkeypatch.setattr(confinement, "_account", lambda rules: (65534, 65534))
    assert said().state == "ok"
    monkeypatch.setattr(confinement, "_account", lambda rules: None)  # as an ordinary user
    assert said().state == "warning"
    assert "RAG_TESSERACT=none" in said().detail
    parts.pipeline.close()


def test_providers_are_asked_by_a_free_call_only_where_that_is_wanted(
    database: Database, settings: Settings, provider_standin: ProviderStandin
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{probe.getsockname()[1]}"
    keyed = replace(
        settings,
        openai_api_key="key",
        openai_base_url=provider_standin.openai_url,
        cohere_api_key="key",
        cohere_base_url=provider_standin.cohere_url,
        ollama_url=nobody,
    )
    parts = assemble(keyed, database)

    def answers() -> dict[str, Check]:
        return {c.name: c for c in check_rag_health(parts, probe=True).checks if c.name.endswith(" answers")}

    assert [check for check in check_rag_health(parts).checks if check.name.endswith(" answers")] == []
    assert not provider_standin.calls
    states = {name: check.state for name, check in answers().items()}
    assert states == {"OpenAI answers": "ok", "Cohere answers": "ok", "Ollama answers": "failed"}
    assert set(provider_standin.calls) == {"models"}
    assert provider_standin.usages == []
    provider_standin.fail_next(401, endpoint="models", times=2)
    refused = answers()["OpenAI answers"]
    assert (refused.state, refused.sentence.startswith("The provider rejected the API key.")) == ("failed", True)
    assert refused.sentence.endswith(" ms)")
    parts.providers.close()
    parts.pipeline.close()


def test_a_server_with_too_little_room_for_locks_is_named(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = assemble(settings, database)
    with database.transaction("demo") as connection:
        row = connection.execute("SELECT current_setting('max_locks_per_transaction')::integer").fetchone()
    assert row is not None

    def said() -> list[str]:
        return [check.detail for check in check_rag_health(parts).checks if check.name == "Database locks"]

    monkeypatch.setattr(health, "LOCKS", row[0])
    assert said() == []
    monkeypatch.setattr(health, "LOCKS", row[0] + 1)
    (sentence,) = said()
    assert f"max_locks_per_transaction is {row[0]}." in sentence
    assert f"Set max_locks_per_transaction to {row[0] + 1} " in sentence
    parts.pipeline.close()


def test_what_an_administrator_reads_names_no_variable_and_no_command(
    database: Database, settings: Settings, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LOCKS", 10**6)
    monkeypatch.setattr(confinement, "_landlock_version", lambda: 0)
    monkeypatch.setattr(confinement, "_account", lambda rules: None)
    bare = replace(settings, worker=False, tesseract="true", builtin_embedder="lexical")
    parts = assemble(bare, database)
    checks = check_rag_health(parts).checks
    technical = re.compile(r"[A-Z]{2,}_[A-Z]+|[a-z]_[a-z]|python -m|builtin/|Landlock")
    assert [check.sentence for check in checks if technical.search(check.sentence)] == []
    named = {check.name for check in checks if technical.search(check.detail)}
    assert {"Search model", "Database locks", "Text recognition", "Processing of documents"} <= named
    parts.pipeline.close()


def test_passages_are_counted_of_the_documents_that_answer(
    database: Database, settings: Settings, collection: Collection
) -> None:
    parts = assemble(settings, database)
    with database.transaction("demo") as connection:
        for status, chunks in (("completed", 792), ("superseded", 812)):
            connection.execute(
                "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status, chunk_count) "
                "VALUES ('demo', %s, 'Handbook', 'handbook.pdf', %s, %s, %s)",
                (collection.id, status, status, chunks),
            )
    sentences = [check.sentence for check in check_rag_health(parts).checks if check.name == "Documents"]
    assert sentences == ["1 ready, 792 passages."]
    parts.pipeline.close()
