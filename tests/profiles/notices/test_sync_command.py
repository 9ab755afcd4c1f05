"""`python -m rag sync` as whoever runs the product types it, and killed in the middle of a sync."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from rag.services import Services
from rag.storage.database import Database
from rag.types import Collection, DocumentStatus, Identity
from tests import hostile
from tests.forked import forked_python, kill
from tests.patience import patient
from tests.profiles.notices.test_schedules import pass_time, wait_for_runs
from tests.standins.github import GitHubStandin
from tests.standins.providers import ProviderStandin

if TYPE_CHECKING:
    from tests.profiles.notices.boards import Board

PROJECT = Path(__file__).resolve().parents[3]
Start = Callable[..., "subprocess.Popen[str]"]
MAPPED = """
CREATE SCHEMA intranet;
CREATE TABLE intranet.notices (nr integer PRIMARY KEY, subject text, body text, changed timestamptz DEFAULT now(),
                               board integer);
CREATE TABLE intranet.boards (id integer PRIMARY KEY, label text, short text);
INSERT INTO intranet.boards VALUES (7, 'MD 공지', 'notice-md');
INSERT INTO intranet.notices (nr, subject, body, board) VALUES (1, '주차 안내', '<p>지하 2층</p>', 7),
                                                              (2, '휴가 안내', '<p>연차 25일</p>', NULL);
"""


@pytest.fixture
def github() -> Iterator[GitHubStandin]:
    pytest.importorskip("rag.integrations.sources.github")
    with GitHubStandin() as running:
        yield running


@pytest.fixture
def start(
    parts: Services,
    database: Database,
    owner_conninfo: str,
    superuser_conninfo: str,
    provider_standin: ProviderStandin,
    github: GitHubStandin,
) -> Start:
    environment = {
        **os.environ,
        "DATABASE_URL": database.conninfo,
        "MIGRATION_DATABASE_URL": owner_conninfo,
        "RAG_DATA_DIR": str(parts.settings.data_dir),
        "OPENAI_API_KEY": "key",
        "OPENAI_BASE_URL": provider_standin.openai_url,
        "GEMINI_API_KEY": "key",
        "GEMINI_BASE_URL": provider_standin.gemini_url,
        "GITHUB_API_URL": github.url,
    }

    def started(*arguments: str, **more: str) -> subprocess.Popen[str]:
        command = [*forked_python(), "-m", "rag", "sync", "--tenant", "demo", "--collection", "Board", *arguments]
        return subprocess.Popen(
            command, env={**environment, **more}, cwd=PROJECT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    return started


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """The exit code with what was said."""
    said, complained = process.communicate(timeout=patient(120))
    return process.returncode, said, complained


def titles(parts: Services, collection: Collection) -> set[str]:
    found = parts.documents.list("demo", collection_id=collection.id)
    assert {document.status for document in found} <= {DocumentStatus.COMPLETED}
    return {document.title for document in found}


def test_a_table_elsewhere_with_columns_of_its_own_is_followed(
    start: Start, parts: Services, notices: Collection, superuser_conninfo: str
) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute(MAPPED)
    names = ("id=nr", "title=subject", "content=body", "updated_at=changed", "category_id=board",
             "categories.table=intranet.boards", "categories.name=label", "categories.slug=short")  # fmt: skip
    columns = [argument for name in names for argument in ("--column", name)]
    elsewhere = {"RAG_POSTS_DATABASE_URL": superuser_conninfo}
    code, said, complained = ended(start("--table", "intranet.notices", *columns, **elsewhere))
    assert code == 0, complained
    assert "Board: 2 added, 0 updated, 0 unchanged, 0 removed, 0 failed" in said
    assert "Cost: $" in said
    assert titles(parts, notices) == {"주차 안내", "휴가 안내"}
    slugs = {d.title: d.metadata["categorySlug"] for d in parts.documents.list("demo", collection_id=notices.id)}
    assert slugs == {"주차 안내": "notice-md", "휴가 안내": "general"}
    # The mapping is kept: from now on the collection's name is enough.
    code, said, complained = ended(start(**elsewhere))
    assert (code, "0 added, 0 updated, 2 unchanged" in said) == (0, True), complained


def test_columns_that_cannot_be_are_named(start: Start, notices: Collection) -> None:
    code, _, complained = ended(start("--table", "hof_posts", "--column", "subtitle=x"))
    assert (code, "subtitle" in complained) == (1, True)
    code, _, complained = ended(start("--table", "hof_posts", "--column", "title"))
    assert (code, "FIELD=NAME" in complained) == (1, True)


def test_a_schedule_set_by_command_is_kept_by_the_worker_until_it_is_taken_back(
    start: Start, parts: Services, notices: Collection, board: Board, database: Database
) -> None:
    board.put("p1", "제목 p1", "<p>본문</p>")
    code, said, complained = ended(start("--every", "30m"))
    assert code == 0, complained
    assert "Board: 1 added" in said
    assert re.search(r"Synced automatically \(posts\): every 30 minutes, next at \d{4}-\d\d-\d\d \d\d:\d\d", said)
    assert [source.every_minutes for source in parts.syncs.sources(notices)] == [30]
    board.put("p2", "제목 p2", "<p>본문</p>")
    parts.queue.start_worker()
    assert parts.queue.wait_until_idle(patient(60))
    assert titles(parts, notices) == {"제목 p1"}, "it is not due yet"
    pass_time(database, 31)
    latest = wait_for_runs(parts, notices, 2)[0]
    assert (latest.asked_by, latest.added) == ("schedule", 1)
    assert parts.queue.wait_until_idle(patient(60))
    parts.queue.stop_worker()
    assert titles(parts, notices) == {"제목 p1", "제목 p2"}
    code, said, complained = ended(start("--every", "off"))
    assert (code, "Synced automatically" in said) == (0, False), complained
    assert [source.every_minutes for source in parts.syncs.sources(notices)] == [None]
    for wrong, why in (("5s", "not a time such as 30m"), ("1m", "minutes")):
        code, _, complained = ended(start("--every", wrong))
        assert code != 0
        assert why in complained


def test_a_folder_and_an_account_are_followed_by_name(
    start: Start, parts: Services, notices: Collection, administrator: Identity, tmp_path: Path
) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "leave.pdf").write_bytes(hostile.leave_policy())
    code, said, complained = ended(start("--folder", str(tmp_path / "papers")))
    assert (code, "1 added" in said) == (0, True), complained
    assert parts.syncs.runs("demo", notices.id) == [], "a folder that only this command may read"
    allowed = {"RAG_SYNC_FOLDERS": str(tmp_path / "papers")}
    code, said, complained = ended(start("--folder", str(tmp_path / "papers"), **allowed))
    assert (code, "1 unchanged" in said) == (0, True), complained
    (run,) = [run for run in parts.syncs.runs("demo", notices.id) if run.kind == "folder"]
    assert (run.status, run.unchanged) == ("done", 1), "the page says when it was synced"
    parts.syncs.drop_source(administrator, notices, "folder")
    code, said, complained = ended(start("--github", "acme"))
    assert code == 0, complained
    assert {"planner", "empty"} < titles(parts, notices)


def test_a_sync_that_is_killed_and_started_again_ends_and_is_paid_like_one_that_was_not(
    start: Start,
    parts: Services,
    notices: Collection,
    administrator: Identity,
    board: Board,
    database: Database,
    provider_standin: ProviderStandin,
) -> None:
    keys = [f"p{number:02}" for number in range(24)]
    for number, key in enumerate(keys):
        board.put(key, f"제목 {key}", f"<p>본문 {key}</p>")
        if number % 4 == 0:
            board.attach(key, "안내.txt", f"{number}번 안내문".encode())

    def finish(collection: Collection) -> None:
        for document in parts.documents.list("demo", collection_id=collection.id):
            if document.status is not DocumentStatus.COMPLETED:
                parts.pipeline.run("demo", document.id)

    def bills(collection: Collection) -> list[Any]:
        """What each post was billed for what."""
        with database.transaction("demo") as connection:
            return connection.execute(
                "SELECT d.metadata ->> 'postId', l.operation, count(*), sum(l.input_tokens), sum(l.output_tokens), "
                "sum(l.cost) FROM cost_ledger l JOIN documents d ON d.id = l.document_id "
                "WHERE d.collection_id = %s GROUP BY 1, 2 ORDER BY 1, 2",
                (collection.id,),
            ).fetchall()

    calm = parts.documents.create_collection(administrator, "Undisturbed", "notices", language="ko")
    parts.syncs.sync_now(administrator, calm)
    finish(calm)
    billed_calm = dict(provider_standin.tokens)
    provider_standin.reset()

    def done(query: str) -> int:
        with database.transaction("demo") as connection:
            found: Any = connection.execute(query, (notices.id,)).fetchone()
        return int(found[0])

    # Once while posts are stored, once while they are described and embedded.
    provider_standin.delay_seconds = 0.02
    for query, enough in (
        ("SELECT count(*) FROM sync_items WHERE collection_id = %s", 5),
        ("SELECT count(*) FROM cost_ledger l JOIN documents d ON d.id = l.document_id WHERE d.collection_id = %s", 4),
    ):
        process = start()
        deadline = time.monotonic() + patient(60)
        while done(query) < enough and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        kill(process)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    assert 4 <= len(bills(notices)) < len(bills(calm))
    # What the dead process had begun to process is the queue's: it left word with each post.
    assert parts.syncs.sync_now(administrator, notices).failed == 0
    finish(notices)
    assert bills(notices) == bills(calm)
    # By the provider's own count: what was answered to the dead process is known to it by its key.
    assert dict(provider_standin.tokens) == billed_calm

    board.put("p03", "제목 p03", "<p>neu</p>")
    board.remove("p04")
    assert parts.syncs.sync_now(administrator, notices).removed == 1
    finish(notices)
    rows = board.connection.execute("SELECT title, regexp_replace(content, '<[^>]+>', '', 'g') FROM hof_posts")
    found = {
        (document.title, parts.documents.chunks("demo", document.id)[0].content.partition("\n")[0])
        for document in parts.documents.list("demo", collection_id=notices.id)
    }
    assert found == set(rows.fetchall())
    assert titles(parts, notices) == {f"제목 {key}" for key in keys if key != "p04"}
    calls = provider_standin.calls.total()
    assert parts.syncs.sync_now(administrator, notices).unchanged == 23
    finish(notices)
    assert provider_standin.calls.total() == calls
