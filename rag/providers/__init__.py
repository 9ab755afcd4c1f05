"""Call the outside world: the only code that talks to the network.

Each provider answers to one of three small protocols. Each says, in `Usage`, what the provider itself counted, and
raises only `ProviderError`s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, Literal, Protocol, runtime_checkable

from rag.types import ChatMessage, Embeddings, Usage


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors."""

    #: `provider/model@dimensions`; stored with every vector, and never mixed with another.
    id: str
    provider: str
    model: str
    dimensions: int
    #: Least cosine similarity at which a passage may be related; differs by model.
    default_threshold: float
    #: False for the built-in embedder, whose calls cost nothing and are not logged.
    is_paid: bool

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Embed the texts in their order: (texts, dimensions) float32, rows of length 1. Batches within limits."""
        ...


@dataclass(frozen=True)
class TextDelta:
    """A piece of an answer as it arrives."""

    text: str


@dataclass(frozen=True)
class Completed:
    """The end of an answer. `usage` is None when the provider sent none."""

    usage: Usage | None
    finish_reason: str


@dataclass(frozen=True)
class Lost:
    """A request that brought nothing and was, or may have been, billed; it is sent again."""

    usage: Usage


@dataclass(frozen=True)
class Completion:
    """A whole reply."""

    text: str
    usage: Usage


@runtime_checkable
class ChatModel(Protocol):
    """Writes text."""

    provider: str
    model: str

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        cancel: Event,
        every_seconds: Callable[[], float] = ...,
    ) -> Iterator[TextDelta | Lost | Completed]:
        """Yield the answer in pieces so far apart, then `Completed`. Returns early once `cancel` is set."""
        ...

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        json_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Return the whole reply at once; as JSON by `json_schema` when given."""
        ...


@dataclass(frozen=True)
class Ranking:
    """Indexes of the documents given with their relevance 0 … 1, best first."""

    results: tuple[tuple[int, float], ...]
    usage: Usage


@runtime_checkable
class Reranker(Protocol):
    """Orders documents by their relevance to a query."""

    provider: str
    model: str

    def rank(self, query: str, documents: Sequence[str], *, limit: int) -> Ranking: ...
