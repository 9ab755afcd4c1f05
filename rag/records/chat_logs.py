"""Log every question in a row, which is inserted before any work and gets the outcome at the end.

The row's cost is the sum of the ledger's rows for the question. Log and ledger therefore always agree.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, Literal
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from rag.errors import DatabaseUnavailable
from rag.language import N_
from rag.money.bill import QuestionBill, TenantBill
from rag.money.ledger import Ledger, usage_from_json
from rag.money.price_list import charge, read_prices
from rag.records.spreadsheet import to_csv
from rag.storage.database import Database
from rag.storage.pipeline import Pipeline
from rag.storage.sql import queries
from rag.text.tokens import estimate_tokens
from rag.types import (
    Collection,
    Identity,
    Outcome,
    QueryDetails,
    Question,
    RAGDetails,
    Section,
    sections_from_json,
    storable_json,
)

log = logging.getLogger(__name__)

Rows = list[tuple[Any, ...]]

#: A process writing an answer sends a heartbeat every second; after this long without, it counts as dead.
QUIET_SECONDS = 15.0
#: Searches, commands and evaluations send no heartbeat; none of their calls takes this long.
LONG_QUIET_SECONDS = 600.0
#: Outcomes of questions the documents may not answer.
GAPS = frozenset((Outcome.NO_CONTEXT, Outcome.PERHAPS, Outcome.REFUSED))
ABANDONED = N_("The application was ended while this answer was being written.")
#: Added if part of the answer had been written.
PARTIAL_TEXT = N_("What had been written is kept.")


@dataclass(frozen=True, kw_only=True)
class PassagePlace:
    """A chunk's start and end in the document's joined text, in characters, and all headings in the document."""

    start: int
    end: int
    sections: tuple[Section, ...]


@dataclass(frozen=True, kw_only=True)
class SheetPage:
    """A spreadsheet page. `places` maps lines of text to sheet rows (see `rag.ingestion.loaders.spreadsheet.Book`)."""

    text: str
    places: tuple[tuple[int, int, str, str], ...]


@dataclass(frozen=True, kw_only=True)
class SentPassage:
    """A numbered chunk in the prompt for a question, with the chunk's text when the question was asked."""

    number: int
    chunk_id: UUID
    document_id: UUID
    title: str
    first_page: int
    last_page: int
    section: str
    text: str
    #: Whether the answer cites the passage, and whether the passage supports the sentence.
    state: Literal["held", "not held", "not named"]
    #: Sentences citing the passage without support.
    unsupported: tuple[str, ...] = ()
    #: The document is gone since: the text is no longer shown.
    is_deleted: bool = False


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """The messages sent to the chat model, as (role, content), and the chunks in them."""

    messages: tuple[tuple[str, str], ...]
    passages: tuple[SentPassage, ...]


@dataclass(frozen=True, kw_only=True)
class QuestionEnd:
    """A question's result, to complete its row in the log."""

    outcome: Outcome
    details: RAGDetails
    total_ms: int
    answer: str = ""
    #: A sentence, or "".
    error: str = ""
    language: str = ""
    #: The model called for the answer, or "".
    model: str = ""
    #: The documents used, without repetition.
    document_ids: Sequence[UUID] = ()
    first_token_ms: int | None = None
    prompt: Prompt | None = None
    #: Set if the documents answer only some questions in the message.
    has_unanswered: bool = False


class ChatLogs:
    """Write and read question logs (`chat_logs`)."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._ledger = Ledger(database)
        self._postponed: deque[Callable[[], object]] = deque()
        #: Called with the tenant after a question the documents may not answer.
        self.on_gap: Callable[[str], None] = lambda tenant_id: None

    @property
    def has_postponed(self) -> bool:
        """Whether any log row still waits for `close_postponed`."""
        return bool(self._postponed)

    def close_postponed(self) -> None:
        """Complete the rows that could not be written while the database was unavailable."""
        for _ in range(len(self._postponed)):
            self._postponed.popleft()()

    def open(
        self,
        question: Question,
        *,
        conversation_id: UUID | None = None,
        kind: Literal["question", "search", "evaluation"] = "question",
        within: Pipeline | None = None,
    ) -> UUID:
        """Insert a row for a new question and return its id. With `within`, use the caller's transaction.

        A `search` returns hits without an answer, and an `evaluation` is a test: both are logged for their cost and do
        not count as people's questions. Only people who may read all restricted collections in `question.limited_to`
        can read the log.
        """
        chat_log_id = uuid4()
        parameters = {
            "chat_log_id": chat_log_id,
            "account_id": question.identity.account_id,
            "user_group": question.identity.user_group,
            "conversation_id": conversation_id,
            "collection_id": question.collection.id,
            "question": question.text,
            "kind": kind,
            "limited_to": question.limited_to or None,
        }
        if within is None:
            self.database.execute(question.identity, "open_chat_log", **parameters)
        else:
            within.run(queries["open_chat_log"], parameters)
        return chat_log_id

    def close(self, tenant_id: str, chat_log_id: UUID, end: QuestionEnd) -> Decimal | None:
        """Store a question's result. Returns its cost in US dollars, or `None` if a call had no known price.

        Call this after the question's last ledger row is written. A repeated call replaces the stored values.
        """
        with self.database.writing(tenant_id) as pipeline:
            row = pipeline.run(
                queries["close_chat_log"],
                {
                    "chat_log_id": chat_log_id,
                    "outcome": end.outcome.value,
                    "answer": end.answer,
                    "error": end.error,
                    "language": end.language,
                    "model": end.model,
                    "document_ids": list(end.document_ids),
                    "rag_details": Jsonb(to_json(end.details)),
                    "first_token_ms": end.first_token_ms,
                    "total_ms": end.total_ms,
                    "has_unanswered": end.has_unanswered,
                },
            ).fetchone()
            if end.prompt is not None and row is not None:
                prompt_fields = {
                    "messages": [{"role": role, "content": content} for role, content in end.prompt.messages],
                    "passages": [_json_value(passage) for passage in end.prompt.passages],
                }
                pipeline.run(
                    queries["keep_prompt"],
                    {"chat_log_id": chat_log_id}
                    | {name: Jsonb(value, _dumps) for name, value in prompt_fields.items()},
                )
        if end.outcome in GAPS:
            self.on_gap(tenant_id)
        return row[0] if row and row[1] else None

    def close_billed(self, bill: QuestionBill, end: QuestionEnd) -> Decimal | None:
        """Write the remaining charges, complete the question's row, and return the cost like `close`.

        While the database is unavailable, the method returns `None`, and `close_postponed` completes the row later. If
        the process ends before that, `close_abandoned` marks the row as failed.
        """
        try:
            bill.settle()
            return self.close(bill.tenant_id, bill.chat_log_id, end)
        except DatabaseUnavailable:
            log.error("the log of question %s waits to be closed: the database does not answer", bill.chat_log_id)
            self._postponed.append(partial(self.close_billed, bill, end))
            return None

    def bill(self, tenant_id: str, chat_log_id: UUID, *, is_awaited: bool = False) -> QuestionBill:
        """Create a bill for a logged question; for `is_awaited`, see `QuestionBill`."""
        return self.bill_of(tenant_id, lambda: chat_log_id, is_awaited=is_awaited)

    def bill_of(self, tenant_id: str, open_log: Callable[[], UUID], *, is_awaited: bool = False) -> QuestionBill:
        """Create a bill for a question which has no log row yet: `open_log` inserts the row at the first paid call."""
        prices = partial(self.tenant_prices, tenant_id)
        return QuestionBill(tenant_id, open_log, ledger=self._ledger, prices=prices, is_awaited=is_awaited)

    def bill_for(self, collection: Collection) -> TenantBill:
        """Create a bill for calls on behalf of a collection, without a question."""
        prices = partial(self.tenant_prices, collection.tenant_id)
        return TenantBill(collection.tenant_id, ledger=self._ledger, prices=prices, collection_id=collection.id)

    def discard(self, tenant_id: str, chat_log_id: UUID) -> None:
        """Delete the log row of a search which cost nothing."""
        self.database.execute(tenant_id, "discard_search", chat_log_id=chat_log_id)

    def close_abandoned(
        self, tenant_id: str, *, conversation_id: UUID | None = None, quiet_seconds: float | None = None
    ) -> int:
        """Complete the answers which dead processes left unfinished. Return their number.

        The log rows become failed, and the messages cut off. A process counts as dead after `quiet_seconds` without a
        heartbeat. The default is longer than the longest pause in a living process. Use 0 if no other process can be
        running.
        """
        closing = {
            "conversation_id": conversation_id,
            "quiet_seconds": QUIET_SECONDS if quiet_seconds is None else quiet_seconds,
            "quiet_seconds_of_programs": LONG_QUIET_SECONDS if quiet_seconds is None else quiet_seconds,
            "notice": ABANDONED,
            "notice_with_text": f"{ABANDONED} {PARTIAL_TEXT}",
        }
        with self.database.transaction(tenant_id) as connection:
            ids = [row[0] for row in connection.execute(queries["close_abandoned"], closing).fetchall()]
            closed = [log_id for log_id in ids if log_id is not None]
            parameters = {"chat_log_ids": closed, "quiet_seconds": closing["quiet_seconds_of_programs"]}
            under_way = connection.execute(queries["take_calls_of_questions"], parameters).fetchall()
            prices = read_prices(connection) if under_way else {}
            for chat_log_id, operation, name, expected, stored_text in under_way:
                # Nobody knows how these calls ended: assume the prompt was read and the stored text written.
                text = stored_text if name == "answer" else ""
                usage = usage_from_json(expected)
                usage = replace(usage, output_tokens=estimate_tokens(text, model=usage.model))
                item = charge(operation, usage, prices)
                self._ledger.record(tenant_id, item, chat_log_id=chat_log_id, connection=connection)
            if under_way:
                logs = {"chat_log_ids": [row[0] for row in under_way]}
                connection.execute(queries["count_costs_of_questions"], logs)
        return len(ids)

    def count_costs(self, tenant_id: str, chat_log_id: UUID) -> None:
        """Update a finished question's stored cost from the ledger, after further charges."""
        self.database.execute(tenant_id, "count_costs_of_questions", chat_log_ids=[chat_log_id])

    def page_text(self, tenant_id: str, document_id: UUID, first_page: int, last_page: int) -> str:
        """Return the text of a document's pages from `first_page` to `last_page`, to compare with an answer.

        Returns "" for deleted pages, and while the database is unavailable.
        """
        parameters = {"document_id": document_id, "first_page": first_page, "last_page": last_page}
        rows: Rows = []
        with suppress(DatabaseUnavailable), self.database.transaction(tenant_id) as connection:
            rows = connection.execute(queries["page_texts"], parameters).fetchall()
        return "\n".join(row[0] for row in rows)

    def passage_places(self, tenant_id: str, chunk_ids: Sequence[UUID]) -> dict[UUID, PassagePlace]:
        """Return span and headings for each chunk in which a section begins, by chunk id.

        All other chunks belong to a single section and are left out. Returns {} while the database is unavailable.
        """
        rows: Rows = []
        with suppress(DatabaseUnavailable), self.database.transaction(tenant_id) as connection:
            rows = connection.execute(queries["passage_places"], {"chunk_ids": list(chunk_ids)}).fetchall()
        return {
            chunk_id: PassagePlace(start=start, end=end, sections=sections_from_json(sections))
            for chunk_id, start, end, sections in rows
        }

    def sheet_pages(self, tenant_id: str, chunk_ids: Sequence[UUID]) -> dict[UUID, list[SheetPage]]:
        """Return the spreadsheet pages of each chunk, by chunk id. Returns {} while the database is unavailable."""
        rows: Rows = []
        with suppress(DatabaseUnavailable), self.database.transaction(tenant_id) as connection:
            rows = connection.execute(queries["sheet_pages"], {"chunk_ids": list(chunk_ids)}).fetchall()
        pages: dict[UUID, list[SheetPage]] = {}
        for chunk_id, text, places in rows:
            page = SheetPage(text=text, places=tuple((line, row, left, right) for line, row, left, right in places))
            pages.setdefault(chunk_id, []).append(page)
        return pages

    def days_of_invalid(self, tenant_id: str, document_ids: Sequence[UUID]) -> dict[UUID, tuple[bool, date]]:
        """Return the documents which are not valid today, by id.

        The value is (True, last valid day) for an expired document, and (False, first valid day) for a document not
        valid yet. Returns {} while the database is unavailable.
        """
        rows: Rows = []
        with suppress(DatabaseUnavailable), self.database.transaction(tenant_id) as connection:
            rows = connection.execute(queries["expired_documents"], {"document_ids": list(document_ids)}).fetchall()
        return {document_id: (is_over, day) for document_id, is_over, day in rows}

    def document_metadata(self, tenant_id: str, document_ids: Sequence[UUID]) -> dict[UUID, Mapping[str, Any]]:
        """Return metadata and dates by document id. Returns {} while the database is unavailable."""
        parameters = {"tenant_id": tenant_id, "document_ids": list(document_ids)}
        rows: Rows = []
        with suppress(DatabaseUnavailable), self.database.transaction(tenant_id) as connection:
            rows = connection.execute(queries["document_signals"], parameters).fetchall()
        return {document_id: metadata for document_id, metadata, _ in rows}

    def searched_as(self, identity: Identity, chat_log_id: UUID) -> str:
        """Return the rewritten query with which a person's question was searched.

        Returns "" if the question was searched unchanged.
        """
        parameters = {"chat_log_id": chat_log_id, "account_id": identity.account_id}
        details = self.database.fetch_value(identity, "own_query_details", **parameters) or {}
        return QueryDetails(
            original=details.get("original") or "",
            expanded=details.get("expanded") or [],
            translated_query=details.get("translatedQuery"),
        ).searched_as

    def tenant_prices(self, tenant_id: str) -> Mapping[str, Any]:
        """Return the tenant's negotiated prices by model and unit; empty if there are none."""
        with self.database.transaction(tenant_id) as connection:
            return read_prices(connection)


def prompt_from_json(messages: Any, passages: Any, remaining_documents: Iterable[str]) -> Prompt:
    """Build a prompt from stored JSON.

    Chunks from a document deleted since have no text. If there are such chunks, the last message becomes "…", because
    it quoted them.
    """
    there = set(remaining_documents)
    sent_passages = tuple(
        SentPassage(
            number=int(passage["number"]),
            chunk_id=UUID(passage["chunkId"]),
            document_id=UUID(passage["documentId"]),
            title=passage["title"],
            first_page=int(passage["firstPage"]),
            last_page=int(passage["lastPage"]),
            section=passage["section"],
            text=passage["text"] if passage["documentId"] in there else "",
            state=passage["state"],
            unsupported=tuple(passage.get("unsupported", ())),
            is_deleted=passage["documentId"] not in there,
        )
        for passage in passages
    )
    is_complete = not any(passage.is_deleted for passage in sent_passages)
    sent = [(message["role"], message["content"]) for message in messages]
    # Removing a deleted document's passages from the rest of the text is not worth the effort.
    return Prompt(
        messages=tuple(sent if is_complete else [*sent[:-1], (sent[-1][0], "…")] if sent else ()),
        passages=sent_passages,
    )


def _dumps(value: Any) -> str:
    return json.dumps(storable_json(json.loads(json.dumps(value, default=str))), ensure_ascii=False)


def to_json(details: RAGDetails) -> dict[str, Any]:
    """Convert the details to JSON for storage, in the format of `RAGDetails` in the HR document (camelCase names).

    `translatedFrom` and `translatedQuery` are left out if the question was not translated.
    """
    return _object(details)


def _object(value: Any) -> dict[str, Any]:
    members = ((field.name, getattr(value, field.name)) for field in fields(value))
    return {_camel_case(name): _json_value(member) for name, member in members if member is not None}


def _json_value(value: Any) -> Any:
    if is_dataclass(value):
        return _object(value)
    if isinstance(value, (list, tuple)):
        return [_json_value(member) for member in value]
    return value


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


EXPORT_COLUMNS = (
    "asked_at_utc",
    "user_group",
    "language",
    "question",
    "answer",
    "outcome",
    "documents",
    "model",
    "first_token_ms",
    "total_ms",
    "cost_usd",
    "has_unpriced_calls",
    "helpful",
    "comment",
)


@dataclass(frozen=True, kw_only=True)
class LoggedQuestion:
    """A row in the list of questions. `outcome` is `None` until the question has ended."""

    id: UUID
    created_at: datetime
    user_group: str
    language: str
    question: str
    answer: str
    outcome: str | None
    model: str
    total_ms: int | None
    first_token_ms: int | None
    #: Known costs in US dollars; `is_priced` is False when a call without a known price comes on top.
    cost: Decimal
    is_priced: bool
    #: 1 helpful, 0 not, None without feedback.
    rating: int | None
    comment: str
    #: Titles of the documents behind the answer, without deleted documents.
    documents: list[str]
    #: Who asked; "" for programs, and if the reader may not know.
    asker: str = ""


@dataclass(frozen=True, kw_only=True)
class LoggedQuestionDetails(LoggedQuestion):
    error: str
    rag_details: dict[str, Any]
    #: `None` after the collection was deleted.
    collection_id: UUID | None


@dataclass(frozen=True, kw_only=True)
class FoundPassage:
    """A chunk found for a question. Ranks count from 1.

    `new_rank` is the rank after reranking, or `None` if the reranker dropped the chunk.
    """

    position: int
    chunk_id: str | None
    #: `None` if the document has been deleted since.
    title: str | None
    first_page: int | None
    last_page: int | None
    section: str
    similarity: float | None
    preview: str
    original_rank: int | None
    new_rank: int | None
    rerank_score: float | None


@dataclass(frozen=True, kw_only=True)
class QuestionCharge:
    """A paid call for a question. `cost` is `None` if no price is known."""

    operation: str
    provider: str
    model: str
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    search_units: int
    cost: Decimal | None
    #: The provider told no count.
    is_estimated: bool


@dataclass(frozen=True, kw_only=True)
class ChatLogEntry:
    """A logged question with hits, charges and prompt."""

    question: LoggedQuestionDetails
    passages: tuple[FoundPassage, ...]
    charges: tuple[QuestionCharge, ...]
    #: `None` for older or forgotten questions, and for replies without a search.
    prompt: Prompt | None = None

    @property
    def rag_details(self) -> dict[str, Any]:
        """Return the logged details as JSON, without text from deleted documents."""
        remaining = {p.chunk_id for p in self.passages if p.title is not None}
        details = self.question.rag_details
        search = details.get("search")
        if not search:
            return details
        results = [r if r.get("chunkId") in remaining else {**r, "preview": ""} for r in search.get("rawResults", [])]
        return {**details, "search": {**search, "rawResults": results}}


@dataclass(frozen=True, kw_only=True)
class UnansweredQuestion:
    """A question without an answer in the documents, and how often it was asked in the same words."""

    question: str
    latest_id: UUID
    times: int
    last_asked_at: datetime
    user_groups: list[str]


def questions_to_csv(questions: Iterable[LoggedQuestion], *, with_names: bool = False) -> str:
    """Write questions as CSV with a header line.

    Cells which a spreadsheet would run as formulas get an apostrophe at the start.
    """
    if not with_names:
        return to_csv(EXPORT_COLUMNS, map(_cells, questions))
    named = ((*_cells(question), question.asker) for question in questions)
    return to_csv((*EXPORT_COLUMNS, "asked_by"), named)


def _cells(question: LoggedQuestion) -> tuple[object, ...]:
    return (
        question.created_at.strftime("%Y-%m-%d %H:%M:%S"),
        question.user_group,
        question.language,
        question.question,
        question.answer,
        # The word of the pages.
        {"perhaps": "partly", "": "in progress"}.get(question.outcome or "", question.outcome),
        "; ".join(question.documents),
        question.model,
        question.first_token_ms,
        question.total_ms,
        # An unknown value is an empty cell, never a zero.
        f"{question.cost:f}" if question.is_priced or question.cost else None,
        "no" if question.is_priced else "yes",
        {1: "yes", 0: "no", None: ""}[question.rating],
        question.comment,
    )
