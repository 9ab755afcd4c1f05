"""Which table and columns hold the posts of a board. The defaults are those of source 000's `hof_posts`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rag.errors import InvalidInput

#: A table's name, with or without its schema.
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
    """The table of categories."""

    table: str = "hof_categories"
    id: str = "id"
    name: str = "name"
    slug: str = "slug"


class Attachments(_Columns):
    """The table of attachments. A row has its file's bytes in `content`, or where they are in `url`."""

    table: str = "hof_attachments"
    post_id: str = "post_id"
    file_name: str = "file_name"
    url: str = "file_url"
    size: str = "file_size"
    mime_type: str = "mime_type"
    content: str = "content"


class PostsMapping(_Columns):
    """The table of posts and the tables beside it; one that does not exist is done without."""

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
    #: Posts of these are no posts: people are not meant to read them.
    hidden_statuses: tuple[str, ...] = ("draft", "hidden", "private", "archived", "deleted", "trash")
    categories: Categories = Field(default_factory=Categories)
    attachments: Attachments = Field(default_factory=Attachments)

    def is_table(self, name: str) -> bool:
        """Whether an event names this table, with or without its schema."""
        return name == self.table or name == self.table.rpartition(".")[2]


def mapping_from(settings: Mapping[str, Any]) -> PostsMapping:
    """The mapping that a collection's source keeps. Raises `InvalidInput` naming the setting that does not fit."""
    try:
        return PostsMapping.model_validate(settings)
    except ValidationError as exc:
        error = exc.errors()[0]
        name = ".".join(map(str, error["loc"])) or "the settings"
        raise InvalidInput(f"The columns of the posts cannot be used: {name}: {error['msg']}.") from exc
