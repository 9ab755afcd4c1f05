"""The part of `benchmarks/search.py` that runs in the libraries' own environment, one question at a time.

Each library writes the same passages with the same vectors into a table of its own, those of the tenant marked by a
metadata field, and is asked the same questions with a filter on that field. None uses a vector index here: their
searches are exact, like ours. With PEERS_INDEX the field is indexed where a library can use that: by llama-index when
told so, by hand for `PGVectorStore`; the others read it out of JSON. A line of numbers comes in for each question, a
line of JSON goes out.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psycopg

CONNINFO = psycopg.conninfo.conninfo_to_dict(os.environ["PEERS_CONNINFO"])
Search = Callable[[np.ndarray, str], list[int]]
HAS_INDEX = bool(os.environ.get("PEERS_INDEX"))


def url(driver: str) -> str:
    from sqlalchemy import URL

    made = URL.create(
        f"postgresql+{driver}", CONNINFO["user"], CONNINFO["password"], None, None, CONNINFO["dbname"],
        query={"host": CONNINFO["host"], "port": CONNINFO["port"]},
    )  # fmt: skip
    return str(made.render_as_string(hide_password=False))


def metadata(owners: list[str], first: int) -> list[dict[str, object]]:
    return [{"tenant": owner, "row": first + i} for i, owner in enumerate(owners)]


def of_langchain(texts: list[str], vectors: np.ndarray, owners: list[str]) -> Search:
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_postgres import PGVector

    store = PGVector(
        DeterministicFakeEmbedding(size=vectors.shape[1]),
        connection=url("psycopg"), collection_name="peers", use_jsonb=True,
    )  # fmt: skip
    for first in range(0, len(vectors), 1000):
        part = slice(first, first + 1000)
        store.add_embeddings(texts[part], vectors[part].tolist(), metadatas=metadata(owners[part], first))
    return lambda vector, _: [
        d.metadata["row"] for d in store.similarity_search_by_vector(vector.tolist(), k=10, filter={"tenant": "own"})
    ]


def of_langchain_hybrid(texts: list[str], vectors: np.ndarray, owners: list[str]) -> Search:
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_postgres import Column, PGEngine, PGVectorStore
    from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig

    engine = PGEngine.from_connection_string(url("psycopg"))
    config = HybridSearchConfig(tsv_column="content_tsv", tsv_lang="pg_catalog.english", primary_top_k=50,
                                secondary_top_k=50)  # fmt: skip
    engine.init_vectorstore_table(
        "peers_hybrid", vectors.shape[1],
        metadata_columns=[Column("tenant", "TEXT"), Column("row", "INTEGER")], hybrid_search_config=config,
    )  # fmt: skip
    store = PGVectorStore.create_sync(
        engine, DeterministicFakeEmbedding(size=vectors.shape[1]), "peers_hybrid",
        metadata_columns=["tenant", "row"], hybrid_search_config=config,
    )  # fmt: skip
    for first in range(0, len(vectors), 1000):
        part = slice(first, first + 1000)
        store.add_embeddings(texts[part], vectors[part].tolist(), metadatas=metadata(owners[part], first))
    store.apply_hybrid_search_index()
    if HAS_INDEX:
        with psycopg.connect(os.environ["PEERS_CONNINFO"], autocommit=True) as connection:
            connection.execute("CREATE INDEX ON peers_hybrid (tenant)")
    return lambda vector, text: [
        d.metadata["row"]
        for d in store.similarity_search_by_vector(vector.tolist(), k=10, filter={"tenant": "own"}, fts_query=text)
    ]


def of_llama_index(texts: list[str], vectors: np.ndarray, owners: list[str]) -> Search:
    from llama_index.core.schema import TextNode
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, VectorStoreQuery
    from llama_index.vector_stores.postgres import PGVectorStore

    store = PGVectorStore(
        connection_string=url("psycopg2"), async_connection_string=url("asyncpg"), table_name="peers",
        embed_dim=vectors.shape[1], use_jsonb=True, hybrid_search=False,
        indexed_metadata_keys={("tenant", "text")} if HAS_INDEX else None,
    )  # fmt: skip
    for first in range(0, len(vectors), 1000):
        part = slice(first, first + 1000)
        given = zip(texts[part], vectors[part], metadata(owners[part], first), strict=True)
        store.add([TextNode(text=text, embedding=vector.tolist(), metadata=m) for text, vector, m in given])
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value="own")])
    return lambda vector, _: [
        node.metadata["row"]
        for node in store.query(
            VectorStoreQuery(query_embedding=vector.tolist(), similarity_top_k=10, filters=filters)
        ).nodes
    ]


def of_raglite(texts: list[str], vectors: np.ndarray, owners: list[str]) -> Search:
    """Its two searches and its fusion as its hybrid does it; without a model, the question's vector is given."""
    from raglite import RAGLiteConfig
    from raglite._database import Chunk, ChunkEmbedding, Document, create_database_engine
    from raglite._search import keyword_search, reciprocal_rank_fusion, vector_search
    from sqlmodel import Session

    config = RAGLiteConfig(
        db_url=url("psycopg"),
        llm="gpt-4o-mini",  # never called; the default wants llama.cpp
        embedder="text-embedding-3-small",
        reranker=None,
        vector_search_query_adapter=False,
    )
    with Session(create_database_engine(config)) as session:
        session.add(Document(id="all", filename="all", metadata_={}))
        session.commit()
        for first in range(0, len(vectors), 1000):
            part = range(first, min(first + 1000, len(vectors)))
            session.add_all(
                Chunk(id=str(i), document_id="all", index=i, headings="", body=texts[i],
                      metadata_={"tenant": [owners[i]]})
                for i in part
            )  # fmt: skip
            session.commit()
            session.add_all(ChunkEmbedding(chunk_id=str(i), embedding=vectors[i].astype(np.float32)) for i in part)
            session.commit()

    def search(vector: np.ndarray, text: str) -> list[int]:
        only = {"tenant": "own"}
        near, _ = vector_search(vector, num_results=20, metadata_filter=only, config=config)
        matching, _ = keyword_search(text, num_results=20, metadata_filter=only, config=config)
        ids, _ = reciprocal_rank_fusion([near, matching], weights=[0.75, 0.25])
        return [int(i) for i in ids[:10]]

    return search


MAKERS = {
    "langchain-postgres PGVector, vector": of_langchain,
    "llama-index PGVectorStore, vector": of_llama_index,
    "langchain-postgres PGVectorStore, hybrid": of_langchain_hybrid,
    "raglite, hybrid": of_raglite,
}


def main() -> None:
    data = np.load(Path(sys.argv[1]) / "data.npz")
    texts, owners = data["texts"].tolist(), data["owners"].tolist()
    answer = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the libraries print is no answer
    searches: dict[str, Search] = {}
    for name, make in MAKERS.items():
        try:
            searches[name] = make(texts, data["vectors"].astype(np.float32), owners)
        except ImportError:
            continue  # it is in another environment
        except Exception as error:
            print(f"  {name}: did not run ({type(error).__name__}: {str(error)[:200]})", file=sys.stderr)
    with psycopg.connect(os.environ["PEERS_CONNINFO"], autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    print(json.dumps(list(searches)), file=answer)
    for line in sys.stdin:
        number = int(line)
        taken = {}
        for name, search in searches.items():
            started = time.perf_counter()
            rows = search(data["questions"][number], str(data["asked"][number]))
            taken[name] = (1000 * (time.perf_counter() - started), rows)
        print(json.dumps(taken), file=answer)


if __name__ == "__main__":
    main()
