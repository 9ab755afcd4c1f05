"""List the kinds of sources, and make each from the settings of a collection and the installation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag.ingestion.document_jobs import JobControl, JobQueue
from rag.ingestion.loaders import ExtractionLimits
from rag.ingestion.loaders.attachments import MAXIMUM_BYTES
from rag.ingestion.sources.board.attachments import AttachmentFiles
from rag.ingestion.sources.board.events import PostEvents
from rag.ingestion.sources.board.posts import mapping_from
from rag.ingestion.sources.board.sample import SampleBoard
from rag.ingestion.sources.board.table import DatabaseRows, PostRows, PostsTable
from rag.ingestion.sources.folder import FolderSource, allowed_folder
from rag.ingestion.sources.runs import SourceMaker, Syncs
from rag.ingestion.sources.sync import Source
from rag.profiles import BOARD_PROFILES, profile_of
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import Originals
from rag.types import Collection


def post_rows(settings: Settings, database: Database) -> PostRows:
    """Return where tables of posts are: a database of their own, a Supabase project, else the application's database.

    Raises `SettingsError`.
    """
    if settings.posts_database_url:
        return DatabaseRows(settings.posts_database_url, is_own_database=False)
    if settings.posts_supabase_url:
        # Imports for half a second, only needed here.
        from rag.ingestion.sources.board.rest import RestRows

        return RestRows(settings.posts_supabase_url, settings.posts_supabase_key)
    return DatabaseRows(database.conninfo, is_own_database=True)


def make_syncs(
    database: Database,
    files: Originals,
    control: JobControl,
    queue: JobQueue,
    settings: Settings,
    others: Mapping[str, SourceMaker],
) -> Syncs:
    """Make the syncs for this installation: posts, folders, and `others`, the sources from integrations."""
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

    def samples(collection: Collection, kept: Mapping[str, Any]) -> Source:
        return SampleBoard()

    def folder(collection: Collection, kept: Mapping[str, Any]) -> Source:
        return FolderSource(allowed_folder(str(kept.get("path", "")), settings), ExtractionLimits.of(settings))

    makers: dict[str, SourceMaker] = {
        PostsTable.kind: posts,
        SampleBoard.kind: samples,
        FolderSource.kind: folder,
        **others,
    }
    return Syncs(
        database,
        files,
        control,
        queue,
        PostEvents(database),
        makers=makers,
        usual=dict.fromkeys(BOARD_PROFILES, PostsTable.kind),
    )
