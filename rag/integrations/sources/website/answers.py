"""Parse a website's pages and sitemaps in the sandbox.

A hostile page with 348 kB can keep a parser busy for 15 seconds. Each function takes bytes and JSON values, and returns
JSON values and bytes. Malformed input may raise any error.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import trafilatura
from lxml import etree

from rag.errors import FileEmpty
from rag.ingestion.loaders.decoding import decode
from rag.ingestion.loaders.html import parsed
from rag.ingestion.loaders.sandbox_tasks import ServerAnswer, serve_answers
from rag.integrations.sources.website.addresses import (
    LONGEST_ADDRESS,
    MOST_LINKS,
    MOST_SITEMAP_BYTES,
    OTHER_ENDINGS,
    joined_address,
    normal_address,
)

#: The limit for a file from sitemaps.org.
MOST_ENTRIES = 50_000


def read_web_page(content: bytes, *, address: str, charset: str) -> ServerAnswer:
    """Return a page's properties and links, with absolute addresses, and the main text in HTML.

    `is_empty` tells whether the page has no markup at all.
    """
    try:
        source = content.decode(charset) if charset else decode(content)[0]
    except (LookupError, UnicodeDecodeError):
        source, _ = decode(content)
    try:
        tree, _ = parsed(source)
    except FileEmpty:
        return {"is_empty": True}, b""
    url = httpx.URL(address)
    main = trafilatura.extract(
        source, url=address, output_format="html", favor_recall=True, include_tables=True, include_links=True,
        include_formatting=True, include_comments=False, with_metadata=False,
    )  # fmt: skip
    canonical = [str(href) for href in tree.xpath("//link[@rel='canonical']/@href")[:1]]
    robots = " ".join(tree.xpath("//meta[translate(@name,'ROBTS','robts')='robots']/@content")[:100])[:LONGEST_ADDRESS]
    values = {
        "is_empty": False,
        "robots": robots.lower(),
        "canonical": normal_address(joined_address(url, canonical[0])) if canonical else "",
        "title": " ".join((tree.findtext(".//title") or tree.findtext(".//h1") or "").split())[:300],
        "language": re.sub(r"[^A-Za-z-]", "", tree.get("lang") or "")[:12],
        "links": list(_links(tree, url)),
    }
    return values, _body_of(main).encode() if main else b""


def _links(tree: Any, url: httpx.URL) -> Iterator[str]:
    bases = tree.xpath("//base/@href")
    base = httpx.URL(joined_address(url, str(bases[0])) or str(url)) if bases else url
    addresses: set[str] = set()
    for anchor in tree.xpath("//a[@href]")[: 5 * MOST_LINKS]:
        if "nofollow" in (anchor.get("rel") or "").lower().split():
            continue
        address = normal_address(joined_address(base, anchor.get("href").strip()))
        if address and address not in addresses and not OTHER_ENDINGS.search(urlsplit(address).path):
            addresses.add(address)
            yield address


def _body_of(main: str) -> str:
    match = re.search(r"<body>.*</body>", main, re.DOTALL)
    return match[0] if match else f"<body>{main}</body>"


def read_sitemap(content: bytes) -> ServerAnswer:
    """Return a sitemap's addresses with dates, and whether the addresses lead to further sitemaps (sitemaps.org)."""
    if content.startswith(b"\x1f\x8b"):
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            content = packed.read(MOST_SITEMAP_BYTES)
    # No address is fetched and no entity is replaced.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    root = etree.fromstring(content, parser)
    kind = etree.QName(root).localname
    if kind not in ("urlset", "sitemapindex"):
        raise ValueError("This is no sitemap.")
    entries = []
    for entry in root.iterchildren(tag=etree.Element):
        values = {
            etree.QName(part).localname: (part.text or "").strip() for part in entry.iterchildren(tag=etree.Element)
        }
        if address := normal_address(values.get("loc", "")):
            entries.append((address, values.get("lastmod", "")[:40]))
        if len(entries) == MOST_ENTRIES:
            break
    return {"entries": entries, "is_index": kind == "sitemapindex"}, b""


def load_libraries() -> None:
    """Parse small pages, to load all libraries before the sandbox forbids opening files."""
    text = "".join(f"<p>{'A page with some words of text. ' * number}</p>" for number in range(1, 5))
    read_web_page(f"<html><body><div>{text}</div></body></html>".encode(), address="https://example.com/", charset="")
    read_web_page(b"<html><body><p>Short.</p></body></html>", address="https://example.com/", charset="")


if __name__ == "__main__":
    serve_answers({"web page": read_web_page, "sitemap": read_sitemap}, load_libraries)
