"""`/api/rag/chat` and `/api/rag/search`, request and answer as the notice board's document (000) has them.

They ask any collection. An option that is left out is the collection's own; those of the profile `notices` are the
defaults of that document's table.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import date, datetime
from typing import Annotated, Any
from uuid import UUID

from anyio import to_thread
from pydantic import Field
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from rag.answering.live import LiveAnswer, clean_question
from rag.api.endpoint import ApiBody, ApiModel, Call, endpoint
from rag.api.event_stream import AnswerStream, Changes
from rag.api.parts import running
from rag.api.sources import RAGSearchResult, search_results
from rag.errors import NotFound, ProviderError, ProviderRefused, ProviderUnavailable
from rag.profiles import PORTFOLIO, profile_by_name, with_overrides
from rag.retrieval.options import Options
from rag.services import Services
from rag.types import Collection, ContextResponse, Outcome, Question, SearchFilters, Who

#: How often a caller who waits for a whole answer is looked after.
WAIT_SECONDS = 0.5
#: The profile whose document describes these routes; a tenant's first collection of it is asked by default.
PROFILE = "notices"
Day = date | datetime
FieldName = Annotated[str, Field(max_length=100)]
FieldValue = Annotated[str, Field(max_length=1000)] | bool | int | float
QUESTION = "12월 정착지원금 신청 방법이 어떻게 되나요?"


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
        if wanted is None and collection.profile != PORTFOLIO.name:
            wanted = 0
        return replace(self.to_options(), follow_ups=wanted)


CollectionName = Annotated[
    str,
    Field(
        max_length=200,
        description="Id or name of the collection. Default: the first one of the profile notices, else the oldest.",
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


class SearchAnswer(ApiModel):
    """What was found."""

    query: str
    results: list[RAGSearchResult]
    total: int
    latency_ms: int


class ChatAnswer(ApiModel):
    """An answer with what it was made from."""

    query: str
    answer: str
    sources: list[RAGSearchResult]
    latency_ms: int
    follow_ups: list[str] | None = Field(default=None, description="Next questions, where they were asked for.")
    source_names: list[str] | None = Field(
        default=None, description="With the profile portfolio, as its document has it: each source once, by its title."
    )
    notice: str | None = Field(
        default=None, description="Only where the answer did not end well: a sentence that says why."
    )


EVENTS = {
    "type": "string",
    "description": (
        'Events of one `data:` line each, JSON with a type: {"type": "searching"}, {"type": "context", "data": '
        '[RAGSearchResult]}, {"type": "generating"}, {"type": "chunk", "data": "text"} …, {"type": "done"}; before it '
        '{"type": "followUps", "data": ["question"]} where they were asked for; or '
        '{"type": "error", "data": "a sentence", "code": "…", "requestId": "…"}. Lines that begin with a colon keep '
        "the connection open."
    ),
}


@endpoint(
    "/api/rag/search",
    method="POST",
    scope="search",
    summary="Search without an answer",
    body=SearchBody,
    answer=SearchAnswer,
    errors=(404, 502),
    tags=("Questions",),
    examples={
        "filtered": {
            "query": "MGR 컨퍼런스",
            "options": {"categoryFilter": ["notice-bmmd-data"], "dateFrom": "2024-01-01", "rerankTopN": 3},
        }
    },
)
def search(call: Call[SearchBody]) -> Response:
    """Find the passages that speak to a question, in the order the collection's profile gives them."""
    started = time.perf_counter()
    parts, identity, body = running(), call.identity, call.body
    text = clean_question(body.query, maximum_characters=parts.settings.maximum_question_characters)
    collection = chosen_collection(parts, call.identity, body.collection)
    profile = with_overrides(profile_by_name(collection.profile), collection.overrides)
    found = parts.retriever.retrieve_context(
        Question(text=text, identity=identity, collection=collection),
        profile=profile,
        options=body.options.to_options(),
    )
    parts.ledger.record_all(identity.tenant_id, found.charges)
    results = search_results(parts.database, identity, found.results)
    return _json(
        SearchAnswer(query=body.query, results=results, total=len(results), latency_ms=_ms_since(started)),
    )


@endpoint(
    "/api/rag/chat",
    method="POST",
    scope="chat",
    summary="Answer a question",
    body=ChatBody,
    answer=ChatAnswer,
    errors=(404, 502),
    tags=("Questions",),
    media={"text/event-stream": EVENTS},
    examples={"whole": {"query": QUESTION}, "streamed": {"query": QUESTION, "options": {"stream": True}}},
)
async def chat(call: Call[ChatBody]) -> Response:
    """Search and answer from what was found; with `options.stream`, piece by piece while it is written.

    Closing the connection stops the answer.
    """
    started = time.perf_counter()
    parts, body = running(), call.body
    live, profile = await to_thread.run_sync(_ask, parts, call)
    identity = call.identity

    def told(context: ContextResponse) -> list[RAGSearchResult]:
        return search_results(parts.database, identity, context.results)

    headers = {"X-Conversation-Id": str(live.conversation_id)}
    if body.options.stream:
        return AnswerStream(live, call.request.scope, told, headers)
    await _until_done(live, call)
    if not live.text:
        raise _why(live)
    sources = await to_thread.run_sync(told, live.context) if live.context else []
    answer = ChatAnswer(
        query=body.query,
        answer=live.text,
        sources=sources,
        latency_ms=_ms_since(started),
        follow_ups=list(live.follow_ups) or None,
        source_names=list(dict.fromkeys(s.title for s in sources)) if profile == PORTFOLIO.name else None,
        notice=(live.notice or None) if live.outcome in (Outcome.FAILED, Outcome.REFUSED, Outcome.STOPPED) else None,
    )
    return _json(answer, headers)


def chosen_collection(parts: Services, who: Who, wanted: str | None, *, profile: str = PROFILE) -> Collection:
    """The collection of that id or name; without one, the first of the profile, else the tenant's oldest.

    Raises `NotFound`.
    """
    found = parts.database.fetch_one(who, "choose_collection", Collection, wanted=wanted or None, profile=profile)
    if found is None and wanted:
        raise NotFound("There is no such collection. GET /api/collections lists those there are.")
    if found is None:
        raise NotFound("There is no collection yet. An administrator can make one on the page Collections.")
    return found


def _ask(parts: Services, call: Call[ChatBody]) -> tuple[LiveAnswer, str]:
    """The answer under way, and the name of the profile that it follows."""
    body = call.body
    collection_id: str | None = body.collection
    if body.conversation_id is not None and collection_id is None:
        collection_id = str(parts.conversations.get(call.identity, body.conversation_id).collection_id)
    collection = chosen_collection(parts, call.identity, collection_id)
    live = parts.answers.ask(
        call.identity,
        body.conversation_id,
        collection,
        body.query,
        options=body.options.options_for(collection),
    )
    return live, collection.profile


async def _until_done(live: LiveAnswer, call: Call[Any]) -> None:
    """Wait for the whole answer; who leaves stops it."""
    changes = Changes(live)
    try:
        with live.heard_by(changes.note):
            while not live.is_done:
                await changes.wait(WAIT_SECONDS)
                if not live.is_done and await call.request.is_disconnected():
                    raise ClientDisconnect
    finally:
        if not live.is_done:
            live.cancel.set()


def _why(live: LiveAnswer) -> ProviderError:
    kind = ProviderRefused if live.outcome is Outcome.REFUSED else ProviderUnavailable
    return kind(live.notice or None)


def _json(answer: ApiModel, headers: dict[str, str] | None = None) -> Response:
    """Without what is not known: the source's clients know such fields as missing, not as null."""
    return Response(
        answer.model_dump_json(by_alias=True, exclude_none=True),
        media_type="application/json",
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def _day(value: Day | None) -> date | None:
    return value.date() if isinstance(value, datetime) else value


def _ms_since(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


ROUTES = [search, chat]
