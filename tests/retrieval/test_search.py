"""What is found, and what must not be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import numpy as np
import pytest
from shelf import Shelf

from rag.database import Database
from rag.providers.offline import LexicalEmbedder
from rag.retrieval.search import SearchQuery, hybrid_search, keyword_search, vector_search
from rag.types import Collection, Scope, SearchFilters

SEARCHES = [vector_search, keyword_search, hybrid_search]
Search = Callable[..., list]


def ask(text: str, language: str = "en") -> SearchQuery:
    embedder = LexicalEmbedder()
    vector = embedder.embed([text], purpose="query").vectors[0]
    return SearchQuery(text=text, language=language, vector=vector, embedding_model=embedder.id)


@pytest.mark.parametrize("search", SEARCHES)
def test_nothing_stored_finds_nothing(search: Search, shelf: Shelf, database: Database) -> None:
    assert search(database, ask("parking"), scope=shelf.scope, limit=5) == []


@pytest.mark.parametrize("search", SEARCHES)
def test_another_tenant_is_never_found(search: Search, shelf: Shelf, other_shelf: Shelf, database: Database) -> None:
    shelf.add("Ours", ["parking for bicycles"])
    other_shelf.add("Theirs", ["parking for bicycles, canary"])
    assert {r.title for r in search(database, ask("parking canary"), scope=shelf.scope, limit=9)} == {"Ours"}
    posing = Scope(tenant_id="demo", collection_ids=other_shelf.scope.collection_ids)
    assert search(database, ask("parking canary"), scope=posing, limit=9) == []


@pytest.mark.parametrize("search", SEARCHES)
def test_only_collections_of_the_scope_are_found(
    search: Search, shelf: Shelf, database: Database, new_collection: Callable[..., Collection]
) -> None:
    closed = replace(shelf, collection=new_collection("demo", "Board"))
    shelf.add("Open", ["parking for bicycles"])
    closed.add("Closed", ["parking for the board"])
    assert {r.title for r in search(database, ask("parking"), scope=shelf.scope, limit=9)} == {"Open"}
    both = Scope(tenant_id="demo", collection_ids=(*shelf.scope.collection_ids, *closed.scope.collection_ids))
    assert {r.title for r in search(database, ask("parking"), scope=both, limit=9)} == {"Open", "Closed"}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("status", ["reading", "estimated", "processing", "failed"])
def test_unfinished_documents_are_not_found(search: Search, status: str, shelf: Shelf, database: Database) -> None:
    shelf.add("Draft", ["parking for bicycles"], status=status)
    assert search(database, ask("parking"), scope=shelf.scope, limit=5) == []


@pytest.mark.parametrize("search", SEARCHES)
def test_a_removed_document_is_not_found(search: Search, shelf: Shelf, database: Database) -> None:
    shelf.remove(shelf.add("Guide", ["parking for bicycles"]))
    assert search(database, ask("parking"), scope=shelf.scope, limit=5) == []


@pytest.mark.parametrize("search", SEARCHES)
def test_filters_are_part_of_the_search(search: Search, shelf: Shelf, database: Database) -> None:
    for number in range(60):
        shelf.add(f"Guide {number}", ["parking parking parking"])
    wanted = shelf.add(
        "Wanted", ["a long text about many things, and parking"], metadata={"categories": ["cars"], "years": [2026]}
    )
    for filters in (
        SearchFilters(document_ids=(wanted,)),
        SearchFilters(categories=("cars", "trains")),
        SearchFilters(years=(2026,)),
    ):
        found = search(database, ask("parking"), scope=shelf.scope, filters=filters, limit=3)
        assert [r.title for r in found] == ["Wanted"]
    nowhere = SearchFilters(document_ids=(uuid4(),))
    assert search(database, ask("parking"), scope=shelf.scope, filters=nowhere, limit=3) == []


def test_vectors_of_another_embedder_are_not_compared(shelf: Shelf, database: Database) -> None:
    shelf.add("Guide", ["parking for bicycles"])
    query = replace(
        ask("parking"), embedding_model="openai/text-embedding-3-large@3072", vector=np.ones(3072, np.float32)
    )
    assert vector_search(database, query, scope=shelf.scope, limit=5) == []
    found = hybrid_search(database, query, scope=shelf.scope, limit=5)
    assert [r.similarity for r in found] == [None]


def test_similarity_below_the_threshold_is_left_out(shelf: Shelf, database: Database) -> None:
    shelf.add("Guide", ["parking for bicycles", "the canteen opens at noon"])
    found = vector_search(database, replace(ask("parking bicycles"), threshold=0.3), scope=shelf.scope, limit=5)
    assert [r.content for r in found] == ["parking for bicycles"]
    assert found[0].similarity is not None
    assert 0.3 <= found[0].similarity <= 1


def test_a_zero_vector_searches_by_keywords_alone(shelf: Shelf, database: Database) -> None:
    shelf.add("Guide", ["parking for bicycles"])
    query = replace(ask("parking"), vector=np.zeros(1536, np.float32))
    assert vector_search(database, query, scope=shelf.scope, limit=5) == []
    assert len(hybrid_search(database, query, scope=shelf.scope, limit=5)) == 1


@pytest.mark.parametrize(
    "text", ["", "the of", "'; DROP TABLE documents; --", "%(tenant_id)s {} \\ \u0000x", "a" * 5000]
)
def test_any_text_can_be_searched_for(text: str, shelf: Shelf, database: Database) -> None:
    shelf.add("Guide", ["parking for bicycles"])
    keyword_search(database, SearchQuery(text=text, language="en"), scope=shelf.scope, limit=5)
    assert len(keyword_search(database, ask("parking"), scope=shelf.scope, limit=5)) == 1


def test_each_language_is_found_in_a_mixed_collection(shelf: Shelf, database: Database) -> None:
    for number in range(5):
        shelf.add(f"Handbook {number}", ["Employees accrue vacation days.", "The policies on parking apply."])
    shelf.add("취업규칙", ["연차휴가는 매년 15일이 주어집니다.", "회사 주차장은 무료입니다."], language="ko")
    shelf.add("Personeelsgids", ["Medewerkers hebben 25 vakantiedagen.", "Parkeren is gratis."], language="nl")
    assert (
        hybrid_search(database, ask("연차휴가가 며칠이에요?", "ko"), scope=shelf.scope, limit=1)[0].title == "취업규칙"
    )
    found = hybrid_search(database, ask("Hoeveel vakantiedag krijg ik?", "nl"), scope=shelf.scope, limit=1)
    assert found[0].content.startswith("Medewerkers")
    found = hybrid_search(database, ask("what is the policy on parking?"), scope=shelf.scope, limit=1)
    assert found[0].content.startswith("The policies")


def test_a_named_document_comes_before_its_near_twin(shelf: Shelf, database: Database) -> None:
    passage = "Hearing aids are covered up to 1,000 dollars a year."
    shelf.add("Northwind Health Plus", [passage])
    shelf.add("Northwind Standard", [passage])
    for name in ("Northwind Standard", "Northwind Health Plus"):
        found = hybrid_search(database, ask(f"Does {name} cover hearing aids?"), scope=shelf.scope, limit=5)
        assert found[0].title == name
        assert len(found) == 2, "both of the twins stay findable"


def test_a_passage_kept_twice_is_found_once(shelf: Shelf, database: Database) -> None:
    shelf.add("Guide", ["Parking for bicycles.", "parking  for BICYCLES."])
    shelf.add("Guide", ["Parking for bicycles."])
    assert len(hybrid_search(database, ask("parking"), scope=shelf.scope, limit=5)) == 1


def test_a_misspelt_word_finds_what_was_meant(shelf: Shelf, database: Database) -> None:
    shelf.add("Guide", ["The canteen opens at noon.", "Hearing aids are covered.", "Services of the doctor."])
    found = hybrid_search(database, ask("hearin aids covred"), scope=shelf.scope, limit=3)
    assert found[0].content == "Hearing aids are covered."


def test_ranks_and_scores_are_given(shelf: Shelf, database: Database) -> None:
    shelf.add("Guide", ["parking for bicycles", "parking for cars", "the canteen"])
    found = hybrid_search(database, ask("parking bicycles"), scope=shelf.scope, limit=3)
    assert (found[0].vector_rank, found[0].keyword_rank) == (1, 1)
    assert [r.score for r in found] == sorted((r.score for r in found), reverse=True)
