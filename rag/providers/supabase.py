"""Connect to a Supabase project: clients, converted errors, and the store for original files.

After a client has signed a person in, it sends this person's token with every request. Therefore there are two kinds: a
shared client with the service key, on which nobody signs in, and a client with the public key for each person, which is
discarded afterwards.

Originals are in a private bucket, under keys derived from their content. Storage only accepts ASCII keys, so file names
are stored in the database. Signed links are never created, because they work without any right and cannot be revoked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import httpx
from pydantic import ValidationError
from storage3.utils import StorageException
from supabase_auth.errors import AuthApiError, AuthError, AuthRetryableError, AuthWeakPasswordError

from rag.errors import (
    AccessError,
    FileTooLarge,
    InvalidInput,
    NotFound,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderUnavailable,
    RagError,
    SettingsError,
    WeakPassword,
    WrongPassword,
)
from rag.providers.addresses import require_safe_origin
from rag.providers.bounds import Bounds, bound
from rag.settings import Settings
from rag.storage.files import KEY, TENANT, storage_key
from supabase import Client, ClientOptions, create_client

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

UNREACHABLE = "Supabase cannot be reached at the moment. Try again in a moment."
UNREADABLE = "Supabase sent an answer that cannot be read. Try again in a moment."
KEY_REJECTED = "Supabase rejected the server's key, SUPABASE_SERVICE_ROLE_KEY."
NOT_CONFIRMED = "This address is not confirmed yet. Open the link in Supabase's e-mail, then sign in."
#: Errors by Supabase Auth's codes; any other code is a `ProviderError`.
BY_CODE: dict[str, Callable[[], RagError]] = {
    "invalid_credentials": WrongPassword,
    "email_not_confirmed": lambda: AccessError(NOT_CONFIRMED),
    "user_banned": lambda: AccessError("This account is disabled. Ask an administrator to enable it."),
    "user_not_found": lambda: AccessError("This account is no longer there. Ask an administrator."),
    "session_not_found": lambda: AccessError("Your sign-in at Supabase has ended. Sign in again."),
    "refresh_token_not_found": lambda: AccessError("Your sign-in at Supabase has ended. Sign in again."),
    "refresh_token_already_used": lambda: AccessError("Your sign-in at Supabase has ended. Sign in again."),
    "bad_jwt": lambda: AccessError("Your sign-in at Supabase has ended. Sign in again."),
    "no_authorization": lambda: ProviderKeyRejected(KEY_REJECTED),
    "not_admin": lambda: ProviderKeyRejected(KEY_REJECTED),
    "email_exists": lambda: InvalidInput("There is an account with this e-mail address at Supabase already."),
    "user_already_exists": lambda: InvalidInput("There is an account with this e-mail address at Supabase already."),
    "same_password": lambda: InvalidInput("Choose a password that differs from the present one."),
    "weak_password": WeakPassword,
    "validation_failed": lambda: InvalidInput("Supabase did not accept this input. Check the e-mail address."),
    "over_request_rate_limit": ProviderQuotaExhausted,
}


class SupabaseProject:
    """A Supabase project with its clients. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self.url = require_safe_origin("SUPABASE_URL", settings.supabase_url).rstrip("/")
        self._anon_key = settings.supabase_anon_key
        self._timeout_seconds = settings.supabase_timeout_seconds
        # Reading the certificates takes longer than a request, so they are shared.
        self._certificates = httpx.create_ssl_context()
        self._transport = self._new_transport()
        #: A client with the service key, on which no person signs in.
        self.server = self._client(settings.supabase_service_role_key, self._transport)

    @contextmanager
    def visitor(self) -> Iterator[Client]:
        """Yield a client with the public key, for one person. It is closed after the `with` block."""
        with self._new_transport() as transport:
            yield self._client(self._anon_key, transport)

    def close(self) -> None:
        self._transport.close()

    def _new_transport(self) -> httpx.Client:
        timeout = httpx.Timeout(self._timeout_seconds, connect=min(5.0, self._timeout_seconds))
        client = httpx.Client(timeout=timeout, follow_redirects=False, verify=self._certificates)
        return bound(client, Bounds(longest_seconds=3 * self._timeout_seconds))

    def _client(self, key: str, transport: httpx.Client) -> Client:
        options = ClientOptions(
            auto_refresh_token=False,
            persist_session=False,
            httpx_client=transport,
            storage_client_timeout=int(self._timeout_seconds) or 1,
            flow_type="implicit",
        )
        try:
            return create_client(self.url, key, options)
        except Exception as exc:  # a class without a base
            raise SettingsError("SUPABASE_URL or a key of Supabase cannot be used. Copy them again.") from exc


def call(function: Callable[Parameters, Result], *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
    """Call the client and return the result. Exceptions become `RagError`s without the request's content."""
    try:
        return function(*arguments, **named)
    except AuthRetryableError as exc:
        raise ProviderUnavailable(UNREACHABLE) from exc
    except AuthWeakPasswordError as exc:
        raise WeakPassword from exc
    except AuthApiError as exc:
        raise _auth_error(exc) from exc
    except StorageException as exc:
        raise _storage_error(exc) from exc
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as exc:
        raise ProviderUnavailable(UNREACHABLE) from exc
    except (AuthError, ValidationError, ValueError, KeyError, TypeError) as exc:
        raise ProviderAnswerInvalid(UNREADABLE) from exc


def _auth_error(exc: AuthApiError) -> RagError:
    if error_class := BY_CODE.get(str(exc.code or "")):
        return error_class()
    if exc.status == 429:
        return ProviderQuotaExhausted("Supabase's limit of requests is reached. Try again in a few minutes.")
    if exc.status in (401, 403):
        return ProviderKeyRejected(KEY_REJECTED)
    if exc.status >= 500:
        return ProviderUnavailable(UNREACHABLE)
    return ProviderError(f"Supabase did not accept this request (HTTP {exc.status}).")


def _storage_error(exc: StorageException) -> RagError:
    # Every Storage error has HTTP status 400; the real status is in the body, as text.
    status = str(getattr(exc, "status", ""))
    if status == "404":
        return NotFound("The original of this document is no longer stored.")
    if status == "413":
        return FileTooLarge(
            "Supabase Storage refused this file as too large. Raise the limit of the bucket in Supabase Storage."
        )
    if status in ("401", "403"):
        return ProviderKeyRejected(KEY_REJECTED)
    if status == "429":
        return ProviderQuotaExhausted("Supabase's limit of requests is reached. Try again in a few minutes.")
    if status.startswith("5"):
        return ProviderUnavailable(UNREACHABLE)
    return ProviderError("Supabase Storage did not accept this file. The log of Supabase Storage says why.")


# Originals

MISSING = (
    "The original of this document is not in Supabase Storage (bucket {bucket}): somebody removed it there. Its "
    "text is still used for answers. To view its pages, upload the file again."
)
#: Names listed by one call.
PAGE = 1000


class SupabaseFiles:
    """The files of all tenants in a bucket, in a folder for each tenant. Thread-safe."""

    def __init__(self, project: SupabaseProject, bucket: str) -> None:
        self._project = project
        self._bucket = bucket
        self._is_ready = False

    def put(self, tenant_id: str, content: bytes) -> str:
        """Store the content and return its key. The same content has the same key and is stored once."""
        digest = hashlib.sha256(content).hexdigest()
        key = f"{digest[:2]}/{digest}"
        path = storage_key(tenant_id, key)
        self.require_private_bucket()
        call(self._upload, path, content)
        return key

    def get(self, tenant_id: str, key: str) -> bytes:
        """Return a key's content. Raises `NotFound`, `ProviderError`."""
        try:
            return bytes(call(self._objects().download, storage_key(tenant_id, key)))
        except NotFound as exc:
            raise NotFound(MISSING.format(bucket=self._bucket)) from exc

    def delete(self, tenant_id: str, key: str) -> None:
        """Remove a file. Does nothing if it does not exist. Raises `ProviderError` if it still exists afterwards."""
        path = storage_key(tenant_id, key)
        try:
            removed = call(self._objects().remove, [path])
        except NotFound:  # the whole bucket is gone
            return
        # Storage gives the same answer for a missing file and a file it may not remove.
        if not removed and call(self._objects().exists, path):
            raise ProviderError("Supabase Storage did not remove a file. It is tried again automatically.")

    def keys(self, tenant_id: str) -> list[str]:
        """Return the keys of all files which a tenant has stored, in order. Raises `ProviderError`."""
        if not TENANT.fullmatch(tenant_id):
            return []
        folders = self._names(tenant_id)
        keys = (f"{folder}/{name}" for folder in folders for name in self._names(f"{tenant_id}/{folder}"))
        return sorted(key for key in keys if KEY.fullmatch(key))

    def _names(self, folder: str) -> list[str]:
        names: list[str] = []
        while True:
            try:
                page = call(self._page_of_names, folder, len(names))
            except NotFound:  # the whole bucket is gone
                return names
            names += page
            if len(page) < PAGE:
                return names

    def _page_of_names(self, folder: str, offset: int) -> list[str]:
        return [str(item["name"]) for item in self._objects().list(folder, {"limit": PAGE, "offset": offset})]

    def require_ready(self) -> str:
        """Return a description of where files are stored. Raises `ProviderError`, `SettingsError`."""
        self.require_private_bucket()
        return f"In Supabase Storage, private bucket {self._bucket}."

    def require_private_bucket(self) -> None:
        """Create the bucket if missing. Raises `SettingsError` if its content is public."""
        # No lock is needed: threads may check concurrently, and a thread too late to create the bucket finds it.
        if self._is_ready:
            return
        bucket = self._find_bucket()
        if bucket is None:
            call(self._create_bucket)
            bucket = self._find_bucket()
        if bucket is None:
            raise ProviderAnswerInvalid(UNREADABLE)
        if bucket.public:
            raise SettingsError(
                f"The bucket {self._bucket} of Supabase Storage is public: anybody could read the originals in it. "
                "Make it private there, or name another in SUPABASE_BUCKET."
            )
        self._is_ready = True

    def _find_bucket(self) -> Any | None:
        try:
            return call(self._project.server.storage.get_bucket, self._bucket)
        except NotFound:
            return None

    def _create_bucket(self) -> None:
        try:
            self._project.server.storage.create_bucket(self._bucket, options={"public": False})
        except StorageException as exc:
            if str(getattr(exc, "status", "")) != "409":  # Another process created it at the same moment.
                raise

    def _upload(self, path: str, content: bytes) -> None:
        try:
            self._objects().upload(path, content, {"content-type": "application/octet-stream", "upsert": "false"})
        except StorageException as exc:
            if str(getattr(exc, "status", "")) != "409":  # Already stored: the key is derived from the content.
                raise

    def _objects(self) -> Any:
        return self._project.server.storage.from_(self._bucket)
