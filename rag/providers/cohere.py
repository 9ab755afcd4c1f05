"""Rerank with Cohere's SDK. Only this file handles the errors of the SDK and its transport."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import cohere
import httpx
from cohere.core.api_error import ApiError
from cohere.core.request_options import RequestOptions

from rag.errors import (
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderUnavailable,
)
from rag.monitoring.tracing import model_call
from rag.providers import CONNECT_TIMEOUT_SECONDS, CONNECTIONS, KEPT_CONNECTIONS, Connection, Reranking
from rag.providers.bounds import bound
from rag.providers.retry import billed_as, requested, retry_after_seconds
from rag.settings import Settings
from rag.settings.providers import Capability, ProviderSpec
from rag.types import Usage

#: After a gateway timeout it is unknown whether the provider finished, and billed, the request.
UNSURE_STATUSES = frozenset({502, 504, 524})
#: Cohere advises against more documents in a request.
MAXIMUM_DOCUMENTS = 1000


class CohereReranker:
    """Orders documents by their relevance to a query, in any language which Cohere supports."""

    def __init__(
        self, client: cohere.ClientV2, *, model: str, timeout_seconds: float, provider: str = "cohere"
    ) -> None:
        self.provider = provider
        self.model = model
        self._client = client
        self._timeout_seconds = timeout_seconds

    def rank(self, query: str, documents: Sequence[str], *, limit: int) -> Reranking:
        """Return the indexes of the best `limit` documents, with their relevance (0 to 1). At most 1,000 documents are
        sent.

        Raises `ProviderError`s. There are no retries, because the caller already has a usable order.
        """
        documents = documents[:MAXIMUM_DOCUMENTS]
        if not documents or limit < 1:
            return Reranking(results=(), usage=Usage(provider=self.provider, model=self.model))
        # The SDK types this as an int, and passes the value to httpx.
        options = cast(RequestOptions, {"max_retries": 0, "timeout_in_seconds": self._timeout_seconds})

        def expected() -> Usage:
            # Without a count, assume a unit per 100 documents.
            units = math.ceil(len(documents) / 100)
            return Usage(provider=self.provider, model=self.model, search_units=units, is_estimated=True)

        with (
            model_call("rerank", self.provider, self.model) as call,
            requested(expected),
            cohere_errors(self.provider),
        ):
            answer = self._client.v2.rerank(
                model=self.model,
                query=query,
                documents=list(documents),
                top_n=min(limit, len(documents)),
                request_options=options,
            )
            billed = answer.meta.billed_units if answer.meta else None
            if billed and billed.search_units is not None:  # Cohere counts in floats
                usage = Usage(provider=self.provider, model=self.model, search_units=math.ceil(billed.search_units))
            else:
                usage = expected()
            call.used(usage)
            with billed_as(usage), cohere_errors(self.provider):
                results = tuple((int(item.index), float(item.relevance_score)) for item in answer.results)
                self._check(results, len(documents))
        return Reranking(results=results, usage=usage)

    def _check(self, results: tuple[tuple[int, float], ...], count: int) -> None:
        indexes = [index for index, _ in results]
        if len(set(indexes)) != len(indexes) or not all(0 <= index < count for index in indexes):
            raise ProviderAnswerInvalid("The reranker named a document that it was not given.")
        if not results or not all(math.isfinite(score) for _, score in results):
            raise ProviderAnswerInvalid("The reranker sent no relevance that can be used.")


class CohereConnection(Connection):
    """A connection to Cohere, or to any server with `/v2/rerank`."""

    def __init__(self, spec: ProviderSpec, settings: Settings) -> None:
        super().__init__(spec, settings)
        self._timeout_seconds = settings.timeout_of(spec.name)
        self._transport = httpx.Client(
            timeout=httpx.Timeout(self._timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS),
            limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=KEPT_CONNECTIONS),
            follow_redirects=False,
        )
        self._client = cohere.ClientV2(
            settings.key_of(spec.name),
            base_url=settings.address_of(spec.name).rstrip("/"),
            httpx_client=bound(self._transport),
        )

    def reranker(self, model: str) -> CohereReranker:
        return CohereReranker(self._client, model=model, timeout_seconds=self._timeout_seconds, provider=self.spec.name)

    def probe(self, *, timeout_seconds: float) -> None:
        options = cast(RequestOptions, {"timeout_in_seconds": timeout_seconds, "max_retries": 0})
        with cohere_errors(self.spec.name):
            self._client.models.list(request_options=options)

    def models(self, capability: Capability, *, timeout_seconds: float) -> list[str]:
        options = cast(RequestOptions, {"timeout_in_seconds": timeout_seconds, "max_retries": 0})
        with cohere_errors(self.spec.name):
            models = self._client.models.list(endpoint="rerank", request_options=options).models or []
            return sorted(str(model.name) for model in models if model.name)

    def close(self) -> None:
        self._transport.close()


@contextmanager
def cohere_errors(provider: str = "cohere") -> Iterator[None]:
    """Convert errors in the `with` block to `ProviderError`s.

    These are errors from the SDK and its transport, and errors caused by unreadable responses.
    """
    try:
        yield
    except ProviderError as exc:
        exc.details.setdefault("provider", provider)
        raise
    except (ApiError, httpx.HTTPError, httpx.InvalidURL, httpx.CookieConflict, httpx.StreamError, OSError) as exc:
        error = error_from(exc)
        error.details.update(provider=provider, is_perhaps_billed=_is_perhaps_billed(exc))
        raise error from exc
    except (ValueError, TypeError, AttributeError, LookupError) as exc:
        # The SDK reads JSON without validating it: an unexpected shape only shows on use.
        raise ProviderAnswerInvalid(None, provider=provider, is_perhaps_billed=True) from exc


def _is_perhaps_billed(exc: Exception) -> bool:
    if isinstance(exc, ApiError):
        status: Any = exc.status_code
        return status is None or status < 400 or status in UNSURE_STATUSES
    not_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
    return not isinstance(exc, (httpx.InvalidURL, *not_sent))


def error_from(exc: Exception) -> ProviderError:
    """Return the product's error for an error from the SDK or the transport."""
    if not isinstance(exc, ApiError):
        return ProviderUnavailable()
    status: Any = exc.status_code
    if status in (401, 403, 498):  # 498: Cohere's "invalid token"
        return ProviderKeyRejected()
    wait = retry_after_seconds(exc.headers or {})
    if status in (402, 429):
        return ProviderQuotaExhausted(retry_after_seconds=wait)
    if status is None or status in (408, 409, 499) or status >= 500:
        return ProviderUnavailable(retry_after_seconds=wait)
    if status < 400:  # A 200 with a body which is not JSON.
        return ProviderAnswerInvalid()
    return ProviderError(f"The provider did not accept this request (HTTP {status}). Check the name of the model.")
