"""Time the statements of the analytics page over a million questions: added up by day, and from the rows.

    python -m benchmarks.analytics_days [--questions 1000000]

Both are timed in one run, warm, and give the same figures. The first view is the totals and times of the period and of
the one before, and the figures by day.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from rag.records.analytics import Analytics, Filters, Period
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import DATABASE, start_server
from rag.storage.migrations import migrate

ROUNDS = 7
FILL = """
INSERT INTO chat_logs (id, tenant_id, user_group, question, answer, language, outcome, rag_details, total_ms,
                       first_token_ms, created_at)
SELECT md5(n::text)::uuid, (ARRAY['one', 'one', 'one', 'two', 'two', 'three'])[1 + n %% 6],
       (ARRAY['Sales', 'Engineering', 'Operations', 'Finance'])[1 + (hashint4(n) & 3)],
       'How many days of leave do I have after ' || n || ' years?', repeat('Full-time staff have 25 days [1]. ', 12),
       (ARRAY['en', 'de', 'ko', 'nl'])[1 + (hashint4(n + 7) & 3)],
       (ARRAY['answered', 'answered', 'answered', 'perhaps', 'no_context', 'failed'])[1 + abs(hashint4(n)) %% 6],
       jsonb_build_object('timing', jsonb_build_object(
           'embeddingMs', 60 + random() * 90, 'searchMs', 5 + random() * 20, 'rerankingMs', 200 + random() * 200,
           'openaiMs', 900 + random() * 4000), 'search', jsonb_build_object('rawResults', repeat('x', 1500))),
       (1000 + random() * 6000)::integer, (500 + random() * 900)::integer,
       now() - random() * 365 * interval '1 day'
FROM generate_series(%(first)s, %(last)s) AS n
"""
PAY = """
INSERT INTO cost_ledger (tenant_id, operation, provider, model, input_tokens, output_tokens, cost, chat_log_id,
                         created_at)
SELECT l.tenant_id, paid.operation, paid.provider, paid.model, 1800, 150, paid.cost, l.id, l.created_at
FROM chat_logs l
CROSS JOIN (VALUES ('chat', 'openai', 'gpt-4o', 0.006), ('reranking', 'cohere', 'rerank-v3.5', 0.002))
    AS paid(operation, provider, model, cost)
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
        for first in range(1, questions + 1, 100_000):
            last = min(first + 99_999, questions)
            connection.execute(FILL, {"first": first, "last": last})
            print(f"{last:,} questions", flush=True)
        connection.execute(PAY)
        connection.execute(RATE)
        connection.execute("VACUUM ANALYZE")


def median_ms(*actions: Callable[[], object]) -> list[float]:
    """Time the actions in turns, after one round that warms."""
    taken: list[list[float]] = [[] for _ in actions]
    for turn in range(ROUNDS + 1):
        for times, action in zip(taken, actions, strict=True):
            started = time.perf_counter()
            action()
            if turn:
                times.append(1000 * (time.perf_counter() - started))
    return [statistics.median(times) for times in taken]


def first_view(analytics: Analytics, tenant: str, period: Period, filters: Filters) -> object:
    return (
        analytics.totals(tenant, period, filters),
        analytics.totals(tenant, period.previous, filters),
        analytics.times(tenant, period, filters, stages=["first", "whole"]),
        analytics.times(tenant, period.previous, filters, stages=["first", "whole"]),
        analytics.by_day(tenant, period, filters),
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--questions", type=int, default=1_000_000)
    wanted = arguments.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server = start_server(Path(folder))
        try:
            migrate(server.owner)
            fill(server.superuser, wanted.questions)
            database = Database(server.application, sealing_key(server.owner))
            database.open()
            measure(Analytics(database), database)
            database.close()
        finally:
            server.stop()


def measure(analytics: Analytics, database: Database) -> None:
    started = time.perf_counter()
    days = analytics.days.add_up("one", seconds=600)
    print(f"{days} days added up in {time.perf_counter() - started:.1f} s")
    with database.transaction("one") as connection:
        connection.execute("SELECT 1")
    today = datetime.now(UTC).date()
    views: dict[str, Callable[[Period, Filters], object]] = {
        "first view": lambda p, f: first_view(analytics, "one", p, f),
        "totals": lambda p, f: analytics.totals("one", p, f),
        "by day": lambda p, f: analytics.by_day("one", p, f),
        "waiting times": lambda p, f: analytics.times("one", p, f, stages=["first", "whole"]),
        "stages by day": lambda p, f: analytics.stage_percentiles("one", p, f),
        "spread of times": lambda p, f: analytics.time_histogram("one", p, f, "whole"),
        "costs by day": lambda p, f: analytics.cost_by_day("one", p, f, "operation"),
        "costs by model": lambda p, f: analytics.cost_by_model("one", p, f),
        "who asks": lambda p, f: analytics.by_part("one", p, f, "group"),
        "top documents": lambda p, f: analytics.top_documents("one", p, f),
    }
    groups = {"": Filters(), ", one group": Filters(user_group="Sales"), ", one language": Filters(language="en")}
    for words, filters in groups.items():
        print(f"\nms, median of {ROUNDS}{words}\n{'':18}" + "".join(f"{days:>9} d" for days in (7, 30, 90, 365)))
        for name, view in views.items():
            taken = []
            for days in (7, 30, 90, 365):
                period = Period.of_days(days, until=today)
                taken += median_ms(lambda view=view, p=period, f=filters: view(p, f))  # type: ignore[misc]
            print(f"{name:18}" + "".join(f"{ms:11.1f}" for ms in taken), flush=True)
    print("\nThe same from the rows")
    sums = {days: analytics.totals("one", Period.of_days(days, until=today), Filters()) for days in (7, 90)}
    with database.transaction("one") as connection:
        connection.execute("DELETE FROM rolled_days")
    for days in (7, 90):
        period = Period.of_days(days, until=today)
        assert analytics.totals("one", period, Filters()) == sums[days]
        (ms,) = median_ms(lambda period=period: analytics.totals("one", period, Filters()))  # type: ignore[misc]
        print(f"totals, {days:3} days {ms:11.1f}", flush=True)


if __name__ == "__main__":
    main()
