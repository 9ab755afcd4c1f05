"""A notice board in the test's own database: its tables, a collection that follows them, the whole product around."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest
from boards import Board, Follow
from standin import ProviderStandin

from rag.database import Database
from rag.services import Services, assemble
from rag.settings import Settings
from rag.types import Collection, Identity, Role


@pytest.fixture
def board(superuser_conninfo: str) -> Iterator[Board]:
    made = Board(superuser_conninfo)
    yield made
    made.connection.close()


@pytest.fixture
def paid_settings(settings: Settings, provider_standin: ProviderStandin) -> Settings:
    """All providers of source 000 at the stand-in."""
    return replace(
        settings,
        openai_api_key="key",
        openai_base_url=provider_standin.openai_url,
        gemini_api_key="key",
        gemini_base_url=provider_standin.gemini_url,
        cohere_api_key="key",
        cohere_base_url=provider_standin.cohere_url,
        webhook_secret="a secret of the webhook",
    )


@pytest.fixture
def parts(database: Database, paid_settings: Settings) -> Iterator[Services]:
    made = assemble(paid_settings, database)
    made.queue.retry_seconds = (0.05, 0.05)
    yield made
    made.close()


@pytest.fixture
def notices(parts: Services, administrator: Identity) -> Collection:
    """A collection that follows the table, embedded as source 000 does."""
    return parts.documents.create_collection(administrator, "Board", "notices", language="ko")


@pytest.fixture
def administrator() -> Identity:
    return Identity(account_id=uuid4(), tenant_id="demo", email="a@example.com", name="A", role=Role.ADMIN)


@pytest.fixture
def follow(parts: Services) -> Follow:
    return Follow(parts)
