"""Sources that are compared by themselves: once a time that came, also after a restart, and never two at once."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

from rag.commands.collections import interval
from rag.errors import InvalidInput, NotAllowed
from rag.ingestion.sources.runs import SourceSettings, SyncRun
from rag.services import Services, assemble
from rag.storage.database import Database, queries
from rag.types import Collection, Identity, Role
from tests.patience import patient
from tests.profiles.notices.test_board_page import everything, open_page

if TYPE_CHECKING:
    from tests.profiles.notices.boards import Board

__all__ = ["open_page"]


def kept(parts: Services, collection: Collection) -> SourceSettings:
    (source,) = parts.syncs.sources(collection)
    return source


def pass_time(database: Database, minutes: int) -> None:
    """Make everything that is scheduled as if it had been so many minutes earlier."""
    with database.transaction("demo") as connection:
        earlier = {"minutes": minutes}
        connection.execute(
            "UPDATE collection_sources SET next_sync_at = next_sync_at - make_interval(mins => %(minutes)s)", earlier
        )
        connection.execute(
            "UPDATE procrastinate_jobs SET scheduled_at = scheduled_at - make_interval(mins => %(minutes)s)", earlier
        )


def schedule_jobs(database: Database) -> int:
    with database.transaction("demo") as connection:
        query = "SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'sync_on_schedule' AND status = 'todo'"
        return int((connection.execute(query).fetchone() or [0])[0])


def wait_for_runs(parts: Services, collection: Collection, number: int) -> list[SyncRun]:
    deadline = time.monotonic() + patient(60)
    while time.monotonic() < deadline:
        runs = parts.syncs.runs("demo", collection.id)
        if len(runs) >= number and not any(run.is_open for run in runs):
            return runs
        time.sleep(0.02)
    raise AssertionError(f"No {number} runs ended: {parts.syncs.runs('demo', collection.id)}")


def test_a_source_is_compared_on_its_schedule_by_the_worker_also_after_a_restart(
    parts: Services, database: Database, notices: Collection, administrator: Identity, board: Board
) -> None:
    board.put("p1", "제목", "<p>본문</p>")
    before = datetime.now(UTC)
    parts.syncs.set_schedule(administrator, notices, 60)
    set_at = kept(parts, notices).next_sync_at
    assert set_at is not None
    assert before + timedelta(minutes=59) < set_at < datetime.now(UTC) + timedelta(minutes=61)
    parts.queue.start_worker()
    assert parts.queue.wait_until_idle(patient(60)), "a sync that is not due is no waiting work"
    assert parts.syncs.runs("demo", notices.id) == []
    parts.queue.stop_worker()

    # Three times pass while nothing runs: the next process makes up for them once, and keeps to the hour.
    pass_time(database, 3 * 60 + 5)
    restarted = assemble(parts.settings, database)
    try:
        restarted.queue.start_worker()
        (run,) = wait_for_runs(parts, notices, 1)
        assert (run.status, run.asked_by, run.added) == ("done", "schedule", 1)
        due = kept(parts, notices).next_sync_at
        assert due == set_at + timedelta(minutes=-185 + 3 * 60)
        assert schedule_jobs(database) == 1
        pass_time(database, 60)
        assert [r.unchanged for r in wait_for_runs(parts, notices, 2)] == [1, 0]
    finally:
        restarted.queue.stop_worker()
    with database.transaction("demo") as connection:
        told = connection.execute("SELECT changes FROM audit_log WHERE action LIKE 'source %%'").fetchall()
    assert [row[0].get("every_minutes") for row in told] == [[None, 60]], "when it is due next is nobody's act"


def test_one_run_is_under_way_at_a_time_and_a_lost_job_is_found_again(
    parts: Services, database: Database, notices: Collection, administrator: Identity, board: Board
) -> None:
    board.put("p1", "제목", "<p>본문</p>")
    parts.syncs.set_schedule(administrator, notices, 15)
    parts.syncs.request(administrator, notices)
    pass_time(database, 15)
    parts.syncs.run_due("demo", notices.id)
    parts.syncs.run_due("demo", notices.id)
    (run,) = parts.syncs.runs("demo", notices.id)
    assert run.asked_by == administrator.name, "who asked first waits for it, the schedule adds none"
    with database.transaction("demo") as connection:
        connection.execute("DELETE FROM procrastinate_jobs WHERE task_name = 'sync_on_schedule'")
    parts.queue.take_up_abandoned()
    assert schedule_jobs(database) == 1
    parts.syncs.set_schedule(administrator, notices, None)
    assert kept(parts, notices).every_minutes is None
    with database.transaction("demo") as connection:
        connection.execute(queries["ask_for_due_runs"], {"collection_id": notices.id, "asked_by": "schedule"})
    assert len(parts.syncs.runs("demo", notices.id)) == 1


def test_only_administrators_set_a_schedule_within_its_bounds(
    parts: Services, notices: Collection, administrator: Identity, collection: Collection
) -> None:
    with pytest.raises(NotAllowed):
        parts.syncs.set_schedule(replace(administrator, role=Role.MANAGER), notices, 60)
    for minutes in (0, 4, 44_641):
        with pytest.raises(InvalidInput, match="at least 5 minutes and at most 31 days"):
            parts.syncs.set_schedule(administrator, notices, minutes)
    with pytest.raises(InvalidInput, match="no source of kind 'folder'"):
        parts.syncs.set_schedule(administrator, notices, 60, kind="folder")
    with pytest.raises(InvalidInput, match="has no source"):
        parts.syncs.set_schedule(administrator, collection, 60)


def test_a_schedule_is_set_by_the_api(
    behind_routes: Services, caller: TestClient, notices: Collection, administrator: Identity
) -> None:
    _, secret = behind_routes.api_keys.create(administrator, "set-up", ["admin", "sync"])
    headers = {"authorization": f"Bearer {secret}"}
    body = {"collection": "Board", "everyMinutes": 360}
    answer = caller.put("/api/rag/sync/schedule", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    (source,) = answer.json()["sources"]
    assert (source["kind"], source["everyMinutes"]) == ("posts", 360)
    assert caller.get("/api/rag/sync", headers=headers).json()["sources"] == [source]
    assert caller.put("/api/rag/sync/schedule", json=body).status_code == 403, "a key for questions"
    ended = caller.put("/api/rag/sync/schedule", json={"everyMinutes": None}, headers=headers).json()
    assert ended["sources"][0]["nextSyncAt"] is None
    wrong = caller.put("/api/rag/sync/schedule", json={"everyMinutes": 1}, headers=headers)
    assert (wrong.status_code, "5 minutes" in wrong.json()["detail"]) == (422, True)


def test_a_schedule_is_set_on_the_boards_page_and_its_runs_say_so(
    open_page: object, parts: Services, database: Database, notices: Collection, board: Board
) -> None:
    board.put("p1", "제목", "<p>본문</p>")
    at = open_page(Role.ADMIN)  # type: ignore[operator]
    at.selectbox(key=f"schedule_{notices.id}_posts").select(360).run()
    assert not at.exception
    assert kept(parts, notices).every_minutes == 360
    assert "Next sync: in 6 h" in everything(at.run())
    pass_time(database, 360)
    parts.syncs.run_due("demo", notices.id)
    parts.syncs.run("demo", notices.id)
    assert "by its schedule" in everything(at.run())


def test_times_are_written_with_their_unit() -> None:
    assert [interval(given) for given in ("30m", "6h", "2d", "off")] == [30, 360, 2880, 0]
    for given in ("", "6", "h", "1w", "-1h"):
        with pytest.raises(argparse.ArgumentTypeError, match="such as 30m"):
            interval(given)
