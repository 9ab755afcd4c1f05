"""The part of `benchmarks/search.py` that runs in the libraries' own environment: vector search within one tenant.

Each library writes the vectors into its own table, those of the tenant marked by a metadata field, and is asked the
same questions with a filter on that field. No index: their searches are exact, like ours.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psycopg

CONNINFO = psycopg.conninfo.conninfo_to_dict(os.environ["PEERS_CONNINFO"])
TEXT = "word " * 200


def of_langchain(vectors: np.ndarray, owners: list[str]) -> Iterator[Callable[[np.ndarray], int]]:
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_postgres import PGVector
    from sqlalchemy import URL

    url = URL.create(
        "postgresql+psycopg", CONNINFO["user"], CONNINFO["password"], None, None, CONNINFO["dbname"],
        query={"host": CONNINFO["host"], "port": CONNINFO["port"]},
    )  # fmt: skip
    store = PGVector(
        DeterministicFakeEmbedding(size=vectors.shape[1]),
        connection=url.render_as_string(hide_password=False),
        collection_name="peers",
        use_jsonb=True,
    )
    for first in range(0, len(vectors), 1000):
        part = slice(first, first + 1000)
        store.add_embeddings(
            [TEXT] * len(vectors[part]),
            vectors[part].tolist(),
            metadatas=[{"tenant": owner, "row": first + i} for i, owner in enumerate(owners[part])],
        )
    yield lambda q: [
        d.metadata["row"] for d in store.similarity_search_by_vector(q.tolist(), k=10, filter={"tenant": "own"})
    ]


def of_llama_index(vectors: np.ndarray, owners: list[str]) -> Iterator[Callable[[np.ndarray], int]]:
    from llama_index.core.schema import TextNode
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, VectorStoreQuery
    from llama_index.vector_stores.postgres import PGVectorStore
    from sqlalchemy import URL

    def url(driver: str) -> str:
        made = URL.create(
            f"postgresql+{driver}", CONNINFO["user"], CONNINFO["password"], None, None, CONNINFO["dbname"],
            query={"host": CONNINFO["host"], "port": CONNINFO["port"]},
        )  # fmt: skip
        return made.render_as_string(hide_password=False)

    store = PGVectorStore(
        connection_string=url("psycopg2"), async_connection_string=url("asyncpg"), table_name="peers",
        embed_dim=vectors.shape[1], use_jsonb=True, hybrid_search=False,
    )  # fmt: skip
    for first in range(0, len(vectors), 1000):
        part = slice(first, first + 1000)
        store.add(
            [
                TextNode(text=TEXT, embedding=v.tolist(), metadata={"tenant": owner, "row": first + i})
                for i, (v, owner) in enumerate(zip(vectors[part], owners[part], strict=True))
            ]
        )
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value="own")])
    yield lambda q: [
        node.metadata["row"]
        for node in store.query(
            VectorStoreQuery(query_embedding=q.tolist(), similarity_top_k=10, filters=filters)
        ).nodes
    ]


def main() -> None:
    data = np.load(Path(sys.argv[1]) / "data.npz")
    own, others = data["own"], data["vectors"]
    vectors = np.concatenate([own, others[len(own) :]])
    owners = ["own"] * len(own) + ["other"] * (len(vectors) - len(own))
    for name, make in (("langchain-postgres PGVector", of_langchain), ("llama-index PGVectorStore", of_llama_index)):
        try:
            search = next(make(vectors, owners))
        except Exception as error:
            print(f"  {name}: did not run ({type(error).__name__}: {str(error)[:120]})")
            continue
        times, shares = [], []
        for question in data["questions"]:
            started = time.perf_counter()
            rows = search(question)
            times.append(1000 * (time.perf_counter() - started))
            best = set(np.argsort(own @ question)[-10:].tolist())
            shares.append(len(best & set(rows)) / 10)
        note = f"recall@10 {np.mean(shares):.3f}, {len(vectors)} rows in its table"
        print(
            f"  {name:44}{np.percentile(times[10:], 50):9.2f}{np.percentile(times[10:], 95):9.2f}   {note}", flush=True
        )


if __name__ == "__main__":
    main()
