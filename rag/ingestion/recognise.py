"""Recognise text, page by page or in batches, each stored with its bill in one transaction.

It runs once the cost is confirmed. A page leaves the list of those awaited as it is stored, so a killed process pays
for none of them again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any

from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.errors import NoTextInPdf
from rag.ingestion.chunking import join_pages
from rag.ingestion.document_jobs import DocumentGone, DocumentJob, progress
from rag.ingestion.document_rows import page_row
from rag.ingestion.loaders.ocr import RecognisedPages, TextRecognition, moved_sections, with_recognised
from rag.ingestion.paid_calls import PaidCall, PaidCalls
from rag.ingestion.reading import language_of, with_language
from rag.providers.upstage import MODEL
from rag.storage.database import queries
from rag.storage.files import Originals
from rag.types import Page, Section, Step, Usage

NOTHING_RECOGNISED = "Text recognition found no text on any page of this file. Scan it again, larger or clearer."


class RecogniseStep:
    """Gives pages that are pictures their text."""

    def __init__(self, files: Originals, recognition: TextRecognition, calls: PaidCalls) -> None:
        self._files = files
        self._recognition = recognition
        self._calls = calls
        self._control = calls.control

    def run(
        self, job: DocumentJob, pages: Sequence[Page], sections: tuple[Section, ...]
    ) -> tuple[Sequence[Page], tuple[Section, ...]]:
        """Return the pages with their text, and the sections at their new places.

        Raises `NoTextInPdf` when there is no text on any page in the end, `SettingsError` when there is no engine any
        more, `ProviderError`s, `DocumentError`s; what is paid is kept.
        """
        awaited = list(job.document.ocr_pages)
        if awaited:
            content = self._files.get(job.document.tenant_id, job.document.file_path)
            total = len(awaited)
            self._control.note_progress(job, Step.RECOGNISE, 0, total)
            for batch in self._recognition.batches(awaited):
                self._control.stop_if_asked()
                started = time.monotonic()
                call, read = self._recognised(job, content, [page for page in pages if page.number in batch])
                awaited = [number for number in awaited if number not in batch]
                changed = with_recognised(pages, read.pages)
                sections = moved_sections(sections, pages, changed)
                pages = changed
                noted = progress(job, Step.RECOGNISE, total - len(awaited), total, started)
                self._store(job, pages, sections, read, call, awaited, noted)
        if not any(page.text.strip() for page in pages):
            raise NoTextInPdf(NOTHING_RECOGNISED)
        return pages, sections

    def _recognised(
        self, job: DocumentJob, content: bytes, pages: Sequence[Page]
    ) -> tuple[PaidCall | None, RecognisedPages]:
        document = job.document
        language = document.language or job.collection.language

        def recognise() -> RecognisedPages:
            return self._recognition.recognise(content, pages, language=language, tenant_id=document.tenant_id)

        if self._recognition.engine != "upstage":
            return None, recognise()
        known_by = ["upstage", hashlib.sha256(content).hexdigest(), *(str(page.number) for page in pages)]
        return self._calls.make(
            document.tenant_id,
            document.id,
            "ocr",
            known_by,
            recognise,
            expected=Usage(provider="upstage", model=MODEL, pages=len(pages), is_estimated=True),
        )

    def _store(
        self,
        job: DocumentJob,
        pages: Sequence[Page],
        sections: Sequence[Section],
        read: RecognisedPages,
        call: PaidCall | None,
        awaited: Sequence[int],
        noted: dict[str, Any],
    ) -> None:
        """Store one batch: its pages, its bill, and the document's sections and language."""
        document = job.document
        with self._control.database.transaction(document.tenant_id) as connection:
            self._calls.settle(connection, call, [read.usage] if read.usage else [], job.prices)
            is_there = connection.execute(queries["hold_document"], job.key).fetchone() is not None
            if is_there:
                self._change_pages(connection, job, pages, sections, read, awaited)
                connection.execute(queries["note_progress"], noted)
        if not is_there:
            raise DocumentGone

    def _change_pages(
        self,
        connection: Connection,
        job: DocumentJob,
        pages: Sequence[Page],
        sections: Sequence[Section],
        read: RecognisedPages,
        awaited: Sequence[int],
    ) -> None:
        # A scan's language is known only now; the one so far was a guess.
        language = language_of(join_pages(pages), job.document.language or job.collection.language)
        rows = [page_row(job.document, *with_language(page, language)) for page in read.pages]
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
