"""Whom and which period a rule is about, in all languages of the product; which row of a table a figure falls into."""

from __future__ import annotations

import math

import pytest

from rag.answering.applicability import (
    Range,
    compare_letters,
    compare_number,
    condition_of,
    grants,
    holds,
    is_for_another_group,
    is_for_another_period,
    is_for_another_stage,
    letters_in,
    number_in,
    range_in,
    says_whether,
    tells_how,
)
from rag.answering.extractive import best_quotes
from rag.answering.extractive.in_words import weigh_synonyms
from tests.answering.scripted import passage

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


@pytest.mark.parametrize(
    ("during", "after"),
    [
        ("one day a week during probation", "three days a week after the probation period"),
        ("while on probation", "once you complete your probation"),
        ("in der Probezeit", "nach der Probezeit"),
        ("tijdens de proeftijd", "na de proeftijd"),
        ("pendant la période d'essai", "après la période d'essai"),
        ("durante el período de prueba", "después del período de prueba"),
        ("durante il periodo di prova", "dopo il periodo di prova"),
        ("durante o período experimental", "após o período experimental"),
        ("w okresie próbnym", "po okresie próbnym"),
        ("deneme süresi boyunca", "deneme süresinden sonra"),
        ("수습기간 중", "수습기간 종료 후"),
        ("試用期間中", "試用期間終了後"),
        ("试用期内", "试用期满后"),
        ("خلال فترة التجربة", "بعد انتهاء فترة التجربة"),
    ],
)
def test_during_and_after_probation_are_told_apart(during: str, after: str) -> None:
    assert is_for_another_stage(after, during)
    assert is_for_another_stage(during, after)
    assert not is_for_another_stage(during, during)
    assert not is_for_another_stage(f"{during}, {after}", during)
    assert not is_for_another_stage("36", during)


def test_of_two_rules_the_one_for_probation_answers_a_question_about_probation() -> None:
    text = (
        "Everybody may work from home up to three days a week after the probation period. During probation it is one "
        "day a week. Apprentices agree on days with their trainer."
    )
    question = "How many days at home while on probation?"
    quotes = best_quotes(question, [passage(1, text)], language="en", with_neighbours=True)
    assert quotes is not None
    assert "**During probation it is one day a week.**" in quotes.text


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
    assert compare_letters(text, above, letters_in(question)) == about


def test_in_another_language_letters_alone_are_compared() -> None:
    asked = letters_in("Quelle est l'indemnité de la tranche B ?")
    assert compare_letters("Band B — Allowance: 1,900", "", asked) == "none"
    assert compare_letters("Band B — Allowance: 1,900", "", asked, any_word=True) == "asked"
    assert compare_letters("A — Allowance: 1,100", "", asked, any_word=True) == "another"


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
    assert compare_number(text, above, number_in(question)) == about


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Up to 2 years", Range(-math.inf, 2)),
        ("2 to 5 years", Range(2, 5)),
        ("5–10 years", Range(5, 10)),
        ("More than 10 years", Range(10, math.inf, has_low=False)),
        ("20 years or more", Range(20, math.inf)),
        ("Week 27 tot en met 52", Range(27, 52)),
        ("Meer dan 10 dagen", Range(10, math.inf, has_low=False)),
        ("unter 5 Jahre", Range(-math.inf, 5, has_high=False)),
        ("1년 미만", Range(-math.inf, 1, has_high=False)),
        ("1년 이상 3년 미만", Range(1, 3, has_high=False)),
        ("0.2% 이상", Range(0.2, math.inf)),
        ("13일째부터 60일까지", Range(13, 60)),
        ("3年未満", Range(-math.inf, 3, has_high=False)),
        ("Hotel, per night", None),
        ("Level 3", None),
        ("", None),
    ],
)
def test_the_range_of_a_row(text: str, wanted: Range | None) -> None:
    assert range_in(text) == wanted


@pytest.mark.parametrize(
    ("row", "figures", "held"),
    [
        ("Up to 2 years — Notice by you: 1 month", ["6"], False),
        ("5 to 10 years — Notice by you: 2 months", ["6"], True),
        ("1년 미만 — 연차 일수: 최대 11일", ["1"], False),
        ("1년 이상 3년 미만 — 연차 일수: 16일", ["1"], True),
        ("Hotel, per night — Limit: £125", ["6"], None),
        ("Up to 2 years — Notice by you: 1 month", [], None),
        ("Up to 2 years — Notice by you: 1 month", ["2.3.4"], None),
        (f"{'1' * 100_000} — Price: £1", ["1"], None),
        ("10 — Gift: £600", ["10"], True),
        ("15 — Gift: £900", ["10"], None),
    ],
)
def test_whether_the_range_of_a_row_holds_a_figure(row: str, figures: list[str], held: bool | None) -> None:
    assert holds(row, figures) is held


def test_the_row_that_holds_the_questions_figure_is_quoted_first() -> None:
    text = (
        "10.1 Notice\n"
        "Length of service | Notice by you | Notice by us\n"
        "Up to 2 years | 1 month | 1 month\n"
        "2 to 5 years | 1 month | 2 months\n"
        "5 to 10 years | 2 months | 3 months\n"
        "More than 10 years | 3 months | 4 months"
    )
    for years, row in ((1, "Up to 2 years"), (4, "2 to 5 years"), (6, "5 to 10 years"), (12, "More than 10 years")):
        quotes = best_quotes(f"What is my notice after {years} years of service?", [passage(1, text)], language="en")
        assert quotes is not None
        assert f"“{row} — " in quotes.text.splitlines()[0], quotes.text


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "What is the notice after six years?"),
        ("nl", "Wat is de opzegtermijn na zes jaar?"),
        ("de", "Wie lang ist die Kündigungsfrist nach sechs Jahren?"),
        ("fr", "Quel est le préavis après six ans ?"),
        ("it", "Quanto è il preavviso dopo sei anni?"),
        ("pl", "Ile trwa wypowiedzenie po sześciu latach?"),
        ("tr", "Altı yıldan sonra ihbar süresi ne kadar?"),
    ],
)
def test_years_in_words_find_their_row(language: str, question: str) -> None:
    text = (
        "Years | By you | By us\nUp to 2 years | 1 month | 3 weeks\n2 to 5 years | 2 months | 6 weeks\n"
        "5 to 10 years | 3 months | 9 weeks\n10 years or more | 4 months | 12 weeks"
    )
    quotes = best_quotes(question, [passage(1, text)], language=language)
    assert quotes is not None
    assert quotes.text == "Vacation: “5 to 10 years — By you: 3 months; By us: 9 weeks” [1]"


@pytest.mark.parametrize(
    "text",
    [
        "If you feel ill, work from home.",
        "Should a customer approach us, tell Sales.",
        "Wenn Sie krank sind, bleiben Sie zu Hause.",
        "Als je ziek bent, blijf je thuis.",
        "En cas de maladie, restez chez vous.",
        "Cuando estés enfermo, quédate en casa.",
        "Jeśli jesteś chory, zostań w domu.",
        "몸이 아픈 경우, 집에서 쉬십시오.",
        "病気の場合は、在宅で勤務できます。",
        "如果生病,请在家休息。",
    ],
)
def test_a_condition_is_found(text: str) -> None:
    assert condition_of(text)
    assert not condition_of("Everybody may work from home.")


def test_a_rule_without_condition_is_quoted_before_one_with_another_condition() -> None:
    text = (
        "If you feel well enough for the office but have a fever, please work from home. "
        "Everyone is free to work from home as long as they tell their colleagues."
    )
    quotes = best_quotes("Can I work from home?", [passage(1, text)], language="en")
    assert quotes is not None
    assert quotes.best[1].startswith("Everyone")


def test_a_condition_which_the_question_states_is_no_reason_against_a_rule() -> None:
    text = "If you lose your badge, call the reception at once. A badge is worn by everybody in the office."
    quotes = best_quotes("What if I lose my badge?", [passage(1, text)], language="en")
    assert quotes is not None
    assert quotes.best[1].startswith("If you lose")


def test_whether_something_is_allowed_is_answered_by_what_is_allowed() -> None:
    text = "The dog in the office logo is called Max. Dogs are allowed in the office on Fridays."
    quotes = best_quotes("Can I bring a dog into the office?", [passage(1, text)], language="en")
    assert quotes is not None
    assert "allowed" in quotes.best[1]
    assert not says_whether("Dogs are allowed.", "Where are dogs allowed?")


def test_an_announcement_is_not_the_answer() -> None:
    text = (
        "This is what an extra day of leave costs you: Take the hourly pay and multiply it. A day of leave costs £120."
    )
    quotes = best_quotes("Can I buy an extra day of leave?", [passage(1, text)], language="en")
    assert quotes is not None
    assert not quotes.best[1].endswith(":")


def test_a_synonym_of_two_words_weighs_as_much_as_the_word_it_replaces() -> None:
    weights = weigh_synonyms({"annual": 1.4, "leav": 1.2, "approv": 1.6}, {"vacat": 1.3, "approv": 1.6})
    assert weights["approv"] == 1.6
    assert weights["annual"] + weights["leav"] == pytest.approx(1.3)


@pytest.mark.parametrize(
    ("question", "instruction", "other"),
    [
        ("How do I get security clearance?", "Apply with the form.", "Security clearance is an important asset."),
        ("Hoe vraag ik verlof aan?", "Vul het formulier in.", "Verlof is belangrijk."),
        ("Wie beantrage ich Urlaub?", "Das Formular ausfüllen.", "Urlaub ist wichtig."),
        ("Comment demander un congé ?", "Remplissez le formulaire.", "Le congé est important."),
        ("¿Cómo pido vacaciones?", "Rellene el formulario.", "Las vacaciones son importantes."),
        ("Come chiedo le ferie?", "Compilare il modulo.", "Le ferie sono importanti."),
        ("Como peço férias?", "Preencha o formulário.", "As férias são importantes."),
        ("Jak dostać urlop?", "Złóż wniosek.", "Urlop jest ważny."),
        ("Nasıl izin alırım?", "Formu doldurun.", "İzin önemlidir."),
        ("휴가는 어떻게 쓰나요?", "신청서를 제출합니다.", "휴가는 중요합니다."),
        ("休暇はどうやって取りますか", "申請書を提出します。", "休暇は大切です。"),
        ("怎么请假?", "提交申请。", "休假很重要。"),
        ("كيف أحصل على إجازة؟", "املأ النموذج.", "الإجازة مهمة."),
    ],
)
def test_how_is_answered_by_what_to_do(question: str, instruction: str, other: str) -> None:
    assert tells_how(instruction, question)
    assert not tells_how(other, question)
    assert not tells_how(instruction, "When is payday?")


@pytest.mark.parametrize(
    ("question", "grant", "other"),
    [
        ("How many vacation days do I get?", "We offer 20 days of vacation.", "Vacation rolls over, up to 27 days."),
        ("Hoeveel dagen krijg ik?", "Je krijgt 25 dagen.", "Meer dan 27 dagen vervallen."),
        ("Wie viele Tage habe ich?", "Sie erhalten 30 Tage.", "Mehr als 27 Tage verfallen."),
        ("Combien de jours ai-je ?", "Vous avez droit à 25 jours.", "Au-delà de 27 jours, ils expirent."),
        ("¿Cuántos días tengo?", "Tienes derecho a 23 días.", "Más de 27 días caducan."),
        ("Quanti giorni ho?", "Hai diritto a 26 giorni.", "Oltre 27 giorni scadono."),
        ("Ile dni mam?", "Przysługuje 26 dni.", "Powyżej 27 dni przepada."),
        ("며칠 쓸 수 있나요?", "20일을 부여합니다.", "27일이 넘으면 소멸합니다."),
        ("我有多少天年假?", "员工享有20天。", "超过27天作废。"),
    ],
)
def test_how_many_is_answered_by_what_is_granted(question: str, grant: str, other: str) -> None:
    assert grants(grant, question)
    assert not grants(other, question)


def best_sentence(question: str, text: str) -> str:
    quotes = best_quotes(question, [passage(1, text)], language="en", with_neighbours=True)
    assert quotes is not None
    return quotes.best[1]


def test_what_is_is_answered_by_the_definition() -> None:
    text = (
        "Chalet time should be used to build skills and to grow the business. "
        "Chalet time is when people are not on client work."
    )
    assert "is when" in best_sentence("What is chalet time?", text)


def test_a_definition_in_a_contract_answers_no_other_question() -> None:
    text = "**Dealing** means any trade in company shares. You must not start dealing in company shares unasked."
    assert "unasked" in best_sentence("Can I start dealing in company shares?", text)
    assert "means" in best_sentence("What is dealing?", text)
