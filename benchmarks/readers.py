"""How late a token reaches its reader when many people read at once: our whole pipeline, and plain Streamlit.

    python -m benchmarks.readers [--people 100] [--only ours|plain]

Each person opens the chat page over a real websocket, then asks `--answers` questions one after the other. Each answer
has 200 tokens, one every 20 ms, from a provider on this machine that takes as long as real ones before it answers
(`--instant`: no time at all). Every token carries the moment it was due, and its delay is counted until the reader has
received the message that first draws it. For ours, a question goes through everything: account, conversation,
embedding, search in Postgres, rerank, prompt, streamed answer, checked citations, log, ledger, follow-up questions. The
people, the provider, Postgres and the server all share the machine's cores.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.product import Product, free_port
from benchmarks.streamlit_client import Person
from benchmarks.timed_provider import MARK, TimedProvider, add_latency_options, from_mark, latency_from

PROJECT = Path(__file__).resolve().parent.parent

QUESTIONS = (
    "How many days of annual leave do I have?",
    "What is the notice period during probation?",
    "How much does the company pay for dental care?",
    "When do I have to report illness?",
)
RAMP_SECONDS = 4.0


@dataclass
class Result:
    delays_ms: list[float] = field(default_factory=list)
    first_token_ms: list[float] = field(default_factory=list)
    received: int = 0
    failed: int = 0
    problems: list[str] = field(default_factory=list)
    provider_ms: list[float] = field(default_factory=list)
    server_cpu_seconds: float = 0.0
    wall_seconds: float = 0.0


async def read_answers(
    person: Person, number: int, people: int, answers: int, provider: TimedProvider, result: Result
) -> None:
    await asyncio.sleep(RAMP_SECONDS * number / people)
    for turn in range(answers):
        asked = provider.now_ms()
        seen: set[str] = set()
        try:
            async for text in person.ask(QUESTIONS[(number + turn) % len(QUESTIONS)]):
                now = provider.now_ms()
                for mark in MARK.findall(text):
                    due = from_mark(mark)
                    if mark not in seen and due >= asked - 1:
                        if not seen:
                            result.first_token_ms.append(now - asked)
                        seen.add(mark)
                        result.delays_ms.append(now - due)
        except Exception as exc:
            result.problems.append(f"{type(exc).__name__}: {exc}")
        result.received += len(seen)
        if len(seen) < provider.tokens:
            result.failed += 1
            result.problems += person.errors[-1:]


async def measure(address: str, cookies: list[str], answers: int, provider: TimedProvider, pid: int) -> Result:
    result = Result()
    people = [Person(address, cookie) for cookie in cookies]
    for person in people:
        await person.open()
    # One question before the clock starts: the first of a process imports and compiles.
    async for _ in people[0].ask(QUESTIONS[0]):
        pass
    provider.own_delays.clear()
    server = psutil.Process(pid)
    cpu_before, begun = _cpu_seconds(server), time.perf_counter()
    await asyncio.gather(
        *(read_answers(person, n, len(people), answers, provider, result) for n, person in enumerate(people))
    )
    result.wall_seconds = time.perf_counter() - begun
    result.server_cpu_seconds = _cpu_seconds(server) - cpu_before
    result.provider_ms = list(provider.own_delays)
    for person in people:
        await person.close()
    return result


def _cpu_seconds(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


async def ours(people: int, answers: int, provider: TimedProvider) -> Result:
    variables = await provider.start()
    with tempfile.TemporaryDirectory(prefix="readers-") as folder:
        product = Product(Path(folder), **variables)
        try:
            await asyncio.to_thread(product.start)
            cookies = await asyncio.to_thread(product.sign_in_people, people)
            return await measure(product.address, cookies, answers, provider, product.pid)
        finally:
            await asyncio.to_thread(product.stop)
            await provider.stop()


async def plain(people: int, answers: int, provider: TimedProvider) -> Result:
    variables = await provider.start()
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="plain-") as folder:  # away from our .streamlit/config.toml
        command = [
            sys.executable, "-m", "streamlit", "run", str(PROJECT / "benchmarks" / "plain_streamlit" / "page.py"),
            "--server.port", str(port), "--server.headless", "true", "--browser.gatherUsageStats", "false",
        ]  # fmt: skip
        server = subprocess.Popen(command, cwd=folder, env={**os.environ, **variables}, stdout=subprocess.DEVNULL)
        try:
            await asyncio.to_thread(_wait_for, f"http://127.0.0.1:{port}/_stcore/health")
            return await measure(f"127.0.0.1:{port}", [""] * people, answers, provider, server.pid)
        finally:
            server.terminate()
            server.wait(10)
            await provider.stop()


def _wait_for(url: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{url} did not answer within 30 seconds.")


def show(name: str, people: int, result: Result) -> None:
    if not result.delays_ms:
        print(f"{name}: no token was received. {result.problems[:3]}")
        return
    quantiles = statistics.quantiles(result.delays_ms, n=100)
    provider = statistics.quantiles(result.provider_ms, n=100)[94]
    first = statistics.median(result.first_token_ms)
    per_answer = result.server_cpu_seconds * 1000 / max(1, len(result.first_token_ms))
    busy = result.server_cpu_seconds / result.wall_seconds
    print(
        f"{name:18}{people:>7}{quantiles[49]:>9.0f}{quantiles[94]:>8.0f}{quantiles[98]:>8.0f}"
        f"{max(result.delays_ms):>8.0f}{provider:>10.0f}{first:>11.0f}{busy:>9.2f}{per_answer:>8.0f}{result.received:>9}{result.failed:>7}"
    )
    for problem in sorted(set(result.problems))[:5]:
        print(f"    {problem}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, nargs="+", default=[100])
    parser.add_argument("--answers", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--interval-ms", type=float, default=20)
    parser.add_argument("--only", choices=["ours", "plain"])
    add_latency_options(parser)
    arguments = parser.parse_args()
    latency = latency_from(arguments)
    print(
        f"{arguments.answers} answers each, {arguments.tokens} tokens at {arguments.interval_ms:g} ms, {latency}; "
        "delays in ms\n"
    )
    print(
        f"{'':18}{'people':>7}{'p50':>9}{'p95':>8}{'p99':>8}{'max':>8}{'client p95':>10}{'first p50':>11}"
        f"{'cores':>9}{'CPU ms':>8}{'tokens':>9}{'cut':>7}"
    )
    for people in arguments.people:
        for name, run in (("ours", ours), ("plain", plain)):
            if arguments.only in (None, name):
                provider = TimedProvider(tokens=arguments.tokens, interval_ms=arguments.interval_ms, latency=latency)
                result = asyncio.run(run(people, arguments.answers, provider))
                show({"ours": "whole pipeline", "plain": "plain Streamlit"}[name], people, result)


if __name__ == "__main__":
    main()
