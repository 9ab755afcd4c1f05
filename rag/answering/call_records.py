"""Record the cost and outcome of a question: its rows in the ledger and its row in the log.

Each call is recorded before it starts. If the process dies, the open calls are charged by estimate when the abandoned
question is found. Charges are written as soon as they are known, but while the reader still waits for the first words,
each charge is written together with the next call. A charge the database refuses is written again when the log row is
closed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any
from uuid import UUID

from rag.errors import DatabaseUnavailable
from rag.money.ledger import Finished, Ledger
from rag.money.price_list import charge
from rag.providers.retry import Notes, lost_calls
from rag.records.chat_logs import ChatLogs, PassagePlace, QuestionEnd, SheetPage
from rag.retrieval.context_builder import document_day
from rag.retrieval.processor import waiting
from rag.types import Charge, Citation, CostDetails, Operation, Usage

log = logging.getLogger(__name__)

#: The ledger stores dollars with eight decimal places.
LEDGER_PLACES = Decimal("0.00000001")
#: The cost field for each operation. `openai` holds only the answer's cost and tokens; other chat model calls pass
#: their field.
COST_FIELDS: dict[Operation, str] = {
    "embedding": "embedding",
    "reranking": "reranking",
    "translation": "translation",
    "chat": "rewriting",
}


class CallRecords:
    """Record the paid calls for a question, and the outcome."""

    def __init__(
        self, tenant_id: str, chat_log_id: UUID, *, ledger: Ledger, chat_logs: ChatLogs, is_awaited: bool = False
    ) -> None:
        """With `is_awaited`, charges are kept until the next call begins or `write` is called."""
        self._is_awaited = is_awaited
        self._tenant_id = tenant_id
        self._chat_log_id = chat_log_id
        self._ledger = ledger
        self._chat_logs = chat_logs
        #: Each charge with its field in the cost details.
        self._charges: list[tuple[str, Charge]] = []
        #: Charges missing in the ledger, each with the id of the call it ends.
        self._unwritten: list[Finished] = []
        #: Open requests: row id, operation and expected usage.
        self._sent: deque[tuple[UUID | None, Operation, Usage]] = deque()
        self._requests = 0
        self._prices: Mapping[str, Any] | None = None

    def begin(self, operation: Operation, name: str, expected: Usage) -> UUID | None:
        """Record a call before it starts, so the call stays known if this process is killed.

        Returns `None` if the database does not answer: an answer does not wait for its bill.
        """
        try:
            call_id = self._ledger.begin(
                self._tenant_id, self._chat_log_id, operation, name, expected, finished=self._unwritten
            )
        except DatabaseUnavailable:
            return None
        self._unwritten.clear()
        return call_id

    def send(self, operation: Operation, expected: Usage) -> None:
        """Record a request before it starts; the next `record` or `drop` ends it."""
        self._requests += 1
        self._sent.append((self.begin(operation, f"request {self._requests}", expected), operation, expected))

    def drop(self) -> None:
        """Forget the last request, which failed without a bill."""
        call_id = self._sent.pop()[0]
        if call_id is not None:
            self.record(None, ends=call_id)

    @contextmanager
    def paying(self, operation: Operation, *, line: str = "") -> Iterator[None]:
        """Record the requests sent in this context before they start, and charge requests without a result."""
        notes = Notes(partial(self.send, operation), self.drop)
        with waiting(), lost_calls(lambda usage: self.charge(operation, usage, line=line), notes=notes):
            yield

    def charge(self, operation: Operation, usage: Usage, *, line: str = "") -> None:
        """Price a call and write the row. `line` is a field in `CostDetails`, by default the operation's."""
        self.record(self._priced(operation, usage), line=line)

    def price(self, usage: Usage) -> Decimal | None:
        """Return a chat call's price for the tenant, or `None` without a known price."""
        return charge("chat", usage, self._own_prices()).cost

    def finish(self, call_id: UUID | None, operation: Operation, usage: Usage | None, *, line: str = "") -> None:
        """Price a call and write the row. `usage` is `None` for a free call."""
        paid = self._priced(operation, usage) if usage is not None else None
        self.record(paid, line=line, ends=call_id)

    def record(self, paid: Charge | None, *, line: str = "", ends: UUID | None = None) -> None:
        """Write a priced call and end its request; `line` as for `charge`.

        Without `ends`, the oldest open request is ended.
        """
        if ends is None and self._sent:
            ends = self._sent.popleft()[0]
        if paid is not None:
            self._charges.append((line or COST_FIELDS.get(paid.operation, ""), paid))
        self._unwritten.append((paid, ends))
        if not self._is_awaited:
            self.write()

    def write(self) -> None:
        """Write the known charges and, from now on, each charge at once: no reader waits for words any longer."""
        self._is_awaited = False
        self.write_known()

    def write_known(self) -> None:
        """Write the known charges."""
        with suppress(DatabaseUnavailable):
            self._write()

    def costs(self) -> CostDetails:
        """Return the known costs by operation, rounded like the ledger's."""
        by_line: dict[str, Decimal] = {}
        for line, paid in self._charges:
            if paid.cost is not None and line:
                cost = paid.cost.quantize(LEDGER_PLACES, ROUND_HALF_UP)
                by_line[line] = by_line.get(line, Decimal(0)) + cost
        return CostDetails(
            **{line: float(cost) for line, cost in by_line.items()}, total=float(sum(by_line.values(), Decimal(0)))
        )

    def close(self, end: QuestionEnd) -> Decimal | None:
        """Close the log row and return the cost, or `None` with an unknown price or without a database.

        Without a database, the row is closed when the database answers again. If the process ends first, the row is
        closed as failed when somebody next looks at it.
        """
        # The answer was lost by a fault in the product, but the provider may have billed the call.
        for _, operation, expected in tuple(self._sent):
            self.charge(operation, expected)
        return self._close(end)

    def discard(self) -> None:
        """Delete the log row: there was no paid call, and nobody asked for an answer."""
        with suppress(DatabaseUnavailable):
            self._chat_logs.discard(self._tenant_id, self._chat_log_id)

    def _close(self, end: QuestionEnd) -> Decimal | None:
        try:
            self._write()
            return self._chat_logs.close(self._tenant_id, self._chat_log_id, end)
        except DatabaseUnavailable:
            log.error("the log of question %s waits to be closed: the database does not answer", self._chat_log_id)
            self._chat_logs.postpone(partial(self._close, end))
            return None

    def page_text(self, citation: Citation) -> str:
        """Return the text of the pages around a passage in the context; "" while the database is unavailable."""
        first = citation.first_read_page or citation.first_page
        last = citation.last_read_page or citation.last_page
        try:
            return self._chat_logs.page_text(self._tenant_id, citation.document_id, first, last)
        except DatabaseUnavailable:
            return ""

    def passage_places(self, citations: Sequence[Citation]) -> Mapping[UUID, PassagePlace]:
        """Return the places of the passages, with section starts; empty while the database is unavailable."""
        try:
            return self._chat_logs.passage_places(self._tenant_id, [citation.chunk_id for citation in citations])
        except DatabaseUnavailable:
            return {}

    def sheet_pages(self, citations: Sequence[Citation]) -> Mapping[UUID, Sequence[SheetPage]]:
        """Return the pages and rows of cited spreadsheets by chunk; {} while the database is unavailable."""
        try:
            return self._chat_logs.sheet_pages(self._tenant_id, [citation.chunk_id for citation in citations])
        except DatabaseUnavailable:
            return {}

    def days_of_invalid(self, document_ids: Iterable[UUID]) -> Mapping[UUID, tuple[bool, date]]:
        """Return the expired documents and the documents not yet valid; empty while the database is unavailable."""
        try:
            return self._chat_logs.days_of_invalid(self._tenant_id, list(document_ids))
        except DatabaseUnavailable:
            return {}

    def document_days(self, citations: Sequence[Citation]) -> Mapping[UUID, str]:
        """Return the dates of the passages' documents; empty if the dates cannot be read."""
        try:
            known = self._chat_logs.document_metadata(self._tenant_id, list({c.document_id for c in citations}))
        except DatabaseUnavailable:
            return {}
        days = {document_id: document_day(metadata) for document_id, metadata in known.items()}
        return {document_id: day.isoformat() for document_id, day in days.items() if day}

    def _priced(self, operation: Operation, usage: Usage) -> Charge:
        priced = charge(operation, usage, self._own_prices())
        if usage.is_estimated:
            priced = replace(priced, unit_prices={**priced.unit_prices, "tokens": "estimated"})
        return priced

    def _write(self) -> None:
        """Write the missing charges to the ledger in one transaction."""
        self._ledger.finish(self._tenant_id, self._unwritten, chat_log_id=self._chat_log_id)
        self._unwritten.clear()

    def _own_prices(self) -> Mapping[str, Any] | None:
        """Return the tenant's own prices, read once per question."""
        if self._prices is None:
            try:
                self._prices = self._chat_logs.tenant_prices(self._tenant_id)
            except DatabaseUnavailable:
                return None
        return self._prices
