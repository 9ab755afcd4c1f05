"""A stand-in for S3-compatible storage over real HTTP: one bucket, listed in pages of two, and one pair of keys."""

from __future__ import annotations

import hashlib
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.standins.local_server import LocalServer, QuietHandler

ACCESS_KEY, SECRET_KEY = "reader", "hunter2-hunter2"
PER_PAGE = 2


class BucketStandin(LocalServer):
    """Answers like S3; `read` has the names of the downloaded files in order."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.files: dict[str, bytes] = {}
        self.read: list[str] = []


class Handler(QuietHandler):
    server: BucketStandin

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        bucket, _, name = unquote(parts.path).lstrip("/").partition("/")
        if f"Credential={ACCESS_KEY}/" not in (self.headers.get("authorization") or ""):
            self._fail(403, "InvalidAccessKeyId")
        elif bucket != "papers":
            self._fail(404, "NoSuchBucket")
        elif name in self.server.files:
            self.server.read.append(name)
            self._send(200, self.server.files[name])
        elif name:
            self._fail(404, "NoSuchKey")
        else:
            self._list(query.get("prefix", [""])[0], query.get("continuation-token", [""])[0])

    def _list(self, prefix: str, after: str) -> None:
        names = [name for name in sorted(self.server.files) if name.startswith(prefix) and name > after]
        page, is_cut = names[:PER_PAGE], len(names) > PER_PAGE
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if is_cut else ""
        contents = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>2026-01-05T10:00:00.000Z</LastModified>"
            f"<ETag>&quot;{hashlib.md5(self.server.files[name], usedforsecurity=False).hexdigest()}&quot;</ETag>"
            f"<Size>{len(self.server.files[name])}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            for name in page
        )
        text = (
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>papers</Name>'
            f"<Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount><MaxKeys>1000</MaxKeys>"
            f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>{more}{contents}</ListBucketResult>"
        )
        self._send(200, text.encode(), "application/xml")

    def _fail(self, status: int, code: str) -> None:
        text = (
            f"<Error><Code>{code}</Code><Message>{code}</Message><Resource>/</Resource><RequestId>1</RequestId></Error>"
        )
        self._send(status, text.encode(), "application/xml")

    def _send(self, status: int, body: bytes, kind: str = "application/octet-stream") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
