"""Every fenced block of README and docs is tried: commands are run, code is executed, proxies really proxy."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psycopg
import pytest

from benchmarks.product import Product, free_port
from benchmarks.streamlit_client import Person
from rag.__main__ import command_line
from rag.access.api_keys import ApiKeys
from rag.errors import PackagesMissing
from rag.services import program_of
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import start_server
from tests.conftest import fast_folder
from tests.doc_blocks import PAGES, PROJECT, blocks
from tests.forked import forked_python
from tests.patience import patient
from tests.standins.providers import ProviderStandin, many_words

LANGUAGES = {"sh", "bash", "python", "sql", "nginx", "caddyfile", "text", "json", "jsonl", "toml"}
#: What no test runs, by page: a block more or less has to be noted here, with its reason in the page.
NOT_RUN = {
    "README.md": 2, "docs/notice_board.md": 1, "docs/evaluation.md": 2, "docs/migrating_from_pinecone.md": 2,
    "docs/operations.md": 1, "docs/supabase.md": 2, "docs/integrations.md": 1,
}  # fmt: skip
#: `bash` marks what needs somebody else's service. It is run with a stand-in, by the test named.
WITH_STANDINS = {"docs/supabase.md": 3, "docs/oidc.md": 1}


#: What each block of shell and Python that is run says, in their order: patterns that its output has to hold. A new
#: block needs its own here.
SAYS: dict[str, list[list[str]]] = {
    "README.md": [
        [r"27 days of annual leave"],
        # The sample handbook's own sentence on annual leave, found first.
        [
            r'"results":\[\{"postId":"[^"]+","title":"Employee handbook"',
            r"27 days of annual leave",
            r'"total":[1-9]',
        ],
        # The Dutch sample policy: number, title, page and passage of each citation.
        [r"(?m)^1 Verlofbeleid \d+ .", r"vakantie"],
    ],
    "docs/migrating_from_pinecone.md": [
        [],
        [r"1 document with 2 passages to import", r"\$0\.0000"],
        [r"(?m)^Travel: completed, 2 passages$"],
        [
            r"(?m)^collection    HR documents,",
            r"Train tickets are booked in second class\.",
            r"within 30 days\W+ \[1\]",
        ],
    ],
    "docs/integrations.md": [[r"27 days of annual leave", r"(?m)^Employee handbook, p\. \d+ http"]],
    "docs/operations.md": [
        [r"hr-assistant\.tar: [1-9]\d* documents, [1-9]\d* originals", r"restored: [1-9]\d* documents"],
        [r"^age1\w{58}$"],
        [
            r"acme is created\. This link creates its first administrator",
            r"(?m)^acme +Acme +active$",
            r"acme is suspended\.",
            r"acme is active again\.",
            r"acme\.zip: [1-9]\d* rows of [1-9]\d* tables",
            r"acme is deleted\.",
            r"Nothing is left\.",
        ],
        [r"(?m)^ok +Database: The built-in database answers", r"(?m)^ok +Documents: ", r"The product works\."],
    ],
}
#: The same of the rows of statements that ask the product's database, written as Python writes them.
ROWS: dict[str, list[list[str]]] = {
    "docs/operations.md": [
        [r"'ottermere_handbook\.pdf', 'completed', [1-9]", r"\(UUID\('[^']+'\), [1-9]\d*, True\)"],
        # A passage is the nearest to its own vector.
        [r"(0\.99|1\.0)\d*\)"],
    ],
}


SCOPES = ["chat", "search", "documents:read", "documents:write"]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is(page: str) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES
    fences = re.findall(r"^ *```", (PROJECT / page).read_text("utf-8"), re.M)
    assert len(fences) == 2 * len(blocks(page))


@pytest.mark.parametrize("page", PAGES)
def test_what_is_not_run_is_marked_and_counted(page: str) -> None:
    """Nothing is left out silently: a block is run as it is, with a stand-in, or says in the page why it is not."""
    found = blocks(page, "sh", "bash", "python", "sql", "nginx", "caddyfile")
    assert len([block for block in found if not block.is_run]) == NOT_RUN.get(page, 0)
    assert len([block for block in found if block.with_standin]) == WITH_STANDINS.get(page, 0)
    assert [block for block in found if block.language == "bash" and block.is_run and not block.with_standin] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_ours_exists_with_its_options(page: str) -> None:
    parser = command_line()
    text = "\n".join(block.text for block in blocks(page, "sh", "bash")).replace("\\\n", " ")
    for line in text.splitlines():
        if found := re.search(r"python3? -m rag (.*)", line):
            with suppress(SystemExit):
                parser.parse_args(shlex.split(found[1], comments=True))
                continue
            pytest.fail(f"{page} has a command that is none: {line}")


def test_the_list_of_commands_is_complete() -> None:
    listed = (PROJECT / "docs" / "commands.md").read_text("utf-8")
    actions = [action for action in command_line()._actions if action.choices]
    for name in actions[0].choices or ():
        assert f"`{name}`" in listed, name


# With the running product


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    """A data folder outside pytest's own, for the reason given at the fixture `server`."""
    with tempfile.TemporaryDirectory(prefix="hr-docs-", dir=fast_folder(), ignore_cleanup_errors=True) as folder:
        yield Path(folder) / "data"


@pytest.fixture(scope="module")
def running(data: Path) -> Iterator[Product]:
    """The product with its samples, on the built-in database."""
    product = Product(data)
    product.start()
    yield product
    product.stop()


@pytest.fixture(scope="module")
def secret(running: Product, data: Path) -> Iterator[str]:
    """An API key for everything that the documents do with one."""
    server = start_server(data)
    database = Database(server.application, sealing_key(server.owner))
    database.open()
    yield ApiKeys(database).create(
        program_of("demo"), "Documents", ["chat", "search", "documents:read", "documents:write"]
    )[1]
    database.close()
    server.stop()


@pytest.fixture(scope="module")
def shell(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which `python` is this one."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("python", "python3"):
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(forked_python())} "$@"\n')
        (folder / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT),
        "RAG_DATA_DIR": str(data),
    }


@pytest.mark.parametrize("page", [page for page in PAGES if any(b.is_run for b in blocks(page, "sh", "python"))])
def test_the_commands_and_the_code_of_a_page_run_in_their_order(
    page: str, running: Product, secret: str, shell: dict[str, str]
) -> None:
    with tempfile.TemporaryDirectory(prefix="hr-docs-", dir=fast_folder(), ignore_cleanup_errors=True) as folder:
        run_in_order(page, Path(folder), running, secret, shell)


@pytest.mark.parametrize("page", PAGES)
def test_it_is_noted_what_each_block_that_is_run_says(page: str) -> None:
    run = [block for block in blocks(page, "sh", "python") if block.is_run]
    assert len(SAYS.get(page, [])) == len(run)


def run_in_order(page: str, folder: Path, running: Product, secret: str, shell: dict[str, str]) -> None:
    run = [block for block in blocks(page, "sh", "python") if block.is_run]
    lacks = set()
    for block, says in zip(run, SAYS[page], strict=True):
        text = block.text.replace("http://localhost:8501", running.url).replace("rag_YOUR_KEY", secret)
        if text.startswith("curl ") and shutil.which("curl") is None:
            lacks.add("curl")
            continue
        command = ["sh", "-e", "-c", text] if block.language == "sh" else [*forked_python(), "-c", text]
        done = subprocess.run(
            command, cwd=folder, env=shell, capture_output=True, text=True, timeout=patient(120), check=False
        )
        if str(PackagesMissing()) in done.stderr:
            lacks.add("a package of an integration")
            continue
        assert done.returncode == 0, f"{page}:\n{text}\n{done.stdout}\n{done.stderr}"
        assert done.stdout or "cat >" in text, f"{page} has a command that says nothing:\n{text}"
        for pattern in says:
            assert re.search(pattern, done.stdout), f"{page}:\n{text}\ndoes not say {pattern}, but:\n{done.stdout}"
    if lacks:
        pytest.skip(f"{', '.join(sorted(lacks))} is not installed; the other commands ran")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sql")])
def test_the_statements_of_a_page_run(page: str, running: Product, data: Path) -> None:
    server = start_server(data)
    try:
        with psycopg.connect(server.superuser, autocommit=True) as connection:
            name = "docs_statements"
            connection.execute(f"CREATE DATABASE {name}")
        asking = iter(ROWS.get(page, []))
        for block in blocks(page, "sql"):
            # What sets a server up is tried on an empty database, what asks on the product's.
            is_setup = "CREATE " in block.text
            if "CREATE ROLE" in block.text:
                text = block.text.replace("rag_", "docs_").replace("DATABASE hr", "DATABASE docs_hr")
                with psycopg.connect(server.superuser, autocommit=True) as connection:
                    for statement in filter(str.strip, text.split(";")):
                        connection.execute(statement)
                continue
            conninfo = psycopg.conninfo.make_conninfo(server.superuser, dbname=name) if is_setup else server.owner
            with psycopg.connect(conninfo, autocommit=True) as connection:
                rows: list[tuple[object, ...]] = []
                for statement in filter(str.strip, block.text.split(";")):
                    cursor = connection.execute(statement)
                    rows += cursor.fetchall() if statement.lstrip().startswith("SELECT") else []
            for pattern in [] if is_setup else next(asking):
                assert re.search(pattern, "\n".join(map(repr, rows))), f"{block.text}\ndoes not find {pattern}: {rows}"
        assert list(asking) == []
    finally:
        server.stop()


# Behind a proxy


@contextmanager
def nginx(folder: Path, block: str, port: int, target: str) -> Iterator[None]:
    account = "user root;" if os.geteuid() == 0 else ""
    paths = " ".join(f"{name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(
        f"{account} pid {folder}/pid; error_log {folder}/error.log; daemon off; events {{}}\n"
        f"http {{ access_log off; {paths} server {{ listen 127.0.0.1:{port};\n"
        f"{block.replace('http://127.0.0.1:8501', target)} }} }}"
    )
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    with _process([program, "-p", str(folder), "-c", str(folder / "nginx.conf")], port):
        yield


@contextmanager
def caddy(folder: Path, block: str, port: int, target: str) -> Iterator[None]:
    text = block.replace("hr.example.com", f"http://127.0.0.1:{port}").replace("127.0.0.1:8501", target[7:])
    (folder / "Caddyfile").write_text("{\n\tadmin off\n}\n" + text)
    with _process(["caddy", "run", "--config", str(folder / "Caddyfile")], port):
        yield


@contextmanager
def _process(command: list[str], port: int) -> Iterator[None]:
    home = {**os.environ, "XDG_DATA_HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=home) as process:
        try:
            deadline = time.monotonic() + patient(20)
            while process.poll() is None and time.monotonic() < deadline:
                with suppress(httpx.ConnectError):
                    httpx.get(f"http://127.0.0.1:{port}/api/health", timeout=patient(10))
                    break
                time.sleep(0.05)
            if process.poll() is not None:
                pytest.fail(process.stdout.read() if process.stdout else "it ended")
            yield
        finally:
            process.terminate()


@pytest.mark.parametrize(("program", "language"), [("nginx", "nginx"), ("caddy", "caddyfile")])
def test_pages_uploads_and_streamed_answers_pass_the_proxy_of_the_documents(
    program: str, language: str, tmp_path: Path
) -> None:
    if not (shutil.which(program) or Path(f"/usr/sbin/{program}").exists()):
        pytest.skip(f"{program} is not installed")
    (block,) = blocks("docs/operations.md", language)
    port = free_port()
    public = f"http://127.0.0.1:{port}"
    temporary = tempfile.TemporaryDirectory(prefix="hr-docs-", dir=fast_folder(), ignore_cleanup_errors=True)
    with temporary as outside, ProviderStandin(token_interval_seconds=0.1) as standin:
        standin.reply("Full-time employees have twenty-seven days of annual leave in every year [1]. " + many_words(30))
        data = Path(outside) / "data"
        product = Product(
            data, RAG_PUBLIC_URL=public, OPENAI_API_KEY="sk-test", OPENAI_BASE_URL=standin.openai_url,
            EMBEDDING_MODEL="builtin/lexical@1536",
        )  # fmt: skip
        product.start()
        try:
            cookie = product.sign_in_people(1)[0]
            secret = _key(data)
            folder = tmp_path / "proxy"
            folder.mkdir()
            with {"nginx": nginx, "caddy": caddy}[program](folder, block.text, port, product.url):
                asyncio.run(_look_at_a_page(f"127.0.0.1:{port}", cookie))
                headers = {"Authorization": f"Bearer {secret}"}
                with httpx.Client(base_url=public, headers=headers, timeout=patient(60)) as client:
                    _upload(client)
                    _read_stream(client)
        finally:
            product.stop()


def _key(data: Path) -> str:
    server = start_server(data)
    database = Database(server.application, sealing_key(server.owner))
    database.open()
    try:
        return ApiKeys(database).create(program_of("demo"), "Proxy", SCOPES)[1]
    finally:
        database.close()
        server.stop()


async def _look_at_a_page(address: str, cookie: str) -> None:
    """Open the chat as a browser does: by websocket."""
    person = Person(address, cookie)
    await person.open()
    await person.close()
    assert person.errors == []


def _upload(client: httpx.Client) -> None:
    """More than nginx takes by itself (1 MB)."""
    collection = client.get("/api/collections").json()["collections"][0]["id"]
    content = b"Rule of the harbour." + b" " * 2_000_000
    answer = client.post(f"/api/collections/{collection}/documents", files={"file": ("big.txt", content, "text/plain")})
    assert answer.status_code in (200, 201, 202), answer.text


def _read_stream(client: httpx.Client) -> None:
    """Pieces of an answer come when they are written, not together at its end."""
    question = "How many days of annual leave do employees have?"
    body = {"query": question, "collection": "HR documents", "options": {"stream": True}}
    with client.stream("POST", "/api/rag/chat", json=body) as answer:
        assert answer.status_code == 200
        came = list(answer.iter_text())
    lines = "".join(came).splitlines()
    kinds = [json.loads(line[6:])["type"] for line in lines if line.startswith("data: ")]
    assert kinds[-1] == "done"
    assert kinds.count("chunk") > 3
    first = next(text for text in came if '"chunk"' in text)
    assert '"done"' not in first
