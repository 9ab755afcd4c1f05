"""Nothing that parses in the application's process breaks or stalls; `benchmarks.fuzz` tries for an hour."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rag
from tests.patience import patient
from tests.security.parsers import FOUND, TARGETS
from tests.security.target import MOST_SECONDS, ODD

PRODUCT = Path(rag.__file__).parent


@pytest.mark.parametrize("name", TARGETS)
def test_it_raises_nothing_but_its_refusals(name: str) -> None:
    target = TARGETS[name]
    for text in FOUND.get(name, ()):
        assert target.run(text) < patient(MOST_SECONDS)

    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(target.texts)
    def any_text(text: str) -> None:
        target.run(text)

    any_text()


@pytest.mark.parametrize("name", TARGETS)
def test_the_longest_text_takes_two_seconds_at_most(name: str) -> None:
    target = TARGETS[name]

    @settings(max_examples=3, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(target.texts, st.sampled_from(target.pieces or ODD))
    def long_text(start: str, piece: str) -> None:
        assert target.seconds_of_longest(start, piece, "x") < patient(MOST_SECONDS)

    long_text()


def parses_json(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and (
        ast.unparse(node.func) == "json.loads" or (isinstance(node.func, ast.Attribute) and node.func.attr == "json")
    )


def test_whoever_expects_broken_json_expects_endless_lists_in_lists() -> None:
    """Python raises another error for these: `RecursionError`."""
    unprepared = []
    for path in sorted(PRODUCT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Try) and any(parses_json(inner) for one in node.body for inner in ast.walk(one)):
                caught = " ".join(ast.unparse(one.type) if one.type else "Exception" for one in node.handlers)
                if "ValueError" in caught and "RecursionError" not in caught:
                    unprepared.append(f"{path.relative_to(PRODUCT)}:{node.lineno}: {caught}")
    assert unprepared == []
