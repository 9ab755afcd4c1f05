"""Chunks with their vectors into Postgres, rows per second: our batch writer against raw binary COPY, the limit.

    python -m benchmarks.writing [--rows 20000] [--dimensions 1536] [--rounds 3] [--peers VENV/bin/python]

All write to the same table with the same keys and indexes, into the built-in server with its ordinary settings; they
take turns within each round, and what a method wrote is deleted before the next one writes. `raw binary COPY` packs the
wire format by hand in one transaction, as superuser: Postgres allows no COPY into a table for a role under row-level
security, which the application's role is. The others write as that role. With `--peers`, a Python that has
langchain-postgres, its `add_embeddings` writes the same afterwards into a database of its own in the same server:
without our keys, indexes and row-level security.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import psycopg
from pgvector import HalfVector
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from rag.ingestion.document_rows import add_chunks, find_document
from rag.storage.database import Database, queries, sealing_key
from rag.storage.embedded_postgres import start_server
from rag.storage.migrations import migrate
from rag.types import Chunk, Document, FloatMatrix

TENANT = "benchmark"
LIMIT = "raw binary COPY, superuser"
MODEL = "builtin/lexical@1536"
TOKENS = [200] * 100  # none of the writers counts tokens: the product does it before, while it waits for vectors
BATCH = 100  # of the product: profiles.Profile.embedding_batch_size
WORDS = re.findall(
    r"\w+",
    "leave days notice period team lead request portal within working year pay benefit plan company month answer paper "
    "mill bindery shift hours break overtime training machine permit holiday illness doctor note expense",
)
COLUMN_TYPES = (
    "uuid", "text", "uuid", "text", "halfvec", "int4", "jsonb", "text", "int4", "int4", "int4", "int4", "text", "int4",
)  # fmt: skip
Writer = Callable[[Database, Document, Sequence[Chunk], FloatMatrix], None]


def make_chunks(rows: int, dimensions: int) -> tuple[list[Chunk], FloatMatrix]:
    """Chunks of about 1000 characters and random unit vectors; the same each time."""
    random = np.random.default_rng(7)
    vectors = random.standard_normal((rows, dimensions), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chunks = []
    for index in range(rows):
        text = " ".join(random.choice(WORDS, 165))
        start = index * 800
        chunks.append(
            Chunk(
                index=index,
                content=text,
                first_page=index // 3 + 1,
                last_page=index // 3 + 1,
                start=start,
                end=start + len(text),
                section="5 Holidays and absence › 5.1 Annual leave",
            )
        )
    return chunks, vectors


def ours_in_batches(database: Database, document: Document, chunks: Sequence[Chunk], vectors: FloatMatrix) -> None:
    """As the product does it: each answered batch is committed, without waiting for the disk."""
    for first in range(0, len(chunks), BATCH):
        with database.transaction(TENANT) as connection:
            connection.execute(queries["commit_without_waiting"])
            part = slice(first, first + BATCH)
            add_chunks(connection, document, chunks[part], vectors[part], MODEL, tokens=TOKENS[:BATCH])


def ours_at_once(database: Database, document: Document, chunks: Sequence[Chunk], vectors: FloatMatrix) -> None:
    with database.transaction(TENANT) as connection:
        add_chunks(connection, document, chunks, vectors, MODEL, tokens=[200] * len(chunks))


RAW_COPY = """
COPY document_chunks (document_id, tenant_id, collection_id, content, embedding, chunk_index, metadata,
    embedding_model, first_page, last_page, start_character, end_character, section, tokens)
FROM STDIN (FORMAT BINARY)
"""


def raw_copy(
    superuser: str, _database: Database, document: Document, chunks: Sequence[Chunk], vectors: FloatMatrix
) -> None:
    def text(value: str) -> bytes:
        raw = value.encode()
        return struct.pack(">i", len(raw)) + raw

    integer = struct.Struct(">ii").pack
    head = struct.pack(">h", 14) + struct.pack(">i", 16) + document.id.bytes + text(TENANT)
    head += struct.pack(">i", 16) + document.collection_id.bytes
    halves = vectors.astype(">f2")
    vector_head = struct.pack(">iHH", 4 + 2 * vectors.shape[1], vectors.shape[1], 0)
    metadata, model = struct.pack(">i", 3) + b"\x01{}", text(MODEL)
    with (
        psycopg.connect(superuser) as connection,
        connection.cursor() as cursor,
        cursor.copy(RAW_COPY) as copy,
    ):
        copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0))
        block: list[bytes] = []
        for chunk, half in zip(chunks, halves, strict=True):
            block += (
                head, text(chunk.content), vector_head, half.tobytes(), integer(4, chunk.index), metadata, model,
                integer(4, chunk.first_page), integer(4, chunk.last_page), integer(4, chunk.start),
                integer(4, chunk.end), text(chunk.section), integer(4, len(chunk.content) // 5),
            )  # fmt: skip
            if len(block) > 1300:
                copy.write(b"".join(block))
                block.clear()
        copy.write(b"".join(block) + struct.pack(">h", -1))


def through_temporary_table(
    database: Database, document: Document, chunks: Sequence[Chunk], vectors: FloatMatrix
) -> None:
    with database.transaction(TENANT) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE arrived (LIKE document_chunks INCLUDING DEFAULTS) ON COMMIT DROP")
        cursor.execute("ALTER TABLE arrived ALTER COLUMN embedding SET STORAGE PLAIN")
        with cursor.copy(RAW_COPY.replace("document_chunks", "arrived")) as copy:
            copy.set_types(COLUMN_TYPES)
            for chunk, vector in zip(chunks, vectors, strict=True):
                copy.write_row(
                    (
                        document.id, TENANT, document.collection_id, chunk.content, HalfVector(vector), chunk.index,
                        Jsonb({}), MODEL, chunk.first_page, chunk.last_page, chunk.start, chunk.end, chunk.section,
                        200,
                    )
                )  # fmt: skip
        cursor.execute("INSERT INTO document_chunks SELECT * FROM arrived")


WRITERS: dict[str, Writer] = {
    f"ours, transactions of {BATCH}, as the product": ours_in_batches,
    "ours, one transaction": ours_at_once,
    "COPY to a temporary table, INSERT": through_temporary_table,
}


def add_document(database: Database) -> Document:
    with database.transaction(TENANT) as connection:
        connection.execute("INSERT INTO tenants (id, name) VALUES (%s, %s)", (TENANT, TENANT))
        row = connection.execute(
            "WITH new AS (INSERT INTO collections (tenant_id, name, embedding_model) VALUES (%s, 'Benchmark', %s) "
            "RETURNING id, tenant_id) INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256) "
            "SELECT tenant_id, id, 'Benchmark', 'benchmark.pdf', '0' FROM new RETURNING id",
            (TENANT, MODEL),
        ).fetchone()
    assert row is not None
    document = find_document(database, TENANT, row[0])
    assert document is not None
    return document


def langchain_seconds(
    arguments: argparse.Namespace, superuser: str, chunks: Sequence[Chunk], vectors: FloatMatrix
) -> list[float]:
    """Seconds of each round of langchain-postgres, in a database of its own."""
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute("CREATE DATABASE peers")
    own = make_conninfo(superuser, dbname="peers")
    with psycopg.connect(own, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        np.savez(file, texts=np.array([chunk.content for chunk in chunks]), vectors=vectors)
        file.flush()
        done = subprocess.run(
            [str(arguments.peers), str(Path(__file__).with_name("writing_peers.py")), file.name, str(arguments.rounds)],
            env={**os.environ, "PEERS_CONNINFO": own},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return [float(line) for line in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dimensions", type=int, default=1536)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", type=Path, help="Python of an environment with langchain-postgres")
    arguments = parser.parse_args()
    chunks, vectors = make_chunks(arguments.rows, arguments.dimensions)
    with tempfile.TemporaryDirectory(prefix="writing-") as folder:
        server = start_server(Path(folder))
        try:
            migrate(server.owner)
            database = Database(server.application, sealing_key(server.owner))
            database.open()
            document = add_document(database)
            superuser = make_conninfo(server.superuser, dbname="rag", options="-c search_path=public,extensions")
            writers: dict[str, Writer] = {LIMIT: partial(raw_copy, superuser), **WRITERS}
            seconds: dict[str, list[float]] = {name: [] for name in writers}
            for round_number in range(arguments.rounds + 1):
                for name, write in writers.items():
                    started = time.perf_counter()
                    write(database, document, chunks, vectors)
                    if round_number:  # the first round warms up
                        seconds[name].append(time.perf_counter() - started)
                    with database.transaction(TENANT) as connection:
                        written = connection.execute("DELETE FROM document_chunks").rowcount
                    assert written == arguments.rows
                    with psycopg.connect(superuser, autocommit=True) as connection:
                        connection.execute("VACUUM document_chunks")
            database.close()
            peer_seconds = langchain_seconds(arguments, server.superuser, chunks, vectors) if arguments.peers else []
        finally:
            server.stop()

    print(
        f"{arguments.rows} rows, {arguments.dimensions} dimensions, about 1000 characters each; "
        f"{arguments.rounds} rounds\n"
    )
    print(f"{'':44}{'rows/s':>9}{'spread':>18}{'vs COPY':>10}")
    limit = statistics.median(seconds[LIMIT])
    for name, times in seconds.items():
        median = statistics.median(times)
        spread = f"{arguments.rows / max(times):.0f} … {arguments.rows / min(times):.0f}"
        print(f"{name:44}{arguments.rows / median:>9.0f}{spread:>18}{limit / median:>10.2f}")
    if peer_seconds:
        median = statistics.median(peer_seconds)
        print(f"{'langchain-postgres add_embeddings':44}{arguments.rows / median:>9.0f}{'':18}{limit / median:>10.2f}")
        ours = statistics.median(seconds[f"ours, transactions of {BATCH}, as the product"])
        print(f"\nours against langchain-postgres: {median / ours:.1f} times")


if __name__ == "__main__":
    main()
