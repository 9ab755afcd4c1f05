"""Share the data folder between processes, write files completely or not at all, and clean up after killed processes.

Locks belong to open files. When a process ends in any way, the kernel releases the process's locks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rag.errors import SettingsError

#: Held shared by every process using the folder, and exclusively while a backup is restored into it.
USE_LOCK = "in-use.lock"
#: Held while the server is created, started or stopped, and while a process begins or ends using the folder.
START_LOCK = "starting.lock"
#: Longest wait for another process to finish starting or stopping the server.
START_SECONDS = 120.0
#: Folders of backups and restores in progress. A complete restore is renamed to `RESTORED` and then moved out.
BACKUP, RESTORE, RESTORED = ".backup-", ".restore-", ".restored"
#: The parts of a restore; `postgres` comes last, because its presence means the database exists.
RESTORED_PARTS = ("erasures.json", "database-passwords.json", "files", "postgres")
#: Postgres needs room for a write-ahead log segment to start.
FULL_BELOW_BYTES = 24 * 2**20


@contextmanager
def starting(folder: Path, *, wait_seconds: float = START_SECONDS) -> Iterator[None]:
    """Hold the data folder's lock inside the `with` block, for starting or stopping the server.

    Raises `SettingsError` after `wait_seconds`.
    """
    lock = _lock(folder / START_LOCK, fcntl.LOCK_EX, wait_seconds)
    if lock is None:
        raise SettingsError(f"Another process has been starting the database in {folder} for long. Try again later.")
    try:
        yield
    finally:
        os.close(lock)


def use(folder: Path) -> tuple[int, bool]:
    """Use the folder together with other processes. Call only within `starting`.

    Returns the lock, and whether no other process uses the folder. The caller must close the lock at the end. Raises
    `SettingsError` while a backup is being restored into the folder.
    """
    lock = _lock(folder / USE_LOCK, fcntl.LOCK_EX, 0)
    if lock is not None:
        fcntl.flock(lock, fcntl.LOCK_SH)
        return lock, True
    lock = _lock(folder / USE_LOCK, fcntl.LOCK_SH, 0)
    if lock is None:
        raise SettingsError(f"A backup is being brought back into {folder}. Start again when that is done.")
    return lock, False


@contextmanager
def used_alone(folder: Path) -> Iterator[None]:
    """Inside the `with` block, keep all other processes out of the folder. Raises `SettingsError` if a process already
    uses it.
    """
    with starting(folder):
        lock = _lock(folder / USE_LOCK, fcntl.LOCK_EX, 0)
    if lock is None:
        raise SettingsError(f"{folder} is in use. Stop the application, or set RAG_DATA_DIR to another folder.")
    try:
        yield
    finally:
        os.close(lock)


@contextmanager
def only_one(folder: Path, name: str) -> Iterator[bool]:
    """Try to become the only process which does the work called `name`. Yield whether this succeeded."""
    lock = _lock(folder / name, fcntl.LOCK_EX, 0)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            os.close(lock)


def leave(lock: int) -> bool:
    """Stop using the folder. Call only within `starting`.

    Returns True if no other process uses the folder. The lock is then still held, and the caller must close it.
    """
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    return True


def _lock(path: Path, kind: int, wait_seconds: float) -> int | None:
    """Lock a file, or return `None` if a different process still has the lock after `wait_seconds`."""
    deadline = time.monotonic() + wait_seconds
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            if time.monotonic() >= deadline:
                return None
            time.sleep(0.05)
            continue
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock
        os.close(lock)  # The file was removed meanwhile and may have been replaced.


# Files


def write_private(path: Path, text: str) -> None:
    """Write a small file which only the owner can read.

    After a kill, the file has either the old or the new content.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write. The file can be read only by the owner, and gets its name when complete.

    Removes leftovers from killed writers. Raises `SettingsError` if `path` exists.
    """
    if path.exists():
        raise SettingsError(f"{path} is there already. Name a file that is not.")
    for leftover in path.parent.glob(f".{_escaped(path.name)}.*.part"):
        lock = os.open(leftover, os.O_RDWR)
        with suppress(BlockingIOError):  # somebody is writing it
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            leftover.unlink(missing_ok=True)
        os.close(lock)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield file
            file.flush()
            os.fsync(descriptor)
            _give_name(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _give_name(partial: Path, path: Path) -> None:
    """Rename a finished file. On file systems which support links, raises `SettingsError` if `path` exists."""
    try:
        os.link(partial, path)
    except FileExistsError as exc:
        raise SettingsError(f"{path} is there already. Name a file that is not.") from exc
    except OSError as exc:
        if exc.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
        partial.rename(path)  # a file system without links


def _escaped(name: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)


@contextmanager
def private_folder(folder: Path, prefix: str) -> Iterator[Path]:
    """Yield a private folder in the data folder, and remove it at the end.

    If the process is killed, `left_folders` finds the folder later.
    """
    with starting(folder):
        created = Path(tempfile.mkdtemp(prefix=prefix, dir=folder))
        lock = os.open(created, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield created
    finally:
        shutil.rmtree(created, ignore_errors=True)
        os.close(lock)


def left_folders(folder: Path) -> list[Path]:
    """Return the folders left by killed backups and restores. Call only within `starting`."""
    leftovers = []
    for path in sorted([*folder.glob(f"{BACKUP}*"), *folder.glob(f"{RESTORE}*")]):
        lock = os.open(path, os.O_RDONLY)
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            leftovers.append(path)
        os.close(lock)
    return leftovers


def move_restored(folder: Path) -> None:
    """Move the parts of a completely restored folder to their final places. Can be repeated after a kill."""
    restored = folder / RESTORED
    if not restored.is_dir():
        return
    for part in RESTORED_PARTS:
        if (restored / part).exists():
            (restored / part).replace(folder / part)
    shutil.rmtree(restored, ignore_errors=True)


def is_full(folder: Path) -> bool:
    """Whether the disk has too little space for the database to work."""
    try:
        return shutil.disk_usage(folder).free < FULL_BELOW_BYTES
    except OSError:
        return False
