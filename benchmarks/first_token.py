"""From a question to the first piece of its answer: what we add to what the providers take.

    python -m benchmarks.first_token [--questions 60] [--instant]

Embedding, rerank and chat come over real HTTP from a stand-in in another process (tests/standins/providers.py), through
the real SDKs. Each question goes through `LiveAnswers`: stored, embedded, searched by meaning and keyword in Postgres,
reranked, put into a prompt, streamed. The providers' own share is measured beside it: the same three calls, one after
the other.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Event

from benchmarks.product import free_port
from benchmarks.timed_provider import add_latency_options, latency_from
from rag.profiles import HR
from rag.providers import TextDelta
from rag.samples import SAMPLES
from rag.samples.load import prepare_tenant
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import start_server
from rag.storage.migrations import migrate
from rag.types import ChatMessage, Collection, Identity, Question

PROJECT = Path(__file__).resolve().parent.parent
QUESTIONS = (
    "How many days of annual leave do I have?",
    "What is the notice period during probation?",
    "How much does the company pay for dental care?",
    "When do I have to report illness?",
    "Can I carry unused leave into the next year?",
    "Who pays for safety glasses?",
)


def ask(parts: Services, identity: Identity, collection: Collection, text: str) -> tuple[float, float]:
    """Milliseconds until the first text of the answer, and until its end."""
    started = time.perf_counter()
    live = parts.answers.ask(Question(text=text, identity=identity, collection=collection))
    first = 0.0
    for piece in live.tail(every_seconds=0.0):
        if piece and not first:
            first = time.perf_counter() - started
    return first * 1000, (time.perf_counter() - started) * 1000


def call_providers(parts: Services, collection: Collection, text: str, passages: list[str]) -> float:
    """Milliseconds the providers take for the same calls: embedding, rerank, first token."""
    embedder, reranker = parts.providers.embedder_for(collection.embedding_model), parts.providers.reranker_for(HR)
    model = parts.providers.chat_model_for(HR)
    assert reranker is not None
    assert model is not None
    messages = [ChatMessage(role="system", content="\n\n".join(passages[:5])), ChatMessage(role="user", content=text)]
    started = time.perf_counter()
    embedder.embed([text], purpose="query")
    reranker.rank(text, passages, limit=5)
    stream = model.stream(messages, temperature=0.2, maximum_output_tokens=1024, cancel=Event())
    while not isinstance(next(stream), TextDelta):
        pass
    elapsed = time.perf_counter() - started
    for _ in stream:
        pass
    return elapsed * 1000


def row(name: str, values: list[float]) -> str:
    cuts = statistics.quantiles(values, n=20)
    return f"{name:46}{cuts[9]:>9.1f}{cuts[18]:>9.1f}{max(values):>9.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=60)
    add_latency_options(parser)
    arguments = parser.parse_args()
    latency = latency_from(arguments)
    print(latency)
    port = free_port()
    command = [
        sys.executable, str(PROJECT / "tests" / "standin.py"), "--port", str(port), "--words", "40",
        "--embeddings-ms", str(latency.embedding), "--rerank-ms", str(latency.rerank),
        "--chat-ms", str(latency.first_token),
    ]  # fmt: skip
    providers = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert providers.stdout is not None
    providers.stdout.readline()
    with tempfile.TemporaryDirectory(prefix="first-token-") as folder:
        settings = Settings(
            data_dir=Path(folder),
            openai_api_key="benchmark",
            openai_base_url=f"http://127.0.0.1:{port}/v1",
            cohere_api_key="benchmark",
            cohere_base_url=f"http://127.0.0.1:{port}",
        )
        server = start_server(settings.data_dir)
        try:
            migrate(server.owner)
            database = Database(server.application, sealing_key(server.owner))
            database.open()
            parts = assemble(settings, database)
            try:
                measure(parts, arguments.questions)
            finally:
                parts.close()
        finally:
            server.stop()
            providers.terminate()
            providers.wait(10)


def measure(parts: Services, questions: int) -> None:
    prepare_tenant(parts)
    link = parts.accounts.first_admin_link()
    assert link is not None
    admin = parts.accounts.create_first_admin(link, "admin@benchmark.example", "Admin", "paper-and-linen-thread-7")
    identity = parts.sessions.find(parts.sessions.start(admin))
    assert identity is not None
    collection = parts.documents.collections(identity.tenant_id)[0]
    passages = [
        chunk.content
        for document in parts.documents.list(identity.tenant_id)
        for chunk in parts.documents.chunks(identity.tenant_id, document.id)
    ][:20]
    firsts: list[float] = []
    wholes: list[float] = []
    own: list[float] = []
    for number in range(questions + 20):
        text = f"{QUESTIONS[number % len(QUESTIONS)][:-1]}, case {number}?"
        provider_ms = call_providers(parts, collection, text, passages)
        first_ms, whole_ms = ask(parts, identity, collection, text)
        if number >= 20:  # the first ones warm up
            own.append(provider_ms)
            firsts.append(first_ms)
            wholes.append(whole_ms)
    print(f"{questions} questions, one after the other, over {len(SAMPLES)} documents; milliseconds\n")
    print(f"{'':46}{'p50':>9}{'p95':>9}{'max':>9}")
    print(row("question to first token, whole pipeline", firsts))
    print(row("the providers' own: embed, rerank, first token", own))
    print(row("difference, question by question", [a - b for a, b in zip(firsts, own, strict=True)]))
    print(row("question to the end, 40 tokens, all written", wholes))


if __name__ == "__main__":
    main()
