"""The formulas that make one order of two."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest
from numpy.typing import NDArray

from rag.retrieval.deduplication import limited_per_document, without_repeats
from rag.retrieval.fusion import reciprocal_rank_fusion, weighted_fusion
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.multi_query import merge_hits
from rag.retrieval.proximity import closenesses, naming, raised_scores
from rag.retrieval.search_query import TermStatistics
from rag.types import SearchResult


def result(number: int, **values: object) -> SearchResult:
    plain = SearchResult(
        chunk_id=UUID(int=number), document_id=UUID(int=1), collection_id=UUID(int=1), title="Guide",
        file_name="guide.pdf", content=f"passage {number}", first_page=1, last_page=1, section="", chunk_index=number,
        metadata={},
    )  # fmt: skip
    return replace(plain, **values)  # type: ignore[arg-type]


def kept(results: list[SearchResult], same_beginning: int = 0) -> list[int]:
    """The numbers of those that stay."""
    found = without_repeats([(result, 0.0) for result in results], same_beginning=same_beginning)
    return [result.chunk_id.int for result, _ in found]


def test_nothing_found_has_no_shares_and_no_repeats() -> None:
    for shares in (weighted_fusion([], []), reciprocal_rank_fusion([], [])):
        assert (shares.near, shares.matching) == ([], [])
    assert without_repeats([]) == []


def test_the_weighted_shares_are_those_of_source_003_with_keywords_by_their_highest() -> None:
    shares = weighted_fusion([0.5], [20.0, 10.0])
    assert shares.near == pytest.approx([0.6 * 0.5 + 0.3 / 61])
    assert shares.matching == pytest.approx([0.4 + 0.2 / 61, 0.4 * 10 / 20 + 0.2 / 62])
    assert shares.similarity == 0.6


def test_a_negative_similarity_takes_nothing_away() -> None:
    assert weighted_fusion([-0.4], []).near == pytest.approx([0.3 / 61])


def test_rank_fusion_gives_reciprocal_ranks() -> None:
    shares = reciprocal_rank_fusion([0.9, 0.1], [3.0])
    assert shares.near == pytest.approx([1 / 61, 1 / 62])
    assert shares.matching == pytest.approx([1 / 61])
    assert shares.similarity == 0


def test_passages_of_a_document_with_the_same_first_100_characters_are_one_in_source_003() -> None:
    beginning = "가" * 100
    results = [
        result(1, content=beginning + "하나"),
        result(2, content=beginning + "둘"),
        result(3, content=beginning + "둘", document_id=UUID(int=2), title="Other"),
        result(4, content=beginning[:99] + "나"),
    ]
    assert kept(results, same_beginning=100) == [1, 3, 4]
    assert len(kept(results)) == 4


def test_the_same_text_under_the_same_title_is_kept_once() -> None:
    results = [result(1, content="A  b"), result(2, content="a B"), result(3, content="a b", title="Twin")]
    assert kept(results) == [1, 3]


def test_at_most_so_many_of_each_document_are_kept() -> None:
    results = [result(1), result(2), result(3, document_id=UUID(int=2))]
    assert [r.chunk_id.int for r in limited_per_document(results, 1)] == [1, 3]
    assert limited_per_document(results, 0) == results


def test_words_that_stand_together_count_together() -> None:
    dental, limit, other = 7, 3, 5
    weights = {dental: 2.0, limit: 3.0}
    assert closenesses([], weights) == []
    assert closenesses([terms()], weights) == closenesses([terms(dental)], {}) == [0.0]
    assert closenesses(
        [
            terms(),
            terms(dental, *[other] * 200, limit),
            terms(*[other] * 100, dental, other, limit),
            terms(*[other] * 29, dental, limit),
            terms(*[other] * 9, 9, dental, dental),
        ],
        weights,
    ) == [0.0, 3.0, 5.0, 5.0, 2.0]


def test_a_name_counts_by_what_tells_it_apart() -> None:
    plus, standard, handbook = naming(
        [{"northwind", "plus"}, {"northwind", "standard"}, {"handbook"}], {"northwind", "plus", "eye"}
    )
    assert plus == 1.0
    assert 0 < standard < 0.5
    assert handbook == 0
    assert naming([set()], {"plus"}) == [0.0]


def test_a_name_whose_twin_is_meant_has_no_share_in_what_both_have() -> None:
    plus, standard, other = ({"northwind", "plus", "plan"}, {"northwind", "standard", "plan"}, {"role", "library"})
    shares = naming([plus, standard, other], {"northwind", "plus", "cover"})
    assert shares[0] > 0.5
    assert shares[1:] == [0.0, 0.0]
    # Neither is meant, both are, or the other is no twin: the common words count for both.
    assert all(share > 0 for share in naming([plus, standard], {"northwind"}))
    assert all(share > 0 for share in naming([plus, standard], {"northwind", "plus", "standard"}))
    assert all(share > 0 for share in naming([plus, {"northwind", "role", "library"}], {"northwind", "plus"}))


def test_a_twin_is_meant_only_where_the_question_says_all_that_tells_it_apart() -> None:
    plus, standard = (
        {"northwind", "health", "plus", "benefit", "detail"},
        {"northwind", "standard", "benefit", "detail"},
    )
    insurer = naming([plus, standard], {"northwind", "health", "cover"})
    assert insurer[1] > 0
    assert naming([plus, standard], {"northwind", "health", "plus", "cover"})[1] == 0


def test_boosts_are_small_beside_the_scores() -> None:
    raised = raised_scores([1.0, 0.3], closenesses=[0.0, 9.0], title_shares=[0.0, 1.0], section_shares=[0.0, 1.0])
    assert raised == [1.0, pytest.approx(0.3 + 0.3 + 0.15 + 0.2)]
    assert raised_scores([], closenesses=[], title_shares=[], section_shares=[]) == []


def test_texts_of_the_same_beginning_are_told_apart() -> None:
    spaces, beginning = " " * 300, "the same words at the beginning of all of these passages, so "
    contents = [beginning + "yes", spaces + beginning + "no", beginning.upper() + spaces + "YES", beginning]
    results = [result(number, content=content) for number, content in enumerate(contents, 1)]
    assert kept(results) == [1, 2, 4]


def terms(*numbers: int) -> NDArray[np.int32]:
    return np.array(numbers, dtype=np.int32)


def test_of_several_wordings_a_passage_keeps_its_best_score() -> None:
    def found(**scores: float) -> SearchHits:
        results = tuple(result(int(name[1:]), score=score) for name, score in scores.items())
        return SearchHits(results=results, statistics=TermStatistics(), languages={}, text="")

    made = merge_hits([found(p1=0.9, p2=0.5), found(p2=0.7, p3=0.6, p1=0.2)], 3)
    assert [(r.chunk_id.int, r.score) for r in made.results] == [(1, 0.9), (2, 0.7), (3, 0.6)]
    assert [r.chunk_id.int for r in merge_hits([found(p1=0.1), found(p2=0.7)], 1).results] == [2]
