"""An hour of mixed use with a fault every minute: no error that nobody is told of, and everything back where it was.

    python -m benchmarks.soak [--minutes 60]

One application, one worker beside it, a primary and a standby of Postgres, and providers that answer as late as real
ones. People chat on the page, programs ask, search and speak MCP, an administrator uploads and deletes documents and
reads the analytics. Each minute one thing goes wrong: a provider refuses, breaks off, hangs or limits; connections to
the database are ended; the primary, the standby or the worker is killed and started again.

An error counts as told when a page draws a sentence, a program gets a status with a sentence, or a stream ends with its
`done` or `error` event. All else is counted, with what it was, and ends the run with status 1; so does memory that grew
by more than 50 MB since the first tenth, or files, threads and connections that did not come back.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
from websockets.exceptions import InvalidStatus

from benchmarks.product import Application
from benchmarks.readers import QUESTIONS
from benchmarks.streamlit_client import Person, frames_of_page
from rag.storage.embedded_postgres import EmbeddedServer, start_server
from tests.standins.providers import ProviderStandin
from tests.standins.standby import StandbyServer, as_url, make_standby

#: What may have been taken up and not given back.
MEMORY_MB, FILES, THREADS, CONNECTIONS = 50, 20, 10, 5
#: A stream or a page that says nothing for so long has stalled.
STALLED_SECONDS = 90.0
TOLD = frozenset({400, 402, 404, 409, 413, 422, 429, 500, 502, 503, 504})


@dataclass
class Tally:
    """What happened, by who did what."""

    done: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    untold: list[str] = field(default_factory=list)

    def note_untold(self, what: str) -> None:
        self.untold.append(f"{time.strftime('%H:%M:%S')} {what}")
        print(f"  NOT TOLD  {self.untold[-1]}", flush=True)


class Soak:
    """Everybody at work, and what goes wrong beside them."""

    def __init__(
        self, product: Application, primary: EmbeddedServer, standby: StandbyServer, standin: ProviderStandin
    ) -> None:
        self._product, self._primary, self._standby, self._standin = product, primary, standby, standin
        self.tally = Tally()
        self._worker = product.start_worker()
        self._is_over = asyncio.Event()
        self._cookies: list[str] = []
        self._admin = ""
        self._random = random.Random(1)
        self.samples: list[dict[str, int]] = []

    async def run(self, minutes: float, *, pause_seconds: float = 60.0) -> None:
        self._cookies = await asyncio.to_thread(self._product.sign_in_people, 4)
        self._admin = await asyncio.to_thread(self._product.sign_in_admin)
        who: list[Coroutine[Any, Any, None]] = [
            *(self._chat(number) for number in range(2)),
            self._repeat("stream", self._stream, 4),
            self._repeat("search", self._search, 3),
            self._repeat("mcp", self._mcp, 7),
            self._repeat("upload", self._upload, 15),
            self._repeat("analytics", self._analytics, 20),
            self._measure(),
        ]
        tasks = [asyncio.create_task(one) for one in who]
        end = time.monotonic() + minutes * 60
        faults = self._faults()
        number = 0
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(pause_seconds, left))
            if end - time.monotonic() > 90:  # the last minute and a half is for coming back
                name, fault = faults[number % len(faults)]
                print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)
                await asyncio.to_thread(fault)
                number += 1
        self._is_over.set()
        await asyncio.gather(*tasks)
        await asyncio.sleep(30)
        self.samples.append(await asyncio.to_thread(self._sample))
        self._worker.terminate()

    # People and programs

    async def _chat(self, number: int) -> None:
        """Ask on the page, in one tab until it is lost, as a person does."""
        tab: Person | None = None
        while not self._is_over.is_set():
            try:
                if tab is None:
                    tab = Person(self._product.address, self._cookies[number])
                    await asyncio.wait_for(tab.open(), STALLED_SECONDS)
                tab.errors.clear()
                drawn = ""
                async for text in tab.ask(self._random.choice(QUESTIONS), timeout_seconds=STALLED_SECONDS):
                    drawn = text
                if tab.errors:
                    self.tally.told[f"chat: {tab.errors[-1][:90]}"] += 1
                    if any("Traceback" in error for error in tab.errors):
                        self.tally.note_untold(f"chat: {tab.errors}")
                elif drawn:
                    self.tally.done["chat"] += 1
                else:
                    self.tally.note_untold("chat: neither text nor a sentence")
            except TimeoutError:
                self.tally.note_untold("chat: the page stalled")
                tab = None
            except Exception as exc:  # a page that cannot be opened draws why; a lost tab connects again by itself
                self.tally.told[f"chat {type(exc).__name__}"] += 1
                tab = None
            await self._pause(6)
        if tab is not None:
            with contextlib.suppress(Exception):
                await tab.close()

    async def _repeat(
        self, name: str, act: Callable[[httpx.AsyncClient], Coroutine[Any, Any, str]], wait: float
    ) -> None:
        async with httpx.AsyncClient(base_url=self._product.url, timeout=STALLED_SECONDS) as client:
            while not self._is_over.is_set():
                try:
                    told = await act(client)
                    if told:
                        self.tally.told[f"{name}: {told[:90]}"] += 1
                    else:
                        self.tally.done[name] += 1
                except Exception as exc:
                    self.tally.note_untold(f"{name}: {type(exc).__name__} {str(exc)[:200]}")
                await self._pause(wait)

    async def _stream(self, client: httpx.AsyncClient) -> str:
        question = {"query": self._random.choice(QUESTIONS), "options": {"stream": True}}
        last = ""
        headers = {"Cookie": self._cookies[2]}
        async with client.stream("POST", "/api/rag/chat", json=question, headers=headers) as answer:
            if answer.status_code != 200:
                return sentence_of(answer.status_code, await answer.aread())
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    last = json.loads(line[6:])["type"]
        if last not in ("done", "error"):
            raise RuntimeError(f"the stream ended with {last!r}")
        return "" if last == "done" else last

    async def _search(self, client: httpx.AsyncClient) -> str:
        question = {"query": self._random.choice(QUESTIONS)}
        answer = await client.post("/api/rag/search", json=question, headers={"Cookie": self._cookies[3]})
        return sentence_of(answer.status_code, answer.content)

    async def _mcp(self, client: httpx.AsyncClient) -> str:
        call = {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "search", "arguments": {"query": self._random.choice(QUESTIONS)}},
        }  # fmt: skip
        headers = {"Cookie": self._admin, "Accept": "application/json, text/event-stream"}
        answer = await client.post("/mcp", json=call, headers=headers)
        return sentence_of(answer.status_code, answer.content)

    async def _upload(self, client: httpx.AsyncClient) -> str:
        """Add a document, wait until it is found or its failure is said, and delete it."""
        headers = {"Cookie": self._admin}
        listed = await client.get("/api/collections", headers=headers)
        if told := sentence_of(listed.status_code, listed.content):
            return told
        collection = next(one["id"] for one in listed.json()["collections"] if one["profile"] == "hr")
        body = "\n\n".join(f"Rule {n}. {self._random.random()} " + "The house closes at nine. " * 30 for n in range(20))
        path = f"/api/collections/{collection}/documents"
        added = await client.post(path, files={"file": (f"{time.time()}.txt", body.encode())}, headers=headers)
        if told := sentence_of(added.status_code, added.content):
            return told
        document = f"/api/documents/{added.json()['id']}"
        until, told = time.monotonic() + 6 * STALLED_SECONDS, ""
        while time.monotonic() < until:
            await asyncio.sleep(2)
            state = await client.get(document, headers=headers)
            status = state.json()["status"] if state.status_code == 200 else ""
            if status == "estimated":
                await client.post(f"{document}/confirm", headers=headers)
            if status == "failed" and not (told := state.json()["message"]):
                raise RuntimeError("a document failed without a reason")
            if status in ("completed", "failed"):
                break
        else:
            raise RuntimeError(f"a document stayed as it was: {state.text[:200]}")
        for _ in range(10):
            if (await client.delete(document, headers=headers)).status_code in (200, 204, 404):
                return told
            await asyncio.sleep(3)
        raise RuntimeError("a document could not be deleted for 30 s")

    async def _analytics(self, client: httpx.AsyncClient) -> str:
        try:
            frames = await frames_of_page(self._product.address, self._admin, "analytics", "days=30")
        except InvalidStatus as exc:  # refused with a sentence, as any other request
            return sentence_of(exc.response.status_code, exc.response.body or b"")
        if b"Traceback" in frames:
            raise RuntimeError("a traceback on the page")
        return ""

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_over.wait(), seconds * self._random.uniform(0.5, 1.5))

    # What goes wrong

    def _faults(self) -> list[tuple[str, Callable[[], object]]]:
        standin = self._standin
        return [
            ("the model refuses three times", lambda: standin.fail_next(500, 3, endpoint="chat")),
            ("a backend of Postgres is ended", lambda: self._end_backends(1)),
            ("streams break off twice", lambda: standin.cut_stream_after(5, 2)),
            ("the worker is killed", self._kill_worker),
            ("embeddings are limited", lambda: standin.fail_next(429, 4, {"Retry-After": "2"}, endpoint="embeddings")),
            ("the standby is killed", self._kill_standby),
            ("reranking answers nonsense", lambda: standin.garbage_next(3, endpoint="rerank")),
            ("all backends of the application are ended", lambda: self._end_backends(100)),
            ("a stream hangs", self._hang),
            ("the primary is killed", self._kill_primary),
            ("connections to providers are closed", lambda: standin.close_next(4)),
            ("the stream carries an error", lambda: standin.error_event_after(3, 2)),
        ]

    def _end_backends(self, count: int) -> None:
        statement = (
            "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE usename = 'rag_app' "
            "ORDER BY random() LIMIT %s) AS chosen"
        )
        with psycopg.connect(self._primary.superuser, autocommit=True) as connection:
            connection.execute(statement, (count,))

    def _kill_worker(self) -> None:
        self._worker.kill()
        self._worker.wait()
        time.sleep(5)
        self._worker = self._product.start_worker()

    def _kill_standby(self) -> None:
        os.kill(_postmaster(self._standby.folder), signal.SIGKILL)
        time.sleep(10)
        with contextlib.suppress(FileNotFoundError):
            (self._standby.folder / "postmaster.pid").unlink()
        self._standby.start()

    def _kill_primary(self) -> None:
        os.kill(_postmaster(self._primary.folder / "postgres"), signal.SIGKILL)  # its supervisor starts it again

    def _hang(self) -> None:
        self._standin.hang_stream_after(3)
        threading.Timer(20, self._standin.release).start()

    # What it takes

    async def _measure(self) -> None:
        while not self._is_over.is_set():
            self.samples.append(await asyncio.to_thread(self._sample))
            sample = self.samples[-1]
            if len(self.samples) % 6 == 1:
                print(
                    f"{time.strftime('%H:%M:%S')} {sample} {dict(self.tally.done)} told {dict(self.tally.told)}",
                    flush=True,
                )
            await self._pause(10)

    def _sample(self) -> dict[str, int]:
        process = psutil.Process(self._product.pid)
        family = [process, *process.children(recursive=True)]
        connections = -1
        with contextlib.suppress(psycopg.Error), psycopg.connect(self._primary.superuser) as connection:
            row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = 'rag_app'").fetchone()
            connections = row[0] if row else -1
        return {
            "mb": process.memory_info().rss // 2**20,
            "family_mb": sum(one.memory_info().rss for one in family if one.is_running()) // 2**20,
            "files": process.num_fds(),
            "threads": process.num_threads(),
            "connections": connections,
        }


def sentence_of(status: int, body: bytes) -> str:
    """Return the sentence of a refusal, empty for success. Raises where there is none."""
    if status < 300:
        return ""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        told = json.loads(body)["detail"]
        if status in TOLD and isinstance(told, str) and told and "Traceback" not in told:
            return told
    raise RuntimeError(f"{status} without a sentence: {body[:200]!r}")


def _postmaster(folder: Path) -> int:
    return int((folder / "postmaster.pid").read_text().splitlines()[0])


def verdict(soak: Soak) -> bool:
    """Print what happened; return whether all is well."""
    early = soak.samples[: max(1, len(soak.samples) // 10)]
    last = soak.samples[-1]
    allowed = {
        "mb": MEMORY_MB,
        "family_mb": 2 * MEMORY_MB,
        "files": FILES,
        "threads": THREADS,
        "connections": CONNECTIONS,
    }
    is_well = not soak.tally.untold
    print("\n            first tenth, at most    at most    at the end    allowed more")
    for name, more in allowed.items():
        before, most = max(one[name] for one in early), max(one[name] for one in soak.samples)
        is_back = last[name] <= before + more
        is_well &= is_back
        print(f"{name:14}{before:>20}{most:>11}{last[name]:>14}{more:>14}{'' if is_back else '   NOT BACK'}")
    print(f"\ndone      {dict(soak.tally.done)}\ntold      {soak.tally.told.total()}")
    for told, count in soak.tally.told.most_common():
        print(f"{count:>8}  {told}")
    print(f"not told  {len(soak.tally.untold)}")
    for line in soak.tally.untold:
        print(f"  {line}")
    return is_well


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--pause", type=float, default=60.0, help="Seconds between two faults")
    parser.add_argument("--log", type=Path, help="Where the logs of the product and its workers are kept")
    arguments = parser.parse_args()
    if arguments.log and arguments.log.is_dir():
        parser.error(f"--log {arguments.log} is a folder: name a file.")
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as name, ProviderStandin() as standin:
        folder = Path(name)
        (folder / "data").mkdir()
        standin.delays = {"embeddings": 0.15, "rerank": 0.3, "chat": 0.8}
        standin.token_interval_seconds = 0.02
        primary = start_server(folder / "primary")
        standby = make_standby(folder / "standby", primary.superuser, primary.application)
        product = Application(
            folder, primary,
            DATABASE_URL=as_url(primary.application), MIGRATION_DATABASE_URL=as_url(primary.owner),
            DATABASE_READ_URLS=as_url(standby.application),
            OPENAI_API_KEY="soak", OPENAI_BASE_URL=standin.openai_url,
            COHERE_API_KEY="soak", COHERE_BASE_URL=standin.cohere_url,
        )  # fmt: skip
        worker = product.start_worker()  # the samples are read before the first page is served
        product.start(timeout_seconds=300)
        worker.terminate()
        worker.wait(30)
        soak = Soak(product, primary, standby, standin)
        try:
            asyncio.run(soak.run(arguments.minutes, pause_seconds=arguments.pause))
        finally:
            product.stop()
            if arguments.log:
                arguments.log.write_text(product.log() + product.worker_log.read_text(errors="replace"))
            standby.stop()
            primary.stop()
        return 0 if verdict(soak) else 1


if __name__ == "__main__":
    raise SystemExit(main())
