"""A flood of wrong passwords: few are hashed at once, and whoever comes then is served all the same."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from rag.access.passwords import MOST_WAITING, PasswordQueue
from rag.errors import TooManyAttempts
from tests.patience import patient


class Hasher:
    """Work that lasts until it is let go, and notes what was done in which order."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.go = threading.Event()
        self.begun = threading.Event()

    def __call__(self, name: str) -> str:
        self.begun.set()
        assert self.go.wait(patient(10))
        self.done.append(name)
        return name


async def arrived(queue: PasswordQueue, hasher: Hasher, names: list[str], **how: Any) -> list[asyncio.Task[str]]:
    """Tasks that have come to the queue in this order."""
    tasks = []
    for name in names:
        tasks.append(asyncio.ensure_future(queue.run(hasher, name, **how)))
        await asyncio.sleep(0)
    return tasks


async def at_work(hasher: Hasher) -> None:
    await asyncio.to_thread(hasher.begun.wait, 10)


def run(scene: Callable[[PasswordQueue, Hasher], object]) -> None:
    asyncio.run(scene(PasswordQueue(at_once=1), Hasher()))  # type: ignore[arg-type]


def test_known_browsers_come_first_and_then_who_came_last() -> None:
    async def scene(queue: PasswordQueue, hasher: Hasher) -> None:
        tasks = await arrived(queue, hasher, ["first"])
        await at_work(hasher)
        tasks += await arrived(queue, hasher, ["a", "b"])
        tasks += await arrived(queue, hasher, ["known 1", "known 2"], is_known=True)
        tasks += await arrived(queue, hasher, ["c"])
        hasher.go.set()
        await asyncio.gather(*tasks)
        assert hasher.done == ["first", "known 1", "known 2", "c", "b", "a"]

    run(scene)


def test_in_a_flood_the_first_are_turned_away_at_once_and_the_last_is_served() -> None:
    async def scene(queue: PasswordQueue, hasher: Hasher) -> None:
        flood = await arrived(queue, hasher, [f"wrong {number}" for number in range(71)])
        await at_work(hasher)
        genuine = (await arrived(queue, hasher, ["genuine"]))[0]
        for task in flood[1 : 71 - (MOST_WAITING - 1)]:
            with pytest.raises(TooManyAttempts, match="Wait 3 seconds") as caught:
                await task
            assert caught.value.details == {"wait_seconds": 3}
        hasher.go.set()
        assert await genuine == "genuine"
        assert hasher.done[:2] == ["wrong 0", "genuine"]
        await asyncio.gather(*flood, return_exceptions=True)

    run(scene)


def test_a_known_browser_is_served_in_a_flood_that_goes_on() -> None:
    async def scene(queue: PasswordQueue, hasher: Hasher) -> None:
        flood = await arrived(queue, hasher, ["wrong"])
        await at_work(hasher)
        known = (await arrived(queue, hasher, ["known"], is_known=True))[0]
        flood += await arrived(queue, hasher, [f"wrong {number}" for number in range(100)])
        assert not known.done()
        hasher.go.set()
        await asyncio.gather(known, *flood, return_exceptions=True)
        assert hasher.done[:2] == ["wrong", "known"]

    run(scene)


def test_a_browser_that_asks_once_comes_before_one_that_asks_again_and_again() -> None:
    async def scene(queue: PasswordQueue, hasher: Hasher) -> None:
        flood = await arrived(queue, hasher, ["wrong"], source="attacker")
        await at_work(hasher)
        genuine = (await arrived(queue, hasher, ["genuine"], source="own"))[0]
        flood += await arrived(queue, hasher, [f"wrong {number}" for number in range(100)], source="attacker")
        hasher.go.set()
        assert await genuine == "genuine"
        assert hasher.done[:2] == ["wrong", "genuine"]
        await asyncio.gather(*flood, return_exceptions=True)

    run(scene)


def test_who_leaves_frees_their_place() -> None:
    async def scene(queue: PasswordQueue, hasher: Hasher) -> None:
        first, second, third = await arrived(queue, hasher, ["first", "second", "third"])
        await at_work(hasher)
        third.cancel()
        hasher.go.set()
        assert [await first, await second] == ["first", "second"]
        assert await queue.run(hasher, "fourth") == "fourth"
        assert hasher.done == ["first", "second", "fourth"]

    run(scene)
