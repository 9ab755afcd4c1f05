from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from rag.errors import InvalidInput, NotFound, PlaceTaken
from rag.records.chat_logs import ChatLogs
from rag.records.conversations import Conversations, title_from_question
from rag.records.privacy import Privacy
from rag.storage.database import Database, queries
from rag.types import Collection, MessageState, Question
from tests.answering.scripted import add_account


def say(database: Database, conversation_id: UUID, content: str, citations: list[dict[str, str]] | None = None) -> None:
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO messages (tenant_id, conversation_id, role, content, citations) "
            "VALUES ('demo', %s, 'assistant', %s, %s)",
            (conversation_id, content, Jsonb(citations or [])),
        )


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Vacation?", "Vacation?"),
        ("  Two \n lines ", "Two lines"),
        ("word " * 30, "word word word word word word word word word word word word…"),
        ("연" * 80, "연" * 60 + "…"),
        ("a" * 10 + " " + "b" * 70, "a" * 10 + " " + "b" * 49 + "…"),
    ],
    ids=["short", "lines", "cut at a word", "no spaces", "one long word"],
)
def test_a_title_is_the_question_cut_at_a_word(question: str, title: str) -> None:
    assert title_from_question(question) == title


def test_the_conversation_last_used_comes_first(database: Database, collection: Collection) -> None:
    conversations, somebody = Conversations(database), add_account(database, "demo", "a@example.org")
    assert conversations.list(somebody) == []
    first = conversations.create(somebody, collection.id, "First")
    second = conversations.create(somebody, collection.id, "Second")
    assert [c.id for c in conversations.list(somebody)] == [second.id, first.id]
    conversations.rename(somebody, first.id, "  Renamed\x00 ")
    with pytest.raises(InvalidInput, match="201 characters, and at most 200 are kept"):
        conversations.rename(somebody, first.id, "x" * 201)
    assert [c.title for c in conversations.list(somebody)] == ["Second", "Renamed"]
    conversations.delete(somebody, second.id)
    assert [c.id for c in conversations.list(somebody)] == [first.id]


def test_conversations_are_found_by_words_of_their_messages(database: Database, collection: Collection) -> None:
    conversations, somebody = Conversations(database), add_account(database, "demo", "a@example.org")
    leave = conversations.create(somebody, collection.id, "How many days of annual leave…")
    say(database, leave.id, "Part-time employees have 12 days. A bonus of 100% is paid.")
    parking = conversations.create(somebody, collection.id, "Parking")
    say(database, parking.id, "The garage is open.")
    foreign = conversations.create(
        add_account(database, "demo", "b@example.org"), collection.id, "Parking of somebody else"
    )
    say(database, foreign.id, "Part-time employees have no garage.")

    def found(text: str) -> list[UUID]:
        return [c.id for c in conversations.find(somebody, text, limit=8)]

    assert found("part-time") == [leave.id], "only one's own"
    assert found("PART-TIME annual") == [leave.id], "a word of the title and one of an answer"
    assert found("part-time garage") == []
    assert found("100%") == [leave.id]
    assert found("1%0") == [], "signs are searched for as they are"
    assert found("gar_ge") == []
    assert found("") == [parking.id, leave.id]
    assert conversations.find(somebody, "", limit=1)[0].id == parking.id


def test_a_name_of_spaces_is_refused(database: Database, collection: Collection) -> None:
    conversations, somebody = Conversations(database), add_account(database, "demo", "a@example.org")
    with pytest.raises(InvalidInput):
        conversations.create(somebody, collection.id, " \n ")


def test_other_peoples_conversations_do_not_exist(database: Database, collection: Collection) -> None:
    conversations = Conversations(database)
    owner = add_account(database, "demo", "a@example.org")
    mine = conversations.create(owner, collection.id, "Mine")
    say(database, mine.id, "My question")
    colleague, stranger = (
        add_account(database, "demo", "b@example.org"),
        add_account(database, "other", "c@example.org"),
    )
    for nobody in (colleague, stranger, replace(owner, tenant_id="other")):
        assert conversations.list(nobody) == []
        with pytest.raises(NotFound):
            conversations.get(nobody, mine.id)
        with pytest.raises(NotFound):
            conversations.messages(nobody, mine.id)
        with database.transaction(nobody) as connection:
            asked = {"conversation_id": mine.id, "account_id": nobody.account_id, "last": 10}
            assert connection.execute(queries["list_messages"], asked).fetchall() == [], (
                "nor does the statement itself read them"
            )
        with pytest.raises(NotFound):
            conversations.rename(nobody, mine.id, "Taken")
        with pytest.raises(NotFound):
            conversations.delete(nobody, mine.id)
    with pytest.raises(NotFound):
        conversations.create(stranger, collection.id, "In another's collection")
    with pytest.raises(NotFound):
        conversations.get(owner, uuid4())


def test_messages_come_oldest_first_and_the_last_can_be_asked_for(database: Database, collection: Collection) -> None:
    conversations, somebody = Conversations(database), add_account(database, "demo", "a@example.org")
    conversation = conversations.create(somebody, collection.id, "Talk")
    for number in range(5):
        say(database, conversation.id, str(number))
    assert [m.content for m in conversations.messages(somebody, conversation.id)] == list("01234")
    last = conversations.messages(somebody, conversation.id, last=2)
    assert [m.content for m in last] == ["3", "4"]
    assert last[0].state is MessageState.COMPLETE
    assert (last[0].outcome, last[0].cost, last[0].rating) == (None, None, None)


def test_passages_of_a_deleted_document_are_gone(database: Database, collection: Collection) -> None:
    conversations, somebody = Conversations(database), add_account(database, "demo", "a@example.org")
    conversation = conversations.create(somebody, collection.id, "Talk")
    with database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256) "
            "VALUES ('demo', %s, 't', 'f', 's') RETURNING id",
            (collection.id,),
        ).fetchone()
    assert row is not None
    kept: dict[str, Any] = {"document_id": str(row[0]), "number": 1}
    gone: dict[str, Any] = {"document_id": str(uuid4()), "number": 2}
    say(database, conversation.id, "answer", [gone, kept])
    message = conversations.messages(somebody, conversation.id)[0]
    assert message.citations == [kept]
    assert message.removed_sources == [2]
    with database.transaction("demo") as connection:
        connection.execute(
            "UPDATE documents SET status = 'binned', binned_at = now(), status_before = status WHERE id = %s", (row[0],)
        )
    message = conversations.messages(somebody, conversation.id)[0]
    assert (message.citations, message.removed_sources) == ([], [1, 2]), "the bin is no place to quote from"


#: What hangs on a conversation.
HANGING = """
SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM chat_threads),
       (SELECT count(*) FROM chat_logs WHERE conversation_id IS NOT NULL),
       (SELECT count(*) FROM help_requests WHERE conversation_id IS NOT NULL)
"""


def test_a_deleted_conversation_is_gone_at_once_and_comes_back_as_it_was(
    database: Database, collection: Collection
) -> None:
    conversations, somebody = Conversations(database), add_account(database, "demo", "a@example.org")
    before = conversations.create(somebody, collection.id, "Talk")
    conversations.pin(somebody, before.id, is_pinned=True)
    before = conversations.share(somebody, before.id, is_shared=True)
    log_id = ChatLogs(database).open(
        Question(text="How many days?", identity=somebody, collection=collection), conversation_id=before.id
    )
    say(database, before.id, 'a sentence with "quotes" and ‘others’')
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO messages (tenant_id, conversation_id, role, content, state, chat_log_id) "
            "VALUES ('demo', %s, 'assistant', 'So far', 'streaming', %s)",
            (before.id, log_id),
        )
        connection.execute(
            "INSERT INTO chat_threads (tenant_id, program, channel, thread, account_id, conversation_id) "
            "VALUES ('demo', 'slack', 'C1', '1', %s, %s)",
            (somebody.account_id, before.id),
        )
        connection.execute(
            "INSERT INTO help_requests (tenant_id, collection_id, account_id, conversation_id, chat_log_id, question) "
            "VALUES ('demo', %s, %s, %s, %s, 'How many days?')",
            (collection.id, somebody.account_id, before.id, log_id),
        )
    said = conversations.messages(somebody, before.id)

    kept = conversations.delete(somebody, before.id)
    assert conversations.list(somebody) == []
    with database.transaction("demo") as connection:
        assert connection.execute(HANGING).fetchone() == (0, 0, 0, 0), "nothing of it is kept in the database"
    conversations.put_back(somebody, kept)
    assert conversations.get(somebody, before.id) == before
    with database.transaction("demo") as connection:
        assert connection.execute(HANGING).fetchone() == (2, 1, 1, 1)
    # What was being written when it was deleted has ended.
    assert conversations.messages(somebody, before.id) == [said[0], replace(said[1], state=MessageState.STOPPED)]
    with pytest.raises(PlaceTaken):
        conversations.put_back(somebody, kept)


def test_what_an_erased_person_deleted_does_not_come_back(
    database: Database, collection: Collection, owner_conninfo: str
) -> None:
    conversations, somebody = Conversations(database), add_account(database, "demo", "a@example.org")
    kept = conversations.delete(somebody, conversations.create(somebody, collection.id, "Talk").id)
    Privacy(database, owner_conninfo).erase("demo", somebody.email)
    with pytest.raises(PlaceTaken):
        conversations.put_back(somebody, kept)
    assert conversations.list(somebody) == []
