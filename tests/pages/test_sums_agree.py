"""One month, five places: page, CSV, PDF, report and the programs' answers say what the ledger holds, to the cent."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from threading import Event
from typing import Any
from uuid import UUID

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from rag.answering.events import DoneEvent
from rag.profiles import HR
from rag.records.analytics import Filters, Period, QuestionFilters
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Question, Role
from rag.ui.formats import money
from rag.ui.text import plain
from tests.pages.test_analytics_page import metrics, open_page  # noqa: F401  (a fixture)
from tests.question_month import write_month
from tests.records.report_pdf import text_of_pdf
from tests.records.test_analytics import pay
from tests.records.test_search_costs import MODEL, shelved
from tests.standins.providers import ProviderStandin

CENT = Decimal("0.01")
Open = Callable[..., AppTest]


@dataclass(frozen=True)
class Month:
    period: Period
    #: The ledger in the period, with the day of each row and the group of its question.
    ledger: pd.DataFrame
    #: The questions of people in the period.
    asked: pd.DataFrame


@pytest.fixture
def month(database: Database, collection: Collection, tenant: str) -> Month:
    """Write twenty days with every kind of paid call, of which the last ten are looked at."""
    last = datetime.now(UTC).date()
    write_month(database, tenant, collection.id, until=last, days=20, questions_per_day=7)
    add_other_calls(database, last)
    with database.transaction(tenant) as connection:
        paid = connection.execute(
            "SELECT c.created_at, c.operation, c.model, c.cost, l.user_group FROM cost_ledger c "
            "LEFT JOIN chat_logs l ON l.id = c.chat_log_id"
        )
        ledger = pd.DataFrame(paid.fetchall(), columns=["at", "operation", "model", "cost", "group"])
        logged = connection.execute("SELECT id, created_at, user_group, cost FROM chat_logs WHERE kind = 'question'")
        asked = pd.DataFrame(logged.fetchall(), columns=["id", "at", "group", "cost"])
    period = Period.of_days(10, until=last)
    for frame in (ledger, asked):
        frame["day"] = pd.to_datetime(frame["at"], utc=True).dt.date
    within = [frame[(frame["day"] >= period.first) & (frame["day"] <= period.last)] for frame in (ledger, asked)]
    return Month(period, *within)


def add_other_calls(database: Database, last: date) -> None:
    """Pay for what belongs to no question of a person, for what has no price, and for what is estimated."""
    chance = random.Random(11)
    with database.transaction("demo") as connection:
        logs = {
            kind: connection.execute(
                "INSERT INTO chat_logs (tenant_id, question, outcome, kind, created_at) "
                "VALUES ('demo', 'x', 'answered', %s, %s) RETURNING id",
                (kind, datetime.combine(last, time(11), UTC)),
            ).fetchone()
            for kind in ("search", "evaluation")
        }
    for back in range(20):
        at = datetime.combine(last - timedelta(days=back), time(chance.randint(0, 23), 59), UTC)
        for operation in ("ocr", "tagging", "reranking", "chat", "embedding"):
            cost = None if chance.random() < 0.1 else str(Decimal(chance.randint(1, 90_000)) / 1_000_000)
            log = chance.choice([None, *(row[0] for row in logs.values() if row)])
            pay(database, operation, cost, created_at=at, chat_log_id=log, model=chance.choice(["gpt-4o", "own-1"]))
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO cost_ledger (tenant_id, operation, provider, model, cost, is_estimated, created_at) "
            "VALUES ('demo', 'chat', 'openai', 'gpt-4o', 0.0437, true, %s)",
            [datetime.combine(last, time(0, 0), UTC)],
        )


def total(frame: pd.DataFrame) -> Decimal:
    return sum((cost for cost in frame["cost"] if cost is not None), Decimal(0))


def address_of(period: Period) -> dict[str, Any]:
    return {"analytics_period": "Custom", "analytics_days": [str(period.first), str(period.last)]}


def rounded(amount: Decimal | float) -> Decimal:
    return Decimal(str(amount)).quantize(CENT, ROUND_HALF_EVEN)


@pytest.mark.usefixtures("tenant")
def test_page_csv_pdf_and_report_say_what_the_ledger_holds(
    open_page: Open,  # noqa: F811
    month: Month,
    app_services: Services,
) -> None:
    expected, address = total(month.ledger), address_of(month.period)
    unpriced = int(month.ledger["cost"].isna().sum())
    assert expected > 0
    assert unpriced > 0

    page = open_page(**address)
    assert metrics(page)["Cost"] == plain(money(expected))
    assert metrics(page)["Questions"] == str(len(month.asked))

    page = open_page(analytics_view="Costs", **address)
    assert metrics(page)["Cost"] == plain(money(expected))
    for by in ("operation", "model", "collection", "group", "purpose"):
        page.segmented_control("analytics_cost_by").set_value(by).run()
        assert not page.exception
        drawn = page.dataframe[0].value
        assert rounded(drawn["Cost"].sum()) == rounded(expected), by
    of_group = page.dataframe[0].value
    assert not of_group.empty

    digest = app_services.scheduled_work.digest("demo", month.period)
    text = text_of_pdf(app_services, digest)
    assert f"${expected:,.2f}" in text
    assert f"${expected:,.2f}" in digest.as_text()
    assert f"{unpriced:,}, not included in the cost" in text

    sales = Filters(user_group="Sales")
    of_sales = app_services.analytics.totals("demo", month.period, sales)
    report = app_services.scheduled_work.digest("demo", month.period, sales)
    assert 0 < of_sales.questions < len(month.asked)
    assert f"{of_sales.questions:,} (before" in report.as_text()
    assert report.title == f"{digest.title}, only questions that match the filters"

    exported = app_services.analytics.export_csv("demo", month.period, Filters(), QuestionFilters())
    rows = list(csv.DictReader(io.StringIO(exported.decode("utf-8-sig"))))
    assert len(rows) == len(month.asked)
    assert sum(Decimal(row["cost_usd"]) for row in rows if row["cost_usd"]) == total(month.asked)


@pytest.mark.parametrize("group", ["Sales", "Engineering", "Operations", "Finance"])
def test_a_group_is_told_what_its_questions_cost(
    open_page: Open,  # noqa: F811
    month: Month,
    app_services: Services,
    group: str,
) -> None:
    of_group = month.ledger[month.ledger["group"] == group]
    page = open_page(analytics_group=group, **address_of(month.period))
    assert metrics(page)["Cost"] == plain(money(total(of_group)))

    filters = Filters(user_group=group)
    exported = app_services.analytics.export_csv("demo", month.period, filters, QuestionFilters())
    rows = list(csv.DictReader(io.StringIO(exported.decode("utf-8-sig"))))
    assert sum(Decimal(row["cost_usd"]) for row in rows if row["cost_usd"]) == total(of_group)


@pytest.fixture
def keyed(database: Database, settings: Settings, provider_standin: ProviderStandin) -> Iterator[Services]:
    with_keys = replace(
        settings,
        openai_api_key="k",
        openai_base_url=provider_standin.openai_url,
        cohere_api_key="k",
        cohere_base_url=provider_standin.cohere_url,
    )
    assembled = assemble(with_keys, database)
    yield assembled
    assembled.pipeline.close()
    assembled.providers.close()


def test_a_programs_answer_its_row_and_the_export_have_one_cost(keyed: Services) -> None:
    who = Identity(account_id=UUID(int=0), tenant_id="demo", email="", name="program", role=Role.ADMIN)
    question = Question(text="How many vacation days?", identity=who, collection=shelved(keyed, MODEL))
    *_, done = keyed.answerer.answer(question, profile=HR, cancel=Event())
    assert isinstance(done, DoneEvent)
    today = datetime.now(UTC).date()
    (row,) = keyed.analytics.questions(who, Period(today, today), Filters(), QuestionFilters())
    entry: Any = keyed.analytics.question(who, row.id)
    paid = sum((charge.cost for charge in entry.charges), Decimal(0))
    assert len({charge.operation for charge in entry.charges}) >= 3
    assert done.cost == row.cost == paid > 0
    assert entry.rag_details["costs"]["total"] == pytest.approx(float(paid))
    exported = keyed.analytics.export_csv("demo", Period(today, today), Filters(), QuestionFilters())
    (line,) = csv.DictReader(io.StringIO(exported.decode("utf-8-sig")))
    assert Decimal(line["cost_usd"]) == paid
