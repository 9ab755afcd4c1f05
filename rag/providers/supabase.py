"""The door to a Supabase project: its clients, and its errors as ours.

A client that signs a person in sends that person's token from then on. So there are two kinds: one with the service
key, shared and never signed in on, and one with the public key for each person, thrown away after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

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
from rag.providers.connections import require_safe_origin
from rag.settings import Settings
from supabase import Client, ClientOptions, create_client

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

UNREACHABLE = "Supabase cannot be reached at the moment. Try again in a moment."
UNREADABLE = "Supabase sent an answer that cannot be read. Try again in a moment."
KEY_REJECTED = "Supabase rejected the server's key. An administrator has to check SUPABASE_SERVICE_ROLE_KEY."
NOT_CONFIRMED = "This address is not confirmed yet. Open the link in Supabase's e-mail, then sign in."
#: By Supabase Auth's error codes. What is not here is `ProviderError`.
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
    """One project. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self.url = require_safe_origin("SUPABASE_URL", settings.supabase_url).rstrip("/")
        self._anon_key = settings.supabase_anon_key
        self._timeout_seconds = settings.supabase_timeout_seconds
        # Reading the certificates takes longer than a request; once is enough.
        self._certificates = httpx.create_ssl_context()
        self._transport = self._new_transport()
        #: With the service key. Nobody is ever signed in on it.
        self.server = self._client(settings.supabase_service_role_key, self._transport)

    @contextmanager
    def visitor(self) -> Iterator[Client]:
        """A client with the public key for one person, gone after."""
        with self._new_transport() as transport:
            yield self._client(self._anon_key, transport)

    def close(self) -> None:
        self._transport.close()

    def _new_transport(self) -> httpx.Client:
        timeout = httpx.Timeout(self._timeout_seconds, connect=min(5.0, self._timeout_seconds))
        return httpx.Client(timeout=timeout, follow_redirects=False, verify=self._certificates)

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
        except Exception as exc:  # its own class, a subclass of nothing
            raise SettingsError("SUPABASE_URL or a key of Supabase cannot be used. Copy them again.") from exc


def call(function: Callable[Parameters, Result], *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
    """Call the client. Whatever it raises becomes an error of ours, without what was sent."""
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
    if known := BY_CODE.get(str(exc.code or "")):
        return known()
    if exc.status == 429:
        return ProviderQuotaExhausted("Supabase's limit of requests is reached. Try again in a few minutes.")
    if exc.status in (401, 403):
        return ProviderKeyRejected(KEY_REJECTED)
    if exc.status >= 500:
        return ProviderUnavailable(UNREACHABLE)
    return ProviderError(f"Supabase did not accept this request (HTTP {exc.status}).")


def _storage_error(exc: StorageException) -> RagError:
    # The HTTP status is 400 for every error of Storage; the one that is meant is in the body, as text.
    status = str(getattr(exc, "status", ""))
    if status == "404":
        return NotFound("The original of this document is no longer stored.")
    if status == "413":
        return FileTooLarge("Supabase Storage refused this file as too large. Raise the bucket's limit there.")
    if status in ("401", "403"):
        return ProviderKeyRejected(KEY_REJECTED)
    if status == "429":
        return ProviderQuotaExhausted("Supabase's limit of requests is reached. Try again in a few minutes.")
    if status.startswith("5"):
        return ProviderUnavailable(UNREACHABLE)
    return ProviderError("Supabase Storage did not accept this file. Tell your administrator.")
