"""Search without an answer, for programs, and log each paid search with its cost.

The log row has the kind `search`, because statistics about people's questions must not count it. The row is opened
before the first paid call, so even a call interrupted by a kill is billed; a free search leaves no row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

from rag.answering.call_records import CallRecords
from rag.errors import BudgetSpent, RagError
from rag.money.ledger import Ledger
from rag.profiles.profile import MAXIMUM_CANDIDATES, Options, Profile
from rag.providers import Embedder
from rag.providers.embeddings import generate_embeddings_batch
from rag.records.chat_logs import ChatLogs, QuestionEnd
from rag.retrieval.retriever import RetrievalResult, Retriever
from rag.types import Charge, Embeddings, Identity, Operation, Outcome, Question, RAGDetails, Usage

#: A context budget larger than any search result.
NO_BUDGET = 200_000
#: Characters from the start of the text which name a log row for embeddings.
LOGGED_CHARACTERS = 200


class Searches:
    """Search, and record the costs. Thread-safe."""

    def __init__(
        self,
        retriever: Retriever,
        ledger: Ledger,
        chat_logs: ChatLogs,
        *,
        stop_spending: Callable[[Identity], str] = lambda _identity: "",
    ) -> None:
        """`stop_spending` returns why a person may spend no more, or ""."""
        self._stop_spending = stop_spending
        self._retriever = retriever
        self._ledger = ledger
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
        """Call `Retriever.retrieve` and record the cost. Raises the same errors.

        The call chooses whether only evidence is returned, else the profile's setting for searches. Without
        `for_model`, the passages are for a reader and the budget for a model's context does not limit them.
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
        recorder = _SearchRecorder(question, self._ledger, self._chat_logs)
        started = time.perf_counter()
        try:
            found = self._retriever.retrieve(question, profile=profile, top_k=top_k, options=options, recorder=recorder)
        except RagError as exc:
            details = RAGDetails()
            details.query.original = question.text
            recorder.close(Outcome.FAILED, details, started, error=exc.message)
            raise
        if why:
            found = replace(found, response=replace(found.response, notices=(*found.response.notices, why)))
        response = found.response
        outcome = Outcome.NO_CONTEXT
        if response.citations:
            outcome = Outcome.PERHAPS if response.evidence == "perhaps" else Outcome.ANSWERED
        document_ids = list(dict.fromkeys(citation.document_id for citation in response.citations))
        recorder.close(outcome, response.rag_details, started, document_ids=document_ids)
        return found

    def embed(self, question: Question, texts: Sequence[str], *, embedder: Embedder) -> Embeddings:
        """Embed texts for a program; a paid call is logged under the first text.

        Raises `ProviderError`s, and `BudgetSpent` if paid calls are not allowed.
        """
        if not embedder.is_paid:
            return generate_embeddings_batch(texts, embedder=embedder)
        if why := self._stop_spending(question.identity):
            raise BudgetSpent(why)
        started = time.perf_counter()
        question = replace(question, text=question.text[:LOGGED_CHARACTERS])
        log_id = self._chat_logs.open(question, kind="search")
        records = CallRecords(question.identity.tenant_id, log_id, ledger=self._ledger, chat_logs=self._chat_logs)
        details = RAGDetails()
        details.query.original = question.text
        outcome, error = Outcome.FAILED, ""
        try:
            with records.paying("embedding"):
                made = generate_embeddings_batch(texts, embedder=embedder)
            for usage in made.usages:
                records.charge("embedding", usage)
            outcome = Outcome.ANSWERED
            return made
        except RagError as exc:
            error = exc.message
            raise
        finally:
            records.close(
                QuestionEnd(
                    outcome=outcome,
                    details=details,
                    error=error,
                    model=embedder.id,
                    total_ms=round((time.perf_counter() - started) * 1000),
                )
            )


class _SearchRecorder:
    """Record a search's calls, from the first paid call on."""

    def __init__(self, question: Question, ledger: Ledger, chat_logs: ChatLogs) -> None:
        self._question = question
        self._ledger = ledger
        self._chat_logs = chat_logs
        self._kept: CallRecords | None = None
        self._is_paid = False

    def send(self, operation: Operation, expected: Usage) -> None:
        self._opened().send(operation, expected)

    def drop(self) -> None:
        self._opened().drop()

    def record(self, paid: Charge) -> None:
        self._is_paid = True
        self._opened().record(paid)

    def _opened(self) -> CallRecords:
        if self._kept is None:
            chat_log_id = self._chat_logs.open(self._question, kind="search")
            tenant_id = self._question.identity.tenant_id
            self._kept = CallRecords(tenant_id, chat_log_id, ledger=self._ledger, chat_logs=self._chat_logs)
        return self._kept

    def close(
        self,
        outcome: Outcome,
        details: RAGDetails,
        started: float,
        *,
        error: str = "",
        document_ids: Sequence[UUID] = (),
    ) -> None:
        if self._kept is None:
            return
        if not self._is_paid:
            self._kept.discard()
            return
        self._kept.close(
            QuestionEnd(
                outcome=outcome,
                details=details,
                error=error,
                document_ids=document_ids,
                total_ms=round((time.perf_counter() - started) * 1000),
            )
        )
