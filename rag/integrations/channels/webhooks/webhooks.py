"""Send events to other programs, signed by the Standard Webhooks scheme, with retries until they are accepted.

`rag.records.events` lists the events. Body and signature are made again at each attempt, because receivers may refuse
messages older than a few minutes.
"""

from __future__ import annotations

import base64
import builtins
import hashlib
import ipaddress
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit
from uuid import UUID

from cryptography.fernet import Fernet
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from pydantic import BaseModel, BeforeValidator, Field, StringConstraints

from rag.access.sessions import require_admin, require_recent
from rag.errors import InvalidInput, NotFound, PackagesMissing
from rag.language import N_
from rag.records.events import EVENTS
from rag.services import Services
from rag.settings import Settings
from rag.storage.database import Database, queries
from rag.types import Identity, page_path
from rag.types.fields import one_line, validated

if TYPE_CHECKING:
    import httpx

#: The kind for the button “Send a test”.
TEST = "test"
#: Waits after each failed attempt, about 28 hours in all; after the last wait the delivery has failed.
RETRY_SECONDS = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 36_000.0)
TIMEOUT_SECONDS = 10.0
MOST_WEBHOOKS = 20
MOST_LISTED = 200
HTTP_GONE = 410


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """An address which receives events, with counts for the last seven days."""

    id: UUID
    name: str
    address: str
    #: The wanted kinds; empty: every kind.
    events: list[str]
    is_active: bool
    created_at: datetime
    delivered: int
    waiting: int
    failed: int
    last_delivered_at: datetime | None


class WebhookValues(BaseModel):
    """The values for a new webhook."""

    name: Annotated[str, BeforeValidator(one_line)] = Field(
        title=N_("Name"), description=N_("The program that receives the messages."), min_length=1, max_length=80
    )
    address: Annotated[str, StringConstraints(strip_whitespace=True), "line"] = Field(
        title=N_("Address"),
        max_length=500,
        examples=["https://example.com/hook"],
        json_schema_extra={"description": "https, at a public host, or at one that RAG_WEBHOOK_HOSTS names."},
    )
    #: The wanted kinds; empty: every kind.
    events: list[str] = Field(default=[], description=f"Of {', '.join(EVENTS)}; empty: every kind.")


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """An event's delivery to an address."""

    id: UUID
    webhook_id: UUID
    kind: str
    event_id: UUID
    data: dict[str, Any]
    status: str
    attempts: int
    next_at: datetime | None
    answer_status: int | None
    answer: str
    created_at: datetime
    finished_at: datetime | None


class Webhooks:
    """Store addresses, send events to them, and list deliveries. Thread-safe."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        *,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._database = database
        self._settings = settings
        hosts = settings.variable("RAG_WEBHOOK_HOSTS").lower().split(",")
        self._own_hosts = frozenset(filter(None, map(str.strip, hosts)))
        self._transport = transport

    # Addresses

    def add(self, identity: Identity, name: str, address: str, events: Sequence[str] = ()) -> tuple[Webhook, str]:
        """Store an address, and return it with the secret for signatures, which is never shown again.

        Raises `NotAllowed`, `SignInAgain`, and `InvalidInput` for an address which is invalid or in our network.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        webhook_values = validated(WebhookValues, {"name": name, "address": address, "events": [*events]})
        if unknown := [event for event in events if event not in EVENTS]:
            raise InvalidInput(f"The event {unknown[0]!r} does not exist. Choose one of: {', '.join(EVENTS)}.")
        if len(self.list(identity)) >= MOST_WEBHOOKS:
            raise InvalidInput(f"There are {MOST_WEBHOOKS} webhooks already. Remove one first.")
        self._check_address(webhook_values.address)
        secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
        webhook_id = self._database.fetch_value(
            identity,
            "add_webhook",
            name=webhook_values.name,
            address=webhook_values.address,
            events=list(dict.fromkeys(events)),
            secret=self._locker.encrypt(secret.encode()),
        )
        return self.get(identity, webhook_id), secret

    def list(self, identity: Identity) -> builtins.list[Webhook]:
        """List the tenant's webhooks, oldest first. Raises `NotAllowed`."""
        require_admin(identity)
        return self._database.fetch_all(identity, "list_webhooks", Webhook, webhook_id=None)

    def get(self, identity: Identity, webhook_id: UUID) -> Webhook:
        """Return a webhook. Raises `NotAllowed`, `NotFound`."""
        require_admin(identity)
        webhook = self._database.fetch_one(identity, "list_webhooks", Webhook, webhook_id=webhook_id)
        if webhook is None:
            raise NotFound
        return webhook

    def remove(self, identity: Identity, webhook_id: UUID) -> str:
        """Remove an address with all deliveries; return a value for `put_back`. Raises `NotAllowed`, `NotFound`."""
        require_admin(identity)
        removed = self._database.fetch_value(identity, "remove_webhook", webhook_id=webhook_id)
        if removed is None:
            raise NotFound
        return str(removed)

    def put_back(self, identity: Identity, removed: str) -> None:
        """Restore a removed address with the secret and the latest deliveries. Raises `NotAllowed`, `InvalidInput`."""
        require_admin(identity)
        self._database.put_back(identity, "put_webhook_back", kept=removed)

    def switch(self, identity: Identity, webhook_id: UUID, *, is_active: bool) -> None:
        """Turn a webhook on or off. Raises `NotAllowed`, `NotFound`."""
        require_admin(identity)
        if not self._database.execute(identity, "switch_webhook", webhook_id=webhook_id, is_active=is_active):
            raise NotFound

    # Events

    def test(self, identity: Identity, webhook_id: UUID) -> None:
        """Send a test event. Raises `NotAllowed` or `NotFound`, and `InvalidInput` if the webhook is off."""
        if not self.get(identity, webhook_id).is_active:
            raise InvalidInput("This webhook is off. Turn it on first.")
        data = Jsonb({"message": "This is a test."})
        self._database.fetch_value(identity, "emit_event", kind=TEST, data=data, webhook_id=webhook_id)

    def deliveries(
        self, identity: Identity, webhook_id: UUID | None = None, *, limit: int = MOST_LISTED
    ) -> builtins.list[Delivery]:
        """List deliveries from the last thirty days, latest first.

        Without `webhook_id`, all webhooks' deliveries are listed.
        """
        require_admin(identity)
        if webhook_id is not None:
            self.get(identity, webhook_id)
        return self._database.fetch_all(
            identity, "webhook_deliveries", Delivery, webhook_id=webhook_id, limit=min(limit, MOST_LISTED)
        )

    def deliver_again(self, identity: Identity, delivery_id: UUID) -> None:
        """Deliver an event again, with a new series of attempts. Raises `NotAllowed`, `NotFound`."""
        require_admin(identity)
        with self._database.transaction(identity) as connection:
            if connection.execute(queries["deliver_again"], {"delivery_id": delivery_id}).fetchone() is None:
                raise NotFound

    # Sending, for the queue

    def deliver(self, tenant_id: str, delivery_id: UUID) -> float | None:
        """Attempt a delivery. Return the seconds until the next attempt; `None` if no further attempt will be made."""
        with (
            self._database.transaction(tenant_id) as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            cursor.execute(queries["forget_deliveries"])
            row = cursor.execute(queries["delivery_to_make"], {"delivery_id": delivery_id}).fetchone()
        if row is None:
            return None  # the webhook is off, or a second process delivered the event
        status, answer = self._send(row)
        wait: float | None = None
        if status is not None and 200 <= status < 300:
            outcome = "delivered"
        elif status == HTTP_GONE or row["attempts"] >= len(RETRY_SECONDS):
            outcome = "failed"
        else:
            outcome, wait = "waiting", RETRY_SECONDS[row["attempts"]]
        if status == HTTP_GONE:
            self._database.execute(tenant_id, "switch_webhook", webhook_id=row["webhook_id"], is_active=False)
        self._database.execute(
            tenant_id,
            "note_delivery",
            delivery_id=delivery_id,
            status=outcome,
            answer_status=status,
            answer=answer,
            wait_seconds=wait or 0.0,
        )
        return wait

    def _send(self, row: Mapping[str, Any]) -> tuple[int | None, str]:
        """Send an event. Returns the response's status (`None` without a response) and a sentence about the result."""
        # Commands send nothing and do without these packages.
        import httpx
        from standardwebhooks import Webhook as Signer

        from rag.providers.bounds import Bounds, bound
        from rag.providers.outward import Unclosed

        body = self._body(row)
        message_id, now = f"msg_{row['event_id'].hex}", datetime.now(UTC)
        signer = Signer(self._locker.decrypt(bytes(row["secret"])).decode())
        headers = {
            "content-type": "application/json",
            "user-agent": "HR-Assistant-Webhooks/1",
            "webhook-id": message_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": signer.sign(message_id, now, body),
        }
        transport = self._inward if self._is_listed(row["address"]) else self._outward
        try:
            self._check_address(row["address"])  # the setting may have changed
            # Redirects are not followed, because they could lead anywhere. Only the status is read.
            client = httpx.Client(transport=Unclosed(transport), timeout=TIMEOUT_SECONDS, trust_env=False)
            with bound(client, Bounds(longest_seconds=3 * TIMEOUT_SECONDS)):
                request = client.build_request("POST", row["address"], content=body.encode(), headers=headers)
                answer = client.send(request, stream=True)
                answer.close()
        except InvalidInput as exc:
            return None, exc.message
        except httpx.TimeoutException:
            return None, f"It did not answer within {TIMEOUT_SECONDS:g} seconds."
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as exc:
            return None, f"It could not be reached: {str(exc)[:200] or type(exc).__name__}."
        if answer.is_success:
            return answer.status_code, "Taken."
        if answer.is_redirect:
            return answer.status_code, "It answered with another address, which is not followed."
        return answer.status_code, f"It answered {answer.status_code} {answer.reason_phrase}."

    def _body(self, row: Mapping[str, Any]) -> str:
        data = dict(row["data"])
        if row["kind"] == "document.ready":
            data["url"] = self._settings.own_address + page_path(UUID(data["documentId"]), 1)
        sent = {"type": row["kind"], "timestamp": row["created_at"].astimezone(UTC).isoformat(), "data": data}
        return json.dumps(sent, ensure_ascii=False, separators=(",", ":"))

    def _check_address(self, address: str) -> None:
        try:
            parts = urlsplit(address.strip())
            host, _ = (parts.hostname or "").lower(), parts.port
        except ValueError:
            raise InvalidInput(
                "The address cannot be read. Enter an address such as https://example.com/hook."
            ) from None
        is_text = address.strip().isascii() and address.strip().isprintable()
        if not host or not is_text or parts.username is not None or parts.scheme not in ("http", "https"):
            raise InvalidInput("Enter an address such as https://example.com/hook, without a user name or password.")
        if self._is_listed(address):
            return
        if parts.scheme != "https":
            raise InvalidInput("The address has to begin with https://.")
        if host == "localhost" or "." not in host or _is_number(host):
            raise InvalidInput(
                f"{host} is not a public host name. The operator of this installation can allow a host of your own "
                "network with RAG_WEBHOOK_HOSTS."
            )

    def _is_listed(self, address: str) -> bool:
        return urlsplit(address.strip()).netloc.lower() in self._own_hosts

    @cached_property
    def _outward(self) -> httpx.BaseTransport:
        from rag.providers.outward import OutwardTransport

        return self._transport or OutwardTransport()

    @cached_property
    def _inward(self) -> httpx.BaseTransport:
        import httpx

        from rag.providers.bounds import timed

        return self._transport or timed(httpx.HTTPTransport())

    @property
    def _locker(self) -> Fernet:
        key = hashlib.sha256(b"webhooks\x00" + self._database.key).digest()
        return Fernet(base64.urlsafe_b64encode(key))


def _is_number(host: str) -> bool:
    """Whether a host is an IP address. Forms accepted only by some resolvers count too: `0x7f000001`, `127.1`."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return all(part[:2] == "0x" or part.isdigit() for part in host.split("."))
    return True


def webhooks_of(parts: Services) -> Webhooks:
    """Return the running product's webhooks. Raises `PackagesMissing`."""
    if find_spec("standardwebhooks") is None:
        raise PackagesMissing
    return Webhooks(parts.database, parts.settings)


def deliver(database: Database, settings: Settings, tenant_id: str, delivery_id: str) -> float | None:
    """Attempt a webhook delivery, for the job queue.

    Returns the seconds until the next attempt; `None` if no further attempt will be made.
    """
    return Webhooks(database, settings).deliver(tenant_id, UUID(delivery_id))
