"""Documents whose process has ended too often, each worked on in a process that has nothing else to do.

When a process ends, nobody can say which of its documents did it, or whether it was killed from outside. When one ends
that worked on a single document, while the one that started it lives on, the document did it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from rag.database import Database
from rag.errors import WorkKeepsDying
from rag.files import FileStore, Originals
from rag.settings import Settings

PROJECT = Path(__file__).resolve().parent.parent.parent
COMMAND = (sys.executable, "-m", "rag.ingestion.trials")
#: Processes that a document may end before it is set aside: one may have met a machine without memory.
TRIALS = 3


@dataclass(frozen=True)
class Task:
    """What such a process is told: the document and how to reach what it needs."""

    conninfo: str
    is_pooled: bool
    settings: Settings
    tenant_id: str
    document_id: UUID


class Trials:
    """Starts processes for single documents. Thread-safe."""

    def __init__(self, database: Database, settings: Settings, *, command: Sequence[str] = COMMAND) -> None:
        self._database = database
        self._settings = settings
        self._command = command
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, tenant_id: str, document_id: UUID, stop_if_asked: Callable[[], None]) -> None:
        """Have a document that the caller holds worked on; raises what `Processor.run_claimed` raises there.

        Raises `WorkKeepsDying` when the document ends its process each time, and what `stop_if_asked` raises.
        """
        task = Task(self._database.conninfo, self._database.is_pooled, self._settings, tenant_id, document_id)
        for _ in range(TRIALS):
            answer = self._answer(task, stop_if_asked)
            stop_if_asked()  # ended with the application, not by the document
            if answer:
                error: BaseException | None = pickle.loads(answer)  # noqa: S301 - from a process of our own
                if error is not None:
                    raise error
                return
        raise WorkKeepsDying

    def interrupt(self) -> None:
        """End all processes: `run` gets to know by `stop_if_asked`."""
        with self._lock:
            for process in self._running:
                process.kill()

    def _answer(self, task: Task, stop_if_asked: Callable[[], None]) -> bytes:
        """What a process answers; nothing when it ended before."""
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
                    process.stdin.flush()  # and open until the answer is there: its end is the end of this process
                except BrokenPipeError:
                    return b""
                return process.stdout.read()
            finally:
                process.kill()
                with self._lock:
                    self._running.discard(process)


def serve(files: Originals | None = None) -> None:
    """Do the task that stdin gives and answer with its error, or None; end at once when stdin ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    tasks = sys.stdin.buffer
    try:
        task: Task = pickle.load(tasks)  # noqa: S301 - from the process that started this one
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


def work(task: Task, files: Originals) -> None:
    """Do the task with parts of this process's own."""
    from rag.ingestion.processor import Processor
    from rag.providers.registry import Providers
    from rag.records.ledger import Ledger

    database = Database(task.conninfo, maximum_connections=10, is_pooled=task.is_pooled)
    database.open()
    processor = Processor(database, files, Providers(task.settings), Ledger(database), task.settings)
    try:
        processor.run_claimed(task.tenant_id, task.document_id)
    finally:
        processor.close()


def originals(settings: Settings) -> Originals:
    """The originals as the application has them."""
    if not settings.supabase_service_role_key:
        return FileStore(settings.data_dir / "files")
    from rag.providers.supabase import SupabaseProject
    from rag.providers.supabase_storage import SupabaseFiles

    return SupabaseFiles(SupabaseProject(settings), settings.supabase_bucket)


def end_with(parent: BinaryIO) -> None:
    """Do not outlive the application, however it ended."""
    parent.read(1)
    os._exit(1)


if __name__ == "__main__":
    serve()
