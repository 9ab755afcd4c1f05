"""What a widget calls before the page is drawn again draws nothing itself.

Streamlit would put it above the page and move everything below: parts that are drawn by themselves are known by their
place, and a click that comes in meanwhile is passed over. A toast has a place of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
FILES = [
    PROJECT / "app.py",
    *sorted(PROJECT.glob("pages/*.py")),
    *sorted(PROJECT.glob("rag/ui/*.py")),
    *sorted(PROJECT.glob("rag/integrations/*/*/section.py")),
]
DRAWING = ("spinner", "status", "progress")


def callbacks(tree: ast.AST) -> Iterator[str]:
    """Yield the names of functions that are handed on, and of those that a lambda calls."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in called:
            yield node.id
        if isinstance(node, ast.Lambda):
            for call in ast.walk(node.body):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                    yield call.func.id


def draws(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "st"
        and node.attr in DRAWING
        for node in ast.walk(function)
    )


def found_in(source: str) -> list[str]:
    tree = ast.parse(source)
    handed_on = set(callbacks(tree))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    # Parts of a page are handed on too, to those that draw it; by the house's rule they are called so.
    return [f.name for f in functions if f.name in handed_on and not f.name.strip("_").startswith("draw") and draws(f)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_no_callback_draws(path: Path) -> None:
    assert found_in(path.read_text("utf-8")) == []


def test_a_callback_that_draws_is_found() -> None:
    source = """
def take_back(ids):
    with st.spinner("…"):
        work(ids)

def measure():
    with st.spinner("…"):
        pass

st.button("Undo", on_click=take_back)
draw(on_measure=lambda: measure())
"""
    assert found_in(source) == ["take_back", "measure"]
