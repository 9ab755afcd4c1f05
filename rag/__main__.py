"""The command line: serve, worker, ingest, sync, reembed, ask, search, calibrate, backup, restore, tenant, doctor."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import socket
import sys
import time
from pathlib import Path
from typing import cast, get_args

from rag import reembed_command, sync_command, tenant_command
from rag.api.request_ids import name_request
from rag.errors import DocumentAlreadyStored, DocumentError, RagError, SettingsError
from rag.secret_texts import hide_secrets
from rag.settings import Settings, load_settings
from rag.types import ChunkingMethod, PdfType

log = logging.getLogger("rag.start")


def main() -> int:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s%(request)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(name_request)
    logging.getLogger("rag.api.requests").setLevel(logging.INFO)
    progress = logging.StreamHandler(sys.stdout)
    progress.setFormatter(logging.Formatter("• %(message)s"))
    log.addHandler(progress)
    log.setLevel(logging.INFO)
    log.propagate = False
    parser = argparse.ArgumentParser(prog="python -m rag", description="HR Assistant: answers from your documents.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("serve", help="start the application").set_defaults(run=serve)
    commands.add_parser("worker", help="only process documents, beside a running application").set_defaults(run=worker)
    commands.add_parser("doctor", help="say what is configured, what is missing and what it would add").set_defaults(
        run=doctor
    )
    ingest_parser = commands.add_parser("ingest", help="process a file, a folder or a ZIP archive")
    ingest_parser.add_argument("path", type=Path)
    ingest_parser.add_argument("--tenant", default="")
    ingest_parser.add_argument("--collection", default=None)
    ingest_parser.add_argument(
        "--chunking",
        choices=get_args(ChunkingMethod),
        default=None,
        help="how to cut; the collection's own way if not said",
    )
    ingest_parser.add_argument(
        "--pdf-type",
        choices=get_args(PdfType),
        default=None,
        help="scanned: recognise the text of every page; digital: of none; auto: of pages without text",
    )
    ingest_parser.set_defaults(run=ingest)
    reembed_command.add_parser(commands)
    tenant_command.add_parser(commands)
    sync_command.add_parser(commands)
    for name, text in (("search", "show the passages a question finds"), ("ask", "answer a question")):
        command = commands.add_parser(name, help=text)
        command.add_argument("question")
        command.add_argument("--tenant", default="")
        command.add_argument("--collection", default=None)
        command.set_defaults(run=search if name == "search" else ask)
        if name == "search":
            command.add_argument("--profile", default="", help="search as this profile does, not the collection's own")
            command.add_argument("--explain", action="store_true", help="show every step and every score")
    for name, text in (
        ("backup", "write the built-in database and the originals into one file, also while people work"),
        ("restore", "bring a backup into an empty data folder"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("path", type=Path)
        command.set_defaults(run=back_up if name == "backup" else restore)
    calibrate_parser = commands.add_parser(
        "calibrate", help="measure from which similarity on a collection's passages are evidence"
    )
    calibrate_parser.add_argument("--collection", default=None)
    calibrate_parser.add_argument("--tenant", default="")
    calibrate_parser.add_argument("--dry-run", action="store_true", help="only show what would be set")
    calibrate_parser.set_defaults(run=calibrate)
    arguments = parser.parse_args()
    try:
        settings = load_settings()
        hide_secrets(settings, [*logging.getLogger().handlers, progress])
        return int(arguments.run(arguments, settings))
    except RagError as exc:
        print(exc.message, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def serve(arguments: argparse.Namespace, settings: Settings) -> int:
    """Set everything up in sight of its reader, then serve until Ctrl-C."""
    started = time.monotonic()
    _require_free_port(settings)
    os.chdir(Path(__file__).resolve().parent.parent)

    import uvicorn

    from rag.samples.load import prepare_tenant
    from rag.services import services

    parts = services()
    try:
        prepare_tenant(parts)
        link = parts.accounts.first_admin_link()
        from app import app

    except BaseException:
        parts.close()
        raise
    address = settings.public_url or f"http://{_shown(settings.address)}:{settings.port}"

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                log.info("Ready in %.1f s at %s", time.monotonic() - started, address)
                if link:
                    print(f"\n  This link creates the first administrator, once:\n\n  {address}/welcome?token={link}\n")
                print("  Ctrl-C stops everything.", flush=True)

    config = uvicorn.Config(
        app,
        host=settings.address,
        port=settings.port,
        log_config=None,
        access_log=False,
        ws_per_message_deflate=False,  # a redraw is small; packing it costs more time than sending it
        timeout_graceful_shutdown=3,
        ws_max_size=settings.maximum_upload_bytes,
        server_header=False,
    )
    try:
        Server(config).run()
    except KeyboardInterrupt:
        pass
    finally:
        parts.close()
        log.info("Stopped")
    return 0


def worker(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.services import connect_services

    parts = connect_services(settings)
    parts.queue.start_worker()
    log.info("Processing documents. Ctrl-C stops; what is under way goes on at the next start.")
    try:
        while True:
            time.sleep(3600)
    finally:
        parts.close()


def doctor(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.health import check_rag_health
    from rag.services import connect_services

    parts = connect_services(settings)
    try:
        report = check_rag_health(parts)
    finally:
        parts.close()
    marks = {"ok": "ok     ", "missing": "missing", "warning": "note   ", "failed": "FAILED "}
    for check in report.checks:
        print(f"{marks[check.state]}  {check.name}: {check.sentence}")
    print("\nThe product works." if report.ok else "\nThe product does not work until what FAILED is mended.")
    return 0 if report.ok else 1


def ingest(arguments: argparse.Namespace, settings: Settings) -> int:
    """Take the files of a path through the whole pipeline, one line for each and a bar for all."""
    from rag.ingestion.extracted import ExtractionLimits
    from rag.ingestion.loaders.folder import count_files, files_at
    from rag.profiles import profile_by_name, with_overrides
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
    try:
        collection = _collection(tenant, arguments.collection)
        profile = with_overrides(profile_by_name(collection.profile), collection.overrides)
        for number, found in enumerate(files_at(path, limits), 1):
            show_progress(number - 1, total, found.place)
            try:
                if found.refusal:
                    raise DocumentError(found.refusal)
                result = process_document(
                    file=found.content,
                    file_name=found.name,
                    tenant_id=tenant,
                    chunking_method=arguments.chunking or cast(ChunkingMethod, profile.chunking_method),
                    collection=arguments.collection,
                    pdf_type=arguments.pdf_type or profile.pdf_type,
                )
            except DocumentAlreadyStored as exc:
                line = exc.message
            except RagError as exc:
                failed += 1
                line = exc.message
            else:
                cost = "unpriced" if result.costs.total is None else f"${result.costs.total:.4f}"
                line = f"{result.chunk_count} passages, {result.processing_time / 1000:.1f} s, {cost}"
            clear_progress()
            print(f"[{number}/{total}] {found.place}: {line}", flush=True)
    finally:
        clear_progress()
        services().close()
    return 1 if failed else 0


def show_progress(done: int, total: int, name: str, *, width: int = 24) -> None:
    """A bar on the terminal's last line; nothing where the output is kept in a file."""
    if sys.stdout.isatty():
        filled = width * done // total
        print(f"\r{'█' * filled}{'░' * (width - filled)} {done}/{total} {name:<40.40}", end="", flush=True)


def clear_progress() -> None:
    if sys.stdout.isatty():
        print("\r\x1b[K", end="", flush=True)


def search(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.profiles import profile_by_name, with_overrides
    from rag.public import _collection, _program
    from rag.retrieval.explain import explained, shortened
    from rag.services import services
    from rag.types import Question

    parts = services()
    tenant = arguments.tenant or settings.tenant
    try:
        collection = _collection(tenant, arguments.collection)
        # Another profile is looked through as it is: the overrides were made for the collection's own.
        profile = (
            profile_by_name(arguments.profile)
            if arguments.profile
            else with_overrides(profile_by_name(collection.profile), collection.overrides)
        )
        question = Question(text=arguments.question, identity=_program(tenant), collection=collection)
        retrieval = parts.retriever.retrieve(question, profile=profile)
        for paid in retrieval.response.charges:
            parts.ledger.record(tenant, paid)
    finally:
        parts.close()
    found = retrieval.response
    if arguments.explain:
        print("\n".join(explained(retrieval)), end="\n\n")
    for citation in found.citations or found.nearest:
        print("\n".join(shortened(citation)))
    if not found.citations:
        print("The documents do not answer this; above are the nearest passages.")
    return 0


def calibrate(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.public import _collection
    from rag.services import services

    parts = services()
    try:
        collection = _collection(arguments.tenant or settings.tenant, arguments.collection)
        found = parts.calibrations.measure(collection, keep=not arguments.dry_run)
    finally:
        parts.close()
    print(f"{collection.name}: {found.passages} passages, {collection.embedding_model}")
    low, middle = found.related
    print(f"  a sentence and the rest of its passage   {low:.3f} (lowest 5 %), {middle:.3f} (median)")
    middle, high = found.unrelated
    print(f"  a sentence and another passage           {middle:.3f} (median), {high:.3f} (highest 5 %)")
    done = "would be" if arguments.dry_run else "is now"
    print(f"  the threshold {done} {found.threshold:.3f}; the embedder's own is {found.default:.3f}")
    return 0


def ask(arguments: argparse.Namespace, settings: Settings) -> int:
    from threading import Event

    from rag.answering.answer import DoneEvent, TextEvent
    from rag.profiles import profile_by_name, with_overrides
    from rag.public import _collection, _program
    from rag.services import services
    from rag.types import Question

    parts = services()
    tenant = arguments.tenant or settings.tenant
    try:
        collection = _collection(tenant, arguments.collection)
        profile = with_overrides(profile_by_name(collection.profile), collection.overrides)
        question = Question(text=arguments.question, identity=_program(tenant), collection=collection)
        for event in parts.answerer.answer(question, profile=profile, cancel=Event(), chat_log_id=None):
            if isinstance(event, TextEvent):
                print(event.text, end="", flush=True)
            elif isinstance(event, DoneEvent):
                print()
                for citation in event.citations:
                    print(f"[{citation.number}] {citation.title}, page {citation.first_page}")
    finally:
        parts.close()
    return 0


def back_up(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag import backup

    made = backup.back_up(settings, arguments.path)
    print(f"{arguments.path}: {made.documents} documents, {made.files} originals, {made.size / 1e6:,.1f} MB.")
    return 0


def restore(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag import backup

    brought = backup.restore(settings, arguments.path)
    print(f"{settings.data_dir}: {brought.documents} documents, {brought.files} originals. Start with: make run")
    return 0


def _require_free_port(settings: Settings) -> None:
    with socket.socket(socket.AF_INET6 if ":" in settings.address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.address, settings.port))
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                raise SettingsError(
                    f"Port {settings.port} is in use. Stop what uses it, or choose another: PORT=8502 make run"
                ) from exc
            raise SettingsError(
                f"The address {settings.address}:{settings.port} cannot be used ({exc.strerror}). "
                "Set RAG_ADDRESS and PORT to ones of this machine."
            ) from exc


def _shown(address: str) -> str:
    return "localhost" if address in ("127.0.0.1", "0.0.0.0", "::") else address  # noqa: S104 - compared, not bound


if __name__ == "__main__":
    sys.exit(main())
