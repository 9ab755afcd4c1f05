"""An existing Postgres in place of the embedded server, named by its superuser in RAG_TEST_DATABASE_URL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

#: Password of roles which exist for tests only; the server must have no data of value.
PASSWORD = "of-the-tests"


@dataclass(frozen=True)
class PlainServer:
    """How tests connect to a server in its three roles, and the name of the migrated database which they copy."""

    application: str
    owner: str
    superuser: str
    template: str
    #: Seals identities in the migrated database and its copies.
    key: bytes = b""


@contextmanager
def plain_server(superuser: str) -> Iterator[PlainServer]:
    """Create the roles and an empty database with pgvector, as in docs/operations.md; drop them at the end."""
    template = f"rag_tests_{os.getpid()}"
    name = sql.Identifier(template)
    with psycopg.connect(superuser, autocommit=True) as connection:
        for role in ("rag_owner", "rag_app"):
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
                connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
            attributes = sql.SQL("ALTER ROLE {} LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD {}")
            connection.execute(attributes.format(sql.Identifier(role), sql.Literal(PASSWORD)))
        connection.execute("GRANT rag_app TO rag_owner WITH ADMIN OPTION")
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER rag_owner").format(name))
    try:
        with psycopg.connect(superuser, dbname=template, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA extensions AUTHORIZATION rag_owner")
            connection.execute("CREATE EXTENSION vector WITH SCHEMA extensions")
        yield PlainServer(
            application=make_conninfo(superuser, user="rag_app", password=PASSWORD, dbname=template),
            owner=make_conninfo(superuser, user="rag_owner", password=PASSWORD, dbname=template),
            superuser=superuser,
            template=template,
        )
    finally:
        with psycopg.connect(superuser, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
