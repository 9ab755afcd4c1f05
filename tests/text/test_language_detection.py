"""The language of a text, by its letters and words."""

from __future__ import annotations

import pytest

from rag.text.language_detection import detect_language, detect_language_heuristic

QUESTIONS = {
    "en": ["How many days off do I get?", "What does the dental plan cover?", "Who approves travel expenses?"],
    "nl": ["Hoeveel vakantiedagen heb ik?", "Wat is het beleid voor thuiswerken?", "Wie keurt mijn declaratie goed?"],
    "de": ["Wie viele Urlaubstage habe ich?", "Wer genehmigt Reisekosten?", "Was gilt bei Krankheit?"],
    "fr": ["Combien de jours de congé ai-je ?", "Qui approuve les frais ?", "Quelle est la politique de télétravail ?"],
    "es": ["¿Cuántos días de vacaciones tengo?", "¿Quién aprueba los gastos?", "Cuál es la política de teletrabajo"],
    "it": ["Quanti giorni di ferie ho?", "Chi approva le spese di viaggio?", "Qual è la politica sul telelavoro?"],
    "pt": ["Quantos dias de férias eu tenho?", "Quem aprova as despesas?", "Qual é a política de trabalho remoto?"],
    "pl": ["Ile dni urlopu mi przysługuje?", "Kto zatwierdza wydatki?", "Jaka jest polityka pracy zdalnej?"],
    "tr": ["Kaç gün izin hakkım var?", "Masrafları kim onaylıyor?", "Uzaktan çalışma politikası nedir?"],
    "ko": ["연차는 며칠인가요?", "재택근무 규정이 뭐예요?", "HR 담당자는 누구입니까?"],
    "ja": ["有給休暇は何日ですか?", "経費は誰が承認しますか?", "在宅勤務の規定は?"],
    "zh": ["我有多少天年假?", "谁批准差旅费用?", "在家办公的政策是什么?"],
    "ar": ["كم يوم إجازة لدي؟", "من يوافق على نفقات السفر؟", "ما هي سياسة العمل عن بعد؟"],
}


@pytest.mark.parametrize("text", ["", "  ", "12345", "???", "🙂"])
def test_a_text_without_words_has_no_language(text: str) -> None:
    assert detect_language_heuristic(text) == ""
    assert detect_language(text) == ""


@pytest.mark.parametrize(("language", "text"), [(code, text) for code, texts in QUESTIONS.items() for text in texts])
def test_the_language_of_a_question_is_recognised(language: str, text: str) -> None:
    assert detect_language(text) == language


def test_the_heuristic_alone_recognises_nearly_all() -> None:
    right = [detect_language_heuristic(text) == code for code, texts in QUESTIONS.items() for text in texts]
    assert sum(right) / len(right) >= 0.97


def test_a_foreign_name_does_not_change_the_language() -> None:
    assert detect_language("Microsoft Teams 회의는 어떻게 예약하나요?") == "ko"


#: A word or two, and questions as people mistype them: none of them tells its language to a detector.
LITTLE = {
    "en": ["thanks a lot", "thanks", "ok", "hello", "bonus", "overtime", "dress code", "contact", "pto", "Hi",
           "vacation", "waht is teh probaton periode", "hwo mnay vacaton dyas", "wat is teh notice peirod"],
    "nl": ["salaris", "bonus", "contact", "bedankt", "hallo", "verlof", "wta is de prbeertijd", "hoevel vakatie"],
    "de": ["danke", "Gehalt", "Urlaub", "hallo", "Bonus", "Kontakt", "wsa ist de prbezeit",
           "wei viel ulaub hab cih"],
    "fr": ["merci", "salaire", "bonjour", "contact", "prime", "congés", "qeul est la perode d'essai"],
    "es": ["gracias", "hola", "bono", "contacto", "sueldo", "vacaciones", "cuatnos dias de vacacioens tengo"],
    "it": ["grazie", "ciao", "ferie", "contatto", "bonus", "stipendio", "qaunti girni di ferie ho"],
    "pt": ["obrigado", "olá", "férias", "contato", "salário", "quantso dais de ferias tneho"],
    "pl": ["urlop", "cześć", "kontakt", "premia", "dzięki", "ile dni urolpu mam"],
    "tr": ["izin", "merhaba", "maaş", "bonus", "kaç gnü izin hakikm var"],
    "ko": ["감사합니다", "연차", "ok", "VPN"],
    "ja": ["休暇", "有給休暇", "賞与", "OK", "ありがとう"],
    "zh": ["年假", "休假", "谢谢", "OK"],
    "ar": ["شكرا", "إجازة", "OK"],
}  # fmt: skip


@pytest.mark.parametrize(("language", "text"), [(code, text) for code, texts in LITTLE.items() for text in texts])
def test_with_little_to_go_by_the_likely_language_counts(language: str, text: str) -> None:
    assert detect_language(text, [language]) == language
    assert detect_language(text, ["xx", "sv-SE", f"{language}-XX", "en"]) == language, "unknown ones are passed over"


@pytest.mark.parametrize("likely", ["en", "nl", "de", "fr", "ko", "ja"])
@pytest.mark.parametrize(("language", "text"), [(code, text) for code, texts in QUESTIONS.items() for text in texts])
def test_an_ordinary_question_is_in_its_own_language_whatever_is_likely(language: str, text: str, likely: str) -> None:
    assert detect_language(text, [likely]) == language


@pytest.mark.parametrize(
    ("text", "likely", "language"),
    [
        ("sick leave certificate please", ["ko", "en"], "en"),  # Koreans write names in these letters, not sentences
        ("연차", ["en"], "ko"),
        ("dzięki", ["en"], "pl"),  # English has no such letter
        ("你们公司什么时候放假", ["ja"], "zh"),
        ("Hoeveel leave heb ik? HR policy", ["en"], "nl"),
        ("", ["nl"], "nl"),
        ("12345", ["", "ko"], "ko"),
    ],
)
def test_letters_rule_a_likely_language_out(text: str, likely: list[str], language: str) -> None:
    assert detect_language(text, likely) == language
