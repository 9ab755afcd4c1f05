from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from rag.errors import InvalidInput, NotFound
from rag.records.analytics import WHOLE, Analytics, Filters, Period, QuestionFilters
from rag.records.chat_logs import LoggedQuestion, questions_to_csv
from rag.storage.database import Database
from rag.types import Collection
from tests.question_month import write_month

DAY = date(2026, 11, 10)
PERIOD = Period(date(2026, 11, 9), DAY)
EVERYTHING = Filters()
ANY = QuestionFilters()


@pytest.fixture
def analytics(database: Database) -> Analytics:
    return Analytics(database)


def ask(database: Database, tenant_id: str = "demo", **values: Any) -> UUID:
    """One row of the log; what is not given is what a plain answered question has."""
    row: dict[str, Any] = {
        "user_group": "",
        "question": "How many days of leave?",
        "answer": "25 days [1].",
        "outcome": "answered",
        "total_ms": 1000,
        "document_ids": [],
        "rag_details": {},
        "cost": Decimal(0),
        "is_priced": True,
        "created_at": datetime(2026, 11, 10, 12, tzinfo=UTC),
    } | values
    row["rag_details"] = Jsonb(row["rag_details"])
    with database.transaction(tenant_id) as connection:
        found = connection.execute(
            "INSERT INTO chat_logs (tenant_id, user_group, question, answer, outcome, total_ms, document_ids, "
            "rag_details, cost, is_priced, created_at) VALUES (%(tenant_id)s, %(user_group)s, %(question)s, "
            "%(answer)s, %(outcome)s, %(total_ms)s, %(document_ids)s::uuid[], %(rag_details)s, %(cost)s, "
            "%(is_priced)s, %(created_at)s) RETURNING id",
            {"tenant_id": tenant_id, **row},
        ).fetchone()
    assert found is not None
    chat_log_id: UUID = found[0]
    return chat_log_id


def pay(database: Database, operation: str, cost: str | None, tenant_id: str = "demo", **values: Any) -> None:
    row = {
        "model": "gpt-4o",
        "provider": "openai",
        "input_tokens": 100,
        "output_tokens": 10,
        "document_id": None,
        "chat_log_id": None,
        "created_at": datetime(2026, 11, 10, 12, tzinfo=UTC),
    } | values
    with database.transaction(tenant_id) as connection:
        connection.execute(
            "INSERT INTO cost_ledger (tenant_id, operation, provider, model, input_tokens, output_tokens, cost, "
            "document_id, chat_log_id, created_at) VALUES (%(tenant_id)s, %(operation)s, %(provider)s, %(model)s, "
            "%(input_tokens)s, %(output_tokens)s, %(cost)s, %(document_id)s, %(chat_log_id)s, %(created_at)s)",
            {"tenant_id": tenant_id, "operation": operation, "cost": None if cost is None else Decimal(cost), **row},
        )


def rate(database: Database, chat_log_id: UUID, rating: int, comment: str = "") -> None:
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO feedback (tenant_id, chat_log_id, rating, comment) VALUES ('demo', %s, %s, %s)",
            (chat_log_id, rating, comment),
        )


def add_document(database: Database, collection: Collection, title: str) -> UUID:
    with database.transaction("demo") as connection:
        found = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status) "
            "VALUES ('demo', %s, %s, %s, %s, 'completed') RETURNING id",
            (collection.id, title, f"{title}.pdf", title),
        ).fetchone()
    assert found is not None
    document_id: UUID = found[0]
    return document_id


# Nothing there


def test_a_tenant_without_questions_has_zeros_and_no_rates(analytics: Analytics, tenant: str) -> None:
    summary = analytics.summary(tenant, PERIOD, EVERYTHING)

    assert (summary.current.questions, summary.current.cost, summary.current.unpriced_calls) == (0, Decimal(0), 0)
    assert summary.times == {}
    assert summary.current.answered_rate is None
    assert summary.current.helpful_rate is None
    assert summary.current.known_cost == 0
    assert [(day.day, day.questions, day.cost) for day in summary.by_day] == [
        (date(2026, 11, 9), 0, Decimal(0)),
        (DAY, 0, Decimal(0)),
    ]
    assert analytics.stage_percentiles(tenant, PERIOD, EVERYTHING) == []
    assert analytics.cost_by_model(tenant, PERIOD, EVERYTHING) == []
    assert analytics.top_documents(tenant, PERIOD, EVERYTHING) == []
    assert analytics.unanswered(tenant, PERIOD, EVERYTHING) == []
    assert analytics.questions(tenant, PERIOD, EVERYTHING, ANY) == []


def test_a_period_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ends before"):
        Period(DAY, DAY - timedelta(days=1))


def test_the_previous_period_is_as_long_and_ends_the_day_before() -> None:
    assert Period.of_days(7, until=DAY) == Period(date(2026, 11, 4), DAY)
    assert Period.of_days(7, until=DAY).previous == Period(date(2026, 10, 28), date(2026, 11, 3))
    assert Period(DAY, DAY).previous == Period(date(2026, 11, 9), date(2026, 11, 9))


# Figures


def test_counts_are_exact_and_percentiles_within_one_percent(
    database: Database, analytics: Analytics, tenant: str
) -> None:
    for total_ms in (1000, 2000, 3000, 4000):
        ask(database, total_ms=total_ms)
    helpful = ask(database, total_ms=5000)
    unhelpful = ask(database, outcome="no_context", total_ms=600)
    ask(database, outcome="failed", total_ms=None)
    ask(database, outcome=None, total_ms=None)  # being answered
    rate(database, helpful, 1)
    rate(database, unhelpful, 0)

    summary = analytics.summary(tenant, PERIOD, EVERYTHING)
    current, taken = summary.current, summary.times[WHOLE]

    assert (current.questions, current.ended, current.answered, current.no_context) == (8, 7, 5, 1)
    assert current.answered_rate == 5 / 7
    assert taken.p50_ms == pytest.approx(2500, rel=0.01)  # of 600, 1000, 2000, 3000, 4000, 5000
    assert taken.p95_ms == pytest.approx(4750, rel=0.01)  # 0.95 * 5 = 4.75 steps from the smallest
    assert taken.questions == 6
    assert (current.rated, current.helpful, current.helpful_rate) == (2, 1, 0.5)


def test_a_day_ends_at_midnight_utc(database: Database, analytics: Analytics, tenant: str) -> None:
    ask(database, created_at=datetime(2026, 11, 9, 0, 0, tzinfo=UTC))
    ask(database, created_at=datetime(2026, 11, 9, 23, 59, 59, 999999, tzinfo=UTC))
    ask(database, created_at=datetime(2026, 11, 11, 0, 0, tzinfo=UTC))  # after the period
    ask(database, created_at=datetime(2026, 11, 8, 23, 59, 59, tzinfo=UTC))  # before it
    # 01:00 in Seoul is still the day before in UTC.
    ask(database, created_at=datetime.fromisoformat("2026-11-11T01:00:00+09:00"))

    summary = analytics.summary(tenant, PERIOD, EVERYTHING)

    assert [day.questions for day in summary.by_day] == [2, 1]
    assert (summary.current.questions, summary.previous.questions) == (3, 1)


def test_an_unpriced_call_is_counted_and_never_a_zero(database: Database, analytics: Analytics, tenant: str) -> None:
    pay(database, "chat", "0.0125")
    pay(database, "chat", None, model="house-model")
    pay(database, "chat", None, model="house-model", created_at=datetime(2026, 11, 9, 12, tzinfo=UTC))
    pay(database, "embedding", "0.00000028", model="text-embedding-3-small")

    summary = analytics.summary(tenant, PERIOD, EVERYTHING)
    by_operation = analytics.cost_by_day(tenant, PERIOD, EVERYTHING, "operation")
    by_model = analytics.cost_by_model(tenant, PERIOD, EVERYTHING)

    assert summary.current.cost == Decimal("0.01250028")
    assert (summary.current.calls, summary.current.unpriced_calls) == (4, 2)
    assert [(c.day.day, c.name, c.calls, c.cost, c.unpriced_calls) for c in by_operation] == [
        (9, "chat", 1, None, 1),
        (10, "chat", 2, Decimal("0.0125"), 1),
        (10, "embedding", 1, Decimal("0.00000028"), 0),
    ]
    assert [(c.model, c.calls, c.cost, c.unpriced_calls, c.input_tokens) for c in by_model] == [
        ("gpt-4o", 1, Decimal("0.0125"), 0, 100),
        ("text-embedding-3-small", 1, Decimal("0.00000028"), 0, 100),
        ("house-model", 2, None, 2, 200),
    ]
    assert [(c.day.day, c.name) for c in analytics.cost_by_day(tenant, PERIOD, EVERYTHING, "model")] == [
        (9, "house-model"),
        (10, "gpt-4o"),
        (10, "house-model"),
        (10, "text-embedding-3-small"),
    ]


def test_a_period_of_only_unpriced_calls_has_no_known_cost(
    database: Database, analytics: Analytics, tenant: str
) -> None:
    pay(database, "chat", None)

    assert analytics.summary(tenant, PERIOD, EVERYTHING).current.known_cost is None


def test_stages_that_did_not_run_do_not_pull_the_percentiles_down(
    database: Database, analytics: Analytics, tenant: str
) -> None:
    for search_ms, translation_ms in ((10, 0), (20, 0), (30, 400)):
        ask(database, rag_details={"timing": {"searchMs": search_ms, "translationMs": translation_ms}})
    ask(database, outcome="failed", rag_details={})

    stages = {s.stage: s for s in analytics.stage_percentiles(tenant, PERIOD, EVERYTHING)}

    assert set(stages) == {"search", "translation"}
    assert (stages["search"].questions, stages["translation"].questions) == (3, 1)
    assert stages["search"].p50_ms == pytest.approx(20, rel=0.01)
    assert stages["search"].p95_ms == pytest.approx(29, rel=0.01)
    assert stages["translation"].p50_ms == pytest.approx(400, rel=0.01)


# Filters


def test_filters_by_user_group_and_document_reach_questions_and_costs(
    database: Database, analytics: Analytics, tenant: str, collection: Collection
) -> None:
    leave, travel = add_document(database, collection, "Leave"), add_document(database, collection, "Travel")
    about_leave = ask(database, document_ids=[leave], user_group="Sales")
    about_travel = ask(database, document_ids=[travel, leave], user_group="Finance")
    pay(database, "chat", "0.01", chat_log_id=about_leave)
    pay(database, "chat", "0.02", chat_log_id=about_travel)
    pay(database, "tagging", "0.04", document_id=travel)

    def figures(filters: Filters) -> tuple[int, Decimal]:
        current = analytics.summary(tenant, PERIOD, filters).current
        return current.questions, current.cost

    assert figures(EVERYTHING) == (2, Decimal("0.07"))
    assert figures(Filters(user_group="Sales")) == (1, Decimal("0.01"))
    assert figures(Filters(document_id=travel)) == (1, Decimal("0.06"))
    assert figures(Filters(document_id=leave)) == (2, Decimal("0.03"))
    assert figures(Filters(document_id=leave, user_group="Finance")) == (1, Decimal("0.02"))
    assert figures(Filters(document_id=uuid4())) == (0, Decimal(0))
    assert analytics.user_groups(tenant, PERIOD) == ["Finance", "Sales"]


def test_most_asked_documents_are_counted_once_per_question_and_vanish_when_deleted(
    database: Database, analytics: Analytics, tenant: str, collection: Collection
) -> None:
    leave, travel = add_document(database, collection, "Leave"), add_document(database, collection, "Travel")
    first = ask(database, document_ids=[leave, leave])
    ask(database, document_ids=[leave, travel])
    rate(database, first, 1)

    assert [
        (d.title, d.questions, d.rated, d.helpful) for d in analytics.top_documents(tenant, PERIOD, EVERYTHING)
    ] == [
        ("Leave", 2, 1, 1),
        ("Travel", 1, 0, 0),
    ]
    with database.transaction(tenant) as connection:
        connection.execute("DELETE FROM documents WHERE id = %s", (leave,))
    assert [d.title for d in analytics.top_documents(tenant, PERIOD, EVERYTHING)] == ["Travel"]


def test_the_same_unanswered_question_is_one_row(database: Database, analytics: Analytics, tenant: str) -> None:
    ask(database, outcome="no_context", question="Is there parking", user_group="Sales")
    latest = ask(
        database,
        outcome="no_context",
        question="is there parking?",
        user_group="Finance",
        created_at=datetime(2026, 11, 10, 18, tzinfo=UTC),
    )
    ask(database, outcome="no_context", question="Dogs?")
    ask(database, question="Is there parking?")  # answered

    found = analytics.unanswered(tenant, PERIOD, EVERYTHING)

    assert [(u.question, u.times, u.user_groups) for u in found] == [
        ("is there parking?", 2, ["Finance", "Sales"]),
        ("Dogs?", 1, []),
    ]
    assert found[0].latest_id == latest


def test_text_is_looked_for_literally_in_question_and_answer(
    database: Database, analytics: Analytics, tenant: str
) -> None:
    ask(database, question="What is 100% leave?", answer="")
    ask(database, question="Something else", answer="It is 100 % LEAVE")
    ask(database, question="휴가는 며칠인가요?", answer="")

    def found(text: str) -> set[str]:
        wanted = QuestionFilters(text=text)
        rows = analytics.questions(tenant, PERIOD, EVERYTHING, wanted)
        assert analytics.count_questions(tenant, PERIOD, EVERYTHING, wanted) == len(rows)
        most = min(len(rows), 1) if text.strip() else len(rows)
        assert analytics.count_questions(tenant, PERIOD, EVERYTHING, wanted, most=1) == most
        return {row.question for row in rows}

    assert found("100%") == {"What is 100% leave?"}
    assert found("leave") == {"What is 100% leave?", "Something else"}
    assert found("휴가") == {"휴가는 며칠인가요?"}
    assert found("_") == set()
    assert found("'; DROP TABLE chat_logs; --") == set()
    assert len(found("   ")) == 3


def test_questions_are_paged_newest_or_slowest_first(database: Database, analytics: Analytics, tenant: str) -> None:
    for minute, total_ms in enumerate((500, 900, 100)):
        ask(
            database,
            question=str(total_ms),
            total_ms=total_ms,
            created_at=datetime(2026, 11, 10, 12, minute, tzinfo=UTC),
        )

    def texts(**options: Any) -> list[str]:
        return [row.question for row in analytics.questions(tenant, PERIOD, EVERYTHING, ANY, **options)]

    assert texts() == ["100", "900", "500"]
    assert texts(limit=2, offset=1) == ["900", "500"]
    assert texts(slowest_first=True) == ["900", "500", "100"]
    assert [
        row.outcome for row in analytics.questions(tenant, PERIOD, EVERYTHING, QuestionFilters(outcome="failed"))
    ] == []


# One question


def test_a_question_shows_each_passage_before_and_after_reranking(
    database: Database, analytics: Analytics, tenant: str, collection: Collection
) -> None:
    leave, gone = add_document(database, collection, "Leave"), add_document(database, collection, "Gone")
    kept_chunk, gone_chunk = str(uuid4()), str(uuid4())
    details = {
        "search": {
            "rawResults": [
                {"chunkId": gone_chunk, "documentId": str(gone), "similarity": 0.8, "preview": "secret of Gone"},
                {"chunkId": kept_chunk, "documentId": str(leave), "similarity": 0.7, "preview": "25 days"},
            ]
        },
        "reranking": {"results": [{"chunkId": kept_chunk, "originalRank": 2, "newRank": 1, "score": 0.91}]},
    }
    chat_log_id = ask(database, rag_details=details, document_ids=[leave, gone])
    pay(database, "chat", None, chat_log_id=chat_log_id)
    rate(database, chat_log_id, 0, "Out of date")
    with database.transaction(tenant) as connection:
        connection.execute("DELETE FROM documents WHERE id = %s", (gone,))

    entry = analytics.question(tenant, chat_log_id)

    assert [
        (p.title, p.similarity, p.original_rank, p.new_rank, p.rerank_score, p.preview) for p in entry.passages
    ] == [
        (None, 0.8, None, None, None, ""),
        ("Leave", 0.7, 2, 1, 0.91, "25 days"),
    ]
    assert entry.question.documents == ["Leave"]
    assert (entry.question.rating, entry.question.comment) == (0, "Out of date")
    assert [(c.operation, c.cost) for c in entry.charges] == [("chat", None)]
    assert "secret of Gone" not in json.dumps(entry.rag_details)
    assert "25 days" in json.dumps(entry.rag_details)


def test_a_question_without_details_can_be_opened(database: Database, analytics: Analytics, tenant: str) -> None:
    entry = analytics.question(tenant, ask(database, outcome="failed", rag_details={}))

    assert (entry.passages, entry.charges, entry.rag_details) == ((), (), {})


def test_an_unknown_question_is_not_found(analytics: Analytics, tenant: str) -> None:
    with pytest.raises(NotFound):
        analytics.question(tenant, uuid4())


# The wall between tenants


def test_nothing_of_another_tenant_is_counted_shown_or_exported(database: Database, analytics: Analytics) -> None:
    theirs = ask(database, "other", question="Canary", user_group="Theirs", outcome="no_context")
    pay(database, "chat", "9.99", "other", chat_log_id=theirs)

    assert analytics.summary("demo", PERIOD, EVERYTHING).current.questions == 0
    assert analytics.summary("demo", PERIOD, EVERYTHING).current.calls == 0
    assert analytics.unanswered("demo", PERIOD, EVERYTHING) == []
    assert analytics.user_groups("demo", PERIOD) == []
    assert b"Canary" not in analytics.export_csv("demo", PERIOD, EVERYTHING, ANY)
    with pytest.raises(NotFound):
        analytics.question("demo", theirs)
    assert analytics.question("other", theirs).question.question == "Canary"


# Export


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"], ids=repr)
def test_a_cell_that_a_spreadsheet_would_run_gets_an_apostrophe(start: str) -> None:
    harmful = f'{start}HYPERLINK("http://x")'
    question = LoggedQuestion(
        id=uuid4(),
        created_at=datetime(2026, 11, 10, 12, tzinfo=UTC),
        user_group=harmful,
        language="en",
        question=harmful,
        answer=harmful,
        outcome="answered",
        model="gpt-4o",
        total_ms=10,
        first_token_ms=None,
        cost=Decimal(0),
        is_priced=False,
        rating=None,
        comment=harmful,
        documents=[harmful],
    )

    row = next(csv.DictReader(io.StringIO(questions_to_csv([question]), newline="")))

    assert {row[name] for name in ("user_group", "question", "answer", "comment", "documents")} == {f"'{harmful}"}
    assert (row["total_ms"], row["cost_usd"], row["has_unpriced_calls"]) == ("10", "", "yes")
    partly = next(csv.DictReader(io.StringIO(questions_to_csv([replace(question, outcome="perhaps")]), newline="")))
    assert (row["outcome"], partly["outcome"]) == ("answered", "partly")


def test_the_export_holds_what_the_filters_leave_in_any_script(
    database: Database, analytics: Analytics, tenant: str
) -> None:
    ask(database, question='휴가, "반차"\n며칠?', cost=Decimal("0.0021"))
    ask(database, question="Dogs?", outcome="no_context")

    exported = analytics.export_csv(tenant, PERIOD, EVERYTHING, QuestionFilters(outcome="answered"))

    assert exported.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(exported.decode("utf-8-sig"), newline="")))
    assert [(row["question"], row["cost_usd"], row["asked_at_utc"]) for row in rows] == [
        ('휴가, "반차"\n며칠?', "0.00210000", "2026-11-10 12:00:00")
    ]
    assert "email" not in exported.decode("utf-8-sig").splitlines()[0]


# A whole month


def test_days_add_up_to_the_totals_and_costs_to_the_ledger(
    database: Database, analytics: Analytics, tenant: str, collection: Collection
) -> None:
    written = write_month(database, tenant, collection.id, until=DAY, days=10, questions_per_day=4)
    period = Period.of_days(10, until=DAY)

    summary = analytics.summary(tenant, period, EVERYTHING)

    assert summary.current.questions == len(written) == sum(day.questions for day in summary.by_day)
    assert summary.current.answered == sum(day.answered for day in summary.by_day)
    assert summary.current.rated == sum(day.rated for day in summary.by_day)
    assert summary.current.cost == sum(day.cost for day in summary.by_day)
    for costs in (
        analytics.cost_by_day(tenant, period, EVERYTHING, "operation"),
        analytics.cost_by_day(tenant, period, EVERYTHING, "model"),
        analytics.cost_by_model(tenant, period, EVERYTHING),
    ):
        assert sum(c.cost or 0 for c in costs) == summary.current.cost
        assert sum(c.calls for c in costs) == summary.current.calls
        assert sum(c.unpriced_calls for c in costs) == summary.current.unpriced_calls
    entry = analytics.question(tenant, written[-1])
    assert len(entry.passages) == 8
    assert sum(p.new_rank is not None for p in entry.passages) == 5
