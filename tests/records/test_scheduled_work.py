"""What is due by day, week or month: done once, by whichever process looks first."""

from __future__ import annotations

import email
import email.policy
import socketserver
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from rag.errors import InvalidInput, NotAllowed
from rag.evaluation.golden import GoldenQuestion
from rag.evaluation.metrics import compare
from rag.profiles import profile_by_name
from rag.scheduled_work import Recipients, ScheduledWork, WorkParts, fallen_figures
from rag.services import Services, assemble, program_of
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Role, UploadOptions
from tests.answering.test_answering_end_to_end import publish
from tests.question_month import write_month
from tests.standins.local_server import serving
from tests.standins.providers import ProviderStandin

MONDAY = datetime(2026, 11, 23, 7, tzinfo=UTC)
#: Too early for the digest of a Monday, whatever day today is.
TODAY = datetime.now(UTC).replace(hour=3)


class _Mailbox(socketserver.StreamRequestHandler):
    """Takes letters as a mail server does, without asking who sends them."""

    def handle(self) -> None:
        if self.server.is_closed:  # type: ignore[attr-defined]
            self.wfile.write(b"421 not now\r\n")
            return
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
    server.is_closed = False  # type: ignore[attr-defined]
    server.daemon_threads = True
    with serving(server):
        yield server


@pytest.fixture
def told() -> list[tuple[str, dict[str, Any]]]:
    return []


class Clock:
    """A clock that is moved by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def scheduled(app_services: Services, mailbox: Any, told: list[Any], database: Database, clock: Clock) -> ScheduledWork:
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
    return work_of(parts, settings, told, clock)


def work_of(parts: Services, settings: Settings, told: list[tuple[str, dict[str, Any]]], clock: Clock) -> ScheduledWork:
    used = WorkParts(
        analytics=parts.analytics, gaps=parts.gaps, privacy=parts.privacy, budgets=parts.budgets,
        evaluations=parts.evaluations, collections=parts.documents.collections,
    )  # fmt: skip
    return ScheduledWork(
        parts.database, settings, used, tell=lambda _tenant, kind, data: told.append((kind, dict(data))), clock=clock
    )


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
    scheduled.set_recipients(program_of("demo"), Recipients(digest_for=Role.MANAGER))
    scheduled.run(["demo"], now=MONDAY.replace(hour=5))
    scheduled.run(["demo"], now=MONDAY.replace(day=24))
    assert mailbox.letters == []

    for _ in range(2):
        scheduled.run(["demo"], now=MONDAY)

    assert recipients(mailbox) == ["ada@demo.example", "max@demo.example"]
    assert "16 Nov 2026 to 22 Nov 2026" in mailbox.letters[0]
    assert "text/html" in mailbox.letters[0]
    assert [kind for kind, _ in told] == ["digest.weekly"] * 2, "once for each company"
    data = told[0][1]
    assert (data["first"], data["last"]) == ("2026-11-16", "2026-11-22")
    lines = {line["label"]: line["value"] for section in data["sections"] for line in section["lines"]}
    questions = next(value for label, value in lines.items() if "uestions" in label)
    assert questions in data["text"]
    assert scheduled.recipients("demo") == Recipients(digest_for=Role.MANAGER, alerts_for=Role.ADMIN)
    with pytest.raises(InvalidInput):
        scheduled.set_recipients(program_of("demo"), Recipients(digest_for=Role.EMPLOYEE))
    with pytest.raises(NotAllowed):
        scheduled.set_recipients(replace(program_of("demo"), role=Role.MANAGER), Recipients())


def test_each_letter_is_in_the_language_that_its_reader_chose(
    scheduled: ScheduledWork, mailbox: Any, database: Database, collection: Collection, app_services: Services
) -> None:
    write_month(database, "demo", collection.id, until=datetime(2026, 11, 22, tzinfo=UTC).date(), days=8)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE accounts SET language = 'de' WHERE name = 'Max'")
    scheduled.set_recipients(program_of("demo"), Recipients(digest_for=Role.MANAGER, alerts_for=Role.MANAGER))
    scheduled.send_digest("demo", Role.MANAGER, until=datetime(2026, 11, 22, tzinfo=UTC).date())
    app_services.budgets.set(program_of("demo"), "company", "0")
    (budget,) = app_services.budgets.list("demo")
    scheduled.warn_of("demo", budget)

    letters = [email.message_from_string(letter, policy=email.policy.default) for letter in mailbox.letters]
    texts = {
        (str(one["To"])[:3], str(one["Subject"])): body.get_content()
        for one in letters
        if (body := one.get_body(("plain",))) is not None
    }
    subjects = {person: [subject for name, subject in texts if name == person] for person in ("ada", "max")}
    assert subjects["ada"][1] == "The budget of the company is spent"
    assert subjects["max"][1] == "Das Budget „Ganzes Unternehmen“ ist ausgeschöpft"
    assert "22 Nov 2026" in subjects["ada"][0]
    assert "22.11.2026" in subjects["max"][0]
    assert "Most used documents" in texts["ada", subjects["ada"][0]]
    assert "Meistgenutzte Dokumente" in texts["max", subjects["max"][0]]
    assert "ausgegeben" in texts["max", subjects["max"][1]]


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


def test_a_suspended_company_is_told_of_nothing_while_the_others_are(
    app_services: Services, mailbox: Any, database: Database, owner_conninfo: str
) -> None:
    settings = replace(
        app_services.settings, smtp_url=f"smtp://127.0.0.1:{mailbox.server_address[1]}", mail_from="hr@demo.example"
    )
    for tenant_id in ("demo", "other"):
        with database.transaction(tenant_id) as connection:
            connection.execute(
                "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
                "VALUES (%s, %s, 'Ada', 'admin', '')",
                (tenant_id, f"ada@{tenant_id}.example"),
            )
            connection.execute(
                "INSERT INTO cost_ledger (tenant_id, operation, provider, model, cost) "
                "VALUES (%s, 'chat', 'openai', 'gpt-4o', 11)",
                (tenant_id,),
            )
        app_services.budgets.set(program_of(tenant_id), "company", "10")
    parts = assemble(settings, database, owner_conninfo=owner_conninfo)
    try:
        assert parts.queue.on_every_minute is not None
        parts.tenants.suspend("other")
        parts.queue.on_every_minute()
        assert set(recipients(mailbox)) == {"ada@demo.example"}
        parts.tenants.resume("other")
        parts.queue.on_every_minute()
        assert set(recipients(mailbox)) == {"ada@demo.example", "ada@other.example"}
    finally:
        parts.evaluations.stop()
        parts.answers.stop_all()
        parts.pipeline.close()
        parts.providers.close()


def test_a_night_forgets_and_asks_the_golden_questions_and_says_when_a_figure_fell(
    scheduled: ScheduledWork, mailbox: Any, told: list[Any], app_services: Services, collection: Collection,
    database: Database,
) -> None:  # fmt: skip
    admin = program_of("demo")
    app_services.pipeline.process_document(
        file=b"# Leave\n\nEvery employee has 25 days of annual leave in a calendar year.",
        file_name="leave.md",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    questions = [
        GoldenQuestion(question=f"How many days of annual leave has every employee, {name}?", document="leave.md")
        for name in "abcdefghijkl"
    ]
    app_services.evaluations.add_golden(admin, collection, questions)
    scheduled.run(["demo"], now=MONDAY)
    scheduled.run_all_golden(["demo"], now=MONDAY)
    assert app_services.evaluations.runs("demo", collection.id) == []
    scheduled.set_nightly(admin, collection.id, True)
    for _ in range(2):
        scheduled.run_all_golden(["demo"], now=MONDAY)
    (first,) = app_services.evaluations.runs("demo", collection.id)
    assert first.done == 12
    assert [kind for kind, _ in told] == ["digest.weekly"]
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET status = 'superseded'")
    scheduled.run_all_golden(["demo"], now=MONDAY.replace(day=24))

    assert len(app_services.evaluations.runs("demo", collection.id)) == 2
    (*_, (kind, data)) = told
    assert kind == "evaluation.fell"
    assert data["figures"]["answered_right"]["now"] == 0
    assert (data["collectionId"], data["runIdBefore"]) == (str(collection.id), str(first.id))
    assert recipients(mailbox) == ["ada@demo.example"]
    assert "are worse than before" in mailbox.letters[0]
    # A trial by day, of other settings, is no night's: the next night is compared with the last one.
    trial = app_services.evaluations.begin(collection, profile_by_name("legal"), questions)
    app_services.evaluations.work(collection, trial, admin)
    scheduled.run_all_golden(["demo"], now=MONDAY.replace(day=25))
    # How long answers take depends on what else this machine does.
    fell = [data for kind, data in told if kind == "evaluation.fell" and set(data["figures"]) != {"total_ms"}]
    assert len(fell) == 1
    assert [run.is_nightly for run in app_services.evaluations.runs("demo", collection.id)] == [True, False, True, True]
    scheduled.set_nightly(admin, collection.id, False)
    assert not scheduled.is_nightly("demo", collection.id)


def test_letters_that_the_mail_server_did_not_take_are_sent_an_hour_later(
    scheduled: ScheduledWork, mailbox: Any, told: list[Any], database: Database, app_services: Services, clock: Clock
) -> None:
    scheduled.set_recipients(program_of("demo"), Recipients(digest_for=Role.ADMIN))
    app_services.budgets.set(program_of("demo"), "company", "10")
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO cost_ledger (tenant_id, operation, provider, model, cost) "
            "VALUES ('demo', 'chat', 'openai', 'gpt-4o', 9)"
        )
    mailbox.is_closed = True
    scheduled.run(["demo"], now=MONDAY)
    mailbox.is_closed = False
    clock.now += 3599
    scheduled.run(["demo"], now=MONDAY)
    assert mailbox.letters == []
    clock.now += 1
    for _ in range(2):
        scheduled.run(["demo"], now=MONDAY)

    assert [
        sum(words in letter for letter in mailbox.letters) for words in ("Most of the budget", "16 Nov 2026 to")
    ] == [
        1,
        1,
    ]
    assert len(mailbox.letters) == 2
    assert sorted(kind for kind, _ in told) == ["budget.near", "digest.weekly"], "other programs are told once"


def test_a_night_that_was_interrupted_is_continued_and_a_rejected_key_is_no_fall(
    scheduled: ScheduledWork, told: list[Any], collection: Collection, database: Database, settings: Settings,
    provider_standin: ProviderStandin, clock: Clock,
) -> None:  # fmt: skip
    with_model = replace(settings, openai_api_key="key", openai_base_url=provider_standin.openai_url)
    processes = [assemble(with_model, database) for _ in range(2)]
    works = [work_of(parts, with_model, told, clock) for parts in processes]
    now = datetime.now(UTC).replace(hour=3)
    evaluations = processes[1].evaluations
    try:
        publish(database, processes[0].providers, collection)
        questions = [f"How many vacation days do full-time employees receive, {name}?" for name in "abcdefghijkl"]
        golden = [GoldenQuestion(question=question) for question in questions]
        evaluations.add_golden(program_of("demo"), collection, golden)
        scheduled.set_nightly(program_of("demo"), collection.id, True)

        def ended_at_the_second(messages: list[dict[str, Any]]) -> str:
            if "receive, b?" in messages[-1]["content"]:
                processes[0].evaluations.stop()
            return "Full-time employees receive 25 vacation days [1]."

        provider_standin.reply(ended_at_the_second)
        works[0].run_all_golden(["demo"], now=now)
        (run,) = evaluations.runs("demo", collection.id)
        assert (run.done, run.finished_at) == (1, None)

        # Another process goes on at once. Then the key is rejected, and it goes on an hour later.
        provider_standin.accepted_key = "another"
        works[1].run_all_golden(["demo"], now=now)
        (run,) = evaluations.runs("demo", collection.id)
        assert (run.done, run.finished_at) == (1, None)
        provider_standin.accepted_key = None
        works[1].run_all_golden(["demo"], now=now)
        assert evaluations.runs("demo", collection.id)[0].done == 1
        clock.now += 3600
        for _ in range(2):
            works[1].run_all_golden(["demo"], now=now)

        (run,) = evaluations.runs("demo", collection.id)
        assert (run.done, run.finished_at is not None) == (12, True)
        assert run.figures["answered_right"] == 1.0
        assert told == []
    finally:
        for parts in processes:
            parts.pipeline.close()
            parts.providers.close()


def test_few_questions_and_small_changes_are_no_fall() -> None:
    def fallen(questions: int, **pairs: tuple[float, float]) -> list[str]:
        first, second = ([{name: pair[place] for name, pair in pairs.items()}] * questions for place in (0, 1))
        return [one.figure for one in fallen_figures(compare(first, second))]

    assert fallen(9, grounded=(1.0, 0.1)) == []
    assert fallen(20, grounded=(0.9, 0.87), total_ms=(100, 140)) == []
    assert fallen(20, grounded=(0.9, 0.8), total_ms=(100, 160), refused_wrong=(0.0, 0.2)) == [
        "refused_wrong", "grounded", "total_ms",
    ]  # fmt: skip
    assert fallen(20, grounded=(0.8, 0.9), total_ms=(160, 100), refused_wrong=(0.2, 0.0)) == []
    # One answer that took long is no fall of all: times have to be worse beyond chance.
    usual = [{"total_ms": 100.0}] * 20
    assert fallen_figures(compare(usual, [*usual[1:], {"total_ms": 9000.0}])) == []
