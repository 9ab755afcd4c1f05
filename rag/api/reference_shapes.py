"""Reference documents as callers send and get them, in the words of source 002."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from rag.api.bodies import FileField
from rag.api.endpoint import ApiBody, ApiModel
from rag.errors import InvalidInput
from rag.ingestion.references import LONGEST_DESCRIPTION, LONGEST_TITLE, ReferenceDocument

PAGE_SIZE = 20
LONGEST_URL = 2000
LONGEST_FILE_NAME = 300
HIGHEST_PAGE = 1_000_000
LONGEST_NUMBER = 9

Title = Annotated[str, Field(max_length=LONGEST_TITLE, description="What it is called in lists and references.")]
Description = Annotated[str | None, Field(alias="source_description", max_length=LONGEST_DESCRIPTION)]
CollectionId = Annotated[UUID | None, Field(description="A collection with the profile legal; the first if not given.")]


class Listing(ApiModel):
    """Which part of the list."""

    limit: int = Field(PAGE_SIZE, ge=1, le=100)
    offset: int = Field(0, ge=0, le=1_000_000)


class Registration(ApiBody):
    """The particulars of a document whose text comes later."""

    title: Title
    source_description: Description = None
    file_url: Annotated[str | None, Field(alias="file_url", max_length=LONGEST_URL)] = None
    file_name: Annotated[str | None, Field(alias="file_name", max_length=LONGEST_FILE_NAME)] = None
    collection_id: CollectionId = Field(None, strict=False)


class Ingestion(ApiBody):
    """A PDF with what to call it."""

    document: FileField | None = Field(None, description="The PDF.")
    title: Title | None = None
    source_description: Description = None
    pdf_type: Literal["scanned", "digital"] | None = Field(
        None, description="Scanned pages go through text recognition, digital ones are read as they are."
    )
    collection_id: CollectionId = None


class Text(ApiBody):
    """A document's text, whole or by page; neither cuts the pages it has anew."""

    full_text: str | None = None
    page_texts: dict[str, str] | None = Field(None, description='Text by page number: {"1": "…", "2": "…"}.')

    def by_page(self) -> dict[int, str] | None:
        """The text by page; None when there is none. Raises `InvalidInput`."""
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
    """What a step did."""

    success: Literal[True] = True
    id: UUID
    title: str
    chunks_count: int
    embedded: int = Field(description="Chunks that have their vector.")
    tagged: int = Field(description="Chunks that have their tags.")
    message: str = Field("", description="What to know about it, such as why chunks are not tagged.")

    @classmethod
    def of(cls, document: ReferenceDocument) -> Made:
        """How far a document is after a step."""
        return cls(
            id=document.id,
            title=document.title,
            chunks_count=document.chunks,
            embedded=document.embedded,
            tagged=document.tagged,
            message=document.message,
        )


class Described(ApiModel):
    """A reference document; names of its table's columns as they are, counts beside."""

    id: UUID
    collection_id: UUID
    title: str
    source_description: str | None = Field(alias="source_description")
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
        """A document as callers are told of it; what is empty is null."""
        values: dict[str, Any] = {
            "id": document.id,
            "collection_id": document.collection_id,
            "title": document.title,
            "source_description": document.source_description or None,
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


class Listed(ApiModel):
    success: Literal[True] = True
    documents: list[Described]
    total: int
    limit: int
    offset: int


class Deleted(ApiModel):
    success: Literal[True] = True
    id: UUID
