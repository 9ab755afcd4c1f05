"""Fixtures for the API as callers use it: the product's routes and guards behind a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

import rag.services
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Role
from tests.api.callers import Api
from tests.standins.providers import ProviderStandin


@pytest.fixture
def settings(settings: Settings, provider_standin: ProviderStandin) -> Settings:
    """Settings with the stand-in as the provider of language models."""
    return Settings(
        data_dir=settings.data_dir,
        openai_api_key="key",
        openai_base_url=provider_standin.openai_url,
        cors_origins="https://intranet.example.com",
        maximum_upload_mb=1,
    )


@pytest.fixture
def parts(database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    assembled = assemble(settings, database)
    monkeypatch.setattr(rag.services, "connect_services", lambda _settings: assembled)
    rag.services.services.clear()
    yield assembled
    assembled.answers.stop_all()
    assembled.pipeline.close()
    assembled.providers.close()
    rag.services.services.clear()


@pytest.fixture
def admin(database: Database) -> Identity:
    with database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
            "VALUES ('demo', 'admin@example.com', 'Admin', 'admin', '!') RETURNING id"
        ).fetchone()
    assert row is not None
    account_id: UUID = row[0]
    return Identity(account_id=account_id, tenant_id="demo", email="admin@example.com", name="Admin", role=Role.ADMIN)


@pytest.fixture
def api(parts: Services, admin: Identity, collection: Collection, serve: Callable[[], str]) -> Iterator[Api]:
    made = Api(serve(), parts, admin, collection)
    with made.opened:
        yield made
