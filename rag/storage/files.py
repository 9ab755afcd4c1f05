"""Keep originals on disk, named by their content: a name given by a person never becomes a path."""

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
    """Where the originals of all tenants are kept: a folder, or Supabase Storage."""

    def put(self, tenant_id: str, content: bytes) -> str:
        """Store the content and return its key."""
        ...

    def get(self, tenant_id: str, key: str) -> bytes:
        """Return the content of a key. Raises `NotFound`."""
        ...

    def delete(self, tenant_id: str, key: str) -> None:
        """Remove a file; does nothing when it is gone already."""
        ...

    def keys(self, tenant_id: str) -> list[str]:
        """Return the keys of everything a tenant has stored, in order."""
        ...

    def require_ready(self) -> str:
        """Return where files are kept, in a sentence. Raises `RagError` when none can be stored there now."""
        ...


def storage_key(tenant_id: str, key: str) -> str:
    """Join tenant and key to a path. Raises `InvalidInput` for anything that is not a tenant and a key of ours."""
    if not TENANT.fullmatch(tenant_id) or not KEY.fullmatch(key):
        raise InvalidInput("This is not a stored file.")
    return f"{tenant_id}/{key}"


class FileStore:
    """Files of all tenants in a folder for each tenant."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, tenant_id: str, content: bytes) -> str:
        """Store the content and return its key. The same content has the same key and is stored once.

        Raises `StorageFull`.
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
        """Let nobody but its owner list the folder, in particular not the account that reads untrusted files."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.folder.stat().st_mode & 0o077:
            self.folder.chmod(0o700)

    def get(self, tenant_id: str, key: str) -> bytes:
        """Return the content of a key. Raises `NotFound`."""
        try:
            return self.path(tenant_id, key).read_bytes()
        except FileNotFoundError as exc:
            raise NotFound("The original of this document is no longer stored.") from exc

    def delete(self, tenant_id: str, key: str) -> None:
        """Remove a file; does nothing when it is gone already."""
        self.path(tenant_id, key).unlink(missing_ok=True)

    def keys(self, tenant_id: str) -> list[str]:
        """Return the keys of everything a tenant has stored, in order."""
        folder = self.folder / tenant_id
        if not TENANT.fullmatch(tenant_id) or not folder.is_dir():
            return []
        found = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        return sorted(key for key in found if KEY.fullmatch(key))

    def path(self, tenant_id: str, key: str) -> Path:
        """Return where a key's file lies. Raises `InvalidInput` for anything that is not a tenant and a key of ours."""
        return self.folder / storage_key(tenant_id, key)

    def require_ready(self) -> str:
        """Return where files are kept, in a sentence. Raises `SettingsError` when the folder cannot be written."""
        nearest = next(path for path in (self.folder, *self.folder.parents) if path.exists())
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise SettingsError(f"Originals cannot be written to {self.folder}. Check whose folder it is.")
        return f"In the folder {self.folder}."


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file that gets a name at the end. After a kill nothing is left to delete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except (AttributeError, OSError):  # a system without files that have no name
        _write_and_rename(path, content)
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
        try:
            # With a folder, however little it means here, Python follows the link.
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
