"""Files of one name in different folders are different documents, and each comes again as its own next version."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.sources.folder import files_at, without_shared_folders
from rag.ingestion.uploads import display_name, title_of_upload, upload_folder
from rag.services import Services
from rag.types import Collection, UploadOptions

NAMES = ("Germany/Leave policy.txt", "France/Leave policy.txt", "Leave policy.txt")


def rule(days: int) -> bytes:
    return f"Leave policy\n\nEvery employee has {days} days of paid leave a year.\n".encode()


@pytest.mark.parametrize(
    ("places", "paths"),
    [
        (["Leave.pdf"], ["Leave.pdf"]),
        (["HR/2026/Leave.pdf"], ["Leave.pdf"]),
        (["HR/Leave.pdf", "HR/Travel.pdf"], ["Leave.pdf", "Travel.pdf"]),
        (["HR/de/Leave.pdf", "HR/fr/Leave.pdf"], ["de/Leave.pdf", "fr/Leave.pdf"]),
        (["HR/de/Leave.pdf", "HR/Leave.pdf"], ["de/Leave.pdf", "Leave.pdf"]),
        (["de/Leave.pdf", "fr/Leave.pdf"], ["de/Leave.pdf", "fr/Leave.pdf"]),
        (["France/Leave.pdf"], ["France/Leave.pdf"]),
        (
            ["HR/Frankreich/Leave.pdf", "HR/Frankreich/2026/Travel.pdf"],
            ["Frankreich/Leave.pdf", "Frankreich/2026/Travel.pdf"],
        ),
        (["H/a.pdf", "HR/a.pdf"], ["H/a.pdf", "HR/a.pdf"]),
        ([], []),
    ],
)
def test_folders_that_all_files_share_say_nothing_but_a_country(places: list[str], paths: list[str]) -> None:
    assert without_shared_folders(places) == paths


@pytest.mark.parametrize(
    ("given", "folder", "name", "title"),
    [
        ("Leave policy.pdf", "", "Leave policy.pdf", "Leave policy"),
        ("Germany/Leave policy.pdf", "Germany", "Leave policy.pdf", "Leave policy (Germany)"),
        ("EU\\Germany\\Leave policy.pdf", "EU/Germany", "Leave policy.pdf", "Leave policy (Germany)"),
        ("../../etc/Leave policy.pdf", "etc", "Leave policy.pdf", "Leave policy (etc)"),
        ("C:\\Users\\Leave policy.pdf", "Users", "Leave policy.pdf", "Leave policy (Users)"),
        ("독일/휴가.pdf", "독일", "휴가.pdf", "휴가 (독일)"),
        ("a\u202eb/Leave.pdf", "ab", "Leave.pdf", "Leave (ab)"),
    ],
)
def test_the_folder_of_a_file_is_taken_from_its_path(given: str, folder: str, name: str, title: str) -> None:
    assert (upload_folder(given), display_name(given)) == (folder, name)
    assert title_of_upload(name, folder) == title


def test_a_very_long_path_fits_into_the_library() -> None:
    folder = upload_folder("/".join(["folder"] * 100) + "/Leave.pdf")
    assert len(folder) <= 200
    assert not folder.startswith("/")


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "archive"])
def test_files_of_a_batch_keep_their_folders(tmp_path: Path, packed: bool) -> None:
    root = tmp_path / "HR"
    for name in NAMES[:2]:
        (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(rule(25))
    where = root
    if packed:
        where = tmp_path / "HR.zip"
        with zipfile.ZipFile(where, "w") as archive:
            for name in NAMES[:2]:
                archive.write(root / name, f"HR/{name}")
    found = list(files_at(where, ExtractionLimits()))
    assert sorted(file.path for file in found) == sorted(NAMES[:2])
    assert all(file.name == "Leave policy.txt" for file in found)


def test_each_is_a_document_of_its_own_and_gets_its_own_versions(
    app_services: Services, collection: Collection
) -> None:
    def add(name: str, days: int) -> None:
        app_services.pipeline.process_document(
            file=rule(days),
            file_name=name,
            tenant_id="demo",
            collection=collection,
            options=UploadOptions(generate_metadata=False),
        )

    def known() -> set[tuple[str, str, int, str]]:
        documents = app_services.documents.list("demo")
        return {(d.upload_folder, d.title, d.version, d.folder) for d in documents if d.status == "completed"}

    for days, name in enumerate(NAMES, 25):
        add(name, days)
    assert known() == {
        ("Germany", "Leave policy (Germany)", 1, "Germany"),
        ("France", "Leave policy (France)", 1, "France"),
        ("", "Leave policy", 1, ""),
    }
    add("France/Leave policy.txt", 30)
    add("Leave policy.txt", 31)
    assert {(folder, version) for folder, _, version, _ in known()} == {("Germany", 1), ("France", 2), ("", 2)}
    # The file that France had before comes back as its earlier version, not as another's.
    assert {folder for _, _, _, folder in known()} == {"Germany", "France", ""}


def test_an_archive_of_one_name_twice_by_command(tmp_path: Path) -> None:
    """As the page and `ingest` read it: the archive's own list decides what is shared."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in NAMES:
            archive.writestr(name, rule(20))
    path = tmp_path / "all.zip"
    path.write_bytes(buffer.getvalue())
    assert sorted(file.path for file in files_at(path, ExtractionLimits())) == sorted(NAMES)
