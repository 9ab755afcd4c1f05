"""Prepare the first start: a tenant, its collection, and the sample documents in it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from rag.errors import DocumentAlreadyStored, RagError
from rag.ingestion.sources.sync import SyncWriter, sync_collection
from rag.library.collections import FIRST_COLLECTION
from rag.profiles import BOARD_PROFILES, profile_by_name
from rag.profiles.notices.sources import SampleBoard
from rag.samples import SAMPLES, Sample
from rag.samples.vectors import read_vectors
from rag.services import Services, program_of
from rag.storage.database import queries
from rag.types import Collection, UploadOptions, Who

log = logging.getLogger("rag.start")

COLLECTION = FIRST_COLLECTION
BOARD = "Sample notice board"


def prepare_tenant(parts: Services) -> None:
    """Prepare the tenant named in the settings for its first administrator.

    Once an account exists, no samples are loaded again: people keep or delete them. If several applications start
    together, the first does the work and the others wait.
    """
    with parts.database.transaction(parts.settings.tenant) as connection:
        connection.execute(queries["prepare_alone"], {"id": parts.settings.tenant})
        _prepare(parts)


def _prepare(parts: Services) -> None:
    tenant = parts.settings.tenant
    collection = parts.documents.ensure_first_collection(tenant)
    if not parts.settings.samples or parts.database.fetch_value(tenant, "has_accounts"):
        return
    stored = {document.file_name for document in parts.documents.list(tenant) if not document.is_synced}
    samples = {sample.file_name: sample for sample in SAMPLES}
    missing = [sample for name, sample in samples.items() if name not in stored]
    if not missing:
        return
    if stored - samples.keys():
        return  # documents were added from the command line, and samples would be found among them
    log.info("Loading %d sample documents", len(missing))
    load_samples(parts, collection=collection, missing=missing)


def load_samples(
    parts: Services, *, collection: Collection | None = None, missing: Sequence[Sample] = SAMPLES
) -> list[Collection]:
    """Add the missing samples and the board's posts; return their collections."""
    tenant = parts.settings.tenant
    collection = collection or parts.documents.ensure_first_collection(tenant)
    for sample in missing:
        try:
            parts.pipeline.process_document(
                file=sample.read(),
                file_name=sample.file_name,
                tenant_id=tenant,
                collection=collection,
                options=UploadOptions(generate_metadata=False, is_sample=True),
            )
        except DocumentAlreadyStored:
            continue
        except RagError as exc:
            log.warning("The sample %s was left out: %s", sample.file_name, exc.message)
    collections = [collection, load_board(parts)]
    if parts.pipeline.meaning is not None:
        vectors = read_vectors()
        for filled in collections:
            parts.pipeline.meaning.store_known(tenant, filled.id, vectors)
    return collections


def find_samples(parts: Services, who: Who) -> list[UUID]:
    """Return the sample documents and posts still in the library."""
    documents = parts.database.fetch_value(who, "sample_documents", kind=SampleBoard.kind)
    return list(documents)


def empty_sample_boards(parts: Services, who: Who) -> list[Collection]:
    """Return the collections made for sample posts which have no posts left."""
    contents = parts.documents.contents(who)
    return [
        collection
        for collection in parts.documents.collections(who)
        if not contents[collection.id].documents
        and any(source.kind == SampleBoard.kind for source in parts.syncs.sources(collection))
    ]


def load_board(parts: Services) -> Collection:
    """Return a second collection with the sample notice board, made if missing; the name marks a sample."""
    tenant, profile = parts.settings.tenant, BOARD_PROFILES[0]
    embedder = parts.providers.default_embedder_id(profile_by_name(profile))
    board = parts.documents.ensure_collection(tenant, BOARD, profile, embedder, language="ko")
    parts.syncs.set_source(program_of(tenant), board, SampleBoard.kind, {})
    writer = SyncWriter(parts.database, parts.files, board, SampleBoard.kind, queue=None)
    report = sync_collection(writer, SampleBoard())
    for document_id in report.documents:
        try:
            parts.pipeline.run(tenant, document_id)
        except RagError as exc:
            log.warning("A sample post was left out: %s", exc.message)
    return board
