"""The role of `python -m rag psql`: one tenant of the built-in database, to read."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from psycopg import Connection

from rag.storage.database import reading_as, sealing_key
from rag.storage.embedded_postgres import reader_environment, start_server
from rag.storage.migrations import migrate


def test_the_shell_reads_one_tenant_and_changes_nothing(tmp_path: Path) -> None:
    started: list[str] = []
    server = start_server(tmp_path / "data", on_start=lambda: started.append("the application"))
    try:
        beside = start_server(tmp_path / "data", on_start=lambda: started.append("a command beside it"))
        beside.stop()
        assert started == ["the application"]
        migrate(server.owner)
        with psycopg.connect(server.superuser, dbname="rag", autocommit=True) as connection:
            connection.execute("INSERT INTO tenants (id, name) VALUES ('demo', 'Demo'), ('other', 'Other')")
        given = reader_environment(server, reading_as(sealing_key(server.owner), "demo"))
        with psycopg.connect(
            host=given["PGHOST"], port=given["PGPORT"], dbname=given["PGDATABASE"], user=given["PGUSER"],
            password=given["PGPASSWORD"], options=given["PGOPTIONS"], autocommit=True,
        ) as reader:  # fmt: skip
            assert reader.execute("SELECT id FROM tenants").fetchall() == [("demo",)]
            # The statements of the HR document, as written.
            assert reader.execute("SELECT id, file_name, status, chunk_count FROM documents").fetchall() == []
            vector = "[1" + ",0" * 1535 + "]"
            found = f"SELECT * FROM match_document_chunks('{vector}'::vector, 'demo', 0.5, 10)"
            assert reader.execute(found).fetchall() == []
            for statement in (
                "DELETE FROM documents",
                "INSERT INTO tenants (id, name) VALUES ('third', 'Third')",
                "SELECT password_hash FROM accounts",
                "SELECT key FROM rag_private.sealing_key",
                "SELECT rag_enter('other')",
                "SET ROLE rag_app",
                "CREATE TABLE mine (x integer)",
                "CREATE TEMPORARY TABLE mine (x integer)",
            ):
                _refused(reader, statement)
            # Another tenant's name needs a seal that nobody here can make.
            reader.execute("""SELECT set_config('rag.identity', '{"tenant_id": "other", "reads": "all"}', false)""")
            assert reader.execute("SELECT id FROM tenants").fetchall() == []
    finally:
        server.stop()


def _refused(reader: Connection, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.execute(statement.encode())
