"""Download small attachments, only from addresses allowed in the settings.

The addresses are in a table written by other people. Without this restriction, an address could name a machine which
only this server can reach. Host names in a private network are refused too, unless the settings list the address.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from rag.errors import InvalidInput, ProviderUnavailable
from rag.ingestion.loaders.attachments import KINDS
from rag.profiles.notices.posts import PostAttachment

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 20.0
#: Of a whole attachment.
LONGEST_SECONDS, MOST_BYTES = 300.0, 2**30


class AttachmentFiles:
    """Downloads attachments. `allowed` lists the permitted address prefixes, for example for a Storage bucket."""

    def __init__(self, allowed: tuple[str, ...] = (), *, transport: httpx.BaseTransport | None = None) -> None:
        self._allowed = allowed
        self._transport = transport
        self._client: httpx.Client | None = None

    def with_content(self, attachment: PostAttachment, *, maximum_bytes: int) -> PostAttachment:
        """Return the attachment, with its content if a model can describe this format and the size is allowed.

        Raises `ProviderUnavailable` if the server does not respond.
        """
        is_readable = KINDS.get(attachment.ending) in ("image", "document")
        if attachment.content is not None:
            keeps = is_readable and len(attachment.content) <= maximum_bytes
            return attachment if keeps else replace(attachment, content=None)
        if not is_readable or attachment.size > maximum_bytes or attachment.description:
            return attachment
        address = self.allowed_address(attachment.url)
        content = self._fetch(address, maximum_bytes) if address else None
        return replace(attachment, content=content, size=len(content)) if content else attachment

    def allowed_address(self, url: str) -> str:
        """Return the absolute address to download, or "" if refused. Relative addresses start at the first prefix."""
        if not url or not self._allowed:
            return ""
        try:
            address = urljoin(self._allowed[0].rstrip("/") + "/", url)
            requested = urlsplit(address)
            is_allowed = any(
                _begins(requested.scheme, requested.netloc, requested.path, prefix) for prefix in self._allowed
            )
        except ValueError:
            return ""
        return address if is_allowed and not _leads_upwards(requested.path) else ""

    def _fetch(self, address: str, maximum_bytes: int) -> bytes | None:
        """Download a file. Returns `None` if missing, refused or too large. Raises `ProviderUnavailable`."""
        import httpx  # imported here, because few processes fetch attachments

        try:
            # Follow no redirect: it could leave the allowed addresses.
            with self._http().stream("GET", address, follow_redirects=False) as answer:
                if answer.status_code >= 500 or answer.status_code == 429:
                    raise ProviderUnavailable("An attachment cannot be fetched at the moment. It is tried again later.")
                if answer.status_code != 200:
                    return None
                parts, size = [], 0
                for part in answer.iter_bytes():
                    size += len(part)
                    if size > maximum_bytes:
                        return None
                    parts.append(part)
                return b"".join(parts)
        except InvalidInput:
            return None  # an allowed name inside a private network
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
            raise ProviderUnavailable(
                "An attachment cannot be fetched at the moment. It is tried again later."
            ) from exc

    def _http(self) -> httpx.Client:
        if self._client is None:
            import httpx

            from rag.providers.bounds import Bounds, bound
            from rag.providers.outward import OutwardTransport

            client = httpx.Client(timeout=TIMEOUT_SECONDS, transport=self._transport or OutwardTransport())
            # Each attachment has a separate limit.
            self._client = bound(client, Bounds(most_bytes=MOST_BYTES, longest_seconds=LONGEST_SECONDS))
        return self._client


def _leads_upwards(path: str) -> bool:
    return ".." in unquote(path).replace("\\", "/").split("/")


def _begins(scheme: str, netloc: str, path: str, prefix: str) -> bool:
    allowed = urlsplit(prefix)
    folder = allowed.path.rstrip("/") + "/"
    is_same_host = (scheme, netloc.lower()) == (allowed.scheme, allowed.netloc.lower())
    return scheme in ("http", "https") and is_same_host and (path or "/").startswith(folder)
