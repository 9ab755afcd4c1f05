"""Correct the text on pages, and apply the corrections again when a document is read again or replaced.

A correction stores a hash of the page's text as read from the file. It applies to every version which has a page with
this text. Saving creates a new version. Unchanged chunks keep their vectors and tags.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin
from rag.errors import InvalidInput, NotFound, StepNotPossible, TextChanged
from rag.ingestion.chunking import chunk_document, sizes_for
from rag.ingestion.document_jobs import DocumentJob, JobControl, JobQueue, hold
from rag.ingestion.document_rows import find_document, find_pages, page_from_row
from rag.ingestion.estimate import PlannedWork, costs_money, estimate_work
from rag.ingestion.loaders.ocr import moved_sections
from rag.ingestion.passages import EXPORT_TYPE
from rag.ingestion.reading import with_language
from rag.language import N_
from rag.providers.registry import Providers
from rag.storage.database import Database, queries
from rag.text.spans import join_pages
from rag.types import (
    Chunk,
    ChunkingMethod,
    Document,
    DocumentPage,
    Identity,
    Page,
    PageCorrection,
    Section,
    Who,
    sections_from_json,
    storable,
    title_with_pages,
)

#: Some hundred printed pages.
MOST_CHARACTERS = 200_000
NOT_APPLIED = N_(
    "A correction was not applied, because the text of its page has changed. You can see and apply the "
    "correction on the tab Pages."
)


@dataclass(frozen=True)
class CorrectionPlan:
    """A correction's effect: the document, how many chunks to embed, and the estimated cost."""

    document: Document
    passages: int
    estimate: dict[str, Any]


@dataclass(frozen=True)
class _Change:
    job: DocumentJob
    added: PageCorrection
    follows: UUID | None
    before: Sequence[DocumentPage]
    after: Sequence[DocumentPage]
    sections: tuple[Section, ...]


class Corrections:
    """Read and save corrections. Changes need an administrator."""

    def __init__(
        self,
        database: Database,
        providers: Providers,
        queue: JobQueue,
        check_spending: Callable[[Who], None] = lambda who: None,
    ) -> None:
        self._database = database
        self._providers = providers
        self._queue = queue
        self._check_spending = check_spending
        self._control = JobControl(database)

    def of(self, who: Who, document: Document) -> list[PageCorrection]:
        """List the corrections in all versions of a document, latest first."""
        return find_corrections(self._database, who, document.original_id or document.id)

    def plan(self, identity: Identity, document_id: UUID, page: int, text: str | None) -> CorrectionPlan:
        """Estimate the cost of a page's new text. `None` restores the original text. Raises the errors from `save`."""
        return self._plan(self._change(identity, document_id, page, text, None))

    def save(
        self,
        identity: Identity,
        document_id: UUID,
        page: int,
        text: str | None,
        *,
        seen: str,
    ) -> Document:
        """Save a page's text, and return the document's new version. `None` restores the original text.

        `seen` is the fingerprint of the text which the person started from. Raises `TextChanged` if the text has
        changed since then, `StepNotPossible` while a different version is being made, `BudgetSpent`, `NotFound`, and
        `InvalidInput` if the text is empty or too long.
        """
        document = self._document(identity, document_id)
        with self._database.transaction(identity) as connection:
            connection.execute(queries["lock_versions"], {"original_id": document.original_id})
            change = self._change(identity, document_id, page, text, seen)
            plan = self._plan(change)
            if costs_money(plan.estimate):
                self._check_spending(identity)
            new_id = self._store(connection, change, plan)
            self._queue.enqueue(identity.tenant_id, new_id, connection=connection)
        return self._document(identity, new_id)

    def dismiss(self, identity: Identity, document_id: UUID, correction_id: UUID) -> None:
        """Drop a correction listed by `not_applied`. Raises `NotFound`."""
        document = self._document(identity, document_id)
        with self._database.transaction(identity) as connection:
            connection.execute(queries["lock_versions"], {"original_id": document.original_id})
            latest = find_corrections(self._database, identity, document.original_id, only_latest=True)
            rows = find_pages(self._database, identity, document_id)
            waiting = not_applied(latest, rows)
            ended = next((c for c in waiting if c.id == correction_id), None)
            if ended is None:
                raise NotFound("This correction no longer needs a decision.")
            self._add(
                connection, document, replace(ended, text_before=ended.text_after or "", text_after=None), ended.id
            )
            if len(waiting) == 1:
                message = " ".join(document.message.replace(NOT_APPLIED, "").split())
                parameters = {"document_id": document_id, "metadata": Jsonb({}), "message": message}
                connection.execute(queries["note_metadata"], parameters)

    def _document(self, identity: Identity, document_id: UUID) -> Document:
        require_admin(identity)
        document = find_document(self._database, identity, document_id)
        if document is None:
            raise NotFound("This document does not exist. It may have been deleted.")
        return document

    def _change(
        self,
        identity: Identity,
        document_id: UUID,
        number: int,
        text: str | None,
        expected: str | None,
    ) -> _Change:
        document = self._document(identity, document_id)
        if document.mime_type == EXPORT_TYPE:
            raise InvalidInput("Imported passages stay as they are. Upload the document itself to correct its text.")
        if text is not None:
            text = usable(text)
        job = self._latest(identity, document)
        rows = find_pages(self._database, identity, job.document.id)
        row = next((row for row in rows if row.number == number), None)
        if row is None:
            raise NotFound(f"This document has no page {number}.")
        if expected is not None and expected != fingerprint(row.text):
            raise TextChanged(text=row.text, fingerprint=fingerprint(row.text))
        new_text = row.as_read if text is None else text
        latest = find_corrections(self._database, identity, job.document.original_id, only_latest=True)
        if new_text == row.text:
            raise InvalidInput("Nothing was changed in the text of this page.")
        followed = placed(latest, rows).get(number)
        added = PageCorrection(
            id=uuid4(),
            page=number,
            read_hash=read_hash(row.as_read),
            text_before=row.text,
            text_after=None if new_text == row.as_read else new_text,
            corrected_by=identity.account_id,
            corrected_by_name="",
            created_at=datetime.now(UTC),
            is_latest=True,
        )
        with self._database.transaction(identity) as connection:
            sections = stored_sections(connection, job)
        after, sections = with_corrections(rows, sections, [added, *(c for c in latest if c != followed)])
        return _Change(job, added, followed.id if followed else None, rows, after, sections)

    def _latest(self, identity: Identity, document: Document) -> DocumentJob:
        with self._database.transaction(identity) as connection:
            parameters = {"original_id": document.original_id}
            version_id, is_other_in_progress = connection.execute(
                queries["version_to_correct"], parameters
            ).fetchone() or (
                None,
                False,
            )
        if is_other_in_progress:
            raise StepNotPossible(
                "Another version of this document is being made. Save again when that version is ready."
            )
        if version_id is None:
            raise StepNotPossible("Only the text of a document that is ready can be corrected.")
        return self._control.job(identity.tenant_id, version_id)

    def _plan(self, change: _Change) -> CorrectionPlan:
        job, pages = change.job, [page_from_row(row) for row in change.after]
        # Chunks by topic are known only after paying for them.
        chosen = job.document.chunking_method
        method: ChunkingMethod = "smart" if chosen == "semantic" else chosen
        chunks = chunk_document(
            pages,
            change.sections,
            method=method,
            file_name=job.document.file_name,
            limits=job.profile.chunking,
            **sizes_for(job.profile, method),
        )
        embedder = self._providers.embedder_for(job.collection.embedding_model)
        new = chunks if chosen == "semantic" else self._without_vector(job, chunks)
        tags = job.profile.reading.chunk_tags if job.document.generate_metadata and new else ()
        tagger = self._providers.translation_model_for(job.profile) if tags else None
        work = PlannedWork(
            title=job.document.title,
            text=join_pages(pages),
            pages=len(pages),
            chunks=new,
            method=chosen,
            embedder=embedder,
            tagger=tagger,
            chunk_tags=tags,
            tag_values=job.profile.reading.tag_values,
        )
        return CorrectionPlan(job.document, len(new), estimate_work(self._database, job, work))

    def _without_vector(self, job: DocumentJob, chunks: Sequence[Chunk]) -> list[Chunk]:
        parameters = {
            "original_id": job.document.original_id,
            "embedding_model": job.collection.embedding_model,
        }
        with self._database.transaction(job.document.tenant_id) as connection:
            embedded = set(connection.execute(queries["embedded_texts"], parameters).fetchall())
        return [c for c in chunks if (_md5(storable(c.content)), storable(c.section)) not in embedded]

    def _store(self, connection: Connection, change: _Change, plan: CorrectionPlan) -> UUID:
        document = change.job.document
        self._add(connection, document, change.added, change.follows)
        parameters = {"document_id": document.id, "estimate": Jsonb(plan.estimate)}
        for (new_id,) in connection.execute(queries["add_corrected_version"], parameters).fetchall():
            connection.execute(queries["copy_pages"], {"document_id": document.id, "new_id": new_id})
            store_texts(connection, replace(document, id=new_id), change.before, change.after, change.sections)
            return UUID(str(new_id))
        raise NotFound("This document does not exist. It may have been deleted.")

    def _add(
        self, connection: Connection, document: Document, correction: PageCorrection, follows: UUID | None
    ) -> None:
        parameters = {
            "collection_id": document.collection_id,
            "original_id": document.original_id,
            "page": correction.page,
            "place": title_with_pages(document.title, correction.page, correction.page),
            "read_hash": correction.read_hash,
            "text_before": correction.text_before,
            "text_after": correction.text_after,
            "follows": follows,
        }
        connection.execute(queries["add_page_correction"], parameters)


@dataclass(frozen=True)
class CorrectedPages:
    """Pages and sections after corrections, and the numbers of the corrected pages.

    `message` tells administrators which corrections could not be applied.
    """

    pages: Sequence[Page]
    sections: tuple[Section, ...]
    numbers: frozenset[int] = frozenset()
    message: str = ""


class CorrectStep:
    """The ingestion step which applies corrections to a new version."""

    def __init__(self, control: JobControl) -> None:
        self._control = control

    def run(self, job: DocumentJob, pages: Sequence[Page]) -> CorrectedPages:
        """Return the pages with corrections applied. A repeated run gives the same result. Raises `DocumentGone`."""
        database, document = self._control.database, job.document
        latest = find_corrections(database, document.tenant_id, document.original_id, only_latest=True)
        with database.transaction(document.tenant_id) as connection:
            hold(connection, job)
            sections = stored_sections(connection, job)
            if not latest:
                return CorrectedPages(pages, sections)
            before = find_pages(database, document.tenant_id, document.id)
            after, sections = with_corrections(before, sections, latest)
            store_texts(connection, document, before, after, sections)
        numbers = frozenset(row.number for row in after if row.is_corrected)
        return CorrectedPages(
            [page_from_row(row) for row in after], sections, numbers, not_applied_message(latest, after)
        )

    def message(self, job: DocumentJob) -> str:
        """Return a sentence about corrections which could not be applied, or ""."""
        database, document = self._control.database, job.document
        latest = find_corrections(database, document.tenant_id, document.original_id, only_latest=True)
        return not_applied_message(latest, find_pages(database, document.tenant_id, document.id)) if latest else ""


def find_corrections(
    database: Database, who: Who, original_id: UUID | None, *, only_latest: bool = False
) -> list[PageCorrection]:
    """Return a document's corrections in all versions, latest first. `only_latest` omits replaced corrections."""
    where = {"original_id": original_id, "only_latest": only_latest}
    return database.fetch_all(who, "page_corrections", PageCorrection, **where)


def usable(text: str) -> str:
    """Normalise a text typed by a person, for storage. Raises `InvalidInput` if the text is empty or too long."""
    text = storable(text.replace("\r\n", "\n").replace("\r", "\n"))
    if not text.strip():
        raise InvalidInput("Type the text of the page: a page without text cannot be found.")
    if len(text) > MOST_CHARACTERS:
        raise InvalidInput(f"The text of a page can have {MOST_CHARACTERS:,} characters at most.")
    return text


def fingerprint(text: str) -> str:
    """Hash a text, to detect changes."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_hash(text: str) -> str:
    """Hash a page's text without whitespace, to find the same page after the file is read again."""
    return fingerprint(" ".join(text.split()))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def placed(latest: Iterable[PageCorrection], pages: Sequence[DocumentPage]) -> dict[int, PageCorrection]:
    """Assign corrections to pages. Returns the correction for each page number.

    A correction belongs to the page with the same number if the file's text on this page has not changed. Otherwise the
    correction belongs to the only page with the same text, if there is exactly one.
    """
    hashes = {page.number: read_hash(page.as_read) for page in pages}
    by_page: dict[int, PageCorrection] = {}
    moved = []
    for correction in latest:
        if hashes.get(correction.page) != correction.read_hash:
            moved.append(correction)
        else:
            by_page.setdefault(correction.page, correction)
    for correction in moved:
        numbers = [number for number, page_hash in hashes.items() if page_hash == correction.read_hash]
        # All blank pages have the same hash.
        if len(numbers) == 1 and correction.read_hash != read_hash(""):
            by_page.setdefault(numbers[0], correction)
    return by_page


def of_page(
    number: int, pages: Sequence[DocumentPage], history: Sequence[PageCorrection]
) -> tuple[list[PageCorrection], PageCorrection | None]:
    """Return all corrections for a page, and the applied correction or `None`."""
    holding = placed([correction for correction in history if correction.is_latest], pages).get(number)
    applied_hash = holding.read_hash if holding else None
    return [c for c in history if number == c.page or c.read_hash == applied_hash], holding


def not_applied(latest: Sequence[PageCorrection], pages: Sequence[DocumentPage]) -> list[PageCorrection]:
    """Return the latest corrections which cannot be applied, because the file's text on the page has changed.

    Corrections which restore the original text, or which a newer correction on the same page replaces, are left out.
    """
    holding = placed([c for c in latest if c.is_latest], pages)
    ids = {correction.id for correction in holding.values()}
    return [
        c
        for c in latest
        if c.is_latest
        and c.text_after is not None
        and c.id not in ids
        and not (c.page in holding and holding[c.page].created_at > c.created_at)
    ]


def missing(history: Sequence[PageCorrection], pages: Sequence[DocumentPage]) -> dict[int, PageCorrection]:
    """Return the corrections missing in the page's text, by page number.

    This happens, for example, after an earlier version was restored.
    """
    texts = {page.number: page.text for page in pages}
    holding = placed([correction for correction in history if correction.is_latest], pages)
    return {n: c for n, c in holding.items() if c.text_after is not None and c.text_after != texts[n]}


def not_applied_message(latest: Sequence[PageCorrection], pages: Sequence[DocumentPage]) -> str:
    return NOT_APPLIED if not_applied(latest, pages) else ""


def with_corrections(
    pages: Sequence[DocumentPage], sections: tuple[Section, ...], latest: Sequence[PageCorrection]
) -> tuple[list[DocumentPage], tuple[Section, ...]]:
    """Return the pages with their corrections, and the sections at their new positions."""
    holding = placed(latest, pages)
    after = []
    for page in pages:
        correction = holding.get(page.number)
        text, read = correction.text_after if correction else None, page.as_read
        is_corrected = text is not None and text != read
        after.append(replace(page, text=text or read, read_text=read if is_corrected else None))
    if [page.text for page in pages] == [page.text for page in after]:
        return after, sections
    return after, moved_sections(sections, *([page_from_row(row) for row in rows] for rows in (pages, after)))


def stored_sections(connection: Connection, job: DocumentJob) -> tuple[Section, ...]:
    row = connection.execute(queries["sections_of_document"], job.key).fetchone()
    return tuple(sections_from_json(row[0])) if row else ()


def store_texts(
    connection: Connection,
    document: Document,
    before: Sequence[DocumentPage],
    after: Sequence[DocumentPage],
    sections: Sequence[Section],
) -> None:
    """Store the changed pages, the document's counts, and the sections, in the caller's transaction."""
    changed = [
        new for old, new in zip(before, after, strict=True) if (old.text, old.read_text) != (new.text, new.read_text)
    ]
    if not changed:
        return
    rows = [
        {
            "document_id": document.id,
            "number": page.number,
            "text": page.text,
            "read_text": page.read_text,
            "characters": len(page.text),
            "language": with_language(page_from_row(page), document.language)[1],
        }
        for page in changed
    ]
    with connection.cursor() as cursor:
        cursor.executemany(queries["correct_page"], rows)
    connection.execute(
        queries["note_recognised"],
        {
            "document_id": document.id,
            "ocr_pages": list(document.ocr_pages),
            "empty_pages": [page.number for page in after if not page.text.strip()],
            "character_count": sum(len(page.text) for page in after),
            "language": None,
            "sections": Jsonb([vars(section) for section in sections]),
        },
    )


def with_corrected_pages(chunks: Sequence[Chunk], corrected: Iterable[int]) -> list[Chunk]:
    """Store the numbers of the corrected pages in each chunk's metadata field `corrected_pages`."""
    numbers = sorted(corrected)
    noted = []
    for chunk in chunks:
        chunk_pages = [number for number in numbers if chunk.first_page <= number <= chunk.last_page]
        noted.append(
            replace(chunk, metadata={**chunk.metadata, "corrected_pages": chunk_pages}) if chunk_pages else chunk
        )
    return noted
