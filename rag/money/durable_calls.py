"""Wrap models for jobs which may be killed: a call's cost and result are stored in the same transaction.

A row is committed before the call, and removed in the transaction with the result and the ledger row. The row's id is
the call's idempotency key: if the call is repeated after a kill, a provider with support for keys does not bill it
again. For other providers, each kill may double-bill the calls in flight, and the document counts the repeated calls.

Every possibly billed call is in the ledger. A failed attempt is recorded when it fails. An attempt by a killed process
is recorded with the expected cost, when the call is repeated or given up.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.errors import ProviderAnswerInvalid, ProviderUnavailable
from rag.money.ledger import Ledger, usage_from_json
from rag.money.price_list import charge, read_prices
from rag.providers import Completion, CompletionModel, Embedder, EmbedderWrapper, ParsedPages, TextRecogniser
from rag.providers.embeddings import generate_embeddings_batch
from rag.providers.retry import CallGate, Wait, estimated_chat, lost_calls, sending
from rag.storage.database import Database, queries
from rag.text.tokens import estimate_tokens
from rag.types import ChatMessage, Embeddings, Operation, Usage

Value = TypeVar("Value")
#: Calls prepared for sending when there is room.
PREPARED = 2
#: After these seconds without a sign of life a call's process is taken for dead, if no worker holds the document.
QUIET_SECONDS = 60.0


@dataclass(frozen=True)
class Payer:
    """A job, and the document or collection to charge for the job's calls."""

    tenant_id: str
    #: A document, a move, or a collection.
    owner_id: UUID
    document_id: UUID | None = None
    #: Charged for calls covering several documents.
    collection_id: UUID | None = None


@dataclass(frozen=True)
class _SentCall:
    id: UUID
    sent: int
    #: The tenant's prices when the call began.
    prices: Mapping[str, Any]
    on_end: Callable[[], None]


class DurableCalls:
    """Make calls through the gate, which limits simultaneous calls. Each call has a database row. Thread-safe."""

    def __init__(self, database: Database, ledger: Ledger, gate: CallGate, wait: Wait) -> None:
        """`wait` sleeps for the given seconds.

        When the application stops, `wait` raises, which ends calls not sent yet.
        """
        self.gate = gate
        self._database = database
        self._ledger = ledger
        self._wait = wait
        self._lock = threading.Lock()
        #: The keys for this process's calls without a stored result.
        self._open: set[tuple[UUID, str, str]] = set()

    @property
    def threads(self) -> int:
        """Return the useful number of threads: the allowed simultaneous calls, plus a few which prepare calls."""
        return self.gate.maximum + PREPARED

    def receipt(self, payer: Payer, operation: Operation, known_by: Sequence[str]) -> Receipt:
        """Create an empty receipt, to be settled when the calls' result is stored.

        After a kill, a call is recognised by owner, operation, model and the texts in `known_by`.
        """
        return Receipt(self, payer, operation, known_by)

    def make(self, receipt: Receipt, function: Callable[[], Value], expected: Usage) -> tuple[_SentCall, Value]:
        """Make a call with `function`. Return the call and the function's result. Raises the function's errors."""
        payer, operation = receipt.payer, receipt.operation
        key = self._key(payer.owner_id, operation, _digest([expected.provider, expected.model, *receipt.known_by]))
        sent: list[_SentCall] = []

        def forget() -> None:
            with self._lock:
                self._open.discard(key)

        def record(usage: Usage) -> None:
            self._record(payer, operation, usage, sent[0].prices)

        def send() -> Value:
            if sent:
                self._database.execute(payer.tenant_id, "resend_paid_call", id=sent[0].id)
            else:
                sent.append(self._begin(payer, operation, key[2], expected, forget))
            with lost_calls(record), sending(str(sent[0].id), retries=0):
                try:
                    return function()
                except ProviderUnavailable:
                    # The possible cost is recorded by now; sending again is the same call.
                    self._database.execute(payer.tenant_id, "account_for_paid_call", id=sent[0].id, unsettled=0)
                    raise
                except Exception:
                    # Refused, or the answer is unusable. A retry is a new call; under the same key, the provider would
                    # send the same answer again. A kill leaves no time for this.
                    self._database.execute(payer.tenant_id, "finish_paid_call", id=sent.pop().id)
                    raise

        try:
            value = self.gate.call(send, wait=self._wait)
        except BaseException:
            forget()
            raise
        return sent[0], value

    def settle(self, connection: Connection, receipt: Receipt, call: _SentCall, usages: Iterable[Usage]) -> None:
        """Record a call's cost and remove the call's row, in the transaction with the result."""
        for usage in usages:
            self._record(receipt.payer, receipt.operation, usage, call.prices, connection)
        connection.execute(queries["finish_paid_call"], {"id": call.id})
        if call.sent > 1:
            repeated = {"document_id": receipt.payer.owner_id, "times": call.sent - 1}
            connection.execute(queries["count_repeated_call"], repeated)
        call.on_end()

    def settle_abandoned(self, tenant_id: str, *, quiet_seconds: float = QUIET_SECONDS) -> int:
        """Record the expected cost for calls abandoned by dead processes, and return their number."""
        with self._database.transaction(tenant_id) as connection:
            prices = read_prices(connection)
            rows = connection.execute(queries["take_abandoned_calls"], {"quiet_seconds": quiet_seconds}).fetchall()
            for operation, unsettled, expected, document_id, collection_id in rows:
                if expected:  # rows from versions before this column have no expected usage
                    item = charge(operation, usage_from_json(expected), prices)
                    charged = {"document_id": document_id, "collection_id": collection_id}
                    for _ in range(unsettled):
                        self._ledger.record(tenant_id, item, **charged, connection=connection)
        for touched in {row[3] for row in rows if row[3] is not None}:
            self._ledger.note_document_costs(tenant_id, touched)
        return len(rows)

    def _key(self, owner_id: UUID, operation: Operation, digest: str) -> tuple[UUID, str, str]:
        """Return a unique key for a call. Two calls at the same time have different keys, even for the same texts."""
        with self._lock:
            key, number = (owner_id, str(operation), digest), 1
            while key in self._open:
                number += 1
                key = (owner_id, str(operation), _digest([digest, str(number)]))
            self._open.add(key)
            return key

    def _begin(
        self, payer: Payer, operation: Operation, digest: str, expected: Usage, on_end: Callable[[], None]
    ) -> _SentCall:
        """Save a row for a call before the call is sent.

        If a process died during an earlier attempt, the expected cost is charged, because the attempt may have been
        billed.
        """
        row = {
            "owner_id": payer.owner_id,
            "operation": operation,
            "digest": digest,
            "expected": Jsonb(asdict(expected)),
            "document_id": payer.document_id,
            "chat_log_id": None,
        }
        with self._database.transaction(payer.tenant_id) as connection:
            prices = read_prices(connection)
            begun = connection.execute(queries["begin_paid_call"], row).fetchone()
            assert begun is not None  # noqa: S101  an INSERT … RETURNING that did not raise has a row
            call_id, sent, unsettled = begun
            if unsettled > 1:
                for _ in range(unsettled - 1):
                    self._record(payer, operation, expected, prices, connection)
                connection.execute(queries["account_for_paid_call"], {"id": call_id, "unsettled": 1})
        return _SentCall(call_id, sent, prices, on_end)

    def _record(
        self,
        payer: Payer,
        operation: Operation,
        usage: Usage,
        prices: Mapping[str, Any],
        connection: Connection | None = None,
    ) -> None:
        charged = {"document_id": payer.document_id, "collection_id": payer.collection_id}
        self._ledger.record(payer.tenant_id, charge(operation, usage, prices), **charged, connection=connection)


class Receipt:
    """The calls behind a result. `settle` records their cost when the result is stored."""

    def __init__(self, calls: DurableCalls, payer: Payer, operation: Operation, known_by: Sequence[str]) -> None:
        self.payer = payer
        self.operation: Operation = operation
        self.known_by = known_by
        self._calls = calls
        self._answered: list[tuple[_SentCall, Sequence[Usage]]] = []

    def pay(self, function: Callable[[], Value], expected: Usage, usages: Callable[[Value], Sequence[Usage]]) -> Value:
        """Make a call with `function` and keep its `usages` for `settle`. Raises the function's errors."""
        call, value = self._calls.make(self, function, expected)
        self._answered.append((call, usages(value)))
        return value

    def settle(self, connection: Connection) -> None:
        """Record the cost for all calls, in the transaction with the result. Do nothing without calls.

        The cost is recorded even if the document has been deleted.
        """
        for call, usages in self._answered:
            self._calls.settle(connection, self, call, usages)
        self._answered.clear()


class DurableEmbedder(EmbedderWrapper):
    """An embedder which records each call on a receipt."""

    def __init__(self, embedder: Embedder, receipt: Receipt) -> None:
        super().__init__(embedder)
        self._receipt = receipt

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Return the texts' embeddings, made in a single call and checked.

        `usages` is empty, because the usage is on the receipt. Raises the errors raised by `generate_embeddings_batch`.
        """

        def embed() -> Embeddings:
            return generate_embeddings_batch(texts, embedder=self._inner, batch_size=len(texts), purpose=purpose)

        if not self.is_paid:
            return embed()
        tokens = sum(estimate_tokens(text, model=self.model) for text in texts)
        expected = Usage(provider=self.provider, model=self.model, input_tokens=tokens, is_estimated=True)
        return replace(self._receipt.pay(embed, expected, lambda embeddings: embeddings.usages), usages=())


class DurableChatModel:
    """A chat model which records each call on a receipt."""

    def __init__(self, model: CompletionModel, receipt: Receipt) -> None:
        self.provider = model.provider
        self.model = model.model
        self._inner = model
        self._receipt = receipt

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        json_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Return the complete reply. Raises the model's errors; an unusable reply stays on the receipt."""

        def ask() -> Completion | ProviderAnswerInvalid:
            try:
                return self._inner.complete(
                    messages,
                    temperature=temperature,
                    maximum_output_tokens=maximum_output_tokens,
                    json_schema=json_schema,
                )
            except ProviderAnswerInvalid as exc:
                if "usage" not in exc.details:  # not even readable: worth a second try
                    raise
                return exc  # billed and in the ledger: asking again would be billed again

        def usages(reply: Completion | ProviderAnswerInvalid) -> Sequence[Usage]:
            return [reply.usage] if isinstance(reply, Completion) else []

        reply = self._receipt.pay(ask, estimated_chat(self.provider, self.model, messages), usages)
        if isinstance(reply, ProviderAnswerInvalid):
            raise reply
        return reply


class DurableRecogniser:
    """A text recogniser which records each call on a receipt."""

    def __init__(self, recogniser: TextRecogniser, receipt: Receipt) -> None:
        self.provider = recogniser.provider
        self.model = recogniser.model
        self.pages_per_request = recogniser.pages_per_request
        self._inner = recogniser
        self._receipt = receipt

    def parse(self, content: bytes, page_count: int) -> ParsedPages:
        """Return a PDF's recognised text by page. Raises the recogniser's errors."""
        expected = Usage(provider=self.provider, model=self.model, pages=page_count, is_estimated=True)
        return self._receipt.pay(lambda: self._inner.parse(content, page_count), expected, lambda pages: [pages.usage])


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()
