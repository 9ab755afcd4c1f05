"""The same migrations on a Supabase project, and what its REST API can then reach of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from postgrest import APIError
from psycopg import Connection, sql

from rag.providers.supabase import SupabaseProject
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.migrations import MIGRATIONS, migrate
from tests.standins.supabase import ANON, SERVICE, SupabaseStandin

VECTOR = "[1" + ",0" * 1535 + "]"
CALL = "SELECT content FROM match_document_chunks(%s::extensions.vector, %s, 0.0, 10)"


@contextmanager
def rest_call(project: str, role: str, claims: dict[str, object] | None = None) -> Iterator[Connection]:
    """A transaction as PostgREST makes it: its own role, then the token's, with the verified claims as a setting."""
    address = psycopg.conninfo.make_conninfo(project, user="authenticator", password="authenticator")
    with psycopg.connect(address) as connection:
        connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
        connection.execute("SELECT set_config('search_path', 'public, extensions', true)")
        if claims is not None:
            connection.execute("SELECT set_config('request.jwt.claims', %s, true)", (json.dumps(claims),))
        yield connection


def claims_of(tenant: object) -> dict[str, object]:
    return {"sub": "0", "role": "authenticated", "aud": "authenticated", "app_metadata": {"tenant": tenant}}


@pytest.fixture
def filled(project: str) -> str:
    """The project with our tables and a document with one passage for each of two tenants."""
    migrate(project)
    database = Database(project, sealing_key(project))
    database.open()
    for tenant in ("demo", "other"):
        with database.transaction(tenant) as connection:
            connection.execute("INSERT INTO tenants (id, name) VALUES (%s, %s)", (tenant, tenant))
            collection = connection.execute(
                "INSERT INTO collections (tenant_id, name, embedding_model) VALUES (%s, 'c', 'm') RETURNING id",
                (tenant,),
            ).fetchone()
            assert collection is not None
            for status in ("completed", "failed"):
                document = connection.execute(
                    "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status) "
                    "VALUES (%s, %s, 't', 'f', %s, %s) RETURNING id",
                    (tenant, collection[0], status, status),
                ).fetchone()
                assert document is not None
                connection.execute(
                    "INSERT INTO document_chunks (document_id, tenant_id, collection_id, content, embedding, "
                    "chunk_index) VALUES (%s, %s, %s, %s, %s, 0)",
                    (document[0], tenant, collection[0], f"{status} of {tenant}", VECTOR),
                )
    database.close()
    return project


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param(None, id="no_claims"),
        pytest.param({}, id="empty_claims"),
        pytest.param({"app_metadata": {}}, id="no_tenant"),
        pytest.param({"user_metadata": {"tenant": "demo"}}, id="tenant_named_by_the_user_themselves"),
        pytest.param(claims_of("nowhere"), id="unknown_tenant"),
        pytest.param(claims_of(["demo"]), id="tenant_is_no_text"),
    ],
)
def test_a_token_without_a_tenant_finds_nothing(filled: str, claims: dict[str, object] | None) -> None:
    with rest_call(filled, "authenticated", claims) as connection:
        assert connection.execute(CALL, (VECTOR, "demo")).fetchall() == []
        assert connection.execute("SELECT count(id) FROM document_chunks").fetchone() == (0,)


def test_the_token_decides_and_not_the_tenant_that_is_asked_for(filled: str) -> None:
    with rest_call(filled, "authenticated", claims_of("demo")) as connection:
        assert connection.execute(CALL, (VECTOR, "demo")).fetchall() == [("completed of demo",)]
        assert connection.execute(CALL, (VECTOR, "other")).fetchall() == []
        assert connection.execute("SELECT content FROM document_chunks").fetchall() == [("completed of demo",)]


def test_the_supabase_client_finds_the_signed_in_persons_tenant_only(filled: str, standin: SupabaseStandin) -> None:
    standin.database = psycopg.conninfo.make_conninfo(filled, user="authenticator", password="authenticator")
    standin.add_user("a@example.com", "a good password", tenant="demo")
    keys: dict[str, Any] = {"supabase_anon_key": ANON, "supabase_service_role_key": SERVICE}
    project = SupabaseProject(Settings(supabase_url=standin.url, **keys))
    embedding = [1.0, *[0.0] * 1535]
    with project.visitor() as client:
        with pytest.raises(APIError, match="permission denied"):
            client.rpc("match_document_chunks", {"query_embedding": embedding, "p_tenant_id": "demo"}).execute()
        client.auth.sign_in_with_password({"email": "a@example.com", "password": "a good password"})
        for tenant, expected in (("demo", ["completed of demo"]), ("other", [])):
            parameters = {"query_embedding": embedding, "p_tenant_id": tenant, "match_count": 5}
            rows = client.rpc("match_document_chunks", parameters).execute().data
            assert [row["content"] for row in rows] == expected  # type: ignore[call-overload, index, union-attr]
    project.close()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("UPDATE tenants SET suspended_at = now() WHERE id = 'demo'", id="suspended_tenant"),
        pytest.param(
            "INSERT INTO accounts (tenant_id, email, role, password_hash, is_active) "
            "VALUES ('demo', 'a@example.com', 'employee', '-', false)",
            id="disabled_account",
        ),
        pytest.param("UPDATE collections SET groups = '{board}' WHERE tenant_id = 'demo'", id="limited_collection"),
    ],
)
def test_a_token_that_is_still_good_finds_nothing_that_is_closed_by_now(filled: str, change: str) -> None:
    with psycopg.connect(filled) as connection:
        connection.execute(change)
    with rest_call(filled, "authenticated", {**claims_of("demo"), "email": "A@example.com"}) as connection:
        assert connection.execute(CALL, (VECTOR, "demo")).fetchall() == []


def test_a_visitor_without_an_account_may_not_search(filled: str) -> None:
    with rest_call(filled, "anon") as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(CALL, (VECTOR, "demo"))


@pytest.mark.parametrize("role", ["anon", "authenticated"])
def test_the_rest_api_reaches_no_table_of_ours(filled: str, role: str) -> None:
    rights = """
        SELECT c.relname, p FROM pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) p
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'm', 'p')
          AND has_table_privilege(%s, c.oid, p)
    """
    functions = """
        SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prorettype <> 'trigger'::regtype
          AND has_function_privilege(%s, oid, 'EXECUTE')
        -- These tell nothing but what the caller's own transaction says.
        EXCEPT VALUES ('rag_tenant'::name), ('rag_claimed_tenant'), ('rag_reads_all'), ('rag_group'), ('rag_verified')
    """
    with psycopg.connect(filled) as connection:
        assert connection.execute(rights, (role,)).fetchall() == []
        reachable = {row[0] for row in connection.execute(functions, (role,)).fetchall()}
    assert reachable == ({"match_document_chunks"} if role == "authenticated" else set())


def test_a_table_of_a_later_migration_is_closed_as_well(filled: str, tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    for path in MIGRATIONS.glob("*.sql"):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "20991231000000_later.sql").write_text("CREATE TABLE later (id int); GRANT SELECT ON later TO rag_app;")
    assert migrate(filled, folder) == ["20991231000000_later"]
    with rest_call(filled, "anon") as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT * FROM later")


def test_tables_of_the_neighbours_keep_their_rights(project: str) -> None:
    with psycopg.connect(project) as connection:
        connection.execute("CREATE TABLE public.neighbour (id int)")
    migrate(project)
    with rest_call(project, "anon") as connection:
        assert connection.execute("SELECT count(*) FROM neighbour").fetchone() == (0,)


def test_the_application_is_bound_by_row_level_security_though_its_login_is_not(filled: str) -> None:
    database = Database(filled, sealing_key(filled))
    database.open()
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT current_user, session_user").fetchone() == ("rag_app", "project")
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (2,)
    database.close()


def test_the_application_can_have_a_login_of_its_own(filled: str) -> None:
    with psycopg.connect(filled) as connection:
        connection.execute("ALTER ROLE rag_app LOGIN PASSWORD 'of-its-own'")
    address = psycopg.conninfo.make_conninfo(filled, user="rag_app", password="of-its-own")
    database = Database(address, sealing_key(filled))
    database.open()
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (2,)
        assert connection.execute(
            "SELECT session_user, has_database_privilege('rag_app', current_database(), 'TEMPORARY')"
        ).fetchone() == ("rag_app", False)
    with psycopg.connect(address) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SET ROLE project")
    database.close()


def test_what_the_supabase_command_line_applied_is_not_applied_again(project: str) -> None:
    with psycopg.connect(project) as connection:
        connection.execute("CREATE SCHEMA supabase_migrations")
        connection.execute(
            "CREATE TABLE supabase_migrations.schema_migrations "
            "(version text PRIMARY KEY, statements text[], name text)"
        )
        for path in sorted(MIGRATIONS.glob("*.sql"))[:-1]:
            connection.execute("SELECT set_config('search_path', 'public, extensions', true)")
            connection.execute(path.read_bytes())
            connection.execute(
                "INSERT INTO supabase_migrations.schema_migrations VALUES (%s)", (path.stem.partition("_")[0],)
            )
    migrate(project)
    with psycopg.connect(project) as connection:
        versions = {row[0] for row in connection.execute("SELECT version FROM supabase_migrations.schema_migrations")}
    assert versions == {path.stem.partition("_")[0] for path in MIGRATIONS.glob("*.sql")}
    assert migrate(project) == []


def test_the_names_of_the_migrations_are_those_the_supabase_command_line_reads() -> None:
    import re

    assert all(re.fullmatch(r"[0-9]{14}_[a-z_]+\.sql", path.name) for path in MIGRATIONS.glob("*.sql"))
