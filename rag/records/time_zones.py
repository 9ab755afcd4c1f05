"""Store each company's time zone, in which days, weeks and months begin for metrics, budgets and nightly tasks.

Times shown to people are in their browser's time zone.
"""

from __future__ import annotations

import threading
import time as clock
from datetime import UTC, date, datetime, time, tzinfo
from zoneinfo import ZoneInfo, available_timezones

from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin
from rag.errors import InvalidInput
from rag.storage.database import Database
from rag.types import Identity, Who

UTC_NAME = "UTC"
#: Seconds a zone is cached: every figure on a page asks for it.
READ_AGAIN_SECONDS = 5.0
MOST_REMEMBERED = 10_000


class TimeZones:
    """Read and set companies' time zones. Changes in another process are seen within seconds. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def name(self, who: Who) -> str:
        """Return the name of the company's time zone, for example `Asia/Seoul`."""
        tenant_id = who.tenant_id if isinstance(who, Identity) else who
        with self._lock:
            read_at, name = self._known.get(tenant_id, (0.0, ""))
        if name and clock.monotonic() - read_at < READ_AGAIN_SECONDS:
            return name
        name = str(self._database.fetch_value(tenant_id, "time_zone"))
        with self._lock:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[tenant_id] = (clock.monotonic(), name)
        return name

    def of(self, who: Who) -> tzinfo:
        """Return the company's time zone."""
        return ZoneInfo(self.name(who))

    def today(self, who: Who) -> date:
        """Return today's date in the company's time zone."""
        return datetime.now(UTC).astimezone(self.of(who)).date()

    def set(self, identity: Identity, name: str) -> None:
        """Set the company's time zone, for an administrator. Raises `InvalidInput` for an unknown name.

        All daily sums are computed again. Budgets count from the beginning of the month in the new time zone.
        """
        require_admin(identity)
        if name not in zone_names():
            raise InvalidInput("This time zone is not known. Choose one such as Europe/Berlin.")
        self._database.execute(identity, "change_tenant_settings", settings=Jsonb({"time_zone": name}))
        with self._lock:
            self._known.pop(identity.tenant_id, None)


def midnight(day: date, zone: tzinfo) -> datetime:
    """Return the time at which a day begins in a time zone."""
    return datetime.combine(day, time(), zone)


def zone_names() -> list[str]:
    """Return the time zones to choose from: UTC, and zones named by continent and city."""
    cities = (name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "SystemV/")))
    return [UTC_NAME, *sorted(cities)]
