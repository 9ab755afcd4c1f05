"""A database of the version before the baseline goes on: nothing of it is lost, and its documents answer as before."""

from __future__ import annotations

import re
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from argon2 import PasswordHasher
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag.access.api_keys import PREFIX
from rag.access.sessions import token_hash
from rag.api.health import check_rag_health
from rag.profiles import HR
from rag.samples import SAMPLES
from rag.services import Services, assemble, connect_services
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import BINARIES, DATABASE, start_server
from rag.storage.migrations import migrate
from rag.types import Account, Collection, Identity, Message, Question, UploadOptions
from tests.earlier_database import EARLIER_MIGRATIONS, as_superuser, earlier_database
from tests.standins.plain_server import PlainServer

PASSWORD = "a long enough password 7"
QUESTIONS = [
    "How many days of annual leave do full-time employees have?",
    "May annual leave be carried over into the next year?",
    "What is the price of a train ticket to the moon?",
]


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
        options=UploadOptions(generate_metadata=False),
    )
    ask(app_services, identity_of(account), QUESTIONS[0])
    return app_services


def ask(parts: Services, identity: Identity, question: str) -> tuple[str, tuple[Any, ...]]:
    """Text and citations of an answer."""
    collection = parts.documents.collections(identity.tenant_id)[0]
    live = parts.answers.ask(Question(text=question, identity=identity, collection=collection))
    for _ in live.tail(every_seconds=0.01):
        pass
    message = parts.conversations.messages(identity, live.conversation_id)[-1]
    return message.content, tuple(message.citations)


@pytest.fixture
def upgraded(
    server: PlainServer, filled: Services, settings: Settings, superuser_conninfo: str
) -> Iterator[tuple[Services, dict[str, int]]]:
    """The product on a database of the version before with the same rows; and how many rows that had, by table."""
    with earlier_database(server) as owner:
        earlier = as_superuser(server, owner)
        copy_rows(superuser_conninfo, earlier)
        rows = count_rows(earlier)
        assert migrate(owner)
        assert migrate(owner) == []
        database = Database(
            make_conninfo(server.application, dbname=conninfo_to_dict(owner)["dbname"]), sealing_key(owner)
        )
        database.open()
        parts = assemble(replace(settings, data_dir=settings.data_dir), database)
        yield parts, rows
        parts.close()


def copy_rows(source: str, target: str) -> None:
    command = [
        str(BINARIES / "pg_dump"),
        "--data-only",
        "--column-inserts",
        "--exclude-table=rag_migrations",
        "--dbname",
        source,
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    statements = "\n".join(line for line in text.splitlines() if not re.match(r"\\(un)?restrict ", line))
    later = columns_of(source) - columns_of(target)
    with psycopg.connect(target, options="-c session_replication_role=replica") as connection:
        # Columns of later migrations have a place only while the rows are copied.
        for table, column, kind in later:
            connection.execute(f"ALTER TABLE public.{table} ADD COLUMN {column} {kind}".encode())
        connection.execute("TRUNCATE rag_private.sealing_key")
        connection.execute(statements.encode())
        for table, column, _ in later:
            connection.execute(f"ALTER TABLE public.{table} DROP COLUMN {column}".encode())


def columns_of(superuser: str) -> set[tuple[str, str, str]]:
    """Return the tables' columns with their types."""
    with psycopg.connect(superuser) as connection:
        rows = connection.execute(
            "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a "
            "JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' "
            "AND a.attnum > 0 AND NOT a.attisdropped AND c.relname <> 'rag_migrations'"
        ).fetchall()
    return set(rows)


def count_rows(superuser: str) -> dict[str, int]:
    count = "SELECT count(*) FROM {}"
    with psycopg.connect(superuser) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') "
            "AND relname <> 'rag_migrations'"
        ).fetchall()
        return {
            name: connection.execute(sql.SQL(count).format(sql.Identifier("public", name))).fetchall()[0][0]
            for (name,) in tables
        }


def messages_of(parts: Services, account: Account, conversation_id: UUID) -> list[Message]:
    return parts.conversations.messages(identity_of(account), conversation_id)


def test_nothing_is_lost_and_documents_answer_the_same(
    filled: Services, upgraded: tuple[Services, dict[str, int]], server: PlainServer
) -> None:
    parts, written = upgraded
    assert all(written[table] for table in ("accounts", "documents", "document_chunks", "messages", "chat_logs"))
    database = str(conninfo_to_dict(parts.database.conninfo)["dbname"])
    found = count_rows(make_conninfo(server.superuser, dbname=database))
    assert {table: found[table] for table in written} == written
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


def test_a_data_folder_of_the_version_before_goes_on(settings: Settings) -> None:
    """Its people sign in, their sessions and keys work, and the role that the application works as is bound."""
    server = start_server(settings.data_dir)
    session, secret = secrets.token_urlsafe(32), PREFIX + secrets.token_urlsafe(32)
    try:
        migrate(server.owner, EARLIER_MIGRATIONS)
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
