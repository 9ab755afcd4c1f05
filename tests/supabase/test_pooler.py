"""The product's main flows through a pooler in transaction mode: nothing of ours may live in a database session."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.rows import class_row

from rag.access.sessions import Sessions
from rag.samples import SAMPLES
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database, looks_pooled
from rag.types import Collection, DocumentStatus, Identity, Outcome, Question, Role
from tests.patience import patient
from tests.standins.plain_server import PlainServer


@pytest.fixture
def pooled(pooler: str, server: PlainServer) -> Iterator[Database]:
    opened = Database(pooler, server.key, is_pooled=True)
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def product(pooled: Database, tmp_path: Path) -> Iterator[Services]:
    parts = assemble(Settings(data_dir=tmp_path / "data"), pooled)
    yield parts
    parts.close()


@pytest.mark.parametrize(
    ("address", "is_pooled"),
    [
        pytest.param("postgresql://u:p@aws-0-eu.pooler.supabase.com:6543/postgres", True, id="supabase_transaction"),
        pytest.param("postgresql://u:p@aws-0-eu.pooler.supabase.com:5432/postgres", False, id="supabase_session"),
        pytest.param("host=db.example.com port=6432 user=u", True, id="pgbouncer"),
        pytest.param("postgresql://u:p6543@db.example.com/postgres", False, id="the_number_in_a_password"),
        pytest.param("not an address", False, id="not_an_address"),
    ],
)
def test_a_pooler_is_known_by_its_port(address: str, is_pooled: bool) -> None:
    assert looks_pooled(address) is is_pooled


def test_the_tenant_of_one_transaction_is_not_there_in_the_next(pooled: Database) -> None:
    seen: set[object] = set()

    def look(tenant: str) -> None:
        for _ in range(40):
            with pooled.transaction(tenant) as connection:
                row = connection.execute("SELECT rag_tenant(), current_user, pg_backend_pid()").fetchone()
                assert row is not None
                assert row[:2] == (tenant, "rag_app")
                seen.add(row[2])
            with pooled.transaction(None) as connection:
                assert connection.execute("SELECT rag_tenant()").fetchone() == (None,)

    threads = [threading.Thread(target=look, args=(tenant,)) for tenant in ("demo", "other") * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) > 1, "the pooler gave every transaction the same server: nothing was tested"


def test_what_a_prepared_statement_would_break_does_not(pooled: Database) -> None:
    with pooled.transaction("demo") as connection:
        assert connection.prepare_threshold is None
    for _ in range(30):
        assert pooled.fetch_value("demo", "has_admin") is False


def test_documents_are_read_searched_asked_about_and_deleted(product: Services, tenant: str) -> None:
    with product.database.transaction(tenant) as connection:
        row = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
            "VALUES ('demo', 'a@example.com', 'A', 'admin', '-') RETURNING id"
        ).fetchone()
        assert row is not None
        with connection.cursor(row_factory=class_row(Collection)) as cursor:
            collection = cursor.execute(
                "INSERT INTO collections (tenant_id, name, profile, embedding_model) "
                "VALUES ('demo', 'HR documents', 'hr', 'builtin/lexical@1536') "
                "RETURNING id, tenant_id, name, profile, embedding_model, language, overrides, created_at"
            ).fetchone()
            assert collection is not None
    identity = Identity(account_id=row[0], tenant_id=tenant, email="a@example.com", name="A", role=Role.ADMIN)
    product.queue.start_worker()
    document = product.documents.upload(identity, collection, SAMPLES[0].file_name, SAMPLES[0].read())
    assert product.queue.wait_until_idle(patient(60))
    assert product.documents.get(tenant, document.id).status is DocumentStatus.ESTIMATED
    product.documents.confirm(identity, document.id)
    assert product.queue.wait_until_idle(patient(60))
    assert product.documents.get(tenant, document.id).status is DocumentStatus.COMPLETED

    live = product.answers.ask(
        Question(text="How many days of annual leave do I get?", identity=identity, collection=collection)
    )
    for _ in live.tail(every_seconds=0.01):
        pass
    message = product.conversations.messages(identity, live.conversation_id)[-1]
    assert message.outcome is Outcome.ANSWERED
    assert {citation["document_id"] for citation in message.citations} == {str(document.id)}

    product.documents.delete(identity, document.id)
    again = product.answers.ask(
        Question(text="How many days of annual leave do I get?", identity=identity, collection=collection)
    )
    for _ in again.tail(every_seconds=0.01):
        pass
    assert product.conversations.messages(identity, again.conversation_id)[-1].outcome is Outcome.NO_CONTEXT
    assert product.queue.wait_until_idle(patient(20))
    assert not any(path.is_file() for path in (product.settings.data_dir / "files").rglob("*"))


def test_a_sign_in_lasts_through_the_pooler(product: Services) -> None:
    token = product.accounts.first_admin_link()
    assert token is not None
    account = product.accounts.create_first_admin(token, "admin@example.com", "Admin", "correct horse battery")
    session = product.sessions.start(account)
    assert Sessions(product.database).find(session) is not None
    product.sessions.end(session)
    assert Sessions(product.database).find(session) is None
