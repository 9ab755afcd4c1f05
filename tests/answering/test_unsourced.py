"""What becomes of sentences that a model writes without naming a passage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rag.answering.events import TextEvent
from rag.answering.groundedness import CitedSource
from rag.answering.guardrails import SourceFinder, states, uncited_statements
from rag.answering.writing import UNSOURCED, WITHDRAWN
from rag.types import Outcome
from tests.answering.test_answer import run_to_end

LEAVE = CitedSource(
    "Employees have 25 days of vacation a year. Unused days are carried over until the end of March.",
    "Leave policy",
    ("en",),
)
TRAVEL = CitedSource(
    "Hotels are booked by the travel desk. In London a night may cost 135 pounds at most.", "Travel", ("en",)
)
DUTCH = CitedSource(
    "Medewerkers hebben recht op 28 vakantiedagen per jaar en melden zich ziek voor 9 uur.", "", ("nl",)
)


def finder(*sources: CitedSource, question: str = "How many days of vacation?", language: str = "en") -> SourceFinder:
    return SourceFinder(dict(enumerate(sources, 1)), {}, question, lambda _text: language)


def written(found: SourceFinder, text: str, size: int = 7) -> str:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return "".join(map(found.feed, pieces)) + found.finish()


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("You have 25 days of vacation a year.", "… [1]", id="a sentence"),
        pytest.param(
            "You have 25 days of vacation a year.\n\nA hotel in London may cost 135 pounds.",
            "You have 25 days of vacation a year. [1]\n\nA hotel in London may cost 135 pounds. [2]",
            id="two paragraphs",
        ),
        pytest.param(
            "- 25 days of vacation\n- unused days are carried over until March", "… [1]", id="a list is one block"
        ),
        pytest.param("**Leave**\n\nEmployees have 25 days of vacation. [1]", "", id="cited already"),
        pytest.param("Sure! Here is what I found:", "", id="nothing stated"),
        pytest.param("Penguins live in the antarctic ocean.", "", id="in no passage"),
    ],
)
def test_a_block_without_a_number_gets_those_of_the_passages_it_is_in(text: str, expected: str, size: int) -> None:
    expected = expected.replace("…", text) or text
    found = finder(LEAVE, TRAVEL)
    if "[1]" in text:
        found._shown[1] = 1
    assert written(found, text, size) == expected


@pytest.mark.parametrize(
    ("text", "unsupported"),
    [
        pytest.param("You get a free car after two years.", ["You get a free car after two years."], id="invented"),
        pytest.param(
            "You get a free car after two years. Employees have 25 days of vacation [1].",
            ["You get a free car after two years."],
            id="before a cited one",
        ),
        pytest.param(
            "Employees have 25 days of vacation [1]. They also get a free car after two years.",
            ["They also get a free car after two years."],
            id="behind a cited one",
        ),
        pytest.param("Employees have 30 days of vacation a year.", ["Employees have 30 days of vacation a year."],
                     id="another figure"),
        pytest.param("You have twelve days of vacation.", ["You have twelve days of vacation."], id="in words"),
        pytest.param("Employees do not have 25 days of vacation a year.",
                     ["Employees do not have 25 days of vacation a year."], id="denied"),
        pytest.param("- Free lunch every day\n- A gym on the roof", ["Free lunch every day", "A gym on the roof"],
                     id="a list"),
        pytest.param("Employees have 25 days of vacation [1]. Unused ones are carried over until March.", [],
                     id="beside, and in the passage"),
        pytest.param("Let me know if you have further questions about your vacation!", [], id="courtesy"),
        pytest.param("Based on the documents, vacation is a matter of policy.", [], id="an introduction"),
    ],
)  # fmt: skip
def test_a_sentence_that_no_passage_holds_is_named(text: str, unsupported: list[str]) -> None:
    found = finder(LEAVE, TRAVEL)
    found._shown[1] = 1
    written(found, text)
    assert (found.unsupported, found.unknown) == (unsupported, [])


def test_what_is_in_another_language_than_its_passage_is_judged_by_its_figures_alone() -> None:
    found = finder(DUTCH)
    written(found, "You have 28 days of vacation. You get 40 days of vacation.")
    assert (found.unknown, found.unsupported) == (["You have 28 days of vacation."], ["You get 40 days of vacation."])
    beside = finder(DUTCH)
    written(beside, "You have 28 days of vacation. Call in before nine [1].")
    assert (beside.unknown, beside.unsupported) == ([], [])


@pytest.mark.parametrize(
    ("language", "statement", "none"),
    [
        ("en", "Parking is free for visitors.", "Here is the answer:"),
        ("de", "Parken ist für Besucher kostenlos.", "Wenden Sie sich bei weiteren Fragen an die Personalabteilung."),
        ("fr", "Le parking est gratuit pour les visiteurs.", "N'hésitez pas à poser d'autres questions."),
        ("nl", "Parkeren is gratis voor bezoekers.", "Neem contact op met personeelszaken voor meer informatie."),
        ("es", "El aparcamiento es gratis para visitantes.", "No dude en preguntar si necesita más ayuda."),
        ("ko", "방문객 주차는 무료입니다.", "더 궁금한 점은 인사팀에 문의하세요."),
        ("ja", "来客用の駐車場は無料です。", "詳細は人事部にお問い合わせください。"),
        ("zh", "访客停车免费。", "如有其他问题请联系人力资源部。"),
    ],
)
def test_courtesies_state_nothing_in_any_language(language: str, statement: str, none: str) -> None:
    assert states(statement, language)
    assert not states(none, language)


def test_headings_and_rules_of_tables_state_nothing() -> None:
    block = "## Vacation and sick leave\n| Plan | Days |\n|---|---|\n| Office staff | 25 |\n**What to do next:**"
    assert [s.text for s in uncited_statements(block, "en")] == ["Plan Days", "Office staff 25"]


INVENTED: list[tuple[str, Sequence[str]]] = [
    ("alone", ["You get a free car after two years."]),
    ("beside true ones", ["Employees have 25 days of vacation [1]. ", "You get a free car after two years. "]),
    ("before true ones", ["You get a free car after two years. ", "Vacation is booked in June [2]. "]),
    ("nothing", ["The answer is:"]),
    ("a figure alone", ["The answer is: 15."]),
    ("a list", ["You get:\n", "- a free car\n", "- a house by the sea\n"]),
    (
        "in a paragraph of its own",
        ["Employees have 25 days of vacation [1].\n\n", "The chief gives a car to everybody."],
    ),
    ("with a wrong figure", ["Employees have 31 days of vacation."]),
]


@pytest.mark.parametrize("parts", [pytest.param(parts, id=name) for name, parts in INVENTED])
def test_no_invented_sentence_is_shown_unmarked(desk: Any, parts: Sequence[str]) -> None:
    desk.model.scripts = [list(parts)]
    _, done, events = run_to_end(desk, "How many days of vacation do I get?")
    shown = ""
    for event in events:
        if isinstance(event, TextEvent):
            shown = event.text if event.starts_over else shown + event.text
    invented = [part.strip("- \n") for part in parts if "[" not in part and not part.strip().endswith("get:")]
    for sentence in invented:
        is_marked = UNSOURCED.format(sentence=sentence) in done.notices
        assert is_marked or sentence not in shown, (shown, done.notices)
    assert done.outcome in (Outcome.ANSWERED, Outcome.PERHAPS)
    if "[" not in "".join(parts):
        assert done.notices[0] in WITHDRAWN.values()
        assert "Employees have 25 days of vacation." in shown


def test_a_true_answer_without_a_number_gets_one(desk: Any) -> None:
    desk.model.scripts = [["Employees have 25 days ", "of vacation. "]]
    text, done, _ = run_to_end(desk, "How many days of vacation do I get?")
    assert text == "Employees have 25 days of vacation. [1]"
    assert (done.outcome, done.kind, done.notices) == (Outcome.ANSWERED, "cited", ())
    assert [citation.number for citation in done.citations] == [1]


def test_a_question_back_is_no_answer_and_stays(desk: Any) -> None:
    desk.model.scripts = [["Which vacation do you mean, paid or unpaid?"]]
    text, done, _ = run_to_end(desk, "How many days of vacation do I get?")
    assert text == "Which vacation do you mean, paid or unpaid?"
    assert done.outcome is Outcome.PERHAPS
