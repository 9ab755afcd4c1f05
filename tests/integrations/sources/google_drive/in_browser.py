"""A folder of Google Drive, followed on a collection's page by a key or as a person."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.following import Place, box, make_collection
from tests.browser.tables import cells
from tests.integrations.sources.google_drive.drive_standin import ROOT, DriveStandin
from tests.patience import patient

FOLDER = f"https://drive.google.com/drive/folders/{ROOT}"


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    folder.mkdir()
    with DriveStandin(folder) as drive:
        drive.put("file-leave", "drive leave.md", b"# Drive leave\n\nTwenty-eight days a year.")
        drive.put("file-travel", "drive travel.md", b"# Drive travel\n\nBy train, second class.")
        drive.permissions[ROOT] = [
            {"type": "group", "displayName": name, "emailAddress": f"{name.lower()}@example.com"}
            for name in ("HR", "Board")
        ]
        yield Place(
            name="Google Drive",
            fields={"Address of the folder or the shared drive": FOLDER, "Key of the service account": drive.key},
            wrong=("Key of the service account", drive.key_of(drive.new_pair())),
            grow=lambda: drive.put("file-pay", "drive pay.md", b"# Drive pay\n\nOn the 25th of a month."),
            titles=("Drive leave", "Drive travel", "Drive pay"),
            groups=("Board", "HR"),
            secrets=("PRIVATE KEY",),
            hosts=(drive.host,),
            environment={
                "RAG_GOOGLE_API_URL": f"https://{drive.host}",
                "RAG_GOOGLE_CLIENT_ID": "client-7",
                "RAG_GOOGLE_CLIENT_SECRET": "the-client-secret",
                "RAG_GOOGLE_LOGIN_URL": f"https://{drive.host}/auth",
                "RAG_GOOGLE_OAUTH_URL": f"https://{drive.host}/token",
            },
            certificate=drive.certificate,
            standin=drive,
        )


def try_as_the_person_who_signed_in_there(address: str, tab: Page, place: Place) -> None:
    place.standin.put("file-own", "own notes.md", b"# Own notes\n\nWhat one person wrote down about leave.")
    where = make_collection(tab, address, "From my own Drive")
    tab.get_by_text("Google Drive", exact=True).first.click()
    tab.get_by_role("link", name="Sign in with Google").click()
    expect(tab.get_by_text("Signed in with Google as hr@example.com")).to_be_visible()
    assert tab.url.startswith(where), "they come back to the collection"
    box(tab, "Address of the folder or the shared drive").fill(FOLDER)
    tab.get_by_role("button", name="Check the connection").click()
    expect(tab.get_by_text("The source can be read. The first documents:")).to_be_visible()
    tab.get_by_role("button", name="Follow", exact=True).click()
    expect(tab.get_by_text(re.compile(r"\d added")).first).to_be_visible(timeout=patient(60_000))
    tab.goto(address + "/documents")
    tab.get_by_placeholder("Search in titles and text").fill("own notes")
    expect(cells(tab, "Own notes")).not_to_have_count(0, timeout=patient(60_000))
