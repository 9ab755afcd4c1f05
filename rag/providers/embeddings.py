"""Embed texts with any embedder, and check every vector before it is stored or compared."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rag.errors import InvalidInput, ProviderAnswerInvalid, VectorUnusable
from rag.providers import Embedder
from rag.providers.retry import lost_with
from rag.settings.providers import PROVIDERS
from rag.text.tokens import estimate_tokens
from rag.types import Embeddings, FloatMatrix, Usage

THRESHOLDS = {name: least for spec in PROVIDERS for name, least in spec.thresholds.items()}
Purpose = Literal["document", "query"]
log = logging.getLogger(__name__)


def generate_embedding(text: str, *, embedder: Embedder, purpose: Purpose = "query") -> Embeddings:
    """Return a text's embedding and the call's usage. The vectors have the shape (1, dimensions) and length 1.

    Raises `InvalidInput` for a text with only spaces, and `ProviderError` if the provider fails.
    """
    return _embed_checked([text], embedder, purpose)


def generate_embeddings_batch(
    texts: Sequence[str], *, embedder: Embedder, batch_size: int = 100, purpose: Purpose = "document"
) -> Embeddings:
    """Return the texts' embeddings in order, (texts, dimensions) float32, each row with length 1, and the usage of
    every call.

    Raises the errors from `generate_embedding`. With `embedding_batches`, the vectors paid for before an error are
    kept.
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
    """Embed texts and yield the vectors batch by batch. Each batch can be stored before the next is paid for."""
    if batch_size < 1:
        raise InvalidInput("A batch has to hold at least one text.")
    for start in range(0, len(texts), batch_size):
        yield _embed_checked(texts[start : start + batch_size], embedder, purpose)


def _embed_checked(texts: Sequence[str], embedder: Embedder, purpose: Purpose) -> Embeddings:
    if not all(text.strip() for text in texts):
        raise InvalidInput("A text of only spaces cannot be prepared for the search.")
    embeddings = embedder.embed(texts, purpose=purpose)
    if _sets_aside.get() and np.isnan(embeddings.vectors).all(axis=1).any():
        return embeddings  # checked by the embedder, which set texts aside
    with lost_with(embeddings.usages):
        vectors = unit_rows(embeddings.vectors, count=len(texts), dimensions=embedder.dimensions)
    return Embeddings(vectors=vectors, usages=embeddings.usages)


# Texts for which a provider has no vector

_sets_aside: ContextVar[bool] = ContextVar("sets_aside", default=False)


@contextmanager
def setting_aside() -> Iterator[None]:
    """Inside the `with` block, give a text without a usable vector a row of NaN.

    Outside this block, such a text makes the whole request fail.
    """
    token = _sets_aside.set(True)
    try:
        yield
    finally:
        _sets_aside.reset(token)


def or_set_aside(
    request: Callable[[list[str], str], FloatMatrix], texts: list[str], part: str, *, dimensions: int
) -> FloatMatrix:
    """Return the vectors from `request(texts, part)`. Inside `setting_aside`, texts refused by the provider get NaN
    rows.

    A provider may refuse a whole request because of one text. Each half is then requested separately. `part` names a
    request within a call. Raises the errors from `request`.
    """
    try:
        return request(texts, part)
    except VectorUnusable as exc:
        if not _sets_aside.get():
            raise
        if len(texts) == 1:
            log.warning("a text of %d characters is set aside: %s", len(texts[0]), exc.__cause__ or exc)
            return np.full((1, dimensions), np.nan, dtype=np.float32)
    half = len(texts) // 2
    halves = ((texts[:half], f"{part}a"), (texts[half:], f"{part}b"))
    return np.concatenate([or_set_aside(request, some, name, dimensions=dimensions) for some, name in halves])


def unit_rows(rows: Sequence[ArrayLike] | FloatMatrix, *, count: int, dimensions: int) -> FloatMatrix:
    """Return the rows as a (count, dimensions) float32 matrix, each row with length 1.

    Raises `ProviderAnswerInvalid` for a wrong count or dimension, for NaN or infinity, and for a zero row. Inside
    `setting_aside`, such a row among others becomes NaN. If it is the only row, raises `VectorUnusable`.
    """
    try:
        return _all_unit_rows(rows, count=count, dimensions=dimensions)
    except ProviderAnswerInvalid as exc:
        if not _sets_aside.get() or len(rows) != count:
            raise
        if count == 1:
            # A wrong dimension comes from another model: the right model may answer the next try.
            if np.size(np.asarray(rows[0], dtype=object)) != dimensions:
                raise
            raise VectorUnusable(exc.message) from exc
        unit = np.full((count, dimensions), np.nan, dtype=np.float32)
        for place, row in enumerate(rows):
            try:
                unit[place] = _all_unit_rows([row], count=1, dimensions=dimensions)[0]
            except ProviderAnswerInvalid:
                continue
        if np.isnan(unit).all():  # Then a single text is not the cause.
            raise
        return unit


def _all_unit_rows(rows: Sequence[ArrayLike] | FloatMatrix, *, count: int, dimensions: int) -> FloatMatrix:
    if len(rows) != count:
        raise ProviderAnswerInvalid(
            f"The search model sent {len(rows)} results for {count} texts. Try again in a moment."
        )
    if count == 0:
        return np.empty((0, dimensions), dtype=np.float32)
    try:
        matrix = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError) as exc:
        raise ProviderAnswerInvalid("The search model sent something other than rows of numbers.") from exc
    if matrix.shape != (count, dimensions):
        sent = matrix.shape[1] if matrix.ndim == 2 else "no"
        raise ProviderAnswerInvalid(f"The search model sent {sent} numbers for a text, but {dimensions} are expected.")
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    if not np.isfinite(lengths).all() or (lengths == 0).any():
        raise ProviderAnswerInvalid(
            "The search model sent a result that cannot be used: it has only zeros, or values that are not numbers."
        )
    unit: FloatMatrix = (matrix / lengths[:, None]).astype(np.float32)
    return unit


def default_threshold_of(model: str) -> float:
    """Return the lowest cosine similarity at which a passage may be related, for a model with this name."""
    return next((threshold for name, threshold in THRESHOLDS.items() if model.startswith(name)), 0.2)


def vector_from_json(value: Any) -> FloatMatrix | list[float]:
    """Decode OpenAI's vector format (little-endian float32 in base64) or a list of numbers. Other values give []."""
    try:
        vector: FloatMatrix | list[float] = (
            np.frombuffer(base64.b64decode(value), dtype="<f4") if isinstance(value, str) else value
        )
    except ValueError:
        return []
    return vector


def shortened_texts(texts: Sequence[str], *, embedder_id: str, model: str, maximum_tokens: int) -> list[str]:
    """Cut texts to the model's maximum length, and log the number of texts cut."""
    cut_texts = []
    for text in texts:
        # A token has at least a byte.
        fits = len(text.encode("utf-8", "replace")) <= maximum_tokens
        tokens = 0 if fits else estimate_tokens(text, model=model)
        cut_texts.append(text if tokens <= maximum_tokens else text[: len(text) * maximum_tokens // tokens])
    if shortened := sum(len(short) < len(text) for short, text in zip(cut_texts, texts, strict=True)):
        log.warning("%d texts were embedded by their beginning: %s takes no more", shortened, embedder_id)
    return cut_texts
