"""One question under way: what every step reads, and where it leaves what it did."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from rag.errors import DatabaseUnavailable, RagError, SettingsError
from rag.money.price_list import charge
from rag.profile import Profile
from rag.providers.retry import Notes, lost_calls
from rag.retrieval.ranking import Facts
from rag.types import Charge, Operation, Question, RAGDetails, SearchFilters, StepDetails, Usage

logger = logging.getLogger(__name__)

OnStep = Callable[[str, str], None]
TenantPrices = Callable[[str], Mapping[str, Any]]


class Books(Protocol):
    """Whoever writes down what a question costs: what is about to be sent, and what was paid."""

    def send(self, operation: Operation, expected: Usage) -> None:
        """Write down a request before it is made; the next `record` or `drop` is about it."""

    def drop(self) -> None:
        """Forget the request: it failed and nobody bills it."""

    def record(self, paid: Charge) -> None:
        """Write down what was paid, the moment it is known: what comes after it may fail."""


@dataclass
class Run:
    """What one question has gathered so far."""

    question: Question
    profile: Profile
    top_k: int
    text: str
    language: str
    #: Conditions of the caller.
    filters: SearchFilters
    on_step: OnStep
    tenant_prices: TenantPrices | None = None
    #: Similarities that are evidence by themselves: the second counts where no passage reaches the first.
    thresholds: tuple[float, ...] = ()
    #: What is known of the documents found, once somebody asked for it.
    facts: dict[UUID, Facts] = field(default_factory=dict)
    details: RAGDetails = field(default_factory=RAGDetails)
    charges: list[Charge] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    books: Books | None = None
    _prices: Mapping[str, Any] | None = None

    @property
    def tenant_id(self) -> str:
        return self.question.identity.tenant_id

    @contextmanager
    def step(self, name: str) -> Iterator[StepDetails]:
        """Time a step and keep what it says of itself; one that leaves its `detail` empty is not kept."""
        done = StepDetails(name=name)
        started = time.perf_counter()
        try:
            yield done
        finally:
            done.ms = ms_since(started)
            if done.detail:
                self.details.steps = [*(self.details.steps or []), done]

    def pay(self, operation: Operation, usage: Usage | None) -> None:
        """Price a call at the tenant's own prices, or the listed ones where it has none."""
        if usage is not None:
            paid = charge(operation, usage, self._own_prices())
            self.charges.append(paid)
            if self.books is not None:
                self.books.record(paid)

    @contextmanager
    def paying(self, operation: Operation) -> Iterator[None]:
        """Have the books know of calls before they are made, and pay for what they lose.

        An answer that cannot be used costs the same.
        """
        books = self.books
        notes = Notes(partial(books.send, operation), books.drop) if books is not None else None
        with lost_calls(lambda usage: self.pay(operation, usage), notes=notes):
            yield

    def skip(self, notice: str, reason: RagError) -> None:
        """Go on without a provider. Settings trouble is said in its own words: someone here can mend it."""
        logger.warning("%s (%s)", notice, reason)
        self.notices.append(f"{notice} {reason}" if isinstance(reason, SettingsError) else notice)

    def _own_prices(self) -> Mapping[str, Any] | None:
        """Read once, when there is something to pay."""
        if self._prices is None and self.tenant_prices is not None:
            try:
                self._prices = self.tenant_prices(self.tenant_id)
            except DatabaseUnavailable:
                return None
        return self._prices


def ms_since(started: float) -> float:
    return round(1000 * (time.perf_counter() - started), 3)
