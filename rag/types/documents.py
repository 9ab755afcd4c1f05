"""Values for documents and collections: pages, sections, chunks, costs, and filters for lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

ChunkingMethod = Literal[
    "fixed", "smart", "semantic", "sentences", "recursive", "paged", "professional", "narrative", "markdown", "generic",
    "auto",
]  # fmt: skip
"""How a document is cut; `auto` goes by what kind of document it is."""
PdfType = Literal["auto", "scanned", "digital"]
"""Which pages of a PDF text recognition is for: those that show something and have no text, all, or none."""
DocumentSort = Literal["newest", "oldest", "title", "language", "pages", "chunks", "size", "cost"]
"""The order of a list of documents: names from A, figures from the largest."""

#: The line above the attachments in a post's text, in Korean and in English.
ATTACHMENT_HEADS = ("--- 첨부파일 정보 ---", "--- Attachments ---")


def page_path(document_id: UUID | str, page: int = 1) -> str:
    """Return the URL path which opens a document's original file at a page, for readers with access."""
    return f"/api/documents/{document_id}/file#page={page}"


def title_with_pages(title: str, first_page: int, last_page: int) -> str:
    """Format a title with its pages, for files and other programs: "Employee handbook, pp. 3–4"."""
    return f"{title}, pp. {first_page}–{last_page}" if last_page > first_page else f"{title}, p. {first_page}"


class DocumentStatus(StrEnum):
    """A document's state. Only `completed` documents are searchable."""

    #: Only registered; its text, chunks, tags and vectors come step by step.
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
    #: Deleted; it can be restored for thirty days.
    BINNED = "binned"
    #: Replaced by a later version; it can be restored.
    SUPERSEDED = "superseded"


class Step(StrEnum):
    """The steps of ingestion, in order. Each is a durable job."""

    EXTRACT = "extract"
    RECOGNISE = "recognise"
    CHUNK = "chunk"
    EMBED = "embed"
    TAG = "tag"
    PUBLISH = "publish"


#: A note may be a stamp or a form value; a picture may hold text for recognition; a line was recognised, an unsure one
#: without certainty.
MarkKind = Literal["table", "heading", "note", "left out", "picture", "line", "unsure"]
#: The most marks to keep for a page.
MOST_MARKS = 1000


@dataclass(frozen=True)
class PageMark:
    """A box on a page which shows how content was read, for example a table, or an image left out.

    Edges are fractions (0 to 1) of the displayed page, measured from the top left corner.
    """

    kind: MarkKind
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page's text. `number` counts from 1; `label` is the printed page number, if different."""

    number: int
    text: str
    method: Literal["text", "ocr", "none"] = "text"
    language: str = ""
    label: str = ""
    warnings: tuple[str, ...] = ()
    #: `None` if the places are unknown.
    marks: tuple[PageMark, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading with the position: `page` from 1, `start` in characters in the document's joined text."""

    title: str
    level: int
    page: int
    start: int


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A piece of a document's text.

    `start` and `end` (exclusive) are character positions in the document's pages, joined by newlines. `section` is the
    path of headings above the chunk, joined by " › ".
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
class UploadOptions:
    """A caller's options for an upload, for example the password, the chunking method and metadata."""

    #: Unlocks the file; never stored.
    password: str | None = field(default=None, repr=False)
    #: The chunking method and the kind of PDF; the collection's by default.
    chunking_method: ChunkingMethod | None = None
    pdf_type: PdfType | None = None
    #: Whether a model writes the summary, topics and questions.
    generate_metadata: bool = True
    #: Values for the collection's own filter fields; `DocumentLibrary.upload` checks and stores them.
    metadata: Mapping[str, str] = field(default_factory=dict)
    #: US dollars: an estimate up to this amount needs no confirmation, unless the file replaces another document.
    confirmed_up_to: Decimal | None = None
    #: The document to replace: the file becomes the next version, under any name.
    replaces: UUID | None = None
    #: Whether the file becomes the next version if a document has the same file name and folder.
    is_version: bool = True
    #: Whether the file is one of the samples.
    is_sample: bool = False


@dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """The estimated cost of processing a document in US dollars. A cost is `None` if no price is known.

    `embedding_tokens` and `tagging_tokens` are counted from the text. The costs are also corrected by the providers'
    counts for earlier documents.
    """

    pages: int
    characters: int
    #: Tokens to embed, as the provider is expected to count them.
    tokens: int
    embedding_tokens: int
    tagging_tokens: int
    chunks: int
    parsing: Decimal | None
    chunking: Decimal | None
    embedding: Decimal | None
    metadata: Decimal | None
    total: Decimal | None
    #: The bill is expected in this range, judged by the differences between earlier bills and estimates.
    low: Decimal | None
    high: Decimal | None


@dataclass(frozen=True, kw_only=True)
class ProcessingCosts:
    """Each step's cost in processing a document in US dollars, from the ledger."""

    parsing: Decimal | None = Decimal(0)
    chunking: Decimal | None = Decimal(0)
    embedding: Decimal | None = Decimal(0)
    metadata: Decimal | None = Decimal(0)
    total: Decimal | None = Decimal(0)


@dataclass(frozen=True, kw_only=True)
class ProcessingResult:
    """The result of `process_document`. `processing_time` is in milliseconds."""

    document_id: UUID
    chunk_count: int
    processing_time: int
    costs: ProcessingCosts
    #: A note, for example why tagging failed; "" without a note.
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Document:
    """A row in `documents`, for the library's list."""

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
    #: The current or failed step, with `steps_done` of `steps_total` units finished.
    step: Step
    steps_done: int
    steps_total: int
    #: A sentence for the admin: the reason for a failure, or a remark.
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
    #: The first version's id, shared by all versions.
    original_id: UUID | None = None
    version: int = 1
    published_at: datetime | None = None
    superseded_at: datetime | None = None
    #: Manually requested steps, run while it continues to answer.
    pending_steps: list[str] = field(default_factory=list)
    #: Paid calls sent again after a kill; a provider without idempotency keys may have billed each twice.
    repeated_calls: int = 0
    #: Its provider refuses the key or has no credit left; processing resumes automatically, and `message` says why it
    #: waits.
    is_waiting: bool = False
    #: Kept by a source, such as a table of posts, and processed without confirmation.
    is_synced: bool = False
    pdf_type: PdfType = "auto"
    #: Pages with text still to be recognised.
    ocr_pages: list[int] = field(default_factory=list)
    #: A path of folder names separated by slashes.
    folder: str = ""
    tags: list[str] = field(default_factory=list)
    owner_id: UUID | None = None
    owner_name: str = ""
    valid_from: date | None = None
    valid_until: date | None = None
    #: The day for the owner's next review.
    review_on: date | None = None
    #: The language set by an administrator.
    corrected_language: str = ""
    #: The document is processed without confirmation up to this estimate in US dollars.
    confirmed_up_to: Decimal | None = None
    #: When it was moved to the bin.
    binned_at: datetime | None = None
    #: The file's place in its archive or folder; with the file name, it identifies the next version.
    upload_folder: str = ""


@dataclass(frozen=True, kw_only=True)
class DocumentRow:
    """A document as a row in the library's table."""

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
    #: The owner's name, else the name of the account which added the document.
    owner_name: str
    updated_at: datetime
    #: In US dollars; `None` if a price is unknown, or nothing was spent (`has_cost` is false then).
    cost: Decimal | None
    has_cost: bool
    valid_until: date | None
    review_on: date | None
    #: Metadata only some documents have: a repository, a department.
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AnsweredQuestion:
    """A question answered from a document."""

    id: UUID
    question: str
    outcome: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class SuggestedQuestions:
    """Questions answered by a document, in the document's language and in other readers' languages."""

    id: UUID
    language: str | None
    questions: list[str]
    elsewhere: dict[str, list[str]]

    def in_language(self, language: str) -> list[str]:
        return self.questions if language == self.language else self.elsewhere.get(language, [])


@dataclass(frozen=True, kw_only=True)
class DocumentName:
    """The names which identify a document in a list: title and file name."""

    id: UUID
    title: str
    file_name: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class DocumentFilters:
    """Filters for a list of documents. An empty filter matches all. `document_ids` restricts the list to these ids."""

    text: str = ""
    statuses: tuple[DocumentStatus, ...] = ()
    language: str = ""
    method: str = ""
    mime_type: str = ""
    collection_id: UUID | None = None
    document_ids: tuple[UUID, ...] | None = None
    #: Documents with the words in the text, besides documents with the words in the title.
    found_ids: tuple[UUID, ...] = ()
    #: With the folders within it.
    folder: str = ""
    tag: str = ""
    owner_id: UUID | None = None
    #: `expired`: no longer valid. `review`: due for review.
    due: Literal["", "expired", "review"] = ""

    def parameters(self) -> dict[str, Any]:
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
    """Counts and costs for the documents with the same collection, status, language, method and type. Costs are US
    dollars.
    """

    collection_id: UUID
    status: DocumentStatus
    language: str
    chunking_method: ChunkingMethod
    mime_type: str
    #: 0 for earlier versions and the bin, which only count with their costs.
    documents: int
    pages: int
    chunks: int
    cost: Decimal
    unpriced: int
    estimated: Decimal
    #: The expected range of the bill for estimated documents.
    low: Decimal
    high: Decimal
    unpriced_estimates: int
    #: The newest document's time and the last change.
    created_at: datetime
    updated_at: datetime

    def fits(self, filters: DocumentFilters) -> bool:
        """Whether the documents counted here match the filters. A filter by text is ignored."""
        return (
            (not filters.statuses or self.status in filters.statuses)
            and filters.language in ("", self.language)
            and filters.method in ("", self.chunking_method)
            and filters.mime_type in ("", self.mime_type)
            and filters.collection_id in (None, self.collection_id)
        )


@dataclass(frozen=True, kw_only=True)
class PostFilters:
    """Filters for a list of posts on a notice board. An empty filter matches all posts which the reader may see."""

    collection_id: UUID
    #: Only searchable posts.
    only_ready: bool = False
    text: str = ""
    categories: tuple[str, ...] = ()
    is_pinned: bool = False
    is_important: bool = False
    has_attachments: bool = False

    def parameters(self) -> dict[str, Any]:
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
    """A category's post counts: all, pinned, important, with attachments, and in processing."""

    category: str
    posts: int
    pinned: int
    important: int
    with_attachments: int
    at_work: int


@dataclass(frozen=True, kw_only=True)
class DocumentPage:
    """A row in `document_pages`: a page's text, how it was read, and its warnings."""

    document_id: UUID
    number: int
    text: str
    characters: int
    method: Literal["text", "ocr", "none"]
    language: str
    label: str
    warnings: list[str]
    #: JSON of `PageMark`s, or NULL.
    marks: list[dict[str, Any]] | None = None
    #: The text read from the file, on a corrected page.
    read_text: str | None = None

    @property
    def as_read(self) -> str:
        """The text as read from the file, before corrections."""
        return self.text if self.read_text is None else self.read_text

    @property
    def is_corrected(self) -> bool:
        return self.read_text is not None


@dataclass(frozen=True, kw_only=True)
class PageCorrection:
    """A row in `page_corrections`: a page's text before and after a person's correction."""

    id: UUID
    page: int
    #: The fingerprint of the text read from the file.
    read_hash: str
    text_before: str
    #: `None` returns to the text read from the file.
    text_after: str | None
    #: `None` for programs and deleted accounts.
    corrected_by: UUID | None
    corrected_by_name: str
    created_at: datetime
    #: No newer correction replaced it.
    is_latest: bool


@dataclass(frozen=True, kw_only=True)
class DocumentChunk:
    """A row in `document_chunks` without the vector."""

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
    """Documents with the same profile and embedding model."""

    id: UUID
    tenant_id: str
    name: str
    profile: str
    #: The embedder's id, `provider/model@dimensions`.
    embedding_model: str
    language: str
    #: Differences from the profile, in JSON.
    overrides: dict[str, Any]
    created_at: datetime
    #: The least similarity, measured on the collection's text with its embedder; `None` before the measurement.
    calibrated_threshold: float | None = None
    calibrated_at: datetime | None = None
    #: Groups with read access, besides administrators; empty: everyone.
    groups: list[str] = field(default_factory=list)
    #: The embedder used for the measurement, and the number of passages.
    calibrated_model: str | None = None
    calibrated_passages: int | None = None


@dataclass(frozen=True, kw_only=True)
class CollectionContents:
    """A collection's size, and how many conversations and people have asked it."""

    collection_id: UUID
    documents: int
    #: Documents that can be searched.
    ready: int
    pages: int
    chunks: int
    conversations: int
    people: int


def storable(text: Any) -> str:
    """Replace NUL and lone surrogates, which Postgres refuses, in a text. The length stays the same."""
    cleaned = str(text).replace("\0", "\ufffd")
    return cleaned.encode("utf-8", "replace").decode("utf-8") if not cleaned.isascii() else cleaned


def storable_json(value: Any) -> Any:
    """Replace the characters refused by Postgres in all texts in a JSON value."""
    if isinstance(value, dict):
        return {storable(name): storable_json(part) for name, part in value.items()}
    if isinstance(value, list):
        return [storable_json(part) for part in value]
    return storable(value) if isinstance(value, str) else value


def sections_from_json(values: Any) -> tuple[Section, ...]:
    return tuple(
        Section(
            title=storable(section["title"]),
            level=int(section["level"]),
            page=int(section["page"]),
            start=int(section["start"]),
        )
        for section in values or ()
    )
