"""Routes for legal opinions, and the eight routes for reference documents required by source 002 in docs/sources.md.

A document is sent as a PDF, or step by step as text, tags and vectors. Field names and errors follow source 002: 400
for a file which cannot be read or recognised, 500 if a model failed, both with `success: false`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Form, Path, Query
from pydantic import Field

from rag.access.problems import reference_problems
from rag.api.bodies import FileField
from rag.api.questions import MOST_PASSAGES, SEARCH_NOTICES
from rag.api.routing import ApiBody, ApiModel, ApiRoute, Caller, ProviderRoute, needs
from rag.errors import InvalidInput, NotFound, PartMissing
from rag.language import translated
from rag.profiles import REFERENCE_PROFILES, profile_of
from rag.profiles.legal.opinions import FoundReferences, Opinion, OpinionCase, reference_block, reference_query
from rag.profiles.legal.references import (
    LONGEST_CATEGORY,
    LONGEST_DESCRIPTION,
    LONGEST_TITLE,
    DescribedReference,
    ReferenceDocument,
)
from rag.services import services
from rag.types import Collection, Identity, SearchResult


class ReferenceRoute(ApiRoute):
    """A route for reference documents, with errors in the format from source 002 in docs/sources.md."""

    refusals = reference_problems


class OpinionRoute(ProviderRoute):
    """A `ReferenceRoute` with a handler which waits for a model."""

    refusals = reference_problems


router = APIRouter(route_class=ReferenceRoute, tags=["Reference documents"])
opinions = APIRouter(route_class=OpinionRoute, tags=["Reference documents"])

PATH = "/api/reference-documents"
PROFILE = REFERENCE_PROFILES[0]
#: The collection created for the first reference document, if there is none.
COLLECTION_NAME = "Legal references"
COLLECTION_LANGUAGE = "ko"
#: JSON of a whole document's text, in UTF-8.
TEXT_BYTES = 8 * 1024 * 1024
LONGEST_SUMMARY = 20_000
MOST_ISSUES = 50
PAGE_SIZE = 20
LONGEST_URL = 2000
LONGEST_FILE_NAME = 300
HIGHEST_PAGE = 1_000_000
LONGEST_NUMBER = 9

Title = Annotated[str, Field(max_length=LONGEST_TITLE, description="What it is called in lists and references.")]
Description = Annotated[str | None, Field(alias="source_description", max_length=LONGEST_DESCRIPTION)]
Category = Annotated[str | None, Field(max_length=LONGEST_CATEGORY, description="Such as guidelines or cases.")]
CollectionId = Annotated[UUID | None, Field(description="A collection with the profile legal; the first if not given.")]


class Listing(ApiModel):
    """The part of a list to return: at most `limit` items, after the first `offset` items."""

    limit: int = Field(PAGE_SIZE, ge=1, le=100)
    offset: int = Field(0, ge=0, le=1_000_000)


class Registration(ApiBody):
    """A reference document to register without text."""

    title: Title
    source_description: Description = None
    category: Category = None
    file_url: Annotated[str | None, Field(alias="file_url", max_length=LONGEST_URL)] = None
    file_name: Annotated[str | None, Field(alias="file_name", max_length=LONGEST_FILE_NAME)] = None
    collection_id: CollectionId = Field(None, strict=False)


class Ingestion(ApiBody):
    """A PDF to ingest as a reference document, with title and description."""

    document: FileField | None = Field(None, description="The PDF.")
    title: Title | None = None
    source_description: Description = None
    category: Category = None
    pdf_type: Literal["scanned", "digital"] | None = Field(
        None, description="Scanned pages go through text recognition, digital ones are read as they are."
    )
    collection_id: CollectionId = None


class Text(ApiBody):
    """A reference document's text, whole or by page. If neither is sent, the stored pages are chunked again."""

    full_text: str | None = None
    page_texts: dict[str, str] | None = Field(None, description='Text by page number: {"1": "…", "2": "…"}.')

    def by_page(self) -> dict[int, str] | None:
        """Return the text by page number; `None` if no text was sent. Raises `InvalidInput` for a wrong page number."""
        if self.page_texts is not None and self.full_text is not None:
            raise InvalidInput("Send either fullText or pageTexts, not both.")
        if self.full_text is not None:
            return {1: self.full_text}
        if self.page_texts is None:
            return None
        numbered: dict[int, str] = {}
        for name, text in self.page_texts.items():
            is_number = name.isascii() and name.isdigit() and len(name) <= LONGEST_NUMBER
            if not (is_number and 0 < int(name) <= HIGHEST_PAGE) or int(name) in numbered:
                raise InvalidInput(f"pageTexts has a page {name[:20]!r}: pages are numbers from 1, each once.")
            numbered[int(name)] = text
        return numbered


class Made(ApiModel):
    """A reference document after a processing step: the numbers of chunks, vectors and tagged chunks."""

    success: Literal[True] = True
    id: UUID
    title: str
    chunks_count: int
    embedded: int = Field(description="Chunks that have their vector.")
    tagged: int = Field(description="Chunks that have their tags.")
    message: str = Field("", description="What to know about it, such as why chunks are not tagged.")

    @classmethod
    def of(cls, document: ReferenceDocument) -> Made:
        """Convert a document to the response for clients which start its processing step by step."""
        return cls(
            id=document.id,
            title=document.title,
            chunks_count=document.chunks,
            embedded=document.embedded,
            tagged=document.tagged,
            message=document.message,
        )


class Described(ApiModel):
    """A reference document: description, status, and chunk counts."""

    id: UUID
    collection_id: UUID
    title: str
    source_description: str | None = Field(alias="source_description")
    category: str | None
    file_url: str | None = Field(alias="file_url")
    file_name: str = Field(alias="file_name")
    created_at: datetime = Field(alias="created_at")
    status: str
    message: str
    page_count: int
    chunks_count: int
    embedded: int
    tagged: int

    @classmethod
    def of(cls, document: ReferenceDocument) -> Described:
        """Convert a document to the API's format, with null for empty texts."""
        values: dict[str, Any] = {
            "id": document.id,
            "collection_id": document.collection_id,
            "title": document.title,
            "source_description": document.source_description or None,
            "category": document.category or None,
            "file_url": document.file_url or None,
            "file_name": document.file_name,
            "created_at": document.created_at,
            "status": document.status,
            "message": document.message,
            "page_count": document.page_count,
            "chunks_count": document.chunks,
            "embedded": document.embedded,
            "tagged": document.tagged,
        }
        return cls(**values)


class One(ApiModel):
    success: Literal[True] = True
    document: Described


class Registered(One):
    """The new reference document. Its id is repeated at the top level, for the next steps."""

    id: UUID


class Listed(ApiModel):
    success: Literal[True] = True
    documents: list[Described]
    total: int
    limit: int
    offset: int


class Deleted(ApiModel):
    success: Literal[True] = True
    id: UUID


class Analysis(ApiBody):
    """The facts of a case: a summary and the issues."""

    summary: str = Field("", max_length=LONGEST_SUMMARY)
    issues: list[Annotated[str, Field(max_length=2000)]] = Field(default_factory=list, max_length=MOST_ISSUES)


class Wanted(ApiBody):
    """A search for references: the kind of opinion, the case, and which chunks may be found."""

    opinion_type: str = Field(min_length=1, max_length=100, examples=["양형의견서"])
    analysis: Analysis = Field(default_factory=lambda: Analysis(summary=""))
    top_k: int | None = Field(
        None, ge=1, le=MOST_PASSAGES, description="Passages; the collection's own number if not given."
    )
    filters: dict[str, Annotated[str, Field(max_length=200)]] = Field(
        default_factory=dict, description="Tags the passages must have, such as crime_type."
    )
    collection_id: UUID | None = Field(None, strict=False)


class Reference(ApiModel):
    """A chunk from a reference document, found for a case."""

    id: UUID
    document_id: UUID
    title: str
    page_number: int = Field(alias="page_number")
    content: str
    metadata: dict[str, Any]
    similarity: float | None

    @classmethod
    def of(cls, hit: SearchResult) -> Reference:
        """Convert a hit to the API's format."""
        values: dict[str, Any] = {
            "id": hit.chunk_id,
            "document_id": hit.document_id,
            "title": hit.title,
            "page_number": hit.first_page,
            "content": hit.content,
            "metadata": dict(hit.metadata),
            "similarity": hit.similarity,
        }
        return cls(**values)


class Block(ApiModel):
    """The references found for a case: the search query, the chunks, and a text block for a prompt."""

    success: bool = True
    query: str
    chunks: list[Reference]
    reference_rag_block: str
    notices: list[str] = Field(description=SEARCH_NOTICES)


class Case(Wanted):
    """A legal opinion to draft: the kind, the case's facts, instructions, and style examples."""

    data_block: str = Field("", max_length=200_000, description="The facts of the case; the analysis if not given.")
    user_prompt: str = Field("", max_length=LONGEST_SUMMARY, description="What is wanted of the draft.")
    learning_examples: list[Annotated[str, Field(max_length=200_000)]] = Field(
        default_factory=list, max_length=10, description="Opinions to learn the style from."
    )
    reference_ids: list[Annotated[UUID, Field(strict=False)]] | None = Field(
        None, max_length=MOST_PASSAGES, description="Of the passages found, those to write on. Default: all."
    )

    @property
    def facts(self) -> str:
        """Return the given facts, else the text from the analysis."""
        return self.data_block.strip() or "\n".join([self.analysis.summary, *self.analysis.issues]).strip()


class OpinionShape(ApiModel):
    """A legal opinion's draft, with citations, state and cost."""

    id: UUID
    opinion_type: str
    content: str
    citations: list[dict[str, Any]] = Field(description="The passages the text cites, by their number in it.")
    state: Literal["writing", "complete", "cut", "failed"]
    message: str
    model: str
    cost: str | None = Field(description="US dollars; null where no price is known.")
    created_at: datetime

    @classmethod
    def of(cls, opinion: Opinion) -> OpinionShape:
        """Convert a draft to the API's format."""
        return cls(
            id=opinion.id,
            opinion_type=opinion.opinion_type,
            content=opinion.content,
            citations=opinion.cited,
            state=opinion.state,
            message=opinion.message,
            model=opinion.model,
            cost=None if opinion.cost is None else f"{opinion.cost:f}",
            created_at=opinion.created_at,
        )


class Drafted(Block):
    """A legal opinion's draft, with the references for the case."""

    opinion: OpinionShape


class OpinionList(ApiModel):
    opinions: list[OpinionShape]
    total: int


class Revision(ApiBody):
    """Changes to a reference document's title and description. Missing fields stay unchanged."""

    title: Title | None = None
    source_description: Description = None
    category: Category = None


TagText = Annotated[str, Field(max_length=500)]
ChunkIndex = Annotated[int, Path(ge=0, le=10_000_000, description="Its place in the document, from 0.")]


class Tags(ApiBody):
    """A chunk's tags to set, by name. Other tags stay unchanged; null removes a tag."""

    tags: dict[Annotated[str, Field(max_length=100)], TagText | list[TagText] | None] = Field(
        max_length=20, examples=[{"topic": "판례", "crime_type": "사기"}]
    )


READ, WRITE = needs("documents:read"), needs("documents:write")


@router.post(
    f"{PATH}/ingest",
    summary="Add a PDF and process it at once",
    dependencies=[WRITE],
    responses=reference_problems(400, 404, 409),
)
def ingest_reference_document(
    caller: Caller, body: Annotated[Ingestion, Form(media_type="multipart/form-data")]
) -> Made:
    """Read, chunk, embed and tag a PDF. The response comes when the document is searchable.

    If a step fails, the document is kept: the problem's `details.document_id` has the id, with which `/embed` and
    `/tag` continue.
    """
    content = body.document.file.read() if body.document else b""
    if body.document is None or not content:
        raise PartMissing("The file is missing. Send the PDF as the field document.")
    if not (body.title or "").strip():
        raise PartMissing("The title is missing. Send it as the field title.")
    document = services().references.ingest(
        caller,
        _collection(caller, body.collection_id),
        DescribedReference(
            title=body.title or "",
            source_description=body.source_description or "",
            category=body.category or "",
        ),
        file_name=body.document.filename or "",
        content=content,
        pdf_type=body.pdf_type,
    )
    return Made.of(document)


@router.post(
    PATH,
    summary="Register a document without its text",
    dependencies=[WRITE],
    status_code=201,
    responses=reference_problems(404),
)
def register_reference_document(caller: Caller, body: Registration) -> Registered:
    """Register a document without text. Send the text to `/chunk`; then call `/tag` and `/embed`, in either order."""
    if not body.title.strip():
        raise PartMissing("The title is missing. Send it as the field title.")
    document = services().references.register(
        caller,
        _collection(caller, body.collection_id),
        DescribedReference(
            title=body.title,
            source_description=body.source_description or "",
            category=body.category or "",
        ),
        file_url=body.file_url or "",
        file_name=body.file_name or "",
    )
    return Registered(id=document.id, document=Described.of(document))


@router.get(PATH, summary="List reference documents", dependencies=[READ])
def list_reference_documents(caller: Caller, part: Annotated[Listing, Query()]) -> Listed:
    """List reference documents, newest first, with the numbers of chunks, vectors and tags."""
    documents, total = services().references.list(caller, limit=part.limit, offset=part.offset)
    return Listed(
        documents=[Described.of(item) for item in documents], total=total, limit=part.limit, offset=part.offset
    )


@router.get(f"{PATH}/{{id}}", summary="One reference document", dependencies=[READ])
def get_reference_document(caller: Caller, id: UUID) -> One:
    """Return a reference document and its progress."""
    return One(document=Described.of(services().references.get(caller, id)))


@router.patch(
    f"{PATH}/{{id}}", summary="Change a document's metadata", dependencies=[WRITE], responses=reference_problems(404)
)
def change_reference_document(caller: Caller, id: UUID, body: Revision) -> One:
    """Change a reference document's title, source description or category."""
    changed = services().references.change(
        caller, id, title=body.title, source_description=body.source_description, category=body.category
    )
    return One(document=Described.of(changed))


@router.post(
    f"{PATH}/{{id}}/chunk",
    summary="Cut a document's text into chunks",
    dependencies=[WRITE],
    responses=reference_problems(409),
    max_body_size=TEXT_BYTES,
)
def chunk_reference_document(caller: Caller, id: UUID, body: Text) -> Made:
    """Replace the document's text and chunks. Embed the document afterwards to make it searchable again."""
    return Made.of(services().references.chunk(caller, id, page_texts=body.by_page()))


@router.patch(
    f"{PATH}/{{id}}/chunks/{{chunk_index}}",
    summary="Set a chunk's tags by hand",
    dependencies=[WRITE],
    responses=reference_problems(404),
)
def change_reference_tags(caller: Caller, id: UUID, chunk_index: ChunkIndex, body: Tags) -> One:
    """Set a chunk's tags. Tags left out stay unchanged; null removes a tag."""
    parts = services()
    parts.references.set_tags(caller, id, chunk_index, body.tags)
    return One(document=Described.of(parts.references.get(caller, id)))


@router.post(
    f"{PATH}/{{id}}/tag",
    summary="Tag the chunks that have no tags",
    dependencies=[WRITE],
    responses=reference_problems(409),
)
def tag_reference_document(caller: Caller, id: UUID) -> Made:
    """Have a model write topic, offence, summary and keywords for each chunk without tags.

    Call again for failed chunks.
    """
    return Made.of(services().references.tag(caller, id))


@router.post(
    f"{PATH}/{{id}}/embed",
    summary="Embed the chunks that have no vector",
    dependencies=[WRITE],
    responses=reference_problems(409, 422),
)
def embed_reference_document(caller: Caller, id: UUID) -> Made:
    """Embed the chunks and make the document searchable. Continues a failed ingestion."""
    return Made.of(services().references.embed(caller, id))


@router.delete(f"{PATH}/{{id}}", summary="Delete a document with its chunks", dependencies=[WRITE])
def delete_reference_document(caller: Caller, id: UUID) -> Deleted:
    """Delete a document permanently, without the bin. After the response, it can no longer be found."""
    parts = services()
    parts.references.get(caller, id)
    parts.documents.delete(caller, id)
    return Deleted(id=id)


@opinions.post(
    "/api/opinion/reference-block",
    summary="References for an opinion's prompt",
    dependencies=[needs("search")],
    responses=reference_problems(404),
)
def opinion_reference_block(caller: Caller, body: Wanted) -> Block:
    """Build a query from the kind of opinion and the case; return the most similar chunks in a block for a prompt."""
    collection, references = _find_references(caller, body)
    return Block(
        query=references.query,
        chunks=[Reference.of(item) for item in references.results],
        reference_rag_block=reference_block(profile_of(collection), references.results),
        notices=[translated(notice) for notice in references.notices],
    )


@opinions.post(
    "/api/opinion/generate",
    summary="Draft an opinion",
    dependencies=[needs("chat")],
    responses=reference_problems(404),
    max_body_size=TEXT_BYTES,
)
def generate_opinion(caller: Caller, body: Case) -> Drafted:
    """Find references for a case, have a model draft the opinion, and store the draft. The response comes when the
    draft is complete.
    """
    parts = services()
    collection, references = _find_references(caller, body)
    chosen_ids = body.reference_ids
    chosen = [item for item in references.results if chosen_ids is None or item.chunk_id in chosen_ids]
    draft = parts.opinions.begin(
        caller,
        collection,
        OpinionCase(
            opinion_type=body.opinion_type,
            facts=body.facts,
            instructions=body.user_prompt,
            examples=body.learning_examples,
        ),
        references=chosen,
        query=references.query,
    )
    for _ in draft.pieces:
        pass
    return Drafted(
        query=references.query,
        chunks=[Reference.of(item) for item in chosen],
        reference_rag_block=reference_block(profile_of(collection), chosen),
        notices=[translated(notice) for notice in references.notices],
        opinion=OpinionShape.of(parts.opinions.get(caller, draft.id)),
    )


@opinions.get("/api/opinion", summary="List your drafts", dependencies=[needs("chat")])
def list_opinions(caller: Caller, part: Annotated[Listing, Query()]) -> OpinionList:
    """List the drafts made with this account or key, newest first."""
    drafts, total = services().opinions.list(caller, limit=part.limit, offset=part.offset)
    return OpinionList(opinions=[OpinionShape.of(item) for item in drafts], total=total)


@opinions.get(
    "/api/opinion/{id}", summary="One of your drafts", dependencies=[needs("chat")], responses=reference_problems(404)
)
def get_opinion(caller: Caller, id: UUID) -> OpinionShape:
    """Return an opinion's draft, with the cited chunks."""
    return OpinionShape.of(services().opinions.get(caller, id))


@opinions.delete(
    "/api/opinion/{id}", summary="Delete a draft", dependencies=[needs("chat")], responses=reference_problems(404)
)
def delete_opinion(caller: Caller, id: UUID) -> Deleted:
    """Delete one of your drafts."""
    services().opinions.delete(caller, id)
    return Deleted(id=id)


def _find_references(caller: Identity, body: Wanted) -> tuple[Collection, FoundReferences]:
    parts = services()
    with parts.limits.question(caller):
        collection = _collection_of_block(caller, body.collection_id)
        query = reference_query(
            profile_of(collection), body.opinion_type, summary=body.analysis.summary, issues=body.analysis.issues
        )
        references = parts.opinions.find_references(caller, collection, query, top_k=body.top_k, filters=body.filters)
    return collection, references


def _collection(identity: Identity, collection_id: UUID | None) -> Collection:
    library = services().documents
    if collection_id is not None:
        collection = library.collection(identity, collection_id)
        if collection.profile not in REFERENCE_PROFILES:
            raise InvalidInput(
                f"“{collection.name}” is no collection of legal references. Choose one, or leave it out."
            )
        return collection
    return library.choose(identity, profile=PROFILE) or library.create_collection(
        identity, COLLECTION_NAME, PROFILE, language=COLLECTION_LANGUAGE
    )


def _collection_of_block(caller: Identity, collection_id: UUID | None) -> Collection:
    library = services().documents
    if collection_id is not None:
        return library.collection(caller, collection_id)
    collection = library.choose(caller, profile=PROFILE)
    if collection is None:
        raise NotFound("There is no collection of legal references yet. Add a reference document first.")
    return collection
