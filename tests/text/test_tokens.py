"""Estimates stay near what tiktoken counted once; the counts are written down here, for its files are not."""

from __future__ import annotations

import time

import pytest

from rag.text.tokens import estimate_tokens

TEXTS = {
    "en": (
        "Employees accrue paid time off from their first day of work. Full-time staff receive 25 days of "
        "vacation each calendar year, part-time staff in proportion to their hours. Up to five unused days "
        "may be carried over until 31 March; after that date they lapse. Requests are made in the leave "
        "system at least two weeks ahead, and managers answer within three working days. Sick leave is not "
        "deducted from vacation.",
        83,
        84,
    ),
    "nl": (
        "Medewerkers bouwen vanaf hun eerste werkdag verlof op. Wie voltijds werkt, krijgt 25 vakantiedagen "
        "per kalenderjaar; wie in deeltijd werkt, naar verhouding. Vijf ongebruikte dagen mogen tot en met 31 "
        "maart worden meegenomen.",
        52,
        75,
    ),
    "de": (
        "Beschäftigte erwerben ab dem ersten Arbeitstag Anspruch auf Urlaub. Vollzeitkräfte erhalten 25 "
        "Urlaubstage im Kalenderjahr, Teilzeitkräfte anteilig. Fünf nicht genommene Tage dürfen bis zum 31. "
        "März übertragen werden.",
        49,
        66,
    ),
    "ko": (
        "직원은 첫 근무일부터 유급휴가를 받을 수 있습니다. 전일제 직원은 매년 25일의 연차휴가를 받으며, 시간제 "
        "직원은 근무 시간에 비례하여 받습니다. 사용하지 않은 휴가는 최대 "
        "5일까지 3월 31일까지 이월할 수 있습니다.",
        70,
        114,
    ),
    "ja": (
        "社員は初出勤日から有給休暇を取得できます。フルタイムの社員には年に25日の休暇が与えられ、パートタイ"
        "ムの社員には勤務時間に応じて与えられます。未使用の休暇は5日まで翌年3月31日まで繰り越せます。",
        76,
        108,
    ),
    "zh": (
        "员工自第一个工作日起享有带薪休假。全职员工每年有25天年假，兼职员工按工作时间比例计算。最多五天未使"
        "用的年假可以延至次年3月31日，逾期作废。",
        56,
        78,
    ),
    "ar": (
        "يستحق الموظف إجازة مدفوعة الأجر من أول يوم عمل. يحصل الموظف بدوام كامل على 25 يو"
        "ما في السنة، والموظف "
        "بدوام جزئي بحسب ساعات عمله. ويجوز ترحيل خمسة أيام حتى 31 مارس.",
        58,
        115,
    ),
}


def test_nothing_has_no_tokens_and_anything_has_one() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens(" ") == 1
    assert estimate_tokens("a") == 1


@pytest.mark.parametrize("language", TEXTS)
def test_estimates_are_near_the_count(language: str) -> None:
    text, chat, embedding = TEXTS[language]
    tolerance = 0.1 if language == "en" else 0.25
    assert estimate_tokens(text) == pytest.approx(chat, rel=tolerance)
    assert estimate_tokens(text, model="text-embedding-3-small") == pytest.approx(embedding, rel=tolerance)


def test_text_without_words_is_not_underestimated() -> None:
    assert estimate_tokens("qZ8" * 2000) > 2000


def test_the_time_to_estimate_a_document_grows_no_faster_than_its_length() -> None:
    def least(sentences: int) -> float:
        text = "The employee handbook describes what the company offers and expects. " * sentences
        taken = []
        for _ in range(3):
            started = time.thread_time()
            estimate_tokens(text)
            taken.append(time.thread_time() - started)
        return min(taken)

    assert least(10_000) < 3 * 10 * least(1000)
