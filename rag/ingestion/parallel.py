"""Several calls at once in daemon threads: one that hangs never keeps the process from ending."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")
#: How often the consumer is asked whether it still wants to wait.
TICK_SECONDS = 0.1


def in_parallel(
    function: Callable[[Item], Value], items: Sequence[Item], *, threads: int, on_tick: Callable[[], None]
) -> Iterator[tuple[Item, Value]]:
    """Yield each item with its result as it comes, in any order; work on the items starts in theirs.

    After a failure nothing new is started; what is under way is waited for and yielded, for it may have been paid, and
    then the first error is raised. `on_tick` may raise to stop waiting.
    """
    if threads <= 1 or len(items) <= 1:
        for item in items:
            on_tick()
            yield item, function(item)
        return
    waiting: queue.SimpleQueue[Item] = queue.SimpleQueue()
    results: queue.SimpleQueue[tuple[Item, Value | None, BaseException | None]] = queue.SimpleQueue()
    failed = threading.Event()
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

    workers = [threading.Thread(target=work, name="paid call", daemon=True) for _ in range(min(threads, len(items)))]
    for worker in workers:
        worker.start()
    error: BaseException | None = None
    done = 0
    try:
        while done < len(items):
            try:
                item, value, exc = results.get(timeout=TICK_SECONDS)
            except queue.Empty:
                on_tick()
                if failed.is_set() and not any(worker.is_alive() for worker in workers) and results.empty():
                    break
                continue
            done += 1
            if exc is not None:
                error = error or exc
            else:
                yield item, value  # type: ignore[misc]  # a value of None is a result too
    finally:
        failed.set()
    if error is not None:
        raise error
