"""Make several calls at once in daemon threads: one that hangs never keeps the process from ending."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")
Result: TypeAlias = tuple[Item, Value | None, BaseException | None]
#: How often the consumer is asked whether it still wants to wait.
TICK_SECONDS = 0.1


def in_parallel(
    function: Callable[[Item], Value], items: Sequence[Item], *, threads: int, on_tick: Callable[[], None]
) -> Iterator[tuple[Item, Value]]:
    """Yield each item with its result as it comes, in any order; work on the items starts in theirs.

    After a failure nothing new is started; calls under way are waited for and yielded, for they may have been paid, and
    then the first error is raised. `on_tick` may raise to stop waiting.
    """
    for ready in groups_in_parallel(function, items, threads=threads, on_tick=on_tick):
        yield from ready


def groups_in_parallel(
    function: Callable[[Item], Value], items: Sequence[Item], *, threads: int, on_tick: Callable[[], None]
) -> Iterator[list[tuple[Item, Value]]]:
    """As `in_parallel`, but yield together what has come since the last time: to be stored in one transaction."""
    if threads <= 1 or len(items) <= 1:
        for item in items:
            on_tick()
            yield [(item, function(item))]
        return
    results: queue.SimpleQueue[Result[Item, Value]] = queue.SimpleQueue()
    failed = threading.Event()
    workers = start_workers(function, items, results, failed, min(threads, len(items)))
    error: BaseException | None = None
    done = 0
    try:
        while done < len(items):
            found = waited_for(results)
            if not found:
                on_tick()
                if failed.is_set() and not any(worker.is_alive() for worker in workers) and results.empty():
                    break
            done += len(found)
            error = error or next((exc for _, _, exc in found if exc is not None), None)
            if ready := [(item, value) for item, value, exc in found if exc is None]:
                yield ready  # type: ignore[misc]  # a value of None is a result too
    finally:
        failed.set()
    if error is not None:
        raise error


def start_workers(
    function: Callable[[Item], Value],
    items: Sequence[Item],
    results: queue.SimpleQueue[Result[Item, Value]],
    failed: threading.Event,
    threads: int,
) -> list[threading.Thread]:
    """Start threads that take the items in their order until none is left or one has failed."""
    waiting: queue.SimpleQueue[Item] = queue.SimpleQueue()
    for item in items:
        waiting.put(item)

    def work() -> None:
        while not failed.is_set():
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                results.put((item, function(item), None))
            except BaseException as exc:
                failed.set()
                results.put((item, None, exc))

    workers = [threading.Thread(target=work, name="paid call", daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    return workers


def waited_for(results: queue.SimpleQueue[Result[Item, Value]]) -> list[Result[Item, Value]]:
    """Take the results that are there or come within a tick."""
    found: list[Result[Item, Value]] = []
    try:
        found.append(results.get(timeout=TICK_SECONDS))
        while True:
            found.append(results.get_nowait())
    except queue.Empty:
        return found
