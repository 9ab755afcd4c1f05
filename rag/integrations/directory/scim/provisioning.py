"""Store people and groups from a company's directory (SCIM), each request in a single transaction.

A person from the directory is an account. If the directory deletes a person, the account is disabled but kept, because
logs refer to the account. An account has a single group: the group which the directory gave last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from rag.access.account_rows import (
    add_account,
    end_sessions,
    normal_email,
    normal_group,
    normal_name,
    read_value,
    require_domain,
)
from rag.access.passwords import NOT_CHOSEN
from rag.access.sessions import Sessions
from rag.errors import AlreadyThere, InvalidInput, NotAllowed, NotFound
from rag.storage.database import Database, queries
from rag.types import Identity, Role

#: The scope of a directory's API key.
SCOPE = "scim"
LAST_ADMINISTRATOR = (
    "This is the only active administrator. Make somebody else an administrator first, on the page People."
)
PRIVILEGED_ADDRESS = (
    "A directory may not change the address of an administrator or manager, because whoever signs in with the new "
    "address would get that person's rights. Make the person an employee on the page People, let the directory "
    "change the address, and give the role back."
)
#: The id of a new group or person.
NEW = UUID(int=0)


@dataclass(frozen=True, kw_only=True)
class DirectoryQuery:
    """A directory's query for people or groups, and the page to return."""

    id: str | None = None
    name: str | None = None
    external_id: str | None = None
    offset: int = 0
    limit: int = 100

    @property
    def parameters(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in ("id", "name", "external_id", "offset", "limit")}


@dataclass(frozen=True, kw_only=True)
class DirectoryPerson:
    """A person in the company's directory: the account's fields with SCIM's names."""

    email: str
    name: str
    is_active: bool
    #: Names and id from the directory; None before the first request.
    directory_fields: dict[str, Any] | None
    id: UUID = NEW
    role: str = Role.EMPLOYEE
    created_at: datetime | None = None
    group_id: UUID | None = None
    group_name: str = ""


@dataclass(frozen=True, kw_only=True)
class DirectoryGroup:
    """A group in the company's directory, with members."""

    name: str
    external_id: str | None
    #: Id and name of each member.
    members: Sequence[tuple[str, str]]
    id: UUID = NEW
    created_at: datetime | None = None


class Provisioning:
    """Read and write a tenant's people and groups."""

    def __init__(self, database: Database, sessions: Sessions) -> None:
        self._database = database
        self._sessions = sessions

    # People

    def people(self, identity: Identity, query: DirectoryQuery) -> tuple[list[DirectoryPerson], int]:
        """Return a page of people, and the total number."""
        with self._read_transaction(identity) as connection:
            return self._people(connection, query), _count(connection, "count_provisioned_people", query)

    def person(self, identity: Identity, person_id: str) -> DirectoryPerson:
        """Return a person. Raises `NotFound`."""
        with self._read_transaction(identity) as connection:
            return self._person(connection, person_id)

    def add_person(self, identity: Identity, person: DirectoryPerson) -> DirectoryPerson:
        """Add an employee without a password, or enable a person deleted by the directory before.

        Raises `AlreadyThere` if an account has the address, `InvalidInput` for an invalid address.
        """
        address = normal_email(person.email)
        with self._write_transaction(identity) as connection:
            require_domain(address, read_value(connection, "tenant_domains") or [])
            row = connection.execute(queries["restore_provisioned_person"], {"email": address}).fetchone()
            if row is None:
                if self._people(connection, DirectoryQuery(name=address)):
                    raise AlreadyThere("There is an account with this address already.")
                values = {"email": address, "name": normal_name(person.name), "role": Role.EMPLOYEE, "user_group": ""}
                row = (add_account(connection, **values, password_hash=NOT_CHOSEN).id,)
            self._write_person(connection, replace(person, id=row[0]))
            return self._person(connection, str(row[0]))

    def change_person(
        self, identity: Identity, person_id: str, change: Callable[[DirectoryPerson], DirectoryPerson]
    ) -> DirectoryPerson:
        """Change a person. Deactivating a person ends all their sessions and keys.

        Raises `NotFound`, `AlreadyThere`, `InvalidInput`, and `NotAllowed` for deactivating the last administrator or
        changing an administrator's or manager's address.
        """
        with self._write_transaction(identity) as connection:
            before = self._person(connection, person_id)
            after = replace(change(before), id=before.id)
            if before.email != normal_email(after.email):
                _require_no_rights(before)
                require_domain(normal_email(after.email), read_value(connection, "tenant_domains") or [])
            if before.is_active and not after.is_active:
                _require_another_administrator(connection, before)
            self._write_person(connection, after)
            touched = self._sessions_of(connection, before.id, is_over=not after.is_active)
            person = self._person(connection, person_id)
        self._tell(touched, is_over=not after.is_active)
        return person

    def remove_person(self, identity: Identity, person_id: str) -> None:
        """Disable a person deleted by the directory. Raises `NotFound`, `NotAllowed`."""
        with self._write_transaction(identity) as connection:
            before = self._person(connection, person_id)
            if before.is_active:
                _require_another_administrator(connection, before)
            connection.execute(queries["remove_provisioned_person"], {"id": before.id})
            touched = self._sessions_of(connection, before.id, is_over=True)
        self._tell(touched, is_over=True)

    # Groups

    def groups(self, identity: Identity, query: DirectoryQuery) -> tuple[list[DirectoryGroup], int]:
        """Return a page with groups, and the total number."""
        with self._read_transaction(identity) as connection:
            return self._groups(connection, query), _count(connection, "count_provisioned_groups", query)

    def group(self, identity: Identity, group_id: str) -> DirectoryGroup:
        """Return a group. Raises `NotFound`."""
        with self._read_transaction(identity) as connection:
            return self._group(connection, group_id)

    def add_group(self, identity: Identity, group: DirectoryGroup) -> DirectoryGroup:
        """Add a group with its members. Raises `AlreadyThere`, `InvalidInput`."""
        with self._write_transaction(identity) as connection:
            values = {"name": _group_name(group.name), "external_id": group.external_id}
            try:
                row = connection.execute(queries["add_provisioned_group"], values).fetchone()
            except psycopg.errors.UniqueViolation as exc:
                raise AlreadyThere("There is a group with this name already.") from exc
            assert row is not None  # noqa: S101 - INSERT … RETURNING returns its row
            touched = self._write_members(connection, values["name"] or "", group)
            stored_group = self._group(connection, str(row[0]))
        self._sessions.refresh(touched)
        return stored_group

    def change_group(
        self, identity: Identity, group_id: str, change: Callable[[DirectoryGroup], DirectoryGroup]
    ) -> DirectoryGroup:
        """Change a group. Raises `NotFound`, `AlreadyThere`, `InvalidInput`."""
        with self._write_transaction(identity) as connection:
            before = self._group(connection, group_id)
            after = change(before)
            name = _group_name(after.name)
            values = {"id": before.id, "before": before.name, "name": name, "external_id": after.external_id}
            try:
                connection.execute(queries["write_provisioned_group"], values)
            except psycopg.errors.UniqueViolation as exc:
                raise AlreadyThere("There is a group with this name already.") from exc
            everybody = [member for member, _name in before.members] if name != before.name else []
            touched = self._write_members(connection, name, after)
            touched += [s for m in everybody for s in self._sessions_of(connection, UUID(m), is_over=False)]
            stored_group = self._group(connection, group_id)
        self._sessions.refresh(touched)
        return stored_group

    def remove_group(self, identity: Identity, group_id: str) -> None:
        """Delete a group. The members stay, without a group. Raises `NotFound`."""
        with self._write_transaction(identity) as connection:
            before = self._group(connection, group_id)
            touched = self._write_members(connection, before.name, replace(before, members=()))
            connection.execute(queries["remove_provisioned_group"], {"id": before.id})
        self._sessions.refresh(touched)

    # Inside

    @contextmanager
    def _read_transaction(self, identity: Identity) -> Iterator[Connection]:
        # The route has checked the key's scope. The writes need an administrator's role.
        with self._database.transaction(replace(identity, role=Role.ADMIN)) as connection:
            connection.execute(queries["name_groups"])
            yield connection

    @contextmanager
    def _write_transaction(self, identity: Identity) -> Iterator[Connection]:
        with self._read_transaction(identity) as connection:
            connection.execute(queries["lock_accounts"])
            yield connection

    def _people(self, connection: Connection, query: DirectoryQuery) -> list[DirectoryPerson]:
        with connection.cursor(row_factory=class_row(DirectoryPerson)) as cursor:
            return cursor.execute(queries["provisioned_people"], query.parameters).fetchall()

    def _person(self, connection: Connection, person_id: str) -> DirectoryPerson:
        people = self._people(connection, DirectoryQuery(id=person_id))
        if not people:
            raise NotFound
        return people[0]

    def _write_person(self, connection: Connection, person: DirectoryPerson) -> None:
        values = {
            "id": person.id,
            "email": normal_email(person.email),
            "name": normal_name(person.name),
            "is_active": person.is_active,
            "directory_fields": Jsonb(person.directory_fields or {}),
        }
        try:
            connection.execute(queries["write_provisioned_person"], values)
        except psycopg.errors.UniqueViolation as exc:
            raise AlreadyThere("There is an account with this address already.") from exc

    def _groups(self, connection: Connection, query: DirectoryQuery) -> list[DirectoryGroup]:
        with connection.cursor(row_factory=class_row(DirectoryGroup)) as cursor:
            return cursor.execute(queries["provisioned_groups"], query.parameters).fetchall()

    def _group(self, connection: Connection, group_id: str) -> DirectoryGroup:
        groups = self._groups(connection, DirectoryQuery(id=group_id))
        if not groups:
            raise NotFound
        return groups[0]

    def _write_members(self, connection: Connection, name: str, group: DirectoryGroup) -> list[str]:
        """Set a group's members. Returns the session ids for people who changed groups."""
        try:
            members = list({UUID(member) for member, _name in group.members})
        except ValueError as exc:
            raise InvalidInput(
                "Each member of a group has to be a person, identified by the id that this service gave."
            ) from exc
        row = connection.execute(queries["count_people_of"], {"members": members}).fetchone()
        if row is None or row[0] != len(members):
            raise InvalidInput("A member of this group has no account here. Groups inside groups are not supported.")
        moved = connection.execute(queries["write_members"], {"members": members, "name": name}).fetchall()
        return [session for row in moved for session in self._sessions_of(connection, row[0], is_over=False)]

    def _sessions_of(self, connection: Connection, account_id: UUID, *, is_over: bool) -> list[str]:
        if is_over:
            return end_sessions(connection, account_id)
        rows = connection.execute(queries["sessions_of_account"], {"account_id": account_id, "idle_minutes": 0})
        return [row[0] for row in rows]

    def _tell(self, session_ids: list[str], *, is_over: bool) -> None:
        """Make sessions reload their identity after the commit. If `is_over`, end the sessions instead."""
        (self._sessions.forget if is_over else self._sessions.refresh)(session_ids)


def _count(connection: Connection, statement: str, query: DirectoryQuery) -> int:
    row = connection.execute(queries[statement], query.parameters).fetchone()
    return int(row[0]) if row else 0


def _group_name(text: str) -> str:
    name = normal_group(text)
    if not name:
        raise InvalidInput("A group needs a name.")
    return name


def _require_no_rights(person: DirectoryPerson) -> None:
    """Raise `NotAllowed` if the account is a manager or administrator.

    A changed address could give these rights to a different person.
    """
    if person.role != Role.EMPLOYEE:
        raise NotAllowed(PRIVILEGED_ADDRESS)


def _require_another_administrator(connection: Connection, person: DirectoryPerson) -> None:
    if person.role == Role.ADMIN and read_value(connection, "count_active_admins") == 1:
        raise NotAllowed(LAST_ADMINISTRATOR)
