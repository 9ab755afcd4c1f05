from __future__ import annotations

from threading import Event, Thread
from typing import Any

from rag.answering.turns import Turns
from tests.ingestion.uploads import until


def test_a_thread_waits_for_a_turn_and_one_that_gives_its_own_lets_it_go_on() -> None:
    turns, has_turn, done = Turns(at_once=1, longest_seconds=30), Event(), Event()

    def other() -> None:
        turns.take()
        has_turn.set()
        done.wait(30)
        turns.give()

    turns.take()
    turns.take()  # one to each thread
    thread = Thread(target=other)
    thread.start()
    assert not has_turn.wait(0.05)
    turns.give()
    assert has_turn.wait(30)
    turns.give()  # it has none: the other's stays
    done.set()
    thread.join()
    assert turns._free.acquire(blocking=False)
    assert not turns._free.acquire(blocking=False)


def test_nobody_waits_for_good_behind_one_who_does_not_go_on() -> None:
    turns = Turns(at_once=1, longest_seconds=0.01)
    turns.take()
    thread = Thread(target=turns.take)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def test_no_turn_is_held_while_answers_wait_for_their_providers(desk: Any) -> None:
    desk.answers._answerer.turns._longest_seconds = 600.0
    may_write = Event()
    desk.model.scripts = [[may_write, "You have 25 days [1]."] for _ in range(5)]
    lives = [desk.answers.ask(desk.identity, None, desk.collection, f"Vacation {n}?") for n in range(5)]
    until(lambda: len(desk.model.asked) == 5)
    may_write.set()
    until(lambda: all(live.is_done for live in lives))
    assert [live.text for live in lives] == ["You have 25 days [1]."] * 5
