"""The figures of the source documents, and overrides that do not fit."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from rag.errors import InvalidInput
from rag.profiles import CIVIL, HR, LEGAL, NOTICES, PORTFOLIO, PROFILES, profile_by_name
from rag.profiles.profile import GROUPS, SETTINGS, Options, Part
from rag.retrieval.query_understanding import categories_in, matches_pattern, require_linear_patterns

# Every figure of the source documents, by profile and field.
FIGURES: dict[str, dict[str, Any]] = {
    "hr": {  # source 004
        "chunking_method": "smart",
        "chunk_size": 1000,
        "chunk_overlap": 200,
        "minimum_chunk_size": 100,
        "embedding_model": "openai/text-embedding-3-small@1536",
        "top_k": 5,
        "similarity_threshold": 0.7,
        "reranking": True,
        "rerank_model": "rerank-multilingual-v3.0",
        "translate_queries": True,
        "translation_model": "gpt-4o-mini",
        "chat_provider": "openai",
        "chat_model": "gpt-4o",
    },
    "notices": {  # source 000
        "chunk_size": 1500,
        "chunk_overlap": 200,
        "minimum_chunk_size": 100,
        "excerpt_characters": 200,
        "attachment_model": "gemini-flash-latest",
        "image_description_characters": 500,
        "document_summary_characters": 800,
        "maximum_attachment_bytes": 2_097_152,
        "embedding_model": "openai/text-embedding-3-large@3072",
        "embedding_batch_size": 100,
        "search_type": "vector",
        "top_k": 10,
        "candidate_factor": 3,
        "similarity_threshold": None,
        "one_result_per_document": True,
        "categories": ("notice-md", "notice-bmmd", "hr-exam", "sales-db-notice", "general"),
        "reranking": True,
        "rerank_model": "rerank-v3.5",
        "rerank_top_n": 5,
        "rerank_format": "{title}\n\n{content}",
        "recency_boost": True,
        "recency_steps": ((7, 1.5), (30, 1.3), (90, 1.1), (365, 1.0)),
        "recency_older": 0.9,
        "pinned_first": True,
        "important_only": False,
        "answer_language": "ko",
        "context_tokens": 4000,
        "chat_provider": "gemini",
        "chat_model": "gemini-flash-latest",
        "temperature": 0.3,
        "maximum_output_tokens": 2048,
    },
    "portfolio": {  # source 001
        "chunk_size": 1000,
        "chunk_overlap": 0,
        "chunking_by_type": (
            ("resume", "professional"),
            ("linkedin", "professional"),
            ("journey", "narrative"),
            ("github", "markdown"),
            ("generic", "generic"),
        ),
        "professional_minimum_tokens": 400,
        "professional_maximum_tokens": 800,
        "narrative_target_tokens": 450,
        "narrative_soft_tokens": 500,
        "narrative_hard_tokens": 600,
        "narrative_overlap_words": 30,
        "narrative_overlap_tokens": 50,
        "markdown_target_words": 600,
        "markdown_maximum_words": 800,
        "markdown_overlap_words": 25,
        "generic_chunk_size": 1000,
        "embedding_model": "openai/text-embedding-3-small@1536",
        "embedding_batch_size": 50,
        "embedding_delay_ms": 100,
        "search_type": "vector",
        "top_k": 5,
        "candidate_factor": 4,
        "neighbour_factor": 20,
        "filters_after_search": True,
        "reranking": False,
        "multi_signal": True,
        "category_boosts": (("resume", 1.3), ("linkedin", 1.25), ("journey", 1.2), ("github", 1.15)),
        "year_boosts": (1.3, 1.2, 1.1),
        "quality_boost": 1.1,
        "quality_minimum_words": 100,
        "quality_maximum_words": 300,
        "translate_queries": False,
        "context_characters": 8000,
        "context_joiner": "\n\n---\n\n",
        "chat_provider": "openrouter",
        "chat_model": "meta-llama/llama-3.1-8b-instruct:free",
        "follow_ups": 3,
    },
    "legal": {  # source 002
        "pdf_type": "scanned",
        "chunk_tags": ("topic", "crime_type", "summary", "keywords"),
        "embedding_model": "gemini/gemini-embedding-001@768",
        "top_k": 5,
        "similarity_threshold": None,
        "opinion_queries": (
            ("양형의견서", "양형기준 양형 참작 사유 선고유예 집행유예"),
            ("무죄주장", "무죄 판례 증명력 합리적 의심"),
        ),
        "context_format": "【{topic} - {crime_type}】\n{content}\n\n",
        "chat_provider": "gemini",
        "translation_provider": "gemini",
    },
    "civil": {  # source 003
        "chunking_method": "recursive",
        "chunk_size": 1200,
        "chunk_overlap": 200,
        "separators": ("\n\n", "\n", ".", "!", "?", "。", "！", "？", " ", ""),
        "embedding_model": "ollama/bge-m3@1024",
        "search_type": "hybrid",
        "similarity_threshold": 0.2,
        "threshold_mode": "absolute",
        "bm25_k1": 1.5,
        "bm25_b": 0.75,
        "fusion": "weighted",
        "vector_weight": 0.6,
        "keyword_weight": 0.4,
        "vector_rank_weight": 0.3,
        "keyword_rank_weight": 0.2,
        "rank_constant": 60,
        "deduplication_characters": 100,
        "metadata_filters": ("department",),
        "reranking": False,
    },
}
STATED = [(profile, field, value) for profile, figures in FIGURES.items() for field, value in figures.items()]


@pytest.mark.parametrize(("profile", "field", "figure"), STATED, ids=[f"{p}-{f}" for p, f, _ in STATED])
def test_a_figure_is_that_of_its_source_document(profile: str, field: str, figure: Any) -> None:
    assert PROFILES[profile].value(field) == figure


def test_the_candidates_are_as_many_as_the_documents_say() -> None:
    assert NOTICES.search.top_k * NOTICES.search.candidate_factor == 30
    assert (
        PORTFOLIO.search.top_k * PORTFOLIO.search.candidate_factor,
        PORTFOLIO.search.top_k * PORTFOLIO.search.neighbour_factor,
    ) == (20, 100)


def test_reranking_keeps_the_best_and_never_more_than_are_wanted() -> None:
    assert (HR.passages(), NOTICES.passages(), NOTICES.passages(3), HR.passages(20)) == (5, 5, 3, 20)
    assert NOTICES.with_overrides({"reranking": False}).passages() == 10


def test_the_boosts_give_the_example_of_their_document() -> None:
    score = (
        0.85
        * dict(PORTFOLIO.ranking.category_boosts)["resume"]
        * PORTFOLIO.ranking.year_boosts[0]
        * PORTFOLIO.ranking.quality_boost
    )
    assert round(score, 3) == 1.58


@pytest.mark.parametrize(
    ("question", "categories"),
    [
        ("What AI projects have you built?", {"github", "resume", "linkedin"}),
        ("Which degree do you have?", {"resume", "linkedin"}),
        ("Why did you leave?", {"journey"}),
        ("Hello", set()),
    ],
)
def test_the_patterns_find_the_categories_of_their_document(question: str, categories: set[str]) -> None:
    import re

    found = {
        c
        for pattern, names in PORTFOLIO.understanding.query_patterns
        if re.search(pattern, question.lower())
        for c in names
    }
    assert found == categories


def test_a_threshold_suits_its_embedder() -> None:
    assert HR.threshold(0.25) == 0.25  # the document's 0.7 would leave nothing of this embedder's results
    assert HR.threshold(0.25, calibrated=0.31) == 0.31
    assert HR.with_overrides({"threshold_mode": "absolute"}).threshold(0.25, calibrated=0.31) == 0.7
    assert HR.with_overrides({"threshold_mode": "embedder"}).threshold(0.25, calibrated=0.31) == 0.25
    assert CIVIL.threshold(0.35) == 0.2
    assert LEGAL.threshold(0.5) == 0.5


def test_every_profile_stands_by_its_own_rules() -> None:
    for profile in PROFILES.values():
        changeable = {n: profile.value(n) for n, field in SETTINGS.items() if not field.locked}
        assert profile.with_overrides(changeable) == profile
        # As the database keeps overrides: lists for tuples.
        assert profile.with_overrides(json.loads(json.dumps(changeable))) == profile


def test_every_field_is_explained() -> None:
    assert len(SETTINGS) == sum(len(type(part).model_fields) for _, part in HR if isinstance(part, Part))
    assert {field.group for field in SETTINGS.values()} == set(GROUPS)
    assert len({field.title for field in SETTINGS.values()}) == len(SETTINGS)


def test_every_setting_has_a_source_and_every_amount_a_unit() -> None:
    assert [name for name, field in SETTINGS.items() if not field.source] == []
    #: Numbers without a unit: factors, weights and counts of what their title names.
    plain = {"candidate_factor", "neighbour_factor", "rank_constant", "alternative_questions", "follow_ups"}
    whole = {name for name, field in SETTINGS.items() if field.kind == "whole"}
    assert {name for name in whole if not SETTINGS[name].unit} == plain
    assert all(field.minimum <= field.default <= field.maximum for field in SETTINGS.values() if field.kind == "whole")


def test_a_limit_nobody_chose_stays_below_one_that_somebody_did() -> None:
    chunking = HR.with_overrides({"narrative_hard_tokens": 300}).chunking
    limits = chunking.narrative_target_tokens, chunking.narrative_soft_tokens, chunking.narrative_hard_tokens
    assert limits == (300, 300, 300)
    with pytest.raises(InvalidInput, match="sizes have to rise"):
        PORTFOLIO.with_overrides({"narrative_hard_tokens": 300})


def test_a_call_changes_only_settings_made_for_it() -> None:
    assert Options(top_k=3, reranking=None).applied_to(NOTICES).search.top_k == 3
    assert Options().applied_to(NOTICES) is NOTICES
    assert Options(top_k=3).changed(top_k=None, follow_ups=0).settings == {"follow_ups": 0}
    assert Options(similarity_threshold=0.4).applied_to(HR).threshold(0.2, calibrated=0.3) == 0.4
    for name in ("chunk_size", "topk"):
        with pytest.raises(InvalidInput, match=f"cannot change '{name}'"):
            Options(**{name: 500})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"Passages wanted cannot be 51\. Enter a whole number from 1 to 50"):
        Options(top_k=51).applied_to(HR)


def test_an_unknown_profile_names_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="hr, notices, portfolio, legal, civil"):
        profile_by_name("hrr")


def test_a_field_is_overridden() -> None:
    changed = HR.with_overrides({"top_k": 8, "similarity_threshold": 1, "year_boosts": [2, 1.5]})
    assert (changed.search.top_k, changed.search.similarity_threshold, changed.ranking.year_boosts) == (
        8,
        1.0,
        (2.0, 1.5),
    )
    assert HR.differences(changed) == {
        "top_k": (5, 8),
        "similarity_threshold": (0.7, 1.0),
        "year_boosts": ((), (2.0, 1.5)),
    }


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        pytest.param({"topk": 8}, "no setting 'topk'", id="unknown"),
        pytest.param({"name": "mine"}, "no setting 'name'", id="name"),
        pytest.param({"top_k": "8"}, "Passages wanted cannot be '8'. Enter a whole number", id="text_for_number"),
        pytest.param({"top_k": True}, "whole number", id="boolean_for_number"),
        pytest.param({"top_k": 2.5}, "whole number", id="half"),
        pytest.param({"top_k": 0}, "from 1 to 50", id="nothing_searched"),
        pytest.param({"top_k": None}, "from 1 to 50", id="none"),
        pytest.param({"temperature": float("nan")}, "from 0 to 2", id="nan"),
        pytest.param({"temperature": 3}, "from 0 to 2", id="too_hot"),
        pytest.param({"reranking": 1}, "on or off", id="number_for_switch"),
        pytest.param({"search_type": "keyword"}, "one of vector, hybrid", id="no_choice"),
        pytest.param({"chat_model": " "}, "Model that answers", id="blank_model"),
        pytest.param({"query_patterns": [["(", ["a"]]]}, "regular expressions", id="broken_pattern"),
        pytest.param({"query_patterns": [["a"]]}, "regular expressions", id="half_a_pattern"),
        pytest.param({"query_patterns": [["a{99999999999}", ["a"]]]}, "regular expressions", id="too_often"),
        pytest.param({"query_patterns": [["(" * 900 + ")" * 900, ["a"]]]}, "regular expressions", id="too_deep"),
        pytest.param({"recency_steps": [[30, 1.3], [7, 1.5]]}, "the smallest first", id="steps_out_of_order"),
        pytest.param({"category_boosts": [["resume", 0]]}, "number above 0", id="no_factor"),
        pytest.param({"category_boosts": "resume"}, "number above 0", id="text_for_list"),
        pytest.param({"embedding_model": "builtin/lexical@1536"}, "move the collection to it", id="embedder"),
        pytest.param({"bm25_k1": 11}, "from 0 to 10", id="index"),
        pytest.param({"chunk_overlap": 1000}, "text repeated", id="overlap_as_large_as_the_chunk"),
        pytest.param({"minimum_chunk_size": 1001}, "smallest passage", id="minimum_above_the_size"),
        pytest.param({"threshold_mode": "absolute", "similarity_threshold": None}, "needs a number", id="no_threshold"),
        pytest.param({"rerank_top_n": 6}, "more passages than are wanted", id="keeps_more_than_wanted"),
        pytest.param({"vector_weight": 0, "keyword_weight": 0}, "cannot both be 0", id="no_weights"),
        pytest.param({"recency_boost": True}, "needs weights", id="boost_without_steps"),
        pytest.param({"multi_signal": True}, "set one of them first", id="signals_without_factors"),
        pytest.param({"top_k": 50, "candidate_factor": 50}, "2,500 candidates", id="too_many_candidates"),
        pytest.param({"quality_minimum_words": 10}, "best length", id="lengths"),
        pytest.param({"narrative_target_tokens": 501}, "sizes have to rise", id="narrative"),
        pytest.param({"professional_minimum_tokens": 801}, "passage of a résumé", id="professional"),
        pytest.param({"markdown_target_words": 801}, "Markdown", id="markdown"),
    ],
)
def test_an_override_that_does_not_fit_is_refused_with_a_sentence(overrides: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        HR.with_overrides(overrides)
    assert sentence in caught.value.message


@pytest.mark.parametrize("pattern", [r"(?=a)b", r"(a)\1", "(?<!x)y", "a{1,2000}", "(((a?){30}){30}){30}"])
def test_a_pattern_that_could_stall_a_question_is_refused_with_a_sentence(pattern: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        require_linear_patterns([(pattern, ["a"])])
    assert "pattern" in caught.value.message
    assert len(caught.value.message) < 500


def test_the_patterns_of_a_collection_are_limited_together() -> None:
    require_linear_patterns([("(급여|연봉|월급|수당|보너스|성과급)", ["pay"])] * 8)
    with pytest.raises(InvalidInput, match="too large together"):
        require_linear_patterns([("(x?){150}", ["a"]), ("(y?){150}", ["b"])])


def test_patterns_of_the_profiles_are_linear() -> None:
    for profile in PROFILES.values():
        require_linear_patterns(profile.understanding.query_patterns)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(x+x+)+y", "(.*)*b", "([a-z]+)*[0-9]", "(?:a|a)*c"])
def test_a_pattern_of_people_is_read_in_linear_time(pattern: str) -> None:
    def least(length: int) -> float:
        text, taken = "a" * length + "!?", []
        for _ in range(7):
            began = time.thread_time()
            for _ in range(20):
                assert not matches_pattern(pattern, text)
            taken.append(time.thread_time() - began)
        return min(taken)

    # Four times the text takes four times as long; with the square of it sixteen times.
    assert least(4000) < 10 * least(1000)


def test_a_pattern_that_was_saved_earlier_finds_nothing_instead_of_failing_the_question() -> None:
    profile = PORTFOLIO.changed(query_patterns=(("(?=a)a", ("a",)), ("b", ("b",))))
    assert categories_in("ab", profile) == ("b",)
