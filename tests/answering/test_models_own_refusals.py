"""A model's own words for "not in the documents", and answers that only look like them."""

from __future__ import annotations

import pytest

from rag.answering.guardrails import says_not_found

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
