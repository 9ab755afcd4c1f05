"""A worker killed at random, again and again: the same chunks, vectors and bills as without the kills."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.queue import DOCUMENTS_AT_ONCE
from rag.library.documents import DocumentLibrary
from rag.money.durable_calls import PREPARED
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.providers.retry import MAXIMUM_IN_FLIGHT
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Identity, UploadOptions
from tests import hostile
from tests.kill_storm import Files, WorkerProcess, kill_at_random, small_batches, stored
from tests.standins.providers import ProviderStandin

FILES: Files = {
    "12.pdf": (hostile.long_document(12), "smart"),
    "20.pdf": (hostile.long_document(20), "smart"),
    "8.pdf": (hostile.long_document(8), "semantic"),
}


@pytest.mark.parametrize("knows_keys", [True, False], ids=["idempotency keys", "no idempotency keys"])
def test_a_worker_killed_at_random_leaves_what_an_undisturbed_one_does(
    knows_keys: bool,
    database: Database,
    files: FileStore,
    settings: Settings,
    sandbox: Sandbox,
    provider_standin: ProviderStandin,
    library: DocumentLibrary,
    admin: Identity,
    request: pytest.FixtureRequest,
) -> None:
    kills: int = request.config.getoption("--kills") if knows_keys else 3
    keyed = replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)
    calm, stormy = small_batches(database, library, "Calm"), small_batches(database, library, "Stormy")
    undisturbed = IngestionPipeline(database, files, Providers(keyed), Ledger(database), keyed, sandbox=sandbox)
    for name, (content, method) in FILES.items():
        undisturbed.process_document(
            file=content,
            file_name=name,
            tenant_id="demo",
            collection=calm,
            options=UploadOptions(chunking_method=method),
        )
    billed_calm = dict(provider_standin.tokens)

    provider_standin.reset()
    provider_standin.knows_idempotency_keys = knows_keys
    provider_standin.delay_seconds = 0.15
    worker = WorkerProcess(database, settings.data_dir, keyed.openai_base_url)
    storm = kill_at_random(
        library, admin, stormy, FILES, worker, kills=kills, longest_life_seconds=2.0, dice=random.Random(kills)
    )

    bills = stored(database, stormy)[2]
    for outcome, expected in zip(stored(database, stormy), stored(database, calm), strict=True):
        assert len(outcome) == len(expected)
        assert [row for row in outcome if row not in expected] == []
    ledger_tokens = sum(row[3] + row[4] for row in bills)
    answered = sum(provider_standin.tokens.values())
    repeated = sum(library.get("demo", document_id).repeated_calls for document_id in storm.ids)
    if knows_keys:
        assert dict(provider_standin.tokens) == billed_calm
        assert ledger_tokens == answered
    else:
        # What was answered to a process that was dead by then is billed again: never more calls than the documents
        # say were repeated, and of these never more than were in flight or prepared for it.
        assert ledger_tokens <= answered
        calls = provider_standin.calls["embeddings"] + provider_standin.calls["chat"]
        rows = sum(row[2] for row in bills)
        at_once = DOCUMENTS_AT_ONCE * (MAXIMUM_IN_FLIGHT + PREPARED)
        assert calls - rows <= repeated <= at_once * kills
    with database.transaction("demo") as connection:
        # What nobody knows the end of is an estimate, and what a document says it cost has it too.
        estimates = connection.execute(
            "SELECT count(*) FROM cost_ledger WHERE is_estimated AND document_id = ANY (%s)", (storm.ids,)
        ).fetchone()
        assert estimates is not None
        assert (
            provider_standin.calls["embeddings"] + provider_standin.calls["chat"] - sum(r[2] for r in bills)
            <= (estimates[0])
        )
        assert (
            connection.execute(
                "SELECT d.id FROM documents d WHERE (d.costs ->> 'total')::numeric <> "
                "(SELECT sum(l.cost) FROM cost_ledger l WHERE l.document_id = d.id)"
            ).fetchall()
            == []
        )
        assert connection.execute("SELECT count(*) FROM paid_calls").fetchone() == (0,)
