from __future__ import annotations

import json
from dataclasses import replace

import pytest
from psycopg.types.json import Jsonb

from rag.answering.follow_ups import is_question
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.question_templates import DEFINITIONS, TEMPLATES, nobody_asks
from rag.ingestion.suggestions import candidates_from, form_of, varied
from rag.language import LANGUAGES
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.retrieval.bm25.synonyms import translate_expression
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Collection, Identity, Section
from tests import hostile
from tests.ingestion.conftest import Worker
from tests.standins.providers import ProviderStandin

HANDBOOK = [
    ["Annual leave", "You get 25 days of annual leave a year."],
    ["Requesting leave", "Leave is requested in the portal, two weeks before it begins."],
    ["Travel allowance", "The travel allowance is $40 a month."],
    ["Overview", "This handbook is for everybody."],
]


def asked(title: str, heading: str, body: str, language: str, *, above: str = "") -> list[str]:
    sections = [Section(title=above, level=1, page=1, start=0)] if above else []
    text = f"{above}\n" if above else ""
    sections.append(Section(title=heading, level=2, page=1, start=len(text)))
    found = candidates_from(title, sections, f"{text}{heading}\n{body}\n", language)
    return [candidate.text for candidate in found if candidate.heading not in above]


@pytest.mark.parametrize(
    ("language", "heading", "body", "question"),
    [
        ("en", "2.1 Parental Leave", "Parents have 26 weeks.", "How much parental leave do I get?"),
        ("en", "Parental leave", "It is for parents.", "What are the rules on parental leave?"),
        ("en", "Requesting time off", "In the portal.", "How do I request time off?"),
        ("en", "PENSION SCHEME", "You pay 3 %.", "How does the pension scheme work?"),
        ("en", "Season ticket loan", "Up to £5,000.", "How much is the season ticket loan?"),
        ("en", "Season ticket loan", "Ask payroll.", "What are the rules on the season ticket loan?"),
        ("en", "Birth parent", "Six weeks at full pay.", "What are the rules for a birth parent?"),
        ("en", "Adoptive Parent", "Six weeks at full pay.", "What are the rules for an adoptive parent?"),
        ("en", "Works council", "It has five members.", "What are the rules on the works council?"),
        ("en", "Probation", "It is 3 months.", "How long does probation last?"),
        ("en", "6.4 Fire", "Leave at once.", "What should I do in case of fire?"),
        ("en", "Director of Sales", "Leads sales.", "What does a Director of Sales do?"),
        ("en", "Physical Therapy", "Your plan covers 20 visits.", "Does the plan cover physical therapy?"),
        ("en", "What happens if I am late", "Call us.", "What happens if I am late?"),
        ("en", "PerksPlus", "A programme.", "What is PerksPlus?"),
        ("nl", "4.3 Ouderschapsverlof", "Je krijgt 26 weken.", "Hoeveel ouderschapsverlof krijg ik?"),
        ("nl", "Ziek melden", "Bel je leidinggevende.", "Hoe meld ik me ziek?"),
        ("de", "§ 3 Dauer des Urlaubs", "24 Werktage.", "Wie ist die Dauer des Urlaubs geregelt?"),
        ("de", "Elternzeit beantragen", "Schriftlich.", "Wie kann ich Elternzeit beantragen?"),
        ("fr", "Accident du travail", "Prévenez-nous.", "Que faire en cas d’accident du travail ?"),
        ("fr", "Congé parental", "26 semaines.", "À combien de jours de congé parental ai-je droit ?"),
        ("es", "Solicitar vacaciones", "En el portal.", "¿Cómo puedo solicitar vacaciones?"),
        ("it", "Lavoro da remoto", "Due volte.", "Lavoro da remoto: quali regole valgono?"),
        ("pt", "Subsídio de refeição", "São 8 € por dia.", "De quanto é o subsídio de refeição?"),
        ("pl", "Wniosek o urlop", "W portalu.", "Jak złożyć wniosek o urlop?"),
        ("tr", "Yıllık izin", "Yılda 14 gün.", "Yıllık izin kaç gün?"),
        ("ar", "إجازة سنوية", "21 يوما في السنة.", "كم مدة إجازة سنوية؟"),
        ("zh", "年假", "每年10天。", "年假有几天？"),
        ("ko", "제3조(육아휴직)", "1년까지 쓸 수 있다.", "육아휴직 기간은 얼마나 되나요?"),
        ("ko", "경조사 휴가", "결혼은 5일.", "경조사 휴가는 며칠인가요?"),
        ("ja", "通勤手当", "月に2万円まで。", "通勤手当はいくらですか？"),
        ("ja", "休暇を取るには", "上司に申し出る。", "休暇を取るにはどうすればいいですか？"),
        ("ja", "何日休めますか", "10日です。", "何日休めますか？"),
        ("ja", "病気の場合", "電話する。", "病気のときはどうすればいいですか？"),
        ("ja", "ハラスメント", "窓口に相談する。", "ハラスメントを受けたときはどうすればいいですか？"),
        ("ja", "労働災害", "すぐに知らせる。", "労働災害が起きたときはどうすればいいですか？"),
        ("ja", "在宅勤務の対象者", "全社員。", "在宅勤務の対象者は誰ですか？"),
        ("ja", "年次有給休暇の日数", "10日です。", "年次有給休暇の日数は何日ですか？"),
        ("ja", "提出期限", "月末。", "提出期限はいつですか？"),
        ("ja", "お問い合わせ先", "人事部。", None),
        ("ja", "用語の定義", "社員とは。", None),
        ("tr", "Yıllık İzin", "Yılda 14 gün.", "Yıllık izin kaç gün?"),
        ("tr", "ÇALIŞMA KOŞULLARI", "Haftada beş gün.", "Çalışma koşulları neler?"),
        ("tr", "Isınma Giderleri", "Şirket öder.", "Isınma giderleri: kurallar neler?"),
        ("tr", "Madde 5 – Ücretli izinler", "Bir gün.", "Ücretli izinler: kurallar neler?"),
        ("tr", "Hastalık Durumunda Yapılacaklar", "Haber verin.", "Hastalık durumunda ne yapmalıyım?"),
        ("tr", "Kimler başvurabilir", "Herkes.", "Kimler başvurabilir?"),
        ("tr", "İş kazası", "Haber verin.", "İş kazası durumunda ne yapmalıyım?"),
        ("tr", "Tanımlar", "Çalışan.", None),
        ("tr", "Giriş", "Hoş geldiniz.", None),
        ("nl", "Bedrijfsongeval", "Bel 112.", "Wat moet ik doen bij een bedrijfsongeval?"),
        ("de", "Kündigungsfrist", "Siehe Vertrag.", "Kündigungsfrist: Welche Regeln gelten?"),
        ("de", "Private Nutzung", "Erlaubt.", "Private Nutzung: Welche Regeln gelten?"),
        ("de", "Arbeitsunfall", "Sofort melden.", "Was gilt bei einem Arbeitsunfall?"),
        ("de", "Krankheit", "Sofort melden.", "Was gilt bei Krankheit?"),
        ("es", "Plazo de preaviso", "Véase el contrato.", "Plazo de preaviso: ¿qué normas hay?"),
        ("pt", "Aviso prévio", "Ver o contrato.", "Aviso prévio: quais são as regras?"),
        ("nl", "Opzegtermijn", "Zie het contract.", "Opzegtermijn: wat zijn de regels?"),
        ("fr", "Le télétravail", "Deux jours.", "Le télétravail : quelles sont les règles ?"),
        ("fr", "Télétravail", "Deux jours.", "Quelles sont les règles en matière de télétravail ?"),
        ("ar", "قواعد السلوك", "الاحترام.", "ما هي قواعد السلوك؟"),
        ("fr", "Définitions", "x", None),
        ("de", "Begriffsbestimmungen", "x", None),
        ("es", "Ámbito de aplicación", "x", None),
        ("it", "Contatti", "x", None),
        ("pt", "Objetivo", "x", None),
        ("pl", "Postanowienia końcowe", "x", None),
        ("zh", "联系方式", "x", None),
        ("en", "Policy 29: Travel expenses", "Ask payroll.", "What are the rules on travel expenses?"),
        ("de", "Richtlinie 4 – Urlaub", "28 Tage.", "Wie viel Urlaub bekomme ich?"),
        ("en", "Policy 29", "Travel is paid.", None),
        ("en", "Our Mission", "We make things better.", None),
        ("en", "Chief Executive Officer", "Leads the company.", None),
        ("en", "Executive Vice President of Sales", "Leads sales.", None),
        ("de", "Unsere Werte", "Wir sind fair.", None),
        ("ko", "핵심 가치", "정직과 도전.", None),
        ("fr", "Annexe IV", "Les tarifs.", None),
        ("en", "HR", "x", None),
        ("en", "If something was left out", "Ask payroll.", "What happens if something was left out?"),
        ("en", "Before you leave", "Return the card.", None),
        ("en", "Introduction", "x", None),
        ("nl", "Artikel 7:669", "x", None),
        ("ko", "목적", "x", None),
        ("xx", "Parental leave", "x", None),
    ],
)
def test_headings_are_asked_about_as_people_ask(language: str, heading: str, body: str, question: str | None) -> None:
    assert asked("Guide 2026", heading, body, language) == ([question] if question else [])


@pytest.mark.parametrize(
    "question",
    [
        "What does the Chief Executive Officer do?",
        "What does a Vice President of Sales do?",
        "What is the role of the CEO?",
        "What is our mission?",
        "What are our core values?",
        "What are the rules on policy 29?",
        "What does policy no. 29 say?",
        "Was steht in Richtlinie 4?",
        "Welche Regeln gelten für Anlage 3?",
        "Quelles sont nos valeurs ?",
        "회사의 핵심 가치는 무엇인가요?",
        "別表 2はどうなっていますか？",
    ],
)
def test_questions_that_no_employee_asks_are_known_by_their_words(question: str) -> None:
    assert nobody_asks(question)


@pytest.mark.parametrize(
    "question",
    [
        "Who is the CEO?",
        "How much parental leave do I get?",
        "Does the plan cover vision care?",
        "How do I get form 1095-C?",
        "How does a Section 125 plan work?",
        "What are the rules on the leave policy?",
        "What does a Director of Sales do?",
        "Is the standard 40 hours a week?",
        "Sind in Regel 30 % erlaubt?",
        "How is a point 5 % bonus paid?",
        "연차휴가는 며칠인가요?",
        "What is the vision plan’s deductible?",
    ],
)
def test_questions_of_employees_are_kept(question: str) -> None:
    assert not nobody_asks(question)


def test_a_heading_that_says_little_is_asked_about_with_the_one_above() -> None:
    assert asked("휴가 안내", "2.2 신청 방법", "포털에서.", "ko", above="2 연차휴가") == [
        "연차휴가 신청은 어떻게 하나요?"
    ]
    assert asked("Verlofbeleid", "2.2 Aanvragen", "x", "nl", above="2 Vakantie") == ["Hoe kan ik vakantie aanvragen?"]
    assert asked("휴가 안내", "신청 방법", "포털에서.", "ko") == []
    assert asked("就業規則", "日数", "10日です。", "ja", above="年次有給休暇") == ["年次有給休暇の日数は何日ですか？"]


def test_a_post_without_sections_is_asked_about_by_its_title() -> None:
    found = candidates_from("[긴급] 학자금 지원 신청 안내 : 공지사항", (), "신청은 5월까지입니다.", "ko")
    assert [candidate.text for candidate in found] == ["학자금 지원 신청은 어떻게 하나요?"]
    assert candidates_from("Guide", (), "Every employee has 25 days.", "en") == []


def test_every_language_of_the_interface_has_questions_and_they_are_questions() -> None:
    assert set(TEMPLATES) == set(DEFINITIONS) == set(LANGUAGES)
    for language, rules in TEMPLATES.items():
        assert rules[-1].heading.pattern == ".*"
        assert all(is_question(rule.question) for rule in rules), language


def test_facts_come_before_rules_and_all_parts_of_a_document_have_a_turn() -> None:
    titles = [*(f"Rule {chr(97 + n)} x" for n in range(20)), "Sick pay", "Meal allowance"]
    text, sections = "", []
    for title in titles:
        sections.append(Section(title=title, level=1, page=1, start=len(text)))
        text += f"{title}\n" + ("At most $40 a day.\n" if title == "Meal allowance" else "It is so.\n")
    found = [candidate.text for candidate in candidates_from("Guide", sections, text, "en", limit=4)]
    assert found[:2] == ["How much is the meal allowance?", "What happens when I am sick?"]
    assert len(found) == 4
    assert "rule a" in found[2]
    assert "rule k" in found[3]


def test_a_question_whose_subject_stands_before_a_colon_has_the_form_of_the_rest() -> None:
    assert form_of("Pausen: Welche Regeln gelten?") == form_of("Private Nutzung: Welche Regeln gelten?")
    assert form_of("Le télétravail : quelles sont les règles ?") == form_of("Les congés : quelles sont les règles ?")
    assert form_of("Pausen: Welche Regeln gelten?") != form_of("Wie lang ist die Probezeit?")


def test_questions_of_other_forms_come_before_repetitions() -> None:
    questions = ["What is the fee?", "What is the bonus?", "How do I ask?", "What is the fee?"]
    assert varied(questions, form_of, 3) == ["What is the fee?", "How do I ask?", "What is the bonus?"]


def test_only_what_the_document_answers_before_all_others_is_suggested(
    library: DocumentLibrary, collection: Collection, admin: Identity, work: Worker
) -> None:
    first = upload(library, admin, collection, work, "Staff handbook.pdf", HANDBOOK)
    assert first == ["How much annual leave do I get?", "How much is the travel allowance?", "How do I request leave?"]
    # Another document says the same of annual leave: its own question is kept where it is answered first.
    twin = [["Annual leave", "Interns get 10 days."], ["Dress code", "Trousers."], ["Quiet room", "Is on floor 2."]]
    second = upload(library, admin, collection, work, "Interns.pdf", twin)
    assert "What does the dress code say?" in second
    assert not any("floor" in question for question in second)
    shown = library.suggested_questions("demo", collection.id)
    assert set(shown) <= {*first, *second}
    assert len(shown) == 4
    assert len({form_of(question) for question in shown}) >= 3


def upload(
    library: DocumentLibrary, admin: Identity, collection: Collection, work: Worker, name: str, pages: list[list[str]]
) -> list[str]:
    document = library.upload(admin, collection, name, hostile.pdf_of(pages))
    work("demo", document.id)
    library.confirm(admin, document.id)
    work("demo", document.id)
    found: list[str] = library.get("demo", document.id).metadata["suggested_questions"]
    return found


def test_readers_of_another_language_are_offered_questions_in_theirs(
    library: DocumentLibrary, collection: Collection, admin: Identity, work: Worker, database: Database
) -> None:
    upload(library, admin, collection, work, "Staff handbook.pdf", HANDBOOK)
    # Not made for a language before a reader of it comes, and then once.
    (document,) = library.list("demo")
    assert document.metadata["suggested_elsewhere"] == {}
    asked = library.suggested_questions("demo", collection.id, languages=["de-DE", "en"])
    assert asked[0] == "Wie viel Urlaub bekomme ich?"
    assert "How much is the travel allowance?" in asked[1:]
    assert library.suggested_questions("demo", collection.id, languages=["nl"])[0] == "Hoeveel vakantie krijg ik?"
    assert library.suggested_questions("demo", collection.id, languages=["ko"])[0] == "연차는 며칠인가요?"
    kept = library.get("demo", document.id).metadata["suggested_elsewhere"]
    assert set(kept) == {"de", "nl", "ko"}
    with database.transaction("demo") as connection:
        marked = {**kept, "de": ["Wie bitte?"]}
        connection.execute("UPDATE documents SET metadata = metadata || %s", (Jsonb({"suggested_elsewhere": marked}),))
    assert library.suggested_questions("demo", collection.id, languages=["de"])[0] == "Wie bitte?"


@pytest.mark.parametrize(
    ("heading", "own", "language", "subject"),
    [
        ("Annual leave", "en", "de", "Urlaub"),
        ("Payday", "en", "nl", "uitbetalingsdatum"),
        ("연차휴가", "ko", "en", "annual leave"),
        ("Annual leave in Ottermere", "en", "de", ""),
        ("Drying cylinders", "en", "de", ""),
        ("Annual leave", "en", "sv", ""),
    ],
)
def test_a_heading_that_names_one_thing_is_said_in_another_language(
    heading: str, own: str, language: str, subject: str
) -> None:
    assert translate_expression(heading, own, language) == subject


def test_a_statute_without_sections_is_asked_about_by_its_articles() -> None:
    text = (
        "제60조(연차 유급휴가) 사용자는 15일의 유급휴가를 주어야 한다.\n"
        "제62조(유급휴가의 대체) 서면 합의에 따라 대체할 수 있다.\n"
    )
    found = candidates_from("근로기준법", (), text, "ko")
    assert {candidate.heading for candidate in found} == {"연차 유급휴가", "유급휴가의 대체"}


def test_documents_of_an_earlier_version_get_their_questions_when_they_are_looked_at_again(
    library: DocumentLibrary, collection: Collection, admin: Identity, work: Worker, database: Database
) -> None:
    made = upload(library, admin, collection, work, "Staff handbook.pdf", HANDBOOK)
    (document,) = library.list("demo")
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET metadata = metadata - 'suggested_questions'")
    assert library.suggested_questions("demo", collection.id) == []
    work("demo", document.id)
    assert library.get("demo", document.id).metadata["suggested_questions"] == made


def test_a_models_questions_come_first_where_they_are_answered_and_cost_no_further_call(
    database: Database,
    files: FileStore,
    settings: Settings,
    provider_standin: ProviderStandin,
    library: DocumentLibrary,
) -> None:
    questions = ["How many days of annual leave do I get?", "Who won the chess championship?", "What is for lunch?"]
    provider_standin.reply(json.dumps({"summary": "Leave.", "topics": ["leave"], "questions": questions}))
    keyed = replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)
    pipeline = IngestionPipeline(database, files, Providers(keyed), Ledger(database), keyed)
    collection = library.ensure_collection("demo", "Paid", "hr", "openai/text-embedding-3-small@1536", "en")
    result = pipeline.process_document(
        file=hostile.pdf_of(HANDBOOK), file_name="handbook.pdf", tenant_id="demo", collection=collection
    )
    found = library.get("demo", result.document_id).metadata["suggested_questions"]
    assert found[0] == questions[0]
    assert not {*questions[1:]} & {*found}
    assert "How much is the travel allowance?" in found
    assert provider_standin.calls["chat"] == 1
    assert provider_standin.calls["embeddings"] == 1
    pipeline.close()
