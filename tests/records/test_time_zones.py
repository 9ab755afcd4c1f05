"""Days, weeks and months begin at midnight where the company is, also where a day has 23 or 25 hours."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.errors import InvalidInput, NotAllowed
from rag.money.budgets import Budgets
from rag.records.analytics import Analytics, Filters, Period, QuestionFilters
from rag.records.time_zones import TimeZones, midnight, zone_names
from rag.services import program_of
from rag.storage.database import Database
from rag.types import Collection, Role
from tests.records.test_analytics import ask, pay, rate

#: Ahead and behind, with half hours, with days of 23 and 25 hours, and where one begins at one o'clock.
ZONES = ("UTC", "Asia/Seoul", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Pacific/Kiritimati", "Africa/Cairo")
#: Around changes of the clock in Berlin, New York and Cairo, a leap day, and the ends of months and of a year.
AROUND = (
    datetime(2025, 10, 26, 1, tzinfo=UTC), datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 3, 8, 7, tzinfo=UTC),
    datetime(2026, 4, 23, 22, tzinfo=UTC), datetime(2024, 2, 29, 12, tzinfo=UTC),
    datetime(2025, 12, 31, 23, tzinfo=UTC), datetime(2026, 6, 30, 23, tzinfo=UTC),
)  # fmt: skip


@pytest.mark.usefixtures("collection")
def test_every_day_week_and_month_is_the_companys(database: Database, tenant: str) -> None:
    analytics, zones = Analytics(database), TimeZones(database)
    rows = []
    for moment in AROUND:
        for hours in range(-30, 31, 3):
            at = moment + timedelta(hours=hours, minutes=-1)
            question = ask(database, created_at=at, total_ms=100 + hours, user_group="Sales")
            pay(database, "chat", str(Decimal(abs(hours) + 1) / 100), chat_log_id=question, created_at=at)
            if hours % 2:
                rate(database, question, 1)
            rows.append((at, Decimal(abs(hours) + 1) / 100, bool(hours % 2)))
    frame = pd.DataFrame(rows, columns=["at", "cost", "rated"])

    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(
        zone=st.sampled_from(ZONES),
        around=st.sampled_from(AROUND),
        back=st.integers(-1, 3),
        length=st.integers(1, 40),
        unit=st.sampled_from(["day", "week", "month"]),
        is_added_up=st.booleans(),
        group=st.sampled_from([None, "Sales"]),
    )
    def check(
        zone: str, around: datetime, back: int, length: int, unit: Any, is_added_up: bool, group: str | None
    ) -> None:
        zones.set(program_of(tenant), zone)
        analytics.zones.set(program_of(tenant), zone)
        if is_added_up:
            analytics.days.add_up(tenant)
        period, filters = Period.of_days(length, until=around.date() - timedelta(days=back)), Filters(user_group=group)
        local = frame["at"].dt.tz_convert(zone).dt.tz_localize(None)
        within = frame[(local.dt.date >= period.first) & (local.dt.date <= period.last)]
        now = analytics.totals(tenant, period, filters)
        assert (now.questions, now.rated, now.cost) == (len(within), int(within["rated"].sum()), sum(within["cost"]))
        begun = local[within.index].dt.to_period(unit[0].upper()).dt.start_time.dt.date
        days = analytics.by_day(tenant, period, filters, unit)
        assert {day.day: day.questions for day in days if day.questions} == begun.value_counts().to_dict()
        assert len(analytics.questions(tenant, period, filters, QuestionFilters(), limit=1000)) == len(within)
        assert sum(row.questions for row in analytics.time_histogram(tenant, period, filters, "whole")) == len(within)

    check()


@pytest.mark.usefixtures("collection")
def test_a_late_change_is_counted_on_the_day_it_has_where_the_company_is(database: Database, tenant: str) -> None:
    analytics = Analytics(database)
    analytics.zones.set(program_of(tenant), "Asia/Seoul")
    # The eleventh in Seoul, the tenth in UTC.
    at, day = datetime(2026, 11, 10, 20, tzinfo=UTC), Period(date(2026, 11, 11), date(2026, 11, 11))
    question = ask(database, created_at=at, outcome="no_context")
    analytics.days.add_up(tenant)
    assert analytics.totals(tenant, day, Filters()).questions == 1
    rate(database, question, 1)
    ask(database, created_at=at + timedelta(hours=1))
    now = analytics.totals(tenant, day, Filters())
    assert (now.questions, now.rated) == (2, 1)
    analytics.days.add_up(tenant)
    now = analytics.totals(tenant, day, Filters())
    assert (now.questions, now.rated) == (2, 1)


@pytest.mark.usefixtures("collection")
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "UTC", "America/Los_Angeles"])
def test_the_month_of_a_budget_begins_where_the_company_is(database: Database, tenant: str, zone: str) -> None:
    budgets, admin = Budgets(database), program_of(tenant)
    TimeZones(database).set(admin, zone)
    first = datetime.now(UTC).astimezone(ZoneInfo(zone)).date().replace(day=1)
    begins = midnight(first, ZoneInfo(zone))
    budgets.set(admin, "company", "10")
    budgets.set(admin, "group", "10", user_group="Sales")
    for seconds, cost in ((-1, "1"), (0, "0.25"), (1, "0.5")):
        at = begins + timedelta(seconds=seconds)
        question = ask(database, created_at=at, user_group="Sales")
        pay(database, "chat", cost, chat_log_id=question, created_at=at)
    for is_added_up in (False, True):
        if is_added_up:
            Analytics(database).days.add_up(tenant)
        assert [budget.spent for budget in budgets.list(tenant)] == [Decimal("0.75")] * 2


def test_administrators_choose_a_zone_that_there_is(database: Database, tenant: str) -> None:
    zones, admin = TimeZones(database), program_of(tenant)
    assert zones.name(tenant) == "UTC"
    for name in ("Mars/Olympus", "", "../etc/passwd", "UTC+3", "posixrules"):
        with pytest.raises(InvalidInput, match="not known"):
            zones.set(admin, name)
    with pytest.raises(NotAllowed):
        zones.set(replace(admin, role=Role.MANAGER), "Asia/Seoul")
    zones.set(admin, "Asia/Seoul")
    assert zones.name(tenant) == "Asia/Seoul"
    assert zones.name("other") == "UTC"
    assert {"Asia/Seoul", "Europe/Berlin", "America/New_York", "UTC"} <= set(zone_names())


def test_the_database_knows_every_zone_to_choose_from(database: Database, tenant: str) -> None:
    with database.transaction(tenant) as connection:
        known = {row[0] for row in connection.execute("SELECT name FROM pg_catalog.pg_timezone_names")}
    assert set(zone_names()) <= known


def test_the_zone_of_a_collection_is_not_asked_of_another_company(database: Database, collection: Collection) -> None:
    TimeZones(database).set(program_of("other"), "Asia/Seoul")
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT rag_zone()").fetchone() == ("UTC",)
