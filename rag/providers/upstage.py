"""Recognise text with Upstage Document Parse. Only this file handles its requests, responses and errors."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import httpx

from rag.errors import (
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderUnavailable,
)
from rag.monitoring.tracing import model_call
from rag.providers import Connection, ParsedPages
from rag.providers.bounds import bound
from rag.providers.retry import accounted, billed_as, current_sending, retry_after_seconds
from rag.settings import Settings
from rag.settings.providers import ProviderSpec
from rag.types import Usage

PATH = "/v1/document-digitization"
#: The synchronous call silently ignores pages after the first 100; fewer keep it quick.
PAGES_PER_REQUEST = 50
#: After a gateway timeout it is unknown whether the provider finished, and billed, the request.
UNSURE_STATUSES = frozenset({502, 504, 524})
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL)
UNREADABLE = "Upstage sent an answer that cannot be read. Try again in a moment."
TAG = re.compile(r"<[^<>]+>")


class UpstageParser:
    """Recognises the text in scanned PDFs with up to `PAGES_PER_REQUEST` pages."""

    pages_per_request = PAGES_PER_REQUEST

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str,
        provider: str = "upstage",
        model: str = "document-parse",
        timeout_seconds: float = 180.0,
        client: httpx.Client | None = None,
    ) -> None:
        self.provider = provider
        self.model = model
        self._url = base_url.rstrip("/") + PATH
        self._headers = {"Authorization": f"Bearer {api_key}"}
        self._client = bound(client or httpx.Client(timeout=httpx.Timeout(timeout_seconds, connect=5.0)))

    def close(self) -> None:
        self._client.close()

    def parse(self, content: bytes, page_count: int) -> ParsedPages:
        """Return the text of each page in a PDF, "" for unread pages. Raises `ProviderError`s."""
        form = {"model": self.model, "ocr": "force", "output_formats": "['text', 'html']", "coordinates": "false"}

        def expected() -> Usage:
            return Usage(provider=self.provider, model=self.model, pages=page_count, is_estimated=True)

        with model_call("ocr", self.provider, self.model) as call, accounted(expected):
            body = self._answer(content, form)
            pages = (body.get("usage") or {}).get("pages")
            if isinstance(pages, int) and pages > 0:
                usage = Usage(provider=self.provider, model=self.model, pages=pages)
            else:
                usage = expected()
            call.used(usage)
            with billed_as(usage):
                try:
                    return ParsedPages(_texts_by_page(body, page_count), usage)
                except (ValueError, TypeError, AttributeError, KeyError) as exc:
                    raise ProviderAnswerInvalid(UNREADABLE) from exc

    def _answer(self, content: bytes, form: Mapping[str, str]) -> Mapping[str, Any]:
        try:
            files = {"document": ("document.pdf", content, "application/pdf")}
            headers = self._headers | current_sending().headers(0)
            answer = self._client.post(self._url, headers=headers, data=form, files=files)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
            is_sent = not isinstance(exc, NOT_SENT)
            raise ProviderUnavailable(None, provider=self.provider, is_perhaps_billed=is_sent) from exc
        if answer.status_code != 200:
            error = _error_of(answer)
            is_unsure = answer.status_code in UNSURE_STATUSES
            error.details.update(provider=self.provider, is_perhaps_billed=is_unsure)
            raise error
        try:
            body = answer.json()
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict) or not isinstance(body.get("usage") or {}, dict):
            raise ProviderAnswerInvalid(UNREADABLE, provider=self.provider, is_perhaps_billed=True)
        return body


class UpstageConnection(Connection):
    """A connection to Upstage, or to another server with its Document Parse API."""

    def __init__(self, spec: ProviderSpec, settings: Settings) -> None:
        super().__init__(spec, settings)
        self._parser = UpstageParser(
            api_key=settings.key_of(spec.name),
            base_url=settings.address_of(spec.name),
            provider=spec.name,
            model=spec.models["ocr"],
            timeout_seconds=settings.timeout_of(spec.name),
        )

    def recogniser(self) -> UpstageParser:
        return self._parser

    def close(self) -> None:
        self._parser.close()


def _texts_by_page(body: Mapping[str, Any], page_count: int) -> dict[int, str]:
    """Return the text by page number, without headers and footers.

    Raises `ValueError` if the response has several pages but does not divide its text by page.
    """
    texts: dict[int, list[str]] = defaultdict(list)
    for element in body.get("elements") or ():
        content = element.get("content") or {}
        text = str(content.get("text") or "").strip() or _table_lines(str(content.get("html") or ""))
        if text and element.get("category") not in ("header", "footer"):
            texts[int(element["page"])].append(text)
    if not texts:
        full_text = str((body.get("content") or {}).get("text") or "").strip()
        if full_text and page_count > 1:
            raise ValueError("the answer does not say which page its text is from")
        texts[1] = [full_text]
    return {page: "\n".join(parts).strip() for page, parts in texts.items() if 1 <= page <= page_count}


def _table_lines(html: str) -> str:
    rows = re.split(r"</tr\s*>", html, flags=re.IGNORECASE)
    lines = (" ".join(TAG.sub(" ", re.sub(r"</t[dh]\s*>", " | ", row, flags=re.IGNORECASE)).split()) for row in rows)
    return "\n".join(line.strip(" |") for line in lines if line.strip(" |"))


def _error_of(answer: httpx.Response) -> ProviderError:
    if answer.status_code in (401, 403):
        return ProviderKeyRejected("Upstage rejected the API key. A valid key has to be set on the page Set-up.")
    seconds = retry_after_seconds(answer.headers)
    details = {} if seconds is None else {"retry_after_seconds": seconds}
    if answer.status_code in (402, 429):
        return ProviderQuotaExhausted(None, **details)
    if answer.status_code == 408 or answer.status_code >= 500:
        return ProviderUnavailable(None, **details)
    return ProviderError(f"Upstage did not accept this document (HTTP {answer.status_code}).")
