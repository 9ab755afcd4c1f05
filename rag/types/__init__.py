"""The values that flow between the stages.

All are frozen and know nothing of the database, the network or the page: rows and JSON live at the edges.
Costs are US dollars as `Decimal`; `None` means that the price is not known, which is never the same as zero. Documents
and collections are in `rag.types.documents`; import every value from `rag.types`.
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
    "Usage",
    "Who",
    "page_path",
    "sections_from_json",
    "storable",
    "storable_json",
    "tenant_of",
    "title_with_pages",
]  # fmt: skip

# NumPy is a package that commands without vectors do without, and nobody looks into this at run time.
FloatMatrix: TypeAlias = "NDArray[np.float32]"
"""Embeddings, one row per text: shape (texts, dimensions)."""

Operation = Literal["embedding", "chunking", "reranking", "translation", "chat", "tagging", "ocr"]
"""What a paid call was made for; the ledger and the analytics group by it."""


# People


class Role(StrEnum):
    """The rights of a person within a tenant; each role includes all earlier roles."""

    EMPLOYEE = "employee"
    MANAGER = "manager"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)


#: How the address of a widget's asker begins.
WIDGET_ACTOR = "widget:"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A verified person acting within one tenant, whatever way they signed in."""

    account_id: UUID
    tenant_id: str
    email: str
    name: str
    role: Role
    user_group: str = ""
    #: Hash of the session's token in hex. It names the session, but cannot be used to sign in.
    session_id: str = ""
    #: The language chosen for the interface; "" is that of the browser.
    language: str = ""

    def may(self, role: Role) -> bool:
        return self.role.includes(role)

    @property
    def is_person(self) -> bool:
        """Return whether this is somebody's account; API keys, widgets and programs on this machine have none."""
        return bool(self.email) and not self.email.startswith(("key:", WIDGET_ACTOR))

    @property
    def is_widget(self) -> bool:
        """Return whether a widget on another site asks."""
        return self.email.startswith(WIDGET_ACTOR)


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
    """The usage of one call, counted by the provider. `cached_input_tokens` are included in `input_tokens`.

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
    """A paid call with its price: one row in the ledger."""

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


def narrowing(document_ids: Sequence[UUID], filters: SearchFilters) -> dict[str, Any]:
    """Return the chosen documents and filters of a question as JSON."""
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
    #: Cosine similarity by the built-in model of meaning, where `similarity` compares words.
    meaning: float | None = None
    #: Likewise for each part of the passage (`rag.ingestion.meaning.parts_of`), in order; empty if unknown.
    part_meanings: tuple[float, ...] = ()
    meaning_rank: int | None = None
    #: The value that orders the results; each step has its own scale.
    score: float = 0.0
    #: The reranker's relevance, 0 … 1.
    rerank_score: float | None = None
    #: Rank after fusion, before reranking.
    original_rank: int = 0
    #: The document's folder in the library; empty where titles are not indexed either.
    folder: str = ""


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
    #: Pages of the text that the model read around the passage; 0: the passage's own pages.
    first_read_page: int = 0
    last_read_page: int = 0
    #: For posts: category, day in the text (ISO 8601) and marks.
    category: str = ""
    written_on: str = ""
    is_pinned: bool = False
    is_important: bool = False
    #: The address of the original post, and its files with their addresses in order; "" where links are not allowed.
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
    """A passage in the context, with its number in the answer."""

    number: int
    chunk_id: UUID
    document_id: UUID
    title: str
    content: str
    #: What the passages are ordered by.
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
    """The version of a document valid on a day.

    `valid_from` is the first day of the published version, if anybody set it.
    """

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
    """The asker's group, and the documents for the place in its name."""

    group: str
    documents: frozenset[UUID]
    #: The context without regard to the place.
    as_found: ContextResponse
    #: The folders of documents, to distinguish equal titles.
    folders: Mapping[UUID, str] = field(default_factory=dict)


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
    #: Sentences for the reader on the steps skipped because a provider failed.
    notices: tuple[str, ...] = ()
    #: The search results behind the citations, in their order, with scores.
    results: tuple[SearchResult, ...] = ()
    #: Whether the passages answer the question. With "perhaps" they are the closest there is, cited all the same.
    evidence: Evidence = "answered"
    #: Probability that the best passage answers, 0 … 1; None without passages.
    probability: float | None = None
    #: By chunk cited, the median cosine by meaning of the passages found in its language; empty where meaning was not
    #: compared.
    usual_meanings: Mapping[UUID, float] = field(default_factory=dict)
    #: Cited chunks of documents without a sign of the company or country in the question.
    unnamed: frozenset[UUID] = frozenset()
    #: The companies and countries in the question.
    names: tuple[str, ...] = ()
    #: Earlier versions that were searched in the place of published ones, because they were valid on the day asked
    #: about.
    versions: tuple[VersionOnDay, ...] = ()
    #: Published versions that are still valid on a coming day of the question.
    staying: tuple[VersionOnDay, ...] = ()
    #: The asker's place, whose passages come first; None without passages from elsewhere.
    own_place: OwnPlace | None = None

    @property
    def snippets(self) -> tuple[ContextSnippet, ...]:
        """The passages of `context_text` in their order."""
        return tuple(
            ContextSnippet(
                number=number,
                chunk_id=found.chunk_id,
                document_id=found.document_id,
                title=found.title,
                content=found.content,
                score=found.score,
                similarity=found.similarity,
            )
            for number, found in enumerate(self.results, 1)
        )


# Answers


class Outcome(StrEnum):
    """How a question ended; `chat_logs` has one for every question asked."""

    #: With at least one citation that holds.
    ANSWERED = "answered"
    #: The closest passages were quoted without certainty that they answer; or no source supports the reply.
    PERHAPS = "perhaps"
    NO_CONTEXT = "no_context"
    #: A greeting or the like, met in one line: no question, neither answered nor a gap.
    SMALL_TALK = "small_talk"
    #: Asked which of several documents is meant; the next message answers that.
    ASKED_BACK = "asked_back"
    REFUSED = "refused"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class ChatMessage:
    """A turn for a chat model, with pictures (PNG) for models with vision."""

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
    #: Languages of the asker's browser, program or terminal, the preferred first; they count for a question that
    #: does not tell its own.
    reader_languages: Sequence[str] = ()

    @property
    def limited_to(self) -> list[UUID]:
        """Return the collections that only some groups may read, where several are asked."""
        return limited_to(self.collection, self.others)


def limited_to(collection: Collection, others: Sequence[Collection]) -> list[UUID]:
    """Return the restricted collections among several. A single collection shows the restriction itself."""
    return [asked.id for asked in (collection, *others) if asked.groups] if others else []


@dataclass(frozen=True, kw_only=True)
class Conversation:
    id: UUID
    title: str
    collection_id: UUID
    created_at: datetime
    updated_at: datetime
    #: Since when it is kept at the top of the list.
    pinned_at: datetime | None = None
    #: Until when its messages may be read by colleagues who may read its collection.
    shared_at: datetime | None = None
    #: Whether a person has answered there, and the asker has not seen it.
    has_news: bool = False
    #: Whether its latest question was asked in all collections; `collection_id` is the one whose profile answers.
    asks_all: bool = False
    #: Documents and filters of the latest question, from `narrowing`.
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
    """A row of `messages`. Assistant messages carry their citations, notices and costs."""

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
    #: Numbers of passages from documents deleted since; only the numbers are kept.
    removed_sources: list[int] = field(default_factory=list)
    #: Where the question was passed on to a person: how far that is, their answer, who gave it and when.
    help_status: Literal["", "open", "answered", "dismissed"] = ""
    help_answer: str = ""
    help_by: str = ""
    help_at: datetime | None = None


# The log of a question; the field names of the stored JSON come from the HR document.


@dataclass(kw_only=True)
class QueryDetails:
    original: str = ""
    expanded: list[str] = field(default_factory=list)
    alternative_queries: list[str] = field(default_factory=list)
    translated_from: str | None = None
    translated_query: str | None = None

    @property
    def searched_as(self) -> str:
        """Return the text searched for in place of the question; "" if the question itself was."""
        texts = (*self.expanded, self.translated_query)
        return next((text for text in texts if text and text != self.original), "")


@dataclass(kw_only=True)
class SearchQueryDetails:
    """A wording of the question in a search. If wordings share a call or statement, the first has its time."""

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
    #: Passages left out by a strict threshold, beyond the HR document's interface; None where it is not strict.
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
    """US dollars. An unpriced call adds nothing here; the ledger holds it as unpriced.

    `openai` is the call that wrote the answer, whose tokens are in `OpenAIDetails`. Other calls of a chat model have
    lines of their own, beyond the HR document's interface; None where none was made.
    """

    embedding: float = 0.0
    reranking: float = 0.0
    translation: float = 0.0
    openai: float = 0.0
    #: Rewriting the question as a standalone one, or in other words.
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
    """A step of the retrieval: a few words on the result, and the time."""

    name: str = ""
    detail: str = ""
    ms: float = 0.0


@dataclass(kw_only=True)
class EvidenceDetails:
    """Whether the passages answer, and how likely the best passage does."""

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
    #: All steps in order, beyond the HR document's interface; None without retrieval.
    steps: list[StepDetails] | None = None
    #: None where nothing was retrieved.
    evidence: EvidenceDetails | None = None
    #: Parts left out, such as a reranker that did not answer, in the words shown to the asker; None without any.
    notices: list[str] | None = None
