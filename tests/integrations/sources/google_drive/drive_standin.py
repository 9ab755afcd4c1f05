"""A stand-in of Google's sign-in, for service accounts and people, and of the Drive API."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.standins.tls import JsonHandler, TlsServer

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
        #: The types that documents of Google were asked for.
        self.exported: list[str] = []
        self.acted_as: list[str] = []
        #: People who signed in, by the code that the browser takes back; then by the refresh token.
        self.asked_people: dict[str, dict[str, str]] = {}
        self.people: dict[str, str] = {}
        self.granted = "https://www.googleapis.com/auth/drive.readonly"
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

    def person_allows(self, address: str, email: str) -> str:
        """Sign a person in at the address that their browser was sent to; where it is sent back to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["access_type"] == "offline"
        code = secrets.token_urlsafe(8)
        self.asked_people[code] = {**asked, "email": email}
        return f"{asked['redirect_uri']}?state={asked['state']}&code={code}"

    def exchange(self, form: dict[str, str]) -> dict[str, Any] | None:
        """Give a person's tokens for a code and its verifier, once; None for anything else."""
        asked = self.asked_people.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if asked is None or base64.urlsafe_b64encode(digest).decode().rstrip("=") != asked["code_challenge"]:
            return None
        if form["redirect_uri"] != asked["redirect_uri"]:
            return None
        token = secrets.token_urlsafe(8)
        self.people[token] = asked["email"]
        return {"access_token": "good", "refresh_token": token, "scope": self.granted, "expires_in": 3600}

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
        form = {name: values[0] for name, values in parse_qs(self.body().decode()).items()}
        given: dict[str, Any] | None = {"access_token": "good", "expires_in": 3600}
        if form.get("grant_type") == "authorization_code":
            given = self.server.exchange(form)
        elif form.get("grant_type") == "refresh_token":
            self.server.acted_as.append(self.server.people.get(form["refresh_token"], ""))
            given = given if form["refresh_token"] in self.server.people else None
        elif not self.server.token_for(form.get("assertion", ""), "https://oauth2.googleapis.com/token"):
            given = None
        if self.path == "/token" and given is not None:
            self.send({"token_type": "Bearer", **given})
        else:
            self.send({"error": "invalid_grant", "error_description": "Invalid JWT Signature."}, 400)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path, query = unquote(parts.path).removeprefix("/drive/v3"), parse_qs(parts.query)
        if path == "/auth":  # a person who allows whatever is asked
            self.send({}, 302, {"Location": self.server.person_allows(self.path, "hr@example.com")})
            return
        if self.headers.get("authorization") != "Bearer good":
            self.send({"error": {"code": 401}}, 401)
            return
        self.server.asked.append(path)
        if self.server.is_limited:
            self.send({"error": {"code": 403, "errors": [{"reason": "userRateLimitExceeded"}]}}, 403)
            return
        skip = int(query.get("pageToken", ["0"])[0]) if path != "/changes" else 0
        if path == "/about":
            self.send({"user": {"emailAddress": list(self.server.people.values())[-1]}})
        elif path == "/changes/startPageToken":
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
                self.server.exported.extend(query.get("mimeType", ()))
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
