"""Programs connected to people's accounts by OAuth 2.1: they act as the person, within the agreed scopes.

Registering a program stores nothing, because strangers could fill a table. The program's client id contains the
program's description, signed with this database's key.

Codes and tokens are stored as hashes. A code or refresh token works once. A second use shows theft: the program is
disconnected, even if newer tokens have been issued. All a person's programs are disconnected when the person's password
or role changes, and when the person leaves.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

from psycopg.rows import class_row, dict_row

from rag.access.api_keys import KeyUse
from rag.access.limits import Limits
from rag.access.sessions import token_hash
from rag.errors import InvalidInput, KeyRejected, NotAllowed, NotFound, ScopeMissing
from rag.settings import Settings
from rag.storage.database import Database, queries
from rag.types import Identity, Role

PREFIX = "hro_"
SECRET = re.compile(r"hro_[A-Za-z0-9_-]{43}")
#: Scopes a program may have: read-only.
SCOPES = ("chat", "search", "documents:read")
CODE_SECONDS, ACCESS_SECONDS, REFRESH_SECONDS = 60, 3600, 60 * 86400
#: How long the consent page stays valid.
ASK_SECONDS = 900
LONGEST_NAME, MOST_ADDRESSES, LONGEST_ADDRESS = 60, 5, 300
LOOPBACK = ("localhost", "127.0.0.1", "::1")
#: Schemes for programs which do not use a reversed domain such as "com.example.app", the form RFC 8252 asks for. Other
#: words may start a system program: ms-msdt, smb, search-ms.
OWN_SCHEMES = frozenset(
    {
        "claude",
        "cursor",
        "vscode",
        "vscode-insiders",
        "vscodium",
        "windsurf",
        "zed",
        "goose",
        "warp",
        "raycast",
        "lmstudio",
    }
)
Kind = Literal["code", "access", "refresh"]


@dataclass(frozen=True)
class Program:
    """A registered program. `client_id` is its signed description."""

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ConnectedApp:
    """A connection between a person and a program acting for them."""

    id: UUID
    name: str
    host: str
    scopes: list[str]
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A connection found by a code or token: person, program and scopes."""

    id: UUID
    tenant_id: str
    name: str
    scopes: list[str]
    redirect_uri: str
    code_challenge: str
    code_expires_at: datetime
    expires_at: datetime
    client_id: str
    #: The requested path on this server, with everything below; "" for the whole server.
    resource: str
    kind: Kind


class ConnectedApps:
    """Register, connect, recognise and disconnect programs. Thread-safe."""

    def __init__(self, database: Database, settings: Settings, limits: Limits) -> None:
        self._database = database
        self._settings = settings
        self._limits = limits

    # Registering

    def register(self, name: str, redirect_uris: Sequence[str]) -> Program:
        """Create a program with a signed client id. Nothing is stored.

        Raises `InvalidInput` for addresses refused by `check_address`, `NotAllowed` if connected programs are switched
        off.
        """
        self.require_allowed(Role.ADMIN)
        clean_name = (
            " ".join(re.sub(r"[^\w .,&'()+/-]", " ", name).split())[:LONGEST_NAME] or "A program without a name"
        )
        if not 1 <= len(redirect_uris) <= MOST_ADDRESSES:
            raise InvalidInput(f"A program needs at least 1 and at most {MOST_ADDRESSES} addresses.")
        for address in redirect_uris:
            check_address(address)
        return Program(
            self.seal("program", {"n": clean_name, "r": list(redirect_uris)}), clean_name, tuple(redirect_uris)
        )

    def program(self, client_id: str) -> Program | None:
        """Return the program described in a client id; `None` if its signature is not from this database."""
        content = self.unseal("program", client_id)
        return Program(client_id, content["n"], tuple(content["r"])) if content else None

    def seal(self, purpose: str, value: Mapping[str, Any]) -> str:
        """Encode and sign a value. Everybody can read the text, but only this database can create a valid signature."""
        body = _base64(zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 9))
        return f"{body}.{self._signature(purpose, body)}"

    def unseal(self, purpose: str, sealed: str) -> dict[str, Any] | None:
        """Decode a value from `seal`; `None` if the signature is wrong or was made for a different purpose."""
        body, _, signature = sealed.partition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._signature(purpose, body).encode()):
            return None
        content: dict[str, Any] = json.loads(zlib.decompress(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))
        return content

    def _signature(self, purpose: str, body: str) -> str:
        message = f"connected apps: {purpose}: {body}".encode("utf-8", "replace")
        return _base64(hmac.new(self._database.key, message, hashlib.sha256).digest())

    # Connecting

    def require_allowed(self, role: Role) -> None:
        """Raise `NotAllowed` if people with this role may not connect programs (`RAG_CONNECTED_APPS`)."""
        allowed = self._settings.connected_apps
        if allowed == "none" or (allowed == "admins" and not role.includes(Role.ADMIN)):
            who = "Nobody" if allowed == "none" else "Only administrators"
            raise NotAllowed(
                f"{who} may connect programs here. To change this, ask the operator of this installation "
                f"(RAG_CONNECTED_APPS)."
            )

    def connect(
        self,
        identity: Identity,
        program: Program,
        scopes: Sequence[str],
        *,
        redirect_uri: str,
        code_challenge: str,
        resource: str = "",
    ) -> str:
        """Connect a program to this person, and return a code. The program must exchange the code within a minute.

        Raises `NotAllowed`, and `InvalidInput` for unknown scopes.
        """
        self.require_allowed(identity.role)
        granted = [scope for scope in SCOPES if scope in scopes]
        if not granted or set(scopes) - set(SCOPES):
            raise InvalidInput(f"A program can get these permissions: {', '.join(SCOPES)}.")
        code = PREFIX + secrets.token_urlsafe(32)
        with self._database.transaction(identity) as connection:
            connection.execute(queries["drop_expired_apps"], {"account_id": identity.account_id})
            connection.execute(
                queries["connect_app"],
                {
                    "account_id": identity.account_id,
                    "name": program.name,
                    "host": shown_address(redirect_uri),
                    "client_id": program.client_id,
                    "scopes": granted,
                    "resource": resource,
                    "redirect_uri": redirect_uri,
                    "code_challenge": code_challenge,
                    "code_hash": token_hash(code),
                    "code_seconds": CODE_SECONDS,
                },
            )
        return code

    def grant(self, token: str) -> Grant | None:
        """Return the grant for a code or token, even if expired; `None` if the code or token is unknown."""
        if not SECRET.fullmatch(token):
            return None
        hashed = token_hash(token)
        with (
            self._database.transaction(None, token_hash=hashed) as connection,
            connection.cursor(row_factory=class_row(Grant)) as cursor,
        ):
            return cursor.execute(queries["app_of_token"], {"token_hash": hashed}).fetchone()

    def issue(self, grant: Grant, token: str) -> tuple[str, str] | None:
        """Exchange a code or refresh token for new tokens, and return (access token, refresh token).

        Returns `None` if `token` was used before or has expired.
        """
        access, refresh = (PREFIX + secrets.token_urlsafe(32) for _ in range(2))
        issued = self._database.fetch_value(
            grant.tenant_id,
            "issue_app_tokens",
            token_hash=token_hash(token),
            access_hash=token_hash(access),
            refresh_hash=token_hash(refresh),
            access_seconds=ACCESS_SECONDS,
            refresh_seconds=REFRESH_SECONDS,
        )
        return (access, refresh) if issued else None

    def drop_if_used(self, token: str) -> None:
        """Disconnect the program if this code or refresh token was used before, because a second use means theft."""
        if not SECRET.fullmatch(token):
            return
        hashed = token_hash(token)
        with self._database.transaction(None, token_hash=hashed) as connection:
            row = connection.execute(queries["app_of_used_token"], {"token_hash": hashed}).fetchone()
        if row is not None:
            self._database.execute(row[1], "disconnect_app", id=row[0], account_id=None)

    def find(self, secret: str, path: str) -> KeyUse:
        """Look up an access token for a request to `path` and count the request.

        Raises `KeyRejected` for an unknown token or a path outside the token's resource, `ScopeMissing` if the person
        may no longer connect programs, and `TooManyRequests`.
        """
        grant = self.grant(secret)
        if grant is None or grant.kind != "access":
            raise KeyRejected("This access has ended. Connect the program again.")
        hashed = token_hash(secret)
        with (
            self._database.transaction(grant.tenant_id) as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            row = cursor.execute(queries["use_app"], {"token_hash": hashed}).fetchone()
        if row is None:
            raise KeyRejected("This access has ended. Connect the program again.")
        app_id, scopes, resource = row.pop("app_id"), frozenset(row.pop("scopes")), row.pop("resource")
        if not f"{path}/".startswith(f"{resource}/"):
            raise KeyRejected(f"This access is only for {resource}.")
        identity = Identity(**{**row, "role": Role(row["role"])}, session_id="")
        try:
            self.require_allowed(identity.role)
        except NotAllowed as exc:
            raise ScopeMissing(exc.message) from None
        self._limits.count_request(identity)
        # The rights are the person's, limited to reading.
        limit = self._settings.requests_per_minute
        return KeyUse(identity=identity, key_id=app_id, scopes=scopes, limit=limit, remaining=limit, reset_seconds=60)

    def list(self, identity: Identity) -> list[ConnectedApp]:
        """List the programs acting for this person, latest first."""
        return self._database.fetch_all(identity, "apps_of_account", ConnectedApp, account_id=identity.account_id)

    def disconnect(self, identity: Identity, app_id: UUID) -> None:
        """Disconnect this person's program at once. Raises `NotFound`."""
        if not self._database.execute(identity, "disconnect_app", id=app_id, account_id=identity.account_id):
            raise NotFound

    def drop(self, grant: Grant) -> None:
        """Disconnect the program to which this grant belongs."""
        self._database.execute(grant.tenant_id, "disconnect_app", id=grant.id, account_id=None)


def check_address(address: str) -> None:
    """Raise `InvalidInput` for a redirect address to which no code may be sent.

    Allowed are https, http on this machine, and an app's scheme.
    """
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidInput("One of the program's addresses is not valid.") from None
    scheme = parts.scheme.lower()
    is_web = scheme == "https" or (scheme == "http" and host in LOOPBACK)
    is_own = scheme in OWN_SCHEMES or re.fullmatch(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)+", scheme) is not None
    if (
        not ((is_web and host) or is_own)
        or parts.fragment
        or parts.username is not None
        or len(address) > LONGEST_ADDRESS
        or not address.isascii()
        or not address.isprintable()
        or re.search(r"[\s<>\"'\\^`{|}]", address)
    ):
        raise InvalidInput(
            "The address of a program has to begin with https://, with http:// on this machine, or with a scheme of "
            "its own such as com.example.app. It cannot contain “#”."
        )


def shown_address(address: str) -> str:
    """Return the host or the scheme from a redirect address, to show people where the code goes."""
    parts = urlsplit(address)
    return parts.hostname or f"{parts.scheme}:"


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")
