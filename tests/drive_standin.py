"""A stand-in of Google's sign-in for service accounts and of the Drive API: files, changes, exports, permissions."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.tls_standin import JsonHandler, TlsServer

ROOT = "root-folder-1"
FOLDER = "application/vnd.google-apps.folder"
DOCUMENT = "application/vnd.google-apps.document"
PER_PAGE = 2


class DriveStandin(TlsServer):
    """`read` has the names of fetched files, `asked` the paths, `acted_as` whom tokens were made for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Handler, folder)
        self.files: dict[str, dict[str, Any]] = {ROOT: {"id": ROOT, "name": "HR", "mimeType": FOLDER, "parents": []}}
        self.contents: dict[str, bytes] = {}
        self.permissions: dict[str, list[dict[str, Any]]] = {}
        self.changes: list[dict[str, Any]] = []
        self.read: list[str] = []
        self.asked: list[str] = []
        self.acted_as: list[str] = []
        self.has_forgotten = False
        self.is_limited = False
        self._private = self.new_pair()

    @staticmethod
    def new_pair() -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def key(self) -> str:
        return self.key_of(self._private)

    def key_of(self, pair: rsa.RSAPrivateKey) -> str:
        """The key of the service account, as the file that Google makes."""
        private = pair.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return json.dumps({
            "type": "service_account", "project_id": "hr", "private_key_id": "1", "private_key": private.decode(),
            "client_email": "reader@hr.iam.gserviceaccount.com", "client_id": "7",
            "token_uri": f"https://{self.host}/token",
        })  # fmt: skip

    def put(self, key: str, name: str, content: bytes = b"", *, above: str = ROOT, mime: str = "text/markdown") -> None:
        """Put a file or a folder, changed now."""
        known = {"id": key, "name": name, "mimeType": mime, "parents": [above]}
        known["modifiedTime"] = f"2026-01-05T10:00:{len(self.changes):02d}.000Z"
        known["webViewLink"] = f"https://drive.google.com/file/d/{key}/view"
        if not mime.startswith("application/vnd.google-apps."):
            known |= {"md5Checksum": hashlib.md5(content, usedforsecurity=False).hexdigest(), "size": str(len(content))}
        self.files[key] = known
        self.contents[key] = content
        self.changes.append({"fileId": key, "removed": False, "file": known})

    def remove(self, key: str) -> None:
        del self.files[key]
        self.changes.append({"fileId": key, "removed": True})

    def token_for(self, assertion: str, audience: str) -> bool:
        try:
            claims = jwt.decode(assertion, self._private.public_key(), algorithms=["RS256"], audience=audience)
        except jwt.InvalidTokenError:
            return False
        self.acted_as.append(str(claims.get("sub", claims["iss"])))
        return str(claims["scope"]).endswith("/drive.readonly")


class Handler(JsonHandler):
    server: DriveStandin

    def do_POST(self) -> None:
        form = parse_qs(self.body().decode())
        is_right = self.server.token_for(form.get("assertion", [""])[0], "https://oauth2.googleapis.com/token")
        if self.path == "/token" and is_right:
            self.send({"access_token": "good", "token_type": "Bearer", "expires_in": 3600})
        else:
            self.send({"error": "invalid_grant", "error_description": "Invalid JWT Signature."}, 400)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path, query = unquote(parts.path).removeprefix("/drive/v3"), parse_qs(parts.query)
        if self.headers.get("authorization") != "Bearer good":
            self.send({"error": {"code": 401}}, 401)
            return
        self.server.asked.append(path)
        if self.server.is_limited:
            self.send({"error": {"code": 403, "errors": [{"reason": "userRateLimitExceeded"}]}}, 403)
            return
        skip = int(query.get("pageToken", ["0"])[0]) if path != "/changes" else 0
        if path == "/changes/startPageToken":
            self.send({"startPageToken": str(1 + len(self.server.changes))})
        elif path == "/changes":
            self._changes(int(query["pageToken"][0]))
        elif path == "/files":
            above = re.match(r"'([^']+)' in parents", query["q"][0])
            found = [f for f in self.server.files.values() if above and above[1] in f["parents"]]
            self._page("files", found, skip)
        elif match := re.fullmatch(r"/files/([^/]+)/permissions", path):
            self._page(
                "permissions", self.server.permissions.get(match[1], self.server.permissions.get(ROOT, [])), skip
            )
        elif (match := re.fullmatch(r"/files/([^/]+)(/export)?", path)) and match[1] in self.server.files:
            known = self.server.files[match[1]]
            if match[2] or query.get("alt") == ["media"]:
                self.server.read.append(known["name"])
                self.send(self.server.contents[match[1]])
            else:
                self.send(known)
        else:
            self.send({"error": {"code": 404}}, 404)

    def _page(self, name: str, found: list[dict[str, Any]], skip: int) -> None:
        page: dict[str, Any] = {name: found[skip : skip + PER_PAGE]}
        if skip + PER_PAGE < len(found):
            page["nextPageToken"] = str(skip + PER_PAGE)
        self.send(page)

    def _changes(self, since: int) -> None:
        if self.server.has_forgotten:
            self.send({"error": {"code": 400, "message": "Invalid Value"}}, 400)
            return
        found = self.server.changes[since - 1 :]
        page: dict[str, Any] = {"changes": found[:PER_PAGE]}
        if len(found) > PER_PAGE:
            page["nextPageToken"] = str(since + PER_PAGE)
        else:
            page["newStartPageToken"] = str(1 + len(self.server.changes))
        self.send(page)
