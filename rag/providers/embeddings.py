"""Embed texts and check every vector before it is stored or compared, whichever embedder made it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rag.errors import InvalidInput, ProviderAnswerInvalid
from rag.providers import Embedder
from rag.providers.retry import lost_with
from rag.types import Embeddings, FloatMatrix, Usage

Purpose = Literal["document", "query"]


def generate_embedding(text: str, *, embedder: Embedder, purpose: Purpose = "query") -> Embeddings:
    """Embed one text: vectors of shape (1, dimensions), length 1, with the usage of the call.

    Raises `InvalidInput` for a text of only spaces and `ProviderError` when the provider does not do its part.
    """
    return _embed_checked([text], embedder, purpose)


def generate_embeddings_batch(
    texts: Sequence[str], *, embedder: Embedder, batch_size: int = 100, purpose: Purpose = "document"
) -> Embeddings:
    """Embed many texts in their order: (texts, dimensions) float32, rows of length 1, with every call's usage.

    Raises as `generate_embedding`; to keep what was paid for before an error, take `embedding_batches`.
    """
    vectors: list[FloatMatrix] = []
    usages: list[Usage] = []
    with lost_with(usages):
        for batch in embedding_batches(texts, embedder=embedder, batch_size=batch_size, purpose=purpose):
            vectors.append(batch.vectors)
            usages.extend(batch.usages)
    if not vectors:
        return Embeddings(vectors=np.empty((0, embedder.dimensions), dtype=np.float32))
    return Embeddings(vectors=np.concatenate(vectors), usages=tuple(usages))


def embedding_batches(
    texts: Sequence[str], *, embedder: Embedder, batch_size: int = 100, purpose: Purpose = "document"
) -> Iterator[Embeddings]:
    """Yield the embeddings of `batch_size` texts after another, so that each can be stored before the next is paid."""
    if batch_size < 1:
        raise InvalidInput("A batch has to hold at least one text.")
    for start in range(0, len(texts), batch_size):
        yield _embed_checked(texts[start : start + batch_size], embedder, purpose)


def _embed_checked(texts: Sequence[str], embedder: Embedder, purpose: Purpose) -> Embeddings:
    if not all(text.strip() for text in texts):
        raise InvalidInput("A text of only spaces cannot be embedded.")
    made = embedder.embed(texts, purpose=purpose)
    with lost_with(made.usages):
        vectors = unit_rows(made.vectors, count=len(texts), dimensions=embedder.dimensions)
    return Embeddings(vectors=vectors, usages=made.usages)


def unit_rows(rows: Sequence[ArrayLike] | FloatMatrix, *, count: int, dimensions: int) -> FloatMatrix:
    """Return the rows as one (count, dimensions) float32 matrix, each of length 1.

    Raises `ProviderAnswerInvalid` for a wrong count or dimension, for NaN or infinity, and for a row of zeros.
    """
    if len(rows) != count:
        raise ProviderAnswerInvalid(
            f"The provider sent {len(rows)} embeddings for {count} texts. Try again in a moment."
        )
    if count == 0:
        return np.empty((0, dimensions), dtype=np.float32)
    try:
        matrix = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError) as exc:
        raise ProviderAnswerInvalid("The provider sent embeddings that are not rows of numbers.") from exc
    if matrix.shape != (count, dimensions):
        sent = matrix.shape[1] if matrix.ndim == 2 else "no"
        raise ProviderAnswerInvalid(
            f"The provider sent embeddings of {sent} dimensions where {dimensions} are expected."
        )
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    if not np.isfinite(lengths).all() or (lengths == 0).any():
        raise ProviderAnswerInvalid("The provider sent an embedding that is not a direction: zeros or not numbers.")
    unit: FloatMatrix = (matrix / lengths[:, None]).astype(np.float32)
    return unit
