"""`import-vectors`: the passages of another vector store, such as Pinecone, embedded again into a collection."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rag.commands import Commands, add_command, add_place, agreed
from rag.errors import RagError
from rag.settings import Settings

if TYPE_CHECKING:
    from uuid import UUID

    from rag.ingestion.sources.import_vectors import ImportPlan
    from rag.services import Services

#: Problems shown at most; more of them have one reason.
SHOWN_PROBLEMS = 50


def add_parsers(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "import-vectors",
        "take over the passages of another vector store, such as Pinecone, from export files",
        more="Ids, metadata and text are kept, vectors are made anew with the collection's model. The cost is shown "
        "first, and asked about. Run again, it goes on where it was; what has not changed costs nothing.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="JSON lines, or a JSON array")
    add_place(parser, needs_collection=True)
    parser.add_argument("--tags", action="store_true", help="have a language model tag the documents too")
    parser.add_argument("--yes", action="store_true", help="do not ask before money is spent")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done and what it costs")
    parser.set_defaults(run=run_import)


def run_import(arguments: argparse.Namespace, settings: Settings) -> int:
    """Compare, show the cost, ask, work. 0 when everything of the files is in the collection."""
    from rag.ingestion.sources.import_vectors import VectorImport
    from rag.public import _collection
    from rag.services import services

    parts = services()
    tenant = arguments.tenant or settings.tenant
    try:
        collection = _collection(tenant, arguments.collection)
        importing = VectorImport(
            parts.database, parts.files, parts.providers, collection, generate_metadata=arguments.tags
        )
        plan = importing.plan(arguments.files)
        print(f"{collection.name}, {collection.embedding_model}: {described(plan)}")
        _show_problems(plan)
        is_anything = bool(plan.documents or plan.unfinished)
        if not is_anything or arguments.dry_run:
            return 1 if plan.problems else 0
        if not arguments.yes and not agreed():
            return 1
        failed = 0
        for document_id in plan.unfinished:
            failed += not _processed(parts, tenant, document_id)
        for passages in plan.documents:
            report = importing.store(passages)
            for document_id in report.documents:
                failed += not _processed(parts, tenant, document_id)
            failed += report.failed
            for problem in report.problems:
                print(problem, file=sys.stderr)
    finally:
        parts.close()
    if failed:
        print(f"{failed} documents are not done. Run the same command again; what was paid is kept.", file=sys.stderr)
    return 1 if failed or plan.problems else 0


def described(plan: ImportPlan) -> str:
    """The plan in one line."""
    parts = [f"{len(plan.documents):,} documents with {plan.passages:,} passages to import"]
    if plan.unfinished:
        parts.append(f"{len(plan.unfinished):,} to finish")
    if plan.unchanged:
        parts.append(f"{plan.unchanged:,} unchanged")
    cost = "unpriced" if plan.cost is None else f"about ${plan.cost:.4f}"
    return f"{', '.join(parts)}; {plan.tokens:,} tokens, {cost}"


def _processed(parts: Services, tenant: str, document_id: UUID) -> bool:
    """Take a document to its end and say so; whether it is searchable now."""
    from rag.ingestion.document_jobs import JobTaken
    from rag.public import _program
    from rag.types import DocumentStatus

    if parts.documents.get(tenant, document_id).status is DocumentStatus.FAILED:
        parts.documents.retry(_program(tenant), document_id)
    try:
        while True:
            try:
                parts.pipeline.run(tenant, document_id)
            except JobTaken:
                time.sleep(0.5)  # a running application has taken it up
            else:
                break
    except RagError as exc:
        print(exc.message, file=sys.stderr)
    document = parts.documents.get(tenant, document_id)
    note = f": {document.message}" if document.message else ""
    print(f"{document.title}: {document.status}, {document.chunk_count} passages{note}", flush=True)
    return document.status is DocumentStatus.COMPLETED


def _show_problems(plan: ImportPlan) -> None:
    for problem in plan.problems[:SHOWN_PROBLEMS]:
        print(f"{problem.file}, {problem.unit} {problem.line} {problem.sentence}", file=sys.stderr)
    if len(plan.problems) > SHOWN_PROBLEMS:
        print(f"… and {len(plan.problems) - SHOWN_PROBLEMS:,} more.", file=sys.stderr)
    if plan.problems:
        print(f"{len(plan.problems):,} records are left out; the others can be imported.", file=sys.stderr)
