"""Calls in parallel: none starts after a failure, and the results of those under way are not lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from itertools import chain

import pytest

from rag.ingestion.parallel import in_parallel
from tests.patience import patient


class Stopped(Exception):
    pass


def nothing() -> None:
    """A tick at which nobody asks to stop."""


@pytest.mark.parametrize("threads", [1, 3, 50])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_every_item_has_its_result(threads: int, count: int) -> None:
    found = chain.from_iterable(in_parallel(lambda n: n * n, range(count), threads=threads, on_tick=nothing))
    assert sorted(found) == [n * n for n in range(count)]


@pytest.mark.parametrize("threads", [1, 3])
def test_none_is_a_result(threads: int) -> None:
    function: Callable[[int], None] = lambda n: None  # noqa: E731
    assert list(chain.from_iterable(in_parallel(function, range(5), threads=threads, on_tick=nothing))) == [None] * 5


def calls_under_way() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "parallel call"]


def test_after_a_failure_nothing_starts_and_what_is_under_way_is_still_yielded() -> None:
    both, goes_on = threading.Barrier(2), threading.Event()
    started: list[int] = []
    yielded: list[int] = []

    def call(number: int) -> int:
        started.append(number)
        both.wait(patient(10))
        if number == 0:
            raise ValueError(number)
        goes_on.wait(patient(10))
        return number

    def on_tick() -> None:
        if len(calls_under_way()) == 1:  # the thread of the failure has ended
            goes_on.set()

    def consume() -> None:
        for results in in_parallel(call, range(20), threads=2, on_tick=on_tick):
            yielded.extend(results)

    with pytest.raises(ValueError, match="0"):
        consume()
    assert sorted(started) == [0, 1]
    assert yielded == [1]


def test_a_single_thread_stops_at_the_failure() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_parallel(lambda n: 1 // n, [0, 1, 2], threads=1, on_tick=nothing))


def test_a_tick_ends_the_wait_for_calls_that_hang_and_no_other_starts() -> None:
    released, ended, started = threading.Event(), threading.Semaphore(0), []

    def call(number: int) -> None:
        started.append(number)
        released.wait(patient(30))
        ended.release()

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        list(in_parallel(call, range(20), threads=2, on_tick=stop))
    threads = calls_under_way()
    assert len(threads) == 2
    assert all(thread.daemon for thread in threads), "a call that hangs keeps no process from ending"
    released.set()
    for thread in threads:
        thread.join(patient(10))
    assert sorted(started) == [0, 1]


def test_a_consumer_that_leaves_starts_nothing_more() -> None:
    started: list[int] = []
    may_go_on = threading.Event()

    def call(number: int) -> int:
        started.append(number)
        if number > 1:
            may_go_on.wait(patient(10))
        return number

    next(in_parallel(call, range(100), threads=2, on_tick=nothing))
    may_go_on.set()
    for thread in calls_under_way():
        thread.join(patient(10))
    assert len(started) <= 4


def test_the_threads_see_the_callers_context() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="")
    variable.set("document 7")
    seen = chain.from_iterable(in_parallel(lambda _: variable.get(), range(4), threads=2, on_tick=nothing))
    assert list(seen) == ["document 7"] * 4
