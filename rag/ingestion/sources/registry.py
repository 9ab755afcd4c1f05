"""Assemble an installation's sources, and the syncs which read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag.ingestion.document_jobs import JobControl, JobQueue
from rag.ingestion.loaders import ExtractionLimits
from rag.ingestion.sources.folder import FolderSource, allowed_folder
from rag.ingestion.sources.runs import SourceEvents, SourceMaker, Syncs
from rag.ingestion.sources.sync import Source
from rag.profiles import BOARD_PROFILES
from rag.settings import Settings
from rag.storage.files import Originals
from rag.types import Collection


def make_syncs(
    files: Originals,
    control: JobControl,
    queue: JobQueue,
    settings: Settings,
    *,
    events: SourceEvents,
    makers: Mapping[str, SourceMaker],
) -> Syncs:
    """Make the syncs for folders and for the sources in `makers`. `events` follows the boards' source."""

    def folder(collection: Collection, kept: Mapping[str, Any]) -> Source:
        return FolderSource(allowed_folder(str(kept.get("path", "")), settings), ExtractionLimits.of(settings))

    return Syncs(
        files,
        control,
        queue,
        events,
        makers={FolderSource.kind: folder, **makers},
        usual=dict.fromkeys(BOARD_PROFILES, events.kind),
    )
