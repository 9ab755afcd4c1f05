"""`python -m rag sync`: a collection made equal to its sources: posts of a table, a folder, a GitHub account."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.commands import Commands, add_command, add_place
from rag.errors import InvalidInput
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.ingestion.sources.sync import SyncReport
    from rag.services import Services
    from rag.types import Collection, Identity


def add_parsers(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = add_command(commands, "sync", "make a collection equal to its sources: posts, a folder, an account")
    add_place(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--folder", type=Path, default=None, help="the files of this folder")
    where.add_argument("--github", default="", metavar="ACCOUNT", help="the repositories of this account")
    where.add_argument("--table", default="", help="the posts of this table")
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="FIELD=NAME",
        help="with --table: what a column is called there, such as title=subject or categories.table=boards",
    )
    parser.add_argument("--allow-empty", action="store_true", help="a source that lists nothing is really empty")
    parser.set_defaults(run=sync)


def sync(arguments: argparse.Namespace, settings: Settings) -> int:
    """Compare, then process what changed. A second sync of what has not changed does nothing."""
    from rag.ingestion.document_jobs import JobTaken
    from rag.public import _collection, _program
    from rag.services import services
    from rag.types import DocumentStatus

    parts = services()
    tenant = arguments.tenant or settings.tenant
    try:
        parts.pipeline.control.stop_if_suspended(tenant)
        identity = _program(tenant)
        # Posts belong on a notice board; files go where questions go.
        is_any = arguments.collection or arguments.folder is not None or arguments.github
        board = None if is_any else parts.syncs.default_collection(tenant)
        collection = board or _collection(tenant, arguments.collection)
        try:
            report = _compared(parts, identity, collection, arguments)
        except JobTaken:
            raise InvalidInput("This collection is being synced by another process. Try again later.") from None
        failed = report.failed
        for document_id in report.documents:
            # A running application may have it already; it is told once what became of it.
            with contextlib.suppress(JobTaken):
                parts.pipeline.run(tenant, document_id)
            document = parts.documents.get(tenant, document_id)
            failed += document.status is DocumentStatus.FAILED
            note = f": {document.message}" if document.message else ""
            print(f"{document.title}: {document.status}, {document.chunk_count} passages{note}", flush=True)
        runs = parts.syncs.runs(tenant, collection.id, limit=1)
    finally:
        parts.close()
    counts = ("added", "updated", "unchanged", "removed", "failed")
    print(f"{collection.name}: " + ", ".join(f"{getattr(report, name)} {name}" for name in counts))
    if runs and (runs[0].cost is not None or not runs[0].is_priced):
        print(f"Cost: ${runs[0].cost:.4f}" if runs[0].is_priced else "Cost: partly unpriced")
    for problem in report.problems:
        print(f"  {problem}")
    return 1 if failed else 0


def _mapping(table: str, columns: Sequence[str]) -> dict[str, Any]:
    """The settings of a table of posts. Raises `InvalidInput`."""
    mapping: dict[str, Any] = {"table": table}
    for given in columns:
        field, equals, name = given.partition("=")
        if not equals:
            raise InvalidInput(f"--column takes FIELD=NAME, such as title=subject, not {given!r}.")
        beside, _, column = field.rpartition(".")
        (mapping.setdefault(beside, {}) if beside else mapping)[column] = name
    return mapping


def _compared(parts: Services, identity: Identity, collection: Collection, arguments: argparse.Namespace) -> SyncReport:
    """A folder named here is followed whatever RAG_SYNC_FOLDERS says: who runs this command can read it anyway."""
    from rag.ingestion.extracted import ExtractionLimits
    from rag.ingestion.sources.board.table import PostsTable
    from rag.ingestion.sources.folder import FolderSource
    from rag.ingestion.sources.github import GitHubSource
    from rag.ingestion.sources.sync import sync_collection

    if arguments.folder is not None:
        path = arguments.folder.expanduser().resolve()
        source = FolderSource(path, ExtractionLimits.of(parts.settings))
        with contextlib.suppress(InvalidInput):  # the application may follow it by itself only where it is allowed to
            parts.syncs.set_source(identity, collection, FolderSource.kind, {"path": str(path)})
        return sync_collection(
            parts.database, parts.files, collection, source, queue=parts.queue, allow_empty=arguments.allow_empty
        )
    if arguments.table:
        parts.syncs.set_source(identity, collection, PostsTable.kind, _mapping(arguments.table, arguments.column))
    if arguments.github:
        parts.syncs.set_source(identity, collection, GitHubSource.kind, {"owner": arguments.github})
    return parts.syncs.sync_now(identity, collection, allow_empty=arguments.allow_empty)
