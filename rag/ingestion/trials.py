"""Documents whose process has ended too often, each worked on in a process that has nothing else to do.

When a process ends, nobody can say which of its documents did it, or whether it was killed from outside. When one ends
that worked on a single document, while the one that started it lives on, the document did it.
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
COMMAND = (sys.executable, "-m", "rag.ingestion.trial_worker")
#: Processes that a document may end before it is set aside: one may have met a machine without memory.
TRIALS = 3


@dataclass(frozen=True)
class Task:
    """What such a process is told: the document and how to reach what it needs."""

    conninfo: str
    database_key: bytes = field(repr=False)
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
        """Have a document that the caller holds worked on; raises what `Pipeline.run_claimed` raises there.

        Raises `WorkKeepsDying` when the document ends its process each time, and what `stop_if_asked` raises.
        """
        task = Task(
            self._database.conninfo,
            self._database.key,
            self._database.is_pooled,
            self._settings,
            tenant_id,
            document_id,
        )
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
