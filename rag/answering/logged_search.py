"""Search for API clients without writing an answer, and log each paid search with the cost.

The log row has the kind `search`, which statistics about people's questions leave out. The row is opened before the
first paid call: a call is billed even if the process is killed. A free search has no log row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from uuid import UUID

from rag.errors import BudgetSpent, DatabaseUnavailable, RagError
from rag.money.bill import QuestionBill
from rag.money.metered import MeteredEmbedder
from rag.profiles.profile import MAXIMUM_CANDIDATES, Options, Profile
from rag.providers import Embedder
from rag.providers.embeddings import generate_embeddings_batch
from rag.records.chat_logs import ChatLogs, QuestionEnd
from rag.retrieval.retriever import RetrievalResult, Retriever
from rag.types import Embeddings, Identity, Outcome, Question, RAGDetails

#: A context budget in tokens, larger than any search result.
NO_BUDGET = 200_000
#: Leading characters in an embedded text which name the log row.
LOGGED_CHARACTERS = 200


class Searches:
    """Runs searches and embeddings for API clients, and records their costs. Thread-safe."""

    def __init__(
        self,
        retriever: Retriever,
        chat_logs: ChatLogs,
        *,
        stop_spending: Callable[[Identity], str] = lambda _identity: "",
    ) -> None:
        """`stop_spending` returns the reason why a person may not use paid calls, or "" if they may."""
        self._stop_spending = stop_spending
        self._retriever = retriever
        self._chat_logs = chat_logs

    def search(
        self,
        question: Question,
        *,
        profile: Profile,
        top_k: int | None = None,
        options: Options | None = None,
        for_model: bool = True,
    ) -> RetrievalResult:
        """Search like `Retriever.retrieve`, which documents the errors, and record the cost.

        `options` decide whether only passages which may answer are returned; without this option, the profile decides.
        If `for_model` is false, the passages are for a reader and the model's token budget does not apply.
        """
        if not for_model:
            profile = profile.changed(context_tokens=NO_BUDGET, context_characters=0)
        options = options or Options()
        if profile.search.every_result and top_k is None and "top_k" not in options.settings:
            profile, top_k = profile.changed(candidate_factor=1, neighbour_factor=1), MAXIMUM_CANDIDATES
        if "only_evidence" not in options.settings and not profile.ranking.searches_only_evidence:
            options = options.changed(only_evidence=False)
        why = self._stop_spending(question.identity) if profile.spends else ""
        if why:
            profile = profile.model_copy(update={"spends": False})
        open_log = partial(self._chat_logs.open, question, kind="search")
        bill = self._chat_logs.bill_of(question.identity.tenant_id, open_log)
        started = time.perf_counter()
        try:
            with bill.open():
                result = self._retriever.retrieve(question, profile=profile, top_k=top_k, options=options)
        except RagError as exc:
            details = RAGDetails()
            details.query.original = question.text
            self._close(bill, Outcome.FAILED, details, started, error=exc.message)
            raise
        if why:
            result = replace(result, response=replace(result.response, notices=(*result.response.notices, why)))
        response = result.response
        outcome = Outcome.NO_CONTEXT
        if response.citations:
            outcome = Outcome.PERHAPS if response.evidence == "perhaps" else Outcome.ANSWERED
        document_ids = list(dict.fromkeys(citation.document_id for citation in response.citations))
        self._close(bill, outcome, response.rag_details, started, document_ids=document_ids)
        return result

    def embed(self, question: Question, texts: Sequence[str], *, embedder: Embedder) -> Embeddings:
        """Embed texts for an API client and return the vectors. For a paid call, the first text is logged in place of a
        question.

        Raises `ProviderError` if the provider fails, and `BudgetSpent` if paid calls are not allowed.
        """
        if not embedder.is_paid:
            return generate_embeddings_batch(texts, embedder=embedder)
        if why := self._stop_spending(question.identity):
            raise BudgetSpent(why)
        started = time.perf_counter()
        question = replace(question, text=question.text[:LOGGED_CHARACTERS])
        log_id = self._chat_logs.open(question, kind="search")
        bill = self._chat_logs.bill(question.identity.tenant_id, log_id)
        details = RAGDetails()
        details.query.original = question.text
        outcome, error = Outcome.FAILED, ""
        try:
            embeddings = generate_embeddings_batch(texts, embedder=MeteredEmbedder(embedder, bill))
            outcome = Outcome.ANSWERED
            return replace(embeddings, usages=bill.usages)
        except RagError as exc:
            error = exc.message
            raise
        finally:
            self._chat_logs.close_billed(
                bill,
                QuestionEnd(
                    outcome=outcome,
                    details=details,
                    error=error,
                    model=embedder.id,
                    total_ms=round((time.perf_counter() - started) * 1000),
                ),
            )

    def _close(
        self,
        bill: QuestionBill,
        outcome: Outcome,
        details: RAGDetails,
        started: float,
        *,
        error: str = "",
        document_ids: Sequence[UUID] = (),
    ) -> None:
        if not bill.has_log:
            return
        if not bill.entries:
            with suppress(DatabaseUnavailable):
                self._chat_logs.discard(bill.tenant_id, bill.chat_log_id)
            return
        self._chat_logs.close_billed(
            bill,
            QuestionEnd(
                outcome=outcome,
                details=details,
                error=error,
                document_ids=document_ids,
                total_ms=round((time.perf_counter() - started) * 1000),
            ),
        )
