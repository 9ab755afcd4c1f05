"""A key is its maker's: it ends with what they may, it has an end and a name, and every act of it says which key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from rag.access.api_keys import LASTS_DAYS, SCOPES
from rag.access.external import ExternalAccounts, ExternalPerson
from rag.errors import KeyRejected
from rag.records.audit import AuditLog
from rag.storage.database import Database
from rag.types import Identity, Role
from tests.access.front_door import Access, AddPerson, identity_of


@pytest.fixture
def second(add_person: AddPerson) -> Identity:
    """Another administrator, who makes the keys."""
    return identity_of(add_person("second@example.com", Role.ADMIN, "Second"))


@pytest.mark.parametrize("change", [{"is_active": False}, {"role": "manager"}, {"role": "employee"}])
def test_a_key_stops_with_its_makers_right_to_make_one(
    change: dict[str, object], access: Access, admin: Identity, second: Identity
) -> None:
    key, secret = access.api_keys.create(second, "Intranet", ["documents:write"])
    kept, other = access.api_keys.create(admin, "Report", ["chat"])
    assert access.api_keys.find(secret).key_id == key.id
    access.accounts.change(admin, second.account_id, **change)  # type: ignore[arg-type]
    with pytest.raises(KeyRejected):
        access.api_keys.find(secret)
    assert access.api_keys.find(other).key_id == kept.id
    listed = {one.name: one for one in access.api_keys.list(admin)}
    assert (listed["Intranet"].works, listed["Intranet"].owner_name) == (False, "Second")
    assert listed["Report"].works


@pytest.mark.parametrize("scope", SCOPES)
def test_a_key_acts_as_an_administrator_only_where_it_may_change_something(
    scope: str, access: Access, second: Identity
) -> None:
    _, secret = access.api_keys.create(second, "Intranet", [scope])
    expected = Role.ADMIN if scope in ("documents:write", "sync", "admin") else Role.EMPLOYEE
    assert access.api_keys.find(secret).identity.role is expected


def test_a_key_stops_when_another_sign_in_service_takes_its_makers_role(
    access: Access, database: Database, second: Identity
) -> None:
    _, secret = access.api_keys.create(second, "Intranet", ["chat"])
    person = ExternalPerson(issuer="https://sso", subject="2", email=second.email, tenant_id="demo", role=Role.EMPLOYEE)
    ExternalAccounts(database).admit(person)
    with pytest.raises(KeyRejected):
        access.api_keys.find(secret)


def test_a_key_made_with_a_key_stops_with_the_same_person(access: Access, admin: Identity, second: Identity) -> None:
    _, secret = access.api_keys.create(second, "First", ["admin"])
    _, further = access.api_keys.create(access.api_keys.find(secret).identity, "Made by it", ["chat"])
    assert access.api_keys.find(further)
    access.accounts.change(admin, second.account_id, is_active=False)
    with pytest.raises(KeyRejected):
        access.api_keys.find(further)


def test_the_keys_of_somebody_deleted_stop(
    access: Access, admin: Identity, second: Identity, superuser_conninfo: str
) -> None:
    _, secret = access.api_keys.create(second, "Intranet", ["chat"])
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute("DELETE FROM accounts WHERE id = %s", (second.account_id,))
    with pytest.raises(KeyRejected):
        access.api_keys.find(secret)
    assert not access.api_keys.list(admin)[0].works


def test_a_key_ends_after_ninety_days_unless_another_day_is_chosen(access: Access, admin: Identity) -> None:
    usual, _ = access.api_keys.create(admin, "Usual", ["chat"])
    chosen_day = datetime.now(UTC) + timedelta(days=400)
    chosen, _ = access.api_keys.create(admin, "Chosen", ["chat"], chosen_day)
    assert abs(usual.expires_at - datetime.now(UTC) - timedelta(days=LASTS_DAYS)) < timedelta(minutes=5)
    assert LASTS_DAYS == 90
    assert chosen.expires_at == chosen_day


def test_a_keys_last_use_and_its_name_in_the_audit_log(access: Access, admin: Identity, database: Database) -> None:
    key, secret = access.api_keys.create(admin, "Intranet", ["documents:write"])
    assert access.api_keys.list(admin)[0].last_used_at is None
    use = access.api_keys.find(secret)
    assert access.api_keys.list(admin)[0].last_used_at is not None
    with database.transaction(use.identity) as connection:
        connection.execute(
            "INSERT INTO collections (tenant_id, name, embedding_model) VALUES ('demo', 'By a key', 'm')"
        )
    AuditLog(database).note(use.identity, "documents exported")
    entries = AuditLog(database).entries(admin)[:2]
    assert [(entry.action, entry.actor, entry.account_id) for entry in entries] == [
        ("documents exported", "key:Intranet", key.id),
        ("collection added", "key:Intranet", key.id),
    ]
