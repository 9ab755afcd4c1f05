"""Whose document is next: tenants take turns, however many documents one of them queued first."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from uuid import UUID, uuid4

import psycopg
import pytest
from procrastinate import App, PsycopgConnector
from procrastinate.jobs import Job

from rag.ingestion.jobs import KnownJobs
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.queue import Queue, WorkerPool
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from tests.ingestion.uploads import until
from tests.patience import patient


class Recorder(IngestionPipeline):
    """Notes whose documents it is given, in their order. Those of `held` tenants last until they are let go."""

    held: frozenset[str] = frozenset()

    def watch(self) -> None:
        self.begun: list[str] = []
        self.done: list[str] = []
        self.let_go = threading.Event()

    def run(self, tenant_id: str, document_id: UUID) -> None:
        self.begun.append(tenant_id)
        if tenant_id in self.held:
            self.let_go.wait(patient(60))
        self.done.append(tenant_id)


@pytest.fixture
def recorder(database: Database, files: FileStore, settings: Settings, sandbox: Sandbox) -> Recorder:
    made = Recorder(database, files, Providers(settings), Ledger(database), settings, sandbox=sandbox)
    made.watch()
    return made


@pytest.fixture
def one_at_a_time(database: Database, recorder: Recorder) -> Iterator[Queue]:
    queue = Queue(database, recorder, concurrency=1)
    yield queue
    recorder.let_go.set()
    queue.stop_worker()


def test_one_document_waits_for_no_other_tenants_fifty(one_at_a_time: Queue, recorder: Recorder) -> None:
    for _ in range(50):
        one_at_a_time.enqueue("demo", uuid4())
    one_at_a_time.enqueue("other", uuid4())
    one_at_a_time.start_worker()
    assert one_at_a_time.wait_until_idle(patient(60))
    assert len(recorder.done) == 51
    assert recorder.done.index("other") <= 2


def test_who_comes_while_others_are_worked_on_takes_every_second_turn(one_at_a_time: Queue, recorder: Recorder) -> None:
    recorder.held = frozenset(["demo"])
    for _ in range(20):
        one_at_a_time.enqueue("demo", uuid4())
    one_at_a_time.start_worker()
    until(lambda: recorder.begun == ["demo"])
    for _ in range(5):
        one_at_a_time.enqueue("other", uuid4())
    recorder.let_go.set()
    assert one_at_a_time.wait_until_idle(patient(60))
    assert recorder.done[:12].count("other") == 5
    # Its own documents stay in their order, and none is forgotten.
    assert recorder.done.count("demo") == 20


def test_slow_documents_of_one_tenant_leave_a_place_to_the_others(database: Database, recorder: Recorder) -> None:
    recorder.held = frozenset(["demo"])
    queue = Queue(database, recorder, concurrency=2)
    for _ in range(4):
        queue.enqueue("demo", uuid4())
    queue.start_worker()
    try:
        until(lambda: recorder.begun == ["demo"] * 2)
        for _ in range(3):
            queue.enqueue("other", uuid4())
        until(lambda: recorder.done == ["other"] * 3)
        # The place for others is not taken by a third document of the tenant that has two.
        assert recorder.begun.count("demo") == 2
    finally:
        recorder.let_go.set()
        assert queue.wait_until_idle(patient(60))
        queue.stop_worker()
    assert recorder.done.count("demo") == 4


def test_who_began_in_the_place_for_others_takes_no_more_than_the_rest(database: Database, recorder: Recorder) -> None:
    recorder.held = frozenset(["demo", "other", "third"])
    with database.transaction("third") as connection:
        connection.execute("INSERT INTO tenants (id, name) VALUES ('third', 'Third')")
    queue = Queue(database, recorder, concurrency=1)
    queue.enqueue("demo", uuid4())
    queue.start_worker()
    try:
        until(lambda: recorder.begun == ["demo"])
        for _ in range(3):
            queue.enqueue("other", uuid4())
        until(lambda: recorder.begun == ["demo", "other"])
        # The place of `demo` is free again, and `other` has one already: it is left to `third`.
        recorder.held = frozenset(["other", "third"])
        queue.enqueue("third", uuid4())
        recorder.let_go, old = threading.Event(), recorder.let_go
        old.set()
        until(lambda: "third" in recorder.begun)
    finally:
        recorder.let_go.set()
        assert queue.wait_until_idle(patient(60))
        queue.stop_worker()
    assert sorted(recorder.done) == ["demo", *["other"] * 3, "third"]


def test_a_job_that_waits_for_another_day_costs_its_tenant_no_turn(
    one_at_a_time: Queue, recorder: Recorder, superuser_conninfo: str
) -> None:
    for _ in range(30):
        one_at_a_time.enqueue("demo", uuid4())
    with psycopg.connect(superuser_conninfo) as connection:
        # All but the last are done; that one waits for a key.
        connection.execute("DELETE FROM procrastinate_jobs WHERE priority > -29")
        connection.execute("UPDATE procrastinate_jobs SET task_name = 'remove_files', lock = 'files demo', "
                           "scheduled_at = now() + interval '1 day'")  # fmt: skip
    for _ in range(10):
        one_at_a_time.enqueue("other", uuid4())
    one_at_a_time.enqueue("demo", uuid4())
    one_at_a_time.start_worker()
    until(lambda: len(recorder.done) == 11)
    assert recorder.done.index("demo") <= 3


def test_a_failed_job_leaves_the_rest_to_one_of_its_name_that_began_to_wait_meanwhile(
    database: Database, superuser_conninfo: str
) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        for _ in range(2):
            connection.execute(
                "INSERT INTO procrastinate_jobs (queue_name, task_name, queueing_lock, args, status) "
                "VALUES ('documents', 'process_document', 'a name', '{}', 'doing')"
            )
        connection.execute(
            "UPDATE procrastinate_jobs SET status = 'todo' WHERE id = (SELECT max(id) FROM procrastinate_jobs)"
        )

    async def fail_the_running_one() -> set[int]:
        connector = PsycopgConnector(conninfo=database.conninfo, pool_factory=partial(WorkerPool, database.key))
        async with App(connector=connector).open_async():
            (row,) = await connector.execute_query_all_async("SELECT id FROM procrastinate_jobs WHERE status = 'doing'")
            known = {int(row["id"])}
            job = Job(
                id=int(row["id"]), queue="documents", lock=None, queueing_lock="a name", task_name="process_document"
            )
            await KnownJobs(connector, known).retry_job(job, retry_at=datetime.now(UTC))
            return known

    assert asyncio.run(fail_the_running_one()) == set()
    with psycopg.connect(superuser_conninfo) as connection:
        assert connection.execute("SELECT status FROM procrastinate_jobs").fetchall() == [("todo",)]
