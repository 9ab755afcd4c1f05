"""Hosts that sources are on: which addresses are reached, how long one waits, and what each refusal is called."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from rag.errors import (
    DocumentError,
    InvalidInput,
    NotFound,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderUnavailable,
    RagError,
)
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.sources.permissions import moment_of
from rag.integrations.sources.remote import (
    ATTEMPTS,
    LONGEST_PAUSE_SECONDS,
    CheckedTransport,
    JsonApi,
    client_for,
    fields_of,
    own_errors,
    read_within,
    web_address_of,
)
from rag.providers.bounds import Bounds
from tests.standins.local_server import LocalServer, QuietHandler

SENTENCES = {"rejected": "The key is wrong.", "forbidden": "It may not read.", "missing": "It is gone."}


class Host(LocalServer):
    """Answers with the next of `answers`: a status, headers and a body; 200 and {} when none is left."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.tokens: list[str] = []


class Handler(QuietHandler):
    server: Host

    def do_GET(self) -> None:
        self.server.tokens.append(self.headers.get("authorization") or "")
        status, headers, body = self.server.answers.pop(0) if self.server.answers else (200, {}, b"{}")
        self.send_response(status)
        if "x-open-end" not in headers:
            self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def host() -> Iterator[Host]:
    with Host() as server:
        yield server


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def api(host: Host, waits: list[float]) -> Iterator[JsonApi]:
    with client_for(frozenset({host.host})) as client:
        yield JsonApi(client, host.url, "The service", SENTENCES, token=lambda: "token", wait=waits.append)


@pytest.mark.parametrize(
    "text",
    ["https://a b.example", "ftp://example.com", "https://user:secret@example.com", "https://example.com:99999", ""],
)
def test_what_is_no_web_address_is_refused_by_the_name_of_its_field(text: str) -> None:
    with pytest.raises(InvalidInput, match="The site has to be a web address"):
        web_address_of(text, "The site")


def test_fields_are_single_lines_and_times_may_be_missing() -> None:
    assert fields_of({"folder": " hr "}, "folder", "user") == {"folder": "hr", "user": ""}
    for value in ("x" * 501, "two\nlines"):
        with pytest.raises(InvalidInput, match="one line of at most 500"):
            fields_of({"folder": value}, "folder")
    assert moment_of("2026-01-05T10:00:00+00:00") is not None
    assert moment_of("yesterday") is None


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, ProviderKeyRejected(SENTENCES["rejected"])),
        (403, ProviderKeyRejected(SENTENCES["forbidden"])),
        (404, NotFound(SENTENCES["missing"])),
        (410, NotFound(SENTENCES["missing"])),
        (418, ProviderError("The service did not accept this request (HTTP 418).")),
    ],
)
def test_a_refusal_says_what_to_do(api: JsonApi, host: Host, waits: list[float], status: int, error: RagError) -> None:
    host.answers = [(status, {}, b"")]
    with pytest.raises(type(error)) as caught:
        api.get("/files")
    assert caught.value.message == error.message
    assert waits == [], "asking again would not help"


def test_a_server_that_asks_for_a_pause_gets_it_and_no_more_than_a_minute(
    api: JsonApi, host: Host, waits: list[float]
) -> None:
    host.answers = [(429, {"retry-after": "7"}, b""), (503, {}, b"")]
    assert api.get("/files") == {}
    assert waits == [7.0, 1.0]
    host.answers = [(429, {"retry-after": str(LONGEST_PAUSE_SECONDS + 1)}, b"")]
    with pytest.raises(ProviderQuotaExhausted) as caught:
        api.get("/files")
    assert caught.value.details == {"retry_after_seconds": LONGEST_PAUSE_SECONDS + 1}
    host.answers = [(403, {}, b'{"reason": "userRateLimitExceeded"}')]
    with pytest.raises(ProviderQuotaExhausted):
        api.get("/files")
    host.answers = [(500, {}, b"")] * ATTEMPTS
    with pytest.raises(ProviderUnavailable, match="cannot answer at the moment"):
        api.get("/files")
    assert host.answers == []


@pytest.mark.parametrize("body", [b"<html>", b"[1]"], ids=["no JSON", "a list"])
def test_an_answer_that_cannot_be_read_is_named(api: JsonApi, host: Host, body: bytes) -> None:
    host.answers = [(200, {}, body)]
    with pytest.raises(ProviderAnswerInvalid, match="cannot be read"):
        api.get("/files")


def test_the_token_goes_to_the_services_own_host_alone(api: JsonApi, host: Host) -> None:
    with pytest.raises(ProviderAnswerInvalid, match="another host"):
        api.get("https://elsewhere.example/files")
    assert host.tokens == []


@pytest.mark.parametrize(
    "address", ["http://example.com/", "https://10.0.0.7/", "https://localhost/", "https://[::1]/"]
)
def test_no_source_leads_into_a_private_network(address: str) -> None:
    with client_for(frozenset()) as client, pytest.raises(InvalidInput):
        client.get(address)


def test_an_answer_without_end_is_broken_off(host: Host) -> None:
    long = b"x" * 2000
    host.answers = [(200, {}, long), (200, {}, long), (200, {"x-open-end": "yes"}, long)]
    transport = CheckedTransport(frozenset({host.host}), bounds=Bounds(most_bytes=1000))
    with httpx.Client(transport=transport) as client, pytest.raises(ProviderAnswerInvalid):
        client.get(host.url)
    limits = ExtractionLimits(maximum_bytes=1000)
    with client_for(frozenset({host.host})) as client:
        for _ in ("by its header", "by its size"):
            with client.stream("GET", host.url) as answer, pytest.raises(DocumentError, match="larger than the limit"):
                read_within(answer, limits)


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (httpx.UnsupportedProtocol("no"), InvalidInput),
        (httpx.DecodingError("no"), ProviderAnswerInvalid),
        (httpx.ConnectTimeout("no"), ProviderUnavailable),
        (OSError("no"), ProviderUnavailable),
    ],
)
def test_errors_of_a_connection_become_ours(raised: Exception, error: type[RagError]) -> None:
    with pytest.raises(error), own_errors("The service"):
        raise raised
