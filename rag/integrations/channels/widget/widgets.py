"""Widgets, with which visitors on other websites ask a collection.

A widget has a public key, and limits for sites, questions and cost. Everybody can read the key in the site's page. The
key opens a single collection, which must be open to the whole company. A widget is off until an administrator turns it
on.
"""

from __future__ import annotations

import builtins
import math
import re
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from threading import Lock
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from rag.access.limits import MINUTE, Window
from rag.access.sessions import require_admin, require_recent, token_hash
from rag.errors import InvalidInput, NotFound, TooManyRequests
from rag.language import N_
from rag.settings import ORIGIN
from rag.storage.database import Database, queries
from rag.types import WIDGET_ACTOR, Collection, Identity, Role
from rag.types.fields import one_line, validated

PREFIX = "pub_"
PUBLIC_KEY = re.compile(r"pub_[A-Za-z0-9_-]{24}")
REQUESTS_PER_MINUTE = 20
#: Questions a minute from a network address.
ADDRESS_PER_MINUTE = 6
MOST_WIDGETS, MOST_SITES = 50, 20
MAXIMUM_CACHED_TENANTS = 10_000
CLOSED = N_("This assistant is switched off.")
BUSY = "Too many questions are being asked here at this moment. Wait {wait} seconds and ask again."
DAY_OVER = "This assistant has answered as many questions as it may today. It is back tomorrow."


@dataclass(frozen=True, kw_only=True)
class Widget:
    """A widget, with which visitors on other websites ask a collection: key, sites, texts and limits."""

    id: UUID
    tenant_id: str
    #: Questions are logged under this key.
    api_key_id: UUID
    collection_id: UUID
    collection_name: str
    name: str
    public_key: str
    #: Websites allowed to show the widget, like https://intranet.example.com.
    sites: list[str]
    is_active: bool
    #: Whether the product serves a public page with the widget alone.
    has_page: bool
    title: str
    greeting: str
    requests_per_minute: int
    questions_per_day: int
    #: US dollars a month; afterwards answers are quotes.
    budget: Decimal
    created_at: datetime
    asked_today: int
    #: US dollars this month.
    spent: Decimal

    @property
    def identity(self) -> Identity:
        """Return the identity for visitors, which has neither account nor group."""
        return Identity(
            account_id=self.api_key_id,
            tenant_id=self.tenant_id,
            email=f"{WIDGET_ACTOR}{self.name}",
            name=self.name,
            role=Role.EMPLOYEE,
        )


def _sites(sites: builtins.list[str]) -> builtins.list[str]:
    """Return sites in the form which browsers send: `https://intranet.example.com`.

    Raises `InvalidInput` for a site which cannot be written in this form.
    """
    origins = list(dict.fromkeys(site.rstrip("/").lower() for site in " ".join(sites).split()))
    if len(origins) > MOST_SITES:
        raise InvalidInput(f"A widget has at most {MOST_SITES} websites.")
    for site in origins:
        is_own_machine = re.fullmatch(r"http://(localhost|127\.0\.0\.1)(:[0-9]{1,5})?", site)
        if not ORIGIN.fullmatch(site) or not (site.startswith("https://") or is_own_machine):
            raise InvalidInput(
                f"{site} is not the address of a website. Write it like https://intranet.example.com, without a path."
            )
    return origins


Name = Annotated[str, Field(title=N_("Name"), min_length=1, max_length=80), BeforeValidator(one_line)]
Sites = Annotated[
    list[str],
    Field(title=N_("Websites that may show the widget, one per line"), examples=["https://intranet.example.com"]),
    AfterValidator(_sites),
    "lines",
]


class WidgetValues(BaseModel):
    """A new widget's name and sites."""

    name: Name
    sites: Sites = []


class WidgetChange(BaseModel):
    """New values for a widget; `None` keeps a value."""

    name: Name | None = None
    title: Annotated[str | None, BeforeValidator(one_line)] = Field(
        default=None,
        title=N_("Title"),
        description=N_(
            "The title that visitors read at the top of the widget. If you leave it empty, the widget shows its name."
        ),
        max_length=80,
    )
    sites: Sites | None = None
    greeting: Annotated[str, Field(title=N_("Greeting"), max_length=500), BeforeValidator(one_line)] | None = None
    requests_per_minute: int | None = Field(default=None, title=N_("Questions a minute"), ge=1, le=1000)
    questions_per_day: int | None = Field(default=None, title=N_("Questions a day"), ge=1, le=100_000)
    budget: Decimal | None = Field(
        default=None,
        title=N_("US dollars a month"),
        description=N_("When this amount is spent, the widget quotes documents and calls no model."),
        ge=0,
        le=1_000_000,
    )
    has_page: bool | None = Field(
        default=None,
        title=N_("Has a public page"),
        description=N_("Anybody who has the address can ask questions there, without signing in."),
    )
    is_active: bool | None = None


class Widgets:
    """Create, change, find and limit widgets. Thread-safe."""

    def __init__(self, database: Database, *, address_per_minute: int = ADDRESS_PER_MINUTE) -> None:
        self._database = database
        self._addresses = Window(address_per_minute, MINUTE)
        self._lock = Lock()
        #: The tenant for each public key; it never changes.
        self._tenants: OrderedDict[str, str] = OrderedDict()

    # For administrators

    def add(self, identity: Identity, collection: Collection, name: str, sites: Sequence[str] = ()) -> Widget:
        """Create a widget, turned off. Raises `NotAllowed`, `SignInAgain`, `InvalidInput`."""
        require_admin(identity)
        require_recent(self._database, identity)
        if collection.groups:
            raise InvalidInput(
                f"Only some groups may read “{collection.name}”, so other websites cannot use this collection. Open it "
                "to everybody first, or choose another collection."
            )
        if len(self.list(identity)) >= MOST_WIDGETS:
            raise InvalidInput(f"There are {MOST_WIDGETS} widgets already. Remove one first.")
        widget_values = validated(WidgetValues, {"name": name, "sites": [*sites]})
        public_key = PREFIX + secrets.token_urlsafe(18)
        with self._database.transaction(identity) as connection:
            hidden = {"name": f"Widget: {widget_values.name}", "secret_hash": token_hash(secrets.token_urlsafe(32))}
            key = connection.execute(
                queries["add_widget_key"], {**hidden, "requests_per_minute": REQUESTS_PER_MINUTE}
            ).fetchone()
            assert key is not None  # noqa: S101  an INSERT … RETURNING that did not raise has a row
            values = {**widget_values.model_dump(), "public_key": public_key, "key_hash": token_hash(public_key)}
            row = connection.execute(
                queries["add_widget"], {**values, "api_key_id": key[0], "collection_id": collection.id}
            ).fetchone()
            if row is None:
                raise NotFound
        return self.get(identity, row[0])

    def list(self, identity: Identity) -> builtins.list[Widget]:
        """List the tenant's widgets, oldest first. Raises `NotAllowed`."""
        require_admin(identity)
        return self._database.fetch_all(identity, "list_widgets", Widget, widget_id=None)

    def get(self, identity: Identity, widget_id: UUID) -> Widget:
        """Return a widget. Raises `NotAllowed`, `NotFound`."""
        require_admin(identity)
        widget = self._database.fetch_one(identity, "list_widgets", Widget, widget_id=widget_id)
        if widget is None:
            raise NotFound
        return widget

    def change(self, identity: Identity, widget_id: UUID, change: WidgetChange) -> Widget:
        """Change a widget. Raises `NotAllowed`, `SignInAgain`, `NotFound`."""
        require_admin(identity)
        require_recent(self._database, identity)
        changes = {"widget_id": widget_id, **{name: getattr(change, name) for name in WidgetChange.model_fields}}
        with self._database.transaction(identity) as connection:
            if not connection.execute(queries["change_widget"], changes).rowcount:
                raise NotFound
            if change.requests_per_minute is not None:
                connection.execute(queries["change_widget_limit"], changes)
        return self.get(identity, widget_id)

    def remove(self, identity: Identity, widget_id: UUID) -> str:
        """Remove a widget, and return a value for `put_back`. Visitors' questions stay in the log.

        Raises `NotAllowed`, `NotFound`.
        """
        require_admin(identity)
        removed = self._database.fetch_value(identity, "remove_widget", widget_id=widget_id)
        if removed is None:
            raise NotFound
        return str(removed)

    def put_back(self, identity: Identity, removed: str) -> None:
        """Restore a removed widget. The HTML tag works again. Raises `NotAllowed`, `InvalidInput`."""
        require_admin(identity)
        self._database.put_back(identity, "put_widget_back", kept=removed)

    # For visitors

    def find(self, public_key: str) -> Widget:
        """Return the active widget with this public key. Raises `NotFound`, `DatabaseUnavailable`."""
        tenant_id = self._tenant_of(public_key) if PUBLIC_KEY.fullmatch(public_key) else None
        if tenant_id is None:
            raise NotFound(CLOSED)
        widget_id = self._database.fetch_value(tenant_id, "widget_of_key", public_key=public_key)
        widget = self._database.fetch_one(tenant_id, "list_widgets", Widget, widget_id=widget_id) if widget_id else None
        if widget is None:
            raise NotFound(CLOSED)
        return widget

    def count_question(self, widget: Widget, address: str) -> None:
        """Count a question for the widget and for the network address. Raises `TooManyRequests`."""
        if wait := self._addresses.take(f"{widget.id} {address}"):
            seconds = math.ceil(wait)
            raise TooManyRequests(BUSY.format(wait=seconds), wait_seconds=seconds)
        with self._database.transaction(widget.tenant_id) as connection:
            counted = connection.execute(queries["count_widget_question"], {"api_key_id": widget.api_key_id}).fetchone()
        if counted is None or counted[0]:
            seconds = max(counted[1] if counted else 60, 1)
            raise TooManyRequests(BUSY.format(wait=seconds), wait_seconds=seconds)
        # The log alone knows questions from before an update.
        has_questions_left = widget.asked_today < widget.questions_per_day
        if not has_questions_left or not self._database.execute(
            widget.tenant_id, "count_widget_day", widget_id=widget.id
        ):
            raise TooManyRequests(DAY_OVER, wait_seconds=3600)

    def _tenant_of(self, public_key: str) -> str | None:
        with self._lock:
            if tenant_id := self._tenants.get(public_key):
                return tenant_id
        hashed = token_hash(public_key)
        with self._database.transaction(None, token_hash=hashed) as connection:
            row = connection.execute(queries["tenant_of_widget"], {"key_hash": hashed}).fetchone()
        if row is None:
            return None
        with self._lock:
            self._tenants[public_key] = row[0]
            while len(self._tenants) > MAXIMUM_CACHED_TENANTS:
                self._tenants.popitem(last=False)
        return str(row[0])


@lru_cache(maxsize=8)
def widgets_of(database: Database) -> Widgets:
    """Return the database's `Widgets`.

    Every call returns the same object, because the object counts the questions per network address.
    """
    return Widgets(database)
