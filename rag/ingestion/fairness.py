"""Let tenants take turns: share reading processes and places in the queue fairly among them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from procrastinate import BaseConnector
from procrastinate.exceptions import UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from rag.storage.sql import queries


class Slots:
    """Shares a number of slots among all tenants, with one more for a tenant that has none. Thread-safe.

    The waiting tenant with the fewest slots comes first. One tenant may use them all while nobody else wants any; the
    extra slot keeps its slow files from delaying others.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._held: Counter[str] = Counter()
        self._waiting: list[tuple[object, str]] = []
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, tenant_id: str) -> Iterator[None]:
        """Hold a slot for this tenant, as soon as there is one."""
        turn = (object(), tenant_id)
        with self._changed:
            self._waiting.append(turn)
            try:
                self._changed.wait_for(lambda: self._is_next(turn))
                self._held[tenant_id] += 1
            finally:
                self._waiting.remove(turn)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._held[tenant_id] -= 1
                if not self._held[tenant_id]:
                    del self._held[tenant_id]
                self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """Return how many callers wait for a slot."""
        with self._changed:
            return len(self._waiting)

    def _is_next(self, turn: tuple[object, str]) -> bool:
        if min(self._waiting, key=lambda waiting: self._held[waiting[1]]) is not turn:
            return False
        spare = 1 if self._held[turn[1]] == 0 else 0
        return self._held.total() < self._number + spare


class TenantSlots:
    """Counts the jobs of each tenant in this process. Only for the event loop of its workers."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.taken: Counter[str] = Counter()

    def full_tenants(self, *, is_spare: bool) -> list[str] | None:
        """Return the tenants that may not begin another job; None when nobody may.

        Any tenant may take a place. When all are taken, the spare place opens for tenants that have none, so that slow
        documents of one tenant do not delay the others.
        """
        if is_spare:
            return list(+self.taken) if self.taken.total() >= self.number else None
        return [tenant_id for tenant_id, count in self.taken.items() if count >= self.number]


class KnownJobs(JobManager):
    """Hands jobs to a worker of this process and knows which it has, until how each ended is stored.

    A job whose work is done has let go of its document already: without this, it would look like one that a dead
    process left, be put back, and be gone when its own worker stores how it ended.
    """

    def __init__(self, connector: BaseConnector, job_ids: set[int]) -> None:
        super().__init__(connector)
        self._job_ids = job_ids

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        job = await self._fetch(queues, worker_id)
        if job is not None and job.id is not None:
            self._job_ids.add(job.id)
        return job

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        try:
            await super().finish_job(job, status, delete_job)
        finally:
            self._leave(job)

    async def retry_job(self, job: Job, *arguments: Any, **options: Any) -> None:
        try:
            await super().retry_job(job, *arguments, **options)
        except (UniqueViolation, AssertionError):
            # Another job of this name began to wait meanwhile, and does the rest. procrastinate asserts that Postgres
            # tells whose name that is, which row-level security keeps to itself.
            await super().finish_job(job, Status.FAILED, delete_job=True)
        finally:
            self._leave(job)

    async def _fetch(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        return await super().fetch_job(queues, worker_id)

    def _leave(self, job: Job) -> None:
        if job.id is not None:
            self._job_ids.discard(job.id)


class FairJobs(KnownJobs):
    """Hands the jobs of one queue to a worker of this process, as `TenantSlots` allows."""

    def __init__(self, connector: BaseConnector, job_ids: set[int], places: TenantSlots, *, is_spare: bool) -> None:
        super().__init__(connector, job_ids)
        self._places = places
        self._is_spare = is_spare

    async def _fetch(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        full = self._places.full_tenants(is_spare=self._is_spare)
        if full is None:
            return None
        if full:
            query = queries["fetch_job_of_others"]
            rows = await self.connector.execute_query_all_async(query, queues=queues, worker_id=worker_id, full=full)
            job = Job.from_row(rows[0]) if rows else None
        else:
            job = await super()._fetch(queues, worker_id)
        if job is not None:
            self._places.taken[str(job.task_kwargs["tenant_id"])] += 1
        return job

    def _leave(self, job: Job) -> None:
        super()._leave(job)
        self._places.taken[str(job.task_kwargs["tenant_id"])] -= 1
