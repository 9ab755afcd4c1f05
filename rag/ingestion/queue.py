"""Queue jobs in Postgres, in the transaction which requests them.

procrastinate distributes jobs to workers on any machine. Jobs run in daemon threads: a hanging call never keeps the
application from stopping. If a process dies, the lock on the document ends and the job continues elsewhere.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool

from rag.errors import (
    DatabaseUnavailable,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    TenantSuspended,
)
from rag.ingestion.document_jobs import WAITED_FOR, JobInterrupted, JobTaken
from rag.ingestion.fairness import TenantSlots
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.publish import index_folders
from rag.ingestion.uploads import TAGS_WAIT
from rag.language import N_
from rag.providers.retry import retry_after
from rag.settings.providers import provider_name, provider_spec
from rag.storage.database import ENTER, WORKER, Database, entering, queries

# Only the worker's thread imports procrastinate; code which only adds to the queue does not need it.
if TYPE_CHECKING:
    from procrastinate import App, JobContext, PsycopgConnector
    from procrastinate.manager import JobManager

log = logging.getLogger("rag.jobs")
QUEUE = "documents"
TASK = "process_document"
#: Background work has a separate queue, and never takes a document's place.
MEANING_QUEUE = "meaning"
#: A separate queue for deliveries to other programs, which may answer slowly.
OUTGOING_QUEUE = "outgoing"
DELIVERIES_AT_ONCE = 2
#: Documents in progress in a process: while a document waits for a provider, another is read. An extra place is
#: reserved for tenants without a document in progress.
DOCUMENTS_AT_ONCE = 2
#: Waits before each retry if a provider is down or sends unusable answers; after the last retry the document fails.
#: While a key is refused or the credit is used up, the last wait repeats indefinitely.
RETRY_SECONDS = (5.0, 20.0, 60.0, 180.0)
#: Seconds between checks for jobs besides notifications, and behind a pooler in transaction mode, which forwards none.
POLLING_SECONDS = 2.0
POOLED_POLLING_SECONDS = 0.5
#: Seconds the worker waits for an unavailable database before it ends, to start again later.
OUTAGE_SECONDS = 3.0
#: Seconds between searches for work of dead processes, and seconds without a sign of life before it counts.
RESCUE_SECONDS = 5.0
ABANDONED_SECONDS = 3.0
FORGOTTEN_SECONDS = 60.0
#: Seconds between checks for daily, weekly and monthly work.
CALENDAR_SECONDS = 60.0
#: Seconds until another look at work held by another process.
ELSEWHERE_SECONDS = 5.0
#: Seconds between tries of a suspended tenant's jobs; resuming the tenant wakes them at once.
SUSPENDED_SECONDS = 300.0
#: The longest wait for work to finish when the application stops.
STOP_SECONDS = 1.5


#: Seconds between tries to remove files.
FILES_SECONDS = 60.0
#: The reason and the end of a job's wait.
WAITING = N_("Waiting: {reason}")
KEY_REFUSED = N_("Waiting: the key was refused by {provider}. A valid key has to be set on the page Set-up.")
NO_CREDIT = N_("Waiting: the credit or the request limit at {provider} is used up.")
TRIED_AGAIN = N_("The next attempt starts automatically in {seconds} seconds. Finished work is kept.")


class FilesLeft(Exception):
    """Some deleted documents' files could not be removed."""


class SendLater(Exception):
    """A receiving program refused a delivery. The delivery is sent again after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class WorkerPool(AsyncConnectionPool):
    """A connection pool for procrastinate. All transactions have the worker's database rights."""

    def __init__(self, key: bytes, conninfo: str, **options: Any) -> None:
        super().__init__(conninfo, **options)
        self._key = key

    @asynccontextmanager
    async def connection(self, timeout: float | None = None) -> AsyncIterator[AsyncConnection[Any]]:
        async with super().connection(timeout) as connection, connection.transaction():
            await connection.execute(ENTER, entering(self._key, WORKER))
            yield connection


class Queue:
    """Queues jobs from any process, and runs them in processes with a worker."""

    def __init__(
        self,
        database: Database,
        pipeline: IngestionPipeline,
        *,
        concurrency: int = DOCUMENTS_AT_ONCE,
        retry_seconds: tuple[float, ...] = RETRY_SECONDS,
        rescue_seconds: float = RESCUE_SECONDS,
        abandoned_seconds: float = ABANDONED_SECONDS,
    ) -> None:
        self._database = database
        self._pipeline = pipeline
        self._concurrency = concurrency
        self.retry_seconds = retry_seconds
        self._rescue_seconds = rescue_seconds
        self._abandoned_seconds = abandoned_seconds
        #: Attempts which count, and attempts with a refused key or used-up credit.
        self._failures: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._waits: dict[str, float] = {}
        #: Jobs of this process's worker, from start until the result is stored.
        self._job_ids: set[int] = set()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = threading.Event()
        self._wake: asyncio.Event | None = None
        #: Syncs a collection with its source; set by the sources module.
        self.on_sync: Callable[[str, UUID], object] | None = None
        #: Does the short scheduled work; set by `services`.
        self.on_every_minute: Callable[[], object] | None = None
        #: Asks the scheduled test questions, possibly for hours; set by `services`.
        self.on_evaluations: Callable[[], object] | None = None
        #: Makes and tries the scheduled backup; set if backups are automatic.
        self.on_backups: Callable[[], object] | None = None
        #: Requests a collection's scheduled syncs; set by the sources module.
        self.on_schedule: Callable[[str, UUID], object] | None = None
        #: Empties a tenant's bin of old items; set with the library.
        self.on_empty_bin: Callable[[str], object] | None = None
        #: Jobs of integrations by name: each sends something and returns the seconds until the next try, or `None`.
        self.outgoing: Mapping[str, Callable[..., float | None]] = {}

    def enqueue(self, tenant_id: str, document_id: UUID, *, connection: Connection | None = None) -> None:
        """Queue a document; with `connection`, in the caller's transaction."""
        parameters = {"tenant_id": tenant_id, "document_id": str(document_id)}
        if connection is not None:
            connection.execute(queries["enqueue"], parameters)
            return
        with self._database.transaction(tenant_id) as new_connection:
            new_connection.execute(queries["enqueue"], parameters)

    def start_worker(self) -> None:
        """Start a worker in the background, unless one is running."""
        if self.is_running:
            return
        self._stop.clear()
        self._pipeline.resume()
        self._thread = threading.Thread(target=self._work, name="documents", daemon=True)
        self._thread.start()

    def stop_worker(self) -> None:
        """Stop the worker within about two seconds. Unfinished jobs continue at the next start."""
        self._stop.set()
        loop, wake = self._loop, self._wake
        if loop is not None and wake is not None:
            with suppress(RuntimeError):  # the worker has already ended by itself
                loop.call_soon_threadsafe(wake.set)
        self._pipeline.interrupt()
        if self._thread is not None:
            self._thread.join(timeout=STOP_SECONDS + 1.5)
            self._thread = None

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def wait_until_idle(self, timeout_seconds: float = 60.0) -> bool:
        """Wait until all jobs are done. Returns `False` if jobs are left after `timeout_seconds`."""
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            if self._database.fetch_value(WORKER, "waiting_jobs") == 0:
                return True
            time.sleep(0.05)
        return False

    def take_up_abandoned(self) -> None:
        """Queue again the jobs of dead processes, and the documents and schedules which have no job."""
        with self._database.transaction(WORKER) as connection:
            quiet = {"quiet_seconds": self._abandoned_seconds, "known": list(self._job_ids)}
            connection.execute(queries["drop_abandoned"], quiet)
            connection.execute(queries["take_up_abandoned"], quiet)
            tenants = {row[0] for row in connection.execute(queries["known_tenants"]).fetchall()}
        for tenant_id in {*tenants, self._pipeline.settings.tenant}:
            with self._database.transaction(tenant_id) as connection:
                parameters = {"tenant_id": tenant_id, "quiet_seconds": FORGOTTEN_SECONDS}
                for (document_id,) in connection.execute(queries["unfinished_documents"], parameters).fetchall():
                    self.enqueue(tenant_id, document_id, connection=connection)
                for (collection_id,) in connection.execute(queries["schedules_without_job"]).fetchall():
                    connection.execute(queries["enqueue_schedule"], {"collection_id": collection_id})
            self._pipeline.settle_abandoned_calls(tenant_id)

    # In the worker's thread

    def _work(self) -> None:
        availability = self._database.availability
        is_first = True
        while not self._stop.is_set():
            availability.wait_until_up(self._stop)
            try:
                if is_first:
                    with self._database.transaction(WORKER) as connection:
                        connection.execute(queries["wake_waiting_jobs"])
                    is_first = False
                self._pipeline.sandbox.warm_up()
                asyncio.run(self._serve())
            except Exception:
                if availability.is_down:
                    log.warning("The queue waits for the database")
                else:
                    log.exception("The queue's worker ended; it starts again")
            self._stop.wait(POLLING_SECONDS)

    async def _serve(self) -> None:
        self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
        if self._stop.is_set():
            return

        from procrastinate import App, PsycopgConnector

        from rag.ingestion.jobs import FairJobs, KnownJobs

        connector = PsycopgConnector(
            conninfo=self._database.conninfo,
            min_size=1,
            max_size=4,
            # In an outage the worker ends soon, and starts again when the database answers.
            timeout=OUTAGE_SECONDS,
            reconnect_timeout=OUTAGE_SECONDS,
            kwargs={"prepare_threshold": None},
            pool_factory=partial(WorkerPool, self._database.key),
        )
        is_pooled = self._database.is_pooled
        places = TenantSlots(self._concurrency)
        self._job_ids.clear()
        # For each queue: the number of parallel jobs, and the manager which hands them out.
        served: list[tuple[str, int, JobManager]] = [
            (QUEUE, self._concurrency, FairJobs(connector, self._job_ids, places, is_spare=False)),
            (QUEUE, 1, FairJobs(connector, self._job_ids, places, is_spare=True)),
        ]
        if self.outgoing:
            served.append((OUTGOING_QUEUE, DELIVERIES_AT_ONCE, KnownJobs(connector, self._job_ids)))
        if self._pipeline.meaning is not None:
            served.append((MEANING_QUEUE, 1, KnownJobs(connector, self._job_ids)))
        async with App(connector=connector).open_async():
            workers = [
                asyncio.create_task(
                    self._app(connector, jobs).run_worker_async(
                        queues=[queue],
                        concurrency=concurrency,
                        install_signal_handlers=False,
                        # LISTEN belongs to a session, which a pooler in transaction mode does not keep.
                        listen_notify=not is_pooled,
                        fetch_job_polling_interval=POOLED_POLLING_SECONDS if is_pooled else POLLING_SECONDS,
                        shutdown_graceful_timeout=STOP_SECONDS,
                        delete_jobs="successful",
                    )
                )
                for queue, concurrency, jobs in served
            ]
            rescue = asyncio.create_task(self._rescue())
            # Separate tasks, because a slow task must not delay the others.
            due = (self.on_every_minute, self.on_evaluations, self.on_backups)
            scheduled = [asyncio.create_task(self._every_minute(work)) for work in due]
            stopped = asyncio.create_task(self._wake.wait())
            await asyncio.wait({*workers, stopped}, return_when=asyncio.FIRST_COMPLETED)
            tasks = (*workers, *scheduled, rescue, stopped)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _app(self, connector: PsycopgConnector, jobs: JobManager) -> App:
        from procrastinate import App

        from rag.ingestion.jobs import RetrySchedule

        app = App(connector=connector)
        app.job_manager = jobs
        later = RetrySchedule(self.wait_after)
        tasks: list[tuple[str, str, Callable[..., Awaitable[None]]]] = [
            (TASK, QUEUE, self._process),
            ("reembed", QUEUE, self._reembed),
            ("remove_files", QUEUE, self._remove_files),
            ("sync", QUEUE, self._sync),
            ("sync_on_schedule", QUEUE, self._sync_on_schedule),
            ("empty_bin", QUEUE, self._empty_bin),
            ("embed_meaning", MEANING_QUEUE, self._embed_meaning),
            ("index_folders", QUEUE, self._index_folders),
            *((name, OUTGOING_QUEUE, partial(self._do_outgoing, name)) for name in self.outgoing),
        ]
        for name, queue, work in tasks:
            app.task(name=name, queue=queue, retry=later, pass_context=True)(self._leaving_rest_to_waiting(work))
        return app

    def _leaving_rest_to_waiting(self, work: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        """Wrap a task. If the task fails while a job with the same name waits, the waiting job replaces the retry.

        procrastinate forbids two waiting jobs with the same name.
        """

        @functools.wraps(work)
        async def task(context: JobContext, **arguments: str) -> None:
            try:
                await work(**arguments)
            except Exception as exc:
                wait = self.wait_after(exc, arguments)
                lock = context.job.queueing_lock
                if wait is None or lock is None or not await self._postpone(lock, wait):
                    raise

        return task

    async def _postpone(self, queueing_lock: str, wait_seconds: float) -> bool:
        changed: list[int] = []

        def postpone() -> None:
            with self._database.transaction(WORKER) as connection:
                parameters = {"queueing_lock": queueing_lock, "wait_seconds": wait_seconds}
                changed.append(connection.execute(queries["postpone_job"], parameters).rowcount)

        try:
            await in_daemon_thread(postpone)
        except DatabaseUnavailable:
            return False
        return changed[0] > 0

    async def _process(self, tenant_id: str, document_id: str) -> None:
        try:
            await in_daemon_thread(lambda: self._pipeline.run(tenant_id, UUID(document_id)))
        except ProviderError as exc:
            self._failure_counter(exc)[document_id] += 1
            note = partial(self._note_failure, tenant_id, document_id, exc)
            await in_daemon_thread(note)
            if isinstance(exc, WAITED_FOR) or self._failures[document_id] <= len(self.retry_seconds):
                raise
        self._forget(document_id)

    async def _reembed(self, tenant_id: str, reembedding_id: str) -> None:
        work = self._pipeline.reembedding
        try:
            await in_daemon_thread(lambda: work.run(tenant_id, UUID(reembedding_id)))
        except ProviderError as exc:
            # Searches continue with the old vectors, so retries are unlimited. Only unusable answers are limited,
            # because each may be billed.
            self._failure_counter(exc)[reembedding_id] += 1
            is_hopeless = isinstance(exc, ProviderAnswerInvalid)
            if not is_hopeless or self._failures[reembedding_id] <= len(self.retry_seconds):
                wait = self._waits[reembedding_id] = self._seconds_to_wait(reembedding_id, exc)
                await in_daemon_thread(
                    partial(work.note_waiting, tenant_id, UUID(reembedding_id), waiting_sentence(exc, wait))
                )
                raise
            await in_daemon_thread(partial(work.fail, tenant_id, UUID(reembedding_id), exc.message))
        self._forget(reembedding_id)

    async def _sync(self, tenant_id: str, collection_id: str) -> None:
        on_sync = self.on_sync
        if on_sync is not None:
            await in_daemon_thread(lambda: on_sync(tenant_id, UUID(collection_id)))

    async def _sync_on_schedule(self, tenant_id: str, collection_id: str) -> None:
        on_schedule = self.on_schedule
        if on_schedule is not None:
            await in_daemon_thread(lambda: on_schedule(tenant_id, UUID(collection_id)))

    async def _empty_bin(self, tenant_id: str) -> None:
        on_empty_bin = self.on_empty_bin
        if on_empty_bin is not None:
            await in_daemon_thread(lambda: on_empty_bin(tenant_id))

    async def _do_outgoing(self, name: str, tenant_id: str, **arguments: str) -> None:
        await in_daemon_thread(partial(self._send, name, tenant_id, arguments))

    def _send(self, name: str, tenant_id: str, arguments: Mapping[str, str]) -> None:
        with self._pipeline.control.claimed(tenant_id, " ".join((name, *arguments.values()))):
            wait = self.outgoing[name](tenant_id, **arguments)
        if wait is not None:
            raise SendLater(wait)

    async def _index_folders(self, tenant_id: str, collection_id: str) -> None:
        await in_daemon_thread(lambda: index_folders(self._pipeline.control, tenant_id, UUID(collection_id)))

    async def _embed_meaning(self, tenant_id: str, collection_id: str) -> None:
        await in_daemon_thread(lambda: self._make_meaning(tenant_id, collection_id))

    def _make_meaning(self, tenant_id: str, collection_id: str) -> None:
        """Compute a collection's vectors for a while, and queue a new job for the rest.

        There is no retry, because a retry fails if a job with the same name is already waiting.
        """
        work = self._pipeline.meaning
        wait: float | None = 0.0
        try:
            if work is None or work.run(tenant_id, UUID(collection_id)):
                wait = None
        except JobInterrupted:
            pass
        except JobTaken:
            wait = ELSEWHERE_SECONDS
        except TenantSuspended:
            wait = SUSPENDED_SECONDS
        except ProviderError as exc:
            # Retried without end, because searches by words work meanwhile.
            log.warning("%s Vectors of meaning are made later.", exc.message)
            wait = self.retry_seconds[-1]
        if wait is not None:
            key = {"tenant_id": tenant_id, "collection_id": UUID(collection_id), "wait_seconds": wait}
            with self._database.transaction(tenant_id) as connection:
                connection.execute(queries["enqueue_meaning"], key)

    async def _remove_files(self, tenant_id: str) -> None:
        remaining: list[int] = []
        await in_daemon_thread(lambda: remaining.append(self._pipeline.remove_files(tenant_id)))
        if remaining and remaining[0]:
            raise FilesLeft

    def _seconds_to_wait(self, key: str, error: ProviderError) -> float:
        """Return the seconds before the next attempt. They grow with each failure, and are at least the provider's
        delay.
        """
        step = self.retry_seconds[min(self._failure_counter(error)[key], len(self.retry_seconds)) - 1]
        return max(step, retry_after(error))

    def _failure_counter(self, error: ProviderError) -> Counter[str]:
        """Return the counter of failed attempts. Refused keys and spent credit are counted separately from other
        errors.
        """
        return self._refusals if isinstance(error, WAITED_FOR) else self._failures

    def _forget(self, key: str) -> None:
        for counter in (self._failures, self._refusals, self._waits):
            counter.pop(key, None)

    def _note_failure(self, tenant_id: str, document_id: str, error: ProviderError) -> None:
        is_waiting = isinstance(error, WAITED_FOR)
        if not is_waiting and self._failures[document_id] > len(self.retry_seconds):
            self._pipeline.mark_failed(tenant_id, UUID(document_id), error.message)
            return
        wait = self._waits[document_id] = self._seconds_to_wait(document_id, error)
        sentence = waiting_sentence(error, wait)
        self._pipeline.note_message(tenant_id, UUID(document_id), sentence, is_waiting=is_waiting)

    async def _rescue(self) -> None:
        while True:
            if self._pipeline.meaning is not None:
                self._pipeline.meaning.rest_when_idle()
            try:
                await in_daemon_thread(self.take_up_abandoned)
            except DatabaseUnavailable:
                log.warning("The database does not answer; looking for abandoned work later")
            except Exception:  # another process may have taken it up at the same moment
                log.exception("Abandoned work could not be taken up; looking again later")
            await asyncio.sleep(self._rescue_seconds)

    async def _every_minute(self, work: Callable[[], object] | None) -> None:
        while work is not None:
            await asyncio.sleep(CALENDAR_SECONDS)
            try:
                await in_daemon_thread(work)
            except DatabaseUnavailable:
                log.warning("The database does not answer; what is due is done later")
            except Exception:
                log.exception("What is due could not be done; looking again later")

    def wait_after(self, error: BaseException, arguments: Mapping[str, Any]) -> float | None:
        """Return the seconds after which a failed job is retried, or `None` for never."""
        if isinstance(error, (JobInterrupted, asyncio.CancelledError)):
            return 0.0
        if isinstance(error, (JobTaken, DatabaseUnavailable)):
            return ELSEWHERE_SECONDS
        if isinstance(error, TenantSuspended):
            return SUSPENDED_SECONDS
        if isinstance(error, SendLater):
            return error.seconds
        if isinstance(error, FilesLeft):
            return FILES_SECONDS
        if isinstance(error, ProviderError):
            key = str(arguments.get("document_id") or arguments.get("reembedding_id"))
            return self._waits.get(key, self.retry_seconds[-1])
        return None


def waiting_sentence(error: ProviderError, wait: float) -> str:
    """Return a sentence for the documents page which says why a job waits and until when."""
    again = TRIED_AGAIN.format(seconds=f"{wait:,.0f}")
    provider = str(error.details.get("provider") or "")
    if not isinstance(error, WAITED_FOR):
        return f"{error} {again}"
    if not provider_spec(provider).key_variable:
        waiting = WAITING.format(reason=error)
    else:
        refused = KEY_REFUSED if isinstance(error, ProviderKeyRejected) else NO_CREDIT
        waiting = refused.format(provider=provider_name(provider))
    return f"{f'{TAGS_WAIT} ' if error.details.get('is_searchable') else ''}{waiting} {again}"


async def in_daemon_thread(function: Callable[[], object]) -> None:
    """Run a blocking function in a daemon thread, and wait for the result."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def work() -> None:
        error: BaseException | None = None
        try:
            function()
        except BaseException as exc:
            error = exc
        with suppress(RuntimeError):  # the loop is closed: the application has stopped
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=work, name="document", daemon=True).start()
    await done
