"""What `/api/rag/search` costs over the search itself: the same questions by HTTP with a key, and in the process.

`python -m benchmarks.api_overhead`. Both run against the product's own sample documents with the built-in embedder, in
turns, so that whatever else the machine does weighs on both alike. The caller is a process of its own. The answer's own
`latencyMs` covers the search, the ledger and the sources; the rest is the key, the guard and HTTP.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
import uvicorn
from starlette.applications import Starlette

import rag.services
from rag.profiles import profile_by_name
from rag.profiles.profile import Options
from rag.samples.load import prepare_tenant
from rag.services import connect_services
from rag.settings import Settings
from rag.storage.collections import find_collections
from rag.types import Identity, Question, Role

QUESTIONS = (
    "How many days of annual leave do employees have?",
    "What am I paid during a long illness?",
    "When are travel expenses repaid?",
    "May I work from another country?",
)
BAR_MS = 10.0
WARM_UP_TURNS = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=100)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder))
        parts = connect_services(settings)
        try:
            return _compare(parts, settings, turns)
        finally:
            parts.close()


def _compare(parts: rag.services.Services, settings: Settings, turns: int) -> int:
    parts.queue.start_worker()
    prepare_tenant(parts)
    while any(document.status != "completed" for document in parts.documents.list(settings.tenant)):
        time.sleep(0.2)
    link = parts.accounts.first_admin_link()
    assert link is not None
    account = parts.accounts.create_first_admin(link, "admin@benchmark.example", "Admin", "paper-and-linen-thread-7")
    admin = Identity(
        account_id=account.id, tenant_id=account.tenant_id, email=account.email, name=account.name, role=Role.ADMIN
    )
    _, secret = parts.api_keys.create(admin, "Benchmark", ["search"], requests_per_minute=100_000)
    # Not as the administrator: what a key may read is narrower, and looking that up is part of the search.
    caller_identity = parts.api_keys.find(secret).identity
    collection = find_collections(parts.database, settings.tenant)[0]
    rag.services.connect_services = lambda settings: parts  # the routes use these very services
    from rag.server import ERROR_HANDLERS, MIDDLEWARE, ROUTES

    app = Starlette(routes=ROUTES, middleware=MIDDLEWARE, exception_handlers=ERROR_HANDLERS)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    ours, theirs = multiprocessing.Pipe()
    # Not forked: a copy of this process would hold its threads' locks and its connections.
    caller = multiprocessing.get_context("spawn").Process(
        target=ask_by_http, args=(theirs, url, secret, str(collection.id)), daemon=True
    )
    caller.start()

    def ask_here(text: str) -> tuple[float, float]:
        question = Question(text=text, identity=caller_identity, collection=collection)
        started, worked = time.perf_counter(), time.process_time()
        parts.retriever.retrieve_context(
            question, profile=profile_by_name(collection.profile), options=Options(follow_ups=0)
        )
        return (time.perf_counter() - started) * 1000, (time.process_time() - worked) * 1000

    def ask_there(text: str) -> tuple[float, float, float]:
        worked = time.process_time()
        ours.send(text)
        elapsed_ms, latency_ms = ours.recv()
        return elapsed_ms, latency_ms, (time.process_time() - worked) * 1000

    itself, by_http, reported, work = [], [], [], []
    for turn in range(turns + WARM_UP_TURNS):
        text = QUESTIONS[turn // 2 % len(QUESTIONS)]
        # Who asks second finds everything warm, so they take turns in that too.
        if turn % 2:
            inside_ms, inside_work_ms = ask_here(text)
        outside_ms, latency_ms, outside_work_ms = ask_there(text)
        if not turn % 2:
            inside_ms, inside_work_ms = ask_here(text)
        if turn >= WARM_UP_TURNS:
            itself.append(inside_ms)
            by_http.append(outside_ms)
            reported.append(latency_ms)
            work.append(outside_work_ms - inside_work_ms)
    ours.send("")
    caller.join(5)
    server.should_exit = True
    thread.join(5)
    overhead = statistics.median(outer - inner for outer, inner in zip(by_http, itself, strict=True))
    inside, outside = statistics.median(itself), statistics.median(by_http)
    print(f"{turns} searches at a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"  {inside:.1f} ms in the process, {outside:.1f} ms by HTTP")
    print(f"  latencyMs in the answer: {statistics.median(reported):.0f} ms")
    print(f"  processor time of the server beyond the search: {statistics.median(work):.1f} ms")
    print(f"  overhead: median {overhead:.1f} ms (bar: {BAR_MS:.0f} ms)")
    return 0 if overhead <= BAR_MS else 1


def ask_by_http(pipe: Connection, url: str, secret: str, collection: str) -> None:
    """In the caller's process: ask what comes through the pipe until it is empty; how long it took, in ms."""
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}) as caller:
        while text := pipe.recv():
            started = time.perf_counter()
            answer = caller.post("/api/rag/search", json={"query": text, "collection": collection}).raise_for_status()
            elapsed_ms = (time.perf_counter() - started) * 1000
            pipe.send((elapsed_ms, answer.json()["latencyMs"]))


if __name__ == "__main__":
    raise SystemExit(main())
