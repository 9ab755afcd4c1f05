"""Stream an answer's text, while it is written, to the pages showing it.

The page draws a placeholder (`place_of`). The script `follow_answers` finds the placeholder and requests `ROUTE` with
the session's cookie. Each event has the blocks finished since the previous event, and the unfinished block, as inert
HTML. The text is converted a single time for all pages. An answer continues even if no page shows it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from uuid import UUID
from weakref import WeakKeyDictionary

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from rag.answering.live_answer import LiveAnswer, Progress
from rag.errors import NotFound, SignedOut
from rag.services import services
from rag.types import Identity
from rag.ui.text import GrowingAnswer

PATH = "/answers/{message_id:uuid}/text"
HEADERS = {
    "Cache-Control": "no-cache, no-transform",
    # nginx would collect the events otherwise.
    "X-Accel-Buffering": "no",
}
#: How often to look up a follower's session again, and to send a comment which keeps proxies from closing the line.
RECHECK_SECONDS = 5.0
#: Seconds between look-ups for an answer another process is writing.
LOOK_UP_SECONDS = 0.5
HEARTBEAT = ": heartbeat\n\n"
END = "event: end\ndata: {}\n\n"

_growing: WeakKeyDictionary[LiveAnswer, _Shared] = WeakKeyDictionary()


def place_of(message_id: UUID) -> str:
    """Return an HTML placeholder. The browser shows the answer's growing text there."""
    return f'<div data-answer="{message_id}"></div>'


async def _follow(request: Request) -> Response:
    identity: Identity | None = request.scope.get("identity")
    if identity is None:
        raise SignedOut
    answers, message_id = services().answers, request.path_params["message_id"]
    live = answers.find_here(identity, message_id) or await to_thread.run_sync(answers.find, identity, message_id)
    if live is None:
        raise NotFound
    return StreamingResponse(_events(live, identity), media_type="text/event-stream", headers=HEADERS)


ROUTE = Route(PATH, _follow, methods=["GET"], include_in_schema=False)


class _Shared:
    def __init__(self) -> None:
        self.restarts = 0
        self.characters = 0
        self.answer = GrowingAnswer()

    def take(self, progress: Progress) -> None:
        if progress.restarts > self.restarts:
            self.restarts, self.characters, self.answer = progress.restarts, 0, GrowingAnswer()
        if len(progress.text) > self.characters:
            self.characters = len(progress.text)
            self.answer.grow(progress.text)


async def _events(live: LiveAnswer, identity: Identity) -> AsyncIterator[str]:
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def note() -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody is waiting.
            loop.call_soon_threadsafe(changed.set)

    shared = _growing.setdefault(live, _Shared())
    restarts = blocks = characters = 0
    # A single timer for many pieces: a timeout around each wait took 5 % of the event loop's time.
    pause = RECHECK_SECONDS if live.is_here else LOOK_UP_SECONDS
    checked, timer = loop.time(), loop.call_later(pause, changed.set)
    try:
        with live.heard_by(note, with_steps=False):
            while True:
                changed.clear()
                progress = live.progress() if live.is_here else await to_thread.run_sync(live.progress)
                shared.take(progress)
                if shared.restarts > restarts or shared.characters > characters:
                    is_again = shared.restarts > restarts
                    blocks = 0 if is_again else blocks
                    news = {"finished": "".join(shared.answer.finished[blocks:]), "growing": shared.answer.growing}
                    restarts, blocks, characters = shared.restarts, len(shared.answer.finished), shared.characters
                    yield f"data: {json.dumps(news | ({'again': True} if is_again else {}), ensure_ascii=False)}\n\n"
                if progress.is_written:
                    yield END
                    return
                await changed.wait()
                if (now := loop.time()) < timer.when():
                    continue
                timer = loop.call_later(pause, changed.set)
                if now - checked >= RECHECK_SECONDS:
                    checked = now
                    if not await _is_signed_in(identity):
                        return
                    yield HEARTBEAT
    finally:
        timer.cancel()


async def _is_signed_in(identity: Identity) -> bool:
    """Whether the session is still open, because a person who signed out must not see the text."""
    sessions = services().sessions
    if sessions.find_cached(identity.session_id) is not None:
        return True
    session = await to_thread.run_sync(lambda: sessions.find_by_id(identity.session_id, is_act=False))
    return session is not None
