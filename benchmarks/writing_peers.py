"""The part of `benchmarks/writing.py` that runs in langchain-postgres' own environment: `add_embeddings`, timed.

The texts and vectors are those of the benchmark; batches of 1000, as its documentation does.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np
import psycopg
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_postgres import PGVector
from sqlalchemy import URL

CONNINFO = psycopg.conninfo.conninfo_to_dict(os.environ["PEERS_CONNINFO"])


def main(path: str, rounds: int) -> None:
    """Print the seconds of each round after a first that warms up."""
    data = np.load(path)
    texts, vectors = data["texts"].tolist(), data["vectors"]
    url = URL.create(
        "postgresql+psycopg", CONNINFO["user"], CONNINFO.get("password"), None, None, CONNINFO["dbname"],
        query={"host": CONNINFO["host"], "port": CONNINFO["port"]},
    )  # fmt: skip
    lists = vectors.tolist()
    for number in range(rounds + 1):
        store = PGVector(
            DeterministicFakeEmbedding(size=vectors.shape[1]),
            connection=url.render_as_string(hide_password=False),
            collection_name=f"round {number}",
            use_jsonb=True,
        )
        started = time.perf_counter()
        for first in range(0, len(texts), 1000):
            part = slice(first, first + 1000)
            metadatas = [{"page": first + i} for i in range(len(texts[part]))]
            store.add_embeddings(texts[part], lists[part], metadatas=metadatas)
        if number:
            print(time.perf_counter() - started, flush=True)
        store.delete_collection()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
