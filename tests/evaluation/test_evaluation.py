from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier, Event, Thread
from uuid import UUID, uuid4

import psycopg
import pytest

from rag.commands.questions import TOO_LOW, evaluate
from rag.errors import InvalidInput, NotAllowed, ProviderUnavailable
from rag.evaluation.golden import GoldenQuestion, parse_golden
from rag.evaluation.metrics import EvaluatedAnswer, compare, figures_of, means
from rag.evaluation.runs import ALREADY_RUNNING
from rag.profiles import profile_of
from rag.records.analytics import Filters, Period
from rag.services import Services, assemble, program_of
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Citation, Collection, Identity, Outcome, Role, UploadOptions
from tests.answering.test_answering_end_to_end import publish
from tests.forked import forked_python, kill
from tests.patience import patient
from tests.standins.providers import ProviderStandin

PROJECT = Path(__file__).resolve().parents[2]
LEAVE, TRAVEL = uuid4(), uuid4()
GOLDEN = (
    GoldenQuestion(
        question="How many days of annual leave does every employee have?", document="leave.md", evidence=("25 days",)
    ),
    GoldenQuestion(question="Up to how much are hotels reimbursed?", document="travel.md", evidence=("$2,000",)),
    GoldenQuestion(question="What is the price of a train ticket to the moon?", is_answerable=False),
)


def cite(document: UUID, first: int, last: int | None = None, *, holds: bool = True) -> Citation:
    name = "leave.pdf" if document == LEAVE else "travel.pdf"
    return Citation(
        number=1, chunk_id=uuid4(), document_id=document, title=name.title(), file_name=name, first_page=first,
        last_page=last or first, section="", passage="", score=0.5, is_supported=holds,
    )  # fmt: skip


def reply(
    ranked: list[Citation], *, outcome: Outcome = Outcome.ANSWERED, answer: str = "", **more: object
) -> EvaluatedAnswer:
    values: dict[str, object] = {"cited": ranked[:1], "total_ms": 100, "cost": 0.01} | more
    return EvaluatedAnswer(ranked=ranked, answer=answer, outcome=outcome, **values)  # type: ignore[arg-type]


# Test questions


def test_golden_questions_are_read_from_csv_and_from_lines_of_json() -> None:
    rows = "question,document,page,evidence,answerable\nHow long?,leave.pdf,3;4,25 days; 5 weeks,yes\nMoon?,,,,no\n"
    lines = '{"question": "How long?", "document": "leave.pdf", "pages": [3, 4], "evidence": ["25 days", "5 weeks"]}'

    read = parse_golden(rows, is_csv=True)

    assert read == [
        GoldenQuestion(question="How long?", document="leave.pdf", pages=(3, 4), evidence=("25 days", "5 weeks")),
        GoldenQuestion(question="Moon?", is_answerable=False),
    ]
    assert parse_golden(f"{lines}\n\n", is_csv=False) == read[:1]
    for text, sentence in (
        ("", "no question"),
        ("{", "Line 1 is not a JSON object"),
        ("[1]", "Line 1 is not a JSON object"),
        ('{"question": " "}', "Question 1 is empty"),
        ('{"question": "x", "page": "three"}', "the page has to be a number"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            parse_golden(text, is_csv=False)


# Figures


def test_ranks_count_pages_and_documents_once_at_their_first_place() -> None:
    golden = GoldenQuestion(question="x", document="leave.pdf", pages=(4, 5))
    ranked = [cite(TRAVEL, 1), cite(LEAVE, 4), cite(LEAVE, 4), cite(LEAVE, 5)]

    found = figures_of(golden, reply(ranked, cited=[ranked[1], ranked[0]]))

    assert (found["document_rank"], found["document_recall"]) == (0.5, 1.0)
    assert (found["page_rank"], found["page_recall"]) == (0.5, 1.0)
    # Pages in their order: travel 1, leave 4, leave 5; ideal would be both first.
    assert found["page_ndcg"] == pytest.approx((0.63093 + 0.5) / (1 + 0.63093), abs=1e-4)
    assert (found["citation_precision"], found["answered_right"], found["refused_wrong"]) == (0.5, 1.0, 0.0)
    nothing = figures_of(golden, reply([], outcome=Outcome.NO_CONTEXT, cited=[]))
    assert (nothing["page_recall"], nothing["page_rank"], nothing["answered_right"]) == (0.0, 0.0, 0.0)
    assert nothing["refused_wrong"] == 1.0


def test_what_the_documents_do_not_answer_is_right_when_refused() -> None:
    golden = GoldenQuestion(question="x", is_answerable=False)

    assert figures_of(golden, reply([], outcome=Outcome.NO_CONTEXT))["refused_right"] == 1.0
    answered = figures_of(golden, reply([cite(LEAVE, 1)]))
    assert (answered["refused_right"], answered["answered_wrong"]) == (0.0, 1.0)
    assert "page_recall" not in answered


def test_expected_words_and_citations_that_hold_are_shares() -> None:
    golden = GoldenQuestion(question="x", document="leave.pdf", evidence=("25  Days", "five weeks"))
    cited = [cite(LEAVE, 1), cite(LEAVE, 2, holds=False)]

    found = figures_of(golden, reply(cited, answer="You get 25 days [1].", cited=cited))

    assert (found["evidence"], found["grounded"]) == (0.5, 0.5)
    assert means([found, {"evidence": 1.0, "total_ms": 300.0}])["evidence"] == 0.75


def test_the_paired_bootstrap_tells_a_difference_from_chance() -> None:
    worse = [{"page_recall": float(n % 2), "total_ms": 100.0 + n} for n in range(40)]
    better = [{"page_recall": 1.0, "total_ms": 100.0 + n + (-1) ** n} for n in range(40)]

    found = {row.figure: row for row in compare(worse, better)}

    assert found["page_recall"].verdict == "better"
    assert found["page_recall"].low > 0.3
    assert found["page_recall"].difference == 0.5
    assert found["total_ms"].verdict == "no difference"
    assert {row.figure: row.verdict for row in compare(better, worse)}["page_recall"] == "worse"
    assert compare(worse, better) == compare(worse, better)
    assert {row.verdict for row in compare(worse[:5], better[:5])} == {"too few questions"}


# Runs


@pytest.fixture
def documents(app_services: Services, collection: Collection) -> Services:
    for name, text in (
        ("leave.md", "# Annual leave\n\nEvery employee has 25 days of annual leave in a calendar year."),
        ("travel.md", "# Travel\n\nHotels are reimbursed up to $2,000 a month. Hand in receipts within 30 days."),
    ):
        app_services.pipeline.process_document(
            file=text.encode(),
            file_name=name,
            tenant_id="demo",
            collection=collection,
            options=UploadOptions(generate_metadata=False),
        )
    return app_services


def test_a_run_is_measured_resumed_and_is_no_question_of_a_person(documents: Services, collection: Collection) -> None:
    evaluations = documents.evaluations
    run_id = evaluations.begin(collection, profile_of(collection), GOLDEN)
    cancel, seen = Event(), []

    def stop_after_one(done: int, questions: int) -> None:
        seen.append((done, questions))
        cancel.set()

    begun = evaluations.work(collection, run_id, program_of("demo"), cancel=cancel, on_progress=stop_after_one)
    assert (begun.done, begun.finished_at, seen) == (1, None, [(1, 3)])
    first = evaluations.results("demo", run_id)

    run = evaluations.work(collection, run_id, program_of("demo"))

    assert (run.done, run.questions, run.finished_at is not None) == (3, 3, True)
    assert evaluations.results("demo", run_id)[0] == first[0]
    assert run.figures["document_recall"] == 1.0
    assert run.figures["answered_right"] == 1.0
    assert run.figures["evidence"] == 1.0
    assert run.figures["refused_right"] == 1.0
    logged = documents.analytics.question("demo", first[0].chat_log_id or uuid4())
    assert "25 days" in logged.question.answer
    today = logged.question.created_at.date()
    assert documents.analytics.totals("demo", Period(today, today), Filters()).questions == 0
    assert {row.verdict for row in evaluations.compare("demo", run_id, run_id)} == {"too few questions"}
    assert evaluations.runs("other") == []


def test_of_many_that_claim_a_run_at_once_one_does_it(documents: Services, collection: Collection) -> None:
    evaluations = documents.evaluations
    run_id = evaluations.begin(collection, profile_of(collection), GOLDEN)
    together, ends = Barrier(8), list[object]()
    taken = Event()

    def hold_first_answer(done: int, questions: int) -> None:
        taken.wait(patient(20))

    def work() -> None:
        together.wait()
        try:
            run = evaluations.work(collection, run_id, program_of("demo"), on_progress=hold_first_answer)
            ends.append(run.done)
        except InvalidInput as exc:
            ends.append(exc.message)
        # Those that are turned away come back while the one that works waits for them.
        if len(ends) == 7:
            taken.set()

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(ends, key=str) == [3, *[ALREADY_RUNNING] * 7]
    with documents.database.transaction("demo") as connection:
        asked = connection.execute("SELECT count(*) FROM chat_logs WHERE kind = 'evaluation'").fetchone()
    assert asked == (3,)


def test_a_run_is_another_processs_until_it_is_killed_and_holds_no_connection_meanwhile(
    database: Database,
    collection: Collection,
    settings: Settings,
    provider_standin: ProviderStandin,
    owner_conninfo: str,
    superuser_conninfo: str,
) -> None:
    settings = replace(settings, openai_api_key="key", openai_base_url=provider_standin.openai_url)
    parts = assemble(settings, database)
    evaluations = parts.evaluations
    provider_standin.reply("Full-time employees receive 25 vacation days [1].")
    golden = [GoldenQuestion(question=f"How many vacation days do employees receive, {name}?") for name in "abc"]
    process = None
    try:
        publish(database, parts.providers, collection)
        run_id = evaluations.begin(collection, profile_of(collection), golden)
        provider_standin.hang = True
        process = subprocess.Popen(
            [*forked_python(), "-m", "rag", "eval", "--tenant", "demo", "--resume", str(run_id)],
            cwd=PROJECT,
            env={
                **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
                "DATABASE_URL": database.conninfo, "MIGRATION_DATABASE_URL": owner_conninfo,
                "RAG_DATA_DIR": str(settings.data_dir), "RAG_WORKER": "false", "RAG_BUILTIN_EMBEDDER": "lexical",
                "OPENAI_API_KEY": "key", "OPENAI_BASE_URL": provider_standin.openai_url,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        asked_before = len(provider_standin.requests)
        while len(provider_standin.requests) == asked_before:
            assert process.poll() is None, process.stderr and process.stderr.read()
            time.sleep(0.02)

        assert evaluations.run("demo", run_id).is_worked_on
        with pytest.raises(InvalidInput, match="This test run is already under way elsewhere"):
            evaluations.work(collection, run_id, program_of("demo"))
        with psycopg.connect(superuser_conninfo) as connection:
            in_transactions = connection.execute(
                "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL "
                "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            ).fetchall()
        assert in_transactions == []

        kill(process)
        process.wait()
        provider_standin.release()
        # Until its claim runs out, nobody can know that it is dead.
        assert evaluations.run("demo", run_id).is_worked_on
        with database.transaction("demo") as connection:
            connection.execute("UPDATE evaluation_runs SET claimed_until = claimed_until - interval '1 minute'")
        assert not evaluations.run("demo", run_id).is_worked_on
        run = evaluations.work(collection, run_id, program_of("demo"))
        assert (run.done, run.finished_at is not None, run.is_worked_on) == (3, True, False)
    finally:
        if process is not None:
            process.kill()
            process.communicate()
        provider_standin.release()
        parts.pipeline.close()
        parts.providers.close()


def test_a_claim_is_renewed_and_who_lost_it_stores_nothing(
    documents: Services, collection: Collection, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluations = documents.evaluations
    run_id = evaluations.begin(collection, profile_of(collection), GOLDEN)

    def until() -> datetime:
        with database.transaction("demo") as connection:
            row = connection.execute("SELECT claimed_until FROM evaluation_runs").fetchone()
        assert row is not None
        found: datetime = row[0]
        return found

    def lose_it(done: int, questions: int) -> None:
        first = until()
        while until() == first:
            time.sleep(0.005)
        # As after a sleep of this machine: the claim ran out, and another process has the run.
        with database.transaction("demo") as connection:
            connection.execute("UPDATE evaluation_runs SET claimed_by = %s", (uuid4(),))

    monkeypatch.setattr("rag.evaluation.runs.RENEWED_AFTER", 0.0005)
    with pytest.raises(InvalidInput, match="This test run is already under way elsewhere"):
        evaluations.work(collection, run_id, program_of("demo"), on_progress=lose_it)
    run = evaluations.run("demo", run_id)
    assert (run.done, run.finished_at, run.is_worked_on) == (1, None, True)


def test_a_run_that_nothing_answers_is_interrupted_and_one_question_that_fails_is_a_result(
    database: Database, collection: Collection, settings: Settings, provider_standin: ProviderStandin
) -> None:
    settings = replace(settings, openai_api_key="key", openai_base_url=provider_standin.openai_url)
    parts = assemble(settings, database)
    provider_standin.reply("Full-time employees receive 25 vacation days [1].")
    asked = "How many vacation days do full-time employees receive, {name}?"
    golden = [GoldenQuestion(question=asked.format(name=name)) for name in "abcd"]
    evaluations = parts.evaluations
    try:
        publish(database, parts.providers, collection)
        run_id = evaluations.begin(collection, profile_of(collection), golden)
        provider_standin.accepted_key = "another"
        with pytest.raises(ProviderUnavailable, match=r"after 0 of 4 questions: .* key"):
            evaluations.work(collection, run_id, program_of("demo"))
        assert evaluations.results("demo", run_id) == []
        provider_standin.accepted_key = None
        provider_standin.fail_next(400, endpoint="chat")
        run = evaluations.work(collection, run_id, program_of("demo"))
        assert (run.done, run.finished_at is not None) == (4, True)
        assert [result.outcome for result in evaluations.results("demo", run_id)] == ["failed", *["answered"] * 3]
    finally:
        parts.pipeline.close()
        parts.providers.close()


def test_golden_questions_of_a_collection_are_kept_by_administrators(
    documents: Services, collection: Collection
) -> None:
    evaluations, admin = documents.evaluations, program_of("demo")
    evaluations.add_golden(admin, collection, GOLDEN)
    evaluations.add_golden(admin, collection, [replace(GOLDEN[0], evidence=("25",))])

    kept = evaluations.golden(admin, collection.id)

    assert [golden.evidence for golden in kept.values()] == [("25",), ("$2,000",), ()]
    removed = evaluations.remove_golden(admin, list(kept)[:2])
    assert len(evaluations.golden(admin, collection.id)) == 1
    evaluations.put_golden_back(admin, removed)
    assert evaluations.golden(admin, collection.id) == kept
    evaluations.remove_golden(admin, list(kept)[:1])
    assert len(evaluations.golden(admin, collection.id)) == 2
    manager = Identity(account_id=uuid4(), tenant_id="demo", email="m@x", name="", role=Role.MANAGER)
    with pytest.raises(NotAllowed):
        evaluations.add_golden(manager, collection, GOLDEN)
    with pytest.raises(InvalidInput, match="no test questions"):
        evaluations.begin(collection, profile_of(collection), [])


def test_the_command_compares_profiles_and_fails_below_a_bound(
    documents: Services, collection: Collection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_text("\n".join(json.dumps(golden.to_json()) for golden in GOLDEN), "utf-8")
    asked = argparse.Namespace(
        file=path, tenant="demo", collection=None, profile=["hr", "legal"], model=[], resume="", json=True,
        at_least=["document_recall=0.9"], judge=False,
    )  # fmt: skip
    asked.at_least.append("page_recall=0.5")

    status = evaluate(asked, Settings(tenant="demo"))

    printed = capsys.readouterr()
    assert status == TOO_LOW
    assert "Page recall@5 is not measured" in printed.err
    assert "Document recall@5" not in printed.err
    made = json.loads(printed.out)
    assert [run["profile"] for run in made["runs"]] == ["hr", "legal"]
    assert made["runs"][0]["figures"]["document_recall"] == 1.0
    assert {row["figure"] for row in made["comparisons"][0]} >= {"document_recall", "refused_right"}
    with pytest.raises(InvalidInput, match="no figure 'recall'"):
        evaluate(argparse.Namespace(**vars(asked) | {"at_least": ["recall=1"]}), Settings(tenant="demo"))


def test_golden_questions_are_proposed_from_feedback_gaps_and_documents(
    documents: Services, collection: Collection, database: Database
) -> None:
    evaluations, admin = documents.evaluations, program_of("demo")
    log = evaluations.ask_again(admin, collection, GOLDEN[0].question, profile_of(collection))
    with database.transaction("demo") as connection:
        connection.execute("UPDATE chat_logs SET kind = 'question' WHERE id = %s", (log,))
        connection.execute("INSERT INTO feedback (tenant_id, chat_log_id, rating) VALUES ('demo', %s, 1)", (log,))
        connection.execute(
            "UPDATE documents SET metadata = metadata || "
            '\'{"questions": ["Up to how much are hotels reimbursed?", "How many days of annual leave are there?"]}\' '
            "WHERE file_name = 'travel.md'"
        )
        moon = connection.execute(
            "INSERT INTO chat_logs (tenant_id, collection_id, question, outcome) "
            "VALUES ('demo', %s, 'Who owns the moon?', 'no_context') RETURNING id",
            (collection.id,),
        ).fetchone()
    assert moon is not None
    documents.gaps.group("demo")
    (gap,) = documents.gaps.list(admin, Period.of_days(2, until=datetime.now(UTC).date()), Filters())
    documents.gaps.dismiss(admin, gap.id, "Not about our company")

    (helpful,) = evaluations.proposals(admin, collection.id, "feedback")
    assert (helpful.question, helpful.document, helpful.pages) == (GOLDEN[0].question, "leave.md", (1,))
    (aside,) = evaluations.proposals(admin, collection.id, "gaps")
    assert (aside.question, aside.is_answerable) == ("Who owns the moon?", False)
    found = evaluations.proposals(admin, collection.id, "documents")
    shown = [(one.question, one.document, one.pages) for one in found]
    assert ("Up to how much are hotels reimbursed?", "travel.md", (1,)) in shown
    # What another document answers first is not proposed of this one.
    assert ("How many days of annual leave are there?", "travel.md") not in [row[:2] for row in shown]
    evaluations.add_golden(admin, collection, [helpful, aside, *found])
    for source in ("feedback", "gaps", "documents"):
        assert evaluations.proposals(admin, collection.id, source) == []
