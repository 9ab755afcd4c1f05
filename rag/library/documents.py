"""Manage documents for pages and API: upload, confirm, view, retry, delete.

Long work is queued, in the transaction with the request's changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin, require_recent
from rag.errors import DocumentAlreadyStored, InvalidInput, NotFound, RagError
from rag.ingestion.corrections import Corrections
from rag.ingestion.document_jobs import DocumentGone, JobQueue
from rag.ingestion.document_rows import (
    FileRemovals,
    find_pages,
    list_documents,
    request_file_removal,
)
from rag.ingestion.estimate import costs_money
from rag.ingestion.loaders.ocr import recognition_engine
from rag.ingestion.loaders.sandbox import Sandbox, sandbox_for
from rag.ingestion.question_templates import nobody_asks
from rag.ingestion.reembedding import Reembeddings
from rag.ingestion.suggestions import SuggestStep, form_of, varied
from rag.ingestion.uploads import CAN_BE_TRIED_AGAIN, DEFAULT_OPTIONS, Uploads
from rag.library.bin import Bin
from rag.library.collections import CollectionLibrary, narrowing_metadata
from rag.library.metadata import DocumentMetadata
from rag.library.page_images import PageImages, readable_document
from rag.library.text_search import documents_with_words
from rag.library.versions import Versions
from rag.profiles import BOARD_PROFILES, profile_of
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database, queries
from rag.storage.files import Originals
from rag.types import (
    AnsweredQuestion,
    BoardFigures,
    Collection,
    Document,
    DocumentChunk,
    DocumentFigures,
    DocumentFilters,
    DocumentName,
    DocumentPage,
    DocumentRow,
    DocumentSort,
    DocumentStatus,
    Identity,
    PostFilters,
    Step,
    SuggestedQuestions,
    UploadOptions,
    Who,
    tenant_of,
)

log = logging.getLogger("rag.ingestion")

# The library has a method called `list`, which hides the built-in type within the class.
Documents = list[Document]
Pages = list[DocumentPage]
Chunks = list[DocumentChunk]
Questions = list[str]
QuestionLists = list[Questions]
Names = list[DocumentName]
Rows = list[DocumentRow]
Answered = list[AnsweredQuestion]
PageNumbers = list[int]
Figures = list[DocumentFigures]
Board = list[BoardFigures]
#: The most rows in a table of documents, for readers and for the page.
DOCUMENTS_PER_PAGE = 50
#: The highest limit, in US dollars, for estimates without confirmation.
MOST_UNASKED = 100


@dataclass(frozen=True)
class QueueState:
    """The numbers of a tenant's jobs. `later` counts the jobs waiting for a retry; the first retry is at
    `next_try_at`.
    """

    waiting: int
    later: int
    running: int
    next_try_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class RefusedFile:
    """A file that was refused at upload, and why."""

    id: UUID
    file_name: str
    file_size: int
    reason: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class MeaningTotals:
    """The number of chunks, and how many have a vector from the built-in embedding model."""

    passages: int
    done: int


Refusals = list[RefusedFile]


#: Documents for which questions in a reader's language are made while the page is drawn. They are stored for the next
#: reader.
MOST_GENERATED = 4


def _interleave(lists: Sequence[Sequence[Any] | None]) -> Questions:
    """Merge lists of questions in turn, without blank entries: [a, b] and [c, d] give [a, c, b, d]."""
    question_lists = [[q for q in questions or () if isinstance(q, str) and q.strip()] for questions in lists]
    longest = max((len(questions) for questions in question_lists), default=0)
    return [questions[place] for place in range(longest) for questions in question_lists if place < len(questions)]


class DocumentLibrary(CollectionLibrary):
    """Read and change documents and collections in all tenants.

    Changes need an administrator. Reads return only data which `who` may read.
    """

    def __init__(
        self,
        database: Database,
        files: Originals,
        providers: Providers,
        settings: Settings,
        queue: JobQueue,
        *,
        sandbox: Sandbox | None = None,
    ) -> None:
        super().__init__(database, providers)
        self._files = files
        self._settings = settings
        self._queue = queue
        #: Raises an error if nothing may be spent on documents this month.
        self.check_spending: Callable[[Who], None] = lambda who: None
        self._sandbox = sandbox or sandbox_for(settings)
        self._uploads = Uploads(database, files, self._sandbox, queue)
        self._images = PageImages(database, files, self._sandbox)
        self._removals = FileRemovals(database, files)
        self.versions = Versions(database, providers, queue)
        self.corrections = Corrections(database, providers, queue, lambda who: self.check_spending(who))
        self.reembeddings = Reembeddings(database, providers)
        self.metadata = DocumentMetadata(database)
        self.bin = Bin(database, queue, estimate=self.versions.estimate, forget=self._forget)

    # Adding

    def upload(
        self,
        identity: Identity,
        collection: Collection,
        file_name: str,
        content: bytes,
        options: UploadOptions = DEFAULT_OPTIONS,
    ) -> Document:
        """Store a file, queue its ingestion, and return the document.

        A file with a known name but new content becomes the next version. Files attached to an email or PDF become
        documents in a folder named after the file. If a failed document has the same content, this document is retried,
        and no new document is added.

        Raises `InvalidInput` for metadata outside the collection's filters, and a `DocumentError` for an unusable file:
        `PasswordNeeded` and `PasswordWrong` ask for a password; `DocumentAlreadyStored` has `document_id` and `title`
        of the document with the same content.
        """
        require_admin(identity)
        if collection.tenant_id != identity.tenant_id:
            raise NotFound
        profile = profile_of(collection)
        narrowing = narrowing_metadata(profile, options.metadata)
        try:
            added = self._uploads.add(collection, file_name, content, options, added_by=identity)
        except DocumentAlreadyStored as stored:
            existing = self.get(identity, stored.details["document_id"]) if "document_id" in stored.details else None
            # A failed document does not block its file.
            if options.replaces is not None or existing is None or existing.status not in CAN_BE_TRIED_AGAIN:
                raise
            return self.retry(identity, existing.id)
        for document_id in added if narrowing else ():
            parameters = {"document_id": document_id, "metadata": Jsonb(narrowing), "message": None}
            self._database.execute(identity, "note_metadata", **parameters)
        return self.get(identity, added[0])

    def confirm(self, identity: Identity, document_id: UUID) -> Document:
        """Confirm a document's estimate, queue the processing, and return the document. A repeated call has no effect.

        When processed, the document replaces the published version, even a later version. Raises `BudgetSpent` if
        processing costs money and the company's budget for this month is spent.
        """
        require_admin(identity)
        if costs_money(self.get(identity, document_id).estimate):
            self.check_spending(identity)
        with self._database.transaction(identity) as connection:
            parameters = {"document_id": document_id}
            if connection.execute(queries["confirm_document"], parameters).rowcount:
                connection.execute(queries["ask_again_after_published"], parameters)
                self._queue.enqueue(identity.tenant_id, document_id, connection=connection)
        return self.get(identity, document_id)

    def confirm_all(self, identity: Identity, *, until: datetime) -> int:
        """Confirm all estimates made up to `until`. Return how many documents were confirmed.

        `until` is the time at which the person saw the total.
        """
        require_admin(identity)
        with self._database.transaction(identity) as connection:
            rows = connection.execute(queries["confirmable_documents"], {"until": until}).fetchall()
        for (document_id,) in rows:
            self.confirm(identity, document_id)
        return len(rows)

    def discard(self, identity: Identity, document_id: UUID) -> None:
        """Decline a document's estimate, and delete document and file.

        Raises `InvalidInput` if the estimate was confirmed meanwhile.
        """
        if not self._remove(identity, document_id, (DocumentStatus.ESTIMATED, DocumentStatus.READING)):
            self.get(identity, document_id)
            raise InvalidInput("This document no longer needs a decision. Delete it in the library instead.")

    def retry(self, identity: Identity, document_id: UUID) -> Document:
        """Queue a failed document again. Finished steps are not repeated.

        Raises `InvalidInput` for a document which has not failed.
        """
        require_admin(identity)
        with self._database.transaction(identity) as connection:
            parameters = {"document_id": document_id}
            if not connection.execute(queries["retry_document"], parameters).rowcount:
                raise InvalidInput("Only a document that failed or needs text recognition can be tried again.")
            self._queue.enqueue(identity.tenant_id, document_id, connection=connection)
        return self.get(identity, document_id)

    def delete(self, identity: Identity, document_id: UUID) -> None:
        """Delete a document with all versions, or a single unpublished version.

        Pages, chunks, vectors and keywords are deleted in a single transaction, which also queues the removal of the
        file. Raises `NotFound`, `SignInAgain`.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        if not self._remove(identity, document_id, None):
            raise NotFound

    def _remove(self, identity: Identity, document_id: UUID, statuses: Sequence[DocumentStatus] | None) -> bool:
        """Delete a document if `statuses` contains the document's state. Return whether a document was deleted.

        If `statuses` is `None`, documents in any state are deleted.
        """
        require_admin(identity)
        tenant_id = identity.tenant_id
        with self._database.transaction(identity) as connection:
            parameters = {"document_id": document_id, "statuses": None if statuses is None else [*statuses]}
            removed = dict(connection.execute(queries["delete_document"], parameters).fetchall())
            if removed:
                request_file_removal(connection, tenant_id, [*removed.values()])
        self._forget(tenant_id, removed)
        return bool(removed)

    def _forget(self, tenant_id: str, removed: Iterable[UUID]) -> None:
        removed = list(removed)
        for document_id in removed:
            self._images.forget(document_id)
        if removed:
            # Removed at once if possible; the job queued with the deletion then finds no work.
            self._removals.run(tenant_id)

    def delete_collection(self, identity: Identity, collection_id: UUID, *, confirmed_name: str) -> None:
        """Delete a collection with its documents and conversations. Questions and costs stay in the analytics.

        `confirmed_name` has to be the collection's name. Raises `InvalidInput` for a wrong name, `NotFound`,
        `SignInAgain`.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        tenant_id = identity.tenant_id
        with self._database.transaction(identity) as connection:
            name = self._locked(connection, collection_id)
            if " ".join(confirmed_name.split()) != name:
                raise InvalidInput(f"To delete the collection, type its name, {name}.")
            parameters = {"collection_id": collection_id}
            removed = dict(connection.execute(queries["files_of_collection"], parameters).fetchall())
            connection.execute(queries["delete_collection"], parameters)
            if removed:
                request_file_removal(connection, tenant_id, [*removed.values()])
        self._database.fetch_value(tenant_id, "drop_unused_indexes")
        self._forget(tenant_id, removed)

    def _locked(self, connection: Connection, collection_id: UUID) -> str:
        """Lock a collection until the transaction ends, and return its name. Raises `NotFound`."""
        row = connection.execute(queries["lock_collection"], {"collection_id": collection_id}).fetchone()
        if row is None:
            raise NotFound("This collection does not exist. It may have been deleted.")
        return str(row[2])

    # Looking

    @property
    def confinement(self) -> Mapping[str, str] | None:
        """The sandbox's active means of confinement; `None` before the sandbox has started."""
        return self._sandbox.known_means

    def start_reader(self) -> None:
        """Start the sandbox. Raises `DocumentError`."""
        self._sandbox.means()

    @property
    def recognition_engine(self) -> str | None:
        """The engine that recognises text in scans, or `None`."""
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
        """List documents, newest first. Superseded versions are left out."""
        return list_documents(
            self._database, who, collection_id=collection_id, status=status, limit=limit, offset=offset
        )

    def count(self, who: Who, *, collection_id: UUID | None = None, status: DocumentStatus | None = None) -> int:
        """Count the documents listed by `list` without a limit."""
        total = self._database.fetch_value(who, "count_documents", collection_id=collection_id, status=status)
        return int(total)

    # Parts shown on pages

    def find(
        self,
        who: Who,
        filters: DocumentFilters,
        *,
        sort: DocumentSort = "newest",
        limit: int = DOCUMENTS_PER_PAGE,
        offset: int = 0,
    ) -> Documents:
        """Return a page of matching documents, with posts last."""
        parameters = {**filters.parameters(), "board_profiles": list(BOARD_PROFILES), "sort": sort}
        rows = self._database.fetch_all(who, "library_page", Document, **parameters, limit=limit, offset=offset)
        return [replace(row, status=DocumentStatus(row.status), step=Step(row.step)) for row in rows]

    def rows(self, who: Who, filters: DocumentFilters, *, limit: int, sort: DocumentSort = "newest") -> Rows:
        """Return table rows for matching documents, with posts last."""
        parameters = {**filters.parameters(), "board_profiles": list(BOARD_PROFILES), "sort": sort, "limit": limit}
        rows = self._database.fetch_all(who, "library_rows", DocumentRow, **parameters)
        return [replace(row, status=DocumentStatus(row.status)) for row in rows]

    def questions_of(self, who: Who, document: Document, *, limit: int = 50) -> Answered:
        """List the questions answered from any version of a document, latest first."""
        where = {"original_id": document.original_id, "limit": limit}
        return self._database.fetch_all(who, "questions_of_document", AnsweredQuestion, **where)

    def replaced_by(self, who: Who, document: Document) -> Document | None:
        """Return the version which this document will replace: the published version, else the latest waiting version.

        Returns `None` if there is neither.
        """
        replaced_id = self._database.fetch_value(who, "replaced_document", document_id=document.id)
        return self.get(who, replaced_id) if replaced_id is not None else None

    def differing_pages(self, who: Who, document: Document, other: Document) -> PageNumbers:
        """Return the page numbers at which two documents have different texts, ignoring whitespace."""
        ours = {page.number: page.text.split() for page in self.pages(who, document.id)}
        theirs = {page.number: page.text.split() for page in self.pages(who, other.id)}
        return sorted(number for number in {*ours, *theirs} if ours.get(number) != theirs.get(number))

    def keep_both(self, identity: Identity, document_id: UUID) -> Document:
        """Process a waiting version as a separate document, and keep the current version.

        Raises `InvalidInput` if the version is not waiting, or would not replace a document.
        """
        require_admin(identity)
        title = f"{self.get(identity, document_id).title} (2)"
        if not self._database.execute(identity, "keep_both", document_id=document_id, title=title):
            raise InvalidInput("This file no longer needs a decision.")
        return self.confirm(identity, document_id)

    # What the tenant's administrators chose

    def spending_limit(self, who: Who) -> Decimal:
        """Return the spending limit in US dollars: documents with a higher estimate wait for confirmation."""
        chosen = (self._database.fetch_value(who, "tenant_settings") or {}).get("confirmed_up_to")
        return Decimal(str(chosen)) if chosen is not None else Decimal(0)

    def set_spending_limit(self, identity: Identity, dollars: Decimal) -> None:
        """Set the spending limit in US dollars: documents with a higher estimate wait for confirmation.

        Raises `InvalidInput`.
        """
        require_admin(identity)
        if not 0 <= dollars <= MOST_UNASKED:
            raise InvalidInput(f"The limit has to be between 0 and {MOST_UNASKED} US dollars.")
        settings = Jsonb({"confirmed_up_to": str(dollars)})
        self._database.execute(identity, "change_tenant_settings", settings=settings)

    # Files that were not accepted

    def note_refused(self, identity: Identity, file_name: str, file_size: int, reason: str) -> None:
        """Store a refused file's name and the reason. The entry is kept until the person dismisses it."""
        values = {"file_name": file_name[:300], "file_size": file_size, "reason": reason}
        self._database.execute(identity, "note_refused_file", account_id=identity.account_id, **values)

    def refused(self, identity: Identity) -> Refusals:
        """List a person's refused files, latest first."""
        return self._database.fetch_all(identity, "find_refused_files", RefusedFile, account_id=identity.account_id)

    def dismiss_refused(self, identity: Identity, file_id: UUID | None = None) -> None:
        """Remove a refused file from the person's list. Without `file_id`, remove all."""
        self._database.execute(identity, "drop_refused_files", account_id=identity.account_id, file_id=file_id)

    def with_words(self, who: Who, text: str) -> tuple[UUID, ...]:
        """Return the ids of searchable documents which contain all words in `text`."""
        return tuple(documents_with_words(self._database, who, [c.id for c in self.collections(who)], text))

    def count_found(self, who: Who, filters: DocumentFilters) -> tuple[int, datetime | None]:
        """Count the documents which match the filters. Return the count, and when the newest document was added."""
        with self._database.transaction(who) as connection:
            row = connection.execute(queries["library_count"], filters.parameters()).fetchone()
        return row or (0, None)

    def shares(self, who: Who, filters: DocumentFilters) -> tuple[int, int]:
        """Return two counts for the matching documents: documents which can be retried, and documents without tags."""
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
        """List the names of matching documents added by `until`, newest first."""
        parameters = {**filters.parameters(), "limit": limit, "until": until, "is_untagged": is_untagged}
        return self._database.fetch_all(who, "library_names", DocumentName, **parameters)

    def figures(self, who: Who) -> Figures:
        """Return document counts by every property used for filters."""
        rows = self._database.fetch_all(who, "library_figures", DocumentFigures)
        return [replace(row, status=DocumentStatus(row.status)) for row in rows]

    def at_work(self, who: Who, *, limit: int) -> tuple[dict[UUID, DocumentStatus], int]:
        """Return the documents being processed: states by id, for at most `limit` documents, and the total number."""
        with self._database.transaction(who) as connection:
            rows = connection.execute(queries["documents_at_work"], {"limit": limit}).fetchall()
            total = len(rows)
            if total == limit:
                (total,) = connection.execute(queries["count_documents_at_work"]).fetchone() or (total,)
        return {document_id: DocumentStatus(status) for document_id, status in rows}, total

    def searchable_collections(self, who: Who) -> set[UUID]:
        """Return the ids of collections with a searchable document."""
        with self._database.transaction(who) as connection:
            return {row[0] for row in connection.execute(queries["searchable_collections"])}

    def others_to_ask(self, who: Who, first: Collection) -> tuple[Collection, ...]:
        """Return the readable, searchable collections besides `first`, oldest first."""
        ready = self.searchable_collections(who)
        return tuple(c for c in self.collections(who) if c.id in ready and c.id != first.id)

    def categories(self, who: Who, collection_id: UUID) -> dict[str, str]:
        """Return a notice board's categories: name by slug."""
        with self._database.transaction(who) as connection:
            return dict(connection.execute(queries["board_categories"], {"collection_id": collection_id}).fetchall())

    def years(self, who: Who, collection_id: UUID) -> tuple[int, ...]:
        """Return the years covered by a collection's documents, latest first."""
        with self._database.transaction(who) as connection:
            rows = connection.execute(queries["document_years"], {"collection_id": collection_id}).fetchall()
        return tuple(row[0] for row in rows)

    def board_figures(self, who: Who, collection_id: UUID, *, only_ready: bool) -> Board:
        """Count a notice board's posts by category."""
        where = {"collection_id": collection_id, "only_ready": only_ready}
        return self._database.fetch_all(who, "board_figures", BoardFigures, **where)

    def posts(self, who: Who, filters: PostFilters, *, limit: int = DOCUMENTS_PER_PAGE, offset: int = 0) -> Documents:
        """Return a page of a board's posts: pinned first, then important, then by date, latest first."""
        parameters = {**filters.parameters(), "limit": limit, "offset": offset}
        rows = self._database.fetch_all(who, "board_page", Document, **parameters)
        return [replace(row, status=DocumentStatus(row.status), step=Step(row.step)) for row in rows]

    def count_posts(self, who: Who, filters: PostFilters) -> int:
        return int(self._database.fetch_value(who, "board_count", **filters.parameters()))

    def get(self, who: Who, document_id: UUID) -> Document:
        """Return a document. Raises `NotFound`, also for documents in other tenants."""
        return readable_document(self._database, who, document_id)

    def pages(self, who: Who, document_id: UUID, *, limit: int | None = None, offset: int = 0) -> Pages:
        """List a document's pages with their text, in order."""
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
        """List a document's chunks without vectors, in order."""
        part = {"document_id": document_id, "chunk_id": chunk_id, "limit": limit, "offset": offset}
        return self._database.fetch_all(who, "find_chunks", DocumentChunk, **part)

    def count_chunks(self, who: Who, document_id: UUID) -> int:
        return int(self._database.fetch_value(who, "count_chunks", document_id=document_id))

    def original(self, who: Who, document_id: UUID) -> bytes:
        """Return a document's file. Raises `NotFound`. The file needs no password: a password was removed at upload."""
        document = self.get(who, document_id)
        if not document.file_path:
            raise NotFound("This document was added without a file. You can find its text on its pages.")
        return self._files.get(document.tenant_id, document.file_path)

    def page_image(
        self, who: Who, document_id: UUID, page: int, *, highlight: str = "", sentence: str = "", scale: float = 2.0
    ) -> bytes:
        """Render a page as PNG, if the person may read the document; see `PageImages.draw`."""
        return self._images.draw(who, document_id, page, highlight=highlight, sentence=sentence, scale=scale)

    def suggested_questions(
        self,
        who: Who,
        collection_id: UUID,
        *,
        other_ids: Sequence[UUID] = (),
        document_ids: Sequence[UUID] = (),
        languages: Sequence[str] = (),
        limit: int = 4,
    ) -> Questions:
        """Suggest questions answered by the collection, from many different documents.

        `other_ids` are further collections; `document_ids` limits the documents. `languages` are the reader's
        languages, preferred first (ISO 639-1; "ko-KR" counts as "ko"). Questions in the reader's languages come first,
        then questions in the collection's language, then the rest.
        """
        rows = self._database.fetch_all(
            who,
            "suggestions",
            SuggestedQuestions,
            collection_ids=[collection_id, *other_ids],
            document_ids=list(document_ids) or None,
        )
        preferred = [language.split("-")[0].lower() for language in languages]
        readers = frozenset(preferred[:1])
        preferred += [collection.language for collection in self.collections(who) if collection.id == collection_id]
        questions: Questions = []
        for group in (*dict.fromkeys(preferred), None):
            question_lists = [
                # Some were chosen before there was this rule.
                [question for question in row.questions if not nobody_asks(question)]
                for row in rows
                if (row.language == group if group is not None else row.language not in preferred)
            ]
            # Limit the documents: a document's second question comes before the sixth document's first.
            questions += varied(_interleave(question_lists)[: 3 * limit], form_of, limit)
            if group in readers and len(questions) < limit:
                rest = [row for row in rows if row.language != group]
                questions += varied(
                    _interleave(self._elsewhere(who, rest, group, limit)), form_of, limit - len(questions)
                )
        return list(dict.fromkeys(questions))[:limit]

    @cached_property
    def _suggest_step(self) -> SuggestStep:
        return SuggestStep(self._database, self._settings)

    def _elsewhere(self, who: Who, rows: Sequence[SuggestedQuestions], language: str, limit: int) -> QuestionLists:
        question_lists: QuestionLists = []
        generated = count = 0
        for row in rows:
            questions = row.elsewhere.get(language)
            if questions is None and generated < MOST_GENERATED and count < limit:
                generated += 1
                try:
                    questions = self._suggest_step.elsewhere(tenant_of(who), row.id, language)
                except (DocumentGone, RagError):  # the page is no worse without them
                    log.warning("No questions in %s could be suggested about document %s", language, row.id)
            question_lists.append(questions or [])
            count += len(question_lists[-1])
        return question_lists

    def queue_state(self, tenant_id: str) -> QueueState:
        """Return the numbers of the tenant's waiting and running jobs, over all processes."""
        state = self._database.fetch_one(tenant_id, "queue_state", QueueState)
        return state or QueueState(waiting=0, later=0, running=0, next_try_at=None)

    def meaning_totals(self, tenant_id: str) -> MeaningTotals:
        """Count chunks, and chunks with vectors from the built-in embedding model.

        If the model is not installed, both counts are 0.
        """
        if self._providers.meaning is None:
            return MeaningTotals(passages=0, done=0)
        totals = self._database.fetch_one(tenant_id, "meaning_totals", MeaningTotals)
        return totals or MeaningTotals(passages=0, done=0)

    def metadata_values(self, who: Who, collection_id: UUID, field: str) -> Questions:
        """List the values of a metadata field in a collection's documents and chunks."""
        with self._database.transaction(who) as connection:
            parameters = {"collection_id": collection_id, "field": field}
            return [row[0] for row in connection.execute(queries["metadata_values"], parameters).fetchall()]
