"""Recognise a document's scans, and store each batch with its receipt in one transaction.

Text recognition runs after the cost is confirmed. A stored page leaves the list of pending pages, so a killed process
pays for no page twice.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.errors import NoTextInPdf
from rag.ingestion.document_jobs import DocumentGone, DocumentJob, JobControl, progress
from rag.ingestion.document_rows import page_row
from rag.ingestion.loaders.ocr import TextRecognition, moved_sections, unread_reasons, with_recognised
from rag.ingestion.reading import language_of, with_language
from rag.language import N_
from rag.money.durable_calls import DurableCalls
from rag.storage.database import queries
from rag.storage.files import Originals
from rag.text.spans import join_pages
from rag.types import Page, Section, Step

NOTHING_RECOGNISED = N_("Text recognition found no text on any page of this file. Scan it again, larger or clearer.")


class RecogniseStep:
    """Recognises the text in pages which are pictures."""

    def __init__(
        self, control: JobControl, files: Originals, recognition: TextRecognition, calls: DurableCalls
    ) -> None:
        self._control = control
        self._files = files
        self._recognition = recognition
        self._calls = calls

    def run(
        self, job: DocumentJob, pages: Sequence[Page], sections: tuple[Section, ...]
    ) -> tuple[Sequence[Page], tuple[Section, ...]]:
        """Return the pages with their text, and the sections at their new places.

        Raises `NoTextInPdf` if finally no page has text, `SettingsError` if the engine is gone, `ProviderError`s and
        `DocumentError`s; paid pages are kept.
        """
        awaited = list(job.document.ocr_pages)
        if awaited:
            content = self._files.get(job.document.tenant_id, job.document.file_path)
            fingerprint, total = hashlib.sha256(content).hexdigest(), len(awaited)
            self._control.note_progress(job, Step.RECOGNISE, 0, total)
            for batch in self._recognition.batches(awaited):
                self._control.stop_if_asked()
                started = time.perf_counter()
                receipt = self._calls.receipt(job.payer, "ocr", [fingerprint, *map(str, batch)])
                read = self._recognition.recognise(
                    content,
                    [page for page in pages if page.number in batch],
                    language=job.document.language or job.collection.language,
                    tenant_id=job.document.tenant_id,
                    receipt=receipt,
                )
                awaited = [number for number in awaited if number not in batch]
                changed = with_recognised(pages, read)
                sections = moved_sections(sections, pages, changed)
                pages = changed
                with self._control.database.transaction(job.document.tenant_id) as connection:
                    receipt.settle(connection)
                    is_there = connection.execute(queries["hold_document"], job.key).fetchone() is not None
                    if is_there:
                        _store(connection, job, read, pages, sections, awaited)
                        noted = progress(job, Step.RECOGNISE, total - len(awaited), total, started)
                        connection.execute(queries["note_progress"], noted)
                if not is_there:
                    raise DocumentGone
        if not any(page.text.strip() for page in pages):
            raise NoTextInPdf(next(unread_reasons(pages), NOTHING_RECOGNISED))
        return pages, sections


def _store(
    connection: Connection,
    job: DocumentJob,
    read: Sequence[Page],
    pages: Sequence[Page],
    sections: Sequence[Section],
    awaited: Sequence[int],
) -> None:
    """Store a batch of pages, and the document's sections and language with all `pages`."""
    # A scan's language is known only now; the earlier language was a guess.
    language = language_of(join_pages(pages), job.document.language or job.collection.language)
    rows = [page_row(job.document, *with_language(page, language)) for page in read]
    with connection.cursor() as cursor:
        cursor.executemany(queries["change_page"], rows)
    connection.execute(
        queries["note_recognised"],
        {
            **job.key,
            "ocr_pages": list(awaited),
            "empty_pages": [page.number for page in pages if not page.text.strip()],
            "character_count": sum(len(page.text) for page in pages),
            "language": language or None,
            "sections": Jsonb([vars(section) for section in sections]),
        },
    )
