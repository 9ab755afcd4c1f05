"""The first start: a tenant, its collection, and the sample documents in it."""

from __future__ import annotations

import logging

from rag.database import queries
from rag.errors import DocumentAlreadyStored, RagError
from rag.ingestion.sync import sync_collection
from rag.profiles import HR, NOTICES
from rag.public import _program
from rag.samples import SAMPLES
from rag.samples.board import SampleBoard
from rag.services import Services

log = logging.getLogger("rag.start")

COLLECTION = "HR documents"
BOARD = "Sample notice board"


def prepare_tenant(parts: Services) -> None:
    """Make the settings' tenant ready for its first administrator.

    Once someone has an account, the samples are theirs to keep or delete: none is loaded again. Of several applications
    started together, one does it and the others wait.
    """
    with parts.database.transaction(parts.settings.tenant) as connection:
        connection.execute(queries["prepare_alone"], {"id": parts.settings.tenant})
        _prepare(parts)


def _prepare(parts: Services) -> None:
    tenant = parts.settings.tenant
    with parts.database.transaction(tenant) as connection:
        connection.execute(queries["create_tenant"], {"id": tenant, "name": tenant.replace("-", " ").title()})
    # Renamed or joined by others, the first collection stays the only one that is made unasked.
    collections = parts.documents.collections(tenant)
    collection = (
        collections[0]
        if collections
        else parts.documents.ensure_collection(
            tenant, COLLECTION, HR.name, parts.providers.default_embedder_id(HR), language="en"
        )
    )
    stored = {document.file_name for document in parts.documents.list(tenant)}
    missing = [sample for sample in SAMPLES if sample.file_name not in stored]
    if not parts.settings.samples or not missing or parts.database.fetch_value(tenant, "has_accounts"):
        return
    log.info("Loading %d sample documents", len(missing))
    for sample in missing:
        try:
            parts.processor.process_document(
                file=sample.read(),
                file_name=sample.file_name,
                tenant_id=tenant,
                collection=collection,
                generate_metadata=False,
            )
        except DocumentAlreadyStored:
            continue
        except RagError as exc:
            log.warning("The sample %s was left out: %s", sample.file_name, exc.message)
    load_board(parts)


def load_board(parts: Services) -> None:
    """A second collection with the sample notice board, named so that nobody takes it for their own."""
    tenant = parts.settings.tenant
    embedder = parts.providers.default_embedder_id(NOTICES)
    board = parts.documents.ensure_collection(tenant, BOARD, NOTICES.name, embedder, language="ko")
    parts.syncs.set_source(_program(tenant), board, SampleBoard.kind, {})
    report = sync_collection(parts.database, parts.files, board, SampleBoard(), queue=None)
    for document_id in report.documents:
        try:
            parts.processor.run(tenant, document_id)
        except RagError as exc:
            log.warning("A sample post was left out: %s", exc.message)
