from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from streamlit.testing.v1 import AppTest

from rag.access.sessions import token_hash
from rag.errors import NotAllowed
from rag.evaluation.golden import GoldenQuestion, golden_from_entry
from rag.language import speaking, translated
from rag.profiles import profile_of
from rag.records.analytics import Filters, Period
from rag.services import Services, program_of
from rag.storage.database import Database
from rag.types import Account, Collection, Question, Role, UploadOptions
from rag.ui import language as page_language
from rag.ui.formats import money
from rag.ui.gaps import publish_answer
from rag.ui.text import plain
from tests.patience import patient
from tests.question_month import write_month

PAGE = str(Path(__file__).resolve().parents[2] / "pages" / "analytics.py")
EMAIL = "asker@example.com"

Open = Callable[..., AppTest]
#: A link to a view as an English reader sends it.
COSTS_OF_A_WEEK = {"analytics_view": "Costs", "analytics_period": "7 days", "analytics_cost_by": "Purpose"}


@pytest.fixture
def open_page(app_services: Services, database: Database) -> Open:
    """Opens the page for someone of a role, with what stands in the address."""

    def opened(role: Role = Role.MANAGER, language: str = "en", **address: Any) -> AppTest:
        with database.transaction("demo") as connection:
            row = connection.execute(
                "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
                "VALUES ('demo', %s, 'Asker', %s, '') "
                "ON CONFLICT (tenant_id, email) DO UPDATE SET role = excluded.role RETURNING id, created_at",
                (EMAIL, role),
            ).fetchone()
        assert row is not None
        account = Account(
            id=row[0],
            tenant_id="demo",
            email=EMAIL,
            name="Asker",
            role=role,
            user_group="",
            is_active=True,
            created_at=row[1],
            last_signed_in_at=None,
        )
        page = AppTest.from_file(PAGE, default_timeout=patient(30))
        page.user = {"sid": token_hash(app_services.sessions.start(account))}
        page.session_state[page_language.KEY] = language
        for name, value in address.items():
            page.query_params[name] = value
        return page.run()

    return opened


@pytest.fixture
def month(database: Database, collection: Collection) -> list[UUID]:
    """Questions of the last ten days."""
    return write_month(database, "demo", collection.id, until=today(), days=10, questions_per_day=6)


def today() -> date:
    return datetime.now(UTC).date()


def words(page: AppTest) -> str:
    return "\n".join(
        str(getattr(e, "value", "")) for kind in ("markdown", "caption", "header", "error") for e in page.get(kind)
    )


def group_all(running: Services) -> None:
    while running.gaps.group("demo"):
        pass


def metrics(page: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def table_now(page: AppTest, prefix: str) -> str:
    """Return the key of a table as it is drawn now, see `table_key`."""
    (turn,) = (k for k in page.session_state if str(k).startswith(prefix) and str(k).endswith("_turn"))
    return str(turn).removesuffix("turn") + str(page.session_state[turn][0])


def select_row(page: AppTest, prefix: str, row: int) -> AppTest:
    page.session_state[table_now(page, prefix)] = {"selection": {"rows": [row], "columns": [], "cells": []}}
    return page.run()


def test_an_employee_sees_no_figure(open_page: Open, month: list[UUID]) -> None:
    page = open_page(Role.EMPLOYEE)

    assert page.exception
    assert not page.metric
    assert not page.dataframe


def test_an_empty_log_explains_itself(open_page: Open) -> None:
    page = open_page()

    assert not page.exception
    assert "Nothing was asked in this period" in words(page)
    assert "first question in the chat" in words(page)
    assert not page.metric


def test_a_manager_sees_eight_figures_and_how_questions_ended(open_page: Open, month: list[UUID]) -> None:
    page = open_page()

    assert not page.exception
    assert list(metrics(page)) == [
        "Questions", "People", "Answered", "Helpful", "Time to the first words", "Time to the whole answer", "Cost",
        "Cost per answer",
    ]  # fmt: skip
    assert metrics(page)["Questions"] == str(len(month))
    assert len(page.get("plotly_chart")) == 1
    assert "never names or addresses" in words(page)
    assert "nothing is compared" in words(page)
    assert "without a price" in words(page)
    by_outcome = page.dataframe[0].value
    assert by_outcome[list(by_outcome.columns)[1:]].to_numpy().sum() == len(month)
    by_group = page.dataframe[1].value
    assert by_group["Questions"].sum() == len(month)
    assert list(page.dataframe[2].value.columns) == ["Document", "Questions", "Helpful"]


def test_documents_that_came_during_the_period_are_not_said_to_have_helped(
    open_page: Open, month: list[UUID], database: Database
) -> None:
    page = open_page()
    assert month
    assert "No document was available for the whole period" in words(page)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET created_at = now() - interval '1 year'")
    assert "Every document that was available for the whole period was used" in words(page.run())


def test_costs_are_the_ledgers_however_they_are_divided(open_page: Open, month: list[UUID], database: Database) -> None:
    with database.transaction("demo") as connection:
        row = connection.execute("SELECT sum(cost) FROM cost_ledger").fetchone()
    assert row is not None
    page = open_page(analytics_view="Costs")
    assert metrics(page)["Cost"] == plain(money(row[0]))
    models = page.dataframe[1].value
    (unpriced,) = models[models["Model"] == "house-model-1"]["Cost"]
    assert unpriced.endswith(" without a price")
    for by in ("operation", "model", "collection", "group", "purpose"):
        page.segmented_control("analytics_cost_by").set_value(by).run()
        assert not page.exception
        assert page.dataframe[0].value["Cost"].sum() == pytest.approx(float(row[0]))
    assert "Spent so far" in metrics(page)
    page.selectbox("analytics_other_model").set_value(("openai", "gpt-6-luna")).run()
    assert not page.exception
    assert any(label.startswith("Cost with gpt") for label in metrics(page))


def test_times_are_drawn_by_day_and_as_they_are_spread(open_page: Open, month: list[UUID]) -> None:
    page = open_page(analytics_view="Times")
    page.segmented_control("analytics_percentile").set_value("p95").run()

    assert not page.exception
    assert len(page.get("plotly_chart")) == 2
    assert page.dataframe[1].value["Questions"].sum() == len(month)


def test_the_first_days_explain_themselves(open_page: Open, database: Database, collection: Collection) -> None:
    write_month(database, "demo", collection.id, until=today(), days=2, questions_per_day=3)
    page = open_page()

    assert not page.exception
    assert "These are the first questions" in words(page)
    assert not [metric for metric in page.metric if metric.proto.chart_data]


def test_period_and_group_are_read_from_the_address(open_page: Open, month: list[UUID], database: Database) -> None:
    week_ago = today() - timedelta(days=6)
    with database.transaction("demo") as connection:
        row = connection.execute(
            "SELECT count(*) FROM chat_logs WHERE user_group = 'Sales' AND created_at >= %s", (week_ago,)
        ).fetchone()
    assert row is not None

    page = open_page(analytics_period="7 days", analytics_group="Sales")

    assert not page.exception
    assert metrics(page)["Questions"] == str(row[0])
    assert page.query_params["analytics_group"] == "Sales"


def test_own_dates_are_read_from_the_address(open_page: Open, month: list[UUID]) -> None:
    before = (today() - timedelta(days=30)).isoformat()
    page = open_page(analytics_period="Custom", analytics_days=[before, before])

    assert not page.exception
    assert "Nothing was asked in this period" in words(page)


@pytest.mark.parametrize(("language", "named"), [("en", "English"), ("de", "Englisch")])
def test_languages_are_named_and_the_address_has_their_codes(
    open_page: Open, month: list[UUID], database: Database, language: str, named: str
) -> None:
    with database.transaction("demo") as connection:
        connection.execute("UPDATE chat_logs SET language = 'nl' WHERE id = %s", (month[0],))
    page = open_page(language=language, analytics_view="Questions", analytics_language="en")
    with speaking(language):
        [filtered] = [box for box in page.selectbox if box.label == translated("Language")]
        assert filtered.value == "en"
        assert named in filtered.options
        questions = next(t.value for t in page.dataframe if translated("Language") in t.value)
        assert set(questions[translated("Language")]) == {named}


@pytest.mark.parametrize(
    ("language", "address"),
    [
        ("de", COSTS_OF_A_WEEK),
        ("en", {"analytics_view": "Kosten", "analytics_period": "7 Tage", "analytics_cost_by": "Zweck"}),
        ("ko", {"analytics_view": "Kosten", "analytics_period": "7 Tage", "analytics_cost_by": "Zweck"}),
    ],
)
def test_a_link_opens_the_same_view_for_whoever_reads_another_language(
    open_page: Open, month: list[UUID], database: Database, language: str, address: dict[str, str]
) -> None:
    page = open_page(language=language, **address)
    assert not page.exception
    assert page.segmented_control("analytics_period").value == "7 days"
    assert page.segmented_control("analytics_cost_by").value == "purpose"
    # What the month comes to is on the tab of costs alone.
    with speaking(language):
        assert translated("Spent so far") in metrics(page)


def test_every_filter_of_the_page_is_in_the_address(
    open_page: Open, month: list[UUID], database: Database, collection: Collection
) -> None:
    with database.transaction("demo") as connection:
        other = connection.execute(
            "INSERT INTO collections (tenant_id, name, embedding_model) "
            "SELECT tenant_id, 'Other', embedding_model FROM collections WHERE id = %s RETURNING id",
            (collection.id,),
        ).fetchone()
        assert other is not None
        connection.execute("UPDATE chat_logs SET collection_id = %s WHERE id = ANY (%s)", (other[0], month[:5]))
        rated = connection.execute("SELECT count(*) FROM feedback WHERE rating = 0").fetchone()
    page = open_page(analytics_collection=str(other[0]))
    assert metrics(page)["Questions"] == "5"
    page = open_page(analytics_view="Questions", analytics_rating="Rated not helpful", analytics_order="Slowest")
    assert rated is not None
    assert f"{rated[0]} question" in words(page)
    slowest = list(page.dataframe[0].value["Time (s)"])
    assert slowest == sorted(slowest, reverse=True)
    page = open_page(analytics_view="Unanswered questions", analytics_gap_state="Dismissed")
    assert "None in this period." in words(page)
    page = open_page(analytics_view="Costs", analytics_cost_unit_day="By month")
    assert page.dataframe[0].value["From"].nunique() <= 2


def test_what_is_chosen_in_a_table_opens_it(open_page: Open, month: list[UUID], database: Database) -> None:
    with database.transaction("demo") as connection:
        connection.execute(
            "UPDATE chat_logs SET outcome = 'failed', error = 'The provider cannot be reached.', "
            'rag_details = rag_details || \'{"notices": ["The reranker did not answer."]}\' WHERE id = %s',
            (month[-1],),
        )
        connection.execute("UPDATE chat_logs SET error = '' WHERE id <> %s", (month[-1],))
    page = open_page(analytics_view="Times")
    select_row(page, "analytics_errors_", 0)
    assert not page.exception
    assert "The provider cannot be reached" in "".join(error.value for error in page.error)
    # The same question in a second table is not drawn twice: its widgets have their keys of it.
    select_row(page, "analytics_notices_", 0)
    assert not page.exception
    assert "This question is already open further up." in words(page)
    page = open_page(analytics_view="Times")
    select_row(page, "analytics_slowest_", 0)
    assert not page.exception
    assert "Where the time went" in words(page)


def test_quality_and_questions_can_be_begun_with_before_anybody_asked(open_page: Open) -> None:
    page = open_page(Role.ADMIN, analytics_view="Quality")
    assert not page.exception
    assert page.button("analytics_golden_add").label == "Add a question"
    for view in ("Overview", "Costs", "Times", "Search", "Questions"):
        assert "Nothing was asked in this period" in words(open_page(analytics_view=view))
    assert "There are no unanswered questions in this period" in words(open_page(analytics_view="Unanswered questions"))


def test_a_question_becomes_a_golden_one_that_can_be_changed(
    open_page: Open, app_services: Services, collection: Collection, database: Database
) -> None:
    program = program_of("demo")
    app_services.pipeline.process_document(
        file=b"# Leave\n\nEvery employee has 25 days of annual leave in a calendar year.",
        file_name="leave.md",
        tenant_id="demo",
        collection=collection,
        identity=program,
        options=UploadOptions(generate_metadata=False),
    )
    asked = "How many days of annual leave does every employee have?"
    log = app_services.evaluations.ask_again(program, collection, asked, profile_of(collection))
    with database.transaction("demo") as connection:
        connection.execute("UPDATE chat_logs SET kind = 'question' WHERE id = %s", (log,))
    page = open_page(Role.ADMIN, analytics_view="Questions")
    select_row(page, "analytics_questions_", 0)
    next(button for button in page.button if button.label == "Make this a test question").click().run()
    assert not page.exception
    written = {box.label: box.value for box in (*page.text_input, *page.text_area, *page.selectbox)}
    assert (written["Question"], written["Pages"], written["Document"]) == (asked, "1", "Leave")
    assert "25 days" in written["Expected answer"]
    assert "[1]" not in written["Expected answer"]
    golden = golden_from_entry(app_services.analytics.question(program, log))
    assert (golden.language, golden.asked_as, golden.is_answerable) == ("en", str(log), True)
    app_services.evaluations.add_golden(program, collection, [golden, GoldenQuestion(question="How much leave?")])
    (golden_id, *_others) = app_services.evaluations.golden(program, collection.id)

    page = open_page(Role.ADMIN, analytics_view="Quality")
    select_row(page, "analytics_golden_", 0)
    page.button("analytics_golden_change").click().run()
    assert not page.exception
    assert next(box.value for box in page.text_input if box.label == "Question") == asked
    # The words of another one: it takes its place.
    changed = replace(golden, question="How much leave?")
    app_services.evaluations.change_golden(program, collection, golden_id, changed)
    assert app_services.evaluations.golden(program, collection.id) == {golden_id: changed}
    manager = open_page(analytics_view="Questions")
    select_row(manager, "analytics_questions_", 0)
    assert not [button for button in manager.button if button.label == "Make this a test question"]


@pytest.mark.parametrize(
    "address",
    [
        {"analytics_document": "nonsense"},
        {"analytics_group": "' OR 1=1"},
        {"analytics_period": "9999 days"},
        {"analytics_period": "Custom", "analytics_days": ["2026-13-45", "x"]},
        {"analytics_view": "nothing"},
        {"analytics_period": "Custom", "analytics_days": ["0001-01-01", "9999-12-31"]},
        {"analytics_period": "Custom", "analytics_days": ["x" * 10_000, "2026-11-01"]},
        {"analytics_group": "x" * 10_000},
        {"analytics_group": "a\x00b"},
        {"analytics_language": "x" * 10_000},
        {"analytics_document": "0" * 10_000},
        {"analytics_collection": "00000000-0000-0000-0000-000000000000"},
        {"analytics_question": "00000000-0000-0000-0000-000000000000"},
        {"analytics_gap": "00000000-0000-0000-0000-000000000000"},
    ],
    ids=lambda a: "-".join(a),
)
def test_nonsense_in_the_address_is_ignored(open_page: Open, month: list[UUID], address: dict[str, Any]) -> None:
    page = open_page(**address)

    assert not page.exception
    assert metrics(page)["Questions"] == str(len(month))


def test_dates_the_wrong_way_round_are_turned_and_one_alone_is_a_day(open_page: Open, month: list[UUID]) -> None:
    first, last = (today() - timedelta(days=3)).isoformat(), today().isoformat()
    turned = metrics(open_page(analytics_period="Custom", analytics_days=[last, first]))
    assert turned == metrics(open_page(analytics_period="Custom", analytics_days=[first, last]))
    alone = open_page(analytics_period="Custom", analytics_days=[first])
    assert not alone.exception
    assert 0 < int(metrics(alone)["Questions"]) < int(turned["Questions"])


def test_a_selected_question_opens_everything_logged_of_it_and_no_address(open_page: Open, month: list[UUID]) -> None:
    page = open_page(analytics_view="Questions")
    assert f"{len(month)} questions" in words(page)
    assert {"Asked", "Question", "Outcome", "Group", "Time (s)", "Cost"} <= set(page.dataframe[0].value.columns)
    page.selectbox("analytics_outcome").set_value("answered").run()

    select_row(page, "analytics_questions_", 0)

    assert not page.exception
    said = words(page)
    assert "Where the time went" in said
    assert "sorted a second time with rerank\\-multilingual\\-v3\\.0: 8 to 5 passages" in said
    assert "of which 412 are instructions" in said
    assert "**25 days**" in said
    stages = page.dataframe[1].value
    assert {"Search", "Second sorting", "Model"} <= set(stages["Stage"])
    assert list(stages["Starts after (ms)"][1:]) == pytest.approx(list(stages["Time (ms)"].cumsum()[:-1]), abs=1)
    found = page.dataframe[2].value
    assert list(found["Before"]) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert sorted(found["After"].dropna()) == [1, 2, 3, 4, 5]
    assert found["Similarity"].is_monotonic_decreasing
    assert page.get("plotly_chart")
    everything = said + "".join(frame.value.to_csv() for frame in page.dataframe)
    assert EMAIL not in everything


def test_questions_are_searched_and_nothing_found_is_said(open_page: Open, month: list[UUID]) -> None:
    page = open_page(analytics_view="Questions")
    page.text_input("analytics_text").set_value("no such words anywhere").run()

    assert not page.exception
    assert "No question matches" in words(page)


def test_a_frequent_word_is_counted_as_far_as_it_tells_of_another_page(
    open_page: Open, database: Database, collection: Collection
) -> None:
    # Enough of them, however many of these days are weekends.
    write_month(database, "demo", collection.id, until=today(), days=20, questions_per_day=6)
    page = open_page(Role.MANAGER, analytics_view="Questions", analytics_period="90 days")
    page.text_input("analytics_text").set_value("a").run()
    assert "≥ 26 questions. Select a row" in words(page)
    page.session_state["analytics_page"] = 2
    page.run()
    assert "≥ 51 questions. Select a row" in words(page)


def test_what_the_documents_could_not_answer_has_its_own_list(
    open_page: Open, month: list[UUID], app_services: Services
) -> None:
    group_all(app_services)
    page = open_page(analytics_view="Unanswered questions")

    assert not page.exception
    table = page.dataframe[0].value
    assert list(table.columns)[:4] == ["Question", "Waiting", "How often", "Before"]
    assert table["How often"].is_monotonic_decreasing
    select_row(page, "analytics_gaps_", 0)
    assert not page.exception
    assert any("-badge[" in text for text in words(page).splitlines())
    assert "Assign this question to one of them" in words(page)
    assert not [button for button in page.button if button.label == "Write an answer"]


def test_a_written_answer_is_found_cited_and_closes_the_gap(
    open_page: Open, database: Database, app_services: Services, collection: Collection
) -> None:
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO chat_logs (tenant_id, collection_id, question, outcome, total_ms) "
            "VALUES ('demo', %s, 'Is there a parking space for visitors?', 'no_context', 10)",
            (collection.id,),
        )
    group_all(app_services)
    page = open_page(Role.ADMIN, analytics_view="Unanswered questions")
    select_row(page, "analytics_gaps_", 0)
    next(button for button in page.button if button.label == "Write an answer").click().run()
    assert not page.exception
    assert "becomes a document of the collection" in words(page)
    admin = replace(program_of("demo"), name="Asker")
    (gap,) = app_services.gaps.list(admin, Period.of_days(2, until=today()), Filters())
    publish_answer(
        admin,
        gap,
        question=gap.question,
        answer="Visitors park in spaces 11 to 15 behind the main building.",
        owner=admin.name,
        review_on=today() + timedelta(days=365),
    )
    with pytest.raises(NotAllowed):
        publish_answer(replace(admin, role=Role.MANAGER), gap, question="x", answer="y", owner="", review_on=None)

    found = app_services.searches.search(
        Question(
            text="Is there parking space for visitors?",
            identity=program_of("demo"),
            collection=collection,
            reader_languages=["en"],
        ),
        profile=profile_of(collection),
    ).response
    assert found.citations[0].title == "Is there a parking space for visitors?"
    assert "spaces 11 to 15" in found.citations[0].passage
    page = open_page(Role.ADMIN, analytics_view="Unanswered questions")
    assert "There are no unanswered questions in this period" in words(page)
    document = app_services.documents.get("demo", found.citations[0].document_id)
    assert document.metadata["owner"] == "Asker"
    assert document.metadata["review_on"] > today().isoformat()


def test_a_question_is_run_again_beside_what_was_answered(
    open_page: Open, month: list[UUID], database: Database
) -> None:
    page = open_page(analytics_view="Questions")
    select_row(page, "analytics_questions_", 0)
    next(box for box in page.selectbox if box.label == "Profile").set_value("legal")
    next(button for button in page.button if button.label == "Run again").click().run()

    assert not page.exception
    assert "As it was" in words(page)
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT count(*) FROM chat_logs WHERE kind = 'evaluation'").fetchone() == (1,)


def test_golden_questions_are_run_and_compared_on_the_page(
    open_page: Open, month: list[UUID], app_services: Services, collection: Collection
) -> None:
    page = open_page(Role.ADMIN, analytics_view="Quality")
    assert "There are no test questions yet." in words(page)
    golden = [GoldenQuestion(question=f"What is rule {n}?", document="Leave policy") for n in range(12)]
    app_services.evaluations.add_golden(program_of("demo"), collection, golden)
    for _run in range(2):
        page = open_page(Role.ADMIN, analytics_view="Quality")
        page.button("analytics_golden_run").click().run()
        assert page.multiselect("analytics_run_with").value == ["own"]
        assert page.button("analytics_run_start").label == "Ask 12 questions"
        app_services.evaluations.start(program_of("demo"), collection, golden)
        while any(app_services.evaluations.is_running(run.id) for run in app_services.evaluations.runs("demo")):
            pass
    page = open_page(Role.ADMIN, analytics_view="Quality")
    assert list(page.dataframe[1].value["Questions"]) == ["12 / 12", "12 / 12"]
    key = table_now(page, "analytics_runs_")
    page.session_state[key] = {"selection": {"rows": [0, 1], "columns": [], "cells": []}}
    page.run()

    assert not page.exception
    compared = page.dataframe[2].value
    assert set(compared["Verdict"]) <= {"no difference", "better", "worse"}
    select_row(page, "analytics_pairs_", 0)
    assert not page.exception
    assert {"**Earlier**", "**Later**"} <= set(words(page).splitlines())
    manager = open_page(analytics_view="Quality")
    assert not [button for button in manager.button if button.key == "analytics_golden_run"]


def test_a_hostile_question_is_shown_as_text(open_page: Open, database: Database) -> None:
    hostile = "<script>alert(1)</script> ![x](http://elsewhere/x) $x$ :red[red]"
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO chat_logs (tenant_id, question, answer, outcome, total_ms, user_group) "
            "VALUES ('demo', %s, %s, 'answered', 10, %s)",
            (hostile, hostile, hostile),
        )
    page = open_page(analytics_view="Questions")
    select_row(page, "analytics_questions_", 0)

    assert not page.exception
    said = words(page)
    assert r"\<script\>alert\(1\)" in said
    assert "](http" not in said.replace(r"\]", "")
    assert not [m for m in page.markdown if m.allow_html]


def test_another_tenants_questions_do_not_count(open_page: Open, database: Database) -> None:
    with database.transaction("other") as connection:
        connection.execute(
            "INSERT INTO chat_logs (tenant_id, question, outcome, total_ms) VALUES ('other', 'Canary', 'answered', 1)"
        )
    page = open_page(Role.ADMIN, analytics_view="Questions")

    assert not page.exception
    assert "Nothing was asked" in words(page)
    assert "Canary" not in words(page)


def test_the_search_is_drawn_with_scores_changes_and_errors(
    open_page: Open, month: list[UUID], database: Database
) -> None:
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO chat_logs (tenant_id, question, outcome, total_ms, error) "
            "VALUES ('demo', 'How?', 'failed', 10, 'The provider cannot be reached.')"
        )
    page = open_page(analytics_view="Search")

    assert not page.exception
    assert not page.metric[0].value.startswith("–")
    assert len(page.get("plotly_chart")) == 1
    assert {"Second sorting put another passage first", "Best passage moved up from below place 5"} <= set(
        metrics(page)
    )
    page.segmented_control("analytics_score").set_value("score").run()
    page.segmented_control("analytics_search_by").set_value("group").run()
    assert not page.exception
    (by_group,) = [
        table.value
        for table in page.dataframe
        if "Similarity of the best passage" in table.value and "Group" in table.value
    ]
    assert set(by_group["Group"]) <= {"Sales", "Engineering", "Operations", "Finance"}
    times = open_page(analytics_view="Times", analytics_period="30 days")
    assert "Slowest questions" in words(times)
    assert any("cannot be reached" in str(table.value) for table in times.dataframe)


def test_names_are_shown_to_administrators_unless_it_is_set_otherwise(
    open_page: Open, app_services: Services, database: Database, collection: Collection
) -> None:
    def asked_by(role: Role) -> list[str]:
        page = open_page(role, analytics_view="Questions")
        assert not page.exception
        table = page.dataframe[0].value
        return list(table["Asked by"]) if "Asked by" in table else []

    open_page(Role.ADMIN)
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO chat_logs (tenant_id, account_id, collection_id, question, outcome, total_ms) "
            "SELECT 'demo', id, %s, 'How much leave?', 'answered', 10 FROM accounts WHERE email = %s",
            (collection.id, EMAIL),
        )
    admin = program_of("demo")
    assert (asked_by(Role.ADMIN), asked_by(Role.MANAGER)) == (["Asker"], [])
    assert "The audit log records when you read a question of somebody else" in words(open_page(Role.ADMIN))
    app_services.analytics.set_names_for(admin, Role.MANAGER)
    assert asked_by(Role.MANAGER) == ["Asker"]
    app_services.analytics.set_names_for(admin, None)
    assert (asked_by(Role.ADMIN), asked_by(Role.MANAGER)) == ([], [])
    with pytest.raises(NotAllowed):
        app_services.analytics.set_names_for(replace(admin, role=Role.MANAGER), Role.MANAGER)


def test_a_question_keeps_what_was_sent_and_found_as_it_was(
    open_page: Open, app_services: Services, collection: Collection, database: Database
) -> None:
    """Without a model the passages are quoted; they are kept with what became of each as a source."""
    program = program_of("demo")
    result = app_services.pipeline.process_document(
        file=b"# Leave\n\nEvery employee has 25 days of annual leave in a calendar year.",
        file_name="leave.md",
        tenant_id="demo",
        collection=collection,
        identity=program,
        options=UploadOptions(generate_metadata=False),
    )
    log = app_services.evaluations.ask_again(
        program, collection, "How many days of annual leave does every employee have?", profile_of(collection)
    )
    with database.transaction("demo") as connection:
        connection.execute("UPDATE chat_logs SET kind = 'question' WHERE id = %s", (log,))
    prompt = app_services.analytics.question("demo", log).prompt
    assert prompt is not None
    assert [(passage.state, passage.is_deleted) for passage in prompt.passages] == [("held", False)]
    assert "25 days" in prompt.passages[0].text
    page = open_page(analytics_view="Questions")
    select_row(page, "analytics_questions_", 0)
    assert not page.exception
    assert any("Cited, supports the answer" in expander.label for expander in page.expander)
    assert "No model was asked" in words(page)

    app_services.documents.delete(program, result.document_id)
    kept = app_services.analytics.question("demo", log).prompt
    assert kept is not None
    assert [(passage.text, passage.is_deleted) for passage in kept.passages] == [("", True)]
