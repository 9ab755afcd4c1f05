"""Process a document in a separate process, after several processes have died while working on this document.

If a process with several documents dies, the cause is unknown: any document, or a kill from outside. If a process with
a single document dies and the parent does not, the document is the cause. The process is not confined like the sandbox,
because a document needs the database and the providers. `concurrent.futures` is not used: if the application is killed,
the processes would finish their tasks, while the restarted application works on the same document.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from rag.errors import WorkKeepsDying
from rag.settings import Settings
from rag.storage.database import Database

PROJECT = Path(__file__).resolve().parent.parent.parent
COMMAND = (sys.executable, "-m", "rag.ingestion.isolated_process")
#: Processes a document may end before it is set aside: a single end may come from a lack of memory.
ATTEMPTS = 3


@dataclass(frozen=True)
class DocumentTask:
    """A document to process, and how to reach the database and the providers."""

    conninfo: str
    database_key: bytes = field(repr=False)
    is_pooled: bool
    settings: Settings
    tenant_id: str
    document_id: UUID


class IsolatedRuns:
    """Runs a separate process for each document. Thread-safe."""

    def __init__(self, database: Database, settings: Settings, *, command: Sequence[str] = COMMAND) -> None:
        self._database = database
        self._settings = settings
        self._command = command
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, tenant_id: str, document_id: UUID, stop_if_asked: Callable[[], None]) -> None:
        """Process a document claimed by the caller.

        Raises the errors from `IngestionPipeline.run_claimed` and `stop_if_asked`, and `WorkKeepsDying` if the process
        died in every attempt.
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
        """Kill all processes. Calls of `run` then end with an error from `stop_if_asked`."""
        with self._lock:
            for process in self._running:
                process.kill()

    def _answer(self, task: DocumentTask, stop_if_asked: Callable[[], None]) -> bytes:
        """Run the task in a new process, and return the pickled result, or b"" if the process died."""
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
                    process.stdin.flush()  # keep stdin open until the answer arrives: closing it would end the process
                except BrokenPipeError:
                    return b""
                return process.stdout.read()
            finally:
                process.kill()
                with self._lock:
                    self._running.discard(process)
