"""Costs in exact decimals; what is not known is None."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import genai_prices
import pytest
from genai_prices.types import StartDateConstraint

from rag.money.price_list import charge, retirement_notice
from rag.types import Operation, Usage


def cost(provider: str, model: str, overrides: dict[str, Any] | None = None, **counts: Any) -> Decimal | None:
    operation: Operation = "chat"
    return charge(operation, Usage(provider=provider, model=model, **counts), overrides).cost


@pytest.mark.parametrize(
    ("provider", "model", "counts", "expected"),
    [
        ("openai", "text-embedding-3-small", {"input_tokens": 1000}, "0.00002"),
        ("openai", "text-embedding-3-small", {"input_tokens": 3}, "0.00000006"),
        ("openai", "text-embedding-3-large", {"input_tokens": 1000}, "0.00013"),
        ("openai", "gpt-4o", {"input_tokens": 1000, "output_tokens": 100}, "0.0035"),
        ("openai", "gpt-4o", {"input_tokens": 1000, "cached_input_tokens": 400}, "0.002"),
        ("openai", "gpt-4o-mini", {"input_tokens": 1000, "output_tokens": 1000}, "0.00075"),
        ("openai", "gpt-6-luna", {"input_tokens": 1000, "output_tokens": 1000}, "0.0006"),
        ("openai", "gpt-6-luna", {"input_tokens": 300_000, "output_tokens": 1000}, "0.06075"),
        ("gemini", "gemini-embedding-001", {"input_tokens": 1000}, "0.00015"),
        ("openrouter", "meta-llama/llama-3.1-8b-instruct:free", {"input_tokens": 9, "output_tokens": 9}, "0"),
        ("cohere", "rerank-multilingual-v3.0", {"search_units": 1}, "0.002"),
        ("cohere", "rerank-v3.5", {"search_units": 3}, "0.006"),
        ("upstage", "document-parse", {"pages": 7}, "0.07"),
    ],
)
def test_costs_follow_the_lists(provider: str, model: str, counts: dict[str, Any], expected: str) -> None:
    assert cost(provider, model, **counts) == Decimal(expected)
    assert not changes_by_date(provider, model), "on that day this test would fail"


def changes_by_date(provider: str, model: str) -> bool:
    """Whether genai-prices knows another price of a model from some day on."""
    try:
        found = genai_prices.calc_price(genai_prices.Usage(input_tokens=1), model_ref=model, provider_id=provider)
    except LookupError:  # of prices.toml
        return False
    prices = found.model.prices
    return isinstance(prices, list) and any(isinstance(each.constraint, StartDateConstraint) for each in prices)


def test_a_price_that_changes_on_a_day_is_noticed() -> None:
    assert changes_by_date("google", "gemini-flash-latest")


@pytest.mark.parametrize(
    ("provider", "model", "counts"),
    [
        ("openai", "a-model-of-next-year", {"input_tokens": 10}),
        ("nobody", "gpt-4o", {"input_tokens": 10}),
        ("cohere", "rerank-v9", {"search_units": 1}),
        ("openai", "text-embedding-3-small", {"input_tokens": 10, "output_tokens": 10}),
        ("openai", "gpt-4o", {"pages": 1}),
        ("openai", "", {"input_tokens": 10}),
    ],
    ids=["model", "provider", "reranker", "output of an embedder", "pages of a chat model", "no name"],
)
def test_a_price_that_is_not_known_is_none_and_never_zero(provider: str, model: str, counts: dict[str, Any]) -> None:
    assert cost(provider, model, **counts) is None


@pytest.mark.parametrize(("provider", "model"), [("builtin", "lexical"), ("ollama", "bge-m3")])
def test_what_runs_here_costs_nothing(provider: str, model: str) -> None:
    assert cost(provider, model, input_tokens=1000) == 0


def test_cached_tokens_are_a_part_of_the_input() -> None:
    assert cost("openai", "gpt-4o", input_tokens=100, cached_input_tokens=100) == Decimal("0.000125")
    assert cost("openai", "gpt-4o", input_tokens=100, cached_input_tokens=500) == Decimal("0.000125")


def test_a_tenant_may_have_its_own_prices() -> None:
    own = {
        "rerank-multilingual-v3.0": {"search_unit": "0.001"},
        "gpt-4o": {"input_mtok": 2},
        "own": {"input_mtok": "1"},
    }
    assert cost("cohere", "rerank-multilingual-v3.0", own, search_units=1) == Decimal("0.001")
    assert cost("openai", "gpt-4o", own, input_tokens=1000, output_tokens=100) == Decimal("0.003")
    assert cost("openai", "gpt-4o", own, input_tokens=1000, cached_input_tokens=1000) == Decimal("0.002")
    assert cost("openai", "own", own, input_tokens=1000) == Decimal("0.001")
    assert cost("openai", "own", own, input_tokens=1000, output_tokens=1) is None


@pytest.mark.parametrize("price", ["", "free", None, -1, "NaN", "Infinity", {}, [1]])
def test_what_is_no_price_is_left_out(price: Any) -> None:
    assert cost("cohere", "rerank-v3.5", {"rerank-v3.5": {"search_unit": price}}, search_units=1) == Decimal("0.002")
    assert cost("cohere", "rerank-v3.5", {"rerank-v3.5": price}, search_units=1) == Decimal("0.002")


def test_a_charge_keeps_the_prices_it_used_as_text() -> None:
    usage = Usage(provider="openai", model="gpt-4o", input_tokens=1000, output_tokens=100)
    made = charge("chat", usage)
    assert made.usage == usage
    assert {unit: made.unit_prices[unit] for unit in ("input_mtok", "output_mtok")} == {
        "input_mtok": "2.5",
        "output_mtok": "10",
    }
    assert made.unit_prices["source"].startswith("genai-prices ")
    assert (
        charge("reranking", Usage(provider="cohere", model="rerank-v3.5", search_units=1))
        .unit_prices["source"]
        .startswith("prices.toml")
    )
    assert charge("chat", usage, {"gpt-4o": {"input_mtok": "1"}}).unit_prices["source"] == "tenant"


@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "gpt-4o"), ("openai", "gpt-6-luna"), ("openai", "gpt-5.6-terra"), ("google", "gemini-flash-latest")],
)
@pytest.mark.parametrize("counts", [(1000, 0, 100), (1000, 300, 100), (400_000, 1000, 100)])
def test_costs_are_those_that_genai_prices_works_out(provider: str, model: str, counts: tuple[int, int, int]) -> None:
    input_tokens, cached, output = counts
    usage = genai_prices.Usage(input_tokens=input_tokens, cache_read_tokens=cached, output_tokens=output)
    expected = genai_prices.calc_price(usage, model_ref=model, provider_id=provider).total_price
    ours = cost(
        {"google": "gemini"}.get(provider, provider),
        model,
        input_tokens=input_tokens,
        cached_input_tokens=cached,
        output_tokens=output,
    )
    assert ours == expected.quantize(Decimal("0.00000001"))


def test_models_that_are_retired_are_said_so() -> None:
    assert retirement_notice("gpt-4o", date(2026, 1, 1)) is None
    soon, late = retirement_notice("gpt-4o", date(2026, 11, 21)), retirement_notice("gpt-4o", date(2027, 1, 14))
    assert soon == "gpt-4o leaves its provider's API on 2027-01-14. Plan to move to gpt-6-luna."
    assert late is not None
    assert "was to leave" in late
    assert retirement_notice("gpt-6-luna", date(2027, 2, 1)) is None
