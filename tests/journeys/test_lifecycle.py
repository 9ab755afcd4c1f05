"""Processes that are started, told to stop and killed for real: the database comes back, nobody ends another's work."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rag.api.service import SLOW
from rag.errors import DatabaseUnavailable, StorageFull
from rag.services import connect_services, program_of
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import DISK_FULL, STARTING_AGAIN, EmbeddedServer, start_server
from rag.storage.files import FileStore
from rag.types import UploadOptions
from tests.patience import patient
from tests.standins.providers import ProviderStandin, many_words

PROJECT = Path(__file__).resolve().parents[2]
QUESTION = "How many vacation days does every employee get?"
TEXT = "Every employee gets 27 vacation days a year. Unused days lapse at the end of March.\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Running:
    """`python -m rag COMMAND` on a data folder."""

    def __init__(self, command: str, data: Path, **environment: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._lines: Queue[str] = Queue()
        self.said = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rag", command], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env={**os.environ, "RAG_DATA_DIR": str(data), "RAG_SAMPLES": "false", "PORT": str(self.port),
                            "TESSERACT": "none", **environment},
        )  # fmt: skip
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, words: str, seconds: float = 120) -> None:
        deadline = time.monotonic() + patient(seconds)
        while words not in self.said:
            assert time.monotonic() < deadline, self.said
            try:
                self.said += self._lines.get(timeout=0.2)
            except Empty:
                assert self.process.poll() is None, self.said

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(patient(30))

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line)


@contextmanager
def running(command: str, data: Path, ready: str = "", **environment: str) -> Iterator[Running]:
    started = Running(command, data, **environment)
    try:
        if ready:
            started.wait_for(ready)
        yield started
    finally:
        if started.process.poll() is None:
            started.stop(signal.SIGTERM)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A data folder with one document, and a key for programs."""
    folder = tmp_path_factory.mktemp("prepared") / "data"
    parts = connect_services(Settings(data_dir=folder, tesseract="none"))
    try:
        parts.tenants.create("demo", "Demo")
        collection = parts.documents.ensure_collection("demo", "HR", "hr", "builtin/lexical@1536", "en")
        parts.pipeline.process_document(
            file=TEXT.encode() * 3,
            file_name="leave.txt",
            tenant_id="demo",
            collection=collection,
            options=UploadOptions(generate_metadata=False),
        )
        scopes = ("chat", "search", "documents:read", "documents:write")
        key = parts.api_keys.create(program_of("demo"), "Monitor", scopes, requests_per_minute=10_000)[1]
    finally:
        parts.close()
    return folder, key


@pytest.fixture
def data(prepared: tuple[Path, str], tmp_path: Path) -> Path:
    """A copy of it, with the owners of its files."""
    subprocess.run(["cp", "-a", str(prepared[0]), str(tmp_path / "data")], check=True)
    return tmp_path / "data"


@pytest.fixture
def key(prepared: tuple[Path, str]) -> str:
    return prepared[1]


def postmaster(data: Path) -> int | None:
    try:
        process = int((data / "postgres" / "postmaster.pid").read_text().split("\n")[0])
        os.kill(process, 0)
    except (OSError, ValueError):
        return None
    return process


def wait_until(condition: Callable[[], Any], seconds: float = 20) -> None:
    deadline = time.monotonic() + patient(seconds)
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


class Stream:
    """A streamed answer, read by a thread."""

    def __init__(self, url: str, key: str) -> None:
        self.events: list[dict[str, Any]] = []
        self.is_severed = False
        self._url, self._headers = url, {"Authorization": f"Bearer {key}"}
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        return "".join(event["data"] for event in self.events if event["type"] == "chunk")

    def finish(self, seconds: float = 60) -> dict[str, Any]:
        """The last event."""
        self._thread.join(patient(seconds))
        assert not self._thread.is_alive(), self.events
        assert not self.is_severed, self.events
        return self.events[-1]

    def _read(self) -> None:
        body = {"query": QUESTION, "options": {"stream": True}}
        try:
            with httpx.stream(
                "POST", f"{self._url}/api/rag/chat", json=body, headers=self._headers, timeout=patient(60)
            ) as answer:
                for line in answer.iter_lines():
                    if line.startswith("data: "):
                        self.events.append(json.loads(line[6:]))
        except httpx.HTTPError:
            self.is_severed = True


class Monitor:
    """Asks for the health ten times a second, as long as the block lasts."""

    def __init__(self, url: str) -> None:
        self.seen: list[tuple[int, dict[str, Any]]] = []
        self._url, self._stop = url, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Monitor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(patient(30))

    def states(self) -> list[str]:
        return [body["database"]["state"] for _, body in self.seen]

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            answer = httpx.get(f"{self._url}/api/health", timeout=patient(2))
            self.seen.append((answer.status_code, answer.json()))


@pytest.fixture
def slow_model() -> Iterator[ProviderStandin]:
    with ProviderStandin(token_interval_seconds=0.15) as standin:
        standin.reply("Every employee gets 27 vacation days [1]. " + many_words(80))
        yield standin


def with_model(standin: ProviderStandin) -> dict[str, str]:
    return {
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": standin.openai_url,
        "EMBEDDING_MODEL": "builtin/lexical@1536",
    }


def search(served: Running, key: str, seconds: float = 30) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(
        f"{served.url}/api/rag/search", json={"query": QUESTION}, headers=headers, timeout=patient(seconds)
    )


def test_a_killed_database_is_back_in_seconds_and_answers_under_way_go_on(
    data: Path, key: str, slow_model: ProviderStandin
) -> None:
    with running("serve", data, "Ctrl-C stops everything", **with_model(slow_model)) as served:
        stream = Stream(served.url, key)
        wait_until(lambda: stream.text)
        killed = postmaster(data)
        assert killed is not None
        with Monitor(served.url) as monitor:
            os.kill(killed, signal.SIGKILL)
            refused = []
            deadline = time.monotonic() + patient(25)
            while True:
                answer = search(served, key, seconds=3)  # answered or refused, and not waited for
                if answer.status_code == 200 and postmaster(data) not in (None, killed):
                    break
                refused.append(answer)
                assert time.monotonic() < deadline
                time.sleep(0.05)
        for answer in refused:
            if answer.status_code != 200:
                assert (answer.status_code, answer.json()["detail"]) == (503, STARTING_AGAIN)
        assert "down" in monitor.states()
        assert {body["database"].get("sentence") for _, body in monitor.seen} <= {None, STARTING_AGAIN, SLOW}
        assert stream.finish()["type"] == "done"
        assert [stream.text.count(end) for end in ("27 vacation days", "word79")] == [1, 1]
        stored = rows(data, "SELECT m.state, l.outcome FROM messages m JOIN chat_logs l ON l.id = m.chat_log_id")
        assert stored == [("complete", "answered")]
        # The queue goes on as well.
        upload(served, key)
        wait_until(lambda: ("new.txt",) in rows(data, "SELECT file_name FROM documents WHERE status = 'estimated'"), 60)


def upload(served: Running, key: str) -> None:
    with httpx.Client(base_url=served.url, headers={"Authorization": f"Bearer {key}"}, timeout=patient(30)) as client:
        collection = client.get("/api/collections").json()["collections"][0]["id"]
        file = {"file": ("new.txt", b"Parking is free on Sundays.", "text/plain")}
        assert client.post(f"/api/collections/{collection}/documents", files=file).status_code < 300


def rows(data: Path, statement: str) -> list[tuple[Any, ...]]:
    """As the superuser of a server that runs."""
    passwords = json.loads((data / "database-passwords.json").read_text())
    configured = re.search(r"'\"(.*)\"'", (data / "postgres" / "rag.conf").read_text())
    assert configured is not None
    with psycopg.connect(
        host=configured[1],
        user="postgres",
        password=passwords["postgres"],
        dbname="rag",
        connect_timeout=int(patient(5)),
    ) as connection:
        return connection.execute(statement).fetchall()


def test_health_answers_while_the_database_hangs(data: Path) -> None:
    with running("serve", data, "Ctrl-C stops everything") as served:
        process = postmaster(data)
        assert process is not None
        stopped = [process, *children(process)]
        for each in stopped:
            os.kill(each, signal.SIGSTOP)
        try:
            with Monitor(served.url) as monitor:
                wait_until(lambda: {"slow", "down"} <= set(monitor.states()), 30)
        finally:
            for each in stopped:
                os.kill(each, signal.SIGCONT)
        assert monitor.seen[-1][0] == 503
        wait_until(
            lambda: httpx.get(f"{served.url}/api/health", timeout=patient(5)).json()["database"] == {"state": "up"}
        )


def test_an_idle_connection_outlasts_the_pauses_of_proxies_and_programs(data: Path) -> None:
    with running("serve", data, "Ctrl-C stops everything") as served:
        address = httpx.URL(served.url)
        with socket.create_connection((address.host, address.port or 80)) as line:
            line.sendall(f"GET /api/health HTTP/1.1\r\nHost: {address.netloc.decode()}\r\n\r\n".encode())
            assert line.recv(65536).startswith(b"HTTP/1.1 200")
            # uvicorn's own five seconds, and some: what can be read then is the end of the connection.
            line.settimeout(7)
            with pytest.raises(TimeoutError):
                read_to_its_end(line)


def read_to_its_end(line: socket.socket) -> None:
    while line.recv(65536):
        pass


def children(process: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def test_a_stream_gets_its_last_event_when_the_server_is_told_to_stop(
    data: Path, key: str, slow_model: ProviderStandin
) -> None:
    slow_model.reply("Every employee gets 27 vacation days [1]. " + many_words(2000))
    with running("serve", data, "Ctrl-C stops everything", **with_model(slow_model)) as served:
        # As for every default model that a vendor retires soon.
        assert "gpt-4o leaves its provider's API" in served.said or "gpt-4o was to leave" in served.said
        stream = Stream(served.url, key)
        wait_until(lambda: stream.text)
        served.stop(signal.SIGTERM)
        last = stream.finish()
    assert (last["type"], last["code"]) == ("error", "stopped")
    assert "shut down" in last["data"]
    assert postmaster(data) is None
    server = start_server(data)
    try:
        ((state, content, notice),) = rows(data, "SELECT state, content, notice FROM messages WHERE role = 'assistant'")
    finally:
        server.stop()
    assert (state, notice) == ("cut", last["data"])
    assert content.startswith(stream.text.rstrip())


def test_a_second_application_on_the_folder_ends_no_answer_of_the_first(
    data: Path, key: str, slow_model: ProviderStandin
) -> None:
    slow_model.reply("Every employee gets 27 vacation days [1]. " + many_words(600))
    slow_model.token_interval_seconds = 0.3
    with running("serve", data, "Ctrl-C stops everything", **with_model(slow_model)) as first:
        stream = Stream(first.url, key)
        wait_until(lambda: stream.text)
        with running("serve", data, "Ctrl-C stops everything") as second:
            assert search(second, key).status_code == 200
            assert not [event for event in stream.events if event["type"] in ("done", "error")]
            second.stop()
        assert postmaster(data) is not None
        slow_model.token_interval_seconds = 0.0
        last = stream.finish()
        assert (last["type"], last["outcome"], last["state"]) == ("done", "answered", "complete")


@pytest.mark.parametrize("commands", [("worker", "worker"), ("serve", "worker")])
def test_processes_started_together_on_an_empty_folder_share_one_database(
    commands: tuple[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "new"
    with running(commands[0], data) as one, running(commands[1], data) as two:
        for command, process in zip(commands, (one, two), strict=True):
            process.wait_for("Ctrl-C stops everything" if command == "serve" else "Processing documents")
        assert one.stop() in (0, 128 + signal.SIGTERM)
        assert postmaster(data) is not None
        assert two.stop() in (0, 128 + signal.SIGTERM)
        assert postmaster(data) is None


@pytest.fixture
def small_disk(data: Path) -> Iterator[Path]:
    """The folder on a disk of its own with little room."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    disk = data.parent / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m,mode=755", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    try:
        subprocess.run(["cp", "-a", str(data), str(disk / "data")], check=True)
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb") as file:
        try:
            while True:
                file.write(b"x" * 2**20)
                file.flush()
        except OSError:
            pass
    return filler


def test_a_folder_with_a_long_name_leaves_nothing_among_temporary_files(tmp_path: Path) -> None:
    server = start_server(tmp_path / ("long" * 20) / "data")
    # A socket's path may have about a hundred characters.
    socket = Path(str(conninfo_to_dict(server.application)["host"]))
    assert socket.is_dir()
    assert tmp_path not in socket.parents
    server.stop()
    assert not socket.exists()


def test_a_full_disk_is_named_and_the_database_comes_back_when_there_is_room(small_disk: Path) -> None:
    server = start_server(small_disk / "data")
    database = Database(server.application, sealing_key(server.owner), outage=server.outage)
    try:
        database.open()
        filler = fill(small_disk)
        with pytest.raises(DatabaseUnavailable) as refused:
            write_much(server, database)
        assert refused.value.message == DISK_FULL
        with pytest.raises(StorageFull):
            FileStore(small_disk / "files").put("demo", b"x" * 2**22)
        assert not [path for path in (small_disk / "files").rglob("*") if path.is_file()]
        process = postmaster(small_disk / "data")
        if process is not None:
            os.kill(process, signal.SIGKILL)
        wait_until(lambda: outage(database) == DISK_FULL)
        filler.unlink()
        wait_until(lambda: outage(database) == "", 25)
    finally:
        database.close()
        server.stop()


def write_much(server: EmbeddedServer, database: Database) -> None:
    for _ in range(400):
        with database.transaction("demo") as connection:
            connection.execute("UPDATE documents SET message = repeat(md5(random()::text), 50000)")


def outage(database: Database) -> str:
    try:
        with database.transaction("demo") as connection:
            connection.execute("SELECT 1")
    except DatabaseUnavailable as exc:
        return exc.message
    return ""
