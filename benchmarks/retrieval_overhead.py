"""What `retrieve_context` itself takes beside the search: milliseconds, with providers that answer at once.

    python -m benchmarks.retrieval_overhead [--questions 200]

A collection of handbook-like passages with the built-in embedder. The search is timed inside the same calls.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from datetime import UTC, datetime
from uuid import UUID

from pgvector import HalfVector

from benchmarks.database import temporary_database
from rag.profiles import PROFILES
from rag.profiles.profile import Profile
from rag.providers.builtin_embedders import LexicalEmbedder
from rag.providers.registry import Providers
from rag.retrieval.bm25.index import index_document
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Question, Role

TENANT = "overhead"
WORDS = [
    "vacation", "parking", "overtime", "pension", "travel", "desk", "laptop", "canteen", "bicycle",
    "training", "illness", "manager", "portal", "request", "week", "employee", "company", "contract",
    "allowance", "insurance", "dental", "glasses", "notice", "probation", "payslip", "holiday", "shift",
    "safety",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--passages", type=int, default=2000)
    options = parser.parse_args()
    with temporary_database("retrieval-overhead") as database:
        measure(database, options)


def measure(database: Database, options: argparse.Namespace) -> None:
    chance = random.Random(1)
    collection = fill(database, options.passages, chance)
    retriever = Retriever(database, Providers(Settings()))
    asker = Identity(account_id=UUID(int=0), tenant_id=TENANT, email="", name="benchmark", role=Role.ADMIN)

    def ask(profile: Profile) -> tuple[float, float]:
        text = f"How many {chance.choice(WORDS)} days does the {' '.join(chance.sample(WORDS, 3))} rule give?"
        started = time.perf_counter()
        found = retriever.retrieve_context(Question(text=text, identity=asker, collection=collection), profile=profile)
        total_ms = 1000 * (time.perf_counter() - started)
        timing = found.rag_details.timing
        return total_ms, total_ms - timing.search_ms - timing.embedding_ms

    for profile in PROFILES.values():
        for _ in range(20):
            ask(profile)
        times = [ask(profile) for _ in range(options.questions)]
        own = sorted(own_ms for _, own_ms in times)
        print(
            f"{profile.name:10} whole {statistics.median(total for total, _ in times):5.1f} ms   beside the search "
            f"{statistics.median(own):5.2f} ms, 95 in 100 within {own[int(0.95 * len(own))]:5.2f} ms"
        )


def fill(
    database: Database, passages: int, chance: random.Random, *, name: str = "Rules", profile: str = "hr"
) -> Collection:
    embedder = LexicalEmbedder()
    texts = [
        ". ".join(" ".join(chance.choices(WORDS, k=12)).capitalize() for _ in range(12)) + "." for _ in range(passages)
    ]
    vectors = embedder.embed(texts, purpose="document").vectors
    with database.transaction(TENANT) as connection:
        connection.execute("INSERT INTO tenants (id, name) VALUES (%s, 'Overhead') ON CONFLICT DO NOTHING", (TENANT,))
        row = connection.execute(
            "INSERT INTO collections (tenant_id, name, profile, embedding_model) VALUES (%s, %s, %s, %s) RETURNING id",
            (TENANT, name, profile, embedder.id),
        ).fetchone()
        assert row is not None
        collection_id: UUID = row[0]
        per_document = 100
        for number in range(0, passages, per_document):
            document = connection.execute(
                "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status, language) "
                "VALUES (%s, %s, %s, %s, %s, 'completed', 'en') RETURNING id",
                (TENANT, collection_id, f"{name} {number}", f"{number}.pdf", str(number)),
            ).fetchone()
            assert document is not None
            connection.cursor().executemany(
                "INSERT INTO document_chunks (tenant_id, collection_id, document_id, content, embedding, "
                "embedding_model, chunk_index) VALUES (%s, %s, %s, %s, %s, %s, %s)",
                [
                    (TENANT, collection_id, document[0], texts[i], HalfVector(vectors[i]), embedder.id, i - number)
                    for i in range(number, min(number + per_document, passages))
                ],
            )
            index_document(connection, tenant_id=TENANT, collection_id=collection_id, document_id=document[0])
    return Collection(
        id=collection_id, tenant_id=TENANT, name=name, profile=profile, embedding_model=embedder.id, language="en",
        overrides={}, created_at=datetime.now(UTC),
    )  # fmt: skip


if __name__ == "__main__":
    main()
