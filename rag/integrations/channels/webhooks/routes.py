"""Routes for `/api/webhooks`: addresses and deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import Field

from rag.access.problems import problems
from rag.api.routing import ApiBody, ApiModel, ApiRoute, Caller, needs
from rag.integrations.channels.webhooks.webhooks import MOST_LISTED, WebhookValues, webhooks_of
from rag.records.events import EVENTS
from rag.services import services

router = APIRouter(route_class=ApiRoute, tags=["Webhooks"])

KINDS = ", ".join(EVENTS)


class WebhookShape(ApiModel):
    """An address which receives events, with counts for the last seven days."""

    id: UUID
    name: str
    address: str
    events: list[str] = Field(description=f"Of {KINDS}; empty: every kind.")
    is_active: bool = Field(description="Off once the address answers that it is gone (410).")
    created_at: datetime
    delivered: int
    waiting: int
    failed: int
    last_delivered_at: datetime | None


class WebhookList(ApiModel):
    webhooks: list[WebhookShape]
    total: int


class NewWebhook(ApiBody, WebhookValues):
    """A webhook to add: an address, a name, and the kinds of events to send."""


class MadeWebhook(WebhookShape):
    """The webhook which was added, with the secret for checking signatures."""

    secret: str = Field(description="Checks signatures (Standard Webhooks). It is not shown again.")


class WebhookChanges(ApiBody):
    """Changes to a webhook: whether events are sent to the address."""

    is_active: bool


class DeliveryShape(ApiModel):
    """The delivery of an event to an address: attempts, status, and the last response."""

    id: UUID
    webhook_id: UUID
    kind: str
    event_id: UUID = Field(description="Sent as `webhook-id: msg_…`, the same at each attempt.")
    data: dict[str, Any]
    status: Literal["waiting", "delivered", "failed"]
    attempts: int
    next_at: datetime | None = Field(description="When it is sent again.")
    answer_status: int | None
    answer: str
    created_at: datetime
    finished_at: datetime | None


class Deliveries(ApiModel):
    deliveries: list[DeliveryShape]
    total: int


@router.get("/api/webhooks", summary="List webhooks", dependencies=[needs("admin")])
def list_webhooks(caller: Caller) -> WebhookList:
    """List the addresses which receive events, oldest first."""
    webhooks = webhooks_of(services()).list(caller)
    shapes = [WebhookShape.model_validate(webhook, from_attributes=True) for webhook in webhooks]
    return WebhookList(webhooks=shapes, total=len(shapes))


@router.post("/api/webhooks", summary="Add a webhook", dependencies=[needs("admin")], status_code=201)
def add_webhook(caller: Caller, body: NewWebhook) -> MadeWebhook:
    """Add an address which receives events.

    The response has the secret for its signatures, which is not shown again.
    """
    webhook, secret = webhooks_of(services()).add(caller, body.name, body.address, body.events)
    return MadeWebhook(**WebhookShape.model_validate(webhook, from_attributes=True).model_dump(), secret=secret)


@router.patch(
    "/api/webhooks/{webhook_id}",
    summary="Turn a webhook on or off",
    dependencies=[needs("admin")],
    responses=problems(404),
)
def change_webhook(webhook_id: UUID, caller: Caller, body: WebhookChanges) -> WebhookShape:
    """Resume or pause sending events to an address."""
    webhooks = webhooks_of(services())
    webhooks.switch(caller, webhook_id, is_active=body.is_active)
    return WebhookShape.model_validate(webhooks.get(caller, webhook_id), from_attributes=True)


@router.delete(
    "/api/webhooks/{webhook_id}",
    summary="Remove a webhook",
    dependencies=[needs("admin")],
    status_code=204,
    responses=problems(404),
)
def remove_webhook(webhook_id: UUID, caller: Caller) -> Response:
    """Remove an address which receives events, and all deliveries there."""
    webhooks_of(services()).remove(caller, webhook_id)
    return Response(status_code=204)


@router.get(
    "/api/webhooks/{webhook_id}/deliveries",
    summary="List what a webhook was told",
    dependencies=[needs("admin")],
    responses=problems(404),
)
def list_deliveries(
    webhook_id: UUID, caller: Caller, limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50
) -> Deliveries:
    """List deliveries from the last thirty days, latest first."""
    deliveries = webhooks_of(services()).deliveries(caller, webhook_id, limit=limit)
    shapes = [DeliveryShape.model_validate(delivery, from_attributes=True) for delivery in deliveries]
    return Deliveries(deliveries=shapes, total=len(shapes))


@router.post(
    "/api/webhooks/{webhook_id}/test",
    summary="Send a test",
    dependencies=[needs("admin")],
    status_code=202,
    responses=problems(404),
)
def send_test(webhook_id: UUID, caller: Caller) -> Response:
    """Send an event with the kind `test`. Its delivery is listed like any other."""
    webhooks_of(services()).test(caller, webhook_id)
    return Response(status_code=202)


@router.post(
    "/api/webhooks/deliveries/{delivery_id}/again",
    summary="Send an event again",
    dependencies=[needs("admin")],
    status_code=202,
    responses=problems(404),
)
def deliver_again(delivery_id: UUID, caller: Caller) -> Response:
    """Deliver an event again, with a new series of attempts."""
    webhooks_of(services()).deliver_again(caller, delivery_id)
    return Response(status_code=202)
