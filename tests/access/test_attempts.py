from __future__ import annotations

import pytest

from rag.access.limits import (
    FORGOTTEN_AFTER_SECONDS,
    LONGEST_WAIT_SECONDS,
    MAXIMUM_UNKNOWN,
    UnknownSignIns,
    next_attempt,
)
from rag.errors import TooManyAttempts


def test_five_attempts_are_free() -> None:
    assert [next_attempt(failed, 0) for failed in range(5)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("failed", "wait"), [(5, 10), (6, 20), (7, 40), (8, 80), (9, 160), (10, 300), (5000, 300)])
def test_each_further_one_waits_longer_up_to_five_minutes(failed: int, wait: int) -> None:
    with pytest.raises(TooManyAttempts, match=f"Wait {wait} seconds") as caught:
        next_attempt(failed, 0)
    assert caught.value.details == {"wait_seconds": wait}
    assert next_attempt(failed, wait) == failed + 1


def test_the_seconds_named_are_those_still_to_wait() -> None:
    with pytest.raises(TooManyAttempts, match="Wait 1 second and"):
        next_attempt(5, 9.2)


def test_a_day_clears_the_count() -> None:
    assert next_attempt(5000, FORGOTTEN_AFTER_SECONDS) == 1


def test_strangers_wait_as_everybody_does() -> None:
    now = [0.0]
    strangers = UnknownSignIns(clock=lambda: now[0])
    for _ in range(5):
        strangers.count("nobody@example.com")
    with pytest.raises(TooManyAttempts):
        strangers.count("nobody@example.com")
    strangers.count("somebody-else@example.com")
    now[0] += 10
    strangers.count("nobody@example.com")
    with pytest.raises(TooManyAttempts, match="20 seconds"):
        strangers.count("nobody@example.com")


def test_the_memory_of_strangers_is_bounded() -> None:
    strangers = UnknownSignIns(clock=lambda: 0.0)
    for number in range(MAXIMUM_UNKNOWN + 50):
        strangers.count(f"{number}@example.com")
    assert len(strangers._attempts) == MAXIMUM_UNKNOWN
    assert LONGEST_WAIT_SECONDS == 300
