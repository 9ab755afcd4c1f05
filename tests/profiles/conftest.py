"""Fixtures for the whole product with stand-ins for all providers, and a client of its API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from rag.api import questions, references
from rag.api.app import Api
from rag.services import Services
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Question, Role
from tests.standins.providers import ProviderStandin

Ask = Callable[..., Any]


@pytest.fixture
def settings(settings: Settings, provider_standin: ProviderStandin) -> Settings:
    """Settings which direct every provider of the profiles to its stand-in."""
    return replace(
        settings,
        openai_api_key="key",
        openai_base_url=provider_standin.openai_url,
        gemini_api_key="key",
        gemini_base_url=provider_standin.gemini_url,
        openrouter_api_key="key",
        openrouter_base_url=provider_standin.openrouter_url,
        ollama_url=provider_standin.ollama_url,
        cohere_api_key="key",
        cohere_base_url=provider_standin.cohere_url,
    )


@pytest.fixture
def admin(database: Database) -> Identity:
    with database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, password_hash, role) "
            "VALUES ('demo', 'admin@example.org', 'Admin', 'x', 'admin') RETURNING id"
        ).fetchone()
    assert row is not None
    return Identity(account_id=row[0], tenant_id="demo", email="admin@example.org", name="Admin", role=Role.ADMIN)


@pytest.fixture
def stranger() -> Identity:
    """An administrator of another tenant."""
    return Identity(account_id=uuid4(), tenant_id="other", email="b@example.org", name="B", role=Role.ADMIN)


class SignedIn:
    """Replaces the guard: every request is made by the given identity."""

    def __init__(self, app: ASGIApp, identity: Identity) -> None:
        self.app, self.identity = app, identity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app({**scope, "identity": self.identity}, receive, send)


@pytest.fixture
def client_of(app_services: Services) -> Iterator[Callable[[Identity], TestClient]]:
    opened: list[TestClient] = []

    def make(identity: Identity) -> TestClient:
        app = Api([references.router, references.opinions, questions.router])
        opened.append(TestClient(SignedIn(app, identity)))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


@pytest.fixture
def client(client_of: Callable[[Identity], TestClient], admin: Identity) -> TestClient:
    return client_of(admin)


@pytest.fixture
def ask(app_services: Services, admin: Identity) -> Ask:
    """A function which asks like the chat and returns the finished answer and its stored message."""

    def answer(collection: Collection, text: str, *, document_ids: tuple[UUID, ...] = (), **options: Any) -> Any:
        question = Question(text=text, identity=admin, collection=collection, document_ids=document_ids)
        live = app_services.answers.ask(question, **options)
        for _ in live.tail(every_seconds=0.01):
            pass
        message = app_services.conversations.messages(admin, live.conversation_id)[-1]
        return live, message

    return answer
