"""How quick the library of documents is: `python -m benchmarks.library --documents 2000`.

In an embedded server of its own, documents of three pages are made directly in SQL and their words are indexed as
publishing does. Measured: the page drawn by Streamlit's AppTest as an administrator, first
and again; a search in titles and text, from the words to the rows of the table; and 500 documents put into the bin and
taken back, once.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo
from streamlit.testing.v1 import AppTest

import rag.services
from benchmarks.pages import MAIN
from rag.access.sessions import token_hash
from rag.retrieval.bm25.index import index_document
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import DATABASE, start_server
from rag.storage.migrations import migrate
from rag.types import Account, DocumentFilters, Identity, Role

TENANT = "demo"
BARS_MS = {"Page, first": 700, "Page, again": 700, "Search": 200, "Delete 500": 5000}
FILL = """
WITH made AS (
    INSERT INTO collections (tenant_id, name, profile, embedding_model, language)
    VALUES (%(tenant)s, 'Rules', 'hr', 'builtin/lexical@1536', 'en') RETURNING id
), added AS (
    INSERT INTO documents (tenant_id, collection_id, title, file_name, file_size, sha256, status, step, page_count,
                           character_count, chunk_count, language, costs, folder, tags, created_at)
    SELECT %(tenant)s, made.id, 'Rule ' || n, 'rule_' || n || '.pdf', 40000 + n, 'rule ' || n, 'completed', 'publish',
           3, 6000, 3, 'en', '{"total": "0.00192"}', 'Rules/' || n %% 12, ARRAY['year ' || 2020 + n %% 7],
           now() - make_interval(mins => n)
    FROM generate_series(1, %(documents)s::integer) AS n CROSS JOIN made
    RETURNING id, collection_id, title
)
INSERT INTO document_chunks (document_id, tenant_id, collection_id, content, chunk_index, embedding_model)
SELECT id, %(tenant)s, collection_id,
       repeat('Annual leave is agreed with the manager and noted in the calendar of the team. ', 10)
       || title || ' part ' || part || ' speaks of bicycles, lockers and the canteen on floor '
       || (abs(hashtext(title || part)) %% 400), part, 'builtin/lexical@1536'
FROM added CROSS JOIN generate_series(0, 2) AS part
"""


def add_documents(superuser: str, database: Database, documents: int) -> None:
    """Make the documents in a collection of their own, and index their words."""
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute("SET search_path = public, extensions")
        connection.execute(FILL, {"tenant": TENANT, "documents": documents})
        connection.execute("ANALYZE")
        rows = connection.execute("SELECT id, collection_id FROM documents WHERE title LIKE 'Rule %'").fetchall()
    for document_id, collection_id in rows:
        with database.transaction(TENANT) as connection:
            index_document(connection, tenant_id=TENANT, collection_id=collection_id, document_id=document_id)


def fill(superuser: str, parts: Services, documents: int) -> tuple[Identity, str]:
    """Make the documents and an administrator; who that is, and their session."""
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute("SET search_path = public, extensions")
        connection.execute("INSERT INTO tenants (id, name) VALUES (%s, 'Demo')", [TENANT])
        row = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
            "VALUES (%s, 'admin@benchmark.example', 'Admin', 'admin', '') "
            "RETURNING id, tenant_id, email, name, role, user_group, is_active, created_at, last_signed_in_at",
            [TENANT],
        ).fetchone()
        assert row is not None
    add_documents(superuser, parts.database, documents)
    names = ("id", "tenant_id", "email", "name", "role", "user_group", "is_active", "created_at", "last_signed_in_at")
    account = Account(**dict(zip(names, row, strict=True)))
    identity = Identity(
        account_id=account.id, tenant_id=TENANT, email=account.email, name=account.name, role=Role.ADMIN
    )
    return identity, token_hash(parts.sessions.start(account))


def milliseconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


def measure(parts: Services, identity: Identity, session_id: str, runs: int) -> dict[str, float]:
    """Milliseconds of each act."""
    library = parts.documents
    tab = AppTest.from_file(str(MAIN), default_timeout=300)
    tab.user = {"sid": session_id}
    tab.run()
    first = milliseconds(lambda: tab.switch_page("documents.py").run())
    assert not tab.exception, tab.exception
    again = statistics.median(milliseconds(tab.run) for _ in range(runs))

    def search(words: str) -> None:
        found = library.with_words(identity, words)
        assert library.rows(identity, DocumentFilters(text=words, found_ids=found), limit=20_000)

    texts = [f"bicycles floor {number}" for number in range(1, runs + 1)]
    searches = statistics.median(milliseconds(partial(search, text)) for text in texts)
    some = [row.id for row in library.rows(identity, DocumentFilters(), limit=500)]
    deleted = milliseconds(lambda: library.bin.put(identity, some))

    restored = milliseconds(lambda: library.bin.take_back_all(identity, some))
    return {
        "Page, first": first,
        "Page, again": again,
        "Search": searches,
        f"Delete {len(some)}": deleted,
        f"Undo {len(some)}": restored,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=11)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="library-", ignore_cleanup_errors=True) as folder:
        settings = Settings(data_dir=Path(folder) / "data", recent_sign_in_minutes=0)
        server = start_server(settings.data_dir)
        try:
            migrate(server.owner)
            database = Database(server.application, sealing_key(server.owner))
            database.open()
            parts = assemble(settings, database)
            rag.services.connect_services = lambda settings: parts
            identity, session_id = fill(make_conninfo(server.superuser, dbname=DATABASE), parts, arguments.documents)
            for name, spent in measure(parts, identity, session_id, arguments.runs).items():
                bar = f", the bar is {BARS_MS[name]:,} ms" if name in BARS_MS else ""
                print(f"{name:14}{spent:8.0f} ms{bar}", flush=True)
            parts.close()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
