"""Change a document's title, folder, tags, owner, dates and language, which all its versions share."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin
from rag.errors import InvalidInput, NotFound
from rag.library.collections import LANGUAGES
from rag.retrieval.bm25.index import index_documents
from rag.storage.database import Database, queries
from rag.types import DocumentFilters, DocumentStatus, Identity, Who

LONGEST_TITLE = 300
LONGEST_FOLDER = 200
LONGEST_TAG = 60
MOST_TAGS = 20
LONGEST_VIEW_NAME = 60


@dataclass(frozen=True, kw_only=True)
class MetadataChanges:
    """Changes to a document. `None` keeps a value. Owner and dates change only with `with_owner` and `with_dates`."""

    title: str | None = None
    folder: str | None = None
    tags: Sequence[str] | None = None
    #: A language code from `LANGUAGES`.
    language: str | None = None
    with_owner: bool = False
    owner_id: UUID | None = None
    with_dates: bool = False
    valid_from: date | None = None
    valid_until: date | None = None
    review_on: date | None = None


@dataclass(frozen=True, kw_only=True)
class SavedView:
    """A person's saved filters for the library."""

    id: UUID
    name: str
    filters: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reminders:
    """How many documents have expired, and how many are due for review."""

    expired: int
    to_review: int


@dataclass(frozen=True, kw_only=True)
class Shelves:
    """The folders and tags in use, each with the document count. A folder's count does not include subfolders."""

    folders: dict[str, int]
    tags: dict[str, int]


class DocumentMetadata:
    """Change and count the documents' metadata, for example title, folder and tags. Changes need an administrator."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def change(self, identity: Identity, document_ids: Sequence[UUID], changes: MetadataChanges) -> None:
        """Apply changes to all versions of these documents. Only a single document can be given a title.

        After a new title, folder or language, the document is indexed again. After a new title or language, its vectors
        from the built-in embedding model are computed again in the background. Raises `InvalidInput`, and `NotFound` if
        no document exists.
        """
        require_admin(identity)
        if changes.title is not None and len(document_ids) != 1:
            raise InvalidInput("Only one document at a time can get a new title.")
        if changes.language is not None and changes.language not in LANGUAGES:
            raise InvalidInput(f"The language has to be one of {', '.join(LANGUAGES.values())}.")
        if changes.valid_from and changes.valid_until and changes.valid_until < changes.valid_from:
            raise InvalidInput("“Valid until” has to be after “Valid from”.")
        parameters = {
            "document_ids": list(document_ids),
            "title": None if changes.title is None else normal_title(changes.title),
            "folder": None if changes.folder is None else normal_folder(changes.folder),
            "tags": None if changes.tags is None else normal_tags(changes.tags),
            "add_tags": None,
            "remove_tags": None,
            "language": changes.language,
            "with_owner": changes.with_owner,
            "owner_id": changes.owner_id,
            "with_dates": changes.with_dates,
            "valid_from": changes.valid_from,
            "valid_until": changes.valid_until,
            "review_on": changes.review_on,
        }
        is_read_again = bool(changes.title or changes.language)
        self._note(
            identity,
            parameters,
            is_indexed_again=is_read_again or changes.folder is not None,
            is_read_again=is_read_again,
        )

    def tag(
        self, identity: Identity, document_ids: Sequence[UUID], *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> None:
        """Add tags to documents, and remove tags. Raises `InvalidInput`, `NotFound`."""
        require_admin(identity)
        nothing = dict.fromkeys(("title", "folder", "tags", "language", "owner_id"))
        dates = dict.fromkeys(("valid_from", "valid_until", "review_on"))
        parameters = {
            **nothing,
            **dates,
            "with_owner": False,
            "with_dates": False,
            "document_ids": list(document_ids),
            "add_tags": normal_tags(add),
            "remove_tags": normal_tags(remove),
        }
        self._note(identity, parameters)

    def move(self, identity: Identity, document_ids: Sequence[UUID], folder: str) -> None:
        """Move documents to a folder; "" is the top level. Raises `InvalidInput`, `NotFound`."""
        self.change(identity, document_ids, MetadataChanges(folder=folder))

    def _note(
        self,
        identity: Identity,
        parameters: dict[str, Any],
        *,
        is_indexed_again: bool = False,
        is_read_again: bool = False,
    ) -> None:
        with self._database.transaction(identity) as connection:
            rows = connection.execute(queries["change_metadata"], parameters).fetchall()
            if not rows:
                raise NotFound("This document does not exist. It may have been deleted.")
            published: dict[UUID, list[UUID]] = {}
            for document_id, collection_id, status in rows if is_indexed_again else ():
                if status == DocumentStatus.COMPLETED:
                    published.setdefault(collection_id, []).append(document_id)
            for collection_id, ids in sorted(published.items()):
                where: dict[str, Any] = {"tenant_id": identity.tenant_id, "collection_id": collection_id}
                index_documents(connection, **where, document_ids=ids)
                if is_read_again:
                    for document_id in ids:
                        connection.execute(queries["forget_meaning"], {"document_id": document_id})
                    connection.execute(queries["enqueue_meaning"], {**where, "wait_seconds": 0.0})

    # Looking

    def shelves(self, who: Who) -> Shelves:
        """List the folders and tags in use."""
        with self._database.transaction(who) as connection:
            rows = connection.execute(queries["folders_and_tags"]).fetchall()
        counts: dict[str, dict[str, int]] = {"folder": {}, "tag": {}}
        for kind, name, documents in rows:
            counts[kind][name] = documents
        return Shelves(folders=counts["folder"], tags=counts["tag"])

    def reminders(self, who: Who, *, owner_id: UUID | None = None) -> Reminders:
        """Count the searchable documents which have expired, and the documents due for review.

        `owner_id` counts only this person's documents.
        """
        reminders = self._database.fetch_one(who, "library_reminders", Reminders, owner_id=owner_id)
        return reminders or Reminders(expired=0, to_review=0)

    # Views

    def views(self, identity: Identity) -> list[SavedView]:
        """List a person's saved views, sorted by name."""
        return self._database.fetch_all(identity, "find_views", SavedView, account_id=identity.account_id)

    def save_view(self, identity: Identity, name: str, filters: DocumentFilters) -> None:
        """Save filters under a name. A view with the same name is replaced. Raises `InvalidInput`."""
        name = " ".join(name.split())
        if not 1 <= len(name) <= LONGEST_VIEW_NAME:
            raise InvalidInput(f"Give the view a name of at most {LONGEST_VIEW_NAME} characters.")
        parameters = {"account_id": identity.account_id, "name": name, "filters": Jsonb(filters_to_json(filters))}
        self._database.execute(identity, "save_view", **parameters)

    def keep_view(self, identity: Identity, view: SavedView) -> None:
        """Restore a removed view."""
        parameters = {"account_id": identity.account_id, "name": view.name, "filters": Jsonb(view.filters)}
        self._database.execute(identity, "save_view", **parameters)

    def drop_view(self, identity: Identity, view_id: UUID) -> None:
        """Remove a person's view."""
        self._database.execute(identity, "drop_view", account_id=identity.account_id, view_id=view_id)


def filters_to_json(filters: DocumentFilters) -> dict[str, Any]:
    """Convert filters to JSON. `found_ids` is left out, because a saved view searches for the text again."""
    values = {
        "text": filters.text,
        "statuses": [status.value for status in filters.statuses],
        "language": filters.language,
        "mime_type": filters.mime_type,
        "collection_id": str(filters.collection_id) if filters.collection_id else "",
        "folder": filters.folder,
        "tag": filters.tag,
        "owner_id": str(filters.owner_id) if filters.owner_id else "",
        "due": filters.due,
    }
    return {name: value for name, value in values.items() if value}


def normal_title(title: str) -> str:
    """Normalise a title. Raises `InvalidInput` if it is empty or too long."""
    name = _plain_line(title)
    if not 1 <= len(name) <= LONGEST_TITLE:
        raise InvalidInput(f"Give the document a title of at most {LONGEST_TITLE} characters.")
    return name


def normal_folder(folder: str) -> str:
    """Normalise a folder path with single slashes. Raises `InvalidInput` if it is too long."""
    name = "/".join(filter(None, (part.strip() for part in re.split(r"[/\\]", _plain_line(folder)))))
    if len(name) > LONGEST_FOLDER:
        raise InvalidInput(f"The name of a folder has at most {LONGEST_FOLDER} characters.")
    return name


def normal_tags(tags: Sequence[str]) -> list[str]:
    """Normalise tags: without commas and duplicates. Raises `InvalidInput` for too long or too many tags."""
    names = list(dict.fromkeys(filter(None, (_plain_line(tag.replace(",", " ")) for tag in tags))))
    if any(len(tag) > LONGEST_TAG for tag in names):
        raise InvalidInput(f"A tag has at most {LONGEST_TAG} characters.")
    if len(names) > MOST_TAGS:
        raise InvalidInput(f"A document has at most {MOST_TAGS} tags.")
    return names


def _plain_line(text: str) -> str:
    printable = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in unicodedata.normalize("NFC", text))
    return " ".join(printable.split())
