"""`/api/rag/chat` and `/api/rag/search`, request and answer as the notice board's document (000) has them.

They ask any collection.
"""

from __future__ import annotations

import time
from typing import Any

from anyio import to_thread
from pydantic import Field
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from rag.answering.live import LiveAnswer, clean_question
from rag.api.asking import ChatBody, SearchBody, accepted_languages
from rag.api.endpoint import ApiModel, Call, endpoint
from rag.api.event_stream import AnswerStream, Changes, ending
from rag.api.parts import running
from rag.api.sources import RAGSearchResult, search_results
from rag.errors import NotFound, ProviderError, ProviderRefused, ProviderUnavailable
from rag.profiles import profile_of
from rag.services import Services
from rag.types import Collection, ContextResponse, MessageState, Outcome, Question, Who

#: How often a caller who waits for a whole answer is looked after.
WAIT_SECONDS = 0.5
SEARCH_NOTICES = (
    "Sentences on what was done without, such as a reranker that did not answer; empty where there is nothing to say."
)
QUESTION = "12월 정착지원금 신청 방법이 어떻게 되나요?"


class SearchAnswer(ApiModel):
    """What was found."""

    query: str
    results: list[RAGSearchResult]
    total: int
    latency_ms: int
    notices: list[str] = Field(description=SEARCH_NOTICES)


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
    outcome: Outcome = Field(
        description="answered; perhaps: the closest passages were quoted, without being sure that they answer; "
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


KINDS = ("searching", "context", "generating", "chunk", "restart", "followUps", "done", "error")
#: Each event of the stream.
EVENTS = {
    "type": "object",
    "required": ["data"],
    "properties": {
        "event": {"type": "string", "const": "message"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"type": "object", "required": ["type"], "properties": {"type": {"enum": list(KINDS)}}},
        },
    },
    "description": (
        'Events of one `data:` line each, JSON with a type: {"type": "searching"}, {"type": "context", "data": '
        '[RAGSearchResult]}, {"type": "generating"}, {"type": "chunk", "data": "text"} …, {"type": "done"}; before it '
        '{"type": "restart"} where the chunks so far are withdrawn and those after it are the whole answer, and '
        '{"type": "followUps", "data": ["question"]} where they were asked for; or, where the answer is not whole, '
        '{"type": "error", "data": "a sentence", "code": "…", "requestId": "…"}. The last event says how it ended, '
        "with `outcome`, `state` and `notices` as in the JSON answer. Lines that begin with a colon keep the "
        "connection open."
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
    calls_elsewhere=True,
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
    parts.limits.count_question(identity)
    text = clean_question(body.query, maximum_characters=parts.settings.maximum_question_characters)
    collection = chosen_collection(parts, call.identity, body.collection)
    profile = profile_of(collection)
    found = parts.searches.search(
        Question(
            text=text, identity=identity, collection=collection, reader_languages=accepted_languages(call.request)
        ),
        profile=profile,
        options=body.options.to_options(),
    ).response
    parts.documents.note_last(identity, collection)
    results = search_results(parts.database, identity, found.results)
    return _json(
        SearchAnswer(
            query=body.query,
            results=results,
            total=len(results),
            latency_ms=_ms_since(started),
            notices=list(found.notices),
        ),
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
    live, extras = await to_thread.run_sync(_ask, parts, call)
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
    ended = ending(live)
    is_whole = live.state is MessageState.COMPLETE and live.outcome is not Outcome.REFUSED
    answer = ChatAnswer(
        query=body.query,
        answer=live.text,
        sources=sources,
        latency_ms=_ms_since(started),
        follow_ups=list(live.follow_ups) or None,
        source_names=list(dict.fromkeys(s.title for s in sources)) if "source_names" in extras else None,
        notice=None if is_whole else " ".join(ended["notices"]) or None,
        **ended,
    )
    return _json(answer, headers)


def chosen_collection(parts: Services, who: Who, wanted: str | None) -> Collection:
    """The collection of that id or name, else the default one. Raises `NotFound`."""
    found = parts.documents.choose(who, wanted)
    if found is None and wanted:
        raise NotFound("There is no such collection. GET /api/collections lists those there are.")
    if found is None:
        raise NotFound("There is no collection yet. An administrator can make one on the page Collections.")
    return found


def _ask(parts: Services, call: Call[ChatBody]) -> tuple[LiveAnswer, tuple[str, ...]]:
    """Start the answer, and tell what the collection's profile adds to it."""
    body = call.body
    parts.limits.count_question(call.identity)
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
        languages=accepted_languages(call.request),
    )
    return live, profile_of(collection).api_extras


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


def _ms_since(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


ROUTES = [search, chat]
