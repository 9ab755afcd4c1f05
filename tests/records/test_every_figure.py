"""Every figure of the analytics page equals what pandas computes from the rows, also where days were added up.

The rows are read past everything the product has for it, and periods, filters and forgotten days are drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.money.budgets import Budgets
from rag.records.analytics import (
    FIRST,
    STAGES,
    WHOLE,
    Analytics,
    Breakdown,
    Filters,
    LoggedSearch,
    PartsBy,
    Period,
    QuestionFilters,
)
from rag.records.forecast import CHAT_OPERATIONS, forecast, with_other_model
from rag.services import Services, program_of
from rag.storage.database import Database
from rag.types import Collection
from rag.ui.charts import SCORE_STEPS, score_figure
from rag.ui.search_metrics import reranking_of, search_groups
from tests.question_month import write_month
from tests.records.test_analytics import pay

LAST = date(2026, 11, 15)
DAYS = 16
CLOSED = ("answered", "perhaps", "no_context", "refused", "stopped", "failed")
OUTCOMES = (*CLOSED, "small_talk", "asked_back")
COLUMN_OF = {"operation": "operation", "model": "model", "group": "user_group", "purpose": "purpose",
             "collection": "collection"}  # fmt: skip
MIX = """
UPDATE chat_logs SET outcome = CASE abs(hashtext('o' || id::text)) % 16 WHEN 0 THEN 'refused' WHEN 1 THEN 'small_talk'
    WHEN 2 THEN 'perhaps' WHEN 3 THEN 'asked_back' ELSE outcome END
WHERE outcome = 'answered' AND kind = 'question'
"""
NOTICE = """
UPDATE chat_logs SET rag_details = rag_details || jsonb_build_object('notices', jsonb_build_array(
    (ARRAY['The reranker did not answer.', 'The question could not be translated.'])[1 + abs(hashtext(id::text)) % 2]))
WHERE kind = 'question' AND abs(hashtext('n' || id::text)) % 5 = 0
"""
#: What answers were built on, and calls that were cut off.
PROMPTS = """
INSERT INTO prompts (chat_log_id, tenant_id, messages, passages)
SELECT l.id, l.tenant_id, '[]', jsonb_agg(jsonb_build_object('chunkId', c.id, 'documentId', c.document_id, 'firstPage',
    c.first_page, 'lastPage', c.last_page, 'section', '', 'text', c.content,
    'state', (ARRAY['held', 'not held', 'not named'])[1 + abs(hashtext(l.id::text || c.id)) % 3]))
FROM chat_logs l JOIN document_chunks c ON c.document_id = ANY (l.document_ids) AND c.chunk_index < 2
WHERE l.outcome = 'answered' AND l.kind = 'question' GROUP BY l.id
"""
CUT_OFF = """
INSERT INTO cost_ledger (tenant_id, operation, provider, model, cost, is_estimated, created_at)
SELECT 'demo', 'chat', 'openai', 'gpt-4o', 0.001, true, created_at FROM chat_logs WHERE total_ms > 3000
"""
ASKERS = """
INSERT INTO accounts (tenant_id, email, role, password_hash)
SELECT 'demo', n || '@demo.example', 'employee', '' FROM generate_series(1, 5) AS n
"""
ASKED_BY = """
UPDATE chat_logs l SET account_id = (
    SELECT id FROM accounts WHERE email = abs(hashtext(l.id::text)) % 6 || '@demo.example')
WHERE kind = 'question'
"""


@dataclass(frozen=True)
class Rows:
    """All rows of the tenant, as pandas reads them."""

    asked: pd.DataFrame
    paid: pd.DataFrame
    feedback: pd.DataFrame
    prompts: pd.DataFrame
    documents: pd.DataFrame


@pytest.fixture
def rows(database: Database, collection: Collection) -> Rows:
    """Write sixteen days with everything that the page counts, and read them."""
    with database.transaction("demo") as connection:
        other = connection.execute(
            "INSERT INTO collections (tenant_id, name, embedding_model) "
            "SELECT tenant_id, 'Other', embedding_model FROM collections WHERE id = %s RETURNING id",
            (collection.id,),
        ).fetchone()
    assert other is not None
    written = write_month(database, "demo", collection.id, until=LAST, days=DAYS, questions_per_day=12)
    for kind, cost in (("search", "0.002"), ("evaluation", "0.03")):
        with database.transaction("demo") as connection:
            found = connection.execute(
                "INSERT INTO chat_logs (tenant_id, question, outcome, kind, created_at) "
                "VALUES ('demo', 'x', 'answered', %s, '2026-11-10 12:00+00') RETURNING id",
                (kind,),
            ).fetchone()
        assert found is not None
        pay(database, "reranking", cost, chat_log_id=found[0])
    pay(database, "ocr", "0.5")
    pay(database, "ocr", None, model="own-ocr")
    with database.transaction("demo") as connection:
        for statement in (ASKERS, ASKED_BY, MIX, NOTICE, PROMPTS, CUT_OFF):
            connection.execute(statement)
        connection.execute("UPDATE chat_logs SET collection_id = %s WHERE id = ANY (%s)", (other[0], written[::3]))
        connection.execute("UPDATE documents SET created_at = '2026-11-04' WHERE title LIKE 'B%'")
        connection.execute("UPDATE documents SET created_at = '2026-10-01' WHERE title NOT LIKE 'B%'")

    def read(statement: str) -> pd.DataFrame:
        with database.transaction("demo") as connection:
            cursor = connection.execute(statement)
            assert cursor.description is not None
            return pd.DataFrame(cursor.fetchall(), columns=[column.name for column in cursor.description])

    asked = read("SELECT l.*, coalesce(c.name, '') AS collection FROM chat_logs l "
                 "LEFT JOIN collections c ON c.id = l.collection_id WHERE kind = 'question'")  # fmt: skip
    paid = read("SELECT c.*, l.user_group, l.language, l.document_ids, l.kind, coalesce(o.name, '') AS collection "
                "FROM cost_ledger c LEFT JOIN chat_logs l ON l.id = c.chat_log_id "
                "LEFT JOIN collections o ON o.id = c.collection_id")  # fmt: skip
    for frame in (asked, paid):
        frame["day"] = pd.to_datetime(frame["created_at"], utc=True).dt.date
    paid["user_group"] = paid["user_group"].fillna("")
    paid["purpose"] = paid["kind"].fillna(paid["document_id"].map(lambda one: "other" if pd.isna(one) else "document"))
    return Rows(
        asked=asked,
        paid=paid,
        feedback=read("SELECT * FROM feedback"),
        prompts=read(
            "SELECT p.chat_log_id, passage ->> 'text' AS text, passage ->> 'state' AS state "
            "FROM prompts p CROSS JOIN LATERAL jsonb_array_elements(p.passages) AS passage"
        ),
        documents=read("SELECT id, title, created_at, collection_id FROM documents WHERE status = 'completed'"),
    )


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


def begun(days: pd.Series, unit: str) -> pd.Series:
    """Return the first day of the day, week or month of each."""
    return pd.to_datetime(days).dt.to_period(unit[0].upper()).dt.start_time.dt.date


def summed(costs: pd.Series) -> Decimal:
    return sum(costs.dropna(), Decimal(0))


def known(costs: pd.Series) -> Decimal | None:
    """Return the sum of the known prices; None where there is none."""
    return summed(costs) if costs.notna().any() else None


def test_every_figure_equals_pandas_over_random_filters(database: Database, collection: Collection, rows: Rows) -> None:
    analytics, asked = Analytics(database), rows.asked
    groups: list[Any] = [None, *sorted(asked["user_group"].unique()), "nobody"]
    languages: list[Any] = [None, *sorted(asked["language"].unique())]
    documents: list[Any] = [None, None, None, *sorted({i for ids in asked["document_ids"] for i in ids})]
    collections: list[Any] = [None, *sorted(asked["collection_id"].unique())]

    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(
        first=st.integers(0, DAYS + 2),
        length=st.integers(1, DAYS),
        group=st.sampled_from(groups),
        language=st.sampled_from(languages),
        document=st.sampled_from(documents),
        collection_id=st.sampled_from(collections),
        unit=st.sampled_from(["day", "week", "month"]),
        forgotten=st.sets(st.integers(0, DAYS), max_size=3),
    )
    def check(
        first: int, length: int, group: Any, language: Any, document: Any, collection_id: Any, unit: Any,
        forgotten: set[int],
    ) -> None:  # fmt: skip
        period = Period.of_days(length, until=LAST - timedelta(days=first - 2))
        filters = Filters(document_id=document, user_group=group, language=language, collection_id=collection_id)
        analytics.days.add_up("demo")
        with database.transaction("demo") as connection:
            connection.execute(
                "DELETE FROM rolled_days WHERE day = ANY (%s)", ([LAST - timedelta(days=n) for n in forgotten],)
            )
        for one in (period, period.previous):
            check_totals(analytics, rows, one, filters)
        check_days(analytics, rows, period, filters, unit)
        check_costs(analytics, rows, period, filters, unit)
        check_times(analytics, rows, period, filters, unit)
        check_parts(analytics, rows, period, filters)
        check_documents(analytics, rows, period, filters)
        check_list(analytics, rows, period, filters)
        check_search(analytics, rows, period, filters)
        check_errors(analytics, rows, period, filters)

    check()


def check_totals(analytics: Analytics, rows: Rows, period: Period, filters: Filters) -> None:
    questions, calls = chosen(rows.asked, period, filters), chosen(rows.paid, period, filters)
    rated = rows.feedback[rows.feedback["chat_log_id"].isin(questions["id"])]
    now, ended = analytics.totals("demo", period, filters), questions["outcome"].value_counts()
    assert now.questions == len(questions)
    assert [getattr(now, outcome) for outcome in OUTCOMES] == [ended.get(outcome, 0) for outcome in OUTCOMES]
    closed = questions[questions["outcome"].isin(CLOSED)]
    assert now.ended == len(closed)
    assert now.answered_rate == (float((closed["outcome"] == "answered").mean()) if len(closed) else None)
    assert (now.rated, now.helpful) == (len(rated), int((rated["rating"] == 1).sum()))
    assert now.helpful_rate == (float((rated["rating"] == 1).mean()) if len(rated) else None)
    assert now.people == questions["account_id"].nunique()
    assert (now.calls, now.unpriced_calls) == (len(calls), int(calls["cost"].isna().sum()))
    assert now.cost == summed(calls["cost"])
    answers = int(questions["outcome"].isin(["answered", "perhaps"]).sum())
    of_questions = summed(calls[calls["purpose"] == "question"]["cost"])
    is_known = not len(calls) or calls["cost"].notna().any()
    assert now.cost_per_answer == (of_questions / answers if answers and is_known else None)


def check_days(analytics: Analytics, rows: Rows, period: Period, filters: Filters, unit: Any) -> None:
    questions, calls = chosen(rows.asked, period, filters), chosen(rows.paid, period, filters)
    days = {day.day: day for day in analytics.by_day("demo", period, filters, unit)}
    every = begun(pd.Series([period.first + timedelta(days=n) for n in range(period.days)]), unit)
    assert list(days) == sorted(set(every))
    rated = rows.feedback.merge(questions[["id", "day"]], left_on="chat_log_id", right_on="id", suffixes=("", "_asked"))
    for first, day in days.items():
        own = questions[begun(questions["day"], unit) == first]
        ended = own["outcome"].value_counts()
        assert day.questions == len(own)
        assert [getattr(day, outcome) for outcome in OUTCOMES] == [ended.get(outcome, 0) for outcome in OUTCOMES]
        of_it = rated[begun(rated["day"], unit) == first]
        assert (day.rated, day.helpful) == (len(of_it), int((of_it["rating"] == 1).sum()))
        assert day.cost == summed(calls[begun(calls["day"], unit) == first]["cost"])


def check_costs(analytics: Analytics, rows: Rows, period: Period, filters: Filters, unit: Any) -> None:
    calls = chosen(rows.paid, period, filters).copy()
    calls["begun"] = begun(calls["day"], unit)
    for by, column in COLUMN_OF.items():
        spent = analytics.cost_by_day("demo", period, filters, by, unit)  # type: ignore[arg-type]
        expected = {
            key: (known(own["cost"]), len(own), int(own["cost"].isna().sum()))
            for key, own in calls.groupby(["begun", column])
        }
        assert {(row.day, row.name): (row.cost, row.calls, row.unpriced_calls) for row in spent} == expected, by
    counted = ["input_tokens", "cached_input_tokens", "output_tokens", "search_units", "pages"]
    used = analytics.cost_by_model("demo", period, filters)
    assert {
        (row.provider, row.model, row.operation): (
            row.cost, row.calls, row.unpriced_calls, *(getattr(row, name) for name in counted)
        )
        for row in used
    } == {
        key: (known(own["cost"]), len(own), int(own["cost"].isna().sum()), *(int(own[name].sum()) for name in counted))
        for key, own in calls.groupby(["provider", "model", "operation"])
    }  # fmt: skip
    chats = calls[calls["operation"].isin(CHAT_OPERATIONS)]
    other = with_other_model(used, "openai", "own-model", {"own-model": {"input_mtok": "3", "output_mtok": "12"}})
    assert (other.calls, other.paid) == (len(chats), summed(chats["cost"]))
    assert other.unpriced_calls == int(chats["cost"].isna().sum())
    if len(chats):
        would_cost = Decimal(int(chats["input_tokens"].sum()) * 3 + int(chats["output_tokens"].sum()) * 12) / 1_000_000
        assert other.would_cost == would_cost


def check_times(analytics: Analytics, rows: Rows, period: Period, filters: Filters, unit: Any) -> None:
    questions = chosen(rows.asked, period, filters)
    whole = questions[~questions["outcome"].isin(["small_talk", "asked_back"])]
    columns = {WHOLE: whole["total_ms"], FIRST: whole["first_token_ms"]}
    columns |= {stage: questions[f"{stage}_ms"][questions[f"{stage}_ms"] > 0] for stage in STAGES}
    times = {row.stage: row for row in analytics.times("demo", period, filters)}
    in_units = {(row.stage, row.day): row for row in analytics.times("demo", period, filters, unit=unit)}
    for stage, column in columns.items():
        values = column.dropna()
        assert (stage in times) == bool(len(values))
        of_units = values.groupby(begun(questions.loc[values.index, "day"], unit))
        assert {day for name, day in in_units if name == stage} == set(of_units.groups)
        pairs = [(times[stage], values)] if len(values) else []
        for row, own in [*pairs, *((in_units[stage, day], own) for day, own in of_units)]:
            assert row.questions == len(own)
            assert not row.is_about
            assert row.p50_ms == pytest.approx(float(own.astype(float).quantile(0.5)), rel=1e-6)
            assert row.p95_ms == pytest.approx(float(own.astype(float).quantile(0.95)), rel=1e-6)
        spread = analytics.time_histogram("demo", period, filters, stage)
        buckets = values.astype(float).map(lambda ms: (round(50 * math.log(max(ms, 1))) + 2) // 5)
        assert {round(10 * math.log(one.ms)): one.questions for one in spread} == buckets.value_counts().to_dict()


def check_parts(analytics: Analytics, rows: Rows, period: Period, filters: Filters) -> None:
    questions = chosen(rows.asked, period, filters)
    rated = rows.feedback.merge(questions, left_on="chat_log_id", right_on="id", suffixes=("", "_asked"))
    for by, column in (("language", "language"), ("group", "user_group"), ("collection", "collection")):
        expected = []
        for name, own in questions.groupby(column):
            ended, of_it = own["outcome"].value_counts(), rated[rated[column] == name]
            expected.append(
                Breakdown(
                    name=str(name), questions=len(own),
                    answered=ended.get("answered", 0), perhaps=ended.get("perhaps", 0),
                    no_context=ended.get("no_context", 0), rated=len(of_it), helpful=int((of_it["rating"] == 1).sum()),
                    ended=int(own["outcome"].isin(CLOSED).sum()),
                )
            )  # fmt: skip
        parts = analytics.by_part("demo", period, filters, by)  # type: ignore[arg-type]
        assert parts == sorted(expected, key=lambda part: (-part.questions, part.name)), by
    everything = chosen(rows.asked, period, Filters())
    assert analytics.languages("demo", period) == sorted(everything["language"].unique())
    assert set(analytics.user_groups("demo", period)) == set(everything["user_group"].unique())


def check_documents(analytics: Analytics, rows: Rows, period: Period, filters: Filters) -> None:
    questions = chosen(rows.asked, period, filters)
    single = questions.explode("document_ids").drop_duplicates(["id", "document_ids"]).dropna(subset=["document_ids"])
    single = single.merge(rows.feedback[["chat_log_id", "rating"]], left_on="id", right_on="chat_log_id", how="left")
    expected = {
        document: (own["id"].nunique(), own["created_at"].max(), int(own["rating"].notna().sum()),
                   int((own["rating"] == 1).sum()))
        for document, own in single.groupby("document_ids")
    }  # fmt: skip
    used = analytics.top_documents("demo", period, filters)
    assert {u.document_id: (u.questions, u.last_asked_at, u.rated, u.helpful) for u in used} == expected
    of_collection = Filters(collection_id=filters.collection_id)
    there = rows.documents[rows.documents["created_at"] < pd.Timestamp(period.first, tz="UTC")]
    if filters.collection_id is not None:
        there = there[there["collection_id"] == filters.collection_id]
    helped = {document for ids in chosen(rows.asked, period, of_collection)["document_ids"] for document in ids}
    unused = analytics.unused_documents("demo", period, filters)
    assert {row.document_id for row in unused} == set(there["id"]) - helped
    assert analytics.has_settled_documents("demo", period, filters) == bool(len(there))
    hits = [hit for details in questions["rag_details"] for hit in _documents_found(details)]
    found = analytics.found_documents("demo", period, filters)
    assert {str(key): times for key, times in found.items()} == pd.Series(hits, dtype=object).value_counts().to_dict()


def check_list(analytics: Analytics, rows: Rows, period: Period, filters: Filters) -> None:
    questions = chosen(rows.asked, period, filters)
    ratings = rows.feedback.groupby("chat_log_id")["rating"].max()
    rated = {rating: set(rows.feedback[rows.feedback["rating"] == rating]["chat_log_id"]) for rating in (0, 1)}
    for outcome in (None, *OUTCOMES):
        for rating in (None, 0, 1):
            for text in ("", "LEAVE"):
                listed = questions if outcome is None else questions[questions["outcome"] == outcome]
                listed = listed if rating is None else listed[listed["id"].isin(rated[rating])]
                if text:
                    both = listed["question"].str.lower() + "\0" + listed["answer"].str.lower()
                    listed = listed[both.str.contains(text.lower(), regex=False)]
                wanted = QuestionFilters(outcome=outcome, rating=rating, text=text)
                assert analytics.count_questions("demo", period, filters, wanted) == len(listed)
                if outcome in (None, "failed"):
                    page = analytics.questions("demo", period, filters, wanted, limit=7)
                    newest = listed.sort_values("created_at", ascending=False)["created_at"].head(7)
                    assert [row.created_at for row in page] == list(newest)
                    by_id = {row["id"]: row for _, row in listed.iterrows()}
                    assert [(row.cost, row.is_priced, row.total_ms, row.rating) for row in page] == [
                        (by_id[row.id]["cost"], by_id[row.id]["is_priced"], by_id[row.id]["total_ms"],
                         ratings.get(row.id))
                        for row in page
                    ]  # fmt: skip
    slowest = analytics.questions("demo", period, filters, QuestionFilters(), slowest_first=True, limit=5)
    assert [row.total_ms for row in slowest] == sorted(questions["total_ms"].dropna(), reverse=True)[:5]


def check_search(analytics: Analytics, rows: Rows, period: Period, filters: Filters) -> None:
    questions = chosen(rows.asked, period, filters)
    ended = questions[questions["outcome"].isin(CLOSED)]
    expected = [brought for _, row in ended.iterrows() if (brought := _searched(row)) is not None]
    searches = analytics.searches("demo", period, filters)
    assert sorted(
        (s.is_answered, s.language, s.user_group, s.collection, s.similarity or 0, s.score or 0, s.moved_from or 0,
         s.is_translated)
        for s in searches
    ) == sorted(expected)  # fmt: skip
    check_shares(searches, pd.DataFrame([_searched_fully(row) for _, row in ended.iterrows() if _searched(row)]))
    named = rows.prompts[rows.prompts["chat_log_id"].isin(questions["id"]) & (rows.prompts["state"] != "not named")]
    passages = analytics.top_passages("demo", period, filters, limit=1000)
    assert sorted((use.text, use.questions, use.not_held) for use in passages) == sorted(
        (text, len(own), int((own["state"] == "not held").sum())) for text, own in named.groupby("text")
    )


def check_shares(searches: Sequence[LoggedSearch], brought: pd.DataFrame) -> None:
    """Compare the shares and medians of the tab Search."""
    reranking = reranking_of(searches)
    moved = brought["place"].dropna() if len(brought) else pd.Series(dtype=float)
    if moved.empty:
        assert reranking is None
    else:
        assert reranking is not None
        later = moved[moved > 1]
        assert reranking.questions == len(moved)
        assert reranking.moved == pytest.approx((moved > 1).mean())
        assert reranking.far == pytest.approx((moved > 5).mean())
        assert reranking.place == (None if later.empty else later.median())
    for by, column in (("language", "language"), ("group", "user_group"), ("collection", "collection")):
        groups = {group.name: group for group in search_groups(searches, cast(PartsBy, by))}
        expected = brought.groupby(column) if len(brought) else ()
        assert set(groups) == {name for name, _own in expected}
        for name, own in expected:
            group = groups[str(name)]
            assert (group.questions, group.translated) == (len(own), own["is_translated"].sum())
            assert group.reranked == own["is_reranked"].sum()
            assert group.answered == pytest.approx(own["is_answered"].mean())
            middle = own["similarity"].median()
            assert group.similarity == (None if pd.isna(middle) else pytest.approx(middle, abs=0.0006))
    for kind in ("similarity", "score"):
        found = [(s, value) for s in searches if (value := getattr(s, kind)) is not None]
        if not found:
            continue
        sides = [[value for s, value in found if s.is_answered is side] for side in (True, False)]
        _figure, bars = score_figure(*sides)
        values = brought.dropna(subset=[kind])
        steps = (values[kind] * SCORE_STEPS).astype(int).clip(0, SCORE_STEPS - 1)
        is_answered = values["is_answered"]
        counted = pd.crosstab(steps, is_answered).reindex(columns=[True, False], fill_value=0)
        drawn = {round(low * SCORE_STEPS): (first, second) for low, first, second in bars if first or second}
        assert drawn == {step: (int(row[True]), int(row[False])) for step, row in counted.iterrows()}


def check_errors(analytics: Analytics, rows: Rows, period: Period, filters: Filters) -> None:
    questions = chosen(rows.asked, period, filters)
    failed = questions[questions["outcome"].isin(["failed", "refused"]) & (questions["error"] != "")]
    errors = analytics.errors("demo", period, filters)
    assert {(row.error, row.outcome): (row.times, row.last_at) for row in errors} == {
        key: (len(own), own["created_at"].max()) for key, own in failed.groupby(["error", "outcome"])
    }
    told = questions.assign(notice=questions["rag_details"].map(lambda details: details.get("notices")))
    told = told.explode("notice").dropna(subset=["notice"])
    notices = analytics.notices("demo", period, filters)
    assert {row.notice: (row.times, row.last_at) for row in notices} == {
        notice: (len(own), own["created_at"].max()) for notice, own in told.groupby("notice")
    }
    latest = dict(zip(questions["id"], questions["created_at"], strict=True))
    assert all(latest[row.latest_id] == row.last_at for row in errors)
    assert all(latest[row.latest_id] == row.last_at for row in notices)
    calls = chosen(rows.paid, period, Filters())
    repeated = analytics.repeated_calls("demo", period)
    assert {(row.provider, row.model, row.operation): row.calls for row in repeated} == {
        key: len(own) for key, own in calls[calls["is_estimated"]].groupby(["provider", "model", "operation"])
    }


def _searched(row: pd.Series) -> tuple[Any, ...] | None:
    """Return what the search brought for a question, read from its JSON."""
    details = row["rag_details"]
    hits = [hit["similarity"] for hit in (details.get("search") or {}).get("rawResults") or () if "similarity" in hit]
    ranked = (details.get("reranking") or {}).get("results") or ()
    if not hits and not ranked:
        return None
    first = [one["originalRank"] for one in ranked if one["newRank"] == 1]
    return (
        row["outcome"] == "answered", row["language"], row["user_group"], row["collection"], max(hits, default=0),
        max((one["score"] for one in ranked), default=0), min(first, default=0),
        bool((details.get("query") or {}).get("translatedQuery")),
    )  # fmt: skip


def _searched_fully(row: pd.Series) -> dict[str, Any]:
    """Return what the search brought for a question, nothing where it brought none."""
    details = row["rag_details"]
    hits = [hit["similarity"] for hit in (details.get("search") or {}).get("rawResults") or () if "similarity" in hit]
    ranked = (details.get("reranking") or {}).get("results") or ()
    first = [one["originalRank"] for one in ranked if one["newRank"] == 1]
    return {
        "is_answered": row["outcome"] == "answered", "language": row["language"], "user_group": row["user_group"],
        "collection": row["collection"], "similarity": max(hits, default=None),
        "score": max((one["score"] for one in ranked), default=None), "place": min(first, default=None),
        "is_reranked": bool(ranked), "is_translated": bool((details.get("query") or {}).get("translatedQuery")),
    }  # fmt: skip


def _documents_found(details: Any) -> set[str]:
    hits = (details.get("search") or {}).get("rawResults") or ()
    return {hit["documentId"] for hit in hits if hit.get("documentId")}


@pytest.mark.parametrize("today", [date(2026, 11, day) for day in (1, 7, 8, 12, 15, 30)], ids=str)
def test_the_projection_of_a_month_equals_pandas(database: Database, rows: Rows, today: date) -> None:
    month = forecast(Analytics(database), "demo", Filters(), today)
    costs = {day: summed(rows.paid[rows.paid["day"] == day]["cost"]) for day in set(rows.paid["day"])}
    spent = sum((cost for day, cost in costs.items() if today.replace(day=1) <= day <= today), Decimal(0))
    assert month.spent == spent
    past = [today - timedelta(days=n) for n in range(28, 0, -1)]
    paid = [day for day in past if costs.get(day, 0)]
    looked_at = [day for day in past if paid and day >= paid[0]]
    if len(looked_at) < 7:
        assert month.expected is None
        return
    means = {}
    for weekday in range(7):
        of_weekday = [costs.get(day, Decimal(0)) for day in looked_at if day.weekday() == weekday]
        means[weekday] = sum(of_weekday, Decimal(0)) / len(of_weekday)
    coming = [today + timedelta(days=n) for n in range(1, 31) if (today + timedelta(days=n)).month == today.month]
    expected = spent + sum((means[day.weekday()] for day in coming), Decimal(0))
    expected += max(means[today.weekday()] - costs.get(today, Decimal(0)), Decimal(0))
    assert month.expected is not None
    assert float(month.expected) == pytest.approx(float(expected))


def test_gaps_count_what_pandas_counts_over_random_filters(
    app_services: Services, database: Database, collection: Collection
) -> None:
    until = datetime.now(UTC).date()
    write_month(database, "demo", collection.id, until=until, days=DAYS, questions_per_day=9)
    with database.transaction("demo") as connection:
        connection.execute(ASKERS)
        connection.execute(ASKED_BY)
        connection.execute(MIX)
    gaps = app_services.gaps
    while gaps.group("demo"):
        pass
    with database.transaction("demo") as connection:
        cursor = connection.execute(
            "SELECT q.gap_id, l.id, l.created_at, l.user_group, l.language, l.account_id, l.question, l.outcome "
            "FROM gap_questions q JOIN chat_logs l ON l.id = q.chat_log_id"
        )
        assert cursor.description is not None
        kept = pd.DataFrame(cursor.fetchall(), columns=[column.name for column in cursor.description])
        due = connection.execute(
            "SELECT count(*) FROM chat_logs l WHERE outcome IN ('no_context', 'refused') "
            "OR outcome = 'perhaps' AND document_ids = '{}' "
            "OR EXISTS (SELECT FROM feedback f WHERE f.chat_log_id = l.id AND f.rating = 0)"
        ).fetchone()
    assert due == (len(kept),)
    kept["day"] = pd.to_datetime(kept["created_at"], utc=True).dt.date

    @settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(
        first=st.integers(0, DAYS),
        length=st.integers(1, DAYS),
        group=st.sampled_from([None, *sorted(kept["user_group"].unique())]),
        language=st.sampled_from([None, *sorted(kept["language"].unique())]),
    )
    def check(first: int, length: int, group: Any, language: Any) -> None:
        period = Period.of_days(length, until=until - timedelta(days=first))
        filters = Filters(user_group=group, language=language)
        listed = {gap.id: gap for state in ("open", "off topic")
                  for gap in gaps.list("demo", period, filters, status=state)}  # fmt: skip
        now, before = chosen(kept, period, filters), chosen(kept, period.previous, filters)
        times_before = before["gap_id"].value_counts()
        assert {gap.id: (gap.times, gap.times_before, gap.people, gap.badly_rated, gap.wordings, gap.last_asked_at,
                         gap.user_groups, gap.languages) for gap in listed.values()} == {
            gap_id: (len(own), times_before.get(gap_id, 0), own["account_id"].nunique(),
                     int((own["outcome"] == "answered").sum()), own["question"].nunique(), own["created_at"].max(),
                     sorted(own["user_group"].unique()), sorted(own["language"].unique()))
            for gap_id, own in now.groupby("gap_id")
        }  # fmt: skip

    check()


def test_what_is_spent_of_each_budget_is_what_pandas_adds_up(
    database: Database, collection: Collection, app_services: Services
) -> None:
    today = datetime.now(UTC).date()
    write_month(database, "demo", collection.id, until=today, days=40, questions_per_day=4)
    with database.transaction("demo") as connection:
        connection.execute(ASKERS)
        connection.execute(ASKED_BY)
        people = connection.execute("SELECT id FROM accounts").fetchall()
        cursor = connection.execute("SELECT c.cost, c.created_at, l.user_group, l.account_id FROM cost_ledger c "
                                    "LEFT JOIN chat_logs l ON l.id = c.chat_log_id")  # fmt: skip
        paid = pd.DataFrame(cursor.fetchall(), columns=["cost", "created_at", "user_group", "account_id"])
    admin, budgets = program_of("demo"), Budgets(database)
    budgets.set(admin, "company", "10")
    for group in ("Sales", "Finance"):
        budgets.set(admin, "group", "1", user_group=group)
    for (account_id,) in people:
        budgets.set(admin, "person", "1", account_id=account_id)
    paid = paid[pd.to_datetime(paid["created_at"], utc=True).dt.date >= today.replace(day=1)]
    for is_added_up in (False, True):
        if is_added_up:
            Analytics(database).days.add_up("demo")
        for budget in budgets.list("demo"):
            own = paid
            if budget.scope != "company":
                column, wanted = (("user_group", budget.user_group) if budget.scope == "group"
                                  else ("account_id", budget.account_id))  # fmt: skip
                own = paid[paid[column] == wanted]
            assert budget.spent == summed(own["cost"]), budget.scope
