"""The commands of docs/supabase.md and docs/oidc.md, from nothing to the first answer, with stand-ins."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag.settings import environment_names
from tests.doc_blocks import PROJECT, blocks
from tests.patience import patient
from tests.standins.supabase import ANON, SERVICE, SupabaseStandin

QUESTION = "How many days of annual leave do full-time employees have?"
PASSWORD = "paper-and-linen-thread-7"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(folder: Path, port: int, **more: str) -> dict[str, str]:
    """Nothing of ours but a folder and a port; `python` is this one."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    (programs / "python").chmod(0o755)
    ours = environment_names()
    return {
        **{name: value for name, value in os.environ.items() if name not in ours},
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
        "RAG_DATA_DIR": str(folder / "data"),
        "PORT": str(port),
        **more,
    }


@contextmanager
def typed(script: str, variables: dict[str, str]) -> Iterator[str]:
    """The commands typed one after the other, until the last one serves; all they printed until then."""
    process = subprocess.Popen(
        ["sh", "-e", "-c", script.replace("python -m rag serve", "exec python -m rag serve")],
        cwd=PROJECT,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        seen = ""
        for line in process.stdout:
            seen += line
            if "Ctrl-C stops everything" in line:
                break
        else:
            pytest.fail(seen)
        yield seen
    finally:
        process.terminate()
        process.communicate(timeout=patient(30))


def send(client: httpx.Client, path: str, **values: str) -> httpx.Response:
    """Open a form and send it filled in, as a browser does."""
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', client.get(path).text))
    origin = f"{client.base_url.scheme}://{client.base_url.netloc.decode()}"
    return client.post(urlsplit(path).path, data={**hidden, **values}, headers={"origin": origin})


def answer_to(client: httpx.Client, question: str) -> str:
    """Asked until the sample documents are ready."""
    deadline = time.monotonic() + patient(120)
    while time.monotonic() < deadline:
        told = client.post("/api/rag/chat", json={"query": question, "collection": "HR documents"}).json()
        if told.get("sources"):
            return str(told["answer"])
        time.sleep(0.2)
    raise AssertionError(told)


def as_url(conninfo: str) -> str:
    parts = conninfo_to_dict(conninfo)
    query = urlencode({"host": parts["host"], "port": parts["port"]})
    return f"postgresql://{parts['user']}:{quote(str(parts['password']))}@/{parts['dbname']}?{query}"


def test_from_an_empty_supabase_project_to_the_first_answer(project: str, standin: SupabaseStandin) -> None:
    script = "\n".join(block.text for block in blocks("docs/supabase.md", "bash") if block.with_standin)
    address = re.search(r"postgresql://[^\"]+", script)
    assert address is not None
    for placeholder, value in (
        (address[0], as_url(project)),
        ("https://REF.supabase.co", standin.url),
        ('ANON_KEY="..."', f'ANON_KEY="{ANON}"'),
        ('SERVICE_ROLE_KEY="..."', f'SERVICE_ROLE_KEY="{SERVICE}"'),
    ):
        assert placeholder in script
        script = script.replace(placeholder, value)
    port = free_port()
    with (
        tempfile.TemporaryDirectory(prefix="hr-docs-", ignore_cleanup_errors=True) as folder,
        typed(script, environment(Path(folder), port, RAG_DATABASE_POOLED="true")) as printed,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=patient(30)) as browser,
    ):
        assert "private bucket documents" in printed
        link = re.search(r"(/welcome\?token=\S+)", printed)
        assert link is not None
        assert send(browser, link[1], email="a@example.com", name="A", password=PASSWORD).status_code == 303
        assert "27" in answer_to(browser, QUESTION)
    assert standin.objects
    with psycopg.connect(make_conninfo(project)) as connection:
        assert connection.execute("SELECT count(*) > 0 FROM document_chunks").fetchone() == (True,)


def test_the_lines_of_single_sign_on_lead_to_a_session(issuer: str) -> None:
    (block,) = blocks("docs/oidc.md", "bash")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    script = block.text.replace("https://accounts.google.com", issuer).replace("https://hr.example.com", address)
    script = script.replace('CLIENT_ID="..."', 'CLIENT_ID="hr"').replace('SECRET="..."', 'SECRET="a secret"')
    assert "..." not in script
    httpx.put(f"{issuer}/users/p", json={"email": "p@example.com", "email_verified": True}).raise_for_status()
    with (
        tempfile.TemporaryDirectory(prefix="hr-docs-", ignore_cleanup_errors=True) as folder,
        typed(script, environment(Path(folder), port, RAG_SAMPLES="false")),
        httpx.Client(base_url=address, timeout=patient(30)) as browser,
    ):
        assert "Sign in with Google" in browser.get("/login").text
        away = browser.get("/sso/start").headers["location"]
        back = httpx.post(away, data={"sub": "p"}).headers["location"]
        assert browser.get(back).status_code == 303
        assert browser.get("/api/me").json()["email"] == "p@example.com"
