"""A stand-in for a website over real HTTP: pages with ETags, robots.txt, a sitemap and redirects."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from tests.standins.local_server import LocalServer, QuietHandler


@dataclass
class Page:
    """The answer at an address."""

    body: bytes = b""
    status: int = 200
    kind: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)


class WebsiteStandin(LocalServer):
    """Serves `pages` by path. `asked` has the requested paths in order, `answered` each path with its status."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.pages: dict[str, Page] = {}
        self.answered: list[tuple[str, int]] = []

    def write(self, path: str, title: str, text: str, *links: str, head: str = "") -> None:
        """Put a page with a menu, its text and a footer at a path."""
        menu = "".join(f'<a href="{link}">{link}</a> ' for link in links)
        self.pages[path] = Page(
            f'<html lang="en"><head><title>{title}</title>{head}</head><body><nav>{menu}</nav><main><h1>{title}</h1>'
            f"<p>{text}</p></main><footer>Imprint and cookies</footer></body></html>".encode()
        )

    @property
    def fetched(self) -> list[str]:
        """Return the paths of the pages whose text was sent."""
        return [path for path, status in self.answered if status == 200 and path.count("robots.txt") == 0]


class Handler(QuietHandler):
    server: WebsiteStandin

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path, Page(b"gone", 404))
        etag = f'"{hashlib.md5(page.body, usedforsecurity=False).hexdigest()}"'
        status = 304 if page.status == 200 and self.headers.get("if-none-match") == etag else page.status
        self.server.answered.append((self.path, status))
        self.send_response(status)
        body = b"" if status == 304 else page.body
        headers = {"Content-Type": page.kind, "ETag": etag, "Content-Length": str(len(body)), **page.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_PROPFIND = do_GET
