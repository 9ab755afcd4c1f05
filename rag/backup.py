"""Everything of the built-in server in one file: the database as `pg_dump` writes it, and the originals.

It can be made while people work. The database is one moment; originals are content-addressed and never change, so those
copied before that moment and those that came until it are all it can speak of. Passwords of the server's own roles are
not in it: a restored folder makes new ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag.embedded import BINARIES, DATABASE, EmbeddedServer, start_server
from rag.errors import SettingsError
from rag.files import KEY, TENANT
from rag.migrations import MIGRATIONS
from rag.settings import Settings

DUMP, MANIFEST, FILES = "database.dump", "manifest.json", "files"


@dataclass(frozen=True)
class BackedUp:
    """What a backup holds. `size` is of the file, in bytes."""

    documents: int
    files: int
    size: int


def back_up(settings: Settings, path: Path) -> BackedUp:
    """Write a backup of the built-in server and its originals to `path`, a tar file.

    Raises `SettingsError` when another database is used, the file is there already, or it cannot be written.
    """
    _require_built_in(settings)
    server = start_server(settings.data_dir)
    partial = path.with_name(path.name + ".part")
    try:
        if path.exists():
            raise SettingsError(f"{path} is there already. Name a file that is not.")
        with tempfile.TemporaryDirectory() as folder, tarfile.open(partial, "w") as archive:
            kept: set[str] = set()
            _add_files(archive, settings.data_dir / FILES, kept)
            dump = Path(folder) / DUMP
            _run(server, "pg_dump", "--format=custom", f"--file={dump}")
            _add_files(archive, settings.data_dir / FILES, kept)
            archive.add(dump, DUMP)
            manifest = Path(folder) / MANIFEST
            documents, migrations = _contents(server)
            values = {
                "madeAt": datetime.now(UTC).isoformat(),
                "documents": documents,
                "files": len(kept),
                "migrations": migrations,
            }
            manifest.write_text(json.dumps(values, indent=2), "utf-8")
            archive.add(manifest, MANIFEST)
        # Under its name only when it is whole.
        partial.rename(path)
    except OSError as exc:
        raise SettingsError(f"The backup cannot be written to {path}: {exc.strerror or exc}.") from exc
    finally:
        partial.unlink(missing_ok=True)
        server.stop()
    return BackedUp(documents, len(kept), path.stat().st_size)


def restore(settings: Settings, path: Path) -> BackedUp:
    """Bring a backup into a data folder that holds nothing yet.

    Raises `SettingsError` when the folder is in use or holds a database, the file is no backup, or it was made by a
    newer version of the product.
    """
    _require_built_in(settings)
    if (settings.data_dir / "postgres" / "PG_VERSION").exists() or (settings.data_dir / FILES).exists():
        raise SettingsError(
            f"{settings.data_dir} holds a database already. Stop the application and move the folder away, or set "
            "RAG_DATA_DIR to an empty one."
        )
    try:
        with tarfile.open(path) as archive, tempfile.TemporaryDirectory() as folder:
            manifest = json.loads(_read(archive, MANIFEST))
            known = {file.stem for file in MIGRATIONS.glob("*.sql")}
            if newer := sorted(set(manifest["migrations"]) - known):
                raise SettingsError(f"This backup is of a newer version ({newer[-1]}). Update the product first.")
            archive.extract(DUMP, folder, filter="data")
            server = start_server(settings.data_dir)
            try:
                _run(server, "pg_restore", "--exit-on-error", "--clean", "--if-exists", str(Path(folder) / DUMP))
                files = _extract_files(archive, settings.data_dir / FILES, _referenced(server))
                documents, _ = _contents(server)
            finally:
                server.stop()
    except (OSError, tarfile.TarError, KeyError, ValueError) as exc:
        raise SettingsError(f"{path} is not a backup that can be read: {exc}.") from exc
    return BackedUp(documents, files, path.stat().st_size)


def _require_built_in(settings: Settings) -> None:
    if settings.database_url:
        raise SettingsError(
            "DATABASE_URL is set: back up that database by its own means (Supabase: Database, Backups; Postgres: "
            "pg_dump as a role that may bypass row-level security), and the folder of originals beside it."
        )


def _add_files(archive: tarfile.TarFile, folder: Path, kept: set[str]) -> None:
    """Add the originals that are not in the archive yet. One deleted meanwhile is left out: nothing speaks of it."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        name = f"{FILES}/{path.relative_to(folder)}"
        if name in kept or not path.is_file() or not KEY.fullmatch("/".join(path.parts[-2:])):
            continue
        try:
            archive.add(path, name)
        except FileNotFoundError:
            continue
        kept.add(name)


def _extract_files(archive: tarfile.TarFile, folder: Path, wanted: set[str]) -> int:
    """Write the originals the database speaks of; those deleted while the backup was made stay out."""
    written = 0
    for member in archive:
        tenant, _, key = member.name.removeprefix(f"{FILES}/").partition("/")
        if not member.isfile() or not TENANT.fullmatch(tenant) or not KEY.fullmatch(key):
            continue
        content = archive.extractfile(member)
        if content is None or f"{tenant}/{key}" not in wanted:
            continue
        target = folder / tenant / key
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.read())
        written += 1
    return written


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    """A small member's content. Raises `KeyError` when it is not there."""
    content = archive.extractfile(name)
    if content is None:
        raise KeyError(name)
    return content.read()


def _contents(server: EmbeddedServer) -> tuple[int, list[str]]:
    """How many documents there are, and the migrations applied."""
    with _connect(server) as connection:
        documents = connection.execute("SELECT count(*) FROM documents").fetchone()
        migrations = connection.execute("SELECT name FROM rag_migrations ORDER BY name").fetchall()
    return (documents[0] if documents else 0), [name for (name,) in migrations]


def _referenced(server: EmbeddedServer) -> set[str]:
    with _connect(server) as connection:
        return {f"{tenant}/{path}" for tenant, path in connection.execute("SELECT tenant_id, file_path FROM documents")}


def _connect(server: EmbeddedServer) -> psycopg.Connection:
    # As the superuser: a backup is of all tenants, and row-level security binds the owner of the tables as well.
    return psycopg.connect(make_conninfo(server.superuser, dbname=DATABASE))


def _run(server: EmbeddedServer, program: str, *arguments: str) -> None:
    parts = conninfo_to_dict(server.superuser)
    # The password goes by the environment: arguments can be read by everybody on the machine.
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "PGHOST": str(parts["host"]),
        "PGPORT": str(parts["port"]),
        "PGUSER": str(parts["user"]),
        "PGPASSWORD": str(parts["password"]),
    }
    command: Sequence[str] = [str(BINARIES / program), "--dbname", DATABASE, *arguments]
    done = subprocess.run(  # noqa: S603 - our own binaries, arguments of our own
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        raise SettingsError(f"{program} did not work: {reason[0] if reason else 'no reason given'}")
