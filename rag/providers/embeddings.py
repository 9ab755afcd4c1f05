"""Texts into checked vectors: what ingestion and retrieval call, whichever embedder stands behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from rag.errors import InvalidInput
from rag.providers import Embedder
from rag.providers.calls import lost_with
from rag.providers.vectors import unit_rows
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
