from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.queue import Queue
from rag.ingestion.uploads import TAGS_WAIT
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.providers import retry
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.settings import Settings
from rag.storage.database import WORKER, Database
from rag.storage.files import FileStore
from rag.types import Collection, DocumentStatus, Identity, Question, Usage
from rag.ui.document_library import status_words
from tests import hostile
from tests.ingestion.uploads import confirmed, until
from tests.patience import patient
from tests.standins.providers import ProviderStandin

MODEL = "openai/text-embedding-3-small@1536"


@pytest.fixture
def paid_queue(
    database: Database, files: FileStore, settings: Settings, sandbox: Sandbox, provider_standin: ProviderStandin
) -> Queue:
    keyed = replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)
    provider_standin.reply(json.dumps({"summary": "s", "topics": [], "questions": []}))
    pipeline = IngestionPipeline(database, files, Providers(keyed), Ledger(database), keyed, sandbox=sandbox)
    return Queue(database, pipeline, retry_seconds=(0.05, 0.05), rescue_seconds=0.2, abandoned_seconds=0.3)


def test_a_worker_takes_a_document_all_the_way_and_stops(
    library: DocumentLibrary, queue: Queue, admin: Identity, collection: Collection
) -> None:
    queue.start_worker()
    document = confirmed(library, admin, collection, hostile.leave_policy())
    until(lambda: library.get("demo", document.id).status == DocumentStatus.COMPLETED)
    assert queue.wait_until_idle(patient(5))
    thread = queue._thread
    queue.stop_worker()
    assert thread is not None
    assert not thread.is_alive()
    assert not queue.is_running


def test_a_document_waits_once_however_often_it_is_enqueued(
    library: DocumentLibrary, queue: Queue, admin: Identity, collection: Collection, database: Database
) -> None:
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    for _ in range(3):
        queue.enqueue("demo", document.id)
    assert database.fetch_value(WORKER, "waiting_jobs") == 1


def test_what_a_dead_process_left_is_taken_up(
    library: DocumentLibrary,
    queue: Queue,
    admin: Identity,
    collection: Collection,
    superuser_conninfo: str,
) -> None:
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    with psycopg.connect(superuser_conninfo) as connection:
        # As a killed worker leaves it: begun, and nobody holds the document.
        connection.execute("UPDATE procrastinate_jobs SET status = 'doing'")
        connection.execute("UPDATE procrastinate_events SET at = at - interval '1 minute'")
    queue.start_worker()
    until(lambda: library.get("demo", document.id).status == DocumentStatus.ESTIMATED)


def test_a_document_without_a_job_is_enqueued_again(
    library: DocumentLibrary,
    queue: Queue,
    admin: Identity,
    collection: Collection,
    superuser_conninfo: str,
    database: Database,
) -> None:
    library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute("DELETE FROM procrastinate_jobs")
        connection.execute("UPDATE documents SET updated_at = now() - interval '1 hour'")
    queue.take_up_abandoned()
    assert database.fetch_value(WORKER, "waiting_jobs") == 1


@pytest.mark.parametrize(("minutes", "is_dead"), [(5, False), (11, True)])
def test_a_question_that_a_dead_process_left_is_settled_though_nobody_looks_at_it(
    minutes: int, is_dead: bool, queue: Queue, admin: Identity, collection: Collection, database: Database
) -> None:
    chat_log_id = ChatLogs(database).open(Question(text="Leave?", identity=admin, collection=collection), kind="search")
    expected = Usage(provider="openai", model="text-embedding-3-small", input_tokens=1000, is_estimated=True)
    Ledger(database).begin("demo", chat_log_id, "embedding", "request 1", expected)
    with database.transaction("demo") as connection:
        ago = timedelta(minutes=minutes)
        connection.execute("UPDATE chat_logs SET created_at = created_at - %s", (ago,))
    queue.take_up_abandoned()
    with database.transaction("demo") as connection:
        (outcome,) = connection.execute("SELECT outcome FROM chat_logs").fetchone() or ()
        rows = connection.execute("SELECT input_tokens, is_estimated, chat_log_id FROM cost_ledger").fetchall()
    assert (outcome, rows) == (("failed", [(1000, True, chat_log_id)]) if is_dead else (None, []))


def test_stopping_in_the_middle_of_reading_is_quick_and_the_next_start_goes_on(
    library: DocumentLibrary, queue: Queue, admin: Identity, collection: Collection
) -> None:
    queue.start_worker()
    document = library.upload(admin, collection, "long.pdf", hostile.long_document(120))
    until(lambda: library.get("demo", document.id).steps_done > 0)
    queue.stop_worker()
    assert library.get("demo", document.id).status == DocumentStatus.READING
    queue.start_worker()
    until(lambda: library.get("demo", document.id).status == DocumentStatus.ESTIMATED)


def test_a_provider_that_comes_back_ends_in_a_finished_document(
    library: DocumentLibrary, paid_queue: Queue, admin: Identity, provider_standin: ProviderStandin
) -> None:
    collection = library.ensure_collection("demo", "Paid", "hr", MODEL, "en")
    provider_standin.fail_next(503, times=2, endpoint="embeddings")
    paid_queue.start_worker()
    try:
        document = confirmed(library, admin, collection, hostile.leave_policy())
        until(lambda: library.get("demo", document.id).status == DocumentStatus.COMPLETED)
        assert library.get("demo", document.id).message == ""
    finally:
        paid_queue.stop_worker()


def test_a_provider_that_stays_away_fails_the_document_with_a_sentence(
    library: DocumentLibrary,
    paid_queue: Queue,
    admin: Identity,
    provider_standin: ProviderStandin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.001)
    collection = library.ensure_collection("demo", "Paid", "hr", MODEL, "en")
    provider_standin.fail_next(503, times=1000, endpoint="embeddings")
    paid_queue.start_worker()
    try:
        document = confirmed(library, admin, collection, hostile.leave_policy())
        until(lambda: library.get("demo", document.id).status == DocumentStatus.FAILED)
        assert library.get("demo", document.id).message
    finally:
        paid_queue.stop_worker()


KEY, MONEY, RATE = (401, "invalid_api_key"), (402, ""), (429, "insufficient_quota")


@pytest.mark.parametrize(
    ("refusal", "said"),
    [(KEY, "refused by OpenAI"), (MONEY, "limit at OpenAI is used up"), (RATE, "limit at OpenAI is used up")],
    ids=["the key", "the money", "the quota"],
)
def test_work_waits_for_a_key_or_for_money_as_long_as_it_takes_and_goes_on_by_itself(
    refusal: tuple[int, str],
    said: str,
    library: DocumentLibrary,
    paid_queue: Queue,
    admin: Identity,
    provider_standin: ProviderStandin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.001)
    collection = library.ensure_collection("demo", "Paid", "hr", MODEL, "en")
    status, code = refusal
    provider_standin.fail_next(status, times=100_000, code=code, endpoint="embeddings")
    paid_queue.start_worker()
    try:
        document = confirmed(library, admin, collection, hostile.leave_policy())
        until(lambda: library.get("demo", document.id).is_waiting)
        # More tries than those after which a provider that is down fails a document; each for money is four calls.
        tried = provider_standin.calls["embeddings"]
        calls = 4 if refusal == KEY else 16
        until(lambda: provider_standin.calls["embeddings"] > tried + calls, seconds=60)
        waiting = library.get("demo", document.id)
        assert waiting.status == DocumentStatus.PROCESSING
        assert waiting.message.startswith("Waiting: ")
        assert said in waiting.message
        provider_standin.reset()
        provider_standin.reply(json.dumps({"summary": "s", "topics": [], "questions": []}))
        until(lambda: library.get("demo", document.id).status == DocumentStatus.COMPLETED, seconds=60)
        done = library.get("demo", document.id)
        assert (done.is_waiting, done.message) == (False, "")
    finally:
        paid_queue.stop_worker()


@pytest.mark.parametrize(
    ("refusal", "said"),
    [(KEY, "refused by OpenAI"), (MONEY, "limit at OpenAI is used up")],
    ids=["the key", "the money"],
)
def test_tags_wait_for_a_key_or_for_money_while_the_document_is_found(
    refusal: tuple[int, str],
    said: str,
    library: DocumentLibrary,
    paid_queue: Queue,
    admin: Identity,
    provider_standin: ProviderStandin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.001)
    collection = library.ensure_collection("demo", "Paid", "hr", MODEL, "en")
    status, code = refusal
    provider_standin.fail_next(status, times=100_000, code=code, endpoint="chat")
    paid_queue.start_worker()
    try:
        document = confirmed(library, admin, collection, hostile.leave_policy())
        until(lambda: said in library.get("demo", document.id).message)
        tried = provider_standin.calls["chat"]
        until(lambda: provider_standin.calls["chat"] > tried + 4, seconds=60)
        waiting = library.get("demo", document.id)
        assert (waiting.status, waiting.is_waiting) == (DocumentStatus.COMPLETED, True)
        assert waiting.message.startswith(TAGS_WAIT)
        assert "summary" not in waiting.metadata
        assert status_words(waiting) == "Ready, but tags are missing"
        assert provider_standin.calls["embeddings"] > 0
        provider_standin.reset()
        provider_standin.reply(json.dumps({"summary": "s", "topics": [], "questions": []}))
        until(lambda: not library.get("demo", document.id).is_waiting, seconds=60)
        done = library.get("demo", document.id)
        assert (done.status, done.message, done.pending_steps) == (DocumentStatus.COMPLETED, "", [])
        assert done.metadata["summary"] == "s"
        assert provider_standin.calls["embeddings"] == 0
    finally:
        paid_queue.stop_worker()


def test_a_job_is_not_taken_for_abandoned_before_how_it_ended_is_stored(
    library: DocumentLibrary,
    paid_queue: Queue,
    admin: Identity,
    provider_standin: ProviderStandin,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    collection = library.ensure_collection("demo", "Paid", "hr", MODEL, "en")
    provider_standin.fail_next(401, times=2, endpoint="chat")
    pipeline, looked = paid_queue._pipeline, list[int]()
    note_message = pipeline.note_message
    # Nothing counts as recent, so the queue's own look would take up a job that has not claimed its document yet.
    paid_queue._abandoned_seconds, paid_queue._rescue_seconds = 0.0, 3600.0

    def look_for_abandoned_jobs(*arguments: Any, **options: Any) -> None:
        """At this moment the failed try has let go of its document, and its job is still under way."""
        note_message(*arguments, **options)
        paid_queue.take_up_abandoned()
        looked.append(1)

    monkeypatch.setattr(pipeline, "note_message", look_for_abandoned_jobs)
    paid_queue.start_worker()
    try:
        document = confirmed(library, admin, collection, hostile.leave_policy())
        until(lambda: library.get("demo", document.id).metadata.get("summary") == "s")
        assert looked
        assert paid_queue.wait_until_idle(patient(10))
    finally:
        paid_queue.stop_worker()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_document_that_waits_can_be_deleted(
    library: DocumentLibrary, paid_queue: Queue, admin: Identity, provider_standin: ProviderStandin
) -> None:
    collection = library.ensure_collection("demo", "Paid", "hr", MODEL, "en")
    provider_standin.fail_next(401, times=100_000, endpoint="embeddings")
    paid_queue.start_worker()
    try:
        document = confirmed(library, admin, collection, hostile.leave_policy())
        until(lambda: library.get("demo", document.id).is_waiting)
        library.delete(admin, document.id)
        assert paid_queue.wait_until_idle(patient(15))
        assert library.list("demo", collection_id=collection.id) == []
    finally:
        paid_queue.stop_worker()


def test_a_worker_that_starts_with_another_key_goes_on_at_once(
    library: DocumentLibrary,
    database: Database,
    files: FileStore,
    settings: Settings,
    sandbox: Sandbox,
    admin: Identity,
    provider_standin: ProviderStandin,
) -> None:
    provider_standin.accepted_key = "sk-new"
    provider_standin.reply(json.dumps({"summary": "s", "topics": [], "questions": []}))

    def worker(key: str) -> Queue:
        keyed = replace(settings, openai_api_key=key, openai_base_url=provider_standin.openai_url)
        pipeline = IngestionPipeline(database, files, Providers(keyed), Ledger(database), keyed, sandbox=sandbox)
        return Queue(database, pipeline, retry_seconds=(3600.0,), rescue_seconds=0.2, abandoned_seconds=0.3)

    collection = library.ensure_collection("demo", "Paid", "hr", MODEL, "en")
    before = worker("sk-old")
    before.start_worker()
    try:
        document = confirmed(library, admin, collection, hostile.leave_policy())
        until(lambda: library.get("demo", document.id).is_waiting)
        assert "3,600 seconds" in library.get("demo", document.id).message
    finally:
        before.stop_worker()
    after = worker("sk-new")
    after.start_worker()
    try:
        until(lambda: library.get("demo", document.id).status == DocumentStatus.COMPLETED)
    finally:
        after.stop_worker()


@pytest.mark.parametrize("how", ["garbage", "empty", "dimension"])
def test_an_answer_that_cannot_be_read_is_asked_for_again(
    how: str,
    library: DocumentLibrary,
    paid_queue: Queue,
    admin: Identity,
    provider_standin: ProviderStandin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.001)
    collection = library.ensure_collection("demo", "Paid", "hr", MODEL, "en")
    if how == "garbage":
        provider_standin.garbage_next(6, endpoint="embeddings")
    else:
        provider_standin.spoil_next(how, 6, endpoint="embeddings")
    paid_queue.start_worker()
    try:
        document = confirmed(library, admin, collection, hostile.leave_policy())
        until(lambda: library.get("demo", document.id).status == DocumentStatus.COMPLETED)
    finally:
        paid_queue.stop_worker()
