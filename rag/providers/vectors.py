"""What every vector has to be before it is stored or compared, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rag.errors import ProviderAnswerInvalid
from rag.types import FloatMatrix


def unit_rows(rows: Sequence[ArrayLike] | FloatMatrix, *, count: int, dimensions: int) -> FloatMatrix:
    """The rows as one (count, dimensions) float32 matrix, each of length 1.

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
