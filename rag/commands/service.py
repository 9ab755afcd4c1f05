"""Run the product: `serve` starts the server, `worker` only processes documents, `doctor` checks everything.

`backup` writes all data into a file, and `restore` reads the file back.
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from rag.command_line import Commands, add_command
from rag.errors import RagError, SettingsError
from rag.integrations.registry import automatic_backups, backup_decryption, backup_encryption
from rag.language import counted
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.storage.backup import BackedUp


log = logging.getLogger("rag.start")


def add_parsers(commands: Commands) -> None:
    add_command(commands, "serve", "start the application").set_defaults(run=serve)
    add_command(commands, "worker", "only process documents, beside a running application").set_defaults(run=worker)
    text = "serve the Model Context Protocol by standard input and output, for an assistant on this machine"
    command = add_command(commands, "mcp", text, more="Over HTTP it is served at /mcp by the running application.")
    command.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")
    command.set_defaults(run=mcp)
    text = "check the configuration, and name what is missing and what it would add"
    command = add_command(commands, "doctor", text)
    command.add_argument("--probe", action="store_true", help="ask each provider by a free call, with time and error")
    command.set_defaults(run=doctor)
    command = add_command(
        commands,
        "psql",
        "open a shell on the built-in database that reads one tenant",
        more="It cannot change anything.",
    )
    command.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")
    command.add_argument("--command", "-c", default="", metavar="SQL", help="run this and exit")
    command.set_defaults(run=psql)
    text = "write the built-in database and the originals into one file, also while people work"
    command = add_command(commands, "backup", text)
    command.add_argument("path", type=Path, metavar="FILE", help="the file to write")
    command.add_argument(
        "--recipient", action="append", default=[], metavar="AGE1…", help="encrypt it for this public key of age"
    )
    command.set_defaults(run=back_up)
    command = add_command(commands, "restore", "restore a backup into an empty data folder")
    command.add_argument("path", type=Path, metavar="FILE", help="the file that backup wrote")
    command.add_argument(
        "--identity", type=Path, metavar="KEY", help="the file with the private key of an encrypted one"
    )
    command.add_argument(
        "--erasures", type=Path, metavar="FILE",
        help="erasures.json of the folder that was in use: who was erased since is erased again",
    )  # fmt: skip
    command.set_defaults(run=restore)


def serve(arguments: argparse.Namespace, settings: Settings) -> int:
    """Set everything up, printing each step, then serve until Ctrl-C."""
    started = time.monotonic()
    _require_free_port(settings)
    os.chdir(Path(__file__).resolve().parents[2])

    import uvicorn

    from rag.api.middleware import HttpConnection
    from rag.samples.load import prepare_tenant
    from rag.services import services

    # Importing the pages and starting the database take equally long.
    with ThreadPoolExecutor(1, "services") as executor:
        starting = executor.submit(services)
        try:
            from app import app

            parts = starting.result()
        except BaseException:
            starting.result().close()
            raise
    try:
        prepare_tenant(parts)
        link = parts.accounts.first_admin_link()
    except BaseException:
        parts.close()
        raise
    address = settings.public_url or f"http://{_host_name(settings.address)}:{settings.port}"

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
        http=HttpConnection,
        log_config=None,
        access_log=False,
        ws_per_message_deflate=False,  # Redraws are small: compressing takes longer than sending.
        timeout_graceful_shutdown=3,
        # Longer than proxies and clients keep an idle connection: a connection closed here exactly when it is reused
        # fails.
        timeout_keep_alive=75,
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


def mcp(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve the MCP protocol to a program over standard input and output, until the program closes the streams."""
    # Standard output belongs to the protocol.
    for handler in log.handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(sys.stderr)

    import anyio

    from rag.integrations.registry import serve_stdio
    from rag.services import program_of, services

    parts = services()
    try:
        parts.choose_collection(arguments.tenant or settings.tenant, None)
        anyio.run(serve_stdio, parts, program_of(arguments.tenant or settings.tenant))
    finally:
        parts.close()
    return 0


def worker(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.services import connect_services

    parts = connect_services(settings)
    try:
        parts.queue.start_worker()
        log.info("Processing documents. Ctrl-C stops; work under way continues at the next start.")
        threading.Event().wait()  # until a signal, which `main` turns into an exception
    finally:
        parts.close()
        log.info("Stopped")
    return 0


def doctor(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.api.health import check_rag_health
    from rag.services import connect_services

    parts = connect_services(settings)
    unread = ""
    try:
        try:
            parts.documents.start_reader()  # The reader reports how it is confined.
        except RagError as exc:
            unread = f"FAILED   Reading files: no process for it can be started and confined ({exc.message})"
        report = check_rag_health(parts, probe=arguments.probe)
    finally:
        parts.close()
    marks = {"ok": "ok     ", "missing": "missing", "warning": "note   ", "failed": "FAILED "}
    for check in report.checks:
        print(f"{marks[check.state]}  {check.name}: {check.sentence}")
        if check.detail:
            print(f"         {check.detail}")
    if unread:
        print(unread)
    works = report.ok and not unread
    print("\nThe product works." if works else "\nThe product does not work until what FAILED is mended.")
    return 0 if works else 1


def psql(arguments: argparse.Namespace, settings: Settings) -> int:
    """Start the built-in Postgres if needed, and open psql with a role which can only read one tenant."""
    from rag.services import connect_services
    from rag.storage.database import reading_as
    from rag.storage.embedded_postgres import BINARIES, reader_environment, start_server

    if settings.database_url:
        raise SettingsError(
            "DATABASE_URL is set, and this shell is for the built-in database. Use psql with it, as the owner of the "
            "tables: SELECT rag_enter('tenant') in a transaction lets it see a tenant (docs/operations.md)."
        )
    parts = connect_services(settings)
    try:
        tenant = parts.tenants.get(arguments.tenant or settings.tenant)
        server = start_server(settings.data_dir)
        try:
            environment = reader_environment(server, reading_as(parts.database.key, tenant.id))
            print(f"Reading tenant {tenant.id}. \\q leaves.", file=sys.stderr)
            command_options = ["--command", arguments.command] if arguments.command else []
            done = subprocess.run(  # noqa: S603 - our own binary
                [str(BINARIES / "psql"), "--no-psqlrc", *command_options],
                env={**os.environ, **environment},
                check=False,
            )
        finally:
            server.stop()
    finally:
        parts.close()
    return done.returncode


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


def _host_name(address: str) -> str:
    return "localhost" if address in ("127.0.0.1", "0.0.0.0", "::") else address  # noqa: S104 - compared, not bound


def back_up(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.storage import backup

    encrypt = backup_encryption(" ".join(arguments.recipient))
    manifest = backup.back_up(settings, arguments.path, encrypt=encrypt)
    print(f"{arguments.path}: {_contents(manifest)}, {manifest.size / 1e6:,.1f} MB.")
    return 0


def restore(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.storage import backup
    from rag.storage.erasures import read_register

    erasures = read_register(arguments.erasures) if arguments.erasures else []
    try:
        automatic = automatic_backups(settings)
        erasures += automatic.shared_erasures() if automatic is not None else []
    except SettingsError as exc:
        print(
            f"{exc.message} So nobody knows here who was erased since this backup was made: erase them again.",
            file=sys.stderr,
        )
    decrypt = backup_decryption(arguments.identity)
    brought = backup.restore(settings, arguments.path, decrypt=decrypt, erasures=erasures)
    print(f"{settings.data_dir}: {_contents(brought)}. Start with: make run")
    if brought.erasures_since:
        print(f"People erased since this backup was made: {brought.erasures_since}. The first start erases them again.")
    return 0


def _contents(backup: BackedUp) -> str:
    return f"{counted(backup.documents, 'document')}, {counted(backup.files, 'original')}"
