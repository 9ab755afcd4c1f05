"""Give jobs from procrastinate to the workers in this process, and decide when a failed job is retried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from procrastinate import BaseConnector, BaseRetryStrategy, RetryDecision
from procrastinate.exceptions import UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from rag.ingestion.fairness import TenantSlots
from rag.storage.sql import queries


class KnownJobs(JobManager):
    """Fetches jobs for a worker, and remembers their ids until their results are stored.

    A finished job releases the document before the result is stored. Without the remembered id, this job would look
    like a dead process's job and be queued again.
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
            # Meanwhile another job with this name started waiting and does the rest. procrastinate asserts that
            # Postgres reports the conflicting name, which row-level security hides.
            await super().finish_job(job, Status.FAILED, delete_job=True)
        finally:
            self._leave(job)

    async def _fetch(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        return await super().fetch_job(queues, worker_id)

    def _leave(self, job: Job) -> None:
        if job.id is not None:
            self._job_ids.discard(job.id)


class FairJobs(KnownJobs):
    """Fetches jobs for a worker, within the limits in `TenantSlots`."""

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
            self._places.running[str(job.task_kwargs["tenant_id"])] += 1
        return job

    def _leave(self, job: Job) -> None:
        super()._leave(job)
        self._places.running[str(job.task_kwargs["tenant_id"])] -= 1


class RetrySchedule(BaseRetryStrategy):
    """Decides which failed jobs are retried, and when."""

    def __init__(self, wait_after: Callable[[BaseException, Mapping[str, Any]], float | None]) -> None:
        """`wait_after(error, arguments)` returns the seconds before the next attempt, or `None` for no retry."""
        self._wait_after = wait_after

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        wait = self._wait_after(exception, job.task_kwargs)
        if wait is None:
            return None
        return RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=wait))
