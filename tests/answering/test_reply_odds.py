"""What a reply made of quotations is called, by how likely it is that it answers."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from uuid import uuid4

import pytest

from rag.answering.extractive import best_quotes
from rag.answering.quotations import Quotes
from rag.answering.quoting import evidence_of, signals_of
from rag.answering.reply_odds import (
    ANSWERED,
    ANSWERED_EXACTLY,
    PERHAPS,
    ReplySignals,
    outcome_of,
    probability,
    probability_by_words,
)
from rag.types import ContextResponse, RAGDetails, SearchResult, TokenUsage
from tests.answering.scripted import passage

SURE = ReplySignals(words=4, word_share=1.0, meaning=0.9, above_usual=0.06, likeness=0.92)
NEAR = ReplySignals(words=3, word_share=0.4, meaning=0.84, above_usual=0.02, likeness=0.83)
NOTHING = ReplySignals(words=3, word_share=0.0, meaning=0.8, above_usual=0.0, likeness=0.78)


def test_more_of_any_signal_makes_an_answer_likelier() -> None:
    likely = [probability(signals) or 0.0 for signals in (NOTHING, NEAR, SURE)]
    assert likely == sorted(likely)
    assert [outcome_of(p) for p in likely] == ["none", "none", "answered"]
    for more in ({"word_share": 0.7}, {"above_usual": 0.04}, {"likeness": 0.86}, {"words": 6}, {"search": 0.8}):
        assert (probability(replace(NEAR, **more)) or 0.0) > likely[1], more


@pytest.mark.parametrize("missing", ["meaning", "likeness"])
def test_without_meaning_there_is_no_probability(missing: str) -> None:
    without = replace(SURE, meaning=None) if missing == "meaning" else replace(SURE, likeness=None)
    assert probability(without) is None


def test_the_thresholds_are_where_they_are_said_to_be() -> None:
    assert [outcome_of(p) for p in (ANSWERED, ANSWERED - 1e-9, PERHAPS, PERHAPS - 1e-9)] == [
        "answered", "perhaps", "perhaps", "none",
    ]  # fmt: skip


def test_an_exact_quotation_is_an_answer_from_a_lower_probability_on() -> None:
    assert [outcome_of(p, is_exact=True) for p in (ANSWERED_EXACTLY, ANSWERED_EXACTLY - 1e-9)] == [
        "answered",
        "perhaps",
    ]


@pytest.mark.parametrize(
    ("question", "text", "is_exact"),
    [
        ("How many days of leave are there?", "There are 27 days of leave.", True),
        ("How many days of leave are there?", "Leave days are booked in the portal.", False),
        ("How many days of leave are there in Utrecht?", "There are 27 days of leave.", False),
        ("Hoeveel dagen verlof zijn er?", "There are 27 days of leave.", False),
        ("Is leave booked in the portal?", "Leave is booked in the portal.", False),
    ],
)
def test_a_quotation_is_exact_with_all_words_and_the_fact_asked_for(question: str, text: str, is_exact: bool) -> None:
    quotes = best_quotes(
        question, [passage(1, text)], similarities=lambda asked, said: [[0.9] * len(said)] * len(asked)
    )
    assert quotes is not None
    assert quotes.signals is not None
    assert quotes.signals.is_exact is is_exact


def context(meaning: float | None, *, rerank_score: float | None = None) -> ContextResponse:
    citation = passage(1, "Soup is served at noon.")
    result = SearchResult(
        chunk_id=citation.chunk_id,
        document_id=citation.document_id,
        collection_id=uuid4(),
        title="",
        file_name="",
        content=citation.passage,
        section="",
        chunk_index=0,
        first_page=1,
        last_page=1,
        metadata={},
        score=1.0,
        meaning=meaning,
        rerank_score=rerank_score,
    )
    return ContextResponse(
        context_text="",
        citations=(citation,),
        token_usage=TokenUsage(),
        cost=Decimal(0),
        rag_details=RAGDetails(),
        results=(result,),
        evidence="answered",
        probability=0.7,
        usual_meanings={} if meaning is None else {citation.chunk_id: 0.82},
    )


def test_the_probability_of_the_reply_decides_where_meaning_was_compared() -> None:
    quotes = Quotes("“Soup is served at noon.” [1]", (1,), signals=replace(NOTHING, meaning=None))
    assert evidence_of(quotes, context(0.8)) == "none"
    assert evidence_of(replace(quotes, signals=replace(SURE, meaning=None)), context(0.9)) == "answered"


def test_sentences_about_another_number_do_not_answer_however_alike_they_are() -> None:
    quotes = Quotes("“Zone 2 costs 45 euro.” [1]", (1,), signals=replace(SURE, meaning=None, names_another=True))
    assert evidence_of(quotes, context(0.9)) == "none"
    assert evidence_of(quotes, context(None)) == "none"


@pytest.mark.parametrize(
    ("question", "called"),
    [
        ("Who is the policy owner?", "perhaps"),
        ("Who is the owner?", "none"),
        ("Who is the policy author?", "none"),
        ("Wer ist owner der policy?", "none"),
    ],
)
def test_a_sentence_with_all_words_is_shown_though_its_passage_is_about_something_else(
    question: str, called: str
) -> None:
    text = "The meal allowance is 62 euros. Hotels cost up to 135 euros. The policy owner is the Travel Desk."
    language = "de" if question.startswith("Wer") else "en"
    quotes = best_quotes(
        question,
        [passage(1, text)],
        language=language,
        similarities=lambda asked, said: [[0.7] * len(said)] * len(asked),
    )
    assert quotes is not None
    assert quotes.signals is not None
    far = replace(quotes, signals=replace(NOTHING, meaning=None, says_all=quotes.signals.says_all))
    assert evidence_of(far, context(0.8)) == called


@pytest.mark.parametrize(
    ("question", "text", "called"),
    [
        ("产假有多少天？", "陪产假15天。", "perhaps"),
        ("产假有多少天？", "产假98天，陪产假15天。", "answered"),
        ("陪产假有多少天？", "陪产假15天。", "answered"),
        ("휴가는 며칠인가요?", "출산휴가는 90일이다.", "perhaps"),
    ],
)
def test_a_word_within_the_word_for_another_thing_is_at_most_perhaps(question: str, text: str, called: str) -> None:
    quotes = best_quotes(
        question, [passage(1, text)], similarities=lambda asked, said: [[0.9] * len(said)] * len(asked)
    )
    assert quotes is not None
    assert quotes.signals is not None
    sure = replace(quotes, signals=replace(SURE, meaning=None, is_within_another=quotes.signals.is_within_another))
    assert evidence_of(replace(sure, numbers=(1,)), context(0.9)) == called


@pytest.mark.parametrize(
    ("question", "text", "called"),
    [
        ("How many weeks of paternity leave do I get?", "8 Leaving\n\nNotice is four weeks from band 2.", "perhaps"),
        ("How many weeks of paternity leave do I get?", "Paternity leave is four weeks.", "answered"),
        ("How many weeks of paternity leave do I get?", "Partner leave is four weeks.", "answered"),
        ("Wie viele Wochen Elternzeit habe ich?", "Die Kündigungsfrist beträgt vier Wochen.", "perhaps"),
        ("Wie viele Wochen Elternzeit habe ich?", "New parents stay at home for four weeks.", "answered"),
    ],
)
def test_a_passage_in_the_same_language_without_the_subject_is_at_most_perhaps(
    question: str, text: str, called: str
) -> None:
    quotes = best_quotes(question, [passage(1, text)])
    assert quotes is not None
    assert quotes.signals is not None
    sure = replace(quotes, signals=replace(SURE, meaning=None, is_across=quotes.signals.is_across))
    assert evidence_of(replace(sure, numbers=(1,)), context(0.9)) == called


def test_what_the_search_knows_of_the_passage_is_a_signal() -> None:
    quotes = Quotes("“Soup is served at noon.” [1]", (1,), signals=replace(NEAR, meaning=None))
    signals = signals_of(quotes, context(0.9))
    assert signals is not None
    assert (signals.meaning, signals.above_usual, signals.search) == pytest.approx((0.9, 0.08, 0.7))
    assert signals_of(quotes, context(None)) == replace(NEAR, meaning=None, search=0.7)
    assert signals_of(quotes, replace(context(0.9), results=())) is None


@pytest.mark.parametrize(
    ("quotes", "expected"),
    [
        (Quotes("", (1,), signals=NOTHING), "answered"),
        (Quotes("", (1,), signals=NOTHING, is_of_type=False), "perhaps"),
        (Quotes("", (1,), signals=NOTHING, is_about=False), "perhaps"),
    ],
)
def test_with_a_reranker_or_for_a_section_pointed_to_the_search_decides(quotes: Quotes, expected: str) -> None:
    assert evidence_of(quotes, context(0.8, rerank_score=0.9)) == expected
    assert evidence_of(quotes, replace(context(None), results=())) == expected


def test_without_meaning_the_words_of_the_reply_decide() -> None:
    def called(quotes: Quotes, search: float = 0.7) -> str:
        return evidence_of(quotes, replace(context(None), probability=search))

    exact = Quotes("", (1,), signals=replace(SURE, meaning=None, is_exact=True))
    assert called(exact) == "answered"
    assert called(replace(exact, is_of_type=False)) == "perhaps"
    assert called(Quotes("", (1,), signals=replace(SURE, words=5, meaning=None))) == "perhaps"
    assert called(Quotes("", (1,), signals=replace(SURE, words=3, meaning=None))) == "perhaps"
    assert called(Quotes("", (1,), signals=replace(NOTHING, meaning=None)), search=0.99) == "none"


def test_more_of_any_signal_makes_an_answer_by_words_likelier() -> None:
    likely = probability_by_words(NEAR)
    for more in ({"word_share": 0.7}, {"words": 6}, {"search": 0.8}, {"is_exact": True}):
        assert probability_by_words(replace(NEAR, **more)) > likely, more
