"""The keyword index while it is written: nothing committed is missing, nothing deleted is seen, at any moment."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import bm25s
import numpy as np
import pytest

from rag.retrieval.bm25 import index
from rag.retrieval.bm25.index import contextual_text, tokenize
from rag.retrieval.hybrid_search import SearchQuery, find_hits, keyword_search
from rag.retrieval.search_scope import read_scope
from rag.storage.database import Database
from rag.types import SearchResult
from tests.retrieval.shelf import Shelf, scores_of

WORDS = [
    "parking", "bicycle", "salary", "pension", "dental", "laptop", "travel", "notice", "doctor", "training", "budget",
    "holiday",
]  # fmt: skip


def ask(text: str) -> SearchQuery:
    return SearchQuery(text=text, language="en", correct_spelling=False)


def reference(passages: list[str], question: str) -> list[float]:
    """The ten best scores of bm25s on the same tokens."""
    retriever = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    retriever.index([tokenize(contextual_text("Guide", "", p), "en") for p in passages], show_progress=False)
    scores = 2.5 * np.asarray(retriever.get_scores(tokenize(question, "en")), dtype=float)
    return [score for score in np.sort(scores)[::-1][:10].tolist() if score > 0]


@pytest.fixture
def often_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which a few small documents already fill segments of every size."""
    monkeypatch.setattr(index, "SIZES", (30, 120, 480))
    monkeypatch.setattr(index, "FAN_OUT", 3)
    monkeypatch.setattr(index, "REMOVED_DOCUMENTS", (2, 10))


@pytest.mark.usefixtures("often_written_together")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_scores_equal_bm25s_after_every_change(shelf: Shelf, database: Database, seed: int) -> None:
    dice = random.Random(seed)
    stored: dict[UUID, list[str]] = {}
    for step in range(60):
        if stored and dice.random() < 0.35:
            gone = dice.choice(list(stored))
            shelf.remove(gone)
            del stored[gone]
        else:
            passages = [" ".join(dice.choices(WORDS, k=dice.randint(2, 12))) for _ in range(dice.randint(1, 5))]
            stored[shelf.add("Guide", passages)] = passages
        if stored and step % 4 == 0:
            together = [passage for passages in stored.values() for passage in passages]
            question = " ".join(dice.sample(WORDS, 3))
            found = keyword_search(database, ask(question), scope=shelf.scope, limit=10)
            np.testing.assert_allclose(scores_of(found), reference(together, question), rtol=1e-5)
    with database.transaction("demo") as connection:
        sizes = connection.execute("SELECT postings FROM keyword_segments").fetchall()
    assert len(sizes) < 14, "documents are written together"


@pytest.mark.usefixtures("often_written_together")
def test_writers_deleters_and_a_reader_at_once(shelf: Shelf, database: Database) -> None:
    """Each writer reads its own documents back; the reader must see every document wholly or not at all."""
    failures: list[str] = []
    is_over = threading.Event()

    def found(word: str) -> list[SearchResult]:
        return keyword_search(database, ask(word), scope=shelf.scope, limit=20)

    def write(writer: int) -> None:
        dice, own = random.Random(writer), list[tuple[UUID, str]]()
        for number in range(25):
            word = f"zq{'abc'[writer]}{chr(97 + number)}vok"
            document = shelf.add("Guide", [f"{word} together {dice.choice(WORDS)}" for _ in range(3)])
            own.append((document, word))
            if [r.document_id for r in found(word)] != [document] * 3:
                failures.append(f"{word} is not found once for each passage")
            if dice.random() < 0.5:
                gone, word = own.pop(dice.randrange(len(own)))
                shelf.remove(gone)
                if found(word):
                    failures.append(f"{word} is found after it was removed")
        left.extend(document for document, _ in own)

    def read() -> None:
        while not is_over.is_set():
            statistics = search_all()
            if statistics % 3:
                failures.append(f"{statistics} passages: a document was seen in part")

    def search_all() -> int:
        results = keyword_search(database, ask("together"), scope=shelf.scope, limit=1_000)
        return len(results) if len({r.chunk_id for r in results}) == len(results) else -1

    left: list[UUID] = []
    with ThreadPoolExecutor(4) as pool:
        reader = pool.submit(read)
        for writer in [pool.submit(write, number) for number in range(3)]:
            writer.result()
        is_over.set()
        reader.result()
    assert failures == []
    results = keyword_search(database, ask("together"), scope=shelf.scope, limit=1_000)
    assert sorted(r.document_id for r in results) == sorted(left * 3)


@pytest.mark.usefixtures("often_written_together")
def test_every_search_during_an_ingest_is_that_of_brute_force(shelf: Shelf, database: Database) -> None:
    """In the moment that a search sees, all passages there are say what it has to find."""
    is_over, compared = threading.Event(), list[int]()

    def ingest() -> None:
        dice = random.Random(5)
        for _ in range(60):
            shelf.add("Guide", [" ".join(dice.choices(WORDS, k=6)) for _ in range(2)])
        is_over.set()

    def check(seed: int) -> None:
        dice = random.Random(seed)
        while not is_over.is_set():
            question = " ".join(dice.sample(WORDS, 2))
            with database.pipeline("demo") as connection:
                found = find_hits(connection, ask(question), read_scope(connection, shelf.scope, None), limit=10)
                rows = connection.execute("SELECT content FROM document_chunks").fetchall()
            if rows:
                scores = [score for _, score in found.matching]
                np.testing.assert_allclose(scores, reference([row[0] for row in rows], question), rtol=1e-5)
                compared.append(len(rows))

    with ThreadPoolExecutor(4) as pool:
        for work in [pool.submit(ingest), *(pool.submit(check, seed) for seed in range(3))]:
            work.result()
    assert len(set(compared)) > 5, "at several moments"
