"""Texts of pages that people corrected: what answers, what is kept through new readings, what is paid."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from rag.access.tenants import Tenants
from rag.errors import BudgetSpent, InvalidInput, NotAllowed, NotFound, StepNotPossible, TextChanged
from rag.ingestion.corrections import NOT_APPLIED, fingerprint, not_applied, read_hash
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.reembedding import Reembeddings
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.retrieval.context_builder import read_section
from rag.retrieval.hybrid_search import SearchQuery, keyword_search
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Collection, Document, DocumentStatus, Identity, Scope, Step, UploadOptions
from tests import hostile
from tests.ingestion.conftest import Worker
from tests.standins.providers import ProviderStandin

SMALL = "openai/text-embedding-3-small@256"
TOPICS = ("zebra leave", "parking", "sabbatical", "canteen")


def handbook(days: str = "301", extra: Sequence[str] = ()) -> bytes:
    """Pages of one topic each; the first has a footnote mark glued to its number."""
    facts = [f"The {topic} rule is {days if not n else 10 + n} days in each year." for n, topic in enumerate(TOPICS)]
    more = "It is agreed with the manager in writing, and the office keeps the letter for as long as the law asks. " * 6
    pages = [
        [f"{n} {topic.title()}", fact, *more.split(". ")]
        for n, (topic, fact) in enumerate(zip(TOPICS, facts, strict=True))
    ]
    return hostile.pdf_of([*([line] for line in extra), *pages])


def add(library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, content: bytes) -> Document:
    document = library.upload(admin, collection, "handbook.pdf", content)
    work("demo", document.id)
    library.confirm(admin, document.id)
    work("demo", document.id)
    return library.get("demo", document.id)


def text_of(library: DocumentLibrary, document: Document, number: int = 1) -> str:
    return library.pages("demo", document.id)[number - 1].text


def seen(library: DocumentLibrary, document: Document, number: int = 1) -> str:
    return fingerprint(text_of(library, document, number))


def correct(
    library: DocumentLibrary, work: Worker, admin: Identity, document: Document, old: str, new: str, number: int = 1
) -> Document:
    text = text_of(library, document, number).replace(old, new)
    made = library.corrections.save(admin, document.id, number, text, seen=seen(library, document, number))
    work("demo", made.id)
    return library.get("demo", made.id)


def found_with(database: Database, collection: Collection, words: str) -> list[str]:
    query = SearchQuery(text=words, language="en", vector=None, embedding_model=collection.embedding_model)
    scope = Scope(tenant_id="demo", collection_ids=(collection.id,))
    return [found.content for found in keyword_search(database, query, scope=scope, limit=10)]


@pytest.fixture
def document(library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection) -> Document:
    return add(library, work, admin, collection, handbook())


def test_a_corrected_page_is_found_and_quoted_as_corrected(
    library: DocumentLibrary,
    work: Worker,
    admin: Identity,
    collection: Collection,
    database: Database,
    document: Document,
) -> None:
    new = correct(library, work, admin, document, "301 days", "30 days")
    assert (new.status, new.version) == (DocumentStatus.COMPLETED, 2)
    found = found_with(database, collection, "zebra")
    assert "30 days" in found[0]
    assert not any("301" in content for content in found)
    page = library.pages("demo", new.id)[0]
    assert page.is_corrected
    assert "301 days" in page.as_read
    assert "30 days" in page.text
    noted = {chunk.first_page: chunk.metadata.get("corrected_pages") for chunk in library.chunks("demo", new.id)}
    assert noted[1] == [1]
    assert noted[4] is None
    assert read_section(database, admin, new.id, "0")[0].is_corrected


def test_the_history_tells_what_was_there_and_can_be_taken_back(
    library: DocumentLibrary, work: Worker, admin: Identity, document: Document
) -> None:
    as_read = text_of(library, document)
    once = correct(library, work, admin, document, "301 days", "30 days")
    twice = correct(library, work, admin, once, "30 days", "31 days")
    back = library.corrections.save(admin, twice.id, 1, None, seen=seen(library, twice))
    work("demo", back.id)
    assert text_of(library, library.get("demo", back.id)) == as_read
    assert not library.pages("demo", back.id)[0].is_corrected
    last, second, first = library.corrections.of(admin, document)
    assert (first.text_before, first.read_hash) == (as_read, read_hash(as_read))
    assert first.text_after == second.text_before != second.text_after == last.text_before
    assert last.text_after is None
    assert [c.is_latest for c in (last, second, first)] == [True, False, False]


@pytest.mark.parametrize("way", ["read again", "cut again", "embed again"])
def test_a_new_reading_of_the_same_file_keeps_the_correction(
    library: DocumentLibrary,
    work: Worker,
    admin: Identity,
    collection: Collection,
    database: Database,
    document: Document,
    way: str,
) -> None:
    new = correct(library, work, admin, document, "301 days", "30 days")
    if way == "read again":
        again = library.versions.read_again(admin, new.id)
        work("demo", again.id)
    elif way == "cut again":
        again = library.versions.run_again(admin, new.id, Step.CHUNK, chunking_method="fixed")
    else:
        again = library.versions.run_again(admin, new.id, Step.EMBED, only_missing=False)
    library.confirm(admin, again.id)
    work("demo", again.id)
    again = library.get("demo", again.id)
    assert again.status is DocumentStatus.COMPLETED
    page = library.pages("demo", again.id)[0]
    assert "30 days" in page.text
    assert "301 days" in page.as_read
    assert NOT_APPLIED not in again.message
    assert any("30 days" in content for content in found_with(database, collection, "zebra"))


def test_sections_after_a_corrected_page_are_where_they_were(
    library: DocumentLibrary, work: Worker, admin: Identity, document: Document
) -> None:
    before = {chunk.content: chunk.section for chunk in library.chunks("demo", document.id)}
    new = correct(library, work, admin, document, "301 days", "30 days, and what else is agreed with the manager,")
    after = {chunk.content: chunk.section for chunk in library.chunks("demo", new.id)}
    assert {content: section for content, section in after.items() if content in before}.items() <= before.items()
    text = "\n".join(page.text for page in library.pages("demo", new.id))
    assert all(text[c.start_character : c.end_character] in c.content for c in library.chunks("demo", new.id))


def test_a_new_file_keeps_the_correction_of_a_page_that_moved(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, document: Document
) -> None:
    correct(library, work, admin, document, "301 days", "30 days")
    new = add(library, work, admin, collection, handbook(extra=["A foreword of the new edition."]))
    pages = library.pages("demo", new.id)
    assert [page.is_corrected for page in pages] == [False, True, False, False, False]
    assert "30 days" in pages[1].text
    assert NOT_APPLIED not in new.message


def test_a_page_that_reads_differently_keeps_what_was_read_and_says_so(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, document: Document
) -> None:
    correct(library, work, admin, document, "301 days", "30 days")
    new = add(library, work, admin, collection, handbook("401"))
    assert "401 days" in text_of(library, new)
    assert NOT_APPLIED in new.message
    history = library.corrections.of(admin, new)
    (waiting,) = not_applied(history, library.pages("demo", new.id))
    assert waiting.text_after is not None
    assert "30 days" in waiting.text_after
    applied = library.corrections.save(admin, new.id, 1, waiting.text_after, seen=seen(library, new))
    work("demo", applied.id)
    applied = library.get("demo", applied.id)
    assert "30 days" in text_of(library, applied)
    assert NOT_APPLIED not in applied.message
    assert not_applied(library.corrections.of(admin, applied), library.pages("demo", applied.id)) == []


def test_a_correction_that_holds_no_more_can_be_dismissed(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection, document: Document
) -> None:
    correct(library, work, admin, document, "301 days", "30 days")
    new = add(library, work, admin, collection, handbook("401"))
    (waiting,) = not_applied(library.corrections.of(admin, new), library.pages("demo", new.id))
    library.corrections.dismiss(admin, new.id, waiting.id)
    assert not_applied(library.corrections.of(admin, new), library.pages("demo", new.id)) == []
    assert NOT_APPLIED not in library.get("demo", new.id).message
    with pytest.raises(NotFound):
        library.corrections.dismiss(admin, new.id, waiting.id)


def test_the_second_of_two_people_is_refused(
    library: DocumentLibrary, work: Worker, admin: Identity, document: Document
) -> None:
    before = seen(library, document)
    correct(library, work, admin, document, "301 days", "30 days")
    with pytest.raises(TextChanged) as refused:
        library.corrections.save(admin, document.id, 1, "Mine.", seen=before)
    assert "30 days" in refused.value.details["text"]
    assert len(library.corrections.of(admin, document)) == 1


def test_the_next_page_can_be_corrected_while_the_first_is_still_processed(
    library: DocumentLibrary, work: Worker, admin: Identity, document: Document
) -> None:
    first = library.corrections.save(admin, document.id, 1, "One.", seen=seen(library, document))
    second = library.corrections.save(admin, document.id, 2, "Two.", seen=seen(library, document, 2))
    for made in (first, second):
        work("demo", made.id)
    assert library.get("demo", first.id).status is DocumentStatus.SUPERSEDED
    assert [page.text for page in library.pages("demo", second.id)][:2] == ["One.", "Two."]


def test_what_cannot_be_corrected_says_why(
    library: DocumentLibrary, work: Worker, admin: Identity, employee: Identity, stranger: Identity, document: Document
) -> None:
    was = seen(library, document)
    for text, sentence in (
        (" \n", "Type the text"),
        ("x" * 200_001, "200,000"),
        (text_of(library, document), "Nothing"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            library.corrections.save(admin, document.id, 1, text, seen=was)
    with pytest.raises(NotFound, match="no page 9"):
        library.corrections.save(admin, document.id, 9, "Text.", seen=was)
    with pytest.raises(NotAllowed):
        library.corrections.save(employee, document.id, 1, "Text.", seen=was)
    with pytest.raises(NotFound):
        library.corrections.save(stranger, document.id, 1, "Text.", seen=was)
    library.versions.run_again(admin, document.id, Step.CHUNK, chunking_method="fixed")
    with pytest.raises(StepNotPossible, match="Another version"):
        library.corrections.save(admin, document.id, 1, "Text.", seen=was)


def test_only_changed_passages_are_embedded_and_paid_as_announced(
    database: Database,
    files: FileStore,
    settings: Settings,
    connected: Callable[[Settings], Providers],
    sandbox: Sandbox,
    provider_standin: ProviderStandin,
    library: DocumentLibrary,
    admin: Identity,
    queue: object,
) -> None:
    keyed = replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)
    pipeline = IngestionPipeline(database, files, connected(keyed), Ledger(database), keyed, sandbox=sandbox)
    shelf = DocumentLibrary(database, files, connected(keyed), keyed, queue, sandbox=sandbox)  # type: ignore[arg-type]
    model = "openai/text-embedding-3-small@1536"
    collection = library.ensure_collection("demo", "Paid", "hr", model, "en")
    made = pipeline.process_document(
        file=hostile.long_document(),
        file_name="a.pdf",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    document = library.get("demo", made.document_id)
    text = text_of(shelf, document).replace("office 3 closes", "office 33 closes")
    plan = shelf.corrections.plan(admin, document.id, 1, text)
    assert 1 <= plan.passages < document.chunk_count
    calls = provider_standin.calls["embeddings"]
    new = shelf.corrections.save(admin, document.id, 1, text, seen=seen(shelf, document))
    pipeline.run("demo", new.id)
    new = library.get("demo", new.id)
    assert new.status is DocumentStatus.COMPLETED
    assert provider_standin.calls["embeddings"] == calls + 1
    spent = Decimal(new.costs["total"])
    assert 0 < spent < Decimal(document.costs["total"])
    assert new.estimate is not None
    assert new.estimate["total"] == plan.estimate["total"]

    def refuse(who: object) -> None:
        raise BudgetSpent

    back = shelf.corrections.plan(admin, new.id, 1, None)
    assert (back.passages, float(back.estimate["total"])) == (0, 0.0), "the text as read has its vectors"
    shelf.check_spending = refuse
    with pytest.raises(BudgetSpent):
        shelf.corrections.save(admin, new.id, 1, "Other words.", seen=seen(shelf, new))
    restored = shelf.corrections.save(admin, new.id, 1, None, seen=seen(shelf, new))
    pipeline.run("demo", restored.id)
    assert provider_standin.calls["embeddings"] == calls + 1
    assert library.get("demo", restored.id).status is DocumentStatus.COMPLETED


def test_tags_of_passages_that_stay_are_kept(
    database: Database,
    files: FileStore,
    settings: Settings,
    connected: Callable[[Settings], Providers],
    sandbox: Sandbox,
    provider_standin: ProviderStandin,
    library: DocumentLibrary,
    admin: Identity,
    queue: object,
) -> None:
    keyed = replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)
    pipeline = IngestionPipeline(database, files, connected(keyed), Ledger(database), keyed, sandbox=sandbox)
    shelf = DocumentLibrary(database, files, connected(keyed), keyed, queue, sandbox=sandbox)  # type: ignore[arg-type]
    collection = library.ensure_collection("demo", "Legal", "legal", "builtin/lexical@1536", "en")

    def reply(messages: list[dict[str, object]]) -> str:
        if "tag a passage" in str(messages[0]["content"]):
            return json.dumps({"topic": "leave", "crime_type": None, "summary": "About leave.", "keywords": ["leave"]})
        return json.dumps({"summary": "s", "topics": ["t"], "questions": ["q"]})

    provider_standin.reply(lambda messages: reply(messages))
    made = pipeline.process_document(
        file=hostile.long_document(), file_name="a.pdf", tenant_id="demo", collection=collection
    )
    document = library.get("demo", made.document_id)
    text = text_of(shelf, document).replace("office 3 closes", "office 33 closes")
    plan = shelf.corrections.plan(admin, document.id, 1, text)
    assert 1 <= plan.passages < document.chunk_count
    assert Decimal(plan.estimate["metadata"]) > 0
    calls = provider_standin.calls["chat"]
    new = shelf.corrections.save(admin, document.id, 1, text, seen=seen(shelf, document))
    pipeline.run("demo", new.id)
    assert library.get("demo", new.id).status is DocumentStatus.COMPLETED
    assert provider_standin.calls["chat"] == calls + plan.passages
    assert {chunk.metadata.get("topic") for chunk in library.chunks("demo", new.id)} == {"leave"}
    assert library.get("demo", new.id).metadata["summary"] == "s"


def test_what_is_free_is_confirmed_and_corrected_though_the_budget_is_spent(
    library: DocumentLibrary, work: Worker, admin: Identity, collection: Collection
) -> None:
    def refuse(who: object) -> None:
        raise BudgetSpent

    library.check_spending = refuse
    document = add(library, work, admin, collection, handbook())
    assert document.status is DocumentStatus.COMPLETED
    assert correct(library, work, admin, document, "301 days", "30 days").status is DocumentStatus.COMPLETED


def test_of_two_who_save_at_once_one_is_told(library: DocumentLibrary, admin: Identity, document: Document) -> None:
    was = seen(library, document)

    def save(text: str) -> str:
        try:
            return str(library.corrections.save(admin, document.id, 1, text, seen=was).id)
        except TextChanged:
            return "refused"

    with ThreadPoolExecutor(2) as both:
        ended = list(both.map(save, ["Mine.", "Theirs."]))
    assert ended.count("refused") == 1
    assert len(library.corrections.of(admin, document)) == 1


def test_corrections_are_kept_by_versions_and_go_with_the_document(
    library: DocumentLibrary,
    work: Worker,
    admin: Identity,
    stranger: Identity,
    document: Document,
    superuser_conninfo: str,
) -> None:
    new = correct(library, work, admin, document, "301 days", "30 days")
    assert library.corrections.of(stranger, document) == []
    with psycopg.connect(superuser_conninfo) as connection:
        audited = connection.execute(
            "SELECT actor, target, thing_id FROM audit_log WHERE action = 'page correction added'"
        ).fetchall()
    assert audited == [(admin.email, f"{document.title}, p. 1", str(document.original_id))]
    library.delete(admin, document.id)  # a version that does not answer
    assert len(library.corrections.of(admin, new)) == 1
    library.delete(admin, new.id)
    with psycopg.connect(superuser_conninfo) as connection:
        assert connection.execute("SELECT count(*) FROM page_corrections").fetchone() == (0,)


def test_a_killed_correction_continues(
    library: DocumentLibrary, pipeline: IngestionPipeline, admin: Identity, document: Document
) -> None:
    made = library.corrections.save(admin, document.id, 1, "Short.", seen=seen(library, document))
    job = pipeline.control.job("demo", made.id)
    step = pipeline._correct_step
    once = step.run(job, [])
    again = step.run(job, [])
    assert (once.pages[0].text, once.sections, once.numbers) == (again.pages[0].text, again.sections, frozenset({1}))
    pipeline.run("demo", made.id)
    assert library.get("demo", made.id).status is DocumentStatus.COMPLETED


def test_a_move_to_another_model_embeds_the_corrected_text_and_keeps_the_correction(
    database: Database,
    files: FileStore,
    settings: Settings,
    connected: Callable[[Settings], Providers],
    sandbox: Sandbox,
    provider_standin: ProviderStandin,
    library: DocumentLibrary,
    work: Worker,
    admin: Identity,
    collection: Collection,
    document: Document,
) -> None:
    keyed = replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)
    pipeline = IngestionPipeline(database, files, connected(keyed), Ledger(database), keyed, sandbox=sandbox)
    moves = Reembeddings(database, connected(keyed))
    latest = correct(library, work, admin, document, "301 days", "30 days")
    move = moves.estimate(admin, collection.id, SMALL)
    moves.confirm(admin, move.id)
    # One more is saved before the vectors are made.
    new = library.corrections.save(admin, latest.id, 2, "The parking rule is void.", seen=seen(library, latest, 2))
    pipeline.run("demo", new.id)
    switched = pipeline.reembedding.run("demo", move.id)
    assert switched.status == "switched"
    with database.transaction("demo") as connection:
        chunks = connection.execute(
            "SELECT content, embedding_model FROM document_chunks WHERE document_id = %s", [new.id]
        ).fetchall()
    assert {model for _, model in chunks} == {SMALL}
    said = " ".join(content for content, _ in chunks)
    assert "30 days" in said
    assert "The parking rule is void." in said
    assert "301" not in said
    again = library.versions.read_again(admin, new.id)
    pipeline.run("demo", again.id)
    library.confirm(admin, again.id)
    pipeline.run("demo", again.id)
    assert [page.is_corrected for page in library.pages("demo", again.id)] == [True, True, False, False]
    assert len(library.corrections.of(admin, new)) == 2
    moves.undo(admin, switched)
    assert "30 days" in text_of(library, library.get("demo", again.id))


def test_the_export_of_a_tenant_holds_the_corrections(
    library: DocumentLibrary,
    work: Worker,
    admin: Identity,
    database: Database,
    files: FileStore,
    superuser_conninfo: str,
    document: Document,
    tmp_path: Path,
) -> None:
    as_read = text_of(library, document)
    new = correct(library, work, admin, document, "301 days", "30 days")
    rows = Tenants(database, files, superuser_conninfo).export("demo", tmp_path / "demo.zip")
    assert rows["page_corrections"] == 1
    with zipfile.ZipFile(tmp_path / "demo.zip") as archive:
        (kept,) = map(json.loads, archive.read("tables/page_corrections.jsonl").splitlines())
        pages = map(json.loads, archive.read("tables/document_pages.jsonl").splitlines())
        page = next(row for row in pages if row["document_id"] == str(new.id) and row["number"] == 1)
    assert kept["text_before"] == as_read
    assert kept["read_hash"] == read_hash(as_read)
    assert kept["text_after"] == page["text"] == as_read.replace("301 days", "30 days")
