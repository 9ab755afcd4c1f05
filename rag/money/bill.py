"""The bill for a question: paid calls with prices and rows in the ledger.

A call is recorded before it starts. If the process dies, open calls are charged at their expected cost when the
abandoned question is found.

Each charge is written to the ledger when known. While the reader still waits for the first words, a charge is written
together with the next call's record, which saves a round trip. If writing fails, the next write includes the charge.
The last write is at the end, when the question's log row is completed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property, partial
from typing import Any
from uuid import UUID

from rag.errors import DatabaseUnavailable
from rag.money.ledger import Finished, Ledger
from rag.money.price_list import charge
from rag.providers.processor import waiting
from rag.providers.retry import Notes, lost_calls
from rag.types import Charge, CostDetails, Operation, Usage

#: The ledger stores dollars with eight decimal places.
LEDGER_PLACES = Decimal("0.00000001")
#: Seconds between two signs of life. After a minute without a sign, the process counts as dead.
ALIVE_SECONDS = 20.0
#: The cost field for each operation. `openai` holds only the answer's cost and tokens; other chat model calls pass
#: their field.
COST_FIELDS: dict[Operation, str] = {
    "embedding": "embedding",
    "reranking": "reranking",
    "translation": "translation",
    "chat": "rewriting",
}


@dataclass(frozen=True)
class Entry:
    """A charge on a bill. The charge is added to the field `line` in `CostDetails`; if `line` is "", to no field."""

    line: str
    charge: Charge


class Bill:
    """Charges for paid calls, collected in memory.

    `prices` returns the tenant's prices, which override list prices.
    """

    def __init__(self, prices: Callable[[], Mapping[str, Any]] = dict) -> None:
        self.entries: list[Entry] = []
        self._read_prices = prices
        self._prices: Mapping[str, Any] | None = None
        #: Requests without an end: row id, operation and expected usage.
        self._sent: deque[tuple[UUID | None, Operation, Usage]] = deque()
        self._requests = 0

    @contextmanager
    def open(self) -> Iterator[None]:
        """Charge paid calls made by searches inside the `with` block to this bill (see `open_bill`).

        The block must not contain a `yield` to a caller.
        """
        token = _bill.set(self)
        try:
            yield
        finally:
            _bill.reset(token)

    @contextmanager
    def paying(self, operation: Operation, *, line: str = "") -> Iterator[None]:
        """Inside the `with` block, record each request before the request starts, and charge requests without a result.

        `line` names the field in `CostDetails`.
        """
        notes = Notes(partial(self.send, operation), self.drop)
        with waiting(), lost_calls(lambda usage: self.charge(operation, usage, line=line), notes=notes):
            yield

    def begin(self, operation: Operation, name: str, expected: Usage) -> UUID | None:
        """Record a call before it starts, and return the record's id.

        The base class stores nothing, and returns `None`.
        """
        return None

    def keep_alive(self, call_id: UUID | None) -> None:
        """Show that a long call is still running; if not shown, the estimated cost is charged.

        Call this for each piece in a stream.
        """

    def charge(self, operation: Operation, usage: Usage, *, line: str = "") -> None:
        """Price a call, add the charge, and end the oldest open request.

        `line` names the field in `CostDetails`; by default the operation decides.
        """
        self.record(self._priced(operation, usage), line=line)

    def finish(self, call_id: UUID | None, operation: Operation, usage: Usage | None, *, line: str = "") -> None:
        """End a call recorded by `begin`, and charge `usage`; `None` means free."""
        paid = self._priced(operation, usage) if usage is not None else None
        self._end(paid, line, call_id)

    def record(self, paid: Charge, *, line: str = "") -> None:
        """Add a charge, and end the oldest open request. `line` is as in `charge`."""
        self._end(paid, line, self._sent.popleft()[0] if self._sent else None)

    def price(self, usage: Usage) -> Decimal | None:
        """Return a chat call's price for this tenant, without charging the call. `None` means an unknown price."""
        return self._priced("chat", usage).cost

    @property
    def usages(self) -> tuple[Usage, ...]:
        """The usage in each charge, in order."""
        return tuple(entry.charge.usage for entry in self.entries)

    @property
    def cost(self) -> Decimal | None:
        """The total in US dollars; `None` if any call has no known price."""
        costs = [entry.charge.cost for entry in self.entries]
        priced = [cost for cost in costs if cost is not None]
        return sum(priced, Decimal(0)) if len(priced) == len(costs) else None

    def send(self, operation: Operation, expected: Usage) -> None:
        """Record a request before it starts. The request ends with the next `charge`, `record` or `drop`."""
        self._requests += 1
        self._sent.append((self.begin(operation, f"request {self._requests}", expected), operation, expected))

    def drop(self) -> None:
        """Remove the latest request, which failed without being billed."""
        call_id = self._sent.pop()[0]
        if call_id is not None:
            self._end(None, "", call_id)

    def _end(self, paid: Charge | None, line: str, call_id: UUID | None) -> None:
        if paid is not None:
            self.entries.append(Entry(line or COST_FIELDS.get(paid.operation, ""), paid))

    def _priced(self, operation: Operation, usage: Usage) -> Charge:
        priced = charge(operation, usage, self._own_prices())
        if usage.is_estimated:
            priced = replace(priced, unit_prices={**priced.unit_prices, "tokens": "estimated"})
        return priced

    def _own_prices(self) -> Mapping[str, Any] | None:
        """Return the tenant's prices, or `None` while the database is unavailable. Prices are read at first use."""
        if self._prices is None:
            try:
                self._prices = self._read_prices()
            except DatabaseUnavailable:
                return None
        return self._prices


class QuestionBill(Bill):
    """A question's bill, written to the ledger. Not thread-safe."""

    def __init__(
        self,
        tenant_id: str,
        open_log: Callable[[], UUID],
        *,
        ledger: Ledger,
        prices: Callable[[], Mapping[str, Any]],
        is_awaited: bool = False,
    ) -> None:
        """`open_log` inserts the question's log row and returns the row's id. Called at the first paid call.

        With `is_awaited`, charges are written when the next call begins or when `write` is called.
        """
        super().__init__(prices)
        self.tenant_id = tenant_id
        self._open_log = open_log
        self._ledger = ledger
        self._is_awaited = is_awaited
        #: Charges missing in the ledger, each with the id of the finished call.
        self._unwritten: list[Finished] = []

    @cached_property
    def chat_log_id(self) -> UUID:
        """The id for the question's log row, which is inserted on first use."""
        return self._open_log()

    @property
    def has_log(self) -> bool:
        """Whether the question's log row has been inserted."""
        return "chat_log_id" in vars(self)

    def begin(self, operation: Operation, name: str, expected: Usage) -> UUID | None:
        """Record a call before it starts, to charge it even if this process is killed.

        Returns `None` if the database is unavailable, because an answer must not wait for a bill.
        """
        chat_log_id = self.chat_log_id
        try:
            call_id = self._ledger.begin(
                self.tenant_id, chat_log_id, operation, name, expected, finished=self._unwritten
            )
        except DatabaseUnavailable:
            return None
        self._unwritten.clear()
        return call_id

    def write(self) -> None:
        """Write all charges now, and each further charge immediately. Called when the reader has the first words."""
        self._is_awaited = False
        self.write_known()

    def write_known(self) -> None:
        """Write all charges, unless the database is unavailable."""
        with suppress(DatabaseUnavailable):
            self._write()

    def settle(self) -> None:
        """Charge open requests at their estimated cost, and write all charges. Raises `DatabaseUnavailable`."""
        # Open requests were lost by a fault in the product, but the provider may have billed them.
        for _, operation, expected in tuple(self._sent):
            self.charge(operation, expected)
        self._write()

    def _end(self, paid: Charge | None, line: str, call_id: UUID | None) -> None:
        super()._end(paid, line, call_id)
        self._unwritten.append((paid, call_id))
        if not self._is_awaited:
            self.write_known()

    def _write(self) -> None:
        self._ledger.finish(self.tenant_id, self._unwritten, chat_log_id=self.chat_log_id)
        self._unwritten.clear()


class TenantBill(Bill):
    """A bill for a tenant's calls without a question, written to the ledger. Not thread-safe.

    If `collection_id` is given, each call is recorded for the collection before it starts. Raises
    `DatabaseUnavailable`.
    """

    def __init__(
        self,
        tenant_id: str,
        *,
        ledger: Ledger,
        prices: Callable[[], Mapping[str, Any]],
        collection_id: UUID | None = None,
    ) -> None:
        super().__init__(prices)
        self._tenant_id = tenant_id
        self._ledger = ledger
        self._collection_id = collection_id
        self._alive_at = time.monotonic()

    def begin(self, operation: Operation, name: str, expected: Usage) -> UUID | None:
        if self._collection_id is None:
            return None
        self._alive_at = time.monotonic()
        return self._ledger.begin_for_collection(self._tenant_id, self._collection_id, operation, expected)

    def keep_alive(self, call_id: UUID | None) -> None:
        if call_id is not None and time.monotonic() - self._alive_at > ALIVE_SECONDS:
            self._alive_at = time.monotonic()
            self._ledger.keep_alive(self._tenant_id, call_id)

    def _end(self, paid: Charge | None, line: str, call_id: UUID | None) -> None:
        super()._end(paid, line, call_id)
        if call_id is not None:
            self._ledger.finish_for_collection(self._tenant_id, call_id, paid)
        elif paid is not None:
            self._ledger.record(self._tenant_id, paid)


def costs_of(entries: Sequence[Entry]) -> CostDetails:
    """Return the costs, summed by field in `CostDetails` and rounded like the ledger. Calls without a known price add
    nothing.
    """
    by_line: dict[str, Decimal] = {}
    for entry in entries:
        if entry.line:
            cost = (entry.charge.cost or Decimal(0)).quantize(LEDGER_PLACES, ROUND_HALF_UP)
            by_line[entry.line] = by_line.get(entry.line, Decimal(0)) + cost
    return CostDetails(
        **{line: float(cost) for line, cost in by_line.items()}, total=float(sum(by_line.values(), Decimal(0)))
    )


_bill: ContextVar[Bill | None] = ContextVar("bill", default=None)


def open_bill() -> Bill:
    """Return the bill opened by `Bill.open` around the caller; without such a bill, a new bill at list prices."""
    return _bill.get() or Bill()
