"""Words for the same thing: what a question is taken to speak of, and what documents may say in its place."""

from __future__ import annotations

import pytest

from rag.retrieval.bm25.synonyms import (
    FILE,
    ideas,
    ideas_in,
    in_words_of,
    named_in,
    reword,
    synonyms_of,
    without_other_ideas,
)
from rag.retrieval.evidence import coverage
from rag.retrieval.search_query import FOREIGN_WEIGHT, SYNONYM_WEIGHT, question_terms, question_words
from rag.text.language_detection import DETECTED


def usual(term: str) -> float:
    return {"": 6.0, "leav": 2.0, "annual": 3.0}.get(term, 5.0)


@pytest.mark.parametrize(
    ("question", "language", "other"),
    [
        ("What is the vacation policy?", "en", "What is the annual leave rules?"),
        ("How many Vacations do I get?", "en", "How many annual leave do I get?"),
        ("Can I get time off?", "en", "Can I get annual leave?"),
        ("Can I take a cab to the airport?", "en", "Can I take a taxi to the airport?"),
        ("Kann meine Frau mitkommen?", "de", "Kann Ehepartner mitkommen?"),
        ("Hoeveel vakantiedagen krijg ik?", "nl", "Hoeveel vakantie krijg ik?"),
        ("Wie hoch ist mein Urlaubsanspruch?", "de", "Wie hoch ist mein Jahresurlaub?"),
        ("연차휴가는 며칠인가요?", "ko", "연차는 며칠인가요?"),
        ("有給休暇は何日ありますか", "ja", "年次有給休暇は何日ありますか"),
        ("كم يوم إجازة سنوية لدي", "ar", "كم يوم الإجازة السنوية لدي"),
    ],
)
def test_a_question_is_put_as_documents_would(question: str, language: str, other: str) -> None:
    assert reword(question, language) == other


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("When must I leave the building?", "en"),
        ("Does the plan pay for X-rays?", "en"),
        ("창립휴가는 한 달에 며칠이에요?", "ko"),  # a kind of leave of its own: the word stands within another
        ("How many vacation days do I get?", "xx"),
        ("How many vacation days do I get?", ""),
        ("", "en"),
    ],
)
def test_what_says_something_else_stays(question: str, language: str) -> None:
    assert reword(question, language) == ""
    assert synonyms_of(question, language, "en") == {}


@pytest.mark.parametrize(
    ("question", "text", "kept"),
    [
        ("How much annual leave?", "Nobody works on a public holiday.", "Nobody works on a ."),
        ("How much annual leave?", "A holiday in summer.", "A holiday in summer."),
        ("Is a bank holiday paid?", "Nobody works on a public holiday.", "Nobody works on a public holiday."),
    ],
)
def test_a_word_within_the_expression_for_another_subject_does_not_count(question: str, text: str, kept: str) -> None:
    assert " ".join(without_other_ideas(text, "en", ideas_in(question, "en")).split()) == kept


def test_words_that_the_model_of_meaning_knows_as_one_are_put_into_other_languages_only() -> None:
    assert reword("May I keep my laptop?", "en") == ""
    assert in_words_of("Darf ich meinen Laptop behalten?", "de", "tr") == "Darf ich meinen dizüstü bilgisayar behalten?"
    assert ("comput",) in synonyms_of("May I keep my laptop?", "en", "de")["laptop"]


def test_what_is_asked_in_turkish_is_found_in_other_languages() -> None:
    assert ("overtim",) in synonyms_of("Fazla mesai nasıl ödenir?", "tr", "en")["fazla"]
    assert in_words_of("Yıllık izin kaç gün?", "tr", "de") == "Urlaub kaç gün?"


def test_of_words_that_overlap_the_longer_ones_count() -> None:
    assert synonyms_of("Is a bank holiday paid?", "en", "de").keys() == {"bank", "holiday"}
    assert ("feiertag",) in synonyms_of("Is a bank holiday paid?", "en", "de")["holiday"]
    assert ("urlaub",) not in synonyms_of("Is a bank holiday paid?", "en", "de")["holiday"]


def test_a_passage_holds_a_word_when_it_says_the_same_in_others() -> None:
    words = question_words("How many vacation days do I get?", "en", "en")
    held = coverage(words, ["employe", "27", "day", "annual", "leav"], usual)
    assert (held.share, held.matched) == (1.0, ("vacation", "days"))
    half = coverage(words, ["employe", "annual", "meet"], usual)
    assert half.matched == ()


def test_a_passage_in_another_language_holds_it_too() -> None:
    words = question_words("How many vacation days do I get?", "en", "nl")
    assert coverage(words, ["26", "vakantiedag"], usual).share == 1.0
    assert coverage(words, ["26", "verlof"], usual).share == 0.0


def test_terms_that_are_meant_count_less_and_least_in_another_language() -> None:
    own, other = (question_terms("vacation", "en", analyser) for analyser in ("en", "nl"))
    assert own["vacat"] == other["vacation"] == 1.0
    assert own["leav"] == SYNONYM_WEIGHT > other["vakantie"] == FOREIGN_WEIGHT > 0
    assert question_terms("cardboard", "en", "en") == {"cardboard": 1.0}


def test_a_page_pasted_as_a_question_is_not_looked_through() -> None:
    assert synonyms_of("x " * 400 + "vacation", "en", "en") == {}


def test_every_idea_is_there_in_every_language_once() -> None:
    for idea in ideas():
        assert set(idea) == set(DETECTED), idea["en"]
        for expressions in idea.values():
            assert expressions.in_questions
            assert len(set(expressions.in_questions)) == len(expressions.in_questions)
    assert "\t" not in FILE.read_text("utf-8")


@pytest.mark.parametrize(
    ("question", "word", "is_said"),
    [
        ("연차는 며칠인가요?", "연차는", True),
        ("육아휴직을 쓰고 싶어요", "육아휴직을", True),
        # Another thing that begins with the same.
        ("연차수당은 얼마인가요?", "연차수당은", False),
    ],
)
def test_a_korean_word_with_its_particle_has_what_other_languages_say(question: str, word: str, is_said: bool) -> None:
    (found,) = [found for found in question_words(question, "ko", "en") if found.text == word]
    assert bool(found.synonyms) is is_said


@pytest.mark.parametrize(
    ("question", "language", "other", "switched"),
    [
        ("Wie lange ist der Mutterschutz?", "de", "en", "Wie lange ist der maternity leave?"),
        ("연차는 며칠인가요?", "ko", "nl", "vakantie 며칠인가요?"),
        ("Krijg ik overuren in een nachtdienst?", "nl", "ko", "Krijg ik 연장근로 in een 야간근로?"),
        ("Who won the world cup?", "en", "ko", ""),
        ("How many vacation days do I get?", "en", "xx", ""),
    ],
)  # fmt: skip
def test_a_question_is_put_in_the_words_of_another_language(
    question: str, language: str, other: str, switched: str
) -> None:
    assert in_words_of(question, language, other) == switched


def test_what_a_question_is_about_is_named_by_its_longest_expressions() -> None:
    assert named_in("May I have a second job during sick leave?", "en") == ("second job", "sick leave")
    assert named_in("Who won the world cup?", "en") == ()
