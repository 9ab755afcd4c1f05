"""What is due by day, week or month: done once, by whichever process looks first."""

from __future__ import annotations

import socketserver
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID, uuid4

import pypdf
import pytest

from rag.errors import InvalidInput, NotAllowed
from rag.evaluation.golden import GoldenQuestion
from rag.evaluation.runs import Run
from rag.records.analytics import Period
from rag.records.report_pdf import digest_pdf
from rag.scheduled_work import Letters, ScheduledWork, fallen_figures
from rag.services import Services, program_of
from rag.storage.database import Database
from rag.types import Collection, Role
from tests.local_server import serving
from tests.question_month import write_month

MONDAY = datetime(2026, 11, 23, 7, tzinfo=UTC)
#: Too early for the digest of a Monday, whatever day today is.
TODAY = datetime.now(UTC).replace(hour=3)


class _Mailbox(socketserver.StreamRequestHandler):
    """Takes letters as a mail server does, without asking who sends them."""

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        for line in self.rfile:
            word = line.split()[0].upper() if line.split() else b""
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                letter = b""
                while not letter.endswith(b"\r\n.\r\n"):
                    letter += self.rfile.readline()
                self.server.letters.append(letter.decode())  # type: ignore[attr-defined]
                self.wfile.write(b"250 taken\r\n")
            elif word == b"QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 fine\r\n")


@pytest.fixture
def mailbox() -> Iterator[Any]:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Mailbox)
    server.letters = []  # type: ignore[attr-defined]
    server.daemon_threads = True
    with serving(server):
        yield server


@pytest.fixture
def told() -> list[tuple[str, dict[str, Any]]]:
    return []


@pytest.fixture
def scheduled(app_services: Services, mailbox: Any, told: list[Any], database: Database) -> ScheduledWork:
    for name, role in (("Ada", "admin"), ("Max", "manager"), ("Eve", "employee")):
        with database.transaction("demo") as connection:
            connection.execute(
                "INSERT INTO accounts (tenant_id, email, name, role, password_hash) VALUES ('demo', %s, %s, %s, '')",
                (f"{name.lower()}@demo.example", name, role),
            )
    parts = app_services
    settings = replace(
        parts.settings, smtp_url=f"smtp://127.0.0.1:{mailbox.server_address[1]}", mail_from="hr@demo.example"
    )
    return ScheduledWork(
        database, settings, analytics=parts.analytics, gaps=parts.gaps, privacy=parts.privacy, budgets=parts.budgets,
        evaluations=parts.evaluations, collections=parts.documents.collections,
        tell=lambda tenant_id, kind, data: told.append((kind, dict(data))),
    )  # fmt: skip


def recipients(mailbox: Any) -> list[str]:
    return sorted(
        line.removeprefix("To: ") for letter in mailbox.letters for line in letter.splitlines() if line[:4] == "To: "
    )


def test_the_digest_is_sent_once_on_mondays_to_those_who_want_it(
    scheduled: ScheduledWork, mailbox: Any, database: Database, collection: Collection, told: list[Any]
) -> None:
    write_month(database, "demo", collection.id, until=datetime(2026, 11, 22, tzinfo=UTC).date(), days=8)
    scheduled.run(["demo", "other"], now=MONDAY)
    assert mailbox.letters == []
    scheduled.set_letters(program_of("demo"), Letters(digest_for=Role.MANAGER))
    scheduled.run(["demo"], now=MONDAY.replace(hour=5))
    scheduled.run(["demo"], now=MONDAY.replace(day=24))
    assert mailbox.letters == []

    for _ in range(2):
        scheduled.run(["demo"], now=MONDAY)

    assert recipients(mailbox) == ["ada@demo.example", "max@demo.example"]
    assert "16 Nov to 22 Nov 2026" in mailbox.letters[0]
    assert "text/html" in mailbox.letters[0]
    assert [kind for kind, _ in told] == ["digest.weekly"] * 2, "once for each company"
    data = told[0][1]
    assert (data["first"], data["last"]) == ("2026-11-16", "2026-11-22")
    lines = {line["label"]: line["value"] for section in data["sections"] for line in section["lines"]}
    questions = next(value for label, value in lines.items() if "uestions" in label)
    assert questions in data["text"]
    assert scheduled.letters("demo") == Letters(digest_for=Role.MANAGER, alerts_for=Role.ADMIN)
    with pytest.raises(InvalidInput):
        scheduled.set_letters(program_of("demo"), Letters(digest_for=Role.EMPLOYEE))
    with pytest.raises(NotAllowed):
        scheduled.set_letters(replace(program_of("demo"), role=Role.MANAGER), Letters())


def test_a_budget_is_told_of_when_it_is_nearly_and_wholly_spent_once_a_month(
    scheduled: ScheduledWork, mailbox: Any, told: list[Any], database: Database, app_services: Services
) -> None:
    def spend(dollars: str) -> None:
        with database.transaction("demo") as connection:
            connection.execute(
                "INSERT INTO cost_ledger (tenant_id, operation, provider, model, cost) "
                "VALUES ('demo', 'chat', 'openai', 'gpt-4o', %s)",
                (Decimal(dollars),),
            )
        for _ in range(2):
            scheduled.run(["demo"], now=TODAY)

    app_services.budgets.set(program_of("demo"), "company", "10")
    spend("5")
    assert (mailbox.letters, told) == ([], [])
    spend("4")
    assert recipients(mailbox) == ["ada@demo.example"]
    assert "Most of the budget" in mailbox.letters[0]
    ((kind, data),) = told
    assert (kind, data["scope"], data["spent"]) == ("budget.near", "company", "9.00000000")
    spend("2")
    assert "The budget of the company is spent" in mailbox.letters[1]
    assert len(mailbox.letters) == 2


def test_a_night_forgets_and_asks_the_golden_questions_and_says_when_a_figure_fell(
    scheduled: ScheduledWork, mailbox: Any, told: list[Any], app_services: Services, collection: Collection,
    database: Database,
) -> None:  # fmt: skip
    admin = program_of("demo")
    app_services.pipeline.process_document(
        file=b"# Leave\n\nEvery employee has 25 days of annual leave in a calendar year.", file_name="leave.md",
        tenant_id="demo", collection=collection, generate_metadata=False,
    )  # fmt: skip
    questions = [
        GoldenQuestion(question=f"How many days of annual leave has every employee, {name}?", document="leave.md")
        for name in "abcdefghijkl"
    ]
    app_services.evaluations.add_golden(admin, collection, questions)
    scheduled.run(["demo"], now=MONDAY)
    assert app_services.evaluations.runs("demo", collection.id) == []
    scheduled.set_nightly(admin, collection.id, True)
    for _ in range(2):
        scheduled.run(["demo"], now=MONDAY)
    (first,) = app_services.evaluations.runs("demo", collection.id)
    assert first.done == 12
    assert [kind for kind, _ in told] == ["digest.weekly"]
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET status = 'superseded'")
    scheduled.run(["demo"], now=MONDAY.replace(day=24))

    assert len(app_services.evaluations.runs("demo", collection.id)) == 2
    (*_, (kind, data)) = told
    assert kind == "evaluation.fell"
    assert data["figures"]["answered_right"]["now"] == 0
    assert (data["collectionId"], data["runIdBefore"]) == (str(collection.id), str(first.id))
    assert recipients(mailbox) == ["ada@demo.example"]
    assert "are worse than before" in mailbox.letters[0]
    scheduled.set_nightly(admin, collection.id, False)
    assert not scheduled.is_nightly("demo", collection.id)


def test_few_questions_and_small_changes_are_no_fall() -> None:
    def run(done: int, **figures: float) -> Run:
        return Run(
            id=uuid4(), collection_id=UUID(int=1), collection="HR", profile="hr", model="", overrides={},
            questions=done, done=done, figures=figures, created_at=MONDAY, finished_at=MONDAY,
        )  # fmt: skip

    assert fallen_figures(run(9, grounded=1.0), run(9, grounded=0.1)) == []
    assert fallen_figures(run(20, grounded=0.9, total_ms=100), run(20, grounded=0.87, total_ms=140)) == []
    fallen = fallen_figures(run(20, grounded=0.9, total_ms=100), run(20, grounded=0.8, total_ms=160))
    assert [one.figure for one in fallen] == ["grounded", "total_ms"]


def test_the_report_is_a_pdf_in_any_european_script(
    scheduled: ScheduledWork, database: Database, collection: Collection
) -> None:
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO chat_logs (tenant_id, collection_id, question, outcome, created_at) "
            "SELECT 'demo', %s, 'Übergabe für Łódź, Ελλάδα и Москва?', 'no_context', %s FROM generate_series(1, 3)",
            (collection.id, datetime(2026, 11, 20, tzinfo=UTC)),
        )
    period = Period.of_days(7, until=datetime(2026, 11, 22, tzinfo=UTC).date())

    read = pypdf.PdfReader(BytesIO(digest_pdf(scheduled.digest("demo", period))))

    text = " ".join(read.pages[0].extract_text().split())
    assert "Übergabe für Łódź, Ελλάδα и Москва?" in text
    assert "3 (before: 0)" in text
