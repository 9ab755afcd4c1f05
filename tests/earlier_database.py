"""A database with the tables of an earlier version, as the migrations up to it made them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from plain_server import PlainServer
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rag.migrations import MIGRATIONS, migrate


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
        for path in MIGRATIONS.glob("*.sql"):
            if path.stem[:14] <= last:
                shutil.copy(path, folder)
        owner = make_conninfo(server.owner, dbname=name)
        migrate(owner, folder)
        yield owner
    finally:
        with psycopg.connect(server.superuser, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))
