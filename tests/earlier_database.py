"""A database as the migrations of an earlier version made it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag.storage.migrations import migrate
from tests.standins.plain_server import PlainServer

#: The migrations that the baseline replaced.
EARLIER_MIGRATIONS = Path(__file__).with_name("earlier_migrations")
numbers = count()


@contextmanager
def earlier_database(server: PlainServer, folder: Path = EARLIER_MIGRATIONS) -> Iterator[str]:
    """The owner's address of a database with the migrations in `folder`."""
    name = f"{server.template}_earlier_{next(numbers)}"
    identifier = sql.Identifier(name)
    with psycopg.connect(server.superuser, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER rag_owner").format(identifier))
    try:
        with psycopg.connect(server.superuser, dbname=name, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA extensions AUTHORIZATION rag_owner")
            connection.execute("CREATE EXTENSION vector SCHEMA extensions")
        owner = make_conninfo(server.owner, dbname=name)
        migrate(owner, folder)
        yield owner
    finally:
        with psycopg.connect(server.superuser, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))


def as_superuser(server: PlainServer, owner: str) -> str:
    """The superuser's address of the database that `owner` is an address of."""
    return make_conninfo(server.superuser, dbname=str(conninfo_to_dict(owner)["dbname"]))
