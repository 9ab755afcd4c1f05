"""What a manager's pages keep, with the ids of another company: nothing is told, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from rag.errors import InvalidInput, NotAllowed, NotFound
from rag.evaluation.golden import GoldenQuestion
from rag.profiles import profile_of
from rag.services import Services, program_of
from rag.types import Collection, Role
from tests.records.test_analytics import ask

TABLES = (
    "golden_questions", "evaluation_runs", "evaluation_results", "budgets", "budget_consents", "api_keys", "gaps",
    "feedback", "chat_logs",
)  # fmt: skip


@pytest.fixture
def kept(app_services: Services, collection: Collection) -> dict[str, UUID]:
    """One thing of each kind that the company `demo` keeps."""
    parts, demo = app_services, program_of("demo")
    question = GoldenQuestion(question="How many days of leave?")
    parts.evaluations.add_golden(demo, collection, [question])
    parts.budgets.set(demo, "company", "10")
    asked = ask(parts.database, outcome="no_context", document_ids=[], question="Where is the cellar?")
    return {
        "golden": next(iter(parts.evaluations.golden(demo, collection.id))),
        "run": parts.evaluations.begin(collection, profile_of(collection), [question]),
        "budget": parts.budgets.list(demo)[0].id,
        "question": asked,
    }


def rows(parts: Services) -> dict[str, list[str]]:
    """All rows of the company `demo`, as text."""
    found = {}
    with parts.database.transaction("demo") as connection:
        for table in TABLES:
            found[table] = sorted(row[0] for row in connection.execute(f"SELECT t::text FROM {table} t"))
    return found


def test_ids_of_another_company_lead_to_nothing(
    app_services: Services, collection: Collection, kept: dict[str, UUID]
) -> None:
    parts, stranger = app_services, program_of("other")
    own = parts.documents.create_collection(stranger, "Own", "hr")
    parts.evaluations.add_golden(stranger, own, [GoldenQuestion(question="Mine?")])
    own_run = parts.evaluations.begin(own, profile_of(own), [GoldenQuestion(question="Mine?")])
    before = rows(parts)
    refused: Sequence[Callable[[], Any]] = (
        lambda: parts.evaluations.remove_golden(stranger, [kept["golden"]]),
        lambda: parts.evaluations.add_golden(stranger, collection, [GoldenQuestion(question="Whose?")]),
        lambda: parts.evaluations.run(stranger, kept["run"]),
        lambda: parts.evaluations.questions(stranger, kept["run"]),
        lambda: parts.evaluations.compare(stranger, own_run, kept["run"]),
        lambda: parts.evaluations.compare(stranger, kept["run"], own_run),
        lambda: parts.evaluations.go_on(stranger, own, kept["run"]),
        lambda: parts.budgets.remove(stranger, kept["budget"]),
        lambda: parts.budgets.agree(stranger, kept["budget"]),
        lambda: parts.budgets.set(stranger, "person", "5", account_id=kept["budget"]),
        lambda: parts.analytics.question(stranger, kept["question"]),
    )
    wrong = []
    for place, act in enumerate(refused):
        try:
            wrong.append((place, act()))
        except (NotFound, InvalidInput):
            continue
        except Exception as exc:
            wrong.append((place, repr(exc)))
    assert wrong == []
    assert parts.evaluations.golden(stranger, collection.id) == {}
    assert parts.evaluations.results(stranger, kept["run"]) == []
    assert [run.id for run in parts.evaluations.runs(stranger)] == [own_run]
    assert parts.evaluations.runs(stranger, collection.id) == []
    assert parts.analytics.found_passages(stranger, kept["question"]) == []
    assert rows(parts) == before


def test_an_employee_changes_nothing_of_a_managers(
    app_services: Services, collection: Collection, kept: dict[str, UUID]
) -> None:
    parts = app_services
    employee = replace(program_of("demo"), role=Role.EMPLOYEE)
    before = rows(parts)
    acts: Sequence[Callable[[], Any]] = (
        lambda: parts.evaluations.remove_golden(employee, [kept["golden"]]),
        lambda: parts.evaluations.add_golden(employee, collection, [GoldenQuestion(question="Whose?")]),
        lambda: parts.evaluations.go_on(employee, collection, kept["run"]),
        lambda: parts.budgets.set(employee, "company", "1000000"),
        lambda: parts.budgets.remove(employee, kept["budget"]),
    )
    for act in acts:
        with pytest.raises(NotAllowed):
            act()
    assert rows(parts) == before
