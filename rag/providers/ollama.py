"""Ollama's own embedding routes: `/api/embed`, and the older `/api/embeddings` where there is no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import httpx2
import numpy as np

from rag.errors import InvalidInput, ProviderAnswerInvalid, ProviderError, ProviderUnavailable, RagError
from rag.providers.openai_compatible import default_threshold_of, shortened_texts
from rag.providers.openai_errors import retry_soon
from rag.providers.vectors import unit_rows
from rag.tokens import estimate_tokens
from rag.types import Embeddings, FloatMatrix, Usage

#: A request of so many passages takes seconds on a computer without a graphics card, not minutes.
MAXIMUM_TEXTS = 32
#: bge-m3 reads 8192 tokens; estimated here, hence the margin. Ollama would cut longer texts without a word.
MAXIMUM_TEXT_TOKENS = 7000


class OllamaEmbedder:
    """Embeds texts with a model that runs on this machine or a neighbour's. Costs nothing; calls are logged as such."""

    provider = "ollama"
    is_paid = True

    def __init__(self, client: httpx2.Client, *, model: str, dimensions: int, batch_size: int = MAXIMUM_TEXTS) -> None:
        """`client` has Ollama's address, without `/api`, as its base."""
        self.model = model
        self.dimensions = dimensions
        self.id = f"{self.provider}/{model}@{dimensions}"
        self.default_threshold = default_threshold_of(model)
        self._client = client
        self._batch_size = batch_size
        #: Ollama before 0.3 knows only the route for one text.
        self._has_batches = True

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Embed the texts in their order: (texts, dimensions) float32, rows of length 1, one usage per request.

        Raises `InvalidInput` for a text of only spaces, `ProviderError`s for the rest. A request that could not be
        made is tried once more.
        """
        if not all(text.strip() for text in texts):
            raise InvalidInput("A text of only spaces cannot be embedded.")
        vectors: FloatMatrix = np.empty((len(texts), self.dimensions), dtype=np.float32)
        usages = []
        taken = shortened_texts(texts, embedder_id=self.id, model=self.model, maximum_tokens=MAXIMUM_TEXT_TOKENS)
        for start in range(0, len(taken), self._batch_size):
            batch = taken[start : start + self._batch_size]
            rows, counted = self._request(batch)
            vectors[start : start + len(batch)] = unit_rows(rows, count=len(batch), dimensions=self.dimensions)
            usages.append(Usage(provider=self.provider, model=self.model, input_tokens=counted))
        return Embeddings(vectors=vectors, usages=tuple(usages))

    def _request(self, texts: list[str]) -> tuple[list[Any], int]:
        """Vectors as they were sent, and tokens: Ollama's count, or an estimate where the route gives none."""
        estimated = sum(estimate_tokens(text, model=self.model) for text in texts)
        if self._has_batches:
            answer = self._post("/api/embed", {"model": self.model, "input": texts, "truncate": True})
            if answer is not None:
                with _ollama_errors():
                    return list(answer["embeddings"]), int(answer.get("prompt_eval_count") or estimated)
            self._has_batches = False
        rows = []
        for text in texts:
            answer = self._post("/api/embeddings", {"model": self.model, "prompt": text})
            if answer is None:
                raise ProviderError("Nothing at OLLAMA_URL answers as Ollama does. An administrator has to check it.")
            with _ollama_errors():
                rows.append(answer["embedding"])
        return rows, estimated

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """The answer, or None where this Ollama does not have the route."""

        def attempt() -> dict[str, Any] | None:
            with _ollama_errors():
                response = self._client.post(path, json=body)
                if response.status_code == 404:
                    # A model that is not there is said in JSON, a route that is not in plain text.
                    if "json" not in response.headers.get("content-type", ""):
                        return None
                    raise ProviderError(f"Ollama does not have this model. Run: ollama pull {self.model}")
                if response.status_code >= 500 or response.status_code in (408, 429):
                    raise ProviderUnavailable(f"Ollama could not embed (HTTP {response.status_code}). Try again soon.")
                if response.status_code != 200:
                    raise ProviderError(f"Ollama did not accept this request (HTTP {response.status_code}).")
                answer = response.json()
                if not isinstance(answer, dict):
                    raise ProviderAnswerInvalid
                return answer

        return retry_soon(attempt)


@contextmanager
def _ollama_errors() -> Iterator[None]:
    """Turn what the transport and unreadable answers raise into `ProviderError`s."""
    try:
        yield
    except RagError:
        raise
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as exc:
        raise ProviderUnavailable("Ollama cannot be reached at the moment. Check that it runs at OLLAMA_URL.") from exc
    except (ValueError, TypeError, LookupError, AttributeError) as exc:
        raise ProviderAnswerInvalid from exc
