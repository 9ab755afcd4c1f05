"""Embed the samples' passages by meaning and store the vectors: `python -m rag.samples.build_vectors`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from rag.ingestion.meaning import MeaningJob, digest_of
from rag.providers.builtin_embedders import MeaningEmbedder
from rag.samples.load import load_samples
from rag.samples.vectors import FILE, write_vectors
from rag.services import connect_services
from rag.settings import Settings
from rag.types import FloatMatrix


def main() -> None:
    """Load the samples into a temporary database, embed every passage, and store the vectors."""
    vectors: dict[bytes, FloatMatrix] = {}

    class Keeping(MeaningEmbedder):
        def embed(self, texts: Any, *, purpose: Any) -> Any:
            embeddings = super().embed(texts, purpose=purpose)
            vectors.update(zip(map(digest_of, texts), embeddings.vectors, strict=True))
            return embeddings

    with tempfile.TemporaryDirectory() as folder:
        parts = connect_services(Settings(data_dir=Path(folder), builtin_embedder="lexical"))
        embedder = Keeping(gives_way=False)
        try:
            tenant = parts.settings.tenant
            work = MeaningJob(parts.pipeline.control, embedder, Path(folder))
            for collection in load_samples(parts):
                while not work.run(tenant, collection.id):
                    pass
        finally:
            embedder.close()
            parts.close()
    write_vectors(vectors)
    print(f"{FILE.name}: {len(vectors)} parts of passages, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
