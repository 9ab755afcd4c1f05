"""Answers wait for their turn while the process is late, and never longer than they are wanted."""

from __future__ import annotations

import time
from threading import Event, Thread

from rag.answering.admission import AT_ONCE, LATE_SECONDS, Admission


def test_no_more_begin_than_there_are_places() -> None:
    admission = Admission()
    assert [admission.try_enter() for _ in range(AT_ONCE + 1)] == [True] * AT_ONCE + [False]
    admission.leave()
    assert admission.try_enter()


def test_nothing_begins_while_the_process_is_late() -> None:
    admission = Admission()
    admission.lateness_seconds = LATE_SECONDS * 2
    assert not admission.try_enter()
    admission.lateness_seconds = 0.0
    assert admission.try_enter()


def test_an_answer_begins_when_the_one_before_it_has_its_first_word() -> None:
    admission = Admission()
    assert admission.enter(Event())
    entered = Event()

    def begin() -> None:
        admission.enter(Event())
        entered.set()

    Thread(target=begin, daemon=True).start()
    assert not entered.wait(0.1)
    admission.leave()
    assert entered.wait(2.0)


def test_who_stops_while_waiting_does_not_wait_for_the_process_to_be_on_time() -> None:
    admission = Admission()
    admission.lateness_seconds = 1.0
    cancel = Event()
    cancel.set()
    started = time.monotonic()
    assert not admission.enter(cancel)
    assert time.monotonic() - started < 1.0


def test_the_lateness_is_measured_while_answers_are_under_way_and_then_forgotten() -> None:
    admission = Admission()
    with admission.begun():
        assert admission.inside == 1
        time.sleep(0.15)
        assert admission.lateness_seconds > 0.0
    deadline = time.monotonic() + 2.0
    while admission.lateness_seconds and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (admission.inside, admission.lateness_seconds) == (0, 0.0)
