"""How long each page takes to be drawn where there are many documents: `python -m benchmarks.pages`.

Two tenants in an embedded server of its own, one with 20 documents and one with 20,000, made directly in SQL with the
metadata that tagging writes; a tenth are posts of a notice board, one in twenty has chunks, and each has left three
lines in the audit log. Each page is run in this process by Streamlit's AppTest as an administrator, first once, then
`--runs` times, the tenants by turns. Measured is the run of the script with all its statements, not the browser:
the time it takes, and the processor's time that this process and Postgres spend on it, which other work on the machine
hardly changes and which is about what it takes on an idle one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo
from streamlit.testing.v1 import AppTest

import rag.services
from rag.access.sessions import token_hash
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import DATABASE, start_server
from rag.storage.migrations import migrate
from rag.types import Account

MAIN = Path(__file__).resolve().parent.parent / "pages" / "main.py"
BAR_MS = 300
SMALL = 20
PAGES = {
    "Chat": "chat.py",
    "Documents": "documents.py",
    "Collections": "collection_settings.py",
    "Notice board": "board.py",
    "Analytics": "analytics.py",
    "People": "people.py",
    "Audit log": "audit.py",
}
FILL = """
WITH made AS (
    INSERT INTO collections (tenant_id, name, profile, embedding_model, language) VALUES
        (%(tenant)s, 'HR documents', 'hr', 'builtin/lexical@1536', 'en'),
        (%(tenant)s, 'Notice board', 'notices', 'builtin/lexical@1536', 'ko')
    RETURNING id, profile
)
INSERT INTO documents (tenant_id, collection_id, title, file_name, file_size, mime_type, sha256, status, step,
                       page_count, character_count, chunk_count, language, costs, processing_ms, metadata, created_at)
SELECT %(tenant)s, made.id, 'Rule ' || n || CASE WHEN n %% 7 = 0 THEN ' of 2025' ELSE '' END, 'rule_' || n || '.pdf',
       40000 + n, CASE WHEN n %% 5 = 0 THEN 'text/html' ELSE 'application/pdf' END, 'rule ' || n,
       CASE WHEN n %% 97 = 0 THEN 'failed' WHEN n %% 89 = 0 THEN 'estimated' ELSE 'completed' END, 'publish', 12, 24000,
       30, CASE WHEN n %% 3 = 0 THEN 'ko' ELSE 'en' END,
       '{"parsing": "0", "chunking": "0", "embedding": "0.00012", "metadata": "0.0018", "total": "0.00192"}', 4000,
       jsonb_build_object(
           'summary', repeat('What rule ' || n || ' says about leave, travel, pay and work from home. ', 6),
           'topics', jsonb_build_array('leave', 'travel', 'pay ' || n),
           'questions', jsonb_build_array('What does rule ' || n || ' say about leave?', 'Who approves it?'),
           'suggested_questions', jsonb_build_array('What is section 1 of rule ' || n || ' about?'),
           'sections', (SELECT jsonb_agg(jsonb_build_object('title', 'Section ' || s || ' of ' || n, 'page', s,
                                                            'start', s * 2000, 'level', 1))
                        FROM generate_series(1, 40) s))
       || CASE WHEN made.profile = 'notices'
           THEN jsonb_build_object('postId', n::text, 'categorySlug', 'c' || n %% 6, 'categoryName', 'News ' || n %% 6,
                                   'isPinned', n %% 100 = 0, 'attachmentCount', n %% 3,
                                   'createdAt', '2026-03-01T09:00:00')
           ELSE '{}' END,
       now() - make_interval(mins => n)
FROM generate_series(1, %(documents)s::integer) AS n
JOIN made ON made.profile = CASE WHEN n %% 10 = 0 THEN 'notices' ELSE 'hr' END
"""
FILL_CHUNKS = """
INSERT INTO document_chunks (document_id, tenant_id, collection_id, content, chunk_index, embedding_model)
SELECT d.id, d.tenant_id, d.collection_id, repeat('A sentence of this rule about annual leave. ', 22), c,
       'builtin/lexical@1536'
FROM documents d CROSS JOIN generate_series(0, 29) AS c
WHERE d.tenant_id = %(tenant)s AND d.sha256 ~ '[02468]0$'
"""
FILL_AUDIT = """
INSERT INTO audit_log (tenant_id, account_id, actor, action, target)
SELECT %(tenant)s, %(account)s, 'admin@example.com', 'document changed', 'Rule ' || n
FROM generate_series(1, 3 * %(documents)s::integer) AS n
"""


def fill(superuser: str, parts: Services, tenant: str, documents: int) -> str:
    """Make a tenant; the session of its administrator."""
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute("SET search_path = public, extensions")
        connection.execute("INSERT INTO tenants (id, name) VALUES (%s, %s)", [tenant, tenant])
        where = {"tenant": tenant, "documents": documents}
        connection.execute(FILL, where)
        connection.execute(FILL_CHUNKS, where)
        row = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) VALUES (%s, %s, 'Admin', 'admin', '') "
            "RETURNING id, tenant_id, email, name, role, user_group, is_active, created_at, last_signed_in_at",
            [tenant, f"admin@{tenant}.example.com"],
        ).fetchone()
        assert row is not None
        connection.execute(FILL_AUDIT, {**where, "account": row[0]})
        connection.execute("ANALYZE")
    names = ("id", "tenant_id", "email", "name", "role", "user_group", "is_active", "created_at", "last_signed_in_at")
    account = Account(**dict(zip(names, row, strict=True)))
    return token_hash(parts.sessions.start(account))


def open_page(session_id: str, path: str) -> AppTest:
    tab = AppTest.from_file(str(MAIN), default_timeout=300)
    tab.user = {"sid": session_id}
    tab.run()
    if path != "chat.py":
        tab.switch_page(path).run()
    assert not tab.exception, tab.exception
    return tab


class Spent:
    """Pipeline's time of this process and of the server's backends, in milliseconds."""

    def __init__(self, superuser: str) -> None:
        self._connection = psycopg.connect(superuser, autocommit=True)

    def now(self) -> float:
        rows = self._connection.execute("SELECT pid FROM pg_stat_activity WHERE usename <> 'postgres'").fetchall()
        ticks = 0
        for (pid,) in rows:
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return time.process_time() * 1000 + ticks * 1000 / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self._connection.close()


def measure(tabs: list[AppTest], runs: int, spent: Spent) -> list[tuple[float, float]]:
    """Median milliseconds of a run, and the processor's time of one on average, for each tab, run by turns."""
    times: list[list[float]] = [[] for _ in tabs]
    work = [0.0 for _ in tabs]
    for _ in range(runs):
        for number, tab in enumerate(tabs):
            before, started = spent.now(), time.perf_counter()
            tab.run()
            times[number].append((time.perf_counter() - started) * 1000)
            work[number] += spent.now() - before
            assert not tab.exception, tab.exception
    return [(statistics.median(found), total / runs) for found, total in zip(times, work, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pages-", ignore_cleanup_errors=True) as folder:
        server = start_server(Path(folder) / "data")
        try:
            migrate(server.owner)
            database = Database(server.application, sealing_key(server.owner))
            database.open()
            parts = assemble(Settings(data_dir=Path(folder) / "data"), database)
            rag.services.connect_services = lambda settings: parts
            superuser = make_conninfo(server.superuser, dbname=DATABASE)
            small = fill(superuser, parts, "small", SMALL)
            large = fill(superuser, parts, "large", arguments.documents)
            spent = Spent(superuser)
            print(f"{'Page':14}{'20 ms':>10}{'many ms':>10}{'20 CPU':>10}{'many CPU':>10}{'ratio':>8}")
            worst = 0.0
            for name, path in PAGES.items():
                few, many = measure([open_page(small, path), open_page(large, path)], arguments.runs, spent)
                worst = max(worst, many[1])
                figures = f"{few[0]:10.0f}{many[0]:10.0f}{few[1]:10.0f}{many[1]:10.0f}{many[1] / few[1]:8.1f}"
                print(f"{name:14}{figures}", flush=True)
            print(f"Most work: {worst:.0f} ms of a processor; the bar is {BAR_MS} ms for a page.")
            spent.close()
            parts.close()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
