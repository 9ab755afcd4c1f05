"""A folder of files and a GitHub account as sources that a collection is kept equal to (source 001, "Incremental
Updates"): files by their hash, repositories by when they were last updated.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rag.errors import DocumentError, InvalidInput
from rag.ingestion.extracted import ExtractionLimits
from rag.ingestion.loaders import MIME_TYPES, kind_of
from rag.ingestion.loaders.folder import FoundFile, count_files, files_at
from rag.ingestion.loaders.github import GitHub, Repository
from rag.ingestion.sync import SourceContent, SourceItem
from rag.settings import Settings


class FolderSource:
    """The readable files of a folder and the folders in it. Implements `Source`."""

    kind = "folder"

    def __init__(self, folder: Path, limits: ExtractionLimits) -> None:
        if not folder.is_dir():
            raise InvalidInput(f"There is no folder {folder}.")
        self._folder = folder
        self._limits = limits

    def items(self) -> Iterator[SourceItem]:
        """Every file, known by its place in the folder."""
        for found in files_at(self._folder, self._limits):
            yield SourceItem(
                key=found.place,
                updated_at=None,
                # A file that cannot be read is never the same: it is looked at again each time.
                hash="" if found.refusal else hashlib.sha256(found.content).hexdigest(),
                title=found.name,
                load=partial(_file_content, found),
            )

    def expected(self) -> int:
        """As many as there are now."""
        return count_files(self._folder, self._limits)


class GitHubSource:
    """The repositories of an account, each its particulars and README. Implements `Source`."""

    kind = "github"

    def __init__(self, github: GitHub, owner: str, *, with_forks: bool = False) -> None:
        self._github = github
        self._owner = owner
        self._with_forks = with_forks

    def items(self) -> Iterator[SourceItem]:
        """Every repository; its README is read only when it was updated since."""
        for repository in self._github.repositories(self._owner, with_forks=self._with_forks):
            yield SourceItem(
                key=repository.full_name,
                updated_at=repository.updated_at,
                hash="",
                title=repository.name,
                load=partial(self._content, repository),
                metadata={"repository": repository.metadata()},
            )

    def expected(self) -> int:
        """Not known: forks are left out of the list."""
        return 0

    def _content(self, repository: Repository) -> SourceContent:
        return SourceContent(
            file_name=f"{repository.name}.md",
            content=self._github.source_of(repository),
            mime_type=MIME_TYPES["markdown"],
            title=repository.name,
            metadata={"is_named": True},
        )


def allowed_folder(path: str, settings: Settings) -> Path:
    """A folder that collections of any tenant may follow. Raises `InvalidInput` for one outside RAG_SYNC_FOLDERS."""
    folder = Path(path).expanduser().resolve()
    roots = [Path(root).expanduser().resolve() for root in settings.sync_folders.split(os.pathsep) if root.strip()]
    if not any(folder == root or root in folder.parents for root in roots):
        raise InvalidInput("This folder is none of RAG_SYNC_FOLDERS. Whoever runs the server can add it there.")
    return folder


def _file_content(found: FoundFile) -> SourceContent:
    if found.refusal:
        raise DocumentError(found.refusal)
    kind = kind_of(found.content, found.name)
    return SourceContent(file_name=found.name, content=found.content, mime_type=MIME_TYPES[kind])
