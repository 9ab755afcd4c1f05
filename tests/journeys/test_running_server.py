"""`ask` and `search` in the running server of their data folder: processes of their own, on the test's database."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.commands.listener import CommandListener
from rag.commands.questions import WithoutBold
from rag.commands.running_server import SERVER_ENDED, digest_of, socket_path
from rag.services import Services, assemble
from rag.settings import load_settings
from rag.storage.database import Database
from rag.types import Collection, UploadOptions
from tests import hostile
from tests.forked import kill
from tests.journeys.test_lifecycle import running, wait_until, with_model
from tests.patience import patient
from tests.standins.providers import ProviderStandin, many_words

PROJECT = Path(__file__).resolve().parents[2]
QUESTION = "By rule 7.7, at what time closes office 49?"
#: Runs a command as `python -m rag` does, and writes down which modules it has imported.
PROBE = """
import atexit, os, runpy, sys
modules = os.environ.pop("MODULES")
atexit.register(lambda: open(modules, "w").write(" ".join(sys.modules)))
runpy.run_module("rag", run_name="__main__", alter_sys=True)
"""


class Commands:
    """Starts `python -m rag ...` with the settings that the server has, and others where they are given."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.environment = environment
        self._modules = folder / "modules"

    def start(self, *arguments: str, **others: str) -> subprocess.Popen[str]:
        self._modules.unlink(missing_ok=True)
        return subprocess.Popen(
            [sys.executable, "-c", PROBE, *arguments], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**self.environment, "MODULES": str(self._modules), **others},
        )  # fmt: skip

    def run(self, *arguments: str, **others: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **others)
        out, err = process.communicate(timeout=patient(120))
        return process.returncode, out, err

    @property
    def worked_by_itself(self) -> bool:
        """Whether the last command put services together."""
        loaded = set(self._modules.read_text().split())
        assert "rag.commands.questions" in loaded
        return bool(loaded & {"rag.services", "psycopg", "openai", "numpy", "pydantic"})


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a path that is short enough for a socket."""
    return tmp_path_factory.mktemp("d")


@pytest.fixture
def commands(
    database: Database, owner_conninfo: str, folder: Path, tmp_path: Path, provider_standin: ProviderStandin
) -> Commands:
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        "DATABASE_URL": database.conninfo,
        "MIGRATION_DATABASE_URL": owner_conninfo,
        "RAG_DATA_DIR": str(folder),
        "RAG_BUILTIN_EMBEDDER": "lexical",
        "RAG_SAMPLES": "false",
        **with_model(provider_standin),
    }
    return Commands(environment, tmp_path)


@pytest.fixture
def parts(commands: Commands, database: Database, owner_conninfo: str, collection: Collection) -> Iterator[Services]:
    made = assemble(load_settings(commands.environment), database, owner_conninfo=owner_conninfo)
    made.pipeline.process_document(
        file=hostile.long_document(12),
        file_name="rules.pdf",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    yield made
    made.close()


def listening(parts: Services) -> CommandListener:
    started = CommandListener(parts, digest_of(parts.settings))
    started.start()
    path = socket_path(parts.settings.data_dir)
    assert path is not None
    wait_until(path.exists)
    return started


@pytest.fixture
def listener(parts: Services) -> Iterator[CommandListener]:
    started = listening(parts)
    yield started
    started.stop()


def outcomes(parts: Services) -> list[str]:
    with parts.database.transaction("demo") as connection:
        rows = connection.execute("SELECT outcome FROM chat_logs ORDER BY created_at").fetchall()
    return [str(row[0]) for row in rows]


def test_a_command_does_the_same_in_the_server_as_by_itself(
    commands: Commands, parts: Services, listener: CommandListener
) -> None:
    for arguments in (
        ("ask", QUESTION),
        ("search", QUESTION, "--top-k", "2"),
        ("search", QUESTION, "--collection", "Nothing"),
        ("search", QUESTION, "--threshold", "2"),
    ):
        there = commands.run(*arguments)
        assert not commands.worked_by_itself, arguments
        # The server runs with other settings than these, and must not spend money by them.
        here = commands.run(*arguments, COHERE_TIMEOUT_SECONDS="9")
        assert commands.worked_by_itself, arguments
        assert there == here
        assert here[0] in (0, 1)
    assert outcomes(parts)[:2] == ["answered", "answered"]


def test_settings_of_the_server_alone_do_not_matter(commands: Commands, listener: CommandListener) -> None:
    commands.run("search", QUESTION, PORT="8777", RAG_WORKER="false", RAG_LOG_FORMAT="json")
    assert not commands.worked_by_itself


def test_an_answer_comes_as_it_is_written_and_ctrl_c_stops_it_in_the_server(
    commands: Commands, parts: Services, listener: CommandListener, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply(f"Office 49 closes at 18:49 [1]. {many_words(600)}")
    provider_standin.token_interval_seconds = 0.1
    process = commands.start("ask", QUESTION)
    assert process.stdout is not None
    assert process.stdout.read(9) == "Office 49"
    assert provider_standin.usages == []  # it is still being written
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=patient(30))
    assert process.returncode == 130
    assert not commands.worked_by_itself
    wait_until(lambda: outcomes(parts) == ["stopped"])


def test_a_server_that_stops_in_the_middle_is_named(
    commands: Commands, parts: Services, listener: CommandListener, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply(f"Office 49 closes at 18:49 [1]. {many_words(600)}")
    provider_standin.token_interval_seconds = 0.1
    process = commands.start("ask", QUESTION)
    assert process.stdout is not None
    assert process.stdout.read(9) == "Office 49"
    listener.stop()
    _, err = process.communicate(timeout=patient(30))
    assert (process.returncode, err) == (1, f"{SERVER_ENDED}\n")
    assert outcomes(parts) == ["stopped"]
    assert not (parts.settings.data_dir / "commands" / "socket").exists()


def test_only_the_owner_may_reach_the_socket(parts: Services, folder: Path) -> None:
    (folder / "commands").mkdir(mode=0o755)
    listener = listening(parts)
    try:
        modes = {path: stat.S_IMODE((folder / path).stat().st_mode) for path in ("commands", "commands/socket")}
    finally:
        listener.stop()
    assert modes == {"commands": 0o700, "commands/socket": 0o600}


def test_the_socket_of_a_killed_server_is_passed_over_and_replaced(
    commands: Commands, parts: Services, folder: Path
) -> None:
    (folder / "commands").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "commands" / "socket"))
    assert commands.run("search", QUESTION)[0] == 0
    assert commands.worked_by_itself
    listener = CommandListener(parts, digest_of(parts.settings))
    listener.start()
    try:
        wait_until(lambda: commands.run("search", QUESTION)[0] == 0 and not commands.worked_by_itself)
    finally:
        listener.stop()


def test_of_two_servers_the_first_listens_until_it_ends(
    commands: Commands, parts: Services, listener: CommandListener
) -> None:
    second = CommandListener(parts, "of other settings")
    second.start()
    try:
        commands.run("search", QUESTION)
        assert not commands.worked_by_itself
        listener.stop()
        path = socket_path(parts.settings.data_dir)
        assert path is not None
        wait_until(path.exists)
        assert commands.run("search", QUESTION)[0] == 0
        assert commands.worked_by_itself
    finally:
        second.stop()


def test_a_path_too_long_for_a_socket_is_none() -> None:
    assert socket_path(Path("/data")) == Path("/data/commands/socket")
    assert socket_path(Path("/", "d" * 90)) is None


@pytest.mark.parametrize("request_line", [b"", b"\n", b"[]\n", b"{}\n", b'{"command": "serve", "options": {}}\n'])
def test_what_is_no_command_is_refused(listener: CommandListener, folder: Path, request_line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(folder / "commands" / "socket"))
        client.sendall(request_line)
        client.shutdown(socket.SHUT_WR)
        assert client.makefile().read() == '{"is_taken": false}\n'


def test_a_killed_server_is_named_and_then_done_without(
    commands: Commands, parts: Services, provider_standin: ProviderStandin
) -> None:
    data = parts.settings.data_dir
    with running("serve", data, "Ctrl-C stops everything", **commands.environment) as served:
        whole = commands.run("ask", QUESTION)
        assert whole[0] == 0
        assert not commands.worked_by_itself
        provider_standin.reply(f"Office 49 closes at 18:49 [1]. {many_words(600)}")
        provider_standin.token_interval_seconds = 0.1
        process = commands.start("ask", QUESTION)
        assert process.stdout is not None
        assert process.stdout.read(9) == "Office 49"
        kill(served.process)
        served.process.wait()
        _, err = process.communicate(timeout=patient(30))
        assert (process.returncode, err) == (1, f"{SERVER_ENDED}\n")
    provider_standin.reset()
    assert commands.run("ask", QUESTION) == whole
    assert commands.worked_by_itself


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["“Leave is **27 days** a year.” [1]"], "“Leave is 27 days a year.” [1]"),
        (["Leave is *", "*27 days*", "* a year, *", " roughly", " *"], "Leave is 27 days a year, * roughly *"),
        (["*", "*", "27 days**"], "27 days"),
    ],
)
def test_an_answer_in_a_terminal_has_no_marks_of_bold_text(pieces: list[str], text: str) -> None:
    unmarked = WithoutBold()
    assert "".join([*map(unmarked.next, pieces), unmarked.held]) == text
