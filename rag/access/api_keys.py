"""API keys for programs. The secret is shown once; only its hash is stored.

Each request updates the key's row. The row therefore counts the requests to all processes, and a revoked key is refused
at once.
"""

from __future__ import annotations

import builtins
import re
import secrets
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from rag.access.sessions import require_admin, require_recent, token_hash
from rag.errors import InvalidInput, KeyRejected, NotFound
from rag.language import N_
from rag.storage.database import Database, queries
from rag.types import Identity, Role
from rag.types.fields import one_line

#: Scopes for a key, with the words an administrator sees.
SCOPES = {
    "chat": N_("Ask questions and get answers"),
    "search": N_("Search for passages"),
    "documents:read": N_("List and read documents"),
    "documents:write": N_("Add, change and delete documents"),
    "sync": N_("Sync collections with their sources"),
    "scim": N_("Add, change and deactivate people and groups (SCIM)"),
    "admin": N_("Everything, including settings and details of the service"),
}
READ_SCOPES = frozenset({"chat", "search", "documents:read"})
#: These scopes need an administrator's role; their endpoints check the scope.
WRITE_SCOPES = frozenset({"documents:write", "sync", "admin"})
PREFIX = "rag_"
SECRET = re.compile(r"rag_[A-Za-z0-9_-]{43}")
HINT_CHARACTERS = 8
LONGEST_NAME = 80
#: A key's default validity in days.
LASTS_DAYS = 90
REQUESTS_PER_MINUTE = 120
MOST_REQUESTS_PER_MINUTE = 100_000
MAXIMUM_CACHED_TENANTS = 10_000


def scopes_of(role: Role) -> frozenset[str]:
    """Return the API scopes of a signed-in person with this role, who uses no API key."""
    return frozenset(SCOPES) if role.includes(Role.ADMIN) else READ_SCOPES


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """A row in `api_keys` without the hash."""

    id: UUID
    tenant_id: str
    name: str
    #: The beginning of the secret.
    hint: str
    scopes: list[str]
    requests_per_minute: int
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None
    #: The collection for calls without a collection; `None` means the oldest HR collection with documents.
    default_collection_id: UUID | None = None
    #: The creator's name; empty for the operator.
    owner_name: str = ""
    #: Whether the owner may still have keys: an active administrator, or the operator.
    has_owner: bool = True

    @property
    def is_expired(self) -> bool:
        return self.expires_at <= datetime.now(UTC)

    @property
    def works(self) -> bool:
        return self.revoked_at is None and not self.is_expired and self.has_owner


@dataclass(frozen=True, kw_only=True)
class KeyUse:
    """A recognised key's identity and scopes, and how many requests remain in this minute."""

    identity: Identity
    key_id: UUID
    scopes: frozenset[str]
    limit: int
    #: Requests left in this minute; -1 if this request exceeded the limit.
    remaining: int
    reset_seconds: int

    @property
    def headers(self) -> dict[str, str]:
        """Return the remaining limit as standard headers (IETF draft-ietf-httpapi-ratelimit-headers)."""
        return {
            "RateLimit-Policy": f"{self.limit};w=60",
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(max(self.remaining, 0)),
            "RateLimit-Reset": str(self.reset_seconds),
        }


class ApiKeys:
    """Create, list, revoke and recognise API keys. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        #: A secret's tenant never changes and is cached.
        self._tenants: OrderedDict[str, str] = OrderedDict()

    def create(
        self,
        identity: Identity,
        name: str,
        scopes: Iterable[str],
        expires_at: datetime | None = None,
        *,
        requests_per_minute: int = REQUESTS_PER_MINUTE,
        collection_id: UUID | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key, and return it with its secret, which is never shown again.

        The key expires after 90 days by default. It also stops working when its creator's account is disabled or is no
        longer an administrator. `collection_id` is the collection to ask when a request names no collection; by
        default, this is the oldest HR collection with documents. Raises `NotAllowed`, `SignInAgain`, and `InvalidInput`
        for an invalid argument.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        clean_name = one_line(name)
        if not clean_name:
            raise InvalidInput("A key needs a name, for example the name of the program that will use the key.")
        if len(clean_name) > LONGEST_NAME:
            raise InvalidInput(f"The name of a key has at most {LONGEST_NAME} characters.")
        requested = list(dict.fromkeys(scopes))
        if not requested:
            raise InvalidInput("Choose at least one thing that this key may do.")
        if unknown := [scope for scope in requested if scope not in SCOPES]:
            raise InvalidInput(f"The permission {unknown[0]!r} does not exist. Choose one of: {', '.join(SCOPES)}.")
        if expires_at is not None and expires_at <= datetime.now(UTC):
            raise InvalidInput("The day on which a key expires has to be in the future.")
        if not 1 <= requests_per_minute <= MOST_REQUESTS_PER_MINUTE:
            raise InvalidInput(f"A key may send 1 to {MOST_REQUESTS_PER_MINUTE:,} requests a minute.")
        secret = PREFIX + secrets.token_urlsafe(32)
        key_id = self._database.fetch_value(
            identity,
            "add_api_key",
            name=clean_name,
            secret_hash=token_hash(secret),
            hint=secret[:HINT_CHARACTERS],
            scopes=requested,
            requests_per_minute=requests_per_minute,
            account_id=identity.account_id,
            collection_id=collection_id,
            expires_at=expires_at or datetime.now(UTC) + timedelta(days=LASTS_DAYS),
        )
        return self.list(identity, api_key_id=key_id)[0], secret

    def list(self, identity: Identity, *, api_key_id: UUID | None = None) -> builtins.list[ApiKey]:
        """List the tenant's keys: valid keys first, then the others, each latest first. Raises `NotAllowed`."""
        require_admin(identity)
        return self._database.fetch_all(identity, "list_api_keys", ApiKey, api_key_id=api_key_id)

    def revoke(self, identity: Identity, api_key_id: UUID) -> None:
        """Revoke a key immediately and permanently. Raises `NotAllowed`, `NotFound`."""
        require_admin(identity)
        if not self._database.execute(identity, "revoke_api_key", api_key_id=api_key_id):
            raise NotFound

    def find(self, secret: str) -> KeyUse:
        """Look up a key by its secret and count this request. Raises `KeyRejected`, `DatabaseUnavailable`.

        The caller must refuse the request if `remaining` is below zero.
        """
        if not SECRET.fullmatch(secret):
            raise KeyRejected
        hashed = token_hash(secret)
        tenant_id = self._tenant_of(hashed)
        if tenant_id is None:
            raise KeyRejected
        with (
            self._database.transaction(tenant_id) as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            row = cursor.execute(queries["use_api_key"], {"secret_hash": hashed}).fetchone()
        if row is None:
            raise KeyRejected
        return _use_from(row)

    def _tenant_of(self, hashed: str) -> str | None:
        with self._lock:
            if tenant_id := self._tenants.get(hashed):
                return tenant_id
        with self._database.transaction(None, token_hash=hashed) as connection:
            row = connection.execute(queries["tenant_of_api_key"], {"secret_hash": hashed}).fetchone()
        if row is None:
            return None
        with self._lock:
            self._tenants[hashed] = row[0]
            while len(self._tenants) > MAXIMUM_CACHED_TENANTS:
                self._tenants.popitem(last=False)
        return str(row[0])


def _use_from(row: dict[str, Any]) -> KeyUse:
    scopes = frozenset(row["scopes"])
    return KeyUse(
        identity=Identity(
            account_id=row["id"],
            tenant_id=row["tenant_id"],
            email=f"key:{row['name']}",
            name=row["name"],
            role=Role.ADMIN if scopes & WRITE_SCOPES else Role.EMPLOYEE,
        ),
        key_id=row["id"],
        scopes=scopes,
        limit=row["requests_per_minute"],
        remaining=row["requests_per_minute"] - row["requests"],
        reset_seconds=max(row["reset_seconds"], 1),
    )
