"""Read a document's pages and language, estimate the cost, and recognise the text in scans.

Recognition starts after the cost is confirmed. A single transaction stores a batch of pages with the cost, and removes
them from the list of pages to recognise. If the process is killed, no page is paid for twice.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.errors import NoTextInPdf, RagError
from rag.ingestion import document_rows
from rag.ingestion.chunking import chunk_document, sizes_for
from rag.ingestion.document_jobs import DocumentGone, DocumentJob, JobControl, hold, progress
from rag.ingestion.document_rows import page_row
from rag.ingestion.estimate import PlannedWork, estimate_work
from rag.ingestion.loaders.format_table import file_formats
from rag.ingestion.loaders.ocr import (
    TextRecognition,
    expected_usage,
    moved_sections,
    pages_to_recognise,
    unread_reasons,
    with_recognised,
)
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.titles import author_from_metadata, title_from_metadata
from rag.ingestion.loaders.values import ExtractedDocument, LoadOptions
from rag.ingestion.passages import EXPORT_TYPE, read_passages
from rag.ingestion.uploads import all_blank, no_text_message, reading_message
from rag.language import N_
from rag.money.durable_calls import DurableCalls
from rag.monitoring.tracing import ms_since
from rag.providers.registry import Providers
from rag.storage.database import queries
from rag.storage.files import Originals
from rag.text.language_detection import detect_language, detect_language_heuristic
from rag.text.spans import join_pages
from rag.types import ChunkingMethod, Document, DocumentStatus, Page, Section, Step, Usage

#: Picture formats, and all formats whose pages may be pictures.
PICTURE_TYPES = frozenset(loader.media_type for loader in file_formats().pictures)
TYPES_WITH_PAGES = frozenset(loader.media_type for loader in file_formats().loaders if loader.may_be_pictures)
#: The shortest time between progress updates, in seconds.
PROGRESS_SECONDS = 0.3
#: A shorter text, in characters, is too short to detect its language by statistics.
SHORT_TEXT = 400
#: A printed page has about 1,800 characters: 30 lines of 60. Estimated, not measured.
CHARACTERS_OF_A_SCAN = 1800
SENTENCE_OF_A_SCAN = "The office is open on all working days, and everyone is welcome to ask for an appointment. "
#: With at least this many other pages, their average length is used instead.
FEWEST_PAGES_TO_JUDGE = 3
IS_PICTURE = N_("This file is a picture. Its text has to be recognised before it can be searched.")
WITHOUT_ENGINE = N_(
    "Text recognition is not set up here, so the text in the file was used instead. To set up text "
    "recognition, paste a key of Upstage on the page Set-up or install Tesseract on the server."
)


class ContentReader(Protocol):
    """Reads content in a profile's special format, for example posts."""

    def load(self, job: DocumentJob, content: bytes, *, on_page: Callable[[int, int], None]) -> ExtractedDocument:
        """Return the pages and metadata. Calls `on_page(done, total)` after each page."""
        ...


class ReadStep:
    """The ingestion step which reads a file in the sandbox, or with a profile's reader."""

    def __init__(
        self,
        control: JobControl,
        files: Originals,
        providers: Providers,
        sandbox: Sandbox,
        recognition: TextRecognition,
        readers: Mapping[str, ContentReader],
    ) -> None:
        self._control = control
        self._readers = readers
        self._files = files
        self._providers = providers
        self._sandbox = sandbox
        self._recognition = recognition

    def read(self, job: DocumentJob) -> None:
        """Read a document's file and store the result. Raises `DocumentError`."""
        started = time.perf_counter()
        content = self._files.get(job.document.tenant_id, job.document.file_path)
        reported_at = 0.0

        def report_progress(done: int, total: int) -> None:
            nonlocal reported_at
            self._control.stop_if_asked()
            if time.monotonic() - reported_at >= PROGRESS_SECONDS:
                reported_at = time.monotonic()
                self._control.note_progress(job, Step.EXTRACT, done, total)

        try:
            document = job.document
            if (reader := self._readers.get(document.mime_type)) is not None:
                extracted = reader.load(job, content, on_page=report_progress)
            elif document.mime_type == EXPORT_TYPE:
                extracted = read_passages(content)  # written by our import
            else:
                extracted = self._sandbox.load(
                    content,
                    file_name=document.file_name,
                    mime_type=document.mime_type,
                    options=LoadOptions(
                        has_paragraphs_by_gaps=job.profile.reading.pdf_paragraphs,
                        separate_files=frozenset(document.metadata.get("attached", ())),
                        on_page=report_progress,
                    ),
                    tenant_id=document.tenant_id,
                )
        except RagError:
            self._control.stop_if_asked()  # the sandbox was ended with the application, not by the file
            raise
        self._store(job, extracted, started)

    def _store(self, job: DocumentJob, extracted: ExtractedDocument, started: float) -> None:
        pages, document = extracted.pages, job.document
        language = document.corrected_language or language_of(
            join_pages(pages), extracted.language or job.collection.language
        )
        is_named = bool(document.metadata.get("is_named"))
        title = "" if is_named else title_from_metadata(extracted.title)
        empty = [page.number for page in pages if not page.text.strip()]
        awaiting, message = self._to_recognise(document, pages)
        is_ready = bool(awaiting) or len(empty) < len(pages)
        estimate = None
        if is_ready:
            expected = pages_as_expected(pages, awaiting)
            estimate = estimate_document(
                self._control,
                job,
                replace(
                    extracted, title=title, pages=expected, sections=moved_sections(extracted.sections, pages, expected)
                ),
                self._providers,
                recognition=expected_usage(self._recognition.engine, len(awaiting)),
            )
            sentence = reading_message(pages, awaiting=awaiting, assumed=expected_characters(pages, awaiting))
            message = " ".join(filter(None, (sentence, message)))
        unready = (
            DocumentStatus.FAILED if all_blank(pages) or not may_be_pictures(document) else DocumentStatus.NEEDS_OCR
        )
        with self._control.database.transaction(document.tenant_id) as connection:
            hold(connection, job)
            connection.execute(queries["remove_pages"], job.key)
            document_rows.add_pages(connection, document, [with_language(page, language) for page in pages])
            connection.execute(
                queries["finish_reading"],
                {
                    **job.key,
                    "status": DocumentStatus.ESTIMATED if is_ready else unready,
                    "message": message if is_ready else unready_message(document, pages),
                    "ocr_pages": awaiting,
                    "title": title or None,
                    "page_count": len(pages),
                    "empty_pages": empty,
                    "character_count": sum(len(page.text) for page in pages),
                    "language": language,
                    "estimate": Jsonb(estimate) if estimate else None,
                    "metadata": Jsonb(
                        {
                            "sections": [vars(section) for section in extracted.sections],
                            **({"author": author} if (author := author_from_metadata(extracted.author)) else {}),
                            **extracted.metadata,
                        }
                    ),
                    "elapsed_ms": round(ms_since(started)),
                },
            )

    def _to_recognise(self, document: Document, pages: Sequence[Page]) -> tuple[list[int], str]:
        """Return the numbers of pages which need text recognition, and a warning if no engine is installed."""
        if not may_be_pictures(document):
            return [], ""
        pdf_type = "auto" if document.mime_type in PICTURE_TYPES else document.pdf_type
        page_numbers = pages_to_recognise(pages, pdf_type)
        if self._recognition.engine is not None or pdf_type != "scanned":
            return page_numbers if self._recognition.engine is not None else [], ""
        return [], WITHOUT_ENGINE


def may_be_pictures(document: Document) -> bool:
    """Whether a document's pages can be rendered to images. Only these may be scans."""
    return document.mime_type in TYPES_WITH_PAGES


def unready_message(document: Document, pages: Sequence[Page]) -> str:
    """Return a sentence which says why a document cannot be searched."""
    is_picture = document.mime_type in PICTURE_TYPES and not all_blank(pages)
    return IS_PICTURE if is_picture else no_text_message(pages)


def pages_as_expected(pages: Sequence[Page], awaiting: Sequence[int]) -> tuple[Page, ...]:
    """Give pages which await recognition a text of the expected length, to estimate costs."""
    if not awaiting:
        return tuple(pages)
    length = expected_characters(pages, awaiting)
    text = (SENTENCE_OF_A_SCAN * (length // len(SENTENCE_OF_A_SCAN) + 1))[:length]
    return tuple(replace(page, text=page.text or text) if page.number in awaiting else page for page in pages)


def expected_characters(pages: Sequence[Page], awaiting: Sequence[int]) -> int:
    """Estimate the number of characters on a scanned page, from the document's other pages or from a typical page."""
    lengths = [len(page.text) for page in pages if page.text.strip() and page.number not in awaiting]
    return sum(lengths) // len(lengths) if len(lengths) >= FEWEST_PAGES_TO_JUDGE else CHARACTERS_OF_A_SCAN


def estimate_document(
    control: JobControl,
    job: DocumentJob,
    extracted: ExtractedDocument,
    providers: Providers,
    *,
    recognition: Usage | None = None,
) -> dict[str, Any]:
    """Estimate the cost to process a document, in JSON for storage."""
    pages = extracted.pages
    # Chunks by topic are known only after paying for them; the method `smart` gives about the same number.
    chosen = job.document.chunking_method
    method: ChunkingMethod = "smart" if chosen == "semantic" else chosen
    chunks = chunk_document(
        pages,
        extracted.sections,
        method=method,
        file_name=job.document.file_name,
        limits=job.profile.chunking,
        **sizes_for(job.profile, method),
    )
    tagger = providers.translation_model_for(job.profile) if job.document.generate_metadata else None
    embedder = providers.embedder_for(job.collection.embedding_model)
    work = PlannedWork(
        title=extracted.title or job.document.title,
        text=join_pages(pages),
        pages=len(pages),
        chunks=chunks,
        method=chosen,
        embedder=embedder,
        tagger=tagger,
        chunk_tags=job.profile.reading.chunk_tags,
        tag_values=job.profile.reading.tag_values,
        recognition=recognition,
    )
    return estimate_work(control.database, job, work)


def language_of(text: str, claimed: str) -> str:
    """Detect a text's language from the start and the middle, because a title page may be in a different language.

    For a short text, only function words and script are used. If no language is detected, returns `claimed`, the
    language declared in the file.
    """
    if len(text) < SHORT_TEXT:
        return detect_language_heuristic(text) or claimed
    middle = len(text) // 2
    sample = f"{text[:1500]}\n{text[middle : middle + 1500]}" if len(text) > 3000 else text
    return detect_language(sample) or claimed


def with_language(page: Page, language: str) -> tuple[Page, str]:
    return page, detect_language_heuristic(page.text[:800]) or language if page.text.strip() else ""


NOTHING_RECOGNISED = N_(
    "Text recognition found no text on any page of this file. Scan the pages again, larger or more clearly."
)


class RecogniseStep:
    """The ingestion step which recognises text in scanned pages."""

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
        """Recognise the text on scanned pages. Returns all pages, and the sections at their new start positions.

        Raises `NoTextInPdf` if no page has text, `SettingsError` without a recognition engine, `ProviderError` and
        `DocumentError`. Finished pages are kept after an error.
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
