"""Read at standbys: servers that replay the primary's log and answer read-only transactions.

Search results are never stale. Each transaction that publishes, changes or deletes something adds one to the tenant's
count in `tenant_changes` at its commit. Before a search, the count is read from the primary, one row by its key; the
search at the standby first reads its own count in the same snapshot. If that is lower, or the standby does not answer,
the search runs at the primary. Conversations are read in the same way, by a count per person (`history_changes`).
Figures over time may be some seconds old.

Streaming and promotion are Postgres' own (docs/scaling.md, Standbys).
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Generic, Protocol, TypeVar

from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict

from rag.errors import DatabaseUnavailable
from rag.monitoring import metrics
from rag.storage.availability import Availability

log = logging.getLogger("rag.storage.database")

LOOK_SECONDS = 1.0
#: A standby behind by more answers nothing.
MOST_LAG_SECONDS = 10.0
#: Positions of the primary that are remembered: a standby behind the oldest is left out anyway.
REMEMBERED = int(4 * MOST_LAG_SECONDS / LOOK_SECONDS)


class Server(Protocol):
    """What is asked of a `Database` here."""

    conninfo: str
    availability: Availability

    def open(self, *, wait: bool = True) -> None: ...

    def close(self) -> None: ...

    def transaction(self, who: None, /) -> AbstractContextManager[Connection]: ...


ServerT = TypeVar("ServerT", bound=Server)


@dataclass
class Standby(Generic[ServerT]):
    """A replaying server with a separate pool."""

    #: Host and port, as `doctor` and the metrics name it.
    name: str
    database: ServerT
    #: Why it is left out; "" while it answers.
    trouble: str = "It has not been looked at yet."
    lag_seconds: float = math.inf
    reads: int = 0
    #: Reads that went to the primary because this server had not replayed a change of the tenant.
    behind: int = 0

    @property
    def is_usable(self) -> bool:
        return not self.trouble and self.database.availability.is_ready


class Standbys(Generic[ServerT]):
    """Chooses among standbys. Thread-safe."""

    def __init__(self, primary: ServerT, databases: Sequence[ServerT]) -> None:
        self.all = tuple(Standby(_name(database.conninfo), database) for database in databases)
        self._primary = primary
        self._positions: deque[tuple[float, int]] = deque(maxlen=REMEMBERED)
        self._turn, self._lock = 0, Lock()
        self._stop = Event()
        self._thread = Thread(target=self._watch, name="standbys", daemon=True)

    def open(self) -> None:
        """Connect to the servers that answer, and keep trying the rest."""
        for standby in self.all:
            standby.database.open(wait=False)
        self.look()
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)
        for standby in self.all:
            standby.database.close()

    def next(self) -> Standby[ServerT] | None:
        """Return the next standby; None without a standby to read from."""
        usable = [standby for standby in self.all if standby.is_usable]
        if not usable:
            return None
        with self._lock:
            self._turn += 1
            return usable[self._turn % len(usable)]

    def look(self) -> None:
        """Ask primary and standbys how far they are."""
        try:
            position, _ = _position(self._primary)
        except DatabaseUnavailable:
            return  # how far behind they are is not known; the searches ask the primary themselves
        now = time.monotonic()
        self._positions.append((now, position))
        for standby in self.all:
            before = standby.trouble
            standby.lag_seconds, standby.trouble = self._look_at(standby.database, now)
            metrics.standby_lag.labels(standby.name).set(standby.lag_seconds)
            if standby.trouble != before:
                level = logging.WARNING if standby.trouble else logging.INFO
                log.log(level, "Standby %s: %s", standby.name, standby.trouble or "It answers reads.")

    def _look_at(self, database: Server, now: float) -> tuple[float, str]:
        if database.availability.is_down:
            return math.inf, "It does not answer."
        try:
            position, is_standby = _position(database)
        except DatabaseUnavailable as exc:
            return math.inf, exc.message
        if not is_standby:
            return math.inf, "It is not a standby: it accepts writes."
        reached = [at for at, written in self._positions if written <= position]
        lag = now - reached[-1] if reached else math.inf
        behind = f"It is more than {MOST_LAG_SECONDS:.0f} seconds behind." if lag > MOST_LAG_SECONDS else ""
        return lag, behind

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            try:
                self.look()
            except Exception:
                log.exception("Looking at the standbys failed")


def read_addresses(text: str) -> list[str]:
    """Return the addresses of a list separated by spaces, lines or commas.

    A comma within an address, between the hosts of one, is followed by no `postgres`.
    """
    return [part for part in text.replace(",postgres", " postgres").split() if part]


def _position(database: Server) -> tuple[int, bool]:
    """Return how far a server's log is written or replayed, in bytes, and whether it replays another's."""
    with database.transaction(None) as connection:
        row = connection.execute(
            "SELECT pg_is_in_recovery(), CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() "
            "ELSE pg_current_wal_lsn() END - '0/0'"
        ).fetchone()
    assert row is not None  # noqa: S101
    return int(row[1] or 0), bool(row[0])


def _name(conninfo: str) -> str:
    parts = conninfo_to_dict(conninfo)
    return f"{parts.get('host') or parts.get('hostaddr') or 'localhost'}:{parts.get('port') or 5432}"
