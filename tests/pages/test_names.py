"""Who asked is shown to people who may see names, and reaches nobody else in any way there is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event
from uuid import UUID

import pytest
from streamlit.testing.v1 import AppTest

from rag.profiles import profile_of
from rag.records.analytics import Filters, Period, QuestionFilters
from rag.records.digest import digest_title, make_digest
from rag.services import Services
from rag.types import Collection, Identity, Question, Role
from tests.pages.test_analytics_page import PAGE, select_row
from tests.patience import patient
from tests.records.report_pdf import text_of_pdf

NAME = "Quirina Zelnick"
#: A day more, since a run may go past midnight.
PERIOD = Period.of_days(8, until=datetime.now(UTC).date() + timedelta(days=1))
SignIn = Callable[[Role], tuple[AppTest, Identity]]

#: By role of the reader: from which role on names are shown, and whether this reader sees them.
RIGHTS = [
    (Role.MANAGER, Role.MANAGER, True),
    (Role.MANAGER, Role.ADMIN, False),
    (Role.ADMIN, Role.ADMIN, True),
    (Role.ADMIN, None, False),
]


@pytest.fixture
def asked(running: Services, handbook: Collection, signed_in: SignIn) -> tuple[Identity, list[UUID]]:
    """Somebody whose name no document says, and their two questions, one of which the documents do not answer."""
    _, asker = signed_in(Role.EMPLOYEE)
    with running.database.transaction("demo") as connection:
        connection.execute("UPDATE accounts SET name = %s WHERE id = %s", (NAME, asker.account_id))
    asker = replace(asker, name=NAME)
    for text in ("How many days of vacation do employees get?", "Which submarines may I rent?"):
        question = Question(text=text, identity=asker, collection=handbook)
        list(running.answerer.answer(question, profile=profile_of(handbook), cancel=Event()))
    with running.database.transaction("demo") as connection:
        rows = connection.execute("SELECT id FROM chat_logs ORDER BY created_at").fetchall()
        connection.execute(
            "INSERT INTO feedback (tenant_id, chat_log_id, account_id, rating, comment) "
            "SELECT 'demo', id, account_id, 0, 'Not right' FROM chat_logs"
        )
    running.gaps.group("demo")
    return asker, [row[0] for row in rows]


def everything(parts: Services, reader: Identity, asked: list[UUID]) -> dict[str, str]:
    """All that the services for managers return, by the method that returned it."""
    values = {
        "who": reader, "identity": reader, "period": PERIOD, "filters": Filters(),
        "question_filters": QuestionFilters(), "chat_log_id": asked[0], "tenant_id": "demo",
        "stage": "total", "by": "group",
    }  # fmt: skip
    found: dict[str, str] = {}
    for part in (parts.analytics, parts.gaps):
        for name, method in inspect.getmembers(part, inspect.ismethod):
            needed = [p.name for p in inspect.signature(method).parameters.values() if p.default is p.empty]
            if not name.startswith(("_", "set_", "add_up", "group")) and values.keys() >= set(needed):
                returned = method(**{need: values[need] for need in needed})
                found[f"{type(part).__name__}.{name}"] = (
                    returned.decode("utf-8-sig") if isinstance(returned, bytes) else repr(returned)
                )
    for gap in parts.gaps.list(reader, PERIOD, Filters()):
        found[f"wordings of {gap.id}"] = repr(parts.gaps.wordings(reader, gap.id, PERIOD, Filters()))
    digest = make_digest(
        parts.analytics, parts.gaps, reader, PERIOD, Filters(), title=digest_title("Demo", PERIOD, Filters())
    )
    found |= {"digest": digest.as_text(), "digest as HTML": digest.as_html(), "event": repr(digest.as_event(PERIOD))}
    found["PDF"] = text_of_pdf(parts, digest)
    return found


@pytest.mark.parametrize(("role", "names_for", "sees"), RIGHTS)
def test_names_are_told_to_nobody_without_the_right_to_see_them(
    running: Services,
    asked: tuple[Identity, list[UUID]],
    signed_in: SignIn,
    role: Role,
    names_for: Role | None,
    sees: bool,
) -> None:
    asker, questions = asked
    _, admin = signed_in(Role.ADMIN)
    running.analytics.set_names_for(admin, names_for)
    _, reader = signed_in(role)

    told = everything(running, reader, questions)

    secrets = (NAME, asker.email, str(asker.account_id))
    assert {"Analytics.question", "Analytics.questions", "Analytics.export_csv", "Gaps.list", "PDF"} <= told.keys()
    assert len(told) > 25, sorted(told)
    naming = {way for way, words in told.items() if any(secret in words for secret in secrets)}
    assert naming == ({"Analytics.question", "Analytics.questions", "Analytics.export_csv"} if sees else set())


@pytest.mark.parametrize(("role", "names_for", "sees"), RIGHTS[:2])
def test_no_view_of_the_page_names_who_asked_without_the_right(
    running: Services,
    asked: tuple[Identity, list[UUID]],
    signed_in: SignIn,
    role: Role,
    names_for: Role | None,
    sees: bool,
) -> None:
    asker, _ = asked
    _, admin = signed_in(Role.ADMIN)
    running.analytics.set_names_for(admin, names_for)
    _, reader = signed_in(role)
    seen = {}
    for view in ("Overview", "Costs", "Times", "Search", "Questions", "Unanswered questions", "Quality"):
        page = AppTest.from_file(PAGE, default_timeout=patient(30))
        page.user = {"sid": reader.session_id}
        page.query_params["analytics_view"] = view
        page.run()
        if table := {"Questions": "analytics_questions_", "Unanswered questions": "analytics_gaps_"}.get(view):
            select_row(page, table, 0)
        assert not page.exception
        seen[view] = f"{page!r}" + "".join(frame.value.to_csv() for frame in page.dataframe)

    assert "vacation" in seen["Questions"]
    assert "vacation" in seen["Unanswered questions"]
    naming = {view for view, words in seen.items() if NAME in words or asker.email in words}
    assert naming == ({"Questions"} if sees else set())
