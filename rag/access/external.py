"""Sign in people through another service: link them to accounts and store the service's data for their sessions.

After the first sign-in, a person is identified by the service and the service's id for the person. The e-mail address
alone never suffices, because addresses get reassigned to new people.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields
from typing import Any, Protocol
from uuid import UUID

from psycopg import Connection
from psycopg.rows import kwargs_row

from rag.access.account_rows import normal_email
from rag.access.passwords import NOT_CHOSEN
from rag.errors import AccessError
from rag.storage.database import Database, queries
from rag.types import Account, Role

ELSEWHERE = "Your account belongs to another organisation here. Ask an administrator."
ANOTHER_PERSON = (
    "This e-mail address belonged to somebody else here before. Ask an administrator to change the old account first."
)
UNKNOWN_TENANT = "Your account names an organisation that is not known here. Ask an administrator."
SUSPENDED = "Your company's access is suspended. Ask the operator of this installation."
DISABLED = "This account is disabled. Ask an administrator to enable it."


@dataclass(frozen=True, kw_only=True)
class ExternalPerson:
    """A person identified by another service, with tenant and role derived from the service's data."""

    issuer: str
    subject: str
    email: str
    tenant_id: str
    name: str = ""
    #: `None` keeps the account's role; a new account is an employee's.
    role: Role | None = None
    #: Whether to create a missing tenant: an operator's mapping may, a token may not.
    makes_tenant: bool = False

    @property
    def subject_hash(self) -> str:
        return origin_hash(self.issuer, self.subject)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """How a session began: the service, the person's id there (hashed), and when to ask the service again."""

    issuer: str
    subject_hash: str
    #: Hash of the other service's session id in hex; "" without an id.
    session_hash: str = ""
    secret: bytes | None = field(default=None, repr=False)
    #: Seconds until the other service is asked again; `None` means never.
    check_after_seconds: float | None = None
    #: The session's maximum lifetime in seconds; `None` means the usual lifetime.
    lasts_seconds: float | None = None
    #: When the person last authenticated there, in seconds since 1970; `None` means just now.
    proved_at: float | None = None


@dataclass(frozen=True, kw_only=True)
class AccountFromElsewhere(Account):
    """An account which has just signed in through another service."""

    origin: Origin


class SignInElsewhere(Protocol):
    """An external sign-in service.

    We ask the service whether a person is still signed in, and tell it when a person signs out.
    """

    def renew(self, secret: bytes) -> AccountFromElsewhere:
        """Exchange a session's secret for a new secret at the service.

        Returns the account, with the new secret in `origin`. Raises `AccessError` when the sign-in at the service has
        ended.
        """
        ...

    def sign_out(self, secret: bytes) -> None:
        """End the person's session at the service. Raises no errors."""
        ...


def origin_hash(issuer: str, name: str) -> str:
    """Hash a service's address together with the service's id for a person or session: SHA-256 in hex."""
    return hashlib.sha256(f"{issuer}\x00{name}".encode("utf-8", "surrogatepass")).hexdigest()


class ExternalAccounts:
    """Find, create and link accounts for people who sign in through another service."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def admit(self, person: ExternalPerson) -> Account:
        """Return the person's active account, updated with the service's role and name.

        The account is created at the first sign-in. Raises `AccessError` if the account is disabled or in another
        tenant, or if the address belongs to another person.
        """
        address = normal_email(person.email)
        existing = self._find_by_subject(person) or self._find_by_email(person.tenant_id, address)
        if existing and existing[0] != person.tenant_id:
            raise AccessError(ELSEWHERE)
        try:
            return self._admit(person, address, existing)
        except AccessError as exc:
            if existing:
                refusal = {"account_id": existing[1], "action": "sign-in refused", "target": exc.message}
                self._database.execute(person.tenant_id, "note_sign_in", **refusal)
            raise

    def _admit(self, person: ExternalPerson, address: str, existing: tuple[str, UUID] | None) -> Account:
        with self._database.transaction(person.tenant_id) as connection:
            if person.makes_tenant:
                connection.execute(queries["create_tenant"], {"id": person.tenant_id, "name": person.tenant_id})
            if connection.execute(queries["lock_accounts"]).fetchone() is None:
                raise AccessError(UNKNOWN_TENANT)
            if (row := connection.execute(queries["is_suspended"]).fetchone()) and row[0]:
                raise AccessError(SUSPENDED)
            account_id = existing[1] if existing else _add(connection, address, person)
            _bind(connection, account_id, person)
            account = _update(connection, account_id, address, person)
            if account is None or not account.is_active:
                raise AccessError(DISABLED)
            return account

    def subject_of(self, tenant_id: str, account_id: UUID, issuer: str) -> str | None:
        """Return the service's id for this account's person; `None` if they never signed in there."""
        value = self._database.fetch_value(tenant_id, "external_subject", account_id=account_id, issuer=issuer)
        return None if value is None else str(value)

    def _find_by_subject(self, person: ExternalPerson) -> tuple[str, UUID] | None:
        parameters = {"subject_hash": person.subject_hash}
        with self._database.transaction(None, token_hash=person.subject_hash) as connection:
            return connection.execute(queries["external_identity"], parameters).fetchone()

    def _find_by_email(self, tenant_id: str, address: str) -> tuple[str, UUID] | None:
        account_id = self._database.fetch_value(tenant_id, "account_by_email", email=address)
        return (tenant_id, account_id) if account_id else None


def from_elsewhere(account: Account, origin: Origin) -> AccountFromElsewhere:
    """Return a copy of an account with the origin of its sign-in."""
    return AccountFromElsewhere(**{f.name: getattr(account, f.name) for f in fields(Account)}, origin=origin)


def note_origin(connection: Connection, session_id: str, origin: Origin) -> None:
    """Store a new session's origin, in the transaction which starts the session."""
    connection.execute(
        queries["add_session_origin"],
        {
            "session_id": session_id,
            "issuer": origin.issuer,
            "subject_hash": origin.subject_hash,
            "session_hash": origin.session_hash,
            "secret": origin.secret,
            "check_after_seconds": origin.check_after_seconds,
        },
    )
    if origin.lasts_seconds is not None:
        connection.execute(queries["limit_session"], {"session_id": session_id, "seconds": origin.lasts_seconds})


def renew_origin(connection: Connection, session_id: str, origin: Origin) -> None:
    """Store a session's next secret and the time for its next check."""
    parameters = {"secret": origin.secret, "check_after_seconds": origin.check_after_seconds}
    connection.execute(queries["renew_session_origin"], {"session_id": session_id, **parameters})


def _add(connection: Connection, address: str, person: ExternalPerson) -> UUID:
    row = connection.execute(
        queries["add_account"],
        {
            "email": address,
            "name": person.name or address.partition("@")[0],
            "role": person.role or Role.EMPLOYEE,
            "user_group": "",
            "password_hash": NOT_CHOSEN,
        },
    ).fetchone()
    assert row is not None  # noqa: S101 - INSERT … RETURNING returns its row
    return UUID(str(row[0]))


def _bind(connection: Connection, account_id: UUID, person: ExternalPerson) -> None:
    names = {"account_id": account_id, "issuer": person.issuer}
    bound = connection.execute(queries["external_subject"], names).fetchone()
    if bound is None:
        connection.execute(
            queries["add_external_identity"],
            {**names, "subject_hash": person.subject_hash, "subject": person.subject},
        )
    elif bound[0] != person.subject:
        raise AccessError(ANOTHER_PERSON)


def _update(connection: Connection, account_id: UUID, address: str, person: ExternalPerson) -> Account | None:
    def account_from(*, role: str, **values: Any) -> Account:
        return Account(role=Role(role), **values)

    values = {"account_id": account_id, "email": address, "name": person.name, "role": person.role}
    with connection.cursor(row_factory=kwargs_row(account_from)) as cursor:
        return cursor.execute(queries["update_external_account"], values).fetchone()
