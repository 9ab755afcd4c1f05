"""What each integration adds to tests of the whole product, from its folder below `tests/integrations`.

`rows.toml` has its routes, doors, commands, forms and dialogs; `in_browser.py` and `parsers.py` are modules.
Without the folder nothing names the integration. Without the packages of an integration, its routes answer 503, and the
tests marked with `needs` are skipped.
"""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rag.integrations.registry import integrations

TESTS = Path(__file__).parent
OF_INTEGRATIONS: tuple[dict[str, Any], ...] = tuple(
    tomllib.loads(path.read_text("utf-8")) for path in sorted(TESTS.glob("integrations/*/*/rows.toml"))
)


def listed(table: str, name: str) -> list[Any]:
    """Join all lists of this name in tables of this name."""
    return [row for rows in OF_INTEGRATIONS for row in rows.get(table, {}).get(name, ())]


def modules(name: str, kind: str = "*") -> dict[str, ModuleType]:
    """Import the modules of this name, by integration; those with missing packages are left out.

    `kind` is a folder below `tests/integrations`.
    """
    installed = {i.name for i in integrations() if i.is_installed}
    found = [path for path in sorted(TESTS.glob(f"integrations/{kind}/*/{name}.py")) if path.parent.name in installed]
    parts = {path.parent.name: path.relative_to(TESTS.parent).with_suffix("").parts for path in found}
    return {integration: import_module(".".join(names)) for integration, names in parts.items()}


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip a test where packages of these integrations are missing."""
    missing = [i.name for i in integrations() if i.name in names and not i.is_installed]
    return pytest.mark.skipif(bool(missing), reason=f"packages are missing: {', '.join(missing)}")


def unserved_paths() -> frozenset[str]:
    """The paths of routes that answer 503, because packages of their integration are missing."""
    missing = [i for i in integrations() if not i.is_installed]
    routers = [i.router() for i in missing if i.router is not None]
    return frozenset(
        [route.path for i in missing for route in i.all_routes]
        + [getattr(route, "path", "") for router in routers for route in router.routes]
    )
