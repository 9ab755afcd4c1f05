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


@pytest.mark.parametrize(
    ("question", "leave", "other"),
    [
        (
            "How many days holiday do I get?",
            "All team members have 38 days of leave.",
            "For 1 day – you must give at least 3 days notice.",
        ),
        ("How many weeks of leave are there?", "There are 5 weeks.", "You need to give 4 weeks' notice."),
        (
            "How many weeks of leave are there?",
            "There are 5 weeks.",
            "You must have worked here for at least 26 weeks.",
        ),
        (
            "How many weeks of leave are there?",
            "There are 5 weeks.",
            "You qualify with 26 weeks of continuous service.",
        ),
        ("Hoeveel weken verlof krijg ik?", "Je krijgt vijf weken.", "Dit geldt na 26 weken dienstverband."),
        (
            "Wie viele Wochen Urlaub habe ich?",
            "Es sind sechs Wochen.",
            "Voraussetzung: 26 Wochen Betriebszugehörigkeit.",
        ),
        ("Combien de mois de congé ai-je ?", "Trois mois.", "Il faut 12 mois d'ancienneté."),
        ("¿Cuántos meses de permiso tengo?", "Son tres meses.", "Hace falta 12 meses de antigüedad."),
        ("Quanti mesi di congedo ho?", "Tre mesi.", "Servono 12 mesi di anzianità."),
        ("Quantos meses de licença tenho?", "Três meses.", "São precisos 12 meses de antiguidade."),
    ],
)
def test_notice_and_required_service_are_no_length_of_leave(question: str, leave: str, other: str) -> None:
    kind = requested_type(question)
    assert kind is not None
    assert kind.is_in(leave, question)
    assert not kind.is_in(other, question)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How long must I have worked here to get it?", "You must have worked here for at least 26 weeks."),
        ("How much notice do I have to give?", "You must give at least 3 weeks notice."),
        ("How long is the notice period?", "The notice period is 3 months."),
        ("Wie lange ist die Kündigungsfrist?", "Die Kündigungsfrist beträgt 3 Monate."),
    ],
)
def test_notice_and_service_answer_who_asks_for_them(question: str, text: str) -> None:
    kind = requested_type(question)
    assert kind is not None
    assert kind.is_in(text, question)


def test_a_case_at_the_start_of_an_item_is_no_answer_and_an_amount_after_it_is() -> None:
    kind = requested_type("How many days of leave do I get?")
    assert kind is not None
    assert not kind.is_in("**For 2 days** – ask your manager.", "How many days of leave do I get?")
    assert kind.is_in("**From the fifth year** – 28 days.", "How many days of leave do I get?")


@pytest.mark.parametrize(
    "text",
    [
        "We don't offer a bank of sick days.",
        "Sick leave is unlimited.",
        "There is no limit.",
        "Ziekteverlof is onbeperkt.",
        "Der Urlaub ist unbegrenzt.",
        "Les congés sont illimités.",
        "Las vacaciones son ilimitadas.",
        "Le ferie sono illimitate.",
        "As férias são ilimitadas.",
        "Urlop jest nieograniczony.",
        "İzin sınırsız.",
        "휴가는 무제한입니다.",
        "休暇は無制限です。",
        "假期不限。",
        "الإجازة غير محدودة.",
    ],
)
def test_no_limit_answers_how_many(text: str) -> None:
    kind = requested_type("How many sick days can I take?")
    assert kind is not None
    assert kind.is_in(text, "How many sick days can I take?")


@pytest.mark.parametrize(
    ("question", "tells", "other"),
    [
        (
            "Who do I tell when I'm ill?",
            "If you aren't feeling well, let your line manager know by 10.",
            "The People team will then close the sickness.",
        ),
        ("Who should I call when I am sick?", "On the first day, let your team know.", "Your manager supports you."),
        (
            "Bij wie moet ik me ziek melden?",
            "Meld je bij je leidinggevende.",
            "De leidinggevende tekent het formulier.",
        ),
        (
            "Bei wem melde ich mich krank?",
            "Informieren Sie Ihre Führungskraft.",
            "Die Führungskraft plant die Schichten.",
        ),
        ("Qui dois-je prévenir en cas de maladie ?", "Prévenez votre responsable.", "Le responsable signe la feuille."),
        ("¿A quién debo avisar?", "Avise a recursos humanos.", "Recursos humanos paga la nómina."),
        ("누구에게 알려야 하나요?", "팀장에게 알려 주십시오.", "팀장이 근무표를 만듭니다."),
        ("誰に連絡しますか", "上司に連絡してください。", "上司が予定を決めます。"),
    ],
)
def test_whom_to_tell_is_answered_by_a_sentence_which_says_to_tell(question: str, tells: str, other: str) -> None:
    kind = requested_type(question)
    assert kind is not None
    assert kind.is_in(tells, question)
    assert not kind.is_in(other, question)


def test_a_month_is_preferred_to_annual_when_the_question_asks_when() -> None:
    text = (
        "Following our annual pay review we update the pay table. "
        "We have an annual pay review in October, for as many people as we can."
    )
    assert "October" in bold_or_first("When is the annual pay review?", text, "en")
