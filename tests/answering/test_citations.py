from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace

import pytest

from rag.answering import groundedness
from rag.answering.citations import (
    CitationFilter,
    citation_from_json,
    citation_to_json,
    cited,
    claims,
    quoted,
    telling_sentence,
    verified,
    with_matched_terms,
    without_markers,
)
from rag.retrieval.bm25.index import tokenize
from tests.answering.scripted import passage


def filtered(pieces: list[str], known: range = range(1, 6)) -> str:
    keep = CitationFilter(list(known))
    return "".join(keep.feed(piece) for piece in pieces) + keep.finish()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("No numbers here.", "No numbers here.", id="no markers"),
        pytest.param("A [4]. B [2]. C [4].", "A [1]. B [2]. C [1].", id="numbered by first mention"),
        pytest.param("A [9].", "A.", id="a number that was not given"),
        pytest.param("A [0] and [12] b [3].", "A and b [1].", id="several that were not given"),
        pytest.param("A [1, 3].", "A [1][2].", id="a list"),
        pytest.param("A [2-4].", "A [1][2][3].", id="a range"),
        pytest.param("A [1-2000].", "A [1].", id="too wide to be a range"),
        pytest.param("A [1,9].", "A [1].", id="a list with a wrong one"),
        pytest.param("A [2, 3, 2].", "A [1][2].", id="a list that names one twice"),
        pytest.param("A 【2】 and [^3].", "A [1] and [2].", id="other brackets"),
        pytest.param("A [1](https://bad.example/?q=1) b", "A [1] b", id="a link made of it"),
        pytest.param("A [1] (see below)", "A [1] (see below)", id="a bracket that is no link"),
        pytest.param("Fill in [name] and [x].", "Fill in [name] and [x].", id="other words in brackets"),
        pytest.param("Cut off [1", "Cut off", id="broken off in a marker"),
        pytest.param("Cut off [see", "Cut off [see", id="broken off in other brackets"),
        pytest.param("In [2024] it was 5 [2].", "In it was 5 [1].", id="a year in brackets"),
    ],
)
def test_only_numbers_that_were_given_survive(text: str, shown: str) -> None:
    assert filtered([text]) == shown


def test_a_text_is_the_same_however_it_is_cut_into_pieces() -> None:
    text = "A [4], b [9] and [1, 2]. C 【3】[7](http://x/y) d [note] [1](#a) e [2-3]. F [5][1] g [2"
    whole = filtered([text])
    for seed in range(300):
        choose = random.Random(seed)
        cuts = sorted(choose.sample(range(1, len(text)), choose.randint(1, 30)))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert filtered(pieces) == whole, pieces
    assert filtered(list(text)) == whole


def test_every_number_opens_the_passage_the_model_meant() -> None:
    for seed in range(200):
        choose = random.Random(seed)
        given = [passage(number, f"fact{number}") for number in range(1, choose.randint(2, 9))]
        choose.shuffle(given)
        meant = [choose.randint(1, 12) for _ in range(choose.randint(1, 15))]
        text = " ".join(f"claim of fact{number} [{number}]." for number in meant)
        keep = CitationFilter([citation.number for citation in given])
        shown = "".join(keep.feed(text[i : i + 3]) for i in range(0, len(text), 3)) + keep.finish()
        cards = {citation.number: citation for citation in cited(given, keep.text_numbers)}
        found = re.findall(r"claim of (fact\d+)(?: \[(\d+)\])?\.", shown)
        assert len(found) == len(meant)
        for fact, number in found:
            if number:
                assert cards[int(number)].passage == fact
            else:
                assert fact not in {citation.passage for citation in given}
        assert sorted(cards) == list(range(1, len(cards) + 1))


def test_a_sentence_with_a_figure_its_passage_lacks_is_not_supported() -> None:
    given = [passage(1, "Employees have 25 days of vacation."), passage(2, "The deadline is 1 July 2026.")]
    text = "You have 27 days [1]. The deadline is 2026-07-01 [2]."
    checked = verified(text, given, question="", page_text=lambda _: "")
    assert [citation.is_supported for citation in checked] == [False, True]


def test_a_sentence_in_doubt_is_named_without_its_marks() -> None:
    (checked,) = verified("You have **27 days** [1].", [passage(1, "25 days")], question="", page_text=lambda _: "")
    assert checked.unsupported == ("You have 27 days",)


@pytest.mark.parametrize(
    ("text", "supported"),
    [
        pytest.param("It is 25 days [1].", True, id="the same"),
        pytest.param("It is EUR 1,500.00 [1].", True, id="another way to write it"),
        pytest.param("It is 1 500 [1].", True, id="a space between thousands"),
        pytest.param("It is 1,500.50 [1].", False, id="another fraction"),
        pytest.param("1. You get 25 days [1].", True, id="the number of a list item"),
        pytest.param("After 12 weeks [1].", True, id="a number word"),
        pytest.param("After ３ days [1].", False, id="full-width digits"),
        pytest.param("In 2031 you get 25 days [1].", True, id="a figure of the question"),
        pytest.param("On page 40 stands 77 [1].", True, id="on the page, outside the passage"),
        pytest.param("It is 99 days. That is all [1].", True, id="in a sentence without a citation"),
        pytest.param("Nothing to count [1].", True, id="no figure"),
        pytest.param("It is 25 days.[1]\n[2]", True, id="a marker on a line of its own"),
    ],
)
def test_figures_are_compared_however_they_are_written(text: str, supported: bool) -> None:
    given = [passage(1, "25 days, at most € 1.500, after twelve weeks."), passage(2, "More.")]
    checked = verified(text, given, question="What about 2031?", page_text=lambda _: "Page 40: 77 items")
    assert checked[0].is_supported is supported


def test_a_sentence_may_take_its_figures_from_any_passage_it_cites() -> None:
    given = [passage(1, "25 days"), passage(2, "30 days")]
    checked = verified("From 25 to 30 days [1][2].", given, question="", page_text=lambda _: "")
    assert all(citation.is_supported for citation in checked)


def test_claims_end_where_their_citations_begin() -> None:
    assert claims("A has 1 [1] and b 2 [2].\n- C is 3.5 [1][3]") == [
        ("A has 1", (1,)),
        ("and b 2", (2,)),
        ("- C is 3.5", (1, 3)),
    ]


def test_words_shared_with_question_or_answer_are_marked_as_written() -> None:
    asked = "How many vacations does an employee get?"
    marked = with_matched_terms(passage(1, "Employees receive vacation days."), [asked], "en")
    assert set(marked.matched_terms) == {"Employees", "vacation"}


def test_korean_words_are_marked_by_the_part_they_share() -> None:
    marked = with_matched_terms(passage(1, "연차휴가는 매년 15일입니다."), ["연차휴가가 며칠인가요?"], "ko")
    assert marked.matched_terms
    assert all(term in "연차휴가는 매년 15일입니다." for term in marked.matched_terms)


def test_a_stored_citation_comes_back_as_it_was() -> None:
    citation = replace(passage(3, "Text"), matched_terms=("Text",), is_supported=False)
    stored = citation_to_json(citation, "nearest")
    assert stored["kind"] == "nearest"
    assert citation_from_json(stored) == citation


def test_markers_are_taken_out_of_the_history() -> None:
    assert without_markers("A [1][2], b [3].") == "A, b."


def test_words_that_the_search_found_stay_marked() -> None:
    found = replace(passage(1, "Employees have 25 days of vacation."), matched_terms=("vacation",))
    assert with_matched_terms(found, ("How many employees?",), "en").matched_terms == ("vacation", "Employees")


def test_a_passage_is_read_once_however_many_sentences_cite_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read: Counter[str] = Counter()

    def counted(text: str, language: str) -> list[str]:
        read[text] += 1
        return tokenize(text, language)

    monkeypatch.setattr(groundedness, "tokenize", counted)
    said = "Employees receive vacation days after probation has ended."
    given = [passage(1, said)]
    text = " ".join(f"Employees receive vacation days after probation number {word} [1]." for word in ("a", "b", "c"))
    verified(text, given, question="", page_text=lambda _: "", language="en", likely=("en",))
    whole = [count for known, count in read.items() if said in known]
    assert whole
    assert set(whole) == {1}


FIGURES = "It is $1,500 for a person and $3,000 for a family."
PLAN = f"The plan has a deductible. {FIGURES} Dental care is in the plan too."


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "“It is $1,500 for a person and $3,000 for a family.” [1]",
            ["It is $1,500 for a person and $3,000 for a family."],
        ),
        (
            "A family pays $3,000 [1]. Dental care is covered by the plan too [1].",
            [FIGURES, "Dental care is in the plan too."],
        ),
        (
            "“The plan has a deductible. It is $1,500 for a person” [1], [2]",
            ["It is $1,500 for a person and $3,000 for a family."],
        ),
    ],
)
def test_each_place_of_a_number_marks_what_is_said_there(text: str, sentences: list[str]) -> None:
    marked = with_matched_terms(passage(1, PLAN), ["What is the deductible of the dental plan?"], "en")
    places = quoted(text, [marked])[1]
    assert [telling_sentence(PLAN, place.matched_terms) for place in places] == sentences


def test_a_place_that_says_it_in_another_language_keeps_the_marks_of_the_question() -> None:
    marked = with_matched_terms(passage(1, PLAN), ["deductible?"], "en")
    assert quoted("보험은 공제액이 있습니다 [1].", [marked]) == {1: (marked,)}
    assert quoted("The documents do not answer this.", [marked]) == {1: (marked,)}
