"""Embedding calls in flight: 2,000 chunks through the product's step, against the ideal for the allowed concurrency.

    python -m benchmarks.embedding_calls [--chunks 2000] [--latency-ms 200] [--rounds 5]

The provider is a process of its own that waits, then sends vectors made beforehand: its own work takes a millisecond.
Ideal: batches divided by the calls allowed in flight, rounded up, times the latency. Ours includes everything else:
tokens, the row before each call, decoding, and writing every chunk with its vector and its bill.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import multiprocessing
import statistics
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

from benchmarks.writing import TENANT, add_document, make_chunks
from rag.ingestion.document_jobs import JobControl
from rag.ingestion.embed import EmbedStep
from rag.ingestion.embedding_batches import BatchEmbedder
from rag.money.durable_calls import DurableCalls
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.providers.retry import MAXIMUM_IN_FLIGHT, CallGate
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import start_server
from rag.storage.migrations import migrate

MODEL = "openai/text-embedding-3-small@1536"


def serve(latency_seconds: float, address: multiprocessing.Queue[str]) -> None:
    vectors = np.random.default_rng(3).standard_normal((100, 1536), dtype=np.float32)
    items = [
        json.dumps({"object": "embedding", "index": i, "embedding": base64.b64encode(row.tobytes()).decode()})
        for i, row in enumerate(vectors)
    ]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            started = time.perf_counter()
            count = len(json.loads(self.rfile.read(int(self.headers["content-length"])))["input"])
            usage = '"model":"m","usage":{"prompt_tokens":20000,"total_tokens":20000}'
            body = f'{{"object":"list","data":[{",".join(items[:count])}],{usage}}}'.encode()
            time.sleep(max(0.0, latency_seconds - (time.perf_counter() - started)))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address.put(f"http://127.0.0.1:{server.server_address[1]}/v1")
    server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=2000)
    parser.add_argument("--latency-ms", type=float, default=200.0)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    chunks, _ = make_chunks(arguments.chunks, 8)
    address: multiprocessing.Queue[str] = multiprocessing.Queue()
    provider = multiprocessing.Process(target=serve, args=(arguments.latency_ms / 1000, address), daemon=True)
    provider.start()
    with tempfile.TemporaryDirectory(prefix="calls-") as folder:
        server = start_server(Path(folder))
        try:
            migrate(server.owner)
            database = Database(server.application, sealing_key(server.owner))
            database.open()
            document = add_document(database)
            settings = Settings(data_dir=Path(folder), openai_api_key="sk-test", openai_base_url=address.get())
            with database.transaction(TENANT) as connection:
                connection.execute("UPDATE documents SET status = 'processing'")
            control, embedder = JobControl(database), Providers(settings).embedder_for(MODEL)
            calls = DurableCalls(database, Ledger(database), CallGate(), control.wait)
            step = EmbedStep(control, BatchEmbedder(control, calls))
            job = control.job(TENANT, document.id)
            batches = math.ceil(arguments.chunks / job.profile.embedding.embedding_batch_size)
            ideal = math.ceil(batches / MAXIMUM_IN_FLIGHT) * arguments.latency_ms / 1000
            seconds = []
            for _ in range(arguments.rounds + 1):
                started = time.perf_counter()
                step.run(job, chunks, embedder)
                seconds.append(time.perf_counter() - started)
                with database.transaction(TENANT) as connection:
                    connection.execute("DELETE FROM document_chunks")
            database.close()
        finally:
            server.stop()
            provider.kill()
    median = statistics.median(seconds[1:])  # the first round warms up
    print(f"{arguments.chunks} chunks in {batches} calls, {MAXIMUM_IN_FLIGHT} in flight, {arguments.latency_ms:.0f} ms")
    print(f"ideal {ideal:.2f} s, ours {median:.2f} s ({min(seconds[1:]):.2f} … {max(seconds[1:]):.2f})")
    print(f"ratio {median / ideal:.2f}")


if __name__ == "__main__":
    main()
