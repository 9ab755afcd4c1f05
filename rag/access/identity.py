"""The interfaces of sign-in methods. Every method returns an `Account` and leads to the same server-side session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from rag.access.accounts import Accounts
from rag.access.api_keys import ApiKeys
from rag.access.connected_apps import ConnectedApps
from rag.access.external import AccountFromElsewhere
from rag.access.limits import Browser, Limits
from rag.access.sessions import Sessions
from rag.settings import Settings
from rag.types import Account


@dataclass(frozen=True, kw_only=True)
class SignInAttempt:
    """A pending sign-in at a provider: the values which must match when the provider sends the browser back."""

    state: str
    nonce: str
    verifier: str
    next: str
    #: When a signed-in person was asked again, in seconds since 1970; else 0.
    asked_again_at: float = 0.0


class SingleSignOn(Protocol):
    """A provider at which people sign in with their browser, for example by OpenID Connect."""

    #: The provider's name in tokens.
    issuer: str

    def address_for(self, attempt: SignInAttempt) -> str:
        """Return the provider's address for the redirect. Raises `ProviderUnavailable`, `ProviderAnswerInvalid`."""
        ...

    def finish(self, attempt: SignInAttempt, answer: Mapping[str, str]) -> AccountFromElsewhere:
        """Check the provider's response to an attempt and return the account. Raises `AccessError`, `ProviderError`."""
        ...

    def signed_out(self, logout_token: str) -> list[str]:
        """Read a provider's logout token, and return the `origin_hash` of each person or session which the token ends.

        Raises `AccessError` for an invalid token.
        """
        ...


class IdentityProvider(Protocol):
    """A way to sign in with a form or at a provider."""

    def begin(self, return_to: str) -> str | None:
        """Return the provider's address for the redirect, or `None` to show our form with e-mail and password."""
        ...

    def sign_in(self, answers: Mapping[str, str], browser: Browser) -> Account:
        """Check the form's fields or the provider's response, and return the account. Raises `AccessError`."""
        ...


class BuiltInAccounts:
    """Sign in with e-mail and password through `Accounts`."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def begin(self, return_to: str) -> str | None:
        return None

    def sign_in(self, answers: Mapping[str, str], browser: Browser) -> Account:
        return self._accounts.sign_in(answers.get("email", ""), answers.get("password", ""), browser)


class AccessServices(Protocol):
    """The services used by the guard and the sign-in pages."""

    @property
    def settings(self) -> Settings: ...
    @property
    def accounts(self) -> Accounts: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def api_keys(self) -> ApiKeys: ...
    @property
    def connected_apps(self) -> ConnectedApps: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def single_sign_on(self) -> SingleSignOn | None: ...
