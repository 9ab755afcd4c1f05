"""Process a document in a separate process, after several processes have ended while working on it.

When a process ends, nobody can tell which document was the cause, or whether the process was killed from outside. When
a process with a single document ends while its parent lives on, this document is the cause. The process is not confined
like the sandbox, because it needs the database and the providers. `concurrent.futures` does not fit: its processes
finish their task after the application is killed, and would work on a document already taken up by the next start.
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
    """A document, with the access to database and providers for its process."""

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
        """Process a document held by the caller. Raises the errors of `Pipeline.run_claimed`.

        Raises `WorkKeepsDying` if the document ends its process each time, and the errors of `stop_if_asked`.
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
        """End all processes; `run` notices through `stop_if_asked`."""
        with self._lock:
            for process in self._running:
                process.kill()

    def _answer(self, task: DocumentTask, stop_if_asked: Callable[[], None]) -> bytes:
        """Return a process's answer, or b"" if it ended without an answer."""
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
