"""Names say what a value is: "match", "rows" or "budget", not "found", "kept" or "said"."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
#: Words that could name anything, which newcomers would have to look up.
VAGUE = frozenset(
    {
        "apart", "asked", "beside", "found", "given", "gone", "held", "kept", "known", "made", "meant", "particulars",
        "said", "spoken", "taken", "told", "turns", "wanted",
    }
)  # fmt: skip
#: Names fixed by an interface or a stored schema: the parameter of a SQL statement, the schemas of the API and MCP.
FIXED = {
    ("rag/storage/database.py", "kept"),
    ("rag/api/references.py", "Made"),
    ("rag/api/references.py", "Wanted"),
    ("rag/integrations/channels/mcp/server.py", "Found"),
}


def names_in(tree: ast.AST) -> Iterator[str]:
    """Yield the names which a module defines: functions, classes, parameters and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_the_rule_sees_every_kind_of_definition() -> None:
    source = "found = 1\nclass Kept: pass\ndef said(told, *asked, **given): pass\nfor made in (): pass\n_gone: int"
    names = {name.strip("_").lower() for name in names_in(ast.parse(source))}
    assert names == {"found", "kept", "said", "told", "asked", "given", "made", "gone"}
    assert names <= VAGUE


def test_no_name_could_mean_anything() -> None:
    vague = {
        (str(path.relative_to(PROJECT)), name)
        for folder in ("rag", "pages")
        for path in (PROJECT / folder).rglob("*.py")
        for name in names_in(ast.parse(path.read_text("utf-8")))
        if name.strip("_").lower() in VAGUE
    }
    assert vague == FIXED
