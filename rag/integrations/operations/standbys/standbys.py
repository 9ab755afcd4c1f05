"""Read from standbys: servers which replay the primary's log and run read-only transactions.

Search results are never stale. Each transaction which publishes, changes or deletes documents adds 1 to the tenant's
count in `tenant_changes`. Before a search, the count is read from the primary. The search at the standby first reads
the standby's count, in the same snapshot. If the standby's count is lower, or the standby does not respond, the search
runs at the primary (`Database.read`). Conversations are read the same way, with a count per person (`history_changes`).
Metrics may be some seconds old.

Postgres itself does streaming and promotion (docs/scaling.md, Standbys).
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event, Lock, Thread

from prometheus_client import Counter, Gauge
from psycopg.conninfo import conninfo_to_dict

from rag.errors import DatabaseUnavailable
from rag.language import N_
from rag.settings import Settings
from rag.storage.database import Database, ReadOutcome

log = logging.getLogger("rag.storage.database")

LOOK_SECONDS = 1.0
#: A standby lagging more than this answers nothing.
MOST_LAG_SECONDS = 10.0
#: The primary's remembered positions; a standby behind the oldest is excluded anyway.
REMEMBERED = int(4 * MOST_LAG_SECONDS / LOOK_SECONDS)

NOT_CHECKED = N_("The standby server has not been checked yet.")
NO_ANSWER = N_("The standby server does not answer.")
NO_STANDBY = N_("This server is not a standby, because it accepts writes.")
TOO_FAR_BEHIND = N_("The standby server is more than ten seconds behind.")

reads = Counter("hr_reads", "Searches and analytics where standbys are set, by the server that answered.", ("server",))
lag_seconds = Gauge("hr_standby_lag_seconds", "How far a standby is behind; +Inf where it is left out.", ("standby",))


@dataclass(frozen=True, kw_only=True)
class LogPosition:
    position: int
    is_standby: bool


@dataclass
class Standby:
    """A standby server with connection pool and measured lag."""

    #: Host and port, for `doctor` and the metrics.
    name: str
    database: Database
    #: The reason for excluding the standby, or "" while it answers.
    trouble: str = NOT_CHECKED
    lag_seconds: float = math.inf
    reads: int = 0
    #: Reads sent to the primary because this server had not yet replayed a change by the tenant.
    behind: int = 0

    @property
    def is_usable(self) -> bool:
        return not self.trouble and self.database.availability.is_ready

    def note(self, outcome: ReadOutcome) -> None:
        """Count a read by the server which answered: the standby or the primary."""
        self.reads += outcome == "read"
        self.behind += outcome == "behind"
        reads.labels("standby" if outcome == "read" else "primary").inc()


class Standbys:
    """Choose among standbys in turn. Thread-safe."""

    def __init__(self, primary: Database, databases: Sequence[Database]) -> None:
        self.all = tuple(Standby(_name(database.conninfo), database) for database in databases)
        self._primary = primary
        self._positions: deque[tuple[float, int]] = deque(maxlen=REMEMBERED)
        self._next, self._lock = 0, Lock()
        self._stop = Event()
        self._thread = Thread(target=self._watch, name="standbys", daemon=True)

    def open(self) -> None:
        """Connect to all standbys, retrying in the background, and start measuring their lag."""
        for standby in self.all:
            standby.database.open(wait=False)
        self.look()
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)
        for standby in self.all:
            standby.database.close()

    def next(self) -> Standby | None:
        """Return the next usable standby in turn, or `None`."""
        usable = [standby for standby in self.all if standby.is_usable]
        if not usable:
            return None
        with self._lock:
            self._next += 1
            return usable[self._next % len(usable)]

    def look(self) -> None:
        """Measure each standby's lag. Standbys which are too far behind or do not respond are not used."""
        try:
            primary_position = log_position(self._primary).position
        except DatabaseUnavailable:
            return  # The lag is unknown; searches ask the primary themselves.
        now = time.monotonic()
        self._positions.append((now, primary_position))
        for standby in self.all:
            before = standby.trouble
            standby.lag_seconds, standby.trouble = self._look_at(standby.database, now)
            lag_seconds.labels(standby.name).set(standby.lag_seconds)
            if standby.trouble != before:
                level = logging.WARNING if standby.trouble else logging.INFO
                log.log(level, "Standby %s: %s", standby.name, standby.trouble or "It answers reads.")

    def _look_at(self, database: Database, now: float) -> tuple[float, str]:
        if database.availability.is_down:
            return math.inf, NO_ANSWER
        try:
            current = log_position(database)
        except DatabaseUnavailable as exc:
            return math.inf, exc.message
        if not current.is_standby:
            return math.inf, NO_STANDBY
        reached = [at for at, position in self._positions if position <= current.position]
        lag = now - reached[-1] if reached else math.inf
        return lag, TOO_FAR_BEHIND if lag > MOST_LAG_SECONDS else ""

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            try:
                self.look()
            except Exception:
                log.exception("Looking at the standbys failed")


def open_standbys(settings: Settings, primary: Database) -> Standbys | None:
    """Connect to the standby servers in `DATABASE_READ_URLS`, and return them; `None` without any."""
    addresses = read_addresses(settings.variable("DATABASE_READ_URLS"))
    return connect(primary, addresses) if addresses else None


def connect(primary: Database, addresses: Sequence[str]) -> Standbys:
    """Connect to the standby servers at these addresses, and return them."""
    standbys = Standbys(primary, [Database(address, primary.key) for address in addresses])
    standbys.open()
    return standbys


def read_addresses(text: str) -> list[str]:
    """Split a list of database addresses at spaces, lines, or commas before `postgres`.

    Other commas do not split, because they separate the hosts within an address.
    """
    return [part for part in text.replace(",postgres", " postgres").split() if part]


def log_position(database: Database) -> LogPosition:
    """Return the server's current position in the write-ahead log. Raises `DatabaseUnavailable`."""
    position = database.fetch_one(None, "log_position", LogPosition)
    assert position is not None  # noqa: S101
    return position


def _name(conninfo: str) -> str:
    parts = conninfo_to_dict(conninfo)
    return f"{parts.get('host') or parts.get('hostaddr') or 'localhost'}:{parts.get('port') or 5432}"
