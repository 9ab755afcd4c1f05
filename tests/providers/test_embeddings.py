"""What ingestion and retrieval call: checked vectors, whichever embedder made them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from rag.errors import InvalidInput, ProviderAnswerInvalid
from rag.providers.builtin_embedders import LexicalEmbedder
from rag.providers.embeddings import embedding_batches, generate_embedding, generate_embeddings_batch
from rag.types import Embeddings, FloatMatrix, Usage


class Fixed:
    """An embedder that answers every call with the same rows, and notes the sizes of its calls."""

    id, provider, model, dimensions, default_threshold, is_paid = "test/fixed@3", "test", "fixed", 3, 0.1, True

    def __init__(self, rows: FloatMatrix | None = None) -> None:
        self.rows = rows
        self.sizes: list[int] = []

    def embed(self, texts: Sequence[str], *, purpose: str) -> Embeddings:
        self.sizes.append(len(texts))
        rows = np.ones((len(texts), 3), dtype=np.float32) if self.rows is None else self.rows
        return Embeddings(vectors=rows, usages=(Usage(provider="test", model="fixed", input_tokens=len(texts)),))


def test_one_text_is_one_row_of_length_one() -> None:
    made = generate_embedding("What is the vacation policy?", embedder=Fixed())
    assert made.vectors.shape == (1, 3)
    assert np.linalg.norm(made.vectors[0]) == pytest.approx(1, abs=1e-6)
    assert len(made.usages) == 1


def test_no_texts_make_no_call() -> None:
    embedder = Fixed()
    assert generate_embeddings_batch([], embedder=embedder).vectors.shape == (0, 3)
    assert embedder.sizes == []


def test_many_texts_go_in_batches_and_come_back_in_order() -> None:
    texts = [f"passage {number}" for number in range(250)]
    whole = generate_embeddings_batch(texts, embedder=LexicalEmbedder(), batch_size=100).vectors
    assert whole.shape == (250, 1536)
    assert np.array_equal(whole[249], generate_embedding(texts[249], embedder=LexicalEmbedder()).vectors[0])
    embedder = Fixed()
    assert sum(u.input_tokens for u in generate_embeddings_batch(texts, embedder=embedder).usages) == 250
    assert embedder.sizes == [100, 100, 50]


def test_batches_can_be_stored_before_the_next_is_paid() -> None:
    embedder = Fixed()
    batches = embedding_batches(["a"] * 5, embedder=embedder, batch_size=2)
    assert next(batches).vectors.shape == (2, 3)
    assert embedder.sizes == [2]


@pytest.mark.parametrize(
    "rows",
    [
        np.ones((1, 3)),
        np.ones((3, 3)),
        np.ones((2, 4)),
        np.ones(2),
        np.zeros((2, 3)),
        np.array([[1, 2, 3], [1, np.nan, 3]]),
        np.array([[1, 2, 3], [1, np.inf, 3]]),
    ],
    ids=["too few", "too many", "dimensions", "flat", "zeros", "nan", "infinity"],
)
def test_vectors_that_cannot_be_right_are_refused(rows: FloatMatrix) -> None:
    with pytest.raises(ProviderAnswerInvalid):
        generate_embeddings_batch(["one", "two"], embedder=Fixed(rows))


def test_a_text_of_only_spaces_is_refused_before_it_is_paid() -> None:
    embedder = Fixed()
    with pytest.raises(InvalidInput):
        generate_embeddings_batch(["one", " "], embedder=embedder)
    assert embedder.sizes == []


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput):
        generate_embeddings_batch(["one"], embedder=Fixed(), batch_size=0)
