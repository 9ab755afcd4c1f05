"""The layers of `rag`, as `pyproject.toml` lists them, and that nothing of it knows the pages."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
#: In a process of its own: it sets up logging, which would hide what later tests of this one log.
LINT = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True, no_logo=True))"


def test_nothing_imports_upwards() -> None:
    done = subprocess.run([sys.executable, "-c", LINT], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_does_not_know_the_pages() -> None:
    pattern = re.compile(r"^\s*(?:from|import) pages\b", re.MULTILINE)
    assert [str(p) for p in (PROJECT / "rag").rglob("*.py") if pattern.search(p.read_text())] == []


def test_no_module_imports_a_private_name_of_another() -> None:
    """Also within `rag`, which ruff takes for one module (PLC2701)."""
    imports = [
        (path, node.module, alias.name)
        for folder in ("rag", "pages", "tests", "docs")
        for path in (PROJECT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    # `_` is gettext's.
    assert [found for found in imports if re.match(r"_(?!_|$)", found[2])] == []
