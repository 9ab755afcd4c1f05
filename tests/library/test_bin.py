"""The bin: what is deleted is found by nothing, comes back whole, and goes for good after thirty days."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from rag.errors import DocumentAlreadyStored, InvalidInput, NotAllowed, NotFound
from rag.ingestion.queue import Queue
from rag.library import bin as bin_
from rag.library.documents import DocumentLibrary
from rag.library.metadata import MetadataChanges
from rag.providers.builtin_embedders import LexicalEmbedder
from rag.records.audit import AuditLog
from rag.records.conversations import Conversations
from rag.retrieval.hybrid_search import SearchQuery, hybrid_search, keyword_search
from rag.storage.database import Database
from rag.types import Collection, Document, DocumentFilters, DocumentStatus, Identity, Role, Scope, UploadOptions
from tests import hostile
from tests.ingestion.conftest import Worker
from tests.ingestion.uploads import until
from tests.patience import patient


def policy(days: int) -> bytes:
    return hostile.leave_policy(f"The special allowance called zebra is {days} days of paid leave in each year.")


Add = Callable[..., Document]


@pytest.fixture
def add(library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection) -> Add:
    def added(days: int, name: str = "policy.pdf") -> Document:
        document = library.upload(admin, collection, name, policy(days))
        work("demo", document.id)
        library.confirm(admin, document.id)
        work("demo", document.id)
        return library.get("demo", document.id)

    return added


def found(database: Database, collection: Collection) -> set[UUID]:
    """The documents that words or vectors find."""
    text = "zebra allowance"
    (vector,) = LexicalEmbedder().embed([text], purpose="query").vectors
    scope = Scope(tenant_id="demo", collection_ids=(collection.id,))
    query = SearchQuery(text=text, language="en", vector=None, embedding_model=collection.embedding_model)
    by_word = keyword_search(database, query, scope=scope, limit=20)
    by_both = hybrid_search(database, replace(query, vector=vector), scope=scope, limit=20)
    return {hit.document_id for hit in (*by_word, *by_both)}


def indexed(database: Database, collection: Collection) -> int:
    """How many chunks the keyword index holds."""
    return int(database.fetch_value("demo", "keyword_total", tenant_id="demo", collection_id=collection.id))


def test_what_is_in_the_bin_is_found_by_nothing_and_comes_back_with_its_versions(
    library: DocumentLibrary, add: Add, admin: Identity, collection: Collection, database: Database, employee: Identity
) -> None:
    first = add(3)
    second = add(4)
    other = add(9, "other.pdf")
    assert found(database, collection) == {second.id, other.id}
    with pytest.raises(NotAllowed):
        library.bin.put(employee, [second.id])
    assert indexed(database, collection) == len(library.chunks(admin, second.id)) + len(library.chunks(admin, other.id))
    assert library.bin.put(admin, [second.id]) == 1
    assert library.bin.put(admin, [second.id]) == 0, "it is there already"

    assert found(database, collection) == {other.id}
    assert indexed(database, collection) == len(library.chunks(admin, other.id))
    for act in (library.bin.take_back, lambda who, i: library.bin.take_back_all(who, [i])):
        with pytest.raises(NotAllowed):
            act(employee, second.id)
    with pytest.raises(NotAllowed):
        library.bin.delete_for_good(employee, [second.id])
    assert library.with_words(admin, "zebra") == (other.id,)
    assert [row.id for row in library.rows(admin, DocumentFilters(), limit=10)] == [other.id]
    assert [document.id for document in library.list(admin)] == [other.id]
    assert sum(figures.documents for figures in library.figures(admin)) == 1
    for gone in (first.id, second.id):
        for look in (library.get, library.original, lambda who, i: library.page_image(who, i, 1)):
            with pytest.raises(NotFound):
                look(admin, gone)
    (binned,) = library.bin.list(admin)
    assert (binned.id, binned.title, library.bin.count(admin)) == (second.id, second.title, 1)

    library.bin.take_back(admin, second.id)
    assert found(database, collection) == {second.id, other.id}
    assert library.get(admin, second.id).status is DocumentStatus.COMPLETED
    assert [v.version for v in library.versions.of(admin, second)] == [2, 1]
    assert library.bin.count(admin) == 0
    with pytest.raises(NotFound):
        library.bin.take_back(admin, second.id)


def test_one_act_is_one_entry_of_the_audit_log(
    library: DocumentLibrary, add: Add, admin: Identity, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(3)
    second, other, third = add(4), add(9, "other.pdf"), add(11, "third.pdf")
    audit = AuditLog(database)
    before = audit.last(admin.tenant_id)

    def acts() -> list[tuple[str, int]]:
        return [(e.action, e.things) for e in audit.entries(admin) if e.id > before]

    monkeypatch.setattr(bin_, "DOCUMENTS_AT_ONCE", 1)
    several = [second.id, other.id, third.id]
    assert library.bin.put(admin, several) == 3
    assert acts() == [("document changed", 3)], "four rows in three transactions"
    (entry,) = audit.entries(admin, limit=1)
    assert sorted(entry.targets) == sorted({second.title, other.title, third.title})
    exported = [json.loads(row.to_json(admin.tenant_id)) for row in audit.rows(admin) if row.id > before]
    assert [row["target_id"] for row in exported].count(str(second.id)) == 1
    assert len({row["act"] for row in exported if row["action"] == "document changed"}) == 1
    assert all(row["changes"]["status"][1] == "binned" for row in exported if row["action"] == "document changed")
    assert library.bin.take_back_all(admin, [*several, uuid4()]) == ["This document is no longer in the bin."]
    assert acts() == [("document changed", 3)] * 2
    (restored,) = audit.entries(admin, limit=1)
    assert restored.changes["status"] == ["binned", "completed"], "the first step alone makes it an earlier version"
    library.bin.put(admin, [other.id])
    assert acts() == [("document changed", 1), *[("document changed", 3)] * 2]
    assert len(audit.after(admin.tenant_id, before)) > 6, "no row is left out"


def test_two_documents_of_one_title_are_two_in_the_audit_log_and_a_search_does_not_shrink_an_act(
    library: DocumentLibrary, add: Add, admin: Identity, database: Database
) -> None:
    twins = [add(3), add(9, "other.pdf"), add(11, "third.pdf")]
    with database.transaction(admin.tenant_id) as connection:
        connection.execute("UPDATE documents SET title = 'Handbook' WHERE file_name <> 'third.pdf'")
    audit = AuditLog(database)
    library.bin.put(admin, [document.id for document in twins])
    (entry,) = audit.entries(admin, limit=1)
    assert (entry.things, entry.targets) == (3, sorted({"Handbook", twins[2].title}))
    (found,) = audit.entries(admin, limit=1, text=twins[2].title)
    assert found == entry, "the whole act, though one of its rows has the word"
    assert len(audit.rows(admin, text=twins[2].title, kind="document")) >= 3


def test_many_are_deleted_and_taken_back_in_as_many_statements_as_one(
    library: DocumentLibrary,
    add: Add,
    admin: Identity,
    database: Database,
    collection: Collection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = [add(days, f"policy {days}.pdf") for days in (3, 5, 7, 9)]
    execute, sent = psycopg.Connection.execute, []

    asking = threading.get_ident()

    def counted(connection: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        if threading.get_ident() == asking:  # what the queue does meanwhile is not counted
            sent.append(query)
        return execute(connection, query, *arguments, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", counted)
    counts = []
    for some in (documents[:1], documents):
        del sent[:]
        library.bin.put(admin, [document.id for document in some])
        deleting = len(sent)
        assert not found(database, collection).intersection(document.id for document in some)
        del sent[:]
        assert library.bin.take_back_all(admin, [document.id for document in some]) == []
        counts.append((deleting, len(sent)))
        assert found(database, collection) == {document.id for document in documents}
    assert counts[0] == counts[1]
    assert {library.get(admin, document.id).status for document in documents} == {DocumentStatus.COMPLETED}


def test_the_same_file_can_be_added_while_it_is_in_the_bin(
    library: DocumentLibrary, add: Add, admin: Identity, collection: Collection, database: Database
) -> None:
    first = add(3)
    library.bin.put(admin, [first.id])
    again = add(3)
    assert again.id != first.id
    assert again.version == 1
    assert found(database, collection) == {again.id}
    with pytest.raises(InvalidInput, match="already has another document with the same content"):
        library.bin.take_back(admin, first.id)
    library.bin.put(admin, [again.id])
    library.bin.take_back(admin, first.id)
    assert found(database, collection) == {first.id}


def test_after_thirty_days_the_worker_deletes_it_with_its_file(
    library: DocumentLibrary, add: Add, admin: Identity, queue: Queue, superuser_conninfo: str, collection: Collection
) -> None:
    old, new = add(3), add(5, "new.pdf")
    library.bin.put(admin, [old.id])
    library.bin.put(admin, [new.id])
    queue.on_empty_bin = library.bin.empty
    queue.start_worker()
    assert queue.wait_until_idle(patient(60)), "what waits for weeks is not counted as work"
    assert library.bin.count(admin) == 2
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute("UPDATE documents SET binned_at = now() - interval '31 days' WHERE id = %s", (old.id,))
        connection.execute("UPDATE procrastinate_jobs SET scheduled_at = now() WHERE task_name = 'empty_bin'")
    until(lambda: library.bin.count(admin) == 1)
    queue.wait_until_idle(patient(60))
    with psycopg.connect(superuser_conninfo) as connection:
        left = connection.execute("SELECT id FROM documents WHERE status = 'binned'").fetchall()
        files = connection.execute("SELECT count(*) FROM file_removals").fetchone()
        due = connection.execute(
            "SELECT scheduled_at > now() + interval '29 days' FROM procrastinate_jobs "
            "WHERE task_name = 'empty_bin' AND status = 'todo'"
        ).fetchall()
    assert (left, files, due) == ([(new.id,)], (0,), [(True,)])
    assert library.bin.delete_for_good(admin, [new.id]) == 1
    assert library.bin.count(admin) == 0


def test_a_collection_goes_into_the_bin_with_all_it_holds_and_comes_back_as_it_was(
    library: DocumentLibrary, add: Add, admin: Identity, database: Database, collection: Collection
) -> None:
    with database.transaction(admin.tenant_id) as connection:
        ((account_id,),) = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
            "VALUES (rag_tenant(), 'admin@example.com', 'Admin', 'admin', '') RETURNING id"
        ).fetchall()
    admin = replace(admin, account_id=account_id)
    conversations = Conversations(database)
    asked = conversations.create(admin, collection.id, "Zebras")
    earlier, first, second = add(3, "earlier.pdf"), add(4, "first.pdf"), add(5, "second.pdf")
    library.bin.put(admin, [earlier.id])
    library.bin.put_collection(admin, collection.id)
    assert not found(database, collection)
    assert library.collections(admin) == []
    assert library.choose(admin) is None
    assert conversations.list(admin) == []
    with pytest.raises(NotFound):
        conversations.get(admin, asked.id)
    with pytest.raises(NotFound):
        library.bin.put_collection(admin, collection.id)
    (binned,) = library.bin.collections(admin)
    assert (binned.name, binned.documents, binned.conversations) == (collection.name, 2, 1)
    # Its name is free meanwhile, so that it comes back under another.
    other = library.create_collection(admin, collection.name, "hr")
    assert library.bin.take_collection_back(admin, collection.id) == []
    back = library.collection(admin, collection.id)
    assert back.name.startswith(f"{collection.name} (20")
    assert found(database, collection) == {first.id, second.id}, "what was deleted before stays where it is"
    assert [c.title for c in conversations.list(admin)] == ["Zebras"]
    assert library.collections(admin) == [back, other]
    with pytest.raises(NotFound):
        library.bin.take_collection_back(admin, collection.id)
    # A single document brings its collection back.
    library.bin.put_collection(admin, collection.id)
    library.bin.take_back(admin, second.id)
    assert library.collection(admin, collection.id).name == back.name
    assert found(database, collection) == {second.id}


def test_after_thirty_days_a_collection_is_deleted_for_good(
    library: DocumentLibrary, add: Add, admin: Identity, database: Database, collection: Collection
) -> None:
    add(4)
    library.bin.put_collection(admin, collection.id)
    library.bin.empty(admin.tenant_id)
    assert len(library.bin.collections(admin)) == 1
    with database.transaction(admin.tenant_id) as connection:
        for table in ("documents", "collections"):
            connection.execute(f"UPDATE {table} SET binned_at = now() - interval '31 days'")
    assert library.bin.empty(admin.tenant_id) == 1
    assert library.bin.collections(admin) == []
    with database.transaction(admin.tenant_id) as connection:
        assert connection.execute("SELECT count(*) FROM collections").fetchone() == (0,)


def test_who_is_no_administrator_deletes_no_collection(
    library: DocumentLibrary, admin: Identity, collection: Collection
) -> None:
    with pytest.raises(NotAllowed):
        library.bin.put_collection(replace(admin, role=Role.MANAGER), collection.id)
    library.bin.put_collection(admin, collection.id)
    with pytest.raises(NotAllowed):
        library.bin.take_collection_back(replace(admin, role=Role.MANAGER), collection.id)


def test_work_on_a_document_ends_in_the_bin_and_goes_on_when_it_is_back(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, database: Database
) -> None:
    document = library.upload(admin, collection, "policy.pdf", policy(3))
    library.bin.put(admin, [document.id])
    work("demo", document.id)
    assert library.bin.count(admin) == 1, "nothing was written over its status"
    library.bin.take_back(admin, document.id)
    assert library.get(admin, document.id).status is DocumentStatus.READING
    work("demo", document.id)
    assert library.get(admin, document.id).status is DocumentStatus.ESTIMATED


def test_nobody_is_asked_about_what_is_within_the_limit_but_for_a_replacement(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection
) -> None:
    def after_reading(content: bytes, limit: str | None) -> DocumentStatus:
        upto = None if limit is None else Decimal(limit)
        document = library.upload(admin, collection, "a.pdf", content, UploadOptions(confirmed_up_to=upto))
        work("demo", document.id)
        work("demo", document.id)
        status = library.get(admin, document.id).status
        if status is not DocumentStatus.COMPLETED:
            library.discard(admin, document.id)
        return status

    assert after_reading(policy(1), None) is DocumentStatus.ESTIMATED
    assert after_reading(policy(2), "0") is DocumentStatus.COMPLETED, "it costs nothing on the built-in embedder"
    assert after_reading(policy(3), "5") is DocumentStatus.ESTIMATED, "it would take the place of the one before"


def test_metadata_holds_for_every_version_and_correct_what_is_indexed(
    library: DocumentLibrary, add: Add, admin: Identity, collection: Collection, database: Database, stranger: Identity
) -> None:
    first = add(3)
    changes = MetadataChanges(
        title="Zebras  and leave",
        folder=" Policies / Leave ",
        tags=["Leave", "2026", "Leave"],
        language="nl",
        with_dates=True,
        valid_until=date(2020, 1, 1),
        review_on=date(2020, 1, 1),
    )
    library.metadata.change(admin, [first.id], changes)
    second = add(4)
    assert (second.version, second.title, second.folder, second.tags) == (
        2,
        "Zebras and leave",
        "Policies/Leave",
        ["2026", "Leave"],
    )
    assert (second.language, second.review_on) == ("nl", date(2020, 1, 1)), "reading the new file keeps them"
    assert (first.version, second.valid_until) == (1, None), "a last day is of the file that it was given for"
    assert library.get("demo", first.id).valid_until == date(2020, 1, 1)
    keywords = "SELECT language FROM keyword_documents"
    with database.transaction(admin) as connection:
        assert connection.execute(keywords).fetchall() == [("nl",)]
    library.metadata.tag(admin, [second.id], add=["Old"], remove=["2026"])
    library.metadata.move(admin, [second.id], "Archive")
    shelves = library.metadata.shelves(admin)
    assert (shelves.folders, shelves.tags) == ({"Archive": 1}, {"Leave": 1, "Old": 1})
    over = MetadataChanges(with_dates=True, valid_until=date(2020, 1, 1), review_on=date(2020, 1, 1))
    library.metadata.change(admin, [second.id], over)
    due = library.metadata.reminders(admin)
    assert (due.expired, due.to_review) == (1, 1)
    rows = library.rows(admin, DocumentFilters(folder="Archive", tag="Old", due="expired"), limit=5)
    assert [row.id for row in rows] == [second.id]
    found_ids = library.with_words(admin, "ZEBRA allowances paid")
    assert [r.id for r in library.rows(admin, DocumentFilters(text="no such title", found_ids=found_ids), limit=5)] == [
        second.id
    ]
    assert library.with_words(admin, "zebra crocodile") == ()
    for wrong, sentence in (
        (MetadataChanges(title="  "), "title"),
        (MetadataChanges(language="xx"), "Dutch"),
        (
            MetadataChanges(with_dates=True, valid_from=date(2026, 2, 1), valid_until=date(2026, 1, 1)),
            "has to be after",
        ),
        (MetadataChanges(tags=["x" * 61]), "60"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            library.metadata.change(admin, [second.id], wrong)
    with pytest.raises(NotFound):
        library.metadata.move(stranger, [second.id], "Mine")


def test_a_view_is_its_owners(library: DocumentLibrary, admin: Identity) -> None:
    # The accounts of these tests are made up; views belong to real ones, which the pages' tests have.
    assert library.metadata.views(admin) == []
    with pytest.raises(InvalidInput):
        library.metadata.save_view(admin, " ", DocumentFilters())


def test_a_copy_is_information(library: DocumentLibrary, add: Add, admin: Identity, collection: Collection) -> None:
    first = add(3)
    with pytest.raises(DocumentAlreadyStored) as refused:
        library.upload(admin, collection, "copy.pdf", policy(3))
    assert refused.value.details["document_id"] == first.id
