"""A sign-in service that says what a test tells it to: for the tokens no honest provider sends."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.standins.local_server import LocalServer, QuietHandler


class OidcStandin:
    """`claims` go into the next token; `answers` replace what a path answers, as (status, body)."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        self.claims: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.forms: list[dict[str, list[str]]] = []
        self.id_token = ""
        standin = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                status, content = standin.answers.get(self.path, (200, b""))
                if not content and status == 200:
                    content = json.dumps(standin.right_answer(self.path)).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                standin.forms.append(parse_qs(body))
                self.do_GET()

        self._server = LocalServer(Handler)
        self.issuer = self._server.url

    def __enter__(self) -> OidcStandin:
        self._server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.__exit__()

    def sign(self, claims: dict[str, Any], key: Any = None, algorithm: str = "RS256") -> str:
        return jwt.encode({"alg": algorithm, "kid": self.key.kid}, claims, key or self.key, algorithms=[algorithm])

    def person(self, nonce: str, /, **changes: Any) -> dict[str, Any]:
        """The claims of an honest token for client `hr`."""
        now = int(time.time())
        return {
            "iss": self.issuer, "sub": "person-1", "aud": "hr", "exp": now + 300, "iat": now, "nonce": nonce,
            "email": "person@example.com", "email_verified": True, "name": "A Person", **changes,
        }  # fmt: skip

    def right_answer(self, path: str) -> dict[str, Any]:
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.issuer, "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token", "jwks_uri": f"{self.issuer}/keys",
                "userinfo_endpoint": f"{self.issuer}/userinfo",
            }  # fmt: skip
        if path == "/keys":
            return {"keys": [self.key.as_dict(private=False)]}
        if path == "/userinfo":
            return self.userinfo
        return {
            "access_token": "access", "token_type": "Bearer", "expires_in": 300,
            "id_token": self.id_token or self.sign(self.claims),
        }  # fmt: skip
