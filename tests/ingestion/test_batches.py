"""How a document's texts reach the provider: how many in a request, how far apart, and again after being refused."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.queue import Queue
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import ChunkingMethod, DocumentStatus, Identity, UploadOptions
from tests import hostile
from tests.patience import patient
from tests.standins.providers import ProviderStandin

MODEL = "openai/text-embedding-3-small@256"


@pytest.fixture
def paid(
    database: Database, files: FileStore, settings: Settings, sandbox: Sandbox, provider_standin: ProviderStandin
) -> IngestionPipeline:
    keyed = replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)
    provider_standin.reply(json.dumps({"summary": "s", "topics": [], "questions": []}))
    return IngestionPipeline(database, files, Providers(keyed), Ledger(database), keyed, sandbox=sandbox)


def sizes(provider_standin: ProviderStandin) -> list[int]:
    return sorted(
        (len(body["input"]) for name, body in provider_standin.requests if name == "embeddings"), reverse=True
    )


@pytest.mark.parametrize(("profile", "largest", "pause_seconds"), [("hr", 100, 0.0), ("portfolio", 50, 0.1)])
def test_texts_are_sent_in_full_batches_with_the_profiles_pause_between_them(
    profile: str,
    largest: int,
    pause_seconds: float,
    paid: IngestionPipeline,
    library: DocumentLibrary,
    provider_standin: ProviderStandin,
) -> None:
    answered: list[float] = []

    def note(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
        answered.append(time.monotonic())
        return data

    provider_standin.alter_embeddings = note
    collection = library.ensure_collection("demo", "Batches", profile, MODEL, "en")
    method: ChunkingMethod = "smart"
    result = paid.process_document(
        file=hostile.long_document(56),
        file_name="a.pdf",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(chunking_method=method, generate_metadata=False),
    )
    full, rest = divmod(result.chunk_count, largest)
    assert full >= 1
    assert sizes(provider_standin) == [largest] * full + [rest] * bool(rest)
    apart = [later - earlier for earlier, later in pairwise(answered)]
    assert all(seconds >= pause_seconds for seconds in apart)


def test_a_cut_by_topic_keeps_to_the_batches_too(
    paid: IngestionPipeline, library: DocumentLibrary, provider_standin: ProviderStandin
) -> None:
    collection = library.ensure_collection("demo", "Batches", "hr", MODEL, "en")
    paid.process_document(
        file=hostile.long_document(20),
        file_name="a.pdf",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(chunking_method="semantic", generate_metadata=False),
    )
    assert max(sizes(provider_standin)) == 100


def test_a_long_wait_that_the_provider_asks_for_is_waited_in_the_queue_and_said(
    database: Database,
    paid: IngestionPipeline,
    library: DocumentLibrary,
    admin: Identity,
    provider_standin: ProviderStandin,
) -> None:
    queue = Queue(database, paid, retry_seconds=(0.05, 0.05), rescue_seconds=0.2, abandoned_seconds=0.3)
    began = datetime.now(UTC)
    collection = library.ensure_collection("demo", "Batches", "hr", MODEL, "en")
    provider_standin.fail_next(429, times=1, headers={"retry-after": "90"}, endpoint="embeddings")
    queue.start_worker()
    try:
        document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
        deadline = time.monotonic() + patient(30)
        while library.queue_state("demo").later == 0 and time.monotonic() < deadline:
            library.confirm(admin, document.id)
            time.sleep(0.03)
        state = library.queue_state("demo")
        assert state.next_try_at is not None
        assert began + timedelta(seconds=60) < state.next_try_at < datetime.now(UTC) + timedelta(seconds=95)
        waiting = library.get("demo", document.id)
        assert waiting.status is DocumentStatus.PROCESSING
        assert "in 90 seconds" in waiting.message
        assert provider_standin.calls["embeddings"] == 1
        # Another document does not wait for this one.
        other = library.upload(admin, collection, "b.pdf", hostile.leave_policy("Something else."))
        while library.get("demo", other.id).status is not DocumentStatus.COMPLETED and time.monotonic() < deadline:
            library.confirm(admin, other.id)
            time.sleep(0.03)
        assert library.get("demo", other.id).status is DocumentStatus.COMPLETED
    finally:
        queue.stop_worker()


def test_a_try_that_fails_leaves_the_rest_to_the_job_that_waits_already(
    database: Database,
    paid: IngestionPipeline,
    library: DocumentLibrary,
    admin: Identity,
    provider_standin: ProviderStandin,
) -> None:
    """Two jobs of one document cannot wait: who says yes while it is read adds one beside the one that runs."""
    queue = Queue(database, paid, retry_seconds=(0.05, 0.05), rescue_seconds=600, abandoned_seconds=600)
    began = datetime.now(UTC)
    collection = library.ensure_collection("demo", "Batches", "hr", MODEL, "en")
    provider_standin.fail_next(429, times=1, headers={"retry-after": "90"}, endpoint="embeddings")
    asked = provider_standin.meet("embeddings", 2)
    queue.start_worker()
    try:
        document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
        deadline = time.monotonic() + patient(30)
        while provider_standin.calls["embeddings"] == 0 and time.monotonic() < deadline:
            library.confirm(admin, document.id)
            time.sleep(0.01)
        queue.enqueue("demo", document.id)
        provider_standin.meetings.clear()
        asked.wait()
        while library.queue_state("demo").running and time.monotonic() < deadline:
            time.sleep(0.03)
        state = library.queue_state("demo")
        assert (state.running, state.waiting, state.later) == (0, 0, 1)
        assert state.next_try_at is not None
        assert state.next_try_at - began > timedelta(seconds=60)
        assert provider_standin.calls["embeddings"] == 1
    finally:
        queue.stop_worker()
