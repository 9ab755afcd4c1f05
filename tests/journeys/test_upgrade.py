"""A database of the first version is brought up to date: nothing of it is lost, and documents answer as new ones do."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from argon2 import PasswordHasher
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag.access.api_keys import PREFIX
from rag.access.sessions import token_hash
from rag.api.health import check_rag_health
from rag.ingestion.meaning import meaning_progress
from rag.profiles import HR
from rag.retrieval.bm25.index import contextual_text, tokenize
from rag.samples import SAMPLES
from rag.services import Services, assemble, connect_services
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import DATABASE, start_server
from rag.storage.migrations import migrate
from rag.types import Account, Collection, Identity, Message
from tests.earlier_database import EARLIER_MIGRATIONS, copy_migrations, earlier_database, index_as_before, upgrade
from tests.standins.plain_server import PlainServer

FIRST_VERSION = "20261121000300"
#: The last whose transactions named a tenant without a proof.
VERSION_BEFORE = "20261122101100"
PASSWORD = "a long enough password 7"
QUESTIONS = [
    "How many days of annual leave do full-time employees have?",
    "May annual leave be carried over into the next year?",
    "What is the price of a train ticket to the moon?",
]
#: What that version wrote, in the order of their references.
TABLES = ["accounts", "collections", "documents", "document_pages", "document_chunks", "conversations", "chat_logs"]
TABLES += ["messages", "feedback", "cost_ledger"]


def identity_of(account: Account) -> Identity:
    return Identity(
        account_id=account.id, tenant_id=account.tenant_id, email=account.email, name=account.name, role=account.role
    )


@pytest.fixture
def filled(app_services: Services, collection: Collection) -> Services:
    """The present product with a document, an administrator, and a question that was asked, answered and rated."""
    token = app_services.accounts.first_admin_link("demo")
    assert token is not None
    account = app_services.accounts.create_first_admin(token, "admin@demo.example", "Admin", PASSWORD)
    app_services.pipeline.process_document(
        file=SAMPLES[0].read(),
        file_name=SAMPLES[0].file_name,
        tenant_id="demo",
        collection=collection,
        generate_metadata=False,
    )
    ask(app_services, identity_of(account), QUESTIONS[0])
    return app_services


def ask(parts: Services, identity: Identity, question: str) -> tuple[str, tuple[Any, ...]]:
    """Text and citations of an answer."""
    collection = parts.documents.collections(identity.tenant_id)[0]
    live = parts.answers.ask(identity, None, collection, question)
    for _ in live.tail(every_seconds=0.01):
        pass
    message = parts.conversations.messages(identity, live.conversation_id)[-1]
    return message.content, tuple(message.citations)


@pytest.fixture
def upgraded(
    server: PlainServer, filled: Services, settings: Settings, superuser_conninfo: str, tmp_path: Path
) -> Iterator[tuple[Services, dict[str, int]]]:
    """The product on a database that the first version filled with the same; and how many rows that wrote."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    with earlier_database(server, FIRST_VERSION, folder) as owner:
        name = str(conninfo_to_dict(owner)["dbname"])
        rows = write_as_first_version(superuser_conninfo, make_conninfo(server.superuser, dbname=name))
        applied = upgrade(owner)
        assert applied[0][:14] > FIRST_VERSION
        assert migrate(owner) == []
        database = Database(make_conninfo(server.application, dbname=name), sealing_key(owner))
        database.open()
        parts = assemble(replace(settings, data_dir=settings.data_dir), database)
        yield parts, rows
        parts.close()


def write_as_first_version(present: str, earlier: str) -> dict[str, int]:
    """Copy what the first version had columns for, and index passages as it did; the rows by table."""
    written = {}
    path = "-c search_path=public,extensions"
    with psycopg.connect(present, options=path) as source, psycopg.connect(earlier, options=path) as target:
        register_vector(target)
        target.execute("INSERT INTO tenants (id, name) VALUES ('demo', 'Demo')")
        for table in TABLES:
            known = sql.SQL(", ").join(map(sql.Identifier, columns_of(target, table)))
            rows = source.execute(
                sql.SQL("SELECT to_jsonb(t)::text FROM {} t").format(sql.Identifier(table))
            ).fetchall()
            for row in rows:
                statement = sql.SQL(
                    "INSERT INTO {table} ({known}) SELECT {known} FROM jsonb_populate_record(NULL::{table}, %s::jsonb)"
                )
                target.execute(statement.format(table=sql.Identifier(table), known=known), row)
            written[table] = len(rows)
        # That version stored a hash as it is.
        target.execute("UPDATE accounts SET password_hash = %s", (PasswordHasher().hash(PASSWORD),))
        passages = target.execute(
            "SELECT c.id, c.tenant_id, c.collection_id, c.document_id, d.title, c.section, c.content "
            "FROM document_chunks c JOIN documents d ON d.id = c.document_id ORDER BY c.chunk_index"
        ).fetchall()
        terms = [tokenize(contextual_text(*row[4:]), "en") for row in passages]
        average = sum(map(len, terms)) / len(terms)
        for row, of_passage in zip(passages, terms, strict=True):
            index_as_before(target, row[:4], of_passage, average)
    return written


def messages_of(parts: Services, account: Account, conversation_id: UUID) -> list[Message]:
    return parts.conversations.messages(identity_of(account), conversation_id)


def columns_of(connection: psycopg.Connection[Any], table: str) -> list[str]:
    found = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped", (table,)
    )
    return [row[0] for row in found]


def test_nothing_is_lost_and_documents_answer_the_same(
    filled: Services, upgraded: tuple[Services, dict[str, int]], superuser_conninfo: str
) -> None:
    parts, written = upgraded
    assert all(written[table] for table in ("accounts", "documents", "document_chunks", "messages", "chat_logs"))
    with parts.database.transaction("demo") as connection:
        for table, count in written.items():
            found = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
            assert found == (count,), table
    before, after = (p.accounts.sign_in("admin@demo.example", PASSWORD) for p in (filled, parts))
    assert (before.id, before.role) == (after.id, after.role)
    assert ask(filled, identity_of(before), QUESTIONS[0])[1]
    for question in QUESTIONS:
        assert ask(parts, identity_of(after), question) == ask(filled, identity_of(before), question)
    asked = {m.content for c in parts.conversations.list(identity_of(after)) for m in messages_of(parts, after, c.id)}
    assert set(QUESTIONS) <= asked


def test_what_was_there_can_be_worked_with(upgraded: tuple[Services, dict[str, int]]) -> None:
    parts, _ = upgraded
    identity = identity_of(parts.accounts.sign_in("admin@demo.example", PASSWORD))
    (document,) = parts.documents.list("demo")
    assert parts.documents.pages("demo", document.id)
    found = parts.documents.collection("demo", document.collection_id)
    assert found.profile == HR.name
    parts.documents.delete(identity, document.id)
    assert parts.documents.list("demo") == []
    assert ask(parts, identity, QUESTIONS[0])[1] == ()


def test_passages_from_before_wait_for_their_vectors_of_meaning(upgraded: tuple[Services, dict[str, int]]) -> None:
    parts, _ = upgraded
    [collection] = parts.documents.collections("demo")
    with parts.database.transaction("demo") as connection:
        waiting = connection.execute(
            "SELECT args ->> 'collection_id' FROM procrastinate_jobs WHERE queue_name = 'meaning' AND status = 'todo'"
        ).fetchall()
    assert waiting == [(str(collection.id),)]
    [progress] = meaning_progress(parts.database, "demo")
    assert 0 == progress.done < progress.passages


def test_a_data_folder_of_the_version_before_goes_on(tmp_path: Path, settings: Settings) -> None:
    """Its people sign in, their sessions and keys work, and the role that the application works as is bound."""
    earlier = tmp_path / "migrations"
    earlier.mkdir()
    copy_migrations(VERSION_BEFORE, earlier)
    server = start_server(settings.data_dir)
    session, secret = secrets.token_urlsafe(32), PREFIX + secrets.token_urlsafe(32)
    try:
        migrate(server.owner, earlier)
        with psycopg.connect(server.superuser, dbname=DATABASE) as connection:
            connection.execute("INSERT INTO tenants (id, name) VALUES ('demo', 'Demo'), ('other', 'Other')")
            made = connection.execute(
                "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
                "VALUES ('demo', 'admin@demo.example', 'Admin', 'admin', %s) RETURNING id",
                (PasswordHasher().hash(PASSWORD),),
            ).fetchone()
            assert made is not None
            connection.execute(
                "INSERT INTO sessions (token_hash, tenant_id, account_id, expires_at) "
                "VALUES (decode(%s, 'hex'), 'demo', %s, now() + interval '1 day')",
                (token_hash(session), made[0]),
            )
            connection.execute(
                "INSERT INTO api_keys (tenant_id, name, secret_hash, hint, scopes, created_by) "
                "VALUES ('demo', 'Intranet', decode(%s, 'hex'), 'rag_', '{chat}', %s)",
                (token_hash(secret), made[0]),
            )
        migrate(server.owner, EARLIER_MIGRATIONS)
    finally:
        server.stop()
    parts = connect_services(settings)
    try:
        admin = parts.sessions.find(session)
        assert admin is not None
        assert parts.accounts.sign_in("admin@demo.example", PASSWORD).id == admin.account_id
        assert parts.api_keys.find(secret).identity.name == "Intranet"
        (key,) = parts.api_keys.list(admin)
        assert timedelta(days=89) < key.expires_at - datetime.now(UTC) < timedelta(days=91)
        (role,) = (check for check in check_rag_health(parts).checks if check.name == "Database role")
        assert role.state == "ok", role.sentence
        with parts.database.transaction("demo") as connection:
            connection.execute("SELECT set_config('rag.identity', '{\"tenant_id\": \"other\"}', true)")
            assert connection.execute("SELECT count(*) FROM tenants").fetchone() == (0,)
    finally:
        parts.close()
