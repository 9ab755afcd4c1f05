"""Which tables an administrator may name as a board: none of the product's own, of its queue's or of Postgres's."""

from __future__ import annotations

import psycopg
import pytest

from rag.errors import RagError, SettingsError
from rag.profiles.notices.attachments import AttachmentFiles
from rag.profiles.notices.posts import mapping_from
from rag.profiles.notices.table import DatabaseRows, PostsTable
from rag.storage.database import Database
from rag.types import Collection

RELATIONS = """
    SELECT quote_ident(nspname), quote_ident(relname),
           (SELECT attname FROM pg_attribute a WHERE attrelid = c.oid AND attnum > 0 ORDER BY attnum LIMIT 1)
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm') AND nspname NOT LIKE 'pg_toast%' AND nspname NOT LIKE 'pg_temp%'
"""


def read(database: Database, table: str, column: str = "id") -> list[str]:
    """The keys that a board of this table would have."""
    mapping = mapping_from({"table": table, "id": column})
    source = PostsTable(DatabaseRows(database.conninfo, is_own_database=True), mapping, files=AttachmentFiles())
    return [item.key for item in source.items()]


def test_no_table_that_is_there_shows_a_row(
    database: Database, collection: Collection, superuser_conninfo: str
) -> None:
    """Every one of them, by its name alone and with its schema: though each has rows."""
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES ('q', 't', '{}'::jsonb)"
        )
        relations = connection.execute(RELATIONS).fetchall()
    assert len(relations) > 150
    shown = []
    for schema, name, column in relations:
        for table in (name, f"{schema}.{name}") if schema == "public" else (f"{schema}.{name}",):
            try:
                keys = read(database, table, column)
            except RagError:
                continue
            if keys:
                shown.append((table, keys[:2]))
    assert shown == []


@pytest.mark.parametrize(
    "name",
    [
        "accounts; DROP TABLE accounts",
        'x" UNION SELECT password_hash FROM accounts --',
        "PROCRASTINATE_JOBS",
        "..",
        "a.b.c.d",
        "",
        " ",
    ],
)
def test_a_name_that_is_no_table_is_said_to_be_none(database: Database, collection: Collection, name: str) -> None:
    with pytest.raises(RagError):
        read(database, name)
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT count(*) FROM collections").fetchone() == (1,)


def test_a_table_that_is_there_but_not_granted_is_told_apart_from_one_that_is_not(
    database: Database, superuser_conninfo: str
) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute("CREATE TABLE public.notices_of_work (id text)")
    with pytest.raises(SettingsError, match="GRANT SELECT ON notices_of_work"):
        read(database, "notices_of_work")
    with pytest.raises(SettingsError, match="There is no table"):
        read(database, "procrastinate_jobs")
