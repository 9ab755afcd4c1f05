"""Three applications behind nginx, two workers, PgBouncer and a primary with two standbys, as processes of one machine.

    python -m benchmarks.machines

Tries what several machines have to do together, and what happens when one of them is lost. The applications reach the
primary through PgBouncer in transaction mode and read from the standbys; they share the folder of originals, as a
network file system would. nginx sends a session always to the same application, and calls with a key to any. Needs
nginx and pgbouncer on the path; exits with 1 if anything is lost or not told.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
from psycopg.conninfo import conninfo_to_dict

from benchmarks.product import Application, free_port
from benchmarks.readers import QUESTIONS
from benchmarks.streamlit_client import Person
from rag.storage.embedded_postgres import EmbeddedServer, start_server
from tests.standins.providers import ProviderStandin
from tests.standins.standby import ACCOUNT, StandbyServer, as_url, make_standby

APPLICATIONS, WORKERS, PEOPLE, DOCUMENTS, SEARCHES = 3, 2, 12, 12, 300
#: Within this time a lost machine may show, as errors that say so.
RECOVERY_SECONDS = 30.0

PGBOUNCER = """
[databases]
postgres = host={sockets} port=5432 dbname={name}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
logfile = {folder}/pgbouncer.log
log_connections = 0
log_disconnections = 0
pidfile = {folder}/pgbouncer.pid
ignore_startup_parameters = extra_float_digits,options
"""
NGINX = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 2048; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream pages {{ hash $cookie_hr_session consistent; {servers} }}
  upstream calls {{ least_conn; {servers} }}
  map $http_authorization $to {{ default calls; "" pages; }}
  map $http_upgrade $connection_upgrade {{ default upgrade; "" close; }}
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 60m;
    location / {{
      proxy_pass http://$to;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_buffering off;
      proxy_read_timeout 1h;
      add_header X-Served-By $upstream_addr always;
    }}
  }}
}}
"""


@contextlib.contextmanager
def pgbouncer(folder: Path, primary: EmbeddedServer) -> Iterator[int]:
    """Run PgBouncer before the primary; yields its port."""
    folder.mkdir()
    parts, port = conninfo_to_dict(primary.application), free_port()
    (folder / "users.txt").write_text(f'"{parts["user"]}" "{parts["password"]}"\n')
    text = PGBOUNCER.format(folder=folder, sockets=parts["host"], name=parts["dbname"], port=port)
    (folder / "pgbouncer.ini").write_text(text)
    if ACCOUNT:
        for path in (folder, *folder.iterdir()):
            os.chown(path, ACCOUNT.pw_uid, ACCOUNT.pw_gid)
    with process("pgbouncer", "-q", folder / "pgbouncer.ini", as_account=True):
        yield port


@contextlib.contextmanager
def nginx(folder: Path, port: int, applications: list[Application]) -> Iterator[None]:
    folder.mkdir()
    servers = " ".join(f"server {application.address} max_fails=1 fail_timeout=2s;" for application in applications)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, servers=servers))
    with process("nginx", "-e", folder / "error.log", "-c", folder / "nginx.conf"):
        yield


@contextlib.contextmanager
def process(program: str, *arguments: object, as_account: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        raise SystemExit(f"{program} is not installed.")
    account = {"user": ACCOUNT.pw_uid, "group": ACCOUNT.pw_gid} if as_account and ACCOUNT else {}
    running = subprocess.Popen([found, *map(str, arguments)], cwd="/", **account)  # type: ignore[call-overload]
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(10)


class Trial:
    """What is tried, and what went wrong in it."""

    def __init__(self, address: str, applications: list[Application], cookies: list[str], key: str) -> None:
        self._address, self._applications, self._cookies = address, applications, cookies
        self._client = httpx.AsyncClient(
            base_url=f"http://{address}", headers={"Authorization": f"Bearer {key}"}, timeout=60
        )
        self.faults: list[str] = []

    async def run(self, standby: StandbyServer) -> None:
        await self._uploads()
        await self._searches("all are there")
        await self._chats("all are there")
        self._applications[0].kill()
        await self._searches("an application is killed")
        await self._chats("an application is killed")
        standby.stop()
        await self._searches("a standby is killed")
        await self._client.aclose()

    async def _uploads(self) -> None:
        started = time.monotonic()
        collections = (await self._client.get("/api/collections")).json()["collections"]
        path = f"/api/collections/{next(one['id'] for one in collections if one['profile'] == 'hr')}/documents"
        for number in range(DOCUMENTS):
            text = f"Machine {number} of the trial\n\nThe code word of machine {number} is quill{number}."
            answer = await self._client.post(
                path, files={"file": (f"machine-{number}.md", text.encode(), "text/markdown")}
            )
            if answer.status_code not in (200, 201, 202):
                self.faults.append(f"upload {number}: {answer.status_code} {answer.text[:200]}")
                continue
            await self._confirm(f"/api/documents/{answer.json()['id']}")
        missing = set(range(DOCUMENTS))
        while missing and time.monotonic() - started < 120:
            for number in sorted(missing):
                found = await self._client.post("/api/rag/search", json={"query": f"code word of machine {number}"})
                if f"quill{number}." in found.text:
                    missing.discard(number)
        self.faults += [f"document {number} was not found" for number in missing]
        print(f"{DOCUMENTS} documents by key through nginx: all found after {time.monotonic() - started:.1f} s")

    async def _confirm(self, document: str) -> None:
        """Wait for the estimate of a document, which a worker makes, and accept it."""
        for _ in range(300):
            status = (await self._client.get(document)).json()["status"]
            if status == "estimated":
                await self._client.post(f"{document}/confirm")
            if status in ("estimated", "completed", "failed"):
                return
            await asyncio.sleep(0.1)
        self.faults.append(f"{document} stayed {status}")

    async def _searches(self, when: str) -> None:
        served: Counter[str] = Counter()
        refused: Counter[str] = Counter()
        last_refusal, started = 0.0, time.monotonic()

        async def search(number: int) -> None:
            nonlocal last_refusal
            machine = number % DOCUMENTS
            try:
                answer = await self._client.post(
                    "/api/rag/search", json={"query": f"What is the code word of machine {machine}?"}
                )
            except httpx.HTTPError as exc:
                self.faults.append(f"{when}: {exc!r}")
                return
            if answer.status_code == 200 and f"quill{machine}." in answer.text:
                served[answer.headers["x-served-by"].split(", ")[-1]] += 1
            elif answer.status_code in (502, 503, 504):
                refused[str(answer.status_code)] += 1
                last_refusal = time.monotonic() - started
            else:
                self.faults.append(f"{when}: {answer.status_code} {answer.text[:200]}")

        for first in range(0, SEARCHES, 10):
            await asyncio.gather(*(search(number) for number in range(first, first + 10)))
        seconds = time.monotonic() - started
        if last_refusal > RECOVERY_SECONDS:
            self.faults.append(f"{when}: refused for {last_refusal:.0f} s")
        shares = "/".join(str(served[application.address]) for application in self._applications)
        speed = f"{SEARCHES / seconds:.0f} a second"
        print(f"{SEARCHES} searches, {when}: {speed}, by application {shares}, refused {dict(refused)}")

    async def _chats(self, when: str) -> None:
        answered = 0

        async def chat(number: int) -> None:
            nonlocal answered
            last = ""
            for _ in range(3):  # a tab that lost its server is opened again by its page
                person = Person(self._address, self._cookies[number])
                try:
                    await person.open()
                    async for text in person.ask(QUESTIONS[number % len(QUESTIONS)]):
                        last = text
                    await person.close()
                except Exception as exc:  # what was lost is asked again, as a person would
                    last = repr(exc)
                    await asyncio.sleep(1)
                    continue
                answered += 1
                return
            self.faults.append(f"{when}: a page has no answer: {last[:200]}")

        started = time.monotonic()
        await asyncio.gather(*(chat(number) for number in range(PEOPLE)))
        print(f"{PEOPLE} people ask on the page, {when}: {answered} answered within {time.monotonic() - started:.1f} s")


def make_key(application: Application, address: str, cookie: str) -> str:
    """A key for programs, as an administrator makes it."""
    from rag.access.api_keys import ApiKeys
    from rag.access.sessions import Sessions

    with application._database() as database:
        identity = Sessions(database).find(cookie.partition("=")[2])
        assert identity is not None
        _, secret = ApiKeys(database).create(
            identity,
            "Trial",
            scopes=["chat", "search", "documents:read", "documents:write"],
            requests_per_minute=100_000,
        )
        return secret


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="machines-", ignore_cleanup_errors=True) as name,
        ProviderStandin() as standin,
        contextlib.ExitStack() as stack,
    ):
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "data").mkdir()
        standin.delays = {"embeddings": 0.15, "rerank": 0.3, "chat": 0.8}
        primary = start_server(folder / "primary")
        stack.callback(primary.stop)
        standbys = [make_standby(folder / f"standby{n}", primary.superuser, primary.application) for n in (1, 2)]
        for standby in standbys[1:]:
            stack.callback(standby.stop)
        pooled = stack.enter_context(pgbouncer(folder / "pgbouncer", primary))
        parts, front = conninfo_to_dict(primary.application), free_port()
        applications = [
            Application(
                folder, primary,
                DATABASE_URL=f"postgresql://{parts['user']}:{parts['password']}@127.0.0.1:{pooled}/postgres",
                MIGRATION_DATABASE_URL=as_url(primary.owner),
                DATABASE_READ_URLS=",".join(as_url(standby.application) for standby in standbys),
                RAG_PUBLIC_URL=f"http://127.0.0.1:{front}",
                RAG_DATABASE_POOLED="true", OPENAI_API_KEY="trial", OPENAI_BASE_URL=standin.openai_url,
            )
            for _ in range(APPLICATIONS)
        ]  # fmt: skip
        for worker in [applications[0].start_worker() for _ in range(WORKERS)]:
            stack.callback(worker.wait, 30)
            stack.callback(worker.terminate)
        for application in applications:
            application.start(timeout_seconds=300)
            stack.callback(application.stop)
        stack.enter_context(nginx(folder / "nginx", front, applications))
        cookies = applications[0].sign_in_people(PEOPLE)
        key = make_key(applications[0], f"127.0.0.1:{front}", applications[0].sign_in_admin())
        trial = Trial(f"127.0.0.1:{front}", applications, cookies, key)
        asyncio.run(trial.run(standbys[0]))
        for fault in trial.faults:
            print(f"  {fault}")
        return 1 if trial.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
