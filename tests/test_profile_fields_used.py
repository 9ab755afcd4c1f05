"""Every figure of a profile does something: what the settings page lets an administrator change is read somewhere."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

from rag.profile import Profile

PROJECT = Path(__file__).resolve().parents[1]
#: What defines, checks, names or shows the fields; reading one here is no use of it.
ABOUT_PROFILES = {"profile.py", "profiles.py", "profile_checks.py", "profile_fields.py", "profile_values.py",
                  "profile_words.py", "collection_settings.py"}  # fmt: skip


def attributes_read() -> set[str]:
    """The names of all attributes that are read in the product, outside the modules about profiles."""
    found = set()
    for path in (PROJECT / "rag").rglob("*.py"):
        if path.name not in ABOUT_PROFILES:
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
    assert [field.name for field in fields(Profile) if field.name not in read] == []
