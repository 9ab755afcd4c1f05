"""HTTP clients for sources, with checked addresses, limits for size and time, and readable errors."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx

from rag.errors import (
    DocumentError,
    InvalidInput,
    NotFound,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderUnavailable,
)
from rag.ingestion.loaders.values import ExtractionLimits
from rag.providers.addresses import is_public, literal_address
from rag.providers.bounds import TOO_LARGE, USUAL, Bounds, bounded, timed
from rag.providers.outward import OutwardTransport
from rag.providers.retry import retry_after_seconds

CONNECT_SECONDS = 20.0
READ_SECONDS = 60.0
#: The longest pause to wait here, in seconds; longer pauses are left to the queue.
LONGEST_PAUSE_SECONDS = 60.0
ATTEMPTS = 3
LONGEST_FIELD = 500
#: The most bytes in a list's page, as JSON.
MOST_JSON_BYTES = 8 * 2**20
#: The most pages in a list.
MOST_PAGES = 5000
HOST = re.compile(r"[\w.-]+|[0-9a-f:.]+")


class CheckedTransport(httpx.BaseTransport):
    """An httpx transport for addresses typed by people: only https to public networks.

    Hosts in `own_hosts` may be in a private network. Each request is checked, including redirects, and responses are
    limited (`rag.providers.bounds`). Raises `InvalidInput`.
    """

    def __init__(
        self,
        own_hosts: frozenset[str],
        *,
        allow_http: bool = False,
        bounds: Bounds = USUAL,
    ) -> None:
        self._bounds = bounds
        self._own_hosts = own_hosts
        self._allow_http = allow_http
        self._own = timed(httpx.HTTPTransport())
        self._outward = OutwardTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer: httpx.Response = bounded(self._send, request, self._bounds)
        return answer

    def _send(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        if is_own(url, self._own_hosts):
            return self._own.handle_request(request)
        if url.scheme != "https" and not self._allow_http:
            raise InvalidInput(f"The address of {url.host} has to begin with https://.")
        address = literal_address(url.host)
        is_private = address is not None and not is_public(address)
        if is_private or url.host == "localhost":
            raise private_network(url.host)
        try:
            return self._outward.handle_request(request)
        except InvalidInput as exc:
            raise private_network(url.host) from exc

    def close(self) -> None:
        self._own.close()
        self._outward.close()


def private_network(host: str) -> InvalidInput:
    return InvalidInput(
        f"{host} leads into a private network. The operator of this installation can allow it with RAG_SYNC_HOSTS."
    )


def is_own(url: httpx.URL, own_hosts: frozenset[str]) -> bool:
    """Whether the settings list this host, with the port if given. A listed host may be in a private network."""
    return url.netloc.decode("ascii").lower() in own_hosts


def client_for(
    own_hosts: frozenset[str],
    *,
    allow_http: bool = False,
    most_bytes: int = USUAL.most_bytes,
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> httpx.Client:
    """Build an httpx client with checked addresses. The client follows redirects only on request."""
    return httpx.Client(
        transport=CheckedTransport(own_hosts, allow_http=allow_http, bounds=Bounds(most_bytes=most_bytes)),
        timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        headers={"User-Agent": "hr-assistant", **(headers or {})},
        trust_env=False,
        **options,
    )


def web_address_of(text: str, what: str) -> httpx.URL:
    """Parse a typed web address. Raises `InvalidInput` naming the field `what`."""
    problem = f"{what} has to be a web address, such as https://example.com."
    try:
        url = httpx.URL(text if "://" in text else f"https://{text}")
        is_valid = bool(HOST.fullmatch(url.host)) and url.scheme in ("http", "https") and (url.port or 1) < 65_536
    except (httpx.InvalidURL, ValueError, TypeError) as exc:
        raise InvalidInput(problem) from exc
    if not is_valid or url.userinfo:
        raise InvalidInput(problem)
    return url


def require_https(url: httpx.URL, own_hosts: frozenset[str]) -> None:
    """Raise `InvalidInput` if keys would be sent unencrypted."""
    if url.scheme != "https" and not is_own(url, own_hosts):
        raise InvalidInput(f"The address of {url.host} has to begin with https://.")


def fields_of(source_settings: Mapping[str, Any], *names: str, longest: int = LONGEST_FIELD) -> dict[str, str]:
    """Return a source's named settings, each on a single line. Raises `InvalidInput` for long texts and several
    lines.
    """
    values = {name: str(source_settings.get(name) or "").strip() for name in names}
    if any(len(value) > longest or not value.isprintable() for value in values.values()):
        raise InvalidInput(f"Each field takes one line of at most {longest} characters.")
    return values


@contextmanager
def own_errors(service: str) -> Iterator[None]:
    """Convert httpx errors inside the `with` block to errors from `rag.errors`."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.TooManyRedirects) as exc:
        raise InvalidInput(f"This address of {service} cannot be used. Check it.") from exc
    except httpx.DecodingError as exc:
        raise ProviderAnswerInvalid(f"{service} sent an answer that cannot be read.") from exc
    except (httpx.HTTPError, OSError) as exc:
        raise ProviderUnavailable(f"{service} cannot be reached at the moment. Check its address.") from exc


def require_success(answer: httpx.Response, service: str, *, rejected: str, forbidden: str, missing: str) -> None:
    """Raise the error for a response with status 400 or more.

    `rejected`, `forbidden` and `missing` are the messages for 401, 403 and 404.
    """
    status = answer.status_code
    if status < 400:
        return
    if status == 401:
        raise ProviderKeyRejected(rejected)
    if status == 403:
        raise ProviderKeyRejected(forbidden)
    if status in (404, 410):
        raise NotFound(missing)
    if status == 429:
        raise ProviderQuotaExhausted(
            f"{service} asks for a pause. Try again later.",
            retry_after_seconds=retry_after_seconds(answer.headers) or 60.0,
        )
    if status >= 500:
        raise ProviderUnavailable(f"{service} cannot answer at the moment. Try again later.")
    raise ProviderError(f"{service} did not accept this request (HTTP {status}).")


def send_patiently(
    send: Callable[[], httpx.Response], *, wait: Callable[[float], object] = time.sleep
) -> httpx.Response:
    """Send a request and return the response.

    The request is repeated after a broken connection, after a server error, and when the server asks to wait.
    """
    for attempt in range(ATTEMPTS):
        is_last = attempt + 1 == ATTEMPTS
        try:
            answer = send()
        except httpx.TransportError:
            if is_last:
                raise
            wait(0.5 * 2**attempt)
            continue
        if answer.status_code not in (429, 500, 502, 503, 504) or is_last:
            return answer
        pause = retry_after_seconds(answer.headers)
        if pause is not None and pause > LONGEST_PAUSE_SECONDS:
            return answer
        answer.close()
        wait(0.5 * 2**attempt if pause is None else pause)
    raise AssertionError("unreachable")


def require_size(size: int, limits: ExtractionLimits) -> None:
    """Raise `DocumentError` if a file's size in bytes is above the limit."""
    if size > limits.maximum_bytes:
        raise DocumentError(f"This file is larger than the limit of {limits.maximum_bytes / 2**20:,.0f} MB.")


def read_within(answer: httpx.Response, limits: ExtractionLimits) -> bytes:
    """Read a streamed response. Raises `DocumentError` above the limit."""
    require_size(int(answer.headers.get("content-length") or 0), limits)
    parts, size = [], 0
    for part in answer.iter_bytes():
        size += len(part)
        require_size(size, limits)
        parts.append(part)
    return b"".join(parts)


def _read(answer: httpx.Response) -> bytes:
    """Read a JSON response. Raises `ProviderAnswerInvalid` above `MOST_JSON_BYTES`."""
    parts, size = [], 0
    for part in answer.iter_bytes():
        size += len(part)
        if size > MOST_JSON_BYTES:
            raise ProviderAnswerInvalid(TOO_LARGE)
        parts.append(part)
    return b"".join(parts)


class JsonApi:
    """Send requests to a JSON API with a token, which is sent only to the API's host."""

    def __init__(
        self,
        client: httpx.Client,
        base: str,
        service: str,
        sentences: Mapping[str, str],
        *,
        token: Callable[[], str],
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        """`sentences` are the error messages for "rejected", "forbidden" and "missing"."""
        self._client = client
        self._base = base
        self._service = service
        self._sentences = sentences
        self._token = token
        self._wait = wait

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON at a path, or at a complete address from the API."""
        with self.stream(path, query) as answer:
            return self._content(answer)

    def post(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        with self.stream(path, method="POST", content=content) as answer:
            return self._content(answer)

    def pages(self, path: str, query: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the values from all pages in an OData list."""
        page = self.get(path, query)
        for _ in range(MOST_PAGES):
            yield from page.get("value") or ()
            if not (link := page.get("@odata.nextLink")):
                return
            page = self.get(str(link))
        raise ProviderAnswerInvalid(
            f"The list from {self._service} does not end, so reading was stopped. Try again later."
        )

    @contextmanager
    def stream(
        self,
        path: str,
        query: Mapping[str, Any] | None = None,
        *,
        method: str = "GET",
        content: Mapping[str, Any] | None = None,
    ) -> Iterator[httpx.Response]:
        """Send a request and yield the unread response. Raises the error for its status."""
        with own_errors(self._service):
            url = httpx.URL(path if path.startswith(("https://", "http://")) else self._base + path)
            base = httpx.URL(self._base)
            if (url.scheme, url.netloc) != (base.scheme, base.netloc):
                raise ProviderAnswerInvalid(
                    f"{self._service} referred to an address on another host. That address was not read."
                )
            headers = {"Authorization": f"Bearer {self._token()}"}
            request = self._client.build_request(
                method, url if query is None else url.copy_merge_params(query), json=content, headers=headers
            )
            # Other hosts never receive the token.
            answer = send_patiently(
                partial(self._client.send, request, stream=True, follow_redirects=True), wait=self._wait
            )
            try:
                if answer.status_code == 410:
                    raise NotFound(self._sentences["missing"])
                if answer.status_code == 403 and b"ratelimitexceeded" in _read(answer).lower():
                    raise ProviderQuotaExhausted(f"{self._service} asks for a pause. Try again later.")
                require_success(answer, self._service, **self._sentences)
                yield answer
            finally:
                answer.close()

    def _content(self, answer: httpx.Response) -> dict[str, Any]:
        try:
            content = json.loads(_read(answer))
        except (ValueError, RecursionError) as exc:
            raise ProviderAnswerInvalid(f"{self._service} sent an answer that cannot be read.") from exc
        if not isinstance(content, dict):
            raise ProviderAnswerInvalid(f"{self._service} sent an answer that cannot be read.")
        return content
