"""What callers of `/api/rag` send: a question with the options of the notice board's document (000).

An option that is left out is the collection's own; those of the profile `notices` are the defaults of its table.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field
from starlette.requests import Request

from rag.api.endpoint import ApiBody
from rag.profile import Options
from rag.profiles import profile_of
from rag.types import Collection, SearchFilters

Day = date | datetime
FieldName = Annotated[str, Field(max_length=100)]
FieldValue = Annotated[str, Field(max_length=1000)] | bool | int | float


class SearchOptions(ApiBody):
    """What this call wants otherwise than the collection. The defaults are those of the profile `notices`."""

    top_k: int | None = Field(
        default=None, ge=1, le=50, description="Initial number of passages to retrieve. Default 10."
    )
    rerank: bool | None = Field(default=None, description="Apply reranking. Default true.")
    rerank_top_n: int | None = Field(default=None, ge=1, le=50, description="Results after reranking. Default 5.")
    category_filter: list[str] | None = Field(
        default=None, max_length=50, description="Slugs of categories. Default: all."
    )
    date_from: Day | None = Field(default=None, description="First day, ISO 8601. Default: none.")
    date_to: Day | None = Field(default=None, description="Last day, ISO 8601. Default: none.")
    metadata_filter: dict[FieldName, FieldValue] | None = Field(
        default=None,
        max_length=20,
        description="Fields of the vector record or of a collection's own metadata with the values they must have, "
        'such as {"isPinned": true} or {"department": "HR"}. Default: none.',
    )
    include_important_only: bool | None = Field(default=None, description="Only important posts. Default false.")
    include_pinned_first: bool | None = Field(default=None, description="Pinned posts first. Default true.")
    recency_boost: bool | None = Field(default=None, description="Raise recent posts. Default true.")

    def to_options(self) -> Options:
        """The same for the retrieval."""
        filters = SearchFilters(
            categories=tuple(self.category_filter or ()),
            date_from=_day(self.date_from),
            date_to=_day(self.date_to),
            important_only=bool(self.include_important_only),
            metadata=dict(self.metadata_filter or {}),
        )
        return Options(
            filters=None if filters.is_empty else filters,
            top_k=self.top_k,
            reranking=self.rerank,
            rerank_top_n=self.rerank_top_n,
            recency_boost=self.recency_boost,
            pinned_first=self.include_pinned_first,
            # Who shows no suggestions pays for none.
            follow_ups=0,
        )


class ChatOptions(SearchOptions):
    """The options of a search, and how the answer comes."""

    stream: bool | None = Field(default=None, description="Send the answer as server-sent events. Default false.")
    follow_ups: int | None = Field(
        default=None,
        ge=0,
        le=5,
        description="Next questions to suggest. Default: what the collection suggests with the profile portfolio, "
        "whose document (001) ends an answer with them; 0 with any other.",
    )

    def options_for(self, collection: Collection) -> Options:
        """The same for the retrieval and the answer."""
        wanted = self.follow_ups
        if wanted is None and "follow_ups" not in profile_of(collection).api_extras:
            wanted = 0
        return self.to_options().changed(follow_ups=wanted)


CollectionName = Annotated[
    str,
    Field(
        max_length=200,
        description="Id or name of the collection. Default: the one that this account or key asked last, else the "
        "oldest of the profile hr with documents, else the oldest with any.",
    ),
]
Query = Annotated[str, Field(min_length=1, max_length=4000, description="The question, in any language.")]


class SearchBody(ApiBody):
    """A search."""

    query: Query
    options: SearchOptions = Field(default_factory=SearchOptions)
    collection: CollectionName | None = None


class ChatBody(ApiBody):
    """A question."""

    query: Query
    options: ChatOptions = Field(default_factory=ChatOptions)
    collection: CollectionName | None = None
    conversation_id: UUID | None = Field(
        default=None, description="Goes on with a conversation: the header X-Conversation-Id of an earlier answer."
    )


def accepted_languages(request: Request) -> list[str]:
    """The languages of the header Accept-Language, the preferred first."""
    wanted = []
    for part in request.headers.get("accept-language", "").split(","):
        language, _, weight = part.partition(";")
        try:
            quality = float(weight.partition("=")[2] or 1)
        except ValueError:
            continue
        if quality > 0:
            wanted.append((-quality, language.strip()))
    return [language for _, language in sorted(wanted, key=lambda pair: pair[0])]


def _day(value: Day | None) -> date | None:
    return value.date() if isinstance(value, datetime) else value
