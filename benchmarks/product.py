"""The running product as a process of its own in a folder of its own, for benchmarks and screenshots."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from queue import Empty, Queue
from uuid import uuid4

from rag.access.accounts import Accounts
from rag.access.guard import SESSION_COOKIE
from rag.access.sessions import Sessions
from rag.settings import LIMITS, Settings, environment_name, environment_names
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import EmbeddedServer, start_server
from rag.types import Identity, Role

PROJECT = Path(__file__).resolve().parent.parent

TENANT = "demo"
PASSWORD = "paper-and-linen-thread-7"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Product:
    """Starts `python -m rag serve` on a free port. `variables` are settings by their environment names."""

    def __init__(self, data_dir: Path, **variables: str) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.address}"
        self.welcome_url = ""
        self._data_dir = data_dir
        self._tenant = variables.get("RAG_TENANT", TENANT)
        # Nothing of the caller's own settings may reach the measured product.
        ours = environment_names()
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        self._environment = {
            **environment, "PORT": str(self.port), "RAG_DATA_DIR": str(data_dir), "RAG_TENANT": TENANT,
            # One reader asks for many: what is measured is not how they are slowed.
            **{environment_name(name): "0" for name in LIMITS}, "PYTHONUNBUFFERED": "1", **variables,
        }  # fmt: skip
        self._lines: Queue[str] = Queue()

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, *, timeout_seconds: float = 120) -> None:
        """Return once pages are served and every sample document is searchable."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rag", "serve"],
            cwd=PROJECT, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()
        deadline, seen = time.monotonic() + timeout_seconds, ""
        while "Ctrl-C stops everything" not in seen:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise SystemExit(f"The product did not start:\n{seen}")
            try:
                seen += self._lines.get(timeout=0.2)
            except Empty:
                continue
        if link := re.search(r"http://\S+/welcome\?token=\S+", seen):
            self.welcome_url = link[0].replace("//localhost:", "//127.0.0.1:")
        with self._database() as database:
            while time.monotonic() < deadline:
                states = self._states(database)
                if states and all(state == "completed" for state in states):
                    return
                time.sleep(0.2)
        self.stop()
        raise SystemExit(f"The sample documents did not become searchable: {states}.")

    def sign_in_people(self, count: int) -> list[str]:
        """Cookie headers of that many people, each with an account and a session of their own."""
        with self._database() as database:
            sessions = Sessions(database)
            accounts = Accounts(database, sessions, Settings(tenant=self._tenant))
            if link := accounts.first_admin_link():
                accounts.create_first_admin(link, "admin@benchmark.example", "Admin", PASSWORD)
            admin = accounts.sign_in("admin@benchmark.example", PASSWORD)
            identity = sessions.find(sessions.start(admin))
            assert identity is not None
            cookies = []
            for _ in range(count):
                account, _ = accounts.invite(identity, f"{uuid4().hex}@benchmark.example", "Reader")
                cookies.append(f"{SESSION_COOKIE}={sessions.start(account, 'benchmark')}")
            return cookies

    def sign_in_admin(self) -> str:
        """The cookie header of an administrator."""
        self.sign_in_people(0)
        with self._database() as database:
            sessions = Sessions(database)
            admin = Accounts(database, sessions, Settings(tenant=self._tenant)).sign_in(
                "admin@benchmark.example", PASSWORD
            )
            return f"{SESSION_COOKIE}={sessions.start(admin, 'benchmark')}"

    def log(self) -> str:
        """What it has printed since it was ready."""
        lines = []
        while not self._lines.empty():
            lines.append(self._lines.get())
        return "".join(lines)

    def add_people(self, people: Iterable[tuple[str, str, str, str]]) -> None:
        """Accounts by name, e-mail, role and user group, as the first administrator adds them."""
        with self._database() as database:
            sessions = Sessions(database)
            accounts = Accounts(database, sessions, Settings(tenant=self._tenant))
            with database.transaction(self._tenant) as connection:
                row = connection.execute("SELECT id FROM accounts WHERE role = 'admin' LIMIT 1").fetchone()
            assert row is not None
            administrator = Identity(account_id=row[0], tenant_id=self._tenant, email="", name="", role=Role.ADMIN)
            for name, email, role, user_group in people:
                accounts.invite(administrator, email, name, role, user_group)

    def stop(self) -> None:
        """As Ctrl-C does."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join(5)
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()

    def _database(self) -> Opened:
        return Opened(start_server(self._data_dir))

    def _states(self, database: Database) -> list[str]:
        with database.transaction(self._tenant) as connection:
            return [row[0] for row in connection.execute("SELECT status FROM documents").fetchall()]

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)


class Application(Product):
    """One of several processes on a database that it does not start itself."""

    def __init__(self, folder: Path, primary: EmbeddedServer, **variables: str) -> None:
        super().__init__(folder / "data", RAG_WORKER="false", **variables)
        self._primary = primary
        #: What all its workers print.
        self.worker_log = folder / "worker.log"

    def start_worker(self) -> subprocess.Popen[bytes]:
        with self.worker_log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "rag", "worker"],
                cwd=PROJECT, env={**self._environment, "RAG_WORKER": "true"}, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _database(self) -> Opened:
        return Opened(self._primary, is_ours=False)


class Opened:
    """The database of a running server, opened for a moment."""

    def __init__(self, server: EmbeddedServer, *, is_ours: bool = True) -> None:
        self._server = server
        self._is_ours = is_ours
        self._database = Database(server.application, sealing_key(server.owner), maximum_connections=4)

    def __enter__(self) -> Database:
        self._database.open()
        return self._database

    def __exit__(self, *_: object) -> None:
        self._database.close()
        if self._is_ours:
            self._server.stop()  # else the product that is stopped leaves the database to this process
