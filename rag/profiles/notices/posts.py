"""Parse posts from table rows or events, and store each post in a file together with the attachments.

A post's metadata fields have the names from source 000 in docs/sources.md. Times in them are milliseconds since 1970; a
missing time is 0.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rag.errors import InvalidInput
from rag.ingestion.loaders.attachments import KINDS
from rag.types import storable

#: A stored post: HTML and attachments in a JSON file.
POST_TYPE = "application/vnd.hr-assistant.post+json"
#: The category for posts without a category (source 000).
FALLBACK_SLUG, FALLBACK_NAME = "general", "일반"
#: Part of a post's hash. Raise it to make posts be read again in a new way.
READING = "1"


@dataclass(frozen=True, kw_only=True)
class PostAttachment:
    """A file attached to a post: its content, or the address in `url`."""

    file_name: str
    size: int
    mime_type: str = ""
    url: str = ""
    content: bytes | None = None
    #: A description, if known without a model.
    description: str = ""

    @property
    def ending(self) -> str:
        return self.file_name.rsplit(".", 1)[-1].lower() if "." in self.file_name else ""

    @property
    def fingerprint(self) -> list[Any]:
        """Return the values which change when the attachment's file changes."""
        digest = hashlib.sha256(self.content).hexdigest() if self.content is not None else ""
        return [self.file_name, self.size, self.url, digest, self.description]


@dataclass(frozen=True, kw_only=True)
class Post:
    """A post on a notice board."""

    id: str
    title: str
    html: str
    category_id: str = ""
    category_name: str = FALLBACK_NAME
    category_slug: str = FALLBACK_SLUG
    created_at: datetime | None = None
    updated_at: datetime | None = None
    published_at: datetime | None = None
    is_pinned: bool = False
    is_important: bool = False
    status: str = ""
    view_count: int = 0
    #: The post's address on the board.
    url: str = ""
    attachments: tuple[PostAttachment, ...] = ()

    @property
    def hash(self) -> str:
        """A hash of text and attachments. Pinning, view counts and dates do not change the hash."""
        parts = [READING, self.title, self.html, [a.fingerprint for a in self.attachments]]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()

    def metadata(self) -> dict[str, Any]:
        """Return the post's metadata for the document: category, times, flags, and attachment counts.

        The field names are from source 000 in docs/sources.md, where they are stored with each vector.
        """
        kinds = {KINDS.get(a.ending, "other") for a in self.attachments}
        return {
            "postId": self.id,
            "categoryId": self.category_id,
            "categoryName": self.category_name,
            "categorySlug": self.category_slug,
            "title": self.title,
            "createdAt": milliseconds(self.created_at),
            "updatedAt": milliseconds(self.updated_at),
            "publishedAt": milliseconds(self.published_at),
            "isPinned": self.is_pinned,
            "isImportant": self.is_important,
            "status": self.status,
            "viewCount": self.view_count,
            "attachmentCount": len(self.attachments),
            "hasImages": "image" in kinds,
            "hasDocuments": bool(kinds & {"document", "office"}),
            **({"postUrl": self.url} if self.url else {}),
        }


def post_from_record(
    record: Mapping[str, Any],
    mapping: PostsMapping,
    *,
    categories: Mapping[str, Mapping[str, Any]] | None = None,
    attachments: Sequence[Mapping[str, Any]] = (),
) -> Post:
    """Build a post from a JSON row. Missing fields get defaults.

    `categories` are the category rows by id, and `attachments` the attachments' rows. Raises `InvalidInput` for a row
    without an id.
    """
    if (key := _text(record.get(mapping.id))) == "":
        raise InvalidInput(f"The post has no {mapping.id!r}.")
    category_id = _text(record.get(mapping.category_id))
    category = (categories or {}).get(category_id, {})
    return Post(
        id=key,
        title=" ".join(_text(record.get(mapping.title)).split()),
        html=_text(record.get(mapping.content)),
        category_id=category_id,
        category_name=_text(category.get(mapping.categories.name)) or FALLBACK_NAME,
        category_slug=_text(category.get(mapping.categories.slug)) or FALLBACK_SLUG,
        created_at=moment(record.get(mapping.created_at)),
        updated_at=moment(record.get(mapping.updated_at)) or moment(record.get(mapping.created_at)),
        published_at=moment(record.get(mapping.published_at)),
        is_pinned=record.get(mapping.is_pinned) is True,
        is_important=record.get(mapping.is_important) is True,
        status=_text(record.get(mapping.status)),
        view_count=_count(record.get(mapping.view_count)),
        url=mapping.post_address.replace("{id}", quote(key, safe="")) or _text(record.get(mapping.url)),
        attachments=tuple(attachment_from_record(row, mapping.attachments) for row in attachments),
    )


def attachment_from_record(row: Mapping[str, Any], names: Attachments) -> PostAttachment:
    """Build an attachment from a JSON row. The content is in base64, or in hexadecimal like in Postgres."""
    content = _bytes(row.get(names.content))
    return PostAttachment(
        file_name=_text(row.get(names.file_name)).replace("\n", " ")[:200] or "attachment",
        size=len(content) if content is not None else _count(row.get(names.size)),
        mime_type=_text(row.get(names.mime_type)),
        url=_text(row.get(names.url)),
        content=content,
    )


def is_hidden(record: Mapping[str, Any], mapping: PostsMapping) -> bool:
    """Whether a post's status hides the post from readers."""
    return _text(record.get(mapping.status)).lower() in mapping.hidden_statuses


def moment(value: Any) -> datetime | None:
    """Parse a time from ISO text or milliseconds since 1970, by default in UTC. Returns `None` for other values."""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC) if value > 0 else None
        parsed = datetime.fromisoformat(value) if isinstance(value, str) and value else None
    except (ValueError, OverflowError, OSError):
        return None
    return parsed.replace(tzinfo=UTC) if parsed is not None and parsed.tzinfo is None else parsed


def milliseconds(value: datetime | None) -> int:
    """Convert a time to milliseconds since 1970; `None` gives 0."""
    return round(value.timestamp() * 1000) if value is not None else 0


def post_to_bytes(post: Post, attachments: Sequence[PostAttachment]) -> bytes:
    """Convert a post's text and attachments to JSON.

    Pins and counts are left out, because they change without the text.
    """
    stored = {
        "title": post.title,
        "html": post.html,
        "attachments": [
            {
                "fileName": item.file_name,
                "size": item.size,
                "mimeType": item.mime_type,
                "url": item.url,
                "description": item.description,
                "content": base64.b64encode(item.content).decode() if item.content is not None else None,
            }
            for item in attachments
        ],
    }
    return json.dumps(stored, ensure_ascii=False).encode("utf-8", "replace")


def post_from_bytes(content: bytes) -> tuple[str, str, tuple[PostAttachment, ...]]:
    """Read title, HTML and attachments from the JSON written by `post_to_bytes`."""
    stored = json.loads(content)
    return (
        str(stored["title"]),
        str(stored["html"]),
        tuple(
            PostAttachment(
                file_name=item["fileName"],
                size=item["size"],
                mime_type=item["mimeType"],
                url=item["url"],
                description=item["description"],
                content=base64.b64decode(item["content"]) if item["content"] is not None else None,
            )
            for item in stored["attachments"]
        ),
    )


def _text(value: Any) -> str:
    return "" if value is None else storable(value).strip()


def _count(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) or (isinstance(value, str) and value.isdigit()) else 0


def _bytes(value: Any) -> bytes | None:
    if not isinstance(value, str) or not value:
        return None
    try:
        return bytes.fromhex(value[2:]) if value.startswith("\\x") else base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        return None


#: A table name, with or without its schema.
TABLE = re.compile(r"[A-Za-z_][\w$]{0,62}(?:\.[A-Za-z_][\w$]{0,62})?")


class _Columns(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("table", check_fields=False)
    @classmethod
    def _table(cls, name: str) -> str:
        if not TABLE.fullmatch(name):
            raise ValueError("not the name of a table")
        return name


class Categories(_Columns):
    """The database's names for the table with post categories and the columns."""

    table: str = "hof_categories"
    id: str = "id"
    name: str = "name"
    slug: str = "slug"


class Attachments(_Columns):
    """The database's names for the table with attachments and the columns. A row has the content, or the address in
    `url`.
    """

    table: str = "hof_attachments"
    post_id: str = "post_id"
    file_name: str = "file_name"
    url: str = "file_url"
    size: str = "file_size"
    mime_type: str = "mime_type"
    content: str = "content"
    #: The column for the order within a post; without it, ids give the order.
    order: str = "sort_order"


class PostsMapping(_Columns):
    """The database's names for the table with posts and the columns.

    The defaults are the names in source 000 (docs/sources.md).
    """

    table: str = "hof_posts"
    id: str = "id"
    title: str = "title"
    content: str = "content"
    category_id: str = "category_id"
    created_at: str = "created_at"
    updated_at: str = "updated_at"
    published_at: str = "published_at"
    is_pinned: str = "is_pinned"
    is_important: str = "is_important"
    status: str = "status"
    view_count: str = "view_count"
    url: str = "url"
    #: The address for a post on the board, with {id}; "" if the column `url` has addresses.
    post_address: str = ""
    #: Posts in these states are skipped: they are not meant for readers.
    hidden_statuses: tuple[str, ...] = ("draft", "hidden", "private", "archived", "deleted", "trash")
    categories: Categories = Field(default_factory=Categories)
    attachments: Attachments = Field(default_factory=Attachments)

    @field_validator("post_address")
    @classmethod
    def _address(cls, value: str) -> str:
        if value and not (value.startswith(("https://", "http://")) and "{id}" in value):
            raise ValueError("not the address of a web page with {id} for the post's id")
        return value

    def is_table(self, name: str) -> bool:
        """Whether a table name from an event, with or without schema, is the name of this table."""
        return name == self.table or name == self.table.rpartition(".")[2]


def mapping_from(settings: Mapping[str, Any]) -> PostsMapping:
    """Read the mapping from a source's settings. Raises `InvalidInput` with the name of the wrong setting."""
    try:
        return PostsMapping.model_validate(settings)
    except ValidationError as exc:
        error = exc.errors()[0]
        name = ".".join(map(str, error["loc"])) or "the settings"
        raise InvalidInput(f"The columns of the posts cannot be used: {name}: {error['msg']}.") from exc
