"""The first step: pages out of the file, with their language and what processing them would cost."""

from __future__ import annotations

import time
from typing import Any

from psycopg.types.json import Jsonb

from rag.database import queries
from rag.errors import RagError
from rag.files import FileStore
from rag.ingestion import chunk_rows
from rag.ingestion.chunking import chunk_document, join_pages, sizes_for
from rag.ingestion.counted import counted_before
from rag.ingestion.estimate import amounts_to_json, estimate_costs
from rag.ingestion.extracted import ExtractedPdf
from rag.ingestion.messages import no_text_message, reading_message
from rag.ingestion.sandbox import Sandbox
from rag.ingestion.titles import title_from_metadata
from rag.ingestion.work import Bench, Work, hold, ms_since
from rag.providers.registry import Providers
from rag.retrieval.query_analysis import detect_language, detect_language_heuristic
from rag.types import ChunkingMethod, DocumentStatus, Page, Section, Step

#: Progress is written at most this often, in seconds.
PROGRESS_SECONDS = 0.3
#: Characters below which a text is too short to tell its language by statistics.
SHORT_TEXT = 400


class Reader:
    """Reads files in the sandbox and stores what was read in one transaction."""

    def __init__(self, bench: Bench, files: FileStore, providers: Providers, sandbox: Sandbox) -> None:
        self._bench = bench
        self._files = files
        self._providers = providers
        self._sandbox = sandbox

    def read(self, work: Work) -> None:
        """Read a document's file. Raises what the sandbox says is wrong with it."""
        started = time.monotonic()
        content = self._files.get(work.document.tenant_id, work.document.file_path)
        told = 0.0

        def tell(done: int, total: int) -> None:
            nonlocal told
            self._bench.stop_if_asked()
            if time.monotonic() - told >= PROGRESS_SECONDS:
                told = time.monotonic()
                self._bench.note_progress(work, Step.EXTRACT, done, total)

        try:
            extracted = self._sandbox.load(content, file_name=work.document.file_name, on_page=tell)
        except RagError:
            self._bench.stop_if_asked()  # the sandbox was ended with the application, not by the file
            raise
        self._store(work, extracted, started)

    def _store(self, work: Work, extracted: ExtractedPdf, started: float) -> None:
        """Pages, sections, language and estimate in one transaction."""
        pages, document = extracted.pages, work.document
        text = join_pages(pages)
        language = _language_of(text, extracted.language or work.collection.language)
        title = title_from_metadata(extracted.title)
        empty = [page.number for page in pages if not page.text.strip()]
        has_text = len(empty) < len(pages)
        estimate = (
            estimate_document(self._bench, work, title or document.title, pages, extracted.sections, self._providers)
            if has_text
            else None
        )
        with self._bench.database.transaction(document.tenant_id) as connection:
            hold(connection, work)
            connection.execute(queries["remove_pages"], work.key)
            chunk_rows.add_pages(connection, document, [_with_language(page, language) for page in pages])
            connection.execute(
                queries["finish_reading"],
                {
                    **work.key,
                    "status": DocumentStatus.ESTIMATED if has_text else DocumentStatus.NEEDS_OCR,
                    "message": reading_message(pages) if has_text else no_text_message(pages),
                    "title": title or None,
                    "page_count": len(pages),
                    "empty_pages": empty,
                    "character_count": sum(len(page.text) for page in pages),
                    "language": language,
                    "estimate": Jsonb(estimate) if estimate else None,
                    "metadata": Jsonb(
                        {
                            "sections": [vars(section) for section in extracted.sections],
                            **({"author": extracted.author[:200]} if extracted.author.strip() else {}),
                            **extracted.metadata,
                        }
                    ),
                    "elapsed_ms": ms_since(started),
                },
            )


def estimate_document(
    bench: Bench,
    work: Work,
    title: str,
    pages: tuple[Page, ...],
    sections: tuple[Section, ...],
    providers: Providers,
) -> dict[str, Any]:
    """What processing pages that were read would cost, as it is stored."""
    # Where a semantic cut will fall is known only after paying for it; a smart one gives about as many chunks.
    wanted = work.document.chunking_method
    method: ChunkingMethod = "smart" if wanted == "semantic" else wanted
    chunks = chunk_document(
        pages, sections, method=method, file_name=work.document.file_name, **sizes_for(work.profile, method)
    )
    tagger = providers.translation_model_for(work.profile) if work.document.generate_metadata else None
    embedder = providers.embedder_for(work.collection.embedding_model)
    return amounts_to_json(
        estimate_costs(
            title,
            join_pages(pages),
            len(pages),
            chunks,
            method=work.document.chunking_method,
            embedder=embedder,
            tagger=tagger,
            prices=work.prices,
            chunk_tags=work.profile.chunk_tags,
            counted=counted_before(bench.database, work, embedder, tagger),
        )
    )


def _language_of(text: str, claimed: str) -> str:
    """The language of the beginning and the middle: a title page alone may be in another.

    A few words are no ground for a statistical guess; there what the file or the collection says holds.
    """
    if len(text) < SHORT_TEXT:
        return detect_language_heuristic(text) or claimed
    middle = len(text) // 2
    sample = f"{text[:1500]}\n{text[middle : middle + 1500]}" if len(text) > 3000 else text
    return detect_language(sample) or claimed


def _with_language(page: Page, language: str) -> tuple[Page, str]:
    return page, detect_language_heuristic(page.text[:800]) or language if page.text.strip() else ""
