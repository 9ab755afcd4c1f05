"""Price calls: tokens with `genai-prices`, other units with `prices.toml`. A tenant's prices override both.

An unknown price is `None`, never zero. The lists come with the installed packages, without downloads. A tenant's prices
are rows with a start date, and a price change adds a row.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from psycopg import Connection

from rag.access.sessions import require_admin, require_recent
from rag.errors import InvalidInput
from rag.language import N_
from rag.settings.providers import FREE_PROVIDERS, PROVIDERS, provider_spec
from rag.storage.database import Database, queries
from rag.types import Charge, Identity, Operation, Usage, Who

Prices = Mapping[str, Decimal]
"""US dollars by unit, one of `SIZES`."""

MILLION = Decimal(1_000_000)
#: The size of each unit: tokens are priced by the million.
SIZES: Mapping[str, Decimal] = {
    "input_mtok": MILLION,
    "cached_input_mtok": MILLION,
    "output_mtok": MILLION,
    "search_unit": Decimal(1),
    "page": Decimal(1),
}
#: Unit names for people.
UNIT_NAMES: Mapping[str, str] = {
    "input_mtok": N_("A million input tokens"),
    "cached_input_mtok": N_("A million cached input tokens"),
    "output_mtok": N_("A million output tokens, reasoning included"),
    "search_unit": N_("A search unit"),
    "page": N_("A page"),
}
#: The ledger's numeric(14, 8).
SMALLEST = Decimal("0.00000001")
#: A tenant's price above this is rejected as a typing error.
HIGHEST = Decimal(1_000_000)
LONGEST_MODEL = 200


def charge(operation: Operation, usage: Usage, overrides: Mapping[str, Any] | None = None) -> Charge:
    """Price a call, and return the charge with the unit prices used.

    The cost is `None` if a used unit has no price. `overrides` are a tenant's prices (`read_prices`), by model and unit
    in US dollars: `{"rerank-v3.5": {"search_unit": "0.001"}, "gpt-4o": {"input_mtok": "2.0"}}`. Units without an
    override have their list price.
    """
    if usage.provider in FREE_PROVIDERS:
        return Charge(operation=operation, usage=usage, cost=Decimal(0), unit_prices={"source": "runs locally"})
    tenant_prices = _tenant_prices(overrides, usage)
    listed, source = _listed_prices(usage)
    prices = {**listed, **tenant_prices}
    if "input_mtok" in tenant_prices and "cached_input_mtok" not in tenant_prices:
        prices["cached_input_mtok"] = tenant_prices["input_mtok"]
    amounts = _amounts(usage)
    used = {unit: prices[unit] for unit in amounts if unit in prices}
    unit_prices = {unit: f"{price.normalize():f}" for unit, price in used.items()}
    if len(used) < len(amounts):
        return Charge(operation=operation, usage=usage, cost=None, unit_prices=unit_prices)
    cost = sum((prices[unit] * count / SIZES[unit] for unit, count in amounts.items()), Decimal(0))
    unit_prices["source"] = "tenant" if tenant_prices.keys() & used.keys() else source
    return Charge(operation=operation, usage=usage, cost=cost.quantize(SMALLEST), unit_prices=unit_prices)


def embedding_price(provider: str, model: str) -> Decimal | None:
    """Return the list price for embedding a million tokens, in US dollars; `None` if unknown."""
    return charge("embedding", Usage(provider=provider, model=model, input_tokens=1_000_000)).cost


def is_listed(model: str) -> bool:
    """Whether any provider's price list has a model with this name."""
    return any(_listed_prices(Usage(provider=spec.name, model=model, input_tokens=1))[0] for spec in PROVIDERS)


@dataclass(frozen=True, kw_only=True)
class PriceChange:
    """A row in `tenant_prices`: a tenant's price from `valid_from` on."""

    model: str
    unit: str
    #: US dollars; `None` means the listed price applies from this day.
    price: Decimal | None
    valid_from: date
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Price:
    """The price for a model's unit: list price, tenant's price, and planned price changes."""

    #: Empty for a model only in the tenant's prices.
    provider: str
    model: str
    unit: str
    #: US dollars, or `None` if unlisted.
    listed: Decimal | None
    #: The price list, with its version or date.
    source: str
    own: Decimal | None
    #: The first day of the tenant's price.
    own_since: date | None
    #: Future changes, next first.
    planned: Sequence[PriceChange]


class TenantPrices:
    """Store tenants' prices. Past costs never change, because the ledger stores each call's price."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, who: Who) -> Sequence[Price]:
        """List prices for all models in use or with a tenant's price. Raises `NotAllowed`."""
        require_admin(who)
        with self._database.transaction(who) as connection:
            used = connection.execute(queries["models_in_use"]).fetchall()
        changes = self._database.fetch_all(who, "tenant_price_changes", PriceChange)
        today = datetime.now(UTC).date()
        models = [(provider, model) for provider, model in used if provider not in FREE_PROVIDERS]
        named = {model for _, model in models}
        models += [("", model) for model in sorted({change.model for change in changes} - named)]
        return [
            price
            for provider, model in models
            for price in _prices_of_model(provider, model, [c for c in changes if c.model == model], today)
        ]

    def set(self, who: Who, model: str, unit: str, price: Decimal | str | None, valid_from: date | None = None) -> None:
        """Set the tenant's price in US dollars from a day on, by default today.

        If `price` is `None`, the list price is restored. For administrators who signed in recently. Raises
        `NotAllowed`, `SignInAgain`, `InvalidInput`.
        """
        require_admin(who)
        require_recent(self._database, who)
        today = datetime.now(UTC).date()
        day = valid_from or today
        if day < today:
            raise InvalidInput("A new price can start today or later, because past charges do not change.")
        row = {"model": _model(model), "unit": _unit(unit), "price": _own_price(price), "valid_from": day}
        with self._database.transaction(who) as connection:
            connection.execute(queries["add_tenant_price"], row)
            if not isinstance(who, Identity):
                paid = "as listed" if row["price"] is None else row["price"]
                act = {"action": f"price changed: {row['model']} {row['unit']} {paid}"}
                connection.execute(queries["note_operator_act"], act)


def read_prices(connection: Connection) -> Mapping[str, Any]:
    """Read the tenant's prices valid today, by model and unit. The result may be empty."""
    row = connection.execute(queries["tenant_prices"]).fetchone()
    return row[0] if row else {}


def price_overrides(database: Database, tenant_id: str) -> Mapping[str, Any]:
    """Read the tenant's prices like `read_prices`, in a separate transaction."""
    with database.transaction(tenant_id) as connection:
        return read_prices(connection)


def _prices_of_model(provider: str, model: str, changes: Sequence[PriceChange], today: date) -> list[Price]:
    listed, source = _listed_prices(Usage(provider=provider, model=model)) if provider else ({}, "")
    prices = []
    for unit in SIZES:
        unit_changes = [change for change in changes if change.unit == unit]  # the latest comes first
        begun = next((change for change in unit_changes if change.valid_from <= today), None)
        if unit not in listed and not unit_changes:
            continue
        paid = begun if begun is not None and begun.price is not None else None
        prices.append(
            Price(
                provider=provider,
                model=model,
                unit=unit,
                listed=listed.get(unit),
                source=source if unit in listed else "",
                own=paid.price if paid else None,
                own_since=paid.valid_from if paid else None,
                planned=_future_changes(unit_changes, today),
            )
        )
    return prices


def _future_changes(changes: Sequence[PriceChange], today: date) -> list[PriceChange]:
    """Return the future price changes, earliest first.

    If a day has several changes, only the change entered last counts.
    """
    days: dict[date, PriceChange] = {}
    for change in changes:
        if change.valid_from > today:
            days.setdefault(change.valid_from, change)
    return [days[day] for day in sorted(days)]


def _model(text: str) -> str:
    model = text.strip()
    if not model or len(model) > LONGEST_MODEL or not model.isprintable():
        raise InvalidInput("Enter the name that the provider gives the model, such as gpt-4o.")
    return model


def _unit(text: str) -> str:
    if text not in SIZES:
        raise InvalidInput(f"There is no unit {text!r}; choose one of {', '.join(SIZES)}.")
    return text


def _own_price(price: Decimal | str | None) -> Decimal | None:
    if price is None:
        return None
    try:
        value = Decimal(str(price).strip())
        is_price = value.is_finite() and 0 <= value <= HIGHEST and value == value.quantize(SMALLEST)
    except InvalidOperation:
        is_price = False
    if not is_price:
        raise InvalidInput("Write the price in US dollars, such as 2.50, with at most eight digits after the point.")
    return value


def retirement_notice(model: str, today: date) -> str | None:
    """Return a sentence if the provider retires this model within 180 days, or has retired the model; else `None`."""
    for entry in _table()["retirement"]:
        if model not in entry["models"]:
            continue
        day: date = entry["on"]
        if today >= day:
            return f"{model} was to leave its provider's API on {day:%Y-%m-%d}. Choose {entry['successor']} instead."
        if (day - today).days <= 180:
            return f"{model} leaves its provider's API on {day:%Y-%m-%d}. Plan to move to {entry['successor']}."
    return None


def _amounts(usage: Usage) -> dict[str, int]:
    """Return the billed amounts by unit, without zeros. Cached tokens are subtracted from the input tokens."""
    cached = min(usage.cached_input_tokens, usage.input_tokens)
    amounts: dict[str, int] = {
        "input_mtok": usage.input_tokens - cached,
        "cached_input_mtok": cached,
        "output_mtok": usage.output_tokens,
        "search_unit": usage.search_units,
        "page": usage.pages,
    }
    return {unit: count for unit, count in amounts.items() if count}


def _tenant_prices(overrides: Mapping[str, Any] | None, usage: Usage) -> Prices:
    """Return a tenant's prices for this model. Invalid prices are skipped, because they must not stop an answer."""
    prices = (overrides or {}).get(usage.model)
    return _decimals(prices) if isinstance(prices, Mapping) else {}


def _decimals(raw: Mapping[str, Any]) -> dict[str, Decimal]:
    prices = {}
    for unit in SIZES:
        try:
            price = Decimal(str(raw[unit]))
        except (KeyError, InvalidOperation):
            continue
        if price.is_finite() and price >= 0:
            prices[unit] = price
    return prices


def _listed_prices(usage: Usage) -> tuple[Prices, str]:
    table = _table()
    for entry in table.get(usage.provider, {}).values():
        if usage.model in entry["names"]:
            return _decimals(entry), f"prices.toml {table['updated']}"
    return _genai_prices(usage), f"genai-prices {_genai_version()}"


def _genai_prices(usage: Usage) -> Prices:
    """Return the prices per million tokens, by unit, from the package genai-prices.

    The prices depend on the call's size, because some models cost more per token in long calls.
    """
    provider = provider_spec(usage.provider).price_id or usage.provider
    prices: dict[str, Decimal] = {}
    import genai_prices  # Imported with the first priced call: most commands make none.

    base = _Counts(input_tokens=usage.input_tokens, output_tokens=0)
    try:
        calculated = genai_prices.calc_price(base, model_ref=usage.model, provider_id=provider)
    except LookupError:
        return {}
    listed, is_free = calculated.model_price, usage.model.endswith(":free")
    names: Mapping[str, str] = {
        "input_mtok": "input_mtok",
        "output_mtok": "output_mtok",
        "cached_input_mtok": "cache_read_mtok",
    }
    for unit, name in names.items():
        price = _price_for_size(getattr(listed, name, None), usage.input_tokens)
        if price is not None:
            prices[unit] = price
        elif is_free:
            prices[unit] = Decimal(0)
    if "cached_input_mtok" not in prices and "input_mtok" in prices:
        prices["cached_input_mtok"] = prices["input_mtok"]
    return prices


def _price_for_size(price: Any, input_tokens: int) -> Decimal | None:
    """Return the price per token in a call with this many input tokens.

    With tiered prices, the highest tier reached applies to every token.
    """
    if price is None or isinstance(price, Decimal):
        return price
    reached = [tier.price for tier in price.tiers if input_tokens > tier.start]
    reached_price: Decimal = reached[-1] if reached else price.base
    return reached_price


@dataclass
class _Counts:
    input_tokens: int
    output_tokens: int


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("prices.toml").read_text("utf-8"))


@cache
def _genai_version() -> str:
    return version("genai-prices")
