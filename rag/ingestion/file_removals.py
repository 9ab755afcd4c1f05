"""Originals that no document needs any more: noted in the transaction that deletes, removed until it works."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from psycopg import Connection

from rag.errors import RagError
from rag.storage.database import Database, queries
from rag.storage.files import Originals

log = logging.getLogger("rag.ingestion")


def request_file_removal(connection: Connection, tenant_id: str, file_paths: Sequence[str]) -> None:
    """Leave word to remove files, within the transaction that deletes their documents."""
    connection.execute(queries["await_file_removal"], {"file_paths": list(file_paths)})
    connection.execute(queries["enqueue_file_removal"], {"tenant_id": tenant_id})


class FileRemovals:
    """Removes what is noted. Thread-safe; the same file may be tried by several processes."""

    def __init__(self, database: Database, files: Originals) -> None:
        self._database = database
        self._files = files

    def run(self, tenant_id: str) -> int:
        """Remove every file that is noted; how many could not be and wait for the next try."""
        with self._database.transaction(tenant_id) as connection:
            waiting = [row[0] for row in connection.execute(queries["waiting_file_removals"]).fetchall()]
        return sum(not self._remove(tenant_id, file_path) for file_path in waiting)

    def _remove(self, tenant_id: str, file_path: str) -> bool:
        parameters = {"file_path": file_path}
        try:
            with self._database.transaction(tenant_id) as connection:
                # An upload of the same content waits here, or has made the file needed again.
                connection.execute(queries["lock_stored_file"], parameters)
                used = connection.execute(queries["file_is_used"], parameters).fetchone()
                if not (used and used[0]):
                    self._files.delete(tenant_id, file_path)
                connection.execute(queries["finish_file_removal"], parameters)
        except (RagError, OSError) as exc:
            log.warning("A file could not be removed and is tried again: %s", exc)
            self._database.execute(tenant_id, "note_file_removal_failed", **parameters, error=str(exc)[:500])
            return False
        return True
