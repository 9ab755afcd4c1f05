"""A database of its own for a benchmark."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import start_server
from rag.storage.migrations import migrate


@contextmanager
def temporary_database(name: str) -> Iterator[Database]:
    """Start Postgres in a temporary folder and open the application's database; both end with the block."""
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        server = start_server(Path(folder))
        try:
            migrate(server.owner)
            database = Database(server.application, sealing_key(server.owner))
            database.open()
            try:
                yield database
            finally:
                database.close()
        finally:
            server.stop()
