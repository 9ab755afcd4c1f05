"""`/api/rag/sync` and `/api/rag/webhook`: what keeps collections equal to their sources, as programs reach it (000).

Both only leave word: the work is the queue's, and the answer comes at once.
"""

from __future__ import annotations

import hmac
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from rag.api.endpoint import PUBLIC, ApiBody, ApiModel, Call, endpoint
from rag.api.parts import running
from rag.api.questions import chosen_collection
from rag.errors import NotAllowed, SignedOut
from rag.ingestion.sources.runs import SyncRun
from rag.services import Services
from rag.settings import Settings
from rag.types import Collection, Identity

#: A record is a post with its HTML; pictures within it make it large.
MAXIMUM_EVENT_BYTES = 4 * 1024 * 1024
MOST_RUNS = 20
BOARDS = ("Notice board",)
DEFAULT_BOARD = "Id or name. Default: the oldest notice board, the sample after all others."


class SyncRunShape(ApiModel):
    """One comparison of a collection with its source."""

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
    cost: str | None = Field(description="US dollars so far; null where nothing was paid or a price is not known.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class SyncAnswer(ApiModel):
    """The runs of a collection, the latest first."""

    collection: str
    runs: list[SyncRunShape]


class SyncBody(ApiBody):
    """Which collection to sync."""

    collection: str | None = Field(default=None, max_length=200, description=DEFAULT_BOARD)


class Which(ApiBody):
    """Which collection."""

    collection: str | None = Field(default=None, max_length=200, description=DEFAULT_BOARD)


class WebhookBody(BaseModel):
    """An event of Supabase's database webhooks."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["INSERT", "UPDATE", "DELETE"]
    table: str = Field(max_length=200)
    record: dict[str, Any] | None = None
    old_record: dict[str, Any] | None = None


class WebhookAnswer(ApiModel):
    """What became of an event."""

    received: bool
    queued: bool = Field(description="False where it says nothing new: it came before, or a later one did.")


@endpoint(
    "/api/rag/sync",
    method="POST",
    scope="sync",
    summary="Sync a collection with its source",
    body=SyncBody,
    answer=SyncAnswer,
    status=202,
    errors=(404,),
    tags=BOARDS,
)
def start_sync(call: Call[SyncBody]) -> SyncAnswer:
    """Ask for a comparison; what changed is read, embedded and published in the background. Asked twice, done once."""
    parts = running()
    collection = _to_sync(parts, call.identity, call.body.collection)
    runs = parts.syncs.request(call.identity, collection)
    return SyncAnswer(collection=collection.name, runs=[_shape(run) for run in runs])


@endpoint(
    "/api/rag/sync",
    scope="sync",
    summary="See how the last syncs went",
    parameters=Which,
    answer=SyncAnswer,
    errors=(404,),
    tags=BOARDS,
)
def sync_runs(call: Call[None]) -> SyncAnswer:
    """The last runs with their progress and what they cost."""
    parts = running()
    collection = _to_sync(parts, call.identity, call.parameters.collection)
    runs = parts.syncs.runs(call.identity, collection.id, limit=MOST_RUNS)
    return SyncAnswer(collection=collection.name, runs=[_shape(run) for run in runs])


@endpoint(
    "/api/rag/webhook",
    method="POST",
    scope=PUBLIC,
    summary="Take an event of a table of posts",
    body=WebhookBody,
    parameters=Which,
    answer=WebhookAnswer,
    errors=(401, 403, 404),
    maximum_bytes=MAXIMUM_EVENT_BYTES,
    tags=BOARDS,
)
def webhook(call: Call[WebhookBody]) -> WebhookAnswer:
    """Keep an event for the queue. It carries RAG_WEBHOOK_SECRET as `Authorization: Bearer` or `x-webhook-secret`.

    Events may come late, twice and out of order: the newest of each post counts, by the time of its change.
    """
    parts = running()
    _require_secret(call.request, parts.settings)
    tenant_id, wanted = parts.settings.tenant, call.parameters.collection
    collection = chosen_collection(parts, tenant_id, wanted) if wanted else None
    is_new = parts.syncs.receive(tenant_id, call.body.model_dump(), collection=collection)
    return WebhookAnswer(received=True, queued=is_new)


def _to_sync(parts: Services, identity: Identity, wanted: str | None) -> Collection:
    """The collection of that id or name, else a notice board. Raises `NotFound`."""
    return (None if wanted else parts.syncs.default_collection(identity)) or chosen_collection(parts, identity, wanted)


def webhook_secret(settings: Settings) -> str:
    """What events have to carry: RAG_WEBHOOK_SECRET, else the service key of Supabase, as source 000 has it."""
    return settings.webhook_secret or str(getattr(settings, "supabase_service_role_key", ""))


def _require_secret(request: Request, settings: Settings) -> None:
    expected = webhook_secret(settings)
    if not expected:
        raise NotAllowed("Events are not taken: RAG_WEBHOOK_SECRET is not set.")
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    given = request.headers.get("x-webhook-secret", "") or (token.strip() if kind.lower() == "bearer" else "")
    # In the same time, wherever the first difference is.
    if not hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode("utf-8", "replace")):
        raise SignedOut("The secret of this event is not right. Send RAG_WEBHOOK_SECRET with it.")


def _shape(run: SyncRun) -> SyncRunShape:
    known = {name: getattr(run, name) for name in SyncRunShape.model_fields if name != "cost"}
    return SyncRunShape(**known, cost=None if run.cost is None or not run.is_priced else str(run.cost))


ROUTES = [start_sync, sync_runs, webhook]
