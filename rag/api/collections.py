"""Routes for collections: list, create, configure and delete them, upload a file, and sync with a source.

Sync and webhook, required by source 000 in docs/sources.md, only queue the work, and respond immediately.
"""

from __future__ import annotations

import hmac
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Form, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, Json

from rag.access.problems import problems
from rag.api.bodies import FileField
from rag.api.documents import DocumentShape
from rag.api.questions import choose_collection
from rag.api.routing import PUBLIC, ApiBody, ApiModel, ApiRoute, Caller, needs
from rag.errors import InvalidInput, NotAllowed, SettingsError, SignedOut
from rag.ingestion.sources.runs import SCHEDULE_MINUTES, SyncRun
from rag.library.collections import LANGUAGES
from rag.profiles import DEFAULT, PROFILES
from rag.services import Services, services
from rag.settings import Settings
from rag.types import ChunkingMethod, Collection, CollectionContents, Identity, PdfType, UploadOptions

router = APIRouter(route_class=ApiRoute, tags=["Collections"])
boards = APIRouter(route_class=ApiRoute, tags=["Notice board"])
uploads = APIRouter(route_class=ApiRoute, tags=["Documents"])

READ, WRITE, ADMIN = needs("documents:read"), needs("documents:write"), needs("admin")
#: A record is a post with its HTML; embedded pictures make it large.
MAXIMUM_EVENT_BYTES = 4 * 1024 * 1024
MOST_RUNS = 20
DEFAULT_BOARD = "Id or name. Default: the oldest notice board, the sample after all others."


class CollectionShape(ApiModel):
    """A collection: documents which share a profile and an embedding model."""

    id: UUID
    name: str
    profile: str
    language: str
    embedding_model: str
    documents: int
    ready: int = Field(description="Documents that can be searched.")
    pages: int
    chunks: int
    groups: list[str] = Field(description="Groups whose people may read it, beside administrators; empty: everybody.")
    settings: dict[str, Any] = Field(description="Settings that differ from the profile, such as top_k.")
    created_at: datetime


class Collections(ApiModel):
    collections: list[CollectionShape]
    total: int


class NewCollection(ApiBody):
    """A collection to create."""

    name: str = Field(max_length=200, description="At most 80 characters; no other collection has it.")
    profile: str = Field(default=DEFAULT.name, max_length=50, description=f"One of {', '.join(PROFILES)}.")
    language: str = Field(
        default="",
        max_length=10,
        description=f"One of {', '.join(LANGUAGES)}. Default: the one that the profile answers in, else en.",
    )
    embedding_model: str = Field(
        default="",
        max_length=200,
        description="provider/model@dimensions. Default: the profile's where its provider is configured, else the "
        "built-in one. No setting changes it later.",
    )
    as_source: bool = Field(
        default=False,
        description="With the settings by which it does exactly as the profile's document says, where the profile was "
        "found to do better.",
    )


class CollectionChanges(ApiBody):
    """Changes to a collection. Missing fields stay unchanged."""

    name: str | None = Field(default=None, max_length=200)
    language: str | None = Field(default=None, max_length=10)
    groups: list[Annotated[str, Field(max_length=200)]] | None = Field(default=None, max_length=200)


class SettingChanges(ApiBody):
    """Changes to a collection's settings. Other settings stay unchanged."""

    change: dict[Annotated[str, Field(max_length=100)], Any] = Field(
        default_factory=dict,
        max_length=200,
        description="Values by the name of the setting, as the page Collections has them.",
        examples=[{"top_k": 20, "reranking": False}],
    )
    reset: list[Annotated[str, Field(max_length=100)]] = Field(
        default_factory=list, max_length=200, description="Settings that get the value of the profile again."
    )


class Deleting(ApiModel):
    """How to delete a collection: into the bin or, with `forGood`, permanently."""

    for_good: bool = Field(False, description="At once, also out of the bin. It cannot be brought back.")
    name: str = Field("", max_length=200, description="The name of the collection. `forGood` needs it.")


class Restored(ApiModel):
    """A collection restored from the bin."""

    id: UUID
    problems: list[str] = Field(description="Why some of its documents stay in the bin; empty where all came back.")


class UploadForm(ApiBody):
    """A file to upload, and how to read it."""

    file: FileField
    password: str = Field(default="", max_length=1000, description="Opens a protected PDF; used once, never stored.")
    chunking_method: ChunkingMethod | None = Field(default=None, description="Default: the collection's.")
    generate_metadata: bool = Field(default=True, description="Have a model sum it up and tag it.")
    pdf_type: PdfType | None = Field(
        default=None,
        description="scanned recognises the text of every page, digital of none, auto of pages without text. "
        "Default: the collection's.",
    )
    metadata: Json[dict[str, str]] = Field(
        default_factory=dict,
        examples=['{"department": "HR"}'],
        description="What searches may be narrowed by, such as the department, in the fields that the collection has "
        "for that: an object of texts as JSON.",
    )


class SyncRunShape(ApiModel):
    """A collection's sync with a source: status, counts and cost."""

    id: UUID
    kind: str = Field(description="The kind of source: posts, samples, …")
    status: Literal["waiting", "running", "done", "failed"]
    items_done: int
    items_total: int
    added: int
    updated: int
    unchanged: int
    removed: int
    failed: int
    message: str = Field(description="Why it failed, or what could not be read.")
    asked_by: str = Field(description="Who asked for it; schedule where its schedule did.")
    cost: str | None = Field(description="US dollars so far; null where nothing was paid or a price is not known.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class SourceShape(ApiModel):
    """A collection's source, and how often to sync automatically."""

    kind: str
    settings: dict[str, Any]
    every_minutes: int | None = Field(description="Null where it is compared only on request.")
    next_sync_at: datetime | None


class SyncAnswer(ApiModel):
    """A collection's syncs, latest first, and the sources from which it is synced."""

    collection: str
    runs: list[SyncRunShape]
    sources: list[SourceShape]


class ScheduleBody(ApiBody):
    """The interval at which to sync a collection with a source or all sources."""

    collection: str | None = Field(default=None, max_length=200, description=DEFAULT_BOARD)
    kind: str | None = Field(
        default=None, max_length=50, description="The kind of source, such as posts or folder. Default: all of them."
    )
    every_minutes: int | None = Field(
        description=f"From {SCHEDULE_MINUTES[0]} to {SCHEDULE_MINUTES[1]}; null: only on request.", examples=[360]
    )


class SyncBody(ApiBody):
    """The collection to sync."""

    collection: str | None = Field(default=None, max_length=200, description=DEFAULT_BOARD)


class Which(ApiBody):
    """The collection for which to list the syncs."""

    collection: str | None = Field(default=None, max_length=200, description=DEFAULT_BOARD)


class WebhookBody(BaseModel):
    """A change event from Supabase's database webhooks."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["INSERT", "UPDATE", "DELETE"]
    table: str = Field(max_length=200)
    record: dict[str, Any] | None = None
    old_record: dict[str, Any] | None = None


class WebhookAnswer(ApiModel):
    """The response to an event: whether the event was received, and whether work was queued."""

    received: bool
    queued: bool = Field(description="False where it says nothing new: it came before, or a later one did.")


@router.get("/api/collections", summary="List collections", dependencies=[READ])
def list_collections(caller: Caller) -> Collections:
    """List the collections you may read, oldest first."""
    library = services().documents
    contents = library.contents(caller)
    shapes = [_collection(c, contents.get(c.id)) for c in library.collections(caller)]
    return Collections(collections=shapes, total=len(shapes))


@router.get("/api/collections/{collection_id}", summary="One collection", dependencies=[READ])
def get_collection(caller: Caller, collection_id: UUID) -> CollectionShape:
    """Return a collection and its size."""
    library = services().documents
    collection = library.collection(caller, collection_id)
    return _collection(collection, library.contents(caller).get(collection.id))


@router.post("/api/collections", summary="Make a collection", dependencies=[ADMIN], status_code=201)
def create_collection(caller: Caller, body: NewCollection) -> CollectionShape:
    """Create a collection. Its profile and embedding model apply to all its documents."""
    library = services().documents
    try:
        collection = library.create_collection(
            caller,
            body.name,
            body.profile,
            embedding_model=body.embedding_model,
            language=body.language,
            is_as_source=body.as_source,
        )
    except SettingsError as exc:  # the embedding model is not there
        raise InvalidInput(exc.message) from exc
    return _collection(collection, None)


@router.patch("/api/collections/{collection_id}", summary="Change a collection", dependencies=[ADMIN])
def change_collection(caller: Caller, collection_id: UUID, body: CollectionChanges) -> CollectionShape:
    """Change a collection's name, language, or groups with read access."""
    library = services().documents
    changed = library.change_collection(
        caller, collection_id, name=body.name, language=body.language, groups=body.groups
    )
    return _collection(changed, library.contents(caller).get(collection_id))


@router.patch(
    "/api/collections/{collection_id}/settings", summary="Change a collection's settings", dependencies=[ADMIN]
)
def change_settings(caller: Caller, collection_id: UUID, body: SettingChanges) -> CollectionShape:
    """Change a collection's settings, or reset them to its profile's. If any value is invalid, nothing changes."""
    library = services().documents
    changed = library.override_collection(caller, collection_id, body.change, resets=body.reset)
    return _collection(changed, library.contents(caller).get(collection_id))


@router.delete(
    "/api/collections/{collection_id}",
    summary="Delete a collection",
    dependencies=[ADMIN],
    status_code=204,
    response_class=Response,
)
def delete_collection(caller: Caller, collection_id: UUID, how: Annotated[Deleting, Query()]) -> None:
    """Move a collection to the bin for 30 days, hidden from everyone, with its documents and conversations.

    With `forGood` the collection is deleted permanently. In both cases, questions and costs stay in the analytics.
    """
    library = services().documents
    if how.for_good:
        library.delete_collection(caller, collection_id, confirmed_name=how.name)
    else:
        library.bin.put_collection(caller, collection_id)


@router.post("/api/collections/{collection_id}/restore", summary="Take a collection back", dependencies=[ADMIN])
def restore_collection(caller: Caller, collection_id: UUID) -> Restored:
    """Restore a collection from the bin, including the documents deleted with the collection."""
    problems = services().documents.bin.take_collection_back(caller, collection_id)
    return Restored(id=collection_id, problems=problems)


@uploads.post(
    "/api/collections/{collection_id}/documents",
    summary="Add a document",
    dependencies=[WRITE],
    status_code=201,
    responses=problems(409),
)
def add_document(
    caller: Caller, collection_id: UUID, form: Annotated[UploadForm, Form(media_type="multipart/form-data")]
) -> DocumentShape:
    """Upload a file. It is read immediately, then waits with its estimated cost until you confirm or discard it.

    A changed file under a known name becomes the document's next version; an identical file returns 409 with the id of
    the existing document.
    """
    library = services().documents
    collection = library.collection(caller, collection_id)
    name = form.file.filename or ""
    if not name.strip():
        raise InvalidInput("The file needs a name.")
    added = library.upload(
        caller,
        collection,
        name,
        form.file.file.read(),
        UploadOptions(
            password=form.password or None,
            chunking_method=form.chunking_method,
            generate_metadata=form.generate_metadata,
            pdf_type=form.pdf_type,
            metadata=form.metadata,
        ),
    )
    return DocumentShape.of(added)


@boards.post(
    "/api/rag/sync",
    summary="Sync a collection with its source",
    dependencies=[needs("sync")],
    status_code=202,
    responses=problems(404),
)
def start_sync(caller: Caller, body: SyncBody) -> SyncAnswer:
    """Queue a sync: changes are read, embedded and published in the background. A second call has no effect."""
    parts = services()
    collection = _collection_to_sync(parts, caller, body.collection)
    return _sync_answer(parts, collection, parts.syncs.request(caller, collection))


@boards.get(
    "/api/rag/sync", summary="See how the last syncs went", dependencies=[needs("sync")], responses=problems(404)
)
def sync_runs(caller: Caller, query: Annotated[Which, Query()]) -> SyncAnswer:
    """List the latest syncs with their progress and cost."""
    parts = services()
    collection = _collection_to_sync(parts, caller, query.collection)
    return _sync_answer(parts, collection, parts.syncs.runs(caller, collection.id, limit=MOST_RUNS))


@boards.put(
    "/api/rag/sync/schedule",
    summary="Sync a collection on a schedule",
    dependencies=[ADMIN],
    responses=problems(404),
)
def set_schedule(caller: Caller, body: ScheduleBody) -> SyncAnswer:
    """Sync a collection at an interval in minutes; null stops the schedule. Returns sources and syncs."""
    parts = services()
    collection = _collection_to_sync(parts, caller, body.collection)
    parts.syncs.set_schedule(caller, collection, body.every_minutes, kind=body.kind)
    return _sync_answer(parts, collection, parts.syncs.runs(caller, collection.id, limit=MOST_RUNS))


@boards.post(
    "/api/rag/webhook",
    summary="Take an event of a table of posts",
    dependencies=[needs(PUBLIC)],
    responses=problems(401, 403, 404),
    max_body_size=MAXIMUM_EVENT_BYTES,
)
def webhook(request: Request, body: WebhookBody, query: Annotated[Which, Query()]) -> WebhookAnswer:
    """Queue an event. The request needs RAG_WEBHOOK_SECRET in `Authorization: Bearer` or `x-webhook-secret`.

    Events may come late, twice and out of order: only each post's newest event counts, by time of change.
    """
    parts = services()
    _require_secret(request, parts.settings)
    tenant_id = parts.settings.tenant
    collection = choose_collection(parts, tenant_id, query.collection) if query.collection else None
    is_new = parts.syncs.receive(tenant_id, body.model_dump(), collection=collection)
    return WebhookAnswer(received=True, queued=is_new)


def _collection(collection: Collection, contents: CollectionContents | None) -> CollectionShape:
    return CollectionShape(
        id=collection.id,
        name=collection.name,
        profile=collection.profile,
        language=collection.language,
        embedding_model=collection.embedding_model,
        documents=contents.documents if contents else 0,
        ready=contents.ready if contents else 0,
        pages=contents.pages if contents else 0,
        chunks=contents.chunks if contents else 0,
        groups=collection.groups,
        settings=collection.overrides,
        created_at=collection.created_at,
    )


def _collection_to_sync(parts: Services, identity: Identity, id_or_name: str | None) -> Collection:
    """Return the collection with this id or name. Raises `NotFound`.

    Without id and name, return the default collection for syncs.
    """
    return (None if id_or_name else parts.syncs.default_collection(identity)) or choose_collection(
        parts, identity, id_or_name
    )


def _sync_answer(parts: Services, collection: Collection, runs: list[SyncRun]) -> SyncAnswer:
    sources = [SourceShape.model_validate(s, from_attributes=True) for s in parts.syncs.sources(collection)]
    return SyncAnswer(collection=collection.name, runs=[_run(run) for run in runs], sources=sources)


def webhook_secret(settings: Settings) -> str:
    """Return the secret which webhooks must send: RAG_WEBHOOK_SECRET, else Supabase's service key."""
    return settings.webhook_secret or str(getattr(settings, "supabase_service_role_key", ""))


def _require_secret(request: Request, settings: Settings) -> None:
    expected = webhook_secret(settings)
    if not expected:
        raise NotAllowed("Events are not taken: RAG_WEBHOOK_SECRET is not set.")
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    sent_secret = request.headers.get("x-webhook-secret", "") or (token.strip() if kind.lower() == "bearer" else "")
    # Takes the same time wherever the first difference is.
    if not hmac.compare_digest(sent_secret.encode("utf-8", "replace"), expected.encode("utf-8", "replace")):
        raise SignedOut("The secret of this event is not right. Send RAG_WEBHOOK_SECRET with it.")


def _run(run: SyncRun) -> SyncRunShape:
    fields = {name: getattr(run, name) for name in SyncRunShape.model_fields if name != "cost"}
    return SyncRunShape(**fields, cost=None if run.cost is None or not run.is_priced else str(run.cost))
