"""Months and years that questions say in words, or from today, in the thirteen languages of the interface."""

from __future__ import annotations

from datetime import date

import pytest

from rag.retrieval.as_of import NamedDay, future_day_in, past_day_in
from rag.text.dates import DateRange, dates_in, years_in
from rag.text.relative_days import write_out_dates

TODAY = date(2026, 11, 27)


@pytest.mark.parametrize(
    ("language", "text", "day", "rest"),
    [
        ("en", "What was the limit last month?", "2026-10-31", "What was the limit?"),
        ("en", "What was the limit in Sept. 2025?", "2025-09-30", "What was the limit?"),
        ("en", "What was the limit last year?", "2025-12-31", "What was the limit?"),
        ("en", "What was the limit in the previous year?", "2025-12-31", "What was the limit?"),
        ("en", "What was the limit in June of last year?", "2025-06-30", "What was the limit?"),
        ("de", "Wie hoch war die Grenze letztes Jahr?", "2025-12-31", "Wie hoch war die Grenze?"),
        ("de", "Wie hoch war die Grenze im vergangenen Jahr?", "2025-12-31", "Wie hoch war die Grenze?"),
        ("de", "Wie hoch war die Grenze voriges Jahr?", "2025-12-31", "Wie hoch war die Grenze?"),
        ("de", "Wie hoch war die Grenze letzten Monat?", "2026-10-31", "Wie hoch war die Grenze?"),
        ("de", "Wie hoch war die Grenze im Jänner 2025?", "2025-01-31", "Wie hoch war die Grenze?"),
        ("de", "Wie hoch war die Grenze im Juni letzten Jahres?", "2025-06-30", "Wie hoch war die Grenze?"),
        ("nl", "Wat was de limiet vorig jaar?", "2025-12-31", "Wat was de limiet?"),
        ("nl", "Wat was de limiet afgelopen jaar?", "2025-12-31", "Wat was de limiet?"),
        ("nl", "Wat was de limiet vorige maand?", "2026-10-31", "Wat was de limiet?"),
        ("nl", "Wat was de limiet in juni vorig jaar?", "2025-06-30", "Wat was de limiet?"),
        ("fr", "Quelle était la limite l'année dernière ?", "2025-12-31", "Quelle était la limite?"),
        ("fr", "Quelle était la limite l'an dernier ?", "2025-12-31", "Quelle était la limite?"),
        ("fr", "Quelle était la limite le mois dernier ?", "2026-10-31", "Quelle était la limite?"),
        ("fr", "Quelle était la limite en juin de l'an passé ?", "2025-06-30", "Quelle était la limite?"),
        ("es", "¿Cuál era el límite el año pasado?", "2025-12-31", "¿Cuál era el límite?"),
        ("es", "¿Cuál era el límite el mes pasado?", "2026-10-31", "¿Cuál era el límite?"),
        ("es", "¿Cuál era el límite en setiembre de 2025?", "2025-09-30", "¿Cuál era el límite?"),
        ("es", "¿Cuál era el límite en junio del año pasado?", "2025-06-30", "¿Cuál era el límite?"),
        ("it", "Qual era il limite l'anno scorso?", "2025-12-31", "Qual era il limite?"),
        ("it", "Qual era il limite il mese scorso?", "2026-10-31", "Qual era il limite?"),
        ("it", "Qual era il limite nello scorso anno?", "2025-12-31", "Qual era il limite?"),
        ("it", "Qual era il limite a giugno dell'anno scorso?", "2025-06-30", "Qual era il limite?"),
        ("pt", "Qual era o limite no ano passado?", "2025-12-31", "Qual era o limite?"),
        ("pt", "Qual era o limite no mês passado?", "2026-10-31", "Qual era o limite?"),
        ("pt", "Qual era o limite em junho do ano passado?", "2025-06-30", "Qual era o limite?"),
        ("pl", "Jaki był limit w zeszłym roku?", "2025-12-31", "Jaki był limit?"),
        ("pl", "Jaki był limit w ubiegłym roku?", "2025-12-31", "Jaki był limit?"),
        ("pl", "Jaki był limit w zeszłym miesiącu?", "2026-10-31", "Jaki był limit?"),
        ("pl", "Jaki był limit w czerwcu zeszłego roku?", "2025-06-30", "Jaki był limit?"),
        ("tr", "Geçen yıl otel limiti neydi?", "2025-12-31", "otel limiti neydi?"),
        ("tr", "Geçen sene otel limiti neydi?", "2025-12-31", "otel limiti neydi?"),
        ("tr", "Geçen ay otel limiti neydi?", "2026-10-31", "otel limiti neydi?"),
        ("tr", "Geçen yıl haziran ayında otel limiti neydi?", "2025-06-30", "otel limiti neydi?"),
        ("ko", "작년 호텔 한도는 얼마였나요?", "2025-12-31", "호텔 한도는 얼마였나요?"),
        ("ko", "지난달 호텔 한도는 얼마였나요?", "2026-10-31", "호텔 한도는 얼마였나요?"),
        ("ko", "작년 6월 호텔 한도는 얼마였나요?", "2025-06-30", "호텔 한도는 얼마였나요?"),
        ("ko", "작년 유월에 호텔 한도는 얼마였나요?", "2025-06-30", "호텔 한도는 얼마였나요?"),
        ("ja", "昨年のホテルの上限はいくらでしたか？", "2025-12-31", "ホテルの上限はいくらでしたか？"),
        ("ja", "先月の上限はいくらでしたか？", "2026-10-31", "上限はいくらでしたか？"),
        ("ja", "２０２５年６月の上限はいくらでしたか？", "2025-06-30", "上限はいくらでしたか？"),
        ("ja", "二〇二五年六月の上限はいくらでしたか？", "2025-06-30", "上限はいくらでしたか？"),
        ("ja", "昨年6月の上限はいくらでしたか？", "2025-06-30", "上限はいくらでしたか？"),
        ("zh", "去年酒店限额是多少？", "2025-12-31", "酒店限额是多少？"),
        ("zh", "上个月酒店限额是多少？", "2026-10-31", "酒店限额是多少？"),
        ("zh", "二〇二五年六月的酒店限额是多少？", "2025-06-30", "酒店限额是多少？"),
        ("zh", "2025年六月酒店限额是多少？", "2025-06-30", "酒店限额是多少？"),
        ("zh", "去年六月酒店限额是多少？", "2025-06-30", "酒店限额是多少？"),
        ("zh", "二零二五年十二月一日的酒店限额是多少？", "2025-12-01", "酒店限额是多少？"),
        ("zh", "去年的六月酒店限额是多少？", "2025-06-30", "酒店限额是多少？"),
        ("ar", "كم كان حد الفندق العام الماضي؟", "2025-12-31", "كم كان حد الفندق؟"),
        ("ar", "كم كان حد الفندق السنة الماضية؟", "2025-12-31", "كم كان حد الفندق؟"),
        ("ar", "كم كان حد الفندق الشهر الماضي؟", "2026-10-31", "كم كان حد الفندق؟"),
        ("ar", "كم كان حد الفندق في حزيران 2025؟", "2025-06-30", "كم كان حد الفندق؟"),
        ("ar", "كم كان حد الفندق في يونيو ٢٠٢٥؟", "2025-06-30", "كم كان حد الفندق؟"),
        ("ar", "كم كان حد الفندق في يونيو من العام الماضي؟", "2025-06-30", "كم كان حد الفندق؟"),
    ],
)
def test_the_past_is_read_in_words(language: str, text: str, day: str, rest: str) -> None:
    assert past_day_in(text, language, TODAY) == NamedDay(date.fromisoformat(day), rest)


@pytest.mark.parametrize(
    ("language", "text", "day", "rest"),
    [
        ("en", "What is the limit in January next year?", "2027-01-31", "What is the limit?"),
        ("en", "What is the limit next month?", "2026-12-31", "What is the limit?"),
        ("de", "Wie hoch ist die Grenze im Januar nächsten Jahres?", "2027-01-31", "Wie hoch ist die Grenze?"),
        ("de", "Wie hoch ist die Grenze ab Jänner?", "2027-01-31", "Wie hoch ist die Grenze?"),
        ("de", "Wie hoch ist die Grenze im nächsten Jahr?", "2027-12-31", "Wie hoch ist die Grenze?"),
        ("de", "Wie hoch ist die Grenze nächsten Monat?", "2026-12-31", "Wie hoch ist die Grenze?"),
        ("nl", "Wat is de limiet komend jaar?", "2027-12-31", "Wat is de limiet?"),
        ("nl", "Wat is de limiet in januari volgend jaar?", "2027-01-31", "Wat is de limiet?"),
        ("nl", "Wat is de limiet volgende maand?", "2026-12-31", "Wat is de limiet?"),
        ("fr", "Quelle est la limite en janvier de l'année prochaine ?", "2027-01-31", "Quelle est la limite?"),
        ("fr", "Quelle sera la limite le mois prochain ?", "2026-12-31", "Quelle sera la limite?"),
        ("es", "¿Cuál es el límite en enero del próximo año?", "2027-01-31", "¿Cuál es el límite?"),
        ("es", "¿Cuál es el límite el año próximo?", "2027-12-31", "¿Cuál es el límite?"),
        ("es", "¿Cuál es el límite el mes que viene?", "2026-12-31", "¿Cuál es el límite?"),
        ("it", "Qual è il limite a gennaio dell'anno prossimo?", "2027-01-31", "Qual è il limite?"),
        ("it", "Qual è il limite il prossimo anno?", "2027-12-31", "Qual è il limite?"),
        ("it", "Qual è il limite il mese prossimo?", "2026-12-31", "Qual è il limite?"),
        ("pt", "Qual é o limite no próximo ano?", "2027-12-31", "Qual é o limite?"),
        ("pt", "Qual é o limite em janeiro do próximo ano?", "2027-01-31", "Qual é o limite?"),
        ("pt", "Qual é o limite no mês que vem?", "2026-12-31", "Qual é o limite?"),
        ("pl", "Jaki jest limit w styczniu przyszłego roku?", "2027-01-31", "Jaki jest limit?"),
        ("pl", "Jaki jest limit w następnym roku?", "2027-12-31", "Jaki jest limit?"),
        ("pl", "Jaki jest limit w przyszłym miesiącu?", "2026-12-31", "Jaki jest limit?"),
        ("tr", "Gelecek sene otel limiti nedir?", "2027-12-31", "otel limiti nedir?"),
        ("tr", "Önümüzdeki yıl otel limiti nedir?", "2027-12-31", "otel limiti nedir?"),
        ("tr", "Gelecek yıl ocak ayında otel limiti nedir?", "2027-01-31", "otel limiti nedir?"),
        ("tr", "Gelecek ay otel limiti nedir?", "2026-12-31", "otel limiti nedir?"),
        ("ko", "내년 1월 호텔 한도는 얼마인가요?", "2027-01-31", "호텔 한도는 얼마인가요?"),
        ("ko", "다음 해 한도는 얼마인가요?", "2027-12-31", "한도는 얼마인가요?"),
        ("ko", "일월부터 한도는 얼마인가요?", "2027-01-31", "한도는 얼마인가요?"),
        ("ko", "다음 달부터 한도는 얼마인가요?", "2026-12-31", "한도는 얼마인가요?"),
        ("ja", "来年1月からの上限は？", "2027-01-31", "上限は？"),
        ("ja", "来年一月からの上限はいくらですか？", "2027-01-31", "上限はいくらですか？"),
        ("ja", "一月から上限はいくらですか？", "2027-01-31", "上限はいくらですか？"),
        ("ja", "十二月から上限はいくらですか？", "2026-12-31", "上限はいくらですか？"),
        ("ja", "来月の上限はいくらですか？", "2026-12-31", "上限はいくらですか？"),
        ("zh", "明年一月酒店限额是多少？", "2027-01-31", "酒店限额是多少？"),
        ("zh", "一月起酒店限额是多少？", "2027-01-31", "酒店限额是多少？"),
        ("zh", "十二月的酒店限额是多少？", "2026-12-31", "酒店限额是多少？"),
        ("zh", "二〇二七年酒店限额是多少？", "2027-12-31", "酒店限额是多少？"),
        ("zh", "明年1月起限额是多少？", "2027-01-31", "限额是多少？"),
        ("zh", "下月限额是多少？", "2026-12-31", "限额是多少？"),
        ("ar", "كم حد الفندق من كانون الثاني؟", "2027-01-31", "كم حد الفندق؟"),
        ("ar", "كم حد الفندق في يناير من العام القادم؟", "2027-01-31", "كم حد الفندق؟"),
        ("ar", "كم حد الفندق العام المقبل؟", "2027-12-31", "كم حد الفندق؟"),
        ("ar", "كم حد الفندق الشهر القادم؟", "2026-12-31", "كم حد الفندق؟"),
    ],
)
def test_what_is_to_come_is_read_in_words(language: str, text: str, day: str, rest: str) -> None:
    assert future_day_in(text, language, TODAY) == NamedDay(date.fromisoformat(day), rest)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "试用期是三个月吗？"),
        ("zh", "每日三餐的补贴是多少？"),
        ("ja", "一昨年の上限はいくらでしたか？"),
        ("ja", "再来年の上限はいくらですか？"),
        ("ko", "재작년 한도는 얼마였나요?"),
        ("ko", "이월된 휴가는 며칠인가요?"),
        ("en", "May I carry days over to the following year?"),
        ("de", "Was war im vorletzten Jahr?"),
    ],
)
def test_other_words_stay_as_they_are(language: str, text: str) -> None:
    assert write_out_dates(text, language, TODAY) == text


def test_a_filter_reads_chinese_numerals_and_other_digits() -> None:
    assert dates_in("二〇二四年六月以来的通知", TODAY) == DateRange(date(2024, 6, 1), None)
    assert (years_in("二〇二四年的通知", TODAY), years_in("２０２４年の通知", TODAY)) == ((2024,), (2024,))
