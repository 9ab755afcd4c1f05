"""What others rely on, by name: `python -m tests.public` writes `tests/public.txt` after a deliberate change."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from starlette.routing import Mount, Route

import rag
from rag.__main__ import command_line
from rag.profiles import PROFILES
from rag.server import API, ROUTES

PROJECT = Path(__file__).resolve().parent.parent
NAMES = PROJECT / "tests" / "public.txt"
TABLE = re.compile(
    r"^\s*(CREATE TABLE|DROP TABLE)(?: IF (?:NOT )?EXISTS)? (?:public\.)?([\w.]+)", re.MULTILINE | re.IGNORECASE
)
RENAMED = re.compile(r"^\s*ALTER TABLE (?:public\.)?(\w+)\s+RENAME TO (\w+)", re.MULTILINE | re.IGNORECASE)


def commands(parser: argparse.ArgumentParser, path: str = "") -> Iterator[str]:
    """Yield the commands of a parser with their options, subcommands included."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield f"command {path}{name}"
                yield from commands(inner, f"{path}{name} ")
        elif option := next((o for o in action.option_strings if o.startswith("--") and o != "--help"), ""):
            yield f"option {path}{option}"


def tables() -> set[str]:
    """Return the tables that the migrations leave."""
    names = set[str]()
    for path in sorted((PROJECT / "supabase" / "migrations").glob("*.sql")):
        text = path.read_text("utf-8")
        for kind, name in TABLE.findall(text):
            (names.add if kind.upper() == "CREATE TABLE" else names.discard)(name)
        for before, after in RENAMED.findall(text):
            names.discard(before)
            names.add(after)
    return names


def routes() -> Iterator[str]:
    """Yield everything that is served beside the pages themselves, with its methods."""
    for path, methods in API.openapi()["paths"].items():
        yield from (f"route {method.upper()} {path}" for method in methods)
    for route in ROUTES:
        if isinstance(route, Route):
            yield from (
                f"route {method} {route.path}" for method in sorted(route.methods or {"ANY"}) if method != "HEAD"
            )
        elif isinstance(route, Mount):
            yield f"route ANY {route.path}/"


def public_names() -> list[str]:
    """Return routes, commands with their options, tables, profiles, and what `import rag` offers, in order."""
    return sorted(
        {
            *routes(),
            *commands(command_line()),
            *(f"table {name}" for name in tables()),
            *(f"profile {name}" for name in PROFILES),
            *(f"name rag.{name}" for name in rag.__all__),
        }
    )


if __name__ == "__main__":
    NAMES.write_text("".join(f"{line}\n" for line in public_names()), "utf-8")
