"""Import export files into a collection; the collection's model embeds the chunks again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from uuid import UUID

from rag.ingestion.document_rows import find_documents
from rag.ingestion.estimate import PlannedWork, estimate_costs
from rag.ingestion.passages import EXPORT_TYPE, pages_and_chunks
from rag.ingestion.sources.sync import KnownItem, SourceContent, SourceItem, SyncReport, SyncWriter
from rag.integrations.sources.vectors.export import (
    ExportedDocument,
    SkippedRecord,
    documents_from,
    joined,
    passages_from_bytes,
    read_export,
)
from rag.money.price_list import price_overrides
from rag.profiles import profile_of
from rag.providers.registry import Providers
from rag.storage.database import Database
from rag.storage.files import Originals
from rag.text.spans import join_pages
from rag.types import Collection, Document, DocumentStatus

KIND = "vectors"


@dataclass(frozen=True, kw_only=True)
class ImportPlan:
    """An import's plan. `cost` is in US dollars, or `None` if no price is known."""

    documents: tuple[ExportedDocument, ...]
    #: Stored by an unfinished import.
    unfinished: tuple[UUID, ...]
    unchanged: int
    passages: int
    tokens: int
    cost: Decimal | None
    problems: tuple[SkippedRecord, ...]


class VectorImport:
    """Import export files into a collection. The collection's model embeds the chunks again."""

    def __init__(
        self,
        database: Database,
        files: Originals,
        providers: Providers,
        collection: Collection,
        *,
        generate_metadata: bool = False,
    ) -> None:
        self._database = database
        self._files = files
        self._providers = providers
        self._collection = collection
        self._generate_metadata = generate_metadata
        self._keeper = SyncWriter(database, files, collection, KIND, queue=None, generate_metadata=generate_metadata)

    def plan(self, paths: Sequence[Path]) -> ImportPlan:
        """Read the files and compare them with the collection, without storing or spending. Raises `InvalidInput`."""
        exported: dict[str, ExportedDocument] = {}
        problems: list[SkippedRecord] = []
        for path in paths:
            export = read_export(path)
            problems += export.problems
            for document in documents_from(export.records, name=path.stem):
                before = exported.get(document.key)
                exported[document.key] = joined(before, document) if before else document
        known_items = self._keeper.known_items()
        stored = self._latest(known_items)
        new, unfinished, unchanged = [], [], 0
        for key, passages in exported.items():
            latest = stored.get(key)
            merged = passages if latest is None else joined(self._read(latest, key), passages)
            before_it = known_items.get(key)
            if before_it is None or not before_it.is_same_as(_item(merged)):
                new.append(merged)
            elif latest is not None and latest.status is not DocumentStatus.COMPLETED:
                unfinished.append(latest.id)
            else:
                unchanged += 1
        tokens, cost = self._estimate([*new, *(self._read(d, k) for k, d in stored.items() if d.id in unfinished)])
        return ImportPlan(
            documents=tuple(new),
            unfinished=tuple(unfinished),
            unchanged=unchanged,
            passages=sum(len(passages.records) for passages in new),
            tokens=tokens,
            cost=cost,
            problems=tuple(problems),
        )

    def store(self, passages: ExportedDocument) -> SyncReport:
        """Store a new document or a new version for processing.

        The returned report counts added and changed documents.
        """
        known_item = self._keeper.known_items(passages.key).get(passages.key)
        return self._keeper.follow(_item(passages), known_item, SyncReport())

    def _latest(self, known_items: Mapping[str, KnownItem]) -> dict[str, Document]:
        keys = {item.original_id: key for key, item in known_items.items() if item.has_document and not item.is_deleted}
        latest: dict[str, Document] = {}
        documents = find_documents(self._database, self._collection.tenant_id, self._collection.id)
        for document in sorted(documents, key=lambda document: document.version):
            if document.mime_type == EXPORT_TYPE and document.original_id in keys:
                latest[keys[document.original_id]] = document
        return latest

    def _read(self, document: Document, key: str) -> ExportedDocument:
        return passages_from_bytes(self._files.get(document.tenant_id, document.file_path), key=key)

    def _estimate(self, documents: Sequence[ExportedDocument]) -> tuple[int, Decimal | None]:
        tenant_id = self._collection.tenant_id
        profile = profile_of(self._collection)
        embedder = self._providers.embedder_for(self._collection.embedding_model)
        tagger = self._providers.translation_model_for(profile) if self._generate_metadata else None
        prices = price_overrides(self._database, tenant_id)
        tokens, cost = 0, Decimal(0)
        is_priced = True
        for document in documents:
            pages, chunks = pages_and_chunks(document.records)
            work = PlannedWork(
                title=document.title,
                text=join_pages(pages),
                pages=len(pages),
                chunks=chunks,
                embedder=embedder,
                tagger=tagger,
                chunk_tags=profile.reading.chunk_tags,
                tag_values=profile.reading.tag_values,
            )
            estimate = estimate_costs(work, prices)
            tokens += estimate.tokens
            cost += estimate.total or 0
            is_priced = is_priced and estimate.total is not None
        return tokens, cost if is_priced else None


def _item(passages: ExportedDocument) -> SourceItem:
    content = passages.to_bytes()

    def load() -> SourceContent:
        return SourceContent(file_name=passages.file_name, content=content, mime_type=EXPORT_TYPE, title=passages.title)

    return SourceItem(
        key=passages.key,
        updated_at=None,
        hash=hashlib.sha256(content).hexdigest(),
        title=passages.title,
        load=load,
    )
