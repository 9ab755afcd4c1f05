"""A worker killed at random, again and again: the same chunks, vectors and bills as without the kills."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import hostile
import pytest
from standin import ProviderStandin

from rag.database import Database
from rag.files import FileStore
from rag.ingestion.library import DocumentLibrary
from rag.ingestion.processor import Processor
from rag.ingestion.sandbox import Sandbox
from rag.providers.registry import Providers
from rag.records.ledger import Ledger
from rag.settings import Settings
from rag.types import Collection, DocumentStatus, Identity

PROJECT = Path(__file__).resolve().parents[2]
MODEL = "openai/text-embedding-3-small@256"
PAGES = (12, 20, 28)
WORKER = """
import sys, time
from pathlib import Path
from rag.database import Database
from rag.files import FileStore
from rag.ingestion.jobs import Queue
from rag.ingestion.processor import Processor
from rag.providers.registry import Providers
from rag.records.ledger import Ledger
from rag.settings import Settings
settings = Settings(data_dir=Path(sys.argv[2]), openai_api_key="sk-test", openai_base_url=sys.argv[3])
database = Database(sys.argv[1])
database.open()
processor = Processor(database, FileStore(settings.data_dir / "files"), Providers(settings), Ledger(database), settings)
Queue(database, processor, retry_seconds=(0.1, 0.1), rescue_seconds=0.2, abandoned_seconds=0.2).start_worker()
print("ready", flush=True)
time.sleep(120)
"""


def small_batches(database: Database, library: DocumentLibrary, name: str) -> Collection:
    library.ensure_collection("demo", name, "hr", MODEL, "en")
    with database.transaction("demo") as connection:
        connection.execute(
            "UPDATE collections SET overrides = '{\"embedding_batch_size\": 3}' WHERE name = %s", (name,)
        )
    return library.ensure_collection("demo", name, "hr", MODEL, "en")


def stored(database: Database, collection: Collection) -> tuple[list[Any], list[Any]]:
    """Chunks with their vectors, and the bill by document."""
    with database.transaction("demo") as connection:
        chunks = connection.execute(
            "SELECT d.file_name, c.chunk_index, c.content, c.first_page, c.embedding::text, c.metadata "
            "FROM document_chunks c JOIN documents d ON d.id = c.document_id "
            "WHERE c.collection_id = %s ORDER BY 1, 2",
            (collection.id,),
        ).fetchall()
        bills = connection.execute(
            "SELECT d.file_name, l.operation, count(*), sum(l.input_tokens), sum(l.output_tokens), sum(l.cost) "
            "FROM cost_ledger l JOIN documents d ON d.id = l.document_id "
            "WHERE d.collection_id = %s GROUP BY 1, 2 ORDER BY 1, 2",
            (collection.id,),
        ).fetchall()
    return chunks, bills


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
    documents = {f"{pages}.pdf": hostile.long_document(pages) for pages in PAGES}
    calm, stormy = small_batches(database, library, "Calm"), small_batches(database, library, "Stormy")
    undisturbed = Processor(database, files, Providers(keyed), Ledger(database), keyed, sandbox=sandbox)
    for name, content in documents.items():
        undisturbed.process_document(file=content, file_name=name, tenant_id="demo", collection=calm)
    billed_calm = dict(provider_standin.tokens)

    provider_standin.reset()
    provider_standin.knows_idempotency_keys = knows_keys
    provider_standin.delay_seconds = 0.15
    ids = [library.upload(admin, stormy, name, content).id for name, content in documents.items()]
    command = [sys.executable, "-c", WORKER, database.conninfo, str(settings.data_dir), keyed.openai_base_url]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    dice = random.Random(kills)
    in_the_middle = 0
    deadline = time.monotonic() + 60 + 10 * kills
    while time.monotonic() < deadline:
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=PROJECT) as worker:
            assert worker.stdout is not None
            worker.stdout.readline()
            until = time.monotonic() + (dice.uniform(0.05, 1.2) if in_the_middle < kills else 60)
            while time.monotonic() < until and not all_done(library, ids):
                for document_id in ids:
                    library.confirm(admin, document_id)
                time.sleep(0.03)
            in_the_middle += not all_done(library, ids)
            worker.send_signal(signal.SIGKILL)
        if all_done(library, ids):
            break
    assert all_done(library, ids)

    chunks, bills = stored(database, stormy)
    assert (chunks, bills) == stored(database, calm)
    ledger_tokens = sum(row[3] + row[4] for row in bills)
    answered = sum(provider_standin.tokens.values())
    repeated = sum(library.get("demo", document_id).repeated_calls for document_id in ids)
    if knows_keys:
        assert dict(provider_standin.tokens) == billed_calm
        assert ledger_tokens == answered
    else:
        # What was answered to a process that was dead by then is billed again: never more than was in flight, and
        # never more calls than the documents say were repeated.
        assert ledger_tokens <= answered
        calls = provider_standin.calls["embeddings"] + provider_standin.calls["chat"]
        rows = sum(row[2] for row in bills)
        assert calls - rows <= repeated <= 8 * kills
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT count(*) FROM paid_calls").fetchone() == (0,)


def all_done(library: DocumentLibrary, ids: list[Any]) -> bool:
    return all(library.get("demo", document_id).status is DocumentStatus.COMPLETED for document_id in ids)
