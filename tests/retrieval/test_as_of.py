"""Questions about a day of the past, answered from the version of a document that was valid then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from threading import Event
from uuid import UUID

import pytest
from psycopg import sql

from rag.answering.events import CitationsEvent, TextEvent
from rag.answering.pipeline import Answerer
from rag.ingestion.pipeline import IngestionPipeline
from rag.money.ledger import Ledger
from rag.profiles import profile_of
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.retrieval.as_of import NamedDay, future_day_in, past_day_in
from rag.retrieval.bm25.index import index_document
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Collection, Question
from tests.answering.scripted import add_account

TODAY = date(2026, 11, 27)
END_OF_JUNE = date(2025, 6, 30)
END_OF_JANUARY, END_OF_2027 = date(2027, 1, 31), date(2027, 12, 31)


@pytest.mark.parametrize(
    ("language", "text", "day", "rest"),
    [
        ("en", "What was the hotel limit in June 2025?", END_OF_JUNE, "What was the hotel limit?"),
        ("en", "As of 1 July 2025, how many days are free?", date(2025, 7, 1), "how many days are free?"),
        ("en", "How much was the allowance on 2025-03-04?", date(2025, 3, 4), "How much was the allowance?"),
        ("en", "What was the limit in 2025?", date(2025, 12, 31), "What was the limit?"),
        ("en", "What were the rules before January 2026?", date(2025, 12, 31), "What were the rules?"),
        ("en", "What was the hotel limit last year?", date(2025, 12, 31), "What was the hotel limit?"),
        ("de", "Wie hoch war die Hotelgrenze im Juni 2025?", END_OF_JUNE, "Wie hoch war die Hotelgrenze?"),
        ("de", "Wie viele Tage gab es am 1. März 2024?", date(2024, 3, 1), "Wie viele Tage gab es?"),
        ("de", "Wie hoch war sie am 01.03.2024?", date(2024, 3, 1), "Wie hoch war sie?"),
        ("de", "Stand Juni 2025: Wie hoch ist die Pauschale?", END_OF_JUNE, "Wie hoch ist die Pauschale?"),
        ("nl", "Wat was de hotellimiet in juni 2025?", END_OF_JUNE, "Wat was de hotellimiet?"),
        ("fr", "Quelle était la limite d'hôtel en juin 2025 ?", END_OF_JUNE, "Quelle était la limite d'hôtel?"),
        ("es", "¿Cuál era el límite en junio de 2025?", END_OF_JUNE, "¿Cuál era el límite?"),
        ("it", "Qual era il limite nel giugno 2025?", END_OF_JUNE, "Qual era il limite?"),
        ("pt", "Qual era o limite em junho de 2025?", END_OF_JUNE, "Qual era o limite?"),
        ("pl", "Jaki był limit hotelowy w czerwcu 2025?", END_OF_JUNE, "Jaki był limit hotelowy?"),
        ("pl", "Ile dni urlopu było w 2024 roku?", date(2024, 12, 31), "Ile dni urlopu było?"),
        ("tr", "Haziran 2025'te otel limiti neydi?", END_OF_JUNE, "otel limiti neydi?"),
        ("ko", "2025년 6월에 호텔 한도는 얼마였나요?", END_OF_JUNE, "호텔 한도는 얼마였나요?"),
        ("ja", "2025年6月のホテルの上限はいくらでしたか？", END_OF_JUNE, "ホテルの上限はいくらでしたか？"),
        ("zh", "2025年6月的酒店限额是多少？", END_OF_JUNE, "酒店限额是多少？"),
        ("ar", "كم كان حد الفندق في يونيو 2025؟", END_OF_JUNE, "كم كان حد الفندق؟"),
    ],
)
def test_a_day_of_the_past_is_read_in_thirteen_languages(language: str, text: str, day: date, rest: str) -> None:
    assert past_day_in(text, language, TODAY) == NamedDay(day, rest)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Can I carry over days from 2025 to 2026?"),
        ("en", "May I take days of last year?"),
        ("en", "What was the limit in June 2027?"),
        ("en", "Who was the founder?"),
        ("en", "What was decided on 31 February 2025?"),
        ("de", "Darf ich Tage aus 2025 mitnehmen?"),
        ("fr", "Puis-je reporter les jours de 2025 ?"),
    ],
)
def test_other_questions_are_about_the_rules_of_today(language: str, text: str) -> None:
    assert past_day_in(text, language, TODAY) is None


@pytest.mark.parametrize(
    ("language", "text", "day", "rest"),
    [
        ("en", "What is the hotel limit from January 2027?", END_OF_JANUARY, "What is the hotel limit?"),
        ("en", "What is the hotel limit in January?", END_OF_JANUARY, "What is the hotel limit?"),
        ("en", "From 1 January, how many days do I get?", date(2027, 1, 1), "how many days do I get?"),
        ("en", "How much is the rate as of 2027-01-01?", date(2027, 1, 1), "How much is the rate?"),
        ("en", "What is the limit in 2027?", END_OF_2027, "What is the limit?"),
        ("en", "What will the hotel limit be next year?", END_OF_2027, "What will the hotel limit be?"),
        ("en", "What is the limit on 30 November?", date(2026, 11, 30), "What is the limit?"),
        ("en", "What is the limit from March onwards?", date(2027, 3, 31), "What is the limit?"),
        (
            "de",
            "Wie hoch ist die Hotelgrenze ab dem 1. Januar 2027?",
            date(2027, 1, 1),
            "Wie hoch ist die Hotelgrenze?",
        ),
        ("de", "Wie hoch ist die Hotelgrenze ab Januar?", END_OF_JANUARY, "Wie hoch ist die Hotelgrenze?"),
        ("de", "Wie hoch ist die Hotelgrenze nächstes Jahr?", END_OF_2027, "Wie hoch ist die Hotelgrenze?"),
        ("nl", "Wat is de hotellimiet vanaf januari?", END_OF_JANUARY, "Wat is de hotellimiet?"),
        ("fr", "Quelle est la limite à partir de janvier 2027 ?", END_OF_JANUARY, "Quelle est la limite?"),
        ("fr", "Quelle sera la limite l'année prochaine ?", END_OF_2027, "Quelle sera la limite?"),
        ("es", "¿Cuál es el límite a partir de enero de 2027?", END_OF_JANUARY, "¿Cuál es el límite?"),
        ("it", "Qual è il limite da gennaio 2027?", END_OF_JANUARY, "Qual è il limite?"),
        ("pt", "Qual é o limite a partir de janeiro?", END_OF_JANUARY, "Qual é o limite?"),
        ("pl", "Jaki jest limit hotelowy od stycznia 2027?", END_OF_JANUARY, "Jaki jest limit hotelowy?"),
        ("tr", "Ocak 2027'den itibaren otel limiti nedir?", END_OF_JANUARY, "otel limiti nedir?"),
        ("tr", "Ocak ayında otel limiti nedir?", END_OF_JANUARY, "otel limiti nedir?"),
        ("ko", "내년 호텔 한도는 얼마인가요?", END_OF_2027, "호텔 한도는 얼마인가요?"),
        ("ko", "1월부터 호텔 한도는 얼마인가요?", END_OF_JANUARY, "호텔 한도는 얼마인가요?"),
        ("ja", "来年のホテルの上限はいくらですか？", END_OF_2027, "ホテルの上限はいくらですか？"),
        ("ja", "1月からホテルの上限はいくらですか？", END_OF_JANUARY, "ホテルの上限はいくらですか？"),
        ("zh", "2027年1月起酒店限额是多少？", END_OF_JANUARY, "酒店限额是多少？"),
        ("ar", "كم حد الفندق من يناير 2027؟", END_OF_JANUARY, "كم حد الفندق؟"),
    ],
)
def test_a_day_to_come_is_read_in_thirteen_languages(language: str, text: str, day: date, rest: str) -> None:
    assert future_day_in(text, language, TODAY) == NamedDay(day, rest)


@pytest.mark.parametrize(
    "text",
    ["May I book a hotel?", "What is the limit in November?", "What is the limit in 2026?", "May I march in a parade?",
     "What was the limit in June 2025?", "How many days are free?", "What does form 2027-A say on 31 February 2027?"],
)  # fmt: skip
def test_today_and_the_past_are_not_to_come(text: str) -> None:
    assert future_day_in(text, "en", TODAY) is None


def policy(limit: str, *, with_bonus: bool) -> bytes:
    bonus = "# Christmas bonus\n\nEvery employee receives a Christmas bonus of 400 euros.\n\n" if with_bonus else ""
    return (
        "# Travel policy\n\nThis policy is for business trips of all employees.\n\n"
        f"# Hotels\n\nA hotel may cost up to {limit} euros per night.\n\n{bonus}"
        "# Trains\n\nTrains are booked in second class, a month before the trip where that can be foreseen.\n"
    ).encode()


class Desk:
    """A collection with two versions of one policy, and answers without a model."""

    def __init__(self, database: Database, files: FileStore, settings: Settings, collection: Collection) -> None:
        self.database, self.collection = database, collection
        self.providers = Providers(settings)
        ledger = Ledger(database)
        self._pipeline = IngestionPipeline(database, files, self.providers, ledger, settings)
        retriever = Retriever(database, self.providers)
        self._answerer = Answerer(retriever, self.providers, ChatLogs(database), settings)
        self.person = add_account(database, "demo", "reader@example.org")

    def add(self, content: bytes) -> UUID:
        return self._pipeline.process_document(
            file=content, file_name="Travel policy.md", tenant_id="demo", collection=self.collection
        ).document_id

    def put(self, document_id: UUID, **columns: str | None) -> None:
        with self.database.transaction("demo") as connection:
            for column, value in columns.items():
                statement = sql.SQL("UPDATE documents SET {} = %s WHERE id = %s").format(sql.Identifier(column))
                connection.execute(statement, (value, document_id))

    def answer(self, text: str) -> tuple[str, set[UUID], str]:
        """The answer's text, the documents it cites, and what it says of them."""
        question = Question(text=text, identity=self.person, collection=self.collection)
        events = list(self._answerer.answer(question, profile=profile_of(self.collection), cancel=Event()))
        (end,) = (event for event in events if isinstance(event, CitationsEvent))
        told = "".join(event.text for event in events if isinstance(event, TextEvent))
        return told, {citation.document_id for citation in end.citations}, end.notice


@pytest.fixture
def desk(database: Database, settings: Settings, collection: Collection) -> Iterator[Desk]:
    desk = Desk(database, FileStore(settings.data_dir / "files"), settings, collection)
    yield desk
    desk.providers.close()


@pytest.fixture
def versions(desk: Desk) -> tuple[UUID, UUID]:
    first, second = desk.add(policy("140", with_bonus=True)), desk.add(policy("170", with_bonus=False))
    desk.put(second, valid_from="2026-01-01")
    return first, second


def test_the_version_of_the_day_answers_and_the_answer_says_so(desk: Desk, versions: tuple[UUID, UUID]) -> None:
    first, second = versions
    then, cited, notice = desk.answer("What was the hotel limit per night in June 2025?")
    assert ("140 euros" in then, "170 euros" in then, cited) == (True, False, {first})
    assert notice == "On 2025-06-30, version 1 of “Travel policy” was valid. There is a newer one."
    now, cited, notice = desk.answer("What is the hotel limit per night?")
    assert ("170 euros" in now, "140 euros" in now, cited, notice) == (True, False, {second}, "")
    later, cited, notice = desk.answer("What was the hotel limit per night in February 2026?")
    assert ("170 euros" in later, cited, notice) == (True, {second}, "")


def test_a_model_and_a_program_are_told_which_version_they_read(desk: Desk, versions: tuple[UUID, UUID]) -> None:
    question = Question(
        text="What was the hotel limit per night in June 2025?", identity=desk.person, collection=desk.collection
    )
    found = Retriever(desk.database, desk.providers).retrieve_context(question, profile=profile_of(desk.collection))
    assert found.context_text.startswith("The passages of “Travel policy (v1)” were valid on 2025-06-30,")
    assert [citation.title for citation in found.citations] == ["Travel policy (v1)"] * len(found.citations)
    assert [(version.document_id, version.version) for version in found.versions] == [(versions[0], 1)]


def test_a_rule_that_is_gone_is_found_on_its_day_only(desk: Desk, versions: tuple[UUID, UUID]) -> None:
    then, cited, _ = desk.answer("How much was the Christmas bonus in June 2025?")
    assert ("400 euros" in then, cited) == (True, {versions[0]})
    now, _, _ = desk.answer("How much is the Christmas bonus?")
    assert "400 euros" not in now


def test_a_version_with_a_first_day_in_the_future_waits_for_it(desk: Desk, versions: tuple[UUID, UUID]) -> None:
    first, second = versions
    desk.put(second, valid_from="2999-01-01")
    now, cited, notice = desk.answer("What is the hotel limit per night?")
    assert ("140 euros" in now, cited) == (True, {first})
    assert notice == "This is version 1 of “Travel policy”. A newer one is valid from 2999-01-01 on."


def test_a_version_to_come_answers_for_its_time(desk: Desk, versions: tuple[UUID, UUID]) -> None:
    first, second = versions
    desk.put(second, valid_from="2098-01-15")
    then, cited, notice = desk.answer("What is the hotel limit per night from January 2098?")
    assert ("170 euros" in then, "140 euros" in then, cited) == (True, False, {second})
    assert notice == "“Travel policy” is valid from 2098-01-15 on."
    # No other version begins by then, and the one of today stays.
    now, cited, notice = desk.answer("What is the hotel limit per night from January 2097?")
    assert ("140 euros" in now, cited) == (True, {first})
    assert notice == "This is version 1 of “Travel policy”. A newer one is valid from 2098-01-15 on."


def test_the_version_of_today_answers_for_a_coming_time_without_another(
    desk: Desk, versions: tuple[UUID, UUID]
) -> None:
    told, cited, notice = desk.answer("What is the hotel limit per night from January 2097?")
    assert ("170 euros" in told, cited) == (True, {versions[1]})
    assert notice == "This is version 2 of “Travel policy”. No other version kept here begins by 2097-01-31."
    _, cited, notice = desk.answer("What is the hotel limit per night from January?")
    assert (cited, notice[:39]) == ({versions[1]}, "This is version 2 of “Travel policy”. N")


def test_a_coming_time_that_a_passage_names_is_searched_for(desk: Desk) -> None:
    desk.add(b"# Bonus\n\nA bonus of 300 euros is paid in January.\n\nA bonus of 200 euros is paid in summer.\n")
    told, _, notice = desk.answer("How much is the bonus paid in January?")
    assert ("300 euros" in told, notice) == (True, "")


def test_a_day_that_was_saved_for_all_versions_is_of_the_published_one(desk: Desk, versions: tuple[UUID, UUID]) -> None:
    desk.put(versions[0], valid_from="2026-01-01")
    _, cited, _ = desk.answer("What was the hotel limit per night in June 2025?")
    assert cited == {versions[0]}


def test_without_days_given_a_version_counts_from_its_publishing(desk: Desk, versions: tuple[UUID, UUID]) -> None:
    first, second = versions
    desk.put(second, valid_from=None, published_at="2026-02-03")
    desk.put(first, published_at="2025-03-01")
    then, cited, _ = desk.answer("What was the hotel limit per night in June 2025?")
    assert ("140 euros" in then, cited) == (True, {first})
    # Before the first version nothing is known, and the published one answers as it does without a day.
    _, cited, notice = desk.answer("What was the hotel limit per night in June 2019?")
    assert (cited, notice) == ({second}, "")


def test_a_version_that_was_taken_back_answers_again(desk: Desk, versions: tuple[UUID, UUID]) -> None:
    """The published version has the lower number, and the other is of the days between."""
    first, second = versions
    with desk.database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET valid_from = NULL")
    desk.put(second, status="superseded", published_at="2026-02-03")
    desk.put(first, status="completed", published_at="2026-05-01")
    with desk.database.transaction("demo") as connection:
        index_document(connection, tenant_id="demo", collection_id=desk.collection.id, document_id=first)
    _, cited, _ = desk.answer("What is the hotel limit per night?")
    assert cited == {first}
    told, cited, _ = desk.answer("What was the hotel limit per night in March 2026?")
    assert ("170 euros" in told, cited) == (True, {second})


SINCE_170 = "Since when may a hotel cost up to 170 euros per night?"


def test_since_when_is_the_first_version_that_says_it(desk: Desk, versions: tuple[UUID, UUID]) -> None:
    first, second = versions
    told, cited, _ = desk.answer(SINCE_170)
    said, before = told.split("Version 1, the one before, said:")
    assert "Version 2 of “Travel policy”, valid from 2026-01-01, is the first one kept here that says so:" in said
    assert ("“A hotel may cost up to 170 euros per night.” [1]" in said, "140 euros" in before) == (True, True)
    assert cited == {first, second}
    # What does not differ is of the oldest version, and that has no day.
    told, cited, _ = desk.answer("Since when are trains booked in second class?")
    assert "The documents do not say since when. The oldest version of “Travel policy”" in told
    assert ("Trains are booked" in told, cited) == (True, {first})


def test_since_when_follows_a_figure_over_more_versions(desk: Desk, versions: tuple[UUID, UUID]) -> None:
    first, second = versions
    desk.put(first, valid_from="2024-05-01")
    third = desk.add(policy("170", with_bonus=True))
    desk.put(third, valid_from="2026-06-01")
    told, cited, _ = desk.answer(SINCE_170)
    assert ("Version 2 of “Travel policy”, valid from 2026-01-01" in told, cited) == (True, {first, second})
    told, cited, _ = desk.answer("Since when may a hotel cost up to 140 euros per night?")
    assert "Version 1 of “Travel policy”, valid from 2024-05-01" in told
    assert ("Version 3, which is valid today, says:" in told, cited) == (True, {first, third})
    # What only the last version and the first have is new in the last.
    told, _, _ = desk.answer("Since when does every employee receive a Christmas bonus of 400 euros?")
    assert "Version 3 of “Travel policy”, valid from 2026-06-01" in told
    assert "Version 2, the one before, does not say it." in told


def test_since_when_of_what_no_version_says_is_not_answered(desk: Desk, versions: tuple[UUID, UUID]) -> None:
    told, _, _ = desk.answer("Since when may a hotel cost up to 200 euros per night?")
    assert told.startswith("The documents do not answer this question.")


def test_since_when_is_said_by_the_day_of_publishing_where_no_first_day_is_set(
    desk: Desk, versions: tuple[UUID, UUID]
) -> None:
    desk.put(versions[1], valid_from=None, published_at="2026-02-03")
    told, _, _ = desk.answer(SINCE_170)
    assert "No first day is set for it; it was published here on 2026-02-03." in told


@pytest.mark.parametrize(
    "own",
    ["It has been in force since 1 March 2024.", "# Validity\n\nThis policy is valid from 1 March 2024."],
    ids=["of the rule", "of the document"],
)
def test_since_when_is_told_in_the_documents_own_words_where_they_say_it(desk: Desk, own: str) -> None:
    rule = f"# Hotels\n\nA hotel may cost up to 170 euros per night. {own}\n"
    desk.add(f"# Travel policy\n\nThis policy is for business trips.\n\n{rule}".encode())
    told, _, _ = desk.answer(SINCE_170)
    assert ("1 March 2024" in told, "170 euros" in told, "published here" in told) == (True, True, False)


def test_since_when_is_told_in_the_questions_language(desk: Desk) -> None:
    for limit, day in (("140", "2025-01-01"), ("170", "2026-01-01")):
        rule = f"# Hotels\n\nDie Hotelgrenze beträgt {limit} Euro pro Nacht.\n"
        desk.put(desk.add(f"# Reiserichtlinie\n\nSie gilt für Dienstreisen.\n\n{rule}".encode()), valid_from=day)
    told, _, _ = desk.answer("Seit wann gilt die Hotelgrenze von 170 Euro pro Nacht?")
    assert "gültig ab 2026-01-01, ist die erste hier aufbewahrte, die das sagt:" in told
    assert "Version 1, die davor, sagte:\n\n“Die Hotelgrenze beträgt 140 Euro pro Nacht.”" in told


@pytest.mark.parametrize("language", ["", "und", "x-none", "sv", "zh-Hant", "en-GB"])
def test_a_question_in_an_unknown_language_has_its_day_read_as_in_english(language: str) -> None:
    for read in (past_day_in, future_day_in):
        assert read("🙂 ???", language, TODAY) is None
    coming = future_day_in("What is the limit from 2027-01-01?", language, TODAY)
    assert coming is not None
    assert coming.day == date(2027, 1, 1)
