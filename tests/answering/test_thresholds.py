"""The years, hours or age of a question, and the limit from which a rule holds; no database is needed."""

from __future__ import annotations

import pytest

from rag.answering.extractive import best_quotes
from rag.answering.thresholds import in_digits, is_reached, quantities_in
from tests.answering.scripted import passage


@pytest.mark.parametrize(
    ("language", "text", "question", "expected"),
    [
        ("en", "From the fifth year of service there are 28 days.", "How much leave do I get after 6 years?", True),
        ("en", "From the fifth year of service there are 28 days.", "leave in my twelfth year", True),
        ("en", "From the fifth year of service there are 28 days.", "How much leave do I get after two years?", False),
        ("en", "First class is for journeys of more than four hours.", "a train ride of five hours", True),
        ("en", "First class is for journeys of more than four hours.", "a train ride of 4 hours", None),
        ("en", "Staff under 18 years have a longer break.", "I'm 17, how long is my break?", True),
        ("en", "The rate is £5 an hour.", "What do I get after an hour?", None),
        ("en", "There are 26 days a year.", "How much leave do I get after 6 years?", None),
        ("de", "Ab 55 Jahren entfällt die Nachtschicht.", "ich bin 57, muss ich nachts arbeiten?", True),
        ("de", "Ab dem dritten Jahr sind es 29 Tage.", "im 4. Jahr", True),
        ("de", "Zum zehnjährigen Jubiläum gibt es 500 €.", "Was bekomme ich nach 10 Jahren?", True),
        ("de", "Zum 25-jährigen Jubiläum gibt es 500 €.", "Was bekomme ich nach 25 Jahren?", True),
        ("nl", "Na vijf jaar dienst krijg je twee dagen extra.", "ik werk hier 7 jaar", True),
        ("nl", "Vanaf het derde jaar krijg je een dag extra.", "in mijn tweede jaar", None),
        ("fr", "À partir de la cinquième année, 30 jours.", "après 6 ans", True),
        ("es", "Después de 5 años son 30 días.", "llevo 6 años", True),
        ("it", "Dopo 5 anni sono 30 giorni.", "lavoro qui da 6 anni", True),
        ("pt", "Depois de 5 anos são 30 dias.", "trabalho aqui há 6 anos", True),
        ("pl", "Po 10 latach pracy przysługuje 26 dni.", "pracuję 12 lat", True),
        ("tr", "5 yıl ve üzeri çalışanlar 20 gün izin alır.", "6 yıl çalıştım", True),
        ("ko", "만 35세 이상은 매년 받습니다.", "저는 40세인데 검진 받나요?", True),
        ("ko", "만 35세 이상은 매년 받습니다.", "저는 30세인데 검진 받나요?", False),
        ("ja", "勤続5年以上は20日です。", "勤続6年の場合は?", True),
        ("zh", "工作满5年以上的为20天。", "工作6年有几天?", True),
    ],
)
def test_a_limit_is_reached_or_missed(language: str, text: str, question: str, expected: bool | None) -> None:
    assert is_reached(text, language, question, language) is expected


def test_numbers_are_compared_across_languages() -> None:
    assert is_reached("Ab dem fünften Jahr sind es 30 Tage.", "de", "How much leave do I get after six years?", "en")


@pytest.mark.parametrize(
    ("language", "text", "written"),
    [
        ("en", "the twelfth year", "the 12 year"),
        ("de", "zum zehnjährigen Jubiläum", "zum 10 Jahr Jubiläum"),
        ("de", "nach sechsmonatiger Probezeit", "nach 6 Monat Probezeit"),
        ("nl", "in het vijfde jaar", "in het 5 jaar"),
        ("fr", "la cinquième année", "la 5 année"),
        ("ja", "五年", "五年"),
    ],
)
def test_numbers_in_words_become_digits(language: str, text: str, written: str) -> None:
    assert in_digits(text, language) == written


def test_an_age_needs_no_unit() -> None:
    assert quantities_in("I'm 57", "en") == {("year", 57.0)}
    assert not quantities_in("I am 10 minutes late, is room 57 free", "en") & {("year", 57.0), ("year", 10.0)}


@pytest.mark.parametrize(
    ("question", "language", "text", "bold"),
    [
        (
            "how much holiday do I get after 6 years",
            "en",
            "You have 26 days of annual leave a year. From the fifth year of service there are 28 days. Ask Rob.",
            "**You have 26 days of annual leave a year. From the fifth year of service there are 28 days.**",
        ),
        (
            "ich bin 57, muss ich nachts arbeiten?",
            "de",
            "Für Nachtarbeit gibt es 25 % Zuschlag. Ab 55 Jahren kann man sich von der Nachtschicht befreien lassen.",
            "Ab 55 Jahren kann man sich von der Nachtschicht befreien lassen.**",
        ),
    ],
)
def test_the_rule_from_the_reached_year_on_is_in_bold(question: str, language: str, text: str, bold: str) -> None:
    quotes = best_quotes(question, [passage(1, text)], language=language, with_neighbours=True)
    assert quotes is not None
    assert bold in quotes.text


def test_a_limit_that_is_missed_is_not_in_bold() -> None:
    text = "You have 26 days of annual leave a year. From the fifth year of service there are 28 days. Ask in Compass."
    quotes = best_quotes("how much holiday after 2 years", [passage(1, text)], language="en", with_neighbours=True)
    assert quotes is not None
    assert "**You have 26 days of annual leave a year.**" in quotes.text
