"""The API as callers meet it: the product's own routes and guards behind a real server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
import uvicorn
from callers import Api
from standin import ProviderStandin
from starlette.applications import Starlette

import rag.services
from rag.database import Database
from rag.server import ERROR_HANDLERS, MIDDLEWARE, ROUTES
from rag.services import Services, assemble
from rag.settings import Settings
from rag.types import Collection, Identity, Role


@pytest.fixture
def settings(settings: Settings, provider_standin: ProviderStandin) -> Settings:
    """With a language model, which is the stand-in."""
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
    assembled.processor.close()
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
def serve() -> Iterator[Callable[[], str]]:
    """Starts the application in a thread of this process; returns its address."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start() -> str:
        app = Starlette(routes=ROUTES, middleware=MIDDLEWARE, exception_handlers=ERROR_HANDLERS)
        server = uvicorn.Server(
            uvicorn.Config(app, port=0, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        )
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        running.append((server, thread))
        while not server.started:
            time.sleep(0.005)
        return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join(5)


@pytest.fixture
def api(parts: Services, admin: Identity, collection: Collection, serve: Callable[[], str]) -> Iterator[Api]:
    made = Api(serve(), parts, admin, collection)
    with made.opened:
        yield made
