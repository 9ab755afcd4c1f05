"""Unpack a ZIP archive safely. Links, names outside the archive, and files too large when unpacked are refused.

Each archive is unpacked in a separate process, which can read only the archive and returns only bytes and names.
"""

from __future__ import annotations

import codecs
import stat
import sys
import zipfile
from pathlib import PurePosixPath
from typing import IO, Any

from rag.errors import InvalidInput
from rag.ingestion.loaders.format_table import file_formats, is_readable
from rag.ingestion.loaders.values import ExtractionLimits
from rag.language import N_
from rag.sandbox.child_process import Reply, answers_to_parent, bound_child, limit_time, read_message, write_message

#: An archive with more files is refused as a whole.
MOST_FILES = 10_000
#: The most bytes of an archive's file list, which must be read whole to be counted; about 100 bytes per file.
MOST_LIST_BYTES = 10 * 1024 * 1024
#: The methods used by every program. Other methods are rare and need larger decompressors.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: The largest ratio of a file's size to its packed size: zip bombs have 1,000 and more, PDFs and texts up to 100.
MOST_RATIO = 200
#: Smaller files are no bombs, whatever their ratio.
SMALL = 1024 * 1024
READ_AT_ONCE = 1024 * 1024
#: Encodings of names; cp949 needs a separate library.
NAME_ENCODINGS = ("cp437", "cp949")


class Archive:
    """An open archive, with the readable files. Raises `InvalidInput` if the whole archive is unusable.

    Hidden files, nested archives and unreadable formats are left out.
    """

    def __init__(self, file: IO[bytes], limits: ExtractionLimits) -> None:
        self._limits = limits
        try:
            _require_short_list(file)
            self._file = zipfile.ZipFile(file)
            self.entries = _readable_entries(self._file)
        except InvalidInput:
            raise
        except Exception as exc:  # a hostile file may make the library raise anything
            raise InvalidInput("This archive is damaged and cannot be opened. Pack it again.") from exc

    def refusal(self, entry: zipfile.ZipInfo) -> str:
        """Return the reason why a file may not be unpacked, or "" if unpacking is allowed."""
        path = PurePosixPath(name_of(entry))
        if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
            return N_("The name of this file points to a place outside the archive.")
        if stat.S_ISLNK(entry.external_attr >> 16):
            return N_("This entry of the archive is a link, not a file.")
        if entry.flag_bits & 0x1:
            return N_("This file is protected by a password. Make the archive again without a password.")
        if entry.compress_type not in METHODS:
            return N_(
                "This file is compressed with a rare method. Make the archive again with the usual method (deflate)."
            )
        if entry.file_size > self._limits.maximum_bytes:
            return f"This file is larger than the limit of {self._limits.maximum_bytes / 2**20:,.0f} MB."
        if entry.file_size > SMALL and entry.file_size > entry.compress_size * MOST_RATIO:
            return N_("This file becomes far too large when it is unpacked.")
        return ""

    def unpack(self, entry: zipfile.ZipInfo) -> tuple[bytes, str]:
        """Unpack a file. Returns bytes and "", or b"" and the reason why the file cannot be unpacked."""
        if refusal := self.refusal(entry):
            return b"", refusal
        try:
            with self._file.open(entry) as packed:
                return _read(packed, min(self._limits.maximum_bytes, entry.file_size)), ""
        except Exception as exc:
            return b"", N_("This file cannot be unpacked ({error}).").format(error=type(exc).__name__)


def _require_short_list(file: IO[bytes]) -> None:
    """Raise `InvalidInput` if the archive's file list would fill the memory.

    `ZipFile`'s private function reads the list's size, because `ZipFile` will later use the same, possibly forged,
    size.
    """
    end = zipfile._EndRecData(file)  # type: ignore[attr-defined]  # noqa: SLF001, RUF100
    if end is not None and end[zipfile._ECD_SIZE] > MOST_LIST_BYTES:  # type: ignore[attr-defined]  # noqa: SLF001, RUF100
        raise InvalidInput(f"This archive has too many files; the limit is {MOST_FILES:,}. Pack it in parts.")


def _readable_entries(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > MOST_FILES:
        raise InvalidInput(f"This archive has {len(entries):,} files; the limit is {MOST_FILES:,}. Pack it in parts.")
    readable = []
    for entry in entries:
        path = PurePosixPath(name_of(entry))
        if is_readable(path) and not any(part.startswith("__MACOSX") for part in path.parts):
            readable.append(entry)
    return sorted(readable, key=name_of)


def name_of(entry: zipfile.ZipInfo) -> str:
    """Return the entry's name with plain slashes. Names written by Korean Windows are decoded."""
    name = entry.filename
    if not entry.flag_bits & 0x800:
        try:
            name = name.encode("cp437").decode("cp949")
        except (UnicodeEncodeError, UnicodeDecodeError):
            name = entry.filename
    return name.replace("\\", "/")


def _read(packed: IO[bytes], most: int) -> bytes:
    """Read up to `most` bytes. Raises `BadZipFile` if the unpacked file is longer."""
    parts = []
    remaining = most + 1
    while remaining > 0 and (part := packed.read(min(remaining, READ_AT_ONCE))):
        parts.append(part)
        remaining -= len(part)
    if remaining <= 0:
        raise zipfile.BadZipFile("longer than its entry says")
    return b"".join(parts)


def main(descriptor: int, memory_mb: int, order: str) -> None:
    """Serve tasks for the archive open under the file descriptor `descriptor`, until stdin ends."""
    answers = answers_to_parent()
    for encoding in NAME_ENCODINGS:
        codecs.lookup(encoding)
    file_formats()  # imports modules
    archive: Archive | None = None
    with open(descriptor, "rb") as file:
        write_message(answers, "means", bound_child(order, memory_mb))
        while (task := read_message(sys.stdin.buffer)) is not None:
            limits = ExtractionLimits(**task.values.pop("limits"))
            limit_time(limits.timeout_seconds)
            try:
                archive = archive or Archive(file, limits)
                values, blob = perform(task, archive)
                write_message(answers, "result", values, blob)
            except InvalidInput as exc:
                write_message(answers, "error", {"error": InvalidInput.__name__, "message": exc.message})


def perform(task: Reply, archive: Archive) -> tuple[dict[str, Any], bytes]:
    """Perform a task ("list" or "unpack") and return values and bytes."""
    if task.kind == "list":
        return {"names": [name_of(entry) for entry in archive.entries]}, b""
    if task.kind == "unpack":
        content, refusal = archive.unpack(archive.entries[task.values["number"]])
        return {"refusal": refusal}, content
    raise ValueError(f"no task is called {task.kind}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
