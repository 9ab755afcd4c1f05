"""Add documents with `ingest`; list, correct and delete them with `documents`."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from rag.command_line import Commands, add_command, add_place, processed_to_end
from rag.errors import DocumentAlreadyStored, DocumentError, RagError, SettingsError
from rag.language import counted
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.ingestion.loaders.values import ExtractionLimits
    from rag.ingestion.sources.folder import FoundFile
    from rag.library.bin import BinnedDocument
    from rag.services import Services
    from rag.types import ChunkingMethod, Document, Identity, PdfType, ProcessingResult

#: `rag.types` takes longer to import than the rest of help.
CHUNKING_METHODS: tuple[ChunkingMethod, ...] = (
    "fixed", "smart", "semantic", "sentences", "recursive", "paged", "professional", "narrative", "markdown", "generic",
    "auto",
)  # fmt: skip
PDF_TYPES: tuple[PdfType, ...] = ("auto", "scanned", "digital")
#: Problems shown at most; any more usually have the same cause.
SHOWN_PROBLEMS = 50


def add_parsers(commands: Commands) -> None:
    parser = add_command(commands, "ingest", "process files, folders and ZIP archives")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file, a folder or a ZIP archive")
    add_place(parser)
    parser.add_argument(
        "--chunking",
        choices=CHUNKING_METHODS,
        default=None,
        help="how to split; the collection's own way when not given",
    )
    parser.add_argument(
        "--pdf-type",
        choices=PDF_TYPES,
        default=None,
        help="scanned: recognise the text of every page; digital: of none; auto: of pages without text",
    )
    parser.add_argument(
        "--password-file",
        type=Path,
        default=None,
        metavar="FILE",
        help="the password of protected PDFs, in a file so that the list of processes does not show it",
    )
    parser.add_argument(
        "--metadata",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="have a model summarise and tag the files",
    )
    parser.set_defaults(run=ingest)
    parser = add_command(
        commands, "documents", "list documents, correct pages, move documents to the bin or restore them"
    )
    acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
    command = acts.add_parser("list", help="all documents of a tenant, or of one collection, newest first")
    command.add_argument("--collection", default=None, help="the collection's name or id; all when not given")
    command.add_argument("--bin", action="store_true", help="those in the bin instead")
    command.add_argument("--json", action="store_true", help="as JSON lines")
    command.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")
    for act, text in (
        ("delete", "move documents to the bin: no question finds them any more"),
        ("restore", "take documents back out of the bin"),
    ):
        command = acts.add_parser(act, help=text)
        command.add_argument("ids", nargs="+", type=UUID, metavar="ID", help="as `documents list` shows it")
        if act == "delete":
            command.add_argument("--for-good", action="store_true", help="with their files; this cannot be undone")
        command.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")
    command = acts.add_parser("correct", help="give a page another text than was read, or show its text")
    command.add_argument("id", type=UUID, metavar="ID", help="as `documents list` shows it")
    command.add_argument("page", type=int, metavar="PAGE", help="the page's number, from 1")
    change = command.add_mutually_exclusive_group()
    change.add_argument("--text", type=Path, metavar="FILE", help="the new text, in a file of UTF-8")
    change.add_argument("--as-read", action="store_true", help="back to the text as read")
    command.add_argument("--dry-run", action="store_true", help="only say what it costs")
    command.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")
    parser.set_defaults(run=documents)


def ingest(arguments: argparse.Namespace, settings: Settings) -> int:
    """Process files completely. Print a line for each file, a progress bar and a summary."""
    from rag.ingestion.loaders.values import ExtractionLimits
    from rag.ingestion.sources.folder import unreadable_files
    from rag.services import services
    from rag.types import UploadOptions

    paths: list[Path] = [*dict.fromkeys(arguments.paths)]
    if missing := [str(path) for path in paths if not path.exists()]:
        raise SettingsError(f"There is no file or folder {', '.join(missing)}.")
    limits = ExtractionLimits.of(settings)
    total = _count(paths, limits)
    if not total:
        raise SettingsError(f"There is no file in {', '.join(map(str, paths))} that could be read.")
    options = UploadOptions(
        password=arguments.password_file.read_text("utf-8").strip("\r\n") if arguments.password_file else None,
        chunking_method=arguments.chunking,
        generate_metadata=arguments.metadata,
        pdf_type=arguments.pdf_type,
    )
    tenant = arguments.tenant or settings.tenant
    added = stored = failed = 0

    def process(file: FoundFile) -> ProcessingResult:
        if file.refusal:
            raise DocumentError(file.refusal)
        return parts.pipeline.process_document(
            file=file.content,
            file_name=file.path,
            tenant_id=tenant,
            collection=collection,
            options=options,
        )

    parts = services()
    try:
        collection = parts.choose_collection(tenant, arguments.collection)
        show_progress(0, total, "")
        for number, (file, future) in enumerate(in_order(process, _files(paths, limits)), 1):
            try:
                result = future.result()
            except DocumentAlreadyStored as exc:
                stored += 1
                line = exc.message
            except RagError as exc:
                failed += 1
                line = exc.message
            else:
                added += 1
                cost = "unpriced" if result.costs.total is None else f"${result.costs.total:.4f}"
                line = f"{counted(result.chunk_count, 'passage')}, {result.processing_time / 1000:.1f} s, {cost}"
                version = parts.documents.get(tenant, result.document_id).version
                line += f"; version {version}, the one before can be restored" if version > 1 else ""
                line += f". {result.message}" if result.message else ""
            clear_progress()
            print(f"[{number}/{total}] {file.place}: {line}", flush=True)
            show_progress(number, total, file.place)
        if total > 1:
            clear_progress()
            print(f"{counted(added, 'document')} processed, {stored} stored before, {failed} failed.", flush=True)
        if left_out := [_display_path(paths, path, name) for path in paths for name in unreadable_files(path)]:
            listed = ", ".join(left_out[:SHOWN_PROBLEMS])
            more = f" and {len(left_out) - SHOWN_PROBLEMS:,} more" if len(left_out) > SHOWN_PROBLEMS else ""
            clear_progress()
            print(f"{len(left_out):,} left out, of kinds that cannot be read: {listed}{more}", file=sys.stderr)
    finally:
        clear_progress()
        parts.close()
    return 1 if failed else 0


def _count(paths: list[Path], limits: ExtractionLimits) -> int:
    from rag.ingestion.sources.folder import count_files

    total = 0
    for path in paths:
        try:
            total += count_files(path, limits)
        except RagError as exc:
            raise SettingsError(f"{path}: {exc.message}") from exc
    return total


def _files(paths: list[Path], limits: ExtractionLimits) -> Iterator[FoundFile]:
    from rag.ingestion.sources.folder import files_at

    for path in paths:
        for file in files_at(path, limits):
            yield replace(file, place=_display_path(paths, path, file.place))


def _display_path(paths: list[Path], path: Path, place: str) -> str:
    """Return the path to show for a file.

    Normally this is the path within the given folder or archive (`place`). If the user gave several paths, the full
    path is shown.
    """
    if len(paths) == 1:
        return place
    return str(path) if path.is_file() and place == path.name else str(path / place)


def documents(arguments: argparse.Namespace, settings: Settings) -> int:
    """List documents, correct pages, and delete or restore documents."""
    from rag.library.bin import BIN_DAYS
    from rag.services import connect_services, program_of

    parts = connect_services(settings)
    library, identity = parts.documents, program_of(arguments.tenant or settings.tenant)
    try:
        parts.require_tenant(identity.tenant_id)
        if arguments.act == "list":
            _list(parts, identity, arguments)
            return 0
        if arguments.act == "correct":
            return 0 if _correct(parts, identity, arguments) else 1
        ids = [*dict.fromkeys(arguments.ids)]
        if arguments.act == "restore":
            problems = library.bin.take_back_all(identity, ids)
            for problem in problems:
                print(problem)
            return 1 if problems else 0
        binned = library.bin.put(identity, ids)
        if arguments.for_good:
            print(f"{library.bin.delete_for_good(identity, ids)} deleted for good, with earlier versions.")
            return 0
        print(f"{binned} of {len(ids)} moved to the bin, for {BIN_DAYS} days. `documents restore ID` takes them back.")
        return 0 if binned == len(ids) else 1
    finally:
        parts.close()


def _correct(parts: Services, identity: Identity, arguments: argparse.Namespace) -> bool:
    from rag.errors import InvalidInput, NotFound
    from rag.ingestion.corrections import fingerprint

    library, document_id, number = parts.documents, arguments.id, arguments.page
    library.get(identity, document_id)
    pages = {page.number: page.text for page in library.pages(identity, document_id)}
    if number not in pages:
        raise NotFound(f"This document has no page {number}.")
    if arguments.text is None and not arguments.as_read:
        print(pages[number])
        return True
    try:
        text = None if arguments.as_read else arguments.text.read_text("utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInput(f"{arguments.text} cannot be read as a text in UTF-8.") from exc
    plan = library.corrections.plan(identity, document_id, number, text)
    cost = plan.estimate["total"]
    price = "at a cost that is not known" if cost is None else f"for about ${float(cost):.6f}"
    print(f"{counted(plan.passages, 'passage')} to embed again, {price}.")
    if arguments.dry_run:
        return True
    document = library.corrections.save(identity, document_id, number, text, seen=fingerprint(pages[number]))
    return processed_to_end(parts, identity.tenant_id, document.id)


def _list(parts: Services, identity: Identity, arguments: argparse.Namespace) -> None:
    from rag.types import Document

    chosen = parts.choose_collection(identity.tenant_id, arguments.collection) if arguments.collection else None
    rows: Sequence[Document | BinnedDocument]
    if arguments.bin:
        rows = [row for row in parts.documents.bin.list(identity) if chosen is None or row.collection_id == chosen.id]
    else:
        rows = parts.documents.list(identity, collection_id=chosen.id if chosen else None)
    if not rows and not arguments.json:
        place = f"“{chosen.name}”" if chosen else identity.tenant_id
        options = f" --collection {shlex.quote(chosen.name)}" if chosen else ""
        options += f" --tenant {arguments.tenant}" if arguments.tenant else ""
        adding = f"There is no document in {place} yet. Add one: python -m rag ingest PATH{options}"
        print(f"There is no document of {place} in the bin." if arguments.bin else adding)
    names = {collection.id: collection.name for collection in parts.documents.collections(identity)}
    for row in rows:
        if arguments.json:
            print(json.dumps(asdict(row), default=str, ensure_ascii=False))
        elif isinstance(row, Document):
            facts = f"{row.created_at:%Y-%m-%d}  {row.status:<10}  {counted(row.chunk_count, 'passage'):>14}"
            reason = f": {row.message}" if row.message else ""
            print(f"{row.id}  {facts}  {names.get(row.collection_id, '')}  {row.title} ({row.file_name}){reason}")
        else:
            print(f"{row.id}  deleted for good on {row.kept_until:%Y-%m-%d}  {row.title} ({row.file_name})")


def in_order(
    process: Callable[[FoundFile], ProcessingResult], files: Iterable[FoundFile]
) -> Iterator[tuple[FoundFile, Future[ProcessingResult]]]:
    """Process files in parallel. Yield each file with its result, in the files' order.

    Files with the same name are processed in sequence, because each is the next version of the document.
    """
    from rag.ingestion.queue import DOCUMENTS_AT_ONCE

    begun: deque[tuple[FoundFile, Future[ProcessingResult]]] = deque()
    pool = ThreadPoolExecutor(DOCUMENTS_AT_ONCE, thread_name_prefix="ingest")
    try:
        for file in files:
            while len(begun) > DOCUMENTS_AT_ONCE or any(earlier.name == file.name for earlier, _ in begun):
                wait([begun[0][1]])
                yield begun.popleft()
            begun.append((file, pool.submit(process, file)))
        for earlier, future in begun:
            wait([future])
            yield earlier, future
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def show_progress(done: int, total: int, name: str, *, width: int = 24) -> None:
    """Draw a progress bar on the terminal's last line, unless output is redirected."""
    if sys.stdout.isatty():
        filled = width * done // total
        print(f"\r{'█' * filled}{'░' * (width - filled)} {done}/{total} {name:<40.40}", end="", flush=True)


def clear_progress() -> None:
    if sys.stdout.isatty():
        print("\r\x1b[K", end="", flush=True)
