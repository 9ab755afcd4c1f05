from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from threading import Event
from uuid import UUID, uuid4

import pytest

from rag.answering.pipeline import DoneEvent, TextEvent
from rag.errors import BudgetSpent, InvalidInput, NotAllowed, NotFound
from rag.money.budgets import Budgets, BudgetShares
from rag.profiles import HR
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Outcome, Question, Role, UploadOptions
from rag.types.fields import validated
from tests.answering.scripted import add_account
from tests.answering.test_answering_end_to_end import publish
from tests.records.test_analytics import ask, pay
from tests.standins.providers import ProviderStandin

QUESTION = "How many vacation days do full-time employees receive?"


@pytest.fixture
def admin(database: Database) -> Identity:
    return replace(add_account(database, "demo", "somebody@example.org"), role=Role.ADMIN)


@pytest.fixture
def parts(
    database: Database, collection: Collection, settings: Settings, provider_standin: ProviderStandin
) -> Iterator[Services]:
    settings = replace(
        settings,
        openai_api_key="key",
        openai_base_url=provider_standin.openai_url,
        cohere_api_key="key",
        cohere_base_url=provider_standin.cohere_url,
    )
    made = assemble(settings, database)
    publish(database, made.providers, collection)
    yield made
    made.close()


def answered(parts: Services, collection: Collection, asker: Identity) -> tuple[str, DoneEvent]:
    question = Question(text=QUESTION, identity=asker, collection=collection)
    text = ""
    for event in parts.answerer.answer(question, profile=HR, cancel=Event()):
        if isinstance(event, TextEvent):
            text += event.text
        elif isinstance(event, DoneEvent):
            return text, event
    raise AssertionError


def spent(database: Database) -> tuple[Decimal, Decimal]:
    """What questions cost in all, and the dearest one."""
    with database.transaction("demo") as connection:
        row = connection.execute("SELECT sum(cost), max(cost) FROM chat_logs").fetchone()
    assert row is not None
    return row[0], row[1]


def test_a_spent_budget_stops_models_and_searching_goes_on_and_says_why(
    parts: Services, collection: Collection, admin: Identity, provider_standin: ProviderStandin, database: Database
) -> None:
    text, done = answered(parts, collection, admin)
    assert done.outcome is Outcome.ANSWERED
    assert spent(database)[0] > 0
    asked_before = len(provider_standin.usages)
    parts.budgets.set(admin, "company", "0")

    text, done = answered(parts, collection, admin)

    assert "25 vacation days" in text
    assert "budget is spent" in text
    assert any("company's budget for this month is spent" in notice for notice in done.notices)
    assert done.cost is not None
    called = {usage["model"] for usage in provider_standin.usages[asked_before:]}
    assert not called - {"text-embedding-3-small"}
    parts.budgets.set(admin, "company", "1000")
    _, done = answered(parts, collection, admin)
    assert not any("budget" in notice for notice in done.notices)


def paid(database: Database) -> list[Decimal]:
    """What the calls that a spent budget stops have cost: all but embedding the questions."""
    with database.transaction("demo") as connection:
        rows = connection.execute(
            "SELECT cost FROM cost_ledger WHERE operation <> 'embedding' ORDER BY cost"
        ).fetchall()
    return [cost for (cost,) in rows]


def test_fifty_questions_at_once_go_beyond_a_budget_by_the_calls_in_flight_and_fifty_more_by_nothing(
    parts: Services, collection: Collection, admin: Identity, database: Database, provider_standin: ProviderStandin
) -> None:
    answered(parts, collection, admin)
    at_once, budget = 50, sum(paid(database), Decimal(0)) + max(paid(database)) / 2
    parts.budgets.set(admin, "company", budget)
    # The first paid call of each is answered only when all are with the provider: as many are in flight as can be.
    provider_standin.meet("rerank", at_once, timeout_seconds=50)
    with ThreadPoolExecutor(at_once) as people:
        list(people.map(lambda _: answered(parts, collection, admin), range(at_once)))
        costs, called = paid(database), dict(provider_standin.calls)
        assert called["rerank"] == at_once + 1
        assert budget < sum(costs) <= budget + at_once * max(costs)

        provider_standin.meetings.clear()
        texts = [text for text, _done in people.map(lambda _: answered(parts, collection, admin), range(at_once))]

    assert provider_standin.calls == called
    assert paid(database) == costs
    assert all("budget is spent" in text for text in texts)


def test_fifty_questions_by_a_few_people_go_beyond_a_budget_by_their_calls_in_flight(
    parts: Services, collection: Collection, admin: Identity, database: Database, provider_standin: ProviderStandin
) -> None:
    answered(parts, collection, admin)
    an_answer, questions, people = sum(paid(database), Decimal(0)), 50, 5
    budget = an_answer * 10
    parts.budgets.set(admin, "company", budget)
    with ThreadPoolExecutor(people) as pool:
        texts = [text for text, _done in pool.map(lambda _: answered(parts, collection, admin), range(questions))]

    assert budget - an_answer < sum(paid(database), Decimal(0)) <= budget + people * an_answer
    assert sum("budget is spent" in text for text in texts) >= questions - 10 - people


def test_budgets_of_groups_and_people_hold_for_them_alone(
    database: Database, parts: Services, collection: Collection, admin: Identity
) -> None:
    budgets = parts.budgets
    in_sales = replace(admin, user_group="Sales")
    budgets.set(admin, "group", "$0.50", user_group="Sales", shares=BudgetShares(warn_percent=50))
    budgets.set(admin, "person", "1,000.5", account_id=admin.account_id)
    assert [(b.scope, b.user_group, b.person, b.amount) for b in budgets.list("demo")] == [
        ("group", "Sales", "", Decimal("0.5")),
        ("person", "", admin.name or admin.email, Decimal("1000.5")),
    ]
    assert budgets.spent_for(in_sales) is None
    question = ask(database, user_group="Sales", created_at=datetime.now(UTC))
    pay(database, "chat", "0.3", chat_log_id=question, created_at=datetime.now(UTC))
    (group, person) = budgets.list("demo")
    assert (group.spent, group.is_near, group.is_spent) == (Decimal("0.3"), True, False)
    pay(database, "chat", "0.2", chat_log_id=question, created_at=datetime.now(UTC))
    found = budgets.spent_for(in_sales)
    assert found is not None
    assert found.scope == "group"
    assert budgets.spent_for(admin) is None
    assert person.spent == 0
    assert budgets.broken_by("demo", Decimal(5)) is None
    budgets.set(admin, "company", "2")
    broken = budgets.broken_by("demo", Decimal(5))
    assert broken is not None
    assert broken.left == Decimal("1.5")


def test_what_is_no_budget_is_refused(parts: Services, admin: Identity) -> None:
    for amount in ("-1", "much", "NaN", "1e12"):
        with pytest.raises(InvalidInput, match="US dollars"):
            parts.budgets.set(admin, "company", amount)
    with pytest.raises(InvalidInput, match="group or the person"):
        parts.budgets.set(admin, "group", "1")
    with pytest.raises(NotAllowed):
        parts.budgets.set(replace(admin, role=Role.MANAGER), "company", "1")
    with pytest.raises(NotFound):
        parts.budgets.remove(admin, uuid4())


def test_a_removed_budget_is_put_back_unless_another_took_its_place(parts: Services, admin: Identity) -> None:
    parts.budgets.set(
        admin, "group", "250.75", user_group="Sales", shares=BudgetShares(warn_percent=65, ask_percent=90)
    )
    (before,) = parts.budgets.list(admin)
    removed = parts.budgets.remove(admin, before.id)
    assert parts.budgets.list(admin) == []
    with pytest.raises(NotAllowed):
        parts.budgets.put_back(replace(admin, role=Role.MANAGER), removed)
    parts.budgets.put_back(admin, removed)
    assert parts.budgets.list(admin) == [before]
    removed = parts.budgets.remove(admin, before.id)
    parts.budgets.set(admin, "group", "10", user_group="Sales")
    with pytest.raises(InvalidInput, match="cannot be restored"):
        parts.budgets.put_back(admin, removed)
    assert [budget.amount for budget in parts.budgets.list(admin)] == [Decimal(10)]


def test_a_budget_asks_before_more_is_spent_and_goes_on_when_told_to(
    parts: Services, collection: Collection, admin: Identity, provider_standin: ProviderStandin, database: Database
) -> None:
    parts.budgets.set(admin, "company", "10", shares=BudgetShares(ask_percent=50))
    pay(database, "chat", "6", created_at=datetime.now(UTC))
    calls = len(provider_standin.requests)

    _, end = answered(parts, collection, admin)

    assert len(provider_standin.requests) == calls
    assert any("until you confirm that you want to continue" in notice for notice in end.notices)
    asking = parts.budgets.asking(admin)
    assert asking is not None
    found = parts.searches.search(Question(text=QUESTION, identity=admin, collection=collection), profile=HR)
    assert found.response.citations
    assert any("until you confirm" in notice for notice in found.response.notices)
    assert len(provider_standin.requests) == calls
    parts.budgets.agree(admin, asking.id)
    assert parts.budgets.asking(admin) is None
    answered(parts, collection, admin)
    assert len(provider_standin.requests) > calls
    with pytest.raises(InvalidInput, match=r"Ask people to confirm .* cannot be 101. Enter a whole number"):
        validated(BudgetShares, {"ask_percent": 101})


def test_a_spent_budget_asks_nobody_because_a_yes_would_change_nothing(
    parts: Services, admin: Identity, database: Database
) -> None:
    parts.budgets.set(admin, "company", "10", shares=BudgetShares(ask_percent=50))
    pay(database, "chat", "12", created_at=datetime.now(UTC))
    assert parts.budgets.asking(admin) is None
    spent_one = parts.budgets.spent_for(admin)
    assert spent_one is not None
    assert spent_one.is_spent


def test_a_first_budget_that_another_process_sets_counts_within_seconds(database: Database, admin: Identity) -> None:
    now = 0.0
    here = Budgets(database, clock=lambda: now)
    pay(database, "chat", "6", created_at=datetime.now(UTC))
    assert here.spent_for(admin) is None
    Budgets(database).set(admin, "company", "5")
    now += 5.0
    assert here.spent_for(admin) is not None


def test_documents_that_cost_something_wait_once_the_companys_budget_is_spent(
    parts: Services, collection: Collection, admin: Identity, database: Database
) -> None:
    with database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status, estimate) VALUES "
            "('demo', %s, 'Rules', 'rules.pdf', 'x', 'estimated', '{\"total\": 0.5}') RETURNING id",
            (collection.id,),
        ).fetchone()
    assert row is not None
    parts.budgets.set(admin, "company", "10")
    broken = parts.budgets.broken_by("demo", Decimal("10.5"))
    assert broken is not None
    assert parts.budgets.broken_by("demo", Decimal("0.5")) is None
    pay(database, "chat", "11", created_at=datetime.now(UTC))

    with pytest.raises(BudgetSpent, match="raise it on the page Prices"):
        parts.documents.confirm(admin, row[0])

    parts.budgets.set(admin, "company", "20")
    assert parts.documents.confirm(admin, row[0]).status != "estimated"


def test_what_nobody_is_asked_about_waits_for_a_yes_where_it_would_break_the_budget(
    parts: Services, collection: Collection, admin: Identity, database: Database
) -> None:
    def added(name: str, *, is_synced: bool) -> UUID:
        text = f"# {name}\n\n" + f"Every employee has {len(name)} days of annual leave in a calendar year. " * 20
        document = parts.documents.upload(
            admin, collection, name, text.encode(), UploadOptions(confirmed_up_to=None if is_synced else Decimal(5))
        )
        if is_synced:
            with database.transaction("demo") as connection:
                connection.execute("UPDATE documents SET sync_key = %s WHERE id = %s", (name, document.id))
        parts.pipeline.run("demo", document.id)
        return document.id

    parts.budgets.set(admin, "company", "0.00000001")
    for name, is_synced in (("synced.md", True), ("uploaded.md", False)):
        document = parts.documents.get(admin, added(name, is_synced=is_synced))
        assert document.status == "estimated"
        assert Decimal(str((document.estimate or {})["total"])) > 0
        assert "that remains in the company's budget" in document.message

    parts.budgets.set(admin, "company", "10")
    confirmed = parts.documents.confirm(admin, document.id)
    assert (confirmed.status, confirmed.message) == ("processing", "")
    # Estimates of what is being processed count as if they were spent.
    total = Decimal(str((confirmed.estimate or {})["total"]))
    parts.budgets.set(admin, "company", total * Decimal("1.5"))
    other = parts.documents.get(admin, added("further.md", is_synced=False))
    assert other.status == "estimated"
    parts.budgets.set(admin, "company", "10")
    assert parts.documents.get(admin, added("one-more.md", is_synced=True)).status != "estimated"
