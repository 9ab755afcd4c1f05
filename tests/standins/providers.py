"""A stand-in for OpenAI, Gemini, OpenRouter, Ollama and Cohere over real HTTP, for the real SDKs without a network.

Answers are deterministic, everything is counted as the provider would bill it, and faults can be requested. By hand:
`python tests/standins/providers.py --port 9999 --token-interval-ms 20`, then OPENAI_BASE_URL=http://127.0.0.1:9999/v1.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import math
import re
import socket
import struct
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from pypdf import PdfReader

from tests.patience import patient

Endpoint = str  # "embeddings", "chat", "rerank", "models"
Reply = Callable[[list[dict[str, Any]]], str]
PATHS = {
    "/v1/embeddings": "embeddings",
    "/v1/chat/completions": "chat",
    "/v1/models": "models",
    "/v2/rerank": "rerank",
    "/v1/document-digitization": "ocr",
    "/v1beta/openai/embeddings": "embeddings",
    "/v1beta/openai/chat/completions": "chat",
    "/api/v1/chat/completions": "chat",
    "/api/embed": "embeddings",
    "/api/embeddings": "embeddings",
}
GEMINI, OPENROUTER, OLLAMA = "/v1beta/openai/", "/api/v1/", ("/api/embed", "/api/embeddings")
#: Gemini's limits per request: texts, and tokens.
GEMINI_INPUTS, GEMINI_INPUT_TOKENS = 100, 2048
#: Models which `ollama pull` has downloaded.
OLLAMA_MODELS = frozenset({"bge-m3", "nomic-embed-text"})
#: Names of reasoning models. "hr-answers" is the name of a deployment of one, which does not show it.
REASONING = re.compile(r"^(gpt-[56]|o[134]|hr-answers)")
NATIVE_DIMENSIONS = {
    "text-embedding-3-large": 3072, "bge-m3": 1024, "gemini-embedding-001": 3072, "nomic-embed-text": 768,
}  # fmt: skip
MAXIMUM_INPUTS = 2048
MAXIMUM_INPUT_TOKENS = 8192
MAXIMUM_REQUEST_TOKENS = 300_000


def many_words(count: int) -> str:
    """Return different words for a long answer, because the product stops an answer which repeats itself."""
    return "".join(f"word{number} " for number in range(count))


@dataclass
class Fault:
    """A wrong answer to give `times` times, from one endpoint or from all."""

    kind: str  # "status", "garbage", "close", "cut", "end", "hang", "error_event"
    times: int = 1
    endpoint: Endpoint | None = None
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    after: int = 0
    is_billed: bool = False
    skip: int = 0


class ProviderStandin:
    """A server in a thread with `openai_url`, `gemini_url`, `openrouter_url`, `ollama_url` and `cohere_url`.

    Runs until `stop()`, or until the end of a `with` block.

    calls[endpoint]    answered and failed requests by endpoint: "embeddings", "chat", "rerank", "models"
    tokens[endpoint]   tokens billed, input and output together
    usages             a dict per billed request: endpoint, model, input_tokens, cached_input_tokens, output_tokens,
                       search_units
    untold             the `usages` which no answer reported
    silent             how many requests ended without a reported usage and were not refused: callers must estimate
    requests           (endpoint, body) of every request, in order; in the same order `headers`, `paths`, `times` (of
                       arrival, in seconds of `time.monotonic`) and `ports` (of the caller)
    missing_paths      routes which this server lacks, such as "/api/embed" of an old Ollama
    delay_seconds      wait before every answer
    delays             seconds to wait before every answer of an endpoint, by its name
    token_interval_seconds  wait between the pieces of a stream
    cached_tokens      input tokens of every chat request which count as cached
    sends_usage        False: streams report no usage even if the request asks for it
    accepted_key       if set, requests with any other key are answered 401
    hang               True: no request is answered until `release()`
    meetings           by endpoint, a barrier at which requests wait for each other (`meet`)
    without_vector     tells which texts have no vector: a request with one is answered 500 like Ollama's, or, if
                       `vector_instead` is set, gets this value in place of the vector
    window             number of prompt tokens which are read and counted, like Ollama's; None: all
    tells_window       True: `/api/ps` reports the window, once a prompt has loaded the model
    knows_idempotency_keys  True: a request with the key of an answered request gets the same answer, unbilled
    """

    def __init__(self, *, port: int = 0, token_interval_seconds: float = 0.0) -> None:
        self.lock = threading.Lock()
        self.reset()
        self.token_interval_seconds = token_interval_seconds
        standin = self

        class Handler(_Handler):
            pass

        Handler.standin = standin
        self._server = _Server(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="standin", daemon=True)

    def reset(self) -> None:
        """Forget counts, faults and replies, as if newly started."""
        self.calls: Counter[Endpoint] = Counter()
        self.tokens: Counter[Endpoint] = Counter()
        self.usages: list[dict[str, Any]] = []
        self.untold: list[dict[str, Any]] = []
        self.silent = 0
        self.requests: list[tuple[Endpoint, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.times: list[float] = []
        self.ports: list[int] = []
        self.missing_paths: set[str] = set()
        self.delay_seconds = 0.0
        self.delays: dict[Endpoint, float] = {}
        self.token_interval_seconds = 0.0
        self.cached_tokens = 0
        self.hang = False
        self.meetings: dict[Endpoint, threading.Barrier] = {}
        self.knows_idempotency_keys = True
        self.answered: dict[str, bytes] = {}
        self.sends_usage = True  # False: streams carry no usage even when asked for
        self.accepted_key: str | None = None
        self.alter_embeddings: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] | None = None
        self.without_vector: Callable[[str], bool] = lambda text: False
        self.vector_instead: tuple[Any, ...] = ()
        self.window: int | None = None
        self.tells_window = True
        self.released = threading.Event()
        self.write_limit: int | None = None
        self.written_on = threading.Condition()
        self._faults: list[Fault] = []
        self._reply: str | Reply = default_reply
        self._finish_reason: str | None = "stop"

    # What to answer

    def reply(self, text: str | Reply, *, finish_reason: str | None = "stop") -> None:
        """Answer chats with this text, or with the result of this function on the messages, until the next call."""
        self._reply, self._finish_reason = text, finish_reason

    def refuse(self, text: str = "") -> None:
        """End chats by the content filter, with `text` before."""
        self.reply(text, finish_reason="content_filter")

    def fail_next(
        self,
        status: int,
        times: int = 1,
        headers: Mapping[str, str] | None = None,
        *,
        code: str = "",
        endpoint: Endpoint | None = None,
        skip: int = 0,
    ) -> None:
        """Answer the next `times` requests with this HTTP status; `code`, such as "insufficient_quota", goes into the
        body.

        The first `skip` requests are still answered normally.
        """
        self._add(Fault("status", times, endpoint, status, headers or {}, code, skip=skip))

    def garbage_next(
        self, times: int = 1, *, endpoint: Endpoint | None = None, after: int = 0, is_billed: bool = False
    ) -> None:
        """Answer 200 with text which is not JSON; in a stream, after `after` pieces.

        A bill is not reported to the caller.
        """
        self._add(Fault("garbage", times, endpoint, after=after, is_billed=is_billed))

    def close_next(self, times: int = 1, *, endpoint: Endpoint | None = None, is_billed: bool = False) -> None:
        """Close the connection without an answer. A bill is not reported to the caller."""
        self._add(Fault("close", times, endpoint, is_billed=is_billed))

    def spoil_next(self, how: str, times: int = 1, *, endpoint: Endpoint | None = None) -> None:
        """Bill the next requests, report the bill, and send an unusable answer (see `spoiled`).

        "uncounted" is the exception: a usable answer without a reported bill.
        """
        self._add(Fault(how, times, endpoint))

    def cut_stream_after(self, pieces: int, times: int = 1, *, is_billed: bool = False) -> None:
        """Reset the connection in the middle of a stream, after this many pieces of text."""
        self._add(Fault("cut", times, "chat", after=pieces, is_billed=is_billed))

    def end_stream_after(self, pieces: int, times: int = 1) -> None:
        """End the stream properly but early, after this many pieces: no finish reason and no usage."""
        self._add(Fault("end", times, "chat", after=pieces))

    def hang_stream_after(self, pieces: int, times: int = 1) -> None:
        """Stop sending after this many pieces, until `release()`."""
        self._add(Fault("hang", times, "chat", after=pieces))

    def error_event_after(self, pieces: int, times: int = 1, *, code: str = "server_error") -> None:
        """Send an error event in the stream, after this many pieces."""
        self._add(Fault("error_event", times, "chat", after=pieces, code=code))

    def meet(self, endpoint: Endpoint, count: int, *, timeout_seconds: float = 18.0) -> threading.Barrier:
        """Answer requests to an endpoint only when `count` of them wait at the same time.

        If they do not arrive in time, the barrier breaks and the requests are answered 500.
        """
        barrier = self.meetings[endpoint] = threading.Barrier(count, timeout=patient(timeout_seconds))
        return barrier

    def write(self, pieces: int | None) -> None:
        """Let each stream send this many pieces of text and then wait for the next call; `None` lets it end.

        For tests which look at an unfinished answer, which could end too early if only time delayed it.
        """
        with self.written_on:
            self.write_limit = pieces
            self.written_on.notify_all()

    def wait_to_write(self, sent: int) -> None:
        """Wait until a stream which has sent this many pieces may send another."""
        with self.written_on:
            self.written_on.wait_for(lambda: self.write_limit is None or sent < self.write_limit)

    def release(self) -> None:
        """Let everything continue which hangs."""
        self.hang = False
        self.released.set()

    def _add(self, fault: Fault) -> None:
        with self.lock:
            self._faults.append(fault)

    def take_fault(self, endpoint: Endpoint) -> Fault | None:
        with self.lock:
            for fault in self._faults:
                if fault.endpoint in (None, endpoint):
                    if fault.skip:
                        fault.skip -= 1
                        return None
                    fault.times -= 1
                    if fault.times <= 0:
                        self._faults.remove(fault)
                    return fault
        return None

    def text_for(self, messages: list[dict[str, Any]]) -> str:
        return self._reply if isinstance(self._reply, str) else self._reply(messages)

    def bill(self, endpoint: Endpoint, model: str, **used: int) -> None:
        with self.lock:
            self.tokens[endpoint] += used.get("input_tokens", 0) + used.get("output_tokens", 0)
            self.usages.append({"endpoint": endpoint, "model": model, **used})

    # Life

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def openai_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def gemini_url(self) -> str:
        return f"{self.cohere_url}{GEMINI}"

    @property
    def openrouter_url(self) -> str:
        return f"{self.cohere_url}{OPENROUTER}"

    @property
    def ollama_url(self) -> str:
        return self.cohere_url

    @property
    def cohere_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> ProviderStandin:
        self._thread.start()
        return self

    def stop(self) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(patient(5))

    def __enter__(self) -> ProviderStandin:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error, because some tests hang up in the middle of an answer."""


class _Handler(BaseHTTPRequestHandler):
    standin: ProviderStandin
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    remembered_as = ""
    spoiling: Fault | None = None

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get_content_type() == "multipart/form-data":
            self._serve({"form": raw})
            return
        try:
            body = json.loads(raw)
        except json.JSONDecodeError:
            self._error(400, "invalid_json", "The body is not JSON.")
            return
        self._serve(body)

    def _serve(self, body: dict[str, Any]) -> None:  # noqa: C901 - one branch for each route
        standin = self.standin
        path = self.path.split("?")[0]
        if path == "/api/ps" and standin.tells_window:
            loaded = {body["model"] for endpoint, body in standin.requests if endpoint == "chat"}
            running = [{"name": f"{name}:latest", "context_length": standin.window or 131_072} for name in loaded]
            self._json(200, {"models": running})
            return
        endpoint = PATHS.get(path)
        if path in standin.missing_paths:
            self._send(404, b"404 page not found", "text/plain")
            return
        if endpoint is None:
            self._error(404, "not_found", f"There is no {self.path}.")
            return
        with standin.lock:
            standin.calls[endpoint] += 1
            standin.requests.append((endpoint, body))
            standin.ports.append(self.client_address[1])
            standin.headers.append({name.lower(): value for name, value in self.headers.items()})
            standin.paths.append(path)
            standin.times.append(time.monotonic())
        if delay := standin.delay_seconds + standin.delays.get(endpoint, 0.0):
            time.sleep(delay)
        if standin.hang:
            standin.released.wait()
        if endpoint in standin.meetings:
            try:
                standin.meetings[endpoint].wait()
            except threading.BrokenBarrierError:
                self._error(500, "standin", "Not as many requests came at once as were waited for.")
                return
        key = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        if standin.accepted_key is not None and key != standin.accepted_key:
            self._error(401, "invalid_api_key", "Incorrect API key provided.")
            return
        fault = standin.take_fault(endpoint)
        self.spoiling = None
        is_stream = bool(body.get("stream"))
        if fault and not is_stream and (fault.is_billed or fault.kind in SPOILED):
            self.spoiling, fault = fault, None
        elif (fault and fault.kind == "close") or (fault and fault.kind == "garbage" and not is_stream):
            standin.silent += 1
        idempotency_key = self.headers.get("idempotency-key") or ""
        self.remembered_as = idempotency_key if standin.knows_idempotency_keys else ""
        if fault is None and self.spoiling is None and self.remembered_as in standin.answered:
            self._send(200, standin.answered[self.remembered_as], "application/json")
            return
        if fault and fault.kind == "status":
            self._error(fault.status, fault.code or "standin", "The stand-in was told to fail.", fault.headers)
        elif fault and fault.kind == "close":
            self._reset()
        elif fault and fault.kind == "garbage" and not body.get("stream"):
            self._send(200, b"<html>no JSON</html>", "application/json")
        elif path in OLLAMA:
            self._ollama(path, body)
        elif endpoint == "embeddings":
            self._embeddings(body)
        elif endpoint == "chat":
            self._chat(body, fault)
        elif endpoint == "ocr":
            self._ocr(body["form"])
        elif endpoint == "rerank":
            self._rerank(body)
        else:
            self._json(200, {"object": "list", "data": [{"id": "gpt-4o", "object": "model"}]})

    # Endpoints

    def _embeddings(self, body: dict[str, Any]) -> None:
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        counts = [count_tokens(text) for text in texts]
        if not texts or any(not text for text in texts):
            self._error(400, "invalid_request", "Input cannot be an empty string.")
            return
        if len(texts) > MAXIMUM_INPUTS or sum(counts) > MAXIMUM_REQUEST_TOKENS or max(counts) > MAXIMUM_INPUT_TOKENS:
            self._error(400, "max_tokens_per_request", "The request is over a limit.")
            return
        if not self.standin.vector_instead and any(map(self.standin.without_vector, texts)):
            self._error(500, "api_error", "failed to encode response: json: unsupported value: NaN")
            return
        is_gemini = self.path.startswith(GEMINI)
        if is_gemini and (body.get("encoding_format", "float") != "float" or len(texts) > GEMINI_INPUTS):
            self._error(400, "INVALID_ARGUMENT", "At most 100 requests can be in one batch, as float.")
            return
        if is_gemini and max(counts) > GEMINI_INPUT_TOKENS:
            self._error(400, "INVALID_ARGUMENT", "The input token count exceeds the maximum.")
            return
        dimensions = body.get("dimensions") or NATIVE_DIMENSIONS.get(body["model"], 1536)
        data = []
        for index, text in enumerate(texts):
            vector = embed(text, dimensions)
            as_base64 = body.get("encoding_format") == "base64"
            value = base64.b64encode(vector.tobytes()).decode() if as_base64 else vector.tolist()
            if self.standin.without_vector(text):
                (value,) = self.standin.vector_instead
            data.append({"object": "embedding", "index": index, "embedding": value})
        if self.standin.alter_embeddings:
            data = self.standin.alter_embeddings(data)
        tokens = sum(counts)
        self.standin.bill("embeddings", body["model"], input_tokens=tokens)
        answer = {"object": "list", "data": data, "model": body["model"]}
        if not is_gemini:  # it is not known to count
            answer["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
        self._json(200, answer)

    def _ollama(self, path: str, body: dict[str, Any]) -> None:
        """Answer Ollama's own routes: many texts in `input`, or one in `prompt` without a count."""
        model = body["model"]
        if model not in OLLAMA_MODELS:
            self._json(404, {"error": f'model "{model}" not found, try pulling it first'})
            return
        given = body.get("input", []) if path == "/api/embed" else body["prompt"]
        texts = [given] if isinstance(given, str) else list(given)
        if any(map(self.standin.without_vector, texts)):
            self._json(500, {"error": "json: unsupported value: NaN"})
            return
        data = [{"embedding": embed(text, NATIVE_DIMENSIONS[model]).tolist()} for text in texts]
        if self.standin.alter_embeddings:
            data = self.standin.alter_embeddings(data)
        tokens = sum(count_tokens(text) for text in texts)
        self.standin.bill("embeddings", model, input_tokens=tokens)
        vectors = [item["embedding"] for item in data]
        if path == "/api/embed":
            self._json(200, {"model": model, "embeddings": vectors, "prompt_eval_count": tokens})
        else:
            self._json(200, {"embedding": vectors[0]})

    def _rerank(self, body: dict[str, Any]) -> None:
        wanted = set(words(body["query"]))
        documents = body["documents"]
        scores = [round(len(wanted & set(words(d))) / max(1, len(wanted)) * 0.98 + 0.01, 6) for d in documents]
        order = sorted(range(len(documents)), key=lambda i: (-scores[i], i))[: body.get("top_n") or len(documents)]
        parts = sum(max(1, math.ceil(count_tokens(document) / 500)) for document in documents)
        units = math.ceil(parts / 100)
        self.standin.bill("rerank", body["model"], search_units=units)
        meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": units}}
        results = [{"index": index, "relevance_score": scores[index]} for index in order]
        self._json(200, {"id": "standin", "results": results, "meta": meta})

    def _ocr(self, form: bytes) -> None:
        """Answer as Upstage Document Parse: an element per page of the PDF, and one for the running head."""
        start, end = form.find(b"%PDF-"), form.rfind(b"%%EOF")
        pages = len(PdfReader(io.BytesIO(form[start : end + 5])).pages)
        self.standin.bill("ocr", "document-parse", pages=pages)
        elements = []
        for page in range(1, pages + 1):
            text = f"Recognised text {page} of {pages}."
            elements.append({"id": page, "page": page, "category": "header", "content": {"text": "Head", "html": ""}})
            elements.append({"id": page, "page": page, "category": "paragraph", "content": {"text": text, "html": ""}})
        usage = {"pages": pages}
        self._json(200, {"api": "2.0", "model": "document-parse", "content": {}, "elements": elements, "usage": usage})

    def _chat(self, body: dict[str, Any], fault: Fault | None) -> None:
        model, messages = body["model"], body["messages"]
        if REASONING.match(model) and ("max_tokens" in body or body.get("temperature", 1) != 1):
            wrong, right = ("max_tokens", "Use 'max_completion_tokens' instead.") if "max_tokens" in body else (
                "temperature", "Only the default (1) value is supported."
            )  # fmt: skip
            self._error(400, "unsupported_parameter", f"Unsupported parameter: '{wrong}' with this model. {right}")
            return
        schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
        text = self.standin.text_for(messages)
        if schema is not None and not _is_json(text):
            text = json.dumps(example_of(schema), ensure_ascii=False)
        finish_reason = self.standin._finish_reason
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        all_pieces = pieces(text)
        if limit and len(all_pieces) > limit:
            all_pieces, finish_reason = all_pieces[:limit], "length"
        input_tokens = sum(count_tokens(str(message["content"])) for message in messages)
        if schema is not None:  # counted as OpenAI does
            shown = {name: part for name, part in schema.items() if name not in ("required", "additionalProperties")}
            input_tokens += count_tokens(json.dumps(shown, separators=(",", ":"))) + 9
        input_tokens = min(input_tokens, self.standin.window or input_tokens)
        cached = min(self.standin.cached_tokens, input_tokens)

        def usage(output_tokens: int) -> dict[str, Any]:
            used = {"input_tokens": input_tokens, "cached_input_tokens": cached, "output_tokens": output_tokens}
            self.standin.bill("chat", model, **used)
            return {
                "prompt_tokens": input_tokens,
                "completion_tokens": output_tokens,
                "total_tokens": input_tokens + output_tokens,
                "prompt_tokens_details": {"cached_tokens": cached},
            }

        head = {"id": "chatcmpl-standin", "created": 1, "model": model}
        if not body.get("stream"):
            message = {"role": "assistant", "content": "".join(all_pieces)}
            choice = {"index": 0, "message": message, "finish_reason": finish_reason}
            reply = {**head, "object": "chat.completion", "choices": [choice], "usage": usage(len(all_pieces))}
            self._json(200, reply)
            return
        with_usage = bool((body.get("stream_options") or {}).get("include_usage")) and self.standin.sends_usage
        self._stream(head, all_pieces, finish_reason, usage, with_usage, fault)

    def _stream(
        self,
        head: dict[str, Any],
        text_pieces: list[str],
        finish_reason: str | None,
        usage: Callable[[int], dict[str, Any]],
        with_usage: bool,
        fault: Fault | None,
    ) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        head = {**head, "object": "chat.completion.chunk"}

        def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
            choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
            return _event({**head, "choices": choices, "usage": None} if with_usage else {**head, "choices": choices})

        if self.path.startswith(OPENROUTER):
            self._chunk(b": OPENROUTER PROCESSING\n\n")
        self._chunk(event({"role": "assistant", "content": ""}))
        due = time.monotonic()
        for sent in range(len(text_pieces) + 1):
            if fault and fault.after == sent and not self._go_on_after(fault):
                self.standin.silent += fault.code not in ("insufficient_quota", "rate_limit_exceeded")
                if fault.is_billed:
                    usage(sent)
                    self.standin.untold.append(self.standin.usages[-1])
                return
            if sent < len(text_pieces):
                self.standin.wait_to_write(sent)
                self._chunk(event({"content": text_pieces[sent]}))
                # By the clock, so that the time for writing does not add up.
                due += self.standin.token_interval_seconds
                if (wait := due - time.monotonic()) > 0:
                    time.sleep(wait)
        if finish_reason is not None:
            self._chunk(event({}, finish_reason))
        used = usage(len(text_pieces))
        if not with_usage:
            self.standin.silent += 1
            self.standin.untold.append(self.standin.usages[-1])
        if with_usage:
            self._chunk(_event({**head, "choices": [], "usage": used}))
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _go_on_after(self, fault: Fault) -> bool:
        """Carry out a fault in the middle of a stream; return `False` if the stream ends with it."""
        if fault.kind == "hang":
            self.standin.released.wait()
            return True
        if fault.kind == "cut":
            self._reset()
        elif fault.kind == "end":
            self._chunk(b"data: [DONE]\n\n")
            self._chunk(b"")
        elif fault.kind == "garbage":
            self._chunk(b"data: {no json\n\n")
            self._chunk(b"")
        elif fault.kind == "error_event":
            self._chunk(_event({"error": {"message": "The stand-in failed.", "type": fault.code, "code": fault.code}}))
            self._chunk(b"")
        else:
            # Faults which spoil a whole answer reset a stream, so that its reader does not wait for the rest.
            self._reset()
        return False

    # Wire

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _json(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        if status == 200 and self.spoiling is not None:
            fault = self.spoiling
            if fault.kind in ("close", "garbage", "uncounted"):
                self.standin.silent += 1
                self.standin.untold.append(self.standin.usages[-1])
            if fault.kind == "close":
                self._reset()
                return
            value = "<html>" if fault.kind == "garbage" else spoiled(value, fault.kind)
        body = json.dumps(value).encode()
        if status == 200 and self.remembered_as and self.spoiling is None:
            self.standin.answered[self.remembered_as] = body
        self._send(status, body, "application/json", headers)

    def _error(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        error = {"message": message, "type": code, "code": code, "param": None}
        self._json(status, {"id": "standin", "message": message, "error": error}, headers)

    def _send(self, status: int, body: bytes, kind: str, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _reset(self) -> None:
        """Close with a TCP reset, like a proxy which dies."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.shutdown(socket.SHUT_RD)
        self.connection.close()


SPOILED = frozenset({"empty", "dimension", "nan", "missing", "filter", "half", "uncounted"})


def spoiled(answer: dict[str, Any], how: str) -> dict[str, Any]:
    """Return an unusable answer with its count.

    It is empty; has vectors of 3 dimensions, of NaN, or one too few; or has text removed by a filter, or half of it.
    With "uncounted", return a usable answer without its count.
    """
    if how == "uncounted":
        return {name: part for name, part in answer.items() if name not in ("usage", "meta")}
    for name in ("data", "choices", "results"):
        if name in answer and how == "empty":
            return {**answer, name: []}
    if "elements" in answer:  # text without its page
        return {**answer, "elements": [{"content": {"text": "?"}, "category": "paragraph"}]}
    if "data" in answer:
        values = {"dimension": [0.5] * 3, "nan": [float("nan")] * 3}
        if how == "missing":
            return {**answer, "data": answer["data"][:-1]}
        return {**answer, "data": [{**item, "embedding": values.get(how, "?")} for item in answer["data"]]}
    if "choices" in answer:
        choice = answer["choices"][0]
        text = choice["message"]["content"]
        kept, reason = (None, "content_filter") if how == "filter" else (text[: len(text) // 2], "length")
        message = {**choice["message"], "content": kept}
        return {**answer, "choices": [{**choice, "message": message, "finish_reason": reason}]}
    return {**answer, "results": [{"index": 99_999, "relevance_score": 0.5}]}


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def count_tokens(text: str) -> int:
    """Return the number of tokens to bill: words and punctuation marks, at least 1."""
    return max(1, len(re.findall(r"\w+|[^\w\s]", text)))


def pieces(text: str) -> list[str]:
    """Split a text into the pieces of a stream: words with the space before, each one output token."""
    return re.findall(r"\s*\S+\s*$|\s*\S+|\s+", text)


def embed(text: str, dimensions: int) -> np.ndarray:
    """Return a deterministic vector; texts which share words, or beginnings of words, have similar vectors."""
    vector = np.zeros(dimensions, dtype="<f4")
    for word in words(text) or [text]:
        vector[zlib.crc32(word.encode()) % dimensions] += 1.0
        vector[zlib.crc32(b"^" + word[:4].encode()) % dimensions] += 0.5
    return np.asarray(vector / np.linalg.norm(vector))


def default_reply(messages: list[dict[str, Any]]) -> str:
    """Quote the beginning of passage 1 with its number, if the messages have numbered passages."""
    text = "\n".join(str(message["content"]) for message in messages)
    passage = re.search(r"^\[1\][^\n]*\n(.+)", text, flags=re.MULTILINE)
    if passage is None:
        return "This is the stand-in's answer."
    sentence = re.split(r"(?<=[.!?。])\s", passage[1].strip())[0]
    return f"The documents say: {sentence} [1]"


def example_of(schema: Mapping[str, Any]) -> Any:
    """Return the smallest sensible value which is valid for a JSON schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0])
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        return {name: example_of(part) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [example_of(schema.get("items", {"type": "string"}))] * max(1, schema.get("minItems", 1))
    simple = {"integer": schema.get("minimum", 1), "number": schema.get("minimum", 1.0), "boolean": True, "null": None}
    return simple.get(str(kind), "stand-in")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    return True


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def running(**options: Any) -> Iterator[ProviderStandin]:
    """Run a stand-in. In a fixture: `yield from running()`."""
    with ProviderStandin(**options) as standin:
        yield standin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9999)
    parser.add_argument("--token-interval-ms", type=float, default=0.0)
    parser.add_argument("--words", type=int, default=0, help="answer every chat with so many words")
    for endpoint in ("embeddings", "rerank", "chat"):
        parser.add_argument(f"--{endpoint}-ms", type=float, default=0.0, help="milliseconds before each answer")
    arguments = parser.parse_args()
    standin = ProviderStandin(port=arguments.port, token_interval_seconds=arguments.token_interval_ms / 1000)
    for endpoint in ("embeddings", "rerank", "chat"):
        standin.delays[endpoint] = getattr(arguments, f"{endpoint}_ms") / 1000
    if arguments.words:
        standin.reply(" ".join(f"word{number}" for number in range(arguments.words)))
    standin.start()
    print(f"OPENAI_BASE_URL={standin.openai_url} COHERE_BASE_URL={standin.cohere_url}", flush=True)  # noqa: T201
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        standin.stop()


if __name__ == "__main__":
    main()
