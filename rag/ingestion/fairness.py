"""Share reading processes and queue slots fairly among tenants."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Slots:
    """Shares `number` slots fairly among tenants, with a spare slot for tenants without a slot. Thread-safe.

    A free slot goes to the waiting tenant which holds the fewest slots. While no other tenant waits, a single tenant
    may hold all `number` slots. With the spare slot, this tenant's slow files do not delay other tenants.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._held: Counter[str] = Counter()
        self._waiting: list[tuple[object, str]] = []
        self._changed = threading.Condition()

    @contextmanager
    def hold(self, tenant_id: str) -> Iterator[None]:
        """Wait for a slot, and hold it for this tenant inside the `with` block."""
        ticket = (object(), tenant_id)
        with self._changed:
            self._waiting.append(ticket)
            try:
                self._changed.wait_for(lambda: self._is_next(ticket))
                self._held[tenant_id] += 1
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._held[tenant_id] -= 1
                if not self._held[tenant_id]:
                    del self._held[tenant_id]
                self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """Return how many callers wait for a slot."""
        with self._changed:
            return len(self._waiting)

    def _is_next(self, ticket: tuple[object, str]) -> bool:
        if min(self._waiting, key=lambda waiting: self._held[waiting[1]]) is not ticket:
            return False
        spare = 1 if self._held[ticket[1]] == 0 else 0
        return self._held.total() < self._number + spare


class TenantSlots:
    """Counts each tenant's running jobs in this process. Only for the event loop of the workers."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.running: Counter[str] = Counter()

    def full_tenants(self, *, is_spare: bool) -> list[str] | None:
        """Return the tenants which may not start a job now, or `None` if no tenant may start a job.

        Each tenant may hold up to `number` slots. With `is_spare`, the answer is for the spare worker, which takes jobs
        only when all slots are held, and only from tenants without a running job. A tenant's slow documents then do not
        delay other tenants.
        """
        if is_spare:
            return list(+self.running) if self.running.total() >= self.number else None
        return [tenant_id for tenant_id, count in self.running.items() if count >= self.number]
