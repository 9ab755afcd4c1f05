from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from rag.errors import ProviderKeyRejected, ProviderQuotaExhausted, ProviderUnavailable
from rag.providers.retry import ATTEMPTS, LONGEST_SECONDS, CallGate, retry_after_seconds


def test_a_wait_is_read_in_all_its_forms() -> None:
    assert retry_after_seconds({"Retry-After": "7"}) == 7
    assert retry_after_seconds({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert retry_after_seconds({"retry-after": in_a_minute}) == pytest.approx(60, abs=3)
    assert retry_after_seconds({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert retry_after_seconds({"retry-after": "99999999"}) == LONGEST_SECONDS
    for nothing in ({}, {"retry-after": "soon"}, {"retry-after": "nan"}, {"retry-after": ""}):
        assert retry_after_seconds(nothing) is None


def test_never_more_calls_are_in_flight_than_allowed() -> None:
    gate, most, now, lock = CallGate(3), 0, 0, threading.Lock()

    def call() -> None:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1

    threads = [threading.Thread(target=lambda: gate.call(call, wait=time.sleep)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 3
    assert gate.in_flight == 0


def test_a_refusal_for_too_many_calls_halves_the_limit_and_success_restores_it() -> None:
    gate, waits = CallGate(4), list[float]()
    answers = iter([ProviderQuotaExhausted(retry_after_seconds=0.0), None])

    def call() -> str:
        if error := next(answers):
            raise error
        return "answer"

    assert gate.call(call, wait=waits.append) == "answer"
    assert 2 <= gate.limit < 3
    for _ in range(20):
        gate.call(lambda: None, wait=waits.append)
    assert gate.limit == 4


def test_the_provider_is_waited_for_as_long_as_it_asks() -> None:
    gate, waits = CallGate(4), list[float]()
    answers = iter([ProviderUnavailable(retry_after_seconds=3.0), None])

    def call() -> None:
        if error := next(answers):
            raise error

    gate.call(call, wait=waits.append)
    assert waits == [3.0]


def test_a_long_wait_is_left_to_the_queue() -> None:
    waits = list[float]()
    with pytest.raises(ProviderQuotaExhausted):
        CallGate().call(lambda: _raise(ProviderQuotaExhausted(retry_after_seconds=600.0)), wait=waits.append)
    assert waits == []


def test_a_provider_that_stays_away_is_tried_a_few_times_only_and_a_wrong_key_once() -> None:
    waits = list[float]()
    with pytest.raises(ProviderUnavailable):
        CallGate().call(lambda: _raise(ProviderUnavailable()), wait=waits.append)
    assert waits == [0.5, 1.0, 2.0]
    assert len(waits) == ATTEMPTS - 1
    with pytest.raises(ProviderKeyRejected):
        CallGate().call(lambda: _raise(ProviderKeyRejected()), wait=waits.append)
    assert len(waits) == ATTEMPTS - 1


def _raise(error: Exception) -> None:
    raise error
