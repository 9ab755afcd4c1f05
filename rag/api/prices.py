"""Routes for `/api/prices`: list prices, and the tenant's prices."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from rag.api.routing import ApiBody, ApiModel, ApiRoute, Caller, needs
from rag.money.price_list import Price
from rag.services import services

router = APIRouter(route_class=ApiRoute, tags=["Prices"])

Unit = Literal["input_mtok", "cached_input_mtok", "output_mtok", "search_unit", "page"]
UNITS = "What is paid for: a million tokens (…mtok), a search unit of a reranker, a page of text recognition."


class PlannedPrice(ApiModel):
    """A price change in the future."""

    price: str | None = Field(description="US dollars; null: the listed price counts from then on.")
    valid_from: date


class PriceShape(ApiModel):
    """The list price and your price for a model's unit, in US dollars."""

    provider: str = Field(description="Empty for a model that only your own prices name.")
    model: str
    unit: Unit = Field(description=UNITS)
    list_price: str | None = Field(description="As listed; null where no list has it.")
    list_source: str = Field(description="Which list, with its version or date.")
    own_price: str | None = Field(description="Your own, which counts in place of the listed one; null without one.")
    valid_from: date | None = Field(description="The day from which your own price counts.")
    planned: list[PlannedPrice]


class Prices(ApiModel):
    """Prices for the models in use, and for models with prices you have set."""

    prices: list[PriceShape]
    total: int


class PriceBody(ApiBody):
    """A price you set for a model's unit, from a day on."""

    model: str = Field(
        min_length=1, max_length=200, description="The name that the provider gives the model, such as gpt-4o."
    )
    unit: Unit = Field(description=UNITS)
    price: str | None = Field(
        pattern=r"^[0-9]{1,6}(\.[0-9]{1,8})?$", description="US dollars as text; null: the listed price again."
    )
    valid_from: date | None = Field(default=None, description="Default: today. Not a day in the past.")


@router.get("/api/prices", summary="List prices", dependencies=[needs("admin")])
def list_prices(caller: Caller) -> Prices:
    """List each model's list price and your price."""
    return _to_shape(services().prices.list(caller))


@router.post("/api/prices", summary="Set a price of your own", dependencies=[needs("admin")], status_code=201)
def set_price(caller: Caller, body: PriceBody) -> Prices:
    """Set a price from a day on. Earlier charges keep their price. Returns the model's prices."""
    prices = services().prices
    prices.set(caller, body.model, body.unit, body.price, body.valid_from)
    return _to_shape([price for price in prices.list(caller) if price.model == body.model.strip()])


def _to_shape(prices: Sequence[Price]) -> Prices:
    shapes = [
        PriceShape(
            provider=price.provider,
            model=price.model,
            unit=price.unit,  # type: ignore[arg-type]
            list_price=None if price.listed is None else f"{price.listed.normalize():f}",
            list_source=price.source,
            own_price=None if price.own is None else f"{price.own.normalize():f}",
            valid_from=price.own_since,
            planned=[
                PlannedPrice(
                    price=None if change.price is None else f"{change.price.normalize():f}",
                    valid_from=change.valid_from,
                )
                for change in price.planned
            ],
        )
        for price in prices
    ]
    return Prices(prices=shapes, total=len(shapes))
