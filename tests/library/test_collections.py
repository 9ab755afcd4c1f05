"""Collections: made, changed and deleted by administrators only."""

from __future__ import annotations

from uuid import uuid4

import pytest

from rag.errors import InvalidInput, NotAllowed, NotFound, RagError
from rag.ingestion.pipeline import IngestionPipeline
from rag.library.documents import DocumentLibrary
from rag.profiles import DEFAULT, profile_of
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Collection, DocumentStatus, Identity, UploadOptions
from tests import hostile

BUILT_IN = "builtin/lexical@1536"


def test_a_collection_is_made_with_what_is_configured(library: DocumentLibrary, admin: Identity) -> None:
    made = library.create_collection(admin, "  법률 \n 참고자료 ", "legal", language="ko")
    assert (made.name, made.profile, made.embedding_model) == ("법률 참고자료", "legal", BUILT_IN)
    assert library.collections("demo") == [made]
    assert library.contents("demo")[made.id].documents == 0


@pytest.mark.parametrize(
    ("name", "profile", "embedder", "language", "sentence"),
    [
        (" ", "hr", "", "en", "needs a name"),
        ("\u202e\u0000", "hr", "", "en", "needs a name"),
        ("x" * 81, "hr", "", "en", "at most 80"),
        ("HR documents", "hr", "", "en", "already"),
        ("New", "hrr", "", "en", "no profile"),
        ("New", "hr", "", "xx", "is not available"),
        ("New", "hr", "gemini/gemini-embedding-001@768", "en", "paste its key on the page Set-up"),
        ("New", "hr", "nonsense", "en", "does not name an embedder"),
    ],
)
def test_what_cannot_be_made_is_refused_with_a_sentence(
    library: DocumentLibrary,
    admin: Identity,
    collection: Collection,
    name: str,
    profile: str,
    embedder: str,
    language: str,
    sentence: str,
) -> None:
    with pytest.raises(RagError, match=sentence):
        library.create_collection(admin, name, profile, embedding_model=embedder, language=language)
    assert library.collections("demo") == [collection]


def test_overrides_as_earlier_versions_stored_them_are_read(
    library: DocumentLibrary, database: Database, collection: Collection
) -> None:
    stored = (
        '{"top_k": 8, "recency_steps": [[7, 1.5]], "similarity_threshold": 1, "persona_name": "Kim", "separators": [],'
        ' "narrative_hard_tokens": 300, "narrative_overlap_words": 0, "query_patterns": [["pay", ["salary"]]]}'
    )
    with database.transaction("demo") as connection:
        connection.execute("UPDATE collections SET overrides = %s WHERE id = %s", [stored, collection.id])
    found = library.collection("demo", collection.id)
    profile = profile_of(found)
    assert (profile.search.top_k, profile.ranking.recency_steps) == (8, ((7, 1.5),))
    assert (profile.search.similarity_threshold, profile.answer.persona_name) == (1.0, "Kim")
    assert profile.understanding.query_patterns == (("pay", ("salary",)),)
    # 0 and nothing meant the figures of the sources, and those kept below a limit that was set.
    assert profile.chunking.separators == DEFAULT.chunking.separators
    assert (profile.chunking.narrative_overlap_words, profile.chunking.narrative_soft_tokens) == (30, 300)


def test_only_administrators_of_the_tenant_change_collections(
    library: DocumentLibrary, employee: Identity, stranger: Identity, collection: Collection
) -> None:
    for person, error in ((employee, NotAllowed), (stranger, NotFound)):
        with pytest.raises(error):
            library.change_collection(person, collection.id, name="Mine")
        with pytest.raises(error):
            library.override_collection(person, collection.id, {"top_k": 8})
        with pytest.raises(error):
            library.delete_collection(person, collection.id, confirmed_name=collection.name)
    with pytest.raises(NotAllowed):
        library.create_collection(employee, "Mine", "hr")
    assert library.collections("demo") == [collection]


def test_a_collection_is_renamed_but_not_like_another(
    library: DocumentLibrary, admin: Identity, collection: Collection
) -> None:
    library.create_collection(admin, "Notices", "notices")
    with pytest.raises(InvalidInput, match="already"):
        library.change_collection(admin, collection.id, name="Notices")
    changed = library.change_collection(admin, collection.id, name="Policies", language="nl")
    assert (changed.name, changed.language) == ("Policies", "nl")
    assert library.change_collection(admin, collection.id, name="Policies").name == "Policies"
    with pytest.raises(NotFound):
        library.change_collection(admin, uuid4(), name="Nobody's")


def test_fields_are_overridden_checked_together_and_given_back(
    library: DocumentLibrary, admin: Identity, collection: Collection
) -> None:
    assert library.override_collection(admin, collection.id, {"chunk_size": 500}).overrides == {"chunk_size": 500}
    with pytest.raises(InvalidInput, match="text repeated"):
        library.override_collection(admin, collection.id, {"chunk_overlap": 500})
    changed = library.override_collection(admin, collection.id, {"year_boosts": [2, 1.5], "top_k": 5})
    assert changed.overrides == {"chunk_size": 500, "year_boosts": [2.0, 1.5]}  # the profile's own value is none
    assert library.override_collection(admin, collection.id, resets=["chunk_size", "year_boosts"]).overrides == {}
    # Limits that follow the one that was set are not stored with it.
    assert library.override_collection(admin, collection.id, {"narrative_hard_tokens": 300}).overrides == {
        "narrative_hard_tokens": 300
    }
    assert library.override_collection(admin, collection.id, resets=["narrative_hard_tokens"]).overrides == {}
    with pytest.raises(InvalidInput, match="move the collection to it"):
        library.override_collection(admin, collection.id, {"embedding_model": BUILT_IN})


def test_a_deleted_collection_takes_documents_files_and_conversations_with_it(
    library: DocumentLibrary,
    pipeline: IngestionPipeline,
    files: FileStore,
    database: Database,
    admin: Identity,
    collection: Collection,
) -> None:
    other = library.create_collection(admin, "Other", "hr")
    shared = hostile.leave_policy()
    added = (
        (collection, "a.pdf", shared),
        (other, "a.pdf", shared),
        (collection, "b.pdf", hostile.leave_policy("here")),
    )
    for target, name, content in added:
        pipeline.process_document(
            file=content,
            file_name=name,
            tenant_id="demo",
            collection=target,
            options=UploadOptions(generate_metadata=False),
        )
    paths = {d.collection_id: d.file_path for d in library.list("demo")}
    lost = [d.file_path for d in library.list("demo", collection_id=collection.id) if d.file_path != paths[other.id]]
    assert library.contents("demo")[collection.id].documents == 2
    with pytest.raises(InvalidInput, match="type its name"):
        library.delete_collection(admin, collection.id, confirmed_name="Other")
    library.delete_collection(admin, collection.id, confirmed_name=f" {collection.name} ")
    assert library.collections("demo") == [other]
    (left,) = library.list("demo")
    assert library.original("demo", left.id).startswith(b"%PDF")
    with pytest.raises(NotFound):
        files.get("demo", lost[0])
    with database.transaction("demo") as connection:
        for table in ("keyword_documents", "document_chunks", "keyword_segments"):
            row = connection.execute(
                f"SELECT count(*) FROM {table} WHERE collection_id = %s", (collection.id,)
            ).fetchone()
            assert row == (0,)


def test_only_a_document_that_waits_is_discarded(
    library: DocumentLibrary, pipeline: IngestionPipeline, admin: Identity, collection: Collection
) -> None:
    result = pipeline.process_document(
        file=hostile.leave_policy(),
        file_name="a.pdf",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    with pytest.raises(InvalidInput, match="no longer needs a decision"):
        library.discard(admin, result.document_id)
    assert library.get("demo", result.document_id).status is DocumentStatus.COMPLETED
    waiting = library.upload(admin, collection, "b.pdf", hostile.leave_policy("b"))
    library.discard(admin, waiting.id)
    with pytest.raises(NotFound):
        library.get("demo", waiting.id)


def test_suggested_questions_come_in_the_readers_language_then_in_the_collections(
    library: DocumentLibrary, database: Database, collection: Collection
) -> None:
    with database.transaction("demo") as connection:
        for number, (language, question) in enumerate(
            [("nl", "Wat?"), ("en", "What?"), ("ko", "무엇?"), ("en", "Why?")]
        ):
            connection.execute(
                "INSERT INTO documents "
                "(tenant_id, collection_id, title, file_name, sha256, status, language, metadata) "
                "VALUES ('demo', %s, 'a', 'a.pdf', %s, 'completed', %s, "
                "jsonb_build_object('questions', jsonb_build_array(%s::text)))",
                (collection.id, str(number), language, question),
            )
    asked = library.suggested_questions("demo", collection.id, languages=["ko-KR"])
    assert asked[0] == "무엇?"
    assert set(asked[1:3]) == {"What?", "Why?"}
    assert asked[3] == "Wat?"
    assert library.suggested_questions("demo", collection.id, limit=1)[0] in ("What?", "Why?")


@pytest.mark.parametrize("pattern", [r"(?=leave)holiday", r"(leave) \1", "(x?){1000}{1000}"])
def test_patterns_that_cannot_be_read_in_linear_time_are_refused_when_they_are_saved(
    pattern: str, library: DocumentLibrary, admin: Identity, collection: Collection
) -> None:
    with pytest.raises(InvalidInput):
        library.override_collection(admin, collection.id, {"query_patterns": [[pattern, ["Leave"]]]})
    assert library.collection("demo", collection.id).overrides == {}
