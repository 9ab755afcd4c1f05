"""Models on a bill: each call is charged once, whatever its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from decimal import Decimal
from threading import Event
from typing import Any, Literal

import numpy as np
import pytest

from rag.errors import ProviderAnswerInvalid, ProviderError, ProviderStreamCut, ProviderUnavailable
from rag.money.bill import Bill, Entry, costs_of, open_bill
from rag.money.metered import MeteredChatModel, MeteredEmbedder
from rag.providers import Completed, Completion, Discarded, Lost, TextDelta
from rag.providers.embeddings import generate_embeddings_batch
from rag.providers.retry import requested
from rag.text.tokens import estimate_tokens
from rag.types import Charge, ChatMessage, CostDetails, Embeddings, Usage

ASKED = [ChatMessage(role="user", content="How many days of leave do I have?")]
#: Tokens of the first piece of text.
ESTIMATED = estimate_tokens("25", model="gpt-4o")
Piece = TextDelta | Discarded | Lost | Completed | ProviderError


def used(tokens: int) -> Usage:
    return Usage(provider="openai", model="gpt-4o", input_tokens=1000, output_tokens=tokens)


@dataclass
class PiecesModel:
    """Streams these pieces, and completes with their first."""

    pieces: Sequence[Piece] = ()
    provider: str = "openai"
    model: str = "gpt-4o"
    was_closed: bool = False

    def context_window(self) -> int | None:
        return 8000

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        cancel: Event,
        every_seconds: Callable[[], float] = float,
    ) -> Iterator[TextDelta | Discarded | Lost | Completed]:
        try:
            for piece in self.pieces:
                if isinstance(piece, ProviderError):
                    raise piece
                yield piece
        finally:
            self.was_closed = True

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        json_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        with requested(lambda: used(0)):
            if isinstance(self.pieces[0], ProviderError):
                raise self.pieces[0]
        return Completion("25 days", used(2))


def streamed(model: MeteredChatModel) -> Iterator[TextDelta | Discarded | Completed]:
    return model.stream(ASKED, temperature=0, maximum_output_tokens=10, cancel=Event())


@pytest.mark.parametrize(
    ("pieces", "charged"),
    [
        pytest.param([TextDelta("25"), Completed(used(3), "stop")], [(3, False)], id="counted"),
        pytest.param([TextDelta("25"), Completed(None, "stop")], [(ESTIMATED, True)], id="not-counted"),
        pytest.param([Lost(used(7)), TextDelta("25"), Completed(used(3), "stop")], [(7, False), (3, False)], id="lost"),
        pytest.param([ProviderUnavailable()], [], id="refused"),
        pytest.param([ProviderUnavailable(is_perhaps_billed=True)], [(0, True)], id="unsure"),
        pytest.param([TextDelta("25"), ProviderStreamCut()], [(ESTIMATED, True)], id="cut"),
        pytest.param([TextDelta("25"), ProviderStreamCut(usage=used(9))], [(9, False)], id="cut-with-a-count"),
    ],
)
def test_a_stream_is_charged_by_the_count_else_by_estimate(
    pieces: Sequence[Piece], charged: list[tuple[int, bool]]
) -> None:
    bill = Bill()
    shown: list[object] = []
    try:
        shown.extend(streamed(MeteredChatModel(PiecesModel(pieces), bill, line="openai")))
    except ProviderError as exc:
        shown.append(exc)
    assert shown == [piece for piece in pieces if not isinstance(piece, Lost)]
    assert [(usage.output_tokens, usage.is_estimated) for usage in bill.usages] == charged
    assert {entry.line for entry in bill.entries} <= {"openai"}


def test_a_stream_that_is_left_is_closed_and_charged_for_its_text() -> None:
    bill, model = Bill(), PiecesModel([TextDelta("25"), TextDelta("days"), Completed(used(9), "stop")])
    for _piece in streamed(MeteredChatModel(model, bill)):
        break
    assert model.was_closed
    assert [(usage.output_tokens, usage.is_estimated) for usage in bill.usages] == [(ESTIMATED, True)]


@pytest.mark.parametrize(
    ("error", "charged"),
    [
        pytest.param(ProviderUnavailable(), [], id="free"),
        pytest.param(ProviderAnswerInvalid(usage=used(4)), [4], id="counted"),
        pytest.param(ProviderUnavailable(is_perhaps_billed=True), [0], id="unsure"),
    ],
)
def test_a_request_without_a_result_is_charged_if_it_may_be_billed(error: ProviderError, charged: list[int]) -> None:
    bill = Bill()
    model = MeteredChatModel(PiecesModel([error]), bill, "translation")
    with pytest.raises(type(error)):
        model.complete(ASKED, temperature=0, maximum_output_tokens=10)
    assert [usage.output_tokens for usage in bill.usages] == charged
    assert {entry.charge.operation for entry in bill.entries} <= {"translation"}


@dataclass
class CountingEmbedder:
    """Fails from this batch on."""

    fails_at: int = 9
    is_paid: bool = True
    batches: int = 0
    id: str = "openai/small@2"
    provider: str = "openai"
    model: str = "small"
    dimensions: int = 2
    default_threshold: float = 0.2

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        self.batches += 1
        if self.batches == self.fails_at:
            raise ProviderUnavailable
        usage = Usage(provider="openai", model="small", input_tokens=len(texts))
        return Embeddings(vectors=np.array([[1, 0]] * len(texts), dtype=np.float32), usages=(usage,))


@pytest.mark.parametrize("fails_at", [9, 2], ids=["all", "the-second-fails"])
def test_each_batch_of_vectors_is_charged_once(fails_at: int, caplog: pytest.LogCaptureFixture) -> None:
    bill = Bill()
    embedder = MeteredEmbedder(CountingEmbedder(fails_at), bill)
    try:
        made = generate_embeddings_batch(["leave"] * 5, embedder=embedder, batch_size=3)
        assert made.vectors.shape == (5, 2)
    except ProviderUnavailable:
        assert fails_at == 2
    assert [usage.input_tokens for usage in bill.usages] == ([3, 2] if fails_at > 2 else [3])
    assert not caplog.records


def test_a_free_embedder_is_not_charged() -> None:
    bill = Bill()
    generate_embeddings_batch(["leave"], embedder=MeteredEmbedder(CountingEmbedder(is_paid=False), bill))
    assert bill.entries == []


def test_the_open_bill_is_found_in_the_same_context_and_nowhere_else() -> None:
    one, other = Bill(), Bill()
    with ThreadPoolExecutor(1) as pool, one.open():
        assert open_bill() is one
        assert pool.submit(copy_context().run, open_bill).result() is one
        assert pool.submit(open_bill).result() is not one
        with other.open():
            assert open_bill() is other
        assert open_bill() is one
    assert open_bill() not in (one, other)


def test_costs_are_summed_by_line_and_an_unpriced_call_adds_nothing() -> None:
    def entry(line: str, cost: str | None) -> Entry:
        return Entry(line, Charge(operation="chat", usage=used(1), cost=None if cost is None else Decimal(cost)))

    assert costs_of([]) == CostDetails()
    costs = costs_of([entry("openai", "0.1"), entry("openai", "0.2"), entry("rewriting", None), entry("", "5")])
    assert costs == CostDetails(openai=0.3, rewriting=0.0, total=0.3)
