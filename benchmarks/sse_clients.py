"""Clients of `/api/rag/chat` that all read a stream at once: does each receive everything, in order, and how late?

`python -m benchmarks.sse_clients`: 50 clients, an answer of 200 tokens each, one token every 50 ms. Each token says
when it was due, so lateness is counted from the provider's clock to the client's, both in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.product import Product
from benchmarks.timed_provider import MARK, Latency, TimedProvider, add_latency_options, from_mark, latency_from
from rag.samples.load import COLLECTION

QUESTION = "How many days of annual leave do employees have?"
#: The bar: so late at most, for 95 of 100 tokens.
BAR_MS = 250.0


@dataclass
class Client:
    """What one client heard."""

    late_ms: list[float] = field(default_factory=list)
    due_ms: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)


async def read_stream(address: str, cookie: str, provider: TimedProvider) -> Client:
    """Ask once and note every token as it comes."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({"query": QUESTION, "collection": COLLECTION, "options": {"stream": True}}).encode()
    writer.write(
        f"POST /api/rag/chat HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )
    client = Client()
    try:
        while line := await reader.readline():
            if not line.startswith(b"data: "):
                continue
            now, event = provider.now_ms(), json.loads(line[6:])
            client.kinds.append(event["type"])
            if event["type"] == "chunk":
                for letters in MARK.findall(event["data"]):
                    client.due_ms.append(from_mark(letters))
                    client.late_ms.append(now - client.due_ms[-1])
    finally:
        writer.close()
    return client


async def measure(clients: int, tokens: int, interval_ms: float, latency: Latency) -> int:
    provider = TimedProvider(tokens=tokens, interval_ms=interval_ms, latency=latency)
    variables = await provider.start()
    with tempfile.TemporaryDirectory() as folder:
        product = Product(Path(folder), **variables)
        await asyncio.to_thread(product.start)
        try:
            cookies = await asyncio.to_thread(product.sign_in_people, clients)
            await read_stream(product.address, cookies[0], provider)  # what only the first answer waits for
            provider.own_delays.clear()
            heard = await asyncio.gather(*(read_stream(product.address, cookie, provider) for cookie in cookies))
        finally:
            await asyncio.to_thread(product.stop)
            await provider.stop()
    late = [ms for client in heard for ms in client.late_ms]
    whole = sum(len(client.due_ms) == tokens for client in heard)
    ordered = sum(client.due_ms == sorted(client.due_ms) for client in heard)
    framed = sum(
        client.kinds[:3] == ["searching", "context", "generating"] and client.kinds[-1] == "done" for client in heard
    )
    p95 = statistics.quantiles(late, n=100)[94] if len(late) > 1 else float("nan")
    own = statistics.quantiles(provider.own_delays, n=100)[94]
    print(f"{clients} clients, {tokens} tokens every {interval_ms:.0f} ms, {latency}")
    print(f"  every token received by {whole}, in order by {ordered}, all events in their order by {framed}")
    middle, worst = statistics.median(late), max(late)
    print(f"  late: median {middle:.0f} ms, p95 {p95:.0f} ms, worst {worst:.0f} ms (bar: p95 {BAR_MS:.0f} ms)")
    print(f"  of that the provider's own: p95 {own:.0f} ms")
    return 0 if whole == ordered == framed == clients and p95 <= BAR_MS else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--interval-ms", type=float, default=50.0)
    add_latency_options(parser)
    arguments = parser.parse_args()
    return asyncio.run(measure(arguments.clients, arguments.tokens, arguments.interval_ms, latency_from(arguments)))


if __name__ == "__main__":
    raise SystemExit(main())
