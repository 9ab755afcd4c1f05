"""Days and weeks that are added up are right: a late change is counted, and nobody sees another's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from rag.records.analytics import WHOLE, Analytics, Filters, Period
from rag.storage.database import Database
from rag.types import Collection, Identity, Role
from tests.records.test_analytics import ask, pay, rate


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
