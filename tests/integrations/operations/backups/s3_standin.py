"""A stand-in of an S3-compatible storage: objects of one bucket in memory, each request's signature checked."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from minio.credentials.credentials import Credentials
from minio.signer import sign_v4_s3

from tests.standins.local_server import LocalServer, QuietHandler

ACCESS, SECRET, REGION = "standin", "standin-secret", "us-east-1"


class S3Standin:
    """Serves `bucket` at `url`; `objects` holds what is stored, by key."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.objects: dict[str, bytes] = {}
        standin = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_act(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                parts = urlsplit(self.path)
                bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
                if not standin.is_signed(self.command, self.path, dict(self.headers.items())):
                    self.refuse(403, "SignatureDoesNotMatch", "The signature does not match.")
                elif bucket != standin.bucket:
                    self.refuse(404, "NoSuchBucket", "The specified bucket does not exist")
                elif self.command == "GET" and not key:
                    self.answer(200, standin.listing(parse_qs(parts.query).get("prefix", [""])[0]))
                elif self.command == "PUT":
                    standin.objects[key] = body
                    self.answer(200, b"", etag=hashlib.md5(body).hexdigest())
                elif self.command == "DELETE":
                    standin.objects.pop(key, None)
                    self.answer(204, b"")
                elif key not in standin.objects:
                    self.refuse(404, "NoSuchKey", "The specified key does not exist.")
                else:
                    content = standin.objects[key]
                    self.answer(200, content, etag=hashlib.md5(content).hexdigest())

            do_GET = do_PUT = do_DELETE = do_HEAD = handle_one_act

            def answer(self, status: int, content: bytes, *, etag: str = "") -> None:
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.send_header("last-modified", format_datetime(datetime.now(UTC), usegmt=True))
                if etag:
                    self.send_header("etag", f'"{etag}"')
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            def refuse(self, status: int, code: str, message: str) -> None:
                text = f"<Error><Code>{code}</Code><Message>{message}</Message><Resource>/</Resource></Error>"
                self.answer(status, text.encode())

        self._server = LocalServer(Handler)
        self.url = self._server.url

    def is_signed(self, method: str, path: str, headers: dict[str, str]) -> bool:
        """Return whether the request carries the signature that its headers ask for."""
        given = {name.lower(): value for name, value in headers.items()}
        when = datetime.strptime(given["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        signed = given["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
        wanted = sign_v4_s3(
            method=method,
            url=urlsplit(self.url + path),
            region=REGION,
            headers={name: given[name] for name in signed},
            credentials=Credentials(ACCESS, SECRET),
            content_sha256=given["x-amz-content-sha256"],
            date=when,
        )
        return bool(wanted["Authorization"] == given["authorization"])

    def listing(self, prefix: str) -> bytes:
        """Return what is stored under a prefix, as S3 lists it."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{now}</LastModified><ETag>x</ETag>"
            f"<Size>{len(content)}</Size></Contents>"
            for key, content in sorted(self.objects.items())
            if key.startswith(prefix)
        )
        about = f"<Name>{self.bucket}</Name><IsTruncated>false</IsTruncated>"
        return f"<ListBucketResult>{about}{found}</ListBucketResult>".encode()

    def __enter__(self) -> S3Standin:
        self._server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.__exit__()
