"""Helpers for commands: describe options, ask for confirmation."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

from rag.errors import InvalidInput, RagError
from rag.language import counted

if TYPE_CHECKING:
    from rag.services import Services

#: argparse has no public name for this type.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(commands: Commands, name: str, text: str, *, more: str = "") -> argparse.ArgumentParser:
    """Add a command and return its parser.

    `text` describes the command in the list of commands, and begins the command's help.
    """
    description = f"{text[0].upper()}{text[1:]}. {more}".strip()
    return commands.add_parser(name, help=text, description=description)


def add_place(parser: argparse.ArgumentParser, *, needs_collection: bool = False) -> None:
    """Add the options `--tenant` and `--collection` to a command's parser."""
    also = "" if needs_collection else "; the oldest for HR with documents, else with any, when not given"
    parser.add_argument(
        "--collection", required=needs_collection, default=None, help=f"the collection's name or id{also}"
    )
    parser.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")


def no_documents(tenant_id: str, collection: str) -> InvalidInput:
    """Return the error for a collection without documents. It names the command for adding documents."""
    place = f"--tenant {shlex.quote(tenant_id)} --collection {shlex.quote(collection)}"
    return InvalidInput(
        f"{collection} has no documents that can be searched yet. Add some: python -m rag ingest PATH {place}"
    )


def agreed() -> bool:
    """Ask whether to spend money, and return the answer. Without a terminal, the answer is False."""
    try:
        return input("Go on? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print("\nThere is no terminal to ask in. Add --yes to continue without asking.")
        return False


def processed_to_end(parts: Services, tenant: str, document_id: UUID) -> bool:
    """Process a document completely, print the state, and return whether the document is searchable."""
    from rag.ingestion.document_jobs import JobTaken
    from rag.services import program_of
    from rag.types import DocumentStatus

    if parts.documents.get(tenant, document_id).status is DocumentStatus.FAILED:
        parts.documents.retry(program_of(tenant), document_id)
    try:
        while True:
            try:
                parts.pipeline.run(tenant, document_id)
            except JobTaken:
                time.sleep(0.5)  # A running application has taken over.
            else:
                break
    except RagError as exc:
        print(exc.message, file=sys.stderr)
    document = parts.documents.get(tenant, document_id)
    note = f": {document.message}" if document.message else ""
    print(f"{document.title}: {document.status}, {counted(document.chunk_count, 'passage')}{note}", flush=True)
    return document.status is DocumentStatus.COMPLETED
