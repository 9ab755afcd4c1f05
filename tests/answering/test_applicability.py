"""Whom and which period a rule is about, in all languages of the product."""

from __future__ import annotations

import pytest

from rag.answering.applicability import (
    is_for_another_group,
    is_for_another_period,
    letter_named,
    letters_asked,
    number_asked,
    number_named,
)

ANY_GROUP = "How long is the daily rest?"


@pytest.mark.parametrize(
    "text",
    [
        "Young workers rest for twelve hours.",
        "De werkgever organiseert de arbeid zodanig, dat de jeugdige werknemer een rusttijd heeft van 12 uren.",
        "Jugendliche dürfen nicht mehr als acht Stunden täglich beschäftigt werden.",
        "Les jeunes travailleurs ont droit à un repos de douze heures.",
        "Los menores de 18 años descansan doce horas.",
        "I minorenni riposano dodici ore.",
        "Os menores de 18 anos descansam doze horas.",
        "Młodociany ma prawo do 14 godzin odpoczynku.",
        "Genç işçilerin dinlenme süresi on iki saattir.",
        "15세 이상 18세 미만인 사람의 근로시간은 1일에 7시간을 초과하지 못한다.",
        "使用者は、満十八才未満の年少者を深夜業に使用してはならない。",
        "用人单位不得安排未成年工从事矿山井下劳动。",
        "لا يجوز تشغيل الأحداث أكثر من ست ساعات.",
        "Part-time employees rest in proportion.",
        "Auszubildende haben nach der Berufsschule frei.",
        "Night workers rest for thirteen hours.",
    ],
)
def test_a_rule_for_a_group_that_nobody_asked_about_is_known(text: str) -> None:
    assert is_for_another_group(text, "", ANY_GROUP)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Young workers rest for twelve hours.", "My colleague is 16. How long must she rest?"),
        ("Auszubildende haben nach der Berufsschule frei.", "Habe ich in der Ausbildung nach der Schule frei?"),
        ("Night workers rest for thirteen hours.", "How long must I rest after working at night?"),
        ("Part-time employees rest in proportion.", "Do part-timers rest as long?"),
        ("단시간근로자의 휴식 시간은 비례한다.", "시간제 직원의 휴식 시간은?"),
        ("Everybody rests for eleven hours.", ANY_GROUP),
        (f"Everybody rests for {'at least ' * 10} eleven hours, young workers for twelve.", ANY_GROUP),
    ],
)
def test_a_rule_for_everybody_or_for_who_was_asked_about_is_none_of_these(text: str, question: str) -> None:
    assert not is_for_another_group(text, "", question)


def test_a_heading_names_the_group_of_what_is_below_it() -> None:
    assert is_for_another_group("The rest takes twelve hours.", "Young workers", ANY_GROUP)


@pytest.mark.parametrize(
    ("day", "week"),
    [
        ("How many hours per day?", "36 hours in any week"),
        ("Hoeveel uur per dag?", "36 uren in elke periode van 7 maal 24 uren"),
        ("Wie viele Stunden pro Tag?", "36 Stunden wöchentlich"),
        ("Combien d'heures par jour ?", "36 heures par semaine"),
        ("¿Cuántas horas al día?", "36 horas a la semana"),
        ("Quante ore al giorno?", "36 ore settimanali"),
        ("Quantas horas por dia?", "36 horas semanais"),
        ("Ile godzin dziennie?", "36 godzin tygodniowo"),
        ("Günde kaç saat?", "haftada 36 saat"),
        ("하루에 몇 시간인가요?", "1주에 36시간"),
        ("一日何時間ですか?", "週に36時間"),
        ("每天多少小时?", "每周36小时"),
        ("كم ساعة في اليوم؟", "36 ساعة في الأسبوع"),
    ],
)
def test_periods_are_told_apart(day: str, week: str) -> None:
    assert is_for_another_period(week, day)
    assert not is_for_another_period(day, day)
    assert not is_for_another_period(f"{day} {week}", day)
    assert not is_for_another_period(week, "How many hours?")
    assert not is_for_another_period("36", day)


def test_a_date_is_no_period() -> None:
    assert not is_for_another_period("1月1日に始まる。", "週に何時間ですか?")


@pytest.mark.parametrize(
    ("question", "above", "text", "about"),
    [
        ("What is the allowance of band B?", "", "Band B — Allowance: 1,900", "asked"),
        ("What is the allowance of band B?", "", "Band A — Allowance: 1,100", "another"),
        ("allowance of band b", "", "Band A — Allowance: 1,100", "another"),
        ("What is the allowance of band B?", "", "Allowance — Band A: 1,100; Band B: 1,900", "several"),
        ("What is the allowance of band B?", "Band Allowance", "A — Allowance: 1,100", "another"),
        ("What is the allowance of band B?", "Band Allowance", "B — Allowance: 1,900", "asked"),
        ("What is the allowance of band D?", "Band Allowance", "Allowance — A: 1,100; B: 1,900", "another"),
        ("What is the allowance of band B?", "", "Allowances are paid in May.", "none"),
        ("Does plan C cover glasses?", "Plan A", "It covers glasses.", "another"),
        ("What is plan A's price?", "", "Plan A costs £10.", "asked"),
        ("Wie hoch ist die Zulage in Stufe B?", "", "Stufen A: 100 Euro.", "another"),
        ("B 등급의 수당은 얼마인가요?", "", "A등급: 1,100원", "another"),
        ("B 등급의 수당은 얼마인가요?", "", "B등급: 1,900원", "asked"),
        ("プランBの料金は？", "", "プランAは無料です。", "another"),
        ("Can I get a plan?", "", "Plan A costs £10.", "none"),
        ("Do C++ developers get a licence?", "", "Schedule A applies to drivers.", "none"),
        ("Who am I?", "", "Am A.", "none"),
    ],
)
def test_of_names_that_differ_in_a_letter_only_the_one_asked_for_is_told(
    question: str, above: str, text: str, about: str
) -> None:
    assert letter_named(text, above, letters_asked(question)) == about


def test_in_another_language_letters_alone_are_compared() -> None:
    asked = letters_asked("Quelle est l'indemnité de la tranche B ?")
    assert letter_named("Band B — Allowance: 1,900", "", asked) == "none"
    assert letter_named("Band B — Allowance: 1,900", "", asked, any_word=True) == "asked"
    assert letter_named("A — Allowance: 1,100", "", asked, any_word=True) == "another"


@pytest.mark.parametrize(
    ("question", "above", "text", "about"),
    [
        ("What is the rent in Town 23?", "", "Town 23 — Rent: 123", "asked"),
        ("What is the rent in Town 23?", "", "Town 3 — Rent: 103", "another"),
        ("rent town 3", "", "Town 23 — Rent: 123", "another"),
        ("What does zone 5 cost?", "", "Zone 2 covers the suburbs.", "another"),
        ("What does zone 5 cost?", "", "The ticket costs 45 euro.", "none"),
        ("What does zone 5 cost?", "", "Zones 4 to 6 cost 60 euro.", "asked"),
        ("What does zone 5 cost?", "", "Zone 4 and above cost 60 euro.", "none"),
        ("What does zone 5 cost?", "", "Price — Zone 4: 50; Zone 5: 60", "several"),
        ("What is the pay at level 15?", "Level Pay", "1 — Pay: 2150", "another"),
        ("What is the pay at level 15?", "Level Pay", "15 — Pay: 2150", "asked"),
        ("What is the pay at level 15?", "Level Pay", "12–18 — Pay: 2150", "asked"),
        ("What is the pay at level 15?", "Level Pay", "Pay — 1: 2150; 2: 2250", "another"),
        ("Wie hoch ist der Lohn in Stufe 4?", "", "Stufe 5: 3.100 Euro", "another"),
        ("Wie hoch ist der Lohn in Stufe 4?", "", "Die Stufen 3 bis 5 erhalten 3.100 Euro.", "asked"),
        ("3급의 수당은 얼마인가요?", "", "4급: 1,100원", "another"),
        ("3급의 수당은 얼마인가요?", "", "3급: 1,900원", "asked"),
        ("等級3の手当は？", "", "4級：1万円", "none"),
        ("5級の手当は？", "", "4級：1万円", "another"),
        # Quantities, dates, ages and places in a text are no names.
        ("Do I get leave after 2 years?", "", "After 5 years you get 30 days.", "none"),
        ("Is there a bonus of 500 euro?", "", "A bonus of 300 euro is paid.", "none"),
        ("What is paid on day 3?", "", "From day 4 on, sick pay is paid.", "none"),
        ("What changed in May 2026?", "", "In May 2025 nothing changed.", "none"),
        ("May I retire at age 60?", "", "At age 67 you retire.", "none"),
        ("What does article 7 say?", "", "Article 8 is void.", "none"),
        ("Do level 3 and zone 4 pay?", "", "Zone 5 pays.", "none"),
    ],
)
def test_of_names_that_differ_in_a_number_only_the_one_asked_for_is_told(
    question: str, above: str, text: str, about: str
) -> None:
    assert number_named(text, above, number_asked(question)) == about
