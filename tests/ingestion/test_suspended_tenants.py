"""Work of a suspended tenant: it waits, whatever kind it is, and goes on after the suspension."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from rag.access.tenants import Tenants
from rag.errors import TenantSuspended
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.queue import Queue
from rag.library.documents import DocumentLibrary
from rag.records.audit import AuditLog
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Collection, DocumentStatus, Identity
from tests import hostile
from tests.ingestion.uploads import until


@pytest.fixture
def tenants(database: Database, tmp_path: Path) -> Tenants:
    return Tenants(database, FileStore(tmp_path / "files"))


def later(database: Database) -> int:
    """Jobs of the tenant that wait for another try."""
    with database.transaction("demo") as connection:
        row = connection.execute("SELECT count(*) FROM procrastinate_jobs WHERE scheduled_at > now()").fetchone()
    assert row is not None
    return int(row[0])


def test_a_document_waits_until_its_tenant_is_resumed(
    library: DocumentLibrary,
    queue: Queue,
    admin: Identity,
    collection: Collection,
    tenants: Tenants,
    database: Database,
) -> None:
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    tenants.suspend("demo")
    queue.start_worker()
    until(lambda: later(database) == 1)
    assert library.get("demo", document.id).status == DocumentStatus.READING
    tenants.resume("demo")
    until(lambda: library.get("demo", document.id).status == DocumentStatus.ESTIMATED)


def test_work_under_way_stops_at_its_next_step_and_nothing_fails(
    library: DocumentLibrary, pipeline: IngestionPipeline, admin: Identity, collection: Collection, tenants: Tenants
) -> None:
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    pipeline.run("demo", document.id)
    library.confirm(admin, document.id)
    tenants.suspend("demo")
    with pytest.raises(TenantSuspended):
        pipeline.run("demo", document.id)
    found = library.get("demo", document.id)
    assert (found.status, found.chunk_count) == (DocumentStatus.PROCESSING, 0)
    tenants.resume("demo")
    pipeline.run("demo", document.id)
    assert library.get("demo", document.id).status == DocumentStatus.COMPLETED


def test_nothing_else_of_it_is_processed_either(
    pipeline: IngestionPipeline, collection: Collection, tenants: Tenants
) -> None:
    tenants.suspend("demo")
    for work in (
        lambda: pipeline.reembedding.run("demo", uuid4()),
        lambda: pipeline.remove_files("demo"),
        lambda: pipeline.control.stop_if_suspended("demo"),
    ):
        with pytest.raises(TenantSuspended):
            work()
    pipeline.control.stop_if_suspended("other")


def test_other_tenants_are_worked_for_meanwhile(
    library: DocumentLibrary, pipeline: IngestionPipeline, admin: Identity, collection: Collection, tenants: Tenants
) -> None:
    tenants.suspend("other")
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    pipeline.run("demo", document.id)
    assert library.get("demo", document.id).status == DocumentStatus.ESTIMATED


def test_its_administrators_find_both_on_their_record(tenants: Tenants, database: Database, admin: Identity) -> None:
    tenants.suspend("demo")
    tenants.resume("demo")
    log = AuditLog(database).entries(admin, kind="company")
    assert [(entry.actor, entry.action) for entry in log] == [
        ("operator", "company resumed"),
        ("operator", "company suspended"),
    ]
