"""Scanned documents through the pipeline: estimated, confirmed, recognised, billed once, searchable."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import pytest

from rag.errors import DocumentError, NoTextInPdf, ProviderKeyRejected, ProviderUnavailable
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.queue import Queue, waiting_sentence
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.providers.retry import ATTEMPTS
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Collection, Document, DocumentStatus, Identity, PdfType, Step, UploadOptions
from rag.ui.document_pages import read_by
from tests import hostile
from tests.ingestion.uploads import confirmed
from tests.standins.providers import ProviderStandin

Make = Callable[..., tuple[DocumentLibrary, IngestionPipeline]]


@pytest.fixture
def make(database: Database, files: FileStore, settings: Settings, sandbox: Sandbox) -> Iterator[Make]:
    """The product with other settings on the same database."""
    made: list[Providers] = []

    def parts(**changed: object) -> tuple[DocumentLibrary, IngestionPipeline]:
        own = replace(settings, **changed)  # type: ignore[arg-type]
        ledger, providers = Ledger(database), Providers(own)
        pipeline = IngestionPipeline(database, files, providers, ledger, own, sandbox=sandbox)
        made.append(providers)
        queue = Queue(database, pipeline)
        return DocumentLibrary(database, files, providers, own, queue, sandbox=sandbox), pipeline

    yield parts
    for providers in made:
        providers.close()


@pytest.fixture
def with_upstage(make: Make, provider_standin: ProviderStandin) -> tuple[DocumentLibrary, IngestionPipeline]:
    return make(upstage_api_key="key", upstage_base_url=f"http://127.0.0.1:{provider_standin.port}")


def taken_in(
    parts: tuple[DocumentLibrary, IngestionPipeline],
    admin: Identity,
    collection: Collection,
    content: bytes,
    pdf_type: PdfType | None = None,
) -> Document:
    """Uploaded, read, confirmed and worked on as far as it goes."""
    library, pipeline = parts
    document = confirmed(library, admin, collection, content, read=pipeline.run, pdf_type=pdf_type)
    pipeline.run("demo", document.id)
    return library.get("demo", document.id)


def test_a_page_that_is_a_picture_is_estimated_recognised_after_the_yes_and_billed_once(
    with_upstage: tuple[DocumentLibrary, IngestionPipeline],
    admin: Identity,
    collection: Collection,
    provider_standin: ProviderStandin,
) -> None:
    library, pipeline = with_upstage
    document = library.upload(admin, collection, "mixed.pdf", hostile.partly_scanned())
    pipeline.run("demo", document.id)
    waiting = library.get("demo", document.id)
    assert waiting.status is DocumentStatus.ESTIMATED
    assert waiting.ocr_pages == [2]
    assert waiting.estimate is not None
    assert Decimal(waiting.estimate["parsing"]) == Decimal("0.01")
    assert "Page 2 will be read by text recognition" in waiting.message
    assert "assumes 1,800 characters a page" in waiting.message
    assert provider_standin.calls["ocr"] == 0
    library.confirm(admin, document.id)
    pipeline.run("demo", document.id)
    done = library.get("demo", document.id)
    assert (done.status, done.ocr_pages, done.empty_pages) == (DocumentStatus.COMPLETED, [], [])
    assert [page.method for page in library.pages("demo", document.id)] == ["text", "ocr", "text"]
    assert Decimal(done.costs["parsing"]) == Decimal("0.01")
    assert provider_standin.usages == [{"endpoint": "ocr", "model": "document-parse", "pages": 1}]
    text = "\n".join(page.text for page in library.pages("demo", document.id))
    for chunk in library.chunks("demo", document.id):
        assert chunk.content == text[chunk.start_character : chunk.end_character]
    assert "Recognised text 1 of 1." in text
    assert done.character_count == sum(page.characters for page in library.pages("demo", document.id))


def test_a_picture_on_a_page_with_text_is_estimated_recognised_and_billed_and_the_page_says_so(
    with_upstage: tuple[DocumentLibrary, IngestionPipeline], admin: Identity, collection: Collection
) -> None:
    library, pipeline = with_upstage
    document = library.upload(admin, collection, "costs.pdf", hostile.pictured_table())
    pipeline.run("demo", document.id)
    waiting = library.get("demo", document.id)
    assert waiting.ocr_pages == [1]
    assert waiting.estimate is not None
    assert Decimal(waiting.estimate["parsing"]) == Decimal("0.01")
    library.confirm(admin, document.id)
    pipeline.run("demo", document.id)
    done = library.get("demo", document.id)
    assert (done.status, done.ocr_pages) == (DocumentStatus.COMPLETED, [])
    assert Decimal(done.costs["parsing"]) == Decimal("0.01")
    (page,) = library.pages("demo", document.id)
    assert page.text.startswith("Costs\nThe table shows what the plans cost a month.")
    assert page.text.endswith("Recognised text 1 of 1.")
    assert read_by(page) == "Text + recognised"


def test_without_an_engine_a_picture_beside_text_keeps_no_document_waiting(
    make: Make, admin: Identity, collection: Collection
) -> None:
    done = taken_in(make(tesseract="none"), admin, collection, hostile.pictured_table())
    assert done.status is DocumentStatus.COMPLETED
    assert "A large picture on this page may contain text" in done.message


@pytest.mark.parametrize(("pdf_type", "calls"), [("scanned", 1), ("digital", 0), ("auto", 1)])
def test_what_the_pdf_is_said_to_be_decides_which_pages_are_paid_for(
    pdf_type: PdfType,
    calls: int,
    with_upstage: tuple[DocumentLibrary, IngestionPipeline],
    admin: Identity,
    collection: Collection,
    provider_standin: ProviderStandin,
) -> None:
    done = taken_in(with_upstage, admin, collection, hostile.partly_scanned(), pdf_type)
    assert done.status is DocumentStatus.COMPLETED
    assert provider_standin.calls["ocr"] == calls
    pages = sum(usage["pages"] for usage in provider_standin.usages)
    assert pages == {"scanned": 3, "digital": 0, "auto": 1}[pdf_type]
    assert done.empty_pages == ([2] if pdf_type == "digital" else [])


def test_a_collection_of_scans_has_all_pages_recognised_without_being_told_each_time(
    with_upstage: tuple[DocumentLibrary, IngestionPipeline],
    admin: Identity,
    collection: Collection,
    provider_standin: ProviderStandin,
) -> None:
    library, _ = with_upstage
    changed = library.override_collection(admin, collection.id, {"pdf_type": "scanned"})
    taken_in(with_upstage, admin, changed, hostile.leave_policy())
    assert provider_standin.calls["ocr"] == 1


@pytest.mark.parametrize("failures", [1, 2])
def test_a_provider_that_is_down_leaves_the_work_to_be_tried_again_and_pays_nothing_twice(
    failures: int,
    with_upstage: tuple[DocumentLibrary, IngestionPipeline],
    admin: Identity,
    collection: Collection,
    provider_standin: ProviderStandin,
) -> None:
    library, pipeline = with_upstage
    document = confirmed(library, admin, collection, hostile.image_only(), read=pipeline.run)
    for _ in range(failures):
        provider_standin.fail_next(503, headers={"retry-after": "60"})
        with pytest.raises(ProviderUnavailable):
            pipeline.run("demo", document.id)
    stopped = library.get("demo", document.id)
    assert (stopped.status, stopped.step, stopped.ocr_pages) == (DocumentStatus.PROCESSING, Step.RECOGNISE, [1])
    pipeline.run("demo", document.id)
    done = library.get("demo", document.id)
    assert done.status is DocumentStatus.COMPLETED
    assert done.repeated_calls == failures, "each time it was sent again"
    assert Decimal(done.costs["parsing"]) == Decimal("0.01")


def test_a_failed_document_goes_on_without_recognising_again(
    with_upstage: tuple[DocumentLibrary, IngestionPipeline],
    admin: Identity,
    collection: Collection,
    provider_standin: ProviderStandin,
) -> None:
    library, pipeline = with_upstage
    document = confirmed(library, admin, collection, hostile.image_only(), read=pipeline.run)
    provider_standin.fail_next(400)
    pipeline.run("demo", document.id)
    failed = library.get("demo", document.id)
    assert (failed.status, failed.step) == (DocumentStatus.FAILED, Step.RECOGNISE)
    assert "HTTP 400" in failed.message
    library.retry(admin, document.id)
    pipeline.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.COMPLETED
    assert provider_standin.calls["ocr"] == 2
    assert len(provider_standin.usages) == 1


def test_a_refused_key_is_waited_for_and_upstage_named(
    with_upstage: tuple[DocumentLibrary, IngestionPipeline],
    admin: Identity,
    collection: Collection,
    provider_standin: ProviderStandin,
) -> None:
    library, pipeline = with_upstage
    document = confirmed(library, admin, collection, hostile.image_only(), read=pipeline.run)
    provider_standin.fail_next(401)
    with pytest.raises(ProviderKeyRejected) as caught:
        pipeline.run("demo", document.id)
    assert "refused by Upstage" in waiting_sentence(caught.value, 5)
    assert "set on the page Set-up" in waiting_sentence(caught.value, 5)
    assert library.get("demo", document.id).status is DocumentStatus.PROCESSING
    pipeline.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.COMPLETED
    assert len(provider_standin.usages) == 1


def test_recognition_is_waited_for_as_long_as_is_set(
    make: Make, admin: Identity, collection: Collection, provider_standin: ProviderStandin
) -> None:
    library, pipeline = make(
        upstage_api_key="key",
        upstage_base_url=f"http://127.0.0.1:{provider_standin.port}",
        upstage_timeout_seconds=0.2,
    )
    document = confirmed(library, admin, collection, hostile.image_only(), read=pipeline.run)
    provider_standin.hang = True
    with pytest.raises(ProviderUnavailable):
        pipeline.run("demo", document.id)
    # Tries of a fifth of a second each; as long as the default, the first would go on.
    assert provider_standin.calls["ocr"] == ATTEMPTS
    provider_standin.release()


def test_a_scan_without_an_engine_waits_and_is_read_again_once_there_is_one(
    make: Make, admin: Identity, collection: Collection, provider_standin: ProviderStandin
) -> None:
    library, pipeline = make()
    assert library.recognition_engine is None
    document = library.upload(admin, collection, "scan.pdf", hostile.image_only(), UploadOptions(pdf_type="digital"))
    pipeline.run("demo", document.id)
    waiting = library.get("demo", document.id)
    assert waiting.status is DocumentStatus.NEEDS_OCR
    assert "Page 1" in waiting.message
    library, pipeline = make(upstage_api_key="key", upstage_base_url=f"http://127.0.0.1:{provider_standin.port}")
    assert library.recognition_engine == "upstage"
    library.retry(admin, document.id)
    pipeline.run("demo", document.id)
    estimated = library.get("demo", document.id)
    assert (estimated.status, estimated.pdf_type, estimated.ocr_pages) == (DocumentStatus.ESTIMATED, "auto", [1])
    library.confirm(admin, document.id)
    pipeline.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.COMPLETED


def test_a_document_that_answers_is_read_again_as_a_new_version(
    make: Make, admin: Identity, collection: Collection, provider_standin: ProviderStandin
) -> None:
    parts = make()
    done = taken_in(parts, admin, collection, hostile.partly_scanned())
    assert done.empty_pages == [2]
    library, pipeline = make(upstage_api_key="key", upstage_base_url=f"http://127.0.0.1:{provider_standin.port}")
    again = library.versions.read_again(admin, done.id)
    pipeline.run("demo", again.id)
    assert library.get("demo", done.id).status is DocumentStatus.COMPLETED
    library.confirm(admin, again.id)
    pipeline.run("demo", again.id)
    assert library.get("demo", done.id).status is DocumentStatus.SUPERSEDED
    new = library.get("demo", again.id)
    assert (new.status, new.version, new.empty_pages) == (DocumentStatus.COMPLETED, 2, [])


def test_reading_a_file_again_is_asked_about_only_where_it_costs_more_than_the_limit(
    make: Make, admin: Identity, collection: Collection, provider_standin: ProviderStandin
) -> None:
    parts = make()
    done = taken_in(parts, admin, collection, hostile.partly_scanned())
    library, pipeline = parts
    free = library.versions.read_again(admin, done.id, confirmed_up_to=Decimal(0))
    pipeline.run("demo", free.id)
    pipeline.run("demo", free.id)
    assert library.get("demo", free.id).status is DocumentStatus.COMPLETED

    library, pipeline = make(upstage_api_key="key", upstage_base_url=f"http://127.0.0.1:{provider_standin.port}")
    dear = library.versions.read_again(admin, free.id, confirmed_up_to=Decimal(0))
    pipeline.run("demo", dear.id)
    pipeline.run("demo", dear.id)
    assert library.get("demo", dear.id).status is DocumentStatus.ESTIMATED
    assert library.get("demo", free.id).status is DocumentStatus.COMPLETED


def test_where_recognition_is_asked_for_and_cannot_be_had_the_text_that_is_there_is_taken_and_that_is_said(
    make: Make, admin: Identity, collection: Collection
) -> None:
    library, pipeline = make()
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy(), UploadOptions(pdf_type="scanned"))
    pipeline.run("demo", document.id)
    estimated = library.get("demo", document.id)
    assert estimated.status is DocumentStatus.ESTIMATED
    assert "Text recognition is not set up here, so the text in the file was used" in estimated.message


def test_a_file_of_blank_pages_fails_with_that_sentence_and_nothing_is_paid(
    with_upstage: tuple[DocumentLibrary, IngestionPipeline],
    admin: Identity,
    collection: Collection,
    provider_standin: ProviderStandin,
) -> None:
    library, pipeline = with_upstage
    document = library.upload(admin, collection, "blank.pdf", hostile.blank_pages(3))
    pipeline.run("demo", document.id)
    failed = library.get("demo", document.id)
    assert (failed.status, failed.message) == (
        DocumentStatus.FAILED,
        "This file holds no text. Check it on your computer and upload it again.",
    )
    with pytest.raises(DocumentError, match="no text"):
        pipeline.process_document(
            file=hostile.blank_pages(2), file_name="b.pdf", tenant_id="demo", collection=collection
        )
    assert provider_standin.calls["ocr"] == 0


def test_a_scan_in_which_nothing_is_found_is_never_completed(
    make: Make, admin: Identity, collection: Collection, tmp_path: object
) -> None:
    done = taken_in(make(tesseract="true"), admin, collection, hostile.image_only())
    assert done.status is DocumentStatus.FAILED
    assert "found no text" in done.message
    assert done.chunk_count == 0


def test_a_program_that_has_a_scan_processed_pays_for_it_in_one_call(
    with_upstage: tuple[DocumentLibrary, IngestionPipeline], collection: Collection, tenant: str
) -> None:
    library, pipeline = with_upstage
    result = pipeline.process_document(
        file=hostile.image_only(), file_name="scan.pdf", tenant_id=tenant, collection=collection
    )
    assert result.chunk_count == 1
    assert result.costs.parsing == Decimal("0.01")
    assert library.get(tenant, result.document_id).status is DocumentStatus.COMPLETED


def test_without_an_engine_a_program_is_told_that_it_needs_one(make: Make, collection: Collection, tenant: str) -> None:
    _, pipeline = make()
    with pytest.raises(NoTextInPdf):
        pipeline.process_document(
            file=hostile.image_only(), file_name="scan.pdf", tenant_id=tenant, collection=collection
        )


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="Tesseract is not installed")
def test_tesseract_itself_reads_a_scanned_page(make: Make, admin: Identity, collection: Collection) -> None:
    parts = make(tesseract="tesseract")
    done = taken_in(parts, admin, collection, hostile.scanned_page())
    assert done.status is DocumentStatus.COMPLETED
    (page,) = parts[0].pages("demo", done.id)
    assert "25 days of paid leave" in page.text
    assert page.method == "ocr"
    assert Decimal(done.costs["parsing"]) == 0


def test_work_on_ids_that_are_none_does_nothing(make: Make) -> None:
    _, pipeline = make()
    pipeline.run("demo", UUID(int=5))
