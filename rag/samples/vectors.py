"""Keep the samples' vectors of meaning, so that the first start computes none; `python -m rag.samples.vectors` makes
them.

Each is found by a digest of its passage's text. Passages with another text, such as in a collection with other
settings, are embedded in the background like any others.
"""

from __future__ import annotations

import logging
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rag.samples import FOLDER
from rag.types import FloatMatrix

log = logging.getLogger("rag.start")
FILE = FOLDER / "meaning.npz"


def read_vectors(path: Path = FILE) -> Mapping[bytes, FloatMatrix]:
    """Return vectors by the digest of their text; none when the file is missing or cannot be read."""
    try:
        # Opened here, because numpy leaves a file that is not an archive open.
        with path.open("rb") as file, np.load(file) as stored:
            digests, vectors = stored["digests"], stored["vectors"].astype(np.float32)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as exc:
        log.warning("The samples' vectors of meaning cannot be read (%s); they are made in the background", exc)
        return {}
    return {digest.tobytes(): vector for digest, vector in zip(digests, vectors, strict=True)}


def write_vectors(vectors: Mapping[bytes, FloatMatrix], path: Path = FILE) -> None:
    """Write the vectors in the order of their digests, in half precision, as the database keeps them."""
    digests = sorted(vectors)
    np.savez(
        path,
        digests=np.array([np.frombuffer(digest, dtype=np.uint8) for digest in digests]),
        vectors=np.array([vectors[digest] for digest in digests], dtype=np.float16),
    )


def main() -> None:
    """Load the samples into a database of their own, embed every passage, and keep the vectors."""
    from rag.ingestion.meaning import MeaningJob, digest_of
    from rag.providers.builtin_embedders import MeaningEmbedder
    from rag.samples.load import load_samples
    from rag.services import connect_services
    from rag.settings import Settings

    made: dict[bytes, FloatMatrix] = {}

    class Keeping(MeaningEmbedder):
        def embed(self, texts: Any, *, purpose: Any) -> Any:
            embeddings = super().embed(texts, purpose=purpose)
            made.update(zip(map(digest_of, texts), embeddings.vectors, strict=True))
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
    write_vectors(made)
    print(f"{FILE.name}: {len(made)} parts of passages, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
