"""Read the files in a folder or a ZIP archive. Huge files, and links and names which point outside, are refused."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import IO

from rag.errors import DocumentError, InvalidInput
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.format_table import file_formats, is_hidden, is_readable
from rag.ingestion.loaders.sandbox import sandbox_of
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.sources.sync import SourceContent, SourceItem
from rag.retrieval.countries import countries_in
from rag.settings import Settings

#: The most bytes in an unpacked archive.
MOST_BYTES = 4 * 1024**3


@dataclass(frozen=True)
class FoundFile:
    """A file to ingest: name, path for display, and content, or the reason why there is no content."""

    name: str
    place: str
    content: bytes
    refusal: str = ""
    #: Its name below the folders shared by all files in the batch: "Germany/Leave policy.pdf".
    path: str = ""


def files_at(path: Path, limits: ExtractionLimits) -> Iterator[FoundFile]:
    """Yield the readable files at a path, sorted by name. The path is a file, a folder, or a ZIP archive.

    Hidden files, links out of the folder, and archives within archives are left out. If a file may not be unpacked,
    `refusal` says why. Raises `InvalidInput` if a whole archive is unusable.
    """
    if path.is_dir():
        yield from _files_in_folder(path, limits)
    elif path.suffix.lower() == ".zip":
        yield from files_in_archive(path, limits)
    else:
        yield _read_file(path, path.name, limits)


def count_files(path: Path, limits: ExtractionLimits) -> int:
    """Count the files of `files_at` without reading them."""
    if path.is_dir():
        return sum(1 for _ in _paths(path))
    if path.suffix.lower() == ".zip":
        with sandbox_of(limits).archive(path) as archive:
            return len(archive.names())
    return 1


def unreadable_files(path: Path) -> list[str]:
    """Return the files which `files_at` leaves out because their format is unknown. Hidden files are not listed."""
    if not path.is_dir():
        return []
    names = (file.relative_to(path) for file in sorted(path.rglob("*")) if file.is_file())
    return [str(name) for name in names if not is_hidden(name) and not is_readable(name)]


def _paths(folder: Path) -> Iterator[Path]:
    root = folder.resolve()
    for path in sorted(folder.rglob("*")):
        if is_readable(path.relative_to(folder)) and path.is_file() and path.resolve().is_relative_to(root):
            yield path


def _files_in_folder(folder: Path, limits: ExtractionLimits) -> Iterator[FoundFile]:
    files = list(_paths(folder))
    paths = without_shared_folders([path.relative_to(folder).as_posix() for path in files])
    for path, short in zip(files, paths, strict=True):
        yield replace(_read_file(path, str(path.relative_to(folder)), limits), path=short)


def _read_file(path: Path, place: str, limits: ExtractionLimits) -> FoundFile:
    try:
        if path.stat().st_size > limits.maximum_bytes:
            return FoundFile(path.name, place, b"", _too_large(limits), path.name)
        return FoundFile(path.name, place, path.read_bytes(), path=path.name)
    except OSError as exc:
        return FoundFile(path.name, place, b"", f"This file cannot be opened ({exc.strerror}).", path.name)


def without_shared_folders(places: Sequence[str]) -> list[str]:
    """Remove the leading folders which all paths share, like the only folder in a ZIP file. Country names stay."""
    parts = [PurePosixPath(place).parts for place in places]
    levels = zip(*(part[:-1] for part in parts), strict=False)
    shared = len(list(takewhile(lambda level: len(set(level)) == 1 and not countries_in(level[0]), levels)))
    return ["/".join(part[shared:]) for part in parts]


def files_in_archive(source: Path | IO[bytes], limits: ExtractionLimits, *, tenant_id: str = "") -> Iterator[FoundFile]:
    """Yield the readable files in a ZIP archive by name, like `files_at`. A separate process unpacks them."""
    unpacked = 0
    with sandbox_of(limits).archive(source, tenant_id=tenant_id) as archive:
        places = archive.names()
        for number, (place, path) in enumerate(zip(places, without_shared_folders(places), strict=True)):
            content, refusal = archive.unpack(number)
            unpacked += len(content)
            if unpacked > MOST_BYTES:
                raise InvalidInput("This archive unpacks to more than 4 GB. Pack it in parts.")
            yield FoundFile(PurePosixPath(place).name, place, content, refusal, path)


def _too_large(limits: ExtractionLimits) -> str:
    return f"This file is larger than the limit of {limits.maximum_bytes / 2**20:,.0f} MB."


class FolderSource:
    """A source with the readable files in a folder and its subfolders."""

    kind = "folder"

    def __init__(self, folder: Path, limits: ExtractionLimits) -> None:
        if not folder.is_dir():
            raise InvalidInput(f"There is no folder {folder}.")
        self._folder = folder
        self._limits = limits

    def items(self) -> Iterator[SourceItem]:
        """Yield every file. The path in the folder identifies a file."""
        for file in files_at(self._folder, self._limits):
            yield SourceItem(
                key=file.place,
                updated_at=None,
                # An unreadable file never counts as unchanged: it is tried again each time.
                hash="" if file.refusal else hashlib.sha256(file.content).hexdigest(),
                title=file.name,
                load=partial(_file_content, file),
            )

    def expected(self) -> int:
        """Count the files in the folder."""
        return count_files(self._folder, self._limits)


def allowed_folder(path: str, settings: Settings) -> Path:
    """Return a folder which collections of any tenant may import. Raises `InvalidInput` outside RAG_SYNC_FOLDERS."""
    folder = Path(path).expanduser().resolve()
    roots = [Path(root).expanduser().resolve() for root in settings.sync_folders.split(os.pathsep) if root.strip()]
    if not any(folder == root or root in folder.parents for root in roots):
        raise InvalidInput(
            "This folder may not be followed. Ask the operator of this installation to allow it (RAG_SYNC_FOLDERS)."
        )
    return folder


def _file_content(file: FoundFile) -> SourceContent:
    if file.refusal:
        raise DocumentError(file.refusal)
    kind = kind_of(file.content, file.name)
    return SourceContent(file_name=file.name, content=file.content, mime_type=file_formats().by_kind[kind].media_type)
