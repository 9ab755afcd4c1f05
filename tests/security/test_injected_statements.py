"""What a statement smuggled into an employee's transaction does to accounts, passwords, sessions and keys: nothing.

Each attack is tried in an administrator's transaction too, where it succeeds, so that it is known to be one.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from uuid import UUID

import psycopg
import pytest

from rag.storage.database import Database, queries
from rag.types import Identity, Role
from tests.patience import patient

INSERT_ACCOUNT = (
    "INSERT INTO accounts (tenant_id, email, name, role, password_hash) VALUES ('demo', %s, %s, %s, %s) RETURNING id"
)


@dataclass(frozen=True)
class People:
    """An employee, in whose transaction something is smuggled, and the administrator it is about."""

    employee: Identity
    admin: Identity


@pytest.fixture
def people(database: Database) -> People:
    made: dict[str, UUID] = {}
    with database.transaction("demo") as connection:
        for role in ("employee", "admin"):
            row = connection.execute(
                INSERT_ACCOUNT, (f"{role}@demo.example", role.title(), role, f"hash of {role}")
            ).fetchone()
            assert row is not None
            made[role] = row[0]
            of = (made[role],)
            connection.execute(
                "INSERT INTO sessions (token_hash, tenant_id, account_id, expires_at) "
                "VALUES (sha256(gen_random_uuid()::text::bytea), 'demo', %s, now() + interval '1 day')",
                of,
            )
            connection.execute(
                "INSERT INTO second_factors (account_id, tenant_id, secret, confirmed_at) "
                "VALUES (%s, 'demo', 'secret', now())",
                of,
            )
            connection.execute(
                "INSERT INTO recovery_codes (account_id, code_hash, tenant_id) VALUES (%s, 'code', 'demo')", of
            )
            connection.execute(
                "INSERT INTO known_browsers (token_hash, tenant_id, account_id) VALUES (sha256(%s), 'demo', %s)",
                (role.encode(), *of),
            )
            connection.execute(
                "INSERT INTO external_identities (subject_hash, tenant_id, account_id, issuer, subject) "
                "VALUES (sha256(%s), 'demo', %s, 'https://sso.example', %s)",
                (role.encode(), *of, role),
            )
            connection.execute(
                "INSERT INTO connected_apps (id, tenant_id, account_id, name, host, client_id, scopes, resource, "
                "redirect_uri, code_challenge, code_hash, code_expires_at, expires_at) VALUES (%s, 'demo', %s, 'P', "
                "'h', 'c', '{search}', '/mcp', 'u', 'c', sha256(%s), now(), now() + interval '1 day')",
                (*of, *of, role.encode()),
            )
            connection.execute(
                "INSERT INTO used_app_tokens (token_hash, tenant_id, app_id) VALUES (sha256(%s), 'demo', %s)",
                (role.encode(), *of),
            )
            connection.execute(
                "INSERT INTO session_origins (token_hash, tenant_id, issuer, subject_hash, check_after) "
                "SELECT token_hash, 'demo', 'https://sso.example', sha256(%s), now() FROM sessions "
                "WHERE account_id = %s",
                (role.encode(), *of),
            )
            connection.execute(
                "INSERT INTO one_time_links (token_hash, tenant_id, purpose, account_id, expires_at) "
                "VALUES (sha256(%s), 'demo', 'set_password', %s, now() + interval '1 day')",
                (role.encode(), *of),
            )
        connection.execute(
            "INSERT INTO api_keys (tenant_id, name, secret_hash, hint, scopes, created_by) "
            "VALUES ('demo', 'Key', sha256('key'), 'rag_', '{search}', %s)",
            (made["admin"],),
        )
        connection.execute(
            "INSERT INTO collections (tenant_id, name, embedding_model, groups) "
            "VALUES ('demo', 'open', 'm', '{}'), ('demo', 'closed', 'm', '{board}')"
        )
    return People(
        employee=Identity(
            account_id=made["employee"],
            tenant_id="demo",
            email="employee@demo.example",
            name="Employee",
            role=Role.EMPLOYEE,
        ),
        admin=Identity(
            account_id=made["admin"], tenant_id="demo", email="admin@demo.example", name="Admin", role=Role.ADMIN
        ),
    )


WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

#: Rights: each changes a row for an administrator and none for an employee. `%(self)s` is who acts.
CHANGES = (
    "UPDATE accounts SET role = 'admin' WHERE id = %(self)s RETURNING 1",
    "UPDATE accounts SET user_group = 'board' WHERE id = %(self)s RETURNING 1",
    "UPDATE accounts SET email = 'other@demo.example' WHERE id = %(self)s RETURNING 1",
    "UPDATE accounts SET role = 'employee' WHERE id <> %(self)s RETURNING 1",
    "UPDATE accounts SET password_hash = 'mine' WHERE id <> %(self)s RETURNING 1",
    "UPDATE accounts SET is_active = false WHERE id <> %(self)s RETURNING 1",
    "UPDATE accounts SET role = 'admin' RETURNING 1",
    "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
    "VALUES ('demo', 'new@demo.example', 'New', 'admin', 'mine') RETURNING 1",
    "INSERT INTO sessions (token_hash, tenant_id, account_id, expires_at) SELECT sha256('mine'), 'demo', id, "
    "now() + interval '1 day' FROM accounts WHERE id <> %(self)s RETURNING 1",
    "UPDATE sessions SET proved_at = now() WHERE account_id <> %(self)s RETURNING 1",
    "DELETE FROM sessions WHERE account_id <> %(self)s RETURNING 1",
    "UPDATE sessions SET account_id = (SELECT id FROM accounts WHERE id <> %(self)s LIMIT 1) "
    "WHERE account_id = %(self)s RETURNING 1",
    "INSERT INTO one_time_links (token_hash, tenant_id, purpose, account_id, expires_at) SELECT sha256('mine'), "
    "'demo', 'set_password', id, now() + interval '1 day' FROM accounts WHERE id <> %(self)s RETURNING 1",
    "INSERT INTO one_time_links (token_hash, tenant_id, purpose, expires_at) "
    "VALUES (sha256('first'), 'demo', 'first_admin', now() + interval '1 day') RETURNING 1",
    "UPDATE one_time_links SET token_hash = sha256('mine') WHERE account_id <> %(self)s RETURNING 1",
    "DELETE FROM second_factors WHERE account_id <> %(self)s RETURNING 1",
    "DELETE FROM recovery_codes WHERE account_id <> %(self)s RETURNING 1",
    "INSERT INTO recovery_codes (account_id, code_hash, tenant_id) SELECT id, 'mine', 'demo' FROM accounts "
    "WHERE id <> %(self)s RETURNING 1",
    "UPDATE known_browsers SET failed_attempts = 100 WHERE account_id <> %(self)s RETURNING 1",
    "INSERT INTO api_keys (tenant_id, name, secret_hash, hint, scopes, is_operators) "
    "VALUES ('demo', 'Mine', sha256('mine'), 'rag_', '{admin}', true) RETURNING 1",
    "UPDATE api_keys SET scopes = '{admin}', secret_hash = sha256('mine') RETURNING 1",
    "INSERT INTO external_identities (subject_hash, tenant_id, account_id, issuer, subject) "
    "SELECT sha256('mine'), 'demo', id, 'https://id.example', 'me' FROM accounts WHERE id <> %(self)s RETURNING 1",
    "INSERT INTO connected_apps (tenant_id, account_id, name, host, client_id, scopes, resource, redirect_uri, "
    "code_challenge, code_hash, code_expires_at, expires_at) SELECT 'demo', id, 'P', 'h', 'c', '{search}', '/mcp', "
    "'u', 'c', sha256('mine'), now() + interval '1 day', now() + interval '1 day' FROM accounts WHERE id <> %(self)s "
    "RETURNING 1",
    "UPDATE tenants SET settings = '{}' RETURNING 1",
    "UPDATE tenants SET suspended_at = now() RETURNING 1",
    "UPDATE collections SET groups = '{}' RETURNING 1",
    "DELETE FROM collections RETURNING 1",
    "INSERT INTO collections (tenant_id, name, embedding_model) VALUES ('demo', 'mine', 'm') RETURNING 1",
    "INSERT INTO webhooks (tenant_id, name, address, events, secret) "
    "VALUES ('demo', 'Mine', 'https://attacker.example', '{question.asked}', 'x') RETURNING 1",
)  # fmt: skip


def rows(database: Database, who: Identity | str, statement: str) -> int:
    """How many rows a statement reads or changes as somebody; 0 where it is refused. Nothing of it stays."""
    with database.transaction(who) as connection, connection.transaction(force_rollback=True):
        try:
            self = who.account_id if isinstance(who, Identity) else None
            return connection.execute(statement.encode(), {"self": self}).rowcount
        except psycopg.errors.InsufficientPrivilege:
            return 0


def test_in_an_employees_transaction_no_statement_changes_a_right(database: Database, people: People) -> None:
    for other in (people.employee, replace(people.employee, role=Role.MANAGER)):
        assert [one for one in CHANGES if rows(database, other, one)] == []
    # Each asks for something that exists: an administrator's transaction may do it.
    assert [one for one in CHANGES if not rows(database, people.admin, one)] == []


#: What only its own person may see of how people sign in.
SECRETS = (
    "sessions", "one_time_links", "known_browsers", "second_factors", "recovery_codes", "connected_apps",
    "external_identities", "session_origins", "used_app_tokens",
)  # fmt: skip


def test_in_an_employees_transaction_nobody_elses_sign_in_is_seen(
    database: Database, people: People, superuser_conninfo: str
) -> None:
    for table in SECRETS:
        whose = "account_id" if table not in ("session_origins", "used_app_tokens") else "NULL::uuid"
        of_others = f"SELECT 1 FROM {table} WHERE {whose} IS DISTINCT FROM %(self)s"
        assert rows(database, people.employee, of_others) == 0, table
        with psycopg.connect(superuser_conninfo) as connection:
            there = connection.execute(of_others.encode(), {"self": people.employee.account_id}).rowcount
        assert there, table


#: Each would tell the hash of a password.
READINGS = (
    "SELECT password_hash FROM accounts",
    "SELECT * FROM accounts",
    "SELECT accounts FROM accounts",
    "SELECT to_jsonb(a) FROM accounts a",
    "SELECT 1 FROM accounts WHERE password_hash LIKE 'h%'",
    "UPDATE accounts SET name = password_hash",
    "UPDATE accounts SET name = name RETURNING password_hash",
    "COPY accounts TO STDOUT",
    "SELECT rag_password_hash(id) FROM accounts",
    # Saying so does not help: the identity is sealed.
    "SELECT set_config('rag.identity', (current_setting('rag.identity')::jsonb || jsonb_build_object('checks', "
    "(SELECT id FROM accounts LIMIT 1)))::text, true), rag_password_hash((SELECT id FROM accounts LIMIT 1))",
)  # fmt: skip


def test_no_statement_selects_the_hash_of_a_password(database: Database, people: People) -> None:
    for who in (people.employee, people.admin, "demo"):
        for statement in READINGS:
            with pytest.raises(psycopg.errors.InsufficientPrivilege), database.transaction(who) as connection:
                connection.execute(statement.encode())


def test_a_sign_in_reads_the_hash_of_the_account_that_it_names(database: Database, people: People) -> None:
    own, other = people.employee.account_id, people.admin.account_id
    read = "SELECT rag_password_hash(%s)"
    with database.transaction("demo", checks=own) as connection:
        assert connection.execute(read, (own,)).fetchone() == ("hash of employee",)
    with pytest.raises(psycopg.errors.InsufficientPrivilege), database.transaction("demo", checks=own) as connection:
        connection.execute(read, (other,))
    with database.transaction("other", checks=own) as connection:
        assert connection.execute(read, (own,)).fetchone() == (None,)


def test_a_password_that_changes_while_a_sign_in_waits_is_the_one_it_checks(
    database: Database, people: People, superuser_conninfo: str
) -> None:
    account_id = people.employee.account_id

    def checked(name: str) -> object:
        with database.transaction("demo", checks=account_id) as connection:
            return (connection.execute(queries[name], {"account_id": account_id}).fetchone() or ("",))[-1]

    with ThreadPoolExecutor(2) as threads:
        with (
            psycopg.connect(superuser_conninfo) as connection,
            psycopg.connect(superuser_conninfo, autocommit=True) as looking,
        ):
            connection.execute("UPDATE accounts SET password_hash = 'new' WHERE id = %s", (account_id,))
            waiting = [threads.submit(checked, name) for name in ("attempts_of_account", "checked_password")]
            until = time.monotonic() + patient(20)
            while looking.execute(WAITING).fetchone() != (2,):
                assert time.monotonic() < until
                time.sleep(0.02)
        assert [one.result(patient(20)) for one in waiting] == ["new", "new"]


def test_people_still_change_what_is_their_own(database: Database, people: People) -> None:
    for statement in (
        "UPDATE accounts SET language = 'de', password_hash = 'new' WHERE id = %(self)s",
        "DELETE FROM sessions WHERE account_id = %(self)s",
        "DELETE FROM one_time_links WHERE account_id = %(self)s",
        "DELETE FROM second_factors WHERE account_id = %(self)s",
        "DELETE FROM known_browsers WHERE account_id = %(self)s",
    ):
        assert rows(database, people.employee, statement) == 1, statement
