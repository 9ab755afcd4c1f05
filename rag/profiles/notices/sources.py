"""The sources for a notice board: a table with posts, and the sample board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag.ingestion.loaders.attachments import MAXIMUM_BYTES
from rag.ingestion.sources.runs import SourceMaker
from rag.ingestion.sources.sync import Source
from rag.profiles import profile_of
from rag.profiles.notices.attachments import AttachmentFiles
from rag.profiles.notices.posts import mapping_from
from rag.profiles.notices.sample import SampleBoard
from rag.profiles.notices.table import DatabaseRows, PostRows, PostsTable
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection


def board_makers(settings: Settings, database: Database) -> Mapping[str, SourceMaker]:
    """Return how to make each kind of board source."""
    attachment_files = AttachmentFiles(
        tuple(filter(None, (url.strip() for url in settings.attachment_urls.split(","))))
    )

    def posts(collection: Collection, kept: Mapping[str, Any]) -> Source:
        profile = profile_of(collection)
        return PostsTable(
            post_rows(settings, database),
            mapping_from(kept),
            files=attachment_files,
            maximum_attachment_bytes=profile.reading.maximum_attachment_bytes or MAXIMUM_BYTES,
        )

    def sample(collection: Collection, kept: Mapping[str, Any]) -> Source:
        return SampleBoard()

    return {PostsTable.kind: posts, SampleBoard.kind: sample}


def post_rows(settings: Settings, database: Database) -> PostRows:
    """Return access to the posts' rows: in a separate database, a Supabase project, else the application's database.

    Raises `SettingsError`.
    """
    if settings.posts_database_url:
        return DatabaseRows(settings.posts_database_url, is_own_database=False)
    if settings.posts_supabase_url:
        # Imports for half a second, only needed here.
        from rag.profiles.notices.rest import RestRows

        return RestRows(settings.posts_supabase_url, settings.posts_supabase_key)
    return DatabaseRows(database.conninfo, is_own_database=True)
