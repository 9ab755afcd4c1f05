"""What counts as speaking to a question, and what as a slip of the pen."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rag.retrieval.bm25.scoring import inverse_document_frequency
from rag.retrieval.evidence import (
    RULE,
    PassageSignals,
    ScoredHit,
    background,
    best_of,
    compound_share,
    coverage,
    in_order,
    matched_words,
    outcome_of,
    probability,
    score_hits,
    select_citable,
    usual_meanings,
)
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.meaning import MeaningHit, named_languages
from rag.retrieval.search_query import TermStatistics, corrections, is_one_slip_away, question_words
from rag.text.analysers import analyse
from rag.types import SearchResult


def is_evidence(question: str, passage: str, known: dict[str, int], language: str = "en", margin: float = 0.0) -> bool:
    """Judge a passage among 500, `known` telling in how many of them a term stands."""

    def idf(term: str) -> float:
        return inverse_document_frequency(known.get(term, 0), 500)

    held = coverage(question_words(question, language, language), analyse(passage, language), idf)
    return probability(PassageSignals(share=held.share if held.matched else 0.0, margin=margin)) >= RULE.answered


def test_a_question_without_topic_has_no_evidence() -> None:
    assert not is_evidence("what is it?", "it is what it is", {})


def test_one_known_word_beside_an_unknown_one_is_no_evidence() -> None:
    assert not is_evidence("What is the capital of France?", "Working capital is reviewed.", {"capit": 1})
    assert not is_evidence("Do you sell pizza?", "We do not sell data.", {"sell": 2})


def test_all_words_are_evidence_however_common() -> None:
    assert is_evidence("What does the plan cover?", "The plan covers much.", {"plan": 400, "cover": 300})


def test_the_rare_word_alone_is_evidence_beside_a_common_one() -> None:
    assert is_evidence("Is acupuncture reimbursed?", "Acupuncture is possible.", {"acupunctur": 2, "reimburs": 90})


def test_a_passage_that_stands_out_needs_fewer_of_the_words() -> None:
    known = {"bike": 2, "leas": 0}
    assert not is_evidence("Can I lease a bike?", "Cycling: the company pays a bike.", known)
    assert is_evidence("Can I lease a bike?", "Cycling: the company pays a bike.", known, margin=0.1)
    assert not is_evidence("Can I lease a car?", "Cycling: the company pays a bike.", {}, margin=0.9)


def test_words_that_stand_everywhere_still_say_what_is_asked_about() -> None:
    known = {"northwind": 480, "standard": 300, "provid": 400, "network": 250, "implic": 1}
    passage = "Northwind Standard: providers outside the network cost more."
    assert is_evidence("implications of providers outside the Northwind Standard network", passage, known)


def test_too_few_candidates_are_no_background() -> None:
    assert background([0.2] * 7) is None
    assert background([0.2] * 7 + [None]) is None
    assert background([0.1, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.9]) == 0.2


def test_several_words_are_evidence_with_some_missing() -> None:
    known = {"parent": 4, "leav": 20, "week": 30}
    assert is_evidence("How many weeks of parental leave when adopting?", "Parental leave is 12 weeks.", known)


def test_a_korean_word_counts_by_its_parts() -> None:
    known = {"육아휴직": 3, "육아": 5, "아휴": 3, "휴직": 6, "기간": 20}
    assert is_evidence("육아휴직 기간은?", "육아휴직의 기간은 1년이다.", known, "ko")


def test_stopwords_of_the_question_do_not_count_in_documents_of_another_language() -> None:
    assert [word.text for word in question_words("what is the parking policy", "en", "nl")] == ["parking", "policy"]


def test_words_are_marked_as_the_passage_writes_them() -> None:
    words = question_words("Which policies cover dental care?", "en", "en")
    assert matched_words("Our Policy covers Dental work.", words, "en") == ("policy", "covers", "dental")


@pytest.mark.parametrize(
    ("word", "other", "expected"),
    [
        ("hearin", "hearing", True),
        ("servises", "services", True),
        ("shuold", "should", True),
        ("benefitss", "benefits", True),
        ("plan", "plan", False),
        ("pizza", "piazzas", False),
        ("france", "finance", False),
        ("form", "from", True),
        ("typs", "type", False),
        ("mars", "ears", False),
        ("ab", "abcd", False),
    ],
)
def test_one_slip_is_one_letter_or_a_swap(word: str, other: str, expected: bool) -> None:
    assert is_one_slip_away(word, other) is expected
    assert is_one_slip_away(other, word) is expected


def test_only_unknown_words_near_a_known_one_are_corrected() -> None:
    passages = ["Hearing services and hearings", "types of care"]
    assert corrections(["hearin", "pizza", "typs", "abc"], passages) == {"hearin": "hearing", "typs": "types"}
    assert corrections([], passages) == {}
    assert corrections(["hearin"], []) == {}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("육아휴칙은", "육아휴직은"),  # another letter, the particle stays as it was typed
        ("댓가로", "대가로"),  # one too many
        ("오래만에", "오랜만에"),  # one too few
        ("연치를", None),  # two syllables with another letter are another word
        ("육어휴칙은", None),  # two slips
        ("휴직육아", None),
    ],
)
def test_a_korean_word_is_corrected_by_the_letters_of_its_syllables(word: str, expected: str | None) -> None:
    passages = ["육아휴직을 쓴다. 연차가 남는다.", "대가 없이 오랜만에 육아휴직"]
    assert corrections([word], passages) == ({word: expected} if expected else {})


def test_a_compound_is_found_by_its_parts() -> None:
    known = {"verlof": 30}
    passage = "Zwangerschaps- en bevallingsverlof duurt zestien weken. Verlof vraag je aan."
    (stem,) = analyse("zwangerschapsverlof", "nl")
    assert compound_share(stem, analyse(passage, "nl")) > 0.9
    assert compound_share(stem, ["verlo"]) == compound_share(stem, []) == 0
    assert is_evidence("zwangerschapsverlof", passage, known, "nl")
    assert not is_evidence("zwangerschapsverlof", "Verlof vraag je aan.", known, "nl")


def test_more_words_and_nearer_meaning_are_more_likely_to_answer() -> None:
    few, many = PassageSignals(share=0.2, meaning=0.83), PassageSignals(share=0.6, meaning=0.83)
    near = PassageSignals(share=0.2, meaning=0.88)
    assert probability(few) < probability(many)
    assert probability(few) < probability(near)
    assert 0 < probability(PassageSignals(share=0.0, meaning=-1.0)) < 0.001
    assert 0.999 < probability(PassageSignals(share=1.0, meaning=1.0)) <= 1


def test_an_answer_needs_no_shared_word_where_meaning_is_near() -> None:
    assert outcome_of(probability(PassageSignals(share=0.0, meaning=0.87))) == "answered"
    assert outcome_of(probability(PassageSignals(share=0.0, meaning=0.85))) == "perhaps"
    assert outcome_of(probability(PassageSignals(share=0.0, meaning=0.79))) == "none"


def test_a_passage_with_all_words_may_answer_however_far_it_is() -> None:
    far = PassageSignals(share=1.0, meaning=0.77)
    assert outcome_of(probability(far)) == "none"
    assert outcome_of(probability(replace(far, says_all=True))) == "perhaps"
    assert outcome_of(probability(replace(far, says_all=True, lacks_name=True))) == "none"


def test_words_of_which_none_stands_in_the_passage_are_no_evidence_without_meaning() -> None:
    assert outcome_of(probability(PassageSignals(share=0.0, margin=0.9))) == "none"
    assert outcome_of(probability(PassageSignals(share=0.52))) == "perhaps"
    assert outcome_of(probability(PassageSignals(share=0.55))) == "answered"


@pytest.mark.parametrize(
    ("relevance", "share", "outcome"),
    [(0.01, 1.0, "none"), (0.05, 0.1, "none"), (0.05, 0.8, "answered"), (0.2, 0.1, "perhaps"), (0.3, 0.0, "answered")],
)
def test_a_reranker_may_be_sure_and_what_it_calls_unrelated_is_no_evidence(
    relevance: float, share: float, outcome: str
) -> None:
    assert outcome_of(probability(PassageSignals(share=share, relevance=relevance))) == outcome


@pytest.mark.parametrize(("nearness", "outcome"), [(0.0, "answered"), (-0.01, "perhaps"), (-0.05, "none")])
def test_a_similarity_at_its_threshold_is_evidence_by_itself(nearness: float, outcome: str) -> None:
    assert outcome_of(probability(PassageSignals(share=0.0, nearness=nearness))) == outcome


@pytest.mark.parametrize(
    ("question", "languages"),
    [
        ("How long is maternity leave under Korean law?", {"ko"}),
        ("Was gilt in den Niederlanden?", {"nl"}),
        ("한국에서는 며칠인가요?", {"ko"}),
        ("Wat geldt in Duitsland?", {"de"}),
        ("How many days of leave do I have?", set()),
        ("Is there a franchise?", set()),
    ],
)
def test_a_country_is_known_by_its_names(question: str, languages: set[str]) -> None:
    assert named_languages(question) == languages


def item(
    number: int, *, share: float = 0.0, meaning: float, in_language: str = "en", wording: str = "en"
) -> tuple[ScoredHit, SearchResult]:
    """A passage of a document of its own as the rule judges it."""
    result = SearchResult(
        chunk_id=UUID(int=number), document_id=UUID(int=number), collection_id=UUID(int=0), title="", file_name="",
        content="", first_page=1, last_page=1, section="", chunk_index=0, metadata={}, meaning=meaning, score=1.0,
    )  # fmt: skip
    found = found_of([result], {result.document_id: in_language})
    [judged] = score_hits([result], found, wordings=[("Where are the rolls of dry paper?", wording)])
    return replace(judged, signals=replace(judged.signals, share=share)), result


def found_of(results: list[SearchResult], languages: dict[UUID, str]) -> SearchHits:
    return SearchHits(
        results=tuple(results), statistics=TermStatistics(chunks=100.0), languages=languages, text="anything"
    )


def test_a_cosine_across_languages_counts_as_much_as_a_higher_one_within() -> None:
    across, within = (
        item(1, meaning=0.81, in_language="en", wording="ko")[0],
        item(2, meaning=0.81 + RULE.across_alone)[0],
    )
    assert across.probability == pytest.approx(within.probability)
    assert across.result.meaning == 0.81
    assert item(3, meaning=0.81, in_language="ko+kiwi", wording="ko-KR")[0].signals.meaning == 0.81


@pytest.mark.parametrize(("beside", "more"), [("ko", RULE.across), ("nl", RULE.across_alone)])
def test_more_of_a_cosine_is_given_back_where_no_passage_is_in_the_questions_language(beside: str, more: float) -> None:
    _, result = item(1, meaning=0.81)
    hit = MeaningHit(UUID(int=2), cosine=0.7, language=beside, passages=9, mean=0.7, deviation=0.02)
    found = replace(found_of([result], {result.document_id: "en"}), meaning_hits=(hit,))
    [judged] = score_hits([result], found, wordings=[("건조 용지 롤은 어디에 있나요?", "ko")])
    assert judged.signals.meaning == pytest.approx(0.81 + more)


def test_another_language_comes_first_only_where_the_questions_own_has_no_sure_answer() -> None:
    own, own_result = item(1, share=0.9, meaning=0.88)
    other, other_result = item(2, share=0.9, meaning=0.87, in_language="nl")
    found = found_of([own_result, other_result], {})
    assert own.probability >= RULE.sure
    assert other.probability > own.probability
    assert [i.language for i in in_order([own, other], found, places=5, language="en")] == ["en", "nl"]
    unsure, unsure_result = item(3, meaning=0.82)
    found = found_of([other_result, unsure_result], {})
    assert [i.language for i in in_order([other, unsure], found, places=5, language="en")] == ["nl", "en"]


def test_the_place_of_another_language_goes_to_the_passage_that_also_holds_the_questions_words() -> None:
    own = [item(number, meaning=0.83) for number in range(1, 5)]
    stands_out = item(5, share=0.2, meaning=0.815, in_language="nl")
    held = item(6, share=0.4, meaning=0.80, in_language="nl")
    neither = item(7, meaning=0.825, in_language="nl")
    everything = [*own, stands_out, neither, held]
    found = found_of([result for _, result in everything], {})
    found = replace(found, foreign_ids=tuple(pair[1].chunk_id for pair in (neither, held, stands_out)))
    order = in_order([judged for judged, _ in everything], found, places=4, language="en")
    assert order[3].result.chunk_id == held[1].chunk_id
    assert order[3].has_place
    assert [i.has_place for i in order].count(True) == 1


@pytest.mark.parametrize("asked_in", ["pl", "tr", "ar"])
def test_what_stands_out_in_its_language_comes_first_where_nothing_is_in_the_questions(asked_in: str) -> None:
    others = [item(number, meaning=0.83, in_language="nl") for number in range(1, 5)]
    stands_out = item(5, meaning=0.825, in_language="ko")
    everything = [*others, stands_out]
    found = replace(found_of([result for _, result in everything], {}), foreign_ids=(stands_out[1].chunk_id,))
    order = in_order([judged for judged, _ in everything], found, places=4, language=asked_in)
    assert order[0].result.chunk_id == stands_out[1].chunk_id
    beside_own = in_order([judged for judged, _ in everything], found, places=4, language="nl")
    assert beside_own[3].result.chunk_id == stands_out[1].chunk_id


def test_the_usual_cosine_of_a_passage_is_that_of_its_language_where_enough_are_known() -> None:
    own = [item(number, meaning=0.8 + number / 1000)[0] for number in range(1, 10)]
    others = [item(number, meaning=0.7 + number / 1000, in_language="nl")[0] for number in range(11, 20)]
    few = item(20, meaning=0.75, in_language="ko")[0]
    everything = [*own, *others, few]
    usual = usual_meanings(everything, [own[0], others[0], few])
    assert [usual[hit.result.chunk_id] for hit in (own[0], others[0], few)] == pytest.approx([0.805, 0.715, 0.75])
    unknown = replace(few, result=replace(few.result, meaning=None))
    assert usual_meanings([unknown], [unknown]) == {}


def test_a_passage_of_another_language_that_would_be_refused_has_no_place() -> None:
    own = [item(number, meaning=0.83) for number in range(1, 5)]
    unlikely = item(5, meaning=0.82 - RULE.across_alone, in_language="nl")
    found = replace(found_of([result for _, result in [*own, unlikely]], {}), foreign_ids=(unlikely[1].chunk_id,))
    order = in_order([judged for judged, _ in [*own, unlikely]], found, places=4, language="en")
    assert not any(judged.has_place for judged in order)
    assert order[-1].result.chunk_id == unlikely[1].chunk_id
    named = in_order([judged for judged, _ in [*own, unlikely]], found, places=4, language="en", named={"nl"})
    assert named[0].has_place


def test_a_passage_with_a_place_is_cited_although_it_holds_no_word_and_is_less_likely() -> None:
    own = [item(number, meaning=0.92) for number in range(1, 5)]
    other = item(5, meaning=0.76, in_language="nl")
    found = replace(found_of([result for _, result in [*own, other]], {}), foreign_ids=(other[1].chunk_id,))
    named = in_order([judged for judged, _ in [*own, other]], found, places=4, language="en", named={"nl"})
    assert named[0].probability < RULE.cited_share * best_of(named)
    assert select_citable(named)[0].result.chunk_id == other[1].chunk_id
    assert other[1].chunk_id not in [
        kept.result.chunk_id for kept in select_citable([judged for judged, _ in [*own, other]])
    ]
