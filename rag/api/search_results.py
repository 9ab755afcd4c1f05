"""Convert hits to `RAGSearchResult`, the format required by source 000 in docs/sources.md.

`metadata` has the fields which the source stores with each vector. For documents other than posts, fields which do not
apply are left out, and fields for the document's origin are added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, Field

from rag.api.routing import ApiModel
from rag.retrieval.ranking import attachments_of, web_address
from rag.storage.database import Database
from rag.types import Citation, ContextResponse, SearchResult, Who

#: A vector's metadata in source 000, "Vector Record Structure", with the values for unknown fields.
RECORD: Mapping[str, Any] = {
    "postId": "", "categoryId": "", "categoryName": "", "categorySlug": "", "title": "", "excerpt": "",
    "createdAt": 0, "updatedAt": 0, "backdatedAt": 0, "publishedAt": 0,
    "isPinned": False, "isImportant": False, "status": "", "viewCount": 0, "attachmentCount": 0,
    "chunkIndex": 0, "totalChunks": 0, "attachmentsJson": "[]", "hasImages": False, "hasDocuments": False,
}  # fmt: skip
#: "excerpt: First 200 chars of cleaned content".
EXCERPT_CHARACTERS = 200


class RAGSearchResult(ApiModel):
    """A chunk found by a search or cited by an answer, with the document's or post's details."""

    model_config = ConfigDict(title="RAGSearchResult")

    post_id: str = Field(description="The post, or the id of the document where it is none.")
    title: str
    content: str = Field(description="The passage.")
    category: str = Field(description="The name of the post's category.")
    score: float = Field(description="What the results are ordered by, with the boosts for age.")
    rerank_score: float | None = Field(default=None, description="The reranker's relevance, 0 to 1.")
    metadata: dict[str, Any] = Field(description="The fields kept with the vector; times in milliseconds since 1970.")
    attachments: list[Any] = Field(description="The post's files in its order; `url` only where a link may lead there.")
    url: str = Field(default="", description="The original post, where its board says how it is addressed.")
    collection: str | None = Field(default=None, description="The id of its collection, where all were searched.")
    number: int | None = Field(default=None, description="Its number in the answer, where the answer cites it.")


@dataclass(frozen=True, kw_only=True)
class SourceDocument:
    """A document's columns for display in search results."""

    id: UUID
    title: str
    metadata: dict[str, Any]
    chunk_count: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class ChunkPlace:
    """A chunk's collection and index."""

    chunk_id: UUID
    collection_id: UUID
    chunk_index: int


def answer_sources(
    database: Database,
    who: Who,
    context: ContextResponse,
    citations: Sequence[Citation],
    *,
    names_collections: bool = False,
) -> list[RAGSearchResult]:
    """Return an answer's sources: first the citations by number (`[n]` is the n-th), then all other hits."""
    hits: dict[UUID, SearchResult] = {result.chunk_id: result for result in context.results}
    missing = [citation.chunk_id for citation in citations if citation.chunk_id not in hits]
    places = {
        place.chunk_id: place
        for place in (database.fetch_all(who, "chunk_places", ChunkPlace, chunk_ids=missing) if missing else ())
    }
    cited = []
    for citation in citations:
        if citation.chunk_id in hits:
            cited.append(hits.pop(citation.chunk_id))
        elif place := places.get(citation.chunk_id):
            cited.append(_of_citation(citation, place))
    sources = search_results(database, who, [*cited, *hits.values()], names_collections=names_collections)
    numbers = {str(citation.chunk_id): citation.number for citation in citations}
    return [
        result.model_copy(update={"number": numbers.get(str(result.metadata.get("chunkId")))}) for result in sources
    ]


def _of_citation(citation: Citation, place: ChunkPlace) -> SearchResult:
    """Build a search result for a cited chunk which is not among the hits.

    Summaries and comparisons cite chunks without a search.
    """
    return SearchResult(
        chunk_id=citation.chunk_id,
        document_id=citation.document_id,
        collection_id=place.collection_id,
        title=citation.title,
        file_name=citation.file_name,
        folder=citation.folder,
        content=citation.passage,
        first_page=citation.first_page,
        last_page=citation.last_page,
        section=citation.section,
        chunk_index=place.chunk_index,
        metadata={"corrected_pages": []} if citation.is_corrected else {},
        score=citation.score,
    )


def search_results(
    database: Database, who: Who, results: Sequence[SearchResult], *, names_collections: bool = False
) -> list[RAGSearchResult]:
    """Convert hits to search results. The hits' documents are read with a single statement."""
    ids = list({result.document_id for result in results})
    if not ids:
        return []
    rows = database.fetch_all(who, "source_documents", SourceDocument, document_ids=ids)
    documents = {row.id: row for row in rows}
    pairs = [(hit, _result(hit, documents[hit.document_id])) for hit in results if hit.document_id in documents]
    if names_collections:
        return [result.model_copy(update={"collection": str(hit.collection_id)}) for hit, result in pairs]
    return [result for _, result in pairs]


def _result(hit: SearchResult, document: SourceDocument) -> RAGSearchResult:
    metadata = _metadata(hit, document)
    return RAGSearchResult(
        post_id=metadata["postId"],
        title=metadata["title"],
        content=hit.content,
        category=metadata["categoryName"],
        score=round(hit.score, 6),
        rerank_score=None if hit.rerank_score is None else round(hit.rerank_score, 6),
        metadata=metadata,
        attachments=attachments_of(document.metadata),
        url=web_address(document.metadata.get("postUrl")),
    )


def _metadata(hit: SearchResult, document: SourceDocument) -> dict[str, Any]:
    stored = document.metadata
    record = {name: stored[name] for name in RECORD if stored.get(name) is not None and name != "attachmentsJson"}
    attachments = attachments_of(stored)
    document_fields = {
        "postId": str(document.id),
        "title": document.title,
        "excerpt": hit.content[:EXCERPT_CHARACTERS],
        "createdAt": _milliseconds(document.created_at),
        "updatedAt": _milliseconds(document.updated_at),
        "chunkIndex": hit.chunk_index,
        "totalChunks": document.chunk_count,
        "attachmentCount": len(attachments),
        "attachmentsJson": json.dumps(attachments, ensure_ascii=False),
    }
    ours = {
        "documentId": str(hit.document_id),
        "chunkId": str(hit.chunk_id),
        "fileName": hit.file_name,
        "firstPage": hit.first_page,
        "lastPage": hit.last_page,
        "section": hit.section,
        **({"folder": hit.folder} if hit.folder else {}),
        **({"isCorrected": True} if "corrected_pages" in hit.metadata else {}),
    }
    # The passage's place replaces the document's.
    place = {"chunkIndex": hit.chunk_index, "totalChunks": document.chunk_count}
    return {**RECORD, **document_fields, **record, **place, **ours}


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
