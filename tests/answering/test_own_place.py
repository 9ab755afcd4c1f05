"""The asker's own place: of two offices' rules the one of their group comes first, and the other is named."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from threading import Event
from uuid import UUID, uuid4

import pytest
from starlette.testclient import TestClient

from rag.answering.canned_answers import OWN_PLACE_FIRST
from rag.answering.events import DoneEvent, TextEvent
from rag.answering.writing import OWN_PLACE
from rag.api import questions
from rag.api.app import Api
from rag.commands.questions import add_parsers, ask_question
from rag.commands.running_server import Terminal
from rag.language import LANGUAGES
from rag.library.metadata import DocumentMetadata
from rag.profiles import AS_THE_SOURCE, HR
from rag.retrieval.own_place import is_of_place, places_of
from rag.services import Services
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Outcome, Question, Role, UploadOptions
from tests.answering.scripted import add_account
from tests.profiles.conftest import SignedIn
from tests.standins.providers import ProviderStandin

QUESTION = "How many vacation days do I have?"
POLICY = """# {title}

## Vacation

Full-time employees have {days} vacation days a year. Vacation is requested in the portal two weeks ahead.

## Sickness

Report sickness to your team lead before {hour}:30 on the first day. A doctor's note is needed from day three on.
"""

Shelve = Callable[..., UUID]


@pytest.fixture
def shelve(app_services: Services, collection: Collection) -> Shelve:
    """Adds a leave policy, in a folder if one is given."""
    admin = Identity(account_id=uuid4(), tenant_id="demo", email="", name="A", role=Role.ADMIN)

    def add(title: str, days: int, folder: str = "", *, hour: int = 9, name: str = "", text: str = POLICY) -> UUID:
        content = text.format(title=title, days=days, hour=hour).encode()
        added = app_services.pipeline.process_document(
            file=content,
            file_name=name or f"{title} {days}.md",
            tenant_id="demo",
            collection=collection,
            options=UploadOptions(generate_metadata=False),
        )
        if folder:
            DocumentMetadata(app_services.database).move(admin, [added.document_id], folder)
        return added.document_id

    return add


@pytest.fixture
def two_offices(shelve: Shelve) -> tuple[UUID, UUID]:
    return shelve("Leave policy Leeds", 25), shelve("Leave policy Utrecht", 28, hour=8)


Reply = Callable[..., tuple[str, DoneEvent]]


@pytest.fixture
def reply(app_services: Services, collection: Collection) -> Reply:
    """Asks as a person of a group; the text of the answer, and how it ended."""

    def ask(group: str, question: str = QUESTION, **changes: object) -> tuple[str, DoneEvent]:
        asked = Question(
            text=question,
            identity=add_account(app_services.database, "demo", f"{uuid4()}@demo.example", group=group),
            collection=collection,
        )
        events = list(app_services.answerer.answer(asked, profile=HR.changed(**changes), cancel=Event()))
        done = events[-1]
        assert isinstance(done, DoneEvent)
        return "".join(event.text for event in events if isinstance(event, TextEvent)), done

    return ask


UTRECHT_FIRST = OWN_PLACE_FIRST["en"].format(group="Utrecht")


def test_two_people_with_one_question_get_the_rule_of_their_own_place_first(
    reply: Reply, two_offices: tuple[UUID, UUID]
) -> None:
    leeds, utrecht = two_offices
    text, done = reply("Utrecht")
    assert UTRECHT_FIRST in text
    assert text.index("28 vacation days") < text.index("See also: Leave policy Leeds [2].")
    assert "25 vacation days" not in text
    assert [citation.document_id for citation in done.citations] == [utrecht, leeds]
    text, done = reply("Office Leeds")
    assert OWN_PLACE_FIRST["en"].format(group="Office Leeds") in text
    assert text.index("25 vacation days") < text.index("See also: Leave policy Utrecht [2].")
    assert [citation.document_id for citation in done.citations] == [leeds, utrecht]
    assert done.outcome is Outcome.ANSWERED
    # Nothing of one answer is kept for the other.
    assert reply("Utrecht")[0].index("28 vacation days") < reply("Utrecht")[0].index("Leeds [2]")


@pytest.mark.parametrize("group", ["HR", "Managers", "office", "Personalabteilung", "Busan", "Germany"])
def test_a_group_that_names_no_place_of_a_document_changes_nothing(
    group: str, reply: Reply, two_offices: tuple[UUID, UUID], shelve: Shelve
) -> None:
    shelve("HR guide for managers", 30)
    without, done = reply("")
    text, of_group = reply(group)
    assert (text, of_group.outcome) == (without, done.outcome)
    assert [c.chunk_id for c in of_group.citations] == [c.chunk_id for c in done.citations]


@pytest.mark.parametrize(
    "question",
    [
        "How many vacation days do I have in Leeds?",
        "how many vacation days in leeds?",
        "How many vacation days are there at the Leeds office?",
    ],
)
def test_a_place_in_the_question_counts_before_the_group(
    question: str, reply: Reply, two_offices: tuple[UUID, UUID]
) -> None:
    text, _ = reply("Utrecht", question)
    assert text == reply("", question)[0]
    assert "25 vacation days" in text
    assert UTRECHT_FIRST not in text


@pytest.mark.parametrize("group", ["Germany", "Büro Deutschland", "Sales DE"])
def test_folders_tell_the_country_in_any_language_and_documents_of_one_title_apart(
    group: str, reply: Reply, shelve: Shelve
) -> None:
    shelve("Leave policy", 25, "United Kingdom/HR")
    german = shelve("Leave policy", 28, "Germany/HR")
    text, done = reply(group)
    assert text.index("28 vacation days") < text.index("See also: Leave policy (United Kingdom/HR) [2].")
    assert done.citations[0].document_id == german


def test_a_rule_that_differs_by_a_name_alone_is_no_repeat_of_another_places(reply: Reply, shelve: Shelve) -> None:
    shared = "Time off is booked in the portal, two weeks ahead. Your team lead answers within five working days. "
    text = "# {title}\n\n## Time off\n\n" + 2 * shared
    for folder, name in (("United Kingdom", "Robin Vale"), ("Germany", "Mika Brandt")):
        shelve("Leave policy", 0, folder, name=f"{folder}.md", text=f"{text}Sabbaticals are approved by {name}.")
    said = reply("Germany", "Who approves sabbaticals?")[0]
    assert "approved by Mika Brandt" in said
    assert "See also: Leave policy (United Kingdom)" in said


def test_the_opening_lines_tell_the_place_where_no_title_does(reply: Reply, shelve: Shelve) -> None:
    shelve("Staff handbook", 25)
    own = shelve("Time off", 28, text=POLICY.replace("\n\n## Vacation", "\n\nBranch Utrecht · 2026\n\n## Vacation", 1))
    text, done = reply("Utrecht")
    assert UTRECHT_FIRST in text
    assert done.citations[0].document_id == own


def test_the_documents_own_words_are_never_called_into_doubt(reply: Reply, shelve: Shelve, database: Database) -> None:
    """What frames them is on no page: a day beside the title of documents that disagree, a line before the quote."""
    shelve("Leave policy Leeds", 25)
    shelve("Leave policy Utrecht", 28)
    with database.transaction("demo") as connection:
        connection.execute('UPDATE documents SET metadata = metadata || \'{"file_modified_at": "2026-03-09"}\'')
    text, done = reply("", "How many vacation days do full-time employees have in Spain?")
    assert "(2026-03-09)" in text
    assert [citation.unsupported for citation in done.citations] == [()] * len(done.citations)
    assert all(citation.is_supported for citation in done.citations)


def test_the_same_rule_everywhere_is_no_difference(reply: Reply, shelve: Shelve) -> None:
    shelve("Leave policy Leeds", 25)
    shelve("Leave policy Utrecht", 25, name="other.md")
    text, _ = reply("Utrecht")
    assert "25 vacation days" in text
    assert UTRECHT_FIRST not in text


def test_a_document_of_the_own_place_on_something_else_changes_no_reply(reply: Reply, shelve: Shelve) -> None:
    shelve("Staff handbook", 25)
    shelve("Utrecht bicycles", 3, text="# {title}\n\nThe {days} bicycles are in the yard. Keys are at the desk.")
    assert reply("Utrecht")[0] == reply("")[0]


def test_the_own_place_is_found_among_many(reply: Reply, shelve: Shelve, app_services: Services) -> None:
    for number in range(12):
        shelve(f"Leave policy {number}", 30 + number)
    own = shelve("Paid absence in Utrecht", 28, text=POLICY.replace("vacation days a year", "days of annual leave"))
    assert reply("Utrecht", top_k=2, candidate_factor=1)[1].citations[0].document_id == own


def test_without_the_steps_of_our_own_the_group_changes_nothing(reply: Reply, two_offices: tuple[UUID, UUID]) -> None:
    as_source = AS_THE_SOURCE["civil"]
    wanted = {name: value for name, value in as_source.items() if name in ("refine_order", "only_evidence")}
    assert reply("Utrecht", **wanted)[0] == reply("", **wanted)[0]


def test_the_api_and_the_search_put_the_own_place_first(
    app_services: Services, collection: Collection, two_offices: tuple[UUID, UUID], database: Database
) -> None:
    for group, own in (("Utrecht", two_offices[1]), ("Leeds", two_offices[0])):
        asker = add_account(database, "demo", f"{uuid4()}@demo.example", group=group)
        with TestClient(SignedIn(Api([questions.router]), asker)) as client:
            answer = client.post("/api/rag/chat", json={"query": QUESTION}).json()
            found = client.post("/api/rag/search", json={"query": QUESTION}).json()
        assert OWN_PLACE_FIRST["en"].format(group=group) in answer["answer"]
        assert answer["sources"][0]["postId"] == str(own)
        assert found["results"][0]["postId"] == str(own)


def test_the_commands_ask_as_people_of_a_group(
    app_services: Services, collection: Collection, two_offices: tuple[UUID, UUID], capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    add_parsers(parser.add_subparsers(dest="command"))
    for group, days in (("Utrecht", 28), ("Leeds", 25)):
        arguments = parser.parse_args(["ask", QUESTION, "--tenant", "demo", "--group", group])
        arguments.reader_languages = ()
        assert ask_question(app_services, arguments, Terminal(), Event()) == 0
        said = capsys.readouterr().out
        assert OWN_PLACE_FIRST["en"].format(group=group) in said
        assert f"{days} vacation days" in said


def prompt_of(provider_standin: ProviderStandin) -> list[dict[str, str]]:
    """Return the messages of the latest call of a chat model."""
    messages: list[dict[str, str]] = [body for kind, body in provider_standin.requests if kind == "chat"][-1][
        "messages"
    ]
    return messages


class TestWithAModel:
    """The model reads the passages of the own place first, and is told so."""

    @pytest.fixture
    def settings(self, settings: Settings, provider_standin: ProviderStandin) -> Settings:
        return replace(settings, openai_api_key="key", openai_base_url=provider_standin.openai_url)

    def test_it_is_told_which_passages_are_of_the_own_place(
        self, reply: Reply, two_offices: tuple[UUID, UUID], provider_standin: ProviderStandin
    ) -> None:
        provider_standin.reply("Full-time employees have 28 vacation days a year [1], in Leeds 25 vacation days [2].")
        text, done = reply("Utrecht", follow_ups=0)
        asked = prompt_of(provider_standin)
        assert "belongs to the group “Utrecht”. The passages [1]" in asked[0]["content"]
        assert asked[-1]["content"].index("28 vacation") < asked[-1]["content"].index("25 vacation")
        assert OWN_PLACE.format(group="Utrecht") in done.notices
        assert done.citations[0].document_id == two_offices[1]
        assert text.startswith("Full-time employees have 28")

    def test_nothing_is_said_to_it_of_other_people_and_under_the_rules_of_a_source(
        self, reply: Reply, two_offices: tuple[UUID, UUID], provider_standin: ProviderStandin
    ) -> None:
        provider_standin.reply("Full-time employees have 25 vacation days a year [1].")
        prompts = []
        for group, changes in (("", {}), ("HR", {}), ("Utrecht", {"refine_order": False})):
            _, done = reply(group, follow_ups=0, **changes)
            assert not done.notices
            prompts.append(prompt_of(provider_standin))
        assert prompts[0] == prompts[1]
        assert not any("belongs to the group" in prompt[0]["content"] for prompt in prompts)


@pytest.mark.parametrize(
    ("group", "text"),
    [
        ("Utrecht", "Verlofbeleid Utrecht"),
        ("Büro Berlin", "Berlin/Urlaub.pdf"),
        ("HR Germany", "Urlaub in Deutschland"),
        ("NL", "Leave in the Netherlands"),
        ("Netherlands", "Leave policy NL"),
        ("UK", "United Kingdom/Leave"),
        ("서울 지사", "서울지사 휴가 안내"),
        ("東京支社", "東京の休暇規定"),
        ("New York office", "new_york_leave.pdf"),
        ("Leeds (Night shift)", "Leeds"),
    ],
)
def test_a_group_names_the_place_of_a_document(group: str, text: str) -> None:
    assert is_of_place(places_of(group), text)


@pytest.mark.parametrize(
    ("group", "text"),
    [
        ("HR", "HR handbook"),
        ("Managers", "Guide for managers"),
        ("IT", "IT policy"),
        ("인사팀", "인사 규정"),
        ("人事部", "人事規定"),
        ("Paris", "Parish council"),
        ("India", "LEAVE IN UTRECHT"),
        ("New York office", "New starters"),
        ("", "Leave policy"),
    ],
)
def test_other_groups_do_not(group: str, text: str) -> None:
    assert not is_of_place(places_of(group), text)


def test_the_reply_says_it_in_each_language() -> None:
    assert set(OWN_PLACE_FIRST) == set(LANGUAGES)
    assert len(set(OWN_PLACE_FIRST.values())) == len(LANGUAGES)
    assert all("{group}" in sentence for sentence in OWN_PLACE_FIRST.values())
