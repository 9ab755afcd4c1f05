"""Routes for `/v1/chat/completions`, `/v1/models` and `/v1/embeddings`, in which a collection takes a model's place.

Open WebUI, LibreChat and the `openai` package can use a collection like a model, with an API key. Sources are returned
in `annotations` (`url_citation`). Keys, limits, ledger and log are shared with `/api/rag/chat`. Fields sent by many
clients without need, like `temperature` or `tools`, are ignored. Options which change the response's form, like several
choices, are refused.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from anyio import to_thread
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from rag.access.guard import base_of
from rag.answering.citations import title_with_place
from rag.answering.jobs import LiveAnswer
from rag.api.event_stream import HEARTBEAT, HEARTBEAT_SECONDS, PACE_SECONDS, AnswerStream, Changes, ending
from rag.api.questions import accepted_languages, choose_collection, failure_of, until_done
from rag.api.routing import ANYBODY, Caller, ProviderRoute, needs
from rag.errors import InvalidInput, NotFound, QuestionEmpty
from rag.integrations.channels.openai_routes import errors
from rag.profiles.profile import Options
from rag.services import Services, services
from rag.types import (
    ChatMessage,
    Citation,
    Collection,
    Identity,
    MessageState,
    Outcome,
    Question,
    page_path,
)


class OpenAIRoute(ProviderRoute):
    """A route with errors in OpenAI's format."""

    refusals = errors.described


router = APIRouter(route_class=OpenAIRoute, tags=["OpenAI"], prefix="/v1")

#: Messages in a request; the last few are the history.
MOST_MESSAGES = 1000
#: Texts in a request for embeddings.
MOST_TEXTS = 256
NUMBER = re.compile(r"\[(\d{1,3})\]")
#: Separates a withdrawn text, still in the stream, from the replacement.
WITHDRAWN = "\n\n---\n\n"


class _OpenAIModel(BaseModel):
    """A pydantic model in OpenAI's format. Unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")


class ContentPart(_OpenAIModel):
    """A part of a message's content; only text parts are read."""

    type: str
    text: str = ""


class CompletionMessage(_OpenAIModel):
    """A message in the conversation sent with a request."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content or () if part.type in ("text", "input_text"))


class StreamOptions(_OpenAIModel):
    """Options for a streamed answer, for example whether a last event reports the usage."""

    include_usage: bool | None = None


class ResponseFormat(_OpenAIModel):
    """The requested response format; only text is supported."""

    type: Literal["text"] = "text"


class CompletionBody(_OpenAIModel):
    """A chat completion request."""

    model_config = ConfigDict(title="CreateChatCompletionRequest")

    model: str = Field(min_length=1, max_length=200, description="The name or id of a collection.")
    messages: list[CompletionMessage] = Field(
        min_length=1,
        max_length=MOST_MESSAGES,
        description="The conversation; its last message of the user is the question, those before it the history. "
        "Messages of the system are ignored: the rules of an answer are the collection's.",
    )
    stream: bool | None = Field(default=None, description="Send the answer as server-sent events. Default false.")
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    response_format: ResponseFormat | None = None
    sources: Literal["annotations", "text"] | None = Field(
        default=None,
        description="Ours. Where the sources are: `annotations` (default), or also as a list below the text, for "
        "clients that show no annotations.",
    )


class UrlCitation(BaseModel):
    """A citation in an answer: the cited page's address and title, and the citation's position in the text."""

    start_index: int = Field(description="The first character of the citation in the text.")
    end_index: int = Field(description="The first character after it.")
    title: str
    url: str = Field(description="Opens the page in a browser, for people who may read the document.")


class Annotation(BaseModel):
    """A citation in an answer, in OpenAI's format for annotations."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class AnswerMessage(BaseModel):
    """The assistant's message: the answer's text, with citations in `annotations`."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: str | None = None
    annotations: list[Annotation]


class Choice(BaseModel):
    """The answer in OpenAI's `choices`, a list which always has a single entry."""

    index: int = 0
    message: AnswerMessage
    finish_reason: Literal["stop", "length", "content_filter"]
    logprobs: None = None


class CompletionUsage(BaseModel):
    """Tokens used to write the answer; 0 without a model. The cost ledger has every call."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(BaseModel):
    """An answer. `/api/rag/chat` explains `outcome`, `state` and `notices`."""

    model_config = ConfigDict(title="CreateChatCompletionResponse")

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage
    outcome: str
    state: str
    notices: list[str]
    unsupported: list[str] | None = None


class Model(BaseModel):
    """A collection, described like a model in OpenAI's API."""

    id: str = Field(description="The collection's name.")
    object: Literal["model"] = "model"
    created: int
    owned_by: str = Field(description="The profile of the collection.")


class Models(BaseModel):
    """The collections which the caller may ask, described like models."""

    object: Literal["list"] = "list"
    data: list[Model]


class EmbeddingsBody(_OpenAIModel):
    """A request for embeddings."""

    model_config = ConfigDict(title="CreateEmbeddingRequest")

    model: str = Field(
        min_length=1, max_length=200, description="The name or id of a collection, whose embedder is used."
    )
    input: str | list[str] = Field(
        description=f"A text, or at most {MOST_TEXTS} of them; lists of tokens are not taken."
    )
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = Field(default=None, description="Has to be what the embedder has, if it is given.")


class EmbeddedText(BaseModel):
    """A text's vector, with length 1."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str = Field(description="Numbers, or their 32-bit floats in base64.")


class EmbeddingUsage(BaseModel):
    """Tokens counted by the provider; 0 for the built-in embedder."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingList(BaseModel):
    """The embeddings, in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[EmbeddedText]
    model: str
    usage: EmbeddingUsage


@router.get("/models", summary="Collections, as models", dependencies=[needs(ANYBODY)])
def list_models(caller: Caller) -> Models:
    """List the collections you may ask, the default first."""
    parts = services()
    default = parts.documents.choose(caller, None)
    collections = sorted(
        parts.documents.collections(caller), key=lambda item: (default is None or item.id != default.id, item.name)
    )
    return Models(data=[_model(collection) for collection in collections])


@router.get("/models/{model:path}", summary="One collection, as a model", dependencies=[needs(ANYBODY)])
def retrieve_model(model: str, caller: Caller) -> Model:
    """Return a collection, described like a model in OpenAI's API."""
    return _model(_collection(services(), caller, model))


@router.post(
    "/chat/completions",
    summary="Answer a question, as OpenAI's API does",
    dependencies=[needs("chat")],
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **errors.described(404, 502)},
    response_model=ChatCompletion,
    response_model_exclude_none=True,
)
async def create_chat_completion(request: Request, caller: Caller, body: CompletionBody) -> ChatCompletion | Response:
    """Answer the last question in a conversation from a collection. With `stream`, the answer is sent while it is
    written.

    Closing the connection stops the answer.
    """
    parts = services()
    live = await to_thread.run_sync(_ask, parts, caller, body, accepted_languages(request))
    formatter = _AnswerFormatter(live, body, base=base_of(request.scope, parts.settings))
    if body.stream:
        return AnswerStream(live, _chunks(formatter))
    await until_done(live, request)
    if not live.text:
        raise failure_of(live)
    return formatter.completion()


@router.post(
    "/embeddings",
    summary="Vectors of texts, as OpenAI's API has them",
    dependencies=[needs("search")],
    responses=errors.described(404, 502),
)
def create_embedding(caller: Caller, body: EmbeddingsBody) -> EmbeddingList:
    """Embed texts with a collection's embedder, the same way as documents."""
    parts = services()
    collection = _collection(parts, caller, body.model)
    texts = [body.input] if isinstance(body.input, str) else body.input
    if not 1 <= len(texts) <= MOST_TEXTS:
        raise InvalidInput(f"Send 1 to {MOST_TEXTS} texts in a request; this one has {len(texts)}.")
    embedder = parts.providers.embedder_for(collection.embedding_model)
    if body.dimensions not in (None, embedder.dimensions):
        raise InvalidInput(f"{embedder.id} makes vectors of {embedder.dimensions} dimensions, and no others.")
    parts.limits.count_question(caller)
    embeddings = parts.searches.embed(
        Question(text=texts[0], identity=caller, collection=collection), texts, embedder=embedder
    )
    tokens = sum(usage.input_tokens for usage in embeddings.usages)
    return EmbeddingList(
        data=[
            EmbeddedText(index=index, embedding=_encode(row, body.encoding_format))
            for index, row in enumerate(embeddings.vectors)
        ],
        model=embedder.id,
        usage=EmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


class _AnswerFormatter:
    def __init__(self, live: LiveAnswer, body: CompletionBody, *, base: str) -> None:
        self.live = live
        self._body = body
        self._base = base.rstrip("/")
        self._head: dict[str, Any] = {
            "id": f"chatcmpl-{live.message_id}",
            "created": int(time.time()),
            "model": body.model,
        }

    def completion(self) -> ChatCompletion:
        text = self.live.text
        message = AnswerMessage(content=text + self.source_list(), annotations=list(self.annotations(text)))
        return ChatCompletion(
            **self._head,
            choices=[Choice(message=message, finish_reason=self.finish_reason)],
            usage=self.usage,
            **ending(self.live),
        )

    def chunk(self, delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> str:
        """Format a stream event with new text, or with the finish reason."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return self._event(choices=[choice], **more)

    def usage_chunk(self) -> str:
        """Format the event with the usage; "" if not requested."""
        options = self._body.stream_options
        return self._event(choices=[], usage=self.usage.model_dump()) if options and options.include_usage else ""

    def failure(self) -> str:
        """Format the event for an answer without text. Clients raise an error for this event."""
        return f"data: {json.dumps({'error': errors.fields_of(failure_of(self.live))}, ensure_ascii=False)}\n\n"

    def annotations(self, text: str) -> Iterator[Annotation]:
        """Yield each citation with its position in the text."""
        by_number = {citation.number: citation for citation in self.live.citations}
        if self.live.kind == "nearest":
            return
        for match in NUMBER.finditer(text):
            citation = by_number.get(int(match[1]))
            if citation is not None:
                where = UrlCitation(
                    start_index=match.start(), end_index=match.end(), title=_title(citation), url=self._url(citation)
                )
                yield Annotation(url_citation=where)

    def source_list(self) -> str:
        """Return the sources in a Markdown list; "" if there are none or the client does not want them."""
        if self._body.sources != "text" or self.live.kind == "nearest" or not self.live.citations:
            return ""
        lines = (f"- [{item.number}] [{_escape(_title(item))}]({self._url(item)})" for item in self.live.citations)
        return "\n\n" + "\n".join(lines)

    @property
    def finish_reason(self) -> Literal["stop", "length", "content_filter"]:
        if self.live.outcome is Outcome.REFUSED:
            return "content_filter"
        # The only `finish_reason` for an incomplete answer.
        return "stop" if self.live.state is MessageState.COMPLETE else "length"

    @property
    def usage(self) -> CompletionUsage:
        details = self.live.context.rag_details.openai if self.live.context else None
        input_tokens, output_tokens = (details.input_tokens, details.output_tokens) if details else (0, 0)
        return CompletionUsage(
            prompt_tokens=input_tokens, completion_tokens=output_tokens, total_tokens=input_tokens + output_tokens
        )

    def _url(self, citation: Citation) -> str:
        return self._base + page_path(citation.document_id, citation.first_page)

    def _event(self, **content: Any) -> str:
        event = {**self._head, "object": "chat.completion.chunk", **content}
        return f"data: {json.dumps(event, ensure_ascii=False)}\n\n"


async def _chunks(formatter: _AnswerFormatter) -> AsyncIterator[str]:
    """Yield the stream's events: role, pieces with text, sources, finish reason, `[DONE]`."""
    live = formatter.live
    changes = Changes(live)
    sent_length, restarts = 0, 0
    yield formatter.chunk({"role": "assistant", "content": ""})
    with live.heard_by(changes.note):
        while True:
            is_done, text = live.is_done, live.text
            if live.restarts > restarts:
                if sent_length:
                    yield formatter.chunk({"content": WITHDRAWN})
                sent_length, restarts, text = 0, live.restarts, live.text
            if len(text) > sent_length:
                yield formatter.chunk({"content": text[sent_length:]})
                sent_length = len(text)
                await changes.wait(PACE_SECONDS)
                continue
            if is_done:
                break
            if not await changes.wait(HEARTBEAT_SECONDS):
                yield HEARTBEAT
    if not live.text:
        yield formatter.failure()
        return
    if sources := formatter.source_list():
        yield formatter.chunk({"content": sources})
    if annotations := [item.model_dump() for item in formatter.annotations(live.text)]:
        yield formatter.chunk({"annotations": annotations})
    yield formatter.chunk({}, formatter.finish_reason, **ending(live))
    yield formatter.usage_chunk()
    yield "data: [DONE]\n\n"


def _ask(parts: Services, caller: Identity, body: CompletionBody, languages: Sequence[str]) -> LiveAnswer:
    messages = [message for message in body.messages if message.role in ("user", "assistant") and message.text.strip()]
    if not messages or messages[-1].role != "user":
        raise QuestionEmpty("The last message has to be a question of the user.")
    history = [
        ChatMessage(role="user" if message.role == "user" else "assistant", content=NUMBER.sub("", message.text))
        for message in messages[:-1]
    ]
    with parts.limits.question(caller):
        question = Question(
            text=messages[-1].text,
            identity=caller,
            collection=_collection(parts, caller, body.model),
            history=history,
            reader_languages=languages,
        )
        return parts.answers.ask(question, options=Options(follow_ups=0))


def _collection(parts: Services, caller: Identity, model: str) -> Collection:
    try:
        return choose_collection(parts, caller, model)
    except NotFound:
        raise NotFound(
            f"The model {model!r} does not exist: there is no such collection. GET /v1/models lists them."
        ) from None


def _model(collection: Collection) -> Model:
    return Model(id=collection.name, created=int(collection.created_at.timestamp()), owned_by=collection.profile)


def _title(citation: Citation) -> str:
    return title_with_place(citation)


def _escape(title: str) -> str:
    return re.sub(r"([\\\[\]()<>*_`#!|~])", r"\\\1", title)


def _encode(row: Any, encoding: str | None) -> list[float] | str:
    if encoding == "base64":
        return base64.b64encode(np.asarray(row, dtype="<f4").tobytes()).decode()
    return [float(value) for value in row]
