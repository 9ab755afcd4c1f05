"""Manage sessions and single-use links: an opaque token in the browser, its hash in a table, revocable on the server.

Sessions are cached for three seconds, because a page asks for its session many times while loading. Ending a session in
this process removes it from the cache at once and notifies its open connections.

Sensitive actions, for example creating keys and exporting or deleting data, call `require_recent`. It requires a recent
sign-in, because a browser may have been left unattended. API keys, commands and background jobs have no session and are
exempt.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote
from uuid import UUID

from psycopg import Connection
from psycopg.rows import kwargs_row

from rag.access.account_rows import read_account
from rag.access.external import AccountFromElsewhere, SignInElsewhere, note_origin, renew_origin
from rag.errors import AccessError, DatabaseUnavailable, LinkExpired, NotAllowed, ProviderError, SignInAgain
from rag.settings import Settings
from rag.storage.database import Database, queries
from rag.types import Account, Identity, Role, Who

#: The page that asks again.
CONFIRM = "/account/confirm"


def is_recent(database: Database, who: Who) -> bool:
    """Whether a person signed in within `RAG_RECENT_SIGN_IN_MINUTES`. True without a session, as for API keys."""
    minutes = database.recent_sign_in_minutes
    if not isinstance(who, Identity) or not who.session_id or not minutes:
        return True
    where = {"session_id": who.session_id, "account_id": who.account_id, "minutes": minutes}
    return bool(database.fetch_value(who, "is_recent_sign_in", **where))


def require_admin(who: Who) -> None:
    """Raise `NotAllowed` unless a person is an administrator. Background jobs pass."""
    if isinstance(who, Identity) and not who.may(Role.ADMIN):
        raise NotAllowed


def require_recent(database: Database, who: Who) -> None:
    """Raise `SignInAgain` unless the session's sign-in is recent enough for a sensitive action."""
    if not is_recent(database, who):
        raise SignInAgain(link=CONFIRM)


def confirm_address(back_to: str) -> str:
    """Return the address of the page which asks for the password again and then returns to `back_to`."""
    return f"{CONFIRM}?next={quote(back_to, safe='/')}"


CACHE_SECONDS = 3.0
#: Seconds between updates to a session's last use.
NOTED_SECONDS = 60.0
MAXIMUM_CACHED = 10_000
#: The output format of `secrets.token_urlsafe(32)`; other strings need no database query.
TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, kw_only=True)
class OpenSession:
    """A session in the list where a person sees their sign-ins."""

    session_id: str
    user_agent: str
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime


def token_hash(token: str) -> str:
    """Hash a token with SHA-256, as hex. The hash is stored and serves as the session id. It does not give access."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def shown_browser(user_agent: str) -> str:
    """Shorten a browser's user agent to 300 characters for storage."""
    return user_agent.replace("\x00", "")[:300]


class Sessions:
    """Start, find and end sessions. Thread-safe."""

    def __init__(
        self, database: Database, settings: Settings | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._session_days = (settings or Settings()).session_days
        self._idle_minutes = (settings or Settings()).session_idle_minutes
        self._clock = clock
        self._lock = threading.Lock()
        self._cache: OrderedDict[str, tuple[Identity, float]] = OrderedDict()
        self._listeners: list[Callable[[str], None]] = []
        self._elsewhere: SignInElsewhere | None = None
        #: When an act was last noted, by session.
        self._acts: OrderedDict[str, float] = OrderedDict()
        #: Counts removals: a value read before a removal is not cached afterwards.
        self._generation = 0

    def start(self, account: Account, user_agent: str = "") -> str:
        """Start a session and return its token; only the hash is stored. Counts as a recent sign-in."""
        token = secrets.token_urlsafe(32)
        with self._database.transaction(account.tenant_id) as connection:
            connection.execute(queries["drop_expired_sessions"], {"account_id": account.id})
            connection.execute(
                queries["add_session"],
                {
                    "session_id": token_hash(token),
                    "account_id": account.id,
                    "user_agent": shown_browser(user_agent),
                    "days": self._session_days,
                    "proved_at": account.origin.proved_at if isinstance(account, AccountFromElsewhere) else None,
                },
            )
            connection.execute(queries["note_signed_in"], {"account_id": account.id})
            came_in = {"account_id": account.id, "action": "sign-in succeeded", "target": shown_browser(user_agent)}
            connection.execute(queries["note_sign_in"], came_in)
            if isinstance(account, AccountFromElsewhere):
                note_origin(connection, token_hash(token), account.origin)
        return token

    def find(self, token: str) -> Identity | None:
        """Return the identity for a session token; `None` if the session is over, or the account is disabled."""
        return self.find_by_id(token_hash(token)) if TOKEN.fullmatch(token) else None

    def ended_idle(self, token: str) -> bool:
        """Whether the session with this token ended because of inactivity."""
        if not self._idle_minutes or not TOKEN.fullmatch(token):
            return False
        session_id = token_hash(token)
        with self._database.transaction(None, token_hash=session_id) as connection:
            where = {"session_id": session_id, "idle_minutes": 0}
            is_stored = connection.execute(queries["tenant_of_session"], where).fetchone() is not None
        return is_stored and self._tenant_of(session_id) is None

    def find_cached(self, session_id: str) -> Identity | None:
        """Return the identity from the cache, without asking the database.

        Returns `None` if the session was not read within the last three seconds.
        """
        with self._lock:
            identity, until = self._cache.get(session_id, (None, 0.0))
            return identity if self._clock() < until else None

    def find_by_id(self, session_id: str, *, is_act: bool = True, is_fresh: bool = False) -> Identity | None:
        """Return the identity for a session id, like `find`.

        A page's regular checks use `is_act=False`, which reads the session without prolonging it. `is_fresh` bypasses
        the cache, because another process may have changed the person's rights.
        """
        if not is_fresh and (identity := self.find_cached(session_id)):
            return identity
        if not re.fullmatch("[0-9a-f]{64}", session_id):
            return None
        generation = self._generation
        identity = self._read(session_id, is_act=is_act)
        with self._lock:
            self._cache.pop(session_id, None)
            if identity and generation == self._generation:
                self._cache[session_id] = (identity, self._clock() + CACHE_SECONDS)
                while len(self._cache) > MAXIMUM_CACHED:
                    self._cache.popitem(last=False)
        return identity

    def has_rights_still(self, identity: Identity) -> bool:
        """Whether a session is still open and its person has the same role.

        If not, the session's connections are closed. If the database does not answer, the result is True, because the
        next query reports the failure.
        """
        try:
            current = self.find_by_id(identity.session_id, is_fresh=True)
        except DatabaseUnavailable:
            return True
        if current is None or current.role != identity.role:
            self.forget([identity.session_id])
            return False
        return True

    def is_act_to_note(self, session_id: str) -> bool:
        """Whether to store a person's action in this session now: at most once a minute. Asks no database."""
        now = self._clock()
        with self._lock:
            if now < self._acts.get(session_id, -NOTED_SECONDS) + NOTED_SECONDS:
                return False
            self._acts.pop(session_id, None)
            self._acts[session_id] = now
            while len(self._acts) > MAXIMUM_CACHED:
                self._acts.popitem(last=False)
            return True

    def note_act(self, session_id: str) -> None:
        """Store the time of a person's action in a session, which prolongs the session. Database errors are ignored."""
        with suppress(DatabaseUnavailable):
            if tenant_id := self._tenant_of(session_id):
                where = {"session_id": session_id, "idle_minutes": self._idle_minutes}
                self._database.execute(tenant_id, "note_act", **where)

    def prove(self, identity: Identity) -> None:
        """Record that the person has just confirmed their sign-in, which permits sensitive actions for a while."""
        with self._database.transaction(identity) as connection:
            where = {"session_id": identity.session_id, "account_id": identity.account_id}
            if connection.execute(queries["prove_session"], where).rowcount:
                noted = {"account_id": identity.account_id, "action": "sign-in confirmed", "target": ""}
                connection.execute(queries["note_sign_in"], noted)

    def set_language(self, tenant_id: str, account_id: UUID, language: str) -> None:
        """Store the language in which a person reads the interface."""
        with self._database.transaction(tenant_id) as connection:
            connection.execute(queries["set_language"], {"account_id": account_id, "language": language})
            rows = connection.execute(queries["session_ids_of_account"], {"account_id": account_id}).fetchall()
        self.refresh(session_id for (session_id,) in rows)

    def is_recent(self, identity: Identity) -> bool:
        """Whether this session's sign-in is recent enough for sensitive actions."""
        return is_recent(self._database, identity)

    def began_at(self, identity: Identity, issuer: str) -> bool:
        """Whether this session began with a sign-in at `issuer`, a service's address."""
        stored_issuer = self._database.fetch_value(identity, "issuer_of_session", session_id=identity.session_id)
        return bool(issuer) and stored_issuer == issuer

    def end(self, token: str) -> None:
        """End the token's session, if there is one."""
        session_id = token_hash(token)
        secret = None
        if tenant_id := self._tenant_of(session_id):
            if self._elsewhere is not None:
                secret = self._database.fetch_value(tenant_id, "session_secret", session_id=session_id)
            self._database.execute(tenant_id, "end_session", session_id=session_id)
        self.forget([session_id])
        if self._elsewhere is not None and secret is not None:
            self._elsewhere.sign_out(bytes(secret))

    def end_one(self, identity: Identity, account_id: UUID, session_id: str) -> None:
        """End a session of this person. Administrators may end the sessions of any account. Raises `NotAllowed`.

        Does nothing if the session has already ended.
        """
        if account_id != identity.account_id and not identity.may(Role.ADMIN):
            raise NotAllowed
        if re.fullmatch("[0-9a-f]{64}", session_id):
            self._database.execute(identity, "end_session_of_account", session_id=session_id, account_id=account_id)
            self.forget([session_id])

    def end_all(self, tenant_id: str, account_id: UUID, *, except_session_id: str = "") -> int:
        """End an account's sessions except `except_session_id`, if given, and return the number of ended sessions."""
        parameters = {"account_id": account_id, "except_session_id": except_session_id}
        with self._database.transaction(tenant_id) as connection:
            ended = [row[0] for row in connection.execute(queries["end_sessions_of_account"], parameters)]
        self.forget(ended)
        return len(ended)

    def end_of_origin(self, origin_hash: str) -> int:
        """End all sessions with this `origin_hash`, in all tenants, and return their number."""
        with self._database.transaction(None, token_hash=origin_hash) as connection:
            rows = connection.execute(queries["tenants_of_origin"], {"origin_hash": origin_hash}).fetchall()
        ended = []
        for (tenant_id,) in rows:
            with self._database.transaction(tenant_id) as connection:
                named = connection.execute(queries["end_sessions_of_origin"], {"origin_hash": origin_hash})
                ended += [row[0] for row in named.fetchall()]
        self.forget(ended)
        return len(ended)

    def ask_elsewhere(self, service: SignInElsewhere) -> None:
        """Register the service where people sign in.

        The service is regularly asked whether a sign-in is still valid, and is notified when a person signs out.
        """
        self._elsewhere = service

    def list(self, identity: Identity, account_id: UUID | None = None) -> list[OpenSession]:
        """List a person's open sessions, latest first. An administrator may list the sessions of any account.

        Raises `NotAllowed`.
        """
        if account_id not in (None, identity.account_id) and not identity.may(Role.ADMIN):
            raise NotAllowed
        return self._database.fetch_all(
            identity,
            "sessions_of_account",
            OpenSession,
            account_id=account_id or identity.account_id,
            idle_minutes=self._idle_minutes,
        )

    def refresh(self, session_ids: Iterable[str]) -> None:
        """Remove sessions from the cache after an account change. Call this after the commit."""
        with self._lock:
            self._generation += 1
            for session_id in session_ids:
                self._cache.pop(session_id, None)

    def forget(self, session_ids: Iterable[str]) -> None:
        """Remove sessions which have ended or lost rights from the cache, and close their open connections."""
        session_ids = tuple(session_ids)
        self.refresh(session_ids)
        with self._lock:
            listeners = tuple(self._listeners)
        for session_id in session_ids:
            for listener in listeners:
                listener(session_id)

    def on_end(self, listener: Callable[[str], None]) -> None:
        """Register a function to call with the id of each session ended in this process.

        The function runs in the thread which ends the session.
        """
        with self._lock:
            self._listeners.append(listener)

    def _read(self, session_id: str, *, is_act: bool) -> Identity | None:
        tenant_id = self._tenant_of(session_id)
        if tenant_id is None or not self._is_still_signed_in(tenant_id, session_id):
            return None
        with (
            self._database.transaction(tenant_id) as connection,
            connection.cursor(row_factory=kwargs_row(_identity)) as cursor,
        ):
            return cursor.execute(
                queries["identity_of_session"], {"session_id": session_id, "is_act": is_act}
            ).fetchone()

    def _is_still_signed_in(self, tenant_id: str, session_id: str) -> bool:
        """If a check is due, ask the external sign-in service whether the person is still signed in.

        If the person is not, the session is ended. Returns True if no check is due or the service does not answer.
        """
        if self._elsewhere is None:
            return True
        secret = self._database.fetch_value(tenant_id, "claim_session_check", session_id=session_id)
        if secret is None:
            return True
        try:
            account = self._elsewhere.renew(bytes(secret))
        except AccessError:
            self._database.execute(tenant_id, "end_session", session_id=session_id)
            self.forget([session_id])
            return False
        except (ProviderError, DatabaseUnavailable):
            return True
        with self._database.transaction(tenant_id) as connection:
            renew_origin(connection, session_id, account.origin)
        return True

    def _tenant_of(self, session_id: str) -> str | None:
        with self._database.transaction(None, token_hash=session_id) as connection:
            where = {"session_id": session_id, "idle_minutes": self._idle_minutes}
            row = connection.execute(queries["tenant_of_session"], where).fetchone()
            return row[0] if row else None


def _identity(*, role: str, **values: Any) -> Identity:
    return Identity(role=Role(role), **values)


#: Purposes for a single-use link: the first administrator, a new password, the step between two factors.
Purpose = Literal["first_admin", "set_password", "second_factor"]
#: Validity in hours, by purpose.
HOURS: dict[Purpose, int] = {"first_admin": 24, "set_password": 72, "second_factor": 1}


def add_link(connection: Connection, purpose: Purpose, account_id: UUID | None = None) -> str:
    """Create a single-use link and return its token. Earlier unused links for the same purpose become invalid."""
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
    """Return tenant and account id for a valid link, without using up the link. Raises `LinkExpired`."""
    parameters = {"token_hash": token_hash(token), "purpose": purpose}
    with database.transaction(None, token_hash=parameters["token_hash"]) as connection:
        row = connection.execute(queries["open_link"], parameters).fetchone()
    if row is None:
        raise LinkExpired
    return row[0], row[1]


def account_of_link(database: Database, token: str, purpose: Purpose) -> Account:
    """Return the active account for a valid link, without using up the link. Raises `LinkExpired`."""
    tenant_id, account_id = open_link(database, token, purpose)
    with database.transaction(tenant_id) as connection:
        account = read_account(connection, "account", account_id=account_id)
    if account is None or not account.is_active:
        raise LinkExpired
    return account


def use_link(connection: Connection, token: str, purpose: Purpose) -> None:
    """Mark a link as used, in the transaction of the action which it permits. Raises `LinkExpired` for a used link."""
    if not connection.execute(queries["use_link"], {"token_hash": token_hash(token), "purpose": purpose}).fetchone():
        raise LinkExpired
