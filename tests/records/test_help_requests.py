from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from rag.errors import InvalidInput, NotAllowed, NotFound
from rag.records.chat_logs import ChatLogs
from rag.records.conversations import Conversations
from rag.records.help_requests import MAXIMUM_ANSWER_CHARACTERS, MAXIMUM_COMMENT_CHARACTERS, HelpRequests
from rag.storage.database import Database
from rag.types import Collection, Identity, Question, Role
from tests.answering.scripted import add_account


def person(database: Database, name: str, role: Role, group: str = "") -> Identity:
    return add_account(database, "demo", f"{name.lower()}@example.org", name=name, role=role, group=group)


def answered(database: Database, collection: Collection, asker: Identity, question: str) -> tuple[UUID, UUID]:
    """A conversation with an answer; its id and the message's."""
    conversation = Conversations(database).create(asker, collection.id, question)
    log_id = ChatLogs(database).open(
        Question(text=question, identity=asker, collection=collection), conversation_id=conversation.id
    )
    with database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO messages (tenant_id, conversation_id, role, content, chat_log_id) "
            "VALUES ('demo', %s, 'assistant', '25 days', %s) RETURNING id",
            (conversation.id, log_id),
        ).fetchone()
    assert row is not None
    return conversation.id, UUID(str(row[0]))


def test_a_question_goes_to_a_person_and_the_answer_comes_back(database: Database, collection: Collection) -> None:
    asker, manager = person(database, "Eve", Role.EMPLOYEE), person(database, "Mia", Role.MANAGER)
    conversation, message = answered(database, collection, asker, "How many days?")
    requests = HelpRequests(database)
    opened = requests.open(asker, message, reason="outdated", comment="New rules \x00since May.")
    again = requests.open(asker, message, reason="wrong", comment="New rules since May.")
    assert again.id == opened.id
    (waiting,) = requests.list(manager, status="open")
    assert (waiting.question, waiting.reason, waiting.comment) == ("How many days?", "wrong", "New rules since May.")
    assert (waiting.asker, waiting.status, requests.count_open(manager)) == ("Eve", "open", 1)
    assert requests.unseen(asker) == set()

    ended = requests.answer(manager, opened.id, " 27 since May.\r\nAsk me for more. ")
    assert (ended.answer, ended.answered_by) == ("27 since May.\nAsk me for more.", "Mia")
    assert (requests.count_open(manager), requests.unseen(asker)) == (0, {conversation})
    (shown,) = requests.of_conversation(asker, conversation)
    assert (shown.status, shown.answer, shown.seen_at) == ("answered", ended.answer, None)
    requests.mark_seen(asker, conversation)
    assert requests.unseen(asker) == set()
    # An answer that was put right is new to its asker; passing the question on again does not reopen it.
    requests.answer(manager, opened.id, "27 days.")
    assert requests.unseen(asker) == {conversation}
    assert requests.open(asker, message, reason="incomplete").status == "answered"

    # The question stays with the people in charge when the conversation is deleted.
    Conversations(database).delete(asker, conversation)
    assert requests.get(manager, opened.id).conversation_id is None


def test_only_the_asker_and_people_in_charge_reach_it(database: Database, collection: Collection) -> None:
    asker, other = person(database, "Eve", Role.EMPLOYEE), person(database, "Tom", Role.EMPLOYEE)
    manager = person(database, "Mia", Role.MANAGER, "Sales")
    conversation, message = answered(database, collection, asker, "How many days?")
    requests = HelpRequests(database)
    for nobody in (other, manager, replace(asker, tenant_id="other"), replace(asker, account_id=uuid4())):
        with pytest.raises(NotFound):
            requests.open(nobody, message)
    opened = requests.open(asker, message)
    assert requests.of_conversation(other, conversation) == []
    for act in (
        lambda: requests.list(asker),
        lambda: requests.count_open(asker),
        lambda: requests.get(asker, opened.id),
        lambda: requests.answer(asker, opened.id, "Mine"),
        lambda: requests.dismiss(asker, opened.id),
    ):
        with pytest.raises(NotAllowed):
            act()
    stranger = replace(manager, tenant_id="other", role=Role.ADMIN)
    assert requests.list(stranger) == []
    with pytest.raises(NotFound):
        requests.answer(stranger, opened.id, "Theirs")
    # A collection that is closed to a manager's group is closed with its requests.
    with database.transaction("demo") as connection:
        connection.execute("UPDATE collections SET groups = '{Legal}' WHERE id = %s", (collection.id,))
    assert (requests.list(manager), requests.count_open(manager)) == ([], 0)
    with pytest.raises(NotFound):
        requests.dismiss(manager, opened.id)
    assert requests.dismiss(replace(manager, user_group="Legal"), opened.id, "Not ours").answer == "Not ours"


def test_what_cannot_be_kept_is_refused_in_a_sentence(database: Database, collection: Collection) -> None:
    asker, manager = person(database, "Eve", Role.EMPLOYEE), person(database, "Mia", Role.MANAGER)
    _, message = answered(database, collection, asker, "How many days?")
    requests = HelpRequests(database)
    with pytest.raises(InvalidInput, match="A reason has to be one of"):
        requests.open(asker, message, reason="boring")
    with pytest.raises(InvalidInput, match="shorten"):
        requests.open(asker, message, comment="x" * (MAXIMUM_COMMENT_CHARACTERS + 1))
    opened = requests.open(asker, message)
    with pytest.raises(InvalidInput, match="write an answer"):
        requests.answer(manager, opened.id, " \n ")
    with pytest.raises(InvalidInput, match="shorten"):
        requests.answer(manager, opened.id, "x" * (MAXIMUM_ANSWER_CHARACTERS + 1))
    with pytest.raises(InvalidInput, match="shorten"):
        requests.dismiss(manager, opened.id, "x" * (MAXIMUM_ANSWER_CHARACTERS + 1))
