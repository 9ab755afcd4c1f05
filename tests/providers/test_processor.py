"""Few questions use the processor at once; who waits for a provider holds no place, and stuck ones hold up nobody."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rag.providers.processor import ProcessorSlots

#: Longer than anything here takes.
LONG = 30.0


class Crowd:
    """Counts who is inside at once."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.inside -= 1


def test_no_more_work_at_once_than_there_are_places() -> None:
    places, crowd = ProcessorSlots(3, LONG), Crowd()
    all_in = threading.Barrier(3)

    def work(_: int) -> None:
        with places.working(), crowd:
            all_in.wait(LONG)  # three are inside together, ten times

    with ThreadPoolExecutor(30) as pool:
        list(pool.map(work, range(30)))
    assert crowd.most == 3


def test_who_waits_holds_no_place_and_has_it_again_afterwards() -> None:
    places, crowd = ProcessorSlots(1, LONG), Crowd()
    all_wait = threading.Barrier(5)

    def work(_: int) -> None:
        with places.working():
            with places.waiting():
                all_wait.wait(LONG)
            with crowd:
                time.sleep(0.01)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, range(5)))
    assert crowd.most == 1


def test_a_thread_with_a_place_takes_no_second_one() -> None:
    places = ProcessorSlots(1, LONG)
    with places.working(), places.working():
        pass
    with places.waiting(), places.working():  # outside, waiting is nothing
        pass


def test_a_place_comes_back_whatever_happens_in_it() -> None:
    places = ProcessorSlots(1, LONG)
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"), places.working(), places.waiting():
            raise ValueError("broken")
    with places.working():
        pass


def test_the_next_goes_past_those_who_are_stuck_and_there_are_no_more_places_for_it() -> None:
    places, crowd = ProcessorSlots(1, 0.05), Crowd()
    stuck, let_go = threading.Event(), threading.Event()

    def hang() -> None:
        with places.working():
            stuck.set()
            let_go.wait(LONG)

    hanging = threading.Thread(target=hang)
    hanging.start()
    stuck.wait(LONG)
    for _ in range(3):  # the first has waited; the others take the place it left
        with places.working():
            pass
    let_go.set()
    hanging.join()
    places._stuck_seconds = LONG  # from here on a slow machine makes nobody look stuck

    def work(_: int) -> None:
        with places.working(), crowd:
            time.sleep(0.01)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))
    assert crowd.most == 1
