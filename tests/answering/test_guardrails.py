"""How a model's text is watched: sentences without a named passage, and replies that the documents do not answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rag.answering.events import TextEvent
from rag.answering.groundedness import CitedSource
from rag.answering.guardrails import SourceFinder, says_not_found, states, uncited_statements
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
        found._text_numbers[1] = 1
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
    found._text_numbers[1] = 1
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


NOT_FOUND = {
    "en": [
        "I could not find this in the documents.",
        "I couldn't find any information about parking in the provided passages.",
        "Unfortunately, there is no information about parking fines in the documents. Please contact HR.",
        "The documents [1][2] do not mention parking.",
        "I'm sorry, but I cannot answer this question based on the passages.",
        "Parking is not mentioned in the passages.",
        "I don't know.",
    ],
    "nl": [
        "Ik kan dit niet vinden in de documenten.",
        "Ik kan hierover niets vinden in de documenten.",
        "De documenten bevatten geen informatie over parkeren.",
        "Er is geen informatie over parkeren gevonden.",
    ],
    "de": [
        "Ich konnte dazu nichts in den Dokumenten finden.",
        "Die Dokumente enthalten keine Informationen zum Parken.",
        "Das wird in den Dokumenten nicht erwähnt.",
    ],
    "fr": [
        "Je n'ai pas trouvé cette information dans les documents.",
        "Les documents ne mentionnent pas le stationnement.",
    ],
    "es": ["No he encontrado esta información en los documentos.", "Los documentos no mencionan el aparcamiento."],
    "it": ["Non ho trovato questa informazione nei documenti.", "I documenti non contengono informazioni su questo."],
    "pt": ["Não encontrei essa informação nos documentos.", "Os documentos não mencionam o estacionamento."],
    "pl": ["Nie znalazłem tej informacji w dokumentach.", "Dokumenty nie zawierają informacji o parkowaniu."],
    "ko": ["문서에서 이 내용을 찾을 수 없습니다.", "제공된 문서에는 주차에 대한 정보가 없습니다."],
    "ja": ["文書の中にその情報は見つかりませんでした。", "この情報は文書に記載されていません。"],
    "zh": ["文档中没有找到相关信息。", "资料中没有提到停车。"],
    "ar": ["لم أجد هذه المعلومات في المستندات.", "لا تذكر المستندات شيئا عن ذلك."],
}
ANSWERS = {
    "en": [
        "I could not find the fee, but the deadline is 1 July [1].",
        "I could not find the fee. The deadline is 1 July [1].",
        "The plan does not cover cosmetic surgery [1].",
        "Employees who cannot find a parking space may park in the street [1].",
        "You get 25 days of leave in every calendar year [1]. I could not find how to book them.",
        "There is no limit on sick leave [1].",
        "You must bring documents that do not contain personal data [1].",
        "There is no information desk on the third floor [1].",
    ],
    "nl": ["Ik kan het bedrag niet vinden, maar de termijn is 1 juli [1].", "De documenten mogen niet mee [1]."],
    "de": [
        "Den Betrag konnte ich nicht finden, aber die Frist ist der 1. Juli [1].",
        "Die Unterlagen dürfen nicht weitergegeben werden [1].",
    ],
    "fr": ["Je n'ai pas trouvé le montant, mais le délai est le 1er juillet [1].", "Il n'y a pas de limite [1]."],
    "es": ["No he encontrado el importe, pero el plazo es el 1 de julio [1].", "No hay límite [1]."],
    "it": ["Non ho trovato l'importo, ma la scadenza è il 1 luglio [1].", "I documenti non devono uscire [1]."],
    "pt": ["Não encontrei o valor, mas o prazo é 1 de julho [1].", "Os documentos não devem sair [1]."],
    "pl": ["Nie znalazłem kwoty, ale termin to 1 lipca [1].", "Dokumenty nie mogą być udostępniane [1]."],
    "ko": ["금액은 찾을 수 없지만 기한은 7월 1일입니다 [1].", "연차는 이월할 수 없습니다 [1]."],
    "ja": ["金額は見つかりませんでしたが、期限は7月1日です [1]。", "休暇は繰り越せません [1]。"],
    "zh": ["金额没有找到，但截止日期是7月1日 [1]。", "年假不能结转 [1]。"],
    "ar": ["لم أجد المبلغ، لكن الموعد هو 1 يوليو [1].", "لا يجوز ترحيل الأيام [1]."],
}


@pytest.mark.parametrize("text", [text for texts in NOT_FOUND.values() for text in texts])
def test_a_reply_that_finds_nothing_is_known_without_our_mark(text: str) -> None:
    assert says_not_found(text)


@pytest.mark.parametrize("text", [text for texts in ANSWERS.values() for text in texts])
def test_an_answer_of_a_part_or_with_a_denial_is_an_answer(text: str) -> None:
    assert not says_not_found(text)


def test_both_are_tried_in_twelve_languages() -> None:
    assert NOT_FOUND.keys() == ANSWERS.keys()
    assert len(ANSWERS) == 12
