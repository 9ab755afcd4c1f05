"""Join and normalise addresses on websites."""

from __future__ import annotations

import re

import httpx
from courlan import normalize_url

#: A longer address never leads to a document.
LONGEST_ADDRESS = 2000
#: The most links on a page, and the most bytes in an unpacked sitemap.
MOST_LINKS, MOST_SITEMAP_BYTES = 2000, 50 * 2**20
#: Addresses with these endings are never pages or documents and are not fetched.
OTHER_ENDINGS = re.compile(
    r"\.(?:jpe?g|png|gif|svg|webp|ico|css|js|mjs|json|woff2?|ttf|eot|mp[34]|m4[av]|webm|avi|mov|wav|zip|gz|tgz|rar|7z|exe"
    r"|dmg|apk|iso|bin|ics|rss|atom)$",
    re.IGNORECASE,
)


def joined_address(base: httpx.URL, address: str) -> str:
    """Return a link's absolute address; "" if invalid."""
    try:
        return str(base.join(address)) if len(address) <= LONGEST_ADDRESS else ""
    except (httpx.InvalidURL, ValueError, TypeError):
        return ""


def normal_address(address: str) -> str:
    """Normalise an address: remove fragment and tracking parameters, sort the other parameters.

    Returns "" if invalid.
    """
    if len(address) > LONGEST_ADDRESS:
        return ""
    try:
        return str(httpx.URL(normalize_url(str(httpx.URL(address).copy_with(fragment=None)))))
    except (httpx.InvalidURL, ValueError, TypeError):
        return ""
