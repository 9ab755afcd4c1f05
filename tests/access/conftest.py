"""Fixtures for signing in: accounts with a cheap password hasher, sessions, and clients of the sign-in pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from rag.access.accounts import Accounts
from rag.access.api_keys import ApiKeys
from rag.access.connected_apps import ConnectedApps
from rag.access.guard import AuthGuard
from rag.access.limits import Limits
from rag.access.sessions import Sessions
from rag.library.collections import CollectionLibrary
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Account, Identity, Role
from tests.access.front_door import CHEAP, PASSWORD, Access, AddPerson, identity_of, inner_routes


@pytest.fixture
def access(database: Database, settings: Settings) -> Access:
    sessions = Sessions(database, settings)
    apps = ConnectedApps(database, settings, Limits(settings))
    accounts = Accounts(database, sessions, settings, hasher=CHEAP)
    documents = CollectionLibrary(database, Providers(settings))
    return Access(settings, accounts, sessions, ApiKeys(database), apps, documents)


@pytest.fixture
def admin(access: Access) -> Identity:
    """The first administrator of tenant `demo`."""
    token = access.accounts.first_admin_link()
    assert token is not None
    return identity_of(access.accounts.create_first_admin(token, "admin@example.com", "Admin", PASSWORD))


@pytest.fixture
def add_person(access: Access, admin: Identity) -> AddPerson:
    """A function which adds a person whose password is `PASSWORD`."""

    def add(email: str, role: Role = Role.EMPLOYEE, name: str = "Somebody") -> Account:
        _, link = access.accounts.invite(admin, email, name, role)
        return access.accounts.set_password_by_link(link.partition("token=")[2], PASSWORD)

    return add


@pytest.fixture
def client_of(access: Access) -> Iterator[Callable[..., TestClient]]:
    """A function which makes a browser: a client with its own cookies. All share one application behind the guard."""
    guard = Middleware(AuthGuard, services=lambda: access, recheck_seconds=0.05)
    app = Starlette(routes=inner_routes(access), middleware=[guard])
    opened: list[TestClient] = []

    def make(token: str = "", base_url: str = "http://testserver") -> TestClient:
        client = TestClient(
            app, base_url=base_url, follow_redirects=False, cookies={"hr_session": token} if token else {}
        )
        client.__enter__()
        opened.append(client)
        return client

    yield make
    for client in opened:
        client.__exit__(None, None, None)
