"""Postings as bytes and scores, against plain counting and bm25s."""

from __future__ import annotations

import random

import bm25s
import numpy as np
import pytest
from numpy.typing import NDArray

from rag.retrieval.bm25.scoring import (
    MAXIMUM_COUNT,
    Bm25,
    Postings,
    Ranges,
    best_of,
    blocks_of,
    matches_in,
    postings_in,
    postings_of,
)

NONE = Ranges.of([])


def passages_of(count: int, seed: int, vocabulary: int = 300) -> list[NDArray[np.int32]]:
    """Passages of 0 to 60 terms, some of them far more frequent than others."""
    dice = random.Random(seed)
    return [
        np.array([int(vocabulary * dice.random() ** 3) + 1 for _ in range(dice.randint(0, 60))], dtype=np.int32)
        for _ in range(count)
    ]


def found_in(segments: list[list[tuple[int, bytes]]], terms: list[int]) -> list[tuple[int, int, bytes]]:
    """What Postgres answers: for every segment and term the last block that begins at or before the term."""
    found = []
    for blocks in segments:
        for term in terms:
            fitting = [data for first, data in blocks if first <= term]
            if fitting:
                found.append((0, term, fitting[-1]))
    return found


def same(one: Postings, other: Postings) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("terms", "passages", "counts"))


def test_no_passages_have_no_blocks() -> None:
    assert list(blocks_of(postings_of([], 0))) == []
    assert list(blocks_of(postings_of([np.empty(0, np.int32)], 0))) == []
    assert len(postings_in([])) == 0


def test_a_term_that_stands_nowhere_is_not_found_in_the_block_before_it() -> None:
    blocks = list(blocks_of(postings_of([np.array([5, 9], np.int32)], 0)))
    assert matches_in([(0, 7, blocks[0][1]), (0, 99, blocks[0][1])], NONE).passages_by_term == {}


def test_lengths_and_frequencies_past_the_highest_count_as_that() -> None:
    postings = postings_of([np.full(40_000, 3, np.int32)], 0)
    assert postings.counts.tolist() == [MAXIMUM_COUNT << 16 | MAXIMUM_COUNT]


@pytest.mark.parametrize("seed", range(5))
def test_blocks_hold_what_was_packed(seed: int) -> None:
    postings = postings_of(passages_of(200, seed), first_passage=1_000_000)
    blocks = list(blocks_of(postings))
    assert [first for first, _ in blocks] == sorted({first for first, _ in blocks})
    assert len(blocks) > 3
    assert same(postings_in(data for _, data in blocks), postings)


def test_segments_written_together_are_one_made_at_once() -> None:
    passages = passages_of(90, seed=7)
    parts = [postings_of(passages[first : first + 30], first) for first in (60, 0, 30)]
    together = postings_in(data for part in parts for _, data in blocks_of(part))
    assert same(together, postings_of(passages, 0))


@pytest.mark.parametrize("spread", [0, 10**9], ids=["near", "far_apart"])
@pytest.mark.parametrize("seed", range(8))
def test_scores_equal_those_of_bm25s_over_what_is_left(seed: int, spread: int) -> None:
    dice = random.Random(seed)
    passages = passages_of(240, seed)
    segments, first_of = [], []
    for part in range(8):
        first_of.append(part * 30 + (spread if part > 3 else 0))
        segments.append(list(blocks_of(postings_of(passages[part * 30 : part * 30 + 30], first_of[-1]))))
    numbers = [first_of[i // 30] + i % 30 for i in range(240)]
    gone = {i for start in dice.sample(range(0, 240, 10), 5) for i in range(start, start + 10)}
    removed = Ranges.of((numbers[i], 1) for i in gone)
    kept = [i for i in range(240) if i not in gone]
    terms = sorted({dice.randint(1, 40) for _ in range(6)} | {299})

    retriever = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    retriever.index([[str(t) for t in passages[i]] for i in kept], show_progress=False)
    known = [str(t) for t in terms if any(t in passages[i] for i in kept)]
    expected = 2.5 * np.asarray(retriever.get_scores(known), dtype=float)

    length = sum(len(passages[i]) for i in kept) / len(kept)
    matches = matches_in(found_in(segments, terms), removed)
    assert matches.passages_by_term == {int(t): sum(int(t) in passages[i] for i in kept) for t in known}
    found = best_of(matches, Bm25(chunks=len(kept), average_length=length), allowed=None, limit=10)
    np.testing.assert_allclose([score for _, score in found], np.sort(expected)[::-1][:10], rtol=1e-5)
    np.testing.assert_allclose(
        [expected[kept.index(numbers.index(place))] for place, _ in found], [s for _, s in found], rtol=1e-5
    )

    wanted = kept[::7]
    among = best_of(
        matches,
        Bm25(chunks=len(kept), average_length=length),
        allowed=Ranges.of((numbers[i], 1) for i in wanted),
        limit=10,
    )
    best = np.sort([expected[kept.index(i)] for i in wanted])[::-1][:10]
    np.testing.assert_allclose([score for _, score in among], best[best > 0], rtol=1e-5)


def test_of_equal_scores_the_first_written_is_first() -> None:
    blocks = list(blocks_of(postings_of([np.array([4], np.int32)] * 30, 100)))
    matches = matches_in(found_in([blocks], [4]), NONE)
    found = best_of(matches, Bm25(chunks=30, average_length=1.0), allowed=None, limit=5)
    assert [place for place, _ in found] == [100, 101, 102, 103, 104]


def test_a_term_that_is_only_meant_counts_what_it_is_given() -> None:
    blocks = list(
        blocks_of(postings_of([np.array([4], np.int32), np.array([5], np.int32)] + [np.array([6], np.int32)] * 8, 1))
    )
    matches = matches_in(found_in([blocks], [4, 5]), NONE)
    whole, half = best_of(matches, Bm25(chunks=10, average_length=1.0), allowed=None, limit=5, weights={4: 0.5, 5: 1.0})
    assert (whole[0], half[0]) == (2, 1)
    assert half[1] == pytest.approx(whole[1] / 2)
