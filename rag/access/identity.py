"""Define the interface of a way to sign in, so that adding one means adding a class.

Every way results in an `Account` and then in the same server-side session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from rag.access.accounts import Accounts
from rag.access.api_keys import ApiKeys
from rag.access.connected_apps import ConnectedApps
from rag.access.limits import Browser, Limits
from rag.access.sessions import Sessions
from rag.settings import Settings
from rag.types import Account

if TYPE_CHECKING:
    from rag.access.oidc import OpenIdProvider


class IdentityProvider(Protocol):
    """Identifies a person who signs in."""

    def begin(self, return_to: str) -> str | None:
        """Return where to send the browser to sign in; None when our own form asks for e-mail and password."""
        ...

    def sign_in(self, answers: Mapping[str, str], browser: Browser) -> Account:
        """Return the account for the form's fields or the provider's answer. Raises `AccessError`."""
        ...


class BuiltInAccounts:
    """Checks an e-mail address and a password against our own table."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def begin(self, return_to: str) -> str | None:
        return None

    def sign_in(self, answers: Mapping[str, str], browser: Browser) -> Account:
        return self._accounts.sign_in(answers.get("email", ""), answers.get("password", ""), browser)


class AccessServices(Protocol):
    """The services that the guard and the sign-in pages need."""

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
    def single_sign_on(self) -> OpenIdProvider | None: ...
