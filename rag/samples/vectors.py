"""The samples' meaning vectors, so the first start computes none. `build_vectors` beside this module makes them.

Each vector is found by a digest of its passage's text. Passages with different text, for example in a collection with
other settings, are embedded in the background.
"""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rag.samples import FOLDER
from rag.types import FloatMatrix

log = logging.getLogger("rag.start")
FILE = FOLDER / "meaning.npz"


def read_vectors(path: Path = FILE) -> Mapping[bytes, FloatMatrix]:
    """Return vectors by their text's digest; empty if the file is missing or unreadable."""
    try:
        # Opened here, because numpy does not close a file which is not an archive.
        with path.open("rb") as file, np.load(file) as stored:
            digests, vectors = stored["digests"], stored["vectors"].astype(np.float32)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as exc:
        log.warning("The samples' vectors of meaning cannot be read (%s); they are made in the background", exc)
        return {}
    return {digest.tobytes(): vector for digest, vector in zip(digests, vectors, strict=True)}


def write_vectors(vectors: Mapping[bytes, FloatMatrix], path: Path = FILE) -> None:
    """Write the vectors sorted by digest, in half precision, like the database."""
    digests = sorted(vectors)
    np.savez(
        path,
        digests=np.array([np.frombuffer(digest, dtype=np.uint8) for digest in digests]),
        vectors=np.array([vectors[digest] for digest in digests], dtype=np.float16),
    )
