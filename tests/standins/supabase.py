"""A stand-in for a Supabase project over real HTTP, for the real `supabase` client without a network.

Auth signs its tokens with its own key (ES256, published as JWKS; HS256 for projects with the legacy secret). Storage
answers 400 with the real status in the body, as Supabase does. An RPC runs on a real Postgres as in PostgREST. Faults
can be requested: `fail(path, …)`.
"""

from __future__ import annotations

import csv
import json
import re
import secrets
import select
import socket
import struct
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

import jwt
import psycopg
from cryptography.hazmat.primitives.asymmetric import ec
from psycopg import sql

from tests.patience import patient
from tests.standins.local_server import LocalServer, QuietHandler

ANON, SERVICE = "anon-key-of-the-project", "service-key-of-the-project"
API_VERSION = "2024-01-01"
#: Characters allowed in a Storage key: no Hangul, umlauts or emoji.
KEY = re.compile(r"[\w/!.\-*'() &$@=;:+,?]+", re.ASCII)


@dataclass
class Fault:
    """A fault in answers to a path. `kind` is a status (with a body), "timeout", "reset" or "garbage"."""

    path: str
    kind: int | str
    body: dict[str, Any]
    times: int


@dataclass
class SupabaseStandin:
    """A Supabase project. Its access tokens last `seconds`; with `is_legacy` it signs with the shared secret."""

    seconds: int = 3600
    is_legacy: bool = False
    #: Connection string for RPC calls, with the role `authenticator`.
    database: str = ""
    #: The most rows in an answer.
    most_rows: int = 1000
    users: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Person and session by refresh token.
    refresh_tokens: dict[str, tuple[str, str]] = field(default_factory=dict)
    buckets: dict[str, dict[str, Any]] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    #: By the start of a path: a barrier at which requests wait for each other.
    meetings: dict[str, threading.Barrier] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    #: By address: the target of the link in the last e-mail, and the link's part after "#".
    mails: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: Path and `authorization` header of every request.
    bearers: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.secret = secrets.token_hex(32)
        self.lock = threading.Lock()
        standin = self

        class Handler(_Handler):
            project = standin

        self._server = LocalServer(Handler)
        self.url = self._server.url

    def __enter__(self) -> SupabaseStandin:
        self._server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.__exit__()

    def fail(self, path: str, kind: int | str, body: dict[str, Any] | None = None, *, times: int = 1) -> None:
        """Make the next requests fail whose path, or method and path, starts with `path`.

        Auth's 4xx are {"code", "message"}.
        """
        self.faults.append(Fault(path, kind, body or {}, times))

    def meet(self, path: str, count: int, *, timeout_seconds: float = 20.0) -> threading.Barrier:
        """Answer requests whose path starts with `path` only when `count` wait together; the barrier breaks if they are
        late.
        """
        barrier = self.meetings[path] = threading.Barrier(count, timeout=patient(timeout_seconds))
        return barrier

    def add_user(self, email: str, password: str, **app_metadata: Any) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat()
        user: dict[str, Any] = {
            "id": str(uuid4()), "aud": "authenticated", "role": "authenticated", "email": email,
            "app_metadata": {"provider": "email", **app_metadata}, "user_metadata": {}, "created_at": now,
            "email_confirmed_at": now, "identities": [], "password": password, "ban_duration": "none",
        }  # fmt: skip
        self.users[user["id"]] = user
        return user

    def token(self, user: dict[str, Any], **changes: Any) -> str:
        """Return an access token as Auth issues it."""
        now = int(time.time())
        claims = {
            "iss": f"{self.url}/auth/v1", "sub": user["id"], "aud": "authenticated", "exp": now + self.seconds,
            "iat": now, "email": user["email"], "app_metadata": user["app_metadata"], "user_metadata": {},
            "role": "authenticated", "session_id": str(uuid4()), "aal": "aal1", "is_anonymous": False,
        } | changes  # fmt: skip
        if self.is_legacy:
            return jwt.encode(claims, self.secret, algorithm="HS256")
        return jwt.encode(claims, self.key, algorithm="ES256", headers={"kid": "one"})

    def verified(self, token: str) -> dict[str, Any]:
        """Return the claims of a token issued here. Raises `jwt.PyJWTError`."""
        key = self.secret if self.is_legacy else self.key.public_key()
        return dict(
            jwt.decode(token, key, algorithms=["HS256" if self.is_legacy else "ES256"], audience="authenticated")
        )


class AuthTrouble(Exception):
    def __init__(self, status: int, code: str, **more: Any) -> None:
        super().__init__(code)
        self.status, self.body = status, {"code": code, "message": code.replace("_", " "), **more}


class StorageTrouble(Exception):
    def __init__(self, status: int, error: str, message: str) -> None:
        super().__init__(message)
        self.body = {"statusCode": str(status), "error": error, "message": message}


class _Handler(QuietHandler):
    project: SupabaseStandin
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def _answer(self) -> None:
        address = urlsplit(self.path)
        self.path_only, self.query = unquote(address.path), parse_qs(address.query)
        self.raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.more_headers: dict[str, str] = {}
        self.bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        for path, barrier in self.project.meetings.items():
            if self.path_only.startswith(path):
                with suppress(threading.BrokenBarrierError):
                    barrier.wait()
        with self.project.lock:
            self.project.calls[f"{self.command} {self.path_only}"] += 1
            self.project.bearers.append((self.path_only, self.bearer))
            if self._goes_wrong():
                return
            try:
                status, body = self._right_answer()
            except AuthTrouble as exc:
                headers = {"x-supabase-api-version": API_VERSION, "x-sb-error-code": exc.body["code"]}
                self._send(exc.status, exc.body, headers)
                return
            except StorageTrouble as exc:
                self._send(400, exc.body)
                return
        self._send(status, body, self.more_headers)

    def _goes_wrong(self) -> bool:
        for fault in self.project.faults:
            if fault.times > 0 and f"{self.command} {self.path_only}".startswith(
                (fault.path, f"{self.command} {fault.path}")
            ):
                fault.times -= 1
                if fault.kind == "timeout":
                    self.project.lock.release()
                    select.select([self.connection], [], [], patient(60))  # until the caller hangs up
                    self.project.lock.acquire()
                    self.close_connection = True
                elif fault.kind == "reset":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                    self.close_connection = True
                elif fault.kind == "garbage":
                    self._send(200, {"surprise": True})
                else:
                    headers = {"x-supabase-api-version": API_VERSION} if "code" in fault.body else {}
                    self._send(int(fault.kind), fault.body, headers)
                return True
        return False

    def _send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header(
                "content-type", "application/octet-stream" if isinstance(body, bytes) else "application/json"
            )
            self.send_header("content-length", str(len(content)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            self.close_connection = True

    def _right_answer(self) -> tuple[int, Any]:
        path = self.path_only
        if self.headers.get("apikey") not in (ANON, SERVICE):
            raise AuthTrouble(401, "no_authorization")
        if path.startswith("/auth/v1/"):
            return self._auth(path.removeprefix("/auth/v1/"))
        if path.startswith("/storage/v1/"):
            return self._storage(path.removeprefix("/storage/v1/"))
        if path.startswith("/rest/v1/rpc/"):
            return self._rpc(path.removeprefix("/rest/v1/rpc/"))
        return self._table(path.removeprefix("/rest/v1/"))

    # Auth

    def _auth(self, path: str) -> tuple[int, Any]:
        body = json.loads(self.raw or b"{}")
        if path == ".well-known/jwks.json":
            key = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.project.key.public_key()))
            return 200, {
                "keys": [] if self.project.is_legacy else [{**key, "kid": "one", "alg": "ES256", "use": "sig"}]
            }
        if path == "token" and self.query["grant_type"] == ["password"]:
            for user in self.project.users.values():
                if user["email"] == body["email"] and user["password"] == body["password"]:
                    return 200, self._session(user)
            raise AuthTrouble(400, "invalid_credentials")
        if path == "token":
            user_id, session_id = self.project.refresh_tokens.pop(body["refresh_token"], ("", ""))
            if user_id not in self.project.users:
                raise AuthTrouble(400, "refresh_token_not_found")
            return 200, self._session(self.project.users[user_id], session_id)
        if path == "recover":
            asking = next((user for user in self.project.users.values() if user["email"] == body["email"]), None)
            if asking is not None:  # The same answer for everybody else.
                session = self._session(asking)
                tokens = f"access_token={session['access_token']}&refresh_token={session['refresh_token']}"
                self.project.mails[asking["email"]] = self.query["redirect_to"][0], f"{tokens}&type=recovery"
            return 200, {}
        if path == "logout":
            user = self._user()
            self._forget(user["id"])
            return 204, None
        if path == "user":
            user = self._user()
            if self.command == "PUT":
                if body["password"] == user["password"]:
                    raise AuthTrouble(422, "same_password")
                self._set_password(user, body["password"], self.project.verified(self.bearer)["session_id"])
            return 200, _shown(user)
        if self.bearer != SERVICE:
            raise AuthTrouble(403, "not_admin")
        return self._admin(path, body)

    def _admin(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if path == "admin/users" and self.command == "GET":
            first, size = int(self.query["page"][0]) - 1, int(self.query["per_page"][0])
            users = list(self.project.users.values())[first * size : (first + 1) * size]
            return 200, {"users": [_shown(user) for user in users], "aud": "authenticated"}
        if path == "admin/users":
            if any(user["email"] == body["email"] for user in self.project.users.values()):
                raise AuthTrouble(422, "email_exists")
            user = self.project.add_user(body["email"], "", **body["app_metadata"])
            self._set_password(user, body["password"])
            return 200, _shown(user)
        managed = self.project.users.get(path.removeprefix("admin/users/"))
        if managed is None:
            raise AuthTrouble(404, "user_not_found")
        managed["app_metadata"].update(body.get("app_metadata", {}))
        managed["ban_duration"] = body.get("ban_duration", managed["ban_duration"])
        if "password" in body:
            self._set_password(managed, body["password"])
        return 200, _shown(managed)

    def _set_password(self, user: dict[str, Any], password: str, keep_session_id: str = "") -> None:
        if len(password) < 6:
            raise AuthTrouble(422, "weak_password", weak_password={"reasons": ["length"]})
        user["password"] = password
        # A change of password keeps the session which makes it, and ends the person's other sessions.
        self._forget(user["id"], keep_session_id)

    def _forget(self, user_id: str, keep_session_id: str = "") -> None:
        for token, (owner, session_id) in list(self.project.refresh_tokens.items()):
            if owner == user_id and session_id != keep_session_id:
                del self.project.refresh_tokens[token]

    def _session(self, user: dict[str, Any], session_id: str = "") -> dict[str, Any]:
        if user["ban_duration"] != "none":
            raise AuthTrouble(400, "user_banned")
        token, session_id = secrets.token_urlsafe(12), session_id or str(uuid4())
        self.project.refresh_tokens[token] = user["id"], session_id
        return {
            "access_token": self.project.token(user, session_id=session_id), "token_type": "bearer",
            "refresh_token": token,
            "expires_in": self.project.seconds, "expires_at": int(time.time()) + self.project.seconds,
            "user": _shown(user),
        }  # fmt: skip

    def _user(self) -> dict[str, Any]:
        try:
            claims = self.project.verified(self.bearer)
        except jwt.PyJWTError:
            raise AuthTrouble(403, "bad_jwt") from None
        if claims["sub"] not in self.project.users:
            raise AuthTrouble(403, "user_not_found")
        return self.project.users[claims["sub"]]

    # Storage

    def _storage(self, path: str) -> tuple[int, Any]:
        if self.bearer != SERVICE:
            raise StorageTrouble(403, "Unauthorized", "new row violates row-level security policy")
        if path == "bucket":
            body = json.loads(self.raw)
            if body["id"] in self.project.buckets:
                raise StorageTrouble(409, "Duplicate", "The resource already exists")
            now = datetime.now(UTC).isoformat()
            self.project.buckets[body["id"]] = {
                "id": body["id"], "name": body["name"], "owner": "", "public": bool(body.get("public")),
                "created_at": now, "updated_at": now, "file_size_limit": None, "allowed_mime_types": None,
            }  # fmt: skip
            return 200, {"name": body["id"]}
        if path.startswith("bucket/"):
            bucket = self.project.buckets.get(path.removeprefix("bucket/"))
            if bucket is None:
                raise StorageTrouble(404, "Bucket not found", "Bucket not found")
            return 200, bucket
        return self._object(path.removeprefix("object/"))

    def _object(self, path: str) -> tuple[int, Any]:
        if path.startswith("list/"):
            return 200, self._listed(path.removeprefix("list/"))
        objects, is_info = self.project.objects, path.startswith("info/")
        path = path.removeprefix("info/")
        if path.partition("/")[0] not in self.project.buckets:
            raise StorageTrouble(404, "Bucket not found", "Bucket not found")
        if self.command == "DELETE":
            prefixes = [f"{path}/{name}" for name in json.loads(self.raw)["prefixes"]]
            return 200, [{"name": name} for name in prefixes if objects.pop(name, None) is not None]
        if self.command == "POST":
            if not KEY.fullmatch(path):
                raise StorageTrouble(400, "InvalidKey", f"Invalid key: {path}")
            if path in objects and self.headers.get("x-upsert") != "true":
                raise StorageTrouble(409, "Duplicate", "The resource already exists")
            objects[path] = self._uploaded_file()
            return 200, {"Key": path, "Id": str(uuid4())}
        if path not in objects:
            raise StorageTrouble(404, "not_found", "Object not found")
        return (200, {"name": path}) if is_info else (200, objects[path])

    def _listed(self, bucket: str) -> list[dict[str, Any]]:
        if bucket not in self.project.buckets:
            raise StorageTrouble(404, "Bucket not found", "Bucket not found")
        body = json.loads(self.raw)
        start = f"{bucket}/{body['prefix']}/"
        below = [path.removeprefix(start) for path in self.project.objects if path.startswith(start)]
        names = sorted({name.partition("/")[0] for name in below})
        shown = names[body["offset"] : body["offset"] + body["limit"]]
        return [{"name": name, "id": str(uuid4()) if name in below else None, "metadata": None} for name in shown]

    def _uploaded_file(self) -> bytes:
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        for part in BytesParser().parsebytes(head + self.raw).walk():
            if part.get_param("name", header="content-disposition") == "file":
                content = part.get_payload(decode=True)
                assert isinstance(content, bytes)
                return content
        raise StorageTrouble(400, "InvalidRequest", "no file")

    # REST

    def _rpc(self, name: str) -> tuple[int, Any]:
        try:
            claims = {"role": "anon"} if self.bearer == ANON else self.project.verified(self.bearer)
        except jwt.PyJWTError:
            return 401, {"code": "PGRST301", "message": "JWSError JWSInvalidSignature", "details": None, "hint": None}
        parameters = json.loads(self.raw)
        arguments = sql.SQL(", ").join(
            sql.SQL("{} => {}").format(sql.Identifier(key), sql.Placeholder(key)) for key in parameters
        )
        # Like PostgREST: JSON arrays for vectors become text for Postgres.
        parameters = {k: json.dumps(v) if isinstance(v, list) else v for k, v in parameters.items()}
        statement = sql.SQL("SELECT coalesce(json_agg(r), '[]') FROM {}({}) r").format(sql.Identifier(name), arguments)
        try:
            with psycopg.connect(self.project.database) as connection:
                connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(claims["role"])))
                connection.execute(
                    "SELECT set_config('request.jwt.claims', %s, true), "
                    "set_config('search_path', 'public, extensions', true)",
                    (json.dumps(claims),),
                )
                row = connection.execute(statement, parameters).fetchone()
        except psycopg.errors.InsufficientPrivilege as exc:
            status = 401 if claims["role"] == "anon" else 403
            return status, {"code": "42501", "message": str(exc), "details": None, "hint": None}
        assert row is not None
        return 200, row[0]

    def _table(self, name: str) -> tuple[int, Any]:
        """Return the rows of a table for `select`, `order`, `limit`, `offset`, `gt` and `in`, as PostgREST does."""
        schema = self.headers.get("accept-profile", "public")
        if self.bearer != SERVICE:
            return 401, {"message": "Invalid API key", "hint": "Double check your API key."}
        query = {key: values[0] for key, values in self.query.items()}
        limit, offset = int(query.pop("limit", 1000)), int(query.pop("offset", 0))
        assert query.pop("select") == "*"
        parts = [sql.SQL("SELECT to_jsonb(p) FROM {} p WHERE true").format(sql.Identifier(schema, name))]
        values: list[Any] = []
        order = query.pop("order", "")
        for column, condition in query.items():
            kind, _dot, value = condition.partition(".")
            listed = next(csv.reader([value[1:-1]])) if kind == "in" else [value]
            comparison = {"in": " AND p.{}::text = ANY (%s)", "gt": " AND p.{}::text > %s"}[kind]
            parts.append(sql.SQL(comparison).format(sql.Identifier(column)))
            values.append(listed if kind == "in" else value)
        if order:
            parts.append(sql.SQL(" ORDER BY p.{}").format(sql.Identifier(order.partition(".")[0])))
        try:
            with psycopg.connect(self.project.database) as connection:
                rows = connection.execute(sql.Composed(parts), values).fetchall()
        except psycopg.errors.UndefinedTable:
            return 404, {"code": "PGRST205", "message": f"Could not find the table '{schema}.{name}'"}
        except psycopg.errors.UndefinedColumn as exc:
            return 400, {"code": "42703", "message": str(exc).splitlines()[0]}
        self.more_headers = {"content-range": f"*/{len(rows)}"}
        return 200, [row[0] for row in rows[offset : offset + min(limit, self.project.most_rows)]]


def _shown(user: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in user.items() if key not in ("password", "ban_duration")}
