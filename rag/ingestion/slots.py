"""Who may read a file next, where few are read at once: tenants take turns, and none keeps another from reading."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Slots:
    """So many at once for everybody together, and one more for a tenant that has none. Thread-safe.

    Of those who wait, tenants with the fewest slots come first. One tenant may use all of them while nobody else wants
    any; the one more keeps its slow files from holding up the others.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._held: Counter[str] = Counter()
        self._waiting: list[tuple[object, str]] = []
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, tenant_id: str) -> Iterator[None]:
        """A slot for this tenant, as soon as there is one."""
        turn = (object(), tenant_id)
        with self._changed:
            self._waiting.append(turn)
            try:
                self._changed.wait_for(lambda: self._is_next(turn))
                self._held[tenant_id] += 1
            finally:
                self._waiting.remove(turn)
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
        """How many wait for one."""
        with self._changed:
            return len(self._waiting)

    def _is_next(self, turn: tuple[object, str]) -> bool:
        if min(self._waiting, key=lambda waiting: self._held[waiting[1]]) is not turn:
            return False
        spare = 1 if self._held[turn[1]] == 0 else 0
        return self._held.total() < self._number + spare
