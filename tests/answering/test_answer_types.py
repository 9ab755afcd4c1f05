"""The type of fact a question asks for, and the sentence that holds it; no database is needed."""

from __future__ import annotations

import pytest

from rag.answering.answer_types import requested_type
from rag.answering.extractive import best_quotes
from tests.answering.scripted import passage


def bold_or_first(question: str, text: str, language: str) -> str:
    quotes = best_quotes(question, [passage(1, text)], language=language, with_neighbours=True)
    assert quotes is not None
    return quotes.best[1]


@pytest.mark.parametrize(
    ("question", "days", "other"),
    [
        ("How many vacation days do I have?", "You have 25 paid days.", "The gross day pay is multiplied by 8 hours."),
        ("How many days of leave do I get?", "Staff get five days.", "There are 2 types of leave."),
        (
            "How many days of leave do I get?",
            "Leave — Days: 25; Notice: 3",
            "During the leave you get 70% of your pay.",
        ),
        ("How many days of leave do I get?", "Everybody has 25.", "A day costs €235.04."),
        ("How many days of leave do I get?", "There are 25 holidays.", "Two of us are off on Monday."),
        ("Hoeveel dagen krijg ik?", "Je krijgt twee werkdagen.", "Twee zijn vrij op maandag."),
        ("Wie viele Tage habe ich?", "Es sind zwei Urlaubstage.", "Zwei sind am Montag frei."),
        ("Wie viele Urlaubstage habe ich?", "Es gibt 30 Arbeitstage Urlaub.", "Der Tag kostet 235 €."),
        ("Hoeveel vakantiedagen heb ik?", "Je hebt 25 vakantiedagen.", "De dag heeft 8 uur."),
        ("Combien de jours de congé ai-je ?", "Vous avez 25 jours ouvrés.", "Il y a 2 types de congés."),
        ("¿Cuántos días de vacaciones tengo?", "Son 23 días laborables.", "Hay 2 tipos de permiso."),
        ("Quanti giorni di ferie ho?", "Sono 26 giorni.", "Il giorno costa 200 €."),
        ("Quantos dias de férias tenho?", "São 22 dias úteis.", "Há 2 tipos de licença."),
        ("Ile dni urlopu mam?", "Przysługuje 26 dni.", "Dzień ma 8 godzin."),
        ("Yıllık iznim kaç gün?", "Yılda 20 gün izin verilir.", "Bir mesai 8 saat sürer."),
    ],
)
def test_a_number_of_days_is_asked_for_and_found(question: str, days: str, other: str) -> None:
    kind = requested_type(question)
    assert kind is not None
    assert kind.is_in(days, question)
    assert not kind.is_in(other, question)


@pytest.mark.parametrize(
    "text",
    ["연차는 20일입니다.", "年次有給休暇は20日です。", "每年20天。", "20 يوم في السنة", "이틀까지 쓸 수 있습니다."],
)
def test_days_in_other_scripts_answer_an_english_question(text: str) -> None:
    kind = requested_type("How many days of leave do I get?")
    assert kind is not None
    assert kind.is_in(text, "How many days of leave do I get?")


def test_hours_are_told_from_days() -> None:
    question = "How many hours do I work a week?"
    kind = requested_type(question)
    assert kind is not None
    assert kind.is_in("Full-time work is 38.5 hours.", question)
    assert not kind.is_in("The week has 5 working days for everybody.", question)


def test_days_are_quoted_for_a_question_for_days() -> None:
    text = (
        "Multiply the pay by 8 hours for a vacation day of the year. "
        "Full-time staff have 25 days of vacation in addition to public holidays."
    )
    assert "25 days" in bold_or_first("How many vacation days do I have per year?", text, "en")


@pytest.mark.parametrize(
    ("question", "date", "other"),
    [
        ("When is the next family day?", "2027-07-03", "Family days are next to weekends, for 3 or 4 days."),
        ("When's the next office party?", "It is on 12 June.", "The office party is every year."),
        ("Wann ist der nächste Betriebsausflug?", "Er ist am 3.9.2027.", "Der Ausflug dauert 8 Stunden."),
        ("Wanneer is de volgende teamdag?", "Op vrijdag.", "De teamdag duurt 6 uur."),
        ("다음 워크숍은 언제예요?", "10월 3일입니다.", "워크숍은 2시간입니다."),
    ],
)
def test_the_next_occasion_is_a_date(question: str, date: str, other: str) -> None:
    kind = requested_type(question)
    assert kind is not None
    assert kind.name == "date"
    assert kind.is_in(date, question)
    assert not kind.is_in(other, question)


def test_a_list_of_dates_can_be_quoted() -> None:
    text = "Upcoming family days:\n\n- 2027-07-03\n- 2027-08-11\n"
    quotes = best_quotes("When is the next family day?", [passage(1, text)], language="en", with_neighbours=True)
    assert quotes is not None
    assert "2027-07-03" in quotes.text


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When must expense reports be filed?", "File expense reports in the same month."),
        ("Wann wird die Reise erstattet?", "Die Erstattung kommt im folgenden Monat."),
        ("Wanneer krijg ik het geld?", "Het komt in dezelfde of de volgende maand."),
        ("Quand suis-je remboursé ?", "Le remboursement arrive le mois même ou la même semaine."),
    ],
)
def test_the_same_or_the_following_month_is_a_time(question: str, text: str) -> None:
    kind = requested_type(question)
    assert kind is not None
    assert kind.is_in(text, question)
