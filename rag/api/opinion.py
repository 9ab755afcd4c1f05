"""References for an opinion's prompt over HTTP (source 002, 6 and 8): the query, the passages and their block."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from rag.answering.opinions import reference_block, reference_query
from rag.api.endpoint import ApiBody, ApiModel, Call, endpoint
from rag.api.questions import SEARCH_NOTICES
from rag.api.reference_documents import PROFILE
from rag.errors import InvalidInput, NotFound
from rag.profile import Options
from rag.profiles import profile_of
from rag.services import services
from rag.types import Collection, Question, SearchFilters

LONGEST_SUMMARY = 20_000
MOST_ISSUES = 50


class Analysis(ApiBody):
    """What is known of the case."""

    summary: str = Field("", max_length=LONGEST_SUMMARY)
    issues: list[Annotated[str, Field(max_length=2000)]] = Field(default_factory=list, max_length=MOST_ISSUES)


class Wanted(ApiBody):
    """The kind of opinion and the case."""

    opinion_type: str = Field(min_length=1, max_length=100, examples=["양형의견서"])
    analysis: Analysis = Field(default_factory=lambda: Analysis(summary=""))
    top_k: int | None = Field(None, ge=1, le=50, description="Passages; the collection's own number if not given.")
    filters: dict[str, Annotated[str, Field(max_length=200)]] = Field(
        default_factory=dict, description="Tags the passages must have, such as crime_type."
    )
    collection_id: UUID | None = Field(None, strict=False)


class Reference(ApiModel):
    """A passage of the block."""

    id: UUID
    document_id: UUID
    title: str
    page_number: int = Field(alias="page_number")
    content: str
    metadata: dict[str, Any]
    similarity: float | None


class Block(ApiModel):
    """The block with what led to it."""

    success: bool = True
    query: str
    chunks: list[Reference]
    reference_rag_block: str
    notices: list[str] = Field(description=SEARCH_NOTICES)


@endpoint(
    "/api/opinion/reference-block",
    method="POST",
    scope="search",
    summary="References for an opinion's prompt",
    body=Wanted,
    answer=Block,
    errors=(404, 422, 502, 503),
    tags=("Reference documents",),
    calls_elsewhere=True,
)
def opinion_reference_block(call: Call[Wanted]) -> Block:
    """Makes the query of the kind of opinion and the case, finds the passages nearest to it, and writes the block."""
    body, parts = call.body, services()
    parts.limits.count_question(call.identity)
    collection = _collection(call, body.collection_id)
    profile = profile_of(collection)
    if unknown := [name for name in body.filters if name not in profile.search.metadata_filters]:
        known = ", ".join(profile.search.metadata_filters) or "none"
        raise InvalidInput(f"There is no filter {unknown[0][:60]!r} here; there are: {known}.")
    query = reference_query(profile, body.opinion_type, summary=body.analysis.summary, issues=body.analysis.issues)
    retrieval = parts.searches.search(
        Question(text=query, identity=call.identity, collection=collection),
        profile=profile,
        top_k=body.top_k,
        options=Options(filters=SearchFilters(metadata=dict(body.filters))),
    )
    parts.documents.note_last(call.identity, collection)
    # As in the source, the nearest whatever their distance: the drafter judges them.
    found = retrieval.found[: body.top_k or profile.search.top_k]
    return Block(
        query=query,
        chunks=[
            Reference(
                id=item.chunk_id,
                document_id=item.document_id,
                title=item.title,
                page_number=item.first_page,
                content=item.content,
                metadata=dict(item.metadata),
                similarity=item.similarity,
            )
            for item in found
        ],
        reference_rag_block=reference_block(profile, found),
        notices=list(retrieval.response.notices),
    )


def _collection(call: Call[Wanted], collection_id: UUID | None) -> Collection:
    library = services().documents
    if collection_id is not None:
        return library.collection(call.identity, collection_id)
    found = library.choose(call.identity, profile=PROFILE)
    if found is None:
        raise NotFound("There is no collection of legal references yet. Add a reference document first.")
    return found


ROUTES = [opinion_reference_block]
