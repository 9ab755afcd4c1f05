from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest

from rag.errors import DocumentAlreadyStored, NoTextInPdf, ProviderError, ProviderUnavailable
from rag.ingestion.document_jobs import JobInterrupted, JobTaken
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.uploads import TAGS_WAIT, page_list, reading_message
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Collection, DocumentStatus, Identity, Page, UploadOptions
from tests import hostile
from tests.standins.providers import ProviderStandin

TAGS = {"summary": "What offices do.", "topics": ["offices"], "questions": ["When do offices close?", "b?", "c?"]}
MODEL = "openai/text-embedding-3-small@1536"


@pytest.fixture
def paid(
    database: Database, files: FileStore, settings: Settings, sandbox: Sandbox, provider_standin: ProviderStandin
) -> IngestionPipeline:
    """A pipeline on the stand-in of OpenAI."""
    keyed = replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)
    provider_standin.reply(json.dumps(TAGS))
    return IngestionPipeline(database, files, Providers(keyed), Ledger(database), keyed, sandbox=sandbox)


@pytest.fixture
def paid_collection(library: DocumentLibrary) -> Collection:
    collection = library.ensure_collection("demo", "Paid", "hr", MODEL, "en")
    return replace(collection, overrides={})


def small_batches(database: Database, collection: Collection) -> None:
    with database.transaction("demo") as connection:
        connection.execute(
            "UPDATE collections SET overrides = '{\"embedding_batch_size\": 4}' WHERE id = %s", (collection.id,)
        )


def billed(database: Database, *operations: str) -> tuple[int, int]:
    """Rows and input tokens of the ledger."""
    with database.transaction("demo") as connection:
        row = connection.execute(
            "SELECT count(*), coalesce(sum(input_tokens), 0)::int FROM cost_ledger WHERE operation = ANY (%s)",
            (list(operations),),
        ).fetchone()
        assert row is not None
        return row[0], row[1]


def kept_sentences(database: Database) -> int:
    """Answered calls for sentences whose cut is not stored yet."""
    with database.transaction("demo") as connection:
        row = connection.execute("SELECT count(*) FROM sentence_vectors").fetchone()
        assert row is not None
        return int(row[0])


def test_every_paid_call_is_in_the_ledger_with_what_the_provider_counted(
    paid: IngestionPipeline,
    paid_collection: Collection,
    provider_standin: ProviderStandin,
    database: Database,
    library: DocumentLibrary,
) -> None:
    small_batches(database, paid_collection)
    result = paid.process_document(
        file=hostile.long_document(6), file_name="rules.pdf", tenant_id="demo", collection=paid_collection
    )
    rows, tokens = billed(database, "embedding")
    assert rows == provider_standin.calls["embeddings"] == -(-result.chunk_count // 4)
    assert tokens == provider_standin.tokens["embeddings"]
    assert billed(database, "tagging")[0] == provider_standin.calls["chat"] == 1
    document = library.get("demo", result.document_id)
    assert result.costs.embedding
    assert result.costs.metadata
    assert Decimal(document.costs["total"]) == result.costs.total == result.costs.embedding + result.costs.metadata
    assert document.estimate is not None
    assert document.metadata["summary"] == TAGS["summary"]
    assert library.suggested_questions("demo", paid_collection.id)[0] == "When do offices close?"


def test_the_file_of_a_failed_document_is_tried_again_instead_of_refused(
    paid: IngestionPipeline,
    paid_collection: Collection,
    provider_standin: ProviderStandin,
    library: DocumentLibrary,
    admin: Identity,
) -> None:
    def ingest(pages: int) -> UUID:
        return paid.process_document(
            file=hostile.long_document(pages),
            file_name="rules.pdf",
            tenant_id="demo",
            collection=paid_collection,
            options=UploadOptions(generate_metadata=False),
        ).document_id

    provider_standin.fail_next(400, times=1, endpoint="embeddings")
    with pytest.raises(ProviderError):
        ingest(2)
    ingested = ingest(2)
    assert library.get("demo", ingested).status is DocumentStatus.COMPLETED
    with pytest.raises(DocumentAlreadyStored):
        ingest(2)

    provider_standin.fail_next(400, times=1, endpoint="embeddings")
    document = library.upload(
        admin, paid_collection, "notes.pdf", hostile.long_document(3), UploadOptions(generate_metadata=False)
    )
    paid.run("demo", document.id)
    library.confirm(admin, document.id)
    paid.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.FAILED
    again = library.upload(
        admin, paid_collection, "notes.pdf", hostile.long_document(3), UploadOptions(generate_metadata=False)
    )
    assert again.id == document.id
    paid.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.COMPLETED


def test_work_that_broke_off_goes_on_without_paying_again(
    paid: IngestionPipeline,
    paid_collection: Collection,
    provider_standin: ProviderStandin,
    database: Database,
    library: DocumentLibrary,
    admin: Identity,
) -> None:
    small_batches(database, paid_collection)
    document = library.upload(admin, paid_collection, "rules.pdf", hostile.long_document(6))
    paid.run("demo", document.id)
    library.confirm(admin, document.id)
    provider_standin.reset()
    provider_standin.reply(json.dumps(TAGS))
    provider_standin.fail_next(400, times=1, endpoint="embeddings")
    paid.run("demo", document.id)
    failed = library.get("demo", document.id)
    assert failed.status is DocumentStatus.FAILED
    assert failed.message
    library.retry(admin, document.id)
    provider_standin.fail_next(503, times=50, endpoint="embeddings")
    with pytest.raises(ProviderUnavailable):
        paid.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.PROCESSING
    paid_before = provider_standin.tokens["embeddings"]
    provider_standin.reset()
    provider_standin.reply(json.dumps(TAGS))
    paid.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.COMPLETED
    chunks = library.chunks("demo", document.id)
    assert [chunk.chunk_index for chunk in chunks] == list(range(len(chunks)))
    tokens = paid_before + provider_standin.tokens["embeddings"]
    assert billed(database, "embedding") == (-(-len(chunks) // 4), tokens)


def test_a_killed_process_leaves_whole_batches_only(
    paid: IngestionPipeline,
    paid_collection: Collection,
    provider_standin: ProviderStandin,
    database: Database,
    library: DocumentLibrary,
    admin: Identity,
    superuser_conninfo: str,
) -> None:
    small_batches(database, paid_collection)
    document = library.upload(admin, paid_collection, "rules.pdf", hostile.long_document(6))
    paid.run("demo", document.id)
    library.confirm(admin, document.id)
    # As if the process had died after two batches: only their rows are there.
    paid.run("demo", document.id)
    whole = library.chunks("demo", document.id)
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute("DELETE FROM document_chunks WHERE chunk_index >= 8")
        connection.execute(
            "UPDATE documents SET status = 'processing', step = 'embed', metadata = metadata - 'questions'"
        )
    before = provider_standin.calls["embeddings"]
    paid.run("demo", document.id)
    again = library.chunks("demo", document.id)
    assert [(c.content, c.section) for c in again] == [(c.content, c.section) for c in whole]
    assert {c.id for c in whole[:8]} == {c.id for c in again[:8]}
    assert provider_standin.calls["embeddings"] - before == -(-(len(whole) - 8) // 4)


def test_a_tag_that_fails_leaves_the_document_searchable_and_says_so(
    paid: IngestionPipeline, paid_collection: Collection, provider_standin: ProviderStandin, library: DocumentLibrary
) -> None:
    provider_standin.fail_next(400, times=1, endpoint="chat")
    result = paid.process_document(
        file=hostile.leave_policy(), file_name="leave.pdf", tenant_id="demo", collection=paid_collection
    )
    document = library.get("demo", result.document_id)
    assert document.status is DocumentStatus.COMPLETED
    assert "could not be tagged" in document.message
    assert result.message == document.message
    assert document.metadata["suggested_questions"] == []
    assert result.costs.metadata == 0


def test_tags_that_are_refused_for_the_key_wait_for_a_worker_and_the_document_is_found(
    paid: IngestionPipeline, paid_collection: Collection, provider_standin: ProviderStandin, library: DocumentLibrary
) -> None:
    provider_standin.fail_next(401, times=100, endpoint="chat")
    result = paid.process_document(
        file=hostile.leave_policy(), file_name="leave.pdf", tenant_id="demo", collection=paid_collection
    )
    document = library.get("demo", result.document_id)
    assert (document.status, document.is_waiting) == (DocumentStatus.COMPLETED, True)
    assert result.message == document.message
    assert result.message.startswith(TAGS_WAIT)
    assert document.pending_steps == ["tag"]


def test_cutting_by_topic_is_paid_and_cut_once(
    paid: IngestionPipeline,
    paid_collection: Collection,
    provider_standin: ProviderStandin,
    database: Database,
    library: DocumentLibrary,
    admin: Identity,
) -> None:
    document = library.upload(
        admin, paid_collection, "rules.pdf", hostile.long_document(3), UploadOptions(chunking_method="semantic")
    )
    paid.run("demo", document.id)
    library.confirm(admin, document.id)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET step = 'chunk'")
    paid.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.COMPLETED
    assert billed(database, "chunking", "embedding")[1] == provider_standin.tokens["embeddings"]


def test_a_cut_by_topic_that_broke_off_pays_only_for_what_is_missing(
    paid: IngestionPipeline,
    paid_collection: Collection,
    provider_standin: ProviderStandin,
    database: Database,
    library: DocumentLibrary,
    admin: Identity,
) -> None:
    small_batches(database, paid_collection)
    document = library.upload(
        admin, paid_collection, "rules.pdf", hostile.long_document(3), UploadOptions(chunking_method="semantic")
    )
    paid.run("demo", document.id)
    library.confirm(admin, document.id)
    # Not the first: batches are sent beside each other, and none may be answered before it fails.
    provider_standin.fail_next(400, times=1, endpoint="embeddings", skip=1)
    paid.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.FAILED
    kept = kept_sentences(database)
    assert kept == billed(database, "chunking")[0] > 0
    library.retry(admin, document.id)
    paid.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.COMPLETED
    # Every text that was sent twice was refused the first time.
    sent = [tuple(body["input"]) for name, body in provider_standin.requests if name == "embeddings"]
    assert len(sent) == len(set(sent)) + 1
    assert billed(database, "chunking", "embedding") == (len(set(sent)), provider_standin.tokens["embeddings"])
    assert kept_sentences(database) == 0


def test_a_scan_given_to_process_document_is_refused(pipeline: IngestionPipeline, collection: Collection) -> None:
    with pytest.raises(NoTextInPdf):
        pipeline.process_document(
            file=hostile.image_only(), file_name="scan.pdf", tenant_id="demo", collection=collection
        )


def test_a_document_another_worker_has_is_left_alone(
    pipeline: IngestionPipeline, library: DocumentLibrary, admin: Identity, collection: Collection, database: Database
) -> None:
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    with pipeline.control.claimed("demo", document.id), pytest.raises(JobTaken):
        pipeline.run("demo", document.id)
    pipeline.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.ESTIMATED


def test_a_document_deleted_in_the_meantime_ends_the_work_quietly(
    pipeline: IngestionPipeline, library: DocumentLibrary, admin: Identity, collection: Collection
) -> None:
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    library.delete(admin, document.id)
    pipeline.run("demo", document.id)
    assert library.list("demo") == []


def test_a_lost_original_fails_with_a_sentence(
    pipeline: IngestionPipeline, library: DocumentLibrary, admin: Identity, collection: Collection, files: FileStore
) -> None:
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    files.delete("demo", document.file_path)
    pipeline.run("demo", document.id)
    failed = library.get("demo", document.id)
    assert (failed.status, failed.message) == (
        DocumentStatus.FAILED,
        "The original of this document is no longer stored.",
    )
    files.put("demo", hostile.leave_policy())
    library.retry(admin, document.id)
    pipeline.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.ESTIMATED


def test_a_missing_key_is_said_before_anything_is_spent(
    pipeline: IngestionPipeline, library: DocumentLibrary, admin: Identity, paid_collection: Collection
) -> None:
    document = library.upload(admin, paid_collection, "a.pdf", hostile.leave_policy())
    pipeline.run("demo", document.id)
    failed = library.get("demo", document.id)
    assert failed.status is DocumentStatus.FAILED
    assert "Paste the key on the page Set-up" in failed.message


def test_interrupted_work_keeps_its_state(
    pipeline: IngestionPipeline, library: DocumentLibrary, admin: Identity, collection: Collection
) -> None:
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    pipeline.interrupt()
    with pytest.raises(JobInterrupted):
        pipeline.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.READING
    pipeline.resume()
    pipeline.run("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.ESTIMATED


def test_pages_are_listed_without_the_end_of_a_long_list() -> None:
    assert page_list([4]) == "4"
    assert page_list([1, 2, 3, 7]) == "1–3, 7"
    assert page_list(list(range(1, 100, 2))).endswith("and more")


def test_what_a_page_warns_of_is_said_with_its_number() -> None:
    pages = [Page(number=1, text="a"), Page(number=2, text="", method="none", warnings=("It is unreadable.",))]
    assert reading_message(pages) == "Page 2: It is unreadable."
    assert reading_message(pages[:1]) == ""
