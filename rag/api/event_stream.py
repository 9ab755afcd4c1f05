"""Stream an answer as server-sent events, in the format from source 000 in docs/sources.md, without a thread per
stream.

Each event is a `data:` line with JSON. During long silences, comments are sent, to make proxies keep the connection
open. When the reader disconnects, the answer is stopped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from anyio import to_thread
from pydantic import BaseModel
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from rag.answering.events import QUEUED, StepEvent
from rag.answering.jobs import LiveAnswer
from rag.answering.readers import notice_for
from rag.errors import RagError
from rag.language import N_, _
from rag.monitoring.tracing import request_id
from rag.types import Citation, ContextResponse, MessageState, Outcome

HEARTBEAT_SECONDS = 10.0
#: Pieces arriving faster are sent together.
PACE_SECONDS = 0.04
#: The reason for an answer which ended without giving one.
STOPPED = N_("This answer was stopped.")
#: For a sentence its cited chunks do not support.
UNSUPPORTED = N_("Check this sentence, because its source does not support it: “{sentence}”")
HEARTBEAT = ": heartbeat\n\n"
HEADERS = {
    "Cache-Control": "no-cache, no-transform",
    # Otherwise nginx buffers the events.
    "X-Accel-Buffering": "no",
}
KINDS = ("searching", "queued", "context", "generating", "chunk", "restart", "followUps", "done", "error")
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
        '{"type": "error", "data": "a sentence", "code": "…", "requestId": "…"}. While too many questions are being '
        'answered, {"type": "queued", "data": 3} says how many are before this one. The last event says how it ended, '
        "with `outcome`, `state` and `notices` as in the JSON answer, and `sources` in the order of their numbers. "
        "Lines that begin with a colon keep the connection open."
    ),
}
SourceBuilder = Callable[[ContextResponse, Sequence[Citation]], list[Any]]


class Changes:
    """Lets a coroutine wait for changes made by the thread which writes an answer."""

    def __init__(self, live: LiveAnswer) -> None:
        self._live = live
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    async def wait(self, seconds: float) -> bool:
        """Wait up to this many seconds. Return whether something has changed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        changed = self._changed.is_set()
        self._changed.clear()
        return changed

    def note(self) -> None:
        """Wake the coroutine; called from the thread writing the answer."""
        with suppress(RuntimeError):  # The loop is closed: nobody is waiting.
            self._loop.call_soon_threadsafe(self._changed.set)


class AnswerStream(StreamingResponse):
    """A streamed response with an answer's events. The answer is stopped when the reader disconnects."""

    media_type = "text/event-stream"

    def __init__(self, live: LiveAnswer, events: AsyncIterator[str], headers: Mapping[str, str] | None = None) -> None:
        self._live = live
        super().__init__(events, headers={**HEADERS, **(headers or {})})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if not self._live.is_done:
                self._live.cancel.set()


async def answer_events(
    live: LiveAnswer, build_sources: SourceBuilder, *, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> AsyncIterator[str]:
    """Yield an answer's events: `searching`, `context`, `generating`, `chunk` …, and finally `done` or `error`.

    During silences, comments are yielded. `restart` withdraws all chunks sent before it. If follow-up questions were
    requested, `followUps` comes before the last event.
    """
    changes = Changes(live)
    sent_length, restarts, has_context, is_generating = 0, 0, False, False
    queued: StepEvent | None = None
    yield event("searching")
    with live.heard_by(changes.note):
        while True:
            is_done, text = live.is_done, live.text
            if live.restarts > restarts:
                if sent_length:
                    yield event("restart")
                sent_length, restarts, text = 0, live.restarts, live.text
            if (step := live.steps[-1] if live.steps else None) is not None and step is not queued:
                queued = step
                if step.name == QUEUED:
                    yield event("queued", int(step.detail))
            if not has_context and live.context is not None:
                has_context = True
                try:
                    yield event("context", await to_thread.run_sync(build_sources, live.context, ()))
                except RagError as exc:  # the database has gone since: the stream still ends with an event
                    ended = {"outcome": "failed", "state": live.state.value, "notices": [exc.message]}
                    yield failure_event(exc.message, exc.code, request_id.get(), ended)
                    return
            if not is_generating and (text or _is_writing(live)):
                is_generating = True
                yield event("generating")
            if len(text) > sent_length:
                yield event("chunk", text[sent_length:])
                sent_length = len(text)
                if not is_done:
                    await asyncio.sleep(PACE_SECONDS)
                    continue
            if is_done and sent_length >= len(live.text) and restarts == live.restarts:
                break
            if not await changes.wait(heartbeat_seconds):
                yield HEARTBEAT
    if live.follow_ups:
        yield event("followUps", list(live.follow_ups))
    sources: list[Any] = []
    if live.context is not None and live.citations:
        with suppress(RagError):  # The database has gone since; the answer is unaffected.
            sources = await to_thread.run_sync(build_sources, live.context, live.citations)
    numbered = {"sources": sources} if sources else {}
    if live.state is MessageState.COMPLETE and live.outcome is not Outcome.REFUSED:
        yield event("done", **numbered, **ending(live))
    else:
        yield error_event(live, request_id.get(), numbered)


def ending(live: LiveAnswer, *, is_for_operators: bool = True) -> dict[str, Any]:
    """Return how an answer ended: outcome, state, notices in the reader's language, and unsupported sentences.

    If `is_for_operators`, notices are worded for a program's operators, else for people who ask.
    """
    outcome = live.outcome or (Outcome.STOPPED if live.cancel.is_set() else Outcome.FAILED)
    read = [notice_for(notice, is_for_operators=is_for_operators) for notice in live.notices]
    notices = [notice for notice in read if notice]
    if not notices and live.state is not MessageState.COMPLETE:
        notices = [_(STOPPED)]
    ended = {"outcome": outcome.value, "state": live.state.value, "notices": notices}
    unsupported = list(dict.fromkeys(claim for citation in live.citations for claim in citation.unsupported))
    return ended | ({"unsupported": unsupported} if unsupported else {})


def remarks(live: LiveAnswer) -> list[str]:
    """Return the sentences to show below an answer: notices, and warnings about unsupported sentences."""
    ended = ending(live, is_for_operators=False)
    doubts = (_(UNSUPPORTED, sentence=sentence) for sentence in ended.get("unsupported", ()))
    return [*ended["notices"], *doubts]


def event(kind: str, data: Any = None, **more: Any) -> str:
    """Format a server-sent event with a type, data, and additional fields."""
    content: dict[str, Any] = {"type": kind, **more}
    if data is not None:
        content["data"] = data
    return f"data: {json.dumps(content, ensure_ascii=False, default=_plain, separators=(', ', ': '))}\n\n"


def error_event(live: LiveAnswer, request_id: str, more: Mapping[str, Any] | None = None) -> str:
    """Format the event for a failed answer.

    The event has a sentence, a code, the request's id, how the answer ended, and the fields in `more`.
    """
    ended = ending(live)
    # An answer cut at a limit is incomplete, but still an answer.
    code = ended["state"] if ended["outcome"] == Outcome.ANSWERED else ended["outcome"]
    return failure_event(" ".join(ended["notices"]) or _(STOPPED), code, request_id, {**(more or {}), **ended})


def failure_event(sentence: str, code: str, request_id: str, ended: Mapping[str, Any]) -> str:
    """Format the last event of a failed stream."""
    content = {"type": "error", "data": sentence, "code": code, "requestId": request_id, **ended}
    return f"data: {json.dumps(content, ensure_ascii=False, default=_plain)}\n\n"


def _is_writing(live: LiveAnswer) -> bool:
    return any(step.name == "writing" for step in tuple(live.steps))


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    raise TypeError(type(value))
