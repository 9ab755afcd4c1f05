"""What people wait for when many ask within one second: the first text of an answer, or what a search found.

    python -m benchmarks.askers [--people 50] [--rounds 3]

The providers answer as late as real ones do (benchmarks/timed_provider.py), so that whoever waits for somebody else's
call is seen. Three ways to ask, one after the other: the chat page over a real websocket, `/api/rag/chat` as a stream
and as a whole answer, `/api/rag/search`. Everybody has an account; they ask at even distances within `--within`
seconds. Counted is what a person waits from asking to the first text that the provider wrote, less what the three calls
before it take. The people, the provider, Postgres and the server all share the machine's cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.product import Product
from benchmarks.readers import QUESTIONS
from benchmarks.streamlit_client import Person
from benchmarks.timed_provider import MARK, TimedProvider, add_latency_options, from_mark, latency_from
from rag.samples.load import COLLECTION

#: What we may add to the providers' time, for 95 of 100 people.
BAR_MS = 1000.0


@dataclass
class Waits:
    """What the people of one round waited for."""

    first_ms: list[float] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    cpu_seconds: float = 0.0
    seconds: float = 0.0


Ask = Callable[[int, Waits], Awaitable[None]]


class People:
    """Everybody who asks, and the ways they do."""

    def __init__(self, product: Product, provider: TimedProvider, cookies: list[str]) -> None:
        self._product, self._provider, self._cookies = product, provider, cookies
        self._tabs: list[Person] = []

    async def open_pages(self) -> None:
        self._tabs = [Person(self._product.address, cookie) for cookie in self._cookies]
        for tab in self._tabs:
            await tab.open()

    async def close_pages(self) -> None:
        for tab in self._tabs:
            await tab.close()

    async def page(self, number: int, waits: Waits) -> None:
        """Ask on the chat page."""
        asked, seen = self._provider.now_ms(), set[str]()
        async for text in self._tabs[number].ask(QUESTIONS[number % len(QUESTIONS)]):
            self._note(text, asked, seen, waits)
        if not seen:
            waits.problems += self._tabs[number].errors[-1:] or ["no text was drawn"]

    async def stream(self, number: int, waits: Waits) -> None:
        """Ask over HTTP for a stream."""
        asked, seen = self._provider.now_ms(), set[str]()
        reader, writer = await self._post(number, "/api/rag/chat", stream=True)
        try:
            while line := await reader.readline():
                if line.startswith(b"data: ") and (event := json.loads(line[6:]))["type"] == "chunk":
                    self._note(event["data"], asked, seen, waits)
        finally:
            writer.close()
        if not seen:
            waits.problems.append("no text was streamed")

    async def whole(self, number: int, waits: Waits) -> None:
        """Ask over HTTP for the whole answer."""
        await self._whole(number, "/api/rag/chat", waits, "answer")

    async def search(self, number: int, waits: Waits) -> None:
        """Search over HTTP."""
        await self._whole(number, "/api/rag/search", waits, "results")

    async def _whole(self, number: int, path: str, waits: Waits, wanted: str) -> None:
        asked = self._provider.now_ms()
        reader, writer = await self._post(number, path)
        try:
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
        if not head.startswith(b"HTTP/1.1 200") or not json.loads(body)[wanted]:
            waits.problems.append(f"{head.splitlines()[0].decode()}: {body[:200].decode()}")
        waits.first_ms.append(self._provider.now_ms() - asked)

    async def _post(self, number: int, path: str, **options: bool) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = self._product.address
        host, port = address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        question = {"query": QUESTIONS[number % len(QUESTIONS)], "collection": COLLECTION, "options": options}
        body = json.dumps(question).encode()
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {self._cookies[number]}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            + body
        )
        return reader, writer

    def _note(self, text: str, asked: float, seen: set[str], waits: Waits) -> None:
        now = self._provider.now_ms()
        for mark in MARK.findall(text):
            due = from_mark(mark)
            if mark in seen or due < asked - 1:
                continue
            if not seen:
                waits.first_ms.append(now - asked)
            seen.add(mark)
            waits.late_ms.append(now - due)


async def together(ask: Ask, people: int, within_seconds: float, pid: int) -> Waits:
    """Everybody asks at even distances within so many seconds."""
    waits, server = Waits(), psutil.Process(pid)

    async def one(number: int) -> None:
        await asyncio.sleep(within_seconds * number / people)
        try:
            await ask(number, waits)
        except Exception as exc:
            waits.problems.append(f"{type(exc).__name__}: {exc}")

    before, begun = server.cpu_times(), time.perf_counter()
    await asyncio.gather(*map(one, range(people)))
    after, waits.seconds = server.cpu_times(), time.perf_counter() - begun
    waits.cpu_seconds = after.user + after.system - before.user - before.system
    return waits


def show(name: str, waits: Waits, provider_ms: float) -> bool:
    """Print a row; whether the bar is met."""
    if len(waits.first_ms) < 2:
        print(f"{name:22}nothing came: {waits.problems[:3]}")
        return False
    cuts = statistics.quantiles(waits.first_ms, n=20)
    late = statistics.quantiles(waits.late_ms, n=20)[18] if len(waits.late_ms) > 1 else 0.0
    cores, load = waits.cpu_seconds / waits.seconds, os.getloadavg()[0]
    print(
        f"{name:22}{len(waits.first_ms):>7}{cuts[9]:>9.0f}{cuts[18]:>9.0f}{max(waits.first_ms):>9.0f}{provider_ms:>11.0f}"
        f"{cuts[18] - provider_ms:>9.0f}{late:>11.0f}{cores:>8.2f}{load:>7.1f}",
        flush=True,
    )
    for problem in sorted(set(waits.problems))[:5]:
        print(f"    {problem}")
    return cuts[18] - provider_ms <= BAR_MS and not waits.problems


async def measure(arguments: argparse.Namespace) -> int:
    latency = latency_from(arguments)
    provider = TimedProvider(tokens=arguments.tokens, interval_ms=arguments.interval_ms, latency=latency)
    variables = await provider.start()
    writing_ms = (arguments.tokens - 1) * arguments.interval_ms
    searching_ms = latency.embedding + latency.rerank
    is_met = True
    with tempfile.TemporaryDirectory(prefix="askers-") as folder:
        product = Product(Path(folder), **variables)
        await asyncio.to_thread(product.start)
        try:
            cookies = await asyncio.to_thread(product.sign_in_people, arguments.people)
            people = People(product, provider, cookies)
            ways: dict[str, tuple[Ask, float]] = {
                "page": (people.page, latency.first_text),
                "stream": (people.stream, latency.first_text),
                "whole": (people.whole, latency.first_text + writing_ms),
                "search": (people.search, searching_ms),
            }
            for name in arguments.ways:
                ask, provider_ms = ways[name]
                for number in range(-1, arguments.rounds):
                    # A new chat each time: what comes before in a conversation is read by a model first.
                    if name == "page":
                        await people.open_pages()
                    if number < 0:
                        await ask(0, Waits())  # what only the first question of a process waits for
                    else:
                        waits = await together(ask, arguments.people, arguments.within, product.pid)
                        is_met &= show(name, waits, provider_ms)
                    if name == "page":
                        await people.close_pages()
                print(f"    at most in flight at the provider: {dict(provider.most_in_flight)}")
                provider.most_in_flight.clear()
        finally:
            await asyncio.to_thread(product.stop)
            await provider.stop()
    return 0 if is_met else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--within", type=float, default=1.0, help="seconds in which all of them ask")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--interval-ms", type=float, default=20)
    parser.add_argument(
        "--ways",
        nargs="+",
        choices=["page", "stream", "whole", "search"],
        default=["page", "stream", "whole", "search"],
    )
    add_latency_options(parser)
    arguments = parser.parse_args()
    print(f"{arguments.people} people ask within {arguments.within:g} s, {latency_from(arguments)}; milliseconds\n")
    print(
        f"{'':22}{'asked':>7}{'p50':>9}{'p95':>9}{'max':>9}{'providers':>11}{'p95 ours':>9}{'token p95':>11}"
        f"{'cores':>8}{'load':>7}"
    )
    return asyncio.run(measure(arguments))


if __name__ == "__main__":
    raise SystemExit(main())
