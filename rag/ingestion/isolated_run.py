"""Process a document in a process of its own, after several processes have ended while working on it.

When a process ends, nobody can tell which of its documents caused it, or whether it was killed from outside. When a
process with a single document ends while its parent lives on, that document is the cause. Not confined like the
sandbox: it needs the database and the providers. Not `concurrent.futures`: its processes finish their task when the
application is killed, and would then work on a document that the next start has taken up.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from rag.errors import WorkKeepsDying
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore, Originals

PROJECT = Path(__file__).resolve().parent.parent.parent
COMMAND = (sys.executable, "-m", "rag.ingestion.isolated_run")
#: How many processes a document may end before it is set aside: one may have run out of the machine's memory.
ATTEMPTS = 3


@dataclass(frozen=True)
class DocumentTask:
    """A document, and how its process reaches the database and the providers."""

    conninfo: str
    database_key: bytes = field(repr=False)
    is_pooled: bool
    settings: Settings
    tenant_id: str
    document_id: UUID


class IsolatedRuns:
    """Starts processes for single documents. Thread-safe."""

    def __init__(self, database: Database, settings: Settings, *, command: Sequence[str] = COMMAND) -> None:
        self._database = database
        self._settings = settings
        self._command = command
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, tenant_id: str, document_id: UUID, stop_if_asked: Callable[[], None]) -> None:
        """Process a document that the caller holds. Raises what `Pipeline.run_claimed` raises there.

        Raises `WorkKeepsDying` when the document ends its process each time, and what `stop_if_asked` raises.
        """
        task = DocumentTask(
            self._database.conninfo,
            self._database.key,
            self._database.is_pooled,
            self._settings,
            tenant_id,
            document_id,
        )
        for _ in range(ATTEMPTS):
            answer = self._answer(task, stop_if_asked)
            stop_if_asked()  # ended with the application, not by the document
            if answer:
                error: BaseException | None = pickle.loads(answer)  # noqa: S301 - from a process of our own
                if error is not None:
                    raise error
                return
        raise WorkKeepsDying

    def interrupt(self) -> None:
        """End all processes; `run` learns of it from `stop_if_asked`."""
        with self._lock:
            for process in self._running:
                process.kill()

    def _answer(self, task: DocumentTask, stop_if_asked: Callable[[], None]) -> bytes:
        """Return the answer of a process; empty when it ended without one."""
        with subprocess.Popen(  # noqa: S603 - our own module
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT, start_new_session=True
        ) as process:
            with self._lock:
                self._running.add(process)
            try:
                stop_if_asked()
                assert process.stdin is not None  # noqa: S101
                assert process.stdout is not None  # noqa: S101
                try:
                    pickle.dump(task, process.stdin)
                    process.stdin.flush()  # and open until the answer is there: closing it would end that process
                except BrokenPipeError:
                    return b""
                return process.stdout.read()
            finally:
                process.kill()
                with self._lock:
                    self._running.discard(process)


def serve(files: Originals | None = None) -> None:
    """Do the task from stdin and answer with its error, or None; end at once when stdin ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    tasks = sys.stdin.buffer
    try:
        task: DocumentTask = pickle.load(tasks)  # noqa: S301 - from the process that started this one
    except EOFError:  # which is gone already
        return
    threading.Thread(target=end_with, args=(tasks,), daemon=True).start()
    error: BaseException | None = None
    try:
        work(task, files or originals(task.settings))
    except BaseException as exc:
        error = exc.with_traceback(None)
    answers.write(pickle.dumps(error))
    answers.flush()
    os._exit(0)


def work(task: DocumentTask, files: Originals) -> None:
    """Do the task with connections of this process's own."""
    from rag.ingestion.pipeline import IngestionPipeline  # which starts these processes

    database = Database(task.conninfo, task.database_key, maximum_connections=10, is_pooled=task.is_pooled)
    database.open()
    pipeline = IngestionPipeline(database, files, Providers(task.settings), Ledger(database), task.settings)
    try:
        pipeline.run_claimed(task.tenant_id, task.document_id)
    finally:
        pipeline.close()


def originals(settings: Settings) -> Originals:
    """Open the originals as the application does."""
    if not settings.supabase_service_role_key:
        return FileStore(settings.data_dir / "files")
    # An eighth of a second of imports that nobody else waits for.
    from rag.providers.supabase import SupabaseFiles, SupabaseProject

    return SupabaseFiles(SupabaseProject(settings), settings.supabase_bucket)


def end_with(parent: BinaryIO) -> None:
    """End when the application ends, however that happens."""
    parent.read(1)
    os._exit(1)


if __name__ == "__main__":
    serve()
