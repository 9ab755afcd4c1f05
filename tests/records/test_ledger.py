"""One row per paid call, exact, kept apart by tenant, and never changed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import dict_row

from rag.errors import ProviderError
from rag.money.ledger import Ledger
from rag.money.price_list import charge
from rag.storage.database import Database
from rag.types import Charge, ProcessingCosts, Usage


def paid(operation: Any, cost: str | None, **counts: Any) -> Charge:
    usage = Usage(provider="openai", model="gpt-4o", **counts)
    return Charge(operation=operation, usage=usage, cost=None if cost is None else Decimal(cost))


@pytest.fixture
def ledger(database: Database) -> Ledger:
    return Ledger(database)


def rows(superuser_conninfo: str) -> list[dict[str, object]]:
    with psycopg.connect(superuser_conninfo, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM public.cost_ledger ORDER BY created_at").fetchall()


def test_a_charge_is_one_row_with_everything_it_says(ledger: Ledger, superuser_conninfo: str) -> None:
    usage = Usage(provider="openai", model="gpt-4o", input_tokens=1000, cached_input_tokens=400, output_tokens=50)
    chat_log_id = uuid4()
    ledger.record("demo", charge("chat", usage), chat_log_id=chat_log_id)
    (row,) = rows(superuser_conninfo)
    prices = row.pop("unit_prices")
    assert isinstance(prices, dict)
    assert prices["cached_input_mtok"] == "1.25"
    wanted = {
        "tenant_id": "demo", "operation": "chat", "provider": "openai", "model": "gpt-4o", "input_tokens": 1000,
        "cached_input_tokens": 400, "output_tokens": 50, "search_units": 0, "pages": 0, "cost": Decimal("0.00250000"),
        "document_id": None, "chat_log_id": chat_log_id,
    }  # fmt: skip
    assert {name: row[name] for name in wanted} == wanted


def test_an_unknown_price_is_stored_as_null(ledger: Ledger, superuser_conninfo: str) -> None:
    ledger.record("demo", charge("chat", Usage(provider="openai", model="unheard-of", input_tokens=5)))
    assert rows(superuser_conninfo)[0]["cost"] is None


def test_a_tiny_cost_is_kept_exactly(ledger: Ledger, superuser_conninfo: str) -> None:
    ledger.record("demo", charge("embedding", Usage(provider="openai", model="text-embedding-3-small", input_tokens=1)))
    assert rows(superuser_conninfo)[0]["cost"] == Decimal("0.00000002")


def test_a_row_within_a_transaction_goes_with_it(ledger: Ledger, database: Database, superuser_conninfo: str) -> None:

    def record_and_fail() -> None:
        with database.transaction("demo") as connection:
            ledger.record("demo", paid("chat", "1"), connection=connection)
            raise ProviderError

    with pytest.raises(ProviderError):
        record_and_fail()
    assert rows(superuser_conninfo) == []
    with database.transaction("demo") as connection:
        ledger.record("demo", paid("chat", "1"), connection=connection)
    assert len(rows(superuser_conninfo)) == 1


def test_a_row_for_another_tenant_than_the_transactions_is_refused(ledger: Ledger, database: Database) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), database.transaction("demo") as connection:
        ledger.record("other", paid("chat", "1"), connection=connection)


@pytest.mark.parametrize("statement", ["DELETE FROM cost_ledger", "UPDATE cost_ledger SET cost = 0"])
def test_what_is_written_stays(ledger: Ledger, database: Database, statement: str) -> None:
    ledger.record("demo", paid("chat", "1"))
    with pytest.raises(psycopg.errors.InsufficientPrivilege), database.transaction("demo") as connection:
        connection.execute(statement)


def test_the_costs_of_a_document_are_added_by_step(ledger: Ledger) -> None:
    document, question = uuid4(), uuid4()
    for operation, cost in (("ocr", "0.01"), ("embedding", "0.002"), ("embedding", "0.003"), ("tagging", "0.1")):
        ledger.record("demo", paid(operation, cost), document_id=document)
    ledger.record("demo", paid("embedding", "5"), document_id=uuid4())
    ledger.record("demo", paid("chat", "7"), document_id=document, chat_log_id=question)
    assert ledger.document_costs("demo", document) == ProcessingCosts(
        parsing=Decimal("0.01"),
        chunking=Decimal(0),
        embedding=Decimal("0.005"),
        metadata=Decimal("0.1"),
        total=Decimal("0.115"),
    )


def test_a_document_without_paid_calls_costs_nothing(ledger: Ledger) -> None:
    assert ledger.document_costs("demo", uuid4()) == ProcessingCosts()


def test_one_unpriced_call_makes_its_step_and_the_total_unpriced(ledger: Ledger) -> None:
    document = uuid4()
    ledger.record("demo", paid("embedding", "0.002"), document_id=document)
    ledger.record("demo", paid("tagging", "0.1"), document_id=document)
    ledger.record("demo", paid("tagging", None), document_id=document)
    costs = ledger.document_costs("demo", document)
    assert (costs.embedding, costs.metadata, costs.total) == (Decimal("0.002"), None, None)


def test_another_tenants_costs_are_not_seen(ledger: Ledger) -> None:
    document = uuid4()
    ledger.record("other", paid("embedding", "1"), document_id=document)
    assert ledger.document_costs("demo", document) == ProcessingCosts()
