"""Versions of a document: what answers, what is listed, what is paid."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest

from rag.errors import DocumentAlreadyStored, InvalidInput, NotAllowed, NotFound
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import IngestionPipeline
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.retrieval.hybrid_search import SearchQuery, keyword_search
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Collection, Document, DocumentStatus, Identity, Scope, Step, UploadOptions
from tests import hostile
from tests.standins.providers import ProviderStandin

Worker = object


def policy(days: int, pages: int = 1) -> bytes:
    return hostile.leave_policy(f"The special allowance called zebra is {days} days of paid leave in each year.")


def add(library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, content: bytes) -> Document:
    document = library.upload(admin, collection, "policy.pdf", content)
    work("demo", document.id)  # type: ignore[operator]
    library.confirm(admin, document.id)
    work("demo", document.id)  # type: ignore[operator]
    return library.get("demo", document.id)


def answering(database: Database, collection: Collection) -> set[UUID]:
    """The documents that a search finds."""
    query = SearchQuery(text="zebra allowance", language="en", vector=None, embedding_model=collection.embedding_model)
    scope = Scope(tenant_id="demo", collection_ids=(collection.id,))
    return {found.document_id for found in keyword_search(database, query, scope=scope, limit=10)}


def test_the_old_version_answers_until_the_new_one_is_complete(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, database: Database
) -> None:
    first = add(library, work, admin, collection, policy(3))
    second = library.upload(admin, collection, "policy.pdf", policy(4))
    assert (second.version, second.original_id) == (2, first.id)
    assert answering(database, collection) == {first.id}
    work("demo", second.id)  # type: ignore[operator]
    library.confirm(admin, second.id)
    assert answering(database, collection) == {first.id}
    work("demo", second.id)  # type: ignore[operator]
    assert answering(database, collection) == {second.id}
    assert library.get("demo", first.id).status is DocumentStatus.SUPERSEDED
    assert [document.id for document in library.list("demo")] == [second.id]
    assert [v.version for v in library.versions.of("demo", second)] == [2, 1]


def test_the_keyword_counts_are_those_of_the_version_that_answers(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, superuser_conninfo: str
) -> None:
    add(library, work, admin, collection, policy(3))
    new = add(library, work, admin, collection, policy(4))
    with psycopg.connect(superuser_conninfo) as connection:
        total = connection.execute("SELECT sum(chunks) FROM keyword_totals").fetchone()
    assert total == (new.chunk_count,)


def test_only_the_version_that_answers_is_in_the_tables_that_are_searched(
    database: Database,
    library: DocumentLibrary,
    work: Worker,
    admin: Identity,
    collection: Collection,
    superuser_conninfo: str,
) -> None:
    def searched() -> set[tuple[str, UUID]]:
        with psycopg.connect(superuser_conninfo) as connection:
            return {
                (table, row[0])
                for table in ("keyword_documents", "chunk_terms", "chunk_bits")
                for row in connection.execute(f"SELECT document_id FROM {table}").fetchall()
            }

    def made_dense() -> None:
        # The built-in vectors have no signs; under another name they are taken for dense ones.
        with psycopg.connect(superuser_conninfo) as connection:
            connection.execute("UPDATE document_chunks SET embedding_model = 'test/dense@1536'")
            connection.execute("UPDATE collections SET embedding_model = 'test/dense@1536'")

    def expected(document: Document) -> set[tuple[str, UUID]]:
        return {(table, document.id) for table in ("keyword_documents", "chunk_terms", "chunk_bits")}

    first = add(library, work, admin, collection, policy(3))
    second = add(library, work, admin, collection, policy(4))
    made_dense()
    assert searched() == expected(second)
    library.versions.restore(admin, first.id)
    assert searched() == expected(first)
    library.versions.restore(admin, second.id)
    assert searched() == expected(second)
    library.delete(admin, second.id)
    assert searched() == set()


def test_an_earlier_version_is_restored_at_once(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, database: Database
) -> None:
    first = add(library, work, admin, collection, policy(3))
    second = add(library, work, admin, collection, policy(4))
    assert library.versions.restore(admin, first.id).status is DocumentStatus.COMPLETED
    assert answering(database, collection) == {first.id}
    assert library.get("demo", second.id).status is DocumentStatus.SUPERSEDED
    with pytest.raises(InvalidInput):
        library.versions.restore(admin, first.id)


@pytest.mark.parametrize("is_named", [True, False])
def test_the_bytes_of_an_earlier_version_wait_for_a_yes_like_any_other_version(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, database: Database, is_named: bool
) -> None:
    first = add(library, work, admin, collection, policy(3))
    second = add(library, work, admin, collection, policy(4))
    if is_named:
        third = library.upload(admin, collection, "policy.pdf", policy(3))
    else:
        third = library.upload(admin, collection, "allowance.pdf", policy(3), UploadOptions(replaces=second.id))
    work("demo", third.id)  # type: ignore[operator]
    assert answering(database, collection) == {second.id}
    third = library.get("demo", third.id)
    assert (third.status, third.version, third.original_id) == (DocumentStatus.ESTIMATED, 3, first.id)
    assert library.differing_pages(admin, third, second) == [1]
    library.confirm(admin, third.id)
    work("demo", third.id)  # type: ignore[operator]
    assert answering(database, collection) == {third.id}
    assert library.get("demo", second.id).status is DocumentStatus.SUPERSEDED


def test_the_bytes_of_another_documents_earlier_version_are_refused_by_its_title(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection
) -> None:
    first = add(library, work, admin, collection, policy(3))
    add(library, work, admin, collection, policy(4))
    with pytest.raises(DocumentAlreadyStored) as refused:
        library.upload(admin, collection, "allowance.pdf", policy(3))
    assert refused.value.details["document_id"] == first.id


def test_what_was_spent_stays_spent_whatever_becomes_of_the_document(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, database: Database
) -> None:
    first = add(library, work, admin, collection, policy(3))
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET costs = '{\"total\": 0.5}' WHERE id = %s", [first.id])
    second = add(library, work, admin, collection, policy(4))
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET costs = '{\"total\": 0.25}' WHERE id = %s", [second.id])
    figures = library.figures(admin)
    assert (sum(f.cost for f in figures), sum(f.documents for f in figures)) == (Decimal("0.75"), 1)
    assert sum(f.chunks for f in figures) == library.get(admin, second.id).chunk_count
    library.bin.put(admin, [second.id])
    figures = library.figures(admin)
    assert (sum(f.cost for f in figures), sum(f.documents for f in figures)) == (Decimal("0.75"), 0)


def test_an_earlier_version_under_another_name_is_named_and_changes_nothing(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, database: Database
) -> None:
    add(library, work, admin, collection, policy(3))
    second = add(library, work, admin, collection, policy(4))
    with pytest.raises(DocumentAlreadyStored):
        library.upload(admin, collection, "another.pdf", policy(3))
    assert answering(database, collection) == {second.id}


def test_the_version_asked_for_last_wins_whichever_is_ready_first(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, database: Database
) -> None:
    add(library, work, admin, collection, policy(3))
    second = library.upload(admin, collection, "policy.pdf", policy(4))
    third = library.upload(admin, collection, "policy.pdf", policy(5))
    assert (second.version, third.version) == (2, 3)
    for document in (third, second):
        work("demo", document.id)  # type: ignore[operator]
        library.confirm(admin, document.id)
    for document in (third, second):
        work("demo", document.id)  # type: ignore[operator]
    assert answering(database, collection) == {third.id}
    assert library.get("demo", second.id).status is DocumentStatus.SUPERSEDED


def test_a_yes_replaces_the_version_that_the_card_names_also_a_later_one(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, database: Database
) -> None:
    first, second = (library.upload(admin, collection, "policy.pdf", policy(days)) for days in (3, 4))
    for document in (first, second):
        work("demo", document.id)  # type: ignore[operator]
    assert library.replaced_by(admin, first) is None
    waiting = library.replaced_by(admin, second)
    assert waiting is not None
    assert (waiting.id, waiting.status) == (first.id, DocumentStatus.ESTIMATED)
    library.confirm(admin, second.id)
    work("demo", second.id)  # type: ignore[operator]
    published = library.replaced_by(admin, first)
    assert published is not None
    assert published.id == second.id
    library.confirm(admin, first.id)
    work("demo", first.id)  # type: ignore[operator]
    assert answering(database, collection) == {first.id}
    assert library.get("demo", second.id).status is DocumentStatus.SUPERSEDED


def test_a_first_version_is_kept_beside_a_later_one_that_answers(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, database: Database
) -> None:
    first, second = (library.upload(admin, collection, "policy.pdf", policy(days)) for days in (3, 4))
    for document in (first, second):
        work("demo", document.id)  # type: ignore[operator]
    library.confirm(admin, second.id)
    work("demo", second.id)  # type: ignore[operator]
    library.keep_both(admin, first.id)
    work("demo", first.id)  # type: ignore[operator]
    assert answering(database, collection) == {first.id, second.id}
    assert {library.get("demo", each.id).title for each in (first, second)} == {"Policy", "Policy (2)"}
    for document in (first, second):
        alone = library.versions.of(admin, library.get(admin, document.id))
        assert [version.id for version in alone] == [document.id]


def test_a_free_file_waits_for_a_yes_behind_one_of_its_name_that_is_not_ready(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection
) -> None:
    free = Decimal(0)
    first, second = (
        library.upload(admin, collection, "policy.pdf", policy(days), UploadOptions(confirmed_up_to=free))
        for days in (3, 4)
    )
    work("demo", second.id)  # type: ignore[operator]
    work("demo", first.id)  # type: ignore[operator]
    assert library.get("demo", second.id).status is DocumentStatus.ESTIMATED
    work("demo", first.id)  # type: ignore[operator]
    assert library.get("demo", first.id).status is DocumentStatus.COMPLETED


def test_the_same_upload_a_hundred_times_is_one_document(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection
) -> None:
    content = policy(3)
    add(library, work, admin, collection, content)
    for _ in range(99):
        with pytest.raises(DocumentAlreadyStored):
            library.upload(admin, collection, "policy.pdf", content)
    assert len(library.list("demo")) == 1


def test_a_failed_version_leaves_the_old_one_answering_and_can_be_deleted_alone(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, database: Database
) -> None:
    first = add(library, work, admin, collection, policy(3))
    scanned = library.upload(admin, collection, "policy.pdf", hostile.image_only())
    work("demo", scanned.id)  # type: ignore[operator]
    assert library.get("demo", scanned.id).status is DocumentStatus.NEEDS_OCR
    library.delete(admin, scanned.id)
    assert answering(database, collection) == {first.id}


def test_deleting_the_document_takes_all_its_versions(
    library: DocumentLibrary,
    work: Worker,
    admin: Identity,
    collection: Collection,
    database: Database,
    settings: Settings,
) -> None:
    first = add(library, work, admin, collection, policy(3))
    second = add(library, work, admin, collection, policy(4))
    library.delete(admin, second.id)
    with pytest.raises(NotFound):
        library.get("demo", first.id)
    assert answering(database, collection) == set()
    assert [path for path in (settings.data_dir / "files").rglob("*") if path.is_file()] == []


def test_a_file_that_cannot_be_removed_is_removed_later(
    library: DocumentLibrary,
    work: Worker,
    admin: Identity,
    collection: Collection,
    pipeline: IngestionPipeline,
    files: FileStore,
    database: Database,
) -> None:
    document = add(library, work, admin, collection, policy(3))
    path = files.path("demo", document.file_path)
    path.unlink()
    path.mkdir()  # what cannot be unlinked
    library.delete(admin, document.id)
    with pytest.raises(NotFound):
        library.get("demo", document.id)
    assert pipeline.remove_files("demo") == 1
    path.rmdir()
    path.write_bytes(b"the original")
    assert pipeline.remove_files("demo") == 0
    assert not path.exists()


def test_chunking_again_makes_a_version_that_waits_for_its_yes(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, database: Database
) -> None:
    first = add(library, work, admin, collection, policy(3))
    again = library.versions.run_again(admin, first.id, Step.CHUNK, chunking_method="fixed")
    assert (again.status, again.version, again.chunking_method) == (DocumentStatus.ESTIMATED, 2, "fixed")
    assert again.estimate is not None
    assert answering(database, collection) == {first.id}
    library.confirm(admin, again.id)
    work("demo", again.id)  # type: ignore[operator]
    assert answering(database, collection) == {again.id}
    with pytest.raises(DocumentAlreadyStored):
        library.upload(admin, collection, "policy.pdf", policy(3))


def test_marks_are_stored_with_the_pages_and_kept_by_a_version_of_the_same_file(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection
) -> None:
    document = add(library, work, admin, collection, hostile.hidden_text())
    marks = [page.marks for page in library.pages("demo", document.id)]
    assert {mark["kind"] for found in marks for mark in found or ()} == {"left out"}
    again = library.versions.run_again(admin, document.id, Step.CHUNK, chunking_method="fixed")
    assert [page.marks for page in library.pages("demo", again.id)] == marks


def test_nothing_missing_is_said_and_costs_nothing(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection
) -> None:
    document = add(library, work, admin, collection, policy(3))
    with pytest.raises(InvalidInput, match="Nothing is missing"):
        library.versions.run_again(admin, document.id, Step.EMBED)
    with pytest.raises(InvalidInput):
        library.versions.run_again(admin, document.id, Step.TAG)  # no model


def test_an_employee_and_a_stranger_change_no_version(
    library: DocumentLibrary,
    work: Worker,
    admin: Identity,
    employee: Identity,
    stranger: Identity,
    collection: Collection,
) -> None:
    first = add(library, work, admin, collection, policy(3))
    add(library, work, admin, collection, policy(4))
    with pytest.raises(NotAllowed):
        library.versions.restore(employee, first.id)
    with pytest.raises(NotFound):
        library.versions.restore(stranger, first.id)


def test_chunk_tags_that_failed_are_counted_and_made_again(
    database: Database,
    files: FileStore,
    settings: Settings,
    sandbox: Sandbox,
    provider_standin: ProviderStandin,
    library: DocumentLibrary,
    admin: Identity,
    queue: object,
) -> None:
    keyed = replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)
    pipeline = IngestionPipeline(database, files, Providers(keyed), Ledger(database), keyed, sandbox=sandbox)
    shelf = DocumentLibrary(database, files, Providers(keyed), keyed, queue, sandbox=sandbox)  # type: ignore[arg-type]
    collection = library.ensure_collection("demo", "Legal", "legal", "builtin/lexical@1536", "en")
    with database.transaction("demo") as connection:
        connection.execute('UPDATE collections SET overrides = \'{"chunking_method": "smart"}\'')
    answers = iter(['{"nothing": 1}'] * 2)

    def reply(messages: list[dict[str, object]]) -> str:
        if "tag a passage" in str(messages[0]["content"]):
            good = {"topic": "leave", "crime_type": None, "summary": "About leave.", "keywords": ["leave"]}
            return next(answers, json.dumps(good))
        return json.dumps({"summary": "s", "topics": ["t"], "questions": ["q"]})

    provider_standin.reply(lambda messages: reply(messages))
    result = pipeline.process_document(
        file=hostile.long_document(6), file_name="a.pdf", tenant_id="demo", collection=collection
    )
    chunks = library.chunks("demo", result.document_id)
    assert len(chunks) > 2
    tagged = [chunk for chunk in chunks if chunk.metadata.get("topic") == "leave"]
    document = library.get("demo", result.document_id)
    assert len(tagged) == len(chunks) - 2
    assert document.metadata["untagged_chunks"] == 2
    assert "2 of" in document.message
    before = provider_standin.calls["chat"]
    shelf.versions.run_again(admin, document.id, Step.TAG)
    assert library.get("demo", document.id).status is DocumentStatus.COMPLETED
    pipeline.run("demo", document.id)
    assert provider_standin.calls["chat"] == before + 2
    assert all(chunk.metadata["topic"] == "leave" for chunk in library.chunks("demo", document.id))
    assert library.get("demo", document.id).pending_steps == []
    assert "could not be tagged" not in library.get("demo", document.id).message
