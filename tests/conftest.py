"""Fixtures for all tests: a real embedded Postgres with a fresh database per test, and a stand-in for providers."""

from __future__ import annotations

import asyncio
import atexit
import functools
import gc
import itertools
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest
import uvicorn
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import class_row
from starlette.applications import Starlette

from rag.settings import Settings, environment_names
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import DATABASE, start_server
from rag.storage.migrations import migrate
from rag.types import Collection
from tests.patience import factor, patient
from tests.standins.plain_server import PlainServer, plain_server
from tests.standins.providers import ProviderStandin

if TYPE_CHECKING:
    from rag.ingestion.loaders.values import ExtractionLimits
    from rag.services import Services

pytest_plugins = ["tests.flaky"]

# With Python's defaults, garbage collection of the many objects of modules, tests and pages takes a tenth of a run.
gc.set_threshold(50_000, 20, 50)

# Tests must not use a key of the machine's owner.
for variable in environment_names():
    os.environ.pop(variable, None)

# By default tests compare passages by words, because the model of meaning needs a process and time.
os.environ["RAG_BUILTIN_EMBEDDER"] = "lexical"

# Loading the certificates of all authorities takes 20 ms of processor time per client of a provider, although the
# stand-in uses plain HTTP. All clients of a run share the loaded certificates.
ssl.create_default_context = functools.cache(ssl.create_default_context)  # type: ignore[assignment]

#: Folder for the servers and files of tests. Every test with a database copies one, and a copy in memory takes a
#: seventh of the processor time of a copy on an ext4 disk.
MEMORY = Path("/dev/shm")
#: Space which the folder in memory must have. A run uses about a third of it; containers often have only 64 MB.
LEAST_MEMORY_BYTES = 4_000_000_000


def fast_folder() -> str | None:
    """Return the folder in memory, or `None` for the default folder if it is missing or too small."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= LEAST_MEMORY_BYTES
    return str(MEMORY) if has_room and os.access(MEMORY, os.W_OK) else None


# Started in the background of a shell, pytest ignores Ctrl-C, and so would the commands to which tests send Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Before the workers start, because they read it from the environment.
factor()

# Each new pytest process makes the folder it shares with others unreadable for them (see `server`), and tests start
# servers in it too.
if "PYTEST_DEBUG_TEMPROOT" not in os.environ:
    os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.mkdtemp(prefix="hr-tests-", dir=fast_folder())
    atexit.register(shutil.rmtree, os.environ["PYTEST_DEBUG_TEMPROOT"], ignore_errors=True)

#: The longest tests, which come first. If they came last, the other workers would have nothing to do meanwhile.
LONGEST = (
    "tests/browser/",
    "tests/ingestion/test_kills.py",
    "tests/house/test_docs.py",
    "tests/records/test_time_zones.py",
    "tests/journeys/test_lifecycle.py",
    "tests/pages/test_every_word.py",
    "tests/records/test_every_figure.py",
    "tests/integrations/operations/backups/",
    "tests/commands/test_commands.py",
)

#: Tests left out by `make test-fast`, besides browser tests: kills, soak, commands and servers in their own processes.
SLOW = (
    "tests/access/test_audit_of_access.py",
    "tests/access/test_known_browsers.py",
    "tests/access/test_tenant_command.py",
    "tests/answering/test_conversations.py",
    "tests/answering/test_killed_answer.py",
    "tests/answering/test_small_model.py",
    "tests/api/test_asked_at_once.py",
    "tests/api/test_every_route.py",
    "tests/api/test_generated_client.py",
    "tests/api/test_sign_in_flood.py",
    "tests/sandbox/test_confinement.py",
    "tests/library/test_default_collection.py",
    "tests/ingestion/test_isolated_run.py",
    "tests/ingestion/test_jobs.py",
    "tests/ingestion/test_killed_worker.py",
    "tests/ingestion/test_kills.py",
    "tests/ingestion/test_lost_calls.py",
    "tests/ingestion/test_many_processes.py",
    "tests/ingestion/test_meaning_work.py",
    "tests/ingestion/test_processor.py",
    "tests/ingestion/test_reembed_command.py",
    "tests/ingestion/test_reembedding.py",
    "tests/sandbox/test_sandbox.py",
    "tests/integrations/engines/meaning/",
    "tests/integrations/operations/",
    "tests/integrations/sources/vectors/",
    "tests/leaks/",
    "tests/pages/test_every_word.py",
    "tests/pages/test_page_reads.py",
    "tests/pages/test_sums_agree.py",
    "tests/profiles/notices/test_sync_command.py",
    "tests/records/test_every_figure.py",
    "tests/records/test_time_zones.py",
    "tests/retrieval/test_evidence_with_meaning.py",
    "tests/retrieval/test_meaning_search.py",
    "tests/retrieval/test_postings_at_work.py",
    "tests/retrieval/test_postings_migration.py",
    "tests/retrieval/test_profile_figures.py",
    "tests/retrieval/test_samples.py",
    "tests/supabase/",
    "tests/security/test_commands_matrix.py",
    "tests/storage/test_backup.py",
    "tests/commands/test_commands.py",
    "tests/house/test_docs.py",
    "tests/journeys/test_lifecycle.py",
    "tests/storage/test_partitions.py",
    "tests/journeys/test_upgrade.py",
)

names = itertools.count(1)
#: Connection string of a superuser; if set, tests use this server instead of the embedded one.
ELSEWHERE = os.environ.get("RAG_TEST_DATABASE_URL", "")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=10, help="how often the test of killed workers kills its worker")
    parser.addoption("--fast", action="store_true", help="leave out tests marked browser or slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow tests, leave them out with `--fast`, and put the longest at the start of each worker's part of the
    list.
    """
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)
    if config.getoption("fast"):
        left_out = [item for item in items if item.get_closest_marker("browser") or item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
    workers: int = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    groups = [[item for item in items if item.nodeid.startswith(name)] for name in LONGEST]
    taken = {item for group in groups for item in group}
    others, ordered = [item for item in items if item not in taken], list[pytest.Item]()
    for worker in range(workers):
        size = (len(items) - len(ordered)) // (workers - worker)
        first = [item for group in groups[worker::workers] for item in group]
        ordered += [*first, *others[: max(0, size - len(first))]]
        del others[: max(0, size - len(first))]
    items[:] = [*ordered, *others]


def pytest_collection_finish() -> None:
    """Exclude the objects made by collecting tests from garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _nothing_translated() -> None:
    """Clear the cache of translations, because other tests used other replies."""
    if (translation := sys.modules.get("rag.retrieval.translation")) is not None:
        translation.TRANSLATIONS.clear()


@pytest.fixture(scope="session", autouse=True)
def kept_readers() -> Iterator[None]:
    """Keep the processes which read files from one test to the next: starting one takes 0.4 s of processor time.

    These are the processes of the application's shared sandbox; a test with its own sandbox has its own processes.
    """
    from rag.ingestion.loaders import sandbox  # here, for the same reason as in `app_services`

    class Kept(sandbox.Sandbox):
        def interrupt(self) -> None:
            """End the busy processes and keep the idle ones."""
            with self._lock:
                busy = self._all.difference(self._idle)
            for process in busy:
                process.kill()

        def close(self) -> None:
            self.interrupt()

        def end(self) -> None:
            super().interrupt()
            super().close()

    made: list[Kept] = []

    @functools.cache
    def kept_of(limits: ExtractionLimits) -> Kept:
        made.append(Kept(limits))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "sandbox_of", kept_of)
        yield
    for kept in made:
        kept.end()


@pytest.fixture(autouse=True)
def no_loop_of_the_browser(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hide the event loop which Playwright leaves in this thread from other tests, because `asyncio.run` refuses to run
    beside it.
    """
    is_browser = request.node.get_closest_marker("browser") is not None
    kept = None if is_browser else asyncio._get_running_loop()
    if kept is not None:
        asyncio._set_running_loop(None)
    yield
    if kept is not None:
        asyncio._set_running_loop(kept)


@pytest.fixture(scope="session")
def server() -> Iterator[PlainServer]:
    """The embedded server, or the server of RAG_TEST_DATABASE_URL, with a migrated database to copy.

    Its folder is not pytest's: each new pytest process takes access to that folder from other accounts, and so from the
    server, which has its own account if root runs the tests.
    """
    if ELSEWHERE:
        with plain_server(ELSEWHERE) as given:
            migrate(given.owner)
            pack(given)
            add_tenants(given)
            yield replace(given, key=sealing_key(given.owner))
        return
    with tempfile.TemporaryDirectory(prefix="hr-tests-", dir=fast_folder(), ignore_cleanup_errors=True) as folder:
        running = start_server(Path(folder))
        migrate(running.owner)
        with psycopg.connect(running.superuser, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("ALTER SYSTEM SET synchronous_commit = off")
            connection.execute("ALTER SYSTEM SET full_page_writes = off")
            connection.execute("SELECT pg_reload_conf()")
        key = sealing_key(running.owner)
        made = PlainServer(running.application, running.owner, running.superuser, DATABASE, key)
        pack(made)
        add_tenants(made)
        yield made
        running.stop()


def pack(server: PlainServer) -> None:
    """Rewrite the system catalogue, which migrations leave twice as large, because every test copies it.

    Other tables stay as they are: the statistics on their sizes decide how Postgres searches them.
    """
    with psycopg.connect(server.superuser, dbname=server.template, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class"
            " WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' AND NOT relisshared"
        ).fetchall()
        names = sql.SQL(", ").join(sql.Identifier("pg_catalog", name) for (name,) in tables)
        connection.execute(sql.SQL("VACUUM (FULL) {}").format(names))


def add_tenants(server: PlainServer) -> None:
    with psycopg.connect(server.superuser, dbname=server.template) as connection:
        connection.execute("INSERT INTO tenants (id, name) VALUES ('demo', 'Demo'), ('other', 'Other')")


class Copies:
    """Makes copies of the migrated database. While a test runs, the next is made and the previous one dropped."""

    def __init__(self, server: PlainServer) -> None:
        self._template = server.template
        self._connections = [psycopg.connect(server.superuser, autocommit=True) for _ in range(2)]
        self._maker, self._dropper = (ThreadPoolExecutor(1, name) for name in ("copies-made", "copies-dropped"))
        self._next = self._maker.submit(self._make, self._template)
        self._dropping: list[Future[None]] = []

    def take(self) -> str:
        """Return the name of a fresh copy."""
        name = self._next.result()
        self._next = self._maker.submit(self._make, self._template)
        return name

    def take_of(self, database: str) -> str:
        """Return the name of a copy of another database, to which nobody may be connected."""
        return self._maker.submit(self._make, database).result()

    def drop(self, name: str) -> None:
        self._dropping.append(self._dropper.submit(self._drop, name))

    def close(self) -> None:
        """Drop the remaining copies. Raises the errors from dropping any copy."""
        self.drop(self._next.result())
        self._maker.shutdown()
        self._dropper.shutdown()
        for connection in self._connections:
            connection.close()
        for dropping in self._dropping:
            dropping.result()

    def _make(self, template: str) -> str:
        name = f"{self._template}_test_{next(names)}"
        identifier, connection = sql.Identifier(name), self._connections[0]
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER rag_owner STRATEGY FILE_COPY").format(
                identifier, sql.Identifier(template)
            )
        )
        # A copy does not include the rights on the database.
        connection.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC").format(identifier))
        return name

    def _drop(self, name: str) -> None:
        self._connections[1].execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def copies(server: PlainServer) -> Iterator[Copies]:
    made = Copies(server)
    yield made
    made.close()


@pytest.fixture
def database_name(copies: Copies) -> Iterator[str]:
    """The name of a fresh copy of the migrated database with the tenants `demo` and `other`."""
    name = copies.take()
    yield name
    copies.drop(name)


@pytest.fixture
def owner_conninfo(server: PlainServer, database_name: str) -> str:
    """The connection string of the test's database for the owner of the tables."""
    return make_conninfo(server.owner, dbname=database_name)


@pytest.fixture
def superuser_conninfo(server: PlainServer, database_name: str) -> str:
    """The connection string of the test's database for a superuser, who bypasses row-level security."""
    return make_conninfo(server.superuser, dbname=database_name)


@pytest.fixture
def database(server: PlainServer, database_name: str) -> Iterator[Database]:
    """The test's database as the application uses it, in the role rag_app."""
    opened = Database(make_conninfo(server.application, dbname=database_name), server.key)
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def tenant() -> str:
    return "demo"


@pytest.fixture
def collection(database: Database) -> Collection:
    """A collection of tenant `demo` with the profile `hr` and the built-in embedder."""
    with database.transaction("demo") as connection, connection.cursor(row_factory=class_row(Collection)) as cursor:
        found = cursor.execute(
            "INSERT INTO collections (tenant_id, name, profile, embedding_model) "
            "VALUES ('demo', 'HR documents', 'hr', 'builtin/lexical@1536') "
            "RETURNING id, tenant_id, name, profile, embedding_model, language, overrides, created_at"
        ).fetchone()
        assert found is not None
        return found


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings without any key, in the test's own folder."""
    return Settings(data_dir=tmp_path / "data", tesseract="none", recognition="none", builtin_embedder="lexical")


@pytest.fixture
def provider_standin() -> Iterator[ProviderStandin]:
    """A stand-in for OpenAI and Cohere on this machine, which counts calls."""
    with ProviderStandin() as running:
        yield running


@pytest.fixture
def app_services(
    database: Database,
    settings: Settings,
    collection: Collection,
    owner_conninfo: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Services]:
    """All services on the test's database; pages and routes get them from `services()`."""
    import rag.services as services_module  # here, so that tests of single stages do not wait for Streamlit

    assembled = services_module.assemble(settings, database, owner_conninfo=owner_conninfo)
    monkeypatch.setattr(services_module, "connect_services", lambda settings: assembled)
    services_module.services.clear()
    yield assembled
    assembled.close()
    services_module.services.clear()


class Served(uvicorn.Server):
    """A uvicorn server which ends at once on request, instead of checking every tenth of a second."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._ending.wait()

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)


@pytest.fixture
def serve() -> Iterator[Callable[[], str]]:
    """A function which starts the application in a thread of this process and returns its address."""
    # Imported here, so that tests of single stages do not wait for Streamlit.
    from rag.server import ERROR_HANDLERS, MIDDLEWARE, ROUTES

    running: list[tuple[Served, threading.Thread]] = []

    def start() -> str:
        app = Starlette(routes=ROUTES, middleware=MIDDLEWARE, exception_handlers=ERROR_HANDLERS)
        server = Served(uvicorn.Config(app, port=0, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        running.append((server, thread))
        while not server.started:
            time.sleep(0.005)
        return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"

    yield start
    for server, _ in running:
        server.end()
    for _, thread in running:
        thread.join(patient(5))


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The address of an independent OpenID Connect provider, from the package oidc-provider-mock."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://localhost:{port}"
    try:
        deadline = time.monotonic() + patient(20)
        while True:
            try:
                httpx.get(f"{address}/.well-known/openid-configuration")
                break
            except httpx.TransportError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait()
