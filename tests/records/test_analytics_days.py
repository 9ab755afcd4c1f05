"""Every figure of the analytics page equals what pandas computes from the rows, also where days were added up."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.records.analytics import FIRST, STAGES, WHOLE, Analytics, Filters, Period, QuestionFilters
from rag.storage.database import Database
from rag.types import Collection, Identity, Role
from tests.question_month import write_month
from tests.records.test_analytics import ask, pay, rate

LAST = date(2026, 11, 15)
DAYS = 16
CLOSED = ("answered", "perhaps", "no_context", "refused", "stopped", "failed")

Read = Callable[[str], pd.DataFrame]


@pytest.fixture
def rows(database: Database, collection: Collection) -> Read:
    """Read a statement into a frame, past everything the product has for it."""

    def read(statement: str) -> pd.DataFrame:
        with database.transaction("demo") as connection:
            cursor = connection.execute(statement)
            assert cursor.description is not None
            return pd.DataFrame(cursor.fetchall(), columns=[column.name for column in cursor.description])

    return read


def frames(rows: Read) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    asked = rows("SELECT * FROM chat_logs WHERE kind = 'question'")
    asked["day"] = pd.to_datetime(asked["created_at"], utc=True).dt.date
    paid = rows("SELECT c.*, l.user_group, l.language, l.document_ids FROM cost_ledger c "
                "LEFT JOIN chat_logs l ON l.id = c.chat_log_id")  # fmt: skip
    paid["day"] = pd.to_datetime(paid["created_at"], utc=True).dt.date
    return asked, paid, rows("SELECT * FROM feedback")


def chosen(frame: pd.DataFrame, period: Period, filters: Filters) -> pd.DataFrame:
    frame = frame[(frame["day"] >= period.first) & (frame["day"] <= period.last)]
    for column, wanted in (("user_group", filters.user_group), ("language", filters.language),
                           ("collection_id", filters.collection_id)):  # fmt: skip
        if wanted is not None:
            frame = frame[frame[column] == wanted]
    if filters.document_id is not None:
        holds = frame["document_ids"].map(lambda ids: isinstance(ids, list) and filters.document_id in ids)
        if "document_id" in frame:
            holds |= frame["document_id"] == filters.document_id
        frame = frame[holds.astype(bool)]
    return frame


def percentile(values: pd.Series, share: float) -> float:
    return float(values.astype(float).map(lambda ms: math.exp(round(50 * math.log(max(ms, 1))) / 50)).quantile(share))


def test_every_figure_equals_pandas_over_random_filters(database: Database, collection: Collection, rows: Read) -> None:
    write_month(database, "demo", collection.id, until=LAST, days=DAYS, questions_per_day=12)
    for kind, cost in (("search", "0.002"), ("evaluation", "0.03")):
        with database.transaction("demo") as connection:
            found = connection.execute(
                "INSERT INTO chat_logs (tenant_id, question, outcome, kind, created_at) "
                "VALUES ('demo', 'x', 'answered', %s, '2026-11-10 12:00+00') RETURNING id",
                (kind,),
            ).fetchone()
        assert found is not None
        pay(database, "reranking", cost, chat_log_id=found[0])
    pay(database, "ocr", "0.5", document_id=collection.id)
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO accounts (tenant_id, email, role, password_hash) "
            "SELECT 'demo', n || '@demo.example', 'employee', '' FROM generate_series(1, 5) AS n"
        )
        connection.execute(
            "UPDATE chat_logs l SET account_id = (SELECT id FROM accounts WHERE email = "
            "abs(hashtext(l.id::text)) % 6 || '@demo.example') WHERE kind = 'question'"
        )
        # What answers were built on, and calls that were cut off.
        connection.execute(
            "INSERT INTO prompts (chat_log_id, tenant_id, messages, passages) "
            "SELECT l.id, l.tenant_id, '[]', jsonb_agg(jsonb_build_object('chunkId', c.id, 'documentId', "
            "c.document_id, 'firstPage', c.first_page, 'lastPage', c.last_page, 'section', '', 'text', c.content, "
            "'state', (ARRAY['held', 'not held', 'not named'])[1 + abs(hashtext(l.id::text || c.id)) % 3])) "
            "FROM chat_logs l JOIN document_chunks c ON c.document_id = ANY (l.document_ids) AND c.chunk_index < 2 "
            "WHERE l.outcome = 'answered' AND l.kind = 'question' GROUP BY l.id"
        )
        connection.execute(
            "INSERT INTO cost_ledger (tenant_id, operation, provider, model, cost, is_estimated, created_at) "
            "SELECT 'demo', 'chat', 'openai', 'gpt-4o', 0.001, true, created_at FROM chat_logs WHERE total_ms > 3000"
        )
        connection.execute("UPDATE documents SET created_at = '2026-11-04' WHERE title LIKE 'B%'")
        connection.execute("UPDATE documents SET created_at = '2026-10-01' WHERE title NOT LIKE 'B%'")
    analytics = Analytics(database)
    asked, paid, feedback = frames(rows)
    prompts = rows(
        "SELECT p.chat_log_id, passage ->> 'text' AS text, passage ->> 'state' AS state "
        "FROM prompts p CROSS JOIN LATERAL jsonb_array_elements(p.passages) AS passage"
    )
    shelf = rows("SELECT id, created_at FROM documents WHERE status = 'completed'")
    groups: list[Any] = [None, *sorted(asked["user_group"].unique()), "nobody"]
    languages: list[Any] = [None, *sorted(asked["language"].unique())]
    documents: list[Any] = [None, None, None, *sorted({i for ids in asked["document_ids"] for i in ids})]

    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(
        first=st.integers(0, DAYS + 2),
        length=st.integers(1, DAYS),
        group=st.sampled_from(groups),
        language=st.sampled_from(languages),
        document=st.sampled_from(documents),
        collection_id=st.sampled_from([None, collection.id]),
        unit=st.sampled_from(["day", "week", "month"]),
        forgotten=st.sets(st.integers(0, DAYS), max_size=3),
        by=st.sampled_from(["operation", "model", "group", "purpose"]),
    )
    def check(
        first: int, length: int, group: Any, language: Any, document: Any, collection_id: Any, unit: Any,
        forgotten: set[int], by: Any,
    ) -> None:  # fmt: skip
        end = LAST - timedelta(days=first - 2)
        period = Period.of_days(length, until=end)
        filters = Filters(document_id=document, user_group=group, language=language, collection_id=collection_id)
        analytics.days.add_up("demo")
        with database.transaction("demo") as connection:
            connection.execute(
                "DELETE FROM rolled_days WHERE day = ANY (%s)", ([LAST - timedelta(days=n) for n in forgotten],)
            )
        questions, calls = chosen(asked, period, filters), chosen(paid, period, filters)
        rated = feedback[feedback["chat_log_id"].isin(questions["id"])]
        now = analytics.totals("demo", period, filters)

        ended = questions["outcome"].value_counts()
        assert now.questions == len(questions)
        assert [getattr(now, outcome) for outcome in CLOSED] == [ended.get(outcome, 0) for outcome in CLOSED]
        assert (now.rated, now.helpful) == (len(rated), int((rated["rating"] == 1).sum()))
        assert now.people == questions["account_id"].nunique()
        assert (now.calls, now.unpriced_calls) == (len(calls), int(calls["cost"].isna().sum()))
        assert now.cost == sum(calls["cost"].dropna(), Decimal(0))

        days = analytics.by_day("demo", period, filters, unit)
        assert sum(day.questions for day in days) == now.questions
        assert sum(day.cost for day in days) == now.cost
        spent = analytics.cost_by_day("demo", period, filters, by, unit)
        assert sum((row.cost or Decimal(0) for row in spent), Decimal(0)) == now.cost
        assert sum(row.calls for row in spent) == now.calls

        times = {row.stage: row for row in analytics.times("demo", period, filters)}
        whole = questions[~questions["outcome"].isin(["small_talk", "asked_back"])]
        columns = {WHOLE: whole["total_ms"], FIRST: whole["first_token_ms"]}
        columns |= {stage: questions[f"{stage}_ms"][questions[f"{stage}_ms"] > 0] for stage in STAGES}
        for stage, column in columns.items():
            values = column.dropna()
            assert (stage in times) == bool(len(values))
            if len(values):
                assert times[stage].questions == len(values)
                assert times[stage].p50_ms == pytest.approx(percentile(values, 0.5))
                assert times[stage].p95_ms == pytest.approx(percentile(values, 0.95))
                assert times[stage].p50_ms == pytest.approx(float(values.astype(float).quantile(0.5)), rel=0.011)

        in_parts = analytics.times("demo", period, filters, unit=unit, stages=[WHOLE])
        began = pd.to_datetime(whole.loc[whole["total_ms"].notna(), "day"]).dt.to_period(unit[0].upper()).dt.start_time
        assert {row.day: row.questions for row in in_parts} == began.dt.date.value_counts().to_dict()

        used = {use.document_id: use for use in analytics.top_documents("demo", period, filters)}
        counted = questions.explode("document_ids").drop_duplicates(["id", "document_ids"])["document_ids"]
        assert {key: use.questions for key, use in used.items()} == counted.dropna().value_counts().to_dict()
        parts = analytics.by_part("demo", period, filters, "language")
        assert {part.name: part.questions for part in parts} == questions["language"].value_counts().to_dict()
        for outcome in (None, *CLOSED):
            listed = questions if outcome is None else questions[questions["outcome"] == outcome]
            wanted = QuestionFilters(outcome=outcome)
            assert analytics.count_questions("demo", period, filters, wanted) == len(listed)
        slowest = analytics.questions("demo", period, filters, QuestionFilters(), slowest_first=True, limit=5)
        assert [row.total_ms for row in slowest] == sorted(questions["total_ms"].dropna(), reverse=True)[:5]

        check_search(period, filters, questions)

    def check_search(period: Period, filters: Filters, questions: pd.DataFrame) -> None:
        """Compare the figures of the tab Search, and of errors and repeated calls."""
        ended = questions[questions["outcome"].isin(["answered", "perhaps", "no_context", "refused"])]
        expected = [brought for _, row in ended.iterrows() if (brought := _searched(row)) is not None]
        searches = analytics.searches("demo", period, filters)
        assert sorted(
            (s.outcome, s.language, s.user_group, s.similarity or 0, s.score or 0, s.moved_from or 0, s.is_translated)
            for s in searches
        ) == sorted(expected)
        hits = pd.Series(
            [hit for details in questions["rag_details"] for hit in _documents_found(details)], dtype=object
        )
        found = analytics.found_documents("demo", period, filters)
        assert {str(key): times for key, times in found.items()} == hits.value_counts().to_dict()
        named = prompts[prompts["chat_log_id"].isin(questions["id"]) & (prompts["state"] != "not named")]
        passages = analytics.top_passages("demo", period, filters, limit=1000)
        assert sorted((use.text, use.questions, use.not_held) for use in passages) == sorted(
            (text, len(rows), int((rows["state"] == "not held").sum())) for text, rows in named.groupby("text")
        )
        failed = questions[questions["outcome"].isin(["failed", "refused"]) & (questions["error"] != "")]
        errors = analytics.errors("demo", period, filters)
        assert {row.error: row.times for row in errors} == failed["error"].value_counts().to_dict()
        used = {i for ids in chosen(asked, period, Filters(collection_id=filters.collection_id))["document_ids"]
                for i in ids}  # fmt: skip
        there = shelf[shelf["created_at"] < pd.Timestamp(period.first, tz="UTC")]
        unused = {row.document_id for row in analytics.unused_documents("demo", period, filters)}
        assert unused == set(there["id"]) - used
        all_calls = chosen(paid, period, Filters())
        repeated = analytics.repeated_calls("demo", period)
        assert sum(row.calls for row in repeated) == int(all_calls["is_estimated"].sum())

    check()


def _searched(row: pd.Series) -> tuple[Any, ...] | None:
    """What the search brought for a question, read from its JSON."""
    details = row["rag_details"]
    hits = [hit["similarity"] for hit in (details.get("search") or {}).get("rawResults") or () if "similarity" in hit]
    ranked = (details.get("reranking") or {}).get("results") or ()
    if not hits and not ranked:
        return None
    first = [one["originalRank"] for one in ranked if one["newRank"] == 1]
    return (
        row["outcome"], row["language"], row["user_group"], max(hits, default=0),
        max((one["score"] for one in ranked), default=0), min(first, default=0),
        bool((details.get("query") or {}).get("translatedQuery")),
    )  # fmt: skip


def _documents_found(details: Any) -> set[str]:
    hits = (details.get("search") or {}).get("rawResults") or ()
    return {hit["documentId"] for hit in hits if hit.get("documentId")}


def test_a_late_change_of_a_day_that_is_added_up_is_counted(
    database: Database, collection: Collection, tenant: str
) -> None:
    analytics = Analytics(database)
    at = datetime(2026, 11, 10, 12, tzinfo=UTC)
    period, filters = Period(at.date(), at.date()), Filters()
    question = ask(database, created_at=at, outcome="no_context")
    assert analytics.days.add_up(tenant) >= 1
    assert analytics.days.add_up(tenant) == 0

    def figures() -> tuple[int, int, int, int, Decimal]:
        now = analytics.summary(tenant, period, filters).current
        return now.questions, now.answered, now.rated, now.helpful, now.cost

    assert figures() == (1, 0, 0, 0, Decimal(0))
    rate(database, question, 1)
    assert figures() == (1, 0, 1, 1, Decimal(0))
    pay(database, "chat", "0.25", chat_log_id=question, created_at=at)
    assert figures() == (1, 0, 1, 1, Decimal("0.25"))
    with database.transaction(tenant) as connection:
        connection.execute("UPDATE chat_logs SET outcome = 'answered' WHERE id = %s", (question,))
    assert figures() == (1, 1, 1, 1, Decimal("0.25"))
    ask(database, created_at=at + timedelta(hours=11))
    assert figures() == (2, 2, 1, 1, Decimal("0.25"))


def test_a_late_change_of_a_week_that_is_added_up_is_counted(
    database: Database, collection: Collection, tenant: str
) -> None:
    analytics = Analytics(database)
    monday = datetime(2026, 11, 2, 12, tzinfo=UTC)
    for day in range(7):
        ask(database, created_at=monday + timedelta(days=day), total_ms=1000)
    period, filters = Period(monday.date(), monday.date() + timedelta(days=6)), Filters()
    analytics.days.add_up(tenant)

    def is_week_right() -> bool:
        with database.transaction(tenant) as connection:
            return bool(connection.execute("SELECT FROM rolled_weeks WHERE day = %s", (monday.date(),)).fetchall())

    def longest() -> tuple[int, float]:
        (whole,) = analytics.times(tenant, period, filters, stages=[WHOLE])
        return whole.questions, round(whole.p95_ms, -2)

    assert is_week_right()
    assert longest() == (7, 1000)
    ask(database, created_at=monday + timedelta(days=3), total_ms=9000)
    ask(database, created_at=monday + timedelta(days=3), total_ms=9000)
    assert not is_week_right()
    assert longest() == (9, 9000)
    analytics.days.add_up(tenant)
    assert is_week_right()
    assert longest() == (9, 9000)
    # Of half a week its days are read.
    period = Period(monday.date(), monday.date() + timedelta(days=5))
    assert longest()[0] == 8


def test_days_under_way_are_not_added_up_and_those_of_others_are_not_read(database: Database, tenant: str) -> None:
    analytics = Analytics(database)
    now = datetime.now(UTC)
    ask(database, created_at=now)
    ask(database, "other", created_at=now - timedelta(days=3))

    assert analytics.days.add_up(tenant) == 0
    assert analytics.days.add_up("other") >= 2
    assert analytics.summary(tenant, Period(now.date(), now.date()), Filters()).current.questions == 1
    assert analytics.summary(tenant, Period.of_days(9, until=now.date()), Filters()).current.questions == 1


def test_who_may_not_read_a_collection_does_not_count_its_questions(
    database: Database, collection: Collection, tenant: str
) -> None:
    at = datetime(2026, 11, 10, 12, tzinfo=UTC)
    for collection_id in (collection.id, None):
        with database.transaction(tenant) as connection:
            connection.execute(
                "INSERT INTO chat_logs (tenant_id, question, outcome, collection_id, created_at) "
                "VALUES ('demo', 'x', 'answered', %s, %s)",
                (collection_id, at),
            )
    analytics = Analytics(database)
    with database.transaction(tenant) as connection:
        connection.execute("UPDATE collections SET groups = '{Board}' WHERE id = %s", (collection.id,))
    manager = Identity(
        account_id=collection.id, tenant_id=tenant, email="m@demo.example", name="M", role=Role.MANAGER,
        user_group="Sales",
    )  # fmt: skip
    period = Period(at.date(), at.date())

    assert analytics.summary(tenant, period, Filters()).current.questions == 2
    assert analytics.summary(manager, period, Filters()).current.questions == 1
