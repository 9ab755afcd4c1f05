"""A worker killed at random while it ingests documents: what is left and billed must be what an undisturbed one leaves.

    python -m benchmarks.kills FOLDER [--kills 100] [--semantic NAME] [--latency-ms 600]

The documents of FOLDER are ingested once undisturbed, then by workers that are killed with SIGKILL after a random time.
When everything is done before all kills are spent, it begins again with a new collection; every outcome is compared:
documents, chunks, vectors, tags, ledger, and the tokens that the stand-in of the provider has counted itself.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from uuid import uuid4

from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.queue import Queue
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import start_server
from rag.storage.files import FileStore
from rag.storage.migrations import migrate
from rag.types import Collection, Identity, Role, UploadOptions
from tests.kill_storm import TENANT, Files, WorkerProcess, kill_at_random, small_batches, stored
from tests.standins.providers import ProviderStandin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--semantic", action="append", default=[], metavar="NAME", help="cut this file by topic")
    parser.add_argument("--latency-ms", type=float, default=600.0)
    parser.add_argument("--longest-life", type=float, default=5.0, metavar="SECONDS")
    parser.add_argument("--batch", type=int, default=5, help="chunks in a call")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    files: Files = {
        path.name: (path.read_bytes(), "semantic" if path.name in arguments.semantic else "smart")
        for path in sorted(arguments.folder.glob("*.pdf"))
    }
    if not files:
        raise SystemExit(f"There is no PDF in {arguments.folder}.")
    with tempfile.TemporaryDirectory(prefix="kills-") as folder, ProviderStandin() as standin:
        server = start_server(Path(folder) / "data")
        try:
            migrate(server.owner)
            database = Database(server.application, sealing_key(server.owner))
            database.open()
            settings = Settings(
                data_dir=Path(folder) / "data", openai_api_key="sk-test", openai_base_url=standin.openai_url
            )
            return compare(arguments, files, database, settings, standin)
        finally:
            server.stop()


def compare(
    arguments: argparse.Namespace, files: Files, database: Database, settings: Settings, standin: ProviderStandin
) -> int:
    """Run undisturbed, then with kills; print both. 1 when anything differs."""
    with database.transaction(TENANT) as connection:
        connection.execute("INSERT INTO tenants (id, name) VALUES (%s, %s)", (TENANT, TENANT))
    sandbox = Sandbox(ExtractionLimits.of(settings))
    parts = (database, FileStore(settings.data_dir / "files"), Providers(settings), Ledger(database), settings)
    pipeline = IngestionPipeline(*parts, sandbox=sandbox)
    library = DocumentLibrary(*parts[:3], settings, Queue(database, pipeline), sandbox=sandbox)
    admin = Identity(account_id=uuid4(), tenant_id=TENANT, email="a@example.com", name="A", role=Role.ADMIN)
    calm = small_batches(database, library, "Undisturbed", arguments.batch)
    started = time.monotonic()
    for name, (content, method) in files.items():
        pipeline.process_document(
            file=content,
            file_name=name,
            tenant_id=TENANT,
            collection=calm,
            identity=admin,
            options=UploadOptions(chunking_method=method),
        )
    print(f"undisturbed, in {time.monotonic() - started:.0f} s:")
    expected = report(database, calm, standin)
    dice, kills, steps, number, wrong = random.Random(arguments.seed), 0, Counter[str](), 0, 0
    worker = WorkerProcess(database, settings.data_dir, standin.openai_url)
    started = time.monotonic()
    while kills < arguments.kills:
        number += 1
        standin.reset()
        standin.delay_seconds = arguments.latency_ms / 1000
        stormy = small_batches(database, library, f"Killed {number}", arguments.batch)
        storm = kill_at_random(
            library, admin, stormy, files, worker,
            kills=arguments.kills - kills, longest_life_seconds=arguments.longest_life, dice=dice,
        )  # fmt: skip
        kills += storm.kills
        steps += storm.steps
        print(f"ingestion {number}, {storm.kills} kills:")
        same = report(database, stormy, standin) == expected
        repeated = sum(library.get(TENANT, document_id).repeated_calls for document_id in storm.ids)
        print(
            f"    {repeated} calls sent again, {storm.set_aside} times set aside; {'equal' if same else 'DIFFERENT'}",
            flush=True,
        )
        wrong += not same
    sandbox.close()
    print(f"{kills} kills in {time.monotonic() - started:.0f} s; documents not done at a kill, by step: {dict(steps)}")
    print("all equal" if not wrong else f"{wrong} of {number} ingestions differ")
    return 1 if wrong else 0


def report(database: Database, collection: Collection, standin: ProviderStandin) -> object:
    """Print the figures of an ingestion; everything that has to be equal."""
    documents, chunks, bills = found = stored(database, collection)
    calls = {name: count for name, count in standin.calls.items() if count}
    print(
        f"    {len(documents)} documents, {len(chunks)} chunks with {sum(c[4] is not None for c in chunks)} vectors; "
        f"ledger {sum(b[2] for b in bills)} rows, {sum(b[3] + b[4] for b in bills):,} tokens, "
        f"${sum(b[5] for b in bills):.6f}; provider counted {dict(standin.tokens)}, asked {calls}",
        flush=True,
    )
    with database.transaction(TENANT) as connection:
        left = connection.execute("SELECT count(*) FROM paid_calls").fetchone()
    return found, dict(standin.tokens), left


if __name__ == "__main__":
    sys.exit(main())
