"""Write text with OpenAI and compatible providers (Gemini, OpenRouter, Ollama), using the `openai` SDK.

Only this file converts the errors of the SDK and its transport, httpx2, into `ProviderError`s.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Any, TypeVar

import httpx2
import openai
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion import Choice

from rag.errors import (
    ProviderAnswerCut,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderRefused,
    ProviderStreamCut,
    ProviderStreamEmpty,
    ProviderUnavailable,
    RagError,
    VectorUnusable,
)
from rag.monitoring.tracing import model_call
from rag.providers import (
    MODEL_UNKNOWN,
    NOT_ACCEPTED,
    READ_EVERY_SECONDS,
    Completed,
    Completion,
    Discarded,
    Lost,
    TextDelta,
)
from rag.providers.context_window import ContextWindow
from rag.providers.retry import (
    accounted,
    billed_as,
    current_sending,
    estimated_chat,
    requested,
    retry_after_seconds,
    usage_of_failure,
)
from rag.providers.streaming import ChatEvents, ReasoningFilter, cancellable, without_reasoning
from rag.types import ChatMessage, Usage

log = logging.getLogger(__name__)
Value = TypeVar("Value")

#: These models reject `max_tokens` and any temperature except their default.
REASONING_MODEL = re.compile(r"^(gpt-[5-9]|o[1-9](-|$))")
#: Added to the limit for reasoning models, which count hidden thoughts as output.
REASONING_TOKENS = 4096


class OpenAIChatModel:
    """Writes text with `/chat/completions`."""

    def __init__(
        self, client: openai.OpenAI, *, provider: str, model: str, window: Callable[[], int | None] | None = None
    ) -> None:
        """`window` asks the server for the maximum number of tokens in prompt and answer."""
        self.provider = provider
        self.model = model
        # The SDK's retries obey `Retry-After`, which may be two minutes; no asker waits this long.
        self._client = client.with_options(max_retries=0)
        #: Learned from the server's answers: whether it sends reasoning without an opening tag, and whether the model
        #: takes a reasoning model's parameters although its name, perhaps a deployment's, does not say this.
        self._reasons_first = False
        self._is_reasoning = is_reasoning_model(model)
        self._window = ContextWindow(model, window)

    def context_window(self) -> int | None:
        """Return the server's limit for prompt and answer in tokens; `None` if unknown."""
        return self._window.size()

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        cancel: Event,
        every_seconds: Callable[[], float] = lambda: READ_EVERY_SECONDS,
    ) -> Iterator[TextDelta | Discarded | Lost | Completed]:
        """Yield the answer while it arrives, then `Completed`. Returns within 0.2 s after `cancel` is set.

        The first words are yielded immediately. Afterwards, the text which arrives within `every_seconds` is one piece.
        If a stream fails before its first event, it is reopened once, and `Lost` reports the possible cost of the first
        stream.

        Raises `ProviderStreamCut` if the stream ends early, and `ProviderRefused` if the provider's filter ends it. The
        error's `details["usage"]` has the usage, if the provider sent it. Otherwise, `details["is_perhaps_billed"]`
        tells whether the call may have been billed. Other `ProviderError`s are raised only before any text.
        """
        with model_call("chat", self.provider, self.model) as call:
            for piece in self._stream(messages, temperature, maximum_output_tokens, cancel, every_seconds):
                if isinstance(piece, Completed):
                    call.used(piece.usage)
                yield piece

    def _stream(
        self,
        messages: Sequence[ChatMessage],
        temperature: float,
        maximum_output_tokens: int,
        cancel: Event,
        every_seconds: Callable[[], float],
    ) -> Iterator[TextDelta | Discarded | Lost | Completed]:
        def opened() -> Any:
            request = self._request(messages, temperature, maximum_output_tokens)
            return self._client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True})

        def open_stream() -> ChatEvents:
            with openai_errors(self.provider):
                return ChatEvents(self._call_with_fallback(opened), every_seconds=every_seconds, cancel=cancel)

        received = _Received()
        try:
            yield from self._pieces(received, open_stream, cancel)
        except (ProviderUnavailable, ProviderAnswerInvalid) as exc:
            if received.has_events:
                raise
            log.warning("one retry: %s", exc.__cause__ or exc)
            if cancel.wait(RETRY_AFTER_SECONDS):
                raise
            lost = usage_of_failure(exc, lambda: estimated_chat(self.provider, self.model, messages))
            if lost is not None:
                yield Lost(lost)
            received = _Received()
            yield from self._pieces(received, open_stream, cancel)
        if cancel.is_set():
            return
        usage = self._usage(received.usage) if received.usage else None
        details: dict[str, Any] = {"usage": usage, "is_perhaps_billed": True, "provider": self.provider}
        if received.finish_reason == "content_filter" or (received.is_refusal and not received.has_text):
            raise ProviderRefused(None, **details)
        if received.finish_reason is None:
            raise (ProviderStreamCut if received.has_text else ProviderStreamEmpty)(None, **details)
        if not received.has_text:
            raise ProviderAnswerInvalid("The model sent an empty answer. Try again in a moment.", **details)
        sent = estimated_chat(self.provider, self.model, messages).input_tokens
        is_cut = usage is not None and self._window.cuts(sent=sent, counted=usage.input_tokens)
        yield Completed(usage=usage, finish_reason=received.finish_reason, is_prompt_cut=is_cut)

    def _pieces(
        self, received: _Received, open_stream: Callable[[], ChatEvents], cancel: Event
    ) -> Iterator[TextDelta | Discarded]:
        answer = ReasoningFilter(waits=self._reasons_first)
        try:
            with openai_errors(self.provider, has_text=lambda: received.has_text):
                for events in cancellable(open_stream, cancel=cancel):
                    text = answer.feed("".join(map(received.take, events)))
                    if answer.has_unopened and not self._reasons_first:
                        self._reasons_first = True
                        yield Discarded()
                    if text:
                        received.has_text = True
                        yield TextDelta(text)
                if text := answer.finish():
                    received.has_text = True
                    yield TextDelta(text)
        except ProviderError as exc:
            if received.usage:
                exc.details["usage"] = self._usage(received.usage)
            raise

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        json_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Return the whole reply. With `json_schema`, the reply is JSON.

        Raises `ProviderError`s. `ProviderAnswerCut`, raised if the reply reaches the length limit, has the text so far
        in `details["text"]`. Raises `ProviderAnswerInvalid` if the reply is not the requested JSON.
        """
        more: dict[str, Any] = {}
        if json_schema is not None:
            # Strict schemas must close every object; other schemas are taken as a hint.
            strict = json_schema.get("additionalProperties") is False
            named = {"name": "reply", "schema": dict(json_schema), "strict": strict}
            more["response_format"] = {"type": "json_schema", "json_schema": named}

        def request_completion() -> ChatCompletion:
            request = self._request(messages, temperature, maximum_output_tokens) | more
            reply: ChatCompletion = self._client.chat.completions.create(
                **request, extra_headers=current_sending().headers(0)
            )
            return reply

        def expected(text: str = "") -> Usage:
            return estimated_chat(self.provider, self.model, messages, text)

        def attempt() -> tuple[Choice, str, Usage]:
            with (
                model_call("chat", self.provider, self.model) as call,
                requested(expected),
                openai_errors(self.provider),
            ):
                reply = self._call_with_fallback(request_completion)
                counted = self._usage(reply.usage) if reply.usage else None
                call.used(counted)
                with billed_as(counted or expected()), openai_errors(self.provider):
                    choice = reply.choices[0]
                    text = without_reasoning(choice.message.content or "")
                    return choice, text, counted or expected(text)

        choice, text, usage = retry_soon(attempt)
        with accounted(expected), billed_as(usage):
            if choice.finish_reason == "content_filter" or (choice.message.refusal and not text):
                raise ProviderRefused
            if choice.finish_reason == "length":
                raise ProviderAnswerCut(text=text)
            if json_schema is not None and not _is_json(text):
                raise ProviderAnswerInvalid
        return Completion(text=text, usage=usage)

    def _call_with_fallback(self, ask: Callable[[], Value]) -> Value:
        """Call the model. If its parameters are refused, call again with the parameters of a reasoning model.

        A refused call costs nothing.
        """
        try:
            return ask()
        except openai.BadRequestError as exc:
            if self._is_reasoning or not names_reasoning_parameters(exc):
                raise
            log.warning("%s takes the parameters of a reasoning model: %s", self.model, exc.message)
            self._is_reasoning = True
            return ask()

    def _request(
        self, messages: Sequence[ChatMessage], temperature: float, maximum_output_tokens: int
    ) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": message.role, "content": content_of(message)} for message in messages],
        }
        if self._is_reasoning:
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


class _Received:
    def __init__(self) -> None:
        self.has_events = False
        #: Whether any text has arrived besides reasoning.
        self.has_text = False
        self.is_refusal = False
        self.finish_reason: str | None = None
        self.usage: CompletionUsage | None = None

    def take(self, event: Mapping[str, Any]) -> str:
        """Process an event from the stream. Returns its text, or ""."""
        self.has_events = True
        if event.get("usage"):
            self.usage = CompletionUsage.model_validate(event["usage"])
        if not event.get("choices"):
            return ""
        choice = event["choices"][0]
        delta = choice.get("delta") or {}
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        self.is_refusal = self.is_refusal or bool(delta.get("refusal"))
        text: str = delta.get("content") or ""
        return text


def is_reasoning_model(model: str) -> bool:
    """Whether a model is a reasoning model, which accepts `max_completion_tokens` and no temperature.

    The name without the vendor's prefix decides.
    """
    return REASONING_MODEL.match(model.rsplit("/", 1)[-1]) is not None


def names_reasoning_parameters(exc: openai.BadRequestError) -> bool:
    """Whether an error says that the model needs `max_completion_tokens`, or only accepts the default temperature."""
    return "max_completion_tokens" in exc.message or exc.param == "temperature" or "'temperature'" in exc.message


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def content_of(message: ChatMessage) -> str | list[dict[str, Any]]:
    """Convert a message's content to the API's format. Only messages with images are divided into parts."""
    if not message.images:
        return message.content
    addresses = ("data:image/png;base64," + base64.b64encode(image).decode("ascii") for image in message.images)
    pictures = [{"type": "image_url", "image_url": {"url": address}} for address in addresses]
    return [{"type": "text", "text": message.content}, *pictures]


# Errors

#: A server's error for an embedding JSON cannot hold, such as Ollama's "json: unsupported value: NaN".
NOT_A_NUMBER = re.compile(r"\b(NaN|[+-]?Inf(inity)?)\b|unsupported value")
QUOTA_CODES = frozenset(
    {"insufficient_quota", "rate_limit_exceeded", "rate_limit_error", "tokens", "requests", "402", "429"}
)
FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "moderation_blocked"})
#: Wait before the only retry while a person waits.
RETRY_AFTER_SECONDS = 0.3


#: After a gateway timeout it is unknown whether the provider finished, and billed, the request.
UNSURE_STATUSES = frozenset({502, 504, 524})
#: Nothing had been sent yet.
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


@contextmanager
def openai_errors(provider: str = "", *, has_text: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Convert errors in the `with` block to `ProviderError`s.

    These are errors from the SDK and its transport, and errors caused by unreadable responses. If `has_text()`, an
    answer which breaks off raises `ProviderStreamCut`. An error's details name the provider and tell whether the
    request may have been billed.
    """
    try:
        yield
    except RagError as exc:
        exc.details.setdefault("provider", provider)
        raise
    except FOREIGN_ERRORS as exc:
        error = error_from(exc)
        if has_text() and isinstance(error, ProviderUnavailable | ProviderAnswerInvalid):
            error = ProviderStreamCut()
        error.details.update(provider=provider, is_perhaps_billed=is_perhaps_billed(exc))
        raise error from exc


def is_perhaps_billed(exc: Exception) -> bool:
    """Whether a failed request may have been billed.

    Refused requests are free. If a response was lost, its request may be billed.
    """
    if isinstance(exc, openai.APIStatusError):
        return exc.status_code in UNSURE_STATUSES
    if isinstance(exc, openai.APIConnectionError):
        return not isinstance(exc.__cause__, NOT_SENT)
    if isinstance(exc, openai.APIError):  # An unexpected answer, or an error event in a stream.
        return not _codes(exc) & QUOTA_CODES
    return not isinstance(exc, (openai.OpenAIError, httpx2.InvalidURL, *NOT_SENT))


#: The SDK builds its models without validation: an unexpected shape raises the last four on use.
FOREIGN_ERRORS = (
    openai.OpenAIError,
    openai.InvalidWebhookSignatureError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.CookieConflict,
    httpx2.StreamError,
    OSError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
)


def error_from(exc: Exception) -> ProviderError:
    """Return the product's error for an error from the SDK or the transport."""
    if isinstance(exc, openai.APIStatusError):
        return _error_from_status(exc)
    if isinstance(exc, openai.ContentFilterFinishReasonError):
        return ProviderRefused()
    if isinstance(exc, openai.APIResponseValidationError | openai.LengthFinishReasonError):
        return ProviderAnswerInvalid()
    if isinstance(exc, openai.APIError) and _codes(exc) & QUOTA_CODES:  # an error event in a stream
        return ProviderQuotaExhausted()
    if isinstance(exc, openai.APIError) and _codes(exc) & FILTER_CODES:
        return ProviderRefused()
    if isinstance(exc, openai.OpenAIError | httpx2.HTTPError | httpx2.InvalidURL | httpx2.StreamError | OSError):
        return ProviderUnavailable()
    return ProviderAnswerInvalid()


def _error_from_status(exc: openai.APIStatusError) -> ProviderError:
    status, codes = exc.status_code, _codes(exc)
    if status in (401, 403) and not codes & FILTER_CODES:
        return ProviderKeyRejected()
    if status == 400 and "api key" in exc.message.lower():  # Gemini's words for 401
        return ProviderKeyRejected()
    if status in (402, 429) or codes & {"insufficient_quota"}:
        return ProviderQuotaExhausted(retry_after_seconds=retry_after_seconds(exc.response.headers))
    if codes & FILTER_CODES:
        return ProviderRefused()
    if status >= 500 and NOT_A_NUMBER.search(exc.message):
        return VectorUnusable()
    if status in (408, 409, 425) or status >= 500:
        return ProviderUnavailable(retry_after_seconds=retry_after_seconds(exc.response.headers))
    log.warning("HTTP %d from the provider: %s", status, exc.message)
    if "context_length_exceeded" in codes:
        return ProviderError(
            "The question and its passages are longer than the model can process. Ask a shorter question."
        )
    if status == 404:
        return ProviderError(MODEL_UNKNOWN)
    return ProviderError(NOT_ACCEPTED.format(status=status))


def _codes(exc: openai.APIError) -> set[str]:
    return {str(value) for value in (exc.code, exc.type) if value}


def retry_soon(call: Callable[[], Value], *, give_up: Event | None = None) -> Value:
    """Call a function and return its result. Retries once after 0.3 s if the provider was unreachable or its answer
    unreadable.

    Does not retry if `give_up` is set by then.
    """
    try:
        return call()
    except (ProviderUnavailable, ProviderAnswerInvalid) as exc:
        log.warning("one retry: %s", exc.__cause__ or exc)
        if give_up is None:
            time.sleep(RETRY_AFTER_SECONDS)
        elif give_up.wait(RETRY_AFTER_SECONDS):
            raise
        return call()
