"""Call models and other services: the interfaces, and the only code which talks to providers.

Each provider task has a small protocol. Results contain the provider's counts in `Usage`. Only `ProviderError`s are
raised. Text from documents enters a prompt only through `as_data`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, Literal, Protocol, runtime_checkable

from rag.language import N_
from rag.settings import Settings
from rag.settings.providers import Capability, ProviderSpec
from rag.types import ChatMessage, Embeddings, Usage

#: The longest time to connect.
CONNECT_TIMEOUT_SECONDS = 5.0
#: Connections per provider; idle connections are kept for the next questions. With the transports' defaults (100, of
#: which 20 stay open), concurrent askers would wait for each other's calls and open a connection for each call.
CONNECTIONS = 1000
KEPT_CONNECTIONS = 100
#: How often a streamed answer is read.
READ_EVERY_SECONDS = 0.05

#: Errors in a provider's settings, for operators.
MODEL_UNKNOWN = N_("The provider does not know this model. Check its name in the settings.")
NOT_ACCEPTED = N_("The provider did not accept this request (HTTP {status}). The log says why.")
NOT_OLLAMA = N_("No Ollama server answers at OLLAMA_URL. Check the address.")


@runtime_checkable
class Embedder(Protocol):
    """A model which turns texts into vectors."""

    #: `provider/model@dimensions`; stored with every vector, never mixed with another id.
    id: str
    provider: str
    model: str
    dimensions: int
    #: Least cosine similarity at which a passage may be related; differs by model.
    default_threshold: float
    #: False for the built-in embedder, whose calls are free and not logged.
    is_paid: bool

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Return the texts' embeddings in order: (texts, dimensions) float32, each row with length 1.

        The texts are split into requests which keep to the provider's limits.
        """
        ...


class EmbedderWrapper:
    """Base class of wrappers around an embedder, for example to bill each call. Model and id stay the same."""

    def __init__(self, embedder: Embedder) -> None:
        self.id = embedder.id
        self.provider = embedder.provider
        self.model = embedder.model
        self.dimensions = embedder.dimensions
        self.default_threshold = embedder.default_threshold
        self.is_paid = embedder.is_paid
        self._inner = embedder


@dataclass(frozen=True)
class TextDelta:
    """A piece of a streamed answer."""

    text: str


@dataclass(frozen=True)
class Completed:
    """The end of an answer. `usage` is `None` if the provider sent no count."""

    usage: Usage | None
    finish_reason: str
    #: Whether the server read only a part of the prompt.
    is_prompt_cut: bool = False


@dataclass(frozen=True)
class Lost:
    """A failed request which was, or may have been, billed. The request is sent again."""

    usage: Usage


@dataclass(frozen=True)
class Discarded:
    """All pieces before this event were the model's reasoning. The answer begins with the next piece."""


@dataclass(frozen=True)
class Completion:
    """A model's whole reply."""

    text: str
    usage: Usage


class CompletionModel(Protocol):
    """A chat model which returns the whole reply, without streaming."""

    provider: str
    model: str

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        json_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Return the whole reply. With `json_schema`, the reply is JSON."""
        ...


@runtime_checkable
class ChatModel(CompletionModel, Protocol):
    """A chat model which returns the whole reply, or a stream."""

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        cancel: Event,
        every_seconds: Callable[[], float] = ...,
    ) -> Iterator[TextDelta | Discarded | Lost | Completed]:
        """Yield the answer in pieces, `every_seconds` apart, then `Completed`. Returns early when `cancel` is set."""
        ...

    def context_window(self) -> int | None:
        """Return the server's limit for prompt and answer together, in tokens; `None` if unknown."""
        ...


@dataclass(frozen=True)
class Reranking:
    """Document indexes with their relevance (0 to 1), best first."""

    results: tuple[tuple[int, float], ...]
    usage: Usage


@runtime_checkable
class Reranker(Protocol):
    """Orders documents by their relevance to a query."""

    provider: str
    model: str

    def rank(self, query: str, documents: Sequence[str], *, limit: int) -> Reranking: ...


@dataclass(frozen=True)
class ParsedPages:
    """Texts by page, counted from 1 in the file sent, and the billed usage."""

    texts: Mapping[int, str]
    usage: Usage


class TextRecogniser(Protocol):
    """Reads the text on scanned pages."""

    provider: str
    model: str
    #: The most pages in a call.
    pages_per_request: int

    def parse(self, content: bytes, page_count: int) -> ParsedPages:
        """Return the text of each page in a PDF, "" for a page without text. Raises `ProviderError`s."""
        ...


class Connection:
    """A configured provider, which creates its models. Closing the connection closes the models' connections too.

    A subclass has a method for each capability in the provider table: chat_model, embedder, reranker, recogniser.
    """

    def __init__(self, spec: ProviderSpec, settings: Settings) -> None:
        self.spec = spec
        self.settings = settings

    def chat_model(self, model: str) -> ChatModel:
        raise NotImplementedError

    def embedder(self, model: str, dimensions: int) -> Embedder:
        raise NotImplementedError

    def reranker(self, model: str) -> Reranker:
        raise NotImplementedError

    def recogniser(self) -> TextRecogniser:
        raise NotImplementedError

    def probe(self, *, timeout_seconds: float) -> None:
        """Test the provider with a free call. Raises `ProviderError`s."""
        raise NotImplementedError

    def models(self, capability: Capability, *, timeout_seconds: float) -> list[str]:
        """List the names of the provider's models for a task with a free call. Raises `ProviderError`s.

        Empty if the provider has no list.
        """
        return []

    def close(self) -> None:
        """Close the connections to the provider."""


# Foreign text in prompts

#: Invisible characters which may hide within a mark.
_UNSEEN = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
_GAP = rf"[\s{_UNSEEN}]*+"
_NAMES = ("passage", "question", "conversation", "document", "system", "assistant", "user", "instruction", "rules")
#: Matches any lookalike opening bracket before one of our names or before the bars and words in chat templates.
_MARK = re.compile(
    rf"[<＜﹤](?={_GAP}[/／\\]?{_GAP}(?:"
    + "|".join(_GAP.join(name) for name in _NAMES)
    + rf"|[|｜]|<?{_GAP}SYS\b|/?s>|/?{_GAP}(?:start|end)_of_turn|/?think|/?tool))",
    re.IGNORECASE,
)
_INSTRUCTION_MARK = re.compile(r"\[(?=/?INST\])", re.IGNORECASE)


def as_data(name: str, text: str, *, title: str | None = None) -> str:
    """Wrap text from documents or people in `<name>` and `</name>`, with its title, for a prompt.

    Our instructions are outside these tags. Imitations of the tags, or of a chat template's markers, in the text are
    changed. Therefore the text cannot end this part of the prompt.
    """
    inside = defused(text) if title is None else f"Title: {defused(' '.join(title.split()))}\n\n{defused(text)}"
    return f"<{name}>\n{inside}\n</{name}>"


def defused(text: str) -> str:
    """Return a text without characters which could end its part of the prompt, or imitate a different speaker."""
    return _INSTRUCTION_MARK.sub("［", _MARK.sub("‹", text))
