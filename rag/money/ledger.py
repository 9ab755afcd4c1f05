"""The cost ledger: a row for every paid call, never changed."""

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
    """Write charges, and sum a document's charges."""

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
        """Write a row; with `connection`, in the caller's transaction, so either both are stored or neither.

        A call for a document or a question also belongs to its collection; `collection_id` is for other calls.
        """
        row = {**self._row_of(tenant_id, charge, document_id, chat_log_id), "collection_id": collection_id}
        if connection is None:
            self._database.execute(tenant_id, "record_charge", **row)
        else:
            connection.execute(queries["record_charge"], row)

    @staticmethod
    def _row_of(tenant_id: str, charge: Charge, document_id: UUID | None, chat_log_id: UUID | None) -> dict[str, Any]:
        """Count a charge in this process's metrics; return the values for its row."""
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
        """Record a question's call before it is made, with its expected usage, and the charges of earlier calls.

        If this process is killed, the ledger holds this estimate. Pass the result to `finish`.
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
        """Record a call for a collection before it is made, like `begin`; `finish_for_collection` ends it.

        Records left by a dead process are settled with the document calls.
        """
        row = {
            "owner_id": collection_id, "operation": operation, "digest": uuid4().hex,
            "expected": Jsonb(asdict(expected)), "document_id": None, "chat_log_id": None,
        }  # fmt: skip
        return UUID(str(self._database.fetch_value(tenant_id, "begin_paid_call", **row)))

    def keep_alive(self, tenant_id: str, call_id: UUID) -> None:
        """Keep a recorded call open; without a sign for a minute, the estimate is charged."""
        self._database.execute(tenant_id, "resend_paid_call", id=call_id)

    def finish_for_collection(self, tenant_id: str, call_id: UUID, charge: Charge | None) -> None:
        """Write a recorded call's charge and remove its record.

        If the record is gone, the call took so long that its estimate was charged: no call is charged twice.
        """
        with self._database.transaction(tenant_id) as connection:
            is_open = connection.execute(queries["finish_paid_call"], {"id": call_id}).rowcount > 0
            if is_open and charge is not None:
                self.record(tenant_id, charge, connection=connection)

    def finish(self, tenant_id: str, finished: Iterable[Finished], *, chat_log_id: UUID) -> None:
        """Write the charges for calls and remove their records, in a single transaction.

        If a record is gone, the call's estimate was charged: no call is charged twice.
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
        """Return this document's processing cost, by step.

        A step with an unpriced call is `None`, and so is the total. Chunking costs nothing, unless it embeds sentences
        to find changes of topic.
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
        """Write a document's cost so far to its row."""
        costs = Jsonb(amounts_to_json(self.document_costs(tenant_id, document_id)))
        self._database.execute(tenant_id, "note_costs", document_id=document_id, costs=costs)


def amounts_to_json(value: CostEstimate | ProcessingCosts) -> dict[str, Any]:
    """Convert amounts to JSON: dollars as exact strings, null without a known price."""
    return {name: str(amount) if isinstance(amount, Decimal) else amount for name, amount in asdict(value).items()}


def usage_from_json(value: Mapping[str, Any]) -> Usage:
    """Read a call's expected usage from its row."""
    known = {item.name for item in fields(Usage)}
    return Usage(**{name: part for name, part in value.items() if name in known})


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
