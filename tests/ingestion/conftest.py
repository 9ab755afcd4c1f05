"""The parts that take documents in, on the test's database and folder."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from rag.ingestion import jobs
from rag.ingestion.extracted import ExtractionLimits
from rag.ingestion.jobs import Queue
from rag.ingestion.library import DocumentLibrary
from rag.ingestion.processor import Processor
from rag.ingestion.sandbox import Sandbox
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Identity, Role


@pytest.fixture(autouse=True)
def quick_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have queues look for jobs that wait for another try ten times as often."""
    monkeypatch.setattr(jobs, "POLLING_SECONDS", 0.2)


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
def sandbox() -> Iterator[Sandbox]:
    running = Sandbox(ExtractionLimits())
    yield running
    running.close()


@pytest.fixture
def files(settings: Settings) -> FileStore:
    return FileStore(settings.data_dir / "files")


@pytest.fixture
def processor(database: Database, files: FileStore, settings: Settings, sandbox: Sandbox) -> Processor:
    return Processor(database, files, Providers(settings), Ledger(database), settings, sandbox=sandbox)


@pytest.fixture
def queue(database: Database, processor: Processor) -> Iterator[Queue]:
    """The queue without a worker; a test that starts one need not stop it."""
    made = Queue(database, processor, retry_seconds=(0.05, 0.05), rescue_seconds=0.2, abandoned_seconds=0.3)
    yield made
    made.stop_worker()


@pytest.fixture
def library(
    database: Database, files: FileStore, settings: Settings, queue: Queue, sandbox: Sandbox
) -> DocumentLibrary:
    return DocumentLibrary(database, files, Providers(settings), settings, queue, sandbox=sandbox)


class Worker:
    """Does a document's waiting work in the test's own thread."""

    def __init__(self, processor: Processor) -> None:
        self.processor = processor

    def __call__(self, tenant_id: str, document_id: UUID) -> None:
        self.processor.run(tenant_id, document_id)


@pytest.fixture
def work(processor: Processor) -> Worker:
    return Worker(processor)
