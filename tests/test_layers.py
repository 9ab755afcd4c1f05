"""The layers of `rag`, as `pyproject.toml` lists them, and that nothing of it knows the pages."""

from __future__ import annotations

import re
from pathlib import Path

from importlinter.cli import lint_imports

PROJECT = Path(__file__).resolve().parent.parent


def test_nothing_imports_upwards() -> None:
    assert lint_imports(str(PROJECT / "pyproject.toml"), no_cache=True, no_logo=True) == 0


def test_the_package_does_not_know_the_pages() -> None:
    pattern = re.compile(r"^\s*(?:from|import) pages\b", re.MULTILINE)
    assert [str(p) for p in (PROJECT / "rag").rglob("*.py") if pattern.search(p.read_text())] == []
