"""Folders of Google Drive that a collection is kept equal to, through google-auth and httpx against a stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag.errors import InvalidInput, NotFound, ProviderKeyRejected, ProviderQuotaExhausted, RagError
from rag.ingestion.loaders.format_table import file_formats
from rag.ingestion.loaders.values import ExtractionLimits
from rag.integrations.sources.google_drive.google_drive import DriveFolder, GoogleDriveSource
from rag.services import Services, program_of
from rag.settings import Settings
from rag.storage.collections import find_collections
from rag.types import Collection
from tests.ingestion.sheet_files import rows_of, xlsx_file
from tests.integrations.sources.google_drive.drive_standin import DOCUMENT, FOLDER, ROOT, DriveStandin

PDF = b"%PDF-1.7\n%%EOF\n"
LIMITS = ExtractionLimits(maximum_bytes=100_000)
WHERE = {"folder": f"https://drive.google.com/drive/u/0/folders/{ROOT}?usp=sharing"}


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DriveStandin]:
    server = DriveStandin(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    with server:
        yield server


@pytest.fixture
def settings(settings: Settings, drive: DriveStandin) -> Settings:
    return replace(
        settings, sync_hosts=drive.host, integration_variables={"RAG_GOOGLE_API_URL": f"https://{drive.host}"}
    )


def source_of(drive: DriveStandin, **changes: Any) -> GoogleDriveSource:
    folder = DriveFolder.of({**WHERE, "key": drive.key, **changes})
    own_hosts = frozenset({drive.host})
    return GoogleDriveSource(
        folder, LIMITS, api_url=f"https://{drive.host}", own_hosts=own_hosts, wait=lambda seconds: None
    )


def group(name: str) -> dict[str, Any]:
    return {"type": "group", "displayName": name, "emailAddress": f"{name.lower()}@example.com"}


def test_a_folder_is_followed_by_what_changed(
    app_services: Services, collection: Collection, drive: DriveStandin
) -> None:
    syncs, admin = app_services.syncs, program_of("demo")
    drive.put("file-leave", "leave.md", b"# Leave\n\nTwenty-eight days.")
    drive.put("folder-pay", "Pay", mime=FOLDER)
    drive.put("file-pay", "pay.txt", b"Paid on the 25th.", above="folder-pay", mime="text/plain")
    drive.put("file-travel", "Travel rules", PDF, mime=DOCUMENT)
    drive.put("file-run", "run.exe", b"no", mime="application/octet-stream")
    drive.put("file-other", "other.md", b"no", above="elsewhere-folder")
    secrets = {"key": drive.key}
    with pytest.raises(ProviderKeyRejected, match="rejected the key"):
        syncs.try_source(admin, collection, "google_drive", WHERE, secrets={"key": drive.key_of(drive.new_pair())})
    where = {**WHERE, "subject": "ada@example.com"}
    names = ["leave.md", "pay.txt", "Travel rules"]
    assert syncs.try_source(admin, collection, "google_drive", where, secrets=secrets) == names
    assert drive.acted_as == ["ada@example.com"]
    syncs.set_source(admin, collection, "google_drive", where, secrets=secrets)
    (kept,) = syncs.sources(collection)
    assert "PRIVATE KEY" not in f"{kept!r} {kept.secrets} {kept.settings}"
    first = syncs.sync_now(admin, collection)
    assert (first.added, first.failed) == (3, 0)
    made = {document.title: document for document in app_services.documents.list("demo")}
    assert made["Travel rules"].file_name == "Travel rules.pdf"
    assert made["Leave"].metadata["pageUrl"] == "https://drive.google.com/file/d/file-leave/view"
    drive.asked.clear()
    assert syncs.sync_now(admin, collection).unchanged == 3
    assert "/files" not in drive.asked, "nothing is listed where nothing changed"
    assert sorted(drive.read) == sorted(names), "each was read once"

    drive.put("file-leave", "leave.md", b"# Leave\n\nThirty days.")
    drive.remove("file-pay")
    drive.put("file-trips", "trips.md", b"# Trips\n\nBy train.", above="folder-pay")
    drive.put("file-other", "other.md", b"no", above="elsewhere-folder")
    drive.asked.clear()
    again = syncs.sync_now(admin, collection)
    assert (again.updated, again.added, again.removed, again.unchanged) == (1, 1, 1, 1)
    assert "/files" not in drive.asked
    drive.put("folder-new", "More", mime=FOLDER)
    assert syncs.sync_now(admin, collection).unchanged == 3
    assert "/files" in drive.asked, "a folder may have come with its files"
    drive.has_forgotten = True
    assert syncs.sync_now(admin, collection).unchanged == 3


def test_who_may_read_is_carried_over_as_groups(
    app_services: Services, collection: Collection, drive: DriveStandin
) -> None:
    syncs, admin = app_services.syncs, program_of("demo")
    drive.put("file-open", "open.md", b"For all of HR and for managers.")
    drive.put("file-narrow", "narrow.md", b"For HR alone.")
    drive.put("file-wide", "wide.md", b"For everybody in the company.")
    drive.permissions = {
        ROOT: [group("HR"), {"type": "user", "displayName": "Ada"}, group("Managers")],
        "file-narrow": [group("HR")],
        "file-wide": [{"type": "domain", "domain": "example.com"}],
    }
    syncs.set_source(admin, collection, "google_drive", {**WHERE, "readers": True}, secrets={"key": drive.key})
    report = syncs.sync_now(admin, collection)
    assert report.added == 2
    assert report.problems[0].startswith("Documents left out because some readers")
    assert report.problems[0].endswith(": 1.")
    assert find_collections(app_services.database, "demo", collection_id=collection.id)[0].groups == ["HR", "Managers"]
    drive.permissions[ROOT] = [{"type": "user", "displayName": "Ada"}]
    with pytest.raises(InvalidInput, match="only individual people"):
        syncs.sync_now(admin, collection)


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"folder": "https://drive.google.com/drive/folders/absent-folder"}, NotFound, "not shared"),
        ({"folder": "?"}, InvalidInput, "address of the folder"),
        ({"folder": "file-plain"}, InvalidInput, "the name of a file"),
        ({"key": "{}"}, InvalidInput, "whole key"),
        ({"key": "hello"}, InvalidInput, "whole key"),
        ({"key": '{"type": "service_account"}'}, InvalidInput, "a part is missing"),
        ({"subject": "Ada"}, InvalidInput, "e-mail address"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(
    drive: DriveStandin, changes: dict[str, Any], error: type[RagError], said: str
) -> None:
    drive.put("file-plain", "plain.md", b"text")
    with pytest.raises(error, match=said):
        list(source_of(drive, **changes).items())


def test_a_key_that_signs_in_elsewhere_is_refused_and_a_limit_is_waited_for(drive: DriveStandin) -> None:
    key = drive.key.replace(drive.host, "evil.example")
    with pytest.raises(InvalidInput, match="does not belong to Google"):
        source_of(drive, key=key)
    drive.is_limited = True
    source = source_of(drive)
    with pytest.raises(ProviderQuotaExhausted):
        list(source.items())
    source.close()


def test_spreadsheets_of_google_are_taken_as_workbooks(
    app_services: Services, collection: Collection, drive: DriveStandin
) -> None:
    syncs, admin = app_services.syncs, program_of("demo")
    content = xlsx_file({"Bands": rows_of(["Grade", "Low"], ["G1", 30000])})
    drive.put("file-pay", "Pay bands", content, mime="application/vnd.google-apps.spreadsheet")
    syncs.set_source(admin, collection, "google_drive", WHERE, secrets={"key": drive.key})
    assert syncs.sync_now(admin, collection).added == 1
    (document,) = app_services.documents.list("demo")
    assert (document.title, document.file_name) == ("Pay bands", "Pay bands.xlsx")
    assert drive.exported == [file_formats().by_kind["xlsx"].media_type]
