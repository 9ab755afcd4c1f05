"""Time the statements of the analytics page over a million questions of three tenants.

    python -m benchmarks.analytics_days [--questions 1000000] [--data FOLDER]

Every statement of every tab is timed warm for 7, 30, 90 and 365 days of the tenant that has half of the questions,
then the totals from the rows, a single question, what a question pays for its log, and how much the process grows. The
first view is the totals and times of the period and of the one before, and the figures by day. The newest day is read
from its questions, as it is in the evening of a day. Beside the time that passed is the time of the processor, of this
process and of Postgres, which hardly depends on what else runs. With `--data` the questions are written once and kept
there.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import psycopg

from rag.records.analytics import Analytics, Filters, Period, QuestionFilters
from rag.records.chat_logs import ChatLogs, QuestionEnd
from rag.records.gaps import Gaps, QuestionEmbedder
from rag.records.help_requests import HelpRequests
from rag.storage.collections import find_collections
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import DATABASE, start_server
from rag.storage.migrations import migrate
from rag.types import Identity, Outcome, Question, RAGDetails, RawResultDetails, Role, SearchDetails, Who

Pair = tuple[float, float]

ROUNDS = 7
#: Whoever looks reads through row-level security, as the page does.
ADMIN = Identity(account_id=UUID(int=1), tenant_id="one", email="", name="", role=Role.ADMIN)
#: Documents and collections of each tenant.
SHELVES = """
INSERT INTO collections (id, tenant_id, name, embedding_model)
SELECT md5('c' || t || n)::uuid, t, 'Collection ' || n, 'builtin/lexical@1536'
FROM unnest(ARRAY['one', 'two', 'three']) t, generate_series(0, 3) n;
INSERT INTO documents (id, original_id, tenant_id, collection_id, title, file_name, sha256, status, created_at)
SELECT md5('d' || t || n)::uuid, md5('d' || t || n)::uuid, t, md5('c' || t || n % 4)::uuid, 'Document ' || n,
       n || '.pdf', t || n, 'completed', now() - interval '2 years'
FROM unnest(ARRAY['one', 'two', 'three']) t, generate_series(0, 199) n;
INSERT INTO accounts (id, tenant_id, email, name, role, user_group, password_hash)
SELECT md5('a' || t || n)::uuid, t, t || n || '@benchmark.example', 'Person ' || n, 'employee',
       (ARRAY['Sales', 'Engineering', 'Operations', 'Finance'])[1 + n % 4], ''
FROM unnest(ARRAY['one', 'two', 'three']) t, generate_series(0, 499) n;
"""
FILL = """
INSERT INTO chat_logs (id, tenant_id, account_id, user_group, collection_id, document_ids, question, answer, language,
                       outcome, error, rag_details, total_ms, first_token_ms, created_at)
SELECT md5(n::text)::uuid, t.name, md5('a' || t.name || abs(hashint4(n)) %% 500)::uuid,
       (ARRAY['Sales', 'Engineering', 'Operations', 'Finance'])[1 + (hashint4(n) & 3)],
       md5('c' || t.name || (hashint4(n + 3) & 3))::uuid, ARRAY[d.id],
       'How many days of leave do I have after ' || n || ' years?', repeat('Full-time staff have 25 days [1]. ', 12),
       (ARRAY['en', 'de', 'ko', 'nl'])[1 + (hashint4(n + 7) & 3)],
       (ARRAY['answered', 'answered', 'answered', 'perhaps', 'no_context', 'failed'])[1 + abs(hashint4(n)) %% 6],
       CASE WHEN abs(hashint4(n)) %% 6 = 5 THEN 'The provider did not answer (' || n %% 9 || ').' ELSE '' END,
       jsonb_build_object('timing', jsonb_build_object(
           'embeddingMs', 60 + random() * 90, 'searchMs', 5 + random() * 20, 'rerankingMs', 200 + random() * 200,
           'openaiMs', 900 + random() * 4000),
           'search', jsonb_build_object('rawResults', results.list),
           'reranking', jsonb_build_object('results', '[{"originalRank": 4, "newRank": 1, "score": 0.7}]'::jsonb)),
       (1000 + random() * 6000)::integer, (500 + random() * 900)::integer,
       -- One after the other, so that they lie in the order they were asked, as everywhere.
       now() - (1 - (n - random()) / %(questions)s) * 365 * interval '1 day'
FROM generate_series(%(first)s::integer, %(last)s::integer) AS n
CROSS JOIN LATERAL (SELECT (ARRAY['one', 'one', 'one', 'two', 'two', 'three'])[1 + n %% 6] AS name) t
CROSS JOIN LATERAL (SELECT md5('d' || t.name || abs(hashint4(n + 5)) %% 200)::uuid AS id) d
CROSS JOIN LATERAL (
    SELECT jsonb_agg(jsonb_build_object(
        'chunkId', md5('p' || n || place)::uuid, 'documentId', d.id, 'similarity', round(random()::numeric, 3),
        'preview', repeat('Full-time staff have 25 days. ', 8))) AS list
    FROM generate_series(1, 5) AS place
) results
"""
PROMPT = """
INSERT INTO prompts (chat_log_id, tenant_id, messages, passages)
SELECT l.id, l.tenant_id, '[{"role": "user", "content": "How many days of leave do I have?"}]',
       jsonb_agg(jsonb_build_object(
           'number', 1, 'chunkId', r ->> 'chunkId', 'documentId', r ->> 'documentId', 'title', 'Handbook',
           'firstPage', 3, 'lastPage', 4, 'section', '', 'text', repeat('Full-time staff have 25 days. ', 40),
           'unsupported', '[]'::jsonb, 'state', 'held'))
FROM chat_logs l CROSS JOIN LATERAL jsonb_array_elements(l.rag_details #> '{search,rawResults}') r
WHERE l.created_at > now() - interval '10 days' GROUP BY l.id
"""
PAY = """
INSERT INTO cost_ledger (tenant_id, operation, provider, model, input_tokens, output_tokens, cost, chat_log_id,
                         created_at)
SELECT l.tenant_id, paid.operation, paid.provider, paid.model, 1800, 150, paid.cost, l.id, l.created_at
FROM chat_logs l
CROSS JOIN (VALUES ('chat', 'openai', 'gpt-4o', 0.006), ('reranking', 'cohere', 'rerank-v3.5', 0.002))
    AS paid(operation, provider, model, cost)
"""
#: Unanswered questions in 1,500 gaps.
GAPS = """
INSERT INTO gaps (id, tenant_id, collection_id)
SELECT md5('g' || t || n)::uuid, t, md5('c' || t || n % 4)::uuid
FROM unnest(ARRAY['one', 'two', 'three']) t, generate_series(0, 1499) n;
INSERT INTO gap_questions (chat_log_id, tenant_id, gap_id, embedder, embedding, asked_at, account_id, user_group,
                           language, outcome, wording)
SELECT id, tenant_id, md5('g' || tenant_id || abs(hashtext(id::text)) % 1500)::uuid, 'x', '[1,2,3]', created_at,
       account_id, user_group, language, outcome, hashtext(question)
FROM chat_logs WHERE outcome = 'no_context';
"""
RATE = """
INSERT INTO feedback (tenant_id, chat_log_id, rating, created_at)
SELECT tenant_id, id, (random() < 0.8)::integer, created_at FROM chat_logs WHERE random() < 0.2
"""


def fill(superuser: str, questions: int) -> None:
    with psycopg.connect(superuser, dbname=DATABASE, autocommit=True) as connection:
        connection.execute("INSERT INTO tenants (id, name) VALUES ('one', 'One'), ('two', 'Two'), ('three', 'Three')")
        # The order of triggers' work is not what is measured.
        connection.execute("SET session_replication_role = replica")
        connection.execute(SHELVES)
        for first in range(1, questions + 1, 100_000):
            last = min(first + 99_999, questions)
            connection.execute(FILL, {"first": first, "last": last, "questions": questions})
            print(f"{last:,} questions", flush=True)
        connection.execute(PAY)
        connection.execute(RATE)
        connection.execute(PROMPT)
        connection.execute(GAPS)
        connection.execute("VACUUM ANALYZE")


def _no_embedder(model: str) -> QuestionEmbedder:
    raise AssertionError(f"No question is grouped here, by {model}.")


class Clocks:
    """The time that passed, and the time of the processor that this process and the server's processes took."""

    def __init__(self, database: Database) -> None:
        with database.transaction("one") as connection:
            row = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None
        parent = Path(f"/proc/{row[0]}/stat").read_text("ascii").rpartition(") ")[2].split()[1]
        self._children = Path(f"/proc/{parent}/task/{parent}/children")

    def now(self) -> Pair:
        taken = 0
        for child in self._children.read_text("ascii").split():
            with suppress(FileNotFoundError):
                taken += int(Path(f"/proc/{child}/schedstat").read_text("ascii").split()[0])
        return time.perf_counter(), time.process_time() + taken / 1e9

    def median_ms(self, *actions: Callable[[], object]) -> list[Pair]:
        """Time the actions in turns, after one round that warms."""
        taken: list[list[Pair]] = [[] for _ in actions]
        for turn in range(ROUNDS + 1):
            for times, action in zip(taken, actions, strict=True):
                before = self.now()
                action()
                after = self.now()
                if turn:
                    times.append((1000 * (after[0] - before[0]), 1000 * (after[1] - before[1])))
        return [(statistics.median(p for p, _ in times), statistics.median(c for _, c in times)) for times in taken]


def written(pair: Pair) -> str:
    return f"{pair[0]:7.1f} /{pair[1]:6.1f}"


def first_view(analytics: Analytics, tenant: Who, period: Period, filters: Filters) -> object:
    return (
        analytics.totals(tenant, period, filters),
        analytics.totals(tenant, period.previous, filters),
        analytics.times(tenant, period, filters, stages=["first", "whole"]),
        analytics.times(tenant, period.previous, filters, stages=["first", "whole"]),
        analytics.by_day(tenant, period, filters),
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--questions", type=int, default=1_000_000)
    arguments.add_argument("--data", type=Path)
    wanted = arguments.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server = start_server(wanted.data or Path(folder))
        try:
            migrate(server.owner)
            with psycopg.connect(server.superuser, dbname=DATABASE) as connection:
                is_filled = connection.execute("SELECT EXISTS (SELECT FROM chat_logs)").fetchone()
            if is_filled != (True,):
                fill(server.superuser, wanted.questions)
            database = Database(server.application, sealing_key(server.owner))
            database.open()
            measure(Analytics(database), database)
            measure_logging(database, Clocks(database))
            database.close()
        finally:
            server.stop()


def measure(analytics: Analytics, database: Database) -> None:
    started = time.perf_counter()
    days = analytics.days.add_up("one", seconds=600)
    print(f"{days} days added up in {time.perf_counter() - started:.1f} s")
    with database.transaction("one") as connection:
        # The day after which nothing has been asked yet is read from its rows.
        connection.execute("DELETE FROM rolled_days WHERE day >= (SELECT max(created_at)::date - 1 FROM chat_logs)")
    clocks, today = Clocks(database), datetime.now(UTC).date()
    any_question, gaps = QuestionFilters(), Gaps(database, _no_embedder, HelpRequests(database))
    views: dict[str, Callable[[Period, Filters], object]] = {
        "first view": lambda p, f: first_view(analytics, ADMIN, p, f),
        "totals": lambda p, f: analytics.totals(ADMIN, p, f),
        "by day": lambda p, f: analytics.by_day(ADMIN, p, f),
        "waiting times": lambda p, f: analytics.times(ADMIN, p, f, stages=["first", "whole"]),
        "stages by day": lambda p, f: analytics.stage_percentiles(ADMIN, p, f),
        "spread of times": lambda p, f: analytics.time_histogram(ADMIN, p, f, "whole"),
        "costs by day": lambda p, f: analytics.cost_by_day(ADMIN, p, f, "operation"),
        "costs by model": lambda p, f: analytics.cost_by_model(ADMIN, p, f),
        "who asks": lambda p, f: analytics.by_part(ADMIN, p, f, "group"),
        "top documents": lambda p, f: analytics.top_documents(ADMIN, p, f),
        "unused documents": lambda p, f: analytics.unused_documents(ADMIN, p, f),
        "groups, languages": lambda p, f: (analytics.user_groups(ADMIN, p), analytics.languages(ADMIN, p)),
        "searches": lambda p, f: analytics.searches(ADMIN, p, f),
        "found documents": lambda p, f: analytics.found_documents(ADMIN, p, f),
        "named passages": lambda p, f: analytics.top_passages(ADMIN, p, f),
        "errors": lambda p, f: analytics.errors(ADMIN, p, f),
        "repeated calls": lambda p, f: analytics.repeated_calls(ADMIN, p),
        "slowest": lambda p, f: analytics.questions(ADMIN, p, f, any_question, slowest_first=True, limit=10),
        "questions": lambda p, f: analytics.questions(ADMIN, p, f, any_question, limit=25),
        "their number": lambda p, f: analytics.count_questions(ADMIN, p, f, any_question),
        "failed ones": lambda p, f: analytics.questions(ADMIN, p, f, QuestionFilters(outcome="failed"), limit=25),
        "with a word": lambda p, f: analytics.questions(ADMIN, p, f, QuestionFilters(text="777"), limit=25),
        "gaps": lambda p, f: gaps.list(ADMIN, p, f),
    }
    before = resident_mb()
    groups = {"": Filters(), ", one group": Filters(user_group="Sales"), ", one language": Filters(language="en")}
    for words, filters in groups.items():
        print(f"\nms, median of {ROUNDS}, of them the processor's{words}\n{'':18}"
              + "".join(f"{days:>13} d" for days in (7, 30, 90, 365)))  # fmt: skip
        for name, view in views.items():
            taken = []
            for days in (7, 30, 90, 365):
                period = Period.of_days(days, until=today)
                taken += clocks.median_ms(lambda view=view, p=period, f=filters: view(p, f))  # type: ignore[misc]
            print(f"{name:18}" + "".join(written(pair) for pair in taken), flush=True)
    (one, *_) = analytics.questions(ADMIN, Period.of_days(7, until=today), Filters(), any_question, limit=1)
    (pair,) = clocks.median_ms(lambda: analytics.question(ADMIN, one.id))
    print(
        f"\none question      {written(pair)}\nthe process grew by {resident_mb() - before:.0f} MB meanwhile",
        flush=True,
    )
    print("\nThe same from the rows")
    sums = {days: analytics.totals("one", Period.of_days(days, until=today), Filters()) for days in (7, 90)}
    with database.transaction("one") as connection:
        weeks = connection.execute("SELECT tenant_id, day FROM rolled_weeks").fetchall()
        days_before = connection.execute("DELETE FROM rolled_days RETURNING tenant_id, day").fetchall()
    for days in (7, 90):
        period = Period.of_days(days, until=today)
        assert analytics.totals(ADMIN, period, Filters()) == sums[days]
        (pair,) = clocks.median_ms(lambda period=period: analytics.totals(ADMIN, period, Filters()))  # type: ignore[misc]
        print(f"totals, {days:3} days  {written(pair)}", flush=True)
    with database.transaction("one") as connection, connection.cursor() as cursor:
        # The sums are still there, and right: another run need not add them up.
        cursor.executemany("INSERT INTO rolled_days (tenant_id, day) VALUES (%s, %s)", days_before)
        cursor.executemany("INSERT INTO rolled_weeks (tenant_id, day) VALUES (%s, %s)", weeks)


def measure_logging(database: Database, clocks: Clocks) -> None:
    """Time what a question pays: its row is opened before, and closed with everything after."""
    logs, text = ChatLogs(database), "How many days of leave do I have after 5 years?"
    person, collection_id = (
        UUID(hashlib.md5(name, usedforsecurity=False).hexdigest()) for name in (b"aone0", b"cone0")
    )
    asker = Identity(account_id=person, tenant_id="one", email="", name="", role=Role.EMPLOYEE)
    (collection,) = find_collections(database, "one", collection_id=collection_id)
    question = Question(text=text, identity=asker, collection=collection)
    opened: list[UUID] = []
    (opening,) = clocks.median_ms(lambda: opened.append(logs.open(question)))
    found = RawResultDetails(chunk_id=str(person), document_id=str(person), similarity=0.5, preview="x" * 240)
    details = RAGDetails(search=SearchDetails(raw_results=[found] * 10))
    (closing,) = clocks.median_ms(
        lambda: logs.close(
            "one", opened.pop(), QuestionEnd(outcome=Outcome.ANSWERED, answer=text * 8, details=details, total_ms=900)
        )
    )
    print(f"\nlogging a question, before {written(opening)}, after it {written(closing)}")


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 1_000_000


if __name__ == "__main__":
    main()
