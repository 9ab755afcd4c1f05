"""The cost ledger: a row per paid call, never changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.monitoring import metrics
from rag.storage.database import Database, queries
from rag.types import Charge, CostEstimate, Operation, ProcessingCosts, Usage

#: A charge, `None` without a bill, and the finished call's record, if any.
Finished = tuple[Charge | None, UUID | None]


class Ledger:
    """Write charges to the ledger, and sum a document's charges."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(
        self,
        tenant_id: str,
        charge: Charge,
        *,
        document_id: UUID | None = None,
        chat_log_id: UUID | None = None,
        collection_id: UUID | None = None,
        connection: Connection | None = None,
    ) -> None:
        """Insert a charge. With `connection`, the charge is inserted in the caller's transaction.

        The database derives the collection from `document_id` or `chat_log_id`. If a call has neither, pass
        `collection_id`.
        """
        row = {**self._row_of(tenant_id, charge, document_id, chat_log_id), "collection_id": collection_id}
        if connection is None:
            self._database.execute(tenant_id, "record_charge", **row)
        else:
            connection.execute(queries["record_charge"], row)

    @staticmethod
    def _row_of(tenant_id: str, charge: Charge, document_id: UUID | None, chat_log_id: UUID | None) -> dict[str, Any]:
        """Return the values for a charge's ledger row, and count the charge in the metrics."""
        usage = charge.usage
        labels = (charge.operation, usage.provider, usage.model)
        metrics.paid_calls.labels(*labels).inc()
        if charge.cost is None:
            metrics.unpriced_calls.labels(*labels).inc()
        else:
            metrics.cost.labels(*labels).inc(float(charge.cost))
        return {
            "tenant": tenant_id,
            "operation": charge.operation,
            "provider": usage.provider,
            "model": usage.model,
            "input_tokens": usage.input_tokens,
            "cached_input_tokens": usage.cached_input_tokens,
            "output_tokens": usage.output_tokens,
            "search_units": usage.search_units,
            "pages": usage.pages,
            "unit_prices": Jsonb({unit: str(price) for unit, price in charge.unit_prices.items()}),
            "cost": charge.cost,
            "is_estimated": usage.is_estimated,
            "document_id": document_id,
            "chat_log_id": chat_log_id,
        }

    def begin(
        self,
        tenant_id: str,
        chat_log_id: UUID,
        operation: Operation,
        name: str,
        expected: Usage,
        *,
        finished: Iterable[Finished] = (),
    ) -> UUID:
        """Record a question's call with the expected usage, before the call is made, and return an id for `finish`.

        If this process is killed, the expected usage is charged. The charges for `finished` calls are written too.
        """
        statements = self._finishing(tenant_id, finished, chat_log_id)
        row = {
            "operation": operation, "digest": name, "expected": Jsonb(asdict(expected)), "chat_log_id": chat_log_id,
            "is_alone": not statements,
        }  # fmt: skip
        with self._database.writing(tenant_id) as pipeline:
            for statement, parameters in statements:
                pipeline.run(queries[statement], parameters)
            begun = pipeline.run(queries["begin_call_of_question"], row)
            pipeline.finish()
            (call_id,) = begun.fetchone() or (None,)
        return UUID(str(call_id))

    def begin_for_collection(self, tenant_id: str, collection_id: UUID, operation: Operation, expected: Usage) -> UUID:
        """Record a collection's call before it is made, like `begin`. Returns an id for `finish_for_collection`.

        If a process dies, `DurableCalls.settle_abandoned` charges its calls.
        """
        row = {
            "owner_id": collection_id, "operation": operation, "digest": uuid4().hex,
            "expected": Jsonb(asdict(expected)), "document_id": None, "chat_log_id": None,
        }  # fmt: skip
        return UUID(str(self._database.fetch_value(tenant_id, "begin_paid_call", **row)))

    def keep_alive(self, tenant_id: str, call_id: UUID) -> None:
        """Keep a recorded call open. If this is not called for a minute, the expected usage is charged."""
        self._database.execute(tenant_id, "resend_paid_call", id=call_id)

    def finish_for_collection(self, tenant_id: str, call_id: UUID, charge: Charge | None) -> None:
        """Insert a recorded call's charge and remove the record.

        If the record is missing, the charge is not inserted: the call took too long, and the expected usage was
        charged.
        """
        with self._database.transaction(tenant_id) as connection:
            is_open = connection.execute(queries["finish_paid_call"], {"id": call_id}).rowcount > 0
            if is_open and charge is not None:
                self.record(tenant_id, charge, connection=connection)

    def finish(self, tenant_id: str, finished: Iterable[Finished], *, chat_log_id: UUID) -> None:
        """Insert the charges for recorded calls and remove their records, in a single transaction.

        Calls without a record are skipped, because the expected usage was charged already.
        """
        if statements := self._finishing(tenant_id, finished, chat_log_id):
            self._database.execute_together(tenant_id, statements)

    def _finishing(
        self, tenant_id: str, finished: Iterable[Finished], chat_log_id: UUID
    ) -> list[tuple[str, dict[str, Any]]]:
        statements: list[tuple[str, dict[str, Any]]] = []
        for charge, call_id in finished:
            row = self._row_of(tenant_id, charge, None, chat_log_id) if charge is not None else {}
            if call_id is None:
                statements += [("record_charge", {**row, "collection_id": None})] if row else []
            else:
                statements.append(("record_charge_of_call" if row else "finish_paid_call", {**row, "id": call_id}))
        return statements

    def document_costs(self, tenant_id: str, document_id: UUID) -> ProcessingCosts:
        """Return the cost to process a document, by step.

        If a step has an unpriced call, the step's cost and the total are `None`. Chunking only costs something if
        sentences are embedded to find topic changes.
        """
        rows = self._database.fetch_all(tenant_id, "costs_of_document", _OperationCost, document_id=document_id)
        costs = {row.operation: row.cost for row in rows}
        zero = Decimal(0)
        return ProcessingCosts(
            parsing=costs.get("ocr", zero),
            chunking=costs.get("chunking", zero),
            embedding=costs.get("embedding", zero),
            metadata=costs.get("tagging", zero),
            total=_sum(costs.values()),
        )

    def note_document_costs(self, tenant_id: str, document_id: UUID) -> None:
        """Store a document's current costs in the document's row."""
        costs = Jsonb(amounts_to_json(self.document_costs(tenant_id, document_id)))
        self._database.execute(tenant_id, "note_costs", document_id=document_id, costs=costs)


def amounts_to_json(value: CostEstimate | ProcessingCosts) -> dict[str, Any]:
    """Convert costs to JSON: dollars as exact decimal strings, null if no price is known."""
    return {name: str(amount) if isinstance(amount, Decimal) else amount for name, amount in asdict(value).items()}


def usage_from_json(value: Mapping[str, Any]) -> Usage:
    """Build a call's expected usage from stored JSON."""
    names = {item.name for item in fields(Usage)}
    return Usage(**{name: part for name, part in value.items() if name in names})


@dataclass(frozen=True)
class _OperationCost:
    operation: str
    #: `None` if a call has no known price.
    cost: Decimal | None


def _sum(costs: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total
