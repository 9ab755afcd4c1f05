"""A second factor after the password: authenticator app codes, and single-use recovery codes.

Secrets are encrypted, and recovery codes hashed, with a key hidden from the application's database role. Each attempt
is counted as wrong before its code is checked. No code works twice.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import UUID

from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.access.limits import Attempts, Browser, Waiting, next_attempt, too_early
from rag.access.sessions import (
    TOKEN,
    account_of_link,
    add_link,
    require_admin,
    require_recent,
    token_hash,
    use_link,
)
from rag.errors import NotAllowed, WrongPassword
from rag.storage.database import Database, queries
from rag.types import Account, Identity, Role

#: The name shown in an authenticator app.
ISSUER = "HR Assistant"
STEP_SECONDS, DIGITS, SECRET_BYTES = 30, 6, 20
RECOVERY_CODES = 10
WRONG_CODE = "This code is not right. Codes change every half minute, and each code works only once."
#: Letters and digits which are not easily confused.
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


@dataclass(frozen=True, kw_only=True)
class FactorState:
    """Whether an account uses a second factor, and whether its role needs one."""

    is_on: bool
    is_required: bool

    @property
    def is_enough_without(self) -> bool:
        return not self.is_on and not self.is_required


@dataclass(frozen=True, kw_only=True)
class NewSecret:
    """A new secret for an authenticator app: as text to type, and as an address to scan."""

    secret: str = field(repr=False)
    address: str = field(repr=False)


class SecondFactors:
    """Set up, check and remove second factors. Thread-safe."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def state(self, tenant_id: str, account_id: UUID) -> FactorState:
        with self._database.transaction(tenant_id) as connection:
            row = connection.execute(queries["second_factor_state"], {"account_id": account_id}).fetchone()
        return FactorState(is_on=bool(row and row[0]), is_required=bool(row and row[1]))

    # Between the password and the session

    def begin(self, account: Account) -> str:
        """Create a token which proves a correct password until the second factor is checked. Valid for an hour."""
        with self._database.transaction(account.tenant_id) as connection:
            return add_link(connection, "second_factor", account.id)

    def account_of(self, token: str) -> Account:
        """Return the account for a token from `begin`, without using up the token. Raises `LinkExpired`."""
        return account_of_link(self._database, token, "second_factor")

    def finish(self, account: Account, token: str) -> None:
        """Use up a token from `begin`. Raises `LinkExpired` if another request has used it."""
        with self._database.transaction(account.tenant_id) as connection:
            use_link(connection, token, "second_factor")

    # Codes

    def new_secret(self, identity: Identity) -> NewSecret:
        """Return the secret for a new second factor.

        Repeated calls return the same secret until the second factor is confirmed. Raises `NotAllowed` if a second
        factor is active.
        """
        new_secret = base64.b32encode(secrets.token_bytes(SECRET_BYTES))
        parameters = {"account_id": identity.account_id, "secret": self._locker.encrypt(new_secret)}
        with self._database.transaction(identity) as connection:
            connection.execute(queries["begin_second_factor"], parameters)
            row = connection.execute(queries["lock_second_factor"], parameters).fetchone()
        if row is None or row[1]:
            raise NotAllowed("A second factor is in use already. Turn it off first.")
        secret = self._locker.decrypt(bytes(row[0])).decode()
        issuer = quote(ISSUER)
        address = f"otpauth://totp/{issuer}:{quote(identity.email)}?secret={secret}&issuer={issuer}"
        return NewSecret(secret=secret, address=address)

    def confirm(self, identity: Identity, code: str, browser: Browser | None = None) -> list[str]:
        """Turn the second factor on and return the recovery codes, never shown again.

        Raises the same errors as `check`.
        """
        self.check(identity.tenant_id, identity.account_id, code, browser, is_first=True)
        with self._database.transaction(identity) as connection:
            if not connection.execute(queries["confirm_second_factor"], {"account_id": identity.account_id}).rowcount:
                raise NotAllowed("A second factor is in use already.")
            return self._make_recovery_codes(connection, identity.account_id)

    def new_recovery_codes(self, identity: Identity, code: str, browser: Browser | None = None) -> list[str]:
        """Create ten new recovery codes; earlier codes stop working. Raises the same errors as `check`."""
        self.check(identity.tenant_id, identity.account_id, code, browser)
        with self._database.transaction(identity) as connection:
            return self._make_recovery_codes(connection, identity.account_id)

    def recovery_codes_left(self, identity: Identity) -> int:
        return int(self._database.fetch_value(identity, "count_recovery_codes", account_id=identity.account_id))

    def check(
        self, tenant_id: str, account_id: UUID, code: str, browser: Browser | None = None, *, is_first: bool = False
    ) -> None:
        """Check a code from the app, or a recovery code.

        With `is_first`, which confirms a new secret, only a code from the app is accepted. Wrong codes delay further
        attempts like wrong passwords. Browsers in which the account has signed in before have a separate count: a
        stranger who knows the password cannot lock the owner out. Raises `WrongPassword`, or `TooManyAttempts` with the
        seconds to wait.
        """
        typed = "".join(code.split()).replace("-", "").lower()
        now = self._clock()
        account: dict[str, Any] = {"account_id": account_id, "browser": ""}
        with self._database.transaction(tenant_id) as connection:
            row = connection.execute(queries["lock_second_factor"], account).fetchone()
            if row is None or bool(row[1]) is is_first:
                raise WrongPassword(WRONG_CODE)
            sealed, last_step = row[0], row[2]
            if browser is not None and TOKEN.fullmatch(browser.known_token):
                account["browser"] = token_hash(browser.known_token)
            wait_seconds = _count(connection, account, row, browser or Browser(), now)
        if wait_seconds:
            raise too_early(wait_seconds)
        step = self._step_of(self._locker.decrypt(bytes(sealed)).decode(), typed, now)
        with self._database.transaction(tenant_id) as connection:
            if step is None and not is_first:
                used = {**account, "code_hash": self._hash(typed)}
                is_right = connection.execute(queries["use_recovery_code"], used).fetchone() is not None
            else:
                # Read again: the same code may have been sent twice concurrently.
                row = connection.execute(queries["lock_second_factor"], account).fetchone()
                is_right = row is not None and step is not None and step > max(row[2], last_step)
            if is_right:
                connection.execute(queries["accept_code"], {**account, "step": step or 0})
        if not is_right:
            raise WrongPassword(WRONG_CODE)

    def turn_off(self, identity: Identity, code: str, browser: Browser | None = None) -> None:
        """Turn the second factor off. Raises the same errors as `check`, and `NotAllowed` if the role needs it."""
        if self.state(identity.tenant_id, identity.account_id).is_required:
            raise NotAllowed(
                "Your role needs a second factor here. An administrator can change this rule on the page People."
            )
        self.check(identity.tenant_id, identity.account_id, code, browser)
        self._drop(identity, identity.account_id)

    # What administrators do

    def enrolled(self, identity: Identity) -> frozenset[UUID]:
        """Return the ids of the tenant's accounts with a second factor. Raises `NotAllowed`."""
        require_admin(identity)
        with self._database.transaction(identity) as connection:
            return frozenset(row[0] for row in connection.execute(queries["second_factors"]))

    def required_roles(self, identity: Identity) -> frozenset[Role]:
        """Return the roles for which a second factor is mandatory. Raises `NotAllowed`."""
        require_admin(identity)
        roles = self._database.fetch_value(identity, "second_factor_roles") or []
        return frozenset(Role(role) for role in roles)

    def require_for(self, identity: Identity, roles: Iterable[Role]) -> None:
        """Make a second factor mandatory for these roles, from each person's next sign-in.

        Raises `NotAllowed`, `SignInAgain`.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        role_names = Jsonb(sorted(role.value for role in set(roles)))
        self._database.execute(identity, "require_second_factor", roles=role_names)

    def remove(self, identity: Identity, account_id: UUID) -> None:
        """Remove another person's second factor, for an administrator.

        Raises `SignInAgain`, and `NotAllowed` for non-administrators and for one's own account.
        """
        require_admin(identity)
        if account_id == identity.account_id:
            raise NotAllowed(
                "You cannot do this to your own account here. Turn the second factor off on the page “Your account”."
            )
        require_recent(self._database, identity)
        self._drop(identity, account_id)

    # Inside

    @property
    def _locker(self) -> Fernet:
        key = hashlib.sha256(b"second factors\x00" + self._database.key).digest()
        return Fernet(base64.urlsafe_b64encode(key))

    def _hash(self, code: str) -> bytes:
        return hmac.new(self._database.key, b"recovery code\x00" + code.encode("utf-8", "replace"), "sha256").digest()

    def _step_of(self, secret: str, code: str, now: float) -> int | None:
        """Return the time step for which the code is correct, or `None` for a wrong code.

        The previous, current and next time steps are tried.
        """
        # Some authenticator apps ignore every other hash function.
        app = TOTP(base64.b32decode(secret), DIGITS, SHA1(), STEP_SECONDS)  # noqa: S303
        present = int(now // STEP_SECONDS)
        for step in (present, present - 1, present + 1):
            if hmac.compare_digest(app.generate(step * STEP_SECONDS), code.encode("utf-8", "replace")):
                return step
        return None

    def _make_recovery_codes(self, connection: Connection, account_id: UUID) -> list[str]:
        codes = ["".join(secrets.choice(ALPHABET) for _ in range(10)) for _ in range(RECOVERY_CODES)]
        connection.execute(queries["drop_recovery_codes"], {"account_id": account_id})
        for code in codes:
            connection.execute(queries["add_recovery_code"], {"account_id": account_id, "code_hash": self._hash(code)})
        return [f"{code[:5]}-{code[5:]}" for code in codes]

    def _drop(self, identity: Identity, account_id: UUID) -> None:
        with self._database.transaction(identity) as connection:
            connection.execute(queries["drop_second_factor"], {"account_id": account_id})
            connection.execute(queries["drop_recovery_codes"], {"account_id": account_id})


def _count(connection: Connection, account: dict[str, Any], row: Any, browser: Browser, now: float) -> float:
    """Count an attempt as wrong before its code is checked. Return the seconds to wait; 0 means check now.

    `account["browser"]` becomes "" if the account has never signed in from this browser. Raises `TooManyAttempts` if a
    known browser must wait.
    """
    browser_row = connection.execute(queries["codes_in_browser"], account).fetchone() if account["browser"] else None
    if browser_row is not None:
        values = {"failed_attempts": next_attempt(browser_row[0], now - browser_row[1]), "last_failed_at": now}
        connection.execute(queries["count_wrong_code_in_browser"], {**account, **values})
        return 0.0
    account["browser"] = ""
    before = Attempts(failed=row[3], last_at=row[4], waiting=tuple(Waiting(*item) for item in row[5]))
    after, wait_seconds = before.after_attempt(browser, now)
    counted = {"failed_attempts": after.failed, "last_failed_at": after.last_at, "waiting": Jsonb(after.waiting)}
    connection.execute(queries["count_wrong_code"], {**account, **counted})
    return wait_seconds
