"""The originals in Supabase Storage: one private bucket, keys of content, read and written by the server only.

Storage takes only ASCII in a key, so what people call a file stays in the database. No signed link is ever made:
whoever has one needs no right any more, and what is handed out cannot be taken back.
"""

from __future__ import annotations

import hashlib
from typing import Any

from storage3.utils import StorageException

from rag.errors import NotFound, ProviderAnswerInvalid, ProviderError, SettingsError
from rag.providers.supabase import UNREADABLE, SupabaseProject, call
from rag.storage.files import KEY, TENANT, storage_key

MISSING = (
    "The original of this document is not in Supabase Storage (bucket {bucket}): somebody removed it there. "
    "Its passages still answer; upload the file again to open its pages."
)
#: Names listed by one call.
PAGE = 1000


class SupabaseFiles:
    """Files of all tenants in one bucket, each tenant's under its own name. Thread-safe."""

    def __init__(self, project: SupabaseProject, bucket: str) -> None:
        self._project = project
        self._bucket = bucket
        self._is_ready = False

    def put(self, tenant_id: str, content: bytes) -> str:
        """Store the content and return its key. The same content has the same key and is stored once."""
        digest = hashlib.sha256(content).hexdigest()
        key = f"{digest[:2]}/{digest}"
        path = storage_key(tenant_id, key)
        self.require_private_bucket()
        call(self._upload, path, content)
        return key

    def get(self, tenant_id: str, key: str) -> bytes:
        """The content of a key. Raises `NotFound`, `ProviderError`."""
        try:
            return bytes(call(self._objects().download, storage_key(tenant_id, key)))
        except NotFound as exc:
            raise NotFound(MISSING.format(bucket=self._bucket)) from exc

    def delete(self, tenant_id: str, key: str) -> None:
        """Remove a file; does nothing when it is gone already. Raises `ProviderError` when it is still there after."""
        path = storage_key(tenant_id, key)
        try:
            removed = call(self._objects().remove, [path])
        except NotFound:  # the whole bucket is gone
            return
        # Nothing removed is said alike of a file that was gone and of one that may not be removed.
        if not removed and call(self._objects().exists, path):
            raise ProviderError("Supabase Storage did not remove a file. It is tried again by itself.")

    def keys(self, tenant_id: str) -> list[str]:
        """The keys of everything a tenant has stored, in order. Raises `ProviderError`."""
        if not TENANT.fullmatch(tenant_id):
            return []
        folders = self._names(tenant_id)
        found = (f"{folder}/{name}" for folder in folders for name in self._names(f"{tenant_id}/{folder}"))
        return sorted(key for key in found if KEY.fullmatch(key))

    def _names(self, folder: str) -> list[str]:
        names: list[str] = []
        while True:
            try:
                page = call(self._page_of_names, folder, len(names))
            except NotFound:  # the whole bucket is gone
                return names
            names += page
            if len(page) < PAGE:
                return names

    def _page_of_names(self, folder: str, offset: int) -> list[str]:
        return [str(item["name"]) for item in self._objects().list(folder, {"limit": PAGE, "offset": offset})]

    def require_ready(self) -> str:
        """Where files are kept, in a sentence. Raises `ProviderError`, `SettingsError`."""
        self.require_private_bucket()
        return f"In Supabase Storage, private bucket {self._bucket}."

    def require_private_bucket(self) -> None:
        """Make the bucket unless it is there. Raises `SettingsError` when strangers could read what is in it."""
        # Without a lock: those who come at once all look, and who makes it second finds it made.
        if self._is_ready:
            return
        bucket = self._find_bucket()
        if bucket is None:
            call(self._create_bucket)
            bucket = self._find_bucket()
        if bucket is None:
            raise ProviderAnswerInvalid(UNREADABLE)
        if bucket.public:
            raise SettingsError(
                f"The bucket {self._bucket} of Supabase Storage is public: anybody could read the originals in it. "
                "Make it private there, or name another in SUPABASE_BUCKET."
            )
        self._is_ready = True

    def _find_bucket(self) -> Any | None:
        try:
            return call(self._project.server.storage.get_bucket, self._bucket)
        except NotFound:
            return None

    def _create_bucket(self) -> None:
        try:
            self._project.server.storage.create_bucket(self._bucket, options={"public": False})
        except StorageException as exc:
            if str(getattr(exc, "status", "")) != "409":  # another process made it at the same moment
                raise

    def _upload(self, path: str, content: bytes) -> None:
        try:
            self._objects().upload(path, content, {"content-type": "application/octet-stream", "upsert": "false"})
        except StorageException as exc:
            if str(getattr(exc, "status", "")) != "409":  # stored already: the key is made of the content
                raise

    def _objects(self) -> Any:
        return self._project.server.storage.from_(self._bucket)
