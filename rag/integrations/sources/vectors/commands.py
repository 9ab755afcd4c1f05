"""Import export files on the command line: `import-vectors`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rag.command_line import Commands, add_command, add_place, agreed, processed_to_end
from rag.language import counted
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.integrations.sources.vectors.imports import ImportPlan

#: The most problems to print; any more usually have the same cause.
SHOWN_PROBLEMS = 50


def add_parsers(commands: Commands) -> None:
    parser = add_command(
        commands,
        "import-vectors",
        "import the passages of another vector store, such as Pinecone, from export files",
        more="Ids, metadata and text are kept; the collection's model makes new vectors. The cost is shown "
        "first, and asked about. Run again, it continues where it stopped; what has not changed costs nothing.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="JSON lines, or a JSON array")
    add_place(parser, needs_collection=True)
    parser.add_argument("--tags", action="store_true", help="have a language model tag the documents too")
    parser.add_argument("--yes", action="store_true", help="do not ask before money is spent")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done and what it costs")
    parser.set_defaults(run=run_import)


def run_import(arguments: argparse.Namespace, settings: Settings) -> int:
    """Plan an import, show the cost, ask, and process. Returns the exit status: 0 if the collection has all records."""
    from rag.integrations.sources.vectors.imports import VectorImport
    from rag.services import services

    parts = services()
    tenant = arguments.tenant or settings.tenant
    try:
        collection = parts.choose_collection(tenant, arguments.collection)
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
            failed += not processed_to_end(parts, tenant, document_id)
        for passages in plan.documents:
            report = importing.store(passages)
            for document_id in report.documents:
                failed += not processed_to_end(parts, tenant, document_id)
            failed += report.failed
            for problem in report.problems:
                print(problem, file=sys.stderr)
    finally:
        parts.close()
    if failed:
        undone = counted(failed, "document is", "documents are")
        print(f"{undone} not done. Run the same command again; what was paid is kept.", file=sys.stderr)
    return 1 if failed or plan.problems else 0


def described(plan: ImportPlan) -> str:
    """Summarise the plan in a line."""
    parts = [f"{counted(len(plan.documents), 'document')} with {counted(plan.passages, 'passage')} to import"]
    if plan.unfinished:
        parts.append(f"{len(plan.unfinished):,} to finish")
    if plan.unchanged:
        parts.append(f"{plan.unchanged:,} unchanged")
    cost = "unpriced" if plan.cost is None else f"about ${plan.cost:.4f}"
    return f"{', '.join(parts)}; {counted(plan.tokens, 'token')}, {cost}"


def _show_problems(plan: ImportPlan) -> None:
    for problem in plan.problems[:SHOWN_PROBLEMS]:
        print(f"{problem.file}, {problem.unit} {problem.line} {problem.sentence}", file=sys.stderr)
    if len(plan.problems) > SHOWN_PROBLEMS:
        print(f"… and {len(plan.problems) - SHOWN_PROBLEMS:,} more.", file=sys.stderr)
    if plan.problems:
        left_out = counted(len(plan.problems), "record is", "records are")
        print(f"{left_out} left out; the others can be imported.", file=sys.stderr)
