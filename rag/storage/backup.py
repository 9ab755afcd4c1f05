"""Back up the built-in server to a file, with `pg_dump`'s output and the originals, and restore this backup.

A backup can run while people work: it has a snapshot of the database, and all originals in this snapshot. The server
roles' passwords are left out, and a restored folder gets new passwords. An integration can encrypt the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, BinaryIO, Protocol

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag.errors import SettingsError
from rag.language import counted
from rag.settings import Settings
from rag.storage.data_folder import (
    BACKUP,
    RESTORE,
    RESTORED,
    START_LOCK,
    USE_LOCK,
    move_restored,
    private_folder,
    starting,
    used_alone,
    whole_file,
)
from rag.storage.embedded_postgres import BINARIES, DATABASE, EmbeddedServer, remove_left, start_server
from rag.storage.erasures import (
    REGISTER,
    SHARED_REGISTER,
    Erasure,
    erasures_in,
    read_register,
    write_register,
)
from rag.storage.files import KEY, TENANT
from rag.storage.migrations import LAST_REPLACED, MIGRATIONS

DUMP, MANIFEST, FILES = "database.dump", "manifest.json", "files"
#: A backup before encryption and after decryption, in a private folder inside the data folder.
PLAIN = "backup.tar"
#: How files encrypted with age begin.
ENCRYPTED = b"age-encryption.org/"
#: Encrypts or decrypts the first file's content into the second. Raises `SettingsError`.
Encryption = Callable[[BinaryIO, BinaryIO], None]

#: The most snapshots to try: a new snapshot is needed if a document was deleted while its file was copied.
MOST_MOMENTS = 20


class AutomaticBackups(Protocol):
    """Automatic backups, which an integration makes."""

    @property
    def is_on(self) -> bool: ...

    def run_due(self) -> None:
        """Run a backup if due."""

    def share_erasures(self) -> None:
        """Copy the erasure register to the storage with the backups. Raises `SettingsError`."""

    def shared_erasures(self) -> Sequence[Erasure]:
        """Return the erasures in the register stored with the backups. Raises `SettingsError`."""


@dataclass(frozen=True)
class Moment:
    """A database snapshot for a backup.

    The values are the snapshot's name for `pg_dump`, and the documents, migrations, files and erasures in the snapshot.
    """

    snapshot: str
    documents: int
    migrations: list[str]
    files: set[str]
    #: Who was erased before.
    erasures: list[Erasure]


@dataclass(frozen=True)
class BackedUp:
    """What a backup contains. `size` is the file size in bytes."""

    documents: int
    files: int
    size: int
    #: Erasures made since, which the first start after a restore does again.
    erasures_since: int = 0


def back_up(settings: Settings, path: Path, *, encrypt: Encryption | None = None) -> BackedUp:
    """Write a backup of the built-in database server and the original files to the tar file `path`.

    If `encrypt` is given, it encrypts the file. Raises `SettingsError` if `DATABASE_URL` names another database, if the
    built-in database is missing, or if the file exists or cannot be written.
    """
    _require_built_in(settings)
    try:
        with whole_file(path) as file:
            moment = _write(settings, file, encrypt)
    except OSError as exc:
        raise SettingsError(f"The backup cannot be written to {path}: {exc.strerror or exc}.") from exc
    return BackedUp(moment.documents, len(moment.files), path.stat().st_size)


def _write(settings: Settings, file: BinaryIO, encrypt: Encryption | None) -> Moment:
    if not (settings.data_dir / "postgres" / "PG_VERSION").exists():
        raise SettingsError(_nothing_in(settings))
    if encrypt is None:
        return _write_plain(settings, file)
    # The unencrypted file lies beside the unencrypted database, which saves memory.
    with private_folder(settings.data_dir, BACKUP) as folder, (folder / PLAIN).open("x+b") as plain:
        moment = _write_plain(settings, plain)
        plain.seek(0)
        encrypt(plain, file)
    return moment


def _write_plain(settings: Settings, file: BinaryIO) -> Moment:
    server = start_server(settings.data_dir)
    try:
        with private_folder(settings.data_dir, BACKUP) as folder, tarfile.open(fileobj=file, mode="w") as archive:
            dump = folder / DUMP
            with _moment_with_files(server, archive, settings.data_dir / FILES) as moment:
                _run(server, "pg_dump", "--format=custom", f"--snapshot={moment.snapshot}", f"--file={dump}")
            archive.add(dump, DUMP)
            manifest = folder / MANIFEST
            values = {
                "madeAt": datetime.now(UTC).isoformat(),
                "documents": moment.documents,
                "files": len(moment.files),
                "migrations": moment.migrations,
                # Contains no names: erased people are listed by their former account ids.
                "erasures": [erasure.to_json() for erasure in moment.erasures],
            }
            register = settings.data_dir / REGISTER
            if moment.erasures:
                write_register(register, [*read_register(register), *moment.erasures])
            manifest.write_text(json.dumps(values, indent=2), "utf-8")
            archive.add(manifest, MANIFEST)
    except psycopg.errors.UndefinedTable as exc:
        raise SettingsError(_nothing_in(settings)) from exc
    finally:
        server.stop()
    return moment


def _nothing_in(settings: Settings) -> str:
    return f"There is nothing to back up: {settings.data_dir} holds no database of the application yet."


def restore(
    settings: Settings, path: Path, *, decrypt: Encryption | None = None, erasures: Iterable[Erasure] = ()
) -> BackedUp:
    """Restore a backup into an empty data folder, and return the backup's contents.

    `decrypt` is needed for an encrypted backup. The first start repeats all erasures named in `erasures`, in the
    folder's register and in the register stored with the backup. The backup is unpacked into a hidden folder, which is
    renamed when complete: after a kill, the data folder has either nothing from the backup or everything. Raises
    `SettingsError` if the folder is in use or has a database, if the file is not a backup, or if a newer product
    version made the backup.
    """
    _require_built_in(settings)
    folder = settings.data_dir.absolute()
    is_new = not folder.exists()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        locks = [name for name in (START_LOCK, USE_LOCK) if not (folder / name).exists()]
    except OSError as exc:
        raise SettingsError(f"{folder} cannot be written ({exc.strerror}). Set RAG_DATA_DIR to one that can.") from exc
    try:
        with used_alone(folder):
            with starting(folder):
                move_restored(folder)
                remove_left(folder)
            if (folder / "postgres").exists() or (folder / FILES).exists():
                raise SettingsError(
                    f"{folder} holds a database already. Stop the application and move the folder away, or set "
                    "RAG_DATA_DIR to an empty one."
                )
            with private_folder(folder, RESTORE) as temporary:
                known_erasures = [
                    *read_register(folder / REGISTER),
                    *read_register(path.with_name(SHARED_REGISTER)),
                    *erasures,
                ]
                brought = _restore_into(temporary, path, decrypt, known_erasures)
                temporary.rename(
                    folder / RESTORED
                )  # From here on the restore is complete, even if this process is killed.
                move_restored(folder)
    except BaseException as exc:
        for name in locks:
            (folder / name).unlink(missing_ok=True)
        if is_new and not any(folder.iterdir()):
            folder.rmdir()
        if isinstance(exc, OSError | tarfile.TarError | KeyError | TypeError | ValueError | EOFError):
            raise SettingsError(f"{path} is not a backup that can be read: {exc}.") from exc
        raise
    return brought


def try_restore(settings: Settings, path: Path, *, decrypt: Encryption | None = None) -> BackedUp:
    """Test a backup by restoring it into a temporary folder. This can run while people work.

    Performs every step in `restore`: a separate server reads the dump, and each original is compared with its hash.
    Raises `SettingsError` like `restore`.
    """
    try:
        with private_folder(settings.data_dir, RESTORE) as temporary:
            return _restore_into(temporary, path, decrypt)
    except (OSError, tarfile.TarError, KeyError, TypeError, ValueError, EOFError) as exc:
        raise SettingsError(f"{path} is not a backup that can be read: {exc}.") from exc


def _decrypted(path: Path, folder: Path, decrypt: Encryption | None) -> Path:
    with path.open("rb") as file:
        if file.read(len(ENCRYPTED)) != ENCRYPTED:
            return path
        if decrypt is None:
            raise SettingsError(f"{path} is encrypted. Name the file with its private key: --identity FILE.")
        file.seek(0)
        with (folder / PLAIN).open("xb") as plain:
            decrypt(file, plain)
    return folder / PLAIN


def _restore_into(folder: Path, path: Path, decrypt: Encryption | None, erasures: Sequence[Erasure] = ()) -> BackedUp:
    """Create a complete data folder from a backup, repeat the erasures, and stop the server used for this."""
    plain = _decrypted(path, folder, decrypt)
    with tarfile.open(plain) as archive:
        manifest = json.loads(_read(archive, MANIFEST))
        migrations = {file.stem for file in MIGRATIONS.glob("*.sql")}
        if newer := sorted(name for name in {*manifest["migrations"]} - migrations if name[:14] > LAST_REPLACED):
            raise SettingsError(f"This backup is of a newer version ({newer[-1]}). Update the product first.")
        with _open_member(archive, DUMP) as dump, (folder / DUMP).open("xb") as file:
            shutil.copyfileobj(dump, file)
        server = start_server(folder)
        try:
            _run(server, "pg_restore", "--exit-on-error", "--clean", "--if-exists", str(folder / DUMP))
            with _connect(server) as connection:
                documents, _ = _contents(connection)
                referenced = _referenced(connection)
                erased = erasures_in(connection)
            brought = _extract_files(archive, folder / FILES, referenced)
            if missing := referenced - brought:
                raise SettingsError(
                    f"{path} is damaged: it lacks {len(missing)} of {counted(len(referenced), 'original')}."
                )
        finally:
            server.stop()
    if erased or erasures:
        write_register(folder / REGISTER, [*erased, *erasures])
    since = {erasure.id for erasure in erasures} - {erasure.id for erasure in erased}
    return BackedUp(documents, len(brought), path.stat().st_size, len(since))


def _require_built_in(settings: Settings) -> None:
    if settings.database_url:
        raise SettingsError(
            "DATABASE_URL is set: back up that database by its own means (Supabase: Database, Backups; Postgres: "
            "pg_dump as a role that may bypass row-level security), and the folder of originals beside it."
        )


@contextmanager
def _moment_with_files(server: EmbeddedServer, archive: tarfile.TarFile, folder: Path) -> Iterator[Moment]:
    """Copy the original files to the archive, and yield the matching database snapshot.

    If a file is deleted before it is copied, a newer snapshot is taken. Raises `SettingsError` if files stay missing.
    """
    archived: set[str] = set()
    for _ in range(MOST_MOMENTS):
        with _connect(server) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            exported = connection.execute("SELECT pg_export_snapshot()").fetchone()
            assert exported is not None  # noqa: S101  a SELECT without FROM has a row
            moment = Moment(str(exported[0]), *_contents(connection), _referenced(connection), erasures_in(connection))
            for name in sorted(moment.files - archived):
                with contextlib.suppress(FileNotFoundError):
                    archive.add(folder / name, f"{FILES}/{name}")
                    archived.add(name)
            if moment.files <= archived:
                yield moment
                return
    missing = sorted(moment.files - archived)
    are = counted(len(missing), "original is", "originals are")
    raise SettingsError(
        f"{are} not in {folder}, such as {missing[0]}. Delete their documents, or bring the "
        "files back, and make the backup again."
    )


def _extract_files(archive: tarfile.TarFile, folder: Path, referenced: set[str]) -> set[str]:
    extracted: set[str] = set()
    for member in archive:
        name = member.name.removeprefix(f"{FILES}/")
        tenant, _, key = name.partition("/")
        if not member.isfile() or not TENANT.fullmatch(tenant) or not KEY.fullmatch(key) or name not in referenced:
            continue
        content = _read(archive, member)
        if not key.endswith(hashlib.sha256(content).hexdigest()):
            continue  # damaged, and missed for that
        target = folder / tenant / key
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        extracted.add(name)
    return extracted


def _read(archive: tarfile.TarFile, member: str | tarfile.TarInfo) -> bytes:
    with _open_member(archive, member) as content:
        return content.read()


def _open_member(archive: tarfile.TarFile, member: str | tarfile.TarInfo) -> IO[bytes]:
    """Open a member of an archive. Harmful names and links in the archive have no effect.

    Raises `KeyError` if the member is missing or not a file.
    """
    content = archive.extractfile(member)
    if content is None:
        raise KeyError(str(member))
    return content


def _contents(connection: psycopg.Connection) -> tuple[int, list[str]]:
    documents = connection.execute("SELECT count(*) FROM documents").fetchone()
    migrations = connection.execute("SELECT name FROM rag_migrations ORDER BY name").fetchall()
    return (documents[0] if documents else 0), [name for (name,) in migrations]


def _referenced(connection: psycopg.Connection) -> set[str]:
    """Return the original files needed by all documents, each in the form "tenant/key"."""
    rows = connection.execute("SELECT tenant_id, file_path FROM documents WHERE file_path <> ''").fetchall()
    return {f"{tenant}/{path}" for tenant, path in rows}


def _connect(server: EmbeddedServer) -> psycopg.Connection:
    # As the superuser: a backup includes all tenants, and row-level security also restricts the tables' owner.
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
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False, umask=0o077
    )
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        raise SettingsError(f"{program} did not work: {reason[0] if reason else 'no reason given'}")
