"""Track each session's open websockets, and the files shown on its pages.

When a session ends, its websockets are closed. Streamlit serves the files in its memory (page pictures, exports,
recordings) to anyone who knows their content hash. We serve them only to a session whose page has shown them, so a
copied address is useless to others. Addresses are read only from fields which Streamlit fills itself: other fields may
repeat text from a browser.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Value
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

CLOSE_CODE = 4401
#: Seconds the page's server side gets to finish after its websocket was closed.
GRACE_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class WatchedSession:
    """A session with an open websocket, and a function which checks whether the session is still valid."""

    id: str
    account_id: UUID
    is_alive: Callable[[], Awaitable[bool]]
    recheck_seconds: float


class Sockets:
    """Serve websockets, and close a session's websockets when the session ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, set[_Socket]] = defaultdict(set)
        self._by_account: Counter[UUID] = Counter()

    def count(self, account_id: UUID) -> int:
        """Return the number of open websockets for this account."""
        with self._lock:
            return self._by_account[account_id]

    def close_session(self, session_id: str) -> None:
        """Close this session's open connections. Returns at once; safe from any thread."""
        with self._lock:
            sockets = tuple(self._open.get(session_id, ()))
        for socket in sockets:
            socket.end_soon()

    async def serve(
        self,
        app: ASGIApp,
        scope: Scope,
        receive: Receive,
        send: Send,
        session: WatchedSession,
    ) -> None:
        """Run `app` on a websocket until the app returns or the session ends.

        `session.is_alive` is checked at the start and every `recheck_seconds`.
        """
        socket = _Socket(receive, send)
        session_id, account_id = session.id, session.account_id
        with self._lock:
            self._open[session_id].add(socket)
            self._by_account[account_id] += 1
        serving = asyncio.ensure_future(_run(app, scope, socket))
        try:
            await socket.wait(serving, session.is_alive, session.recheck_seconds)
            if socket.ended.is_set() and not serving.done():
                await socket.close()
                await asyncio.wait({serving}, timeout=GRACE_SECONDS)
        finally:
            with self._lock:
                self._open[session_id].discard(socket)
                if not self._open[session_id]:
                    del self._open[session_id]
                self._by_account[account_id] -= 1
                if not self._by_account[account_id]:
                    del self._by_account[account_id]
            if not serving.done():
                serving.cancel()
                await asyncio.wait({serving})
        # The websocket closes while the app works: errors about a closed websocket are expected.
        if not serving.cancelled() and not socket.ended.is_set():
            serving.result()


async def _run(app: ASGIApp, scope: Scope, socket: _Socket) -> None:
    await app(scope, socket.receive, socket.send)


class _Socket:
    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        self._is_closed = False

    def end_soon(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.ended.set)

    async def wait(
        self, serving: asyncio.Future[None], is_alive: Callable[[], Awaitable[bool]], recheck_seconds: float
    ) -> None:
        """Wait until the app returns or the session ends."""
        ended = asyncio.ensure_future(self.ended.wait())
        both: set[asyncio.Future[Any]] = {serving, ended}
        try:
            # The session may have ended between being looked up and being listed.
            if not await is_alive():
                self.ended.set()
            while not serving.done() and not self.ended.is_set():
                done, _ = await asyncio.wait(both, timeout=recheck_seconds, return_when=asyncio.FIRST_COMPLETED)
                if not done and not await is_alive():
                    self.ended.set()
        finally:
            ended.cancel()

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._send({"type": "websocket.close", "code": CLOSE_CODE, "reason": "signed out"})

    async def receive(self) -> Message:
        """Return the browser's next message, or a disconnect if the session has ended."""
        disconnect: Message = {"type": "websocket.disconnect", "code": CLOSE_CODE, "reason": "signed out"}
        if self.ended.is_set():
            return disconnect
        incoming = asyncio.ensure_future(_next(self._receive))
        ended = asyncio.ensure_future(self.ended.wait())
        both: set[asyncio.Future[Any]] = {incoming, ended}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return incoming.result() if incoming.done() and not self.ended.is_set() else disconnect
        finally:
            ended.cancel()
            incoming.cancel()

    async def send(self, message: Message) -> None:
        """Pass the app's message on to the browser, unless the session has ended."""
        if self._is_closed or self.ended.is_set():
            return
        if message["type"] == "websocket.close":
            self._is_closed = True
        await self._send(message)


async def _next(receive: Receive) -> Message:
    return await receive()


PATH = "/media/"
NAME = re.compile(r"/media/([A-Za-z0-9_-]+(?:\.[A-Za-z0-9]+)?)")
#: Fields with file addresses in Streamlit's messages to the browser, by message.
FILE_FIELDS = frozenset(
    {
        "Audio.url",
        "Block.ChatMessage.avatar",
        "DeferredFileResponsePayload.url",
        "DownloadButton.url",
        "Favicon.url",
        "Image.url",
        "Logo.icon_image",
        "Logo.image",
        "PageConfig.favicon",
        "SubtitleTrack.url",
        "Video.url",
    }
)
#: The most remembered files per session, and sessions; the latest are kept.
MOST_FILES = 2_000
MOST_SESSIONS = 10_000


class ShownMedia:
    """Remember which files each session's pages have shown. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()

    def may(self, session_id: str, path: str) -> bool:
        """Whether a page in this session has shown the file at this path."""
        with self._lock:
            return path.removeprefix(PATH) in self._shown.get(session_id, ())

    def noting(self, session_id: str, send: Send) -> Send:
        """Wrap a websocket's `send` to remember the files in the messages it sends."""

        async def noted(message: Message) -> None:
            frame = message.get("bytes") or b""
            if PATH.encode() in frame:
                self._note(session_id, files_in(frame))
            await send(message)

        return noted

    def forget(self, session_id: str) -> None:
        """Forget an ended session's files."""
        with self._lock:
            self._shown.pop(session_id, None)

    def _note(self, session_id: str, names: Iterable[str]) -> None:
        with self._lock:
            files = self._shown.setdefault(session_id, OrderedDict())
            self._shown.move_to_end(session_id)
            for name in names:
                files[name] = None
                files.move_to_end(name)
            while len(files) > MOST_FILES:
                files.popitem(last=False)
            while len(self._shown) > MOST_SESSIONS:
                self._shown.popitem(last=False)


def files_in(frame: bytes) -> list[str]:
    """Return the names of the files which a Streamlit message shows or offers for download."""
    try:
        sent = ForwardMsg.FromString(frame)
    except DecodeError:
        return []
    return [match[1] for address in _file_addresses(sent) if (match := NAME.fullmatch(address))]


def _file_addresses(value: Value) -> Iterator[str]:
    for field, content in value.ListFields():
        if field.message_type is not None:
            for part in content if field.is_repeated else (content,):
                if isinstance(part, Value):
                    yield from _file_addresses(part)
        elif f"{value.DESCRIPTOR.full_name}.{field.name}" in FILE_FIELDS:
            yield content
