"""One definition of "answered" for every figure, and medians that are exact, or say that they are not."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import psycopg
import pytest

from rag.language import speaking
from rag.records.analytics import FIRST, WHOLE, Analytics, Filters, Period
from rag.records.digest import digest_title, make_digest
from rag.services import Services
from rag.storage.database import Database, queries
from rag.types import Collection, Identity, Outcome, Role
from rag.ui.charts import histogram_figure, stage_figure
from tests.records.report_pdf import text_of_pdf
from tests.records.test_analytics import ask

DAY = datetime(2026, 11, 10, 12, tzinfo=UTC)
PERIOD = Period(DAY.date(), DAY.date())
#: An outcome that is compared with a word, whichever table it is read from.
SPELLED_OUT = re.compile(
    r"\boutcome\b\s*(?:=|<>|!=|IS (?:NOT )?DISTINCT FROM|(?:NOT )?IN|= ANY|<> ALL)\s*[(\s]*(?:ARRAY\[)?\s*'"
    r"|\b(?:CASE|WHEN)\s+(?:\w+\.)?outcome\s+WHEN\s*'"
    r"|'(?:" + "|".join(Outcome) + r")'(?:::text)?\s*(?:=|<>|!=)\s*(?:\w+\.)?outcome\b",
    re.IGNORECASE,
)


def without_comments(statement: str) -> str:
    return re.sub(r"--[^\n]*", "", statement)


@pytest.mark.parametrize(
    "spelled",
    [
        "count(*) FILTER (WHERE l.outcome = 'answered')",
        "AND outcome IN ('answered', 'perhaps')",
        "WHERE l.outcome NOT IN ('small_talk')",
        "CASE l.outcome WHEN 'answered' THEN 1 END",
        "l.outcome = ANY (ARRAY['failed'])",
        "(l.outcome = ANY (ARRAY['failed'::text]))",
        "'answered' = l.outcome",
    ],
)
def test_outcomes_that_are_spelled_out_are_found(spelled: str) -> None:
    assert SPELLED_OUT.search(spelled)


def test_no_statement_spells_outcomes_out() -> None:
    assert [name for name, text in queries.items() if SPELLED_OUT.search(without_comments(text))] == []


def test_no_function_and_no_other_view_spells_outcomes_out(owner_conninfo: str) -> None:
    with psycopg.connect(owner_conninfo) as connection:
        functions = connection.execute(
            "SELECT proname, pg_get_functiondef(oid) FROM pg_proc "
            "WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'"
        ).fetchall()
        views = connection.execute("SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'").fetchall()
    found = {name for name, text in (*functions, *views) if SPELLED_OUT.search(without_comments(text))}

    assert found == {"rag_is_answered", "question_outcomes"}


@pytest.mark.parametrize(
    ("outcome", "is_answered", "is_ended"),
    [
        ("answered", True, True), ("perhaps", False, True), ("no_context", False, True), ("refused", False, True),
        ("stopped", False, True), ("failed", False, True), ("small_talk", False, False), ("asked_back", False, False),
    ],
)  # fmt: skip
def test_the_view_says_what_counts(
    database: Database, tenant: str, outcome: str, is_answered: bool, is_ended: bool
) -> None:
    ask(database, outcome=outcome, total_ms=1000)
    with database.transaction(tenant) as connection:
        row = connection.execute(
            "SELECT is_answered, is_ended, whole_ms IS NOT NULL, (is_answered, is_perhaps, is_not_found, "
            "is_small_talk, is_asked_back, is_refused, is_stopped, is_failed)::text FROM question_outcomes"
        ).fetchone()

    assert row is not None
    assert row[:3] == (is_answered, is_ended, is_ended)
    assert row[3].count("t") == 1


def test_every_outcome_is_in_the_test_of_the_view() -> None:
    assert len(Outcome) == 8


def test_through_the_view_everybody_reads_their_own_rows(
    database: Database, collection: Collection, tenant: str
) -> None:
    ask(database, created_at=DAY)
    ask(database, "other", created_at=DAY)
    with database.transaction(tenant) as connection:
        connection.execute("UPDATE chat_logs SET collection_id = %s", (collection.id,))
        connection.execute("UPDATE collections SET groups = '{Board}' WHERE id = %s", (collection.id,))
    manager = Identity(
        account_id=collection.id, tenant_id=tenant, email="m@demo.example", name="M", role=Role.MANAGER,
        user_group="Sales",
    )  # fmt: skip
    counted = {}
    for who in (tenant, "other", manager):
        with database.transaction(who) as connection:
            rows = connection.execute("SELECT tenant_id FROM question_outcomes").fetchall()
        counted[who if isinstance(who, str) else "manager"] = [row[0] for row in rows]

    assert counted == {"demo": ["demo"], "other": ["other"], "manager": []}


def write_times(database: Database, *milliseconds: int) -> None:
    for ms in milliseconds:
        question = ask(database, created_at=DAY, total_ms=ms, rag_details={"timing": {"searchMs": ms / 10}})
        with database.transaction("demo") as connection:
            connection.execute("UPDATE chat_logs SET first_token_ms = %s WHERE id = %s", (ms // 2, question))


def test_medians_are_those_of_the_questions_also_where_days_are_added_up(database: Database, tenant: str) -> None:
    write_times(database, 2570, 1000, 9000)
    analytics = Analytics(database)
    analytics.days.add_up(tenant)

    whole, first = (analytics.times(tenant, PERIOD, Filters(), stages=[stage])[0] for stage in (WHOLE, FIRST))

    assert (whole.questions, whole.p50_ms, whole.is_about) == (3, 2570, False)
    assert whole.p95_ms == pytest.approx(8357)
    assert first.p50_ms == 1285
    (day,) = analytics.times(tenant, PERIOD, Filters(), unit="day", stages=[WHOLE])
    assert (day.day, day.p50_ms, day.is_about) == (PERIOD.first, 2570, False)


def test_many_questions_have_medians_within_one_percent_that_say_so(database: Database, tenant: str) -> None:
    write_times(database, 2570, 1000, 9000)

    for exact_below, is_about in ((3, True), (4, False)):
        rows = Analytics(database, exact_below=exact_below).times(tenant, PERIOD, Filters())
        assert {row.is_about for row in rows} == {is_about}
        whole = next(row for row in rows if row.stage == WHOLE)
        assert whole.p50_ms == pytest.approx(2570, rel=0.011)
        assert (whole.p50_ms == 2570) is not is_about
    # A filter that leaves few questions makes them exact.
    few = Analytics(database, exact_below=3).times(tenant, PERIOD, Filters(language="xx"))
    assert few == []


def test_about_is_written_wherever_a_median_is(app_services: Services, database: Database, tenant: str) -> None:
    write_times(database, 2570, 1000, 9000)

    def written(exact_below: int) -> tuple[str, ...]:
        analytics = Analytics(database, exact_below=exact_below)
        digest = make_digest(
            analytics, app_services.gaps, tenant, PERIOD, Filters(), title=digest_title("Demo", PERIOD, Filters())
        )
        times = analytics.times(tenant, PERIOD, Filters(), unit="day")
        whole = next(row for row in times if row.stage == WHOLE)
        buckets = analytics.time_histogram(tenant, PERIOD, Filters(), WHOLE)
        event = digest.as_event(PERIOD)
        assert event["is_about"] is (exact_below == 0)
        return (
            digest.as_text(), digest.as_html(), event["text"], text_of_pdf(app_services, digest),
            str(histogram_figure(buckets, whole)), str(stage_figure(times, PERIOD, percentile="p50")),
        )  # fmt: skip

    for text in written(0):
        assert "about " in text
    for text in written(1_000_000):
        assert "about " not in text
    for text in written(1_000_000)[:5]:
        assert "2.6 s" in text
    with speaking("de"):
        assert "etwa 2,6 s" in written(0)[0]


def test_a_digest_writes_short_times_as_the_page_does(database: Database, tenant: str, app_services: Services) -> None:
    write_times(database, 340)
    digest = make_digest(
        app_services.analytics,
        app_services.gaps,
        tenant,
        PERIOD,
        Filters(),
        title=digest_title("Demo", PERIOD, Filters()),
    )

    assert "340 ms (before: –)" in digest.as_text()
    assert "0.3 s" not in digest.as_text()
