"""Call a function for several items in parallel. The threads are daemons and do not keep the process from ending."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")
#: Seconds between chances for the consumer to stop waiting.
TICK_SECONDS = 0.1


def in_parallel(
    function: Callable[[Item], Value], items: Sequence[Item], *, threads: int, on_tick: Callable[[], None]
) -> Iterator[list[Value]]:
    """Call `function` for each item in `threads` threads, and yield the results in groups, in any order.

    After an error, no further call starts. The results of running calls, which may be paid, are yielded before the
    first error is raised. `on_tick` is called while waiting, and may raise an error to stop.
    """
    if threads <= 1 or len(items) <= 1:
        for item in items:
            on_tick()
            yield [function(item)]
        return
    waiting = deque(items)
    #: A future for each ended call, and `None` for each ended thread.
    ended: queue.SimpleQueue[Future[Value] | None] = queue.SimpleQueue()

    def work() -> None:
        for item in _drain(waiting):
            result: Future[Value] = Future()
            try:
                result.set_result(function(item))
            except BaseException as exc:
                waiting.clear()
                result.set_exception(exc)
            ended.put(result)
        ended.put(None)

    working = min(threads, len(items))
    for _ in range(working):
        # Each thread gets a copy of the caller's context, so its work belongs to the document's trace. The threads of
        # `ThreadPoolExecutor` are no daemons: a hanging call would keep the process from ending.
        Thread(target=copy_context().run, args=(work,), name="parallel call", daemon=True).start()
    errors: list[BaseException] = []
    try:
        while working:
            ready_results = _available(ended)
            if not ready_results:
                on_tick()
            working -= ready_results.count(None)
            results = [result for result in ready_results if result is not None]
            errors += [error for result in results if (error := result.exception()) is not None]
            if ready := [result.result() for result in results if result.exception() is None]:
                yield ready
    finally:
        waiting.clear()
    if errors:
        raise errors[0]


def _drain(waiting: deque[Item]) -> Iterator[Item]:
    while True:
        try:
            item = waiting.popleft()
        except IndexError:
            return
        yield item


def _available(ended: queue.SimpleQueue[Value]) -> list[Value]:
    results: list[Value] = []
    try:
        results.append(ended.get(timeout=TICK_SECONDS))
        while True:
            results.append(ended.get_nowait())
    except queue.Empty:
        return results
