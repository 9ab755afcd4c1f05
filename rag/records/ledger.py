"""The cost ledger: one row for every paid call, written once and never changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.database import Database, queries
from rag.types import Charge, ProcessingCosts


class Ledger:
    """Writes charges, and adds up those of a document."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(
        self,
        tenant_id: str,
        charge: Charge,
        *,
        document_id: UUID | None = None,
        chat_log_id: UUID | None = None,
        connection: Connection | None = None,
    ) -> None:
        """Write one row; with `connection`, inside the caller's transaction, so that both are kept or neither."""
        usage = charge.usage
        row = {
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
            "document_id": document_id,
            "chat_log_id": chat_log_id,
        }
        if connection is None:
            self._database.execute(tenant_id, "record_charge", **row)
        else:
            connection.execute(queries["record_charge"], row)

    def record_all(self, tenant_id: str, charges: Sequence[Charge]) -> None:
        """Write a row for each of these charges, all or none."""
        if charges:
            with self._database.transaction(tenant_id) as connection:
                for charge in charges:
                    self.record(tenant_id, charge, connection=connection)

    def document_costs(self, tenant_id: str, document_id: UUID) -> ProcessingCosts:
        """What processing this document did cost, by step. None: a call has no known price; then so has the total.

        Cutting a document into chunks costs nothing, unless it had to embed its sentences: that is embedding.
        """
        rows = self._database.fetch_all(tenant_id, "costs_of_document", _OperationCost, document_id=document_id)
        costs = {row.operation: row.cost for row in rows}
        zero = Decimal(0)
        return ProcessingCosts(
            parsing=costs.get("ocr", zero),
            chunking=zero,
            embedding=costs.get("embedding", zero),
            metadata=costs.get("tagging", zero),
            total=_sum(costs.values()),
        )


@dataclass(frozen=True)
class _OperationCost:
    operation: str
    #: None when the price of one of its calls is not known.
    cost: Decimal | None


def _sum(costs: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total
