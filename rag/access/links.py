"""One-time links, stored as hashes: for the first administrator, to set a password, and between the two factors."""

from __future__ import annotations

import secrets
from typing import Literal
from uuid import UUID

from psycopg import Connection

from rag.access.sessions import token_hash
from rag.errors import LinkExpired
from rag.storage.database import Database, queries

Purpose = Literal["first_admin", "set_password", "second_factor"]
#: How long a link of each kind works, in hours.
HOURS: dict[Purpose, int] = {"first_admin": 24, "set_password": 72, "second_factor": 1}


def add_link(connection: Connection, purpose: Purpose, account_id: UUID | None = None) -> str:
    """Make a link and return its token; earlier unused links for the same purpose stop working."""
    token = secrets.token_urlsafe(32)
    parameters = {
        "purpose": purpose,
        "account_id": account_id,
        "token_hash": token_hash(token),
        "hours": HOURS[purpose],
    }
    connection.execute(queries["drop_unused_links"], parameters)
    connection.execute(queries["add_link"], parameters)
    return token


def open_link(database: Database, token: str, purpose: Purpose) -> tuple[str, UUID | None]:
    """Return tenant and account of a link that still works. The link stays valid. Raises `LinkExpired`."""
    parameters = {"token_hash": token_hash(token), "purpose": purpose}
    with database.transaction(None, token_hash=parameters["token_hash"]) as connection:
        found = connection.execute(queries["open_link"], parameters).fetchone()
    if found is None:
        raise LinkExpired
    return found[0], found[1]


def use_link(connection: Connection, token: str, purpose: Purpose) -> None:
    """Use a link up in the transaction of the act it allows. Raises `LinkExpired` when it was used already."""
    if not connection.execute(queries["use_link"], {"token_hash": token_hash(token), "purpose": purpose}).fetchone():
        raise LinkExpired
