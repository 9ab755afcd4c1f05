"""Check every second, in a separate thread, whether the database answers. Callers need not find this out by waiting.

During an outage, a connection pool lets each caller wait for the full timeout, and a hanging server lets callers wait
forever. Callers check here before using the database, and are refused at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Condition, Event, Thread

import psycopg
from psycopg import pq

log = logging.getLogger("rag.storage.database")

ASK_SECONDS = 1.0
#: The pause between checks during an outage: short, so people wait no longer than necessary.
ASK_AGAIN_SECONDS = 0.2
#: A check waiting this long is reported by `/api/health` …
SLOW_SECONDS = 1.2
#: … and after this long, without any other statement answered meanwhile, callers are refused. A busy machine can be
#: very slow, and refusing an answerable request is worse than letting it wait.
HANGING_SECONDS = 10.0


class Availability:
    """Track whether a database answers. Thread-safe."""

    def __init__(self, conninfo: str, on_return: Callable[[], None]) -> None:
        """`on_return` is called, in the checking thread, when existing connections may have broken."""
        self._conninfo, self._on_return = conninfo, on_return
        self._changed = Condition()
        self._is_down = False
        #: Number of checks started, and the last check answered or failed.
        self._asked, self._settled = 0, 0
        self._asked_at: float | None = None
        self._answered_at = time.monotonic()
        self._wake, self._stop = Event(), Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        self._thread = Thread(target=self._watch, name="database-availability", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop checking, without waiting for a hanging check."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=1)

    def note_answer(self) -> None:
        """Record that the database has just answered a caller."""
        self._answered_at = time.monotonic()

    @property
    def is_down(self) -> bool:
        """Whether to refuse callers, because connecting fails or the database has not answered for a long time."""
        return self._is_down or self._waited_seconds > HANGING_SECONDS

    @property
    def is_ready(self) -> bool:
        """Whether the last finished check succeeded, and the running check is not slow."""
        return not self._is_down and self._waited_seconds < SLOW_SECONDS

    def ask_again(self, timeout_seconds: float = 1.5) -> bool:
        """Check the database again now, waiting up to `timeout_seconds`. Returns False if callers should be refused."""
        with self._changed:
            pending = self._asked
            self._wake.set()
            self._changed.wait_for(lambda: self._settled > pending or self._is_down, timeout_seconds)
        return not self.is_down

    def wait_until_up(self, is_stopping: Event) -> None:
        """Wait until the database answers, or until `is_stopping` is set."""
        while self.is_down and not is_stopping.wait(0.1):
            pass

    @property
    def _waited_seconds(self) -> float:
        asked_at = self._asked_at
        return 0.0 if asked_at is None else time.monotonic() - max(asked_at, self._answered_at)

    # In the thread that asks

    def _watch(self) -> None:
        connection: psycopg.Connection | None = None
        while not self._stop.is_set():
            self._asked_at, self._asked = time.monotonic(), self._asked + 1
            connection, is_up, is_new = self._ask(connection)
            self._asked_at = None
            if is_up != (not self._is_down):
                log.warning("The database answers again" if is_up else "The database does not answer")
            had_trouble = self._is_down or is_new
            with self._changed:
                self._is_down = not is_up
                self._settled = self._asked
                self._changed.notify_all()
            if is_up and had_trouble:
                self._on_return()
            self._wake.wait(ASK_SECONDS if is_up else ASK_AGAIN_SECONDS)
            self._wake.clear()
        if connection is not None:
            connection.close()

    def _ask(self, connection: psycopg.Connection | None) -> tuple[psycopg.Connection | None, bool, bool]:
        """Check whether the server answers, with the open connection if there is any.

        Returns the connection for the next check, whether the server answers, and whether `connection` was broken.
        """
        if connection is not None:
            try:
                connection.execute("SELECT 1")
            except psycopg.Error:
                connection.close()
            else:
                return connection, True, False
        try:
            opened = psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=None)
            return opened, True, connection is not None
        except psycopg.Error:
            # A server without free connections still answers.
            answers = pq.PGconn.ping(self._conninfo.encode()) == pq.Ping.OK
            return None, answers, connection is not None
