"""Validate typed account fields, and read and write account rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg.rows import kwargs_row

from rag.errors import InvalidInput, LinkExpired
from rag.storage.database import queries
from rag.types import Account, Role

MAXIMUM_EMAIL_CHARACTERS = 254  # RFC 5321, 4.5.3.1.3
MAXIMUM_NAME_CHARACTERS = 120
EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+")


def is_email(text: str) -> bool:
    """Whether a text has the form of an e-mail address. The mailbox need not exist."""
    return len(text) <= MAXIMUM_EMAIL_CHARACTERS and EMAIL.fullmatch(text) is not None


def normal_email(text: str) -> str:
    """Return the address in lower case. Raises `InvalidInput` for an invalid address."""
    address = text.strip().lower()
    if not is_email(address):
        raise InvalidInput("Enter an e-mail address, such as name@example.com.")
    return address


def normal_domain(text: str) -> str:
    """Return the domain after the @, in lower case. Raises `InvalidInput` for an invalid domain."""
    domain = text.strip().lower().removeprefix("@")
    if not is_email(f"name@{domain}"):
        raise InvalidInput(f"{text!r} is not a domain of e-mail addresses. Write it like example.com.")
    return domain


def require_domain(address: str, domains: Sequence[str]) -> None:
    """Raise `InvalidInput` unless the address's domain is in `domains`. An empty list allows every address."""
    if domains and address.rpartition("@")[2] not in domains:
        raise InvalidInput(f"Your company's people have addresses at {', '.join(domains)}. Use one of those.")


def normal_name(text: str) -> str:
    """Return the name without stray spaces and control characters. Raises `InvalidInput` if it is empty or too long."""
    name = _one_line(text)
    if not name:
        raise InvalidInput("Enter a name.")
    if len(name) > MAXIMUM_NAME_CHARACTERS:
        raise InvalidInput(f"Enter a name of at most {MAXIMUM_NAME_CHARACTERS} characters.")
    return name


def normal_group(text: str) -> str:
    """Return the user group, possibly empty. Raises `InvalidInput` if it is too long."""
    group = _one_line(text)
    if len(group) > MAXIMUM_NAME_CHARACTERS:
        raise InvalidInput(f"Enter a group name with at most {MAXIMUM_NAME_CHARACTERS} characters.")
    return group


def role_from(text: Role | str) -> Role:
    """Return the role with this name. Raises `InvalidInput` listing the roles."""
    try:
        return Role(text)
    except ValueError:
        raise InvalidInput(f"There is no role {text!r}; choose one of {', '.join(Role)}.") from None


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def set_password(
    connection: Connection, account_id: UUID, password_hash: str, *, keep_session_id: str = ""
) -> tuple[Account, list[str]]:
    """Store a password, and end the account's sessions except `keep_session_id`.

    Earlier password links become invalid, and connected programs are disconnected. Returns the account and the ids of
    the ended sessions. Raises `LinkExpired` if the account is missing.
    """
    account = read_account(connection, "set_password", account_id=account_id, password_hash=password_hash)
    if account is None:
        raise LinkExpired
    connection.execute(queries["drop_unused_links"], {"purpose": "set_password", "account_id": account_id})
    connection.execute(queries["forget_browsers"], {"account_id": account_id})
    connection.execute(queries["disconnect_apps_of_account"], {"account_id": account_id})
    return account, end_sessions(connection, account_id, keep_session_id)


def end_sessions(connection: Connection, account_id: UUID, except_session_id: str = "") -> list[str]:
    """End an account's sessions except `except_session_id`, and return the ids of the ended sessions."""
    parameters = {"account_id": account_id, "except_session_id": except_session_id}
    return [row[0] for row in connection.execute(queries["end_sessions_of_account"], parameters)]


def add_account(connection: Connection, **values: Any) -> Account:
    """Add an account to the transaction's tenant, and return it. Raises `InvalidInput` if the address is taken."""
    try:
        account = read_account(connection, "add_account", **values)
    except (psycopg.errors.UniqueViolation, psycopg.errors.CheckViolation) as exc:
        raise InvalidInput("This e-mail address cannot be used: there is an account with it already.") from exc
    assert account is not None  # noqa: S101 - INSERT … RETURNING returns its row
    return account


def read_account(connection: Connection, statement: str, /, **parameters: Any) -> Account | None:
    """Run a named statement which selects an account. Return the account, or `None` if no row is found."""
    with connection.cursor(row_factory=kwargs_row(account_from)) as cursor:
        return cursor.execute(queries[statement], parameters).fetchone()


def account_from(*, role: str, **values: Any) -> Account:
    return Account(role=Role(role), **values)


def read_value(connection: Connection, name: str) -> Any:
    """Run a named statement and return the first column of the first row, or `None` if no row is found."""
    row = connection.execute(queries[name]).fetchone()
    return row[0] if row else None
