"""`python -m rag sync`: a collection made equal to its source from the command line, with what it found and cost."""

from __future__ import annotations

import argparse
import sys
import time

from rag.settings import Settings
from rag.types import Document, DocumentStatus

POLL_SECONDS = 0.3
AT_WORK = (DocumentStatus.READING, DocumentStatus.PROCESSING)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("sync", help="make a collection equal to its source: posts, a folder, an account")
    parser.add_argument("--collection", required=True)
    parser.add_argument("--tenant", default="")
    parser.add_argument("--table", default="", help="read posts from this table from now on")
    parser.add_argument("--allow-empty", action="store_true", help="remove everything if the source lists nothing")
    parser.set_defaults(run=sync)


def sync(arguments: argparse.Namespace, settings: Settings) -> int:
    """Compare, then wait until what changed is searchable. What is not done at Ctrl-C goes on at the next start."""
    from rag.ingestion.posts.table import PostsTable
    from rag.public import _collection, _program
    from rag.services import services

    parts = services()
    tenant = arguments.tenant or settings.tenant
    try:
        collection, identity = _collection(tenant, arguments.collection), _program(tenant)
        if arguments.table:
            parts.syncs.set_source(identity, collection, PostsTable.kind, {"table": arguments.table})
        report = parts.syncs.sync_now(identity, collection, allow_empty=arguments.allow_empty)
        print(
            f"{collection.name}: {report.added} added, {report.updated} changed, {report.unchanged} unchanged, "
            f"{report.removed} removed, {report.failed} could not be read"
        )
        for problem in report.problems:
            print(f"  {problem}", file=sys.stderr)
        parts.queue.start_worker()
        while waiting := _at_work(parts.documents.list(tenant, collection_id=collection.id)):
            if sys.stdout.isatty():
                print(f"\r{len(waiting)} left to read and embed ", end="", flush=True)
            time.sleep(POLL_SECONDS)
        failed = [
            document
            for document in parts.documents.list(tenant, collection_id=collection.id)
            if document.status is DocumentStatus.FAILED
        ]
        runs = parts.syncs.runs(tenant, collection.id, limit=1)
    finally:
        parts.close()
    for document in failed:
        print(f"  {document.title}: {document.message}", file=sys.stderr)
    if runs and (runs[0].cost is not None or not runs[0].is_priced):
        print(f"Cost: ${runs[0].cost:.4f}" if runs[0].is_priced else "Cost: partly unpriced")
    return 1 if failed or report.failed else 0


def _at_work(documents: list[Document]) -> list[Document]:
    return [document for document in documents if document.status in AT_WORK]
