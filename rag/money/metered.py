"""Wrap models to put each call on a bill: callers need not handle costs.

A request is recorded before sending. Afterwards, even after a failure, the request is charged with the provider's token
count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any, Literal

from rag.errors import ProviderError
from rag.money.bill import Bill
from rag.profiles.profile import Profile
from rag.providers import (
    READ_EVERY_SECONDS,
    ChatModel,
    Completed,
    Completion,
    Discarded,
    Embedder,
    EmbedderWrapper,
    Lost,
    Reranker,
    Reranking,
    TextDelta,
)
from rag.providers.retry import estimated_chat
from rag.types import ChatMessage, Embeddings, Operation, Usage

if TYPE_CHECKING:
    from rag.providers.registry import Providers


class MeteredChatModel:
    """A chat model which charges each call to a bill."""

    def __init__(
        self, model: ChatModel, bill: Bill, operation: Operation = "chat", *, line: str = "", name: str = ""
    ) -> None:
        """`line` names the field in `CostDetails`; by default the operation decides.

        `name` identifies a streamed call in the ledger; the default is `line`.
        """
        self.provider = model.provider
        self.model = model.model
        self.context_window = model.context_window
        self._inner = model
        self._bill = bill
        self._operation: Operation = operation
        self._line = line
        self._name = name or line

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        json_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Return the complete reply. Raises the model's errors."""
        with self._bill.paying(self._operation, line=self._line):
            reply = self._inner.complete(
                messages,
                temperature=temperature,
                maximum_output_tokens=maximum_output_tokens,
                json_schema=json_schema,
            )
        self._bill.charge(self._operation, reply.usage, line=self._line)
        return reply

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        cancel: Event,
        every_seconds: Callable[[], float] = lambda: READ_EVERY_SECONDS,
    ) -> Iterator[TextDelta | Discarded | Completed]:
        """Yield the model's events, except `Lost`, which is charged here. Raises the model's errors.

        Without the provider's token count, the call is charged by estimate. A call refused before the first word is
        free, unless the provider may have billed it.
        """
        call_id = self._bill.begin(self._operation, self._name, estimated_chat(self.provider, self.model, messages))
        received: list[str] = []
        usage: Usage | None = None
        is_free = False
        try:
            for event in self._inner.stream(
                messages,
                temperature=temperature,
                maximum_output_tokens=maximum_output_tokens,
                cancel=cancel,
                every_seconds=every_seconds,
            ):
                self._bill.keep_alive(call_id)
                if isinstance(event, Lost):
                    self._bill.charge(self._operation, event.usage, line=self._line)
                    continue
                if isinstance(event, TextDelta):
                    received.append(event.text)
                elif isinstance(event, Completed):
                    usage = event.usage
                yield event
        except ProviderError as exc:
            usage = exc.details.get("usage")
            is_free = not received and not exc.details.get("is_perhaps_billed")
            raise
        finally:
            # In `finally`, because the reader may leave at any `yield`.
            if usage is None and not is_free:
                usage = estimated_chat(self.provider, self.model, messages, "".join(received))
            self._bill.finish(call_id, self._operation, usage, line=self._line)


class MeteredEmbedder(EmbedderWrapper):
    """An embedder which charges each call to a bill."""

    def __init__(self, embedder: Embedder, bill: Bill, operation: Operation = "embedding") -> None:
        super().__init__(embedder)
        self._bill = bill
        self._operation: Operation = operation

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Return the texts' embeddings. Raises the embedder's errors.

        `usages` is empty, because the usage is on the bill.
        """
        with self._bill.paying(self._operation):
            embeddings = self._inner.embed(texts, purpose=purpose)
        for usage in embeddings.usages if self.is_paid else ():
            self._bill.charge(self._operation, usage)
        return replace(embeddings, usages=())


class MeteredReranker:
    """A reranker which charges each call to a bill."""

    def __init__(self, reranker: Reranker, bill: Bill) -> None:
        self.provider = reranker.provider
        self.model = reranker.model
        self._inner = reranker
        self._bill = bill

    def rank(self, query: str, documents: Sequence[str], *, limit: int) -> Reranking:
        """Return the documents' ranking. Raises the reranker's errors."""
        with self._bill.paying("reranking"):
            ranking = self._inner.rank(query, documents, limit=limit)
        self._bill.charge("reranking", ranking.usage)
        return ranking


class MeteredProviders:
    """The models for a search; each model charges calls to a bill."""

    def __init__(self, providers: Providers, bill: Bill) -> None:
        self._providers = providers
        self._bill = bill
        #: The model of meaning is free.
        self.meaning_for = providers.meaning_for

    def embedder_for(self, embedding_model_id: str) -> Embedder:
        """Return the embedder with this id. Raises `SettingsError` if the provider is not configured."""
        return MeteredEmbedder(self._providers.embedder_for(embedding_model_id), self._bill)

    def translation_model_for(self, profile: Profile) -> ChatModel | None:
        model = self._providers.translation_model_for(profile)
        return MeteredChatModel(model, self._bill, "translation") if model is not None else None

    def rewriting_model_for(self, profile: Profile) -> ChatModel | None:
        model = self._providers.translation_model_for(profile)
        return MeteredChatModel(model, self._bill) if model is not None else None

    def reranker_for(self, profile: Profile) -> Reranker | None:
        """Return the profile's reranker; `None` if reranking is switched off or not configured."""
        reranker = self._providers.reranker_for(profile)
        return MeteredReranker(reranker, self._bill) if reranker is not None else None
