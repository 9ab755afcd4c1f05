"""Read collections from the database."""

from __future__ import annotations

from uuid import UUID

from rag.storage.database import Database
from rag.types import Collection, Who


def find_collections(
    database: Database, who: Who, *, collection_id: UUID | None = None, name: str | None = None
) -> list[Collection]:
    """Return a tenant's collections, oldest first.

    If `collection_id` or `name` is given, only the collection with this id or name is returned.
    """
    return database.fetch_all(who, "find_collections", Collection, collection_id=collection_id, collection_name=name)
