"""Questions that ask since when something holds, and what they ask it of."""

from __future__ import annotations

import pytest

from rag.retrieval.since import without_since


@pytest.mark.parametrize(
    ("language", "text", "rest"),
    [
        ("en", "Since when is the hotel limit 180 euros?", "is the hotel limit 180 euros?"),
        ("en", "How long has the hotel limit been 180 euros?", "has the hotel limit 180 euros?"),
        ("en", "When did the hotel limit of 180 euros come into force?", "did the hotel limit of 180 euros?"),
        ("en", "From which date does the hotel limit apply?", "does the hotel limit?"),
        ("en", "Since when does this rule apply?", ""),
        ("de", "Seit wann gilt die Hotelgrenze von 180 Euro?", "die Hotelgrenze von 180 Euro?"),
        ("de", "Ab wann gilt die Hotelgrenze?", "die Hotelgrenze?"),
        ("de", "Seit wann gilt diese Regel?", ""),
        ("nl", "Sinds wanneer is de hotellimiet 180 euro?", "is de hotellimiet 180 euro?"),
        ("nl", "Sinds wanneer geldt deze regel?", ""),
        ("fr", "Depuis quand la limite d'hôtel est-elle de 180 euros ?", "la limite d'hôtel de 180 euros?"),
        ("fr", "Depuis quand cette règle s'applique-t-elle ?", ""),
        ("es", "¿Desde cuándo es el límite de 180 euros?", "¿es el límite de 180 euros?"),
        ("es", "¿Desde cuándo rige esta norma?", ""),
        ("it", "Da quando il limite è di 180 euro?", "il limite è di 180 euro?"),
        ("it", "Da quando vale questa regola?", ""),
        ("pt", "Desde quando o limite é de 180 euros?", "o limite é de 180 euros?"),
        ("pt", "Desde quando vale esta regra?", ""),
        ("pl", "Od kiedy limit hotelowy wynosi 180 euro?", "limit hotelowy 180 euro?"),
        ("pl", "Od kiedy obowiązuje ta zasada?", ""),
        ("tr", "Otel limiti ne zamandan beri 180 euro?", "Otel limiti 180 euro?"),
        ("tr", "Bu kural ne zamandan beri geçerli?", ""),
        ("ko", "호텔 한도는 언제부터 180유로인가요?", "호텔 한도는 180유로인가요?"),
        ("ko", "이 규정은 언제부터 적용되나요?", ""),
        ("ja", "ホテルの上限はいつから180ユーロですか？", "ホテルの上限は 180ユーロ？"),
        ("ja", "この規則はいつから有効ですか？", ""),
        ("zh", "酒店限额从什么时候开始是180欧元？", "酒店限额 180欧元？"),
        ("zh", "这条规定从何时起生效？", ""),
        ("ar", "منذ متى حد الفندق 180 يورو؟", "حد الفندق 180 يورو؟"),
        ("ar", "منذ متى تسري هذه القاعدة؟", ""),
    ],
)
def test_since_when_is_read_in_thirteen_languages(language: str, text: str, rest: str) -> None:
    assert without_since(text, language) == rest


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "From when may I take annual leave?"),
        ("en", "When is payday?"),
        ("en", "How long is the notice period?"),
        ("en", "How have the rules changed since 2024?"),
        ("de", "Ab wann bekomme ich Urlaub?"),
        ("de", "Wann ist Zahltag?"),
        ("fr", "À partir de quand puis-je prendre des congés ?"),
        ("ko", "연차는 언제부터 쓸 수 있나요?"),
        ("zh", "什么时候发工资？"),
        ("ja", "休暇はいつから取れますか？"),
        ("pl", "Od kiedy mogę wziąć urlop?"),
    ],
)
def test_a_day_that_a_rule_names_is_no_first_day(language: str, text: str) -> None:
    assert without_since(text, language) is None
