"""Connect to OpenAI, or to a compatible server, and embed texts with `/embeddings`. Redirects are not followed."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import httpx2
import numpy as np
import openai

from rag.errors import (
    InvalidInput,
    ProviderAnswerInvalid,
    ProviderQuotaExhausted,
    ProviderUnavailable,
    SettingsError,
    VectorUnusable,
)
from rag.monitoring.tracing import model_call
from rag.providers import CONNECT_TIMEOUT_SECONDS, CONNECTIONS, KEPT_CONNECTIONS, ChatModel, Connection, Embedder
from rag.providers.bounds import Bounds, bound
from rag.providers.context_window import loaded_window
from rag.providers.embeddings import (
    default_threshold_of,
    or_set_aside,
    shortened_texts,
    unit_rows,
    vector_from_json,
)
from rag.providers.openai_compatible import OpenAIChatModel, openai_errors, retry_soon
from rag.providers.retry import billed_as, current_sending, lost_with, requested
from rag.settings import Settings
from rag.settings.providers import PROVIDERS, Capability, ProviderSpec, provider_spec
from rag.text.tokens import estimate_tokens
from rag.types import Embeddings, FloatMatrix, Usage

#: Writing an answer may take an hour; a batch of embeddings as JSON is 80 MB.
BOUNDS = Bounds(most_bytes=2**28, longest_seconds=3600.0)
LIMITS = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=KEPT_CONNECTIONS)


class _Transport(openai.DefaultHttpxClient):
    def __init__(self) -> None:
        super().__init__(follow_redirects=False, limits=LIMITS)
        bound(self, BOUNDS)

    def __del__(self) -> None:
        # At interpreter exit, objects needed for closing may already be gone.
        with suppress(Exception):
            self.close()


#: Names of models which write no text.
NO_CHAT = re.compile(r"embed|whisper|tts|dall-e|moderation|image|audio|realtime|transcribe|sora|babbage|davinci|bge-")


class OpenAIConnection(Connection):
    """A connection to OpenAI, or to another server with the same API."""

    def __init__(
        self, spec: ProviderSpec, settings: Settings, *, key: str = "", address: str = "", variables: str = ""
    ) -> None:
        super().__init__(spec, settings)
        self._key, self._address = key or settings.key_of(spec.name), address or settings.address_of(spec.name)
        #: Chat models by name, kept because each remembers facts learned about the model.
        self._models: dict[str, OpenAIChatModel] = {}
        try:
            self._client = openai.OpenAI(
                api_key=self._key,
                base_url=self._address,
                max_retries=0,
                timeout=timeout_of(settings),
                http_client=_Transport(),
            )
        except (httpx2.InvalidURL, openai.OpenAIError, ValueError) as exc:
            raise SettingsError(f"{variables or spec.address_variable} cannot be used: {exc}.") from exc

    def chat_model(self, model: str) -> ChatModel:
        if model not in self._models:
            self._models[model] = OpenAIChatModel(
                self._client, provider=self.spec.name, model=model, window=self._window_of(model)
            )
        return self._models[model]

    def _window_of(self, model: str) -> Callable[[], int | None] | None:
        if self.spec.name != "ollama":
            return None
        return partial(loaded_window, self._address.rstrip("/").removesuffix("/v1"), self._key, model)

    def embedder(self, model: str, dimensions: int) -> Embedder:
        return OpenAIEmbedder(self._client, provider=self.spec.name, model=model, dimensions=dimensions)

    def probe(self, *, timeout_seconds: float) -> None:
        with openai_errors(self.spec.name):
            self._client.with_options(timeout=timeout_seconds).models.list()

    def models(self, capability: Capability, *, timeout_seconds: float) -> list[str]:
        with openai_errors(self.spec.name):
            models = self._client.with_options(timeout=timeout_seconds).models.list().data
            names = sorted(str(model.id).removeprefix("models/") for model in models)
        if capability == "embed":
            return [name for name in names if "embed" in name or name.startswith("bge")]
        # The list does not say what a model is for; its name does.
        return [name for name in names if not NO_CHAT.search(name)]

    def close(self) -> None:
        self._client.close()


def timeout_of(settings: Settings) -> httpx2.Timeout:
    """Return the time limits of an OpenAI-compatible provider: for a whole request, and for connecting."""
    return httpx2.Timeout(settings.openai_timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS)


#: Tokens in an embedding request: OpenAI's reference allows 300,000, and tokens are estimated here.
MAXIMUM_REQUEST_TOKENS = 220_000
#: Models able to shorten their vectors.
SHORTENABLE = tuple(name for spec in PROVIDERS for name in spec.shortenable_models)
#: For embedding documents without a retrying caller: number of retries, first wait in seconds, doubled each time, and
#: the longest wait a provider may request, since it happens within a call.
DOCUMENT_RETRIES, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 2, 0.5, 60.0
log = logging.getLogger(__name__)


class OpenAIEmbedder:
    """Embeds texts with `/embeddings`. The texts are split into requests which keep to the provider's limits."""

    is_paid = True

    def __init__(
        self, client: openai.OpenAI, *, provider: str, model: str, dimensions: int, batch_size: int | None = None
    ) -> None:
        self.provider = provider
        self.model = model
        self.dimensions = dimensions
        self.id = f"{provider}/{model}@{dimensions}"
        self.default_threshold = default_threshold_of(model)
        self._client = client
        self._spec = provider_spec(provider)
        self._batch_size = min(batch_size or self._spec.maximum_texts, self._spec.maximum_texts)

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Return the texts' embeddings in order, (texts, dimensions) float32, each row with length 1, and each
        request's usage.

        Raises `InvalidInput` for a text with only spaces, and `ProviderError`s. Documents are retried twice. A query is
        retried once after a short wait, because a person is waiting.
        """
        if not all(text.strip() for text in texts):
            raise InvalidInput("A text of only spaces cannot be prepared for the search.")
        vectors: FloatMatrix = np.empty((len(texts), self.dimensions), dtype=np.float32)
        usages: list[Usage] = []
        cut_texts = shortened_texts(
            texts, embedder_id=self.id, model=self.model, maximum_tokens=self._spec.maximum_text_tokens
        )
        with lost_with(usages):
            for start, batch in self._batches(cut_texts):

                def request(some: list[str], part: str) -> FloatMatrix:
                    if purpose == "query":
                        rows, usage = retry_soon(lambda: self._request(some, part))
                    else:
                        rows, usage = self._with_retries(some, part)
                    usages.append(usage)
                    return rows

                rows = or_set_aside(request, batch, str(start), dimensions=self.dimensions)
                vectors[start : start + len(batch)] = rows
        return Embeddings(vectors=vectors, usages=tuple(usages))

    def _with_retries(self, texts: list[str], part: str) -> tuple[FloatMatrix, Usage]:
        # Not the SDK's retries: nobody learns about calls they lose.
        retries = current_sending().retries
        for attempt in range(DOCUMENT_RETRIES if retries is None else retries):
            try:
                return self._request(texts, part)
            except VectorUnusable:
                raise  # The same text would give the same answer.
            except (ProviderUnavailable, ProviderQuotaExhausted, ProviderAnswerInvalid) as exc:
                log.warning("%s is asked again: %s", self.id, exc.__cause__ or exc)
                retry_after = exc.details.get("retry_after_seconds")
                wait = FIRST_WAIT_SECONDS * 2**attempt if retry_after is None else float(retry_after)
                if wait > LONGEST_WAIT_SECONDS:
                    raise
                time.sleep(wait)
        return self._request(texts, part)

    def _request(self, texts: list[str], part: str) -> tuple[FloatMatrix, Usage]:
        body: dict[str, Any] = {"model": self.model, "input": texts}
        if self.model.startswith(SHORTENABLE):
            body["dimensions"] = self.dimensions
        body["encoding_format"] = self._spec.vector_encoding
        with (
            model_call("embeddings", self.provider, self.model) as call,
            requested(lambda: self._expected(texts)),
            openai_errors(self.provider),
        ):
            # Not `embeddings.create`: the SDK checks every text and creates an object for every vector, which takes 20
            # ms for a hundred and blocks all other threads meanwhile.
            response = self._client.post(
                "/embeddings",
                cast_to=httpx2.Response,
                body=body,
                options={"headers": current_sending().headers(part), "max_retries": 0},
            )
            answer = response.json()
            usage = self._usage(answer, texts)
            call.used(usage)
            with billed_as(usage), openai_errors(self.provider):
                return self._rows(answer, len(texts)), usage

    def _rows(self, answer: Mapping[str, Any], count: int) -> FloatMatrix:
        by_index = sorted(answer["data"], key=lambda item: item["index"])
        if [item["index"] for item in by_index] != list(range(count)):
            raise ProviderAnswerInvalid(
                f"The search model sent {len(by_index)} results for {count} texts. Try again in a moment."
            )
        vectors = [vector_from_json(item["embedding"]) for item in by_index]
        return unit_rows(vectors, count=count, dimensions=self.dimensions)

    def _usage(self, answer: Mapping[str, Any], texts: list[str]) -> Usage:
        counted = (answer.get("usage") or {}).get("prompt_tokens")
        if not isinstance(counted, int):
            return self._expected(texts)
        return Usage(provider=self.provider, model=self.model, input_tokens=counted)

    def _expected(self, texts: list[str]) -> Usage:
        tokens = sum(estimate_tokens(text, model=self.model) for text in texts)
        return Usage(provider=self.provider, model=self.model, input_tokens=tokens, is_estimated=True)

    def _batches(self, texts: list[str]) -> Iterator[tuple[int, list[str]]]:
        if (
            len(texts) <= self._batch_size
            and sum(len(text.encode("utf-8", "replace")) for text in texts) <= MAXIMUM_REQUEST_TOKENS
        ):
            # Small enough in any case: estimating tokens takes a tenth of a millisecond per text.
            yield from [(0, texts)] if texts else []
            return
        start, tokens = 0, 0
        for position, text in enumerate(texts):
            size = estimate_tokens(text, model=self.model)
            if position - start == self._batch_size or (position > start and tokens + size > MAXIMUM_REQUEST_TOKENS):
                yield start, texts[start:position]
                start, tokens = position, 0
            tokens += size
        if start < len(texts):
            yield start, texts[start:]
