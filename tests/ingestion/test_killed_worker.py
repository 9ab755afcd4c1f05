"""A worker of its own process, killed in the middle of work."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from uuid import UUID

from rag.ingestion.queue import Queue
from rag.library.documents import DocumentLibrary
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, DocumentStatus, Identity
from tests import hostile
from tests.forked import forked_python, kill
from tests.patience import patient

PROJECT = Path(__file__).resolve().parents[2]
WORKER = """
import sys, time
from pathlib import Path
from rag.storage.files import FileStore
from rag.ingestion.queue import Queue
from rag.ingestion.pipeline import IngestionPipeline
from rag.storage.database import Database
from rag.providers.registry import Providers
from rag.money.ledger import Ledger
from rag.settings import Settings
settings = Settings(data_dir=Path(sys.argv[2]))
database = Database(sys.argv[1], bytes.fromhex(sys.argv[3]))
database.open()
files = FileStore(settings.data_dir / "files")
pipeline = IngestionPipeline(database, files, Providers(settings), Ledger(database), settings)
Queue(database, pipeline).start_worker()
print("ready", flush=True)
time.sleep(60)
"""


def test_a_worker_that_is_killed_leaves_work_that_another_finishes(
    library: DocumentLibrary,
    queue: Queue,
    admin: Identity,
    collection: Collection,
    database: Database,
    settings: Settings,
) -> None:
    document = library.upload(admin, collection, "rules.pdf", hostile.long_document(150))
    command = [*forked_python(), "-c", WORKER, database.conninfo, str(settings.data_dir), database.key.hex()]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=PROJECT) as worker:
        wait_for(lambda: library.get("demo", document.id).steps_done > 0 or has_read(library, document.id))
        kill(worker)
    queue.start_worker()
    wait_for(lambda: has_read(library, document.id))
    library.confirm(admin, document.id)
    wait_for(lambda: library.get("demo", document.id).status == DocumentStatus.COMPLETED)
    done = library.get("demo", document.id)
    chunks = library.chunks("demo", document.id)
    assert [chunk.chunk_index for chunk in chunks] == list(range(done.chunk_count))
    assert len(library.pages("demo", document.id)) == 150


def has_read(library: DocumentLibrary, document_id: UUID) -> bool:
    return library.get("demo", document_id).status == DocumentStatus.ESTIMATED


def wait_for(condition: object, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + patient(seconds)
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.03)
