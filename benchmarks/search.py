"""Search at size: speed by tenants, recall, raw SQL, adding and deleting, several processes, other libraries.

    python -m benchmarks.search                                  small: 6,000 chunks, under two minutes
    python -m benchmarks.search --chunks 100000 --tenants 1 20 200
    python -m benchmarks.search --chunks 100000 --tenants 20 --only peers --peers VENV/bin/python
    python -m benchmarks.search --chunks 6000 --tenants 1 --only ingest
    python -m benchmarks.search --chunks 10000 30000 100000 300000 --tenants 1 --only speed

Every number of chunks with every number of tenants is a database of its own on the built-in server with its ordinary
settings. What is compared takes turns within one loop, question by question. `--peers` names a
Python with langchain-postgres and llama-index-vector-stores-postgres, which need another pgvector than the product.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from psycopg.conninfo import make_conninfo

from benchmarks.search_beside import during_ingest, peers
from benchmarks.search_data import CATEGORIES, CHUNKS_PER_DOCUMENT, Corpus, Tenant, load
from rag.ingestion.document_rows import add_chunks, find_document
from rag.providers.builtin_embedders import MEANING_DIMENSIONS
from rag.retrieval.bm25.index import index_document
from rag.retrieval.hybrid_search import SearchQuery, hybrid_search, keyword_search, search, vector_search
from rag.samples.vectors import read_vectors
from rag.storage.database import ENTER, GENERIC, Database, entering, sealing_key
from rag.storage.embedded_postgres import EmbeddedServer, start_server
from rag.storage.migrations import migrate
from rag.storage.pipeline import SNAPSHOT, Pipeline
from rag.types import Chunk, Document, FloatMatrix, Identity, Scope, SearchFilters, Who

Asked = tuple[Tenant, SearchQuery]
#: Text and parameters.
Statement = tuple[str, dict[str, object]]
#: How the application connects, and what it seals identities with.
Reach = tuple[str, bytes]


def scope_of(tenant: Tenant) -> Scope:
    return Scope(tenant_id=tenant.id, collection_ids=(tenant.collection_id,))


def questions(corpus: Corpus, tenants: Sequence[Tenant], count: int, seed: int) -> list[Asked]:
    """Questions of tenants chosen uniformly."""
    random = np.random.default_rng(seed)
    chosen = [tenants[int(random.integers(len(tenants)))] for _ in range(count)]
    return [(t, corpus.question(int(random.integers(t.first, t.first + t.size)), random)) for t in chosen]


def milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - started)


def loop_ms() -> float:
    """How long a loop of pure Python takes now: shared machines differ by the half from one minute to the next."""
    return milliseconds(lambda: sum(i * i % 7 for i in range(3_000_000)))


def line(name: str, times: Sequence[float], note: str = "") -> None:
    print(f"  {name:44}{np.percentile(times, 50):9.2f}{np.percentile(times, 95):9.2f}   {note}", flush=True)


class Listening:
    """A database that keeps what is asked of it, and its one pipeline."""

    def __init__(self, database: Database) -> None:
        self.sent: list[Statement] = []
        self._database = database

    @contextmanager
    def pipeline(self, who: Who) -> Iterator[Listening]:
        with self._database.pipeline(who) as self._pipeline:
            yield self

    def read(self, who: Who, work: Callable[[Listening], Any]) -> Any:
        with self.pipeline(who) as pipeline:
            return work(pipeline)

    def execute(self, text: str, values: dict[str, object]) -> object:
        self.sent.append((text, dict(values)))
        return self._pipeline.execute(text, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipeline, name)


#: Takes an identity for what it says.
UNSEALED = """
CREATE OR REPLACE FUNCTION public.rag_verified(p_name text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('rag.identity', true), '')::json ->> p_name
"""


def seal(server: EmbeddedServer, database: Database, corpus: Corpus, tenants: Sequence[Tenant], count: int) -> None:
    """What it costs a search that the database checks whose transaction it is: beside a copy that does not.

    In processor time of this process and the server's, which other work on the machine changes least.
    """
    database.close()
    with psycopg.connect(server.superuser, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS unsealed WITH (FORCE)")
        connection.execute("CREATE DATABASE unsealed TEMPLATE measured OWNER rag_owner")
    with psycopg.connect(server.owner, dbname="unsealed") as connection:
        connection.execute(UNSEALED)
    key = sealing_key(server.owner)
    opened = [
        Database(make_conninfo(server.application, dbname=name), key, maximum_connections=1)
        for name in ("measured", "unsealed")
    ]
    for one in opened:
        one.open()
    backends = []
    for one in opened:
        with one.transaction(None) as connection:
            backends.append(connection.info.backend_pid)
    times: list[list[float]] = [[], []]
    for number, (tenant, query) in enumerate(questions(corpus, tenants, count + 20, seed=1)):
        for turn in range(6):
            which = (number + turn) % 2
            before = processor_ms(backends[which])
            hybrid_search(opened[which], query, scope=scope_of(tenant), limit=10)
            if number >= 20:
                times[which].append(processor_ms(backends[which]) - before)
    line("identity checked by the database, processor", times[0])
    ratio = sum(times[0]) / sum(times[1])
    line("taken for what it says, processor", times[1], f"checked takes {ratio:.3f} times as long")
    for one in opened:
        one.close()


def processor_ms(backend: int) -> float:
    """Processor time of this process and of a backend of Postgres so far."""
    of_backend = Path(f"/proc/{backend}/schedstat").read_text("ascii").split()[0]
    return 1000 * time.process_time() + int(of_backend) / 1e6


class PsycopgPipeline:
    """The same statements by psycopg's own pipeline, prepared and in binary."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self.cursor = psycopg.Cursor(connection)

    def execute(self, text: str, values: dict[str, Any] | None = None) -> PsycopgPipeline:
        pending = PsycopgPipeline(self._connection)
        pending.cursor.execute(text, values, prepare=True, binary=True)
        return pending

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.cursor.fetchall()

    def read(self, row: Callable[..., Any]) -> list[Any]:
        rows = self.cursor.fetchall()
        names = [column.name for column in self.cursor.description or ()]
        return [row(**dict(zip(names, values, strict=True))) for values in rows]

    def flush(self) -> None: ...

    def finish(self) -> None: ...


class OnPsycopgPipeline(Database):
    """The product's searches on psycopg's own pipeline."""

    @contextmanager
    def pipeline(self, who: Who) -> Iterator[Any]:
        with self._session() as connection:
            connection.set_autocommit(True)
            with connection.pipeline():
                connection.execute(SNAPSHOT)
                connection.execute(ENTER, entering(self.key, who, plans=GENERIC), prepare=True)
                yield PsycopgPipeline(connection)
                connection.execute("COMMIT")


def pipelines(reach: Reach, corpus: Corpus, tenants: Sequence[Tenant], count: int) -> None:
    """The hybrid search on our pipeline beside the same on psycopg's, question by question."""
    opened = [Database(*reach, maximum_connections=1), OnPsycopgPipeline(*reach, maximum_connections=1)]
    backends = []
    for one in opened:
        one.open()
        with one.transaction(None) as connection:
            backends.append(connection.info.backend_pid)
    times: list[list[float]] = [[], []]
    processor: list[list[float]] = [[], []]
    for number, (tenant, query) in enumerate(questions(corpus, tenants, count + 20, seed=1)):
        for turn in range(4):
            which = (number + turn) % 2
            before = processor_ms(backends[which])
            taken = milliseconds(partial(hybrid_search, opened[which], query, scope=scope_of(tenant), limit=10))
            if number >= 20:
                times[which].append(taken)
                processor[which].append(processor_ms(backends[which]) - before)
    line("hybrid, our pipeline", times[0])
    ratio, work = np.median(times[1]) / np.median(times[0]), sum(processor[1]) / sum(processor[0])
    line("hybrid, psycopg's pipeline", times[1], f"p50 {ratio:.2f}, processor {work:.2f} times ours")
    for one in opened:
        one.close()


class RawSearch:
    """The statements a hybrid search needs and nothing else: one connection, no pool, no fusion."""

    def __init__(self, reach: Reach) -> None:
        conninfo, self.key = reach
        self.connection = psycopg.connect(conninfo, autocommit=True)
        self.connection.execute("SET search_path = public, extensions")
        register_vector(self.connection)

    def prepare(self, database: Database, tenant: Tenant, query: SearchQuery) -> list[Statement]:
        """The searching statements of this question with their parameters, as the product sends them."""
        listening = Listening(database)
        hybrid_search(listening, query, scope=scope_of(tenant), limit=10)  # type: ignore[arg-type]
        return listening.sent

    def run(self, tenant: Tenant, statements: list[Statement]) -> None:
        with self.connection.transaction():
            self.connection.execute(ENTER, entering(self.key, tenant.id, plans=GENERIC))
            for text, values in statements:
                self.connection.execute(text, values, binary=True).fetchall()


def speed(
    database: Database, unguarded: Database, reach: Reach, corpus: Corpus, tenants: Sequence[Tenant], count: int
) -> None:
    raw = RawSearch(reach)
    searches = {
        "hybrid": partial(hybrid_search, database),
        "vector": partial(vector_search, database),
        "keyword": partial(keyword_search, database),
        "hybrid, no row-level security": partial(hybrid_search, unguarded),
    }
    names = [*searches, "raw SQL of the hybrid"]
    times: dict[str, list[float]] = {name: [] for name in names}
    for number, (tenant, query) in enumerate(questions(corpus, tenants, count + 20, seed=1)):
        statements = raw.prepare(database, tenant, query)
        # Each is first as often as the others: whoever is, finds the rows in nobody's cache.
        for name in [*names[number % len(names) :], *names[: number % len(names)]]:
            if name in searches:
                taken = milliseconds(partial(searches[name], query, scope=scope_of(tenant), limit=10))
            else:
                taken = milliseconds(partial(raw.run, tenant, statements))
            if number >= 20:  # before, plans and caches warm up
                times[name].append(taken)
    for name, values in times.items():
        line(name, values)
    for name in ("raw SQL of the hybrid", "hybrid, no row-level security"):
        ratio = np.median(np.array(times["hybrid"]) / np.array(times[name]))
        print(f"  hybrid against {name}, median of each question's ratio: {ratio:.2f}")


#: Each passage a vector of meaning and three parts, taken from its own vector: what they cost is not what they say. All
#: of them point as much the same way as the model's do.
MEANING = """
INSERT INTO meaning_vectors (chunk_id, tenant_id, collection_id, document_id, language, embedding)
SELECT id, tenant_id, collection_id, document_id, 'en', l2_normalize(
    %(usual)s::halfvec(384) + l2_normalize(subvector(embedding, 1, 384)) * %(own)s::halfvec(384))
FROM document_chunks
"""
MEANING_BITS = """
INSERT INTO meaning_bits (chunk_id, tenant_id, collection_id, document_id, language, bits)
SELECT chunk_id, tenant_id, collection_id, document_id, language, rag_meaning_bits(embedding) FROM meaning_vectors;
INSERT INTO meaning_parts (chunk_id, part, tenant_id, collection_id, embedding)
SELECT chunk_id, part, tenant_id, collection_id, embedding FROM meaning_vectors CROSS JOIN generate_series(0, 2) part;
ANALYZE meaning_vectors, meaning_bits, meaning_parts;
"""
NEAREST_BY_MEANING = """
SELECT chunk_id FROM meaning_vectors WHERE tenant_id = %s AND collection_id = %s
ORDER BY embedding <#> %s::halfvec LIMIT 10
"""
#: How much of a vector of meaning is its own: passages that have nothing in common have a cosine of 0.8.
OWN = 0.45


class LexicalQuery(SearchQuery):
    """A question to the built-in embedder, whose vectors have no telling signs: every one of them is compared."""

    is_dense = False


def meaning(database: Database, superuser: str, corpus: Corpus, tenants: Sequence[Tenant], count: int) -> None:
    """The hybrid search without and with vectors of meaning, question by question, and what their bits find.

    Vectors of meaning are beside those of the built-in embedder; the second pair of lines is what they would be beside
    a provider's.
    """
    usual = np.mean([*read_vectors().values()], axis=0)
    usual *= math.sqrt(1 - OWN**2) / np.linalg.norm(usual)
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute("SET search_path = public, extensions")
        connection.execute(MEANING, {"usual": str(usual.tolist()), "own": str([OWN] * MEANING_DIMENSIONS)})
        connection.execute(MEANING_BITS)
        times: dict[str, list[float]] = {}
        shares = []
        for number, (tenant, dense) in enumerate(questions(corpus, tenants, count + 20, seed=1)):
            assert dense.vector is not None
            direction = usual + OWN * dense.vector[:MEANING_DIMENSIONS] / np.linalg.norm(
                dense.vector[:MEANING_DIMENSIONS]
            )
            lexical = LexicalQuery(**{field.name: getattr(dense, field.name) for field in fields(dense)})
            asked = {}
            for name, query in (("hybrid, built-in embedder", lexical), ("hybrid, a provider's", dense)):
                asked[name] = query
                asked[f"{name}, with meaning"] = replace(query, meaning=direction / np.linalg.norm(direction))
            names = [*asked]
            for name in [*names[number % len(names) :], *names[: number % len(names)]]:
                taken = milliseconds(partial(hybrid_search, database, asked[name], scope=scope_of(tenant), limit=10))
                if number >= 20:
                    times.setdefault(name, []).append(taken)
            if number % 5 == 0:
                by_bits = search(
                    database, asked["hybrid, a provider's, with meaning"], scope=scope_of(tenant), limit=10
                )
                values = (tenant.id, tenant.collection_id, str(direction.tolist()))
                nearest = {row[0] for row in connection.execute(NEAREST_BY_MEANING, values)}
                shares.append(len(nearest & {hit.chunk_id for hit in by_bits.meaning_hits}) / len(nearest))
    for name, taken_by_name in sorted(times.items()):
        line(name, taken_by_name)
    for name in ("hybrid, built-in embedder", "hybrid, a provider's"):
        ratio = np.median(np.array(times[f"{name}, with meaning"]) / np.array(times[name]))
        print(f"  {name}: with meaning against without, median of each question's ratio: {ratio:.2f}")
    print(f"  recall@10 by meaning {np.mean(shares):.4f}, worst question {min(shares):.1f}")


def recall(database: Database, corpus: Corpus, tenants: Sequence[Tenant], count: int) -> None:
    """recall@10 of the vector search against all vectors of the tenant, with and without a filter."""
    random = np.random.default_rng(3)
    worst = 1.0
    shares: list[float] = []
    filtered: list[float] = []
    for tenant in dict.fromkeys([*tenants[:2], tenants[len(tenants) // 2], tenants[-1]]):
        own = corpus.vectors[tenant.first : tenant.first + tenant.size].astype(np.float32)
        category = np.arange(tenant.size) // CHUNKS_PER_DOCUMENT % len(CATEGORIES)
        for _ in range(count):
            query = corpus.question(int(random.integers(tenant.first, tenant.first + tenant.size)), random)
            assert query.vector is not None
            similarities = own @ query.vector
            for filters, allowed, into in (
                (None, np.ones(tenant.size, bool), shares),
                (SearchFilters(categories=CATEGORIES[:1]), category == 0, filtered),
            ):
                tenth = np.sort(similarities[allowed])[-10]
                found = vector_search(database, query, scope=scope_of(tenant), filters=filters, limit=10)
                into.append(sum((r.similarity or 0) >= tenth - 1e-4 for r in found) / 10)
                worst = min(worst, into[-1])
    print(f"  recall@10 {np.mean(shares):.4f}, with a filter {np.mean(filtered):.4f}, worst question {worst:.1f}")


def _answer(reach: Reach, inbox: object, outbox: object) -> None:
    """Another process: searches when told to, says which documents it found."""
    database = Database(*reach)
    database.open()
    while (task := inbox.get()) is not None:  # type: ignore[attr-defined]
        tenant, query = task
        found = hybrid_search(database, query, scope=scope_of(tenant), limit=10)
        outbox.put({r.document_id for r in found})  # type: ignore[attr-defined]
    database.close()


def new_document(database: Database, tenant: Tenant) -> Document:
    with database.transaction(tenant.id) as connection:
        row = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, language) "
            "VALUES (%s, %s, 'New', 'new.pdf', %s, 'en') RETURNING id",
            (tenant.id, tenant.collection_id, str(uuid4())),
        ).fetchone()
    assert row is not None
    document = find_document(database, tenant.id, row[0])
    assert document is not None
    return document


def add_document(
    database: Database, document: Document, chunks: Sequence[Chunk], vectors: FloatMatrix, model: str
) -> None:
    where: dict[str, Any] = {"tenant_id": document.tenant_id, "collection_id": document.collection_id}
    with database.transaction(document.tenant_id) as connection:
        add_chunks(connection, document, chunks, vectors, model)
        index_document(connection, **where, document_id=document.id)
        connection.execute("UPDATE documents SET status = 'completed' WHERE id = %s", (document.id,))


def writing(database: Database, reach: Reach, corpus: Corpus, tenant: Tenant, rounds: int) -> None:
    """One document of 20 chunks added, its embeddings given, and deleted; searched from another process each time."""
    context = multiprocessing.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    other = context.Process(target=_answer, args=(reach, inbox, outbox), daemon=True)
    other.start()
    adding: list[float] = []
    deleting: list[float] = []
    wrong = 0
    for number in range(rounds + 3):
        word = f"zyx{number}qv"
        chunks = [
            Chunk(index=i, content=f"{word} {corpus.text(i)}", first_page=1, last_page=1, start=i, end=i + 1)
            for i in range(CHUNKS_PER_DOCUMENT)
        ]
        vectors = corpus.vectors[:CHUNKS_PER_DOCUMENT].astype(np.float32)
        query = SearchQuery(text=word, language="en", vector=vectors[0], embedding_model=corpus.model)
        document = new_document(database, tenant)
        add = partial(add_document, database, document, chunks, vectors, corpus.model)

        def delete(document_id: UUID = document.id) -> None:
            with database.transaction(tenant.id) as connection:
                connection.execute("DELETE FROM documents WHERE id = %s", (document_id,))

        for work, into, is_there in ((add, adding, True), (delete, deleting, False)):
            taken = milliseconds(work)
            inbox.put((tenant, query))
            wrong += (document.id in outbox.get(timeout=60)) is not is_there
            if number >= 3:
                into.append(taken)
    inbox.put(None)
    other.join(timeout=20)
    line("document of 20 chunks added", adding)
    line("document of 20 chunks deleted", deleting, f"{wrong} wrong answers of another process")


def _load_generator(
    reach: Reach, corpus: Corpus, tenants: Sequence[Tenant], seed: int, count: int, out: object
) -> None:
    asked = questions(corpus, tenants, count + 20, seed)
    database = Database(*reach)
    database.open()
    for tenant, query in asked[:20]:
        hybrid_search(database, query, scope=scope_of(tenant), limit=10)
    started = time.time()
    times = [milliseconds(partial(hybrid_search, database, q, scope=scope_of(t), limit=10)) for t, q in asked[20:]]
    out.put((started, time.time(), times))  # type: ignore[attr-defined]
    database.close()


def several_processes(reach: Reach, corpus: Corpus, tenants: Sequence[Tenant], count: int) -> None:
    context = multiprocessing.get_context("fork")
    for processes in (1, 2, 4):
        out = context.Queue()
        running = [
            context.Process(target=_load_generator, args=(reach, corpus, tenants, 100 + n, count, out))
            for n in range(processes)
        ]
        for process in running:
            process.start()
        done = [out.get(timeout=600) for _ in running]
        for process in running:
            process.join()
        # The time in which all were at it.
        seconds = max(end for _, end, _ in done) - min(start for start, _, _ in done)
        times = [value for _, _, values in done for value in values]
        line(f"{processes} processes", times, f"{len(times) / seconds:.0f} queries/s")


def ingest(database: Database, tenant: Tenant, number: int, chunks: int, *, corpus: Corpus) -> None:
    """Add a document of the corpus' own passages."""
    places = range(number * chunks, number * chunks + chunks)
    made = [
        Chunk(index=i, content=corpus.text(n), first_page=1, last_page=1, start=i, end=i + 1)
        for i, n in enumerate(places)
    ]
    vectors = corpus.vectors[places.start : places.stop].astype(np.float32)
    add_document(database, new_document(database, tenant), made, vectors, corpus.model)


def empty_collection(reach: Reach, corpus: Corpus, tenant: Tenant) -> UUID:
    database = Database(*reach)
    database.open()
    with database.transaction(tenant.id) as connection:
        row = connection.execute(
            "INSERT INTO collections (tenant_id, name, embedding_model) VALUES (%s, 'New', %s) RETURNING id",
            (tenant.id, corpus.model),
        ).fetchone()
    database.close()
    assert row is not None
    return UUID(str(row[0]))


class Unguarded(Database):
    """The same searches as superuser: no row-level security, no role, no tenant set for the transaction."""

    @contextmanager
    def pipeline(self, tenant_id: Identity | str) -> Iterator[Pipeline]:
        with self._pool.connection() as session, Pipeline(session) as pipeline:
            yield pipeline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, nargs="+", default=[6_000])
    parser.add_argument("--tenants", type=int, nargs="+", default=[1, 20], choices=[1, 20, 200])
    parser.add_argument("--dimensions", type=int, default=1536)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument(
        "--only",
        choices=["speed", "recall", "meaning", "pipeline", "writing", "processes", "peers", "ingest", "seal"],
        default=None,
    )
    parser.add_argument("--peers", nargs="+", help="Pythons with the libraries to compare with")
    parser.add_argument("--index-tenants", action="store_true", help="with an index on the tenant's field for them")
    options = parser.parse_args()
    if 200 in options.tenants and min(options.chunks) < 30_000:
        parser.error("200 tenants of at least three documents each need 30,000 chunks")
    corpus = Corpus(max(options.chunks), options.dimensions)
    with tempfile.TemporaryDirectory(prefix="search-") as folder:
        server = start_server(Path(folder))
        try:
            migrate(server.owner)
            for chunks in options.chunks:
                for count in options.tenants:
                    measure(server, corpus, chunks, count, options)
        finally:
            server.stop()


def measure(server: EmbeddedServer, corpus: Corpus, chunks: int, count: int, options: argparse.Namespace) -> None:
    with psycopg.connect(server.superuser, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS measured WITH (FORCE)")
        connection.execute("CREATE DATABASE measured TEMPLATE rag OWNER rag_owner")
    started = time.perf_counter()
    tenants = load(make_conninfo(server.superuser, dbname="measured"), corpus, count, chunks)
    sizes = f"{tenants[0].size} … {tenants[-1].size} chunks each" if count > 1 else "all of them"
    print(f"\n{chunks} chunks, {corpus.dimensions} dimensions, {count} tenants ({sizes}); ", end="")
    print(f"a loop of 3 million steps takes {loop_ms():.0f} ms; ", end="")
    print(f"loaded in {time.perf_counter() - started:.0f} s\n  {'':44}{'p50 ms':>9}{'p95 ms':>9}")
    reach = make_conninfo(server.application, dbname="measured"), sealing_key(server.owner)
    database = Database(*reach)
    database.open()
    wanted = options.only
    if wanted in (None, "speed"):
        unguarded = Unguarded(
            make_conninfo(
                server.superuser,
                dbname="measured",
                options="-csearch_path=public,extensions -cplan_cache_mode=force_generic_plan "
                "-cparallel_setup_cost=2000",
            )
        )
        unguarded.open()
        speed(database, unguarded, reach, corpus, tenants, options.questions)
        unguarded.close()
    if wanted == "seal":
        seal(server, database, corpus, tenants, options.questions)
    if wanted in (None, "recall"):
        recall(database, corpus, tenants, max(10, options.questions // 5))
    if wanted in (None, "meaning"):
        superuser = make_conninfo(server.superuser, dbname="measured")
        meaning(database, superuser, corpus, tenants, options.questions)
    if wanted == "pipeline":
        pipelines(reach, corpus, tenants, options.questions)
    if wanted in (None, "writing"):
        writing(database, reach, corpus, tenants[len(tenants) // 2], 30)
    if wanted in (None, "processes") and count > 1:
        several_processes(reach, corpus, tenants, options.questions)
    if wanted in (None, "peers") and options.peers and count > 1:
        ours = {"ours, vector": vector_search, "ours, hybrid": hybrid_search}
        asking: Any = {
            name: lambda t, q, search=search: search(database, q, scope=scope_of(t), limit=10)
            for name, search in ours.items()
        }
        peers(options.peers, server, corpus, tenants, asking, line, has_index=options.index_tenants)
    if wanted == "ingest":
        tenant = Tenant(tenants[-1].id, empty_collection(reach, corpus, tenants[-1]), 0, 0)
        during_ingest(reach, corpus, tenant, partial(ingest, corpus=corpus), 1_000, line)
    database.close()


if __name__ == "__main__":
    main()
