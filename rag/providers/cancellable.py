"""Reading a stream that can be left at any moment.

A blocked read cannot be interrupted in Python, so a thread of its own reads and the caller waits for what it brings.
Leaving ends the connection, which tells the provider to stop writing, and billing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Generic, Protocol, TypeVar

Item = TypeVar("Item", covariant=True)

#: How often the wait for the next item looks whether it is still wanted.
LOOK_EVERY_SECONDS = 0.1


class Source(Protocol[Item]):
    """What is read: the SDK's `Stream`."""

    def __iter__(self) -> Iterator[Item]: ...

    def close(self) -> None: ...


def cancellable(
    open_source: Callable[[], Source[Item]], *, interrupt: Callable[[Source[Item]], None], cancel: Event
) -> Iterator[Item]:
    """Yield the items of `open_source()`; end within 0.1 s once `cancel` is set, even before the source is open.

    `interrupt(source)` is called from the caller's thread when it leaves early, and has to end a read that is blocked.
    What opening or reading raises is raised here.
    """
    reading = _Reading(open_source)
    Thread(target=reading.run, name="provider-stream", daemon=True).start()
    try:
        while not cancel.is_set():
            try:
                step = reading.steps.get(timeout=LOOK_EVERY_SECONDS)
            except Empty:
                continue
            if isinstance(step, _End):
                if step.error is not None:
                    raise step.error
                return
            yield step
    finally:
        reading.is_left.set()
        if reading.source is not None:
            interrupt(reading.source)


class _End:
    def __init__(self, error: Exception | None) -> None:
        self.error = error


class _Reading(Generic[Item]):
    """The reader's thread and what it shares with the caller."""

    def __init__(self, open_source: Callable[[], Source[Item]]) -> None:
        self.steps: SimpleQueue[Item | _End] = SimpleQueue()
        self.is_left = Event()
        #: Set while it is open.
        self.source: Source[Item] | None = None
        self._open_source = open_source

    def run(self) -> None:
        try:
            self._read()
        except Exception as exc:
            self.steps.put(_End(exc))
        else:
            self.steps.put(_End(None))

    def _read(self) -> None:
        source = self._open_source()
        self.source = source
        try:
            if self.is_left.is_set():
                return
            for item in source:
                self.steps.put(item)
                if self.is_left.is_set():
                    return
        finally:
            self.source = None
            source.close()
