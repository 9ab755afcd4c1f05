"""Synthetic chunks, tenants and questions for `benchmarks/search.py`: seeded, so that every run has the same.

Chunks of about 1000 characters and 150 words from a vocabulary of 80,000 with Zipf's frequencies, a quarter of it
Korean; 20 to a document. Vectors from a mixture of 400 clusters in 96 dimensions with noise in all of them. Questions
are 2 to 8 distinct words of some chunk of their tenant, common words among them, and a vector of that chunk's cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg import register_vector
from psycopg.types.json import Jsonb

from rag.retrieval.bm25.index import FAN_OUT, SIZES, add_segment, term_id
from rag.retrieval.bm25.scoring import postings_of
from rag.retrieval.search_query import SearchQuery
from rag.text.analysers import analyse

MODEL = "openai/text-embedding-3-small"
CHUNKS_PER_DOCUMENT = 20
VOCABULARY = 80_000
WORDS_PER_CHUNK = 150
CLUSTERS, LATENT = 400, 96
CATEGORIES = ("leave", "pay", "travel")
#: Exponent of the tenants' sizes by their rank: 20 tenants from 27.8 % down to 1.4 %, 200 from 21.4 % to 0.06 %.
SKEW = {1: 0.0, 20: 1.0, 200: 1.11}
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "ar", "en", "ol")]


def tenant_sizes(chunks: int, tenants: int) -> list[int]:
    """Chunks of each tenant, whole documents, largest first; at least three documents each."""
    shares = np.arange(1, tenants + 1) ** -SKEW[tenants]
    documents = np.maximum(3, np.floor(shares / shares.sum() * chunks / CHUNKS_PER_DOCUMENT)).astype(int)
    documents[0] += chunks // CHUNKS_PER_DOCUMENT - documents.sum()
    return [int(n) * CHUNKS_PER_DOCUMENT for n in documents]


@dataclass(frozen=True)
class Corpus:
    """What is stored, whoever it belongs to."""

    chunks: int
    dimensions: int

    @property
    def model(self) -> str:
        return f"{MODEL}@{self.dimensions}"

    @cached_property
    def vocabulary(self) -> list[str]:
        """Words that are one index term each."""
        random = np.random.default_rng(11)
        words: dict[str, None] = {}
        while len(words) < VOCABULARY:
            if len(words) % 4 == 0:
                word = "".join(map(chr, random.integers(0xAC00, 0xD7A3, 2)))
            else:
                word = "".join(random.choice(SYLLABLES, random.integers(2, 4))) + "k"
            if len(analyse(word, "en")) == 1:
                words[word] = None
        return list(words)

    @cached_property
    def term_ids(self) -> NDArray[np.int32]:
        return np.array([term_id(analyse(word, "en")[0]) for word in self.vocabulary], dtype=np.int32)

    @cached_property
    def words(self) -> NDArray[np.int32]:
        """(chunks, words) numbers of words; the first three are the document's title."""
        random = np.random.default_rng(12)
        frequency = np.arange(1, VOCABULARY + 1) ** -1.05
        drawn = random.choice(VOCABULARY, (self.chunks, WORDS_PER_CHUNK + 3), p=frequency / frequency.sum())
        titles = random.integers(0, VOCABULARY, (self.chunks // CHUNKS_PER_DOCUMENT, 3))
        drawn[:, :3] = np.repeat(titles, CHUNKS_PER_DOCUMENT, axis=0)
        return drawn.astype(np.int32)

    @cached_property
    def _mixture(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
        random = np.random.default_rng(13)
        centres = random.standard_normal((CLUSTERS, LATENT), dtype=np.float32)
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        spread, _ = np.linalg.qr(random.standard_normal((self.dimensions, LATENT)))
        return centres, spread.T.astype(np.float32), random.integers(0, CLUSTERS, self.chunks)

    def _sample(self, clusters: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.float32]:
        centres, spread, _ = self._mixture
        inner = random.standard_normal((len(clusters), LATENT), dtype=np.float32) * (0.5 / LATENT**0.5)
        outer = random.standard_normal((len(clusters), self.dimensions), dtype=np.float32) * (
            0.4 / self.dimensions**0.5
        )
        vectors = (centres[clusters] + inner) @ spread + outer
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    @cached_property
    def vectors(self) -> NDArray[np.float16]:
        random = np.random.default_rng(14)
        made = np.empty((self.chunks, self.dimensions), dtype=np.float16)
        for first in range(0, self.chunks, 10_000):
            made[first : first + 10_000] = self._sample(self._mixture[2][first : first + 10_000], random)
        return made

    def text(self, chunk: int) -> str:
        words = [self.vocabulary[n] for n in self.words[chunk, 3:]]
        return ". ".join(" ".join(words[i : i + 14]) for i in range(0, len(words), 14))

    def title(self, chunk: int) -> str:
        return " ".join(self.vocabulary[n] for n in self.words[chunk, :3])

    def question(self, chunk: int, random: np.random.Generator) -> SearchQuery:
        """A question about a chunk."""
        distinct = np.unique(self.words[chunk, 3:])
        words = random.choice(distinct, random.integers(2, 9), replace=False)
        vector = self._sample(self._mixture[2][chunk : chunk + 1], random)[0]
        return SearchQuery(
            text=" ".join(self.vocabulary[n] for n in words), language="en", vector=vector, embedding_model=self.model
        )


@dataclass(frozen=True)
class Tenant:
    """Whose chunks `first` … `first + size` of the corpus are."""

    id: str
    collection_id: UUID
    first: int
    size: int


def load(superuser: str, corpus: Corpus, tenants: int, chunks: int) -> list[Tenant]:
    """Write the first chunks of the corpus for so many tenants, by COPY; the counts are computed here."""
    random = np.random.default_rng(15)
    made: list[Tenant] = []
    first = 0
    length = WORDS_PER_CHUNK + 3
    with psycopg.connect(superuser, options="-c search_path=public,extensions") as connection:
        register_vector(connection)
        connection.execute("SET session_replication_role = replica")  # no triggers: counts are written below
        for number, size in enumerate(tenant_sizes(chunks, tenants)):
            tenant = Tenant(f"tenant-{number:03}", UUID(bytes=random.bytes(16)), first, size)
            made.append(tenant)
            connection.execute("INSERT INTO tenants (id, name) VALUES (%s, %s)", (tenant.id, tenant.id))
            connection.execute(
                "INSERT INTO collections (id, tenant_id, name, embedding_model) VALUES (%s, %s, 'All', %s)",
                (tenant.collection_id, tenant.id, corpus.model),
            )
            _load_tenant(connection, corpus, tenant, length, random)
            first += size
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
    return made


def _copy(
    connection: psycopg.Connection, table: str, columns: str, types: str, rows: Iterator[tuple[object, ...]]
) -> None:
    with connection.cursor().copy(f"COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(types.split())
        for row in rows:
            copy.write_row(row)


def _load_tenant(
    connection: psycopg.Connection, corpus: Corpus, tenant: Tenant, length: int, random: np.random.Generator
) -> None:
    chunks = range(tenant.first, tenant.first + tenant.size)
    ids = [UUID(bytes=random.bytes(16)) for _ in chunks]
    documents = [UUID(bytes=random.bytes(16)) for _ in range(tenant.size // CHUNKS_PER_DOCUMENT)]
    own = (tenant.id, tenant.collection_id)
    places = [(chunk, ids[i], documents[i // CHUNKS_PER_DOCUMENT]) for i, chunk in enumerate(chunks)]
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO documents (id, original_id, tenant_id, collection_id, title, file_name, sha256, status, "
            "language, chunk_count, metadata) VALUES (%s, %s, %s, %s, %s, 'd.pdf', %s, 'completed', 'en', %s, %s)",
            [
                (
                    document, document, *own, corpus.title(tenant.first + i * CHUNKS_PER_DOCUMENT), document.hex,
                    CHUNKS_PER_DOCUMENT,
                    Jsonb({"categories": [CATEGORIES[i % 3]], "years": [2020 + i % 7]}),
                )
                for i, document in enumerate(documents)
            ],
        )  # fmt: skip
    _copy(
        connection, "document_chunks",
        "id, document_id, tenant_id, collection_id, content, embedding, chunk_index, embedding_model",
        "uuid uuid text uuid text halfvec int4 text",
        (
            (chunk_id, document, *own, corpus.text(chunk), HalfVector(corpus.vectors[chunk]),
             chunk % CHUNKS_PER_DOCUMENT, corpus.model)
            for chunk, chunk_id, document in places
        ),
    )  # fmt: skip
    _copy(
        connection, "chunk_terms", "chunk_id, tenant_id, collection_id, document_id, terms",
        "uuid text uuid uuid bytea",
        (
            (chunk_id, *own, document, corpus.term_ids[corpus.words[chunk]].astype("<i4").tobytes())
            for chunk, chunk_id, document in places
        ),
    )  # fmt: skip
    connection.execute(
        "INSERT INTO chunk_bits (chunk_id, tenant_id, collection_id, document_id, embedding_model, bits) "
        "SELECT id, tenant_id, collection_id, document_id, embedding_model, binary_quantize(embedding) "
        "FROM document_chunks WHERE tenant_id = %s",
        (tenant.id,),
    )
    _load_keywords(connection, corpus, tenant, places)
    connection.execute(
        "INSERT INTO keyword_totals (tenant_id, collection_id, language, chunks, tokens) VALUES (%s, %s, 'en', %s, %s)",
        (*own, tenant.size, tenant.size * length),
    )


def _load_keywords(
    connection: psycopg.Connection, corpus: Corpus, tenant: Tenant, places: list[tuple[int, UUID, UUID]]
) -> None:
    """The keyword index in the state that documents added one after the other leave: 8 segments made one, and so on."""
    own: dict[str, Any] = {"tenant_id": tenant.id, "collection_id": tenant.collection_id}
    documents = [places[first : first + CHUNKS_PER_DOCUMENT] for first in range(0, len(places), CHUNKS_PER_DOCUMENT)]
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO keyword_documents (document_id, tenant_id, collection_id, language, first_passage, tokens, "
            "chunk_ids) VALUES (%(document_id)s, %(tenant_id)s, %(collection_id)s, 'en', %(first)s, %(tokens)s, "
            "%(chunk_ids)s)",
            [
                {
                    **own,
                    "document_id": document[0][2],
                    "first": number * CHUNKS_PER_DOCUMENT,
                    "tokens": corpus.words[:CHUNKS_PER_DOCUMENT].size,
                    "chunk_ids": [chunk_id for _, chunk_id, _ in document],
                }
                for number, document in enumerate(documents)
            ],
        )
    connection.execute(
        "INSERT INTO keyword_numbers (tenant_id, collection_id, next_passage) VALUES (%s, %s, %s)",
        (tenant.id, tenant.collection_id, tenant.size),
    )
    first = 0
    for power in range(len(SIZES), -1, -1):
        step = FAN_OUT**power * CHUNKS_PER_DOCUMENT
        while tenant.size - first >= step:
            rows = corpus.words[tenant.first + first : tenant.first + first + step]
            add_segment(connection, **own, postings=postings_of(list(corpus.term_ids[rows]), first))
            first += step
