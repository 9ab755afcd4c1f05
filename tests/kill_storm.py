"""A worker killed at random moments, again and again, against one that nobody disturbs: the test's and the benchmark's.

Which process works is the only difference: both read the same files, cut, embed and tag them with the same stand-in.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from rag.library.documents import DocumentLibrary
from rag.storage.database import Database
from rag.types import ChunkingMethod, Collection, Document, DocumentStatus, Identity, UploadOptions
from tests.forked import forked_python, kill
from tests.patience import patient

PROJECT = Path(__file__).resolve().parents[1]
TENANT = "demo"
MODEL = "openai/text-embedding-3-small@256"
#: What a dead process left is looked for sooner than in the product, so that the kills are not spent on waiting.
WORKER = """
import os, sys, time
from pathlib import Path
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.ingestion.queue import Queue
from rag.ingestion.pipeline import IngestionPipeline
from rag.providers.registry import Providers
from rag.money.ledger import Ledger
from rag.settings import Settings
settings = Settings(data_dir=Path(sys.argv[2]), openai_api_key="sk-test", openai_base_url=sys.argv[3])
database = Database(sys.argv[1], bytes.fromhex(sys.argv[4]))
database.open()
files = FileStore(settings.data_dir / "files")
pipeline = IngestionPipeline(database, files, Providers(settings), Ledger(database), settings)
Queue(database, pipeline, retry_seconds=(0.1, 0.1), rescue_seconds=0.2, abandoned_seconds=0.2).start_worker()
print("ready", flush=True)
parent = os.getppid()
while os.getppid() == parent:
    time.sleep(0.2)
"""
Files = Mapping[str, tuple[bytes, ChunkingMethod]]
"""Content and way of cutting, by file name."""


@dataclass(frozen=True)
class WorkerProcess:
    """How to start a worker on one database."""

    database: Database
    data_dir: Path
    openai_url: str

    def start(self) -> subprocess.Popen[bytes]:
        """A worker that is ready. Kill it with `forked.kill`."""
        command = [*forked_python(), "-c", WORKER, self.database.conninfo, str(self.data_dir), self.openai_url]
        command.append(self.database.key.hex())
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=PROJECT)
        assert process.stdout is not None
        process.stdout.readline()
        return process


@dataclass
class Storm:
    """What became of it. `steps` counts the steps that documents were in at the moment of a kill.

    `set_aside` counts how often a document was quarantined, for dying again and again is all the product can see of a
    document whose process is killed at every start; an administrator tries it again, and so does this.
    """

    ids: list[UUID]
    kills: int = 0
    set_aside: int = 0
    steps: Counter[str] = field(default_factory=Counter)


def small_batches(database: Database, library: DocumentLibrary, name: str, size: int = 3) -> Collection:
    """A collection whose documents take many paid calls."""
    library.ensure_collection(TENANT, name, "hr", MODEL, "en")
    with database.transaction(TENANT) as connection:
        connection.execute(
            "UPDATE collections SET overrides = jsonb_build_object('embedding_batch_size', %s::int) WHERE name = %s",
            (size, name),
        )
    return library.ensure_collection(TENANT, name, "hr", MODEL, "en")


def kill_at_random(
    library: DocumentLibrary,
    admin: Identity,
    collection: Collection,
    files: Files,
    worker: WorkerProcess,
    *,
    kills: int,
    longest_life_seconds: float,
    dice: random.Random,
) -> Storm:
    """Have the files ingested by workers of which the first `kills` are killed in the middle of work."""
    ids = [
        library.upload(admin, collection, name, content, UploadOptions(chunking_method=method)).id
        for name, (content, method) in files.items()
    ]
    storm = Storm(ids)
    deadline = time.monotonic() + patient(120 + 10 * kills)
    while not is_over(documents := documents_of(library, ids)):
        assert time.monotonic() < deadline, [(d.file_name, d.status, d.step, d.message) for d in documents]
        with worker.start() as process:
            life = dice.uniform(0.05, longest_life_seconds) if storm.kills < kills else 60.0
            until = time.monotonic() + life
            while time.monotonic() < until and not is_over(documents := documents_of(library, ids)):
                for document in documents:
                    if document.status is DocumentStatus.ESTIMATED:
                        library.confirm(admin, document.id)
                    elif document.status is DocumentStatus.FAILED and "set aside" in document.message:
                        storm.set_aside += 1
                        library.retry(admin, document.id)
                time.sleep(0.03)
            kill(process)
        if not is_over(documents) and storm.kills < kills:
            storm.kills += 1
            storm.steps.update(d.step.value for d in documents if d.status is not DocumentStatus.COMPLETED)
    return storm


def documents_of(library: DocumentLibrary, ids: Sequence[UUID]) -> list[Document]:
    wanted = set(ids)
    return [document for document in library.list(TENANT) if document.id in wanted]


def is_over(documents: Sequence[Document]) -> bool:
    return all(document.status is DocumentStatus.COMPLETED for document in documents)


def stored(database: Database, collection: Collection) -> tuple[list[Any], list[Any], list[Any]]:
    """Documents, chunks with their vectors and tags, and the bill by document as the provider counted it."""
    with database.transaction(TENANT) as connection:
        documents = connection.execute(
            # Which questions are suggested depends on what else is found at that moment.
            "SELECT file_name, status, chunk_count, metadata - '{suggested_questions,suggested_elsewhere}'::text[] "
            "FROM documents WHERE collection_id = %s ORDER BY 1",
            (collection.id,),
        ).fetchall()
        chunks = connection.execute(
            "SELECT d.file_name, c.chunk_index, c.content, c.first_page, c.embedding::text, c.metadata "
            "FROM document_chunks c JOIN documents d ON d.id = c.document_id "
            "WHERE c.collection_id = %s ORDER BY 1, 2",
            (collection.id,),
        ).fetchall()
        bills = connection.execute(
            "SELECT d.file_name, l.operation, count(*), sum(l.input_tokens), sum(l.output_tokens), sum(l.cost) "
            "FROM cost_ledger l JOIN documents d ON d.id = l.document_id "
            "WHERE d.collection_id = %s AND NOT l.is_estimated GROUP BY 1, 2 ORDER BY 1, 2",
            (collection.id,),
        ).fetchall()
    return documents, chunks, bills
