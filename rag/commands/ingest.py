"""`ingest`: a file, a folder or a ZIP archive through the whole pipeline."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from rag.commands import Commands, add_command, add_place
from rag.errors import DocumentAlreadyStored, DocumentError, RagError, SettingsError
from rag.settings import Settings
from rag.types import ChunkingMethod, PdfType, ProcessingResult

if TYPE_CHECKING:
    from rag.ingestion.sources.folder import FoundFile


def add_parsers(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = add_command(commands, "ingest", "process a file, a folder or a ZIP archive")
    parser.add_argument("path", type=Path)
    add_place(parser)
    parser.add_argument(
        "--chunking",
        choices=get_args(ChunkingMethod),
        default=None,
        help="how to cut; the collection's own way if not said",
    )
    parser.add_argument(
        "--pdf-type",
        choices=get_args(PdfType),
        default=None,
        help="scanned: recognise the text of every page; digital: of none; auto: of pages without text",
    )
    parser.set_defaults(run=ingest)


def ingest(arguments: argparse.Namespace, settings: Settings) -> int:
    """Take the files of a path through the whole pipeline, one line for each and a bar for all."""
    from rag.ingestion.extracted import ExtractionLimits
    from rag.ingestion.sources.folder import count_files, files_at
    from rag.public import _collection, process_document
    from rag.services import services

    path: Path = arguments.path
    if not path.exists():
        raise SettingsError(f"There is no file or folder {path}.")
    limits = ExtractionLimits.of(settings)
    total = count_files(path, limits)
    if not total:
        raise SettingsError(f"There is no file in {path} that could be read.")
    tenant = arguments.tenant or settings.tenant
    failed = 0

    def process(found: FoundFile) -> ProcessingResult:
        if found.refusal:
            raise DocumentError(found.refusal)
        return process_document(
            file=found.content,
            file_name=found.name,
            tenant_id=tenant,
            chunking_method=arguments.chunking,
            collection=str(collection.id),
            pdf_type=arguments.pdf_type,
        )

    try:
        collection = _collection(tenant, arguments.collection)
        show_progress(0, total, "")
        for number, (found, future) in enumerate(in_order(process, files_at(path, limits)), 1):
            try:
                result = future.result()
            except DocumentAlreadyStored as exc:
                line = exc.message
            except RagError as exc:
                failed += 1
                line = exc.message
            else:
                cost = "unpriced" if result.costs.total is None else f"${result.costs.total:.4f}"
                line = f"{result.chunk_count} passages, {result.processing_time / 1000:.1f} s, {cost}"
                line += f". {result.message}" if result.message else ""
            clear_progress()
            print(f"[{number}/{total}] {found.place}: {line}", flush=True)
            show_progress(number, total, found.place)
    finally:
        clear_progress()
        services().close()
    return 1 if failed else 0


def in_order(
    process: Callable[[FoundFile], ProcessingResult], files: Iterable[FoundFile]
) -> Iterator[tuple[FoundFile, Future[ProcessingResult]]]:
    """Each file with what became of it, in their order; as many at once are worked on as the worker works on.

    Files of one name are versions of one document, the last of them the latest, so they wait for each other.
    """
    from rag.ingestion.queue import DOCUMENTS_AT_ONCE

    begun: deque[tuple[FoundFile, Future[ProcessingResult]]] = deque()
    pool = ThreadPoolExecutor(DOCUMENTS_AT_ONCE, thread_name_prefix="ingest")
    try:
        for found in files:
            while len(begun) > DOCUMENTS_AT_ONCE or any(earlier.name == found.name for earlier, _ in begun):
                wait([begun[0][1]])
                yield begun.popleft()
            begun.append((found, pool.submit(process, found)))
        for earlier, future in begun:
            wait([future])
            yield earlier, future
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def show_progress(done: int, total: int, name: str, *, width: int = 24) -> None:
    """A bar on the terminal's last line; nothing where the output is kept in a file."""
    if sys.stdout.isatty():
        filled = width * done // total
        print(f"\r{'█' * filled}{'░' * (width - filled)} {done}/{total} {name:<40.40}", end="", flush=True)


def clear_progress() -> None:
    if sys.stdout.isatty():
        print("\r\x1b[K", end="", flush=True)
