"""Read a website by sitemap or by links, on listed hosts and within the rules in robots.txt.

For each page, the state keeps ETag, Last-Modified, the sitemap's date and the links. If the sitemap's date has not
changed, the page is not requested. Other pages are requested with the stored ETag, and the server answers 304 if the
page has not changed.
"""

from __future__ import annotations

import hashlib
import html
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
from protego import Protego

from rag.errors import DocumentError, InvalidInput, NotFound, ProviderUnavailable, RagError, ReadingTookTooLong
from rag.ingestion.loaders.detection import media_type_of
from rag.ingestion.loaders.format_table import file_formats
from rag.ingestion.loaders.sandbox import TenantReader, answers_sandbox_of, well_formed
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.sources.sync import SourceContent, SourceItem
from rag.integrations.sources.remote import (
    client_for,
    fields_of,
    is_own,
    own_errors,
    read_within,
    require_success,
    send_patiently,
    web_address_of,
)
from rag.integrations.sources.website.addresses import (
    LONGEST_ADDRESS,
    MOST_LINKS,
    MOST_SITEMAP_BYTES,
    OTHER_ENDINGS,
    normal_address,
)
from rag.language import N_
from rag.sandbox.child_process import Reply
from rag.settings import Settings
from rag.types import Collection, storable

AGENT = "hr-assistant"
WORKER = "rag.integrations.sources.website.answers"
USUAL_PAGES, MOST_PAGES = 500, 5000
#: Seconds between two requests to a foreign host; robots.txt may ask for more, up to the second value.
PAUSE_SECONDS, LONGEST_CRAWL_DELAY = 0.5, 30.0
MOST_HTML_BYTES = 5 * 2**20
#: The rest is not read; search engines have the same limit.
MOST_ROBOTS_BYTES = 500 * 2**10
#: The most sitemaps from an index.
MOST_SITEMAPS = 200
MOST_REDIRECTS = 5
#: The longest time for parsing in a sync. A usual page takes 0.02 seconds.
LONGEST_READING_SECONDS = 3600.0
#: After this many unreachable pages in a row, the website is considered down.
MOST_FAILURES = 5
STOPPED = N_("Reading stopped after {count} pages, as the settings of the source say.")
CLOSED = N_("Pages left out because the website's robots.txt keeps programs from reading them: {count}.")
TOO_LONG = "Reading the pages of this website takes too long. Choose only a part of the website."
HTML_TYPES = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True, kw_only=True)
class Website:
    """A website to sync: first address, allowed hosts, and the maximum page count."""

    address: httpx.URL
    hosts: frozenset[str]
    pages: int = USUAL_PAGES

    @classmethod
    def of(cls, source_settings: Mapping[str, Any]) -> Website:
        """Read the settings. Raises `InvalidInput` for missing and invalid values."""
        values = fields_of(source_settings, "address", "hosts", "pages")
        if not values["address"]:
            raise InvalidInput("Fill in the address of the first page of the website, or of its sitemap.")
        address = web_address_of(values["address"], "The address of the website")
        other_addresses = [
            web_address_of(host, "Each further host") for host in re.split(r"[\s,;]+", values["hosts"]) if host
        ]
        if not (values["pages"] or "1").isdecimal() or not 1 <= int(values["pages"] or USUAL_PAGES) <= MOST_PAGES:
            raise InvalidInput(f"The number of pages has to be between 1 and {MOST_PAGES:,}.")
        names = {_host_name(url) for url in (address, *other_addresses)}
        return cls(address=address, hosts=frozenset(names), pages=int(values["pages"] or USUAL_PAGES))

    @property
    def is_sitemap(self) -> bool:
        return self.address.path.lower().endswith((".xml", ".xml.gz"))

    @property
    def below(self) -> str:
        """The path prefix to follow: the first address's folder, or "/" for a sitemap."""
        path = self.address.path
        if self.is_sitemap:
            return "/"
        is_file = "." in PurePosixPath(path).name
        return path.rpartition("/")[0] + "/" if is_file else path.rstrip("/") + "/"

    def holds(self, url: httpx.URL) -> bool:
        """Whether an address belongs to the followed website.

        The host must be allowed. On the first address's host, the path must also be below the followed path.
        """
        if url.scheme not in ("http", "https") or url.userinfo or _host_name(url) not in self.hosts:
            return False
        is_first = _host_name(url) == _host_name(self.address)
        return not is_first or f"{url.path.rstrip('/')}/".startswith(self.below) or url.path.startswith(self.below)


def _host_name(url: httpx.URL) -> str:
    """Return host and port without "www.", because addresses with and without "www." are the same website."""
    return url.netloc.decode("ascii").lower().removeprefix("www.")


@dataclass(frozen=True, kw_only=True)
class PageState:
    """A page's state from the last sync."""

    #: The canonical address, which identifies the document.
    key: str
    hash: str
    title: str = ""
    etag: str = ""
    modified: str = ""
    #: The date in the sitemap.
    listed: str = ""
    links: tuple[str, ...] = ()
    may_be_read: bool = True


class _PageMissing(Exception):
    """A web page is missing, or redirects outside the followed website."""


class WebsiteSource:
    """A source with a website's pages and linked documents."""

    kind = "website"

    def __init__(
        self,
        website: Website,
        limits: ExtractionLimits,
        reader: TenantReader,
        *,
        own_hosts: frozenset[str] = frozenset(),
        state: Mapping[str, Any] | None = None,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        """`reader` parses pages and sitemaps in the sandbox.

        `state` is from the last sync; `own_hosts` may be in a private network.
        """
        self._website = website
        self._limits = limits
        self._reader = reader
        self._own_hosts = own_hosts
        self._wait = wait
        self._client = client_for(
            own_hosts,
            allow_http=True,
            most_bytes=max(MOST_SITEMAP_BYTES, limits.maximum_bytes),
            headers={"Accept": "text/html, */*;q=0.5"},
        )
        self._states = _pages_from(state or {})
        self._pages: dict[str, PageState] = {}
        self._robots: dict[str, Protego | None] = {}
        self._requested_at: dict[str, float] = {}
        self._reading_seconds = 0.0
        #: Remarks for administrators.
        self.notes: list[str] = []

    @property
    def state(self) -> dict[str, Any]:
        """Return the state for the next sync."""
        return _state_of(self._pages)

    def items(self) -> Iterator[SourceItem]:
        """Yield all pages by canonical address, in the sitemap's order or by following links.

        Raises `InvalidInput` if robots.txt forbids the first address, `NotFound`, `ProviderUnavailable`.
        """
        first = str(self._website.address)
        self._require_allowed(self._website.address)
        listed = self._list_pages()
        waiting = deque(listed) if listed else deque([first])
        queued, keys, hashes, closed = set(waiting), set[str](), set[str](), 0
        visited = failures = 0
        while waiting:
            address = waiting.popleft()
            if not self._is_allowed(httpx.URL(address)):
                closed += 1
                continue
            if visited >= self._website.pages:
                self.notes.append(STOPPED.format(count=f"{visited:,}"))
                break
            visited += 1
            try:
                page, content = self._visit(address, listed.get(address, ""))
            except _PageMissing:
                if address == first and not listed:
                    raise NotFound(
                        f"There is no page at {first}, or this address leads to a website that is not on the list."
                    ) from None
                continue
            except RagError as error:
                failures += isinstance(error, (ProviderUnavailable, ReadingTookTooLong))
                is_over = self._reading_seconds > LONGEST_READING_SECONDS
                if (address == first and not listed) or failures == MOST_FAILURES or is_over:
                    raise
                page, content = self._unreadable(address, error)
            else:
                failures = 0
            self._pages[address] = page
            if not listed:
                for link in page.links:
                    if link not in queued:
                        queued.add(link)
                        waiting.append(link)
            if not page.may_be_read or page.key in keys or (page.hash and page.hash in hashes):
                continue
            keys.add(page.key)
            hashes.add(page.hash)
            yield SourceItem(key=page.key, updated_at=None, hash=page.hash or "unread", title=page.title, load=content)
        if closed:
            self.notes.append(CLOSED.format(count=f"{closed:,}"))

    def expected(self) -> int:
        """Return how many pages the last sync found."""
        return len(self._states)

    def close(self) -> None:
        self._client.close()

    # Which pages there are

    def _list_pages(self) -> dict[str, str]:
        website = self._website
        if website.is_sitemap:
            sitemaps = [str(website.address)]
        else:
            robots = self._robots_of(website.address)
            sitemaps = list(robots.sitemaps) if robots else []
            sitemaps = sitemaps or [str(website.address.join("/sitemap.xml"))]
        dates: dict[str, str] = {}
        waiting, queued = deque(sitemaps), set(sitemaps)
        while waiting and len(dates) < MOST_PAGES:
            sitemap = waiting.popleft()
            entries, is_index = self._sitemap(sitemap)
            if entries is None:
                if sitemap == str(website.address):
                    raise NotFound(f"There is no sitemap that can be read at {sitemap}.")
                continue
            for address, day in entries:
                if len(dates) == MOST_PAGES:
                    break
                if is_index:
                    if address not in queued and len(queued) < MOST_SITEMAPS:
                        queued.add(address)
                        waiting.append(address)
                elif self._may_be_page(address):
                    dates.setdefault(address, day)
        return dates

    def _sitemap(self, address: str) -> tuple[list[tuple[str, str]] | None, bool]:
        """Fetch a sitemap. Return the entries, and whether the entries are sitemaps too.

        The entries are `None` if the sitemap is unusable.
        """
        try:
            if not self._is_on_list(httpx.URL(address)):
                return None, False
            with own_errors(str(httpx.URL(address).host)):
                answer, content = self._get(address, {}, MOST_SITEMAP_BYTES)
            if answer.status_code >= 500:
                raise ProviderUnavailable(f"The sitemap at {address} cannot be read at the moment. Try again later.")
            if answer.status_code != 200:
                return None, False
            values = self._answer("sitemap", content).values
            with well_formed():
                entries = [(str(location)[:LONGEST_ADDRESS], str(day)) for location, day in values["entries"]]
                return entries, values["is_index"] is True
        except (_PageMissing, DocumentError, httpx.InvalidURL):
            return None, False

    def _may_be_page(self, address: str) -> bool:
        try:
            return self._website.holds(httpx.URL(address)) and not OTHER_ENDINGS.search(urlsplit(address).path)
        except (httpx.InvalidURL, ValueError):
            return False

    def _is_on_list(self, url: httpx.URL) -> bool:
        return _host_name(url) in self._website.hosts

    def _robots_of(self, url: httpx.URL) -> Protego | None:
        """Return a host's robots.txt, fetched only the first time; `None` if missing. Raises `ProviderUnavailable`."""
        host = url.netloc.decode("ascii")
        if host not in self._robots:
            address = str(url.copy_with(raw_path=b"/robots.txt", fragment=None))
            try:
                with own_errors(f"{url.host}"):
                    answer, content = self._get(address, {}, MOST_HTML_BYTES)
            except _PageMissing:
                answer, content = None, b""
            if answer is not None and answer.status_code >= 500:
                raise ProviderUnavailable(
                    f"At the moment, {url.host} does not say which pages may be read. Try again later."
                )
            is_there = answer is not None and answer.status_code == 200
            text = content[:MOST_ROBOTS_BYTES].decode("utf-8", "replace")
            self._robots[host] = Protego.parse(text) if is_there else None
        return self._robots[host]

    def _is_allowed(self, url: httpx.URL) -> bool:
        robots = self._robots_of(url)
        return robots is None or bool(robots.can_fetch(str(url), AGENT))

    def _require_allowed(self, url: httpx.URL) -> None:
        if not self._is_allowed(url):
            raise InvalidInput(
                f"robots.txt of {url.host} keeps programs from reading {url}. Ask the owner of the website to "
                f"allow {AGENT} there."
            )

    # A page

    def _visit(self, address: str, listed: str) -> tuple[PageState, Callable[[], SourceContent]]:
        """Fetch a page, unless unchanged since the last sync.

        Returns the new state, and a function which loads the content.
        """
        state = self._states.get(address)
        if state is not None and listed and listed == state.listed:
            return state, partial(self._load, address)
        headers = {"If-None-Match": state.etag} if state is not None and state.etag else {}
        if state is not None and state.modified:
            headers["If-Modified-Since"] = state.modified
        with own_errors(str(httpx.URL(address).host)):
            answer, content = self._get(address, headers)
        if answer.status_code == 304 and state is not None:
            return replace(state, listed=listed), partial(self._load, address)
        page, source = self._read(answer, content)
        validators = {
            "etag": answer.headers.get("etag", ""),
            "modified": answer.headers.get("last-modified", ""),
            "listed": listed,
        }
        return replace(page, **validators), lambda: source

    def _unreadable(self, address: str, error: RagError) -> tuple[PageState, Callable[[], SourceContent]]:
        """Return the last state for a page which cannot be fetched now, and a function which raises the error.

        The document stays, and the next sync tries again.
        """

        def load() -> SourceContent:
            raise error

        state = self._states.get(address) or PageState(key=address, hash="")
        return replace(state, hash="", etag="", modified="", listed=""), load

    def _load(self, address: str) -> SourceContent:
        """Fetch an unchanged page's content again, because our stored document is missing."""
        try:
            with own_errors(str(httpx.URL(address).host)):
                return self._read(*self._get(address, {}))[1]
        except _PageMissing as exc:
            raise NotFound("This page is no longer on the website.") from exc

    def _read(self, answer: httpx.Response, content: bytes) -> tuple[PageState, SourceContent]:
        host = str(answer.url.host)
        if answer.status_code in (404, 410):
            raise _PageMissing
        require_success(
            answer,
            host,
            rejected="This page asks for a sign-in, so it cannot be read.",
            forbidden="The website does not show this page to programs.",
            missing="This page is no longer on the website.",
        )
        mime_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        robots_tag = answer.headers.get("x-robots-tag", "").lower()
        final = normal_address(str(answer.url)) or str(answer.url)
        if mime_type in HTML_TYPES:
            return self._read_html(answer.url, final, content, answer.charset_encoding, robots_tag)
        name = unquote(PurePosixPath(answer.url.path).name) or "page"
        if mime_type == "text/plain" and not PurePosixPath(name).suffix:
            name = f"{name}.txt"
        digest = hashlib.sha256(content).hexdigest()
        page = PageState(key=final, hash=digest, title=name)
        if PurePosixPath(name).suffix.lower() not in file_formats().by_ending or "noindex" in robots_tag:
            return replace(page, may_be_read=False), SourceContent(file_name=name, content=b"")
        kind = media_type_of(content, name)
        return page, SourceContent(file_name=name, content=content, mime_type=kind, metadata={"pageUrl": final})

    def _read_html(
        self, url: httpx.URL, final: str, content: bytes, encoding: str | None, robots_tag: str
    ) -> tuple[PageState, SourceContent]:
        if len(content) > MOST_HTML_BYTES:
            raise DocumentError(f"This page is larger than {MOST_HTML_BYTES // 2**20} MB.")
        read = self._answer("web page", content, address=str(url), charset=encoding or "")
        with well_formed():
            values = read.values
            if values["is_empty"]:
                return PageState(key=final, hash="", may_be_read=False), SourceContent(
                    file_name="page.html", content=b""
                )
            robots = f"{values['robots']} {robots_tag}"
            canonical, hrefs = str(values["canonical"]), map(str, values["links"])
            title, language = storable(values["title"])[:300], str(values["language"])[:12]
            main = read.blob.decode()
            links = () if "nofollow" in robots else tuple(islice(filter(self._may_be_page, hrefs), MOST_LINKS))
        key = canonical if canonical and self._may_be_page(canonical) else final
        title = title or unquote(urlsplit(key).path.strip("/")) or str(url.host)
        page_html = _page_of(main, title, language)
        state = PageState(
            key=key,
            hash=hashlib.sha256(page_html).hexdigest() if main else "",
            title=title,
            links=links,
            may_be_read=bool(main) and "noindex" not in robots,
        )
        name = re.sub(r"[^\w.-]+", "-", unquote(urlsplit(key).path)).strip("-") or "index"
        return state, SourceContent(
            file_name=f"{name.removesuffix('.html')[:100]}.html",
            content=page_html,
            mime_type=file_formats().by_kind["html"].media_type,
            title=title,
            metadata={"pageUrl": key},
        )

    def _answer(self, kind: str, content: bytes, **values: Any) -> Reply:
        """Parse content in the sandbox.

        Raises `DocumentError`, and `InvalidInput` if all parsing together took too long.
        """
        if self._reading_seconds > LONGEST_READING_SECONDS:
            raise InvalidInput(TOO_LONG)
        began = time.monotonic()
        try:
            return self._reader.answer(kind, content, **values)
        finally:
            self._reading_seconds += time.monotonic() - began

    # Requests

    def _get(self, address: str, headers: Mapping[str, str], most_bytes: int = 0) -> tuple[httpx.Response, bytes]:
        """Fetch an address after a pause, following allowed redirects. Raises `_PageMissing` or `httpx.HTTPError`."""
        limits = replace(self._limits, maximum_bytes=most_bytes) if most_bytes else self._limits
        for _ in range(MOST_REDIRECTS + 1):
            url = httpx.URL(address)
            self._pause(url)
            request = self._client.build_request("GET", url, headers=dict(headers))
            answer = send_patiently(partial(self._client.send, request, stream=True), wait=self._wait)
            try:
                if answer.next_request is None:
                    return answer, read_within(answer, limits)
                onward = answer.next_request.url
            finally:
                answer.close()
            is_robots = url.path == "/robots.txt"
            if not self._is_on_list(onward) or not (is_robots or self._website.holds(onward) or most_bytes):
                raise _PageMissing
            if not is_robots and not self._is_allowed(onward):
                raise _PageMissing
            address = str(onward)
        raise _PageMissing

    def _pause(self, url: httpx.URL) -> None:
        """Wait before the next request to a host: our minimum delay, or a longer delay in robots.txt."""
        host = url.netloc.decode("ascii")
        robots = self._robots.get(host)
        crawl_delay = float((robots.crawl_delay(AGENT) if robots else None) or 0.0)
        pause = max(0.0 if is_own(url, self._own_hosts) else PAUSE_SECONDS, min(crawl_delay, LONGEST_CRAWL_DELAY))
        remaining = self._requested_at.get(host, -LONGEST_CRAWL_DELAY) + pause - time.monotonic()
        if remaining > 0:
            self._wait(remaining)
        self._requested_at[host] = time.monotonic()


def _page_of(body: str, title: str, language: str) -> bytes:
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title>'
    return f'<!DOCTYPE html><html lang="{html.escape(language)}"><head>{head}</head>{body}</html>'.encode()


def _pages_from(state: Mapping[str, Any]) -> dict[str, PageState]:
    addresses = state.get("addresses") or []
    return {
        address: PageState(**{**page, "links": tuple(addresses[number] for number in page["links"])})
        for address, page in (state.get("pages") or {}).items()
    }


def _state_of(pages: Mapping[str, PageState]) -> dict[str, Any]:
    """Convert page states to JSON. Each linked address is stored a single time, because menus repeat links."""
    numbers: dict[str, int] = {}
    states = {
        address: {**asdict(page), "links": [numbers.setdefault(link, len(numbers)) for link in page.links]}
        for address, page in pages.items()
    }
    return {"addresses": list(numbers), "pages": states}


def source_of(settings: Settings, collection: Collection, source_settings: Mapping[str, Any]) -> WebsiteSource:
    limits = ExtractionLimits.of(settings)
    reader = answers_sandbox_of(limits, WORKER).of_tenant(collection.tenant_id)
    own_hosts = settings.own_sync_hosts
    return WebsiteSource(
        Website.of(source_settings), limits, reader, own_hosts=own_hosts, state=source_settings.get("state")
    )
