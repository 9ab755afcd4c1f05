"""Calls whose bill is stored with their result: a kill repeats none under another key, and none goes unnoticed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pytest

from rag.errors import ProviderAnswerInvalid, ProviderError, ProviderUnavailable
from rag.money.durable_calls import DurableCalls, DurableChatModel, DurableEmbedder, Payer, Receipt
from rag.money.ledger import Ledger
from rag.providers import Completion
from rag.providers.retry import CallGate, current_sending, requested
from rag.storage.database import Database
from rag.types import ChatMessage, Collection, Embeddings, Usage

ASKED = [ChatMessage(role="user", content="Describe the rules of leave.")]
USED = Usage(provider="openai", model="gpt-4o", input_tokens=1000, output_tokens=100)
ESTIMATE = Usage(provider="openai", model="gpt-4o", input_tokens=7, is_estimated=True)


@dataclass
class ScriptedModel:
    """Replies with "yes", or raises the next error; keeps the key of each request."""

    errors: list[ProviderError] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    provider: str = "openai"
    model: str = "gpt-4o"

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        json_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        self.keys.append(current_sending().key)
        with requested(lambda: ESTIMATE):
            if self.errors:
                raise self.errors.pop(0)
        return Completion(text="yes", usage=USED)


class FreeEmbedder:
    id, provider, model, dimensions, default_threshold, is_paid = "builtin/a@2", "builtin", "a", 2, 0.2, False

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        return Embeddings(vectors=np.tile(np.array([1, 0], dtype=np.float32), (len(texts), 1)))


@pytest.fixture
def calls(database: Database) -> DurableCalls:
    return process_of(database)


def process_of(database: Database) -> DurableCalls:
    """What a process that just started has; it waits for nothing."""
    return DurableCalls(database, Ledger(database), CallGate(), lambda seconds: None)


@pytest.fixture
def receipt(collection: Collection) -> Callable[[DurableCalls], Receipt]:
    payer = Payer("demo", collection.id, collection_id=collection.id)
    return lambda calls: calls.receipt(payer, "tagging", ["passage 1"])


def ask(model: ScriptedModel, receipt: Receipt) -> str:
    return DurableChatModel(model, receipt).complete(ASKED, temperature=0, maximum_output_tokens=10).text


def open_calls(database: Database) -> int:
    with database.transaction("demo") as connection:
        return len(connection.execute("SELECT FROM paid_calls WHERE unsettled > 0").fetchall())


def bills(database: Database) -> list[tuple[Decimal, bool]]:
    """The cost of each call in the ledger, and whether it is an estimate."""
    with database.transaction("demo") as connection:
        return connection.execute("SELECT cost, is_estimated FROM cost_ledger ORDER BY created_at, id").fetchall()


PAID = (Decimal("0.00350000"), False)  # gpt-4o: $2.50 a million tokens read, $10 written


def test_a_call_is_open_until_its_result_is_stored_and_billed_with_it(
    database: Database, calls: DurableCalls, receipt: Callable[[DurableCalls], Receipt]
) -> None:
    paper = receipt(calls)
    assert ask(ScriptedModel(), paper) == "yes"
    assert (open_calls(database), bills(database)) == (1, [])
    with database.transaction("demo") as connection:
        paper.settle(connection)
        paper.settle(connection)
    assert (open_calls(database), bills(database)) == (0, [PAID])


def test_a_result_that_is_not_stored_leaves_its_call_open(
    database: Database, calls: DurableCalls, receipt: Callable[[DurableCalls], Receipt]
) -> None:
    paper = receipt(calls)
    ask(ScriptedModel(), paper)

    def store_and_fail() -> None:
        with database.transaction("demo") as connection:
            paper.settle(connection)
            raise ProviderError

    with pytest.raises(ProviderError):
        store_and_fail()
    assert (open_calls(database), bills(database)) == (1, [])


def test_after_a_kill_the_call_has_the_same_key_and_the_first_attempt_is_an_estimate(
    database: Database, calls: DurableCalls, receipt: Callable[[DurableCalls], Receipt]
) -> None:
    model = ScriptedModel()
    ask(model, receipt(calls))  # this process dies with the answer
    again = receipt(process_of(database))
    ask(model, again)
    with database.transaction("demo") as connection:
        again.settle(connection)
    assert model.keys[0] == model.keys[1] != ""
    assert open_calls(database) == 0
    estimate, paid = bills(database)
    assert estimate[1]
    assert paid == PAID


def test_a_call_nobody_sends_again_is_charged_by_estimate_once(
    database: Database, calls: DurableCalls, receipt: Callable[[DurableCalls], Receipt]
) -> None:
    ask(ScriptedModel(), receipt(calls))
    later = process_of(database)
    assert later.settle_abandoned("demo", quiet_seconds=0) == 1
    assert later.settle_abandoned("demo", quiet_seconds=0) == 0
    assert [is_estimated for _, is_estimated in bills(database)] == [True]


def test_two_equal_calls_at_the_same_time_are_two_bills(
    database: Database, calls: DurableCalls, receipt: Callable[[DurableCalls], Receipt]
) -> None:
    model, papers = ScriptedModel(), [receipt(calls), receipt(calls)]
    for paper in papers:
        ask(model, paper)
    assert len(set(model.keys)) == 2
    with database.transaction("demo") as connection:
        for paper in papers:
            paper.settle(connection)
    assert (open_calls(database), bills(database)) == (0, [PAID, PAID])


def test_what_may_have_been_billed_is_sent_again_as_the_same_call(
    database: Database, calls: DurableCalls, receipt: Callable[[DurableCalls], Receipt]
) -> None:
    lost = ProviderUnavailable()
    lost.details["is_perhaps_billed"] = True
    model, paper = ScriptedModel([lost]), receipt(calls)
    ask(model, paper)
    assert model.keys[0] == model.keys[1]
    with database.transaction("demo") as connection:
        paper.settle(connection)
    assert [is_estimated for _, is_estimated in bills(database)] == [True, False]


def test_an_unreadable_answer_is_asked_for_again_under_another_key(
    database: Database, calls: DurableCalls, receipt: Callable[[DurableCalls], Receipt]
) -> None:
    model, paper = ScriptedModel([ProviderAnswerInvalid()]), receipt(calls)
    assert ask(model, paper) == "yes"
    assert len(set(model.keys)) == 2
    with database.transaction("demo") as connection:
        paper.settle(connection)
    assert (open_calls(database), bills(database)) == (0, [PAID])


def test_a_billed_answer_that_is_unusable_is_paid_once_and_not_asked_for_again(
    database: Database, calls: DurableCalls, receipt: Callable[[DurableCalls], Receipt]
) -> None:
    unusable = ProviderAnswerInvalid()
    unusable.details["usage"] = USED
    model, paper = ScriptedModel([unusable]), receipt(calls)
    with pytest.raises(ProviderAnswerInvalid):
        ask(model, paper)
    assert len(model.keys) == 1
    with database.transaction("demo") as connection:
        paper.settle(connection)
    assert (open_calls(database), bills(database)) == (0, [PAID])


def test_a_refused_call_is_free(
    database: Database, calls: DurableCalls, receipt: Callable[[DurableCalls], Receipt]
) -> None:
    with pytest.raises(ProviderError):
        ask(ScriptedModel([ProviderError()]), receipt(calls))
    assert (open_calls(database), bills(database)) == (0, [])


def test_a_free_model_has_neither_call_nor_bill(
    database: Database, calls: DurableCalls, receipt: Callable[[DurableCalls], Receipt]
) -> None:
    paper = receipt(calls)
    assert DurableEmbedder(FreeEmbedder(), paper).embed(["a", "b"], purpose="document").vectors.shape == (2, 2)
    assert open_calls(database) == 0
    with database.transaction("demo") as connection:
        paper.settle(connection)
    assert bills(database) == []
