"""Print the audit logs of all tenants as JSON lines, also as they grow: `python -m rag audit`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag.commands import Commands, add_command
from rag.errors import DatabaseUnavailable, NotFound
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.records.audit import AuditLog

POLL_SECONDS = 1.0
#: Entries get their number when they are written and are seen when their transaction ends, so some come late. So many
#: numbers before the latest are looked at again.
LATE_NUMBERS = 500


def add_parsers(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = add_command(commands, "audit", "print the audit log as JSON lines")
    parser.add_argument("--tenant", default="", help="of this tenant only")
    parser.add_argument("--follow", action="store_true", help="print what comes from now on, until it is stopped")
    parser.set_defaults(run=audit)


def audit(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print every entry, or only those from now on."""
    from rag.access.tenants import all_tenants
    from rag.services import connect_services

    parts = connect_services(settings)
    try:
        tenants = [tenant.id for tenant in all_tenants(parts.owner_conninfo)]
        if arguments.tenant and arguments.tenant not in tenants:
            raise NotFound(f"There is no tenant {arguments.tenant}.")
        tails = {t: Tail(parts.audit, t, from_now=arguments.follow) for t in tenants if arguments.tenant in ("", t)}
        while True:
            try:
                for tail in list(tails.values()):
                    for line in tail.lines():
                        print(line)
                sys.stdout.flush()
                if not arguments.follow:
                    return 0
                time.sleep(POLL_SECONDS)
                if not arguments.tenant:
                    for tenant in all_tenants(parts.owner_conninfo):
                        tails.setdefault(tenant.id, Tail(parts.audit, tenant.id))
            except DatabaseUnavailable as exc:
                if not arguments.follow:
                    raise
                print(exc.message, file=sys.stderr)
                time.sleep(POLL_SECONDS)
            except BrokenPipeError:  # the reader has gone
                return 0
    finally:
        parts.close()


class Tail:
    """Follows the end of a tenant's audit log; `from_now` leaves out the entries of before."""

    def __init__(self, log: AuditLog, tenant_id: str, *, from_now: bool = False) -> None:
        self._log, self._tenant_id = log, tenant_id
        self._last = log.last(tenant_id) if from_now else 0
        self._seen: deque[int] = deque(maxlen=2 * LATE_NUMBERS)
        if from_now:
            self._seen.extend(entry.id for entry in log.after(tenant_id, self._last - LATE_NUMBERS))

    def lines(self) -> Iterator[str]:
        """Yield the entries written since, oldest first."""
        while True:
            entries = self._log.after(self._tenant_id, max(self._last - LATE_NUMBERS, 0))
            fresh = [entry for entry in entries if entry.id not in self._seen]
            for entry in fresh:
                self._seen.append(entry.id)
                self._last = max(self._last, entry.id)
                yield entry.to_json(self._tenant_id)
            if not fresh:
                return
