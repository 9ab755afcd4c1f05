"""Read the files of a folder or a ZIP archive, none of which can leave it or unpack without end."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from rag.errors import DocumentError, InvalidInput
from rag.ingestion.loaders import ENDINGS, MIME_TYPES, ExtractionLimits, kind_of
from rag.ingestion.sources.sync import SourceContent, SourceItem
from rag.settings import Settings

#: An archive with more files is refused as a whole.
MOST_FILES = 10_000
#: The list of files at an archive's end is read as a whole before they can be counted: some 100 bytes for each.
MOST_LIST_BYTES = 10 * 1024 * 1024
#: What every program packs with. The others are rare, and their decompressors larger.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Unpacked, an archive may have at most so many bytes, and a file so many times its packed size: zip bombs have
#: 1,000 and more, PDFs and texts up to 100.
MOST_BYTES = 4 * 1024**3
MOST_RATIO = 200
#: Below this many bytes no ratio is a bomb.
SMALL = 1024 * 1024
READ_AT_ONCE = 1024 * 1024


@dataclass(frozen=True)
class FoundFile:
    """A file that could be ingested: its name, its place for the reader, and its bytes or why there are none."""

    name: str
    place: str
    content: bytes
    refusal: str = ""


def files_at(path: Path, limits: ExtractionLimits) -> Iterator[FoundFile]:
    """Yield the readable files at a path by name: one file, a folder's, or a ZIP archive's.

    Hidden files, links out of the folder and archives within archives are left out; a file that may not be unpacked
    comes with its `refusal`. Raises `InvalidInput` when the archive as a whole cannot be used.
    """
    if path.is_dir():
        yield from _files_in_folder(path, limits)
    elif zipfile.is_zipfile(path) and path.suffix.lower() == ".zip":
        yield from files_in_archive(path, limits)
    else:
        yield _found(path, path.name, limits)


def count_files(path: Path, limits: ExtractionLimits) -> int:
    """Count the files of `files_at` without reading them."""
    if path.is_dir():
        return sum(1 for _ in _paths(path))
    if zipfile.is_zipfile(path) and path.suffix.lower() == ".zip":
        with _opened(path) as archive:
            return len(_entries(archive))
    return 1


def _paths(folder: Path) -> Iterator[Path]:
    root = folder.resolve()
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if any(part.startswith((".", "~$")) for part in parts) or path.suffix.lower() not in ENDINGS:
            continue
        if path.is_file() and path.resolve().is_relative_to(root):
            yield path


def _files_in_folder(folder: Path, limits: ExtractionLimits) -> Iterator[FoundFile]:
    for path in _paths(folder):
        yield _found(path, str(path.relative_to(folder)), limits)


def _found(path: Path, place: str, limits: ExtractionLimits) -> FoundFile:
    try:
        if path.stat().st_size > limits.maximum_bytes:
            return FoundFile(path.name, place, b"", _too_large(limits))
        return FoundFile(path.name, place, path.read_bytes())
    except OSError as exc:
        return FoundFile(path.name, place, b"", f"This file cannot be opened ({exc.strerror}).")


def _opened(source: Path | IO[bytes]) -> zipfile.ZipFile:
    try:
        _require_short_list(source)
        return zipfile.ZipFile(source)
    except (zipfile.BadZipFile, OSError, ValueError) as exc:
        raise InvalidInput("This archive is damaged and cannot be opened. Pack it again.") from exc


def _require_short_list(source: Path | IO[bytes]) -> None:
    """Raise `InvalidInput` for an archive whose list of files alone would fill the memory.

    The end of the archive is read by the same function that `ZipFile` reads it with: there are archives that have two.
    """
    with nullcontext(source) if not isinstance(source, Path) else source.open("rb") as file:
        end = zipfile._EndRecData(file)  # type: ignore[attr-defined]  # noqa: SLF001, RUF100
        if end is not None and end[zipfile._ECD_SIZE] > MOST_LIST_BYTES:  # type: ignore[attr-defined]  # noqa: SLF001, RUF100
            raise InvalidInput(f"This archive has too many files; the limit is {MOST_FILES:,}. Pack it in parts.")


def _entries(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > MOST_FILES:
        raise InvalidInput(f"This archive has {len(entries):,} files; the limit is {MOST_FILES:,}. Pack it in parts.")
    wanted = []
    for entry in entries:
        path = PurePosixPath(_name(entry))
        if path.suffix.lower() in ENDINGS and not any(
            p.startswith((".", "~$", "__MACOSX")) and p != ".." for p in path.parts
        ):
            wanted.append(entry)
    return sorted(wanted, key=_name)


def files_in_archive(source: Path | IO[bytes], limits: ExtractionLimits) -> Iterator[FoundFile]:
    """Yield the readable files of a ZIP archive by name, as `files_at` does."""
    unpacked = 0
    with _opened(source) as archive:
        for entry in _entries(archive):
            place = _name(entry)
            name = PurePosixPath(place).name
            refusal = _refusal(entry, limits)
            if refusal:
                yield FoundFile(name, place, b"", refusal)
                continue
            try:
                with archive.open(entry) as packed:
                    content = _read(packed, min(limits.maximum_bytes, entry.file_size))
            except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError, ValueError) as exc:
                yield FoundFile(name, place, b"", f"This file cannot be unpacked ({type(exc).__name__}).")
                continue
            unpacked += len(content)
            if unpacked > MOST_BYTES:
                raise InvalidInput("This archive unpacks to more than 4 GB. Pack it in parts.")
            yield FoundFile(name, place, content)


def _name(entry: zipfile.ZipInfo) -> str:
    """Return the entry's name with plain slashes, decoding names written by Korean Windows."""
    name = entry.filename
    if not entry.flag_bits & 0x800:
        try:
            name = name.encode("cp437").decode("cp949")
        except (UnicodeEncodeError, UnicodeDecodeError):
            name = entry.filename
    return name.replace("\\", "/")


def _refusal(entry: zipfile.ZipInfo, limits: ExtractionLimits) -> str:
    """Say why an entry is not unpacked; empty when it is."""
    path = PurePosixPath(_name(entry))
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        return "Its name points out of the archive."
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "It is a link, not a file."
    if entry.flag_bits & 0x1:
        return "It is protected by a password. Pack it without one."
    if entry.compress_type not in METHODS:
        return "It is packed by a rare method. Pack the archive with the usual one (deflate)."
    if entry.file_size > limits.maximum_bytes:
        return _too_large(limits)
    if entry.file_size > SMALL and entry.file_size > entry.compress_size * MOST_RATIO:
        return "It unpacks to far more than it holds."
    return ""


def _read(packed: IO[bytes], most: int) -> bytes:
    """Read no more bytes than the entry declares, whatever is packed in it."""
    parts = []
    left = most + 1
    while left > 0 and (part := packed.read(min(left, READ_AT_ONCE))):
        parts.append(part)
        left -= len(part)
    if left <= 0:
        raise zipfile.BadZipFile("longer than its entry says")
    return b"".join(parts)


def _too_large(limits: ExtractionLimits) -> str:
    return f"It is larger than the limit of {limits.maximum_bytes / 2**20:,.0f} MB."


class FolderSource:
    """A source of the readable files of a folder and the folders in it."""

    kind = "folder"

    def __init__(self, folder: Path, limits: ExtractionLimits) -> None:
        if not folder.is_dir():
            raise InvalidInput(f"There is no folder {folder}.")
        self._folder = folder
        self._limits = limits

    def items(self) -> Iterator[SourceItem]:
        """Yield every file, identified by its path in the folder."""
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
        """Count the files there are now."""
        return count_files(self._folder, self._limits)


def allowed_folder(path: str, settings: Settings) -> Path:
    """Return a folder that any tenant's collection may follow. Raises `InvalidInput` outside RAG_SYNC_FOLDERS."""
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
