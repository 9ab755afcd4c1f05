"""Two applications and three workers on one database, a worker killed now and then: nothing lost, doubled or stale."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from contextlib import ExitStack
from typing import Any

import pytest

from rag.library.documents import DocumentLibrary
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import DocumentStatus
from tests.forked import forked_python, kill
from tests.kill_storm import MODEL, PROJECT, WorkerProcess
from tests.standins.providers import ProviderStandin

DOCUMENTS = 6
#: Uploads, says yes, deletes what is ready and what is being worked on, and searches all the while.
APPLICATION = """
import json, sys, threading, time
from pathlib import Path
from uuid import uuid4
from tests import hostile
from rag.storage.database import Database
from rag.errors import DocumentAlreadyStored
from rag.storage.files import FileStore
from rag.ingestion.queue import Queue
from rag.library.documents import DocumentLibrary
from rag.ingestion.pipeline import IngestionPipeline
from rag.storage.files import FileStore
from rag.ingestion.queue import Queue
from rag.library.documents import DocumentLibrary
from rag.ingestion.pipeline import IngestionPipeline
from rag.providers.registry import Providers
from rag.money.ledger import Ledger
from rag.retrieval.hybrid_search import SearchQuery, keyword_search
from rag.settings import Settings
from rag.types import DocumentStatus, Identity, Role, Scope
conninfo, data_dir, url, number, documents = sys.argv[1:-1]
settings = Settings(data_dir=Path(data_dir), openai_api_key="sk-test", openai_base_url=url)
database = Database(conninfo, bytes.fromhex(sys.argv[-1]))
database.open()
parts = (database, FileStore(settings.data_dir / "files"), Providers(settings), Ledger(database), settings)
pipeline = IngestionPipeline(*parts)
queue = Queue(database, pipeline, retry_seconds=(0.1, 0.1), rescue_seconds=0.2, abandoned_seconds=0.2)
library = DocumentLibrary(*parts[:3], settings, queue)
admin = Identity(account_id=uuid4(), tenant_id="demo", email="a@example.com", name="A", role=Role.ADMIN)
collection = library.collections("demo")[0]
queue.start_worker()
last_found, deleted, stopped = {}, {}, threading.Event()

def search():
    query = SearchQuery(text="zebra allowance", language="en", vector=None, embedding_model=collection.embedding_model)
    scope = Scope(tenant_id="demo", collection_ids=(collection.id,))
    while not stopped.wait(0.02):
        began = time.time()
        for found in keyword_search(database, query, scope=scope, limit=50):
            last_found[str(found.document_id)] = began

def delete(document_id):
    library.delete(admin, document_id)
    deleted[str(document_id)] = time.time()

searching = threading.Thread(target=search)
searching.start()
waiting = {}
for index in range(int(documents)):
    text = f"The special allowance called zebra is {index + 2} days of paid leave for people of office {number}."
    waiting[library.upload(admin, collection, f"{number}-{index}.pdf", hostile.leave_policy(text)).id] = index
    try:
        shared = hostile.leave_policy(f"The special allowance called zebra, rule {index}, is the same for everybody.")
        waiting[library.upload(admin, collection, f"shared-{index}.pdf", shared).id] = -1
    except DocumentAlreadyStored:
        pass
print("uploaded", flush=True)
while waiting:
    for document_id, index in list(waiting.items()):
        document = library.get("demo", document_id)
        if document.status is DocumentStatus.ESTIMATED:
            library.confirm(admin, document_id)
            if index == 1:
                delete(document_id)
                del waiting[document_id]
        elif document.status is DocumentStatus.COMPLETED:
            if index % 3 == 0:
                delete(document_id)
            del waiting[document_id]
        elif document.status is DocumentStatus.FAILED:
            library.retry(admin, document_id)
    time.sleep(0.02)
print("done", flush=True)
sys.stdin.readline()
stopped.set()
searching.join()
print(json.dumps({"deleted": deleted, "last_found": last_found}), flush=True)
queue.stop_worker()
"""


@pytest.mark.parametrize("seed", [1])
def test_two_applications_and_three_workers_do_every_job_once_though_one_is_killed(
    seed: int,
    database: Database,
    settings: Settings,
    provider_standin: ProviderStandin,
    library: DocumentLibrary,
    request: pytest.FixtureRequest,
) -> None:
    dice = random.Random(seed)
    library.ensure_collection("demo", "Together", "hr", MODEL, "en")
    provider_standin.delay_seconds = 0.1
    worker = WorkerProcess(database, settings.data_dir, provider_standin.openai_url)
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}{os.pathsep}{PROJECT / 'tests'}"}
    kills: int = max(3, request.config.getoption("--kills") // 3)
    with ExitStack() as stack:

        def watched(process: subprocess.Popen[Any]) -> subprocess.Popen[Any]:
            """The process, that ends with the test."""
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        workers = [watched(worker.start()) for _ in range(3)]
        applications: list[subprocess.Popen[str]] = []
        for number in "12":
            arguments = [database.conninfo, str(settings.data_dir), worker.openai_url, number, str(DOCUMENTS)]
            arguments.append(database.key.hex())
            process = subprocess.Popen(
                [*forked_python(), "-c", APPLICATION, *arguments], env=environment, cwd=PROJECT, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
            applications.append(watched(process))
        assert applications[0].stdout is not None
        assert applications[0].stdout.readline() == "uploaded\n"
        for _ in range(kills):
            time.sleep(dice.uniform(0.1, 0.4))
            place = dice.randrange(3)
            kill(workers[place])
            workers[place] = watched(worker.start())
        said = [finish(application) for application in applications]

    deleted = {document_id: at for one in said for document_id, at in one["deleted"].items()}
    assert len(deleted) == 6  # of each application: two that were ready and one that was being worked on
    for one in said:
        stale = {d: one["last_found"][d] - at for d, at in deleted.items() if one["last_found"].get(d, 0) > at}
        assert stale == {}
    documents = library.list("demo")
    assert len(documents) == 3 * DOCUMENTS - len(deleted)
    assert {document.status for document in documents} == {DocumentStatus.COMPLETED}
    for document in documents:
        chunks = library.chunks("demo", document.id)
        assert [chunk.chunk_index for chunk in chunks] == list(range(document.chunk_count)) != []
    # A call that was under way when its process was killed is a row of its own, marked as an estimate.
    with database.transaction("demo") as connection:
        bills = connection.execute(
            "SELECT document_id::text, operation, count(*) FROM cost_ledger WHERE NOT is_estimated GROUP BY 1, 2"
        ).fetchall()
        tokens = connection.execute(
            "SELECT sum(input_tokens + output_tokens) FROM cost_ledger WHERE NOT is_estimated"
        ).fetchone()
        jobs = connection.execute("SELECT count(*) FROM procrastinate_jobs WHERE status = 'failed'").fetchone()
    assert {count for _, _, count in bills} == {1}
    billed = {(document_id, operation) for document_id, operation, _ in bills}
    assert {(str(d.id), operation) for d in documents for operation in ("embedding", "tagging")} <= billed
    assert tokens == (sum(provider_standin.tokens.values()),)
    assert jobs == (0,)
    left = [path for path in (settings.data_dir / "files").rglob("*") if path.is_file()]
    assert len(left) == len(documents)


def finish(application: subprocess.Popen[str]) -> dict[str, dict[str, float]]:
    """Wait until it has all its documents, and hear what it has deleted and found."""
    assert application.stdin is not None
    assert application.stdout is not None
    lines = iter(application.stdout.readline, "")
    assert "done\n" in lines
    time.sleep(0.1)  # it goes on searching
    application.stdin.write("stop\n")
    application.stdin.flush()
    said: dict[str, dict[str, float]] = json.loads(next(lines))
    return said
