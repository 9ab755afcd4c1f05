"""Reads at standbys: a primary and two servers that replay its log, made of the built-in server's own programs."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from uuid import UUID

import psycopg
import pytest
from prometheus_client import REGISTRY
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import class_row

from rag.api.health import check_rag_health
from rag.errors import DatabaseUnavailable, NotFound
from rag.integrations.operations.standbys.standbys import Standbys, connect, open_standbys
from rag.providers.builtin_embedders import LexicalEmbedder
from rag.records.conversations import Conversations, Feedback
from rag.retrieval.hybrid_search import SearchQuery, keyword_search
from rag.services import assemble
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import EmbeddedServer, start_server
from rag.storage.migrations import migrate
from rag.types import Collection, Identity, Role
from tests.conftest import fast_folder
from tests.patience import patient
from tests.retrieval.shelf import Shelf
from tests.standins.standby import StandbyServer, as_url, make_standby

ADD_COLLECTION = "INSERT INTO collections (tenant_id, name, embedding_model) VALUES ('demo', %s, 'm')"


def wait_for(happened: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + patient(30)
    while not happened():
        assert time.monotonic() < until, what
        time.sleep(0.02)


@dataclass
class World:
    primary: Database
    standbys: list[StandbyServer]
    server: EmbeddedServer

    def kill_primary(self) -> None:
        """Kill it as a lost machine would be, with nobody to start it again."""
        assert self.server.supervisor is not None
        self.server.supervisor.stop()
        pid_file = self.server.folder / "postgres" / "postmaster.pid"
        os.kill(int(pid_file.read_text("utf-8").splitlines()[0]), signal.SIGKILL)

    def wait_until_read(self, *numbers: int) -> None:
        """Wait until exactly these standbys answer."""
        found = self.primary.standbys
        assert isinstance(found, Standbys)

        def is_so() -> bool:
            found.look()
            return {number for number, standby in enumerate(found.all) if standby.is_usable} == set(numbers)

        wait_for(is_so, f"{[(standby.trouble, standby.lag_seconds) for standby in found.all]}")

    def counts(self) -> list[tuple[int, int]]:
        assert isinstance(self.primary.standbys, Standbys)
        return [(standby.reads, standby.behind) for standby in self.primary.standbys.all]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="hr-tests-", dir=fast_folder(), ignore_cleanup_errors=True) as name:
        folder = Path(name)
        running = start_server(folder / "primary")
        migrate(running.owner)
        with psycopg.connect(running.superuser, dbname="rag", autocommit=True) as connection:
            connection.execute("INSERT INTO tenants (id, name) VALUES ('demo', 'Demo'), ('other', 'Other')")
        standbys = [
            make_standby(folder / f"standby{number}", running.superuser, running.application) for number in "12"
        ]
        primary = Database(running.application, sealing_key(running.owner))
        primary.open()
        addresses = ",".join(as_url(standby.application) for standby in standbys)
        opened = open_standbys(Settings(integration_variables={"DATABASE_READ_URLS": addresses}), primary)
        assert opened is not None
        primary.standbys = opened
        yield World(primary, standbys, running)
        primary.close()
        for standby in standbys:
            with suppress(subprocess.CalledProcessError):
                standby.stop()
        running.stop()


@pytest.fixture
def shelf(world: World) -> Iterator[Shelf]:
    with (
        world.primary.transaction("demo") as connection,
        connection.cursor(row_factory=class_row(Collection)) as cursor,
    ):
        collection = cursor.execute(
            "INSERT INTO collections (tenant_id, name, embedding_model) VALUES ('demo', 'HR', 'builtin/lexical@1536') "
            "RETURNING id, tenant_id, name, profile, embedding_model, language, overrides, created_at"
        ).fetchone()
    assert collection is not None
    yield Shelf(world.primary, collection, LexicalEmbedder())
    with world.primary.transaction("demo") as connection:
        connection.execute("DELETE FROM documents")
        connection.execute("DELETE FROM collections")


def found(shelf: Shelf, text: str) -> list[str]:
    query = SearchQuery(text=text, language="en")
    return sorted({hit.title for hit in keyword_search(shelf.database, query, scope=shelf.scope, limit=20)})


def test_searches_take_turns_at_the_standbys_and_see_what_was_published(world: World, shelf: Shelf) -> None:
    world.wait_until_read(0, 1)
    shelf.add("Parking", ["bicycles are parked behind the house"])
    (before, _), (others_before, _) = world.counts()
    wait_for(lambda: world.counts()[0][0] >= before + 3 or found(shelf, "bicycles") != ["Parking"], "no standby read")
    assert found(shelf, "bicycles") == ["Parking"]
    assert world.counts()[1][0] > others_before


def test_what_a_standby_has_not_replayed_is_read_at_the_primary(world: World, shelf: Shelf) -> None:
    world.wait_until_read(0, 1)
    kept, gone = shelf.add("Kept", ["canteen hours"]), shelf.add("Gone", ["canteen prices"])
    for standby in world.standbys:
        standby.execute("SELECT pg_wal_replay_pause()")
    try:
        before = world.counts()
        shelf.remove(gone)
        assert found(shelf, "canteen") == ["Kept"]
        shelf.add("New", ["canteen menu"])
        assert found(shelf, "canteen") == ["Kept", "New"]
        with world.primary.transaction("demo") as connection:
            connection.execute("UPDATE documents SET title = 'Renamed' WHERE id = %s", (kept,))
        assert found(shelf, "canteen") == ["New", "Renamed"]
        with world.primary.transaction("demo") as connection:
            connection.execute(
                "UPDATE documents SET status = 'binned', binned_at = now(), status_before = 'completed' WHERE id = %s",
                (kept,),
            )
        assert found(shelf, "canteen") == ["New"]
        with world.primary.transaction("demo") as connection:
            connection.execute('UPDATE document_chunks SET metadata = \'{"topic": "food"}\'')
        assert [reads for reads, _ in world.counts()] == [reads for reads, _ in before]
        assert sum(behind for _, behind in world.counts()) == sum(behind for _, behind in before) + 4
        # Another tenant, of which nothing has changed, is read there all the same.
        assert world.primary.read("other", lambda pipeline: pipeline.execute("SELECT 1").fetchone()) == (1,)
        assert sum(reads for reads, _ in world.counts()) == sum(reads for reads, _ in before) + 1
    finally:
        for standby in world.standbys:
            standby.execute("SELECT pg_wal_replay_resume()")


def test_histories_are_read_at_standbys_that_have_what_their_owner_did(world: World, shelf: Shelf) -> None:
    """Each change of a person's own is seen at once; others' changes keep nobody from a standby."""
    world.wait_until_read(0, 1)
    chats = Conversations(world.primary)
    with world.primary.transaction("demo") as connection:
        ids = [
            connection.execute(
                "INSERT INTO accounts (tenant_id, email, role, password_hash) VALUES ('demo', %s, 'employee', '-') "
                "RETURNING id",
                (f"{name}@example.com",),
            ).fetchone()
            for name in ("one", "two")
        ]
    one, two = (
        Identity(account_id=row[0], tenant_id="demo", email="", name="", role=Role.EMPLOYEE) for row in ids if row
    )
    first, gone = (chats.create(one, shelf.collection.id, title) for title in ("First", "Gone"))
    theirs = chats.create(two, shelf.collection.id, "Theirs")

    def behind_of(read: Callable[[], object]) -> int:
        before = sum(behind for _, behind in world.counts())
        read()
        return sum(behind for _, behind in world.counts()) - before

    def write(statement: str, **values: object) -> UUID:
        with world.primary.transaction(one) as connection:
            row = connection.execute(statement.encode(), {"id": first.id, "one": one.account_id, **values}).fetchone()
        return UUID(str(row[0])) if row else first.id

    log = write(
        "INSERT INTO chat_logs (tenant_id, account_id, conversation_id, collection_id, question) "
        "VALUES ('demo', %(one)s, %(id)s, %(where)s, 'q') RETURNING id",
        where=shelf.collection.id,
    )
    answer = write(
        "INSERT INTO messages (tenant_id, conversation_id, role, content, state, chat_log_id) "
        "VALUES ('demo', %(id)s, 'assistant', '', 'streaming', %(log)s) RETURNING id",
        log=log,
    )
    read = {
        "list": lambda: chats.list(one),
        "page": lambda: chats.page(one, first.id, last=5),
        "messages": lambda: chats.messages(one, first.id),
    }
    wait_for(lambda: not any(behind_of(call) for call in read.values()), "no standby has replayed what was written")
    for standby in world.standbys:
        standby.execute("SELECT pg_wal_replay_pause()")
    try:
        # What grows while it is written is followed elsewhere.
        write("UPDATE messages SET content = 'Twenty' WHERE id = %(answer)s RETURNING id", answer=answer)
        assert [behind_of(call) for call in read.values()] == [0, 0, 0]
        chats.rename(two, theirs.id, "Renamed")
        assert [behind_of(call) for call in read.values()] == [0, 0, 0]
        assert [found.title for found in chats.list(two)] == ["Renamed"]
        done = "UPDATE messages SET content = 'Twenty-five.', state = 'complete' WHERE id = %(answer)s RETURNING id"
        write(done, answer=answer)
        assert chats.messages(one, first.id)[0].content == "Twenty-five."
        write("UPDATE chat_logs SET outcome = 'answered' WHERE id = %(log)s RETURNING id", log=log)
        assert chats.page(one, first.id, last=5).messages[0].outcome == "answered"
        Feedback(world.primary).rate(one, answer, 1)
        assert chats.messages(one, first.id)[0].rating == 1
        chats.pin(one, first.id, is_pinned=True)
        chats.delete(one, gone.id)
        assert [(found.title, found.pinned_at is not None) for found in chats.list(one)] == [("First", True)]
        assert [behind_of(call) for call in read.values()] == [1, 1, 1]
        chats.delete(one, first.id)
        with pytest.raises(NotFound):
            chats.messages(one, first.id)
    finally:
        for standby in world.standbys:
            standby.execute("SELECT pg_wal_replay_resume()")
        chats.delete(two, theirs.id)


def test_changes_count_once_a_transaction_and_progress_counts_not_at_all(world: World, shelf: Shelf) -> None:
    def changes() -> int:
        with world.primary.transaction("demo") as connection:
            row = connection.execute("SELECT changes FROM tenant_changes").fetchone()
        return int(row[0]) if row else 0

    begun = changes()
    waiting = shelf.add("Waiting", ["being read"], status="processing")
    with world.primary.transaction("demo") as connection:
        connection.execute("UPDATE documents SET steps_done = 3, message = 'page 3' WHERE id = %s", (waiting,))
    assert changes() == begun
    for name in "ab":
        shelf.add(name, ["text"])
    assert changes() == begun + 2
    with world.primary.transaction("demo") as connection:
        connection.execute("UPDATE documents SET steps_done = 4")
    assert changes() == begun + 2
    with world.primary.transaction("demo") as connection:
        connection.execute("UPDATE documents SET title = title || '!'")
        connection.execute("DELETE FROM documents WHERE status = 'completed'")
    assert changes() == begun + 3


def test_nothing_stale_is_found_beside_deletes(world: World, shelf: Shelf) -> None:
    """A reader starts a search after each acknowledged change; the replay is slow now and then."""
    world.wait_until_read(0, 1)
    stop = Event()

    def hold_up() -> None:
        while not stop.is_set():
            for standby in world.standbys:
                standby.execute("SELECT pg_wal_replay_pause()")
                stop.wait(0.03)
                standby.execute("SELECT pg_wal_replay_resume()")
            stop.wait(0.05)

    before = world.counts()
    slow = Thread(target=hold_up)
    slow.start()
    try:
        for _ in range(40):
            added = shelf.add("Notice", ["the notice of today"])
            assert found(shelf, "notice") == ["Notice"]
            shelf.remove(added)
            for _ in range(4):
                assert found(shelf, "notice") == []
    finally:
        stop.set()
        slow.join()
    assert sum(reads for reads, _ in world.counts()) > sum(reads for reads, _ in before)
    assert sum(behind for _, behind in world.counts()) > sum(behind for _, behind in before)


def test_a_standby_that_dies_is_left_out_said_and_comes_back(world: World, shelf: Shelf, tmp_path: Path) -> None:
    world.wait_until_read(0, 1)
    shelf.add("Parking", ["bicycles"])
    services = assemble(Settings(data_dir=tmp_path, tesseract="none", builtin_embedder="lexical"), world.primary)
    world.standbys[0].stop()
    for _ in range(6):  # its connections break under the first of them
        assert found(shelf, "bicycles") == ["Parking"]
    world.wait_until_read(1)
    checks = [check for check in check_rag_health(services).checks if check.name.startswith("Standby")]
    assert [check.state for check in checks] == ["warning", "ok"]
    assert "This standby server is not used" in checks[0].sentence
    assert "answers read requests" in checks[1].sentence
    of_first = {"standby": checks[0].name.removeprefix("Standby server ")}
    assert REGISTRY.get_sample_value("hr_standby_lag_seconds", of_first) == math.inf
    assert REGISTRY.get_sample_value("hr_reads_total", {"server": "standby"})
    world.standbys[0].start()
    world.wait_until_read(0, 1)


def test_a_promoted_standby_takes_over_with_every_acknowledged_write(world: World) -> None:
    """The last test of this world: its primary is killed."""
    with psycopg.connect(world.server.superuser, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'ANY 2 (*)'")
        connection.execute("SELECT pg_reload_conf()")
    first, second = world.standbys
    hosts = [str(conninfo_to_dict(world.primary.conninfo)["host"]), str(first.folder)]
    both = make_conninfo(
        world.primary.conninfo, host=",".join(hosts), port="5432,5432", target_session_attrs="read-write"
    )
    database = Database(both, world.primary.key)
    database.open()
    standbys = database.standbys = connect(database, [first.application, second.application])
    acknowledged = []
    try:
        for number in range(50):
            with database.transaction("demo") as connection:
                connection.execute(ADD_COLLECTION, (f"c{number}",))
            acknowledged.append(f"c{number}")
        world.kill_primary()
        first.promote()

        def names() -> set[str] | None:
            with suppress(DatabaseUnavailable), database.transaction("demo") as connection:
                return {row[0] for row in connection.execute("SELECT name FROM collections")}
            return None

        wait_for(lambda: names() is not None, "the promoted standby was not found")
        assert set(acknowledged) <= (names() or set())
        with database.transaction("demo") as connection:
            connection.execute(ADD_COLLECTION, ("after",))

        def is_left_out() -> bool:
            standbys.look()
            return "not a standby" in standbys.all[0].trouble

        wait_for(is_left_out, "a server that takes writes is read as a standby")
        count = "SELECT count(*) FROM collections WHERE name = 'after'"
        assert database.read("demo", lambda pipeline: pipeline.execute(count).fetchone()) == (1,)
    finally:
        database.close()
