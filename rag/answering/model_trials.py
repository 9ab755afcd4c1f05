"""Test each configured model with a small call, which is billed and recorded like any other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from rag.access.sessions import require_admin
from rag.errors import InvalidInput, RagError
from rag.money.bill import Bill
from rag.money.metered import MeteredChatModel, MeteredEmbedder, MeteredReranker
from rag.profiles import profile_of
from rag.providers.embeddings import generate_embeddings_batch
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs, QuestionEnd
from rag.types import ChatMessage, Collection, Identity, Operation, Outcome, Question, RAGDetails

Task = Literal["chat_model", "translation_model", "embedding_model", "rerank_model"]
OPERATIONS: dict[Task, Operation] = {
    "chat_model": "chat",
    "translation_model": "translation",
    "embedding_model": "embedding",
    "rerank_model": "reranking",
}
PROMPT = "Answer with the one word: ready"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A model's test result: success or error, time and cost."""

    model: str
    provider: str
    ms: int
    #: US dollars; `None` without a known price.
    cost: Decimal | None


class ModelTrials:
    """Tests the configured models with small calls. Thread-safe."""

    def __init__(self, providers: Providers, chat_logs: ChatLogs) -> None:
        self._providers = providers
        self._chat_logs = chat_logs

    def attempt(self, identity: Identity, collection: Collection, task: Task) -> Trial:
        """Send a small question to the model responsible for `task` in a collection, and return the result. For
        administrators.

        Raises `InvalidInput` if no provider is configured for the task, and the provider's error if the call fails.
        """
        require_admin(identity)
        provider, model, ask = self._call(collection, task)
        log_id = self._chat_logs.open(
            Question(text=PROMPT, identity=identity, collection=collection), kind="evaluation"
        )
        bill = self._chat_logs.bill(identity.tenant_id, log_id)
        started, outcome, error = time.perf_counter(), Outcome.FAILED, ""
        try:
            ask(bill)
            outcome = Outcome.ANSWERED
        except RagError as exc:
            error = exc.message
            raise
        finally:
            took = round((time.perf_counter() - started) * 1000)
            details = RAGDetails()
            details.query.original = PROMPT
            self._chat_logs.close_billed(
                bill,
                QuestionEnd(
                    outcome=outcome,
                    details=details,
                    error=error,
                    model=model,
                    total_ms=took,
                ),
            )
        return Trial(model=model, provider=provider, ms=took, cost=bill.cost)

    def _call(self, collection: Collection, task: Task) -> tuple[str, str, Callable[[Bill], object]]:
        """Return provider, model, and a function which makes the test call and charges a bill."""
        profile = profile_of(collection)
        if task == "embedding_model":
            embedder = self._providers.embedder_for(self._providers.default_embedder_id(profile))
            texts = ["annual leave"]
            return (
                embedder.provider,
                embedder.model,
                lambda bill: generate_embeddings_batch(texts, embedder=MeteredEmbedder(embedder, bill)),
            )
        if task == "rerank_model":
            reranker = self._providers.reranker_for(profile)
            if reranker is None:
                raise InvalidInput(
                    "None of your providers has a model for the second sorting. Paste the key of a provider that has "
                    "one."
                )
            texts = ["Annual leave is 25 days.", "The canteen opens at noon."]
            return (
                reranker.provider,
                reranker.model,
                lambda bill: MeteredReranker(reranker, bill).rank("annual leave", texts, limit=1),
            )
        find = self._providers.chat_model_for if task == "chat_model" else self._providers.translation_model_for
        model = find(profile)
        if model is None:
            raise InvalidInput("None of your providers can write answers. Paste the key of a provider that can.")
        messages = [ChatMessage(role="user", content=PROMPT)]
        return (
            model.provider,
            model.model,
            lambda bill: MeteredChatModel(model, bill, OPERATIONS[task]).complete(
                messages, temperature=0, maximum_output_tokens=16
            ),
        )
