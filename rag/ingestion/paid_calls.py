"""Paid calls that a kill cannot make twice, where the provider helps, and never unnoticed where it does not.

A row is committed before the call and removed in the transaction that stores its result with its ledger row. The row's
id is the call's idempotency key: sent again after a kill, a provider that knows such keys bills it once. For others the
document counts the call as repeated: per kill, at most as many as were in flight may have been billed twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from psycopg import Connection

from rag.database import Database, queries
from rag.errors import ProviderUnavailable
from rag.providers.call_gate import CallGate, Wait
from rag.providers.calls import sending
from rag.types import Operation

Value = TypeVar("Value")
#: Calls that are ready to be sent as soon as there is room. After a kill they count as repeated, though none was sent.
PREPARED = 2


@dataclass(frozen=True)
class PaidCall:
    """A call that is on its way. `sent` counts how often it has been sent, this time included."""

    id: UUID
    owner_id: UUID
    sent: int

    def finish(self, connection: Connection) -> None:
        """Forget it, in the transaction that stores its result and its charge."""
        connection.execute(queries["finish_paid_call"], {"id": self.id})
        if self.sent > 1:
            repeated = {"document_id": self.owner_id, "times": self.sent - 1}
            connection.execute(queries["count_repeated_call"], repeated)


class PaidCalls:
    """Makes calls through the gate, each with its row. Thread-safe."""

    def __init__(self, database: Database, gate: CallGate) -> None:
        self._database = database
        self._gate = gate

    @property
    def threads(self) -> int:
        """As many as may be in flight, and some that wait at the gate with their call prepared."""
        return self._gate.maximum + PREPARED

    def make(
        self,
        tenant_id: str,
        owner_id: UUID,
        operation: Operation,
        texts: Sequence[str],
        function: Callable[[], Value],
        *,
        wait: Wait,
    ) -> tuple[PaidCall, Value]:
        """Make one call, known by its owner, its operation and its texts. Raises what `function` raises."""
        with self._database.transaction(tenant_id) as connection:
            parameters = {"owner_id": owner_id, "operation": operation, "digest": digest_of(texts)}
            for call_id, sent in connection.execute(queries["begin_paid_call"], parameters):
                call = PaidCall(call_id, owner_id, sent)

        def send() -> Value:
            with sending(str(call.id), retries=0):
                return function()

        try:
            return call, self._gate.call(send, wait=wait)
        except ProviderUnavailable:
            raise  # perhaps billed: it is the same call when it is sent again
        except Exception:
            # Refused, so not billed. A kill leaves no time for this.
            self._database.execute(tenant_id, "finish_paid_call", id=call.id)
            raise


def digest_of(texts: Sequence[str]) -> str:
    """What a call is known by, besides its owner and its operation."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()
