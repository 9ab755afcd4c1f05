"""The sources of notice boards: a table with posts, and the sample board."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rag.ingestion.loaders.attachments import MAXIMUM_BYTES
from rag.ingestion.sources.runs import SAMPLES, SourceMaker
from rag.ingestion.sources.sync import Source, SourceItem
from rag.profiles import profile_of
from rag.profiles.notices.attachments import AttachmentFiles
from rag.profiles.notices.posts import Post, PostAttachment, mapping_from, moment
from rag.profiles.notices.table import DatabaseRows, PostRows, PostsTable, item_from_post
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection

SAMPLE_FOLDER = Path(__file__).parents[2] / "samples" / "board"


class SampleBoard:
    """The source for the sample posts."""

    kind = SAMPLES

    def items(self) -> Iterator[SourceItem]:
        for post in sample_posts():
            yield item_from_post(post, files=AttachmentFiles())

    def expected(self) -> int:
        return len(sample_posts())


def sample_posts() -> list[Post]:
    listed = tomllib.loads((SAMPLE_FOLDER / "posts.toml").read_text("utf-8"))
    return [_post(entry, listed["categories"]) for entry in listed["posts"]]


def _post(entry: Mapping[str, Any], categories: Mapping[str, str]) -> Post:
    created_at = moment(entry["created_at"])
    return Post(
        id=entry["id"],
        title=entry["title"],
        html=(SAMPLE_FOLDER / entry["file"]).read_text("utf-8"),
        category_id=entry["category"],
        category_slug=entry["category"],
        category_name=categories[entry["category"]],
        created_at=created_at,
        updated_at=created_at,
        published_at=created_at,
        is_pinned=entry.get("pinned", False),
        is_important=entry.get("important", False),
        status="published",
        view_count=entry.get("views", 0),
        attachments=tuple(
            PostAttachment(file_name=item["name"], size=item["size"], description=item.get("description", ""))
            for item in entry.get("attachments", ())
        ),
    )


def board_makers(settings: Settings, database: Database) -> Mapping[str, SourceMaker]:
    """Return a function for each kind of source, which makes the source for a collection."""
    attachment_files = AttachmentFiles(
        tuple(filter(None, (url.strip() for url in settings.attachment_urls.split(","))))
    )

    def posts(collection: Collection, stored: Mapping[str, Any]) -> Source:
        profile = profile_of(collection)
        return PostsTable(
            post_rows(settings, database),
            mapping_from(stored),
            files=attachment_files,
            maximum_attachment_bytes=profile.reading.maximum_attachment_bytes or MAXIMUM_BYTES,
        )

    def sample(collection: Collection, stored: Mapping[str, Any]) -> Source:
        return SampleBoard()

    return {PostsTable.kind: posts, SampleBoard.kind: sample}


def post_rows(settings: Settings, database: Database) -> PostRows:
    """Return access to the tables with posts. Raises `SettingsError`.

    They are in the configured database or Supabase project, else in the application's database.
    """
    if settings.posts_database_url:
        return DatabaseRows(settings.posts_database_url, is_own_database=False)
    if settings.posts_supabase_url:
        # Imports for half a second, only needed here.
        from rag.profiles.notices.rest import RestRows

        return RestRows(settings.posts_supabase_url, settings.posts_supabase_key)
    return DatabaseRows(database.conninfo, is_own_database=True)
