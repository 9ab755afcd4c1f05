"""An OpenAI stand-in whose every token says when it was due, so that a reader knows how late it is.

Runs on the event loop of the load client: 100 streams as threads would take the cores that are being measured.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from typing import Any

from tests.standin import embed, example_of

LETTERS = "bcdfghjklmnpqrstvwxz"  # no vowels: a mark is never a word of any language
MARK = re.compile(r"\bq([bcdfghjklmnpqrstvwxz]{6})q\b")


def to_mark(milliseconds: int) -> str:
    letters = []
    for _ in range(6):
        milliseconds, rest = divmod(milliseconds, len(LETTERS))
        letters.append(LETTERS[rest])
    return "q" + "".join(letters) + "q"


def from_mark(letters: str) -> int:
    """Milliseconds of the provider's clock at which the token with these six letters was due."""
    value = 0
    for letter in reversed(letters):
        value = value * len(LETTERS) + LETTERS.index(letter)
    return value


class TimedProvider:
    """`/v1/embeddings` and `/v1/chat/completions`; a streamed answer has `tokens` tokens, one every `interval_ms`."""

    def __init__(self, *, tokens: int, interval_ms: float) -> None:
        self.tokens, self.interval_ms = tokens, interval_ms
        self.epoch = time.perf_counter()
        #: How late the tokens left here already, in milliseconds: the load client's own share of the delay.
        self.own_delays: list[float] = []
        self.answers = 0

    def now_ms(self) -> float:
        return (time.perf_counter() - self.epoch) * 1000

    async def start(self) -> str:
        """Listen; the base URL for the `openai` client."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def stop(self) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                body = json.loads(await reader.readexactly(int(length[1])) if length else b"{}")
                if path.endswith("/embeddings"):
                    self._send_json(writer, _embeddings(body))
                elif body.get("stream"):
                    await self._stream(writer, body)
                else:
                    self._send_json(writer, _completion(body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _send_json(self, writer: asyncio.StreamWriter, value: dict[str, Any]) -> None:
        raw = json.dumps(value).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
        writer.write(b"content-length: %d\r\n\r\n" % len(raw) + raw)

    async def _stream(self, writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
        self.answers += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        template = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        before, after = json.dumps({**template, "choices": [{"index": 0, "delta": {"content": "\0"}}]}).split("\\u0000")
        begun = self.now_ms()
        for number in range(self.tokens):
            due = begun + number * self.interval_ms
            if (wait := due - self.now_ms()) > 0:
                await asyncio.sleep(wait / 1000)
            self.own_delays.append(self.now_ms() - due)
            text = to_mark(int(due)) + (" " if (number + 1) % 20 else " [1]. ")
            _write_event(writer, f"{before}{text}{after}")
        end = {**template, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        _write_event(writer, json.dumps(end))
        usage = {"prompt_tokens": 900, "completion_tokens": self.tokens, "total_tokens": 900 + self.tokens}
        _write_event(writer, json.dumps({**template, "choices": [], "usage": usage}))
        _write_event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")


def _write_event(writer: asyncio.StreamWriter, data: str) -> None:
    raw = f"data: {data}\n\n".encode()
    writer.write(b"%x\r\n%s\r\n" % (len(raw), raw))


def _embeddings(body: dict[str, Any]) -> dict[str, Any]:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(embed(text, body.get("dimensions") or 1536).tobytes()).decode(),
        }
        for index, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 10 * len(texts), "total_tokens": 10 * len(texts)}
    return {"object": "list", "model": body["model"], "data": data, "usage": usage}


def _completion(body: dict[str, Any]) -> dict[str, Any]:
    schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    content = json.dumps(example_of(schema)) if schema else "What does the handbook say about it?"
    message = {"role": "assistant", "content": content}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60},
    }
