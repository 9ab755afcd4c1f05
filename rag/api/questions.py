"""Routes for `/api/rag/chat` and `/api/rag/search`, in the format from source 000 in docs/sources.md.

The routes work with any collection. Options default to the collection's settings. For the profile `notices`, these
settings are the defaults in the source's table.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Literal
from uuid import UUID

from anyio import to_thread
from fastapi import APIRouter, Body, Request, Response
from pydantic import Field
from starlette.requests import ClientDisconnect

from rag.access.problems import problems
from rag.answering.jobs import LiveAnswer, clean_question
from rag.api.event_stream import EVENTS, AnswerStream, Changes, answer_events, ending
from rag.api.routing import ApiBody, ApiModel, Caller, ProviderRoute, needs
from rag.api.search_results import RAGSearchResult, answer_sources, search_results
from rag.errors import NotFound, ProviderError, ProviderRefused, ProviderUnavailable
from rag.language import translated
from rag.monitoring.tracing import ms_since
from rag.profiles import PROFILES, profile_of
from rag.profiles.profile import SETTINGS, Options
from rag.services import Services, services
from rag.types import (
    Citation,
    Collection,
    ContextResponse,
    Identity,
    MessageState,
    Outcome,
    Question,
    SearchFilters,
    Who,
)

router = APIRouter(route_class=ProviderRoute, tags=["Questions"])

#: How often to check whether a caller still waits for a whole answer.
WAIT_SECONDS = 0.5
SEARCH_NOTICES = (
    "Sentences on what was done without, such as a reranker that did not answer; empty where there is nothing to say."
)
QUESTION = "12월 정착지원금 신청 방법이 어떻게 되나요?"
SEARCH_EXAMPLES = {
    "filtered": {
        "value": {
            "query": "MGR 컨퍼런스",
            "options": {"categoryFilter": ["notice-bmmd-data"], "dateFrom": "2024-01-01", "rerankTopN": 3},
        }
    }
}
CHAT_EXAMPLES = {
    "whole": {"value": {"query": QUESTION}},
    "streamed": {"value": {"query": QUESTION, "options": {"stream": True}}},
}

Day = date | datetime
MOST_PASSAGES = int(SETTINGS["top_k"].maximum)
FieldName = Annotated[str, Field(max_length=100)]
FieldValue = Annotated[str, Field(max_length=1000)] | bool | int | float


def _default(setting: str) -> str:
    names: dict[str, list[str]] = {}
    for name, profile in PROFILES.items():
        names.setdefault(str(profile.value(setting)).lower(), []).append(name)
    values = "; ".join(f"{value} ({', '.join(profiles)})" for value, profiles in names.items())
    return f"Default: the collection's; its profile has {values}."


class SearchOptions(ApiBody):
    """Options which replace the collection's settings for this call."""

    top_k: int | None = Field(
        default=None, ge=1, le=MOST_PASSAGES, description=f"Initial number of passages to retrieve. {_default('top_k')}"
    )
    search_type: Literal["vector", "hybrid"] | None = Field(
        default=None, description=f"By meaning alone, or by meaning and keywords. {_default('search_type')}"
    )
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Least similarity of what is found by meaning. Default: the collection's, measured on its text or "
        "set by its profile.",
    )
    strict_threshold: bool | None = Field(
        default=None,
        description="Leave out every passage that is not above the threshold, however well its words fit; "
        f"`belowThreshold` says how many. {_default('strict_threshold')}",
    )
    only_evidence: bool | None = Field(
        default=None,
        description="Return only passages that speak to the question, none where no passage does. "
        f"{_default('only_evidence')}",
    )
    rerank: bool | None = Field(default=None, description=f"Apply reranking. {_default('reranking')}")
    rerank_top_n: int | None = Field(
        default=None, ge=1, le=MOST_PASSAGES, description=f"Results after reranking. {_default('rerank_top_n')}"
    )
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
    include_important_only: bool | None = Field(
        default=None, description=f"Only important posts. {_default('important_only')}"
    )
    include_pinned_first: bool | None = Field(
        default=None, description=f"Pinned posts first. {_default('pinned_first')}"
    )
    recency_boost: bool | None = Field(default=None, description=f"Raise recent posts. {_default('recency_boost')}")

    def to_options(self) -> Options:
        """Convert to the retriever's options."""
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
            search_type=self.search_type,
            similarity_threshold=self.threshold,
            strict_threshold=self.strict_threshold,
            only_evidence=self.only_evidence,
            reranking=self.rerank,
            rerank_top_n=self.rerank_top_n,
            recency_boost=self.recency_boost,
            pinned_first=self.include_pinned_first,
            # A search shows no suggestions and pays for none.
            follow_ups=0,
        )


class ChatOptions(SearchOptions):
    """Options for searching and answering, which replace the collection's settings for this call."""

    stream: bool | None = Field(default=None, description="Send the answer as server-sent events. Default false.")
    follow_ups: int | None = Field(
        default=None,
        ge=0,
        le=int(SETTINGS["follow_ups"].maximum),
        description="Suggested questions to suggest. Default: what the collection suggests with the profile portfolio, "
        "whose document (001) ends an answer with them; 0 with any other.",
    )

    def options_for(self, collection: Collection) -> Options:
        """Convert to options for a question to this collection."""
        follow_ups = self.follow_ups
        if follow_ups is None and "follow_ups" not in profile_of(collection).api_extras:
            follow_ups = 0
        return self.to_options().changed(follow_ups=follow_ups)


CollectionName = Annotated[
    str,
    Field(
        max_length=200,
        description="Id or name of the collection. Default: the one chosen for this key, else the "
        "oldest of the profile hr with documents, else the oldest with any.",
    ),
]
ALL_COLLECTIONS = (
    "Search every collection that the caller may read. The profile of `collection` orders the best of each by how "
    "likely they answer, and writes the answer; each result names its own. Not kept with a conversation: say it with "
    "each question."
)
Query = Annotated[str, Field(min_length=1, max_length=4000, description="The question, in any language.")]


class SearchBody(ApiBody):
    """A search request: the question, options, and the collection to search."""

    query: Query
    options: SearchOptions = Field(default_factory=SearchOptions)
    collection: CollectionName | None = None
    all_collections: bool = Field(default=False, description=ALL_COLLECTIONS)
    language: str | None = Field(
        default=None, pattern="^[a-z]{2}$", description="The question's language, ISO 639-1. Default: detected."
    )


class ChatBody(ApiBody):
    """A question to answer, with options, the collection to ask, and the conversation to continue."""

    query: Query
    options: ChatOptions = Field(default_factory=ChatOptions)
    collection: CollectionName | None = None
    all_collections: bool = Field(default=False, description=ALL_COLLECTIONS)
    conversation_id: UUID | None = Field(
        default=None, description="Goes on with a conversation: the header X-Conversation-Id of an earlier answer."
    )


class SearchAnswer(ApiModel):
    """The results of a search."""

    query: str
    results: list[RAGSearchResult]
    total: int
    latency_ms: int
    notices: list[str] = Field(description=SEARCH_NOTICES)
    below_threshold: int | None = Field(
        default=None, description="Passages that a strict threshold left out; only where it is strict."
    )


class ChatAnswer(ApiModel):
    """An answer with sources and outcome."""

    query: str
    answer: str
    sources: list[RAGSearchResult] = Field(
        description="The passages that the answer cites, [1] first, then the others it was made from. Where the "
        "documents do not answer, those that came nearest."
    )
    latency_ms: int
    follow_ups: list[str] | None = Field(default=None, description="Suggested questions, where they were asked for.")
    source_names: list[str] | None = Field(
        default=None, description="With the profile portfolio, as its document has it: each source once, by its title."
    )
    notice: str | None = Field(
        default=None, description="Only where the answer did not end well: a sentence that says why."
    )
    outcome: Outcome = Field(
        description="answered, with a source that holds; perhaps: the closest passages were quoted, without being "
        "sure that they answer, or no source holds the reply; "
        "no_context: the documents do not say it; small_talk: a greeting or the like, met without a search; "
        "asked_back: several documents fit, `followUps` has the choice; refused, stopped or failed."
    )
    state: MessageState = Field(
        description="complete; cut: the answer is not whole, such as one at its length limit; stopped or failed."
    )
    notices: list[str] = Field(
        description="Sentences on why the answer did not end well and on what was done without, such as a reranker "
        "that did not answer; empty where there is nothing to say."
    )
    unsupported: list[str] | None = Field(
        default=None,
        description="Sentences of the answer that the passages they cite do not bear out, if there are any.",
    )


@router.post(
    "/api/rag/search",
    summary="Search without an answer",
    dependencies=[needs("search")],
    responses=problems(404, 502),
    # Clients of the source expect unknown fields to be missing, not null.
    response_model_exclude_none=True,
)
def search(
    request: Request, caller: Caller, body: Annotated[SearchBody, Body(openapi_examples=SEARCH_EXAMPLES)]
) -> SearchAnswer:
    """Find the chunks which match a question, in the order of the collection's profile."""
    started, parts = time.perf_counter(), services()
    text = clean_question(body.query, maximum_characters=parts.settings.maximum_question_characters)
    collection = choose_collection(parts, caller, body.collection)
    parts.limits.count_question(caller)
    response = parts.searches.search(
        Question(
            text=text,
            identity=caller,
            collection=collection,
            others=parts.documents.others_to_ask(caller, collection) if body.all_collections else (),
            language=body.language,
            reader_languages=accepted_languages(request),
        ),
        profile=profile_of(collection),
        options=body.options.to_options(),
        for_model=False,
    ).response
    results = search_results(parts.database, caller, response.results, names_collections=body.all_collections)
    return SearchAnswer(
        query=body.query,
        results=results,
        total=len(results),
        latency_ms=round(ms_since(started)),
        notices=[translated(notice) for notice in response.notices],
        below_threshold=response.rag_details.search.below_threshold,
    )


@router.post(
    "/api/rag/chat",
    summary="Answer a question",
    dependencies=[needs("chat")],
    responses={200: {"content": {"text/event-stream": {"schema": EVENTS}}}, **problems(404, 502)},
    response_model=ChatAnswer,
    response_model_exclude_none=True,
)
async def chat(
    request: Request,
    response: Response,
    caller: Caller,
    body: Annotated[ChatBody, Body(openapi_examples=CHAT_EXAMPLES)],
) -> ChatAnswer | Response:
    """Search, and answer from the chunks found. With `options.stream`, the answer is sent while it is written.

    Closing the connection stops the answer.
    """
    started, parts = time.perf_counter(), services()
    live, extras = await to_thread.run_sync(_ask, parts, caller, body, accepted_languages(request))

    def build_sources(context: ContextResponse, citations: Sequence[Citation]) -> list[RAGSearchResult]:
        named = body.all_collections
        return answer_sources(parts.database, caller, context, citations, names_collections=named)

    conversation = {"X-Conversation-Id": str(live.conversation_id)}
    if body.options.stream:
        return AnswerStream(live, answer_events(live, build_sources), conversation)
    response.headers.update(conversation)
    await until_done(live, request)
    if not live.text:
        raise failure_of(live)
    sources = await to_thread.run_sync(build_sources, live.context, live.citations) if live.context else []
    ended = ending(live)
    is_complete = live.state is MessageState.COMPLETE and live.outcome is not Outcome.REFUSED
    return ChatAnswer(
        query=body.query,
        answer=live.text,
        sources=sources,
        latency_ms=round(ms_since(started)),
        follow_ups=list(live.follow_ups) or None,
        source_names=list(dict.fromkeys(s.title for s in sources)) if "source_names" in extras else None,
        notice=None if is_complete else " ".join(ended["notices"]) or None,
        **ended,
    )


def choose_collection(parts: Services, who: Who, id_or_name: str | None) -> Collection:
    """Return the collection with this id or name, else the default collection. Raises `NotFound`."""
    collection = parts.documents.choose(who, id_or_name)
    if collection is None and id_or_name:
        raise NotFound("There is no such collection. GET /api/collections lists all of them.")
    if collection is None:
        raise NotFound("There is no collection yet. An administrator can make one on the page Collections.")
    return collection


def accepted_languages(request: Request) -> list[str]:
    """Return the languages in the Accept-Language header, preferred first."""
    weighted = []
    for part in request.headers.get("accept-language", "").split(","):
        language, _, weight = part.partition(";")
        try:
            quality = float(weight.partition("=")[2] or 1)
        except ValueError:
            continue
        if quality > 0:
            weighted.append((-quality, language.strip()))
    return [language for _, language in sorted(weighted, key=lambda pair: pair[0])]


def _ask(parts: Services, caller: Identity, body: ChatBody, languages: list[str]) -> tuple[LiveAnswer, tuple[str, ...]]:
    """Start an answer.

    Returns the answer, and the names of the extra fields which the collection's profile adds to the response.
    """
    with parts.limits.question(caller):
        collection_id: str | None = body.collection
        if body.conversation_id is not None and collection_id is None:
            collection_id = str(parts.conversations.get(caller, body.conversation_id).collection_id)
        collection = choose_collection(parts, caller, collection_id)
        live = parts.answers.ask(
            Question(
                text=body.query,
                identity=caller,
                collection=collection,
                others=parts.documents.others_to_ask(caller, collection) if body.all_collections else (),
                reader_languages=languages,
            ),
            conversation_id=body.conversation_id,
            options=body.options.options_for(collection),
        )
    return live, profile_of(collection).api_extras


async def until_done(live: LiveAnswer, request: Request) -> None:
    """Wait until the answer is complete; stop the answer if the caller disconnects."""
    changes = Changes(live)
    try:
        with live.heard_by(changes.note):
            while not live.is_done:
                await changes.wait(WAIT_SECONDS)
                if not live.is_done and await request.is_disconnected():
                    raise ClientDisconnect
    finally:
        if not live.is_done:
            live.cancel.set()


def failure_of(live: LiveAnswer) -> ProviderError:
    """Build the error for an answer which ended without a text."""
    kind = ProviderRefused if live.outcome is Outcome.REFUSED else ProviderUnavailable
    return kind(live.notice or None)


def _day(value: Day | None) -> date | None:
    return value.date() if isinstance(value, datetime) else value
