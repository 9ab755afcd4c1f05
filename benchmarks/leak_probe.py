"""Tries to learn what others may not: `python -m benchmarks.leak_probe --probes 10000`.

Random probes of random people of two companies: services, every route with foreign ids, questions, streams, pages,
uploads and media of the running product, lists and exports; beside them what lies around: queue payloads, logs, error
messages, exports of whole tenants. Passes when nobody was shown a word that is not theirs, and nothing of anybody
else was changed. `--without-conditions` first takes every condition on the tenant out of every statement: the
database alone has to hold.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import logging
import os
import random
import re
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx
import psycopg

from benchmarks.leak_calls import CALLS, LISTS, asked, body_of, filled, query_of, requests_of, searched
from benchmarks.leak_world import Person, Shelf, World, build_world
from rag.errors import RagError
from rag.services import Services
from rag.settings import LIMITS, environment_name
from rag.storage.sql import queries

TENANTS = ("acme", "bolt")
#: A condition that binds rows to the transaction's tenant, as the statements write it.
CONDITION = re.compile(
    r"(?<![\w.])(?:\w+\.)?(?:tenant_id|args ->> 'tenant_id')\s*=\s*(?:rag_tenant\(\)|%\(tenant_id\)s(?:::text)?)"
    r"|(?<![\w.])(?:t\.)?id = rag_tenant\(\)"
)
#: What a row counts or remembers of its own person between two looks, and is no change of what it says.
COUNTERS = "{last_used_at,minute_started_at,minute_requests,last_seen_at,updated_at,last_collection_id}"
TABLES = (
    "accounts", "api_keys", "audit_log", "chat_logs", "collection_sources", "collections", "conversations",
    "cost_ledger", "document_chunks", "document_pages", "documents", "feedback", "messages", "tenant_prices", "tenants",
)  # fmt: skip


def without_conditions() -> int:
    """Take every condition on the tenant out of the statements of this process; how many there were."""
    removed = 0
    for name, text in queries.items():
        bare, count = CONDITION.subn("true", text)
        queries[name] = cast(Any, bare)
        removed += count
    return removed


@dataclass
class Finding:
    """What should not have happened."""

    who: str
    what: str
    seen: str


@dataclass
class Probe:
    """One after the other, until `count`. `url` is of the served product, None where only services are probed."""

    parts: Services
    world: World
    url: str
    seed: int
    routes: list[tuple[str, str]]
    findings: list[Finding] = field(default_factory=list)
    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    statuses: collections.Counter[int] = field(default_factory=collections.Counter)
    #: How often somebody was shown a word of their own: it can be found where it may be.
    own_words: int = 0
    jobs: int = 0

    def run(self, count: int) -> None:
        self.chance = random.Random(self.seed)
        clients = {p.name: httpx.Client(base_url=self.url, headers=p.headers, timeout=60) for p in self.world.people}
        ways = [self._service] * 4 + [self._list] * 2 + [self._search] * 2 + [self._route] * 6 + [self._around]
        for _ in range(count):
            person = self.chance.choice(self.world.people)
            shelf = self.chance.choice(self.world.foreign(person) or self.world.shelves)
            way = self.chance.choice(ways)
            self.kinds[way.__name__.strip("_")] += 1
            if shelf.secret.name in person.readable:
                continue
            way(person, shelf, clients[person.name])
        for client in clients.values():
            client.close()

    def _service(self, person: Person, shelf: Shelf, client: httpx.Client) -> None:
        kind = self.chance.choice(sorted(CALLS.keys() & shelf.ids.keys()))
        name = self.chance.choice(sorted(CALLS[kind]))
        wanted = self.chance.choice(shelf.ids[kind])
        found = self._called(person, f"{kind}: {name}", lambda: CALLS[kind][name](self.parts, person.identity, wanted))
        if found:
            self.findings.append(Finding(person.name, f"{kind}: {name}", repr(found)[:200]))

    def _list(self, person: Person, shelf: Shelf, client: httpx.Client) -> None:
        name = self.chance.choice(sorted(LISTS))
        self._look(person, name, self._called(person, name, lambda: LISTS[name](self.parts, person.identity)))

    def _search(self, person: Person, shelf: Shelf, client: httpx.Client) -> None:
        way = self.chance.choice([searched, searched, searched, asked])
        found = self._called(person, way.__name__, lambda: way(self.parts, person.identity, shelf, self.chance))
        self._look(person, way.__name__, found)

    def _called(self, person: Person, what: str, call: Any) -> Any:
        """What it gives back; what it says when it refuses is looked at as well."""
        try:
            return call()
        except RagError as exc:
            self._look(person, what, (str(exc), exc.details, repr(exc.__cause__)))
        except Exception as exc:  # nobody should get that far
            self.findings.append(Finding(person.name, what, f"{type(exc).__name__}: {exc}"[:300]))
        return None

    def _route(self, person: Person, shelf: Shelf, client: httpx.Client) -> None:
        method, path = self.chance.choice(self.routes)
        where = filled(path, self.chance, shelf)
        body = body_of(path, self.chance, shelf) if method in ("POST", "PUT", "PATCH") else None
        if path == "/logout":  # the session would be gone, not the wall
            return
        if path.endswith(("/ingest", "/documents")) and method == "POST":
            files = {"file": ("probe.txt", b"Probe."), "document": ("probe.pdf", b"%PDF-1.4")}
            answer = client.request(method, where, files=files, data={"title": "Probe"})
        else:
            answer = client.request(method, where, json=body, params=query_of(self.chance, shelf))
        self._answered(person, f"{method} {path}", answer, is_foreign="{" in path)

    def _around(self, person: Person, shelf: Shelf, client: httpx.Client) -> None:
        """Streamlit's own endpoints, with other people's ids as names of files."""
        wanted = self.chance.choice(shelf.ids["document"])
        name = f"{wanted.hex}{wanted.hex[:24]}"
        method, path = self.chance.choice(
            [
                ("GET", f"/media/{name}.png"),
                ("GET", f"/media/{name}.pdf"),
                ("GET", f"/app/static/{wanted}.png"),
                ("GET", f"/_stcore/upload_file/{wanted}/{shelf.collection.id}"),
                ("PUT", f"/_stcore/upload_file/{wanted}/{shelf.collection.id}"),
                ("DELETE", f"/_stcore/upload_file/{wanted}/{shelf.collection.id}"),
                ("GET", f"/component/{wanted}"),
                ("GET", "/_stcore/host-config"),
                ("GET", f"/documents?document={wanted}"),
                ("GET", f"/api/{wanted}"),
            ]
        )
        self._answered(person, f"{method} {path.split('?')[0].rsplit('/', 1)[0]}", client.request(method, path))

    def _answered(self, person: Person, what: str, answer: httpx.Response, *, is_foreign: bool = False) -> None:
        self.statuses[answer.status_code] += 1
        self._look(person, what, f"{answer.headers} {answer.content.decode('latin-1')}")
        if answer.status_code >= 500 or (is_foreign and answer.status_code < 400):
            self.findings.append(Finding(person.name, what, f"{answer.status_code} {answer.text[:200]}"))

    def _look(self, person: Person, what: str, found: Any) -> None:
        text = found if isinstance(found, str) else found.decode("utf-8") if isinstance(found, bytes) else repr(found)
        self.own_words += any(shelf.secret.canary in text for shelf in self.world.own(person))
        for shelf in self.world.foreign(person):
            if shelf.secret.canary in text:
                self.findings.append(Finding(person.name, what, text[:300]))

    # What lies around

    def look_at_queue(self, superuser: str) -> None:
        with psycopg.connect(superuser) as connection:
            rows = connection.execute("SELECT args::text || task_name || coalesce(lock, '') FROM procrastinate_jobs")
            jobs = [row[0] for row in rows]
        self.jobs = len(jobs)
        self._nobodys("queue", "\n".join(jobs))

    def look_at_log(self, text: str) -> None:
        """No word of anybody belongs into a log."""
        self._nobodys("log", text)

    def _nobodys(self, what: str, text: str) -> None:
        for shelf in self.world.shelves:
            if shelf.secret.canary in text or shelf.secret.needle in text:
                at = text.find(shelf.secret.canary) if shelf.secret.canary in text else text.find(shelf.secret.needle)
                self.findings.append(Finding(what, shelf.secret.name, text[max(0, at - 150) : at + 100]))

    def look_at_exports(self, folder: Path) -> None:
        """Everything of a tenant as its operator hands it over."""
        for tenant_id in sorted({shelf.collection.tenant_id for shelf in self.world.shelves}):
            path = folder / f"{tenant_id}.zip"
            path.unlink(missing_ok=True)
            self.parts.tenants.export(tenant_id, path)
            with zipfile.ZipFile(path) as archive:
                text = b"".join(archive.read(name) for name in archive.namelist()).decode("latin-1")
            for shelf in self.world.shelves:
                if shelf.collection.tenant_id != tenant_id and shelf.secret.canary in text:
                    self.findings.append(Finding("export", tenant_id, shelf.secret.name))


def rows_of(superuser: str) -> dict[str, set[str]]:
    """Every row of every table as a digest, without its counters."""
    found: dict[str, set[str]] = {}
    with psycopg.connect(superuser) as connection:
        for table in TABLES:
            statement = f"SELECT md5((to_jsonb(t) - '{COUNTERS}'::text[])::text) FROM {table} t"
            found[table] = {row[0] for row in connection.execute(cast(Any, statement))}
    return found


def changed(before: dict[str, set[str]], after: dict[str, set[str]]) -> dict[str, int]:
    """How many rows that were there are gone or differ, by table."""
    return {table: len(rows - after[table]) for table, rows in before.items() if rows - after[table]}


class Kept(logging.Handler):
    """Everything that is logged, with its tracebacks."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextmanager
def served(app: Any) -> Iterator[str]:
    """The application in a thread of this process."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=3))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(15)


async def pages_of(probe: Probe, names: list[str]) -> int:
    """Draw every page for everybody with a session, with other people's ids in its address; how many were drawn."""
    from benchmarks.streamlit_client import frames_of_page

    drawn = 0
    for person in probe.world.people:
        if not person.has_session:
            continue
        for name in names:
            for shelf in probe.world.foreign(person):
                address = probe.url.removeprefix("http://")
                query = f"document={shelf.document.id}&collection={shelf.collection.id}&next=/"
                frames = await frames_of_page(address, person.headers["Cookie"], name, query)
                probe._look(person, f"page {name or 'chat'}", frames.decode("latin-1"))
                drawn += 1
    return drawn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-conditions", action="store_true")
    arguments = parser.parse_args()
    logs = Kept()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {environment_name(name): "0" for name in LIMITS}
        os.environ |= {"RAG_DATA_DIR": folder, "RAG_TENANT": TENANTS[0], "RAG_SAMPLES": "false", "RAG_WORKER": "false"}
        logging.getLogger().addHandler(logs)
        logging.getLogger().setLevel(logging.INFO)
        from app import app
        from rag.server import ROUTES
        from rag.services import services
        from rag.storage.embedded_postgres import start_server

        embedded = start_server(Path(folder))
        superuser = embedded.superuser.replace("dbname=postgres", "dbname=rag")
        parts = services()
        parts.tenants.create(TENANTS[1])
        if parts.tenants._database.fetch_value(TENANTS[0], "is_suspended") is None:
            parts.tenants.create(TENANTS[0])
        world = build_world(parts, TENANTS)
        removed = without_conditions() if arguments.without_conditions else 0
        before = rows_of(superuser)
        with served(app) as url:
            probe = Probe(parts, world, url, arguments.seed, requests_of(ROUTES))
            started = time.monotonic()
            probe.run(arguments.probes)
            seconds = time.monotonic() - started
            names = ["", "documents", "collections", "analytics", "people", "prices", "audit", "board", "account"]
            pages = asyncio.run(pages_of(probe, names))
            probe.look_at_queue(superuser)
            probe.look_at_exports(Path(folder))
            lost = changed(before, rows_of(superuser))
        probe.look_at_log("\n".join(logs.lines))
        probe.look_at_log((Path(folder) / "postgres" / "server.log").read_text("utf-8", errors="replace"))
        embedded.stop()
    how = f"without {removed} conditions on the tenant" if removed else "with the conditions on the tenant"
    print(f"{arguments.probes:,} probes {how} in {seconds:.0f} s, {pages} pages, {len(logs.lines)} lines of log")
    print("  " + ", ".join(f"{kind} {n:,}" for kind, n in sorted(probe.kinds.items())))
    print("  answers: " + ", ".join(f"{status}: {n:,}" for status, n in sorted(probe.statuses.items())))
    print(f"  own words shown: {probe.own_words:,}; jobs looked at: {probe.jobs}")
    print(f"  rows changed: {lost or 0}; leaks: {len(probe.findings)}")
    for finding in probe.findings[:20]:
        print(f"    {finding.who}: {finding.what}: {finding.seen}")
    return 1 if probe.findings or lost else 0


if __name__ == "__main__":
    raise SystemExit(main())
