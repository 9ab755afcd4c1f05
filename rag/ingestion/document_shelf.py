"""The documents of a tenant to look at: lists, pages, chunks, originals, pictures, and what waits to be worked on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from rag.errors import NotFound
from rag.ingestion.collection_shelf import CollectionShelf
from rag.ingestion.intake import find_documents, find_pages
from rag.ingestion.loaders.ocr import Engine, recognition_engine
from rag.ingestion.loaders.sandbox import PageImages, Sandbox
from rag.ingestion.reading import is_pdf
from rag.profiles import BOARD_PROFILES
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database, queries
from rag.storage.files import Originals
from rag.types import (
    BoardFigures,
    Document,
    DocumentChunk,
    DocumentFigures,
    DocumentFilters,
    DocumentName,
    DocumentPage,
    DocumentSort,
    DocumentStatus,
    PostFilters,
    Step,
    Who,
)

# The shelf has a method called list; within the class that name means the method.
Documents = list[Document]
Pages = list[DocumentPage]
Chunks = list[DocumentChunk]
Questions = list[str]
Names = list[DocumentName]
Figures = list[DocumentFigures]
Board = list[BoardFigures]
#: Rows of a table of documents: what people look through, and what a run of a page reads.
DOCUMENTS_PER_PAGE = 50


@dataclass(frozen=True)
class QueueState:
    """Jobs of a tenant. `later` ones wait for another try, the first at `next_try_at`."""

    waiting: int
    later: int
    running: int
    next_try_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class MeaningTotals:
    """How many passages have their vector of meaning, of how many."""

    passages: int
    done: int


class DocumentShelf(CollectionShelf):
    """Documents and collections of all tenants. Reading is the caller's to allow."""

    def __init__(
        self, database: Database, files: Originals, providers: Providers, settings: Settings, sandbox: Sandbox
    ) -> None:
        super().__init__(database, providers)
        self._files = files
        self._settings = settings
        self._reader = sandbox
        self._images = PageImages(sandbox)

    @property
    def confinement(self) -> Mapping[str, str] | None:
        """By which means the processes that read files are confined; None before one has started."""
        return self._reader.known_means

    def start_reader(self) -> None:
        """Have a process that reads files started and confined. Raises `DocumentError`s."""
        self._reader.means()

    @property
    def recognition_engine(self) -> Engine | None:
        """What text is recognised with in scans; None when there is nothing."""
        return recognition_engine(self._settings)

    def list(
        self,
        who: Who,
        *,
        collection_id: UUID | None = None,
        status: DocumentStatus | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> Documents:
        """The tenant's documents, newest first; of those with versions, the one that answers and those at work."""
        return find_documents(
            self._database,
            who,
            collection_id=collection_id,
            with_superseded=False,
            status=status,
            limit=limit,
            offset=offset,
        )

    def count(self, who: Who, *, collection_id: UUID | None = None, status: DocumentStatus | None = None) -> int:
        """How many documents `list` has in all."""
        found = self._database.fetch_value(who, "count_documents", collection_id=collection_id, status=status)
        return int(found)

    # What the pages show, a part at a time

    def find(
        self,
        who: Who,
        filters: DocumentFilters,
        *,
        sort: DocumentSort = "newest",
        limit: int = DOCUMENTS_PER_PAGE,
        offset: int = 0,
    ) -> Documents:
        """A page of the documents that meet the filters; those of notice boards come last."""
        parameters = {**filters.parameters(), "board_profiles": list(BOARD_PROFILES), "sort": sort}
        rows = self._database.fetch_all(who, "library_page", Document, **parameters, limit=limit, offset=offset)
        return [replace(row, status=DocumentStatus(row.status), step=Step(row.step)) for row in rows]

    def count_found(self, who: Who, filters: DocumentFilters) -> tuple[int, datetime | None]:
        """How many documents meet the filters, and when the newest of them came."""
        with self._database.transaction(who) as connection:
            row = connection.execute(queries["library_count"], filters.parameters()).fetchone()
        return row or (0, None)

    def shares(self, who: Who, filters: DocumentFilters) -> tuple[int, int]:
        """How many of the documents that meet the filters can be tried again, and how many lack tags."""
        with self._database.transaction(who) as connection:
            row = connection.execute(queries["library_shares"], filters.parameters()).fetchone()
        return row or (0, 0)

    def names(
        self,
        who: Who,
        filters: DocumentFilters,
        *,
        limit: int | None,
        until: datetime | None = None,
        is_untagged: bool = False,
    ) -> Names:
        """The names of documents that meet the filters, newest first; of those only that came by `until`."""
        parameters = {**filters.parameters(), "limit": limit, "until": until, "is_untagged": is_untagged}
        return self._database.fetch_all(who, "library_names", DocumentName, **parameters)

    def figures(self, who: Who) -> Figures:
        """What the library holds, counted by what it can be filtered by."""
        rows = self._database.fetch_all(who, "library_figures", DocumentFigures)
        return [replace(row, status=DocumentStatus(row.status)) for row in rows]

    def at_work(self, who: Who, *, limit: int) -> tuple[dict[UUID, DocumentStatus], int]:
        """The first documents that something is done with, with their states, and how many there are in all."""
        with self._database.transaction(who) as connection:
            rows = connection.execute(queries["documents_at_work"], {"limit": limit}).fetchall()
            total = len(rows)
            if total == limit:
                (total,) = connection.execute(queries["count_documents_at_work"]).fetchone() or (total,)
        return {document_id: DocumentStatus(status) for document_id, status in rows}, total

    def searchable_collections(self, who: Who) -> set[UUID]:
        """The collections that have a document to answer from."""
        with self._database.transaction(who) as connection:
            return {row[0] for row in connection.execute(queries["searchable_collections"])}

    def categories(self, who: Who, collection_id: UUID) -> dict[str, str]:
        """The names of the categories of a notice board's posts, by their slugs."""
        with self._database.transaction(who) as connection:
            return dict(connection.execute(queries["board_categories"], {"collection_id": collection_id}).fetchall())

    def board_figures(self, who: Who, collection_id: UUID, *, only_ready: bool) -> Board:
        """What a notice board holds, by category."""
        where = {"collection_id": collection_id, "only_ready": only_ready}
        return self._database.fetch_all(who, "board_figures", BoardFigures, **where)

    def posts(self, who: Who, filters: PostFilters, *, limit: int = DOCUMENTS_PER_PAGE, offset: int = 0) -> Documents:
        """A page of a board's posts, pinned and important ones first, then the latest."""
        parameters = {**filters.parameters(), "limit": limit, "offset": offset}
        rows = self._database.fetch_all(who, "board_page", Document, **parameters)
        return [replace(row, status=DocumentStatus(row.status), step=Step(row.step)) for row in rows]

    def count_posts(self, who: Who, filters: PostFilters) -> int:
        """How many posts of a board meet the filters."""
        return int(self._database.fetch_value(who, "board_count", **filters.parameters()))

    def get(self, who: Who, document_id: UUID) -> Document:
        """One document. Raises `NotFound`, also for another tenant's."""
        found = find_documents(self._database, who, document_id=document_id)
        if not found:
            raise NotFound("This document does not exist, or no longer.")
        return found[0]

    def pages(self, who: Who, document_id: UUID, *, limit: int | None = None, offset: int = 0) -> Pages:
        """The pages with their text, in their order."""
        return find_pages(self._database, who, document_id, limit=limit, offset=offset)

    def count_pages(self, who: Who, document_id: UUID) -> int:
        return int(self._database.fetch_value(who, "count_pages", document_id=document_id))

    def chunks(
        self,
        who: Who,
        document_id: UUID,
        *,
        chunk_id: UUID | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> Chunks:
        """The chunks in their order, without their vectors."""
        part = {"document_id": document_id, "chunk_id": chunk_id, "limit": limit, "offset": offset}
        return self._database.fetch_all(who, "find_chunks", DocumentChunk, **part)

    def count_chunks(self, who: Who, document_id: UUID) -> int:
        return int(self._database.fetch_value(who, "count_chunks", document_id=document_id))

    def original(self, who: Who, document_id: UUID) -> bytes:
        """The file as it can be opened: a protected PDF was unlocked when it was uploaded. Raises `NotFound`."""
        document = self.get(who, document_id)
        if not document.file_path:
            raise NotFound("This document was registered without a file; its text is on its pages.")
        return self._files.get(document.tenant_id, document.file_path)

    def page_image(self, who: Who, document_id: UUID, page: int, *, highlight: str = "", scale: float = 2.0) -> bytes:
        """A page as PNG, `scale` times 72 dpi, with the passage marked where it stands.

        Raises `NotFound` for a page that is not there and a `DocumentError` when the page cannot be drawn.
        """
        document = self.get(who, document_id)
        if not is_pdf(document):
            raise NotFound("Only the pages of PDFs can be drawn; of other files there is the text.")
        if not 1 <= page <= max(document.page_count, 1):
            raise NotFound(f"This document has no page {page}.")
        return self._images.draw(
            document_id,
            page,
            lambda: self._files.get(document.tenant_id, document.file_path),
            highlight=highlight,
            scale=min(max(scale, 0.2), 4.0),
            tenant_id=document.tenant_id,
        )

    def suggested_questions(
        self, who: Who, collection_id: UUID, *, languages: Sequence[str] = (), limit: int = 4
    ) -> Questions:
        """Questions the collection's documents answer, from as many different documents as possible.

        `languages` (ISO 639-1, "ko-KR" is read as "ko") are those of the reader, the best first: documents in them
        come first, then those in the collection's own, then all others.
        """
        with self._database.transaction(who) as connection:
            rows = connection.execute(queries["suggestions"], {"collection_id": collection_id}).fetchall()
        wanted = [language.split("-")[0].lower() for language in languages]
        wanted += [collection.language for collection in self.collections(who) if collection.id == collection_id]
        found: Questions = []
        for group in (*dict.fromkeys(wanted), None):
            asked = [
                [q for q in (questions or []) if isinstance(q, str) and q.strip()]
                for questions, language in rows
                if (language == group if group is not None else language not in wanted)
            ]
            turns = max((len(questions) for questions in asked), default=0)
            found += [questions[turn] for turn in range(turns) for questions in asked if turn < len(questions)]
        return list(dict.fromkeys(found))[:limit]

    def queue_state(self, tenant_id: str) -> QueueState:
        """What waits and what is worked on for this tenant, by any process."""
        state = self._database.fetch_one(tenant_id, "queue_state", QueueState)
        return state or QueueState(waiting=0, later=0, running=0, next_try_at=None)

    def meaning_totals(self, tenant_id: str) -> MeaningTotals:
        """How many passages have their vector of meaning, while there are any to be made here; else none of none."""
        if self._providers.meaning is None:
            return MeaningTotals(passages=0, done=0)
        totals = self._database.fetch_one(tenant_id, "meaning_totals", MeaningTotals)
        return totals or MeaningTotals(passages=0, done=0)

    def metadata_values(self, who: Who, collection_id: UUID, field: str) -> Questions:
        """The values that a field of the metadata has in a collection, of its documents and of their passages."""
        with self._database.transaction(who) as connection:
            parameters = {"collection_id": collection_id, "field": field}
            return [row[0] for row in connection.execute(queries["metadata_values"], parameters).fetchall()]
