"""The values passed between stages, independent of database, network and pages.

All are frozen, except the parts of a question's log. They are converted from and to database rows and JSON at the
edges. Costs are US dollars as `Decimal`; `None` means an unknown price, never zero. Documents and collections are
defined in `rag.types.documents`; import every value from `rag.types`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from uuid import UUID

from rag.types.documents import (
    ATTACHMENT_HEADS,
    MOST_MARKS,
    AnsweredQuestion,
    BoardFigures,
    Chunk,
    ChunkingMethod,
    Collection,
    CollectionContents,
    CostEstimate,
    Document,
    DocumentChunk,
    DocumentFigures,
    DocumentFilters,
    DocumentName,
    DocumentPage,
    DocumentRow,
    DocumentSort,
    DocumentStatus,
    MarkKind,
    Page,
    PageCorrection,
    PageMark,
    PdfType,
    PostFilters,
    ProcessingCosts,
    ProcessingResult,
    Section,
    Step,
    SuggestedQuestions,
    UploadOptions,
    page_path,
    sections_from_json,
    storable,
    storable_json,
    title_with_pages,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ATTACHMENT_HEADS",
    "MOST_MARKS",
    "Account",
    "AnsweredQuestion",
    "BoardFigures",
    "Charge",
    "ChatMessage",
    "Chunk",
    "ChunkingMethod",
    "Citation",
    "Collection",
    "CollectionContents",
    "ContextResponse",
    "Conversation",
    "CostDetails",
    "CostEstimate",
    "Document",
    "DocumentChunk",
    "DocumentFigures",
    "DocumentFilters",
    "DocumentName",
    "DocumentPage",
    "DocumentRow",
    "DocumentSort",
    "DocumentStatus",
    "Embeddings",
    "Evidence",
    "EvidenceDetails",
    "FloatMatrix",
    "Identity",
    "MarkKind",
    "Message",
    "MessageState",
    "OpenAIDetails",
    "Operation",
    "Outcome",
    "Page",
    "PageCorrection",
    "PageMark",
    "PdfType",
    "PostFilters",
    "ProcessingCosts",
    "ProcessingResult",
    "QueryDetails",
    "Question",
    "RAGDetails",
    "RawResultDetails",
    "RerankedResultDetails",
    "RerankingDetails",
    "Role",
    "Scope",
    "SearchDetails",
    "SearchFilters",
    "SearchQueryDetails",
    "SearchResult",
    "Section",
    "Step",
    "StepDetails",
    "SuggestedQuestions",
    "TimingDetails",
    "TokenUsage",
    "UploadOptions",
    "Usage",
    "Who",
    "page_path",
    "sections_from_json",
    "storable",
    "storable_json",
    "tenant_of",
    "title_with_pages",
]  # fmt: skip

# Commands without vectors do not need NumPy, and this alias is never evaluated at run time.
FloatMatrix: TypeAlias = "NDArray[np.float32]"
"""Embeddings, one row per text: shape (texts, dimensions)."""

Operation = Literal["embedding", "chunking", "reranking", "translation", "chat", "tagging", "ocr"]
"""What a paid call was made for; the ledger and the analytics group by it."""


# People


class Role(StrEnum):
    """A person's role in a tenant, in ascending order. Each role includes the previous roles' rights."""

    EMPLOYEE = "employee"
    MANAGER = "manager"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)


#: Prefix for the address of a widget's asker.
WIDGET_ACTOR = "widget:"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A verified caller in a tenant: a person, an API key or a widget."""

    account_id: UUID
    tenant_id: str
    email: str
    name: str
    role: Role
    user_group: str = ""
    #: Hash of the session's token in hex. It names the session, but cannot be used to sign in.
    session_id: str = ""
    #: The chosen interface language; "" means the browser's.
    language: str = ""

    def may(self, role: Role) -> bool:
        return self.role.includes(role)

    @property
    def is_person(self) -> bool:
        """Whether this is a person with an account, not an API key, a widget or a program on this machine."""
        return bool(self.email) and not self.email.startswith(("key:", WIDGET_ACTOR))

    @property
    def is_widget(self) -> bool:
        """Whether the caller is a widget on another site."""
        return self.email.startswith(WIDGET_ACTOR)


Who = Identity | str
"""Who is at work: a person, bound by their group and named in the audit log; or, as a tenant id, the product itself."""


def tenant_of(who: Who) -> str:
    """Return the tenant's id for a person or program. A tenant's id is returned unchanged."""
    return who if isinstance(who, str) else who.tenant_id


@dataclass(frozen=True, kw_only=True)
class Account:
    """A row in `accounts` without the password hash."""

    id: UUID
    tenant_id: str
    email: str
    name: str
    role: Role
    user_group: str
    is_active: bool
    created_at: datetime
    last_signed_in_at: datetime | None
    #: When the person asked for a link to a new password; read with the list of accounts only.
    password_asked_at: datetime | None = None


# Paid calls


@dataclass(frozen=True, kw_only=True)
class Usage:
    """A call's usage, counted by the provider. `input_tokens` include `cached_input_tokens`.

    With `is_estimated`, the provider gave no count, but may have billed the call.
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
    """A paid call with its price: a row in the ledger."""

    operation: Operation
    usage: Usage
    #: US dollars; `None` if the model has no known price.
    cost: Decimal | None
    #: The unit prices used, in the ledger's format: `{"input_mtok": "0.02", "source": "genai-prices 0.2.3"}`.
    unit_prices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Embeddings:
    """Embedding vectors with shape (texts, dimensions), in the texts' order, and each request's usage."""

    vectors: FloatMatrix
    usages: tuple[Usage, ...] = ()


# Search


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Where to search: a tenant, and the collections the caller may read."""

    tenant_id: str
    collection_ids: tuple[UUID, ...]
    #: The person asking; `None` for the product's own searches. The database applies the person's group.
    reader: Identity | None = None

    @property
    def who(self) -> Who:
        return self.reader or self.tenant_id


@dataclass(frozen=True, kw_only=True)
class SearchFilters:
    """Filters for documents. A document must match every filter which is not empty."""

    document_ids: tuple[UUID, ...] = ()
    #: Slugs; a document needs any of them.
    categories: tuple[str, ...] = ()
    document_types: tuple[str, ...] = ()
    years: tuple[int, ...] = ()
    #: First and last day, both inclusive: by the date written in the document, else its creation date.
    date_from: date | None = None
    date_to: date | None = None
    important_only: bool = False
    #: Document metadata fields with their required values.
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return self == SearchFilters()


def narrowing(document_ids: Sequence[UUID], filters: SearchFilters) -> dict[str, Any]:
    """Return the documents and filters which the user chose for a question, in JSON, without empty values."""
    chosen = {
        "documents": [str(document_id) for document_id in document_ids],
        "categories": list(filters.categories),
        "years": list(filters.years),
        "important": filters.important_only,
        "fields": dict(filters.metadata),
    }
    return {name: value for name, value in chosen.items() if value}


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """A hit: a chunk with ranks (from 1) and scores.

    A rank or score is `None` if the search in question did not find the chunk.
    """

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
    #: Cosine similarity by the built-in meaning model, if `similarity` compares words.
    meaning: float | None = None
    #: Likewise for each part of the passage (`rag.ingestion.meaning.parts_of`), in order; empty if unknown.
    part_meanings: tuple[float, ...] = ()
    meaning_rank: int | None = None
    #: The value by which results are ordered; each step has a different scale.
    score: float = 0.0
    #: The reranker's relevance, 0 … 1.
    rerank_score: float | None = None
    #: Rank after fusion, before reranking.
    original_rank: int = 0
    #: The document's folder in the library; empty if titles are not indexed either.
    folder: str = ""


@dataclass(frozen=True, kw_only=True)
class Citation:
    """The chunk behind a number in an answer, for example `[1]`."""

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
    #: Words from the question and the answer found in the passage, to be marked.
    matched_terms: tuple[str, ...] = ()
    #: False if a sentence citing it contradicts its page or adds other figures, dates, names or words.
    is_supported: bool = True
    #: Those sentences, without their citations.
    unsupported: tuple[str, ...] = ()
    #: Pages of the text the model read around the passage; 0 means the passage's pages.
    first_read_page: int = 0
    last_read_page: int = 0
    #: For posts: category, day in the text (ISO 8601) and marks.
    category: str = ""
    written_on: str = ""
    is_pinned: bool = False
    is_important: bool = False
    #: The original post's address, and its files with addresses in order; "" if links are not allowed.
    url: str = ""
    attachments: tuple[tuple[str, str], ...] = ()
    #: The collection's name, if several were searched.
    collection: str = ""
    #: A person corrected the text.
    is_corrected: bool = False
    #: The document's folder in the library.
    folder: str = ""


@dataclass(frozen=True, kw_only=True)
class ContextSnippet:
    """A chunk given to the model, with the number by which the answer cites it."""

    number: int
    chunk_id: UUID
    document_id: UUID
    title: str
    content: str
    #: The value by which passages are ordered.
    score: float
    similarity: float | None


@dataclass(frozen=True, kw_only=True)
class TokenUsage:
    input: int = 0
    output: int = 0


Evidence = Literal["answered", "perhaps", "none"]
"""Whether the passages found answer the question; `none`: it is not in the documents."""


@dataclass(frozen=True, kw_only=True)
class VersionOnDay:
    """A document's version valid on a certain day. `valid_from` is the published version's first day, if set."""

    day: date
    published_id: UUID
    document_id: UUID
    version: int
    title: str
    file_name: str
    language: str
    valid_from: date | None


@dataclass(frozen=True)
class OwnPlace:
    """The user's group, and the documents for the city or country in the group's name."""

    group: str
    documents: frozenset[UUID]
    #: The context without regard to the place.
    usual_context: ContextResponse
    #: Folders by document, to distinguish equal titles.
    folders: Mapping[UUID, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ContextResponse:
    """The result of `retrieve_context`. `citations` are numbered from 1, like the chunks in `context_text`."""

    context_text: str
    citations: tuple[Citation, ...]
    token_usage: TokenUsage
    cost: Decimal
    rag_details: RAGDetails
    #: Nearest passages below the threshold, best first; shown if there is no answer.
    nearest: tuple[Citation, ...] = ()
    charges: tuple[Charge, ...] = ()
    #: Sentences for the reader on the steps skipped because a provider failed.
    notices: tuple[str, ...] = ()
    #: The search results behind the citations, in their order, with scores.
    results: tuple[SearchResult, ...] = ()
    #: Whether the passages answer the question. With "perhaps" they are the closest there is, cited all the same.
    evidence: Evidence = "answered"
    #: Probability that the best passage answers, 0 … 1; `None` without passages.
    probability: float | None = None
    #: By cited chunk, the median cosine by meaning among the passages found in its language; empty if meaning was not
    #: compared.
    usual_meanings: Mapping[UUID, float] = field(default_factory=dict)
    #: Cited chunks from documents which never mention the company or country in the question.
    unnamed: frozenset[UUID] = frozenset()
    #: The companies and countries in the question.
    names: tuple[str, ...] = ()
    #: Earlier versions searched instead of the published ones, because they were valid on the day in question.
    versions: tuple[VersionOnDay, ...] = ()
    #: Published versions still valid on the question's coming day.
    staying: tuple[VersionOnDay, ...] = ()
    #: The asker's place, whose passages come first; `None` without passages from elsewhere.
    own_place: OwnPlace | None = None

    @property
    def snippets(self) -> tuple[ContextSnippet, ...]:
        """Return the chunks in `context_text`, in order."""
        return tuple(
            ContextSnippet(
                number=number,
                chunk_id=result.chunk_id,
                document_id=result.document_id,
                title=result.title,
                content=result.content,
                score=result.score,
                similarity=result.similarity,
            )
            for number, result in enumerate(self.results, 1)
        )


# Answers


class Outcome(StrEnum):
    """A question's outcome, recorded in `chat_logs` for every question."""

    #: With at least one valid citation.
    ANSWERED = "answered"
    #: The closest passages were quoted although they may not answer; or no source supports the reply.
    PERHAPS = "perhaps"
    NO_CONTEXT = "no_context"
    #: A greeting or similar, answered in a line: not a question, so neither answered nor a gap.
    SMALL_TALK = "small_talk"
    #: Asked which document is meant; the next message says which.
    ASKED_BACK = "asked_back"
    REFUSED = "refused"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class ChatMessage:
    """A message for a chat model. Images are PNG, for models with vision."""

    role: Literal["system", "user", "assistant"]
    content: str
    images: tuple[bytes, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with everything needed to answer it."""

    text: str
    identity: Identity
    collection: Collection
    #: Further collections to search. The profile of `collection` writes the answer.
    others: tuple[Collection, ...] = ()
    history: Sequence[ChatMessage] = ()
    document_ids: tuple[UUID, ...] = ()
    #: Conditions for documents, chosen by the asker.
    filters: SearchFilters = field(default_factory=SearchFilters)
    #: The question's ISO 639-1 code, if the asker tells; detected by default.
    language: str | None = None
    #: The asker's languages from browser, program or terminal, preferred first; used if the question's language is
    #: unclear.
    reader_languages: Sequence[str] = ()

    @property
    def limited_to(self) -> list[UUID]:
        """The restricted collections' ids, if several collections are asked; see the function `limited_to`."""
        return limited_to(self.collection, self.others)


def limited_to(collection: Collection, others: Sequence[Collection]) -> list[UUID]:
    """Return the ids of the collections restricted to groups, if several collections are asked.

    Empty for a single collection, because the restriction applies to the log anyway.
    """
    return [searched.id for searched in (collection, *others) if searched.groups] if others else []


@dataclass(frozen=True, kw_only=True)
class Conversation:
    id: UUID
    title: str
    collection_id: UUID
    created_at: datetime
    updated_at: datetime
    #: When it was pinned to the top of the list.
    pinned_at: datetime | None = None
    #: Messages up to this time may be read by colleagues with access to its collection.
    shared_at: datetime | None = None
    #: Whether a person has replied in it, unseen by the asker.
    has_news: bool = False
    #: Whether its latest question asked all collections; the profile of `collection_id` answers.
    asks_all: bool = False
    #: The latest question's documents and filters, from `narrowing`.
    narrowed_to: Mapping[str, Any] = field(default_factory=dict)


class MessageState(StrEnum):
    STREAMING = "streaming"
    COMPLETE = "complete"
    STOPPED = "stopped"
    #: Ended early by the provider or the process; the text up to there is kept.
    CUT = "cut"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class Message:
    """A row in `messages`. Only the assistant's messages have citations, notices and costs."""

    id: UUID
    conversation_id: UUID
    role: Literal["user", "assistant"]
    content: str
    state: MessageState
    #: A sentence for the reader if the answer did not end well.
    notice: str
    #: `Citation.to_json` for each passage shown under the answer.
    citations: list[dict[str, Any]]
    outcome: Outcome | None
    chat_log_id: UUID | None
    cost: Decimal | None
    total_ms: int | None
    rating: int | None
    created_at: datetime
    #: Numbers of passages from documents deleted since; only the numbers are kept.
    removed_sources: list[int] = field(default_factory=list)
    #: If the question was passed on to a person: the status, the reply, its author and time.
    help_status: Literal["", "open", "answered", "dismissed"] = ""
    help_answer: str = ""
    help_by: str = ""
    help_at: datetime | None = None


# A question's log; the stored JSON's field names come from the HR document.


@dataclass(kw_only=True)
class QueryDetails:
    original: str = ""
    expanded: list[str] = field(default_factory=list)
    alternative_queries: list[str] = field(default_factory=list)
    translated_from: str | None = None
    translated_query: str | None = None

    @property
    def searched_as(self) -> str:
        """Return the rewritten or translated text used for the search; "" if the question was searched unchanged."""
        texts = (*self.expanded, self.translated_query)
        return next((text for text in texts if text and text != self.original), "")


@dataclass(kw_only=True)
class SearchQueryDetails:
    """A wording with which the question was searched.

    If several wordings share an embedding call, the call's time is stored with the first wording.
    """

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
    #: Passages left out by a strict threshold, beyond the HR document's interface; `None` if it is not strict.
    below_threshold: int | None = None


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
    """A question's costs in US dollars. A call without a known price adds 0; the ledger marks it unpriced.

    `openai` is the call which wrote the answer; `OpenAIDetails` has the tokens. Each other chat call has a separate
    field, `None` if there was no call.
    """

    embedding: float = 0.0
    reranking: float = 0.0
    translation: float = 0.0
    openai: float = 0.0
    #: Rewriting the question as a standalone question, or in other words.
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
    """A step in the retrieval: a few words about the result, and the time taken."""

    name: str = ""
    detail: str = ""
    ms: float = 0.0


@dataclass(kw_only=True)
class EvidenceDetails:
    """Whether the chunks answer the question, and the probability for the best chunk."""

    outcome: Evidence = "none"
    probability: float = 0.0


@dataclass(kw_only=True)
class RAGDetails:
    """Everything done for a question. Each stage fills in a part. Stored in JSON with camelCase names."""

    query: QueryDetails = field(default_factory=QueryDetails)
    search: SearchDetails = field(default_factory=SearchDetails)
    reranking: RerankingDetails = field(default_factory=RerankingDetails)
    openai: OpenAIDetails = field(default_factory=OpenAIDetails)
    costs: CostDetails = field(default_factory=CostDetails)
    timing: TimingDetails = field(default_factory=TimingDetails)
    #: All steps in order, beyond the HR document's interface; `None` without retrieval.
    steps: list[StepDetails] | None = None
    #: None where nothing was retrieved.
    evidence: EvidenceDetails | None = None
    #: Parts left out, such as a reranker which did not answer, worded for the asker; `None` without any.
    notices: list[str] | None = None
