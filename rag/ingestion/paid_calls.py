"""Make paid calls in parallel, so that a kill repeats no call if the provider helps, and no call unnoticed otherwise.

A row is committed before the call, and removed in the transaction which stores its result with its ledger row. The
row's id is the call's idempotency key: if the call is sent again after a kill, a provider supporting keys bills it only
once. For other providers the document counts the call as repeated: per kill, at most the calls in flight may be billed
twice.

Every call which may be billed is in the ledger. A failed attempt gets its row when it fails. An attempt by a killed
process gets a row with the expected cost when the call is sent again or given up.
"""

from __future__ import annotations

import hashlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.errors import ProviderUnavailable
from rag.ingestion.document_jobs import JobControl, price_overrides
from rag.ingestion.document_rows import amounts_to_json
from rag.money.ledger import Ledger, usage_from_json
from rag.money.price_list import charge
from rag.providers.retry import CallGate, lost_calls, sending
from rag.storage.database import Database, queries
from rag.text.tokens import estimate_tokens
from rag.types import Operation, Usage

Value = TypeVar("Value")
#: Calls prepared for sending when there is room.
PREPARED = 2
#: Seconds without a sign of life after which a call's process counts as dead, if no worker holds its document.
QUIET_SECONDS = 60.0


@dataclass(frozen=True)
class PaidCall:
    """A call under way. `sent` counts how often it was sent, including this time."""

    id: UUID
    tenant_id: str
    owner_id: UUID
    operation: Operation
    document_id: UUID | None
    collection_id: UUID | None
    sent: int
    on_end: Callable[[], None] = field(compare=False)


@dataclass(frozen=True)
class PlannedCall:
    """A call about to be made; owner, operation and texts identify it."""

    tenant_id: str
    #: A document, a move, or a collection.
    owner_id: UUID
    operation: Operation
    texts: Sequence[str]
    #: The usage to be billed.
    expected: Usage
    #: The document to charge, if it is not the owner.
    document_id: UUID | None = None
    #: Charged instead if the call covers several documents.
    collection_id: UUID | None = None


class PaidCalls:
    """Makes calls through the gate, each with a row. Thread-safe."""

    def __init__(self, control: JobControl, gate: CallGate, ledger: Ledger) -> None:
        self.control = control
        self._database = control.database
        self._gate = gate
        self._ledger = ledger
        self._lock = threading.Lock()
        #: The earliest time for the next call, by name of the called service.
        self._ready_at: dict[str, float] = {}
        #: Digests of this process's calls whose results are not yet stored.
        self._open: set[tuple[UUID, str, str]] = set()

    @property
    def threads(self) -> int:
        """Return the useful number of threads: the calls allowed in flight, plus some prepared calls."""
        return self._gate.maximum + PREPARED

    @contextmanager
    def apart(self, called: str, seconds: float) -> Iterator[None]:
        """Keep calls with this name `seconds` apart. Raises `JobInterrupted`."""
        with self._lock:
            now = time.monotonic()
            begin = max(now, self._ready_at.get(called, now))
            self._ready_at[called] = begin + seconds
        self.control.wait(begin - now)
        try:
            yield
        finally:
            with self._lock:
                self._ready_at[called] = max(self._ready_at[called], time.monotonic() + seconds)

    def make(self, planned: PlannedCall, function: Callable[[], Value]) -> tuple[PaidCall, Value]:
        """Make a call with `function`, and raise its errors."""
        tenant_id, operation, expected = planned.tenant_id, planned.operation, planned.expected
        collection_id = planned.collection_id
        document_id = None if collection_id else planned.document_id or planned.owner_id
        key = self._key(planned.owner_id, operation, digest_of(planned.texts))
        parameters = {
            "owner_id": planned.owner_id,
            "operation": operation,
            "digest": key[2],
            "expected": Jsonb(asdict(expected)),
            "document_id": document_id,
            "chat_log_id": None,
        }
        made: list[PaidCall] = []

        def forget() -> None:
            with self._lock:
                self._open.discard(key)

        def record(usage: Usage) -> None:
            item = charge(operation, usage, price_overrides(self._database, tenant_id))
            self._ledger.record(tenant_id, item, document_id=document_id, collection_id=collection_id)

        def send() -> Value:
            if made:
                self._database.execute(tenant_id, "resend_paid_call", id=made[0].id)
            else:
                made.append(self._begin(tenant_id, operation, parameters, expected, collection_id, forget))
            with lost_calls(record), sending(str(made[0].id), retries=0):
                try:
                    return function()
                except ProviderUnavailable:
                    # The possible cost is recorded by now; sending again is the same call.
                    self._database.execute(tenant_id, "account_for_paid_call", id=made[0].id, unsettled=0)
                    raise
                except Exception:
                    # Refused, or the answer is unusable. A retry is a new call; under the same key, the provider would
                    # send the same answer again. A kill leaves no time for this.
                    self._database.execute(tenant_id, "finish_paid_call", id=made.pop().id)
                    raise

        try:
            value = self._gate.call(send, wait=self.control.wait)
        except BaseException:
            forget()
            raise
        return made[0], value

    def settle(
        self, connection: Connection, call: PaidCall | None, usages: Iterable[Usage], prices: Mapping[str, Any]
    ) -> None:
        """Record a call's cost and remove its row, in the transaction which stores the result.

        The call was paid even if its document is gone. Without a call there is no cost.
        """
        if call is None:
            return
        for usage in usages:
            item = charge(call.operation, usage, prices)
            self._ledger.record(
                call.tenant_id,
                item,
                document_id=call.document_id,
                collection_id=call.collection_id,
                connection=connection,
            )
        connection.execute(queries["finish_paid_call"], {"id": call.id})
        if call.sent > 1:
            repeated = {"document_id": call.owner_id, "times": call.sent - 1}
            connection.execute(queries["count_repeated_call"], repeated)
        call.on_end()

    def settle_abandoned(
        self, tenant_id: str, *, owner_id: UUID | None = None, quiet_seconds: float = QUIET_SECONDS
    ) -> int:
        """Record the possible cost of calls abandoned by dead processes. Returns their number."""
        prices = price_overrides(self._database, tenant_id)
        with self._database.transaction(tenant_id) as connection:
            parameters = {"owner_id": owner_id, "quiet_seconds": quiet_seconds}
            rows = connection.execute(queries["take_abandoned_calls"], parameters).fetchall()
            for operation, unsettled, expected, document_id, collection_id in rows:
                if expected:  # rows from versions before this column have no expected usage
                    item = charge(operation, usage_from_json(expected), prices)
                    charged = {"document_id": document_id, "collection_id": collection_id}
                    for _ in range(unsettled):
                        self._ledger.record(tenant_id, item, **charged, connection=connection)
        for touched in {row[3] for row in rows if row[3] is not None}:
            note_costs(self._database, self._ledger, tenant_id, touched)
        return len(rows)

    def _key(self, owner_id: UUID, operation: Operation, digest: str) -> tuple[UUID, str, str]:
        """Return the key of a call: two simultaneous calls with the same texts have different keys and bills."""
        with self._lock:
            key, number = (owner_id, str(operation), digest), 1
            while key in self._open:
                number += 1
                key = (owner_id, str(operation), digest_of([digest, str(number)]))
            self._open.add(key)
            return key

    def _begin(
        self,
        tenant_id: str,
        operation: Operation,
        parameters: dict[str, Any],
        expected: Usage,
        collection_id: UUID | None,
        on_end: Callable[[], None],
    ) -> PaidCall:
        """Commit the call's row. Attempts of a dead process may have been billed: they are recorded by estimate."""
        owner_id, document_id = parameters["owner_id"], parameters["document_id"]
        charged = {"document_id": document_id, "collection_id": collection_id}
        with self._database.transaction(tenant_id) as connection:
            row = connection.execute(queries["begin_paid_call"], parameters).fetchone()
            assert row is not None  # noqa: S101  an INSERT … RETURNING that did not raise has a row
            call_id, sent, unsettled = row
            if unsettled > 1:
                item = charge(operation, expected, price_overrides(self._database, tenant_id))
                for _ in range(unsettled - 1):
                    self._ledger.record(tenant_id, item, **charged, connection=connection)
                connection.execute(queries["account_for_paid_call"], {"id": call_id, "unsettled": 1})
        return PaidCall(call_id, tenant_id, owner_id, operation, document_id, collection_id, sent, on_end)


def note_costs(database: Database, ledger: Ledger, tenant_id: str, document_id: UUID) -> None:
    """Write a document's cost so far from the ledger."""
    costs = Jsonb(amounts_to_json(ledger.document_costs(tenant_id, document_id)))
    database.execute(tenant_id, "note_costs", document_id=document_id, costs=costs)


def digest_of(texts: Sequence[str]) -> str:
    """Hash the texts which identify a call, together with owner and operation."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()


def expected_embedding(provider: str, model: str, texts: Sequence[str]) -> Usage:
    """Estimate the billed usage for embedding these texts."""
    tokens = sum(estimate_tokens(text, model=model) for text in texts)
    return Usage(provider=provider, model=model, input_tokens=tokens, is_estimated=True)


# Several calls at once

Item = TypeVar("Item")
Result: TypeAlias = tuple[Item, Value | None, BaseException | None]
#: Seconds between chances for the consumer to stop waiting.
TICK_SECONDS = 0.1


def in_parallel(
    function: Callable[[Item], Value], items: Sequence[Item], *, threads: int, on_tick: Callable[[], None]
) -> Iterator[tuple[Item, Value]]:
    """Yield each item with its result on arrival, in any order; the items are started in order.

    The threads are daemons, so a hanging call never keeps the process from ending.

    After a failure no further item is started. Calls in progress may be paid, so their results are still yielded before
    the first error is raised. `on_tick` may raise to stop waiting.
    """
    for ready in groups_in_parallel(function, items, threads=threads, on_tick=on_tick):
        yield from ready


def groups_in_parallel(
    function: Callable[[Item], Value], items: Sequence[Item], *, threads: int, on_tick: Callable[[], None]
) -> Iterator[list[tuple[Item, Value]]]:
    """Work like `in_parallel`, but yield all results since the last time together, for a single transaction."""
    if threads <= 1 or len(items) <= 1:
        for item in items:
            on_tick()
            yield [(item, function(item))]
        return
    results: queue.SimpleQueue[Result[Item, Value]] = queue.SimpleQueue()
    failed = threading.Event()
    workers = start_workers(function, items, results, failed, min(threads, len(items)))
    error: BaseException | None = None
    done = 0
    try:
        while done < len(items):
            found = waited_for(results)
            if not found:
                on_tick()
                if failed.is_set() and not any(worker.is_alive() for worker in workers) and results.empty():
                    break
            done += len(found)
            error = error or next((exc for _, _, exc in found if exc is not None), None)
            if ready := [(item, value) for item, value, exc in found if exc is None]:
                yield ready  # type: ignore[misc]  # a value of None is a result too
    finally:
        failed.set()
    if error is not None:
        raise error


def start_workers(
    function: Callable[[Item], Value],
    items: Sequence[Item],
    results: queue.SimpleQueue[Result[Item, Value]],
    failed: threading.Event,
    threads: int,
) -> list[threading.Thread]:
    """Start threads which take the items in order until the items run out or an item fails."""
    waiting: queue.SimpleQueue[Item] = queue.SimpleQueue()
    for item in items:
        waiting.put(item)

    def work() -> None:
        while not failed.is_set():
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                results.put((item, function(item), None))
            except BaseException as exc:
                failed.set()
                results.put((item, None, exc))

    # Each thread gets a copy of the caller's context, so its work belongs to the document's trace.
    runs = [copy_context().run for _ in range(threads)]
    workers = [threading.Thread(target=run, args=(work,), name="paid call", daemon=True) for run in runs]
    for worker in workers:
        worker.start()
    return workers


def waited_for(results: queue.SimpleQueue[Result[Item, Value]]) -> list[Result[Item, Value]]:
    """Return the results available now or within a tick."""
    found: list[Result[Item, Value]] = []
    try:
        found.append(results.get(timeout=TICK_SECONDS))
        while True:
            found.append(results.get_nowait())
    except queue.Empty:
        return found
