"""Store each company's bot in Microsoft Teams: app registration, client secret, and allowed directories."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import psycopg
from cryptography.fernet import Fernet, InvalidToken

from rag.access.sessions import require_admin, require_recent, token_hash
from rag.errors import InvalidInput, NotFound
from rag.storage.database import Database, queries
from rag.types import Identity, Who

GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MOST_DIRECTORIES, LONGEST_SECRET = 20, 500


@dataclass(frozen=True, kw_only=True)
class TeamsBot:
    """A company's bot in Microsoft Teams."""

    tenant_id: str
    #: The application (client) id from the app registration.
    app_id: str
    #: Directories (tenants in Microsoft Entra ID) with access to the bot; the first has the app registration.
    directories: list[str]
    #: The client secret, encrypted.
    secret: bytes = field(repr=False)
    #: The collection to search; None: each person's default.
    collection_id: UUID | None
    is_active: bool
    created_at: datetime


class TeamsBots:
    """Store and find bots, one for each company. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, who: Who) -> TeamsBot | None:
        """Return the company's bot, or `None`. Raises `NotAllowed`."""
        require_admin(who)
        return self._database.fetch_one(who, "get_teams_bot", TeamsBot)

    def keep(
        self,
        identity: Identity,
        app_id: str,
        directories: Sequence[str],
        secret: str,
        collection_id: UUID | None = None,
    ) -> TeamsBot:
        """Store the company's bot; an empty `secret` keeps the stored secret.

        Raises `NotAllowed`, `SignInAgain`, and `InvalidInput` for an invalid id or secret.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        app_id, secret = app_id.strip().lower(), secret.strip()
        directory_ids = list(dict.fromkeys(directory.strip().lower() for directory in directories if directory.strip()))
        if not GUID.fullmatch(app_id):
            raise InvalidInput(
                "The application (client) id is 32 letters and digits with hyphens, such as "
                "12345678-1234-1234-1234-123456789abc. Copy it from the overview of the app registration."
            )
        if not 1 <= len(directory_ids) <= MOST_DIRECTORIES or not all(
            GUID.fullmatch(directory) for directory in directory_ids
        ):
            raise InvalidInput(
                "Each directory (tenant) id is 32 letters and digits with hyphens. Copy it from the overview of the "
                "app registration."
            )
        stored = self.get(identity)
        if not secret and (stored is None or stored.app_id != app_id):
            raise InvalidInput(
                "The client secret is missing. Make one under Certificates & secrets and copy its value."
            )
        if len(secret) > LONGEST_SECRET or not re.fullmatch(r"[!-~]*", secret):
            raise InvalidInput("This is not a client secret. A client secret is one line of letters, digits and signs.")
        if GUID.fullmatch(secret.lower()):
            raise InvalidInput(
                "This is the id of the client secret. Copy the value instead, from the column beside it."
            )
        try:
            self._database.fetch_value(
                identity,
                "set_teams_bot",
                app_id=app_id,
                key_hash=token_hash(app_id),
                directories=directory_ids,
                secret=self._locker.encrypt(secret.encode()) if secret else b"",
                collection_id=collection_id,
            )
        except psycopg.errors.UniqueViolation:
            raise InvalidInput(
                "Another company on this server already uses this app registration. Make a new "
                "app registration for your company."
            ) from None
        bot = self.get(identity)
        if bot is None:
            raise NotFound
        return bot

    def switch(self, identity: Identity, *, is_active: bool) -> None:
        """Turn the bot on or off. Raises `NotAllowed`, `NotFound`."""
        require_admin(identity)
        if not self._database.execute(identity, "switch_teams_bot", is_active=is_active):
            raise NotFound

    def remove(self, identity: Identity) -> str:
        """Remove the bot and the secret; return a value for `put_back`. Raises `NotAllowed`, `NotFound`."""
        require_admin(identity)
        removed = self._database.fetch_value(identity, "remove_teams_bot")
        if removed is None:
            raise NotFound
        return str(removed)

    def put_back(self, identity: Identity, removed: str) -> None:
        """Restore a removed bot. Raises `NotAllowed`, `InvalidInput`."""
        require_admin(identity)
        self._database.put_back(identity, "put_teams_bot_back", kept=removed)

    # For messages from Teams

    def find(self, app_id: str) -> TeamsBot | None:
        """Return the active bot with this application id, or `None`. Raises `DatabaseUnavailable`."""
        if not GUID.fullmatch(app_id):
            return None
        hashed = token_hash(app_id)
        with self._database.transaction(None, token_hash=hashed) as connection:
            row = connection.execute(queries["tenant_of_teams_bot"], {"key_hash": hashed}).fetchone()
        bot = self._database.fetch_one(row[0], "get_teams_bot", TeamsBot) if row else None
        return bot if bot is not None and bot.is_active and bot.app_id == app_id else None

    def secret_of(self, bot: TeamsBot) -> str:
        """Return the decrypted client secret.

        Raises `InvalidInput` if the key in the data folder, with which the secret was encrypted, has changed.
        """
        try:
            return self._locker.decrypt(bot.secret).decode()
        except InvalidToken as exc:
            raise InvalidInput(
                "The client secret of the bot in Microsoft Teams cannot be read any more. Enter it again on the page "
                "Other programs."
            ) from exc

    @property
    def _locker(self) -> Fernet:
        key = hashlib.sha256(b"teams\x00" + self._database.key).digest()
        return Fernet(base64.urlsafe_b64encode(key))
