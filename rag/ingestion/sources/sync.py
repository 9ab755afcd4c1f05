"""Keep a collection equal to a source, for example a table of posts, a folder, or a GitHub account.

A source lists items, each with a hash or a time. Only changed items are loaded, stored as the document's next version,
and queued. A sync without changes is free. After a kill, the sync starts again and skips finished items.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol, cast, runtime_checkable
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.errors import DocumentAlreadyStored, InvalidInput, RagError
from rag.ingestion.document_jobs import TEMPORARY, JobQueue
from rag.ingestion.document_rows import request_file_removal
from rag.ingestion.loaders.titles import title_from_file_name
from rag.ingestion.uploads import display_name
from rag.profiles import profile_of
from rag.storage.database import Database, queries
from rag.storage.files import Originals
from rag.types import Collection

log = logging.getLogger("rag.ingestion")


@dataclass(frozen=True, kw_only=True)
class SourceContent:
    """The file and metadata to store for a source item."""

    file_name: str
    content: bytes
    mime_type: str = ""
    title: str = ""
    #: Becomes the document's metadata.
    metadata: Mapping[str, Any] = field(default_factory=dict)
    #: SHA-256 of the file at the source, if `content` adds more.
    source_hash: str = ""


@dataclass(frozen=True, kw_only=True)
class SourceItem:
    """An item listed by a source. `key` identifies the item at the source and never changes."""

    key: str
    #: Time of the last change, or `None` if unknown to the source.
    updated_at: datetime | None
    #: A hash of everything in the text; if "" (unknown before loading), `updated_at` decides.
    hash: str
    title: str
    load: Callable[[], SourceContent]
    #: Metadata which may change without the text and is written free: pins, counts.
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """A provider of items.

    `kind` is the source's name in the tables; a collection may have one source of each kind. If a source has a `state`,
    this is stored, and passed to the next sync as the setting `state`. `notes` are sentences about items left out; they
    are shown with the sync.
    """

    kind: str

    def items(self) -> Iterator[SourceItem]:
        """Yield every item in the source. Raises `ProviderError`s, `DatabaseUnavailable`."""
        ...

    def expected(self) -> int:
        """Estimate the number of items for the progress bar, or return 0 if the number is only known after listing
        them.
        """
        ...


@runtime_checkable
class SourceWithReaders(Source, Protocol):
    """A source which knows who may read its items."""

    def readers(self) -> tuple[str, ...] | None:
        """Return the groups with access to the source, () for everybody, or `None` if access is not copied."""
        ...


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """The result of a sync: counts, and in `documents` the ids of documents to process."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: int = 0
    documents: tuple[UUID, ...] = ()
    #: Sentences about unreadable items, with their titles.
    problems: tuple[str, ...] = ()
    #: Whether a later try may succeed.
    is_temporary: bool = False

    @property
    def items(self) -> int:
        return self.added + self.updated + self.unchanged + self.failed

    def with_one(self, outcome: str, document_id: UUID | None = None, problem: str = "") -> SyncReport:
        """Return a report in which the count for `outcome` is 1 higher."""
        report = replace(self, **{outcome: getattr(self, outcome) + 1})
        if document_id is not None:
            report = replace(report, documents=(*self.documents, document_id))
        return replace(report, problems=(*self.problems, problem)) if problem else report


@dataclass(frozen=True, kw_only=True)
class KnownItem:
    """The last sync's record for an item: hash or time, and document."""

    key: str
    updated_at: datetime | None
    hash: str
    is_deleted: bool
    original_id: UUID | None
    has_document: bool

    def is_same_as(self, item: SourceItem) -> bool:
        """Whether the stored item has the same hash or time as the source's item."""
        if self.is_deleted or not self.has_document:
            return False
        return self.hash == item.hash if item.hash else self.updated_at == item.updated_at


def sync_collection(
    writer: SyncWriter,
    source: Source,
    *,
    allow_empty: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> SyncReport:
    """Make the writer's collection equal to the source: add, update and remove documents.

    Changed documents are queued. Without a queue, the caller must process the documents in the report.
    `on_progress(done, total)` is called after each item; `total` is 0 if unknown. An unreadable item is counted, and
    its document is kept.

    Raises the errors from `source.items`, and `InvalidInput` if the source suddenly lists no items, unless
    `allow_empty` is set. In both cases no document is removed.
    """
    items_by_key = writer.known_items()
    report, keys = SyncReport(), set[str]()
    there = sum(not before.is_deleted for before in items_by_key.values())
    total = max(there, source.expected() if on_progress is not None else 0)
    for item in source.items():
        if item.key in keys:
            continue  # some sources list an item twice, for example when pages of a list grow meanwhile
        keys.add(item.key)
        report = writer.follow(item, items_by_key.get(item.key), report)
        if on_progress is not None:
            on_progress(len(keys), total if total >= len(keys) else 0)
    missing = [before for key, before in items_by_key.items() if key not in keys and not before.is_deleted]
    if missing and not keys and not allow_empty:
        raise InvalidInput(
            f"The source lists nothing, but {len(missing)} documents come from it. Nothing was removed. Check that "
            "the source can be read. If it is really empty, sync with --allow-empty."
        )
    for before in missing:
        writer.remove(before.key, before)
        report = report.with_one("removed")
    return report


class SyncWriter:
    """Adds, updates and removes a source's documents in a collection, each in one transaction."""

    def __init__(
        self,
        database: Database,
        files: Originals,
        collection: Collection,
        kind: str,
        *,
        queue: JobQueue | None,
        generate_metadata: bool = False,
    ) -> None:
        self._database = database
        self._files = files
        self._collection = collection
        self._kind = kind
        self._queue = queue
        self._generate_metadata = generate_metadata
        profile = profile_of(collection)
        self._method = profile.chunking.chunking_method

    def known_items(self, key: str | None = None) -> dict[str, KnownItem]:
        """Return the known items by key, or only the named item."""
        items = self._database.fetch_all(self._collection.tenant_id, "known_items", KnownItem, **self._where, key=key)
        return {item.key: item for item in items}

    def follow(self, item: SourceItem, before: KnownItem | None, report: SyncReport) -> SyncReport:
        """Update an item's document to the item's current state at the source. Returns the report with the outcome
        added.
        """
        if before is not None and before.is_same_as(item):
            return report.with_one("updated" if self._renew_metadata(item, before) else "unchanged")
        try:
            content = item.load()
            if (before is None or not before.has_document) and (title := self._title_of_same(content)):
                raise DocumentAlreadyStored(f"The same file is here already as “{title}”, so it is not added twice.")
            document_id = self._store(item, content, before)
        except DocumentAlreadyStored as same:
            parameters = {"key": item.key, "title": item.title, "problem": same.message}
            self._database.execute(self._collection.tenant_id, "note_item_problem", **self._where, **parameters)
            return report.with_one("unchanged", problem=f"{item.title or item.key}: {same.message}")
        except RagError as error:
            log.warning("%s of %s could not be read: %s", item.key, self._kind, error)
            parameters = {"key": item.key, "title": item.title, "problem": error.message}
            self._database.execute(self._collection.tenant_id, "note_item_problem", **self._where, **parameters)
            report = report.with_one("failed", problem=f"{item.title or item.key}: {error.message}")
            return replace(report, is_temporary=report.is_temporary or isinstance(error, TEMPORARY))
        is_new = before is None or before.is_deleted or not before.has_document
        return report.with_one("added" if is_new else "updated", document_id)

    def remove(self, key: str, before: KnownItem | None, *, updated_at: datetime | None = None) -> None:
        """Remove an item's document with all versions, and mark the item removed."""
        tenant_id = self._collection.tenant_id
        original_id = before.original_id if before else None
        with self._database.transaction(tenant_id) as connection:
            connection.execute(queries["lock_versions"], {"original_id": original_id})
            removed = connection.execute(queries["remove_synced_document"], {"original_id": original_id}).fetchall()
            if removed:
                request_file_removal(connection, tenant_id, [path for _, path in removed])
            removed_item = {"key": key, "original_id": None, "updated_at": updated_at, "hash": "", "title": ""}
            connection.execute(queries["note_item"], {**self._where, **removed_item, "is_deleted": True})

    @property
    def _where(self) -> dict[str, Any]:
        return {"collection_id": self._collection.id, "kind": self._kind}

    def _renew_metadata(self, item: SourceItem, before: KnownItem) -> bool:
        """Store changed metadata of an item with unchanged text. Returns whether anything changed."""
        with self._database.transaction(self._collection.tenant_id) as connection:
            parameters = {"original_id": before.original_id, "metadata": Jsonb(dict(item.metadata))}
            renewed = connection.execute(queries["renew_metadata"], parameters).rowcount if item.metadata else 0
            if renewed or before.updated_at != item.updated_at:
                connection.execute(queries["note_item"], self._item_parameters(item, before.original_id))
        return bool(renewed)

    def _title_of_same(self, content: SourceContent) -> str:
        """Return the title of a document with the same content which this source did not add, or ""."""
        digest = hashlib.sha256(content.content).hexdigest()
        with self._database.transaction(self._collection.tenant_id) as connection:
            parameters = {**self._where, "file_path": f"{digest[:2]}/{digest}", "digest": content.source_hash or digest}
            row = connection.execute(queries["find_same_content"], parameters).fetchone()
            if row is None and content.source_hash:
                source_hash = content.source_hash
                parameters["file_path"] = f"{source_hash[:2]}/{source_hash}"
                row = connection.execute(queries["find_same_content"], parameters).fetchone()
        return str(row[1]) if row else ""

    def _store(self, item: SourceItem, content: SourceContent, before: KnownItem | None) -> UUID:
        tenant_id = self._collection.tenant_id
        digest = hashlib.sha256(content.content).hexdigest()
        file_path = f"{digest[:2]}/{digest}"
        row = {
            "collection_id": self._collection.id,
            "key": item.key,
            "title": content.title or title_from_file_name(item.title or item.key),
            "file_name": display_name(content.file_name),
            "file_path": file_path,
            "file_size": len(content.content),
            "mime_type": content.mime_type,
            # Two things with the same content are two documents.
            "sha256": hashlib.sha256(f"{self._kind}\0{item.key}\0{digest}".encode()).hexdigest(),
            "chunking_method": self._method,
            "generate_metadata": self._generate_metadata,
            "metadata": Jsonb(
                {
                    **content.metadata,
                    **item.metadata,
                    **({"contentHash": content.source_hash} if content.source_hash else {}),
                }
            ),
            "original_id": before.original_id if before else None,
        }
        with self._database.transaction(tenant_id) as connection:
            connection.execute(queries["lock_stored_file"], {"file_path": file_path})
            self._files.put(tenant_id, content.content)
            added = connection.execute(queries["add_synced_document"], row).fetchone()
            assert added is not None  # noqa: S101  an INSERT … RETURNING that did not raise has a row
            document_id, original_id = added
            versions = {"document_id": document_id, "original_id": original_id}
            connection.execute(queries["lock_versions"], versions)
            connection.execute(queries["carry_attachment_texts"], versions)
            overtaken = connection.execute(queries["remove_earlier_versions"], versions).fetchall()
            if overtaken:
                request_file_removal(connection, tenant_id, [path for _, path in overtaken])
            connection.execute(queries["note_item"], self._item_parameters(item, original_id))
            if self._queue is not None:
                self._queue.enqueue(tenant_id, document_id, connection=connection)
        return cast(UUID, document_id)

    def _item_parameters(self, item: SourceItem, original_id: UUID | None) -> dict[str, Any]:
        return {
            **self._where,
            "key": item.key,
            "original_id": original_id,
            "updated_at": item.updated_at,
            "hash": item.hash,
            "title": item.title,
            "is_deleted": False,
        }
