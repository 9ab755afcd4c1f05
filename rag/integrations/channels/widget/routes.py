"""Routes for the widget: a script for other sites, the page in the frame, and answers.

The script adds a frame to the site's page. The page and the frame cannot read each other. Only a widget's sites may
show the frame and send questions. Visitors are not signed in, and no cookie is read or set. For each source, visitors
see title, place and the quoted sentence.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from anyio import to_thread
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from rag import language
from rag.access.guard import base_of
from rag.access.problems import invalid, problems, refusal
from rag.answering.jobs import LiveAnswer
from rag.answering.readers import notice_for
from rag.api.event_stream import HEARTBEAT, HEARTBEAT_SECONDS, PACE_SECONDS, AnswerStream, Changes, ending, remarks
from rag.api.form_pages import filled, page_of
from rag.api.questions import accepted_languages, choose_collection
from rag.api.routing import ApiBody, ApiModel, ApiRoute, Caller, needs
from rag.errors import BodyTooLarge, NotAllowed, NotFound, RagError
from rag.integrations.channels.widget.widgets import CLOSED, Widget, WidgetChange, WidgetValues, widgets_of
from rag.language import N_, _
from rag.profiles.profile import Options
from rag.retrieval.known_by import folder_shown
from rag.services import services
from rag.types import Citation, Question
from rag.ui.sources import place_of_source, sentence_of
from rag.ui.text import GrowingAnswer

#: The path for a widget's page and files.
WIDGET = "/widget"
STATIC = Path(__file__).parent / "static"
MAXIMUM_BYTES = 32 * 1024
#: Browsers keep the script for a short time, because our changes must reach pages we do not know.
SCRIPT_HEADERS = {"Cache-Control": "public, max-age=3600", "Vary": "Accept-Language"}
TITLE = N_("Ask a question")
Shape = TypeVar("Shape", bound=BaseModel)


router = APIRouter(route_class=ApiRoute, tags=["Widgets"])


class WidgetShape(ApiModel):
    """A widget, with which visitors on other websites ask a collection."""

    id: UUID
    name: str
    collection_id: UUID
    collection_name: str
    public_key: str
    script: str = Field(description="The tag that puts it into a page.")
    page: str = Field(description="Its own page, which opens without signing in where hasPage is true.")
    sites: list[str]
    is_active: bool
    has_page: bool
    title: str
    greeting: str
    requests_per_minute: int
    questions_per_day: int
    budget: str = Field(description="US dollars a month; once they are spent, answers are quoted without a model.")
    asked_today: int
    spent: str = Field(description="US dollars this month.")
    created_at: datetime


class WidgetList(ApiModel):
    widgets: list[WidgetShape]
    total: int


class NewWidget(ApiBody, WidgetValues):
    """A widget to create, off until someone turns the widget on."""

    collection: str = Field(max_length=200, description="Id or name; it has to be open to everybody in the company.")


class WidgetChanges(ApiBody, WidgetChange):
    """Changes to a widget. Missing fields stay unchanged."""


@router.get("/api/widgets", summary="List widgets", dependencies=[needs("admin")])
def list_widgets(request: Request, caller: Caller) -> WidgetList:
    """List the widgets, oldest first."""
    shapes = [_shape(request, widget) for widget in widgets_of(services().database).list(caller)]
    return WidgetList(widgets=shapes, total=len(shapes))


@router.post(
    "/api/widgets", summary="Make a widget", dependencies=[needs("admin")], status_code=201, responses=problems(404)
)
def add_widget(request: Request, caller: Caller, body: NewWidget) -> WidgetShape:
    """Create a widget for a collection, turned off. Other sites can ask after you turn the widget on."""
    collection = choose_collection(services(), caller, body.collection)
    return _shape(request, widgets_of(services().database).add(caller, collection, body.name, body.sites))


@router.patch(
    "/api/widgets/{widget_id}", summary="Change a widget", dependencies=[needs("admin")], responses=problems(404)
)
def change_widget(request: Request, widget_id: UUID, caller: Caller, body: WidgetChanges) -> WidgetShape:
    """Turn a widget on or off, or change the sites, texts and limits."""
    return _shape(request, widgets_of(services().database).change(caller, widget_id, body))


@router.delete(
    "/api/widgets/{widget_id}",
    summary="Remove a widget",
    dependencies=[needs("admin")],
    status_code=204,
    responses=problems(404),
)
def remove_widget(widget_id: UUID, caller: Caller) -> Response:
    """Remove a widget. Visitors' questions stay in the log."""
    widgets_of(services().database).remove(caller, widget_id)
    return Response(status_code=204)


def script_tag(base: str, widget: Widget) -> str:
    """Return the HTML tag which shows a widget."""
    return f'<script src="{base}/widget.js" data-key="{widget.public_key}" async></script>'


def _shape(request: Request, widget: Widget) -> WidgetShape:
    base = base_of(request.scope, services().settings)
    return WidgetShape(
        **{
            name: getattr(widget, name)
            for name in WidgetShape.model_fields
            if name not in ("script", "page", "budget", "spent")
        },
        script=script_tag(base, widget),
        page=f"{base}{WIDGET}?key={widget.public_key}",
        budget=f"{widget.budget.normalize():f}",
        spent=f"{widget.spent.normalize():f}",
    )


class QuestionBody(BaseModel):
    """A question from a visitor to a website with a widget."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[str, Field(min_length=1, max_length=4000)]
    conversation: UUID | None = None


class RatingBody(BaseModel):
    """A visitor's rating for an answer."""

    model_config = ConfigDict(extra="forbid")

    message: UUID
    rating: Literal[0, 1]


async def script(request: Request) -> Response:
    """Return the widget's script, with texts in the visitor's language."""
    words = {"open": _(TITLE), "close": _("Close")}
    text = (STATIC / "widget.js").read_text("utf-8").replace("__WORDS__", json.dumps(words))
    return Response(text, media_type="text/javascript", headers=SCRIPT_HEADERS)


async def asset(request: Request) -> Response:
    """Return a script or style for the page in the frame."""
    name = request.url.path.rpartition("/")[2]
    kind = "text/javascript" if name.endswith(".js") else "text/css"
    return Response((STATIC / f"widget_{name}").read_text("utf-8"), media_type=kind, headers=SCRIPT_HEADERS)


async def page(request: Request) -> Response:
    """Return the page in the frame, which is also the widget's public page."""
    try:
        widget = await to_thread.run_sync(widgets_of(services().database).find, request.query_params.get("key", ""))
        # The browser tells why a page is loaded; the frame's policy keeps unlisted sites out.
        if not widget.has_page and request.headers.get("sec-fetch-dest", "iframe") != "iframe":
            raise NotFound(CLOSED)
    except RagError as exc:
        html = page_of("closed", title=_(TITLE), message=_(exc.message))
        return HTMLResponse(html, exc.status, {"Cache-Control": "no-store"})
    theme = request.query_params.get("theme", "")
    words = {
        name: _(sentence)
        for name, sentence in (
            ("you", N_("You")),
            ("assistant", N_("Assistant")),
            ("sources", N_("Sources")),
            ("source", N_("Source {number}")),
            ("writing", N_("The answer is being written")),
            ("failed", N_("The answer could not be loaded. Check the connection and ask again.")),
            ("helpful", N_("Helpful")),
            ("unhelpful", N_("Not helpful")),
            ("thanks", N_("Thank you.")),
        )
    }
    title = widget.title or widget.name
    html = filled(
        "widget",
        title=title,
        greeting=widget.greeting or _("Ask a question about {name}.", name=widget.collection_name),
        key=widget.public_key,
        theme=theme if theme in ("light", "dark") else "",
        language=language.current(),
        direction=language.direction(),
        words=json.dumps(words),
    )
    headers = {"Cache-Control": "no-store", "Content-Security-Policy": frame_policy(widget)}
    return HTMLResponse(html, 200, headers)


def frame_policy(widget: Widget) -> str:
    """Return the Content-Security-Policy for the widget's page: allowed sources for content, and sites which may show
    the page.
    """
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        f"base-uri 'none'; form-action 'none'; frame-ancestors {' '.join(widget.sites) or chr(39) + 'none' + chr(39)}"
    )


async def ask(request: Request) -> Response:
    """Stream the answer to a visitor. Closing the connection stops the answer."""
    allowed: dict[str, str] = {}
    try:
        widget, allowed = await _caller(request)
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=allowed)
        body = await _body(request, QuestionBody)
        address = request.client.host if request.client else ""
        languages = accepted_languages(request)
        live = await to_thread.run_sync(_begin, widget, body, address, languages)
    except RagError as exc:
        return refusal(request.scope, exc, headers=allowed)
    return AnswerStream(live, _events(live), allowed)


async def rate(request: Request) -> Response:
    """Store a visitor's rating of an answer."""
    allowed: dict[str, str] = {}
    try:
        widget, allowed = await _caller(request)
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=allowed)
        body = await _body(request, RatingBody)
        await to_thread.run_sync(services().feedback.rate, widget.identity, body.message, body.rating)
    except RagError as exc:
        return refusal(request.scope, exc, headers=allowed)
    return Response(status_code=204, headers=allowed)


def _begin(widget: Widget, body: QuestionBody, address: str, languages: list[str]) -> LiveAnswer:
    parts = services()
    widgets_of(parts.database).count_question(widget, address)
    collection = parts.documents.choose(widget.identity, str(widget.collection_id))
    if collection is None:  # by now restricted to some groups
        raise NotFound(CLOSED)
    return parts.answers.ask(
        Question(text=body.question, identity=widget.identity, collection=collection, reader_languages=languages),
        conversation_id=body.conversation,
        options=Options(follow_ups=0),
    )


async def _caller(request: Request) -> tuple[Widget, dict[str, str]]:
    """Return the widget for the request's key, and CORS headers for the requesting site.

    Raises `NotFound` for an unknown key, and `NotAllowed` for a site missing in the widget's list.
    """
    widget = await to_thread.run_sync(widgets_of(services().database).find, request.query_params.get("key", ""))
    origin = request.headers.get("origin", "").lower()
    own_origins = {base_of(request.scope, services().settings).lower(), str(request.base_url).rstrip("/").lower()}
    if not origin or origin in own_origins:
        return widget, {"Vary": "Origin"}
    if origin not in widget.sites:
        raise NotAllowed("This site may not ask here. An administrator can add it on the page Other programs.")
    return widget, {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": "POST",
        "Access-Control-Allow-Headers": "Content-Type",
        "Access-Control-Max-Age": "600",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Vary": "Origin",
    }


async def _body(request: Request, shape: type[Shape]) -> Shape:
    """Return a small JSON body, validated against a model. Raises `BodyTooLarge` or `RequestInvalid`."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MAXIMUM_BYTES:
            raise BodyTooLarge(f"A question has at most {MAXIMUM_BYTES // 1024} KB.")
    try:
        return shape.model_validate_json(content)
    except ValidationError as exc:
        raise invalid([dict(item) for item in exc.errors()]) from None


async def _events(live: LiveAnswer) -> AsyncIterator[str]:
    changes, answer = Changes(live), GrowingAnswer()
    restarts = blocks = characters = 0
    yield _event("begun", conversation=str(live.conversation_id), message=str(live.message_id))
    with live.heard_by(changes.note):
        while True:
            is_done, text, again = live.is_done, live.text, live.restarts > restarts
            if again:
                restarts, text, answer, blocks, characters = live.restarts, live.text, GrowingAnswer(), 0, 0
            if len(text) > characters or again:
                characters = len(text)
                answer.grow(text)
                finished = "".join(answer.finished[blocks:])
                blocks = len(answer.finished)
                yield _event("text", finished=finished, growing=answer.growing, again=again)
                await changes.wait(PACE_SECONDS)
                continue
            if is_done:
                break
            if not await changes.wait(HEARTBEAT_SECONDS):
                yield HEARTBEAT
    sources = [] if live.kind == "nearest" else [_source(citation) for citation in live.citations]
    yield _event(
        "done",
        sources=sources,
        notice=notice_for(live.notice, is_for_operators=False),
        remarks=remarks(live),
        **ending(live, is_for_operators=False),
    )


def _source(citation: Citation) -> dict[str, Any]:
    return {
        "number": citation.number,
        "title": citation.title or citation.file_name,
        "place": " · ".join(filter(None, (folder_shown(citation.title, citation.folder), place_of_source(citation)))),
        "sentence": sentence_of(citation),
    }


def _event(kind: str, **content: Any) -> str:
    return f"data: {json.dumps({'type': kind, **content}, ensure_ascii=False)}\n\n"
