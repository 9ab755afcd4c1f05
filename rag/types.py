"""The values that flow between the stages.

All are frozen and know nothing of the database, the network or the page: rows and JSON live at the edges.
Costs are US dollars as `Decimal`; `None` means that the price is not known, which is never the same as zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

FloatMatrix = NDArray[np.float32]
"""Embeddings, one row per text: shape (texts, dimensions)."""

ChunkingMethod = Literal[
    "fixed", "smart", "semantic", "sentences", "recursive", "paged", "professional", "narrative", "markdown", "generic",
    "auto",
]  # fmt: skip
"""How a document is cut; `auto` goes by what kind of document it is."""
PdfType = Literal["auto", "scanned", "digital"]
"""Which pages of a PDF text recognition is for: those that show something and have no text, all, or none."""
DocumentSort = Literal["newest", "oldest", "title", "language", "pages", "chunks", "size", "cost"]
"""The order of a list of documents: names from A, figures from the largest."""
Operation = Literal["embedding", "chunking", "reranking", "translation", "chat", "tagging", "ocr"]
"""What a paid call was made for; the ledger and the analytics group by it."""

#: The line above the attachments in the text of a post, in Korean and in English.
ATTACHMENT_HEADS = ("--- 첨부파일 정보 ---", "--- Attachments ---")


# Who


class Role(StrEnum):
    """What a person may do within one tenant; each role includes the ones before it."""

    EMPLOYEE = "employee"
    MANAGER = "manager"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A verified person acting within one tenant, whatever way they signed in."""

    account_id: UUID
    tenant_id: str
    email: str
    name: str
    role: Role
    user_group: str = ""
    #: Hash of the session's token as hex; names the session without being able to act as it.
    session_id: str = ""
    #: The language chosen for the interface; "" is that of the browser.
    language: str = ""

    def may(self, role: Role) -> bool:
        return self.role.includes(role)


Who = Identity | str
"""Who is at work: a person, bound by their group and named in the audit log; or, as a tenant id, the product itself."""


def tenant_of(who: Who) -> str:
    """Return the tenant somebody works for."""
    return who if isinstance(who, str) else who.tenant_id


@dataclass(frozen=True, kw_only=True)
class Account:
    """A row of `accounts`, without its password hash."""

    id: UUID
    tenant_id: str
    email: str
    name: str
    role: Role
    user_group: str
    is_active: bool
    created_at: datetime
    last_signed_in_at: datetime | None
    #: Since when the person waits for a link to a new password; read with the list of accounts only.
    password_asked_at: datetime | None = None


# Paid calls


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What one call used, as its provider counted it. `cached_input_tokens` are a part of `input_tokens`.

    `is_estimated` where the provider told no count, though the call was, or may have been, billed.
    """

    provider: str
    model: str
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    search_units: int = 0
    pages: int = 0
    is_estimated: bool = False


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One paid call with the price used: one row of the ledger."""

    operation: Operation
    usage: Usage
    #: US dollars; None when no price is known for the model.
    cost: Decimal | None
    #: The unit prices used, as the ledger keeps them: `{"input_mtok": "0.02", "source": "genai-prices 0.2.3"}`.
    unit_prices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Embeddings:
    """Vectors in the order of the texts, with the usage of every request that made them."""

    vectors: FloatMatrix
    usages: tuple[Usage, ...] = ()


# Documents


class DocumentStatus(StrEnum):
    """Where a document stands. Only `completed` documents are searched."""

    #: Only its particulars are known; its text, chunks, tags and vectors come step by step.
    REGISTERED = "registered"
    #: Pages are being read; nothing has been spent.
    READING = "reading"
    #: Pages are read and the cost estimated; waits for an admin's yes.
    ESTIMATED = "estimated"
    #: Confirmed; chunks are being made, embedded and published.
    PROCESSING = "processing"
    COMPLETED = "completed"
    #: Pages are images: there is no text to search.
    NEEDS_OCR = "needs_ocr"
    FAILED = "failed"
    #: Deleted; it can be had back for thirty days.
    BINNED = "binned"
    #: A later version answers in its place; it can be restored.
    SUPERSEDED = "superseded"


class Step(StrEnum):
    """The durable steps of a document, in their order."""

    EXTRACT = "extract"
    RECOGNISE = "recognise"
    CHUNK = "chunk"
    EMBED = "embed"
    TAG = "tag"
    PUBLISH = "publish"


@dataclass(frozen=True, kw_only=True)
class Page:
    """The text of one page. `number` counts from 1; `label` is what is printed on it, where that differs."""

    number: int
    text: str
    method: Literal["text", "ocr", "none"] = "text"
    language: str = ""
    label: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading and where its text begins: `page` from 1, `start` in characters of the joined text."""

    title: str
    level: int
    page: int
    start: int


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A passage cut from a document.

    `start` and `end` are characters of the document's joined text (pages joined by one newline), end exclusive.
    `section` is the path of headings above it, joined by " › ".
    """

    index: int
    content: str
    first_page: int
    last_page: int
    start: int
    end: int
    section: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """What processing would cost, before anything is spent. Costs are None where no price is known.

    `embedding_tokens` and `tagging_tokens` are as estimated from the texts alone; costs are corrected by what providers
    have counted for earlier documents.
    """

    pages: int
    characters: int
    #: To be embedded, as the provider is expected to count them.
    tokens: int
    embedding_tokens: int
    tagging_tokens: int
    chunks: int
    parsing: Decimal | None
    chunking: Decimal | None
    embedding: Decimal | None
    metadata: Decimal | None
    total: Decimal | None


@dataclass(frozen=True, kw_only=True)
class ProcessingCosts:
    """What processing did cost, by step, from the ledger."""

    parsing: Decimal | None = Decimal(0)
    chunking: Decimal | None = Decimal(0)
    embedding: Decimal | None = Decimal(0)
    metadata: Decimal | None = Decimal(0)
    total: Decimal | None = Decimal(0)


@dataclass(frozen=True, kw_only=True)
class ProcessingResult:
    """What `process_document` returns. `processing_time` is in milliseconds."""

    document_id: UUID
    chunk_count: int
    processing_time: int
    costs: ProcessingCosts
    #: What to know about it, such as why it could not be tagged; "" for nothing.
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Document:
    """A row of `documents`, as the library lists it."""

    id: UUID
    tenant_id: str
    collection_id: UUID
    title: str
    file_name: str
    file_path: str
    file_size: int
    mime_type: str
    sha256: str
    status: DocumentStatus
    #: The step under way or the one that failed; with `steps_done` of `steps_total` units of it finished.
    step: Step
    steps_done: int
    steps_total: int
    #: One sentence for the admin: why it failed, or what to know about it.
    message: str
    page_count: int
    empty_pages: list[int]
    character_count: int
    chunk_count: int
    language: str
    chunking_method: ChunkingMethod
    generate_metadata: bool
    estimate: dict[str, Any] | None
    costs: dict[str, Any]
    processing_ms: int
    metadata: dict[str, Any]
    added_by: UUID | None
    added_by_name: str
    created_at: datetime
    updated_at: datetime
    #: Shared by all versions of one document: the id of the first.
    original_id: UUID | None = None
    version: int = 1
    published_at: datetime | None = None
    superseded_at: datetime | None = None
    #: Steps asked for by hand that are done while it goes on answering.
    pending_steps: list[str] = field(default_factory=list)
    #: Paid calls sent again after a kill; a provider without idempotency keys may have billed each twice.
    repeated_calls: int = 0
    #: Its provider refuses the key or has no money left; it goes on by itself, and `message` says why it waits.
    is_waiting: bool = False
    #: A source keeps it, such as a table of posts; it is processed without being confirmed.
    is_synced: bool = False
    pdf_type: PdfType = "auto"
    #: Pages whose text is still to be recognised.
    ocr_pages: list[int] = field(default_factory=list)
    #: Names with a slash between a folder and those within it.
    folder: str = ""
    tags: list[str] = field(default_factory=list)
    owner_id: UUID | None = None
    owner_name: str = ""
    valid_from: date | None = None
    valid_until: date | None = None
    #: When its owner is to look at it again.
    review_on: date | None = None
    #: The language an administrator gave it.
    corrected_language: str = ""
    #: Processed without being asked about up to this estimate in US dollars.
    confirmed_up_to: Decimal | None = None
    #: When it came into the bin.
    binned_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class DocumentRow:
    """A row of the library's table."""

    id: UUID
    title: str
    file_name: str
    version: int
    status: DocumentStatus
    is_waiting: bool
    language: str
    folder: str
    tags: list[str]
    collection_id: UUID
    #: Its owner's name, else that of who added it.
    owner_name: str
    updated_at: datetime
    #: In US dollars; None where a price is unknown, or nothing was spent (`has_cost` is false then).
    cost: Decimal | None
    has_cost: bool
    valid_until: date | None
    review_on: date | None
    #: What only some documents have: a repository, a department.
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AnsweredQuestion:
    """A question that was answered from a document."""

    id: UUID
    question: str
    outcome: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class DocumentName:
    """What a document is recognised by in a list to choose from."""

    id: UUID
    title: str
    file_name: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class DocumentFilters:
    """Which documents a list shows; empty means anything. `document_ids` are the only ones where they are given."""

    text: str = ""
    statuses: tuple[DocumentStatus, ...] = ()
    language: str = ""
    method: str = ""
    mime_type: str = ""
    collection_id: UUID | None = None
    document_ids: tuple[UUID, ...] | None = None
    #: Documents that hold the text, besides those that are named so.
    found_ids: tuple[UUID, ...] = ()
    #: With the folders within it.
    folder: str = ""
    tag: str = ""
    owner_id: UUID | None = None
    #: `expired`: no longer valid. `review`: to be looked at again.
    due: Literal["", "expired", "review"] = ""

    def parameters(self) -> dict[str, Any]:
        """Return the filters as the statements of the library take them."""
        return {
            "text": self.text.strip().lower() or None,
            "statuses": [status.value for status in self.statuses] or None,
            "language": self.language or None,
            "method": self.method or None,
            "mime_type": self.mime_type or None,
            "collection_id": self.collection_id,
            "document_ids": None if self.document_ids is None else [*self.document_ids],
            "found_ids": [*self.found_ids],
            "folder": self.folder or None,
            "tag": self.tag or None,
            "owner_id": self.owner_id,
            "due": self.due or None,
        }


@dataclass(frozen=True, kw_only=True)
class DocumentFigures:
    """Counts of documents that are alike in what the library can be filtered by. Costs are US dollars."""

    collection_id: UUID
    status: DocumentStatus
    language: str
    chunking_method: ChunkingMethod
    mime_type: str
    documents: int
    pages: int
    chunks: int
    cost: Decimal
    unpriced: int
    estimated: Decimal
    unpriced_estimates: int
    #: When the newest of them came, and when one of them changed last.
    created_at: datetime
    updated_at: datetime

    def fits(self, filters: DocumentFilters) -> bool:
        """Whether these are what the filters ask for, but for the text."""
        return (
            (not filters.statuses or self.status in filters.statuses)
            and filters.language in ("", self.language)
            and filters.method in ("", self.chunking_method)
            and filters.mime_type in ("", self.mime_type)
            and filters.collection_id in (None, self.collection_id)
        )


@dataclass(frozen=True, kw_only=True)
class PostFilters:
    """Which posts of a notice board a list shows; empty means all that its reader may see."""

    collection_id: UUID
    #: Only posts that can be asked about.
    only_ready: bool = False
    text: str = ""
    categories: tuple[str, ...] = ()
    is_pinned: bool = False
    is_important: bool = False
    has_attachments: bool = False

    def parameters(self) -> dict[str, Any]:
        """Return the filters as the statements of the library take them."""
        return {
            "collection_id": self.collection_id,
            "only_ready": self.only_ready,
            "text": self.text.strip().lower() or None,
            "categories": [*self.categories] or None,
            "is_pinned": self.is_pinned,
            "is_important": self.is_important,
            "has_attachments": self.has_attachments,
        }


@dataclass(frozen=True, kw_only=True)
class BoardFigures:
    """Counts of the posts of one category."""

    category: str
    posts: int
    pinned: int
    important: int
    with_attachments: int
    at_work: int


@dataclass(frozen=True, kw_only=True)
class DocumentPage:
    """A row of `document_pages`."""

    document_id: UUID
    number: int
    text: str
    characters: int
    method: Literal["text", "ocr", "none"]
    language: str
    label: str
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class DocumentChunk:
    """A row of `document_chunks` without its vector."""

    id: UUID
    document_id: UUID
    chunk_index: int
    content: str
    first_page: int
    last_page: int
    start_character: int
    end_character: int
    section: str
    tokens: int
    embedding_model: str
    has_embedding: bool
    metadata: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Documents that share one profile and one embedding model."""

    id: UUID
    tenant_id: str
    name: str
    profile: str
    #: The embedder's id, `provider/model@dimensions`.
    embedding_model: str
    language: str
    #: What differs from the profile, as JSON keeps it.
    overrides: dict[str, Any]
    created_at: datetime
    #: The least similarity measured on its own text with its embedder; None until it was.
    calibrated_threshold: float | None = None
    calibrated_at: datetime | None = None
    #: Groups whose people may read it, besides administrators; empty: everybody.
    groups: list[str] = field(default_factory=list)
    #: The embedder it was measured with, and on how many passages.
    calibrated_model: str | None = None
    calibrated_passages: int | None = None


@dataclass(frozen=True, kw_only=True)
class CollectionContents:
    """How much is in a collection, and who has talked about it."""

    collection_id: UUID
    documents: int
    #: Documents that can be searched.
    ready: int
    pages: int
    chunks: int
    conversations: int
    people: int


# Search


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Where a search may look: one tenant and the collections the asker may read."""

    tenant_id: str
    collection_ids: tuple[UUID, ...]
    #: Who asks; without them the search is the product's own. The database holds them to their group.
    reader: Identity | None = None

    @property
    def who(self) -> Who:
        return self.reader or self.tenant_id


@dataclass(frozen=True, kw_only=True)
class SearchFilters:
    """Conditions on documents, applied inside the search. Empty means no condition; all given ones must be met."""

    document_ids: tuple[UUID, ...] = ()
    #: Slugs; a document of any of them.
    categories: tuple[str, ...] = ()
    document_types: tuple[str, ...] = ()
    years: tuple[int, ...] = ()
    #: First and last day, both included: of the date written in the document, else of its making.
    date_from: date | None = None
    date_to: date | None = None
    important_only: bool = False
    #: Fields of the document's metadata with the values they must have.
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there is no condition at all."""
        return self == SearchFilters()


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """A found passage. Ranks count from 1; a score is None where that search did not find the passage."""

    chunk_id: UUID
    document_id: UUID
    collection_id: UUID
    title: str
    file_name: str
    content: str
    first_page: int
    last_page: int
    section: str
    chunk_index: int
    metadata: Mapping[str, Any]
    #: Cosine similarity, -1 … 1.
    similarity: float | None = None
    vector_rank: int | None = None
    #: BM25 (k1 1.5, b 0.75, Lucene idf), ≥ 0.
    keyword_score: float | None = None
    keyword_rank: int | None = None
    #: Cosine similarity by the built-in model of meaning, beside `similarity` where that compares words.
    meaning: float | None = None
    #: The same of each of its parts (`rag.ingestion.meaning.parts_of`), in their order; empty where it is not known.
    part_meanings: tuple[float, ...] = ()
    meaning_rank: int | None = None
    #: What the results are ordered by; its scale is that of the step that set it.
    score: float = 0.0
    #: The reranker's relevance, 0 … 1.
    rerank_score: float | None = None
    #: Rank after fusion, before reranking.
    original_rank: int = 0


@dataclass(frozen=True, kw_only=True)
class Citation:
    """The passage behind a number in an answer: `[number]`."""

    number: int
    chunk_id: UUID
    document_id: UUID
    title: str
    file_name: str
    first_page: int
    last_page: int
    section: str
    passage: str
    score: float
    #: Words of the question and the answer found in the passage, to be marked.
    matched_terms: tuple[str, ...] = ()
    #: False when a sentence that cites it says what its page does not: other figures, dates, names or words, or the
    #: contrary.
    is_supported: bool = True
    #: Those sentences, without their citations.
    unsupported: tuple[str, ...] = ()
    #: Pages of what the model read, the text around the passage included; 0: those of the passage.
    first_read_page: int = 0
    last_read_page: int = 0
    #: Of a post: its category's name, the day it gives itself (ISO 8601) and its marks.
    category: str = ""
    written_on: str = ""
    is_pinned: bool = False
    is_important: bool = False


@dataclass(frozen=True, kw_only=True)
class TokenUsage:
    input: int = 0
    output: int = 0


Evidence = Literal["answered", "perhaps", "none"]
"""Whether the passages found answer the question; `none`: it is not in the documents."""


@dataclass(frozen=True, kw_only=True)
class ContextResponse:
    """What `retrieve_context` found. `citations` number the passages of `context_text` from 1."""

    context_text: str
    citations: tuple[Citation, ...]
    token_usage: TokenUsage
    cost: Decimal
    rag_details: RAGDetails
    #: Nearest passages that stayed below the threshold, best first; shown when there is no answer.
    nearest: tuple[Citation, ...] = ()
    charges: tuple[Charge, ...] = ()
    #: Sentences for the reader on what was left out because a provider failed.
    notices: tuple[str, ...] = ()
    #: What was found behind each citation, in their order, with its scores.
    results: tuple[SearchResult, ...] = ()
    #: Whether the passages answer the question. With "perhaps" they are the closest there is, cited all the same.
    evidence: Evidence = "answered"
    #: That the best passage answers, 0 … 1; None where nothing was found or nobody asked.
    probability: float | None = None


# Answers


class Outcome(StrEnum):
    """How a question ended; `chat_logs` has one for every question asked."""

    ANSWERED = "answered"
    #: The closest passages were quoted, without being sure that they answer.
    PERHAPS = "perhaps"
    NO_CONTEXT = "no_context"
    #: A greeting or the like, met in one line: no question, neither answered nor a gap.
    SMALL_TALK = "small_talk"
    #: Asked which of several documents is meant: what is asked next is the question.
    ASKED_BACK = "asked_back"
    REFUSED = "refused"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class ChatMessage:
    """One turn as a chat model takes it, with pictures (PNG) for those that can see."""

    role: Literal["system", "user", "assistant"]
    content: str
    images: tuple[bytes, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with everything needed to answer it."""

    text: str
    identity: Identity
    collection: Collection
    history: Sequence[ChatMessage] = ()
    document_ids: tuple[UUID, ...] = ()
    #: Conditions of the asker on what may be found.
    filters: SearchFilters = field(default_factory=SearchFilters)
    #: Languages of the asker's browser, program or terminal, the preferred first; they count for a question that
    #: does not tell its own.
    reader_languages: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Conversation:
    id: UUID
    title: str
    collection_id: UUID
    created_at: datetime
    updated_at: datetime


class MessageState(StrEnum):
    STREAMING = "streaming"
    COMPLETE = "complete"
    STOPPED = "stopped"
    #: The provider or the process ended it; what was written is kept.
    CUT = "cut"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class Message:
    """A row of `messages`. Assistant messages carry what is shown under them."""

    id: UUID
    conversation_id: UUID
    role: Literal["user", "assistant"]
    content: str
    state: MessageState
    #: One sentence for the reader when the answer did not end well.
    notice: str
    #: `Citation.to_json` of each passage shown under the answer.
    citations: list[dict[str, Any]]
    outcome: Outcome | None
    chat_log_id: UUID | None
    cost: Decimal | None
    total_ms: int | None
    rating: int | None
    created_at: datetime
    #: Numbers of passages whose documents have been deleted since; nothing else of them is kept.
    removed_sources: list[int] = field(default_factory=list)


# What is logged of a question; the field names of the stored JSON are the HR document's.


@dataclass(kw_only=True)
class QueryDetails:
    original: str = ""
    expanded: list[str] = field(default_factory=list)
    alternative_queries: list[str] = field(default_factory=list)
    translated_from: str | None = None
    translated_query: str | None = None


@dataclass(kw_only=True)
class SearchQueryDetails:
    """One wording that was searched for. Wordings of one call or statement have its time on the first of them."""

    query: str = ""
    embedding_ms: float = 0.0
    search_ms: float = 0.0
    result_count: int = 0


@dataclass(kw_only=True)
class RawResultDetails:
    chunk_id: str = ""
    document_id: str = ""
    similarity: float = 0.0
    preview: str = ""


@dataclass(kw_only=True)
class SearchDetails:
    type: Literal["vector", "hybrid"] = "hybrid"
    vector_top_k: int = 0
    final_top_k: int = 0
    queries: list[SearchQueryDetails] = field(default_factory=list)
    raw_results: list[RawResultDetails] = field(default_factory=list)
    matched_terms: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class RerankedResultDetails:
    chunk_id: str = ""
    original_rank: int = 0
    new_rank: int = 0
    score: float = 0.0


@dataclass(kw_only=True)
class RerankingDetails:
    enabled: bool = False
    model: str = ""
    input_documents: int = 0
    output_documents: int = 0
    latency_ms: float = 0.0
    results: list[RerankedResultDetails] = field(default_factory=list)


@dataclass(kw_only=True)
class OpenAIDetails:
    model: str = ""
    temperature: float = 0.0
    system_prompt_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    streaming_duration_ms: float = 0.0


@dataclass(kw_only=True)
class CostDetails:
    """US dollars. An unpriced call adds nothing here; the ledger holds it as unpriced.

    `openai` is the call that wrote the answer, whose tokens are in `OpenAIDetails`. Other calls of a chat model have
    lines of their own, beyond the HR document's interface; None where none was made.
    """

    embedding: float = 0.0
    reranking: float = 0.0
    translation: float = 0.0
    openai: float = 0.0
    #: Putting the question so that it stands alone, or in other words.
    rewriting: float | None = None
    #: Suggesting what to ask next.
    follow_ups: float | None = None
    total: float = 0.0


@dataclass(kw_only=True)
class TimingDetails:
    translation_ms: float = 0.0
    embedding_ms: float = 0.0
    search_ms: float = 0.0
    reranking_ms: float = 0.0
    openai_ms: float = 0.0
    total_ms: float = 0.0


@dataclass(kw_only=True)
class StepDetails:
    """One step of the retrieval: what it did in a few words, and how long it took."""

    name: str = ""
    detail: str = ""
    ms: float = 0.0


@dataclass(kw_only=True)
class EvidenceDetails:
    """Whether the passages answer, and how likely that is of the best of them."""

    outcome: Evidence = "none"
    probability: float = 0.0


@dataclass(kw_only=True)
class RAGDetails:
    """Everything that was done for one question. Filled stage by stage; stored as camelCase JSON."""

    query: QueryDetails = field(default_factory=QueryDetails)
    search: SearchDetails = field(default_factory=SearchDetails)
    reranking: RerankingDetails = field(default_factory=RerankingDetails)
    openai: OpenAIDetails = field(default_factory=OpenAIDetails)
    costs: CostDetails = field(default_factory=CostDetails)
    timing: TimingDetails = field(default_factory=TimingDetails)
    #: Every step in its order, beyond the HR document's interface; None where nothing was retrieved.
    steps: list[StepDetails] | None = None
    #: None where nothing was retrieved.
    evidence: EvidenceDetails | None = None


def storable(text: Any) -> str:
    """Replace NUL and lone surrogates, which Postgres refuses. The length stays the same."""
    cleaned = str(text).replace("\0", "\ufffd")
    return cleaned.encode("utf-8", "replace").decode("utf-8") if not cleaned.isascii() else cleaned


def storable_json(value: Any) -> Any:
    """Return a JSON value whose texts a database can hold."""
    if isinstance(value, dict):
        return {storable(name): storable_json(part) for name, part in value.items()}
    if isinstance(value, list):
        return [storable_json(part) for part in value]
    return storable(value) if isinstance(value, str) else value


def sections_from_json(values: Any) -> tuple[Section, ...]:
    """Read sections from JSON."""
    return tuple(
        Section(
            title=storable(section["title"]),
            level=int(section["level"]),
            page=int(section["page"]),
            start=int(section["start"]),
        )
        for section in values or ()
    )
