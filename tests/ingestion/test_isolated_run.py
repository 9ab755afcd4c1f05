"""Documents whose process ended again and again: which of them did it, and which were only there."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from rag.errors import ProviderUnavailable
from rag.ingestion.document_jobs import JobInterrupted
from rag.ingestion.isolated_run import ATTEMPTS, COMMAND, DocumentTask, IsolatedRuns
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import STARTS_BEFORE_ISOLATION, IngestionPipeline
from rag.ingestion.queue import Queue
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Collection, Document, DocumentStatus, Identity
from tests import hostile
from tests.deadly_files import MARK
from tests.ingestion.uploads import until
from tests.patience import patient
from tests.standins.providers import ProviderStandin

POISON = b"This note " + MARK + b"."
TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def deadly(database: Database, files: FileStore, settings: Settings, sandbox: Sandbox) -> IngestionPipeline:
    """A pipeline that tries documents in processes which the poison ends, as it would end this one."""
    command = (sys.executable, str(TESTS / "deadly_files.py"), str(files.folder))
    runs = IsolatedRuns(database, settings, command=("env", f"PYTHONPATH={TESTS.parent}", *command))
    return IngestionPipeline(
        database, files, Providers(settings), Ledger(database), settings, sandbox=sandbox, isolated_runs=runs
    )


def left_by_dead_processes(database: Database, document: Document, times: int) -> None:
    """As processes leave a document that end while it is worked on, before it comes any further."""
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET starts = %s WHERE id = %s", (times, document.id))


def test_a_file_that_ends_every_process_is_set_aside_and_keeps_no_other_from_its_turn(
    deadly: IngestionPipeline, library: DocumentLibrary, admin: Identity, collection: Collection, database: Database
) -> None:
    poison = library.upload(admin, collection, "poison.txt", POISON)
    other = library.upload(admin, collection, "other.pdf", hostile.leave_policy())
    left_by_dead_processes(database, poison, STARTS_BEFORE_ISOLATION - 1)
    queue = Queue(database, deadly, concurrency=1, rescue_seconds=0.2)
    queue.start_worker()
    try:
        assert queue.wait_until_idle(patient(40))
    finally:
        queue.stop_worker()
    found = library.get("demo", poison.id)
    assert found.status == DocumentStatus.FAILED
    assert "several times, so it was given up" in found.message
    assert library.get("demo", other.id).status == DocumentStatus.ESTIMATED
    deadly.resume()
    library.retry(admin, poison.id)
    deadly.run("demo", poison.id)  # by hand it gets a new chance: this process has files that harm nobody
    assert library.get("demo", poison.id).status == DocumentStatus.ESTIMATED


def test_processes_that_were_killed_from_outside_are_no_evidence_against_their_document(
    pipeline: IngestionPipeline, library: DocumentLibrary, admin: Identity, collection: Collection, database: Database
) -> None:
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    left_by_dead_processes(database, document, 9 * STARTS_BEFORE_ISOLATION - 1)
    pipeline.run("demo", document.id)
    assert library.get("demo", document.id).status == DocumentStatus.ESTIMATED
    left_by_dead_processes(database, document, 9 * STARTS_BEFORE_ISOLATION - 1)
    library.confirm(admin, document.id)
    pipeline.run("demo", document.id)
    assert library.get("demo", document.id).status == DocumentStatus.COMPLETED


def test_what_goes_wrong_in_an_isolated_run_is_raised_here(
    database: Database,
    files: FileStore,
    settings: Settings,
    sandbox: Sandbox,
    provider_standin: ProviderStandin,
    library: DocumentLibrary,
    admin: Identity,
) -> None:
    keyed = replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)
    paid = IngestionPipeline(database, files, Providers(keyed), Ledger(database), keyed, sandbox=sandbox)
    model = "openai/text-embedding-3-small@1536"
    collection = library.ensure_collection("demo", "Paid", "hr", model, "en")
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    paid.run("demo", document.id)
    library.confirm(admin, document.id)
    left_by_dead_processes(database, document, 9 * STARTS_BEFORE_ISOLATION - 1)
    provider_standin.fail_next(503, 50, {"Retry-After": "0.1"})
    with pytest.raises(ProviderUnavailable) as caught:
        paid.run("demo", document.id)
    assert caught.value.details["retry_after_seconds"] == 0.1
    assert library.get("demo", document.id).status == DocumentStatus.PROCESSING


def test_an_isolated_run_ends_with_the_application_and_counts_against_nobody(
    database: Database, files: FileStore, settings: Settings, sandbox: Sandbox,
    library: DocumentLibrary, admin: Identity, collection: Collection,
) -> None:  # fmt: skip
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    left_by_dead_processes(database, document, 9 * STARTS_BEFORE_ISOLATION - 1)
    endless = IsolatedRuns(database, settings, command=(sys.executable, "-c", "import sys; sys.stdin.read()"))
    pipeline = IngestionPipeline(
        database, files, Providers(settings), Ledger(database), settings, sandbox=sandbox, isolated_runs=endless
    )
    threading.Timer(0.2, pipeline.interrupt).start()
    with pytest.raises(JobInterrupted):
        pipeline.run("demo", document.id)
    found = library.get("demo", document.id)
    assert found.status == DocumentStatus.READING
    assert database.fetch_value("demo", "note_start", document_id=document.id) == 1


def test_the_end_of_the_application_in_the_last_attempt_counts_against_nobody(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    script = f"import sys; sys.stdin.buffer.read(1); open({str(starts)!r}, 'a').write('x')"
    runs = IsolatedRuns(database, settings, command=(sys.executable, "-c", script))

    def stop_if_asked() -> None:
        if starts.exists() and len(starts.read_text()) == ATTEMPTS:
            raise JobInterrupted

    with pytest.raises(JobInterrupted):
        runs.run("demo", uuid4(), stop_if_asked)


def test_an_isolated_run_does_not_outlive_the_process_that_started_it(
    database: Database, settings: Settings, library: DocumentLibrary, admin: Identity, collection: Collection
) -> None:
    document = library.upload(admin, collection, "long.pdf", hostile.long_document(150))
    task = DocumentTask(database.conninfo, database.key, False, settings, "demo", document.id)
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, cwd=TESTS.parent, start_new_session=True) as run:
        assert run.stdin is not None
        pickle.dump(task, run.stdin)
        run.stdin.flush()
        until(lambda: library.get("demo", document.id).steps_done > 0)
        run.stdin.close()  # as the end of the process that holds it does
        until(lambda: run.poll() is not None)
    assert library.get("demo", document.id).status == DocumentStatus.READING
