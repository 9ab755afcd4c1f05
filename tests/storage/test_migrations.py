"""The migrations: one readable baseline, identical to what it replaced, and append-only from there on."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from itertools import groupby
from pathlib import Path

import psycopg
import pytest
from procrastinate.schema import SchemaManager
from psycopg import sql

from rag.errors import DatabaseUnavailable
from rag.storage.embedded_postgres import BINARIES
from rag.storage.migrations import (
    FIRST_REPLACED,
    LAST_OF_BASELINE,
    LAST_REPLACED,
    MIGRATIONS,
    REPLACED,
    migrate,
)
from tests.earlier_database import EARLIER_MIGRATIONS, as_superuser, earlier_database
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
    (queue,) = MIGRATIONS.glob("*_queue.sql")
    _, _, schema = queue.read_text("utf-8").partition("\n\n")
    assert schema.strip() == SchemaManager.get_schema().strip()


def copied(migrations: Path, folder: Path, last: str) -> Path:
    """A folder with the migrations up to the one numbered `last`."""
    folder.mkdir()
    for path in migrations.glob("*.sql"):
        if path.stem[:14] <= last:
            shutil.copy(path, folder)
    return folder


def dumped(server: PlainServer, owner: str) -> list[str]:
    """The whole schema with owners, rights and policies, as pg_dump writes it.

    Who was given rights on a thing first is not part of it: consecutive grants are sorted.
    """
    command = [str(BINARIES / "pg_dump"), "--schema-only", "--dbname", as_superuser(server, owner)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line for line in text.splitlines() if not re.match(r"\\(un)?restrict ", line)]  # a key of each dump
    blocks = groupby(lines, key=lambda line: line.startswith("GRANT "))
    return [line for are_grants, block in blocks for line in (sorted(block) if are_grants else block)]


def rows(server: PlainServer, owner: str) -> dict[str, int]:
    with psycopg.connect(as_superuser(server, owner)) as connection:
        found = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables "
            "WHERE schemaname IN ('public', 'rag_private', 'rag_partitions') AND tablename <> 'rag_migrations'"
        ).fetchall()
        count = "SELECT count(*) FROM {}"
        return {
            name: connection.execute(sql.SQL(count).format(sql.Identifier(schema, name))).fetchall()[0][0]
            for schema, name in found
        }


#: What pg_dump leaves out: rights that every new object gets, settings of roles and of the database.
BESIDE_THE_SCHEMA = """
SELECT 'default rights', defaclrole::regrole::text, defaclobjtype::text, defaclacl::text FROM pg_default_acl
UNION ALL SELECT 'setting', setdatabase::text, setrole::regrole::text, setconfig::text
FROM pg_db_role_setting WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
UNION ALL SELECT 'rights on the database', unnest(datacl)::text, '', ''
FROM pg_database WHERE datname = current_database()
UNION ALL SELECT 'storage of a column', attrelid::regclass::text, attname, attstorage::text
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace::regnamespace::text IN ('public', 'rag_private', 'rag_partitions') AND attnum > 0
  AND NOT attisdropped
ORDER BY 1, 2, 3, 4
"""


def test_the_baseline_makes_what_the_migrations_it_replaced_made(server: PlainServer, tmp_path: Path) -> None:
    def state(owner: str) -> tuple[list[str], list[tuple[str, ...]], dict[str, int]]:
        with psycopg.connect(as_superuser(server, owner)) as connection:
            beside = connection.execute(BESIDE_THE_SCHEMA).fetchall()
        return dumped(server, owner), beside, rows(server, owner)

    with earlier_database(server) as earlier:
        schema, beside, filled = state(earlier)
    # Both carry the name of their database nowhere, so that they can be compared line by line.
    assert len(schema) > 15_000
    assert len(beside) > 1000
    with earlier_database(server, copied(MIGRATIONS, tmp_path / "baseline", LAST_OF_BASELINE)) as new:
        found = state(new)
    assert found[0] == schema
    assert found[1:] == (beside, filled)
    assert filled.pop("sealing_key") == 1
    assert not any(filled.values())


def test_a_database_of_the_replaced_migrations_goes_on_as_it_is(server: PlainServer, tmp_path: Path) -> None:
    baseline = copied(MIGRATIONS, tmp_path / "baseline", LAST_OF_BASELINE)
    with earlier_database(server) as owner:
        with psycopg.connect(as_superuser(server, owner)) as connection:
            connection.execute("INSERT INTO tenants (id, name) VALUES ('demo', 'Demo')")
            key = connection.execute("SELECT key FROM rag_private.sealing_key").fetchone()
        before = dumped(server, owner)
        assert migrate(owner, baseline) == PARTS
        assert migrate(owner, baseline) == []
        assert dumped(server, owner) == before
        with psycopg.connect(as_superuser(server, owner)) as connection:
            assert connection.execute("SELECT id FROM tenants").fetchall() == [("demo",)]
            assert connection.execute("SELECT key FROM rag_private.sealing_key").fetchone() == key


@pytest.mark.parametrize(
    "last",
    [
        pytest.param("20261122120000", id="of_most_of_them"),
        pytest.param("20261129010000", id="of_all_but_the_last"),
    ],
)
def test_a_database_with_a_part_of_the_replaced_migrations_is_refused_and_left_alone(
    server: PlainServer, tmp_path: Path, last: str
) -> None:
    with earlier_database(server, copied(EARLIER_MIGRATIONS, tmp_path / "part", last)) as owner:
        before = dumped(server, owner)
        with pytest.raises(DatabaseUnavailable, match=r"before 2026-11-29.*Start commit [0-9a-f]{7}"):
            migrate(owner)
        assert dumped(server, owner) == before


def test_migrations_that_an_earlier_baseline_replaced_do_not_count(server: PlainServer, tmp_path: Path) -> None:
    part = copied(EARLIER_MIGRATIONS, tmp_path / "part", "20261122120000")
    with earlier_database(server, part) as owner:
        with psycopg.connect(owner) as connection:
            connection.execute(
                "INSERT INTO rag_migrations (name, sha256) "
                "SELECT '202611210001' || lpad(n::text, 2, '0') || '_earlier', '' FROM generate_series(1, 75) n"
            )
        with pytest.raises(DatabaseUnavailable, match="Start commit"):
            migrate(owner)


def test_what_the_supabase_command_line_applied_of_the_replaced_migrations_counts(server: PlainServer) -> None:
    with earlier_database(server) as owner:
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
    assert names[0].startswith(FIRST_REPLACED)
    assert names[-1].startswith(LAST_REPLACED)


def test_rows_that_contradict_a_new_migration_are_named_and_stay(server: PlainServer, tmp_path: Path) -> None:
    folder = copied(MIGRATIONS, tmp_path / "all", "9")
    with earlier_database(server, folder) as owner:
        with psycopg.connect(as_superuser(server, owner)) as connection:
            connection.execute("INSERT INTO tenants (id, name) VALUES ('demo', 'Demo')")
        (folder / "29991231000000_later.sql").write_text(
            "CREATE TABLE later (id int);\nALTER TABLE tenants ADD CONSTRAINT is_long CHECK (length(name) > 10);"
        )
        with pytest.raises(DatabaseUnavailable, match=r"is_long.*Nothing was changed"):
            migrate(owner, folder)
        with psycopg.connect(as_superuser(server, owner)) as connection:
            assert connection.execute("SELECT id, to_regclass('later') FROM tenants").fetchall() == [("demo", None)]
