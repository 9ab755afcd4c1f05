"""Manage accounts: sign-in by password, invitations, roles and password resets.

Each attempt is counted as wrong before its password is checked. Parallel guesses are therefore slowed like sequential
guesses. Attempts from a browser in which the account has signed in before have a separate count, to prevent strangers
from delaying the owner. Every change which removes a right also ends the account's sessions, in the same transaction.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from argon2 import PasswordHasher
from psycopg import Connection
from psycopg.rows import kwargs_row
from psycopg.types.json import Jsonb

from rag.access.account_rows import (
    account_from,
    add_account,
    end_sessions,
    is_email,
    normal_email,
    normal_group,
    normal_name,
    read_account,
    read_value,
    require_domain,
    role_from,
    set_password,
)
from rag.access.external import SUSPENDED
from rag.access.limits import Attempts, Browser, ResetRequests, UnknownSignIns, Waiting, next_attempt, too_early
from rag.access.passwords import NOT_CHOSEN, Passwords, require_good_password
from rag.access.second_factor import SecondFactors
from rag.access.sessions import (
    TOKEN,
    Sessions,
    account_of_link,
    add_link,
    open_link,
    require_admin,
    require_recent,
    token_hash,
    use_link,
)
from rag.errors import AccessError, InvalidInput, LinkExpired, NotAllowed, NotFound, TooManyAttempts, WrongPassword
from rag.settings import Settings
from rag.storage.database import Database, queries
from rag.types import Account, Identity, Role

#: Used for unknown addresses, so both cases take the same steps.
NOBODY = UUID(int=0)
#: Days a browser stays known after the last sign-in there, and the most known browsers per account.
KNOWN_BROWSER_DAYS, MOST_KNOWN_BROWSERS = 180, 20
# The class has a method called list.
Groups = list[str]
#: Accounts with their tenants.
Candidates = list[tuple[UUID, str]]


class Accounts:
    """Manage the accounts in all tenants.

    In a new installation, the first administrator gets a link to create an account in the main tenant.
    """

    #: Whether a person who lost their password gets an e-mail with a link; else the administrators are notified.
    sends_mail = False
    #: Whether checking a password uses a local core; else another service checks it over the network.
    hashes_passwords = True

    def __init__(
        self,
        database: Database,
        sessions: Sessions,
        settings: Settings | None = None,
        *,
        hasher: PasswordHasher | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._sessions = sessions
        self._tenant_id = (settings or Settings()).tenant
        self._passwords = Passwords(hasher, key=database.key)
        self._clock = clock
        self._unknown_sign_ins = UnknownSignIns(clock)
        self._reset_requests = ResetRequests()
        self.second_factors = SecondFactors(database, clock=clock)

    # Passwords

    def company_mark(self) -> bytes:
        """Return the main tenant's logo in PNG format, for the sign-in page. Without a logo, the result is empty."""
        return bytes(self._database.fetch_value(self._tenant_id, "company_mark") or b"")

    def sign_in(self, email: str, password: str, browser: Browser | None = None) -> Account:
        """Sign in with address and password, and return the account.

        If the address has accounts in several tenants, the first active account with this password is returned.
        `browser` identifies the browser. Raises `WrongPassword` for a wrong password or an unknown address,
        `AccessError` if the account is disabled, and `TooManyAttempts` with the seconds to wait. During the wait, a
        correct password is refused too.
        """
        address, browser = email.strip().lower(), browser or Browser()
        refused: list[AccessError] = []
        candidates = self._find_candidates(address, browser)
        try:
            for account_id, tenant_id in candidates:
                try:
                    return self._sign_in_to(tenant_id, account_id, address, password, browser)
                except AccessError as exc:
                    refused.append(exc)
            self._note_refused(candidates, refused)
        finally:
            # Equal timing hides from a company whether a second company has an account with an address it invited.
            if len(candidates) == 1 and browser.mark:
                self._passwords.matches(password, None)
        raise most_telling(refused)

    def _sign_in_to(self, tenant_id: str, account_id: UUID, address: str, password: str, browser: Browser) -> Account:
        """Check the password, record the sign-in and return the account. Raises the same errors as `sign_in`."""
        stored, browser_hash = self._count_attempt(tenant_id, account_id, browser)
        if stored is None:
            self._unknown_sign_ins.count(address[:254], browser)
        if not self._passwords.matches(password, stored) or stored is None:
            raise WrongPassword
        fresh = self._passwords.hash(password) if self._passwords.is_outdated(stored) else ""
        with self._database.transaction(tenant_id, checks=account_id) as connection:
            who = {"account_id": account_id}
            # Another process may have changed the password meanwhile.
            if fresh and connection.execute(queries["checked_password"], who).fetchone() == (stored,):
                connection.execute(queries["renew_hash"], {**who, "password_hash": fresh})
            account = read_account(connection, "record_sign_in", account_id=account_id, browser=browser_hash)
        if account is None:
            raise WrongPassword
        if not account.is_active:
            raise AccessError("This account is disabled. Ask an administrator to enable it.")
        if self._database.fetch_value(tenant_id, "is_suspended"):
            raise AccessError(SUSPENDED)
        return account

    def change_password(self, identity: Identity, old: str, new: str) -> None:
        """Change the signed-in person's password, and end their other sessions.

        Raises `WrongPassword` or `TooManyAttempts` for the old password, `WeakPassword` for the new.
        """
        require_good_password(new, email=identity.email)
        self.require_password(identity, old)
        hashed = self._passwords.hash(new)
        with self._database.transaction(identity) as connection:
            _, ended = set_password(connection, identity.account_id, hashed, keep_session_id=identity.session_id)
        self._sessions.forget(ended)

    def require_password(self, identity: Identity, password: str, browser: Browser | None = None) -> None:
        """Check a signed-in person's password again. Raises `WrongPassword`, `TooManyAttempts`."""
        browser = browser or Browser(mark=identity.session_id)
        stored, browser_hash = self._count_attempt(identity.tenant_id, identity.account_id, browser)
        if not self._passwords.matches(password, stored):
            raise WrongPassword("Your current password is not right.")
        # The attempt counted as wrong until here. People who often confirm their password must not have to wait.
        self._database.fetch_value(identity, "record_sign_in", account_id=identity.account_id, browser=browser_hash)

    # Browsers that are known

    def knows_browser(self, email: str, browser: Browser) -> bool:
        """Whether any account with this address has signed in from this browser before."""
        if not TOKEN.fullmatch(browser.known_token):
            return False
        candidates = self._find_by_email(email.strip().lower())
        return any(self._knows(tenant_id, account_id, browser) for account_id, tenant_id in candidates)

    def know_browser(self, tenant_id: str, account_id: UUID, known_token: str = "") -> str:
        """Record that the account has signed in from a browser, and return the token to store in the browser's cookie.

        `known_token` is the token in the cookie now. A token unknown to the tenant is replaced, because an attacker may
        have planted it. A known token is kept, even if several accounts use the same browser.
        """
        with self._database.transaction(tenant_id) as connection:
            is_ours = False
            if TOKEN.fullmatch(known_token):
                cursor = connection.execute(queries["keeps_known_browser"], {"browser": token_hash(known_token)})
                is_ours = bool((cursor.fetchone() or (False,))[0])
            token = known_token if is_ours else secrets.token_urlsafe(32)
            where = {"browser": token_hash(token), "account_id": account_id}
            connection.execute(queries["know_browser"], where)
            limits = {"days": KNOWN_BROWSER_DAYS, "most": MOST_KNOWN_BROWSERS}
            connection.execute(queries["drop_old_browsers"], {"account_id": account_id, **limits})
        return token

    # Links that work once

    def first_admin_link(self, tenant_id: str | None = None) -> str | None:
        """Create a token for a tenant's first administrator, valid for 24 hours.

        Returns `None` if the tenant already has an administrator. By default, the tenant is the settings' tenant.
        """
        tenant_id = tenant_id or self._tenant_id
        with self._database.transaction(tenant_id) as connection:
            connection.execute(queries["create_tenant"], {"id": tenant_id, "name": tenant_id})
            return None if read_value(connection, "has_admin") else add_link(connection, "first_admin")

    def require_first_admin_link(self, token: str) -> None:
        """Raise `LinkExpired` unless a first administrator can still be created with this token.

        Does not use up the token.
        """
        open_link(self._database, token, "first_admin")

    def create_first_admin(self, token: str, email: str, name: str, password: str) -> Account:
        """Create the first administrator. Raises `LinkExpired` if a concurrent attempt was faster."""
        tenant_id, _ = open_link(self._database, token, "first_admin")
        address = normal_email(email)
        values = {"email": address, "name": normal_name(name), "role": Role.ADMIN, "user_group": ""}
        require_good_password(password, email=address)
        require_domain(address, self._database.fetch_value(tenant_id, "tenant_domains") or [])
        hashed = self._keep_password(address, tenant_id, Role.ADMIN, password)
        with self._database.transaction(tenant_id) as connection:
            connection.execute(queries["lock_accounts"])
            use_link(connection, token, "first_admin")
            if read_value(connection, "has_admin"):
                raise LinkExpired
            return add_account(connection, **values, password_hash=hashed)

    def account_of_link(self, token: str) -> Account:
        """Return the account for a password link, without using up the link. Raises `LinkExpired`."""
        return account_of_link(self._database, token, "set_password")

    def set_password_by_link(self, token: str, password: str) -> Account:
        """Set the password for the link's account, end its sessions, and return the account.

        Raises `LinkExpired`, `WeakPassword`.
        """
        account = self.account_of_link(token)
        require_good_password(password, email=account.email)
        hashed = self._keep_password(account.email, account.tenant_id, account.role, password)
        with self._database.transaction(account.tenant_id) as connection:
            use_link(connection, token, "set_password")
            account, ended = set_password(connection, account.id, hashed)
        self._sessions.forget(ended)
        return account

    # Lost passwords

    def count_reset_request(self, email: str) -> None:
        """Count a password reset request, whether or not an account has the address. Raises `TooManyAttempts`."""
        self._reset_requests.count(email.strip().lower()[:254])

    def ask_for_password(self, email: str) -> None:
        """Record a reset request for each account with this address, for the administrators to see.

        For an unknown address, nothing is recorded. The method returns `None` in both cases, to hide which addresses
        have accounts. Raises `DatabaseUnavailable`.
        """
        for account_id, tenant_id in self._find_by_email(email.strip().lower()):
            self._database.execute(tenant_id, "ask_for_password", account_id=account_id)

    def set_password_by_mail(self, access_token: str, refresh_token: str, password: str) -> Account:
        """Always raise `LinkExpired`, because built-in accounts get no e-mailed links.

        `SupabaseAccounts` overrides the method.
        """
        raise LinkExpired

    # What administrators do

    def administrators(self, identity: Identity) -> tuple[str, ...]:
        """Return up to three administrators' names, for people who may not list accounts."""
        with self._database.transaction(identity.tenant_id) as connection:
            return tuple(row[0] for row in connection.execute(queries["names_of_administrators"]))

    def list(self, identity: Identity) -> list[Account]:
        """List the tenant's accounts by name. For administrators."""
        require_admin(identity)
        with (
            self._database.transaction(identity) as connection,
            connection.cursor(row_factory=kwargs_row(account_from)) as cursor,
        ):
            return cursor.execute(queries["list_accounts"]).fetchall()

    def groups(self, identity: Identity) -> Groups:
        """List the tenant's account groups by name. For administrators."""
        require_admin(identity)
        with self._database.transaction(identity) as connection:
            return [row[0] for row in connection.execute(queries["account_groups"])]

    def invite(
        self, identity: Identity, email: str, name: str = "", role: Role | str = Role.EMPLOYEE, user_group: str = ""
    ) -> tuple[Account, str]:
        """Add an account, and return it with the path of a link for setting its password.

        The link is valid for three days and works once. Raises `InvalidInput` if the address is invalid, already has an
        account, or is outside the tenant's domains.
        """
        address = normal_email(email)
        values = {
            "email": address,
            "name": normal_name(name or address.partition("@")[0]),
            "role": role_from(role),
            "user_group": normal_group(user_group),
        }
        with self._administration(identity) as connection:
            require_domain(address, read_value(connection, "tenant_domains") or [])
            account = add_account(connection, **values, password_hash=NOT_CHOSEN)
            return account, _set_password_path(connection, account.id)

    def password_link(self, identity: Identity, account_id: UUID) -> str:
        """Create a link to set an account's password, and return the link's path. Earlier links stop working."""
        with self._administration(identity) as connection:
            return _new_password_path(connection, account_id)

    def operators_password_link(self, program: Identity, email: str) -> str:
        """Create a password link for the account with this address, when no administrator can sign in.

        For an operator's command, which acts as `program`. Raises `NotFound` for an unknown address, `InvalidInput` for
        a disabled account, and `NotAllowed` if `program` is a person's identity.
        """
        if program.account_id != NOBODY:
            raise NotAllowed
        with self._database.transaction(program) as connection:
            connection.execute(queries["lock_accounts"])
            row = connection.execute(queries["account_by_email"], {"email": email.strip().lower()}).fetchone()
            if row is None:
                raise NotFound(f"No account of {program.tenant_id} has the address {email}.")
            return _new_password_path(connection, row[0])

    def change(
        self,
        identity: Identity,
        account_id: UUID,
        *,
        role: Role | str | None = None,
        name: str | None = None,
        user_group: str | None = None,
        is_active: bool | None = None,
    ) -> Account:
        """Change the given fields.

        A changed role takes effect at once. Disabling an account ends all its sessions. Raises `NotAllowed` for
        disabling or demoting oneself, which ensures that an active administrator always remains.
        """
        values = {
            "role": None if role is None else role_from(role),
            "name": None if name is None else normal_name(name),
            "user_group": None if user_group is None else normal_group(user_group),
            "is_active": is_active,
        }
        with self._administration(identity) as connection:
            before = read_account(connection, "account", account_id=account_id)
            if before is None:
                raise NotFound
            if account_id == identity.account_id and (is_active is False or values["role"] not in (None, before.role)):
                raise NotAllowed(_why_not_oneself(connection))
            after = read_account(connection, "change_account", account_id=account_id, **values)
            if after is None:
                raise NotFound
            if before.is_active and not after.is_active:
                touched = end_sessions(connection, account_id)
            else:
                rows = connection.execute(queries["sessions_of_account"], {"account_id": account_id, "idle_minutes": 0})
                touched = [row[0] for row in rows]
        if before.is_active != after.is_active or before.role != after.role:
            self._sessions.forget(touched)
        else:
            self._sessions.refresh(touched)
        return after

    # Inside

    def _keep_password(self, email: str, tenant_id: str, role: Role, password: str) -> str:
        """Return the value to store in the `accounts` table for a new password.

        Subclasses may store passwords elsewhere.
        """
        return self._passwords.hash(password)

    @contextmanager
    def _administration(self, identity: Identity) -> Iterator[Connection]:
        """Open a transaction for a recently signed-in administrator, with the tenant's accounts locked.

        Raises `NotAllowed` or `SignInAgain`.
        """
        require_admin(identity)
        # Every step needs a recent sign-in: a new link or administrator would bypass the check.
        require_recent(self._database, identity)
        with self._database.transaction(identity) as connection:
            connection.execute(queries["lock_accounts"])
            actor = read_account(connection, "account", account_id=identity.account_id)
            if actor is None or not actor.is_active or not actor.role.includes(Role.ADMIN):
                raise NotAllowed
            yield connection

    def _note_refused(self, candidates: Sequence[tuple[UUID, str]], refused: Sequence[AccessError]) -> None:
        """Log a refused sign-in, with the reason, in the audit log of each account with this address.

        `TooManyAttempts` is not logged, because the password was not checked.
        """
        for (account_id, tenant_id), error in zip(candidates, refused, strict=True):
            if not isinstance(error, TooManyAttempts):
                refusal = {"account_id": account_id, "action": "sign-in refused", "target": error.message}
                self._database.execute(tenant_id, "note_sign_in", **refusal)

    def _find_by_email(self, address: str) -> Candidates:
        """Return (account id, tenant id) for each account with this email address, in all tenants.

        An unknown address gives a single pair: `NOBODY` and the main tenant.
        """
        if is_email(address):
            with self._database.transaction(None, email=address) as connection:
                if rows := connection.execute(queries["accounts_by_email"], {"email": address}).fetchall():
                    return [(row[0], row[1]) for row in rows]
        return [(NOBODY, self._tenant_id)]

    def _find_candidates(self, address: str, browser: Browser) -> Candidates:
        """Find the accounts by email address. Accounts which have signed in from this browser before come first."""
        candidates = self._find_by_email(address)
        if len(candidates) > 1 and TOKEN.fullmatch(browser.known_token):
            candidates.sort(key=lambda pair: not self._knows(pair[1], pair[0], browser))
        return candidates

    def _knows(self, tenant_id: str, account_id: UUID, browser: Browser) -> bool:
        token = token_hash(browser.known_token)
        return bool(self._database.fetch_value(tenant_id, "is_known_browser", browser=token, account_id=account_id))

    def _count_attempt(self, tenant_id: str, account_id: UUID, browser: Browser) -> tuple[str | None, str]:
        """Count an attempt as wrong before its password is checked.

        Returns two hashes. The first is the stored password hash; `None` if there is no account. The second is the hash
        of the browser's token; "" unless the account has signed in from this browser before. Raises `TooManyAttempts`.
        """
        now, wait_seconds = self._clock(), 0.0
        with self._database.transaction(tenant_id, checks=account_id) as connection:
            if TOKEN.fullmatch(browser.known_token):
                where: dict[str, Any] = {"browser": token_hash(browser.known_token), "account_id": account_id}
                browser_row = connection.execute(queries["attempts_in_browser"], where).fetchone()
                if browser_row is not None:
                    counted = next_attempt(browser_row[0], now - browser_row[1])
                    values = {"failed_attempts": counted, "last_failed_at": now}
                    connection.execute(queries["count_attempt_in_browser"], {**where, **values})
                    return str(browser_row[2]), where["browser"]
            account_row = connection.execute(queries["attempts_of_account"], {"account_id": account_id}).fetchone()
            if account_row is None:
                return None, ""
            failed, last_at, waiting, stored = account_row
            before = Attempts(failed=failed, last_at=last_at, waiting=tuple(Waiting(*item) for item in waiting))
            after, wait_seconds = before.after_attempt(browser, now)
            connection.execute(
                queries["count_attempt"],
                {
                    "account_id": account_id,
                    "failed_attempts": after.failed,
                    "last_failed_at": after.last_at,
                    "waiting": Jsonb(after.waiting),
                },
            )
        if wait_seconds:
            raise too_early(wait_seconds)
        return str(stored), ""


def most_telling(refused: Sequence[AccessError]) -> AccessError:
    """Choose the error to show when the sign-in failed for every account with an address.

    An error after a correct password, for example for a disabled account, comes before `WrongPassword`. If every
    attempt came too early, the error with the shortest wait is chosen.
    """
    waits = [error for error in refused if isinstance(error, TooManyAttempts)]
    wrong = [error for error in refused if isinstance(error, WrongPassword)]
    right = [error for error in refused if error not in waits and error not in wrong]
    soonest = sorted(waits, key=lambda error: float(str(error.details.get("wait_seconds", 0))))
    return (right or wrong or soonest)[0]


def _why_not_oneself(connection: Connection) -> str:
    if read_value(connection, "count_active_admins") == 1:
        return "You are the only active administrator. Make somebody else an administrator first."
    return "You cannot disable your own account or change its role. Ask another administrator to do it."


def _new_password_path(connection: Connection, account_id: UUID) -> str:
    account = read_account(connection, "account", account_id=account_id)
    if account is None:
        raise NotFound
    if not account.is_active:
        raise InvalidInput("This account is disabled. Enable it first.")
    connection.execute(queries["settle_reset_request"], {"account_id": account_id})
    return _set_password_path(connection, account_id)


def _set_password_path(connection: Connection, account_id: UUID) -> str:
    return f"/set-password?token={add_link(connection, 'set_password', account_id)}"
