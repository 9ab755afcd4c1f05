"""What a scope was asked last is asked again before it is known what there is now: no change is missed for it."""

from __future__ import annotations

from uuid import UUID

from rag.providers.builtin_embedders import LexicalEmbedder
from rag.retrieval.bm25.index import remove_document
from rag.retrieval.hybrid_search import SearchQuery, hybrid_search, keyword_search, vector_search
from rag.storage.database import Database
from rag.types import SearchFilters
from tests.retrieval.shelf import Shelf


def ask(text: str, language: str = "en") -> SearchQuery:
    embedder = LexicalEmbedder()
    vector = embedder.embed([text], purpose="query").vectors[0]
    return SearchQuery(text=text, language=language, vector=vector, embedding_model=embedder.id, correct_spelling=False)


def found(shelf: Shelf, query: SearchQuery, filters: SearchFilters | None = None) -> list[set[UUID]]:
    """The documents that each search finds."""
    searches = (hybrid_search, vector_search, keyword_search)
    return [
        {r.document_id for r in search(shelf.database, query, scope=shelf.scope, filters=filters, limit=5)}
        for search in searches
    ]


def set_status(database: Database, document: UUID, status: str) -> None:
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET status = %s WHERE id = %s", (status, document))


def test_the_first_document_is_found_by_who_searched_before(shelf: Shelf) -> None:
    assert found(shelf, ask("parking permits")) == [set(), set(), set()]
    document = shelf.add("Guide", ["Parking permits are issued at the desk."])
    assert found(shelf, ask("parking permits")) == [{document}] * 3
    shelf.remove(document)
    assert found(shelf, ask("parking permits")) == [set(), set(), set()]


def test_a_document_in_another_language_is_found_by_its_own_word_forms(shelf: Shelf, database: Database) -> None:
    question = ask("Wohnungen der Mitarbeiterinnen", "de")
    shelf.add("Guide", ["Parking permits are issued at the desk."])
    assert keyword_search(database, question, scope=shelf.scope, limit=5) == []
    german = shelf.add("Leitfaden", ["Jede Wohnung gehört einer Mitarbeiterin."], language="de")
    assert [r.document_id for r in keyword_search(database, question, scope=shelf.scope, limit=5)] == [german]


def test_a_document_whose_passages_are_only_being_written_is_not_found(shelf: Shelf, database: Database) -> None:
    finished = shelf.add("Rules", ["Parking permits are checked on Mondays."])
    question = ask("parking permits")
    assert found(shelf, question) == [{finished}] * 3
    coming = shelf.add("Parking permits", ["Parking permits."], status="processing")
    with database.transaction("demo") as connection:
        remove_document(connection, tenant_id="demo", collection_id=shelf.collection.id, document_id=coming)
    ids = [r.document_id for r in vector_search(database, question, scope=shelf.scope, limit=1)]
    assert ids == [finished], "it would have been the nearest, and there is room for one"


def test_a_document_that_is_taken_back_is_not_found_and_is_again_later(shelf: Shelf, database: Database) -> None:
    permits = shelf.add("Guide", ["Parking permits are issued at the desk."])
    rules = shelf.add("Rules", ["Parking permits are checked on Mondays."])
    question = ask("parking permits")
    for status, expected in (("completed", {permits, rules}), ("processing", {rules}), ("completed", {permits, rules})):
        set_status(database, permits, status)
        assert found(shelf, question) == [expected] * 3, status


def test_a_filter_after_a_search_without_one_and_the_other_way_round(shelf: Shelf) -> None:
    permits = shelf.add("Guide", ["Parking permits are issued at the desk."])
    rules = shelf.add("Rules", ["Parking permits are checked on Mondays."])
    question = ask("parking permits")
    for _ in range(2):
        assert found(shelf, question) == [{permits, rules}] * 3
        assert found(shelf, question, SearchFilters(document_ids=(rules,))) == [{rules}] * 3
        assert found(shelf, question, SearchFilters(document_ids=(UUID(int=1),))) == [set(), set(), set()]
