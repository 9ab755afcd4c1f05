"""Two applications and three workers on one Postgres under load, workers and an application killed at random.

`python -m benchmarks.many_processes`: programs upload, confirm, ask and delete over the HTTP API with a key, at
whichever application answers. At the end everything is counted: jobs done once, bills paid once, nothing lost, doubled
or stale.
`--database-url` names the superuser of a Postgres with nothing of value in it; otherwise it starts one of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from benchmarks.product import PROJECT, free_port
from rag.access.api_keys import ApiKeys
from rag.services import connect_services, program_of
from rag.settings import Settings, environment_names
from rag.storage.database import Database
from rag.storage.embedded_postgres import start_server
from tests.standins.plain_server import plain_server
from tests.standins.providers import ProviderStandin

TENANT, COLLECTION, MODEL = "demo", "Together", "openai/text-embedding-3-small@256"
QUESTION = "How many days of zebra leave does everybody get?"


@dataclass
class Seen:
    """What the programs saw. Times are of this machine's clock, in seconds."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    #: File names of documents that stay, and of those that were deleted, with when the deletion was answered.
    kept: set[str] = field(default_factory=set)
    deleted: dict[str, float] = field(default_factory=dict)
    #: When a search began that still found a document, by its id.
    last_found: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


class Processes:
    """Applications and workers, that can be killed and started again."""

    def __init__(self, environment: dict[str, str], stack: ExitStack) -> None:
        self._environment, self._stack = environment, stack
        self.ports = [free_port(), free_port()]
        self.applications = [self._application(port) for port in self.ports]
        self.workers = [self._start("worker") for _ in range(3)]
        for port in self.ports:
            self.wait(port)

    def kill_worker(self, place: int) -> None:
        self.workers[place].kill()
        self.workers[place].wait()
        self.workers[place] = self._start("worker")

    def kill_application(self, place: int) -> None:
        self.applications[place].kill()
        self.applications[place].wait()
        self.applications[place] = self._application(self.ports[place])

    def wait(self, port: int) -> None:
        """Until an application answers."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                if httpx.get(f"http://127.0.0.1:{port}/api/health", timeout=10).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        raise SystemExit("An application did not start.")

    def _application(self, port: int) -> subprocess.Popen[bytes]:
        return self._start("serve", PORT=str(port))

    def _start(self, command: str, **variables: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "rag", command],
            cwd=PROJECT, env={**self._environment, **variables}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._stack.callback(_end, process)
        return process


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


class Program:
    """A program with a key. A call that an application did not answer goes to the other one."""

    def __init__(self, number: int, ports: list[int], secret: str, seen: Seen) -> None:
        self._number, self._ports, self._seen = number, ports, seen
        self._client = httpx.Client(headers={"Authorization": f"Bearer {secret}"}, timeout=60)
        self._collection = next(
            c["id"] for c in self._call("GET", "/api/collections").json()["collections"] if c["name"] == COLLECTION
        )

    def work(self, documents: int) -> None:
        """Upload, confirm, delete every third, until all are done."""
        waiting = {}
        for index in range(documents):
            name = f"{self._number}-{index}.txt"
            waiting[self._upload(name)] = (index, name)
        while waiting:
            for document_id, (index, name) in list(waiting.items()):
                document = self._call("GET", f"/api/documents/{document_id}").json()
                if document["status"] == "estimated":
                    self._call("POST", f"/api/documents/{document_id}/confirm")
                    if index % 6 == 1:  # while it is worked on
                        self._delete(document_id, name)
                        del waiting[document_id]
                elif document["status"] == "failed":
                    self._call("POST", f"/api/documents/{document_id}/retry")
                elif document["status"] == "completed":
                    if index % 3 == 0:
                        self._delete(document_id, name)
                    else:
                        with self._seen.lock:
                            self._seen.kept.add(name)
                    del waiting[document_id]
            time.sleep(0.05)

    def search(self, stopped: threading.Event) -> None:
        """Search without a pause, at one application after the other, and note what was found."""
        while not stopped.wait(0.05):
            began = time.time()
            body = {"query": QUESTION, "collection": COLLECTION, "options": {"topK": 50, "rerank": False}}
            answer = self._call("POST", "/api/rag/search", json=body)
            with self._seen.lock:
                self._seen.counts["searches"] += 1
                for result in answer.json().get("results", ()):
                    self._seen.last_found[str(result["title"])] = began

    def ask(self, stopped: threading.Event) -> None:
        """Ask over server-sent events; an answer that broke off with its application is counted as such."""
        body = {"query": QUESTION, "collection": COLLECTION, "options": {"stream": True}}
        while not stopped.wait(0.3):
            url = f"http://127.0.0.1:{random.choice(self._ports)}/api/rag/chat"
            last = ""
            try:
                with self._client.stream("POST", url, json=body) as answer:
                    for line in answer.iter_lines():
                        last = json.loads(line[6:])["type"] if line.startswith("data: ") else last
            except httpx.TransportError:
                last = "broken off" if last else "not taken"
            with self._seen.lock:
                self._seen.counts[f"answers {last or 'refused'}"] += 1

    def _upload(self, name: str) -> str:
        text = f"Office {name} gives everybody {self._number + 20} days of zebra leave. " * 3
        path = f"/api/collections/{self._collection}/documents"
        answer = self._call("POST", path, files={"file": (name, text.encode(), "text/plain")})
        if answer.status_code == 409:  # the call before was carried out, though its answer was lost
            listed = self._call("GET", "/api/documents", params={"limit": 200}).json()["documents"]
            return next(str(document["id"]) for document in listed if document["fileName"] == name)
        answer.raise_for_status()
        return str(answer.json()["id"])

    def _delete(self, document_id: str, name: str) -> None:
        self._call("DELETE", f"/api/documents/{document_id}")
        with self._seen.lock:
            self._seen.deleted[name] = time.time()

    def _call(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        deadline = time.monotonic() + 90
        while True:
            url = f"http://127.0.0.1:{random.choice(self._ports)}{path}"
            try:
                answer = self._client.request(method, url, **arguments)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code not in (429, 502, 503):
                return answer
            if time.monotonic() > deadline:
                raise SystemExit(f"{method} {path} was never answered.")
            time.sleep(0.1)


@contextmanager
def database_of(url: str, folder: Path) -> Iterator[tuple[str, str]]:
    """How the application and the owner of the tables connect."""
    if url:
        with plain_server(url) as given:
            yield given.application, given.owner
    else:
        server = start_server(folder)
        yield server.application, server.owner
        server.stop()


def run(documents: int, programs: int, kills: int, seed: int, url: str) -> int:
    dice, seen = random.Random(seed), Seen()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        application, owner = stack.enter_context(database_of(url, folder / "server"))
        standin = stack.enter_context(ProviderStandin())
        settings = Settings(
            data_dir=folder / "data", database_url=application, migration_database_url=owner,
            openai_api_key="sk-test", openai_base_url=standin.openai_url, samples=False,
        )  # fmt: skip
        parts = connect_services(settings)
        stack.callback(parts.close)
        parts.tenants.create(TENANT, "Demo")
        parts.documents.ensure_collection(TENANT, COLLECTION, "hr", MODEL, "en")
        scopes = ["chat", "search", "documents:read", "documents:write"]
        _, secret = ApiKeys(parts.database).create(program_of(TENANT), "Load", scopes, requests_per_minute=10_000)
        ours = environment_names()
        environment = {name: value for name, value in os.environ.items() if name not in ours} | {
            "RAG_DATA_DIR": str(settings.data_dir), "DATABASE_URL": application, "MIGRATION_DATABASE_URL": owner,
            "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": standin.openai_url, "RAG_SAMPLES": "false",
            "RAG_TENANT": TENANT,
        }  # fmt: skip
        running = Processes(environment, stack)
        standin.delay_seconds = 0.1
        began, stopped = time.monotonic(), threading.Event()
        clients = [Program(number, running.ports, secret, seen) for number in range(programs + 2)]
        beside = [threading.Thread(target=clients[-1].search, args=(stopped,)),
                  threading.Thread(target=clients[-2].ask, args=(stopped,))]  # fmt: skip
        working = [threading.Thread(target=client.work, args=(documents,)) for client in clients[:programs]]
        for thread in (*beside, *working):
            thread.start()
        for number in range(kills):
            time.sleep(dice.uniform(1, 3))
            if number == kills // 2:
                running.kill_application(1)
            running.kill_worker(dice.randrange(3))
        for thread in working:
            thread.join()
        running.wait(running.ports[1])
        time.sleep(1)  # it goes on being searched
        stopped.set()
        for thread in beside:
            thread.join()
        seconds = time.monotonic() - began
        problems = list(found_wrong(parts.database, settings.data_dir / "files", seen, documents * programs))
    counts = ", ".join(f"{count} {what}" for what, count in sorted(seen.counts.items()))
    print(
        f"{documents * programs} documents over HTTP in {seconds:.0f} s, {len(seen.deleted)} deleted; {kills} workers "
        f"and one application killed; {counts}"
    )
    print("\n".join(problems) or "Nothing lost, doubled or stale; every job done and paid once.")
    return 1 if problems else 0


def found_wrong(database: Database, files: Path, seen: Seen, uploaded: int) -> Iterator[str]:
    """Sentences on what is not as it has to be."""
    if len(seen.kept) + len(seen.deleted) != uploaded:
        yield f"{uploaded} were uploaded, {len(seen.kept)} kept and {len(seen.deleted)} deleted."
    if not {_title(name) for name in seen.kept} & seen.last_found.keys():
        yield "No search found anything."
    stale = [name for name, at in seen.deleted.items() if seen.last_found.get(_title(name), 0) > at]
    if stale:
        yield f"Found after their deletion was answered: {stale}."

    def rows(statement: str) -> list[tuple[Any, ...]]:
        with database.transaction(TENANT) as connection:
            return connection.execute(statement).fetchall()

    stored = rows("SELECT file_name, status, chunk_count, file_path FROM documents")
    if sorted(name for name, *_ in stored) != sorted(seen.kept):
        yield f"Stored are {sorted(name for name, *_ in stored)}, to be kept were {sorted(seen.kept)}."
    if unready := [name for name, status, *_ in stored if status != "completed"]:
        yield f"Not ready: {unready}."
    if doubled := rows(
        "SELECT d.file_name FROM documents d JOIN document_chunks c ON c.document_id = d.id GROUP BY d.id "
        "HAVING count(*) <> d.chunk_count OR count(DISTINCT c.chunk_index) <> d.chunk_count "
        "OR count(c.embedding) <> count(*)"
    ):
        yield f"Passages lost or doubled: {doubled}."
    if paid := rows(
        "SELECT document_id, operation, count(*) FROM cost_ledger WHERE document_id IS NOT NULL "
        "GROUP BY 1, 2 HAVING count(*) > 1"
    ):
        yield f"Paid more than once: {paid}."
    bills = rows("SELECT count(DISTINCT document_id) FROM cost_ledger JOIN documents d ON d.id = document_id")
    if bills != [(len(stored),)]:
        yield f"{bills[0][0]} of {len(stored)} documents have their bill."
    if jobs := rows("SELECT status, count(*) FROM procrastinate_jobs WHERE status <> 'succeeded' GROUP BY 1"):
        yield f"Jobs that did not succeed: {jobs}."
    if calls := rows("SELECT operation FROM paid_calls"):
        yield f"Calls never finished: {calls}."
    left = {f"{path.parent.name}/{path.name}" for path in files.rglob("*") if path.is_file()}
    if left != {path for *_, path in stored}:
        yield f"{len(left)} files are stored for {len(stored)} documents."


def _title(name: str) -> str:
    return name.removesuffix(".txt")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=20, help="of each program")
    parser.add_argument("--programs", type=int, default=3)
    parser.add_argument("--kills", type=int, default=8, help="of workers; one application is killed in between")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database-url", default="", help="superuser of a Postgres with nothing of value in it")
    given = parser.parse_args()
    return run(given.documents, given.programs, given.kills, given.seed, given.database_url)


if __name__ == "__main__":
    sys.exit(main())
