"""An index of one collection's vectors: made, measured, used where it loses next to nothing, gone with its vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest

from rag.errors import InvalidInput, NotAllowed
from rag.retrieval import search_scope
from rag.retrieval.hybrid_search import SearchQuery, vector_search
from rag.retrieval.vector_index import VectorIndex
from rag.services import Services, program_of
from rag.storage.database import Database
from rag.types import Collection, Embeddings, FloatMatrix, Identity, Role, Scope, SearchFilters
from tests.retrieval.shelf import Shelf

MODEL = "standin/random@64"
PASSAGES = 600


class NumberedEmbedder:
    """Vectors without any order, by the number that a text ends with: the hardest an approximate index can get."""

    id, provider, model, dimensions, is_paid = MODEL, "standin", "random", 64, False

    def embed(self, texts: list[str], *, purpose: str) -> Embeddings:
        return Embeddings(vectors=np.stack([vector_of(int(text.rsplit(" ", 1)[1])) for text in texts]))


def vector_of(number: int) -> FloatMatrix:
    vector = np.random.default_rng(number).standard_normal(64).astype(np.float32)
    return vector / np.linalg.norm(vector)


@pytest.fixture
def large(
    app_services: Services, new_collection: Callable[..., Collection], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shelf]:
    """A collection that the search takes for a large one, beside one of another tenant with the same passages."""
    monkeypatch.setattr(search_scope, "EXACT_SCAN_PASSAGES", 100)
    search_scope._expected.clear()
    shelf = Shelf(app_services.database, new_collection("demo", "Large", embedding_model=MODEL), NumberedEmbedder())  # type: ignore[arg-type]
    shelf.add("Rules", [f"rule {number}" for number in range(PASSAGES)])
    theirs = replace(shelf, collection=new_collection("other", "Theirs", embedding_model=MODEL))
    theirs.add("Canary", [f"canary {number}" for number in range(PASSAGES)])
    shelf.theirs = theirs  # type: ignore[attr-defined]
    yield shelf
    search_scope._expected.clear()


def make(services: Services, shelf: Shelf, kind: Any = "hnsw", **options: Any) -> VectorIndex:
    """Make an index that is used also where a small collection is scanned in less time."""
    return services.vector_indexes.make(
        program_of("demo"), shelf.collection, kind, **{"must_be_faster": False, **options}
    )


def found(database: Database, scope: Scope, number: int, **options: Any) -> list[str]:
    """Contents of the ten nearest; asked twice, since what a scope holds is only known after the first time."""
    query = SearchQuery(text="", vector=vector_of(number), embedding_model=MODEL)
    twice = [[r.content for r in vector_search(database, query, scope=scope, limit=10, **options)] for _ in range(2)]
    assert twice[0] == twice[1]
    return twice[0]


def scans(database: Database, collection: Collection) -> int:
    """How often Postgres read a collection's index; the pool has one connection, so that its own count is the whole."""
    with database.transaction("demo") as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
    with database.transaction("demo") as connection:
        row = connection.execute(
            "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = %s", (name_of(collection),)
        ).fetchone()
    return int(row[0]) if row else 0


def name_of(collection: Collection) -> str:
    return f"document_chunks_near_{collection.id.hex}"


def is_there(superuser_conninfo: str, collection: Collection) -> bool:
    with psycopg.connect(superuser_conninfo) as connection:
        return connection.execute("SELECT to_regclass(%s)", (f"rag_partitions.{name_of(collection)}",)).fetchone() != (
            None,
        )


@pytest.mark.parametrize("kind", ["hnsw", "ivfflat"])
def test_an_index_that_finds_enough_is_used_and_finds_what_the_scan_finds(
    kind: str, large: Shelf, app_services: Services, database: Database, superuser_conninfo: str
) -> None:
    before = found(database, large.scope, 7)
    assert before[0] == "rule 7"
    made = make(app_services, large, kind)
    measured = made.measurement
    assert measured is not None
    assert (made.kind, made.is_used, made.passages, made.is_whole) == (kind, True, PASSAGES, True)
    assert made.bytes > 0
    assert measured.passages == 100
    chosen = measured.chosen
    assert (chosen.breadth, chosen.recall >= 0.99) == (made.breadth, True)
    assert all(each.recall < 0.99 for each in measured.tried if each.breadth < chosen.breadth)
    assert 0 < measured.exact_ms.p50 <= measured.exact_ms.p95
    read = scans(database, large.collection)
    after = [found(database, large.scope, number) for number in range(10)]
    assert after[7] == before
    assert [each[0] for each in after] == [f"rule {number}" for number in range(10)]
    assert scans(database, large.collection) == read + 20


def test_an_index_that_loses_neighbours_is_kept_unused(
    large: Shelf, app_services: Services, database: Database
) -> None:
    """One of some 24 lists holds few of the neighbours of a vector without order."""
    made = make(app_services, large, "ivfflat", breadths=(1,))
    measured = made.measurement
    assert measured is not None
    assert measured.chosen.recall < 0.9
    assert not made.is_used
    read = scans(database, large.collection)
    assert found(database, large.scope, 7)[0] == "rule 7"
    assert scans(database, large.collection) == read
    # Measured again by how far it may look, it finds enough.
    again = app_services.vector_indexes.measure(program_of("demo"), large.collection, must_be_faster=False)
    assert (again.is_used, again.breadth > 1, again.seconds) == (True, True, made.seconds)


def test_tenants_filters_and_unpublished_documents_are_kept_apart(
    large: Shelf, app_services: Services, database: Database
) -> None:
    draft = large.add("Draft", [f"draft {number}" for number in range(1000, 1100)], status="processing")
    wanted = large.add("Wanted", ["wanted 2000", "wanted 2001"], metadata={"categories": ["cars"]})
    make(app_services, large)
    # What another tenant asks of this collection finds nothing, whatever it says.
    query = SearchQuery(text="", vector=vector_of(7), embedding_model=MODEL)
    posing = Scope(tenant_id="other", collection_ids=large.scope.collection_ids)
    assert vector_search(database, query, scope=posing, limit=10) == []
    with database.transaction("other") as connection:
        stolen = connection.execute(
            "SELECT * FROM rag_nearest_by_index('demo', %s, %s::halfvec, 100, 0, 10)",
            (large.collection.id, str([1.0] * 64)),
        ).fetchall()
    assert stolen == []
    assert not any(each.startswith("canary") for each in found(database, large.scope, 7))
    # A draft's passages are in the index and in the way: of its own neighbours none is found, and ten others are.
    near_draft = found(database, large.scope, 1005)
    assert len(near_draft) == 10
    assert not any(each.startswith("draft") for each in near_draft)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET status = 'completed' WHERE id = %s", (draft,))
    assert found(database, large.scope, 1005)[0] == "draft 1005"
    read = scans(database, large.collection)
    only = SearchFilters(categories=("cars",))
    assert found(database, large.scope, 7, filters=only) in (
        ["wanted 2000", "wanted 2001"],
        ["wanted 2001", "wanted 2000"],
    )
    both = Scope(tenant_id="demo", collection_ids=(large.collection.id, large.theirs.collection.id))  # type: ignore[attr-defined]
    assert found(database, both, 7)[0] == "rule 7"
    assert scans(database, large.collection) == read, "a filter or a second collection is scanned for"
    large.remove(wanted)
    # What is added later is in the index too, until there is more of it than was measured.
    large.add("Later", ["later 3000"])
    assert found(database, large.scope, 3000)[0] == "later 3000"
    assert scans(database, large.collection) == read + 2
    large.add("Many", [f"many {number}" for number in range(4000, 4000 + 2 * PASSAGES)])
    assert found(database, large.scope, 4001)[0] == "many 4001"
    assert scans(database, large.collection) <= read + 3, "only by what was known of the scope before"
    assert vector_search(database, query, scope=large.scope, limit=1)[0].content == "rule 7"


def test_an_index_goes_with_its_vectors(
    large: Shelf, app_services: Services, database: Database, superuser_conninfo: str
) -> None:
    indexes, collection = app_services.vector_indexes, large.collection
    identity = program_of("demo")
    theirs = large.theirs.collection  # type: ignore[attr-defined]
    indexes.make(program_of("other"), theirs, breadths=(40,))
    reader = Identity(account_id=UUID(int=1), tenant_id="demo", email="", name="", role=Role.EMPLOYEE, user_group="x")
    for who in (None, "demo", "other", reader):
        assert database.fetch_value(who, "drop_unused_indexes") == 0
    make(app_services, large, breadths=(40,))
    assert indexes.drop(identity, collection)
    assert (is_there(superuser_conninfo, collection), indexes.find(collection)) == (False, None)
    assert not indexes.drop(identity, collection)
    with pytest.raises(InvalidInput, match="has no index"):
        indexes.measure(identity, collection)
    # Embedded by another model: the row goes at once, the index with the next look.
    make(app_services, large, breadths=(40,))
    with database.transaction("demo") as connection:
        connection.execute(
            "UPDATE collections SET embedding_model = 'builtin/lexical@64' WHERE id = %s", (collection.id,)
        )
    assert indexes.find(collection) is None
    assert database.fetch_value(None, "drop_unused_indexes") == 1
    assert not is_there(superuser_conninfo, collection)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE collections SET embedding_model = %s WHERE id = %s", (MODEL, collection.id))
    # Deleted: both are gone when the deletion is done, and the other tenant's is not.
    make(app_services, large, breadths=(40,))
    app_services.documents.delete_collection(identity, collection.id, confirmed_name=collection.name)
    assert not is_there(superuser_conninfo, collection)
    assert is_there(superuser_conninfo, theirs)
    app_services.tenants.suspend("other")
    app_services.tenants.delete("other")
    assert not is_there(superuser_conninfo, theirs)


def test_what_cannot_be_made_says_why_and_a_broken_one_is_made_again(
    large: Shelf,
    app_services: Services,
    database: Database,
    owner_conninfo: str,
    new_collection: Callable[..., Collection],
) -> None:
    indexes, collection = app_services.vector_indexes, large.collection
    reader = Identity(account_id=UUID(int=1), tenant_id="demo", email="", name="", role=Role.EMPLOYEE)
    with pytest.raises(NotAllowed):
        indexes.make(reader, collection)
    with pytest.raises(InvalidInput, match="no passages with vectors"):
        indexes.make(program_of("demo"), new_collection("demo", "Empty", embedding_model=MODEL))
    with psycopg.connect(owner_conninfo, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (name_of(collection),))
        with pytest.raises(InvalidInput, match="Another program"):
            make(app_services, large)
    make(app_services, large, breadths=(400,))
    with psycopg.connect(owner_conninfo, autocommit=True) as owner:
        owner.execute(f"DROP INDEX rag_partitions.{name_of(collection)}")  # as a restored backup without it
    assert found(database, large.scope, 7)[0] == "rule 7"
    with pytest.raises(InvalidInput, match="Make it once more"):
        indexes.measure(program_of("demo"), collection)
    assert make(app_services, large, breadths=(400,)).is_used
