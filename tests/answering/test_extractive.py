from __future__ import annotations

from dataclasses import replace

import pytest
from scripted import passage

from rag.answering.extractive import best_quotes, sentences
from rag.types import Citation

HANDBOOK = """Vacation
Full-time employees receive 25 vacation days per calendar year. Part-time employees receive
a share of this in proportion to their hours. Unused days expire on 31 March of the next year.
Parking
Parking is free for everyone. Ask the reception for a card."""
PERKS = """The program covers the following activities:
Gym memberships
Yoga classes
Swimming lessons

It does not cover groceries."""


def test_the_sentence_that_answers_is_quoted_word_for_word() -> None:
    quotes = best_quotes("How many vacation days do full-time employees get?", [passage(1, HANDBOOK)], language="en")
    assert quotes is not None
    assert "“Full-time employees receive 25 vacation days per calendar year." in quotes.text
    assert quotes.text.count("[1]") >= 1
    assert "Parking" not in quotes.text
    assert quotes.numbers == (1,)


def test_a_line_that_ends_in_a_colon_takes_its_list_along() -> None:
    quotes = best_quotes("Which activities does the program cover?", [passage(4, PERKS)], language="en")
    assert quotes is not None
    assert "activities: Gym memberships; Yoga classes; Swimming lessons” [4]" in quotes.text


@pytest.mark.parametrize(
    "question", ["Who won the football match yesterday?", "?!", "Hoe lang duurt het?"], ids=["other", "no words", "nl"]
)
def test_passages_that_share_no_word_are_quoted_all_the_same(question: str) -> None:
    quotes = best_quotes(question, [passage(1, HANDBOOK), passage(2, PERKS)], language="en")
    assert quotes is not None
    assert quotes.numbers


def test_a_sentence_is_not_quoted_for_its_heading_alone() -> None:
    text = (
        "Hybrid employees work from home up to two days a week. The company pays for a desk and a chair at home. "
        "Employees keep their workplace tidy. Confidential papers stay in the building."
    )
    under = replace(passage(1, text), section="Working from home for employees")
    quotes = best_quotes("How many days a week may employees work from home?", [under], language="en")
    assert quotes is not None
    assert quotes.text == "“Hybrid employees work from home up to two days a week.” [1]"


PLAN = """The Health Plus plan has a calendar year deductible that applies to some services.
The following definitions help employees to understand Health Plus.
The deductible for services within the network is $1,500 for individuals. Health Plus covers surgery."""
NEAR_TWIN = "The Health Standard plan has a deductible of $2,000 for individuals. Other plans may have none."


def plan(number: int, title: str, text: str) -> Citation:
    return replace(passage(number, text), title=title, section="")


def test_a_sentence_with_a_figure_is_no_repetition_of_one_without() -> None:
    quotes = best_quotes("What is the deductible of Health Plus?", [plan(1, "Health Plus", PLAN)], language="en")
    assert quotes is not None
    assert "$1,500" in quotes.text


def test_a_sentence_is_not_quoted_for_the_name_of_its_document() -> None:
    quotes = best_quotes("What is the deductible of Health Plus?", [plan(1, "Health Plus", PLAN)], language="en")
    assert quotes is not None
    assert "definitions" not in quotes.text
    assert "surgery" not in quotes.text


def test_a_question_about_nothing_but_the_document_is_answered_with_its_name() -> None:
    quotes = best_quotes("What is Health Plus?", [plan(1, "Health Plus", PLAN)], language="en")
    assert quotes is not None
    assert "Health Plus" in quotes.text


@pytest.mark.parametrize("is_first", [True, False])
def test_the_plan_that_is_named_is_quoted_and_not_its_near_twin(is_first: bool) -> None:
    passages = [plan(1, "Health Plus", PLAN), plan(2, "Health Standard", NEAR_TWIN)]
    quotes = best_quotes(
        "What is the deductible of Health Plus?", passages if is_first else passages[::-1], language="en"
    )
    assert quotes is not None
    assert quotes.numbers == (1,)


def test_no_passages_give_no_quotes() -> None:
    assert best_quotes("Vacation?", [], language="en") is None


def test_the_same_sentence_of_two_documents_is_quoted_once() -> None:
    text = "Employees receive 25 vacation days."
    quotes = best_quotes("How many vacation days?", [passage(1, text), passage(2, text)], language="en")
    assert quotes is not None
    assert quotes.text == f"“{text}” [1]"


def test_dutch_and_korean_sentences_are_found_in_their_other_forms() -> None:
    dutch = passage(1, "Medewerkers hebben recht op 25 vakantiedagen. De koffie is gratis.")
    quotes = best_quotes("Op hoeveel vakantiedagen heeft een medewerker recht?", [dutch], language="nl")
    assert quotes is not None
    assert quotes.text == "“Medewerkers hebben recht op 25 vakantiedagen.” [1]"
    korean = passage(2, "연차휴가는 매년 15일입니다. 주차는 무료입니다.")
    quotes = best_quotes("연차휴가는 며칠인가요?", [korean], language="ko")
    assert quotes is not None
    assert quotes.text == "“연차휴가는 매년 15일입니다.” [2]"


def test_numbers_in_brackets_of_a_document_are_no_citations() -> None:
    quotes = best_quotes("Vacation days?", [passage(1, "There are 25 vacation days [7] per year.")], language="en")
    assert quotes is not None
    assert quotes.text == "“There are 25 vacation days per year.” [1]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("One line that goes\non in the next line.", ["One line that goes on in the next line."]),
        ("Ask e.g. Mr. Jones. He knows.", ["Ask e.g. Mr. Jones.", "He knows."]),
        ("- First item\n- Second item", ["First item", "Second item"]),
        ("It costs 1.50 euro. Pay it.", ["It costs 1.50 euro.", "Pay it."]),
        ("休暇は年二十日です。駐車は無料です。", ["休暇は年二十日です。", "駐車は無料です。"]),
    ],
    ids=["empty", "wrapped", "abbreviations", "list", "decimals", "japanese"],
)
def test_sentences_are_put_together_from_lines(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected
