"""The migrations: one readable baseline, identical to what it replaced, and append-only from there on."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from procrastinate.schema import SchemaManager
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag.errors import DatabaseUnavailable
from rag.samples import SAMPLES
from rag.storage.embedded_postgres import BINARIES
from rag.storage.migrations import LAST_OF_BASELINE, LAST_REPLACED, MIGRATIONS, REPLACED, migrate
from tests.earlier_database import EARLIER_MIGRATIONS, earlier_database
from tests.standins.plain_server import PlainServer

CHECKSUMS = Path(__file__).parents[1] / "migrations.sha256"
PARTS = sorted(path.stem for path in MIGRATIONS.glob("*.sql") if path.stem[:14] <= LAST_OF_BASELINE)


def pinned() -> dict[str, str]:
    """SHA-256 by file name."""
    lines = (line.split() for line in CHECKSUMS.read_text("utf-8").splitlines())
    return {name: digest for digest, name in lines}


def test_a_migration_that_is_there_is_never_changed() -> None:
    for name, digest in pinned().items():
        path = MIGRATIONS / name
        assert path.is_file(), f"{name} was removed: databases have it. Put it back; changes go into a new file."
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        assert found == digest, f"{name} was changed: databases have it as it was. Changes go into a new file."


def test_a_new_migration_comes_after_the_baseline() -> None:
    known = pinned()
    new = [path.name for path in MIGRATIONS.glob("*.sql") if path.name not in known]
    assert all(name > LAST_OF_BASELINE for name in new), "Name it after its day, so that it comes last."


def test_the_queue_of_the_baseline_is_that_of_the_pinned_package() -> None:
    (queue,) = MIGRATIONS.glob(f"{LAST_OF_BASELINE[:11]}*_queue.sql")
    _, _, schema = queue.read_text("utf-8").partition("\n\n")
    assert schema.strip() == SchemaManager.get_schema().strip()


@contextmanager
def new_database(server: PlainServer, folder: Path) -> Iterator[str]:
    """A database that only the baseline has made."""
    folder.mkdir()
    with earlier_database(server, "", folder) as owner:
        for path in MIGRATIONS.glob("*.sql"):
            if path.stem in PARTS:
                shutil.copy(path, folder)
        assert migrate(owner, folder) == PARTS
        yield owner


def dumped(server: PlainServer, owner: str) -> list[str]:
    """The whole schema with owners, rights and policies, as pg_dump writes it."""
    address = make_conninfo(server.superuser, dbname=str(conninfo_to_dict(owner)["dbname"]))
    command = [str(BINARIES / "pg_dump"), "--schema-only", "--dbname", address]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line for line in text.splitlines() if not re.match(r"\\(un)?restrict ", line)]  # a key of each dump


def rows(server: PlainServer, owner: str) -> dict[str, int]:
    with psycopg.connect(server.superuser, dbname=str(conninfo_to_dict(owner)["dbname"])) as connection:
        found = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('public', 'rag_private') "
            "AND tablename <> 'rag_migrations'"
        ).fetchall()
        count = "SELECT count(*) FROM {}"
        return {
            name: connection.execute(sql.SQL(count).format(sql.Identifier(schema, name))).fetchall()[0][0]
            for schema, name in found
        }


def test_the_baseline_makes_what_the_migrations_it_replaced_made(server: PlainServer, tmp_path: Path) -> None:
    (tmp_path / "earlier").mkdir()
    with earlier_database(server, LAST_REPLACED, tmp_path / "earlier") as earlier:
        before, filled = dumped(server, earlier), rows(server, earlier)
        # Both carry the name of their database nowhere, so that they can be compared line by line.
        assert len(before) > 5000
    with new_database(server, tmp_path / "new") as new:
        assert dumped(server, new) == before
        assert rows(server, new) == filled
        assert filled.pop("sealing_key") == 1
        assert not any(filled.values())


def test_a_database_of_the_replaced_migrations_goes_on_as_it_is(server: PlainServer, tmp_path: Path) -> None:
    with earlier_database(server, LAST_REPLACED, tmp_path) as owner:
        with psycopg.connect(server.superuser, dbname=str(conninfo_to_dict(owner)["dbname"])) as connection:
            connection.execute("INSERT INTO tenants (id, name) VALUES ('demo', 'Demo')")
            key = connection.execute("SELECT key FROM rag_private.sealing_key").fetchone()
        assert migrate(owner)[: len(PARTS)] == PARTS
        assert migrate(owner) == []
        with psycopg.connect(server.superuser, dbname=str(conninfo_to_dict(owner)["dbname"])) as connection:
            assert connection.execute("SELECT id FROM tenants").fetchall() == [("demo",)]
            assert connection.execute("SELECT key FROM rag_private.sealing_key").fetchone() == key


def test_a_database_with_a_part_of_the_replaced_migrations_is_refused_and_left_alone(
    server: PlainServer, tmp_path: Path
) -> None:
    with earlier_database(server, "20261122112100", tmp_path) as owner:
        before = dumped(server, owner)
        with pytest.raises(DatabaseUnavailable, match=r"before 2026-11-22.*Start commit [0-9a-f]{7}"):
            migrate(owner)
        assert dumped(server, owner) == before


def test_what_the_supabase_command_line_applied_of_the_replaced_migrations_counts(
    server: PlainServer, tmp_path: Path
) -> None:
    with earlier_database(server, LAST_REPLACED, tmp_path) as owner:
        with psycopg.connect(owner) as connection:
            connection.execute("DROP TABLE rag_migrations")
            connection.execute("CREATE SCHEMA supabase_migrations")
            connection.execute("CREATE TABLE supabase_migrations.schema_migrations (version text PRIMARY KEY)")
            for path in EARLIER_MIGRATIONS.glob("*.sql"):
                connection.execute("INSERT INTO supabase_migrations.schema_migrations VALUES (%s)", (path.stem[:14],))
        assert migrate(owner)[: len(PARTS)] == PARTS
        with psycopg.connect(owner) as connection:
            versions = {r[0] for r in connection.execute("SELECT version FROM supabase_migrations.schema_migrations")}
    assert {name[:14] for name in PARTS} <= versions


def test_the_replaced_migrations_are_all_kept_for_these_tests() -> None:
    names = sorted(path.stem for path in EARLIER_MIGRATIONS.glob("*.sql"))
    assert len(names) == REPLACED
    assert names[-1].startswith(LAST_REPLACED)


def test_of_documents_stored_before_only_those_of_the_product_become_samples(
    server: PlainServer, tmp_path: Path
) -> None:
    handbook, other = SAMPLES[:2]
    with new_database(server, tmp_path / "baseline") as owner:
        for path in MIGRATIONS.glob("*.sql"):
            if path.stem < "20261128031000":
                shutil.copy(path, tmp_path / "baseline")
        migrate(owner, tmp_path / "baseline")
        with psycopg.connect(server.superuser, dbname=str(conninfo_to_dict(owner)["dbname"])) as connection:
            connection.execute("INSERT INTO tenants (id, name) VALUES ('demo', 'Demo')")
            connection.execute(
                "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
                "VALUES ('demo', 'admin@demo.example', 'Admin', 'admin', '')"
            )
            for name in ("General", "Own"):
                connection.execute(
                    "INSERT INTO collections (tenant_id, name, profile, embedding_model) "
                    "VALUES ('demo', %s, 'hr', 'm')",
                    [name],
                )
            for title, collection, sample, is_own, day in (
                ("of the product", "General", handbook, False, 1),
                ("from the command line", "Own", handbook, False, 2),
                ("of a person", "Own", other, True, 2),
            ):
                connection.execute(
                    "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status, added_by, "
                    "generate_metadata, created_at) SELECT 'demo', c.id, %s, 'handbook.pdf', %s, 'completed', "
                    "CASE WHEN %s THEN (SELECT id FROM accounts) END, false, make_date(2026, 11, %s) "
                    "FROM collections c WHERE c.name = %s",
                    [title, hashlib.sha256(sample.read()).hexdigest(), is_own, day, collection],
                )
        assert "20261128031000_samples" in migrate(owner)
        with psycopg.connect(server.superuser, dbname=str(conninfo_to_dict(owner)["dbname"])) as connection:
            found = connection.execute("SELECT title FROM documents WHERE is_sample").fetchall()
    assert found == [("of the product",)]
