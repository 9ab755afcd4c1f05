"""Functions for all chat programs: find the account, choose the collection, and give standard replies."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from uuid import UUID

from rag.api.questions import choose_collection
from rag.errors import NotAllowed
from rag.language import N_, _
from rag.services import Services
from rag.storage.database import Database
from rag.types import Collection, Identity, Role

OUTSIDE = N_("I do not answer in channels that are shared with other companies. Write me a direct message.")
WAITING = N_("Reading the documents … If no answer has come in three minutes, please ask again.")
LONGER = N_(
    "The answer is too long to be shown here. You find the whole answer among your conversations in HR Assistant."
)
PRIVATE = N_("Only some groups may read “{name}”, so I do not answer here. Write me a direct message.")


@dataclass(frozen=True)
class _InChat:
    id: UUID
    name: str
    role: str
    user_group: str
    email: str


def account_in_chat(database: Database, tenant_id: str, email: str) -> Identity | None:
    """Return the active account with a chat user's e-mail address, or `None`."""
    row = database.fetch_one(tenant_id, "account_in_chat", _InChat, email=email)
    if row is None:
        return None
    return Identity(
        account_id=row.id,
        tenant_id=tenant_id,
        email=row.email,
        name=row.name,
        role=Role(row.role),
        user_group=row.user_group,
    )


def is_repeated(database: Database, tenant_id: str, program: str, *delivery: str) -> bool:
    """Record a delivery from a chat program, and return whether the delivery was already recorded.

    Deliveries recorded by all processes count. They are remembered for a day.
    """
    delivery_hash = hashlib.sha256("\n".join(delivery).encode()).digest()
    return not database.execute(tenant_id, "note_chat_delivery", program=program, delivery=delivery_hash)


def choose_chat_collection(parts: Services, person: Identity, id_or_name: str | None, *, is_direct: bool) -> Collection:
    """Choose the collection to search.

    Outside direct messages, only collections open to the whole company are chosen. Raises `NotFound` for an unknown
    collection, and `NotAllowed` outside direct messages if the collection is restricted to groups.
    """
    collection = choose_collection(parts, person, id_or_name)
    if is_direct or not collection.groups:
        return collection
    as_everybody = replace(person, role=Role.EMPLOYEE, user_group="")
    if id_or_name is None and (open_to_all := parts.documents.choose(as_everybody)) is not None:
        return open_to_all
    raise NotAllowed(_(PRIVATE, name=collection.name))
