"""PDF files of conversations and reports."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from fontTools.ttLib import TTFont
from pypdf import PdfReader
from streamlit.testing.v1 import AppTest

import rag.services
from rag.errors import PackagesMissing
from rag.integrations.operations.pdf_exports.conversation import to_pdf
from rag.integrations.operations.pdf_exports.document import bold_font
from rag.integrations.operations.pdf_exports.report import digest_pdf
from rag.language import speaking
from rag.records.analytics import Period
from rag.services import Services
from rag.storage.database import Database
from rag.types import Collection, Identity, Role, page_path
from rag.ui.text import plain
from tests.pages.conftest import new_tab, running, signed_in
from tests.records.test_transcript import ADDRESS, ARABIC, DOCUMENT, HOSTILE, TALK, conversation, message, source

__all__ = ["new_tab", "running", "signed_in"]
SignIn = Callable[[Role], tuple[AppTest, Identity]]


def printed(written: bytes) -> tuple[str, list[str]]:
    """The text of a PDF, and where its links lead."""
    document = pypdfium2.PdfDocument(written)
    text = "\n".join(page.get_textpage().get_text_range() for page in document)
    document.close()
    pages = PdfReader(io.BytesIO(written)).pages
    notes = [note.get_object() for page in pages for note in page.get("/Annots", ())]
    return text, [note["/A"]["/URI"] for note in notes if "/A" in note]


def test_a_pdf_holds_the_same_and_nothing_hostile_acts_in_it() -> None:
    link = ADDRESS + page_path(DOCUMENT, 3)
    text, links = printed(to_pdf(conversation(), TALK, address=ADDRESS))
    assert set(links) == {link}
    said = " ".join(text.split())
    for wanted in ("Annual leave", "How many days? And for part-time?", "You have 25 days [1].", "Years Days 5 28"):
        assert wanted in said
    source_line = "[1] Handbook [2026] (handbook.pdf), pp. 3–4, HR documents"
    assert f"• booked early • in the portal {source_line} Kim: Part-time is pro rata." in said
    assert "Nothing in the documents answers this." in said

    hostile = f"{HOSTILE}\u202e\ud83d **__--~~ \U0001f600"
    wide = "\n".join(["|" + "a|" * 12, "|" + "-|" * 12, "|" + "b|" * 12])
    deep = "".join(f"{'  ' * depth}- {depth}\n" for depth in range(40))
    empty = "||\n|---|\n||"
    talk = [message("user", hostile)]
    talk += [message("assistant", each, citations=[source(1, hostile)]) for each in (hostile, wide, deep, empty, "1")]
    talk.append(message("assistant", "word" * 2000, help_status="answered", help_by="", help_answer=hostile))
    text, links = printed(to_pdf(conversation(hostile), talk, address=ADDRESS))
    assert set(links) == {link}, "no address that somebody wrote"
    assert "onerror=alert(1)" in text
    assert "\u202e" not in text
    assert printed(to_pdf(conversation(""), [message("user", ""), message("assistant", "")], address=ADDRESS))[1] == []


def test_bold_letters_of_a_pdf_are_those_of_its_text_in_any_european_script(tmp_path: Path) -> None:
    title = "Grüße, Ďáblova Řeč, Отпуск, Άδεια"
    with TTFont(bold_font(title, tmp_path)) as font:
        assert font["OS/2"].usWeightClass == 650
        assert set(map(ord, title)) <= font.getBestCmap().keys()
    page = pypdfium2.PdfDocument(to_pdf(conversation(title), TALK, address=ADDRESS))[0].get_textpage()
    assert title in page.get_text_bounded()


def test_a_pdf_is_not_worth_waiting_for() -> None:
    """Of a font with all its letters, a bold one is twenty million calls: eight seconds of a machine at rest."""
    calls = 0

    def count(frame: object, event: str, found: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        to_pdf(conversation(), TALK[:1], address=ADDRESS)
    finally:
        sys.setprofile(None)
    assert calls < 3_000_000


def test_right_to_left_text_of_a_pdf_is_joined_and_runs_from_the_right() -> None:
    document = pypdfium2.PdfDocument(to_pdf(conversation("Leave"), TALK[2:3], address=ADDRESS))
    page = document[0].get_textpage()
    places = [
        (page.get_text_range(at, 1), page.get_charbox(at))
        for at in range(page.count_chars())
        if "\u0600" <= page.get_text_range(at, 1) <= "\u06ff"
    ]
    document.close()
    assert len(places) >= len(ARABIC.replace(" ", "")) - 3, "a font with its letters"
    assert max(box[2] for _, box in places) > 500, "from the right margin"
    # What is read first stands farthest to the right.
    lefts = [box[0] for _, box in places]
    assert sum(b <= a + 1 for a, b in pairwise(lefts)) > 0.8 * len(lefts) or lefts == sorted(lefts)


def test_the_report_is_a_pdf_in_any_european_script(
    app_services: Services, database: Database, collection: Collection
) -> None:
    asked_at = datetime.now(UTC) - timedelta(days=3)  # questions of the last half year are grouped
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO chat_logs (tenant_id, collection_id, question, outcome, created_at) "
            "SELECT 'demo', %s, 'Übergabe für Łódź, Ελλάδα и Москва?', 'no_context', %s FROM generate_series(1, 3)",
            (collection.id, asked_at),
        )
    period = Period.of_days(7, until=asked_at.date() + timedelta(days=1))

    read = PdfReader(io.BytesIO(digest_pdf(app_services.scheduled_work.digest("demo", period))))

    text = " ".join(read.pages[0].extract_text().split())
    assert "Übergabe für Łódź, Ελλάδα и Москва?" in text
    assert "3 (before: 0)" in text
    with speaking("ar"):
        read = PdfReader(io.BytesIO(digest_pdf(app_services.scheduled_work.digest("demo", period))))
    assert len(read.pages) == 1
    # Recipients of Arabic are joined, in the forms of their presentation or by the font.
    assert "Übergabe für Łódź" in read.pages[0].extract_text()


def offered(tab: AppTest) -> list[str]:
    """The labels of the buttons which download a file."""
    buttons: Sequence[Any] = tab.get("download_button")
    return [button.label for button in buttons]


@pytest.mark.parametrize("is_there", [True, False], ids=["without packages", "without the integration"])
def test_without_pdfs_a_conversation_is_still_exported(
    running: Services, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    collection = running.choose_collection("demo", None)
    tab.session_state["chat_dialog"] = "Export"
    tab.session_state["chat_dialog_of"] = running.conversations.create(identity, collection.id, "How many days?")
    assert offered(tab.run()) == ["PDF", "Word", "Markdown"]

    assert running.pdf_exports is not None
    left = replace(running.pdf_exports, is_installed=False) if is_there else None
    monkeypatch.setattr(rag.services, "connect_services", lambda _settings: replace(running, pdf_exports=left))
    rag.services.services.clear()
    assert offered(tab.run()) == ["Word", "Markdown"]
    assert [each.label for each in tab.button if each.disabled and each.label == "PDF"] == ["PDF"] * is_there
    missing = [plain(PackagesMissing().message)] * is_there
    assert [each.value for each in tab.warning] == missing
    assert not tab.exception
