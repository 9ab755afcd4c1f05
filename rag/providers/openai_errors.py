"""The one place that knows the errors of the `openai` SDK and those of its transport, which is httpx2."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import TypeVar

import httpx2
import openai

from rag.errors import (
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderRefused,
    ProviderStreamCut,
    ProviderUnavailable,
    RagError,
)
from rag.providers.retry_after import retry_after_seconds

log = logging.getLogger(__name__)
Value = TypeVar("Value")

QUOTA_CODES = frozenset(
    {"insufficient_quota", "rate_limit_exceeded", "rate_limit_error", "tokens", "requests", "402", "429"}
)
FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "moderation_blocked"})
#: Waited before the only retry of a call that a person waits for.
RETRY_AFTER_SECONDS = 0.3


#: A gateway that gave up waiting does not know whether the provider worked on, and billed it.
UNSURE_STATUSES = frozenset({502, 504, 524})
#: Nothing had been sent yet.
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


@contextmanager
def openai_errors(provider: str = "", *, has_text: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Turn everything the SDK, its transport and unreadable answers raise into `ProviderError`s.

    After the first text, an answer that breaks off for whatever reason is a `ProviderStreamCut`. An error says in its
    details whose it is, and whether the request may have been billed.
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
    """Whether a request that failed so may have been worked on: refusals are free, answers that got lost are not."""
    if isinstance(exc, openai.APIStatusError):
        return exc.status_code in UNSURE_STATUSES
    if isinstance(exc, openai.APIConnectionError):
        return not isinstance(exc.__cause__, NOT_SENT)
    if isinstance(exc, openai.APIError):  # an answer of another shape, or an error event in a stream
        return not _codes(exc) & QUOTA_CODES
    return not isinstance(exc, (openai.OpenAIError, httpx2.InvalidURL, *NOT_SENT))


#: The SDK builds its models without checking them: an answer of another shape shows as the last four when it is used.
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
    """What an error of the SDK or its transport means for us."""
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
    if status in (408, 409, 425) or status >= 500:
        return ProviderUnavailable(retry_after_seconds=retry_after_seconds(exc.response.headers))
    log.warning("HTTP %d from the provider: %s", status, exc.message)
    if "context_length_exceeded" in codes:
        return ProviderError(
            "The question and its passages are longer than the model can take. Ask a shorter question."
        )
    if status == 404:
        return ProviderError("The provider does not know this model. An administrator has to choose another one.")
    return ProviderError(
        f"The provider did not accept this request (HTTP {status}). An administrator finds why in the log."
    )


def _codes(exc: openai.APIError) -> set[str]:
    return {str(value) for value in (exc.code, exc.type) if value}


def retry_soon(call: Callable[[], Value], *, give_up: Event | None = None) -> Value:
    """Try once more after 0.3 s when the provider could not be reached or its answer be read.

    Not when `give_up` is set by then.
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
