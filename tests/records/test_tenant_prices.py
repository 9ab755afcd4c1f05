"""Prices of a tenant's own: set by administrators from a day on, on record, and never for what is past."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import psycopg
import pytest

from rag.errors import InvalidInput, NotAllowed
from rag.money.ledger import Ledger
from rag.money.price_list import Price, TenantPrices, charge, read_prices
from rag.records.audit import AuditLog
from rag.storage.database import Database
from rag.types import Collection, Identity, Role, Usage

MILLION = Usage(provider="openai", model="gpt-4o", input_tokens=1_000_000)


def person(role: Role, tenant_id: str = "demo") -> Identity:
    return Identity(account_id=uuid4(), tenant_id=tenant_id, email="a@example.com", name="A", role=role)


@pytest.fixture
def prices(database: Database) -> TenantPrices:
    return TenantPrices(database)


@pytest.fixture
def admin() -> Identity:
    return person(Role.ADMIN)


def cost(database: Database, usage: Usage = MILLION, tenant_id: str = "demo") -> Decimal | None:
    with database.transaction(tenant_id) as connection:
        return charge("chat", usage, read_prices(connection)).cost


def of(prices: TenantPrices, who: Identity, unit: str = "input_mtok") -> Price:
    return next(price for price in prices.list(who) if (price.model, price.unit) == ("gpt-4o", unit))


def begins_today(superuser_conninfo: str) -> None:
    """A day passes for every price."""
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute("UPDATE tenant_prices SET valid_from = valid_from - 1")


def test_a_price_counts_from_its_day_and_the_past_keeps_its_own(
    prices: TenantPrices, database: Database, admin: Identity, superuser_conninfo: str
) -> None:
    assert cost(database) == Decimal("2.5")
    prices.set(admin, "gpt-4o", "input_mtok", "2.00")
    assert cost(database) == 2
    with database.transaction("demo") as connection:
        Ledger(database).record("demo", charge("chat", MILLION, read_prices(connection)), connection=connection)
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    prices.set(admin, "gpt-4o", "input_mtok", "3", tomorrow)
    assert cost(database) == 2
    assert [change.price for change in of(prices, admin).planned] == [3]
    begins_today(superuser_conninfo)
    assert cost(database) == 3
    assert of(prices, admin).own == 3
    assert not of(prices, admin).planned
    prices.set(admin, "gpt-4o", "input_mtok", None)
    assert cost(database) == Decimal("2.5")
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT cost FROM cost_ledger").fetchall() == [(2,)]
        # Nobody of the application can change or remove what was agreed.
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute("UPDATE tenant_prices SET price = 0")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute("DELETE FROM tenant_prices")


def test_a_price_begins_today_at_the_earliest(prices: TenantPrices, admin: Identity) -> None:
    with pytest.raises(InvalidInput, match="can start today or later"):
        prices.set(admin, "gpt-4o", "input_mtok", "2", datetime.now(UTC).date() - timedelta(days=1))
    assert prices.list(admin) == []


@pytest.mark.parametrize(
    ("model", "unit", "price"),
    [
        ("", "page", "1"),
        ("m" * 201, "page", "1"),
        ("a\x00b", "page", "1"),
        ("gpt-4o", "token", "1"),
        ("gpt-4o", "page", "-1"),
        ("gpt-4o", "page", "NaN"),
        ("gpt-4o", "page", "1e9"),
        ("gpt-4o", "page", "Infinity"),
        ("gpt-4o", "page", "a lot"),
        ("gpt-4o", "page", "0.000000001"),
        ("gpt-4o", "page", ""),
        ("gpt-4o", "page", "1e-999999999"),
    ],
)
def test_what_is_no_price_is_refused_with_a_sentence(
    prices: TenantPrices, admin: Identity, model: str, unit: str, price: str
) -> None:
    with pytest.raises(InvalidInput):
        prices.set(admin, model, unit, price)


def test_what_is_in_use_is_listed_with_its_list(
    prices: TenantPrices, database: Database, admin: Identity, collection: Collection
) -> None:
    assert prices.list(admin) == []  # the built-in embedder costs nothing
    for usage in (MILLION, Usage(provider="cohere", model="rerank-v3.5", search_units=1)):
        Ledger(database).record("demo", charge("chat", usage))
    prices.set(admin, "our-own", "page", "0.5")
    found = {(price.model, price.unit): price for price in prices.list(admin)}
    assert found["rerank-v3.5", "search_unit"].listed == Decimal("0.002")
    assert found["rerank-v3.5", "search_unit"].source.startswith("prices.toml 2026-")
    assert found["gpt-4o", "output_mtok"].source.startswith("genai-prices ")
    assert (found["our-own", "page"].listed, found["our-own", "page"].own) == (None, Decimal("0.5"))
    assert ("gpt-4o", "page") not in found


def test_only_administrators_see_and_set_them_and_each_change_is_on_record(
    prices: TenantPrices, database: Database, admin: Identity
) -> None:
    for role in (Role.EMPLOYEE, Role.MANAGER):
        with pytest.raises(NotAllowed):
            prices.list(person(role))
        with pytest.raises(NotAllowed):
            prices.set(person(role), "gpt-4o", "input_mtok", "2")
    prices.set(admin, "gpt-4o", "input_mtok", "2")
    prices.set("demo", "gpt-4o", "input_mtok", "1")  # whoever runs the product
    operators, admins = AuditLog(database).entries(admin, kind="price")
    assert (operators.actor, operators.action) == ("operator", "price changed: gpt-4o input_mtok 1")
    assert (admins.actor, admins.target) == (admin.email, "gpt-4o")
    assert admins.changes["price"] == [None, 2]
    assert cost(database) == 1


def test_another_tenant_pays_its_own_prices(prices: TenantPrices, database: Database, admin: Identity) -> None:
    prices.set(admin, "gpt-4o", "input_mtok", "0")
    assert cost(database) == 0
    assert cost(database, tenant_id="other") == Decimal("2.5")
    assert prices.list(person(Role.ADMIN, "other")) == []
