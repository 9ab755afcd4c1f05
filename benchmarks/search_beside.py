"""Parts of `benchmarks/search.py`: other libraries beside ours, and searches compared with all passages meanwhile."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from psycopg.conninfo import make_conninfo

from benchmarks.search_data import CHUNKS_PER_DOCUMENT, Corpus, Tenant
from rag.retrieval.bm25.index import unpacked_terms
from rag.retrieval.bm25.scoring import K1, B, inverse_document_frequency
from rag.retrieval.hybrid_search import Hits, find_hits
from rag.retrieval.search_query import SearchQuery
from rag.retrieval.search_scope import read_scope
from rag.storage.database import Database
from rag.storage.embedded_postgres import EmbeddedServer
from rag.storage.pipeline import Pipeline
from rag.types import Scope, SearchResult

Line = Callable[..., None]


def peers(
    pythons: Sequence[str],
    server: EmbeddedServer,
    corpus: Corpus,
    tenants: Sequence[Tenant],
    ours: dict[str, Callable[[Tenant, SearchQuery], Sequence[SearchResult]]],
    line: Line,
    *,
    has_index: bool,
) -> None:
    """Search within one tenant beside libraries, question by question, on as many rows with the same texts.

    Asked first with 2 to 8 words, then with one of them: libraries that join words with "and" find as much as others by
    one word only, and do as much work for it.
    """
    tenant = min(tenants, key=lambda t: abs(t.size - 1_400))
    chunks = sum(t.size for t in tenants)
    random = np.random.default_rng(7)
    about = random.integers(tenant.first, tenant.first + tenant.size, 50).tolist()
    whole = [corpus.question(chunk, random) for chunk in about]
    asked = [*whole, *(replace(query, text=query.text.split()[0]) for query in whole)]
    is_own = (np.arange(chunks) >= tenant.first) & (np.arange(chunks) < tenant.first + tenant.size)
    with psycopg.connect(server.superuser, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS peers WITH (FORCE)")
        connection.execute("CREATE DATABASE peers")
    with psycopg.connect(server.superuser, dbname="peers", autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    with tempfile.TemporaryDirectory() as folder:
        np.savez(
            Path(folder) / "data.npz",
            vectors=corpus.vectors[:chunks],
            texts=np.array([corpus.text(chunk) for chunk in range(chunks)]),
            owners=np.where(is_own, "own", "other"),
            questions=np.array([query.vector for query in asked]),
            asked=np.array([query.text for query in asked]),
        )
        script = str(Path(__file__).with_name("search_peers.py"))
        environment = {**os.environ, "PEERS_CONNINFO": make_conninfo(server.superuser, dbname="peers")}
        if has_index:
            environment["PEERS_INDEX"] = "1"
        with ExitStack() as stack:
            others = [stack.enter_context(_Other([python, script, folder], environment)) for python in pythons]
            names = [name for other in others for name in other.read()]
            times: dict[str, list[float]] = {name: [] for name in (*ours, *names)}
            rows: dict[str, list[set[int]]] = {name: [] for name in (*ours, *names)}
            row_of = {corpus.text(chunk): chunk for chunk in range(tenant.first, tenant.first + tenant.size)}
            for number, query in enumerate(asked):
                for name, search in ours.items():
                    started = time.perf_counter()
                    results = search(tenant, query)
                    times[name].append(1000 * (time.perf_counter() - started))
                    rows[name].append({row_of[result.content] for result in results})
                for other in others:
                    for name, (taken, found) in other.ask(number).items():
                        times[name].append(taken)
                        rows[name].append(set(found))
    own = corpus.vectors[tenant.first : tenant.first + tenant.size].astype(np.float32)
    nearest = [set((np.argsort(own @ np.asarray(query.vector))[-10:] + tenant.first).tolist()) for query in asked]
    print(f"  among {tenant.size} of {chunks} chunks, each library with as many rows:")
    for of_words, part in (("2 to 8 words", slice(10, 50)), ("one word", slice(60, 100))):
        print(f"  questions of {of_words}")
        for name, values in times.items():
            kind = "ours, " + name.rpartition(", ")[2]
            notes = [f"{np.median(np.array(values[part]) / np.array(times[kind][part])):.1f} × ours"]
            if "vector" in name:
                shares = [len(best & found) / 10 for best, found in zip(nearest[part], rows[name][part], strict=True)]
                notes.append(f"recall@10 {np.mean(shares):.3f}")
            else:
                held = [chunk in found for chunk, found in zip((about * 2)[part], rows[name][part], strict=True)]
                notes.append(f"the passage asked about among the ten {np.mean(held):.2f}")
            line(name, values[part], ", ".join(notes))


class _Other:
    """`search_peers.py` at work in another environment."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> _Other:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def read(self) -> Any:
        assert self._process.stdout
        return json.loads(self._process.stdout.readline() or "[]")

    def ask(self, number: int) -> dict[str, tuple[float, list[int]]]:
        """Milliseconds and rows found of each library for a question."""
        assert self._process.stdin
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        return dict(self.read())


#: Chunks of a document in the ingest that is searched: small, so that comparing with all of them is quick.
INGESTED_CHUNKS = 3


def during_ingest(
    reach: tuple[str, bytes], corpus: Corpus, tenant: Tenant, add: Callable[..., object], documents: int, line: Line
) -> None:
    """20 searchers, 5 in each of 4 processes, while documents are added one after the other."""
    context = multiprocessing.get_context("fork")
    is_over, out = context.Event(), context.Queue()
    searching = [
        context.Process(target=_searchers, args=(reach, corpus, tenant, seed, is_over, out)) for seed in range(4)
    ]
    for process in searching:
        process.start()
    database = Database(*reach)
    database.open()
    adding = []
    for number in range(documents):
        started = time.perf_counter()
        add(database, tenant, number, INGESTED_CHUNKS)
        adding.append(1000 * (time.perf_counter() - started))
    is_over.set()
    done = [out.get(timeout=120) for _ in searching]
    for process in searching:
        process.join()
    database.close()
    times = [value for values, _ in done for value in values]
    checked = [check for _, checks in done for check in checks]
    wrong = sum(not is_right for is_right, _ in checked)
    recall = np.mean([share for _, share in checked])
    line(f"document of {INGESTED_CHUNKS} chunks added, 20 searching", adding, f"{documents} documents")
    line("search meanwhile", times, f"{len(times)} searches, {len(checked)} compared")
    print(f"  compared with all passages: {wrong} wrong by keyword, recall@10 by vector {recall:.4f}")


def _searchers(reach: tuple[str, bytes], corpus: Corpus, tenant: Tenant, seed: int, is_over: Any, out: Any) -> None:
    database = Database(*reach)
    database.open()
    times, checked = list[float](), list[tuple[bool, float]]()

    def search(number: int) -> None:
        random = np.random.default_rng(100 * seed + number)
        while not is_over.is_set():
            query = corpus.question(int(random.integers(0, CHUNKS_PER_DOCUMENT * 10)), random)
            started = time.perf_counter()
            scope = Scope(tenant_id=tenant.id, collection_ids=(tenant.collection_id,))
            with database.pipeline(tenant.id) as pipeline:
                hits = find_hits(pipeline, query, read_scope(pipeline, scope, None), limit=10)
                times.append(1000 * (time.perf_counter() - started))
                if random.random() < 0.05:
                    checked.append(_compared(pipeline, tenant, corpus, query, hits))

    threads = [threading.Thread(target=search, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out.put((times, checked))
    database.close()


def _compared(pipeline: Pipeline, tenant: Tenant, corpus: Corpus, query: SearchQuery, hits: Hits) -> tuple[bool, float]:
    """Whether the ten best by keyword are those of all passages this moment has; the share of those by vector."""
    rows = pipeline.execute(
        "SELECT t.terms, c.embedding FROM document_chunks c JOIN documents d ON d.id = c.document_id "
        "JOIN chunk_terms t ON t.chunk_id = c.id WHERE d.status = 'completed' AND c.collection_id = %(collection_id)s",
        {"collection_id": tenant.collection_id},
    ).fetchall()
    if not rows:
        return not hits.near and not hits.matching, 1.0
    asked = [int(corpus.term_ids[corpus.vocabulary.index(word)]) for word in query.text.split()]
    passages = [unpacked_terms(terms) for terms, _ in rows]
    lengths = np.array([len(terms) for terms in passages])
    frequencies = np.array([[(terms == term).sum() for term in asked] for terms in passages], dtype=float)
    idfs = [inverse_document_frequency(float(n), len(rows)) for n in (frequencies > 0).sum(axis=0)]
    norms = K1 * (1 - B + B * lengths / lengths.mean())
    scores = np.sort((frequencies * (K1 + 1) / (frequencies + norms[:, None])) @ np.array(idfs))[::-1][:10]
    found = [score for _, score in hits.matching]
    expected = scores[scores > 0]
    similarities = np.sort(np.array([v.to_numpy() for _, v in rows], dtype=np.float32) @ np.asarray(query.vector))[
        ::-1
    ][:10]
    near = sum(similarity >= similarities[-1] - 1e-4 for _, similarity in hits.near)
    is_right = len(found) == len(expected) and np.allclose(found, expected, rtol=1e-5)
    return is_right, near / len(similarities)
