"""Process a document in a process of its own, after several processes have ended while working on it.

When a process ends, nobody can tell which of its documents caused it, or whether it was killed from outside. When a
process with a single document ends while its parent lives on, that document is the cause. Not confined like the
sandbox: it needs the database and the providers. Not `concurrent.futures`: its processes finish their task when the
application is killed, and would then work on a document that the next start has taken up.
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
        """Return the answer from a process; b"" if it ended without an answer."""
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
