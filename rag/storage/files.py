"""Store original files on disk. Paths are made from a file's content, never from a name given by a person."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Protocol

from rag.errors import InvalidInput, NotFound, SettingsError, StorageFull

TENANT = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
KEY = re.compile(r"[0-9a-f]{2}/[0-9a-f]{64}")


class Originals(Protocol):
    """Storage for all tenants' original files: a folder, or Supabase Storage."""

    def put(self, tenant_id: str, content: bytes) -> str:
        """Store a file's content, and return the key for `get`."""
        ...

    def get(self, tenant_id: str, key: str) -> bytes:
        """Return the content stored under a key. Raises `NotFound`."""
        ...

    def delete(self, tenant_id: str, key: str) -> None:
        """Delete a file. Does nothing if the file is already gone."""
        ...

    def keys(self, tenant_id: str) -> list[str]:
        """Return the keys for all files stored by a tenant, sorted."""
        ...

    def require_ready(self) -> str:
        """Return a description of where files are stored. Raises `RagError` if storing is not possible now."""
        ...


def storage_key(tenant_id: str, key: str) -> str:
    """Join tenant and key to a relative path. Raises `InvalidInput` if either is invalid."""
    if not TENANT.fullmatch(tenant_id) or not KEY.fullmatch(key):
        raise InvalidInput("This is not a stored file.")
    return f"{tenant_id}/{key}"


class FileStore:
    """A folder with a subfolder for each tenant's files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, tenant_id: str, content: bytes) -> str:
        """Store a file's content, and return the key. Raises `StorageFull`.

        Files with equal content have the same key and are stored only once.
        """
        digest = hashlib.sha256(content).hexdigest()
        key = f"{digest[:2]}/{digest}"
        path = self.path(tenant_id, key)
        if path.exists():
            return key
        try:
            self._close_folder()
            _write_whole(path, content)
        except OSError as exc:
            if exc.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise StorageFull from exc
        return key

    def _close_folder(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.folder.stat().st_mode & 0o077:
            self.folder.chmod(0o700)

    def get(self, tenant_id: str, key: str) -> bytes:
        """Return the content stored under a key. Raises `NotFound`."""
        try:
            return self.path(tenant_id, key).read_bytes()
        except FileNotFoundError as exc:
            raise NotFound("The original of this document is no longer stored.") from exc

    def delete(self, tenant_id: str, key: str) -> None:
        """Delete a file. Does nothing if the file is already gone."""
        self.path(tenant_id, key).unlink(missing_ok=True)

    def keys(self, tenant_id: str) -> list[str]:
        """Return the keys for all files stored by a tenant, sorted."""
        folder = self.folder / tenant_id
        if not TENANT.fullmatch(tenant_id) or not folder.is_dir():
            return []
        keys = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        return sorted(key for key in keys if KEY.fullmatch(key))

    def path(self, tenant_id: str, key: str) -> Path:
        """Return the path for a key. Raises `InvalidInput` for an invalid tenant or key."""
        return self.folder / storage_key(tenant_id, key)

    def require_ready(self) -> str:
        """Return a description of where files are stored. Raises `SettingsError` if the folder is not writable."""
        nearest = next(path for path in (self.folder, *self.folder.parents) if path.exists())
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise SettingsError(f"Originals cannot be written to {self.folder}. Check whose folder it is.")
        return f"In the folder {self.folder}."


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file. If the process is killed meanwhile, no partial file is left under `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except (AttributeError, OSError):  # The system lacks unnamed files.
        _write_and_rename(path, content)
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
        try:
            # Python only follows the link when given a folder, although the folder is unused here.
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)
        except FileExistsError:
            return  # the same content, stored meanwhile
        except OSError:
            _write_and_rename(path, content)


def _write_and_rename(path: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
