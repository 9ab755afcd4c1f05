"""The keyword index on a real Postgres, against bm25s."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import bm25s
import numpy as np
import pytest

from rag.retrieval.bm25.index import MAXIMUM_TERM_ID, contextual_text, index_document, term_id, tokenize
from rag.retrieval.hybrid_search import SearchQuery, keyword_search, search
from rag.storage.database import Database
from tests.retrieval.shelf import Shelf, scores_of

WORDS = [
    "vacation", "salary", "pension", "insurance", "dental", "parking", "bicycle", "travel", "expense", "laptop",
    "manager", "contract", "notice", "overtime", "holiday", "sickness", "doctor", "maternity", "training", "budget",
]  # fmt: skip


def random_passages(count: int, seed: int = 1) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, weights=range(1, 21), k=dice.randint(3, 60))) for _ in range(count)]


def reference_scores(passages: list[str], query: str, title: str) -> Any:
    """bm25s, method "lucene", on the same tokens; it leaves out the constant factor k1 + 1."""
    tokens = [tokenize(contextual_text(title, "", p), "en") for p in passages]
    retriever = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    retriever.index(tokens, show_progress=False)
    return 2.5 * np.asarray(retriever.get_scores(list(dict.fromkeys(tokenize(query, "en")))), dtype=float)


def counts(database: Database, sql: str) -> Any:
    with database.transaction("demo") as connection:
        return connection.execute(sql).fetchall()


def passages_with(shelf: Shelf, word: str) -> dict[int, float]:
    """What the search reads: in how many passages a word's term stands."""
    return dict(search(shelf.database, ask(word), scope=shelf.scope, limit=1).statistics.chunks_by_term)


def ask(text: str) -> SearchQuery:
    return SearchQuery(text=text, language="en")


@pytest.mark.parametrize(
    # Words with no other words for the same: those count in keyword search too, but not in the reference.
    "query",
    ["doctor", "pension insurance laptop", "the budget for bicycle training and the doctor", "salary salary"],
)
def test_scores_equal_those_of_bm25s(shelf: Shelf, database: Database, query: str) -> None:
    passages = random_passages(120)
    shelf.add("Guide", passages)
    expected = reference_scores(passages, query, "Guide")
    found = keyword_search(database, ask(query), scope=shelf.scope, limit=10)
    best = np.sort(expected)[::-1][:10]
    np.testing.assert_allclose(scores_of(found), best, rtol=1e-5)
    np.testing.assert_allclose([expected[r.chunk_index] for r in found], best, rtol=1e-5)


def test_scores_stay_exact_when_later_documents_change_the_average_length(shelf: Shelf, database: Database) -> None:
    short = random_passages(30, seed=2)
    long = [" ".join([p] * 4) for p in random_passages(30, seed=3)]
    shelf.add("Guide", short)
    shelf.add("Guide", long)
    expected = reference_scores(short + long, "laptop notice", "Guide")
    found = keyword_search(database, ask("laptop notice"), scope=shelf.scope, limit=10)
    np.testing.assert_allclose(scores_of(found), np.sort(expected)[::-1][:10], rtol=1e-5)


def test_counts_follow_additions_and_removals(shelf: Shelf, database: Database) -> None:
    kept = shelf.add("Guide", ["parking for bicycles", "parking for cars"])
    removed = shelf.add("Guide", ["parking in the yard"])
    shelf.remove(removed)
    length = sum(len(tokenize(f"Guide\n{p}", "en")) for p in ("parking for bicycles", "parking for cars"))
    assert counts(database, "SELECT chunks, tokens FROM keyword_totals") == [(2, length)]
    parking = term_id(tokenize("parking", "en")[0])
    assert passages_with(shelf, "parking")[parking] == 2
    assert counts(database, "SELECT document_id FROM keyword_documents") == [(kept,)]


def test_indexing_twice_is_the_same_as_once(shelf: Shelf, database: Database) -> None:
    document_id = shelf.add("Guide", ["parking for bicycles"])
    before = counts(database, "SELECT chunks, tokens FROM keyword_totals")
    with database.transaction("demo") as connection:
        written = index_document(
            connection, tenant_id="demo", collection_id=shelf.collection.id, document_id=document_id
        )
    assert written == 1
    assert counts(database, "SELECT chunks, tokens FROM keyword_totals") == before


def test_a_passage_of_stopwords_is_indexed_without_terms(shelf: Shelf, database: Database) -> None:
    shelf.add("The", ["and of the", "vacation"])
    found = keyword_search(database, ask("vacation"), scope=shelf.scope, limit=5)
    assert [r.content for r in found] == ["vacation"]


def test_what_is_indexed_begins_with_title_and_section() -> None:
    assert contextual_text("Plan", "Care › Eyes", "Text") == "Plan\nCare › Eyes\nText"
    assert contextual_text("", "", "Text") == "Text"


def test_term_ids_are_stable_and_of_four_bytes() -> None:
    assert term_id("vacat") == 580_129_229
    assert all(1 <= term_id(word) <= MAXIMUM_TERM_ID for word in WORDS)
    assert len({term_id(word) for word in WORDS}) == len(WORDS)


@pytest.mark.parametrize("removed", [1, 40])
def test_scores_stay_exact_after_removals(shelf: Shelf, database: Database, removed: int) -> None:
    kept = random_passages(40, seed=4)
    gone = [shelf.add("Guide", random_passages(2, seed=100 + n)) for n in range(removed)]
    shelf.add("Guide", kept)
    for document_id in gone:
        shelf.remove(document_id)
    assert counts(database, "SELECT count(*) FROM keyword_tombstones") == [(removed,)]
    expected = reference_scores(kept, "laptop notice pension", "Guide")
    found = keyword_search(database, ask("laptop notice pension"), scope=shelf.scope, limit=10)
    np.testing.assert_allclose(scores_of(found), np.sort(expected)[::-1][:10], rtol=1e-5)


def test_what_was_removed_leaves_the_index_with_the_next_documents(shelf: Shelf, database: Database) -> None:
    for document_id in [shelf.add("Guide", [f"parking for bicycles {number}"]) for number in range(20)]:
        shelf.remove(document_id)
    shelf.add("Guide", ["the canteen"])
    assert counts(database, "SELECT count(*) FROM keyword_tombstones") == [(0,)]
    assert counts(database, "SELECT sum(postings) FROM keyword_segments") == [(2,)]
    assert passages_with(shelf, "parking") == {}


def test_documents_published_at_once_are_all_counted(shelf: Shelf, database: Database) -> None:
    passages = [random_passages(5, seed=n) for n in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda p: shelf.add("Guide", p), passages))
    together = [passage for part in passages for passage in part]
    expected = reference_scores(together, "laptop notice", "Guide")
    found = keyword_search(database, ask("laptop notice"), scope=shelf.scope, limit=10)
    np.testing.assert_allclose(scores_of(found), np.sort(expected)[::-1][:10], rtol=1e-5)
