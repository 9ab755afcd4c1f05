"""The interface for sign-in methods: a new method is a new class.

Every method results in an `Account` and then in the same server-side session.
"""

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
    """The values a browser was redirected with and has to return with."""

    state: str
    nonce: str
    verifier: str
    next: str
    #: When a signed-in person was asked again, in seconds since 1970; else 0.
    asked_again_at: float = 0.0


class SingleSignOn(Protocol):
    """A provider, at which people sign in with the browser."""

    #: The provider's name in tokens.
    issuer: str

    def address_for(self, attempt: SignInAttempt) -> str:
        """Return the address for the browser. Raises `ProviderUnavailable`, `ProviderAnswerInvalid`."""
        ...

    def finish(self, attempt: SignInAttempt, answer: Mapping[str, str]) -> AccountFromElsewhere:
        """Return the account after signing in. Raises `AccessError`, `ProviderError`."""
        ...

    def signed_out(self, logout_token: str) -> list[str]:
        """Return the hashes for people and sessions in a logout message. Raises `AccessError`."""
        ...


class IdentityProvider(Protocol):
    """Identifies a person who signs in."""

    def begin(self, return_to: str) -> str | None:
        """Return the address for signing in, or `None` for our form with e-mail and password."""
        ...

    def sign_in(self, answers: Mapping[str, str], browser: Browser) -> Account:
        """Return the account for the form's fields or the provider's answer. Raises `AccessError`."""
        ...


class BuiltInAccounts:
    """Check an e-mail address and a password against our table."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def begin(self, return_to: str) -> str | None:
        return None

    def sign_in(self, answers: Mapping[str, str], browser: Browser) -> Account:
        return self._accounts.sign_in(answers.get("email", ""), answers.get("password", ""), browser)


class AccessServices(Protocol):
    """The services for the guard and the sign-in pages."""

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
