"""The rows of accounts, within the caller's transaction: who is there, what changes, and which sessions end with it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg.rows import kwargs_row

from rag.errors import InvalidInput, LinkExpired
from rag.storage.database import queries
from rag.types import Account, Role


def set_password(
    connection: Connection, account_id: UUID, password_hash: str, *, keep_session_id: str = ""
) -> tuple[Account, list[str]]:
    """Store a password, end the account's other sessions and void links made before; the account and who ended."""
    account = read_account(connection, "set_password", account_id=account_id, password_hash=password_hash)
    if account is None:
        raise LinkExpired
    connection.execute(queries["drop_unused_links"], {"purpose": "set_password", "account_id": account_id})
    connection.execute(queries["forget_browsers"], {"account_id": account_id})
    return account, end_sessions(connection, account_id, keep_session_id)


def end_sessions(connection: Connection, account_id: UUID, except_session_id: str = "") -> list[str]:
    """End an account's sessions but one; the ids of those that ended."""
    parameters = {"account_id": account_id, "except_session_id": except_session_id}
    return [row[0] for row in connection.execute(queries["end_sessions_of_account"], parameters)]


def add_account(connection: Connection, **values: Any) -> Account:
    """Add an account of the transaction's tenant. Raises `InvalidInput` when its address is taken."""
    try:
        account = read_account(connection, "add_account", **values)
    except (psycopg.errors.UniqueViolation, psycopg.errors.CheckViolation) as exc:
        raise InvalidInput("This e-mail address cannot be used: there is an account with it already.") from exc
    assert account is not None  # noqa: S101 - INSERT … RETURNING returns its row
    return account


def read_account(connection: Connection, statement: str, /, **parameters: Any) -> Account | None:
    """The account that a named statement returns; None when there is none."""
    with connection.cursor(row_factory=kwargs_row(account_from)) as cursor:
        return cursor.execute(queries[statement], parameters).fetchone()


def account_from(*, role: str, **values: Any) -> Account:
    """A row of `accounts` as a value."""
    return Account(role=Role(role), **values)


def read_value(connection: Connection, name: str) -> Any:
    """The single value of a named statement."""
    found = connection.execute(queries[name]).fetchone()
    return found[0] if found else None
