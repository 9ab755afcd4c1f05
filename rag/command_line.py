"""Help commands to describe their options and to ask."""

from __future__ import annotations

import argparse
import shlex
from typing import TypeAlias

from rag.errors import InvalidInput

#: argparse has no other name for it.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(commands: Commands, name: str, text: str, *, more: str = "") -> argparse.ArgumentParser:
    """Add a command: its line in the list is also the first sentence of its own help."""
    description = f"{text[0].upper()}{text[1:]}. {more}".strip()
    return commands.add_parser(name, help=text, description=description)


def add_place(parser: argparse.ArgumentParser, *, needs_collection: bool = False) -> None:
    """Add the options that choose a tenant and a collection."""
    also = "" if needs_collection else "; the oldest for HR with documents, else with any, when not given"
    parser.add_argument(
        "--collection", required=needs_collection, default=None, help=f"the collection's name or id{also}"
    )
    parser.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")


def no_documents(tenant_id: str, collection: str) -> InvalidInput:
    """Return the error of a collection without documents, with the command that adds some to it."""
    place = f"--tenant {shlex.quote(tenant_id)} --collection {shlex.quote(collection)}"
    return InvalidInput(
        f"{collection} has no documents that can be searched yet. Add some: python -m rag ingest PATH {place}"
    )


def agreed() -> bool:
    """Ask before spending money; without a terminal the answer is no."""
    try:
        return input("Go on? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print("\nThere is no terminal to ask in. Add --yes to continue without asking.")
        return False
