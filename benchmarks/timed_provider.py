"""A stand-in of OpenAI and Cohere whose every token says when it was due, so that a reader knows how late it is.

It answers as late as real providers do, unless told otherwise: providers that answer at once hide every place where
people wait for each other's calls. Runs on the event loop of the load client: 100 streams as threads would take the
cores that are being measured.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.standins.providers import embed, example_of

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


#: As long as the sentences of a model are; each says what it was taken from.
WORDS_OF_A_SENTENCE = 10


@dataclass(frozen=True, kw_only=True)
class Latency:
    """What a provider takes before it answers, in milliseconds; `first_token` also before a whole answer."""

    embedding: float = 150.0
    rerank: float = 300.0
    first_token: float = 800.0

    @property
    def first_text(self) -> float:
        """What a question waits for its providers until the first word."""
        return self.embedding + self.rerank + self.first_token

    def __str__(self) -> str:
        if self == INSTANT:
            return "providers that answer at once"
        return (
            f"providers of {self.embedding:g} ms an embedding, {self.rerank:g} ms a rerank, "
            f"{self.first_token:g} ms to the first token"
        )


REALISTIC = Latency()
INSTANT = Latency(embedding=0.0, rerank=0.0, first_token=0.0)


def add_latency_options(parser: argparse.ArgumentParser) -> None:
    """Options for what the providers take; realistic when none is given."""
    parser.add_argument("--embedding-ms", type=float, default=REALISTIC.embedding)
    parser.add_argument("--rerank-ms", type=float, default=REALISTIC.rerank)
    parser.add_argument("--first-token-ms", type=float, default=REALISTIC.first_token)
    parser.add_argument("--instant", action="store_true", help="providers that answer at once")


def latency_from(arguments: argparse.Namespace) -> Latency:
    """What the options of `add_latency_options` say."""
    if arguments.instant:
        return INSTANT
    return Latency(embedding=arguments.embedding_ms, rerank=arguments.rerank_ms, first_token=arguments.first_token_ms)


class TimedProvider:
    """`/v1/embeddings`, `/v1/chat/completions` and `/v2/rerank`.

    A streamed answer has `tokens` tokens, one every `interval_ms`, or as many as the request allows.
    """

    def __init__(self, *, tokens: int, interval_ms: float, latency: Latency = REALISTIC) -> None:
        self.tokens, self.interval_ms, self.latency = tokens, interval_ms, latency
        self.epoch = time.perf_counter()
        #: How late the tokens left here already, in milliseconds: the load client's own share of the delay.
        self.own_delays: list[float] = []
        self.answers = 0
        #: Calls being answered now, and at most, by what they are.
        self.in_flight: Counter[str] = Counter()
        self.most_in_flight: Counter[str] = Counter()

    def now_ms(self) -> float:
        return (time.perf_counter() - self.epoch) * 1000

    async def start(self) -> dict[str, str]:
        """Listen; the settings that lead a product here, by their environment names."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return {
            "OPENAI_API_KEY": "benchmark",
            "OPENAI_BASE_URL": f"{address}/v1",
            "COHERE_API_KEY": "benchmark",
            "COHERE_BASE_URL": address,
        }

    async def stop(self) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                body = json.loads(await reader.readexactly(int(length[1])) if length else b"{}")
                if path.endswith("/embeddings"):
                    async with self._taking("embedding", self.latency.embedding):
                        self._send_json(writer, _embeddings(body))
                elif path.endswith("/rerank"):
                    async with self._taking("rerank", self.latency.rerank):
                        self._send_json(writer, _ranking(body))
                elif body.get("stream"):
                    async with self._taking("first token", self.latency.first_token):
                        pass
                    await self._stream(writer, body)
                else:
                    async with self._taking("whole answer", self.latency.first_token):
                        self._send_json(writer, _completion(body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @asynccontextmanager
    async def _taking(self, call: str, milliseconds: float) -> AsyncIterator[None]:
        self.in_flight[call] += 1
        self.most_in_flight[call] = max(self.most_in_flight[call], self.in_flight[call])
        if milliseconds:
            await asyncio.sleep(milliseconds / 1000)
        try:
            yield
        finally:
            self.in_flight[call] -= 1

    def _send_json(self, writer: asyncio.StreamWriter, value: dict[str, Any]) -> None:
        raw = json.dumps(value).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
        writer.write(b"content-length: %d\r\n\r\n" % len(raw) + raw)

    async def _stream(self, writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
        self.answers += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        template = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        before, after = json.dumps({**template, "choices": [{"index": 0, "delta": {"content": "\0"}}]}).split("\\u0000")
        tokens = min(self.tokens, body.get("max_tokens") or self.tokens)
        words = _words_of_the_first_passage(body)
        begun = self.now_ms()
        for number in range(tokens):
            due = begun + number * self.interval_ms
            if (wait := due - self.now_ms()) > 0:
                await asyncio.sleep(wait / 1000)
            self.own_delays.append(self.now_ms() - due)
            is_last = number + 1 == tokens or (number + 1) % WORDS_OF_A_SENTENCE == 0
            text = f"{to_mark(int(due))} {words[number % len(words)]}" + (" [1]. " if is_last else " ")
            _write_event(writer, f"{before}{text}{after}")
        end = {**template, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        _write_event(writer, json.dumps(end))
        usage = {"prompt_tokens": 900, "completion_tokens": tokens, "total_tokens": 900 + tokens}
        _write_event(writer, json.dumps({**template, "choices": [], "usage": usage}))
        _write_event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")


def _words_of_the_first_passage(body: dict[str, Any]) -> list[str]:
    """Return what an answer is made of besides its marks. Marks alone say nothing of what they cite, and an answer of
    them is withdrawn, which is not what most readers see.
    """
    asked = "\n".join(str(message["content"]) for message in body["messages"])
    passage = asked.partition("\n[1] ")[2].partition("\n[2] ")[0]
    return [word.lower() for word in re.findall(r"[^\W\d_]{4,}", passage)] or ["nothing"]


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


def _ranking(body: dict[str, Any]) -> dict[str, Any]:
    """The documents in the order they came."""
    count = len(body["documents"])
    results = [{"index": n, "relevance_score": 0.9 - 0.8 * n / count} for n in range(body.get("top_n") or count)]
    meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
    return {"id": "r", "results": results, "meta": meta}


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
