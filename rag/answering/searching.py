"""Searches without an answer, for programs: each that was paid for is in the log of questions, with what it cost.

Its row is of the kind `search`, so that figures of questions that people ask do not count it. It is opened with the
first paid call, before anything else can fail; a search that costs nothing leaves no row.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

from rag.errors import RagError
from rag.profiles import Profile
from rag.records.chat_logs import ChatLogs
from rag.records.ledger import Ledger
from rag.retrieval.context import Retrieval, Retriever
from rag.retrieval.options import Options
from rag.types import Charge, Outcome, Question, RAGDetails


class Searches:
    """Searches and keeps the books of it. Thread-safe."""

    def __init__(self, retriever: Retriever, ledger: Ledger, chat_logs: ChatLogs) -> None:
        self._retriever = retriever
        self._ledger = ledger
        self._chat_logs = chat_logs

    def search(
        self,
        question: Question,
        *,
        profile: Profile,
        top_k: int | None = None,
        language: str | None = None,
        options: Options | None = None,
    ) -> Retrieval:
        """`Retriever.retrieve`, with what it cost written down. Raises as that does."""
        books = _Books(question, self._ledger, self._chat_logs)
        started = time.perf_counter()
        try:
            found = self._retriever.retrieve(
                question, profile=profile, top_k=top_k, language=language, options=options, on_charge=books.record
            )
        except RagError as exc:
            details = RAGDetails()
            details.query.original = question.text
            books.close(Outcome.FAILED, details, started, error=exc.message)
            raise
        response = found.response
        outcome = Outcome.NO_CONTEXT
        if response.citations:
            outcome = Outcome.PERHAPS if response.evidence == "perhaps" else Outcome.ANSWERED
        document_ids = list(dict.fromkeys(citation.document_id for citation in response.citations))
        books.close(outcome, response.rag_details, started, document_ids=document_ids)
        return found


class _Books:
    """The books of one search."""

    def __init__(self, question: Question, ledger: Ledger, chat_logs: ChatLogs) -> None:
        self._question = question
        self._tenant_id = question.identity.tenant_id
        self._ledger = ledger
        self._chat_logs = chat_logs
        self._chat_log_id: UUID | None = None

    def record(self, paid: Charge) -> None:
        if self._chat_log_id is None:
            question = self._question
            self._chat_log_id = self._chat_logs.open(
                question.identity, question.text, collection_id=question.collection.id, kind="search"
            )
        self._ledger.record(self._tenant_id, paid, chat_log_id=self._chat_log_id)

    def close(
        self,
        outcome: Outcome,
        details: RAGDetails,
        started: float,
        *,
        error: str = "",
        document_ids: Sequence[UUID] = (),
    ) -> None:
        if self._chat_log_id is not None:
            self._chat_logs.close(
                self._tenant_id,
                self._chat_log_id,
                outcome=outcome,
                answer="",
                details=details,
                error=error,
                document_ids=document_ids,
                total_ms=round((time.perf_counter() - started) * 1000),
            )
