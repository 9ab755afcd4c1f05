"""Forecast a month's cost, and estimate the cost of the same questions with a different model."""

from __future__ import annotations

import calendar
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from rag.money.price_list import MILLION, charge
from rag.records.analytics import Analytics, Filters, ModelCost, Period
from rag.settings.providers import PROVIDERS
from rag.types import Usage, Who

#: Days used for each weekday's mean cost: four of each.
LOOKED_BACK = 28
#: With fewer days since the first cost, no forecast is made.
LEAST_DAYS = 7
#: Name parts of models which write no answers: pictures, speech.
NOT_FOR_TEXT = ("image", "audio", "realtime", "davinci", "cyber", "rosalind", "claude")
#: Operations using a chat model.
CHAT_OPERATIONS = ("chat", "translation", "tagging")


@dataclass(frozen=True, kw_only=True)
class MonthForecast:
    """A month's cost so far, and the expected cost for the whole month. `expected` is `None` with too few days."""

    spent: Decimal
    #: `None` with too few days for a forecast.
    expected: Decimal | None
    last_day: date


def forecast(analytics: Analytics, who: Who, filters: Filters, today: date) -> MonthForecast:
    """Forecast this month's cost.

    The forecast is the cost to date and, for each remaining day, the mean cost on the same weekday in the past.
    """
    last_day = today.replace(day=calendar.monthrange(today.year, today.month)[1])
    back = Period.of_days(LOOKED_BACK, until=today - timedelta(days=1))
    month = analytics.by_day(who, Period(today.replace(day=1), today), filters, "day")
    spent = sum((day.cost for day in month), Decimal(0))
    past = analytics.by_day(who, back, filters, "day")
    begun = next((place for place, day in enumerate(past) if day.cost), len(past))
    past_days = past[begun:]
    if len(past_days) < LEAST_DAYS:
        return MonthForecast(spent=spent, expected=None, last_day=last_day)
    means = {}
    for weekday in range(7):
        costs = [day.cost for day in past_days if day.day.weekday() == weekday]
        means[weekday] = sum(costs, Decimal(0)) / len(costs)
    expected = spent
    for ahead in range(1, (last_day - today).days + 1):
        expected += means[(today + timedelta(days=ahead)).weekday()]
    # The rest of today: a day cheaper than usual so far is expected to catch up.
    today_so_far = month[-1].cost if month else Decimal(0)
    expected += max(means[today.weekday()] - today_so_far, Decimal(0))
    return MonthForecast(spent=spent, expected=expected, last_day=last_day)


@dataclass(frozen=True, kw_only=True)
class OtherModel:
    """The cost of all chat calls, and their estimated cost with a different model. `None` means an unknown price."""

    calls: int
    paid: Decimal
    would_cost: Decimal | None
    #: Calls without a known price; they are in `would_cost` but not in `paid`.
    unpriced_calls: int


def with_other_model(
    used: Sequence[ModelCost], provider: str, model: str, own_prices: Mapping[str, Any] | None = None
) -> OtherModel:
    """Estimate the cost of all chat calls with a different model, from their token counts.

    Token counts differ slightly between models.
    """
    calls = [row for row in used if row.operation in CHAT_OPERATIONS]
    # Price calls at their average size: some models cost more for long calls.
    count = sum(row.calls for row in calls) or 1
    total = Usage(
        provider=provider,
        model=model,
        input_tokens=sum(row.input_tokens for row in calls),
        cached_input_tokens=sum(row.cached_input_tokens for row in calls),
        output_tokens=sum(row.output_tokens for row in calls),
    )
    mean = Usage(
        provider=provider,
        model=model,
        input_tokens=max(total.input_tokens // count, 2),
        cached_input_tokens=1,
        output_tokens=1,
    )
    prices = charge("chat", mean, own_prices).unit_prices
    amounts = {
        "input_mtok": total.input_tokens - total.cached_input_tokens,
        "cached_input_mtok": total.cached_input_tokens,
        "output_mtok": total.output_tokens,
    }
    is_priced = all(unit in prices for unit, amount in amounts.items() if amount)
    would = (Decimal(prices[unit]) * amount / MILLION for unit, amount in amounts.items() if amount)
    return OtherModel(
        calls=sum(row.calls for row in calls),
        paid=sum((row.cost for row in calls if row.cost is not None), Decimal(0)),
        would_cost=sum(would, Decimal(0)) if is_priced else None,
        unpriced_calls=sum(row.unpriced_calls for row in calls),
    )


def priced_chat_models() -> list[tuple[str, str]]:
    """Return (provider, model) for the chat models with known list prices."""
    from genai_prices import data_snapshot  # Imported with the page for comparing models.

    ours = {spec.price_id or spec.name: spec.name for spec in PROVIDERS if "chat" in spec.capabilities}
    return sorted(
        (ours[provider.id], model.id)
        for provider in data_snapshot.get_snapshot().providers
        if provider.id in ours and provider.id != "openrouter"
        for model in provider.models
        if not isinstance(model.prices, list)
        and getattr(model.prices, "input_mtok", None) is not None
        and getattr(model.prices, "output_mtok", None)
        and model.deprecated is None
        and not any(part in model.id for part in NOT_FOR_TEXT)
    )
