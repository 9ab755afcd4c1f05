"""What is taken for small talk and for a question about whole documents, and above all what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag.answering.routes.recognise import ROUTES, Recognised, is_yes, may_be_meant, recognise
from rag.answering.routes.small_talk import say, small_talk

LANGUAGES = ("en", "nl", "de", "fr", "es", "it", "pt", "pl", "tr", "ko", "ja", "zh", "ar")
EVERYDAY = (Path(__file__).parents[2] / "benchmarks" / "everyday_questions.txt").read_text("utf-8").splitlines()
#: Greeting, thanks, who, what, insult and poem in each language.
SMALL_TALK = {
    "en": ("Hi!", "Thanks a lot 🙏", "Who are you?", "What can you do?", "You are stupid", "Write me a poem", "Bye!"),
    "nl": ("Hoi!", "Dank je wel", "Wie ben je?", "Wat kun je?", "Je bent dom", "Schrijf een gedicht", "Tot ziens"),
    "de": ("Guten Morgen", "Vielen Dank!", "Wer bist du?", "Was kannst du?", "Du bist dumm", "Schreib mir ein Gedicht"),
    "fr": ("Bonjour", "Merci beaucoup", "Qui es-tu ?", "Que peux-tu faire ?", "Tu es nul", "Écris-moi un poème"),
    "es": ("¡Hola!", "Muchas gracias", "¿Quién eres?", "¿Qué puedes hacer?", "Eres tonto", "Escríbeme un poema"),
    "it": ("Buongiorno", "Grazie mille", "Chi sei?", "Cosa puoi fare?", "Sei stupido", "Scrivimi una poesia", "Ciao"),
    "pt": ("Olá", "Obrigada!", "Quem é você?", "O que você pode fazer?", "Você é burro", "Escreva um poema"),
    "pl": ("Cześć", "Dziękuję bardzo", "Kim jesteś?", "Co potrafisz?", "Jesteś głupi", "Napisz mi wiersz"),
    "tr": (
        "Merhaba",
        "İyi akşamlar!",
        "Teşekkür ederim",
        "Hoşça kalın",
        "Sen kimsin?",
        "Neler yapabilirsin?",
        "Çok aptalsın",
        "Bana bir şiir yaz",
        "Deniz hakkında kısa bir şiir yazar mısın?",
    ),
    "ko": ("안녕하세요", "고마워요!", "너 누구야?", "뭘 할 수 있어?", "바보야", "시 한 편 써 줘", "안녕히 계세요"),
    "ja": ("こんにちは", "ありがとうございます", "あなたは誰ですか？", "何ができますか？", "ばか", "詩を書いて"),
    "zh": ("你好", "谢谢你", "你是谁？", "你能做什么？", "你真笨", "给我写一首诗", "再见"),
    "ar": ("مرحبا", "شكرا جزيلا", "من أنت؟", "ماذا يمكنك أن تفعل؟", "أنت غبي", "اكتب لي قصيدة"),
}
ROUTED = {
    "en": (
        "Can you summarise the handbook?",
        "List all benefits",
        "Compare Standard and Plus",
        "What changed since 2025?",
    ),
    "nl": (
        "Vat het handboek samen",
        "Som alle regelingen op",
        "Vergelijk Standard en Plus",
        "Wat is er veranderd sinds 2025?",
    ),
    "de": (
        "Fasse das Handbuch zusammen",
        "Liste alle Leistungen auf",
        "Vergleiche Standard mit Plus",
        "Was hat sich seit 2025 geändert?",
    ),
    "fr": (
        "Résume le manuel",
        "Liste tous les avantages",
        "Compare Standard et Plus",
        "Qu’est-ce qui a changé depuis 2025 ?",
    ),
    "es": (
        "Resume el manual",
        "Enumera todos los beneficios",
        "Compara Standard y Plus",
        "¿Qué ha cambiado desde 2025?",
    ),
    "it": ("Riassumi il manuale", "Elenca tutti i benefici", "Confronta Standard e Plus", "Cosa è cambiato dal 2025?"),
    "pt": ("Resuma o manual", "Liste todos os benefícios", "Compare Standard e Plus", "O que mudou desde 2025?"),
    "pl": ("Streść podręcznik", "Wymień wszystkie świadczenia", "Porównaj Standard i Plus", "Co się zmieniło od 2025?"),
    "tr": (
        "El kitabını özetle",
        "Tüm yan hakları listele",
        "Standard ile Plus'ı karşılaştır",
        "2025'ten beri ne değişti?",
    ),
    "ko": (
        "핸드북을 요약해 줘",
        "모든 복지 혜택을 나열해 줘",
        "Standard와 Plus를 비교해 줘",
        "2025년 이후 무엇이 바뀌었나요?",
    ),
    "ja": (
        "ハンドブックを要約してください",
        "すべての福利厚生を列挙してください",
        "StandardとPlusを比較してください",
        "2025年以降何が変わりましたか",
    ),
    "zh": ("总结一下员工手册", "列出所有福利", "比较Standard和Plus", "2025年以来有什么变化"),
    "ar": ("لخص الدليل", "اذكر جميع المزايا", "قارن بين Standard و Plus", "ماذا تغير منذ 2025"),
}
#: Questions that share words with small talk or with a route.
QUESTIONS = (
    "Hi, how many days of annual leave do I get?",
    "Thank you for the answer, but what about part-timers?",
    "Who are you supposed to call when you are ill?",
    "Who is the data protection officer?",
    "What can you tell me about parental leave?",
    "What can I claim for glasses?",
    "Can you help me with a travel claim?",
    "Write me a letter of resignation",
    "How do I say goodbye to a colleague who retires?",
    "Am I stupid to have missed the deadline for choosing benefits?",
    "A colleague calls me stupid. Whom should I tell?",
    "What will I find in the written summary after my appraisal?",
    "What is in the canteen on Friday?",
    "Who lists the new machines?",
    "When does the new version of the handbook come into force?",
    "Has the notice period changed for me after five years?",
    "Do I get a new laptop?",
    "What does the dental plan cover?",
    "How does my pay compare with others?",
    "Which plan pays when I end up in the emergency room?",
    "Is there a difference for part-timers?",
    "Bedankt, maar hoeveel dagen krijg ik?",
    "Wie kann ich meinen Resturlaub mitnehmen?",
    "Merhaba, kaç gün yıllık iznim var?",
    "Fazla mesai nasıl ödenir?",
    "Hi. Thanks. How many days of leave do I get?",
    "안녕하세요, 연차가 며칠인가요?",
    "누구에게 신고해야 하나요?",
    "요약서는 언제 받나요?",
    "시간외 근무 수당은 얼마인가요?",
    "비교 견적은 몇 개 필요한가요?",
    "회사 셔틀버스 시간표 알려 주세요",
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_small_talk_is_met_in_one_line_of_its_own_language(language: str) -> None:
    for message in SMALL_TALK[language]:
        line = small_talk(message, language="en")
        assert line is not None, message
        assert "\n" not in line
        own = small_talk(message, language=language)
        assert line == own, message


def test_a_profile_that_answers_in_one_language_meets_small_talk_in_it() -> None:
    assert small_talk("Hello!", language="en", reply_language="ko") == small_talk("안녕하세요", language="ko")


@pytest.mark.parametrize(
    ("message", "language", "like"),
    [
        ("Hi! Who are you?", "en", "Who are you?"),
        ("Thanks a lot, bye!", "en", "Bye!"),
        ("Hallo, wie ben je?", "nl", "Wie ben je?"),
        ("Merhaba, sen kimsin?", "tr", "Sen kimsin?"),
        ("안녕하세요, 뭘 할 수 있어?", "ko", "뭘 할 수 있어?"),
        ("你好，你是谁？", "zh", "你是谁？"),
    ],
)
def test_several_pieces_of_small_talk_are_met_by_what_answers_the_last(message: str, language: str, like: str) -> None:
    assert small_talk(message, language=language) == small_talk(like, language=language)


def test_two_letters_are_small_talk_in_the_askers_own_language_only() -> None:
    assert small_talk("PA", language="en") is None
    assert small_talk("Pa!", language="pl") is not None


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_route_is_recognised_in_each_language(language: str) -> None:
    found = {}
    for message in ROUTED[language]:
        recognised = recognise(message, language="en")
        assert recognised is not None, message
        found[recognised.route] = recognised
    assert set(found) == set(ROUTES)
    assert {found["comparison"].one, found["comparison"].other} == {"Standard", "Plus"}
    assert "2025" in found["changes"].since
    assert not found["changes"].subject


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_route_offers_to_ask_is_recognised_again(language: str) -> None:
    title = "Leave policy · leave.pdf"
    for phrase, route in (("summarise", "summary"), ("changed", "changes")):
        recognised = recognise(say(phrase, language, title=title), language=language)
        assert recognised is not None
        assert (recognised.route, recognised.subject.strip("“”")) == (route, title)
    confirmed = recognise(say("yes", language) + say("summarise", language, title=title), language=language)
    assert confirmed is not None
    assert confirmed.is_confirmed


@pytest.mark.parametrize("language", ["en", "nl", "ko"])
def test_ordinary_questions_are_neither_small_talk_nor_a_route(language: str) -> None:
    taken = [q for q in QUESTIONS if small_talk(q, language=language) or recognise(q, language=language)]
    # Whether "the canteen" or "me" is a document decides the documents: none is called so.
    assert taken == ["What is in the canteen on Friday?"]


def test_a_question_about_costs_is_no_small_talk() -> None:
    assert small_talk("Could you give me a summary of your costs?", language="en") is None


def test_no_everyday_question_is_a_route() -> None:
    assert [q for q in EVERYDAY if recognise(q, language="en") or may_be_meant(q)] == []
    poems = [q for q in EVERYDAY if small_talk(q, language="en")]
    assert poems == ["Write a poem about the sea", "Tell me a joke about cats"]


def test_no_question_that_the_samples_answer_is_a_route() -> None:
    questions = [q for q in QUESTIONS if may_be_meant(q)]
    assert questions == []


def test_the_subject_is_what_stands_between_the_words() -> None:
    assert recognise("What has changed in the handbook since 2025?", language="en") == Recognised(
        "changes", subject="the handbook", since="2025"
    )
    assert recognise("Please give me a short summary of the benefits guide", language="en") == Recognised(
        "summary", subject="the benefits guide"
    )
    assert is_yes("Yes, please!") is False or is_yes("Yes please!")
    assert is_yes("네")
    assert not is_yes("Yes, but how many days?")
