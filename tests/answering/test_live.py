from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import Any
from uuid import uuid4

import pytest

from rag.answering.concurrency_limit import AnswerSlots
from rag.answering.events import CitationsEvent, StepEvent, TextEvent
from rag.answering.jobs import RUSH, SHUT_DOWN, LiveAnswer, clean_question
from rag.errors import (
    InvalidInput,
    NotFound,
    ProviderStreamCut,
    QuestionEmpty,
    QuestionTooLong,
    Saturated,
    TooManyRequests,
)
from rag.profiles.profile import Options
from rag.records.chat_logs import ABANDONED, PARTIAL_TEXT
from rag.settings import Settings
from rag.types import Identity, MessageState, Outcome, Question
from tests.answering.scripted import add_account
from tests.patience import patient


def eventually(condition: Callable[[], object], timeout_seconds: float = 5.0) -> None:
    deadline = time.monotonic() + patient(timeout_seconds)
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def text_of(live: LiveAnswer) -> str:
    return "".join(live.tail(every_seconds=0.01, pulse_seconds=0.05))


@pytest.fixture
def colleague(desk: Any) -> Identity:
    return add_account(desk.database, "demo", "colleague@example.org")


@pytest.mark.parametrize("text", ["", "   \n\t", "\x00", "\u200b \ufeff", "\u3164"], ids=repr)
def test_an_empty_question_is_refused(text: str) -> None:
    with pytest.raises(QuestionEmpty):
        clean_question(text, maximum_characters=100)


def test_a_question_that_is_too_long_is_refused_with_both_numbers() -> None:
    with pytest.raises(QuestionTooLong, match=r"20,000 characters; at most 4,000"):
        clean_question("x" * 20_000, maximum_characters=4000)


def test_control_characters_go_and_html_stays_text() -> None:
    assert clean_question(" a\x00b\x1b\u202e <b>c</b>\r\nd\ud800 ", maximum_characters=100) == "ab <b>c</b>\nd"


def test_an_answer_is_asked_watched_and_stored(desk: Any) -> None:
    desk.model.scripts = [["You have ", "25 days [1]."], ["What about June?"]]
    live = desk.ask("How many <b>vacation</b> days?")
    assert text_of(live) == "You have 25 days [1]."
    assert live.is_done
    assert (live.state, live.outcome, live.kind) == (MessageState.COMPLETE, Outcome.ANSWERED, "cited")
    assert live.follow_ups == ("What about June?",)
    assert [step.name for step in live.follow_steps() if step] == ["searching", "found", "writing"]
    asked, answered = desk.conversations.messages(desk.identity, live.conversation_id)
    assert (asked.role, asked.content) == ("user", "How many <b>vacation</b> days?")
    assert (answered.id, answered.content, answered.state) == (live.message_id, live.text, MessageState.COMPLETE)
    assert answered.outcome is Outcome.ANSWERED
    assert answered.cost is not None
    assert answered.cost > 0
    assert answered.total_ms is not None
    assert [c["number"] for c in answered.citations] == [1]
    (conversation,) = desk.conversations.list(desk.identity)
    assert conversation.title == "How many <b>vacation</b> days?"


def test_the_question_is_stored_before_the_first_word(desk: Any) -> None:
    desk.retriever.wait_for = Event()
    live = desk.ask("Vacation?")
    asked, answer = desk.conversations.messages(desk.identity, live.conversation_id)
    assert (asked.content, answer.content, answer.state) == ("Vacation?", "", MessageState.STREAMING)
    assert desk.rows("chat_logs")[0]["outcome"] is None
    desk.retriever.wait_for.set()
    text_of(live)


def test_several_watchers_get_the_same_text(desk: Any) -> None:
    gate = Event()
    desk.model.scripts = [["One ", "two ", gate, "three [1]."]]
    live = desk.ask("Vacation?")
    seen: list[str] = []
    watchers = [threading.Thread(target=lambda: seen.append(text_of(live))) for _ in range(5)]
    for watcher in watchers:
        watcher.start()
    eventually(lambda: live.text == "One two")
    again = desk.answers.find(desk.identity, live.message_id)
    assert again is live
    assert again.snapshot().text == "One two"
    gate.set()
    for watcher in watchers:
        watcher.join(patient(5))
    assert seen == ["One two three [1]."] * 5


def test_watching_pulses_while_nothing_comes(desk: Any) -> None:
    desk.retriever.wait_for = Event()
    live = desk.ask("Vacation?")
    steps = live.follow_steps(pulse_seconds=0.02)
    # Its writer may take longer than a pulse to begin.
    assert next(step for step in steps if step) == StepEvent("searching")
    assert next(steps) is None
    assert next(live.tail(pulse_seconds=0.02)) == ""
    desk.retriever.wait_for.set()


def test_stopping_is_quick_and_keeps_what_was_written(desk: Any) -> None:
    desk.model.scripts = [["You have 25 days [1].", Event(), "never"]]
    live = desk.ask("Vacation?")
    eventually(lambda: live.text)
    live.stop()  # of a model that would never go on
    assert live.is_done
    message = desk.conversations.messages(desk.identity, live.conversation_id)[-1]
    assert (message.content, message.state) == ("You have 25 days [1].", MessageState.STOPPED)
    eventually(lambda: desk.conversations.messages(desk.identity, live.conversation_id)[-1].outcome is Outcome.STOPPED)
    live.stop()


def test_text_and_sources_do_not_wait_for_next_questions(desk: Any) -> None:
    gate = Event()
    desk.model.scripts = [["You have 25 days [1]."], [gate, "What about June?"]]
    live = desk.ask("Vacation?")
    shown = "".join(live.tail(every_seconds=0.01, pulse_seconds=0.05, until_written=True))
    assert shown == "You have 25 days [1]."
    assert not live.is_done
    assert live.written is not None
    assert [citation.number for citation in live.written.citations] == [1]
    assert (live.written.state, live.written.notice) == (MessageState.COMPLETE, "")
    gate.set()
    assert live.wait(patient(5))
    assert live.follow_ups == ("What about June?",)


def test_a_writer_that_hangs_is_left_behind_and_its_log_closed_when_it_returns(desk: Any) -> None:
    gate = Event()
    desk.model.heeds_cancel = False
    desk.model.scripts = [["You have 25 days [1].", gate, " More."]]
    live = desk.ask("Vacation?")
    eventually(lambda: live.text)
    live.stop()
    assert not gate.is_set()  # its writer still hangs
    assert text_of(live) == "You have 25 days [1]."
    assert desk.conversations.messages(desk.identity, live.conversation_id)[-1].state is MessageState.STOPPED
    assert desk.rows("chat_logs")[0]["outcome"] is None
    gate.set()
    eventually(lambda: desk.rows("chat_logs")[0]["outcome"] == "stopped")
    assert live.text == "You have 25 days [1]."


def test_stopping_the_follow_up_questions_leaves_a_complete_answer(desk: Any) -> None:
    desk.model.scripts = [["You have 25 days [1]."], [Event(), "Next?"]]
    live = desk.ask("Vacation?")
    eventually(lambda: live.citations)
    live.stop()
    assert (live.state, live.follow_ups) == (MessageState.COMPLETE, ())


def test_a_cut_stream_is_stored_with_its_notice(desk: Any) -> None:
    desk.model.scripts = [["You have", ProviderStreamCut()]]
    live = desk.ask("Vacation?")
    text_of(live)
    message = desk.conversations.messages(desk.identity, live.conversation_id)[-1]
    assert (message.content, message.state) == ("You have", MessageState.CUT)
    assert message.notice == str(ProviderStreamCut())


def test_a_question_asked_again_is_answered_without_its_answers_before(desk: Any) -> None:
    desk.model.scripts = [["One [1]."], [], ["Two [1]."], [], ["Three [1]."], []]
    first = desk.ask("Vacation?")
    text_of(first)
    for words in ("Two", "Three"):
        asked_before = len(desk.model.asked)
        live = desk.ask("Vacation?", conversation_id=first.conversation_id, is_again=True)
        assert text_of(live).startswith(words)
        sent = [message.content for message in desk.model.asked[asked_before]]
        assert not [text for text in sent if text.startswith(("One", "Two"))]


def test_a_second_question_waits_for_the_answer_to_the_first(desk: Any) -> None:
    desk.model.scripts = [["One [1].", Event()], ["Two [1]."], []]
    live = desk.ask("Vacation?")
    with pytest.raises(InvalidInput, match="still being written"):
        desk.ask("And June?", conversation_id=live.conversation_id)
    with pytest.raises(InvalidInput, match="still being written"):
        desk.another_process().ask(desk.question("And June?"), conversation_id=live.conversation_id)
    assert len(desk.rows("chat_logs")) == 1
    eventually(lambda: live.text)
    live.stop()
    desk.model.completions = ["Is June possible for vacation?"]
    second = desk.ask("And June?", conversation_id=live.conversation_id)
    text_of(second)
    assert desk.retriever.searched[-1] == "Is June possible for vacation?"
    assert len(desk.rows("chat_logs")) == 2


def test_other_peoples_answers_do_not_exist(desk: Any, colleague: Identity) -> None:
    desk.model.scripts = [["One [1].", Event()]]
    live = desk.ask("Vacation?")
    for answers in (desk.answers, desk.another_process()):
        assert answers.find(colleague, live.message_id) is None
        assert answers.active(colleague, live.conversation_id) is None
        assert answers.find(replace(desk.identity, tenant_id="other"), live.message_id) is None
    wanted = {"message_id": live.message_id, "account_id": colleague.account_id}
    assert desk.database.execute(colleague, "stop_answer", **wanted) == 0, "nor can they be stopped"
    with pytest.raises(NotFound):
        desk.answers.ask(
            Question(text="Mine now?", identity=colleague, collection=desk.collection),
            conversation_id=live.conversation_id,
        )
    with pytest.raises(NotFound):
        desk.answers.ask(
            Question(text="Mine now?", identity=replace(colleague, tenant_id="other"), collection=desk.collection)
        )


def test_another_process_follows_through_the_database_and_can_stop_it(desk: Any) -> None:
    desk.model.scripts = [["You have 25 days [1].", Event()]]
    live = desk.ask("Vacation?")
    other = desk.another_process()
    elsewhere = other.active(desk.identity, live.conversation_id)
    assert elsewhere is not None
    assert elsewhere is not live
    eventually(lambda: elsewhere.snapshot().text == "You have 25 days [1].")
    elsewhere.stop()
    assert elsewhere.is_done
    eventually(lambda: live.is_done)
    assert live.state is MessageState.STOPPED
    assert text_of(elsewhere) == "You have 25 days [1]."
    assert other.find(desk.identity, live.message_id) is None


def test_the_text_so_far_is_stored_while_it_is_written(desk: Any) -> None:
    desk.model.scripts = [["So far", Event()]]
    live = desk.ask("Vacation?")
    eventually(lambda: desk.rows("messages")[-1]["content"] == "So far")
    assert desk.rows("chat_logs")[0]["total_ms"] > 0
    assert not live.is_done


def test_deleting_the_conversation_ends_its_answer(desk: Any) -> None:
    desk.model.scripts = [["So far", Event()]]
    live = desk.ask("Vacation?")
    desk.conversations.delete(desk.identity, live.conversation_id)
    eventually(lambda: live.is_done)
    eventually(lambda: desk.rows("chat_logs")[0]["outcome"] == "stopped")
    assert desk.rows("messages") == []


def test_what_a_dead_process_left_is_closed(desk: Any) -> None:
    live = ask_and_die(desk)
    assert desk.answers.close_abandoned("demo") == 0  # it may only be slow
    assert desk.answers.close_abandoned("other", quiet_seconds=0) == 0
    assert desk.answers.close_abandoned("demo", quiet_seconds=0) == 1
    (row,) = desk.rows("chat_logs")
    assert (row["outcome"], row["answer"]) == ("failed", "Half an")
    message = desk.conversations.messages(desk.identity, live)[-1]
    assert (message.state, message.content) == (MessageState.CUT, "Half an")
    assert message.notice == f"{ABANDONED} {PARTIAL_TEXT}"
    assert desk.answers.close_abandoned("demo", quiet_seconds=0) == 0


def test_nothing_is_said_to_be_kept_where_nothing_was_written(desk: Any) -> None:
    dead = ask_and_die(desk, "")
    desk.answers.close_abandoned("demo", quiet_seconds=0)
    assert desk.conversations.messages(desk.identity, dead)[-1].notice == ABANDONED
    desk.model.scripts = [[Event()]]
    live = desk.ask("Vacation?")
    eventually(lambda: live.context is not None)
    desk.answers.stop_all()
    assert desk.conversations.messages(desk.identity, live.conversation_id)[-1].notice == SHUT_DOWN


def test_a_conversation_left_by_a_dead_process_is_usable_after_a_while(desk: Any) -> None:
    conversation_id = ask_and_die(desk)
    with pytest.raises(InvalidInput):
        desk.ask("Again?", conversation_id=conversation_id)
    with desk.database.transaction("demo") as connection:
        connection.execute("UPDATE messages SET created_at = created_at - interval '1 minute'")
        connection.execute("UPDATE chat_logs SET created_at = created_at - interval '1 minute'")
    assert desk.answers.active(desk.identity, conversation_id) is None
    desk.model.scripts, desk.model.completions = [["Yes [1]."]], ["Again?"]
    assert text_of(desk.ask("Again?", conversation_id=conversation_id)) == "Yes [1]."


def test_shutting_down_keeps_what_was_written_and_says_why(desk: Any) -> None:
    desk.model.scripts = [["So far [1]", Event()], ["And this", Event()]]
    one = desk.ask("Vacation?")
    two = desk.ask("Parking?")
    eventually(lambda: one.text and two.text)
    desk.answers.stop_all()
    for live in (one, two):
        message = desk.conversations.messages(desk.identity, live.conversation_id)[-1]
        assert (message.state, message.content) == (MessageState.CUT, live.text)
        assert message.notice == f"{SHUT_DOWN} {PARTIAL_TEXT}"
    assert [row["outcome"] for row in desk.rows("chat_logs")] == ["stopped", "stopped"]


@pytest.mark.parametrize(
    ("written", "state", "notices"),
    [
        (CitationsEvent((), state=MessageState.STOPPED), MessageState.CUT, (SHUT_DOWN,)),
        (CitationsEvent((), state=MessageState.COMPLETE), MessageState.COMPLETE, ()),
        (CitationsEvent((), state=MessageState.CUT), MessageState.CUT, ()),
    ],
    ids=["stopped by the shutdown", "whole", "cut by a limit"],
)
def test_a_shutdown_between_the_sources_and_the_end_of_an_answer_says_why(
    written: CitationsEvent, state: MessageState, notices: tuple[str, ...]
) -> None:
    live = LiveAnswer(
        message_id=uuid4(),
        conversation_id=uuid4(),
        question="Vacation?",
        owner=("demo", uuid4()),
        on_forced_end=lambda _: None,
    )
    live.take(TextEvent("So far"))
    live.notice = SHUT_DOWN
    live.take(written)
    live.stop(wait_seconds=0)
    assert (live.state, live.notices) == (state, notices)


def test_a_hundred_answers_at_once_hold_no_connection_while_they_stream(desk: Any) -> None:
    gate = Event()
    desk.answers._answerer.settings = replace(desk.answers._answerer.settings, answers_at_once=0)
    desk.model.scripts = [["You have 25 days [1].", gate] for _ in range(100)]
    desk.providers.small = None
    asked = [desk.ask(f"Vacation {n}?") for n in range(100)]
    eventually(lambda: all(live.text for live in asked), 20)
    assert len(desk.conversations.list(desk.identity)) == 100  # the pool of 20 is free
    gate.set()
    eventually(lambda: all(live.is_done for live in asked), 20)
    assert {row["outcome"] for row in desk.rows("chat_logs")} == {"answered"}


@pytest.mark.parametrize(
    ("changes", "most"),
    [({"session_id": "a" * 64}, 4), ({"session_id": ""}, 4), ({"email": "key:Intranet"}, 30)],
    ids=["person", "person_by_another_program", "key"],
)
def test_so_many_answers_are_written_for_one_person_at_once(desk: Any, changes: dict[str, str], most: int) -> None:
    who, gate = replace(desk.identity, **changes), Event()
    desk.model.scripts = [["You have 25 days [1].", gate] for _ in range(most + 1)]
    desk.providers.small = None
    with ThreadPoolExecutor(most + 6) as pool:
        questions = [Question(text=f"Vacation {n}?", identity=who, collection=desk.collection) for n in range(most + 6)]
        asking = [pool.submit(desk.answers.ask, question) for question in questions]
    refused = [one.exception() for one in asking if one.exception()]
    assert [type(exc) for exc in refused] == [TooManyRequests] * 6
    assert str(refused[0]).startswith(f"{most} answers are being written for you")
    gate.set()
    eventually(lambda: all(one.result().is_done for one in asking if not one.exception()), 20)
    assert desk.answers.ask(Question(text="Vacation?", identity=who, collection=desk.collection)).owner == (
        who.tenant_id,
        who.account_id,
    )


def ask_and_die(desk: Any, written: str = "Half an") -> Any:
    """Write to the database what a process leaves that is killed in the middle of an answer."""
    conversation = desk.conversations.create(desk.identity, desk.collection.id, "Vacation?")
    chat_log_id = desk.answerer.chat_logs.open(desk.question("Vacation?"), conversation_id=conversation.id)
    with desk.database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO messages (tenant_id, conversation_id, role, content, state, chat_log_id) "
            "VALUES ('demo', %s, 'assistant', %s, 'streaming', %s)",
            (conversation.id, written, chat_log_id),
        )
    return conversation.id


def test_answers_are_drawn_less_often_while_many_people_wait_for_their_first_word(desk: Any) -> None:
    desk.answers._answerer.settings = replace(desk.answers._answerer.settings, answers_at_once=0)
    usual = desk.answers.pace_seconds()
    desk.retriever.wait_for = Event()
    asked = [desk.ask(f"Vacation {n}?") for n in range(RUSH + 1)]
    assert desk.answers.pace_seconds() > usual
    desk.retriever.wait_for.set()
    for live in asked:
        text_of(live)
    assert desk.answers.pace_seconds() == usual


def test_who_follows_only_the_text_is_not_woken_for_steps(desk: Any) -> None:
    desk.retriever.wait_for = Event()
    desk.model.scripts = [["You have ", "25 days [1]."]]
    live = desk.ask("Vacation?", options=Options(follow_ups=0))
    eventually(lambda: live.steps)
    woken: Counter[str] = Counter()
    with live.heard_by(lambda: woken.update(["text"]), with_steps=False), live.heard_by(lambda: woken.update(["all"])):
        desk.retriever.wait_for.set()
        assert text_of(live) == "You have 25 days [1]."
        eventually(lambda: live.is_done)
    # Two pieces, the sources, the end, and that it is stored; besides them the context and the steps after the first.
    assert woken["text"] == 5
    assert woken["all"] == 5 + len(live.steps)


def test_who_waited_longest_is_next() -> None:
    turns = AnswerSlots(lambda: Settings(answers_under_way=1, answers_waiting=3))
    writing, *line = [turns.take() for _ in range(4)]
    told: dict[int, list[int]] = {number: [] for number in range(3)}
    for number, waiting in enumerate(line):
        turns.follow(waiting, told[number].append)
    writing.end()
    assert [waiting.has_come.is_set() for waiting in line] == [True, False, False]
    line[0].end()
    assert [waiting.has_come.is_set() for waiting in line] == [True, True, False]
    assert told == {0: [0], 1: [1, 0], 2: [2, 1, 0]}


def test_questions_beyond_the_limit_wait_for_their_turn_and_past_it_are_refused(desk: Any) -> None:
    limits = {"answers_at_once": 0, "key_answers_at_once": 0, "answers_under_way": 2, "answers_waiting": 2}
    desk.answers._answerer.settings = replace(desk.answers._answerer.settings, **limits)
    gates = [Event(), Event()]
    desk.model.scripts = [[gate, f"You have 25 days [1]. {n}"] for n, gate in enumerate(gates)]

    def ask() -> Any:
        return desk.ask("Vacation?", options=Options(follow_ups=0))

    assert desk.answers.has_capacity
    first, second = ask(), ask()
    eventually(lambda: not desk.model.scripts)
    assert not desk.answers.has_capacity  # before anybody waits
    third, fourth = ask(), ask()
    eventually(lambda: fourth.steps and third.steps)
    assert (third.steps, fourth.steps) == ([StepEvent("queued", "0")], [StepEvent("queued", "1")])
    assert desk.answers.is_rushed is False
    # Refused before anything of it is stored.
    stored = len(desk.rows("messages"))
    with pytest.raises(Saturated) as refusal:
        ask()
    assert (refusal.value.status, refusal.value.details["wait_seconds"]) == (503, 5)
    assert len(desk.rows("messages")) == stored == 8

    third.stop()
    assert desk.conversations.messages(desk.identity, third.conversation_id)[-1].state is MessageState.STOPPED
    eventually(lambda: fourth.steps[-1] == StepEvent("queued", "0"))
    desk.model.scripts = [["You have 25 days [1]."], ["You have 25 days [1]."]]
    gates[0].set()
    assert text_of(fourth) == "You have 25 days [1]."
    gates[1].set()
    assert {text_of(first)[-1], text_of(second)[-1]} == {"0", "1"}
    eventually(lambda: desk.answers.has_capacity)
    assert [row["outcome"] for row in desk.rows("chat_logs")].count("stopped") == 1
    assert text_of(ask())
