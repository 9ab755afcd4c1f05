"""Every figure of a profile does something: what the settings page lets an administrator change is read somewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from rag.profiles import PROFILES
from rag.profiles.profile import SETTINGS

PROJECT = Path(__file__).resolve().parents[2]
#: What defines, checks, names or shows the fields; reading one here is no use of it.
ABOUT_PROFILES = {"profile", "profiles", "collection_profile", "collection_settings"}


def attributes_read() -> set[str]:
    """The names of all attributes that are read in the product, outside the modules about profiles."""
    found = set()
    for path in (PROJECT / "rag").rglob("*.py"):
        if not {path.stem, path.parent.name} & ABOUT_PROFILES:
            tree = ast.parse(path.read_text("utf-8"))
            nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
            found |= {node.attr for node in nodes if isinstance(node.ctx, ast.Load)}
    return found


def overrides_read_in_sql() -> set[str]:
    """The fields that statements take from a collection's overrides."""
    text = "\n".join(path.read_text("utf-8") for path in (PROJECT / "rag" / "storage" / "sql").glob("*.sql"))
    return set(re.findall(r"overrides ->>? '(\w+)'", text))


def test_every_field_of_a_profile_is_read() -> None:
    read = attributes_read() | overrides_read_in_sql()
    assert [name for name in SETTINGS if name not in read] == []


def test_no_code_asks_for_a_profile_by_its_name() -> None:
    by_name = []
    modules = {"rag.profiles", *(f"rag.profiles.{name}" for name in PROFILES)}
    for path in [*(PROJECT / "rag").rglob("*.py"), *(PROJECT / "pages").rglob("*.py")]:
        if path == PROJECT / "rag" / "profiles" / "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            is_compared = isinstance(node, ast.Compare) and any(
                isinstance(side, ast.Constant) and side.value in PROFILES for side in (node.left, *node.comparators)
            )
            is_imported = (
                isinstance(node, ast.ImportFrom)
                and node.module in modules
                and any(name.name.lower() in PROFILES for name in node.names)
            )
            if is_compared or is_imported:
                by_name.append(f"{path.relative_to(PROJECT)}: {ast.unparse(node)}")
    assert by_name == []
