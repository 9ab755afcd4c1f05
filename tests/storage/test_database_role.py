"""What somebody can do who may send any statement as the application's role: nothing beyond their own tenant.

The attacks are tried on functions that are bound to nothing too, where each succeeds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import Connection
from psycopg.conninfo import make_conninfo

from rag.api.health import check_rag_health
from rag.errors import DatabaseUnavailable
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import ENTER, WORKER, Database, entering, sealed, sealing_key
from rag.storage.embedded_postgres import DATABASE, start_server
from rag.storage.migrations import migrate
from rag.storage.sql import queries
from rag.types import Collection, Identity, Role
from tests.earlier_database import as_superuser, earlier_database
from tests.standins.plain_server import PlainServer

ACCOUNT = uuid4()

#: Says who runs it, from within whatever it was smuggled into, and stands before everything else.
EVIL = """
SET LOCAL search_path = pg_temp, public, extensions;
CREATE FUNCTION pg_temp.evil() RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'this runs as %', current_user; END $$;
CREATE FUNCTION pg_temp.evil_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_user <> 'rag_app' THEN
        RAISE EXCEPTION 'this runs as %', current_user;
    END IF;
    RETURN NEW;
END
$$;
"""
SHADOWED_TENANTS = """
CREATE VIEW pg_temp.tenants AS
    SELECT 'demo'::text AS id, NULL::timestamptz AS suspended_at WHERE pg_temp.evil();
GRANT SELECT ON pg_temp.tenants TO PUBLIC;
"""
SHADOWED_LOG = """
CREATE TABLE pg_temp.audit_log (tenant_id text, account_id uuid, actor text, action text, target_id text, target text,
                                thing_id text, changes jsonb);
GRANT ALL ON pg_temp.audit_log TO PUBLIC;
CREATE TRIGGER evil BEFORE INSERT ON pg_temp.audit_log FOR EACH ROW EXECUTE FUNCTION pg_temp.evil_trigger();
"""


@contextmanager
def as_application(conninfo: str, key: bytes, tenant: str = "demo") -> Iterator[Connection]:
    """A transaction of an administrator."""
    who = Identity(account_id=ACCOUNT, tenant_id=tenant, email="a@demo.example", name="A", role=Role.ADMIN)
    with psycopg.connect(conninfo) as connection:
        connection.execute(ENTER, entering(key, who))
        yield connection


@pytest.fixture
def unguarded(database: Database, superuser_conninfo: str) -> Database:
    """The application may make temporary tables, and functions find names as their caller does."""
    with psycopg.connect(superuser_conninfo) as connection:
        fill(connection)
        connection.execute(f'GRANT TEMPORARY ON DATABASE "{connection.info.dbname}" TO rag_app'.encode())
        for function in ("public.rag_claimed_tenant()", "public.audit_change()"):
            found = connection.execute("SELECT pg_get_functiondef(%s::regprocedure)", (function,)).fetchone()
            assert found is not None
            loose, removed = re.subn(r"\n SET search_path TO [^\n]*|(?<=FROM |INTO )public\.", "", found[0])
            assert removed > 1
            connection.execute(loose.encode())
    return database


def fill(connection: Connection) -> None:
    """A collection with a document of tenant `demo`."""
    found = connection.execute(
        "INSERT INTO public.collections (tenant_id, name, embedding_model) VALUES ('demo', 'c', 'm') RETURNING id"
    ).fetchone()
    assert found is not None
    connection.execute(
        "INSERT INTO public.documents (tenant_id, collection_id, title, file_name, sha256) "
        "VALUES ('demo', %s, 't', 'f', 'x')",
        found,
    )


def claimed_tenant(connection: Connection) -> None:
    connection.execute(EVIL + SHADOWED_TENANTS)
    claims = json.dumps({"app_metadata": {"tenant": "demo"}})
    connection.execute("SELECT set_config('request.jwt.claims', %s, true)", (claims,))
    connection.execute("SELECT rag_claimed_tenant()")


def audit_of_a_cascade(connection: Connection) -> None:
    connection.execute(EVIL + SHADOWED_LOG)
    # The documents of a deleted collection are deleted by the owner of the tables.
    connection.execute("DELETE FROM public.collections")


ATTACKS = [pytest.param(claimed_tenant, id="claimed_tenant"), pytest.param(audit_of_a_cascade, id="audit_of_a_cascade")]


@pytest.mark.parametrize("attack", ATTACKS)
def test_functions_that_are_not_bound_run_what_was_smuggled_in_as_the_owner(
    attack: object, unguarded: Database
) -> None:
    assert callable(attack)
    with (
        pytest.raises(psycopg.errors.RaiseException, match="this runs as rag_owner"),
        as_application(unguarded.conninfo, unguarded.key) as connection,
    ):
        attack(connection)


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_application_can_make_nothing_that_stands_before_the_real_tables(
    attack: object, database: Database
) -> None:
    assert callable(attack)
    with (
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="temporary"),
        as_application(database.conninfo, database.key) as connection,
    ):
        attack(connection)


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_stands_before_the_real_tables_is_not_run_by_the_owner(
    attack: object, database: Database, superuser_conninfo: str
) -> None:
    """Where temporary tables are allowed all the same, by somebody else's hand."""
    assert callable(attack)
    with psycopg.connect(superuser_conninfo) as connection:
        fill(connection)
        connection.execute(f'GRANT TEMPORARY ON DATABASE "{connection.info.dbname}" TO rag_app'.encode())
    with as_application(database.conninfo, database.key) as connection:
        attack(connection)
    with database.transaction("demo") as connection:
        log = connection.execute("SELECT DISTINCT action FROM public.audit_log").fetchall()
    assert ("document deleted" in {action for (action,) in log}) is (attack is audit_of_a_cascade)


def test_an_upgraded_database_is_closed_when_it_is_migrated(server: PlainServer) -> None:
    with earlier_database(server) as owner:
        with psycopg.connect(as_superuser(server, owner)) as connection:
            connection.execute(f'GRANT TEMPORARY ON DATABASE "{connection.info.dbname}" TO PUBLIC'.encode())
            application = make_conninfo(server.application, dbname=connection.info.dbname)
        migrate(owner)
        for attack in (claimed_tenant, audit_of_a_cascade):
            with (
                pytest.raises(psycopg.errors.InsufficientPrivilege, match="temporary"),
                as_application(application, sealing_key(owner)) as connection,
            ):
                attack(connection)


def test_the_login_of_the_application_can_become_nobody_else(database: Database) -> None:
    for role in ("rag_owner", "postgres"):
        with psycopg.connect(database.conninfo) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT set_config('role', %s, false)", (role,))
    with database.transaction("demo") as connection:
        connection.execute("SELECT set_config('role', 'none', true)")
        assert connection.execute("SELECT current_user").fetchone() == ("rag_app",)


# The tenant


def test_what_a_statement_changed_of_its_own_role_ends_with_the_next_start(tmp_path: Path) -> None:
    server = start_server(tmp_path)
    try:
        with psycopg.connect(server.application, autocommit=True) as connection:
            connection.execute("ALTER ROLE rag_app SET statement_timeout = 1")
            connection.execute(f"ALTER ROLE rag_app IN DATABASE {DATABASE} SET search_path = 'pg_temp'")
            connection.execute("ALTER ROLE rag_app PASSWORD 'of somebody else'")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.application)
    finally:
        server.stop()
    server = start_server(tmp_path)
    try:
        with psycopg.connect(server.application) as connection:
            assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)
            assert connection.execute("SHOW search_path").fetchone() == ('"$user", public',)
    finally:
        server.stop()


def test_a_statement_cannot_name_another_tenant(database: Database, superuser_conninfo: str) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        fill(connection)
    forged = json.dumps({"tenant_id": "demo", "reads": "all"})
    with database.transaction("other") as connection:
        own = connection.execute("SELECT current_setting('rag.seal')").fetchone()
        assert own is not None
        for seal in (*own, "", "0" * 64, sealed(b"", {"tenant_id": "demo", "reads": "all"})["seal"]):
            connection.execute(
                "SELECT set_config('rag.identity', %s, true), set_config('rag.seal', %s, true), "
                "set_config('rag.tenant_id', 'demo', true), set_config('rag.reads', 'all', true)",
                (forged, seal),
            )
            assert connection.execute("SELECT count(*) FROM documents").fetchone() == (0,)
            assert connection.execute("SELECT rag_tenant(), rag_account(), rag_reads_all()").fetchone() == (
                None,
                None,
                False,
            )
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (1,)


def test_a_person_cannot_become_another_of_their_tenant(database: Database) -> None:
    employee = Identity(account_id=uuid4(), tenant_id="demo", email="e@demo.example", name="E", role=Role.EMPLOYEE)
    with database.transaction(employee) as connection:
        told = connection.execute("SELECT current_setting('rag.identity')").fetchone()
        assert told is not None
        connection.execute(
            "SELECT set_config('rag.identity', %s, true)", (json.dumps({**json.loads(told[0]), "reads": "all"}),)
        )
        assert connection.execute("SELECT rag_reads_all()").fetchone() == (False,)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT key FROM rag_private.sealing_key",
        "SELECT rag_enter('other')",
        "SELECT rag_close_database()",
        "CREATE TABLE public.mine (id int)",
        "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql RETURN 1",
        "ALTER FUNCTION rag_tenant() SECURITY DEFINER",
        "SELECT lo_create(0)",
        "SELECT lo_creat(-1)",
        "SELECT lo_from_bytea(0, 'what no tenant owns')",
        "SELECT lo_put(1, 0, 'x')",
    ],
)
def test_what_guards_the_tenants_is_out_of_reach(statement: str, database: Database) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), database.transaction("demo") as connection:
        connection.execute(statement.encode())


def test_an_address_or_a_hash_is_presented_by_the_application_alone(
    database: Database, superuser_conninfo: str
) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute(
            "INSERT INTO accounts (tenant_id, email, role, password_hash) "
            "VALUES ('demo', 'a@demo.example', 'admin', 'the hash')"
        )
    read = "SELECT email FROM accounts"
    with database.transaction(None, email="a@demo.example") as connection:
        assert connection.execute(read).fetchall() == [("a@demo.example",)]
    with database.transaction("other") as connection:
        connection.execute(
            "SELECT set_config('rag.email', 'a@demo.example', true), "
            "set_config('rag.identity', '{\"email\": \"a@demo.example\"}', true)"
        )
        assert connection.execute(read).fetchall() == []


@pytest.mark.parametrize("email", ["a\x00@demo.example", "\ud800@demo.example", 'a"}@demo.example', "a\n@x.example"])
def test_an_address_of_odd_characters_finds_nothing_and_breaks_nothing(email: str, database: Database) -> None:
    with database.transaction(None, email=email) as connection:
        assert connection.execute("SELECT count(*) FROM accounts").fetchone() == (0,)


def test_the_owner_enters_a_tenant_by_name(owner_conninfo: str, superuser_conninfo: str) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        fill(connection)
    with psycopg.connect(owner_conninfo) as connection:
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (0,)
        connection.execute("SELECT rag_enter('demo')")
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (1,)


def test_the_key_is_told_to_the_owner_alone(database: Database, owner_conninfo: str) -> None:
    assert sealing_key(owner_conninfo) == database.key
    with pytest.raises(DatabaseUnavailable, match="MIGRATION_DATABASE_URL"):
        sealing_key(database.conninfo)


# What the role may do


def test_a_tenants_row_and_its_audit_log_cannot_be_deleted(database: Database, collection: Collection) -> None:
    admin = Identity(account_id=uuid4(), tenant_id="demo", email="a@demo.example", name="A", role=Role.ADMIN)
    with database.transaction(admin) as connection:
        connection.execute("UPDATE collections SET name = 'Other'")
    for statement in (
        "DELETE FROM tenants",
        "UPDATE tenants SET id = 'mine'",
        "TRUNCATE audit_log",
        "DELETE FROM audit_log",
        "UPDATE audit_log SET actor = 'nobody'",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege), database.transaction(admin) as connection:
            connection.execute(statement.encode())
    with database.transaction(admin) as connection:
        assert connection.execute("SELECT count(*) FROM audit_log").fetchone() == (1,)


def test_the_queue_of_others_and_its_workers_are_the_workers_alone(database: Database) -> None:
    with database.transaction(WORKER) as connection:
        registered = connection.execute("SELECT * FROM procrastinate_register_worker_v1()").fetchone()
        connection.execute(queries["enqueue"], {"tenant_id": "other", "document_id": str(uuid4())})
    assert registered is not None
    with database.transaction("demo") as connection:
        for table in ("workers", "jobs", "events", "periodic_defers"):
            found = connection.execute(f"SELECT count(*) FROM procrastinate_{table}".encode()).fetchone()
            assert found == (0,), table
        assert connection.execute("DELETE FROM procrastinate_workers").rowcount == 0
        assert connection.execute("UPDATE procrastinate_workers SET last_heartbeat = now()").rowcount == 0
    for statement in (
        "SELECT procrastinate_register_worker_v1()",
        "INSERT INTO procrastinate_periodic_defers (task_name, defer_timestamp) VALUES ('t', 1)",
        "INSERT INTO procrastinate_events (job_id, type) VALUES (1, 'failed')",
        "INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES ('q', 't', '{\"tenant_id\": \"other\"}')",
        "INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('q', 't')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege), database.transaction("demo") as connection:
            connection.execute(statement.encode())
    # Nor by naming nobody at all.
    with database.transaction(None) as connection:
        assert connection.execute("SELECT count(*) FROM procrastinate_jobs").fetchone() == (0,)


#: The functions that act as the owner: each checks for itself what it is asked for.
AS_OWNER = (
    "rag_verified", "rag_claimed_tenant", "rag_take_turn", "rag_drop_unused_indexes", "rag_password_hash",
    "rag_name_of", "rag_address_of",
)  # fmt: skip

#: What triggers do as whoever changes a row, and the queue's library.
BESIDE_STATEMENTS = {
    "keyword_totals": {"INSERT", "UPDATE"},
    "keyword_tombstones": {"INSERT"},
    "chunk_bits": {"INSERT", "DELETE"},
    "chunk_terms": {"DELETE"},
    "keyword_documents": {"DELETE"},
    "meaning_vectors": {"DELETE"},
    "page_corrections": {"DELETE"},
    "rolled_days": {"DELETE"},
    "rolled_weeks": {"DELETE"},
    "tenant_changes": {"INSERT", "UPDATE"},
    "history_changes": {"INSERT", "UPDATE", "DELETE"},
    "webhook_deliveries": {"INSERT"},
    "gap_meanings": {"INSERT", "UPDATE", "DELETE"},
    "procrastinate_workers": {"INSERT", "UPDATE", "DELETE"},
    "procrastinate_events": {"INSERT"},
    "procrastinate_periodic_defers": {"UPDATE"},
}


def written_by_statements() -> dict[str, set[str]]:
    """Which tables the statements of `rag/storage/sql` insert into, update and delete from."""
    written: dict[str, set[str]] = {}
    for statement in queries.values():
        for kind, table in re.findall(r"\b(INSERT INTO|DELETE FROM|UPDATE)\s+([a-z_]+)", statement):
            written.setdefault(table, set()).add(kind.split()[0])
        for table, rest in re.findall(r"INSERT INTO ([a-z_]+)(.*)", statement, re.DOTALL):
            if "DO UPDATE" in rest:
                written[table].add("UPDATE")
    return written


def test_the_application_may_write_what_its_statements_write_and_no_more(superuser_conninfo: str) -> None:
    """A right that nobody uses fails here: take it away in the migration that gives it."""
    used = written_by_statements()
    with psycopg.connect(superuser_conninfo) as connection:
        granted = connection.execute(
            "SELECT c.relname, a.privilege_type FROM pg_class c, aclexplode(c.relacl) a "
            "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') "
            "AND a.privilege_type <> 'SELECT' "
            "AND a.grantee IN (0, 'rag_app'::regrole)"
        ).fetchall()
    unused = [
        (table, right)
        for table, right in granted
        if right not in used.get(table, set()) | BESIDE_STATEMENTS.get(table, set())
    ]
    assert unused == []
    # Only the owner takes a tenant away.
    assert ("tenants", "DELETE") not in granted


def test_every_function_is_bound_to_its_names_and_closed_to_the_public(superuser_conninfo: str) -> None:
    """A function finds nothing by a path into which its caller can put something, and is called by whom it is for.

    Its body is of standard SQL, bound when it is made, or its path ends with `pg_temp`, which else stands before all.
    Our own name every schema, so their path holds nothing else; the queue's library names none.
    """
    with psycopg.connect(superuser_conninfo) as connection:
        rows = connection.execute(
            "SELECT p.proname, p.prosqlbody IS NOT NULL, p.prosecdef, p.prorettype = 'trigger'::regtype, "
            "(SELECT substring(setting FROM '^search_path=(.*)$') FROM unnest(p.proconfig) AS setting "
            "  WHERE setting LIKE 'search_path=%'), "
            "has_function_privilege('public', p.oid, 'EXECUTE'), has_function_privilege('rag_app', p.oid, 'EXECUTE') "
            "FROM pg_proc p WHERE p.pronamespace::regnamespace::text IN ('public', 'rag_private')"
        ).fetchall()
    assert len(rows) > 30
    for name, is_bound, is_definer, is_trigger, path, is_public, is_ours_to_call in rows:
        allowed = "pg_catalog, public, pg_temp" if name.startswith("procrastinate_") else "pg_catalog, pg_temp"
        # Their statements have operators of pgvector, which is in either schema; they act as their caller.
        allowed = "public, extensions, pg_temp" if name in {"rag_nearest_by_index", "rag_furthest_bits"} else allowed
        assert is_bound or path == allowed, f"{name}: SET search_path = {allowed}"
        assert not is_public, f"{name}: REVOKE ALL ON FUNCTION … FROM PUBLIC (rag_close_rest_api does, by its name)"
        # What acts as the owner is known by name.
        assert not is_definer or name in AS_OWNER, name
        if name in ("rag_enter", "rag_close_database", "rag_close_rest_api"):
            assert not is_ours_to_call, name
        elif not is_trigger:
            assert is_ours_to_call, name


def test_nobody_may_make_temporary_tables_but_the_owner(superuser_conninfo: str, owner_conninfo: str) -> None:
    asked = "SELECT has_database_privilege(%s, current_database(), 'TEMPORARY')"
    with psycopg.connect(superuser_conninfo) as connection:
        assert connection.execute(asked, ("rag_app",)).fetchone() == (False,)
        connection.execute(f'GRANT TEMPORARY ON DATABASE "{connection.info.dbname}" TO PUBLIC'.encode())
    assert migrate(owner_conninfo) == []  # as every start does
    with psycopg.connect(superuser_conninfo) as connection:
        assert connection.execute(asked, ("rag_app",)).fetchone() == (False,)


# What doctor says


@pytest.mark.parametrize(("login", "state"), [("application", "ok"), ("owner", "warning"), ("superuser", "warning")])
def test_doctor_complains_of_a_login_that_is_more_than_the_application(
    login: str, state: str, server: PlainServer, database_name: str, settings: Settings
) -> None:
    database = Database(make_conninfo(getattr(server, login), dbname=database_name), server.key)
    database.open()
    parts: Services = assemble(settings, database)
    try:
        (check,) = (check for check in check_rag_health(parts).checks if check.name == "Database role")
    finally:
        parts.close()
    assert check.state == state, check.sentence
    assert ("MIGRATION_DATABASE_URL" in check.detail) is (state == "warning")


def test_doctor_complains_of_temporary_tables(
    app_services: Services, superuser_conninfo: str, collection: Collection
) -> None:
    assert isinstance(collection.id, UUID)
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute(f'GRANT TEMPORARY ON DATABASE "{connection.info.dbname}" TO PUBLIC'.encode())
    (check,) = (check for check in check_rag_health(app_services).checks if check.name == "Database role")
    assert check.state == "warning"
    assert "REVOKE TEMPORARY" in check.detail
