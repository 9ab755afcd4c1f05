"""Whether a sentence is in what it cites: one case a rule, and as many where the rule must keep silent."""

from __future__ import annotations

import pytest

from rag.answering.citations import citation_from_json, citation_to_json, verified
from rag.answering.groundedness import CitedSource, QuestionContext, faults
from tests.answering.scripted import passage

PASSAGE = (
    "Full-time employees receive 25 days of annual leave per calendar year. Up to five unused days may be carried over "
    "until 31 March 2027. Employees may sell leave days back to the company. Leave for a course is not paid. "
    "Contact Sarah Jones in Human Resources (leave@example.org) to book leave by 1 July 2026."
)
QUESTION = "How does annual leave work?"


@pytest.mark.parametrize(
    ("claim", "fault"),
    [
        pytest.param("Employees receive 30 days of annual leave", "figures", id="another number"),
        pytest.param("Leave is booked by 1 March 2027", "dates", id="another date of the same figures"),
        pytest.param("Leave is booked by 31 July 2026", "dates", id="the day of one date, the month of the other"),
        pytest.param("Unused days are lost at the end of August", "dates", id="another month"),
        pytest.param("Book your leave with Sarah Miller", "names", id="another person"),
        pytest.param("Book your leave with Dr. Miller", "names", id="a name behind a title"),
        pytest.param("Write to holidays@example.org to book leave", "names", id="an e-mail address"),
        pytest.param("Employees bring dogs and hamsters into meeting rooms", "words", id="something else"),
        pytest.param("Employees may not sell leave days back to the company", "negation", id="may and may not"),
        pytest.param("Leave for a course is paid", "negation", id="not paid and paid"),
        pytest.param("Employees can't sell leave days back to the company", "negation", id="can't"),
    ],
)
def test_what_a_passage_does_not_say_is_found(claim: str, fault: str) -> None:
    assert fault in faults(claim, [CitedSource(PASSAGE)], QuestionContext(QUESTION, "en"))


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param("You get 25 days off each year", id="in other words, with the figure"),
        pytest.param("You get twenty-five vacation days", id="a number word"),
        pytest.param("Full-time staff have 25 leave days every calendar year", id="close"),
        pytest.param("Up to 5 unused days can be carried over until 2027-03-31", id="the date in figures"),
        pytest.param("Book it with Sarah Jones of HR by July 1", id="name, initials, the date the other way round"),
        pytest.param("Contact Human Resources", id="a department"),
        pytest.param("The Line Manager is Sarah Jones", id="a function in capitals before a known name"),
        pytest.param("**How To Book:** contact Human Resources", id="a heading in capitals"),
        pytest.param("Leave for a course is unpaid", id="another way to deny"),
        pytest.param("No more than five unused days may be carried over", id="a limit is no denial"),
        pytest.param("Employees may sell leave days back to the company", id="word for word"),
        pytest.param("You may sell them back", id="short"),
        pytest.param("Yes", id="one word"),
    ],
)
def test_another_wording_is_not_marked(claim: str) -> None:
    assert not faults(claim, [CitedSource(PASSAGE)], QuestionContext(QUESTION, "en"))


@pytest.mark.parametrize(
    ("language", "passage", "flipped"),
    [
        ("en", "Part-time staff may carry over unused days.", "Part-time staff may not carry over unused days."),
        ("nl", "Medewerkers mogen ongebruikte dagen meenemen.", "Medewerkers mogen ongebruikte dagen niet meenemen."),
        ("de", "Mitarbeiter dürfen freie Tage übertragen.", "Mitarbeiter dürfen freie Tage nicht übertragen."),
        ("fr", "Les salariés peuvent reporter les jours.", "Les salariés ne peuvent pas reporter les jours."),
        ("es", "Los empleados pueden trasladar los días.", "Los empleados no pueden trasladar los días."),
        ("it", "I dipendenti possono riportare i giorni.", "I dipendenti non possono riportare i giorni."),
        ("pt", "Os funcionários podem transferir os dias.", "Os funcionários não podem transferir os dias."),
        ("pl", "Pracownicy mogą przenosić dni urlopu.", "Pracownicy nie mogą przenosić dni urlopu."),
        ("tr", "Çalışanlar kalan günleri devreder.", "Çalışanlar kalan günleri devretmez."),
        ("ko", "직원은 남은 연차를 다음 해로 이월할 수 있습니다.", "직원은 남은 연차를 다음 해로 이월할 수 없습니다."),
        (
            "ja",
            "社員は残りの休暇を翌年に繰り越すことができます。",
            "社員は残りの休暇を翌年に繰り越すことができません。",
        ),
        ("zh", "员工可以将剩余年假结转到下一年。", "员工不可以将剩余年假结转到下一年。"),
        ("ar", "يجوز للموظفين ترحيل أيام الإجازة السنوية.", "لا يجوز للموظفين ترحيل أيام الإجازة السنوية."),
    ],
)
def test_a_negation_turned_round_is_found_in_every_language(language: str, passage: str, flipped: str) -> None:
    asked = QuestionContext("?", language)
    assert faults(flipped, [CitedSource(passage, likely=(language,))], asked) == {"negation"}
    assert faults(passage, [CitedSource(flipped, likely=(language,))], asked) == {"negation"}
    assert not faults(passage, [CitedSource(passage, likely=(language,))], asked)
    assert not faults(flipped, [CitedSource(flipped, likely=(language,))], asked)


def test_a_denial_in_the_clause_beside_it_does_not_count() -> None:
    source = CitedSource("Employees may carry over five days, but may not sell them.")
    assert not faults("Employees may carry over five days", [source], QuestionContext("", "en"))
    assert faults("Employees may not carry over five days", [source], QuestionContext("", "en")) == {"negation"}


@pytest.mark.parametrize(
    ("claim", "found"),
    [
        pytest.param("정규직 직원은 매년 25일의 연차를 받습니다", set(), id="a translation"),
        pytest.param("정규직 직원은 매년 30일의 연차를 받습니다", {"figures"}, id="a translation with another figure"),
        pytest.param("휴가를 회사에 되팔 수 없습니다", set(), id="a denial that cannot be compared"),
        pytest.param("2026년 7월 1일까지 김민수 님에게 신청하세요", set(), id="a date and a name"),
    ],
)
def test_of_another_language_only_figures_are_compared(claim: str, found: set[str]) -> None:
    assert faults(claim, [CitedSource(PASSAGE)], QuestionContext("연차는 어떻게 되나요?", "ko")) == found


def test_what_the_rest_of_the_page_says_supports_a_sentence() -> None:
    claim = "Parental leave lasts sixteen weeks and is requested through the portal"
    page = CitedSource("Parental leave lasts sixteen weeks. It is requested through the portal.")
    assert faults(claim, [CitedSource(PASSAGE)], QuestionContext(QUESTION, "en")) == {"words"}
    assert not faults(claim, [CitedSource(PASSAGE)], QuestionContext(QUESTION, "en"), more=lambda: [page])


def test_what_a_limit_says_is_no_denial_of_the_statement_it_limits() -> None:
    source = CitedSource("Employees may carry over unused days to the next year.")
    limited = "Employees may not carry over unused days to the next year unless their manager agrees"
    assert not faults(limited, [source], QuestionContext("", "en"))


def test_the_sentences_that_a_passage_does_not_support_are_on_its_citation() -> None:
    given = [passage(1, PASSAGE), passage(2, "Parking is free for all employees at the office.")]
    text = "Employees may not sell leave days back to the company [1]. Parking is free for employees [2]."
    checked = verified(text, given, question=QUESTION, page_text=lambda _: "", language="en", likely=("en",))
    assert [c.is_supported for c in checked] == [False, True]
    assert checked[0].unsupported == ("Employees may not sell leave days back to the company",)
    assert citation_from_json(citation_to_json(checked[0])) == checked[0]


def test_a_preposition_is_no_source_of_a_figure() -> None:
    source = CitedSource("Leave begins on a Monday. The team lead confirms leave within two days.", likely=("en",))
    asked = QuestionContext(QUESTION, "en")
    assert "figures" in faults("The team lead confirms leave within 10 days", [source], asked)
    assert "figures" not in faults("The team lead confirms leave within 2 days", [source], asked)
