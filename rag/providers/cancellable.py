"""Reading a stream that can be left at any moment.

A blocked call cannot be interrupted in Python. Until the stream is open a thread of its own waits for it; from then on
the caller reads, and one watching thread for all streams ends the connection of those that are no longer wanted, which
tells the provider to stop writing, and billing. A reading thread for each stream would cost as much as the reading.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Event, Lock, Thread
from typing import Generic, Protocol, TypeVar

Item = TypeVar("Item", covariant=True)
Opened = TypeVar("Opened")

#: How often it is looked whether a stream is still wanted.
LOOK_EVERY_SECONDS = 0.05


class Source(Protocol[Item]):
    """What is read."""

    def __iter__(self) -> Iterator[Item]: ...

    def close(self) -> None: ...

    def interrupt(self) -> None:
        """End a read that is blocked; called from another thread."""


def cancellable(open_source: Callable[[], Source[Item]], *, cancel: Event) -> Iterator[Item]:
    """Yield the items of `open_source()`; end within 0.1 s once `cancel` is set, even before the source is open.

    What opening or reading raises is raised here.
    """
    if cancel.is_set():
        return
    opening = _Opening(open_source)
    source = opening.wait(cancel)
    if source is None:
        return
    watched = WATCHER.watch(cancel, source.interrupt)
    try:
        for item in source:
            if cancel.is_set():
                return
            yield item
    except Exception:
        if not cancel.is_set():  # else it was the interruption
            raise
    finally:
        WATCHER.forget(watched)
        source.close()


class _Opening(Generic[Opened]):
    """A source being opened by a thread of its own."""

    def __init__(self, open_source: Callable[[], Source[Opened]]) -> None:
        self._open_source = open_source
        self._ready = Event()
        self._lock = Lock()
        self._is_left = False
        self._source: Source[Opened] | None = None
        self._error: Exception | None = None
        Thread(target=self._run, name="provider-open", daemon=True).start()

    def wait(self, cancel: Event) -> Source[Opened] | None:
        """The open source, or None when `cancel` was set before; then it is closed whenever it opens."""
        while not self._ready.wait(LOOK_EVERY_SECONDS):
            if cancel.is_set():
                break
        with self._lock:
            if self._error is not None:
                raise self._error
            self._is_left = self._source is None
            return self._source

    def _run(self) -> None:
        source, error = None, None
        try:
            source = self._open_source()
        except Exception as exc:
            error = exc
        with self._lock:
            self._source, self._error = source, error
            if source is not None and self._is_left:
                source.close()
        self._ready.set()


class _Watcher:
    """Looks after all open streams with one thread, which ends when there is none."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._watched: dict[object, tuple[Event, Callable[[], None]]] = {}
        self._is_running = False

    def watch(self, cancel: Event, end: Callable[[], None]) -> object:
        """Have `end` called once when `cancel` is set. Returns what `forget` takes."""
        key = object()
        with self._lock:
            self._watched[key] = (cancel, end)
            if not self._is_running:
                self._is_running = True
                Thread(target=self._run, name="provider-watch", daemon=True).start()
        return key

    def forget(self, key: object) -> None:
        with self._lock:
            self._watched.pop(key, None)

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._watched:
                    self._is_running = False
                    return
                # Ended under the lock: a stream that is forgotten is never touched any more.
                for key in [key for key, (cancel, _) in self._watched.items() if cancel.is_set()]:
                    self._watched.pop(key)[1]()
            time.sleep(LOOK_EVERY_SECONDS)


WATCHER = _Watcher()
