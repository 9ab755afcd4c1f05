"""A database with the tables of an earlier version, as the migrations up to it made them."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
from pgvector import SparseVector
from psycopg import Connection, sql
from psycopg.conninfo import make_conninfo

from rag.retrieval.bm25.index import term_id
from rag.storage.migrations import migrate
from tests.standins.plain_server import PlainServer

#: The migrations that the baseline replaced.
EARLIER_MIGRATIONS = Path(__file__).with_name("earlier_migrations")


@contextmanager
def earlier_database(server: PlainServer, last: str, folder: Path) -> Iterator[str]:
    """The owner's address; `last` is the number of the last migration that version had, `folder` an empty one."""
    name = f"{server.template}_earlier_{last}"
    identifier = sql.Identifier(name)
    with psycopg.connect(server.superuser, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(identifier))
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER rag_owner").format(identifier))
    try:
        with psycopg.connect(server.superuser, dbname=name, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA extensions AUTHORIZATION rag_owner")
            connection.execute("CREATE EXTENSION vector SCHEMA extensions")
        copy_migrations(last, folder)
        owner = make_conninfo(server.owner, dbname=name)
        migrate(owner, folder)
        yield owner
    finally:
        with psycopg.connect(server.superuser, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))


def copy_migrations(last: str, folder: Path) -> None:
    """Copy the earlier migrations up to the one numbered `last`."""
    for path in EARLIER_MIGRATIONS.glob("*.sql"):
        if path.stem[:14] <= last:
            shutil.copy(path, folder)


def upgrade(owner: str) -> list[str]:
    """Apply the rest of the earlier migrations, as the version before the baseline did, then the present ones."""
    return migrate(owner, EARLIER_MIGRATIONS) + migrate(owner)


def index_as_before(connection: Connection, chunk: Sequence[object], terms: Sequence[str], average: float) -> None:
    """A row of `chunk_keywords` as versions before packed postings wrote it; pgvector has to be registered.

    `chunk` is its id, tenant, collection and document; `average` the average length on that day.
    """
    norm = 1.5 * (0.25 + 0.75 * len(terms) / average)
    weights = {term_id(t) - 1: n * 2.5 / (n + norm) for t, n in Counter(terms).items()}
    connection.execute(
        "INSERT INTO chunk_keywords (chunk_id, tenant_id, collection_id, document_id, language, length, "
        "average_length, weights) VALUES (%s, %s, %s, %s, 'en', %s, %s, %s)",
        (*chunk, len(terms), average, SparseVector(weights, 1_000_000_000)),
    )
