"""Limit how many answers this process writes at the same time.

Further questions are queued, first come first served; if the queue is full, they are refused. Beyond about a hundred
parallel answers, text no longer arrives evenly. An answer keeps the slot while waiting for a provider. Therefore the
limit is far above the number which the processor could write at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock

from rag.errors import Saturated
from rag.monitoring import metrics
from rag.settings import Settings

#: Share of used slots at which the process stops accepting more people, before anybody has to wait.
READY_SHARE = 0.9
#: Seconds between checks whether a waiting question was stopped.
LOOK_SECONDS = 0.25
RETRY_SECONDS = 5


class AnswerSlot:
    """A slot for writing a question's answer, or the question's position in the queue."""

    def __init__(self, slots: AnswerSlots) -> None:
        self._slots = slots
        self.has_come = Event()
        #: Called with the number of questions ahead, after each change.
        self.tell: Callable[[int], None] = lambda _before: None

    def wait(self, cancel: Event, tell: Callable[[int], None]) -> None:
        """Block until this question has a slot or `cancel` is set.

        The callback `tell` gets the number of questions ahead, now and after each change.
        """
        self._slots.follow(self, tell)
        while not self.has_come.wait(LOOK_SECONDS) and not cancel.is_set():
            pass

    def end(self) -> None:
        """Release the slot to the next question in the queue, or leave the queue. May be called again."""
        self._slots.end(self)


class AnswerSlots:
    """Assigns the slots to questions in order. Thread-safe."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings
        self._lock = Lock()
        self._in_use: set[AnswerSlot] = set()
        self._line: list[AnswerSlot] = []

    def take(self) -> AnswerSlot:
        """Return a free slot, or a position in the queue. Raises `Saturated` if the queue is full too."""
        settings, slot = self._settings(), AnswerSlot(self)
        with self._lock:
            if not settings.answers_under_way or len(self._in_use) < settings.answers_under_way:
                self._in_use.add(slot)
                slot.has_come.set()
                return slot
            if settings.answers_waiting and len(self._line) >= settings.answers_waiting:
                raise Saturated(wait_seconds=RETRY_SECONDS)
            self._line.append(slot)
            metrics.answers_queued.set(len(self._line))
        return slot

    @property
    def has_capacity(self) -> bool:
        """Whether this process accepts more people. Becomes false shortly before all slots are taken."""
        most = self._settings().answers_under_way
        return not most or len(self._in_use) < READY_SHARE * most

    def follow(self, slot: AnswerSlot, tell: Callable[[int], None]) -> None:
        """Call `tell` with the number of questions ahead in the queue, now and after each change."""
        with self._lock:
            slot.tell = tell
            if slot in self._line:
                tell(self._line.index(slot))

    def end(self, slot: AnswerSlot) -> None:
        """Release a slot or a position in the queue."""
        with self._lock:
            if slot in self._line:
                self._line.remove(slot)
            elif slot in self._in_use:
                self._in_use.remove(slot)
            else:
                return
            most = self._settings().answers_under_way
            while self._line and (not most or len(self._in_use) < most):
                following = self._line.pop(0)
                self._in_use.add(following)
                following.has_come.set()
            for before, waiting in enumerate(self._line):
                waiting.tell(before)
            metrics.answers_queued.set(len(self._line))
