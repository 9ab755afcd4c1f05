"""Words into index terms, in twelve languages."""

from __future__ import annotations

import threading

import pytest

from rag.text.analysers import STOPWORDS, analyse


@pytest.mark.parametrize("text", ["", "   ", "?!", "—", "the of and", "\x00", "🙂"])
def test_a_text_without_topic_has_no_terms(text: str) -> None:
    assert analyse(text, "en") == []


@pytest.mark.parametrize(
    ("written", "asked", "language"),
    [
        ("see § 4.2 below", "§4.2", "en"),
        ("see § 4.2 below", "4.2", "en"),
        ("the 401(k) plan", "401k", "en"),
        ("퇴직금은 90일 이내에", "90일", "ko"),
        ("퇴직금은 90일 이내에", "90", "ko"),
        ("90일은 유급입니다", "90일", "ko"),
        ("in FY25-26", "fy25-26", "en"),
        ("up to $1,500.00 a year", "1500.00", "en"),
        ("on 2026-01-15", "2026-01-15", "en"),
        ("form B2B", "b2b", "en"),
        ("COVID-19", "covid", "en"),
        ("９０日", "90", "ja"),
    ],
)
def test_identifiers_numbers_and_dates_survive(written: str, asked: str, language: str) -> None:
    assert set(analyse(asked, language)) & set(analyse(written, language))
    assert analyse(asked, language)[0] in analyse(written, language)


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("policies", "policy", "en"),
        ("co-pay", "copay", "en"),
        ("e-mail", "email", "en"),
        ("vakantiedagen", "vakantiedag", "nl"),
        ("uren", "uur", "nl"),
        ("Urlaubstage", "Urlaubstag", "de"),
        ("Mutterschutzfristen", "Mutterschutzfrist", "de"),
        ("congés", "conge", "fr"),
        ("l'assurance", "assurances", "fr"),
        ("vacaciones", "vacación", "es"),
        ("permessi", "permesso", "it"),
        ("férias", "ferias", "pt"),
        ("urlopy", "urlop", "pl"),
        ("maaşlar", "maaş", "tr"),
        ("İZNİ", "izin", "tr"),
        ("İzin", "iznim", "tr"),
        ("gündür", "gün", "tr"),
        ("hakkımız", "hak", "tr"),
        ("İşyeri", "işyeri", "tr"),
        ("İstanbul", "istanbul", "en"),
        ("휴가를", "휴가는", "ko"),
        ("육아휴직을", "육아휴직", "ko"),
        ("HR팀에게", "HR팀", "ko"),
        ("الإجازة", "اجازة", "ar"),
        ("年假天数", "年假", "zh"),
        ("有給休暇は", "有給休暇", "ja"),
    ],
)
def test_forms_of_one_word_share_a_term(one: str, other: str, language: str) -> None:
    assert set(analyse(one, language)) & set(analyse(other, language))


def test_a_korean_word_is_found_by_a_part_of_it() -> None:
    assert set(analyse("휴직", "ko")) <= set(analyse("육아휴직을 신청", "ko"))


def test_a_short_korean_noun_keeps_what_looks_like_a_particle() -> None:
    assert analyse("회의", "ko") == ["회의"]


def test_decomposed_hangul_is_the_same_as_composed() -> None:
    assert analyse("\u1112\u1172\u1100\u1161", "ko") == analyse("휴가", "ko")


def test_a_region_does_not_change_the_language() -> None:
    assert analyse("policies", "en-GB") == analyse("policies", "en")


def test_an_unknown_language_leaves_words_whole() -> None:
    assert analyse("Policies", "xx") == ["policies"]


def test_english_words_in_a_korean_text_are_stemmed_as_english() -> None:
    assert analyse("policies", "ko") == analyse("policies", "en")


def test_threads_do_not_disturb_each_other() -> None:
    words = [f"policies{'s' * (i % 7)} benefits" for i in range(300)]
    alone = [analyse(word, "en") for word in words]
    results: list[list[list[str]]] = []
    threads = [threading.Thread(target=lambda: results.append([analyse(w, "en") for w in words])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result == alone for result in results)


def test_no_topic_of_a_handbook_is_a_stopword() -> None:
    topics = {
        "leave",
        "holiday",
        "pay",
        "verlof",
        "loon",
        "urlaub",
        "lohn",
        "congé",
        "permiso",
        "permesso",
        "휴가",
        "급여",
    }
    assert not any(topics & words for words in STOPWORDS.values())
