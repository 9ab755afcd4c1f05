"""Embed with Ollama's API: `/api/embed`, or the older `/api/embeddings` if necessary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import httpx2
import numpy as np

from rag.errors import (
    InvalidInput,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderUnavailable,
    RagError,
    VectorUnusable,
)
from rag.monitoring.tracing import model_call
from rag.providers import NOT_OLLAMA, Embedder
from rag.providers.bounds import bound
from rag.providers.embeddings import default_threshold_of, or_set_aside, shortened_texts, unit_rows
from rag.providers.openai_compatible import NOT_A_NUMBER, NOT_SENT, retry_soon
from rag.providers.openai_connection import BOUNDS, LIMITS, OpenAIConnection, timeout_of
from rag.providers.retry import accounted, billed_as, lost_with
from rag.settings import Settings
from rag.settings.providers import ProviderSpec
from rag.text.tokens import estimate_tokens
from rag.types import Embeddings, FloatMatrix, Usage

#: A request of this many passages takes seconds, not minutes, on a computer without a graphics card.
MAXIMUM_TEXTS = 32
#: bge-m3 reads 8192 tokens; estimated here, hence the margin. Ollama would silently cut longer texts.
MAXIMUM_TEXT_TOKENS = 7000


class OllamaEmbedder:
    """Embeds texts with a model on this machine or a nearby machine. Calls are free, but logged."""

    provider = "ollama"
    is_paid = True

    def __init__(self, client: httpx2.Client, *, model: str, dimensions: int, batch_size: int = MAXIMUM_TEXTS) -> None:
        """The base URL of `client` is Ollama's address without `/api`."""
        self.model = model
        self.dimensions = dimensions
        self.id = f"{self.provider}/{model}@{dimensions}"
        self.default_threshold = default_threshold_of(model)
        self._client = client
        self._batch_size = batch_size
        #: Ollama before 0.3 only has the route for a single text.
        self._has_batches = True

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Return the texts' embeddings in order, (texts, dimensions) float32, each row with length 1, and each
        request's usage.

        Raises `InvalidInput` for a text with only spaces, and `ProviderError`s. If the server cannot be reached, the
        request is retried once.
        """
        if not all(text.strip() for text in texts):
            raise InvalidInput("A text of only spaces cannot be prepared for the search.")
        vectors: FloatMatrix = np.empty((len(texts), self.dimensions), dtype=np.float32)
        usages: list[Usage] = []
        cut_texts = shortened_texts(texts, embedder_id=self.id, model=self.model, maximum_tokens=MAXIMUM_TEXT_TOKENS)
        with lost_with(usages):
            for start in range(0, len(cut_texts), self._batch_size):
                batch = cut_texts[start : start + self._batch_size]
                rows = or_set_aside(
                    lambda some, _: self._request(some, usages), batch, str(start), dimensions=self.dimensions
                )
                vectors[start : start + len(batch)] = rows
        return Embeddings(vectors=vectors, usages=tuple(usages))

    def _request(self, texts: list[str], usages: list[Usage]) -> FloatMatrix:
        """Return the vectors for a batch, and add each request's usage to `usages`."""
        if self._has_batches:
            body = {"model": self.model, "input": texts, "truncate": True}
            response = self._post("/api/embed", body, texts, lambda answer: list(answer["embeddings"]))
            if response is not None:
                usages.append(response[1])
                return response[0]
            self._has_batches = False
        return np.concatenate(
            [
                or_set_aside(lambda some, _: self._request_one(some, usages), [text], "", dimensions=self.dimensions)
                for text in texts
            ]
        )

    def _request_one(self, texts: list[str], usages: list[Usage]) -> FloatMatrix:
        body = {"model": self.model, "prompt": texts[0]}
        response = self._post("/api/embeddings", body, texts, lambda answer: [answer["embedding"]])
        if response is None:
            raise ProviderError(NOT_OLLAMA)
        usages.append(response[1])
        return response[0]

    def _usage(self, texts: list[str], counted: Any = None) -> Usage:
        if isinstance(counted, int) and counted:
            return Usage(provider=self.provider, model=self.model, input_tokens=counted)
        tokens = sum(estimate_tokens(text, model=self.model) for text in texts)
        return Usage(provider=self.provider, model=self.model, input_tokens=tokens, is_estimated=True)

    def _post(
        self, path: str, body: dict[str, Any], texts: list[str], rows_of: Callable[[dict[str, Any]], list[Any]]
    ) -> tuple[FloatMatrix, Usage] | None:
        """Send a request, and return vectors and usage. Returns `None` if this version of Ollama lacks the route."""

        def attempt() -> tuple[FloatMatrix, Usage] | None:
            with (
                model_call("embeddings", self.provider, self.model) as call,
                accounted(lambda: self._usage(texts)),
                _ollama_errors(),
            ):
                response = self._client.post(path, json=body)
                if response.status_code == 404:
                    # Ollama answers in JSON for a missing model, in plain text for a missing route.
                    if "json" not in response.headers.get("content-type", ""):
                        return None
                    raise ProviderError(f"Ollama does not have this model. Run: ollama pull {self.model}")
                if response.status_code >= 500 and NOT_A_NUMBER.search(response.text):
                    raise VectorUnusable
                if response.status_code >= 500 or response.status_code in (408, 429):
                    raise ProviderUnavailable(
                        "Ollama could not prepare the text for the search (HTTP "
                        f"{response.status_code}). Try again soon."
                    )
                if response.status_code != 200:
                    raise ProviderError(f"Ollama did not accept this request (HTTP {response.status_code}).")
                answer = response.json()
                usage = self._usage(texts, answer.get("prompt_eval_count"))
                call.used(usage)
                with billed_as(usage), _ollama_errors():
                    rows = rows_of(answer)
                    return unit_rows(rows, count=len(texts), dimensions=self.dimensions), usage

        return retry_soon(attempt)


class OllamaConnection(OpenAIConnection):
    """A connection to Ollama. Chat uses the same routes as OpenAI's API, embeddings use Ollama's own routes."""

    def __init__(self, spec: ProviderSpec, settings: Settings) -> None:
        base = settings.address_of(spec.name).rstrip("/").removesuffix("/v1").removesuffix("/api")
        # Ollama needs no key, but the SDK does.
        super().__init__(spec, settings, key="unused", address=f"{base}/v1")
        routes = httpx2.Client(base_url=base, timeout=timeout_of(settings), limits=LIMITS)
        self._routes = bound(routes, BOUNDS)

    def embedder(self, model: str, dimensions: int) -> Embedder:
        return OllamaEmbedder(self._routes, model=model, dimensions=dimensions)

    def close(self) -> None:
        super().close()
        self._routes.close()


@contextmanager
def _ollama_errors() -> Iterator[None]:
    try:
        yield
    except RagError:
        raise
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as exc:
        sentence = "Ollama cannot be reached at the moment. Check that it runs at OLLAMA_URL."
        is_sent = not isinstance(exc, (httpx2.InvalidURL, *NOT_SENT))
        raise ProviderUnavailable(sentence, is_perhaps_billed=is_sent) from exc
    except (ValueError, TypeError, LookupError, AttributeError) as exc:
        raise ProviderAnswerInvalid(None, is_perhaps_billed=True) from exc
