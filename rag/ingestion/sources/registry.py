"""List the kinds of sources, and make each from the settings of a collection and the installation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rag.ingestion.document_jobs import JobControl, JobQueue
from rag.ingestion.loaders import ExtractionLimits
from rag.ingestion.loaders.attachments import MAXIMUM_BYTES
from rag.ingestion.loaders.sandbox import sandbox_of
from rag.ingestion.sources.board.attachments import AttachmentFiles
from rag.ingestion.sources.board.events import PostEvents
from rag.ingestion.sources.board.posts import mapping_from
from rag.ingestion.sources.board.sample import SampleBoard
from rag.ingestion.sources.board.table import DatabaseRows, PostRows, PostsTable
from rag.ingestion.sources.folder import FolderSource, allowed_folder
from rag.ingestion.sources.runs import BUCKET, GITHUB, GOOGLE_DRIVE, SHAREPOINT, WEBDAV, WEBSITE, SourceMaker, Syncs
from rag.ingestion.sources.sync import Source
from rag.profiles import BOARD_PROFILES, profile_of
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import Originals
from rag.types import Collection

if TYPE_CHECKING:
    from rag.ingestion.sources.github import GitHubSource


def github_source(settings: Settings, owner: str, *, with_forks: bool = False) -> GitHubSource:
    """Make the source of an account's repositories, read with the installation's token."""
    from rag.ingestion.sources.github import GitHub, GitHubSource

    github = GitHub(token=settings.github_token, api_url=settings.github_api_url)
    return GitHubSource(github, owner, with_forks=with_forks)


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


def make_syncs(database: Database, files: Originals, control: JobControl, queue: JobQueue, settings: Settings) -> Syncs:
    """Make the syncs of this installation, with every kind of source."""
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

    def github(collection: Collection, kept: Mapping[str, Any]) -> Source:
        return github_source(settings, str(kept.get("owner", "")), with_forks=kept.get("with_forks") is True)

    def bucket(collection: Collection, kept: Mapping[str, Any]) -> Source:
        # Only collections that follow a bucket wait for the import of its library.
        from rag.ingestion.sources.bucket import Bucket, BucketSource

        own_hosts = settings.own_sync_hosts
        return BucketSource(Bucket.of(kept), ExtractionLimits.of(settings), own_hosts=own_hosts)

    def website(collection: Collection, kept: Mapping[str, Any]) -> Source:
        from rag.ingestion.sources.website import Website, WebsiteSource

        own_hosts = settings.own_sync_hosts
        limits = ExtractionLimits.of(settings)
        reader = sandbox_of(limits).of_tenant(collection.tenant_id)
        return WebsiteSource(Website.of(kept), limits, reader, own_hosts=own_hosts, state=kept.get("state"))

    def webdav(collection: Collection, kept: Mapping[str, Any]) -> Source:
        from rag.ingestion.sources.webdav import WebdavFolder, WebdavSource

        limits = ExtractionLimits.of(settings)
        reader = sandbox_of(limits).of_tenant(collection.tenant_id)
        return WebdavSource(WebdavFolder.of(kept), limits, reader, own_hosts=settings.own_sync_hosts)

    def sharepoint(collection: Collection, kept: Mapping[str, Any]) -> Source:
        from rag.ingestion.sources.sharepoint import Library, SharePointSource

        return SharePointSource(
            Library.of(kept),
            ExtractionLimits.of(settings),
            graph_url=settings.graph_url,
            login_url=settings.microsoft_login_url,
            own_hosts=settings.own_sync_hosts,
            state=kept.get("state"),
        )

    def google_drive(collection: Collection, kept: Mapping[str, Any]) -> Source:
        from rag.ingestion.sources.google_drive import DriveFolder, GoogleDriveSource

        return GoogleDriveSource(
            DriveFolder.of(kept),
            ExtractionLimits.of(settings),
            api_url=settings.google_api_url,
            own_hosts=settings.own_sync_hosts,
            state=kept.get("state"),
        )

    makers: dict[str, SourceMaker] = {
        PostsTable.kind: posts,
        SampleBoard.kind: samples,
        FolderSource.kind: folder,
        GITHUB: github,
        BUCKET: bucket,
        WEBSITE: website,
        SHAREPOINT: sharepoint,
        GOOGLE_DRIVE: google_drive,
        WEBDAV: webdav,
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
