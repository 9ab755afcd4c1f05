"""Rerank on this machine with a cross-encoder: an ONNX file beside its tokenizer.json.

For installations which send no data to providers. The packages are imported when the model is loaded.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.errors import ProviderAnswerInvalid, ProviderUnavailable, SettingsError
from rag.providers import Reranking
from rag.types import Usage

#: Most cross-encoders are trained on 512 tokens, question and passage together.
MAXIMUM_TOKENS = 512
BATCH = 16


class LocalCrossEncoder:
    """Orders documents by a cross-encoder's relevance. Thread-safe; free.

    The graph takes `input_ids`, `attention_mask` and, if present, `token_type_ids`, with shape (texts, tokens). For
    each text, the graph returns a logit, with the sigmoid as relevance, or two logits, with the second softmax value as
    relevance.
    """

    #: The ledger's name for local models.
    provider = "builtin"

    def __init__(self, path: Path) -> None:
        """Load the files. Raises `SettingsError` naming a missing file."""
        self.model = path.stem
        # Read at the import: onnxruntime 1.29 and later report to Microsoft otherwise.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        runtime, tokenizers = _optional("onnxruntime"), _optional("tokenizers")
        tokenizer_path = path.with_name("tokenizer.json")
        for needed in (path, tokenizer_path):
            if not needed.is_file():
                raise SettingsError(f"RAG_CROSS_ENCODER needs the file {needed}, which is not there.")
        try:
            self._session: Any = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(tokenizer_path))
        except Exception as exc:  # Both raise plain exceptions.
            raise SettingsError(f"{path.name} or its tokenizer.json cannot be read: {_first_line(exc)}.") from exc
        # Only the passage is shortened: without the question there is nothing to compare with.
        self._tokenizer.enable_truncation(MAXIMUM_TOKENS, strategy="only_second")
        self._tokenizer.enable_padding()
        self._inputs = {item.name for item in self._session.get_inputs()}
        unknown = self._inputs - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown:
            raise SettingsError(f"{path.name} is not a cross-encoder: it needs {', '.join(sorted(unknown))}.")

    def rank(self, query: str, documents: Sequence[str], *, limit: int) -> Reranking:
        """Return the best `limit` documents as pairs (index, relevance), with relevance from 0 to 1.

        Raises `ProviderUnavailable` if the runtime fails and `ProviderAnswerInvalid` for an unexpected output shape.
        """
        usage = Usage(provider=self.provider, model=self.model)
        if not documents or limit < 1:
            return Reranking(results=(), usage=usage)
        batches = [
            self._relevance(query, documents[start : start + BATCH]) for start in range(0, len(documents), BATCH)
        ]
        scores = np.concatenate(batches)
        order = np.argsort(-scores, kind="stable")[:limit]
        return Reranking(results=tuple((int(i), float(scores[i])) for i in order), usage=usage)

    def _relevance(self, query: str, documents: Sequence[str]) -> NDArray[np.float64]:
        try:
            encoded = self._tokenizer.encode_batch([(query, document) for document in documents])
            inputs = {
                "input_ids": np.array([e.ids for e in encoded], dtype=np.int64),
                "attention_mask": np.array([e.attention_mask for e in encoded], dtype=np.int64),
                "token_type_ids": np.array([e.type_ids for e in encoded], dtype=np.int64),
            }
            output = self._session.run(None, {name: inputs[name] for name in self._inputs})[0]
        except Exception as exc:  # the runtime's errors share no class
            raise ProviderUnavailable(f"The cross-encoder {self.model} failed: {_first_line(exc)}.") from exc
        logits = np.asarray(output, dtype=np.float64).reshape(len(documents), -1)
        if logits.shape[1] not in (1, 2) or not np.isfinite(logits).all():
            raise ProviderAnswerInvalid(f"{self.model} gives no relevance: its output has shape {output.shape}.")
        # With two numbers the second is the relevance logit; their softmax is the sigmoid of the difference.
        margin = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
        relevance: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(margin, -500, 500)))
        return relevance


def _optional(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as exc:
        raise SettingsError(
            f"RAG_CROSS_ENCODER needs the package {package}: run `.venv/bin/pip install onnxruntime tokenizers`."
        ) from exc


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
