"""Two companies to leak into each other: everything a tenant can hold, each with a word that nobody else may ever see.

Each company has a collection for everybody and one for a group. A canary is in the names, texts, questions and settings
of one of them and is never sent by a probe; the needle beside it is what probes search for.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from rag.records.analytics import Filters, Period, QuestionFilters
from rag.samples import SAMPLES
from rag.services import Services
from rag.types import Collection, Document, Identity, Question, Role, UploadOptions

GROUP = "Council"
PERIOD = 30


@dataclass(frozen=True)
class Secret:
    """What only some people may learn. `name` is the tenant's, with the group's behind it where only a group may."""

    name: str
    canary: str
    needle: str


@dataclass
class Shelf:
    """A collection with everything that hangs on it. `ids` by what they are of."""

    secret: Secret
    collection: Collection
    document: Document
    ids: dict[str, list[UUID]] = field(default_factory=dict)


@dataclass(frozen=True)
class Person:
    """Somebody who probes: with a session, or a key and no account. `readable` are names of secrets."""

    name: str
    identity: Identity
    headers: dict[str, str]
    readable: frozenset[str]

    @property
    def has_session(self) -> bool:
        return "Cookie" in self.headers


@dataclass
class World:
    """All shelves and all people of both companies."""

    shelves: list[Shelf]
    people: list[Person]

    def foreign(self, person: Person) -> list[Shelf]:
        return [shelf for shelf in self.shelves if shelf.secret.name not in person.readable]

    def own(self, person: Person) -> list[Shelf]:
        return [shelf for shelf in self.shelves if shelf.secret.name in person.readable]


def build_world(parts: Services, tenants: tuple[str, str]) -> World:
    """Fill two tenants that exist and have nobody yet."""
    shelves: list[Shelf] = []
    people: list[Person] = []
    for tenant_id in tenants:
        open_secret, group_secret = _secret(tenant_id), _secret(f"{tenant_id}/{GROUP}")
        admin = _admin(parts, tenant_id, open_secret)
        ids = dict(_of_tenant(parts, admin, open_secret))
        staff = list(_staff(parts, admin, open_secret, ids))
        members = {Role.EMPLOYEE: staff[1].identity}
        shelves += [
            _shelf(parts, admin, staff[0].identity, open_secret, (), ids),
            _shelf(parts, admin, members[Role.EMPLOYEE], group_secret, (GROUP,), {}),
        ]
        everything = frozenset({open_secret.name, group_secret.name})
        people += [
            Person(f"{tenant_id} admin", admin, _cookie(parts, admin), everything),
            *staff,
            *_keys(parts, admin, everything),
        ]
    return World(shelves, people)


def _secret(name: str) -> Secret:
    return Secret(name, f"zq{secrets.token_hex(8)}", f"needle{secrets.token_hex(4)}")


def _admin(parts: Services, tenant_id: str, secret: Secret) -> Identity:
    token = parts.accounts.first_admin_link(tenant_id)
    assert token is not None
    password = secrets.token_urlsafe(20)
    account = parts.accounts.create_first_admin(token, f"admin@{tenant_id}.example", f"Admin {secret.canary}", password)
    return _identity(account)


def _identity(account: Any) -> Identity:
    return Identity(
        account_id=account.id,
        tenant_id=account.tenant_id,
        email=account.email,
        name=account.name,
        role=account.role,
        user_group=account.user_group,
    )


def _cookie(parts: Services, identity: Identity) -> dict[str, str]:
    account = next(a for a in parts.accounts.list(_as_admin(identity)) if a.id == identity.account_id)
    return {"Cookie": f"hr_session={parts.sessions.start(account, 'probe')}"}


def _as_admin(identity: Identity) -> Identity:
    return replace(identity, role=Role.ADMIN)


def _staff(parts: Services, admin: Identity, secret: Secret, ids: dict[str, list[UUID]]) -> Iterator[Person]:
    everybody = frozenset({secret.name})
    with_group = everybody | {f"{admin.tenant_id}/{GROUP}"}
    for role, group, readable in (
        (Role.EMPLOYEE, "Sales", everybody),
        (Role.EMPLOYEE, GROUP, with_group),
        (Role.MANAGER, "Sales", everybody),
    ):
        email = f"{role}-{group}@{admin.tenant_id}.example".lower()
        account, _ = parts.accounts.invite(admin, email, f"Person {secret.canary}", role, group)
        ids.setdefault("account", []).append(account.id)
        identity = _identity(account)
        yield Person(f"{admin.tenant_id} {role} {group}", identity, _cookie(parts, identity), readable)


def _keys(parts: Services, admin: Identity, everything: frozenset[str]) -> Iterator[Person]:
    for scopes in (["chat", "search", "documents:read"], ["admin"]):
        key, secret = parts.api_keys.create(admin, f"Key for {scopes[0]}", scopes, requests_per_minute=100_000)
        identity = parts.api_keys.find(secret).identity
        readable = everything if scopes == ["admin"] else frozenset({admin.tenant_id})
        yield Person(f"{admin.tenant_id} key {key.name}", identity, {"Authorization": f"Bearer {secret}"}, readable)


def _of_tenant(parts: Services, admin: Identity, secret: Secret) -> Iterator[tuple[str, list[UUID]]]:
    """What belongs to the tenant and to no collection."""
    with parts.database.transaction(admin) as connection:
        connection.execute(
            "UPDATE tenants SET name = %(word)s, settings = jsonb_build_object('note', %(word)s::text)",
            {"word": secret.canary},
        )
    key, _ = parts.api_keys.create(admin, f"Key {secret.canary}", ["search"])
    yield "api_key", [key.id]
    yield "account", [admin.account_id]


def _shelf(
    parts: Services,
    admin: Identity,
    asker: Identity,
    secret: Secret,
    groups: tuple[str, ...],
    ids: dict[str, list[UUID]],
) -> Shelf:
    library = parts.documents
    made = library.create_collection(admin, f"Papers {secret.canary}", "hr", language="en")
    if groups:
        library.change_collection(admin, made.id, groups=groups)
    parts.syncs.set_source(admin, made, "posts", {"table": f"posts_{secret.canary}"})
    text = (
        f"Annual leave at {secret.needle} is 27 days a year for every employee. "
        f"The word of the house is {secret.canary}, and {secret.needle} employees keep it.\n"
    )
    stored = [
        parts.pipeline.process_document(
            file=content,
            file_name=name,
            tenant_id=admin.tenant_id,
            collection=made,
            options=UploadOptions(generate_metadata=False),
        ).document_id
        for name, content in (
            (f"{secret.canary}.txt", (text * 3).encode()),
            (f"{secret.canary}.pdf", SAMPLES[0].read()),
        )
    ]
    document = library.get(admin, stored[0])
    # Two jobs that wait: what is in the queue is looked at as well.
    library.upload(admin, made, f"{secret.canary}-later.txt", f"Later {secret.canary}.".encode())
    parts.syncs.request(admin, made)
    conversation_id, message_id = _conversation(parts, asker, made, secret)
    today = Period.of_days(PERIOD, until=document.created_at.date())
    logged = parts.analytics.questions(admin, today, Filters(), QuestionFilters(text=secret.needle))
    ids |= {
        "collection": [made.id],
        "document": stored,
        "chunk": [chunk.id for chunk in library.chunks(admin, document.id)],
        "conversation": [conversation_id],
        "message": [message_id],
        "chat_log": [entry.id for entry in logged],
    }
    return Shelf(secret, made, document, ids)


def _conversation(parts: Services, asker: Identity, collection: Collection, secret: Secret) -> tuple[UUID, UUID]:
    live = parts.answers.ask(
        Question(text=f"How many days of annual leave has {secret.needle}?", identity=asker, collection=collection)
    )
    deadline = time.monotonic() + 30
    while not live.is_done and time.monotonic() < deadline:
        time.sleep(0.02)
    parts.feedback.rate(asker, live.message_id, 1, f"Thanks {secret.canary}")
    parts.conversations.rename(asker, live.conversation_id, f"Leave {secret.canary}")
    return live.conversation_id, live.message_id
