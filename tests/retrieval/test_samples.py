"""Questions as people ask them, about the sample documents, without any key: is the right page cited?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from rag.profiles import HR
from rag.providers.builtin_embedders import LexicalEmbedder
from rag.providers.registry import Providers
from rag.retrieval.retriever import RetrievalResult, Retriever
from rag.samples import SAMPLES
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Question
from tests.retrieval.shelf import Shelf
from tests.standins.providers import ProviderStandin

#: A question and the pages that answer it.
Asked = tuple[str, set[int]]

HANDBOOK: list[Asked] = [
    ("When do I get paid?", {2}),
    ("How many days of annual leave do I have in Ottermere?", {3}),
    ("Can I carry over unused leave to next year?", {3}),
    ("From which day of illness do I need a doctor's note?", {3}),
    ("How much may a hotel cost on a business trip?", {3}),
    ("How long is the probation period?", {2}),
    ("What are the core hours?", {1}),
    ("How is overtime on Sundays paid?", {2}),
    ("May I keep a gift from a supplier?", {5}),
    ("What is the notice period after six years with the company?", {6}),
    ("How long must a password be?", {5}),
    ("What do I have to wear in the cutting room?", {4}),
]
BENEFITS: list[Asked] = [
    ("How much does the company pay into my pension?", {1}),
    ("When does my private health insurance start?", {1, 2}),
    ("What does the dental plan pay for crowns?", {2}),
    ("How many weeks of maternity leave are on full pay?", {3}),
    ("Can I lease a bike?", {3}),
    ("What does a nursery place cost?", {3}),
    ("How much is lunch in the canteen?", {4}),
    ("Can the company lend me money in an emergency?", {3}),
    ("How many counselling talks are free?", {2}),
    ("Does the company contribute to a gym membership?", {4}),
    ("What discount do staff get in the shop?", {4}),
]
VERLOF: list[Asked] = [
    ("Hoeveel vakantiedagen krijg ik per jaar?", {1}),
    ("Hoe laat moet ik me uiterlijk ziek melden?", {2}),
    ("Krijg ik mijn loon doorbetaald als ik langer dan een jaar ziek ben?", {2}),
    ("Hoeveel weken zwangerschapsverlof heb ik?", {2}),
    ("Mijn vrouw is bevallen, hoeveel geboorteverlof krijg ik?", {2}),
    ("Krijg ik een vrije dag als ik ga verhuizen?", {3}),
    ("Kan ik extra vakantiedagen kopen?", {2}),
    ("Wanneer vervallen mijn wettelijke vakantiedagen?", {1}),
    ("Hoe vraag ik een sabbatical aan?", {4}),
    ("Ik ben ziek geworden op vakantie, krijg ik die dagen terug?", {2}),
    ("Kan ik een feestdag ruilen voor het Suikerfeest?", {3}),
]
KOREAN: list[Asked] = [
    ("1년 근무하면 연차가 며칠 생기나요?", {1}),
    ("남은 연차를 내년으로 넘길 수 있나요?", {1}),
    ("반차는 몇 시부터 몇 시까지인가요?", {1}),
    ("진단서는 며칠째부터 필요한가요?", {2}),
    ("배우자가 출산하면 휴가를 며칠 받나요?", {2}),
    ("육아휴직은 최대 얼마나 쓸 수 있나요?", {2}),
    ("재택근무는 일주일에 며칠까지 되나요?", {3}),
    ("재택근무하면 인터넷 요금을 지원해 주나요?", {3}),
    ("해외에서 재택근무할 수 있나요?", {4}),
    ("결혼하면 경조금은 얼마인가요?", {3}),
    ("근속 10년이면 리프레시 휴가가 며칠인가요?", {4}),
    ("여름휴가는 며칠인가요?", {1, 2}),
]
OFF_TOPIC = [
    "What is the capital of France?",
    "Who won the world cup in 1998?",
    "Hoe bak ik een appeltaart?",
    "오늘 날씨 어때요?",
    "Write a poem about the sea",
]
#: Where a question stands as well as that it is found: the page among the first so many passages.
FIRST = 3


@pytest.fixture
def library(shelf: Shelf) -> Shelf:
    for sample in SAMPLES:
        shelf.add_pdf(sample.read(), title=sample.title, file_name=sample.file_name, language=sample.language)
    return shelf


def missed(
    questions: Sequence[Asked], file_name: str, ask: Callable[[str], Sequence[Any]]
) -> list[tuple[str, list[tuple[str, int, int]]]]:
    """The questions whose page is not on the first of the passages, with where these stand."""
    wrong = []
    for text, pages in questions:
        cited = [(c.file_name, c.first_page, c.last_page) for c in ask(text)[:FIRST]]
        if not any(name == file_name and pages & set(range(first, last + 1)) for name, first, last in cited):
            wrong.append((text, cited))
    return wrong


@pytest.mark.parametrize(
    ("file_name", "questions"),
    [
        ("ottermere_handbook.pdf", HANDBOOK),
        ("benefits_guide.pdf", BENEFITS),
        ("verlofbeleid.pdf", VERLOF),
        ("leave_and_remote_work_ko.pdf", KOREAN),
    ],
    ids=["english_handbook", "english_benefits", "dutch", "korean"],
)
def test_natural_questions_find_their_page_among_all_samples(
    file_name: str, questions: list[Asked], library: Shelf, database: Database, asker: Identity
) -> None:
    retriever = Retriever(database, Providers(Settings()))

    def asked(text: str) -> RetrievalResult:
        return retriever.retrieve(Question(text=text, identity=asker, collection=library.collection), profile=HR)

    wrong = missed(questions, file_name, lambda text: [item.result for item in asked(text).scored])
    assert len(wrong) <= 2, wrong
    # Words alone cannot tell "Can I lease a bike?" from "Do you sell pizza?": what is found is not always sure enough.
    uncited = missed(questions, file_name, lambda text: asked(text).response.citations)
    assert len(uncited) <= len(questions) // 3, uncited


def test_what_the_samples_do_not_say_is_not_cited(library: Shelf, database: Database, asker: Identity) -> None:
    retriever = Retriever(database, Providers(Settings()))
    for text in OFF_TOPIC:
        found = retriever.retrieve_context(
            Question(text=text, identity=asker, collection=library.collection), profile=HR
        )
        assert found.citations == (), text


#: Asked in one language about a document in another, with what a translator makes of it.
ACROSS = {
    "leave_and_remote_work_ko.pdf": [
        ("How many days a week may I work from home?", "일주일에 며칠까지 재택근무를 할 수 있나요?", {3}),
        ("How long can parental leave be at most?", "육아휴직은 최대 얼마 동안 쓸 수 있나요?", {2}),
        ("Vanaf welke dag heb ik een doktersverklaring nodig?", "며칠째부터 의사의 진단서가 필요한가요?", {2}),
        ("Can I work remotely from abroad?", "해외에서 재택근무를 할 수 있나요?", {4}),
        ("Hoeveel dagen krijg ik bij mijn eigen huwelijk?", "본인 결혼 시 며칠의 휴가를 받나요?", {3}),
    ],
    "verlofbeleid.pdf": [
        ("How many holidays do I have a year?", "Hoeveel vakantiedagen heb ik per jaar?", {1}),
        ("이사하면 휴가를 받을 수 있나요?", "Krijg ik verlof als ik ga verhuizen?", {3}),
        ("By when do I have to call in sick?", "Hoe laat moet ik me ziek melden?", {2}),
        ("휴가를 살 수 있나요?", "Kan ik vakantiedagen kopen?", {2}),
        ("How do I apply for a sabbatical?", "Hoe vraag ik een sabbatical aan?", {4}),
    ],
    "ottermere_handbook.pdf": [
        ("월급날이 언제예요?", "When is payday?", {2}),
        ("Hoe lang duurt de proeftijd?", "How long is the probation period?", {2}),
        ("추가 근무 수당은 얼마인가요?", "How is overtime paid?", {2}),
        ("Mag ik een cadeau van een klant aannemen?", "May I accept a gift from a customer?", {5}),
        ("비밀번호는 몇 자 이상이어야 하나요?", "How many characters must a password have at least?", {5}),
    ],
}


@pytest.fixture
def translating(provider_standin: ProviderStandin) -> Iterator[Providers]:
    words = {asked: translated for cases in ACROSS.values() for asked, translated, _ in cases}

    def translate(messages: list[dict[str, Any]]) -> str:
        text = str(messages[-1]["content"])
        return next(translated for asked, translated in words.items() if asked in text)

    provider_standin.reply(translate)
    made = Providers(Settings(openai_api_key="key", openai_base_url=provider_standin.openai_url))
    yield made
    made.close()


@pytest.mark.parametrize("file_name", sorted(ACROSS))
def test_a_question_in_another_language_finds_the_page_once_translated(
    file_name: str, database: Database, collection: Collection, translating: Providers, asker: Identity
) -> None:
    sample = next(sample for sample in SAMPLES if sample.file_name == file_name)
    shelf = Shelf(database, collection, LexicalEmbedder())
    shelf.add_pdf(sample.read(), title=sample.title, file_name=file_name, language=sample.language)
    retriever = Retriever(database, translating)
    spoken = replace(collection, language=sample.language)

    def found(text: str) -> Sequence[Any]:
        retrieval = retriever.retrieve(Question(text=text, identity=asker, collection=spoken), profile=HR)
        assert retrieval.response.rag_details.query.translated_from, text
        return [item.result for item in retrieval.scored]

    assert missed([(text, pages) for text, _, pages in ACROSS[file_name]], file_name, found) == []
