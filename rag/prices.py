"""What a call cost: the provider's own counts by `genai-prices` for tokens and by `prices.toml` for the rest.

A price that is not known is None, never zero. Lists are data of the installed packages; nothing is fetched.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import genai_prices

from rag.providers.tokens import estimate_tokens
from rag.types import Charge, Operation, Usage

__all__ = ["charge", "estimate_tokens", "retirement_notice"]

Prices = Mapping[str, Decimal]
"""US dollars by unit, one of `SIZES`."""

MILLION = Decimal(1_000_000)
#: What one of each unit is: tokens are priced by the million.
SIZES: Mapping[str, Decimal] = {
    "input_mtok": MILLION,
    "cached_input_mtok": MILLION,
    "output_mtok": MILLION,
    "search_unit": Decimal(1),
    "page": Decimal(1),
}
#: The ledger's numeric(14, 8).
SMALLEST = Decimal("0.00000001")
#: They run here or on the tenant's own machine: no bill comes for them.
FREE_PROVIDERS = frozenset({"builtin", "ollama"})
#: Our names of providers, as genai-prices calls them.
GENAI_NAMES = {"gemini": "google"}


def charge(operation: Operation, usage: Usage, overrides: Mapping[str, Any] | None = None) -> Charge:
    """The cost of one call, with the unit prices used.

    `overrides` are a tenant's own prices (`tenants.settings["prices"]`), by model and unit in US dollars:
    `{"rerank-v3.5": {"search_unit": "0.001"}, "gpt-4o": {"input_mtok": "2.0"}}`; a unit they leave out keeps its listed
    price. The cost is None when a unit that was used has no price.
    """
    if usage.provider in FREE_PROVIDERS:
        return Charge(operation=operation, usage=usage, cost=Decimal(0), unit_prices={"source": "runs locally"})
    own = _own_prices(overrides, usage)
    listed, source = _listed_prices(usage)
    prices = {**listed, **own}
    if "input_mtok" in own and "cached_input_mtok" not in own:
        prices["cached_input_mtok"] = own["input_mtok"]
    amounts = _amounts(usage)
    used = {unit: prices[unit] for unit in amounts if unit in prices}
    shown = {unit: f"{price.normalize():f}" for unit, price in used.items()}
    if len(used) < len(amounts):
        return Charge(operation=operation, usage=usage, cost=None, unit_prices=shown)
    cost = sum((prices[unit] * count / SIZES[unit] for unit, count in amounts.items()), Decimal(0))
    shown["source"] = "tenant" if own.keys() & used.keys() else source
    return Charge(operation=operation, usage=usage, cost=cost.quantize(SMALLEST), unit_prices=shown)


def retirement_notice(model: str, today: date) -> str | None:
    """One sentence when a vendor retires this model, from 180 days before on; None otherwise."""
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
    """What there is to pay for. Cached tokens are a part of the input tokens and priced apart."""
    cached = min(usage.cached_input_tokens, usage.input_tokens)
    amounts: dict[str, int] = {
        "input_mtok": usage.input_tokens - cached,
        "cached_input_mtok": cached,
        "output_mtok": usage.output_tokens,
        "search_unit": usage.search_units,
        "page": usage.pages,
    }
    return {unit: count for unit, count in amounts.items() if count}


def _own_prices(overrides: Mapping[str, Any] | None, usage: Usage) -> Prices:
    """A tenant's prices of this model; what is not a price is left out, for a wrong setting must not end an answer."""
    found = (overrides or {}).get(usage.model)
    return _decimals(found) if isinstance(found, Mapping) else {}


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
    """Prices per million as genai-prices lists them for a call of this size: some models cost more when it is long."""
    provider = GENAI_NAMES.get(usage.provider, usage.provider)
    prices: dict[str, Decimal] = {}
    base = _Counts(input_tokens=usage.input_tokens, output_tokens=0)
    try:
        found = genai_prices.calc_price(base, model_ref=usage.model, provider_id=provider)
    except LookupError:
        return {}
    listed, is_free = found.model_price, usage.model.endswith(":free")
    names: Mapping[str, str] = {
        "input_mtok": "input_mtok",
        "output_mtok": "output_mtok",
        "cached_input_mtok": "cache_read_mtok",
    }
    for unit, name in names.items():
        price = _at_size(getattr(listed, name, None), usage.input_tokens)
        if price is not None:
            prices[unit] = price
        elif is_free:
            prices[unit] = Decimal(0)
    if "cached_input_mtok" not in prices and "input_mtok" in prices:
        prices["cached_input_mtok"] = prices["input_mtok"]
    return prices


def _at_size(price: Any, input_tokens: int) -> Decimal | None:
    """The price of a call with so many input tokens. Past the start of a tier its price is that of every token."""
    if price is None or isinstance(price, Decimal):
        return price
    reached = [tier.price for tier in price.tiers if input_tokens > tier.start]
    found: Decimal = reached[-1] if reached else price.base
    return found


@dataclass
class _Counts:
    """What genai-prices needs to find a model's price."""

    input_tokens: int
    output_tokens: int


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("prices.toml").read_text("utf-8"))


@cache
def _genai_version() -> str:
    return version("genai-prices")
