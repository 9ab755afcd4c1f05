"""What is found, and what must not be."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Literal
from uuid import uuid4

import numpy as np
import pytest

from rag.errors import InvalidInput
from rag.providers.builtin_embedders import LexicalEmbedder
from rag.retrieval import hybrid_search as hybrid_module
from rag.retrieval import search_scope
from rag.retrieval.hybrid_search import SearchQuery, hybrid_search, keyword_search, vector_search
from rag.storage.database import Database
from rag.types import Collection, Embeddings, FloatMatrix, Scope, SearchFilters
from tests.retrieval.shelf import Shelf

SEARCHES = [vector_search, keyword_search, hybrid_search]
Search = Callable[..., list[Any]]


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


def test_a_similarity_below_the_threshold_counts_for_nothing_beside_keywords(shelf: Shelf, database: Database) -> None:
    shelf.add("Guide", ["parking for bicycles", "parking " + "of many other things at noon in the canteen " * 8])
    query = replace(ask("parking bicycles"), threshold=0.3, refine=False)
    near, far = hybrid_search(database, query, scope=shelf.scope, limit=5)
    assert near.similarity is not None
    assert near.keyword_score is not None
    assert far.keyword_score is not None
    assert near.score == pytest.approx(0.6 * near.similarity + 0.4 + 0.3 / 61 + 0.2 / 61)
    assert far.score == pytest.approx(0.4 * far.keyword_score / near.keyword_score + 0.2 / 62)


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
def test_what_keywords_alone_found_is_compared_with_the_question_too(
    fusion: Literal["weighted", "rrf"], shelf: Shelf, database: Database
) -> None:
    houses = [f"parking for bicycles in the yard of house {number}" for number in range(60)]
    shelf.add("Guide", ["parking bicycles zebra", *houses])
    shelf.add("Animals", ["zebra on a zebra crossing, no bicycles, " + "many other things at noon in the canteen " * 4])
    query = replace(ask("parking bicycles"), text="zebra", refine=False, fusion=fusion)
    found = hybrid_search(database, query, scope=shelf.scope, limit=20)
    (animal,) = (r for r in found if r.title == "Animals")
    assert animal.vector_rank is None, "60 passages are nearer, and 50 are candidates"
    assert 0 < (animal.similarity or 0) < min(r.similarity or 0 for r in found if r.vector_rank)
    best = max(r.keyword_score or 0 for r in found)
    for result in found:
        ranks = [1 / (60 + rank) if rank else 0 for rank in (result.vector_rank, result.keyword_rank)]
        shares = 0.6 * (result.similarity or 0) + 0.4 * (result.keyword_score or 0) / best
        weighted = shares + 0.3 * ranks[0] + 0.2 * ranks[1]
        assert result.score == pytest.approx(sum(ranks) if fusion == "rrf" else weighted)
    assert {(r.vector_rank is None, r.keyword_rank is None) for r in found} == {
        (True, False),
        (False, True),
        (False, False),
    }


def test_metadata_is_met_by_a_passage_or_by_its_document(shelf: Shelf, database: Database) -> None:
    legal = shelf.add("Law", ["parking of bicycles", "parking of cars"], metadata={"department": "traffic"})
    shelf.add("Guide", ["parking of bicycles"])
    with database.transaction("demo") as connection:
        connection.execute(
            'UPDATE document_chunks SET metadata = \'{"topic": "cars"}\' WHERE document_id = %s AND chunk_index = 1',
            (legal,),
        )

    def found(**metadata: str) -> list[str]:
        filters = SearchFilters(metadata=metadata)
        return [r.content for r in hybrid_search(database, ask("parking"), scope=shelf.scope, filters=filters, limit=5)]

    assert found(topic="cars") == found(topic="cars", department="traffic") == ["parking of cars"]
    assert len(found(department="traffic")) == 2
    assert found(topic="cars", department="roads") == found(topic="ships") == []


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


@pytest.mark.parametrize("search", SEARCHES)
def test_every_kind_of_condition_is_part_of_the_search(search: Search, shelf: Shelf, database: Database) -> None:
    for number in range(60):
        shelf.add(f"Guide {number}", ["parking parking parking"], metadata={"createdAt": "2019-05-01"})
    metadata = {
        "categorySlug": "notice-md", "documentType": "post", "year": 2024, "isImportant": True,
        "backdatedAt": 1_717_200_000_000, "createdAt": "2025-01-01T00:00:00Z", "author": {"team": "pay"},
    }  # fmt: skip
    shelf.add("Wanted", ["a long text about many things, and parking"], metadata=metadata)  # of 1 June 2024
    for filters in (
        SearchFilters(categories=("notice-md",)),
        SearchFilters(document_types=("post", "page")),
        SearchFilters(years=(2024,)),
        SearchFilters(date_from=date(2024, 6, 1), date_to=date(2024, 6, 1)),
        SearchFilters(date_from=date(2019, 5, 2), date_to=date(2024, 12, 31)),
        SearchFilters(important_only=True),
        SearchFilters(metadata={"author": {"team": "pay"}}),
        SearchFilters(important_only=True, years=(2024,), document_types=("post",)),
    ):
        found = search(database, ask("parking"), scope=shelf.scope, filters=filters, limit=3)
        assert [r.title for r in found] == ["Wanted"], filters
    for nothing in (
        SearchFilters(important_only=True, years=(2023,)),
        SearchFilters(date_from=date(2024, 6, 2), date_to=date(2025, 1, 1)),
    ):
        assert search(database, ask("parking"), scope=shelf.scope, filters=nothing, limit=3) == []
    assert (
        len(
            search(
                database, ask("parking"), scope=shelf.scope, filters=SearchFilters(date_to=date(2020, 1, 1)), limit=3
            )
        )
        >= 1
    )


def test_a_vector_of_another_length_is_refused_in_words(shelf: Shelf, database: Database) -> None:
    shelf.add("Guide", ["parking for bicycles"])
    query = replace(ask("parking"), vector=np.ones(384, np.float32))
    with pytest.raises(InvalidInput, match="384 dimensions, but those of builtin/lexical@1536 have 1536"):
        vector_search(database, query, scope=shelf.scope, limit=5)


class RandomEmbedder:
    """Dense vectors of any length, the same for the same text."""

    provider, model, default_threshold, is_paid = "openai", "random", 0.3, False

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.id = f"openai/random@{dimensions}"

    def embed(self, texts: Sequence[str], *, purpose: str) -> Embeddings:
        rows = [np.random.default_rng(zlib.crc32(t.encode())).standard_normal(self.dimensions) for t in texts]
        return Embeddings(vectors=np.array([row / np.linalg.norm(row) for row in rows], dtype=np.float32))


class GivenEmbedder(RandomEmbedder):
    """Vectors given by the last line of a text."""

    def __init__(self, vectors: Mapping[str, FloatMatrix], *, otherwise: FloatMatrix) -> None:
        super().__init__(len(otherwise))
        self._vectors, self._otherwise = vectors, otherwise

    def embed(self, texts: Sequence[str], *, purpose: str) -> Embeddings:
        rows = np.array([self._vectors.get(text.split("\n")[-1], self._otherwise) for text in texts])
        return Embeddings(vectors=rows / np.linalg.norm(rows, axis=1, keepdims=True))


@pytest.mark.parametrize("filtered", [False, True])
def test_a_large_collection_is_scanned_by_bits_and_loses_nothing(
    filtered: bool, database: Database, new_collection: Callable[..., Collection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_scope, "EXACT_SCAN_PASSAGES", 10)
    monkeypatch.setattr(hybrid_module, "BIT_CANDIDATES", 100)  # for 384 dimensions twice as many
    embedder = RandomEmbedder(384)
    shelf = Shelf(database, new_collection("demo", "Large", embedding_model=embedder.id), embedder)
    passages = [f"passage {number}" for number in range(300)]
    for part in range(3):
        shelf.add(f"Part {part}", passages[part::3], metadata={"categories": [f"c{part}"]})
    wanted = passages[1::3] if filtered else passages
    vectors = embedder.embed([f"Part {passages.index(p) % 3}\n{p}" for p in wanted], purpose="document").vectors
    asked = embedder.embed(["anything"], purpose="query").vectors[0]
    query = SearchQuery(text="anything", vector=asked, embedding_model=embedder.id)
    filters = SearchFilters(categories=("c1",)) if filtered else None
    found = vector_search(database, query, scope=shelf.scope, filters=filters, limit=10)
    best = [wanted[i] for i in np.argsort(-(vectors @ asked))[:10]]
    assert len(found) == 10
    assert len({r.content for r in found} & set(best)) >= 9


@pytest.mark.parametrize("first", [0, 60, 250, 1000], ids="first {} say how near".format)
def test_what_the_first_rows_leave_unsorted_is_never_among_the_nearest(
    first: int, database: Database, new_collection: Callable[..., Collection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows are looked at first, 50 are kept; an unfinished document has no say in how near they are."""
    monkeypatch.setattr(search_scope, "EXACT_SCAN_PASSAGES", 10)
    monkeypatch.setattr(hybrid_module, "BIT_CANDIDATES", 50)
    monkeypatch.setattr(hybrid_module, "SIGNS", 384)
    embedder = RandomEmbedder(384)
    shelf = Shelf(database, new_collection("demo", "Large", embedding_model=embedder.id), embedder)
    asked = embedder.embed(["anything"], purpose="query").vectors[0]
    nearer = GivenEmbedder({}, otherwise=asked)
    nearer.id = embedder.id
    unfinished = [f"near {number}" for number in range(60)]
    Shelf(database, shelf.collection, nearer).add("Unfinished", unfinished, status="processing")
    passages = [f"passage {number}" for number in range(300)]
    shelf.add("Part", passages)
    monkeypatch.setattr(hybrid_module, "FIRST_BITS", first)
    query = SearchQuery(text="anything", vector=asked, embedding_model=embedder.id)
    found = vector_search(database, query, scope=shelf.scope, limit=50)
    vectors = embedder.embed([f"Part\n{passage}" for passage in passages], purpose="document").vectors
    differing = ((vectors > 0) != (asked > 0)).sum(axis=1)
    furthest = np.sort(differing)[49]
    kept = {passages[i] for i in np.flatnonzero(differing < furthest)}
    assert len(found) == 50
    assert kept <= {result.content for result in found} <= {passages[i] for i in np.flatnonzero(differing <= furthest)}


def test_as_many_neighbours_are_compared_as_are_asked_for(
    database: Database, new_collection: Callable[..., Collection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source 001 looks at 20 times as many neighbours as it shows: the nearest may be far by the signs alone."""
    monkeypatch.setattr(search_scope, "EXACT_SCAN_PASSAGES", 10)
    monkeypatch.setattr(hybrid_module, "BIT_CANDIDATES", 20)
    monkeypatch.setattr(hybrid_module, "SIGNS", 64)
    across, along = np.full(64, 1.0, np.float32), np.full(64, -0.001, np.float32)
    across[0], along[0] = 0.001, 1.0  # the signs of the first are all the question's, the second points where it does
    asked = np.abs(along)
    embedder = GivenEmbedder({"along": along, "far": -asked}, otherwise=across)
    shelf = Shelf(database, new_collection("demo", "Large", embedding_model=embedder.id), embedder)
    shelf.add("Across", [f"across {number}" for number in range(40)])
    shelf.add("Other", ["along", "far"])
    query = SearchQuery(text="", vector=asked, embedding_model=embedder.id)

    def nearest(neighbours: int) -> str:
        asked_for = replace(query, neighbours=neighbours)
        return vector_search(database, asked_for, scope=shelf.scope, limit=1)[0].content

    assert nearest(20).startswith("across")
    assert nearest(100) == "along"


@pytest.mark.parametrize("dimensions", [384, 1024, 3072])
def test_collections_of_different_dimensions_live_side_by_side(
    dimensions: int, shelf: Shelf, database: Database, new_collection: Callable[..., Collection]
) -> None:
    shelf.add("Lexical", ["parking for bicycles"])
    embedder = RandomEmbedder(dimensions)
    dense = Shelf(database, new_collection("demo", "Dense", embedding_model=embedder.id), embedder)
    dense.add("Dense", ["parking for bicycles"])
    both = Scope(tenant_id="demo", collection_ids=(*shelf.scope.collection_ids, *dense.scope.collection_ids))
    asked = embedder.embed(["Dense\nparking for bicycles"], purpose="query").vectors[0]
    query = SearchQuery(text="parking", language="en", vector=asked, embedding_model=embedder.id)
    assert [(r.title, round(r.similarity or 0, 2)) for r in vector_search(database, query, scope=both, limit=5)] == [
        ("Dense", 1.0)
    ]
    assert {r.title for r in hybrid_search(database, query, scope=both, limit=5)} == {"Dense", "Lexical"}


@pytest.mark.parametrize("search", SEARCHES)
def test_a_document_taken_back_is_not_found_any_more(search: Search, shelf: Shelf, database: Database) -> None:
    document_id = shelf.add("Guide", ["parking for bicycles"])
    shelf.add("Other", ["parking for cars"])
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET status = 'processing' WHERE id = %s", (document_id,))
    assert [r.title for r in search(database, ask("parking"), scope=shelf.scope, limit=1)] == ["Other"]
