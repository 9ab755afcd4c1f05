"""The database itself refuses a row of one tenant that points at a row of another, whoever writes it."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import Connection

#: Kept without a reference, because they outlive what they name: what was spent, and who did what.
OUTLIVE = {
    ("cost_ledger", "document_id"),
    ("cost_ledger", "chat_log_id"),
    ("audit_log", "account_id"),
    # Calls that may be billed still, whatever became of what they were for.
    ("paid_calls", "document_id"),
    ("paid_calls", "chat_log_id"),
    # Sums, which are made again from the rows after a change.
    ("question_days", "collection_id"),
    ("question_time_days", "collection_id"),
    ("document_days", "collection_id"),
    ("document_days", "document_id"),
    ("cost_days", "collection_id"),
    ("question_weeks", "collection_id"),
    ("question_time_weeks", "collection_id"),
    ("document_weeks", "collection_id"),
    ("document_weeks", "document_id"),
    ("cost_weeks", "collection_id"),
}
#: Found by their document or their segment, which are referenced.
BY_OTHERS = {("chunk_terms", "chunk_id"), ("chunk_bits", "chunk_id"), ("keyword_blocks", "collection_id")}
KEYS = """
    SELECT k.conrelid::regclass::text,
           array(SELECT attname::text FROM pg_attribute WHERE attrelid = k.conrelid AND attnum = ANY (k.conkey))
    FROM pg_constraint k WHERE k.contype = 'f' AND k.connamespace = 'public'::regnamespace
      AND (SELECT count(*) FROM pg_attribute a WHERE a.attname = 'tenant_id'
           AND a.attrelid IN (k.conrelid, k.confrelid)) = 2
"""
NAMED = """
    SELECT c.relname::text, a.attname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT a.attisdropped
      AND a.attname IN ('collection_id', 'document_id', 'account_id', 'chunk_id', 'conversation_id', 'chat_log_id')
      AND EXISTS (SELECT FROM pg_attribute t WHERE t.attrelid = c.oid AND t.attname = 'tenant_id')
"""


def add(connection: Connection, statement: str, *values: object) -> UUID:
    row = connection.execute(f"{statement} RETURNING id".encode(), values).fetchone()
    assert row is not None
    return UUID(str(row[0]))


def add_collection(connection: Connection, tenant: str) -> UUID:
    statement = "INSERT INTO collections (tenant_id, name, embedding_model) VALUES (%s, %s, 'm')"
    return add(connection, statement, tenant, uuid4().hex)


def add_account(connection: Connection, tenant: str) -> UUID:
    statement = "INSERT INTO accounts (tenant_id, email, role, password_hash) VALUES (%s, %s, 'employee', '-')"
    return add(connection, statement, tenant, uuid4().hex)


def add_document(connection: Connection, tenant: str, collection: UUID, added_by: UUID | None = None) -> UUID:
    statement = (
        "INSERT INTO documents (tenant_id, collection_id, added_by, title, file_name, sha256) "
        "VALUES (%s, %s, %s, 't', 'f', %s)"
    )
    return add(connection, statement, tenant, collection, added_by, uuid4().hex)


def add_chunk(connection: Connection, tenant: str, collection: UUID, document: UUID, index: int = 0) -> UUID:
    statement = (
        "INSERT INTO document_chunks (tenant_id, collection_id, document_id, content, chunk_index) "
        "VALUES (%s, %s, %s, 'x', %s)"
    )
    return add(connection, statement, tenant, collection, document, index)


def test_every_reference_between_tables_of_tenants_carries_the_tenant(superuser_conninfo: str) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        keys = connection.execute(KEYS).fetchall()
    assert len(keys) > 30
    assert [key for key in keys if "tenant_id" not in key[1]] == []


def test_every_column_that_names_a_row_of_a_tenant_is_such_a_reference(superuser_conninfo: str) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        referenced = {(table, column) for table, columns in connection.execute(KEYS) for column in columns}
        named = set(connection.execute(NAMED).fetchall())
    assert named - referenced == OUTLIVE | BY_OTHERS


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(lambda c, theirs: add_document(c, "demo", theirs["collection"]), id="document_in_a_collection"),
        pytest.param(
            lambda c, theirs: add_document(c, "demo", add_collection(c, "demo"), theirs["account"]),
            id="document_added_by_somebody",
        ),
        pytest.param(
            lambda c, theirs: add_chunk(c, "demo", add_collection(c, "demo"), theirs["document"], 1),
            id="passage_of_a_document",
        ),
        pytest.param(
            lambda c, theirs: c.execute("UPDATE documents SET tenant_id = 'demo' WHERE tenant_id = 'other'"),
            id="document_given_to_another_tenant",
        ),
        pytest.param(
            lambda c, theirs: c.execute("UPDATE collections SET tenant_id = 'demo' WHERE tenant_id = 'other'"),
            id="collection_given_away_with_what_is_in_it",
        ),
    ],
)
def test_a_row_that_points_at_another_tenants_is_refused_even_past_row_level_security(
    superuser_conninfo: str, point: Callable[[Connection, dict[str, UUID]], object]
) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        collection, account = add_collection(connection, "other"), add_account(connection, "other")
        document = add_document(connection, "other", collection, account)
        add_chunk(connection, "other", collection, document)
        theirs = {"collection": collection, "account": account, "document": document}
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            point(connection, theirs)


def test_who_is_deleted_leaves_what_they_added_in_its_tenant(superuser_conninfo: str) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        account = add_account(connection, "demo")
        add_document(connection, "demo", add_collection(connection, "demo"), account)
        connection.execute("DELETE FROM accounts WHERE id = %s", (account,))
        assert connection.execute("SELECT tenant_id, added_by FROM documents").fetchall() == [("demo", None)]
