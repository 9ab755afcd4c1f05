"""Back up automatically to a folder or S3-compatible storage, and test a restore every month.

Backup names contain their times: after a restart, any worker knows whether a backup is due. The results from the last
backup and from the last trial restore are stored in the data folder, for `doctor` and metrics.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from rag.errors import PackagesMissing, RagError, SettingsError
from rag.settings import Settings
from rag.storage.backup import Encryption, back_up, try_restore
from rag.storage.data_folder import BACKUP, only_one, private_folder, write_private
from rag.storage.erasures import REGISTER, SHARED_REGISTER, Erasure, read_register, write_register

log = logging.getLogger("rag.backups")

NAME = re.compile(r"hr-assistant-(\d{8}T\d{6})Z\.tar(?:\.age)?")
TIME = "%Y%m%dT%H%M%S"
REPORT, LOCK = "backups.json", "backing-up.lock"
#: The fewest backups kept, whatever their age.
LEAST_BACKUPS = 3
TRIAL_DAYS = 30
#: Packages whose errors come from the storage.
CLIENTS = ("minio", "urllib3")
COPIED_BYTES = 2**20
#: A copy which has not grown for this long was left by a killed process.
LEFT_SECONDS = 86_400
#: The timeout for connecting and for each wait on the network.
S3_TIMEOUT_SECONDS = 60.0
#: The interval between tries after a failure.
RETRY = timedelta(hours=1)


@dataclass(frozen=True, order=True)
class StoredBackup:
    """A stored backup. `size` is in bytes."""

    created_at: datetime
    name: str
    size: int


@dataclass(frozen=True, kw_only=True)
class BackupRun:
    """The result from a backup or a trial restore. `error` is "" on success."""

    at: datetime
    name: str = ""
    documents: int = 0
    files: int = 0
    seconds: float = 0.0
    error: str = ""


class Place(Protocol):
    """Storage for backups: a folder or a bucket."""

    def list(self) -> list[tuple[str, int]]:
        """Return the stored files' names with their sizes in bytes."""

    def store(self, path: Path, name: str) -> None:
        """Store a file under a name, completely or not at all."""

    def fetch(self, name: str, path: Path) -> None:
        """Copy a stored file to a path."""

    def delete(self, name: str) -> None:
        """Delete a stored file."""


class FolderPlace:
    """A folder, for example on a mounted disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list(self) -> list[tuple[str, int]]:
        return [(path.name, path.stat().st_size) for path in self._folder.iterdir() if path.is_file()]

    def store(self, path: Path, name: str) -> None:
        # Without locks, because not every mounted disk has them.
        for leftover in self._folder.glob(".hr-assistant-*.part"):
            if time.time() - leftover.stat().st_mtime > LEFT_SECONDS:
                leftover.unlink(missing_ok=True)
        partial = self._folder / f".{name}.part"
        try:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with path.open("rb") as source, os.fdopen(descriptor, "wb") as target:
                shutil.copyfileobj(source, target, COPIED_BYTES)
                target.flush()
                os.fsync(descriptor)
            partial.replace(self._folder / name)
        finally:
            partial.unlink(missing_ok=True)

    def fetch(self, name: str, path: Path) -> None:
        shutil.copyfile(self._folder / name, path)

    def delete(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)


class S3Place:
    """S3-compatible storage for backups: a bucket, or a prefix within a bucket."""

    def __init__(self, address: str, settings: Settings) -> None:
        """`address` has the form s3://bucket/prefix. Raises `SettingsError` for other text."""
        endpoint = settings.variable("AWS_ENDPOINT_URL")
        parts, server = urlsplit(address), urlsplit(endpoint)
        if not parts.netloc or server.scheme not in ("http", "https") or not server.netloc:
            raise SettingsError(
                f"RAG_BACKUP_TO is {address!r} and AWS_ENDPOINT_URL {endpoint!r}, but they have to look "
                "like s3://bucket/prefix and https://s3.example.com."
            )
        try:
            import minio  # imported on use, for a quick start
            import urllib3
        except ModuleNotFoundError as exc:
            raise PackagesMissing from exc

        self._bucket = parts.netloc
        self._prefix = f"{parts.path.strip('/')}/".lstrip("/")
        self._client = minio.Minio(
            server.netloc,
            access_key=settings.variable("AWS_ACCESS_KEY_ID"),
            secret_key=settings.variable("AWS_SECRET_ACCESS_KEY"),
            region=settings.variable("AWS_REGION"),
            secure=server.scheme == "https",
            http_client=urllib3.PoolManager(timeout=S3_TIMEOUT_SECONDS, retries=urllib3.Retry(2, backoff_factor=0.5)),
        )

    def list(self) -> list[tuple[str, int]]:
        objects = self._client.list_objects(self._bucket, prefix=self._prefix)
        return [((item.object_name or "").removeprefix(self._prefix), item.size or 0) for item in objects]

    def store(self, path: Path, name: str) -> None:
        self._client.fput_object(self._bucket, self._prefix + name, str(path))

    def fetch(self, name: str, path: Path) -> None:
        self._client.fget_object(self._bucket, self._prefix + name, str(path))

    def delete(self, name: str) -> None:
        self._client.remove_object(self._bucket, self._prefix + name)


@contextmanager
def _storage_errors(place: str) -> Iterator[None]:
    try:
        yield
    except RagError:
        raise
    except Exception as exc:  # from a file system, the network or the storage
        if not isinstance(exc, OSError | ValueError) and type(exc).__module__.partition(".")[0] not in CLIENTS:
            raise
        reason = getattr(exc, "strerror", None) or getattr(exc, "message", None) or str(exc)
        raise SettingsError(
            f"Backups cannot be stored at {place}: {reason[:200].rstrip('.')}. See RAG_BACKUP_TO."
        ) from exc


def _encryption(recipients: str) -> Encryption | None:
    if not recipients:
        return None
    from rag.integrations.operations.backups.age import encryption  # raises `PackagesMissing`

    return encryption(recipients)


def _decryption(identity: Path | None) -> Encryption | None:
    if identity is None:
        return None
    from rag.integrations.operations.backups.age import decryption  # raises `PackagesMissing`

    return decryption(identity)


def _above_zero(settings: Settings, name: str) -> float:
    """Read a number from a setting. Raises `SettingsError` unless the number is above 0."""
    text = settings.variable(name)
    with suppress(ValueError):
        if 0 < (number := float(text)) < math.inf:
            return number
    raise SettingsError(f"{name} is {text!r}, but it has to be a number above 0.")


class ScheduledBackups:
    """Make, list and test the backups configured in the settings."""

    def __init__(self, settings: Settings, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._settings = settings
        self._clock = clock
        self._busy = threading.Lock()
        self._address = settings.variable("RAG_BACKUP_TO")
        self._recipients = settings.variable("RAG_BACKUP_RECIPIENTS")
        self._identity = settings.variable("RAG_BACKUP_IDENTITY")
        self._hours = _above_zero(settings, "RAG_BACKUP_HOURS")
        self._keep_days = _above_zero(settings, "RAG_BACKUP_KEEP_DAYS")

    @property
    def is_on(self) -> bool:
        """Whether automatic backups are configured."""
        return bool(self._address) and not self._settings.database_url

    def list(self) -> list[StoredBackup]:
        """Return the stored backups, newest first. Raises `SettingsError` if the storage cannot be read."""
        backups = []
        with _storage_errors(self._address):
            for name, size in self._place().list():
                if match := NAME.fullmatch(name):
                    backups.append(StoredBackup(datetime.strptime(match[1], TIME).replace(tzinfo=UTC), name, size))
        return sorted(backups, reverse=True)

    def last(self) -> tuple[BackupRun | None, BackupRun | None]:
        """Return the results from the last backup and from the last trial restore; `None` if there was no run."""
        runs = self._read()
        return runs.get("backup"), runs.get("trial")

    def ages(self) -> dict[str, float]:
        """Return the seconds since the last successful backup and trial restore, by the keys `backup` and `trial`.

        Without a success, the value is infinity.
        """
        runs, now = self._read(), self._clock()
        worked = {kind: runs.get(f"{kind}_that_worked") for kind in ("backup", "trial")}
        return {kind: (now - run.at).total_seconds() if run else math.inf for kind, run in worked.items()}

    def run_due(self) -> None:
        """Make a backup if due, and a trial restore if due. Failures are stored, logged and retried later."""
        if not self.is_on or not self._busy.acquire(blocking=False):
            return
        try:
            with only_one(self._settings.data_dir, LOCK) as is_mine:
                if not is_mine:
                    return
                backup, trial = self.last()
                now = self._clock()
                if self._is_due(backup, now):
                    self._attempt("backup", self._back_up)
                if self._is_trial_due(trial, now):
                    self._attempt("trial", self._try)
        finally:
            self._busy.release()

    def make(self) -> BackupRun:
        """Make a backup now and delete expired backups. Raises `SettingsError` on failure."""
        return self._now("backup", self._back_up)

    def try_newest(self) -> BackupRun:
        """Restore the newest backup to a temporary folder, for a trial, and return the result.

        Raises `SettingsError` on failure.
        """
        return self._now("trial", self._try)

    def shared_erasures(self) -> Sequence[Erasure]:
        """Return the register of erased data stored with the backups. Raises `SettingsError` if unreadable."""
        if not self.is_on:
            return []
        place = self._place()
        with _storage_errors(self._address), tempfile.TemporaryDirectory() as folder:
            if SHARED_REGISTER not in {name for name, _size in place.list()}:
                return []
            path = Path(folder) / SHARED_REGISTER
            place.fetch(SHARED_REGISTER, path)
            return read_register(path)

    def share_erasures(self) -> None:
        """Merge the data folder's erasure register into the register stored with the backups."""
        if not self.is_on:
            return
        erasures = [*self.shared_erasures(), *read_register(self._settings.data_dir / REGISTER)]
        if not erasures:
            return
        with _storage_errors(self._address), tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / SHARED_REGISTER
            write_register(path, erasures)
            self._place().store(path, SHARED_REGISTER)

    def trouble(self) -> str:
        """Return sentences for operators about problems with backups and trial restores; "" without problems."""
        backup, trial = self.last()
        if backup is None:
            return "None was made yet. The first is made a minute after the application starts."
        sentences = []
        if backup.error:
            sentences.append(f"The backup of {backup.at:%Y-%m-%d %H:%M} UTC failed: {backup.error}")
        elif self._clock() - backup.at > 2 * self._interval:
            sentences.append(
                f"The last is of {backup.at:%Y-%m-%d %H:%M} UTC. They are made while the application runs."
            )
        if trial is not None and trial.error:
            sentences.append(f"Restoring one as a trial failed on {trial.at:%Y-%m-%d %H:%M} UTC: {trial.error}")
        return " ".join(sentences)

    @property
    def _interval(self) -> timedelta:
        return timedelta(hours=self._hours)

    def _is_due(self, last_run: BackupRun | None, now: datetime) -> bool:
        if last_run is not None and last_run.error:
            return now - last_run.at >= min(RETRY, self._interval)
        try:
            stored = self.list()
        except RagError as exc:
            self._keep("backup", BackupRun(at=now, error=exc.message))
            log.error("No backup is made: %s", exc.message)
            return False
        return not stored or now - stored[0].created_at >= self._interval

    def _is_trial_due(self, last_run: BackupRun | None, now: datetime) -> bool:
        if "backup_that_worked" not in self._read():
            return False
        if last_run is not None and last_run.error:
            return now - last_run.at >= 24 * RETRY
        return last_run is None or now - last_run.at >= timedelta(days=TRIAL_DAYS)

    def _now(self, kind: str, work: Callable[[], BackupRun]) -> BackupRun:
        if self._settings.database_url:
            raise SettingsError("DATABASE_URL is set: back up that database by its own means (docs/operations.md).")
        if not self._address:
            raise SettingsError("RAG_BACKUP_TO is not set. Name a folder, or s3://bucket/prefix.")
        with only_one(self._settings.data_dir, LOCK) as is_mine:
            if not is_mine:
                raise SettingsError("Another process is at a backup. Try again when it is done.")
            done = self._attempt(kind, work)
        if done.error:
            raise SettingsError(done.error)
        return done

    def _attempt(self, kind: str, work: Callable[[], BackupRun]) -> BackupRun:
        try:
            done = work()
        except RagError as exc:
            done = BackupRun(at=self._clock(), error=exc.message)
            log.error("The %s failed: %s", kind, exc.message)
        except Exception as exc:
            done = BackupRun(at=self._clock(), error=f"An error of our own ({type(exc).__name__}); the log has it.")
            log.exception("The %s failed", kind)
        else:
            log.info("The %s %s took %.0f s", kind, done.name, done.seconds)
        self._keep(kind, done)
        return done

    def _back_up(self) -> BackupRun:
        began, now = time.monotonic(), self._clock()
        encrypt = _encryption(self._recipients)
        name = f"hr-assistant-{now.strftime(TIME)}Z.tar{'.age' if encrypt is not None else ''}"
        with private_folder(self._settings.data_dir, BACKUP) as folder:
            backed_up = back_up(self._settings, folder / name, encrypt=encrypt)
            self.share_erasures()
            with _storage_errors(self._address):
                self._place().store(folder / name, name)
        self._delete_old(now)
        return BackupRun(
            at=now,
            name=name,
            documents=backed_up.documents,
            files=backed_up.files,
            seconds=round(time.monotonic() - began, 1),
        )

    def _delete_old(self, now: datetime) -> None:
        oldest = now - timedelta(days=self._keep_days)
        with _storage_errors(self._address):
            for backup in self.list()[LEAST_BACKUPS:]:
                if backup.created_at < oldest:
                    self._place().delete(backup.name)

    def _try(self) -> BackupRun:
        began, now = time.monotonic(), self._clock()
        stored = self.list()
        if not stored:
            raise SettingsError("There is no backup to try yet.")
        name = stored[0].name
        identity = Path(self._identity) if self._identity else None
        if name.endswith(".age") and identity is None:
            raise SettingsError(
                "The backups are encrypted, and RAG_BACKUP_IDENTITY does not name the file with their private key. Set "
                "it, or try one on another machine: python -m rag restore FILE --identity KEY."
            )
        with private_folder(self._settings.data_dir, BACKUP) as folder:
            with _storage_errors(self._address):
                self._place().fetch(name, folder / name)
            brought = try_restore(self._settings, folder / name, decrypt=_decryption(identity))
        return BackupRun(
            at=now,
            name=name,
            documents=brought.documents,
            files=brought.files,
            seconds=round(time.monotonic() - began, 1),
        )

    def _place(self) -> Place:
        if self._address.startswith("s3://"):
            return S3Place(self._address, self._settings)
        return FolderPlace(Path(self._address).expanduser())

    def _read(self) -> dict[str, BackupRun]:
        try:
            stored = json.loads((self._settings.data_dir / REPORT).read_text("utf-8"))
            return {
                kind: BackupRun(**{**values, "at": datetime.fromisoformat(values["at"])})
                for kind, values in stored.items()
                if values
            }
        except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):
            return {}

    def _keep(self, kind: str, attempt: BackupRun) -> None:
        runs = {**self._read(), kind: attempt}
        if not attempt.error:
            runs[f"{kind}_that_worked"] = attempt
        values = {name: {**asdict(run), "at": run.at.isoformat()} for name, run in runs.items()}
        with suppress(OSError):  # a full disk is reported elsewhere
            write_private(self._settings.data_dir / REPORT, json.dumps(values, indent=2))
