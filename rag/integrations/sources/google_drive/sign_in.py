"""Sign in an administrator with Google to read their Drive: OAuth 2.0 for web servers, with PKCE (RFC 7636).

The result is a refresh token in Google's file format "authorized_user", which `google_drive` accepts instead of a
service account's key. Until a folder is added to a collection, the token is only in the browser, encrypted in a cookie.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken

from rag.errors import AccessError, ProviderAnswerInvalid, ProviderUnavailable
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Identity

# Imported when somebody signs in.
if TYPE_CHECKING:
    from authlib.integrations.httpx_client import OAuth2Client

SCOPE = "https://www.googleapis.com/auth/drive.readonly"
#: How long somebody may take at Google, and may then take to fill in the folder, in seconds.
ATTEMPT_SECONDS, ACCOUNT_SECONDS = 600, 3600
#: The cookie for a signed-in account.
ACCOUNT_COOKIE = "hr_google_drive"
TIMEOUT_SECONDS = 10.0
NOT_COMPLETED = "You did not allow access at Google, so nothing is read there. To allow access, sign in again."
NOT_READING = "You did not allow access to your files in Google Drive. Sign in again and tick the box for Google Drive."
STALE = "This sign-in took too long, or was begun in another browser. Please try again."
UNREACHABLE = "The sign-in service of Google cannot be reached at the moment. Try again later."
UNREADABLE = "The sign-in service of Google sent an answer that cannot be read."
SENTENCES = {
    "rejected": "Google did not accept the sign-in. Try again.",
    "forbidden": "The Drive API is not switched on in the project that the client ID belongs to.",
    "missing": "The Drive API cannot be found at the address that is set.",
}


@dataclass(frozen=True, kw_only=True)
class DriveAttempt:
    """A pending sign-in at Google: the values which Google's redirect back to us must match."""

    state: str
    verifier: str
    collection_id: str
    #: The address for the way back, which is registered at Google.
    redirect_uri: str

    @classmethod
    def begin(cls, collection_id: UUID, redirect_uri: str) -> DriveAttempt:
        return cls(
            state=secrets.token_urlsafe(24),
            verifier=secrets.token_urlsafe(48),
            collection_id=str(collection_id),
            redirect_uri=redirect_uri,
        )


@dataclass(frozen=True, kw_only=True)
class DriveAccount:
    """A person signed in at Google, and the refresh token for their files."""

    email: str
    #: A file with the type "authorized_user".
    key: str = field(repr=False)


class GoogleSignIn:
    """Build the redirect to Google, and exchange the code for a token. Thread-safe."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings

    @property
    def is_offered(self) -> bool:
        return bool(self._settings.variable("RAG_GOOGLE_CLIENT_ID"))

    def address_for(self, attempt: DriveAttempt) -> str:
        """Return Google's address for the redirect.

        Google is told to ask for consent every time, because the response would otherwise lack the refresh token.
        """
        with self._client(attempt) as client:
            address, _state = client.create_authorization_url(
                self._settings.variable("RAG_GOOGLE_LOGIN_URL"),
                state=attempt.state,
                code_verifier=attempt.verifier,
                access_type="offline",
                prompt="consent select_account",
            )
            return str(address)

    def finish(self, attempt: DriveAttempt, answer: Mapping[str, str]) -> DriveAccount:
        """Exchange the code for a token and return the account.

        Raises `AccessError` after a refusal and `ProviderError` if Google fails.
        """
        if not secrets.compare_digest(answer.get("state", "").encode(), attempt.state.encode()):
            raise AccessError(STALE)
        if "error" in answer or not answer.get("code"):
            raise AccessError(NOT_COMPLETED)
        token = self._exchange(answer["code"], attempt)
        if SCOPE not in str(token.get("scope", "")).split():
            raise AccessError(NOT_READING)
        if not token.get("refresh_token") or not token.get("access_token"):
            raise ProviderAnswerInvalid(UNREADABLE)
        settings = self._settings
        key = {
            "type": "authorized_user",
            "client_id": settings.variable("RAG_GOOGLE_CLIENT_ID"),
            "client_secret": settings.variable("RAG_GOOGLE_CLIENT_SECRET"),
            "refresh_token": str(token["refresh_token"]),
            "token_uri": settings.variable("RAG_GOOGLE_OAUTH_URL"),
        }
        return DriveAccount(email=self._email(str(token["access_token"])), key=json.dumps(key))

    # Cookies

    def seal(self, value: DriveAttempt | DriveAccount, identity: Identity) -> str:
        """Return a value encrypted for a cookie which only this person can use."""
        content = {"of": str(identity.account_id), type(value).__name__: asdict(value)}
        return self._locker.encrypt(json.dumps(content).encode()).decode()

    def attempt(self, sealed: str, identity: Identity) -> DriveAttempt:
        """Return an attempt decrypted from `seal`. Raises `AccessError` if too old or for a different person."""
        fields = self._open(sealed, identity, DriveAttempt.__name__, ATTEMPT_SECONDS)
        if fields is None:
            raise AccessError(STALE)
        return DriveAttempt(**fields)

    def account(self, sealed: str, identity: Identity) -> DriveAccount | None:
        """Return an account decrypted from `seal`.

        Returns `None` if `sealed` is missing, over an hour old, or for a different person.
        """
        fields = self._open(sealed, identity, DriveAccount.__name__, ACCOUNT_SECONDS)
        return DriveAccount(**fields) if fields is not None else None

    # Inside

    def _client(self, attempt: DriveAttempt) -> OAuth2Client:
        from authlib.integrations.httpx_client import OAuth2Client

        from rag.providers.bounds import Bounds, bound

        settings = self._settings
        return bound(
            OAuth2Client(
                settings.variable("RAG_GOOGLE_CLIENT_ID"),
                settings.variable("RAG_GOOGLE_CLIENT_SECRET"),
                scope=SCOPE,
                redirect_uri=attempt.redirect_uri,
                code_challenge_method="S256",
                timeout=TIMEOUT_SECONDS,
                follow_redirects=False,
            ),
            Bounds(longest_seconds=3 * TIMEOUT_SECONDS),
        )

    def _exchange(self, code: str, attempt: DriveAttempt) -> dict[str, Any]:
        import httpx2
        from authlib.common.errors import AuthlibBaseError

        try:
            with self._client(attempt) as client:
                return dict(
                    client.fetch_token(
                        self._settings.variable("RAG_GOOGLE_OAUTH_URL"), code=code, code_verifier=attempt.verifier
                    )
                )
        except AuthlibBaseError as exc:
            raise AccessError(STALE) from exc
        except (httpx2.HTTPStatusError, ValueError, TypeError, KeyError) as exc:
            raise ProviderAnswerInvalid(UNREADABLE) from exc
        except (httpx2.HTTPError, OSError) as exc:
            raise ProviderUnavailable(UNREACHABLE) from exc

    def _email(self, access_token: str) -> str:
        from rag.integrations.sources.remote import JsonApi, client_for

        base = f"{self._settings.variable('RAG_GOOGLE_API_URL').rstrip('/')}/drive/v3"
        with client_for(self._settings.own_sync_hosts) as client:
            api = JsonApi(client, base, "Google Drive", SENTENCES, token=lambda: access_token)
            user = api.get("/about", {"fields": "user(emailAddress)"}).get("user")
        return str(user.get("emailAddress") or "") if isinstance(user, dict) else ""

    def _open(self, sealed: str, identity: Identity, name: str, seconds: int) -> dict[str, Any] | None:
        try:
            content = json.loads(self._locker.decrypt(sealed.encode(), ttl=seconds))
        except InvalidToken:
            return None
        fields = content.get(name)
        return fields if isinstance(fields, dict) and content.get("of") == str(identity.account_id) else None

    @property
    def _locker(self) -> Fernet:
        key = hashlib.sha256(b"google sign-in\x00" + self._database.key).digest()
        return Fernet(base64.urlsafe_b64encode(key))
