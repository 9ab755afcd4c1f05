from __future__ import annotations

import io
import os
import stat
import zipfile
from pathlib import Path

import pytest

from rag.errors import InvalidInput
from rag.ingestion.loaders import sandbox
from rag.ingestion.loaders.archive import Archive
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.sources.folder import count_files, files_at, files_in_archive
from tests import payload_worker

LIMITS = ExtractionLimits(maximum_bytes=3 * 1024 * 1024)


def archive_of(folder: Path, files: dict[str, bytes | str]) -> Path:
    path = folder / "files.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_the_readable_files_of_a_folder_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b/two.txt", "a.md", ".hidden/x.txt", "~$a.docx", "c.exe"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "out.txt").symlink_to("/etc/hostname")
    assert [(file.name, file.place) for file in files_at(tmp_path, LIMITS)] == [
        ("a.md", "a.md"),
        ("two.txt", os.path.join("b", "two.txt")),
    ]
    assert count_files(tmp_path, LIMITS) == 2


def test_an_archive_gives_nested_files_and_refuses_names_that_leave_it(tmp_path: Path) -> None:
    path = archive_of(
        tmp_path,
        {
            "deep/er/a.txt": "A",
            "../evil.txt": "no",
            "/etc/evil.txt": "no",
            "C:\\evil.txt": "no",
            "x\\..\\..\\evil.txt": "no",
            "__MACOSX/._a.txt": "no",
            "inner.zip": "no",
        },
    )
    found = {file.place: file for file in files_at(path, LIMITS)}
    assert found["deep/er/a.txt"].content == b"A"
    refused = [file for file in found.values() if file.refusal]
    assert len(refused) == 4
    assert all(file.content == b"" and "points to a place outside" in file.refusal for file in refused)
    assert count_files(path, LIMITS) == len(found) == 5


def test_bombs_links_and_large_files_are_refused_and_the_others_read(tmp_path: Path) -> None:
    path = archive_of(
        tmp_path, {"bomb.txt": b"\0" * 2 * 1024 * 1024, "large.txt": os.urandom(4 * 1024 * 1024), "a.txt": "A"}
    )
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("link.txt")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    found = {file.name: file for file in files_at(path, LIMITS)}
    assert "far too large" in found["bomb.txt"].refusal
    assert "larger than the limit of 3 MB" in found["large.txt"].refusal
    assert "link" in found["link.txt"].refusal
    assert found["a.txt"].content == b"A"


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_only_the_usual_methods_are_unpacked(tmp_path: Path, method: int) -> None:
    path = archive_of(tmp_path, {"a.txt": "A"})
    with zipfile.ZipFile(path, "a", method) as archive:
        archive.writestr("b.txt", "B" * 1000)
    plain, rare = files_at(path, LIMITS)
    assert plain.content == b"A"
    assert (rare.content, "rare method" in rare.refusal) == (b"", True)


@pytest.mark.parametrize("is_stream", [False, True])
def test_an_archive_with_an_endless_list_is_refused_before_the_list_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_stream: bool
) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(170):
            archive.writestr(f"{number:065000}.txt", "")
    with pytest.raises(InvalidInput, match="too many files; the limit is 10,000"):
        list(files_in_archive(io.BytesIO(path.read_bytes()), LIMITS) if is_stream else files_at(path, LIMITS))
    # In this process, to see that the list is left alone.
    read = count_reads(monkeypatch)
    with path.open("rb") as file, pytest.raises(InvalidInput, match="too many files"):
        Archive(file, LIMITS)
    assert read == []


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lists of files that are read from now on."""
    read: list[int] = []
    original = zipfile.ZipFile._RealGetContents  # type: ignore[attr-defined]

    def counting(archive: zipfile.ZipFile) -> None:
        read.append(1)
        original(archive)

    monkeypatch.setattr(zipfile.ZipFile, "_RealGetContents", counting)
    return read


def test_nothing_of_an_archive_is_parsed_in_the_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def parsed(*_: object) -> None:
        raise AssertionError("the application has opened an archive")

    path = archive_of(tmp_path, {"a.txt": "A"})
    monkeypatch.setattr(zipfile.ZipFile, "__init__", parsed)
    monkeypatch.setattr(zipfile, "_EndRecData", parsed)
    assert [file.content for file in files_at(path, LIMITS)] == [b"A"]
    assert [file.content for file in files_in_archive(io.BytesIO(path.read_bytes()), LIMITS)] == [b"A"]
    assert count_files(path, LIMITS) == 1


def test_a_file_that_ends_the_process_of_its_archive_is_the_only_one_that_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive_of(tmp_path, {"a.txt": "A", "deadly.txt": "D", "e.txt": "E"})
    monkeypatch.setattr(sandbox, "ARCHIVE_WORKER", payload_worker.ARCHIVE_COMMAND)
    first, deadly, last = files_at(path, LIMITS)
    assert (first.content, last.content) == (b"A", b"E")
    assert (deadly.content, deadly.refusal) == (b"", "This file cannot be unpacked.")


def test_a_file_that_holds_more_than_its_entry_says_is_refused(tmp_path: Path) -> None:
    path = archive_of(tmp_path, {"a.txt": b"x" * 5000})
    lie = path.read_bytes().replace((5000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    path.write_bytes(lie)
    (file,) = files_at(path, LIMITS)
    assert file.content == b""
    assert "cannot be unpacked" in file.refusal


def test_korean_names_of_windows_archives_are_read(tmp_path: Path) -> None:
    path = archive_of(tmp_path, {"xxxx.txt": "A"})
    path.write_bytes(path.read_bytes().replace(b"xxxx.txt", "휴가".encode("cp949") + b".txt"))
    assert [file.name for file in files_at(path, LIMITS)] == ["휴가.txt"]


def test_a_damaged_archive_and_one_with_too_many_files_are_refused(tmp_path: Path) -> None:
    path = archive_of(tmp_path, dict.fromkeys((f"{number}.txt" for number in range(10_001)), ""))
    with pytest.raises(InvalidInput, match="10,001 files; the limit is 10,000"):
        list(files_at(path, LIMITS))
    path.write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(InvalidInput, match="This archive is damaged"):
        list(files_at(path, LIMITS))


def test_a_file_of_garbage_is_refused_and_the_others_read(tmp_path: Path) -> None:
    path = archive_of(tmp_path, {"a.txt": "A", "b.txt": "B" * 500})
    content = bytearray(path.read_bytes())
    begin = content.index(b"b.txt") + len("b.txt")
    content[begin : begin + 4] = b"\xff" * 4  # no block of deflate begins like this: zlib raises an error of its own
    path.write_bytes(content)
    good, bad = files_at(path, LIMITS)
    assert (good.content, bad.content) == (b"A", b"")
    assert bad.refusal == "This file cannot be unpacked (error)."
