"""Reading at standbys: what it takes off the primary, and whether anything stale is ever found.

    python -m benchmarks.standbys [--chunks 20000] [--searches 600] [--reads 100000]

One primary and two standbys on this machine, all with the built-in server's settings. First the same searches with no,
one and two standbys: searches a second of `--people` processes, and the processor time that each server spent on one.
On a machine with few cores the servers share them, so that the second says more than the first: what the primary spends
on a search bounds how many all standbys together can answer. Then `--reads` reads beside publications and deletions,
each begun after one was acknowledged, while replay is held up now and then; a stale one would be counted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from uuid import uuid4

import psutil
import psycopg
from psycopg.conninfo import make_conninfo

from benchmarks.search import Asked, questions, scope_of
from benchmarks.search_data import Corpus, load
from rag.integrations.operations.standbys.standbys import Standbys, connect
from rag.retrieval.hybrid_search import hybrid_search
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import DATABASE, start_server
from rag.storage.migrations import migrate
from rag.storage.pipeline import Pipeline
from tests.standins.standby import StandbyServer, make_standby


def opened(application: str, key: bytes, standbys: Sequence[StandbyServer]) -> Database:
    database = Database(application, key)
    database.open()
    if standbys:
        database.standbys = connect(database, [standby.application for standby in standbys])
    return database


def search_all(application: str, key: bytes, standbys: Sequence[StandbyServer], asked: Sequence[Asked]) -> None:
    database = opened(application, key, standbys)
    for tenant, query in asked:
        hybrid_search(database, query, scope=scope_of(tenant), limit=10)
    database.close()


class Spent:
    """Processor seconds of a server: those of its processes, and of backends that have ended meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._postmaster = psutil.Process(int((folder / "postmaster.pid").read_text("utf-8").splitlines()[0]))
        self._begun = self._seconds()

    def seconds(self) -> float:
        return self._seconds() - self._begun

    def _seconds(self) -> float:
        own = self._postmaster.cpu_times()
        total: float = own.user + own.system + own.children_user + own.children_system
        for process in self._postmaster.children():
            spent = process.cpu_times()
            total += spent.user + spent.system
        return total


def compare(
    application: str,
    key: bytes,
    folders: Sequence[Path],
    standbys: Sequence[StandbyServer],
    asked: list[Asked],
    people: int,
) -> None:
    print(f"{len(asked)} searches by {people} processes; processor ms a search\n")
    print("standbys   searches/s   primary   " + "   ".join(f"standby {n}" for n, _ in enumerate(standbys, 1)))
    for count in range(len(standbys) + 1):
        spent = [Spent(folder) for folder in folders]
        parts = [asked[number::people] for number in range(people)]
        processes = [
            multiprocessing.get_context("spawn").Process(
                target=search_all, args=(application, key, standbys[:count], part)
            )
            for part in parts
        ]
        started = time.perf_counter()
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        seconds = time.perf_counter() - started
        costs = "   ".join(f"{1000 * server.seconds() / len(asked):9.2f}" for server in spent)
        print(f"{count:8}{len(asked) / seconds:13.1f}{costs}", flush=True)


def look_for_stale(database: Database, standbys: Sequence[StandbyServer], reads: int) -> None:
    stop, stale, changes = Event(), 0, 0

    def hold_up() -> None:
        while not stop.is_set():
            for standby in standbys:
                standby.execute("SELECT pg_wal_replay_pause()")
                stop.wait(0.02)
                standby.execute("SELECT pg_wal_replay_resume()")
            stop.wait(0.5)

    def count(pipeline: Pipeline) -> int:
        asked = pipeline.execute("SELECT count(*) FROM documents WHERE title = 'Notice' AND status = 'completed'")
        pipeline.finish()
        row = asked.fetchone()
        return int(row[0]) if row else -1

    with database.transaction("changing") as connection:
        collection = connection.execute(
            "INSERT INTO collections (tenant_id, name, embedding_model) VALUES ('changing', 'c', 'm') RETURNING id"
        ).fetchone()
    assert collection is not None
    slow = Thread(target=hold_up)
    slow.start()
    begun = time.perf_counter()
    for number in range(reads // 10):
        is_there = number % 2 == 0
        with database.transaction("changing") as connection:
            if is_there:
                connection.execute(
                    "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status) "
                    "VALUES ('changing', %s, 'Notice', 'n.pdf', %s, 'completed')",
                    (collection[0], str(uuid4())),
                )
            else:
                connection.execute("DELETE FROM documents")
        changes += 1
        stale += sum(database.read("changing", count) != int(is_there) for _ in range(10))
    stop.set()
    slow.join()
    assert isinstance(database.standbys, Standbys)
    at_standbys = sum(standby.reads for standby in database.standbys.all)
    behind = sum(standby.behind for standby in database.standbys.all)
    print(
        f"\n{reads} reads beside {changes} changes: {stale} stale; {at_standbys} at standbys, {behind} at the primary "
        f"because a standby was behind; {reads / (time.perf_counter() - begun):.0f} reads/s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--searches", type=int, default=600)
    parser.add_argument("--people", type=int, default=4)
    parser.add_argument("--reads", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="standbys-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        primary = start_server(folder / "primary")
        standbys: list[StandbyServer] = []
        try:
            migrate(primary.owner)
            corpus = Corpus(options.chunks, 1536)
            tenants = load(make_conninfo(primary.superuser, dbname=DATABASE), corpus, 20, options.chunks)
            with psycopg.connect(primary.superuser, dbname=DATABASE, autocommit=True) as connection:
                connection.execute("INSERT INTO tenants (id, name) VALUES ('changing', 'Changing')")
                connection.execute("VACUUM ANALYZE")
            standbys += [make_standby(folder / f"standby{n}", primary.superuser, primary.application) for n in (1, 2)]
            key = sealing_key(primary.owner)
            asked = questions(corpus, tenants, options.searches, seed=7)
            search_all(primary.application, key, standbys, asked[: len(asked) // 4])  # reads the pages into memory
            folders = [folder / "primary" / "postgres", *(standby.folder for standby in standbys)]
            compare(primary.application, key, folders, standbys, asked, options.people)
            database = opened(primary.application, key, standbys)
            look_for_stale(database, standbys, options.reads)
            database.close()
        finally:
            for standby in standbys:
                standby.stop()
            primary.stop()


if __name__ == "__main__":
    main()
