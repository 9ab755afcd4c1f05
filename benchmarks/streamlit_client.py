"""A person at a Streamlit page, as far as the server can tell: its websocket protocol without a browser.

The text of an answer is followed as the page's script follows it: over a request of its own, from the moment the place
for it is drawn.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

PLACE = re.compile(r'data-answer="([0-9a-f-]+)"')


class Person:
    """One open tab. `address` is host:port; `cookie` the whole Cookie header, empty where nobody signs in."""

    def __init__(self, address: str, cookie: str = "") -> None:
        self._address, self._cookie = address, cookie
        self._chat_input_id = ""
        self._page = ""
        self._query = ""
        self.errors: list[str] = []
        self._following: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Connect and wait until the page with its chat input is drawn."""
        headers = {"Cookie": self._cookie} if self._cookie else {}
        self._socket = await websockets.connect(
            f"ws://{self._address}/_stcore/stream",
            subprotocols=[websockets.Subprotocol("streamlit")],
            additional_headers=headers,
            max_size=None,
            open_timeout=60,
        )
        await self._rerun()
        async for _ in self._until_finished():
            pass
        if not self._chat_input_id:
            raise RuntimeError(f"the page has no chat input: {self.errors or 'no error was shown'}")

    async def ask(self, question: str, *, timeout_seconds: float = 90) -> AsyncIterator[str]:
        """Send the question as the chat input does; yield every text drawn until the page is finished."""
        await self._rerun(question)
        drawn: asyncio.Queue[str | None] = asyncio.Queue()
        reading = asyncio.create_task(self._read_page(drawn))
        try:
            async with asyncio.timeout(timeout_seconds):
                while (text := await drawn.get()) is not None:
                    yield text
        finally:
            reading.cancel()
            for following in self._following:
                following.cancel()
            self._following.clear()
        if not reading.cancelled() and reading.done() and (failure := reading.exception()):
            raise failure

    async def close(self) -> None:
        await self._socket.close()

    async def _read_page(self, drawn: asyncio.Queue[str | None]) -> None:
        try:
            async for text in self._until_finished():
                if place := PLACE.search(text):
                    self._following.append(asyncio.create_task(self._follow(place[1], drawn)))
                else:
                    drawn.put_nowait(text)
        finally:
            drawn.put_nowait(None)

    async def _follow(self, answer: str, drawn: asyncio.Queue[str | None]) -> None:
        host, port = self._address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=2**20)
        try:
            writer.write(
                f"GET /answers/{answer}/text HTTP/1.1\r\nHost: {self._address}\r\nCookie: {self._cookie}\r\n"
                "Accept: text/event-stream\r\n\r\n".encode()
            )
            if not (status := await reader.readline()).startswith(b"HTTP/1.1 200"):
                self.errors.append(f"the text could not be followed: {status.decode().strip()}")
                return
            while (line := await reader.readline()) and not line.startswith(b"event: end"):
                if line.startswith(b"data: "):
                    news = json.loads(line[6:])
                    drawn.put_nowait(news["finished"] + news["growing"])
        finally:
            writer.close()

    async def _rerun(self, question: str = "") -> None:
        message = BackMsg()
        state = message.rerun_script
        state.query_string = self._query
        state.page_script_hash = self._page
        state.context_info.timezone = "Europe/London"
        state.context_info.locale = "en-GB"
        state.context_info.url = f"http://{self._address}/"
        if question:
            widget = state.widget_states.widgets.add()
            widget.id = self._chat_input_id
            widget.chat_input_value.data = question
        await self._socket.send(message.SerializeToString())

    async def _until_finished(self) -> AsyncIterator[str]:
        """Texts of markdown elements as they are drawn, until no run is under way or announced."""
        message = ForwardMsg()
        async for raw in self._socket:
            message.ParseFromString(raw)
            kind = message.WhichOneof("type")
            if kind == "delta":
                element = message.delta.new_element
                drawn = element.WhichOneof("type")
                if drawn == "markdown":
                    yield element.markdown.body
                elif drawn == "html" and "data-answer" in element.html.body:
                    yield element.html.body
                elif drawn == "chat_input":
                    self._chat_input_id = element.chat_input.id
                elif drawn in ("exception", "alert"):
                    text = element.exception.message if drawn == "exception" else element.alert.body
                    self.errors.append(text)
            elif kind == "new_session":
                self._page = message.new_session.page_script_hash
            elif kind == "page_info_changed":
                self._query = message.page_info_changed.query_string
            elif kind == "script_finished" and message.script_finished in (
                ForwardMsg.FINISHED_SUCCESSFULLY,
                ForwardMsg.FINISHED_WITH_COMPILE_ERROR,
            ):
                return


async def frames_of_page(address: str, cookie: str, name: str, query: str, *, timeout_seconds: float = 60) -> bytes:
    """Everything the server sends to draw a page, as it comes. `name` is the page's path, empty for the first."""
    frames = b""
    async with (
        asyncio.timeout(timeout_seconds),
        websockets.connect(
            f"ws://{address}/_stcore/stream",
            subprotocols=[websockets.Subprotocol("streamlit")],
            additional_headers={"Cookie": cookie},
            max_size=None,
            open_timeout=timeout_seconds,
        ) as socket,
    ):
        message = BackMsg()
        message.rerun_script.page_name = name
        message.rerun_script.query_string = query
        message.rerun_script.context_info.url = f"http://{address}/{name}"
        await socket.send(message.SerializeToString())
        async for raw in socket:
            assert isinstance(raw, bytes)
            frames += raw
            drawn = ForwardMsg()
            drawn.ParseFromString(raw)
            if drawn.WhichOneof("type") == "script_finished":
                break
    return frames
