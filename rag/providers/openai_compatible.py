"""OpenAI, and what speaks its language: Gemini, OpenRouter, Ollama. Through the `openai` SDK."""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from threading import Event
from typing import Any, Literal, TypeVar

import httpx2
import numpy as np
import openai
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion

from rag.errors import (
    InvalidInput,
    ProviderAnswerCut,
    ProviderAnswerInvalid,
    ProviderRefused,
    ProviderStreamCut,
    ProviderStreamEmpty,
)
from rag.providers import Completed, Completion, TextDelta
from rag.providers.calls import current_sending
from rag.providers.cancellable import cancellable
from rag.providers.chat_stream import ChatEvents
from rag.providers.openai_errors import openai_errors, retry_soon
from rag.providers.vectors import unit_rows
from rag.tokens import estimate_tokens
from rag.types import ChatMessage, Embeddings, FloatMatrix, Usage

log = logging.getLogger(__name__)
Value = TypeVar("Value")

# Embedding requests, by OpenAI's reference: 2048 texts, 8192 tokens each, 300,000 tokens together. Tokens are
# estimated here, hence the margin.
MAXIMUM_TEXTS = 2048
MAXIMUM_TEXT_TOKENS = 7000
MAXIMUM_REQUEST_TOKENS = 220_000
#: Texts per request, and tokens of a text, where the provider takes fewer than OpenAI; the tokens with the same margin.
PROVIDER_TEXTS = {"gemini": 100}
PROVIDER_TEXT_TOKENS = {"gemini": 1750}
#: Models that shorten their vectors when asked.
SHORTENABLE = ("text-embedding-3-", "gemini-embedding-")
#: Least cosine similarity by model. Not measured here: read off the vendors' and users' published examples, and low,
#: for a passage too many is put in order by the next steps, one too few is lost.
THRESHOLDS = {"text-embedding-3-": 0.25, "gemini-embedding-": 0.5, "bge-m3": 0.35}
#: These models reject `max_tokens` and any temperature but their own.
REASONING_MODEL = re.compile(r"^(gpt-[5-9]|o[1-9](-|$))")
#: Added to the limit of reasoning models, which count their hidden thoughts as output.
REASONING_TOKENS = 4096


def default_threshold_of(model: str) -> float:
    """The least cosine similarity at which a passage may be related, by the name of the model."""
    return next((threshold for name, threshold in THRESHOLDS.items() if model.startswith(name)), 0.2)


class OpenAIEmbedder:
    """Embeds texts over `/embeddings`. Requests are kept within the provider's limits."""

    is_paid = True

    def __init__(
        self, client: openai.OpenAI, *, provider: str, model: str, dimensions: int, batch_size: int = MAXIMUM_TEXTS
    ) -> None:
        self.provider = provider
        self.model = model
        self.dimensions = dimensions
        self.id = f"{provider}/{model}@{dimensions}"
        self.default_threshold = default_threshold_of(model)
        self._client = client
        self._batch_size = min(batch_size, PROVIDER_TEXTS.get(provider, MAXIMUM_TEXTS))
        self._text_tokens = PROVIDER_TEXT_TOKENS.get(provider, MAXIMUM_TEXT_TOKENS)

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Embed the texts in their order: (texts, dimensions) float32, rows of length 1, one usage per request.

        Raises `InvalidInput` for a text of only spaces, `ProviderError`s for the rest. Documents are retried twice,
        a query, for which somebody waits, once and soon.
        """
        if not all(text.strip() for text in texts):
            raise InvalidInput("A text of only spaces cannot be embedded.")
        vectors: FloatMatrix = np.empty((len(texts), self.dimensions), dtype=np.float32)
        usages = []
        taken = shortened_texts(texts, embedder_id=self.id, model=self.model, maximum_tokens=self._text_tokens)
        for start, batch in self._batches(taken):
            if purpose == "query":
                rows, usage = retry_soon(lambda batch=batch: self._request(batch, maximum_retries=0))  # type: ignore[misc]
            else:
                rows, usage = self._request(batch, maximum_retries=2, part=start)
            vectors[start : start + len(batch)] = rows
            usages.append(usage)
        return Embeddings(vectors=vectors, usages=tuple(usages))

    def _request(self, texts: list[str], *, maximum_retries: int, part: int = 0) -> tuple[FloatMatrix, Usage]:
        sending = current_sending()
        body: dict[str, Any] = {"model": self.model, "input": texts}
        if self.model.startswith(SHORTENABLE):
            body["dimensions"] = self.dimensions
        # Gemini refuses the SDK's default.
        body["encoding_format"] = "float" if self.provider == "gemini" else "base64"
        with openai_errors():
            # Not `embeddings.create`: looking at every text and making an object of every vector takes the SDK 20 ms a
            # hundred, in which no other thread runs.
            response = self._client.post(
                "/embeddings",
                cast_to=httpx2.Response,
                body=body,
                options={
                    "headers": sending.headers(part),
                    "max_retries": maximum_retries if sending.retries is None else sending.retries,
                },
            )
            if (retried := response.request.headers.get("x-stainless-retry-count", "0")) != "0":
                log.warning("%s answered after %s retries", self.id, retried)
            answer = response.json()
            by_index = sorted(answer["data"], key=lambda item: item["index"])
            if [item["index"] for item in by_index] != list(range(len(texts))):
                raise ProviderAnswerInvalid(
                    f"The provider sent {len(by_index)} embeddings for {len(texts)} texts. Try again in a moment."
                )
            vectors = [vector_from_json(item["embedding"]) for item in by_index]
            rows = unit_rows(vectors, count=len(texts), dimensions=self.dimensions)
            usage = answer.get("usage")
            counted = usage["prompt_tokens"] if usage else None
        if counted is None:  # Gemini is not known to send a count; an estimate is nearer to the bill than nothing
            counted = sum(estimate_tokens(text, model=self.model) for text in texts)
        return rows, Usage(provider=self.provider, model=self.model, input_tokens=counted)

    def _batches(self, texts: list[str]) -> Iterator[tuple[int, list[str]]]:
        if (
            len(texts) <= self._batch_size
            and sum(len(text.encode("utf-8", "replace")) for text in texts) <= MAXIMUM_REQUEST_TOKENS
        ):
            # Within the limit whatever its tokens are: estimating them takes a tenth of a millisecond a text.
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


def vector_from_json(value: Any) -> FloatMatrix | list[float]:
    """A vector as OpenAI sends it, little-endian float32 in base64, or as a list of numbers."""
    return np.frombuffer(base64.b64decode(value), dtype="<f4") if isinstance(value, str) else value


def shortened_texts(texts: Sequence[str], *, embedder_id: str, model: str, maximum_tokens: int) -> list[str]:
    """The texts, of longer ones as much of their beginning as the model takes; these are counted in the log."""
    taken = []
    for text in texts:
        # No token is shorter than one byte.
        fits = len(text.encode("utf-8", "replace")) <= maximum_tokens
        tokens = 0 if fits else estimate_tokens(text, model=model)
        taken.append(text if tokens <= maximum_tokens else text[: len(text) * maximum_tokens // tokens])
    if shortened := sum(len(short) < len(text) for short, text in zip(taken, texts, strict=True)):
        log.warning("%d texts were embedded by their beginning: %s takes no more", shortened, embedder_id)
    return taken


class OpenAIChatModel:
    """Writes text over `/chat/completions`."""

    def __init__(self, client: openai.OpenAI, *, provider: str, model: str) -> None:
        self.provider = provider
        self.model = model
        # A retry after what `Retry-After` says may take two minutes; nobody who asked a question waits so long.
        self._client = client.with_options(max_retries=0)

    def stream(
        self, messages: Sequence[ChatMessage], *, temperature: float, maximum_output_tokens: int, cancel: Event
    ) -> Iterator[TextDelta | Completed]:
        """Yield the answer as it arrives, then `Completed`. Returns within 0.2 s once `cancel` is set.

        Raises `ProviderStreamCut` when it ends early, `ProviderRefused` when the provider's filter ends it; the usage,
        where it was sent, is in the error's `details["usage"]`. Other `ProviderError`s before any text.
        """

        request = self._request(messages, temperature, maximum_output_tokens)

        def open_stream() -> ChatEvents:
            def attempt() -> ChatEvents:
                with openai_errors():
                    return ChatEvents(
                        self._client.chat.completions.create(
                            **request, stream=True, stream_options={"include_usage": True}
                        )
                    )

            return retry_soon(attempt, give_up=cancel)

        received = _Received()
        with openai_errors(has_text=lambda: received.has_text):
            for events in cancellable(open_stream, cancel=cancel):
                text = "".join(map(received.take, events))
                if text:
                    yield TextDelta(text)
        if cancel.is_set():
            return
        usage = self._usage(received.usage) if received.usage else None
        if received.finish_reason == "content_filter" or (received.is_refusal and not received.has_text):
            raise ProviderRefused(usage=usage)
        if received.finish_reason is None:
            raise (ProviderStreamCut if received.has_text else ProviderStreamEmpty)(usage=usage)
        if not received.has_text:
            raise ProviderAnswerInvalid(
                "The model ended its answer without a word. Try again in a moment.", usage=usage
            )
        yield Completed(usage=usage, finish_reason=received.finish_reason)

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        json_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """The whole reply at once; as JSON by `json_schema` when given.

        Raises `ProviderError`s; `ProviderAnswerCut` when it ends at the length limit, with what came in
        `details["text"]`; `ProviderAnswerInvalid` when JSON was wanted and something else came.
        """
        request = self._request(messages, temperature, maximum_output_tokens)
        if json_schema is not None:
            # Strict schemas have to close every object; others are taken as a hint.
            strict = json_schema.get("additionalProperties") is False
            named = {"name": "reply", "schema": dict(json_schema), "strict": strict}
            request["response_format"] = {"type": "json_schema", "json_schema": named}

        def attempt() -> ChatCompletion:
            with openai_errors():
                reply: ChatCompletion = self._client.chat.completions.create(
                    **request, extra_headers=current_sending().headers(0)
                )
                return reply

        reply = retry_soon(attempt)
        with openai_errors():
            choice = reply.choices[0]
            text, refusal = choice.message.content or "", choice.message.refusal
            usage = self._usage(reply.usage) if reply.usage else self._estimated_usage(messages, text)
        if choice.finish_reason == "content_filter" or (refusal and not text):
            raise ProviderRefused(usage=usage)
        if choice.finish_reason == "length":
            raise ProviderAnswerCut(usage=usage, text=text)
        if json_schema is not None and not _is_json(text):
            raise ProviderAnswerInvalid(usage=usage)
        return Completion(text=text, usage=usage)

    def _request(
        self, messages: Sequence[ChatMessage], temperature: float, maximum_output_tokens: int
    ) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": message.role, "content": content_of(message)} for message in messages],
        }
        if is_reasoning_model(self.model):
            request["max_completion_tokens"] = maximum_output_tokens + REASONING_TOKENS
        else:
            request["max_tokens"] = maximum_output_tokens
            request["temperature"] = temperature
        return request

    def _usage(self, counted: CompletionUsage) -> Usage:
        details = counted.prompt_tokens_details
        return Usage(
            provider=self.provider,
            model=self.model,
            input_tokens=counted.prompt_tokens or 0,
            cached_input_tokens=(details.cached_tokens or 0) if details else 0,
            output_tokens=counted.completion_tokens or 0,
        )

    def _estimated_usage(self, messages: Sequence[ChatMessage], text: str) -> Usage:
        return Usage(
            provider=self.provider,
            model=self.model,
            input_tokens=sum(estimate_tokens(message.content, model=self.model) for message in messages),
            output_tokens=estimate_tokens(text, model=self.model),
        )


class _Received:
    """What has come of a stream so far."""

    def __init__(self) -> None:
        self.has_text = False
        self.is_refusal = False
        self.finish_reason: str | None = None
        self.usage: CompletionUsage | None = None

    def take(self, event: Mapping[str, Any]) -> str:
        """Note what an event of the stream says; its text, or "" when it has none."""
        if event.get("usage"):
            self.usage = CompletionUsage.model_validate(event["usage"])
        if not event.get("choices"):
            return ""
        choice = event["choices"][0]
        delta = choice.get("delta") or {}
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        self.is_refusal = self.is_refusal or bool(delta.get("refusal"))
        text: str = delta.get("content") or ""
        self.has_text = self.has_text or bool(text)
        return text


def is_reasoning_model(model: str) -> bool:
    """Whether the model takes `max_completion_tokens` and no temperature; OpenRouter's names have a vendor in front."""
    return REASONING_MODEL.match(model.rsplit("/", 1)[-1]) is not None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def content_of(message: ChatMessage) -> str | list[dict[str, Any]]:
    """A message's content as the API takes it: parts only where there are pictures."""
    if not message.images:
        return message.content
    addresses = ("data:image/png;base64," + base64.b64encode(image).decode("ascii") for image in message.images)
    pictures = [{"type": "image_url", "image_url": {"url": address}} for address in addresses]
    return [{"type": "text", "text": message.content}, *pictures]
