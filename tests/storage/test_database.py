"""The wall between tenants, and what a bad database says."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from pgvector.psycopg import register_vector
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag.errors import DatabaseUnavailable, SettingsError
from rag.storage.database import Database
from rag.storage.embedded_postgres import start_server, stop_server
from rag.storage.migrations import MIGRATIONS, migrate, require_version
from rag.storage.sql import read_queries
from rag.types import Collection


def test_the_application_owns_nothing_and_cannot_bypass(superuser_conninfo: str) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        rights = connection.execute(
            "SELECT rolsuper, rolbypassrls, rolcreaterole, (SELECT count(*) FROM pg_class WHERE relowner = r.oid) "
            "FROM pg_roles r WHERE rolname = 'rag_app'"
        ).fetchone()
    assert rights == (False, False, False, 0)


def test_without_a_tenant_nothing_is_visible(database: Database, collection: Collection) -> None:
    count = "SELECT (SELECT count(*) FROM collections), (SELECT count(*) FROM tenants)"
    with database.transaction(None) as connection:
        assert connection.execute(count).fetchone() == (0, 0)
    with database.transaction("demo") as connection:
        assert connection.execute(count).fetchone() == (1, 1)
    with database.transaction("other") as connection:
        assert connection.execute(count).fetchone() == (0, 1)


def test_a_row_cannot_be_written_for_another_tenant(database: Database) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), database.transaction("other") as connection:
        connection.execute("INSERT INTO collections (tenant_id, name, embedding_model) VALUES ('demo', 'x', 'y')")


def test_the_tenant_does_not_outlive_its_transaction(database: Database) -> None:
    with database.transaction("demo"):
        pass
    with database._pool.connection() as connection:
        assert connection.execute("SELECT rag_tenant()").fetchone() == (None,)


def test_only_the_first_connection_asks_for_the_types_of_vectors(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others read vectors all the same; after an outage, they are asked for again."""
    registered: list[Connection] = []

    def register(connection: Connection) -> None:
        registered.append(connection)
        register_vector(connection)

    monkeypatch.setattr("rag.storage.database.register_vector", register)
    opened = Database(database.conninfo, database.key, maximum_connections=3)
    opened.open()
    with ExitStack() as stack:
        entered = [stack.enter_context(opened.transaction("demo")) for _ in range(3)]
        assert len({connection.info.backend_pid for connection in entered}) == 3
        for connection in entered:
            row = connection.execute("SELECT '[1,2]'::extensions.vector, '[1,2]'::extensions.halfvec").fetchone()
            assert row is not None
            assert (row[0].to_list(), row[1].to_list()) == ([1, 2], [1, 2])
    assert len(registered) == 1
    opened._check_pool()
    with ExitStack() as stack:
        for connection in [stack.enter_context(opened.transaction("demo")) for _ in range(3)]:
            connection.close()
    with opened.transaction("demo"):
        assert len(registered) > 1
    opened.close()


def test_what_was_spent_can_be_neither_changed_nor_deleted(database: Database) -> None:
    for statement in ("UPDATE cost_ledger SET cost = 0", "DELETE FROM cost_ledger"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege), database.transaction("demo") as connection:
            connection.execute(statement)


def test_a_vector_search_by_rpc_finds_only_the_own_tenant(database: Database, collection: Collection) -> None:
    vector = "[1" + ",0" * 1535 + "]"
    with database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status) "
            "VALUES ('demo', %s, 't', 'f.pdf', 'x', 'completed') RETURNING id",
            (collection.id,),
        ).fetchone()
        assert row is not None
        connection.execute(
            "INSERT INTO document_chunks (document_id, tenant_id, collection_id, content, embedding, chunk_index) "
            "VALUES (%s, 'demo', %s, 'the passage', %s, 0)",
            (row[0], collection.id, vector),
        )
    call = "SELECT content, similarity FROM match_document_chunks(%s::vector, 'demo')"
    with database.transaction("demo") as connection:
        assert connection.execute(call, (vector,)).fetchall() == [("the passage", 1.0)]
    with database.transaction("other") as connection:
        assert connection.execute(call, (vector,)).fetchall() == []


def test_the_function_for_vector_search_has_the_signature_and_result_of_its_document(database: Database) -> None:
    """Source 004, "Vector Search Function": names, types, order and defaults; callers by RPC name them."""
    with database.transaction("demo") as connection:
        row = connection.execute(
            "SELECT pg_get_function_arguments(oid), pg_get_function_result(oid) FROM pg_proc "
            "WHERE proname = 'match_document_chunks'"
        ).fetchone()
    assert row == (
        "query_embedding vector, p_tenant_id text, match_threshold double precision DEFAULT 0.7, "
        "match_count integer DEFAULT 5",
        "TABLE(id uuid, document_id uuid, content text, metadata jsonb, similarity double precision)",
    )


def test_vector_search_by_rpc_keeps_threshold_order_and_count(database: Database, collection: Collection) -> None:
    def vector(cosine: float) -> str:
        return f"[{cosine},{(1 - cosine**2) ** 0.5}" + ",0" * 1534 + "]"

    with database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status) "
            "VALUES ('demo', %s, 't', 'f.pdf', 'x', 'completed') RETURNING id",
            (collection.id,),
        ).fetchone()
        assert row is not None
        for number, cosine in enumerate((0.6, 0.75, 0.8, 0.9, 0.95, 0.97, 0.99)):
            connection.execute(
                "INSERT INTO document_chunks (document_id, tenant_id, collection_id, content, embedding, chunk_index) "
                "VALUES (%s, 'demo', %s, %s, %s, %s)",
                (row[0], collection.id, str(cosine), vector(cosine), number),
            )

        def matched(rest: str) -> list[str]:
            call = f"SELECT content FROM match_document_chunks(%s::vector, 'demo'{rest})"
            return [found[0] for found in connection.execute(call.encode(), (vector(1.0),)).fetchall()]

        assert matched("") == ["0.99", "0.97", "0.95", "0.9", "0.8"]
        assert matched(", 0.7, 10") == ["0.99", "0.97", "0.95", "0.9", "0.8", "0.75"]
        assert matched(", match_threshold => 0.5, match_count => 2") == ["0.99", "0.97"]
        assert matched(", 0.995") == []


def test_deleting_a_document_takes_its_keywords_out_of_the_counts(database: Database, collection: Collection) -> None:
    with database.transaction("demo") as connection:
        document = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256) "
            "VALUES ('demo', %s, 't', 'f.pdf', 'x') RETURNING id",
            (collection.id,),
        ).fetchone()
        assert document is not None
        chunk = connection.execute(
            "INSERT INTO document_chunks (document_id, tenant_id, collection_id, content, chunk_index) "
            "VALUES (%s, 'demo', %s, 'c', 0) RETURNING id",
            (document[0], collection.id),
        ).fetchone()
        assert chunk is not None
        connection.execute(
            "INSERT INTO keyword_documents (document_id, tenant_id, collection_id, language, first_passage, tokens, "
            "chunk_ids) VALUES (%s, 'demo', %s, 'en', 5, 7, ARRAY[%s])",
            (document[0], collection.id, chunk[0]),
        )
    counts = "SELECT chunks, tokens, (SELECT sum(passages) FROM keyword_tombstones) FROM keyword_totals"
    with database.transaction("demo") as connection:
        assert connection.execute(counts).fetchone() == (1, 7, None)
        connection.execute("DELETE FROM documents")
        assert connection.execute(counts).fetchone() == (0, 0, 1)


def test_migrations_are_applied_once(owner_conninfo: str) -> None:
    assert migrate(owner_conninfo) == []


def test_a_changed_migration_is_refused(owner_conninfo: str, tmp_path: Path) -> None:
    for path in MIGRATIONS.glob("*.sql"):
        (tmp_path / path.name).write_text(path.read_text("utf-8") + "\n-- changed", "utf-8")
    with pytest.raises(DatabaseUnavailable, match="was changed after it was applied"):
        migrate(owner_conninfo, tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("postgresql://nobody@127.0.0.1:1/none", id="nothing_listens"),
        pytest.param("not a url at all", id="not_a_url"),
    ],
)
def test_a_wrong_database_url_is_one_sentence(url: str) -> None:
    with pytest.raises(DatabaseUnavailable, match="DATABASE_URL"):
        migrate(url)


def test_a_postgres_that_is_too_old_is_named_before_anything_is_changed() -> None:
    with pytest.raises(DatabaseUnavailable, match=r"This is Postgres 14, but 15 or newer is needed"):
        require_version(140_012)
    require_version(150_000)


def test_the_server_runs_in_a_folder_with_spaces_and_hangul(tmp_path: Path) -> None:
    running = start_server(tmp_path / "인사 문서 folder")
    try:
        with psycopg.connect(running.application) as connection:
            assert connection.execute("SELECT current_user").fetchone() == ("rag_app",)
    finally:
        running.stop()


def test_the_server_refuses_whoever_has_no_password(tmp_path: Path) -> None:
    running = start_server(tmp_path / "data")
    try:
        # Where the folder's path is too long for a socket, it lies elsewhere.
        socket = Path(str(conninfo_to_dict(running.application)["host"]))
        for role in ("postgres", "rag_app", "rag_owner"):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(host=str(socket), user=role, dbname="postgres")
        assert socket.stat().st_mode & 0o077 == 0
        with psycopg.connect(running.owner) as connection:
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    finally:
        running.stop()


def test_the_log_of_the_server_holds_neither_statements_nor_rows(tmp_path: Path) -> None:
    running = start_server(tmp_path / "data")
    try:
        with psycopg.connect(running.owner, autocommit=True) as connection:
            connection.execute("CREATE TABLE said (question text CHECK (length(question) < 3))")
            with pytest.raises(psycopg.errors.CheckViolation, match="Is my salary right"):
                connection.execute("INSERT INTO said VALUES ('Is my salary right?')")
    finally:
        running.stop()
    log = (tmp_path / "data" / "postgres" / "server.log").read_text()
    assert 'violates check constraint "said_question_check"' in log
    assert "salary" not in log


def test_a_killed_server_starts_again_with_its_data(tmp_path: Path) -> None:
    import os
    import signal

    first = start_server(tmp_path / "data")
    with psycopg.connect(first.owner) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    process = int((tmp_path / "data" / "postgres" / "postmaster.pid").read_text().splitlines()[0])
    os.kill(process, signal.SIGKILL)
    second = start_server(tmp_path / "data")
    try:
        with psycopg.connect(second.owner) as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
    finally:
        first.stop()
        second.stop()
    assert not (tmp_path / "data" / "postgres" / "postmaster.pid").exists()


def test_the_server_of_another_folder_is_never_stopped(tmp_path: Path) -> None:
    """A pid file left by a crash may name a process that is now another folder's server."""
    running = start_server(tmp_path / "other")
    try:
        (tmp_path / "data" / "postgres").mkdir(parents=True)
        left = (running.folder / "postgres" / "postmaster.pid").read_text()
        (tmp_path / "data" / "postgres" / "postmaster.pid").write_text(left)
        stop_server(tmp_path / "data")
        with psycopg.connect(running.application):
            pass
    finally:
        running.stop()


def test_an_unwritable_data_folder_is_one_sentence(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(SettingsError, match="Set RAG_DATA_DIR"):
        start_server(blocked / "data")


def test_a_statement_name_used_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- one --\nSELECT 1;\n")
    (tmp_path / "b.sql").write_text("-- one --\nSELECT 2;\n")
    with pytest.raises(ValueError, match="two statements are called one"):
        read_queries(tmp_path)


def test_the_last_process_to_leave_stops_the_server(tmp_path: Path) -> None:
    first, second = start_server(tmp_path / "data"), start_server(tmp_path / "data")
    first.stop()
    with psycopg.connect(second.application):
        pass
    second.stop()
    second.stop()
    assert not (tmp_path / "data" / "postgres" / "postmaster.pid").exists()


def test_a_role_that_may_not_become_the_applications_is_told_what_to_grant(superuser_conninfo: str) -> None:
    with psycopg.connect(superuser_conninfo, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS stranger")
        connection.execute("CREATE ROLE stranger LOGIN PASSWORD 'x'")
    database = Database(make_conninfo(superuser_conninfo, user="stranger", password="x"))
    with pytest.raises(DatabaseUnavailable, match="GRANT rag_app TO"):
        database.open()


def test_the_statements_of_the_hr_document_work_as_written(database: Database, collection: Collection) -> None:
    """Source 004, "Tables" and "Debug queries": rows that name only what its tables have."""
    vector = "[1" + ",0" * 1535 + "]"
    with database.transaction("demo") as connection:
        document = connection.execute(
            "INSERT INTO documents (tenant_id, file_name, status) "
            "VALUES ('demo', 'leave.pdf', 'completed') RETURNING id"
        ).fetchone()
        assert document is not None
        connection.execute("INSERT INTO documents (tenant_id, file_name) VALUES ('demo', 'leave.pdf')")
        connection.execute(
            "INSERT INTO document_chunks (document_id, tenant_id, content, embedding, chunk_index) "
            "VALUES (%s, 'demo', 'Annual leave', %s, 0)",
            (document[0], vector),
        )
        rows = connection.execute(
            "SELECT id, file_name, status, chunk_count FROM documents WHERE tenant_id = 'demo' ORDER BY status"
        ).fetchall()
        assert [row[1:] for row in rows] == [("leave.pdf", "completed", 0), ("leave.pdf", "processing", 0)]
        row = connection.execute(
            "SELECT LENGTH(content), embedding IS NOT NULL FROM document_chunks WHERE tenant_id = 'demo' LIMIT 10"
        ).fetchone()
        assert row == (12, True)
        found = connection.execute(
            f"SELECT * FROM match_document_chunks('{vector}'::vector, 'demo', 0.5, 10)"
        ).fetchall()
        assert [(row[1], row[2], row[4]) for row in found] == [(document[0], "Annual leave", 1.0)]
    with pytest.raises(psycopg.errors.RaiseException, match="has no collection"), database.transaction("other") as none:
        none.execute("INSERT INTO documents (tenant_id, file_name) VALUES ('other', 'leave.pdf')")
