"""Tenants from beginning to end, groups of readers, and the record of what people change."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest

from rag.access.accounts import Accounts
from rag.access.api_keys import ApiKeys
from rag.access.sessions import Sessions
from rag.access.tenants import Tenants, all_tenants
from rag.errors import AccessError, InvalidInput, KeyRejected, NotAllowed, NotFound
from rag.records.audit import AuditLog
from rag.storage.database import Database, sealed
from rag.storage.files import FileStore
from rag.types import Collection, Identity, Role

PASSWORD = "a long enough password 7"


@pytest.fixture
def sessions(database: Database) -> Sessions:
    return Sessions(database)


@pytest.fixture
def accounts(database: Database, sessions: Sessions) -> Accounts:
    return Accounts(database, sessions)


@pytest.fixture
def admin(accounts: Accounts, sessions: Sessions) -> Identity:
    token = accounts.first_admin_link()
    assert token
    account = accounts.create_first_admin(token, "admin@demo.example", "Admin", PASSWORD)
    found = sessions.find(sessions.start(account))
    assert found
    return found


@pytest.fixture
def tenants(database: Database, owner_conninfo: str, tmp_path: Path) -> Tenants:
    return Tenants(database, FileStore(tmp_path / "files"), owner_conninfo)


def person(role: Role = Role.EMPLOYEE, group: str = "") -> Identity:
    return Identity(account_id=uuid4(), tenant_id="demo", email="p@demo.example", name="P", role=role, user_group=group)


def seen(database: Database, who: Identity | str, table: str) -> int:
    with database.transaction(who) as connection:
        found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert found
        return int(found[0])


@pytest.fixture
def restricted(database: Database, collection: Collection) -> UUID:
    """The collection is for the group Works council only, with a document, a page, a passage and a cost."""
    with database.transaction("demo") as connection:
        connection.execute("UPDATE collections SET groups = ARRAY['Works council']")
        row = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status) "
            "VALUES ('demo', %s, 'Minutes', 'm.pdf', 'x', 'completed') RETURNING id",
            (collection.id,),
        ).fetchone()
        assert row
        connection.execute(
            "INSERT INTO document_pages (document_id, number, tenant_id, text, characters, method) "
            "VALUES (%s, 1, 'demo', 'secret', 6, 'text')",
            row,
        )
        connection.execute(
            "INSERT INTO document_chunks (document_id, tenant_id, collection_id, content, chunk_index) "
            "VALUES (%s, 'demo', %s, 'secret', 0)",
            (row[0], collection.id),
        )
        connection.execute(
            "INSERT INTO cost_ledger (tenant_id, operation, provider, model, cost, document_id) "
            "VALUES ('demo', 'embedding', 'p', 'm', 1, %s)",
            row,
        )
    return UUID(str(row[0]))


@pytest.mark.parametrize("table", ["collections", "documents", "document_pages", "document_chunks", "cost_ledger"])
def test_a_collection_for_a_group_is_not_there_for_others(database: Database, restricted: UUID, table: str) -> None:
    assert seen(database, person(), table) == 0
    assert seen(database, person(group="Sales"), table) == 0
    assert seen(database, person(Role.MANAGER), table) == 0
    # What was paid is for managers.
    assert seen(database, person(group="Works council"), table) == (table != "cost_ledger")
    assert seen(database, person(Role.MANAGER, "Works council"), table) == 1
    assert seen(database, person(Role.ADMIN), table) == 1
    assert seen(database, "demo", table) == 1


def test_a_group_named_all_does_not_read_all(database: Database, restricted: UUID) -> None:
    assert seen(database, person(group="all"), "documents") == 0
    assert seen(database, person(group="all' OR true --"), "documents") == 0


def test_a_transaction_that_names_nobody_reads_what_is_open_to_everybody_only(
    database: Database, restricted: UUID
) -> None:
    with database.transaction("demo") as connection:
        connection.execute(
            "SELECT set_config('rag.identity', %(identity)s, true), set_config('rag.seal', %(seal)s, true)",
            sealed(database.key, {"tenant_id": "demo"}),
        )
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (0,)


# The audit log


def test_what_an_administrator_changes_is_on_record_with_before_and_after(
    database: Database, accounts: Accounts, admin: Identity
) -> None:
    added, _ = accounts.invite(admin, "new@demo.example", "New")
    accounts.change(admin, added.id, role=Role.MANAGER)
    log = AuditLog(database).entries(admin)
    assert [(e.actor, e.action, e.target) for e in log][:3] == [
        ("admin@demo.example", "account changed", "new@demo.example"),
        ("admin@demo.example", "password link added", "new@demo.example"),
        ("admin@demo.example", "account added", "new@demo.example"),
    ]
    assert log[0].changes == {"role": ["employee", "manager"]}


def test_secrets_are_on_record_as_changed_and_never_as_they_are(
    database: Database, accounts: Accounts, admin: Identity
) -> None:
    accounts.change_password(admin, PASSWORD, PASSWORD + " and more")
    (entry,) = AuditLog(database).entries(admin, kind="account")
    assert entry.changes == {"password_hash": "changed"}


def test_what_the_product_does_by_itself_is_not_on_record(
    database: Database, admin: Identity, restricted: UUID
) -> None:
    assert {entry.action for entry in AuditLog(database).entries(admin)} == {"sign-in succeeded"}


def test_the_record_can_be_neither_changed_nor_taken_back(
    database: Database, accounts: Accounts, admin: Identity
) -> None:
    accounts.invite(admin, "new@demo.example")
    for statement in ("UPDATE audit_log SET actor = 'x'", "DELETE FROM audit_log", "TRUNCATE audit_log"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege), database.transaction(admin) as connection:
            connection.execute(statement)


def test_a_change_that_is_rolled_back_leaves_no_record(database: Database, admin: Identity) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero), database.transaction(admin) as connection:
        connection.execute("UPDATE accounts SET name = 'x'").execute("SELECT 1 / 0")
    assert {entry.action for entry in AuditLog(database).entries(admin)} == {"sign-in succeeded"}


def test_only_administrators_read_the_record(database: Database) -> None:
    for who in (person(), person(Role.MANAGER)):
        with pytest.raises(NotAllowed):
            AuditLog(database).entries(who)


# Sessions of others


def test_an_administrator_ends_one_session_of_somebody_and_it_is_on_record(
    database: Database, accounts: Accounts, sessions: Sessions, admin: Identity
) -> None:
    added, _ = accounts.invite(admin, "new@demo.example")
    first, second = sessions.start(added, "Firefox"), sessions.start(added, "Chrome")
    listed = {s.user_agent: s.session_id for s in sessions.list(admin, added.id)}
    sessions.end_one(admin, added.id, listed["Firefox"])
    assert sessions.find(first) is None
    assert sessions.find(second) is not None
    assert AuditLog(database).entries(admin)[0].action == "session ended"


def test_nobody_else_sees_or_ends_the_sessions_of_another(
    accounts: Accounts, sessions: Sessions, admin: Identity
) -> None:
    added, _ = accounts.invite(admin, "new@demo.example")
    token = sessions.start(added)
    theirs = sessions.find(token)
    assert theirs
    with pytest.raises(NotAllowed):
        sessions.list(theirs, admin.account_id)
    with pytest.raises(NotAllowed):
        sessions.end_one(theirs, admin.account_id, admin.session_id)
    # Naming one's own account does not help to end a session that is another's.
    sessions.end_one(theirs, theirs.account_id, admin.session_id)
    sessions.refresh([admin.session_id])
    assert sessions.find_by_id(admin.session_id) is not None


# The life of a tenant


def test_a_new_tenant_gets_an_administrator_of_its_own(tenants: Tenants, accounts: Accounts) -> None:
    tenants.create("newcomer", "Newcomer")
    token = accounts.first_admin_link("newcomer")
    assert token
    made = accounts.create_first_admin(token, "a@newcomer.example", "A", PASSWORD)
    assert made.tenant_id == "newcomer"


@pytest.mark.parametrize("tenant_id", ["", "Demo", "a b", "../x", "-a", "x" * 64, "demo"])
def test_an_id_that_cannot_be_one_or_is_taken_is_refused(tenants: Tenants, tenant_id: str) -> None:
    with pytest.raises(InvalidInput):
        tenants.create(tenant_id)


def test_the_people_of_a_suspended_tenant_are_signed_out_until_it_resumes(
    tenants: Tenants, accounts: Accounts, sessions: Sessions, admin: Identity
) -> None:
    tenants.suspend("demo")
    sessions.refresh([admin.session_id])
    assert sessions.find_by_id(admin.session_id) is None
    with pytest.raises(AccessError, match="suspended"):
        accounts.sign_in("admin@demo.example", PASSWORD)
    tenants.resume("demo")
    assert accounts.sign_in("admin@demo.example", PASSWORD)


def test_an_export_holds_rows_and_originals_and_no_secret(
    tenants: Tenants, database: Database, admin: Identity, restricted: UUID, tmp_path: Path
) -> None:
    FileStore(tmp_path / "files").put("demo", b"the original")
    FileStore(tmp_path / "files").put("other", b"of another")
    tenants.export("demo", tmp_path / "demo.zip")
    with zipfile.ZipFile(tmp_path / "demo.zip") as archive:
        names = archive.namelist()
        everything = b"".join(archive.read(name) for name in names)
        rows = [json.loads(line) for line in archive.read("tables/document_pages.jsonl").splitlines()]
        manifest = json.loads(archive.read("manifest.json"))
    assert [row["text"] for row in rows] == ["secret"]
    assert manifest["rows"]["documents"] == 1
    assert manifest["files"] == 1
    assert b"the original" in everything
    assert b"argon2" not in everything
    assert b"of another" not in everything
    assert not [name for name in names if "keyword" in name]


def test_an_export_never_writes_over_a_file(tenants: Tenants, tmp_path: Path) -> None:
    (tmp_path / "there.zip").write_text("mine")
    with pytest.raises(Exception, match="there already"):
        tenants.export("demo", tmp_path / "there.zip")
    assert (tmp_path / "there.zip").read_text() == "mine"


def test_a_tenant_at_work_is_not_deleted(tenants: Tenants) -> None:
    with pytest.raises(InvalidInput, match="Suspend"):
        tenants.delete("demo")
    with pytest.raises(NotFound):
        tenants.delete("nobody")


def test_a_deleted_tenant_leaves_nothing_but_the_proof(
    tenants: Tenants, database: Database, admin: Identity, restricted: UUID, tmp_path: Path, superuser_conninfo: str
) -> None:
    files = FileStore(tmp_path / "files")
    files.put("demo", b"the original")
    kept = files.put("other", b"of another")
    tenants.suspend("demo")
    proof = tenants.delete("demo")
    assert proof.is_complete
    assert proof.rows_before["documents"] == 1
    assert (proof.files_before, proof.files_after) == (1, 0)
    assert files.get("other", kept) == b"of another"
    with psycopg.connect(superuser_conninfo) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid "
            "WHERE relkind IN ('r', 'p') AND attname = 'tenant_id' AND relname <> 'tenant_deletions' "
            "AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        for (table,) in tables:
            left = connection.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = 'demo'").fetchone()
            assert left == (0,), table
        noted = connection.execute("SELECT tenant_id, rows_before FROM tenant_deletions").fetchall()
    assert [(tenant, rows["documents"]) for tenant, rows in noted] == [("demo", 1)]


def test_only_whoever_owns_the_tables_sees_all_tenants(database: Database, owner_conninfo: str) -> None:
    assert [tenant.id for tenant in all_tenants(owner_conninfo)] == ["demo", "other"]
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT id FROM tenants").fetchall() == [("demo",)]


def test_the_keys_of_a_suspended_tenant_stop_and_their_making_is_on_record(
    tenants: Tenants, database: Database, admin: Identity
) -> None:
    keys = ApiKeys(database)
    _, secret = keys.create(admin, "Intranet", ["search"])
    (entry,) = AuditLog(database).entries(admin, kind="API")
    assert (entry.action, entry.target, entry.changes["scopes"]) == ("API key added", "Intranet", [None, ["search"]])
    assert secret not in repr(entry)
    assert keys.find(secret) is not None
    tenants.suspend("demo")
    with pytest.raises(KeyRejected):
        keys.find(secret)
    tenants.resume("demo")
    assert keys.find(secret) is not None
