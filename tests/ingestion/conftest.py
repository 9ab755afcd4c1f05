"""Fixtures for ingestion, on the test's database and folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID, uuid4

import pytest

from rag.ingestion.loaders import sandbox as loaders_sandbox
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.queue import Queue
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Identity, Role


@pytest.fixture(autouse=True)
def quick_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make queues look ten times as often for jobs which wait for another try."""
    monkeypatch.setattr("rag.ingestion.queue.POLLING_SECONDS", 0.2)


def person(tenant_id: str, role: Role) -> Identity:
    return Identity(account_id=uuid4(), tenant_id=tenant_id, email="a@example.com", name="A", role=role)


@pytest.fixture
def admin(tenant: str) -> Identity:
    return person(tenant, Role.ADMIN)


@pytest.fixture
def employee(tenant: str) -> Identity:
    return person(tenant, Role.EMPLOYEE)


@pytest.fixture
def stranger() -> Identity:
    """An administrator of another tenant."""
    return person("other", Role.ADMIN)


@pytest.fixture(scope="session")
def sandbox(kept_readers: None) -> Sandbox:
    """A sandbox whose processes survive the end of a test's queue, which only ends busy processes."""
    return loaders_sandbox.sandbox_of(ExtractionLimits())


@pytest.fixture
def files(settings: Settings) -> FileStore:
    return FileStore(settings.data_dir / "files")


@pytest.fixture
def pipeline(database: Database, files: FileStore, settings: Settings, sandbox: Sandbox) -> IngestionPipeline:
    return IngestionPipeline(database, files, Providers(settings), Ledger(database), settings, sandbox=sandbox)


@pytest.fixture
def queue(database: Database, pipeline: IngestionPipeline) -> Iterator[Queue]:
    """A queue without a worker; a test which starts workers need not stop them."""
    made = Queue(database, pipeline, retry_seconds=(0.05, 0.05), rescue_seconds=0.2, abandoned_seconds=0.3)
    yield made
    made.stop_worker()


@pytest.fixture
def library(
    database: Database, files: FileStore, settings: Settings, queue: Queue, sandbox: Sandbox
) -> DocumentLibrary:
    return DocumentLibrary(database, files, Providers(settings), settings, queue, sandbox=sandbox)


@pytest.fixture
def connected() -> Iterator[Callable[[Settings], Providers]]:
    """A function which makes providers from settings; their connections are closed after the test."""
    made: list[Providers] = []

    def connect(settings: Settings) -> Providers:
        made.append(Providers(settings))
        return made[-1]

    yield connect
    for providers in made:
        providers.close()


class Worker:
    """Runs a document's waiting steps in the test's thread."""

    def __init__(self, pipeline: IngestionPipeline) -> None:
        self.pipeline = pipeline

    def __call__(self, tenant_id: str, document_id: UUID) -> None:
        self.pipeline.run(tenant_id, document_id)


@pytest.fixture
def work(pipeline: IngestionPipeline) -> Worker:
    return Worker(pipeline)
